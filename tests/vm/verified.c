// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the BPF programs that are loaded now, or those of them whose numbers are arguments. Out: a
 * line "NAME COUNT" for each uprobe program: how many instructions the verifier looked at before
 * it accepted the program as configured (bpf_prog_info.verified_insns, Linux 5.16, aba64c7da983).
 * Uses no library, so that the VM's empty userland can run it.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* 0 and *out, or -errno. */
static int info_of(uint32_t id, struct bpf_prog_info *out)
{
	union bpf_attr get = {.prog_id = id};
	union bpf_attr ask = {};
	int err = 0;
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &get);

	if (fd < 0)
		return -errno;
	memset(out, 0, sizeof(*out));
	ask.info.bpf_fd = fd;
	ask.info.info_len = sizeof(*out);
	ask.info.info = (uintptr_t)out;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &ask))
		err = -errno;
	close(fd);
	return err;
}

/* Is it one of those that were asked for? */
static int is_wanted(uint32_t id, char *const *numbers)
{
	if (!*numbers)
		return 1;
	for (; *numbers; numbers++)
		if (strtoul(*numbers, NULL, 10) == id)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char *const *numbers = argv + (argc > 0);
	union bpf_attr next = {};
	struct bpf_prog_info info;

	while (!bpf(BPF_PROG_GET_NEXT_ID, &next)) {
		next.start_id = next.next_id;
		if (!is_wanted(next.next_id, numbers))
			continue;
		/* One that ended meanwhile is no failure. */
		if (!info_of(next.next_id, &info) && info.type == BPF_PROG_TYPE_KPROBE)
			printf("%s %u\n", info.name, info.verified_insns);
	}
	if (errno != ENOENT) {
		perror("cannot list the BPF programs");
		return 2;
	}
	return 0;
}
