// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the numbers of processes that exist, are forked, execute, allocate. Out: targets of the
 * session, to be looked at, or a count of what kept them out. None of these was asked for by its
 * number, so what is wrong with one of them is no failure of the recording.
 */
#include "join.h"

#include "caps.h"
#include "cleanup.h"
#include "log.h"
#include "opts.h"
#include "session.h"
#include "target.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

DEFINE_CLEANUP(target, struct target, target_free)

const char *join_skip_text(enum join_skip skip)
{
#define JOIN_SKIP_TEXT(id, text) [JOIN_SKIP_##id] = text,
	static const char *const texts[JOIN_SKIP_CNT] = {JOIN_SKIP_LIST(JOIN_SKIP_TEXT)};

	return texts[skip];
}

void join_skip(struct session *session, enum join_skip skip)
{
	session->skipped[skip]++;
}

/* Counts a process that target_open() failed for. */
static void skip_unopened(struct session *session, pid_t tgid, int err)
{
	enum join_skip skip = JOIN_SKIP_FAILED;

	if (err == -ESRCH)
		skip = JOIN_SKIP_ENDED;
	else if (err == -ENXIO)
		skip = JOIN_SKIP_KERNEL;
	else if (err == -ECHILD)
		skip = JOIN_SKIP_ZOMBIE;
	else if (err == -EACCES || err == -EPERM)
		skip = JOIN_SKIP_PERMISSION;
	join_skip(session, skip);
	if (skip != JOIN_SKIP_FAILED)
		return;
	session->incomplete = true;
	log_warn("process %d cannot be followed: %s", (int)tgid, strerror(-err));
}

/* It is not recorded, and its probes cost it what they cost. */
static void pass_over(struct session *session, const struct hb_event *event)
{
	if (session->everybody)
		loader_ignore(session->loader, (pid_t)event->tgid, event->epoch);
	bystanders_add(&session->bystanders, (pid_t)event->tgid, event->cpu_ns);
}

/*
 * May the process be probed as it is asked for? With -a it was asked for all of them, before the
 * first probe. False: it is counted.
 */
static bool may_probe_returns(struct session *session, pid_t tgid)
{
	int err;

	if (!session->track_live || session->everybody)
		return true;
	err = caps_return_probes(tgid, session->tier);
	if (err == -EOPNOTSUPP)
		join_skip(session, JOIN_SKIP_SECCOMP);
	else if (err)
		skip_unopened(session, tgid, err);
	return !err;
}

/* Makes `target` one of the session's; it is taken, or freed. */
static struct target *take(struct session *session, struct target *target, uint32_t epoch)
{
	target->first_epoch = target->epoch = epoch;
	target->dirty = !target->exited;
	target->joined = true;
	if (!targets_add(&session->targets, target))
		return target;
	join_skip(session, JOIN_SKIP_FAILED);
	session->incomplete = true;
	target_free(target);
	return NULL;
}

/* The number of the image from which on a process that is not followed yet is; 0: none, counted. */
static uint32_t follow(struct session *session, pid_t tgid)
{
	uint32_t epoch = 0;
	int err = loader_follow(session->loader, tgid, &epoch);

	if (!err)
		return epoch;
	if (err == -E2BIG)
		join_skip(session, JOIN_SKIP_FULL);
	else
		skip_unopened(session, tgid, err);
	session->incomplete = true;
	return 0;
}

/* Opens a process that is not followed yet, and follows it; NULL: it does not join, counted. */
static struct target *join(struct session *session, pid_t tgid)
{
	struct target *target _cleanup_(cleanup_target) = NULL;
	uint32_t epoch;
	int err = target_open(tgid, &target);

	if (err) {
		skip_unopened(session, tgid, err);
		return NULL;
	}
	if (!may_probe_returns(session, tgid))
		return NULL;
	epoch = follow(session, tgid);
	return epoch ? take(session, take_ptr(target), epoch) : NULL;
}

static bool is_known(const struct session *session, pid_t tgid)
{
	const struct target *target = targets_find(&session->targets, tgid);

	return target && !target->exited;
}

static int join_one(pid_t tgid, void *data)
{
	struct session *session = data;

	if (tgid != getpid() && !is_known(session, tgid))
		join(session, tgid);
	return 0;
}

int join_chosen(struct session *session)
{
	return selection_each(&session->opts->selection, join_one, session);
}

/* The name in an event, ended by 0. */
static const char *comm_of(const struct hb_event *event, char comm[static sizeof(event->comm) + 1])
{
	memcpy(comm, event->comm, sizeof(event->comm));
	comm[sizeof(event->comm)] = 0;
	return comm;
}

/*
 * Was the process one that is chosen when it caused the event? By now it may have executed
 * something else, or be gone; its control group is not in the event.
 */
static bool did_fit(const struct session *session, const struct hb_event *event)
{
	char comm[sizeof(event->comm) + 1];

	return selection_fits(&session->opts->selection, comm_of(event, comm), event->user);
}

/*
 * A process that exists and is followed: is it chosen, by what it is or by what it was when it
 * caused the event? Who joins as a child is, whatever it is.
 */
static bool is_chosen(const struct session *session, const struct hb_event *event)
{
	const struct selection *selection = &session->opts->selection;
	pid_t tgid = (pid_t)event->tgid;

	return !session->everybody || selection_takes(selection, tgid) ||
	       (did_fit(session, event) && selection_holds(selection, tgid));
}

/* The same of one that may be gone; then only its control group is not known, which is counted. */
static bool was_chosen(struct session *session, const struct hb_event *event)
{
	if (is_chosen(session, event))
		return true;
	if (session->opts->selection.cgroup && did_fit(session, event) &&
	    kill((pid_t)event->tgid, 0) && errno == ESRCH)
		join_skip(session, JOIN_SKIP_UNKNOWN);
	return false;
}

/*
 * Opens a process that BPF follows already. One that came and went is a target where probes were in
 * place before it came, unless only its control group would tell whether it is chosen; its stacks
 * may be its parent's. Errors are those of target_open().
 */
static int open_announced(const struct session *session, const struct hb_event *event,
			  struct target **out)
{
	char comm[sizeof(event->comm) + 1];
	int err = target_open((pid_t)event->tgid, out);
	bool may_end =
		session->everybody && !session->opts->selection.cgroup && did_fit(session, event);

	/* It may have ended between the two. */
	if (!err && target_is_gone(*out))
		return may_end || !session->everybody ? target_name(*out, comm_of(event, comm))
						      : -ESRCH;
	if ((err != -ESRCH && err != -ECHILD) || !may_end)
		return err;
	*out = target_of_ended((pid_t)event->tgid, comm_of(event, comm));
	return *out ? 0 : -ENOMEM;
}

void join_announced(struct session *session, const struct hb_event *event)
{
	/* Who has executed something since has nothing of its parent's. */
	const struct target *parent = event->type == HB_EVENT_JOIN
					      ? targets_find(&session->targets, (pid_t)event->pc)
					      : NULL;
	struct target *target _cleanup_(cleanup_target) = NULL;
	pid_t tgid = (pid_t)event->tgid;
	int err;

	if (is_known(session, tgid))
		return;
	/* Most that are met are none of those, and to open them all takes its time. */
	if (session->everybody && !did_fit(session, event) &&
	    !selection_takes(&session->opts->selection, tgid)) {
		pass_over(session, event);
		return;
	}
	err = open_announced(session, event, &target);
	if ((err || !target->exited) && !was_chosen(session, event)) {
		pass_over(session, event);
		return;
	}
	if (!err && !may_probe_returns(session, tgid)) {
		pass_over(session, event);
		return;
	}
	if (!err && parent)
		err = mappings_inherit(&target->mappings, &parent->mappings);
	if (err) {
		skip_unopened(session, tgid, err);
		pass_over(session, event);
		return;
	}
	/* It counts from its first probe. */
	if (event->type == HB_EVENT_JOIN && event->cpu_ns)
		target->opened_cpu_ns = (double)event->cpu_ns;
	bystanders_end(&session->bystanders, tgid, 0);
	target->borrows = event->borrows;
	take(session, take_ptr(target), event->epoch);
}

void join_seen(struct session *session, pid_t tgid)
{
	struct target *target;

	if (tgid == getpid() || is_known(session, tgid) ||
	    !selection_takes(&session->opts->selection, tgid))
		return;
	target = join(session, tgid);
	/* Its dynamic linker has yet to map the libraries. */
	if (target)
		target->looks_left = SESSION_LOOKS;
}
