// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks through signal handlers: on the thread's stack and on one of their own, from the middle of
 * library functions, and at each single instruction of a call through the linker's stubs. And a
 * child that borrows our memory.
 * build: -fno-builtin -pthread -rdynamic -Wl,-z,lazy -D_GNU_SOURCE
 */
#include "frames.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#define STACK_BYTES (256 * 1024)

static volatile size_t wanted; /* what the handler allocates; 0: nothing */

FRAME void on_signal(int signal)
{
	size_t size = wanted;

	wanted = 0;
	if (size)
		take(size);
	TRUTH_KEEP(&signal);
}

FRAME void interrupted(void)
{
	raise(SIGUSR1);
	AFTER_CALL();
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	if (sigaction(signal, &action, NULL))
		_exit(5);
}

GROUP(raised)
{
	static char stack[STACK_BYTES];
	stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};

	handle(SIGUSR1, on_signal, 0);
	wanted = SITE_SIZE(0);
	interrupted();
	chain(SITE_SIZE(0), "take;on_signal;*;interrupted");

	sigaltstack(&own, NULL);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	wanted = SITE_SIZE(1);
	interrupted();
	chain(SITE_SIZE(1), "take;on_signal;*;interrupted");
}

FRAME ssize_t raising_write(void *cookie, const char *bytes, size_t cnt)
{
	TRUTH_KEEP(cookie);
	TRUTH_KEEP(bytes);
	raise(SIGUSR1);
	AFTER_CALL();
	return cnt;
}

FRAME void prints(FILE *file)
{
	fprintf(file, "%s %d\n", "a line that is written at once", 7);
	AFTER_CALL();
}

/* The handler runs while vfprintf is at work. */
GROUP(within_library)
{
	FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = raising_write});

	if (!file || setvbuf(file, NULL, _IONBF, 0))
		_exit(6);
	wanted = SITE_SIZE(2);
	prints(file);
	chain(SITE_SIZE(2), "take;on_signal;*;raising_write;*;prints");
	fclose(file);
}

/* A handler that is interrupted itself. */
FRAME void on_outer(int signal)
{
	TRUTH_KEEP(&signal);
	interrupted();
}

GROUP(nested)
{
	handle(SIGUSR2, on_outer, 0);
	wanted = SITE_SIZE(3);
	raise(SIGUSR2);
	chain(SITE_SIZE(3), "take;on_signal;*;interrupted;on_outer;*");
}

/* --- one instruction after the other
 * -------------------------------------------------------------- */

#define TRAP_FLAG 0x100
#define STEPS_MAX 20000

/* Told by the handler, for the chains that are said later. */
static struct {
	const char *own; /* the function of ours that was interrupted; NULL: a library's */
	const char *callers;
	int in_linker;
} steps[STEPS_MAX];
static volatile size_t step_cnt;
static volatile int is_stepping;
static const char *volatile callers; /* of whatever is not ours */
static uintptr_t own_start, own_end, linker_start, linker_end;

FRAME int inner(int n);
FRAME int outer(int n);
FRAME void step_through(void);

/* Symbols by hand: dladdr takes a lock that the interrupted code may hold. */
struct own_function {
	const char *name, *callers;
	uintptr_t start, end;
};
static struct own_function own_functions[] = {
	{"inner", "outer;step_through", 0, 0},
	{"outer", "step_through", 0, 0},
	{"step_through", "", 0, 0},
};
#define OWN_CNT (sizeof(own_functions) / sizeof(own_functions[0]))

FRAME void on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	uintptr_t pc = user->uc_mcontext.gregs[REG_RIP];
	size_t n = step_cnt;

	TRUTH_KEEP(&signal);
	TRUTH_KEEP(info);
	if (!is_stepping || n == STEPS_MAX) {
		user->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	steps[n].callers = callers;
	for (size_t i = 0; i < OWN_CNT; i++) {
		if (pc < own_functions[i].start || pc >= own_functions[i].end)
			continue;
		steps[n].own = own_functions[i].name;
		steps[n].callers = own_functions[i].callers;
	}
	/* Our file's, but no function: the linker's stubs. */
	if (!steps[n].own && pc >= own_start && pc < own_end)
		steps[n].own = "=";
	steps[n].in_linker = pc >= linker_start && pc < linker_end;
	step_cnt = n + 1;
	take(SITE_SIZE(1000 + n));
	AFTER_CALL();
}

/* Has a prologue, a frame that changes its size, and an epilogue; calls nobody. */
FRAME int inner(int n)
{
	volatile char room[200];

	for (int i = 0; i < 5; i++)
		room[i * n % 200] = i;
	return room[n];
}

/*
 * getppid is called for the first time: the stub, the dynamic linker's search, the call itself; the
 * second time the stub jumps at once.
 */
FRAME int outer(int n)
{
	int sum;

	callers = "outer;step_through";
	sum = getppid() + getppid();
	sum += inner(n);
	callers = "step_through";
	return sum + n;
}

FRAME void step_through(void)
{
	is_stepping = 1;
	__asm__ volatile("pushfq\norq $0x100,(%%rsp)\npopfq\n" : : : "memory", "cc");
	outer(3);
	is_stepping = 0;
	AFTER_CALL();
}

static int find_linker(struct dl_phdr_info *info, size_t bytes, void *data)
{
	TRUTH_KEEP(bytes);
	TRUTH_KEEP(data);
	for (int i = 0; strstr(info->dlpi_name, "/ld-linux") && i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		linker_start = info->dlpi_addr + segment->p_vaddr;
		linker_end = linker_start + segment->p_memsz;
	}
	return 0;
}

static void find_own(void)
{
	extern char __executable_start, etext;

	own_start = (uintptr_t)&__executable_start;
	own_end = (uintptr_t)&etext;
	dl_iterate_phdr(find_linker, NULL);
	for (size_t i = 0; i < OWN_CNT; i++) {
		const Elf64_Sym *symbol;
		void *start = dlsym(RTLD_DEFAULT, own_functions[i].name);
		Dl_info info;

		if (!start || !dladdr1(start, &info, (void **)&symbol, RTLD_DL_SYMENT))
			_exit(7);
		own_functions[i].start = (uintptr_t)start;
		own_functions[i].end = (uintptr_t)start + symbol->st_size;
	}
}

/*
 * The dynamic linker's way into itself keeps the caller's frame in rbx, which nobody follows: a
 * stack may be cut there, and says so.
 */
static void tell_step(size_t n)
{
	const char *callers = steps[n].callers, *separator = *callers ? ";" : "";

	say("CHAIN %zu 1 take;on_trap;*;%s%s%s;each_instruction;%s%s\n",
	    (size_t)SITE_SIZE(1000 + n), steps[n].own ? steps[n].own : "*", separator, callers,
	    MAIN, steps[n].in_linker ? " or take;on_trap;*;[unsupported_rule]" : "");
}

GROUP(each_instruction)
{
	static char stack[STACK_BYTES];
	stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_ONSTACK | SA_SIGINFO};

	find_own();
	sigaltstack(&own, NULL);
	if (sigaction(SIGTRAP, &action, NULL))
		_exit(8);
	step_through();
	if (step_cnt < 100 || step_cnt == STEPS_MAX)
		_exit(9);
	for (size_t n = 0; n < step_cnt; n++)
		tell_step(n);
}

/* --- a child in our memory
 * ------------------------------------------------------------------------ */

FRAME void in_child(void)
{
	take(SITE_SIZE(10));
	_exit(0);
}

GROUP(borrowed)
{
	pid_t pid = vfork();

	if (!pid)
		in_child();
	waitpid(pid, NULL, 0);
	take(SITE_SIZE(11));
	chain(SITE_SIZE(11), "take");
}

int main(void)
{
	await("READY");
	raised();
	within_library();
	nested();
	each_instruction();
	borrowed();
	AFTER_CALL();
	await("DONE");
	return 0;
}
