/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Truth about stacks: a target that allocates a size of its own at each place says how the stack
 * there looks. tests/pprof_read.py, command chains, compares.
 *
 *   CHAIN size objects leaf;...;root [or leaf;...;root]
 *
 * A token is the name of a function, `*` for one or more frames of other files, `=` for one of the
 * target's file that has no name (a stub of the linker's), `!` for one of any file, `?` for an
 * address without a file, name{n} for n frames in a row, [reason] for a stack that is cut, a|b for
 * either of two names.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "truth.h"

/* A function with a frame of its own. */
#define FRAME TRUTH_C __attribute__((noinline, noclone))

/* What a call must not be the last act before, or it would become a jump. */
#define AFTER_CALL() __asm__ volatile("" : : : "memory")

/* Sizes that no library asks for by chance. */
#define SITE_SIZE(n) (70001 + (n))

/* How stacks end: below main, below a thread's first function. */
#define MAIN   "main;*;_start"
#define THREAD "*;__clone3|clone3"

/* A group of places, called by main. */
#define GROUP(name) __attribute__((noinline, noclone)) static void name(void)

/* The leaf of every chain. */
FRAME void take(size_t size);
FRAME void take(size_t size)
{
	TRUTH_KEEP(malloc(size));
}

/* Says what the stack of `size` is: frames, then how it ends. */
static inline void chain_of(size_t size, unsigned objects, const char *frames, const char *end)
{
	say("CHAIN %zu %u %s;%s\n", size, objects, frames, end);
}

/* The same for one object below the group that says so. */
#define chain(size, frames) say("CHAIN %zu 1 %s;%s;%s\n", (size_t)(size), frames, __func__, MAIN)

#endif
