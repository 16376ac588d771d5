// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program whose code is not mapped as one piece of its file any more.
 *   remap moved     copied to memory without a file and moved over its place, as is done to get
 *                   huge pages
 *   remap written   a page in the middle was made writable, written, and made code again
 *   remap libc      the code of libc was moved
 * build: -fno-builtin -D_GNU_SOURCE
 */
#include "truth.h"

#include <stdbool.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096

static void *kept;

SITE(site_remap)
{
	for (int i = 0; i < 1000; i++)
		kept = took(self, malloc(100), 100);
	free(kept);
	gave(self, 100);
}

/* The executable mapping whose line in /proc/self/maps has `name`. Reads without allocating. */
static bool find_text(const char *name, uintptr_t *start, uintptr_t *end)
{
	static char text[65536];
	FILE *maps = fopen("/proc/self/maps", "r");
	size_t len = maps ? fread(text, 1, sizeof(text) - 1, maps) : 0;

	text[len] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, "r-xp") && strstr(line, name) &&
		    sscanf(line, "%lx-%lx", start, end) == 2)
			return true;
	return false;
}

/* mremap() as a system call of our own: that of libc may be what is being moved. */
static long move(const void *from, size_t bytes, uintptr_t to)
{
	register long flags __asm__("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
	register uintptr_t at __asm__("r8") = to;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(25), "D"(from), "S"(bytes), "d"(bytes), "r"(flags), "r"(at)
			 : "rcx", "r11", "memory");
	return result;
}

static void move_text(uintptr_t start, uintptr_t end)
{
	size_t bytes = end - start;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		_exit(7);
	memcpy(copy, (void *)start, bytes);
	if (mprotect(copy, bytes, PROT_READ | PROT_EXEC) || move(copy, bytes, start) < 0)
		_exit(7);
}

static void write_page(uintptr_t start, uintptr_t end)
{
	uintptr_t page = start + (end - start) / 2 / PAGE_BYTES * PAGE_BYTES;
	volatile char *byte = (char *)page;

	if (mprotect((void *)page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC))
		_exit(7);
	*byte = *byte;
	if (mprotect((void *)page, PAGE_BYTES, PROT_READ | PROT_EXEC))
		_exit(7);
}

/* Makes the code large enough to have a middle. */
__attribute__((used)) static void room(void)
{
	__asm__ volatile(".skip 20480, 0x90");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uintptr_t start, end;

	if (!find_text(strcmp(mode, "libc") ? "remap" : "libc.so", &start, &end))
		return 64;
	if (strcmp(mode, "written"))
		move_text(start, end);
	else
		write_page(start, end);
	await("READY");
	RUN(site_remap);
	finish();
	return 0;
}
