// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file and what debug_search found for it. Out: ELF and DWARF handles.
 *
 * libdw would look for dwz supplements by path, in our mount namespace and unproven, so each Dwarf
 * gets a supplement set here, an empty one if need be. .dwo files can be linked to their skeletons
 * only by libdw, which opens them by path as well: that is left to it where the process shares our
 * mounts, after a look at the paths it will try; elsewhere names come without the .dwo.
 *
 * Sizes in the file are not believed without limit. Knows nothing of addresses or names.
 */
#include "debug_file.h"

#include "cleanup.h"
#include "debug_search.h"
#include "elf_file.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * What compressed sections may claim to hold, summed up; files that claim more have no DWARF.
 * Debug information shrinks to a third, made-up bytes to a thousandth.
 */
#define DECOMPRESSED_MAX_BYTES	(8ULL << 30)
#define DECOMPRESSED_FREE_BYTES (64ULL << 20)
#define DECOMPRESSED_MAX_RATIO	30
/* What .gnu_debugdata may need, for its contents and for decompressing them. */
#define MINI_MAX_BYTES (256ULL << 20)

struct debug_file {
	int main_fd; /* borrowed; -1 for an image in memory */
	struct debug_part main, separate, alt, mini, empty;
	Dwarf *dwarf, *alt_dwarf, *empty_dwarf;
	bool dwarf_tried, mini_tried;
	bool our_mounts; /* the process sees files where we see them */
};

static bool has_debug_info(Elf *elf)
{
	return debug_search_section(elf, ".debug_info") ||
	       debug_search_section(elf, ".zdebug_info");
}

DEFINE_CLEANUP(debug_file, struct debug_file, debug_file_free)

int debug_file_find(const struct elf_file *file, int root_fd, struct debug_file **out)
{
	_cleanup_(cleanup_debug_file) struct debug_file *debug = calloc(1, sizeof(*debug));
	_cleanup_close_ int our_root_fd = -1;
	struct debug_roots roots;
	int err;

	if (!debug)
		return -ENOMEM;
	debug->main_fd = elf_file_fd(file);
	debug->main = debug->separate = debug->alt = DEBUG_PART_NONE;
	debug->mini = debug->empty = DEBUG_PART_NONE;
	our_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	roots = (struct debug_roots){.target = root_fd, .ours = our_root_fd};
	debug->our_mounts = debug_search_same_root(&roots);
	elf_version(EV_CURRENT);
	err = debug_search_main(file, &roots, &debug->main);
	if (err)
		return err;
	if (debug->main.elf && !has_debug_info(debug->main.elf))
		debug_search_separate(file, &debug->main, &roots, &debug->separate);
	if (debug->separate.elf)
		debug_search_alt(&debug->separate, &roots, &debug->alt);
	else if (debug->main.elf)
		debug_search_alt(&debug->main, &roots, &debug->alt);
	*out = take_ptr(debug);
	return 0;
}

void debug_file_free(struct debug_file *debug)
{
	if (!debug)
		return;
	dwarf_end(debug->dwarf);
	dwarf_end(debug->alt_dwarf);
	dwarf_end(debug->empty_dwarf);
	debug_search_clear(&debug->main);
	debug_search_clear(&debug->separate);
	debug_search_clear(&debug->alt);
	debug_search_clear(&debug->mini);
	debug_search_clear(&debug->empty);
	free(debug);
}

Elf *debug_file_main_elf(const struct debug_file *debug)
{
	return debug->main.elf;
}

Elf *debug_file_separate_elf(const struct debug_file *debug)
{
	return debug->separate.elf;
}

/*
 * Decompresses xz data into part->image and returns its length, 0 on failure. Only trying tells
 * the length. libdw uses liblzma for the same section, but its own way in (libdwfl) decompresses
 * without any limit.
 */
static size_t unxz(const Elf_Data *data, struct debug_part *part)
{
	for (size_t size = 1 << 20; size <= MINI_MAX_BYTES; size *= 2) {
		uint64_t memlimit = MINI_MAX_BYTES;
		size_t in = 0, len = 0;
		lzma_ret ret;

		free(part->image);
		part->image = malloc(size);
		if (!part->image)
			return 0;
		ret = lzma_stream_buffer_decode(&memlimit, 0, NULL, data->d_buf, &in, data->d_size,
						part->image, &len, size);
		if (ret == LZMA_OK)
			return len;
		if (ret != LZMA_BUF_ERROR)
			return 0;
	}
	return 0;
}

Elf *debug_file_mini_elf(struct debug_file *debug)
{
	Elf_Data *data;
	size_t len;

	if (debug->mini_tried || !debug->main.elf)
		return debug->mini.elf;
	debug->mini_tried = true;
	data = debug_search_data(debug->main.elf, ".gnu_debugdata");
	len = data ? unxz(data, &debug->mini) : 0;
	if (len)
		debug->mini.elf = elf_memory(debug->mini.image, len);
	return debug->mini.elf;
}

/* The uncompressed size that a section in the old format (.zdebug_*) states, or 0. */
static uint64_t zdebug_bytes(Elf_Scn *scn)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t size = 0;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4))
		return 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | ((unsigned char *)data->d_buf)[i];
	return size;
}

static bool decompression_is_sane(Elf *elf)
{
	Elf_Scn *scn = NULL;
	uint64_t sum = 0, stored = 0;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		uint64_t size = 0;
		const char *name;
		GElf_Shdr shdr;
		GElf_Chdr chdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (shdr.sh_flags & SHF_COMPRESSED)
			size = gelf_getchdr(scn, &chdr) ? chdr.ch_size : 0;
		else if (name && !strncmp(name, ".zdebug", 7))
			size = zdebug_bytes(scn);
		if (size)
			stored += shdr.sh_size;
		if (__builtin_add_overflow(sum, size, &sum) || sum > DECOMPRESSED_MAX_BYTES)
			return false;
	}
	return sum <= DECOMPRESSED_FREE_BYTES || sum / DECOMPRESSED_MAX_RATIO <= stored;
}

/*
 * libdw 0.188 takes for granted that sections of strings end with a zero byte. To be asked once
 * they are decompressed, which dwarf_begin_elf() does.
 */
static bool strings_are_terminated(Elf *elf)
{
	static const char *const names[] = {".debug_str", ".debug_line_str", ".debug_str.dwo",
					    ".zdebug_str", ".zdebug_line_str"};

	for (size_t i = 0; i < ARRAY_CNT(names); i++) {
		Elf_Scn *scn = debug_search_section(elf, names[i]);
		Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

		if (data && data->d_size &&
		    (!data->d_buf || ((char *)data->d_buf)[data->d_size - 1]))
			return false;
	}
	return true;
}

/* libdw's own would print a line and exit with a status that means something else here. */
__attribute__((noreturn)) static void out_of_memory(void)
{
	abort();
}

static Dwarf *open_dwarf(Elf *elf)
{
	Dwarf *dwarf = NULL;

	if (elf && decompression_is_sane(elf))
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (dwarf && !strings_are_terminated(elf)) {
		dwarf_end(dwarf);
		return NULL;
	}
	if (dwarf)
		dwarf_new_oom_handler(dwarf, out_of_memory);
	return dwarf;
}

/*
 * DWARF that has nothing but `strings`, which may be empty. libdw accepts no file without
 * .debug_line or .debug_info, so the image has a .debug_line of one byte.
 */
static Dwarf *open_strings(struct debug_part *part, const Elf_Data *strings)
{
	static const char names[] = "\0.debug_line\0.debug_str\0.shstrtab";
	const size_t size = strings->d_size;
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Shdr shdrs[4];
		char names[sizeof(names)];
		char strings[];
	} *image = calloc(1, sizeof(*image) + size);

	if (!image)
		return NULL;
	memcpy(image->names, names, sizeof(names));
	if (size)
		memcpy(image->strings, strings->d_buf, size);
	/* `strings` may have been the part's. */
	debug_search_clear(part);
	image->ehdr = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(__typeof__(*image), shdrs),
		.e_ehsize = sizeof(image->ehdr),
		.e_shentsize = sizeof(image->shdrs[0]),
		.e_shnum = ARRAY_CNT(image->shdrs),
		.e_shstrndx = 3,
	};
	for (size_t i = 1; i < ARRAY_CNT(image->shdrs); i++)
		image->shdrs[i] = (Elf64_Shdr){
			.sh_type = SHT_PROGBITS,
			.sh_offset = offsetof(__typeof__(*image), names),
			.sh_size = 1,
			.sh_addralign = 1,
		};
	image->shdrs[1].sh_name = 1;
	image->shdrs[2].sh_name = sizeof("\0.debug_line");
	image->shdrs[2].sh_offset = offsetof(__typeof__(*image), strings);
	image->shdrs[2].sh_size = size;
	image->shdrs[3].sh_name = sizeof("\0.debug_line\0.debug_str");
	image->shdrs[3].sh_type = SHT_STRTAB;
	image->shdrs[3].sh_size = sizeof(names);
	part->image = image;
	part->elf = elf_memory(part->image, sizeof(*image) + size);
	return open_dwarf(part->elf);
}

/* The dwz supplement. Of small programs it holds strings only, which libdw takes for no DWARF. */
static Dwarf *open_alt(struct debug_part *alt)
{
	Dwarf *dwarf = open_dwarf(alt->elf);
	Elf_Data *strings;
	GElf_Shdr shdr;
	Elf_Scn *scn;

	if (dwarf || !alt->elf || !decompression_is_sane(alt->elf))
		return dwarf;
	scn = debug_search_section(alt->elf, ".debug_str");
	if (!scn || !gelf_getshdr(scn, &shdr))
		return NULL;
	if (shdr.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
		return NULL;
	strings = elf_getdata(scn, NULL);
	return strings ? open_strings(alt, strings) : NULL;
}

Dwarf *debug_file_dwarf(struct debug_file *debug)
{
	if (debug->dwarf_tried)
		return debug->dwarf;
	debug->dwarf_tried = true;
	debug->empty_dwarf = open_strings(&debug->empty, &(Elf_Data){0});
	if (!debug->empty_dwarf)
		return NULL;
	debug->dwarf = open_dwarf(debug->separate.elf ? debug->separate.elf : debug->main.elf);
	if (!debug->dwarf)
		return NULL;
	debug->alt_dwarf = open_alt(&debug->alt);
	if (debug->alt_dwarf)
		dwarf_setalt(debug->alt_dwarf, debug->empty_dwarf);
	dwarf_setalt(debug->dwarf, debug->alt_dwarf ? debug->alt_dwarf : debug->empty_dwarf);
	return debug->dwarf;
}

/* The file that the descriptor is open on, as libdw finds it, or NULL. */
static char *path_of(int fd)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return realpath(link, NULL);
}

/* libdw opens without O_NONBLOCK: a FIFO would block us, a device might act. */
static bool is_regular_or_missing(const char *path)
{
	struct stat st;

	return stat(path, &st) ? errno == ENOENT || errno == ENOTDIR : S_ISREG(st.st_mode);
}

/* Looks at what libdw will open: the .dwo below the file's directory, then below comp_dir. */
static bool dwo_paths_are_sane(int fd, const char *dwo, const char *comp_dir)
{
	_cleanup_free_ char *self = path_of(fd), *beside = NULL, *built = NULL, *package = NULL;
	const char *comp_root;
	int dir_len;

	if (!self || !dwo)
		return false;
	dir_len = strrchr(self, '/') + 1 - self;
	comp_root = comp_dir && comp_dir[0] == '/' ? "" : self;
	if (asprintf(&beside, "%.*s%s", dwo[0] == '/' ? 0 : dir_len, self, dwo) < 0)
		beside = NULL;
	if (asprintf(&built, "%.*s%s/%s", comp_root == self ? dir_len : 0, self,
		     comp_dir ? comp_dir : "", dwo) < 0)
		built = NULL;
	/* Since 0.190. */
	if (asprintf(&package, "%s.dwp", self) < 0)
		package = NULL;
	return beside && built && package && is_regular_or_missing(beside) &&
	       is_regular_or_missing(built) && is_regular_or_missing(package);
}

bool debug_file_split_unit(const struct debug_file *debug, Dwarf_Die *cudie, Dwarf_Die *split)
{
	int fd = debug->separate.elf ? debug->separate.fd : debug->main_fd;
	Dwarf_Attribute dwo, comp_dir;
	Dwarf_Die found = {0};
	Dwarf_Half version;
	uint8_t unit_type;

	if (!debug->our_mounts || fd < 0)
		return false;
	if (!dwarf_attr(cudie, DW_AT_dwo_name, &dwo) &&
	    !dwarf_attr(cudie, DW_AT_GNU_dwo_name, &dwo))
		return false;
	if (!dwo_paths_are_sane(fd, dwarf_formstring(&dwo),
				dwarf_formstring(dwarf_attr(cudie, DW_AT_comp_dir, &comp_dir))))
		return false;
	if (dwarf_cu_info(cudie->cu, &version, &unit_type, NULL, &found, NULL, NULL, NULL) ||
	    !found.addr || !strings_are_terminated(dwarf_getelf(dwarf_cu_getdwarf(found.cu))))
		return false;
	*split = found;
	return true;
}
