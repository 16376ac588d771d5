/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the call frame information of a file and takes it apart into FDEs.
 */
#ifndef CFI_FRAMES_H
#define CFI_FRAMES_H

#include "cfi_exec.h"

struct elf_file;

/* Where the information is. */
enum cfi_source {
	CFI_SOURCE_EH,	  /* .eh_frame, by its section or by PT_GNU_EH_FRAME */
	CFI_SOURCE_DEBUG, /* .debug_frame, which may be compressed */
	CFI_SOURCE_CNT,
};

/*
 * Calls fn(frame, data) for every FDE in the file's order; those that are malformed are left out
 * and added to *malformed. 0, -ENODATA (no such section, or not readable), or the first thing
 * other than 0 that fn returned.
 */
int cfi_frames_each(const struct elf_file *file, enum cfi_source source,
		    int (*fn)(const struct cfi_frame *frame, void *data), void *data,
		    uint64_t *malformed);

/* True if the file has a section of this name; a wrong section table has none. */
bool cfi_frames_has_section(const struct elf_file *file, const char *name);

#endif
