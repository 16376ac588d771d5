#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Without memory: wherever an allocation fails, heapbpf ends or goes on, and says so in one line.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Much of a run is waiting for the kernel.
AT_ONCE=4

# starve NUMBER ARG...: one run into the files NUMBER.{out,err,status}.
starve() {
	local number=$1 status=0

	shift
	STARVE=$number STARVE_COUNT=$number.count LD_PRELOAD=$TARGETS/starve \
		"$HEAPBPF" "$@" -o "$number.pb.gz" >"$number.out" 2>"$number.err" </dev/null ||
		status=$?
	echo "$status" >"$number.status"
}

# What the run NUMBER should have been: a failure has one line and no profile, anything else has a
# profile and at most a line. `profiles` is 0 where none is asked for.
judge() {
	local number=$1 profiles=$2 status said

	status=$(<"$number.status")
	said=$(grep -vcE '^(recording|wrote) ' "$number.err" || true)
	case $status in
	0 | 1)
		((said <= 1)) || fail "place $number: status $status, $said lines: $(<"$number.err")"
		((!profiles)) || [[ -s $number.pb.gz ]] || fail "place $number: no profile"
		;;
	2 | 64)
		equal "$said" 1 "place $number: lines of status $status: $(<"$number.err")"
		matches "$(grep -vE '^(recording|wrote) ' "$number.err")" '^heapbpf: .' "line"
		[[ ! -e $number.pb.gz ]] || fail "place $number: a profile in spite of status $status"
		;;
	*) fail "place $number: status $status: $(<"$number.err")" ;;
	esac
}

# starve_all PROFILES ARG...: each place in turn. Number 0 starves nowhere and counts the places.
starve_all() {
	local profiles=$1 places number runs=()

	shift
	starve 0 "$@"
	equal "$(<0.status)" 0 "status where nothing fails"
	places=$(<0.count)
	((places >= 30)) || fail "only $places places"
	for ((number = 1; number <= places; number++)); do
		((number <= AT_ONCE)) || wait -n
		starve "$number" "$@" &
		runs+=($!)
	done
	wait -f "${runs[@]}"
	for ((number = 1; number <= places; number++)); do
		judge "$number" "$profiles"
	done
}

test_check() {
	target freeall
	starve_all 0 check -p "$target_pid"
}

test_record() {
	steady
	starve_all 1 -p "$target_pid" -d 10ms -r 64K --max-live 1000
	steady_end
}

e2e_main "$@"
