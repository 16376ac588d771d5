// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Puts return probes into a process, as another tool would: the addresses that these functions
 * return to are no longer on the stack.
 *   retprobe PID FILE OFFSET...    offsets in the file, hexadecimal
 * Says READY when they are in place, and ends when told to.
 */
#include "truth.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

/* The kernel's number for events of this kind; 0: it has none. */
static unsigned uprobe_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	unsigned type = 0;

	if (file && fscanf(file, "%u", &type) != 1)
		type = 0;
	if (file)
		fclose(file);
	return type;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = uprobe_type()};

	if (argc < 4 || !attr.type)
		return 1;
	/* Bit 0: at the return (/sys/bus/event_source/devices/uprobe/format/retprobe). */
	attr.config = 1;
	attr.uprobe_path = (uintptr_t)argv[2];
	for (int i = 3; i < argc; i++) {
		attr.probe_offset = strtoull(argv[i], NULL, 16);
		if (syscall(SYS_perf_event_open, &attr, atoi(argv[1]), -1, -1, 0) < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	await("READY");
	return 0;
}
