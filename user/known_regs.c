// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: instructions in the order of their execution. Out: which registers hold an address or the
 * value of a variable that has one. What is not understood makes a register unknown. Variables are
 * taken not to change in between, which a reader of their present value takes as well.
 */
#include "known_regs.h"

#include "cleanup.h"

/* All names of the registers, those of 64 bits first. */
static const x86_reg names[][KNOWN_REG_CNT] = {
	{X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP, X86_REG_RSI,
	 X86_REG_RDI, X86_REG_R8, X86_REG_R9, X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13,
	 X86_REG_R14, X86_REG_R15},
	{X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX, X86_REG_ESP, X86_REG_EBP, X86_REG_ESI,
	 X86_REG_EDI, X86_REG_R8D, X86_REG_R9D, X86_REG_R10D, X86_REG_R11D, X86_REG_R12D,
	 X86_REG_R13D, X86_REG_R14D, X86_REG_R15D},
	{X86_REG_AX, X86_REG_CX, X86_REG_DX, X86_REG_BX, X86_REG_SP, X86_REG_BP, X86_REG_SI,
	 X86_REG_DI, X86_REG_R8W, X86_REG_R9W, X86_REG_R10W, X86_REG_R11W, X86_REG_R12W,
	 X86_REG_R13W, X86_REG_R14W, X86_REG_R15W},
	{X86_REG_AL, X86_REG_CL, X86_REG_DL, X86_REG_BL, X86_REG_SPL, X86_REG_BPL, X86_REG_SIL,
	 X86_REG_DIL, X86_REG_R8B, X86_REG_R9B, X86_REG_R10B, X86_REG_R11B, X86_REG_R12B,
	 X86_REG_R13B, X86_REG_R14B, X86_REG_R15B},
	{X86_REG_AH, X86_REG_CH, X86_REG_DH, X86_REG_BH},
};

/*
 * Functions may change these (System V ABI, x86-64, section 3.2.1): all but rbx, rsp, rbp, r12-15.
 */
#define CHANGED_BY_CALLS 0x0fc7

/* Number of a register by one of its first `name_cnt` kinds of names; -1: none of them. */
static int number_of(x86_reg reg, size_t name_cnt)
{
	for (size_t i = 0; i < name_cnt; i++)
		for (int n = 0; n < KNOWN_REG_CNT; n++)
			if (names[i][n] == reg && reg != X86_REG_INVALID)
				return n;
	return -1;
}

bool known_value_equal(const struct known_value *a, const struct known_value *b)
{
	return a->how != KNOWN_NOTHING && a->how == b->how && a->vma == b->vma;
}

static struct known_value reg_value(const struct known_regs *regs, x86_reg reg)
{
	int n = number_of(reg, 1);

	return n < 0 ? (struct known_value){} : regs->of[n];
}

/* The address of a memory operand. */
static struct known_value address_of(const struct known_regs *regs, const cs_insn *insn,
				     const x86_op_mem *mem)
{
	struct known_value value;

	if (mem->index != X86_REG_INVALID || mem->segment != X86_REG_INVALID)
		return (struct known_value){};
	if (mem->base == X86_REG_RIP)
		value = (struct known_value){insn->address + insn->size, KNOWN_ADDRESS};
	else if (mem->base == X86_REG_INVALID)
		value = (struct known_value){0, KNOWN_ADDRESS};
	else
		value = reg_value(regs, mem->base);
	if (value.how == KNOWN_ADDRESS)
		value.vma += (uint64_t)mem->disp;
	else if (mem->disp)
		return (struct known_value){};
	return value;
}

/* What memory at a known address holds. */
static struct known_value content_of(struct known_value address)
{
	switch (address.how) {
	case KNOWN_ADDRESS:
		return (struct known_value){address.vma, KNOWN_AT};
	case KNOWN_AT:
		return (struct known_value){address.vma, KNOWN_AT_AT};
	case KNOWN_NOTHING:
	case KNOWN_AT_AT:
	case KNOWN_CNT:
		break;
	}
	return (struct known_value){};
}

static struct known_value operand_value(const struct known_regs *regs, const cs_insn *insn,
					const cs_x86_op *op)
{
	if (op->size != 8)
		return (struct known_value){};
	if (op->type == X86_OP_REG)
		return reg_value(regs, op->reg);
	if (op->type == X86_OP_MEM)
		return content_of(address_of(regs, insn, &op->mem));
	return (struct known_value){};
}

struct known_value known_regs_operand(const struct known_regs *regs, const cs_insn *insn)
{
	return insn->detail->x86.op_count
		       ? operand_value(regs, insn, &insn->detail->x86.operands[0])
		       : (struct known_value){};
}

/* What a comparison with 0 compares. */
static struct known_value tested_by(const struct known_regs *regs, const cs_insn *insn)
{
	const cs_x86_op *ops = insn->detail->x86.operands;

	if (insn->id == X86_INS_TEST && ops[0].type == X86_OP_REG && ops[1].type == X86_OP_REG &&
	    ops[0].reg == ops[1].reg)
		return operand_value(regs, insn, &ops[0]);
	if (insn->id == X86_INS_CMP && ops[1].type == X86_OP_IMM && !ops[1].imm)
		return operand_value(regs, insn, &ops[0]);
	return (struct known_value){};
}

/* What the instruction puts into the register that it is about. */
static struct known_value moved_by(const struct known_regs *regs, const cs_insn *insn)
{
	const cs_x86_op *ops = insn->detail->x86.operands;

	if (insn->id == X86_INS_MOV)
		return operand_value(regs, insn, &ops[1]);
	if (insn->id == X86_INS_LEA && ops[0].size == 8)
		return address_of(regs, insn, &ops[1].mem);
	return (struct known_value){};
}

/* Forgets what the instruction may write. */
static void forget(csh decoder, const cs_insn *insn, struct known_regs *regs)
{
	uint8_t read_cnt, written_cnt;
	cs_regs read, written;

	if (cs_regs_access(decoder, insn, read, &read_cnt, written, &written_cnt)) {
		*regs = (struct known_regs){};
		return;
	}
	for (uint8_t i = 0; i < written_cnt; i++) {
		int n = number_of(written[i], ARRAY_CNT(names));

		if (n >= 0)
			regs->of[n] = (struct known_value){};
		if (written[i] == X86_REG_EFLAGS)
			regs->tested = (struct known_value){};
	}
	if (!cs_insn_group(decoder, insn, X86_GRP_CALL))
		return;
	regs->tested = (struct known_value){};
	for (int n = 0; n < KNOWN_REG_CNT; n++)
		if (CHANGED_BY_CALLS & 1 << n)
			regs->of[n] = (struct known_value){};
}

void known_regs_step(csh decoder, const cs_insn *insn, struct known_regs *regs)
{
	const cs_x86 *x86 = &insn->detail->x86;
	struct known_value moved = {}, tested = {};
	int into = -1;

	if (x86->op_count == 2) {
		if (x86->operands[0].type == X86_OP_REG)
			into = number_of(x86->operands[0].reg, 1);
		moved = moved_by(regs, insn);
		tested = tested_by(regs, insn);
	}
	forget(decoder, insn, regs);
	if (into >= 0 && moved.how != KNOWN_NOTHING)
		regs->of[into] = moved;
	if (tested.how != KNOWN_NOTHING)
		regs->tested = tested;
}

bool known_regs_meet(struct known_regs *regs, const struct known_regs *other)
{
	bool less = false;

	for (int n = 0; n <= KNOWN_REG_CNT; n++) {
		struct known_value *value = n < KNOWN_REG_CNT ? &regs->of[n] : &regs->tested;
		const struct known_value *also = n < KNOWN_REG_CNT ? &other->of[n] : &other->tested;

		if (value->how == KNOWN_NOTHING || known_value_equal(value, also))
			continue;
		*value = (struct known_value){};
		less = true;
	}
	return less;
}
