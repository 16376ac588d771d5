/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this kernel and our privileges allow, found by trying it on our own process, never by a
 * version number alone.
 */
#ifndef CAPS_H
#define CAPS_H

#include "uprobe_link.h"

#include <stdbool.h>
#include <sys/types.h>

/* The answers. */
struct caps {
	bool tier[UPROBE_LINK_TIER_CNT]; /* this way to attach works */
	/*
	 * What one that does not work would be without, if it is there: a capability,
	 * "permission", "the other threads of a process"; or NULL. Static.
	 */
	const char *lacks[UPROBE_LINK_TIER_CNT];
	enum uprobe_link_tier best; /* the first that works */
};

/*
 * Asks for all of it. 0 and *out, or -errno after one logged line that says what is missing, why,
 * and what to do: -EPERM (privileges, lockdown), -ENOENT (no BTF), -EOPNOTSUPP (kernel too old).
 */
int caps_probe(struct caps *out);

/*
 * Finds the best way to attach, or tries `wanted` unless that is UPROBE_LINK_TIER_CNT; asks no more
 * than that takes. 0 and *out, or -errno after one logged line as above.
 */
int caps_choose(enum uprobe_link_tier wanted, enum uprobe_link_tier *out);

/*
 * May return probes be used on `tgid`, attached by `tier`, which works? Some kernels (6.11 to
 * 6.12.13 and 6.13 to 6.13.2 upstream) kill a process under seccomp at its first return probe
 * (CVE-2025-21834). For such a process it is tried on a sandboxed child of our own, since a
 * distribution's kernel may carry the fix under any number. 0: they may; -EOPNOTSUPP: this kernel
 * kills it; -errno: that cannot be tried. Not logged.
 */
int caps_return_probes(pid_t tgid, enum uprobe_link_tier tier);

/* The same, logged. */
int caps_check_returns(pid_t tgid, enum uprobe_link_tier tier);

/* The same of any process there is or will be, sandboxed ones among them; logged. */
int caps_check_returns_everywhere(enum uprobe_link_tier tier);

#endif
