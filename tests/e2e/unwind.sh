#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stacks of known places: each is what the target says, from the function that allocates to the end,
# or it is cut and says why.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# chains FILE: the profile has the stacks that the target, the program FILE, told; how many of which
# end go to the file `ends`. Those that are cut are counted by their reason.
chains() {
	local count end cut=0

	reader valid p.pb.gz
	reader chains truth p.pb.gz "$1" >ends
	reader comments p.pb.gz >notes
	while read -r count end; do
		counted "$count" "${end:1:-1}"
		cut=$((cut + count))
	done < <(grep '\[' ends)
	# What else it allocates is in libraries, and complete.
	read -r count _ end _ < <(grep 'stacks complete' notes)
	equal $((end - count)) "$cut" "stacks cut"
}

# counted COUNT REASON: the profile and the terminal both say so.
counted() {
	grep -q "^cut: $2 = $1:" notes || fail "not $1 $2: $(<notes)"
	grep -q "^cut: $1 $2:" out || fail "not $1 $2: $(<out)"
}

# watch COMMAND...: its whole life until DONE in `p.pb.gz`, its word in `truth`.
watch() {
	target_exec "$@"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	target_end
}

test_shapes_session() {
	need_tier session
	record unwind --tier session
	chains /unwind
	# The stack whose pages were not there.
	matches "$(<notes)" "stack reads that had to fault a page in = [1-9]" "comments"
}

test_shapes_multi() {
	need_tier multi
	record unwind --tier multi
	chains /unwind
}

test_shapes_perf() {
	record unwind --tier perf
	chains /unwind
}

# Threads take turns in the middle of a walk if anywhere.
test_shapes_on_one_cpu() {
	need taskset
	watch taskset -c 0 "$TARGETS/unwind"
	chains /unwind
}

# The frames that compilers make under other options, and another compiler's.
test_shapes_compiled_otherwise() {
	local variant source=$TESTS/targets/unwind.cc
	local flags=(-fno-builtin -pthread "-Wl,-z,lazy")

	need c++
	for variant in -O0 -O3 "-O2 -fno-omit-frame-pointer" "-O2 -fcf-protection -Wl,-z,ibtplt" \
		"-O2 -fno-pie -no-pie" "-Os -Wl,-z,now -fno-plt" "-O2 -fstack-protector-all" \
		"-O2 -fstack-clash-protection -mpreferred-stack-boundary=6" \
		"-O2 -mavx2 -ffunction-sections -Wl,--gc-sections"; do
		# The variant is words on purpose.
		# shellcheck disable=SC2086
		c++ $variant -g -w "${flags[@]}" -o variant "$source"
		watch ./variant
		chains /variant
	done
	if command -v clang++ >/dev/null; then
		clang++ -O2 -g -w "${flags[@]}" -o variant "$source"
		watch ./variant
		chains /variant
	fi
	# Everything is in one file, so none of it is told from the target's.
	c++ -O2 -g -w -static "${flags[@]}" -o variant "$source"
	watch ./variant
	chains /nothing
}

# offset_of NAME: the place of a function of the target `unwind` in its file.
offset_of() {
	local vma type off start

	vma=$(nm "$TARGETS/unwind" | awk -v name="$1" '$3 == name { print $1 }')
	[[ -n $vma ]] || fail "no $1 in unwind"
	# The segment with the code.
	read -r type off start < <(readelf -lW "$TARGETS/unwind" | awk '$1 == "LOAD" && / E /')
	[[ $type == LOAD ]]
	printf '%x\n' $((16#$vma - ${start%% *} + off))
}

# Somebody else's return probes on functions in these stacks: nested, several at one address behind
# jumps, and some that a longjmp leaves pending. Not where exceptions pass, which do not survive it.
test_shapes_under_return_probes() {
	local name offsets=() held

	need nm readelf
	[[ -e /sys/bus/event_source/devices/uprobe/type ]] || skip "no uprobes by perf_event_open"
	for name in take recurse with_alloca aligned_frame huge_frame seldom split_by_heat \
		never_returns jumps_to_malloc jumps_to_that before_the_jumps compare sort \
		thread_main at_thread_end fill_pages forget_pages on_shared_stack \
		marker_3 marker_15; do
		offsets+=("$(offset_of "$name")")
	done
	target unwind
	held=("$target_in" "$target_out" "$target_pid")
	target retprobe "$target_pid" "$TARGETS/unwind" "${offsets[@]}"
	target_in=${held[0]} target_out=${held[1]} target_pid=${held[2]}
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	chains /unwind
	matches "$(<notes)" "return addresses restored from return probes = [0-9]{4,}" "comments"
	target_end
}

test_signals() {
	record signals
	chains /signals
	# All instructions of the functions that were stepped through, and of the stubs.
	grep -c 'on_trap;\*;inner;outer;step_through' truth >steps
	(($(<steps) > 20))
	grep -c 'on_trap;\*;=;outer;step_through' truth >steps
	(($(<steps) >= 5))
	# What a child allocates in our memory before it has its own is no business of ours.
	reader stacks p.pb.gz >walked
	if grep in_child walked; then
		fail "a child's allocation"
	fi
}

test_cut_stacks() {
	local reason

	record cut
	chains /cut
	for reason in unsupported_rule sp_not_growing read_fault no_mapping no_row fp_rejected \
		guessed_end no_table; do
		grep -q "\[$reason\]" ends || fail "no stack ends with $reason"
	done
}

# library_make: the program ./uses and its library libparts.so with three functions, each of which
# allocates: before, damaged, behind, in this order in the library's call frame information.
library_make() {
	need cc readelf nm
	cat >parts.c <<-'END'
		#include <stdlib.h>
		void *kept[3];
		void before(void) { kept[0] = malloc(1001); }
		void damaged(void) { kept[1] = malloc(1002); }
		void behind(void) { kept[2] = malloc(1003); }
	END
	cat >uses.c <<-'END'
		#include "truth.h"
		void before(void), damaged(void), behind(void);
		int main(void)
		{
			await("READY");
			before();
			damaged();
			behind();
			await("DONE");
			return 0;
		}
	END
	cc -O2 -shared -fPIC -fno-toplevel-reorder -o libparts.so parts.c
	cc -O2 -w -I"$TESTS/targets" -o uses uses.c -L. -lparts -Wl,-rpath,"$PWD"
	# Of the entry of `damaged` in the section.
	entry=$((16#$(readelf --debug-dump=frames libparts.so |
		awk -v pc="pc=$(nm libparts.so | awk '$3 == "damaged" { print $1 }')\\." \
			'$4 == "FDE" && $6 ~ pc { print $1 }')))
	# Of the section in the file, and of its header's size.
	read -r section header < <(readelf -SW libparts.so | sed 's/^ *\[ */ /' |
		awk -v headers="$(readelf -hW libparts.so | awk '/Start of section headers/ { print $5 }')" '
			$2 == ".eh_frame" { print $5, headers + 64 * $1 + 32 }')
	section=$((16#$section))
}

# put FILE OFFSET BYTES: overwrites; \xNN for each.
put() {
	printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# parts SIZE STACK: the block of that size has a stack that matches.
parts() {
	matches "$(reader stacks p.pb.gz | grep " $1 [^ ]*\$")" " $1 $2\$" "stack of $1 bytes"
}

# An instruction that nobody knows: its function is left out, which is said, and nothing else.
test_damaged_instruction() {
	library_make
	put libparts.so $((section + entry + 17)) '\x3e'
	watch ./uses
	grep -q 'libparts.so: 1 malformed unwind entries left out' err || fail "$(<err)"
	parts 1001 'before;main;.*_start'
	parts 1002 'damaged;\[no_row\]'
	parts 1003 'behind;main;.*_start'
	reader comments p.pb.gz >notes
	counted 1 no_row
}

# The section ends within an entry: what comes before it is of use.
test_damaged_section() {
	library_make
	put libparts.so "$header" "$(printf '\\x%02x\\x%02x' $(((entry + 10) & 255)) $(((entry + 10) >> 8)))"
	watch ./uses
	grep -q 'libparts.so: 1 malformed unwind entries left out' err || fail "$(<err)"
	parts 1001 'before;main;.*_start'
	parts 1002 'damaged;\[no_row\]'
	parts 1003 'behind;\[no_row\]'
	reader comments p.pb.gz >notes
	counted 2 no_row
}

# Nothing but malformed entries: the library has no table, and it is said why.
test_damaged_from_the_start() {
	library_make
	put libparts.so "$section" '\xff\xff\xff\x7f'
	watch ./uses
	grep -q 'libparts.so: no unwind table, stacks will end there: ' err || fail "$(<err)"
	parts 1001 'before;\[no_table\]'
	parts 1003 'behind;\[no_table\]'
	reader comments p.pb.gz >notes
	counted 3 no_table
}

# The file ends where its segments do: its sections are not known, and not needed.
test_truncated_library() {
	library_make
	truncate -s "$(readelf -lW libparts.so | awk '$1 == "LOAD" { print $2, $5 }' | tail -n 1 |
		while read -r offset length; do echo $((offset + length)); done)" libparts.so
	watch ./uses
	parts 1001 'before;main;.*_start'
	parts 1002 'damaged;main;.*_start'
	parts 1003 'behind;main;.*_start'
}

# Stacks of a real program, address by address; scripts/gdb-compare.sh does it with more of them.
test_gdb_agrees() {
	need gdb objdump sqlite3
	"$TESTS/../scripts/gdb-compare.sh" 300 sqlite3 >table
	matches "$(<table)" '\| sqlite3 \| [0-9]+ \| 300 \| [0-9]{3,} \| 300 \| 0 \| 0 \| 0 \|' "table"
}

# A C library without call frame information: the program's own frames, and no claim beyond them.
test_musl() {
	need musl-gcc
	musl-gcc -O2 -g -fomit-frame-pointer -fno-builtin -o musl "$TESTS/targets/no_cfi_below.c"
	watch ./musl
	chains /musl
	record no_cfi_below
	chains /no_cfi_below
}

# Go's frames below C's, C's below Go's, by frame pointer and across a switch of stacks.
test_cgo() {
	local go

	go_command >/dev/null
	go=$(go_command)
	need cc
	cp "$TESTS/targets/cgo.go" .
	GOCACHE=$test_dir/cache GO111MODULE=off "$go" build -o cgo cgo.go
	watch ./cgo
	chains /cgo
	matches "$(<notes)" "frames walked by frame pointer = [1-9]" "comments"
}

# js_frames SIZE: how many frames of JavaScript are on the stack of that object, interpreted or made
# at run time.
js_frames() {
	reader stacks p.pb.gz | awk -v size="$1" '$5 == size' >js
	equal "$(lines js)" 1 "stacks of $1 bytes"
	grep -oE '(^|;)(Builtins_InterpreterEntryTrampoline|0x[0-9a-f]+)' js | wc -l
}

# Code that V8 makes: a recursion that is 30 calls deeper has 30 frames more, whoever runs it.
test_node_recursion() {
	local flags

	need node
	for flags in "" --jitless --always-sparkplug "--always-turbofan --no-turbo-inlining"; do
		# The flags are words on purpose; not every version knows all of them.
		# shellcheck disable=SC2086
		node $flags -e 0 2>/dev/null || continue
		# shellcheck disable=SC2086
		watch node $flags "$TESTS/targets/recursion.js"
		reader valid p.pb.gz
		equal $(($(js_frames 70002) - $(js_frames 70001))) 30 "frames more with '$flags'"
		(($(js_frames 70001) > 11))
		whole_stacks
	done
}

# whole_stacks: at least 99.9 percent of the samples have a complete stack, and the others are marked
# and counted.
whole_stacks() {
	local complete all marked

	read -r complete _ all _ < <(reader comments p.pb.gz | grep 'stacks complete$')
	((complete * 1000 >= all * 999)) || fail "$complete of $all stacks are complete"
	reader stacks p.pb.gz >walked
	marked=$(awk '/\[[a-z_]+\]$/ { sum += $1 } END { print sum + 0 }' walked)
	equal "$marked" $((all - complete)) "marked stacks"
	reader comments p.pb.gz >notes
	equal "$(awk '$1 == "cut:" { sum += $4 } END { print sum + 0 }' notes)" "$marked" "counted"
}

# A program that makes V8 compile, and throw away, what it runs.
test_node_program() {
	need node
	watch node "$TESTS/targets/program.js"
	reader valid p.pb.gz
	whole_stacks
	# Out of JavaScript into what called it; Debian's node has no names for the first two.
	grep -qE '(Builtins_JSEntry|0x[0-9a-f]+);[^;]+;v8::internal::Execution::Call' walked
	matches "$(<notes)" "frames walked by frame pointer = [1-9]" "comments"
}

e2e_main "$@"
