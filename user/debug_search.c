// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file, a root directory, what a separate file must prove. Out: that file, open.
 *
 * Order: /usr/lib/debug/.build-id below the process's root, the same below our root,
 * .gnu_debuglink below the process's root (a CRC is too weak to pick files of our own root by).
 * Paths are resolved with RESOLVE_IN_ROOT, so neither ".." nor links lead out, and only regular
 * files are opened: a FIFO or a device named by a foreign file could block us or act.
 *
 * Knows nothing of DWARF, addresses or names.
 */
#include "debug_search.h"

#include "cleanup.h"
#include "elf_file.h"
#include "log.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

/* The longest candidate for a CRC; a sparse file would keep us busy. */
#define CRC_MAX_BYTES (8LL << 30)
/* Build ids outside of this are not looked up, as in elfutils. */
#define BUILD_ID_MIN_BYTES 3
#define BUILD_ID_MAX_BYTES 64

/* What proves that a candidate is the right one. */
struct proof {
	const uint8_t *build_id; /* NULL: by CRC */
	size_t build_id_len;
	uint32_t crc;
};

void debug_search_clear(struct debug_part *part)
{
	if (part->elf)
		elf_end(part->elf);
	if (part->fd >= 0)
		close(part->fd);
	free(part->path);
	free(part->image);
	*part = DEBUG_PART_NONE;
}

/*
 * A file that only root can change is mapped; others are read, since a mapped file that is
 * truncated under us would end us with SIGBUS. `path` is its name for people.
 */
static Elf *open_elf(int fd, const char *path)
{
	struct stat st;
	bool stays;
	Elf *elf;

	stays = !fstat(fd, &st) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
	errno = 0;
	elf = elf_begin(fd, stays ? ELF_C_READ_MMAP : ELF_C_READ, NULL);
	/* What is no ELF file opens; and who lacks memory says so for all. */
	if (!elf && errno && errno != ENOMEM)
		log_warn("cannot read debug information of %s: %s; lines may be missing", path,
			 strerror(errno));
	if (elf && (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64)) {
		elf_end(elf);
		return NULL;
	}
	return elf;
}

/* Opens `path` below root_fd if it is a regular file; -errno otherwise. */
static int open_below(int root_fd, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	_cleanup_close_ int path_fd = -1;
	char self[32];
	struct stat st;
	int fd;

	path_fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static bool crc_matches(int fd, uint32_t want)
{
	_cleanup_free_ unsigned char *buf = malloc(1 << 16);
	uint32_t crc = crc32(0, NULL, 0);
	off_t off = 0;
	ssize_t got;

	while (buf && off < CRC_MAX_BYTES && (got = pread(fd, buf, 1 << 16, off)) != 0) {
		if (got < 0)
			return false;
		crc = crc32(crc, buf, got);
		off += got;
	}
	return buf && off < CRC_MAX_BYTES && crc == want;
}

static bool build_id_matches(Elf *elf, const struct proof *proof)
{
	const void *id;

	return dwelf_elf_gnu_build_id(elf, &id) == (ssize_t)proof->build_id_len &&
	       !memcmp(id, proof->build_id, proof->build_id_len);
}

/* Fills *part with `path` below root_fd if the proof holds; true then. */
static bool try_path(int root_fd, const char *path, const struct proof *proof,
		     struct debug_part *part)
{
	struct debug_part found = {.fd = open_below(root_fd, path), .root_fd = root_fd};

	if (found.fd < 0)
		return false;
	if (proof->build_id || crc_matches(found.fd, proof->crc))
		found.elf = open_elf(found.fd, path);
	if (found.elf && (!proof->build_id || build_id_matches(found.elf, proof)))
		found.path = strdup(path);
	if (!found.path) {
		debug_search_clear(&found);
		return false;
	}
	*part = found;
	return true;
}

static bool try_build_id_dir(int root_fd, const struct proof *proof, struct debug_part *part)
{
	char hex[2 * BUILD_ID_MAX_BYTES + 1];
	_cleanup_free_ char *path = NULL;

	if (root_fd < 0 || proof->build_id_len < BUILD_ID_MIN_BYTES ||
	    proof->build_id_len > BUILD_ID_MAX_BYTES)
		return false;
	for (size_t i = 0; i < proof->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", proof->build_id[i]);
	if (asprintf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2) < 0) {
		path = NULL;
		return false;
	}
	return try_path(root_fd, path, proof, part);
}

/* "/a/b" of "/a/b/c" as a new string; NULL if `path` is not absolute. */
static char *directory_of(const char *path)
{
	const char *slash;

	if (!path || path[0] != '/')
		return NULL;
	slash = strrchr(path, '/');
	return strndup(path, slash - path);
}

static bool try_debuglink(const struct debug_part *main, struct debug_part *part)
{
	/* The last one is for files of /usr/lib that were packaged as files of /lib. */
	static const struct {
		const char *prefix, *strip, *suffix;
	} places[] = {
		{"", "", ""},
		{"", "", "/.debug"},
		{"/usr/lib/debug", "", ""},
		{"/usr/lib/debug", "/usr", ""},
	};
	_cleanup_free_ char *dir = directory_of(main->path);
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(main->elf, &crc);

	if (main->root_fd < 0 || !name || !name[0] || strchr(name, '/') || !dir)
		return false;
	for (size_t i = 0; i < ARRAY_CNT(places); i++) {
		size_t strip = strlen(places[i].strip);
		_cleanup_free_ char *path = NULL;

		if (strncmp(dir, places[i].strip, strip))
			continue;
		if (asprintf(&path, "%s%s%s/%s", places[i].prefix, dir + strip, places[i].suffix,
			     name) < 0) {
			path = NULL;
			return false;
		}
		if (try_path(main->root_fd, path, &(struct proof){.crc = crc}, part))
			return true;
	}
	return false;
}

int debug_search_main(const struct elf_file *file, const struct debug_roots *roots,
		      struct debug_part *part)
{
	size_t size;
	char *raw;

	part->root_fd = roots->target;
	part->path = strdup(elf_file_name(file));
	if (!part->path)
		return -ENOMEM;
	if (elf_file_fd(file) >= 0) {
		part->elf = open_elf(elf_file_fd(file), part->path);
		return 0;
	}
	raw = elf_rawfile(elf_file_elf(file), &size);
	if (!raw)
		return 0;
	part->image = malloc(size);
	if (!part->image)
		return -ENOMEM;
	memcpy(part->image, raw, size);
	part->elf = elf_memory(part->image, size);
	return 0;
}

void debug_search_separate(const struct elf_file *file, const struct debug_part *main,
			   const struct debug_roots *roots, struct debug_part *part)
{
	struct proof proof = {0};

	proof.build_id = elf_file_build_id(file, &proof.build_id_len);
	if (proof.build_id && (try_build_id_dir(roots->target, &proof, part) ||
			       try_build_id_dir(roots->ours, &proof, part)))
		return;
	try_debuglink(main, part);
}

Elf_Scn *debug_search_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *scn_name;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS || !shdr.sh_size)
			continue;
		scn_name = elf_strptr(elf, names, shdr.sh_name);
		if (scn_name && !strcmp(scn_name, name))
			return scn;
	}
	return NULL;
}

Elf_Data *debug_search_data(Elf *elf, const char *name)
{
	Elf_Scn *scn = debug_search_section(elf, name);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	return data && data->d_buf && data->d_size ? data : NULL;
}

/* .gnu_debugaltlink is a name with its zero byte, then a build id up to the end. */
void debug_search_alt(const struct debug_part *part, const struct debug_roots *roots,
		      struct debug_part *alt)
{
	Elf_Data *link = debug_search_data(part->elf, ".gnu_debugaltlink");
	_cleanup_free_ char *dir = NULL, *path = NULL;
	struct proof proof = {0};
	const char *name;
	size_t name_len;

	if (!link)
		return;
	name = link->d_buf;
	name_len = strnlen(name, link->d_size);
	if (name_len + 1 >= link->d_size)
		return;
	proof.build_id = (const uint8_t *)name + name_len + 1;
	proof.build_id_len = link->d_size - name_len - 1;
	if (try_build_id_dir(roots->target, &proof, alt) ||
	    try_build_id_dir(roots->ours, &proof, alt))
		return;
	dir = directory_of(part->path);
	if (part->root_fd < 0 || (name[0] != '/' && !dir))
		return;
	if (asprintf(&path, "%s/%s", name[0] == '/' ? "" : dir, name) < 0)
		path = NULL;
	else
		try_path(part->root_fd, path, &proof, alt);
}

/*
 * Mount as well as inode: a mount namespace of its own starts with the same root inode. Ids of
 * mounts are unique over all namespaces (statx, Linux 5.8).
 */
bool debug_search_same_root(const struct debug_roots *roots)
{
	const unsigned int want = STATX_INO | STATX_MNT_ID;
	struct statx a, b;

	return roots->target >= 0 && roots->ours >= 0 &&
	       !statx(roots->target, "", AT_EMPTY_PATH, want, &a) &&
	       !statx(roots->ours, "", AT_EMPTY_PATH, want, &b) &&
	       (a.stx_mask & b.stx_mask & want) == want && a.stx_ino == b.stx_ino &&
	       a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor &&
	       a.stx_mnt_id == b.stx_mnt_id;
}
