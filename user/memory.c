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

/* The size of the mappings "[heap]", which are among the first; so the rest need not be made up. */
static uint64_t read_heap_bytes(pid_t tgid)
{
	FILE *file _cleanup_file_ = open_proc(tgid, "maps");
	uint64_t start, end, bytes = 0;
	char line[256];

	for (int i = 0; file && i < HEAP_LINES && fgets(line, sizeof(line), file); i++) {
		if (strstr(line, "[heap]\n") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			bytes += end - start;
		else if (bytes)
			break;
	}
	return bytes;
}

int memory_read(pid_t tgid, bool exact, struct profile_memory *out)
{
	static const char *const rollup[] = {"Rss:", "Anonymous:"};
	static const char *const status[] = {"VmRSS:", "RssAnon:"};
	uint64_t *const bytes[] = {&out->rss_bytes, &out->anonymous_bytes};

	shortage_watch();
	if ((exact && read_sizes(tgid, "smaps_rollup", rollup, bytes)) ||
	    read_sizes(tgid, "status", status, bytes))
		out->heap_bytes = read_heap_bytes(tgid);
	return shortage_seen();
}
