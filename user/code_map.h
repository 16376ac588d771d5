/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of a file as something to walk: instructions, where functions begin, and what jumps and
 * calls lead to, through PLT stubs and GOT slots as well. Knows which addresses are entry points.
 */
#ifndef CODE_MAP_H
#define CODE_MAP_H

#include "../bpf/abi.h"

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct code_map;

/* An entry point of the file. */
struct code_map_entry {
	uint64_t vma;
	enum hb_fn fn;
};

/* What a jump or a call leads to. */
struct code_map_branch {
	uint64_t vma; /* 0: unknown, or in another file */
	int fn;	      /* enum hb_fn of the entry point there; -1: none */
};

/*
 * Reads `file` (borrowed for the whole life). `entries`: its entry points, copied. `name_fn`: the
 * enum hb_fn of an entry point by name, -1 for other names; used for those that the file does not
 * define itself. 0 and *out (free with code_map_free()), -ENOMEM.
 */
int code_map_new(const struct elf_file *file, const struct code_map_entry *entries,
		 size_t entry_cnt, int (*name_fn)(const char *name), struct code_map **out);

/* Releases; NULL is fine. */
void code_map_free(struct code_map *map);

/* The function that holds `vma` ends here at the latest: the next known start, or the text's end.
 */
uint64_t code_map_limit(const struct code_map *map, uint64_t vma);

/* For cs_insn_group() and the like; lives as long as the map. */
csh code_map_decoder(const struct code_map *map);

/*
 * The instruction at `vma`, with details; NULL if there is none. Belongs to the map; the next
 * call, or one of code_map_call(), overwrites it.
 */
const cs_insn *code_map_decode(struct code_map *map, uint64_t vma);

/* The enum hb_fn of the entry point at `vma`; -1: none. */
int code_map_entry_at(const struct code_map *map, uint64_t vma);

/* What `insn`, a jump or a call, leads to: directly or through a GOT slot. */
struct code_map_branch code_map_branch(const struct code_map *map, const cs_insn *insn);

/* What a call of `branch` ends up in, a PLT stub between. */
struct code_map_branch code_map_call(struct code_map *map, struct code_map_branch branch);

#endif
