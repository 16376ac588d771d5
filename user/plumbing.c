// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a function's names, or a file's path. Out: is it the standard library's. Goes by names alone,
 * since templates and generic functions are compiled into the programs that use them.
 */
#include "plumbing.h"

#include "cleanup.h"
#include "demangle.h"
#include "symbolize.h"

#include <stddef.h>
#include <string.h>

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool has_any(const char *text, const char *const *prefixes, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (has_prefix(text, prefixes[i]))
			return true;
	return false;
}

static bool is_rust_path(const char *path)
{
	static const char *const crates[] = {"alloc::", "core::", "std::"};

	return has_any(path, crates, ARRAY_CNT(crates));
}

/*
 * "alloc::vec::Vec<T>::push", "<alloc::vec::Vec<T> as app::Trait>::f"; also "<T as
 * core::Trait>::f": only the crate of a trait may implement it for any type, or for one that is
 * built in.
 */
static bool is_rust_plumbing(const char *name)
{
	const char *trait;

	if (name[0] != '<')
		return is_rust_path(name);
	if (is_rust_path(name + 1))
		return true;
	trait = strstr(name, " as ");
	return trait && !memmem(name, (size_t)(trait - name), "::", 2) &&
	       is_rust_path(trait + strlen(" as "));
}

bool plumbing_is_function(const struct symbolize_frame *frame)
{
	static const char *const namespaces[] = {"std::", "__gnu_cxx::", "__cxxabiv1::", "__cxa_"};

	/* In C++ "core" and "alloc" are names like any other. */
	return demangle_is_rust(frame->system_name)
		       ? is_rust_plumbing(frame->name)
		       : has_any(frame->name, namespaces, ARRAY_CNT(namespaces));
}

bool plumbing_is_file(const char *path)
{
	static const char *const names[] = {"libstdc++.so", "libc++.so", "libc++abi.so"};
	const char *slash = strrchr(path, '/');

	return has_any(slash ? slash + 1 : path, names, ARRAY_CNT(names));
}
