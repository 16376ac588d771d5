// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the two programs of an FDE (DWARF 5 section 6.4.2). Out: rows, one for each stretch of
 * addresses with the same rule. Only the CFA, rbp and the return address are followed; rules of
 * other registers are read past.
 *
 * Knows instructions; what a state means as a row is cfi_rule's. Whatever is malformed makes the
 * whole FDE invalid, since nothing after it can be believed.
 */
#include "cfi_exec.h"
#include "cfi_bytes.h"
#include "cfi_rule.h"
#include "vec.h"

#include <dwarf.h>
#include <errno.h>

/* Compilers nest these two deep; the limit is for hostile input. */
#define STATE_MAX 32

/* One run over both programs. */
struct machine {
	const struct cfi_frame *frame;
	struct cfi_rows *rows;
	uint32_t off; /* file offset of frame->vma */
	uint64_t vma; /* the location counter */
	struct cfi_state now;
	struct cfi_state initial; /* after the CIE's program; DW_CFA_restore goes back to it */
	bool in_cie;
	struct cfi_state saved[STATE_MAX];
	unsigned saved_cnt;
};

int cfi_rows_push(struct cfi_rows *rows, uint32_t off, uint32_t rule)
{
	if (rows->cnt > rows->merge_from && rows->rows[rows->cnt - 1].rule == rule)
		return 0;
	if (rows->cnt >= CFI_ROW_MAX)
		return -E2BIG;
	if (vec_reserve(&rows->rows, &rows->cap, rows->cnt + 1))
		return -ENOMEM;
	rows->rows[rows->cnt++] = (struct hb_cfi_row){.off = off, .rule = rule};
	return 0;
}

/* The location counter moves to `vma`: what held until there becomes a row. */
static int advance_to(struct machine *machine, uint64_t vma)
{
	const struct cfi_frame *frame = machine->frame;
	uint32_t off = machine->off + (uint32_t)(machine->vma - frame->vma), rule;

	if (machine->in_cie || vma < machine->vma)
		return -EBADMSG;
	if (vma == machine->vma || machine->vma >= frame->vma_end)
		return 0;
	rule = cfi_rule_of(frame, &machine->now, machine->rows);
	if (HB_CFI_KIND(rule) == HB_CFI_UNSUPPORTED)
		machine->rows->unsupported++;
	machine->vma = vma;
	return cfi_rows_push(machine->rows, off, rule);
}

static int advance_by(struct machine *machine, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, machine->frame->code_align, &bytes) ||
	    __builtin_add_overflow(bytes, machine->vma, &bytes))
		return -EBADMSG;
	return advance_to(machine, bytes);
}

/* The rule of `reg` in `state`, or NULL if nobody asks for it. */
static struct cfi_reg_rule *rule_for(struct cfi_state *state, uint64_t reg)
{
	return reg == CFI_REG_RBP ? &state->rbp : reg == CFI_REG_RA ? &state->ra : NULL;
}

static void set_rule(struct machine *machine, uint64_t reg, struct cfi_reg_rule rule)
{
	struct cfi_reg_rule *slot = rule_for(&machine->now, reg);

	if (slot)
		*slot = rule;
}

static void set_offset(struct machine *machine, uint64_t reg, int64_t factored)
{
	struct cfi_reg_rule rule = {.how = CFI_HOW_OFFSET};

	if (__builtin_mul_overflow(factored, machine->frame->data_align, &rule.off))
		rule.how = CFI_HOW_OTHER;
	set_rule(machine, reg, rule);
}

static int restore(struct machine *machine, uint64_t reg)
{
	struct cfi_reg_rule *rule = rule_for(&machine->initial, reg);

	if (machine->in_cie)
		return -EBADMSG;
	if (rule)
		set_rule(machine, reg, *rule);
	return 0;
}

static int push_state(struct machine *machine)
{
	if (machine->saved_cnt == STATE_MAX)
		return -EBADMSG;
	machine->saved[machine->saved_cnt++] = machine->now;
	return 0;
}

static int pop_state(struct machine *machine)
{
	if (!machine->saved_cnt)
		return -EBADMSG;
	machine->now = machine->saved[--machine->saved_cnt];
	return 0;
}

/* CFA = reg + off. */
static void def_cfa(struct machine *machine, uint64_t reg, int64_t off)
{
	machine->now.cfa = (struct cfi_cfa_rule){.reg = reg, .off = off};
}

/* A length and so many bytes of DWARF expression. */
static struct cfi_bytes take_expr(struct cfi_bytes *in)
{
	uint64_t len = cfi_bytes_uleb(in);
	const uint8_t *expr = cfi_bytes_take(in, len);

	return (struct cfi_bytes){.pos = expr, .end = expr ? expr + len : NULL, .failed = !expr};
}

/* The instructions that define the CFA. */
static int exec_cfa(struct machine *machine, uint8_t op, struct cfi_bytes *in)
{
	struct cfi_cfa_rule *cfa = &machine->now.cfa;
	int64_t data_align = machine->frame->data_align;
	uint64_t reg = cfa->reg;

	if (op == DW_CFA_def_cfa_expression) {
		*cfa = (struct cfi_cfa_rule){.is_expr = true, .expr = take_expr(in)};
		return 0;
	}
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf) {
		reg = cfi_bytes_uleb(in);
	} else if (cfa->is_expr) {
		/* Half a definition on top of an expression (libgcrypt 1.10): nobody can say. */
		cfi_bytes_uleb(in);
		*cfa = (struct cfi_cfa_rule){.is_expr = true};
		return 0;
	}
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset)
		def_cfa(machine, reg, cfi_bytes_uleb(in));
	else if (op == DW_CFA_def_cfa_register)
		def_cfa(machine, cfi_bytes_uleb(in), cfa->off);
	else
		def_cfa(machine, reg, (uint64_t)cfi_bytes_sleb(in) * (uint64_t)data_align);
	return 0;
}

/* The instructions that say where a register is. */
static int exec_register(struct machine *machine, uint8_t op, struct cfi_bytes *in)
{
	uint64_t reg = cfi_bytes_uleb(in);

	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(machine, reg, cfi_bytes_uleb(in));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_offset(machine, reg, cfi_bytes_sleb(in));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(machine, reg, -cfi_bytes_uleb(in));
		return 0;
	case DW_CFA_restore_extended:
		return restore(machine, reg);
	case DW_CFA_undefined:
		set_rule(machine, reg, (struct cfi_reg_rule){.how = CFI_HOW_UNDEFINED});
		return 0;
	case DW_CFA_same_value:
		set_rule(machine, reg, (struct cfi_reg_rule){.how = CFI_HOW_SAME});
		return 0;
	case DW_CFA_expression:
		set_rule(machine, reg,
			 (struct cfi_reg_rule){.how = CFI_HOW_EXPRESSION, .expr = take_expr(in)});
		return 0;
	case DW_CFA_val_expression:
		take_expr(in);
		break;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		cfi_bytes_uleb(in);
		break;
	default:
		return -EBADMSG;
	}
	set_rule(machine, reg, (struct cfi_reg_rule){.how = CFI_HOW_OTHER});
	return 0;
}

/* One instruction whose opcode is a whole byte. */
static int exec_extended(struct machine *machine, uint8_t op, struct cfi_bytes *in)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return advance_to(machine, cfi_bytes_pointer(in, machine->frame->encoding,
							     (uintptr_t)in->pos +
								     machine->frame->section_bias));
	case DW_CFA_advance_loc1:
		return advance_by(machine, cfi_bytes_uint(in, 1));
	case DW_CFA_advance_loc2:
		return advance_by(machine, cfi_bytes_uint(in, 2));
	case DW_CFA_advance_loc4:
		return advance_by(machine, cfi_bytes_uint(in, 4));
	case DW_CFA_remember_state:
		return push_state(machine);
	case DW_CFA_restore_state:
		return pop_state(machine);
	case DW_CFA_GNU_args_size:
		cfi_bytes_uleb(in);
		return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return exec_cfa(machine, op, in);
	default:
		return exec_register(machine, op, in);
	}
}

static int exec_program(struct machine *machine, const uint8_t *program, const uint8_t *end)
{
	struct cfi_bytes in = {.pos = program, .end = end};

	while (in.pos < in.end) {
		uint8_t op = cfi_bytes_uint(&in, 1), low = op & 0x3f;
		int err = 0;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			err = advance_by(machine, low);
			break;
		case DW_CFA_offset:
			set_offset(machine, low, cfi_bytes_uleb(&in));
			break;
		case DW_CFA_restore:
			err = restore(machine, low);
			break;
		default:
			err = exec_extended(machine, op, &in);
		}
		if (err)
			return err;
		if (in.failed)
			return -EBADMSG;
	}
	return 0;
}

static int exec_frame(struct machine *machine)
{
	const struct cfi_frame *frame = machine->frame;
	int err = exec_program(machine, frame->initial, frame->initial_end);

	if (err)
		return err;
	machine->initial = machine->now;
	machine->in_cie = false;
	err = exec_program(machine, frame->program, frame->program_end);
	if (err)
		return err;
	/* The last state holds to the end of the function. */
	return machine->vma < frame->vma_end ? advance_to(machine, frame->vma_end) : 0;
}

int cfi_exec(const struct cfi_frame *frame, uint32_t off, struct cfi_rows *rows)
{
	struct cfi_rows before = *rows;
	struct machine machine; /* not zeroed as a whole: `saved` is large */
	int err;

	machine.frame = frame;
	machine.rows = rows;
	machine.off = off;
	machine.vma = frame->vma;
	machine.in_cie = true;
	machine.saved_cnt = 0;
	machine.now = (struct cfi_state){.ra.how = CFI_HOW_OTHER};
	rows->merge_from = rows->cnt;
	err = exec_frame(&machine);
	if (err) {
		rows->cnt = before.cnt;
		rows->big_cnt = before.big_cnt;
		rows->unsupported = before.unsupported;
	}
	return err;
}
