/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code symbols of one file, by address: which name stands at a vma.
 */
#ifndef SYMBOL_INDEX_H
#define SYMBOL_INDEX_H

#include <libelf.h>
#include <stdint.h>

struct elf_file;
struct symbol_index;

/* An empty index; NULL if out of memory. */
struct symbol_index *symbol_index_new(void);

/* NULL is fine. */
void symbol_index_free(struct symbol_index *index);

/*
 * Adds the symbols of .symtab and .dynsym of `elf` that lie in sections with code. Names are
 * borrowed from `elf`. 0 or -ENOMEM; unreadable tables and a NULL `elf` add nothing.
 */
int symbol_index_add_elf(struct symbol_index *index, Elf *elf);

/*
 * If the index is empty so far: adds what elf_file finds without section headers. Names are
 * borrowed from `file`. 0 or -ENOMEM.
 */
int symbol_index_add_sectionless(struct symbol_index *index, const struct elf_file *file);

/*
 * Sorts what was added; call it once, before the first lookup. Of several names for one address
 * one is chosen for good: global and weak before local, then fewer leading underscores, then
 * alphabetical.
 */
void symbol_index_finish(struct symbol_index *index);

/*
 * The name at `vma`, or NULL: that of a symbol whose size reaches it (the last to start, if
 * several do), else of the nearest symbol before it if that states no size. Never across the end
 * of a section. Borrowed; may carry a symbol version ("f@@V1").
 */
const char *symbol_index_find(const struct symbol_index *index, uint64_t vma);

/* The chosen name among the symbols that start at `vma`, or NULL. */
const char *symbol_index_at(const struct symbol_index *index, uint64_t vma);

#endif
