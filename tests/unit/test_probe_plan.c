// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probe_plan: the exact place for recorded prologues, and the rules one at a time. Recorded are
 * bytes at their addresses, from objdump of the library in the package that a comment names; those
 * of the rules are made, an instruction sequence of that kind.
 */
#include "probe_plan.h"

#include "check.h"

#include <errno.h>
#include <stdbool.h>

#define RDI PROBE_PLAN_RDI
#define RSI PROBE_PLAN_RSI
#define RDX PROBE_PLAN_RDX

#define ENTRY_ONLY false
#define RETURNS	   true
#define NULL_TOO   false
#define SKIP_NULL  true

/* A function and the place it must get. */
struct expected {
	const char *name, *code;
	size_t len;
	uint64_t vma;
	uint32_t live_regs;
	bool returns, skip_null;
	struct probe_plan plan;
};

#define CODE(bytes) bytes, sizeof(bytes) - 1

/* One row, one case. */
/* clang-format off */
static const struct expected recorded[] = {
	/* Debian 11, libc6 2.31-13+deb11u11: loads a hook first */
	{"glibc 2.31 malloc",
	 CODE("\x48\x8b\x05\x09\x81\x14\x00\x41\x54\x55\x48\x89\xfd\x53\x48\x8b\x00\x48\x85"
	      "\xc0"),
	 0x85de0, RDI, RETURNS, NULL_TOO, {7, 0, true, "push %r12", false}},
	{"glibc 2.31 calloc",
	 CODE("\x41\x55\x48\x89\xf8\x41\x54\x55\x53\x48\x83\xec\x08\x48\xf7\xe6\x49\x89\xc4"
	      "\x0f\x90\xc0"),
	 0x86b40, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r13", false}},
	{"glibc 2.31 realloc",
	 CODE("\x41\x57\x41\x56\x41\x55\x41\x54\x49\x89\xf4\x55\x48\x89\xfd\x53\x48\x83\xec"
	      "\x18"),
	 0x86670, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r15", false}},
	{"glibc 2.31 free",
	 CODE("\x48\x83\xec\x18\x48\x8b\x05\xdd\x7a\x14\x00\x48\x8b\x00\x48\x85\xc0\x0f\x85"
	      "\x81\x00\x00\x00"),
	 0x86410, RDI, ENTRY_ONLY, SKIP_NULL, {17, 24, true, "jne 0x864a8", false}},
	{"glibc 2.31 posix_memalign",
	 CODE("\x53\x48\x89\xfb\x48\x89\xf7\x48\x89\xd6\x48\x89\xfa\x48\xc1\xea\x03\x48\x8d"
	      "\x42\xff"),
	 0x87800, RDI | RSI | RDX, RETURNS, NULL_TOO, {0, 0, true, "push %rbx", false}},
	{"glibc 2.31 memalign",
	 CODE("\x48\x8b\x14\x24\xe9\x77\xf6\xff\xff"),
	 0x86a90, RDI | RSI, RETURNS, NULL_TOO, {4, 0, true, "jmp 0x86110", false}},
	{"glibc 2.31 valloc",
	 CODE("\x8b\x05\xbe\x77\x14\x00\x55\x48\x89\xfd\x85\xc0\x78\x22\x48\x8b\x05\xab\x73"
	      "\x14\x00"),
	 0x86aa0, RDI, RETURNS, NULL_TOO, {6, 0, true, "push %rbp", false}},
	{"glibc 2.31 pvalloc",
	 CODE("\x8b\x05\x7e\x77\x14\x00\x53\x48\x89\xfb\x85\xc0\x78\x32\x48\x8b\x05\x6b\x73"
	      "\x14\x00"),
	 0x86ae0, RDI, RETURNS, NULL_TOO, {6, 0, true, "push %rbx", false}},
	/* Debian 12, libc6 2.36-9+deb12u14 */
	{"glibc 2.36 malloc",
	 CODE("\x41\x54\x55\x53\x48\x89\xfb\x48\x83\xec\x10\x80\x3d\x46\x1b\x14\x00\x00\x0f"
	      "\x84\xf8\x01\x00\x00"),
	 0x98930, RDI, RETURNS, NULL_TOO, {0, 0, true, "push %r12", false}},
	{"glibc 2.36 free",
	 CODE("\x48\x85\xff\x0f\x84\xbf\x00\x00\x00\x55\x48\x8d\x77\xf0\x53\x48\x83\xec\x18"),
	 0x98ef0, RDI, ENTRY_ONLY, SKIP_NULL, {9, 0, true, "push %rbp", false}},
	{"glibc 2.36 free, NULL too",
	 CODE("\x48\x85\xff\x0f\x84\xbf\x00\x00\x00\x55\x48\x8d\x77\xf0\x53\x48\x83\xec\x18"),
	 0x98ef0, RDI, ENTRY_ONLY, NULL_TOO, {3, 0, true, "je 0x98fb8", false}},
	{"glibc 2.36 realloc", CODE("\x41\x57\x41\x56\x41\x55\x41\x54\x55\x48\x89\xf5\x53"),
	 0x99130, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r15", false}},
	{"glibc 2.36 posix_memalign",
	 CODE("\x80\x3d\x01\x02\x14\x00\x00\x41\x54\x49\x89\xd4\x55\x48\x89\xfd\x53"), 0x9a280,
	 RDI | RSI | RDX, RETURNS, NULL_TOO, {7, 0, true, "push %r12", false}},
	{"glibc 2.36 memalign",
	 CODE("\x80\x3d\x71\x0e\x14\x00\x00\x74\x07\xe9\x32\xf6\xff\xff\x66\x90\x48\x83\xec\x18"),
	 0x99610, RDI | RSI, RETURNS, NULL_TOO, {7, 0, true, "je 0x99620", false}},
	{"glibc 2.36 calloc",
	 CODE("\x41\x55\x48\x89\xf8\x41\x54\x55\x53\x48\x83\xec\x18\x48\xf7\xe6\x48\x89\xc3"
	      "\x0f\x90\xc0"),
	 0x996e0, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r13", false}},
	{"glibc 2.36 valloc",
	 CODE("\x80\x3d\x31\x0e\x14\x00\x00\x53\x48\x89\xfb\x74\x1b\x48\x8b\x05\x34\x98\x13"
	      "\x00"),
	 0x99650, RDI, RETURNS, NULL_TOO, {7, 0, true, "push %rbx", false}},
	{"glibc 2.36 pvalloc",
	 CODE("\x80\x3d\x01\x0e\x14\x00\x00\x53\x48\x89\xfb\x74\x2b\x48\x8b\x05\x04\x98\x13"
	      "\x00"),
	 0x99680, RDI, RETURNS, NULL_TOO, {7, 0, true, "push %rbx", false}},
	/* Debian 13, libc6 2.41-12+deb13u5 */
	{"glibc 2.41 malloc",
	 CODE("\x41\x54\x55\x53\x48\x89\xfb\x48\x83\xec\x10\x80\x3d\x46\x99\x14\x00\x00\x0f"
	      "\x84\x68\x01\x00\x00"),
	 0xa28d0, RDI, RETURNS, NULL_TOO, {0, 0, true, "push %r12", false}},
	{"glibc 2.41 calloc",
	 CODE("\x41\x56\x48\x89\xf8\x41\x55\x41\x54\x55\x53\x48\x83\xec\x10\x48\xf7\xe6\x48"
	      "\x89\xc3"),
	 0xa3b00, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r14", false}},
	{"glibc 2.41 realloc",
	 CODE("\x41\x57\x41\x56\x41\x55\x41\x54\x55\x48\x89\xf5\x53\x48\x89\xfb\x48\x83\xec"
	      "\x38"),
	 0xa3310, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %r15", false}},
	{"glibc 2.41 free",
	 CODE("\x48\x85\xff\x0f\x84\x7f\x01\x00\x00\x41\x57\x41\x56\x41\x55\x41\x54\x55\x48"
	      "\x8d\x6f\xf0"),
	 0xa2fc0, RDI, ENTRY_ONLY, SKIP_NULL, {9, 0, true, "push %r15", false}},
	{"glibc 2.41 posix_memalign",
	 CODE("\x80\x3d\x51\x7a\x14\x00\x00\x41\x54\x49\x89\xd4\x55\x48\x89\xfd\x53\x48\x89"
	      "\xf3"),
	 0xa47d0, RDI | RSI | RDX, RETURNS, NULL_TOO, {7, 0, true, "push %r12", false}},
	{"glibc 2.41 memalign",
	 CODE("\x80\x3d\x61\x88\x14\x00\x00\x74\x07\xe9\x12\xf2\xff\xff"),
	 0xa39c0, RDI | RSI, RETURNS, NULL_TOO, {7, 0, true, "je 0xa39d0", false}},
	{"glibc 2.41 aligned_alloc",
	 CODE("\x53\x48\x89\xfb\x48\x83\xec\x10\x80\x3d\x19\x88\x14\x00\x00\x74\x3f\x48\x8d"
	      "\x43\xff"),
	 0xa3a00, RDI | RSI, RETURNS, NULL_TOO, {0, 0, true, "push %rbx", false}},
	{"glibc 2.41 valloc",
	 CODE("\x80\x3d\xb1\x87\x14\x00\x00\x53\x48\x89\xfb\x74\x1b\x48\x8b\x05\x3c\x14\x14"
	      "\x00"),
	 0xa3a70, RDI, RETURNS, NULL_TOO, {7, 0, true, "push %rbx", false}},
	{"glibc 2.41 pvalloc",
	 CODE("\x80\x3d\x81\x87\x14\x00\x00\x53\x48\x89\xfb\x74\x2b\x48\x8b\x05\x0c\x14\x14"
	      "\x00"),
	 0xa3aa0, RDI, RETURNS, NULL_TOO, {7, 0, true, "push %rbx", false}},
	/* Debian 12, libjemalloc2 5.3.0-1 */
	{"jemalloc malloc",
	 CODE("\x48\x81\xff\x00\x10\x00\x00\x0f\x87\x93\x00\x00\x00\x48\x8d\x15\x5c\x7f\x2c\x00"),
	 0x23910, RDI, RETURNS, NULL_TOO, {7, 0, true, "ja 0x239b0", false}},
	{"jemalloc free",
	 CODE("\x48\x89\xf8\x48\x8b\x15\x0e\x53\x0a\x00\x48\x89\xf9\x48\xc1\xe8\x1a\x48\x81"
	      "\xe1\x00\x00\x00\xc0\x25\xf0\x00\x00\x00\x64\x48\x03\x04\x25\x00\x00\x00\x00"
	      "\x48\x01\xd0\x48\x3b\x88\xb0\x01\x00\x00\x0f\x85\x8a\x00\x00\x00\x48\x89\xfe"),
	 0x27c60, RDI, ENTRY_ONLY, SKIP_NULL, {48, 0, true, "jne 0x27d20", false}},
	/* Debian 12, libtcmalloc-minimal4 2.10-1 */
	{"tcmalloc malloc",
	 CODE("\x48\x8b\x05\x59\xab\x00\x00\x48\x85\xc0\x75\x75\x48\x8b\x05\x05\xa1\x00\x00"),
	 0x1ed40, RDI, RETURNS, NULL_TOO, {10, 0, true, "jne 0x1edc1", false}},
	{"tcmalloc free",
	 CODE("\x48\x8b\x05\x59\xb1\x1b\x00\x48\x85\xc0\x0f\x85\x90\x00\x00\x00\x48\x89\xfa"),
	 0x1d100, RDI, ENTRY_ONLY, SKIP_NULL, {10, 0, true, "jne 0x1d1a0", false}},
	/* Debian 12, libmimalloc2.0 2.0.9+ds-2: its heap comes before the arguments */
	{"mimalloc malloc",
	 CODE("\x48\x8b\x05\x49\xb4\x00\x00\x48\x89\xfe\x64\x48\x8b\x38\x48\x81\xfe\x00\x04"
	      "\x00\x00\x77\x29"),
	 0x10b70, RDI, RETURNS, NULL_TOO, {21, 0, true, "ja 0x10bb0", true}},
	{"mimalloc calloc: no register on, but in rax",
	 CODE("\x48\x8b\x15\xc9\xad\x00\x00\x48\x89\xf8\x64\x48\x8b\x3a\x48\x83\xf8\x01"
	      "\x74\x08"),
	 0x111f0, RDI | RSI, RETURNS, NULL_TOO, {0, 0, false, "movq 0xadc9(%rip), %rdx", false}},
	{"mimalloc realloc",
	 CODE("\x48\x8b\x05\x49\xa9\x00\x00\x48\x89\xf2\x48\x89\xfe\x64\x48\x8b\x00\x48"
	      "\x89\xc7\xe9\xf7\x4e\xff\xff"),
	 0x11670, RDI | RSI, RETURNS, NULL_TOO, {20, 0, true, "jmp 0x6580", true}},
	{"mimalloc reallocn",
	 CODE("\x48\x8b\x05\x29\xa9\x00\x00\x48\x89\xd1\x48\x89\xf2\x48\x89\xfe\x64\x48"
	      "\x8b\x00\x48\x89\xc7\xe9\xc4\x49\xff\xff"),
	 0x11690, RDI | RSI | RDX, RETURNS, NULL_TOO, {23, 0, true, "jmp 0x6070", true}},
	{"mimalloc free", CODE("\x48\x89\xf9\x48\x85\xff\x74\x5d\x48\x8d\x7f\xff\x48\x89\xc8"),
	 0x10ee0, RDI, ENTRY_ONLY, SKIP_NULL, {6, 0, true, "je 0x10f45", false}},
	/* Debian 12, musl 1.2.3-1 */
	{"musl malloc", CODE("\xe9\x6b\x19\x00\x00"), 0x27920, RDI, RETURNS, NULL_TOO, {0, 0,
	 true, "jmp 0x29290", false}},
	{"musl posix_memalign", CODE("\x53\xb8\x16\x00\x00\x00\x48\x89\xfb\x48\x89\xf7"), 0x29fa0,
	 RDI | RSI | RDX, RETURNS, NULL_TOO, {0, 0, true, "push %rbx", false}},
	/*
	 * Debian 13 compiles these with -fcf-protection, as Ubuntu does everything: libjemalloc2
	 * 5.3.0-3
	 */
	{"jemalloc, endbr64: malloc",
	 CODE("\xf3\x0f\x1e\xfa\x48\x81\xff\x00\x10\x00\x00\x0f\x87\x7f\x00\x00\x00\x48\x8d"
	      "\x15\xd8\x89\x10\x00"),
	 0x23e90, RDI, RETURNS, NULL_TOO, {11, 0, true, "ja 0x23f20", false}},
	{"jemalloc, endbr64: calloc",
	 CODE("\xf3\x0f\x1e\xfa\x41\x57\x41\x56\x41\x55\x41\x54\x55\x48\x89\xfd\x53\x48\x81"
	      "\xec\x88\x00\x00\x00"),
	 0x25a20, RDI | RSI, RETURNS, NULL_TOO, {4, 0, true, "push %r15", false}},
	{"jemalloc, endbr64: free",
	 CODE("\xf3\x0f\x1e\xfa\x48\x89\xf8\x48\x8b\x0d\x6a\x5d\x0a\x00\x48\x89\xfa\x48\xc1"
	      "\xe8\x17\x48\x81\xe2\x00\x00\x00\xf8\x25\xf0\x00\x00\x00\x64\x48\x03\x04\x25"
	      "\x00\x00\x00\x00\x48\x01\xc8\x48\x3b\x90\xb0\x01\x00\x00\x0f\x85\x86\x00\x00"
	      "\x00"),
	 0x28200, RDI, ENTRY_ONLY, SKIP_NULL, {52, 0, true, "jne 0x282c0", false}},
	/* Debian 13, libtcmalloc-minimal4t64 2.16-1 */
	{"tcmalloc, endbr64: malloc",
	 CODE("\xf3\x0f\x1e\xfa\x48\x8b\x05\x75\x91\x00\x00\x48\x85\xc0\x75\x79\x48\x8b\x05"
	      "\x09\x8a\x00\x00"),
	 0x1f5c0, RDI, RETURNS, NULL_TOO, {14, 0, true, "jne 0x1f649", false}},
	{"tcmalloc, endbr64: calloc",
	 CODE("\xf3\x0f\x1e\xfa\x48\x89\xf8\x55\x48\xf7\xe6\x48\x89\xe5\x41\x54\x49\x89\xc4"
	      "\x53"),
	 0x1e240, RDI | RSI, RETURNS, NULL_TOO, {7, 0, true, "push %rbp", false}},
	{"tcmalloc, endbr64: free",
	 CODE("\xf3\x0f\x1e\xfa\x48\x8b\x05\xf5\x5e\x1b\x00\x48\x85\xc0\x0f\x85\x8c\x00\x00"
	      "\x00"),
	 0x1d800, RDI, ENTRY_ONLY, SKIP_NULL, {14, 0, true, "jne 0x1d8a0", false}},
	/* Debian 13, libmimalloc3 3.0.1+ds-2.1 */
	{"mimalloc, endbr64: malloc",
	 CODE("\xf3\x0f\x1e\xfa\x48\x8b\x05\xe5\xae\x01\x00\x48\x89\xfe\x64\x48\x8b\x38\x48"
	      "\x81\xfe\x00\x04\x00\x00"),
	 0x70e0, RDI, RETURNS, NULL_TOO, {0, 0, false, "endbr64", false}},
	{"mimalloc, endbr64: free",
	 CODE("\xf3\x0f\x1e\xfa\x48\x8b\x15\xf5\x19\x02\x00\x48\x89\xf9\x48\x89\xf8\x48\x89"
	      "\xfe"),
	 0x6c00, RDI, ENTRY_ONLY, SKIP_NULL, {0, 0, false, "endbr64", false}},
	/* Debian 13, musl 1.2.5-3.1~deb13u1 */
	{"musl, endbr64: malloc",
	 CODE("\xf3\x0f\x1e\xfa\xe9\xc7\x0b\x00\x00"),
	 0x4e0a0, RDI, RETURNS, NULL_TOO, {4, 0, true, "jmp 0x4ec70", false}},
	{"musl, endbr64: free",
	 CODE("\xf3\x0f\x1e\xfa\xe9\xd7\x09\x00\x00"),
	 0x4e080, RDI, ENTRY_ONLY, SKIP_NULL, {4, 0, true, "jmp 0x4ea60", false}},
	{"musl, endbr64: posix_memalign",
	 CODE("\xf3\x0f\x1e\xfa\xb8\x16\x00\x00\x00\x48\x83\xfe\x07\x76\x21\x53\x48\x89\xfb"
	      "\x48\x89\xf7"),
	 0x4f9b0, RDI | RSI | RDX, RETURNS, NULL_TOO, {13, 0, true, "jbe 0x4f9e0", false}},
	{"musl, endbr64: aligned_alloc",
	 CODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xf8\x53\x48\xf7\xd8\x48\x21\xf8\x48\x83\xec\x08"
	      "\x48\x39\xf8"),
	 0x4e0b0, RDI | RSI, RETURNS, NULL_TOO, {4, 0, true, "push %rbp", false}},
	/*
	 * no package: gcc 12.2.0 -O2 -fcf-protection=full on a free() that begins "if (!memory)
	 * return"
	 */
	{"gcc, endbr64: free", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x47\x55\x48\x8d\x6f\xf0\x53"),
	 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {9, 0, true, "push %rbp", false}},
};

/* The rules. */
static const struct expected rules[] = {
	/* sub $24,%rsp; push: known distance */
	{"entry-only passes a known rsp", CODE("\x48\x83\xec\x18\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, NULL_TOO, {4, 24, true, "push %rbx", false}},
	{"return probe does not", CODE("\x48\x83\xec\x18\x53\xc3"), 0x1000, RDI, RETURNS,
	 NULL_TOO, {0, 0, false, "subq $0x18, %rsp", false}},
	/* push $1 (stepped); push */
	{"push of a constant counts", CODE("\x6a\x01\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {2, 8, true, "push %rbx", false}},
	/* lea -8(%rsp),%rsp; push */
	{"rsp moved by lea", CODE("\x48\x8d\x64\x24\xf8\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "leaq -8(%rsp), %rsp", false}},
	/* and $-32,%rsp; push */
	{"rsp aligned", CODE("\x48\x83\xe4\xe0\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {0, 0, false, "andq $0xffffffffffffffe0, %rsp", false}},
	/* sub $4096,%rsp; push: farther than a cookie can say */
	{"rsp too far", CODE("\x48\x81\xec\x00\x10\x00\x00\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "subq $0x1000, %rsp", false}},
	/* xor %edi,%edi; push */
	{"live register written in part", CODE("\x31\xff\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "xorl %edi, %edi", false}},
	{"dead register written", CODE("\x31\xff\x53\xc3"), 0x1000, RSI, ENTRY_ONLY, NULL_TOO,
	 {2, 0, true, "push %rbx", false}},
	/* mov %rdi,%rsi; push: both have it, the first counts */
	{"argument copied", CODE("\x48\x89\xfe\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {3, 0, true, "push %rbx", false}},
	/* mov %rdi,%rsi; mov %rax,%rdi; push */
	{"argument moved on", CODE("\x48\x89\xfe\x48\x89\xc7\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {6, 0, true, "push %rbx", true}},
	/* mov %edi,%esi; mov %rax,%rdi; push */
	{"half of an argument moved on", CODE("\x89\xfe\x48\x89\xc7\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, NULL_TOO, {0, 0, false, "movl %edi, %esi", false}},
	/* mov %rdi,%rsi; mov %rax,%rdi; xor %esi,%esi; push */
	{"argument moved on and written", CODE("\x48\x89\xfe\x48\x89\xc7\x31\xf6\x53\xc3"),
	 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0, false, "movq %rdi, %rsi", false}},
	/* mov %rdi,%rdx; mov %rax,%rdi; push: two on is not one */
	{"argument moved too far", CODE("\x48\x89\xfa\x48\x89\xc7\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, NULL_TOO, {0, 0, false, "movq %rdi, %rdx", false}},
	/* mov %rdi,%rdx; mov %rax,%rdi; mov %rdx,%rsi; push: but on the way to one */
	{"argument moved in two steps",
	 CODE("\x48\x89\xfa\x48\x89\xc7\x48\x89\xd6\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {9, 0, true, "push %rbx", true}},
	/* mov %rdi,%rsi; push: the second argument is lost */
	{"one argument over the other", CODE("\x48\x89\xfe\x53\xc3"), 0x1000, RDI | RSI,
	 ENTRY_ONLY, NULL_TOO, {0, 0, false, "movq %rdi, %rsi", false}},
	/* xchg %rdi,%rsi; push: neither here nor there */
	{"arguments exchanged", CODE("\x48\x87\xfe\x53\xc3"), 0x1000, RDI | RSI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "xchgq %rdi, %rsi", false}},
	/* mul %rsi; push: rdx is an implicit result */
	{"implicit write", CODE("\x48\xf7\xe6\x53\xc3"), 0x1000, RDX, ENTRY_ONLY, NULL_TOO, {0, 0,
	 false, "mulq %rsi", false}},
	/* mov %rsp,%rbp; push */
	{"frame pointer written", CODE("\x48\x89\xe5\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {0, 0, false, "movq %rsp, %rbp", false}},
	/* mov; call: on a call, never behind it */
	{"call is a place", CODE("\x89\xc0\xe8\x00\x00\x00\x00\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {2, 0, true, "call 0x1007", false}},
	/* call *%rax (stepped); push */
	{"nothing behind a call", CODE("\xff\xd0\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {0, 0, false, "call *%rax", false}},
	/* ret; push */
	{"nothing behind a return", CODE("\xc3\x53"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0,
	 false, "ret", false}},
	{"nop", CODE("\x90\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0, true, "nop", false}},
	/* nopl 0(%rax,%rax,1); push: long nops are stepped by older kernels */
	{"long nop", CODE("\x0f\x1f\x44\x00\x00\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {5, 0, true, "push %rbx", false}},
	/* data16 push %ax; push */
	{"push of 16 bits", CODE("\x66\x50\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0,
	 false, "pushw %ax", false}},
	/* rex.W push %rbx is not emulated; push %rbp */
	{"push with another prefix", CODE("\x48\x53\x55\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {2, 8, true, "push %rbp", false}},
	/* lock incl (%rax) takes no uprobe at all; mov %eax,%eax; ret */
	{"refused instruction", CODE("\xf0\xff\x00\x89\xc0\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {3, 0, false, "movl %eax, %eax", false}},
	/* bnd jmp */
	{"bnd branch", CODE("\xf2\xe9\x00\x01\x00\x00"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0,
	 true, "bnd jmp 0x1106", false}},
	/* jrcxz; push */
	{"jrcxz is stepped", CODE("\xe3\x05\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0,
	 false, "jrcxz 0x1007", false}},

	/* cmp $0,%rdi; je; push */
	{"null check by cmp", CODE("\x48\x83\xff\x00\x74\x10\x53\xc3"), 0x1000, RDI, ENTRY_ONLY,
	 SKIP_NULL, {6, 0, true, "push %rbx", false}},
	/* test %rdi,%rdi; jne; push: not taken means NULL */
	{"branch for others than NULL", CODE("\x48\x85\xff\x75\x10\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {3, 0, true, "jne 0x1015", false}},
	/* test %rsi,%rsi; je; push */
	{"null check of another argument", CODE("\x48\x85\xf6\x74\x10\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {3, 0, true, "je 0x1015", false}},
	/* test %edi,%edi; je; push: half of it 0 is not NULL */
	{"null check of half a register", CODE("\x85\xff\x74\x10\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {2, 0, true, "je 0x1014", false}},
	/* test %rdi,%rdi; cmp $1,%eax; je; push */
	{"flags changed since", CODE("\x48\x85\xff\x83\xf8\x01\x74\x10\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {6, 0, true, "je 0x1018", false}},
	/* test %rdi,%rdi; mov %rdi,%rax; je; push */
	{"flags kept by mov", CODE("\x48\x85\xff\x48\x89\xf8\x74\x10\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {8, 0, true, "push %rbx", false}},
	/* test %rdi,%rdi; je; xor %edi,%edi: nothing behind, so the branch itself */
	{"no place behind the null check", CODE("\x48\x85\xff\x74\x10\x31\xff\x53\xc3"), 0x1000,
	 RDI, ENTRY_ONLY, SKIP_NULL, {3, 0, true, "je 0x1015", false}},
	/* test; je +1: the branch leads behind the push */
	{"null branch over the place", CODE("\x48\x85\xff\x74\x01\x53\xc3"), 0x1000, RDI,
	 ENTRY_ONLY, SKIP_NULL, {5, 0, true, "push %rbx", false}},

	/* mov; push; ...; jmp back to the push */
	{"loop to the place", CODE("\x89\xc0\x53\x89\xc0\xeb\xfb"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "movl %eax, %eax", false}},
	/* mov; mov; push; jmp back to the second mov */
	{"loop into the prologue", CODE("\x89\xc0\x89\xc0\x53\xeb\xfb"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {0, 0, false, "movl %eax, %eax", false}},
	/* mov; push; mov; jmp back to the mov behind the push */
	{"loop behind the place", CODE("\x89\xc0\x53\x89\xc0\xeb\xfc"), 0x1000, RDI, ENTRY_ONLY,
	 NULL_TOO, {2, 0, true, "push %rbx", false}},
	/* an undecodable byte ends the walk, and not the sweep for loops */
	{"bad byte behind", CODE("\x89\xc0\x06\x53\xc3"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO,
	 {0, 0, false, "movl %eax, %eax", false}},
	/* the function ends before its first emulated instruction */
	{"short function", CODE("\x89\xc0"), 0x1000, RDI, ENTRY_ONLY, NULL_TOO, {0, 0, false,
	 "movl %eax, %eax", false}},
};
/* clang-format on */

static void check_all(const struct expected *table, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct expected *want = &table[i];
		struct probe_plan got;
		int ret = probe_plan_make((const uint8_t *)want->code, want->len, want->vma,
					  want->live_regs, want->returns, want->skip_null, &got);

		if (ret || got.delta != want->plan.delta || got.emulated != want->plan.emulated ||
		    got.sp_bytes != want->plan.sp_bytes || strcmp(got.insn, want->plan.insn))
			fprintf(stderr, "%s: got %d, +%u, sp %u, %s '%s'\n", want->name, ret,
				got.delta, got.sp_bytes, got.emulated ? "emulated" : "stepped",
				got.insn);
		CHECK_EQ(ret, 0);
		CHECK_EQ(got.delta, want->plan.delta);
		CHECK_EQ(got.sp_bytes, want->plan.sp_bytes);
		CHECK_EQ(got.emulated, want->plan.emulated);
		CHECK_EQ(got.shifted, want->plan.shifted);
		CHECK_STR(got.insn, want->plan.insn);
	}
}

TEST(recorded_prologues)
{
	check_all(recorded, sizeof(recorded) / sizeof(recorded[0]));
}

TEST(rules_one_at_a_time)
{
	check_all(rules, sizeof(rules) / sizeof(rules[0]));
}

TEST(undecodable_code_is_refused)
{
	struct probe_plan plan = {.delta = 42};

	CHECK_EQ(probe_plan_make((const uint8_t *)"\x06", 1, 0, RDI, false, false, &plan),
		 -EBADMSG);
	CHECK_EQ(probe_plan_make((const uint8_t *)"\x48", 1, 0, RDI, false, false, &plan),
		 -EBADMSG);
	CHECK_EQ(probe_plan_make((const uint8_t *)"", 0, 0, RDI, false, false, &plan), -EBADMSG);
	CHECK_EQ(plan.delta, 42);
}

TEST(text_that_does_not_fit_is_cut)
{
	/* movabs $0x1122334455667788,%rax; movq %fs:0x11223344(%r12,%r13,8),%rax and the like */
	static const char code[] = "\x64\x4a\xc7\x84\xec\x44\x33\x22\x11\x88\x77\x66\x55\xc3";
	struct probe_plan plan;

	CHECK_EQ(probe_plan_make((const uint8_t *)code, sizeof(code) - 1, 0x1000, RDI, false, false,
				 &plan),
		 0);
	CHECK(strlen(plan.insn) < sizeof(plan.insn));
}

TEST(any_bytes_give_a_place_inside)
{
	uint64_t state = 0x9e3779b97f4a7c15;

	for (int round = 0; round < 3000; round++) {
		uint8_t code[64];
		struct probe_plan plan;
		size_t len = 1 + (size_t)round % sizeof(code);

		for (size_t i = 0; i < sizeof(code); i++) {
			state ^= state << 13; /* xorshift64 */
			state ^= state >> 7;
			state ^= state << 17;
			code[i] = (uint8_t)state;
		}
		if (probe_plan_make(code, len, UINT64_MAX - 40, RDI, round & 1, round & 2, &plan))
			continue;
		CHECK(plan.delta < len);
		CHECK(plan.sp_bytes <= 2040);
		CHECK(!(round & 1) || plan.sp_bytes == 0);
	}
}
