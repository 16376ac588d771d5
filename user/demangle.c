// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a symbol's name. Out: what a person calls it.
 *
 * libiberty does the work; here is the choice of the scheme, and limits. Names come from foreign
 * files: a short one can stand for gigabytes (each substitution doubles it), and a long one can
 * exhaust the stack. Whatever goes beyond a limit is kept raw.
 */
#include "demangle.h"

#include "cleanup.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* The longest readable name; what is longer helps nobody. */
#define OUTPUT_MAX_BYTES (64 << 10)
/*
 * The longest mangled name. libiberty refuses above half of its recursion limit, which names of
 * C++ templates do reach, so it works without its limit on names between the two. The stack that
 * a name takes grows with its length; this much stays below a megabyte.
 */
#define INPUT_MAX_BYTES (4 << 10)

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP)

/* "17h", 16 hexadecimal digits, "E": the last element of a Rust path in the legacy scheme. */
#define RUST_HASH_LEN 17

struct output {
	char *text; /* owned; terminated */
	size_t len;
	jmp_buf too_much;
};

static void write_output(const char *piece, size_t len, void *opaque)
{
	struct output *output = opaque;

	/* The only way to stop libiberty; its callback interface holds no memory but the stack's.
	 */
	if (len > OUTPUT_MAX_BYTES - output->len)
		longjmp(output->too_much, 1);
	memcpy(output->text + output->len, piece, len);
	output->len += len;
}

/*
 * A Rust name in the legacy scheme is a C++ nested name of which the last element is a hash, and
 * nothing but a suffix of the linker or optimizer (".llvm.123") follows. A C++ function with the
 * same name goes on with the types of its parameters, at least "v", so that both are told apart.
 */
static bool is_rust_legacy(const char *name)
{
	const char *element = NULL, *p = name + 3;
	size_t len = 0;

	if (strncmp(name, "_ZN", 3))
		return false;
	while (isdigit((unsigned char)*p)) {
		char *end;

		len = strtoul(p, &end, 10);
		if (!len || len > strlen(end))
			return false;
		element = end;
		p = end + len;
	}
	if (*p != 'E' || (p[1] && p[1] != '.') || len != RUST_HASH_LEN || element[0] != 'h')
		return false;
	return strspn(element + 1, "0123456789abcdef") >= RUST_HASH_LEN - 1;
}

bool demangle_is_rust(const char *name)
{
	return !strncmp(name, "_R", 2) || is_rust_legacy(name);
}

/* libiberty's answer in output->text; false if it has none or it is too long. */
static bool run(const char *name, struct output *output)
{
	int limit = strlen(name) < DEMANGLE_RECURSION_LIMIT / 2 ? 0 : DMGL_NO_RECURSE_LIMIT;
	volatile int done = 0; /* read after a longjmp could have happened */

	if (setjmp(output->too_much))
		return false;
	if (demangle_is_rust(name))
		done = rust_demangle_callback(name, OPTIONS, write_output, output);
	/* Rust's is too strict for a hash with few different digits. */
	if (!done && (!strncmp(name, "_Z", 2) || !strncmp(name, "_GLOBAL_", 8)))
		done = cplus_demangle_v3_callback(name, OPTIONS | limit, write_output, output);
	return done && output->len;
}

char *demangle(const char *name)
{
	_cleanup_free_ char *text = NULL;
	struct output output;

	if (name[0] != '_' || strlen(name) > INPUT_MAX_BYTES)
		return strdup(name);
	text = malloc(OUTPUT_MAX_BYTES + 1);
	if (!text)
		return NULL;
	output.text = text;
	output.len = 0;
	if (!run(name, &output))
		return strdup(name);
	return strndup(text, output.len);
}
