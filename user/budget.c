// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a limit, the clock, what probes and targets have used. Out: when to record. Keeps no resource
 * and asks nobody, so that tests can run years of it against made-up loads.
 *
 * A window is planned from the past alone. What it costs more than planned, since the load rose, is
 * taken from later ones; what it leaves is theirs only up to one period's worth.
 */
#include "budget.h"

#include "xorshift.h"

#include <math.h>

#define SECOND_NS 1000000000LL

/*
 * So much of the limit is planned for. The rest is for what is not known: probes that come and go,
 * a load that rises, and that a hit costs more there than where it was measured, since it takes a
 * part of the caches: half as much again in a large std::map, a fifth in python.
 */
#define HEADROOM 0.65

/* The look at the beginning. */
#define LOOK_NS (30 * 1000000LL)

/* While all is recorded, a load that rises is noticed so soon. */
#define WHOLE_NS (100 * 1000000LL)

/* No window is shorter: probes take a millisecond or two to come and go. */
#define WINDOW_MIN_NS (10 * 1000000LL)

/* A recording whose end is known has so many bursts, more if they would be too long. */
#define BURSTS 3

/* A burst takes no more than so much of the targets' time at a stretch. */
#define STRETCH_NS (2 * SECOND_NS)

/* A burst that costs so many times what was planned is ended. */
#define BURST_EXCESS 1.5

/* Uniform in [0, 1). */
static double next_random(struct budget *budget)
{
	return (double)xorshift_next(&budget->random) * 0x1p-53;
}

/* All of the time is one window: there is nothing to be planned. */
static bool is_endless(const struct budget *budget)
{
	return isinf(budget->limit) && !budget->turn_ns;
}

void budget_start(struct budget *budget, const struct budget_opts *opts, int64_t now_ns)
{
	*budget = (struct budget){
		.limit = HEADROOM * opts->limit,
		.bursts = opts->bursts,
		.looking = true,
		.end_ns = opts->end_ns,
		.turn_ns = opts->turn_ns,
		.step_ns = now_ns,
		.period_ns = now_ns,
		.since_ns = now_ns,
		.length_ns = LOOK_NS,
		.cpu_rate = opts->cpu_rate,
		.random = opts->seed | 1,
	};
	if (is_endless(budget))
		budget->length_ns = INT64_MAX - now_ns;
	budget->window_ns = budget->length_ns;
}

bool budget_is_over(const struct budget *budget, int64_t now_ns)
{
	return budget->end_ns && budget->window_cnt && now_ns >= budget->end_ns;
}

static bool is_whole(const struct budget *budget)
{
	return budget->window_ns >= budget->length_ns;
}

/* Is the moment `at` after the period's beginning inside the window? */
static bool is_inside(const struct budget *budget, int64_t at_ns)
{
	int64_t end_ns = budget->offset_ns + budget->window_ns;

	if (is_whole(budget))
		return true;
	return (at_ns >= budget->offset_ns && at_ns < end_ns) || at_ns < end_ns - budget->length_ns;
}

int64_t budget_next_ns(const struct budget *budget)
{
	int64_t end_ns = budget->offset_ns + budget->window_ns;
	const int64_t borders[] = {
		end_ns - budget->length_ns, /* above 0: the part at the other end */
		budget->offset_ns,
		end_ns,
		budget->length_ns,
	};
	int64_t next_ns = budget->length_ns, at_ns = budget->step_ns - budget->period_ns;

	if (is_endless(budget) || budget_is_over(budget, budget->step_ns))
		return INT64_MAX;
	for (int i = 0; i < 4 && !is_whole(budget); i++)
		if (borders[i] > at_ns && borders[i] < next_ns)
			next_ns = borders[i];
	/* A burst is looked after. */
	if (budget->bursts && budget->opened_ns && next_ns > at_ns + WHOLE_NS)
		next_ns = at_ns + WHOLE_NS;
	return budget->period_ns + next_ns;
}

/* Adds what happened since the window was opened, and begins anew. */
static void note_open(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	if (!budget->opened_ns)
		return;
	work_note(&budget->work, load);
	budget->seen_ns += now_ns - budget->opened_ns;
	budget->part_ns += budget->part * (double)(now_ns - budget->opened_ns);
	budget->total_seen_ns += now_ns - budget->opened_ns;
	budget->opened_ns = now_ns;
}

/*
 * Probes take their time to come, with many processes or on a busy machine more than a window is
 * long. So a window counts from when it is open, and what is left of it moves back.
 */
static void move_window(struct budget *budget, int64_t at_ns)
{
	int64_t wrapped_ns = budget->offset_ns + budget->window_ns - budget->length_ns;
	bool is_wrapped = budget->step_ns - budget->period_ns < wrapped_ns;
	int64_t late_ns = is_wrapped ? at_ns : at_ns - budget->offset_ns;

	if (!is_whole(budget) && late_ns > 0)
		budget->offset_ns += late_ns;
}

void budget_opened(struct budget *budget, int64_t now_ns, const struct work_load *load, double part)
{
	move_window(budget, now_ns - budget->period_ns);
	budget->part = part;
	budget->opened_ns = now_ns;
	work_opened(&budget->work, load);
	budget->window_cnt++;
}

void budget_closed(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	note_open(budget, now_ns, load);
	budget->opened_ns = 0;
}

/* Half of an estimate is what was last seen; of a cost that rose, all. */
static void learn(double *estimate, double value, bool is_cost)
{
	bool rose = is_cost && value > *estimate;

	*estimate = *estimate > 0 && !rose ? (*estimate + value) / 2 : value;
}

/*
 * What the period that ends taught of the load. Not the look of the processor time, if that is
 * known from before: probes in place all the time may make a target that waits a lot look much
 * busier.
 */
static void learn_load(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	int64_t elapsed_ns = now_ns - budget->since_ns;

	if (elapsed_ns > 0 && !(budget->looking && budget->cpu_rate > 0))
		learn(&budget->cpu_rate,
		      (load->cpu_ns - budget->work.at_since.cpu_ns) / (double)elapsed_ns, false);
	if (budget->seen_ns > 0)
		learn(&budget->on_rate,
		      (load->probe_ns - budget->work.at_since.probe_ns) / (double)budget->seen_ns,
		      true);
}

/* The share of the time that may be recorded by what is known; 1: all of it. */
static double affordable(const struct budget *budget)
{
	double allowed = budget->limit * budget->cpu_rate;

	return budget->on_rate > allowed ? allowed / budget->on_rate : 1;
}

/* A burst is no longer, even if all that probes take is taken from one thread. */
static double burst_max_ns(const struct budget *budget)
{
	return STRETCH_NS / fmin(budget->on_rate, 1);
}

/* How long the next period is. `debt_ns`: probe_ns spent beyond the limit, or less than 0. */
static int64_t plan_length(const struct budget *budget, int64_t left_ns, double debt_ns)
{
	double part = affordable(budget),
	       length_ns = part < 1 || !is_whole(budget) ? SECOND_NS : WHOLE_NS;
	double allowed = budget->limit * budget->cpu_rate, cnt;

	if (budget->turn_ns && part >= 1) {
		length_ns = (double)budget->turn_ns;
	} else if (budget->bursts && part < 1) {
		/* Long enough to pay for a second, and for what was spent before. */
		length_ns = SECOND_NS / part;
		if (debt_ns > 0 && allowed > 0)
			length_ns += debt_ns / allowed;
		if (length_ns < (double)left_ns / BURSTS && budget->looking)
			length_ns = fmax(length_ns, fmin((double)left_ns / BURSTS,
							 burst_max_ns(budget) / part));
		if (length_ns < (double)budget->length_ns && !budget->looking)
			length_ns = (double)budget->length_ns;
		/* No burst is longer than a turn. */
		if (budget->turn_ns && length_ns > (double)budget->turn_ns / part)
			length_ns = (double)budget->turn_ns / part;
	} else if (part < 1 && allowed > 0) {
		/* The shortest window must be affordable. */
		length_ns = fmax(length_ns,
				 (WINDOW_MIN_NS * budget->on_rate + fmax(debt_ns, 0)) / allowed);
	}
	if (!budget->end_ns)
		return (int64_t)fmin(length_ns, 0x1p60);
	/* All have the same length; a burst's is hardly shorter than it must be. */
	cnt = (double)left_ns / length_ns + (budget->bursts ? 0.1 : 0.5);
	return (int64_t)((double)left_ns / fmax(1, floor(cnt)));
}

/* Plans the period that begins at `now`. */
static void plan(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	double debt_ns = load->probe_ns - budget->limit * load->cpu_ns, allowed_ns;
	int64_t left_ns = budget->end_ns > now_ns ? budget->end_ns - now_ns : SECOND_NS;
	/* Slices grow slowly: the load may be rising, and they are not cut. */
	double grown =
		budget->bursts ? 1 : 2 * (double)budget->window_ns / (double)budget->length_ns;

	budget->length_ns = plan_length(budget, left_ns, debt_ns);
	budget->window_ns = budget->length_ns;
	budget->offset_ns = 0;
	if (grown < 1)
		budget->window_ns = (int64_t)(grown * (double)budget->length_ns);
	else if (affordable(budget) >= 1)
		return;
	allowed_ns = budget->limit * budget->cpu_rate * (double)budget->length_ns;
	allowed_ns -= fmax(debt_ns, -allowed_ns);
	if (budget->bursts)
		allowed_ns = fmin(allowed_ns, burst_max_ns(budget) * budget->on_rate);
	budget->window_ns = (int64_t)fmin(allowed_ns / budget->on_rate, (double)budget->window_ns);
	if (budget->window_ns < WINDOW_MIN_NS)
		budget->window_ns = WINDOW_MIN_NS;
	budget->is_partial |= !is_whole(budget);
	/* The first burst begins at once: whoever stops early has it. */
	if (is_whole(budget) || (budget->bursts && budget->looking))
		return;
	budget->offset_ns =
		(int64_t)(next_random(budget) *
			  (double)(budget->length_ns - (budget->bursts ? budget->window_ns : 0)));
}

/* How the time since the last period that was settled was spent; `part` of it was seen. */
static struct work_period period_of(const struct budget *budget, double part, int64_t now_ns)
{
	return (struct work_period){
		.part = part,
		.inside_ns = budget->part_ns,
		.outside_ns = (double)(now_ns - budget->since_ns) - budget->part_ns,
	};
}

/* Ends the period and plans the next one. */
static void turn(struct budget *budget, int64_t now_ns, const struct work_load *load,
		 struct budget_step *step)
{
	bool was_whole = is_whole(budget), was_open = budget->opened_ns;
	bool was_looking = budget->looking;

	note_open(budget, now_ns, load);
	learn_load(budget, now_ns, load);
	step->period = (struct work_period){.part = 1};
	/* Between turns the probes move. */
	if (!was_whole || budget->turn_ns || budget->since_ns != budget->period_ns)
		step->period = period_of(
			budget, budget->part_ns / (double)(now_ns - budget->since_ns), now_ns);
	step->coverage = work_seen(&budget->work, &step->period, load);
	plan(budget, now_ns, load);
	/* Whole periods in a row are one. */
	step->settle = !was_open || !was_whole || budget->turn_ns || !is_whole(budget);
	/* The look is no burst, unless there is no longer one. */
	step->was_look = step->settle && budget->bursts && budget->looking &&
			 budget->window_ns > now_ns - budget->period_ns;
	budget->has_look |= step->was_look;
	budget->looking = false;
	budget->period_ns = now_ns;
	if (!budget->seen_ns && !was_looking) {
		step->settle = false;
		return;
	}
	step->begins = true;
	budget->since_ns = now_ns;
	budget->seen_ns = 0;
	budget->part_ns = 0;
	work_begin(&budget->work, load);
}

/* A burst that the target makes dearer than was planned ends early. */
static void guard_burst(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	double planned_ns = budget->on_rate * (double)budget->window_ns;

	note_open(budget, now_ns, load);
	if (budget->work.on_probe_ns > BURST_EXCESS * planned_ns)
		budget->window_ns = now_ns - budget->period_ns - budget->offset_ns;
}

struct budget_step budget_step(struct budget *budget, int64_t now_ns, const struct work_load *load)
{
	struct budget_step step = {0};
	bool inside;

	budget->step_ns = now_ns;
	if (is_endless(budget)) {
		step.open = !budget->opened_ns;
		return step;
	}
	if (budget_is_over(budget, now_ns))
		return step;
	if (now_ns - budget->period_ns >= budget->length_ns)
		turn(budget, now_ns, load, &step);
	else if (budget->bursts && budget->opened_ns && !is_whole(budget))
		guard_burst(budget, now_ns, load);
	inside = is_inside(budget, now_ns - budget->period_ns);
	step.close = budget->opened_ns && (!inside || step.settle);
	step.open = inside && (!budget->opened_ns || step.close);
	return step;
}

/* Nanoseconds of the window that lie before `at_ns` of the period. */
static int64_t planned_before(const struct budget *budget, int64_t at_ns)
{
	int64_t end_ns = budget->offset_ns + budget->window_ns;
	int64_t wrapped_ns = end_ns > budget->length_ns ? end_ns - budget->length_ns : 0;
	int64_t planned_ns = at_ns < wrapped_ns ? at_ns : wrapped_ns;

	if (at_ns > budget->offset_ns)
		planned_ns += (at_ns < end_ns ? at_ns : end_ns) - budget->offset_ns;
	return planned_ns;
}

struct work_period budget_finish(const struct budget *budget, int64_t now_ns)
{
	int64_t elapsed_ns = now_ns - budget->period_ns, planned_ns;
	/* Nothing is planned for what comes after the period, as it does if we are late. */
	double inside_ns = fmin((double)elapsed_ns, (double)budget->length_ns), part;

	if (is_endless(budget) || elapsed_ns <= 0 ||
	    (is_whole(budget) && !budget->turn_ns && budget->since_ns == budget->period_ns))
		return (struct work_period){.part = 1};
	if (budget->bursts)
		return period_of(budget, budget->part_ns / (double)(now_ns - budget->since_ns),
				 now_ns);
	/* Whether the period's end was reached has nothing to do with where the window was. */
	planned_ns = planned_before(budget, elapsed_ns);
	if (planned_ns <= 0)
		return (struct work_period){.part = 0};
	part = (double)budget->window_ns / (double)budget->length_ns * budget->part_ns /
	       (double)planned_ns;
	/* Of the periods before, in which nothing was seen, and of the time after, too. */
	part *= inside_ns / (double)(now_ns - budget->since_ns);
	return period_of(budget, part, now_ns);
}

double budget_rate_factor(const struct budget *budget)
{
	if (is_whole(budget))
		return 1;
	return (double)budget->window_ns / (double)budget->length_ns;
}
