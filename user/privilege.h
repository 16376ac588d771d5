/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What we are not allowed to do, by the names that capabilities(7) gives it.
 */
#ifndef PRIVILEGE_H
#define PRIVILEGE_H

/* What recording needs. */
enum privilege {
	PRIVILEGE_BPF, /* to load programs, and attach them by uprobe links: CAP_BPF, CAP_PERFMON */
	/*
	 * To attach them by perf events: CAP_SYS_ADMIN, whatever kernel.perf_event_paranoid says.
	 * From 5.8 on CAP_PERFMON was enough (c9e0924e5c2b), until 6.16, 6.12.39 and 6.1.146
	 * (ba677dbe77af, CVE-2025-38466), and never in Debian with perf_event_paranoid=3.
	 */
	PRIVILEGE_PERF_UPROBE,
	PRIVILEGE_PROCESS, /* to read a process of another user: CAP_SYS_PTRACE */
	PRIVILEGE_CNT,
};

/*
 * The capabilities that we lack for it: "CAP_BPF and CAP_PERFMON", a single one, or NULL if none is
 * missing or our own state cannot be read. Static. Those of a user namespace count as if they were
 * real; the kernel knows better.
 */
const char *privilege_missing(enum privilege privilege);

#endif
