// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: messages from every room. Out: whole lines on stderr. What is shown, and whether an error
 * was, are the only mutable globals of the program.
 */
#include "log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static enum log_level shown_level = LOG_LEVEL_INFO;
static bool failed;

void log_set_level(enum log_level level)
{
	shown_level = level;
}

int log_shows(enum log_level level)
{
	return level <= shown_level;
}

int log_failed(void)
{
	return failed;
}

void log_set_failed(void)
{
	failed = true;
}

/* Formats into one buffer so that lines of several threads do not interleave. */
static void emit(const char *prefix, int err, const char *fmt, va_list args)
{
	int saved = errno;
	char text[4096];

	vsnprintf(text, sizeof(text), fmt, args);
	if (err)
		fprintf(stderr, "%s%s: %s\n", prefix, text, strerror(err));
	else
		fprintf(stderr, "%s%s\n", prefix, text);
	errno = saved;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	va_list args;

	if (!log_shows(level))
		return;
	va_start(args, fmt);
	emit("", 0, fmt, args);
	va_end(args);
}

int log_fail(int err, const char *fmt, ...)
{
	va_list args;

	failed = true;
	va_start(args, fmt);
	emit("heapbpf: ", err, fmt, args);
	va_end(args);
	return err ? -err : -EINVAL;
}

#define DEFINE_LOG(name, level)                                                                    \
	void log_##name(const char *fmt, ...)                                                      \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		if (!log_shows(level))                                                             \
			return;                                                                    \
		failed |= level == LOG_LEVEL_ERROR;                                                \
		va_start(args, fmt);                                                               \
		emit("heapbpf: ", 0, fmt, args);                                                   \
		va_end(args);                                                                      \
	}

DEFINE_LOG(error, LOG_LEVEL_ERROR)
DEFINE_LOG(warn, LOG_LEVEL_WARN)
DEFINE_LOG(debug, LOG_LEVEL_DEBUG)
