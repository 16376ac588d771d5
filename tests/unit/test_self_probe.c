// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions that heapbpf tries and times probes on: where they lie, and that none of them is
 * another one.
 */
#include "check.h"
#include "self_probe.h"
#include "uprobe_link.h"

#include <fcntl.h>
#include <unistd.h>

TEST(points_are_the_first_instructions)
{
	static const char *const code[SELF_PROBE_CNT] = {
		[SELF_PROBE_EMULATED] = "\x55",	       /* push %rbp */
		[SELF_PROBE_STEPPED] = "\x48\x89\xf8", /* mov %rdi,%rax */
		[SELF_PROBE_TRIAL] = "\x55",
	};
	int fd = open("/proc/self/exe", O_RDONLY);

	for (int which = 0; which < SELF_PROBE_CNT; which++) {
		struct uprobe_link_point point;
		char bytes[4] = "";

		CHECK_EQ(self_probe_point(which, &point), 0);
		CHECK_EQ(pread(fd, bytes, strlen(code[which]), (off_t)point.off),
			 strlen(code[which]));
		CHECK_STR(bytes, code[which]);
	}
	close(fd);
}

/* A trial's probe may still be there while the others are timed. */
TEST(trials_are_not_timed)
{
	struct uprobe_link_point trial, timed;

	CHECK_EQ(self_probe_point(SELF_PROBE_TRIAL, &trial), 0);
	for (int which = 0; which < SELF_PROBE_TIMED_CNT; which++) {
		CHECK_EQ(self_probe_point(which, &timed), 0);
		CHECK(timed.off != trial.off);
		CHECK(self_probe_time_ns(which) > 0);
	}
}
