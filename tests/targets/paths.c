// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * 5,000 distinct stacks of equal length: bit n of the object's size - 1, from the top, says
 * whether the n-th call was step_a or step_b. So a stack that carries another one's object shows.
 * build: -fno-builtin -fno-ipa-icf
 */
#include "truth.h"

#define PATHS 5000
#define BITS  13

static void step_a(unsigned code, int left);
static void step_b(unsigned code, int left);

static inline __attribute__((always_inline)) void step(unsigned code, int left)
{
	if (left == 0)
		TRUTH_KEEP(malloc(code + 1));
	else if (code >> (left - 1) & 1)
		step_b(code, left - 1);
	else
		step_a(code, left - 1);
	TRUTH_KEEP(&code);
}

__attribute__((noinline, noclone)) static void step_a(unsigned code, int left)
{
	step(code, left);
}

__attribute__((noinline, noclone)) static void step_b(unsigned code, int left)
{
	step(code, left);
}

int main(void)
{
	int64_t bytes = 0;

	await("READY");
	for (unsigned code = 0; code < PATHS; code++) {
		if (code >> (BITS - 1) & 1)
			step_b(code, BITS - 1);
		else
			step_a(code, BITS - 1);
		bytes += code + 1;
	}
	say("SITE main %d %lld %d %lld\n", PATHS, (long long)bytes, PATHS, (long long)bytes);
	await("DONE");
	return 0;
}
