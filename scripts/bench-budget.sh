#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What heapbpf costs, is the budget kept, and are the numbers true all the same? Each program works for
# some seconds on the wall, alone and watched, in turns; what it got done then is compared. Prints
# markdown tables:
#   speed      of each program alone, and in parts of that: with empty programs at the places of the
#              probes (floor), with all recorded, within the default budget and within 2 %
#   own        processor time and memory of heapbpf, start and end included
#   accuracy   of a program that counts for itself: what share of the bytes is at another site than it
#              says, by mode; and its ten largest sites within the default budget
#
#   scripts/bench-budget.sh [SECONDS [ROUNDS [LOAD...]]]   default 10 and 2, and all that can run; as
#                                                          root, after make; half an hour
# MODES="NAME..." in the environment takes these columns only (heap_floor, heap, heap_10, heap_2, and the
# same of allocs).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-10}")
rounds=$(script_rounds "${2:-2}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
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

# Work alone as it is, else in parts of that.
cell_speed() {
	if [[ $2 == nothing ]]; then
		cell_per_second "$@"
	else
		cell_ratio "$@"
	fi
}

# Counts of a program and of its profile: SITE lines of the one, SEEN lines of the other, and TOTAL
# bytes of the profile. The program counts from its first call, the profile from its first window on.
record_sites() {
	local load=sites

	launch=()
	start_own sites
	watch_heapbpf
	target_go
	target_await DONE >truth
	unwatch_heapbpf
	stop_program
	{
		cat truth
		reader cum p.pb.gz | awk '{ print "SEEN", $1, $3 }'
		echo "TOTAL $(reader total p.pb.gz alloc_space)"
	} >"sites.$mode"
}

# The bytes that would have to move to another site, of all that the profile has.
misplaced() {
	awk '$1 == "SITE" { bytes[$2] = $4; sum += $4 } $1 == "SEEN" { seen[$2] = $3 } $1 == "TOTAL" { total = $2 }
		END {
			elsewhere = total
			for (site in bytes) {
				d = seen[site] / total - bytes[site] / sum
				moved += d < 0 ? -d : d
				elsewhere -= seen[site]
			}
			printf "%.3f\n", (moved + elsewhere / total) / 2 * 100
		}' "sites.$mode"
}

bench_rounds "$rounds"
for ((round = 1; round <= rounds; round++)); do
	for mode in "${watched[@]}"; do
		[[ $mode == *_floor ]] && continue
		record_sites
		misplaced >>"misplaced.$mode"
	done
done

bench_header "$rounds"
bench_table "speed, in parts of that alone" cell_speed "${modes[@]}"
bench_table "heapbpf's own time, start and end included" cell_tool_cpu "${watched[@]}"
bench_table "memory beside the kernel's tables: heapbpf + more in the program, MB" cell_memory "${watched[@]}"

printf '\n| allocated, twelve sites | bytes at a wrong site |\n|---|---|\n'
for mode in "${watched[@]}"; do
	[[ -s misplaced.$mode ]] &&
		printf '| %s | %.2f %% |\n' "${heading[$mode]}" "$(script_median "misplaced.$mode")"
done

[[ -s sites.allocs_10 ]] || exit 0
printf '\n| ten largest sites, %s | bytes by the program | bytes by the profile | ratio |\n|---|---|---|---|\n' \
	"${heading[allocs_10]}"
awk '$1 == "SITE" { bytes[$2] = $4 } $1 == "SEEN" { seen[$2] = $3 }
	END { for (site in bytes)
		printf "| %s | %.0f | %.0f | %.3f |\n", site, bytes[site], seen[site], seen[site] / bytes[site] }' \
	sites.allocs_10 | sort -t '|' -k 3,3rn | head -n 10
