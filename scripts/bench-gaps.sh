#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a program that must answer in time notices of probes that come and go: steps of 10
# microseconds, alone and watched within the default budget, in turns. Prints a markdown table of
# medians.
#
#   scripts/bench-gaps.sh [ROUNDS]     default 3; as root, after make
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

rounds=$(script_rounds "${1:-3}")
script_begin

# measure NAME [OPTION...]: one run; with options, heapbpf comes when the steps are under way.
measure() {
	local name=$1

	shift
	target bench_steps 6
	target_go
	if (($#)); then
		heapbpf_start -q --top 0 -p "$target_pid" -d 5s -o p.pb.gz "$@"
		heapbpf_wait
	fi
	target_await DONE | sed -n 's/^STEP //p' >>"$name"
	target_go
	wait "$target_pid"
}

# median FILE COLUMN
median() {
	sort -n -k "$2,$2" "$1" | awk -v column="$2" '{ v[NR] = $column } END { print v[int((NR + 1) / 2)] }'
}

for ((round = 1; round <= rounds; round++)); do
	measure nothing
	measure heap -t heap
	measure allocs -t allocs
done
printf '| steps of 10 us | median | 99.9th percentile | longest |\n|---|---|---|---|\n'
for name in nothing heap allocs; do
	printf '| %s | %s us | %s us | %s us |\n' "$name" "$(median "$name" 1)" "$(median "$name" 2)" \
		"$(median "$name" 3)"
done
