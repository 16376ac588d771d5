#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compiles the targets beside this script into $BUILD/targets, those that are not up to date. A
# line " * build: FLAGS" in a source adds flags.
set -euo pipefail
cd "$(dirname "$0")"

out=${BUILD:-../../build}/targets
mkdir -p "$out"

# libraries SOURCE: those that it is to become as well, a line each: NAME FLAG...
libraries() {
	sed -n 's|^ \* library: ||p' "$1"
}

# is_built SOURCE: all that is made of it is up to date.
is_built() {
	local name file

	for name in "${1%.*}" $(libraries "$1" | sed 's| .*||; s|$|.so|'); do
		for file in "$1" truth.h frames.h build.sh; do
			[[ $out/$name -nt $file ]] || return 1
		done
	done
}

for source in *.c *.cc; do
	if is_built "$source"; then
		continue
	fi
	program=$out/${source%.*}
	compiler=${CC:-cc}
	[[ $source == *.cc ]] && compiler=${CXX:-c++}
	read -ra flags < <(sed -n 's|^ \* build: ||p' "$source") || true
	compile=("$compiler" -O2 -g -fomit-frame-pointer -Wall -Wextra)
	while read -ra library; do
		"${compile[@]}" -shared -fPIC "${library[@]:1}" -o "$out/${library[0]}.so" "$PWD/$source"
	done < <(libraries "$source")
	"${compile[@]}" "${flags[@]}" -o "$program" "$PWD/$source"
done
