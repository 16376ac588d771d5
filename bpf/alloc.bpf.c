// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: a thread of a followed process at an entry point of its allocator, or at its return. Out:
 * calls of account with a decided, sampled allocation or free.
 *
 * One entry and one return handler serve every function; the cookie of the probe says which one
 * it is (abi.h). They are attached in one of three ways: as one session program (entry asks for
 * the return only when the call matters; points that want none get the entry program on a multi
 * link), or as two programs on multi or perf-event uprobes.
 *
 *   entry:  linker     tells proc, and counts as no call
 *           free       takes the object out of the live set before its address can be reused
 *           the rest   draws; a sampled call is remembered in `inflight` with its stack
 *   return: sampled    the call failed: nothing happened. Else it counts, and its object is alive
 *   result: the same on the return instruction of what may throw, where no return probe may be
 *
 * A call made inside another one (realloc using malloc) has its return address in a probed
 * function and does not count. State between entry and return is keyed by thread and by the
 * address of the return address, which is unique among active calls; a call left by longjmp or an
 * exception leaves an entry that the next call at that depth overwrites or removes.
 */
#include "rooms.bpf.h"
#include "unwind.bpf.h"

/* Results of a session program's entry (kernel 6.13, d920179b3d48). */
#define WANT_RETURN 0
#define SKIP_RETURN 1

/* The deepest stack takes no longer; who took longer slept, or others ran instead. */
#define SAMPLE_NS_MAX (50 * 1000)

/* No larger request succeeds: malloc gets no address above 2^47, not even with 5-level tables. */
#define SIZE_LIMIT (1ULL << 47)

static __always_inline __u32 current_window(void)
{
	return *(volatile __u32 *)&hb_hot.window;
}

/* A call as its arguments describe it. */
struct call {
	__u64 size; /* requested bytes */
	__u64 old;  /* realloc: the block to move, else 0 */
	__u64 out;  /* posix_memalign: where the result goes, else 0 */
	__u32 ends; /* reallocf: 1, the old block ends even if it fails; else 0 */
	__u32 pad;
};

struct inflight_key {
	__u64 ra_at; /* address of the return address */
	__u32 tid;
	__u32 pad;
};

struct inflight {
	struct hb_site_key site;
	struct call call;
	__u64 ra;
	struct hb_live moved; /* what account_take() gave for call.old */
	__u32 has_moved;
	__u32 sampled; /* 0: only here to finish `moved` */
	__u32 window;  /* that it began in */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct inflight_key);
	__type(value, struct inflight);
} inflight SEC(".maps");

/* a * b into *product; false if it does not fit, in which case the call fails. */
static __always_inline bool mul(__u64 a, __u64 b, __u64 *product)
{
	__u64 limit = a ? ~0ULL / a : ~0ULL;

	/* Hides the idiom from clang, which would make it a 128-bit product that BPF lacks. */
	barrier_var(limit);
	*product = a * b;
	return b <= limit;
}

/* The first three arguments of the call. */
static __always_inline void read_args(struct pt_regs *ctx, __u64 cookie, __u64 args[static 3])
{
	__u64 a = PT_REGS_PARM1(ctx), b = PT_REGS_PARM2(ctx), c = PT_REGS_PARM3(ctx),
	      d = PT_REGS_PARM4(ctx);
	bool shifted = HB_COOKIE_FLAGS(cookie) & HB_COOKIE_SHIFTED;

	/* Else clang chooses between offsets into ctx, which the verifier refuses. */
	barrier_var(a);
	barrier_var(b);
	barrier_var(c);
	barrier_var(d);
	args[0] = shifted ? b : a;
	args[1] = shifted ? c : b;
	args[2] = shifted ? d : c;
}

/* Arguments by function; false: the call fails, or another entry point will see it. */
static __always_inline bool read_call(struct pt_regs *ctx, __u64 cookie, struct call *call)
{
	__u64 args[3], a, b, c;

	read_args(ctx, cookie, args);
	a = args[0];
	b = args[1];
	c = args[2];
	switch ((enum hb_fn)HB_COOKIE_FN(cookie)) {
	case HB_FN_MALLOC:
	case HB_FN_VALLOC:
	case HB_FN_NEW:
		call->size = a;
		break;
	case HB_FN_CALLOC:
	case HB_FN_NEW_N:
		if (!mul(a, b, &call->size))
			return false;
		break;
	case HB_FN_REALLOC:
		if (!a && (HB_COOKIE_FLAGS(cookie) & HB_COOKIE_DEFER_NULL))
			return false;
		call->old = a;
		call->size = b;
		break;
	case HB_FN_REALLOCF:
		if (!a && (HB_COOKIE_FLAGS(cookie) & HB_COOKIE_DEFER_NULL))
			return false;
		call->old = a;
		/* What must fail is a free. */
		call->size = b < SIZE_LIMIT ? b : 0;
		call->ends = 1;
		break;
	case HB_FN_REALLOCARRAY:
		if (!mul(b, c, &call->size))
			return false;
		call->old = a;
		break;
	case HB_FN_POSIX_MEMALIGN:
		/* EINVAL: no power of two, or not a multiple of a pointer's size. */
		if (!b || (b & (b - 1)) || b % sizeof(void *))
			return false;
		call->out = a;
		call->size = c;
		break;
	case HB_FN_MEMALIGN:
		if (a <= HB_MALLOC_ALIGN && (HB_COOKIE_FLAGS(cookie) & HB_COOKIE_DEFER_ALIGN))
			return false;
		call->size = b;
		break;
	case HB_FN_FREE:
	case HB_FN_LINKER:
	case HB_FN_CNT:
		return false;
	}
	return call->size < SIZE_LIMIT;
}

/* Will another probe see the call? Most functions do not go on anywhere. */
static __always_inline bool goes_on(struct pt_regs *ctx, __u64 cookie)
{
	return HB_COOKIE_FLAGS(cookie) & HB_COOKIE_FORWARDS &&
	       wrappers_go_on(PT_REGS_IP(ctx), cookie);
}

static __always_inline void on_free(struct pt_regs *ctx, __u64 cookie, __u64 addr)
{
	__u64 ra_at = PT_REGS_SP(ctx) + HB_COOKIE_SP_BYTES(cookie), ra;

	if (!addr || !(hb_hot.knobs & HB_HOT_TRACKS))
		return;
	/* Only exact runs can tell what is unknown; there, who does the work speaks. */
	if (hb_is_unusual() && hb_config.exact && goes_on(ctx, cookie))
		return;
	if (account_free(addr, bpf_get_current_pid_tgid() >> 32))
		return;
	/* An allocator's own free of a block that was taken out before. */
	if (hb_is_unusual() && hb_config.exact && hb_read_word(ra_at, &ra) &&
	    wrappers_have_called(PT_REGS_IP(ctx), cookie, ra_at, ra))
		return;
	hb_stat_add(HB_STAT_UNKNOWN_FREES, 1);
}

/* Remembers a call until its return; says whether that needs a return probe. */
static __noinline int remember(__u64 ra_at, const struct inflight *call, __u64 cookie)
{
	struct inflight_key key = {.ra_at = ra_at, .tid = (__u32)bpf_get_current_pid_tgid()};

	if (!bpf_map_update_elem(&inflight, &key, call, BPF_ANY))
		return HB_COOKIE_FLAGS(cookie) & HB_COOKIE_AT_RETS ? SKIP_RETURN : WANT_RETURN;
	hb_lose(HB_LOSS_INFLIGHT_FULL);
	if (call->has_moved)
		account_end(call->site.tgid, &call->moved);
	return SKIP_RETURN;
}

/*
 * A call that left by an exception is still remembered, and the next one at that depth may not be
 * sampled: its result must not be taken for the other's.
 */
static __always_inline void forget_thrown(struct pt_regs *ctx, __u64 cookie)
{
	struct inflight_key key = {
		.ra_at = PT_REGS_SP(ctx) + HB_COOKIE_SP_BYTES(cookie),
		.tid = (__u32)bpf_get_current_pid_tgid(),
	};

	if (bpf_map_lookup_elem(&inflight, &key))
		bpf_map_delete_elem(&inflight, &key);
}

/* Counts a call whose end will not be seen. */
static void count_at_entry(const struct hb_site_key *site)
{
	if (!account_alloc(site) || !hb_config.track_live)
		return;
	hb_lose(HB_LOSS_NO_RESULT);
	account_untracked(site);
}

/* A call that is sampled, or that moves a sampled object: takes its stack and waits. */
static int on_taken(struct pt_regs *ctx, __u64 cookie, const struct call *call, bool sampled,
		    __u32 window)
{
	__u64 ra_at = PT_REGS_SP(ctx) + HB_COOKIE_SP_BYTES(cookie);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct inflight taken = {.call = *call, .sampled = sampled, .window = window};
	struct hb_site_key *site = &taken.site;
	struct hb_proc proc;
	__u64 ra;

	if (!proc_get(tgid, &proc)) {
		hb_lose(HB_LOSS_NO_PROCESS);
		return SKIP_RETURN;
	}
	if (!hb_read_word(ra_at, &ra)) {
		hb_lose(HB_LOSS_READ_ARG);
		if (call->old && hb_config.track_live)
			account_free(call->old, tgid);
		return SKIP_RETURN;
	}
	if (goes_on(ctx, cookie) || wrappers_have_called(PT_REGS_IP(ctx), cookie, ra_at, ra))
		return SKIP_RETURN;
	taken.ra = ra;
	site->tgid = tgid;
	site->epoch = proc.epoch;
	if (sampled) {
		hb_stat_add(HB_STAT_SAMPLES, 1);
		site->stack_id = unwind_stack(PT_REGS_FP(ctx), ra, ra_at + 8, tgid, &proc);
		site->size = call->size;
	}
	if (!hb_config.track_live || HB_COOKIE_FLAGS(cookie) & HB_COOKIE_NO_RESULT) {
		count_at_entry(site);
		return SKIP_RETURN;
	}
	if (call->old)
		taken.has_moved = account_take(call->old, tgid, &taken.moved);
	return remember(ra_at, &taken, cookie);
}

/* The block that a call returned; 0: it failed. */
static __u64 result_of(struct pt_regs *ctx, const struct inflight *call)
{
	__u64 addr = PT_REGS_RC(ctx);

	if (!call->call.out)
		return addr;
	if ((__u32)addr)
		return 0;
	if (!hb_read_word(call->call.out, &addr)) {
		hb_lose(HB_LOSS_READ_ARG);
		return 0;
	}
	return addr;
}

/*
 * The call whose return address was at `ra_at` returns, if it is one that was remembered.
 * `ra_intact`: the return address is still there, and must be that call's: code that is common to
 * several functions returns here from calls that nobody remembered, too.
 */
static void on_result(struct pt_regs *ctx, __u64 ra_at, bool ra_intact)
{
	struct inflight_key key = {.ra_at = ra_at, .tid = (__u32)bpf_get_current_pid_tgid()};
	struct inflight *found = bpf_map_lookup_elem(&inflight, &key);
	struct inflight call;
	__u64 addr, ra;

	if (!found)
		return;
	call = *found;
	if (ra_intact && (!hb_read_word(ra_at, &ra) || ra != call.ra))
		return;
	bpf_map_delete_elem(&inflight, &key);

	if (call.window != current_window())
		return;
	addr = result_of(ctx, &call);
	if (!addr) {
		hb_stat_add(HB_STAT_FAILED, 1);
		if (call.has_moved && call.call.ends)
			account_end(call.site.tgid, &call.moved);
		else if (call.has_moved)
			account_restore(call.call.old, call.site.tgid, &call.moved);
		return;
	}
	if (call.has_moved)
		account_end(call.site.tgid, &call.moved);
	if (call.sampled && account_alloc(&call.site))
		account_live(addr, &call.site);
}

static void on_return(struct pt_regs *ctx)
{
	account_cost(HB_STAT_RETURNS, 1);
	on_result(ctx, PT_REGS_SP(ctx) - 8, false);
}

/* Are we at a probe in our own process that is not there to measure what a hit costs? */
static __always_inline bool is_self(__u64 cookie)
{
	return bpf_get_current_pid_tgid() >> 32 == hb_config.self &&
	       HB_COOKIE_SLOT(cookie) != HB_SLOT_SELF;
}

static __always_inline int on_entry(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 window = current_window();
	struct call call = {};
	__u64 args[3], took_ns;
	bool sampled;
	int wants;

	/* Also before the recording: what is read of the mappings until then must be known stale.
	 */
	if (HB_COOKIE_FN(cookie) == HB_FN_LINKER) {
		proc_changes_libraries(bpf_get_current_pid_tgid() >> 32);
		return SKIP_RETURN;
	}
	/* Our own allocator is probed with all others. */
	if (hb_is_unusual() && hb_config.follow & HB_FOLLOW_EVERYBODY && is_self(cookie))
		return SKIP_RETURN;
	/* A hit costs its trap, recorded or not. */
	account_cost(HB_COOKIE_FLAGS(cookie) & HB_COOKIE_STEPPED ? HB_STAT_STEPPED_HITS
								 : HB_STAT_HITS,
		     1);
	if (hb_is_unusual() && hb_config.follow & HB_FOLLOW_EVERYBODY &&
	    !proc_meets(bpf_get_current_pid_tgid() >> 32))
		return SKIP_RETURN;
	if (!window)
		return SKIP_RETURN;
	if (HB_COOKIE_FLAGS(cookie) & HB_COOKIE_RESULT) {
		on_result(ctx, PT_REGS_SP(ctx), true);
		return SKIP_RETURN;
	}
	if (HB_COOKIE_FLAGS(cookie) & HB_COOKIE_AT_RETS)
		forget_thrown(ctx, cookie);
	if (HB_COOKIE_FN(cookie) == HB_FN_FREE) {
		read_args(ctx, cookie, args);
		on_free(ctx, cookie, args[0]);
		return SKIP_RETURN;
	}
	if (!read_call(ctx, cookie, &call))
		return SKIP_RETURN;
	/* realloc(p, 0) is free(p), whatever it returns. */
	if (call.old && !call.size) {
		on_free(ctx, cookie, call.old);
		return SKIP_RETURN;
	}
	sampled = sampler_takes(call.size);
	if (!sampled && !(call.old && hb_config.track_live &&
			  account_has(call.old, bpf_get_current_pid_tgid() >> 32)))
		return SKIP_RETURN;
	took_ns = bpf_ktime_get_ns();
	wants = on_taken(ctx, cookie, &call, sampled, window);
	took_ns = bpf_ktime_get_ns() - took_ns;
	account_cost(HB_STAT_SAMPLE_NS, took_ns < SAMPLE_NS_MAX ? took_ns : SAMPLE_NS_MAX);
	return wants;
}

SEC("uprobe.s")
int hb_entry(struct pt_regs *ctx)
{
	on_entry(ctx);
	return 0;
}

SEC("uprobe.s")
int hb_return(struct pt_regs *ctx)
{
	on_return(ctx);
	return 0;
}

/*
 * One program for both ends of a call. The kernel's bpf_session_is_return changed its arguments in
 * 7.0 (8fe4dc4f6456); comparing ip with the probed address tells the same on every kernel: no call
 * returns to a probed prologue.
 */
SEC("uprobe.s")
int hb_session(struct pt_regs *ctx)
{
	if (PT_REGS_IP(ctx) == bpf_get_func_ip(ctx))
		return on_entry(ctx);
	on_return(ctx);
	return 0;
}

/* The floor that the cost is measured against: does nothing. */
SEC("uprobe.s")
int hb_empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe.s")
int hb_empty_session(struct pt_regs *ctx)
{
	return SKIP_RETURN;
}
