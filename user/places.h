/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The locations and mappings of a profile in the making: each address of a process becomes one
 * location, named, with the mapped file that holds it.
 */
#ifndef PLACES_H
#define PLACES_H

#include <stddef.h>
#include <stdint.h>

struct heap_space;
struct places;
struct profile;
struct symbolize_frame;
struct symbolizer;

/*
 * Empty; NULL if out of memory. `spaces` and `symbolizer` (NULL: nothing is named) are borrowed
 * for its life. Several snapshots of one epoch are asked in order.
 */
struct places *places_new(const struct heap_space *spaces, size_t space_cnt,
			  struct symbolizer *symbolizer);

/* Frees what places_take() did not take; NULL is fine. */
void places_free(struct places *places);

/*
 * The location of the instruction at `pc` in the image `epoch`: 0 and its index in *location, or
 * -ENOMEM. Equal addresses in equal mappings are one location, in whatever epoch.
 */
int places_use_pc(struct places *places, uint32_t epoch, uint64_t pc, uint32_t *location);

/* The location that is no address but `frame` (static, compared by pointer); as above. */
int places_use_frame(struct places *places, const struct symbolize_frame *frame,
		     uint32_t *location);

/*
 * Moves locations (in order of first use) and mappings (sorted by start) into `profile`, which has
 * none yet. 0, or -ENOMEM with `profile` untouched.
 */
int places_take(struct places *places, struct profile *profile);

#endif
