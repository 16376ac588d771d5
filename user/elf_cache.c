// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a mapping of a running process. Out: the one elf_file of the file behind it. A lookup opens
 * the file anew to learn its identity, which is cheap, and reads it only the first time. Must not
 * know what the files are used for.
 */
#include "elf_cache.h"

#include "cleanup.h"
#include "elf_file.h"
#include "procmaps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* Out of memory: the item stays out (hh.tbl NULL) instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Larger than any vDSO; the kernel's are below 32 KiB. */
#define VDSO_BYTES_MAX (1 << 20)

/* A known identity: a file, or why there is none. */
struct entry {
	UT_hash_handle hh;
	struct elf_file_id id; /* the key; no padding */
	struct elf_file *file; /* owned; NULL: `err` */
	int err;
};
_Static_assert(sizeof(struct elf_file_id) == 32, "hashed as bytes");

struct elf_cache {
	struct entry *entries;
};

struct elf_cache *elf_cache_new(void)
{
	return calloc(1, sizeof(struct elf_cache));
}

void elf_cache_free(struct elf_cache *cache)
{
	struct entry *entry, *next;

	if (!cache)
		return;
	HASH_ITER(hh, cache->entries, entry, next)
	{
		HASH_DEL(cache->entries, entry);
		elf_file_free(entry->file);
		free(entry);
	}
	free(cache);
}

static struct entry *find(const struct elf_cache *cache, const struct elf_file_id *id)
{
	struct entry *entry;

	HASH_FIND(hh, cache->entries, id, sizeof(*id), entry);
	return entry;
}

/* Remembers `file` (taken) or its error. 0 or -ENOMEM, then the file is freed. */
static int add(struct elf_cache *cache, const struct elf_file_id *id, struct elf_file *file,
	       int err)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry) {
		elf_file_free(file);
		return -ENOMEM;
	}
	entry->id = *id;
	entry->file = file;
	entry->err = err;
	HASH_ADD(hh, cache->entries, id, sizeof(entry->id), entry);
	if (entry->hh.tbl)
		return 0;
	elf_file_free(file);
	free(entry);
	return -ENOMEM;
}

/* Hands out what is known under `id`. */
static int answer(const struct elf_cache *cache, const struct elf_file_id *id,
		  struct elf_file **out)
{
	const struct entry *entry = find(cache, id);

	if (!entry->file)
		return entry->err;
	*out = entry->file;
	return 0;
}

/* FNV-1a, 64 bits (draft-eastlake-fnv): only tells vDSOs of different kernels apart. */
static uint64_t hash_bytes(const uint8_t *bytes, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return hash;
}

/* Copies the mapping out of the process's memory. 0 or -errno. */
static int read_memory(pid_t tgid, const struct procmap *map, void *buf, size_t len)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	size_t cnt = 0;

	if (asprintf(&path, "/proc/%d/mem", (int)tgid) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (cnt < len) {
		ssize_t got = pread(fd, (char *)buf + cnt, len - cnt, (off_t)(map->start + cnt));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		cnt += (size_t)got;
	}
	return 0;
}

static int get_vdso(struct elf_cache *cache, pid_t tgid, const struct procmap *map,
		    struct elf_file **out)
{
	struct elf_file_id id = {.dev = UINT64_MAX, .size_bytes = map->end - map->start};
	_cleanup_free_ void *image = NULL;
	struct elf_file *file = NULL;
	int ret;

	if (id.size_bytes > VDSO_BYTES_MAX)
		return -ENOEXEC;
	image = malloc(id.size_bytes);
	if (!image)
		return -ENOMEM;
	ret = read_memory(tgid, map, image, id.size_bytes);
	if (ret)
		return ret;
	id.inode = hash_bytes(image, id.size_bytes);
	if (!find(cache, &id)) {
		ret = elf_file_open_memory(image, id.size_bytes, map->path, &file);
		if (ret == -ENOMEM)
			return ret;
		ret = add(cache, &id, file, ret);
		if (ret)
			return ret;
	}
	return answer(cache, &id, out);
}

static int get_file(struct elf_cache *cache, pid_t tgid, const struct procmap *map,
		    struct elf_file **out)
{
	_cleanup_close_ int fd = procmaps_open(tgid, map);
	struct elf_file *file = NULL;
	struct elf_file_id id;
	struct stat st;
	int ret;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	id = (struct elf_file_id){
		.dev = st.st_dev,
		.inode = st.st_ino,
		.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
		.size_bytes = (uint64_t)st.st_size,
	};
	if (!find(cache, &id)) {
		ret = elf_file_open(take_fd(&fd), map->path, &file);
		if (ret && ret != -ENOEXEC)
			return ret;
		ret = add(cache, &id, file, ret);
		if (ret)
			return ret;
	}
	return answer(cache, &id, out);
}

int elf_cache_get(struct elf_cache *cache, pid_t tgid, const struct procmap *map,
		  struct elf_file **out)
{
	if (!strcmp(map->path, "[vdso]"))
		return get_vdso(cache, tgid, map, out);
	return get_file(cache, tgid, map, out);
}
