// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a command and makes one of its system calls fail, without the kernel seeing it.
 *
 *   fault_syscall CALL N ERRNO|SHORT COMMAND [ARG...]
 *   fault_syscall count FILE COMMAND [ARG...]
 *
 * The N-th CALL of the command, its threads and children fails with ERRNO. SHORT: it reads or
 * writes half of what was asked. Calls of the dynamic loader do not count, and of those that read
 * or write a file only the first, the second, the fourth, the eighth and so on: there may be
 * thousands. `count` writes lines "CALL COUNT" to FILE, at the end. The status is the command's.
 *
 * A filter of seccomp sends each CALL here (seccomp_unotify(2), Linux 5.5).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT	  (-1)
#define FILES_MAX 256
#define PIECE_MAX (1 << 20)

static struct call {
	const char *name;
	int number;
	bool is_transfer; /* of bytes, by the descriptor in the first argument */
	long count;
} calls[] = {
	{"bpf", SYS_bpf, false, 0},
	{"clone", SYS_clone, false, 0},
	{"clone3", SYS_clone3, false, 0},
	{"epoll_create1", SYS_epoll_create1, false, 0},
	{"epoll_ctl", SYS_epoll_ctl, false, 0},
	{"fchown", SYS_fchown, false, 0},
	{"fsync", SYS_fsync, false, 0},
	{"getrandom", SYS_getrandom, false, 0},
	{"ioctl", SYS_ioctl, false, 0},
	{"mmap", SYS_mmap, false, 0},
	{"newfstatat", SYS_newfstatat, false, 0},
	{"openat", SYS_openat, false, 0},
	{"openat2", SYS_openat2, false, 0},
	{"perf_event_open", SYS_perf_event_open, false, 0},
	{"pidfd_open", SYS_pidfd_open, false, 0},
	{"pipe2", SYS_pipe2, false, 0},
	{"poll", SYS_poll, false, 0},
	{"pread64", SYS_pread64, true, 0},
	{"read", SYS_read, true, 0},
	{"rename", SYS_rename, false, 0},
	{"signalfd4", SYS_signalfd4, false, 0},
	{"timerfd_create", SYS_timerfd_create, false, 0},
	{"timerfd_settime", SYS_timerfd_settime, false, 0},
	{"wait4", SYS_wait4, false, 0},
	{"write", SYS_write, true, 0},
};

#define CALL_CNT (sizeof(calls) / sizeof(calls[0]))

static const struct {
	const char *name;
	int number;
} errors[] = {
	{"E2BIG", E2BIG},   {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},
	{"EINTR", EINTR},   {"EINVAL", EINVAL}, {"EIO", EIO},	    {"EMFILE", EMFILE},
	{"ENFILE", ENFILE}, {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC},
	{"ENOSYS", ENOSYS}, {"EPERM", EPERM},	{"SHORT", SHORT},
};

/* A file that was read or written, and how often. */
static struct {
	char name[256];
	int uses;
} files[FILES_MAX];
static size_t file_cnt;

static pid_t child;

static void die(const char *what)
{
	perror(what);
	_exit(99);
}

static void pass_on(int signal)
{
	kill(child, signal);
}

static void on_child(int signal)
{
	(void)signal; /* poll() ends, which is all */
}

/* --- the child ------------------------------------------------------------------------------- */

static void send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = "";
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) != 1)
		die("sendmsg");
}

/* A filter that sends us `only`, or all if it is NULL; the descriptor to listen at. */
static int install(const struct call *only)
{
	struct sock_filter code[2 * CALL_CNT + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog filter = {1, code};
	int listener;

	for (size_t i = 0; i < CALL_CNT; i++) {
		if (only && only != &calls[i])
			continue;
		code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								  (uint32_t)calls[i].number, 0, 1);
		code[filter.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			   &filter);
	if (listener < 0)
		die("seccomp");
	return listener;
}

/* Hands the listener over and becomes the command. */
static void become(const struct call *only, int socket, char **argv)
{
	sigset_t none;
	int listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	listener = install(only);
	send_fd(socket, listener);
	close(listener);
	close(socket);
	execvp(argv[0], argv);
	die(argv[0]);
}

/* --- the parent ------------------------------------------------------------------------------ */

static int receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		_exit(99);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Is the instruction in the dynamic loader of the process? */
static bool is_loader(pid_t pid, uint64_t ip)
{
	char path[64], line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		unsigned long long start, end;

		found = sscanf(line, "%llx-%llx", &start, &end) == 2 && ip >= start && ip < end &&
			strstr(line, "/ld-linux");
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Counts the use of the file behind the descriptor. */
static int count_use(pid_t pid, int fd)
{
	char path[64], name[256];
	ssize_t len;
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	len = fd < 0 ? -1 : readlink(path, name, sizeof(name) - 1);
	snprintf(name + (len < 0 ? 0 : len), sizeof(name) - (len < 0 ? 0 : len), "%s",
		 len < 0 ? "none" : "");
	for (i = 0; i < file_cnt && strcmp(files[i].name, name); i++)
		;
	if (i == FILES_MAX)
		return 1;
	if (i == file_cnt)
		snprintf(files[file_cnt++].name, sizeof(files[0].name), "%s", name);
	return ++files[i].uses;
}

static bool counts(const struct call *call, const struct seccomp_notif *request)
{
	int uses;

	if (is_loader(request->pid, request->data.instruction_pointer))
		return false;
	uses = call->is_transfer ? count_use(request->pid, (int)request->data.args[0]) : 1;
	return (uses & (uses - 1)) == 0;
}

/* The row of a call that the filter sends. */
static struct call *find_call(int number)
{
	for (size_t i = 0; i < CALL_CNT; i++)
		if (calls[i].number == number)
			return &calls[i];
	_exit(99);
}

/* Does half of a read or write in the name of the process. */
static int64_t do_half(const struct call *call, const struct seccomp_notif *request)
{
	static char piece[PIECE_MAX];
	const uint64_t *args = (const uint64_t *)request->data.args;
	size_t half = args[2] < 2 ? args[2] : args[2] / 2;
	size_t len = half < PIECE_MAX ? half : PIECE_MAX;
	struct iovec here = {piece, len}, there = {(void *)(uintptr_t)args[1], len};
	int pidfd = syscall(SYS_pidfd_open, request->pid, 0);
	int fd = syscall(SYS_pidfd_getfd, pidfd, (int)args[0], 0);
	ssize_t done;

	if (fd < 0)
		die("pidfd_getfd");
	if (call->number == SYS_write) {
		if (process_vm_readv(request->pid, &here, 1, &there, 1, 0) != (ssize_t)len)
			die("process_vm_readv");
		done = write(fd, piece, len);
	} else {
		done = call->number == SYS_read ? read(fd, piece, len)
						: pread(fd, piece, len, (off_t)args[3]);
		here.iov_len = done > 0 ? done : 0;
		if (done > 0 && process_vm_writev(request->pid, &here, 1, &there, 1, 0) != done)
			die("process_vm_writev");
	}
	done = done < 0 ? -errno : done;
	close(fd);
	close(pidfd);
	return done;
}

static void answer(int listener, long nth, int error)
{
	struct seccomp_notif request = {};
	struct seccomp_notif_resp response = {};
	struct call *call;

	/* Whoever asked may be gone. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
		return;
	call = find_call(request.data.nr);
	response.id = request.id;
	response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (counts(call, &request) && ++call->count == nth) {
		int64_t value = error == SHORT ? do_half(call, &request) : -error;

		response.flags = 0;
		response.error = value < 0 ? (int)value : 0;
		response.val = value < 0 ? 0 : value;
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Answers until the command has ended; its status. */
static int serve(int listener, long nth, int error)
{
	struct pollfd fd = {.fd = listener, .events = POLLIN};
	sigset_t none;
	int status;

	sigemptyset(&none);
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (ppoll(&fd, 1, NULL, &none) > 0 && fd.revents & POLLIN)
			answer(listener, nth, error);
		else if (fd.revents & POLLHUP)
			fd.fd = -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_counts(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		die(path);
	for (size_t i = 0; i < CALL_CNT; i++)
		fprintf(file, "%s %ld\n", calls[i].name, calls[i].count);
	if (fclose(file))
		die(path);
}

/* Ctrl-C is for the command. Blocked but while we wait, so that none is missed. */
static void take_signals(void)
{
	struct sigaction pass = {.sa_handler = pass_on}, end = {.sa_handler = on_child};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGINT, &pass, NULL);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGCHLD, &end, NULL);
}

/* Runs the command; its status. */
static int run(const struct call *only, long nth, int error, char **argv)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		die("socketpair");
	take_signals();
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		become(only, sockets[1], argv);
	close(sockets[1]);
	return serve(receive_fd(sockets[0]), nth, error);
}

int main(int argc, char **argv)
{
	const struct call *call = NULL;
	int error = 0, status;

	if (argc > 3 && !strcmp(argv[1], "count")) {
		status = run(NULL, 0, 0, argv + 3);
		write_counts(argv[2]);
		return status;
	}
	for (size_t i = 0; argc > 4 && i < CALL_CNT; i++)
		if (!strcmp(argv[1], calls[i].name))
			call = &calls[i];
	for (size_t i = 0; argc > 4 && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(argv[3], errors[i].name))
			error = errors[i].number;
	if (!call || !error) {
		fputs("usage: fault_syscall CALL N ERRNO|SHORT COMMAND [ARG...]\n"
		      "       fault_syscall count FILE COMMAND [ARG...]\n",
		      stderr);
		return 99;
	}
	return run(call, atol(argv[2]), error, argv + 4);
}
