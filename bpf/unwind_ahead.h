/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack, read ahead. A walk goes upwards through it in small steps, and to ask for 16 bytes of
 * the target's memory costs more than all else that a step does, and not much less than to ask for
 * a thousand. Pure C, so that the same text runs in BPF and in host tests.
 *
 * The includer defines before the include
 *   HB_UNWIND_COPY(dst, len, addr)   copies len bytes of the target's memory; 0 on success
 */
#ifndef HB_UNWIND_AHEAD_H
#define HB_UNWIND_AHEAD_H

#include "abi.h"

#ifndef HB_UNWIND_COPY
#error "define HB_UNWIND_COPY(dst, len, addr) first"
#endif

/* Bytes at a time: some ten frames of common size. */
#define HB_UNWIND_AHEAD_LEN 1024

/* The kernel's; what is in one of them can be read as a whole or not at all. */
#define HB_UNWIND_MEMORY_PAGE 4096

/* What one walk has read last. For one walk only: the stack changes when its thread goes on. */
struct hb_unwind_ahead {
	__u64 addr;  /* of words[0]; a multiple of 8 */
	__u64 known; /* 0: nothing has been read */
	__u64 words[HB_UNWIND_AHEAD_LEN / 8];
};

/* Copies the `len` (8 or 16) bytes at `addr` to `dst` if they are there already; else false. */
HB_INLINE int hb_unwind_ahead_take(const struct hb_unwind_ahead *ahead, __u64 *dst, __u32 len,
				   __u64 addr)
{
	__u64 at = addr - ahead->addr;

	if (!ahead->known || at & 7 || at > HB_UNWIND_AHEAD_LEN - len)
		return 0;
	dst[0] = ahead->words[at / 8];
	if (len == 16)
		dst[1] = ahead->words[at / 8 + 1];
	return 1;
}

/*
 * The same, reading them first and what is above them with them, but nothing of another page: so it
 * fails for no other reason than that these bytes cannot be read. False also for what is not
 * aligned or lies in two pages.
 */
HB_INLINE int hb_unwind_ahead_fetch(struct hb_unwind_ahead *ahead, __u64 *dst, __u32 len,
				    __u64 addr)
{
	__u64 in_page = addr & (HB_UNWIND_MEMORY_PAGE - 1) & ~7ULL;
	__u64 page = addr & ~(HB_UNWIND_MEMORY_PAGE - 1ULL);

	if (in_page > HB_UNWIND_MEMORY_PAGE - HB_UNWIND_AHEAD_LEN)
		in_page = HB_UNWIND_MEMORY_PAGE - HB_UNWIND_AHEAD_LEN;
	ahead->addr = page + in_page;
	ahead->known = !HB_UNWIND_COPY(ahead->words, sizeof(ahead->words), ahead->addr);
	return hb_unwind_ahead_take(ahead, dst, len, addr);
}

#endif
