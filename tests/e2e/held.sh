#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Children of a command are held where they begin: nobody stays stopped for that, whatever happens to
# them and to heapbpf, and no program takes it for a stop.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# runs WORD...: `heapbpf ... -- WORD...` to its end; what it says is in `spoken`. It may not wait for
# anybody's SIGCONT.
runs() {
	heapbpf_status=0
	mkdir -p prof
	timeout "$PATIENCE" "$HEAPBPF" --preserve-status --top 0 -r 1 -o "$test_dir/prof/" "${options[@]}" \
		-- "$@" >spoken 2>err </dev/null || heapbpf_status=$?
	nobody_stopped
}

options=()

# ours: processes of this test.
ours() {
	local process

	for process in /proc/[0-9]*; do
		if [[ $(readlink "$process/cwd") == "$test_dir"* ]]; then
			echo "${process#/proc/}"
		fi
	done 2>/dev/null
}

# stopped: those that stand still.
stopped() {
	local pid

	for pid in $(ours); do
		if grep -q '^State:.T ' "/proc/$pid/status"; then
			echo "$pid"
		fi
	done 2>/dev/null
}

nobody_stopped() {
	[[ -z $(stopped) ]] || fail "stopped: $(stopped)"
}

# No process of this test is there.
nobody_left() {
	! pgrep -f -- "-o $test_dir/" >/dev/null
}

# Of what a command leaves behind, nobody knows the numbers.
teardown() {
	ours | grep -vx "$$" | xargs -r kill -KILL 2>/dev/null
}

# --- who stays -----------------------------------------------------------------------------------

# Children for which there are no descriptors are not recorded, but live. None ends before that.
test_few_descriptors() {
	local go command

	mkfifo go
	exec {go}<>go
	# Expanded by the command.
	# shellcheck disable=SC2016
	(
		ulimit -n 64
		runs sh -c 'for i in $(seq 30); do head -c 1 go >/dev/null & done; wait; echo all'
	) &
	command=$!
	pids+=("$command")
	eventually grep -q 'Too many open files' err
	printf '%30s' . >&"$go"
	wait "$command"
	equal "$(<spoken)" all "what the command says"
}

# While heapbpf stands still, more children begin than it can be told of.
test_more_than_can_be_told() {
	mkdir prof
	# Expanded by the command.
	# shellcheck disable=SC2016
	target_spawn "$HEAPBPF" -o "$test_dir/prof/" --top 0 -- sh -c \
		'read x; while [ $((i += 1)) -le 1500 ]; do : & done; echo begun; wait; echo all' 2>err
	heapbpf_pid=$target_pid
	eventually grep -q ^recording err
	kill -STOP "$heapbpf_pid"
	echo >&"$target_in"
	target_await begun
	kill -CONT "$heapbpf_pid"
	target_await all
	heapbpf_wait
	nobody_stopped
	equal "$heapbpf_status" 1 "exit status"
}

# Killed when a child is held: at its fork, its exec, and when its linker is done.
test_killed() {
	local when

	need strace
	mkdir prof
	for when in 3 4 5; do
		mkfifo spoken.fifo
		{
			strace -qq -o /dev/null -e "inject=pidfd_send_signal:signal=KILL:when=$when" \
				"$HEAPBPF" -r 1 -o "$test_dir/prof/" -- sh -c '/bin/echo child; echo all' \
				>spoken.fifo 2>err </dev/null &
			timeout "$PATIENCE" cat spoken.fifo >spoken
			wait $! || true
		} 2>shell
		rm spoken.fifo
		equal "$(<spoken)" $'child\nall' "what was said, killed at signal $when"
		eventually nobody_left
	done
}

# The kernel takes the probes out in its own time, however long that is: here somebody else keeps them.
test_killed_and_probes_stay() {
	mkdir prof
	target_spawn "$HEAPBPF" -o "$test_dir/prof/" --top 0 -- sh -c \
		'read x; /bin/echo child; echo all' 2>err
	heapbpf_pid=$target_pid
	eventually grep -q ^recording err
	mkfifo kept
	/usr/bin/python3 - "$heapbpf_pid" >kept <<-'EOF' &
		import ctypes, os, signal, sys

		SYS_pidfd_getfd = 438
		pid = int(sys.argv[1])
		pidfd = os.pidfd_open(pid)
		for fd in os.listdir(f"/proc/{pid}/fd"):
		    if ctypes.CDLL(None).syscall(SYS_pidfd_getfd, pidfd, int(fd), 0) < 0:
		        raise OSError("pidfd_getfd")
		print("KEPT", flush=True)
		signal.pause()
	EOF
	pids+=($!)
	equal "$(head -n 1 kept)" KEPT "what is said of the descriptors"
	kill -KILL "$heapbpf_pid"
	{ heapbpf_wait; } 2>shell
	eventually nobody_left
	echo >&"$target_in"
	target_await all >spoken
	equal "$(<spoken)" child "what was said"
	nobody_stopped
}

# To take out the probes of many takes the kernel a while, in which others still begin.
test_killed_slowly() {
	mkdir prof
	# Expanded by the command.
	# shellcheck disable=SC2016
	target_spawn "$HEAPBPF" -o "$test_dir/prof/" --top 0 -- sh -c \
		'while [ $((i += 1)) -le 8 ]; do read x <fifo & done; read x
		while [ $((n += 1)) -le 50 ]; do (:); done; echo all; exec 3<>fifo; wait' 2>err
	mkfifo fifo
	heapbpf_pid=$target_pid
	eventually grep -q ^recording err
	echo >&"$target_in"
	read -rt 1 <> <(:) || true
	kill -KILL "$heapbpf_pid"
	{ heapbpf_wait; } 2>shell
	target_await all
	eventually nobody_stopped
}

# --- who sees it ---------------------------------------------------------------------------------

test_debugger() {
	need gdb
	runs gdb -nx -batch -ex run --args /bin/echo child
	equal "$heapbpf_status" 0 "exit status of gdb"
	says '^child$' cat spoken
	says 'exited normally' cat spoken
}

# These stop themselves when they see their child stopped.
test_watchers() {
	need su runuser script
	chmod 755 .
	for command in "su nobody -s /bin/sh -c" "runuser -u nobody -- sh -c" "script -qc"; do
		# shellcheck disable=SC2086
		runs $command '/bin/echo child; echo all' </dev/null
		equal "$heapbpf_status" 0 "exit status of $command"
		equal "$(tr -d '\r' <spoken | paste -sd ' ')" "child all" "what $command says"
	done
}

# An interactive shell would go on without its job.
test_shell_with_jobs() {
	mkdir prof
	/usr/bin/python3 - "$HEAPBPF" --top 0 -o "$test_dir/prof/" -- bash --norc -i >spoken <<-'EOF'
		import os, pty, signal, sys

		pid, master = pty.fork()
		if pid == 0:
		    os.environ["PS1"] = "next> "
		    os.execv(sys.argv[1], sys.argv[1:])
		signal.alarm(100)
		seen = b""

		def until(word):
		    global seen
		    at = seen.find(word)
		    while at < 0:
		        seen += os.read(master, 4096)
		        at = seen.find(word)
		    print(seen[: at + len(word)].decode())
		    seen = seen[at + len(word) :]

		until(b"next> ")
		for line in b"/bin/echo one; jobs", b"seq 3 | sort -r | wc -l; jobs", b"fg", b"exit":
		    os.write(master, line + b"\n")
		    until(b"\n")
		    until(b"exit" if line == b"exit" else b"next> ")
		try:
		    while os.read(master, 4096):
		        pass
		except OSError:
		    pass
		print("STATUS", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	EOF
	if grep Stopped spoken; then
		fail "the shell saw a job stop"
	fi
	says 'fg: current: no such job' cat spoken
}

# What a process does for SIGCONT, it does for a real one only.
test_handles_cont() {
	# Expanded by perl.
	# shellcheck disable=SC2016
	runs perl -e '$SIG{CONT} = sub { print "CONT\n" };
		if (!fork) { $x .= "x" x 1000 for 1 .. 1000; select(undef, undef, undef, 0.2); exit; }
		wait; print "all\n"'
	equal "$(<spoken)" all "what was said"
}

e2e_main "$@"
