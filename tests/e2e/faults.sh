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
#   HB_SEED=N       the seed of what is random; it is shown when a test fails
# time limit: 600 s
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

RANDOM=${HB_SEED:=$RANDOM}

teardown() {
	((status == 0 || status == 77)) || echo "HB_SEED=$HB_SEED" >&2
}

# --- what must be left alone -------------------------------------------------------------------

# Objects of heapbpf in the kernel that nobody holds, one a line.
orphans() {
	/usr/bin/python3 "$TESTS/bpf_orphans.py"
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
	local kills=0 status ways

	mapfile -t ways < <(tiers)
	orphans_note
	target_apart steady
	target_go
	while ((kills < ${HB_KILLS:-30})); do
		"$HEAPBPF" -q -p "$target_pid" -r "$(pick 1 512K)" --tier "$(pick "${ways[@]}")" \
			-d 200ms -o p.pb.gz >out 2>err </dev/null &
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

# killed_at attach|detach: three times with each tier, in the middle. `hog` makes it last, since each
# breakpoint waits for all processes that map the library.
killed_at() {
	local edge=$1 tier places turn

	target_apart hog
	target_apart family
	for tier in $(tiers); do
		heapbpf_start -p "$target_pid" --tier "$tier" -o p.pb.gz
		places=$(text_changes "$target_pid")
		heapbpf_stop
		eventually text_intact "$target_pid"
		for turn in 1 2 3; do
			env --default-signal=INT "$HEAPBPF" -q -p "$target_pid" --tier "$tier" \
				-o p.pb.gz >out 2>err </dev/null &
			heapbpf_pid=$!
			# A list of addresses.
			# shellcheck disable=SC2086
			/usr/bin/python3 "$TESTS/kill_at_edge.py" "$edge" "$target_pid" "$heapbpf_pid" \
				$places >probed
			{ heapbpf_wait; } 2>shell
			equal "$heapbpf_status" 137 "status in turn $turn with $tier, $(<probed) probed"
			eventually text_intact "$target_pid"
		done
	done
	target_step
	target_end
}

test_killed_while_attaching() {
	killed_at attach
}

test_killed_while_detaching() {
	killed_at detach
}

e2e_main "$@"
