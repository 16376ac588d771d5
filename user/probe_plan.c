// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the code of a function. Out: the instruction that gets the probe.
 *
 * Walks the instructions from the first one on, as long as executing them is certain and leaves
 * alone what the probe needs, and takes the first that the kernel emulates. What is emulated is
 * decided by branch_setup_xol_ops() and push_setup_xol_ops() in arch/x86/kernel/uprobes.c (push
 * since 4.15): nop 90, jmp e9 eb, call e8, jcc 70-7f and 0f 80-8f, push 50-57 also with REX.B.
 * Newer kernels know more nops; that is not relied upon. endbr64 is single-stepped.
 * Must not know which function it is or what the probe does.
 */
#include "probe_plan.h"

#include "../bpf/abi.h"
#include "cleanup.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How far to look; prologues are shorter (jemalloc's free has 48 bytes before its first branch). */
#define INSN_MAX 32

/* Registers of arguments, in their order; one more than any handler reads. */
#define ARG_CNT	 4
#define ARG_NONE ARG_CNT

/* One walk. */
struct walk {
	csh handle;
	cs_insn *insn;	    /* the instruction under consideration */
	uint64_t vma;	    /* of the first one */
	uint64_t limit_vma; /* the first place behind `vma` that some branch leads to */
	uint32_t live_regs;
	/*
	 * Which argument the n-th register of arguments holds, ARG_NONE: another value. mimalloc
	 * puts its heap before the arguments and goes on as a function that takes it.
	 */
	uint8_t holds[ARG_CNT];
	bool returns, skip_null;
	bool null_tested;  /* the flags say whether the first argument is NULL */
	uint32_t sp_bytes; /* at `insn` */
};

/* The number of legacy prefixes of the instruction at `bytes`. */
static size_t count_prefixes(const uint8_t *bytes, size_t len)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					   0x66, 0x67, 0xf0, 0xf2, 0xf3};
	size_t cnt = 0;

	while (cnt < len && memchr(prefixes, bytes[cnt], sizeof(prefixes)))
		cnt++;
	return cnt;
}

/* Prefixes that the kernel accepts no uprobe on: is_prefix_bad() in its uprobes.c. */
static bool is_refused(const cs_insn *insn)
{
	static const uint8_t bad[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};
	size_t cnt = count_prefixes(insn->bytes, insn->size);

	for (size_t i = 0; i < cnt; i++)
		if (memchr(bad, insn->bytes[i], sizeof(bad)))
			return true;
	return false;
}

static bool is_jcc(const uint8_t *op, size_t len)
{
	return (op[0] & 0xf0) == 0x70 || (len >= 2 && op[0] == 0x0f && (op[1] & 0xf0) == 0x80);
}

static bool is_push_reg(const uint8_t *op)
{
	return (op[0] & 0xf8) == 0x50;
}

static bool is_emulated(const cs_insn *insn)
{
	const uint8_t *op = insn->bytes;
	size_t len = insn->size;

	if (is_push_reg(op))
		return len == 1;
	if (op[0] == 0x41 && len == 2)
		return is_push_reg(op + 1);
	if (op[0] == 0x90)
		return true;
	/* "bnd" means nothing any more; other prefixes are refused on branches. */
	if (op[0] == 0xf2) {
		op++;
		len--;
	}
	return op[0] == 0xe8 || op[0] == 0xe9 || op[0] == 0xeb || is_jcc(op, len);
}

/* The number of the argument register that `reg` is (part of); -1: none. */
static int arg_number(uint16_t reg)
{
	static const uint16_t parts[ARG_CNT][5] = {
		{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
		{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
		{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
		{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
	};

	for (int number = 0; number < ARG_CNT && reg != X86_REG_INVALID; number++)
		for (size_t i = 0; i < ARRAY_CNT(parts[number]); i++)
			if (parts[number][i] == reg)
				return number;
	return -1;
}

/* A copy of a whole register to another: what `to` will hold; else ARG_NONE. */
static uint8_t copied_arg(const struct walk *walk)
{
	const cs_x86 *x86 = &walk->insn->detail->x86;
	/* AT&T order of operands: the destination comes last. */
	const cs_x86_op *from = &x86->operands[0];
	int number;

	if (walk->insn->id != X86_INS_MOV || x86->op_count != 2 || from->type != X86_OP_REG ||
	    from->size != 8)
		return ARG_NONE;
	number = arg_number(from->reg);
	return number < 0 ? ARG_NONE : walk->holds[number];
}

/* Is every argument that is needed `shift` registers on? */
static bool args_at(const struct walk *walk, int shift)
{
	for (int arg = 0; arg + shift < ARG_CNT; arg++)
		if (walk->live_regs & 1U << arg && walk->holds[arg + shift] != arg)
			return false;
	return true;
}

/* Is every argument that is needed still somewhere? */
static bool args_kept(const struct walk *walk)
{
	for (int arg = 0; arg < ARG_CNT; arg++)
		if (walk->live_regs & 1U << arg && !memchr(walk->holds, arg, sizeof(walk->holds)))
			return false;
	return true;
}

static bool is_place(const struct walk *walk)
{
	return args_at(walk, 0) || args_at(walk, 1);
}

static bool is_frame_reg(uint16_t reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP || reg == X86_REG_BP || reg == X86_REG_BPL;
}

static bool is_stack_reg(uint16_t reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

/* Bytes that the instruction takes from the stack; false: it moves rsp in an unfollowed way. */
static bool stack_effect(const cs_insn *insn, uint32_t *bytes)
{
	const cs_x86 *x86 = &insn->detail->x86;
	/* AT&T order of operands: the destination comes last. */
	const cs_x86_op *from = &x86->operands[0], *to = &x86->operands[1];

	if (insn->id == X86_INS_PUSH && !count_prefixes(insn->bytes, insn->size)) {
		*bytes = 8;
		return true;
	}
	if (insn->id != X86_INS_SUB || x86->op_count != 2 || to->type != X86_OP_REG ||
	    to->reg != X86_REG_RSP || from->type != X86_OP_IMM)
		return false;
	if (from->imm < 0 || from->imm > HB_COOKIE_SP_BYTES_MAX || from->imm % 8)
		return false;
	*bytes = (uint32_t)from->imm;
	return true;
}

/* Registers: may the walk go on behind the instruction? Adds up sp_bytes. */
static bool pass_writes(struct walk *walk)
{
	uint8_t copied = copied_arg(walk);
	uint8_t read_cnt, written_cnt;
	cs_regs read, written;
	uint32_t bytes;

	if (cs_regs_access(walk->handle, walk->insn, read, &read_cnt, written, &written_cnt))
		return false;
	for (uint8_t i = 0; i < written_cnt; i++) {
		int number = arg_number(written[i]);

		if (is_frame_reg(written[i]))
			return false;
		if (number >= 0)
			walk->holds[number] = copied;
		if (number == 0)
			walk->skip_null = false;
		if (!is_stack_reg(written[i]))
			continue;
		if (walk->returns || !stack_effect(walk->insn, &bytes) ||
		    walk->sp_bytes + bytes > HB_COOKIE_SP_BYTES_MAX)
			return false;
		walk->sp_bytes += bytes;
	}
	return args_kept(walk);
}

static bool is_branch(const struct walk *walk)
{
	static const unsigned groups[] = {X86_GRP_JUMP, X86_GRP_CALL, X86_GRP_RET,
					  X86_GRP_INT,	X86_GRP_IRET, X86_GRP_BRANCH_RELATIVE};

	for (size_t i = 0; i < ARRAY_CNT(groups); i++)
		if (cs_insn_group(walk->handle, walk->insn, groups[i]))
			return true;
	return false;
}

static bool is_code(const cs_insn *insn, const char *bytes, size_t len)
{
	return insn->size >= len && !memcmp(insn->bytes, bytes, len);
}

/* Follows whether the flags compare the first argument with NULL. */
static void note_flags(struct walk *walk)
{
	const cs_insn *insn = walk->insn;

	/* test %rdi,%rdi; cmp $0,%rdi */
	if (is_code(insn, "\x48\x85\xff", 3) || is_code(insn, "\x48\x83\xff\0", 4))
		walk->null_tested = true;
	else if (insn->id != X86_INS_MOV && insn->id != X86_INS_LEA && insn->id != X86_INS_PUSH &&
		 insn->id != X86_INS_NOP)
		walk->null_tested = false;
}

/* A branch that is taken for NULL only. */
static bool is_null_branch(const struct walk *walk)
{
	return walk->skip_null && walk->null_tested &&
	       (is_code(walk->insn, "\x74", 1) || is_code(walk->insn, "\x0f\x84", 2));
}

/* Is the instruction behind this one sure to be executed, and as good a place as this one? */
static bool pass(struct walk *walk)
{
	if (is_null_branch(walk))
		return true;
	if (is_branch(walk) || !pass_writes(walk))
		return false;
	note_flags(walk);
	return true;
}

/* "push %r12": capstone's text without the operand size that nobody writes in 64-bit code. */
static void print_insn(const cs_insn *insn, char *text, size_t bytes)
{
	static const char *const plain[] = {"push", "pop", "call", "jmp", "ret"};
	size_t len = strlen(insn->mnemonic);

	for (size_t i = 0; i < ARRAY_CNT(plain); i++)
		if (len == strlen(plain[i]) + 1 && insn->mnemonic[len - 1] == 'q' &&
		    !memcmp(insn->mnemonic, plain[i], len - 1))
			len--;
	/* A text that does not fit is cut: it is for people. */
	snprintf(text, bytes, "%.*s%s%.*s", (int)len, insn->mnemonic, *insn->op_str ? " " : "",
		 (int)(bytes - len - 2), insn->op_str);
}

static void note_plan(const struct walk *walk, struct probe_plan *plan)
{
	*plan = (struct probe_plan){
		.delta = (uint32_t)(walk->insn->address - walk->vma),
		.sp_bytes = walk->sp_bytes,
		.emulated = is_emulated(walk->insn),
		.shifted = !args_at(walk, 0),
	};
	print_insn(walk->insn, plan->insn, sizeof(plan->insn));
}

/*
 * The lowest place behind the first instruction that a direct branch of the function leads to: a
 * probe there or beyond could be hit twice in a call. Decodes everything in line; data among the
 * code can only add targets, which is the safe side.
 */
static uint64_t find_limit(const struct walk *walk, const uint8_t *code, size_t len)
{
	uint64_t at = walk->vma, limit = UINT64_MAX;

	/* Each turn eats at least a byte. */
	while (len) {
		const cs_x86_op *op = &walk->insn->detail->x86.operands[0];

		if (!cs_disasm_iter(walk->handle, &code, &len, &at, walk->insn)) {
			code++;
			len--;
			at++;
			continue;
		}
		if (!cs_insn_group(walk->handle, walk->insn, X86_GRP_JUMP) ||
		    op->type != X86_OP_IMM)
			continue;
		if ((uint64_t)op->imm > walk->vma && (uint64_t)op->imm < limit)
			limit = (uint64_t)op->imm;
	}
	return limit;
}

/* The walk itself; see the top of the file. 0 or -EBADMSG. */
static int find_place(struct walk *walk, const uint8_t *code, size_t len, struct probe_plan *out)
{
	bool have_stepped = false;
	uint64_t at = walk->vma;
	size_t i;

	for (i = 0; i < INSN_MAX && at < walk->limit_vma; i++) {
		bool emulated;

		if (!cs_disasm_iter(walk->handle, &code, &len, &at, walk->insn))
			break;
		emulated = is_emulated(walk->insn) && is_place(walk);
		/* Worst: the first one, though refused; better: one that can be stepped. */
		if (i == 0 || emulated ||
		    (!have_stepped && !is_refused(walk->insn) && is_place(walk)))
			note_plan(walk, out);
		have_stepped |= !is_refused(walk->insn) && is_place(walk);
		/* The branch for NULL will do, but behind it free(NULL) costs nothing. */
		if ((emulated && !is_null_branch(walk)) || !pass(walk))
			break;
	}
	return at > walk->vma ? 0 : -EBADMSG;
}

int probe_plan_make(const uint8_t *code, size_t len, uint64_t vma, uint32_t live_regs, bool returns,
		    bool skip_null, struct probe_plan *out)
{
	struct walk walk = {
		.vma = vma,
		.live_regs = live_regs,
		.holds = {0, 1, 2, 3},
		.returns = returns,
		.skip_null = skip_null,
	};
	struct probe_plan plan;
	int ret = -ENOMEM;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &walk.handle))
		return -ENOMEM;
	cs_option(walk.handle, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(walk.handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	walk.insn = cs_malloc(walk.handle);
	if (walk.insn) {
		walk.limit_vma = find_limit(&walk, code, len);
		ret = find_place(&walk, code, len, &plan);
		cs_free(walk.insn, 1);
	}
	cs_close(&walk.handle);
	if (!ret)
		*out = plan;
	return ret;
}
