/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF rooms may call of each other. Functions are __hidden unless their declaration says
 * why not: bpftool links the objects and libbpf makes them static, so they are verified where they
 * are called.
 */
#ifndef HB_ROOMS_BPF_H
#define HB_ROOMS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "abi.h"
#include "draw.h"

/* The knobs; defined in sampler.bpf.c, written by loader before load. */
extern const volatile struct hb_config hb_config;

/* account: what every hit touches; shared with user space through the mapped .bss. */
extern struct hb_hot hb_hot;

/*
 * Do knobs of hb_config matter to a hit that most recordings leave alone? hb_config itself, on
 * another page, is asked only then; whoever does so asks both, as the verifier drops what the knobs
 * rule out.
 */
static __always_inline bool hb_is_unusual(void)
{
	return hb_hot.knobs & HB_HOT_UNUSUAL;
}

/*
 * account: adds n to a counter; index is an enum hb_loss, or HB_LOSS_CNT + an enum hb_stat. Inline,
 * as it is in the path of every call. Atomic though per CPU: uprobe programs can be preempted by
 * another one on the same CPU, and a lost increment would be a lost loss.
 */
static __always_inline void hb_count(__u32 index, __u64 n)
{
	__u32 cpu = bpf_get_smp_processor_id() & (HB_COUNTERS_CNT - 1);

	if (index < HB_COUNTER_CNT)
		__sync_fetch_and_add(&hb_hot.counters[cpu].n[index], n);
}

/* account: one more of a loss; written so that a reader sees which list it is from. */
static __always_inline void hb_lose(enum hb_loss loss)
{
	hb_count(loss, 1);
}

/* account: n more of a statistic. */
static __always_inline void hb_stat_add(enum hb_stat stat, __u64 n)
{
	hb_count(HB_LOSS_CNT + stat, n);
}

/*
 * sampler: for hb_threshold(): by class, not falling, 2^32 is always. Written through the mapped
 * .bss, as the rate may change from one window to the next.
 */
extern __u64 hb_thresholds[HB_CLASS_CNT];

/*
 * sampler: true with the probability of this size; one random draw. Inline, as it is in the path of
 * every allocation.
 */
static __always_inline bool sampler_takes(__u64 size)
{
	return hb_takes(hb_hot.per_byte, hb_thresholds, size, bpf_get_prandom_u32());
}

/*
 * Reads a word of the target's memory, faulting the page in if need be; false: unreadable. For
 * sleepable programs only.
 */
static __always_inline bool hb_read_word(__u64 at, __u64 *word)
{
	return !bpf_probe_read_user(word, sizeof(*word), (void *)at) ||
	       !bpf_copy_from_user(word, sizeof(*word), (void *)at);
}

/* proc: the state of a followed process into *proc; false if it is not followed. */
__hidden bool proc_get(__u32 tgid, struct hb_proc *proc);

/*
 * proc: of everybody's processes (HB_FOLLOW_EVERYBODY): `tgid` met a probe, and is followed from
 * now on. False: it is not to be recorded.
 */
__hidden bool proc_meets(__u32 tgid);

/* proc: the dynamic linker of the process is about to change its mappings, or has done so. */
__hidden void proc_changes_libraries(__u32 tgid);

/* proc: tells user space that `pc` cannot be placed; at most one per process and 20 ms. */
__hidden void hb_request_maps(__u32 tgid, __u32 epoch, __u64 pc);

/*
 * retprobe: where return probes let functions of the current process return to; 0: there are none.
 */
__hidden __u64 retprobe_trampoline(void);

/*
 * retprobe: what was at `at` on the stack of the current thread before a return probe put
 * `trampoline` there; that itself if it is not known.
 */
__hidden __u64 retprobe_uncover(__u64 at, __u64 trampoline);

/*
 * retprobe: the return address at `at`, where `ra` was read: the real one if that is a trampoline.
 */
__hidden __u64 retprobe_real_return(__u64 at, __u64 ra);

/*
 * wrappers: is `ra`, which is at `ra_at`, inside a probed function, of the allocator whose probe
 * (`ip`, `cookie`) we are at or of one that is made of it?
 */
int wrappers_have_called(__u64 ip, __u64 cookie, __u64 ra_at, __u64 ra);

/* wrappers: will the call whose probe we are at be seen again, from where its function jumps to? */
int wrappers_go_on(__u64 ip, __u64 cookie);

/* account: for account_cost(). */
__hidden void account_cost_of(__u32 tgid, enum hb_stat what, __u64 n);

/* account: the process ended. */
__hidden void account_forget_costs(__u32 tgid);

/* account: n more of one of the first HB_COST_CNT statistics, for the current process. */
static __always_inline void account_cost(enum hb_stat what, __u64 n)
{
	hb_stat_add(what, n);
	if (hb_is_unusual() && hb_config.count_each)
		account_cost_of(bpf_get_current_pid_tgid() >> 32, what, n);
}

/* account: counts a sampled allocation at its site. False: the site table is full (counted). */
__hidden bool account_alloc(const struct hb_site_key *site);

/* account: takes `addr` for alive, as an object of `site` that was counted before. */
__hidden void account_live(__u64 addr, const struct hb_site_key *site);

/* account: an object of `site`, counted before, will not be followed; the caller says why. */
__hidden void account_untracked(const struct hb_site_key *site);

/* account: is there a live sampled object at `addr`? */
__hidden bool account_has(__u64 addr, __u32 tgid);

/*
 * account: takes the object at `addr` out of the live set into *object. False: it is not there
 * (not sampled, or older than the profile), *object is untouched.
 */
__hidden bool account_take(__u64 addr, __u32 tgid, struct hb_live *object);

/* account: puts back what account_take() took, for a realloc that failed. */
__hidden void account_restore(__u64 addr, __u32 tgid, const struct hb_live *object);

/* account: counts at its site that a taken object ended. */
__hidden void account_end(__u32 tgid, const struct hb_live *object);

/*
 * account: the object at `addr` is freed. False: it is not known, which is all one can say of
 * most objects.
 */
__hidden bool account_free(__u64 addr, __u32 tgid);

#endif
