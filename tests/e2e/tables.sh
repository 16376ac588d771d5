#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Full tables: what they cannot hold is counted by name, nothing else suffers, and the exit status
# says that the profile is incomplete.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# overload ARG...: 5,000 stacks, each with an object that stays, into small tables.
overload() {
	target paths
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz "$@"
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "status of an incomplete profile"
	reader valid p.pb.gz
	reader comments p.pb.gz >losses
}

# loss NAME: the number with that name, equal on the terminal and in the profile. The kernel refuses
# an entry when the table is full and when it has no memory for it, and we do not know which it was.
loss() {
	local count

	count=$(grep -w "$1" losses | grep -oE '[0-9]+' | head -n 1)
	cat out err | grep -w "$1" | grep -E "(^|[^0-9])$count([^0-9]|$)" >/dev/null ||
		fail "the terminal does not show $1 $count"
	grep -qE "^lost: $count $1: .* --max-${1%_full} or memory exhausted$" out ||
		fail "$1 is said to be something else: $(grep -w "$1" out)"
	echo "$count"
}

test_live_full() {
	overload --max-live 100
	equal "$(reader total p.pb.gz alloc_objects)" 5000 "allocations"
	equal $(($(reader total p.pb.gz inuse_objects) + $(loss live_full))) 5000 \
		"objects in use and those not followed"
}

test_stacks_full() {
	overload --max-stacks 1
	equal "$(reader total p.pb.gz alloc_objects)" 5000 "allocations"
	equal "$(reader total p.pb.gz inuse_space)" 12502500 "bytes in use"
	matches "$(reader stacks p.pb.gz)" '\[no stack\]' "stacks"
	equal $((5000 - $(loss stacks_full))) \
		"$(reader stacks p.pb.gz | grep -cv '\[no stack\]')" "stacks kept"
}

test_sites_full() {
	overload --max-sites 100
	equal $(($(reader total p.pb.gz alloc_objects) + $(loss sites_full))) 5000 \
		"allocations and those not counted"
}

# All of them at once, and as small as they can be: the first object fills them, every other one is
# counted as not counted.
test_everything_full() {
	overload --max-live 1 --max-stacks 1 --max-sites 1 --max-depth 1
	equal "$(reader total p.pb.gz alloc_objects)" 1 "allocations"
	equal "$(reader total p.pb.gz inuse_objects)" 1 "objects in use"
	equal "$(loss sites_full)" 4999 "allocations not counted"
	# One frame deep there are two stacks, of step_a and of step_b.
	equal "$(loss stacks_full)" 2500 "stacks not kept"
}

# Four threads at full speed and room for few: what was allocated is exact, what is in use and what
# could not be followed are apart, and the target is well.
test_overload_by_threads() {
	local in_use

	target threads
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --max-live 50
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "status of an incomplete profile"
	exact_if --within alloc_objects
	exact_if --within alloc_space
	reader comments p.pb.gz >losses
	in_use=$(reader total p.pb.gz inuse_objects)
	((in_use <= 50)) || fail "$in_use objects in use"
	(($(loss live_full) > 0))
	target_end
}

e2e_main "$@"
