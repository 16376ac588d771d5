/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals that end a recording, as something to read.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdbool.h>

struct command;

/*
 * Makes the signals readable instead of deadly, and lets failing writes be errors. A descriptor
 * that the caller closes, or -1 with errno set.
 */
int signals_open(void);

/*
 * Called when the descriptor is readable; true if that ends the recording. With a `command` (else
 * NULL) the first signal is for it, and the recording ends when it does; the second one ends the
 * recording at once. *signal_cnt, 0 at first, counts them.
 */
bool signals_end_recording(const struct command *command, int signal_fd, int *signal_cnt);

/* Has one of them come that nobody has read yet? */
bool signals_pending(void);

/*
 * Makes them what they were before us, so that a second Ctrl-C ends a write that nobody reads. The
 * first one, which may still wait in the descriptor, must not.
 */
void signals_let_end_us(void);

#endif
