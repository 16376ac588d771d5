// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a pid. Out: a handle that stays valid when the process ends: its name, its root directory,
 * all its mappings with their files open. Only reads /proc; never stops or writes the process.
 */
#include "target.h"

#include "cleanup.h"
#include "clock.h"
#include "elf_file.h"
#include "heap.h"
#include "log.h"
#include "memory.h"
#include "needed.h"
#include "privilege.h"
#include "remapped.h"
#include "shortage.h"
#include "symbolize.h"
#include "vec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

/* The name of a process that cannot be asked for it. */
#define COMM_UNKNOWN "unknown"

DEFINE_CLEANUP(target, struct target, target_free)

void target_free(struct target *target)
{
	if (!target)
		return;
	procmaps_clear(&target->maps);
	mappings_clear(&target->mappings);
	free(target->files);
	heap_free(target->heap);
	free(target->comm);
	cleanup_close(&target->pidfd);
	whereabouts_close(&target->whereabouts);
	free(target);
}

/* Opens /proc/TGID/<name> for reading; NULL with errno set. */
static FILE *open_proc(pid_t tgid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tgid, name);
	return fopen(path, "re");
}

/* Of a task, in /proc/PID/stat: PF_KTHREAD (include/linux/sched.h). */
#define IS_KERNEL_THREAD 0x00200000

/* The state letter and the flags of the process; false if they cannot be read. */
static bool read_state(pid_t tgid, char *state, unsigned *flags)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "stat");
	char text[1024] = "";
	const char *rest;

	/* The name may hold anything, but no byte after it is a bracket. */
	if (!file || !fread(text, 1, sizeof(text) - 1, file))
		return false;
	rest = strrchr(text, ')');
	return rest && sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

bool target_is_stopped(pid_t tgid)
{
	unsigned flags;
	char state;

	return !read_state(tgid, &state, &flags) || state == 'T' || state == 't';
}

/* What a process without mappings is. */
static int errno_without_maps(pid_t tgid)
{
	unsigned flags = 0;
	char state = 0;

	if (!read_state(tgid, &state, &flags))
		return -ESRCH;
	if (flags & IS_KERNEL_THREAD)
		return -ENXIO;
	/* In the middle of its end its memory is gone, too. */
	return state == 'Z' ? -ECHILD : -ESRCH;
}

static int open_pidfd(pid_t tgid)
{
	int fd = syscall(SYS_pidfd_open, tgid, 0);
	int err = errno;
	char path[64];

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d", (int)tgid);
	/* Of a thread newer kernels say that it does not exist; of one that is no more, too. */
	if (err == ENOENT)
		return access(path, F_OK) ? -ESRCH : -EINVAL;
	return -err;
}

int target_explain(pid_t tgid, int err)
{
	const char *missing = privilege_missing(PRIVILEGE_PROCESS);

	switch (-err) {
	case ESRCH:
		return log_fail(0, "no process %d; see ps or pgrep", (int)tgid);
	case EINVAL:
		return log_fail(0, "%d is a thread; give the process id (Tgid in /proc/%d/status)",
				(int)tgid, (int)tgid);
	case ECHILD:
		return log_fail(0,
				"process %d is a zombie, or its main thread has ended: nothing "
				"can be profiled",
				(int)tgid);
	case ENXIO:
		return log_fail(0,
				"process %d is a kernel thread: it has no user memory to profile",
				(int)tgid);
	case EACCES:
	case EPERM:
		return log_fail(-err, "cannot read the mappings of process %d%s%s; run as root",
				(int)tgid, missing ? " without " : "", missing ? missing : "");
	default:
		return log_fail(-err, "cannot open process %d", (int)tgid);
	}
}

bool target_is_gone(const struct target *target)
{
	struct pollfd fd = {.fd = target->pidfd, .events = POLLIN};

	return target->pidfd < 0 || poll(&fd, 1, 0) > 0;
}

/* A copy: the process chose it, and it goes to terminals. */
static char *tame_comm(const char *comm)
{
	char *tame = strdup(comm[0] ? comm : COMM_UNKNOWN);

	for (char *c = tame; c && *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return tame;
}

/* 0 and *out, to be freed, or -errno, then it may be NULL. One that has ended is COMM_UNKNOWN. */
static int read_comm(pid_t tgid, char **out)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "comm");
	char comm[64] = "";

	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = 0;
	if (!comm[0] && (!file || ferror(file)) && errno != ENOENT && errno != ESRCH)
		return -errno;
	*out = tame_comm(comm);
	return *out ? 0 : -ENOMEM;
}

int target_name(struct target *target, const char *comm)
{
	char *tame = tame_comm(comm);

	if (!tame)
		return -ENOMEM;
	free(target->comm);
	target->comm = tame;
	return 0;
}

int target_locate(struct target *target)
{
	struct whereabouts now;
	int err = whereabouts_read(target->tgid, &now);

	if (err)
		return shortage_is(err) ? err : 0;
	/* The number may be another one's by now. */
	if (target_is_gone(target)) {
		whereabouts_close(&now);
		return 0;
	}
	whereabouts_close(&target->whereabouts);
	target->whereabouts = now;
	return 0;
}

int target_renew(struct target *target)
{
	char *comm = NULL;
	int err = read_comm(target->tgid, &comm);

	if (err)
		return err;
	/* One that ended meanwhile keeps the name that it had. */
	if (!target->comm || strcmp(comm, COMM_UNKNOWN) != 0) {
		free(target->comm);
		target->comm = comm;
	} else {
		free(comm);
	}
	return target_locate(target);
}

void target_begin(struct target *target)
{
	target->begun_ns = clock_ns(CLOCK_BOOTTIME);
}

void target_end(struct target *target)
{
	target->exited = true;
	target->ended_ns = clock_ns(CLOCK_BOOTTIME);
}

/* Without a process behind it. */
static struct target *target_new(pid_t tgid)
{
	struct target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	target->tgid = tgid;
	target->pidfd = -1;
	target->whereabouts = WHEREABOUTS_NONE;
	target->heap = heap_new();
	if (target->heap)
		return target;
	free(target);
	return NULL;
}

int target_open(pid_t tgid, struct target **out)
{
	struct target *target _cleanup_(cleanup_target) = target_new(tgid);
	struct procmaps maps = {};
	int err;

	if (!target)
		return -ENOMEM;
	target->begun_ns = whereabouts_begin_ns(tgid);
	target->pidfd = open_pidfd(tgid);
	if (target->pidfd < 0)
		return target->pidfd;
	err = procmaps_read(tgid, &maps);
	procmaps_clear(&maps);
	if (err == -ESRCH)
		err = errno_without_maps(tgid);
	if (!err)
		err = target_renew(target);
	if (err)
		return err;
	target->opened_ns = clock_ns(CLOCK_MONOTONIC);
	target->opened_cpu_ns = target_cpu_ns(target);
	target->cpu_ns = 0;
	*out = take_ptr(target);
	return 0;
}

struct target *target_of_ended(pid_t tgid, const char *comm)
{
	struct target *target _cleanup_(cleanup_target) = target_new(tgid);

	if (!target)
		return NULL;
	target->exited = target->dropped = true;
	target->comm = tame_comm(comm);
	return target->comm ? take_ptr(target) : NULL;
}

/*
 * The file that the last snapshot has at the same place, if nothing can have changed there since;
 * saves opening it again.
 */
static struct elf_file *known_file(const struct target *target, const struct procmap *map,
				   struct mappings_state state)
{
	const struct procmap *old = procmaps_find(&target->maps, map->start);

	if (!old || state.epoch != target->state.epoch ||
	    (state.libraries != target->state.libraries && !old->permanent))
		return NULL;
	if (old->start != map->start || old->end != map->end || old->off != map->off ||
	    old->inode != map->inode || strcmp(old->path, map->path))
		return NULL;
	return old->elf;
}

/* 0, or -errno of a shortage of ours; what cannot be had of the process is no error. */
static int attach_files(struct target *target, struct elf_cache *cache, struct mappings_state state,
			struct procmaps *now)
{
	for (size_t i = 0; i < now->cnt; i++) {
		struct procmap *map = &now->maps[i];
		int err;

		if (!map->exec || (!map->inode && strcmp(map->path, "[vdso]")))
			continue;
		map->elf = known_file(target, map, state);
		if (map->elf)
			continue;
		err = elf_cache_get(cache, target->tgid, map, &map->elf);
		if (shortage_is(err))
			return err;
		if (err == -EACCES || err == -EPERM)
			target->unreadable = -err;
		if (err)
			log_debug("process %d: %s: cannot read the mapped file: %s",
				  (int)target->tgid, map->path, strerror(-err));
	}
	return 0;
}

/* Marks what stays mapped. The program's path is that of the mappings: the kernel writes both. */
static int mark_permanent(const struct target *target, struct procmaps *now)
{
	char path[64], exe[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->tgid);
	len = readlink(path, exe, sizeof(exe) - 1);
	if (len < 0)
		return 0;
	exe[len] = '\0';
	return needed_mark(now, exe);
}

int target_scan(struct target *target, struct elf_cache *cache, struct mappings_state state)
{
	struct procmaps now = {};
	int err = procmaps_read(target->tgid, &now);

	if (err)
		return err;
	if (target_is_gone(target)) {
		procmaps_clear(&now);
		return -ESRCH;
	}
	err = attach_files(target, cache, state, &now);
	if (!err)
		err = remapped_restore(&now, target->tgid, cache);
	if (!err)
		err = mark_permanent(target, &now);
	if (err) {
		procmaps_clear(&now);
		return err;
	}
	procmaps_clear(&target->maps);
	target->maps = now;
	target->state = state;
	return 0;
}

int target_number(struct target *target, struct mappings_state state)
{
	bool proven =
		state.epoch == target->state.epoch && state.libraries == target->state.libraries;

	return mappings_note(&target->mappings, proven ? &state : NULL, &target->maps);
}

const struct target_file *target_file_find(const struct target *target, const struct elf_file *elf)
{
	for (size_t i = 0; i < target->file_cnt; i++)
		if (target->files[i].elf == elf)
			return &target->files[i];
	return NULL;
}

int target_file_add(struct target *target, const struct elf_file *elf, bool has_allocator)
{
	int err = vec_reserve(&target->files, &target->file_cap, target->file_cnt + 1);

	if (!err)
		target->files[target->file_cnt++] = (struct target_file){elf, has_allocator};
	return err;
}

void target_forget_files(struct target *target)
{
	target->file_cnt = 0;
}

bool target_has_allocator(const struct target *target)
{
	const struct procmaps *maps = &target->maps;

	for (size_t i = 0; i < maps->cnt; i++) {
		const struct target_file *file = target_file_find(target, maps->maps[i].elf);

		if (file && file->has_allocator)
			return true;
	}
	return false;
}

void target_prepare_symbols(const struct target *target, struct symbolizer *symbolizer)
{
	const struct procmaps *maps = &target->maps;

	for (size_t i = 0; i < maps->cnt; i++)
		if (maps->maps[i].elf)
			symbolizer_prepare(symbolizer, maps->maps[i].elf,
					   target->whereabouts.root_fd);
}

void target_note_cpu(struct target *target, uint64_t used_ns)
{
	target->cpu_ns = fmax(target->cpu_ns, (double)used_ns - target->opened_cpu_ns);
}

double target_cpu_ns(struct target *target)
{
	int64_t used_ns = target->exited ? -1 : clock_process_ns(target->tgid);

	/* The number may be another's by now. */
	if (used_ns >= 0 && !target_is_gone(target))
		target_note_cpu(target, (uint64_t)used_ns);
	return target->cpu_ns;
}

void target_read_memory(struct target *target, int64_t elapsed_ns, bool exact)
{
	struct profile_memory memory = {.read_ns = elapsed_ns};
	int err;

	/* Its number may be another's. */
	if (target->exited)
		return;
	err = memory_read(target->tgid, exact, &memory);
	if (exact && err && err != -ESRCH && err != -ENOENT)
		log_warn("process %d (%s): how large it is cannot be read: %s", (int)target->tgid,
			 target->comm, strerror(-err));
	if (memory.rss_bytes && !target_is_gone(target))
		target->memory = memory;
}
