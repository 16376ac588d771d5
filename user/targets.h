/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All processes of a recording: found by number, and told when they end.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target;
struct targets_number;

/* Plain to read, changed by the functions here only. Zeroed, it is empty. */
struct targets {
	struct target **all; /* owned, and the targets; in the order they came */
	size_t cnt, cap;
	size_t alive_cnt; /* of these, those whose end was not noted */
	int ends_fd;	  /* owned; readable when targets_note_ends() has something to note */
	struct targets_number *numbers; /* owned */
};

/* Makes it ready for targets_add(). 0 or -errno. */
int targets_init(struct targets *targets);

/* Frees the targets and empties; fine for one that is zeroed. */
void targets_clear(struct targets *targets);

/*
 * Takes `target`. One that has the same number must have ended. 0, or -errno with
 * `target` still the caller's.
 */
int targets_add(struct targets *targets, struct target *target);

/* The last one that had this number, or NULL. */
struct target *targets_find(const struct targets *targets, pid_t tgid);

/*
 * The one that had this number when its image was `epoch`, or NULL. Of one that has ended, target->
 * epoch must be its last.
 */
struct target *targets_find_image(const struct targets *targets, pid_t tgid, uint32_t epoch);

/* Notes that `target` has ended; more than once is fine. */
void targets_end(struct targets *targets, struct target *target);

/* Notes the end of all that have ended. */
void targets_note_ends(struct targets *targets);

#endif
