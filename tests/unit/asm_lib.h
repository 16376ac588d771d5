/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Libraries of a few instructions each, for tests of what reads the code of an allocator.
 */
#ifndef ASM_LIB_H
#define ASM_LIB_H

#include "allocators.h"
#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function with its symbol, and what most of the libraries below need. */
#define FN(name, body)                                                                             \
	".globl " name "\n.type " name ", @function\n" name ":\n" body "\n.size " name ", .-" name \
	"\n.balign 16\n"
#define STATIC_FN(name, body)                                                                      \
	".type " name ", @function\n" name ":\n .cfi_startproc\n" body                             \
	"\n .cfi_endproc\n.size " name ", .-" name "\n.balign 16\n"
#define BASE FN("malloc", "push %rbx\n mov state(%rip), %rax\n pop %rbx\n ret") FN("free", "ret")
#define DATA ".data\nstate: .quad 1\n"

/* What to build. */
#define ASM_LIB_SHARED "-shared -Wl,-z,lazy"
#define ASM_LIB_STATIC "-static -no-pie -Wl,-e,malloc"

/*
 * Builds a file from assembly and finds its allocator; `file` and, after 0, `set` belong to the
 * caller. 0, -EIO (not built), or as allocators_find().
 */
static inline int asm_lib_find(const char *source, const char *options, struct elf_file **file,
			       struct allocators_set *set)
{
	char dir[] = "/tmp/allocators.XXXXXX";
	char path[64], command[512];
	FILE *out;
	int ret = -EIO;

	*file = NULL;
	if (!mkdtemp(dir))
		return -EIO;
	snprintf(path, sizeof(path), "%s/lib.s", dir);
	out = fopen(path, "w");
	if (out) {
		fputs(source, out);
		fclose(out);
		snprintf(command, sizeof(command), "cc -nostdlib %s -o %s/lib.so %s/lib.s", options,
			 dir, dir);
		ret = system(command) ? -EIO : 0;
	}
	snprintf(path, sizeof(path), "%s/lib.so", dir);
	if (!ret)
		ret = elf_file_open(open(path, O_RDONLY), "lib.so", file);
	if (!ret)
		ret = allocators_find(*file, &(struct allocators_request){}, set);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? -EIO : ret;
}

/* The entry of that name that is no helper; NULL if there is none. */
static inline const struct allocators_fn *asm_lib_get(const struct allocators_set *set,
						      const char *name)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (!strcmp(set->fns[i].name, name) &&
		    (!set->fns[i].silent || strncmp(set->fns[i].silent, "is part of", 10)))
			return &set->fns[i];
	return NULL;
}

/* The piece of that entry that lies elsewhere; NULL if there is none. */
static inline const struct allocators_fn *asm_lib_part(const struct allocators_set *set,
						       const char *name)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (!strcmp(set->fns[i].name, name) && set->fns[i].silent &&
		    !strncmp(set->fns[i].silent, "is part of", 10))
			return &set->fns[i];
	return NULL;
}

#endif
