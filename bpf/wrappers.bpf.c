// SPDX-License-Identifier: GPL-2.0-only
/*
 * In: a probe that was hit, and a place in code. Out: is the call part of another one of the
 * allocator, so that only one of the two counts.
 *
 * The functions are global, not __hidden: their arguments are numbers, so the verifier can look at
 * each once and need not follow it from every call.
 */
#include "rooms.bpf.h"
#include "unwind.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_SLOT_MAX);
	__type(key, __u32);
	__type(value, struct hb_wrappers);
} wrappers SEC(".maps");

/* Is `off` just behind an instruction of a probed function of the file in `slot`? */
__noinline int wrappers_hold_call(__u32 slot, __u64 off)
{
	const struct hb_wrappers *probed = bpf_map_lookup_elem(&wrappers, &slot);

	if (!probed)
		return false;
	for (__u32 i = 0; i < HB_WRAPPER_MAX; i++) {
		if (i >= probed->cnt)
			break;
		/* A return address is one past its call, so the end is inside. */
		if (off > probed->range[i].start_off && off <= probed->range[i].end_off)
			return true;
	}
	return false;
}

__noinline int wrappers_have_called(__u64 ip, __u64 cookie, __u64 ra_at, __u64 ra)
{
	__u64 place;

	/* A function that jumped here may have been given a return probe before. */
	ra = retprobe_real_return(ra_at, ra);

	if (wrappers_hold_call(HB_COOKIE_SLOT(cookie), ra - (ip - HB_COOKIE_OFF(cookie))))
		return true;
	place = unwind_place(ra - 1);
	return place && wrappers_hold_call(HB_PLACE_SLOT(place), (__u64)HB_PLACE_OFF(place) + 1);
}

__noinline int wrappers_go_on(__u64 ip, __u64 cookie)
{
	__u32 slot = HB_COOKIE_SLOT(cookie), is_slot = 0;
	const struct hb_wrappers *probed = bpf_map_lookup_elem(&wrappers, &slot);
	__u64 at = 0, pc, place;

	if (!probed)
		return false;
	for (__u32 i = 0; i < HB_FORWARD_MAX; i++) {
		if (i >= probed->forward_cnt)
			break;
		if (probed->forward[i].off != HB_COOKIE_OFF(cookie))
			continue;
		at = ip + probed->forward[i].delta;
		is_slot = probed->forward[i].is_slot;
		break;
	}
	if (!at || !hb_read_word(at, &pc) || (is_slot && !hb_read_word(pc, &pc)))
		return false;
	place = unwind_place(pc);
	return place && wrappers_hold_call(HB_PLACE_SLOT(place), (__u64)HB_PLACE_OFF(place) + 1);
}
