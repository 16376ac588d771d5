#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Code that a process makes at run time has the names that the process wrote down, and nobody else's.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

maps=()

teardown() {
	((${#maps[@]} == 0)) || rm -f "${maps[@]}"
}

# jit_target COMMAND...: starts the target `jit` by it; where its code is goes to the file `code`.
jit_target() {
	target_spawn "$@"
	target_await READY >code
	maps+=("/tmp/perf-$target_pid.map")
}

# map_is COMMAND...: its output is the map of the target.
map_is() {
	"$@" >"/tmp/perf-$target_pid.map"
}

# profile_running: the target allocates, and its profile is made while it lives.
profile_running() {
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader valid p.pb.gz
}

# caller SIZE: who called take() for that object.
caller() {
	reader stacks p.pb.gz | awk -v size="$1" '$5 == size' >stack
	equal "$(lines stack)" 1 "stacks of $1 bytes"
	sed -E 's/^.* take;([^;]*);.*/\1/' stack
}

# named [SIZE]: both functions have their names; SIZE as for the target.
named() {
	local size=${1:-70001}

	equal "$(caller "$size")" jit_first "caller"
	equal "$(caller $((size + 1)))" jit_second "caller"
}

# nameless [SIZE]: neither has one, and no other name either.
nameless() {
	local size=${1:-70001}

	equal "$(caller "$size")" 0x3000000014 "caller"
	equal "$(caller $((size + 1)))" 0x3000000054 "caller"
}

# How many lines heapbpf said about the map.
about_map() {
	grep -c 'perf-[0-9]*\.map' err || true
}

# refused REASON: nobody has a name, and why is said, once.
refused() {
	nameless
	equal "$(about_map)" 1 "lines about the map"
	says "^heapbpf: process $target_pid \(jit\): /tmp/perf-$target_pid\.map is not used: $1$" \
		cat err
}

test_names() {
	jit_target "$TARGETS/jit"
	map_is cat code
	profile_running
	named
	equal "$(about_map)" 0 "lines about the map"
	! reader mappings p.pb.gz | grep 0x3000000 || fail "a mapping where no file is"
	target_end
}

test_names_in_text_and_table() {
	jit_target "$TARGETS/jit"
	map_is sed 's/jit_/a jit form of /' code
	heapbpf_start -p "$target_pid" -r 1 --text -o p.txt
	target_step
	heapbpf_stop
	whole
	says '^#.0x3000000014.a jit form of first$' cat p.txt
	says 'a jit form of second <- main' cat out
	target_end
}

test_without_map() {
	jit_target "$TARGETS/jit"
	profile_running
	nameless
	target_end
}

# The map may come while the recording runs, as that of Java does, and stay behind.
test_process_ends() {
	jit_target "$TARGETS/jit"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	map_is cat code
	target_end
	heapbpf_wait
	whole
	named
}

# Another process may have its number by then.
test_map_of_later() {
	jit_target "$TARGETS/jit"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	map_is cat code
	touch -d '1 minute' "/tmp/perf-$target_pid.map"
	target_end
	heapbpf_wait
	whole
	refused "it was written after the process ended"
}

# Lines about one address: what was written last is there now.
test_reused_addresses() {
	jit_target "$TARGETS/jit"
	map_is eval 'echo 3000000000 80 both_before; cat code; echo 2fffff0000 10000 before'
	profile_running
	named
	map_is eval 'cat code; echo 3000000040 40 later'
	target_end
	jit_target "$TARGETS/jit"
	map_is eval 'cat code; echo 3000000040 40 later'
	profile_running
	equal "$(caller 70001)" jit_first "caller"
	equal "$(caller 70002)" later "caller"
	target_end
}

test_garbage() {
	jit_target "$TARGETS/jit"
	map_is eval 'cat code
		head -c 300000 /dev/urandom
		printf "\n%s\n" 3000000000 "3000000000 40" "xyz 40 name" "3000000000 xyz name" \
			"0 ffffffffffffffff all" "ffffffffffffffff ffffff wraps" "3000000000 40 "
		printf "3000000000 40 nul\0byte\n"
		head -c 200000 /dev/zero'
	profile_running
	named
	says "^heapbpf: process $target_pid \(jit\): [0-9]+ lines of /tmp/perf-$target_pid\.map make" cat err
	target_end
}

test_large_map() {
	jit_target "$TARGETS/jit"
	map_is cat code
	truncate -s 3G "/tmp/perf-$target_pid.map"
	{
		echo
		sed s/jit/tail/ code
	} >>"/tmp/perf-$target_pid.map"
	profile_running
	equal "$(caller 70001)" tail_first "caller"
	equal "$(caller 70002)" tail_second "caller"
	target_end
}

test_control_characters() {
	jit_target "$TARGETS/jit"
	map_is sed $'s/jit_/\e[31m\x80/' code
	profile_running
	equal "$(caller 70001)" '?[31m?first' "caller"
	! grep -qF $'\e' out || fail "the terminal would obey"
	target_end
}

test_map_of_another_user() {
	jit_target "$TARGETS/jit"
	map_is cat code
	chown nobody "/tmp/perf-$target_pid.map"
	profile_running
	refused "it belongs to another user"
	target_end
}

test_map_of_its_user() {
	cp "$TARGETS/jit" .
	chmod 755 . jit
	jit_target setpriv --reuid=nobody --clear-groups ./jit
	map_is cat code
	chown nobody "/tmp/perf-$target_pid.map"
	profile_running
	named
	target_end
}

test_map_of_root() {
	cp "$TARGETS/jit" .
	chmod 755 . jit
	jit_target setpriv --reuid=nobody --clear-groups ./jit
	map_is cat code
	profile_running
	named
	target_end
}

test_fifo() {
	jit_target "$TARGETS/jit"
	mkfifo "/tmp/perf-$target_pid.map"
	profile_running
	refused "it is not a regular file"
	target_end
}

test_link() {
	jit_target "$TARGETS/jit"
	ln -s "$PWD/code" "/tmp/perf-$target_pid.map"
	profile_running
	refused "it is not a regular file"
	target_end
}

# Left behind by another process of that number.
test_older_map() {
	jit_target "$TARGETS/jit"
	map_is cat code
	touch -d '1 hour ago' "/tmp/perf-$target_pid.map"
	profile_running
	refused "it is older than the program"
	target_end
}

# twice [again]: a command that executes itself again; the map is written when the first image runs,
# and again when the second does.
twice() {
	target_spawn "$HEAPBPF" -r 1 -o p.pb.gz -- "$TARGETS/jit" 70001 more 2>err
	heapbpf_pid=$target_pid
	target_await READY >code
	target_pid=$(sed -n 's/^recording \([0-9]*\) .*/\1/p' err)
	maps+=("/tmp/perf-$target_pid.map")
	map_is cat code
	touch -d '1 second ago' "/tmp/perf-$target_pid.map"
	target_step
	target_go
	target_await READY >code
	[[ ${1:-} != again ]] || map_is cat code
	target_step
	target_go
	heapbpf_wait
	whole
	reader valid p.pb.gz
}

test_exec() {
	twice again
	nameless 70001
	named 70011
	equal "$(about_map)" 0 "lines about the map"
}

test_exec_leaves_map() {
	twice
	nameless 70001
	nameless 70011
	says 'is not used: it is older than the program$' cat err
}

# A mount namespace has its own /tmp, and ours has a map of the same name.
private_tmp() {
	# Expanded by the inner shell.
	# shellcheck disable=SC2016
	jit_target unshare -m bash -c 'exec 3<"$1" && mount -t tmpfs none /tmp &&
		cp /dev/fd/3 /tmp/jit && chmod 755 /tmp/jit && exec 3<&- && exec /tmp/jit' - "$TARGETS/jit"
	map_is sed s/jit/wrong/ code
}

test_mount_namespace() {
	private_tmp
	cp code "/proc/$target_pid/root/tmp/perf-$target_pid.map"
	profile_running
	named
	target_end
}

test_mount_namespace_without_map() {
	private_tmp
	profile_running
	nameless
	target_end
}

# Its end takes the mounts away; what lay below them must not come up.
test_mount_namespace_ends() {
	private_tmp
	cp code "/proc/$target_pid/root/tmp/perf-$target_pid.map"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	target_end
	heapbpf_wait
	whole
	named
}

test_chroot() {
	local lib

	mkdir -p jail/tmp
	for lib in $(ldd "$TARGETS/jit" | grep -oE '/[^ ]+'); do
		mkdir -p "jail$(dirname "$lib")"
		cp "$lib" "jail$lib"
	done
	cp "$TARGETS/jit" jail/program
	jit_target chroot jail /program
	map_is sed s/jit/wrong/ code
	cp code "jail/tmp/perf-$target_pid.map"
	profile_running
	named
	target_end
}

# In a pid namespace, the process knows another number.
test_pid_namespace() {
	local outer

	# shellcheck disable=SC2016
	jit_target unshare -m -p -f bash -c 'exec 3<"$1" && mount -t tmpfs none /tmp &&
		cp /dev/fd/3 /tmp/jit && chmod 755 /tmp/jit && exec 3<&- && exec /tmp/jit' - "$TARGETS/jit"
	outer=$target_pid
	target_pid=$(pgrep -P "$outer")
	pids+=("$target_pid")
	equal "$(awk '$1 == "NSpid:" { print $NF }' "/proc/$target_pid/status")" 1 "inner number"
	sed s/jit/wrong/ code >"/proc/$target_pid/root/tmp/perf-$target_pid.map"
	cp code "/proc/$target_pid/root/tmp/perf-1.map"
	profile_running
	named
	target_pid=$outer
	target_end
}

# --- programs ------------------------------------------------------------------------------------

# descents SIZE: how many frames of the recursion are on the stack of that object, in a row.
descents() {
	reader stacks p.pb.gz | awk -v size="$1" '$5 == size' >stack
	equal "$(lines stack)" 1 "stacks of $1 bytes"
	grep -oE "(;$2){2,};" stack | tr ';' '\n' | grep -c .
}

test_node() {
	local function='[A-Za-z]+:[*~^+]?descend [^;]*/recursion\.js:17:17' flags

	need node
	for flags in "--always-sparkplug" "--always-turbofan --no-turbo-inlining"; do
		# The flags are words on purpose; not every version knows all of them.
		# shellcheck disable=SC2086
		node $flags -e 0 2>/dev/null || continue
		# shellcheck disable=SC2086
		target_exec node --perf-basic-prof $flags "$TESTS/targets/recursion.js"
		maps+=("/tmp/perf-$target_pid.map")
		profile_running
		target_end
		equal "$(descents 70001 "$function")" 11 "calls with '$flags'"
		equal "$(descents 70002 "$function")" 41 "calls with '$flags'"
		says ';[A-Za-z]+:[*~^+]? [^;]*/recursion\.js:1:1;[A-Za-z]+:[*~^+]?Module\._compile [^;]*;' \
			cat stack
	done
}

test_java() {
	local function='void Descent\.descend\(int, int\)'

	need java javac jcmd
	cat >Descent.java <<-'END'
		import java.nio.ByteBuffer;
		public class Descent {
		    static ByteBuffer kept;
		    static void descend(int depth, int size) {
		        if (depth > 0)
		            descend(depth - 1, size);
		        else
		            kept = ByteBuffer.allocateDirect(size);
		    }
		    static void await(String word) throws java.io.IOException {
		        System.out.println(word);
		        System.in.read();
		    }
		    public static void main(String[] args) throws java.io.IOException {
		        await("READY");
		        descend(10, 70001);
		        descend(40, 80001);
		        await("DONE");
		    }
		}
	END
	javac Descent.java
	target_exec java -Xcomp -XX:TieredStopAtLevel=1 -XX:-Inline -XX:+PreserveFramePointer \
		-cp . Descent
	maps+=("/tmp/perf-$target_pid.map")
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	jcmd "$target_pid" Compiler.perfmap >messages
	heapbpf_stop
	whole
	reader valid p.pb.gz
	# It rounds up.
	equal "$(descents 70008 "$function")" 11 "calls"
	equal "$(descents 80008 "$function")" 41 "calls"
	target_end
}

e2e_main "$@"
