// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: words that people write for amounts. Out: numbers, never rounded or cut to what fits.
 */
#include "quantity.h"

#include "cleanup.h"

#include <ctype.h>
#include <errno.h>

int quantity_number(const char *text, uint64_t max, uint64_t *value, const char **end)
{
	char *stop;
	unsigned long long number;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &stop, 10);
	if (errno || number > max)
		return -EINVAL;
	*value = number;
	*end = stop;
	return 0;
}

/* A unit and what it multiplies with. */
struct unit {
	const char *name;
	uint64_t factor;
};

/* A number with one of the units, the product > 0 and at most `max`. */
static int parse_unit(const char *text, const struct unit *units, size_t cnt, uint64_t max,
		      uint64_t *value)
{
	uint64_t number;
	const char *end;

	if (quantity_number(text, max, &number, &end))
		return -EINVAL;
	for (size_t i = 0; i < cnt; i++) {
		if (strcasecmp(end, units[i].name))
			continue;
		if (!number || number > max / units[i].factor)
			return -EINVAL;
		*value = number * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

int quantity_duration(const char *text, int64_t *ns)
{
	static const struct unit units[] = {
		{"ms", 1000000},    {"s", 1000000000},	  {"", 1000000000},
		{"m", 60000000000}, {"h", 3600000000000},
	};
	uint64_t value;
	int err = parse_unit(text, units, ARRAY_CNT(units), INT64_MAX, &value);

	if (!err)
		*ns = value;
	return err;
}

int quantity_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{"", 1},	   {"B", 1},	       {"K", 1 << 10},	    {"KB", 1 << 10},
		{"KiB", 1 << 10},  {"M", 1 << 20},     {"MB", 1 << 20},	    {"MiB", 1 << 20},
		{"G", 1ULL << 30}, {"GB", 1ULL << 30}, {"GiB", 1ULL << 30},
	};

	/* 2^40: beyond it the probability of small sizes no longer fits the table. */
	return parse_unit(text, units, ARRAY_CNT(units), 1ULL << 40, bytes);
}

int quantity_percent(const char *text, double *share)
{
	char *end;
	double percent = isdigit((unsigned char)text[0]) ? strtod(text, &end) : 0;

	if (percent > 0 && *end == '%')
		end++;
	if (!(percent > 0) || percent > 100 || *end)
		return -EINVAL;
	*share = percent / 100;
	return 0;
}
