// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: a profile and the options. Out: files. Knows names and views; the bytes are pprof's and
 * text's, the safety of a file is outfile's.
 */
#include "output.h"

#include "cleanup.h"
#include "log.h"
#include "opts.h"
#include "outfile.h"
#include "pprof.h"
#include "target.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <time.h>

FILE *output_people(const struct opts *opts)
{
	/* A command's output is its own. */
	if (opts->command)
		return stderr;
	return opts->output && outfile_is_stdout(opts->output) ? stderr : stdout;
}

/*
 * heapbpf.COMM.PID[.N][.TYPE].pb.gz, with nothing in COMM that a shell or a path could trip over.
 */
static char *own_name(const struct opts *opts, const struct target *target, enum profile_type type)
{
	char comm[64], nth[16] = "", *name;
	unsigned turn = 1;
	size_t len = 0;

	for (const char *c = target->comm; *c && len < sizeof(comm) - 1; c++)
		comm[len++] = isalnum((unsigned char)*c) || strchr("-_+", *c) ? *c : '_';
	comm[len] = 0;
	for (const struct target *older = target->older; older; older = older->older)
		turn++;
	if (turn > 1)
		snprintf(nth, sizeof(nth), ".%u", turn);
	if (asprintf(&name, "heapbpf.%s.%d%s%s%s%s", comm, (int)target->tgid, nth,
		     opts->type_cnt > 1 ? "." : "",
		     opts->type_cnt > 1 ? profile_type_name(type) : "",
		     opts->text ? ".txt" : ".pb.gz") < 0)
		return NULL;
	return name;
}

char *output_path(const struct opts *opts, const struct target *target, enum profile_type type)
{
	_cleanup_free_ char *name = NULL;
	char *path;

	if (opts->output && !outfile_is_directory(opts->output))
		return strdup(opts->output);
	name = own_name(opts, target, type);
	if (!name || !opts->output)
		return take_ptr(name);
	if (asprintf(&path, "%s%s%s", opts->output,
		     opts->output[strlen(opts->output) - 1] == '/' ? "" : "/", name) < 0)
		return NULL;
	return path;
}

int output_make_directory(char **path)
{
	time_t now = time(NULL);
	struct tm local;
	char name[64];

	localtime_r(&now, &local);
	strftime(name, sizeof(name), "heapbpf.%Y%m%d-%H%M%S/", &local);
	*path = strdup(name);
	return *path ? outfile_make_directory(name)
		     : log_fail(ENOMEM, "cannot make directory %s", name);
}

int output_check(const struct opts *opts, const struct target *target)
{
	for (int type = 0; type < PROFILE_TYPE_CNT; type++) {
		_cleanup_free_ char *path = NULL;
		int err;

		if (!opts->types[type])
			continue;
		path = output_path(opts, target, type);
		if (!path)
			return log_fail(ENOMEM, "cannot name the profile");
		err = outfile_check(path);
		if (err)
			return err;
	}
	return 0;
}

DEFINE_CLEANUP(outfile, struct outfile, outfile_abort)

static int write_one(const struct opts *opts, const char *path, const struct profile *profile,
		     enum profile_type type)
{
	struct outfile *file _cleanup_(cleanup_outfile) = NULL;
	int err = outfile_open(path, &file);

	if (err)
		return err;
	if (opts->text)
		err = text_write(profile, type, outfile_stream(file));
	else
		err = pprof_write(profile, type, outfile_stream(file));
	if (err)
		return outfile_refuse(-err, path);
	err = outfile_commit(take_ptr(file));
	if (err)
		return err;
	if (!outfile_is_stdout(path))
		log_line(opts_are_selected(opts) ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, "wrote %s",
			 path);
	return 0;
}

int output_write(const struct opts *opts, const struct target *target,
		 const struct profile *profile)
{
	int first = 0;

	for (int type = 0; type < PROFILE_TYPE_CNT; type++) {
		_cleanup_free_ char *path = NULL;
		int err;

		if (!opts->types[type])
			continue;
		path = output_path(opts, target, type);
		err = path ? write_one(opts, path, profile, type)
			   : log_fail(ENOMEM, "cannot name the profile");
		if (err && !first)
			first = err;
	}
	return first;
}
