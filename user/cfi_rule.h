/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a frame at one address, and its translation to the rule of a row.
 */
#ifndef CFI_RULE_H
#define CFI_RULE_H

#include "cfi_bytes.h"
#include "cfi_exec.h"

/* DWARF numbers of the x86-64 registers that take part. */
#define CFI_REG_RBP 6
#define CFI_REG_RSP 7
#define CFI_REG_RA  16

/* How to get a register's value in the caller. */
enum cfi_how {
	CFI_HOW_SAME,	    /* unchanged */
	CFI_HOW_UNDEFINED,  /* lost; for RA: no caller */
	CFI_HOW_OFFSET,	    /* at *(CFA + off) */
	CFI_HOW_EXPRESSION, /* at the address that `expr` computes */
	CFI_HOW_OTHER,	    /* in a register, a value and the like */
};

/* The rule of one register; `expr` borrows from the section. */
struct cfi_reg_rule {
	enum cfi_how how;
	int64_t off;
	struct cfi_bytes expr;
};

/* CFA = reg + off, or what `expr` computes. */
struct cfi_cfa_rule {
	bool is_expr;
	uint64_t reg;
	int64_t off;
	struct cfi_bytes expr;
};

/* The rules at one address. */
struct cfi_state {
	struct cfi_cfa_rule cfa;
	struct cfi_reg_rule rbp, ra;
};

/*
 * The rule of a row for `state` within `frame`. Big rules are added to `rows`; a state that
 * cannot be said gives HB_CFI_UNSUPPORTED.
 */
uint32_t cfi_rule_of(const struct cfi_frame *frame, const struct cfi_state *state,
		     struct cfi_rows *rows);

#endif
