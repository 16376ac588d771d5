// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: processes. Out: which one a number means, and one descriptor for the ends of all. The kernel
 * gives numbers out again, so a number alone means the newest; with an image it means its owner.
 */
#include "targets.h"

#include "cleanup.h"
#include "target.h"
#include "vec.h"

#include <errno.h>
#include <sys/epoll.h>

/* Out of memory: the item stays out (hh.tbl NULL) instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Ends that are asked for at once. */
#define ENDS 64

struct targets_number {
	UT_hash_handle hh;
	pid_t tgid;
	struct target *newest; /* the older ones hang on it */
};

int targets_init(struct targets *targets)
{
	*targets = (struct targets){.ends_fd = epoll_create1(EPOLL_CLOEXEC)};
	return targets->ends_fd < 0 ? -errno : 0;
}

void targets_clear(struct targets *targets)
{
	struct targets_number *number, *next;

	HASH_ITER(hh, targets->numbers, number, next)
	{
		HASH_DEL(targets->numbers, number);
		free(number);
	}
	for (size_t i = 0; i < targets->cnt; i++)
		target_free(targets->all[i]);
	free(targets->all);
	if (targets->ends_fd > 0)
		close(targets->ends_fd);
	*targets = (struct targets){};
}

static struct targets_number *find_number(const struct targets *targets, pid_t tgid)
{
	struct targets_number *number;

	HASH_FIND(hh, targets->numbers, &tgid, sizeof(tgid), number);
	return number;
}

/* The entry of a number, made if new; NULL if out of memory. */
static struct targets_number *number_of(struct targets *targets, pid_t tgid)
{
	struct targets_number *number = find_number(targets, tgid);

	if (number)
		return number;
	number = calloc(1, sizeof(*number));
	if (!number)
		return NULL;
	number->tgid = tgid;
	HASH_ADD(hh, targets->numbers, tgid, sizeof(number->tgid), number);
	if (number->hh.tbl)
		return number;
	free(number);
	return NULL;
}

int targets_add(struct targets *targets, struct target *target)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = target};
	struct targets_number *number;

	if (vec_reserve(&targets->all, &targets->cap, targets->cnt + 1))
		return -ENOMEM;
	number = number_of(targets, target->tgid);
	if (!number)
		return -ENOMEM;
	if (!target->exited && epoll_ctl(targets->ends_fd, EPOLL_CTL_ADD, target->pidfd, &event))
		return -errno;
	target->older = number->newest;
	number->newest = target;
	targets->all[targets->cnt++] = target;
	targets->alive_cnt += !target->exited;
	return 0;
}

struct target *targets_find(const struct targets *targets, pid_t tgid)
{
	const struct targets_number *number = find_number(targets, tgid);

	return number ? number->newest : NULL;
}

struct target *targets_find_image(const struct targets *targets, pid_t tgid, uint32_t epoch)
{
	struct target *target = targets_find(targets, tgid);

	while (target && target->first_epoch > epoch)
		target = target->older;
	/* Who had the number after its end was not recorded. */
	return target && target->exited && target->epoch < epoch ? NULL : target;
}

void targets_end(struct targets *targets, struct target *target)
{
	if (target->exited)
		return;
	target_end(target);
	targets->alive_cnt--;
	/* A descriptor for each that ever was would run out. */
	epoll_ctl(targets->ends_fd, EPOLL_CTL_DEL, target->pidfd, NULL);
	close(take_fd(&target->pidfd));
}

void targets_note_ends(struct targets *targets)
{
	struct epoll_event ends[ENDS];
	int cnt;

	do {
		cnt = epoll_wait(targets->ends_fd, ends, ENDS, 0);
		for (int i = 0; i < cnt; i++)
			targets_end(targets, ends[i].data.ptr);
	} while (cnt == ENDS || (cnt < 0 && errno == EINTR));
}
