/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses to functions, files and lines, with inline frames: from DWARF of the file or of its
 * separate debug file, else from the nearest ELF symbol, else nothing. Works per file on vma, so
 * one answer serves every process that maps the file.
 *
 * Of several names for one function always the same one is given. Of ELF symbols at one address
 * (aliases, functions that the linker merged): global and weak before local, then fewer leading
 * underscores, then alphabetical. With DWARF the name is that of the source, except that a C
 * function known inside its library as "__strdup" goes by its public symbol "strdup".
 */
#ifndef SYMBOLIZE_H
#define SYMBOLIZE_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct symbolizer;

/* One function at an address. Strings live as long as the symbolizer. */
struct symbolize_frame {
	const char *name;	 /* demangled; never NULL or empty */
	const char *system_name; /* mangled, as in the file without a version; never NULL */
	const char *file;	 /* source path, or NULL */
	uint32_t line;		 /* 0: unknown */
	uint32_t start_line;	 /* line of the function's declaration; 0: unknown */
};

/* Everything at one address, innermost inline function first. */
struct symbolize_result {
	const struct symbolize_frame *frames; /* borrowed from the symbolizer; cnt 0: no name */
	size_t cnt;
};

/* NULL if out of memory. Files are known by their address: free none before the last lookup. */
struct symbolizer *symbolizer_new(void);

/* Frees everything it ever returned; NULL is fine. */
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Opens the debug information of `file` (its own, or a separate file by build id, .gnu_debuglink
 * with a matching CRC, .gnu_debugdata; dwz supplements). Separate files are searched below
 * `root_fd`, the root directory of the process (-1: only ours, and there only by build id); .dwo
 * files are used only if that root is ours, since libdw opens them by path. Call it while the
 * process lives; later calls for the same file do nothing. What cannot be had is no error: names
 * come from what there is. What we lack (memory, descriptors) is, of each later lookup.
 */
void symbolizer_prepare(struct symbolizer *symbolizer, const struct elf_file *file, int root_fd);

/*
 * What is at `vma` of `file` (pass return address - 1 for callers). Remembered per (file, vma).
 * 0 with *out (cnt 0: unknown), or -ENOMEM, -EMFILE, -ENFILE: an answer might lack something.
 */
int symbolizer_lookup(struct symbolizer *symbolizer, const struct elf_file *file, uint64_t vma,
		      struct symbolize_result *out);

/*
 * The function that is known by `name` (not empty) alone, from another source. Equal names are one
 * frame. 0 or -ENOMEM.
 */
int symbolizer_name(struct symbolizer *symbolizer, const char *name, struct symbolize_result *out);

#endif
