/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scope-bound ownership: an owning local carries a cleanup attribute, starts at NULL or -1, and
 * leaves the function through take_ptr() or take_fd(). Nothing else frees on the way out.
 */
#ifndef CLEANUP_H
#define CLEANUP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Frees the pointer that `p` points at; for the attribute below only. */
static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/* Closes the descriptor unless it is negative; for the attribute below only. */
static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Closes the stream unless it is NULL; for the attribute below only. */
static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/*
 * Closes a stream of open_memstream() and settles its *text. False, and *text NULL, if memory was
 * short at any time, which fclose() alone does not tell.
 */
static inline bool close_memstream(FILE *stream, char **text)
{
	bool failed = ferror(stream);

	if (fclose(stream) || !*text)
		failed = true;
	if (failed) {
		free(*text);
		*text = NULL;
	}
	return !failed;
}

#define _cleanup_(f)	__attribute__((cleanup(f)))
#define _cleanup_free_	_cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_file_	_cleanup_(cleanup_file)

/* Defines cleanup_<name>(), which hands the local `type *` to `free_fn` (accepts NULL). */
#define DEFINE_CLEANUP(name, type, free_fn)                                                        \
	static inline void cleanup_##name(type **p)                                                \
	{                                                                                          \
		free_fn(*p);                                                                       \
	}

/* Moves the pointer out of an owning local, which becomes NULL. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* Moves the descriptor out of an owning local, which becomes -1. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define ARRAY_CNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
