/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the dynamic linker of a process tells debuggers whether it is in the middle of a change of
 * the mapped libraries, or done with it (struct r_debug in link.h; kept by glibc and musl).
 */
#ifndef LINKER_H
#define LINKER_H

#include "../bpf/abi.h"

#include <stdbool.h>

struct procmaps;

/*
 * Finds the dynamic linker among the files of `maps`, by the symbols that it exports for
 * debuggers: the function that HB_FN_LINKER stands for, and the struct. False if there is none, as
 * in a static program; *out untouched then.
 */
bool linker_find(const struct procmaps *maps, struct hb_linker *out);

#endif
