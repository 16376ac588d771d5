// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: words. Out: a process that becomes the program they name, at our sign, and its status.
 *
 * The child is forked before anything of ours is open or changed, so that there is nothing to undo
 * in it. A socket joins us: a byte tells the child to go; what comes back is errno of its exec, or
 * the end of the stream, since exec closes it, and so does death on either side.
 *
 * The keeper is a second child. While the program is held, a SIGKILL of ours would leave it stopped
 * for ever, and one of its children as well. The keeper, which no signal from a terminal reaches,
 * waits for a lock that we hold for life, and if we died tells BPF to hold nobody any more and
 * sends SIGCONT to all whom BPF's own map says to be held: to take out the probes of many processes
 * takes the kernel seconds, in which others still begin. A robust lock is given up first of all, a
 * descriptor when all the others are closed. (PR_SET_PDEATHSIG would do so without a process, but
 * is forgotten by programs that change their user, and would come after orderly ends as well.)
 */
#include "command.h"

#include "../bpf/abi.h"
#include "cleanup.h"
#include "log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Exit statuses by which shells and env(1) tell why a program did not run. */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127
#define STATUS_SIGNAL	      128

/* Turns of the keeper when we are gone for good, for who was held at the very last. */
#define KEEPER_TURNS   20
#define KEEPER_WAIT_NS 5000000

struct command {
	const char *name; /* borrowed from argv */
	pid_t tgid;
	int pidfd; /* owned */
	int sock;  /* owned; to the child, -1 once it has executed */
	pid_t keeper;
	int keeper_fd;	       /* owned; -1: no keeper */
	pthread_mutex_t *life; /* owned; shared with the keeper, ours until we are done, or dead */
	bool running;
	bool ended;
	int status; /* as from waitpid(), once `ended` */
	int error;  /* errno of the exec, or 0 */
};

DEFINE_CLEANUP(command, struct command, command_free)

static int send_signal(int pidfd, int number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

/* The child until its exec. Allocates nothing: its program's life begins after it. */
static void be_command(char *const *argv, int sock, int ready_fd)
{
	char go;
	int error;

	/* Not a standard stream, which somebody may have given for want of others. */
	if (ready_fd > STDERR_FILENO)
		fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
	if (TEMP_FAILURE_RETRY(read(sock, &go, 1)) != 1)
		_exit(STATUS_NOT_EXECUTABLE);
	execvp(argv[0], argv);
	error = errno;
	if (write(sock, &error, sizeof(error)) < 0)
		_exit(STATUS_NOT_EXECUTABLE);
	_exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

/* Descriptors of the keeper. */
enum {
	KEEPER_SOCK,  /* to us: the holds come by it */
	KEEPER_PIDFD, /* the program */
	KEEPER_HOLDS, /* the map, once it came */
	KEEPER_FD_CNT,
};

/* What the keeper is sent beside the offset. */
enum {
	SENT_MAP,
	SENT_SWITCH,
	SENT_CNT,
};

/* Room for a message to the keeper. */
struct keeper_message {
	uint64_t switch_off;
	char space[CMSG_SPACE(SENT_CNT * sizeof(int))];
	struct iovec io;
	struct msghdr header;
};

static void keeper_message_init(struct keeper_message *message)
{
	*message = (struct keeper_message){};
	message->io = (struct iovec){&message->switch_off, sizeof(message->switch_off)};
	message->header = (struct msghdr){.msg_iov = &message->io,
					  .msg_iovlen = 1,
					  .msg_control = message->space,
					  .msg_controllen = sizeof(message->space)};
}

/* Maps the number that ends holds; NULL: it cannot be. */
static uint32_t *map_switch(int fd, uint64_t off)
{
	uint64_t page_bytes = sysconf(_SC_PAGESIZE), in_page = off % page_bytes;
	char *page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  (off_t)(off - in_page));

	return page == MAP_FAILED ? NULL : (uint32_t *)(page + in_page);
}

/* Gets the map, and the number that ends holds or NULL. False: there will be none. */
static bool keeper_gets_holds(uint32_t **holds_off)
{
	struct keeper_message message;
	const struct cmsghdr *header;
	int fds[SENT_CNT];

	keeper_message_init(&message);
	if (TEMP_FAILURE_RETRY(recvmsg(KEEPER_SOCK, &message.header, 0)) !=
	    sizeof(message.switch_off))
		return false;
	header = CMSG_FIRSTHDR(&message.header);
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(fds)))
		return false;
	memcpy(fds, CMSG_DATA(header), sizeof(fds));
	*holds_off = map_switch(fds[SENT_SWITCH], message.switch_off);
	return fds[SENT_MAP] == KEEPER_HOLDS || dup2(fds[SENT_MAP], KEEPER_HOLDS) >= 0;
}

/* SIGCONT to all whom the map says to be held, or to be let go on just then. */
static void let_held_on(void)
{
	struct hb_holding holding;
	uint32_t tgid;

	for (int end = bpf_map_get_next_key(KEEPER_HOLDS, NULL, &tgid); !end;
	     end = bpf_map_get_next_key(KEEPER_HOLDS, &tgid, &tgid))
		if (!bpf_map_lookup_elem(KEEPER_HOLDS, &tgid, &holding) &&
		    (holding.hold == HB_HOLD_HELD || holding.due))
			kill((pid_t)tgid, SIGCONT);
}

/* Keeps only what it needs, or readers of our output would wait for its end. */
static void be_keeper(int sock, int pidfd, pid_t parent, pthread_mutex_t *life)
{
	const struct timespec pause = {.tv_nsec = KEEPER_WAIT_NS};
	uint32_t *holds_off = NULL;
	bool has_map;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "heapbpf-keeper");
	if (dup2(sock, KEEPER_SOCK) < 0 || dup2(pidfd, KEEPER_PIDFD) < 0)
		_exit(1);
	close_range(KEEPER_HOLDS, ~0U, 0);
	has_map = keeper_gets_holds(&holds_off);
	if (pthread_mutex_lock(life) != EOWNERDEAD)
		_exit(0);
	/* The kernel takes out probes in its own time; until then they would hold others. */
	if (holds_off)
		__atomic_store_n(holds_off, 1, __ATOMIC_SEQ_CST);
	for (int left = KEEPER_TURNS; left; left -= getppid() != parent) {
		if (has_map)
			let_held_on();
		if (send_signal(KEEPER_PIDFD, SIGCONT) && !has_map)
			_exit(0);
		nanosleep(&pause, NULL);
	}
	_exit(0);
}

static int start_child(struct command *command, char *const *argv, int ready_fd)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	command->sock = ends[0];
	command->tgid = fork();
	if (!command->tgid) {
		close(ends[0]);
		be_command(argv, ends[1], ready_fd);
	}
	close(ends[1]);
	if (command->tgid < 0)
		return -errno;
	command->pidfd = syscall(SYS_pidfd_open, command->tgid, 0);
	return command->pidfd < 0 ? -errno : 0;
}

/* A lock that is ours, and that others can tell to be its dead owner's. 0 or -errno. */
static int take_life(struct command *command)
{
	void *shared = mmap(NULL, sizeof(*command->life), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	if (shared == MAP_FAILED)
		return -errno;
	command->life = shared;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(command->life, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -pthread_mutex_lock(command->life);
}

static int start_keeper(struct command *command)
{
	pid_t parent = getpid();
	int ends[2], err = take_life(command);

	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	command->keeper_fd = ends[0];
	command->keeper = fork();
	if (!command->keeper) {
		close(ends[0]);
		be_keeper(ends[1], command->pidfd, parent, command->life);
	}
	close(ends[1]);
	return command->keeper < 0 ? -errno : 0;
}

int command_start(char *const *argv, int ready_fd, struct command **out)
{
	struct command *command _cleanup_(cleanup_command) = calloc(1, sizeof(*command));
	int err;

	if (!command)
		return log_fail(ENOMEM, "cannot start");
	command->name = argv[0];
	command->pidfd = command->sock = command->keeper_fd = -1;
	err = start_child(command, argv, ready_fd);
	/* Children of those who ignore it leave no status. */
	signal(SIGCHLD, SIG_DFL);
	if (!err)
		err = start_keeper(command);
	if (err)
		return log_fail(-err, "cannot start a process for %s", argv[0]);
	*out = take_ptr(command);
	return 0;
}

pid_t command_tgid(const struct command *command)
{
	return command->tgid;
}

int command_keep(const struct command *command, const struct command_holds *holds)
{
	const int fds[SENT_CNT] = {
		[SENT_MAP] = holds->map_fd,
		[SENT_SWITCH] = holds->switch_fd,
	};
	struct keeper_message message;
	struct cmsghdr *header;

	keeper_message_init(&message);
	message.switch_off = holds->switch_off;
	header = CMSG_FIRSTHDR(&message.header);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	if (sendmsg(command->keeper_fd, &message.header, MSG_NOSIGNAL) ==
	    sizeof(message.switch_off))
		return 0;
	return log_fail(errno, "cannot make sure that %s goes on if we are killed", command->name);
}

/* Says why execvp() failed, in more words than errno has. */
static int explain(const struct command *command, int error)
{
	const char *name = command->name;
	struct stat st;

	if (error == ENOENT && !strchr(name, '/'))
		return log_fail(0, "cannot execute %s: no such program in PATH", name);
	if (error == ENOENT && !stat(name, &st))
		return log_fail(0,
				"cannot execute %s: its interpreter (named in its first line, or "
				"its dynamic linker) does not exist",
				name);
	if (error == EACCES && !stat(name, &st) && S_ISDIR(st.st_mode))
		return log_fail(EISDIR, "cannot execute %s", name);
	return log_fail(error, "cannot execute %s", name);
}

int command_go(struct command *command)
{
	ssize_t got = -1;
	int error;

	/* A child that was killed meanwhile must not end us by SIGPIPE. */
	if (send(command->sock, "g", 1, MSG_NOSIGNAL) == 1)
		got = TEMP_FAILURE_RETRY(read(command->sock, &error, sizeof(error)));
	close(take_fd(&command->sock));
	if (got == sizeof(error)) {
		command->error = error;
		return explain(command, error);
	}
	if (got)
		return log_fail(0, "the process for %s ended before it could execute it",
				command->name);
	return 0;
}

void command_set_running(struct command *command)
{
	command->running = true;
}

void command_pass_signal(const struct command *command, int number, int code)
{
	if (code != SI_KERNEL && send_signal(command->pidfd, number) && errno != ESRCH)
		log_warn("cannot pass signal %d to process %d: %s", number, (int)command->tgid,
			 strerror(errno));
}

/* Notes the end of the child, if it has come; with `options` 0 waits for it. */
static void reap(struct command *command, int options)
{
	if (!command->ended && command->tgid > 0)
		command->ended = TEMP_FAILURE_RETRY(waitpid(command->tgid, &command->status,
							    options)) == command->tgid;
}

void command_wait(struct command *command)
{
	reap(command, 0);
}

int command_status(struct command *command)
{
	if (command->error)
		return command->error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	reap(command, WNOHANG);
	if (!command->ended)
		return -1;
	return WIFEXITED(command->status) ? WEXITSTATUS(command->status)
					  : STATUS_SIGNAL + WTERMSIG(command->status);
}

void command_free(struct command *command)
{
	if (!command)
		return;
	if (!command->running && command->pidfd >= 0) {
		send_signal(command->pidfd, SIGKILL);
		reap(command, 0);
	}
	cleanup_close(&command->keeper_fd);
	if (command->life)
		pthread_mutex_unlock(command->life);
	if (command->keeper > 0)
		TEMP_FAILURE_RETRY(waitpid(command->keeper, NULL, 0));
	if (command->life)
		munmap(command->life, sizeof(*command->life));
	cleanup_close(&command->sock);
	cleanup_close(&command->pidfd);
	free(command);
}
