/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file and a symbolizer that knows it: what tests ask about names.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "elf_file.h"
#include "scratch.h"
#include "symbolize.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A symbolizer with one file. */
struct subject {
	struct symbolizer *symbolizer;
	struct elf_file *file;
	struct symbolize_result result;
};

static inline void subject_close(struct subject *subject)
{
	symbolizer_free(subject->symbolizer);
	elf_file_free(subject->file);
	*subject = (struct subject){0};
}

/* `name` is where the file is for the process whose root is the directory `root` (NULL: -1). */
static inline bool subject_open_as(struct subject *subject, const char *path, const char *name,
				   const char *root)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int root_fd = root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	*subject = (struct subject){.symbolizer = symbolizer_new()};
	if (!subject->symbolizer || fd < 0 || elf_file_open(fd, name, &subject->file))
		return false;
	symbolizer_prepare(subject->symbolizer, subject->file, root_fd);
	if (root_fd >= 0)
		close(root_fd);
	return true;
}

static inline bool subject_lookup(struct subject *subject, uint64_t vma)
{
	return vma && !symbolizer_lookup(subject->symbolizer, subject->file, vma, &subject->result);
}

/* Opens and looks up in one go. */
static inline bool subject_ask(struct subject *subject, const char *path, const char *root,
			       uint64_t vma)
{
	char name[512];

	snprintf(name, sizeof(name), "%s/%s", scratch_dir(), path);
	return subject_open_as(subject, path, name, root) && subject_lookup(subject, vma);
}

#endif
