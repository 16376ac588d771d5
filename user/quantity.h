/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Amounts as people write them.
 */
#ifndef QUANTITY_H
#define QUANTITY_H

#include <stdint.h>

/*
 * A decimal number without sign, at most `max`; *end is what follows it in `text`. 0 or -EINVAL,
 * with both untouched.
 */
int quantity_number(const char *text, uint64_t max, uint64_t *value, const char **end);

/* "500ms", "30s", "5m", "1h" into nanoseconds > 0. 0 or -EINVAL. */
int quantity_duration(const char *text, int64_t *ns);

/* "1", "512K", "1M", "2G" (binary) into bytes > 0. 0 or -EINVAL. */
int quantity_size(const char *text, uint64_t *bytes);

/* "5", "0.5%" into a share of 1, greater than 0. 0 or -EINVAL. */
int quantity_percent(const char *text, double *share);

#endif
