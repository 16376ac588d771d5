// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file and its entry points. Out: which entry points each can jump to. A recursive descent
 * over direct jumps with a work list; a jump through memory is followed when it goes through a GOT
 * slot that a symbol is bound to, which covers PLT stubs without knowing their layout.
 *
 * Straight code ends at the next known function start (symbols and .eh_frame_hdr), because what
 * follows a call that never returns may belong to another function. Must not know what the answer
 * is used for.
 */
#include "tail_calls.h"

#include "cleanup.h"
#include "elf_dynamic.h"
#include "elf_file.h"
#include "vec.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

/* Bounds of one scan, several times what the largest entry point (jemalloc's realloc) needs. */
#define BLOCK_MAX 2048
#define INSN_MAX  16384

/* A GOT slot. */
struct slot {
	uint64_t vma;
	uint64_t target_vma; /* 0: unknown */
	int fn;		     /* enum hb_fn of the name; -1: none */
};

/* Where to go on decoding. */
struct block {
	uint64_t vma;
	uint64_t limit; /* next function start */
	uint64_t root;	/* where the first jump into this stretch between two starts led to */
};

struct tail_calls {
	const struct elf_file *file;
	int (*name_fn)(const char *name);
	csh handle; /* 0: not open */
	cs_insn *insn;
	struct tail_calls_entry *entries;
	size_t entry_cnt;
	uint64_t *starts; /* of functions; sorted */
	size_t start_cnt, start_cap;
	struct slot *slots; /* sorted by vma */
	size_t slot_cnt, slot_cap;
};

/* State of one scan. */
struct scan {
	struct tail_calls *calls;
	const struct tail_calls_entry *entry;
	struct block *blocks; /* found so far, none twice */
	size_t block_cnt, block_cap;
	size_t insn_cnt;
	bool incomplete;     /* some way leads where the scan does not follow */
	bool calls_anything; /* contains a call */
	bool returns;	     /* contains a return */
	bool returns_value;  /* contains a return of anything but a constant 0 */
	struct tail_calls_result result;
};

DEFINE_CLEANUP(tail_calls, struct tail_calls, tail_calls_free)

void tail_calls_free(struct tail_calls *calls)
{
	if (!calls)
		return;
	if (calls->insn)
		cs_free(calls->insn, 1);
	if (calls->handle)
		cs_close(&calls->handle);
	free(calls->entries);
	free(calls->starts);
	free(calls->slots);
	free(calls);
}

static int add_start(struct tail_calls *calls, uint64_t vma)
{
	int ret = vec_reserve(&calls->starts, &calls->start_cap, calls->start_cnt + 1);

	if (!ret)
		calls->starts[calls->start_cnt++] = vma;
	return ret;
}

static int add_symbol(const struct elf_symbol *symbol, void *data)
{
	return add_start(data, symbol->vma);
}

static int add_slot(const struct elf_dynamic_slot *slot, void *data)
{
	struct tail_calls *calls = data;
	int fn = calls->name_fn(slot->name);
	int ret;

	if (fn < 0 && !slot->target_vma)
		return 0;
	ret = vec_reserve(&calls->slots, &calls->slot_cap, calls->slot_cnt + 1);
	if (!ret)
		calls->slots[calls->slot_cnt++] =
			(struct slot){slot->slot_vma, slot->target_vma, fn};
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
static int add_fde_starts(struct tail_calls *calls, uint64_t hdr_vma)
{
	static const uint8_t layout[] = {1, 0x1b, 0x03, 0x3b};
	const size_t table_off = 12, pair_bytes = 8;
	uint64_t room;
	const uint8_t *hdr = bytes_at(calls->file, hdr_vma, &room);
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
		ret = add_start(calls, hdr_vma + (uint64_t)(int64_t)start);
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
static int read_starts(struct tail_calls *calls)
{
	Elf *elf = elf_file_elf(calls->file);
	size_t phdr_cnt;
	GElf_Phdr phdr;
	int ret = elf_file_each_function(calls->file, add_symbol, calls);

	if (elf_getphdrnum(elf, &phdr_cnt))
		phdr_cnt = 0;
	for (size_t i = 0; i < phdr_cnt && !ret; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_GNU_EH_FRAME)
			ret = add_fde_starts(calls, phdr.p_vaddr);
	if (ret)
		return ret;
	if (calls->start_cnt)
		qsort(calls->starts, calls->start_cnt, sizeof(*calls->starts), compare_u64);
	return 0;
}

static int open_decoder(struct tail_calls *calls)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &calls->handle))
		return -ENOMEM;
	cs_option(calls->handle, CS_OPT_DETAIL, CS_OPT_ON);
	calls->insn = cs_malloc(calls->handle);
	return calls->insn ? 0 : -ENOMEM;
}

int tail_calls_new(const struct elf_file *file, const struct tail_calls_entry *entries,
		   size_t entry_cnt, int (*name_fn)(const char *name), struct tail_calls **out)
{
	_cleanup_(cleanup_tail_calls) struct tail_calls *calls = calloc(1, sizeof(*calls));
	int ret;

	if (!calls)
		return -ENOMEM;
	calls->file = file;
	calls->name_fn = name_fn;
	calls->entries = calloc(entry_cnt ? entry_cnt : 1, sizeof(*entries));
	if (!calls->entries)
		return -ENOMEM;
	for (size_t i = 0; i < entry_cnt; i++)
		calls->entries[i] = entries[i];
	calls->entry_cnt = entry_cnt;
	ret = open_decoder(calls);
	if (ret)
		return ret;
	ret = read_starts(calls);
	if (ret)
		return ret;
	ret = elf_dynamic_each_slot(file, add_slot, calls);
	if (ret)
		return ret;
	if (calls->slot_cnt)
		qsort(calls->slots, calls->slot_cnt, sizeof(*calls->slots), compare_u64);
	*out = take_ptr(calls);
	return 0;
}
_Static_assert(offsetof(struct slot, vma) == 0, "compare_u64 sorts slots by it");

/* Index of the first start above `vma`. */
static size_t upper_start(const struct tail_calls *calls, uint64_t vma)
{
	size_t low = 0, high = calls->start_cnt;

	/* Halves the range each turn: at most 64 turns. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (calls->starts[mid] <= vma)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t tail_calls_limit(const struct tail_calls *calls, uint64_t vma)
{
	uint64_t end = vma + elf_file_text_room(calls->file, vma);
	size_t next = upper_start(calls, vma);

	return next < calls->start_cnt && calls->starts[next] < end ? calls->starts[next] : end;
}

static const struct slot *find_slot(const struct tail_calls *calls, uint64_t vma)
{
	return calls->slot_cnt ? bsearch(&vma, calls->slots, calls->slot_cnt, sizeof(*calls->slots),
					 compare_u64)
			       : NULL;
}

static const struct tail_calls_entry *find_entry(const struct tail_calls *calls, uint64_t vma)
{
	for (size_t i = 0; i < calls->entry_cnt; i++)
		if (calls->entries[i].vma == vma)
			return &calls->entries[i];
	return NULL;
}

static bool find_block(const struct scan *scan, uint64_t vma)
{
	for (size_t i = 0; i < scan->block_cnt; i++)
		if (scan->blocks[i].vma == vma)
			return true;
	return false;
}

/* Puts `vma` on the work list unless it has been there. 0 or -ENOMEM. */
static int add_block(struct scan *scan, uint64_t vma)
{
	struct block block = {vma, tail_calls_limit(scan->calls, vma), vma};
	int ret;

	if (find_block(scan, vma))
		return 0;
	for (size_t i = 0; i < scan->block_cnt; i++)
		if (scan->blocks[i].limit == block.limit)
			block.root = scan->blocks[i].root;
	if (scan->block_cnt == BLOCK_MAX || block.limit <= vma) {
		scan->incomplete = true;
		return 0;
	}
	ret = vec_reserve(&scan->blocks, &scan->block_cap, scan->block_cnt + 1);
	if (!ret)
		scan->blocks[scan->block_cnt++] = block;
	return ret;
}

/* Decodes the instruction at `vma` into calls->insn; false if there is none. */
static bool decode(struct tail_calls *calls, uint64_t vma)
{
	uint64_t room, at = vma;
	const uint8_t *code = bytes_at(calls->file, vma, &room);
	size_t len = room;

	return code && cs_disasm_iter(calls->handle, &code, &len, &at, calls->insn);
}

/* The address that a direct branch leads to; 0: it is not direct. */
static uint64_t direct_target(const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	return insn->detail->x86.op_count == 1 && op->type == X86_OP_IMM ? (uint64_t)op->imm : 0;
}

/* The GOT slot that the branch goes through; NULL: none that is known. */
static const struct slot *branch_slot(const struct tail_calls *calls, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (insn->detail->x86.op_count != 1 || op->type != X86_OP_MEM ||
	    op->mem.base != X86_REG_RIP || op->mem.index != X86_REG_INVALID || !calls->slot_cnt)
		return NULL;
	return find_slot(calls, insn->address + insn->size + (uint64_t)op->mem.disp);
}

/* The entry point behind a slot, as enum hb_fn; -1: none. */
static int slot_fn(const struct tail_calls *calls, const struct slot *slot)
{
	const struct tail_calls_entry *entry = find_entry(calls, slot->target_vma);

	return entry ? (int)entry->fn : slot->fn;
}

/* Is there an entry point, or a stub of one, at `vma`? Overwrites calls->insn. */
static bool leads_to_entry(struct tail_calls *calls, uint64_t vma)
{
	const struct slot *slot;

	if (find_entry(calls, vma))
		return true;
	if (!decode(calls, vma))
		return false;
	if (calls->insn->id == X86_INS_ENDBR64 && !decode(calls, vma + calls->insn->size))
		return false;
	slot = calls->insn->id == X86_INS_JMP ? branch_slot(calls, calls->insn) : NULL;
	return slot && slot_fn(calls, slot) >= 0;
}

/* Remembers the piece around a call at `vma` of an entry point, unless the entry holds it. */
static void note_helper(struct scan *scan, const struct block *block, uint64_t vma)
{
	struct tail_calls_result *result = &scan->result;
	uint64_t start = block->root < vma ? block->root : vma;

	scan->result.calls = true;
	if (block->limit == scan->blocks[0].limit || result->helper_cnt == TAIL_CALLS_HELPER_MAX)
		return;
	for (size_t i = 0; i < result->helper_cnt; i++)
		if (result->helpers[i].vma + result->helpers[i].size_bytes == block->limit)
			return;
	result->helpers[result->helper_cnt++] =
		(struct tail_calls_helper){start, block->limit - start};
}

static void on_call(struct scan *scan, const struct block *block)
{
	struct tail_calls *calls = scan->calls;
	const struct slot *slot = branch_slot(calls, calls->insn);
	uint64_t at = calls->insn->address, target = direct_target(calls->insn);

	scan->calls_anything = true;
	if ((slot && slot_fn(calls, slot) >= 0) || (target && leads_to_entry(calls, target)))
		note_helper(scan, block, at);
}

/* A jump, taken. 0 or -ENOMEM. */
static int on_jump(struct scan *scan)
{
	struct tail_calls *calls = scan->calls;
	const struct slot *slot = branch_slot(calls, calls->insn);
	uint64_t target = slot ? slot->target_vma : direct_target(calls->insn);
	const struct tail_calls_entry *entry = find_entry(calls, target);

	if (target == scan->entry->vma)
		return 0;
	if (entry || (slot && slot->fn >= 0)) {
		scan->result.jumps |= 1U << (entry ? (int)entry->fn : slot->fn);
		return 0;
	}
	if (target)
		return add_block(scan, target);
	scan->incomplete = true;
	return 0;
}

/* Follows whether rax holds the constant 0: "xor %eax,%eax" and nothing to it since. */
static bool keeps_zero(const struct tail_calls *calls, bool zero)
{
	const cs_insn *insn = calls->insn;
	uint8_t read_cnt, written_cnt;
	cs_regs read, written;

	if (insn->id == X86_INS_XOR && insn->size == 2 && insn->bytes[1] == 0xc0)
		return insn->bytes[0] == 0x31 || insn->bytes[0] == 0x33;
	if (!zero || insn->id == X86_INS_CALL ||
	    cs_regs_access(calls->handle, insn, read, &read_cnt, written, &written_cnt))
		return false;
	for (uint8_t i = 0; i < written_cnt; i++)
		if (written[i] == X86_REG_RAX || written[i] == X86_REG_EAX ||
		    written[i] == X86_REG_AX || written[i] == X86_REG_AL ||
		    written[i] == X86_REG_AH)
			return false;
	return true;
}

/* Decodes from a block's start to the next known block or where control leaves. 0 or -ENOMEM. */
static int scan_block(struct scan *scan, struct block block)
{
	struct tail_calls *calls = scan->calls;
	const cs_insn *insn = calls->insn;
	bool zero = false;
	uint64_t next;

	for (uint64_t at = block.vma; at < block.limit; at = next) {
		int ret = 0;

		if (at != block.vma && find_block(scan, at))
			return 0;
		if (scan->insn_cnt == INSN_MAX || !decode(calls, at)) {
			scan->incomplete = true;
			return 0;
		}
		scan->insn_cnt++;
		next = at + insn->size;
		zero = keeps_zero(calls, zero);
		if (cs_insn_group(calls->handle, insn, X86_GRP_RET)) {
			scan->returns = true;
			scan->returns_value |= !zero;
			return 0;
		}
		if (insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT)
			return 0;
		if (insn->id == X86_INS_JMP)
			return on_jump(scan);
		if (cs_insn_group(calls->handle, insn, X86_GRP_JUMP))
			ret = on_jump(scan);
		else if (cs_insn_group(calls->handle, insn, X86_GRP_CALL))
			on_call(scan, &block);
		if (ret)
			return ret;
	}
	return 0;
}

/* "test; je ret; jmp free": a free that returns early did nothing if it is as short as that. */
#define NO_WORK_INSN_MAX 16

static bool can_succeed_without_jump(const struct scan *scan)
{
	if (scan->incomplete)
		return true;
	if (scan->entry->fn == HB_FN_FREE)
		return scan->returns && (scan->calls_anything || scan->insn_cnt > NO_WORK_INSN_MAX);
	return scan->returns_value;
}

int tail_calls_scan(struct tail_calls *calls, const struct tail_calls_entry *entry,
		    struct tail_calls_result *out)
{
	struct scan scan = {.calls = calls, .entry = entry};
	int ret = add_block(&scan, entry->vma);

	/* The list grows meanwhile, to BLOCK_MAX at most. */
	for (size_t i = 0; i < scan.block_cnt && !ret; i++)
		ret = scan_block(&scan, scan.blocks[i]);
	free(scan.blocks);
	if (ret)
		return ret;
	scan.result.always = scan.result.jumps && !can_succeed_without_jump(&scan);
	*out = scan.result;
	return 0;
}
