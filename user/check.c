// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: options. Out: a report on stdout, from the same planning that record does, attached to
 * nothing but ourselves.
 */
#include "check.h"

#include "caps.h"
#include "cleanup.h"
#include "elf_file.h"
#include "log.h"
#include "probes.h"
#include "target.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/utsname.h>

DEFINE_CLEANUP(target, struct target, target_free)

static void show_caps(const struct caps *caps)
{
	struct utsname name = {};

	uname(&name);
	printf("kernel %s\n", name.release);
	for (int tier = 0; tier < UPROBE_LINK_TIER_CNT; tier++) {
		const char *lacks = caps->lacks[tier];

		printf("  %-8s %s%s%s%s\n", uprobe_link_tier_name(tier),
		       caps->tier[tier] ? "yes" : "no", tier == (int)caps->best ? ", used" : "",
		       lacks ? ", without " : "", lacks ? lacks : "");
	}
}

static const char *const fn_names[] = {
#define FN_NAME(id, text) [HB_FN_##id] = text,
	HB_FN_LIST(FN_NAME)
#undef FN_NAME
};

static void show_fn(const struct probes_file *file, size_t i, bool track_live)
{
	const struct allocators_fn *fn = &file->set.fns[i];
	const struct probe_plan *plan = &file->plans[i];

	printf("    %-16s 0x%-8" PRIx64, fn->name, fn->vma);
	if (fn->silent) {
		printf(" not probed: it %s\n", fn->silent);
		return;
	}
	if (!probes_wanted(fn, track_live)) {
		printf(" not probed: not needed for -t allocs\n");
		return;
	}
	printf(" +%-3u %-28s %s%s%s%s\n", plan->delta, plan->insn,
	       plan->emulated ? "emulated" : "single-stepped (slow)", fn->asked_for ? ", as " : "",
	       fn->asked_for ? fn_names[fn->fn] : "",
	       track_live && fn->flags & HB_COOKIE_NO_RESULT
		       ? ", not in inuse: its returns cannot be found"
		       : "");
}

/* What may throw has no return probe; see HB_COOKIE_RESULT. */
static void show_rets(const struct allocators_set *set, bool track_live)
{
	for (size_t i = 0; i < set->ret_cnt && track_live; i++)
		printf("    %-16s 0x%-8" PRIx64 " +0   %-28s single-stepped (slow)\n",
		       "return of new", set->rets[i].vma, "ret");
}

/* What would be probed in the files of the last scan. 0 or -errno, logged. */
static int show_files(struct target *target, struct probes *probes)
{
	const struct procmaps *maps = &target->maps;

	for (size_t i = 0; i < maps->cnt; i++) {
		struct probes_file *file;

		if (!maps->maps[i].elf || target_file_find(target, maps->maps[i].elf))
			continue;
		if (probes_of(probes, target->tgid, &maps->maps[i], &file) ||
		    target_file_add(target, file->elf, file->set.is_allocator))
			return -ENOMEM;
		if (!file->set.cnt)
			continue;
		printf("  %s\n", elf_file_name(file->elf));
		for (size_t fn = 0; fn < file->set.cnt; fn++)
			show_fn(file, fn, probes->track_live);
		show_rets(&file->set, probes->track_live);
	}
	return target_has_allocator(target) ? 0 : probes_explain_none(probes, target);
}

static enum opts_exit check_target(pid_t tgid, enum uprobe_link_tier tier, struct probes *probes,
				   struct elf_cache *cache)
{
	struct target *target _cleanup_(cleanup_target) = NULL;
	int err, returns;

	err = target_open(tgid, &target);
	if (err) {
		target_explain(tgid, err);
		return OPTS_EXIT_FAILED;
	}
	err = target_scan(target, cache, (struct mappings_state){});
	if (err) {
		log_fail(-err, "cannot look into process %d", (int)tgid);
		return OPTS_EXIT_FAILED;
	}
	returns = probes->track_live ? caps_return_probes(tgid, tier) : 0;
	if (returns && returns != -EOPNOTSUPP) {
		caps_check_returns(tgid, tier);
		return OPTS_EXIT_FAILED;
	}
	printf("process %d (%s)\n", (int)tgid, target->comm);
	if (returns)
		printf("  return probes are unsafe here (CVE-2025-21834); only -t allocs works\n");
	return show_files(target, probes) ? OPTS_EXIT_FAILED : OPTS_EXIT_WHOLE;
}

DEFINE_CLEANUP(elf_cache, struct elf_cache, elf_cache_free)

enum opts_exit check_run(const struct opts *opts)
{
	struct elf_cache *cache _cleanup_(cleanup_elf_cache) = elf_cache_new();
	struct probes probes _cleanup_(probes_clear) = {
		.track_live = opts->types[PROFILE_HEAP] || opts->types[PROFILE_INUSE],
		.hints = &opts->hints,
	};
	enum opts_exit status = OPTS_EXIT_WHOLE;
	struct caps caps;

	if (!cache) {
		log_fail(ENOMEM, "cannot start");
		return OPTS_EXIT_FAILED;
	}
	if (caps_probe(&caps))
		return OPTS_EXIT_FAILED;
	show_caps(&caps);
	for (size_t i = 0; i < opts->tgid_cnt; i++)
		if (check_target(opts->tgids[i], caps.best, &probes, cache))
			status = OPTS_EXIT_FAILED;
	if (!status && opts->tgid_cnt && probes_check_hints(&probes))
		status = OPTS_EXIT_FAILED;
	return status;
}
