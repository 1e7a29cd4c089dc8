/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - makes one flat, position-independent piece of an object file in memory: code first, constants after it,
 * every section at a multiple of 64 bytes, all relocations applied.  Refuses undefined symbols other than those that
 * the caller has a place for, writable data and any relocation that would need an address.  Nothing in the file is
 * trusted: every offset and size is checked. */
#include "codegen/object/link.h"

#include "codegen/object/reloc.h"

#include <elf.h>
#include <string.h>

enum { MAX_SECTIONS = 256, SECTION_ALIGN = 64 };

typedef struct elf_file {
    const uint8_t *data;
    size_t size;
    const cg_outside *outside; /* NULL: nothing is */
    opjit_error *error;
    uint16_t machine; /* EM_... */
    uint32_t count;   /* sections */
    Elf64_Shdr sections[MAX_SECTIONS];
    uint64_t place[MAX_SECTIONS]; /* the section's offset in the flat piece; UINT64_MAX: not included */
    uint64_t flat_size;
    uint32_t symbols; /* section; 0: none */
} elf_file;

#define BAD(...) return opjit_rt_refuse(e->error, OPJIT_CODEGEN, "{!codegen}{!object}" __VA_ARGS__)

static bool inside(const elf_file *e, uint64_t offset, uint64_t size)
{
    return offset <= e->size && size <= e->size - offset;
}

/* A NUL-terminated string of a string section; NULL: there is none at that offset. */
static const char *text_at(const elf_file *e, uint32_t section, uint64_t offset)
{
    if (section >= e->count || offset >= e->sections[section].sh_size || e->sections[section].sh_type != SHT_STRTAB)
        return NULL;
    const char *text = (const char *)e->data + e->sections[section].sh_offset + offset;
    return memchr(text, 0, (size_t)(e->sections[section].sh_size - offset)) ? text : NULL;
}

static opjit_status read_sections(elf_file *e)
{
    Elf64_Ehdr header;
    if (!inside(e, 0, sizeof(header)))
        BAD("the object has %zu bytes, too few for a header", e->size);
    memcpy(&header, e->data, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL || !opjit_cg_reloc_machine(header.e_machine))
        BAD("the object is no relocatable ELF file for x86-64, AArch64, RISC-V or AMDGPU");
    e->machine = header.e_machine;
    e->count = header.e_shnum;
    if (header.e_shentsize != sizeof(Elf64_Shdr) || e->count > MAX_SECTIONS ||
        !inside(e, header.e_shoff, (uint64_t)e->count * sizeof(Elf64_Shdr)))
        BAD("the object's section table is damaged or has more than %d entries", MAX_SECTIONS);
    memcpy(e->sections, e->data + header.e_shoff, e->count * sizeof(Elf64_Shdr));
    for (uint32_t i = 0; i < e->count; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !inside(e, s->sh_offset, s->sh_size))
            BAD("section %u of the object lies outside of it", i);
        if (s->sh_type != SHT_SYMTAB)
            continue;
        if (e->symbols != 0 || s->sh_entsize != sizeof(Elf64_Sym))
            BAD("the object's symbol table is damaged");
        e->symbols = i;
    }
    return OPJIT_OK;
}

static Elf64_Sym symbol_at(const elf_file *e, uint64_t index)
{
    Elf64_Sym symbol;
    memcpy(&symbol, e->data + e->sections[e->symbols].sh_offset + index * sizeof(symbol), sizeof(symbol));
    return symbol;
}

static uint64_t symbol_count(const elf_file *e)
{
    return e->symbols ? e->sections[e->symbols].sh_size / sizeof(Elf64_Sym) : 0;
}

static const char *symbol_name(const elf_file *e, const Elf64_Sym *symbol)
{
    const char *name = text_at(e, e->sections[e->symbols].sh_link, symbol->st_name);
    return name ? name : "without a name";
}

static bool find_outside(const elf_file *e, const Elf64_Sym *symbol, uint64_t *out_place)
{
    return e->outside && e->outside->find(e->outside->user, symbol_name(e, symbol), out_place);
}

static opjit_status check_symbols(const elf_file *e)
{
    uint64_t place;
    for (uint64_t i = 1; i < symbol_count(e); i++) {
        const Elf64_Sym symbol = symbol_at(e, i);
        if (symbol.st_shndx == SHN_UNDEF && !find_outside(e, &symbol, &place))
            BAD("the code refers to %s, which is not in it", symbol_name(e, &symbol));
    }
    return OPJIT_OK;
}

/* Code first, then constants, each in the file's order.  Wide vector constants ask for an alignment of more than 64
 * bytes, but no instruction needs it. */
static opjit_status place_sections(elf_file *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->place[i] = UINT64_MAX;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < e->count; i++) {
            const Elf64_Shdr *s = &e->sections[i];
            const bool code = (s->sh_flags & SHF_EXECINSTR) != 0;
            if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0 || code != (pass == 0) ||
                (e->machine == EM_X86_64 && s->sh_type == SHT_X86_64_UNWIND) ||
                (e->machine == EM_AMDGPU && s->sh_type == SHT_NOTE))
                continue;
            if (s->sh_type != SHT_PROGBITS || (s->sh_flags & (SHF_WRITE | SHF_TLS)))
                BAD("section %u of the object is writable or of a kind that can't be placed", i);
            e->place[i] = align_up(e->flat_size, SECTION_ALIGN);
            e->flat_size = e->place[i] + s->sh_size;
        }
    return OPJIT_OK;
}

/* The k-th relocation of a relocation section. */
static Elf64_Rela relocation_at(const elf_file *e, const Elf64_Shdr *section, uint64_t k)
{
    Elf64_Rela r;
    memcpy(&r, e->data + section->sh_offset + k * sizeof(r), sizeof(r));
    return r;
}

/* Finds the place of the relocation and the value it refers to. */
static opjit_status resolve(const elf_file *e, uint32_t target, const Elf64_Rela *r, uint64_t *out_place,
                            uint64_t *out_value)
{
    const uint32_t width = opjit_cg_reloc_width(e->machine, (uint32_t)ELF64_R_TYPE(r->r_info));
    if (ELF64_R_SYM(r->r_info) >= symbol_count(e) || e->sections[target].sh_size < width ||
        r->r_offset > e->sections[target].sh_size - width)
        BAD("the object has a relocation outside of its section or symbol table");
    const Elf64_Sym symbol = symbol_at(e, ELF64_R_SYM(r->r_info));
    uint64_t value = 0;
    const bool outside = symbol.st_shndx == SHN_UNDEF && find_outside(e, &symbol, &value);
    if (!outside && (symbol.st_shndx >= e->count || e->place[symbol.st_shndx] == UINT64_MAX))
        BAD("the code refers to %s, which is not in it", symbol_name(e, &symbol));
    if (!outside)
        value = e->place[symbol.st_shndx] + symbol.st_value;
    *out_place = e->place[target] + r->r_offset;
    *out_value = value + (uint64_t)r->r_addend;
    return OPJIT_OK;
}

/* The k-th relocation has the lower bits of a distance, whose upper bits are in the relocation at its symbol.  That one
 * is shortly before it, unless blocks were moved. */
static opjit_status resolve_low(const elf_file *e, const Elf64_Shdr *section, uint64_t k, uint64_t *place,
                                uint64_t *value)
{
    const uint64_t count = section->sh_size / sizeof(Elf64_Rela), upper = *value - e->place[section->sh_info];
    for (uint64_t i = 1; i < count; i++) {
        const Elf64_Rela r = relocation_at(e, section, (k + count - i) % count);
        if (r.r_offset == upper && !opjit_cg_reloc_is_low(e->machine, (uint32_t)ELF64_R_TYPE(r.r_info)))
            return resolve(e, section->sh_info, &r, place, value);
    }
    BAD("the object has half of a relocation");
}

static opjit_status apply(const elf_file *e, uint8_t *flat, const Elf64_Shdr *section, uint64_t k)
{
    const Elf64_Rela r = relocation_at(e, section, k);
    const uint32_t type = (uint32_t)ELF64_R_TYPE(r.r_info);
    uint64_t place, value;
    TRY(resolve(e, section->sh_info, &r, &place, &value));
    uint8_t *at = flat + place;
    if (opjit_cg_reloc_is_low(e->machine, type))
        TRY(resolve_low(e, section, k, &place, &value));
    switch (opjit_cg_reloc_apply(e->machine, type, place, value, at)) {
    case CG_RELOC_DONE: return OPJIT_OK;
    case CG_RELOC_FAR: BAD("a relocation of the object, of type %u, does not reach", type);
    default: BAD("the object has a relocation of type %u, which needs an address", type);
    }
}

static opjit_status relocate(const elf_file *e, uint8_t *flat)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (s->sh_type == SHT_REL)
            BAD("the object has relocations without addends");
        if (s->sh_type != SHT_RELA || s->sh_info >= e->count || e->place[s->sh_info] == UINT64_MAX)
            continue;
        if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_link != e->symbols || e->symbols == 0)
            BAD("section %u of the object, relocations, is damaged", i);
        for (uint64_t k = 0; k < s->sh_size / sizeof(Elf64_Rela); k++)
            TRY(apply(e, flat, s, k));
    }
    return OPJIT_OK;
}

static opjit_status open_object(elf_file *e, const uint8_t *object, size_t size, const cg_outside *outside,
                                opjit_error *error)
{
    *e = (elf_file){ .data = object, .size = size, .outside = outside, .error = error };
    TRY(read_sections(e));
    TRY(check_symbols(e));
    return place_sections(e);
}

opjit_status opjit_cg_link_check(const uint8_t *object, size_t size, opjit_error *error)
{
    elf_file e;
    return open_object(&e, object, size, NULL, error);
}

opjit_status opjit_cg_link(const uint8_t *object, size_t size, const cg_outside *outside, rt_bytes *code,
                           opjit_error *error)
{
    elf_file e;
    TRY(open_object(&e, object, size, outside, error));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < e.count; i++) {
            const bool is_code = (e.sections[i].sh_flags & SHF_EXECINSTR) != 0;
            if (e.place[i] == UINT64_MAX || is_code != (pass == 0))
                continue;
            opjit_rt_bytes_align(code, SECTION_ALIGN);
            opjit_rt_bytes_append(code, object + e.sections[i].sh_offset, (size_t)e.sections[i].sh_size);
        }
    if (code->failed)
        return opjit_rt_no_memory(error);
    return relocate(&e, code->data);
}

opjit_status opjit_cg_link_symbols(const uint8_t *object, size_t size,
                                   opjit_status (*visit)(void *user, const cg_symbol *symbol), void *user,
                                   opjit_error *error)
{
    elf_file file = { .data = object, .size = size, .error = error }, *e = &file;
    TRY(read_sections(e));
    TRY(place_sections(e));
    for (uint64_t i = 1; i < symbol_count(e); i++) {
        const Elf64_Sym symbol = symbol_at(e, i);
        if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || symbol.st_shndx == SHN_UNDEF ||
            (e->machine == EM_AMDGPU && symbol.st_shndx == SHN_ABS)) /* numbers of registers */
            continue;
        if (symbol.st_shndx >= e->count || e->place[symbol.st_shndx] == UINT64_MAX ||
            symbol.st_value > e->sections[symbol.st_shndx].sh_size)
            BAD("symbol %s of the object is not in its code", symbol_name(e, &symbol));
        TRY(visit(user, &(cg_symbol){ .name = symbol_name(e, &symbol),
                                      .value = e->place[symbol.st_shndx] + symbol.st_value,
                                      .size = symbol.st_size,
                                      .type = ELF64_ST_TYPE(symbol.st_info),
                                      .hidden = ELF64_ST_VISIBILITY(symbol.st_other) != STV_DEFAULT }));
    }
    return OPJIT_OK;
}

opjit_status opjit_cg_link_refers(const uint8_t *object, size_t size, uint64_t begin, uint64_t end, bool *out,
                                  opjit_error *error)
{
    elf_file e;
    TRY(open_object(&e, object, size, NULL, error));
    *out = false;
    for (uint32_t i = 0; i < e.count; i++) {
        const Elf64_Shdr *s = &e.sections[i];
        if (s->sh_type != SHT_RELA || s->sh_info >= e.count || e.place[s->sh_info] == UINT64_MAX)
            continue;
        for (uint64_t k = 0; k < s->sh_size / sizeof(Elf64_Rela); k++) {
            const uint64_t place = e.place[s->sh_info] + relocation_at(&e, s, k).r_offset;
            *out = *out || (place >= begin && place < end);
        }
    }
    return OPJIT_OK;
}

opjit_status opjit_cg_link_note(const uint8_t *object, size_t size, const uint8_t **out, size_t *out_size,
                                opjit_error *error)
{
    elf_file file = { .data = object, .size = size, .error = error }, *e = &file;
    TRY(read_sections(e));
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->sections[i].sh_type != SHT_NOTE)
            continue;
        *out = object + e->sections[i].sh_offset;
        *out_size = (size_t)e->sections[i].sh_size;
        return OPJIT_OK;
    }
    BAD("the object has no note");
}
