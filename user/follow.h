/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One look at a target: the kernel's picture of its mappings is brought up to date.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct session;
struct target;

/* Follows a target that was named, from now on. 0 or -errno, logged. */
int follow_begin(struct session *session, struct target *target);

/*
 * Reads the mappings and probes what is new in them; again until every change would be noticed. 0,
 * -ESRCH (not logged) or -errno, logged.
 */
int follow_catch_up(struct session *session, struct target *target);

/*
 * Where the target is, and with `renamed` its name, anew. A failure is logged and makes the session
 * incomplete.
 */
void follow_renew(struct session *session, struct target *target, bool renamed);

/*
 * The same as follow_catch_up() after events told of changes: probes of a thread that is gone are
 * replaced. A failure makes the session incomplete, unless the target has ended.
 */
int follow_look(struct session *session, struct target *target);

/*
 * What may come later and take longer: forgets the objects of images that ended, gets names for
 * what is new.
 */
void follow_tidy(struct session *session, struct target *target);

/* follow_look(), and if it goes well follow_tidy(). */
void follow_look_well(struct session *session, struct target *target);

/*
 * Nanoseconds until the next look that events ask for, 0 or less: now. A process that loads
 * libraries without end must not keep us busy without end.
 */
int64_t follow_pause_left_ns(const struct target *target);

#endif
