// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: who a process is, addresses. Out: what its map calls them.
 *
 * Maps grow as long as the process lives, and only the last line about an address counts. So the
 * file is read from its end, each address is settled by the first line met, and nothing else is
 * kept, however large the file is. Settled addresses are skipped over, all at once: no line costs
 * more than what it names.
 *
 * The process wrote it, and anybody may write to /tmp: nothing in it, nor the file, is trusted.
 */
#include "perf_map.h"

#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "shortage.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BLOCK_BYTES 65536

/* No function is larger. */
#define FUNCTION_BYTES_MAX (1ULL << 28)

/* The clocks of files and of processes are not read at one moment, and tick. */
#define TICK_NS 10000000

/* ---- the file ---- */

/* Was the file written before `moment_ns` of CLOCK_BOOTTIME, by at least `margin_ns`? */
static bool is_older(const struct stat *st, int64_t moment_ns, int64_t margin_ns)
{
	int64_t written_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
	int64_t file_age_ns = clock_ns(CLOCK_REALTIME) - written_ns;

	return file_age_ns > clock_ns(CLOCK_BOOTTIME) - moment_ns + margin_ns;
}

/* Why the file is not to be used; NULL: it is. */
static const char *fault_of(const struct stat *st, const struct perf_map_owner *owner)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid && st->st_uid != owner->uid)
		return "it belongs to another user";
	/* Processes come to the number of one that ended and left its map behind. */
	if (is_older(st, owner->begun_ns, TICK_NS))
		return "it is older than the program";
	if (owner->ended_ns && !is_older(st, owner->ended_ns, -TICK_NS))
		return "it was written after the process ended";
	return NULL;
}

static int refuse(const struct perf_map_owner *owner, const char *why)
{
	log_warn("process %d (%s): /tmp/perf-%d.map is not used: %s", (int)owner->tgid, owner->comm,
		 (int)owner->inner_tgid, why);
	return -ENOENT;
}

int perf_map_open(const struct perf_map_owner *owner)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT};
	_cleanup_close_ int path_fd = -1;
	const char *fault;
	char path[64];
	struct stat st;
	int fd;

	if (owner->root_fd < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)owner->inner_tgid);
	path_fd = syscall(SYS_openat2, owner->root_fd, path, &how, sizeof(how));
	if (path_fd < 0 && (errno == ENOENT || shortage_is(-errno)))
		return -errno;
	if (path_fd < 0 || fstat(path_fd, &st))
		return refuse(owner, strerror(errno));
	fault = fault_of(&st, owner);
	if (fault)
		return refuse(owner, fault);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return shortage_is(-errno) ? -errno : refuse(owner, strerror(errno));
	return fd;
}

/* ---- lines, the last one first ---- */

/* What has been read of the file and not been taken; in the file it lies before what was taken. */
struct reader {
	int fd;
	int64_t first, at; /* the file is read from `at` down to `first` */
	size_t len;
	bool overlong; /* the line that begins before `at` is too long */
	char bytes[BLOCK_BYTES + PERF_MAP_LINE_MAX];
};

/* A piece of what was read, not terminated; text NULL: too long to be a line. */
struct line {
	const char *text;
	size_t len;
};

static int reader_new(int fd, struct reader **out)
{
	struct reader *reader;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->fd = fd;
	reader->at = st.st_size;
	if (st.st_size > PERF_MAP_BYTES_MAX)
		reader->first = st.st_size - PERF_MAP_BYTES_MAX;
	*out = reader;
	return 0;
}

/* Reads the block before `at` to before what is left of the last one. 0 or -errno. */
static int read_block(struct reader *reader)
{
	int64_t left = reader->at - reader->first;
	size_t len = left < BLOCK_BYTES ? left : BLOCK_BYTES, got = 0;

	if (reader->len > PERF_MAP_LINE_MAX) {
		reader->overlong = true;
		reader->len = 0;
	}
	memmove(reader->bytes + len, reader->bytes, reader->len);
	while (got < len) {
		ssize_t n = pread(reader->fd, reader->bytes + got, len - got,
				  reader->at - (int64_t)(len - got));

		if (n < 0)
			return -errno;
		/* It shrank: what was there last is gone. */
		if (!n)
			return -ENODATA;
		got += n;
	}
	reader->at -= len;
	reader->len += len;
	return 0;
}

/* Takes the last line, without its newline: 1 and *line, 0 at the beginning of the file, -errno. */
static int take_line(struct reader *reader, struct line *line)
{
	const char *newline;
	int err;

	while (!(newline = memrchr(reader->bytes, '\n', reader->len)) &&
	       reader->at > reader->first) {
		err = read_block(reader);
		if (err)
			return err;
	}
	/* What the limit cut into is no line. */
	if (!newline && (!reader->len || reader->first))
		return 0;
	line->text = newline ? newline + 1 : reader->bytes;
	line->len = reader->bytes + reader->len - line->text;
	if (reader->overlong || line->len > PERF_MAP_LINE_MAX)
		line->text = NULL;
	reader->overlong = false;
	reader->len = newline ? newline - reader->bytes : 0;
	return 1;
}

/* ---- what a line says ---- */

struct entry {
	uint64_t start, end;
	struct line name;
};

/* Takes a number and the blanks after it off the front of `line`; false if there is none. */
static bool take_number(struct line *line, uint64_t *number)
{
	const char *at = line->text, *end = at + line->len, *digits;

	/* Java's have that. */
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*number = 0;
	for (digits = at; at < end && isxdigit((unsigned char)*at); at++) {
		if (*number >> 60)
			return false;
		*number = *number << 4 |
			  (isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	}
	if (at == digits || at == end || *at != ' ')
		return false;
	while (at < end && *at == ' ')
		at++;
	*line = (struct line){at, end - at};
	return true;
}

static bool parse(struct line line, struct entry *entry)
{
	uint64_t size;

	if (!line.text || memchr(line.text, '\0', line.len))
		return false;
	if (!take_number(&line, &entry->start) || !take_number(&line, &size) || !line.len)
		return false;
	entry->name = line;
	return size <= FUNCTION_BYTES_MAX &&
	       !__builtin_add_overflow(entry->start, size, &entry->end);
}

/* ---- which codes it names ---- */

struct codes {
	struct perf_map_code *all; /* ascending */
	size_t cnt, left;	   /* left: without a name */
	/* Of each code, one at or behind it that may have no name; cnt: there is none */
	size_t *next;
};

/* The first code at or behind `i` that has no name. What is passed by leads there from now on. */
static size_t nameless(struct codes *codes, size_t i)
{
	size_t end = i;

	while (codes->next[end] != end)
		end = codes->next[end];
	while (codes->next[i] != end) {
		size_t passed = i;

		i = codes->next[i];
		codes->next[passed] = end;
	}
	return end;
}

/* The first code at or behind `pc`. */
static size_t first_at(const struct codes *codes, uint64_t pc)
{
	size_t low = 0, high = codes->cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (codes->all[middle].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Names what lies in the entry and has no name yet. 0 or -ENOMEM. */
static int apply(struct codes *codes, const struct entry *entry)
{
	size_t i = nameless(codes, first_at(codes, entry->start));

	for (; i < codes->cnt && codes->all[i].pc < entry->end; i = nameless(codes, i)) {
		codes->all[i].name = strndup(entry->name.text, entry->name.len);
		if (!codes->all[i].name)
			return -ENOMEM;
		codes->next[i] = i + 1;
		codes->left--;
	}
	return 0;
}

int perf_map_read(int fd, struct perf_map_code *all, size_t cnt, size_t *malformed)
{
	_cleanup_free_ size_t *next = calloc(cnt + 1, sizeof(*next));
	_cleanup_free_ struct reader *reader = NULL;
	struct codes codes = {.all = all, .cnt = cnt, .left = cnt, .next = next};
	struct entry entry;
	struct line line = {0};
	int err;

	*malformed = 0;
	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i <= cnt; i++)
		next[i] = i;
	err = reader_new(fd, &reader);
	if (err)
		return err;
	while (codes.left && (err = take_line(reader, &line)) > 0) {
		if (line.text && !line.len)
			continue;
		if (parse(line, &entry))
			err = apply(&codes, &entry);
		else
			*malformed += 1;
		if (err < 0)
			return err;
	}
	return err;
}

int perf_map_name(const struct perf_map_owner *owner, struct perf_map_code *codes, size_t cnt)
{
	_cleanup_close_ int fd = -1;
	size_t malformed;
	int err;

	if (!cnt)
		return 0;
	fd = perf_map_open(owner);
	if (fd < 0)
		return shortage_is(fd) ? fd : 0;
	err = perf_map_read(fd, codes, cnt, &malformed);
	if (shortage_is(err))
		return err;
	if (err)
		log_warn("process %d (%s): /tmp/perf-%d.map cannot be read to its end: %s",
			 (int)owner->tgid, owner->comm, (int)owner->inner_tgid, strerror(-err));
	if (malformed)
		log_warn("process %d (%s): %zu lines of /tmp/perf-%d.map make no sense and are "
			 "left out",
			 (int)owner->tgid, owner->comm, malformed, (int)owner->inner_tgid);
	return 0;
}
