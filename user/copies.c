// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: numbered pieces of work. Out: the answers of those that were done. One fork and one pipe per
 * piece: who is done first gets the next one, and memory does not add up.
 *
 * Must not know what the work is.
 */
#include "copies.h"

#include "cleanup.h"
#include "contain.h"
#include "vec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>

/* A piece under way; pid 0: none. */
struct copy {
	pid_t pid;
	int fd; /* of the pipe, to read */
	size_t piece;
	char *answer; /* owned; so far */
	size_t len, cap;
};

/* All that are. */
struct crew {
	const struct copies_work *work;
	struct copy copies[COPIES_MAX];
};

#define READ_BYTES (64UL << 10)

unsigned copies_useful(void)
{
	cpu_set_t set;
	int cnt;

	/* Fails where there are more processors than the set holds. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return COPIES_MAX;
	cnt = CPU_COUNT(&set);
	return cnt < COPIES_MAX ? (unsigned)cnt : COPIES_MAX;
}

/* The copy: its end tells whether all of the answer is in the pipe. */
static _Noreturn void do_piece(const struct crew *crew, size_t piece, int fd)
{
	const struct copies_work *work = crew->work;
	FILE *out = fdopen(fd, "w");
	bool done;

	/* Whose pipe we leave shall end; so no copy keeps that of another. */
	signal(SIGPIPE, SIG_DFL);
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (crew->copies[i].pid)
			close(crew->copies[i].fd);
	done = out && work->work(piece, out, work->data);
	_exit(done && !fclose(out) ? 0 : 1);
}

/* Begins a piece; false if no process can be made. */
static bool begin(const struct crew *crew, size_t piece, struct copy *copy)
{
	_cleanup_close_ int to_write = -1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return false;
	to_write = fds[1];
	pid = contain_fork();
	if (!pid) {
		close(fds[0]);
		do_piece(crew, piece, to_write);
	}
	if (pid < 0) {
		close(fds[0]);
		return false;
	}
	copy->pid = pid;
	copy->fd = fds[0];
	copy->piece = piece;
	copy->len = 0;
	return true;
}

/*
 * The copy has written all, or we hear no more of it: waits, and takes its answer if it is `whole`.
 */
static void finish(const struct copies_work *work, struct copy *copy, bool whole)
{
	close(copy->fd);
	/* Nobody waits for what it computes. */
	if (!whole)
		kill(copy->pid, SIGKILL);
	if (!contain_wait(copy->pid) && whole)
		work->take(copy->piece, copy->answer, copy->len, work->data);
	copy->pid = 0;
}

/* Reads what there is of an answer, and finishes the copy when there is no more. */
static void read_some(const struct copies_work *work, struct copy *copy)
{
	ssize_t got;

	if (copy->len > COPIES_ANSWER_MAX_BYTES ||
	    vec_reserve(&copy->answer, &copy->cap, copy->len + READ_BYTES)) {
		finish(work, copy, false);
		return;
	}
	got = read(copy->fd, copy->answer + copy->len, READ_BYTES);
	if (got > 0)
		copy->len += (size_t)got;
	else if (!got || errno != EINTR)
		finish(work, copy, !got);
}

/* Waits until some of the copies have something to say, and hears them; false: there are none. */
static bool hear(struct crew *crew)
{
	struct copy *copies = crew->copies;
	struct pollfd fds[COPIES_MAX];
	bool any = false;

	for (size_t i = 0; i < COPIES_MAX; i++) {
		fds[i] = (struct pollfd){.fd = copies[i].pid ? copies[i].fd : -1, .events = POLLIN};
		any |= copies[i].pid > 0;
	}
	/* A poll that fails tells nothing: then each is read in turn, which waits, too. */
	if (any && poll(fds, COPIES_MAX, -1) < 0)
		for (size_t i = 0; i < COPIES_MAX; i++)
			fds[i].revents = POLLIN;
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (copies[i].pid && fds[i].revents)
			read_some(crew->work, &copies[i]);
	return any;
}

void copies_run(const struct copies_work *work, unsigned at_once)
{
	struct crew crew = {.work = work};
	size_t next = 0;

	do {
		for (size_t i = 0; i < at_once && next < work->piece_cnt; i++) {
			if (crew.copies[i].pid)
				continue;
			/* The next ones would hardly fare better. */
			next = begin(&crew, next, &crew.copies[i]) ? next + 1 : work->piece_cnt;
		}
	} while (hear(&crew));
	for (size_t i = 0; i < COPIES_MAX; i++)
		free(crew.copies[i].answer);
}
