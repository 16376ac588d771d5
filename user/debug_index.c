// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the DWARF of one file. Out: the chain of functions at an address, with files and lines.
 *
 * Two levels of ranges, both built once: units (from their own DW_AT_ranges, since .debug_aranges
 * is optional and clang leaves it out; aranges help only units without ranges), and the functions
 * of each unit that is asked for. Functions stand in a unit or its namespaces; only if none of
 * these has the address, the whole tree of the unit is read (nested functions of GNU C, methods
 * inside types). Ranges outside of executable segments are what linkers leave of dropped code.
 *
 * Input is foreign: depth is bounded, and so is the number of steps over the life of an index,
 * since a small file can make many entries share a long list.
 */
#include "debug_index.h"

#include "cleanup.h"
#include "debug_file.h"
#include "ranges.h"
#include "vec.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Nesting of namespaces, functions and types. */
#define DEPTH_MAX 32
/* Nesting of blocks and inlined functions. */
#define BLOCK_DEPTH_MAX 256
/* DIEs and ranges read in the life of an index; some seconds' worth. */
#define STEPS_MAX 50000000

struct unit {
	Dwarf_Die die;	     /* has the line table */
	Dwarf_Die functions; /* root of the functions: the split unit if there is one */
	uint64_t bytes;	     /* of .debug_info */
	bool has_ranges;
	bool read, read_deep;
	Dwarf_Die *dies; /* the functions that `ranges` speaks of */
	size_t die_cnt, die_cap;
	struct ranges ranges;
};

struct segment {
	uint64_t low, high;
};

struct debug_index {
	struct debug_file *debug;
	Dwarf *dwarf;
	struct segment *segments; /* executable ones */
	size_t segment_cnt, segment_cap;
	struct unit *units; /* in the order of the file */
	size_t unit_cnt, unit_cap;
	struct ranges ranges; /* of units */
	uint64_t steps;
};

static bool is_code(const struct debug_index *index, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < index->segment_cnt; i++)
		if (low >= index->segments[i].low && low < high && high <= index->segments[i].high)
			return true;
	return false;
}

static bool out_of_steps(struct debug_index *index)
{
	return ++index->steps > STEPS_MAX;
}

/* Adds the code ranges of `die` as `item`; 1 if there are any, 0, or -ENOMEM. */
static int add_die_ranges(struct debug_index *index, struct ranges *ranges, Dwarf_Die *die,
			  size_t item)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t off = 0;
	int any = 0, err;

	while ((off = dwarf_ranges(die, off, &base, &low, &high)) > 0) {
		if (out_of_steps(index))
			break;
		if (!is_code(index, low, high))
			continue;
		err = ranges_add(ranges, low, high, item);
		if (err)
			return err;
		any = 1;
	}
	return any;
}

/* ---- units ---- */

static int read_segments(struct debug_index *index)
{
	Elf *elf = debug_file_main_elf(index->debug);
	GElf_Phdr phdr;
	int err;

	for (int i = 0; elf && gelf_getphdr(elf, i, &phdr); i++) {
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) ||
		    phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr)
			continue;
		err = vec_reserve(&index->segments, &index->segment_cap, index->segment_cnt + 1);
		if (err)
			return err;
		index->segments[index->segment_cnt++] =
			(struct segment){.low = phdr.p_vaddr, .high = phdr.p_vaddr + phdr.p_memsz};
	}
	return 0;
}

/* The length of the unit whose root is `die`, in its section; 0: unknown. */
static uint64_t unit_bytes(const struct debug_index *index, Dwarf_Die *die)
{
	Dwarf_Off start = dwarf_dieoffset(die) - dwarf_cuoffset(die), next;
	size_t header_bytes;

	if (dwarf_nextcu(index->dwarf, start, &next, &header_bytes, NULL, NULL, NULL))
		return 0;
	return next - start;
}

static int add_unit(struct debug_index *index, Dwarf_Die *die)
{
	int err = vec_reserve(&index->units, &index->unit_cap, index->unit_cnt + 1);
	struct unit *unit;

	if (err)
		return err;
	unit = &index->units[index->unit_cnt++];
	*unit = (struct unit){.die = *die, .functions = *die, .bytes = unit_bytes(index, die)};
	err = add_die_ranges(index, &index->ranges, &unit->die, index->unit_cnt - 1);
	unit->has_ranges = err > 0;
	return err < 0 ? err : 0;
}

/* The unit whose root DIE is at `off`, or NULL. */
static struct unit *unit_at(struct debug_index *index, Dwarf_Off off)
{
	size_t low = 0, high = index->unit_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dwarf_dieoffset(&index->units[middle].die) < off)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == index->unit_cnt || dwarf_dieoffset(&index->units[low].die) != off)
		return NULL;
	return &index->units[low];
}

/* .debug_aranges, for units that do not state their ranges themselves. */
static int read_aranges(struct debug_index *index)
{
	Dwarf_Aranges *aranges;
	size_t cnt;
	int err;

	if (dwarf_getaranges(index->dwarf, &aranges, &cnt))
		return 0;
	for (size_t i = 0; i < cnt; i++) {
		Dwarf_Addr low;
		Dwarf_Word size;
		Dwarf_Off off;
		struct unit *unit;

		if (dwarf_getarangeinfo(dwarf_onearange(aranges, i), &low, &size, &off))
			continue;
		unit = unit_at(index, off);
		if (!unit || unit->has_ranges || !is_code(index, low, low + size))
			continue;
		err = ranges_add(&index->ranges, low, low + size, unit - index->units);
		if (err)
			return err;
	}
	return 0;
}

static int read_units(struct debug_index *index)
{
	bool complete = true;
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die;
	int err;

	while (dwarf_get_units(index->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		err = add_unit(index, &die);
		if (err)
			return err;
		complete &= index->units[index->unit_cnt - 1].has_ranges;
	}
	return complete ? 0 : read_aranges(index);
}

DEFINE_CLEANUP(debug_index, struct debug_index, debug_index_free)

int debug_index_new(struct debug_file *debug, struct debug_index **out)
{
	_cleanup_(cleanup_debug_index) struct debug_index *index = NULL;
	Dwarf *dwarf = debug_file_dwarf(debug);
	int err;

	if (!dwarf) {
		*out = NULL;
		return 0;
	}
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	index->debug = debug;
	index->dwarf = dwarf;
	err = read_segments(index);
	if (!err)
		err = read_units(index);
	if (err)
		return err;
	ranges_finish(&index->ranges);
	*out = take_ptr(index);
	return 0;
}

void debug_index_free(struct debug_index *index)
{
	if (!index)
		return;
	for (size_t i = 0; i < index->unit_cnt; i++) {
		free(index->units[i].dies);
		ranges_clear(&index->units[i].ranges);
	}
	free(index->units);
	ranges_clear(&index->ranges);
	free(index->segments);
	free(index);
}

/* ---- functions ---- */

static int add_function(struct debug_index *index, struct unit *unit, Dwarf_Die *die)
{
	int err = vec_reserve(&unit->dies, &unit->die_cap, unit->die_cnt + 1);

	if (err)
		return err;
	err = add_die_ranges(index, &unit->ranges, die, unit->die_cnt);
	if (err > 0)
		unit->dies[unit->die_cnt++] = *die;
	return err < 0 ? err : 0;
}

/* Adds the functions below `parent`; `deep`: also those inside of functions and types. */
static int read_functions(struct debug_index *index, struct unit *unit, Dwarf_Die *parent,
			  int depth, bool deep)
{
	Dwarf_Die die;
	int err, more = dwarf_child(parent, &die);

	for (; !more; more = dwarf_siblingof(&die, &die)) {
		int tag = dwarf_tag(&die);

		if (out_of_steps(index))
			return 0;
		if (tag == DW_TAG_subprogram) {
			err = add_function(index, unit, &die);
			if (err)
				return err;
		}
		if (depth < DEPTH_MAX &&
		    (deep || tag == DW_TAG_namespace || tag == DW_TAG_module)) {
			err = read_functions(index, unit, &die, depth + 1, deep);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Finds the function of `unit` at `vma`; 1 and *die, 0 if there is none, -ENOMEM. */
static int find_function(struct debug_index *index, struct unit *unit, uint64_t vma, Dwarf_Die *die)
{
	size_t item;
	bool found;
	int err;

	if (!unit->read) {
		unit->read = true;
		debug_file_split_unit(index->debug, &unit->die, &unit->functions);
		err = read_functions(index, unit, &unit->functions, 0, false);
		if (err)
			return err;
		ranges_finish(&unit->ranges);
	}
	found = ranges_find(&unit->ranges, vma, &item);
	if (!found && !unit->read_deep) {
		unit->read_deep = true;
		unit->die_cnt = 0;
		ranges_clear(&unit->ranges);
		err = read_functions(index, unit, &unit->functions, 0, true);
		if (err)
			return err;
		ranges_finish(&unit->ranges);
		found = ranges_find(&unit->ranges, vma, &item);
	}
	if (found)
		*die = unit->dies[item];
	return found;
}

/* ---- one address ---- */

/* The inlined functions around an address, outermost first; the first is the function itself. */
struct chain {
	Dwarf_Die dies[DEBUG_INDEX_FRAMES_MAX];
	size_t cnt;
};

static bool has_pc(struct debug_index *index, Dwarf_Die *die, uint64_t vma)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t off = 0;

	while ((off = dwarf_ranges(die, off, &base, &low, &high)) > 0 && !out_of_steps(index))
		if (vma >= low && vma < high)
			return true;
	return false;
}

/* Appends the inlined functions below `parent` that have `vma`. True if there were any. */
static bool read_inlined(struct debug_index *index, Dwarf_Die *parent, uint64_t vma, int depth,
			 struct chain *chain)
{
	Dwarf_Die die;
	int more = dwarf_child(parent, &die);

	for (; !more; more = dwarf_siblingof(&die, &die)) {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;

		if (out_of_steps(index) || chain->cnt == DEBUG_INDEX_FRAMES_MAX)
			return false;
		if (!inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block &&
		    tag != DW_TAG_catch_block)
			continue;
		if (!has_pc(index, &die, vma))
			continue;
		if (inlined)
			chain->dies[chain->cnt++] = die;
		if ((depth < BLOCK_DEPTH_MAX && read_inlined(index, &die, vma, depth + 1, chain)) ||
		    inlined)
			return true;
	}
	return false;
}

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_formstring(dwarf_attr_integrate(die, name, &attr));

	return text && text[0] ? text : NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &value) || value > UINT32_MAX)
		return 0;
	return value;
}

/* A source position. */
struct place {
	const char *file;
	uint32_t line;
};

/* libdw's word for a file number that the table does not have. */
static const char *known_file(const char *file)
{
	return file && strcmp(file, "???") ? file : NULL;
}

static struct place place_of_vma(struct unit *unit, uint64_t vma)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, vma);
	struct place place = {0};
	int number = 0;

	if (!line)
		return place;
	place.file = known_file(dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number) && number > 0)
		place.line = number;
	return place;
}

/* Where the inlined function `die` was called. */
static struct place place_of_call(Dwarf_Die *die)
{
	struct place place = {.line = number_of(die, DW_AT_call_line)};
	uint32_t number = number_of(die, DW_AT_call_file);
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t cnt;

	if (dwarf_diecu(die, &unit, NULL, NULL) && !dwarf_getsrcfiles(&unit, &files, &cnt) &&
	    number < cnt)
		place.file = known_file(dwarf_filesrc(files, number, NULL, NULL));
	return place;
}

/* Where the function starts; of a split one, its first part. */
static uint64_t entry_of(Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;

	if (!dwarf_entrypc(die, &low) || dwarf_ranges(die, 0, &base, &low, &high) > 0)
		return low;
	return 0;
}

static struct debug_frame frame_of(Dwarf_Die *die, struct place place)
{
	struct debug_frame frame = {.file = place.file, .line = place.line};
	int line;

	frame.linkage_name = string_of(die, DW_AT_linkage_name);
	if (!frame.linkage_name)
		frame.linkage_name = string_of(die, DW_AT_MIPS_linkage_name);
	frame.name = string_of(die, DW_AT_name);
	if (!dwarf_decl_line(die, &line) && line > 0)
		frame.start_line = line;
	frame.inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	frame.entry_vma = frame.inlined ? 0 : entry_of(die);
	return frame;
}

bool debug_index_find_unit(const struct debug_index *index, uint64_t vma,
			   struct debug_index_unit *out)
{
	size_t item;

	if (!ranges_find(&index->ranges, vma, &item))
		return false;
	*out = (struct debug_index_unit){item, index->units[item].bytes};
	return true;
}

uint64_t debug_index_steps(const struct debug_index *index)
{
	return index->steps;
}

void debug_index_add_steps(struct debug_index *index, uint64_t steps)
{
	index->steps += steps;
}

int debug_index_lookup(struct debug_index *index, uint64_t vma,
		       struct debug_frame frames[static DEBUG_INDEX_FRAMES_MAX])
{
	struct chain chain = {.cnt = 1};
	struct place place;
	struct unit *unit;
	int found, cnt = 0;
	size_t item;

	if (!ranges_find(&index->ranges, vma, &item))
		return 0;
	unit = &index->units[item];
	place = place_of_vma(unit, vma);
	found = find_function(index, unit, vma, &chain.dies[0]);
	if (found < 0)
		return found;
	if (!found) {
		frames[0] = (struct debug_frame){.file = place.file, .line = place.line};
		return 1;
	}
	read_inlined(index, &chain.dies[0], vma, 0, &chain);
	for (size_t i = chain.cnt; i-- > 0;) {
		frames[cnt] = frame_of(&chain.dies[i], place);
		/* Nameless if the name is in a missing dwz supplement: it goes into its caller. */
		if (!i || frames[cnt].linkage_name || frames[cnt].name)
			cnt++;
		if (i)
			place = place_of_call(&chain.dies[i]);
	}
	return cnt;
}
