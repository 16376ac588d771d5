/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What we are not allowed to do, by the names that capabilities(7) gives it.
 */
#ifndef PRIVILEGE_H
#define PRIVILEGE_H

/* What recording needs. */
enum privilege {
	PRIVILEGE_BPF,	   /* to load programs and attach them: CAP_BPF and CAP_PERFMON */
	PRIVILEGE_PROCESS, /* to read a process of another user: CAP_SYS_PTRACE */
	PRIVILEGE_CNT,
};

/*
 * The capabilities that we lack for it: "CAP_BPF and CAP_PERFMON", one of them, or NULL if none is
 * missing or our own state cannot be read. Static. Those of a user namespace count as if they were
 * real; the kernel knows better.
 */
const char *privilege_missing(enum privilege privilege);

#endif
