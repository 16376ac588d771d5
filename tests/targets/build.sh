#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compiles the targets beside this script into $BUILD/targets, those that are not up to date. A
# line " * build: FLAGS" in a source adds flags.
set -euo pipefail
cd "$(dirname "$0")"

out=${BUILD:-../../build}/targets
mkdir -p "$out"
for source in *.c *.cc; do
	program=$out/${source%.*}
	if [[ $program -nt $source && $program -nt truth.h && $program -nt frames.h &&
		$program -nt build.sh ]]; then
		continue
	fi
	compiler=${CC:-cc}
	[[ $source == *.cc ]] && compiler=${CXX:-c++}
	read -ra flags < <(sed -n 's|^ \* build: ||p' "$source") || true
	compile=("$compiler" -O2 -g -fomit-frame-pointer -Wall -Wextra)
	while read -ra library; do
		"${compile[@]}" -shared -fPIC "${library[@]:1}" -o "$out/${library[0]}.so" "$PWD/$source"
	done < <(sed -n 's|^ \* library: ||p' "$source")
	"${compile[@]}" "${flags[@]}" -o "$program" "$PWD/$source"
done
