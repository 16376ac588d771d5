// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damaged .eh_frame: five functions, and one field of one entry overwritten. What is wrong is
 * counted, what is right beside it stays, and nothing is read outside (the sanitizers watch).
 */
#include "check.h"
#include "cfi.h"
#include "elf_file.h"
#include "scratch.h"

#include <errno.h>
#include <gelf.h>

#define FUNCTION_CNT 5
#define FUNCTION_LEN 32

/* A library in memory, its section, and the entries in it: a CIE and its FDEs. */
struct damaged {
	uint8_t *bytes;
	size_t len;
	uint8_t *section;
	size_t section_len;
	uint8_t *cie;
	uint8_t *fdes[FUNCTION_CNT];
	uint64_t code_off; /* of the first function */
};

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* The functions and nothing else, so that the section is theirs alone. */
static bool make_library(void)
{
	scratch_write("five.s", ".text\n.p2align 5\n"
				".rept 5\n.cfi_startproc\nnop\n.cfi_def_cfa_offset 16\n"
				".skip 31,0x90\n.cfi_endproc\n.endr\n");
	return scratch_run("cc -nostdlib -shared -Wl,-z,noexecstack -Wl,--build-id=none "
			   "-o five.so five.s");
}

static bool read_library(struct damaged *out)
{
	FILE *file = fopen("five.so", "rb");

	*out = (struct damaged){.bytes = malloc(1 << 20)};
	if (file && out->bytes)
		out->len = fread(out->bytes, 1, 1 << 20, file);
	if (file)
		fclose(file);
	return out->len > 0;
}

/* Finds the section and its entries; false if the library is not as it is meant to be. */
static bool find_entries(struct damaged *damaged)
{
	const Elf64_Ehdr *header = (const void *)damaged->bytes;
	const Elf64_Shdr *sections = (const void *)(damaged->bytes + header->e_shoff);
	const char *names = (const char *)damaged->bytes + sections[header->e_shstrndx].sh_offset;
	uint8_t *at;
	size_t fde = 0;

	for (int i = 0; i < header->e_shnum; i++) {
		const char *name = names + sections[i].sh_name;

		if (!strcmp(name, ".eh_frame")) {
			damaged->section = damaged->bytes + sections[i].sh_offset;
			damaged->section_len = sections[i].sh_size;
		} else if (!strcmp(name, ".text")) {
			damaged->code_off = sections[i].sh_offset;
		}
	}
	if (!damaged->section || !damaged->code_off)
		return false;
	at = damaged->section;
	while (at < damaged->section + damaged->section_len && get32(at)) {
		if (!get32(at + 4))
			damaged->cie = at;
		else if (fde < FUNCTION_CNT)
			damaged->fdes[fde++] = at;
		at += 4 + get32(at);
	}
	return damaged->cie == damaged->section && fde == FUNCTION_CNT;
}

static bool damaged_make(struct damaged *out)
{
	return make_library() && read_library(out) && find_entries(out);
}

/*
 * Which of the functions have their rule in the table of the bytes as they are now: a letter each,
 * or '.'. "malformed" if no entry is of use, "none" if there is none. *dropped is the number of
 * malformed entries where there is a table.
 */
static const char *whole_functions(const struct damaged *damaged, uint64_t *dropped)
{
	static char text[FUNCTION_CNT + 1];
	struct cfi_table table;
	struct elf_file *file;
	int err;

	*dropped = 0;
	if (elf_file_open_memory(damaged->bytes, damaged->len, "damaged", &file))
		return "no file";
	err = cfi_build(file, &table);
	elf_file_free(file);
	if (err)
		return err == -EBADMSG ? "malformed" : err == -ENODATA ? "none" : "error";
	for (size_t i = 0; i < FUNCTION_CNT; i++) {
		uint64_t off = damaged->code_off + i * FUNCTION_LEN + 1;
		uint32_t rule = 0;

		for (size_t row = 0; row < table.row_cnt && table.rows[row].off <= off; row++)
			rule = table.rows[row].rule;
		text[i] = rule == HB_CFI_RULE(HB_CFI_RSP, 0, 2) ? 'a' + i : '.';
	}
	*dropped = table.fde_dropped;
	cfi_clear(&table);
	return text;
}

/* CHECKs that after `change` the functions of `whole` are right and `cnt` entries are counted. */
#define CHECK_DAMAGE(change, whole, cnt)                                                           \
	do {                                                                                       \
		struct damaged d;                                                                  \
		uint64_t dropped;                                                                  \
                                                                                                   \
		CHECK(damaged_make(&d));                                                           \
		change;                                                                            \
		CHECK_STR(whole_functions(&d, &dropped), whole);                                   \
		CHECK_EQ(dropped, cnt);                                                            \
		free(d.bytes);                                                                     \
	} while (0)

/* Fields of an entry: length, CIE pointer; of an FDE: start, length, length of augmentation. */
#define CIE_POINTER	 4
#define FDE_START	 8
#define FDE_LEN		 12
#define FDE_AUGMENTATION 16
#define FDE_PROGRAM	 17
/* version, "zR", alignments 1 and -8, register 16: then the augmentation's length, its encoding */
#define CIE_LETTERS	 9
#define CIE_AUGMENTATION 15
#define CIE_ENCODING	 16

TEST(undamaged)
{
	CHECK_DAMAGE((void)0, "abcde", 0);
}

/* Behind a broken length there is no next entry: what stands there is lost, and counted as one. */
TEST(length_beyond_the_section)
{
	CHECK_DAMAGE(put32(d.fdes[2], 0x7fffffff), "ab...", 1);
	CHECK_DAMAGE(put32(d.fdes[2], 0xfffffff0), "ab...", 1);
	CHECK_DAMAGE(put32(d.fdes[4], d.section_len), "abcd.", 1);
}

/* The 64-bit form, with a length that wraps around the address space. */
TEST(length_that_wraps)
{
	CHECK_DAMAGE(memset(d.fdes[2], 0xff, 12), "ab...", 1);
}

/* Too short for its own fields: that one is lost, and what stands behind is read out of step. */
TEST(length_that_is_too_small)
{
	for (uint32_t len = 1; len < 12; len++) {
		struct damaged d;
		uint64_t dropped;
		const char *whole;

		CHECK(damaged_make(&d));
		put32(d.fdes[2], len);
		whole = whole_functions(&d, &dropped);
		CHECK(!strncmp(whole, "ab.", 3));
		CHECK(dropped >= 1);
		free(d.bytes);
	}
}

/* Without a first entry there is nothing that could be found. */
TEST(length_of_the_cie)
{
	CHECK_DAMAGE(put32(d.cie, 0x7fffffff), "malformed", 0);
}

TEST(augmentation_beyond_the_entry)
{
	CHECK_DAMAGE(d.fdes[2][FDE_AUGMENTATION] = 0x7f, "ab.de", 1);
	/* A number without an end. */
	CHECK_DAMAGE(memset(d.fdes[2] + FDE_AUGMENTATION, 0xff, 4 + get32(d.fdes[2]) - 16), "ab.de",
		     1);
	CHECK_DAMAGE(d.cie[CIE_AUGMENTATION] = 0x7f, "malformed", 0);
}

TEST(letters_and_encodings_that_nobody_knows)
{
	CHECK_DAMAGE(d.cie[CIE_LETTERS + 1] = 'X', "malformed", 0);
	CHECK_DAMAGE(d.cie[CIE_ENCODING] = 0x0d, "malformed", 0);
}

/* The pointer counts back from itself: 4 is the entry that it is in. */
TEST(entry_that_is_its_own_cie)
{
	CHECK_DAMAGE(put32(d.fdes[2] + CIE_POINTER, 4), "ab.de", 1);
}

TEST(fde_as_a_cie)
{
	CHECK_DAMAGE(put32(d.fdes[2] + CIE_POINTER, d.fdes[2] + CIE_POINTER - d.fdes[1]), "ab.de",
		     1);
	/* Two that name each other. */
	CHECK_DAMAGE((put32(d.fdes[2] + CIE_POINTER, d.fdes[2] + CIE_POINTER - d.fdes[3]),
		      put32(d.fdes[3] + CIE_POINTER, d.fdes[3] + CIE_POINTER - d.fdes[2])),
		     "ab..e", 2);
}

TEST(cie_outside_the_section)
{
	CHECK_DAMAGE(put32(d.fdes[2] + CIE_POINTER, 0x7fffffff), "ab.de", 1);
	CHECK_DAMAGE(put32(d.fdes[2] + CIE_POINTER, 0xffff0000), "ab.de", 1);
}

TEST(unknown_instruction)
{
	CHECK_DAMAGE(d.fdes[2][FDE_PROGRAM] = 0x3e, "ab.de", 1);
}

/* The first of two that speak of the same code is believed there. */
TEST(overlapping_functions)
{
	/* d begins in the middle of c: its own part is its own still. */
	CHECK_DAMAGE((put32(d.fdes[3] + FDE_START, get32(d.fdes[3] + FDE_START) - 16),
		      put32(d.fdes[3] + FDE_LEN, FUNCTION_LEN + 16)),
		     "abcde", 0);
	/* d says what c says, and nothing is said of d. */
	CHECK_DAMAGE(put32(d.fdes[3] + FDE_START, get32(d.fdes[3] + FDE_START) - FUNCTION_LEN),
		     "abc.e", 1);
	/* b claims all that follows. */
	CHECK_DAMAGE(put32(d.fdes[1] + FDE_LEN, 4 * FUNCTION_LEN), "abcde", 3);
}

/* Code that the file does not hold is no error: linkers throw functions away. */
TEST(functions_without_code)
{
	CHECK_DAMAGE(put32(d.fdes[2] + FDE_LEN, 0x7fffffff), "ab.de", 0);
	CHECK_DAMAGE(put32(d.fdes[2] + FDE_START, 0x10000000), "ab.de", 0);
}

/* The file ends anywhere in the section: without section headers, as those are behind it. */
TEST(section_that_ends_early)
{
	for (size_t cut = 0;; cut++) {
		struct damaged d;
		uint64_t dropped;
		const char *whole;
		size_t kept;

		CHECK(damaged_make(&d));
		if (cut > d.section_len) {
			free(d.bytes);
			break;
		}
		kept = d.section - d.bytes + cut;
		((Elf64_Ehdr *)d.bytes)->e_shoff = ((Elf64_Ehdr *)d.bytes)->e_shnum = 0;
		((Elf64_Ehdr *)d.bytes)->e_shstrndx = 0;
		/* A block of its own, so that a read behind its end is seen. */
		d.bytes = realloc(d.bytes, kept);
		CHECK(d.bytes);
		d.len = kept;
		whole = whole_functions(&d, &dropped);
		CHECK(strcmp(whole, "no file") && strcmp(whole, "error"));
		CHECK(dropped <= 1);
		free(d.bytes);
	}
}
