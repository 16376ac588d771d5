/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that no CFI covers: where it can be, and what its bytes say of it.
 */
#ifndef CFI_GAPS_H
#define CFI_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;

/* Gets file offsets [off, end) of code; not 0 ends the walk. */
typedef int cfi_code_fn(uint64_t off, uint64_t end, void *data);

/*
 * Calls fn for each stretch of the file that holds code: its executable sections or, if it has no
 * section headers, its executable segments, in which linkers may put constants, too. In the file's
 * order, as far as offsets have 32 bits. 0, or what fn returned.
 */
int cfi_gaps_each_code(const struct elf_file *file, cfi_code_fn *fn, void *data);

/* Gets a rule (HB_CFI_RULE) for the `len` bytes from file offset `off`; not 0 ends the scan. */
typedef int cfi_gap_fn(uint64_t off, uint64_t len, uint32_t rule, void *data);

/*
 * Reads the code [off, end), which no CFI covers, and calls fn with what is found: one rule for all
 * of it if it is seen to keep frame pointers, else one for each signal return stub. `is_go`: it
 * is Go's, of which frame pointers are known anyway. 0, or what fn returned.
 */
int cfi_gaps_scan(const struct elf_file *file, bool is_go, uint64_t off, uint64_t end,
		  cfi_gap_fn *fn, void *data);

#endif
