// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: an ELF file. Out: the entry points of the malloc family that it defines, each with what the
 * probes must know about who is nested in whom. Names say what a function means, its code (read by
 * tail_calls) says whether it hands over to another one and, for what may throw, where it returns.
 * Must not know where probes go.
 *
 * A call of the program counts once. Entry points that *call* each other are told apart at run
 * time, by return addresses inside the allocator. One that *jumps* to another leaves the program's
 * return address, so both would count. Which of them does, is settled here:
 *
 *   always jumps        the target counts, the first is silent: reallocarray -> realloc (glibc,
 *                       musl), valloc -> memalign -> aligned_alloc (musl), free_sized -> free
 *   realloc -> malloc   only for NULL, in every known allocator: HB_COOKIE_DEFER_NULL
 *   memalign -> malloc  only for alignments that malloc has anyway (glibc's _mid_memalign; 16 on
 *                       x86-64): HB_COOKIE_DEFER_ALIGN
 *   valloc -> malloc    glibc shares _mid_memalign, but a page is never such an alignment: nothing
 *   to a variable       only known at run time: HB_COOKIE_FORWARDS, if all ways do it that succeed
 *                       while it is not NULL (malloc of a library for LD_PRELOAD)
 *   anything else       nothing: an unknown conditional jump would be counted twice when taken,
 *                       which is better than losing the calls that do not take it
 *
 * An operator new that calls another entry point for all of its memory (libstdc++'s in a static
 * program; jemalloc's aligned forms) is left to that one: a return probe there costs less than what
 * an operator new needs. So is a function with a prefix that does so in another file: a program's
 * own mi_malloc upon malloc, which only looks like mimalloc's.
 */
#include "allocators.h"

#include "alloc_names.h"
#include "cleanup.h"
#include "elf_file.h"
#include "tail_calls.h"
#include "vec.h"

#include <errno.h>
#include <string.h>

/* How entries hand over to each other, for people. */
static const char *const jumps_to[] = {
#define JUMPS_TO(id, text) [HB_FN_##id] = "jumps to " text,
	HB_FN_LIST(JUMPS_TO)
#undef JUMPS_TO
};

static const char *const part_of[] = {
#define PART_OF(id, text) [HB_FN_##id] = "is part of " text,
	HB_FN_LIST(PART_OF)
#undef PART_OF
};

/* A symbol of the file that an allocator might have. */
struct candidate {
	struct alloc_name name;
	const char *symbol; /* lives as long as the file */
	uint64_t vma, size_bytes;
	size_t order; /* of symbols in the file */
};

struct search {
	const struct elf_file *file;
	const struct allocators_request *request;
	struct candidate *candidates; /* owned */
	size_t cnt, cap;
	uint64_t have_malloc, have_free; /* masks of prefixes */
};

static int note_symbol(const struct elf_symbol *symbol, void *data)
{
	struct search *search = data;
	struct alloc_name name;
	int ret;

	/* An ifunc's address is its resolver's; which function it picks the file does not say. */
	if (symbol->ifunc || !alloc_names_find(symbol->name, search->request->prefixes, &name) ||
	    !elf_file_text_room(search->file, symbol->vma))
		return 0;
	ret = vec_reserve(&search->candidates, &search->cap, search->cnt + 1);
	if (ret)
		return ret;
	search->candidates[search->cnt] = (struct candidate){name, symbol->name, symbol->vma,
							     symbol->size_bytes, search->cnt};
	search->cnt++;
	search->have_malloc |= (uint64_t)name.is_malloc << name.prefix;
	search->have_free |= (uint64_t)name.is_free << name.prefix;
	return 0;
}

/* By rank; a name before its fallback; the first address of a name wins. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->name.rank != y->name.rank)
		return x->name.rank > y->name.rank ? 1 : -1;
	if (x->name.fallback != y->name.fallback)
		return x->name.fallback ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

/* The dynamic linker has a malloc for itself, exported before glibc 2.34; nobody else calls it. */
static bool is_dynamic_linker(const struct elf_file *file)
{
	const char *soname = elf_file_soname(file);

	return soname && !strncmp(soname, "ld-linux", strlen("ld-linux"));
}

static struct allocators_fn *find_fn(const struct allocators_set *set, uint64_t vma)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (set->fns[i].vma == vma)
			return &set->fns[i];
	return NULL;
}

/* Does the name of a candidate say what it is, in this file? */
static bool is_meant(const struct search *search, const struct alloc_name *name)
{
	uint64_t whole = search->have_malloc & search->have_free;

	if (name->fn == HB_FN_LINKER)
		return true;
	switch (search->request->names) {
	case ALLOCATORS_NAMES_ANY:
		return true;
	case ALLOCATORS_NAMES_WHOLE:
		/* tc_new of a program without tc_malloc is a function like any other. */
		return whole && !is_dynamic_linker(search->file) &&
		       (!name->prefix || name->asked_for || whole & 1ULL << name->prefix);
	case ALLOCATORS_NAMES_NONE:
	case ALLOCATORS_NAMES_CNT:
		break;
	}
	return false;
}

/* What was asked for comes first, so that it wins over names. */
static void take_points(const struct search *search, struct allocators_set *set)
{
	for (size_t i = 0; i < search->request->point_cnt && set->cnt < ALLOCATORS_FN_MAX; i++) {
		const struct allocators_point *point = &search->request->points[i];
		struct allocators_fn *fn = &set->fns[set->cnt];

		if (!elf_file_vma_to_off(search->file, point->vma, &fn->off))
			continue;
		fn->fn = point->fn;
		fn->name = point->name;
		fn->vma = point->vma;
		fn->size_bytes = point->size_bytes;
		fn->asked_for = true;
		set->cnt++;
	}
}

/* One entry per name and address; the first name gives the meaning. */
static void collect(struct search *search, struct allocators_set *set)
{
	if (search->cnt)
		qsort(search->candidates, search->cnt, sizeof(*search->candidates),
		      compare_candidates);
	for (size_t i = 0; i < search->cnt && set->cnt < ALLOCATORS_FN_MAX; i++) {
		const struct candidate *it = &search->candidates[i];
		struct allocators_fn *fn = &set->fns[set->cnt];

		if (i && it[-1].name.rank == it->name.rank)
			continue;
		if (!is_meant(search, &it->name))
			continue;
		if (find_fn(set, it->vma) || !elf_file_vma_to_off(search->file, it->vma, &fn->off))
			continue;
		fn->fn = it->name.fn;
		fn->name = it->symbol;
		fn->vma = it->vma;
		fn->size_bytes = it->size_bytes;
		fn->prefixed = it->name.prefix > 0;
		set->cnt++;
	}
}

/* Sizes that symbols do not tell, or that reach beyond the text. */
static void settle_size(const struct elf_file *file, const struct code_map *map,
			struct allocators_fn *fn)
{
	uint64_t room = elf_file_text_room(file, fn->vma);

	if (!fn->size_bytes)
		fn->size_bytes = code_map_limit(map, fn->vma) - fn->vma;
	if (fn->size_bytes > room)
		fn->size_bytes = room;
}

static enum hb_fn lowest_fn(uint32_t mask)
{
	return (enum hb_fn)__builtin_ctz(mask);
}

static bool may_throw(enum hb_fn fn)
{
	return fn == HB_FN_NEW || fn == HB_FN_NEW_N;
}

/* The rule of the table at the top of the file. */
static void settle_nesting(struct allocators_fn *fn, const struct tail_calls_result *found)
{
	bool throws = may_throw(fn->fn);

	fn->holds_calls = true;
	if (found->always && (throws || !found->calls)) {
		fn->silent = jumps_to[lowest_fn(found->jumps)];
		fn->holds_calls = found->calls;
	} else if (found->hands_over && (throws || (fn->prefixed && found->calls_out))) {
		fn->silent = "calls one that is";
		fn->holds_calls = false;
	} else if ((fn->fn == HB_FN_REALLOC || fn->fn == HB_FN_REALLOCF) &&
		   found->jumps & 1 << HB_FN_MALLOC) {
		fn->flags |= HB_COOKIE_DEFER_NULL;
	} else if (fn->fn == HB_FN_MEMALIGN && found->jumps & 1 << HB_FN_MALLOC) {
		fn->flags |= HB_COOKIE_DEFER_ALIGN;
	}
	if (fn->silent || found->forward.how == KNOWN_NOTHING)
		return;
	fn->flags |= HB_COOKIE_FORWARDS;
	fn->forward = found->forward;
}

/* Notes the return at `vma`, unless it is there: functions share code. 0 or -ENOMEM. */
static int add_ret(const struct elf_file *file, struct allocators_set *set, uint64_t vma)
{
	struct allocators_ret ret = {.vma = vma};
	int err;

	if (!elf_file_vma_to_off(file, vma, &ret.off))
		return 0;
	for (size_t i = 0; i < set->ret_cnt; i++)
		if (set->rets[i].vma == vma)
			return 0;
	err = vec_reserve(&set->rets, &set->ret_cap, set->ret_cnt + 1);
	if (!err)
		set->rets[set->ret_cnt++] = ret;
	return err;
}

/* How the result of what may throw is seen, if at all. 0 or -ENOMEM. */
static int settle_result(const struct elf_file *file, struct allocators_set *set,
			 struct allocators_fn *fn, const struct tail_calls_result *found)
{
	if (!may_throw(fn->fn) || fn->silent)
		return 0;
	fn->flags |= found->followed ? HB_COOKIE_AT_RETS : HB_COOKIE_NO_RESULT;
	for (size_t i = 0; i < found->ret_cnt && found->followed; i++) {
		int err = add_ret(file, set, found->rets[i]);

		if (err)
			return err;
	}
	return 0;
}

/* Pieces of `fn` outside of it that call entry points (musl's realloc; compilers' cold parts). */
static void add_helpers(const struct elf_file *file, const struct allocators_fn *fn,
			const struct tail_calls_result *found, struct allocators_set *set)
{
	if (!fn->holds_calls)
		return;
	for (size_t i = 0; i < found->helper_cnt && set->cnt < ALLOCATORS_FN_MAX; i++) {
		struct allocators_fn *part = &set->fns[set->cnt];

		if (find_fn(set, found->helpers[i].vma) ||
		    !elf_file_vma_to_off(file, found->helpers[i].vma, &part->off))
			continue;
		part->fn = fn->fn;
		part->name = fn->name;
		part->vma = found->helpers[i].vma;
		part->size_bytes = found->helpers[i].size_bytes;
		part->silent = part_of[fn->fn];
		part->holds_calls = true;
		set->cnt++;
	}
}

DEFINE_CLEANUP(code_map, struct code_map, code_map_free)

/* Where names do not count elsewhere, nobody else counts what is handed over to them. */
static int no_name_fn(const char *name)
{
	(void)name;
	return -1;
}

/* Looks at the code of all entry points. 0 or -ENOMEM. */
static int read_code(const struct search *search, struct allocators_set *set)
{
	const struct elf_file *file = search->file;
	_cleanup_(cleanup_code_map) struct code_map *map = NULL;
	struct code_map_entry entries[ALLOCATORS_FN_MAX] = {};
	size_t entry_cnt = set->cnt;
	int ret;

	for (size_t i = 0; i < entry_cnt; i++)
		entries[i] = (struct code_map_entry){set->fns[i].vma, set->fns[i].fn};
	ret = code_map_new(file, entries, entry_cnt,
			   search->request->names == ALLOCATORS_NAMES_WHOLE ? alloc_names_fn
									    : no_name_fn,
			   &map);
	for (size_t i = 0; i < entry_cnt && !ret; i++) {
		struct tail_calls_result found;

		settle_size(file, map, &set->fns[i]);
		ret = tail_calls_scan(map, &entries[i], &found);
		if (ret)
			break;
		settle_nesting(&set->fns[i], &found);
		add_helpers(file, &set->fns[i], &found, set);
		ret = settle_result(file, set, &set->fns[i], &found);
	}
	return ret;
}

static int compare_fns(const void *a, const void *b)
{
	const struct allocators_fn *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

static int compare_rets(const void *a, const void *b)
{
	const struct allocators_ret *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

DEFINE_CLEANUP(set, struct allocators_set, allocators_clear)

int allocators_find(const struct elf_file *file, const struct allocators_request *request,
		    struct allocators_set *out)
{
	struct search search = {.file = file, .request = request};
	_cleanup_free_ struct candidate *candidates = NULL;
	struct allocators_set set = {};
	_cleanup_(cleanup_set) struct allocators_set *owned = &set;
	int ret;

	ret = elf_file_each_function(file, note_symbol, &search);
	candidates = search.candidates;
	if (ret)
		return ret;
	set.fns = calloc(ALLOCATORS_FN_MAX, sizeof(*set.fns));
	if (!set.fns)
		return -ENOMEM;
	take_points(&search, &set);
	collect(&search, &set);
	set.is_allocator = allocators_has(&set, false) || allocators_has(&set, true);
	if (!set.cnt)
		return -ENOENT;
	ret = read_code(&search, &set);
	if (ret)
		return ret;
	qsort(set.fns, set.cnt, sizeof(*set.fns), compare_fns);
	if (set.ret_cnt)
		qsort(set.rets, set.ret_cnt, sizeof(*set.rets), compare_rets);
	*out = *take_ptr(owned);
	return 0;
}

bool allocators_has(const struct allocators_set *set, bool frees)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (set->fns[i].fn != HB_FN_LINKER && (set->fns[i].fn == HB_FN_FREE) == frees)
			return true;
	return false;
}

void allocators_clear(struct allocators_set *set)
{
	if (!set)
		return;
	free(set->fns);
	free(set->rets);
	*set = (struct allocators_set){};
}
