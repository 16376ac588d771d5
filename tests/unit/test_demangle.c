// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * demangle: the right scheme for each name, nothing ruined, and no name too nasty.
 */
#include "check.h"
#include "demangle.h"

#define CHECK_DEMANGLED(mangled, want)                                                             \
	do {                                                                                       \
		char *got_ = demangle(mangled);                                                    \
		char copy_[512];                                                                   \
		snprintf(copy_, sizeof(copy_), "%s", got_ ? got_ : "(null)");                      \
		free(got_);                                                                        \
		CHECK_STR(copy_, want);                                                            \
	} while (0)

TEST(cplusplus)
{
	CHECK_DEMANGLED("_ZN3foo3barEv", "foo::bar()");
	CHECK_DEMANGLED("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo(int)");
	CHECK_DEMANGLED("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
	CHECK_DEMANGLED("_Znwm", "operator new(unsigned long)");
	CHECK_DEMANGLED("_ZN3fooEv.cold", "foo() [clone .cold]");
	CHECK_DEMANGLED("_ZN3foo3barEi.constprop.0", "foo::bar(int) [clone .constprop.0]");
}

/* What a function template returns is part of its mangled name, and not of what it is called. */
TEST(templates_lose_what_they_return)
{
	CHECK_DEMANGLED("_Z3fooIiEvT_", "foo<int>(int)");
	CHECK_DEMANGLED("_ZSt11make_sharedIiJEESt10shared_ptrIT_EDpOT0_",
			"std::make_shared<int>()");
	CHECK_DEMANGLED("_ZNK1ScvT_IiEEv", "S::operator int<int>() const");
}

TEST(rust_legacy_loses_its_hash)
{
	CHECK_DEMANGLED("_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
			"core::ptr::drop_in_place");
	CHECK_DEMANGLED("_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.42",
			"core::ptr::drop_in_place");
	CHECK_DEMANGLED(
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		"3bar17h930b740aa94f1d3aE",
		"<Test + 'static as foo::Bar<Test>>::bar");
}

TEST(rust_v0)
{
	CHECK_DEMANGLED("_RNvC6_123foo3bar", "123foo::bar");
	CHECK_DEMANGLED("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
	CHECK_DEMANGLED("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
}

/* What makes a Rust name is that nothing follows the hash; C++ functions have parameters. */
TEST(cplusplus_that_looks_like_rust)
{
	CHECK_DEMANGLED("_ZN3foo17h0123456789abcdefEv", "foo::h0123456789abcdef()");
	CHECK_DEMANGLED("_ZN12_GLOBAL__N_117h0123456789abcdefEi",
			"(anonymous namespace)::h0123456789abcdef(int)");
	CHECK_DEMANGLED("_ZN1a1fEN1b17h0123456789abcdefE", "a::f(b::h0123456789abcdef)");
	CHECK_DEMANGLED("_ZN1a17h0123456789abcdef1gEv", "a::h0123456789abcdef::g()");
}

TEST(other_names_stay)
{
	static const char *const names[] = {
		"",
		"_",
		"malloc",
		"main.main",
		"_start",
		"__libc_start_main",
		"_ZN",
		"_ZNgarbage",
		"_ZN99999999999999999999999999foo",
		"_Zgarbage",
		"_ZN17h",
		"_ZN17h0123456789abcdef",
		"_ZN3fo",
		"_ZN0E",
		"_R",
		"_RNv",
		"_RNvC6_123foo3ba",
		"_RINvNtC3std3mem8align_ofdEB_B_B_B_",
		"_GLOBAL_",
		"_ZN\xff\xfe\x80",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK_DEMANGLED(names[i], names[i]);
}

/* f(pair<A,A>, pair<pair<A,A>,pair<A,A>>, ...): each parameter is twice as long as the last. */
static char *doubling(int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *name = calloc(1, 64 + 16 * levels);
	size_t len;

	len = snprintf(name, 64, "_Z1fSt4pairI1AS0_E");
	for (int i = 0; i < levels; i++)
		len += snprintf(name + len, 16, "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
	return name;
}

TEST(short_name_with_endless_meaning_stays)
{
	char *fair = doubling(5), *bomb = doubling(34);
	char *fair_out = demangle(fair), *bomb_out = demangle(bomb);
	int fair_done = fair_out && !strncmp(fair_out, "f(std::pair<A, A>, std::pair<std::p", 35);
	int bomb_raw = bomb_out && !strcmp(bomb_out, bomb);

	free(fair);
	free(bomb);
	free(fair_out);
	free(bomb_out);
	CHECK(fair_done);
	CHECK(bomb_raw);
}

/* "_Z1f", `cnt` times `what`, "i". */
static int survives(char what, size_t cnt)
{
	char *name = malloc(cnt + 8), *out;
	int ok;

	memcpy(name, "_Z1f", 4);
	memset(name + 4, what, cnt);
	memcpy(name + 4 + cnt, "i", 2);
	out = demangle(name);
	ok = out && out[0];
	free(out);
	free(name);
	return ok;
}

TEST(deep_and_long_names_do_no_harm)
{
	static const char codes[] = "PRKOVCGNSTILJXFDEUMAcs";
	static const size_t cnts[] = {100, 1000, 1030, 2047, 4000, 5000, 1 << 20};

	for (size_t i = 0; i < sizeof(codes) - 1; i++)
		for (size_t k = 0; k < sizeof(cnts) / sizeof(cnts[0]); k++)
			CHECK(survives(codes[i], cnts[k]));
}

/* Templates of everyday C++ exceed the length at which libiberty gives up by itself. */
TEST(long_template_names_are_read)
{
	char name[4096] = "_Z1fIJ";
	size_t len = strlen(name);
	char *out;
	int done;

	for (int i = 0; i < 400; i++)
		len += snprintf(name + len, sizeof(name) - len, "St4lessi");
	snprintf(name + len, sizeof(name) - len, "EEvv");
	out = demangle(name);
	done = out && !strncmp(out, "f<std::less, int, std::less", 27);
	free(out);
	CHECK(done);
}
