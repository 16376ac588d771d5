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
#include "elf_cache.h"

struct elf_file;

/*
 * Opens the ELF behind `fd` (taken, also on failure). `name` is for messages and copied.
 * 0 and *out (free with elf_file_free()), -ENOEXEC (no regular file, or no 64-bit x86-64 ELF
 * executable or shared object), -ENOMEM, -errno of fstat(2).
 */
int elf_file_open(int fd, const char *name, struct elf_file **out);

/*
 * Same for an image of `size_bytes` in memory (the vDSO); `image` is copied. 0, -ENOEXEC, -ENOMEM.
 */
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

/* Longer build ids are taken for garbage; linkers write 16 or 20 bytes. */
#define ELF_FILE_BUILD_ID_MAX 64

/*
 * GNU build id, borrowed, at most ELF_FILE_BUILD_ID_MAX bytes; *len is its length, 0 and NULL if
 * there is none.
 */
const uint8_t *elf_file_build_id(const struct elf_file *file, size_t *len);

/* DT_SONAME, borrowed; NULL if there is none. */
const char *elf_file_soname(const struct elf_file *file);

/*
 * Translate through PT_LOAD; false, and the output untouched, if no segment of the file holds the
 * address. Where two segments hold one offset the executable one answers. Addresses that have no
 * byte in the file (.bss) have no offset.
 */
bool elf_file_off_to_vma(const struct elf_file *file, uint64_t off, uint64_t *vma);
/* See elf_file_off_to_vma(). */
bool elf_file_vma_to_off(const struct elf_file *file, uint64_t vma, uint64_t *off);

/* Bytes that the file holds from `vma` to the end of its segment; 0: none. */
uint64_t elf_file_vma_room(const struct elf_file *file, uint64_t vma);

/* Bytes that the file holds from `vma` on in an executable segment; 0: not code. */
uint64_t elf_file_text_room(const struct elf_file *file, uint64_t vma);

/* The file asks for no interpreter and has no dynamic section of its own: static. */
bool elf_file_is_static(const struct elf_file *file);

/*
 * Copies up to `len` bytes of the executable segment that holds `off` into buf; returns the
 * number copied (0: not in an executable segment, or unreadable). Ends with the segment and with
 * the file, whichever is first.
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
 * segment when sections are stripped); undefined, absolute and nameless symbols are left out, a
 * function in both tables comes twice, names with a version ("f@@V1") come without it. Stops and
 * returns what fn returns when that is not 0; else 0, also without any symbol; -ENOMEM.
 */
int elf_file_each_function(const struct elf_file *file,
			   int (*fn)(const struct elf_symbol *symbol, void *data), void *data);

#endif
