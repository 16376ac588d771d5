#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes that nobody named: chosen by what they are, and children.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# joined PID: its probes are in place, and its mappings known.
joined() {
	grep "^heapbpf: process $1: .*/libc.so.6 is probed" err >/dev/null && known "$1"
}

# --- chosen -------------------------------------------------------------------------------------

# Only the chosen ones are probed; one that comes later joins.
test_comm() {
	local early early_in early_out late

	mkdir prof
	own_family
	target family
	target_exec "./$name"
	early=$target_pid early_in=$target_in early_out=$target_out
	heapbpf_start -v --comm "^$name$" -r 1 -o prof/
	target_exec "./$name"
	late=$target_pid
	eventually joined "$late"
	target_step
	mv truth truth.late
	target_in=$early_in target_out=$early_out
	target_step
	heapbpf_stop
	whole
	exact_of "$early"
	mv truth.late truth
	exact_of "$late"
	equal "$(ls prof)" heapbpf.processes.tsv "what else is in the directory"
}

test_user() {
	mkdir prof
	own_family
	chmod 755 . "$name"
	target_exec setpriv --reuid=65533 --clear-groups "./$name"
	heapbpf_start --user 65533 -r 1 -o prof/
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
}

make_cgroup() {
	local mount

	while read -r mount; do
		cgroup=$mount/heapbpf-test-$$
		mkdir -p "$cgroup/below" 2>/dev/null && return
	done < <(awk '$3 ~ /^cgroup/ { print $2 }' /proc/self/mounts)
	skip "no control group can be made"
}

teardown() {
	if [[ -n ${cgroup:-} ]]; then
		rmdir "$cgroup/below" "$cgroup" 2>/dev/null || true
	fi
}

test_cgroup() {
	make_cgroup
	mkdir prof
	own_family
	target family
	target_exec "./$name"
	echo "$target_pid" >"$cgroup/below/cgroup.procs"
	heapbpf_start --cgroup "$cgroup" -r 1 -o prof/
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
	target_end
}

# A group that is made later, as that of a service that starts again.
test_cgroup_of_later() {
	make_cgroup
	rmdir "$cgroup/below" "$cgroup"
	mkdir prof
	own_family
	heapbpf_start -a --cgroup "$cgroup" -r 1 -o prof/
	mkdir -p "$cgroup/below"
	target_spawn bash -c "echo \$\$ >$cgroup/below/cgroup.procs; exec ./$name"
	target_await READY >/dev/null
	target_step
	heapbpf_stop
	whole
	[[ -e prof/heapbpf.$name.$target_pid.pb.gz ]] || fail "it is not recorded"
	target_end
}

# What is chosen but cannot be profiled is counted.
# has_ended NAME: a process of that name is a zombie.
has_ended() {
	cat /proc/[0-9]*/stat 2>/dev/null | grep "^[0-9]* ($1) Z" >/dev/null
}

# not_chosen OPTION...: with -a all processes meet probes, and are gone when they are looked at.
not_chosen() {
	mkdir prof
	cp "$TARGETS/begin" "no$$"
	heapbpf_start -a -o prof/ "$@"
	kill -STOP "$heapbpf_pid"
	for _ in 1 2 3; do
		"./no$$" return >/dev/null
	done
	# A shell would take note of its child's end: it ends when there is none any more.
	mkfifo go
	{ (read -r _ <go; exec "./no$$" return >/dev/null) & exec sleep 1000; } &
	pids+=("$!")
	eventually grep -qx sleep "/proc/$!/comm"
	echo >go
	eventually has_ended "no$$"
	kill -CONT "$heapbpf_pid"
	heapbpf_stop
	whole
	if grep '^not profiled: .*\(zombies\|could be probed\)' out; then
		fail "who was not chosen is counted as if he was"
	fi
}

# Names are known of all of them.
test_not_chosen_by_name() {
	not_chosen --comm "^hb$$\$"
	! grep '^not profiled:' out || fail "who was not chosen is counted"
}

# Control groups only of zombies.
test_not_chosen_by_group() {
	make_cgroup
	not_chosen --cgroup "$cgroup"
	says '^not profiled: .*[0-9] ended before it was known whether they are chosen' cat out
}

test_skipped() {
	mkdir prof
	own_family
	target_exec "./$name"
	heapbpf_start --comm "^kthreadd$|^$name$" -r 1 -o prof/
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
	says '^not profiled: 1 kernel threads$' cat out
}

test_nobody() {
	mkdir prof
	heapbpf_run --comm '^nobody-has-this$' -o prof/
	equal "$heapbpf_status" 2 "exit status"
	equal "$(lines err)" 1 "lines of the message"
	says 'no process is chosen' cat err
	equal "$(ls prof)" "" "what is in the directory"
}

test_nobody_leaves_nothing() {
	mkdir here
	cd here
	heapbpf_run --comm '^nobody-has-this$'
	cd ..
	equal "$heapbpf_status" 2 "exit status"
	equal "$(echo here/heapbpf.*)" 'here/heapbpf.*' "what is left"
}

# --- children -----------------------------------------------------------------------------------

# Each child is a process with a profile; what it has of its parent is its parent's.
check_children() {
	local pid

	mkdir prof
	name=children
	target children wait "$1"
	heapbpf_start -v --follow -p "$target_pid" -r 1 -o prof/
	target_go
	target_await FORKED >numbers
	mapfile -t children < <(awk '$1 == "CHILD" { print $2 }' numbers)
	for pid in "${children[@]}"; do
		eventually joined "$pid"
	done
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
	for pid in "${children[@]}"; do
		mv "truth.$pid" truth
		exact_of "$pid" "${@:2}"
	done
}

# They allocate, move and free in full swing while their probes come: what was seen to be allocated
# has its end seen as well.
check_busy() {
	local child children

	need_tier "$1"
	mkdir prof
	target busy
	heapbpf_start -v --tier "$1" -p "$target_pid" --follow -r 1 -o prof/
	target_go
	mapfile -t children < <(target_await FORKED | sed 's/^CHILD //')
	for child in "${children[@]}"; do
		eventually joined "$child"
	done
	target_go
	target_await DONE
	heapbpf_stop
	whole
	for child in "${children[@]}"; do
		equal "$(reader total "prof/heapbpf.busy.$child.pb.gz" inuse_objects)" 0 \
			"objects in use of process $child"
	done
	target_end
}

test_busy_session() {
	check_busy session
}

test_busy_multi() {
	check_busy multi
}

test_busy_perf() {
	check_busy perf
}

test_children_forked() {
	check_children fork
}

test_children_not_followed() {
	mkdir prof
	name=children
	target children now fork
	heapbpf_start -p "$target_pid" -r 1 -o prof/
	target_step
	heapbpf_stop
	whole
	exact_of "$target_pid"
	equal "$(ls prof)" "" "other profiles"
}

# --- more than there is room for ----------------------------------------------------------------

test_max_processes_named() {
	local first

	target rounds
	first=$target_pid
	target rounds
	heapbpf_run -p "$first,$target_pid" --max-processes 1 -o .
	equal "$heapbpf_status $(lines err)" "2 1" "status and lines on stderr"
	says "process $target_pid: --max-processes 1 reached; give a larger number\$" cat err
	heapbpf_start -p "$first,$target_pid" --max-processes 2 -r 1 -o ./
	heapbpf_stop
	whole
}

test_max_processes_chosen() {
	mkdir prof
	own_family
	target_exec "./$name"
	target_exec "./$name"
	heapbpf_start --comm "^$name$" --max-processes 1 -r 1 -o prof/
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	says '^not profiled: 1 too many: --max-processes reached$' cat out
}

# The parent is whole, each of the children is counted.
test_max_processes_children() {
	mkdir prof
	name=children
	target children now fork
	heapbpf_start --follow -p "$target_pid" --max-processes 1 -r 1 -o prof/
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	exact_of "$target_pid"
	equal "$(ls prof)" "" "other profiles"
	says '^lost: 3 procs_full:' cat out
}

# A program whose children would be followed, if that were not taken back.
test_children_of_a_command_not_followed() {
	mkdir prof
	heapbpf_status=0
	"$HEAPBPF" --no-follow -r 1 -o prof/ -- "$TARGETS/children" now fork <<<gg >told 2>err ||
		heapbpf_status=$?
	whole
	grep '^SITE' told >truth
	equal "$(grep -c '^CHILD' told)" 3 "children"
	mv prof/heapbpf.children.*.pb.gz p.pb.gz
	exact_if --only
	equal "$(ls prof)" "" "other profiles"
}

e2e_main "$@"
