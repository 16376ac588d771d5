// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocators: which functions are found and who is silent for whom, on libraries that the test
 * builds from a few instructions each, on the C library it runs with, and on other allocators
 * where they are installed.
 */
#include "allocators.h"

#include "alloc_names.h"
#include "asm_lib.h"
#include "check.h"

#include <gnu/libc-version.h>
#include <stdbool.h>

/* The libraries. */
/* clang-format off */
static const char plain_lib[] = BASE
	FN("calloc", "call malloc@plt\n ret")
	FN("unrelated", "ret")
	FN("pvalloc", "mov %rdi,%rax\n ret") DATA;

/* A bump allocator, whose memory is zero. */
static const char static_program[] = BASE
	FN("realloc", "test %rdi,%rdi\n je malloc\n mov %rsi,%rdi\n call malloc\n ret")
	FN("calloc", "imul %rsi,%rdi\n jmp malloc") DATA;

static const char alias_lib[] = BASE
	".globl cfree, free_sized, aligned_alloc\n.set cfree, free\n.set free_sized, free\n"
	FN("memalign", "ret")
	".set aligned_alloc, memalign\n" DATA;

static const char unsized_lib[] =
	".globl malloc\n.type malloc, @function\nmalloc: nop\n ret\n.balign 32\n"
	FN("free", "ret");

static const char fallback_lib[] = BASE
	FN("__libc_memalign", "nop\n ret")
	FN("__libc_calloc", "nop\n ret")
	FN("calloc", "jmp __libc_calloc@plt") DATA;

/* As in glibc 2.36 (objdump), cut down to what decides. */
static const char glibc_like[] = BASE
	FN("realloc", "push %rbx\n test %rsi,%rsi\n jne 1f\n0: pop %rbx\n jmp malloc\n"
		      "1: test %rdi,%rdi\n je 0b\n call free\n pop %rbx\n ret")
	FN("reallocarray", "mov %rsi,%rax\n mul %rdx\n mov %rax,%rsi\n jo 1f\n jmp realloc@plt\n"
			   "1: movl $12,state(%rip)\n xor %eax,%eax\n ret")
	STATIC_FN("mid", "push %rbx\n cmp $16,%rdi\n jbe 1f\n call int_memalign\n pop %rbx\n ret\n"
			 "1: pop %rbx\n mov %rsi,%rdi\n jmp malloc")
	STATIC_FN("int_memalign", "mov %rsi,%rax\n ret")
	FN("memalign", "cmpb $0,state(%rip)\n je 1f\n jmp mid\n"
		       "1: sub $8,%rsp\n call init\n add $8,%rsp\n jmp mid")
	FN("valloc", "mov %rdi,%rsi\n mov $4096,%edi\n jmp mid")
	FN("posix_memalign", "push %rbx\n mov %rsi,%rdi\n call mid\n pop %rbx\n ret")
	FN("cfree", "jmp free")
	FN("free_sized", "test %rdi,%rdi\n je 1f\n jmp free@plt\n1: ret")
	STATIC_FN("init", "ret") DATA;

/* As in musl 1.2.3. */
static const char musl_like[] =
	FN("malloc", "jmp impl")
	FN("free", "jmp impl")
	STATIC_FN("impl", "mov state(%rip),%rax\n ret")
	FN("aligned_alloc", "push %rbx\n call malloc@plt\n pop %rbx\n ret")
	FN("memalign", "jmp aligned_alloc@plt")
	FN("valloc", "mov %rdi,%rsi\n mov $4096,%edi\n jmp memalign@plt")
	FN("calloc", "push %rbx\n call malloc@plt\n pop %rbx\n ret") DATA;

/* As in jemalloc 5.3 (objdump), cut down: a fast way, a fallback behind a jump, another form. */
static const char new_lib[] = BASE
	STATIC_FN("oom", "push %rbx\n call *%rsi\n call malloc@plt\n test %rax,%rax\n je 1f\n"
			 " pop %rbx\n ret\n1: call throw@plt")
	STATIC_FN("slow", "push %rbx\n call internal\n test %rax,%rax\n je 1f\n pop %rbx\n ret\n"
			  "1: pop %rbx\n jmp oom")
	STATIC_FN("internal", "mov state(%rip),%rax\n ret")
	FN("_Znwm", "cmp $4096,%rdi\n ja 1f\n mov state(%rip),%rax\n ret\n1: jmp slow")
	FN("_Znam", "jmp _Znwm")
	FN("_ZnwmRKSt9nothrow_t", "jmp *%rax")
	FN("_ZnwmSt11align_val_t", "push %rbx\n1: call malloc@plt\n test %rax,%rax\n je 2f\n"
				   " pop %rbx\n ret\n2: call *%rsi\n jmp 1b")
	FN("_ZdlPv", "jmp free@plt")
	FN("_ZdlPvm", "test %rdi,%rdi\n je 1f\n call internal\n1: ret") DATA;

/* As in libstdc++ and a malloc in one static program. */
static const char libstdcxx_like[] = BASE
	FN("_Znwm", "push %rbx\n mov $1,%ebx\n test %rdi,%rdi\n cmovne %rdi,%rbx\n"
		    "1: mov %rbx,%rdi\n call malloc\n test %rax,%rax\n je 2f\n pop %rbx\n ret\n"
		    "2: call handler\n test %rax,%rax\n je 3f\n call *%rax\n jmp 1b\n"
		    "3: call throw\n mov %rax,%rdi\n call throw")
	FN("handler", "ret") FN("throw", "ret")
	FN("_ZdlPv", "jmp free") DATA;

/* malloc is operator new: it does not throw then. */
static const char same_lib[] = BASE ".globl _Znwm, _ZdlPv\n.set _Znwm, malloc\n.set _ZdlPv, free\n"
	DATA;

static const char prefix_lib[] =
	FN("mi_malloc", "mov state(%rip),%rax\n ret")
	FN("mi_free", "ret")
	FN("mi_new", "nop\n mov state(%rip),%rax\n ret")
	".globl _Znwm\n.set _Znwm, mi_new\n"
	FN("mi_new_n", "mov state(%rip),%rax\n ret")
	FN("mi_heap_malloc", "ret")
	FN("new", "ret")
	FN("my_calloc", "ret") DATA;

/* clang-format on */

TEST(what_may_throw_has_its_result_at_its_returns)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(new_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(asm_lib_get(&set, "_Znwm")->fn, HB_FN_NEW);
	CHECK_EQ(asm_lib_get(&set, "_Znwm")->flags, HB_COOKIE_AT_RETS);
	CHECK(!asm_lib_get(&set, "_Znwm")->silent);
	CHECK_STR(asm_lib_get(&set, "_Znam")->silent, "jumps to operator new");
	CHECK(!asm_lib_get(&set, "_Znam")->holds_calls);
	/* its own, the fallback's, and that of what the fallback jumps to */
	CHECK_EQ(set.ret_cnt, 3);
	CHECK(set.rets[0].off > asm_lib_get(&set, "free")->off);
	CHECK(set.rets[2].off > asm_lib_get(&set, "_Znwm")->off);
	CHECK(set.rets[2].off < asm_lib_get(&set, "_Znam")->off);
	/* calls malloc again when there was no memory: nested */
	CHECK(asm_lib_part(&set, "_Znwm") && asm_lib_part(&set, "_Znwm")->holds_calls);
	CHECK_STR(asm_lib_get(&set, "_ZdlPv")->silent, "jumps to free");
	CHECK_EQ(asm_lib_get(&set, "_ZdlPvm")->fn, HB_FN_FREE);
	CHECK(!asm_lib_get(&set, "_ZdlPvm")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(what_cannot_be_followed_has_no_result)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(new_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(asm_lib_get(&set, "_ZnwmRKSt9nothrow_t")->flags, HB_COOKIE_NO_RESULT);
	CHECK(!asm_lib_get(&set, "_ZnwmRKSt9nothrow_t")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(an_operator_new_upon_malloc_is_left_to_malloc)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(libstdcxx_like, ASM_LIB_STATIC, &file, &set), 0);
	CHECK_STR(asm_lib_get(&set, "_Znwm")->silent, "calls one that is");
	CHECK(!asm_lib_get(&set, "_Znwm")->holds_calls);
	CHECK_STR(asm_lib_get(&set, "_ZdlPv")->silent, "jumps to free");
	CHECK_EQ(set.ret_cnt, 0);
	allocators_clear(&set);
	elf_file_free(file);
	CHECK_EQ(asm_lib_find(new_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_STR(asm_lib_get(&set, "_ZnwmSt11align_val_t")->silent, "calls one that is");
	CHECK(!asm_lib_get(&set, "_ZnwmSt11align_val_t")->holds_calls);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(an_operator_new_at_the_address_of_malloc_is_malloc)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(same_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.cnt, 2);
	CHECK_EQ(asm_lib_get(&set, "malloc")->fn, HB_FN_MALLOC);
	CHECK_EQ(asm_lib_get(&set, "malloc")->flags, 0);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(a_prefix_makes_an_allocator_and_a_plain_name_wins)
{
	struct elf_file *file;
	struct allocators_set set = {};
	struct alloc_prefixes prefixes = {};

	CHECK_EQ(asm_lib_find(prefix_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK(set.is_allocator);
	CHECK_EQ(set.cnt, 4);
	CHECK_EQ(asm_lib_get(&set, "mi_malloc")->fn, HB_FN_MALLOC);
	CHECK_EQ(asm_lib_get(&set, "mi_free")->fn, HB_FN_FREE);
	CHECK_EQ(asm_lib_get(&set, "_Znwm")->fn, HB_FN_NEW);
	CHECK_EQ(asm_lib_get(&set, "mi_new_n")->fn, HB_FN_NEW_N);
	CHECK_EQ(asm_lib_get(&set, "mi_new_n")->flags, HB_COOKIE_AT_RETS);
	allocators_clear(&set);
	CHECK_EQ(alloc_prefixes_add(&prefixes, "my_"), 0);
	CHECK_EQ(allocators_find(file, &(struct allocators_request){.prefixes = &prefixes}, &set),
		 0);
	CHECK_EQ(set.cnt, 5);
	CHECK_EQ(asm_lib_get(&set, "my_calloc")->fn, HB_FN_CALLOC);
	alloc_prefixes_clear(&prefixes);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(malloc_and_free_of_two_prefixes_make_none)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(FN("mi_malloc", "ret") FN("tc_free", "ret"), ASM_LIB_SHARED, &file,
			      &set),
		 -ENOENT);
	elf_file_free(file);
}

/* A context's constructor, say. */
TEST(a_known_prefix_without_malloc_and_free_says_nothing)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(FN("malloc", "ret") FN("free", "ret") FN("tc_new", "ret"),
			      ASM_LIB_SHARED, &file, &set),
		 0);
	CHECK_EQ(set.cnt, 2);
	allocators_clear(&set);
	elf_file_free(file);
}

/* Only looks like mimalloc's. */
TEST(a_prefixed_name_upon_malloc_elsewhere_is_left_to_that)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(FN("mi_malloc", "push %rbx\n call malloc@plt\n pop %rbx\n ret") FN(
				      "mi_calloc", "jmp calloc@plt") FN("mi_free", "jmp free@plt"),
			      ASM_LIB_SHARED, &file, &set),
		 0);
	CHECK_STR(asm_lib_get(&set, "mi_malloc")->silent, "calls one that is");
	CHECK(!asm_lib_get(&set, "mi_malloc")->holds_calls);
	CHECK_STR(asm_lib_get(&set, "mi_calloc")->silent, "jumps to calloc");
	CHECK_STR(asm_lib_get(&set, "mi_free")->silent, "jumps to free");
	allocators_clear(&set);
	elf_file_free(file);
	/* a free that calls, and does something else as well */
	CHECK_EQ(asm_lib_find(FN("mi_malloc", "push %rbx\n call malloc@plt\n pop %rbx\n ret")
				      FN("mi_free",
					 "push %rbx\n call free@plt\n mov state(%rip),%rax\n"
					 " pop %rbx\n ret") DATA,
			      ASM_LIB_SHARED, &file, &set),
		 0);
	CHECK_STR(asm_lib_get(&set, "mi_free")->silent, "calls one that is");
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(finds_names_kinds_and_extents)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(plain_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.cnt, 4);
	CHECK_STR(set.fns[0].name, "malloc");
	CHECK_EQ(set.fns[0].fn, HB_FN_MALLOC);
	CHECK_EQ(set.fns[0].size_bytes, 10);
	CHECK_STR(set.fns[1].name, "free");
	CHECK_EQ(set.fns[1].fn, HB_FN_FREE);
	CHECK_EQ(set.fns[1].size_bytes, 1);
	CHECK_STR(set.fns[2].name, "calloc");
	CHECK_EQ(set.fns[2].fn, HB_FN_CALLOC);
	CHECK_STR(set.fns[3].name, "pvalloc");
	CHECK_EQ(set.fns[3].fn, HB_FN_VALLOC);
	for (size_t i = 0; i < set.cnt; i++) {
		CHECK(!set.fns[i].silent);
		CHECK_EQ(set.fns[i].flags, 0);
		CHECK(i == 0 || set.fns[i].off > set.fns[i - 1].off);
	}
	allocators_clear(&set);
	CHECK_EQ(set.cnt, 0);
	elf_file_free(file);
}

TEST(a_static_program_is_read_by_its_symbol_table)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(static_program, ASM_LIB_STATIC, &file, &set), 0);
	CHECK(elf_file_is_static(file));
	CHECK_EQ(set.cnt, 4);
	CHECK_EQ(asm_lib_get(&set, "realloc")->flags, HB_COOKIE_DEFER_NULL);
	CHECK_STR(asm_lib_get(&set, "calloc")->silent, "jumps to malloc");
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(one_entry_per_address)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(alias_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.cnt, 3);
	CHECK_STR(set.fns[1].name, "free");
	CHECK_STR(set.fns[2].name, "memalign");
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(no_size_ends_at_the_next_function)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(unsized_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.fns[0].size_bytes, 32);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(not_every_file_is_an_allocator)
{
	struct elf_file *file;
	struct allocators_set set = {.cnt = 42};

	CHECK_EQ(asm_lib_find(FN("malloc", "ret"), ASM_LIB_SHARED, &file, &set), -ENOENT);
	elf_file_free(file);
	CHECK_EQ(asm_lib_find(FN("free", "ret") FN("f", "jmp malloc@plt"), ASM_LIB_SHARED, &file,
			      &set),
		 -ENOENT);
	elf_file_free(file);
	/* the private one of the dynamic linker */
	CHECK_EQ(asm_lib_find(BASE DATA, ASM_LIB_SHARED " -Wl,-soname,ld-linux-x86-64.so.2", &file,
			      &set),
		 -ENOENT);
	elf_file_free(file);
	CHECK_EQ(set.cnt, 42);
	/* its hook is for everyone */
	CHECK_EQ(asm_lib_find(FN("_dl_debug_state", "ret") BASE DATA,
			      ASM_LIB_SHARED " -Wl,-soname,ld-linux-x86-64.so.2", &file, &set),
		 0);
	CHECK_EQ(set.cnt, 1);
	CHECK(!set.is_allocator);
	CHECK_EQ(asm_lib_get(&set, "_dl_debug_state")->fn, HB_FN_LINKER);
	CHECK(!asm_lib_get(&set, "_dl_debug_state")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(libc_names_are_only_fallbacks)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(fallback_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.cnt, 4);
	CHECK_EQ(asm_lib_get(&set, "__libc_memalign")->fn, HB_FN_MEMALIGN);
	CHECK(!asm_lib_get(&set, "__libc_calloc"));
	CHECK(asm_lib_get(&set, "calloc"));
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(nesting_as_in_glibc)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(glibc_like, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(asm_lib_get(&set, "realloc")->flags, HB_COOKIE_DEFER_NULL);
	CHECK(!asm_lib_get(&set, "realloc")->silent);
	CHECK_STR(asm_lib_get(&set, "reallocarray")->silent, "jumps to realloc");
	CHECK_EQ(asm_lib_get(&set, "memalign")->flags, HB_COOKIE_DEFER_ALIGN);
	CHECK(!asm_lib_get(&set, "memalign")->silent);
	CHECK_EQ(asm_lib_get(&set, "valloc")->flags, 0);
	CHECK(!asm_lib_get(&set, "valloc")->silent);
	CHECK_EQ(asm_lib_get(&set, "posix_memalign")->flags, 0);
	CHECK(!asm_lib_get(&set, "posix_memalign")->silent);
	CHECK_STR(asm_lib_get(&set, "cfree")->silent, "jumps to free");
	CHECK_STR(asm_lib_get(&set, "free_sized")->silent, "jumps to free");
	CHECK(!asm_lib_get(&set, "malloc")->silent);
	CHECK(!asm_lib_get(&set, "free")->silent);
	CHECK_EQ(set.cnt, 9);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(nesting_as_in_musl)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(musl_like, ASM_LIB_SHARED, &file, &set), 0);
	CHECK(!asm_lib_get(&set, "malloc")->silent);
	CHECK(!asm_lib_get(&set, "free")->silent);
	CHECK(!asm_lib_get(&set, "aligned_alloc")->silent);
	CHECK(!asm_lib_get(&set, "calloc")->silent);
	CHECK_STR(asm_lib_get(&set, "memalign")->silent,
		  "jumps to memalign"); /* the meaning's name */
	CHECK_STR(asm_lib_get(&set, "valloc")->silent, "jumps to memalign");
	CHECK_EQ(set.cnt, 6);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(mutated_files_are_survived)
{
	struct allocators_set set = {};
	uint64_t state = 0x9e3779b97f4a7c15;
	struct elf_file *file;
	size_t len, copied;
	char *image, *copy;
	const char *whole;

	CHECK_EQ(asm_lib_find(glibc_like, ASM_LIB_SHARED, &file, &set), 0);
	allocators_clear(&set);
	whole = elf_rawfile(elf_file_elf(file), &len);
	CHECK(whole);
	image = malloc(len);
	copy = malloc(len);
	memcpy(image, whole, len);
	elf_file_free(file);
	for (int round = 0; round < 1000; round++) {
		memcpy(copy, image, len);
		for (int i = 0; i <= round % 16; i++) {
			state ^= state << 13; /* xorshift64 */
			state ^= state >> 7;
			state ^= state << 17;
			copy[(state >> 8) % (state & 1 ? 0x1400 : len)] = (char)(state >> 40);
		}
		copied = round % 3 ? len : (state >> 20) % len;
		if (elf_file_open_memory(copy, copied, "mutated", &file))
			continue;
		if (!allocators_find(file, &(struct allocators_request){}, &set)) {
			CHECK(set.cnt >= 2 && set.cnt <= ALLOCATORS_FN_MAX);
			allocators_clear(&set);
		}
		elf_file_free(file);
	}
	free(copy);
	free(image);
}

/* The allocator of an installed library. -ENODEV: not installed. */
static int find_installed(const char *path, struct elf_file **file, struct allocators_set *set)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -ENODEV;
	ret = elf_file_open(fd, path, file);
	return ret ? ret : allocators_find(*file, &(struct allocators_request){}, set);
}

/* "malloc calloc ..." of those that are probed, with their flags, in the order of the file. */
static void describe(const struct allocators_set *set, char *text, size_t bytes)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < set->cnt && len < bytes; i++)
		if (!set->fns[i].silent)
			len += (size_t)snprintf(
				text + len, bytes - len, "%s%s%s%s%s", len ? " " : "",
				set->fns[i].name,
				set->fns[i].flags & HB_COOKIE_DEFER_NULL ? "(null)" : "",
				set->fns[i].flags & HB_COOKIE_DEFER_ALIGN ? "(align)" : "",
				set->fns[i].flags & HB_COOKIE_AT_RETS ? "(rets)" : "");
}

TEST(the_running_libc)
{
	struct allocators_set set = {};
	struct elf_file *file;
	char text[256];

	CHECK_EQ(find_installed("/lib/x86_64-linux-gnu/libc.so.6", &file, &set), 0);
	CHECK(asm_lib_get(&set, "malloc") && asm_lib_get(&set, "calloc") &&
	      asm_lib_get(&set, "realloc"));
	CHECK(asm_lib_get(&set, "posix_memalign") && asm_lib_get(&set, "memalign"));
	describe(&set, text, sizeof(text));
	if (!strcmp(gnu_get_libc_version(), "2.36")) {
		CHECK_STR(text, "malloc free realloc(null) memalign(align) valloc pvalloc calloc "
				"posix_memalign");
		CHECK_STR(asm_lib_get(&set, "reallocarray")->silent, "jumps to realloc");
	}
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(installed_allocators)
{
	/* The probed functions; Debian 12's builds. Others of the same name may differ in order. */
	static const struct {
		const char *path, *build_id, *probed;
	} known[] = {
		{"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		 "1d5163c246dc9cd2b4d339f2ac42efd95c6e0ae1",
		 "malloc posix_memalign aligned_alloc calloc free memalign valloc mallocx rallocx "
		 "realloc dallocx sdallocx _Znwm(rets) _ZnwmRKSt9nothrow_t(rets) _ZdlPvm _ZdaPvm "
		 "_ZdlPvmSt11align_val_t "
		 "_ZdaPvmSt11align_val_t"},
		{"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
		 "39dfd4a5855703fa6c2469749282f75b18a1aa66",
		 "tc_malloc_skip_new_handler free _ZdlPvm _ZdlPvRKSt9nothrow_t "
		 "_ZdlPvSt11align_val_t _ZdlPvmSt11align_val_t "
		 "_ZdlPvSt11align_val_tRKSt9nothrow_t calloc realloc _Znwm(rets) "
		 "_ZnwmSt11align_val_t(rets) _ZnwmRKSt9nothrow_t(rets) "
		 "_ZnwmSt11align_val_tRKSt9nothrow_t(rets) malloc memalign posix_memalign"},
		{"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
		 "d07f4e7dc9a039fcbe7747f416476bd65cb48e8b",
		 "mi_malloc_small malloc mi_zalloc_small mi_zalloc free calloc mi_mallocn realloc "
		 "mi_reallocn reallocf mi_rezalloc mi_recalloc _Znwm(rets) mi_new_n(rets) "
		 "mi_new_nothrow(rets) mi_malloc_aligned_at mi_malloc_aligned mi_zalloc_aligned_at "
		 "mi_zalloc_aligned mi_calloc_aligned_at mi_calloc_aligned mi_realloc_aligned_at "
		 "mi_realloc_aligned mi_rezalloc_aligned_at mi_rezalloc_aligned "
		 "mi_recalloc_aligned_at mi_recalloc_aligned mi_cfree mi_posix_memalign "
		 "mi_reallocarray"},
		{"/usr/lib/x86_64-linux-musl/libc.so", "54d00df44fce62f541ca62b56bdef5bf31ff077c",
		 "calloc free malloc aligned_alloc posix_memalign realloc _dl_debug_state"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct allocators_set set = {};
		struct elf_file *file;
		char text[1024], id[2 * ELF_FILE_BUILD_ID_MAX + 1] = "";
		const uint8_t *bytes;
		size_t len;
		int ret = find_installed(known[i].path, &file, &set);

		if (ret == -ENODEV)
			continue;
		CHECK_EQ(ret, 0);
		bytes = elf_file_build_id(file, &len);
		for (size_t at = 0; at < len; at++)
			snprintf(id + 2 * at, 3, "%02x", bytes[at]);
		describe(&set, text, sizeof(text));
		if (!strcmp(id, known[i].build_id))
			CHECK_STR(text, known[i].probed);
		allocators_clear(&set);
		elf_file_free(file);
	}
}
