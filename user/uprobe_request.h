/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel is asked for: one link, that keeps probes attached until its descriptor is
 * closed. The same for each way to attach, and with our own system calls: the best ways are newer
 * than the libbpf of stable distributions, and libbpf makes objects in memory, which a process
 * apart cannot hand back.
 */
#ifndef UPROBE_REQUEST_H
#define UPROBE_REQUEST_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The part of union bpf_attr that BPF_LINK_CREATE reads (uapi of 6.6). */
struct uprobe_request_link {
	uint32_t prog_fd;
	uint32_t target_fd; /* of the event */
	uint32_t attach_type;
	uint32_t flags;
	union {
		uint64_t event_cookie; /* of 5.15 */
		uint64_t path;
	};
	uint64_t offs;
	uint64_t ref_ctr_offs;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
};

/* One link, wanted or made. */
struct uprobe_request {
	struct uprobe_request_link link;
	struct perf_event_attr event; /* to attach to; none if its size is 0 */
	pid_t tgid;
	/* Noted from when the kernel gave them until somebody begins to close them; -1: none. */
	int fd;
	int event_fd;
};

/* Numbers that the kernel gives to uprobes among perf events. */
struct uprobe_pmu {
	uint32_t type;
	uint64_t returns; /* config: probe the return instead of the entry */
};

/* From /sys. 0 and *out, or -errno (-ENOENT: no uprobes there), -EBADMSG. */
int uprobe_pmu_read(struct uprobe_pmu *out);

/*
 * A multi or session link over `cnt` places in the file at `path`, or over their returns. What the
 * pointers name must stay; cookies may be NULL.
 */
struct uprobe_request uprobe_request_multi(int prog_fd, uint32_t attach_type, const char *path,
					   const uint64_t *offs, const uint64_t *cookies,
					   uint32_t cnt, bool returns, pid_t tgid);

/* A perf event at one place, and its link. `path` must stay. */
struct uprobe_request uprobe_request_perf(const struct uprobe_pmu *pmu, int prog_fd,
					  const char *path, uint64_t off, uint64_t cookie,
					  bool returns, pid_t tgid);

/* Makes the link, by system calls only. 0 and request->fd, or -errno of the kernel. */
int uprobe_request_make(struct uprobe_request *request);

#endif
