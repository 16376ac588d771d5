#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Everything fails once: heapbpf is killed at any moment, stopped, starved of descriptors and of
# memory, and refused what it asks of libraries and of the kernel. Whatever happens to it, its target
# is as before, nothing of it stays in the kernel, and it ends with one line that says why or with a
# profile that is true.
#
# The numbers of turns are small enough for every day; the variables set them:
#   HB_KILLS=30     kills at random moments
#   HB_FAULTS=100   calls to fail of each kind, spread over all of a run; `all`: each of them
#   HB_SEED=N       the seed of what is random; it is shown when a test fails
# time limit: 600 s
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

RANDOM=${HB_SEED:=$RANDOM}

group=

teardown() {
	[[ -z $group ]] || rmdir "$group"
	((status == 0 || status == 77)) || echo "HB_SEED=$HB_SEED" >&2
}

# --- what must be left alone -------------------------------------------------------------------

# Objects of heapbpf in the kernel that nobody holds, one a line.
orphans() {
	/usr/bin/python3 "$TESTS/bpf_objects.py" orphans
}

# Notes what earlier runs left, which is not ours.
orphans_note() {
	orphans >orphans.before
	: >orphans.new
}

# One look: each orphan that was there at all looks stays on the list.
orphans_gone() {
	orphans | comm -13 orphans.before - >orphans.now
	if [[ -s orphans.new ]]; then
		comm -12 orphans.new orphans.now >orphans.both
		mv orphans.both orphans.new
	else
		mv orphans.now orphans.new
	fi
	[[ ! -s orphans.new ]]
}

# Nothing of ours stays in the kernel.
no_orphans() {
	: >orphans.new
	eventually orphans_gone
}

# The target goes on: what it said so far is passed over, then it must say something new.
progress() {
	while read -r -t 0 -u "$target_out"; do
		read -r -t "$PATIENCE" -u "$target_out" || fail "the target is gone"
	done
	target_await BEAT >/dev/null
}

# target_apart NAME: a target with a copy of libc that no other test knows. When another heapbpf leaves
# a place, the kernel takes out what was forgotten there.
target_apart() {
	if [[ ! -d lib ]]; then
		mkdir lib
		cp "$(ldd "$TARGETS/$1" | awk '/libc\.so/ { print $3 }')" lib/
	fi
	target_exec env "LD_LIBRARY_PATH=$PWD/lib" "$TARGETS/$1"
}

# Waits for heapbpf, and no longer than anything may take.
timed_wait() {
	timeout "$PATIENCE" tail -f --pid="$heapbpf_pid" /dev/null ||
		fail "heapbpf still runs after $PATIENCE s"
	heapbpf_wait
}

# The ways to attach that this kernel has.
tiers() {
	at_least_kernel 6 13 && echo session
	at_least_kernel 6 11 && echo multi
	echo perf
}

# pick WORD...: one of them.
pick() {
	echo "${@:RANDOM % $# + 1:1}"
}

# pause MILLISECONDS
pause() {
	sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
}

# --- kills -------------------------------------------------------------------------------------

# A life of heapbpf, from the start to the finished file, cut off anywhere. The target's bytes are as
# they should be, at every turn of its loop (`steady` sees to that) and in its code.
test_killed_at_random() {
	local kills=0 ways budget

	mapfile -t ways < <(tiers)
	orphans_note
	target_apart steady
	target_go
	while ((kills < ${HB_KILLS:-30})); do
		# With a budget the probes come and go all the time.
		budget=$(pick none 1 10)
		"$HEAPBPF" -q -p "$target_pid" -r "$(pick 1 512K)" --tier "$(pick "${ways[@]}")" \
			--max-overhead "$budget" -d 300ms -o p.pb.gz >out 2>err </dev/null &
		heapbpf_pid=$!
		pids+=("$heapbpf_pid")
		pause $((RANDOM % 900))
		kill -KILL "$heapbpf_pid" 2>/dev/null || true
		{ heapbpf_wait; } 2>shell
		case $heapbpf_status in
		0) reader valid p.pb.gz ;;
		137) kills=$((kills + 1)) ;;
		*) fail "heapbpf ended with $heapbpf_status: $(<err)" ;;
		esac
		equal "$(<err)" "" "stderr"
		[[ ! -e p.pb.gz ]] || reader valid p.pb.gz
		rm -f p.pb.gz
		eventually text_intact "$target_pid"
		progress
	done
	no_orphans
	steady_end
}

# killed_at attach|detach alone|sharers|all: three times with each tier, in the middle. `hog` makes it
# last, since each breakpoint waits for all processes that map the library.
killed_at() {
	local edge=$1 who=$2 tier places turn

	target_apart hog
	target_apart family
	for tier in $(tiers); do
		# Without a budget, which takes breakpoints out when it likes.
		heapbpf_start -p "$target_pid" --tier "$tier" --max-overhead none -o p.pb.gz
		places=$(text_changes "$target_pid")
		heapbpf_stop
		eventually text_intact "$target_pid"
		for turn in 1 2 3; do
			env --default-signal=INT "$HEAPBPF" -q -p "$target_pid" --tier "$tier" \
				--max-overhead none -o p.pb.gz >out 2>err </dev/null &
			heapbpf_pid=$!
			# A list of addresses.
			# shellcheck disable=SC2086
			/usr/bin/python3 "$TESTS/kill_at_edge.py" "$edge" "$who" "$target_pid" \
				"$heapbpf_pid" $places >probed
			{ heapbpf_wait; } 2>shell
			equal "$heapbpf_status" 137 "status in turn $turn with $tier, $(<probed) probed"
			eventually text_intact "$target_pid"
		done
	done
	target_step
	target_end
}

test_killed_while_attaching() {
	killed_at attach alone
}

test_killed_while_detaching() {
	killed_at detach alone
}

# The kernel kills for want of memory, and then all processes that have the memory of the one.
test_killed_for_memory_while_attaching() {
	killed_at attach sharers
}

test_killed_for_memory_while_detaching() {
	killed_at detach sharers
}

# So does the end of a container, or somebody who means it.
test_all_killed_while_detaching() {
	killed_at detach all
}

# A crash is one line and the status of a failure.
test_crash() {
	target_apart steady
	target_go
	heapbpf_start -q -p "$target_pid" -o p.pb.gz
	kill -SEGV "$heapbpf_pid"
	heapbpf_wait
	equal "$heapbpf_status" 2 "status after a crash"
	matches "$(<err)" '^heapbpf: crashed' "stderr"
	equal "$(lines err)" 1 "lines on stderr"
	eventually text_intact "$target_pid"
	steady_end
}

# The target is killed at a random moment of a recording: while heapbpf looks at it, records or
# writes. It ends by itself, with a profile or with a line.
test_target_killed_at_random() {
	local kills ways

	mapfile -t ways < <(tiers)
	for ((kills = 0; kills < ${HB_KILLS:-30}; kills++)); do
		target steady
		target_go
		"$HEAPBPF" -p "$target_pid" -r 1 --tier "$(pick "${ways[@]}")" -o p.pb.gz \
			>out 2>err </dev/null &
		heapbpf_pid=$!
		pids+=("$heapbpf_pid")
		pause $((RANDOM % 900))
		kill -KILL "$target_pid"
		{ wait "$target_pid" || true; } 2>shell
		{ timed_wait; } 2>shell
		verdict >wrong
		[[ ! -s wrong ]] || fail "kill $kills: $(<wrong): $(<err)"
		rm -f p.pb.gz
	done
}

# --- stops -------------------------------------------------------------------------------------

# stop_and_go PID...: holds up one of them after the other, until the file `enough` is there.
stop_and_go() {
	local pid

	while [[ ! -e enough ]]; do
		pid=$(pick "$@")
		kill -STOP "$pid"
		pause $((RANDOM % 40))
		kill -CONT "$pid"
		pause $((RANDOM % 20))
	done
}

# Stopped and continued at random, both of them; nothing is lost and nothing counts twice.
test_stopped_at_random() {
	local tier stopper

	for tier in $(tiers); do
		rm -f enough
		target threads 20000
		heapbpf_start -p "$target_pid" -r 1 --tier "$tier" -o p.pb.gz
		stop_and_go "$target_pid" "$heapbpf_pid" &
		stopper=$!
		target_step
		: >enough
		wait "$stopper"
		heapbpf_stop
		whole
		exact
		target_end
	done
}

# The same while it begins, looks at the target and ends. The kernel does not load programs when it is
# interrupted again and again, which is then the one line.
test_stopped_all_along() {
	local turn stopper

	target rounds
	for turn in 1 2 3 4 5; do
		rm -f enough
		env --default-signal=INT "$HEAPBPF" -p "$target_pid" -r 1 -d 300ms -o p.pb.gz \
			>out 2>err </dev/null &
		heapbpf_pid=$!
		stop_and_go "$target_pid" "$heapbpf_pid" 2>/dev/null &
		stopper=$!
		heapbpf_wait
		: >enough
		wait "$stopper" || true
		verdict >wrong
		[[ ! -s wrong ]] || fail "turn $turn: $(<wrong): $(<err)"
		rm -f p.pb.gz
	done
	kill -CONT "$target_pid"
	target_step
}

# A thousand children that live for a moment are no business of ours.
test_thousand_children() {
	target litter 1000
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

# --- limits ------------------------------------------------------------------------------------

# limited LIMIT VALUE...: an attempt with each value of the limit (as prlimit(1) names it), judged;
# 127 is the dynamic loader's own line.
limited() {
	local limit=$1 value

	shift
	whole_attempt env
	for value; do
		attempt prlimit "--$limit=$value:$value"
		if ((heapbpf_status == 127)); then
			equal "$(lines err)" 1 "lines of the loader"
			continue
		fi
		judge "$limit $value"
	done
}

# Few descriptors.
test_descriptors_run_out() {
	target rounds
	: >faults
	limited nofile {3..64}
	no_faults
}

# Little address space, little data.
test_memory_runs_out() {
	local value values=()

	target rounds
	: >faults
	for ((value = 4; value <= 400; value += value / 4)); do
		values+=($((value << 20)))
	done
	limited as "${values[@]}"
	limited data "${values[@]}"
	no_faults
}

# make_group BYTES: a memory cgroup of this test with that limit, in `group`; skips where there can
# be none.
make_group() {
	local root

	if [[ -w /sys/fs/cgroup/memory/cgroup.procs ]]; then
		root=/sys/fs/cgroup/memory
	elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
		root=/sys/fs/cgroup
	else
		skip "no memory cgroup can be made"
	fi
	group=$root/heapbpf-test.$$
	mkdir -p "$group"
	if [[ -e $group/memory.max ]]; then
		echo "$1" >"$group/memory.max"
		echo 0 >"$group/memory.swap.max" || true
	else
		echo "$1" >"$group/memory.limit_in_bytes"
	fi
}

# In a cgroup with too little memory the kernel kills heapbpf, or it does its work; the target is
# well in any case.
test_memory_group() {
	local mib

	target_apart rounds
	: >faults
	orphans_note
	whole_attempt env
	for mib in 4 6 8 10 12 14 16 20 24 32 48 64 96; do
		make_group $((mib << 20))
		attempt bash -c "echo \$\$ >$group/cgroup.procs && exec \"\$@\"" -
		((heapbpf_status == 137)) || judge "memory group of $mib MiB"
		rm -f .heapbpf.*
		eventually text_intact "$target_pid"
	done
	no_faults
	no_orphans
	target_step
}

# --- calls that fail ---------------------------------------------------------------------------

# attempt COMMAND...: a recording of one round of the target `rounds`, by heapbpf under COMMAND.
attempt() {
	rm -f p.pb.gz truth
	[[ -p ready ]] || mkfifo ready
	timeout --foreground -s KILL "$PATIENCE" env --default-signal=INT,QUIT "$@" "$HEAPBPF" \
		-p "$target_pid" -r 1 --ready-fd 9 -o p.pb.gz 9>ready >out 2>err </dev/null &
	heapbpf_pid=$!
	if [[ $(head -c 1 ready | wc -c) == 1 ]]; then
		target_step
		# It may have ended by itself.
		kill -INT "$heapbpf_pid" 2>/dev/null || true
	fi
	{ heapbpf_wait; } 2>shell
}

# Lines that say why there is no profile, which is more than that it lacks something.
complaints() {
	grep '^heapbpf: ' err | grep -vcE 'cannot measure the cost|addresses only$' || true
}

# What is wrong with `p.pb.gz`: it is not valid, or not what `truth` says, if there was a round.
mistakes() {
	if [[ ! -e p.pb.gz ]]; then
		echo "status $heapbpf_status, and no profile"
	else
		reader valid p.pb.gz 2>&1 || true
		[[ $1 != whole || ! -e truth ]] || reader compare --only truth p.pb.gz 2>&1 || true
		[[ $1 != whole || ! -e names ]] || names_of_all | diff names - || true
	fi
}

# Function, file and line of every frame of `p.pb.gz`.
names_of_all() {
	reader stacks p.pb.gz
	reader lines p.pb.gz | sort
}

# What is wrong with the outcome of the last attempt, if anything: it is a whole and true profile, or
# one that says what it lacks, or one line that says why there is none.
verdict() {
	local left

	left=$(find . -name '.heapbpf.*')
	[[ -z $left ]] || echo "left behind: $left"
	case $heapbpf_status in
	0) mistakes whole ;;
	1)
		mistakes partial
		grep -q '^heapbpf: ' err || reader comments p.pb.gz | grep '^lost: ' >/dev/null ||
			echo "status 1 without a word"
		;;
	2 | 64)
		[[ ! -e p.pb.gz ]] || echo "status $heapbpf_status, but a profile"
		(($(complaints) == 1)) || echo "status $heapbpf_status with $(complaints) lines"
		;;
	*) echo "status $heapbpf_status" ;;
	esac
}

# What a failure must speak of, if it is one thing only.
reason=

# What the last attempt keeps to itself, or says in spite of the target being alive.
unsaid() {
	local note

	case $heapbpf_status in
	0)
		! reader comments p.pb.gz | grep 'heap profile of unknown' || echo "it has no name"
		for note in 'RSS = ' 'Heap = ' 'Anonymous = '; do
			reader comments p.pb.gz | grep "$note" >/dev/null || grep -q '^heapbpf: ' err ||
				echo "no '$note' in the comments, without a word"
		done
		[[ $(lines out) == $(lines out.whole) ]] || grep -q '(no memory' out ||
			grep -q '^heapbpf: cannot read debug information' err ||
			echo "lines are missing in the table, without a word"
		;;
	2)
		grep '^heapbpf: ' err | grep -q "$reason" || echo "it says nothing of $reason"
		! grep -iE 'no (such )?process|ended|kernel kills' err || echo "that is not true"
		;;
	esac
}

# whole_attempt COMMAND...: an attempt that nothing happens to.
whole_attempt() {
	attempt "$@"
	whole
	cp out out.whole
}

# judge LABEL: notes the outcome of the last attempt in `outcomes`, and in `faults` what is wrong.
judge() {
	local wrong

	wrong=$(
		verdict
		unsaid
	)
	echo "$1: status $heapbpf_status: $(sed -n 's/^heapbpf: //p' err | tr '\n' ' ')" >>outcomes
	[[ -z $wrong ]] || printf '%s: %s\n' "$1" "$wrong" "$1: stderr" "$(<err)" >>faults
}

# Fails with what judge() noted.
no_faults() {
	if [[ -n ${HB_OUTCOMES:-} ]]; then
		cp outcomes "$HB_OUTCOMES.$test_name"
	fi
	[[ ! -s faults ]] || fail "$(<faults)"
}

# spread TOTAL: the numbers from 1 to TOTAL, or $HB_FAULTS of them.
spread() {
	local wanted=${HB_FAULTS:-100}

	[[ $wanted != all ]] || wanted=$1
	awk -v total="$1" -v wanted="$((wanted < $1 ? wanted : $1))" 'BEGIN {
		for (i = 0; i < wanted; i++)
			print 1 + (wanted > 1 ? int(i * (total - 1) / (wanted - 1)) : 0)
	}'
}

# The first allocation on each path of calls fails: ours, or one of a library.
allocations_fail() {
	local total n

	: >faults
	reason=memory
	whole_attempt env "LD_PRELOAD=$TARGETS/fault_malloc" FAULT_COUNT=count
	total=$(<count)
	for n in $(spread "$total"); do
		attempt env "LD_PRELOAD=$TARGETS/fault_malloc" "FAULT_NTH=$n"
		judge "allocation $n of $total"
	done
	no_faults
	target_step
}

test_allocation_fails() {
	target rounds
	allocations_fail
}

# System calls and how they may fail. Not: calls that only clean up, and those of which a failure is
# an answer (access, lseek).
syscall_faults=(
	"bpf EPERM ENOMEM EINVAL E2BIG EBUSY EAGAIN"
	"clone EAGAIN"
	"clone3 EAGAIN"
	"epoll_create1 EMFILE"
	"epoll_ctl ENOMEM"
	"fsync EIO ENOSPC"
	"getrandom EINTR"
	"ioctl EINVAL"
	"mmap ENOMEM"
	"newfstatat EACCES"
	"openat EMFILE ENOMEM EACCES EINTR"
	"openat2 EMFILE EAGAIN ENOSYS"
	"perf_event_open EACCES EMFILE"
	"pidfd_open EMFILE ENOMEM"
	"pipe2 EMFILE"
	"poll EINTR ENOMEM"
	"pread64 EINTR EIO SHORT"
	"read EINTR EIO SHORT"
	"rename ENOSPC EACCES"
	"signalfd4 EMFILE"
	"timerfd_create EMFILE"
	"timerfd_settime EINVAL"
	"wait4 EINTR"
	"write EINTR ENOSPC SHORT"
)

# list_syscall_faults [CALL...]: each call (or these) with each of its failures and its numbers (without
# `all` some), one a line.
list_syscall_faults() {
	local row call errors error count n some=5

	for row in "${syscall_faults[@]}"; do
		read -r call errors <<<"$row"
		(($# == 0)) || [[ " $* " == *" $call "* ]] || continue
		count=$(sed -n "s/^$call //p" count)
		[[ ${HB_FAULTS:-} != all ]] || some=$count
		for error in $errors; do
			for n in $(HB_FAULTS=$some spread "$count"); do
				echo "$call $n $error"
			done
		done
	done
}

# system_calls_fail [CALL...]: what heapbpf asks of the kernel (or these calls) is refused once.
system_calls_fail() {
	local i faults call n error

	: >faults
	whole_attempt "$TARGETS/fault_syscall" count count
	mapfile -t faults < <(list_syscall_faults "$@")
	for i in $(spread "${#faults[@]}"); do
		read -r call n error <<<"${faults[i - 1]}"
		attempt "$TARGETS/fault_syscall" "$call" "$n" "$error"
		judge "$call $n $error"
	done
	no_faults
	target_step
}

test_system_call_fails() {
	target rounds
	system_calls_fail
}

# --- names that copies read ----------------------------------------------------------------------

# A program with 43 MB of debug information, and its profile when nothing fails: that all addresses are
# named as one process names them is in the unit tests.
large_program() {
	local unit

	need cc
	awk 'BEGIN { for (i = 0; i < 60000; i++) printf \
		"struct type_%d { int a[%d]; struct type_%d *b; char *c; long d; };\n", i, i + 1, i }' >types.h
	cat >unit.c <<-'END'
		#include "types.h"
		#include <stdlib.h>
		static inline __attribute__((always_inline)) void *inner(size_t bytes)
		{
			void *p = malloc(bytes);
			__asm__ volatile("" : : "r"(p) : "memory");
			return p;
		}
		__attribute__((noinline)) void *take_0(size_t bytes)
		{
			void *p = inner(bytes);
			__asm__ volatile("" : : "r"(p) : "memory");
			return p;
		}
	END
	cat >main.c <<-'END'
		#include "truth.h"
		typedef void *take(size_t bytes);
		take take_0, take_1, take_2, take_3, take_4, take_5, take_6, take_7;
		static take *const takes[] = {take_0, take_1, take_2, take_3, take_4, take_5, take_6, take_7};
		int main(void)
		{
			static void *kept[8];

			await("READY");
			for (;;) {
				for (int i = 0; i < 8; i++) {
					free(kept[i]);
					kept[i] = takes[i](100 + i);
				}
				for (int i = 0; i < 8; i++)
					say("SITE take_%d 1 %d 1 %d\n", i, 100 + i, 100 + i);
				await("DONE");
			}
		}
	END
	cc -S -g -O2 -fno-builtin -fno-eliminate-unused-debug-types unit.c
	for unit in 0 1 2 3 4 5 6 7; do
		sed "s/take_0/take_$unit/g" unit.s >"unit.$unit.s"
	done
	cc -g -O2 -fno-builtin "-I$TESTS/targets" -o large main.c unit.?.s
	rm unit.?.s
	target_exec ./large
	attempt env
	whole
	names_of_all >names
	matches "$(<names)" 'inner;take_5;main;' "names"
	matches "$(<names)" 'inner [^ ]*unit.c 5 3' "names"
	matches "$(<names)" 'take_5 [^ ]*unit.c 11 9' "names"
}

# Whether they come from copies or, since those fail, from the process that wants them: the same.
test_allocation_of_copies_fails() {
	large_program
	HB_FAULTS=${HB_FAULTS:-40} allocations_fail
}

test_system_call_of_copies_fails() {
	large_program
	HB_FAULTS=all system_calls_fail clone pipe2
	(($(sed -n 's/^pipe2 //p' count) >= 2)) || fail "no copies were made"
	system_calls_fail poll read wait4
}

e2e_main "$@"
