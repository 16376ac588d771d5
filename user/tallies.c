// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: counters, and descriptors of hash maps. Out: their sums; and entries, by the batch operations
 * of BPF (Linux 5.6),
 * which walk bucket by bucket: an entry that comes or goes meanwhile is seen or not, no other is
 * missed.
 */
#include "tallies.h"

#include "cleanup.h"
#include "sampling.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

/* Entries of a batch at first; a bucket with more asks for more. */
#define BATCH 1024

void tallies_counters(const struct tallies *tallies, uint64_t counters[static HB_COUNTER_CNT])
{
	for (size_t i = 0; i < HB_COUNTER_CNT; i++) {
		counters[i] = 0;
		for (size_t cpu = 0; cpu < HB_COUNTERS_CNT; cpu++)
			counters[i] +=
				__atomic_load_n(&tallies->counters[cpu].n[i], __ATOMIC_RELAXED);
	}
}

void tallies_zero_counters(const struct tallies *tallies)
{
	for (size_t cpu = 0; cpu < HB_COUNTERS_CNT; cpu++)
		for (size_t i = 0; i < HB_COUNTER_CNT; i++)
			__atomic_store_n(&tallies->counters[cpu].n[i], 0, __ATOMIC_RELAXED);
}

/* A map and what is done with its entries. */
struct walk {
	int fd;
	size_t key_bytes, value_bytes;
	int (*batch)(int fd, void *in, void *out, void *keys, void *values, __u32 *cnt,
		     const struct bpf_map_batch_opts *opts);
	tallies_fn *fn; /* NULL: nothing */
	void *data;
};

static int deliver(const struct walk *walk, const char *keys, const char *values, __u32 cnt)
{
	int err = 0;

	for (__u32 i = 0; walk->fn && i < cnt && !err; i++)
		err = walk->fn(keys + i * walk->key_bytes, values + i * walk->value_bytes,
			       walk->data);
	return err;
}

/* The whole map, `cap` entries at a time. -ENOSPC: a bucket holds more; some may be done already.
 */
static int walk_map(const struct walk *walk, __u32 cap, __u32 *position, bool *started)
{
	_cleanup_free_ char *keys = calloc(cap, walk->key_bytes);
	_cleanup_free_ char *values = calloc(cap, walk->value_bytes);
	int err = 0;

	if (!keys || !values)
		return -ENOMEM;
	while (!err) {
		__u32 cnt = cap, next = 0;
		int deliver_err;

		err = walk->batch(walk->fd, *started ? position : NULL, &next, keys, values, &cnt,
				  NULL);
		if (err == -EINTR) {
			err = 0;
			continue;
		}
		if (err && err != -ENOENT)
			return err;
		deliver_err = deliver(walk, keys, values, cnt);
		if (deliver_err)
			return deliver_err;
		*position = next;
		*started = true;
	}
	return 0; /* -ENOENT: the end */
}

static int walk_all(const struct walk *walk)
{
	__u32 position = 0;
	bool started = false;
	int err = -ENOSPC;

	for (__u32 cap = BATCH; err == -ENOSPC && cap; cap *= 2)
		err = walk_map(walk, cap, &position, &started);
	return err;
}

int tallies_each_site(const struct tallies *tallies, tallies_fn *fn, void *data)
{
	return walk_all(&(struct walk){tallies->sites, sizeof(struct hb_site_key),
				       sizeof(struct hb_site), bpf_map_lookup_batch, fn, data});
}

int tallies_take_sites(const struct tallies *tallies, tallies_fn *fn, void *data)
{
	return walk_all(&(struct walk){tallies->sites, sizeof(struct hb_site_key),
				       sizeof(struct hb_site), bpf_map_lookup_and_delete_batch, fn,
				       data});
}

int tallies_each_stack(const struct tallies *tallies, tallies_fn *fn, void *data)
{
	return walk_all(&(struct walk){tallies->stacks, sizeof(__u64), tallies->stack_bytes,
				       bpf_map_lookup_batch, fn, data});
}

int tallies_clear_live(const struct tallies *tallies)
{
	int err = walk_all(&(struct walk){tallies->live, sizeof(struct hb_live_key),
					  sizeof(struct hb_live), bpf_map_lookup_and_delete_batch,
					  NULL, NULL});

	for (int i = 0; !err && i < HB_LIVE_HINT_CNT; i++)
		__atomic_store_n(&tallies->live_hints[i], 0, __ATOMIC_RELAXED);
	return err;
}

/* Of which image objects are to be forgotten. */
struct forgetting {
	int fd;
	uint32_t tgid, epoch;
};

static int forget(const void *key_, const void *object_, void *data)
{
	const struct forgetting *forgetting = data;
	const struct hb_live *object = object_;
	const struct hb_live_key *key = key_;

	if (key->tgid == forgetting->tgid && object->epoch < forgetting->epoch)
		bpf_map_delete_elem(forgetting->fd, key);
	return 0;
}

void tallies_forget_live(const struct tallies *tallies, uint32_t tgid, uint32_t epoch)
{
	struct forgetting forgetting = {tallies->live, tgid, epoch};

	walk_all(&(struct walk){tallies->live, sizeof(struct hb_live_key), sizeof(struct hb_live),
				bpf_map_lookup_batch, forget, &forgetting});
}

/* What is summed up. */
struct live_sum {
	const __u64 *threshold;
	double bytes;
};

static int add_live_bytes(const void *key_, const void *site_, void *data)
{
	const struct hb_site_key *key = key_;
	const struct hb_site *site = site_;
	uint64_t ended = site->frees + site->untracked;
	struct live_sum *sum = data;

	if (key->size && site->allocs > ended)
		sum->bytes += (site->allocs - ended) * (double)key->size /
			      sampling_p(sum->threshold, key->size);
	return 0;
}

double tallies_live_bytes(const struct tallies *tallies, const __u64 threshold[static HB_CLASS_CNT])
{
	struct live_sum sum = {.threshold = threshold};

	tallies_each_site(tallies, add_live_bytes, &sum);
	return sum.bytes;
}
