/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwind rows: what call frame information (CFI, DWARF 5 section 6.4) says of a program counter,
 * squeezed into 8 bytes, and the values of the unwinder's maps. user/cfi.c writes them,
 * bpf/unwind_step.h applies them; both compilers include this.
 *
 * The registers of x86-64 that take part: rsp, rbp and the return address (RA). CFA is the value
 * of rsp just before the call that made the frame, i.e. just above the return address. Unless a
 * kind says otherwise, RA is at *(CFA - 8) and the caller's rsp is CFA.
 */
#ifndef HB_CFI_ROW_H
#define HB_CFI_ROW_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* How a row finds the caller. n: the row's 16-bit operand, see HB_CFI_RULE. */
enum hb_cfi_kind {
	HB_CFI_GAP,	    /* no CFI covers this code */
	HB_CFI_RSP,	    /* CFA = rsp + 8 n */
	HB_CFI_RBP,	    /* CFA = rbp + 8 n */
	HB_CFI_PLT,	    /* CFA = rsp + 8 + ((pc & 15) >= n ? 8 : 0) */
	HB_CFI_STOP,	    /* RA undefined: the outermost frame */
	HB_CFI_SIGNAL,	    /* rbp, rsp, pc from the ucontext at rsp */
	HB_CFI_DEREF_RBP,   /* CFA = *(rbp + 8 n), n signed */
	HB_CFI_DEREF_RSP,   /* CFA = *(rsp + 8 n), n signed */
	HB_CFI_BIG,	    /* the rule is entry number (bits 0..23) of the table's hb_cfi_big */
	HB_CFI_UNSUPPORTED, /* the CFI asks for something that none of these can say */
	HB_CFI_FP,	    /* no CFI, but code that is seen to keep frame pointers */
	HB_CFI_KIND_CNT,
};

/*
 * A rule:
 *   bits  0..15  operand n of the kind
 *   bits 16..23  where the caller's rbp is: at *(CFA - 8 * value), or an HB_CFI_SAVED_*
 *   bits 24..31  enum hb_cfi_kind
 */
#define HB_CFI_RULE(kind, saved, n)                                                                \
	((__u32)(kind) << 24 | ((__u32)(saved)&0xff) << 16 | ((__u32)(n)&0xffff))
#define HB_CFI_RULE_BIG(index) ((__u32)HB_CFI_BIG << 24 | (__u32)(index))
#define HB_CFI_KIND(rule)      ((__u32)(rule) >> 24)
#define HB_CFI_SAVED(rule)     (((__u32)(rule) >> 16) & 0xff)
#define HB_CFI_N(rule)	       ((__u32)(rule)&0xffff)
#define HB_CFI_INDEX(rule)     ((__u32)(rule)&0xffffff)

#define HB_CFI_SAVED_SAME    0	 /* rbp still has the caller's value */
#define HB_CFI_SAVED_MAX     253 /* largest multiple of 8 below CFA */
#define HB_CFI_SAVED_AT_RBP  254 /* at *rbp: realigned frames keep it outside the CFA's reach */
#define HB_CFI_SAVED_UNKNOWN 255 /* lost: a later frame that needs rbp ends the stack */

/*
 * One row: `rule` holds from file offset `off` up to the next row. File offsets and not virtual
 * addresses: a mapping tells its offset, so BPF needs nothing else of the ELF file.
 */
struct hb_cfi_row {
	__u32 off;
	__u32 rule;
};
_Static_assert(sizeof(struct hb_cfi_row) == 8, "arrays are padded to 8 bytes; mmap relies on it");

/* A rule with operands that do not fit a row: CFA = base + cfa_off. */
struct hb_cfi_big {
	__s64 cfa_off;
	__s32 rbp_off;	/* rbp_saved HB_CFI_BIG_CFA: the caller's rbp is at *(CFA + rbp_off) */
	__u8 base;	/* HB_CFI_RSP or HB_CFI_RBP */
	__u8 rbp_saved; /* HB_CFI_BIG_CFA or an HB_CFI_SAVED_* */
	__u16 pad;
};
_Static_assert(sizeof(struct hb_cfi_big) == 16, "no padding");
#define HB_CFI_BIG_CFA 1

/* Flags of a table. */
#define HB_CFI_TABLE_FP 0x1 /* code without CFI keeps frame pointers (Go) */

/*
 * An element of a file's array of rows: a page of memory, of which such arrays are made anyhow. To
 * look one up is a call; a search goes on within it for less.
 */
#define HB_CFI_CHUNK_SHIFT 9
#define HB_CFI_CHUNK_ROWS  (1 << HB_CFI_CHUNK_SHIFT)
struct hb_cfi_chunk {
	struct hb_cfi_row row[HB_CFI_CHUNK_ROWS];
};
_Static_assert(sizeof(struct hb_cfi_chunk) == 4096, "a page");

/*
 * The index: one entry per page of the file from hb_uw_table.first_page on. The row of an offset
 * within the page is one of rows first..last: `first` is the last row at or before the page's
 * first byte, `last` the last one at or before its last byte. Pages are small, since no processor
 * foresees which way a halving goes: 3 of them in LLVM, for an index of an eighth of its rows.
 */
#define HB_UW_PAGE_SHIFT 9
struct hb_uw_page {
	__u32 first;
	__u32 last;
};
_Static_assert(sizeof(struct hb_uw_page) == 8, "arrays are padded to 8 bytes; mmap relies on it");

/* Halvings that find one of the rows of a page: at most one row a byte, and one from before. */
#define HB_UW_ROW_STEPS 10
_Static_assert((1 << HB_UW_ROW_STEPS) >= (1 << HB_UW_PAGE_SHIFT) + 1, "the search ends");

/* Map sizes. Table number 0 means "none". */
#define HB_UW_TABLE_MAX 4096
#define HB_UW_BIG_MAX	4096
#define HB_UW_MAP_MAX	65536

/* Halvings that find one of a process's mappings, and with it how many a process may have. */
#define HB_UW_MAP_STEPS	   14
#define HB_UW_PROC_MAP_MAX (1 << HB_UW_MAP_STEPS)
_Static_assert(HB_UW_PROC_MAP_MAX <= HB_UW_MAP_MAX, "a process fits");

/* Map `uw_tables`: ARRAY, table number -> what there is besides uw_rows and uw_index. */
struct hb_uw_table {
	__u32 first_page; /* file offset >> HB_UW_PAGE_SHIFT of the first index entry */
	__u32 page_cnt;	  /* 0: no table */
	__u32 big_first;  /* the table's hb_cfi_big number 0 is this entry of uw_big */
	__u32 flags;	  /* HB_CFI_TABLE_* */
};
_Static_assert(sizeof(struct hb_uw_table) == 16, "no padding");

/* Map `uw_maps`: ARRAY; each process owns a run of entries, sorted by start, not overlapping. */
struct hb_uw_map {
	__u64 start;
	__u64 end;    /* exclusive */
	__u64 bias;   /* pc - bias = file offset */
	__u32 table;  /* 0: none */
	__u8 flags;   /* HB_UW_MAP_* */
	__u8 probed;  /* slot of its file in `wrappers`, plus 1; 0: it has none */
	__u16 number; /* which of the process's mappings this is, for frames; 0: no file */
};
_Static_assert(sizeof(struct hb_uw_map) == 32, "no padding");

#define HB_UW_MAP_ANON	    0x1 /* executable memory without a file: code made at run time */
#define HB_UW_MAP_PERMANENT 0x2 /* of a file that the dynamic linker never unmaps */

/*
 * Map `uw_procs`: HASH tgid (u32) -> the process's run in uw_maps. Replaced as a whole; a reader
 * that finds another tgid met an element that was recycled under it.
 */
struct hb_uw_proc {
	__u32 first;
	__u32 cnt; /* at most HB_UW_PROC_MAP_MAX */
	__u32 tgid;
	__u32 epoch; /* of hb_proc: mappings of an older image are not used */
	/* Of hb_proc, before the mappings were read: in an older state only the permanent count. */
	__u32 libraries;
};
_Static_assert(sizeof(struct hb_uw_proc) == 20, "no padding");

#endif
