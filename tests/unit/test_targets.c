// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which process a number means, and how their ends are noted.
 */
#include "targets.h"

#include "check.h"
#include "target.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that does nothing, as a target whose first image is `epoch`; NULL on failure. */
static struct target *add_child(struct targets *targets, uint32_t epoch)
{
	struct target *target = NULL;
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	if (child < 0 || target_open(child, &target))
		return NULL;
	target->first_epoch = target->epoch = epoch;
	return targets_add(targets, target) ? NULL : target;
}

static void end_child(const struct target *target)
{
	kill(target->tgid, SIGKILL);
	waitpid(target->tgid, NULL, 0);
}

TEST(ends_are_told_by_one_descriptor)
{
	struct targets targets;
	struct target *first, *second;

	CHECK_EQ(targets_init(&targets), 0);
	first = add_child(&targets, 1);
	second = add_child(&targets, 2);
	CHECK(first && second);
	CHECK_EQ(targets.alive_cnt, 2);
	CHECK_EQ(poll(&(struct pollfd){.fd = targets.ends_fd, .events = POLLIN}, 1, 0), 0);
	end_child(first);
	CHECK_EQ(poll(&(struct pollfd){.fd = targets.ends_fd, .events = POLLIN}, 1, 10000), 1);
	targets_note_ends(&targets);
	CHECK(first->exited && !second->exited);
	CHECK_EQ(targets.alive_cnt, 1);
	CHECK_EQ(poll(&(struct pollfd){.fd = targets.ends_fd, .events = POLLIN}, 1, 0), 0);
	/* Its end may be told again. */
	targets_end(&targets, first);
	CHECK_EQ(targets.alive_cnt, 1);
	CHECK(targets_find(&targets, second->tgid) == second);
	end_child(second);
	targets_clear(&targets);
	CHECK(!targets.cnt && !targets.all);
}

/* The same number for one process after the other. */
TEST(an_image_has_one_owner)
{
	struct targets targets;
	struct target *first, *second;

	CHECK_EQ(targets_init(&targets), 0);
	first = target_of_ended(12345, "first");
	second = target_of_ended(12345, "second");
	CHECK(first && second);
	first->first_epoch = 3;
	first->epoch = 5;
	CHECK_EQ(targets_add(&targets, first), 0);
	second->first_epoch = second->epoch = 9;
	CHECK_EQ(targets_add(&targets, second), 0);
	CHECK_EQ(targets.alive_cnt, 0);
	CHECK(targets_find(&targets, 12345) == second);
	CHECK(!targets_find(&targets, 12346));
	CHECK(!targets_find_image(&targets, 12345, 2));
	CHECK(targets_find_image(&targets, 12345, 3) == first);
	CHECK(targets_find_image(&targets, 12345, 5) == first);
	/* Somebody had the number in between who was not recorded. */
	CHECK(!targets_find_image(&targets, 12345, 7));
	CHECK(targets_find_image(&targets, 12345, 9) == second);
	CHECK(!targets_find_image(&targets, 12345, 10));
	targets_clear(&targets);
}
