#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Is the budget kept, and are the numbers true all the same? Each program works for some seconds on
# the wall, alone and watched, in turns; what it got done then is compared. Prints markdown tables:
#   speed      of each program with the default budget and with 2 %, heap and allocs, in parts of what
#              it does alone (medians)
#   accuracy   of the ten largest sites of a program that counts for itself, default budget
#
#   scripts/bench-budget.sh [SECONDS [ROUNDS [LOAD...]]]   default 10 and 2, and all that can run; as
#                                                          root, after make; a quarter of an hour
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

seconds=$(script_rounds "${1:-10}")
rounds=$(script_rounds "${2:-2}")
loads=("${@:3}")
script_begin

# heapbpf's options by mode; `nothing` watches nothing.
modes=(nothing heap allocs heap_2 allocs_2)
declare -A options=([heap]="-t heap" [allocs]="-t allocs" [heap_2]="-t heap --max-overhead 2"
	[allocs_2]="-t allocs --max-overhead 2")
declare -A title=([tight]="malloc, free" [churn]="2 threads, 100k objects" [map]="C++ map"
	[sqlite3]="sqlite3 inserts" [python]="python objects" [redis]="redis SET"
	[pipelined]="redis SET, 16 at once" [postgres]="pgbench -S")

# --- loads: start_NAME makes target_pid, work_NAME lets it work and prints how much it did --------

start_tight() {
	target bench_work tight "$seconds"
}

work_tight() {
	target_go
	target_await DONE | sed -n 's/^OPS //p'
}

start_churn() {
	target bench_work churn "$seconds"
}

work_churn() {
	work_tight
}

start_map() {
	target bench_work map "$seconds"
}

work_map() {
	work_tight
}

# start_script CODE: python that repeats step() for as long.
start_script() {
	target_exec env PYTHONMALLOC=malloc /usr/bin/python3 -c "$1
import sys, time
print('READY', flush=True)
sys.stdin.read(1)
end, done = time.monotonic() + $seconds, 0
while time.monotonic() < end:
    step()
    done += 1
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
	work_tight
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
	work_tight
}

start_redis() {
	redis-server --port 0 --unixsocket "$PWD/socket" --save "" --dir "$PWD" >messages &
	target_pid=$!
	pids+=("$target_pid")
	eventually redis-cli -s socket ping >pong
}

# redis_load OPTION...: commands done.
redis_load() {
	local before

	before=$(redis-cli -s socket info stats | tr -d '\r' | sed -n 's/^total_commands_processed://p')
	timeout "$seconds" redis-benchmark -s socket -q -n 1000000000 -r 100000 -t set "$@" >messages || true
	redis-cli -s socket info stats | tr -d '\r' |
		sed -n 's/^total_commands_processed://p' | awk -v before="$before" '{ print $1 - before }'
}

work_redis() {
	redis_load
}

start_pipelined() {
	start_redis
}

work_pipelined() {
	redis_load -P 16
}

postgres_backend() {
	as_postgres psql -qAtc "select pid from pg_stat_activity where application_name = 'pgbench'" >backend
	[[ -s backend ]]
}

# The server stays; the target is the process that serves pgbench, whose work has begun.
start_postgres() {
	[[ -d db ]] || postgres_serve
	as_postgres pgbench -S -c 1 -T $((seconds + 600)) -P 1 >bench 2>&1 &
	bench_pid=$!
	pids+=("$bench_pid")
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
		awk '{ sum += $1 } END { printf "%d\n", sum }'
}

# A backend that is killed takes the others with it.
stop_postgres() {
	kill -INT "$bench_pid" 2>/dev/null || true
	wait "$bench_pid" || true
	timeout 20 tail --pid="$target_pid" -f /dev/null
}

can_run() {
	case $1 in
	redis | pipelined) command -v redis-server redis-benchmark >/dev/null ;;
	postgres) command -v pgbench >/dev/null && [[ -d /usr/lib/postgresql ]] ;;
	esac
}

# --- the bench -------------------------------------------------------------------------------------

# measure LOAD MODE
measure() {
	local load=$1 mode=$2

	"start_$load"
	if [[ $mode != nothing ]]; then
		# The options are words on purpose.
		# shellcheck disable=SC2086
		heapbpf_start -q --top 0 -p "$target_pid" -d "${seconds}s" -o p.pb.gz ${options[$mode]}
	fi
	"work_$load" >>"$load.$mode"
	if [[ $mode != nothing ]]; then
		kill -INT "$heapbpf_pid" 2>/dev/null || true
		heapbpf_wait
	fi
	if declare -F "stop_$load" >/dev/null; then
		"stop_$load"
	else
		kill -KILL "$target_pid" 2>/dev/null || true
		wait "$target_pid" 2>/dev/null || true
	fi
}

if ((${#loads[@]} == 0)); then
	for load in tight churn map sqlite3 python redis pipelined postgres; do
		can_run "$load" && loads+=("$load")
	done
fi
for ((round = 1; round <= rounds; round++)); do
	for load in "${loads[@]}"; do
		for mode in "${modes[@]}"; do
			[[ -t 2 ]] && printf '\rround %d of %d: %-9s %-8s' "$round" "$rounds" "$load" "$mode" >&2
			measure "$load" "$mode"
		done
	done
done
[[ -t 2 ]] && printf '\r%50s\r' '' >&2

printf '| speed, in parts of that alone | heap, 10 %% | allocs, 10 %% | heap, 2 %% | allocs, 2 %% |\n'
printf '|---|---|---|---|---|\n'
for load in "${loads[@]}"; do
	printf '| %s' "${title[$load]}"
	for mode in "${modes[@]:1}"; do
		awk -v v="$(script_median "$load.$mode")" -v alone="$(script_median "$load.nothing")" \
			'BEGIN { printf " | %.2f", v / alone }'
	done
	printf ' |\n'
done

# The target counts from its first call, the profile from its first window on.
target bench_work sites "$seconds"
heapbpf_start -q --top 0 -p "$target_pid" -d "${seconds}s" -t allocs -o p.pb.gz
target_go
target_await DONE >truth
kill -INT "$heapbpf_pid" 2>/dev/null || true
heapbpf_wait
reader cum p.pb.gz | awk '{ print "SEEN", $1, $3 }' >>truth
printf '\n| ten largest sites, allocs, 10 %% | bytes by the program | bytes by the profile | ratio |\n|---|---|---|---|\n'
awk '$1 == "SITE" { bytes[$2] = $4 } $1 == "SEEN" { seen[$2] = $3 }
	END { for (site in bytes)
		printf "| %s | %d | %d | %.3f |\n", site, bytes[site], seen[site], seen[site] / bytes[site] }' \
	truth | sort -t '|' -k 3,3rn | head -n 10
