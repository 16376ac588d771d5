// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The main program above the copies of large_unit.cc.
 *   large STACKS   as many allocations, each with a stack of its own, 16 frames below main
 */
#include "../targets/truth.h"

typedef void (*large_step)(unsigned code, int left);
extern large_step *large_tables[];
extern int large_units;

int main(int argc, char **argv)
{
	int stacks = argc > 1 ? atoi(argv[1]) : 20000;

	await("READY");
	for (int i = 0; i < stacks; i++) {
		large_tables[i % large_units][i / large_units % 16](i, 16);
		TRUTH_KEEP(large_tables);
	}
	await("DONE");
	return 0;
}
