/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scratch directory with programs built for one test: sources are written there, the tools of
 * the distribution run there, and it is gone when the test program ends.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The directory, made at the first call; static. */
static inline const char *scratch_dir(void);

static inline void scratch_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", scratch_dir());
	if (system(command))
		fprintf(stderr, "%s stays behind\n", scratch_dir());
}

static inline const char *scratch_dir(void)
{
	static char dir[] = "/tmp/heapbpf-unit.XXXXXX";
	static bool made;

	if (made)
		return dir;
	if (!mkdtemp(dir) || chdir(dir)) {
		perror(dir);
		exit(1);
	}
	made = true;
	atexit(scratch_remove);
	return dir;
}

/* Writes `text` to the file `name` of the directory. */
static inline void scratch_write(const char *name, const char *text)
{
	FILE *file;

	scratch_dir();
	file = fopen(name, "w");
	if (!file || fputs(text, file) < 0 || fclose(file)) {
		perror(name);
		exit(1);
	}
}

/* Runs a shell command in the directory; true if it succeeds. Says which one did not. */
__attribute__((format(printf, 1, 2))) static inline bool scratch_run(const char *fmt, ...)
{
	char command[4096];
	va_list args;
	int len;

	scratch_dir();
	va_start(args, fmt);
	len = vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	if (len < (int)sizeof(command) && !system(command))
		return true;
	fprintf(stderr, "failed: %s\n", command);
	return false;
}

/* True if all the words of `tools` are commands; otherwise the running test is skipped. */
static inline bool scratch_have(const char *tools)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "for t in %s; do command -v $t >/dev/null || exit 1; done", tools);
	if (!system(command))
		return true;
	check_skip("needs %s", tools);
	return false;
}

/* The address of `symbol` in the ELF file `file` as nm says, 0 if it is not there. */
static inline uint64_t scratch_nm(const char *file, const char *symbol)
{
	unsigned long long vma = 0;
	char command[1024];
	FILE *out;

	snprintf(command, sizeof(command), "nm '%s' | awk '$3 == \"%s\" { print \"0x\" $1 }'", file,
		 symbol);
	out = popen(command, "r");
	if (!out || fscanf(out, "%llx", &vma) != 1)
		vma = 0;
	if (out)
		pclose(out);
	return vma;
}

#endif
