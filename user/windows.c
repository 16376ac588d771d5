// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a session whose probes are in place. Out: heaps. What the probes cost is what they were hit
 * times what a hit was measured to cost; what the targets use is the kernel's processor time clock
 * of each process.
 */
#include "windows.h"

#include "budget.h"
#include "cleanup.h"
#include "clock.h"
#include "heap.h"
#include "log.h"
#include "median.h"
#include "opts.h"
#include "session.h"
#include "target.h"
#include "targets.h"
#include "xorshift.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Of processes that take turns in being recorded; bursts are longer. */
#define TURN_NS	      1000000000LL
#define BURST_TURN_NS 10000000000LL
#define BURST_TURNS   3

/* Looks at what a hit costs that the median is taken of. */
#define COST_LOOKS 9

struct windows {
	struct session *session;
	struct budget budget;
	struct work_load load;	  /* as of the last look */
	struct hit_cost cost;	  /* as it was in the last windows */
	double looks[COST_LOOKS]; /* the last looks at it, in parts of what it was at the start */
	unsigned look_cnt;
	uint64_t counters[HB_COUNTER_CNT];	 /* at the last look */
	uint64_t first_counters[HB_COUNTER_CNT]; /* at the first one */
	double first_probe_ns;
	double window_ns; /* how long they were open in the period */
	double part;	  /* of the processes are recorded now; 1: all */
	uint64_t random;  /* state of the generator, for turns */
	double before_ns; /* processor time of the targets before the recording */
};

DEFINE_CLEANUP(windows, struct windows, windows_free)

void windows_free(struct windows *windows)
{
	free(windows);
}

/* Does any plan, or scale, depend on what the probes cost? */
static bool is_costed(const struct windows *windows)
{
	return !isinf(windows->budget.limit) || windows->session->opts->share;
}

/*
 * Measures what a hit costs while a window is open. What counts is the median of the last looks:
 * one is short, and may meet cold caches or something else.
 */
static void learn_cost(struct windows *windows)
{
	const struct hit_cost *first = &windows->session->cost;
	double sorted[COST_LOOKS], part;
	unsigned cnt;

	if (!is_costed(windows) || first->emulated_ns <= 0)
		return;
	windows->looks[windows->look_cnt++ % COST_LOOKS] =
		loader_hit_ns(windows->session->loader) / first->emulated_ns;
	cnt = windows->look_cnt < COST_LOOKS ? windows->look_cnt : COST_LOOKS;
	memcpy(sorted, windows->looks, sizeof(sorted));
	part = median(sorted, cnt);
	windows->cost = (struct hit_cost){
		.emulated_ns = part * first->emulated_ns,
		.stepped_ns = part * first->stepped_ns,
		.return_ns = part * first->return_ns,
	};
}

/* What one of the targets used, and the probes of that; with a window open, it was in there. */
static void read_target(const struct windows *windows, struct target *target)
{
	const struct session *session = windows->session;
	uint64_t costs[HB_COST_CNT];

	target->load.cpu_ns = target->load.probed_cpu_ns = target_cpu_ns(target);
	/* The number of one that has ended may be another's. */
	if (session->counts_each && !target->exited &&
	    loader_costs_of(session->loader, target->tgid, costs)) {
		target->load.probe_ns += hit_cost_of(&windows->cost, costs, target->costs);
		memcpy(target->costs, costs, sizeof(costs));
	}
	if (windows->budget.opened_ns)
		work_note(&target->work, &target->load);
}

/* What was spent and used until now. */
static void read_load(struct windows *windows, struct work_load *load)
{
	struct session *session = windows->session;
	uint64_t counters[HB_COUNTER_CNT];

	*load = (struct work_load){.probe_ns = windows->load.probe_ns};
	loader_counters(session->loader, counters);
	load->probe_ns += hit_cost_of(&windows->cost, counters + HB_LOSS_CNT,
				      windows->counters + HB_LOSS_CNT);
	memcpy(windows->counters, counters, sizeof(counters));
	load->cpu_ns = bystanders_cpu_ns(&session->bystanders) - windows->before_ns;
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		read_target(windows, target);
		load->cpu_ns += target->load.cpu_ns;
		if (target->in_turn)
			load->probed_cpu_ns += target->load.cpu_ns;
	}
	if (!session->opts->share)
		load->probed_cpu_ns = load->cpu_ns;
	windows->load = *load;
}

static struct heap *heap_of(pid_t tgid, uint32_t epoch, void *data)
{
	const struct target *target = targets_find_image(data, tgid, epoch);

	return target ? target->heap : NULL;
}

/*
 * Are the figures of its own known? Of one that has ended they are up to the last window; if it
 * never was in one, it has none.
 */
static bool has_own_figures(const struct windows *windows, const struct target *target)
{
	return windows->session->counts_each && target->work.begun &&
	       (!target->exited || target->work.on_probe_ns > 0);
}

/*
 * Collects what was seen in a period, which was `coverage` of the work of all, or in a look. 0 or
 * -errno, logged.
 */
static int settle(struct windows *windows, const struct work_period *of_all, double coverage,
		  bool was_look)
{
	struct session *session = windows->session;
	struct work_period period = *of_all;
	struct heap_period ended = {
		.length_ns = period.inside_ns + period.outside_ns,
		.window_ns = fmax(windows->window_ns, 1),
		.was_look = was_look,
	};

	for (size_t i = 0; i < session->targets.cnt; i++)
		period.dearer = fmax(period.dearer, work_dearer(&session->targets.all[i]->work));
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		ended.coverage = has_own_figures(windows, target)
					 ? work_seen(&target->work, &period, &target->load)
					 : coverage;
		ended.epoch = target->epoch;
		ended.was_there =
			target->was_there && !was_look && target->window_epoch == target->epoch;
		heap_period(target->heap, &ended);
		target->was_there = false;
	}
	windows->window_ns = 0;
	return loader_settle(session->loader, heap_of, &session->targets);
}

/* A period begins, as of the last look. */
static void begin_work(struct windows *windows)
{
	for (size_t i = 0; i < windows->session->targets.cnt; i++) {
		struct target *target = windows->session->targets.all[i];

		work_begin(&target->work, &target->load);
	}
}

static bool is_in_turn(pid_t tgid, void *targets)
{
	const struct target *target = targets_find(targets, tgid);

	return target && target->in_turn;
}

/*
 * Whose turn it is: `share` of those that live, each set of them equally likely (selection
 * sampling, Knuth, volume 2, 3.4.2, algorithm S). A number divided by the chance of its process to
 * be in turn is unbiased.
 */
static void take_turns(struct windows *windows)
{
	struct targets *targets = &windows->session->targets;
	size_t left = targets->alive_cnt, wanted = windows->session->opts->share;

	windows->part = left > wanted ? (double)wanted / (double)left : 1;
	for (size_t i = 0; i < targets->cnt; i++) {
		struct target *target = targets->all[i];

		target->in_turn = false;
		if (target->exited || !left)
			continue;
		target->in_turn = xorshift_next(&windows->random) % left-- < wanted;
		wanted -= target->in_turn;
	}
}

/* Puts the probes in place. 0 or -errno, logged. */
static int arm(struct windows *windows)
{
	if (!windows->session->opts->share)
		return windows->budget.window_cnt ? session_arm(windows->session) : 0;
	/* All were probed to begin with. */
	loader_disarm(windows->session->loader);
	take_turns(windows);
	return session_arm(windows->session);
}

/*
 * Bytes per sample in the window that opens. What is alive must find room: in a burst no more than
 * an eighth of the machine's memory comes to that.
 */
static uint64_t window_rate(const struct windows *windows)
{
	const struct opts *opts = windows->session->opts;
	double given = (double)opts->rate_bytes, least = 1;

	if (windows->session->track_live)
		least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 8 /
			opts->max_live;
	return (uint64_t)fmax(
		fmax(budget_rate_factor(&windows->budget) * given, fmin(least, given)), 1);
}

/* With every probe in place, and the mappings known. */
static int open_window(struct windows *windows)
{
	struct session *session = windows->session;
	struct work_load load;
	int err = arm(windows);

	if (err || budget_is_over(&windows->budget, clock_ns(CLOCK_MONOTONIC)))
		return err;
	read_load(windows, &load);
	loader_set_rate(session->loader, window_rate(windows));
	loader_window(session->loader, true);
	budget_opened(&windows->budget, clock_ns(CLOCK_MONOTONIC), &load, windows->part);
	windows->window_ns -= (double)windows->budget.opened_ns;
	for (size_t i = 0; i < session->targets.cnt; i++) {
		struct target *target = session->targets.all[i];

		work_opened(&target->work, &target->load);
		target->gone = target->exited;
	}
	learn_cost(windows);
	return 0;
}

/* `keep`: the next one follows at once, and the probes may stay. */
static void close_window(struct windows *windows, bool keep)
{
	struct work_load load;
	int64_t closed_ns;

	learn_cost(windows);
	loader_window(windows->session->loader, false);
	closed_ns = clock_ns(CLOCK_MONOTONIC);
	read_load(windows, &load);
	/* May have to wait for the probes of the window before. */
	if (!keep)
		loader_disarm(windows->session->loader);
	budget_closed(&windows->budget, closed_ns, &load);
	windows->window_ns += (double)closed_ns;
	for (size_t i = 0; i < windows->session->targets.cnt; i++) {
		struct target *target = windows->session->targets.all[i];

		target->was_there |=
			!target->gone && (!windows->session->opts->share || target->in_turn);
		target->window_epoch = target->epoch;
	}
}

static int take_step(struct windows *windows)
{
	struct work_load load;
	struct budget_step step;
	int err = 0;

	read_load(windows, &load);
	step = budget_step(&windows->budget, clock_ns(CLOCK_MONOTONIC), &load);
	if (step.settle || step.open || step.close)
		log_debug("%s%s%swindow %.0f of %.0f ms, coverage %.4f, cost %.3f of %.3f CPUs, "
			  "spent %.1f of %.1f ms",
			  step.close ? "close " : "", step.settle ? "settle " : "",
			  step.open ? "open " : "", windows->budget.window_ns / 1e6,
			  windows->budget.length_ns / 1e6, step.coverage, windows->budget.on_rate,
			  windows->budget.cpu_rate, load.probe_ns / 1e6, load.cpu_ns / 1e6);
	if (step.close)
		close_window(windows, step.open && !windows->session->opts->share);
	if (step.settle)
		err = settle(windows, &step.period, step.coverage, step.was_look);
	if (step.begins)
		begin_work(windows);
	if (!err && step.open)
		err = open_window(windows);
	return err;
}

int windows_step(struct windows *windows)
{
	return clock_ns(CLOCK_MONOTONIC) < budget_next_ns(&windows->budget) ? 0
									    : take_step(windows);
}

int windows_wait_ms(const struct windows *windows)
{
	int64_t next_ns = budget_next_ns(&windows->budget), left_ns;

	if (next_ns == INT64_MAX)
		return -1;
	left_ns = next_ns - clock_ns(CLOCK_MONOTONIC);
	return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

/* How long the same processes are recorded: what is in use at the end of a turn needs some time. */
static int64_t turn_ns(const struct session *session, int64_t duration_ns)
{
	if (!session->opts->share)
		return 0;
	if (!session->track_live)
		return TURN_NS;
	return duration_ns ? duration_ns / BURST_TURNS : BURST_TURN_NS;
}

/*
 * Processor time of the targets per nanosecond from when they were opened until now, less what the
 * probes took that came meanwhile.
 */
static double rate_before(const struct session *session, int64_t now_ns)
{
	uint64_t counters[HB_COUNTER_CNT], none[HB_COST_CNT] = {0};
	int64_t first_ns = now_ns;
	double rate = 0;

	for (size_t i = 0; i < session->targets.cnt; i++) {
		const struct target *target = session->targets.all[i];

		if (target->opened_ns >= now_ns)
			continue;
		rate += target->cpu_ns / (double)(now_ns - target->opened_ns);
		if (target->opened_ns < first_ns)
			first_ns = target->opened_ns;
	}
	loader_counters(session->loader, counters);
	if (first_ns < now_ns)
		rate -= hit_cost_of(&session->cost, counters + HB_LOSS_CNT, none) /
			(double)(now_ns - first_ns);
	return fmax(rate, 0);
}

int windows_start(struct session *session, int64_t duration_ns, struct windows **out)
{
	struct windows *windows _cleanup_(cleanup_windows) = calloc(1, sizeof(*windows));
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	struct budget_opts opts = {
		.limit = session->opts->max_overhead,
		.bursts = session->track_live,
		.end_ns = duration_ns ? start_ns + duration_ns : 0,
		.turn_ns = turn_ns(session, duration_ns),
	};
	struct work_load load;

	if (!windows)
		return log_fail(ENOMEM, "cannot record");
	windows->session = session;
	windows->cost = session->cost;
	/* The first look was at the start. */
	windows->looks[windows->look_cnt++] = 1;
	windows->part = 1;
	if (getrandom(&opts.seed, sizeof(opts.seed), 0) != sizeof(opts.seed))
		return log_fail(errno, "cannot get random bytes");
	windows->random = opts.seed | 1;
	if (session->opts->share)
		loader_choose(session->loader, is_in_turn, &session->targets);
	windows->before_ns = bystanders_cpu_ns(&session->bystanders);
	for (size_t i = 0; i < session->targets.cnt; i++) {
		read_target(windows, session->targets.all[i]);
		windows->before_ns += session->targets.all[i]->load.cpu_ns;
	}
	begin_work(windows);
	opts.cpu_rate = rate_before(session, start_ns);
	/* Probes that waited for the beginning cost something, too. */
	read_load(windows, &load);
	windows->first_probe_ns = load.probe_ns;
	memcpy(windows->first_counters, windows->counters, sizeof(windows->counters));
	budget_start(&windows->budget, &opts, start_ns);
	if (take_step(windows))
		return -EIO;
	*out = take_ptr(windows);
	return 0;
}

int windows_end(struct windows *windows)
{
	struct session *session = windows->session;
	struct work_period period;
	struct work_load load;
	int64_t end_ns;
	int err;

	if (windows->budget.opened_ns)
		close_window(windows, false);
	end_ns = clock_ns(CLOCK_MONOTONIC);
	read_load(windows, &load);
	loader_detach(session->loader);
	period = budget_finish(&windows->budget, end_ns);
	err = settle(windows, &period, work_seen(&windows->budget.work, &period, &load), false);
	return err ? err : loader_read_stacks(session->loader, heap_of, &session->targets);
}

struct windows_cost windows_cost(const struct windows *windows)
{
	const uint64_t *now = windows->counters + HB_LOSS_CNT;
	const uint64_t *first = windows->first_counters + HB_LOSS_CNT;

	return (struct windows_cost){
		.hits = now[HB_STAT_HITS] - first[HB_STAT_HITS],
		.stepped_hits = now[HB_STAT_STEPPED_HITS] - first[HB_STAT_STEPPED_HITS],
		.emulated_ns = windows->cost.emulated_ns,
		.stepped_ns = windows->cost.stepped_ns,
		.probe_ns = windows->load.probe_ns - windows->first_probe_ns,
		.cpu_ns = windows->load.cpu_ns,
	};
}

/* Does this target, or any of all, know how far its numbers may be off? */
static bool knows_spread(const struct windows *windows, const struct target *target)
{
	const struct targets *targets = &windows->session->targets;
	bool knows = false;

	if (target)
		return heap_knows_spread(target->heap);
	for (size_t i = 0; i < targets->cnt; i++)
		knows |= heap_knows_spread(targets->all[i]->heap);
	return knows;
}

struct profile_coverage windows_coverage(const struct windows *windows, const struct target *target)
{
	const struct budget *budget = &windows->budget;
	uint32_t share = windows->session->opts->share;
	const struct work *work =
		target && has_own_figures(windows, target) ? &target->work : &budget->work;

	if (!budget->is_partial && !share)
		return (struct profile_coverage){0};
	return (struct profile_coverage){
		.share = share,
		.window_cnt =
			budget->is_partial ? fmax(budget->window_cnt - budget->has_look, 1) : 0,
		.seen_ns = budget->total_seen_ns,
		.full_share = work_probed_share(work),
		.scale_error = work_scale_error(work_scaled_share(work)),
		.bursts = budget->bursts,
		.knows_spread = knows_spread(windows, target),
	};
}
