/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares a table with libdw, which answers the same question in another way: it replays the FDE
 * for one address and gives DWARF expressions. Both answers are evaluated on made-up registers and
 * memory, ours by the very step that runs in the kernel.
 */
#ifndef CFI_ORACLE_H
#define CFI_ORACLE_H

#include "cfi.h"
#include "elf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Memory is a function of the address; its words lie above all registers. */
static inline uint64_t oracle_word(uint64_t addr)
{
	return 0x100000000 + ((addr * 0x9e3779b97f4a7c15) >> 40) * 8;
}

static inline int oracle_read(void *dst, size_t len, uint64_t addr)
{
	for (size_t i = 0; i < len / 8; i++) {
		uint64_t word = oracle_word(addr + 8 * i);

		memcpy((char *)dst + 8 * i, &word, 8);
	}
	return 0;
}

#define HB_UNWIND_READ(regs, dst, len, addr) oracle_read(dst, len, addr)
#include "../../bpf/unwind_step.h"

#define ORACLE_RSP 0x1000000
#define ORACLE_RBP 0x3000000

/* How libdw says that a register is restored, evaluated. */
enum oracle_how { ORACLE_SAME, ORACLE_UNDEFINED, ORACLE_AT, ORACLE_VALUE, ORACLE_UNKNOWN };

/* The registers that expressions see. */
struct oracle {
	uint64_t pc;
	uint64_t cfa;
};

static inline uint64_t oracle_register(const struct oracle *oracle, uint64_t reg)
{
	return reg == 6	   ? ORACLE_RBP
	       : reg == 7  ? ORACLE_RSP
	       : reg == 16 ? oracle->pc
			   : 0x9000 + 16 * reg;
}

/* Evaluates ops[0..cnt-1]; ORACLE_AT or ORACLE_VALUE with *out, ORACLE_UNKNOWN for what we lack. */
static inline enum oracle_how oracle_eval(const struct oracle *oracle, const Dwarf_Op *ops,
					  size_t cnt, uint64_t *out)
{
	uint64_t stack[32], top;
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		unsigned op = ops[i].atom;

		if (n > 30)
			return ORACLE_UNKNOWN;
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
			stack[n++] = oracle_register(oracle, op - DW_OP_breg0) + ops[i].number;
			continue;
		}
		if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
			stack[n++] = op - DW_OP_lit0;
			continue;
		}
		if (op == DW_OP_bregx) {
			stack[n++] = oracle_register(oracle, ops[i].number) + ops[i].number2;
			continue;
		}
		if (op == DW_OP_call_frame_cfa) {
			stack[n++] = oracle->cfa;
			continue;
		}
		if (!n)
			return ORACLE_UNKNOWN;
		top = stack[n - 1];
		if (op == DW_OP_stack_value && i + 1 == cnt) {
			*out = top;
			return ORACLE_VALUE;
		} else if (op == DW_OP_plus_uconst) {
			stack[n - 1] += ops[i].number;
		} else if (op == DW_OP_deref) {
			stack[n - 1] = oracle_word(top);
		} else if (n < 2) {
			return ORACLE_UNKNOWN;
		} else {
			n--;
			if (op == DW_OP_plus)
				stack[n - 1] += top;
			else if (op == DW_OP_and)
				stack[n - 1] &= top;
			else if (op == DW_OP_shl)
				stack[n - 1] <<= top;
			else if (op == DW_OP_ge)
				stack[n - 1] = (int64_t)stack[n - 1] >= (int64_t)top;
			else
				return ORACLE_UNKNOWN;
		}
	}
	/* The expression of a register begins with the CFA on the stack, used or not. */
	if (!n)
		return ORACLE_UNKNOWN;
	*out = stack[n - 1];
	return ORACLE_AT;
}

static inline enum oracle_how oracle_reg(const struct oracle *oracle, Dwarf_Frame *frame, int reg,
					 uint64_t *out)
{
	Dwarf_Op mem[3], *ops;
	size_t cnt;

	if (dwarf_frame_register(frame, reg, mem, &ops, &cnt))
		return ORACLE_UNKNOWN;
	if (!cnt)
		return ops ? ORACLE_UNDEFINED : ORACLE_SAME;
	return oracle_eval(oracle, ops, cnt, out);
}

/* Is there a reason to call the state not expressible? */
static inline bool oracle_is_odd(const Dwarf_Op *ops, size_t cnt, enum oracle_how ra,
				 uint64_t ra_addr, uint64_t cfa)
{
	uint64_t reg = 99;

	if (ra != ORACLE_AT || ra_addr != cfa - 8 || cnt != 1)
		return true;
	if (ops[0].atom == DW_OP_bregx)
		reg = ops[0].number;
	else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31)
		reg = ops[0].atom - DW_OP_breg0;
	return reg != 6 && reg != 7;
}

/* NULL if `rule` at `vma` is what libdw says of it, else what differs. `frame` may be NULL. */
static inline const char *oracle_differs(const struct cfi_table *table, uint32_t rule, uint64_t vma,
					 Dwarf_Frame *frame)
{
	struct hb_unwind_regs regs = {
		.pc = vma, .rsp = ORACLE_RSP, .rbp = ORACLE_RBP, .rbp_known = 1};
	struct oracle oracle = {.pc = vma};
	uint64_t ra_addr = 0, rbp = 0;
	enum oracle_how ra, how;
	Dwarf_Op *ops;
	bool is_signal;
	size_t cnt;
	__u32 next;

	if (!frame)
		return HB_CFI_KIND(rule) == HB_CFI_RSP || HB_CFI_KIND(rule) == HB_CFI_RBP
			       ? "a rule where libdw has none"
			       : NULL;
	dwarf_frame_info(frame, NULL, NULL, &is_signal);
	ra = oracle_reg(&oracle, frame, 16, &ra_addr);
	if (HB_CFI_KIND(rule) == HB_CFI_STOP)
		return ra == ORACLE_UNDEFINED ? NULL : "stop where libdw has a caller";
	if (dwarf_frame_cfa(frame, &ops, &cnt) || !cnt ||
	    oracle_eval(&oracle, ops, cnt, &oracle.cfa) == ORACLE_UNKNOWN)
		return HB_CFI_KIND(rule) == HB_CFI_UNSUPPORTED ? NULL : "libdw knows no CFA";
	ra = oracle_reg(&oracle, frame, 16, &ra_addr);
	how = oracle_reg(&oracle, frame, 6, &rbp);
	if (HB_CFI_KIND(rule) == HB_CFI_UNSUPPORTED)
		return oracle_is_odd(ops, cnt, ra, ra_addr, oracle.cfa) ? NULL : "not unsupported";
	if ((HB_CFI_KIND(rule) == HB_CFI_SIGNAL) != is_signal)
		return "signal frame";
	next = HB_CFI_KIND(rule) == HB_CFI_BIG
		       ? hb_unwind_big(&regs, &table->bigs[HB_CFI_INDEX(rule)])
		       : hb_unwind_apply(&regs, rule);
	/* The CFA of a first instruction may be rsp itself and the like: not ours to follow. */
	if (next == HB_LOSS_STACK_SP && oracle.cfa <= ORACLE_RSP)
		return NULL;
	if (next != HB_UNWIND_ON)
		return "the step fails";
	if (regs.rsp != oracle.cfa)
		return "CFA";
	if (ra != ORACLE_AT || regs.pc != oracle_word(ra_addr))
		return "return address";
	if (how == ORACLE_SAME)
		return regs.rbp_known && regs.rbp == ORACLE_RBP ? NULL : "rbp unchanged";
	if (how == ORACLE_AT && regs.rbp_known)
		return regs.rbp == oracle_word(rbp) ? NULL : "rbp saved";
	return regs.rbp_known ? "rbp is known" : NULL;
}

/* The rule at `off` by a linear look, from a hint that only moves forward. */
static inline uint32_t oracle_rule_at(const struct cfi_table *table, size_t *hint, uint32_t off)
{
	while (*hint + 1 < table->row_cnt && table->rows[*hint + 1].off <= off)
		++*hint;
	return table->rows[*hint].rule;
}

/*
 * Compares at each row's offset and the byte before with libdw's `cfi`; prints and returns the
 * number of differences other than: padding of less than 16 bytes, and outermost functions that
 * we know by name (at most two a file).
 */
static inline size_t oracle_compare(const struct elf_file *file, const struct cfi_table *table,
				    Dwarf_CFI *cfi)
{
	size_t differ = 0, hint = 0, stops = 0;

	for (size_t i = 0; i < table->row_cnt; i++) {
		for (int back = 1; back >= 0; back--) {
			uint32_t off = table->rows[i].off - back, rule;
			Dwarf_Frame *frame = NULL;
			const char *what;
			uint64_t vma;

			if (!table->rows[i].off || !elf_file_off_to_vma(file, off, &vma))
				continue;
			rule = oracle_rule_at(table, &hint, off);
			if (dwarf_cfi_addrframe(cfi, vma, &frame))
				frame = NULL;
			what = oracle_differs(table, rule, vma, frame);
			free(frame);
			if (!what || (back && !frame))
				continue;
			if (HB_CFI_KIND(rule) == HB_CFI_STOP && ++stops <= 4)
				continue;
			if (differ++ < 5)
				fprintf(stderr, "%s: off %#x vma %#llx rule %#x: %s\n",
					elf_file_name(file), off, (unsigned long long)vma, rule,
					what);
		}
	}
	return differ;
}

#endif
