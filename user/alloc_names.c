// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the name of a symbol. Out: which function of an allocator it is. Must not know files or
 * addresses.
 *
 * Names of operator new and delete are mangled as the Itanium C++ ABI says. libstdc++ defines them,
 * too, upon malloc, but not in the file that malloc is in. Where an operator new has the address of
 * malloc it is malloc: that cannot throw.
 */
#include "alloc_names.h"

#include "cleanup.h"
#include "vec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/*
 * What allocators put before the names of their functions: jemalloc, by itself and in Rust programs
 * of two ages; tcmalloc; mimalloc. A plain name is the better one.
 */
static const char *const known_prefixes[] = {"", "je_", "_rjem_", "_rjem_je_", "tc_", "mi_"};

/* By meaning; see struct alloc_name for the order and the fallbacks. */
static const struct name {
	const char *name;
	enum hb_fn fn;
	/*
	 * NULL: none. glibc's __libc_ names are what an interposed malloc builds upon, and it
	 * counts itself.
	 */
	const char *fallback;
	bool only_prefixed; /* means nothing of the kind by itself */
} names[] = {
	{"malloc", HB_FN_MALLOC, NULL, false},
	{"calloc", HB_FN_CALLOC, "__libc_calloc", false},
	{"realloc", HB_FN_REALLOC, "__libc_realloc", false},
	{"reallocarray", HB_FN_REALLOCARRAY, "__libc_reallocarray", false},
	{"posix_memalign", HB_FN_POSIX_MEMALIGN, "__posix_memalign", false},
	{"memalign", HB_FN_MEMALIGN, "__libc_memalign", false},
	{"aligned_alloc", HB_FN_MEMALIGN, NULL, false},
	{"valloc", HB_FN_VALLOC, "__libc_valloc", false},
	{"pvalloc", HB_FN_VALLOC, "__libc_pvalloc", false},
	{"free", HB_FN_FREE, NULL, false},
	{"cfree", HB_FN_FREE, NULL, false},
	{"free_sized", HB_FN_FREE, NULL, false},
	{"free_aligned_sized", HB_FN_FREE, NULL, false},
	/*
	 * jemalloc's own: (size, flags), (ptr, size, flags), (ptr, ...). Not xallocx, which resizes
	 * in place: the object goes on to count with the size that it was made with. nallocx makes
	 * nothing.
	 */
	{"mallocx", HB_FN_MALLOC, NULL, false},
	{"rallocx", HB_FN_REALLOC, NULL, false},
	{"dallocx", HB_FN_FREE, NULL, false},
	{"sdallocx", HB_FN_FREE, NULL, false},
	{"reallocf", HB_FN_REALLOCF, NULL, false},
	/* operator new, operator new[]: plain, nothrow, aligned, aligned and nothrow */
	{"_Znwm", HB_FN_NEW, NULL, false},
	{"_Znam", HB_FN_NEW, NULL, false},
	{"_ZnwmRKSt9nothrow_t", HB_FN_NEW, NULL, false},
	{"_ZnamRKSt9nothrow_t", HB_FN_NEW, NULL, false},
	{"_ZnwmSt11align_val_t", HB_FN_NEW, NULL, false},
	{"_ZnamSt11align_val_t", HB_FN_NEW, NULL, false},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", HB_FN_NEW, NULL, false},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", HB_FN_NEW, NULL, false},
	/* operator delete, operator delete[]: the same, and sized */
	{"_ZdlPv", HB_FN_FREE, NULL, false},
	{"_ZdaPv", HB_FN_FREE, NULL, false},
	{"_ZdlPvm", HB_FN_FREE, NULL, false},
	{"_ZdaPvm", HB_FN_FREE, NULL, false},
	{"_ZdlPvRKSt9nothrow_t", HB_FN_FREE, NULL, false},
	{"_ZdaPvRKSt9nothrow_t", HB_FN_FREE, NULL, false},
	{"_ZdlPvSt11align_val_t", HB_FN_FREE, NULL, false},
	{"_ZdaPvSt11align_val_t", HB_FN_FREE, NULL, false},
	{"_ZdlPvmSt11align_val_t", HB_FN_FREE, NULL, false},
	{"_ZdaPvmSt11align_val_t", HB_FN_FREE, NULL, false},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", HB_FN_FREE, NULL, false},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", HB_FN_FREE, NULL, false},
	/*
	 * mimalloc's own, and operator new and delete of mimalloc and tcmalloc as C functions. Not
	 * mi_new_realloc, mi_reallocarr and the like, which call others of these; mi_expand, which
	 * resizes in place; mi_heap_*: whole heaps end at once; mi_strdup and so on, upon those.
	 */
	{"zalloc", HB_FN_MALLOC, NULL, true},
	{"malloc_small", HB_FN_MALLOC, NULL, true},
	{"zalloc_small", HB_FN_MALLOC, NULL, true},
	{"malloc_aligned", HB_FN_MALLOC, NULL, true},
	{"malloc_aligned_at", HB_FN_MALLOC, NULL, true},
	{"zalloc_aligned", HB_FN_MALLOC, NULL, true},
	{"zalloc_aligned_at", HB_FN_MALLOC, NULL, true},
	{"malloc_skip_new_handler", HB_FN_MALLOC, NULL, true},
	{"mallocn", HB_FN_CALLOC, NULL, true},
	{"calloc_aligned", HB_FN_CALLOC, NULL, true},
	{"calloc_aligned_at", HB_FN_CALLOC, NULL, true},
	{"rezalloc", HB_FN_REALLOC, NULL, true},
	{"realloc_aligned", HB_FN_REALLOC, NULL, true},
	{"realloc_aligned_at", HB_FN_REALLOC, NULL, true},
	{"rezalloc_aligned", HB_FN_REALLOC, NULL, true},
	{"rezalloc_aligned_at", HB_FN_REALLOC, NULL, true},
	{"reallocn", HB_FN_REALLOCARRAY, NULL, true},
	{"recalloc", HB_FN_REALLOCARRAY, NULL, true},
	{"recalloc_aligned", HB_FN_REALLOCARRAY, NULL, true},
	{"recalloc_aligned_at", HB_FN_REALLOCARRAY, NULL, true},
	{"new", HB_FN_NEW, NULL, true},
	{"new_nothrow", HB_FN_NEW, NULL, true},
	{"new_aligned", HB_FN_NEW, NULL, true},
	{"new_aligned_nothrow", HB_FN_NEW, NULL, true},
	{"newarray", HB_FN_NEW, NULL, true},
	{"newarray_nothrow", HB_FN_NEW, NULL, true},
	{"newarray_aligned", HB_FN_NEW, NULL, true},
	{"newarray_aligned_nothrow", HB_FN_NEW, NULL, true},
	{"new_n", HB_FN_NEW_N, NULL, true},
	{"delete", HB_FN_FREE, NULL, true},
	{"delete_nothrow", HB_FN_FREE, NULL, true},
	{"delete_sized", HB_FN_FREE, NULL, true},
	{"delete_aligned", HB_FN_FREE, NULL, true},
	{"delete_sized_aligned", HB_FN_FREE, NULL, true},
	{"delete_aligned_nothrow", HB_FN_FREE, NULL, true},
	{"deletearray", HB_FN_FREE, NULL, true},
	{"deletearray_nothrow", HB_FN_FREE, NULL, true},
	{"deletearray_sized", HB_FN_FREE, NULL, true},
	{"deletearray_aligned", HB_FN_FREE, NULL, true},
	{"deletearray_sized_aligned", HB_FN_FREE, NULL, true},
	{"deletearray_aligned_nothrow", HB_FN_FREE, NULL, true},
	{"free_size", HB_FN_FREE, NULL, true},
	{"free_size_aligned", HB_FN_FREE, NULL, true},
	{"free_aligned", HB_FN_FREE, NULL, true},
	/* glibc calls it at both ends of dlopen and dlclose; musl at the end of dlopen. */
	{"_dl_debug_state", HB_FN_LINKER, NULL, false},
};
_Static_assert(HB_FN_CNT == 12, "a new function needs names here");

/* The row of a name without its prefix, -1: none. `prefixed`: it had one. */
static int find_name(const char *symbol, bool prefixed, bool *fallback)
{
	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		*fallback = !prefixed && names[i].fallback && !strcmp(names[i].fallback, symbol);
		if (*fallback ||
		    (!strcmp(names[i].name, symbol) &&
		     (prefixed ? names[i].fn != HB_FN_LINKER : !names[i].only_prefixed)))
			return (int)i;
	}
	return -1;
}

/* Looks up a name that must have the prefix number `number`. */
static bool find_with(const char *symbol, const char *prefix, unsigned number,
		      struct alloc_name *out)
{
	size_t len = strlen(prefix);
	bool fallback;
	int row;

	if (strncmp(symbol, prefix, len) != 0)
		return false;
	row = find_name(symbol + len, number > 0, &fallback);
	if (row < 0)
		return false;
	*out = (struct alloc_name){
		.fn = names[row].fn,
		.rank = number * (unsigned)ARRAY_CNT(names) + (unsigned)row,
		.fallback = fallback,
		.prefix = number,
		.asked_for = number >= ARRAY_CNT(known_prefixes),
		.is_malloc = !fallback && !strcmp(names[row].name, "malloc"),
		.is_free = !fallback && !strcmp(names[row].name, "free"),
	};
	return true;
}

bool alloc_names_find(const char *symbol, const struct alloc_prefixes *prefixes,
		      struct alloc_name *out)
{
	unsigned number = 0;

	for (size_t i = 0; i < ARRAY_CNT(known_prefixes); i++)
		if (find_with(symbol, known_prefixes[i], number++, out))
			return true;
	for (size_t i = 0; prefixes && i < prefixes->cnt; i++)
		if (find_with(symbol, prefixes->names[i], number++, out))
			return true;
	return false;
}

int alloc_names_fn(const char *symbol)
{
	static const char glibc[] = "__libc_";
	struct alloc_name name;

	if (alloc_names_find(symbol, NULL, &name))
		return (int)name.fn;
	if (strncmp(symbol, glibc, strlen(glibc)) != 0)
		return -1;
	return find_with(symbol + strlen(glibc), "", 0, &name) ? (int)name.fn : -1;
}

/* Can it be a part of a C name? */
static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != '_' && !isalnum((unsigned char)text[i]))
			return false;
	return len > 0;
}

int alloc_prefixes_add(struct alloc_prefixes *prefixes, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ",");

		if (!is_name(text, len))
			return -EINVAL;
		if (prefixes->cnt + ARRAY_CNT(known_prefixes) == ALLOC_PREFIX_MAX)
			return -E2BIG;
		if (vec_reserve(&prefixes->names, &prefixes->cap, prefixes->cnt + 1))
			return -ENOMEM;
		prefixes->names[prefixes->cnt] = strndup(text, len);
		if (!prefixes->names[prefixes->cnt])
			return -ENOMEM;
		prefixes->cnt++;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

void alloc_prefixes_clear(struct alloc_prefixes *prefixes)
{
	for (size_t i = 0; i < prefixes->cnt; i++)
		free(prefixes->names[i]);
	free(prefixes->names);
	*prefixes = (struct alloc_prefixes){};
}

/*
 * pprof anchors the expression itself, ^(...)$, and matches it against the function name without
 * its arguments (profile/prune.go); other readers match the whole name, so arguments are optional
 * here. Mangled names are those of operator new and delete, for readers that do not demangle.
 */
const char *alloc_names_drop_frames(void)
{
	return "(__libc_|__GI_|__GI___libc_|__|__interceptor_|je_|_rjem_|_rjem_je_|tc_|mi_)?"
	       "(malloc|calloc|realloc|reallocf|reallocarray|free|cfree|posix_memalign|memalign|"
	       "aligned_alloc|valloc|pvalloc|free_sized|free_aligned_sized|"
	       "mallocx|rallocx|dallocx|sdallocx)|"
	       "(mi|tc)_(new|newarray|delete|deletearray)(_(n|nothrow|aligned|sized))*|"
	       "(mi|tc)_(malloc|calloc|zalloc|realloc|rezalloc|recalloc|free)"
	       "(n|_small|_aligned|_at|_size|_skip_new_handler)*|"
	       "_mid_memalign|"
	       "operator (new|delete)(\\[\\])?(\\(.*\\))?|"
	       "_Zn[wa]m.*|_Zd[la]Pv.*";
}
