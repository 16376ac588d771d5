/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which registers hold what a pointer variable holds, followed instruction by instruction: where
 * "mov hook(%rip), %rax; jmp *%rax" jumps to is in hook.
 */
#ifndef KNOWN_REGS_H
#define KNOWN_REGS_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

/* How a value is found. */
enum known_how {
	KNOWN_NOTHING,
	KNOWN_ADDRESS, /* it is `vma` */
	KNOWN_AT,      /* it is in memory at `vma` */
	KNOWN_AT_AT,   /* it is in memory where memory at `vma` points, as by a GOT slot */
	KNOWN_CNT,
};

/* A 64-bit value. Zeroed: nothing is known. */
struct known_value {
	uint64_t vma;
	enum known_how how;
};

/* One for each register but rip, in the order of the instruction set, and for the flags. */
#define KNOWN_REG_CNT 16
struct known_regs {
	struct known_value of[KNOWN_REG_CNT];
	struct known_value tested; /* the zero flag is set if it is 0 */
};

/* True if it is the same known value. */
bool known_value_equal(const struct known_value *a, const struct known_value *b);

/* What `insn` (with details, decoded by `decoder`) leaves of `regs`. */
void known_regs_step(csh decoder, const cs_insn *insn, struct known_regs *regs);

/* What the first operand of `insn` is, a register or memory, before it. */
struct known_value known_regs_operand(const struct known_regs *regs, const cs_insn *insn);

/* Leaves in `regs` what `other` says, too. True if that is less than before. */
bool known_regs_meet(struct known_regs *regs, const struct known_regs *other);

#endif
