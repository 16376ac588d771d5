/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line, checked: what is wrong is said here and nothing later needs to doubt it.
 */
#ifndef OPTS_H
#define OPTS_H

#include "alloc_hints.h"
#include "profile.h"
#include "selection.h"
#include "uprobe_link.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit statuses by meaning. */
enum opts_exit {
	OPTS_EXIT_WHOLE = 0,   /* done, complete */
	OPTS_EXIT_PARTIAL = 1, /* profile written, but something was lost (listed) */
	OPTS_EXIT_FAILED = 2,  /* no profile */
	OPTS_EXIT_USAGE = 64,  /* the command line makes no sense */
};

/* What to do. */
enum opts_verb {
	OPTS_RECORD,
	OPTS_CHECK,
	OPTS_VERB_CNT,
};

/* All options with their defaults filled in. */
struct opts {
	enum opts_verb verb;
	pid_t *tgids; /* owned; distinct, in the order given */
	size_t tgid_cnt;
	bool everybody; /* every process that allocates, of those that `selection` takes */
	struct selection selection; /* owned */
	bool follow;		    /* children of what is profiled, too */
	bool follow_given;	    /* and that was said, or the contrary */
	int64_t duration_ns;	    /* 0: until interrupted or the targets' end */
	uint64_t rate_bytes;
	double max_overhead; /* share of the targets' processor time; INFINITY: no limit */
	bool types[PROFILE_TYPE_CNT];
	size_t type_cnt;
	const char *output; /* borrowed from argv; NULL: a name of our own */
	bool text;
	bool quiet;
	uint32_t top;		  /* rows of the table */
	int ready_fd;		  /* -1: none */
	struct alloc_hints hints; /* owned */
	uint32_t share;		  /* so many processes are recorded at a time; 0: all */
	uint32_t max_stacks, max_sites, max_live, max_depth, max_processes;
	enum uprobe_link_tier tier; /* UPROBE_LINK_TIER_CNT: the best that works */
	bool floor;
	char **command;	      /* owned, with its words; NULL at its end. NULL: none */
	bool preserve_status; /* exit as the command did */
};

/*
 * Parses. 0 with *out filled (opts_clear()); -ECANCELED when --help or --version was printed;
 * -EINVAL after one logged line.
 */
int opts_parse(int argc, char **argv, struct opts *out);

/* Are the processes chosen by what they are, and may more of them come? */
bool opts_are_selected(const struct opts *opts);

/* Are there several processes, or may there be? */
bool opts_are_many(const struct opts *opts);

/* Frees what the options own. */
void opts_clear(struct opts *opts);

#endif
