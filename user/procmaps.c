// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the text of /proc/PID/maps. Out: sorted mappings, and descriptors of the files behind them.
 *
 * The kernel (fs/proc/task_mmu.c, show_map_vma) writes "start-end perms off major:minor inode",
 * pads with spaces, then the path, in which a newline alone is escaped, as \012. Lines only go
 * up in address, whatever the process does meanwhile (Documentation/filesystems/proc.rst).
 * Must not know what is in the files.
 */
#include "procmaps.h"

#include "cleanup.h"
#include "vec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static const char deleted_suffix[] = " (deleted)";

/* The unread rest of a line or file. */
struct cursor {
	const char *at, *end;
};

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* A number of at least one digit in `base`; false, without a word about *out, if there is none. */
static bool take_number(struct cursor *in, unsigned base, uint64_t *out)
{
	const char *first = in->at;
	uint64_t value = 0;

	for (; in->at < in->end; in->at++) {
		int digit = digit_value(*in->at);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*out = value;
	return in->at > first;
}

static bool take_char(struct cursor *in, char c)
{
	if (in->at == in->end || *in->at != c)
		return false;
	in->at++;
	return true;
}

/* "rwxp", of which only x matters here. */
static bool take_perms(struct cursor *in, bool *exec)
{
	if (in->end - in->at < 4)
		return false;
	*exec = in->at[2] == 'x';
	in->at += 4;
	return true;
}

/* Copies a path with \012 turned back into a newline; NULL if out of memory. */
static char *unescape(const char *from, size_t len)
{
	char *path = malloc(len + 1);
	size_t cnt = 0;

	if (!path)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(from + i, "\\012", 4)) {
			path[cnt++] = '\n';
			i += 3;
		} else {
			path[cnt++] = from[i];
		}
	}
	path[cnt] = '\0';
	return path;
}

static bool cut_suffix(char *path)
{
	size_t len = strlen(path), suffix_len = sizeof(deleted_suffix) - 1;

	if (len <= suffix_len || strcmp(path + len - suffix_len, deleted_suffix))
		return false;
	path[len - suffix_len] = '\0';
	return true;
}

/* One line without its newline. 0, -EBADMSG, -ENOMEM. */
static int parse_line(struct cursor in, struct procmap *out)
{
	struct procmap map = {};
	uint64_t major, minor;

	if (!take_number(&in, 16, &map.start) || !take_char(&in, '-') ||
	    !take_number(&in, 16, &map.end) || !take_char(&in, ' ') ||
	    !take_perms(&in, &map.exec) || !take_char(&in, ' ') ||
	    !take_number(&in, 16, &map.off) || !take_char(&in, ' ') ||
	    !take_number(&in, 16, &major) || !take_char(&in, ':') ||
	    !take_number(&in, 16, &minor) || !take_char(&in, ' ') ||
	    !take_number(&in, 10, &map.inode))
		return -EBADMSG;
	if (map.start >= map.end || (in.at < in.end && *in.at != ' '))
		return -EBADMSG;
	map.dev_major = (uint32_t)major;
	map.dev_minor = (uint32_t)minor;
	while (take_char(&in, ' '))
		;
	map.path = unescape(in.at, (size_t)(in.end - in.at));
	if (!map.path)
		return -ENOMEM;
	/* Only the path of a file can carry the suffix; "[anon:x (deleted)]" is just a name. */
	map.deleted = map.path[0] == '/' && cut_suffix(map.path);
	*out = map;
	return 0;
}

DEFINE_CLEANUP(maps, struct procmaps, procmaps_clear)

/*
 * The kernel writes the file in pieces while the process maps and unmaps; a mapping that grew in
 * between comes again. What was read first stays, the last mapping keeps what is beyond it.
 */
static void settle_overlap(struct procmaps *maps)
{
	struct procmap *last = &maps->maps[maps->cnt - 1];
	uint64_t taken = last[-1].end;

	if (last->start >= taken)
		return;
	if (last->end <= taken) {
		free(last->path);
		maps->cnt--;
		return;
	}
	if (last->inode)
		last->off += taken - last->start;
	last->start = taken;
}

int procmaps_parse(const char *text, size_t len, struct procmaps *out)
{
	struct cursor rest = {text, text + len};
	struct procmaps maps = {};
	_cleanup_(cleanup_maps) struct procmaps *owned = &maps;
	size_t cap = 0;
	int ret;

	while (rest.at < rest.end) {
		const char *newline = memchr(rest.at, '\n', (size_t)(rest.end - rest.at));
		struct cursor line = {rest.at, newline ? newline : rest.end};

		ret = vec_reserve(&maps.maps, &cap, maps.cnt + 1);
		if (ret)
			return ret;
		ret = parse_line(line, &maps.maps[maps.cnt]);
		if (ret)
			return ret;
		maps.cnt++;
		if (maps.cnt > 1)
			settle_overlap(&maps);
		rest.at = newline ? newline + 1 : rest.end;
	}
	if (!maps.cnt)
		return -ESRCH;
	*out = *take_ptr(owned);
	return 0;
}

/* Reads a file of unknown size, as those in /proc are. 0, -errno. */
static int read_whole(int fd, char **out, size_t *len)
{
	_cleanup_free_ char *text = NULL;
	size_t cap = 0, cnt = 0;
	ssize_t got;
	int ret;

	do {
		ret = vec_reserve(&text, &cap, cnt + 16384);
		if (ret)
			return ret;
		got = read(fd, text + cnt, cap - cnt);
		if (got < 0 && errno != EINTR)
			return -errno;
		cnt += got > 0 ? (size_t)got : 0;
	} while (got);
	*out = take_ptr(text);
	*len = cnt;
	return 0;
}

/* Opens /proc/TGID/<rest> with `flags`. The descriptor or -errno. */
static int open_proc(pid_t tgid, const char *rest, int flags)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "/proc/%d/%s", (int)tgid, rest) < 0)
		return -ENOMEM;
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Whether the open file is the mapped one. The maps file shows the device of the superblock, which
 * on btrfs (one device per subvolume) and overlayfs (one per layer) is not what stat() reports;
 * there the inode decides alone. Overlayfs before 6.8 shows even the inode of the layer below;
 * `by_range` says that the file was reached through the mapping itself and needs no such proof.
 */
static bool is_mapped_file(int fd, const struct procmap *map, bool by_range)
{
	struct statfs fs;
	struct stat st;
	bool overlay, btrfs;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || fstatfs(fd, &fs))
		return false;
	overlay = fs.f_type == OVERLAYFS_SUPER_MAGIC;
	btrfs = fs.f_type == BTRFS_SUPER_MAGIC;
	if (st.st_ino != map->inode)
		return overlay && by_range;
	return overlay || btrfs ||
	       (major(st.st_dev) == map->dev_major && minor(st.st_dev) == map->dev_minor);
}

/*
 * An O_PATH descriptor of `path` below the root of the process, links resolved as the process
 * would (openat2(2), Linux 5.6). The descriptor or -errno.
 */
static int locate_by_path(pid_t tgid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	_cleanup_close_ int root = open_proc(tgid, "root", O_PATH | O_DIRECTORY);
	long fd;

	if (root < 0)
		return root;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* An O_PATH descriptor through map_files. The descriptor or -errno. */
static int locate_by_range(pid_t tgid, const struct procmap *map)
{
	_cleanup_free_ char *rest = NULL;

	if (asprintf(&rest, "map_files/%" PRIx64 "-%" PRIx64, map->start, map->end) < 0)
		return -ENOMEM;
	return open_proc(tgid, rest, O_PATH);
}

/* Turns an O_PATH descriptor into one for reading. The descriptor or -errno. */
static int reopen(int path_fd)
{
	_cleanup_free_ char *rest = NULL;

	if (asprintf(&rest, "fd/%d", path_fd) < 0)
		return -ENOMEM;
	return open_proc(getpid(), rest, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

int procmaps_open(pid_t tgid, const struct procmap *map)
{
	_cleanup_close_ int by_range = -1;
	_cleanup_close_ int by_path = -1;

	if (!map->inode || map->path[0] != '/')
		return -ENOENT;
	/* Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; gone if the process remapped the range. */
	by_range = locate_by_range(tgid, map);
	if (by_range >= 0 && is_mapped_file(by_range, map, true))
		return reopen(by_range);
	if (map->deleted)
		return by_range >= 0 ? -ENOENT : by_range;
	by_path = locate_by_path(tgid, map->path);
	if (by_path < 0)
		return by_path;
	return is_mapped_file(by_path, map, false) ? reopen(by_path) : -ENOENT;
}

/* Gives the suffix back to a file that really has such a name. 0 or -ENOMEM. */
static int settle_deleted(pid_t tgid, struct procmap *map)
{
	_cleanup_free_ char *full = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&full, "%s%s", map->path, deleted_suffix) < 0)
		return -ENOMEM;
	fd = locate_by_path(tgid, full);
	if (fd < 0 || !is_mapped_file(fd, map, false))
		return 0;
	free(map->path);
	map->path = take_ptr(full);
	map->deleted = false;
	return 0;
}

int procmaps_read(pid_t tgid, struct procmaps *out)
{
	_cleanup_close_ int fd = open_proc(tgid, "maps", O_RDONLY);
	_cleanup_free_ char *text = NULL;
	struct procmaps maps = {};
	_cleanup_(cleanup_maps) struct procmaps *owned = &maps;
	size_t len = 0;
	int ret;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	ret = read_whole(fd, &text, &len);
	if (ret)
		return ret;
	ret = procmaps_parse(text, len, &maps);
	if (ret)
		return ret;
	for (size_t i = 0; i < maps.cnt; i++) {
		ret = maps.maps[i].deleted ? settle_deleted(tgid, &maps.maps[i]) : 0;
		if (ret)
			return ret;
	}
	*out = *take_ptr(owned);
	return 0;
}

void procmaps_clear(struct procmaps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < maps->cnt; i++)
		free(maps->maps[i].path);
	free(maps->maps);
	*maps = (struct procmaps){};
}

const struct procmap *procmaps_find(const struct procmaps *maps, uint64_t pc)
{
	size_t low = 0, high = maps->cnt;

	/* Halves the range each turn: at most 64 turns. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (maps->maps[mid].end <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == maps->cnt || maps->maps[low].start > pc)
		return NULL;
	return &maps->maps[low];
}

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

bool procmap_is_made_at_run_time(const struct procmap *map)
{
	if (has_prefix(map->path, "[uprobes") || has_prefix(map->path, "[v"))
		return false;
	return !map->inode || has_prefix(map->path, "/memfd:") ||
	       has_prefix(map->path, "/dev/zero");
}

bool procmaps_is_at(pid_t tgid, const struct procmap *map, const char *path)
{
	_cleanup_close_ int fd = -1;

	if (!map->inode)
		return false;
	fd = locate_by_path(tgid, path);
	return fd >= 0 && is_mapped_file(fd, map, false);
}
