/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compresses a stream of bytes into a FILE, the same output for the same input: the header has no
 * time and no name.
 */
#ifndef GZIP_H
#define GZIP_H

#include <stddef.h>
#include <stdio.h>

struct gzip;

/* Writes to `out`, borrowed for its life. NULL if out of memory. */
struct gzip *gzip_new(FILE *out);

/* Frees without finishing; NULL is fine. */
void gzip_free(struct gzip *gzip);

/* Compresses `len` bytes; 0, -ENOSPC, -EPIPE, -EIO or what else the write to `out` ends with. */
int gzip_write(struct gzip *gzip, const void *data, size_t len);

/* Writes what is left and the trailer, to be called once, last; errors as gzip_write(). */
int gzip_finish(struct gzip *gzip);

#endif
