/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds separate debug files. Searching never leaves the root directory it is given, and a file
 * counts only if its contents prove that it belongs (build id or CRC), whatever its name.
 */
#ifndef DEBUG_SEARCH_H
#define DEBUG_SEARCH_H

#include <libelf.h>
#include <stdbool.h>

struct elf_file;

/* An open ELF file. */
struct debug_part {
	int fd;	     /* owned; -1: none, or somebody else's */
	Elf *elf;    /* owned; NULL: nothing here */
	char *path;  /* owned; as seen from root_fd, NULL if unknown */
	int root_fd; /* the directory it was found below; borrowed, -1 if unknown */
	void *image; /* owned; what elf_memory() reads, else NULL */
};

/* A part that is not there; clearing it is fine. */
#define DEBUG_PART_NONE ((struct debug_part){.fd = -1, .root_fd = -1})

/* The two root directories to look below; -1: not to be had. */
struct debug_roots {
	int target; /* the process's */
	int ours;
};

/* Closes and frees what the part owns; it is DEBUG_PART_NONE then. */
void debug_search_clear(struct debug_part *part);

/* True if both roots are the same mount, that is: the process sees files where we see them. */
bool debug_search_same_root(const struct debug_roots *roots);

/*
 * A handle on the main file that shares nothing with elf_file's (libdw decompresses in place);
 * the descriptor stays elf_file's. 0 with elf NULL if libelf refuses it, or -ENOMEM.
 */
int debug_search_main(const struct elf_file *file, const struct debug_roots *roots,
		      struct debug_part *part);

/* Fills `part` with the separate debug file of `file`, whose handle is `main`, if there is one. */
void debug_search_separate(const struct elf_file *file, const struct debug_part *main,
			   const struct debug_roots *roots, struct debug_part *part);

/* Fills `alt` with the dwz supplement that `part` names in .gnu_debugaltlink, if there is one. */
void debug_search_alt(const struct debug_part *part, const struct debug_roots *roots,
		      struct debug_part *alt);

/* The section `name` if it has contents in this file, else NULL. */
Elf_Scn *debug_search_section(Elf *elf, const char *name);

/* The contents of section `name` as they are in the file; NULL if there are none. Borrowed. */
Elf_Data *debug_search_data(Elf *elf, const char *name);

#endif
