// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: a return address on the user stack. Out: the one that was there before return probes, ours
 * and other people's, replaced it by that of a trampoline; the kernel keeps it in a list of the
 * thread.
 */
#include "rooms.bpf.h"

/* Return probes that the kernel lets a thread have pending (kernel/events/uprobes.c). */
#define PENDING_MAX 64

/* A return address that is looked for. */
struct hidden {
	struct return_instance *probe; /* next pending one to look at */
	__u64 at;		       /* where on the stack */
	__u64 trampoline;	       /* what is there now */
	__u64 pc;		       /* what was there, as far as is known */
};

/* One pending return probe, the most recent first: does it hold the address that we miss? */
static long uncover_from(__u32 i, struct hidden *hidden)
{
	struct return_instance *probe = hidden->probe;

	(void)i;
	if (!probe)
		return 1;
	hidden->probe = BPF_CORE_READ(probe, next);
	if (BPF_CORE_READ(probe, stack) != hidden->at)
		return 0;
	/* Chained probes share an address; all but the last one saved the trampoline again. */
	hidden->pc = BPF_CORE_READ(probe, orig_ret_vaddr);
	return hidden->pc != hidden->trampoline;
}

__hidden __u64 retprobe_uncover(__u64 at, __u64 trampoline)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct hidden hidden = {.at = at, .trampoline = trampoline, .pc = trampoline};

	if (!bpf_core_field_exists(task->utask))
		return trampoline;
	hidden.probe = BPF_CORE_READ(task, utask, return_instances);
	bpf_loop(PENDING_MAX, uncover_from, &hidden, 0);
	return hidden.pc;
}

__hidden __u64 retprobe_trampoline(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->mm->uprobes_state.xol_area) ||
	    !bpf_core_field_exists(struct xol_area, vaddr))
		return 0;
	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

__hidden __u64 retprobe_real_return(__u64 at, __u64 ra)
{
	return ra == retprobe_trampoline() ? retprobe_uncover(at, ra) : ra;
}
