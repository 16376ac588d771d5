// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the mappings of a process. Out: probes on every allocator in it. Joins what allocators
 * (which functions) and probe_plan (which instruction) know and hands it to loader.
 */
#include "probes.h"

#include "cleanup.h"
#include "elf_file.h"
#include "loader.h"
#include "log.h"
#include "privilege.h"
#include "target.h"
#include "vec.h"

#include <errno.h>

/* More than any prologue; the planner looks for branches back into it up to here. */
#define CODE_MAX 4096

/* What a function's handler reads at entry, and whether it waits for the result. */
static const struct {
	uint32_t regs; /* enum probe_plan_reg */
	bool returns;
} needs[HB_FN_CNT] = {
	[HB_FN_MALLOC] = {PROBE_PLAN_RDI, true},
	[HB_FN_CALLOC] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true},
	[HB_FN_REALLOC] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true},
	[HB_FN_REALLOCARRAY] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI | PROBE_PLAN_RDX, true},
	[HB_FN_POSIX_MEMALIGN] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI | PROBE_PLAN_RDX, true},
	[HB_FN_MEMALIGN] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true},
	[HB_FN_VALLOC] = {PROBE_PLAN_RDI, true},
	[HB_FN_NEW] = {PROBE_PLAN_RDI, false}, /* may throw */
	[HB_FN_NEW_N] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, false},
	[HB_FN_FREE] = {PROBE_PLAN_RDI, false},
	[HB_FN_LINKER] = {0, false},
};

void probes_clear(struct probes *probes)
{
	for (size_t i = 0; i < probes->cnt; i++) {
		allocators_clear(&probes->files[i].set);
		free(probes->files[i].plans);
	}
	free(probes->files);
	*probes = (struct probes){};
}

bool probes_wanted(const struct allocators_fn *fn, bool track_live)
{
	return !fn->silent && (track_live || fn->fn != HB_FN_FREE);
}

static int plan_file(struct probes_file *file, bool track_live)
{
	uint8_t code[CODE_MAX];

	file->plans = calloc(file->set.cnt, sizeof(*file->plans));
	if (!file->plans)
		return -ENOMEM;
	for (size_t i = 0; i < file->set.cnt; i++) {
		const struct allocators_fn *fn = &file->set.fns[i];
		size_t want = fn->size_bytes < CODE_MAX ? fn->size_bytes : CODE_MAX;
		size_t len = elf_file_read_text(file->elf, fn->off, code, want);
		int err;

		if (!probes_wanted(fn, track_live))
			continue;
		err = probe_plan_make(code, len, fn->vma, needs[fn->fn].regs,
				      track_live && needs[fn->fn].returns, fn->fn == HB_FN_FREE,
				      &file->plans[i]);
		if (err == -ENOMEM)
			return err;
		if (err)
			return log_fail(0, "%s: cannot decode the first instruction of %s",
					elf_file_name(file->elf), fn->name);
	}
	return 0;
}

/*
 * Looks for an allocator in the file behind `map`, unless that was done. 0, -ENOMEM, or another
 * -errno, logged.
 */
static int add_file(struct probes *probes, size_t *cap, struct target *target,
		    const struct procmap *map, bool track_live,
		    const struct alloc_prefixes *prefixes)
{
	struct probes_file file = {.map = map, .elf = map->elf};
	int err;

	if (!map->elf || target_file_find(target, map->elf))
		return 0;
	err = allocators_find(map->elf, prefixes, &file.set);
	if (err == -ENOENT)
		return target_file_add(target, map->elf, false);
	if (err)
		return err;
	err = plan_file(&file, track_live);
	/* Also after a failure: it was said, and the next look would fail again. */
	if (target_file_add(target, map->elf, file.set.is_allocator && !err))
		err = -ENOMEM;
	if (!err)
		err = vec_reserve(&probes->files, cap, probes->cnt + 1);
	if (err) {
		allocators_clear(&file.set);
		free(file.plans);
		return err;
	}
	probes->files[probes->cnt++] = file;
	return 0;
}

int probes_plan(struct target *target, bool track_live, const struct alloc_prefixes *prefixes,
		struct probes *out)
{
	const struct procmaps *maps = &target->maps;
	struct probes probes = {};
	size_t cap = 0;
	int err = 0;

	for (size_t i = 0; i < maps->cnt && !err; i++)
		err = add_file(&probes, &cap, target, &maps->maps[i], track_live, prefixes);
	if (err) {
		probes_clear(&probes);
		return err == -ENOMEM ? log_fail(ENOMEM, "cannot plan the probes of process %d",
						 (int)target->tgid)
				      : err;
	}
	*out = probes;
	return 0;
}

int probes_explain_none(const struct target *target)
{
	const struct procmaps *maps = &target->maps;

	for (size_t i = 0; i < maps->cnt; i++)
		if (maps->maps[i].elf && elf_file_is_static(maps->maps[i].elf))
			return log_fail(
				0,
				"process %d (%s) is statically linked and its allocator has "
				"no symbols; use a build that is not stripped",
				(int)target->tgid, target->comm);
	if (target->unreadable) {
		const char *missing = privilege_missing(PRIVILEGE_PROCESS);

		return log_fail(target->unreadable,
				"cannot open the files that process %d (%s) maps%s%s; run as root "
				"of the host",
				(int)target->tgid, target->comm, missing ? " without " : "",
				missing ? missing : "");
	}
	return log_fail(0,
			"no malloc and free found in process %d (%s): its allocator has other "
			"names (see --symbol-prefix) or no symbols; use a build that is not "
			"stripped",
			(int)target->tgid, target->comm);
}

/* Between two functions lies less than this only to align the second one. */
#define PADDING_MAX 16

/*
 * The ranges of a file's entry points, neighbours as one. 0, or -E2BIG: more than fit; one range over
 * what lies between would take calls from there for nested ones, and they would not be counted.
 */
static int fill_wrappers(const struct allocators_set *set, struct hb_wrappers *wrappers)
{
	for (size_t i = 0; i < set->cnt; i++) {
		const struct allocators_fn *fn = &set->fns[i];
		struct hb_range range = {fn->off, fn->off + fn->size_bytes};
		struct hb_range *last = wrappers->cnt ? &wrappers->range[wrappers->cnt - 1] : NULL;

		if (!fn->holds_calls)
			continue;
		if (last && range.start_off < last->end_off + PADDING_MAX) {
			if (last->end_off < range.end_off)
				last->end_off = range.end_off;
		} else if (wrappers->cnt < HB_WRAPPER_MAX) {
			wrappers->range[wrappers->cnt++] = range;
		} else {
			return -E2BIG;
		}
	}
	return 0;
}

/* Where the results of what may throw are taken. */
static size_t fill_rets(const struct allocators_set *set, uint32_t slot,
			struct uprobe_link_point *points)
{
	for (size_t i = 0; i < set->ret_cnt; i++)
		points[i] = (struct uprobe_link_point){
			.off = set->rets[i].off,
			.cookie = HB_COOKIE(HB_FN_NEW, HB_COOKIE_RESULT | HB_COOKIE_STEPPED, 0,
					    slot, set->rets[i].off),
		};
	return set->ret_cnt;
}

/* `points` has room for cnt + ret_cnt of the file's set. Returns their number. */
static size_t fill_points(const struct probes_file *file, bool track_live, uint32_t slot,
			  struct uprobe_link_point *points)
{
	const uint32_t live_only = HB_COOKIE_AT_RETS | HB_COOKIE_NO_RESULT;
	size_t cnt = 0;

	for (size_t i = 0; i < file->set.cnt; i++) {
		const struct allocators_fn *fn = &file->set.fns[i];
		const struct probe_plan *plan = &file->plans[i];
		uint64_t off = fn->off + plan->delta;
		uint32_t flags = fn->flags | (plan->emulated ? 0 : HB_COOKIE_STEPPED);

		if (!probes_wanted(fn, track_live))
			continue;
		if (plan->shifted)
			flags |= HB_COOKIE_SHIFTED;
		if (!track_live)
			flags &= ~live_only;
		points[cnt++] = (struct uprobe_link_point){
			.off = off,
			.cookie = HB_COOKIE(fn->fn, flags, plan->sp_bytes, slot, off),
			.returns = track_live && needs[fn->fn].returns,
		};
	}
	return track_live ? cnt + fill_rets(&file->set, slot, points + cnt) : cnt;
}

/*
 * Attaches through our own descriptor of the file: whatever the process mapped, executed or
 * replaced meanwhile, the offsets are used on the file that they were planned on.
 */
static int attach_file(const struct probes_file *file, const struct target *target,
		       struct loader *loader, uint32_t slot, const struct hb_wrappers *wrappers,
		       const struct uprobe_link_point *points, size_t cnt)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", elf_file_fd(file->elf));
	return loader_attach(loader, target->tgid, path, slot, wrappers, points, cnt);
}

/* The slot of a file, a new one if it has none. 0 and *slot, or -ENOMEM. */
static int slot_of(struct probes_slots *slots, const struct elf_file *elf, uint32_t *slot)
{
	for (*slot = 0; *slot < slots->cnt; ++*slot)
		if (slots->elfs[*slot] == elf)
			return 0;
	if (vec_reserve(&slots->elfs, &slots->cap, slots->cnt + 1))
		return -ENOMEM;
	slots->elfs[slots->cnt++] = elf;
	return 0;
}

/* Attaches one file's. 0 or -errno, not logged. */
static int attach_one(const struct probes_file *file, const struct target *target, bool track_live,
		      struct loader *loader, struct probes_slots *slots)
{
	_cleanup_free_ struct uprobe_link_point *points =
		calloc(file->set.cnt + file->set.ret_cnt, sizeof(*points));
	struct hb_wrappers wrappers = {};
	uint32_t slot;
	int err;

	if (!points)
		return -ENOMEM;
	err = slot_of(slots, file->elf, &slot);
	if (err)
		return err;
	err = fill_wrappers(&file->set, &wrappers);
	if (err)
		return err;
	return attach_file(file, target, loader, slot, &wrappers, points,
			   fill_points(file, track_live, slot, points));
}

int probes_attach(const struct probes *probes, const struct target *target, bool track_live,
		  struct loader *loader, struct probes_slots *slots)
{
	for (size_t i = 0; i < probes->cnt; i++) {
		const struct probes_file *file = &probes->files[i];
		int err = attach_one(file, target, track_live, loader, slots);

		if (err && target_is_gone(target))
			return -ESRCH;
		if (err)
			return log_fail(-err, "cannot probe %s in process %d",
					elf_file_name(file->elf), (int)target->tgid);
		log_debug("process %d: %s is probed", (int)target->tgid, elf_file_name(file->elf));
	}
	return 0;
}
