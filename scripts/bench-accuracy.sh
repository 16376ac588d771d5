#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Are the numbers true? A program that counts for itself is recorded again and again, all of it and
# within budgets. Prints markdown tables:
#   total     what the profile says was allocated, in parts of what the program says: the mean ± its
#             standard error; how far runs differ; how far heapbpf said that they may (+/-, of the total)
#   sites     what share of the bytes is at another site than the program says, medians
#   largest   the program's ten largest sites within the default budget, of the last run
#
#   scripts/bench-accuracy.sh [SECONDS [ROUNDS [PROGRAM...]]]   default 30 and 5, and sites and phases of
#                                                               bench_work; as root, after make; an hour
# MODES="NAME..." in the environment takes these only (heap, heap_10, heap_2, and the same of allocs).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-30}")
rounds=$(script_rounds "${2:-5}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
bench_begin

programs=("${@:3}")
(($# > 2)) || programs=(sites phases)
declare -A title=([sites]="twelve sites, always busy" [phases]="the same in phases, with sleep")
heading=([heap]="heap, all" [heap_10]="heap, 10 %" [heap_2]="heap, 2 %"
	[allocs]="allocs, all" [allocs_10]="allocs, 10 %" [allocs_2]="allocs, 2 %")
options=([heap]="-t heap --max-overhead none" [heap_10]="-t heap" [heap_2]="-t heap --max-overhead 2"
	[allocs]="-t allocs --max-overhead none" [allocs_10]="-t allocs" [allocs_2]="-t allocs --max-overhead 2")
read -ra modes <<<"${MODES:-heap allocs heap_10 allocs_10 heap_2 allocs_2}"

for program in "${programs[@]}"; do
	[[ -n ${title[$program]:-} ]] || fail "no program $program" || exit 64
done
for mode in "${modes[@]}"; do
	[[ -n ${options[$mode]:-} ]] || fail "no mode $mode" || exit 64
done

# One run of `program` in `mode`: SITE lines of the program and SEEN lines of the profile go to the file
# `sites`, with the TOTAL bytes of the profile and what they may be off by, percent. The program begins
# when everything is in place.
record_once() {
	start_own "$program"
	# The options are words on purpose.
	# shellcheck disable=SC2086
	heapbpf_start --top 1 -p "$target_pid" -o p.pb.gz ${options[$mode]}
	target_go
	target_await DONE >truth
	heapbpf_stop
	((heapbpf_status < 2)) || fail "heapbpf ended with $heapbpf_status: $(<err)"
	stop_program
	reader cum p.pb.gz >seen
	total=$(reader total p.pb.gz alloc_space)
	# The last table is that of allocations.
	{
		cat truth
		awk '{ print "SEEN", $1, $3 }' seen
		awk -v total="$total" '$NF == "total" { told = $2 } END { print "TOTAL", total, told + 0 }' out
	} >sites
}

# From `sites`: the total in parts of the truth, what it may be off by, and the percentage of the bytes
# that would have to move to another site.
judge() {
	awk '$1 == "SITE" { bytes[$2] = $4; sum += $4 } $1 == "SEEN" { seen[$2] = $3 }
		$1 == "TOTAL" { total = $2; told = $3 }
		END {
			elsewhere = total
			for (site in bytes) {
				d = seen[site] / total - bytes[site] / sum
				moved += d < 0 ? -d : d
				elsewhere -= seen[site]
			}
			print total / sum, told / 100, (moved + elsewhere / total) / 2 * 100
		}' sites
}

for ((round = 1; round <= rounds; round++)); do
	for program in "${programs[@]}"; do
		for mode in "${modes[@]}"; do
			bench_progress "round $round of $rounds: $program $mode"
			record_once
			judge >>"$program.$mode"
			[[ $mode != allocs_10 ]] || mv sites "sites.$program"
		done
	done
done
bench_progress ""

bench_header "$rounds" | sed 's/medians of //'
printf '\n| total, of the truth | mean | runs differ by | said |\n|---|---|---|---|\n'
for program in "${programs[@]}"; do
	for mode in "${modes[@]}"; do
		awk -v what="${title[$program]}; ${heading[$mode]}" '
			{ sum += $1; squares += $1 * $1; told += $2 * $2 }
			END {
				mean = sum / NR
				rest = squares / NR - mean * mean
				printf "| %s | %.3f", what, mean
				if (NR > 1) {
					spread = sqrt((rest > 0 ? rest : 0) * NR / (NR - 1))
					printf " ± %.3f | %.3f", spread / sqrt(NR), spread
				} else {
					printf " | -"
				}
				printf " | %.3f |\n", sqrt(told / NR)
			}' "$program.$mode"
	done
done

printf '\n| bytes at a wrong site'
for mode in "${modes[@]}"; do
	printf ' | %s' "${heading[$mode]}"
done
printf ' |\n|---'
printf '|---%.0s' "${modes[@]}"
printf '|\n'
for program in "${programs[@]}"; do
	printf '| %s' "${title[$program]}"
	for mode in "${modes[@]}"; do
		printf ' | %.2f %%' "$(script_median <(cut -d ' ' -f 3 "$program.$mode"))"
	done
	printf ' |\n'
done

for program in "${programs[@]}"; do
	[[ -s sites.$program ]] || continue
	printf '\n| %s, %s | bytes by the program | bytes by the profile | ratio |\n|---|---|---|---|\n' \
		"${title[$program]}" "${heading[allocs_10]}"
	awk '$1 == "SITE" { bytes[$2] = $4 } $1 == "SEEN" { seen[$2] = $3 }
		END { for (site in bytes)
			printf "| %s | %.0f | %.0f | %.3f |\n", site, bytes[site], seen[site],
				seen[site] / bytes[site] }' \
		"sites.$program" | sort -t '|' -k 3,3rn | head -n 10
done
