#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Libraries that come and go while we record: what is mapped at an address now never lends its name
# to what was there before.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# has_seen N: heapbpf has read the mappings since the dynamic linker's Nth call for debuggers.
has_seen() {
	local seen

	seen=$(sed -n "s/.*process $target_pid: mappings read after \([0-9]*\) changes.*/\1/p" err |
		tail -n 1)
	((${seen:-0} >= $1))
}

# go_when_seen N: the target says LOADED; lets it go on after that. glibc calls twice, at the
# beginning and at the end, for each dlopen, dlmopen and dlclose; one look may be for both.
go_when_seen() {
	target_await LOADED
	eventually has_seen "$1"
	target_go
}

# objects SIZE [REGEX]: allocations of blocks of SIZE whose stack, leaf first, matches.
objects() {
	reader stacks p.pb.gz | awk -v size="$1" -v regex="${2:-.}" '
		$5 == size && $6 ~ regex { sum += $1 } END { print sum + 0 }'
}

check_plugins() {
	local whole_stack=';run;main;.*_start$'

	need_tier "$1"
	target plugins
	heapbpf_start -v -p "$target_pid" -r 1 -o p.pb.gz --tier "$1"
	target_go
	go_when_seen 2 >/dev/null
	go_when_seen 6 >truth
	matches "$(<truth)" 'PLACE same' "addresses of the two libraries"
	target_await DONE >/dev/null
	heapbpf_stop
	whole
	reader valid p.pb.gz
	equal "$(objects 1001 "^plugin_a$whole_stack")" 1000 "blocks of plugin_a, seen"
	equal "$(objects 1003 "^plugin_b$whole_stack")" 1000 "blocks of plugin_b, seen"
	equal "$(objects 1002)" 1000 "blocks of plugin_b, new"
	equal "$(objects 1002 plugin_a)" 0 "blocks of plugin_b under the name of plugin_a"
	equal "$(objects 1004)" 30 "blocks of plugin_a by turns"
	equal "$(objects 1004 plugin_b)" 0 "of them under the name of plugin_b"
	equal "$(objects 1005)" 30 "blocks of plugin_b by turns"
	equal "$(objects 1005 plugin_a)" 0 "of them under the name of plugin_a"
	# A stack that is cut says so.
	equal "$(objects 1002 "$whole_stack|\\[(stale_mappings|no_mapping)\\]$")" 1000 "ends of stacks"
	target_end
}

test_plugins_session() {
	check_plugins session
}

test_plugins_multi() {
	check_plugins multi
}

test_plugins_perf() {
	check_plugins perf
}

# check_namespace LIBRARY: in a namespace of its own, with what it needs.
check_namespace() {
	target namespaces "$TARGETS/$1.so"
	heapbpf_start -v -p "$target_pid" -r 1 -o p.pb.gz
	target_go
	target_await LOADED
	eventually looked_at_all
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

# The mappings are known, and the last look found nothing that was new.
looked_at_all() {
	known "$target_pid" && tail -n 1 err | grep 'mappings read after' >/dev/null
}

# A second libc in the process, of the same file, is probed as well; its blocks are its own.
test_second_libc() {
	check_namespace namespaces_library
	has_seen 2 || fail "the second one was never looked at"
}

# An allocator that comes with a library is probed when that is loaded.
test_library_with_allocator() {
	check_namespace namespaces_own
	says '/namespaces_own.so is probed$' cat err
}

e2e_main "$@"
