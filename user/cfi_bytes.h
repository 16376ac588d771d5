/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading foreign call frame bytes: every read is checked against the end, never moves on failure
 * and leaves a mark, so a caller checks once at the end of what belongs together.
 */
#ifndef CFI_BYTES_H
#define CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is left to read, and whether a read has failed since it was set up. */
struct cfi_bytes {
	const uint8_t *pos;
	const uint8_t *end;
	bool failed;
};

/* The next `len` bytes, or NULL with the mark set. */
static inline const uint8_t *cfi_bytes_take(struct cfi_bytes *bytes, uint64_t len)
{
	const uint8_t *taken = bytes->pos;

	if (bytes->failed || len > (uint64_t)(bytes->end - bytes->pos)) {
		bytes->failed = true;
		return NULL;
	}
	bytes->pos += len;
	return taken;
}

/* An unsigned little-endian integer of 1, 2, 4 or 8 bytes; 0 on failure. */
static inline uint64_t cfi_bytes_uint(struct cfi_bytes *bytes, size_t len)
{
	const uint8_t *taken = cfi_bytes_take(bytes, len);
	uint64_t value = 0;

	if (taken)
		memcpy(&value, taken, len);
	return value;
}

/* A signed little-endian integer of 1, 2, 4 or 8 bytes; 0 on failure. */
static inline int64_t cfi_bytes_int(struct cfi_bytes *bytes, size_t len)
{
	unsigned unused_bits = 64 - 8 * len;

	return (int64_t)(cfi_bytes_uint(bytes, len) << unused_bits) >> unused_bits;
}

/* A LEB128, its sign extended if it has one; bits above 64 are lost; 0 on failure. */
static inline uint64_t cfi_bytes_leb(struct cfi_bytes *bytes, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cfi_bytes_uint(bytes, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		value |= ~(uint64_t)0 << shift;
	return bytes->failed ? 0 : value;
}

/* An unsigned LEB128. */
static inline uint64_t cfi_bytes_uleb(struct cfi_bytes *bytes)
{
	return cfi_bytes_leb(bytes, false);
}

/* A signed LEB128. */
static inline int64_t cfi_bytes_sleb(struct cfi_bytes *bytes)
{
	return (int64_t)cfi_bytes_leb(bytes, true);
}

/*
 * A pointer encoded as DW_EH_PE_* `encoding` (absolute or pc-relative, not indirect). `field_vma`
 * is the address of bytes->pos. 0 with the mark set if that is not understood.
 */
uint64_t cfi_bytes_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t field_vma);

#endif
