/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The locations and mappings of a profile in the making: each address of a process becomes one
 * location, named, with the mapped file that holds it.
 */
#ifndef PLACES_H
#define PLACES_H

#include "mappings.h"

struct perf_map_owner;
struct places;
struct profile;
struct symbolize_frame;
struct symbolizer;

/*
 * Empty; NULL if out of memory. `mappings` and `symbolizer` (NULL: nothing is named) are borrowed
 * for its life.
 */
struct places *places_new(const struct mappings *mappings, struct symbolizer *symbolizer);

/* Frees what places_take() did not take; NULL is fine. */
void places_free(struct places *places);

/*
 * The location of the code that `frame` (HB_FRAME()) of a stack taken in `state` was at: 0 and its
 * index in *location, or -ENOMEM. Equal addresses in equal mappings are one location; in JIT code,
 * which no file backs, those of one image are.
 */
int places_use_code(struct places *places, struct mappings_state state, uint64_t frame,
		    uint32_t *location);

/* The location that is no address but `frame` (static, compared by pointer); as above. */
int places_use_frame(struct places *places, const struct symbolize_frame *frame,
		     uint32_t *location);

/*
 * Names what is in files. To be called once, when all locations are in use. 0, or -ENOMEM, -EMFILE,
 * -ENFILE.
 */
int places_name_files(struct places *places);

/*
 * Names what is in JIT code of the image `epoch`, as the process wrote it down: it is the last one,
 * and the map is its own. As above.
 */
int places_name_jit(struct places *places, uint32_t epoch, const struct perf_map_owner *owner);

/*
 * Moves locations (in order of first use) and mappings (sorted by start) into `profile`, which has
 * none yet. 0, or -ENOMEM with `profile` untouched.
 */
int places_take(struct places *places, struct profile *profile);

#endif
