// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: places in files of processes. Out: links while they are wanted. To take a probe out, the
 * kernel waits for grace periods, tens of milliseconds each; only the end of a run needs to see
 * that.
 */
#include "attachments.h"

#include "../bpf/abi.h"
#include "cleanup.h"
#include "vec.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* The points of a file in a process. */
struct attachment {
	pid_t tgid;
	char path[64];
	struct uprobe_link_point *points; /* owned; those that are switched */
	size_t cnt;
};

struct attachments {
	enum uprobe_link_tier tier;
	struct uprobe_link_progs progs;
	struct attachment *all; /* owned */
	size_t cnt, cap;
	struct uprobe_links *hooks;   /* that stay */
	struct uprobe_links *links;   /* NULL: off */
	struct uprobe_links *dropped; /* of processes that are forgotten */
	attachments_fn *chooses;      /* NULL: all are probed */
	void *data;		      /* of `chooses` */
	pthread_t leaving;	      /* frees the links that were there before */
	bool is_leaving;
};

struct attachments *attachments_new(enum uprobe_link_tier tier,
				    const struct uprobe_link_progs *progs)
{
	struct attachments *attachments = calloc(1, sizeof(*attachments));

	if (!attachments)
		return NULL;
	attachments->tier = tier;
	attachments->progs = *progs;
	attachments->hooks = uprobe_links_new();
	attachments->dropped = uprobe_links_new();
	if (attachments->hooks && attachments->dropped)
		return attachments;
	attachments_free(attachments);
	return NULL;
}

static void wait_for_leaving(struct attachments *attachments)
{
	if (attachments->is_leaving)
		pthread_join(attachments->leaving, NULL);
	attachments->is_leaving = false;
}

static void *leave(void *links)
{
	uprobe_links_free(links);
	return NULL;
}

/* Frees `links` on the thread, which must not be at work. */
static void start_leaving(struct attachments *attachments, struct uprobe_links *links)
{
	attachments->is_leaving = !pthread_create(&attachments->leaving, NULL, leave, links);
	if (!attachments->is_leaving)
		uprobe_links_free(links);
}

void attachments_off(struct attachments *attachments)
{
	struct uprobe_links *links = take_ptr(attachments->links);

	if (!links)
		return;
	uprobe_links_move(attachments->dropped, links);
	/* One at a time: were the kernel slower than we, links would pile up. */
	wait_for_leaving(attachments);
	start_leaving(attachments, links);
}

void attachments_sweep(struct attachments *attachments)
{
	struct uprobe_links *links;

	if (uprobe_links_are_none(attachments->dropped) ||
	    (attachments->is_leaving && pthread_tryjoin_np(attachments->leaving, NULL)))
		return;
	attachments->is_leaving = false;
	links = uprobe_links_new();
	if (!links)
		return;
	uprobe_links_move(attachments->dropped, links);
	start_leaving(attachments, links);
}

void attachments_end(struct attachments *attachments, struct uprobe_links *more)
{
	attachments_off(attachments);
	uprobe_links_move(attachments->dropped, attachments->hooks);
	uprobe_links_move(more, attachments->hooks);
	uprobe_links_clear(attachments->hooks);
	wait_for_leaving(attachments);
}

void attachments_free(struct attachments *attachments)
{
	if (!attachments)
		return;
	attachments_off(attachments);
	uprobe_links_free(attachments->hooks);
	uprobe_links_free(attachments->dropped);
	wait_for_leaving(attachments);
	for (size_t i = 0; i < attachments->cnt; i++)
		free(attachments->all[i].points);
	free(attachments->all);
	free(attachments);
}

static int put_in(struct attachments *attachments, struct uprobe_links *links,
		  const struct attachment *at)
{
	if (!at->cnt)
		return 0;
	return uprobe_links_add(links, attachments->tier, &attachments->progs, at->tgid, at->path,
				at->points, at->cnt);
}

void attachments_choose(struct attachments *attachments, attachments_fn *fn, void *data)
{
	attachments->chooses = fn;
	attachments->data = data;
}

static bool is_chosen(const struct attachments *attachments, const struct attachment *at)
{
	return !attachments->chooses || attachments->chooses(at->tgid, attachments->data);
}

int attachments_on(struct attachments *attachments)
{
	struct uprobe_links *links;
	int err = 0;

	if (attachments->links)
		return 0;
	links = uprobe_links_new();
	if (!links)
		return -ENOMEM;
	for (size_t i = 0; i < attachments->cnt && !err; i++)
		if (is_chosen(attachments, &attachments->all[i]))
			err = put_in(attachments, links, &attachments->all[i]);
	if (err) {
		uprobe_links_free(links);
		return err;
	}
	attachments->links = links;
	return 0;
}

/* Parts the points into hooks, which come first, and the rest. */
static size_t part_points(const struct uprobe_link_point *points, size_t cnt,
			  struct uprobe_link_point *out)
{
	size_t hooks = 0, used = 0;

	for (int wanted = 1; wanted >= 0; wanted--) {
		for (size_t i = 0; i < cnt; i++)
			if ((HB_COOKIE_FN(points[i].cookie) == HB_FN_LINKER) == wanted)
				out[used++] = points[i];
		if (wanted)
			hooks = used;
	}
	return hooks;
}

int attachments_add(struct attachments *attachments, pid_t tgid, const char *path,
		    const struct uprobe_link_point *points, size_t cnt)
{
	_cleanup_free_ struct uprobe_link_point *parted = calloc(cnt + 1, sizeof(*parted));
	struct attachment at = {.tgid = tgid, .points = parted};
	struct attachment hooks;
	int err;

	if (!parted || vec_reserve(&attachments->all, &attachments->cap, attachments->cnt + 1))
		return -ENOMEM;
	if (strlen(path) >= sizeof(at.path))
		return -ENAMETOOLONG;
	memcpy(at.path, path, strlen(path) + 1);
	hooks = at;
	hooks.cnt = part_points(points, cnt, parted);
	err = put_in(attachments, attachments->hooks, &hooks);
	if (err)
		return err;
	at.cnt = cnt - hooks.cnt;
	memmove(parted, parted + hooks.cnt, at.cnt * sizeof(*parted));
	if (attachments->links && is_chosen(attachments, &at))
		err = put_in(attachments, attachments->links, &at);
	if (err)
		return err;
	attachments->all[attachments->cnt++] = at;
	take_ptr(parted);
	return 0;
}

void attachments_drop(struct attachments *attachments, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < attachments->cnt; i++) {
		if (attachments->all[i].tgid == tgid)
			free(attachments->all[i].points);
		else
			attachments->all[kept++] = attachments->all[i];
	}
	attachments->cnt = kept;
	uprobe_links_move_of(attachments->hooks, tgid, attachments->dropped);
	if (attachments->links)
		uprobe_links_move_of(attachments->links, tgid, attachments->dropped);
}
