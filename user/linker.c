// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: mappings with their files. Out: an address in the process. Knows the names by which
 * glibc (_r_debug) and musl (_dl_debug_addr, a pointer) export it; both call _dl_debug_state.
 */
#include "linker.h"

#include "elf_dynamic.h"
#include "elf_file.h"
#include "procmaps.h"

#include <link.h>
#include <string.h>

_Static_assert(offsetof(struct r_debug, r_state) == HB_LINKER_STATE_OFF, "as BPF has it");
_Static_assert(RT_CONSISTENT == 0, "as BPF has it");

/* What a dynamic linker has for debuggers, by its vma; false: the file is none. */
static bool find_symbols(const struct elf_file *file, struct hb_linker *out)
{
	struct elf_dynamic_symtab table;
	bool has_hook = false, found = false;

	if (elf_dynamic_symtab(file, &table))
		return false;
	for (size_t i = 0; i < table.cnt; i++) {
		const char *name = elf_dynamic_name(&table, table.syms[i].st_name);

		if (table.syms[i].st_shndx == SHN_UNDEF)
			continue;
		has_hook |= !strcmp(name, "_dl_debug_state");
		if (strcmp(name, "_r_debug") && strcmp(name, "_dl_debug_addr"))
			continue;
		out->debug_pc = table.syms[i].st_value;
		out->is_pointer = !strcmp(name, "_dl_debug_addr");
		found = true;
	}
	return has_hook && found;
}

bool linker_find(const struct procmaps *maps, struct hb_linker *out)
{
	for (size_t i = 0; i < maps->cnt; i++) {
		const struct procmap *map = &maps->maps[i];
		struct hb_linker found = {};
		uint64_t vma;

		if (!map->elf || !elf_file_off_to_vma(map->elf, map->off, &vma) ||
		    !find_symbols(map->elf, &found))
			continue;
		found.debug_pc += map->start - vma;
		*out = found;
		return true;
	}
	return false;
}
