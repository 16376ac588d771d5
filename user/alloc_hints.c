// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the values of --probe and --alloc-lib. Out: what they ask for, or one line that says what is
 * wrong. Must not know processes; whether there is such a file or symbol shows later.
 */
#include "alloc_hints.h"

#include "cleanup.h"
#include "log.h"
#include "vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a function may be said to be. */
static const struct {
	const char *name;
	enum hb_fn fn;
} functions[] = {
	{"malloc", HB_FN_MALLOC},
	{"calloc", HB_FN_CALLOC},
	{"realloc", HB_FN_REALLOC},
	{"reallocarray", HB_FN_REALLOCARRAY},
	{"posix_memalign", HB_FN_POSIX_MEMALIGN},
	{"memalign", HB_FN_MEMALIGN},
	{"aligned_alloc", HB_FN_MEMALIGN},
	{"valloc", HB_FN_VALLOC},
	{"pvalloc", HB_FN_VALLOC},
	{"new", HB_FN_NEW},
	{"free", HB_FN_FREE},
};

static void hint_clear(struct alloc_hint *hint)
{
	free(hint->text);
	free(hint->path);
	free(hint->place);
}

void alloc_hints_clear(struct alloc_hints *hints)
{
	for (size_t i = 0; i < hints->cnt; i++)
		hint_clear(&hints->hints[i]);
	free(hints->hints);
	alloc_prefixes_clear(&hints->prefixes);
	*hints = (struct alloc_hints){};
}

/* The function called `name` of `len` characters into *fn; false: there is none. */
static bool find_function(const char *name, size_t len, enum hb_fn *fn)
{
	for (size_t i = 0; i < ARRAY_CNT(functions); i++) {
		if (strlen(functions[i].name) != len || strncmp(functions[i].name, name, len) != 0)
			continue;
		*fn = functions[i].fn;
		return true;
	}
	return false;
}

/* `len` characters as an absolute path; NULL: no memory, or no working directory. Owned. */
static char *absolute(const char *path, size_t len)
{
	_cleanup_free_ char *here = NULL;
	char *whole = NULL;

	if (path[0] == '/')
		return strndup(path, len);
	here = getcwd(NULL, 0);
	if (!here || asprintf(&whole, "%s/%.*s", here, (int)len, path) < 0)
		return NULL;
	return whole;
}

/* Reads 0x... into hint->off; false: it is not that. */
static bool read_offset(struct alloc_hint *hint)
{
	char *end;

	errno = 0;
	hint->off = strtoull(hint->place, &end, 16);
	return !errno && !*end && hint->place[2] && hint->off <= UINT32_MAX;
}

/* Adds `hint`, which is empty after that. 0, or -errno after one logged line. */
static int add(struct alloc_hints *hints, struct alloc_hint *hint)
{
	if (!hint->text || !hint->path)
		return log_fail(errno ? errno : ENOMEM, "cannot remember a place to probe");
	if (hints->cnt == ALLOC_HINTS_MAX)
		return log_fail(0, "%s: there can be %d of --probe and --alloc-lib", hint->text,
				ALLOC_HINTS_MAX);
	if (vec_reserve(&hints->hints, &hints->cap, hints->cnt + 1))
		return log_fail(ENOMEM, "%s", hint->text);
	hints->hints[hints->cnt++] = *hint;
	hints->only_libs |= !hint->place;
	hints->frees |= hint->place && hint->fn == HB_FN_FREE;
	*hint = (struct alloc_hint){};
	return 0;
}

/* "--OPTION VALUE"; NULL: no memory. Owned. */
static char *as_given(const char *option, const char *value)
{
	char *text;

	return asprintf(&text, "--%s %s", option, value) < 0 ? NULL : text;
}

int alloc_hints_add_probe(struct alloc_hints *hints, const char *text)
{
	struct alloc_hint hint _cleanup_(hint_clear) = {.text = as_given("probe", text)};
	const char *path = strchr(text, '='), *place = strrchr(text, ':');

	if (!path || !place || place <= path + 1 || !place[1])
		return log_fail(0,
				"--probe %s: give FUNCTION=PATH:SYMBOL or FUNCTION=PATH:0xOFFSET, "
				"like malloc=/usr/bin/app:pool_alloc",
				text);
	if (!find_function(text, (size_t)(path - text), &hint.fn))
		return log_fail(0,
				"--probe %s: unknown function; it can be malloc, calloc, realloc, "
				"reallocarray, posix_memalign, memalign, aligned_alloc, valloc, "
				"new or free",
				text);
	path++;
	hint.path = absolute(path, (size_t)(place - path));
	hint.place = strdup(place + 1);
	if (!hint.place)
		return log_fail(ENOMEM, "--probe %s", text);
	hint.is_offset = !strncmp(hint.place, "0x", 2);
	if (hint.is_offset && !read_offset(&hint))
		return log_fail(0, "--probe %s: %s is no offset in a file, like 0x1a40", text,
				hint.place);
	return add(hints, &hint);
}

int alloc_hints_add_lib(struct alloc_hints *hints, const char *text)
{
	struct alloc_hint hint _cleanup_(hint_clear) = {.text = as_given("alloc-lib", text)};

	if (!text[0])
		return log_fail(0, "--alloc-lib needs the path of a file");
	hint.path = absolute(text, strlen(text));
	return add(hints, &hint);
}
