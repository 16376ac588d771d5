// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc_names: what names mean, with which prefixes, and which are no allocator's.
 */
#include "alloc_names.h"

#include "check.h"
#include "cleanup.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

TEST(names_and_prefixes)
{
	static const struct {
		const char *symbol;
		int fn; /* -1: none */
	} cases[] = {
		{"malloc", HB_FN_MALLOC},
		{"__libc_calloc", HB_FN_CALLOC},
		{"je_malloc", HB_FN_MALLOC},
		{"je_sdallocx", HB_FN_FREE},
		{"_rjem_realloc", HB_FN_REALLOC},
		{"_rjem_je_posix_memalign", HB_FN_POSIX_MEMALIGN},
		{"_rjem_mallocx", HB_FN_MALLOC},
		{"tc_new", HB_FN_NEW},
		{"tc_deletearray_sized_aligned", HB_FN_FREE},
		{"mi_zalloc", HB_FN_MALLOC},
		{"mi_recalloc", HB_FN_REALLOCARRAY},
		{"mi_new_n", HB_FN_NEW_N},
		{"_ZnamSt11align_val_tRKSt9nothrow_t", HB_FN_NEW},
		{"_ZdaPvm", HB_FN_FREE},
		{"_dl_debug_state", HB_FN_LINKER},
		/* only with a prefix, or only without */
		{"new", -1},
		{"zalloc", -1},
		{"delete", -1},
		{"mi__dl_debug_state", -1},
		{"mi___libc_calloc", -1},
		/* other things */
		{"mi_heap_malloc", -1},
		{"xallocx", -1},
		{"nallocx", -1},
		{"je_je_malloc", -1},
		{"my_malloc", -1},
		{"mallocs", -1},
		{"", -1},
		{"je_", -1},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++)
		CHECK_EQ(alloc_names_fn(cases[i].symbol), cases[i].fn);
}

TEST(plain_names_are_better_than_prefixed_ones)
{
	struct alloc_prefixes prefixes = {};
	struct alloc_name plain, known, own, fallback;

	CHECK_EQ(alloc_prefixes_add(&prefixes, "a_,my_"), 0);
	CHECK_EQ(prefixes.cnt, 2);
	CHECK(alloc_names_find("realloc", &prefixes, &plain));
	CHECK(alloc_names_find("mi_malloc", &prefixes, &known));
	CHECK(alloc_names_find("my_malloc", &prefixes, &own));
	CHECK(plain.rank < known.rank && known.rank < own.rank);
	CHECK(!plain.is_malloc && known.is_malloc && own.is_malloc && !own.is_free);
	CHECK(!plain.prefix && known.prefix && own.prefix && known.prefix != own.prefix);
	CHECK(alloc_names_find("__libc_realloc", NULL, &fallback));
	CHECK_EQ(fallback.rank, plain.rank);
	CHECK(fallback.fallback && !plain.fallback);
	CHECK(!alloc_names_find("my_malloc", NULL, &own));
	alloc_prefixes_clear(&prefixes);
	CHECK_EQ(prefixes.cnt, 0);
}

TEST(prefixes_that_no_name_can_have)
{
	static const char *const wrong[] = {"",	      ",",  "a_,", ",a_",
					    "a_,,b_", "a-", "a_ ", "\xc3\xa4_"};
	struct alloc_prefixes prefixes = {};

	for (size_t i = 0; i < ARRAY_CNT(wrong); i++)
		CHECK_EQ(alloc_prefixes_add(&prefixes, wrong[i]), -EINVAL);
	while (!alloc_prefixes_add(&prefixes, "a_"))
		CHECK(prefixes.cnt < ALLOC_PREFIX_MAX);
	CHECK_EQ(alloc_prefixes_add(&prefixes, "a_"), -E2BIG);
	alloc_prefixes_clear(&prefixes);
}

/* How many of the lines in `names` the expression matches; the last that differs from `want`. */
static size_t count_matches(const regex_t *regex, const char *names, bool want, char last[64])
{
	size_t cnt = 0;

	last[0] = '\0';
	for (const char *at = names, *end; (end = strchr(at, '\n')); at = end + 1) {
		char name[64];
		bool matches;

		snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
		matches = !regexec(regex, name, 0, NULL, 0);
		cnt += matches;
		if (matches != want)
			memcpy(last, name, sizeof(name));
	}
	return cnt;
}

TEST(drop_frames_names_the_allocator_and_nothing_else)
{
	static const char dropped[] =
		"malloc\ncalloc\nrealloc\nreallocarray\nfree\nposix_memalign\n"
		"aligned_alloc\nmemalign\nvalloc\npvalloc\n__libc_malloc\n"
		"__GI___libc_malloc\n__GI___libc_free\n_mid_memalign\noperator new\n"
		"operator new[]\noperator delete\noperator delete[]\n"
		"operator new(unsigned long)\noperator new[](unsigned long)\n"
		"operator new(unsigned long, std::align_val_t)\n"
		"operator new(unsigned long, std::nothrow_t const&)\n"
		"operator delete(void*)\noperator delete[](void*, unsigned long)\n_Znwm\n"
		"_Znam\n_ZnwmSt11align_val_t\n_ZdlPv\n_ZdaPvm\ntc_malloc\n"
		"mi_free\nmallocx\nsdallocx\ntc_malloc_skip_new_handler\nmi_mallocn\n"
		"tc_new\ntc_deletearray_nothrow\nmi_zalloc_aligned\n_rjem_malloc\n";
	static const char kept[] =
		"main\nmy_malloc\nmalloc_wrapper\nxmalloc\nstrdup\nfreeze\noperator newer\n"
		"my::operator new(unsigned long)\nPool::malloc(unsigned long)\n"
		"operator==(A, "
		"B)\ntc_new_filter\nmi_free_list\ntc_delete_node\ng_malloc\nxallocx\nmi_"
		"collect\nmi_version\nfree_list\n_ZN4Pool6mallocEm\n";
	char *anchored = NULL, last[64];
	regex_t regex;

	/* As pprof's RemoveUninteresting does; the expression is plain enough for POSIX, too. */
	CHECK(asprintf(&anchored, "^(%s)$", alloc_names_drop_frames()) > 0);
	CHECK_EQ(regcomp(&regex, anchored, REG_EXTENDED | REG_NOSUB), 0);
	CHECK_EQ(count_matches(&regex, dropped, true, last), 39);
	CHECK_STR(last, "");
	CHECK_EQ(count_matches(&regex, kept, false, last), 0);
	CHECK_STR(last, "");
	regfree(&regex);
	free(anchored);
}
