/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c - writes ELF files for loaders: headers, hash table, symbols, sections. */
#include "codegen/object/elf.h"

#include <string.h>

void opjit_cg_elf_init(cg_elf *e, const opjit_allocator *allocator)
{
    static const Elf64_Sym none;
    *e = (cg_elf){ .allocator = allocator };
    opjit_rt_bytes_init(&e->text, allocator);
    opjit_rt_bytes_init(&e->symbols, allocator);
    opjit_rt_bytes_init(&e->strings, allocator);
    opjit_rt_bytes_u8(&e->strings, 0);
    opjit_rt_bytes_append(&e->symbols, &none, sizeof(none));
}

void opjit_cg_elf_free(cg_elf *e)
{
    opjit_rt_bytes_free(&e->text);
    opjit_rt_bytes_free(&e->symbols);
    opjit_rt_bytes_free(&e->strings);
}

uint64_t opjit_cg_elf_string(cg_elf *e, const char *text)
{
    const uint64_t at = e->strings.size;
    opjit_rt_bytes_append(&e->strings, text, strlen(text) + 1);
    return at;
}

void opjit_cg_elf_symbol(cg_elf *e, const char *name, uint8_t type, cg_elf_section where, uint64_t value, uint64_t size)
{
    const Elf64_Sym symbol = { .st_name = (uint32_t)opjit_cg_elf_string(e, name),
                               .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
                               .st_shndx = (uint16_t)where,
                               .st_value = value,
                               .st_size = size };
    opjit_rt_bytes_append(&e->symbols, &symbol, sizeof(symbol));
}

/* --- layout ------------------------------------------------------------------------------------------------------- */
static uint32_t symbol_count(const cg_elf *e)
{
    return (uint32_t)(e->symbols.size / sizeof(Elf64_Sym));
}

/* Segments with different permissions need separate pages, of the largest size that the architecture may have. */
static uint64_t page_of(const cg_elf *e)
{
    return e->like.e_machine == EM_AARCH64 ? 65536 : 4096;
}

static uint32_t bucket_count(const cg_elf *e)
{
    return symbol_count(e) / 2 + 1;
}

static uint64_t hash_size(const cg_elf *e)
{
    return 4 * (2 + (uint64_t)bucket_count(e) + symbol_count(e));
}

static const char section_names[] = "\0.hash\0.dynsym\0.dynstr\0.rodata\0.text\0.dynamic\0.shstrtab\0.note";

opjit_status opjit_cg_elf_place(cg_elf *e, uint64_t head_size, opjit_error *error)
{
    if (e->text.failed || e->symbols.failed || e->strings.failed)
        return opjit_rt_no_memory(error);
    if (e->text.size > INT32_MAX / 2)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!codegen}{!bytes}code of more than 1 GiB in one file");
    e->head_size = head_size;
    e->hash_at = sizeof(Elf64_Ehdr) + CG_ELF_SEGMENTS * sizeof(Elf64_Phdr);
    e->symbols_at = align_up(e->hash_at + hash_size(e), 8);
    e->strings_at = e->symbols_at + e->symbols.size;
    e->head_at = align_up(e->strings_at + e->strings.size, CG_ELF_PIECE_ALIGN);
    e->text_at = align_up(e->head_at + head_size, page_of(e));
    e->dynamic_at = align_up(e->text_at + e->text.size, page_of(e));
    e->names_at = e->dynamic_at + CG_ELF_DYNAMICS * sizeof(Elf64_Dyn);
    e->sections_at = align_up(e->names_at + sizeof(section_names), 8);
    return OPJIT_OK;
}

static void pad_to(rt_bytes *out, uint64_t at)
{
    static const uint8_t zeros[4096];
    while (!out->failed && out->size < at)
        opjit_rt_bytes_append(out, zeros, at - out->size < sizeof(zeros) ? (size_t)(at - out->size) : sizeof(zeros));
}

/* --- parts -------------------------------------------------------------------------------------------------------- */
static void put_headers(const cg_elf *e, rt_bytes *out)
{
    const struct {
        uint32_t type, flags;
        uint64_t at, size, align;
    } rows[CG_ELF_SEGMENTS] = {
        { PT_LOAD, PF_R, 0, e->text_at, page_of(e) },
        { PT_LOAD, PF_R | PF_X, e->text_at, e->text.size, page_of(e) },
        { PT_LOAD, PF_R | PF_W, e->dynamic_at, CG_ELF_DYNAMICS * sizeof(Elf64_Dyn), page_of(e) },
        { PT_DYNAMIC, PF_R | PF_W, e->dynamic_at, CG_ELF_DYNAMICS * sizeof(Elf64_Dyn), 8 },
        { PT_GNU_STACK, PF_R | PF_W, 0, 0, 16 },
        { PT_NOTE, PF_R, e->head_at, e->head_size, 4 },
    };
    const uint32_t segments = e->head_is_note ? CG_ELF_SEGMENTS : CG_ELF_SEGMENTS - 1;
    Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                          .e_type = ET_DYN,
                          .e_machine = e->like.e_machine,
                          .e_version = EV_CURRENT,
                          .e_phoff = sizeof(Elf64_Ehdr),
                          .e_shoff = e->sections_at,
                          .e_flags = e->like.e_flags,
                          .e_ehsize = sizeof(Elf64_Ehdr),
                          .e_phentsize = sizeof(Elf64_Phdr),
                          .e_phnum = (uint16_t)segments,
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shnum = CG_ELF_SECTIONS,
                          .e_shstrndx = CG_ELF_NAMES };
    header.e_ident[EI_OSABI] = e->like.e_ident[EI_OSABI];
    header.e_ident[EI_ABIVERSION] = e->like.e_ident[EI_ABIVERSION];
    opjit_rt_bytes_append(out, &header, sizeof(header));
    for (uint32_t i = 0; i < segments; i++) {
        const Elf64_Phdr segment = { .p_type = rows[i].type,
                                     .p_flags = rows[i].flags,
                                     .p_offset = rows[i].at,
                                     .p_vaddr = rows[i].at,
                                     .p_paddr = rows[i].at,
                                     .p_filesz = rows[i].size,
                                     .p_memsz = rows[i].size,
                                     .p_align = rows[i].align };
        opjit_rt_bytes_append(out, &segment, sizeof(segment));
    }
}

/* System V's hash of a symbol. */
static uint32_t hash_name(const char *name)
{
    uint32_t h = 0;
    for (; *name; name++) {
        h = (h << 4) + (uint8_t)*name;
        h ^= h >> 24 & 0xf0;
        h &= 0x0fffffff;
    }
    return h;
}

static opjit_status put_hash(const cg_elf *e, rt_bytes *out, opjit_error *error)
{
    const uint32_t count = symbol_count(e), buckets = bucket_count(e);
    rt_arena arena;
    opjit_rt_arena_init(&arena, e->allocator);
    uint32_t *table = ARENA_ARRAY(&arena, uint32_t, 2 + (size_t)buckets + count);
    if (!table)
        return opjit_rt_no_memory(error);
    table[0] = buckets;
    table[1] = count;
    for (uint32_t i = 1; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, e->symbols.data + i * sizeof(symbol), sizeof(symbol));
        uint32_t *link = &table[2 + hash_name((const char *)e->strings.data + symbol.st_name) % buckets];
        table[2 + buckets + i] = *link;
        *link = i;
    }
    pad_to(out, e->hash_at);
    opjit_rt_bytes_append(out, table, (2 + (size_t)buckets + count) * sizeof(*table));
    opjit_rt_arena_free(&arena);
    return OPJIT_OK;
}

/* Turns values, which were relative to their section, into addresses. */
static void put_symbols(const cg_elf *e, rt_bytes *out)
{
    pad_to(out, e->symbols_at);
    for (uint32_t i = 0; i < symbol_count(e); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, e->symbols.data + i * sizeof(symbol), sizeof(symbol));
        if (symbol.st_shndx != SHN_UNDEF)
            symbol.st_value += symbol.st_shndx == CG_ELF_TEXT ? e->text_at : e->head_at;
        opjit_rt_bytes_append(out, &symbol, sizeof(symbol));
    }
    opjit_rt_bytes_append(out, e->strings.data, e->strings.size);
}

static void put_dynamic(const cg_elf *e, rt_bytes *out)
{
    const Elf64_Dyn rows[CG_ELF_DYNAMICS] = {
        { .d_tag = DT_HASH, .d_un.d_ptr = e->hash_at },
        { .d_tag = DT_SYMTAB, .d_un.d_ptr = e->symbols_at },
        { .d_tag = DT_STRTAB, .d_un.d_ptr = e->strings_at },
        { .d_tag = DT_STRSZ, .d_un.d_val = e->strings.size },
        { .d_tag = DT_SYMENT, .d_un.d_val = sizeof(Elf64_Sym) },
        { .d_tag = e->soname ? DT_SONAME : DT_NULL, .d_un.d_val = e->soname },
        { .d_tag = DT_NULL },
    };
    pad_to(out, e->dynamic_at);
    opjit_rt_bytes_append(out, rows, sizeof(rows));
}

/* For tools and linkers; loaders read the segments. */
static void put_sections(const cg_elf *e, rt_bytes *out)
{
    const struct {
        uint32_t type, flags, link, info;
        uint64_t at, size, align, item;
    } rows[CG_ELF_SECTIONS] = {
        { SHT_NULL, 0, 0, 0, 0, 0, 0, 0 },
        { SHT_HASH, SHF_ALLOC, CG_ELF_DYNSYM, 0, e->hash_at, hash_size(e), 8, 4 },
        { SHT_DYNSYM, SHF_ALLOC, CG_ELF_DYNSTR, 1, e->symbols_at, e->symbols.size, 8, sizeof(Elf64_Sym) },
        { SHT_STRTAB, SHF_ALLOC, 0, 0, e->strings_at, e->strings.size, 1, 0 },
        { e->head_is_note ? SHT_NOTE : SHT_PROGBITS, SHF_ALLOC, 0, 0, e->head_at, e->head_size,
          e->head_is_note ? 4 : CG_ELF_PIECE_ALIGN, 0 },
        { SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0, e->text_at, e->text.size, page_of(e), 0 },
        { SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, CG_ELF_DYNSTR, 0, e->dynamic_at, CG_ELF_DYNAMICS * sizeof(Elf64_Dyn), 8,
          sizeof(Elf64_Dyn) },
        { SHT_STRTAB, 0, 0, 0, e->names_at, sizeof(section_names), 1, 0 },
    };
    const uint32_t note_name = sizeof(section_names) - sizeof(".note");
    uint32_t name = 0;
    pad_to(out, e->names_at);
    opjit_rt_bytes_append(out, section_names, sizeof(section_names));
    pad_to(out, e->sections_at);
    for (uint32_t i = 0; i < CG_ELF_SECTIONS; i++) {
        const Elf64_Shdr section = { .sh_name = i == CG_ELF_HEAD && e->head_is_note ? note_name : name,
                                     .sh_type = rows[i].type,
                                     .sh_flags = rows[i].flags,
                                     .sh_addr = (rows[i].flags & SHF_ALLOC) != 0 ? rows[i].at : 0,
                                     .sh_offset = rows[i].at,
                                     .sh_size = rows[i].size,
                                     .sh_link = rows[i].link,
                                     .sh_info = rows[i].info,
                                     .sh_addralign = rows[i].align,
                                     .sh_entsize = rows[i].item };
        opjit_rt_bytes_append(out, &section, sizeof(section));
        name += (uint32_t)strlen(section_names + name) + 1;
    }
}

opjit_status opjit_cg_elf_write(const cg_elf *e, const uint8_t *head, rt_bytes *out, opjit_error *error)
{
    put_headers(e, out);
    TRY(put_hash(e, out, error));
    put_symbols(e, out);
    pad_to(out, e->head_at);
    opjit_rt_bytes_append(out, head, (size_t)e->head_size);
    pad_to(out, e->text_at);
    opjit_rt_bytes_append(out, e->text.data, e->text.size);
    put_dynamic(e, out);
    put_sections(e, out);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
