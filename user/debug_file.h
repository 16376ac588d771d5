/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The debug information of one file, wherever it is: handles on the file itself, on its separate
 * debug file, on the symbols of its .gnu_debugdata, and on the DWARF.
 */
#ifndef DEBUG_FILE_H
#define DEBUG_FILE_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>

struct elf_file;
struct debug_file;

/*
 * Finds what there is for `file` and opens it; no DWARF is read yet. `root_fd` is the root
 * directory of a process that maps the file, needed during this call only; -1: only ours, and
 * there only by build id. `file` must live as long as the getters are called. 0 and *out (free
 * with debug_file_free(); finding nothing is no error), or -ENOMEM.
 */
int debug_file_find(const struct elf_file *file, int root_fd, struct debug_file **out);

/* Closes everything; NULL is fine. What the getters below gave out is gone then. */
void debug_file_free(struct debug_file *debug);

/* The file itself, through a handle of our own; NULL if it cannot be read. Borrowed. */
Elf *debug_file_main_elf(const struct debug_file *debug);

/* The separate debug file, or NULL; its addresses are the main file's. Borrowed. */
Elf *debug_file_separate_elf(const struct debug_file *debug);

/* The image in .gnu_debugdata, decompressed at the first call, or NULL. Borrowed. */
Elf *debug_file_mini_elf(struct debug_file *debug);

/*
 * The DWARF, loaded at the first call with its dwz supplement attached, or NULL. libdw will open
 * no supplement by itself any more. Borrowed.
 */
Dwarf *debug_file_dwarf(struct debug_file *debug);

/*
 * The root DIE of the split unit (.dwo) that belongs to skeleton `cudie`, in *split. False if
 * `cudie` is no skeleton, or its .dwo is gone or may not be looked for: libdw opens it by path in
 * our own mount namespace, which is right only for processes that share ours.
 */
bool debug_file_split_unit(const struct debug_file *debug, Dwarf_Die *cudie, Dwarf_Die *split);

#endif
