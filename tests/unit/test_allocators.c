// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocators and tail_calls: which functions are found and who is silent for whom, on libraries
 * that the test builds from a few instructions each, on the C library it runs with, and on other
 * allocators where they are installed.
 */
#include "allocators.h"

#include "check.h"
#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <regex.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* Builds a library named `soname` from assembly and finds its allocator. -EIO: not built. */
static int find_in(const char *source, const char *options, struct elf_file **file,
		   struct allocators_set *set)
{
	char dir[] = "/tmp/allocators.XXXXXX";
	char path[64], command[512];
	FILE *out;
	int ret = -EIO;

	*file = NULL;
	if (!mkdtemp(dir))
		return -EIO;
	snprintf(path, sizeof(path), "%s/lib.s", dir);
	out = fopen(path, "w");
	if (out) {
		fputs(source, out);
		fclose(out);
		snprintf(command, sizeof(command),
			 "cc -shared -nostdlib -Wl,-z,lazy %s -o %s/lib.so %s/lib.s", options, dir,
			 dir);
		ret = system(command) ? -EIO : 0;
	}
	snprintf(path, sizeof(path), "%s/lib.so", dir);
	if (!ret)
		ret = elf_file_open(open(path, O_RDONLY), "lib.so", file);
	if (!ret)
		ret = allocators_find(*file, set);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? -EIO : ret;
}

/* The entry of that name that is no helper; NULL if there is none. */
static const struct allocators_fn *get(const struct allocators_set *set, const char *name)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (!strcmp(set->fns[i].name, name) &&
		    (!set->fns[i].silent || strncmp(set->fns[i].silent, "part of", 7)))
			return &set->fns[i];
	return NULL;
}

static const struct allocators_fn *get_part(const struct allocators_set *set, const char *name)
{
	for (size_t i = 0; i < set->cnt; i++)
		if (!strcmp(set->fns[i].name, name) && set->fns[i].silent &&
		    !strncmp(set->fns[i].silent, "part of", 7))
			return &set->fns[i];
	return NULL;
}

/* A function with its symbol, and what most of the libraries below need. */
#define FN(name, body)                                                                             \
	".globl " name "\n.type " name ", @function\n" name ":\n" body "\n.size " name ", .-" name \
	"\n.balign 16\n"
#define STATIC_FN(name, body)                                                                      \
	".type " name ", @function\n" name ":\n .cfi_startproc\n" body                             \
	"\n .cfi_endproc\n.size " name ", .-" name "\n.balign 16\n"
#define BASE FN("malloc", "push %rbx\n mov state(%rip), %rax\n pop %rbx\n ret") FN("free", "ret")
#define DATA ".data\nstate: .quad 1\n"

TEST(finds_names_kinds_and_extents)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(BASE FN("calloc", "call malloc@plt\n ret") FN("unrelated", "ret")
				 FN("pvalloc", "mov %rdi,%rax\n ret") DATA,
			 "", &file, &set),
		 0);
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

TEST(one_entry_per_address)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(BASE ".globl cfree, free_sized, memalign, aligned_alloc\n"
			      ".set cfree, free\n.set free_sized, free\n" FN(
				      "memalign", "ret") ".set aligned_alloc, memalign\n" DATA,
			 "", &file, &set),
		 0);
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

	CHECK_EQ(find_in(".globl malloc\n.type malloc, @function\nmalloc: nop\n ret\n.balign "
			 "32\n" FN("free", "ret"),
			 "", &file, &set),
		 0);
	CHECK_EQ(set.fns[0].size_bytes, 32);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(not_every_file_is_an_allocator)
{
	struct elf_file *file;
	struct allocators_set set = {.cnt = 42};

	CHECK_EQ(find_in(FN("malloc", "ret"), "", &file, &set), -ENOENT);
	elf_file_free(file);
	CHECK_EQ(find_in(FN("free", "ret") FN("f", "jmp malloc@plt"), "", &file, &set), -ENOENT);
	elf_file_free(file);
	/* the private one of the dynamic linker */
	CHECK_EQ(find_in(BASE DATA, "-Wl,-soname,ld-linux-x86-64.so.2", &file, &set), -ENOENT);
	elf_file_free(file);
	CHECK_EQ(set.cnt, 42);
}

TEST(libc_names_are_only_fallbacks)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(BASE FN("__libc_memalign", "nop\n ret") FN("__libc_calloc", "nop\n ret")
				 FN("calloc", "jmp __libc_calloc@plt") DATA,
			 "", &file, &set),
		 0);
	CHECK_EQ(set.cnt, 4);
	CHECK_EQ(get(&set, "__libc_memalign")->fn, HB_FN_MEMALIGN);
	CHECK(!get(&set, "__libc_calloc"));
	CHECK(get(&set, "calloc"));
	allocators_clear(&set);
	elf_file_free(file);
}

/* As in glibc 2.36 (objdump), cut down to what decides. */
static const char glibc_like[] = BASE FN(
	"realloc", "push %rbx\n test %rsi,%rsi\n jne 1f\n0: pop %rbx\n jmp malloc\n"
		   "1: test %rdi,%rdi\n je 0b\n call free\n pop %rbx\n ret")
	FN("reallocarray", "mov %rsi,%rax\n mul %rdx\n mov %rax,%rsi\n jo 1f\n jmp realloc@plt\n"
			   "1: movl $12,state(%rip)\n xor %eax,%eax\n ret")
		STATIC_FN(
			"mid",
			"push %rbx\n cmp $16,%rdi\n jbe 1f\n call int_memalign\n pop %rbx\n ret\n"
			"1: pop %rbx\n mov %rsi,%rdi\n jmp malloc") STATIC_FN("int_memalign",
									      "mov %rsi,%rax\n ret")
			FN("memalign",
			   "cmpb $0,state(%rip)\n je 1f\n jmp mid\n1: sub $8,%rsp\n call init\n"
			   " add $8,%rsp\n jmp mid") FN("valloc",
							"mov %rdi,%rsi\n mov $4096,%edi\n jmp mid")
				FN("posix_memalign",
				   "push %rbx\n mov %rsi,%rdi\n call mid\n pop %rbx\n ret")
					FN("cfree", "jmp free")
						FN("free_sized",
						   "test %rdi,%rdi\n je 1f\n jmp free@plt\n1: ret")
							STATIC_FN("init", "ret") DATA;

TEST(nesting_as_in_glibc)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(glibc_like, "", &file, &set), 0);
	CHECK_EQ(get(&set, "realloc")->flags, HB_COOKIE_DEFER_NULL);
	CHECK(!get(&set, "realloc")->silent);
	CHECK_STR(get(&set, "reallocarray")->silent, "jumps to realloc");
	CHECK_EQ(get(&set, "memalign")->flags, HB_COOKIE_DEFER_ALIGN);
	CHECK(!get(&set, "memalign")->silent);
	CHECK_EQ(get(&set, "valloc")->flags, 0);
	CHECK(!get(&set, "valloc")->silent);
	CHECK_EQ(get(&set, "posix_memalign")->flags, 0);
	CHECK(!get(&set, "posix_memalign")->silent);
	CHECK_STR(get(&set, "cfree")->silent, "jumps to free");
	CHECK_STR(get(&set, "free_sized")->silent, "jumps to free");
	CHECK(!get(&set, "malloc")->silent);
	CHECK(!get(&set, "free")->silent);
	CHECK_EQ(set.cnt, 9);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(nesting_as_in_musl)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(
		find_in(FN("malloc", "jmp impl") FN("free", "jmp impl") STATIC_FN(
				"impl", "mov state(%rip),%rax\n ret")
				FN("aligned_alloc", "push %rbx\n call malloc@plt\n pop %rbx\n ret")
					FN("memalign", "jmp aligned_alloc@plt") FN(
						"valloc",
						"mov %rdi,%rsi\n mov $4096,%edi\n jmp memalign@plt")
						FN("calloc",
						   "push %rbx\n call malloc@plt\n pop %rbx\n ret")
							DATA,
			"", &file, &set),
		0);
	CHECK(!get(&set, "malloc")->silent);
	CHECK(!get(&set, "free")->silent);
	CHECK(!get(&set, "aligned_alloc")->silent);
	CHECK(!get(&set, "calloc")->silent);
	CHECK_STR(get(&set, "memalign")->silent, "jumps to memalign"); /* the meaning's name */
	CHECK_STR(get(&set, "valloc")->silent, "jumps to memalign");
	CHECK_EQ(set.cnt, 6);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(jumps_through_private_names_and_slots)
{
	struct elf_file *file;
	struct allocators_set set = {};

	/* tc_memalign is memalign; its stub has another name. -fno-plt jumps through the GOT. */
	CHECK_EQ(find_in(BASE FN("tc_memalign",
				 "mov %rsi,%rax\n ret") ".globl memalign\n.set memalign, "
							"tc_memalign\n" FN("valloc",
									   "mov %rdi,%rsi\n "
									   "endbr64\n jmp "
									   "tc_memalign@plt")
								FN("cfree",
								   "jmp *free@GOTPCREL(%rip)") DATA,
			 "-Wl,-z,norelro", &file, &set),
		 0);
	CHECK_STR(get(&set, "valloc")->silent, "jumps to memalign");
	CHECK_STR(get(&set, "cfree")->silent, "jumps to free");
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(a_conditional_jump_silences_nobody)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(BASE
				 /* a fast way of its own */
				 FN("calloc",
				    "mov state(%rip),%rax\n test %rax,%rax\n je malloc\n ret")
			 /* returns NULL or jumps: always */
			 FN("valloc", "test %rdi,%rdi\n je 1f\n jmp malloc\n1: xor %eax,%eax\n ret")
			 /* the 0 is overwritten */
			 FN("pvalloc", "test %rdi,%rdi\n je 1f\n jmp malloc\n"
				       "1: xor %eax,%eax\n mov %rdi,%rax\n ret")
			 /* where it goes is unknown */
			 FN("memalign", "test %rdi,%rdi\n je 1f\n jmp aligned_alloc@plt\n"
					"1: jmp *%rax") FN("aligned_alloc", "mov %rsi,%rax\n ret")
			 /* does work before it returns */
			 FN("cfree", "test %rdi,%rdi\n je 1f\n jmp free\n1: call valloc\n ret")
				 DATA,
			 "", &file, &set),
		 0);
	CHECK(!get(&set, "calloc")->silent);
	CHECK_STR(get(&set, "valloc")->silent, "jumps to malloc");
	CHECK(!get(&set, "pvalloc")->silent);
	CHECK(!get(&set, "memalign")->silent);
	CHECK_EQ(get(&set, "memalign")->flags, 0);
	CHECK(!get(&set, "cfree")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(code_behind_a_call_that_never_returns_is_not_reached)
{
	struct elf_file *file;
	struct allocators_set set = {};

	/* realloc ends in a call; the next function happens to jump to malloc. */
	CHECK_EQ(find_in(BASE FN("realloc", "test %rdi,%rdi\n je 1f\n mov %rsi,%rax\n ret\n"
					    "1: call fatal@plt") STATIC_FN("next", "jmp malloc")
				 DATA,
			 "", &file, &set),
		 0);
	CHECK_EQ(get(&set, "realloc")->flags, 0);
	CHECK(!get(&set, "realloc")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(a_part_elsewhere_that_calls_counts_as_inside)
{
	struct elf_file *file;
	struct allocators_set set = {};
	const struct allocators_fn *part;

	CHECK_EQ(find_in(BASE STATIC_FN("realloc_part", "push %rbx\n call malloc@plt\n call free\n"
							" pop %rbx\n ret")
				 FN("realloc", "test %rdi,%rdi\n je malloc\n jmp realloc_part")
					 STATIC_FN("called_only", "call malloc\n ret")
						 FN("calloc", "call called_only\n ret") DATA,
			 "", &file, &set),
		 0);
	part = get_part(&set, "realloc");
	CHECK(part);
	CHECK_STR(part->silent, "part of realloc");
	CHECK_EQ(part->fn, HB_FN_REALLOC);
	CHECK_EQ(part->off, get(&set, "free")->off + 16);
	CHECK_EQ(part->size_bytes, 16);
	CHECK_EQ(get(&set, "realloc")->flags, HB_COOKIE_DEFER_NULL);
	CHECK(!get_part(&set, "calloc"));
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(endless_code_is_survived)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(find_in(FN("malloc", "1: jmp 1b") FN("free", "1: je 2f\n2: jne 1b\n jmp free")
				 FN("realloc", ".rept 40000\n je 1f\n1:\n.endr\n jmp malloc")
					 FN("calloc", "jmp realloc+1"),
			 "", &file, &set),
		 0);
	CHECK_EQ(set.cnt, 4);
	CHECK(!get(&set, "realloc")->silent);
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

	CHECK_EQ(find_in(glibc_like, "", &file, &set), 0);
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
		if (!allocators_find(file, &set)) {
			CHECK(set.cnt >= 2 && set.cnt <= HB_WRAPPER_MAX);
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
	return ret ? ret : allocators_find(*file, set);
}

/* "malloc calloc ..." of those that are probed, with their flags, in the order of the file. */
static void describe(const struct allocators_set *set, char *text, size_t bytes)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < set->cnt && len < bytes; i++)
		if (!set->fns[i].silent)
			len += (size_t)snprintf(
				text + len, bytes - len, "%s%s%s%s", len ? " " : "",
				set->fns[i].name,
				set->fns[i].flags & HB_COOKIE_DEFER_NULL ? "(null)" : "",
				set->fns[i].flags & HB_COOKIE_DEFER_ALIGN ? "(align)" : "");
}

TEST(the_running_libc)
{
	struct allocators_set set = {};
	struct elf_file *file;
	char text[256];

	CHECK_EQ(find_installed("/lib/x86_64-linux-gnu/libc.so.6", &file, &set), 0);
	CHECK(get(&set, "malloc") && get(&set, "calloc") && get(&set, "realloc"));
	CHECK(get(&set, "posix_memalign") && get(&set, "memalign"));
	describe(&set, text, sizeof(text));
	if (!strcmp(gnu_get_libc_version(), "2.36")) {
		CHECK_STR(text, "malloc free realloc(null) memalign(align) valloc pvalloc calloc "
				"posix_memalign");
		CHECK_STR(get(&set, "reallocarray")->silent, "jumps to realloc");
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
		 "malloc posix_memalign aligned_alloc calloc free memalign valloc realloc"},
		{"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
		 "39dfd4a5855703fa6c2469749282f75b18a1aa66",
		 "free calloc realloc malloc memalign posix_memalign"},
		{"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
		 "d07f4e7dc9a039fcbe7747f416476bd65cb48e8b",
		 "valloc posix_memalign aligned_alloc pvalloc reallocarray memalign malloc free "
		 "calloc realloc"},
		{"/usr/lib/x86_64-linux-musl/libc.so", "54d00df44fce62f541ca62b56bdef5bf31ff077c",
		 "calloc free malloc aligned_alloc posix_memalign realloc"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct allocators_set set = {};
		struct elf_file *file;
		char text[256], id[2 * ELF_FILE_BUILD_ID_MAX + 1] = "";
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

TEST(drop_frames_names_the_allocator_and_nothing_else)
{
	static const char *const dropped[] = {"malloc",
					      "calloc",
					      "realloc",
					      "reallocarray",
					      "free",
					      "posix_memalign",
					      "aligned_alloc",
					      "memalign",
					      "valloc",
					      "pvalloc",
					      "__libc_malloc",
					      "__GI___libc_malloc",
					      "__GI___libc_free",
					      "_mid_memalign",
					      "operator new",
					      "operator new[]",
					      "operator delete",
					      "operator delete[]",
					      "operator new(unsigned long)",
					      "operator new[](unsigned long)",
					      "operator new(unsigned long, std::align_val_t)",
					      "operator new(unsigned long, std::nothrow_t const&)",
					      "operator delete(void*)",
					      "operator delete[](void*, unsigned long)",
					      "_Znwm",
					      "_Znam",
					      "_ZnwmSt11align_val_t",
					      "_ZdlPv",
					      "_ZdaPvm",
					      "tc_malloc",
					      "mi_free"};
	static const char *const kept[] = {"main",
					   "my_malloc",
					   "malloc_wrapper",
					   "xmalloc",
					   "strdup",
					   "freeze",
					   "operator newer",
					   "my::operator new(unsigned long)",
					   "Pool::malloc(unsigned long)",
					   "operator==(A, B)",
					   "g_malloc",
					   "free_list",
					   "_ZN4Pool6mallocEm"};
	char *anchored = NULL;
	regex_t regex;

	/* As pprof's RemoveUninteresting does; the expression is plain enough for POSIX, too. */
	CHECK(asprintf(&anchored, "^(%s)$", allocators_drop_frames()) > 0);
	CHECK_EQ(regcomp(&regex, anchored, REG_EXTENDED | REG_NOSUB), 0);
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		if (regexec(&regex, dropped[i], 0, NULL, 0))
			CHECK_STR(dropped[i], "dropped");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!regexec(&regex, kept[i], 0, NULL, 0))
			CHECK_STR(kept[i], "kept");
	regfree(&regex);
	free(anchored);
}
