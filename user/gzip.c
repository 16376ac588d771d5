// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: bytes in pieces of any size. Out: one gzip member (RFC 1952) on a stream. The stream is
 * neither flushed nor closed here.
 */
#include "gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

struct gzip {
	z_stream zlib;
	FILE *out;
	uint8_t buf[1 << 16];
};

#define WINDOW_BITS_GZIP (MAX_WBITS + 16) /* zlib.h: adding 16 asks for a gzip header */
#define MEM_LEVEL	 8		  /* zlib's default */

struct gzip *gzip_new(FILE *out)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->out = out;
	if (deflateInit2(&gzip->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP,
			 MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return NULL;
	}
	return gzip;
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->zlib);
	free(gzip);
}

/* Compresses the pending input until zlib has no output left for it. */
static int run(struct gzip *gzip, int flush)
{
	z_stream *zlib = &gzip->zlib;
	size_t len;

	do {
		zlib->next_out = gzip->buf;
		zlib->avail_out = sizeof(gzip->buf);
		deflate(zlib, flush);
		len = sizeof(gzip->buf) - zlib->avail_out;
		errno = 0;
		if (fwrite(gzip->buf, 1, len, gzip->out) != len)
			return errno ? -errno : -EIO;
	} while (zlib->avail_out == 0);
	return 0;
}

int gzip_write(struct gzip *gzip, const void *data, size_t len)
{
	const uint8_t *next = data;
	int err = 0;

	/* zlib counts input in 32 bits. */
	for (size_t part; len && !err; len -= part, next += part) {
		part = len < UINT32_MAX ? len : UINT32_MAX;
		gzip->zlib.next_in = (uint8_t *)next;
		gzip->zlib.avail_in = (uInt)part;
		err = run(gzip, Z_NO_FLUSH);
	}
	return err;
}

int gzip_finish(struct gzip *gzip)
{
	return run(gzip, Z_FINISH);
}
