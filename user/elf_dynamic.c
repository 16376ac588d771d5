// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file's PT_DYNAMIC. Out: the symbols and relocations it names (System V gABI, chapter
 * "Dynamic Linking"; DT_GNU_HASH as in glibc's elf/dl-lookup.c). Addresses in there are vmas and
 * reach bytes only through the file's own PT_LOAD segments; libelf cuts every chunk to the file.
 * The dynamic segment does not say how many symbols there are: the hash tables do.
 */
#include "elf_dynamic.h"

#include "cleanup.h"
#include "elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

/* What the walk over the tags collects; 0 where a tag is missing. */
struct dynamic {
	uint64_t symtab, strtab, strs_bytes, hash, gnu_hash, soname;
	uint64_t rela, rela_bytes, jmprel, jmprel_bytes;
};

/* What there is of `want` bytes at `vma`, in whole units of `type`; *bytes 0 if nothing. */
static const void *chunk(const struct elf_file *file, uint64_t vma, uint64_t want, Elf_Type type,
			 size_t *bytes)
{
	size_t unit = type == ELF_T_BYTE ? 1 : gelf_fsize(elf_file_elf(file), type, 1, EV_CURRENT);
	uint64_t room = elf_file_vma_room(file, vma), off;
	Elf_Data *data;

	*bytes = 0;
	if (want > room)
		want = room;
	want -= want % unit;
	if (!want || !elf_file_vma_to_off(file, vma, &off))
		return NULL;
	data = elf_getdata_rawchunk(elf_file_elf(file), (int64_t)off, want, type);
	if (!data || !data->d_buf)
		return NULL;
	*bytes = data->d_size;
	return data->d_buf;
}

static void note_tag(struct dynamic *out, const Elf64_Dyn *dyn)
{
	const struct {
		Elf64_Sxword tag;
		uint64_t *value;
	} wanted[] = {
		{DT_SYMTAB, &out->symtab},     {DT_STRTAB, &out->strtab},
		{DT_STRSZ, &out->strs_bytes},  {DT_HASH, &out->hash},
		{DT_GNU_HASH, &out->gnu_hash}, {DT_SONAME, &out->soname},
		{DT_RELA, &out->rela},	       {DT_RELASZ, &out->rela_bytes},
		{DT_JMPREL, &out->jmprel},     {DT_PLTRELSZ, &out->jmprel_bytes},
	};

	for (size_t i = 0; i < ARRAY_CNT(wanted); i++)
		if (wanted[i].tag == dyn->d_tag)
			*wanted[i].value = dyn->d_un.d_val;
}

/* The entries of the dynamic segment up to DT_NULL; NULL: there is none. */
static const Elf64_Dyn *find_dyns(const struct elf_file *file, size_t *cnt)
{
	const Elf64_Dyn *dyns = NULL;
	size_t phdr_cnt, bytes = 0;
	GElf_Phdr phdr;

	if (elf_getphdrnum(elf_file_elf(file), &phdr_cnt))
		return NULL;
	for (size_t i = 0; i < phdr_cnt && !dyns; i++)
		if (gelf_getphdr(elf_file_elf(file), (int)i, &phdr) && phdr.p_type == PT_DYNAMIC)
			dyns = chunk(file, phdr.p_vaddr, phdr.p_filesz, ELF_T_DYN, &bytes);
	for (*cnt = 0; dyns && *cnt < bytes / sizeof(*dyns); *cnt += 1)
		if (dyns[*cnt].d_tag == DT_NULL)
			break;
	return dyns;
}

/* False: no dynamic segment. */
static bool read_dynamic(const struct elf_file *file, struct dynamic *out)
{
	size_t cnt;
	const Elf64_Dyn *dyns = find_dyns(file, &cnt);

	if (!dyns)
		return false;
	*out = (struct dynamic){};
	for (size_t i = 0; i < cnt; i++)
		note_tag(out, &dyns[i]);
	return true;
}

static uint32_t word_at(const char *bytes, uint64_t index)
{
	uint32_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

/*
 * One more than the highest symbol in a DT_GNU_HASH table: words nbuckets, symoffset, bloom_cnt
 * (of 8 bytes), bloom_shift; the bloom words; a chain's first symbol per bucket; the chains, whose
 * last word has bit 0 set.
 */
static uint64_t count_by_gnu_hash(const char *table, uint64_t word_cnt)
{
	uint64_t buckets_at, chains_at, last = 0;
	uint32_t bucket_cnt, first;

	if (word_cnt < 4)
		return 0;
	bucket_cnt = word_at(table, 0);
	first = word_at(table, 1);
	buckets_at = 4 + 2 * (uint64_t)word_at(table, 2);
	chains_at = buckets_at + bucket_cnt;
	if (chains_at > word_cnt)
		return 0;
	for (uint64_t i = buckets_at; i < chains_at; i++)
		if (word_at(table, i) > last)
			last = word_at(table, i);
	if (last < first)
		return first;
	/* Ends with the table at the latest. */
	while (last - first < word_cnt - chains_at &&
	       !(word_at(table, chains_at + last - first) & 1))
		last++;
	return last + 1;
}

static uint64_t count_symbols(const struct elf_file *file, const struct dynamic *dynamic)
{
	size_t bytes;
	const char *table;

	table = chunk(file, dynamic->hash, UINT64_MAX, ELF_T_BYTE, &bytes);
	if (dynamic->hash && bytes >= 8)
		return word_at(table, 1);
	table = chunk(file, dynamic->gnu_hash, UINT64_MAX, ELF_T_BYTE, &bytes);
	if (dynamic->gnu_hash && table)
		return count_by_gnu_hash(table, bytes / 4);
	/* No hash table at all: linkers put the strings right behind the symbols. */
	if (dynamic->strtab > dynamic->symtab)
		return (dynamic->strtab - dynamic->symtab) / sizeof(Elf64_Sym);
	return 0;
}

int elf_dynamic_symtab(const struct elf_file *file, struct elf_dynamic_symtab *out)
{
	struct elf_dynamic_symtab table = {};
	struct dynamic dynamic;
	const char *end;
	uint64_t want;
	size_t bytes;

	if (!read_dynamic(file, &dynamic) || !dynamic.symtab || !dynamic.strtab)
		return -ENOENT;
	if (__builtin_mul_overflow(count_symbols(file, &dynamic), sizeof(Elf64_Sym), &want))
		return -ENOENT;
	table.syms = chunk(file, dynamic.symtab, want, ELF_T_SYM, &bytes);
	table.cnt = bytes / sizeof(Elf64_Sym);
	table.strs = chunk(file, dynamic.strtab, dynamic.strs_bytes, ELF_T_BYTE, &bytes);
	end = table.strs ? memrchr(table.strs, '\0', bytes) : NULL;
	if (!table.syms || !end)
		return -ENOENT;
	table.strs_bytes = (size_t)(end - table.strs) + 1;
	*out = table;
	return 0;
}

const char *elf_dynamic_name(const struct elf_dynamic_symtab *table, uint64_t offset)
{
	return offset < table->strs_bytes ? table->strs + offset : "";
}

const char *elf_dynamic_soname(const struct elf_file *file)
{
	struct elf_dynamic_symtab table;
	struct dynamic dynamic;

	if (!read_dynamic(file, &dynamic) || !dynamic.soname || elf_dynamic_symtab(file, &table))
		return NULL;
	return elf_dynamic_name(&table, dynamic.soname);
}

int elf_dynamic_each_needed(const struct elf_file *file, int (*fn)(const char *name, void *data),
			    void *data)
{
	struct elf_dynamic_symtab table;
	size_t cnt;
	const Elf64_Dyn *dyns = find_dyns(file, &cnt);
	int ret = 0;

	if (!dyns || elf_dynamic_symtab(file, &table))
		return 0;
	for (size_t i = 0; i < cnt && !ret; i++)
		if (dyns[i].d_tag == DT_NEEDED)
			ret = fn(elf_dynamic_name(&table, dyns[i].d_un.d_val), data);
	return ret;
}

static int each_rela(const struct elf_dynamic_symtab *table, const Elf64_Rela *relas, size_t cnt,
		     int (*fn)(const struct elf_dynamic_slot *slot, void *data), void *data)
{
	for (size_t i = 0; i < cnt; i++) {
		uint64_t type = ELF64_R_TYPE(relas[i].r_info), sym = ELF64_R_SYM(relas[i].r_info);
		struct elf_dynamic_slot slot = {.slot_vma = relas[i].r_offset};
		int ret;

		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || sym >= table->cnt)
			continue;
		slot.name = elf_dynamic_name(table, table->syms[sym].st_name);
		if (table->syms[sym].st_shndx != SHN_UNDEF)
			slot.target_vma = table->syms[sym].st_value;
		ret = fn(&slot, data);
		if (ret)
			return ret;
	}
	return 0;
}

int elf_dynamic_each_slot(const struct elf_file *file,
			  int (*fn)(const struct elf_dynamic_slot *slot, void *data), void *data)
{
	struct elf_dynamic_symtab table;
	const Elf64_Rela *relas;
	struct dynamic dynamic;
	size_t bytes;
	int ret;

	if (elf_dynamic_symtab(file, &table) || !read_dynamic(file, &dynamic))
		return 0;
	relas = chunk(file, dynamic.rela, dynamic.rela_bytes, ELF_T_RELA, &bytes);
	ret = each_rela(&table, relas, bytes / sizeof(*relas), fn, data);
	if (ret)
		return ret;
	relas = chunk(file, dynamic.jmprel, dynamic.jmprel_bytes, ELF_T_RELA, &bytes);
	return each_rela(&table, relas, bytes / sizeof(*relas), fn, data);
}
