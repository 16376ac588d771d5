// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: bytes that may be a perf map. Out: nothing, unless perf_map gives a name that no line can
 * have, a name depends on what else is asked for, or memory is misused.
 */
#include "perf_map.h"
#include "table_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Addresses that short numbers reach, some of them twice. */
static const uint64_t pcs[] = {0, 0x1, 0x10, 0x10, 0x1000, 0x10ff, 0xabcdef, ~0ULL, ~0ULL};

#define PC_CNT (sizeof(pcs) / sizeof(pcs[0]))

static void ask(int fd, struct perf_map_code *codes, size_t cnt, size_t len)
{
	size_t malformed;

	TABLE_CHECK(!perf_map_read(fd, codes, cnt, &malformed));
	TABLE_CHECK(malformed <= len);
	for (size_t i = 0; i < cnt; i++) {
		const char *name = codes[i].name;

		TABLE_CHECK(!name || (*name && strlen(name) <= len && !strchr(name, '\n')));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perf_map_code all[PC_CNT];
	int fd = memfd_create("map", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	for (size_t i = 0; i < PC_CNT; i++)
		all[i] = (struct perf_map_code){.pc = pcs[i]};
	ask(fd, all, PC_CNT, len);
	for (size_t i = 0; i < PC_CNT; i++) {
		struct perf_map_code one = {.pc = pcs[i]};

		ask(fd, &one, 1, len);
		TABLE_CHECK(!one.name == !all[i].name);
		TABLE_CHECK(!one.name || !strcmp(one.name, all[i].name));
		free(one.name);
		free(all[i].name);
	}
	close(fd);
	return 0;
}
