// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces of work in copies: each answer comes back once and whole, whatever the number of copies;
 * of a copy that fails nothing comes, and the others go on.
 */
#include "check.h"
#include "contain.h"
#include "copies.h"

#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE_CNT 23

/* What is done, and what came of it. */
struct job {
	bool (*work)(size_t piece, FILE *out);
	size_t taken[PIECE_CNT]; /* how often */
	size_t taken_cnt;
	bool wrong;
	unsigned changed; /* in copies, of which we must see nothing */
};

/* Answers of 0, 3000, 6000 ... bytes: more than a pipe holds. */
static size_t answer_len(size_t piece)
{
	return piece * 3000;
}

static bool write_letters(size_t piece, FILE *out)
{
	for (size_t i = 0; i < answer_len(piece); i++)
		fputc('a' + (int)((piece + i) % 26), out);
	return true;
}

static bool do_work(size_t piece, FILE *out, void *job_)
{
	struct job *job = job_;

	job->changed++;
	return job->work(piece, out);
}

static void take(size_t piece, const char *answer, size_t bytes, void *job_)
{
	struct job *job = job_;

	job->taken[piece]++;
	job->taken_cnt++;
	job->wrong |= bytes != answer_len(piece);
	for (size_t i = 0; i < bytes && !job->wrong; i++)
		job->wrong = answer[i] != 'a' + (int)((piece + i) % 26);
}

static void run(struct job *job, unsigned at_once)
{
	const struct copies_work work = {
		.work = do_work,
		.take = take,
		.data = job,
		.piece_cnt = PIECE_CNT,
	};

	copies_run(&work, at_once);
}

TEST(all_answers_come_back_whole)
{
	for (unsigned at_once = 1; at_once <= COPIES_MAX; at_once++) {
		struct job job = {.work = write_letters};

		run(&job, at_once);
		CHECK_EQ(job.taken_cnt, PIECE_CNT);
		for (size_t i = 0; i < PIECE_CNT; i++)
			CHECK_EQ(job.taken[i], 1);
		CHECK(!job.wrong);
		CHECK_EQ(job.changed, 0);
		/* No child is left. */
		CHECK(waitpid(-1, NULL, WNOHANG) < 0);
	}
}

/* Every third piece ends in the middle, each in another way. */
static bool end_somehow(size_t piece, FILE *out)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGUSR1};

	write_letters(piece, out);
	if (piece % 9 == 0)
		raise(signals[piece / 9]);
	if (piece % 9 == 3)
		_exit(1);
	return piece % 9 != 6;
}

TEST(of_a_copy_that_fails_nothing_is_taken)
{
	for (unsigned at_once = 1; at_once <= COPIES_MAX; at_once++) {
		struct job job = {.work = end_somehow};

		run(&job, at_once);
		for (size_t i = 0; i < PIECE_CNT; i++)
			CHECK_EQ(job.taken[i], i % 3 ? 1 : 0);
		CHECK(!job.wrong);
		CHECK(waitpid(-1, NULL, WNOHANG) < 0);
	}
}

/* The first one never stops. */
static bool go_astray(size_t piece, FILE *out)
{
	static const char noise[1 << 16];

	while (!piece)
		fwrite(noise, 1, sizeof(noise), out);
	return write_letters(piece, out);
}

TEST(an_endless_answer_is_none)
{
	struct job job = {.work = go_astray};

	run(&job, 2);
	CHECK_EQ(job.taken[0], 0);
	CHECK_EQ(job.taken_cnt, PIECE_CNT - 1);
	CHECK(!job.wrong);
}

static int run_without_descriptors(void *data)
{
	struct rlimit none = {0, 0};
	struct job job = {.work = write_letters};

	(void)data;
	if (setrlimit(RLIMIT_NOFILE, &none))
		return 1;
	run(&job, 2);
	return job.taken_cnt ? 2 : 0;
}

/* root may have as many processes as it likes. */
static int run_without_processes(void *data)
{
	struct rlimit none = {0, 0};
	struct job job = {.work = write_letters};

	(void)data;
	if (!getuid() && (setgroups(0, NULL) || setresuid(65534, 65534, 65534)))
		return 1;
	if (setrlimit(RLIMIT_NPROC, &none))
		return 1;
	run(&job, 2);
	return job.taken_cnt ? 2 : 0;
}

TEST(without_descriptors_or_processes_nothing_is_done)
{
	int result = -1;

	CHECK(contain_call(run_without_descriptors, NULL, &result));
	CHECK_EQ(result, 0);
	CHECK(contain_call(run_without_processes, NULL, &result));
	CHECK_EQ(result, 0);
}

TEST(as_many_as_processors)
{
	CHECK(copies_useful() >= 1);
	CHECK(copies_useful() <= COPIES_MAX);
}
