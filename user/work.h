/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of the work of processes was seen in windows. Pure arithmetic over times and loads that
 * the caller measures; times are nanoseconds.
 *
 * Probes slow a process that always has something to do: in a window it does less than in as much
 * time outside, or than one like it whose turn it is not, and the share of the time that was seen
 * is not the share of the work. Own work, processor time less what the probes took, is known for
 * both sides and tells the two apart. That is as exact as the cost of a probe is known, times
 * s / (1 - s), where s is the share of the processor time that probes take in windows.
 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stdint.h>

/* What is spent and by whom, since the start. */
struct work_load {
	double probe_ns; /* of all hits, at the calibrated costs; never falls */
	double cpu_ns;	 /* of the processes, the probes' included; never falls */
	/* Of those that are probed in this window; means nothing from one to the next. */
	double probed_cpu_ns;
};

/* What was done in windows, compared with the time outside. */
struct work_speed {
	double cpu_ns, own_ns; /* in windows, of those that were probed */
	double alike_ns;       /* that own_ns were if they had worked as outside */
	double unsure_ns;      /* by so much own_ns may be wrong */
};

/* What probes took of processor time in windows, each as if it had been as long as its period. */
struct work_share {
	double probe_ns, cpu_ns;
};

/* The work of a process, or of several in all. Zeroed, no period has begun. */
struct work {
	bool begun;
	struct work_load at_since, at_open; /* when the period began; what is noted up to */
	double on_probe_ns, on_cpu_ns;	    /* in windows of those that were probed, since then */
	struct work_speed past, last;	    /* of earlier periods, the older the less; of this */
	double part;			 /* of this period's time that was seen, by work_seen() */
	struct work_share whole, scaled; /* of earlier periods: of all, of those seen in part */
};

/* How a period's time was spent. */
struct work_period {
	double part;	   /* the share that was seen of all processes' time; 1: all, 0: nothing */
	double inside_ns;  /* that windows were open, times the part of the processes in each */
	double outside_ns; /* the rest */
	double dearer;	   /* a hit was counted as so many times what it can have cost; 0: as one */
};

/* A period begins. */
void work_begin(struct work *work, const struct work_load *load);

/* A window opens. */
void work_opened(struct work *work, const struct work_load *load);

/* A window is, or was until now, open. */
void work_note(struct work *work, const struct work_load *load);

/*
 * Probes cannot take more than the time of the process that they are in: by what factor, at least
 * 1, a hit must have been counted as too dear in the period. What one process that is hit all the
 * time tells, the others that are probed on the same machine at the same time can use.
 */
double work_dearer(const struct work *work);

/*
 * The share of the work in the period, which ends now, that was seen: of all processes in all of
 * the time. How fast they worked inside, compared with outside, is due to the probes as far as they
 * can explain it, and no further: a load that changes by itself makes the same difference.
 */
double work_seen(struct work *work, const struct work_period *period, const struct work_load *load);

/* The share of the processor time that probes would have taken if all had been recorded, 0..1. */
double work_probed_share(const struct work *work);

/* The same of the periods that were seen in part: what is scaled from windows depends on it. */
double work_scaled_share(const struct work *work);

/*
 * By what factor what is scaled from windows to all of the time may be too large or too small where
 * probes take `share` of the time, since what a hit costs is only about known; at least 1.
 */
double work_scale_error(double share);

#endif
