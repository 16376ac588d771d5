/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DWARF by address: function, inlined functions, files and lines at a vma.
 */
#ifndef DEBUG_INDEX_H
#define DEBUG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debug_file;
struct debug_index;

/* Deeper inlining is cut at the innermost end. */
#define DEBUG_INDEX_FRAMES_MAX 64

/* One function at an address. Strings are borrowed from the debug_file; NULL: unknown. */
struct debug_frame {
	const char *linkage_name; /* mangled */
	const char *name;	  /* as in the source, without namespace or class */
	const char *file;
	uint32_t line;	     /* 0: unknown */
	uint32_t start_line; /* 0: unknown */
	bool inlined;
	uint64_t entry_vma; /* where the function starts; only if not inlined, 0: unknown */
};

/*
 * An index over the DWARF of `debug`, which must outlive it; the functions of a unit are read
 * when an address in it is looked up. 0 and *out (NULL if there is no DWARF), or -ENOMEM.
 */
int debug_index_new(struct debug_file *debug, struct debug_index **out);

/* NULL is fine. */
void debug_index_free(struct debug_index *index);

/*
 * Fills frames[] with what is at `vma`, innermost first, and returns their number; 0: no unit has
 * the address. The last one is not inlined and may lack both names. -ENOMEM.
 */
int debug_index_lookup(struct debug_index *index, uint64_t vma,
		       struct debug_frame frames[static DEBUG_INDEX_FRAMES_MAX]);

#endif
