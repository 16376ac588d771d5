/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of code that a process made at run time and that lies in no file: what it wrote about it to
 * /tmp/perf-PID.map, for perf(1) and its like. A line is "START SIZE NAME", the numbers in
 * hexadecimal (tools/perf/Documentation/jit-interface.txt of Linux).
 */
#ifndef PERF_MAP_H
#define PERF_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of a larger file only so much at its end is read. */
#define PERF_MAP_BYTES_MAX (1LL << 30)

/* Longer lines make no sense. */
#define PERF_MAP_LINE_MAX 65536

/* The process whose map it is. Strings and descriptors are borrowed. */
struct perf_map_owner {
	pid_t tgid;	  /* with comm: what we call it */
	const char *comm; /* printable */
	pid_t inner_tgid; /* what it calls itself, in the innermost pid namespace */
	int root_fd;	  /* its root directory; -1: it has no map */
	uid_t uid;	  /* whose file it may be, beside root's */
	/* CLOCK_BOOTTIME: when the program began and ended; 0: it lives. What was not written in
	 * between is of another process that had its number. */
	int64_t begun_ns, ended_ns;
};

/* An address of code, and the name that was found for it. */
struct perf_map_code {
	uint64_t pc;
	char *name; /* NULL: none; owned by the caller */
};

/*
 * Opens the map of a process: a regular file, not reached by a link, of the process's user or
 * root's, and last written while the program ran. The descriptor; -ENOENT if there is none, or one
 * that is not to be trusted, which is said; -ENOMEM, -EMFILE, -ENFILE.
 */
int perf_map_open(const struct perf_map_owner *owner);

/*
 * Names codes[0..cnt), which have no names yet and ascend by pc, from a file in the form of a map.
 * Of several lines about an address the last one is right: code comes and goes. *malformed: lines
 * that make no sense, of those that were read; once all codes are named, none is. 0, or -errno with
 * some of the names found.
 */
int perf_map_read(int fd, struct perf_map_code *codes, size_t cnt, size_t *malformed);

/*
 * Both: names what the map of `owner` knows. What is wrong with it is said once. 0, also if there
 * is no map, or -ENOMEM, -EMFILE, -ENFILE.
 */
int perf_map_name(const struct perf_map_owner *owner, struct perf_map_code *codes, size_t cnt);

#endif
