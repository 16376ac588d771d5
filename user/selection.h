/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes chosen by what they are, not by number: their name, control group, user.
 */
#ifndef SELECTION_H
#define SELECTION_H

#include <regex.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * What a process must be; all that is given. Zeroed: any process is chosen, and nothing is given.
 */
struct selection {
	bool by_comm, by_user;
	regex_t comm; /* POSIX extended, found anywhere in the name */
	uid_t user;   /* effective */
	char *cgroup; /* owned; a path as in /proc/PID/cgroup, without an ending slash; or NULL */
};

/* Takes the regular expression of --comm. 0, or -EINVAL, logged. */
int selection_set_comm(struct selection *selection, const char *text);

/* Takes a name or a number as --user has it. 0, or -EINVAL, logged. */
int selection_set_user(struct selection *selection, const char *text);

/*
 * Takes a control group, by its directory in a mounted cgroup file system or by its path as in
 * /proc/PID/cgroup. It may be one that is made later. 0, or -EINVAL or -ENOMEM, logged.
 */
int selection_set_cgroup(struct selection *selection, const char *text);

/* Is anything given? */
bool selection_is_set(const struct selection *selection);

/* Is process `tgid` chosen? No if it is gone. A control group holds those below it, too. */
bool selection_takes(const struct selection *selection, pid_t tgid);

/*
 * Do a name and an effective user fit? For what a process was like when something happened; its
 * control group is not looked at.
 */
bool selection_fits(const struct selection *selection, const char *comm, uid_t user);

/* Is process `tgid` in the control group that is given? Yes if none is, else no if it is gone. */
bool selection_holds(const struct selection *selection, pid_t tgid);

/* Called with the number of a process; not 0 ends the walk. */
typedef int selection_fn(pid_t tgid, void *data);

/*
 * Calls fn with each process that exists and is chosen. 0, what fn returned, or -errno of reading
 * /proc, logged.
 */
int selection_each(const struct selection *selection, selection_fn *fn, void *data);

/* Frees and empties. */
void selection_clear(struct selection *selection);

#endif
