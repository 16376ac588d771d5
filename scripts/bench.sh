#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What being watched costs, side by side. In turns, so that a slow minute of the machine hits all:
#   nothing      the program alone
#   heap         heapbpf, all of the time
#   allocs       the same with -t allocs, which probes no returns and no frees
#   heap floor, allocs floor
#                our own empty programs at the places that heapbpf probes for these
#   memleak, bpftrace
#                tests/bench/peers.sh, where they run
# for a tight loop of malloc and free, two threads that churn 100,000 objects, sqlite3 inserts, and
# python objects. Prints a markdown table of medians of the target's processor time, which other work
# on the machine disturbs less than the time on the wall. What the budget makes of it: bench-budget.sh.
#
#   scripts/bench.sh [ROUNDS]     default 5; as root, after make
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

rounds=$(script_rounds "${1:-5}")
script_begin

modes=(nothing heap_floor heap allocs_floor allocs)
# shellcheck source=tests/bench/peers.sh
. "$TESTS/bench/peers.sh"
mapfile -t peers < <(peers_here)
modes+=("${peers[@]}")
loads=(tight churn)
command -v sqlite3 >/dev/null && loads+=(sqlite3)
[[ -x /usr/bin/python3 ]] && loads+=(python)
declare -A unit=([tight]="ns a pair" [churn]="ns a replacement" [sqlite3]=ms [python]=ms)
declare -A title=([tight]="malloc, free" [churn]="2 threads, 100k objects"
	[sqlite3]="sqlite3 inserts" [python]="python objects")

# --- loads: load_NAME starts it and waits until it is ready; run_NAME prints how long it took ----

load_tight() {
	target bench_tight "$1"
}

run_tight() {
	target_go
	target_await DONE | sed -n 's/^NS //p'
}

load_churn() {
	target bench_churn "$1"
}

run_churn() {
	run_tight
}

load_sqlite3() {
	target_spawn stdbuf -oL sqlite3 :memory:
	printf "select 'READY';\n" >&"$target_in"
	target_await READY >/dev/null
}

# since EPOCHREALTIME: milliseconds.
since() {
	awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", (b - a) * 1e3 }'
}

# Milliseconds of processor time of the target (its only thread) until it says DONE.
timed() {
	local start end

	read -r start _ <"/proc/$target_pid/schedstat"
	"$@"
	target_await DONE >/dev/null
	read -r end _ <"/proc/$target_pid/schedstat"
	awk -v a="$start" -v b="$end" 'BEGIN { printf "%.1f\n", (b - a) / 1e6 }'
}

insert_rows() {
	cat >&"$target_in" <<-'END'
		create table t(id integer primary key, name text, body blob);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
		insert into t select i, 'name ' || i, zeroblob(i % 300) from n;
		create index by_name on t(name);
		select 'DONE';
	END
}

run_sqlite3() {
	timed insert_rows
}

load_python() {
	target_exec env PYTHONMALLOC=malloc /usr/bin/python3 -c '
import sys
print("READY", flush=True)
sys.stdin.read(1)
for _ in range(3):
    kept = [{"number": i, "name": str(i)} for i in range(50000)]
print("DONE", flush=True)
sys.stdin.read(1)
'
}

run_python() {
	timed target_go
}

# --- modes: watch_NAME begins, unwatch_NAME ends ---------------------------------------------------

watch_nothing() {
	:
}

unwatch_nothing() {
	:
}

watch_heap() {
	heapbpf_start -q --top 0 -p "$target_pid" -o p.pb.gz --max-overhead none "$@"
}

unwatch_heap() {
	heapbpf_stop
}

watch_allocs() {
	watch_heap -t allocs "$@"
}

unwatch_allocs() {
	heapbpf_stop
}

watch_heap_floor() {
	watch_heap --floor
}

unwatch_heap_floor() {
	heapbpf_stop
}

watch_allocs_floor() {
	watch_allocs --floor
}

unwatch_allocs_floor() {
	heapbpf_stop
}

# --- the bench -------------------------------------------------------------------------------------

# How much work: enough to measure, not so much that the slow ones take minutes.
amount() {
	case $1/$2 in
	tight/nothing) echo 20000000 ;;
	tight/memleak | tight/bpftrace) echo 200000 ;;
	tight/*) echo 1000000 ;;
	churn/memleak | churn/bpftrace) echo 100000 ;;
	*) echo 500000 ;;
	esac
}

measure() {
	local load=$1 mode=$2

	"load_$load" "$(amount "$load" "$mode")"
	"watch_$mode"
	"run_$load" >>"$load.$mode"
	"unwatch_$mode"
	kill -KILL "$target_pid"
	wait "$target_pid" 2>/dev/null || true
	exec {target_in}>&- {target_out}>&-
}

# Beginning, end and memory of a recording with 5,000 stacks; milliseconds and kilobytes.
measure_ends() {
	local start

	target paths
	start=$EPOCHREALTIME
	heapbpf_start -q --top 0 -p "$target_pid" -r 1 -o p.pb.gz
	since "$start" >>begin
	target_go
	target_await DONE >/dev/null
	start=$EPOCHREALTIME
	kill -INT "$heapbpf_pid"
	awk '$1 == "VmHWM:" { print $2 }' "/proc/$heapbpf_pid/status" >>memory
	heapbpf_wait
	since "$start" >>end
	kill -KILL "$target_pid"
	wait "$target_pid" 2>/dev/null || true
	exec {target_in}>&- {target_out}>&-
}

for ((round = 1; round <= rounds; round++)); do
	measure_ends
	for load in "${loads[@]}"; do
		for mode in "${modes[@]}"; do
			[[ -t 2 ]] && printf '\rround %d of %d: %-8s %-12s' "$round" "$rounds" "$load" "$mode" >&2
			measure "$load" "$mode"
		done
	done
done
[[ -t 2 ]] && printf '\r%50s\r' '' >&2

printf 'Linux %s, %s, %s, %s; processor time of
the program, medians of %d; in brackets the speed that is left.\n\n' \
	"$(uname -r)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
	"$(nproc) CPUs" "$(date +%F)" "$rounds"
printf '| '
for load in "${loads[@]}"; do
	printf ' | %s' "${title[$load]}"
done
printf ' |\n|---'
printf '|---%.0s' "${loads[@]}"
printf '|\n'
for mode in "${modes[@]}"; do
	printf '| %s' "${mode/_/ }"
	for load in "${loads[@]}"; do
		awk -v v="$(script_median "$load.$mode")" -v base="$(script_median "$load.nothing")" -v unit="${unit[$load]}" \
			'BEGIN { printf " | %.*f %s (%.2g)", v < 100, v, unit, base / v }'
	done
	printf ' |\n'
done

# What each adds, by what the empty programs at the places of its kind add.
printf '\nAdded to a pair of malloc and free:'
for mode in "${modes[@]:1}"; do
	[[ $mode == *_floor ]] && continue
	floor=heap_floor
	[[ $mode == allocs ]] && floor=allocs_floor
	awk -v v="$(script_median "tight.$mode")" -v base="$(script_median tight.nothing)" \
		-v floor="$(script_median "tight.$floor")" -v mode="$mode" 'BEGIN {
			printf " %s %.0f ns, %.2f of its floor of %.0f ns;", mode, v - base,
				(v - base) / (floor - base), floor - base
		}'
done
printf '\nWith 5,000 stacks: from start to recording %.0f ms, from Ctrl-C to the end %.0f ms, memory %.0f MB.\n' \
	"$(script_median begin)" "$(script_median end)" "$(awk -v kb="$(script_median memory)" 'BEGIN { print kb / 1024 }')"
printf '\n'
"$TESTS/../scripts/bench-unwind.sh" "$rounds"
printf '\n'
"$TESTS/../scripts/bench-gaps.sh" "$rounds"
