// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a descriptor or an image. Out: an open libelf handle, the load segments, the build id, the
 * function symbols and the bytes of the code. Everything read from the file is checked against
 * its size before use; segments are cut to the file once, at open.
 *
 * The file is mapped (libdw wants only some pages of debug sections that may be gigabytes), so
 * whoever truncates it in place while we read makes us take a SIGBUS.
 */
#include "elf_file.h"

#include "cleanup.h"
#include "elf_dynamic.h"
#include "shortage.h"
#include "vec.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

/* Out of memory: the item stays out (hh.tbl NULL) instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* The part of a PT_LOAD that is in the file. */
struct segment {
	uint64_t vma, off, bytes;
	bool exec;
};

/* A symbol name that had to be cut before its version. */
struct plain_name {
	UT_hash_handle hh;
	char name[]; /* the key */
};

struct elf_file {
	Elf *elf;
	int fd;
	char *image; /* owned copy of an image in memory, else NULL */
	size_t size_bytes;
	char *name;
	const char *soname;
	struct segment *segments;
	size_t segment_cnt;
	uint8_t build_id[ELF_FILE_BUILD_ID_MAX];
	size_t build_id_len;
	/* Behind a pointer because it grows while callers only look at symbols. */
	struct plain_name **plain_names;
};

DEFINE_CLEANUP(elf_file, struct elf_file, elf_file_free)

void elf_file_free(struct elf_file *file)
{
	struct plain_name *item, *next;

	if (!file)
		return;
	if (file->plain_names) {
		HASH_ITER(hh, *file->plain_names, item, next)
		{
			HASH_DEL(*file->plain_names, item);
			free(item);
		}
	}
	free(file->plain_names);
	elf_end(file->elf);
	cleanup_close(&file->fd);
	free(file->image);
	free(file->segments);
	free(file->name);
	free(file);
}

/* Takes fd, also on failure. NULL if out of memory. */
static struct elf_file *file_new(int fd, const char *name, size_t size_bytes)
{
	_cleanup_(cleanup_elf_file) struct elf_file *file = calloc(1, sizeof(*file));

	if (!file) {
		cleanup_close(&fd);
		return NULL;
	}
	file->fd = fd;
	file->size_bytes = size_bytes;
	file->name = strdup(name);
	file->plain_names = calloc(1, sizeof(struct plain_name *));
	if (!file->name || !file->plain_names)
		return NULL;
	return take_ptr(file);
}

static bool is_supported(Elf *elf)
{
	GElf_Ehdr ehdr;

	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	       ehdr.e_ident[EI_CLASS] == ELFCLASS64 && ehdr.e_ident[EI_DATA] == ELFDATA2LSB &&
	       ehdr.e_machine == EM_X86_64 && (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN);
}

/* Adds the part of `phdr` that the file really holds. 0 or -ENOMEM. */
static int add_segment(struct elf_file *file, const GElf_Phdr *phdr, size_t *cap)
{
	struct segment seg = {phdr->p_vaddr, phdr->p_offset, phdr->p_filesz, phdr->p_flags & PF_X};
	int ret;

	if (seg.off >= file->size_bytes)
		return 0;
	if (seg.bytes > file->size_bytes - seg.off)
		seg.bytes = file->size_bytes - seg.off;
	if (seg.bytes > phdr->p_memsz)
		seg.bytes = phdr->p_memsz;
	if (seg.bytes > UINT64_MAX - seg.vma)
		return 0;
	ret = vec_reserve(&file->segments, cap, file->segment_cnt + 1);
	if (ret)
		return ret;
	file->segments[file->segment_cnt++] = seg;
	return 0;
}

/* Takes the build id out of the notes in `data`, if it is there. */
static void find_build_id(struct elf_file *file, Elf_Data *data)
{
	size_t off = 0, next, name_off, desc_off;
	GElf_Nhdr nhdr;

	/* Every note is longer than nothing, so `off` grows. */
	while (!file->build_id_len && data &&
	       (next = gelf_getnote(data, off, &nhdr, &name_off, &desc_off)) > off) {
		const char *bytes = data->d_buf;

		off = next;
		if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name_off, "GNU", sizeof("GNU")) ||
		    nhdr.n_descsz > sizeof(file->build_id))
			continue;
		memcpy(file->build_id, bytes + desc_off, nhdr.n_descsz);
		file->build_id_len = nhdr.n_descsz;
	}
}

static Elf_Type note_type(uint64_t align)
{
	return align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
}

static int read_segments(struct elf_file *file)
{
	size_t phdr_cnt, cap = 0;
	GElf_Phdr phdr;

	if (elf_getphdrnum(file->elf, &phdr_cnt))
		return -ENOEXEC;
	for (size_t i = 0; i < phdr_cnt; i++) {
		int ret = 0;

		if (!gelf_getphdr(file->elf, (int)i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type == PT_LOAD)
			ret = add_segment(file, &phdr, &cap);
		if (phdr.p_type == PT_NOTE && phdr.p_offset < file->size_bytes &&
		    phdr.p_filesz <= file->size_bytes - phdr.p_offset)
			find_build_id(file,
				      elf_getdata_rawchunk(file->elf, (int64_t)phdr.p_offset,
							   phdr.p_filesz, note_type(phdr.p_align)));
		if (ret)
			return ret;
	}
	return 0;
}

/* For files whose notes no segment covers (debug files). */
static void read_note_sections(struct elf_file *file)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (!file->build_id_len && (scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE)
			find_build_id(file, elf_getdata(scn, NULL));
}

static int read_headers(struct elf_file *file)
{
	int ret;

	if (!file->elf || !is_supported(file->elf))
		return -ENOEXEC;
	ret = read_segments(file);
	if (ret)
		return ret;
	read_note_sections(file);
	file->soname = elf_dynamic_soname(file);
	return 0;
}

/* What both ways to open have in common; `fd` -1: the image. */
static int file_init(struct elf_file *file, int fd)
{
	int ret, shortage;

	elf_version(EV_CURRENT);
	shortage_watch();
	if (fd < 0)
		file->elf = elf_memory(file->image, file->size_bytes);
	else
		file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	ret = read_headers(file);
	shortage = shortage_seen();
	return shortage ? shortage : ret;
}

int elf_file_open(int fd, const char *name, struct elf_file **out)
{
	_cleanup_(cleanup_elf_file) struct elf_file *file = NULL;
	_cleanup_close_ int owned = fd;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	file = file_new(take_fd(&owned), name, (size_t)st.st_size);
	if (!file)
		return -ENOMEM;
	ret = file_init(file, fd);
	if (ret)
		return ret;
	*out = take_ptr(file);
	return 0;
}

int elf_file_open_memory(const void *image, size_t size_bytes, const char *name,
			 struct elf_file **out)
{
	_cleanup_(cleanup_elf_file) struct elf_file *file = file_new(-1, name, size_bytes);
	int ret;

	if (!file)
		return -ENOMEM;
	file->image = malloc(size_bytes ? size_bytes : 1);
	if (!file->image)
		return -ENOMEM;
	memcpy(file->image, image, size_bytes);
	ret = file_init(file, -1);
	if (ret)
		return ret;
	*out = take_ptr(file);
	return 0;
}

Elf *elf_file_elf(const struct elf_file *file)
{
	return file->elf;
}

int elf_file_fd(const struct elf_file *file)
{
	return file->fd;
}

const char *elf_file_name(const struct elf_file *file)
{
	return file->name;
}

const char *elf_file_soname(const struct elf_file *file)
{
	return file->soname;
}

const uint8_t *elf_file_build_id(const struct elf_file *file, size_t *len)
{
	*len = file->build_id_len;
	return file->build_id_len ? file->build_id : NULL;
}

/* The segment that holds `addr` in field `base`; executable ones first. */
static const struct segment *find_segment(const struct elf_file *file, uint64_t addr, bool by_vma)
{
	const struct segment *found = NULL;

	for (size_t i = 0; i < file->segment_cnt; i++) {
		const struct segment *seg = &file->segments[i];
		uint64_t base = by_vma ? seg->vma : seg->off;

		if (addr >= base && addr - base < seg->bytes &&
		    (!found || (seg->exec && !found->exec)))
			found = seg;
	}
	return found;
}

bool elf_file_off_to_vma(const struct elf_file *file, uint64_t off, uint64_t *vma)
{
	const struct segment *seg = find_segment(file, off, false);

	if (!seg)
		return false;
	*vma = off - seg->off + seg->vma;
	return true;
}

bool elf_file_vma_to_off(const struct elf_file *file, uint64_t vma, uint64_t *off)
{
	const struct segment *seg = find_segment(file, vma, true);

	if (!seg)
		return false;
	*off = vma - seg->vma + seg->off;
	return true;
}

uint64_t elf_file_vma_room(const struct elf_file *file, uint64_t vma)
{
	const struct segment *seg = find_segment(file, vma, true);

	return seg ? seg->bytes - (vma - seg->vma) : 0;
}

uint64_t elf_file_text_room(const struct elf_file *file, uint64_t vma)
{
	const struct segment *seg = find_segment(file, vma, true);

	return seg && seg->exec ? seg->bytes - (vma - seg->vma) : 0;
}

bool elf_file_is_static(const struct elf_file *file)
{
	size_t phdr_cnt;
	GElf_Phdr phdr;

	if (elf_getphdrnum(file->elf, &phdr_cnt))
		return true;
	for (size_t i = 0; i < phdr_cnt; i++)
		if (gelf_getphdr(file->elf, (int)i, &phdr) &&
		    (phdr.p_type == PT_INTERP || phdr.p_type == PT_DYNAMIC))
			return false;
	return true;
}

size_t elf_file_read_text(const struct elf_file *file, uint64_t off, void *buf, size_t len)
{
	const struct segment *seg = find_segment(file, off, false);
	size_t cnt = 0;

	if (!seg || !seg->exec)
		return 0;
	if (len > seg->bytes - (off - seg->off))
		len = seg->bytes - (off - seg->off);
	if (file->image) {
		memcpy(buf, file->image + off, len);
		return len;
	}
	while (cnt < len) {
		ssize_t got = pread(file->fd, (char *)buf + cnt, len - cnt, (off_t)(off + cnt));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		cnt += (size_t)got;
	}
	return cnt;
}

/* `name` without "@VERSION"; kept with the file, so that it lives as long. NULL: no memory. */
static const char *without_version(const struct elf_file *file, const char *name)
{
	const char *at = strchr(name + 1, '@');
	struct plain_name *item;
	size_t len;

	if (!at)
		return name;
	len = (size_t)(at - name);
	HASH_FIND(hh, *file->plain_names, name, len, item);
	if (item)
		return item->name;
	item = calloc(1, sizeof(*item) + len + 1);
	if (!item)
		return NULL;
	memcpy(item->name, name, len);
	HASH_ADD(hh, *file->plain_names, name, len, item);
	if (item->hh.tbl)
		return item->name;
	free(item);
	return NULL;
}

static bool is_function(const Elf64_Sym *sym)
{
	unsigned char type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF &&
	       sym->st_shndx != SHN_ABS;
}

static int each_in_table(const struct elf_file *file, const struct elf_dynamic_symtab *table,
			 int (*fn)(const struct elf_symbol *symbol, void *data), void *data)
{
	for (size_t i = 0; i < table->cnt; i++) {
		const Elf64_Sym *sym = &table->syms[i];
		const char *name = elf_dynamic_name(table, sym->st_name);
		struct elf_symbol symbol = {
			.vma = sym->st_value,
			.size_bytes = sym->st_size,
			.ifunc = ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC,
		};
		int ret;

		if (!is_function(sym) || !*name)
			continue;
		symbol.name = without_version(file, name);
		if (!symbol.name)
			return -ENOMEM;
		ret = fn(&symbol, data);
		if (ret)
			return ret;
	}
	return 0;
}

/* The symbol table in section `scn` with the strings it links to; false if either is unusable. */
static bool section_symtab(const struct elf_file *file, Elf_Scn *scn, const GElf_Shdr *shdr,
			   struct elf_dynamic_symtab *out)
{
	Elf_Data *syms = elf_getdata(scn, NULL);
	Elf_Data *strs = elf_rawdata(elf_getscn(file->elf, shdr->sh_link), NULL);
	const char *end;

	if (!syms || !syms->d_buf || syms->d_type != ELF_T_SYM || !strs || !strs->d_buf)
		return false;
	end = memrchr(strs->d_buf, '\0', strs->d_size);
	if (!end)
		return false;
	*out = (struct elf_dynamic_symtab){
		.syms = syms->d_buf,
		.cnt = syms->d_size / sizeof(Elf64_Sym),
		.strs = strs->d_buf,
		.strs_bytes = (size_t)(end - (const char *)strs->d_buf) + 1,
	};
	return true;
}

/* elf_file_each_function() without its view on what libelf keeps back. */
static int each_function(const struct elf_file *file,
			 int (*fn)(const struct elf_symbol *symbol, void *data), void *data)
{
	struct elf_dynamic_symtab table;
	bool have_dynsym = false;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(file->elf, scn))) {
		int ret;

		if (!gelf_getshdr(scn, &shdr) ||
		    (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM) ||
		    !section_symtab(file, scn, &shdr, &table))
			continue;
		have_dynsym |= shdr.sh_type == SHT_DYNSYM;
		ret = each_in_table(file, &table, fn, data);
		if (ret)
			return ret;
	}
	if (have_dynsym || elf_dynamic_symtab(file, &table))
		return 0;
	return each_in_table(file, &table, fn, data);
}

int elf_file_each_function(const struct elf_file *file,
			   int (*fn)(const struct elf_symbol *symbol, void *data), void *data)
{
	int ret, shortage;

	shortage_watch();
	ret = each_function(file, fn, data);
	shortage = shortage_seen();
	return ret || !shortage ? ret : shortage;
}
