/* cg_shared.c - objects as a shared library, written by ourselves: no linker is needed, for no architecture, and the
 * bytes depend on none.  Code and constants stand as they do in an image, so there is nothing to relocate, nothing
 * writable but the page that holds the dynamic section (as some loaders want it), and addresses are offsets in the file.
 * It ends with a checksum of all of it: what opjit's own loader reads instead of the ELF headers. */
#include "codegen/cg.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_ALIGN = 64, PAGE_ALIGN = 4096, SEGMENTS = 5, SECTIONS = 8, DYNAMICS = 7 };
enum { SECTION_HASH = 1, SECTION_DYNSYM, SECTION_DYNSTR, SECTION_RODATA, SECTION_TEXT, SECTION_DYNAMIC, SECTION_NAMES };

typedef struct builder {
    const codegen_library *request;
    opjit_error *error;
    rt_bytes *out;
    rt_bytes text;    /* the objects' flat code */
    rt_bytes symbols; /* Elf64_Sym; values of code count from text */
    rt_bytes strings;
    uint64_t *records; /* by registry entry: of its opjit_aot_kernel in text; UINT64_MAX: not seen yet */
    /* of the member at hand: */
    const codegen_member *member;
    uint64_t base;
    uint32_t first_entry;
    /* of the file: */
    uint16_t machine;
    uint32_t flags;
    uint64_t hash_at, symbols_at, strings_at, registry_at, text_at, dynamic_at, names_at, sections_at;
} builder;

/* --- objects ------------------------------------------------------------------------------------------------------ */
static void add_symbol(builder *b, const char *name, uint8_t type, uint16_t section, uint64_t value, uint64_t size)
{
    const Elf64_Sym symbol = { .st_name = (uint32_t)b->strings.size,
                               .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
                               .st_shndx = section,
                               .st_value = value,
                               .st_size = size };
    opjit_rt_bytes_append(&b->strings, name, strlen(name) + 1);
    opjit_rt_bytes_append(&b->symbols, &symbol, sizeof(symbol));
}

/* Records are for the registry, all else is exported. */
static opjit_status take_symbol(void *user, const cg_symbol *symbol)
{
    builder *b = user;
    if (!symbol->hidden) {
        add_symbol(b, symbol->name, symbol->type, SECTION_TEXT, b->base + symbol->value, symbol->size);
        return OPJIT_OK;
    }
    for (uint32_t i = 0; i < b->member->version_count; i++) {
        const size_t length = strlen(b->member->versions[i]);
        if (strncmp(symbol->name, b->member->versions[i], length) == 0 && strcmp(symbol->name + length, "_kernel") == 0)
            b->records[b->first_entry + i] = b->base + symbol->value;
    }
    return OPJIT_OK;
}

static opjit_status add_member(builder *b, const codegen_member *member)
{
    Elf64_Ehdr header;
    rt_bytes code;
    opjit_rt_bytes_init(&code, b->request->allocator);
    /* AArch64's code has the upper bits of addresses by pages. */
    opjit_rt_bytes_align(&b->text, b->request->target->arch == RT_ARCH_X86_64 ? PIECE_ALIGN : PAGE_ALIGN);
    opjit_status status = opjit_cg_link(member->object, member->bytes, &code, b->error);
    if (status == OPJIT_OK) {
        memcpy(&header, member->object, sizeof(header)); /* the link has checked that there is one */
        b->machine = header.e_machine;
        b->flags = header.e_flags;
        b->base = b->text.size;
        b->member = member;
        opjit_rt_bytes_append(&b->text, code.data, code.size);
        status = opjit_cg_link_symbols(member->object, member->bytes, take_symbol, b, b->error);
        b->first_entry += member->version_count;
    }
    opjit_rt_bytes_free(&code);
    return status;
}

/* --- layout ------------------------------------------------------------------------------------------------------- */
static uint32_t symbol_count(const builder *b)
{
    return (uint32_t)(b->symbols.size / sizeof(Elf64_Sym));
}

/* Segments with different rights need pages of their own, as large as the architecture's can be. */
static uint64_t page_of(const builder *b)
{
    return b->machine == EM_AARCH64 ? 65536 : 4096;
}

static uint32_t bucket_count(const builder *b)
{
    return symbol_count(b) / 2 + 1;
}

static void place(builder *b, uint64_t registry_size, uint64_t names_size)
{
    b->hash_at = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
    b->symbols_at = align_up(b->hash_at + 4 * (2 + (uint64_t)bucket_count(b) + symbol_count(b)), 8);
    b->strings_at = b->symbols_at + b->symbols.size;
    b->registry_at = align_up(b->strings_at + b->strings.size, PIECE_ALIGN);
    b->text_at = align_up(b->registry_at + registry_size, page_of(b));
    b->dynamic_at = align_up(b->text_at + b->text.size, page_of(b));
    b->names_at = b->dynamic_at + DYNAMICS * sizeof(Elf64_Dyn);
    b->sections_at = align_up(b->names_at + names_size, 8);
}

static void pad_to(rt_bytes *out, uint64_t at)
{
    static const uint8_t zeros[4096];
    while (!out->failed && out->size < at)
        opjit_rt_bytes_append(out, zeros, at - out->size < sizeof(zeros) ? (size_t)(at - out->size) : sizeof(zeros));
}

/* --- parts -------------------------------------------------------------------------------------------------------- */
static void put_headers(builder *b)
{
    const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                                .e_type = ET_DYN,
                                .e_machine = b->machine,
                                .e_version = EV_CURRENT,
                                .e_phoff = sizeof(Elf64_Ehdr),
                                .e_shoff = b->sections_at,
                                .e_flags = b->flags,
                                .e_ehsize = sizeof(Elf64_Ehdr),
                                .e_phentsize = sizeof(Elf64_Phdr),
                                .e_phnum = SEGMENTS,
                                .e_shentsize = sizeof(Elf64_Shdr),
                                .e_shnum = SECTIONS,
                                .e_shstrndx = SECTION_NAMES };
    const struct {
        uint32_t type, flags;
        uint64_t at, size, align;
    } rows[SEGMENTS] = {
        { PT_LOAD, PF_R, 0, b->text_at, page_of(b) },
        { PT_LOAD, PF_R | PF_X, b->text_at, b->text.size, page_of(b) },
        { PT_LOAD, PF_R | PF_W, b->dynamic_at, DYNAMICS * sizeof(Elf64_Dyn), page_of(b) },
        { PT_DYNAMIC, PF_R | PF_W, b->dynamic_at, DYNAMICS * sizeof(Elf64_Dyn), 8 },
        { PT_GNU_STACK, PF_R | PF_W, 0, 0, 16 },
    };
    opjit_rt_bytes_append(b->out, &header, sizeof(header));
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        const Elf64_Phdr segment = { .p_type = rows[i].type,
                                     .p_flags = rows[i].flags,
                                     .p_offset = rows[i].at,
                                     .p_vaddr = rows[i].at,
                                     .p_paddr = rows[i].at,
                                     .p_filesz = rows[i].size,
                                     .p_memsz = rows[i].size,
                                     .p_align = rows[i].align };
        opjit_rt_bytes_append(b->out, &segment, sizeof(segment));
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

static opjit_status put_hash(builder *b)
{
    const uint32_t count = symbol_count(b), buckets = bucket_count(b);
    rt_arena arena;
    opjit_rt_arena_init(&arena, b->request->allocator);
    uint32_t *table = ARENA_ARRAY(&arena, uint32_t, 2 + (size_t)buckets + count);
    if (!table)
        return opjit_rt_no_memory(b->error);
    table[0] = buckets;
    table[1] = count;
    for (uint32_t i = 1; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, b->symbols.data + i * sizeof(symbol), sizeof(symbol));
        uint32_t *link = &table[2 + hash_name((const char *)b->strings.data + symbol.st_name) % buckets];
        table[2 + buckets + i] = *link;
        *link = i;
    }
    pad_to(b->out, b->hash_at);
    opjit_rt_bytes_append(b->out, table, (2 + (size_t)buckets + count) * sizeof(*table));
    opjit_rt_arena_free(&arena);
    return OPJIT_OK;
}

/* Values, which counted from the text so far, become addresses. */
static void put_symbols(builder *b)
{
    pad_to(b->out, b->symbols_at);
    for (uint32_t i = 0; i < symbol_count(b); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, b->symbols.data + i * sizeof(symbol), sizeof(symbol));
        if (symbol.st_shndx != SHN_UNDEF)
            symbol.st_value += symbol.st_shndx == SECTION_TEXT ? b->text_at : b->registry_at;
        opjit_rt_bytes_append(b->out, &symbol, sizeof(symbol));
    }
    opjit_rt_bytes_append(b->out, b->strings.data, b->strings.size);
}

static opjit_status put_registry(builder *b, rt_bytes *registry)
{
    for (uint32_t i = 0; i < b->first_entry; i++) {
        const uint64_t entry = sizeof(opjit_aot_registry) + i * sizeof(opjit_aot_entry);
        const int64_t distance = (int64_t)(b->text_at + b->records[i]) - (int64_t)(b->registry_at + entry);
        const int32_t value = (int32_t)distance;
        if (b->records[i] == UINT64_MAX)
            return opjit_rt_error_set(b->error, OPJIT_INTERNAL, "the library's kernel %u has no record", i);
        memcpy(registry->data + entry + offsetof(opjit_aot_entry, kernel), &value, sizeof(value));
    }
    pad_to(b->out, b->registry_at);
    opjit_rt_bytes_append(b->out, registry->data, registry->size);
    return OPJIT_OK;
}

static void put_dynamic(builder *b, uint64_t soname)
{
    const Elf64_Dyn rows[DYNAMICS] = {
        { .d_tag = DT_SONAME, .d_un.d_val = soname },
        { .d_tag = DT_HASH, .d_un.d_ptr = b->hash_at },
        { .d_tag = DT_SYMTAB, .d_un.d_ptr = b->symbols_at },
        { .d_tag = DT_STRTAB, .d_un.d_ptr = b->strings_at },
        { .d_tag = DT_STRSZ, .d_un.d_val = b->strings.size },
        { .d_tag = DT_SYMENT, .d_un.d_val = sizeof(Elf64_Sym) },
        { .d_tag = DT_NULL },
    };
    pad_to(b->out, b->dynamic_at);
    opjit_rt_bytes_append(b->out, rows, sizeof(rows));
}

static const char section_names[] = "\0.hash\0.dynsym\0.dynstr\0.rodata\0.text\0.dynamic\0.shstrtab";

/* For tools and linkers; loaders look at segments. */
static void put_sections(builder *b, uint64_t registry_size)
{
    const struct {
        uint32_t type, flags, link, info;
        uint64_t at, size, align, item;
    } rows[SECTIONS] = {
        { SHT_NULL, 0, 0, 0, 0, 0, 0, 0 },
        { SHT_HASH, SHF_ALLOC, SECTION_DYNSYM, 0, b->hash_at, 4 * (2 + (uint64_t)bucket_count(b) + symbol_count(b)), 8,
          4 },
        { SHT_DYNSYM, SHF_ALLOC, SECTION_DYNSTR, 1, b->symbols_at, b->symbols.size, 8, sizeof(Elf64_Sym) },
        { SHT_STRTAB, SHF_ALLOC, 0, 0, b->strings_at, b->strings.size, 1, 0 },
        { SHT_PROGBITS, SHF_ALLOC, 0, 0, b->registry_at, registry_size, PIECE_ALIGN, 0 },
        { SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0, b->text_at, b->text.size, page_of(b), 0 },
        { SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, SECTION_DYNSTR, 0, b->dynamic_at, DYNAMICS * sizeof(Elf64_Dyn), 8,
          sizeof(Elf64_Dyn) },
        { SHT_STRTAB, 0, 0, 0, b->names_at, sizeof(section_names), 1, 0 },
    };
    uint32_t name = 0;
    pad_to(b->out, b->names_at);
    opjit_rt_bytes_append(b->out, section_names, sizeof(section_names));
    pad_to(b->out, b->sections_at);
    for (uint32_t i = 0; i < SECTIONS; i++) {
        const Elf64_Shdr section = { .sh_name = name,
                                     .sh_type = rows[i].type,
                                     .sh_flags = rows[i].flags,
                                     .sh_addr = (rows[i].flags & SHF_ALLOC) != 0 ? rows[i].at : 0,
                                     .sh_offset = rows[i].at,
                                     .sh_size = rows[i].size,
                                     .sh_link = rows[i].link,
                                     .sh_info = rows[i].info,
                                     .sh_addralign = rows[i].align,
                                     .sh_entsize = rows[i].item };
        opjit_rt_bytes_append(b->out, &section, sizeof(section));
        name += (uint32_t)strlen(section_names + name) + 1;
    }
}

static opjit_status put_trailer(builder *b)
{
    opjit_aot_trailer trailer = { .magic = OPJIT_AOT_TRAILER_MAGIC,
                                  .abi = OPJIT_AOT_ABI,
                                  .machine = b->machine,
                                  .size = b->out->size + sizeof(trailer),
                                  .registry = b->registry_at };
    opjit_rt_bytes_append(b->out, &trailer, offsetof(opjit_aot_trailer, hash_lo));
    if (b->out->failed)
        return opjit_rt_no_memory(b->error);
    const rt_hash hash = opjit_rt_hash(b->out->data, b->out->size);
    trailer.hash_lo = hash.lo;
    trailer.hash_hi = hash.hi;
    opjit_rt_bytes_append(b->out, &trailer.hash_lo, sizeof(trailer) - offsetof(opjit_aot_trailer, hash_lo));
    return b->out->failed ? opjit_rt_no_memory(b->error) : OPJIT_OK;
}

static opjit_status build(builder *b, rt_bytes *registry)
{
    char name[288];
    static const Elf64_Sym none;
    opjit_rt_bytes_u8(&b->strings, 0);
    opjit_rt_bytes_append(&b->symbols, &none, sizeof(none));
    for (uint32_t i = 0; i < b->request->member_count; i++)
        TRY(add_member(b, &b->request->members[i]));
    snprintf(name, sizeof(name), "%s_registry", b->request->name);
    add_symbol(b, name, STT_OBJECT, SECTION_RODATA, 0, registry->size);
    const uint64_t soname = b->strings.size;
    snprintf(name, sizeof(name), "lib%s.so", b->request->name);
    opjit_rt_bytes_append(&b->strings, name, strlen(name) + 1);
    if (b->text.failed || b->symbols.failed || b->strings.failed)
        return opjit_rt_no_memory(b->error);
    if (b->text.size > INT32_MAX / 2)
        return opjit_rt_error_set(b->error, OPJIT_LIMIT, "a shared library of more than 1 GiB");
    place(b, registry->size, sizeof(section_names));
    put_headers(b);
    TRY(put_hash(b));
    put_symbols(b);
    TRY(put_registry(b, registry));
    pad_to(b->out, b->text_at);
    opjit_rt_bytes_append(b->out, b->text.data, b->text.size);
    put_dynamic(b, soname);
    put_sections(b, registry->size);
    return put_trailer(b);
}

opjit_status opjit_cg_shared(const codegen_library *request, rt_bytes *registry, rt_bytes *out, opjit_error *error)
{
    builder b = { .request = request, .error = error, .out = out };
    uint32_t entries = 0;
    rt_arena arena;
    for (uint32_t i = 0; i < request->member_count; i++)
        entries += request->members[i].version_count;
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_rt_bytes_init(&b.text, request->allocator);
    opjit_rt_bytes_init(&b.symbols, request->allocator);
    opjit_rt_bytes_init(&b.strings, request->allocator);
    b.records = ARENA_ARRAY(&arena, uint64_t, entries);
    for (uint32_t i = 0; b.records && i < entries; i++)
        b.records[i] = UINT64_MAX;
    const opjit_status status = b.records ? build(&b, registry) : opjit_rt_no_memory(error);
    opjit_rt_bytes_free(&b.text);
    opjit_rt_bytes_free(&b.symbols);
    opjit_rt_bytes_free(&b.strings);
    opjit_rt_arena_free(&arena);
    return status;
}
