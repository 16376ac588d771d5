/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which instruction of a function gets the probe. A uprobe on an instruction that the kernel
 * emulates (push r64, jcc, jmp, call, nop) costs a twentieth of one that it must single-step, so
 * the planner walks the straight-line prologue to the first such instruction, as long as the
 * arguments are in their registers, or one register on, rbp is unwritten and the distance of rsp
 * from the return address is known.
 */
#ifndef PROBE_PLAN_H
#define PROBE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers whose values the probe needs intact, as a mask of these. */
enum probe_plan_reg {
	PROBE_PLAN_RDI = 1 << 0,
	PROBE_PLAN_RSI = 1 << 1,
	PROBE_PLAN_RDX = 1 << 2,
};

/* Where to probe. */
struct probe_plan {
	uint32_t delta;	   /* bytes from the function's first instruction */
	uint32_t sp_bytes; /* bytes from rsp there to the return address */
	bool emulated;	   /* false: the kernel will single-step it (slow, and said so) */
	char insn[48];	   /* the instruction as text, for people */
	bool shifted;	   /* the arguments are one register on there: rsi, rdx, rcx */
};

/*
 * Plans for the function whose first bytes are code[0..len-1] at `vma`; give all of the function,
 * so that branches back into its prologue are seen. `live_regs`: argument registers whose
 * values are needed. `returns`: a return probe will follow, so rsp must still point at the return
 * address (sp_bytes 0). `skip_null`: the first argument NULL needs no probe, so a branch taken only
 * for NULL may be passed (free). The place is executed once in each call (but for NULL then),
 * unless a call branches back to its very first instruction. Always gives a plan; at worst the
 * first instruction, emulated false. 0, -EBADMSG if not even that decodes, -ENOMEM; *out is
 * untouched on failure.
 */
int probe_plan_make(const uint8_t *code, size_t len, uint64_t vma, uint32_t live_regs, bool returns,
		    bool skip_null, struct probe_plan *out);

#endif
