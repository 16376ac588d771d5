/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are whole or absent: written beside their place, fsynced, renamed; mode 0600, owned by
 * SUDO_UID when that is set. A character device, pipe or socket is written directly, and so is what
 * "-", /dev/stdout, /dev/fd/N or /proc/self/fd/N is open on. Any other symbolic link is replaced,
 * not followed: a link planted in a shared directory cannot send root's output elsewhere.
 */
#ifndef OUTFILE_H
#define OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

struct outfile;

/* True if `path` is a name of our standard output: data goes there, so talk must not. */
bool outfile_is_stdout(const char *path);

/* True if `path` means a directory: it ends in a slash, or there is one. */
bool outfile_is_directory(const char *path);

/*
 * Makes the directory `path`, with the mode and the owner that files get, unless it is there. 0 or
 * -errno, logged.
 */
int outfile_make_directory(const char *path);

/* Says that `path` cannot be written, why (errno `err`), and what to do. -err. */
int outfile_refuse(int err, const char *path);

/*
 * Checks at start that `path` can be created, by creating the file beside it, so that a long run
 * is not lost at its end; logs the reason. 0, -ENOENT, -EACCES, -EROFS, -EISDIR or other -errno.
 */
int outfile_check(const char *path);

/*
 * Opens a file that will be `path` ("-" = stdout). 0 and *out, or -errno, logged. A pipe without a
 * reader blocks until there is one.
 */
int outfile_open(const char *path, struct outfile **out);

/* The stream to write to; borrowed until commit or abort. */
FILE *outfile_stream(struct outfile *file);

/*
 * Flushes, fsyncs, renames into place and frees. 0, or -errno (-ENOSPC, -EPIPE; SIGPIPE is the
 * caller's to ignore), logged, with nothing left behind.
 */
int outfile_commit(struct outfile *file);

/* Drops everything written and frees; NULL is fine. What went down a pipe is gone. */
void outfile_abort(struct outfile *file);

#endif
