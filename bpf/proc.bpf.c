// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: processes that exec, exit, load and unload libraries, and addresses that the unwinder could
 * not place. Out: records in the ring `events` for session, and the state of each followed process;
 * one process that is held at the beginnings of its images until user space has probed them.
 *
 * The ring carries life-cycle only, never samples: however busy the target is, it cannot overflow.
 */
#include "rooms.bpf.h"
#include "unwind.bpf.h"

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

/* See struct hb_proc; user space numbers images, too. */
__u32 hb_images;

/* Written by user space through the mapped .bss; see enum hb_hold. */
__u32 hb_hold_tgid;
__u32 hb_hold;
struct hb_linker hb_linker;

static bool send(enum hb_event_type type, __u32 tgid, __u32 epoch, __u64 pc)
{
	struct hb_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		hb_lose(HB_LOSS_EVENTS_FULL);
		return false;
	}
	event->type = type;
	event->tgid = tgid;
	event->epoch = epoch;
	event->pad = 0;
	event->pc = pc;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	bpf_ringbuf_submit(event, 0);
	return true;
}

static __u32 next_image(void)
{
	return __sync_fetch_and_add(&hb_images, 1) + 1;
}

/* Tells of a process that met a probe. If nobody can be told, the next probe tries again. */
static __noinline void meet(__u32 tgid, struct hb_proc *proc)
{
	struct hb_proc fresh = {};

	if (tgid == hb_config.self)
		return;
	if (!proc) {
		fresh.epoch = next_image();
		bpf_map_update_elem(&procs, &tgid, &fresh, BPF_NOEXIST);
		proc = bpf_map_lookup_elem(&procs, &tgid);
	}
	/* Who has no entry is counted when it is sampled. */
	if (proc && !__sync_lock_test_and_set(&proc->told, 1) &&
	    !send(HB_EVENT_JOIN, tgid, proc->epoch, proc->parent))
		proc->told = 0;
}

__hidden bool proc_meets(__u32 tgid)
{
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!proc || !proc->told)
		meet(tgid, proc);
	return !proc || !proc->ignored;
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

	if (proc)
		proc->parent = proc->ignored = 0;
	if (!proc || !proc->told) {
		if (proc)
			proc->epoch = next_image();
		if (hb_config.follow & HB_FOLLOW_EXECS && tgid != hb_config.self)
			send(HB_EVENT_SEEN, tgid, 0, 0);
		return 0;
	}
	epoch = next_image();
	proc->epoch = epoch;
	send(HB_EVENT_EXEC, tgid, epoch, (__u32)old_tid != tgid);
	hold(tgid, epoch, true);
	return 0;
}

/*
 * A child has its parent's mappings, and is followed like it. Of everybody's children user space
 * hears only once they allocate: most shells' do nothing but execute something else.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(hb_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	const struct hb_proc *proc = bpf_map_lookup_elem(&procs, &from);
	struct hb_proc fresh = {.told = !(hb_config.follow & HB_FOLLOW_EVERYBODY)};

	/* A thread, or nobody's child. */
	if (tgid != (__u32)BPF_CORE_READ(child, pid) || !proc)
		return 0;
	fresh.libraries = proc->libraries;
	fresh.parent = from;
	fresh.epoch = next_image();
	if (bpf_map_update_elem(&procs, &tgid, &fresh, BPF_ANY)) {
		hb_lose(HB_LOSS_PROCS_FULL);
		return 0;
	}
	unwind_inherit(from, proc->epoch, tgid, fresh.epoch);
	if (fresh.told)
		send(HB_EVENT_JOIN, tgid, fresh.epoch, from);
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
	if (proc->told)
		send(HB_EVENT_EXIT, tgid, proc->epoch, 0);
	bpf_map_delete_elem(&procs, &tgid);
	return 0;
}
