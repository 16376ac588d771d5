#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What heapbpf takes for itself, not for the program:
#   while it records   its processor time for a program that allocates 100 MB a second, at about 1,000
#                      samples a second, and its memory; aim: below 1 % of one processor
#   at the end         from Ctrl-C to the finished file, for 20,000 stacks in a program of 500 units
#                      with 0.8 GB of debug information, which is about what libLLVM has; every one of
#                      its units is in many stacks; aim: below 3 s
#
#   scripts/bench-user.sh [SECONDS [ROUNDS]]   default 10 and 3; as root, after make; needs 2 GB on disk
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-10}")
rounds=$(script_rounds "${2:-3}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
bench_begin

UNITS=500
STACKS=20000
# paced allocates a hundred times 1,000 bytes in each millisecond.
RATE=100000

# The nanoseconds that heapbpf, the child of what measures it, has run.
heapbpf_ns() {
	local child

	read -r child <"/proc/$heapbpf_pid/task/$heapbpf_pid/children" || true
	cat "/proc/$child/task"/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns }'
}

# Percent of a processor while the program works, samples a second, memory.
record_paced() {
	local before start

	target paced
	heapbpf_start -q --top 0 -p "$target_pid" -r "$RATE" --max-overhead none -o p.pb.gz
	before=$(heapbpf_ns)
	start=$EPOCHREALTIME
	target_go
	read -rt "$seconds" <> <(:) || true
	awk -v ns="$(($(heapbpf_ns) - before))" -v a="$start" -v b="$EPOCHREALTIME" \
		'BEGIN { print ns / (b - a) / 1e7 }' >>record.percent
	target_go
	target_await DONE | sed -n 's/^SECONDS //p' >took
	# The program has ended with the second byte, and heapbpf with it.
	heapbpf_wait
	awk '{ print $2 / 1024 }' spent >>record.mb
	reader comments p.pb.gz | sed -n 's/^[0-9]* of \([0-9]*\) stacks complete$/\1/p' |
		awk -v took="$(<took)" '{ print $1 / took }' >>record.samples
	end_program
}

make_large() {
	local unit names=() flags=()

	c++ -O2 -g -w -c -o unit.o "$TESTS/bench/large_unit.cc"
	for ((unit = 0; unit < UNITS; unit++)); do
		objcopy --redefine-sym "large_table=large_table_$unit" unit.o "unit.$unit.o"
		names+=("large_table_$unit")
	done
	{
		printf 'typedef void (*large_step)(unsigned code, int left);\n'
		printf 'extern large_step %s[];\n' "${names[@]}"
		printf 'int large_units = %d;\nlarge_step *large_tables[] = {\n' "$UNITS"
		printf '\t%s,\n' "${names[@]}"
		printf '};\n'
	} >tables.c
	cc -O2 -g -fno-builtin -I"$TESTS/targets" -c "$TESTS/bench/large_main.c" tables.c
	command -v ld.lld >/dev/null && flags=(-fuse-ld=lld)
	c++ "${flags[@]}" -o large large_main.o tables.o unit.*.o
	rm -f unit.*.o
}

# Seconds from Ctrl-C to the end, and the memory of the largest of the processes that heapbpf is then.
finish_large() {
	local start

	target_exec ./large "$STACKS"
	heapbpf_start -q --top 0 -p "$target_pid" -r 1 -o p.pb.gz
	target_go
	target_await DONE >/dev/null
	start=$EPOCHREALTIME
	heapbpf_stop
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }' >>finish.s
	awk '{ print $2 / 1024 }' spent >>finish.mb
	reader facts p.pb.gz | sed -n 's/^samples //p' >>finish.stacks
	end_program
}

end_program() {
	stop_program
	exec {target_in}>&- {target_out}>&-
}

make_large
for ((round = 1; round <= rounds; round++)); do
	[[ -t 2 ]] && printf '\rround %d of %d' "$round" "$rounds" >&2
	record_paced
	finish_large
done
[[ -t 2 ]] && printf '\r%50s\r' '' >&2

bench_header "$rounds"
printf '\nWhile it records, %.0f samples a second: %.2f %% of a processor, %.0f MB.\n' \
	"$(script_median record.samples)" "$(script_median record.percent)" "$(script_median record.mb)"
printf 'From Ctrl-C to the file, %.0f stacks, %.1f GB of debug information: %.2f s, %.0f MB in the largest process.\n' \
	"$(script_median finish.stacks)" "$(stat -L -c %s large | awk '{ print $1 / 1e9 }')" \
	"$(script_median finish.s)" "$(script_median finish.mb)"
