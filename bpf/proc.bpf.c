// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: processes that exec, exit, load and unload libraries, and addresses that the unwinder could
 * not place. Out: records in the ring `events` for session, and the state of each followed process.
 *
 * The ring carries life-cycle only, never samples: however busy the target is, it cannot overflow.
 */
#include "rooms.bpf.h"

#define ASK_INTERVAL_NS (20 * 1000 * 1000)

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

static void send(enum hb_event_type type, __u32 tgid, __u32 epoch, __u64 pc)
{
	struct hb_event event = {.type = type, .tgid = tgid, .epoch = epoch, .pc = pc};

	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		hb_lose(HB_LOSS_EVENTS_FULL);
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
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(hb_exec, struct task_struct *task, pid_t old_tid)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!proc)
		return 0;
	send(HB_EVENT_EXEC, tgid, __sync_fetch_and_add(&proc->epoch, 1) + 1,
	     (__u32)old_tid != tgid);
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
