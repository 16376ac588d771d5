/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of the largest sites that people see on the terminal, and what was cut or lost.
 */
#ifndef TOP_H
#define TOP_H

#include "profile.h"

#include <stdio.h>

/*
 * Writes the `rows` largest sites by in-use bytes, where inuse is tracked, and by allocated bytes,
 * a site being the first frame of somebody's own code with its caller chain summarized, the
 * standard error of each estimate, totals, and every cut and loss. `width`: columns of the
 * terminal, which lines are cut to; 0 = no terminal, and lines are whole.
 */
void top_write(const struct profile *profile, size_t rows, unsigned width, FILE *out);

/*
 * Formats bytes for people into buf ("512B", "3.4MB", binary units as pprof shows); returns buf.
 */
const char *top_bytes(double bytes, char buf[static 16]);

#endif
