// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes chosen by what they are: this one.
 */
#include "selection.h"

#include "check.h"

#include <mntent.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

static int find_us(pid_t tgid, void *found)
{
	*(bool *)found |= tgid == getpid();
	return 0;
}

static bool takes(const struct selection *selection)
{
	bool found = false;

	return !selection_each(selection, find_us, &found) && found &&
	       selection_takes(selection, getpid());
}

TEST(everybody)
{
	struct selection any = {};

	CHECK(!selection_is_set(&any));
	CHECK(takes(&any));
}

TEST(by_name)
{
	struct selection selection = {};

	prctl(PR_SET_NAME, "select-me (1)");
	CHECK_EQ(selection_set_comm(&selection, "^select-(me|you)"), 0);
	CHECK(selection_is_set(&selection));
	CHECK(takes(&selection));
	CHECK(selection_set_comm(&selection, "other") < 0);
	prctl(PR_SET_NAME, "do-select-me");
	CHECK(!takes(&selection));
	selection_clear(&selection);
	CHECK(!selection_is_set(&selection));
	CHECK(selection_set_comm(&selection, "(") < 0);
	CHECK(!selection_is_set(&selection));
}

TEST(by_user)
{
	struct selection selection = {};
	char number[16];

	snprintf(number, sizeof(number), "%u", (unsigned)geteuid());
	CHECK_EQ(selection_set_user(&selection, number), 0);
	CHECK(takes(&selection));
	selection_clear(&selection);
	CHECK_EQ(selection_set_user(&selection, "daemon"), 0);
	CHECK_EQ(selection.user, 1);
	CHECK(geteuid() == 1 || !takes(&selection));
	selection_clear(&selection);
	CHECK(selection_set_user(&selection, "nobody has this name") < 0);
	selection_clear(&selection);
	CHECK(selection_set_user(&selection, "-1") < 0);
	selection_clear(&selection);
	CHECK(selection_set_user(&selection, "4294967295") < 0);
	selection_clear(&selection);
}

/* Where the first cgroup file system is mounted; empty: nowhere. */
static void first_mount(char *out, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;

	*out = '\0';
	while (mounts && !*out && (entry = getmntent(mounts)))
		if (!strncmp(entry->mnt_type, "cgroup", strlen("cgroup")))
			snprintf(out, size, "%s", entry->mnt_dir);
	if (mounts)
		endmntent(mounts);
}

TEST(control_group_of_later)
{
	struct selection selection = {};
	char mount[256], path[300];

	first_mount(mount, sizeof(mount));
	if (*mount) {
		snprintf(path, sizeof(path), "%s/no-such/group/", mount);
		CHECK_EQ(selection_set_cgroup(&selection, path), 0);
		CHECK(!strcmp(selection.cgroup, "/no-such/group"));
		selection_clear(&selection);
	}
	/* Where the file systems are mounted side by side, it is in none of them. */
	if (strcmp(mount, "/sys/fs/cgroup") != 0)
		CHECK(selection_set_cgroup(&selection, "/sys/fs/cgroup/no-such-one") < 0);
	selection_clear(&selection);
}

TEST(by_control_group)
{
	struct selection selection = {};

	/* All are below the root of some hierarchy. */
	CHECK_EQ(selection_set_cgroup(&selection, "/"), 0);
	CHECK(takes(&selection));
	CHECK(selection_set_cgroup(&selection, "/other") < 0);
	selection_clear(&selection);
	CHECK_EQ(selection_set_cgroup(&selection, "/no/such/group///"), 0);
	CHECK(!strcmp(selection.cgroup, "/no/such/group"));
	CHECK(!takes(&selection));
	selection_clear(&selection);
	CHECK(selection_set_cgroup(&selection, "relative") < 0);
	selection_clear(&selection);
}
