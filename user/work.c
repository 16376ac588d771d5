// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: what processes and the probes in them have used. Out: what share of their work was seen. Must
 * not know when windows are, or why.
 */
#include "work.h"

#include <math.h>

/* A hit may cost so much more, or less, than it was measured to: other code, other caches. */
#define COST_ERROR 0.15

/* Of a target that probes slow down, so much work at least goes on: else costs are too uncertain.
 */
#define OWN_MIN 0.02

void work_begin(struct work *work, const struct work_load *load)
{
	work->begun = true;
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
	work->all_probe_ns += probe_ns;
	work->all_cpu_ns += cpu_ns;
	work->at_open = *load;
}

double work_seen(const struct work *work, const struct work_period *period,
		 const struct work_load *load)
{
	double own_ns = work->on_cpu_ns - work->on_probe_ns, part = period->part, speed = 1;
	/* Probes that are still coming, or not gone yet, cost something outside, too. */
	double outside_own_ns = load->cpu_ns - work->at_since.cpu_ns - own_ns -
				(load->probe_ns - work->at_since.probe_ns);

	if (part <= 0 || part >= 1 || period->inside_ns <= 0)
		return part;
	/*
	 * Nothing can be told of less than a tick of the processor time clock, or if it lacks some.
	 */
	if (work->on_probe_ns <= 0 || work->on_probe_ns > (1 + 2 * COST_ERROR) * work->on_cpu_ns)
		return part;
	if (outside_own_ns > 0 && period->outside_ns > 0) {
		double alike_ns = outside_own_ns / period->outside_ns * period->inside_ns;

		/*
		 * As much as outside, for all that is known of the cost: the target waits at times.
		 */
		if (fabs(own_ns - alike_ns) <= COST_ERROR * work->on_probe_ns)
			return part;
		speed = own_ns / alike_ns;
	}
	speed = fmax(speed, fmax(own_ns / work->on_cpu_ns, OWN_MIN));
	speed = fmin(speed, 1);
	return part * speed / (part * speed + 1 - part);
}

double work_probed_share(const struct work *work)
{
	return work->all_cpu_ns > 0 ? fmin(work->all_probe_ns / work->all_cpu_ns, 1) : 0;
}

double work_scale_error(double share)
{
	double own = fmax(1 - share, OWN_MIN);
	double least = fmax(own - COST_ERROR * share, OWN_MIN);
	double most = own + COST_ERROR * share;

	return fmax(own / least, most / own);
}
