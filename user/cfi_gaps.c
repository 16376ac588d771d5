// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: stretches of a file's code without CFI. Out: rules for what can be told by the bytes: musl's
 * and Go's signal return stubs, and large holes whose code keeps frame pointers.
 */
#include "cfi_gaps.h"

#include "../bpf/cfi_row.h"
#include "elf_file.h"

#include <gelf.h>
#include <string.h>

/* mov $15,%rax; syscall: rt_sigreturn, where the C library leaves it without CFI. */
static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/*
 * push %rbp; mov %rsp,%rbp. A hole as large as this with so many of them is a program of its own
 * that was compiled elsewhere with frame pointers: V8's embedded builtins, in node and its like,
 * have one in 900 bytes; assembly and C libraries without CFI have none in 50,000.
 */
static const uint8_t frame_setup[] = {0x55, 0x48, 0x89, 0xe5};
#define FP_HOLE_MIN   (64u << 10)
#define FP_SETUP_EACH 4096

static int deliver(uint64_t off, uint64_t size, cfi_code_fn *fn, void *data)
{
	if (off > UINT32_MAX || !size)
		return 0;
	return fn(off, size > UINT32_MAX - off ? UINT32_MAX : off + size, data);
}

static int each_segment(Elf *elf, cfi_code_fn *fn, void *data)
{
	size_t cnt;
	int err = 0;

	if (elf_getphdrnum(elf, &cnt))
		return 0;
	for (size_t i = 0; i < cnt && !err; i++) {
		GElf_Phdr load;

		if (gelf_getphdr(elf, i, &load) && load.p_type == PT_LOAD && load.p_flags & PF_X)
			err = deliver(load.p_offset, load.p_filesz, fn, data);
	}
	return err;
}

int cfi_gaps_each_code(const struct elf_file *file, cfi_code_fn *fn, void *data)
{
	Elf *elf = elf_file_elf(file);
	bool sections = false;
	int err = 0;

	for (Elf_Scn *section = NULL; !err && (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    !(header.sh_flags & SHF_EXECINSTR))
			continue;
		sections = true;
		err = deliver(header.sh_offset, header.sh_size, fn, data);
	}
	return sections ? err : each_segment(elf, fn, data);
}

/* Does the code [off, end), which no CFI covers, keep frame pointers? */
static bool keeps_frame_pointers(const struct elf_file *file, uint64_t off, uint64_t end)
{
	uint64_t setups = 0, len = end - off;
	uint8_t text[4096];

	if (len < FP_HOLE_MIN)
		return false;
	while (off < end) {
		size_t want = end - off < sizeof(text) ? end - off : sizeof(text);
		size_t got = elf_file_read_text(file, off, text, want);
		const uint8_t *at = text, *found;

		/* Those that lie across two pieces are too few to matter. */
		while ((found = memmem(at, text + got - at, frame_setup, sizeof(frame_setup)))) {
			setups++;
			at = found + sizeof(frame_setup);
		}
		if (got < want)
			break;
		off += got;
	}
	return setups >= len / FP_SETUP_EACH;
}

/* Signal return stubs in the code [off, end), which no CFI covers. */
static int find_signal_returns(const struct elf_file *file, uint64_t off, uint64_t end,
			       cfi_gap_fn *fn, void *data)
{
	uint8_t text[4096];

	while (off < end) {
		size_t want = end - off < sizeof(text) ? end - off : sizeof(text);
		size_t len = elf_file_read_text(file, off, text, want);
		const uint8_t *found = memmem(text, len, signal_return, sizeof(signal_return));

		if (found) {
			uint64_t at = off + (uint64_t)(found - text);
			/* A return address is looked up one byte before: begin there. */
			int err = fn(at ? at - 1 : at, sizeof(signal_return) + 1,
				     HB_CFI_RULE(HB_CFI_SIGNAL, 0, 0), data);

			if (err)
				return err;
			off = at + sizeof(signal_return);
		} else if (len < sizeof(text)) {
			return 0;
		} else {
			/* The next piece overlaps, in case the stub lies across. */
			off += len - sizeof(signal_return) + 1;
		}
	}
	return 0;
}

int cfi_gaps_scan(const struct elf_file *file, bool is_go, uint64_t off, uint64_t end,
		  cfi_gap_fn *fn, void *data)
{
	if (!is_go && keeps_frame_pointers(file, off, end))
		return fn(off, end - off, HB_CFI_RULE(HB_CFI_FP, 0, 0), data);
	return find_signal_returns(file, off, end, fn, data);
}
