/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which entry points a function can jump to. A jump leaves the caller's return address on the
 * stack, so whoever is jumped to looks as if the program had called it.
 */
#ifndef TAIL_CALLS_H
#define TAIL_CALLS_H

#include "../bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct tail_calls;

/* An entry point of the file. */
struct tail_calls_entry {
	uint64_t vma;
	enum hb_fn fn;
};

/* A piece of code outside the entry points, reached by jumps from one, that calls one. */
struct tail_calls_helper {
	uint64_t vma;
	uint64_t size_bytes;
};

#define TAIL_CALLS_HELPER_MAX 4

/* What an entry point can do before it returns. Functions it calls are not looked into. */
struct tail_calls_result {
	uint32_t jumps; /* mask of 1 << enum hb_fn: entry points at other addresses jumped to */
	bool always;	/* every way that can succeed ends in such a jump */
	bool calls;	/* calls an entry point */
	size_t helper_cnt;
	struct tail_calls_helper helpers[TAIL_CALLS_HELPER_MAX];
};

/*
 * Prepares scans of `file` (borrowed for the whole life). `entries`: its entry points, copied.
 * `name_fn`: the enum hb_fn of an entry point by name, -1 for other names; used for those that
 * the file does not define itself. 0 and *out (free with tail_calls_free()), -ENOMEM.
 */
int tail_calls_new(const struct elf_file *file, const struct tail_calls_entry *entries,
		   size_t entry_cnt, int (*name_fn)(const char *name), struct tail_calls **out);

/* Releases; NULL is fine. */
void tail_calls_free(struct tail_calls *calls);

/* The function that holds `vma` ends here at the latest: the next known start, or the text's end.
 */
uint64_t tail_calls_limit(const struct tail_calls *calls, uint64_t vma);

/*
 * Follows the code of entry point `entry`: jumps, also through PLT stubs and GOT slots, but no
 * calls. The work is bounded; where the bound cuts it `always` is false and jumps may be missing.
 * A way succeeds if it returns anything but a constant 0; for free, if it did any work.
 * 0 and *out, or -ENOMEM.
 */
int tail_calls_scan(struct tail_calls *calls, const struct tail_calls_entry *entry,
		    struct tail_calls_result *out);

#endif
