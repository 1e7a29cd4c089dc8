/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - code and constants as an object file, as the rest of code generation expects one: calls inside of it are
 * resolved here, constants and functions that are elsewhere have relocations. */
#include "codegen/direct/module.h"

#include "codegen/x86/x86_code.h"

#include <elf.h>
#include <string.h>

enum { S_NONE, S_TEXT, S_DATA, S_RELA, S_SYMBOLS, S_NAMES, SECTIONS };
static const char section_names[] = "\0.text\0.rodata\0.rela.text\0.symtab\0.strtab";
static const uint8_t name_at[SECTIONS] = { 0, 1, 7, 15, 26, 34 };

typedef struct writer {
    dx_module *m;
    rt_bytes *out;
    Elf64_Shdr sections[SECTIONS];
    uint32_t *number; /* by symbol: in the file */
    uint32_t local;   /* symbols */
} writer;

static bool is_in_file(const dx_module *m, uint32_t i, bool *called)
{
    const dx_symbol *s = &m->symbols[i];
    return s->function && ((s->defined && !s->internal) || (!s->defined && called[i]));
}

static void begin_section(writer *w, uint32_t which, uint32_t type, uint64_t flags, uint64_t align)
{
    opjit_rt_bytes_align(w->out, align);
    w->sections[which] = (Elf64_Shdr){
        .sh_name = name_at[which], .sh_type = type, .sh_flags = flags, .sh_offset = w->out->size, .sh_addralign = align
    };
}

static void end_section(writer *w, uint32_t which)
{
    w->sections[which].sh_size = w->out->size - w->sections[which].sh_offset;
}

/* Calls of functions that are here. */
static void resolve(dx_module *m)
{
    for (uint32_t i = 0; i < m->fix_count && !m->code.failed; i++) {
        const dx_fix *fix = &m->fixes[i];
        if (fix->symbol != DX_CONSTANTS && m->symbols[fix->symbol].defined)
            opjit_cg_x86_land(&m->code, fix->place + 4, m->symbols[fix->symbol].begin);
    }
}

static void put_relocations(writer *w)
{
    const dx_module *m = w->m;
    begin_section(w, S_RELA, SHT_RELA, SHF_INFO_LINK, 8);
    for (uint32_t i = 0; i < m->fix_count; i++) {
        const dx_fix *fix = &m->fixes[i];
        const bool constant = fix->symbol == DX_CONSTANTS;
        if (!constant && m->symbols[fix->symbol].defined)
            continue;
        const uint64_t symbol = constant ? 1 : w->number[fix->symbol];
        const Elf64_Rela r = { fix->place, ELF64_R_INFO(symbol, constant ? R_X86_64_PC32 : R_X86_64_PLT32),
                               fix->addend };
        opjit_rt_bytes_append(w->out, &r, sizeof r);
    }
    end_section(w, S_RELA);
    w->sections[S_RELA].sh_entsize = sizeof(Elf64_Rela);
    w->sections[S_RELA].sh_link = S_SYMBOLS;
    w->sections[S_RELA].sh_info = S_TEXT;
}

static void put_symbols(writer *w, const bool *in_file, rt_bytes *names)
{
    const dx_module *m = w->m;
    const Elf64_Sym none = { .st_name = 0 };
    const Elf64_Sym data = { .st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION), .st_shndx = S_DATA };
    begin_section(w, S_SYMBOLS, SHT_SYMTAB, 0, 8);
    opjit_rt_bytes_append(w->out, &none, sizeof none);
    opjit_rt_bytes_append(w->out, &data, sizeof data);
    for (uint32_t i = 0; i < m->symbol_count; i++) {
        const dx_symbol *s = &m->symbols[i];
        if (!in_file[i])
            continue;
        const Elf64_Sym symbol = { .st_name = (uint32_t)names->size,
                                   .st_info = ELF64_ST_INFO(STB_GLOBAL, s->defined ? STT_FUNC : STT_NOTYPE),
                                   .st_shndx = s->defined ? S_TEXT : SHN_UNDEF,
                                   .st_value = s->defined ? s->begin : 0,
                                   .st_size = s->defined ? s->size : 0 };
        opjit_rt_bytes_append(names, s->name, strlen(s->name) + 1);
        opjit_rt_bytes_append(w->out, &symbol, sizeof symbol);
    }
    end_section(w, S_SYMBOLS);
    w->sections[S_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
    w->sections[S_SYMBOLS].sh_link = S_NAMES;
    w->sections[S_SYMBOLS].sh_info = 2; /* the first one that others see */
}

/* The symbols that the file has. */
static bool *choose_symbols(writer *w)
{
    dx_module *m = w->m;
    uint32_t next = 2;
    bool *called = ARENA_ARRAY(m->arena, bool, m->symbol_count + 1);
    bool *in_file = ARENA_ARRAY(m->arena, bool, m->symbol_count + 1);
    w->number = ARENA_ARRAY(m->arena, uint32_t, m->symbol_count + 1);
    if (!called || !in_file || !w->number) {
        m->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < m->fix_count; i++)
        if (m->fixes[i].symbol != DX_CONSTANTS)
            called[m->fixes[i].symbol] = true;
    for (uint32_t i = 0; i < m->symbol_count; i++) {
        in_file[i] = is_in_file(m, i, called);
        w->number[i] = in_file[i] ? next++ : 0;
    }
    return in_file;
}

void opjit_dx_object(dx_module *m, rt_bytes *out)
{
    writer w = { .m = m, .out = out };
    rt_bytes names;
    Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                          .e_type = ET_REL,
                          .e_machine = EM_X86_64,
                          .e_version = EV_CURRENT,
                          .e_ehsize = sizeof header,
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shnum = SECTIONS,
                          .e_shstrndx = S_NAMES };
    const bool *in_file = choose_symbols(&w);
    if (!in_file)
        return;
    names = (rt_bytes){ .size = 0 };
    opjit_rt_bytes_init(&names, m->code.allocator);
    opjit_rt_bytes_append(&names, section_names, sizeof section_names);
    resolve(m);
    opjit_rt_bytes_append(out, &header, sizeof header);
    begin_section(&w, S_TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, DX_DATA_ALIGN);
    opjit_rt_bytes_append(out, m->code.data, m->code.size);
    end_section(&w, S_TEXT);
    begin_section(&w, S_DATA, SHT_PROGBITS, SHF_ALLOC, DX_DATA_ALIGN);
    opjit_rt_bytes_append(out, m->data.data, m->data.size);
    end_section(&w, S_DATA);
    put_relocations(&w);
    put_symbols(&w, in_file, &names);
    begin_section(&w, S_NAMES, SHT_STRTAB, 0, 1);
    opjit_rt_bytes_append(out, names.data, names.size);
    end_section(&w, S_NAMES);
    opjit_rt_bytes_align(out, 8);
    header.e_shoff = out->size;
    opjit_rt_bytes_append(out, w.sections, sizeof w.sections);
    m->failed = m->failed || names.failed || out->failed;
    if (!m->failed)
        memcpy(out->data, &header, sizeof header);
    opjit_rt_bytes_free(&names);
}
