#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The rules that a script can check: what lies at the top, format, shell scripts, licences,
# documented headers, lengths, headers that stand alone, and options that README, manual, completion
# and --help agree on. Says every fault with its place; exit 1 if there is one. BUILD as for make
# (build).
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=${BUILD:-build}
FILE_LINES_MAX=500
FUNCTION_LINES_MAX=60
COMMENT_COLUMNS_MAX=100
CLANG_FORMAT_VERSION=14
TOP=(.ci .clang-format .gitignore LICENSE Makefile README.md bpf proto scripts tests user vmlinux)

faults=0

fault() {
	echo "$*"
	faults=$((faults + 1))
}

# Reads faults, one per line.
fault_lines() {
	local line

	while IFS= read -r line; do
		fault "$line"
	done
}

note() {
	echo "lint: $*" >&2
}

shopt -s nullglob
sources=(user/*.[ch] bpf/*.[ch] tests/unit/*.[ch])
targets=(tests/targets/*.[ch] tests/targets/*.cc tests/vm/*.c tests/bench/*.c tests/bench/*.cc tests/fuzz/*.[ch])
headers=(user/*.h bpf/*.h)
scripts=(scripts/*.sh scripts/heapbpf.bash tests/*.sh tests/e2e/*.sh tests/targets/*.sh tests/bench/*.sh
	tests/vm/*.sh .ci/run)

# Only what is committed: what a run leaves there must not come along.
check_top() {
	local name

	if ! git ls-files --error-unmatch scripts/lint.sh >/dev/null 2>&1; then
		note "this is no clone of the repository: the top of the tree not checked"
		return
	fi
	while IFS= read -r -d '' name; do
		printf '%s\n' "${TOP[@]}" | grep -xFe "$name" >/dev/null ||
			fault "$name: not of the project; remove it, or name it in TOP of scripts/lint.sh"
	done < <(git ls-files -z | cut -z -d/ -f1 | sort -zu)
}

check_format() {
	local tool=clang-format file

	command -v clang-format-$CLANG_FORMAT_VERSION >/dev/null &&
		tool=clang-format-$CLANG_FORMAT_VERSION
	# Versions disagree; one decides.
	if ! "$tool" --version 2>/dev/null | grep "version $CLANG_FORMAT_VERSION\." >/dev/null; then
		note "clang-format $CLANG_FORMAT_VERSION is not installed: format not checked"
		return
	fi
	for file in "${sources[@]}" "${targets[@]}"; do
		"$tool" --dry-run -Werror "$file" 2>/dev/null ||
			fault "$file: not formatted; run make format"
	done
}

check_shell() {
	if ! command -v shellcheck >/dev/null; then
		note "shellcheck is not installed: scripts not checked"
		return
	fi
	fault_lines < <(shellcheck -f gcc -x -P . "${scripts[@]}" || true)
}

check_manual() {
	if ! command -v mandoc >/dev/null; then
		note "mandoc is not installed: manual not checked"
		return
	fi
	fault_lines < <(mandoc -T lint -W warning user/heapbpf.8 || true)
}

check_licences() {
	local file want

	for file in "${sources[@]}" "${targets[@]}" "${scripts[@]}" Makefile tests/*.py tests/*.mjs \
		proto/*.proto user/heapbpf.8; do
		want=GPL-2.0-or-later
		[[ $file == bpf/* ]] && want=GPL-2.0-only
		head -n 3 "$file" | grep "SPDX-License-Identifier: $want" >/dev/null ||
			fault "$file:1: no SPDX-License-Identifier: $want"
	done
}

# A comment ends right above each declaration of a function, or above its return type, or above
# constants that go with it.
check_documented() {
	local file

	for file in "${headers[@]}"; do
		fault_lines < <(awk -v file="$file" '
			/^[A-Za-z_].*\(/ && !/^(typedef|enum|return|_Static_assert|#)/ {
				if (before !~ /\*\/[ \t]*$/ && before !~ /^[ \t]*\/\//)
					print file ":" NR ": not documented: " $0
			}
			/^[ \t]*$/ || /^#/ || /^(static|extern).*[A-Za-z0-9_*]$/ { next }
			{ before = $0 }' "$file")
	done
}

check_lengths() {
	local file lines

	for file in "${sources[@]}"; do
		lines=$(wc -l <"$file")
		[[ $file == tests/* ]] || ((lines <= FILE_LINES_MAX)) ||
			fault "$file: $lines lines; $FILE_LINES_MAX are the limit"
		fault_lines < <(awk -v file="$file" -v max="$FUNCTION_LINES_MAX" '
			/^\{/ { start = NR; next }
			/\)[ \t]*\{[ \t]*$/ && /^[A-Za-z_]/ && !/^(struct|union|enum|typedef)/ {
				start = NR
				next
			}
			/^\}/ {
				if (start && NR - start - 1 > max)
					print file ":" start ": function of " NR - start - 1 " lines; " \
						max " are the limit"
				start = 0
			}' "$file")
	done
}

# Comments, also those behind code: clang-format does not wrap them, since lists in them are laid out
# by hand. Code alone may be longer where clang-format leaves it so, as with a long string.
check_comment_widths() {
	local file

	for file in "${sources[@]}" "${targets[@]}"; do
		fault_lines < <(expand -t 8 "$file" | awk -v file="$file" -v max="$COMMENT_COLUMNS_MAX" '
			{ text = $0 }
			# What looks like a comment in a literal is none.
			!inside { gsub(/\047\\?"\047|"([^"\\]|\\.)*"/, "", text) }
			(inside || text ~ /\/[*\/]/) && length($0) > max {
				print file ":" NR ": comment to column " length($0) "; " max \
					" is the limit"
			}
			match(text, /.*(\/\*|\*\/)/) { inside = substr(text, RLENGTH - 1, 2) == "/*" }')
	done
}

# Each header compiles as the only one; those of the BPF programs after the kernel's types. Not those
# that are made to be completed by a definition, and say so.
check_self_contained() {
	local file packages=(libbpf libdw libelf libprotobuf-c capstone zlib) flags bpf_flags

	flags="-std=gnu11 -D_GNU_SOURCE -I$BUILD $(pkg-config --cflags "${packages[@]}")"
	bpf_flags="--target=bpf -D__TARGET_ARCH_x86 -Ivmlinux/$(uname -m)"
	for file in "${headers[@]}"; do
		grep -q '^#error "define' "$file" && continue
		# The flags are words on purpose.
		# shellcheck disable=SC2086
		if [[ $file == *.bpf.h ]]; then
			printf '#include "vmlinux.h"\n#include <bpf/bpf_helpers.h>\n#include "%s"\n' "$file" |
				clang $bpf_flags -I. -Wno-missing-declarations -fsyntax-only -x c - 2>/dev/null
		else
			printf '#include "%s"\n' "$file" | "${CC:-cc}" $flags -I. -fsyntax-only -x c - \
				2>/dev/null
		fi || fault "$file: does not compile by itself"
	done
}

# The long options in a text, sorted; short ones likewise.
long_options() {
	grep -oE -- '(^|[^a-zA-Z0-9-])--[a-z][a-z-]*' | sed 's/^.*--/--/' | sort -u
}

# same_options FILE: those on stdin are those of --help.
same_options() {
	fault_lines < <(diff "$BUILD/lint.help" - |
		sed -n "s|^< |$1: lacks |p; s|^> |$1: has an unknown |p")
}

check_options() {
	local option

	if [[ ! -x $BUILD/heapbpf ]]; then
		note "$BUILD/heapbpf is not built: options not compared"
		return
	fi
	"$BUILD/heapbpf" --help | long_options >"$BUILD/lint.help"
	same_options user/heapbpf.8 < <(grep '^\.It Fl' user/heapbpf.8 |
		grep -oE 'Fl -[a-z-]+' | sed 's/^Fl -/--/' | sort -u)
	same_options scripts/heapbpf.bash < <(long_options <scripts/heapbpf.bash)
	# README need not name all of them, but must not invent any.
	for option in $(grep -E 'heapbpf|^\| `-' README.md | long_options); do
		grep -qxe "$option" "$BUILD/lint.help" ||
			fault "README.md: has an unknown $option"
	done
}

check_top
check_format
check_shell
check_manual
check_licences
check_documented
check_lengths
check_comment_widths
check_self_contained
check_options

if ((faults)); then
	echo "lint: $faults faults"
	exit 1
fi
echo "lint: no faults"
