// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc_points: where functions are that are named by hand, and what is no such place; and what
 * allocators makes of them.
 */
#include "alloc_points.h"

#include "alloc_hints.h"
#include "asm_lib.h"
#include "check.h"

/* clang-format off */
static const char lib[] = BASE
	STATIC_FN("get", "push %rbx\n mov state(%rip),%rax\n pop %rbx\n ret")
	STATIC_FN("put", "nop\n ret")
	/* one piece of unwind information for both */
	".globl first, second\n.type first, @function\n.type second, @function\n"
	"first: .cfi_startproc\n nop\n ret\nsecond: nop\n nop\n ret\n.cfi_endproc\n"
	".size first, 2\n.size second, 3\n"
	".globl picked\n.type picked, @gnu_indirect_function\npicked: ret\n" DATA;
/* clang-format on */

/* Resolves `text`, the value of a --probe, in the file; the error is not shown. */
static int resolve(const struct elf_file *file, const char *text, struct alloc_points *points)
{
	struct alloc_hints hints = {};
	int saved = dup(STDERR_FILENO), err;
	FILE *quiet = freopen("/dev/null", "w", stderr);

	err = alloc_hints_add_probe(&hints, text);
	if (!err)
		err = alloc_points_find(&hints, 1, file, -1, points);
	if (!err)
		points->points[0].name = "";
	alloc_hints_clear(&hints);
	if (quiet)
		dup2(saved, STDERR_FILENO);
	close(saved);
	return err;
}

/* The same for the code at `off` from the function `name`. */
static int resolve_at(const struct elf_file *file, const char *name, int delta,
		      struct alloc_points *points)
{
	struct alloc_points at = {};
	char text[64];
	uint64_t off;
	int err;

	snprintf(text, sizeof(text), "malloc=/x:%s", name);
	err = resolve(file, text, &at);
	if (err || !elf_file_vma_to_off(file, at.points[0].vma, &off))
		return -EIO;
	alloc_points_clear(&at);
	snprintf(text, sizeof(text), "malloc=/x:0x%llx", (unsigned long long)off + delta);
	return resolve(file, text, points);
}

TEST(symbols_and_offsets_lead_to_functions)
{
	struct alloc_points by_name = {}, by_off = {};
	struct allocators_set set = {};
	struct elf_file *file;

	CHECK_EQ(asm_lib_find(lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(resolve(file, "malloc=/x:get", &by_name), 0);
	CHECK_EQ(by_name.cnt, 1);
	CHECK_EQ(by_name.points[0].size_bytes, 10);
	CHECK_EQ(resolve_at(file, "get", 0, &by_off), 0);
	CHECK_EQ(by_off.points[0].vma, by_name.points[0].vma);
	CHECK_EQ(by_off.points[0].size_bytes, 10);
	alloc_points_clear(&by_off);
	/* a symbol in the middle of what unwinds alike */
	CHECK_EQ(resolve_at(file, "second", 0, &by_off), 0);
	alloc_points_clear(&by_off);
	/* no unwind information at all */
	CHECK_EQ(resolve_at(file, "malloc", 0, &by_off), 0);
	CHECK_EQ(by_off.points[0].size_bytes, 0);
	alloc_points_clear(&by_off);
	alloc_points_clear(&by_name);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(what_is_no_such_place)
{
	struct alloc_points points = {};
	struct allocators_set set = {};
	struct elf_file *file;

	CHECK_EQ(asm_lib_find(lib, ASM_LIB_SHARED, &file, &set), 0);
	CHECK_EQ(resolve(file, "malloc=/x:nothing", &points), -EINVAL);
	CHECK_EQ(resolve(file, "malloc=/x:state", &points), -EINVAL);
	CHECK_EQ(resolve(file, "malloc=/x:picked", &points), -EINVAL);
	CHECK_EQ(resolve(file, "malloc=/x:0x0", &points), -EINVAL);
	CHECK_EQ(resolve(file, "malloc=/x:0xfffffff0", &points), -EINVAL);
	CHECK_EQ(resolve_at(file, "get", 1, &points), -EINVAL);
	CHECK_EQ(resolve_at(file, "second", 1, &points), -EINVAL);
	CHECK_EQ(points.cnt, 0);
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(points_win_over_names_and_need_none)
{
	struct allocators_point point = {.fn = HB_FN_MALLOC, .name = "mine"};
	struct allocators_request request = {
		.points = &point,
		.point_cnt = 1,
	};
	struct allocators_set set = {};
	struct elf_file *file;

	CHECK_EQ(asm_lib_find(BASE FN("calloc", "ret") DATA, ASM_LIB_SHARED, &file, &set), 0);
	point.vma = asm_lib_get(&set, "calloc")->vma;
	allocators_clear(&set);
	CHECK_EQ(allocators_find(file, &request, &set), 0);
	CHECK_EQ(set.cnt, 3);
	CHECK_EQ(asm_lib_get(&set, "mine")->fn, HB_FN_MALLOC);
	CHECK(asm_lib_get(&set, "mine")->asked_for);
	CHECK(asm_lib_get(&set, "mine")->size_bytes >= 1);
	CHECK(!asm_lib_get(&set, "malloc")->asked_for);
	allocators_clear(&set);
	request.names = ALLOCATORS_NAMES_NONE;
	CHECK_EQ(allocators_find(file, &request, &set), 0);
	CHECK_EQ(set.cnt, 1);
	CHECK(set.is_allocator);
	CHECK(allocators_has(&set, false) && !allocators_has(&set, true));
	allocators_clear(&set);
	elf_file_free(file);
}

TEST(names_count_in_part_where_it_is_asked_for)
{
	struct allocators_request request = {.names = ALLOCATORS_NAMES_ANY};
	struct allocators_set set = {};
	struct elf_file *file;

	CHECK_EQ(
		asm_lib_find(FN("calloc", "ret") FN("je_free", "ret"), ASM_LIB_SHARED, &file, &set),
		-ENOENT);
	CHECK_EQ(allocators_find(file, &request, &set), 0);
	CHECK_EQ(set.cnt, 2);
	CHECK(set.is_allocator);
	CHECK(allocators_has(&set, false) && allocators_has(&set, true));
	allocators_clear(&set);
	elf_file_free(file);
}
