#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# One long recording of a process that never rests (tests/targets/soak.c): threads, libraries and
# children come and go. Once a second heapbpf's memory, descriptors and the memory of its maps are
# noted; at the end the profile is compared with what the process says of itself.
#
#   scripts/soak.sh [MINUTES]     default 30; as root, after make
#
# SOAK_COPIES=N: the process loads so many copies of a library in turn (default 50); 0: a new one each
# time, each of which heapbpf must remember until the end.
# SOAK_DIR=DIR: keeps the samples (seconds, KiB resident, descriptors, KiB of maps, KiB recorded) and
# the profile.
#
# Exit 0 only if memory, maps and descriptors are in the last third what they were in the first, within
# 5 % and a MiB (after a minute to warm up), nothing was lost, the process is well, and its truth is the profile's. The maps that
# hold what is recorded may grow with it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

minutes=${1:-30}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || {
	echo "usage: $0 [MINUTES]" >&2
	exit 64
}
# Seconds that do not count: tables and caches fill.
WARM_UP=60

teardown() {
	if [[ -n ${SOAK_DIR:-} ]]; then
		cp samples p.pb.gz err "$SOAK_DIR/" || true
	fi
}

script_begin

# Seconds since the start and what bpf_objects.py says, once a second until the time is over.
sample() {
	local start=$SECONDS numbers

	while ((SECONDS - start < WARM_UP + minutes * 60)); do
		numbers=$(/usr/bin/python3 "$TESTS/bpf_objects.py" usage "$heapbpf_pid") ||
			fail "heapbpf ended early: $(<err)"
		echo "$((SECONDS - start)) $numbers" >>samples
		kill -0 "$target_pid" || fail "the target ended early"
		sleep 1
	done
}

# Medians of the first and the last third; the status is that of the limits.
compare_thirds() {
	local column name status=0 first last n
	local names=([2]="heapbpf, KiB resident" descriptors "maps, KiB" "recorded, KiB")

	awk -v from=$WARM_UP '$1 >= from' samples >warm
	n=$(($(wc -l <warm) / 3))
	printf '%-22s %12s %12s\n' "" "first third" "last third"
	for column in 2 3 4 5; do
		name=${names[column]}
		first=$(head -n "$n" warm | median "$column")
		last=$(tail -n "$n" warm | median "$column")
		printf '%-22s %12d %12d\n' "$name" "$first" "$last"
		((column == 5 || last <= first + first / 20 + (column == 3 ? 2 : 1024))) || {
			echo "$name: grew" >&2
			status=1
		}
	done
	return "$status"
}

median() {
	cut -d ' ' -f "$1" | sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# The blocks of the libraries, by their size alone: stacks through a library may be cut.
compare_sizes() {
	local size allocs inuse have_allocs have_inuse

	read -r _ size allocs inuse < <(grep '^SIZE ' truth)
	read -r _ have_allocs _ have_inuse _ < <(reader sizes p.pb.gz | grep "^$size ")
	equal "$have_allocs $have_inuse" "$allocs $inuse" "blocks of libraries, allocated and in use"
	echo "blocks of libraries: $allocs allocated, $inuse in use, as the process says"
}

mkdir libraries
target soak "$TARGETS/soak_library" "$PWD/libraries" "${SOAK_COPIES:-50}"
heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
target_go
echo "recording for $minutes minutes"
sample
target_step
heapbpf_stop
sed -n '/^stacks:/,$p' out
grep '^heapbpf: ' err || true
compare_thirds >thirds || touch grown
cat thirds
whole
exact
compare_sizes
target_end
[[ ! -e grown ]] || fail "heapbpf or its maps grew"
echo "sound"
