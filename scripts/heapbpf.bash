# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of heapbpf for bash.

_heapbpf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} head=
	local -a answers=()

	# A program to run, with a completion of its own.
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
			fi
			return
		fi
	done

	case $before in
	-p | --pid)
		# After a comma, another one.
		[[ $word == *,* ]] && head=${word%,*},
		mapfile -t answers < <(compgen -W "$(cd /proc && echo [0-9]*)" -P "$head" -- "${word##*,}")
		;;
	-t | --type)
		[[ $word == *,* ]] && head=${word%,*},
		mapfile -t answers < <(compgen -W "heap allocs inuse" -P "$head" -- "${word##*,}")
		;;
	--user)
		mapfile -t answers < <(compgen -u -- "$word")
		;;
	--cgroup)
		mapfile -t answers < <(compgen -d -- "${word:-/sys/fs/cgroup/}")
		compopt -o filenames
		;;
	--comm)
		mapfile -t answers < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null | tr -d "\"'\\\`$")" -- "$word")
		;;
	-c | --command)
		mapfile -t answers < <(compgen -c -- "$word")
		;;
	-o | --output)
		mapfile -t answers < <(compgen -f -- "$word")
		compopt -o filenames
		;;
	-d | --duration)
		mapfile -t answers < <(compgen -W "10s 30s 1m 5m" -- "$word")
		;;
	-r | --rate)
		mapfile -t answers < <(compgen -W "1 64K 512K 1M" -- "$word")
		;;
	--max-overhead)
		mapfile -t answers < <(compgen -W "5 10 20 none" -- "$word")
		;;
	--alloc-lib)
		mapfile -t answers < <(compgen -f -- "$word")
		compopt -o filenames
		;;
	--probe)
		mapfile -t answers < <(compgen -W "malloc= calloc= realloc= reallocarray= posix_memalign= memalign=
			aligned_alloc= valloc= new= free=" -- "$word")
		compopt -o nospace
		;;
	--top | --ready-fd | --max-stacks | --max-sites | --max-live | --max-depth | --max-processes | --share | \
		--symbol-prefix) ;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t answers < <(compgen -W "-p --pid -a --all --comm --cgroup --user --follow --no-follow
				-c --command -d --duration -r --rate -t --type
				-o --output --text --top -q --quiet -v --verbose --ready-fd --max-stacks
				--max-sites --max-live --max-depth --max-processes --share --max-overhead --preserve-status
				--symbol-prefix --probe --alloc-lib -h --help --version --" -- "$word")
		elif ((COMP_CWORD == 1)); then
			mapfile -t answers < <(compgen -W "record check" -- "$word")
		fi
		;;
	esac
	COMPREPLY=("${answers[@]}")
}

complete -F _heapbpf heapbpf
