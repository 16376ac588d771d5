// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the code of a file and one of its entry points. Out: which other ones it can jump to, and
 * where it returns. A recursive descent over direct jumps with a work list.
 *
 * What follows a call that never returns may belong to another function: straight code that meets
 * the next known function start right behind a call ends there. Must not know what the answer is
 * used for.
 */
#include "tail_calls.h"

#include "cleanup.h"
#include "vec.h"

#include <errno.h>

/* Bounds of one scan, several times what the largest entry point (jemalloc's realloc) needs. */
#define BLOCK_MAX 2048
#define INSN_MAX  16384

/* Where to go on decoding. */
struct block {
	uint64_t vma;
	uint64_t limit; /* next function start */
	uint64_t root;	/* where the first jump into this stretch between two starts led to */
	struct known_regs regs; /* on every way that leads here */
	bool done;		/* decoded, with these */
};

/* State of one scan. */
struct scan {
	struct code_map *map;
	const struct code_map_entry *entry;
	const cs_insn *insn; /* under consideration; the map's */
	bool until_calls;    /* a way ends where it calls an entry point of its kind */
	/* Known: only ways on which this is not NULL are followed, and may end in a jump there. */
	struct known_value forward;
	struct known_value unknown_jump; /* where the first jump goes that is not followed */
	struct known_regs regs;		 /* before the instruction */
	struct block *blocks;		 /* found so far, none twice */
	size_t block_cnt, block_cap;
	size_t insn_cnt;
	bool incomplete;     /* some way leads where the scan does not follow */
	bool calls_anything; /* contains a call */
	bool returns;	     /* contains a return */
	bool returns_value;  /* contains a return of anything but a constant 0 */
	bool too_many_rets;  /* more than the result holds */
	struct tail_calls_result result;
};

/* If `vma` is known to be led to: now also with the registers as they are. */
static bool find_block(struct scan *scan, uint64_t vma)
{
	for (size_t i = 0; i < scan->block_cnt; i++) {
		if (scan->blocks[i].vma != vma)
			continue;
		if (known_regs_meet(&scan->blocks[i].regs, &scan->regs))
			scan->blocks[i].done = false;
		return true;
	}
	return false;
}

/* Puts `vma` on the work list unless it has been there. 0 or -ENOMEM. */
static int add_block(struct scan *scan, uint64_t vma)
{
	struct block block = {vma, code_map_limit(scan->map, vma), vma, scan->regs, false};
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

/* Remembers the piece around a call at `vma` of an entry point, unless the entry holds it. */
static void note_helper(struct scan *scan, const struct block *block, uint64_t vma)
{
	struct tail_calls_result *result = &scan->result;
	uint64_t start = block->root < vma ? block->root : vma;

	if (block->limit == scan->blocks[0].limit || result->helper_cnt == TAIL_CALLS_HELPER_MAX)
		return;
	for (size_t i = 0; i < result->helper_cnt; i++)
		if (result->helpers[i].vma + result->helpers[i].size_bytes == block->limit)
			return;
	result->helpers[result->helper_cnt++] =
		(struct tail_calls_helper){start, block->limit - start};
}

/* A call; true: of an entry point that allocates, or frees, as ours. Overwrites the instruction. */
static bool on_call(struct scan *scan, const struct block *block)
{
	uint64_t at = scan->insn->address;
	struct code_map_branch branch =
		code_map_call(scan->map, code_map_branch(scan->map, scan->insn));

	scan->calls_anything = true;
	if (branch.fn < 0)
		return false;
	scan->result.calls = true;
	scan->result.calls_out |= !branch.vma;
	note_helper(scan, block, at);
	return branch.fn != HB_FN_LINKER &&
	       (branch.fn == HB_FN_FREE) == (scan->entry->fn == HB_FN_FREE);
}

/* Control goes there. 0 or -ENOMEM. */
static int go(struct scan *scan, struct code_map_branch branch)
{
	if (branch.vma == scan->entry->vma)
		return 0;
	if (branch.fn >= 0) {
		scan->result.jumps |= 1U << branch.fn;
		return 0;
	}
	return add_block(scan, branch.vma);
}

/* A jump, taken. 0 or -ENOMEM. */
static int on_jump(struct scan *scan)
{
	struct code_map_branch branch = code_map_branch(scan->map, scan->insn);
	struct known_value to = known_regs_operand(&scan->regs, scan->insn);

	if (branch.vma || branch.fn >= 0)
		return go(scan, branch);
	if (known_value_equal(&to, &scan->forward))
		return 0;
	if (!scan->incomplete)
		scan->unknown_jump = to;
	scan->incomplete = true;
	return 0;
}

/* A conditional jump, whose condition may be that scan->forward is NULL. As follow(). */
static int on_condition(struct scan *scan)
{
	bool known = known_value_equal(&scan->regs.tested, &scan->forward);
	int ret;

	if (known && scan->insn->id == X86_INS_JE)
		return 0;
	ret = on_jump(scan);
	return !ret && known && scan->insn->id == X86_INS_JNE ? 1 : ret;
}

/*
 * Straight code meets the start of another function. Behind a call it does not get there; else it
 * goes on in that.
 */
static int on_limit(struct scan *scan, const struct block *block, bool behind_call)
{
	struct code_map_branch branch = {block->limit, -1};

	if (behind_call)
		return 0;
	branch.fn = code_map_entry_at(scan->map, block->limit);
	return go(scan, branch);
}

/* Follows whether rax holds the constant 0: "xor %eax,%eax" and nothing to it since. */
static bool keeps_zero(const struct scan *scan, bool zero)
{
	const cs_insn *insn = scan->insn;
	uint8_t read_cnt, written_cnt;
	cs_regs read, written;

	if (insn->id == X86_INS_XOR && insn->size == 2 && insn->bytes[1] == 0xc0)
		return insn->bytes[0] == 0x31 || insn->bytes[0] == 0x33;
	if (!zero || insn->id == X86_INS_CALL ||
	    cs_regs_access(code_map_decoder(scan->map), insn, read, &read_cnt, written,
			   &written_cnt))
		return false;
	for (uint8_t i = 0; i < written_cnt; i++)
		if (written[i] == X86_REG_RAX || written[i] == X86_REG_EAX ||
		    written[i] == X86_REG_AX || written[i] == X86_REG_AL ||
		    written[i] == X86_REG_AH)
			return false;
	return true;
}

static void on_return(struct scan *scan, bool zero)
{
	struct tail_calls_result *result = &scan->result;

	scan->returns = true;
	scan->returns_value |= !zero;
	/* Two ways can run into one return; each of them comes here. */
	for (size_t i = 0; i < result->ret_cnt; i++)
		if (result->rets[i] == scan->insn->address)
			return;
	if (result->ret_cnt == TAIL_CALLS_RET_MAX)
		scan->too_many_rets = true;
	else
		result->rets[result->ret_cnt++] = scan->insn->address;
}

/* Does the way end behind the instruction, or go on elsewhere? 0, -ENOMEM, or 1: it ends. */
static int follow(struct scan *scan, const struct block *block, bool zero)
{
	const csh decoder = code_map_decoder(scan->map);
	const cs_insn *insn = scan->insn;
	int ret;

	if (cs_insn_group(decoder, insn, X86_GRP_RET)) {
		on_return(scan, zero);
		return 1;
	}
	if (insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT || insn->id == X86_INS_INT3)
		return 1;
	if (insn->id == X86_INS_JMP) {
		ret = on_jump(scan);
		return ret ? ret : 1;
	}
	if (cs_insn_group(decoder, insn, X86_GRP_JUMP))
		return on_condition(scan);
	if (cs_insn_group(decoder, insn, X86_GRP_CALL))
		return on_call(scan, block) && scan->until_calls;
	return 0;
}

/* The instruction at `at`; NULL: there is none, or it is one too many. */
static const cs_insn *decode(struct scan *scan, uint64_t at)
{
	scan->insn = scan->insn_cnt < INSN_MAX ? code_map_decode(scan->map, at) : NULL;
	scan->incomplete |= !scan->insn;
	scan->insn_cnt++;
	return scan->insn;
}

/* Decodes from a block's start to the next known block or where control leaves. 0 or -ENOMEM. */
static int scan_block(struct scan *scan, struct block block)
{
	bool zero = false, behind_call = false;
	uint64_t next;

	scan->regs = block.regs;
	for (uint64_t at = block.vma; at < block.limit; at = next) {
		struct known_regs after = scan->regs;
		int ret;

		if (at != block.vma && find_block(scan, at))
			return 0;
		if (!decode(scan, at))
			return 0;
		next = at + scan->insn->size;
		zero = keeps_zero(scan, zero);
		/* What fills the space behind a call that never returns. */
		if (scan->insn->id != X86_INS_NOP)
			behind_call = cs_insn_group(code_map_decoder(scan->map), scan->insn,
						    X86_GRP_CALL);
		known_regs_step(code_map_decoder(scan->map), scan->insn, &after);
		ret = follow(scan, &block, zero);
		if (ret)
			return ret < 0 ? ret : 0;
		scan->regs = after;
	}
	return on_limit(scan, &block, behind_call);
}

/* 0 or -ENOMEM. */
static int scan_all(struct scan *scan)
{
	int ret = add_block(scan, scan->entry->vma);
	bool more = true;

	/* The list grows to BLOCK_MAX at most, and what is known at a block only shrinks. */
	while (more && !ret) {
		more = false;
		for (size_t i = 0; i < scan->block_cnt && !ret; i++) {
			if (scan->blocks[i].done)
				continue;
			scan->blocks[i].done = more = true;
			ret = scan_block(scan, scan->blocks[i]);
		}
	}
	free(scan->blocks);
	return ret;
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

int tail_calls_scan(struct code_map *map, const struct code_map_entry *entry,
		    struct tail_calls_result *out)
{
	struct scan scan = {.map = map, .entry = entry};
	struct scan before = {.map = map, .entry = entry, .until_calls = true};
	struct scan forward = {.map = map, .entry = entry};
	int ret = scan_all(&scan);

	if (!ret && scan.result.calls)
		ret = scan_all(&before);
	forward.forward = scan.unknown_jump;
	if (!ret && forward.forward.how != KNOWN_NOTHING)
		ret = scan_all(&forward);
	if (ret)
		return ret;
	if (forward.block_cnt && !can_succeed_without_jump(&forward))
		scan.result.forward = forward.forward;
	scan.result.always = scan.result.jumps && !can_succeed_without_jump(&scan);
	scan.result.hands_over = scan.result.calls && !can_succeed_without_jump(&before);
	scan.result.followed = !scan.incomplete && !scan.too_many_rets;
	*out = scan.result;
	return 0;
}
