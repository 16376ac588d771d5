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

/* An address in a file. */
struct symbolize_address {
	const struct elf_file *file; /* NULL: of none */
	uint64_t vma;
};

/*
 * Says which addresses will be looked up next. Where that is much work, it is done now, by several
 * processes, and the lookups find it done; else, and where it fails, nothing happens and they do it
 * one by one, with the same answers. Of use for files that are prepared.
 */
void symbolizer_expect(struct symbolizer *symbolizer, const struct symbolize_address *addresses,
		       size_t cnt);

/*
 * What is much: `at_once` processes (1 to COPIES_MAX), each for so many bytes of debug information.
 * By default as it pays on this machine.
 */
void symbolizer_set_share(struct symbolizer *symbolizer, unsigned at_once, uint64_t piece_bytes);

/*
 * What is at `vma` of `file` (pass return address - 1 for callers). Remembered per (file, vma). 0
 * with *out (cnt 0: unknown), or -ENOMEM, -EMFILE, -ENFILE: an answer might lack something. If what
 * we lack keeps us from reading the debug information of a file, each later lookup says so.
 */
int symbolizer_lookup(struct symbolizer *symbolizer, const struct elf_file *file, uint64_t vma,
		      struct symbolize_result *out);

/*
 * The function that is known by `name` (not empty) alone, from another source. Equal names are one
 * frame. 0 or -ENOMEM.
 */
int symbolizer_name(struct symbolizer *symbolizer, const char *name, struct symbolize_result *out);

#endif
