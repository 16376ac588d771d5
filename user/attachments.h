/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All probes of a run as one switch: where they belong is kept, so that they can be taken out and
 * put back. What the dynamic linker calls (HB_FN_LINKER) costs nothing and stays probed.
 */
#ifndef ATTACHMENTS_H
#define ATTACHMENTS_H

#include "uprobe_link.h"

#include <stdbool.h>

struct attachments;

/* Empty and off, for programs of `tier`; NULL if out of memory. `progs` is copied. */
struct attachments *attachments_new(enum uprobe_link_tier tier,
				    const struct uprobe_link_progs *progs);

/* Takes every probe out, waits for the kernel, and frees; NULL is fine. */
void attachments_free(struct attachments *attachments);

/*
 * Adds the points of a file in `tgid` (0: in all processes), and puts them in if the switch is on.
 * `path` must go on to name that file. 0, or -errno of the kernel with nothing added.
 */
int attachments_add(struct attachments *attachments, pid_t tgid, const char *path,
		    const struct uprobe_link_point *points, size_t cnt);

/* Forgets the probes of a process; attachments_sweep() takes them out. */
void attachments_drop(struct attachments *attachments, pid_t tgid);

/* Takes out what was dropped, unless the thread of attachments_off() is still at work. */
void attachments_sweep(struct attachments *attachments);

/* Is a process to be probed when the switch is on? */
typedef bool attachments_fn(pid_t tgid, void *data);

/* From now on only processes are probed that fn(..., data) agrees to; NULL: all. */
void attachments_choose(struct attachments *attachments, attachments_fn *fn, void *data);

/* Puts all in. 0, or -errno with the switch off. On already: does nothing. */
int attachments_on(struct attachments *attachments);

/*
 * Takes all out, on a thread of their own: the breakpoints go at once, and what the kernel then
 * waits for keeps nobody.
 */
void attachments_off(struct attachments *attachments);

/*
 * Takes everything out for good, hooks and the links in `more` included, all at once, and waits
 * until no program runs any more.
 */
void attachments_end(struct attachments *attachments, struct uprobe_links *more);

#endif
