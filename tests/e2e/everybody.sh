#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# -a: whatever allocates on the machine.
# alone: probes are in the processes of all other tests, too
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Who comes later is recorded from its first call, who is there from now on.
check_everybody() {
	local early early_in early_out late

	need_tier "$1"
	mkdir prof
	own_family
	target_exec "./$name"
	early=$target_pid early_in=$target_in early_out=$target_out
	heapbpf_start -a --comm "^$name$" -r 1 -o prof/ --tier "$1"
	target_exec "./$name"
	late=$target_pid
	# Until then stacks are cut, and say so.
	eventually known "$late"
	target_step
	mv truth truth.late
	target_in=$early_in target_out=$early_out
	target_step
	heapbpf_stop
	whole
	# It was met by its first call. Until its mappings were read, stacks end where the C library was
	# called, and what that allocates for its own functions' sake ends in there.
	sed -i -E '/^SITE site_(strdup|getline|asprintf|open_memstream) /d' truth
	exact_of "$early"
	mv truth.late truth
	exact_of "$late"
	equal "$(column state "$late")" alive "state"
}

for tier in session multi perf; do
	eval "test_everybody_$tier() { check_everybody $tier; }"
done

# The numbers of the table are those of the profile.
test_table() {
	mkdir prof
	own_family
	heapbpf_start -a --comm "^$name$" -r 1 -o prof/
	target_exec "./$name"
	eventually known "$target_pid"
	target_step
	target_end
	eventually gone "$target_pid"
	heapbpf_stop
	whole
	mv "prof/heapbpf.$name.$target_pid.pb.gz" p.pb.gz
	equal "$(column alloc_objects "$target_pid")" "$(reader total p.pb.gz alloc_objects)" objects
	equal "$(column inuse_space "$target_pid")" "$(reader total p.pb.gz inuse_space)" "bytes in use"
	equal "$(column state "$target_pid")" ended "state"
	equal "$(column files "$target_pid")" "prof/heapbpf.$name.$target_pid.pb.gz" "file"
	says " $target_pid +$name\$" cat out
}

gone() {
	[[ ! -e /proc/$1 ]]
}

# start_as PID: the target once more, under that number, which others may be faster to get.
start_as() {
	local tries

	mkfifo in out.pipe
	exec {target_in}<>in {target_out}<>out.pipe
	for ((tries = 0; tries < 100; tries++)); do
		echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
		"./$name" <in >out.pipe &
		target_pid=$!
		pids+=("$target_pid")
		target_await READY
		((target_pid != $1)) || return 0
		kill -KILL "$target_pid"
	done
	skip "other processes are always faster than ours"
}

# Two processes with one number are two processes.
test_number_again() {
	local first

	mkdir prof
	own_family
	heapbpf_start -a --comm "^$name$" -r 1 -o prof/
	target_exec "./$name"
	eventually known "$target_pid"
	first=$target_pid
	target_step
	mv truth truth.first
	target_end
	eventually gone "$first"
	start_as "$first"
	eventually known "$target_pid"
	target_step
	heapbpf_stop
	whole
	mv "prof/heapbpf.$name.$first.2.pb.gz" p.pb.gz
	exact_if
	mv truth.first truth
	exact_of "$first"
}

# Programs that end at once, and are not even chosen, cost what they are hit, and that is no business of
# one that is chosen. Half of them hardly allocate.
test_budget_beside_short_programs() {
	local counted made storm

	mkdir prof
	target paced
	setsid bash -c 'while :; do bash -c "x=(x{1..500})"; sha512sum /bin/bash; done' >sums &
	storm=$!
	pids+=("$storm")
	heapbpf_start -a --comm '^paced$' -t allocs --max-overhead 10 -o prof/
	before_others "$target_pid"
	before_others "$heapbpf_pid"
	target_go
	read -rt 6 <> <(:) || true
	target_go
	target_await DONE >ticks
	heapbpf_stop
	kill -KILL -- "-$storm"
	whole
	says '^recorded: .* all of it would have cost [0-9]{1,3}%' cat out
	made=$(awk '$1 == "TICKS" { print 100 * $2 }' ticks)
	counted=$(reader total "prof/heapbpf.paced.$target_pid.pb.gz" alloc_objects)
	# Windows are few and short.
	((counted > made * 40 / 100 && counted < made * 250 / 100)) ||
		fail "$counted allocations by the profile, $made by the target"
	target_end
}

# executed_before_a_look OPTION...: the first image allocates and is gone before heapbpf, which stands
# still meanwhile, can look at it; the second one allocates nothing, and waits.
executed_before_a_look() {
	need cc
	mkdir prof
	name=hb$$
	cp "$TARGETS/begin" "$name"
	cat >later.c <<-end
		#include <unistd.h>
		int main(void)
		{
			char byte;
			return write(1, "READY\n", 6) != 6 || read(0, &byte, 1) != 1;
		}
	end
	cc -static -o later later.c
	chmod 755 .
	chmod u+s later
	heapbpf_start -a -r 1 -o prof/ "$@"
	kill -STOP "$heapbpf_pid"
	target_spawn setpriv --reuid=65533 --clear-groups "./$name" exec ./later
	target_await READY >truth
}

# What was allocated is there, in the only profile of the process.
first_image_is_whole() {
	heapbpf_stop
	whole
	mv prof/heapbpf.*."$target_pid".pb.gz p.pb.gz
	reader valid p.pb.gz
	equal "$(reader total p.pb.gz alloc_objects) $(reader total p.pb.gz alloc_space)" \
		"$(awk '{ objects += $3; bytes += $4 } END { print objects, bytes }' truth)" "allocated"
	equal "$(reader total p.pb.gz inuse_objects)" 0 "objects in use"
}

test_executes_at_once() {
	executed_before_a_look --comm "^hb$$\$"
	kill -CONT "$heapbpf_pid"
	eventually known "$target_pid"
	first_image_is_whole
}

# By its user, that of the second image being another one.
test_executes_as_another_user_at_once() {
	executed_before_a_look --user 65533
	[[ $(awk '$1 == "Uid:" { print $3 }' "/proc/$target_pid/status") == 0 ]] ||
		skip "no program can change its user in $PWD"
	kill -CONT "$heapbpf_pid"
	eventually known "$target_pid"
	first_image_is_whole
}

test_executes_and_ends_at_once() {
	executed_before_a_look --comm "^hb$$\$"
	target_end
	kill -CONT "$heapbpf_pid"
	first_image_is_whole
}

# Whoever is first has the place; what the others allocate is counted as lost, and says why.
test_max_processes() {
	mkdir prof
	own_family
	heapbpf_start -a --comm "^$name$" --max-processes 1 -r 1 -o prof/
	target_exec "./$name"
	target_step
	target_exec "./$name"
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	says 'lost: [0-9]+ no_process: .*--max-processes reached' cat out err
}

# heapbpf allocates like everybody, but is not part of the picture.
test_not_itself() {
	mkdir prof
	heapbpf_start -a --comm heapbpf -r 1 -o prof/
	heapbpf_stop
	whole
	[[ ! -e prof/heapbpf.heapbpf.$heapbpf_pid.pb.gz ]] || fail "it has profiled itself"
	equal "$(column samples "$heapbpf_pid")" "" "its samples"
}

test_directory_of_its_own() {
	heapbpf_start -a --comm '^nobody-has-this$'
	heapbpf_stop
	whole
	matches "$(echo heapbpf.2*/*)" '^heapbpf\.2[0-9]{7}-[0-9]{6}/heapbpf\.processes\.tsv$' "the files"
	says 'nothing was sampled' cat out
}

# Go copies the stacks of its goroutines; what it calls in C has return probes on its stack meanwhile.
# It answers as it does alone.
test_go_server() {
	go_command >/dev/null
	need cc
	mkdir prof
	name=hb$$
	cp "$TESTS/targets/cgo_server.go" .
	GOCACHE=$test_dir/cache GO111MODULE=off "$(go_command)" build -o "$name" cgo_server.go
	target_exec "./$name"
	target_step
	target_end
	mv truth alone
	heapbpf_start -a --comm "^$name$" -r 1 -o prof/
	target_exec "./$name"
	eventually known "$target_pid"
	target_step
	target_end
	heapbpf_stop
	whole
	diff alone truth
	mv "prof/heapbpf.$name.$target_pid.pb.gz" p.pb.gz
	reader compare truth p.pb.gz
}

# In a mount namespace with a libc of its own, below an overlay: the file is found by what it is, and a
# new process of it is probed as soon as one was seen that lived for a moment.
test_container() {
	local lib first

	mkdir prof root lower upper work
	name=hb$$
	cp "$TARGETS/rounds" "$name"
	for lib in $(ldd "$name" | grep -oE '/[^ ]+'); do
		mkdir -p "lower$(dirname "$lib")"
		cp "$lib" "lower$lib"
	done
	cp "$name" lower/
	mount -t tmpfs none upper || skip "tmpfs cannot be mounted"
	mkdir upper/up upper/work
	if ! mount -t overlay none -o lowerdir=lower,upperdir=upper/up,workdir=upper/work root; then
		umount upper
		skip "overlayfs cannot be mounted"
	fi
	target_exec unshare -m chroot root "/$name"
	first=$target_pid
	heapbpf_start -a --comm "^$name$" -r 1 -o prof/
	target_step
	mv truth truth.first
	target_exec unshare -m chroot root "/$name"
	eventually known "$target_pid"
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
	# It was met by its first call, so the stacks are cut.
	equal "$(column alloc_space "$first")" "$(awk '{ sum += $4 } END { print sum }' truth.first)" bytes
}

teardown() {
	umount root upper 2>/dev/null || true
}

e2e_main "$@"
