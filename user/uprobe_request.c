// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a program and places in a file. Out: a descriptor. Must not know sets of links, nor who calls
 * it: that may be a process apart, so nothing is allocated or remembered when a link is made.
 */
#include "uprobe_request.h"

#include "cleanup.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#define PMU_DIR "/sys/bus/event_source/devices/uprobe/"

/* uapi of 6.6 */
#define MULTI_RETURN 1

/* The number in a file of one line. 0 and *out, or -errno. */
static int read_number(const char *path, const char *format, uint32_t *out)
{
	FILE *file _cleanup_file_ = fopen(path, "re");
	uint32_t number;

	if (!file)
		return -errno;
	if (fscanf(file, format, &number) != 1)
		return -EBADMSG;
	*out = number;
	return 0;
}

int uprobe_pmu_read(struct uprobe_pmu *out)
{
	uint32_t type, bit;
	int err = read_number(PMU_DIR "type", "%u", &type);

	if (!err)
		err = read_number(PMU_DIR "format/retprobe", "config:%u", &bit);
	if (err)
		return err;
	if (bit >= 64)
		return -EBADMSG;
	*out = (struct uprobe_pmu){.type = type, .returns = 1ULL << bit};
	return 0;
}

struct uprobe_request uprobe_request_multi(int prog_fd, uint32_t attach_type, const char *path,
					   const uint64_t *offs, const uint64_t *cookies,
					   uint32_t cnt, bool returns, pid_t tgid)
{
	return (struct uprobe_request){
		.link =
			{
				.prog_fd = prog_fd,
				.attach_type = attach_type,
				.path = (uintptr_t)path,
				.offs = (uintptr_t)offs,
				.cookies = (uintptr_t)cookies,
				.cnt = cnt,
				.multi_flags = returns ? MULTI_RETURN : 0,
				.pid = tgid,
			},
		.fd = -1,
		.event_fd = -1,
	};
}

struct uprobe_request uprobe_request_perf(const struct uprobe_pmu *pmu, int prog_fd,
					  const char *path, uint64_t off, uint64_t cookie,
					  bool returns, pid_t tgid)
{
	return (struct uprobe_request){
		.link =
			{
				.prog_fd = prog_fd,
				.attach_type = BPF_PERF_EVENT,
				.event_cookie = cookie,
			},
		.event =
			{
				.type = pmu->type,
				.size = sizeof(struct perf_event_attr),
				.config = returns ? pmu->returns : 0,
				.config1 = (uintptr_t)path,
				.config2 = off,
			},
		.tgid = tgid,
		.fd = -1,
		.event_fd = -1,
	};
}

int uprobe_request_make(struct uprobe_request *request)
{
	int err;

	if (request->event.size) {
		/* An event of all processes must have a CPU; its program runs on all of them. */
		request->event_fd = syscall(SYS_perf_event_open, &request->event,
					    request->tgid ? request->tgid : -1,
					    request->tgid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
		if (request->event_fd < 0)
			return -errno;
		request->link.target_fd = request->event_fd;
	}
	/* The kernel takes the attribute only up to the last field it knows. */
	request->fd = syscall(SYS_bpf, BPF_LINK_CREATE, &request->link,
			      offsetof(struct uprobe_request_link, pad));
	err = request->fd < 0 ? -errno : 0;
	/* The link holds the event. */
	if (request->event_fd >= 0)
		close(take_fd(&request->event_fd));
	return err;
}
