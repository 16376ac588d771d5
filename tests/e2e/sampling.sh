#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Estimates from samples: unbiased, and spread as theory says, for each size, at several rates. Each
# recording holds many replicates (see tests/targets/mix.c). The counts are chosen so that six
# standard errors of the mean are below 1.5 % where that is asked for.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# estimate RATE REPLICATES SIZE:OBJECTS...: leaves the lines of "pprof_read.py estimates" in `e`.
estimate() {
	local rate=$1

	shift
	target mix "$@"
	heapbpf_start --max-overhead none -p "$target_pid" -r "$rate" -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader valid p.pb.gz
	reader estimates truth p.pb.gz >e
}

# Neither the mean nor the spread is one that chance brings once in ten million times.
as_theory_says() {
	local size kind replicates objects mean error chance spread

	while read -r size kind replicates objects mean error chance spread; do
		awk -v c="$chance" -v s="$spread" 'BEGIN { exit !(c > 1e-8 && s * s < 49) }' ||
			fail "$kind of $size: $mean of $objects in $replicates estimates," \
				"standard error $error, chance $chance, spread $spread"
	done <e
}

# Mean of each estimate within 1.5 % of the truth, for those where six standard errors are less.
within_some_percent() {
	local size kind objects mean error checked=0

	while read -r size kind _ objects mean error _; do
		if awk -v e="$error" -v n="$objects" 'BEGIN { exit !(6 * e < n * 0.015) }'; then
			awk -v m="$mean" -v n="$objects" 'BEGIN { d = m / n - 1; exit !(d*d <= 0.015 * 0.015) }' ||
				fail "$kind of $size is $mean, not $objects"
			checked=$((checked + 1))
		fi
	done <e
	equal "$checked" "$1" "estimates with a standard error that is small enough"
}

# The standard error of a mean is sqrt((1-p) / (p n replicates)).
test_default_rate() {
	estimate 512K 32 65536:39000:100 1048576:3000:1000 67108864:20:10
	as_theory_says
	within_some_percent 10
}

test_small_sizes_at_default_rate() {
	estimate 512K 32 16:10000:5000 64:10000:5000 100:5000:2500 1024:5000:2500 4096:5000:1000 \
		16384:5000:100
	as_theory_says
}

test_rate_of_64k() {
	estimate 64K 32 4096:78000:1000 65536:8000:4000 1048576:300:100 67108864:10:5
	as_theory_says
	within_some_percent 14
}

test_small_sizes_at_64k() {
	estimate 64K 32 16:10000:5000 64:10000:5000 100:5000:2500 1024:10000:2500
	as_theory_says
}

test_small_sizes_at_low_rate() {
	estimate 256 32 16:78000:39000 100:20000:12000 1024:1000:500 4096:200:100
	as_theory_says
	within_some_percent 14
}

# Attached in the middle of another recording's work; each draws for itself, and scales once.
test_two_rates_at_once() {
	local first

	target mix 32 1048576:1000:500 65536:4000:1000
	heapbpf_start --max-overhead none -p "$target_pid" -r 512K -o first.pb.gz
	first=$heapbpf_pid
	heapbpf_start --max-overhead none -p "$target_pid" -r 64K -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	heapbpf_pid=$first
	heapbpf_stop
	whole
	reader estimates truth p.pb.gz >e
	as_theory_says
	reader estimates truth first.pb.gz >e
	as_theory_says
}

# One function, two very different sizes in turn: each (stack, size) is scaled by itself.
test_one_site_two_sizes() {
	estimate 64K 32 16:10000:5000 1048576:2000:500
	as_theory_says
}

# A million small objects alive: within six standard errors, in a recording of its own each time.
test_million_small_ones() {
	local run estimate

	for run in 1 2 3; do
		target mix 1 64:1000000:1000000
		heapbpf_start --max-overhead none -p "$target_pid" -o p.pb.gz
		target_step
		heapbpf_stop
		whole
		# 64 MB in use; sd = 64 * sqrt(10^6 / p), p = 1 - exp(-64 / 524288).
		estimate=$(reader total p.pb.gz inuse_space)
		awk -v b="$estimate" 'BEGIN {
			d = (b - 64e6) / (64 * sqrt(1e6 / (1 - exp(-64 / 524288))))
			exit !(d*d <= 36)
		}' || fail "run $run: $estimate bytes in use, not 64000000"
		target_end
	done
}

test_allocs_rate() {
	target mix 32 65536:4000:1000 1048576:1000:500
	heapbpf_start --max-overhead none -p "$target_pid" -t allocs -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader estimates truth p.pb.gz | grep alloc_ >e
	as_theory_says
}

e2e_main "$@"
