#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs every test and counts. Two kinds, one protocol: a test prints "ok NAME", "not ok NAME" or
# "skip NAME: reason" on stdout and its complaints on stderr. Lines "note TEXT" are shown as they are.
#   unit  $BUILD/san/unit/test_*   each a program with many tests
#   e2e   tests/e2e/*.sh           as root; each test is a process of its own, with a time limit
#                                  (480 seconds, or as a line "# time limit: N s" in the script says;
#                                  with a line "# alone: WHY" they run after all others, one by one)
#
#   tests/run.sh [-v] [PATTERN]    only tests whose "kind file name" matches the regular expression
#
# Environment: BUILD (build), JOBS (2), TIMEOUT (seconds for one test, whatever its script says).
# The last line is "N passed, N failed, N skipped"; exit 0 only if something passed, nothing failed.
set -euo pipefail
cd "$(dirname "$0")/.."

verbose=0
if [[ ${1:-} == -v ]]; then
	verbose=1
	shift
fi
pattern=${1:-}
BUILD=$(realpath -m "${BUILD:-build}")
JOBS=${JOBS:-2}
export BUILD

results=$(mktemp -d "${TMPDIR:-/tmp}/heapbpf-run.XXXXXX")
trap 'rm -rf "$results"' EXIT

# selected KIND FILE TEST: does the pattern choose it?
selected() {
	[[ -z $pattern || "$*" =~ $pattern ]]
}

# run_job INDEX KIND FILE COMMAND...: output goes to $results/INDEX.{out,err}; a program that
# fails without naming a failed test gets a line of its own.
run_job() {
	local index=$1 kind=$2 file=$3 status=0 start limit
	shift 3
	local out=$results/$index.out err=$results/$index.err

	start=$SECONDS
	limit=${TIMEOUT:-$(sed -n 's/^# time limit: \([0-9]*\) s$/\1/p' "tests/e2e/$file.sh" 2>/dev/null || true)}
	limit=${limit:-480}
	timeout -k 10 "$limit" "$@" >"$out" 2>"$err" </dev/null || status=$?
	if ((status != 0)) && ! grep -q '^not ok ' "$out"; then
		if ((status == 124 || status == 137)); then
			echo "no result within $limit s" >>"$err"
		fi
		echo "not ok ${*: -1} (exit $status)" >>"$out"
	elif ! grep -qE '^(ok|not ok|skip) ' "$out"; then
		echo "not ok ${*: -1} (no test ran)" >>"$out"
	fi
	echo "$kind $file $((SECONDS - start))" >"$results/$index.done"
}

# Shows what job INDEX said: failures with their stderr, everything with -v.
report_job() {
	local index=$1 kind file seconds line

	read -r kind file seconds <"$results/$index.done"
	while IFS= read -r line; do
		case $line in
		"not ok "* | "skip "* | "note "*) echo "$kind $file: $line" ;;
		"ok "*) ((verbose)) && echo "$kind $file: $line" ;;
		esac
	done <"$results/$index.out"
	if ((verbose && seconds >= 5)); then
		echo "$kind $file: took $seconds s"
	fi
	if grep -q '^not ok ' "$results/$index.out"; then
		sed 's/^/    /' "$results/$index.err"
	fi
}

count() {
	cat "$results"/*.out 2>/dev/null | grep -cE "^$1 " || true
}

# The list of jobs, one "KIND FILE COMMAND..." per line; nothing in it needs quoting.
list_jobs() {
	local binary script name

	for binary in "$BUILD"/san/unit/test_*; do
		if [[ -x $binary && $binary != *.d ]] && selected unit "$(basename "$binary")"; then
			echo "unit $(basename "$binary") $binary"
		fi
	done
	for script in tests/e2e/*.sh; do
		for name in $(bash "$script" --list); do
			if selected e2e "$(basename "$script" .sh)" "$name"; then
				echo "e2e $(basename "$script" .sh) bash $script $name"
			fi
		done
	done
}

mapfile -t jobs < <(list_jobs)
mapfile -t lonely < <(grep -l '^# alone: ' tests/e2e/*.sh)
if [[ " ${jobs[*]} " == *" e2e "* || ${jobs[0]:-} == "e2e "* ]]; then
	tests/targets/build.sh
fi

# is_alone JOB: must no other run beside it?
is_alone() {
	local script

	for script in "${lonely[@]}"; do
		[[ $1 != *" $script "* ]] || return 0
	done
	return 1
}

# run_jobs CNT JOB...: so many at a time.
index=0
run_jobs() {
	local at_once=$1 running=0 job words

	shift
	for job; do
		read -ra words <<<"$job"
		if ((running >= at_once)); then
			wait -n
			running=$((running - 1))
		fi
		run_job "$(printf '%05d' $index)" "${words[@]}" &
		index=$((index + 1))
		running=$((running + 1))
	done
	wait
}

together=()
alone=()
for job in "${jobs[@]}"; do
	if is_alone "$job"; then
		alone+=("$job")
	else
		together+=("$job")
	fi
done
run_jobs "$JOBS" "${together[@]}"
run_jobs 1 "${alone[@]}"

for finished in "$results"/*.done; do
	[[ -e $finished ]] && report_job "$(basename "$finished" .done)"
done

passed=$(count ok)
failed=$(count "not ok")
skipped=$(count skip)
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
