# SPDX-License-Identifier: GPL-2.0-or-later
# Every instruction of call frame information, for the fuzzers to take apart.
.text
.macro function name
	.globl \name
	.type \name,@function
	.p2align 4
\name:
	.cfi_startproc
	nop
.endm
.macro end name
	nop
	.cfi_endproc
	.size \name,.-\name
.endm

function _start
	.cfi_undefined 16
end _start
.hidden plain
function plain
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6,-16
	mov %rsp,%rbp
	.cfi_def_cfa_register 6
	nop
	.cfi_remember_state
	.cfi_def_cfa 7,8
	.cfi_restore 6
	nop
	.cfi_restore_state
end plain
function signed
	.cfi_escape 0x12,7,0x7e
	nop
	.cfi_escape 0x13,0x7d
	nop
	.cfi_escape 0x11,6,2
end signed
function extended
	.cfi_escape 5,6,4
	nop
	.cfi_escape 6,6
	nop
	.cfi_undefined 6
	nop
	.cfi_same_value 6
end extended
function other
	.cfi_register 6,3
	nop
	.cfi_escape 0x14,6,2
	nop
	.cfi_escape 0x15,6,0x7e
	nop
	.cfi_escape 0x16,6,1,0x30
	nop
	.cfi_escape 0x2f,6,3
	nop
	.cfi_escape 0x2e,64
end other
function big
	.cfi_def_cfa_offset 720000
	.cfi_offset 6,-4096
	nop
	.cfi_def_cfa_offset 20
end big
function deref
	.cfi_escape 0x10,6,2,0x76,0
	.cfi_escape 0x0f,3,0x76,0x78,6
	nop
	.cfi_escape 0x0f,3,0x77,32,6
end deref
function plt
	.cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22
end plt
function far
	.skip 300,0x90
	.cfi_def_cfa_offset 24
	.skip 1000,0x90
	.cfi_def_cfa_offset 32
end far
.globl signal
.type signal,@function
signal:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_escape 0x0f,4,0x77,0xa0,1,6
	.cfi_escape 0x10,16,3,0x77,0xa8,1
	mov $15,%rax
	syscall
	.cfi_endproc
.size signal,.-signal
.globl personality
.type personality,@function
personality:
	.cfi_startproc
	.cfi_personality 0x1b,plain
	.cfi_lsda 0x1b,plain
	ret
	.cfi_endproc
.size personality,.-personality
back:
	.skip 32,0x90
	mov $15,%rax
	syscall
	.skip 32,0x90
