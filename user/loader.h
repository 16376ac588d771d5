/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF programs and maps: sized, configured, loaded, attached, read. Nobody else touches the
 * skeleton.
 */
#ifndef LOADER_H
#define LOADER_H

#include "../bpf/abi.h"
#include "hit_cost.h"
#include "mappings.h"
#include "uprobe_link.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct heap;
struct loader;
struct unwind_table_maps;

/* What a run needs; borrowed during loader_open(). */
struct loader_opts {
	uint64_t rate_bytes;
	uint32_t max_stacks, max_sites, max_live; /* entries of the maps */
	uint32_t max_processes;			  /* followed at a time */
	uint32_t max_depth;			  /* PCs of a stack, 1..HB_STACK_MAX */
	uint32_t follow;			  /* HB_FOLLOW_* */
	bool track_live;			  /* false: entry probes only */
	bool floor;				  /* empty programs, to measure the traps alone */
	bool count_each;			  /* loader_costs_of() is wanted */
	enum uprobe_link_tier tier;
};

/* Loads. 0 and *out (loader_free()), or -errno, logged. */
int loader_open(const struct loader_opts *opts, struct loader **out);

/* Detaches, unloads and frees; NULL is fine. */
void loader_free(struct loader *loader);

/*
 * Measures what a hit costs by probing functions of our own, and zeroes the counters afterwards;
 * call it before loader_attach(). 0, or -errno with *out zero.
 */
int loader_calibrate(struct loader *loader, struct hit_cost *out);

/*
 * What a hit costs now, as long as loader_calibrate() went well and a window is open: the machine's
 * other work makes it dearer. Nanoseconds of processor time. Its own hits are not counted.
 */
double loader_hit_ns(struct loader *loader);

/*
 * Puts every probe that loader_attach() was told of in place. 0 or -errno, not logged. They are at
 * first, until loader_disarm().
 */
int loader_arm(struct loader *loader);

/* Is a process to be probed? */
typedef bool loader_chooses_fn(pid_t tgid, void *data);

/*
 * Of what loader_attach() was told only those are put in place, from the next time on, that
 * fn(..., data) agrees to.
 */
void loader_choose(struct loader *loader, loader_chooses_fn *fn, void *data);

/* Takes them out; the kernel's part of it goes on beside us. */
void loader_disarm(struct loader *loader);

/*
 * Opens a window, in which everything is counted, or closes it, for all probes at once. Open it
 * when every probe is in place, close it before they go: what is seen in between is seen whole.
 */
void loader_window(struct loader *loader, bool open);

/* One sample per so many bytes from the next window on; only while none is open. */
void loader_set_rate(struct loader *loader, uint64_t rate_bytes);

/*
 * Follows the process from now on, unless it is; *epoch is the number of its image. 0 or -errno,
 * not logged.
 */
int loader_follow(struct loader *loader, pid_t tgid, uint32_t *epoch);

/* Takes nothing from now on of image `epoch` of a process that joined by itself (everybody). */
void loader_ignore(struct loader *loader, pid_t tgid, uint32_t epoch);

/*
 * Holds the followed process `tgid` by SIGSTOP at the places that `hold` names (HB_HOLD_EXEC, or
 * HB_HOLD_LINKER with the dynamic linker of its image, else NULL); HB_EVENT_HELD tells of it. After
 * that event: says where the next time; the caller sends SIGCONT. 0 or -errno, not logged.
 */
int loader_hold(struct loader *loader, pid_t tgid, enum hb_hold hold,
		const struct hb_linker *linker);

/*
 * True if somebody is being held: SIGCONT is due, after HB_EVENT_HELD, which may be still to come.
 */
bool loader_holds_any(const struct loader *loader);

/* Holds nobody from now on but those who are being held. */
void loader_end_holds(struct loader *loader);

/* Descriptor of the map `holds`, borrowed. */
int loader_holds_fd(const struct loader *loader);

/*
 * Where others can end holds as well, by any number but 0: a descriptor, borrowed, of memory to
 * map, and in it the offset of 4 bytes.
 */
int loader_holds_switch(const struct loader *loader, uint64_t *off);

/* What BPF knows of the state of a process. 0, -ESRCH: it is not followed (any more), or -errno. */
int loader_state(const struct loader *loader, pid_t tgid, struct mappings_state *out);

/*
 * Throws away the live objects of images of `tgid` before `epoch`: they ended with their exec and
 * would only take up room.
 */
void loader_forget_images(struct loader *loader, pid_t tgid, uint32_t epoch);

/*
 * Probes `points` of the file at `path` in `tgid`; `wrappers` are the ranges of its allocator's
 * functions, for slot `slot` < HB_SLOT_MAX - 1, the one in the points' cookies. 0 or -errno, not
 * logged.
 */
int loader_attach(struct loader *loader, pid_t tgid, const char *path, uint32_t slot,
		  const struct hb_wrappers *wrappers, const struct uprobe_link_point *points,
		  size_t cnt);

/* Takes the probes of one process out, soon: loader_sweep() goes on with it. */
void loader_detach_process(struct loader *loader, pid_t tgid);

/* To be called now and then. */
void loader_sweep(struct loader *loader);

/* Takes every probe out and waits until no program runs; the maps stay readable. */
void loader_detach(struct loader *loader);

/* Descriptors of the unwinder's maps, for unwind_table. */
void loader_unwind_maps(const struct loader *loader, struct unwind_table_maps *out);

/* Called with each record of the ring. */
typedef void loader_event_fn(const struct hb_event *event, void *data);

/* Delivers events to fn(…, data) from loader_poll_events(). 0 or -errno, logged. */
int loader_on_event(struct loader *loader, loader_event_fn *fn, void *data);

/* Descriptor that is readable when there are events; -1 before loader_on_event(). */
int loader_event_fd(const struct loader *loader);

/* Delivers what is there, without waiting. */
void loader_poll_events(struct loader *loader);

/*
 * What probes cost the process so far, by enum hb_stat; needs loader_opts.count_each. False:
 * nothing, or it has ended.
 */
bool loader_costs_of(const struct loader *loader, pid_t tgid, uint64_t costs[static HB_COST_CNT]);

/* Finds the heap of a process in its image `epoch`; NULL: nobody is interested. */
typedef struct heap *loader_heap_fn(pid_t tgid, uint32_t epoch, void *data);

/*
 * Moves what windows counted since the last call to the heaps, which know the period, and forgets
 * what is alive. Only while no window is open. 0 or -errno, logged.
 */
int loader_settle(struct loader *loader, loader_heap_fn *heap_of, void *data);

/* Sums the counters over CPUs; hits of our own that loader_hit_ns() made are left out. */
void loader_counters(const struct loader *loader, uint64_t counters[static HB_COUNTER_CNT]);

/* Estimated bytes in use over all processes, for the progress line. */
double loader_live_bytes(const struct loader *loader);

/* Adds every stack to its heap. 0 or -errno, logged. */
int loader_read_stacks(const struct loader *loader, loader_heap_fn *heap_of, void *data);

#endif
