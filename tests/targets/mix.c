// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sampling: known numbers of objects of known sizes, each size in a function of its own
 * (mix_SIZE), the whole repeated below recursions of different depth, so that one recording
 * holds many independent estimates.
 *   mix REPLICATES SIZE:OBJECTS:KEPT...   OBJECTS in each replicate, KEPT of them stay in use
 * Prints "MIX size allocated in_use replicates".
 * build: -fno-builtin
 */
#include "truth.h"

#define SIZES(X)                                                                                   \
	X(16)                                                                                      \
	X(64)                                                                                      \
	X(100)                                                                                     \
	X(1024)                                                                                    \
	X(4096)                                                                                    \
	X(16384)                                                                                   \
	X(65536)                                                                                   \
	X(1048576)                                                                                 \
	X(67108864)

/* The first ones stay; the others are freed at once. */
#define DEFINE(bytes)                                                                              \
	__attribute__((noinline, noclone)) void mix_##bytes(long objects, long kept)               \
	{                                                                                          \
		for (long i = 0; i < objects; i++) {                                               \
			void *p = malloc(bytes);                                                   \
                                                                                                   \
			TRUTH_KEEP(p);                                                             \
			if (!p)                                                                    \
				_exit(5);                                                          \
			if (i >= kept)                                                             \
				free(p);                                                           \
		}                                                                                  \
	}
SIZES(DEFINE)

struct mix {
	long size;
	void (*run)(long objects, long kept);
};

#define ENTRY(bytes) {bytes, mix_##bytes},
static const struct mix mixes[] = {SIZES(ENTRY)};
#define MIX_CNT (sizeof(mixes) / sizeof(*mixes))

static long wanted[MIX_CNT], kept[MIX_CNT];

__attribute__((noinline, noclone)) void replicate(long depth)
{
	if (depth > 1) {
		replicate(depth - 1);
	} else {
		for (size_t i = 0; i < MIX_CNT; i++)
			if (wanted[i])
				mixes[i].run(wanted[i], kept[i]);
	}
	TRUTH_KEEP(&depth);
}

int main(int argc, char **argv)
{
	long replicates = argc > 1 ? atol(argv[1]) : 0;

	for (int i = 2; i < argc; i++) {
		long size, objects, keep;

		if (sscanf(argv[i], "%ld:%ld:%ld", &size, &objects, &keep) != 3)
			return 64;
		for (size_t j = 0; j < MIX_CNT; j++) {
			if (mixes[j].size == size) {
				wanted[j] = objects;
				kept[j] = keep;
			}
		}
	}
	await("READY");
	for (long depth = 1; depth <= replicates; depth++)
		replicate(depth);
	for (size_t i = 0; i < MIX_CNT; i++)
		if (wanted[i])
			say("MIX %ld %ld %ld %ld\n", mixes[i].size, wanted[i], kept[i], replicates);
	await("DONE");
	return 0;
}
