// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table on the terminal: its very bytes, its order, its fit to the width, and the standard
 * error that it claims.
 */
#include "check.h"
#include "profile_fixture.h"
#include "sites.h"
#include "top.h"

#include <math.h>

static char buf[1 << 16];

static const char *table_of(const struct profile *profile, size_t rows, unsigned width)
{
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	top_write(profile, rows, width, out);
	fclose(out);
	return buf;
}

TEST(bytes_are_readable)
{
	static const struct {
		double bytes;
		const char *text;
	} cases[] = {
		{0, "0B"},	  {1, "1B"},
		{512, "512B"},	  {1023, "1023B"},
		{1023.7, "1kB"},  {1024, "1kB"},
		{1536, "1.5kB"},  {1047552, "1023kB"},
		{1048570, "1MB"}, {3.4 * 0x1p20, "3.4MB"},
		{0x1p30, "1GB"},  {0x1p40, "1TB"},
		{0x1p63, "8EB"},
	};
	char text[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(top_bytes(cases[i].bytes, text), cases[i].text);
	CHECK(strlen(top_bytes(1e300, text)) < sizeof(text));
}

TEST(table_of_a_heap_profile)
{
	struct profile profile = fixture_profile(RATE);

	CHECK_STR(table_of(&profile, 3, 0),
		  "app (pid 1234), 30.5 s, one sample per 4kB\n"
		  "    INUSE    +/-   OBJECTS      ALLOC  SITE\n"
		  "      1MB     0%         1        2MB  libstripped.so+0x230\n"
		  "                                        <- main\n"
		  "  121.1kB    18%      3394    296.7kB  inner  inline.h:5\n"
		  "                                        <- make_tree <- main"
		  "  (largest of 2 stacks)\n"
		  "   31.6kB    27%         7     31.6kB  [no stack]\n"
		  "      8kB    71%       717       16kB  (2 more sites)\n"
		  "    1.2MB     2%      4119      2.3MB  total\n"
		  "    ALLOC    +/-   OBJECTS  SITE\n"
		  "      2MB     0%         2  libstripped.so+0x230\n"
		  "                             <- main\n"
		  "  296.7kB    11%     11100  inner  inline.h:5\n"
		  "                             <- make_tree <- main  (largest of 2 stacks)\n"
		  "   31.6kB    27%         7  [no stack]\n"
		  "     16kB    50%       982  (2 more sites)\n"
		  "    2.3MB     1%     12091  total\n"
		  "stacks: 89.8% complete (71 of 79 samples)\n"
		  "cut: 3 truncated: at the depth limit\n"
		  "lost: 7 live_full: allocation not in inuse\n");
}

TEST(table_without_inuse)
{
	struct profile profile = fixture_profile(RATE);
	const char *table;

	profile.tracks_inuse = false;
	table = table_of(&profile, 1, 0);
	CHECK(strstr(table, "\n    ALLOC    +/-   OBJECTS  SITE\n"));
	CHECK(strstr(table, "\n      2MB     0%         2  libstripped.so+0x230\n"));
	CHECK(!strstr(table, "INUSE"));
}

TEST(exact_at_rate_one)
{
	struct profile profile = fixture_profile(1);

	CHECK(strstr(table_of(&profile, 10, 0), "one sample per allocation\n"));
	CHECK(strstr(buf, "  exact "));
	CHECK(!strstr(buf, "0%  "));
}

/* What was scaled from windows is an estimate, whatever the rate. */
TEST(windows_at_rate_one_are_not_exact)
{
	struct profile profile = fixture_profile(1);

	profile.tracks_inuse = false;
	profile.coverage.window_cnt = 3;
	for (size_t i = 0; i < profile.sample_cnt; i++)
		profile.samples[i].replicate[0] = (float)profile.samples[i].allocs.raw;
	table_of(&profile, 10, 0);
	CHECK(!strstr(buf, "exact"));
	/* A quarter: the root of one replicate of sixteen. */
	CHECK(strstr(buf, "25%"));
}

TEST(fits_the_width)
{
	struct profile profile = fixture_profile(RATE);
	const char *line = table_of(&profile, 10, 50);

	for (int n = 0; n < 12; n++) {
		size_t len = strcspn(line, "\n"), columns = 0;

		for (size_t i = 0; i < len; i++)
			columns += (line[i] & 0xc0) != 0x80;
		CHECK(columns <= 50);
		line += len + 1;
	}
	CHECK(strstr(buf, "..\n"));
}

TEST(foreign_bytes_do_not_reach_the_terminal)
{
	struct profile profile = fixture_profile(RATE);

	profile.comm = (char *)"\033]0;x\a";
	CHECK(strstr(table_of(&profile, 10, 0), "?]0;x? (pid"));
	for (const char *byte = buf; *byte; byte++)
		CHECK((unsigned char)*byte >= ' ' || *byte == '\n');
	CHECK(strstr(buf, "caf\xc3\xa9??"));
}

TEST(an_empty_profile_has_a_table)
{
	struct profile profile = {.comm = (char *)"idle", .rate_bytes = RATE, .tracks_inuse = true};

	CHECK(strstr(table_of(&profile, 10, 80), "0B"));
	CHECK(!strstr(buf, "nan"));
	CHECK(!strstr(buf, "stacks:"));
}

TEST(sites_add_up)
{
	struct profile profile = fixture_profile(RATE);
	struct sites sites;
	struct profile_error error = {0};
	double bytes = 0;

	CHECK_EQ(sites_make(&profile, &sites), 0);
	CHECK_EQ(sites.cnt, 5);
	for (size_t i = 0; i < sites.cnt; i++) {
		bytes += sites.sites[i].bytes;
		profile_error_add(&error, &sites.sites[i].error);
		CHECK(i == 0 || sites.sites[i - 1].bytes >= sites.sites[i].bytes);
	}
	CHECK(bytes == (double)profile_total(&profile, PROFILE_INUSE_SPACE));
	CHECK(bytes == sites.sum.bytes);
	CHECK(fabs(error.variance / sites.sum.error.variance - 1) < 1e-9);
	sites_clear(&sites);
}

TEST(standard_error_is_that_of_independent_draws)
{
	struct profile profile = fixture_profile(RATE);
	const struct profile_sample *sample = &profile.samples[2];
	double p = (double)sample->inuse.raw / sample->inuse.estimate, estimate = 20 * 100 / p;
	struct profile_error error = profile_error_of(sample, true);

	/* Relative, it is sqrt((1 - p) / n), n being what was seen. */
	CHECK(fabs(profile_standard_error(&error) / estimate - sqrt((1 - p) / 20)) < 1e-9);
}

/* The table of one stack of functions, leaf first, each a location of its own. */
static const char *table_of_stack(const char *const (*names)[2], size_t cnt)
{
	static struct symbolize_frame frames[16];
	static struct profile_location locations[16];
	static uint32_t stack[16];
	struct profile profile = fixture_profile(RATE);

	for (size_t i = 0; i < cnt; i++) {
		frames[i] = (struct symbolize_frame){names[i][0], names[i][1], NULL, 0, 0};
		locations[i] = (struct profile_location){
			.pc = names[i][0][0] == '[' ? 0 : 0x1000 + i, .names = {&frames[i], 1}};
		stack[i] = (uint32_t)i;
	}
	profile.samples[0].locations = stack;
	profile.samples[0].location_cnt = cnt;
	profile.locations = locations;
	profile.location_cnt = cnt;
	profile.sample_cnt = 1;
	return table_of(&profile, 1, 0);
}

#define TABLE_OF(...)                                                                              \
	table_of_stack((const char *const[][2]){__VA_ARGS__},                                      \
		       sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(char *[2]))
#define RUST "_RNvC1a1b"

/* Frames of the language's library say how, not who: they are passed over, and counted in chains.
 */
TEST(a_site_is_somebodys_own_code)
{
	CHECK(strstr(TABLE_OF({"malloc", ""}, {"operator new(unsigned long)", "_Znwm"},
			      {"std::a<int>::b()", "_ZNSt1aIiE1bEv"},
			      {"__gnu_cxx::d()", "_ZN9__gnu_cxx1dEv"},
			      {"app::work()", "_ZN3app4workEv"},
			      {"std::thread::run()", "_ZNSt6thread3runEv"}, {"main", "main"}),
		     "  app::work\n"));
	CHECK(strstr(buf, " <- (1 std) <- main\n"));
	CHECK(strstr(TABLE_OF({"alloc::vec::Vec<T>::push", RUST},
			      {"<alloc::vec::Vec<T> as core::clone::Clone>::clone", RUST},
			      {"<T as alloc::string::ToString>::to_string", RUST},
			      {"<app::Thing as core::clone::Clone>::clone", RUST},
			      {"main", "main"}),
		     "  <app::Thing as core::clone::Clone>::clone\n"));
}

/* In C++ anybody may call a namespace "core". */
TEST(names_of_one_language_are_nothing_in_another)
{
	CHECK(strstr(TABLE_OF({"core::work()", "_ZN4core4workEv"}, {"main", "main"}),
		     "  core::work\n"));
	CHECK(strstr(TABLE_OF({"alloc::work", "_ZN5alloc4workEv"}, {"main", "main"}),
		     "  alloc::work\n"));
	CHECK(strstr(TABLE_OF({"std", "std"}, {"main", "main"}), "  std\n"));
}

/* With nothing else in the stack, or nobody knows what, the allocator's caller has to do. */
TEST(a_site_of_plumbing_alone)
{
	CHECK(strstr(TABLE_OF({"malloc", ""}, {"std::a()", ""}, {"std::b()", ""}), "  std::a\n"));
	CHECK(strstr(TABLE_OF({"std::a()", ""}, {"std::b()", ""}, {"[truncated]", "[truncated]"}),
		     "  std::a\n"));
}

TEST(files_of_the_library_are_passed_over)
{
	struct profile profile = fixture_profile(RATE);
	static const char *const libraries[] = {"/usr/lib/libstdc++.so.6.0.30", "/opt/libc++.so.1",
						"libc++abi.so.1"};
	char *file = profile.mappings[1].file;

	/* A function of the library below main; its file has no names. */
	profile.samples = &profile.samples[3];
	profile.sample_cnt = 1;
	CHECK(strstr(table_of(&profile, 1, 0), "  libstripped.so+0x230\n"));
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		profile.mappings[1].file = (char *)libraries[i];
		table_of(&profile, 1, 0);
		profile.mappings[1].file = file;
		CHECK(strstr(buf, "  main  main.c:20\n"));
	}
}

TEST(arguments_are_cut_from_names_but_qualifiers_are_not)
{
	static const char *const cases[][2] = {
		{"main", "main"},
		{"f(int)", "f"},
		{"a::b<void (int)>::c(char const*) const", "a::b<>::c"},
		{"(anonymous namespace)::f()", "(anonymous namespace)::f"},
		{"f(int)::{lambda(char)#1}::operator()(char) const",
		 "f(int)::{lambda(char)#1}::operator()"},
		{"operator<<(S&, int)", "operator<<"},
		{"S::operator->() const", "S::operator->"},
		{"<T as core::Trait>::go", "<T as core::Trait>::go"},
		{"std::map<int, std::less<int> >::operator[](int&&)", "std::map<>::operator[]"},
		{"<alloc::vec::Vec<T> as core::Trait<U>>::go",
		 "<alloc::vec::Vec<> as core::Trait<>>::go"},
		{"f(int)::<lambda(char)>::operator()(char) const",
		 "f(int)::<lambda(char)>::operator()"},
		{"bool operator< <int>(S<int> const&)", "bool operator< <int>"},
		{"odd(", "odd("},
		{"odd<", "odd<"},
		{"odd>", "odd>"},
	};
	struct symbolize_frame frame = {NULL, "", NULL, 0, 0};
	struct profile_location location = {.names = {&frame, 1}};
	uint32_t stack[] = {0};
	struct profile_sample sample = {.locations = stack, .location_cnt = 1};
	struct profile profile = {.locations = &location, .location_cnt = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *out = fmemopen(buf, sizeof(buf), "w");

		frame.name = cases[i][0];
		sites_put_name(&profile, &sample, (struct sites_position){0, 0}, out);
		fclose(out);
		CHECK_STR(buf, cases[i][1]);
	}
}
