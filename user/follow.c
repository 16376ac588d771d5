// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a target whose mappings may have changed. Out: unwind tables for all of them, probes on every
 * allocator in them. When to look is session's affair.
 */
#include "follow.h"

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "opts.h"
#include "probes.h"
#include "session.h"
#include "symbolize.h"
#include "target.h"
#include "unwind_table.h"

#include <errno.h>

/* Between two looks that events ask for. */
#define LOOK_PAUSE_NS 5000000

int follow_begin(struct session *session, struct target *target)
{
	int err = loader_follow(session->loader, target->tgid, &target->first_epoch);

	if (err == -E2BIG)
		log_fail(0,
			 "cannot follow process %d: --max-processes %u reached; give a larger "
			 "number",
			 (int)target->tgid, session->opts->max_processes);
	else if (err)
		log_fail(-err, "cannot follow process %d", (int)target->tgid);
	return err;
}

/* Brings the mappings of a target down to the unwinder. 0 or -errno, not logged. */
static int refresh(struct session *session, struct target *target)
{
	struct mappings_state state, after = {};
	int err = loader_state(session->loader, target->tgid, &state);

	if (err)
		return err;
	target->epoch = state.epoch;
	err = target_scan(target, session->cache, state);
	if (err)
		return err;
	/* One that ended meanwhile is in no state. */
	err = loader_state(session->loader, target->tgid, &after);
	if (err && err != -ESRCH)
		return err;
	err = target_number(target, after);
	if (err)
		return err;
	probes_mark(&session->probes, &target->maps);
	return unwind_table_set(session->unwind, target->tgid, state, &target->maps);
}

/* Files that got a slot are told to the unwinder. 0 or -errno, logged. */
static int attach_everywhere(struct session *session, struct target *target)
{
	uint32_t slot_cnt = session->probes.slot_cnt;
	int err = probes_attach_everywhere(&session->probes, target->tgid, &target->maps,
					   session->loader);

	if (session->probes.slot_cnt != slot_cnt)
		refresh(session, target);
	return err;
}

int follow_catch_up(struct session *session, struct target *target)
{
	bool any = true;
	int err = 0;

	while (any && !err) {
		err = refresh(session, target);
		if (err && err != -ESRCH)
			log_fail(-err, "cannot learn the mappings of process %d",
				 (int)target->tgid);
		if (!err && session->everybody)
			return attach_everywhere(session, target);
		if (!err)
			err = probes_attach(&session->probes, target, session->loader, &any);
	}
	return err;
}

/* Its probes waited for a thread that is gone: they are taken out, and every file is new again. */
static void unlink_probes(struct session *session, struct target *target)
{
	loader_detach_process(session->loader, target->tgid);
	target_forget_files(target);
	target->unlinked = false;
}

void follow_renew(struct session *session, struct target *target, bool renamed)
{
	int err = renamed ? target_renew(target) : target_locate(target);

	if (!err)
		return;
	session->incomplete = true;
	log_warn("process %d (%s): its name and its root directory may be others by now: %s",
		 (int)target->tgid, target->comm, strerror(-err));
}

int follow_look(struct session *session, struct target *target)
{
	int err;

	target->dirty = false;
	/* Its parent is probed there. */
	if (target->borrows)
		return 0;
	target->looked_ns = clock_ns(CLOCK_MONOTONIC);
	if (target->unlinked)
		unlink_probes(session, target);
	if (target->renamed || target->ended_images)
		follow_renew(session, target, target->renamed);
	target->renamed = false;
	err = follow_catch_up(session, target);
	if (!err)
		log_debug("process %d: mappings read after %u changes of its libraries",
			  (int)target->tgid, target->state.libraries);
	session->incomplete |= err && err != -ESRCH;
	return err;
}

void follow_tidy(struct session *session, struct target *target)
{
	if (target->ended_images)
		loader_forget_images(session->loader, target->tgid, target->epoch);
	target->ended_images = false;
	/* Of everybody's, few files turn out to be wanted. */
	if (!session->everybody)
		target_prepare_symbols(target, session->symbolizer);
}

void follow_look_well(struct session *session, struct target *target)
{
	if (!follow_look(session, target))
		follow_tidy(session, target);
}

int64_t follow_pause_left_ns(const struct target *target)
{
	return target->looked_ns + LOOK_PAUSE_NS - clock_ns(CLOCK_MONOTONIC);
}
