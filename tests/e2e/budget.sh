#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# --max-overhead: what is recorded in windows says so, and is still true.
# time limit: 600 s
# alone: what others do moves the work of a target in and out of the windows
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# windows FILE: seconds recorded, seconds in all, windows; nothing if all was.
windows() {
	reader comments "$1" | sed -n 's/^recorded: \([0-9.]*\) of \([0-9.]*\) s in \([0-9]*\) window.*/\1 \2 \3/p'
}

# paced_calls SECONDS: what the target paced, whose words are the input, did in that time of all that it
# counted.
paced_calls() {
	awk -v all="$1" '$1 == "TICKS" { n = $2 } $1 == "SECONDS" { s = $2 }
		END { printf "%.0f", n * 100 / s * all }'
}

# Slices of a load that comes by the clock, every allocation in them counted: the total is that of all
# the time, though most of it was not seen.
check_slices() {
	local tier=$1 seen all windows calls truth

	need_tier "$tier"
	target paced
	before_others "$target_pid"
	target_go
	heapbpf_start --max-overhead 10 -r 1 -t allocs --tier "$tier" -p "$target_pid" -d 8s -o p.pb.gz
	before_others "$heapbpf_pid"
	heapbpf_wait
	whole
	reader valid p.pb.gz
	target_go
	target_await DONE >truth
	read -r seen all windows < <(windows p.pb.gz) || fail "it was recorded as a whole"
	# One a second, or fewer where coming and going costs more than being there, as on a busy machine.
	((windows >= 2)) || fail "$windows windows in 8 seconds"
	awk -v seen="$seen" -v all="$all" 'BEGIN { exit !(seen < all * 0.4) }' ||
		fail "recorded $seen of $all s"
	calls=$(reader total p.pb.gz alloc_objects)
	truth=$(paced_calls "$all" <truth)
	# How exact that is, the unit tests show; here other work on the machine may still disturb.
	# Without the scale it would be a fifth.
	awk -v a="$calls" -v b="$truth" 'BEGIN { exit !(a > b * 0.5 && a < b * 1.6) }' ||
		fail "$calls allocations by the profile, $truth by the target"
	target_go
	wait "$target_pid"
}

test_slices_session() {
	check_slices session
}

test_slices_multi() {
	check_slices multi
}

test_slices_perf() {
	check_slices perf
}

# One that waits is hardly slowed in windows, one that allocates all the time gets on at a fraction of
# its speed. Each is scaled as it was slowed itself: with what both lose together the first one would
# come out several times too large.
test_each_by_its_own() {
	local paced all calls truth first_in first_out

	target paced
	paced=$target_pid first_in=$target_in first_out=$target_out
	before_others "$paced"
	target_go
	target bench_work tight 60
	target_go
	mkdir prof
	heapbpf_start --max-overhead 10 -t allocs -p "$paced,$target_pid" -d 6s -o prof/
	heapbpf_wait
	whole
	target_in=$first_in target_out=$first_out
	target_go
	target_await DONE >truth
	read -r _ all _ < <(windows "prof/heapbpf.paced.$paced.pb.gz") || fail "it was recorded as a whole"
	calls=$(reader total "prof/heapbpf.paced.$paced.pb.gz" alloc_objects)
	truth=$(paced_calls "$all" <truth)
	awk -v a="$calls" -v b="$truth" 'BEGIN { exit !(a > b * 0.6 && a < b * 1.8) }' ||
		fail "$calls allocations by the profile, $truth by the target"
	says '^allocated: scaled from .* to the whole time.*; probes slow the processes a lot' \
		reader comments prof/heapbpf.bench_work.*.pb.gz
}

# What a sample takes is paid from the budget, too: with one of each call that is more than the probe.
test_samples_cost() {
	local seen_all seen_few all

	target paced
	target_go
	heapbpf_run --max-overhead 10 -r 1 -t allocs -p "$target_pid" -d 6s -o p.pb.gz
	whole
	read -r seen_all all _ < <(windows p.pb.gz) || fail "it was recorded as a whole"
	heapbpf_run --max-overhead 10 -t allocs -p "$target_pid" -d 6s -o p.pb.gz
	whole
	read -r seen_few _ < <(windows p.pb.gz) || fail "it was recorded as a whole"
	awk -v a="$seen_all" -v b="$seen_few" 'BEGIN { exit !(a < 0.8 * b) }' ||
		fail "$seen_all of $all s with all calls sampled, $seen_few with few"
	target_go
	target_go
}

# A burst's in use is what lives at its end: two threads hold 500 blocks each, replaced at full
# speed; each thread may be between its free and its malloc.
check_bursts() {
	local in_use

	need_tier "$1"
	steady
	heapbpf_run --max-overhead 10 -r 1 --tier "$1" -p "$target_pid" -d 4s -o p.pb.gz
	whole
	reader valid p.pb.gz
	[[ -n $(windows p.pb.gz) ]] || fail "it was recorded as a whole"
	in_use=$(reader total p.pb.gz inuse_objects)
	((in_use > 0 && in_use <= 1000)) || fail "$in_use in use"
	steady_end
}

test_bursts_session() {
	check_bursts session
}

test_bursts_multi() {
	check_bursts multi
}

test_bursts_perf() {
	check_bursts perf
}

# At least so many windows were closed, the look among them.
windows_closed() {
	(($(grep -c '^heapbpf: close ' err) >= $1))
}

# Without an end that is known there is a burst now and then. What lives for moments does not add up: in
# use is what a burst ends with, however many there are. And the limit is kept, by what hits cost.
test_bursts_do_not_add_up() {
	local in_use windows share

	steady
	heapbpf_start -v --max-overhead 30 -r 1 -p "$target_pid" -o p.pb.gz
	eventually windows_closed 3
	heapbpf_stop
	whole
	read -r _ _ windows < <(windows p.pb.gz) || fail "it was recorded as a whole"
	((windows >= 2)) || fail "$windows windows"
	in_use=$(reader total p.pb.gz inuse_objects)
	((in_use > 0 && in_use <= 1000)) || fail "$in_use in use in $windows windows"
	share=$(sed -n "s/^probes: .* \\([0-9.]*\\)% of the processes' time (30% allowed)/\\1/p" out)
	awk -v share="$share" 'BEGIN { exit !(share > 3 && share < 45) }' || fail "probes took $share %"
	steady_end
}

# Who is idle is recorded whole, and exact runs are exact unless asked otherwise.
test_no_window_needed() {
	target freeall
	heapbpf_start -p "$target_pid" -d 300ms -o p.pb.gz
	heapbpf_wait
	whole
	equal "$(windows p.pb.gz)" "" "windows of an idle process"
	target_step
	target_end
	steady
	heapbpf_run -r 1 -p "$target_pid" -d 300ms -o p.pb.gz
	whole
	equal "$(windows p.pb.gz)" "" "windows of an exact run"
	steady_end
}

# The cost of a hit is measured on functions of our own, which is no business of the process's.
check_own_hits() {
	need_tier "$1"
	target freeall
	heapbpf_start -p "$target_pid" -d 300ms -o p.pb.gz --tier "$1"
	heapbpf_wait
	whole
	equal "$(reader comments p.pb.gz | grep 'probe hits\|^.*frees of' || true)" "" \
		"what is said of calls of an idle process"
	equal "$(windows p.pb.gz)" "" "windows of an idle process"
	target_step
	target_end
}

test_own_hits_session() {
	check_own_hits session
}

test_own_hits_multi() {
	check_own_hits multi
}

test_own_hits_perf() {
	check_own_hits perf
}

# The terminal says it, too.
test_summary() {
	steady
	heapbpf_run --max-overhead 5% -p "$target_pid" -d 2s -o p.pb.gz
	whole
	says '^recorded: [0-9.]* of [0-9.]* s in [0-9]+ windows?; all of it would have cost [0-9]+%' cat out
	says '^in use: allocated in a window and alive at its end' cat out
	says '^probes: [1-9][0-9]* hits/s at [0-9.]+ us \(measured here\): [0-9.]+% of one core' cat out
	heapbpf_run --max-overhead 5% -t allocs -p "$target_pid" -d 2s -o p.pb.gz
	whole
	says '^recorded: .* all of it would have cost [0-9]+% of the processes. time \(--max-overhead none\)$' cat out
	says '^allocated: scaled from .* to the whole time' cat out
	says '^allocated: scaled from .* to the whole time' reader comments p.pb.gz
	steady_end
}

# --- in turns -----------------------------------------------------------------------------------

# Processes that are alike, two of four at a time: what they allocated together is estimated as if all
# of it had been seen. Leaves the estimate in `counted`.
check_share() {
	local i pids_of=() ins=() outs=() made

	mkdir prof
	for ((i = 0; i < 4; i++)); do
		target paced
		pids_of[i]=$target_pid ins[i]=$target_in outs[i]=$target_out
	done
	heapbpf_start -p "$(IFS=, && echo "${pids_of[*]}")" --share 2 -t allocs -r 16K -o prof/ "$@"
	before_others "$heapbpf_pid"
	for ((i = 0; i < 4; i++)); do
		before_others "${pids_of[i]}"
		printf g >&"${ins[i]}"
	done
	read -rt 6 <> <(:) || true
	for ((i = 0; i < 4; i++)); do
		target_in=${ins[i]} target_out=${outs[i]}
		target_go
		target_await DONE
	done >ticks
	heapbpf_stop
	whole
	says '^recorded: 2 of the processes at a time' cat out
	made=$(awk '$1 == "TICKS" { ticks += $2 } END { print 100 * ticks }' ticks)
	counted=$(for i in "${pids_of[@]}"; do
		reader total "prof/heapbpf.paced.$i.pb.gz" alloc_objects
	done | awk '{ sum += $1 } END { print sum }')
	# How exact that is, the unit tests show; here other work on the machine disturbs, and few slices
	# of the time are seen. Without their scale it would be a tenth.
	((counted > made * 30 / 100 && counted < made * 200 / 100)) ||
		fail "$counted allocations by the profiles, $made by the targets"
}

test_share() {
	check_share
}

# All of the time of those whose turn it is: half of all, whatever they came to do in it. Without the
# scale it would be a half.
test_share_without_budget() {
	local seen

	check_share --max-overhead none
	seen=$(reader comments "prof/heapbpf.paced.$target_pid.pb.gz" |
		sed -n 's/.*probe hits on emulated instructions = \([0-9]*\),.*/\1/p')
	((counted > seen * 2 * 80 / 100 && counted < seen * 2 * 130 / 100)) ||
		fail "$counted allocations by the profiles, $seen seen of half of the processes"
}

e2e_main "$@"
