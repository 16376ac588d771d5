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

#include <string.h>

/* By meaning; see struct alloc_name for the order and the fallbacks. */
static const struct name {
	const char *name;
	enum hb_fn fn;
	/*
	 * NULL: none. glibc's __libc_ names are what an interposed malloc builds upon, and it
	 * counts itself.
	 */
	const char *fallback;
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
	/*
	 * jemalloc's own: (size, flags), (ptr, size, flags), (ptr, ...). Not xallocx, which resizes
	 * in place: the object goes on to count with the size that it was made with. nallocx makes
	 * nothing.
	 */
	{"mallocx", HB_FN_MALLOC, NULL},
	{"rallocx", HB_FN_REALLOC, NULL},
	{"dallocx", HB_FN_FREE, NULL},
	{"sdallocx", HB_FN_FREE, NULL},
	/* operator new, operator new[]: plain, nothrow, aligned, aligned and nothrow */
	{"_Znwm", HB_FN_NEW, NULL},
	{"_Znam", HB_FN_NEW, NULL},
	{"_ZnwmRKSt9nothrow_t", HB_FN_NEW, NULL},
	{"_ZnamRKSt9nothrow_t", HB_FN_NEW, NULL},
	{"_ZnwmSt11align_val_t", HB_FN_NEW, NULL},
	{"_ZnamSt11align_val_t", HB_FN_NEW, NULL},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", HB_FN_NEW, NULL},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", HB_FN_NEW, NULL},
	/* operator delete, operator delete[]: the same, and sized */
	{"_ZdlPv", HB_FN_FREE, NULL},
	{"_ZdaPv", HB_FN_FREE, NULL},
	{"_ZdlPvm", HB_FN_FREE, NULL},
	{"_ZdaPvm", HB_FN_FREE, NULL},
	{"_ZdlPvRKSt9nothrow_t", HB_FN_FREE, NULL},
	{"_ZdaPvRKSt9nothrow_t", HB_FN_FREE, NULL},
	{"_ZdlPvSt11align_val_t", HB_FN_FREE, NULL},
	{"_ZdaPvSt11align_val_t", HB_FN_FREE, NULL},
	{"_ZdlPvmSt11align_val_t", HB_FN_FREE, NULL},
	{"_ZdaPvmSt11align_val_t", HB_FN_FREE, NULL},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", HB_FN_FREE, NULL},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", HB_FN_FREE, NULL},
	/* glibc calls it at the beginning and end of dlopen and dlclose; musl at the end of dlopen.
	 */
	{"_dl_debug_state", HB_FN_LINKER, NULL},
};
_Static_assert(HB_FN_CNT == 10, "a new function needs names here");

bool alloc_names_find(const char *symbol, struct alloc_name *out)
{
	for (unsigned i = 0; i < ARRAY_CNT(names); i++) {
		bool real = !strcmp(names[i].name, symbol);

		if (!real && (!names[i].fallback || strcmp(names[i].fallback, symbol)))
			continue;
		*out = (struct alloc_name){
			.fn = names[i].fn,
			.rank = i,
			.fallback = !real,
			.is_malloc = real && !strcmp(names[i].name, "malloc"),
			.is_free = real && !strcmp(names[i].name, "free"),
		};
		return true;
	}
	return false;
}

int alloc_names_fn(const char *symbol)
{
	struct alloc_name name;

	return alloc_names_find(symbol, &name) ? (int)name.fn : -1;
}

/*
 * pprof anchors the expression itself, ^(...)$, and matches it against the function name without
 * its arguments (profile/prune.go); other readers match the whole name, so arguments are optional
 * here. Mangled names are those of operator new and delete, for readers that do not demangle.
 */
const char *alloc_names_drop_frames(void)
{
	return "(__libc_|__GI_|__GI___libc_|__|__interceptor_|je_|tc_|mi_)?"
	       "(malloc|calloc|realloc|reallocarray|free|cfree|posix_memalign|memalign|"
	       "aligned_alloc|valloc|pvalloc|free_sized|free_aligned_sized|"
	       "mallocx|rallocx|dallocx|sdallocx)|"
	       "_mid_memalign|"
	       "operator (new|delete)(\\[\\])?(\\(.*\\))?|"
	       "_Zn[wa]m.*|_Zd[la]Pv.*";
}
