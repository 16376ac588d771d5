#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# heapbpf beside what else there is to profile the heap with, on this machine: each program works for
# some seconds on the wall, alone and under each tool, in turns. Prints markdown tables:
#   speed    in parts of that without the tool
#   added    processor time of the program per pair of malloc and free, for those that do nothing else
#   own      processor time of the tool's processes, start and end included
#   memory   of the tool's processes, and what the program has more, each at its peak
#
#   attached to the running program:
#     heapbpf             all recorded, and within its default budget
#     memleak, bpftrace   tests/bench/peers.sh
#     heaptrack -p        its library, put into the program by gdb
#   from the program's start:
#     heaptrack           as the command
#     jemalloc            MALLOC_CONF=prof:true, a sample per 512 KiB as in heapbpf
#     tcmalloc            HEAPPROFILE: all of the calls, and a file per GB allocated
#     dhat                of valgrind
# Without the tool means alone; for the two allocators, which would make another program of it, the
# same allocator preloaded with its profiler off.
#
#   scripts/bench-peers.sh [SECONDS [ROUNDS [LOAD...]]]   default 10 and 2, and all that can run; as
#                                                         root, after make; an hour
# Peers that are not here are left out; scripts/install-deps.sh --bench installs them. PEERS="NAME..."
# in the environment takes these only (as modes_here names them, jemalloc and tcmalloc with their _off).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
seconds=$(script_rounds "${1:-10}")
rounds=$(script_rounds "${2:-2}")
# shellcheck source=tests/bench/work.sh
. "$TESTS/bench/work.sh"
# shellcheck source=tests/bench/peers.sh
. "$TESTS/bench/peers.sh"
bench_begin
bench_loads "${@:3}"
peer_prefix=("$PWD/spender" "$PWD/spent")

libraries=/usr/lib/x86_64-linux-gnu
jemalloc=$libraries/libjemalloc.so.2
tcmalloc=$libraries/libtcmalloc.so.4
options[heapbpf]="-t heap --max-overhead none"
options[heapbpf_10]="-t heap"
heading=([nothing]="alone, per second" [heapbpf]="heapbpf, all" [heapbpf_10]="heapbpf, 10 %"
	[memleak]=memleak [bpftrace]=bpftrace [heaptrack_p]="heaptrack -p" [heaptrack]=heaptrack
	[jemalloc_off]="jemalloc, per second" [jemalloc]="jemalloc's profiler"
	[tcmalloc_off]="tcmalloc, per second" [tcmalloc]="tcmalloc's profiler" [dhat]=dhat)
baseline=([jemalloc]=jemalloc_off [tcmalloc]=tcmalloc_off)
everywhere=([memleak]=1 [bpftrace]=1)

# The names of the modes that this machine has the tools for, one a line.
modes_here() {
	printf '%s\n' nothing heapbpf heapbpf_10
	peers_here
	if command -v heaptrack >/dev/null; then
		command -v gdb >/dev/null && echo heaptrack_p
		echo heaptrack
	fi
	[[ -e $jemalloc ]] && printf '%s\n' jemalloc_off jemalloc
	[[ -e $tcmalloc ]] && printf '%s\n' tcmalloc_off tcmalloc
	command -v valgrind >/dev/null && echo dhat
	return 0
}

# The server of postgres goes on from one mode to the next, so it cannot be started with a tool.
can_watch() {
	case $1/$2 in
	redis/memleak | pipelined/memleak) return 1 ;;
	postgres/heaptrack | postgres/jemalloc* | postgres/tcmalloc* | postgres/dhat) return 1 ;;
	esac
}

# --- from the program's start ----------------------------------------------------------------------

prepare_jemalloc_off() {
	launch=(env "LD_PRELOAD=$jemalloc")
}

prepare_jemalloc() {
	launch=(env "LD_PRELOAD=$jemalloc" MALLOC_CONF=prof:true)
}

prepare_tcmalloc_off() {
	launch=(env "LD_PRELOAD=$tcmalloc")
}

prepare_tcmalloc() {
	launch=(env "LD_PRELOAD=$tcmalloc" "HEAPPROFILE=$PWD/heapprofile")
}

gone_tcmalloc() {
	rm -f heapprofile.*
}

prepare_dhat() {
	launch=(valgrind -q --tool=dhat "--dhat-out-file=$PWD/dhat.out" --soname-synonyms=somalloc=libjemalloc.so.2)
}

prepare_heaptrack() {
	# shellcheck disable=SC2016 # for that shell
	launch=(sh -c 'exec "$@" 2>heaptrack.err' sh "${peer_prefix[@]}" heaptrack -o "$PWD/heaptrack.out")
}

# The descendants of a process, one a line.
descendants() {
	local child children

	read -ra children <"/proc/$1/task/$1/children" || true
	for child in "${children[@]}"; do
		echo "$child"
		descendants "$child"
	done
}

# Only the program itself has been told where to write.
find_program() {
	local pid

	for pid in $(descendants "$1"); do
		if grep -qz '^DUMP_HEAPTRACK_OUTPUT=' "/proc/$pid/environ"; then
			target_pid=$pid
			return 0
		fi
	done
	return 1
}

watch_heaptrack() {
	tool_pid=$target_pid
	eventually find_program "$tool_pid"
}

# Memory of heaptrack's processes, which run side by side, in `tool_kb`; processor time of the program,
# which is one of theirs, in `program_ns`.
unwatch_heaptrack() {
	local pid

	program_ns=$(cpu_ns "$target_pid")
	tool_kb=0
	for pid in $(descendants "$tool_pid"); do
		((pid == target_pid)) || tool_kb=$((tool_kb + $(peak_kb "$pid")))
	done
}

# It ends with the program; then it has written what it knows. One that never got to the program would
# wait for ever.
gone_heaptrack() {
	local rest

	if ! timeout 20 tail --pid="$tool_pid" -f /dev/null; then
		mapfile -t rest < <(descendants "$tool_pid")
		kill -KILL "${rest[@]}" 2>/dev/null || true
	fi
	wait "$tool_pid" 2>/dev/null || true
	awk -v ns="$program_ns" -v kb="$tool_kb" '{ printf "%.3f %d\n", $1 - ns / 1e9, kb }' spent >own
	mv own spent
	bench_spent
	rm -f heaptrack.out*
}

# --- attached --------------------------------------------------------------------------------------

unwatch_memleak() {
	unwatch_peer || true
	bench_spent
}

unwatch_bpftrace() {
	unwatch_peer || true
	bench_spent
}

injected() {
	grep -q '^injection finished' peer.out
}

watch_heaptrack_p() {
	"${peer_prefix[@]}" heaptrack -o "$PWD/heaptrack.out" -p "$target_pid" >peer.out 2>&1 </dev/null &
	tool_pid=$!
	pids+=("$tool_pid")
	eventually injected
}

unwatch_heaptrack_p() {
	unwatch_heaptrack
	program_ns=0
}

gone_heaptrack_p() {
	gone_heaptrack
}

# --- the bench -------------------------------------------------------------------------------------

mapfile -t modes < <(modes_here)
if [[ -n ${PEERS:-} ]]; then
	read -ra modes <<<"nothing $PEERS"
fi
tools=()
for mode in "${modes[@]}"; do
	[[ $mode == nothing || $mode == *_off ]] || tools+=("$mode")
done

cell_speed() {
	if [[ $2 == nothing || $2 == *_off ]]; then
		cell_per_second "$@"
	else
		cell_ratio "$@"
	fi
}

bench_rounds "$rounds"
bench_header "$rounds"
printf '%s\n' "In parts of what the program does alone; of that with the same allocator preloaded for jemalloc and tcmalloc."
bench_table "speed, in parts of that without the tool" cell_speed "${modes[@]}"
loads_all=("${loads[@]}")
if [[ " ${loads[*]} " == *" tight "* ]]; then
	loads=(tight)
	bench_table "processor time added to a pair, ns" cell_added_ns "${tools[@]}"
	loads=("${loads_all[@]}")
fi
bench_table "the tool's own processor time" cell_tool_cpu "${tools[@]}"
bench_table "memory: the tool + more in the program, MB" cell_memory "${tools[@]}"
