// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * elf_file, elf_dynamic and elf_cache on a library that the test builds, with known addresses, with
 * and without section headers, cut and mutated; and on this very process.
 */
#include "elf_file.h"

#include "check.h"
#include "elf_dynamic.h"
#include "procmaps.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every kind of symbol; the sizes are what the checks below expect. */
static const char source[] = ".globl one, two, two_v1, picked\n"
			     ".type one, @function\n.type two, @function\n"
			     ".type local, @function\n.type picked, @gnu_indirect_function\n"
			     ".set absolute, 7\n.globl absolute\n.type absolute, @function\n"
			     ".text\n"
			     "one: mov $1, %eax\n ret\n.size one, 6\n"
			     "two: call other@plt\n jmp *hook@GOTPCREL(%rip)\n.size two, 11\n"
			     "local: ret\n.size local, 1\n"
			     "picked: lea local(%rip), %rax\n ret\n.size picked, 8\n"
			     "two_v1: ret\n.type two_v1, @function\n.size two_v1, 1\n"
			     ".symver two_v1, two@V1\n"
			     ".data\nvariable: .quad 5\n.globl variable\n.type variable, @object\n";

/* The library's bytes. */
struct image {
	char *bytes;
	size_t len;
};

static char dir[] = "/tmp/elf_file.XXXXXX";

static int write_text(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file)
		return -1;
	fputs(text, file);
	return fclose(file);
}

static int read_file(const char *name, struct image *image)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	image->len = (size_t)st.st_size;
	image->bytes = malloc(image->len);
	if (!image->bytes || read(fd, image->bytes, image->len) != st.st_size)
		return -1;
	return close(fd);
}

/* Builds once; the image of the library, owned by the caller. */
static int build(struct image *image)
{
	static bool built;
	char command[512];

	if (!built) {
		if (!mkdtemp(dir) || write_text("fix.s", source) ||
		    write_text("fix.map", "V1 { };\nV2 { global: one; two; picked; "
					  "variable; absolute; local: *; } V1;\n"))
			return -1;
		snprintf(command, sizeof(command),
			 "cc -shared -nostdlib -Wl,-soname,libfix.so.1 "
			 "-Wl,--version-script,%s/fix.map "
			 "-Wl,--build-id=0x00112233445566778899aabbccddeeff -Wl,-z,lazy "
			 "-o %s/libfix.so %s/fix.s",
			 dir, dir, dir);
		if (system(command))
			return -1;
		built = true;
	}
	return read_file("libfix.so", image);
}

/* Functions seen by name; how often. */
struct seen {
	int one, two, two_v1, local, picked, other, total;
	uint64_t one_vma, one_bytes;
	bool picked_ifunc;
};

static int see(const struct elf_symbol *symbol, void *data)
{
	struct seen *seen = data;

	seen->total++;
	if (!strcmp(symbol->name, "one")) {
		seen->one++;
		seen->one_vma = symbol->vma;
		seen->one_bytes = symbol->size_bytes;
	} else if (!strcmp(symbol->name, "two")) {
		seen->two++;
	} else if (!strcmp(symbol->name, "two_v1")) {
		seen->two_v1++;
	} else if (!strcmp(symbol->name, "local")) {
		seen->local++;
	} else if (!strcmp(symbol->name, "picked")) {
		seen->picked++;
		seen->picked_ifunc = symbol->ifunc;
	} else {
		seen->other++;
	}
	return 0;
}

static int stop_at_second(const struct elf_symbol *symbol, void *data)
{
	(void)symbol;
	return ++*(int *)data == 2 ? 77 : 0;
}

TEST(identity)
{
	static const uint8_t want[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
	struct elf_file *file = NULL;
	struct image image;
	const uint8_t *id;
	size_t len;

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	free(image.bytes);
	CHECK_STR(elf_file_name(file), "fix");
	CHECK_STR(elf_file_soname(file), "libfix.so.1");
	CHECK_EQ(elf_file_fd(file), -1);
	CHECK(elf_file_elf(file));
	CHECK(!elf_file_is_static(file));
	id = elf_file_build_id(file, &len);
	CHECK_EQ(len, sizeof(want));
	CHECK(!memcmp(id, want, len));
	elf_file_free(file);
}

TEST(functions_of_symtab_and_dynsym)
{
	struct elf_file *file = NULL;
	struct seen seen = {};
	struct image image;
	int cnt = 0;

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	free(image.bytes);
	CHECK_EQ(elf_file_each_function(file, see, &seen), 0);
	CHECK_EQ(seen.one, 2); /* once in each table */
	CHECK_EQ(seen.one_bytes, 6);
	CHECK_EQ(seen.two, 4); /* and in two versions */
	CHECK_EQ(seen.local, 1);
	CHECK_EQ(seen.picked, 2);
	CHECK(seen.picked_ifunc);
	CHECK_EQ(seen.other, 0); /* undefined, absolute, data */
	CHECK_EQ(elf_file_each_function(file, stop_at_second, &cnt), 77);
	CHECK_EQ(cnt, 2);
	elf_file_free(file);
}

TEST(functions_without_section_headers)
{
	struct elf_file *file = NULL;
	struct seen seen = {};
	struct image image;
	Elf64_Ehdr ehdr;

	CHECK_EQ(build(&image), 0);
	memcpy(&ehdr, image.bytes, sizeof(ehdr));
	ehdr.e_shoff = 0;
	ehdr.e_shnum = ehdr.e_shstrndx = 0;
	memcpy(image.bytes, &ehdr, sizeof(ehdr));
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	free(image.bytes);
	CHECK_EQ(elf_file_each_function(file, see, &seen), 0);
	CHECK_EQ(seen.one, 1);
	CHECK_EQ(seen.one_bytes, 6);
	CHECK_EQ(seen.two, 2);
	CHECK_EQ(seen.picked, 1);
	CHECK_EQ(seen.total, 4);
	CHECK_STR(elf_file_soname(file), "libfix.so.1");
	elf_file_free(file);
}

TEST(addresses_and_text)
{
	static const uint8_t one[] = {0xb8, 1, 0, 0, 0, 0xc3};
	struct elf_file *file = NULL;
	struct seen seen = {};
	struct image image;
	uint64_t off = 1, vma = 1;
	uint8_t buf[1 << 16];
	size_t cnt;

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	free(image.bytes);
	elf_file_each_function(file, see, &seen);
	CHECK(elf_file_vma_to_off(file, seen.one_vma, &off));
	CHECK(elf_file_off_to_vma(file, off, &vma));
	CHECK_EQ(vma, seen.one_vma);
	CHECK_EQ(elf_file_read_text(file, off, buf, sizeof(one)), sizeof(one));
	CHECK(!memcmp(buf, one, sizeof(one)));
	cnt = elf_file_read_text(file, off, buf, sizeof(buf));
	CHECK_EQ(cnt, elf_file_text_room(file, vma)); /* to the segment's end */
	CHECK_EQ(cnt, elf_file_vma_room(file, vma));
	CHECK(cnt > sizeof(one) && cnt < 4096);
	CHECK_EQ(elf_file_read_text(file, 0, buf, 4), 0); /* headers are no code */
	CHECK_EQ(elf_file_text_room(file, 0), 0);
	CHECK(!elf_file_vma_to_off(file, 0x7fffffff, &off));
	CHECK(!elf_file_off_to_vma(file, UINT64_MAX, &vma));
	CHECK_EQ(vma, seen.one_vma);
	elf_file_free(file);
}

TEST(text_ends_with_the_file)
{
	struct elf_file *file = NULL;
	struct seen seen = {};
	struct image image;
	uint64_t off = 0;
	uint8_t buf[64];
	int fd = memfd_create("cut", 0);

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	elf_file_each_function(file, see, &seen);
	CHECK(elf_file_vma_to_off(file, seen.one_vma, &off));
	elf_file_free(file);
	/* Cut three bytes into the first function. */
	CHECK_EQ(write(fd, image.bytes, off + 3), off + 3);
	free(image.bytes);
	CHECK_EQ(elf_file_open(fd, "cut", &file), 0);
	CHECK_EQ(elf_file_read_text(file, off, buf, sizeof(buf)), 3);
	CHECK_EQ(elf_file_read_text(file, off + 3, buf, sizeof(buf)), 0);
	elf_file_free(file);
}

/* Slots of the library: other by the PLT, hook by the GOT. */
static int note_slot(const struct elf_dynamic_slot *slot, void *data)
{
	int *found = data;

	if (!strcmp(slot->name, "other") && slot->slot_vma && !slot->target_vma)
		*found |= 1;
	if (!strcmp(slot->name, "hook") && slot->slot_vma && !slot->target_vma)
		*found |= 2;
	return 0;
}

TEST(slots_by_name)
{
	struct elf_file *file = NULL;
	struct image image;
	int found = 0;

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(elf_file_open_memory(image.bytes, image.len, "fix", &file), 0);
	free(image.bytes);
	CHECK_EQ(elf_dynamic_each_slot(file, note_slot, &found), 0);
	CHECK_EQ(found, 3);
	elf_file_free(file);
}

/* Opening an image with the byte at `at` set to `value`. */
static int open_patched(const struct image *image, size_t at, char value)
{
	struct elf_file *file = NULL;
	char *copy = malloc(image->len);
	int ret;

	memcpy(copy, image->bytes, image->len);
	copy[at] = value;
	ret = elf_file_open_memory(copy, image->len, "patched", &file);
	free(copy);
	elf_file_free(file);
	return ret;
}

TEST(only_x86_64_programs_and_libraries)
{
	struct elf_file *file = NULL;
	struct image image;

	CHECK_EQ(build(&image), 0);
	CHECK_EQ(open_patched(&image, EI_CLASS, ELFCLASS64), 0);
	CHECK_EQ(open_patched(&image, EI_MAG0, 'x'), -ENOEXEC);
	CHECK_EQ(open_patched(&image, EI_CLASS, ELFCLASS32), -ENOEXEC);
	CHECK_EQ(open_patched(&image, EI_DATA, ELFDATA2MSB), -ENOEXEC);
	CHECK_EQ(open_patched(&image, offsetof(Elf64_Ehdr, e_machine), EM_386), -ENOEXEC);
	CHECK_EQ(open_patched(&image, offsetof(Elf64_Ehdr, e_type), ET_CORE), -ENOEXEC);
	free(image.bytes);
	CHECK_EQ(elf_file_open_memory("", 0, "empty", &file), -ENOEXEC);
	CHECK_EQ(elf_file_open_memory("\177ELF", 4, "short", &file), -ENOEXEC);
	CHECK_EQ(elf_file_open(open("/dev/null", O_RDONLY), "null", &file), -ENOEXEC);
	CHECK_EQ(elf_file_open(open("/proc/self/status", O_RDONLY), "text", &file), -ENOEXEC);
	CHECK_EQ(elf_file_open(-1, "none", &file), -EBADF);
	CHECK(!file);
}

/* Asks everything of an image; any answer will do. */
static void exercise(const char *bytes, size_t len)
{
	char *exact = malloc(len ? len : 1);
	struct elf_file *file = NULL;
	struct seen seen = {};
	uint64_t addr = 0;
	uint8_t buf[256];
	int found = 0;
	size_t cnt;

	memcpy(exact, bytes, len);
	if (!elf_file_open_memory(exact, len, "fuzzed", &file)) {
		elf_file_build_id(file, &cnt);
		elf_file_is_static(file);
		elf_file_each_function(file, see, &seen);
		elf_dynamic_each_slot(file, note_slot, &found);
		for (uint64_t at = 0; at < 0x5000; at += 0x333) {
			elf_file_off_to_vma(file, at, &addr);
			elf_file_vma_to_off(file, at, &addr);
			elf_file_read_text(file, at, buf, sizeof(buf));
		}
	}
	elf_file_free(file);
	free(exact);
}

TEST(truncated_images_are_survived)
{
	struct image image;

	CHECK_EQ(build(&image), 0);
	for (size_t len = 0; len < image.len; len += len < 512 ? 1 : 37)
		exercise(image.bytes, len);
	free(image.bytes);
}

TEST(mutated_images_are_survived)
{
	uint64_t state = 0x2545f4914f6cdd1d;
	struct image image;
	char *copy;

	CHECK_EQ(build(&image), 0);
	copy = malloc(image.len);
	for (int round = 0; round < 4000; round++) {
		memcpy(copy, image.bytes, image.len);
		for (int i = 0; i <= round % 8; i++) {
			size_t at;

			state ^= state << 13; /* xorshift64 */
			state ^= state >> 7;
			state ^= state << 17;
			/* Half of the time where headers and dynamic tables are. */
			at = state & 1 ? state >> 8 & 0x3ff : state >> 8;
			copy[at % image.len] = (char)(state >> 40);
		}
		exercise(copy, image.len);
	}
	free(copy);
	free(image.bytes);
}

TEST(cache_opens_a_file_once)
{
	struct elf_cache *cache = elf_cache_new();
	struct elf_file *first = NULL, *again = NULL, *vdso = NULL;
	struct procmaps maps = {};

	CHECK_EQ(procmaps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.cnt; i++) {
		const struct procmap *map = &maps.maps[i];
		struct elf_file *file = NULL;
		int ret = elf_cache_get(cache, getpid(), map, &file);

		CHECK((ret == 0) == (file != NULL));
		if (!strcmp(map->path, ""))
			CHECK_EQ(ret, -ENOENT);
		if (!strcmp(map->path, "[vdso]"))
			vdso = file;
		if (!first && file) {
			first = file;
			CHECK_EQ(elf_cache_get(cache, getpid(), map, &again), 0);
			CHECK(again == first);
		}
	}
	CHECK(first);
	CHECK(vdso);
	CHECK_EQ(elf_file_fd(vdso), -1);
	CHECK(elf_file_fd(first) >= 0);
	procmaps_clear(&maps);
	elf_cache_free(cache);
	elf_cache_free(NULL);
}

TEST(cache_remembers_what_is_no_elf)
{
	struct elf_cache *cache = elf_cache_new();
	int fd = memfd_create("no elf", 0);
	struct elf_file *file = NULL;
	struct procmaps maps = {};
	const struct procmap *map;
	void *page;

	CHECK_EQ(ftruncate(fd, 4096), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(page != MAP_FAILED);
	close(fd);
	CHECK_EQ(procmaps_read(getpid(), &maps), 0);
	map = procmaps_find(&maps, (uint64_t)(uintptr_t)page);
	CHECK(map);
	if (!geteuid()) { /* a memfd is deleted from the start: only root reaches it */
		CHECK_EQ(elf_cache_get(cache, getpid(), map, &file), -ENOEXEC);
		CHECK_EQ(elf_cache_get(cache, getpid(), map, &file), -ENOEXEC);
	}
	CHECK(!file);
	procmaps_clear(&maps);
	elf_cache_free(cache);
	munmap(page, 4096);
}

TEST(removes_its_files)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_EQ(system(command), 0);
}
