// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: /proc/self/status. Out: names of what is missing.
 */
#include "privilege.h"

#include "cleanup.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Since 5.8; headers of that time may lack them. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif

/* The effective set; all of them if it cannot be read. */
static uint64_t effective(void)
{
	FILE *file _cleanup_file_ = fopen("/proc/self/status", "re");
	uint64_t set = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &set) == 1)
			break;
	return set;
}

static bool has(uint64_t set, int capability)
{
	return set >> capability & 1;
}

const char *privilege_missing(enum privilege privilege)
{
	uint64_t set = effective();
	bool bpf = has(set, CAP_BPF), perfmon = has(set, CAP_PERFMON);

	if (privilege == PRIVILEGE_PROCESS)
		return has(set, CAP_SYS_PTRACE) ? NULL : "CAP_SYS_PTRACE";
	if (privilege == PRIVILEGE_PERF_UPROBE)
		return has(set, CAP_SYS_ADMIN) ? NULL : "CAP_SYS_ADMIN";
	/* Kernels before 5.8 had it for both, and it still is. */
	if (has(set, CAP_SYS_ADMIN) || (bpf && perfmon))
		return NULL;
	if (!bpf && !perfmon)
		return "CAP_BPF and CAP_PERFMON";
	return bpf ? "CAP_PERFMON" : "CAP_BPF";
}
