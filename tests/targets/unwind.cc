// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every shape of frame that compilers make, each with an allocation below it: frames of all sizes
 * and alignments, cold parts, exceptions, calls that do not return, jumps instead of calls,
 * callbacks, threads, coroutines, and memory that looks like frames but is none.
 * build: -fno-builtin -pthread -Wl,-z,lazy -Wno-clobbered
 */
#include "frames.h"

#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

/* --- frames of odd size and place ----------------------------------------------------------------
 */

FRAME void recurse(int depth, size_t size)
{
	if (depth)
		recurse(depth - 1, size);
	else
		take(size);
	AFTER_CALL();
}

FRAME void with_alloca(size_t bytes, size_t size)
{
	char *room = (char *)alloca(bytes);

	memset(room, 1, bytes);
	TRUTH_KEEP(room);
	take(size);
	TRUTH_KEEP(room);
}

FRAME void aligned_frame(size_t size)
{
	alignas(64) char room[192];

	TRUTH_KEEP(room);
	take(size);
	TRUTH_KEEP(room);
}

/* Arguments on the stack and a size known only at run time: the frame is found through a copy. */
FRAME long aligned_with_arguments(long a, long b, long c, long d, long e, long f, long g, long h,
				  size_t size)
{
	alignas(64) char room[192];
	char *more = (char *)alloca(a + g);

	TRUTH_KEEP(room);
	TRUTH_KEEP(more);
	take(size);
	TRUTH_KEEP(room);
	TRUTH_KEEP(more);
	return a + b + c + d + e + f + g + h;
}

FRAME void huge_frame(size_t size)
{
	char room[700 * 1024];

	memset(room, 1, sizeof(room));
	TRUTH_KEEP(room);
	take(size);
	TRUTH_KEEP(room);
}

FRAME __attribute__((cold)) void seldom(size_t size)
{
	take(size);
	AFTER_CALL();
}

FRAME int split_by_heat(int is_rare, size_t size)
{
	if (is_rare) {
		seldom(size);
		return 1;
	}
	return is_rare + 7;
}

GROUP(odd_frames)
{
	recurse(30, SITE_SIZE(0));
	chain(SITE_SIZE(0), "take;recurse{31}");
	with_alloca(5000, SITE_SIZE(1));
	chain(SITE_SIZE(1), "take;with_alloca");
	aligned_frame(SITE_SIZE(2));
	chain(SITE_SIZE(2), "take;aligned_frame");
	aligned_with_arguments(100, 2, 3, 4, 5, 6, 700, 8, SITE_SIZE(3));
	chain(SITE_SIZE(3), "take;aligned_with_arguments");
	huge_frame(SITE_SIZE(4));
	chain(SITE_SIZE(4), "take;huge_frame");
	split_by_heat(1, SITE_SIZE(5));
	chain(SITE_SIZE(5), "take;seldom;split_by_heat");
}

/* --- calls that do not come back, and jumps
 * ------------------------------------------------------- */

struct Guard {
	size_t size;
	__attribute__((noinline)) ~Guard()
	{
		take(size);
		AFTER_CALL();
	}
};

FRAME void throw_it()
{
	throw 7;
}

FRAME void unwound(size_t size)
{
	Guard guard{size};

	TRUTH_KEEP(&guard);
	throw_it();
}

FRAME void catcher(size_t size)
{
	try {
		unwound(size);
	} catch (int) {
		take(size + 1);
	}
	AFTER_CALL();
}

static jmp_buf back;

TRUTH_C __attribute__((noinline, noclone, noreturn)) void never_returns(size_t size)
{
	take(size);
	longjmp(back, 1);
}

/*
 * last_call ends with its call; the return address is the first byte of another function, whose
 * frame is not like its own.
 */
__asm__(".text\n.type last_call,@function\nlast_call:\n.cfi_startproc\n"
	"sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ncall never_returns\n"
	".cfi_endproc\n.size last_call,.-last_call\n"
	".type behind_last_call,@function\nbehind_last_call:\n.cfi_startproc\n"
	".cfi_def_cfa_offset 4096\nud2\n.cfi_endproc\n.size behind_last_call,.-behind_last_call\n");
TRUTH_C void last_call(size_t size);

FRAME void *jumps_to_malloc(size_t size)
{
	return malloc(size);
}

FRAME void *jumps_to_that(size_t size)
{
	return jumps_to_malloc(size + 1);
}

FRAME void before_the_jumps(size_t size)
{
	TRUTH_KEEP(jumps_to_that(size - 1));
}

static size_t sort_size;

FRAME int compare(const void *a, const void *b)
{
	if (sort_size)
		take(sort_size);
	sort_size = 0;
	return *(const int *)a - *(const int *)b;
}

FRAME void sort()
{
	int numbers[] = {5, 3, 8, 1, 2, 7, 4, 6};

	qsort(numbers, 8, sizeof(int), compare);
	TRUTH_KEEP(numbers);
}

/* The first call of calloc by this file: its address is not known before. */
FRAME void bound_at_first_call(size_t size)
{
	TRUTH_KEEP(calloc(1, size));
}

GROUP(calls_and_jumps)
{
	catcher(SITE_SIZE(10));
	chain(SITE_SIZE(10), "take;Guard::~Guard;unwound;catcher");
	chain(SITE_SIZE(11), "take;catcher");
	if (!setjmp(back))
		last_call(SITE_SIZE(12));
	chain(SITE_SIZE(12), "take;never_returns;last_call");
	before_the_jumps(SITE_SIZE(13));
#ifdef __OPTIMIZE__
	chain(SITE_SIZE(13), "before_the_jumps");
#else
	chain(SITE_SIZE(13), "jumps_to_malloc;jumps_to_that;before_the_jumps");
#endif
	sort_size = SITE_SIZE(14);
	sort();
	chain(SITE_SIZE(14), "take;compare;*;sort");
	bound_at_first_call(SITE_SIZE(15));
	chain(SITE_SIZE(15), "bound_at_first_call");
}

/* --- other stacks
 * --------------------------------------------------------------------------------- */

FRAME void *thread_main(void *size)
{
	take((size_t)size);
	return size;
}

FRAME void leave_thread(size_t size)
{
	Guard guard{size};

	TRUTH_KEEP(&guard);
	pthread_exit(NULL);
}

FRAME void *leaving_thread(void *size)
{
	leave_thread((size_t)size);
	return size;
}

static pthread_key_t key;

FRAME void at_thread_end(void *size)
{
	take((size_t)size);
	AFTER_CALL();
}

FRAME void *keyed_thread(void *size)
{
	pthread_setspecific(key, size);
	return NULL;
}

static void in_thread(void *(*fn)(void *), size_t size)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, (void *)size) || pthread_join(thread, NULL))
		_exit(5);
}

GROUP(threads)
{
	in_thread(thread_main, SITE_SIZE(20));
	chain_of(SITE_SIZE(20), 1, "take;thread_main", THREAD);
	in_thread(leaving_thread, SITE_SIZE(21));
	chain_of(SITE_SIZE(21), 1, "take;Guard::~Guard;leave_thread;leaving_thread", THREAD);
	pthread_key_create(&key, at_thread_end);
	in_thread(keyed_thread, SITE_SIZE(22));
	chain_of(SITE_SIZE(22), 1, "take;at_thread_end", THREAD);
}

/* Where this returns to is an address that a walker would believe. */
FRAME void *plausible()
{
	return __builtin_return_address(0);
}

/* Frames that never were, linked by rbp: [address of the next one, return address] and so on. */
static uintptr_t decoys[512];

static void make_decoys(uintptr_t *at, size_t cnt)
{
	for (size_t i = 0; i + 1 < cnt; i += 2) {
		at[i] = (uintptr_t)&at[i + 2 < cnt ? i + 2 : 0];
		at[i + 1] = (uintptr_t)plausible();
	}
}

#define COROUTINE_BYTES (64 * 1024)

/* The upper half of it looks like frames and belongs to nobody. */
static uintptr_t coroutine_stack[2 * COROUTINE_BYTES / sizeof(uintptr_t)]
	__attribute__((aligned(64)));
static ucontext_t main_context, coroutine_context;

FRAME void coroutine_inner(size_t size)
{
	take(size);
	swapcontext(&coroutine_context, &main_context);
	take(size + 1);
	AFTER_CALL();
}

FRAME void coroutine(int size)
{
	coroutine_inner(size);
	AFTER_CALL();
}

GROUP(coroutines)
{
	make_decoys(coroutine_stack, sizeof(coroutine_stack) / sizeof(coroutine_stack[0]));
	getcontext(&coroutine_context);
	coroutine_context.uc_stack.ss_sp = coroutine_stack;
	coroutine_context.uc_stack.ss_size = COROUTINE_BYTES;
	coroutine_context.uc_link = &main_context;
	makecontext(&coroutine_context, (void (*)())coroutine, 1, SITE_SIZE(30));
	swapcontext(&main_context, &coroutine_context);
	chain_of(SITE_SIZE(30), 1, "take;coroutine_inner;coroutine", "__start_context");
	swapcontext(&main_context, &coroutine_context);
	chain_of(SITE_SIZE(31), 1, "take;coroutine_inner;coroutine", "__start_context");
}

static volatile int raw_done;

FRAME int raw_thread(void *size)
{
	take((size_t)size);
	raw_done = 1;
	syscall(60 /* exit, of this thread alone */, 0);
	return 0;
}

/*
 * A thread by clone(2) on memory of our own, which goes on above its first frame with what looks
 * like more. It uses our thread-local memory, so we do nothing meanwhile.
 */
GROUP(raw_clone)
{
	uintptr_t *stack = coroutine_stack;

	make_decoys(stack, sizeof(coroutine_stack) / sizeof(stack[0]));
	if (clone(raw_thread, stack + COROUTINE_BYTES / sizeof(*stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		  (void *)SITE_SIZE(32)) < 0)
		_exit(6);
	while (!raw_done)
		__asm__ volatile("pause" : : : "memory");
	chain_of(SITE_SIZE(32), 1, "take;raw_thread", "__clone|clone");
}

/* Uses rbp for something else, and says so. */
__asm__(".text\n.type rbp_elsewhere,@function\nrbp_elsewhere:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset 6,-16\nmov %rsi,%rbp\n"
	"call take\npop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore 6\nret\n"
	".cfi_endproc\n.size rbp_elsewhere,.-rbp_elsewhere\n");
TRUTH_C void rbp_elsewhere(size_t size, const uintptr_t *rbp);

/* What was left below us looks like frames. */
FRAME void litter()
{
	uintptr_t old[256];

	make_decoys(old, 256);
	TRUTH_KEEP(old);
}

GROUP(decoy_frames)
{
	make_decoys(decoys, 512);
	litter();
	rbp_elsewhere(SITE_SIZE(40), decoys);
	chain(SITE_SIZE(40), "take;rbp_elsewhere");
	litter();
	with_alloca(512, SITE_SIZE(41));
	chain(SITE_SIZE(41), "take;with_alloca");
}

/* --- memory that is not there
 * --------------------------------------------------------------------- */

static char *shared_stack;
#define SHARED_BYTES (1024 * 1024)

FRAME void forget_pages(size_t size)
{
	char here;

	/* All but our own page: the bytes stay in the file, the page table forgets them. */
	if (madvise((void *)(((uintptr_t)&here | 4095) + 1),
		    shared_stack + SHARED_BYTES - (char *)(((uintptr_t)&here | 4095) + 1) - 8192,
		    MADV_DONTNEED))
		_exit(7);
	take(size);
	TRUTH_KEEP(&here);
}

FRAME void fill_pages(int depth, size_t size)
{
	char room[3000];

	memset(room, depth, sizeof(room));
	TRUTH_KEEP(room);
	if (depth)
		fill_pages(depth - 1, size);
	else
		forget_pages(size);
	TRUTH_KEEP(room);
}

FRAME void *on_shared_stack(void *size)
{
	fill_pages(40, (size_t)size);
	return size;
}

GROUP(not_resident)
{
	pthread_attr_t attr;
	pthread_t thread;
	int fd = memfd_create("stack", 0);

	if (fd < 0 || ftruncate(fd, SHARED_BYTES))
		_exit(8);
	shared_stack = (char *)mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_attr_init(&attr);
	if (shared_stack == MAP_FAILED ||
	    pthread_attr_setstack(&attr, shared_stack, SHARED_BYTES) ||
	    pthread_create(&thread, &attr, on_shared_stack, (void *)SITE_SIZE(50)) ||
	    pthread_join(thread, NULL))
		_exit(9);
	chain_of(SITE_SIZE(50), 1, "take;forget_pages;fill_pages{41};on_shared_stack", THREAD);
}

/* --- many at a time
 * ------------------------------------------------------------------------------- */

#define MARKERS	     16
#define MARKER_TURNS 500

/* A thread's own function: stacks that were mixed up would show another one. */
#define MARKER(n)                                                                                  \
	FRAME void *marker_##n(void *start)                                                        \
	{                                                                                          \
		pthread_barrier_wait((pthread_barrier_t *)start);                                  \
		for (int i = 0; i < MARKER_TURNS; i++)                                             \
			recurse(n, SITE_SIZE(100 + n));                                            \
		return start;                                                                      \
	}
MARKER(0)
MARKER(1)
MARKER(2)
MARKER(3)
MARKER(4)
MARKER(5)
MARKER(6)
MARKER(7)
MARKER(8)
MARKER(9)
MARKER(10)
MARKER(11)
MARKER(12)
MARKER(13)
MARKER(14)
MARKER(15)

GROUP(many_threads)
{
	static void *(*const fns[MARKERS])(void *) = {marker_0,	 marker_1,  marker_2,  marker_3,
						      marker_4,	 marker_5,  marker_6,  marker_7,
						      marker_8,	 marker_9,  marker_10, marker_11,
						      marker_12, marker_13, marker_14, marker_15};
	pthread_barrier_t start;
	pthread_t thread[MARKERS];
	char frames[80];

	pthread_barrier_init(&start, NULL, MARKERS);
	for (int i = 0; i < MARKERS; i++)
		if (pthread_create(&thread[i], NULL, fns[i], &start))
			_exit(10);
	for (int i = 0; i < MARKERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < MARKERS; i++) {
		snprintf(frames, sizeof(frames), "take;recurse{%d};marker_%d", i + 1, i);
		chain_of(SITE_SIZE(100 + i), MARKER_TURNS, frames, THREAD);
	}
}

int main()
{
	await("READY");
	odd_frames();
	calls_and_jumps();
	threads();
	coroutines();
	raw_clone();
	decoy_frames();
	not_resident();
	many_threads();
	AFTER_CALL();
	await("DONE");
	return 0;
}
