/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The user stack of the current thread, for the other BPF rooms.
 */
#ifndef HB_UNWIND_BPF_H
#define HB_UNWIND_BPF_H

#include "rooms.bpf.h"

/*
 * Walks the user stack from a call's first frame and stores it. `rbp` must still be the caller's,
 * `ra` is the return address of the call, `cfa` the address just above it. `proc` is the state of
 * the process (proc_get()). Returns the stack's id in `stacks`, or 0 with the reason counted; the
 * reason why a stack is cut is counted as well. For sleepable programs only.
 *
 * Not __hidden: a global function is verified once for each program, not in each state that a call
 * of it is reached with, and that is most of what it takes to load them.
 */
__u64 unwind_stack(__u64 rbp, __u64 ra, __u64 cfa, __u32 tgid, const struct hb_proc *proc);

/*
 * The process `to` was forked from `from` and has its mappings, as they were known of the image
 * `from_epoch`; its own image is `to_epoch`.
 */
__hidden void unwind_inherit(__u32 from, __u32 from_epoch, __u32 to, __u32 to_epoch);

/*
 * Where `pc` of the current process is in a file that has a slot in `wrappers`: HB_PLACE(), or 0:
 * in no such file, or in no mapping that is known. Not __hidden, as unwind_stack().
 */
__u64 unwind_place(__u64 pc);

/* Slot and file offset as one number, which is not 0. */
#define HB_PLACE(slot, off)  ((__u64)((slot) + 1) << 32 | (__u32)(off))
#define HB_PLACE_SLOT(place) ((__u32)((place) >> 32) - 1)
#define HB_PLACE_OFF(place)  ((__u32)(place))

#endif
