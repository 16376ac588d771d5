/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How an entry point can end: which other entry points it can jump to, and where it returns. A jump
 * leaves the caller's return address on the stack, so whoever is jumped to looks as if the program
 * had called it.
 */
#ifndef TAIL_CALLS_H
#define TAIL_CALLS_H

#include "code_map.h"
#include "known_regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of code outside the entry points, reached by jumps from one, that calls one. */
struct tail_calls_helper {
	uint64_t vma;
	uint64_t size_bytes;
};

#define TAIL_CALLS_HELPER_MAX 4
#define TAIL_CALLS_RET_MAX    32

/* What an entry point can do before it returns. Functions it calls are not looked into. */
struct tail_calls_result {
	uint32_t jumps;	 /* mask of 1 << enum hb_fn: entry points at other addresses jumped to */
	bool always;	 /* every way that can succeed ends in such a jump */
	bool calls;	 /* calls an entry point */
	bool calls_out;	 /* calls one of another file */
	bool hands_over; /* every way that can succeed calls one of its kind, or jumps to one */
	/*
	 * KNOWN_AT or KNOWN_AT_AT: a variable through which every way that can succeed jumps, to
	 * whatever it points at, if it is not NULL; some may jump to an entry point instead. Else
	 * KNOWN_NOTHING.
	 */
	struct known_value forward;
	size_t helper_cnt;
	struct tail_calls_helper helpers[TAIL_CALLS_HELPER_MAX];
	/*
	 * Its return instructions, in any order, those of code that it jumps to included, but not
	 * of other entry points. `followed`: these are all; false: some way leads who knows where.
	 */
	bool followed;
	size_t ret_cnt;
	uint64_t rets[TAIL_CALLS_RET_MAX];
};

/*
 * Follows the code of entry point `entry`: jumps, also through PLT stubs and GOT slots, but no
 * calls. The work is bounded; where the bound cuts it `always` and `followed` are false and jumps
 * may be missing. A way succeeds if it returns anything but a constant 0; for free, if it did any
 * work. 0 and *out, or -ENOMEM.
 */
int tail_calls_scan(struct code_map *map, const struct code_map_entry *entry,
		    struct tail_calls_result *out);

#endif
