/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A command is held wherever an image of it begins, until that is probed: so nothing that the
 * program allocates is missed, from the first on.
 */
#ifndef HOLD_H
#define HOLD_H

struct hb_event;
struct session;
struct target;

/*
 * The target is held, as target->hold says: probes what is mapped now and lets it go on, to the
 * next hold if there is one in this image. The first image stays held once it is ready, and
 * session->ready tells so.
 */
void hold_serve(struct session *session, struct target *target);

/* Lets go on who is held (HB_EVENT_HELD) but is no target; at its next image it may become one. */
void hold_pass(struct session *session, const struct hb_event *event);

/*
 * Lets the command run its own code. From then on each image that it executes is held for the
 * moment that it takes to probe it, until hold_end(). Without a command nothing.
 */
void hold_release(struct session *session);

/*
 * Holds nobody any more, and lets go who is held. Once or more often; nothing without a command, or
 * before hold_release().
 */
void hold_end(struct session *session);

#endif
