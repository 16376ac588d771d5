// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code made at run time, below allocations of known sizes. Says where it is in lines that a perf
 * map would have, for the script that watches to write one, and then READY. Each image has its code
 * at the same addresses.
 *
 *   jit [SIZE [more]]   jit_first allocates SIZE (70001 if not given) bytes, jit_second one more.
 *                       With "more" the program begins again afterwards, with SIZE + 10
 *   build: -fno-builtin
 */
#include "truth.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_ADDRESS ((uint8_t *)0x3000000000)
#define CODE_BYTES   4096
#define PLACE_BYTES  64

__attribute__((noinline)) void take(unsigned long size)
{
	void *p = malloc(size);

	TRUTH_KEEP(p);
}

/* A function with a frame pointer that calls take(size). */
static void (*make(uint8_t *at, uint32_t size))(void)
{
	static const uint8_t pattern[] = {
		0x55,				       /* push %rbp */
		0x48, 0x89, 0xe5,		       /* mov %rsp, %rbp */
		0xbf, 0,    0,	  0, 0,		       /* mov $size, %edi */
		0x48, 0xb8, 0,	  0, 0, 0, 0, 0, 0, 0, /* mov $take, %rax */
		0xff, 0xd0,			       /* call *%rax */
		0x5d,				       /* pop %rbp */
		0xc3,				       /* ret */
	};
	void (*callee)(unsigned long) = take;
	void (*made)(void);

	memcpy(at, pattern, sizeof(pattern));
	memcpy(at + 5, &size, sizeof(size));
	memcpy(at + 11, &callee, sizeof(callee));
	memcpy(&made, &at, sizeof(made));
	return made;
}

int main(int argc, char **argv)
{
	uint32_t size = argc > 1 ? atoi(argv[1]) : 70001;
	uint8_t *code = mmap(CODE_ADDRESS, CODE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	void (*first)(void), (*second)(void);
	char next[16];

	if (code != CODE_ADDRESS)
		return 3;
	first = make(code, size);
	second = make(code + PLACE_BYTES, size + 1);
	if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC))
		return 3;
	say("%lx %x jit_first\n%lx %x jit_second\n", (long)code, PLACE_BYTES,
	    (long)code + PLACE_BYTES, PLACE_BYTES);
	await("READY");
	first();
	second();
	await("DONE");
	if (argc > 2) {
		snprintf(next, sizeof(next), "%u", size + 10);
		execl("/proc/self/exe", argv[0], next, NULL);
		return 3;
	}
	return 0;
}
