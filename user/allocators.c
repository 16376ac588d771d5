// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: an ELF file. Out: the entry points of the malloc family that it defines, each with what the
 * probes must know about who is nested in whom. Names say what a function means, its code (read by
 * tail_calls) says whether it hands over to another one. Must not know where probes go.
 *
 * A call of the program counts once. Entry points that *call* each other are told apart at run
 * time, by return addresses inside the allocator. One that *jumps* to another leaves the program's
 * return address, so both would count. Which of them does, is settled here:
 *
 *   always jumps      the target counts, the first is silent: reallocarray -> realloc (glibc,
 * musl), valloc -> memalign -> aligned_alloc (musl), free_sized -> free realloc -> malloc only for
 * NULL, in every known allocator: HB_COOKIE_DEFER_NULL memalign -> malloc only for alignments that
 * malloc has anyway (glibc's _mid_memalign; 16 on x86-64): HB_COOKIE_DEFER_ALIGN valloc -> malloc
 * glibc shares _mid_memalign, but a page is never such an alignment: nothing anything else nothing:
 * an unknown conditional jump would be counted twice when taken, which is better than losing the
 * calls that do not take it
 */
#include "allocators.h"

#include "cleanup.h"
#include "elf_file.h"
#include "tail_calls.h"
#include "vec.h"

#include <errno.h>
#include <string.h>

/*
 * The names by meaning. Of a name and its fallback the fallback counts only where the name is not
 * defined: glibc's __libc_ names are what an interposed malloc builds upon, and it counts itself.
 */
static const struct name {
	const char *name;
	enum hb_fn fn;
	const char *fallback; /* NULL: none */
} names[] = {
	{"malloc", HB_FN_MALLOC, NULL},
	{"calloc", HB_FN_CALLOC, "__libc_calloc"},
	{"realloc", HB_FN_REALLOC, "__libc_realloc"},
	{"reallocarray", HB_FN_REALLOCARRAY, "__libc_reallocarray"},
	{"posix_memalign", HB_FN_POSIX_MEMALIGN, "__posix_memalign"},
	{"memalign", HB_FN_MEMALIGN, "__libc_memalign"},
	{"aligned_alloc", HB_FN_MEMALIGN, NULL},
	{"valloc", HB_FN_VALLOC, "__libc_valloc"},
	{"pvalloc", HB_FN_VALLOC, "__libc_pvalloc"},
	{"free", HB_FN_FREE, NULL},
	{"cfree", HB_FN_FREE, NULL},
	{"free_sized", HB_FN_FREE, NULL},
	{"free_aligned_sized", HB_FN_FREE, NULL},
	/* glibc calls it at the beginning and end of dlopen and dlclose; musl at the end of dlopen.
	 */
	{"_dl_debug_state", HB_FN_LINKER, NULL},
};
_Static_assert(ARRAY_CNT(names) <= HB_WRAPPER_MAX, "an address per name fits");
_Static_assert(HB_FN_CNT == 9, "a new function needs names here");

/* Indices of what makes a file an allocator. */
#define NAME_MALLOC 0
#define NAME_FREE   9

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

/* Where a name was found; vma 0: nowhere. */
struct place {
	uint64_t vma, size_bytes;
	bool fallback;
};

struct search {
	const struct elf_file *file;
	struct place places[ARRAY_CNT(names)];
};

static int name_fn(const char *name)
{
	for (size_t i = 0; i < ARRAY_CNT(names); i++)
		if (!strcmp(names[i].name, name) ||
		    (names[i].fallback && !strcmp(names[i].fallback, name)))
			return (int)names[i].fn;
	return -1;
}

/* Notes an entry point; the first address of a name wins, a real name over a fallback. */
static int note_symbol(const struct elf_symbol *symbol, void *data)
{
	struct search *search = data;

	/* An ifunc's address is its resolver's; which function it picks the file does not say. */
	if (symbol->ifunc || !elf_file_text_room(search->file, symbol->vma))
		return 0;
	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		struct place *place = &search->places[i];
		bool real = !strcmp(names[i].name, symbol->name);

		if (!real && (!names[i].fallback || strcmp(names[i].fallback, symbol->name)))
			continue;
		if (!place->vma || (real && place->fallback))
			*place = (struct place){symbol->vma, symbol->size_bytes, !real};
		return 0;
	}
	return 0;
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

/* One entry per address; the first name in the table gives the meaning. */
static void collect(const struct search *search, struct allocators_set *set)
{
	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		const struct place *place = &search->places[i];
		struct allocators_fn *fn = &set->fns[set->cnt];

		if (names[i].fn != HB_FN_LINKER && !set->is_allocator)
			continue;
		if (!place->vma || find_fn(set, place->vma) ||
		    !elf_file_vma_to_off(search->file, place->vma, &fn->off))
			continue;
		fn->fn = names[i].fn;
		fn->name = place->fallback ? names[i].fallback : names[i].name;
		fn->vma = place->vma;
		fn->size_bytes = place->size_bytes;
		set->cnt++;
	}
}

/* Sizes that symbols do not tell, or that reach beyond the text. */
static void settle_size(const struct elf_file *file, const struct tail_calls *calls,
			struct allocators_fn *fn)
{
	uint64_t room = elf_file_text_room(file, fn->vma);

	if (!fn->size_bytes)
		fn->size_bytes = tail_calls_limit(calls, fn->vma) - fn->vma;
	if (fn->size_bytes > room)
		fn->size_bytes = room;
}

static enum hb_fn lowest_fn(uint32_t mask)
{
	return (enum hb_fn)__builtin_ctz(mask);
}

/* The rule of the table at the top of the file. */
static void settle_nesting(struct allocators_fn *fn, const struct tail_calls_result *found)
{
	if (found->always && !found->calls)
		fn->silent = jumps_to[lowest_fn(found->jumps)];
	else if (fn->fn == HB_FN_REALLOC && found->jumps & 1 << HB_FN_MALLOC)
		fn->flags |= HB_COOKIE_DEFER_NULL;
	else if (fn->fn == HB_FN_MEMALIGN && found->jumps & 1 << HB_FN_MALLOC)
		fn->flags |= HB_COOKIE_DEFER_ALIGN;
}

/* Pieces of `fn` outside of it that call entry points (musl's realloc; compilers' cold parts). */
static void add_helpers(const struct elf_file *file, const struct allocators_fn *fn,
			const struct tail_calls_result *found, struct allocators_set *set)
{
	for (size_t i = 0; i < found->helper_cnt && set->cnt < HB_WRAPPER_MAX; i++) {
		struct allocators_fn *part = &set->fns[set->cnt];

		if (find_fn(set, found->helpers[i].vma) ||
		    !elf_file_vma_to_off(file, found->helpers[i].vma, &part->off))
			continue;
		part->fn = fn->fn;
		part->name = fn->name;
		part->vma = found->helpers[i].vma;
		part->size_bytes = found->helpers[i].size_bytes;
		part->silent = part_of[fn->fn];
		set->cnt++;
	}
}

DEFINE_CLEANUP(tail_calls, struct tail_calls, tail_calls_free)

/* Looks at the code of all entry points. 0 or -ENOMEM. */
static int read_code(const struct elf_file *file, struct allocators_set *set)
{
	_cleanup_(cleanup_tail_calls) struct tail_calls *calls = NULL;
	struct tail_calls_entry entries[ARRAY_CNT(names)];
	size_t entry_cnt = set->cnt;
	int ret;

	for (size_t i = 0; i < entry_cnt; i++)
		entries[i] = (struct tail_calls_entry){set->fns[i].vma, set->fns[i].fn};
	ret = tail_calls_new(file, entries, entry_cnt, name_fn, &calls);
	for (size_t i = 0; i < entry_cnt && !ret; i++) {
		struct tail_calls_result found;

		settle_size(file, calls, &set->fns[i]);
		ret = tail_calls_scan(calls, &entries[i], &found);
		if (ret)
			break;
		settle_nesting(&set->fns[i], &found);
		add_helpers(file, &set->fns[i], &found, set);
	}
	return ret;
}

static int compare_fns(const void *a, const void *b)
{
	const struct allocators_fn *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

DEFINE_CLEANUP(set, struct allocators_set, allocators_clear)

int allocators_find(const struct elf_file *file, struct allocators_set *out)
{
	struct search search = {.file = file};
	struct allocators_set set = {};
	_cleanup_(cleanup_set) struct allocators_set *owned = &set;
	int ret;

	ret = elf_file_each_function(file, note_symbol, &search);
	if (ret)
		return ret;
	set.is_allocator = search.places[NAME_MALLOC].vma && search.places[NAME_FREE].vma &&
			   !is_dynamic_linker(file);
	set.fns = calloc(HB_WRAPPER_MAX, sizeof(*set.fns));
	if (!set.fns)
		return -ENOMEM;
	collect(&search, &set);
	if (!set.cnt)
		return -ENOENT;
	ret = read_code(file, &set);
	if (ret)
		return ret;
	qsort(set.fns, set.cnt, sizeof(*set.fns), compare_fns);
	*out = *take_ptr(owned);
	return 0;
}

void allocators_clear(struct allocators_set *set)
{
	if (!set)
		return;
	free(set->fns);
	*set = (struct allocators_set){};
}

/*
 * pprof anchors the expression itself, ^(...)$, and matches it against the function name without
 * its arguments (profile/prune.go); other readers match the whole name, so arguments are optional
 * here. Mangled names are those of operator new and delete, for readers that do not demangle.
 */
const char *allocators_drop_frames(void)
{
	return "(__libc_|__GI_|__GI___libc_|__|__interceptor_|je_|tc_|mi_)?"
	       "(malloc|calloc|realloc|reallocarray|free|cfree|posix_memalign|memalign|"
	       "aligned_alloc|valloc|pvalloc|free_sized|free_aligned_sized)|"
	       "_mid_memalign|"
	       "operator (new|delete)(\\[\\])?(\\(.*\\))?|"
	       "_Zn[wa]m.*|_Zd[la]Pv.*";
}
