// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: HB_EVENT_HELD of a command or of its children. Out: its image probed, and SIGCONT.
 *
 * BPF stops the process by a signal: a child where it first writes to its memory, and any of them
 * at the end of exec and where its dynamic linker speaks to debuggers. That needs no ptrace(2), so
 * it is there for each image that the process becomes, leaves the place of a tracer to others, and
 * puts nothing into the process that somebody would have to take out again.
 *
 *   fork    all that the parent has is mapped: ready
 *   exec    only the program and its dynamic linker are mapped. A static program is ready
 *   linker  has mapped the libraries, constructors come next: ready
 *
 * What runs before: the linker itself, and resolvers of indirect functions (IFUNC).
 */
#include "hold.h"

#include "follow.h"
#include "linker.h"
#include "log.h"
#include "session.h"
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The event may be a moment faster than the signal. */
#define STOP_TRIES   100
#define STOP_WAIT_NS 1000000

/* Waits until SIGSTOP has come: SIGCONT before it would be in vain. */
static void await_stop(pid_t tgid)
{
	const struct timespec pause = {.tv_nsec = STOP_WAIT_NS};

	for (int i = 0; i < STOP_TRIES && !target_is_stopped(tgid); i++)
		nanosleep(&pause, NULL);
}

static void let_on(const struct target *target)
{
	if (target->hold_runs || target->pidfd < 0 || target_is_gone(target))
		return;
	await_stop(target->tgid);
	if (syscall(SYS_pidfd_send_signal, target->pidfd, SIGCONT, NULL, 0) && errno != ESRCH)
		log_warn("cannot let process %d go on: %s; kill -CONT %d", (int)target->tgid,
			 strerror(errno), (int)target->tgid);
}

/* Where it is held the next time. */
static void hold_next(struct session *session, const struct target *target, enum hb_hold hold,
		      const struct hb_linker *linker)
{
	int err = loader_hold(session->loader, target->tgid, hold, linker);

	if (!err)
		return;
	session->incomplete = true;
	log_warn("process %d cannot be held at its next program: %s", (int)target->tgid,
		 strerror(-err));
}

/* Nothing that the image needs at its start will be mapped any more: its probes are in place. */
static void begin_image(struct session *session, struct target *target)
{
	if (target_has_allocator(target))
		target->looks_left = 0;
	session->ready = true;
	hold_next(session, target, HB_HOLD_EXEC, NULL);
	if (!session->released)
		return;
	let_on(target);
	follow_tidy(session, target);
}

void hold_serve(struct session *session, struct target *target)
{
	bool at_exec = target->hold == TARGET_HOLD_EXEC;
	struct hb_linker linker;

	if (target->hold == TARGET_HOLD_MISTAKEN) {
		target->hold = TARGET_HOLD_NONE;
		let_on(target);
		return;
	}
	target->hold = TARGET_HOLD_NONE;
	if (at_exec)
		follow_renew(session, target, true);
	/* Without the probe on its linker it would not be held again. */
	if (follow_look(session, target) || !at_exec || !linker_find(&target->maps, &linker)) {
		begin_image(session, target);
		return;
	}
	hold_next(session, target, HB_HOLD_LINKER, &linker);
	let_on(target);
}

void hold_pass(struct session *session, const struct hb_event *event)
{
	pid_t tgid = (pid_t)event->tgid;

	loader_hold(session->loader, tgid, HB_HOLD_EXEC, NULL);
	if (event->pc & HB_HELD_RUNS)
		return;
	await_stop(tgid);
	kill(tgid, SIGCONT);
}

void hold_release(struct session *session)
{
	if (!session->holds)
		return;
	session->released = true;
	let_on(session->targets.all[0]);
}

/* For a hold of which BPF has yet to tell. */
#define HOLD_WAIT_MS 1000

/* Lets go the targets that are held, and have told so. */
static void let_all_on(struct session *session)
{
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		if (target->exited || target->hold == TARGET_HOLD_NONE)
			continue;
		target->hold = TARGET_HOLD_NONE;
		loader_hold(session->loader, target->tgid, HB_HOLD_NONE, NULL);
		let_on(target);
	}
}

void hold_end(struct session *session)
{
	struct pollfd fd = {.events = POLLIN};

	if (!session->holds || !session->released)
		return;
	loader_end_holds(session->loader);
	fd.fd = loader_event_fd(session->loader);
	do {
		loader_poll_events(session->loader);
		let_all_on(session);
	} while (loader_holds_any(session->loader) && poll(&fd, 1, HOLD_WAIT_MS) > 0);
}
