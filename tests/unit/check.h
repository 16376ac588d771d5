/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unit tests' only tool: a test file defines TEST(name) { ... } functions, which run in order;
 * each prints "ok NAME", "not ok NAME" or "skip NAME: reason" and tests/run.sh counts those lines.
 * A failed CHECK says where and ends its test, not the program.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_test {
	const char *name;
	void (*run)(void);
	struct check_test *next;
};

static struct check_test *check_first, **check_last = &check_first;
static const struct check_test *check_current;
static int check_failed, check_skipped;

/* Says why the running test cannot run here; the test returns after it. */
__attribute__((unused, format(printf, 1, 2))) static void check_skip(const char *fmt, ...)
{
	va_list args;

	check_skipped = 1;
	printf("skip %s: ", check_current->name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

#define TEST(name_)                                                                                \
	static void test_##name_(void);                                                            \
	static struct check_test entry_##name_ = {#name_, test_##name_, NULL};                     \
	__attribute__((constructor)) static void register_##name_(void)                            \
	{                                                                                          \
		*check_last = &entry_##name_;                                                      \
		check_last = &entry_##name_.next;                                                  \
	}                                                                                          \
	static void test_##name_(void)

/* The macros return from the test on purpose: what follows a failure would only confuse. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			check_failed = 1;                                                          \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_) {                                                                    \
			fprintf(stderr, "%s:%d: %s is %lld (0x%llx), not %lld (0x%llx)\n",         \
				__FILE__, __LINE__, #a, a_, (unsigned long long)a_, b_,            \
				(unsigned long long)b_);                                           \
			check_failed = 1;                                                          \
			return;                                                                    \
		}                                                                                  \
	} while (0)

#define CHECK_STR(a, b)                                                                            \
	do {                                                                                       \
		const char *a_ = (a), *b_ = (b);                                                   \
		if (!a_ || !b_ || strcmp(a_, b_)) {                                                \
			fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__,   \
				#a, a_ ? a_ : "(null)", b_ ? b_ : "(null)");                       \
			check_failed = 1;                                                          \
			return;                                                                    \
		}                                                                                  \
	} while (0)

int main(void)
{
	int failures = 0;

	for (struct check_test *test = check_first; test; test = test->next) {
		check_current = test;
		check_failed = check_skipped = 0;
		test->run();
		failures += check_failed;
		if (check_failed || !check_skipped)
			printf("%s %s\n", check_failed ? "not ok" : "ok", test->name);
		fflush(stdout);
	}
	return failures ? 1 : 0;
}

#endif
