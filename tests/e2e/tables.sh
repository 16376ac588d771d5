#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Full tables: what they cannot hold is counted by name, nothing else suffers, and the exit status
# says that the profile is incomplete.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# overload ARG...: 5,000 stacks, each with an object that stays, into small tables.
overload() {
	target paths
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz "$@"
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "status of an incomplete profile"
	reader valid p.pb.gz
	reader comments p.pb.gz >losses
}

# loss NAME: the number with that name, equal on the terminal and in the profile. The kernel refuses
# an entry when the table is full and when it has no memory for it, and we do not know which it was.
loss() {
	local count

	count=$(grep -w "$1" losses | grep -oE '[0-9]+' | head -n 1)
	cat out err | grep -w "$1" | grep -E "(^|[^0-9])$count([^0-9]|$)" >/dev/null ||
		fail "the terminal does not show $1 $count"
	grep -qE "^lost: $count $1: .* --max-${1%_full} or memory exhausted$" out ||
		fail "$1 is said to be something else: $(grep -w "$1" out)"
	echo "$count"
}

test_live_full() {
	overload --max-live 100
	equal "$(reader total p.pb.gz alloc_objects)" 5000 "allocations"
	equal $(($(reader total p.pb.gz inuse_objects) + $(loss live_full))) 5000 \
		"objects in use and those not followed"
}

test_stacks_full() {
	overload --max-stacks 1
	equal "$(reader total p.pb.gz alloc_objects)" 5000 "allocations"
	equal "$(reader total p.pb.gz inuse_space)" 12502500 "bytes in use"
	matches "$(reader stacks p.pb.gz)" '\[no stack\]' "stacks"
	equal $((5000 - $(loss stacks_full))) \
		"$(reader stacks p.pb.gz | grep -cv '\[no stack\]')" "stacks kept"
}

test_sites_full() {
	overload --max-sites 100
	equal $(($(reader total p.pb.gz alloc_objects) + $(loss sites_full))) 5000 \
		"allocations and those not counted"
}

# All of them at once, and as small as they can be: the first object fills them, every other one is
# counted as not counted.
test_everything_full() {
	overload --max-live 1 --max-stacks 1 --max-sites 1 --max-depth 1
	equal "$(reader total p.pb.gz alloc_objects)" 1 "allocations"
	equal "$(reader total p.pb.gz inuse_objects)" 1 "objects in use"
	equal "$(loss sites_full)" 4999 "allocations not counted"
	# One frame deep there are two stacks, of step_a and of step_b.
	equal "$(loss stacks_full)" 2500 "stacks not kept"
}

# Four threads at full speed and room for few: what was allocated is exact, what is in use and what
# could not be followed are apart, and the target is well.
test_overload_by_threads() {
	local in_use

	target threads
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --max-live 50
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "status of an incomplete profile"
	exact_if --within alloc_objects
	exact_if --within alloc_space
	reader comments p.pb.gz >losses
	in_use=$(reader total p.pb.gz inuse_objects)
	((in_use <= 50)) || fail "$in_use objects in use"
	(($(loss live_full) > 0))
	target_end
}

# More executable mappings than a process has room for: the last ones are left out, the first of them
# is named, and stacks are cut where they come there.
test_mappings_full() {
	need cc
	cat >many.c <<-'END'
		#include "truth.h"
		#include <sys/mman.h>
		#define PAGES 40000
		static void *kept;
		__attribute__((noinline)) static void before_the_hole(void) { kept = malloc(1001); }
		int main(void)
		{
			char *pages = mmap(0, PAGES * 4096l, PROT_READ | PROT_EXEC,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (long i = 0; i < PAGES; i += 2)
				if (mprotect(pages + i * 4096, 4096, PROT_NONE))
					return 5;
			await("READY");
			before_the_hole();
			TRUTH_KEEP(kept);
			await("DONE");
			return 0;
		}
	END
	cc -O2 -w -fno-optimize-sibling-calls -I"$TESTS/targets" -o many many.c
	target_exec ./many
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	equal "$(grep -c 'beyond the 16384 executable mappings of a process' err)" 1 "warnings"
	matches "$(reader stacks p.pb.gz)" ' 1001 before_the_hole;main;[^;]*;?\[no_mapping\]' "stacks"
	grep -q '^cut: 1 no_mapping:' out || fail "$(<out)"
	target_end
}

# More files than there are numbers for tables: the first without one is named. The C library, which
# is behind all of them in this process, has none either.
test_tables_full() {
	need cc
	echo 'int part(void) { return 1; }' >part.c
	cc -O2 -shared -nostdlib -s -o part.so part.c
	cat >mapped.c <<-'END'
		#include "truth.h"
		#include <fcntl.h>
		#include <sys/mman.h>
		#define FILES 4200
		static void *kept;
		__attribute__((noinline)) static void after_the_files(void) { kept = malloc(1001); }
		int main(int argc, char **argv)
		{
			static char bytes[1 << 20], name[64];
			int in = open("part.so", O_RDONLY);
			ssize_t len = read(in, bytes, sizeof(bytes));
			for (int i = 0; i < FILES; i++) {
				snprintf(name, sizeof(name), "part.%d.so", i);
				int out = open(name, O_RDWR | O_CREAT, 0700);
				if (write(out, bytes, len) != len ||
				    mmap(0, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, out, 0) == MAP_FAILED)
					return 5;
				close(out);
			}
			await("READY");
			after_the_files();
			TRUTH_KEEP(kept);
			await("DONE");
			return 0;
		}
	END
	cc -O2 -w -fno-optimize-sibling-calls -I"$TESTS/targets" -o mapped mapped.c
	target_exec ./mapped
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	equal "$(grep -c 'the first file of many without an unwind table: 4095 have one' err)" 1 "warnings"
	matches "$(reader stacks p.pb.gz)" ' 1001 after_the_files;main;[^;]+;\[no_table\]' "stacks"
	grep -q '^cut: 1 no_table:' out || fail "$(<out)"
	target_end
}

e2e_main "$@"
