#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Beginnings and ends: of heapbpf, of its target, of processes that come of the target.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Children are not followed, and what they do to their copies of blocks is theirs.
tree() {
	target family_tree "$1"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

test_child_before() {
	tree before
}

test_child_forked() {
	tree fork
}

test_child_vforked() {
	tree vfork
}

# A new image in the same process: what the old one had in use has ended, its allocations count.
test_exec() {
	target family_tree exec
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_go
	target_await EXECED >truth.first
	target_go
	target_await DONE >truth.second
	heapbpf_stop
	whole
	cat truth.first truth.second >truth
	exact
	target_end
}

# probed_again FILE: as the log has it, after the first time.
probed_again() {
	(($(grep -c "$1 is probed" err) > 1))
}

# The kernel's probes go with the thread that was the main one: new ones are put in, and what happened
# in between is said to be missing.
check_exec_by_thread() {
	need_tier "$1"
	target family_tree thread
	heapbpf_start -v -p "$target_pid" -r 1 -o p.pb.gz --tier "$1"
	target_go
	target_await EXECED >truth
	eventually probed_again libc.so.6
	target_go
	target_await DONE >>truth
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	says 'executed a program from a thread' cat err
	exact
	target_end
}

test_exec_by_thread_session() {
	check_exec_by_thread session
}

test_exec_by_thread_multi() {
	check_exec_by_thread multi
}

test_exec_by_thread_perf() {
	check_exec_by_thread perf
}

# Recording ends by itself when the last target does, and the profile is complete.
test_target_ends() {
	target family
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	target_end
	heapbpf_wait
	whole
	exact_if --within alloc_objects
	exact_if --within alloc_space
}

test_target_killed() {
	target family
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	kill -KILL "$target_pid"
	heapbpf_wait
	whole
	exact_if --within alloc_objects
	exact_if --within inuse_space
}

# One of two targets ends: its profile is there, the other goes on.
test_one_of_two_ends() {
	local first

	target freeall
	first=$target_pid
	target_step
	mv truth truth.first
	target freeall
	mkdir prof
	heapbpf_start -p "$first,$target_pid" -r 1 -o prof/
	kill -KILL "$first"
	wait "$first" || true
	target_step
	heapbpf_stop
	whole
	mv "prof/heapbpf.freeall.$target_pid.pb.gz" p.pb.gz
	exact
	[[ -s prof/heapbpf.freeall.$first.pb.gz ]]
}

# stop_by SIGNAL: a complete profile in the middle of the work, and an unharmed target.
stop_by() {
	steady
	heapbpf_start -p "$target_pid" -o p.pb.gz
	target_await BEAT >/dev/null
	heapbpf_end "$1"
	whole
	reader valid p.pb.gz
	steady_end
}

test_stopped_by_int() {
	stop_by INT
}

test_stopped_by_term() {
	stop_by TERM
}

# A second Ctrl-C while the file is being written does not spoil it.
test_interrupted_twice() {
	target family
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	kill -INT "$heapbpf_pid"
	kill -INT "$heapbpf_pid" 2>/dev/null || true
	heapbpf_wait
	if ((heapbpf_status == 0)); then
		exact
	else
		equal "$(find . -name '*.pb.gz*')" "" "files left by an abandoned recording"
	fi
}

test_duration() {
	local began nanos

	target family
	began=$(date +%s%N)
	heapbpf_start -p "$target_pid" -r 1 -d 500ms -o p.pb.gz
	target_step
	heapbpf_wait
	whole
	nanos=$(reader facts p.pb.gz | sed -n 's/^duration_nanos //p')
	((nanos >= 500000000 && nanos < $(date +%s%N) - began)) || fail "duration of $nanos ns"
	# Whoever has other work may be late, but not as much as that.
	((nanos < 10000000000)) || fail "duration of $nanos ns instead of 500 ms"
	target_end
}

text_probed() {
	! text_intact "$1"
}

# heapbpf dies without a word: the target is whole again and never knew.
test_killed() {
	steady
	text_intact "$target_pid"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	text_probed "$target_pid"
	target_await BEAT >/dev/null
	kill -KILL "$heapbpf_pid"
	wait "$heapbpf_pid" || true
	eventually text_intact "$target_pid"
	steady_end
	equal "$(find . -name '*.pb.gz*')" "" "files left behind"
}

# After an ordinary end, too, no breakpoint stays.
test_clean_afterwards() {
	steady
	heapbpf_start -p "$target_pid" -o p.pb.gz
	heapbpf_stop
	whole
	eventually text_intact "$target_pid"
	steady_end
}

# A stopped heapbpf does not hold up its target.
test_heapbpf_stopped() {
	steady
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	kill -STOP "$heapbpf_pid"
	steady_end
	kill -CONT "$heapbpf_pid"
	heapbpf_wait
	whole
	reader valid p.pb.gz
}

# A stopped target does not hold up heapbpf, neither at its start nor at its end.
test_target_stopped() {
	target family
	kill -STOP "$target_pid"
	heapbpf_start -p "$target_pid" -r 1 -o early.pb.gz
	heapbpf_stop
	whole
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	kill -CONT "$target_pid"
	target_step
	kill -STOP "$target_pid"
	heapbpf_stop
	whole
	exact
	kill -CONT "$target_pid"
	target_end
}

# Mappings that change while they are read.
test_restless_target() {
	local i

	target restless
	target_go
	for ((i = 0; i < 10; i++)); do
		heapbpf_run -p "$target_pid" -d 50ms -q -o p.pb.gz
		whole
		reader valid p.pb.gz
	done
	target_end
}

# Attached and gone ten times under load, the target is well and every profile is whole.
test_comes_and_goes() {
	local i

	steady
	for ((i = 0; i < 10; i++)); do
		heapbpf_run -p "$target_pid" -d 50ms -q -o "p.$i.pb.gz"
		whole
		reader valid "p.$i.pb.gz"
	done
	steady_end
}

# 300 images within a second, each noticed while the next is there already; the recording ends, in
# time and whole, and only the last image's block is in use.
test_exec_storm() {
	target exec_storm 300
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	((heapbpf_status <= 1)) || fail "heapbpf ended with $heapbpf_status: $(<err)"
	equal "$(reader total p.pb.gz alloc_objects)" 301 "allocations of all images"
	equal "$(reader total p.pb.gz inuse_objects)" 1 "objects of the last image"
	target_end
}

# Two threads that always hold 500 blocks each, replaced one by one at full speed: whatever the order
# in which probes are put in and taken out, nothing else is in use at the end. Each thread may be
# between its free and its malloc.
test_constant_live_set() {
	local tier in_use

	steady
	for tier in session multi perf; do
		heapbpf_run -p "$target_pid" -r 1 -d 1s --tier "$tier" -q -o p.pb.gz
		whole
		in_use=$(reader total p.pb.gz inuse_objects)
		((in_use >= 998 && in_use <= 1000)) || fail "$tier: $in_use in use, not 1000"
	done
	steady_end
}

e2e_main "$@"
