// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: the targets of a session that is over. Out: a table of them. Their profiles are finish's.
 */
#include "processes.h"

#include "cleanup.h"
#include "log.h"
#include "opts.h"
#include "outfile.h"
#include "output.h"
#include "session.h"
#include "target.h"
#include "top.h"

#include <errno.h>

DEFINE_CLEANUP(outfile, struct outfile, outfile_abort)

void processes_clear(struct processes *processes)
{
	free(processes->rows);
	*processes = (struct processes){};
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The largest first. */
static int compare_rows(const void *a_, const void *b_)
{
	const struct processes_row *a = a_, *b = b_;
	int order = COMPARE(b->totals.inuse_bytes, a->totals.inuse_bytes);

	if (!order)
		order = COMPARE(b->totals.alloc_bytes, a->totals.alloc_bytes);
	if (!order)
		order = COMPARE(a->target->tgid, b->target->tgid);
	return order ? order : COMPARE(a->target->first_epoch, b->target->first_epoch);
}

int processes_make(const struct session *session, struct processes *out)
{
	struct processes made = {.rows = calloc(session->targets.cnt + 1, sizeof(*made.rows))};

	if (!made.rows)
		return -ENOMEM;
	for (size_t i = 0; i < session->targets.cnt; i++) {
		const struct target *target = session->targets.all[i];
		struct processes_row *row = &made.rows[made.cnt];

		row->target = target;
		row->totals = heap_totals(target->heap, target->epoch);
		if (!target->joined || row->totals.samples)
			made.cnt++;
	}
	qsort(made.rows, made.cnt, sizeof(*made.rows), compare_rows);
	*out = made;
	return 0;
}

/* A line of the table for people; `pid` 0: it is of no process. */
static void show_row(const struct processes_row *row, const char *name, pid_t pid,
		     bool tracks_inuse, FILE *out)
{
	char inuse[16] = "-", alloc[16], number[16] = "";

	if (tracks_inuse)
		top_bytes(row->totals.inuse_bytes, inuse);
	if (pid)
		snprintf(number, sizeof(number), "%d", (int)pid);
	fprintf(out, "%9s %10s %9llu %10s  %s\n", inuse, top_bytes(row->totals.alloc_bytes, alloc),
		(unsigned long long)row->totals.samples, number, name);
}

static void show_skipped(const struct session *session, FILE *out)
{
	const char *before = "not profiled: ";

	for (int skip = 0; skip < JOIN_SKIP_CNT; skip++) {
		if (!session->skipped[skip])
			continue;
		fprintf(out, "%s%llu %s", before, (unsigned long long)session->skipped[skip],
			join_skip_text(skip));
		before = "; ";
	}
	if (before[0] == ';')
		fputc('\n', out);
}

void processes_show(const struct processes *processes, const struct session *session, size_t rows,
		    FILE *out)
{
	struct processes_row rest = {};
	char name[64];

	fprintf(out, "%9s %10s %9s %10s  %s\n", "INUSE", "ALLOC", "SAMPLES", "PID", "PROCESS");
	for (size_t i = 0; i < processes->cnt; i++) {
		const struct processes_row *row = &processes->rows[i];

		if (i < rows) {
			show_row(row, row->target->comm, row->target->tgid, session->track_live,
				 out);
			continue;
		}
		rest.totals.samples += row->totals.samples;
		rest.totals.alloc_bytes += row->totals.alloc_bytes;
		rest.totals.inuse_bytes += row->totals.inuse_bytes;
	}
	if (processes->cnt > rows) {
		snprintf(name, sizeof(name), "(%zu more processes)", processes->cnt - rows);
		show_row(&rest, name, 0, session->track_live, out);
	}
	if (!processes->cnt)
		fputs("nothing was sampled in any process\n", out);
	show_skipped(session, out);
}

/* The path of the file, which the caller free()s; NULL if out of memory. */
static char *path_of(const struct opts *opts)
{
	const char *dir = opts->output ? opts->output : "";
	size_t len = strlen(dir);
	char *path;

	if (asprintf(&path, "%s%sheapbpf.processes.tsv", dir,
		     len && dir[len - 1] != '/' ? "/" : "") < 0)
		return NULL;
	return path;
}

int processes_check(const struct opts *opts)
{
	_cleanup_free_ char *path = path_of(opts);

	return path ? outfile_check(path) : log_fail(ENOMEM, "cannot name the table of processes");
}

static void put_row(const struct processes_row *row, const struct opts *opts, FILE *file)
{
	const struct target *target = row->target;
	const char *separator = "\t";

	fprintf(file, "%d\t%s\t%s\t%llu\t%.0f\t%.0f\t%.0f\t%.0f", (int)target->tgid, target->comm,
		target->exited ? "ended" : "alive", (unsigned long long)row->totals.samples,
		row->totals.allocs, row->totals.alloc_bytes, row->totals.inuse,
		row->totals.inuse_bytes);
	for (int type = 0; type < PROFILE_TYPE_CNT; type++) {
		_cleanup_free_ char *path =
			opts->types[type] ? output_path(opts, target, type) : NULL;

		if (!path)
			continue;
		fprintf(file, "%s%s", separator, path);
		separator = ",";
	}
	fputc('\n', file);
}

int processes_write(const struct processes *processes, const struct session *session)
{
	struct outfile *file _cleanup_(cleanup_outfile) = NULL;
	_cleanup_free_ char *path = path_of(session->opts);
	FILE *stream;
	int err;

	if (!path)
		return log_fail(ENOMEM, "cannot name the table of processes");
	err = outfile_open(path, &file);
	if (err)
		return err;
	stream = outfile_stream(file);
	fputs("pid\tcomm\tstate\tsamples\talloc_objects\talloc_space\tinuse_objects\tinuse_space\t"
	      "files\n",
	      stream);
	for (size_t i = 0; i < processes->cnt; i++)
		put_row(&processes->rows[i], session->opts, stream);
	err = outfile_commit(take_ptr(file));
	if (!err)
		log_line(LOG_LEVEL_INFO, "wrote the profiles of %zu processes and %s",
			 processes->cnt, path);
	return err;
}
