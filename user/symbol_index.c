// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: ELF handles of one file (itself, its debug file, its .gnu_debugdata). Out: names by vma.
 *
 * One array sorted by address and preference, searched by bisection. Sized symbols may enclose
 * others, so each entry also has the furthest end of all entries up to it, which says when looking
 * further back is in vain. The bytes are foreign: what does not fit into its section is cut.
 */
#include "symbol_index.h"

#include "elf_file.h"
#include "vec.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How many symbols to look back at; enough for real files, a bound for made-up ones. */
#define LOOK_BACK_MAX 4096

struct symbol {
	uint64_t vma;
	uint64_t end;	  /* of the symbol; of its section if it has no size */
	uint64_t max_end; /* furthest end of the sized symbols up to here, inclusive */
	const char *name;
	bool sized, local;
};

struct symbol_index {
	struct symbol *symbols;
	size_t cnt, cap;
};

struct symbol_index *symbol_index_new(void)
{
	return calloc(1, sizeof(struct symbol_index));
}

void symbol_index_free(struct symbol_index *index)
{
	if (!index)
		return;
	free(index->symbols);
	free(index);
}

/* Adds [vma, vma + size) cut to `limit`; size 0 is unknown and reaches to the limit. */
static int add(struct symbol_index *index, const char *name, uint64_t vma, uint64_t size,
	       uint64_t limit, bool local)
{
	uint64_t end = size && size < limit - vma ? vma + size : limit;
	int err = vec_reserve(&index->symbols, &index->cap, index->cnt + 1);

	if (err)
		return err;
	index->symbols[index->cnt++] = (struct symbol){
		.vma = vma, .end = end, .name = name, .sized = size, .local = local};
	return 0;
}

/* Adds `sym` if it names code inside a section. */
static int add_symbol(struct symbol_index *index, Elf *elf, size_t strings, const GElf_Sym *sym,
		      GElf_Word section)
{
	unsigned char type = GELF_ST_TYPE(sym->st_info);
	const char *name;
	GElf_Shdr shdr;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (sym->st_shndx != SHN_XINDEX)
		section = sym->st_shndx;
	if (section == SHN_UNDEF || (sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX))
		return 0;
	if (!gelf_getshdr(elf_getscn(elf, section), &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
		return 0;
	if (sym->st_value < shdr.sh_addr || sym->st_value - shdr.sh_addr >= shdr.sh_size ||
	    shdr.sh_addr + shdr.sh_size < shdr.sh_addr)
		return 0;
	name = elf_strptr(elf, strings, sym->st_name);
	if (!name || !name[0])
		return 0;
	return add(index, name, sym->st_value, sym->st_size, shdr.sh_addr + shdr.sh_size,
		   GELF_ST_BIND(sym->st_info) == STB_LOCAL);
}

/* The extended section numbers that belong to table number `table`, or NULL. */
static Elf_Data *extended_numbers(Elf *elf, size_t table)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB_SHNDX &&
		    shdr.sh_link == table)
			return elf_getdata(scn, NULL);
	return NULL;
}

static int add_table(struct symbol_index *index, Elf *elf, Elf_Scn *scn, size_t strings)
{
	Elf_Data *numbers = extended_numbers(elf, elf_ndxscn(scn));
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Word section = 0;
	GElf_Sym sym;
	int err;

	for (int i = 0; data && gelf_getsymshndx(data, numbers, i, &sym, &section); i++) {
		err = add_symbol(index, elf, strings, &sym, section);
		if (err)
			return err;
	}
	return 0;
}

int symbol_index_add_elf(struct symbol_index *index, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	int err;

	while (elf && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) ||
		    (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		err = add_table(index, elf, scn, shdr.sh_link);
		if (err)
			return err;
	}
	return 0;
}

struct dynamic {
	struct symbol_index *index;
	Elf *elf;
};

/* Without sections the end of the executable segment is the limit. */
static int add_dynamic(const struct elf_symbol *symbol, void *data)
{
	struct dynamic *dynamic = data;
	GElf_Phdr phdr;

	for (int i = 0; gelf_getphdr(dynamic->elf, i, &phdr); i++)
		if (phdr.p_type == PT_LOAD && phdr.p_flags & PF_X && symbol->vma >= phdr.p_vaddr &&
		    symbol->vma - phdr.p_vaddr < phdr.p_memsz &&
		    phdr.p_vaddr + phdr.p_memsz > phdr.p_vaddr)
			return add(dynamic->index, symbol->name, symbol->vma, symbol->size_bytes,
				   phdr.p_vaddr + phdr.p_memsz, false);
	return 0;
}

int symbol_index_add_sectionless(struct symbol_index *index, const struct elf_file *file)
{
	struct dynamic dynamic = {.index = index, .elf = elf_file_elf(file)};

	return index->cnt ? 0 : elf_file_each_function(file, add_dynamic, &dynamic);
}

/* Sort order: address, then preference. */
static int compare(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;
	size_t a_underscores, b_underscores;

	if (a->vma != b->vma)
		return a->vma < b->vma ? -1 : 1;
	if (a->local != b->local)
		return a->local ? 1 : -1;
	a_underscores = strspn(a->name, "_");
	b_underscores = strspn(b->name, "_");
	if (a_underscores != b_underscores)
		return a_underscores < b_underscores ? -1 : 1;
	return strcmp(a->name, b->name);
}

void symbol_index_finish(struct symbol_index *index)
{
	uint64_t max_end = 0;

	if (index->cnt)
		qsort(index->symbols, index->cnt, sizeof(*index->symbols), compare);
	for (size_t i = 0; i < index->cnt; i++) {
		struct symbol *symbol = &index->symbols[i];

		if (symbol->sized && symbol->end > max_end)
			max_end = symbol->end;
		symbol->max_end = max_end;
	}
}

/* Number of symbols that start at or before `vma`. */
static size_t count_up_to(const struct symbol_index *index, uint64_t vma)
{
	size_t low = 0, high = index->cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->symbols[middle].vma <= vma)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *symbol_index_find(const struct symbol_index *index, uint64_t vma)
{
	size_t cnt = count_up_to(index, vma);
	const struct symbol *sized = NULL, *unsized = NULL;
	uint64_t nearest = cnt ? index->symbols[cnt - 1].vma : 0;

	/* Backwards, so that of one address the first, which is preferred, has the last word. */
	for (size_t i = cnt; i-- > 0 && cnt - i <= LOOK_BACK_MAX;) {
		const struct symbol *symbol = &index->symbols[i];

		if (sized && symbol->vma != sized->vma)
			break;
		if (symbol->vma != nearest && symbol->max_end <= vma)
			break;
		if (vma >= symbol->end)
			continue;
		if (symbol->sized)
			sized = symbol;
		else if (symbol->vma == nearest)
			unsized = symbol;
	}
	if (sized)
		return sized->name;
	return unsized ? unsized->name : NULL;
}

const char *symbol_index_at(const struct symbol_index *index, uint64_t vma)
{
	size_t i = vma ? count_up_to(index, vma - 1) : 0;

	return i < index->cnt && index->symbols[i].vma == vma ? index->symbols[i].name : NULL;
}
