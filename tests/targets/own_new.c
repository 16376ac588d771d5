// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program with an allocator of its own whose operator new goes where no one can tell: through a
 * pointer that is only known at run time. And one that can be followed, through two jumps.
 */
#include "truth.h"

static char arena[1 << 20];
static size_t used;

__attribute__((noinline)) static void *take(size_t bytes)
{
	char *p = arena + __atomic_fetch_add(&used, (bytes + 15) & ~15UL, __ATOMIC_RELAXED);

	return p + bytes <= arena + sizeof(arena) ? p : NULL;
}

/* noipa: the program calls these as it would those of a library. */
__attribute__((noipa)) void *malloc(size_t bytes)
{
	return take(bytes);
}

__attribute__((noipa)) void free(void *p)
{
	TRUTH_KEEP(p);
}

/* operator new(size_t) and operator new[](size_t), as C sees them. */
void *_Znwm(size_t bytes);
void *_Znam(size_t bytes);

extern void *(*volatile hidden_take)(size_t) __asm__("hidden_take");
void *(*volatile hidden_take)(size_t) = take;

__asm__(".globl _Znwm\n.type _Znwm, @function\n"
	"_Znwm: push %rbx\n pop %rbx\n mov hidden_take(%rip), %rax\n jmp *%rax\n"
	".size _Znwm, .-_Znwm\n"
	".globl _Znam\n.type _Znam, @function\n"
	"_Znam: push %rbx\n pop %rbx\n jmp _Znam_part\n"
	".size _Znam, .-_Znam\n"
	".type _Znam_part, @function\n"
	"_Znam_part: sub $8, %rsp\n call *hidden_take(%rip)\n add $8, %rsp\n"
	" test %rax, %rax\n je 1f\n ret\n1: xor %eax, %eax\n ret\n"
	".size _Znam_part, .-_Znam_part\n");

SITE(site_unknown_end)
{
	for (int i = 0; i < 10; i++) {
		/* In use, but no one can say so. */
		took(self, _Znwm(100), 100);
		gave(self, 100);
	}
}

SITE(site_known_end)
{
	for (int i = 0; i < 10; i++) {
		void *p = took(self, _Znam(200), 200);

		if (i % 2) {
			free(p);
			gave(self, 200);
		}
	}
}

SITE(site_malloc)
{
	took(self, malloc(300), 300);
	free(took(self, malloc(301), 301));
	gave(self, 301);
}

int main(void)
{
	await("READY");
	RUN(site_unknown_end);
	RUN(site_known_end);
	RUN(site_malloc);
	finish();
	return 0;
}
