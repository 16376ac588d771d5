// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a byte that says where, then the bytes of a section with call frame information. Out:
 * nothing, unless the table that cfi makes of it breaks its own promises, or memory is misused.
 *
 * The section goes into a small ELF file with 32 KiB of code before it, so that addresses relative
 * to themselves hit code as they do in real files.
 */
#include "table_check.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* The first byte. */
#define AS_DEBUG_FRAME 0x1 /* .debug_frame, else .eh_frame */
#define BY_SEGMENT     0x2 /* no section headers: found through PT_GNU_EH_FRAME */
#define WITH_CODE      0x4 /* the code has signal return stubs in it */

#define CODE_BYTES 0x8000

/* version, encodings of pointer (pcrel, sdata4), of the count and of the table (omitted) */
static const uint8_t frame_hdr[4] = {1, 0x1b, 0xff, 0xff};
static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";

/* What precedes the section; file offsets are addresses. */
struct head {
	Elf64_Ehdr elf;
	Elf64_Phdr load, hdr;
	uint8_t code[CODE_BYTES];
	uint8_t frame_hdr[sizeof(frame_hdr)];
	int32_t to_frame;
};

/* What follows it. */
struct tail {
	char names[sizeof(names)];
	Elf64_Shdr sections[3];
} __attribute__((packed));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void fill_code(uint8_t *code)
{
	static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	for (size_t at = 4091; at + sizeof(signal_return) < CODE_BYTES; at += 4096)
		memcpy(code + at, signal_return, sizeof(signal_return));
}

static void fill_head(struct head *head, uint8_t how, size_t frame_len)
{
	size_t hdr = offsetof(struct head, frame_hdr);

	head->elf = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = offsetof(struct head, code),
		.e_phoff = offsetof(struct head, load),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	head->load = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = sizeof(*head) + frame_len,
		.p_memsz = sizeof(*head) + frame_len,
	};
	head->hdr = (Elf64_Phdr){
		.p_type = PT_GNU_EH_FRAME,
		.p_flags = PF_R,
		.p_offset = hdr,
		.p_vaddr = hdr,
		.p_filesz = sizeof(frame_hdr) + sizeof(int32_t),
		.p_memsz = sizeof(frame_hdr) + sizeof(int32_t),
	};
	memcpy(head->frame_hdr, frame_hdr, sizeof(frame_hdr));
	head->to_frame = sizeof(*head) - offsetof(struct head, to_frame);
	if (how & WITH_CODE)
		fill_code(head->code);
	if (how & BY_SEGMENT)
		return;
	head->elf.e_shoff = sizeof(*head) + frame_len + offsetof(struct tail, sections);
	head->elf.e_shnum = 3;
	head->elf.e_shstrndx = 2;
}

static void fill_tail(struct tail *tail, uint8_t how, size_t frame_len)
{
	memcpy(tail->names, names, sizeof(names));
	memset(tail->sections, 0, sizeof(tail->sections));
	tail->sections[1] = (Elf64_Shdr){
		.sh_name = how & AS_DEBUG_FRAME ? 11 : 1,
		.sh_type = SHT_PROGBITS,
		.sh_addr = how & AS_DEBUG_FRAME ? 0 : sizeof(struct head),
		.sh_offset = sizeof(struct head),
		.sh_size = frame_len,
	};
	tail->sections[2] = (Elf64_Shdr){
		.sh_name = 24,
		.sh_type = SHT_STRTAB,
		.sh_offset = sizeof(struct head) + frame_len + offsetof(struct tail, names),
		.sh_size = sizeof(names),
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Section headers want to be aligned in memory. */
	size_t frame_len = len ? len - 1 : 0, pad = -(frame_len + sizeof(names)) & 7;
	size_t all = sizeof(struct head) + frame_len + pad + sizeof(struct tail);
	uint8_t *image;

	if (!len)
		return 0;
	image = calloc(1, all);
	if (!image)
		return 0;
	fill_head((struct head *)image, data[0], frame_len + pad);
	memcpy(image + sizeof(struct head), data + 1, frame_len);
	fill_tail((struct tail *)(image + sizeof(struct head) + frame_len + pad), data[0],
		  frame_len + pad);
	table_check_image(image, all);
	free(image);
	return 0;
}
