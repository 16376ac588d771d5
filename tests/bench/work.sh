# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What benches share that let programs work for a time: the programs, what they and the one who watches
# them take, and tables of that. A script sources this after tests/lib.sh, with `seconds` set to how long
# that is on the wall, and calls bench_begin. A mode is heapbpf with options[MODE], or functions:
#   prepare_MODE   may set `launch`: words before the program's command
#   watch_MODE     begins to watch `target_pid`
#   unwatch_MODE   ends that, before the program ends
#   gone_MODE      what there is to do after it
# each if it is defined; `load` and `mode` say what is measured. bench_measure appends to
# LOAD.MODE.done, .ns and .program, and .beside for those with a twin; bench_spent to .cpu and .tool.
#
# A machine that is shared may halve its speed for a second at any time. So a program with one thread
# has a twin where there is a processor for it, which works at the same time and is not watched: the
# two are compared, and that with the same of two of which neither is watched. A tool that cannot be
# kept to one process watches both: there the work itself is compared.

# shellcheck disable=SC2154 # tests/lib.sh has target_pid and heapbpf_pid
modes=()
loads=()
declare -A options=() heading=() baseline=()
declare -A bench_title=([tight]="malloc, free" [churn]="2 threads, 100k objects" [map]="C++ map"
	[sqlite3]="sqlite3 inserts" [python]="python objects" [redis]="redis SET"
	[pipelined]="redis SET, 16 at once" [postgres]="pgbench -S")
declare -A everywhere=() # modes that watch every process of the machine: the twin, too
declare -A bench_twinned=([tight]=1 [map]=1 [sqlite3]=1 [python]=1)
twin_pid=0
# How long programs work once they are told to, and the file in which they count what they did.
# shellcheck disable=SC2034 # for turns.sh
lasting=${seconds:-10} counter=
bench_loads_known=(tight churn map sqlite3 python redis pipelined postgres)
seconds=${seconds:-10}
launch=()
# shellcheck disable=SC2034 # for tests/lib.sh
# Whoever does not answer after that has been ended by a tool.
PATIENCE=$((seconds + 30))

# bench_begin: as script_begin; heapbpf, as it is called from now on, leaves what it took in `spent`.
bench_begin() {
	script_begin
	cc -O2 -Wall -Wextra -D_GNU_SOURCE -o spender "$TESTS/bench/spent.c"
	printf '#!/bin/sh\nexec "%s" "%s" "%s" "$@"\n' "$PWD/spender" "$PWD/spent" "$HEAPBPF" >heapbpf
	chmod 755 heapbpf
	HEAPBPF=$PWD/heapbpf
}

# A tool that fails ends its own measurement, not the bench.
fail() {
	echo "$*" >&2
	return 1
}

# --- loads: start_NAME makes target_pid, work_NAME lets it work and prints how much it did ----------

start_own() {
	counter=$(mktemp -p .)
	target_exec "${launch[@]}" "$TARGETS/bench_work" "$1" "$lasting" "$counter"
}

work_own() {
	target_go
	target_await DONE | sed -n 's/^OPS //p'
}

start_tight() {
	start_own tight
}

work_tight() {
	work_own
}

start_churn() {
	start_own churn
}

work_churn() {
	work_own
}

start_map() {
	start_own map
}

work_map() {
	work_own
}

# start_script CODE: python that repeats step() for as long. Not below env: what follows no exec would
# watch that.
export PYTHONMALLOC=malloc
start_script() {
	counter=$(mktemp -p .)
	head -c 8 /dev/zero >"$counter"
	target_exec "${launch[@]}" /usr/bin/python3 -c "$1
import mmap, sys, time
file = open('$counter', 'r+b')
until_now = mmap.mmap(file.fileno(), 8)
print('READY', flush=True)
sys.stdin.read(1)
end, done = time.monotonic() + $lasting, 0
while time.monotonic() < end:
    step()
    done += 1
    until_now[:] = done.to_bytes(8, 'little')
print('OPS', done, flush=True)
print('DONE', flush=True)
sys.stdin.read(1)"
}

start_python() {
	start_script '
def step():
    return [{"number": i, "name": str(i)} for i in range(1000)]'
}

work_python() {
	work_own
}

start_sqlite3() {
	start_script '
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t(id integer primary key, name text, body blob)")
db.execute("create index by_name on t(name)")
def step():
    db.execute("begin")
    for i in range(200):
        db.execute("insert into t(name, body) select random(), zeroblob(100)")
    db.execute("delete from t")
    db.execute("commit")'
}

work_sqlite3() {
	work_own
}

start_redis() {
	"${launch[@]}" redis-server --port 0 --unixsocket "$PWD/socket" --save "" --dir "$PWD" >messages &
	target_pid=$!
	pids+=("$target_pid")
	eventually redis-cli -s socket ping >pong
}

# Commands that were processed.
redis_done() {
	redis-cli -s socket info stats | tr -d '\r' | sed -n 's/^total_commands_processed://p'
}

# Gives it work until it is killed.
redis_load=(redis-benchmark -s socket -q -l -n 1000000 -r 100000 -t set)

# redis_work OPTION...: commands done.
redis_work() {
	local before after

	before=$(redis_done) || return
	timeout "$seconds" "${redis_load[@]}" "$@" >messages || true
	after=$(redis_done) || return
	echo $((after - before))
}

work_redis() {
	redis_work
}

start_pipelined() {
	start_redis
}

work_pipelined() {
	redis_work -P 16
}

pgbench_options=()
postgres_backend() {
	as_postgres psql -qAtc "select pid from pg_stat_activity where application_name = 'pgbench'" >backend
	[[ -s backend ]]
}

# The server stays; the target is the process that serves pgbench, whose work has begun.
start_postgres() {
	[[ -d db ]] || postgres_serve
	exec_as_postgres pgbench -S -c 1 -T $((lasting + 600)) -P 1 "${pgbench_options[@]}" >bench 2>&1 &
	bench_pid=$!
	pids+=("$bench_pid")
	# An earlier connection only asks how much there is.
	eventually grep '^progress: ' bench >messages
	eventually postgres_backend
	target_pid=$(<backend)
}

# Seconds that pgbench has reported.
reported() {
	grep -c '^progress: ' bench || true
}

# Transactions in those that begin and end while it is watched: the first one may be older.
work_postgres() {
	local before

	before=$(reported)
	while (($(reported) < before + seconds)); do
		kill -0 "$bench_pid"
		read -rt 0.1 <> <(:) || true
	done
	sed -n 's/^progress: .* s, \([0-9.]*\) tps.*/\1/p' bench |
		sed -n "$((before + 2)),$((before + seconds))p" |
		awk -v seconds="$seconds" '{ sum += $1 } END { printf "%d\n", NR ? sum / NR * seconds : 0 }'
}

# A backend that is killed takes the others with it.
stop_postgres() {
	kill -TERM "$bench_pid" 2>/dev/null || true
	wait "$bench_pid" 2>/dev/null || true
	timeout 20 tail --pid="$target_pid" -f /dev/null
}

stop_program() {
	kill -KILL "$target_pid" 2>/dev/null || true
	wait "$target_pid" 2>/dev/null || true
}

bench_can_run() {
	case $1 in
	redis | pipelined) command -v redis-server redis-benchmark >/dev/null ;;
	postgres) command -v pgbench >/dev/null && [[ -d /usr/lib/postgresql ]] ;;
	esac
}

# bench_loads [LOAD...]: fills `loads` with these, or with all that can run here.
bench_loads() {
	local load

	loads=("$@")
	(($#)) && return
	for load in "${bench_loads_known[@]}"; do
		bench_can_run "$load" && loads+=("$load")
	done
}

# --- what is measured ------------------------------------------------------------------------------

# Nanoseconds of processor time of a process and its threads, those included that have ended; 0 if it is
# gone.
ticks_per_second=$(getconf CLK_TCK)
cpu_ns() {
	{ sed 's/.*) //' "/proc/$1/stat" 2>/dev/null || true; } |
		awk -v hz="$ticks_per_second" '{ sum = ($12 + $13) / hz * 1e9 } END { printf "%.0f\n", sum }'
}

# The peak of a process's memory; kilobytes.
peak_kb() {
	awk '$1 == "VmHWM:" { print $2 }' "/proc/$1/status" 2>/dev/null || echo 0
}

# bench_spent: the tool has ended and left `spent`.
bench_spent() {
	cut -d ' ' -f 1 spent >>"$load.$mode.cpu"
	cut -d ' ' -f 2 spent >>"$load.$mode.tool"
}

watch_heapbpf() {
	# The options are words on purpose.
	# shellcheck disable=SC2086
	heapbpf_start -q --top 0 -p "$target_pid" -d "${seconds}s" -o p.pb.gz ${options[$mode]}
}

unwatch_heapbpf() {
	kill -INT "$heapbpf_pid" 2>/dev/null || true
	heapbpf_wait
	bench_spent
}

has_twin() {
	[[ -n ${bench_twinned[$load]:-} ]] && (($(nproc) > 1))
}

# Before the program, and without what the tool puts before its command.
start_twin() {
	local launch=()

	has_twin || return 0
	"start_$load"
	twin_pid=$target_pid twin_in=$target_in twin_out=$target_out
}

# What the program did, in parts of what the twin did in the same time.
compare_twin() {
	local target_out=$twin_out

	has_twin && [[ -s last ]] || return 0
	target_await DONE | sed -n 's/^OPS //p' >last.twin
	[[ -n ${everywhere[$mode]:-} ]] ||
		awk -v twin="$(<last.twin)" 'twin > 0 { print $1 / twin }' last >>"$load.$mode.beside"
}

stop_twin() {
	has_twin || return 0
	kill -KILL "$twin_pid" 2>/dev/null || true
	wait "$twin_pid" 2>/dev/null || true
	exec {twin_in}>&- {twin_out}>&-
}

# call PREFIX: for this mode, if there is such a function.
call() {
	local name=$mode

	[[ -n ${options[$mode]:-} ]] && name=heapbpf
	if declare -F "$1_$name" >/dev/null; then
		"$1_$name"
	fi
}

# What the program did, what it took, or nothing if it died.
bench_work() {
	local before

	before=$(cpu_ns "$target_pid")
	has_twin && printf g >&"$twin_in"
	("work_$load") >last 2>work.err || {
		: >last
		echo "program hung" >>"$load.$mode.failed"
		return 0
	}
	kill -0 "$target_pid" 2>/dev/null || return 0
	awk -v a="$before" -v b="$(cpu_ns "$target_pid")" '{ printf "%.3f\n", $1 ? (b - a) / $1 : 0 }' last \
		>>"$load.$mode.ns"
	peak_kb "$target_pid" >>"$load.$mode.program"
	cat last >>"$load.$mode.done"
}

bench_stop() {
	if declare -F "stop_$load" >/dev/null; then
		"stop_$load"
	else
		stop_program
	fi
}

# Once what `load` and `mode` say; .failed has why it was not measured.
bench_measure() {
	launch=()
	call prepare
	if start_twin && "start_$load" && call watch; then
		bench_work
		compare_twin
		kill -0 "$target_pid" 2>/dev/null || echo "program died" >>"$load.$mode.failed"
		call unwatch
		bench_stop
		call gone
	else
		echo "tool failed" >>"$load.$mode.failed"
		call unwatch || true
		bench_stop
		call gone || true
	fi
	stop_twin
}

# bench_progress TEXT: on a terminal over what was there before, else as a line.
bench_progress() {
	if [[ -t 2 ]]; then
		printf '\r%50s\r%s' "" "$1" >&2
	elif [[ -n $1 ]]; then
		printf '%s\n' "$1" >&2
	fi
}

# bench_rounds ROUNDS: every load in every mode, in turns; not those that a script's can_watch LOAD MODE
# denies.
bench_rounds() {
	local round load mode

	for ((round = 1; round <= $1; round++)); do
		for load in "${loads[@]}"; do
			for mode in "${modes[@]}"; do
				declare -F can_watch >/dev/null && ! can_watch "$load" "$mode" && continue
				bench_progress "round $round of $1: $load $mode"
				bench_measure
			done
		done
	done
	bench_progress ""
}

# --- what is printed -------------------------------------------------------------------------------

# bench_header ROUNDS: where and how.
bench_header() {
	printf 'Linux %s, %s, %s CPUs, %s; medians of %d rounds of %d s, in turns.\n' "$(uname -r)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(date +%F)" \
		"$1" "$seconds"
}

# bench_table CORNER CELL MODE...: loads down, modes across; CELL LOAD MODE prints a cell of what was
# measured. A mode's heading is in `heading`.
bench_table() {
	local corner=$1 cell=$2 load mode

	shift 2
	printf '\n| %s' "$corner"
	for mode; do
		printf ' | %s' "${heading[$mode]}"
	done
	printf ' |\n|---'
	printf '|---%.0s' "$@"
	printf '|\n'
	for load in "${loads[@]}"; do
		printf '| %s' "${bench_title[$load]}"
		for mode; do
			if [[ -s $load.$mode.done ]]; then
				printf ' | %s' "$("$cell" "$load" "$mode")"
			elif [[ -s $load.$mode.failed ]]; then
				printf ' | %s' "$(tail -n 1 "$load.$mode.failed")"
			else
				printf ' | -'
			fi
		done
		printf ' |\n'
	done
}

# Work done in a second.
cell_per_second() {
	awk -v v="$(script_median "$1.$2.done")" -v s="$seconds" 'BEGIN { printf "%.0f", v / s }'
}

# Work done, in parts of that without the tool: baseline[MODE], or `nothing`.
cell_ratio() {
	local what="done"

	[[ -s $1.$2.beside ]] && what=beside
	awk -v v="$(script_median "$1.$2.$what")" -v base="$(script_median "$1.${baseline[$2]:-nothing}.$what")" \
		'BEGIN { if (base) printf "%.3g", v / base; else printf "-" }'
}

# Processor time per piece of work beyond that without the tool; nanoseconds.
cell_added_ns() {
	awk -v v="$(script_median "$1.$2.ns")" -v base="$(script_median "$1.${baseline[$2]:-nothing}.ns")" \
		'BEGIN { d = v - base; printf (d < 100 && d > -100 ? "%.1f" : "%.0f"), d }'
}

# Processor time of the tool's own processes, and its part of one processor.
cell_tool_cpu() {
	[[ -s $1.$2.cpu ]] || {
		printf 'has none'
		return
	}
	awk -v v="$(script_median "$1.$2.cpu")" -v s="$seconds" \
		'BEGIN { printf "%.2f s, %.1f %%", v, v / s * 100 }'
}

# Memory at its peak: of the tool's processes + that of the program beyond its baseline.
cell_memory() {
	local tool=0

	[[ -s $1.$2.tool ]] && tool=$(script_median "$1.$2.tool")
	awk -v tool="$tool" -v v="$(script_median "$1.$2.program")" \
		-v base="$(script_median "$1.${baseline[$2]:-nothing}.program")" \
		'BEGIN { more = int((v - base) / 1024); printf "%.0f + %d", tool / 1024, more }'
}
