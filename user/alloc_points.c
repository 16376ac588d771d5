// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: what the user says of a file, and the file. Out: addresses and extents of functions. Whoever
 * names a function by hand gets it probed as it is, so what can be checked is: that there is code,
 * and that a function begins there. Must not know how functions are found by name.
 */
#include "alloc_points.h"

#include "alloc_hints.h"
#include "cfi_frames.h"
#include "cleanup.h"
#include "debug_file.h"
#include "elf_file.h"
#include "log.h"
#include "vec.h"

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <string.h>

void alloc_points_clear(struct alloc_points *points)
{
	free(points->points);
	*points = (struct alloc_points){};
}

/* A name that is looked up. */
struct lookup {
	const struct elf_file *file;
	const char *name;
	size_t cnt; /* addresses of that name */
	bool ifunc; /* the first is one */
	uint64_t vma, size_bytes;
	uint64_t other_vma; /* the second address */
};

static int look_at(const struct elf_symbol *symbol, void *data)
{
	struct lookup *lookup = data;

	if (strcmp(symbol->name, lookup->name) != 0 ||
	    !elf_file_text_room(lookup->file, symbol->vma))
		return 0;
	if (lookup->cnt && symbol->vma == lookup->vma)
		return 0;
	if (!lookup->cnt) {
		lookup->vma = symbol->vma;
		lookup->size_bytes = symbol->size_bytes;
		lookup->ifunc = symbol->ifunc;
	} else {
		lookup->other_vma = symbol->vma;
	}
	lookup->cnt++;
	return 0;
}

/* The functions in the table `scn` of a debug file, whose addresses are the main file's. */
static void look_in_table(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, struct lookup *lookup)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		struct elf_symbol symbol = {
			.name = elf_strptr(elf, shdr->sh_link, sym.st_name),
			.vma = sym.st_value,
			.size_bytes = sym.st_size,
			.ifunc = GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC,
		};

		if (symbol.name && sym.st_shndx != SHN_UNDEF &&
		    (GELF_ST_TYPE(sym.st_info) == STT_FUNC || symbol.ifunc))
			look_at(&symbol, lookup);
	}
}

static void look_in_elf(Elf *elf, struct lookup *lookup)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (elf && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB)
			look_in_table(elf, scn, &shdr, lookup);
}

DEFINE_CLEANUP(debug_file, struct debug_file, debug_file_free)

/* 0 or -ENOMEM. */
static int look_up(struct lookup *lookup, int root_fd)
{
	struct debug_file *debug _cleanup_(cleanup_debug_file) = NULL;
	int err = elf_file_each_function(lookup->file, look_at, lookup);

	if (err || lookup->cnt)
		return err;
	err = debug_file_find(lookup->file, root_fd, &debug);
	if (err)
		return err;
	look_in_elf(debug_file_separate_elf(debug), lookup);
	if (!lookup->cnt)
		look_in_elf(debug_file_mini_elf(debug), lookup);
	return 0;
}

/* File offset of code at `vma`, for people. */
static uint64_t off_of(const struct elf_file *file, uint64_t vma)
{
	uint64_t off = 0;

	elf_file_vma_to_off(file, vma, &off);
	return off;
}

/* 0 and *point, or as alloc_points_find(). */
static int find_symbol(const struct alloc_hint *hint, const struct elf_file *file, int root_fd,
		       struct allocators_point *point)
{
	struct lookup lookup = {.file = file, .name = hint->place};
	int err = look_up(&lookup, root_fd);

	if (err)
		return err;
	if (!lookup.cnt)
		return log_fail(0,
				"%s: no function %s in that file; is it stripped? give its offset "
				"in the file instead (0x...), or a build that is not",
				hint->text, hint->place);
	if (lookup.cnt > 1)
		return log_fail(0,
				"%s: the file has several functions %s, at 0x%" PRIx64
				" and 0x%" PRIx64 "; give the offset of one instead",
				hint->text, hint->place, off_of(file, lookup.vma),
				off_of(file, lookup.other_vma));
	if (lookup.ifunc)
		return log_fail(0,
				"%s: %s is an indirect function, the file does not say which code "
				"it stands for; give that by its offset",
				hint->text, hint->place);
	point->vma = lookup.vma;
	point->size_bytes = lookup.size_bytes;
	return 0;
}

/* The function that holds an address. */
struct cover {
	uint64_t vma;	     /* the address */
	uint64_t start, end; /* by call frame information; 0: not known */
	bool named;	     /* a symbol begins at the address */
};

static int note_frame(const struct cfi_frame *frame, void *data)
{
	struct cover *cover = data;

	if (cover->vma < frame->vma || cover->vma >= frame->vma_end)
		return 0;
	cover->start = frame->vma;
	cover->end = frame->vma_end;
	return 1;
}

static int note_name(const struct elf_symbol *symbol, void *data)
{
	struct cover *cover = data;

	cover->named |= symbol->vma == cover->vma;
	return 0;
}

/*
 * In the middle of a function the arguments may be gone, and the return address somewhere else.
 * One piece of unwind information can be about several functions, if they are in assembly.
 */
static int find_offset(const struct alloc_hint *hint, const struct elf_file *file,
		       struct allocators_point *point)
{
	struct cover cover = {};
	uint64_t malformed = 0, off;
	int err;

	if (!elf_file_off_to_vma(file, hint->off, &cover.vma) ||
	    !elf_file_text_room(file, cover.vma)) {
		if (elf_file_text_room(file, hint->off) &&
		    elf_file_vma_to_off(file, hint->off, &off))
			return log_fail(
				0, "%s: %s is an address; the offset in the file is 0x%" PRIx64,
				hint->text, hint->place, off);
		return log_fail(0, "%s: there is no code at that offset", hint->text);
	}
	cfi_frames_each(file, CFI_SOURCE_EH, note_frame, &cover, &malformed);
	err = elf_file_each_function(file, note_name, &cover);
	if (err)
		return err;
	if (cover.start && cover.start != cover.vma && !cover.named)
		return log_fail(0, "%s: that is inside of a function, which begins at 0x%" PRIx64,
				hint->text, off_of(file, cover.start));
	point->vma = cover.vma;
	point->size_bytes = cover.start == cover.vma && cover.end ? cover.end - cover.vma : 0;
	return 0;
}

/* Adds the point unless it is there. 0, or as alloc_points_find(). */
static int add_point(struct alloc_points *points, const struct alloc_hint *hint,
		     const struct allocators_point *point)
{
	for (size_t i = 0; i < points->cnt; i++) {
		if (points->points[i].vma != point->vma)
			continue;
		if (points->points[i].fn == point->fn)
			return 0;
		return log_fail(0, "%s: another --probe says something else of that function",
				hint->text);
	}
	if (vec_reserve(&points->points, &points->cap, points->cnt + 1))
		return -ENOMEM;
	points->points[points->cnt++] = *point;
	return 0;
}

int alloc_points_find(const struct alloc_hints *hints, uint64_t wanted, const struct elf_file *file,
		      int root_fd, struct alloc_points *out)
{
	struct alloc_points points = {};
	int err = 0;

	for (size_t i = 0; i < hints->cnt && !err; i++) {
		const struct alloc_hint *hint = &hints->hints[i];
		struct allocators_point point = {.fn = hint->fn, .name = hint->place};

		if (!(wanted & 1ULL << i))
			continue;
		if (!hint->place) {
			points.search = true;
			continue;
		}
		err = hint->is_offset ? find_offset(hint, file, &point)
				      : find_symbol(hint, file, root_fd, &point);
		if (!err)
			err = add_point(&points, hint, &point);
	}
	if (err) {
		alloc_points_clear(&points);
		return err;
	}
	*out = points;
	return 0;
}
