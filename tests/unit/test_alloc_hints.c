// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc_hints: what --probe and --alloc-lib accept and what they mean.
 */
#include "alloc_hints.h"

#include "check.h"
#include "log.h"

#include <errno.h>
#include <unistd.h>

/* With stderr closed to people. */
static int add(struct alloc_hints *hints, int (*fn)(struct alloc_hints *, const char *),
	       const char *text)
{
	int saved = dup(STDERR_FILENO), err;
	FILE *quiet = freopen("/dev/null", "w", stderr);

	err = fn(hints, text);
	if (quiet)
		dup2(saved, STDERR_FILENO);
	close(saved);
	return err;
}

TEST(a_symbol_and_an_offset)
{
	struct alloc_hints hints = {};

	CHECK_EQ(add(&hints, alloc_hints_add_probe, "malloc=/opt/a b,c:get"), 0);
	CHECK_EQ(add(&hints, alloc_hints_add_probe, "free=/opt/x=1:2:0x1a40"), 0);
	CHECK_EQ(hints.cnt, 2);
	CHECK_EQ(hints.hints[0].fn, HB_FN_MALLOC);
	CHECK_STR(hints.hints[0].path, "/opt/a b,c");
	CHECK_STR(hints.hints[0].place, "get");
	CHECK(!hints.hints[0].is_offset);
	CHECK_STR(hints.hints[0].text, "--probe malloc=/opt/a b,c:get");
	CHECK_EQ(hints.hints[1].fn, HB_FN_FREE);
	CHECK_STR(hints.hints[1].path, "/opt/x=1:2");
	CHECK(hints.hints[1].is_offset);
	CHECK_EQ(hints.hints[1].off, 0x1a40);
	CHECK(hints.frees && !hints.only_libs);
	alloc_hints_clear(&hints);
	CHECK_EQ(hints.cnt, 0);
}

TEST(a_path_without_a_slash_is_in_the_working_directory)
{
	struct alloc_hints hints = {};
	char *here = getcwd(NULL, 0);
	size_t len;

	CHECK(here);
	len = strlen(here);
	CHECK_EQ(add(&hints, alloc_hints_add_lib, "./liba.so"), 0);
	CHECK(!strncmp(hints.hints[0].path, here, len));
	CHECK_STR(hints.hints[0].path + len, "/./liba.so");
	CHECK(!hints.hints[0].place);
	CHECK(hints.only_libs && !hints.frees);
	alloc_hints_clear(&hints);
	free(here);
}

TEST(every_function_has_a_name)
{
	static const char *const given[] = {
		"malloc",	 "calloc", "realloc", "reallocarray", "posix_memalign", "memalign",
		"aligned_alloc", "valloc", "pvalloc", "new",	      "free",
	};
	struct alloc_hints hints = {};
	char text[64];

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		snprintf(text, sizeof(text), "%s=/a:b", given[i]);
		CHECK_EQ(add(&hints, alloc_hints_add_probe, text), 0);
	}
	CHECK_EQ(hints.hints[6].fn, HB_FN_MEMALIGN);
	CHECK_EQ(hints.hints[9].fn, HB_FN_NEW);
	alloc_hints_clear(&hints);
}

TEST(mistakes)
{
	static const char *const wrong[] = {
		"",
		"malloc",
		"malloc=/a",
		"malloc=:b",
		"malloc=/a:",
		"=/a:b",
		"mallocs=/a:b",
		"mall=/a:b",
		"/a:b=malloc",
		"malloc=/a:0x",
		"malloc=/a:0x12g",
		"malloc=/a:0x1ffffffff",
		"malloc:/a=b",
		"_dl_debug_state=/a:b",
	};
	struct alloc_hints hints = {};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_EQ(add(&hints, alloc_hints_add_probe, wrong[i]), -EINVAL);
	CHECK_EQ(add(&hints, alloc_hints_add_lib, ""), -EINVAL);
	CHECK_EQ(hints.cnt, 0);
	alloc_hints_clear(&hints);
}

TEST(there_is_an_end)
{
	struct alloc_hints hints = {};

	for (int i = 0; i < ALLOC_HINTS_MAX; i++)
		CHECK_EQ(add(&hints, alloc_hints_add_lib, "/a"), 0);
	CHECK_EQ(add(&hints, alloc_hints_add_lib, "/a"), -EINVAL);
	CHECK_EQ(hints.cnt, ALLOC_HINTS_MAX);
	alloc_hints_clear(&hints);
}
