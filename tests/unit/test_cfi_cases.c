// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables of files that are made for one question each: instructions and encodings of CFI that
 * compilers rarely emit, files without the usual sections, and bytes that are wrong.
 */
#include "check.h"
#include "cfi_oracle.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <time.h>

/* Assembles `source` to a shared library and opens it; NULL if that fails. */
static struct elf_file *assemble(const char *source, const char *flags)
{
	struct elf_file *file;

	scratch_write("case.s", source);
	if (!scratch_run("cc -nostdlib -shared -Wl,-z,noexecstack %s -o case.so case.s", flags) ||
	    elf_file_open(open("case.so", O_RDONLY | O_CLOEXEC), "case.so", &file))
		return NULL;
	return file;
}

struct wanted {
	const char *name;
	uint64_t vma;
};

static int find_name(const struct elf_symbol *symbol, void *data)
{
	struct wanted *wanted = data;

	if (strcmp(symbol->name, wanted->name))
		return 0;
	wanted->vma = symbol->vma;
	return 1;
}

/* The rule at `name` + skip; of no valid kind if there is no such symbol. */
static uint32_t rule_at(const struct elf_file *file, const struct cfi_table *table,
			const char *name, int skip)
{
	struct wanted wanted = {.name = name};
	uint64_t off;
	size_t hint = 0;

	if (elf_file_each_function(file, find_name, &wanted) != 1 ||
	    !elf_file_vma_to_off(file, wanted.vma + skip, &off))
		return HB_CFI_RULE(HB_CFI_KIND_CNT, 0, 0);
	return oracle_rule_at(table, &hint, off);
}

#define FUNCTION(name)                                                                             \
	".globl " name "\n.type " name ",@function\n.p2align 4\n" name ":\n.cfi_startproc\n"
#define END(name)     ".cfi_endproc\n.size " name ",.-" name "\n"
#define RULE(k, s, n) HB_CFI_RULE(HB_CFI_##k, s, n)

/* One function per family of instructions; a nop is a place where a rule can change. */
static const char instructions[] =
	".text\n" FUNCTION("plain") "nop\n.cfi_def_cfa_offset 16\n.cfi_offset 6,-16\nnop\n"
				    ".cfi_def_cfa_register 6\nnop\n.cfi_def_cfa 7,8\n"
				    ".cfi_restore 6\nnop\n" END("plain")
	/* remember, change both, restore */
	FUNCTION("remember") "nop\n.cfi_def_cfa_offset 48\n.cfi_remember_state\nnop\n"
			     ".cfi_def_cfa_offset 8\n.cfi_offset 6,-24\nnop\n.cfi_restore_state\n"
			     "nop\n" END("remember")
	/* def_cfa_sf 7,-2 (= 16); def_cfa_offset_sf -3 (= 24); offset_extended_sf 6,2 (= -16) */
	FUNCTION("signed") "nop\n.cfi_escape 0x12,7,0x7e\nnop\n.cfi_escape 0x13,0x7d\nnop\n"
			   ".cfi_escape 0x11,6,2\nnop\n" END("signed")
	/* offset_extended 6,4; restore_extended 6; undefined 6; same_value 6 */
	FUNCTION("extended") "nop\n.cfi_escape 5,6,4\nnop\n.cfi_escape 6,6\nnop\n"
			     ".cfi_undefined 6\nnop\n.cfi_same_value 6\nnop\n" END("extended")
	/* register 6,3; val_offset 6,2; val_expression 6,{lit0}; GNU_negative_offset 6,3 */
	FUNCTION("other") "nop\n.cfi_register 6,3\nnop\n.cfi_escape 0x14,6,2\nnop\n"
			  ".cfi_escape 0x16,6,1,0x30\nnop\n.cfi_escape 0x2f,6,3\nnop\n" END("other")
	/* GNU_args_size, nop, other registers: no row of their own */
	FUNCTION("silent") "nop\n.cfi_escape 0x2e,64\nnop\n.cfi_escape 0\n.cfi_offset "
			   "3,-24\nnop\n" END("silent")
	/* offsets that fit no row */
	FUNCTION("big") "nop\n.cfi_def_cfa_offset 720000\n.cfi_offset 6,-4096\nnop\n"
			".cfi_def_cfa_offset 20\nnop\n" END("big")
	/* CFA = *(rbp - 8), rbp at *rbp: realigned frames; CFA = *(rsp + 32) */
	FUNCTION("deref") "nop\n.cfi_escape 0x10,6,2,0x76,0\n.cfi_escape 0x0f,3,0x76,0x78,6\nnop\n"
			  ".cfi_escape 0x0f,3,0x77,32,6\n.cfi_same_value 6\nnop\n" END("deref")
	/* rbp at rsp + 8 with CFA = rsp + 32; then an expression that nobody emits */
	FUNCTION("expr") "nop\n.cfi_def_cfa_offset 32\n.cfi_escape 0x10,6,2,0x77,8\nnop\n"
			 ".cfi_escape 0x0f,4,0x77,8,0x77,8\nnop\n" END("expr")
	/* RA: lost, in a register, elsewhere */
	FUNCTION("ra") "nop\n.cfi_undefined 16\nnop\n.cfi_register 16,3\nnop\n.cfi_offset 16,-16\n"
		       "nop\n" END("ra")
	/* another register, advance_loc2 and 4 */
	FUNCTION("far") "nop\n.cfi_def_cfa 10,0\nnop\n.cfi_def_cfa 7,16\n.skip 300,0x90\n"
			".cfi_def_cfa_offset 24\n.skip 70000,0x90\n.cfi_def_cfa_offset "
			"32\nnop\n" END("far");

static void check_instructions(const struct elf_file *file, const struct cfi_table *table)
{
	static const struct {
		const char *name;
		int skip;
		uint32_t rule;
	} rules[] = {
		{"plain", 0, RULE(RSP, 0, 1)},
		{"plain", 1, RULE(RSP, 2, 2)},
		{"plain", 2, RULE(RBP, 2, 2)},
		{"plain", 3, RULE(RSP, 0, 1)},
		{"remember", 1, RULE(RSP, 0, 6)},
		{"remember", 2, RULE(RSP, 3, 1)},
		{"remember", 3, RULE(RSP, 0, 6)},
		{"signed", 1, RULE(RSP, 0, 2)},
		{"signed", 2, RULE(RSP, 0, 3)},
		{"signed", 3, RULE(RSP, 2, 3)},
		{"extended", 1, RULE(RSP, 4, 1)},
		{"extended", 2, RULE(RSP, 0, 1)},
		{"extended", 3, RULE(RSP, 255, 1)},
		{"extended", 4, RULE(RSP, 0, 1)},
		{"other", 1, RULE(RSP, 255, 1)},
		{"other", 2, RULE(RSP, 255, 1)},
		{"other", 3, RULE(RSP, 255, 1)},
		{"silent", 2, RULE(RSP, 0, 1)},
		{"deref", 1, RULE(DEREF_RBP, HB_CFI_SAVED_AT_RBP, -1)},
		{"deref", 2, RULE(DEREF_RSP, 0, 4)},
		{"expr", 1, RULE(RSP, 3, 4)},
		{"expr", 2, RULE(UNSUPPORTED, 0, 0)},
		{"ra", 1, RULE(STOP, 0, 0)},
		{"ra", 2, RULE(UNSUPPORTED, 0, 0)},
		{"ra", 3, RULE(UNSUPPORTED, 0, 0)},
		{"far", 1, RULE(UNSUPPORTED, 0, 0)},
		{"far", 2, RULE(RSP, 0, 2)},
		{"far", 302, RULE(RSP, 0, 3)},
		{"far", 70302, RULE(RSP, 0, 4)},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		uint32_t rule = rule_at(file, table, rules[i].name, rules[i].skip);

		if (rule != rules[i].rule)
			fprintf(stderr, "%s+%d: %#x\n", rules[i].name, rules[i].skip, rule);
		CHECK_EQ(rule, rules[i].rule);
	}
}

TEST(every_instruction)
{
	struct elf_file *file = assemble(instructions, "");
	struct cfi_table table;
	uint32_t rule;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	check_instructions(file, &table);
	rule = rule_at(file, &table, "big", 1);
	CHECK_EQ(HB_CFI_KIND(rule), HB_CFI_BIG);
	CHECK_EQ(table.bigs[HB_CFI_INDEX(rule)].cfa_off, 720000);
	CHECK_EQ(table.bigs[HB_CFI_INDEX(rule)].rbp_off, -4096);
	rule = rule_at(file, &table, "big", 2);
	CHECK_EQ(HB_CFI_KIND(rule), HB_CFI_BIG);
	CHECK_EQ(table.bigs[HB_CFI_INDEX(rule)].cfa_off, 20);
	/* The third one is `other`'s rbp, above the CFA. */
	CHECK_EQ(table.big_cnt, 3);
	CHECK_EQ(table.fde_dropped, 0);

	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf_file_elf(file));

	CHECK(cfi);
	CHECK_EQ(oracle_compare(file, &table, cfi), 0);
	dwarf_cfi_end(cfi);
	cfi_clear(&table);
	elf_file_free(file);
}

TEST(no_eh_frame_hdr)
{
	struct elf_file *file = assemble(instructions, "-Wl,--no-eh-frame-hdr");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	check_instructions(file, &table);
	cfi_clear(&table);
	elf_file_free(file);
}

TEST(debug_frame_plain_and_compressed)
{
	static const char *const flags[] = {
		"", "-Wa,--compress-debug-sections=zlib -Wl,--compress-debug-sections=zlib",
		"-Wl,--compress-debug-sections=zlib-gnu"};
	char *source = NULL;

	CHECK(asprintf(&source, ".cfi_sections .debug_frame\n%s", instructions) > 0);
	for (size_t i = 0; i < 3; i++) {
		struct elf_file *file = assemble(source, flags[i]);
		struct cfi_table table;

		CHECK(file);
		CHECK_EQ(cfi_build(file, &table), 0);
		check_instructions(file, &table);
		cfi_clear(&table);
		elf_file_free(file);
	}
	free(source);
}

/* .eh_frame speaks of one function, .debug_frame of both: the first one wins where it can. */
TEST(debug_frame_fills_holes)
{
	struct elf_file *file =
		assemble(".text\n" FUNCTION("both") "nop\n.skip 31,0x90\n" END(
				 "both") ".section .debug_frame,\"\",@progbits\n"
					 "0: .long 2f-1f\n1: .long 0xffffffff\n.byte "
					 "1,0,1,0x78,16,0x0c,7,24,0x90,1\n"
					 ".p2align 2\n2:\n"
					 ".long 4f-3f\n3: .long 0\n.quad both,64\n4:\n"
					 ".long 6f-5f\n5: .long 0\n.quad only,64\n6:\n"
					 ".text\n.p2align 6\n.globl only\n.type "
					 "only,@function\nonly: .skip 64,0x90\n"
					 ".size only,64\n",
			 "-Wl,-z,notext");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(rule_at(file, &table, "both", 1), RULE(RSP, 0, 1));
	CHECK_EQ(rule_at(file, &table, "only", 1), RULE(RSP, 0, 3));
	cfi_clear(&table);
	elf_file_free(file);
}

TEST(no_cfi_at_all)
{
	struct elf_file *file = assemble(".text\n.globl f\n.type f,@function\nf: ret\n", "");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), -ENODATA);
	elf_file_free(file);
}

TEST(outermost_functions_and_signal_return)
{
	struct elf_file *file = assemble(
		".text\n" FUNCTION("_start") "nop\n.skip 31,0x90\n" END("_start")
			FUNCTION("__clone") "nop\n.skip 31,0x90\n" END(
				"__clone") ".skip 64,0x90\n"
					   ".globl clone3\n.type clone3,@function\nclone3: .skip "
					   "24,0x90\n.size clone3,24\n"
					   ".skip 40,0x90\n.globl back\n.type back,@function\n"
					   "back: mov $15,%rax\nsyscall\n.size back,.-back\n.skip "
					   "40,0x90\n",
		"");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(rule_at(file, &table, "_start", 1), RULE(STOP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "__clone", 1), RULE(RSP, 0, 1));
	CHECK_EQ(rule_at(file, &table, "clone3", 0), RULE(STOP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "clone3", 23), RULE(STOP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "clone3", 24), RULE(GAP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "back", -1), RULE(SIGNAL, 0, 0));
	CHECK_EQ(rule_at(file, &table, "back", 8), RULE(SIGNAL, 0, 0));
	CHECK_EQ(rule_at(file, &table, "back", -2), RULE(GAP, 0, 0));
	cfi_clear(&table);
	elf_file_free(file);
}

/* A large hole with the code of another compiler in it, and one without. */
TEST(frame_pointers_in_holes)
{
	struct elf_file *file =
		assemble(".text\n" FUNCTION("f") "nop\n" END(
				 "f") ".p2align 4\n.globl framed\n"
				      ".type framed,@function\nframed:\n"
				      ".rept 100\npush %rbp\nmov %rsp,%rbp\n"
				      ".skip 1000,0x90\n.endr\n.size framed,.-framed\n" FUNCTION(
					      "g") "nop\n" END("g") ".p2align 4\n.globl bare\n"
								    ".type bare,@function\nbare:\n"
								    ".skip 100000,0x90\npush "
								    "%rbp\nmov %rsp,%rbp\n"
								    ".size bare,.-bare\n" FUNCTION(
									    "h") "nop\n" END("h"),
			 "");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(rule_at(file, &table, "framed", 0), RULE(FP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "framed", 99999), RULE(FP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "g", 0), RULE(RSP, 0, 1));
	CHECK_EQ(rule_at(file, &table, "bare", 50000), RULE(GAP, 0, 0));
	cfi_clear(&table);
	elf_file_free(file);
}

/* Of Go's code frame pointers are known, and its signal return stub is looked for. */
TEST(go_code_is_not_guessed_at)
{
	struct elf_file *file =
		assemble(".section .gopclntab,\"a\"\n.quad 0\n"
			 ".text\n.globl framed\n.type framed,@function\nframed:\n"
			 ".rept 100\npush %rbp\nmov %rsp,%rbp\n.skip 1000,0x90\n.endr\n"
			 ".globl back\n.type back,@function\nback: mov $15,%rax\nsyscall\n",
			 "");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(table.flags, HB_CFI_TABLE_FP);
	CHECK_EQ(rule_at(file, &table, "framed", 1000), RULE(GAP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "back", 0), RULE(SIGNAL, 0, 0));
	cfi_clear(&table);
	elf_file_free(file);
}

/* Linkers may put constants into the segment of the code; their bytes say nothing. */
TEST(constants_beside_code)
{
	struct elf_file *file = assemble(
		".section .rodata\n.skip 64,0x90\n.globl constant\n.type constant,@function\n"
		"constant: mov $15,%rax\nsyscall\n.size constant,.-constant\n.skip 64,0x90\n"
		".text\n" FUNCTION("f") "nop\n" END("f"),
		"-Wl,-z,noseparate-code");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(rule_at(file, &table, "f", 0), RULE(RSP, 0, 1));
	CHECK_EQ(rule_at(file, &table, "constant", 0), RULE(GAP, 0, 0));
	cfi_clear(&table);
	elf_file_free(file);
}

/* Linear in the rows of one FDE: libdw's way needs seconds for this. */
TEST(thirty_thousand_rows)
{
	struct elf_file *file = assemble(
		".text\n" FUNCTION("f") ".set i,16\n.rept 30000\nnop\n"
					".cfi_def_cfa_offset i\n.set i,i+8\n.endr\nnop\n" END("f"),
		"");
	struct timespec start, end;
	struct cfi_table table;

	CHECK(file);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	CHECK_EQ(cfi_build(file, &table), 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	CHECK(table.row_cnt >= 30000);
	CHECK((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 < 500);
	cfi_clear(&table);
	elf_file_free(file);
}

/* Bytes of case.so, owned by the caller. */
static uint8_t *read_case(size_t *len)
{
	FILE *file = fopen("case.so", "rb");
	uint8_t *bytes = malloc(1 << 20);

	*len = file && bytes ? fread(bytes, 1, 1 << 20, file) : 0;
	if (file)
		fclose(file);
	return bytes;
}

/* Opens and builds a copy of the bytes; what comes out does not matter, that it comes does. */
static int build_bytes(const uint8_t *bytes, size_t len, struct cfi_table *table)
{
	struct elf_file *file;
	int err = elf_file_open_memory(bytes, len, "bytes", &file);

	if (err)
		return err;
	err = cfi_build(file, table);
	elf_file_free(file);
	return err;
}

TEST(stripped_section_table)
{
	struct elf_file *file = assemble(instructions, ""), *stripped;
	struct cfi_table table;
	size_t len;
	uint8_t *bytes;

	CHECK(file);
	bytes = read_case(&len);
	CHECK(len > sizeof(Elf64_Ehdr));
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	((Elf64_Ehdr *)bytes)->e_shstrndx = 0;
	CHECK_EQ(elf_file_open_memory(bytes, len, "stripped", &stripped), 0);
	CHECK_EQ(cfi_build(stripped, &table), 0);
	check_instructions(file, &table);
	cfi_clear(&table);
	elf_file_free(stripped);
	elf_file_free(file);
	free(bytes);
}

/* An entry in the 64-bit form, which linkers pass on without understanding. */
TEST(sixty_four_bit_length)
{
	struct elf_file *file = assemble(
		".text\n.globl f\n.type f,@function\nf: .skip 64,0x90\n.size f,64\n"
		".section .debug_frame,\"\",@progbits\n"
		"0: .long 0xffffffff\n.quad 2f-1f\n1: .quad -1\n.byte 1,0,1,0x78,16\n"
		".byte 0x0c,7,16,0x90,1\n.p2align 3\n2:\n"
		".long 0xffffffff\n.quad 4f-3f\n3: .quad 0\n.quad f,64\n.byte 0x41,0x0e,24\n"
		".p2align 3\n4:\n",
		"-Wl,-z,notext -Wl,-Ttext=0x10000 -no-pie -Wl,--no-dynamic-linker");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(table.fde_dropped, 0);
	CHECK_EQ(rule_at(file, &table, "f", 1), RULE(RSP, 0, 3));
	cfi_clear(&table);
	elf_file_free(file);
}

TEST(unknown_instruction_drops_one_function)
{
	struct elf_file *file = assemble(
		".text\n" FUNCTION("good") "nop\n.skip 31,0x90\n" END("good")
			FUNCTION("bad") "nop\n.cfi_escape 0x3e\nnop\n.skip 30,0x90\n" END("bad")
				FUNCTION("fine") "nop\n.skip 31,0x90\n" END("fine"),
		"");
	struct cfi_table table;

	CHECK(file);
	CHECK_EQ(cfi_build(file, &table), 0);
	CHECK_EQ(table.fde_dropped, 1);
	CHECK_EQ(rule_at(file, &table, "good", 1), RULE(RSP, 0, 1));
	CHECK_EQ(rule_at(file, &table, "bad", 1), RULE(GAP, 0, 0));
	CHECK_EQ(rule_at(file, &table, "fine", 1), RULE(RSP, 0, 1));
	cfi_clear(&table);
	elf_file_free(file);
}

TEST(truncated_files_do_not_crash)
{
	struct elf_file *file = assemble(instructions, "");
	size_t len, built = 0;
	uint8_t *bytes;

	CHECK(file);
	elf_file_free(file);
	bytes = read_case(&len);
	for (size_t cut = 0; cut < len; cut += cut < 4096 ? 61 : 509) {
		struct cfi_table table;

		if (build_bytes(bytes, cut, &table))
			continue;
		cfi_clear(&table);
		built++;
	}
	free(bytes);
	CHECK(built < len);
}

/* Flips bytes of .eh_frame and .eh_frame_hdr; with a seed, so a failure can be seen again. */
TEST(mutated_tables_do_not_crash)
{
	struct elf_file *file = assemble(instructions, "");
	uint64_t random = 88172645463325252, start, end;
	uint8_t *bytes, *copy;
	size_t len, built = 0;

	CHECK(file);
	elf_file_free(file);
	bytes = read_case(&len);
	/* The two sections are a segment of their own behind the code. */
	const Elf64_Phdr *segments = (const void *)(bytes + ((Elf64_Ehdr *)bytes)->e_phoff);
	start = end = 0;
	for (int i = 0; i < ((Elf64_Ehdr *)bytes)->e_phnum; i++)
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			start = segments[i].p_offset;
	for (int i = 0; i < ((Elf64_Ehdr *)bytes)->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_offset <= start)
			end = segments[i].p_offset + segments[i].p_filesz;
	CHECK(start && end > start && end <= len);
	copy = malloc(len);
	CHECK(copy);
	for (int round = 0; round < 4000; round++) {
		struct cfi_table table;

		memcpy(copy, bytes, len);
		for (int i = 0; i <= round % 4; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[start + (random >> 8) % (end - start)] = random;
		}
		/* Every other one without sections, to take the way through the segment. */
		if (round % 2)
			((Elf64_Ehdr *)copy)->e_shoff = ((Elf64_Ehdr *)copy)->e_shnum = 0;
		if (build_bytes(copy, len, &table))
			continue;
		cfi_clear(&table);
		built++;
	}
	free(copy);
	free(bytes);
	CHECK(built > 100);
}
