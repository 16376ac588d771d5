// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: places in a file and the programs for them. Out: links that keep them attached until freed.
 * Must not know what the probes mean. All links of a process die with us, so the kernel takes the
 * breakpoints out even after SIGKILL.
 *
 * But not those that it was just putting in or taking out: with a deadly signal pending it does not
 * get at the memory of another process, gives up on the way, and leaves the breakpoints that are
 * there for ever ("failed to unregister, leaking uprobe"). Only in a process that already ends is
 * there no such signal. So links come and go in a process apart, which nobody kills.
 */
#include "uprobe_link.h"

#include "apart.h"
#include "cleanup.h"
#include "vec.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/syscall.h>

/* enum bpf_attach_type of newer uapi headers than the distribution's. */
#define ATTACH_TRACE_UPROBE_MULTI   48
#define ATTACH_TRACE_UPROBE_SESSION 57

#define CLEAR_AT_ONCE 16

/* One attached thing: a raw link descriptor, or libbpf's object for a perf event. */
struct entry {
	pid_t tgid;
	int fd; /* -1: see link */
	struct bpf_link *link;
};

struct uprobe_links {
	struct entry *entries;
	size_t cnt, cap;
};

/* The part of union bpf_attr that BPF_LINK_CREATE reads for uprobe_multi (uapi of 6.6). */
struct link_create_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
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

int uprobe_link_create(int prog_fd, uint32_t attach_type, const char *path, const uint64_t *offs,
		       const uint64_t *cookies, uint32_t cnt, uint32_t flags, pid_t tgid)
{
	struct link_create_attr attr = {
		.prog_fd = prog_fd,
		.attach_type = attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offs,
		.cookies = (uintptr_t)cookies,
		.cnt = cnt,
		.multi_flags = flags,
		.pid = tgid,
	};
	/* The kernel takes the attribute only up to the last field it knows. */
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, offsetof(struct link_create_attr, pad));

	return fd < 0 ? -errno : fd;
}

struct uprobe_links *uprobe_links_new(void)
{
	return calloc(1, sizeof(struct uprobe_links));
}

static void detach(const struct entry *entry)
{
	if (entry->fd >= 0)
		close(entry->fd);
	bpf_link__destroy(entry->link);
}

/* Detaches everything beyond the first `cnt` entries. */
static void links_cut(struct uprobe_links *links, size_t cnt)
{
	while (links->cnt > cnt)
		detach(&links->entries[--links->cnt]);
}

/* Takes over fd and link, also on failure. */
static int links_push(struct uprobe_links *links, pid_t tgid, int fd, struct bpf_link *link)
{
	struct entry entry = {.tgid = tgid, .fd = fd, .link = link};
	int err = vec_reserve(&links->entries, &links->cap, links->cnt + 1);

	if (err) {
		detach(&entry);
		return err;
	}
	links->entries[links->cnt++] = entry;
	return 0;
}

/* One multi or session link over the points, or over those that want a return probe. */
static int add_multi(struct uprobe_links *links, const struct bpf_program *prog,
		     uint32_t attach_type, pid_t tgid, const char *path,
		     const struct uprobe_link_point *points, size_t cnt, bool returns)
{
	_cleanup_free_ uint64_t *offs = calloc(cnt, sizeof(*offs));
	_cleanup_free_ uint64_t *cookies = calloc(cnt, sizeof(*cookies));
	uint32_t used = 0;
	int fd;

	if (!offs || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (returns && !points[i].returns)
			continue;
		offs[used] = points[i].off;
		cookies[used++] = points[i].cookie;
	}
	if (!used)
		return 0;
	fd = uprobe_link_create(bpf_program__fd(prog), attach_type, path, offs, cookies, used,
				returns ? UPROBE_LINK_F_RETURN : 0, tgid);
	return fd < 0 ? fd : links_push(links, tgid, fd, NULL);
}

/* One perf event per point. */
static int add_perf(struct uprobe_links *links, const struct bpf_program *prog, pid_t tgid,
		    const char *path, const struct uprobe_link_point *points, size_t cnt,
		    bool returns)
{
	for (size_t i = 0; i < cnt; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = points[i].cookie,
			    .retprobe = returns);
		struct bpf_link *link;
		int err;

		if (returns && !points[i].returns)
			continue;
		link = bpf_program__attach_uprobe_opts(prog, tgid, path, points[i].off, &opts);
		if (!link)
			return -errno;
		err = links_push(links, tgid, -1, link);
		if (err)
			return err;
	}
	return 0;
}

static int add_side(struct uprobe_links *links, enum uprobe_link_tier tier,
		    const struct bpf_program *prog, pid_t tgid, const char *path,
		    const struct uprobe_link_point *points, size_t cnt, bool returns)
{
	if (!prog)
		return 0;
	if (tier == UPROBE_LINK_PERF)
		return add_perf(links, prog, tgid, path, points, cnt, returns);
	return add_multi(links, prog, uprobe_link_attach_type(tier), tgid, path, points, cnt,
			 returns);
}

/* The arguments of uprobe_links_add(). */
struct addition {
	struct uprobe_links *links;
	enum uprobe_link_tier tier;
	const struct uprobe_link_progs *progs;
	pid_t tgid;
	const char *path;
	const struct uprobe_link_point *points;
	size_t cnt;
};

static int add(void *data)
{
	const struct addition *a = data;
	size_t before = a->links->cnt;
	int err;

	/* Returns first: an entry without its return would leave calls in flight. */
	err = add_side(a->links, a->tier, a->progs->returns, a->tgid, a->path, a->points, a->cnt,
		       true);
	if (!err)
		err = add_side(a->links, a->tier, a->progs->entry, a->tgid, a->path, a->points,
			       a->cnt, false);
	if (err)
		links_cut(a->links, before);
	return err;
}

int uprobe_links_add(struct uprobe_links *links, enum uprobe_link_tier tier,
		     const struct uprobe_link_progs *progs, pid_t tgid, const char *path,
		     const struct uprobe_link_point *points, size_t cnt)
{
	struct addition addition = {links, tier, progs, tgid, path, points, cnt};

	return apart_call(add, &addition);
}

static int cut_entry(void *entry)
{
	detach(entry);
	return 0;
}

static void *cut_entry_apart(void *entry)
{
	apart_call(cut_entry, entry);
	return NULL;
}

void uprobe_links_drop(struct uprobe_links *links, pid_t tgid)
{
	size_t kept = 0;

	for (size_t i = 0; i < links->cnt; i++) {
		if (links->entries[i].tgid == tgid)
			cut_entry_apart(&links->entries[i]);
		else
			links->entries[kept++] = links->entries[i];
	}
	links->cnt = kept;
}

/* Some at once: nearly all of it is waiting for grace periods, and one of those ends many waits. */
void uprobe_links_clear(struct uprobe_links *links)
{
	while (links->cnt) {
		pthread_t threads[CLEAR_AT_ONCE - 1];
		size_t started = 0;

		while (links->cnt > 1 && started < ARRAY_CNT(threads) &&
		       !pthread_create(&threads[started], NULL, cut_entry_apart,
				       &links->entries[links->cnt - 1])) {
			links->cnt--;
			started++;
		}
		cut_entry_apart(&links->entries[--links->cnt]);
		while (started)
			pthread_join(threads[--started], NULL);
	}
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
