/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one door through which probes are attached. Three ways, best first.
 */
#ifndef UPROBE_LINK_H
#define UPROBE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;
struct uprobe_links;

/* Ways to attach; also the order of preference. */
enum uprobe_link_tier {
	UPROBE_LINK_SESSION, /* kernel 6.13, d920179b3d48: entry decides if the return is probed */
	UPROBE_LINK_MULTI,   /* kernel 6.6, 89ae89f53d20; pid filter right since 46ba0e49b642 */
	UPROBE_LINK_PERF,    /* perf-event uprobes, one event per point and side */
	UPROBE_LINK_TIER_CNT,
};

/* "session", "multi", "perf". Static. */
const char *uprobe_link_tier_name(enum uprobe_link_tier tier);

/* bpf_attach_type that programs of this tier are loaded with; 0: libbpf's default. */
uint32_t uprobe_link_attach_type(enum uprobe_link_tier tier);

/*
 * The programs of a tier; `returns` is NULL for SESSION and where returns are not probed. `plain`
 * is not NULL for SESSION only, a program of MULTI for the points that want no return probe. A
 * session program there would say no for its own process; but other processes stop at a breakpoint
 * of theirs, too (a forked child, one that another tool probes), and for those the kernel replaces
 * the return address without asking the program (uprobe_prog_run(), as of 6.18). Where a function
 * may throw, that ends them.
 */
struct uprobe_link_progs {
	const struct bpf_program *entry;
	const struct bpf_program *returns;
	const struct bpf_program *plain;
};

/* One place in a file. */
struct uprobe_link_point {
	uint64_t off;	 /* file offset of the instruction */
	uint64_t cookie; /* HB_COOKIE() */
	bool returns;	 /* wants a return probe too, at the same place: rsp holds its address */
};

/* An empty set, or NULL if out of memory. */
struct uprobe_links *uprobe_links_new(void);

/*
 * Attaches all points in the file at `path` for the process `tgid` (0: for all) and keeps the links
 * in `links`. For SESSION those that want no return probe come first; else they come in their
 * order. All or nothing: 0, or -errno of the kernel with nothing added; -EINTR if somebody killed
 * the process that did it.
 */
int uprobe_links_add(struct uprobe_links *links, enum uprobe_link_tier tier,
		     const struct uprobe_link_progs *progs, pid_t tgid, const char *path,
		     const struct uprobe_link_point *points, size_t cnt);

/*
 * Moves the links that were added for `tgid` from `from` to `to`; those that there is no memory for
 * are detached.
 */
void uprobe_links_move_of(struct uprobe_links *from, pid_t tgid, struct uprobe_links *to);

/* True if there is none. */
bool uprobe_links_are_none(const struct uprobe_links *links);

/* Moves all links of `from` to `to`; those that there is no memory for are detached. */
void uprobe_links_move(struct uprobe_links *from, struct uprobe_links *to);

/* Detaches everything; the set stays usable. Waits as uprobe_links_free() does. */
void uprobe_links_clear(struct uprobe_links *links);

/*
 * Detaches everything and frees; NULL is fine. Waits for the kernel's grace periods (tens of
 * milliseconds, for many links at once).
 */
void uprobe_links_free(struct uprobe_links *links);

#endif
