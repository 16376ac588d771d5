/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples of a profile grouped by the place in the code that asked for the memory: a site is
 * the first frame, by function, file and line, that belongs to no allocator and to no language's
 * library. Where there is none it is the caller of the outermost allocator function, as flat values
 * have it in pprof (drop_frames).
 */
#ifndef SITES_H
#define SITES_H

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A frame of a sample's stack. */
struct sites_position {
	size_t location; /* index in sample->locations */
	size_t frame;	 /* index in its names, innermost inline function first */
};

/* One site, or a sum of sites. */
struct site {
	char *name;			      /* "function  file:line", short; NULL for a sum */
	double bytes, objects;		      /* in use, or allocated where inuse is not tracked */
	double alloc_bytes;		      /* allocated */
	struct profile_error error;	      /* of bytes */
	size_t cnt;			      /* stacks of a site, sites of a sum */
	const struct profile_sample *largest; /* its sample with most bytes; NULL for a sum */
	struct sites_position position;	      /* of the site in `largest` */
};

/* All sites, largest first; equal ones by alloc_bytes, then by name. */
struct sites {
	struct site *sites; /* owned, with their names */
	size_t cnt;
	struct site sum;
};

/*
 * Groups the samples of `profile`, which must outlive the result. 0 and *out (free with
 * sites_clear()), or -ENOMEM with *out untouched.
 */
int sites_make(const struct profile *profile, struct sites *out);

/* Frees what it owns and empties it; a zeroed struct is empty. */
void sites_clear(struct sites *sites);

/* Adds the numbers of `site` to `sum` and counts it. */
void sites_add(const struct site *site, struct site *sum);

/* True if the frame is a standard library's, which says how memory was asked for, and not who did.
 */
bool sites_is_plumbing(const struct profile *profile, const struct profile_sample *sample,
		       struct sites_position position);

/* Moves to the caller's frame; false at the root, and then *position is no frame. */
bool sites_to_caller(const struct profile *profile, const struct profile_sample *sample,
		     struct sites_position *position);

/*
 * Writes the name of a frame without arguments of functions and templates, else file+offset, else
 * the address.
 */
void sites_put_name(const struct profile *profile, const struct profile_sample *sample,
		    struct sites_position position, FILE *out);

#endif
