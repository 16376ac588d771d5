#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stacks: complete, distinct, marked where they are cut.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/limits.sh
. "$TESTS/vm/limits.sh"

check_chain() {
	need_tier "$1"
	record chain --tier "$1"
	matches "$(reader stacks p.pb.gz)" \
		$'(^|\n)7 7000 7 7000 1000 chain_g;chain_f;main;[^\n]*_start' "stacks"
}

test_chain_session() {
	check_chain session
}

test_chain_multi() {
	check_chain multi
}

test_chain_perf() {
	check_chain perf
}

test_chain_allocs() {
	record chain -t allocs
	matches "$(reader stacks p.pb.gz)" $'(^|\n)7 7000 1000 chain_g;chain_f;main;' "stacks"
}

# Deeper than the limit: the leaf is right, the root is a marker, the numbers are whole, and nobody
# says that something was lost.
test_too_deep() {
	local deep

	record chain --max-depth 100
	deep=$(reader stacks p.pb.gz | grep 'descend;descend' | grep -v site_shallow)
	matches "$deep" '^1 64 1 64 64 (descend;){100}\[truncated\]$' "deep stack"
	equal "$(grep -E '^(cut|lost):' out)" "cut: 1 truncated: at the depth limit (--max-depth)" \
		"cuts and losses"
	exact
}

test_default_depth() {
	record chain
	matches "$(reader stacks p.pb.gz)" $'(^|\n)[0-9 ]* (descend;){128}\\[truncated\\]' "stacks"
	matches "$(reader stacks p.pb.gz)" '(descend;){61}site_shallow;main;' "stacks"
}

# As deep as it goes: the recursion of 500 is there in full.
test_limit_of_depth() {
	record chain --max-depth 512
	matches "$(reader stacks p.pb.gz)" \
		$'(^|\n)1 64 1 64 64 (descend;){501}site_deep;main;[^\n]*_start' "stacks"
	reader valid p.pb.gz
}

test_depth_of_one() {
	record chain --max-depth 1
	matches "$(reader stacks p.pb.gz)" $'(^|\n)7 7000 7 7000 1000 chain_g;\\[truncated\\]' "stacks"
}

# Each of 5,000 stacks carries its own object.
test_never_mixed_up() {
	record paths
	equal "$(reader paths p.pb.gz)" 5000 "distinct stacks"
	exact_if --only
}

# The stack that matters is there in full, though the table holds a tenth of all.
test_hot_one_survives() {
	target hot
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --max-stacks 400
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "status of an incomplete profile"
	exact
}

test_hot_and_cold() {
	record hot
	exact
	equal "$(reader cum p.pb.gz | grep '^work ')" "work 404000 13200000 4000 400000"
}

# check_verified ARG...: on this kernel, too, the verifier has to look at few instructions.
check_verified() {
	local name count

	need cc
	cc -O2 -o verified "$TESTS/vm/verified.c"
	target chain
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz "$@"
	# Others may have programs of their own.
	sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$heapbpf_pid/fdinfo/"* 2>/dev/null | sort -u >ids
	xargs ./verified <ids >insns
	target_step
	heapbpf_stop
	whole
	(($(lines insns) >= 2)) || fail "$(lines insns) programs"
	while read -r name count; do
		echo "note $*: $name: $count verified instructions"
		((count > 100 && count <= VERIFIED_MAX)) || fail "$name: $count; $VERIFIED_MAX are the limit"
	done < <(sort -k2nr insns)
}

test_verified_session() {
	need_tier session
	check_verified --tier session
}

test_verified_multi() {
	need_tier multi
	check_verified --tier multi
}

test_verified_perf() {
	check_verified --tier perf
}

e2e_main "$@"
