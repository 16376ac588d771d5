// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: what processes and the probes in them have used. Out: what share of their work was seen. Must
 * not know when windows are, or why.
 */
#include "work.h"

#include <math.h>

/* A hit may cost so much more, or less, than it was measured to: other code, other caches. */
#define COST_ERROR 0.15

/* Where it takes a part of large caches, it may cost so much more. */
#define COST_DEARER 0.2

/* Of a target that probes slow down, so much work at least goes on: else costs are too uncertain.
 */
#define OWN_MIN 0.02

/* So much of what is known of the speed is kept from one period to the next. */
#define PAST 0.75

/* Less processor time than this tells nothing of the cost; and costs are not more wrong than that.
 */
#define DEARER_CPU_NS 5e6
#define DEARER_MAX    3

/* No period is slowed so many times more, or less, than those around it. */
#define UNUSUAL 1.5

/* What is read at the borders of a window is not read in one moment: so much of it may be outside.
 */
#define BORDER_NS 1e6

/* Earlier periods count less, but do. */
static struct work_speed sum_of(const struct work *work)
{
	const struct work_speed *past = &work->past, *last = &work->last;

	return (struct work_speed){
		.cpu_ns = PAST * past->cpu_ns + last->cpu_ns,
		.own_ns = PAST * past->own_ns + last->own_ns,
		.alike_ns = PAST * past->alike_ns + last->alike_ns,
		.unsure_ns = PAST * past->unsure_ns + last->unsure_ns,
	};
}

/* Adds what windows of the current period show. */
static struct work_share share_of(const struct work *work, struct work_share sum)
{
	double part = work->part > 0 ? work->part : 1;

	return (struct work_share){sum.probe_ns + work->on_probe_ns / part,
				   sum.cpu_ns + work->on_cpu_ns / part};
}

static struct work_share whole_of(const struct work *work)
{
	return share_of(work, work->whole);
}

static struct work_share scaled_of(const struct work *work)
{
	bool is_partial = work->part > 0 && work->part < 1;

	return is_partial ? share_of(work, work->scaled) : work->scaled;
}

void work_begin(struct work *work, const struct work_load *load)
{
	work->whole = whole_of(work);
	work->scaled = scaled_of(work);
	work->part = 0;
	work->begun = true;
	work->past = sum_of(work);
	work->last = (struct work_speed){0};
	work->at_since = *load;
	work->on_probe_ns = work->on_cpu_ns = 0;
}

void work_opened(struct work *work, const struct work_load *load)
{
	work->at_open = *load;
}

void work_note(struct work *work, const struct work_load *load)
{
	double probe_ns = load->probe_ns - work->at_open.probe_ns;
	double cpu_ns = load->probed_cpu_ns - work->at_open.probed_cpu_ns;

	work->on_probe_ns += probe_ns;
	work->on_cpu_ns += cpu_ns;
	work->at_open = *load;
}

/* What the period, which ends now, tells of the speed; nothing if it has no outside, or too little.
 */
static struct work_speed speed_of(const struct work *work, const struct work_period *period,
				  const struct work_load *load)
{
	double dearer = fmax(period->dearer, 1);
	double on_probe_ns = work->on_probe_ns / dearer;
	double own_ns = work->on_cpu_ns - on_probe_ns;
	/* Probes that are still coming, or not gone yet, cost something outside, too. */
	double outside_own_ns = load->cpu_ns - work->at_since.cpu_ns - own_ns -
				(load->probe_ns - work->at_since.probe_ns) / dearer;

	/* Nothing can be told of less than a tick of the processor time clock, or if it lacks some.
	 */
	if (on_probe_ns <= 0 || on_probe_ns > (1 + 2 * COST_ERROR) * work->on_cpu_ns ||
	    outside_own_ns <= 0 || period->outside_ns <= 0)
		return (struct work_speed){0};
	return (struct work_speed){
		.cpu_ns = work->on_cpu_ns,
		.own_ns = own_ns,
		.alike_ns = outside_own_ns / period->outside_ns * period->inside_ns,
		.unsure_ns = COST_ERROR * on_probe_ns + BORDER_NS,
	};
}

/* Own work in windows, as a part of what it were if they had worked as outside; at most 1. */
static double slowed(const struct work_speed *speed)
{
	/* As much as outside, for all that is known: the process waits at times. */
	if (fabs(speed->own_ns - speed->alike_ns) <= speed->unsure_ns)
		return 1;
	return fmin(
		fmax(speed->own_ns / speed->alike_ns, fmax(speed->own_ns / speed->cpu_ns, OWN_MIN)),
		1);
}

double work_seen(struct work *work, const struct work_period *period, const struct work_load *load)
{
	struct work_speed sum;
	double part = period->part, usual, speed;

	work->part = part;
	if (part <= 0 || part >= 1 || period->inside_ns <= 0)
		return part;
	work->last = speed_of(work, period, load);
	sum = sum_of(work);
	usual = slowed(&sum);
	speed = fmin(fmax(slowed(&work->last), usual / UNUSUAL), usual * UNUSUAL);
	return part * speed / (part * speed + 1 - part);
}

double work_dearer(const struct work *work)
{
	if (work->on_cpu_ns < DEARER_CPU_NS)
		return 1;
	return fmin(fmax(work->on_probe_ns / work->on_cpu_ns, 1), DEARER_MAX);
}

static double in_parts(struct work_share share)
{
	return share.cpu_ns > 0 ? fmin(share.probe_ns / share.cpu_ns, 1) : 0;
}

double work_probed_share(const struct work *work)
{
	return in_parts(whole_of(work));
}

double work_scaled_share(const struct work *work)
{
	return in_parts(scaled_of(work));
}

double work_scale_error(double share)
{
	double own = fmax(1 - share, OWN_MIN);
	double least = fmax(own - COST_DEARER * share, OWN_MIN);
	double most = own + COST_ERROR * share;

	return fmax(own / least, most / own);
}
