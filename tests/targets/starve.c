// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Not a target but a library to preload: of the places of a program where its own code allocates,
 * counted as they are first met, the first allocation at number STARVE fails. A place is a call
 * with its callers in the program; the libraries' own allocations never fail. The number of places
 * goes to the file STARVE_COUNT at the end.
 *
 * build: -shared -fPIC
 */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_MAX  8
#define CALLER_MAX 2 /* of a place: the call itself and the one around it */
#define PLACE_MAX  4096
#define CALLER	   ((uintptr_t)__builtin_return_address(0))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static uintptr_t text_start, text_end; /* of the program */
static uint64_t places[PLACE_MAX];     /* hashes */
static size_t place_cnt, starved;
static __thread bool inside;

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		text_start = info->dlpi_addr + phdr->p_vaddr;
		text_end = text_start + phdr->p_memsz;
	}
	return 1; /* the first one is the program */
}

static bool is_own(uintptr_t pc)
{
	return pc >= text_start && pc < text_end;
}

/* backtrace() allocates at its first call. */
__attribute__((constructor)) static void begin(void)
{
	const char *number = getenv("STARVE");
	void *frame;

	starved = number ? strtoul(number, NULL, 10) : 0;
	backtrace(&frame, 1);
	dl_iterate_phdr(find_text, NULL);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("STARVE_COUNT");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%zu\n", place_cnt);
	fclose(file);
}

static uint64_t hash_place(void)
{
	void *frames[FRAME_MAX];
	int frame_cnt = backtrace(frames, FRAME_MAX);
	uint64_t hash = 0;

	for (int i = 0, callers = 0; i < frame_cnt && callers < CALLER_MAX; i++) {
		if (!is_own((uintptr_t)frames[i]))
			continue;
		hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3;
		callers++;
	}
	return hash;
}

/* Does the allocation that `caller` asks for fail? */
static bool starves(uintptr_t caller)
{
	uint64_t place;

	if (inside || !is_own(caller))
		return false;
	inside = true;
	place = hash_place();
	inside = false;
	for (size_t i = 0; i < place_cnt; i++)
		if (places[i] == place)
			return false;
	if (place_cnt == PLACE_MAX)
		abort();
	places[place_cnt++] = place;
	if (place_cnt != starved)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return starves(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t cnt, size_t size)
{
	return starves(CALLER) ? NULL : __libc_calloc(cnt, size);
}

void *realloc(void *block, size_t size)
{
	return starves(CALLER) ? NULL : __libc_realloc(block, size);
}

void *reallocarray(void *block, size_t cnt, size_t size)
{
	if (starves(CALLER) || __builtin_mul_overflow(cnt, size, &size))
		return NULL;
	return __libc_realloc(block, size);
}

char *strndup(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *copy = starves(CALLER) ? NULL : __libc_calloc(len + 1, 1);

	return copy ? memcpy(copy, text, len) : NULL;
}

char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = starves(CALLER) ? NULL : __libc_malloc(bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

static int print(char **out, const char *fmt, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	*out = len < 0 ? NULL : __libc_malloc((size_t)len + 1);
	return *out ? vsnprintf(*out, (size_t)len + 1, fmt, args) : -1;
}

int vasprintf(char **out, const char *fmt, va_list args)
{
	return starves(CALLER) ? -1 : print(out, fmt, args);
}

int asprintf(char **out, const char *fmt, ...)
{
	bool fails = starves(CALLER);
	va_list args;
	int len;

	va_start(args, fmt);
	len = fails ? -1 : print(out, fmt, args);
	va_end(args);
	return len;
}
