#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Feeds made-up bytes to what reads foreign files: fuzz_cfi (call frame information), fuzz_elf (ELF
# files) and fuzz_map (maps of JIT code), with libFuzzer and the address and undefined behaviour
# sanitizers.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]    default 600 seconds for each of them
#
# Seeds are made of tests/fuzz/corpus and of programs that are here; what was found on the way stays
# in build/fuzz/corpus.TARGET and is where the next run goes on. A file that breaks something is
# left as build/fuzz/crash-*, and the exit status is 1: put it into a unit test.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=600
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
	seconds=$1
	shift
fi
targets=("$@")
((${#targets[@]})) || targets=(cfi elf map)
out=${BUILD:-build}/fuzz
sanitize=address,undefined

command -v clang >/dev/null || {
	echo "$0: needs clang and its libclang-rt-dev" >&2
	exit 2
}

# The library, with what libFuzzer needs to see which way it goes.
make -s -j"$(nproc)" BUILD="$out" CC=clang \
	SAN="-fsanitize=fuzzer-no-link,$sanitize -fno-sanitize-recover=undefined" "$out/libheapbpf.a"

build() {
	local libs

	read -ra libs < <(pkg-config --libs libbpf libdw libelf libprotobuf-c capstone liblzma zlib)
	clang -g -O1 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -fsanitize="fuzzer,$sanitize" \
		-fno-sanitize-recover=undefined -Iuser -Ibpf -o "$out/fuzz_$1" "tests/fuzz/fuzz_$1.c" \
		"$out/libheapbpf.a" "${libs[@]}" -liberty -lm -lpthread
}

# seed_elf FILE: for fuzz_elf, if it is small.
seed_elf() {
	if (($(stat -Lc %s "$1") < 40000)); then
		cp "$1" "$out/corpus.elf/seed-$(basename "$1")"
	fi
}

# seed_cfi FILE: its sections for fuzz_cfi, whose first byte says what they are (fuzz_cfi.c).
seed_cfi() {
	add_section "$1" .eh_frame 0 2 4 6
	add_section "$1" .debug_frame 1
}

# add_section FILE SECTION BYTE...: a seed for each first byte, if the section is there and small.
add_section() {
	local file=$1 section=$2 byte size

	shift 2
	: >"$out/section"
	objcopy --dump-section "$section=$out/section" "$file" /dev/null 2>/dev/null || return 0
	size=$(stat -c %s "$out/section")
	((size > 0 && size < 8000)) || return 0
	for byte; do
		{ printf '%b' "\\x0$byte" && cat "$out/section"; } \
			>"$out/corpus.cfi/seed-$(basename "$file")$section$byte"
	done
}

make_seeds() {
	local source name file

	mkdir -p "$out/corpus.cfi" "$out/corpus.elf" "$out/corpus.map"
	printf '0 20 f\n0x1000 0x100 g h\n\nx\n10 f i' >"$out/corpus.map/seed"
	for source in tests/fuzz/corpus/*.s; do
		name=$out/$(basename "$source" .s)
		cc -nostdlib -shared -Wl,--build-id -Wl,-soname,seed.so -o "$name.so" "$source"
		cc -nostdlib -static -o "$name" "$source"
		sed '1i .cfi_sections .debug_frame' "$source" |
			cc -nostdlib -shared -x assembler -o "$name.debug.so" -
		strip -o "$name.stripped" "$name.so"
		for file in "$name.so" "$name" "$name.debug.so" "$name.stripped"; do
			seed_elf "$file"
			seed_cfi "$file"
		done
	done
	for file in /usr/bin/true /usr/lib/x86_64-linux-gnu/libdl.so.2 /usr/lib/x86_64-linux-gnu/libz.so.1; do
		[[ -e $file ]] || continue
		seed_elf "$file"
		seed_cfi "$file"
	done
}

for target in "${targets[@]}"; do
	build "$target"
done
make_seeds
status=0
for target in "${targets[@]}"; do
	echo "fuzz_$target for $seconds seconds"
	"$out/fuzz_$target" -max_total_time="$seconds" -max_len=40000 -timeout=20 -rss_limit_mb=1500 \
		-print_final_stats=1 -verbosity=1 -artifact_prefix="$out/" "$out/corpus.$target" \
		>"$out/fuzz_$target.log" 2>&1 || {
		status=1
		tail -n 40 "$out/fuzz_$target.log"
		continue
	}
	grep -E 'DONE .*cov:|^stat::number_of_executed_units|^stat::peak_rss' "$out/fuzz_$target.log"
done
exit "$status"
