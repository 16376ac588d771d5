// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: an ELF file. Out: its FDEs, each with what its CIE says (DWARF 5 section 6.4.1; LSB core
 * specification for .eh_frame). libdw splits the section into entries, everything inside an entry
 * is decoded here with checked reads.
 *
 * Knows sections and entries, not what the programs in them mean.
 */
#include "cfi_frames.h"
#include "cfi_bytes.h"
#include "elf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>

/* A compressed section claims its size; more than this is not believed. */
#define SECTION_MAX (512u << 20)

/* The bytes of the section, and what FDEs share. */
struct section {
	const unsigned char *ident; /* of the ELF file */
	Elf_Data *data;
	enum cfi_source source;
	uint64_t vma;	      /* of the first byte; 0 for .debug_frame */
	bool has_end;	      /* the data ends with the section, not somewhere behind it */
	Dwarf_Off cie_off;    /* of the CIE in `cie`; -1: none yet */
	struct cfi_frame cie; /* the fields that come from the CIE */
	bool cie_has_size;    /* augmentation 'z': FDEs tell the length of their own */
};

static Elf_Scn *find_section(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(elf, strings, header->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

bool cfi_frames_has_section(const struct elf_file *file, const char *name)
{
	GElf_Shdr header;

	return find_section(elf_file_elf(file), name, &header) != NULL;
}

/* .eh_frame of a file without sections: the header that the dynamic loader uses points at it. */
static int open_by_segment(Elf *elf, struct section *out)
{
	size_t cnt;
	GElf_Phdr hdr = {.p_type = PT_NULL}, load;
	struct cfi_bytes bytes;
	Elf_Data *data;
	uint8_t encoding;

	if (elf_getphdrnum(elf, &cnt))
		return -ENODATA;
	for (size_t i = 0; i < cnt && hdr.p_type != PT_GNU_EH_FRAME; i++)
		if (!gelf_getphdr(elf, i, &hdr))
			return -ENODATA;
	if (hdr.p_type != PT_GNU_EH_FRAME)
		return -ENODATA;
	data = elf_getdata_rawchunk(elf, hdr.p_offset, hdr.p_filesz, ELF_T_BYTE);
	if (!data || !data->d_buf || data->d_size < 4)
		return -ENODATA;
	bytes = (struct cfi_bytes){.pos = data->d_buf,
				   .end = (uint8_t *)data->d_buf + data->d_size};
	/* version, encoding of the pointer, of the count, of the table */
	if (cfi_bytes_uint(&bytes, 1) != 1)
		return -ENODATA;
	encoding = cfi_bytes_uint(&bytes, 1);
	cfi_bytes_take(&bytes, 2);
	out->vma = cfi_bytes_pointer(&bytes, encoding, hdr.p_vaddr + 4);
	if (bytes.failed)
		return -ENODATA;
	for (size_t i = 0; i < cnt; i++) {
		if (!gelf_getphdr(elf, i, &load) || load.p_type != PT_LOAD ||
		    out->vma < load.p_vaddr || out->vma - load.p_vaddr >= load.p_filesz)
			continue;
		uint64_t skip = out->vma - load.p_vaddr;

		out->data = elf_getdata_rawchunk(elf, load.p_offset + skip, load.p_filesz - skip,
						 ELF_T_BYTE);
		return out->data && out->data->d_buf ? 0 : -ENODATA;
	}
	return -ENODATA;
}

static int open_eh_frame(Elf *elf, struct section *out)
{
	GElf_Shdr header;
	Elf_Scn *section = find_section(elf, ".eh_frame", &header);

	if (!section)
		return open_by_segment(elf, out);
	out->data = elf_rawdata(section, NULL);
	out->vma = header.sh_addr;
	out->has_end = true;
	return out->data && out->data->d_buf ? 0 : -ENODATA;
}

static int open_debug_frame(Elf *elf, struct section *out)
{
	GElf_Shdr header;
	GElf_Chdr compressed;
	Elf_Scn *section = find_section(elf, ".debug_frame", &header);

	if (!section) {
		section = find_section(elf, ".zdebug_frame", &header);
		if (!section || elf_compress_gnu(section, 0, 0) < 0)
			return -ENODATA;
	} else if (header.sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(section, &compressed) || compressed.ch_size > SECTION_MAX ||
		    elf_compress(section, 0, 0) < 0)
			return -ENODATA;
	}
	out->data = elf_getdata(section, NULL);
	out->has_end = true;
	return out->data && out->data->d_buf ? 0 : -ENODATA;
}

static uint64_t vma_of(const struct section *section, const uint8_t *pos)
{
	return section->vma + (uint64_t)(pos - (const uint8_t *)section->data->d_buf);
}

/* The augmentation's letters and data. False if it has a letter that we do not know. */
static bool read_augmentation(struct section *section, const Dwarf_CIE *cie)
{
	const char *letters = cie->augmentation;
	struct cfi_bytes in = {.pos = cie->augmentation_data};

	section->cie_has_size = *letters == 'z';
	if (!section->cie_has_size)
		return !*letters;
	if (!in.pos)
		return !letters[1];
	in.end = in.pos + cie->augmentation_data_size;
	while (*++letters) {
		uint8_t encoding;

		switch (*letters) {
		case 'L':
			cfi_bytes_uint(&in, 1);
			break;
		case 'R':
			section->cie.encoding = cfi_bytes_uint(&in, 1);
			break;
		case 'P':
			/* The personality's value is of no interest, only its length. */
			encoding = cfi_bytes_uint(&in, 1) & ~(DW_EH_PE_indirect | 0x70);
			cfi_bytes_pointer(&in, encoding, 0);
			break;
		case 'S':
			section->cie.is_signal = true;
			break;
		default:
			return false;
		}
	}
	return !in.failed;
}

/* Decodes the CIE at `off` into section->cie unless it is there already. */
static int read_cie(struct section *section, Dwarf_Off off)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (section->cie_off == off)
		return 0;
	section->cie_off = -1;
	if (off >= section->data->d_size ||
	    dwarf_next_cfi(section->ident, section->data, section->source == CFI_SOURCE_EH, off,
			   &next, &entry) ||
	    entry.CIE_id != LIBDW_CIE_ID)
		return -EBADMSG;
	section->cie = (struct cfi_frame){
		.code_align = entry.cie.code_alignment_factor,
		.data_align = entry.cie.data_alignment_factor,
		.ra_is_rip = entry.cie.return_address_register == 16,
		.encoding = DW_EH_PE_absptr,
		.section_bias = vma_of(section, section->data->d_buf) -
				(uint64_t)(uintptr_t)section->data->d_buf,
		.initial = entry.cie.initial_instructions,
		.initial_end = entry.cie.initial_instructions_end,
	};
	if (!read_augmentation(section, &entry.cie))
		return -EBADMSG;
	section->cie_off = off;
	return 0;
}

static int read_fde(struct section *section, const Dwarf_FDE *fde, struct cfi_frame *frame)
{
	struct cfi_bytes in = {.pos = fde->start, .end = fde->end};
	int err = read_cie(section, fde->CIE_pointer);
	uint64_t len;

	if (err)
		return err;
	*frame = section->cie;
	frame->vma = cfi_bytes_pointer(&in, frame->encoding, vma_of(section, in.pos));
	len = cfi_bytes_pointer(&in, frame->encoding & 0x0f, 0);
	if (section->cie_has_size) {
		uint64_t skip = cfi_bytes_uleb(&in);

		cfi_bytes_take(&in, skip);
	}
	if (in.failed || __builtin_add_overflow(frame->vma, len, &frame->vma_end))
		return -EBADMSG;
	frame->program = in.pos;
	frame->program_end = in.end;
	return 0;
}

/* The section goes on behind a zero length: linkers merge sections that each end with one. */
static bool skip_terminator(const struct section *section, Dwarf_Off *off)
{
	uint32_t len;

	if (!section->has_end || section->source != CFI_SOURCE_EH ||
	    *off + sizeof(len) >= section->data->d_size)
		return false;
	memcpy(&len, (const uint8_t *)section->data->d_buf + *off, sizeof(len));
	*off += sizeof(len);
	return len == 0;
}

static int each_fde(struct section *section, int (*fn)(const struct cfi_frame *frame, void *data),
		    void *data, uint64_t *malformed)
{
	Dwarf_Off off = 0, next;

	for (;; off = next) {
		Dwarf_CFI_Entry entry;
		struct cfi_frame frame;
		int err = dwarf_next_cfi(section->ident, section->data,
					 section->source == CFI_SOURCE_EH, off, &next, &entry);

		if (err > 0) {
			if (!skip_terminator(section, &off))
				return 0;
			next = off;
			continue;
		}
		if (!err && entry.CIE_id == LIBDW_CIE_ID)
			continue;
		if (err || read_fde(section, &entry.fde, &frame)) {
			++*malformed;
			/* -1 or not ahead: the length is broken, there is no next entry. */
			if (next == (Dwarf_Off)-1 || next <= off)
				return 0;
			continue;
		}
		if (frame.vma == frame.vma_end)
			continue;
		err = fn(&frame, data);
		if (err)
			return err;
	}
}

int cfi_frames_each(const struct elf_file *file, enum cfi_source source,
		    int (*fn)(const struct cfi_frame *frame, void *data), void *data,
		    uint64_t *malformed)
{
	Elf *elf = elf_file_elf(file);
	struct section section = {.source = source, .cie_off = -1};
	int err = source == CFI_SOURCE_EH ? open_eh_frame(elf, &section)
					  : open_debug_frame(elf, &section);

	section.ident = (const unsigned char *)elf_getident(elf, NULL);
	if (err || !section.ident)
		return -ENODATA;
	return each_fde(&section, fn, data, malformed);
}
