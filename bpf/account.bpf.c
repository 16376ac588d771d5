// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: sampled allocations and frees that are decided and have their stack id. Out: the maps that
 * user space reads at the end: `sites` (counts per process, stack and size), `live` (sampled
 * objects not freed yet), the counters in `hb_hot` (every loss and statistic).
 *
 * Knows nothing of registers, allocators or stacks. Counters at a site only grow, so a reader that
 * comes while they change sees a state that was true at some moment for each of them.
 */
#include "rooms.bpf.h"

struct hb_hot hb_hot;

/* Sized by loader. Not preallocated: an idle process should cost no memory. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct hb_site_key);
	__type(value, struct hb_site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1048576);
	__type(key, struct hb_live_key);
	__type(value, struct hb_live);
} live SEC(".maps");

/*
 * How many entries `live` has, or had, for each hash of their addresses. Most frees are of objects
 * that are not there; a word in a table that stays in the cache tells that for a fraction of what a
 * look-up takes. Never less than there are: it rises before an entry comes and falls after it went.
 * What user space removes stays until it clears all (it zeroes this, too), and costs a look-up.
 */
__u32 hb_live_hints[HB_LIVE_HINT_CNT];

/* Fibonacci hashing (Knuth, volume 3, 6.4): the highest bits of a product. */
static __always_inline __u32 *live_hint(__u64 addr, __u32 tgid)
{
	__u64 hash = (addr + ((__u64)tgid << 40)) * 0x9e3779b97f4a7c15ULL;

	return &hb_live_hints[hash >> (64 - HB_LIVE_HINT_BITS)];
}

static __always_inline bool may_live(__u64 addr, __u32 tgid)
{
	return *(volatile __u32 *)live_hint(addr, tgid);
}

/* Sized by loader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hb_costs);
} costs SEC(".maps");

__hidden void account_cost_of(__u32 tgid, enum hb_stat what, __u64 n)
{
	struct hb_costs *known = bpf_map_lookup_elem(&costs, &tgid), fresh = {};

	if (!known) {
		bpf_map_update_elem(&costs, &tgid, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&costs, &tgid);
	}
	/* There is as much room as for processes, whose want is counted. */
	if (known && what < HB_COST_CNT)
		__sync_fetch_and_add(&known->n[what], n);
}

__hidden void account_forget_costs(__u32 tgid)
{
	bpf_map_delete_elem(&costs, &tgid);
}

/* The counters of a site, made if new; NULL (counted) if the table is full. */
static struct hb_site *site_get(const struct hb_site_key *key)
{
	struct hb_site *site = bpf_map_lookup_elem(&sites, key);
	struct hb_site fresh = {};

	if (site)
		return site;
	/* -EEXIST: another CPU was faster; the second look-up finds its entry. */
	bpf_map_update_elem(&sites, key, &fresh, BPF_NOEXIST);
	site = bpf_map_lookup_elem(&sites, key);
	if (!site)
		hb_lose(HB_LOSS_SITES_FULL);
	return site;
}

__hidden bool account_alloc(const struct hb_site_key *key)
{
	struct hb_site *site = site_get(key);

	if (!site)
		return false;
	__sync_fetch_and_add(&site->allocs, 1);
	return true;
}

__hidden void account_end(__u32 tgid, const struct hb_live *object)
{
	struct hb_site_key key = {
		.stack_id = object->stack_id,
		.size = object->size,
		.tgid = tgid,
		.epoch = object->epoch,
	};
	struct hb_site *site = bpf_map_lookup_elem(&sites, &key);

	if (site)
		__sync_fetch_and_add(&site->frees, 1);
}

/*
 * An entry that is still there was freed without us: by a call that is not probed, or before an
 * exec. Only the first is a loss.
 */
static void end_unfreed(const struct hb_live_key *key, __u32 epoch)
{
	struct hb_live old;

	if (!account_take(key->addr, key->tgid, &old))
		return;
	if (old.epoch == epoch)
		hb_lose(HB_LOSS_LOST_FREE);
	account_end(key->tgid, &old);
}

__hidden void account_untracked(const struct hb_site_key *key)
{
	struct hb_site *site = bpf_map_lookup_elem(&sites, key);

	if (site)
		__sync_fetch_and_add(&site->untracked, 1);
}

__hidden void account_live(__u64 addr, const struct hb_site_key *key)
{
	struct hb_live_key at = {.addr = addr, .tgid = key->tgid};
	struct hb_live object = {
		.stack_id = key->stack_id,
		.size = key->size,
		.epoch = key->epoch,
	};
	__u32 *hint = live_hint(addr, key->tgid);
	long err;

	__sync_fetch_and_add(hint, 1);
	err = bpf_map_update_elem(&live, &at, &object, BPF_NOEXIST);
	if (err == -17 /* EEXIST */) {
		end_unfreed(&at, object.epoch);
		err = bpf_map_update_elem(&live, &at, &object, BPF_NOEXIST);
	}
	if (!err)
		return;
	__sync_fetch_and_add(hint, -1);
	hb_lose(HB_LOSS_LIVE_FULL);
	account_untracked(key);
}

__hidden bool account_has(__u64 addr, __u32 tgid)
{
	struct hb_live_key key = {.addr = addr, .tgid = tgid};

	return may_live(addr, tgid) && bpf_map_lookup_elem(&live, &key);
}

__hidden bool account_take(__u64 addr, __u32 tgid, struct hb_live *object)
{
	struct hb_live_key key = {.addr = addr, .tgid = tgid};
	struct hb_live *found, taken;

	if (!may_live(addr, tgid))
		return false;
	found = bpf_map_lookup_elem(&live, &key);
	if (!found)
		return false;
	taken = *found;
	/* Whoever deletes it owns it; a second free of one address is not counted twice. */
	if (bpf_map_delete_elem(&live, &key))
		return false;
	__sync_fetch_and_add(live_hint(addr, tgid), -1);
	*object = taken;
	return true;
}

__hidden void account_restore(__u64 addr, __u32 tgid, const struct hb_live *object)
{
	struct hb_site_key key = {
		.stack_id = object->stack_id,
		.size = object->size,
		.tgid = tgid,
		.epoch = object->epoch,
	};

	account_live(addr, &key);
}

__hidden bool account_free(__u64 addr, __u32 tgid)
{
	struct hb_live object;

	if (!account_take(addr, tgid, &object))
		return false;
	hb_stat_add(HB_STAT_FREES, 1);
	account_end(tgid, &object);
	return true;
}

char LICENSE[] SEC("license") = "GPL";
