#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How large the target is: what the profile says against what the kernel says.
# alone: where a probe of others goes, the kernel maps its page into all that were ever probed there
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# sizes FILE RSS ANONYMOUS: of the idle target, in bytes: what the kernel says in a file of /proc by
# these names, with the size of its heap between them.
sizes() {
	local range

	awk -v key="$2:" '$1 == key { print $2 * 1024 }' "/proc/$target_pid/$1"
	range=$(awk '$6 == "[heap]" { print $1 }' "/proc/$target_pid/maps")
	echo $((16#${range#*-} - 16#${range%-*}))
	awk -v key="$3:" '$1 == key { print $2 * 1024 }' "/proc/$target_pid/$1"
}

sizes_in_profile() {
	sed -nE 's/^(RSS|Heap|Anonymous) = //p' notes
}

# The profile says how large the process was.
test_memory() {
	target family
	target_step
	heapbpf_start -p "$target_pid" -o p.pb.gz
	heapbpf_stop
	whole
	# Without the copies of pages that probes were in.
	sizes smaps_rollup Rss Anonymous >kernel
	reader comments p.pb.gz >notes
	equal "$(sizes_in_profile)" "$(<kernel)" "resident, heap and anonymous bytes"
	if grep 'the process ended' notes; then
		fail "it did not end"
	fi
}

# A process that ended has the size that it was last seen with, and the profile says so.
test_memory_of_the_dead() {
	target family
	target_step
	heapbpf_start -p "$target_pid" -o p.pb.gz
	sizes status VmRSS RssAnon >kernel
	kill -KILL "$target_pid"
	heapbpf_wait
	whole
	reader comments p.pb.gz >notes
	grep -A 1 '^the process ended; its memory when last seen, after [0-9.]* s:$' notes |
		grep -q '^RSS'
	equal "$(sizes_in_profile)" "$(<kernel)" "resident, heap and anonymous bytes"
}

e2e_main "$@"
