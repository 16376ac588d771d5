/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files by identity: whatever number of processes map a file, it is opened and read once.
 */
#ifndef ELF_CACHE_H
#define ELF_CACHE_H

#include <stdint.h>
#include <sys/types.h>

struct elf_cache;
struct elf_file;
struct procmap;

/*
 * What two mappings of one file have in common: the cache's key. For the vDSO, which is no file,
 * dev is UINT64_MAX and inode a hash of its bytes.
 */
struct elf_file_id {
	uint64_t dev;
	uint64_t inode;
	int64_t mtime_ns;
	uint64_t size_bytes;
};

/* A cache of files by identity. NULL if out of memory. */
struct elf_cache *elf_cache_new(void);

/* Frees the cache and every file in it; NULL is fine. */
void elf_cache_free(struct elf_cache *cache);

/*
 * The file behind `map` of running process `tgid`, opened at most once per identity (files that
 * are no ELF are remembered too). Borrowed: lives as long as the cache. "[vdso]" is read from the
 * process's memory. 0 and *out, -ENOENT (anonymous memory; no file), -ENOEXEC (no ELF of ours),
 * -ENOMEM, or -errno as procmaps_open() and elf_file_open(). *out is untouched on failure.
 */
int elf_cache_get(struct elf_cache *cache, pid_t tgid, const struct procmap *map,
		  struct elf_file **out);

#endif
