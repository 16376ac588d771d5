// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: processes. Out: probes on every allocator that one of them maps, for all that map it. What a
 * process costs is a look at its list of mappings; a file is opened when it is met for the first
 * time.
 */
#include "everybody.h"

#include "cleanup.h"
#include "clock.h"
#include "elf_cache.h"
#include "log.h"
#include "probes.h"
#include "procmaps.h"
#include "selection.h"
#include "session.h"
#include "shortage.h"
#include "vec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Out of memory: the item stays out (hh.tbl NULL) instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A program that lives so long has mapped its libraries; one that does not is not worth a look. */
#define LOOK_AFTER_NS 50000000

/* Processes that wait for their look; while there are more, later ones get none. */
#define SEEN_MAX 4096

/* A file as /proc/PID/maps tells it. */
struct file_id {
	uint64_t inode;
	uint32_t dev_major, dev_minor;
};
_Static_assert(sizeof(struct file_id) == 16, "hashed as bytes");

struct known_file {
	UT_hash_handle hh;
	struct file_id id;
};

/* Who executed something, and when the look is due. */
struct seen {
	pid_t tgid;
	int64_t due_ns; /* monotonic */
};

struct everybody {
	struct session *session;
	struct known_file *files; /* owned; that were looked at */
	struct seen *seen;	  /* owned; in the order of their times */
	size_t seen_cnt, seen_cap;
	bool overrun; /* there were too many, and that was said */
};

DEFINE_CLEANUP(everybody, struct everybody, everybody_free)

void everybody_free(struct everybody *everybody)
{
	struct known_file *file, *next;

	if (!everybody)
		return;
	HASH_ITER(hh, everybody->files, file, next)
	{
		HASH_DEL(everybody->files, file);
		free(file);
	}
	free(everybody->seen);
	free(everybody);
}

static struct file_id id_of(const struct procmap *map)
{
	return (struct file_id){map->inode, map->dev_major, map->dev_minor};
}

static bool is_known(const struct everybody *everybody, const struct procmap *map)
{
	const struct file_id id = id_of(map);
	struct known_file *file;

	HASH_FIND(hh, everybody->files, &id, sizeof(id), file);
	return file;
}

/* Out of memory: it will be looked at again, each time. */
static void remember(struct everybody *everybody, const struct procmap *map)
{
	struct known_file *file = calloc(1, sizeof(*file));

	if (!file)
		return;
	file->id = id_of(map);
	HASH_ADD(hh, everybody->files, id, sizeof(file->id), file);
	if (!file->hh.tbl)
		free(file);
}

/* Probes what is new among the files of a process. 0, or -errno of a shortage of ours. */
static int look_at(struct everybody *everybody, pid_t tgid)
{
	struct procmaps maps _cleanup_(procmaps_clear) = {};
	struct session *session = everybody->session;
	bool any = false;

	/* It is gone, or has no memory, or is not ours to read: those are counted if they join. */
	if (procmaps_read(tgid, &maps))
		return 0;
	for (size_t i = 0; i < maps.cnt; i++) {
		struct procmap *map = &maps.maps[i];
		int err;

		if (!map->exec || !map->inode || is_known(everybody, map))
			continue;
		err = elf_cache_get(session->cache, tgid, map, &map->elf);
		if (shortage_is(err))
			return err;
		/* What cannot be opened, since the process ends for one, is another's as well. */
		if (!err || err == -ENOEXEC)
			remember(everybody, map);
		any |= !err;
	}
	if (any && probes_attach_everywhere(&session->probes, tgid, &maps, session->loader))
		session->incomplete = true;
	return 0;
}

static int look_at_one(pid_t tgid, void *everybody)
{
	int err = tgid == getpid() ? 0 : look_at(everybody, tgid);

	return err ? log_fail(-err, "cannot look into process %d", (int)tgid) : 0;
}

int everybody_open(struct session *session, struct everybody **out)
{
	struct everybody *everybody _cleanup_(cleanup_everybody) = calloc(1, sizeof(*everybody));
	int err;

	if (!everybody)
		return log_fail(ENOMEM, "cannot start");
	everybody->session = session;
	err = selection_each(&(struct selection){}, look_at_one, everybody);
	if (err)
		return err;
	*out = take_ptr(everybody);
	return 0;
}

void everybody_seen(struct everybody *everybody, pid_t tgid)
{
	if (everybody->seen_cnt >= SEEN_MAX ||
	    vec_reserve(&everybody->seen, &everybody->seen_cap, everybody->seen_cnt + 1)) {
		if (!everybody->overrun)
			log_warn(
				"programs start faster than heapbpf can look into them; allocators "
				"that only they bring along are not seen");
		everybody->overrun = everybody->session->incomplete = true;
		return;
	}
	everybody->seen[everybody->seen_cnt++] =
		(struct seen){tgid, clock_ns(CLOCK_MONOTONIC) + LOOK_AFTER_NS};
}

int everybody_wait_ms(const struct everybody *everybody)
{
	int64_t left_ns;

	if (!everybody->seen_cnt)
		return -1;
	left_ns = everybody->seen[0].due_ns - clock_ns(CLOCK_MONOTONIC);
	return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

void everybody_look(struct everybody *everybody)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t done = 0;

	while (done < everybody->seen_cnt && everybody->seen[done].due_ns <= now)
		if (look_at(everybody, everybody->seen[done++].tgid))
			everybody->session->incomplete = true;
	everybody->seen_cnt -= done;
	if (done)
		memmove(everybody->seen, everybody->seen + done,
			everybody->seen_cnt * sizeof(*everybody->seen));
}
