/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between bpf/ (kernel) and user/: map keys and values, ring records, the
 * configuration, limits, and the lists of losses and statistics. Included by both compilers.
 * Fixed-width fields, no padding left to the compiler, sizes asserted.
 */
#ifndef HB_ABI_H
#define HB_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Of functions that BPF and user space share: a call in BPF costs more than what these do. */
#define HB_INLINE static inline __attribute__((always_inline))

/*
 * What a probed function means; a probe's cookie carries one. Entry points of the malloc family
 * with the arguments of their C prototypes, and what the dynamic linker calls for debuggers
 * (r_brk of struct r_debug) before and after it maps or unmaps libraries.
 *   X(enum suffix, name shown to people)
 */
#define HB_FN_LIST(X)                                                                              \
	X(MALLOC, "malloc")                                                                        \
	X(CALLOC, "calloc")                                                                        \
	X(REALLOC, "realloc")                                                                      \
	X(REALLOCF, "reallocf") /* (ptr, size): frees the block if it fails */                     \
	X(REALLOCARRAY, "reallocarray")                                                            \
	X(POSIX_MEMALIGN, "posix_memalign")                                                        \
	X(MEMALIGN, "memalign") /* (alignment, size): memalign, aligned_alloc */                   \
	X(VALLOC, "valloc")	/* (size), whole pages: valloc, pvalloc */                         \
	X(NEW, "operator new")	/* (size, ...): any form; may throw */                             \
	X(NEW_N, "new_n")	/* (number, size); may throw */                                    \
	X(FREE, "free")		/* (ptr, ...): free, cfree, free_sized, operator delete */         \
	X(LINKER, "_dl_debug_state")

#define HB_FN_ENUM(id, name) HB_FN_##id,
enum hb_fn { HB_FN_LIST(HB_FN_ENUM) HB_FN_CNT };

/*
 * Cookie of a probe (bpf_get_attach_cookie): where in its file the probe sits and what it means.
 *   bits  0..7   enum hb_fn
 *   bits  8..15  HB_COOKIE_* flags
 *   bits 16..23  bytes between rsp at the probed instruction and the return address, in words
 *                of 8; return probes ignore it
 *   bits 24..31  slot in `wrappers`
 *   bits 32..63  file offset of the probed instruction; regs->ip minus it is the load bias of
 *                the allocator's text, which makes the ranges in hb_wrappers comparable
 */
#define HB_COOKIE_FN(c)	      ((__u32)(c)&0xff)
#define HB_COOKIE_FLAGS(c)    (((__u32)(c) >> 8) & 0xff)
#define HB_COOKIE_SP_BYTES(c) ((((__u32)(c) >> 16) & 0xff) * 8)
#define HB_COOKIE_SLOT(c)     (((__u32)(c) >> 24) & 0xff)
#define HB_COOKIE_OFF(c)      ((__u32)((c) >> 32))
#define HB_COOKIE(fn, flags, sp_bytes, slot, off)                                                  \
	((__u64)(fn) | (__u64)(flags) << 8 | (__u64)((sp_bytes) / 8) << 16 | (__u64)(slot) << 24 | \
	 (__u64)(off) << 32)
#define HB_COOKIE_SP_BYTES_MAX (0xff * 8)
#define HB_SLOT_MAX	       256
#define HB_SLOT_SELF	       (HB_SLOT_MAX - 1) /* of functions of our own, to time probes on */

/*
 * Some argument values make an entry point jump (not call) into another probed one, which then
 * sees the caller's return address and counts the call by itself; the first one keeps silent.
 */
#define HB_COOKIE_DEFER_NULL  0x1 /* realloc(NULL, n) goes on as malloc(n) */
#define HB_COOKIE_DEFER_ALIGN 0x2 /* memalign(a <= HB_MALLOC_ALIGN, n) goes on as malloc(n) */
#define HB_MALLOC_ALIGN	      16
/* The probed instruction is single-stepped by the kernel; such hits are counted apart. */
#define HB_COOKIE_STEPPED 0x4
/*
 * What may throw gets no return probe: a replaced return address ends the program when the unwinder
 * meets it. AT_RETS: its result is seen by probes on its return instructions, which carry RESULT:
 * there rax is the result and rsp points at the return address. NO_RESULT: its return instructions
 * are not known, so it counts at its entry, and what becomes of the object is not followed.
 */
#define HB_COOKIE_AT_RETS   0x8
#define HB_COOKIE_RESULT    0x10
#define HB_COOKIE_NO_RESULT 0x20
/* At the probed instruction the arguments are one register on: rsi, rdx, rcx for rdi, rsi, rdx. */
#define HB_COOKIE_SHIFTED 0x40
/* Goes on, by a jump, where a variable points, if it points anywhere: struct hb_forward. */
#define HB_COOKIE_FORWARDS 0x80

/*
 * Limits: PCs of a stack, functions of an allocator.
 */
#define HB_STACK_MAX   512
#define HB_WRAPPER_MAX 64
#define HB_FORWARD_MAX 32

/* Of hb_live_hints: 64 kB, enough for some thousands of sampled objects. */
#define HB_LIVE_HINT_BITS 14
#define HB_LIVE_HINT_CNT  (1 << HB_LIVE_HINT_BITS)

/*
 * All knobs, written once by loader before load; read-only in BPF.
 */
struct hb_config {
	__u64 stack_seed; /* random; seeds the stack ids, so no target can aim for a collision */
	__u32 stack_max;  /* PCs kept of a stack, 1..HB_STACK_MAX */
	__u32 track_live; /* 0: allocs mode, entry programs only, account at entry */
	__u32 exact;	  /* 1: rate 1, zero sizes count, unknown frees are told from nested ones */
	__u32 follow;	  /* HB_FOLLOW_*: which processes join by themselves */
	__u32 self;	  /* our own process: never one of these */
	__u32 count_each; /* 1: what probes cost is to be known of each process */
};
_Static_assert(sizeof(struct hb_config) == 32, "no padding");

#define HB_FOLLOW_CHILDREN  0x1 /* who is forked from a followed process */
#define HB_FOLLOW_EVERYBODY 0x2 /* who meets a probe: those are in all processes */
/* Nobody, but user space is told of each process that executes a program, and may follow it. */
#define HB_FOLLOW_EXECS 0x4
#define HB_FOLLOW_HELD	0x8 /* children are held at their beginnings */

/*
 * Ends of a stack other than a complete one: the sample counts, its stack is cut at the root side,
 * and the profile marks it by a root frame "[short name]".
 *   X(enum suffix, short name, why)
 */
#define HB_CUT_LIST(X)                                                                             \
	X(STACK_NO_MAPPING, "no_mapping", "the next PC is in no known mapping")                    \
	X(STACK_STALE, "stale_mappings", "libraries were just loaded or unloaded")                 \
	X(STACK_NO_TABLE, "no_table", "the mapped file has no unwind table")                       \
	X(STACK_NO_ROW, "no_row", "no unwind information for this address")                        \
	X(STACK_READ_FAULT, "read_fault", "stack memory could not be read")                        \
	X(STACK_UNSUPPORTED, "unsupported_rule", "unwind rule not supported")                      \
	X(STACK_SP, "sp_not_growing", "stack pointer did not grow")                                \
	X(STACK_FP, "fp_rejected", "frame-pointer step not plausible")                             \
	X(STACK_TOO_DEEP, "truncated", "at the depth limit (--max-depth)")                         \
	X(STACK_GUESSED_END, "guessed_end", "ended after frame-pointer steps; end unproven")

/*
 * What is given up or missing: the numbers lack it, or a sample its whole stack.
 *   X(enum suffix, short name, what it means for the numbers)
 */
#define HB_LOSS_LIST(X)                                                                            \
	X(NO_SCRATCH, "no_scratch", "sample without stack: too many nested on this CPU")           \
	X(STACKS_FULL, "stacks_full", "sample without stack: --max-stacks or memory exhausted")    \
	X(STACK_COLLISION, "stack_collision", "sample without stack: two stacks, one hash")        \
	X(SITES_FULL, "sites_full", "allocation not counted: --max-sites or memory exhausted")     \
	X(LIVE_FULL, "live_full", "allocation not in inuse: --max-live or memory exhausted")       \
	X(NO_RESULT, "no_result", "allocation not in inuse: made by code whose end is not known")  \
	X(INFLIGHT_FULL, "inflight_full", "allocation not counted: too many calls in progress")    \
	X(LOST_FREE, "lost_free", "free not seen: a live address was allocated again")             \
	X(NO_PROCESS, "no_process",                                                                \
	  "allocation not counted: process not followed, or --max-processes reached")              \
	X(PROCS_FULL, "procs_full", "process not followed: --max-processes reached")               \
	X(READ_ARG, "read_arg", "allocation not counted: result could not be read")                \
	X(EVENTS_FULL, "events_full", "life-cycle event lost: no room in the ring buffer")         \
	X(UNHELD, "unheld", "a child not held where it begins, as that would be noticed")

/*
 * Both lists in one numbering: BPF counts by it, user space prints the texts, in the terminal
 * summary and in the profile's comments.
 */
#define HB_LOSS_ENUM(id, name, text) HB_LOSS_##id,
enum hb_loss { HB_CUT_LIST(HB_LOSS_ENUM) HB_LOSS_LIST(HB_LOSS_ENUM) HB_LOSS_CNT };

/*
 * Counters that are no losses. X(enum suffix, what is counted)
 */
#define HB_STAT_LIST(X)                                                                            \
	X(HITS, "probe hits on emulated instructions")                                             \
	X(STEPPED_HITS, "probe hits on single-stepped instructions")                               \
	X(RETURNS, "return probe hits")                                                            \
	X(SAMPLE_NS, "nanoseconds that sampled calls took beyond their hits")                      \
	X(SAMPLES, "sampled allocations")                                                          \
	X(FREES, "frees of sampled objects")                                                       \
	X(UNKNOWN_FREES, "frees of objects not sampled or older than the profile")                 \
	X(FAILED, "sampled calls that failed")                                                     \
	X(FRAMES, "frames walked")                                                                 \
	X(FP_STEPS, "frames walked by frame pointer")                                              \
	X(SIGNAL_FRAMES, "signal frames walked")                                                   \
	X(REPAIRS, "return addresses restored from return probes")                                 \
	X(FAULTED_READS, "stack reads that had to fault a page in")                                \
	X(STACKS_COMPLETE, "stacks walked to the end")                                             \
	X(STACKS_NEW, "stacks stored")

#define HB_STAT_ENUM(id, text) HB_STAT_##id,
enum hb_stat { HB_STAT_LIST(HB_STAT_ENUM) HB_STAT_CNT };

/* The first ones are what probes cost. */
#define HB_COST_CNT 4
_Static_assert(HB_STAT_SAMPLE_NS == HB_COST_CNT - 1, "what probes cost comes first");

/* Losses first, then statistics. */
#define HB_COUNTER_CNT (HB_LOSS_CNT + HB_STAT_CNT)

/*
 * The counters of a CPU (HB_COUNTERS_CNT of them): a count costs no call and no look-up in the
 * mapped .bss, and user space reads without system calls. CPUs whose numbers are equal modulo
 * HB_COUNTERS_CNT share one. Updated atomically; a sum over all is what counts.
 */
#define HB_COUNTERS_CNT 256
struct hb_counters {
	__u64 n[HB_COUNTER_CNT];
} __attribute__((aligned(64))); /* a cache line belongs to one CPU */
_Static_assert((HB_COUNTERS_CNT & (HB_COUNTERS_CNT - 1)) == 0, "the CPU is masked in BPF");

/*
 * What every hit reads and writes, side by side at the start of the mapped .bss (`hb_hot`), on a
 * page or two: each further page costs a busy program, whose own work has filled the TLB, another
 * walk of the page tables, and in a virtual machine a walk of two.
 */
struct hb_hot {
	/*
	 * The number of the recording window, 0 between them; set by user space while every probe
	 * is in place. Probes come and go one by one: without this an allocation that was seen
	 * could have its free missed, or the other way round. What happens while it is 0, or began
	 * in another window, did not happen.
	 */
	__u32 window;
	__u32 knobs;	/* HB_HOT_* */
	__u64 per_byte; /* for hb_takes() (draw.h); at most 2^32 + 2 */
	__u64 pad[6];
	struct hb_counters counters[HB_COUNTERS_CNT];
};
_Static_assert(sizeof(struct hb_hot) == 64 + HB_COUNTERS_CNT * sizeof(struct hb_counters),
	       "no padding");

#define HB_HOT_TRACKS  0x1 /* hb_config.track_live */
#define HB_HOT_UNUSUAL 0x2 /* other knobs of hb_config than that matter to a hit */

/*
 * Map `procs`: HASH tgid (u32) -> hb_proc. Present for each followed process, from when it joined
 * to its end.
 */
struct hb_proc {
	__u32 epoch;	 /* number of its image, from hb_images: a new one at each exec */
	__u32 libraries; /* +1 whenever the dynamic linker begins or ends a change; atomic */
	__u64 asked_ns;	 /* monotonic time of the last HB_EVENT_MAPS; bpf/proc.bpf.c only */
	__u32 told;	 /* 1: user space knows of it; 2: there was no room to tell it so far */
	__u32 ignored;	 /* the image of which user space wants nothing, or 0 */
	/* it was forked from this process and has its image; 0: no more, or unknown */
	__u32 parent;
	__u32 held_child; /* the child that was held last, if it lives; bpf/proc.bpf.c only */
	__u64 held_ns;	  /* monotonic time of that */
};
_Static_assert(sizeof(struct hb_proc) == 40, "no padding");

/* What the program `hb_ignore` is run with: nothing is wanted of that image of a process. */
struct hb_ignoring {
	__u32 tgid;
	__u32 epoch;
};
_Static_assert(sizeof(struct hb_ignoring) == 8, "no padding");

/*
 * Map `costs`: HASH tgid (u32) -> hb_costs. What probes cost a process that lives so far, if
 * hb_config.count_each.
 */
struct hb_costs {
	__u64 n[HB_COST_CNT]; /* by enum hb_stat; atomic */
};

/*
 * Variable `hb_images`: images that were ever followed. The number of one is larger than those of
 * all before, also of other processes: a process number that is used again has other images.
 */

/*
 * Map `sites`: HASH hb_site_key -> hb_site. Counters only grow; objects of equal size, so bytes
 * are counts times key.size. In use = allocs - frees - untracked.
 */
struct hb_site_key {
	__u64 stack_id; /* key in `stacks`, 0 = none (counted as a loss) */
	__u64 size;	/* requested bytes */
	__u32 tgid;
	__u32 epoch;
};
_Static_assert(sizeof(struct hb_site_key) == 24, "no padding");

struct hb_site {
	__u64 allocs;	 /* sampled allocations; updated atomically */
	__u64 frees;	 /* of these, freed or moved */
	__u64 untracked; /* of these, never in `live` (HB_LOSS_LIVE_FULL, HB_LOSS_NO_RESULT) */
};
_Static_assert(sizeof(struct hb_site) == 24, "no padding");

/*
 * Map `live`: HASH hb_live_key -> hb_live, sampled objects that are not freed.
 */
struct hb_live_key {
	__u64 addr;
	__u32 tgid;
	__u32 pad;
};
_Static_assert(sizeof(struct hb_live_key) == 16, "no padding");

struct hb_live {
	__u64 stack_id;
	__u64 size;
	__u32 epoch;
	__u32 pad;
};
_Static_assert(sizeof(struct hb_live) == 24, "no padding");

/*
 * A frame of a stack: where it is and in which mapping.
 *   bits  0..46  the PC; a return address unless HB_FRAME_EXACT is set. User space ends at 2^47
 *   bits 47..62  number of the mapping (struct hb_uw_map), or one of HB_MAPPING_*
 *   bit  63      HB_FRAME_EXACT: to be looked up as it is: the instruction that a signal
 *                interrupted, or the first one of a stub that is never called
 */
#define HB_FRAME_PC_BITS 47
#define HB_FRAME_EXACT	 (1ULL << 63)
#define HB_FRAME(number, pc)                                                                       \
	(((__u64)(number) << HB_FRAME_PC_BITS) | ((pc) & ((1ULL << HB_FRAME_PC_BITS) - 1)))
#define HB_FRAME_PC(frame)     ((frame) & ((1ULL << HB_FRAME_PC_BITS) - 1))
#define HB_FRAME_NUMBER(frame) ((__u32)((frame) >> HB_FRAME_PC_BITS) & 0xffff)

#define HB_MAPPING_NONE	   0	  /* memory without a file */
#define HB_MAPPING_UNKNOWN 0xffff /* not among the mappings that were known at that time */

/*
 * Map `stacks`: HASH u64 id -> hb_stack, whose value ends after hb_config.stack_max frames.
 * frame[0] is the allocator's caller.
 */
#define HB_STACK_COMPLETE 0xffff /* end: the outermost frame was reached */
struct hb_stack {
	__u64 check; /* second hash over the same frames: equal id, other check = collision */
	__u32 tgid;
	__u32 epoch;
	__u32 libraries; /* of hb_proc; part of the id only where a mapping is unknown */
	__u16 cnt;	 /* frames */
	__u16 end;	 /* HB_STACK_COMPLETE or an enum hb_loss of HB_CUT_LIST */
	__u16 fp_steps;	 /* frames found by frame pointer */
	__u16 pad[3];
	__u64 frame[HB_STACK_MAX]; /* HB_FRAME() */
};
_Static_assert(sizeof(struct hb_stack) == 32 + 8 * HB_STACK_MAX, "no padding");

/*
 * Map `wrappers`: ARRAY, slot (one per probed file) -> hb_wrappers: where the probed functions of
 * that file lie. A call whose return address lies in one of them, of its own file or of another one
 * (hb_uw_map.probed), is nested in a call that was already decided, and does not count again.
 */
struct hb_range {
	__u32 start_off; /* file offset */
	__u32 end_off;	 /* exclusive */
};
_Static_assert(sizeof(struct hb_range) == 8, "no padding");

/*
 * An entry point whose last act is a jump through a variable leaves no return address of its own:
 * where the variable points to a probed function, that one counts and the first keeps silent.
 */
struct hb_forward {
	__u32 off;     /* of the probed instruction, as in its cookie */
	__u32 is_slot; /* 1: the variable is where a GOT slot points, and `delta` leads to that */
	__s64 delta;   /* from the probed instruction to the variable or the slot */
};
_Static_assert(sizeof(struct hb_forward) == 16, "no padding");

struct hb_wrappers {
	__u32 cnt;
	__u32 forward_cnt;
	struct hb_range range[HB_WRAPPER_MAX];	   /* range[0..cnt-1], any order */
	struct hb_forward forward[HB_FORWARD_MAX]; /* forward[0..forward_cnt-1], any order */
};
_Static_assert(sizeof(struct hb_wrappers) == 8 + 8 * HB_WRAPPER_MAX + 16 * HB_FORWARD_MAX,
	       "no padding");

/*
 * Ring `events`: life-cycle and requests of the unwinder; never samples.
 */
enum hb_event_type {
	HB_EVENT_EXEC, /* the process replaced its image; hb_proc.epoch was incremented */
	HB_EVENT_EXIT, /* the last thread ended */
	HB_EVENT_MAPS, /* mappings changed, or the unwinder met an address that it cannot place */
	HB_EVENT_HELD, /* SIGSTOP was sent: the process waits for SIGCONT; pc: enum hb_held */
	/*
	 * It stops itself, for it saw a child stopped that was only held: it waits for SIGCONT, too
	 */
	HB_EVENT_MISTAKEN,
	HB_EVENT_JOIN, /* the process is followed from now on; pc: hb_proc.parent */
	HB_EVENT_SEEN, /* a process that is not followed executed a program; epoch 0 */
	HB_EVENT_CNT,
};

struct hb_event {
	__u32 type; /* enum hb_event_type */
	__u32 tgid;
	__u32 epoch;   /* after the event */
	__u32 borrows; /* JOIN: 1 if it runs in its parent's memory until it executes (vfork) */
	/* MAPS: the address or 0; EXEC: 1 if not by the main thread; HELD: enum hb_held | RUNS */
	__u64 pc;
	/* JOIN, EXIT: nanoseconds of processor time of the process until now, about; 0: unknown */
	__u64 cpu_ns;
	/* Of the process that caused it; a child has its parent's. */
	char comm[16];
	__u32 user; /* effective, as in the initial user namespace */
	__u32 pad;
};
_Static_assert(sizeof(struct hb_event) == 56, "no padding");

/*
 * Where a process is to be held, so that it does not run code of its own before it is probed. A
 * hold is a SIGSTOP before the next instruction of the process. BPF goes from any of these to HELD,
 * and back if nobody can be told; user space from HELD to any other.
 */
enum hb_hold {
	HB_HOLD_NONE,	/* nowhere */
	HB_HOLD_FORK,	/* a child that was just forked, where it first writes; and at an exec */
	HB_HOLD_EXEC,	/* at each exec, before the first instruction of the image */
	HB_HOLD_LINKER, /* also when the dynamic linker says that all libraries are mapped */
	HB_HOLD_HELD,	/* it is held, or will be at once */
	HB_HOLD_CNT,
};

/* Where it is held: pc of HB_EVENT_HELD. */
enum hb_held {
	HB_HELD_FORK,
	HB_HELD_EXEC,
	HB_HELD_LINKER,
	HB_HELD_CNT,
};

/* Beside it: the process was not stopped, and runs on. */
#define HB_HELD_RUNS 0x100

/*
 * Where an image has what its dynamic linker tells debuggers, struct r_debug of link.h.
 */
struct hb_linker {
	__u64 debug_pc;	  /* of the struct, or of a pointer to it */
	__u32 is_pointer; /* 0 or 1 */
	__u32 pad;
};
_Static_assert(sizeof(struct hb_linker) == 16, "no padding");

/*
 * Map `holds`: HASH tgid (u32) -> hb_holding, of each process that is held at its beginnings. While
 * `hb_holds_off` is not 0 nobody is held any more.
 */
struct hb_holding {
	__u32 hold; /* enum hb_hold */
	__u32 due;  /* 1: user space sends SIGCONT; BPF sets 0 when it sees the process run */
	struct hb_linker linker; /* of the image that is held next at HB_HOLD_LINKER */
};
_Static_assert(sizeof(struct hb_holding) == 24, "no padding");

/* Offset of r_state in it, an int; 0 is RT_CONSISTENT. */
#define HB_LINKER_STATE_OFF 24

#endif
