/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that nobody named come into a recording: chosen ones, children, all that allocate.
 */
#ifndef JOIN_H
#define JOIN_H

#include "../bpf/abi.h"

#include <sys/types.h>

struct session;
struct target;

/*
 * Why a process that was chosen is not profiled.
 *   X(enum suffix, what people read after a number)
 */
#define JOIN_SKIP_LIST(X)                                                                          \
	X(KERNEL, "kernel threads")                                                                \
	X(ZOMBIE, "zombies, or without their main thread")                                         \
	X(PERMISSION, "without permission to read them")                                           \
	X(SECCOMP, "under seccomp, where this kernel kills a process at a return probe")           \
	X(ENDED, "ended before they could be probed")                                              \
	X(UNKNOWN, "ended before it was known whether they are chosen")                            \
	X(NO_ALLOCATOR, "without an allocator that can be probed")                                 \
	X(FULL, "too many: --max-processes reached")                                               \
	X(FAILED, "could not be followed")

#define JOIN_SKIP_ENUM(id, text) JOIN_SKIP_##id,
enum join_skip { JOIN_SKIP_LIST(JOIN_SKIP_ENUM) JOIN_SKIP_CNT };

/* The text of the list. Static. */
const char *join_skip_text(enum join_skip skip);

/* Counts a process that is not profiled. */
void join_skip(struct session *session, enum join_skip skip);

/* Takes in every process that the options choose and that exists now. 0 or -errno, logged. */
int join_chosen(struct session *session);

/* A process joined in BPF (HB_EVENT_JOIN): it becomes a target, to be looked at soon. */
void join_announced(struct session *session, const struct hb_event *event);

/* A process executed a program (HB_EVENT_SEEN): it becomes a target if it is chosen. */
void join_seen(struct session *session, pid_t tgid);

#endif
