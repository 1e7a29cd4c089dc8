/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h - the writer of ELF files for loaders: flat code, symbols, and one read-only piece before them.  There is
 * nothing to relocate and nothing writable except the page of the dynamic section (which some loaders want writable),
 * and addresses are offsets in the file.  No linker is needed, and the bytes depend on none.  Knows no LLVM. */
#ifndef OPJIT_CODEGEN_OBJECT_ELF_H
#define OPJIT_CODEGEN_OBJECT_ELF_H

#include "runtime/base/base.h"

#include <elf.h>

enum { CG_ELF_SEGMENTS = 6, CG_ELF_DYNAMICS = 7, CG_ELF_PIECE_ALIGN = 64 };
typedef enum cg_elf_section { /* also of a symbol: in the head or the text */
                              CG_ELF_NONE,
                              CG_ELF_HASH,
                              CG_ELF_DYNSYM,
                              CG_ELF_DYNSTR,
                              CG_ELF_HEAD,
                              CG_ELF_TEXT,
                              CG_ELF_DYNAMIC,
                              CG_ELF_NAMES,
                              CG_ELF_SECTIONS
} cg_elf_section;

typedef struct cg_elf {
    const opjit_allocator *allocator;
    /* set before opjit_cg_elf_place: */
    Elf64_Ehdr like;  /* provides machine, flags, operating system and ABI */
    rt_bytes text;    /* code and its constants, starting on a page */
    rt_bytes symbols; /* Elf64_Sym; values are relative to their section */
    rt_bytes strings;
    uint64_t soname; /* in strings; 0: none */
    bool head_is_note;
    /* set by it: */
    uint64_t hash_at, symbols_at, strings_at, head_at, head_size, text_at, dynamic_at, names_at, sections_at;
} cg_elf;

void opjit_cg_elf_init(cg_elf *e, const opjit_allocator *allocator);
void opjit_cg_elf_free(cg_elf *e);
/* Exports a name.  type: STT_...; where: CG_ELF_HEAD or CG_ELF_TEXT; value and size in bytes. */
void opjit_cg_elf_symbol(cg_elf *e, const char *name, uint8_t type, cg_elf_section where, uint64_t value,
                         uint64_t size);
/* Appends a string for soname and returns its offset. */
uint64_t opjit_cg_elf_string(cg_elf *e, const char *text);
/* Decides where everything lies; everything except the head's bytes is known by now. */
opjit_status opjit_cg_elf_place(cg_elf *e, uint64_t head_size, opjit_error *error);
/* Appends the file to *out, which is empty; head: head_size bytes. */
opjit_status opjit_cg_elf_write(const cg_elf *e, const uint8_t *head, rt_bytes *out, opjit_error *error);

#endif
