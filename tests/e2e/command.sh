#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs that heapbpf starts: nothing is missed from the first constructor to the end, nothing of
# ours is in them, and they survive us.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

BEGIN=$TARGETS/begin

# runs WORD...: `heapbpf WORD...` to its end; what the program says is in `spoken`, its truth (summed
# over its images) in `truth`.
runs() {
	heapbpf_status=0
	timeout "$PATIENCE" "$HEAPBPF" "$@" >spoken 2>err </dev/null || heapbpf_status=$?
	awk '$1 == "SITE" { for (i = 3; i <= 6; i++) sum[$2, i] += $i; names[$2] }
		END { for (n in names) print "SITE", n, sum[n, 3], sum[n, 4], sum[n, 5], sum[n, 6] }' \
		spoken >truth
}

# all_exact SITE...: the last run lost nothing and told of each of these sites.
all_exact() {
	local site

	whole
	for site; do
		grep -q "^SITE $site " truth || fail "no truth of $site: $(<spoken)"
	done
	exact
}

# Each stack of the last run is followed to its root. gcc's crt files may lack call frame information:
# the constructor of a static program that registers its own ends there, and says so.
all_complete() {
	local cut

	cut=$(reader stacks p.pb.gz | grep '\[[a-z_]*\]$' | grep -v ';frame_dummy;\[no_row\]$' || true)
	equal "$cut" "" "stacks that are cut"
	says '^stacks: ' cat err
}

# built NAME COMPILER FLAG...: a variant of the target `begin`.
built() {
	local name=$1

	shift
	"$1" -O2 -g -fno-builtin -pthread -o "$name" "$TESTS/targets/begin.c" "${@:2}"
}

# --- from the first allocation -----------------------------------------------------------------

check_tier() {
	need_tier "$1"
	runs --tier "$1" -r 1 -o p.pb.gz -- "$BEGIN" return
	all_exact site_first site_main site_last
	all_complete
	says "recording [0-9]+ \(begin\) by $1 probes" cat err
}

test_session() {
	check_tier session
}

test_multi() {
	check_tier multi
}

test_perf() {
	check_tier perf
}

test_allocs_only() {
	runs -t allocs -r 1 -o p.pb.gz -- "$BEGIN" return
	whole
	exact
}

test_not_pie() {
	built begin cc -no-pie
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_first site_main
	all_complete
}

test_static() {
	built begin cc -static
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_first site_main
	all_complete
}

test_static_pie() {
	built begin cc -static-pie
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_first site_main
	all_complete
}

test_musl() {
	need musl-gcc
	built begin musl-gcc
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_first site_main
}

test_musl_static() {
	need musl-gcc
	built begin musl-gcc -static
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_first site_main
}

# The dynamic linker as the program.
test_linker_executed() {
	local linker

	linker=$(readelf -l "$BEGIN" | sed -n 's/.*program interpreter: \(.*\)]$/\1/p')
	runs -r 1 -o p.pb.gz -- "$linker" "$BEGIN" return
	all_exact site_first site_main
}

test_library() {
	built begin cc -DWITH_LIBRARY "$TARGETS/libbegin.so"
	runs -r 1 -o p.pb.gz -- ./begin return
	all_exact site_library site_first site_main
	all_complete
}

# A library that nothing in the program names, and that tells no truth.
test_preloaded() {
	runs -r 1 -o p.pb.gz -- env "LD_PRELOAD=$TARGETS/libbegin.so" "$BEGIN" return
	all_exact site_first site_main
	all_complete
	echo 'SITE site_library 71 2344 70 2310' >truth
	exact
}

# --- images ------------------------------------------------------------------------------------

# check_chain ARG...: images of every kind, one after the other in one process.
check_chain() {
	local chain=("$BEGIN" exec ./static exec "$BEGIN" thread-exec ./not_pie exec ./static thread-exec)

	built static cc -static
	built not_pie cc -no-pie
	runs -r 1 -o p.pb.gz "$@" -- "${chain[@]}" "$BEGIN" return
	all_exact site_first site_main site_last
	all_complete
	if command -v musl-gcc >/dev/null; then
		built musl musl-gcc
		runs -r 1 -o p.pb.gz "$@" -- "${chain[@]}" ./musl exec "${chain[@]}" ./musl return
		all_exact site_first site_main site_last
	fi
}

test_chain_session() {
	need_tier session
	check_chain --tier session
}

test_chain_multi() {
	need_tier multi
	check_chain --tier multi
}

test_chain_perf() {
	check_chain --tier perf
}

# Programs that execute others; the profile has the name of the last.
test_wrappers() {
	# Expanded by the script.
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nexec "$@"\n' >script
	chmod +x script
	runs -r 1 -- ./script env A=b sh -c "exec '$BEGIN' return"
	mv heapbpf.begin.[0-9]*.pb.gz p.pb.gz
	all_exact site_first site_main
}

test_in_one_word() {
	ln -s "$BEGIN" 'be gin'
	runs -r 1 -o p.pb.gz -c "'./be gin'   return"
	all_exact site_first site_main
	rm p.pb.gz
	refused 64 "-c .*: give a program .* sh -c" -c 'true; true'
	# Not expanded by anybody.
	# shellcheck disable=SC2016
	refused 64 "-c .*: give a program" -c '$(echo true)'
	refused 64 "-c .*: give a program" -c ' '
}

test_other_user() {
	need setpriv
	chmod 755 .
	cp "$BEGIN" begin
	runs -r 1 -o p.pb.gz -- setpriv --reuid=65534 --regid=65534 --clear-groups ./begin return
	all_exact site_first site_main
}

# Its children are not ours, whatever they do.
test_children() {
	# Expanded by the command.
	# shellcheck disable=SC2016
	runs -r 1 -o p.pb.gz -- sh -c '/bin/true; /bin/true & wait; echo | cat; exec "$0" return' "$BEGIN"
	all_exact site_first site_main
}

# --- ends --------------------------------------------------------------------------------------

test_ends_by_signal() {
	runs -r 1 -o p.pb.gz -- "$BEGIN" signal
	all_exact site_first site_main
}

test_ends_in_thread() {
	runs -r 1 -o p.pb.gz -- "$BEGIN" thread
	all_exact site_first site_main site_last
}

# The shortest programs there are.
test_short() {
	local i

	for ((i = 0; i < 5; i++)); do
		runs -r 1 -o p.pb.gz -- /bin/true
		whole
		reader valid p.pb.gz
		runs -r 1 -o p.pb.gz -- sh -c :
		whole
		(($(reader total p.pb.gz alloc_objects) > 0)) || fail "a shell without allocations"
	done
}

# preserved STATUS WORD...: with the option, heapbpf's exit status is that of the command.
preserved() {
	local want=$1

	shift
	runs --preserve-status --top 0 -o p.pb.gz -- "$@"
	equal "$heapbpf_status" "$want" "status of $*"
}

test_status() {
	runs --top 0 -o p.pb.gz -- sh -c 'exit 7'
	equal "$heapbpf_status" 0 "status without the option"
	preserved 7 sh -c 'exit 7'
	preserved 0 true
	# Expanded by the command.
	# shellcheck disable=SC2016
	preserved 143 sh -c 'kill -TERM $$'
	preserved 139 "$BEGIN" signal
	preserved 127 no-such-program
	preserved 126 /etc/passwd
}

# refused STATUS REGEX WORD...: one line, no file, and nothing was run.
refused() {
	local want=$1 regex=$2

	shift 2
	runs "$@"
	equal "$heapbpf_status" "$want" "status of $*"
	equal "$(lines err)" 1 "lines on stderr of $*: $(<err)"
	matches "$(<err)" "^heapbpf: .*$regex" "stderr of $*"
	equal "$(<spoken)" "" "stdout of $*"
	equal "$(find . -name '*.gz*')" "" "files left by $*"
}

test_bad_commands() {
	: >plain
	printf '#!/no/such/interpreter\n' >script
	chmod +x script
	refused 2 'cannot execute no-such-program: .*PATH' -- no-such-program
	refused 2 'cannot execute \./no-such: No such file' -- ./no-such
	refused 2 'cannot execute \./plain: Permission denied' -- ./plain
	refused 2 'cannot execute /tmp: Is a directory' -- /tmp
	refused 2 'cannot execute \./script: its interpreter' -- ./script
	refused 2 'no/such/dir' -o no/such/dir/ -- "$BEGIN" return
	refused 2 'ready-fd' -q --ready-fd 77 -- "$BEGIN" return
}

test_bad_usage() {
	refused 64 'program' --
	refused 64 'program' -r 1 --
	refused 64 'not both' -p 1 -- true
	refused 64 'not both' -p 1 -c true
	refused 64 'which program' -c true -- true
	refused 64 'empty' -- ''
	refused 64 'check' check -- true
	refused 64 'preserve-status' --preserve-status -p 1
	refused 64 'one file' -t heap,allocs -o file -- true
	refused 64 'unknown command true' true
}

# A program that cannot be profiled does not run.
test_no_allocator() {
	built hidden cc -static -s
	refused 2 'allocator' -- ./hidden wait
}

# Its dynamic linker gives up before there is anything to record.
test_library_missing() {
	cp "$TARGETS/libbegin.so" .
	built begin cc -DWITH_LIBRARY ./libbegin.so
	rm libbegin.so
	runs --preserve-status -o p.pb.gz -- ./begin return
	equal "$heapbpf_status" 127 "status of the dynamic linker"
	says '^heapbpf: process [0-9]* .begin. ended before' cat err
	equal "$(find . -name '*.gz*')" "" "files left"
}

# --- what the program sees ---------------------------------------------------------------------

# Its state is that of a program that we have not started.
test_untouched() {
	cat >look <<-'EOF'
		grep -E '^(Sig(Blk|Ign)|Threads|TracerPid|Seccomp|CapEff)' /proc/self/status
		ls /proc/self/fd
		ulimit -Sn
		ulimit -Sl
		ps -o pgid=,sid= -p $$
		pwd
		env | grep -vE '^(_|SHLVL|PWD|OLDPWD)='
	EOF
	(
		ulimit -Sn 500
		trap '' PIPE HUP
		set -m
		bash look >without
		"$HEAPBPF" -q --ready-fd 9 -o p.pb.gz -- bash look >with 9>ready
	)
	sed -i '/^ *[0-9]* *[0-9]*$/s/^ *[0-9]*//' with without
	diff without with
	equal "$(wc -c <ready)" 1 "bytes of readiness"
}

# Closed streams are closed, and what is not recorded on the standard output does not come there.
test_streams() {
	echo in >in
	"$HEAPBPF" -r 1 -o p.pb.gz -- sh -c 'cat; echo out; echo error >&2' <in >out 2>err
	equal "$(<out)" $'in\nout' "standard output"
	says '^error$' cat err
	says 'stacks: ' cat err
	"$HEAPBPF" -q --top 0 -o p.pb.gz -- sh -c 'ls /proc/self/fd >open' <&- 2>&-
	if grep -qx 2 open; then
		fail "standard error is open"
	fi
}

# --- signals -----------------------------------------------------------------------------------

# command_begin WORD...: `heapbpf WORD...` in the background with the handshake of targets.
command_begin() {
	target_spawn "$HEAPBPF" "$@" 2>err
	heapbpf_pid=$target_pid
}

# The process that it started.
command_pid() {
	sed -n 's/^recording \([0-9]*\) .*/\1/p' err
}

signals_begin() {
	command_begin -r 1 -o p.pb.gz -- "$BEGIN" signals
	target_await READY >/dev/null
}

heard() {
	target_await "GOT $1" >/dev/null
}

# What is sent to us alone is passed on, and the recording ends with the program.
test_signal_is_passed_on() {
	signals_begin
	kill -TERM "$heapbpf_pid"
	heard 15
	target_drain >truth
	heapbpf_wait
	all_exact site_first site_main
}

# Signals for the program alone are its own affair.
test_signal_for_the_program() {
	signals_begin
	kill -INT "$(command_pid)"
	heard 2
	kill -INT "$(command_pid)"
	heard 2
	kill -TERM "$(command_pid)"
	heard 15
	target_drain >truth
	heapbpf_wait
	all_exact site_first site_main
}

# What the program says from now on until its end.
target_drain() {
	local line

	while IFS= read -r -t "$PATIENCE" -u "$target_out" line; do
		printf '%s\n' "$line"
		[[ $line == "SITE site_first"* ]] && return
	done
}

# The second ends the recording; the program is told, too, and goes on.
test_second_signal() {
	local pid

	signals_begin
	pid=$(command_pid)
	kill -INT "$heapbpf_pid"
	heard 2
	kill -HUP "$heapbpf_pid"
	heard 1
	heapbpf_wait
	whole
	says "^process $pid \(begin\) goes on" cat err
	reader valid p.pb.gz
	kill -TERM "$pid"
	heard 15
	eventually ended "$pid"
}

# ended PID: it is no more, or nobody has asked for its status yet.
ended() {
	[[ ! -e /proc/$1/stat || $(awk '{ print $3 }' "/proc/$1/stat") == Z ]]
}

# Ctrl-C reaches the program once.
test_terminal() {
	/usr/bin/python3 - "$HEAPBPF" "$BEGIN" >spoken <<-'EOF'
		import os, pty, signal, sys

		pid, master = pty.fork()
		if pid == 0:
		    os.execl(sys.argv[1], "heapbpf", "-r", "1", "-o", "p.pb.gz", "--", sys.argv[2], "signals")
		signal.alarm(100)
		seen = b""

		def until(word):
		    global seen
		    while word not in seen:
		        seen += os.read(master, 4096)

		until(b"READY")
		os.write(master, b"\x03")
		until(b"GOT 2")
		os.kill(int(seen.split()[1]), signal.SIGTERM)
		try:
		    while got := os.read(master, 4096):
		        seen += got
		except OSError:
		    pass
		print(seen.decode())
		print("STATUS", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	EOF
	equal "$(grep -c 'GOT 2' spoken)" 1 "how often the program got SIGINT"
	says '^STATUS 0$' cat spoken
	tr -d '\r' <spoken | grep '^SITE' >truth
	exact
}

# The program has made all its objects when it is READY. What comes before the end of the recording,
# which is not sooner than so many seconds after our start, is in the profile.
test_duration() {
	local pid seconds began ready

	for seconds in 1 10 60; do
		began=$(date +%s%3N)
		command_begin -r 1 -d "${seconds}s" -o p.pb.gz -- "$BEGIN" wait
		target_await READY >/dev/null
		ready=$(date +%s%3N)
		heapbpf_wait
		whole
		pid=$(command_pid)
		says "^process $pid \(begin\) goes on" cat err
		eventually text_intact "$pid"
		target_go
		eventually ended "$pid"
		((ready - began >= seconds * 1000)) || break
	done
	equal "$(reader total p.pb.gz inuse_objects)" 500 "objects in use"
}

# --- our death ---------------------------------------------------------------------------------

# Killed while the program runs: it does not notice.
test_killed() {
	local pid

	command_begin -r 1 -o p.pb.gz -- "$TARGETS/steady"
	target_await READY >/dev/null
	target_go
	target_await BEAT >/dev/null
	pid=$(command_pid)
	kill -KILL "$heapbpf_pid"
	{ heapbpf_wait; } 2>shell
	eventually text_intact "$pid"
	target_go
	target_await SOUND >/dev/null
	eventually ended "$pid"
	eventually nobody_left
	equal "$(find . -name '*.pb.gz*')" "" "files left behind"
}

# No process of this test is there.
nobody_left() {
	! pgrep -f -- "-o $test_dir/" >/dev/null
}

# Killed while the program is held, at its exec (the first SIGCONT is not sent) and when its linker is
# done. It goes on by itself.
test_killed_while_held() {
	local at

	need strace
	for at in pidfd_send_signal:signal=KILL:when=1 pidfd_send_signal:signal=KILL:when=2; do
		mkfifo spoken.fifo
		{
			strace -qq -o /dev/null -e "inject=$at" "$HEAPBPF" -r 1 -o "$test_dir/p.pb.gz" \
				-- "$BEGIN" return >spoken.fifo 2>err </dev/null &
			timeout "$PATIENCE" cat spoken.fifo >spoken
			wait $! || true
		} 2>shell
		rm spoken.fifo
		grep -q '^SITE site_last' spoken || fail "killed at $at: the program said '$(<spoken)'"
		eventually nobody_left
		equal "$(find . -name '*.pb.gz*')" "" "files left after $at"
	done
}

# Killed before there is a program: nobody waits for it.
test_killed_at_start() {
	local at

	need strace
	for at in bpf:signal=KILL:when=1 bpf:signal=KILL:when=20 sendto:signal=KILL:when=1; do
		{
			strace -qq -o /dev/null -e "inject=$at" "$HEAPBPF" -r 1 -o "$test_dir/p.pb.gz" \
				-- "$BEGIN" return >spoken 2>err </dev/null &
			wait $! || true
		} 2>shell
		eventually nobody_left
	done
}

# An orderly end leaves no keeper.
test_keeper_leaves() {
	runs -r 1 -o "$test_dir/p.pb.gz" -- "$BEGIN" return
	whole
	nobody_left
	command_begin -d 50ms -o "$test_dir/p.pb.gz" -- "$BEGIN" wait
	heapbpf_wait
	nobody_left
	target_go
}

# Root is more than it needs.
test_capabilities_that_suffice() {
	local caps=-all,+bpf,+perfmon,+sys_ptrace

	need setpriv
	chmod 755 .
	cp "$HEAPBPF" ./heapbpf-for-all
	cp "$BEGIN" begin
	mkdir -m 777 open
	heapbpf_status=0
	setpriv --reuid=65534 --regid=65534 --clear-groups "--inh-caps=$caps" "--ambient-caps=$caps" \
		./heapbpf-for-all -r 1 -o open/p.pb.gz -- ./begin return >spoken 2>err || heapbpf_status=$?
	whole
	grep '^SITE' spoken >truth
	mv open/p.pb.gz .
	exact
}

# --- children ------------------------------------------------------------------------------------

# Each child is held until it is probed, so nothing is missing of any.
check_children() {
	local pid

	need_tier "$1"
	mkdir prof
	name=children
	target_spawn "$HEAPBPF" -r 1 --tier "$1" -o prof/ -- "$TARGETS/children" now "$2" 2>err
	heapbpf_pid=$target_pid
	target_await READY
	target_go
	target_await DONE >truth
	target_go
	heapbpf_wait
	whole
	mapfile -t children < <(awk '$1 == "CHILD" { print $2 }' truth)
	equal "${#children[@]}" 3 "children"
	for pid in "${children[@]}"; do
		mv prof/heapbpf.*."$pid".pb.gz p.pb.gz
		reader compare "truth.$pid" p.pb.gz
		reader stacks p.pb.gz >chains
		equal "$(grep -c '\[[a-z_]*\]$' chains)" 0 "stacks that are cut"
	done
	mv prof/heapbpf."$name".*.pb.gz p.pb.gz
	exact
}

for tier in session multi perf; do
	for kind in fork exec; do
		eval "test_children_${kind}_$tier() { check_children $tier $kind; }"
	done
done

e2e_main "$@"
