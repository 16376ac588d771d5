#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What heapbpf costs, and is the budget kept? Each program works all the time and is watched by turns
# (tests/bench/turns.sh). Prints markdown tables:
#   speed      of each program alone, and in parts of that: with empty programs at the places of the
#              probes (floor), with all recorded, within the default budget and within 2 %; from when
#              recording begins until it ends
#   own        processor time and memory of heapbpf, start and end included
#
#   scripts/bench-budget.sh [SECONDS [ROUNDS [LOAD...]]]   default 10 and 3, and all that can run; as
#                                                          root, after make; more than an hour
# MODES="NAME..." in the environment takes these columns only (heap_floor, heap, heap_10, heap_2, and the
# same of allocs).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-10}")
rounds=$(script_rounds "${2:-3}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
# shellcheck source=tests/bench/turns.sh
. "$TESTS/bench/turns.sh"
bench_begin
bench_loads "${@:3}"

modes=(nothing)
watched=()
# mode NAME HEADING OPTION...
mode() {
	modes+=("$1")
	watched+=("$1")
	heading[$1]=$2
	options[$1]=${*:3}
}
heading[nothing]="alone, per second"
mode heap_floor "heap floor" -t heap --max-overhead none --floor
mode heap "heap, all" -t heap --max-overhead none
mode allocs_floor "allocs floor" -t allocs --max-overhead none --floor
mode allocs "allocs, all" -t allocs --max-overhead none
mode heap_10 "heap, 10 %" -t heap
mode allocs_10 "allocs, 10 %" -t allocs
mode heap_2 "heap, 2 %" -t heap --max-overhead 2
mode allocs_2 "allocs, 2 %" -t allocs --max-overhead 2
if [[ -n ${MODES:-} ]]; then
	read -ra watched <<<"$MODES"
	modes=(nothing "${watched[@]}")
fi

cell_speed() {
	if [[ $2 == nothing ]]; then
		cell_alone "$@"
	else
		cell_left "$@"
	fi
}

turns_rounds "$rounds"

bench_header "$rounds"
bench_table "speed, in parts of that alone ± standard error" cell_speed "${modes[@]}"
bench_table "heapbpf's own, start and end included" cell_own "${watched[@]}"
