/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xorshift64* (Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators"):
 * chance that can be repeated, for what nobody has to guess.
 */
#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

/* The next 53 bits, uniform; *state is not 0, before and after. */
static inline uint64_t xorshift_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL >> 11;
}

#endif
