#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Names come from the running image, whatever became of its file, and from its debug information
# wherever that lies.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# build OUTPUT FLAGS...: the target `chain` in another shape.
build() {
	local output=$1

	shift
	need cc
	cc -O2 -fomit-frame-pointer -fno-builtin "$@" -o "$output" "$TESTS/targets/chain.c"
}

# profile_of COMMAND: its exact profile.
profile_of() {
	target_exec "$@"
	profile_running
}

profile_running() {
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

# named_and_lined: function, file, line and start line are there.
named_and_lined() {
	local start

	start=$(grep -n '^SITE(chain_g)' "$TESTS/targets/chain.c" | cut -d: -f1)
	matches "$(reader lines p.pb.gz)" \
		"chain_g [^ ]*chain.c $((start + 3)) $start" "lines"
}

test_file_deleted() {
	cp "$TARGETS/chain" ./gone
	target_exec ./gone
	rm gone
	profile_running
	named_and_lined
}

# The new file of that name has other functions at those addresses; nobody may ask it.
test_file_replaced() {
	cp "$TARGETS/chain" ./program
	target_exec ./program
	cp "$TARGETS/family" ./program.new
	mv program.new program
	profile_running
	named_and_lined
	if reader functions p.pb.gz | grep -w site_malloc; then
		fail "names from the new file"
	fi
}

test_names_of_files() {
	local name

	for name in 'with space' $'with\nnewline' 'it is (deleted)' 'back\slash' 'käse' ' lead' '%s%n'; do
		cp "$TARGETS/chain" "./$name"
		profile_of "./$name"
		named_and_lined
		rm "./$name"
		reader mappings p.pb.gz >mapped
		grep -qF "${name%%$'\n'*}" mapped || fail "no mapping '$name'"
	done
}

test_name_with_real_suffix() {
	cp "$TARGETS/chain" './x (deleted)'
	target_exec './x (deleted)'
	rm './x (deleted)'
	profile_running
	named_and_lined
}

# The file is seen under its path only in the target's mount namespace; ours has another one there.
test_mount_namespace() {
	mkdir place
	cp "$TARGETS/family" place/program
	# Expanded by the inner shell.
	# shellcheck disable=SC2016
	target_exec unshare -m bash -c 'mount -t tmpfs none "$1" && cp "$2" "$1/program" &&
		exec "$1/program"' - "$test_dir/place" "$TARGETS/chain"
	profile_running
	named_and_lined
}

# Code that the process has moved, or cut into pieces, has its names and its stacks.
check_remapped() {
	target remap "$1"
	profile_running
	reader stacks p.pb.gz >chains
	equal "$(grep -c '\[[a-z_]*\]$' chains)" 0 "stacks that are cut"
	reader mappings p.pb.gz | grep '/remap' >/dev/null || fail "the file is not among the mappings"
}

test_text_moved() {
	check_remapped moved
}

test_text_in_pieces() {
	check_remapped written
}

# But no probe reaches it there.
test_allocator_moved() {
	target remap libc
	heapbpf_run -p "$target_pid" -d 50ms -o p.pb.gz
	equal "$heapbpf_status" 2 "exit status"
	says 'libc.so.6 was copied to memory without a file' cat err
}

test_chroot() {
	local lib

	mkdir -p jail
	for lib in $(ldd "$TARGETS/chain" | grep -oE '/[^ ]+'); do
		mkdir -p "jail$(dirname "$lib")"
		cp "$lib" "jail$lib"
	done
	cp "$TARGETS/chain" jail/program
	target_exec chroot jail /program
	profile_running
	named_and_lined
}

test_not_pie() {
	build fixed -g -no-pie
	profile_of ./fixed
	named_and_lined
}

test_without_debug_information() {
	build symbols_only
	profile_of ./symbols_only
	matches "$(reader stacks p.pb.gz)" 'chain_g;chain_f;main;' "stacks"
}

# Stripped: numbers are whole, addresses are hexadecimal, and the mapping has what pprof needs to
# find names later.
test_stripped() {
	local total

	build bare -s -Wl,--build-id=sha1
	target_exec ./bare
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader valid p.pb.gz
	total=$(awk '{ sum += $3 } END { print sum + 1 }' truth)
	equal "$(reader total p.pb.gz alloc_objects)" "$total" "objects"
	matches "$(reader mappings p.pb.gz | grep /bare)" ' [0-9a-f]{40} ' "mapping"
}

# Debug information in a file of its own, found by build id and by link.
test_debug_file_by_build_id() {
	local id

	need objcopy readelf
	build split -g -Wl,--build-id=sha1
	id=$(readelf -n split | sed -n 's/.*Build ID: //p')
	mkdir -p "/usr/lib/debug/.build-id/${id:0:2}"
	debug_file=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	objcopy --only-keep-debug split "$debug_file"
	strip split
	profile_of ./split
	named_and_lined
}

debug_file=

teardown() {
	[[ -z $debug_file ]] || rm -f "$debug_file"
}

test_debug_file_by_link() {
	need objcopy
	build split -g -Wl,--build-id=none
	objcopy --only-keep-debug split split.debug
	strip split
	objcopy --add-gnu-debuglink=split.debug split
	profile_of ./split
	named_and_lined
}

test_debug_file_with_wrong_checksum() {
	need objcopy
	build split -g -Wl,--build-id=none
	objcopy --only-keep-debug split split.debug
	objcopy --add-gnu-debuglink=split.debug split
	strip split
	echo changed >>split.debug
	target_exec ./split
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader valid p.pb.gz
	if reader lines p.pb.gz | grep chain_g; then
		fail "lines from a file that is another one's"
	fi
}

test_compressed_sections_and_dwarf_4() {
	build packed -g -gz=zlib
	profile_of ./packed
	named_and_lined
	build four -gdwarf-4
	profile_of ./four
	named_and_lined
}

test_split_dwarf() {
	build two -gdwarf-5 -gsplit-dwarf
	profile_of ./two
	named_and_lined
	find . -name '*.dwo' -delete
	profile_of ./two
	matches "$(reader stacks p.pb.gz)" 'chain_g;chain_f;main;' "stacks"
}

# The distribution's debug file of libc gives lines between the site and malloc.
test_library_of_the_distribution() {
	local id libc

	libc=$(ldd "$TARGETS/family" | sed -n 's|.* \(/[^ ]*libc\.so\.6\) .*|\1|p')
	id=$(file -L "$libc" 2>/dev/null | sed -n 's/.*BuildID\[sha1\]=\([0-9a-f]*\).*/\1/p')
	[[ -n $id && -e /usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug ]] ||
		skip "no debug file of libc (libc6-dbg)"
	record family
	exact
	matches "$(reader lines p.pb.gz)" 'strdup [^ ]*strdup\.c [1-9]' "lines"
}

test_cxx_names() {
	cat >names.cc <<-'END'
		#include <unistd.h>
		#include <cstdlib>
		namespace { struct Box {
			template <typename T> __attribute__((noinline)) T *make(int n)
			{
				T *p = static_cast<T *>(std::malloc(n * sizeof(T)));
				asm volatile("" : : "r"(p) : "memory");
				return p;
			}
		}; }
		extern "C" __attribute__((noinline)) void _ZN6broken(void)
		{
			void *p = std::malloc(17);
			asm volatile("" : : "r"(p) : "memory");
		}
		static inline __attribute__((always_inline)) void inlined_one(void)
		{
			void *p = std::malloc(33);
			asm volatile("" : : "r"(p) : "memory");
		}
		__attribute__((noinline)) void around()
		{
			inlined_one();
			asm volatile("" : : : "memory");
		}
		static void handshake(const char *word, size_t size)
		{
			char byte;
			if (write(1, word, size) < 0 || read(0, &byte, 1) != 1)
				_exit(1);
		}
		int main()
		{
			handshake("READY\n", 6);
			Box().make<long>(3);
			_ZN6broken();
			around();
			handshake("SITE main 3 74 3 74\nDONE\n", 25);
		}
	END
	need c++
	c++ -O2 -g -fno-builtin -fno-pie -no-pie -o names names.cc
	target_exec ./names
	profile_running
	matches "$(reader functions p.pb.gz)" ' _ZN[^ ]*4makeI[^ ]* .*Box::make<long>\(int\)' "functions"
	matches "$(reader functions p.pb.gz)" ' _ZN6broken _ZN6broken' "functions"
	matches "$(reader stacks p.pb.gz)" 'inlined_one\(?\)?;around\(\);main' "stacks"
}

# Two functions with one body: either name, always the same, and the right sum.
test_merged_functions() {
	cat >twins.c <<-'END'
		#include "truth.h"
		__attribute__((noinline)) void *twin_a(long n) { void *p = malloc(n); TRUTH_KEEP(p); return p; }
		__attribute__((noinline)) void *twin_b(long n) { void *p = malloc(n); TRUTH_KEEP(p); return p; }
		int main(void)
		{
			await("READY");
			for (int i = 0; i < 10; i++) {
				TRUTH_KEEP(twin_a(100));
				TRUTH_KEEP(twin_b(100));
			}
			say("SITE main 20 2000 20 2000\n");
			await("DONE");
			return 0;
		}
	END
	need cc
	cc -O2 -g -fno-builtin -fipa-icf -I"$TESTS/targets" -o twins twins.c
	target_exec ./twins
	profile_running
	reader stacks p.pb.gz >first
	target_exec ./twins
	profile_running
	reader stacks p.pb.gz >second
	cmp first second
	equal "$(reader cum p.pb.gz | awk '/^twin_/ { sum += $2 } END { print sum }')" 20 "objects"
}

e2e_main "$@"
