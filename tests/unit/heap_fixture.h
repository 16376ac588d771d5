/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process in its second image, for the tests of heap and places, and short ways to add sites and
 * stacks. The symbolizer is a stand-in: vma is off + 0x10000 in both files, every 16 bytes are a
 * function "f<n>", and where n is odd it is inlined into "outer". So is the map of JIT code: it has
 * the name "jit" for all below JIT_END.
 */
#ifndef HEAP_FIXTURE_H
#define HEAP_FIXTURE_H

#include "check.h"
#include "elf_file.h"
#include "heap.h"
#include "mappings.h"
#include "perf_map.h"
#include "procmaps.h"
#include "sampling.h"

#define TGID	     7
#define VMA_OFF	     0x10000
#define NAMELESS_OFF 0x5000 /* from here on nothing has a name */

static __u64 threshold[HB_CLASS_CNT];
static uint64_t counters[HB_COUNTER_CNT];
static struct elf_file *file_a, *file_b;
static char some_symbolizer;
#define SYMBOLIZER ((struct symbolizer *)&some_symbolizer)

/* An image of one segment and, for file_a, a build id. */
static struct elf_file *open_image(bool with_id)
{
	static struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdrs[2];
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[4];
		uint8_t text[0x20000];
	} image;
	struct elf_file *file;

	image.ehdr = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = with_id ? 2 : 1,
	};
	image.phdrs[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_vaddr = VMA_OFF,
				      .p_filesz = sizeof(image),
				      .p_memsz = sizeof(image)};
	image.phdrs[1] = (Elf64_Phdr){.p_type = PT_NOTE,
				      .p_offset = (size_t)((char *)&image.note - (char *)&image),
				      .p_filesz = sizeof(image.note) + 8,
				      .p_align = 4};
	image.note = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = 3, .n_type = NT_GNU_BUILD_ID};
	memcpy(image.name, "GNU", 4);
	memcpy(image.id, "\x00\xab\xff", 4);
	if (elf_file_open_memory(&image, sizeof(image), "image", &file))
		abort();
	return file;
}

/* What is asked for next; the places', while they name. */
static const struct symbolize_address *expected;
static size_t expected_cnt;

void symbolizer_expect(struct symbolizer *symbolizer, const struct symbolize_address *addresses,
		       size_t cnt)
{
	if (symbolizer != SYMBOLIZER)
		abort();
	expected = addresses;
	expected_cnt = cnt;
}

/* Nothing is looked up by surprise. */
static bool was_expected(const struct elf_file *file, uint64_t vma)
{
	for (size_t i = 0; i < expected_cnt; i++)
		if (expected[i].file == file && expected[i].vma == vma)
			return true;
	return false;
}

int symbolizer_lookup(struct symbolizer *symbolizer, const struct elf_file *file, uint64_t vma,
		      struct symbolize_result *out)
{
	static struct symbolize_frame frames[0x10000][2];
	static char names[0x10000][8];
	size_t n = (vma - VMA_OFF) / 16;

	if (symbolizer != SYMBOLIZER || file == NULL || n >= 0x10000 || !was_expected(file, vma))
		abort();
	*out = (struct symbolize_result){NULL, 0};
	if (vma - VMA_OFF >= NAMELESS_OFF)
		return 0;
	snprintf(names[n], sizeof(names[n]), "f%zu", n);
	frames[n][0] = (struct symbolize_frame){names[n], names[n], "a.c", (uint32_t)n, 1};
	frames[n][1] = (struct symbolize_frame){"outer", "outer", "a.c", 1, 1};
	*out = (struct symbolize_result){frames[n], 1 + n % 2};
	return 0;
}

int symbolizer_name(struct symbolizer *symbolizer, const char *name, struct symbolize_result *out)
{
	static const struct symbolize_frame frame = {"jit", "jit", NULL, 0, 0};

	if (symbolizer != SYMBOLIZER || strcmp(name, "jit"))
		abort();
	*out = (struct symbolize_result){&frame, 1};
	return 0;
}

#define JIT_END 0x80000

static const struct perf_map_owner jit_owner = {.tgid = TGID};

int perf_map_name(const struct perf_map_owner *owner, struct perf_map_code *codes, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (owner != &jit_owner || (i && codes[i - 1].pc > codes[i].pc))
			abort();
		codes[i].name = codes[i].pc < JIT_END ? strdup("jit") : NULL;
	}
	return 0;
}

static struct mapping mappings_array[] = {
	{.map = {.start = 0x400000, .end = 0x410000, .inode = 1, .path = (char *)"/app"}},
	{.map = {.start = 0x600000,
		 .end = 0x610000,
		 .off = 0x1000,
		 .inode = 2,
		 .path = (char *)"/lib.so"}},
	{.map = {.start = 0x700000, .end = 0x710000, .inode = 3, .path = (char *)"/gone.so"}},
	{.map = {.start = 0x400000,
		 .end = 0x410000,
		 .off = 0x2000,
		 .inode = 1,
		 .path = (char *)"/old"}},
};
static const struct mappings mappings = {.all = mappings_array, .cnt = 4};
enum { APP = 1, LIB, GONE, OLD };

/* Sites that are added from now on were sampled at `rate`; at first, at 1. */
static inline void sample_at(uint64_t rate)
{
	sampling_fill(rate, threshold);
}

__attribute__((constructor)) static void open_images(void)
{
	sample_at(1);
	for (size_t i = 0; i < mappings.cnt; i++)
		mappings_array[i].map.number = i + 1;
	mappings_array[APP - 1].map.elf = file_a = open_image(true);
	mappings_array[LIB - 1].map.elf = mappings_array[OLD - 1].map.elf = file_b =
		open_image(false);
}

__attribute__((destructor)) static void close_images(void)
{
	elf_file_free(file_a);
	elf_file_free(file_b);
}

/* A process in its second image, profiled at `rate`. */
static inline struct heap_source source_at(uint64_t rate)
{
	return (struct heap_source){
		.tgid = TGID,
		.comm = "app",
		.rate_bytes = rate,
		.time_ns = 1,
		.duration_ns = 2,
		.tracks_inuse = true,
		.epoch = 2,
		.owner = &jit_owner,
		.counters = counters,
	};
}

/* The number of what the second image, or the first one, has at `pc`. */
static inline uint32_t number_at(uint32_t epoch, uint64_t pc)
{
	for (uint32_t number = APP; number <= GONE; number++)
		if (pc >= mappings_array[number - 1].map.start &&
		    pc < mappings_array[number - 1].map.end)
			return epoch == 1 && number == APP ? OLD : number;
	return HB_MAPPING_NONE;
}

/* Adds `cnt` return addresses as stack `id`; aborts for want of memory. */
static inline void add_stack(struct heap *heap, uint64_t id, uint32_t epoch, uint16_t end,
			     const uint64_t *pcs, uint16_t cnt)
{
	struct hb_stack stack = {.tgid = TGID, .epoch = epoch, .cnt = cnt, .end = end};

	for (uint16_t i = 0; i < cnt; i++)
		stack.frame[i] = HB_FRAME(number_at(epoch, pcs[i] - 1), pcs[i]);
	if (heap_add_stack(heap, id, &stack))
		abort();
}

/* Adds a site of the last heap_period(), as it was seen at the rate of the last sample_at(). */
static inline void add_site_now(struct heap *heap, uint64_t id, uint64_t size, uint32_t epoch,
				uint64_t allocs, uint64_t frees, uint64_t untracked)
{
	struct hb_site_key key = {.stack_id = id, .size = size, .tgid = TGID, .epoch = epoch};
	struct hb_site site = {allocs, frees, untracked};

	if (heap_add_site(heap, &key, &site, threshold))
		abort();
}

/* Adds a site that was seen in a second of which `coverage` was seen. */
static inline void add_site_seen(struct heap *heap, uint64_t id, uint64_t size, uint32_t epoch,
				 uint64_t allocs, uint64_t frees, uint64_t untracked,
				 double coverage)
{
	heap_period(heap,
		    &(struct heap_period){
			    .coverage = coverage, .length_ns = 1e9, .epoch = 2, .window_ns = 1});
	add_site_now(heap, id, size, epoch, allocs, frees, untracked);
}

static inline void add_site(struct heap *heap, uint64_t id, uint64_t size, uint32_t epoch,
			    uint64_t allocs, uint64_t frees, uint64_t untracked)
{
	add_site_now(heap, id, size, epoch, allocs, frees, untracked);
}

static inline int make(const struct heap *heap, uint64_t rate, struct profile *out)
{
	struct heap_source source = source_at(rate);

	return heap_profile(heap, &source, &mappings, SYMBOLIZER, out);
}

/* An empty heap in a period that is seen whole; heap_free(). */
static inline struct heap *new_heap(void)
{
	struct heap *heap = heap_new();

	heap_period(heap, &(struct heap_period){.coverage = 1, .epoch = 2, .window_ns = 1});
	return heap;
}

/* A TEST with a new_heap(), and a `profile` to make of it; both are gone at its end. */
#define HEAP_TEST(name_)                                                                           \
	static void heap_test_##name_(struct heap *heap, struct profile *profile);                 \
	TEST(name_)                                                                                \
	{                                                                                          \
		struct heap *heap = new_heap();                                                    \
		struct profile profile = {0};                                                      \
                                                                                                   \
		heap_test_##name_(heap, &profile);                                                 \
		profile_clear(&profile);                                                           \
		heap_free(heap);                                                                   \
	}                                                                                          \
	static void heap_test_##name_(struct heap *heap, struct profile *profile)

/* The location of frame `n` of sample `i`. */
static inline const struct profile_location *at(const struct profile *profile, size_t i, size_t n)
{
	return &profile->locations[profile->samples[i].locations[n]];
}

#endif
