/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child under seccomp, to find out on it what would kill a sandboxed target.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Makes a child that may only read, write and exit (SECCOMP_MODE_STRICT), calls arm(child, data),
 * and lets the child call act(). True if the child lived through it; false if it was killed, if arm
 * did not return 0, or if there is no such child. act must need no system call.
 */
bool sandbox_survives(int (*arm)(pid_t child, void *data), void *data, void (*act)(void));

#endif
