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
	redis) "${redis_load[@]}" >messages 2>&1 & load_pid=$! ;;
	pipelined) "${redis_load[@]}" -P 16 >messages 2>&1 & load_pid=$! ;;
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
	# Without its server it would try again for ever.
	((load_pid == 0)) || kill -KILL "$load_pid" 2>/dev/null || true
	((load_pid == 0)) || wait "$load_pid" 2>/dev/null || true
	rm -f db/log.*
}

# What the program of this counter has done until now.
turns_done() {
	case $load in
	redis | pipelined) redis_done ;;
	# Its log has a number for each transaction; the last line may be half of one.
	postgres) tail -q -n 2 db/log.* | head -n 1 | cut -d ' ' -f 2 ;;
	*) od -An -t d8 "$1" ;;
	esac
}

# turns_look: prints the time, and what was done: by the program, and by its twin.
turns_look() {
	local program twin="" at=$EPOCHREALTIME

	program=$(turns_done "$counter")
	if has_twin; then
		twin=$(turns_done "$twin_counter")
	fi
	echo "$at" "$program" "$twin"
}

# phase FILE: for `seconds`, as things are; appends to FILE the work per second, and the twin's.
phase() {
	local before after

	before=$(turns_look)
	read -rt "$seconds" <> <(:) || true
	after=$(turns_look)
	echo "$before $after" | awk '{ n = NF / 2; time = $(n + 1) - $1
		for (i = 2; i <= n; i++) {
			if ($(n + i) <= $i)
				exit 1
			printf "%s%.3f", (i > 2 ? " " : ""), ($(n + i) - $i) / time
		}
		print "" }' >>"$1"
}

# The same with heapbpf.
watched_phase() {
	watch_heapbpf && phase "$1" && heapbpf_wait && ((heapbpf_status < 2)) && bench_spent
}

# Once `mode`: appends what was left of the speed to LOAD.MODE.done, and what was done in a second by the
# one that nobody watched to LOAD.nothing.done. False: it could not be measured.
turns_measure() {
	: >phases
	if has_twin; then
		watched_phase phases && swap_twins && watched_phase phases || return
		awk '{ ratio[NR] = $1 / $2 } END { print sqrt(ratio[1] * ratio[2]) }' phases >>"$load.$mode.done"
		cut -d ' ' -f 2 phases >>"$load.nothing.done"
	else
		phase phases && watched_phase phases && phase phases || return
		awk '{ speed[NR] = $1 } END { print speed[2] / (speed[1] + speed[3]) * 2 }' phases \
			>>"$load.$mode.done"
		sed 2d phases >>"$load.nothing.done"
	fi
}

# Why it could not be measured; the program starts anew.
turns_failed() {
	{ kill -0 "$target_pid" 2>/dev/null && echo "tool failed"; } >>"$load.$mode.failed" ||
		echo "program died" >>"$load.$mode.failed"
	cat err >&2
	kill -KILL "$heapbpf_pid" 2>/dev/null || true
	wait "$heapbpf_pid" 2>/dev/null || true
	turns_end
	turns_begin
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
				turns_measure || turns_failed
			done
		done
		turns_end
	done
	bench_progress ""
}

# The mean of LOAD.MODE.done and its standard error.
cell_left() {
	awk '{ sum += $1; squares += $1 * $1 }
		END {
			mean = sum / NR
			rest = squares / NR - mean * mean
			printf "%.3g", mean
			if (NR > 1)
				printf " ± %.2g", sqrt((rest > 0 ? rest : 0) / (NR - 1))
		}' "$1.$2.done"
}

# What one that is not watched does in a second, while its twin is or is not.
cell_alone() {
	printf '%.0f' "$(script_median "$1.nothing.done")"
}

# Processor time and memory of heapbpf.
cell_own() {
	awk -v cpu="$(script_median "$1.$2.cpu")" -v kb="$(script_median "$1.$2.tool")" \
		'BEGIN { printf "%.2f s, %.0f MB", cpu, kb / 1024 }'
}
