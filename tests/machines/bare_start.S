/* SPDX-License-Identifier: Apache-2.0 */
/* bare_start.S - the first instructions of a PC without BIOS or operating system (bare.ld places them in its ROM):
 * they switch to 64-bit mode with all vector registers, with each of the 65,536 pages of 4 KB at its own address, and
 * call begin. */
#define CODE_32 8
#define DATA_32 16
#define CODE_64 24
#define TABLES 0x200000 /* of level 4, 3 and 2, a page each, then BARE_PAGES of level 1 */

        .section .text.first, "ax"
        .code16
first:  cli
        lgdtl   %cs:(descriptors_at - 0xf0000)
        movl    $1, %eax                /* protected */
        movl    %eax, %cr0
        ljmpl   $CODE_32, $protected

        .code32
protected:
        movl    $DATA_32, %eax
        movl    %eax, %ds
        movl    %eax, %es
        movl    %eax, %ss
        movl    $TABLES, %esp           /* the stack lies below */
        cld
        xorl    %eax, %eax
        movl    $TABLES, %edi
        movl    $(3 * 1024), %ecx
        rep stosl
        movl    $(TABLES + 0x1000 + 7), TABLES
        movl    $(TABLES + 0x2000 + 7), TABLES + 0x1000
        movl    $(TABLES + 0x3000 + 7), %eax
        movl    $(TABLES + 0x2000), %edi
        movl    $128, %ecx
        call    entries
        movl    $7, %eax                /* present, writable */
        movl    $(TABLES + 0x3000), %edi
        movl    $0x10000, %ecx
        call    entries
        movl    $TABLES, %eax
        movl    %eax, %cr3
        movl    $0x40620, %eax          /* PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
        movl    %eax, %cr4
        movl    $0xc0000080, %ecx       /* EFER */
        rdmsr
        orl     $0x100, %eax            /* LME */
        wrmsr
        movl    $0x80010003, %eax       /* PG, WP, MP, PE */
        movl    %eax, %cr0
        ljmpl   $CODE_64, $long_mode

/* Writes `ecx` entries of 8 bytes to `edi`, for pages one after the other from `eax` on. */
entries:
        stosl
        addl    $4, %edi
        addl    $0x1000, %eax
        loop    entries
        ret

        .code64
long_mode:
        xorl    %ecx, %ecx
        xorl    %edx, %edx
        movl    $0xe7, %eax             /* x87, SSE, AVX, AVX-512 */
        xsetbv
        call    begin

        .balign 8
descriptors:
        .quad   0
        .quad   0x00cf9a000000ffff      /* CODE_32 */
        .quad   0x00cf92000000ffff      /* DATA_32 */
        .quad   0x00af9a000000ffff      /* CODE_64 */
descriptors_at:
        .word   31
        .long   descriptors

        .section .reset, "ax"
        .code16
        ljmpw   $0xf000, $(first - 0xf0000)

        .section .note.GNU-stack, "", @progbits
