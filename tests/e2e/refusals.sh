#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What cannot be done is refused with one line that says what, why and what to do, the documented
# status, and no file left behind.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mounted=

teardown() {
	[[ -z $mounted ]] || umount -l "$mounted"
}

# refused STATUS REGEX COMMAND...: the command's stderr is one line "heapbpf: ..." that matches.
refused() {
	local status=0 want=$1 regex=$2

	shift 2
	timeout "$PATIENCE" "$@" >out 2>err </dev/null || status=$?
	equal "$status" "$want" "status of $*"
	equal "$(lines err)" 1 "lines on stderr of $*: $(<err)"
	matches "$(<err)" '^heapbpf: .' "stderr of $*"
	matches "$(<err)" "$regex" "stderr of $*"
	equal "$(<out)" "" "stdout of $*"
	equal "$(find . -name '*.gz*' -o -name 'heapbpf.*.*')" "" "files left by $*"
}

test_no_process_given() {
	refused 64 'PID' "$HEAPBPF"
	refused 64 'PID' "$HEAPBPF" record
	refused 64 'PID' "$HEAPBPF" -d 5s
}

test_nonsense() {
	target freeall
	local p=$target_pid

	refused 64 'frobnicate' "$HEAPBPF" frobnicate
	refused 64 'frobnicate' "$HEAPBPF" --frobnicate
	refused 64 'comm' "$HEAPBPF" --comm ''
	refused 64 'x' "$HEAPBPF" -x
	refused 64 'abc' "$HEAPBPF" -p abc
	refused 64 '12x' "$HEAPBPF" -p 12x
	refused 64 '-?5' "$HEAPBPF" -p -5
	refused 64 '0' "$HEAPBPF" -p 0
	refused 64 'p' "$HEAPBPF" -p ""
	refused 64 ',' "$HEAPBPF" -p "$p,"
	refused 64 '99999999999999999999' "$HEAPBPF" -p 99999999999999999999
	refused 64 'heap' "$HEAPBPF" -p "$p" -t nonsense
	refused 64 'heap' "$HEAPBPF" -p "$p" -t heap,
	refused 64 '.' "$HEAPBPF" -p "$p" left over
	refused 64 'p' "$HEAPBPF" -p
	refused 64 'unknown option -x;' "$HEAPBPF" -p "$p" -xq
	refused 64 'unknown option -x;' "$HEAPBPF" -p "$p" -qx
	refused 64 'quiet takes no value' "$HEAPBPF" -p "$p" --quiet=3
	refused 64 'unknown option --max' "$HEAPBPF" -p "$p" --max=3
	refused 64 'duration needs a value' "$HEAPBPF" -p "$p" -qd
}

test_nonsense_places() {
	refused 64 'malloc=/bin/true: give FUNCTION=PATH' "$HEAPBPF" -p 1 --probe malloc=/bin/true
	refused 64 'mallock=.*: unknown function; it can be malloc,' \
		"$HEAPBPF" -p 1 --probe mallock=/bin/true:x
	refused 64 '0xzz is no offset' "$HEAPBPF" -p 1 --probe malloc=/bin/true:0xzz
	refused 64 'alloc-lib needs the path' "$HEAPBPF" -p 1 --alloc-lib ""
	refused 64 'symbol-prefix a b: give what names begin with' "$HEAPBPF" -p 1 --symbol-prefix 'a b'
	refused 64 'there can be 63 prefixes, known ones included' \
		"$HEAPBPF" -p 1 --symbol-prefix "$(printf 'p%s,' {1..63})q"
}

test_nonsense_numbers() {
	target freeall
	local p=$target_pid value

	for value in 0 -1 0s 5x s 1e3 99999999999999999999h ''; do
		refused 64 'd' "$HEAPBPF" -p "$p" -d "$value"
	done
	for value in 0 -1 K 5X 99999999999999999999 ''; do
		refused 64 'r' "$HEAPBPF" -p "$p" -r "$value"
	done
	for value in 0 513 -1 x; do
		refused 64 'max-depth' "$HEAPBPF" -p "$p" --max-depth "$value"
	done
	for value in 0 -1 x 99999999999; do
		refused 64 'max-live' "$HEAPBPF" -p "$p" --max-live "$value"
		refused 64 'max-stacks' "$HEAPBPF" -p "$p" --max-stacks "$value"
		refused 64 'max-sites' "$HEAPBPF" -p "$p" --max-sites "$value"
	done
	refused 64 'top' "$HEAPBPF" -p "$p" --top -1
	refused 64 'tier' "$HEAPBPF" -p "$p" --tier nonsense
}

test_bad_ready_fd() {
	target freeall
	refused 64 'ready-fd' "$HEAPBPF" -p "$target_pid" --ready-fd x
	refused 64 'ready-fd' "$HEAPBPF" -p "$target_pid" --ready-fd -1
	refused 2 'ready-fd' "$HEAPBPF" -q -p "$target_pid" -d 50ms --ready-fd 77
}

test_no_such_process() {
	local pid

	bash -c : &
	pid=$!
	wait "$pid"
	refused 2 "$pid" "$HEAPBPF" -p "$pid"
	refused 2 '4194303' "$HEAPBPF" -p 4194303
	heapbpf_run check -p "$pid"
	equal "$heapbpf_status" 2 "status of check"
	matches "$(<err)" "$pid" "stderr of check"
}

test_one_of_two_missing() {
	target freeall
	refused 2 '4194303' "$HEAPBPF" -p "$target_pid,4194303" -d 50ms
}

test_kernel_thread() {
	local pid

	# Processes may end while awk looks at them.
	pid=$(awk '$2 == "(kthreadd)" { print $1 }' /proc/[0-9]*/stat 2>/dev/null || true)
	[[ -n $pid ]] || skip "no kernel threads in this pid namespace"
	refused 2 'kernel' "$HEAPBPF" -p "$pid"
}

test_zombie() {
	local pid

	/usr/bin/python3 -c '
import os, signal
child = os.fork()
if child == 0:
    os._exit(0)
print(child, flush=True)
signal.pause()
' >zombie &
	pids+=($!)
	eventually test -s zombie
	pid=$(<zombie)
	eventually grep -q '^State:.Z' "/proc/$pid/status"
	refused 2 'zombie|ended|exited' "$HEAPBPF" -p "$pid"
}

test_thread_is_no_process() {
	local tid

	steady
	tid=$(find "/proc/$target_pid/task" -mindepth 1 -maxdepth 1 -printf '%f\n' |
		grep -vx "$target_pid" | head -n 1)
	refused 2 "$tid" "$HEAPBPF" -p "$tid" -d 50ms
}

test_nobody() {
	need setpriv
	target freeall
	chmod 755 "$test_dir"
	cp "$HEAPBPF" ./heapbpf-for-all
	refused 2 'without CAP_.*root|sudo' setpriv --reuid=65534 --regid=65534 --clear-groups \
		--bounding-set=-all ./heapbpf-for-all -p "$target_pid" -d 50ms -o /dev/null
	refused 2 'without CAP_.*root|sudo' setpriv --reuid=65534 --regid=65534 --clear-groups \
		./heapbpf-for-all -p "$target_pid" -d 50ms -o /dev/null
}

# dropped CAPABILITIES MISSING: without these the refusal names what is missing, and no more.
dropped() {
	refused 2 " without $2[;:( ]" capsh "--drop=$1" -- -c \
		"exec '$HEAPBPF' -p $target_pid -d 50ms"
}

test_no_capabilities() {
	need capsh setpriv
	target freeall
	dropped all 'CAP_(SYS_PTRACE|BPF and CAP_PERFMON)'
	dropped cap_bpf,cap_perfmon,cap_sys_admin 'CAP_BPF and CAP_PERFMON'
	dropped cap_bpf,cap_sys_admin CAP_BPF
	dropped cap_perfmon,cap_sys_admin CAP_PERFMON
	dropped cap_sys_ptrace CAP_SYS_PTRACE
	# The process of somebody else.
	chmod 755 "$test_dir"
	target_exec setpriv --reuid=65534 --regid=65534 --clear-groups "$TARGETS/freeall"
	dropped cap_sys_ptrace,cap_dac_override,cap_dac_read_search CAP_SYS_PTRACE
}

# Enough for all but perf events.
FEW=-all,+bpf,+perfmon,+sys_ptrace

# Root is more than it needs.
test_capabilities_that_suffice() {
	need setpriv
	need_tier multi
	target freeall
	chmod 755 "$test_dir"
	cp "$HEAPBPF" ./heapbpf-for-all
	mkdir -m 777 open
	heapbpf_status=0
	setpriv --reuid=65534 --regid=65534 --clear-groups "--inh-caps=$FEW" "--ambient-caps=$FEW" \
		./heapbpf-for-all -p "$target_pid" -d 50ms -o open/p.pb.gz >out 2>err ||
		heapbpf_status=$?
	whole
	reader valid open/p.pb.gz
}

# Whether return probes would harm it is found out by the links that are used then.
few_and_sandbox() {
	need setpriv
	need_tier "$1"
	target sandboxed
	mkfifo ready
	setpriv "--bounding-set=$FEW" "$HEAPBPF" --tier "$1" -p "$target_pid" -r 1 -o p.pb.gz \
		--ready-fd 9 9>ready >out 2>err </dev/null &
	heapbpf_pid=$!
	pids+=("$heapbpf_pid")
	equal "$(timeout "$PATIENCE" head -c 1 ready | wc -c)" 1 "$(<err): ready"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

test_few_capabilities_and_a_sandbox_session() {
	few_and_sandbox session
}

test_few_capabilities_and_a_sandbox_multi() {
	few_and_sandbox multi
}

test_few_capabilities_and_everybody() {
	need setpriv
	need_tier multi
	heapbpf_status=0
	mkdir prof
	setpriv "--bounding-set=$FEW" "$HEAPBPF" -a --comm 'no such name' -d 50ms -o prof/ \
		>out 2>err || heapbpf_status=$?
	whole
}

test_few_capabilities_and_perf() {
	local option

	need setpriv
	target sandboxed
	for option in '' '-t allocs'; do
		# Words on purpose.
		# shellcheck disable=SC2086
		refused 2 '^heapbpf: cannot use perf uprobes: root without CAP_SYS_ADMIN ' \
			setpriv "--bounding-set=$FEW" "$HEAPBPF" --tier perf -p "$target_pid" $option
	done
	refused 2 '^heapbpf: cannot use perf uprobes: root without CAP_SYS_ADMIN ' \
		setpriv "--bounding-set=$FEW" "$HEAPBPF" --tier perf -a
	chmod 755 "$test_dir"
	cp "$HEAPBPF" ./heapbpf-for-all
	refused 2 '^heapbpf: cannot use perf uprobes as uid 65534 without CAP_SYS_ADMIN; .*sudo' \
		setpriv --reuid=65534 --regid=65534 --clear-groups "--inh-caps=$FEW" \
		"--ambient-caps=$FEW" ./heapbpf-for-all --tier perf -p "$target_pid" \
		-o /dev/null
	setpriv "--bounding-set=$FEW" "$HEAPBPF" check >out 2>&1 || true
	matches "$(<out)" ' without CAP_SYS_ADMIN' "check"
	# With it the others are worth as much as before.
	setpriv "--bounding-set=$FEW,+sys_admin" "$HEAPBPF" check >out
	matches "$(<out)" 'perf +yes' "check"
}

test_user_namespace() {
	target freeall
	unshare -Ur true 2>/dev/null || skip "user namespaces are not allowed"
	refused 2 'root|CAP_|permi|privilege|namespace' unshare -Ur "$HEAPBPF" -p "$target_pid" -d 50ms
}

# A pid that means somebody else outside.
test_pid_namespace() {
	target freeall
	heapbpf_status=0
	# Expanded by the inner shell.
	# shellcheck disable=SC2016
	unshare -p -f --mount-proc bash -c '
		mkfifo in out
		exec 7<>in 8<>out
		"$1" <&7 >&8 &
		read -r _ <&8
		mkfifo ready
		"$2" -p $! -r 1 -o p.pb.gz --ready-fd 9 9>ready 2>err >table &
		heapbpf=$!
		head -c 1 ready >/dev/null
		printf g >&7
		while read -r line <&8 && [[ $line != DONE ]]; do echo "$line"; done >truth
		kill -INT $heapbpf
		wait $heapbpf
	' - "$TARGETS/freeall" "$HEAPBPF" || heapbpf_status=$?
	if ((heapbpf_status == 2)); then
		matches "$(<err)" 'namespace' "refusal"
	else
		whole
		exact
	fi
}

test_no_btf() {
	target freeall
	: >empty
	# Expanded by the inner shell.
	# shellcheck disable=SC2016
	refused 2 'BTF' unshare -m bash -c 'mount --bind empty /sys/kernel/btf/vmlinux && exec "$@"' - \
		"$HEAPBPF" -p "$target_pid" -d 50ms
	# shellcheck disable=SC2016
	refused 2 'BTF.*: No such file' unshare -m bash -c \
		'mount -t tmpfs none /sys/kernel/btf && exec "$@"' - "$HEAPBPF" -p "$target_pid" -d 50ms
}

# --- kernels that we do not have: tests/targets/hazard.c answers in their place ------------------

# hazard NAME COMMAND...
hazard() {
	env "HAZARD=$1" "LD_PRELOAD=$TARGETS/hazard" "${@:2}"
}

# hazard_refused NAME REGEX ARG...
hazard_refused() {
	refused 2 "$2" env "HAZARD=$1" "LD_PRELOAD=$TARGETS/hazard" "$HEAPBPF" "${@:3}"
}

test_kernel_without_bpf() {
	local line='^heapbpf: cannot use BPF: kernel [^ ]* is built without it; .*CONFIG_BPF_SYSCALL$'

	target freeall
	hazard_refused no_bpf "$line" -p "$target_pid"
	hazard_refused no_bpf "$line" -p "$target_pid" --tier perf
	hazard_refused no_bpf "$line" -a
	hazard_refused no_bpf "$line" check
}

# The maps come last, after all that is asked of the kernel before.
test_kernel_that_counts_maps_as_locked() {
	target freeall
	hazard_refused locked_memory '^heapbpf: the kernel refuses the maps; .*ulimit -l .*max-live' \
		-p "$target_pid" -d 50ms
	hazard_refused locked_memory '^heapbpf: the kernel refuses the maps; .*ulimit -l .*max-live' \
		-a -d 50ms
}

# Links that miss what other threads do are not used, but what counts all.
test_kernel_whose_links_see_one_thread() {
	need_tier multi
	target threads 100
	hazard_refused one_thread '^heapbpf: the multi uprobes of this kernel see one thread.*--tier$' \
		-p "$target_pid" --tier multi
	hazard one_thread "$HEAPBPF" check >out
	matches "$(<out)" 'multi +no, without the other threads of a process' "check"
	matches "$(<out)" 'perf +yes, used' "check"
	mkfifo ready
	# Not by the function, whose shell would get the signals.
	env HAZARD=one_thread "LD_PRELOAD=$TARGETS/hazard" "$HEAPBPF" -p "$target_pid" -r 1 \
		-o p.pb.gz --ready-fd 9 9>ready >out 2>err </dev/null &
	heapbpf_pid=$!
	pids+=("$heapbpf_pid")
	equal "$(timeout "$PATIENCE" head -c 1 ready | wc -c)" 1 "$(<err): ready"
	matches "$(<err)" ' by perf probes' "stderr"
	target_step
	heapbpf_stop
	whole
	exact
}

# The sandboxed child dies of the trial, by each kind of link; the process itself is not touched.
test_kernel_that_kills_at_return_probes() {
	local tier all='^heapbpf: this kernel kills processes under seccomp .*; use -t allocs$'
	local one='^heapbpf: process [0-9]* runs under seccomp and this kernel kills .*; use -t allocs$'

	target sandboxed
	for tier in session multi perf; do
		(need_tier "$tier") 2>/dev/null || continue
		hazard_refused deadly_return "$one" --tier "$tier" -p "$target_pid"
		hazard_refused deadly_return "$all" --tier "$tier" -a
	done
	hazard deadly_return "$HEAPBPF" check -p "$target_pid" >out
	matches "$(<out)" 'return probes are unsafe here .*only -t allocs' "check"
	# What is offered works; and who is not under seccomp is recorded as ever.
	hazard deadly_return "$HEAPBPF" -t allocs -p "$target_pid" -d 50ms -o p.pb.gz >out 2>err
	reader valid p.pb.gz
	target_step
	target_end
	target freeall
	hazard deadly_return "$HEAPBPF" -p "$target_pid" -d 50ms -o p.pb.gz >out 2>err
	reader valid p.pb.gz
}

# --- and what is in the way of this one ----------------------------------------------------------

test_no_allocator() {
	need cc
	cc -O2 -static -s -o hidden "$TESTS/targets/freeall.c" -fno-builtin
	target_exec ./hidden
	refused 2 'allocator' "$HEAPBPF" -p "$target_pid" -d 50ms
	# With its symbols it can be followed.
	cc -O2 -g -static -o shown "$TESTS/targets/freeall.c" -fno-builtin
	target_exec ./shown
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	exact
}

test_output_cannot_be() {
	target freeall
	local p=$target_pid

	refused 2 'no/such/file: No such file or directory; .*mkdir' \
		"$HEAPBPF" -p "$p" -d 50ms -o no/such/file
	refused 2 'no/such/dir/heapbpf.*: No such file or directory; .*mkdir' \
		"$HEAPBPF" -p "$p" -d 50ms -o no/such/dir/
	: >plain
	refused 2 'plain/file: Not a directory; .*-o' "$HEAPBPF" -p "$p" -d 50ms -o plain/file
	mkdir -p "there/heapbpf.freeall.$p.pb.gz"
	heapbpf_run -p "$p" -d 50ms -o there
	equal "$heapbpf_status $(lines err)" "2 1" "status and lines on stderr"
	matches "$(<err)" 'there/.*: Is a directory; .*-o' "stderr"
	rmdir "there/heapbpf.freeall.$p.pb.gz"
	refused 2 'dev/fd/0: Bad file descriptor; .*-o' "$HEAPBPF" -p "$p" -d 50ms -o /dev/fd/0
}

# One file for several profiles: said before anybody looks at the processes.
test_one_file_for_several() {
	refused 64 '^heapbpf: -o file: .*directory' "$HEAPBPF" -p 4194302,4194303 -o file
	refused 64 '^heapbpf: -o file: .*directory' "$HEAPBPF" -p 4194303 -t heap,allocs -o file
	refused 64 '^heapbpf: -o -: .*directory' "$HEAPBPF" -p 4194303 -t heap,allocs -o -
	mkdir -- -
	refused 64 '^heapbpf: -o -: .*directory' "$HEAPBPF" -p 4194303 -t heap,allocs -o -
}

test_read_only_directory() {
	target freeall
	mkdir ro
	mount -t tmpfs -o ro none ro
	mounted=$test_dir/ro
	refused 2 'ro/file: Read-only file system; .*-o' "$HEAPBPF" -p "$target_pid" -d 50ms -o ro/file
	refused 2 'ro/heapbpf.*: Read-only file system; .*-o' "$HEAPBPF" -p "$target_pid" -d 50ms -o ro/
}

test_full_device() {
	target freeall
	refused 2 '/dev/full: No space left on device; .*-o' "$HEAPBPF" -q --top 0 -p "$target_pid" -d 50ms -o /dev/full
}

test_full_disk() {
	mkdir small
	mount -t tmpfs -o size=4k none small
	mounted=$test_dir/small
	head -c 4096 /dev/zero >small/filler
	target freeall
	refused 2 'small/file: No space left on device; .*-o' "$HEAPBPF" -q --top 0 -p "$target_pid" -d 50ms -o small/file
	equal "$(ls small)" filler "files on the full disk"
}

# The reader of a pipe went away: no crash, no endless wait, a failure.
test_closed_pipe() {
	local status=0 reader writer

	target family
	mkfifo pipe
	exec {reader}<>pipe
	exec {writer}>pipe
	exec {reader}<&-
	(
		trap '' PIPE
		exec "$HEAPBPF" -q -p "$target_pid" -d 100ms -o - 1>&"$writer" 2>err
	) || status=$?
	equal "$status" 2 "status"
	matches "$(<err)" '^heapbpf: ' "stderr"
	equal "$(lines err)" 1 "lines on stderr"
}

# The limit on locked memory is not in the way; or, where it is, it is named.
test_locked_memory() {
	target freeall
	heapbpf_status=0
	(
		ulimit -l 64
		exec "$HEAPBPF" -p "$target_pid" -d 50ms -o p.pb.gz >out 2>err
	) || heapbpf_status=$?
	whole
	reader valid p.pb.gz
	rm p.pb.gz
	need capsh
	(
		ulimit -l 64
		exec capsh --drop=cap_sys_resource -- -c \
			"exec '$HEAPBPF' -p $target_pid -d 50ms -o p.pb.gz" >out 2>err
	) || heapbpf_status=$?
	if ((heapbpf_status)); then
		matches "$(<err)" 'locked memory|memlock|ulimit -l' "stderr"
	else
		reader valid p.pb.gz
	fi
}

e2e_main "$@"
