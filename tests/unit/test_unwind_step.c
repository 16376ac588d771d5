// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One step back on a made-up stack, for every kind of rule, and what makes a step fail.
 */
#include "check.h"

#include <stdbool.h>

/* The target's memory: words at STACK..STACK + sizeof(memory); anything else cannot be read. */
#define STACK 0x7f0000001000
static uint64_t memory[64];

static int read_memory(void *dst, size_t len, uint64_t addr)
{
	if (addr < STACK || addr + len > STACK + sizeof(memory))
		return -14;
	memcpy(dst, (char *)memory + (addr - STACK), len);
	return 0;
}

#define HB_UNWIND_READ(regs, dst, len, addr) read_memory(dst, len, addr)
#include "unwind_step.h"

#define RULE(kind, saved, n) HB_CFI_RULE(HB_CFI_##kind, saved, n)
#define AT(word)	     (STACK + 8 * (uint64_t)(word))

/* A frame at word 2 of the stack; every word of memory tells its own number. */
static struct hb_unwind_regs frame(void)
{
	for (size_t i = 0; i < 64; i++)
		memory[i] = 0x1000 + i;
	return (struct hb_unwind_regs){
		.pc = 0x400010, .rsp = AT(2), .rbp = AT(10), .rbp_known = 1, .exact = 1};
}

TEST(rsp_rule_with_unchanged_rbp)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, HB_CFI_SAVED_SAME, 4)), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(6));
	CHECK_EQ(regs.pc, 0x1005);
	CHECK_EQ(regs.ra_addr, AT(5));
	CHECK_EQ(regs.rbp, AT(10));
	CHECK_EQ(regs.exact, 0);
	CHECK_EQ(regs.rbp_known, 1);
}

TEST(saved_rbp_beside_and_away_from_the_return_address)
{
	for (unsigned saved = 2; saved < 5; saved++) {
		struct hb_unwind_regs regs = frame();

		CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, saved, 6)), HB_UNWIND_ON);
		CHECK_EQ(regs.rbp, 0x1008 - saved);
		CHECK_EQ(regs.pc, 0x1007);
	}
}

TEST(rbp_rule)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(RBP, 2, 2)), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(12));
	CHECK_EQ(regs.rbp, 0x100a);
	CHECK_EQ(regs.pc, 0x100b);
}

TEST(lost_rbp_is_not_used)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, HB_CFI_SAVED_UNKNOWN, 2)), HB_UNWIND_ON);
	CHECK_EQ(regs.rbp_known, 0);
	/* Unchanged stays lost; a rule that saved it finds it again. */
	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, HB_CFI_SAVED_SAME, 2)), HB_UNWIND_ON);
	CHECK_EQ(regs.rbp_known, 0);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(RBP, 2, 2)), HB_LOSS_STACK_UNSUPPORTED);
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 0), HB_LOSS_STACK_FP);
	regs.rsp = AT(6);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, 2, 2)), HB_UNWIND_ON);
	CHECK_EQ(regs.rbp_known, 1);
	CHECK_EQ(regs.rbp, 0x1006);
}

TEST(plt_rule_depends_on_the_pc)
{
	struct hb_unwind_regs early = frame(), late = frame();

	early.pc = 0x40001a;
	CHECK_EQ(hb_unwind_apply(&early, RULE(PLT, 0, 11)), HB_UNWIND_ON);
	CHECK_EQ(early.rsp, AT(3));
	late.pc = 0x40001b;
	CHECK_EQ(hb_unwind_apply(&late, RULE(PLT, 0, 11)), HB_UNWIND_ON);
	CHECK_EQ(late.rsp, AT(4));
}

TEST(deref_rules)
{
	struct hb_unwind_regs regs = frame();

	memory[9] = AT(20);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(DEREF_RBP, HB_CFI_SAVED_AT_RBP, -1)), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(20));
	CHECK_EQ(regs.pc, 0x1013);
	CHECK_EQ(regs.rbp, 0x100a);

	regs = frame();
	memory[4] = AT(30);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(DEREF_RSP, HB_CFI_SAVED_SAME, 2)), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(30));
	CHECK_EQ(regs.rbp, AT(10));
}

TEST(big_rules)
{
	struct hb_cfi_big big = {
		.cfa_off = 24, .rbp_off = -24, .base = HB_CFI_RSP, .rbp_saved = HB_CFI_BIG_CFA};
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_big(&regs, &big), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(5));
	CHECK_EQ(regs.rbp, 0x1002);
	regs = frame();
	big = (struct hb_cfi_big){.cfa_off = 800000, .base = HB_CFI_RSP};
	CHECK_EQ(hb_unwind_big(&regs, &big), HB_LOSS_STACK_READ_FAULT);
	regs = frame();
	regs.rbp_known = 0;
	big.base = HB_CFI_RBP;
	CHECK_EQ(hb_unwind_big(&regs, &big), HB_LOSS_STACK_UNSUPPORTED);
}

/* The handler's stack may lie above: rsp may shrink. */
TEST(signal_frame)
{
	struct hb_unwind_regs regs = frame();

	memory[2 + 5 + HB_UNWIND_GREG_RBP] = AT(1);
	memory[2 + 5 + HB_UNWIND_GREG_RSP] = AT(0);
	memory[2 + 5 + HB_UNWIND_GREG_RIP] = 0x400123;
	regs.rbp_known = 0;
	CHECK_EQ(hb_unwind_apply(&regs, RULE(SIGNAL, 0, 0)), HB_UNWIND_ON);
	CHECK_EQ(regs.rsp, AT(0));
	CHECK_EQ(regs.rbp, AT(1));
	CHECK_EQ(regs.pc, 0x400123);
	CHECK_EQ(regs.exact, 1);
	CHECK_EQ(regs.rbp_known, 1);
	CHECK_EQ(regs.ra_addr, 0);
	CHECK_EQ(hb_unwind_lookup_pc(&regs), 0x400123);
}

TEST(return_addresses_are_looked_up_one_byte_before)
{
	struct hb_unwind_regs regs = frame();

	regs.exact = 0;
	CHECK_EQ(hb_unwind_lookup_pc(&regs), 0x40000f);
}

TEST(ends)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(STOP, 0, 0)), HB_STACK_COMPLETE);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(GAP, 0, 0)), HB_LOSS_STACK_NO_ROW);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(UNSUPPORTED, 0, 0)), HB_LOSS_STACK_UNSUPPORTED);
	CHECK_EQ(hb_unwind_apply(&regs, HB_CFI_RULE(HB_CFI_KIND_CNT, 0, 0)),
		 HB_LOSS_STACK_UNSUPPORTED);
}

TEST(the_stack_must_grow)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, 0, 0)), HB_LOSS_STACK_SP);
	regs = frame();
	regs.rbp = AT(0);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(RBP, 2, 2)), HB_LOSS_STACK_SP);
}

TEST(unreadable_memory)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_apply(&regs, RULE(RSP, 0, 100)), HB_LOSS_STACK_READ_FAULT);
	regs = frame();
	CHECK_EQ(hb_unwind_apply(&regs, RULE(DEREF_RSP, 0, -100)), HB_LOSS_STACK_READ_FAULT);
	regs = frame();
	regs.rsp = AT(50);
	CHECK_EQ(hb_unwind_apply(&regs, RULE(SIGNAL, 0, 0)), HB_LOSS_STACK_READ_FAULT);
}

TEST(frame_pointer_step)
{
	struct hb_unwind_regs regs = frame();

	CHECK_EQ(hb_unwind_frame_pointer(&regs, 0), HB_UNWIND_ON);
	CHECK_EQ(regs.rbp, 0x100a);
	CHECK_EQ(regs.pc, 0x100b);
	CHECK_EQ(regs.rsp, AT(12));
	CHECK_EQ(regs.ra_addr, AT(11));
	CHECK_EQ(regs.exact, 0);
}

TEST(frame_pointer_must_be_plausible)
{
	struct hb_unwind_regs regs = frame();

	regs.rbp = 0;
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 0), HB_LOSS_STACK_FP);
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 1), HB_LOSS_STACK_FP);
	regs.rbp = AT(10) + 4;
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 1), HB_LOSS_STACK_FP);
	regs.rbp = AT(1);
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 0), HB_LOSS_STACK_FP);
	regs.rbp = AT(2) + HB_UNWIND_FP_REACH;
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 0), HB_LOSS_STACK_FP);
	/* Code known to keep frame pointers may have switched stacks. */
	regs.rbp = AT(0);
	CHECK_EQ(hb_unwind_frame_pointer(&regs, 1), HB_UNWIND_ON);
	CHECK_EQ(regs.pc, 0x1001);
}

/* Bytes that end at a return address, as an assembler gives them; zeros before. */
static enum hb_unwind_call call_at(const uint8_t *bytes, size_t len, __u64 *target)
{
	uint8_t code[8] = {0};

	memcpy(code + 8 - len, bytes, len);
	return hb_unwind_call_at(code, 0x400000, target);
}

#define CALL_AT(...)                                                                               \
	call_at((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), &target)

TEST(what_precedes_a_return_address)
{
	__u64 target = 0;

	CHECK_EQ(CALL_AT(0xe8, 0x10, 0, 0, 0), HB_UNWIND_DIRECT_CALL);
	CHECK_EQ(target, 0x400010);
	CHECK_EQ(CALL_AT(0xe8, 0xf0, 0xff, 0xff, 0xff), HB_UNWIND_DIRECT_CALL);
	CHECK_EQ(target, 0x3ffff0);
	/* call *%rax, *%r11, *(%rax), *8(%rbx), *8(%rsp), *x(%rip), *x(,%rax,8), *x(%rbx), *x(%rsp)
	 */
	CHECK_EQ(CALL_AT(0xff, 0xd0), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0x41, 0xff, 0xd3), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x10), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x53, 0x08), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x54, 0x24, 0x08), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x15, 1, 2, 3, 0), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x14, 0xc5, 1, 2, 3, 0), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x93, 1, 2, 3, 0), HB_UNWIND_INDIRECT_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x94, 0x24, 1, 2, 3, 0), HB_UNWIND_INDIRECT_CALL);
	/* jmp *%rax; a call of another length; ret and padding; nothing */
	CHECK_EQ(CALL_AT(0xff, 0xe0), HB_UNWIND_NO_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x10, 0x90), HB_UNWIND_NO_CALL);
	CHECK_EQ(CALL_AT(0xff, 0x15, 1, 2, 3), HB_UNWIND_NO_CALL);
	CHECK_EQ(CALL_AT(0xc3, 0x66, 0x90), HB_UNWIND_NO_CALL);
	CHECK_EQ(CALL_AT(0), HB_UNWIND_NO_CALL);
}
