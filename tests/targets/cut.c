// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks that cannot be walked to their end, for every reason there is, and none of them longer
 * than what is certain: functions with CFI that is wrong, functions without, code made at run time.
 * build: -fno-builtin
 */
#include "frames.h"

#include <sys/mman.h>

#define TEXT_BYTES 4096

/* A function that calls take(rdi) between `enter` and `leave`; its CFI is theirs to write. */
#define AROUND_TAKE(name, enter, leave)                                                            \
	__asm__(".text\n.type " #name ",@function\n" #name ":\n" enter "call take\n" leave         \
		"ret\n.size " #name ",.-" #name "\n.skip 64,0xcc\n");                              \
	void name(size_t size, uintptr_t argument)

#define CFI_START ".cfi_startproc\n"
#define CFI_END	  ".cfi_endproc\n"
#define PUSH_RBX  "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset 3,-16\n"
#define POP_RBX	  "pop %rbx\n.cfi_def_cfa 7,8\n"

/* The frame is in rbx, which nobody follows. */
AROUND_TAKE(frame_in_rbx, CFI_START PUSH_RBX "mov %rsp,%rbx\n.cfi_def_cfa_register 3\n",
	    POP_RBX CFI_END);

/* Claims that rsp is its caller's already. */
AROUND_TAKE(frame_of_nothing, CFI_START "push %rbx\n.cfi_def_cfa 7,0\n", "pop %rbx\n" CFI_END);

/* Claims that its frame is where the argument points. */
AROUND_TAKE(frame_elsewhere, CFI_START "push %rbp\nmov %rsi,%rbp\n.cfi_def_cfa 6,16\n",
	    "pop %rbp\n" CFI_END);

/* Claims that it was called from its argument. */
AROUND_TAKE(called_from, CFI_START "push %rbx\npush %rsi\npush %rsi\n.cfi_def_cfa 7,16\n",
	    "pop %rbx\npop %rbx\npop %rbx\n" CFI_END);

/* Says nothing of itself, and rbp is no frame pointer. */
AROUND_TAKE(without_cfi, "push %rbp\nmov %rsi,%rbp\n", "pop %rbp\n");

/* The same below a function that keeps a frame pointer: rbp is that one's, not the caller's. */
__asm__(".text\n.type framed_caller,@function\nframed_caller:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset 6,-16\nmov %rsp,%rbp\n"
	".cfi_def_cfa_register 6\ncall *%rdx\npop %rbp\n.cfi_def_cfa 7,8\n.cfi_restore 6\nret\n"
	".cfi_endproc\n.size framed_caller,.-framed_caller\n");
void framed_caller(size_t size, void (*take)(size_t), void *code);
AROUND_TAKE(without_cfi_or_rbp, "push %rbx\n", "pop %rbx\n");

/* Where this returns to is an address that one would believe. */
FRAME uintptr_t plausible(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

GROUP(decoys)
{
	/* Frames that never were: [address of the next one, return address] and so on. */
	uintptr_t frames[8];

	for (int i = 0; i < 8; i += 2) {
		frames[i] = (uintptr_t)&frames[(i + 2) % 8];
		frames[i + 1] = plausible();
	}
	TRUTH_KEEP(frames);
	without_cfi(SITE_SIZE(20), (uintptr_t)frames);
	chain_of(SITE_SIZE(20), 1, "take;without_cfi", "[no_row]");
	framed_caller(SITE_SIZE(21), NULL, without_cfi_or_rbp);
	chain_of(SITE_SIZE(21), 1, "take;without_cfi_or_rbp", "[no_row]");
}

GROUP(known_code)
{
	void *hole = mmap(NULL, TEXT_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	frame_in_rbx(SITE_SIZE(0), 0);
	chain_of(SITE_SIZE(0), 1, "take;frame_in_rbx", "[unsupported_rule]");
	frame_of_nothing(SITE_SIZE(1), 0);
	chain_of(SITE_SIZE(1), 1, "take;frame_of_nothing", "[sp_not_growing]");
	/* Above all memory of processes. */
	frame_elsewhere(SITE_SIZE(2), 0x800000000000);
	chain_of(SITE_SIZE(2), 1, "take;frame_elsewhere", "[read_fault]");
	/* The address that could not be placed is told. */
	called_from(SITE_SIZE(3), (uintptr_t)hole + 1);
	chain_of(SITE_SIZE(3), 1, "take;called_from;?", "[no_mapping]");
	without_cfi(SITE_SIZE(4), 0);
	chain_of(SITE_SIZE(4), 1, "take;without_cfi", "[no_row]");
	without_cfi(SITE_SIZE(5), 0x1001);
	chain_of(SITE_SIZE(5), 1, "take;without_cfi", "[no_row]");
	munmap(hole, TEXT_BYTES);
}

/* --- code made at run time
 * ------------------------------------------------------------------------ */

typedef void thunk(size_t size, void (*take)(size_t), uintptr_t rbp);

/* sub $8,%rsp; call *%rsi; add $8,%rsp; ret */
static const unsigned char plain[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6,
				      0x48, 0x83, 0xc4, 0x08, 0xc3};
/* push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret */
static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
/* push %rbp; mov %rdx,%rbp; call *%rsi; pop %rbp; ret */
static const unsigned char rbp_is_argument[] = {0x55, 0x48, 0x89, 0xd5, 0xff, 0xd6, 0x5d, 0xc3};

/* Executable memory, anonymous or of the file `fd`, with that code at its start. */
static thunk *make_code(int fd, const unsigned char *bytes, size_t cnt)
{
	void *code;

	if (fd >= 0 && (ftruncate(fd, TEXT_BYTES) || pwrite(fd, bytes, cnt, 0) != (ssize_t)cnt))
		_exit(5);
	code = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE,
		    fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, fd, 0);
	if (code == MAP_FAILED)
		_exit(6);
	if (fd < 0)
		memcpy(code, bytes, cnt);
	if (mprotect(code, TEXT_BYTES, PROT_READ | PROT_EXEC))
		_exit(7);
	return (thunk *)code;
}

static thunk *made_plain, *made_framed, *made_rbp, *from_file;

/* Before the recording: whether new mappings are noticed is another question. */
static void make_all(void)
{
	char path[] = "code.XXXXXX";
	int fd = mkstemp(path);

	made_plain = make_code(-1, plain, sizeof(plain));
	made_framed = make_code(-1, framed, sizeof(framed));
	made_rbp = make_code(-1, rbp_is_argument, sizeof(rbp_is_argument));
	from_file = make_code(fd, plain, sizeof(plain));
	unlink(path);
}

/* The thunk's caller, with rbp set to something that is no frame pointer. */
__asm__(".text\n.type calls,@function\ncalls:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset 6,-16\nxor %ebp,%ebp\ncall *%rcx\n"
	"pop %rbp\n.cfi_def_cfa 7,8\n.cfi_restore 6\nret\n.cfi_endproc\n.size calls,.-calls\n");
void calls(size_t size, void (*take)(size_t), uintptr_t rbp, thunk *code);

GROUP(made_code)
{
	/* A frame as the outermost function has it: no caller's rbp, no return address. */
	uintptr_t outermost[2] = {0, 0}, callback[2];

	TRUTH_KEEP(outermost);
	calls(SITE_SIZE(10), take, 0, made_framed);
	chain(SITE_SIZE(10), "take;?;calls");
	calls(SITE_SIZE(11), take, 0, made_plain);
	chain_of(SITE_SIZE(11), 1, "take;?", "[fp_rejected]");
	calls(SITE_SIZE(12), take, 0x1001, made_rbp);
	chain_of(SITE_SIZE(12), 1, "take;?", "[fp_rejected]");
	/* Far from the stack. */
	calls(SITE_SIZE(13), take, (uintptr_t)made_plain, made_rbp);
	chain_of(SITE_SIZE(13), 1, "take;?", "[fp_rejected]");
	calls(SITE_SIZE(14), take, (uintptr_t)outermost, made_rbp);
	chain_of(SITE_SIZE(14), 1, "take;?", "[guessed_end]");
	/* Not a frame but two words that happen to be there, one of them a function's address. */
	callback[0] = (uintptr_t)&callback[0];
	callback[1] = (uintptr_t)take;
	TRUTH_KEEP(callback);
	calls(SITE_SIZE(16), take, (uintptr_t)callback, made_rbp);
	chain_of(SITE_SIZE(16), 1, "take;?", "[fp_rejected]");
	/* rbp is the caller's, whose own caller would seem to be the next. */
	framed_caller(SITE_SIZE(17), take, made_plain);
	chain_of(SITE_SIZE(17), 1, "take;?", "[fp_rejected]");
	calls(SITE_SIZE(15), take, 0, from_file);
	chain_of(SITE_SIZE(15), 1, "take;*", "[no_table]");
}

int main(void)
{
	make_all();
	await("READY");
	known_code();
	decoys();
	made_code();
	AFTER_CALL();
	await("DONE");
	return 0;
}
