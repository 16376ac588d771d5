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
#define SIGTSTP		20
#define SIGTTIN		21
#define SIGTTOU		22

/* Of task_struct.ptrace: the tracer knows stops (PTRACE_SEIZE). */
#define PT_SEIZED 0x00010000

/* A parent that stops itself so soon after a child of it was held does so for that. */
#define MISTAKE_NS (1000 * 1000 * 1000)

/* Between ticks, mostly. */
#define TICK_NS (4 * 1000 * 1000)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hb_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024);
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

/* Sized by loader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hb_holding);
} holds SEC(".maps");

/* Written by user space through the mapped .bss; see struct hb_holding. */
__u32 hb_holds_off;

/*
 * Processor time of the current process: of its threads that were released, this one, and the
 * first. The kernel adds up at each tick; who has lived for less is taken to have run all the time.
 * 0: other threads are at work.
 */
static __noinline __u64 used_cpu_ns(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 cpu_ns, lived_ns;

	lived_ns = bpf_ktime_get_ns() - BPF_CORE_READ(leader, start_time);
	if (lived_ns < TICK_NS)
		return lived_ns;
	/* `live` was decremented if this is the end of a thread. */
	if (BPF_CORE_READ(task, signal, live.counter) > 1)
		return 0;
	cpu_ns = BPF_CORE_READ(task, signal, sum_sched_runtime) +
		 BPF_CORE_READ(task, se.sum_exec_runtime);
	if (leader != task)
		cpu_ns += BPF_CORE_READ(leader, se.sum_exec_runtime);
	return cpu_ns;
}

/* Name and user of the current process: those of its first thread, as /proc has them. */
static __always_inline void describe(struct hb_event *event)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	BPF_CORE_READ_STR_INTO(&event->comm, task, group_leader, comm);
	event->user = BPF_CORE_READ(task, group_leader, real_cred, euid.val);
	event->pad = 0;
}

static __always_inline void submit(struct hb_event *event, enum hb_event_type type, __u32 tgid,
				   __u32 epoch, __u64 pc, __u32 borrows)
{
	event->type = type;
	event->tgid = tgid;
	event->epoch = epoch;
	event->borrows = borrows;
	event->pc = pc;
	event->cpu_ns = 0;
	/* Who was forked just now has used nothing. */
	if ((type == HB_EVENT_JOIN || type == HB_EVENT_EXIT) &&
	    tgid == bpf_get_current_pid_tgid() >> 32)
		event->cpu_ns = used_cpu_ns();
	describe(event);
	bpf_ringbuf_submit(event, 0);
}

static bool send_as(enum hb_event_type type, __u32 tgid, __u32 epoch, __u64 pc, __u32 borrows)
{
	struct hb_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		hb_lose(HB_LOSS_EVENTS_FULL);
		return false;
	}
	submit(event, type, tgid, epoch, pc, borrows);
	return true;
}

static bool send(enum hb_event_type type, __u32 tgid, __u32 epoch, __u64 pc)
{
	return send_as(type, tgid, epoch, pc, 0);
}

static __u32 next_image(void)
{
	return __sync_fetch_and_add(&hb_images, 1) + 1;
}

/*
 * Tells of a process that met a probe. If nobody can be told, the next probe tries again; that
 * counts as lost once.
 */
static __noinline void meet(__u32 tgid, struct hb_proc *proc)
{
	struct hb_proc fresh = {};
	struct hb_event *event;
	__u32 told;

	if (tgid == hb_config.self)
		return;
	if (!proc) {
		fresh.epoch = next_image();
		bpf_map_update_elem(&procs, &tgid, &fresh, BPF_NOEXIST);
		proc = bpf_map_lookup_elem(&procs, &tgid);
	}
	/* Who has no entry is counted when it is sampled. */
	if (!proc)
		return;
	told = __sync_lock_test_and_set(&proc->told, 1);
	if (told == 1)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		submit(event, HB_EVENT_JOIN, tgid, proc->epoch, proc->parent, 0);
		return;
	}
	if (!told)
		hb_lose(HB_LOSS_EVENTS_FULL);
	proc->told = 2;
}

__hidden bool proc_meets(__u32 tgid)
{
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!proc || proc->told != 1)
		meet(tgid, proc);
	return !proc || proc->ignored != proc->epoch;
}

/*
 * User space asks for this by a run of its own: the process may execute something meanwhile, and an
 * update of its entry from there would undo what is noted of that.
 */
SEC("syscall")
int hb_ignore(struct hb_ignoring *what)
{
	__u32 tgid = what->tgid;
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (proc)
		proc->ignored = what->epoch;
	return 0;
}

/* Called before a change and after it; a linker that cannot be asked is taken to be done. */
static __always_inline bool linker_is_done(const struct hb_linker *linker)
{
	__u64 debug_pc = linker->debug_pc;
	__s32 state;

	if (linker->is_pointer &&
	    bpf_probe_read_user(&debug_pc, sizeof(debug_pc), (void *)debug_pc))
		return true;
	return bpf_probe_read_user(&state, sizeof(state),
				   (void *)(debug_pc + HB_LINKER_STATE_OFF)) ||
	       !state;
}

static __always_inline bool are_holds_off(void)
{
	return *(volatile __u32 *)&hb_holds_off;
}

/* Does a process that is to be held as `wanted` says stop here? */
static __always_inline bool stops_at(__u32 wanted, enum hb_held at)
{
	switch (at) {
	case HB_HELD_FORK:
		return wanted == HB_HOLD_FORK;
	case HB_HELD_EXEC:
		return wanted != HB_HOLD_NONE && wanted != HB_HOLD_HELD;
	default:
		return wanted == HB_HOLD_LINKER;
	}
}

/* Has the process something of its own for a signal: a handler, or that it is ignored? */
#define IS_DEFAULT(task, number) (!BPF_CORE_READ(task, sighand, action[(number)-1].sa.sa_handler))

/* Does its parent control jobs, and waits for those that stop? */
static __always_inline bool is_job(struct task_struct *task, enum hb_held at)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);
	struct pid *group = BPF_CORE_READ(task, signal, pids[PIDTYPE_PGID]);

	/* Before such a shell makes a process group of it, it has what the shell has. */
	if (at == HB_HELD_FORK)
		return !IS_DEFAULT(task, SIGTSTP) && !IS_DEFAULT(task, SIGTTIN) &&
		       !IS_DEFAULT(task, SIGTTOU);
	return group != BPF_CORE_READ(parent, signal, pids[PIDTYPE_PGID]) &&
	       BPF_CORE_READ(task, signal, pids[PIDTYPE_SID]) ==
		       BPF_CORE_READ(parent, signal, pids[PIDTYPE_SID]);
}

/* Would a stop that comes to nothing change what this process does, or others with it? */
static __always_inline bool would_be_noticed(enum hb_held at)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	unsigned long on_cont =
		(unsigned long)BPF_CORE_READ(task, sighand, action[SIGCONT - 1].sa.sa_handler);
	__u32 ptrace = BPF_CORE_READ(task, ptrace);

	/* 1 is SIG_IGN. */
	return on_cont > 1 || (ptrace && !(ptrace & PT_SEIZED)) || is_job(task, at);
}

/* For hb_signal: some take it for a stop by the user, and stop as well. */
static __always_inline void note_parent(__u32 tgid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 parent = BPF_CORE_READ(task, real_parent, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &parent);

	if (!proc)
		return;
	proc->held_child = tgid;
	proc->held_ns = bpf_ktime_get_ns();
}

/*
 * Room for the event first: a signal that is sent in vain could not be taken back here. Then the
 * signal: who hears of the hold sends SIGCONT. If nobody can be told, it goes on; its image is
 * noticed later, and a loss is counted.
 */
static __always_inline bool stop(__u32 tgid, __u32 epoch, enum hb_held at)
{
	struct hb_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	__u64 runs = 0;

	if (!event) {
		hb_lose(HB_LOSS_EVENTS_FULL);
		return false;
	}
	note_parent(tgid);
	if (would_be_noticed(at) || bpf_send_signal(SIGSTOP)) {
		hb_lose(HB_LOSS_UNHELD);
		runs = HB_HELD_RUNS;
	}
	submit(event, HB_EVENT_HELD, tgid, epoch, at | runs, 0);
	return true;
}

static __always_inline void hold(__u32 tgid, __u32 epoch, enum hb_held at)
{
	struct hb_holding *holding = bpf_map_lookup_elem(&holds, &tgid);
	__u32 wanted;

	if (!holding)
		return;
	wanted = *(volatile __u32 *)&holding->hold;
	if (!stops_at(wanted, at) || (at == HB_HELD_LINKER && !linker_is_done(&holding->linker)))
		return;
	if (__sync_val_compare_and_swap(&holding->hold, wanted, HB_HOLD_HELD) != wanted)
		return;
	/* After the swap: who turns holds off looks for those that are held afterwards. */
	if (!are_holds_off() && stop(tgid, epoch, at))
		return;
	__sync_val_compare_and_swap(&holding->hold, HB_HOLD_HELD, wanted);
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
	hold(tgid, proc->epoch, HB_HELD_LINKER);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(hb_exec, struct task_struct *task, pid_t old_tid)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	__u32 epoch;

	if (proc)
		proc->parent = 0;
	if (!proc || proc->told != 1) {
		if (proc)
			proc->epoch = next_image();
		if (hb_config.follow & HB_FOLLOW_EXECS && tgid != hb_config.self)
			send(HB_EVENT_SEEN, tgid, 0, 0);
		return 0;
	}
	epoch = next_image();
	proc->epoch = epoch;
	send(HB_EVENT_EXEC, tgid, epoch, (__u32)old_tid != tgid);
	hold(tgid, epoch, HB_HELD_EXEC);
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
	struct hb_holding holding = {};
	bool borrows;

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
	borrows = BPF_CORE_READ(parent, mm) == BPF_CORE_READ(child, mm);
	if (hb_config.follow & HB_FOLLOW_HELD) {
		holding.hold = borrows ? HB_HOLD_EXEC : HB_HOLD_FORK;
		bpf_map_update_elem(&holds, &tgid, &holding, BPF_ANY);
	}
	if (fresh.told)
		send_as(HB_EVENT_JOIN, tgid, fresh.epoch, from, borrows);
	return 0;
}

/*
 * A child that was forked shares its pages with its parent until one of them writes: it cannot call
 * a function before it faults. Nothing else runs in the child before its own code, on any kernel.
 */
SEC("tp_btf/page_fault_user")
int BPF_PROG(hb_fault)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct hb_holding *holding = bpf_map_lookup_elem(&holds, &tgid);
	const struct hb_proc *proc;

	if (!holding)
		return 0;
	holding->due = 0;
	if (holding->hold != HB_HOLD_FORK)
		return 0;
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (proc)
		hold(tgid, proc->epoch, HB_HELD_FORK);
	return 0;
}

/*
 * su, script and others stop themselves when they see their child stopped, until somebody lets them
 * go on, and the child with them.
 */
SEC("tp_btf/signal_generate")
int BPF_PROG(hb_signal, int number, struct kernel_siginfo *info, struct task_struct *task)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	const struct hb_holding *holding;
	const struct hb_proc *proc;

	if (number != SIGSTOP || tgid != (__u32)BPF_CORE_READ(task, tgid))
		return 0;
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc || !proc->held_child || bpf_ktime_get_ns() - proc->held_ns > MISTAKE_NS)
		return 0;
	/* It is held itself. */
	holding = bpf_map_lookup_elem(&holds, &tgid);
	if (!holding || holding->hold != HB_HOLD_HELD)
		send(HB_EVENT_MISTAKEN, tgid, proc->epoch, 0);
	return 0;
}

/* A child that ended is no reason to stop any more. */
static __always_inline void forget_child(struct task_struct *task, __u32 tgid)
{
	__u32 parent = BPF_CORE_READ(task, real_parent, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &parent);

	if (proc && proc->held_child == tgid)
		proc->held_child = 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(hb_exit, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct hb_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	/* `live` counts threads and was decremented before the tracepoint: 0 at the last one. */
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	/* Also of one that there was no room to follow. */
	if (hb_config.count_each)
		account_forget_costs(tgid);
	if (!proc)
		return 0;
	if (proc->told == 1)
		send(HB_EVENT_EXIT, tgid, proc->epoch, 0);
	forget_child(task, tgid);
	bpf_map_delete_elem(&procs, &tgid);
	bpf_map_delete_elem(&holds, &tgid);
	return 0;
}
