// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is contained may crash or leave; what it says and returns is kept, what it changes is not.
 */
#include "check.h"
#include "contain.h"

#include <signal.h>
#include <unistd.h>

static int changed;

static int change(void *data)
{
	changed = 1;
	return *(int *)data;
}

TEST(result_comes_back_and_changes_do_not)
{
	int want = CONTAIN_RESULT_MAX, got = -1;

	CHECK(contain_call(change, &want, &got));
	CHECK_EQ(got, want);
	want = 0;
	CHECK(contain_call(change, &want, &got));
	CHECK_EQ(got, 0);
	CHECK_EQ(changed, 0);
}

static int end_by(void *data)
{
	raise(*(int *)data);
	return 0;
}

static int leave(void *data)
{
	_exit(*(int *)data);
}

TEST(end_without_a_result_shows)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGUSR1};
	int got = -1;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		CHECK(!contain_call(end_by, (void *)&signals[i], &got));
	for (int status = 0; status < 3; status++)
		CHECK(!contain_call(leave, &status, &got));
	CHECK_EQ(got, -1);
}

static int say(void *data)
{
	fputs("inside ", data);
	return 0;
}

TEST(output_is_written_once)
{
	FILE *file = tmpfile();
	char text[64] = "";
	int got;

	CHECK(file);
	fputs("before ", file);
	CHECK(contain_call(say, file, &got));
	fputs("after", file);
	rewind(file);
	CHECK(fgets(text, sizeof(text), file));
	CHECK_STR(text, "before inside after");
	fclose(file);
}
