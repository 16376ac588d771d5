#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What -a costs by the number of processes that exist and do nothing: until it records, its processor
# time for a recording of some seconds (the kernel's for coming and going included), and its memory.
# Beside them one program allocates, so that there is something to record; once all of the time, once in
# the windows of the default budget.
#
#   scripts/bench-all.sh [SECONDS [ROUNDS]]   default 5 and 3; as root, after make
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-5}")
rounds=$(script_rounds "${2:-3}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
bench_begin

counts=(10 100 1000)
modes=(none 10)
idle=()

# Until so many processes do nothing.
fill_up() {
	while ((${#idle[@]} < $1)); do
		sleep infinity &
		idle+=($!)
		pids+=($!)
	done
}

measure_one() {
	local name=$1 start=$EPOCHREALTIME

	heapbpf_start -q -a --max-overhead "$2" -t allocs -o prof/
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print 1000 * (b - a) }' >>"$name.begin"
	read -rt "$seconds" <> <(:) || true
	start=$EPOCHREALTIME
	heapbpf_stop
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print 1000 * (b - a) }' >>"$name.end"
	cut -d ' ' -f 1 spent >>"$name.cpu"
	awk '{ print $2 / 1024 }' spent >>"$name.mb"
	rm -rf prof
	mkdir prof
}

mkdir prof
target bench_work tight 100000
target_go
for count in "${counts[@]}"; do
	fill_up "$count"
	for ((round = 0; round < rounds; round++)); do
		for mode in "${modes[@]}"; do
			measure_one "$count.$mode" "$mode"
		done
	done
done

bench_header "$rounds"
printf '\n| idle processes | budget | to the recording | processor time in %d s | memory | to the end |\n' "$seconds"
printf '|---|---|---|---|---|---|\n'
for count in "${counts[@]}"; do
	for mode in "${modes[@]}"; do
		printf '| %d | %s | %.0f ms | %.2f s | %.0f MB | %.0f ms |\n' "$count" "$mode" \
			"$(script_median "$count.$mode.begin")" "$(script_median "$count.$mode.cpu")" \
			"$(script_median "$count.$mode.mb")" "$(script_median "$count.$mode.end")"
	done
done
