// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: a call of our own process. Out: nothing; loading and attaching these programs is the answer.
 *
 * An object of its own, so that user space learns what this kernel lacks before the real programs
 * are loaded. Each uses everything that they need beyond 5.15: a sleepable uprobe (6.0), bpf_loop
 * (5.17), bpf_copy_from_user in it; and reading the kernel's memory, which lockdown forbids. The
 * second is for multi links, the third adds bpf_get_func_ip for session links. None of them names a
 * field of the kernel: with nothing to relocate the loader need not read the kernel's types, which
 * takes longer than all the rest.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* Words of struct pt_regs, whose layout on x86-64 is part of the system call interface. */
#define WORD(ctx, n) (((const __u64 *)(ctx))[n])
#define WORD_IP	     16
#define WORD_SP	     19

static long visit(__u32 index, void *data)
{
	return 1;
}

/* What every way to attach needs; a kernel that is locked down refuses the last one. */
static __always_inline void use_helpers(struct pt_regs *ctx)
{
	__u64 word;

	bpf_loop(2, visit, NULL, 0);
	bpf_copy_from_user(&word, sizeof(word), (void *)WORD(ctx, WORD_SP));
	bpf_probe_read_kernel(&word, sizeof(word), (void *)bpf_get_current_task());
}

SEC("uprobe.s")
int caps_base(struct pt_regs *ctx)
{
	use_helpers(ctx);
	return 0;
}

SEC("uprobe.s")
int caps_multi(struct pt_regs *ctx)
{
	use_helpers(ctx);
	return 0;
}

SEC("uprobe.s")
int caps_session(struct pt_regs *ctx)
{
	use_helpers(ctx);
	return bpf_get_func_ip(ctx) == WORD(ctx, WORD_IP);
}

char LICENSE[] SEC("license") = "GPL";
