// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: places in a file and the programs for them. Out: links that keep them attached until freed.
 * Must not know what the probes mean. All links of a process die with us, so the kernel takes the
 * breakpoints out even after SIGKILL.
 *
 * But not those that it was just putting in or taking out: with a deadly signal pending it does not
 * get at the memory of another process, gives up on the way, and leaves the breakpoints that are
 * there for ever ("failed to unregister, leaking uprobe"). Only in a process that already ends is
 * there no such signal. So links come in a process apart, which nobody kills, and go at the end of
 * others, which nobody can. Of what they do only descriptors are left.
 */
#include "uprobe_link.h"

#include "apart.h"
#include "cleanup.h"
#include "uprobe_request.h"
#include "vec.h"

#include <bpf/libbpf.h>
#include <errno.h>

/* enum bpf_attach_type of newer uapi headers than the distribution's. */
#define ATTACH_TRACE_UPROBE_MULTI   48
#define ATTACH_TRACE_UPROBE_SESSION 57

/* One attached thing. */
struct entry {
	pid_t tgid;
	int fd;
};

struct uprobe_links {
	struct entry *entries;
	size_t cnt, cap;
};

const char *uprobe_link_tier_name(enum uprobe_link_tier tier)
{
	static const char *const names[UPROBE_LINK_TIER_CNT] = {"session", "multi", "perf"};

	return names[tier];
}

uint32_t uprobe_link_attach_type(enum uprobe_link_tier tier)
{
	static const uint32_t types[UPROBE_LINK_TIER_CNT] = {
		ATTACH_TRACE_UPROBE_SESSION,
		ATTACH_TRACE_UPROBE_MULTI,
		0,
	};

	return types[tier];
}

struct uprobe_links *uprobe_links_new(void)
{
	return calloc(1, sizeof(struct uprobe_links));
}

/* Detaches everything beyond the first `cnt` entries. */
static void links_cut(struct uprobe_links *links, size_t cnt)
{
	while (links->cnt > cnt) {
		int fds[APART_CLOSE_MAX];
		size_t some = 0;

		while (links->cnt > cnt && some < ARRAY_CNT(fds))
			fds[some++] = links->entries[--links->cnt].fd;
		apart_close(fds, some);
	}
}

/* The arguments of uprobe_links_add() that say what is wanted. */
struct wanted {
	enum uprobe_link_tier tier;
	struct uprobe_pmu pmu; /* of the perf tier */
	pid_t tgid;
	const char *path;
	const struct uprobe_link_point *points;
	size_t cnt;
};

/* All links of an addition, in one piece, for a process apart. */
struct requests {
	size_t cnt;
	struct uprobe_request all[];
};

/* A program and what it is attached to. */
struct side {
	const struct bpf_program *prog; /* NULL: nothing */
	enum uprobe_link_tier tier;
	bool at_return;
	bool returning, others; /* points that want a return probe; those that do not */
};

static bool covers(const struct side *side, const struct uprobe_link_point *point)
{
	return point->returns ? side->returning : side->others;
}

/* One multi or session link; `numbers` has room for two of each point, and must stay. */
static void want_multi(struct requests *requests, const struct wanted *wanted,
		       const struct side *side, uint64_t *numbers)
{
	uint64_t *offs = numbers, *cookies = numbers + wanted->cnt;
	uint32_t used = 0;

	for (size_t i = 0; i < wanted->cnt; i++) {
		if (!covers(side, &wanted->points[i]))
			continue;
		offs[used] = wanted->points[i].off;
		cookies[used++] = wanted->points[i].cookie;
	}
	if (used)
		requests->all[requests->cnt++] = uprobe_request_multi(
			bpf_program__fd(side->prog), uprobe_link_attach_type(side->tier),
			wanted->path, offs, cookies, used, side->at_return, wanted->tgid);
}

/* One perf event per point. */
static void want_perf(struct requests *requests, const struct wanted *wanted,
		      const struct side *side)
{
	for (size_t i = 0; i < wanted->cnt; i++)
		if (covers(side, &wanted->points[i]))
			requests->all[requests->cnt++] = uprobe_request_perf(
				&wanted->pmu, bpf_program__fd(side->prog), wanted->path,
				wanted->points[i].off, wanted->points[i].cookie, side->at_return,
				wanted->tgid);
}

static void want_side(struct requests *requests, const struct wanted *wanted,
		      const struct side *side, uint64_t *numbers)
{
	if (side->prog && side->tier == UPROBE_LINK_PERF)
		want_perf(requests, wanted, side);
	else if (side->prog)
		want_multi(requests, wanted, side, numbers);
}

static int make_all(void *data)
{
	struct requests *requests = data;

	for (size_t i = 0; i < requests->cnt; i++) {
		int err = uprobe_request_make(&requests->all[i]);

		if (err)
			return err;
	}
	return 0;
}

static void links_push(struct uprobe_links *links, pid_t tgid, int fd)
{
	if (fd >= 0)
		links->entries[links->cnt++] = (struct entry){.tgid = tgid, .fd = fd};
}

/* Makes the links in a process apart and keeps them, all or none. */
static int make_apart(struct uprobe_links *links, struct requests *requests, pid_t tgid)
{
	size_t before = links->cnt;
	int err = vec_reserve(&links->entries, &links->cap, before + 2 * requests->cnt);

	if (err || !requests->cnt)
		return err;
	err = apart_call(make_all, requests,
			 sizeof(*requests) + requests->cnt * sizeof(requests->all[0]));
	for (size_t i = 0; i < requests->cnt; i++) {
		links_push(links, tgid, requests->all[i].fd);
		/* Only one that was killed leaves this. */
		links_push(links, tgid, requests->all[i].event_fd);
	}
	if (err)
		links_cut(links, before);
	return err;
}

int uprobe_links_add(struct uprobe_links *links, enum uprobe_link_tier tier,
		     const struct uprobe_link_progs *progs, pid_t tgid, const char *path,
		     const struct uprobe_link_point *points, size_t cnt)
{
	struct wanted wanted = {
		.tier = tier, .tgid = tgid, .path = path, .points = points, .cnt = cnt};
	/*
	 * Returns first: an entry without its return would leave calls in flight. Then what wants
	 * none, like the ends of objects.
	 */
	const struct side sides[] = {
		{.prog = progs->returns, .tier = tier, .at_return = true, .returning = true},
		{.prog = progs->plain, .tier = UPROBE_LINK_MULTI, .others = true},
		{.prog = progs->entry, .tier = tier, .returning = true, .others = !progs->plain},
	};
	/* Of a link for each point and program at most, with two numbers for each. */
	_cleanup_free_ struct requests *requests =
		calloc(1, sizeof(*requests) + ARRAY_CNT(sides) * cnt * sizeof(requests->all[0]));
	_cleanup_free_ uint64_t *numbers = calloc(ARRAY_CNT(sides) * 2 * cnt, sizeof(*numbers));
	int err;

	if (!requests || !numbers)
		return -ENOMEM;
	err = tier == UPROBE_LINK_PERF ? uprobe_pmu_read(&wanted.pmu) : 0;
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_CNT(sides); i++)
		want_side(requests, &wanted, &sides[i], numbers + i * 2 * cnt);
	return make_apart(links, requests, tgid);
}

void uprobe_links_move_of(struct uprobe_links *from, pid_t tgid, struct uprobe_links *to)
{
	size_t kept = 0, moved;

	for (size_t i = 0; i < from->cnt; i++) {
		struct entry entry = from->entries[i];

		if (entry.tgid == tgid)
			continue;
		from->entries[i] = from->entries[kept];
		from->entries[kept++] = entry;
	}
	moved = from->cnt - kept;
	if (!vec_reserve(&to->entries, &to->cap, to->cnt + moved))
		while (from->cnt > kept)
			to->entries[to->cnt++] = from->entries[--from->cnt];
	links_cut(from, kept);
}

bool uprobe_links_are_none(const struct uprobe_links *links)
{
	return !links->cnt;
}

void uprobe_links_clear(struct uprobe_links *links)
{
	links_cut(links, 0);
}

void uprobe_links_move(struct uprobe_links *from, struct uprobe_links *to)
{
	if (!vec_reserve(&to->entries, &to->cap, to->cnt + from->cnt))
		while (from->cnt)
			to->entries[to->cnt++] = from->entries[--from->cnt];
	uprobe_links_clear(from);
}

void uprobe_links_free(struct uprobe_links *links)
{
	if (!links)
		return;
	uprobe_links_clear(links);
	free(links->entries);
	free(links);
}
