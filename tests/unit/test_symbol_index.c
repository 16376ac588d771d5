// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbol_index, alone and as symbolize uses it where there is no DWARF: which of several symbols
 * names an address, how far a symbol reaches, and what stripped files still say.
 */
#include "check.h"
#include "elf_file.h"
#include "scratch.h"
#include "symbol_index.h"
#include "symbolize.h"

#include <fcntl.h>
#include <sys/auxv.h>

/* Functions of every kind, in assembly since there each byte can be told. */
static const char layout_source[] = "	.text\n"
				    "	.globl sized\n"
				    "	.type sized, @function\n"
				    "sized:	.fill 16, 1, 0x90\n"
				    "	.size sized, 16\n"
				    "	.globl gap\n"
				    "	.set gap, .\n" /* no type: a place in the gap */
				    "	.type gap, @object\n"
				    "	.fill 16, 1, 0x90\n"
				    "	.globl unsized\n"
				    "	.type unsized, @function\n"
				    "unsized: .fill 16, 1, 0x90\n"
				    "	.globl outer\n"
				    "	.type outer, @function\n"
				    "outer:	.fill 8, 1, 0x90\n"
				    "label:	.fill 4, 1, 0x90\n"
				    "	.type nested, @function\n"
				    "nested: .fill 4, 1, 0x90\n"
				    "	.size nested, 4\n"
				    "	.fill 16, 1, 0x90\n"
				    "	.size outer, 32\n"
				    /* aliases */
				    "	.globl beta, alpha, __alpha, _gamma\n"
				    "	.weak omega\n"
				    "	.type beta, @function\n"
				    "	.type alpha, @function\n"
				    "	.type __alpha, @function\n"
				    "	.type _gamma, @function\n"
				    "	.type omega, @function\n"
				    "	.type aaa_local, @function\n"
				    "alpha:\n"
				    "__alpha:\n"
				    "aaa_local:\n"
				    "beta:	.fill 16, 1, 0x90\n"
				    "	.size alpha, 16\n"
				    "	.size beta, 16\n"
				    "	.size __alpha, 16\n"
				    "	.size aaa_local, 16\n"
				    "_gamma:\n"
				    "omega:	.fill 16, 1, 0x90\n"
				    "	.size _gamma, 16\n"
				    "	.size omega, 16\n"
				    "	.globl _ZN, _ZNgarbage\n"
				    "	.type _ZN, @function\n"
				    "	.type _ZNgarbage, @function\n"
				    "_ZN:	.fill 16, 1, 0x90\n"
				    "	.size _ZN, 16\n"
				    "_ZNgarbage: .fill 16, 1, 0x90\n"
				    "	.size _ZNgarbage, 16\n"
				    "	.globl last\n"
				    "	.type last, @function\n"
				    "last:	.fill 16, 1, 0x90\n"
				    "	.section .other, \"ax\", @progbits\n"
				    "	.p2align 6\n"
				    "	.globl other_begin\n"
				    "other_begin: .fill 16, 1, 0x90\n"
				    "	.section .note.GNU-stack, \"\", @progbits\n";

static const char program_source[] = "static __attribute__((noinline)) int hidden(int x)\n"
				     "{ __asm__ volatile(\"\"); return x + 1; }\n"
				     "__attribute__((noinline)) int exported(int x)\n"
				     "{ return hidden(x) + 1; }\n"
				     "int main(void) { return exported(1); }\n";

/* The name at `vma` of the file at `path`, without DWARF; "" if none. Lives until the next. */
static const char *name_at(const char *path, uint64_t vma)
{
	static char name[256];
	struct symbolizer *symbolizer = symbolizer_new();
	struct symbolize_result result = {0};
	struct elf_file *file = NULL;

	name[0] = '\0';
	if (symbolizer && !elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file) &&
	    !symbolizer_lookup(symbolizer, file, vma, &result) && result.cnt)
		snprintf(name, sizeof(name), "%s", result.frames[0].name);
	symbolizer_free(symbolizer);
	elf_file_free(file);
	return name;
}

/* The same at an offset from `symbol` of the layout above. */
static const char *layout_at(const char *symbol, uint64_t off)
{
	return name_at("layout", scratch_nm("layout", symbol) + off);
}

static bool build_layout(void)
{
	scratch_write("layout.s", layout_source);
	return scratch_run("gcc -nostdlib -shared -Wl,-z,noexecstack layout.s -o layout");
}

TEST(size_is_the_limit)
{
	CHECK(build_layout());
	CHECK_STR(layout_at("sized", 0), "sized");
	CHECK_STR(layout_at("sized", 15), "sized");
	CHECK_STR(layout_at("sized", 16), "");
	CHECK_STR(layout_at("sized", 31), "");
}

TEST(unsized_reaches_the_next_symbol)
{
	CHECK(build_layout());
	CHECK_STR(layout_at("unsized", 0), "unsized");
	CHECK_STR(layout_at("unsized", 15), "unsized");
	CHECK_STR(layout_at("unsized", 16), "outer");
}

TEST(sized_symbol_wins_over_a_nearer_label)
{
	CHECK(build_layout());
	CHECK_STR(layout_at("label", 0), "outer");
	CHECK_STR(layout_at("label", 3), "outer");
	CHECK_STR(layout_at("nested", 0), "nested");
	CHECK_STR(layout_at("nested", 3), "nested");
	CHECK_STR(layout_at("nested", 4), "outer");
	CHECK_STR(layout_at("outer", 31), "outer");
}

TEST(one_alias_is_chosen_for_good)
{
	CHECK(build_layout());
	/* Global before local, then fewer underscores, then the alphabet. */
	CHECK_STR(layout_at("beta", 0), "alpha");
	CHECK_STR(layout_at("beta", 15), "alpha");
	CHECK_STR(layout_at("_gamma", 1), "omega");
}

TEST(garbage_that_looks_mangled_stays_raw)
{
	CHECK(build_layout());
	CHECK_STR(layout_at("_ZN", 0), "_ZN");
	CHECK_STR(layout_at("_ZNgarbage", 0), "_ZNgarbage");
}

TEST(symbols_end_with_their_section)
{
	uint64_t other;

	CHECK(build_layout());
	CHECK_STR(layout_at("last", 15), "last");
	CHECK_STR(layout_at("last", 16), "");
	other = scratch_nm("layout", "other_begin");
	CHECK_STR(name_at("layout", other), "other_begin");
	CHECK_STR(name_at("layout", other + 16), "");
	CHECK_STR(name_at("layout", other - 1), "");
	CHECK_STR(name_at("layout", other + (1 << 20)), "");
	CHECK_STR(name_at("layout", 0), "");
	CHECK_STR(name_at("layout", UINT64_MAX), "");
}

TEST(stripped_library_has_its_dynamic_symbols)
{
	uint64_t exported, hidden;

	scratch_write("program.c", program_source);
	CHECK(scratch_run("gcc -O2 -fPIC -shared program.c -o library"));
	exported = scratch_nm("library", "exported");
	hidden = scratch_nm("library", "hidden");
	CHECK(exported && hidden);
	CHECK_STR(name_at("library", hidden), "hidden");
	CHECK(scratch_run("strip library"));
	CHECK_STR(name_at("library", exported + 1), "exported");
	CHECK_STR(name_at("library", hidden), "");
}

TEST(library_without_section_headers)
{
	uint64_t exported;

	if (!scratch_have("python3"))
		return;
	scratch_write("program.c", program_source);
	CHECK(scratch_run("gcc -O2 -fPIC -shared program.c -o library"));
	exported = scratch_nm("library", "exported");
	CHECK(scratch_run("python3 -c \"d = bytearray(open('library', 'rb').read()); "
			  "d[40:48] = bytes(8); d[58:64] = bytes(6); "
			  "open('library', 'wb').write(d)\""));
	CHECK_STR(name_at("library", exported + 1), "exported");
}

TEST(stripped_program_has_no_names)
{
	uint64_t vma;

	scratch_write("program.c", program_source);
	CHECK(scratch_run("gcc -O2 program.c -o program"));
	vma = scratch_nm("program", "exported");
	CHECK(scratch_run("strip program"));
	CHECK_STR(name_at("program", vma), "");
}

TEST(versioned_symbols_lose_their_version)
{
	scratch_write("program.c", "__asm__(\".symver versioned_v1, versioned@@VERSION_1\");\n"
				   "__attribute__((used)) int versioned_v1(void) { return 1; }\n");
	scratch_write("program.map", "VERSION_1 { global: versioned; local: *; };\n");
	CHECK(scratch_run("gcc -O2 -fPIC -shared -Wl,--version-script=program.map program.c "
			  "-o library"));
	CHECK_STR(name_at("library", scratch_nm("library", "versioned_v1")), "versioned");
}

/* lld folds equal functions: two names for one address, and DWARF of one of them or both. */
TEST(folded_functions_have_one_name)
{
	static const char source[] =
		"volatile int sink;\n"
		"__attribute__((noinline)) void zeta(void) { sink = 1; sink = 2; sink = 3; }\n"
		"__attribute__((noinline)) void eta(void) { sink = 1; sink = 2; sink = 3; }\n"
		"int main(void) { zeta(); eta(); return 0; }\n";
	char first[64];
	uint64_t vma;

	if (!scratch_have("clang ld.lld"))
		return;
	scratch_write("folded.c", source);
	CHECK(scratch_run("clang -g -O1 -ffunction-sections -fuse-ld=lld -Wl,--icf=all folded.c "
			  "-o folded"));
	vma = scratch_nm("folded", "zeta");
	CHECK(vma && vma == scratch_nm("folded", "eta"));
	snprintf(first, sizeof(first), "%s", name_at("folded", vma + 3));
	CHECK(!strcmp(first, "eta") || !strcmp(first, "zeta"));
	for (int i = 0; i < 10; i++)
		CHECK_STR(name_at("folded", vma + i), first);
	CHECK(scratch_run("strip -g folded"));
	CHECK_STR(name_at("folded", vma + 3), "eta");
}

TEST(image_in_memory)
{
	const unsigned char *image = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
	struct symbol_index *index = symbol_index_new();
	struct elf_file *file = NULL;
	const Elf64_Ehdr *ehdr = (const void *)image;
	size_t named = 0;

	CHECK(index);
	if (!image) {
		symbol_index_free(index);
		check_skip("needs a vDSO");
		return;
	}
	CHECK(!elf_file_open_memory(image, ehdr->e_shoff + ehdr->e_shnum * ehdr->e_shentsize,
				    "[vdso]", &file));
	CHECK(!symbol_index_add_elf(index, elf_file_elf(file)));
	symbol_index_finish(index);
	for (uint64_t vma = 0; vma < 1 << 14; vma++)
		if (symbol_index_find(index, vma) &&
		    !strcmp(symbol_index_find(index, vma), "clock_gettime"))
			named++;
	symbol_index_free(index);
	elf_file_free(file);
	CHECK(named > 0);
}
