# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Other tools that probe a running process, for bench.sh and bench-peers.sh; sourced after
# tests/lib.sh. watch_NAME begins to watch `target_pid`, unwatch_NAME ends that; peers_here tells which
# there are.
#   memleak    of bcc; the one for libbpf (Debian 13: package libbpf-tools) or, with kernel headers, the
#              one in python (bpfcc-tools); or the command in the environment's MEMLEAK. It wants malloc
#              and mmap in one library, so it can watch libc's malloc only
#   bpftrace   a script with memleak's layout: entry and return of malloc, calloc and realloc, entry of
#              free, a stack per object

# shellcheck disable=SC2154 # tests/lib.sh has target_pid
# Words before a peer's command; to its end SIGTERM leads if there are any, SIGKILL if not.
peer_prefix=()
peer_pid=0
breakpoints_before=0
memleak_command=()
if [[ -n ${MEMLEAK:-} ]]; then
	read -ra memleak_command <<<"$MEMLEAK"
elif command -v memleak-libbpf >/dev/null; then
	memleak_command=(memleak-libbpf)
elif command -v memleak-bpfcc >/dev/null && [[ -d /lib/modules/$(uname -r)/build ]]; then
	memleak_command=(memleak-bpfcc)
fi

# The names of those that can run, one a line.
peers_here() {
	((${#memleak_command[@]})) && echo memleak
	command -v bpftrace >/dev/null && echo bpftrace
	return 0
}

# The file that the target's malloc is in.
allocator_path() {
	awk '$6 ~ /libjemalloc/ { found = $6 } $6 ~ /libc\.so/ && !found { found = $6 } END { print found }' \
		"/proc/$target_pid/maps"
}

# The bytes of the allocator's code that differ from the file: breakpoints.
breakpoints() {
	local range offset path start length

	read -r range _ offset _ _ path < <(awk -v path="$(allocator_path)" '$2 ~ /x/ && $6 == path' \
		"/proc/$target_pid/maps")
	start=$((16#${range%-*}))
	length=$((16#${range#*-} - start))
	cmp -l <(dd "if=/proc/$target_pid/mem" iflag=skip_bytes,count_bytes bs=64K status=none \
		"skip=$start" "count=$length") \
		<(dd "if=$path" iflag=skip_bytes,count_bytes bs=64K status=none \
			"skip=$((16#$offset))" "count=$length") | wc -l
}

# A peer does not say when it is ready: all its breakpoints are there when their number, beyond those of
# others at least that of malloc, calloc, realloc and free, stays for a while.
peer_settled() {
	local count tries

	count=$(breakpoints)
	((count >= breakpoints_before + 4)) || return 1
	for ((tries = 0; tries < 10; tries++)); do
		read -rt 0.05 <> <(:) || true
		(($(breakpoints) == count)) || return 1
	done
}

breakpoints_gone() {
	(($(breakpoints) <= breakpoints_before))
}

watch_peer() {
	breakpoints_before=$(breakpoints) || true
	"${peer_prefix[@]}" "$@" >peer.out 2>&1 </dev/null &
	peer_pid=$!
	pids+=("$peer_pid")
	eventually peer_settled
}

unwatch_peer() {
	breakpoints_before=$(breakpoints) || true
	local signal=KILL

	((${#peer_prefix[@]})) && signal=TERM
	kill -"$signal" "$peer_pid"
	wait "$peer_pid" 2>/dev/null || true
	eventually breakpoints_gone
}

watch_memleak() {
	watch_peer "${memleak_command[@]}" -p "$target_pid" 3600
}

unwatch_memleak() {
	unwatch_peer
}

watch_bpftrace() {
	sed "s|LIBC|$(allocator_path)|g" >peer.bt <<-'END'
		uprobe:LIBC:malloc { @size[tid] = arg0; }
		uprobe:LIBC:calloc { @size[tid] = arg0 * arg1; }
		uprobe:LIBC:realloc { @size[tid] = arg1; delete(@bytes[arg0]); delete(@stack[arg0]); }
		uretprobe:LIBC:malloc, uretprobe:LIBC:calloc, uretprobe:LIBC:realloc /@size[tid]/ {
			@bytes[retval] = @size[tid];
			@stack[retval] = ustack;
			delete(@size[tid]);
		}
		uprobe:LIBC:free { delete(@bytes[arg0]); delete(@stack[arg0]); }
	END
	watch_peer env BPFTRACE_MAP_KEYS_MAX=1000000 bpftrace -p "$target_pid" peer.bt
}

unwatch_bpftrace() {
	unwatch_peer
}
