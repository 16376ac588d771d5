// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: where the CFA, rbp and the return address are, as an FDE's program left it. Out: the rule of
 * a row (bpf/cfi_row.h). Knows the few DWARF expressions that compilers and linkers emit.
 *
 * A state that no rule can say becomes HB_CFI_UNSUPPORTED, never something near it.
 */
#include "cfi_rule.h"
#include "vec.h"

#include <dwarf.h>

/* Where a signal frame keeps rsp: ucontext, general register 15 (bpf/unwind_step.h). */
#define SIGNAL_RSP_OFF 160

/* The expression is *(rbp + off) or *(rsp + off), with the memory access only if `deref`. */
static bool is_base_expr(struct cfi_bytes expr, bool deref, uint64_t *reg, int64_t *off)
{
	uint64_t op = cfi_bytes_uint(&expr, 1);

	*reg = op - DW_OP_breg0;
	*off = cfi_bytes_sleb(&expr);
	if (deref && cfi_bytes_uint(&expr, 1) != DW_OP_deref)
		return false;
	return !expr.failed && expr.pos == expr.end && (*reg == CFI_REG_RBP || *reg == CFI_REG_RSP);
}

/* rsp + 8 + ((rip & 15) >= n) * 8: what linkers say of the PLT. */
static bool is_plt_expr(struct cfi_bytes expr, unsigned *n)
{
	static const uint8_t head[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t tail[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

	if (expr.end - expr.pos != sizeof(head) + 1 + sizeof(tail) ||
	    memcmp(expr.pos, head, sizeof(head)) ||
	    memcmp(expr.pos + sizeof(head) + 1, tail, sizeof(tail)))
		return false;
	*n = (unsigned)expr.pos[sizeof(head)] - DW_OP_lit0;
	return *n < 16;
}

/* Number of `big` among the file's big rules, appended if new; as a rule. */
static uint32_t rule_of_big(struct cfi_rows *rows, const struct hb_cfi_big *big)
{
	for (size_t i = 0; i < rows->big_cnt; i++)
		if (!memcmp(&rows->bigs[i], big, sizeof(*big)))
			return HB_CFI_RULE_BIG(i);
	if (rows->big_cnt >= CFI_BIG_MAX ||
	    vec_reserve(&rows->bigs, &rows->big_cap, rows->big_cnt + 1))
		return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
	rows->bigs[rows->big_cnt] = *big;
	return HB_CFI_RULE_BIG(rows->big_cnt++);
}

/*
 * Where the caller's rbp is, for a CFA of cfa.reg + cfa.off (reg 0: computed): an HB_CFI_SAVED_*
 * with *off set to 0, or HB_CFI_BIG_CFA with its distance from the CFA in *off.
 */
static unsigned saved_rbp(const struct cfi_reg_rule *rbp, const struct cfi_cfa_rule *cfa,
			  int64_t *off)
{
	uint64_t reg;

	*off = 0;
	switch (rbp->how) {
	case CFI_HOW_SAME:
		return HB_CFI_SAVED_SAME;
	case CFI_HOW_OFFSET:
		*off = rbp->off;
		return HB_CFI_BIG_CFA;
	case CFI_HOW_EXPRESSION:
		if (!is_base_expr(rbp->expr, false, &reg, off))
			break;
		if (!cfa->is_expr && cfa->reg == reg) {
			*off -= cfa->off;
			return HB_CFI_BIG_CFA;
		}
		if (reg == CFI_REG_RBP && !*off)
			return HB_CFI_SAVED_AT_RBP;
		break;
	case CFI_HOW_UNDEFINED:
	case CFI_HOW_OTHER:
		break;
	}
	*off = 0;
	return HB_CFI_SAVED_UNKNOWN;
}

/* Distance from the CFA as a row says it, if it can. */
static bool saved_fits(int64_t off, unsigned *saved)
{
	if (off >= 0 || off % 8 || off < -8 * HB_CFI_SAVED_MAX)
		return false;
	*saved = -off / 8;
	return true;
}

/* CFA = rsp + off or rbp + off. */
static uint32_t rule_of_base(struct cfi_rows *rows, const struct cfi_state *state)
{
	const struct cfi_cfa_rule *cfa = &state->cfa;
	enum hb_cfi_kind kind = cfa->reg == CFI_REG_RSP ? HB_CFI_RSP : HB_CFI_RBP;
	int64_t rbp_off;
	unsigned saved = saved_rbp(&state->rbp, cfa, &rbp_off);
	struct hb_cfi_big big = {.cfa_off = cfa->off, .base = kind, .rbp_saved = saved};

	if ((saved != HB_CFI_BIG_CFA || saved_fits(rbp_off, &saved)) && cfa->off >= 0 &&
	    cfa->off % 8 == 0 && cfa->off / 8 <= UINT16_MAX)
		return HB_CFI_RULE(kind, saved, cfa->off / 8);
	if (rbp_off != (int32_t)rbp_off)
		return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
	big.rbp_off = rbp_off;
	return rule_of_big(rows, &big);
}

/* The CFA is computed by an expression. */
static uint32_t rule_of_expr(const struct cfi_state *state)
{
	int64_t rbp_off, off;
	unsigned saved = saved_rbp(&state->rbp, &state->cfa, &rbp_off), n;
	uint64_t reg;

	if (saved == HB_CFI_BIG_CFA && !saved_fits(rbp_off, &saved))
		saved = HB_CFI_SAVED_UNKNOWN;
	if (is_plt_expr(state->cfa.expr, &n))
		return HB_CFI_RULE(HB_CFI_PLT, saved, n);
	if (is_base_expr(state->cfa.expr, true, &reg, &off) && off % 8 == 0 &&
	    off / 8 == (int16_t)(off / 8))
		return HB_CFI_RULE(reg == CFI_REG_RBP ? HB_CFI_DEREF_RBP : HB_CFI_DEREF_RSP, saved,
				   off / 8);
	return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
}

uint32_t cfi_rule_of(const struct cfi_frame *frame, const struct cfi_state *state,
		     struct cfi_rows *rows)
{
	uint64_t reg;
	int64_t off;

	if (frame->is_signal) {
		if (state->cfa.is_expr && is_base_expr(state->cfa.expr, true, &reg, &off) &&
		    reg == CFI_REG_RSP && off == SIGNAL_RSP_OFF)
			return HB_CFI_RULE(HB_CFI_SIGNAL, 0, 0);
		return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
	}
	if (state->ra.how == CFI_HOW_UNDEFINED)
		return HB_CFI_RULE(HB_CFI_STOP, 0, 0);
	if (state->ra.how != CFI_HOW_OFFSET || state->ra.off != -8 || !frame->ra_is_rip)
		return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
	if (state->cfa.is_expr)
		return rule_of_expr(state);
	if (state->cfa.reg == CFI_REG_RSP || state->cfa.reg == CFI_REG_RBP)
		return rule_of_base(rows, state);
	return HB_CFI_RULE(HB_CFI_UNSUPPORTED, 0, 0);
}
