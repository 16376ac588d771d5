// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In: an encoded pointer of .eh_frame (LSB core specification, "DWARF exception header encoding").
 * Out: its value. Relative to itself or absolute is all that files on x86-64 use; what would need
 * the target's memory or another base is refused.
 */
#include "cfi_bytes.h"

#include <dwarf.h>

uint64_t cfi_bytes_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t field_vma)
{
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = cfi_bytes_uint(bytes, 8);
		break;
	case DW_EH_PE_uleb128:
		value = cfi_bytes_uleb(bytes);
		break;
	case DW_EH_PE_sleb128:
		value = cfi_bytes_sleb(bytes);
		break;
	case DW_EH_PE_udata2:
		value = cfi_bytes_uint(bytes, 2);
		break;
	case DW_EH_PE_sdata2:
		value = cfi_bytes_int(bytes, 2);
		break;
	case DW_EH_PE_udata4:
		value = cfi_bytes_uint(bytes, 4);
		break;
	case DW_EH_PE_sdata4:
		value = cfi_bytes_int(bytes, 4);
		break;
	default:
		bytes->failed = true;
		return 0;
	}
	if ((encoding & 0xf0) == DW_EH_PE_pcrel)
		value += field_vma;
	else if (encoding & 0xf0)
		bytes->failed = true;
	return bytes->failed ? 0 : value;
}
