#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The first process of the virtual machine that scripts/vm-test.sh boots. In: /cases, a line
# "NAME KIND TIER TARGET OPTION..." for each case (TARGET may be NAME:ARGUMENT). Out, on the second serial line: a tar archive
# with a directory per case, which the host judges:
#   status           of heapbpf
#   err              its stderr
#   truth, p.pb.gz   what the target said, and its profile
#   insns            instructions that the verifier looked at, by program
#   target           exit status of the target
#   answer           what `heapbpf check` said (incapable)
# The kinds: record (a whole recording), everybody (the same with -a), libraries (of a target that loads and unloads them), command
# (a program that heapbpf runs, through several images), killed (heapbpf dies in the middle), refused
# (heapbpf says no), capable and incapable (with some capabilities, enough or too few of them). The console, the first serial line, is for people.
set -u

CASE_SECONDS=60
RESULTS=/tmp/results

# await WORD: prints what the target says before that line.
await() {
	while IFS= read -r line <&4; do
		[ "$line" = "$1" ] && return 0
		echo "$line"
	done
	return 1
}

go() {
	printf g >&3
}

# start_target NAME[:ARGUMENT]: leaves it waiting for its first byte.
start_target() {
	local name=${1%%:*} arg=${1#"${1%%:*}"}

	mkfifo in out
	"/targets/$name" ${arg:+"${arg#:}"} <in >out &
	target_pid=$!
	exec 3>in 4<out
	await READY
}

# wait_target: its exit status goes to the file `target`.
wait_target() {
	local status=0

	wait "$target_pid" || status=$?
	echo "$status" >target
}

# start_heapbpf OPTION...: returns when its probes are in place; false if it ended before.
start_heapbpf() {
	mkfifo ready
	# Words on purpose.
	# shellcheck disable=SC2086
	${restrict:-} heapbpf --ready-fd 9 "$@" >/dev/null 2>err 3>&- 4<&- 9>ready &
	heapbpf_pid=$!
	read -r line <ready
}

# end_heapbpf SIGNAL: its exit status goes to the file `status`.
end_heapbpf() {
	local status=0

	kill -"$1" "$heapbpf_pid" 2>/dev/null
	wait "$heapbpf_pid" || status=$?
	echo "$status" >status
}

# case_record TIER TARGET OPTION...
case_record() {
	local tier=$1 name=$2

	shift 2
	start_target "$name"
	if start_heapbpf --tier "$tier" -p "$target_pid" -r 1 -o p.pb.gz "$@"; then
		verified >insns
		go
		await DONE >truth
		end_heapbpf INT
		go
		wait_target
	else
		end_heapbpf INT
		kill -KILL "$target_pid"
	fi
}

# case_everybody TIER TARGET: found by its name among all that allocate; the others are to be ignored.
case_everybody() {
	start_target "$2"
	mkdir prof
	if start_heapbpf --tier "$1" -a --comm "^$2\$" -r 1 -o prof/; then
		verified >insns
		/targets/begin exec /targets/begin return >/dev/null 2>&1
		go
		await DONE >truth
		end_heapbpf INT
		go
		wait_target
		mv prof/*.pb.gz p.pb.gz
	else
		end_heapbpf INT
		kill -KILL "$target_pid"
	fi
}

# case_libraries TIER TARGET: another judgement of the same.
case_libraries() {
	case_record "$@"
}

# case_capable TIER TARGET SETTING CAPABILITIES: with these only, and that perf_event_paranoid. By the
# path, since the shell has a setpriv of its own.
case_capable() {
	echo "$3" >/proc/sys/kernel/perf_event_paranoid
	restrict="/bin/setpriv --bounding-set=$4"
	case_record "$1" "$2"
}

case_incapable() {
	case_capable "$@"
	# shellcheck disable=SC2086
	$restrict heapbpf check >answer 2>&1
}

# case_command TIER TARGET: in a directory, so that children would be held, too.
case_command() {
	local program=/targets/$2 status=0

	mkdir prof
	heapbpf --tier "$1" -r 1 -o prof/ -- "$program" exec "$program" thread-exec "$program" return \
		>truth 2>err || status=$?
	echo "$status" >status
	mv prof/*.pb.gz p.pb.gz
}

# case_killed TIER TARGET: the target, always at work, goes on unharmed when heapbpf dies.
case_killed() {
	start_target "$2"
	go
	await BEAT
	start_heapbpf --tier "$1" -p "$target_pid" -r 1 -o p.pb.gz
	end_heapbpf KILL
	go
	await SOUND >/dev/null
	wait_target
}

# case_refused TIER - OPTION...
case_refused() {
	local tier=$1

	shift 2
	start_heapbpf --tier "$tier" -o p.pb.gz "$@"
	end_heapbpf INT
}

# run_case NAME KIND TIER TARGET OPTION...
run_case() {
	local kind=$2

	mkdir "$RESULTS/$1"
	cd "$RESULTS/$1" || exit
	shift 2
	"case_$kind" "$@"
	exec 3>&- 4<&-
	rm -f in out ready
}

# All of them; of a way to attach that this kernel does not have, only the first.
run_cases() {
	local refused='' name kind tier rest

	while read -r name kind tier rest; do
		case " $refused " in
		*" $tier "*) continue ;;
		esac
		# The rest of the line are words on purpose.
		# shellcheck disable=SC2086
		timeout -s KILL "$CASE_SECONDS" /init case "$name" "$kind" "$tier" $rest
		echo "$name: done at $(cut -d ' ' -f 1 /proc/uptime) s"
		if [ "$kind" = record ] && grep -qx 2 "$RESULTS/$name/status"; then
			refused="$refused $tier"
		fi
	done </cases
}

send_results() {
	cd "$RESULTS" || exit
	uname -r >release
	stty -F /dev/ttyS1 raw -echo
	tar -c . >/dev/ttyS1
}

boot() {
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t securityfs securityfs /sys/kernel/security
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t devtmpfs devtmpfs /dev
	mount -t tmpfs tmpfs /tmp
	mkdir "$RESULTS"
	exec </dev/null >/dev/ttyS0 2>&1
}

# In a process of its own, since a shell that is killed cannot clean up.
if [ "${1:-}" = case ]; then
	shift
	run_case "$@"
	exit
fi

/bin/busybox --install -s /bin
boot
echo "booted $(uname -r) after $(cut -d ' ' -f 1 /proc/uptime) s"
if ! grep -qw heapbpf_probe /proc/cmdline; then
	run_cases
	send_results
fi
poweroff -f
