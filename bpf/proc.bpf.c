// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: processes that exec, exit, load and unload libraries, and addresses that the unwinder could
 * not place. Out: records in the ring `events` for session, and the state of each followed process;
 * one process that is held at the beginnings of its images until user space has probed them.
 *
 * The ring carries life-cycle only, never samples: however busy the target is, it cannot overflow.
 */
#include "rooms.bpf.h"

#define ASK_INTERVAL_NS (20 * 1000 * 1000)
#define SIGCONT		18
#define SIGSTOP		19

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hb_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

__hidden bool proc_get(__u32 tgid, struct hb_proc *out)
{
	const struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!proc)
		return false;
	*out = *proc;
	return true;
}

/* Written by user space through the mapped .bss; see enum hb_hold. */
__u32 hb_hold_tgid;
__u32 hb_hold;
struct hb_linker hb_linker;

static bool send(enum hb_event_type type, __u32 tgid, __u32 epoch, __u64 pc)
{
	struct hb_event event = {.type = type, .tgid = tgid, .epoch = epoch, .pc = pc};

	if (!bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		return true;
	hb_lose(HB_LOSS_EVENTS_FULL);
	return false;
}

/* Called before a change and after it; a linker that cannot be asked is taken to be done. */
static __always_inline bool linker_is_done(void)
{
	__u64 debug_pc = hb_linker.debug_pc;
	__s32 state;

	if (hb_linker.is_pointer &&
	    bpf_probe_read_user(&debug_pc, sizeof(debug_pc), (void *)debug_pc))
		return true;
	return bpf_probe_read_user(&state, sizeof(state),
				   (void *)(debug_pc + HB_LINKER_STATE_OFF)) ||
	       !state;
}

/*
 * The signal first: who hears of the hold sends SIGCONT, which must not come before it. If nobody
 * can be told, it goes on; its image is noticed later, and a loss is counted.
 */
static __always_inline void hold(__u32 tgid, __u32 epoch, bool at_exec)
{
	__u32 wanted = *(volatile __u32 *)&hb_hold;

	if (tgid != hb_hold_tgid ||
	    !(wanted == HB_HOLD_LINKER || (wanted == HB_HOLD_EXEC && at_exec)))
		return;
	if (!at_exec && !linker_is_done())
		return;
	if (__sync_val_compare_and_swap(&hb_hold, wanted, HB_HOLD_HELD) != wanted)
		return;
	bpf_send_signal(SIGSTOP);
	if (send(HB_EVENT_HELD, tgid, epoch, at_exec))
		return;
	__sync_val_compare_and_swap(&hb_hold, HB_HOLD_HELD, wanted);
	bpf_send_signal(SIGCONT);
}

__hidden void hb_request_maps(__u32 tgid, __u32 epoch, __u64 pc)
{
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	__u64 now_ns = bpf_ktime_get_ns();

	/* Two CPUs at once may both ask; an extra look at the mappings harms nobody. */
	if (!proc || now_ns - proc->asked_ns < ASK_INTERVAL_NS)
		return;
	proc->asked_ns = now_ns;
	send(HB_EVENT_MAPS, tgid, epoch, pc);
}

__hidden void proc_changes_libraries(__u32 tgid)
{
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!proc)
		return;
	__sync_fetch_and_add(&proc->libraries, 1);
	send(HB_EVENT_MAPS, tgid, proc->epoch, 0);
	hold(tgid, proc->epoch, false);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(hb_exec, struct task_struct *task, pid_t old_tid)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	__u32 epoch;

	if (!proc)
		return 0;
	epoch = __sync_fetch_and_add(&proc->epoch, 1) + 1;
	send(HB_EVENT_EXEC, tgid, epoch, (__u32)old_tid != tgid);
	hold(tgid, epoch, true);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(hb_exit, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	/* `live` counts threads and was decremented before the tracepoint: 0 at the last one. */
	if (!proc || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	send(HB_EVENT_EXIT, tgid, proc->epoch, 0);
	return 0;
}
