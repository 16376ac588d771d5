// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: addresses in several files. Out: the functions, files and lines at them, in no order.
 *
 * libdw keeps all that it ever read of a unit (each row of its line table), and reads it for the
 * first address in it. So addresses are sorted by unit, a unit is read by one copy only, and what
 * it takes of memory ends with the copy. Copies and not threads: they share what is read already,
 * which of a compressed file is all of it, and handles of libdw must not be shared by threads.
 *
 * An answer is, per address: struct answer_head, then per frame struct frame_head and its texts.
 */
#include "debug_ahead.h"

#include "cleanup.h"
#include "copies.h"
#include "debug_index.h"
#include "shortage.h"

#include <string.h>

/*
 * A copy reads this in a quarter of a second, and then has half again as much memory. To make it
 * takes a millisecond, or tens of them where the file is not mapped but in memory.
 */
#define PIECE_BYTES (32ULL << 20)

/* An item with its unit. */
struct spot {
	size_t item;
	struct debug_index_unit unit;
};

/* Spots [first, first + cnt), whole units. */
struct piece {
	size_t first, cnt;
};

struct plan {
	const struct debug_ahead_item *items;
	struct spot *spots; /* owned; sorted by index, unit, item */
	size_t spot_cnt;
	struct piece *pieces; /* owned */
	size_t piece_cnt;
	void (*take)(size_t item, const struct debug_frame *frames, int cnt, void *data);
	void *data;
};

struct answer_head {
	uint64_t steps; /* that the lookup took */
	int32_t cnt;	/* of frames */
};

#define TEXT_CNT 3

struct frame_head {
	uint64_t entry_vma;
	uint32_t line, start_line;
	uint32_t sizes[TEXT_CNT]; /* of the texts, with their zero bytes; 0: none */
	bool inlined;
};

struct debug_ahead_share debug_ahead_default(void)
{
	return (struct debug_ahead_share){copies_useful(), PIECE_BYTES};
}

/* ---- in a copy ---- */

static void write_frame(const struct debug_frame *frame, FILE *out)
{
	const char *const texts[TEXT_CNT] = {frame->linkage_name, frame->name, frame->file};
	struct frame_head head = {
		.entry_vma = frame->entry_vma,
		.line = frame->line,
		.start_line = frame->start_line,
		.inlined = frame->inlined,
	};

	for (size_t i = 0; i < TEXT_CNT; i++)
		head.sizes[i] = texts[i] ? (uint32_t)strlen(texts[i]) + 1 : 0;
	fwrite(&head, sizeof(head), 1, out);
	for (size_t i = 0; i < TEXT_CNT; i++)
		if (texts[i])
			fwrite(texts[i], head.sizes[i], 1, out);
}

static bool write_answer(const struct debug_ahead_item *item, FILE *out)
{
	struct debug_frame frames[DEBUG_INDEX_FRAMES_MAX];
	uint64_t steps = debug_index_steps(item->index);
	struct answer_head head;

	shortage_watch();
	head = (struct answer_head){.cnt = debug_index_lookup(item->index, item->vma, frames)};
	if (head.cnt < 0 || shortage_seen())
		return false;
	head.steps = debug_index_steps(item->index) - steps;
	fwrite(&head, sizeof(head), 1, out);
	for (int i = 0; i < head.cnt; i++)
		write_frame(&frames[i], out);
	return !ferror(out);
}

static bool do_piece(size_t number, FILE *out, void *plan_)
{
	const struct plan *plan = plan_;
	const struct piece *piece = &plan->pieces[number];

	for (size_t i = 0; i < piece->cnt; i++)
		if (!write_answer(&plan->items[plan->spots[piece->first + i].item], out))
			return false;
	return true;
}

/* ---- here ---- */

/* What is left of an answer. */
struct rest {
	const char *at;
	size_t bytes;
};

/* The next `bytes` of it, or NULL: it has not as many. */
static const char *next_bytes(struct rest *rest, size_t bytes)
{
	const char *at = rest->at;

	if (bytes > rest->bytes)
		return NULL;
	rest->at += bytes;
	rest->bytes -= bytes;
	return at;
}

static bool read_frame(struct rest *rest, struct debug_frame *frame)
{
	const char **texts[TEXT_CNT] = {&frame->linkage_name, &frame->name, &frame->file};
	const char *bytes = next_bytes(rest, sizeof(struct frame_head));
	struct frame_head head;

	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	*frame = (struct debug_frame){
		.line = head.line,
		.start_line = head.start_line,
		.inlined = head.inlined,
		.entry_vma = head.entry_vma,
	};
	for (size_t i = 0; i < TEXT_CNT; i++) {
		*texts[i] = head.sizes[i] ? next_bytes(rest, head.sizes[i]) : NULL;
		if (head.sizes[i] && (!*texts[i] || (*texts[i])[head.sizes[i] - 1]))
			return false;
	}
	return true;
}

/* Reads the answer for one item and hands it on; false: it is no answer. */
static bool take_item(const struct plan *plan, size_t item, struct rest *rest)
{
	struct debug_frame frames[DEBUG_INDEX_FRAMES_MAX];
	const char *bytes = next_bytes(rest, sizeof(struct answer_head));
	struct answer_head head;

	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.cnt < 0 || head.cnt > DEBUG_INDEX_FRAMES_MAX)
		return false;
	for (int i = 0; i < head.cnt; i++)
		if (!read_frame(rest, &frames[i]))
			return false;
	debug_index_add_steps(plan->items[item].index, head.steps);
	plan->take(item, frames, head.cnt, plan->data);
	return true;
}

static void take_piece(size_t number, const char *answer, size_t bytes, void *plan_)
{
	const struct plan *plan = plan_;
	const struct piece *piece = &plan->pieces[number];
	struct rest rest = {answer, bytes};

	for (size_t i = 0; i < piece->cnt; i++)
		if (!take_item(plan, plan->spots[piece->first + i].item, &rest))
			return;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_spots(const void *a_, const void *b_, void *items_)
{
	const struct spot *a = a_, *b = b_;
	const struct debug_ahead_item *items = items_;
	int order = COMPARE((uintptr_t)items[a->item].index, (uintptr_t)items[b->item].index);

	if (!order)
		order = COMPARE(a->unit.number, b->unit.number);
	return order ? order : COMPARE(a->item, b->item);
}

/* Sorts the items that are in a unit. */
static bool find_spots(struct plan *plan, size_t cnt)
{
	plan->spots = calloc(cnt + 1, sizeof(*plan->spots));
	if (!plan->spots)
		return false;
	for (size_t i = 0; i < cnt; i++) {
		struct spot *spot = &plan->spots[plan->spot_cnt];

		spot->item = i;
		if (debug_index_find_unit(plan->items[i].index, plan->items[i].vma, &spot->unit))
			plan->spot_cnt++;
	}
	qsort_r(plan->spots, plan->spot_cnt, sizeof(*plan->spots), compare_spots,
		(void *)plan->items);
	return true;
}

/* True if a unit begins with spot `i`. */
static bool begins_unit(const struct plan *plan, size_t i)
{
	const struct spot *spot = &plan->spots[i];

	return !i || spot[-1].unit.number != spot->unit.number ||
	       plan->items[spot[-1].item].index != plan->items[spot->item].index;
}

/* The bytes of a piece: nobody has more than `share` allows, and all have about as much to do. */
static uint64_t even_bytes(const struct plan *plan, struct debug_ahead_share share)
{
	uint64_t all = 0, cnt;

	for (size_t i = 0; i < plan->spot_cnt; i++)
		if (begins_unit(plan, i))
			all += plan->spots[i].unit.bytes;
	cnt = all / share.piece_bytes + 1;
	if (cnt == 1)
		return UINT64_MAX;
	return all / ((cnt + share.at_once - 1) / share.at_once * share.at_once);
}

/* Cuts them into pieces, except in the middle of a unit; false: no memory, or one has it all. */
static bool cut_pieces(struct plan *plan, struct debug_ahead_share share)
{
	uint64_t piece_bytes = even_bytes(plan, share), bytes = 0;

	plan->pieces = calloc(plan->spot_cnt + 1, sizeof(*plan->pieces));
	for (size_t i = 0; plan->pieces && i < plan->spot_cnt; i++) {
		bool begins = begins_unit(plan, i);

		if (!i || (begins && bytes >= piece_bytes)) {
			plan->pieces[plan->piece_cnt++].first = i;
			bytes = 0;
		}
		if (begins)
			bytes += plan->spots[i].unit.bytes;
		plan->pieces[plan->piece_cnt - 1].cnt++;
	}
	return plan->piece_cnt > 1;
}

void debug_ahead(const struct debug_ahead_item *items, size_t cnt, struct debug_ahead_share share,
		 void (*take)(size_t item, const struct debug_frame *frames, int cnt, void *data),
		 void *data)
{
	struct plan plan = {.items = items, .take = take, .data = data};

	if (find_spots(&plan, cnt) && cut_pieces(&plan, share)) {
		const struct copies_work work = {
			.work = do_piece,
			.take = take_piece,
			.data = &plan,
			.piece_cnt = plan.piece_cnt,
		};

		copies_run(&work, share.at_once);
	}
	free(plan.spots);
	free(plan.pieces);
}
