# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Shared by tests/e2e/*.sh. A file defines functions test_NAME and ends with: e2e_main "$@".
#   FILE --list    names of its tests
#   FILE NAME      runs one, in an empty directory of its own, as the process's only work
#   FILE           runs all, one process each
# Nothing sleeps for a result: targets say READY and DONE and wait for a byte in between; heapbpf
# writes to --ready-fd when its probes are in place.
set -euEo pipefail
shopt -s inherit_errexit
# Numbers with a point, in time as well.
export LC_NUMERIC=C

TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=$(realpath -m "${BUILD:-$TESTS/../build}")
HEAPBPF=$BUILD/heapbpf
TARGETS=$BUILD/targets
READER=$TESTS/pprof_read.py
# How long a handshake may take; long, since it only matters when something is broken.
PATIENCE=100

test_name=
test_dir=
skip_reason=
pids=()
target_pid=0
heapbpf_pid=0
heapbpf_status=0
target_in=0
target_out=0

fail() {
	echo "$*" >&2
	exit 1
}

skip() {
	skip_reason=$*
	exit 77
}

# need COMMAND...: the test is about these; without them it cannot run.
need() {
	local command

	for command; do
		command -v "$command" >/dev/null || skip "$command is not installed"
	done
}

# equal ACTUAL EXPECTED [WHAT]
equal() {
	[[ $1 == "$2" ]] || fail "${3:-value} is '$1', not '$2'"
}

# matches TEXT REGEX [WHAT]
matches() {
	[[ $1 =~ $2 ]] || fail "${3:-text} does not match '$2': $1"
}

# The number of lines in FILE.
lines() {
	wc -l <"$1"
}

# says REGEX COMMAND...: its output has a line that matches. (In a pipe, grep -q would end it.)
says() {
	local regex=$1

	shift
	"$@" >said
	grep -qE -e "$regex" said || fail "$*: no line '$regex'"
}

# --- targets ---------------------------------------------------------------------------------

# target_spawn COMMAND...: starts it with stdin and stdout on the handshake.
target_spawn() {
	local fifo=$test_dir/fifo.$RANDOM$RANDOM

	mkfifo "$fifo.in" "$fifo.out"
	# Opened for both directions, so that no open waits for the other side.
	exec {target_in}<>"$fifo.in" {target_out}<>"$fifo.out"
	env --default-signal=INT,QUIT "$@" <"$fifo.in" >"$fifo.out" \
		{target_in}>&- {target_out}>&- &
	target_pid=$!
	pids+=("$target_pid")
}

# The same, and waits for READY.
target_exec() {
	target_spawn "$@"
	target_await READY >/dev/null
}

# target NAME [ARG...]: the same for one of tests/targets.
target() {
	local name=$1

	shift
	target_exec "$TARGETS/$name" "$@"
}

# Prints what the target says until the line WORD.
target_await() {
	local line

	while IFS= read -r -t "$PATIENCE" -u "$target_out" line; do
		[[ $line == "$1" ]] && return 0
		printf '%s\n' "$line"
	done
	fail "the target never said $1"
}

# Lets the target take its next step.
target_go() {
	printf g >&"$target_in"
}

# One step: the truth that the target prints goes to the file `truth`.
target_step() {
	target_go
	target_await DONE >truth
}

# Lets the target end and checks that it was well.
target_end() {
	local status=0

	target_go
	wait "$target_pid" || status=$?
	equal "$status" 0 "exit status of the target"
}

# The target `steady`, which checks what is in its memory, at work and then at its end.
steady() {
	target steady
	target_go
	target_await BEAT >/dev/null
}

steady_end() {
	target_go
	target_await SOUND >/dev/null
	wait "$target_pid"
}

# text_changes PID: addresses in the process where the code of libc is not the code in the file.
text_changes() {
	local range offset path start length at

	read -r range _ offset _ _ path < <(awk '$2 ~ /x/ && /libc\.so/' "/proc/$1/maps")
	start=$((16#${range%-*}))
	length=$((16#${range#*-} - start))
	{
		cmp -l <(dd "if=/proc/$1/mem" iflag=skip_bytes,count_bytes bs=64K status=none \
			"skip=$start" "count=$length") \
			<(dd "if=$path" iflag=skip_bytes,count_bytes bs=64K status=none \
				"skip=$((16#$offset))" "count=$length") || true
	} | while read -r at _; do
		echo $((start + at - 1))
	done
}

text_intact() {
	[[ -z $(text_changes "$1") ]]
}

# --- heapbpf ---------------------------------------------------------------------------------

# heapbpf_start ARG...: starts it in the background; returns when its probes are in place.
# stdout and stderr go to the files `out` and `err`.
heapbpf_start() {
	local fifo=$test_dir/ready.$RANDOM$RANDOM

	mkfifo "$fifo"
	env --default-signal=INT,QUIT "$HEAPBPF" --ready-fd 9 "$@" 9>"$fifo" >out 2>err </dev/null &
	heapbpf_pid=$!
	pids+=("$heapbpf_pid")
	if [[ $(timeout "$PATIENCE" head -c 1 "$fifo" | wc -c) != 1 ]]; then
		cat err >&2
		fail "heapbpf $* never got ready"
	fi
}

# heapbpf_end SIGNAL: ends the recording by it; the exit status is in heapbpf_status.
heapbpf_end() {
	kill -"$1" "$heapbpf_pid"
	heapbpf_wait
}

# By Ctrl-C, as people do.
heapbpf_stop() {
	heapbpf_end INT
}

# Waits for heapbpf to end by itself.
heapbpf_wait() {
	heapbpf_status=0
	wait "$heapbpf_pid" || heapbpf_status=$?
}

# whole: the last recording lost nothing.
whole() {
	((heapbpf_status == 0)) || {
		grep '^lost: ' out >&2 || true
		cat err >&2
		fail "heapbpf ended with $heapbpf_status"
	}
}

# heapbpf_run ARG...: runs it to its end in the foreground; status, `out` and `err` as above.
heapbpf_run() {
	heapbpf_status=0
	timeout "$PATIENCE" "$HEAPBPF" "$@" >out 2>err </dev/null || heapbpf_status=$?
}

# eventually COMMAND...: tries until it succeeds, for what others do in their own time.
eventually() {
	local end=$((SECONDS + PATIENCE))

	while ((SECONDS < end)); do
		if "$@" 2>/dev/null; then
			return 0
		fi
		read -rt 0.05 <> <(:) || true
	done
	fail "never came true: $*"
}

# before_others PID: its threads run before all other work of the machine, which would move what
# comes by the clock in and out of the windows. Where that is not allowed it remains so.
before_others() {
	chrt --all-tasks --fifo --pid 1 "$1" 2>/dev/null || true
}

# at_least_kernel MAJOR MINOR
at_least_kernel() {
	local major minor

	IFS=.- read -r major minor _ < <(uname -r)
	((major > $1 || (major == $1 && minor >= $2)))
}

# Skips when the kernel has no such way to attach.
need_tier() {
	case $1 in
	session) at_least_kernel 6 13 || skip "uprobe sessions came with Linux 6.13" ;;
	multi) at_least_kernel 6 11 || skip "uprobe_multi with a pid came with Linux 6.11" ;;
	esac
}

# record NAME ARG...: the whole life of a target under heapbpf -r 1 ARG...; leaves `truth` and
# `p.pb.gz`, and the target waiting for its end.
record() {
	local name=$1

	shift
	target "$name"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz "$@"
	target_step
	heapbpf_stop
	whole
}

# --- processes that nobody named -----------------------------------------------------------------

# A name that no other process of the machine has.
own_family() {
	name=hb$$
	cp "$TARGETS/family" "$name"
}

# exact_of PID [OPTION...]: the only profile of the process in prof/ is what `truth` says.
exact_of() {
	local pid=$1

	shift
	mv "prof/heapbpf.$name.$pid.pb.gz" p.pb.gz
	exact_if "$@"
}

# column NAME PID: of the table of processes.
column() {
	awk -F '\t' -v name="$1" -v pid="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		$at["pid"] == pid { print $at[name] }' prof/heapbpf.processes.tsv
}

# known PID: it is followed, and its mappings are known.
known() {
	/usr/bin/python3 "$TESTS/bpf_objects.py" settled "$heapbpf_pid" "$1"
}

# --- profiles --------------------------------------------------------------------------------

# reader COMMAND ARG...: the independent reader of profiles.
reader() {
	/usr/bin/python3 "$READER" "$@"
}

# `p.pb.gz` says what `truth` says; exact_if OPTION...: with options of the reader's compare.
exact() {
	reader valid p.pb.gz
	reader compare truth p.pb.gz
}

exact_if() {
	reader valid p.pb.gz
	reader compare "$@" truth p.pb.gz
}

go_pprof() {
	"$(go_command)" tool pprof "$@"
}

# Debian keeps older versions outside the path.
go_command() {
	local command

	for command in "$(command -v go || true)" /usr/lib/go-*/bin/go; do
		if [[ -x $command ]]; then
			echo "$command"
			return
		fi
	done
	skip "go is not installed"
}

# --- postgres ----------------------------------------------------------------------------------

# exec_as_postgres COMMAND...: in place of this shell, by its user, with the server of this directory.
# For what goes to the background, so that $! is the command and signals reach it.
exec_as_postgres() {
	exec setpriv --reuid=postgres --regid=postgres --init-groups env "PGHOST=$PWD/db" \
		PGUSER=postgres PGDATABASE=postgres "$@"
}

as_postgres() {
	(exec_as_postgres "$@")
}

# Makes a cluster in db/data of this directory; `postgres_bin` is where its programs are.
postgres_make() {
	postgres_bin=$(echo /usr/lib/postgresql/*/bin)
	postgres_bin=${postgres_bin##* }
	[[ -x $postgres_bin/postgres ]] || skip "postgres is not installed"
	need setpriv
	chmod 755 "$test_dir" "$PWD"
	mkdir db
	chown postgres db
	as_postgres "$postgres_bin/initdb" -N -A trust -D "$PWD/db/data" >messages
}

# The same, and starts its server with what pgbench works on.
postgres_serve() {
	postgres_make
	need pgbench
	exec_as_postgres "$postgres_bin/postgres" -D "$PWD/db/data" -k "$PWD/db" -c listen_addresses= \
		-c fsync=off >>messages 2>&1 &
	pids+=($!)
	eventually as_postgres pg_isready -q
	as_postgres pgbench -q -i -s 1 >>messages 2>&1
}

# --- scripts that are no tests -------------------------------------------------------------------

# script_rounds TEXT: prints it if it is a number of turns.
script_rounds() {
	[[ $1 =~ ^[1-9][0-9]*$ ]] || {
		echo "usage: $0 [ROUNDS]" >&2
		exit 64
	}
	echo "$1"
}

# script_median FILE: of its numbers, one a line.
script_median() {
	sort -g "$1" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# A script may define teardown(), as a test.
script_end() {
	local pid

	trap - EXIT
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	if declare -F teardown >/dev/null; then
		teardown
	fi
	cd /
	rm -rf "$test_dir"
}

# Goes on as root, with heapbpf and the targets built, in an empty directory; that and all that was
# started is gone at the end.
script_begin() {
	((EUID == 0)) || {
		echo "$0: needs root" >&2
		exit 2
	}
	[[ -x $HEAPBPF ]] || {
		echo "$0: $HEAPBPF is not built; run make" >&2
		exit 2
	}
	BUILD=$BUILD "$TESTS/targets/build.sh"
	test_dir=$(mktemp -d "${TMPDIR:-/tmp}/heapbpf-script.XXXXXX")
	trap script_end EXIT
	cd "$test_dir"
}

# --- the frame -------------------------------------------------------------------------------

cleanup() {
	local status=$? pid

	trap - EXIT ERR
	set +e
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
		kill -CONT "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	if declare -F teardown >/dev/null; then
		teardown
	fi
	cd /
	rm -rf "$test_dir"
	case $status in
	0) echo "ok $test_name" ;;
	77) echo "skip $test_name: $skip_reason" && status=0 ;;
	*) echo "not ok $test_name" ;;
	esac
	exit "$status"
}

e2e_names() {
	declare -F | sed -n 's/^declare -f[^ ]* test_//p'
}

e2e_one() {
	test_name=$1
	test_dir=$(mktemp -d "${TMPDIR:-/tmp}/heapbpf-test.XXXXXX")
	trap cleanup EXIT
	trap 'echo "${BASH_SOURCE[0]}:$LINENO: failed: $BASH_COMMAND" >&2' ERR
	cd "$test_dir"
	((EUID == 0)) || skip "needs root"
	[[ -x $HEAPBPF ]] || fail "$HEAPBPF is not built"
	"test_$test_name"
}

e2e_main() {
	local name failures=0

	case ${1:-} in
	--list) e2e_names ;;
	"")
		for name in $(e2e_names); do
			bash "$0" "$name" || failures=1
		done
		return "$failures"
		;;
	*) e2e_one "$1" ;;
	esac
}
