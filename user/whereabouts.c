// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the number of a process. Out: its root directory, what is mounted there, its ids. Only reads
 * /proc. A mount namespace ends with the last process in it, unless somebody holds it; a root
 * directory that is open then shows what lay below the mounts.
 */
#include "whereabouts.h"

#include "cleanup.h"
#include "shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static int open_proc(pid_t tgid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tgid, name);
	return open(path, flags | O_CLOEXEC);
}

/* Is it our mount namespace? */
static bool is_ours(int mounts_fd)
{
	struct stat ours, its;

	return !fstat(mounts_fd, &its) && !stat("/proc/self/ns/mnt", &ours) &&
	       its.st_ino == ours.st_ino;
}

/* The last number in a line: namespaces go inwards. */
static pid_t last_number(const char *line)
{
	const char *last = strrchr(line, '\t');

	return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

/* Reads the ids from proc_pid_status(5). 0, -ESRCH or -errno of a shortage. */
static int read_ids(pid_t tgid, struct whereabouts *out)
{
	_cleanup_close_ int fd = open_proc(tgid, "status", O_RDONLY);
	_cleanup_file_ FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_free_ char *line = NULL;
	int shortage = file ? 0 : -errno;
	bool found = false;
	size_t size = 0;

	if (file)
		take_fd(&fd);
	out->inner_tgid = tgid;
	/* That of groups may be long. */
	shortage_watch();
	while (file && getline(&line, &size, file) > 0) {
		if (!strncmp(line, "NSpid:", 6))
			out->inner_tgid = last_number(line);
		found |= sscanf(line, "Uid: %*u %u", &out->uid) == 1;
	}
	if (file)
		shortage = shortage_seen();
	if (shortage_is(shortage))
		return shortage;
	return found ? 0 : -ESRCH;
}

/* Opens both, as far as they can be had. 0 or -errno of a shortage. */
static int open_places(pid_t tgid, struct whereabouts *out)
{
	out->root_fd = open_proc(tgid, "root", O_PATH | O_DIRECTORY);
	if (out->root_fd < 0 && shortage_is(-errno))
		return -errno;
	out->mounts_fd = open_proc(tgid, "ns/mnt", O_RDONLY);
	if (out->mounts_fd < 0 && shortage_is(-errno))
		return -errno;
	/* Ours stays. */
	if (out->mounts_fd >= 0 && is_ours(out->mounts_fd))
		close(take_fd(&out->mounts_fd));
	return 0;
}

int whereabouts_read(pid_t tgid, struct whereabouts *out)
{
	struct whereabouts whereabouts = WHEREABOUTS_NONE;
	int err = read_ids(tgid, &whereabouts);

	if (!err)
		err = open_places(tgid, &whereabouts);
	if (err) {
		whereabouts_close(&whereabouts);
		return err;
	}
	*out = whereabouts;
	return 0;
}

void whereabouts_close(struct whereabouts *whereabouts)
{
	cleanup_close(&whereabouts->root_fd);
	cleanup_close(&whereabouts->mounts_fd);
	*whereabouts = WHEREABOUTS_NONE;
}

int64_t whereabouts_begin_ns(pid_t tgid)
{
	_cleanup_close_ int fd = open_proc(tgid, "stat", O_RDONLY);
	char text[1024] = "", *at = NULL;

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		at = strrchr(text, ')');
	/* Field 22 of proc_pid_stat(5); the second one, a name of any bytes, ends here. */
	for (int field = 3; at && field <= 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) * (1000000000 / sysconf(_SC_CLK_TCK)) : 0;
}
