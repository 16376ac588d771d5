/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dynamic segment of an ELF file: its symbol table and relocations as the dynamic linker sees
 * them, which works with stripped section headers too. Foreign bytes: every table is cut to what
 * the file holds.
 */
#ifndef ELF_DYNAMIC_H
#define ELF_DYNAMIC_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* A symbol table and its strings. Borrowed from the Elf handle. */
struct elf_dynamic_symtab {
	const Elf64_Sym *syms;
	size_t cnt;
	const char *strs; /* every string in it ends within strs_bytes: the last byte is 0 */
	size_t strs_bytes;
};

/* A pointer of the file that the dynamic linker binds to a symbol. */
struct elf_dynamic_slot {
	uint64_t slot_vma;   /* where the pointer lies */
	const char *name;    /* the symbol's; never NULL. Lives as long as the file */
	uint64_t target_vma; /* the file's own definition of it; 0: defined elsewhere */
};

/*
 * Reads the symbol table of the dynamic segment. 0 and *out, or -ENOENT (no dynamic segment or
 * none that makes sense); *out untouched then.
 */
int elf_dynamic_symtab(const struct elf_file *file, struct elf_dynamic_symtab *out);

/* The string at `offset` of the string table, borrowed; "" if out of bounds. */
const char *elf_dynamic_name(const struct elf_dynamic_symtab *table, uint64_t offset);

/* DT_SONAME, borrowed, or NULL. */
const char *elf_dynamic_soname(const struct elf_file *file);

/*
 * Calls fn(name, data) with each DT_NEEDED, borrowed. Stops and returns what fn returns when that
 * is not 0; else 0.
 */
int elf_dynamic_each_needed(const struct elf_file *file, int (*fn)(const char *name, void *data),
			    void *data);

/*
 * Calls fn(slot, data) for each pointer with an R_X86_64_JUMP_SLOT or R_X86_64_GLOB_DAT
 * relocation, those that code calls or jumps through. Stops and returns what fn returns when that
 * is not 0; else 0.
 */
int elf_dynamic_each_slot(const struct elf_file *file,
			  int (*fn)(const struct elf_dynamic_slot *slot, void *data), void *data);

#endif
