// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: the registers of a call and the tables that user/unwind_table.c keeps in the uw_ maps. Out:
 * the stack in `stacks`, under a hash of its PCs. For each frame: pc -> mapping of the process ->
 * file offset -> page of the file's index -> row -> one step of unwind_step.h. Nothing is guessed
 * unless the row or the mapping says so, and every cut has its counted reason.
 *
 * Uprobe programs can be preempted and, here, sleep: what is per CPU is claimed before use. State
 * of a walk lives in that scratch memory, not in BPF registers, so the verifier's work does not
 * depend on the number of frames.
 */
#include "unwind.bpf.h"
#include "unwind_tables.bpf.h"

/* Nearly always resident; what is not is faulted in, which only a sleepable program can do. */
static __always_inline long read_user(void *dst, __u32 len, __u64 addr)
{
	if (!bpf_probe_read_user(dst, len, (void *)addr))
		return 0;
	hb_stat_add(HB_STAT_FAULTED_READS, 1);
	return bpf_copy_from_user(dst, len, (void *)addr);
}

#define HB_UNWIND_COPY(dst, len, addr) bpf_probe_read_user(dst, len, (void *)(addr))
#include "unwind_ahead.h"

struct hb_unwind_regs;
static __always_inline long read_stack(struct hb_unwind_regs *regs, __u64 *dst, __u32 len,
				       __u64 addr);
#define HB_UNWIND_READ(regs, dst, len, addr) read_stack(regs, dst, len, addr)
#include "unwind_step.h"

/* Walks that may be under way on one CPU: preempted or asleep in a page fault. */
#define UW_SLOT_CNT 8

/*
 * Sized by loader, the value too: it ends with the last frame that hb_config.stack_max allows.
 * Never evicts: live objects refer to their stack by its id.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(struct hb_stack));
} stacks SEC(".maps");

/* A walk in progress. Owned by who changed `busy` from 0 to 1; everything else is its alone. */
struct uw_walk {
	__u32 busy;
	__u32 rule;		  /* what find_rule() found */
	__u32 is_start;		  /* its row begins at the very offset that was looked up */
	__u32 stale;		  /* the mappings may have changed since they were read */
	struct hb_uw_table table; /* of `map` */
	struct hb_uw_map map;	  /* of the last PC; end 0: none yet */
	struct hb_uw_proc proc;
	__u32 pad;
	/* Of is_behind_call(), before a return address; here because the stack of 512 bytes is
	 * full. */
	__u8 code[8];
	__u64 target;
	struct hb_unwind_regs regs;
	__u64 trampoline; /* where return probes let functions return to; 0: there are none */
	__u64 hash;
	struct hb_unwind_ahead ahead;
	struct hb_stack stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UW_SLOT_CNT);
	__type(key, __u32);
	__type(value, struct uw_walk);
} uw_scratch SEC(".maps");

/* What the callbacks of bpf_loop get. */
struct uw_loop {
	struct uw_walk *walk;
};

/* What has not been read ahead, or cannot be. */
static __noinline long read_stack_anew(struct uw_walk *walk, __u64 *dst, __u32 len, __u64 addr)
{
	if (hb_unwind_ahead_fetch(&walk->ahead, dst, len, addr))
		return 0;
	return read_user(dst, len, addr);
}

/* For unwind_step.h; `regs` are those of a walk. */
static __always_inline long read_stack(struct hb_unwind_regs *regs, __u64 *dst, __u32 len,
				       __u64 addr)
{
	struct uw_walk *walk = container_of(regs, struct uw_walk, regs);

	if (hb_unwind_ahead_take(&walk->ahead, dst, len, addr))
		return 0;
	return read_stack_anew(walk, dst, len, addr);
}

static __always_inline struct uw_walk *claim_walk(void)
{
	for (__u32 slot = 0; slot < UW_SLOT_CNT; slot++) {
		__u32 key = slot;
		struct uw_walk *walk = bpf_map_lookup_elem(&uw_scratch, &key);

		/*
		 * Two variables: a verifier that forgets the value of a key on the stack (seen on
		 * 6.1 and 6.12) would not see the end of this loop.
		 */
		barrier_var(slot);
		if (walk && !__sync_val_compare_and_swap(&walk->busy, 0, 1))
			return walk;
	}
	return NULL;
}

#define HB_UNWIND_MAP(index)	     bpf_map_lookup_elem(&uw_maps, &index)
#define HB_UNWIND_CHUNK(rows, index) bpf_map_lookup_elem(rows, &index)
#include "unwind_find.h"

/*
 * Finds the mapping of `pc` into walk->map and its table into walk->table. False: there is none
 * that can be trusted.
 */
static __noinline bool find_other_map(struct uw_walk *walk, __u64 pc)
{
	const struct hb_uw_table *table;
	const struct hb_uw_map *map;

	map = hb_unwind_find_map(walk->proc.first, walk->proc.cnt, pc);
	if (!map || (walk->stale && !(map->flags & HB_UW_MAP_PERMANENT)))
		return false;
	walk->map = *map;
	table = bpf_map_lookup_elem(&uw_tables, &walk->map.table);
	if (!table)
		return false;
	walk->table = *table;
	return true;
}

/* The same; most often it is the one that is there already. */
static __always_inline bool find_map(struct uw_walk *walk, __u64 pc)
{
	return (pc >= walk->map.start && pc < walk->map.end) || find_other_map(walk, pc);
}

/* Finds the rule of file offset `off` in walk->table into walk->rule. False: no rows there. */
static __always_inline bool find_rule(struct uw_walk *walk, __u64 off)
{
	__u32 page = (off >> HB_UW_PAGE_SHIFT) - walk->table.first_page;
	const struct hb_uw_page *range;
	const struct hb_cfi_row *row;
	void *rows, *index;

	walk->rule = HB_CFI_RULE(HB_CFI_GAP, 0, 0);
	walk->is_start = 0;
	if (off >> 32 || page >= walk->table.page_cnt)
		return true;
	index = bpf_map_lookup_elem(&uw_index, &walk->map.table);
	if (!index)
		return false;
	range = bpf_map_lookup_elem(index, &page);
	rows = bpf_map_lookup_elem(&uw_rows, &walk->map.table);
	if (!range || !rows)
		return false;
	row = hb_unwind_find_row(rows, range, off);
	if (row) {
		walk->rule = row->rule;
		walk->is_start = row->off == off;
	}
	return true;
}

static __always_inline void repair(struct uw_walk *walk)
{
	walk->regs.pc = retprobe_uncover(walk->regs.ra_addr, walk->trampoline);
	if (walk->regs.pc != walk->trampoline)
		hb_stat_add(HB_STAT_REPAIRS, 1);
}

/* Two multiplicative hashes; odd constants of good spectral quality (SplitMix64, xxHash). */
static __always_inline void mix(struct uw_walk *walk, __u64 word)
{
	walk->hash = (walk->hash ^ word) * 0x9e3779b97f4a7c15;
	walk->hash ^= walk->hash >> 32;
	walk->stack.check = (walk->stack.check + word) * 0xc2b2ae3d27d4eb4f;
	walk->stack.check ^= walk->stack.check >> 29;
}

/* Appends the PC in the registers, as an address in the mapping `number`. */
static __always_inline void append(struct uw_walk *walk, __u32 number)
{
	__u64 frame = HB_FRAME(number, walk->regs.pc);
	__u32 n = walk->stack.cnt;

	if (walk->regs.exact)
		frame |= HB_FRAME_EXACT;
	if (n < HB_STACK_MAX)
		walk->stack.frame[n] = frame;
	walk->stack.cnt = n + 1;
	mix(walk, frame);
}

/* Enters the frame in the registers: finds its mapping and appends it. */
static __always_inline __u32 enter(struct uw_walk *walk)
{
	struct hb_unwind_regs *regs = &walk->regs;

	if (walk->trampoline && regs->pc == walk->trampoline && regs->ra_addr)
		repair(walk);
	if (!regs->pc)
		return walk->stack.fp_steps ? HB_LOSS_STACK_GUESSED_END : HB_STACK_COMPLETE;
	/* No address of a program. */
	if (regs->pc >> HB_FRAME_PC_BITS)
		return HB_LOSS_STACK_NO_MAPPING;
	if (walk->stack.cnt >= HB_STACK_MAX || walk->stack.cnt >= hb_config.stack_max)
		return HB_LOSS_STACK_TOO_DEEP;
	if (find_map(walk, hb_unwind_lookup_pc(regs))) {
		append(walk, walk->map.number);
		return HB_UNWIND_ON;
	}
	append(walk, HB_MAPPING_UNKNOWN);
	/* What is mapped there can be learnt later, but not for another state of the process. */
	mix(walk, walk->stack.libraries);
	hb_request_maps(walk->stack.tgid, walk->stack.epoch, regs->pc);
	return walk->stale ? HB_LOSS_STACK_STALE : HB_LOSS_STACK_NO_MAPPING;
}

/* Is `pc` in code that no CFI covers: made at run time, or seen to keep frame pointers? */
static __always_inline bool is_without_cfi(struct uw_walk *walk, __u64 pc)
{
	if (!find_map(walk, pc))
		return false;
	if (walk->map.flags & HB_UW_MAP_ANON)
		return true;
	return walk->table.page_cnt && find_rule(walk, pc - walk->map.bias) &&
	       HB_CFI_KIND(walk->rule) == HB_CFI_FP;
}

/*
 * Does the new PC follow a call, and not one of a function that has CFI? A function without a frame
 * pointer leaves its caller's in rbp, which would lead past that caller: its call is found then,
 * and is one of it and not of the code that we come from.
 */
static __noinline bool is_behind_call(struct uw_walk *walk)
{
	__u64 pc = walk->regs.pc;
	enum hb_unwind_call call;

	walk->target = 0;
	if (read_user(walk->code, sizeof(walk->code), pc - sizeof(walk->code)))
		return false;
	call = hb_unwind_call_at(walk->code, pc, &walk->target);
	return call == HB_UNWIND_INDIRECT_CALL ||
	       (call == HB_UNWIND_DIRECT_CALL && is_without_cfi(walk, walk->target));
}

/* A step through code that keeps frame pointers for all we know. */
static __always_inline __u32 step_by_frame_pointer(struct uw_walk *walk, bool is_trusted)
{
	__u32 next = hb_unwind_frame_pointer(&walk->regs, is_trusted);

	if (next != HB_UNWIND_ON)
		return next;
	walk->stack.fp_steps++;
	if (!walk->regs.pc || walk->regs.pc == walk->trampoline)
		return HB_UNWIND_ON;
	if (!is_trusted && !is_behind_call(walk))
		return HB_LOSS_STACK_FP;
	if (!find_map(walk, walk->regs.pc - 1)) {
		/* Either no return address, or code that was mapped since the last look. */
		hb_request_maps(walk->stack.tgid, walk->stack.epoch, walk->regs.pc - 1);
		return HB_LOSS_STACK_FP;
	}
	return HB_UNWIND_ON;
}

/*
 * Nobody called a signal's return stub or the function where a coroutine begins: the address on the
 * stack is their first byte, and their rows begin one before. Names are looked up there exactly.
 */
static __always_inline void mark_stub(struct uw_walk *walk)
{
	__u32 n = walk->stack.cnt - 1;

	if (walk->is_start && n < HB_STACK_MAX)
		walk->stack.frame[n] |= HB_FRAME_EXACT;
	if (HB_CFI_KIND(walk->rule) == HB_CFI_SIGNAL)
		hb_stat_add(HB_STAT_SIGNAL_FRAMES, 1);
}

/* From the frame in the registers, which was entered, to its caller. */
static __always_inline __u32 step(struct uw_walk *walk)
{
	__u64 pc = hb_unwind_lookup_pc(&walk->regs);
	__u32 index;

	if (walk->map.flags & HB_UW_MAP_ANON)
		return step_by_frame_pointer(walk, false);
	if (!walk->table.page_cnt || !find_rule(walk, pc - walk->map.bias))
		return HB_LOSS_STACK_NO_TABLE;
	if (HB_CFI_KIND(walk->rule) == HB_CFI_FP)
		return step_by_frame_pointer(walk, false);
	if (HB_CFI_KIND(walk->rule) == HB_CFI_GAP && walk->table.flags & HB_CFI_TABLE_FP)
		return step_by_frame_pointer(walk, true);
	if (HB_CFI_KIND(walk->rule) == HB_CFI_STOP || HB_CFI_KIND(walk->rule) == HB_CFI_SIGNAL)
		mark_stub(walk);
	if (HB_CFI_KIND(walk->rule) == HB_CFI_BIG) {
		const struct hb_cfi_big *big;

		index = walk->table.big_first + HB_CFI_INDEX(walk->rule);
		big = bpf_map_lookup_elem(&uw_big, &index);
		return big ? hb_unwind_big(&walk->regs, big) : HB_LOSS_STACK_NO_TABLE;
	}
	return hb_unwind_apply(&walk->regs, walk->rule);
}

static long walk_frame(__u32 i, struct uw_loop *loop)
{
	struct uw_walk *walk = loop->walk;
	__u32 next = enter(walk);

	(void)i;
	if (next == HB_UNWIND_ON)
		next = step(walk);
	if (next == HB_UNWIND_ON)
		return 0;
	walk->stack.end = next;
	return 1;
}

__hidden void unwind_inherit(__u32 from, __u32 from_epoch, __u32 to, __u32 to_epoch)
{
	const struct hb_uw_proc *known = bpf_map_lookup_elem(&uw_procs, &from);
	struct hb_uw_proc proc = {};

	if (known)
		proc = *known;
	if (proc.tgid != from || proc.epoch != from_epoch)
		return;
	proc.tgid = to;
	proc.epoch = to_epoch;
	bpf_map_update_elem(&uw_procs, &to, &proc, BPF_ANY);
}

/* Everything that a walk needs, in memory that still holds the last one. */
static __always_inline void init_walk(struct uw_walk *walk, __u64 rbp, __u32 tgid,
				      const struct hb_proc *state)
{
	const struct hb_uw_proc *proc = bpf_map_lookup_elem(&uw_procs, &tgid);

	__builtin_memset(&walk->map, 0, sizeof(walk->map));
	__builtin_memset(&walk->proc, 0, sizeof(walk->proc));
	__builtin_memset(&walk->stack, 0, offsetof(struct hb_stack, frame));
	if (proc)
		walk->proc = *proc;
	if (walk->proc.tgid != tgid || walk->proc.epoch != state->epoch ||
	    walk->proc.cnt > HB_UW_PROC_MAP_MAX)
		walk->proc.cnt = 0;
	walk->stale = walk->proc.libraries != state->libraries;
	walk->stack.tgid = tgid;
	walk->stack.epoch = state->epoch;
	walk->stack.libraries = state->libraries;
	walk->regs.rbp = rbp;
	walk->regs.rbp_known = 1;
	walk->regs.exact = 0;
	walk->ahead.known = 0;
	walk->trampoline = retprobe_trampoline();
	walk->hash = hb_config.stack_seed ^ ((__u64)state->epoch << 32 | tgid) * 0x9e3779b97f4a7c15;
	walk->stack.check = ~walk->hash;
}

/* Files the finished stack; its id or 0. */
static __always_inline __u64 store(struct uw_walk *walk)
{
	const struct hb_stack *known;
	__u64 id = (walk->hash ^ ((__u64)walk->stack.fp_steps << 16 | walk->stack.end)) *
		   0x9e3779b97f4a7c15;

	id ^= id >> 32;
	if (!id)
		id = 1;
	known = bpf_map_lookup_elem(&stacks, &id);
	if (!known) {
		if (!bpf_map_update_elem(&stacks, &id, &walk->stack, BPF_NOEXIST)) {
			hb_stat_add(HB_STAT_STACKS_NEW, 1);
			return id;
		}
		/* Another CPU may have been faster with the same stack. */
		known = bpf_map_lookup_elem(&stacks, &id);
	}
	if (known && known->check == walk->stack.check)
		return id;
	hb_lose(known ? HB_LOSS_STACK_COLLISION : HB_LOSS_STACKS_FULL);
	return 0;
}

__noinline __u64 unwind_stack(__u64 rbp, __u64 ra, __u64 cfa, __u32 tgid,
			      const struct hb_proc *proc)
{
	struct uw_loop loop = {};
	struct uw_walk *walk;
	__u64 id;

	/* Callers have one; the verifier, which looks at this function alone, cannot know. */
	if (!proc)
		return 0;
	walk = claim_walk();
	if (!walk) {
		hb_lose(HB_LOSS_NO_SCRATCH);
		return 0;
	}
	loop.walk = walk;
	init_walk(walk, rbp, tgid, proc);
	walk->regs.pc = ra;
	walk->regs.rsp = cfa;
	walk->regs.ra_addr = cfa - 8;
	/* One more than there may be frames: it meets the limit. */
	bpf_loop(HB_STACK_MAX + 1, walk_frame, &loop, 0);
	hb_stat_add(HB_STAT_FRAMES, walk->stack.cnt);
	if (walk->stack.fp_steps)
		hb_stat_add(HB_STAT_FP_STEPS, walk->stack.fp_steps);
	if (walk->stack.end == HB_STACK_COMPLETE)
		hb_stat_add(HB_STAT_STACKS_COMPLETE, 1);
	else
		hb_count(walk->stack.end, 1);
	id = store(walk);
	/* Only this CPU looks at it, so the order of the compiler is enough. */
	barrier();
	*(volatile __u32 *)&walk->busy = 0;
	return id;
}

/*
 * A library that came or went since the mappings were read does not matter here as it does for
 * names: one that was loaded with its allocator probed is what is likely to be there still.
 */
__noinline __u64 unwind_place(__u64 pc)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const struct hb_uw_proc *found = bpf_map_lookup_elem(&uw_procs, &tgid);
	const struct hb_uw_map *map;
	struct hb_uw_proc run;
	struct hb_proc state;

	if (!found || !proc_get(tgid, &state))
		return 0;
	run = *found;
	if (run.tgid != tgid || run.epoch != state.epoch || run.cnt > HB_UW_PROC_MAP_MAX)
		return 0;
	map = hb_unwind_find_map(run.first, run.cnt, pc);
	return map && map->probed ? HB_PLACE(map->probed - 1, pc - map->bias) : 0;
}
