// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * quantity: units and limits.
 */
#include "check.h"
#include "quantity.h"

#include <errno.h>

TEST(durations)
{
	int64_t ns = 0;

	CHECK_EQ(quantity_duration("500ms", &ns), 0);
	CHECK_EQ(ns, 500000000);
	CHECK_EQ(quantity_duration("30s", &ns), 0);
	CHECK_EQ(ns, 30000000000);
	CHECK_EQ(quantity_duration("5m", &ns), 0);
	CHECK_EQ(ns, 300000000000);
	CHECK_EQ(quantity_duration("1h", &ns), 0);
	CHECK_EQ(ns, 3600000000000);
	CHECK_EQ(quantity_duration("7", &ns), 0);
	CHECK_EQ(ns, 7000000000);
	CHECK_EQ(quantity_duration("0", &ns), -EINVAL);
	CHECK_EQ(quantity_duration("-1s", &ns), -EINVAL);
	CHECK_EQ(quantity_duration("5x", &ns), -EINVAL);
	CHECK_EQ(quantity_duration("", &ns), -EINVAL);
	CHECK_EQ(quantity_duration("99999999999999999999s", &ns), -EINVAL);
	CHECK_EQ(quantity_duration("9999999999h", &ns), -EINVAL);
	CHECK_EQ(ns, 7000000000);
}

TEST(sizes)
{
	uint64_t bytes = 0;

	CHECK_EQ(quantity_size("1", &bytes), 0);
	CHECK_EQ(bytes, 1);
	CHECK_EQ(quantity_size("64K", &bytes), 0);
	CHECK_EQ(bytes, 65536);
	CHECK_EQ(quantity_size("1MiB", &bytes), 0);
	CHECK_EQ(bytes, 1048576);
	CHECK_EQ(quantity_size("2g", &bytes), 0);
	CHECK_EQ(bytes, 2147483648);
	CHECK_EQ(quantity_size("0", &bytes), -EINVAL);
	CHECK_EQ(quantity_size("1T", &bytes), -EINVAL);
	CHECK_EQ(quantity_size("2048G", &bytes), -EINVAL);
}

TEST(percentages)
{
	double share = 0;

	CHECK_EQ(quantity_percent("10", &share), 0);
	CHECK(share == 0.1);
	CHECK_EQ(quantity_percent("0.5%", &share), 0);
	CHECK(share == 0.005);
	CHECK_EQ(quantity_percent("100", &share), 0);
	CHECK_EQ(quantity_percent("101", &share), -EINVAL);
	CHECK_EQ(quantity_percent("0", &share), -EINVAL);
	CHECK_EQ(quantity_percent("-1", &share), -EINVAL);
	CHECK_EQ(quantity_percent("5x", &share), -EINVAL);
	CHECK_EQ(quantity_percent("", &share), -EINVAL);
	CHECK(share == 1);
}
