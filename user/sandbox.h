/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child under seccomp, to find out on it what would kill a sandboxed target.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <sys/types.h>

/*
 * Makes a child that may only read and exit, calls arm(child, data), which returns 0 or -errno, and
 * lets the child call act(), which must need no system call. 0: the child lived through it;
 * -EOPNOTSUPP: it was killed for what it did; -EINTR: by somebody; -errno of arm() or of what else
 * it could not be tried for.
 */
int sandbox_try(int (*arm)(pid_t child, void *data), void *data, void (*act)(void));

#endif
