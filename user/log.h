/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to people, on stderr, one line each, prefixed "heapbpf: ". A failure is logged once,
 * where the call failed and the pid or path is known; callers just return the code. Out of memory
 * is the same everywhere: -ENOMEM may come up without a word, and main() says it.
 */
#ifndef LOG_H
#define LOG_H

#include <stdarg.h>

enum log_level {
	LOG_LEVEL_ERROR, /* always shown */
	LOG_LEVEL_WARN,	 /* shown unless -q */
	LOG_LEVEL_INFO,	 /* shown unless -q */
	LOG_LEVEL_DEBUG, /* shown with -v */
	LOG_LEVEL_CNT,
};

/* Shows messages up to `level` from now on; the initial level is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* True if messages of `level` are shown. */
int log_shows(enum log_level level);

/* Writes one line without a prefix when `level` is shown; preserves errno. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Writes "heapbpf: <text>: <strerror(err)>" as an error and returns -err; err 0 leaves the
 * reason out and returns -EINVAL. `err` is positive; take errno into a local before calling.
 */
int log_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True once log_fail() or log_error() has said something. */
int log_failed(void);

/* As if it had: a copy of this process said it. */
void log_set_failed(void);

/* "heapbpf: <text>" at the level in the name. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* See log_error(). */
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* See log_error(). */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
