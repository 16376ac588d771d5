/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that is open while processes are profiled: programs, tables, targets. Keeps the
 * kernel's picture of their mappings up to date.
 */
#ifndef SESSION_H
#define SESSION_H

#include "bystanders.h"
#include "join.h"
#include "loader.h"
#include "probes.h"
#include "targets.h"

#include <stddef.h>
#include <stdint.h>

struct command;
struct elf_cache;
struct everybody;
struct opts;
struct symbolizer;
struct target;
struct unwind_table;

/* After an exec the mappings are read so often at most, until there is an allocator. */
#define SESSION_LOOKS 40

/* The state; plain to read, changed by the functions here only. */
struct session {
	const struct opts *opts; /* borrowed */
	bool track_live;
	bool counts_each; /* what the probes of each process cost is known */
	enum uprobe_link_tier tier;
	struct loader *loader;
	struct elf_cache *cache;
	struct symbolizer *symbolizer;
	struct unwind_table *unwind;
	struct targets targets; /* first those of the options, in their order */
	struct hit_cost cost;
	struct probes probes;
	struct everybody *everybody;  /* owned; NULL: only the targets are probed */
	struct bystanders bystanders; /* owned; who is probed and no target */
	uint64_t skipped[JOIN_SKIP_CNT];
	/* the first target is a command; held at their beginnings are it and its children */
	bool holds;
	bool ready;	 /* its first image is probed, and waits for hold_release() */
	bool released;	 /* that was called */
	bool incomplete; /* part of a target could not be followed; it was said */
};

/*
 * Opens targets and programs and attaches every probe. With a `command` (else NULL; used during the
 * call only), which is the only one of opts->tgids then, lets it execute its program and holds that
 * before it runs code of its own. 0 and *out (session_free()), or -errno, logged, with nothing left
 * attached.
 */
int session_open(const struct opts *opts, struct command *command, struct session **out);

/* Detaches what is left and frees; NULL is fine. */
void session_free(struct session *session);

/*
 * Notes the events of the ring, then looks once at each target that they touched: new mappings,
 * execs, exits. With `ending`, only notes which image is the current one; nothing is attached.
 */
void session_handle_events(struct session *session, bool ending);

/*
 * Milliseconds until session_look_again() should be called, -1: no need. After an exec the
 * dynamic linker still has to map the libraries, and not every one tells when it is done.
 */
int session_wait_ms(const struct session *session);

/* Looks for allocators that a new image mapped meanwhile, and at what events left for later. */
void session_look_again(struct session *session);

/* Gives back what those that ended had; to be called now and then. */
void session_tidy(struct session *session);

/* False: nobody is left to be recorded, and nobody will come. */
bool session_goes_on(const struct session *session);

/*
 * Puts the probes of all that live back in place and reads their mappings anew: nothing told of
 * changes while they were out. 0 or -errno, logged.
 */
int session_arm(struct session *session);

#endif
