// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the number of a process. Out: how large it is, as the kernel says in files of /proc.
 */
#include "memory.h"

#include "cleanup.h"
#include "profile.h"
#include "shortage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Of /proc/TGID/maps, where the heap is looked for: it follows the program. */
#define HEAP_LINES 64

static FILE *open_proc(pid_t tgid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tgid, name);
	return fopen(path, "re");
}

/*
 * Two sizes that a file of the process has a line for, like "Rss:   12 kB". False if there is none
 * for the first.
 */
static bool read_sizes(pid_t tgid, const char *name, const char *const keys[static 2],
		       uint64_t *const bytes[static 2])
{
	FILE *file _cleanup_file_ = open_proc(tgid, name);
	bool found = false;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		for (int i = 0; i < 2; i++) {
			size_t len = strlen(keys[i]);

			if (strncmp(line, keys[i], len))
				continue;
			*bytes[i] = strtoull(line + len, NULL, 10) * 1024;
			found |= !i;
		}
	}
	return found;
}

/*
 * The size of the mappings "[heap]", which are among the first; so the rest need not be made up. 0
 * or -errno.
 */
static int read_heap(pid_t tgid, uint64_t *bytes)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "maps");
	uint64_t start, end, sum = 0;
	char line[256];

	if (!file)
		return -errno;
	for (int i = 0; i < HEAP_LINES && fgets(line, sizeof(line), file); i++) {
		if (strstr(line, "[heap]\n") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			sum += end - start;
		else if (sum)
			break;
	}
	if (ferror(file))
		return -errno;
	*bytes = sum;
	return 0;
}

int memory_read(pid_t tgid, bool exact, struct profile_memory *out)
{
	static const char *const rollup[] = {"Rss:", "Anonymous:"};
	static const char *const status[] = {"VmRSS:", "RssAnon:"};
	uint64_t *const bytes[] = {&out->rss_bytes, &out->anonymous_bytes};
	int err;

	shortage_watch();
	if (!(exact && read_sizes(tgid, "smaps_rollup", rollup, bytes)) &&
	    !read_sizes(tgid, "status", status, bytes))
		return errno ? -errno : -ESRCH;
	err = read_heap(tgid, &out->heap_bytes);
	return err ? err : shortage_seen();
}
