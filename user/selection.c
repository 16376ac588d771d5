// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: --comm, --cgroup, --user. Out: yes or no for a process, from /proc. A process that goes away
 * while it is looked at was not chosen.
 */
#include "selection.h"

#include "cleanup.h"
#include "log.h"
#include "quantity.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

/* Of /proc/PID/comm: 15 characters; of threads of the kernel more. */
#define COMM_MAX 64

/* Below it are mounts of control groups, or it is one; no path in /proc/PID/cgroup begins so. */
#define USUAL_MOUNT "/sys/fs/cgroup/"

static void close_dir(DIR *dir)
{
	if (dir)
		closedir(dir);
}

DEFINE_CLEANUP(dir, DIR, close_dir)

void selection_clear(struct selection *selection)
{
	if (selection->by_comm)
		regfree(&selection->comm);
	free(selection->cgroup);
	*selection = (struct selection){};
}

bool selection_is_set(const struct selection *selection)
{
	return selection->by_comm || selection->by_user || selection->cgroup;
}

int selection_set_comm(struct selection *selection, const char *text)
{
	char why[128];
	int err;

	/* An empty one would choose everything: rather a variable that is not set. */
	if (selection->by_comm || !*text)
		return log_fail(0, "--comm %s: give one, like 'nginx|php-fpm'", text);
	err = regcomp(&selection->comm, text, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &selection->comm, why, sizeof(why));
		return log_fail(0, "--comm %s: give an extended regular expression: %s", text, why);
	}
	selection->by_comm = true;
	return 0;
}

int selection_set_user(struct selection *selection, const char *text)
{
	FILE *users _cleanup_file_ = fopen("/etc/passwd", "re");
	const struct passwd *entry;
	const char *end;
	uint64_t number;

	if (selection->by_user)
		return log_fail(0, "--user %s: give one", text);
	selection->by_user = true;
	while (users && (entry = fgetpwent(users))) {
		if (strcmp(entry->pw_name, text) != 0)
			continue;
		selection->user = entry->pw_uid;
		return 0;
	}
	if (quantity_number(text, UINT32_MAX - 1, &number, &end) || *end)
		return log_fail(0, "--user %s: not in /etc/passwd; give a name of it, or a number",
				text);
	selection->user = (uid_t)number;
	return 0;
}

/* How many characters of `path` say where a cgroup file system is mounted; 0: it is in none. */
static size_t mounted_len(const char *path)
{
	FILE *mounts _cleanup_file_ = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;
	size_t best = 0;

	while (mounts && (entry = getmntent(mounts))) {
		size_t len = strlen(entry->mnt_dir);

		if (strncmp(entry->mnt_type, "cgroup", strlen("cgroup")) != 0 || len < best)
			continue;
		if (!strncmp(path, entry->mnt_dir, len) && (path[len] == '/' || !path[len]))
			best = len;
	}
	return best;
}

int selection_set_cgroup(struct selection *selection, const char *text)
{
	/* A group that is not there may come: that of a service is made anew when it starts. */
	_cleanup_free_ char *real = realpath(text, NULL);
	const char *whole = real ? real : text;
	size_t mounted = mounted_len(whole);
	const char *path = mounted ? whole + mounted : text;
	size_t len = strlen(path);
	struct stat st;

	while (len && path[len - 1] == '/')
		len--;
	if (selection->cgroup)
		return log_fail(0, "--cgroup %s: give one", text);
	if (text[0] != '/' || (mounted && real && (stat(real, &st) || !S_ISDIR(st.st_mode))))
		return log_fail(0,
				"--cgroup %s: give a directory below /sys/fs/cgroup, or a path as "
				"in /proc/PID/cgroup",
				text);
	if (!mounted && !strncmp(text, USUAL_MOUNT, strlen(USUAL_MOUNT)))
		return log_fail(0,
				"--cgroup %s: no cgroup file system is mounted there; give a "
				"directory below one (findmnt -t cgroup,cgroup2)",
				text);
	selection->cgroup = strndup(path, len);
	return selection->cgroup ? 0 : log_fail(ENOMEM, "--cgroup %s", text);
}

/* Opens /proc/TGID/<name>; NULL: the process is gone, or not ours to look at. */
static FILE *open_proc(pid_t tgid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tgid, name);
	return fopen(path, "re");
}

static bool fits_comm(const struct selection *selection, const char *comm)
{
	return !selection->by_comm || !regexec(&selection->comm, comm, 0, NULL, 0);
}

static bool has_comm(const struct selection *selection, pid_t tgid)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "comm");
	char comm[COMM_MAX] = "";

	if (!file || !fgets(comm, sizeof(comm), file))
		return false;
	comm[strcspn(comm, "\n")] = 0;
	return fits_comm(selection, comm);
}

static bool has_user(const struct selection *selection, pid_t tgid)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "status");
	unsigned real, effective;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			return effective == selection->user;
	return false;
}

/* A line is HIERARCHY:CONTROLLERS:PATH; any hierarchy will do. */
static bool has_cgroup(const struct selection *selection, pid_t tgid)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "cgroup");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, len = strlen(selection->cgroup);

	while (file && getline(&line, &cap, file) > 0) {
		const char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path || strncmp(++path, selection->cgroup, len) != 0)
			continue;
		if (path[len] == '/' || path[len] == '\n')
			return true;
	}
	return false;
}

bool selection_takes(const struct selection *selection, pid_t tgid)
{
	return (!selection->by_comm || has_comm(selection, tgid)) &&
	       (!selection->by_user || has_user(selection, tgid)) &&
	       selection_holds(selection, tgid);
}

bool selection_fits(const struct selection *selection, const char *comm, uid_t user)
{
	return fits_comm(selection, comm) && (!selection->by_user || user == selection->user);
}

bool selection_holds(const struct selection *selection, pid_t tgid)
{
	return !selection->cgroup || has_cgroup(selection, tgid);
}

int selection_each(const struct selection *selection, selection_fn *fn, void *data)
{
	DIR *proc _cleanup_(cleanup_dir) = opendir("/proc");
	const struct dirent *entry;
	int err = 0;

	if (!proc)
		return log_fail(errno, "cannot read /proc");
	while (!err && (entry = readdir(proc))) {
		uint64_t number;
		const char *end;

		if (quantity_number(entry->d_name, INT_MAX, &number, &end) || *end || !number ||
		    !selection_takes(selection, (pid_t)number))
			continue;
		err = fn((pid_t)number, data);
	}
	return err;
}
