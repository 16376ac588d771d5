#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What stacks cost: the walk, by depth; the tables, for the largest files that are here; the start of
# a recording, for a small and a large program.
#   walk     bench_deep with every allocation sampled, less the same with none, allocs mode: the
#            walk and the counting; per frame: the slope between depths, which is the walk alone
#   tables   tests/bench/table_cost.c
#   start    from the command to the recording, also of redis and of a backend of postgres
#
#   scripts/bench-unwind.sh [ROUNDS]    default 5; as root, after make; bench.sh ends with it
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

rounds=$(script_rounds "${1:-5}")
script_begin

read -ra flags < <(pkg-config --cflags --libs libbpf libdw libelf libprotobuf-c capstone liblzma zlib)
cc -O2 -D_GNU_SOURCE -I"$TESTS/../user" -o "$test_dir/table_cost" "$TESTS/bench/table_cost.c" \
	"$BUILD/libheapbpf.a" "${flags[@]}" -liberty -lm -lpthread

end_target() {
	kill -KILL "$target_pid"
	wait "$target_pid" 2>/dev/null || true
	exec {target_in}>&- {target_out}>&-
}

# deep DEPTH RATE: nanoseconds of a pair.
deep() {
	target bench_deep "$1"
	heapbpf_start -q --top 0 -t allocs -r "$2" --max-overhead none -p "$target_pid" -o p.pb.gz
	target_go
	target_await DONE | sed -n 's/^NS //p'
	heapbpf_stop
	end_target
}

# The least of ROUNDS: other work on the machine only adds.
least() {
	sort -g "$1" | head -n 1
}

depths=(0 10 30 100)
for ((round = 1; round <= rounds; round++)); do
	for depth in "${depths[@]}"; do
		deep "$depth" 1 >>"deep.$depth.all"
		deep "$depth" 1024G >>"deep.$depth.none"
	done
done
printf '| frames deeper | ns of a sample | ns per frame |\n|---|---|---|\n'
for depth in "${depths[@]}"; do
	awk -v depth="$depth" -v all="$(least "deep.$depth.all")" -v none="$(least "deep.$depth.none")" \
		-v flat="$(least deep.0.all)" -v flat_none="$(least deep.0.none)" 'BEGIN {
			cost = all - none
			printf "| %d | %.0f |", depth, cost
			if (depth)
				printf " %.0f", (cost - (flat - flat_none)) / depth
			print " |"
		}'
done

printf '\n| unwind table of | rows | ms to build | ms to upload | peak MB |\n|---|---|---|---|---|\n'
for file in /usr/lib/x86_64-linux-gnu/{libc.so.6,libcrypto.so.3,libLLVM-14.so.1,libclang-cpp.so.14} \
	/usr/bin/node; do
	[[ -e $file ]] || continue
	./table_cost "$file" | awk -v name="$(basename "$file")" \
		'{ printf "| %s | %d | %.1f | %.1f | %.0f |\n", name, $1, $2, $3, $4 / 1024 }'
done

# start NAME: milliseconds from the command to the recording of the target.
start() {
	local begin=$EPOCHREALTIME

	heapbpf_start -q --top 0 -p "$target_pid" -o p.pb.gz
	awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f\n", (b - a) * 1e3 }' >>"start.$1"
	awk '$1 == "VmHWM:" { printf "%.0f\n", $2 / 1024 }' "/proc/$heapbpf_pid/status" >>"memory.$1"
	heapbpf_stop
}

# A server without work; a backend of one, if they are here.
serve_redis() {
	redis-server --port 0 --unixsocket "$PWD/socket" --save "" --dir "$PWD" >messages &
	target_pid=$!
	pids+=("$target_pid")
	eventually redis-cli -s socket ping >pong
}

serve_postgres() {
	[[ -d db ]] || postgres_serve
	exec_as_postgres psql -qAt -c 'select pg_backend_pid()' -c 'select pg_sleep(600)' >backend 2>/dev/null &
	pids+=("$!")
	eventually test -s backend
	target_pid=$(head -n 1 backend)
}

servers=()
command -v redis-server >/dev/null && servers+=(redis)
[[ -d /usr/lib/postgresql ]] && servers+=(postgres)
for ((round = 1; round <= rounds; round++)); do
	for server in "${servers[@]}"; do
		"serve_$server"
		start "$server"
		if [[ $server == redis ]]; then
			kill -KILL "$target_pid"
			wait "$target_pid" 2>/dev/null || true
		fi
		rm -f backend
	done
	target bench_deep 0
	start small
	end_target
	target_exec /usr/bin/python3 -c '
import ctypes, glob, sys
for name in ("libLLVM-14.so.1", "libclang-cpp.so.14"):
    for path in glob.glob("/usr/lib/x86_64-linux-gnu/" + name):
        ctypes.CDLL(path)
print("READY", flush=True)
sys.stdin.read(1)'
	start large
	end_target
done
printf '\nFrom the command to the recording: %s ms and %s MB for a small program, %s ms and %s MB for one
with LLVM in it.\n' "$(least start.small)" "$(least memory.small)" "$(least start.large)" \
	"$(least memory.large)"
for server in "${servers[@]}"; do
	printf '%s: %s ms and %s MB (median: %s ms).\n' "$server" "$(least "start.$server")" \
		"$(least "memory.$server")" "$(script_median "start.$server")"
done
