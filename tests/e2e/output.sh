#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Files and streams: where things go, whose they are, and that data and talk never mix.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# short ARG...: a recording without load.
short() {
	target freeall
	heapbpf_run -p "$target_pid" -d 50ms "$@"
	whole
}

test_default_name() {
	short
	reader valid "heapbpf.freeall.$target_pid.pb.gz"
	equal "$(stat -c %a "heapbpf.freeall.$target_pid.pb.gz")" 600 "mode"
}

test_default_name_of_text() {
	short --text
	head -n 1 "heapbpf.freeall.$target_pid.txt" | grep '^heap profile: ' >/dev/null
}

test_name_is_tame() {
	cp "$TARGETS/freeall" "./a b;c"
	target_exec "./a b;c"
	heapbpf_run -p "$target_pid" -d 50ms
	whole
	equal "$(find . -name 'heapbpf.*' | wc -l)" 1 "files"
	reader valid ./heapbpf.*.pb.gz
}

test_named_file() {
	short -o some.file
	reader valid some.file
	equal "$(find . -name '*some*')" ./some.file "nothing beside it"
}

test_replaces_a_file_at_once() {
	echo old >some.file
	short -o some.file
	reader valid some.file
}

test_directory() {
	mkdir made
	short -o made/
	reader valid "made/heapbpf.freeall.$target_pid.pb.gz"
}

test_owner_of_sudo() {
	export SUDO_UID=65534 SUDO_GID=65534
	short -o p.pb.gz
	equal "$(stat -c %u:%a p.pb.gz)" 65534:600 "owner and mode"
}

# stdout is data and nothing else; the talk is on stderr.
test_stdout() {
	target freeall
	heapbpf_run -p "$target_pid" -d 50ms -o -
	whole
	reader valid out
	matches "$(<err)" '^recording' "stderr"
	equal "$(find . -name 'heapbpf*')" "" "files"
	"$HEAPBPF" -p "$target_pid" -d 50ms -o - 2>/dev/null | reader valid -
	heapbpf_run -p "$target_pid" -d 50ms -o /dev/stdout
	reader valid out
}

test_stdout_into_pprof() {
	go_command >/dev/null
	record freeall -o p.pb.gz
	target freeall
	heapbpf_start -p "$target_pid" -r 1 -o -
	target_step
	heapbpf_stop
	says ' site_freed$' go_pprof -top -sample_index=alloc_objects out 2>/dev/null
}

test_table() {
	record family
	matches "$(<out)" 'site_realloc_grow' "table"
	matches "$(<out)" '6MB' "table"
}

# What the standard library allocates for a C++ program is the program's.
test_table_names_own_code() {
	record family_cxx --top 100
	# Rows are sites, and nothing else.
	equal "$(grep -oE '  (site_[a-z_]+|main|std::.*)  [^ ]+:[0-9]+$' out | awk '{ print $1 }' |
		sed 's/^site_.*/site/' | sort -u)" site "functions in the rows"
	matches "$(<out)" '  site_vector  family_cxx\.cc:' "table"
}

test_no_table() {
	record family --top 0
	if grep site_ out err; then
		fail "a table in spite of --top 0"
	fi
}

# Who asked for fewer words still hears why the status is not 0.
test_losses_without_table() {
	local option

	for option in -q --top=0; do
		target family
		heapbpf_start "$option" -p "$target_pid" -r 1 --max-sites 1 -o p.pb.gz
		target_step
		heapbpf_stop
		equal "$heapbpf_status" 1 "status"
		says '^heapbpf: lost: [0-9]+ sites_full: .* --max-sites or memory exhausted$' cat err
		equal "$(cat out)" "" "standard output"
		target_end
	done
}

test_rows_of_table() {
	record family --top 3
	equal "$(sed -n '/INUSE/,/total/p' out | grep -c 'site_')" 3 "rows by in-use bytes"
	equal "$(sed -n '/^ *ALLOC/,/total/p' out | grep -c 'site_')" 3 "rows by allocated bytes"
}

test_recording_line() {
	short
	equal "$(grep -c '^recording' err)" 1 "lines that begin with recording"
}

test_quiet() {
	short -q -o p.pb.gz
	equal "$(<err)" "" "stderr"
	reader valid p.pb.gz
}

test_verbose() {
	short -v -o p.pb.gz
	(($(lines err) > 1))
	reader valid p.pb.gz
}

test_verb_may_be_named() {
	target freeall
	heapbpf_run record -p "$target_pid" -d 50ms -o p.pb.gz
	whole
	reader valid p.pb.gz
}

test_times_are_true() {
	local before after start

	before=$(date +%s%N)
	short -o p.pb.gz
	after=$(date +%s%N)
	start=$(reader facts p.pb.gz | sed -n 's/^time_nanos //p')
	((before < start && start < after)) || fail "started at $start, not in $before..$after"
}

test_help_and_version() {
	heapbpf_run --help
	equal "$heapbpf_status" 0 "status"
	matches "$(<out)" '--ready-fd' "help"
	equal "$(<err)" "" "stderr"
	heapbpf_run -h
	equal "$heapbpf_status" 0 "status"
	heapbpf_run --version
	equal "$heapbpf_status" 0 "status"
	matches "$(<out)" '^heapbpf [0-9]+\.[0-9]+\.[0-9]+$' "version"
}

test_check() {
	target freeall
	heapbpf_run check
	equal "$heapbpf_status" 0 "status"
	heapbpf_run check -p "$target_pid"
	equal "$heapbpf_status" 0 "status"
	matches "$(<out)" 'malloc' "check"
	matches "$(<out)" 'reallocarray' "check"
	matches "$(<out)" 'emulated' "check"
	matches "$(<out)" 'libc\.so\.6' "check"
}

test_install() {
	make -s -C "$TESTS/.." BUILD="$BUILD" DESTDIR="$test_dir/root" PREFIX=/usr install
	equal "$(find root -type f | sort | tr '\n' ' ')" \
		"root/usr/bin/heapbpf root/usr/share/bash-completion/completions/heapbpf root/usr/share/man/man8/heapbpf.8 " \
		"installed files"
	root/usr/bin/heapbpf --version >/dev/null
	make -s -C "$TESTS/.." BUILD="$BUILD" DESTDIR="$test_dir/root" PREFIX=/usr uninstall
	equal "$(find root -type f)" "" "files after uninstall"
}

e2e_main "$@"
