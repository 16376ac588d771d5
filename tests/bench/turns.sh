# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What heapbpf costs a program that goes on working while it is watched by turns, for bench-budget.sh;
# sourced after work.sh, whose loads and modes it takes.
#
# Two runs of the same program may differ by more than what is to be measured (where their memory lies),
# and a machine that is shared by more than that from one second to the next. So a program is compared
# with itself, and where there is a processor for it with a twin at the same moment: first one of the
# two is watched, then the other one, and what counts is the one's work in parts of the other's, the
# first time by the second. What the two always differ in cancels out, and what the machine does to
# both. A program without a twin is compared with itself right before and after.

# shellcheck disable=SC2154 # work.sh has the rest of the variables
# Whoever works is ended by us.
# shellcheck disable=SC2034 # for work.sh
lasting=1000000

# Puts what is there of a program into twin_*, or what was put there back.
swap_twins() {
	local pid=$target_pid in=$target_in out=$target_out file=$counter

	target_pid=$twin_pid target_in=$twin_in target_out=$twin_out counter=$twin_counter
	twin_pid=$pid twin_in=$in twin_out=$out twin_counter=$file
}

# Starts the program and lets it work.
turns_start() {
	# shellcheck disable=SC2034 # for work.sh
	pgbench_options=(-l "--log-prefix=$PWD/db/log")
	load_pid=0
	"start_$load"
	case $load in
	redis) redis_load & load_pid=$! ;;
	pipelined) redis_load -P 16 & load_pid=$! ;;
	postgres) ;;
	*) target_go ;;
	esac
}

turns_begin() {
	twin_pid=0 twin_in=0 twin_out=0 twin_counter=
	turns_start
	if has_twin; then
		swap_twins
		turns_start
	fi
}

turns_end() {
	bench_stop
	if has_twin; then
		swap_twins
		bench_stop
	fi
	((load_pid == 0)) || wait "$load_pid" 2>/dev/null || true
	rm -f db/log.*
}

# What the program of this counter has done until now.
turns_done() {
	case $load in
	redis | pipelined) redis_done ;;
	postgres) cat db/log.* | wc -l ;;
	*) od -An -t d8 "$1" ;;
	esac
}

# turns_look: prints the time, and what was done: by the program, and by its twin.
turns_look() {
	local both=("$EPOCHREALTIME" "$(turns_done "$counter")")

	has_twin && both+=("$(turns_done "$twin_counter")")
	echo "${both[@]}"
}

# phase FILE: for `seconds`, as things are; appends to FILE the work per second, and the twin's.
phase() {
	local before

	before=$(turns_look)
	read -rt "$seconds" <> <(:) || true
	kill -0 "$target_pid"
	echo "$before $(turns_look)" | awk '{ n = NF / 2; time = $(n + 1) - $1
		print ($(n + 2) - $2) / time, (n > 2 ? ($(n + 3) - $3) / time : "") }' >>"$1"
}

# The same with heapbpf.
watched_phase() {
	watch_heapbpf
	phase "$1"
	heapbpf_wait
	((heapbpf_status < 2))
	bench_spent
}

# Once `mode`: appends what was left of the speed to LOAD.MODE.done, and what was done in a second by the
# one that nobody watched to LOAD.nothing.done.
turns_measure() {
	rm -f phases
	if has_twin; then
		watched_phase phases
		swap_twins
		watched_phase phases
		awk '{ ratio[NR] = $1 / $2; print $2 >"alone" } END { print sqrt(ratio[1] * ratio[2]) }' phases
		cat alone >>"$load.nothing.done"
	else
		phase phases
		watched_phase phases
		phase phases
		awk '{ speed[NR] = $1 } END { print speed[2] / (speed[1] + speed[3]) * 2 }' phases
		awk 'NR != 2' phases >>"$load.nothing.done"
	fi >>"$load.$mode.done"
}

# turns_rounds ROUNDS: every load in every mode but `nothing`, in turns.
turns_rounds() {
	local round

	for load in "${loads[@]}"; do
		turns_begin
		for ((round = 1; round <= $1; round++)); do
			for mode in "${modes[@]}"; do
				[[ $mode == nothing ]] && continue
				bench_progress "$load: round $round of $1: $mode"
				turns_measure
			done
		done
		turns_end
	done
	bench_progress ""
}

# The median of LOAD.MODE.done and its standard error, from the median deviation.
cell_left() {
	local median

	median=$(script_median "$1.$2.done")
	awk -v median="$median" '{ d = $1 - median; print d < 0 ? -d : d }' "$1.$2.done" >deviations
	awk -v median="$median" -v deviation="$(script_median deviations)" -v cnt="$(lines deviations)" \
		'BEGIN { printf "%.3g ± %.2g", median, 1.4826 * 1.2533 * deviation / sqrt(cnt) }'
}

# The same, of LOAD.nothing.done.
cell_alone() {
	printf '%.0f' "$(script_median "$1.nothing.done")"
}

# Processor time and memory of heapbpf.
cell_own() {
	awk -v cpu="$(script_median "$1.$2.cpu")" -v kb="$(script_median "$1.$2.tool")" \
		'BEGIN { printf "%.2f s, %.0f MB", cpu, kb / 1024 }'
}
