// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work for a time instead of a number of calls, so that what watches it has time to find its pace.
 *   bench_work KIND [SECONDS [FILE]]    default 20; says how much was done in that time on the
 *                                       wall, and keeps a count of it in the first 8 bytes of FILE
 *
 *   tight   nothing but malloc and free
 *   churn   two threads that replace objects of up to 1 KiB, 100,000 alive
 *   map     a std::map of strings, 50,000 alive
 *   sites   twelve functions that allocate, the next one half as much again; between two calls some
 *           work; says what each allocated
 *   phases  the same, with more or less work between two calls, or sleep, and with the order of the
 *           functions turned round, for parts of a second
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <cmath>
#include <map>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

static double seconds = 20;

/* What was done until now, for others to look at while it goes on. */
static uint64_t done_here;
static uint64_t *done_until_now = &done_here;

static bool count_in(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *page;

	if (fd < 0 || ftruncate(fd, sizeof(*done_until_now)))
		return false;
	page = mmap(NULL, sizeof(*done_until_now), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return false;
	done_until_now = (uint64_t *)page;
	return true;
}

static double now()
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

struct random {
	uint64_t state;

	uint32_t next()
	{
		state = state * 6364136223846793005 + 1442695040888963407;
		return state >> 33;
	}
};

/* Does `step` until the time is over; how often. */
template <typename Step> static long repeat(Step step)
{
	static const int at_once = 100;
	double end = now() + seconds;
	long done = 0;

	for (; now() < end; done += at_once) {
		for (int i = 0; i < at_once; i++)
			step();
		__atomic_fetch_add(done_until_now, at_once, __ATOMIC_RELAXED);
	}
	return done;
}

static long tight()
{
	return repeat([] {
		void *p = malloc(64);

		TRUTH_KEEP(p);
		free(p);
	});
}

static long churn_alone(uint64_t seed)
{
	static const int alive = 50000;
	void **objects = (void **)calloc(alive, sizeof(*objects));
	struct random random = {seed};

	return repeat([&] {
		void **slot = &objects[random.next() % alive];
		size_t size = 16 + random.next() % 1000;

		free(*slot);
		*slot = malloc(size);
		TRUTH_KEEP(*slot);
		memset(*slot, 1, size);
	});
}

static long churn()
{
	long other;
	std::thread thread([&] { other = churn_alone(1); });
	long done = churn_alone(2);

	thread.join();
	return done + other;
}

static long map()
{
	std::map<uint32_t, std::string> names;
	struct random random = {3};

	return repeat([&] {
		names[random.next() % 100000] = "a name that does not fit into the object itself";
		names.erase(random.next() % 100000);
	});
}

#define KEPT 64
static void *kept[KEPT];
static int kept_next;

static inline __attribute__((always_inline)) void keep(struct truth *self, size_t size)
{
	free(kept[kept_next]);
	kept[kept_next] = took(self, malloc(size), size);
	kept_next = (kept_next + 1) % KEPT;
}

/*
 * Bytes in proportion 1.5^n, by size as well as by number; so large that the tenth of them is
 * sampled often enough to tell an error of 10 % from chance.
 */
SITE(site_a)
{
	keep(self, 256);
}
SITE(site_b)
{
	keep(self, 16000);
}
SITE(site_c)
{
	keep(self, 768);
}
SITE(site_d)
{
	keep(self, 4800);
}
SITE(site_e)
{
	keep(self, 1600);
}
SITE(site_f)
{
	keep(self, 32000);
}
SITE(site_g)
{
	keep(self, 1024);
}
SITE(site_h)
{
	keep(self, 8000);
}
SITE(site_i)
{
	keep(self, 80000);
}
SITE(site_j)
{
	keep(self, 3200);
}
SITE(site_k)
{
	keep(self, 24000);
}
SITE(site_l)
{
	keep(self, 64000);
}

static struct site {
	void (*run)(struct truth *);
	struct truth *truth;
	int size;
	double share; /* of the calls, not normalized */
} all_sites[] = {
	{site_a, &truth_site_a, 256, 0},   {site_b, &truth_site_b, 16000, 0},
	{site_c, &truth_site_c, 768, 0},   {site_d, &truth_site_d, 4800, 0},
	{site_e, &truth_site_e, 1600, 0},  {site_f, &truth_site_f, 32000, 0},
	{site_g, &truth_site_g, 1024, 0},  {site_h, &truth_site_h, 8000, 0},
	{site_i, &truth_site_i, 80000, 0}, {site_j, &truth_site_j, 3200, 0},
	{site_k, &truth_site_k, 24000, 0}, {site_l, &truth_site_l, 64000, 0},
};

/* Calls one of the sites, or the one as far from the end; `random`: below the sum of shares. */
static void run_one(double random, bool from_end)
{
	const int cnt = sizeof(all_sites) / sizeof(all_sites[0]);
	int i = 0;

	while (i < cnt - 1 && random >= all_sites[i].share)
		random -= all_sites[i++].share;
	if (from_end)
		i = cnt - 1 - i;
	all_sites[i].run(all_sites[i].truth);
	TRUTH_KEEP(&truth_first);
}

static void work(int turns)
{
	static char page[4096];

	for (int turn = 0; turn < turns; turn++) {
		memset(page, turn, sizeof(page));
		TRUTH_KEEP(page);
	}
}

/* So much work after each call; below 0: a millisecond of sleep. */
struct pace {
	int turns;
	bool from_end;
};

template <typename Pace> static long call_sites(Pace pace)
{
	struct random random = {4};
	double sum = 0, bytes = 1;

	for (struct site &site : all_sites) {
		sum += site.share = bytes / site.size;
		bytes *= 1.5;
	}
	return repeat([&] {
		struct pace next = pace();

		run_one(random.next() / 2147483648.0 * sum, next.from_end);
		if (next.turns < 0)
			usleep(1000);
		else
			work(next.turns);
	});
}

static long sites()
{
	return call_sites([] { return pace{40, false}; });
}

static long phases()
{
	return call_sites([] {
		double at = fmod(now(), 3.1);

		return at < 1	  ? pace{20, false}
		       : at < 1.8 ? pace{200, true}
		       : at < 2.3 ? pace{-1, false}
				  : pace{80, true};
	});
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*work)();
	} kinds[] = {{"tight", tight},
		     {"churn", churn},
		     {"map", map},
		     {"sites", sites},
		     {"phases", phases}};
	const char *kind = argc > 1 ? argv[1] : "";

	if (argc > 2)
		seconds = atof(argv[2]);
	if (argc > 3 && !count_in(argv[3]))
		return 73;
	for (const auto &known : kinds) {
		if (strcmp(known.name, kind))
			continue;
		await("READY");
		say("OPS %ld\n", known.work());
		tell();
		await("DONE");
		return 0;
	}
	return 64;
}
