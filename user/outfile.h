/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are whole or absent: written beside their place, fsynced, renamed; mode 0600, owned by
 * SUDO_UID when that is set. A device or pipe is written directly.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdio.h>

struct outfile;

/*
 * Checks at start that `path` can be created (directory exists and is writable), so that a long
 * run is not lost at its end; logs the reason. 0 or -errno.
 */
int outfile_check(const char *path);

/* Opens a file that will be `path` ("-" = stdout). 0 and *out, or -errno, logged. */
int outfile_open(const char *path, struct outfile **out);

/* The stream to write to; borrowed until commit or abort. */
FILE *outfile_stream(struct outfile *file);

/*
 * Flushes, fsyncs, renames into place and frees. 0, or -errno, logged, with nothing left behind.
 */
int outfile_commit(struct outfile *file);

/* Drops everything written and frees; NULL is fine. */
void outfile_abort(struct outfile *file);

#endif
