// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a file's FDEs, .eh_frame first, .debug_frame where that has holes. Out: one sorted table that
 * answers for every offset of the file's code, also for code without CFI: a gap row, or what can be
 * known of it otherwise (outermost functions by name, the rest by cfi_gaps).
 *
 * Knows files and addresses, not the bytes of CFI (cfi_frames) nor its instructions (cfi_exec).
 */
#include "cfi.h"
#include "cfi_frames.h"
#include "cfi_gaps.h"
#include "cleanup.h"
#include "elf_file.h"
#include "shortage.h"
#include "vec.h"

#include <errno.h>
#include <gelf.h>

/* Shorter holes between functions are padding, which nothing calls from. */
#define GAP_MIN 16

/* How far the entry point's code is taken to reach; musl's needs 23 bytes. */
#define ENTRY_BYTES 48

/* __start_context is shorter than this, 26 bytes without shadow stacks. */
#define START_CONTEXT_MAX 160

/*
 * Functions that nothing calls. `always`: even if CFI says that they have a caller, since old
 * assembly forgot to deny it. The others are believed when there is CFI.
 */
static const struct {
	const char *name;
	bool always;
} outermost[] = {
	{"_start", true},	   {"__start_context", true},
	{"_start_c", false},	   {"__libc_start_main", false},
	{"__clone", false},	   {"clone", false},
	{"__clone3", false},	   {"clone3", false},
	{"runtime.goexit", false}, {"runtime.goexit.abi0", false},
};

/* A stretch of code and its rows: rows[first..first+cnt-1] of the pool, the first at `off`. */
struct span {
	uint32_t off;
	uint32_t end; /* exclusive */
	uint32_t first;
	uint32_t cnt;
};

struct builder {
	const struct elf_file *file;
	struct cfi_rows pool;
	struct span *spans; /* [0..sorted_cnt-1] are sorted and do not overlap */
	size_t span_cnt, span_cap, sorted_cnt;
	enum cfi_source source;
	bool is_go;
	uint64_t fde_cnt, fde_dropped;
};

static void builder_clear(struct builder *builder)
{
	free(builder->pool.rows);
	free(builder->pool.bigs);
	free(builder->spans);
}

/* The first sorted span that ends behind `off`; sorted_cnt if none does. */
static size_t first_behind(const struct builder *builder, uint32_t off)
{
	size_t low = 0, high = builder->sorted_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->spans[middle].end > off)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Does a sorted span share a byte with [off, end)? */
static bool is_covered(const struct builder *builder, uint32_t off, uint32_t end)
{
	size_t i = first_behind(builder, off);

	return i < builder->sorted_cnt && builder->spans[i].off < end;
}

static int add_span(struct builder *builder, struct span span)
{
	if (vec_reserve(&builder->spans, &builder->span_cap, builder->span_cnt + 1))
		return -ENOMEM;
	builder->spans[builder->span_cnt++] = span;
	return 0;
}

/* A span with one rule of its own. */
static int add_rule(struct builder *builder, uint32_t off, uint32_t end, uint32_t rule)
{
	struct cfi_rows *pool = &builder->pool;
	struct span span = {.off = off, .end = end, .first = pool->cnt, .cnt = 1};
	int err;

	pool->merge_from = pool->cnt;
	err = cfi_rows_push(pool, off, rule);
	return err ? err : add_span(builder, span);
}

static int compare_spans(const void *left, const void *right)
{
	const struct span *a = left, *b = right;

	if (a->off != b->off)
		return a->off < b->off ? -1 : 1;
	/* Any order will do, but always the same: rows were made in the file's order. */
	return a->first < b->first ? -1 : a->first > b->first;
}

/*
 * Sorts all spans; one that begins inside its predecessor loses the part that they share. Returns
 * how many lost everything.
 */
static size_t sort_spans(struct builder *builder)
{
	struct span *spans = builder->spans;
	size_t kept = 0, dropped;

	if (builder->span_cnt)
		qsort(spans, builder->span_cnt, sizeof(*spans), compare_spans);
	for (size_t i = 0; i < builder->span_cnt; i++) {
		if (kept && spans[i].off < spans[kept - 1].end)
			spans[i].off = spans[kept - 1].end;
		if (spans[i].off < spans[i].end)
			spans[kept++] = spans[i];
	}
	dropped = builder->span_cnt - kept;
	builder->span_cnt = builder->sorted_cnt = kept;
	return dropped;
}

/* One FDE to rows. Code that the file does not hold (discarded by the linker) is no error. */
static int add_frame(const struct cfi_frame *frame, void *data)
{
	struct builder *builder = data;
	uint64_t off, len = frame->vma_end - frame->vma;
	struct span span;
	int err;

	builder->fde_cnt++;
	if (elf_file_text_room(builder->file, frame->vma) < len ||
	    !elf_file_vma_to_off(builder->file, frame->vma, &off))
		return 0;
	if (off + len > UINT32_MAX)
		return -E2BIG;
	if (builder->source == CFI_SOURCE_DEBUG && is_covered(builder, off, off + len))
		return 0;
	span = (struct span){.off = off, .end = off + len, .first = builder->pool.cnt};
	err = cfi_exec(frame, off, &builder->pool);
	if (err == -EBADMSG) {
		builder->fde_dropped++;
		return 0;
	}
	if (err)
		return err;
	span.cnt = builder->pool.cnt - span.first;
	return add_span(builder, span);
}

/* All FDEs of one source; a source that is not there is fine. */
static int add_source(struct builder *builder, enum cfi_source source)
{
	int err;

	builder->source = source;
	err = cfi_frames_each(builder->file, source, add_frame, builder, &builder->fde_dropped);
	if (err && err != -ENODATA)
		return err;
	builder->fde_dropped += sort_spans(builder);
	return 0;
}

/*
 * Overrules the CFI of a function: nothing called it. Its start may stand on the stack as if it
 * were a return address, which is looked up one byte before; that byte is padding.
 */
static void make_outermost(struct builder *builder, size_t i)
{
	struct span *span = &builder->spans[i];
	struct hb_cfi_row *rows = builder->pool.rows + span->first;

	for (uint32_t row = 0; row < span->cnt; row++)
		rows[row].rule = HB_CFI_RULE(HB_CFI_STOP, 0, 0);
	if (span->off && (!i || builder->spans[i - 1].end < span->off))
		rows[0].off = --span->off;
}

/*
 * glibc's __start_context, where a coroutine begins, has CFI that says otherwise and no symbol in
 * a stripped file. It is the only function that begins with mov %rbx,%rsp (after an endbr64).
 */
static void find_start_context(struct builder *builder)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov[] = {0x48, 0x89, 0xdc};
	const char *soname = elf_file_soname(builder->file);
	uint8_t text[sizeof(endbr64) + sizeof(mov)];

	if (!soname || strcmp(soname, "libc.so.6"))
		return;
	for (size_t i = 0; i < builder->sorted_cnt; i++) {
		const struct span *span = &builder->spans[i];
		size_t skip, len;

		if (span->end - span->off > START_CONTEXT_MAX)
			continue;
		len = elf_file_read_text(builder->file, span->off, text, sizeof(text));
		skip = memcmp(text, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
		if (len == sizeof(text) && !memcmp(text + skip, mov, sizeof(mov)))
			make_outermost(builder, i);
	}
}

/* [off, off + len) has `rule`, as far as no CFI covers it. */
static int add_rule_in_gap(struct builder *builder, uint64_t off, uint64_t len, uint32_t rule)
{
	size_t i;

	if (off + len > UINT32_MAX)
		return 0;
	i = first_behind(builder, off);
	if (i < builder->sorted_cnt && builder->spans[i].off < off + len) {
		if (builder->spans[i].off <= off)
			return 0;
		len = builder->spans[i].off - off;
	}
	return add_rule(builder, off, off + len, rule);
}

/* A function that nothing calls, if the symbol is one. */
static int add_outermost(const struct elf_symbol *symbol, void *data)
{
	const uint32_t stop = HB_CFI_RULE(HB_CFI_STOP, 0, 0);
	struct builder *builder = data;
	uint64_t off;
	size_t span;

	if (symbol->name[0] != '_' && symbol->name[0] != 'c' && symbol->name[0] != 'r')
		return 0;
	for (size_t i = 0; i < ARRAY_CNT(outermost); i++) {
		if (strcmp(symbol->name, outermost[i].name) ||
		    !elf_file_text_room(builder->file, symbol->vma) ||
		    !elf_file_vma_to_off(builder->file, symbol->vma, &off) || off > UINT32_MAX)
			continue;
		span = first_behind(builder, off);
		if (outermost[i].always && span < builder->sorted_cnt &&
		    builder->spans[span].off == off) {
			make_outermost(builder, span);
			return 0;
		}
		return add_rule_in_gap(builder, off,
				       symbol->size_bytes ? symbol->size_bytes : ENTRY_BYTES, stop);
	}
	return 0;
}

/* The entry point has no caller, whatever its name; stripped files have only this. */
static int add_entry(struct builder *builder)
{
	GElf_Ehdr header;
	uint64_t off;

	if (!gelf_getehdr(elf_file_elf(builder->file), &header) || !header.e_entry ||
	    !elf_file_text_room(builder->file, header.e_entry) ||
	    !elf_file_vma_to_off(builder->file, header.e_entry, &off))
		return 0;
	return add_rule_in_gap(builder, off, ENTRY_BYTES, HB_CFI_RULE(HB_CFI_STOP, 0, 0));
}

static int add_gap_rule(uint64_t off, uint64_t len, uint32_t rule, void *builder)
{
	return add_rule_in_gap(builder, off, len, rule);
}

/* Looks through what no CFI covers of the code [off, end). */
static int scan_code(uint64_t off, uint64_t end, void *data)
{
	struct builder *builder = data;
	size_t cnt = builder->sorted_cnt;
	int err = 0;

	for (size_t span = first_behind(builder, off); !err && off < end; span++) {
		uint64_t next = span < cnt && builder->spans[span].off < end
					? builder->spans[span].off
					: end;

		if (next > off && next - off >= GAP_MIN)
			err = cfi_gaps_scan(builder->file, builder->is_go, off, next, add_gap_rule,
					    builder);
		off = span < cnt ? builder->spans[span].end : end;
	}
	return err;
}

/* The rows of a span, which may have lost its beginning to the one before. */
static int emit_span(const struct builder *builder, const struct span *span, struct cfi_rows *out)
{
	const struct hb_cfi_row *rows = builder->pool.rows + span->first;
	int err = 0;

	for (uint32_t i = 0; i < span->cnt && !err; i++) {
		uint32_t end = i + 1 < span->cnt ? rows[i + 1].off : span->end;

		if (end > span->off)
			err = cfi_rows_push(out, rows[i].off > span->off ? rows[i].off : span->off,
					    rows[i].rule);
	}
	return err;
}

static int emit(const struct builder *builder, struct cfi_rows *out)
{
	const uint32_t gap = HB_CFI_RULE(HB_CFI_GAP, 0, 0);
	uint32_t end = 0;
	int err = 0;

	for (size_t i = 0; i < builder->span_cnt && !err; i++) {
		const struct span *span = &builder->spans[i];

		if (span->off - end >= GAP_MIN || (!out->cnt && span->off))
			err = cfi_rows_push(out, end, gap);
		if (!err)
			err = emit_span(builder, span, out);
		end = span->end;
	}
	return err ? err : cfi_rows_push(out, end, gap);
}

static int collect(struct builder *builder)
{
	int err = add_source(builder, CFI_SOURCE_EH);

	/* Go's .debug_frame does not tell where rbp is; its code is walked by frame pointer. */
	if (!err && !builder->is_go)
		err = add_source(builder, CFI_SOURCE_DEBUG);
	if (err)
		return err;
	if (!builder->span_cnt && !builder->is_go)
		return builder->fde_dropped ? -EBADMSG : -ENODATA;
	find_start_context(builder);
	err = elf_file_each_function(builder->file, add_outermost, builder);
	if (!err)
		err = add_entry(builder);
	if (!err)
		err = cfi_gaps_each_code(builder->file, scan_code, builder);
	if (!err)
		sort_spans(builder);
	return err;
}

/* cfi_build() without its view on what libelf keeps back. */
static int build(struct builder *builder, struct cfi_table *out)
{
	struct cfi_rows rows = {0};
	int err;

	builder->is_go = cfi_frames_has_section(builder->file, ".gopclntab") ||
			 cfi_frames_has_section(builder->file, ".data.rel.ro.gopclntab");
	err = collect(builder);

	if (!err)
		err = emit(builder, &rows);
	if (err) {
		free(rows.rows);
		return err;
	}
	*out = (struct cfi_table){
		.rows = rows.rows,
		.row_cnt = rows.cnt,
		.bigs = take_ptr(builder->pool.bigs),
		.big_cnt = builder->pool.big_cnt,
		.flags = builder->is_go ? HB_CFI_TABLE_FP : 0,
		.fde_cnt = builder->fde_cnt,
		.fde_dropped = builder->fde_dropped,
		.rows_unsupported = builder->pool.unsupported,
	};
	return 0;
}

int cfi_build(const struct elf_file *file, struct cfi_table *out)
{
	_cleanup_(builder_clear) struct builder builder = {.file = file};
	struct cfi_table table = {0};
	int err, shortage;

	shortage_watch();
	err = build(&builder, &table);
	shortage = shortage_seen();
	if (shortage)
		err = shortage;
	if (err) {
		cfi_clear(&table);
		return err;
	}
	*out = table;
	return 0;
}

void cfi_clear(struct cfi_table *table)
{
	free(table->rows);
	free(table->bigs);
	*table = (struct cfi_table){0};
}
