/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One step back: from the registers of a frame and the unwind rule of its PC to the registers of
 * its caller. Pure C without maps or helpers, so that the same text runs in BPF and in host tests.
 *
 * The includer defines before the include
 *   HB_UNWIND_READ(regs, dst, len, addr)   copies len (8 or 16) bytes of the target's memory to the
 *                                          __u64s at dst, within *regs; 0 on success
 */
#ifndef HB_UNWIND_STEP_H
#define HB_UNWIND_STEP_H

#include "abi.h"
#include "cfi_row.h"

#ifndef HB_UNWIND_READ
#error "define HB_UNWIND_READ(regs, dst, len, addr) first"
#endif

/*
 * What the steps below return: HB_UNWIND_ON, there is a caller; HB_STACK_COMPLETE, there is none;
 * else the enum hb_loss that cuts the stack here.
 */
#define HB_UNWIND_ON 0x10000

/* A frame-pointer step must stay within so many bytes of rsp. */
#define HB_UNWIND_FP_REACH (1 << 20)

/* Where the kernel puts the interrupted registers above rsp (struct rt_sigframe, x86-64). */
#define HB_UNWIND_UCONTEXT_GREGS 40
#define HB_UNWIND_GREG_RBP	 10
#define HB_UNWIND_GREG_RSP	 15
#define HB_UNWIND_GREG_RIP	 16

/*
 * The registers of one frame. Memory is read straight into them: BPF has 512 bytes of stack for all
 * that is being called.
 */
struct hb_unwind_regs {
	union {
		struct {
			__u64 rbp, pc;
		};
		__u64 frame[2]; /* as a function that keeps frame pointers saves them */
	};
	__u64 rsp;
	__u64 cfa;	 /* of the step under way */
	__u64 ra_addr;	 /* where pc was read from; 0: from a signal frame */
	__u32 exact;	 /* pc is the interrupted instruction, not a return address */
	__u32 rbp_known; /* rbp is this frame's; 0 after a rule that lost it */
};

/* The address whose row rules the frame: a call that does not return may end its function. */
HB_INLINE __u64 hb_unwind_lookup_pc(const struct hb_unwind_regs *regs)
{
	return regs->exact ? regs->pc : regs->pc - 1;
}

/* The caller of a signal handler's return stub: whatever was interrupted, on any stack. */
HB_INLINE __u32 hb_unwind_signal(struct hb_unwind_regs *regs)
{
	__u64 gregs = regs->rsp + HB_UNWIND_UCONTEXT_GREGS;

	if (HB_UNWIND_READ(regs, &regs->rbp, sizeof(regs->rbp), gregs + 8 * HB_UNWIND_GREG_RBP) ||
	    HB_UNWIND_READ(regs, &regs->rsp, sizeof(regs->rsp), gregs + 8 * HB_UNWIND_GREG_RSP) ||
	    HB_UNWIND_READ(regs, &regs->pc, sizeof(regs->pc), gregs + 8 * HB_UNWIND_GREG_RIP))
		return HB_LOSS_STACK_READ_FAULT;
	regs->ra_addr = 0;
	regs->exact = 1;
	regs->rbp_known = 1;
	return HB_UNWIND_ON;
}

/*
 * The caller's registers, given its CFA and the address of its saved rbp (rbp_addr is 0: rbp is
 * unchanged, 1: lost).
 */
HB_INLINE __u32 hb_unwind_restore(struct hb_unwind_regs *regs, __u64 cfa, __u64 rbp_addr)
{
	if (cfa <= regs->rsp)
		return HB_LOSS_STACK_SP;
	if (rbp_addr == cfa - 16) {
		/* The common case: both in one read. */
		if (HB_UNWIND_READ(regs, regs->frame, sizeof(regs->frame), rbp_addr))
			return HB_LOSS_STACK_READ_FAULT;
		regs->rbp_known = 1;
	} else {
		/* The lower one first: what is above it is read ahead. */
		if (rbp_addr > 1) {
			if (HB_UNWIND_READ(regs, &regs->rbp, sizeof(regs->rbp), rbp_addr))
				return HB_LOSS_STACK_READ_FAULT;
			regs->rbp_known = 1;
		} else if (rbp_addr == 1) {
			regs->rbp_known = 0;
		}
		if (HB_UNWIND_READ(regs, &regs->pc, sizeof(regs->pc), cfa - 8))
			return HB_LOSS_STACK_READ_FAULT;
	}
	regs->rsp = cfa;
	regs->ra_addr = cfa - 8;
	regs->exact = 0;
	return HB_UNWIND_ON;
}

/* A rule that did not fit its row. */
HB_INLINE __u32 hb_unwind_big(struct hb_unwind_regs *regs, const struct hb_cfi_big *big)
{
	__u64 cfa = (big->base == HB_CFI_RBP ? regs->rbp : regs->rsp) + big->cfa_off;
	__u64 rbp_addr = 1;

	if (big->base == HB_CFI_RBP && !regs->rbp_known)
		return HB_LOSS_STACK_UNSUPPORTED;
	if (big->rbp_saved == HB_CFI_SAVED_SAME)
		rbp_addr = 0;
	else if (big->rbp_saved == HB_CFI_SAVED_AT_RBP)
		rbp_addr = regs->rbp_known ? regs->rbp : 1;
	else if (big->rbp_saved == HB_CFI_BIG_CFA)
		rbp_addr = cfa + big->rbp_off;
	return hb_unwind_restore(regs, cfa, rbp_addr);
}

/*
 * Applies `rule`. HB_CFI_GAP ends as HB_LOSS_STACK_NO_ROW, HB_CFI_BIG is hb_unwind_big()'s,
 * HB_CFI_FP hb_unwind_frame_pointer()'s. The registers are those of the caller if the answer is
 * HB_UNWIND_ON, else partly overwritten.
 */
HB_INLINE __u32 hb_unwind_apply(struct hb_unwind_regs *regs, __u32 rule)
{
	__u32 kind = HB_CFI_KIND(rule), saved = HB_CFI_SAVED(rule), n = HB_CFI_N(rule);
	__u64 cfa, rbp_addr;

	if (kind == HB_CFI_RSP) {
		cfa = regs->rsp + 8 * (__u64)n;
	} else if (kind == HB_CFI_RBP) {
		cfa = regs->rbp + 8 * (__u64)n;
	} else if (kind == HB_CFI_PLT) {
		cfa = regs->rsp + ((regs->pc & 15) >= n ? 16 : 8);
	} else if (kind == HB_CFI_STOP) {
		return HB_STACK_COMPLETE;
	} else if (kind == HB_CFI_SIGNAL) {
		return hb_unwind_signal(regs);
	} else if (kind == HB_CFI_DEREF_RBP || kind == HB_CFI_DEREF_RSP) {
		__u64 at = kind == HB_CFI_DEREF_RBP ? regs->rbp : regs->rsp;

		if (HB_UNWIND_READ(regs, &regs->cfa, sizeof(regs->cfa), at + 8 * (__s64)(__s16)n))
			return HB_LOSS_STACK_READ_FAULT;
		cfa = regs->cfa;
	} else {
		return kind == HB_CFI_GAP ? HB_LOSS_STACK_NO_ROW : HB_LOSS_STACK_UNSUPPORTED;
	}
	if (!regs->rbp_known && (kind == HB_CFI_RBP || kind == HB_CFI_DEREF_RBP))
		return HB_LOSS_STACK_UNSUPPORTED;

	rbp_addr = cfa - 8 * (__u64)saved;
	if (saved == HB_CFI_SAVED_SAME)
		rbp_addr = 0;
	else if (saved == HB_CFI_SAVED_AT_RBP)
		rbp_addr = regs->rbp_known ? regs->rbp : 1;
	else if (saved == HB_CFI_SAVED_UNKNOWN)
		rbp_addr = 1;
	return hb_unwind_restore(regs, cfa, rbp_addr);
}

/*
 * A step by frame pointer, for code without rules. Only if rbp looks like one: aligned and at
 * most HB_UNWIND_FP_REACH above rsp. `trusted` code is known to keep frame pointers and may switch
 * stacks (Go calling C), so its rbp may point anywhere. For others the caller checks that the new
 * PC is in executable memory, and behind a call (hb_unwind_call_at()).
 */
HB_INLINE __u32 hb_unwind_frame_pointer(struct hb_unwind_regs *regs, int trusted)
{
	__u64 at = regs->rbp;

	if (!regs->rbp_known || !regs->rbp || (regs->rbp & 7))
		return HB_LOSS_STACK_FP;
	if (!trusted && (regs->rbp < regs->rsp || regs->rbp - regs->rsp >= HB_UNWIND_FP_REACH))
		return HB_LOSS_STACK_FP;
	if (HB_UNWIND_READ(regs, regs->frame, sizeof(regs->frame), at))
		return HB_LOSS_STACK_READ_FAULT;
	regs->ra_addr = at + 8;
	regs->rsp = at + 16;
	regs->exact = 0;
	return HB_UNWIND_ON;
}

/* Bytes of the longest call, before the return address. */
#define HB_UNWIND_CALL_MAX 7

/* The length of an indirect call (ff /2) with these two bytes behind its opcode. */
HB_INLINE __u32 hb_unwind_indirect_len(__u8 modrm, __u8 sib)
{
	__u32 mod = modrm >> 6, rm = modrm & 7, len = 2;

	if (mod != 3 && rm == 4)
		len++;
	if (mod == 1)
		len += 1;
	else if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5))))
		len += 4;
	return len;
}

/* What precedes a return address. */
enum hb_unwind_call {
	HB_UNWIND_NO_CALL,
	HB_UNWIND_DIRECT_CALL, /* its target is known */
	HB_UNWIND_INDIRECT_CALL,
};

/*
 * Can what ends at `pc` be a call? code[0..7] are the bytes from pc - 8 on. A direct call puts its
 * target into *target.
 */
HB_INLINE enum hb_unwind_call hb_unwind_call_at(const __u8 code[8], __u64 pc, __u64 *target)
{
	__u32 rel =
		(__u32)code[4] | (__u32)code[5] << 8 | (__u32)code[6] << 16 | (__u32)code[7] << 24;

	if (code[3] == 0xe8) {
		*target = pc + (__s64)(__s32)rel;
		return HB_UNWIND_DIRECT_CALL;
	}
	for (__u32 len = 2; len <= HB_UNWIND_CALL_MAX; len++) {
		__u8 modrm = code[8 - len + 1], sib = len > 2 ? code[8 - len + 2] : 0;

		if (code[8 - len] == 0xff && (modrm & 0x38) == 0x10 &&
		    hb_unwind_indirect_len(modrm, sib) == len)
			return HB_UNWIND_INDIRECT_CALL;
	}
	return HB_UNWIND_NO_CALL;
}

#endif
