/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which mapped files stay for the life of an image: the program, the libraries that it needs,
 * directly or not, and the kernel's vDSO. The dynamic linker unloads only what dlopen() brought.
 */
#ifndef NEEDED_H
#define NEEDED_H

struct procmaps;

/*
 * Sets procmap.permanent in `maps` for those of an image whose program is mapped from `exe` (the
 * path as in maps). Files must be attached. A library that is mapped twice (dlmopen) is not marked:
 * one of the two may go. 0 or -ENOMEM.
 */
int needed_mark(struct procmaps *maps, const char *exe);

#endif
