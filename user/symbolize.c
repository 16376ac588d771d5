// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file and a vma. Out: functions, files and lines, remembered.
 *
 * Joins what debug_index says (from DWARF) with what symbol_index says (from ELF symbols): the
 * latter names what the former does not. A file is read at its first lookup, its symbols only if
 * they are needed. Addresses that were expected have been asked for by debug_ahead before, if that
 * pays. Names are kept once per symbolizer, with their readable form.
 *
 * Must not know where debug information comes from, nor what processes are.
 */
#include "symbolize.h"

#include "cleanup.h"
#include "debug_ahead.h"
#include "debug_file.h"
#include "debug_index.h"
#include "demangle.h"
#include "elf_file.h"
#include "shortage.h"
#include "symbol_index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An add that failed leaves hh.tbl NULL, which is checked; the default would call exit(). */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A string that was given out. */
struct text {
	const char *readable;	       /* demangled form, if anyone asked; may be `text` itself */
	struct symbolize_frame *alone; /* of symbolizer_name(); owned */
	UT_hash_handle hh;
	char text[];
};

/* The answer for one vma. */
struct answer {
	uint64_t vma;
	UT_hash_handle hh;
	size_t cnt;
	struct symbolize_frame frames[];
};

/* One file, known by its address. */
struct file {
	const struct elf_file *elf;
	UT_hash_handle hh;
	struct debug_file *debug;
	struct debug_index *index; /* NULL: no DWARF */
	struct symbol_index *symbols;
	bool index_read;
	struct answer *answers;
};

struct symbolizer {
	struct text *texts;
	struct file *files;
	int shortage; /* -errno: a search for a file's debug information was cut short */
	struct debug_ahead_share share;
};

struct symbolizer *symbolizer_new(void)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (symbolizer)
		symbolizer->share = debug_ahead_default();
	return symbolizer;
}

void symbolizer_set_share(struct symbolizer *symbolizer, unsigned at_once, uint64_t piece_bytes)
{
	symbolizer->share = (struct debug_ahead_share){at_once, piece_bytes};
}

static void file_free(struct file *file)
{
	struct answer *answer, *next;

	if (!file)
		return;
	HASH_ITER(hh, file->answers, answer, next)
	{
		HASH_DEL(file->answers, answer);
		free(answer);
	}
	debug_index_free(file->index);
	symbol_index_free(file->symbols);
	debug_file_free(file->debug);
	free(file);
}

DEFINE_CLEANUP(file_struct, struct file, file_free)

void symbolizer_free(struct symbolizer *symbolizer)
{
	struct file *file, *next_file;
	struct text *text, *next_text;

	if (!symbolizer)
		return;
	HASH_ITER(hh, symbolizer->files, file, next_file)
	{
		HASH_DEL(symbolizer->files, file);
		file_free(file);
	}
	HASH_ITER(hh, symbolizer->texts, text, next_text)
	{
		HASH_DEL(symbolizer->texts, text);
		free(text->alone);
		free(text);
	}
	free(symbolizer);
}

/* ---- strings ---- */

/* The one copy of string[0..len), or NULL if out of memory. */
static struct text *keep(struct symbolizer *symbolizer, const char *string, size_t len)
{
	struct text *text;

	HASH_FIND(hh, symbolizer->texts, string, len, text);
	if (text)
		return text;
	text = malloc(sizeof(*text) + len + 1);
	if (!text)
		return NULL;
	text->readable = NULL;
	text->alone = NULL;
	memcpy(text->text, string, len);
	text->text[len] = '\0';
	HASH_ADD(hh, symbolizer->texts, text, len, text);
	if (!text->hh.tbl) {
		free(text);
		return NULL;
	}
	return text;
}

/* The readable form of `text`, or NULL if out of memory. */
static const char *readable(struct symbolizer *symbolizer, struct text *text)
{
	_cleanup_free_ char *name = NULL;
	struct text *kept;

	if (text->readable)
		return text->readable;
	name = demangle(text->text);
	kept = name ? keep(symbolizer, name, strlen(name)) : NULL;
	if (kept)
		text->readable = kept->text;
	return text->readable;
}

/* ---- names ---- */

/* The ELF symbols of the file, read at the first call; NULL if out of memory. */
static const struct symbol_index *symbols_of(struct file *file)
{
	struct symbol_index *symbols;

	if (file->symbols)
		return file->symbols;
	symbols = symbol_index_new();
	if (!symbols)
		return NULL;
	if (symbol_index_add_elf(symbols, debug_file_main_elf(file->debug)) ||
	    symbol_index_add_elf(symbols, debug_file_separate_elf(file->debug)) ||
	    symbol_index_add_elf(symbols, debug_file_mini_elf(file->debug)) ||
	    symbol_index_add_sectionless(symbols, file->elf)) {
		symbol_index_free(symbols);
		return NULL;
	}
	symbol_index_finish(symbols);
	/* There may be more when libelf has memory again. */
	if (shortage_seen()) {
		symbol_index_free(symbols);
		return NULL;
	}
	file->symbols = symbols;
	return symbols;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* The length of a symbol without its version ("f" of "f@@V1"). */
static size_t symbol_len(const char *symbol)
{
	const char *version = strchr(symbol, '@');

	return version && version > symbol ? (size_t)(version - symbol) : strlen(symbol);
}

/* Is `name` in the mangled `symbol`? Names of operators are, but spelled differently. */
static bool is_in_mangled(const char *symbol, const char *name)
{
	int len = strcspn(name, "<");
	char element[128];

	if (name[0] == '~' || !strncmp(name, "operator", 8))
		return true;
	snprintf(element, sizeof(element), "%d%.*s", len, len, name);
	return strstr(symbol, element);
}

/*
 * Is `symbol`, which starts where the function `name` starts, a better name for it? Yes if it is
 * the mangled form where DWARF has only the plain name (clang -gline-tables-only), or the public
 * name of what a library calls "__strdup" or "_IO_new_fopen" inside. Not if the linker merely
 * merged two functions.
 */
static bool is_better(const char *symbol, const char *name)
{
	size_t name_len = strlen(name), len = symbol_len(symbol);

	if (is_mangled(symbol))
		return is_in_mangled(symbol, name);
	return name_len > len && name[name_len - len - 1] == '_' &&
	       !strncmp(name + name_len - len, symbol, len);
}

/* The two names of a function; `plain` NULL: to be made from `system`. */
struct names {
	const char *system, *plain;
};

/* Finds the names for `frame` at `vma`; both NULL if there are none. -ENOMEM. */
static int names_of(struct file *file, uint64_t vma, const struct debug_frame *frame,
		    struct names *names)
{
	const struct symbol_index *symbols;
	const char *symbol;

	*names = (struct names){.system = frame->linkage_name, .plain = frame->name};
	if (names->system && (is_mangled(names->system) || !names->plain))
		names->plain = NULL;
	if (!names->system)
		names->system = names->plain;
	if (names->system && (!names->plain || frame->inlined))
		return 0;
	symbols = symbols_of(file);
	if (!symbols)
		return -ENOMEM;
	if (!names->system) {
		names->system = symbol_index_find(symbols, vma);
		return 0;
	}
	symbol = symbol_index_at(symbols, frame->entry_vma);
	if (symbol && is_better(symbol, names->plain))
		*names = (struct names){.system = symbol};
	return 0;
}

/* Fills *out from `frame`; 1, 0 if it has no name, -ENOMEM. */
static int name_frame(struct symbolizer *symbolizer, struct file *file, uint64_t vma,
		      const struct debug_frame *frame, struct symbolize_frame *out)
{
	struct text *system, *plain = NULL, *path = NULL;
	struct names names;
	int err = names_of(file, vma, frame, &names);

	if (err || !names.system)
		return err;
	system = keep(symbolizer, names.system, symbol_len(names.system));
	if (!system)
		return -ENOMEM;
	if (names.plain && !(plain = keep(symbolizer, names.plain, strlen(names.plain))))
		return -ENOMEM;
	if (frame->file && !(path = keep(symbolizer, frame->file, strlen(frame->file))))
		return -ENOMEM;
	*out = (struct symbolize_frame){
		.name = plain ? plain->text : readable(symbolizer, system),
		.system_name = system->text,
		.file = path ? path->text : NULL,
		.line = frame->line,
		.start_line = frame->start_line,
	};
	return out->name ? 1 : -ENOMEM;
}

/* ---- files and answers ---- */

static struct file *find_file(const struct symbolizer *symbolizer, const struct elf_file *elf)
{
	struct file *file;

	HASH_FIND_PTR(symbolizer->files, &elf, file);
	return file;
}

static int add_file(struct symbolizer *symbolizer, const struct elf_file *elf, int root_fd)
{
	_cleanup_(cleanup_file_struct) struct file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->elf = elf;
	err = debug_file_find(elf, root_fd, &file->debug);
	if (err)
		return err;
	HASH_ADD_PTR(symbolizer->files, elf, file);
	if (!file->hh.tbl)
		return -ENOMEM;
	take_ptr(file);
	return 0;
}

void symbolizer_prepare(struct symbolizer *symbolizer, const struct elf_file *file, int root_fd)
{
	int err = 0;

	if (find_file(symbolizer, file))
		return;
	shortage_watch();
	err = add_file(symbolizer, file, root_fd);
	if (shortage_seen())
		err = shortage_seen();
	if (err && !symbolizer->shortage)
		symbolizer->shortage = err;
}

/*
 * Reads the index of the file, if that is yet to be done. A shortage in the middle of it is no
 * matter of one lookup: what libdw could not read it takes for missing from then on.
 */
static int read_index(struct symbolizer *symbolizer, struct file *file)
{
	int err;

	if (file->index_read)
		return 0;
	file->index_read = true;
	err = debug_index_new(file->debug, &file->index);
	if (shortage_seen())
		err = shortage_seen();
	if (err)
		symbolizer->shortage = err;
	return err;
}

/* The answer at `vma`, where DWARF has `frames`; NULL if out of memory. */
static struct answer *answer_new(struct symbolizer *symbolizer, struct file *file, uint64_t vma,
				 const struct debug_frame *frames, int cnt)
{
	static const struct debug_frame unknown;
	_cleanup_free_ struct answer *answer = NULL;

	if (!cnt) {
		frames = &unknown;
		cnt = 1;
	}
	answer = malloc(sizeof(*answer) + cnt * sizeof(answer->frames[0]));
	if (!answer)
		return NULL;
	answer->vma = vma;
	answer->cnt = 0;
	for (int i = 0; i < cnt; i++) {
		int named =
			name_frame(symbolizer, file, vma, &frames[i], &answer->frames[answer->cnt]);

		if (named < 0)
			return NULL;
		answer->cnt += named;
	}
	return take_ptr(answer);
}

/* Remembers what is at `vma`, where DWARF has `frames`; NULL if out of memory. */
static const struct answer *remember(struct symbolizer *symbolizer, struct file *file, uint64_t vma,
				     const struct debug_frame *frames, int cnt)
{
	_cleanup_free_ struct answer *answer = answer_new(symbolizer, file, vma, frames, cnt);

	if (!answer)
		return NULL;
	HASH_ADD(hh, file->answers, vma, sizeof(vma), answer);
	return answer->hh.tbl ? take_ptr(answer) : NULL;
}

static const struct answer *find_answer(const struct file *file, uint64_t vma)
{
	struct answer *answer;

	HASH_FIND(hh, file->answers, &vma, sizeof(vma), answer);
	return answer;
}

/* symbolizer_lookup() without its view on what libelf and libdw keep back. */
static int lookup(struct symbolizer *symbolizer, const struct elf_file *elf, uint64_t vma,
		  struct symbolize_result *out)
{
	struct debug_frame frames[DEBUG_INDEX_FRAMES_MAX];
	struct file *file = find_file(symbolizer, elf);
	const struct answer *answer;
	int err, cnt = 0;

	if (!file) {
		err = add_file(symbolizer, elf, -1);
		if (err)
			return err;
		file = find_file(symbolizer, elf);
	}
	answer = find_answer(file, vma);
	if (!answer) {
		err = read_index(symbolizer, file);
		if (err)
			return err;
		if (file->index)
			cnt = debug_index_lookup(file->index, vma, frames);
		answer = cnt < 0 ? NULL : remember(symbolizer, file, vma, frames, cnt);
	}
	if (!answer)
		return -ENOMEM;
	out->frames = answer->frames;
	out->cnt = answer->cnt;
	return 0;
}

int symbolizer_lookup(struct symbolizer *symbolizer, const struct elf_file *elf, uint64_t vma,
		      struct symbolize_result *out)
{
	int err, shortage;

	if (symbolizer->shortage)
		return symbolizer->shortage;
	shortage_watch();
	err = lookup(symbolizer, elf, vma, out);
	shortage = shortage_seen();
	return shortage ? shortage : err;
}

/* What is to be looked up ahead. */
struct expected {
	struct symbolizer *symbolizer;
	struct debug_ahead_item *items;
	struct file **files; /* of the items */
	size_t cnt;
};

/* What fails here fails once more, and counts, when the address is looked up. */
static void take_expected(size_t item, const struct debug_frame *frames, int cnt, void *expected_)
{
	const struct expected *expected = expected_;
	struct file *file = expected->files[item];
	uint64_t vma = expected->items[item].vma;

	shortage_watch();
	if (!find_answer(file, vma))
		remember(expected->symbolizer, file, vma, frames, cnt);
}

void symbolizer_expect(struct symbolizer *symbolizer, const struct symbolize_address *addresses,
		       size_t cnt)
{
	_cleanup_free_ struct debug_ahead_item *items = calloc(cnt + 1, sizeof(*items));
	_cleanup_free_ struct file **files = calloc(cnt + 1, sizeof(struct file *));
	struct expected expected = {.symbolizer = symbolizer, .items = items, .files = files};

	for (size_t i = 0; items && files && i < cnt; i++) {
		struct file *file = find_file(symbolizer, addresses[i].file);

		if (!file || find_answer(file, addresses[i].vma))
			continue;
		shortage_watch();
		if (read_index(symbolizer, file))
			return;
		if (!file->index)
			continue;
		items[expected.cnt] = (struct debug_ahead_item){file->index, addresses[i].vma};
		files[expected.cnt++] = file;
	}
	debug_ahead(items, expected.cnt, symbolizer->share, take_expected, &expected);
}

int symbolizer_name(struct symbolizer *symbolizer, const char *name, struct symbolize_result *out)
{
	struct text *text = keep(symbolizer, name, strlen(name));

	if (!text)
		return -ENOMEM;
	if (!text->alone)
		text->alone = calloc(1, sizeof(*text->alone));
	if (!text->alone)
		return -ENOMEM;
	*text->alone = (struct symbolize_frame){.name = text->text, .system_name = text->text};
	*out = (struct symbolize_result){text->alone, 1};
	return 0;
}
