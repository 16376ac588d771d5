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

/* Units are read as a whole. */
struct debug_index_unit {
	size_t number;	/* from 0, in the order of the file */
	uint64_t bytes; /* what it has in .debug_info; 0: unknown */
};

/* The unit that has `vma`, in *out; false: none, and *out is untouched. Reads nothing. */
bool debug_index_find_unit(const struct debug_index *index, uint64_t vma,
			   struct debug_index_unit *out);

/*
 * DIEs and ranges read so far. There is a limit over the life of an index, so what a copy of this
 * process read of the file has to be added.
 */
uint64_t debug_index_steps(const struct debug_index *index);
/* See debug_index_steps(). */
void debug_index_add_steps(struct debug_index *index, uint64_t steps);

/*
 * Fills frames[] with what is at `vma`, innermost first, and returns their number; 0: no unit has
 * the address. The last one is not inlined and may lack both names. -ENOMEM.
 */
int debug_index_lookup(struct debug_index *index, uint64_t vma,
		       struct debug_frame frames[static DEBUG_INDEX_FRAMES_MAX]);

#endif
