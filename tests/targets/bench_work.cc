// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work for a time instead of a number of calls, so that what watches it has time to find its pace.
 *   bench_work KIND [SECONDS]    default 20; says how much was done in that time on the wall
 *
 *   tight   nothing but malloc and free
 *   churn   two threads that replace objects of up to 1 KiB, 100,000 alive
 *   map     a std::map of strings, 50,000 alive
 *   sites   twelve functions that allocate, the next one half as much again; between two calls some
 *           work; says what each allocated
 * build: -fno-builtin -pthread
 */
#include "truth.h"

#include <map>
#include <string>
#include <thread>

#include <time.h>

static double seconds = 20;

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
	double end = now() + seconds;
	long done = 0;

	while (now() < end)
		for (int i = 0; i < 100; i++, done++)
			step();
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

static long sites()
{
	static const struct {
		void (*run)(struct truth *);
		struct truth *truth;
		int size;
	} all[] = {
		{site_a, &truth_site_a, 256},	{site_b, &truth_site_b, 16000},
		{site_c, &truth_site_c, 768},	{site_d, &truth_site_d, 4800},
		{site_e, &truth_site_e, 1600},	{site_f, &truth_site_f, 32000},
		{site_g, &truth_site_g, 1024},	{site_h, &truth_site_h, 8000},
		{site_i, &truth_site_i, 80000}, {site_j, &truth_site_j, 3200},
		{site_k, &truth_site_k, 24000}, {site_l, &truth_site_l, 64000},
	};
	const int cnt = sizeof(all) / sizeof(all[0]);
	double share[cnt], sum = 0, bytes = 1;
	static char page[4096];
	struct random random = {4};

	for (int i = 0; i < cnt; i++, bytes *= 1.5)
		sum += share[i] = bytes / all[i].size;
	return repeat([&] {
		double draw = random.next() / 2147483648.0 * sum;
		int i = 0;

		while (i < cnt - 1 && draw >= share[i])
			draw -= share[i++];
		all[i].run(all[i].truth);
		TRUTH_KEEP(&truth_first);
		for (int turn = 0; turn < 40; turn++) {
			memset(page, turn, sizeof(page));
			TRUTH_KEEP(page);
		}
	});
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*work)();
	} kinds[] = {{"tight", tight}, {"churn", churn}, {"map", map}, {"sites", sites}};
	const char *kind = argc > 1 ? argv[1] : "";

	if (argc > 2)
		seconds = atof(argv[2]);
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
