// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: bytes that may be an ELF file. Out: nothing, unless what elf_file and elf_dynamic say of it
 * breaks their own promises, or memory is misused. Then the same as fuzz_cfi.
 */
#include "elf_dynamic.h"
#include "table_check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t seen;

/* Strings are strings: reads every byte. */
static void touch(const char *text)
{
	seen += text ? strlen(text) : 0;
}

static int see_function(const struct elf_symbol *symbol, void *data)
{
	(void)data;
	TABLE_CHECK(symbol->name && *symbol->name);
	touch(symbol->name);
	return 0;
}

static int see_slot(const struct elf_dynamic_slot *slot, void *data)
{
	(void)data;
	touch(slot->name);
	return 0;
}

/* Addresses that go there must come back, or to another segment that overlaps. */
static void see_addresses(const struct elf_file *file, size_t len)
{
	uint8_t text[64];
	uint64_t vma, off;

	for (uint64_t at = 0; at < len; at += 1 + len / 16) {
		size_t got = elf_file_read_text(file, at, text, sizeof(text));

		TABLE_CHECK(got <= sizeof(text) && got <= len - at);
		for (size_t i = 0; i < got; i++)
			seen += text[i];
		if (!elf_file_off_to_vma(file, at, &vma))
			continue;
		TABLE_CHECK(elf_file_vma_room(file, vma) > 0);
		TABLE_CHECK(elf_file_vma_to_off(file, vma, &off) && off < len);
		TABLE_CHECK(elf_file_text_room(file, vma) <= len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elf_file *file;
	const uint8_t *id;
	size_t id_len;

	if (elf_file_open_memory(data, len, "fuzz", &file))
		return 0;
	touch(elf_file_name(file));
	touch(elf_file_soname(file));
	id = elf_file_build_id(file, &id_len);
	TABLE_CHECK(id_len <= ELF_FILE_BUILD_ID_MAX && !id == !id_len);
	for (size_t i = 0; i < id_len; i++)
		seen += id[i];
	seen += elf_file_is_static(file);
	see_addresses(file, len);
	elf_file_each_function(file, see_function, NULL);
	elf_dynamic_each_slot(file, see_slot, NULL);
	elf_file_free(file);
	table_check_image(data, len);
	return 0;
}
