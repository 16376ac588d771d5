// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: options. Out: probes in place in every target, unwind tables loaded, and both kept right
 * while targets map libraries, exec and exit. Reading the results is record's job.
 */
#include "session.h"

#include "caps.h"
#include "cleanup.h"
#include "command.h"
#include "elf_cache.h"
#include "everybody.h"
#include "follow.h"
#include "hold.h"
#include "log.h"
#include "opts.h"
#include "output.h"
#include "probes.h"
#include "processes.h"
#include "signals.h"
#include "symbolize.h"
#include "target.h"
#include "unwind_table.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/stat.h>

DEFINE_CLEANUP(session, struct session, session_free)

void session_free(struct session *session)
{
	if (!session)
		return;
	hold_end(session);
	loader_free(session->loader);
	unwind_table_free(session->unwind);
	symbolizer_free(session->symbolizer);
	targets_clear(&session->targets);
	bystanders_clear(&session->bystanders);
	everybody_free(session->everybody);
	probes_clear(&session->probes);
	elf_cache_free(session->cache);
	free(session);
}

/* Inode of the initial pid namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define INIT_PID_NS_INODE 0xeffffffcU

/* Between the looks after an exec. */
#define LOOK_MS 25

/* So many targets are looked at whenever probes are put back, whether they changed or not. */
#define ARM_LOOKS 16

/* Follows and probes one that was named. 0 or -errno, logged. */
static int add_target(struct session *session, struct target *target)
{
	int err = follow_begin(session, target);

	if (err)
		return err;
	err = follow_catch_up(session, target);
	if (err == -ESRCH)
		return log_fail(0, "process %d ended before it could be profiled",
				(int)target->tgid);
	if (err)
		return err;
	return target_has_allocator(target) ? 0 : probes_explain_none(&session->probes, target);
}

int session_wait_ms(const struct session *session)
{
	int64_t wait_ms = -1;

	for (size_t i = 0; i < session->targets.cnt; i++) {
		const struct target *target = session->targets.all[i];
		int64_t left_ms = LOOK_MS;

		if (target->exited || (!target->looks_left && !target->dirty))
			continue;
		if (target->dirty)
			left_ms = follow_pause_left_ns(target) / 1000000 + 1;
		if (wait_ms < 0 || left_ms < wait_ms)
			wait_ms = left_ms > 0 ? left_ms : 0;
	}
	if (session->everybody) {
		int look_ms = everybody_wait_ms(session->everybody);

		if (look_ms >= 0 && (wait_ms < 0 || look_ms < wait_ms))
			wait_ms = look_ms;
	}
	return (int)wait_ms;
}

/* An image in which no allocator was found until now. */
static void give_up(struct session *session, struct target *target)
{
	if (target->joined) {
		join_skip(session, JOIN_SKIP_NO_ALLOCATOR);
		return;
	}
	session->incomplete = true;
	log_warn("process %d executed a program without an allocator that can be probed; the "
		 "profile is incomplete",
		 (int)target->tgid);
}

void session_look_again(struct session *session)
{
	if (session->everybody)
		everybody_look(session->everybody);
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		if (target->dirty && !target->exited && follow_pause_left_ns(target) <= 0)
			follow_look_well(session, target);
		if (!target->looks_left || target->exited)
			continue;
		follow_look_well(session, target);
		target->looks_left--;
		if (target_has_allocator(target))
			target->looks_left = 0;
		if (!target->looks_left && !target_has_allocator(target))
			give_up(session, target);
	}
}

/* A target executed another program. */
static void note_exec(struct session *session, struct target *target, const struct hb_event *event)
{
	target->epoch = event->epoch;
	target_begin(target);
	target->dirty = target->ended_images = true;
	target->renamed = target->joined;
	target->borrows = false;
	/* Whatever has probes has them in all processes. */
	if (session->everybody)
		return;
	target->looks_left = SESSION_LOOKS;
	if (!event->pc)
		return;
	/* The kernel knows the process by its old leader, which is gone. */
	target->unlinked = true;
	if (session->holds)
		return;
	session->incomplete = true;
	log_warn("process %d executed a program from a thread; the first that this allocated is "
		 "missing",
		 (int)target->tgid);
}

/* Events of processes that are no targets, or not yet. True: it was one. */
static bool note_stranger(struct session *session, const struct hb_event *event)
{
	if (event->type == HB_EVENT_JOIN) {
		join_announced(session, event);
		return true;
	}
	if (event->type != HB_EVENT_SEEN)
		return false;
	if (session->everybody)
		everybody_seen(session->everybody, (pid_t)event->tgid);
	else
		join_seen(session, (pid_t)event->tgid);
	return true;
}

/* Whose event it is; NULL: not a target's. */
static struct target *target_of(const struct session *session, const struct hb_event *event)
{
	struct target *newest = targets_find(&session->targets, (pid_t)event->tgid);

	/* All this may be over: it ended before it could be opened, but not in its first image. */
	if (newest && newest->exited && !newest->end_told && event->type == HB_EVENT_EXEC)
		return newest;
	return targets_find_image(&session->targets, (pid_t)event->tgid, event->epoch);
}

static enum target_hold held_at(const struct hb_event *event)
{
	static const enum target_hold holds[HB_HELD_CNT] = {
		[HB_HELD_FORK] = TARGET_HOLD_FORK,
		[HB_HELD_EXEC] = TARGET_HOLD_EXEC,
		[HB_HELD_LINKER] = TARGET_HOLD_LINKER,
	};

	uint64_t at = event->pc & ~(uint64_t)HB_HELD_RUNS;

	return at < HB_HELD_CNT ? holds[at] : TARGET_HOLD_NONE;
}

/* Only notes: a look takes milliseconds, and a hundred events may ask for the same one. */
static void on_event(const struct hb_event *event, void *data)
{
	struct session *session = data;
	struct target *target;

	if (note_stranger(session, event))
		return;
	target = target_of(session, event);
	if (!target) {
		/* One that was not chosen may be now. */
		if (event->type == HB_EVENT_EXEC)
			join_announced(session, event);
		else if (event->type == HB_EVENT_HELD)
			hold_pass(session, event);
		else if (event->type == HB_EVENT_EXIT)
			bystanders_end(&session->bystanders, (pid_t)event->tgid, event->cpu_ns);
		return;
	}
	switch ((enum hb_event_type)event->type) {
	case HB_EVENT_EXEC:
		note_exec(session, target, event);
		break;
	case HB_EVENT_EXIT:
		target->end_told = true;
		target_note_cpu(target, event->cpu_ns);
		targets_end(&session->targets, target);
		break;
	case HB_EVENT_MAPS:
		target->dirty |= event->epoch == target->epoch;
		break;
	case HB_EVENT_HELD:
		target->hold = held_at(event);
		target->hold_runs = event->pc & HB_HELD_RUNS;
		break;
	case HB_EVENT_MISTAKEN:
		target->hold = TARGET_HOLD_MISTAKEN;
		target->hold_runs = false;
		break;
	case HB_EVENT_JOIN:
	case HB_EVENT_SEEN:
	case HB_EVENT_CNT:
		break;
	}
}

void session_handle_events(struct session *session, bool ending)
{
	loader_poll_events(session->loader);
	for (size_t i = 0; i < session->targets.cnt && !ending; i++)
		if (session->targets.all[i]->hold && !session->targets.all[i]->exited)
			hold_serve(session, session->targets.all[i]);
	for (size_t i = 0; i < session->targets.cnt && !ending; i++)
		if (session->targets.all[i]->dirty && !session->targets.all[i]->exited &&
		    follow_pause_left_ns(session->targets.all[i]) <= 0)
			follow_look_well(session, session->targets.all[i]);
}

/* Forgets the probes of those that ended: their numbers may be others' by now. True if any did. */
static bool drop_ended(struct session *session)
{
	bool any = false;

	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		if (target->dropped || !(target->exited || target_is_gone(target)))
			continue;
		loader_detach_process(session->loader, target->tgid);
		/* Unless another one has its number. */
		if (targets_find(&session->targets, target->tgid) == target)
			unwind_table_drop(session->unwind, target->tgid);
		any = target->dropped = true;
	}
	return any;
}

void session_tidy(struct session *session)
{
	drop_ended(session);
	loader_sweep(session->loader);
}

int session_arm(struct session *session)
{
	int err;

	do {
		drop_ended(session);
		err = loader_arm(session->loader);
	} while (err && drop_ended(session));
	if (err)
		return log_fail(-err, "cannot put the probes back");
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		if (!target->dropped && (target->dirty || session->targets.alive_cnt <= ARM_LOOKS))
			follow_look_well(session, target);
	}
	return 0;
}

bool session_goes_on(const struct session *session)
{
	return session->targets.alive_cnt || opts_are_selected(session->opts);
}

/*
 * BPF sees process ids of the initial namespace only; in another one our numbers would name nobody,
 * or somebody else.
 */
static int check_pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return log_fail(errno, "cannot read /proc/self/ns/pid; is /proc mounted?");
	if (st.st_ino != INIT_PID_NS_INODE)
		return log_fail(0,
				"heapbpf runs in a pid namespace of its own (a container?), where "
				"process ids are not those that BPF sees; run it on the host, or "
				"with the host's pid namespace");
	return 0;
}

/* Opens every target and checks its output, before anything is loaded. */
static int open_targets(struct session *session)
{
	const struct opts *opts = session->opts;

	for (size_t i = 0; i < opts->tgid_cnt; i++) {
		struct target *target = NULL;
		int err;

		if (opts->tgids[i] == getpid())
			return log_fail(0, "process %d is heapbpf itself", (int)getpid());
		err = target_open(opts->tgids[i], &target);
		if (err)
			return target_explain(opts->tgids[i], err);
		err = targets_add(&session->targets, target);
		if (err) {
			target_free(target);
			return log_fail(-err, "cannot watch process %d", (int)opts->tgids[i]);
		}
		/* The name of a command that has yet to be executed is not the file's. */
		err = session->holds ? 0 : output_check(opts, target);
		if (err)
			return err;
	}
	return 0;
}

/* How probes are attached, and whether they may be. 0 or -errno, logged. */
static int choose_tier(struct session *session)
{
	int err = caps_choose(session->opts->tier, &session->tier);

	for (size_t i = 0; i < session->targets.cnt && !err && session->track_live; i++)
		err = caps_check_returns(session->targets.all[i]->tgid, session->tier);
	return err;
}

static int open_loader(struct session *session)
{
	const struct opts *opts = session->opts;
	struct loader_opts loader_opts = {
		.rate_bytes = opts->rate_bytes,
		.max_stacks = opts->max_stacks,
		.max_sites = opts->max_sites,
		.max_live = opts->max_live,
		.max_processes = opts->max_processes,
		.max_depth = opts->max_depth,
		.track_live = session->track_live,
		.floor = opts->floor,
		.count_each = session->counts_each,
		.tier = session->tier,
	};
	struct unwind_table_maps maps;
	int err;

	if (opts->everybody)
		loader_opts.follow = HB_FOLLOW_EVERYBODY | HB_FOLLOW_EXECS;
	else if (opts_are_selected(opts))
		loader_opts.follow = HB_FOLLOW_EXECS;
	if (opts->follow && !opts->everybody)
		loader_opts.follow |= HB_FOLLOW_CHILDREN | (session->holds ? HB_FOLLOW_HELD : 0);
	err = loader_open(&loader_opts, &session->loader);

	if (err)
		return err;
	if (loader_calibrate(session->loader, &session->cost))
		log_warn("cannot measure the cost of a probe; it will not be shown");
	err = loader_on_event(session->loader, on_event, session);
	if (err)
		return err;
	loader_unwind_maps(session->loader, &maps);
	err = unwind_table_new(&maps, &session->unwind);
	return err ? log_fail(-err, "cannot start") : 0;
}

/* How often a launch looks for signals. */
#define LAUNCH_LOOK_MS 200

/* Lets the command go and waits until it is held where its own code begins. */
static int launch(struct session *session, struct command *command)
{
	struct target *target = session->targets.all[0];
	struct pollfd fds[] = {
		{.fd = loader_event_fd(session->loader), .events = POLLIN},
		{.fd = target->pidfd, .events = POLLIN},
	};
	struct command_holds holds = {.map_fd = loader_holds_fd(session->loader)};
	int err = follow_begin(session, target);

	if (err)
		return err;
	err = loader_hold(session->loader, target->tgid, HB_HOLD_EXEC, NULL);
	if (err)
		return log_fail(-err, "cannot hold process %d", (int)target->tgid);
	holds.switch_fd = loader_holds_switch(session->loader, &holds.switch_off);
	err = command_keep(command, &holds);
	if (!err)
		err = command_go(command);
	while (!err && !session->ready) {
		if (poll(fds, ARRAY_CNT(fds), LAUNCH_LOOK_MS) < 0 && errno != EINTR)
			return log_fail(errno, "cannot wait");
		session_handle_events(session, false);
		if (signals_pending())
			return log_fail(0, "told to end before process %d (%s) began",
					(int)target->tgid, target->comm);
		if (fds[1].revents)
			return log_fail(0, "process %d (%s) ended before its program began",
					(int)target->tgid, target->comm);
	}
	if (err)
		return err;
	if (session->incomplete)
		return -EIO;
	if (!target_has_allocator(target))
		return probes_explain_none(&session->probes, target);
	return output_check(session->opts, target);
}

/* Those that are chosen by what they are. 0 or -errno, logged. */
static int open_chosen(struct session *session)
{
	int err = processes_check(session->opts);

	if (!err && session->opts->everybody && session->track_live)
		err = caps_check_returns_everywhere(session->tier);
	if (err)
		return err;
	if (session->opts->everybody)
		return everybody_open(session, &session->everybody);
	err = join_chosen(session);
	if (err)
		return err;
	if (!session->targets.cnt)
		return log_fail(0, "no process is chosen by --comm, --cgroup or --user; look with "
				   "pgrep, or add -a to record what comes later");
	for (size_t i = 0; i < session->targets.cnt; i++)
		follow_look_well(session, session->targets.all[i]);
	return 0;
}

int session_open(const struct opts *opts, struct command *command, struct session **out)
{
	struct session *session _cleanup_(cleanup_session) = calloc(1, sizeof(*session));
	int err;

	if (!session)
		return log_fail(ENOMEM, "cannot start");
	session->opts = opts;
	session->holds = command;
	session->track_live = opts->types[PROFILE_HEAP] || opts->types[PROFILE_INUSE];
	session->probes.track_live = session->track_live;
	/* Those that take turns are compared with one another. */
	session->counts_each = !isinf(opts->max_overhead) && !opts->share && opts_are_many(opts);
	session->probes.hints = &opts->hints;
	err = targets_init(&session->targets);
	if (err)
		return log_fail(-err, "cannot start");
	session->cache = elf_cache_new();
	session->symbolizer = symbolizer_new();
	if (!session->cache || !session->symbolizer)
		return log_fail(ENOMEM, "cannot start");
	err = check_pid_namespace();
	if (!err)
		err = open_targets(session);
	if (!err)
		err = choose_tier(session);
	if (!err)
		err = open_loader(session);
	for (size_t i = 0; i < session->targets.cnt && !err; i++)
		err = command ? launch(session, command)
			      : add_target(session, session->targets.all[i]);
	if (!err && opts_are_selected(opts))
		err = open_chosen(session);
	/* A command may still become the program that maps it, and those that come later. */
	if (!err && !command && !opts_are_selected(opts))
		err = probes_check_hints(&session->probes);
	if (err)
		return err;
	*out = take_ptr(session);
	return 0;
}
