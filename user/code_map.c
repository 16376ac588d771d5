// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file and its entry points. Out: its instructions and what branches lead to. A jump through
 * memory is known when it goes through a GOT slot that a symbol is bound to, which covers PLT stubs
 * without knowing their layout. Function starts come from symbols and .eh_frame_hdr. Must not know
 * what the code is walked for.
 */
#include "code_map.h"

#include "cleanup.h"
#include "elf_dynamic.h"
#include "elf_file.h"
#include "vec.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

/* Instructions are at most 15 bytes long. */
#define INSN_BYTES_MAX 15

/* Code is read in such pieces. */
#define PIECE_BYTES 4096

/* A GOT slot. */
struct slot {
	uint64_t vma;
	uint64_t target_vma; /* 0: unknown */
	int fn;		     /* enum hb_fn of the name; -1: none */
};

struct code_map {
	const struct elf_file *file;
	int (*name_fn)(const char *name);
	csh handle; /* 0: not open */
	cs_insn *insn;
	struct code_map_entry *entries;
	size_t entry_cnt;
	uint64_t *starts; /* of functions; sorted */
	size_t start_cnt, start_cap;
	struct slot *slots; /* sorted by vma */
	size_t slot_cnt, slot_cap;
	uint64_t piece_vma; /* of `piece`, the code that was read last */
	size_t piece_len;
	uint8_t piece[PIECE_BYTES];
};

DEFINE_CLEANUP(code_map, struct code_map, code_map_free)

void code_map_free(struct code_map *map)
{
	if (!map)
		return;
	if (map->insn)
		cs_free(map->insn, 1);
	if (map->handle)
		cs_close(&map->handle);
	free(map->entries);
	free(map->starts);
	free(map->slots);
	free(map);
}

static int add_start(struct code_map *map, uint64_t vma)
{
	int ret = vec_reserve(&map->starts, &map->start_cap, map->start_cnt + 1);

	if (!ret)
		map->starts[map->start_cnt++] = vma;
	return ret;
}

static int add_symbol(const struct elf_symbol *symbol, void *data)
{
	return add_start(data, symbol->vma);
}

static int add_slot(const struct elf_dynamic_slot *slot, void *data)
{
	struct code_map *map = data;
	int fn = map->name_fn(slot->name);
	int ret;

	if (fn < 0 && !slot->target_vma)
		return 0;
	ret = vec_reserve(&map->slots, &map->slot_cap, map->slot_cnt + 1);
	if (!ret)
		map->slots[map->slot_cnt++] = (struct slot){slot->slot_vma, slot->target_vma, fn};
	return ret;
}

/* The file's bytes at `vma`, *room of them; NULL if there are none. Borrowed from the handle. */
static const uint8_t *bytes_at(const struct elf_file *file, uint64_t vma, uint64_t *room)
{
	size_t size_bytes;
	const char *whole = elf_rawfile(elf_file_elf(file), &size_bytes);
	uint64_t off;

	*room = elf_file_vma_room(file, vma);
	if (!whole || !*room || !elf_file_vma_to_off(file, vma, &off) || off >= size_bytes)
		return NULL;
	if (*room > size_bytes - off)
		*room = size_bytes - off;
	return (const uint8_t *)whole + off;
}

/*
 * Function starts from .eh_frame_hdr (LSB, "Exception Frames"): version, encodings of the pointer,
 * the count and the table, then pairs of (function, FDE) relative to the header. Only the encoding
 * that all linkers write is read. It knows static functions that a stripped file has no symbol for.
 */
static int add_fde_starts(struct code_map *map, uint64_t hdr_vma)
{
	static const uint8_t layout[] = {1, 0x1b, 0x03, 0x3b};
	const size_t table_off = 12, pair_bytes = 8;
	uint64_t room;
	const uint8_t *hdr = bytes_at(map->file, hdr_vma, &room);
	uint32_t cnt;

	if (!hdr || room < table_off || memcmp(hdr, layout, sizeof(layout)))
		return 0;
	memcpy(&cnt, hdr + 8, sizeof(cnt));
	if (cnt > (room - table_off) / pair_bytes)
		cnt = (uint32_t)((room - table_off) / pair_bytes);
	for (uint32_t i = 0; i < cnt; i++) {
		int32_t start;
		int ret;

		memcpy(&start, hdr + table_off + i * pair_bytes, sizeof(start));
		ret = add_start(map, hdr_vma + (uint64_t)(int64_t)start);
		if (ret)
			return ret;
	}
	return 0;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Collects function starts from everything that knows some. 0 or -ENOMEM. */
static int read_starts(struct code_map *map)
{
	Elf *elf = elf_file_elf(map->file);
	size_t phdr_cnt;
	GElf_Phdr phdr;
	int ret = elf_file_each_function(map->file, add_symbol, map);

	if (elf_getphdrnum(elf, &phdr_cnt))
		phdr_cnt = 0;
	for (size_t i = 0; i < phdr_cnt && !ret; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_GNU_EH_FRAME)
			ret = add_fde_starts(map, phdr.p_vaddr);
	if (ret)
		return ret;
	if (map->start_cnt)
		qsort(map->starts, map->start_cnt, sizeof(*map->starts), compare_u64);
	return 0;
}

static int open_decoder(struct code_map *map)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &map->handle))
		return -ENOMEM;
	cs_option(map->handle, CS_OPT_DETAIL, CS_OPT_ON);
	map->insn = cs_malloc(map->handle);
	return map->insn ? 0 : -ENOMEM;
}

int code_map_new(const struct elf_file *file, const struct code_map_entry *entries,
		 size_t entry_cnt, int (*name_fn)(const char *name), struct code_map **out)
{
	_cleanup_(cleanup_code_map) struct code_map *map = calloc(1, sizeof(*map));
	int ret;

	if (!map)
		return -ENOMEM;
	map->file = file;
	map->name_fn = name_fn;
	map->entries = calloc(entry_cnt ? entry_cnt : 1, sizeof(*entries));
	if (!map->entries)
		return -ENOMEM;
	for (size_t i = 0; i < entry_cnt; i++)
		map->entries[i] = entries[i];
	map->entry_cnt = entry_cnt;
	ret = open_decoder(map);
	if (ret)
		return ret;
	ret = read_starts(map);
	if (ret)
		return ret;
	ret = elf_dynamic_each_slot(file, add_slot, map);
	if (ret)
		return ret;
	if (map->slot_cnt)
		qsort(map->slots, map->slot_cnt, sizeof(*map->slots), compare_u64);
	*out = take_ptr(map);
	return 0;
}
_Static_assert(offsetof(struct slot, vma) == 0, "compare_u64 sorts slots by it");

/* Index of the first start above `vma`. */
static size_t upper_start(const struct code_map *map, uint64_t vma)
{
	size_t low = 0, high = map->start_cnt;

	/* Halves the range each turn: at most 64 turns. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->starts[mid] <= vma)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t code_map_limit(const struct code_map *map, uint64_t vma)
{
	uint64_t end = vma + elf_file_text_room(map->file, vma);
	size_t next = upper_start(map, vma);

	return next < map->start_cnt && map->starts[next] < end ? map->starts[next] : end;
}

static const struct slot *find_slot(const struct code_map *map, uint64_t vma)
{
	return map->slot_cnt
		       ? bsearch(&vma, map->slots, map->slot_cnt, sizeof(*map->slots), compare_u64)
		       : NULL;
}

static const struct code_map_entry *find_entry(const struct code_map *map, uint64_t vma)
{
	for (size_t i = 0; i < map->entry_cnt; i++)
		if (map->entries[i].vma == vma)
			return &map->entries[i];
	return NULL;
}

csh code_map_decoder(const struct code_map *map)
{
	return map->handle;
}

/*
 * The code at `vma`, *len bytes of it, enough for an instruction unless the segment ends. Read from
 * the file and not from our mapping of it: other people's breakpoints are in every mapping.
 */
static const uint8_t *code_at(struct code_map *map, uint64_t vma, size_t *len)
{
	uint64_t in_piece = vma - map->piece_vma, off;

	if (in_piece >= map->piece_len || map->piece_len - in_piece < INSN_BYTES_MAX) {
		if (!elf_file_vma_to_off(map->file, vma, &off))
			return NULL;
		map->piece_vma = vma;
		map->piece_len = elf_file_read_text(map->file, off, map->piece, PIECE_BYTES);
		in_piece = 0;
	}
	*len = map->piece_len - in_piece;
	return *len ? map->piece + in_piece : NULL;
}

const cs_insn *code_map_decode(struct code_map *map, uint64_t vma)
{
	uint64_t at = vma;
	size_t len;
	const uint8_t *code = code_at(map, vma, &len);

	return code && cs_disasm_iter(map->handle, &code, &len, &at, map->insn) ? map->insn : NULL;
}

/* The address that a direct branch leads to; 0: it is not direct. */
static uint64_t direct_target(const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	return insn->detail->x86.op_count == 1 && op->type == X86_OP_IMM ? (uint64_t)op->imm : 0;
}

/* The GOT slot that the branch goes through; NULL: none that is known. */
static const struct slot *branch_slot(const struct code_map *map, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (insn->detail->x86.op_count != 1 || op->type != X86_OP_MEM ||
	    op->mem.base != X86_REG_RIP || op->mem.index != X86_REG_INVALID || !map->slot_cnt)
		return NULL;
	return find_slot(map, insn->address + insn->size + (uint64_t)op->mem.disp);
}

int code_map_entry_at(const struct code_map *map, uint64_t vma)
{
	const struct code_map_entry *entry = find_entry(map, vma);

	return entry ? (int)entry->fn : -1;
}

struct code_map_branch code_map_branch(const struct code_map *map, const cs_insn *insn)
{
	const struct slot *slot = branch_slot(map, insn);
	struct code_map_branch branch = {
		.vma = slot ? slot->target_vma : direct_target(insn),
		.fn = slot ? slot->fn : -1,
	};
	int fn = code_map_entry_at(map, branch.vma);

	if (fn >= 0)
		branch.fn = fn;
	return branch;
}

struct code_map_branch code_map_call(struct code_map *map, struct code_map_branch branch)
{
	const cs_insn *insn;

	if (branch.fn >= 0 || !branch.vma)
		return branch;
	insn = code_map_decode(map, branch.vma);
	if (insn && insn->id == X86_INS_ENDBR64)
		insn = code_map_decode(map, branch.vma + insn->size);
	if (insn && insn->id == X86_INS_JMP && branch_slot(map, insn))
		return code_map_branch(map, insn);
	return branch;
}
