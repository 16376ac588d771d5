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
	grep -q "^lost: $2 = $1:" notes || fail "not $1 $2: $(<notes)"
	grep -q "^lost: $1 $2:" out || fail "not $1 $2: $(<out)"
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

e2e_main "$@"
