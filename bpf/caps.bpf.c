// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: a call of our own process. Out: nothing; loading and attaching these programs is the answer.
 *
 * An object of its own, so that user space learns what this kernel lacks before the real programs
 * are loaded. The first uses everything that they need beyond 5.15: a sleepable uprobe (6.0),
 * bpf_loop (5.17), bpf_copy_from_user in it; the second is for multi links, the third adds
 * bpf_get_func_ip for session links.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

static long visit(__u32 index, void *data)
{
	return 1;
}

SEC("uprobe.s")
int caps_base(struct pt_regs *ctx)
{
	__u64 word;

	bpf_loop(2, visit, NULL, 0);
	bpf_copy_from_user(&word, sizeof(word), (void *)ctx->sp);
	return 0;
}

SEC("uprobe.s")
int caps_multi(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe.s")
int caps_session(struct pt_regs *ctx)
{
	return bpf_get_func_ip(ctx) == ctx->ip;
}

char LICENSE[] SEC("license") = "GPL";
