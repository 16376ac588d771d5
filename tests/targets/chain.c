// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks: main -> f -> g -> malloc, a recursion that is deeper than any profile goes, and one
 * that just fits.
 * build: -fno-builtin
 */
#include "truth.h"

static struct truth *deep_truth;

SITE(chain_g)
{
	for (int i = 0; i < 7; i++)
		took(self, malloc(1000), 1000);
}

__attribute__((noinline, noclone)) static void chain_f(void)
{
	RUN(chain_g);
}

__attribute__((noinline, noclone)) static void descend(int depth)
{
	if (depth)
		descend(depth - 1);
	else
		took(deep_truth, malloc(64), 64);
	/* After the call, so that it is one and no jump. */
	TRUTH_KEEP(&depth);
}

SITE(site_deep)
{
	deep_truth = self;
	descend(500);
	/* Its own frame is cut away; only `descend` can tell. */
	self->alloc_objects = self->alloc_bytes = self->inuse_objects = self->inuse_bytes = 0;
}

SITE(site_shallow)
{
	deep_truth = self;
	descend(60);
	TRUTH_KEEP(self);
}

int main(void)
{
	await("READY");
	chain_f();
	TRUTH_KEEP(&deep_truth);
	RUN(site_deep);
	RUN(site_shallow);
	finish();
	return 0;
}
