// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the mappings of a process. Out: probes on every allocator in it. Joins what allocators
 * (which functions) and probe_plan (which instruction) know of a file, once, and hands it to loader
 * for each process that maps it.
 */
#include "probes.h"

#include "alloc_hints.h"
#include "alloc_points.h"
#include "cleanup.h"
#include "elf_file.h"
#include "loader.h"
#include "log.h"
#include "privilege.h"
#include "shortage.h"
#include "target.h"
#include "vec.h"

#include <errno.h>
#include <fcntl.h>

/* More than any prologue; the planner looks for branches back into it up to here. */
#define CODE_MAX 4096

/*
 * Who joins a recording is probed while it runs, point by point. So the ends of objects come before
 * their beginnings: what is seen to be allocated has its end seen as well.
 */
enum turn { TURN_FREE, TURN_MOVE, TURN_ALLOC, TURN_CNT };

/* What a function's handler reads at entry, whether it waits for the result, when it is probed. */
static const struct {
	uint32_t regs; /* enum probe_plan_reg */
	bool returns;
	enum turn turn;
} needs[HB_FN_CNT] = {
	[HB_FN_MALLOC] = {PROBE_PLAN_RDI, true, TURN_ALLOC},
	[HB_FN_CALLOC] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true, TURN_ALLOC},
	[HB_FN_REALLOC] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true, TURN_MOVE},
	[HB_FN_REALLOCF] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true, TURN_MOVE},
	[HB_FN_REALLOCARRAY] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI | PROBE_PLAN_RDX, true, TURN_MOVE},
	[HB_FN_POSIX_MEMALIGN] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI | PROBE_PLAN_RDX, true,
				  TURN_ALLOC},
	[HB_FN_MEMALIGN] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, true, TURN_ALLOC},
	[HB_FN_VALLOC] = {PROBE_PLAN_RDI, true, TURN_ALLOC},
	[HB_FN_NEW] = {PROBE_PLAN_RDI, false, TURN_ALLOC}, /* may throw */
	[HB_FN_NEW_N] = {PROBE_PLAN_RDI | PROBE_PLAN_RSI, false, TURN_ALLOC},
	[HB_FN_FREE] = {PROBE_PLAN_RDI, false, TURN_FREE},
	[HB_FN_LINKER] = {0, false, TURN_ALLOC},
};

static void file_free(struct probes_file *file)
{
	allocators_clear(&file->set);
	free(file->plans);
	free(file);
}

void probes_clear(struct probes *probes)
{
	for (size_t i = 0; i < probes->cnt; i++)
		file_free(probes->files[i]);
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
			return log_fail(0,
					"%s: cannot read, or decode, the first instruction of %s",
					elf_file_name(file->elf), fn->name);
	}
	return 0;
}

/* What the user says of the file of `map`: a mask of indexes into hints. */
static uint64_t hints_about(const struct alloc_hints *hints, pid_t tgid, const struct procmap *map)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < hints->cnt; i++)
		if (procmaps_is_at(tgid, map, hints->hints[i].path))
			mask |= 1ULL << i;
	return mask;
}

/*
 * A file that is an allocator only because the user says so, without a free: nothing would ever be
 * freed. 0 or -EINVAL, logged.
 */
static int check_frees(const struct probes_file *file, const struct alloc_hints *hints)
{
	if (allocators_has(&file->set, true) || !allocators_has(&file->set, false) || hints->frees)
		return 0;
	return log_fail(0,
			"%s: there is a function that allocates, and none that frees: all of it "
			"would seem to leak; add --probe free=..., or use -t allocs",
			elf_file_name(file->elf));
}

/* The root directory of a process, -1: it has none any more. */
static int open_root(pid_t tgid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)tgid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Finds what is to be probed, with the hints `about` it. 0 or as look(). */
static int find_allocator(const struct probes *probes, pid_t tgid, uint64_t about,
			  struct probes_file *file)
{
	const struct alloc_hints *hints = probes->hints;
	struct alloc_points points _cleanup_(alloc_points_clear) = {};
	struct allocators_request request = {.prefixes = &hints->prefixes};
	_cleanup_close_ int root_fd = about ? open_root(tgid) : -1;
	int err = about && root_fd < 0 && shortage_is(-errno)
			  ? -errno
			  : alloc_points_find(hints, about, file->elf, root_fd, &points);

	if (err)
		return err;
	request.points = points.points;
	request.point_cnt = points.cnt;
	if (hints->only_libs)
		request.names = points.search ? ALLOCATORS_NAMES_ANY : ALLOCATORS_NAMES_NONE;
	err = allocators_find(file->elf, &request, &file->set);
	if (!err && about && probes->track_live)
		err = check_frees(file, hints);
	return err;
}

/* Finds and plans; a set that stays empty: there is nothing to probe, or it was said why not. */
static int look(struct probes *probes, pid_t tgid, const struct procmap *map,
		struct probes_file *file)
{
	uint64_t about = hints_about(probes->hints, tgid, map);
	int err = find_allocator(probes, tgid, about, file);

	probes->met_hints |= about;
	if (err == -ENOENT)
		return 0;
	if (!err)
		err = plan_file(file, probes->track_live);
	if (err)
		allocators_clear(&file->set);
	return err;
}

int probes_of(struct probes *probes, pid_t tgid, const struct procmap *map,
	      struct probes_file **out)
{
	const char *name = elf_file_name(map->elf);
	struct probes_file *file;
	int err;

	for (size_t i = 0; i < probes->cnt; i++) {
		if (probes->files[i]->elf != map->elf)
			continue;
		*out = probes->files[i];
		return 0;
	}
	if (vec_reserve(&probes->files, &probes->cap, probes->cnt + 1))
		return log_fail(ENOMEM, "%s: cannot plan probes", name);
	file = calloc(1, sizeof(*file));
	if (!file)
		return log_fail(ENOMEM, "%s: cannot plan probes", name);
	file->elf = map->elf;
	file->slot = -1;
	err = look(probes, tgid, map, file);
	if (err == -ENOMEM) {
		file_free(file);
		return log_fail(ENOMEM, "%s: cannot plan probes", name);
	}
	/* Also after a failure: it was said, and the next look would fail again. */
	*out = probes->files[probes->cnt++] = file;
	return err;
}

static const struct alloc_hint *find_unmet(const struct probes *probes)
{
	for (size_t i = 0; i < probes->hints->cnt; i++)
		if (!(probes->met_hints & 1ULL << i))
			return &probes->hints->hints[i];
	return NULL;
}

int probes_check_hints(const struct probes *probes)
{
	const struct alloc_hint *unmet = find_unmet(probes);

	if (!unmet)
		return 0;
	return log_fail(0,
			"%s: no process that is profiled maps that file; nothing is probed there",
			unmet->text);
}

int probes_explain_none(const struct probes *probes, const struct target *target)
{
	const struct procmaps *maps = &target->maps;
	const struct alloc_hint *unmet = find_unmet(probes);

	if (unmet)
		return log_fail(0, "%s: process %d (%s) does not map that file", unmet->text,
				(int)target->tgid, target->comm);
	if (probes->hints->only_libs)
		return log_fail(0,
				"--alloc-lib: none of the names of an allocator's functions is in "
				"there (process %d, %s); see --symbol-prefix and --probe",
				(int)target->tgid, target->comm);
	for (size_t i = 0; i < maps->cnt; i++)
		if (maps->maps[i].elf && elf_file_is_static(maps->maps[i].elf))
			return log_fail(
				0,
				"process %d (%s) is statically linked and its allocator has no "
				"symbols; use a build that is not stripped, or say where it is: "
				"--probe malloc=%s:0xOFFSET --probe free=%s:0xOFFSET, and so on "
				"(offsets in the file)",
				(int)target->tgid, target->comm, maps->maps[i].path,
				maps->maps[i].path);
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
			"names (see --symbol-prefix, --probe) or no symbols; use a build that is "
			"not stripped",
			(int)target->tgid, target->comm);
}

/* Between two functions lies less than this only to align the second one. */
#define PADDING_MAX 16

/*
 * The ranges of a file's entry points, neighbours as one. 0, or -E2BIG: more than fit; one range
 * over what lies between would take calls from there for nested ones, and they would not be
 * counted.
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

/*
 * Which variables decide whether others count. Those that do not fit count twice what they hand
 * over; there are as many in no allocator that is known.
 */
static void fill_forwards(const struct probes_file *file, struct hb_wrappers *wrappers)
{
	for (size_t i = 0; i < file->set.cnt; i++) {
		const struct allocators_fn *fn = &file->set.fns[i];
		uint32_t delta = file->plans[i].delta;

		if (!(fn->flags & HB_COOKIE_FORWARDS) || wrappers->forward_cnt == HB_FORWARD_MAX)
			continue;
		wrappers->forward[wrappers->forward_cnt++] = (struct hb_forward){
			.off = (uint32_t)(fn->off + delta),
			.is_slot = fn->forward.how == KNOWN_AT_AT,
			.delta = (int64_t)(fn->forward.vma - fn->vma - delta),
		};
	}
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

/* The point of one function. */
static struct uprobe_link_point fill_point(const struct probes_file *file, size_t i,
					   bool track_live, uint32_t slot)
{
	const uint32_t live_only = HB_COOKIE_AT_RETS | HB_COOKIE_NO_RESULT;
	const struct allocators_fn *fn = &file->set.fns[i];
	const struct probe_plan *plan = &file->plans[i];
	uint64_t off = fn->off + plan->delta;
	uint32_t flags = fn->flags | (plan->emulated ? 0 : HB_COOKIE_STEPPED);

	if (plan->shifted)
		flags |= HB_COOKIE_SHIFTED;
	if (!track_live)
		flags &= ~live_only;
	return (struct uprobe_link_point){
		.off = off,
		.cookie = HB_COOKIE(fn->fn, flags, plan->sp_bytes, slot, off),
		.returns = track_live && needs[fn->fn].returns,
	};
}

/* `points` has room for cnt + ret_cnt of the file's set. Returns their number. */
static size_t fill_points(const struct probes_file *file, bool track_live, uint32_t slot,
			  struct uprobe_link_point *points)
{
	size_t cnt = 0;

	for (enum turn turn = 0; turn < TURN_CNT; turn++)
		for (size_t i = 0; i < file->set.cnt; i++)
			if (needs[file->set.fns[i].fn].turn == turn &&
			    probes_wanted(&file->set.fns[i], track_live))
				points[cnt++] = fill_point(file, i, track_live, slot);
	return track_live ? cnt + fill_rets(&file->set, slot, points + cnt) : cnt;
}

void probes_mark(const struct probes *probes, struct procmaps *maps)
{
	for (size_t i = 0; i < probes->cnt; i++) {
		const struct probes_file *file = probes->files[i];

		for (size_t n = 0; n < maps->cnt && file->slot >= 0; n++)
			if (maps->maps[n].elf == file->elf)
				maps->maps[n].probed = (uint8_t)(file->slot + 1);
	}
}
_Static_assert(HB_SLOT_MAX - 1 <= UINT8_MAX, "slots are below that, see loader_attach()");

/*
 * Attaches a file's in `tgid`, 0: in all processes. Through our own descriptor of the file:
 * whatever a process mapped, executed or replaced meanwhile, the offsets are used on the file that
 * they were planned on. 0 or -errno, not logged.
 */
static int attach_file(struct probes *probes, struct probes_file *file, pid_t tgid,
		       struct loader *loader)
{
	_cleanup_free_ struct uprobe_link_point *points =
		calloc(file->set.cnt + file->set.ret_cnt, sizeof(*points));
	struct hb_wrappers wrappers = {};
	char path[64];
	int err;

	if (!points)
		return -ENOMEM;
	err = fill_wrappers(&file->set, &wrappers);
	if (err)
		return err;
	fill_forwards(file, &wrappers);
	if (file->slot < 0)
		file->slot = (int)probes->slot_cnt++;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", elf_file_fd(file->elf));
	return loader_attach(loader, tgid, path, (uint32_t)file->slot, &wrappers, points,
			     fill_points(file, probes->track_live, (uint32_t)file->slot, points));
}

/* Attaches the file of one mapping in its process, and remembers it. As probes_attach(). */
static int attach_mapped(struct probes *probes, const struct procmap *map, struct target *target,
			 struct loader *loader, bool *any)
{
	struct probes_file *file;
	int err = probes_of(probes, target->tgid, map, &file);

	if (err)
		return err;
	if (target_file_add(target, map->elf, file->set.is_allocator && !map->remapped))
		return log_fail(ENOMEM, "cannot probe process %d", (int)target->tgid);
	if (map->remapped && file->set.is_allocator)
		log_warn("process %d: %s was copied to memory without a file (for huge pages?), "
			 "where no probe reaches it",
			 (int)target->tgid, map->path);
	if (!file->set.cnt || map->remapped)
		return 0;
	*any = true;
	err = attach_file(probes, file, target->tgid, loader);
	if (err && target_is_gone(target))
		return -ESRCH;
	if (err)
		return log_fail(-err, "cannot probe %s in process %d", elf_file_name(map->elf),
				(int)target->tgid);
	log_debug("process %d: %s is probed", (int)target->tgid, elf_file_name(map->elf));
	return 0;
}

int probes_attach(struct probes *probes, struct target *target, struct loader *loader, bool *any)
{
	const struct procmaps *maps = &target->maps;
	int err = 0;

	*any = false;
	for (size_t i = 0; i < maps->cnt && !err; i++)
		if (maps->maps[i].elf && !target_file_find(target, maps->maps[i].elf))
			err = attach_mapped(probes, &maps->maps[i], target, loader, any);
	return err;
}

int probes_attach_everywhere(struct probes *probes, pid_t tgid, const struct procmaps *maps,
			     struct loader *loader)
{
	int first = 0;

	for (size_t i = 0; i < maps->cnt; i++) {
		struct probes_file *file;
		int err;

		if (!maps->maps[i].elf)
			continue;
		err = probes_of(probes, tgid, &maps->maps[i], &file);
		if (!err && file->set.cnt && !file->everywhere) {
			/* Once, also if it fails. */
			file->everywhere = true;
			err = attach_file(probes, file, 0, loader);
			log_line(err ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "%s: %s%s",
				 elf_file_name(file->elf),
				 err ? "cannot be probed: " : "probed everywhere",
				 err ? strerror(-err) : "");
		}
		if (err && !first)
			first = err;
	}
	return first;
}
