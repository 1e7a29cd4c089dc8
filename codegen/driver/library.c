/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - combines objects of kernels: makes one registry (name to kernel) for all of them, and a static or a
 * shared library around it.  The registry's bytes are the same in both, except for the distances to the kernels, which
 * the program's linker fills in for a static library and shared_library.c for a shared one. */
#include "codegen/driver/driver.h"
#include "codegen/object/library.h"

#include <stdio.h>

enum { NAME_SIZE = 288 };

static uint32_t count_entries(const codegen_library *request)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < request->member_count; i++)
        count += request->members[i].version_count;
    return count;
}

/* Writes everything except the distances. */
static opjit_status put_registry(const codegen_library *request, uint32_t count, rt_bytes *out, opjit_error *error)
{
    opjit_aot_registry registry = { .abi = OPJIT_AOT_ABI, .count = count };
    uint64_t name = sizeof(registry) + count * sizeof(opjit_aot_entry);
    memcpy(registry.magic, OPJIT_AOT_MAGIC, sizeof registry.magic); /* without the terminating NUL */
    opjit_rt_bytes_append(out, &registry, sizeof(registry));
    for (uint32_t i = 0; i < request->member_count; i++) {
        for (uint32_t k = 0; k < request->members[i].version_count; k++) {
            const opjit_aot_entry entry = { .name = (uint32_t)name };
            opjit_rt_bytes_append(out, &entry, sizeof(entry));
        }
        name += strlen(request->members[i].name) + 1;
    }
    for (uint32_t i = 0; i < request->member_count; i++)
        opjit_rt_bytes_append(out, request->members[i].name, strlen(request->members[i].name) + 1);
    opjit_rt_bytes_align(out, 8);
    if (out->failed)
        return opjit_rt_no_memory(error);
    if (out->size > INT32_MAX)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!codegen}{!bytes}a registry of more than 2 GiB");
    registry.size = (uint32_t)out->size;
    memcpy(out->data, &registry, sizeof(registry));
    return OPJIT_OK;
}

/* The names of the records' symbols by entry; NULL: no memory. */
static const char **record_names(const codegen_library *request, uint32_t count, rt_arena *arena)
{
    const char **names = ARENA_ARRAY(arena, const char *, count);
    uint32_t at = 0;
    for (uint32_t i = 0; names && i < request->member_count; i++)
        for (uint32_t k = 0; k < request->members[i].version_count; k++) {
            char name[NAME_SIZE];
            const int size = snprintf(name, sizeof(name), "%s_kernel", request->members[i].versions[k]);
            names[at] = opjit_rt_arena_string(arena, name, (size_t)size);
            if (!names[at++])
                return NULL;
        }
    return names;
}

static opjit_status make_archive(const codegen_library *request, const rt_bytes *registry, uint32_t count,
                                 rt_arena *arena, rt_bytes *out, opjit_error *error)
{
    const char **names = record_names(request, count, arena);
    cg_archived *members = ARENA_ARRAY(arena, cg_archived, (size_t)request->member_count + 1);
    char registry_name[NAME_SIZE];
    rt_bytes object;
    if (!names || !members)
        return opjit_rt_no_memory(error);
    opjit_rt_bytes_init(&object, request->allocator);
    opjit_status status = opjit_cg_registry_object(request, registry, names, count, &object, error);
    if (status == OPJIT_OK) {
        snprintf(registry_name, sizeof(registry_name), "%s_registry", request->name);
        for (uint32_t i = 0; i < request->member_count; i++)
            members[i] =
                (cg_archived){ request->members[i].name, request->members[i].object, request->members[i].bytes };
        members[request->member_count] = (cg_archived){ registry_name, object.data, object.size };
        status = opjit_cg_archive(members, request->member_count + 1, out, error);
    }
    opjit_rt_bytes_free(&object);
    return status;
}

opjit_status opjit_cg_library(const codegen_library *request, rt_bytes *out, opjit_error *error)
{
    const uint32_t count = count_entries(request);
    rt_bytes registry;
    rt_arena arena;
    opjit_rt_bytes_init(&registry, request->allocator);
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_status status = put_registry(request, count, &registry, error);
    if (status == OPJIT_OK && request->kind == CODEGEN_ARCHIVE)
        status = make_archive(request, &registry, count, &arena, out, error);
    else if (status == OPJIT_OK)
        status = opjit_cg_shared(request, &registry, out, error);
    opjit_rt_arena_free(&arena);
    opjit_rt_bytes_free(&registry);
    return status;
}
