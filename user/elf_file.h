/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ELF file, opened once and shared by everything that reads it: allocators, probe_plan, cfi,
 * symbolize. The bytes are foreign: no length in them is trusted. Three kinds of address: pc (in
 * a process), vma (as linked), off (in the file).
 */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procmap;
struct elf_file;
struct elf_cache;

/* What two mappings of one file have in common: the cache's key. */
struct elf_file_id {
	uint64_t dev;
	uint64_t inode;
	int64_t mtime_ns;
	uint64_t size_bytes;
};

/*
 * Opens the ELF behind `fd` (taken, also on failure). `name` is for messages and copied.
 * 0 and *out (free with elf_file_free()), -ENOEXEC (no 64-bit x86-64 ELF), -errno.
 */
int elf_file_open(int fd, const char *name, struct elf_file **out);

/* Same for an image in memory (the vDSO); `image` is copied. */
int elf_file_open_memory(const void *image, size_t size_bytes, const char *name,
			 struct elf_file **out);

/* Releases the file; NULL is fine. */
void elf_file_free(struct elf_file *file);

/* The open handle; borrowed, lives as long as `file`. */
Elf *elf_file_elf(const struct elf_file *file);

/* Descriptor of the file, borrowed; -1 for an image in memory. */
int elf_file_fd(const struct elf_file *file);

/* The name given at open; borrowed. */
const char *elf_file_name(const struct elf_file *file);

/* GNU build id, borrowed; *len is its length, 0 and NULL if there is none. */
const uint8_t *elf_file_build_id(const struct elf_file *file, size_t *len);

/* Translate through PT_LOAD; false if no segment of the file holds the address. */
bool elf_file_off_to_vma(const struct elf_file *file, uint64_t off, uint64_t *vma);
/* See elf_file_off_to_vma(). */
bool elf_file_vma_to_off(const struct elf_file *file, uint64_t vma, uint64_t *off);

/* The file asks for no interpreter and has no dynamic section of its own: static. */
bool elf_file_is_static(const struct elf_file *file);

/*
 * Copies up to `len` bytes of the executable segment that holds `off` into buf; returns the
 * number copied (0: not in an executable segment).
 */
size_t elf_file_read_text(const struct elf_file *file, uint64_t off, void *buf, size_t len);

/* A defined function symbol. Strings live as long as the file. */
struct elf_symbol {
	const char *name; /* without a version suffix */
	uint64_t vma;
	uint64_t size_bytes; /* 0: unknown */
	bool ifunc;	     /* STT_GNU_IFUNC: vma is a resolver's */
};

/*
 * Calls fn(symbol, data) for every *defined* function of .symtab and .dynsym (or of the dynamic
 * segment when sections are stripped); undefined and absolute symbols are left out. Stops and
 * returns what fn returns when that is not 0.
 */
int elf_file_each_function(const struct elf_file *file,
			   int (*fn)(const struct elf_symbol *symbol, void *data), void *data);

/* A cache of files by identity. NULL if out of memory. */
struct elf_cache *elf_cache_new(void);

/* Frees the cache and every file in it. */
void elf_cache_free(struct elf_cache *cache);

/*
 * The file behind `map` of running process `tgid`, opened at most once per identity (also
 * failures are remembered). Borrowed: lives as long as the cache. "[vdso]" is read from the
 * process's memory. 0 and *out, or -errno as procmaps_open() and elf_file_open().
 */
int elf_cache_get(struct elf_cache *cache, pid_t tgid, const struct procmap *map,
		  struct elf_file **out);

#endif
