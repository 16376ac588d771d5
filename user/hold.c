// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: HB_EVENT_HELD of a command. Out: its image probed, and SIGCONT.
 *
 * BPF stops the process by a signal, at the end of exec and where its dynamic linker speaks to
 * debuggers. That needs no ptrace(2), so it is there for each image that the process becomes, costs
 * signals nothing, leaves the place of a tracer to others, and puts nothing into the process that
 * somebody would have to take out again.
 *
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
#include <unistd.h>

static void let_on(const struct target *target)
{
	if (syscall(SYS_pidfd_send_signal, target->pidfd, SIGCONT, NULL, 0) && errno != ESRCH)
		log_warn("cannot let process %d go on: %s; kill -CONT %d", (int)target->tgid,
			 strerror(errno), (int)target->tgid);
}

/* Nothing that the image needs at its start will be mapped any more: its probes are in place. */
static void begin_image(struct session *session, struct target *target)
{
	if (target_has_allocator(target))
		target->looks_left = 0;
	session->ready = true;
	loader_hold(session->loader, target->tgid, HB_HOLD_EXEC);
	if (!session->released)
		return;
	let_on(target);
	follow_tidy(session, target);
}

void hold_serve(struct session *session, struct target *target)
{
	bool at_exec = target->hold == TARGET_HOLD_EXEC;
	struct hb_linker linker;

	target->hold = TARGET_HOLD_NONE;
	if (at_exec)
		session->incomplete |= target_renew(target) != 0;
	/* Without the probe on its linker it would not be held again. */
	if (follow_look(session, target) || !at_exec || !linker_find(&target->maps, &linker)) {
		begin_image(session, target);
		return;
	}
	loader_set_linker(session->loader, &linker);
	loader_hold(session->loader, target->tgid, HB_HOLD_LINKER);
	let_on(target);
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

void hold_end(struct session *session)
{
	struct pollfd fd = {.events = POLLIN};
	struct target *target;

	if (!session->holds || !session->released || !loader_hold_end(session->loader))
		return;
	target = session->targets.all[0];
	fd.fd = loader_event_fd(session->loader);
	while (!target->hold && poll(&fd, 1, HOLD_WAIT_MS) > 0)
		loader_poll_events(session->loader);
	let_on(target);
}
