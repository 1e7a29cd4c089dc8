/* SPDX-License-Identifier: Apache-2.0 */
/* shared_library.c - makes a shared library of objects (elf.h), with a registry of their kernels before the code.  Code
 * and constants are as in an image.  The library ends with a checksum of everything, which opjit's own loader uses
 * instead of the ELF headers. */
#include "codegen/object/library.h"
#include "codegen/object/link.h"
#include "codegen/object/elf.h"

#include <stdio.h>
#include <string.h>

typedef struct builder {
    const codegen_library *request;
    opjit_error *error;
    rt_bytes *out;
    cg_elf file;
    uint64_t *records; /* by registry entry: the offset of its opjit_aot_kernel in text; UINT64_MAX: not seen yet */
    /* for the current member: */
    const codegen_member *member;
    uint64_t base;
    uint32_t first_entry;
} builder;

/* Records are for the registry; everything else is exported. */
static opjit_status take_symbol(void *user, const cg_symbol *symbol)
{
    builder *b = user;
    if (!symbol->hidden) {
        opjit_cg_elf_symbol(&b->file, symbol->name, symbol->type, CG_ELF_TEXT, b->base + symbol->value, symbol->size);
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
    rt_bytes code, *text = &b->file.text;
    opjit_rt_bytes_init(&code, b->request->allocator);
    /* AArch64's code has the upper bits of addresses by pages. */
    opjit_rt_bytes_align(text, b->request->target->arch == RT_ARCH_X86_64 ? CG_ELF_PIECE_ALIGN : 4096);
    opjit_status status = opjit_cg_link(member->object, member->bytes, NULL, &code, b->error);
    if (status == OPJIT_OK) {
        memcpy(&b->file.like, member->object, sizeof(b->file.like)); /* linking has checked that there is one */
        b->base = text->size;
        b->member = member;
        opjit_rt_bytes_append(text, code.data, code.size);
        status = opjit_cg_link_symbols(member->object, member->bytes, take_symbol, b, b->error);
        b->first_entry += member->version_count;
    }
    opjit_rt_bytes_free(&code);
    return status;
}

static opjit_status fill_registry(const builder *b, rt_bytes *registry)
{
    for (uint32_t i = 0; i < b->first_entry; i++) {
        const uint64_t entry = sizeof(opjit_aot_registry) + i * sizeof(opjit_aot_entry);
        const int64_t distance = (int64_t)(b->file.text_at + b->records[i]) - (int64_t)(b->file.head_at + entry);
        const int32_t value = (int32_t)distance;
        if (b->records[i] == UINT64_MAX)
            return opjit_rt_error_set(b->error, OPJIT_INTERNAL, "the library's kernel %u has no record", i);
        memcpy(registry->data + entry + offsetof(opjit_aot_entry, kernel), &value, sizeof(value));
    }
    return OPJIT_OK;
}

static opjit_status put_trailer(builder *b)
{
    opjit_aot_trailer trailer = { .abi = OPJIT_AOT_ABI,
                                  .machine = b->file.like.e_machine,
                                  .size = b->out->size + sizeof(trailer),
                                  .registry = b->file.head_at };
    memcpy(trailer.magic, OPJIT_AOT_TRAILER_MAGIC, sizeof trailer.magic); /* without the terminating NUL */
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
    for (uint32_t i = 0; i < b->request->member_count; i++)
        TRY(add_member(b, &b->request->members[i]));
    snprintf(name, sizeof(name), "%s_registry", b->request->name);
    opjit_cg_elf_symbol(&b->file, name, STT_OBJECT, CG_ELF_HEAD, 0, registry->size);
    snprintf(name, sizeof(name), "lib%s.so", b->request->name);
    b->file.soname = opjit_cg_elf_string(&b->file, name);
    TRY(opjit_cg_elf_place(&b->file, registry->size, b->error));
    TRY(fill_registry(b, registry));
    TRY(opjit_cg_elf_write(&b->file, registry->data, b->out, b->error));
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
    opjit_cg_elf_init(&b.file, request->allocator);
    b.records = ARENA_ARRAY(&arena, uint64_t, entries);
    for (uint32_t i = 0; b.records && i < entries; i++)
        b.records[i] = UINT64_MAX;
    const opjit_status status = b.records ? build(&b, registry) : opjit_rt_no_memory(error);
    opjit_cg_elf_free(&b.file);
    opjit_rt_arena_free(&arena);
    return status;
}
