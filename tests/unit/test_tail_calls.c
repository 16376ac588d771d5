// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tail_calls, as allocators sees it: which jumps are found, which of them are certain, and what
 * must not be mistaken for one.
 */
#include "tail_calls.h"

#include "asm_lib.h"
#include "check.h"

/* The libraries. */
/* clang-format off */
/* As in tcmalloc: memalign is tc_memalign, whose stub has another name; and as with -fno-plt. */
static const char slots_lib[] = BASE
	FN("tc_memalign", "mov %rsi,%rax\n ret")
	".globl memalign\n.set memalign, tc_memalign\n"
	FN("valloc", "endbr64\n mov %rdi,%rsi\n jmp tc_memalign@plt")
	FN("cfree", "jmp *free@GOTPCREL(%rip)") DATA;

static const char conditional_lib[] = BASE
	/* a fast way of its own */
	FN("calloc", "mov state(%rip),%rax\n test %rax,%rax\n je malloc\n ret")
	/* returns NULL or jumps: always */
	FN("valloc", "test %rdi,%rdi\n je 1f\n jmp malloc\n1: xor %eax,%eax\n ret")
	/* the 0 is overwritten */
	FN("pvalloc", "test %rdi,%rdi\n je 1f\n jmp malloc\n"
		      "1: xor %eax,%eax\n mov %rdi,%rax\n ret")
	/* where it goes is unknown */
	FN("memalign", "test %rdi,%rdi\n je 1f\n jmp aligned_alloc@plt\n1: jmp *%rax")
	FN("aligned_alloc", "mov %rsi,%rax\n ret")
	/* does work before it returns */
	FN("cfree", "test %rdi,%rdi\n je 1f\n jmp free\n1: call valloc\n ret") DATA;

/* realloc ends in a call that never returns; the next function happens to jump to malloc. */
static const char noreturn_lib[] = BASE
	FN("realloc", "test %rdi,%rdi\n je 1f\n mov %rsi,%rax\n ret\n1: call fatal@plt")
	STATIC_FN("next", "jmp malloc") DATA;

static const char part_lib[] = BASE
	STATIC_FN("realloc_part", "push %rbx\n call malloc@plt\n call free\n pop %rbx\n ret")
	FN("realloc", "test %rdi,%rdi\n je malloc\n jmp realloc_part")
	STATIC_FN("called_only", "call malloc\n ret")
	FN("calloc", "call called_only\n ret") DATA;

/* As gcc makes them of "if (!real) look_up(); return real(size);" and the like. */
static const char forwards_lib[] =
	FN("malloc", "mov real(%rip),%rax\n test %rax,%rax\n je 1f\n jmp *%rax\n"
		     "1: push %rdi\n call fill\n pop %rdi\n mov real(%rip),%rax\n jmp *%rax")
	/* a loop's head, and a pointer that others may see */
	FN("realloc", "push %rbx\n mov seen@GOTPCREL(%rip),%rbx\n 1: mov (%rbx),%rax\n"
		      " cmpq $0,(%rbx)\n jne 2f\n call fill\n jmp 1b\n 2: pop %rbx\n jmp *%rax")
	/* NULL for nothing, and memory of its own as long as there is no other */
	FN("calloc", "test %rdi,%rdi\n je 2f\n mov real(%rip),%rax\n test %rax,%rax\n je 1f\n"
		     " jmp *%rax\n1: lea early(%rip),%rax\n ret\n2: xor %eax,%eax\n ret")
	FN("free", "test %rdi,%rdi\n je 1f\n jmp *real(%rip)\n1: ret")
	/* through a slot of a name that says nothing */
	FN("memalign", "jmp elsewhere@plt")
	STATIC_FN("fill", "movq $1,real(%rip)\n ret")
	".data\n.globl seen\nseen: .quad 0\nreal: .quad 0\nearly: .quad 0\n";

static const char no_forwards_lib[] = BASE
	/* small ones are its own */
	FN("calloc", "cmp $64,%rsi\n jb 1f\n jmp *state(%rip)\n1: lea state(%rip),%rax\n ret")
	/* one of two */
	FN("realloc", "mov state(%rip),%rax\n test %rdi,%rdi\n je 1f\n mov other(%rip),%rax\n"
		      "1: jmp *%rax")
	/* has its own if another variable is NULL */
	FN("memalign", "mov other(%rip),%rax\n test %rax,%rax\n je 1f\n jmp *state(%rip)\n"
		       "1: lea other(%rip),%rax\n ret")
	/* changed in between */
	FN("valloc", "mov state(%rip),%rax\n add $8,%rax\n jmp *%rax")
	FN("pvalloc", "mov state(%rip),%rax\n mov %edi,%eax\n jmp *%rax")
	/* lost in a call */
	FN("aligned_alloc", "mov state(%rip),%rax\n call valloc\n jmp *%rax")
	".data\nstate: .quad 1\nother: .quad 0\n";

/* Functions that end in others: code, not padding. */
static const char falls_lib[] = BASE
	".globl valloc\n.type valloc, @function\nvalloc: mov %rdi,%rsi\n nop\n.size valloc, .-valloc\n"
	FN("memalign", "mov %rsi,%rax\n ret")
	/* goes on in one that returns, which is no entry point */
	".globl _Znwm\n.type _Znwm, @function\n_Znwm: mov state(%rip),%rax\n test %rax,%rax\n"
	" je out_of\n nop\n.size _Znwm, .-_Znwm\n"
	FN("rest", "add $1,%rax\n ret")
	FN("out_of", "call throw@plt")
	FN("after", "nop") DATA;

static const char endless_lib[] =
	FN("malloc", "1: jmp 1b")
	FN("free", "1: je 2f\n2: jne 1b\n jmp free")
	FN("realloc", ".rept 40000\n je 1f\n1:\n.endr\n jmp malloc")
	FN("calloc", "jmp realloc+1");
/* clang-format on */

TEST(jumps_through_private_names_and_slots)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(slots_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_STR(asm_lib_get(&set, "valloc")->silent, "jumps to memalign");
	CHECK_STR(asm_lib_get(&set, "cfree")->silent, "jumps to free");
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(a_conditional_jump_silences_nobody)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(conditional_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK(!asm_lib_get(&set, "calloc")->silent);
	CHECK_STR(asm_lib_get(&set, "valloc")->silent, "jumps to malloc");
	CHECK(!asm_lib_get(&set, "pvalloc")->silent);
	CHECK(!asm_lib_get(&set, "memalign")->silent);
	CHECK_EQ(asm_lib_get(&set, "memalign")->flags, 0);
	CHECK(!asm_lib_get(&set, "cfree")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(code_behind_a_call_that_never_returns_is_not_reached)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(noreturn_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(asm_lib_get(&set, "realloc")->flags, 0);
	CHECK(!asm_lib_get(&set, "realloc")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(a_part_elsewhere_that_calls_counts_as_inside)
{
	struct elf_file *file;
	struct allocators_set set = {};
	const struct allocators_fn *part;

	CHECK_EQ(asm_lib_find(part_lib, ASM_LIB_SHARED, &file, &set), 0);
	part = asm_lib_part(&set, "realloc");
	CHECK(part);
	CHECK_STR(part->silent, "is part of realloc");
	CHECK_EQ(part->fn, HB_FN_REALLOC);
	CHECK_EQ(part->off, asm_lib_get(&set, "free")->off + 16);
	CHECK_EQ(part->size_bytes, 16);
	CHECK_EQ(asm_lib_get(&set, "realloc")->flags, HB_COOKIE_DEFER_NULL);
	CHECK(!asm_lib_part(&set, "calloc"));
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(jumps_to_where_a_variable_points)
{
	static const char *const names[] = {"malloc", "calloc", "free", "memalign"};
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(forwards_lib, ASM_LIB_SHARED, &file, &set), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct allocators_fn *fn = asm_lib_get(&set, names[i]);

		CHECK_EQ(fn->flags, HB_COOKIE_FORWARDS);
		CHECK(!fn->silent);
		CHECK_EQ(fn->forward.how, KNOWN_AT);
	}
	CHECK_EQ(asm_lib_get(&set, "calloc")->forward.vma,
		 asm_lib_get(&set, "malloc")->forward.vma);
	CHECK_EQ(asm_lib_get(&set, "free")->forward.vma, asm_lib_get(&set, "malloc")->forward.vma);
	CHECK(asm_lib_get(&set, "memalign")->forward.vma !=
	      asm_lib_get(&set, "malloc")->forward.vma);
	CHECK_EQ(asm_lib_get(&set, "realloc")->flags, HB_COOKIE_FORWARDS);
	CHECK_EQ(asm_lib_get(&set, "realloc")->forward.how, KNOWN_AT_AT);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(jumps_that_not_all_ways_take_silence_nobody)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(no_forwards_lib, ASM_LIB_SHARED, &file, &set), 0);
	for (size_t i = 0; i < set.cnt; i++) {
		CHECK_EQ(set.fns[i].flags, 0);
		CHECK(!set.fns[i].silent);
	}
	CHECK_EQ(set.cnt, 8);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(code_that_runs_into_the_next_function_goes_on_there)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(falls_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_STR(asm_lib_get(&set, "valloc")->silent, "jumps to memalign");
	CHECK_EQ(asm_lib_get(&set, "_Znwm")->flags, HB_COOKIE_AT_RETS);
	CHECK_EQ(set.ret_cnt, 1);
	CHECK(set.rets[0].vma > asm_lib_get(&set, "_Znwm")->vma);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(endless_code_is_survived)
{
	struct elf_file *file;
	struct allocators_set set = {};

	CHECK_EQ(asm_lib_find(endless_lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(set.cnt, 4);
	CHECK(!asm_lib_get(&set, "realloc")->silent);
	allocators_clear(&set);
	elf_file_free(file);
}
