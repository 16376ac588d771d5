// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbolize on DWARF: one small program with an inlined chain, built and taken apart in many ways;
 * names, files and lines must come out the same wherever they are found, and only from files that
 * belong. ELF symbols alone are tested in test_symbol_index.c, other languages in test_names.c.
 */
#include "check.h"
#include "elf_file.h"
#include "scratch.h"
#include "subject.h"

#include <sys/stat.h>

/* The address asked for is `site`, a nop of its own. */
static const char chain_source[] =
	"static inline __attribute__((always_inline)) void inner_function(void)\n" /* 1 */
	"{\n"
	"	__asm__ volatile(\".globl site\\nsite: nop\");\n" /* 3 */
	"}\n"
	"static inline __attribute__((always_inline)) void middle_function(void)\n" /* 5 */
	"{\n"
	"	inner_function();\n" /* 7 */
	"}\n"
	"__attribute__((noinline)) void outer_function(void)\n" /* 9 */
	"{\n"
	"	middle_function();\n" /* 11 */
	"	__asm__ volatile(\"\");\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	outer_function();\n"
	"	return 0;\n"
	"}\n";

static bool frame_is(const struct symbolize_frame *frame, const char *name, const char *file,
		     uint32_t line, uint32_t start_line)
{
	const char *base = frame->file ? strrchr(frame->file, '/') : NULL;
	bool file_ok = file ? base && !strcmp(base + 1, file) : !frame->file;

	if (!strcmp(frame->name, name) && frame->system_name[0] && file_ok && frame->line == line &&
	    frame->start_line == start_line)
		return true;
	fprintf(stderr, "frame is %s [%s] %s:%u, from %u\n", frame->name, frame->system_name,
		frame->file ? frame->file : "(none)", frame->line, frame->start_line);
	return false;
}

static bool is_whole_chain(const struct symbolize_result *result)
{
	return result->cnt == 3 &&
	       frame_is(&result->frames[0], "inner_function", "chain.c", 3, 1) &&
	       frame_is(&result->frames[1], "middle_function", "chain.c", 7, 5) &&
	       frame_is(&result->frames[2], "outer_function", "chain.c", 11, 9);
}

/* No DWARF, a symbol only. */
static bool is_symbol(const struct symbolize_result *result, const char *name)
{
	return result->cnt == 1 && frame_is(&result->frames[0], name, NULL, 0, 0);
}

/* Builds chain.c with `flags` as `out`, and returns the address of its site. */
static uint64_t build_chain(const char *compiler, const char *flags, const char *out)
{
	scratch_write("chain.c", chain_source);
	if (!scratch_run("%s %s chain.c -o %s", compiler, flags, out))
		return 0;
	return scratch_nm(out, "site");
}

static bool has_whole_chain(const char *compiler, const char *flags)
{
	struct subject subject;
	bool ok = subject_ask(&subject, "chain", NULL, build_chain(compiler, flags, "chain")) &&
		  is_whole_chain(&subject.result);

	subject_close(&subject);
	if (!ok)
		fprintf(stderr, "with %s %s\n", compiler, flags);
	return ok;
}

TEST(inlined_chain_has_exact_lines)
{
	CHECK(has_whole_chain("gcc", "-g -O0"));
	CHECK(has_whole_chain("gcc", "-gdwarf-4 -O2"));
	CHECK(has_whole_chain("gcc", "-gdwarf-5 -O2"));
	CHECK(has_whole_chain("gcc", "-gdwarf-5 -O2 -no-pie"));
	CHECK(has_whole_chain("gcc", "-g -O2 -gz=zlib"));
	CHECK(has_whole_chain("gcc", "-g -O2 -gz=zlib-gnu"));
	CHECK(has_whole_chain("gcc", "-g -O2 -ffunction-sections -Wl,--gc-sections"));
	CHECK(has_whole_chain("gcc", "-g -O2 -flto"));
}

TEST(inlined_chain_by_clang_has_exact_lines)
{
	if (!scratch_have("clang"))
		return;
	CHECK(has_whole_chain("clang", "-gdwarf-4 -O2"));
	CHECK(has_whole_chain("clang", "-gdwarf-5 -O2"));
	CHECK(has_whole_chain("clang", "-g -O0"));
	/* No .debug_aranges, no system names, no start of the inlined ones but all the lines. */
	CHECK(has_whole_chain("clang", "-g -O2 -ffunction-sections"));
}

TEST(answers_are_remembered)
{
	struct subject subject;
	const struct symbolize_frame *first;
	uint64_t site = build_chain("gcc", "-g -O2", "chain");

	CHECK(subject_ask(&subject, "chain", NULL, site));
	first = subject.result.frames;
	CHECK(subject_lookup(&subject, site));
	CHECK(subject.result.frames == first);
	/* Equal names are one string. */
	CHECK(subject_lookup(&subject, scratch_nm("chain", "outer_function")));
	CHECK(subject.result.frames[subject.result.cnt - 1].name == first[2].name);
	subject_close(&subject);
}

TEST(addresses_without_code_have_no_name)
{
	struct subject subject;

	CHECK(subject_ask(&subject, "chain", NULL, build_chain("gcc", "-g -O2", "chain")));
	for (uint64_t vma = 0; vma < 1 << 20; vma += 4093) {
		CHECK(!symbolizer_lookup(subject.symbolizer, subject.file, vma, &subject.result));
		for (size_t i = 0; i < subject.result.cnt; i++)
			CHECK(subject.result.frames[i].name[0]);
	}
	CHECK(subject_lookup(&subject, UINT64_MAX));
	CHECK_EQ(subject.result.cnt, 0);
	CHECK(subject_lookup(&subject, UINT64_MAX / 2));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

/* Splits `chain` into `chain` without and `chain.debug` with debug information. */
static uint64_t build_split(const char *flags)
{
	uint64_t site = build_chain("gcc", flags, "chain");

	return scratch_run("rm -rf root && mkdir -p root/app/.debug root/usr/lib/debug/app && "
			   "objcopy --only-keep-debug chain chain.debug && strip chain && "
			   "objcopy --add-gnu-debuglink=chain.debug chain && cp chain root/app/")
		       ? site
		       : 0;
}

/* Looks up the site in root/app/chain as a process with the directory `root` as root would. */
static bool ask_in_root(struct subject *subject, const char *root, uint64_t site)
{
	return subject_open_as(subject, "root/app/chain", "/app/chain", root) &&
	       subject_lookup(subject, site);
}

TEST(debuglink_without_build_id)
{
	static const char *const places[] = {"root/app", "root/app/.debug",
					     "root/usr/lib/debug/app"};
	uint64_t site = build_split("-g -O2 -Wl,--build-id=none");
	struct subject subject;

	CHECK(site);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		CHECK(scratch_run("cp chain.debug %s", places[i]));
		CHECK(ask_in_root(&subject, "root", site));
		CHECK(is_whole_chain(&subject.result));
		subject_close(&subject);
		CHECK(scratch_run("rm %s/chain.debug", places[i]));
	}
	/* Not without a root, whatever there is in ours. */
	CHECK(scratch_run("cp chain.debug root/app"));
	CHECK(subject_ask(&subject, "root/app/chain", NULL, site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

TEST(debuglink_with_wrong_crc_is_not_used)
{
	uint64_t site = build_split("-g -O2 -Wl,--build-id=none");
	struct subject subject;

	CHECK(scratch_run("cp chain.debug root/app && printf x >>root/app/chain.debug"));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

/* The path of chain.debug in a build id directory, below a root. */
static const char *build_id_path(const char *file)
{
	static char path[256];
	const uint8_t *id;
	size_t len, at;
	struct elf_file *elf;

	if (elf_file_open(open(file, O_RDONLY | O_CLOEXEC), file, &elf))
		return "";
	id = elf_file_build_id(elf, &len);
	at = snprintf(path, sizeof(path), "usr/lib/debug/.build-id/%02x/", len ? id[0] : 0);
	for (size_t i = 1; i < len; i++)
		at += snprintf(path + at, sizeof(path) - at, "%02x", id[i]);
	snprintf(path + at, sizeof(path) - at, ".debug");
	elf_file_free(elf);
	return path;
}

TEST(build_id_directory)
{
	uint64_t site = build_split("-g -O2");
	const char *path = build_id_path("chain");
	struct subject subject;

	CHECK(scratch_run("mkdir -p root/$(dirname %s) && cp chain.debug root/%s", path, path));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK(is_whole_chain(&subject.result));
	subject_close(&subject);
	/* Another program's debug file in that place proves nothing. */
	CHECK(build_chain("gcc", "-g -O2 -Wl,--build-id=0x0123456789", "other"));
	CHECK(scratch_run("objcopy --only-keep-debug other root/%s", path));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

TEST(search_stays_below_the_root)
{
	uint64_t site = build_split("-g -O2");
	const char *path = build_id_path("chain");
	struct subject subject;

	/* Absolute links and ".." lead to the root's own files, which are not there. */
	CHECK(scratch_run("mkdir -p root/$(dirname %s) && ln -s $PWD/chain.debug root/%s", path,
			  path));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
	CHECK(scratch_run("ln -sf ../../../../../../../../../../../..$PWD/chain.debug root/%s",
			  path));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
	/* A FIFO would block whoever opens it. */
	CHECK(scratch_run("rm root/%s && mkfifo root/%s", path, path));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

TEST(replaced_file_does_not_matter)
{
	struct subject subject;
	uint64_t site = build_chain("gcc", "-g -O2", "chain");

	CHECK(scratch_run("sed s/_function/_changed/ chain.c >changed.c && "
			  "gcc -g -O2 changed.c -o changed"));
	CHECK(subject_open_as(&subject, "chain", "chain", "/"));
	CHECK(scratch_run("rm chain && mv changed chain"));
	CHECK(subject_lookup(&subject, site));
	CHECK(is_whole_chain(&subject.result));
	subject_close(&subject);
}

TEST(minidebuginfo)
{
	/* noipa: gcc 14 would make a clone with a name of its own. */
	static const char source[] = "static __attribute__((noipa)) int hidden(void)\n"
				     "{ __asm__ volatile(\"\"); return 1; }\n"
				     "int main(void) { return hidden(); }\n";
	struct subject subject;
	uint64_t vma;

	if (!scratch_have("xz"))
		return;
	scratch_write("mini.c", source);
	CHECK(scratch_run("gcc -O2 mini.c -o mini && cp mini mini.full"));
	vma = scratch_nm("mini.full", "hidden");
	CHECK(scratch_run("objcopy --only-keep-debug mini.full mini.syms && xz -f mini.syms && "
			  "strip mini && objcopy --add-section .gnu_debugdata=mini.syms.xz mini"));
	CHECK(subject_ask(&subject, "mini", NULL, vma));
	CHECK(is_symbol(&subject.result, "hidden"));
	subject_close(&subject);
	CHECK(scratch_run("head -c 300 /dev/urandom >noise && objcopy --update-section "
			  ".gnu_debugdata=noise mini"));
	CHECK(subject_ask(&subject, "mini", NULL, vma));
	CHECK_EQ(subject.result.cnt, 0);
	subject_close(&subject);
}

static bool split_dwarf_works(const char *compiler, const char *flags)
{
	struct subject subject;
	uint64_t site;
	bool ok;

	if (!scratch_run("rm -f *.dwo"))
		return false;
	site = build_chain(compiler, flags, "chain");
	ok = subject_ask(&subject, "chain", "/", site) && is_whole_chain(&subject.result);
	subject_close(&subject);
	/* The .dwo gone, or not where we may look: the function by its symbol, no error. */
	ok = ok && subject_ask(&subject, "chain", NULL, site) && subject.result.cnt == 1 &&
	     frame_is(subject.result.frames, "outer_function", "chain.c", 3, 0);
	subject_close(&subject);
	ok = ok && scratch_run("rm *.dwo") && subject_ask(&subject, "chain", "/", site) &&
	     subject.result.cnt == 1 &&
	     frame_is(subject.result.frames, "outer_function", "chain.c", 3, 0);
	subject_close(&subject);
	/* A FIFO in its place does not block us. */
	ok = ok && scratch_run("for d in chain-chain.dwo chain.dwo; do mkfifo $d; done") &&
	     subject_ask(&subject, "chain", "/", site) && subject.result.cnt == 1;
	subject_close(&subject);
	if (!ok)
		fprintf(stderr, "with %s %s\n", compiler, flags);
	return ok;
}

TEST(split_dwarf)
{
	CHECK(split_dwarf_works("gcc", "-gdwarf-5 -gsplit-dwarf -O2"));
	CHECK(split_dwarf_works("gcc", "-gdwarf-4 -gsplit-dwarf -O2"));
}

TEST(split_dwarf_by_clang)
{
	if (!scratch_have("clang"))
		return;
	CHECK(split_dwarf_works("clang", "-gdwarf-5 -gsplit-dwarf -fno-split-dwarf-inlining -O2"));
	CHECK(split_dwarf_works("clang", "-gdwarf-4 -gsplit-dwarf -fno-split-dwarf-inlining -O2"));
}

/* Two programs with equal contents, so that dwz moves their names to a common file. */
TEST(dwz_supplement)
{
	static const char *const programs[] = {"one", "two"};
	struct subject subject;
	uint64_t site = 0;

	if (!scratch_have("dwz"))
		return;
	CHECK(scratch_run("rm -rf root && mkdir -p root/app root/usr/lib/debug/.dwz"));
	for (size_t i = 0; i < 2; i++) {
		char flags[128];

		snprintf(flags, sizeof(flags), "-g -O2 -DNAME=%s", programs[i]);
		site = build_chain("gcc", flags, "chain");
		CHECK(scratch_run("objcopy --only-keep-debug chain %s.debug", programs[i]));
	}
	CHECK(scratch_run(
		"dwz -m root/usr/lib/debug/.dwz/common -M /usr/lib/debug/.dwz/common "
		"one.debug two.debug && readelf -S two.debug 2>/dev/null | grep -q debugaltlink"));
	CHECK(scratch_run("strip chain && objcopy --add-gnu-debuglink=two.debug chain && "
			  "cp chain two.debug root/app"));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK(is_whole_chain(&subject.result));
	subject_close(&subject);

	CHECK(scratch_run("mv root/usr/lib/debug/.dwz/common common"));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK(subject.result.cnt <= 3);
	for (size_t i = 0; i < subject.result.cnt; i++)
		CHECK(subject.result.frames[i].name[0]);
	subject_close(&subject);

	/* A supplement of other programs proves nothing. */
	CHECK(scratch_run("cp root/app/chain root/usr/lib/debug/.dwz/common"));
	CHECK(ask_in_root(&subject, "root", site));
	CHECK(!is_whole_chain(&subject.result));
	subject_close(&subject);
}

/* libdw 0.188 would read beyond the end of such a section. */
TEST(unterminated_strings_are_not_read)
{
	static const char *const sections[] = {".debug_str", ".debug_line_str"};
	struct subject subject;
	uint64_t site;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		site = build_chain("gcc", "-gdwarf-5 -O2", "chain");
		CHECK(scratch_run("objcopy --dump-section %s=strings chain && "
				  "truncate -s -1 strings && printf x >>strings && "
				  "objcopy --update-section %s=strings chain",
				  sections[i], sections[i]));
		CHECK(subject_ask(&subject, "chain", NULL, site));
		CHECK(is_symbol(&subject.result, "outer_function"));
		subject_close(&subject);
	}
}

TEST(libc_has_lines_by_its_build_id)
{
	static const char libc[] = "/lib/x86_64-linux-gnu/libc.so.6";
	struct subject subject;
	struct stat st;
	char debug[512];
	uint64_t vma = 0;

	snprintf(debug, sizeof(debug), "/%s", build_id_path(libc));
	if (stat(debug, &st)) {
		check_skip("needs libc6-dbg");
		return;
	}
	vma = scratch_nm(debug, "__strdup");
	CHECK(subject_open_as(&subject, libc, libc, NULL));
	CHECK(subject_lookup(&subject, vma + 4));
	CHECK_EQ(subject.result.cnt, 1);
	/* "__strdup" inside; people know it by its public name. */
	CHECK_STR(subject.result.frames[0].name, "strdup");
	CHECK(strstr(subject.result.frames[0].file, "string/strdup.c"));
	CHECK(subject.result.frames[0].line >= subject.result.frames[0].start_line);
	CHECK(subject.result.frames[0].start_line > 0);
	subject_close(&subject);
}

/* Names from elsewhere are as they are, also where they look like mangled ones. */
TEST(a_function_known_by_name)
{
	struct symbolizer *symbolizer = symbolizer_new();
	struct symbolize_result first, second, again;

	CHECK_EQ(symbolizer_name(symbolizer, "JS:~f a.js:1:1", &first), 0);
	CHECK_EQ(symbolizer_name(symbolizer, "_ZN1a1bEv", &second), 0);
	CHECK_EQ(symbolizer_name(symbolizer, "JS:~f a.js:1:1", &again), 0);
	CHECK(is_symbol(&first, "JS:~f a.js:1:1"));
	CHECK(is_symbol(&second, "_ZN1a1bEv"));
	CHECK_STR(second.frames[0].system_name, "_ZN1a1bEv");
	CHECK(first.frames == again.frames);
	symbolizer_free(symbolizer);
}
