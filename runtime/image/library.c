/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - kernels that were compiled ahead of time: finds them by name in a registry and makes them callable.  The
 * registry comes from a file or from the program, and nothing in it is believed: whatever it leads to must lie in the
 * memory that it came with (library_file.c).  What the code there does can't be checked. */
#include "runtime/image/library.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/call/kernel.h"

struct opjit_library {
    rt_core *core;
    const opjit_aot_registry *registry;
    rt_mapping mapping; /* base NULL: the registry is part of the program */
    rt_span spans[RT_LIBRARY_SPANS];
    uint32_t span_count;
    uint32_t kernels;       /* distinct names */
    atomic_uint references; /* the caller's, and one per kernel */
};

#define CORRUPT(...) opjit_rt_refuse(error, OPJIT_CORRUPT, "{library} " __VA_ARGS__)

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Whether [p, p + size) lies in one of the spans.  Addresses are plain numbers here: p may be anything. */
static bool inside(const opjit_library *l, uintptr_t p, uint64_t size, bool code)
{
    for (uint32_t i = 0; i < l->span_count; i++) {
        const rt_span *span = &l->spans[i];
        const uint64_t offset = p - (uintptr_t)span->begin;
        if ((span->code || !code) && offset <= span->size && size <= span->size - offset)
            return true;
    }
    return false;
}

/* --- registry ----------------------------------------------------------------------------------------------------- */

static const opjit_aot_entry *entries_of(const opjit_library *l)
{
    return (const opjit_aot_entry *)(l->registry + 1);
}

static const char *name_of(const opjit_library *l, uint32_t entry)
{
    return (const char *)l->registry + entries_of(l)[entry].name;
}

static opjit_status check_registry(opjit_library *l, opjit_error *error)
{
    const opjit_aot_registry *r = l->registry;
    uint64_t names;

    if ((uintptr_t)r % 8 != 0 || !inside(l, (uintptr_t)r, sizeof *r, false) ||
        memcmp(r->magic, OPJIT_AOT_MAGIC, sizeof r->magic) != 0)
        return CORRUPT("{registry}: there is none");
    if (r->abi != OPJIT_AOT_ABI)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{library} {registry.abi}: {%u}, must be %u", r->abi,
                               OPJIT_AOT_ABI);
    names = sizeof *r + (uint64_t)r->count * sizeof(opjit_aot_entry);
    if (r->reserved != 0 || names > r->size || !inside(l, (uintptr_t)r, r->size, false))
        return CORRUPT("{registry.count}: {%u}, whose names do not lie in its %u bytes", r->count, r->size);
    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t name = entries_of(l)[i].name;
        if (name < names || name >= r->size || memchr((const char *)r + name, '\0', r->size - name) == NULL)
            return CORRUPT("{entries[%u].name}: {%u}, must be a text in the registry", i, name);
        if (i > 0 && strcmp(name_of(l, i - 1), name_of(l, i)) > 0)
            return CORRUPT("{entries[%u].name}: {%s}, must not be before its neighbour", i, name_of(l, i));
        l->kernels += i == 0 || strcmp(name_of(l, i - 1), name_of(l, i)) != 0;
    }
    return OPJIT_OK;
}

opjit_status opjit_rt_library_make(rt_core *core, const void *registry, const rt_span *spans, uint32_t span_count,
                                   rt_mapping mapping, opjit_library **out, opjit_error *error)
{
    opjit_library *l = opjit_rt_allocate(&core->allocator, sizeof *l, alignof(opjit_library));
    opjit_status status;

    *out = NULL;
    if (l == NULL)
        return opjit_rt_no_memory(error);
    memset(l, 0, sizeof *l);
    l->registry = registry;
    l->span_count = span_count < RT_LIBRARY_SPANS ? span_count : RT_LIBRARY_SPANS;
    memcpy(l->spans, spans, l->span_count * sizeof *spans);
    status = check_registry(l, error);
    if (status != OPJIT_OK) {
        opjit_rt_release(&core->allocator, l, sizeof *l);
        return status;
    }
    l->mapping = mapping;
    l->core = opjit_rt_core_retain(core);
    atomic_init(&l->references, 1);
    *out = l;
    return OPJIT_OK;
}

static void release(void *user)
{
    opjit_library *l = user;
    rt_core *core;

    if (l == NULL || atomic_fetch_sub_explicit(&l->references, 1, memory_order_acq_rel) != 1)
        return;
    core = l->core;
    opjit_rt_unmap_code(&l->mapping);
    opjit_rt_release(&core->allocator, l, sizeof *l);
    opjit_rt_core_release(core);
}

void opjit_library_close(opjit_library *library)
{
    release(library);
}

uint32_t opjit_library_count(const opjit_library *library)
{
    return library == NULL ? 0 : library->kernels;
}

const char *opjit_library_name(const opjit_library *library, uint32_t index)
{
    if (library == NULL || index >= library->kernels)
        return NULL;
    if (library->kernels == library->registry->count) /* one version each */
        return name_of(library, index);
    for (uint32_t i = 0;; i++)
        if ((i == 0 || strcmp(name_of(library, i - 1), name_of(library, i)) != 0) && index-- == 0)
            return name_of(library, i);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* What a checked record leads to. */
typedef struct found {
    const opjit_aot_kernel *record;
    rt_placed placed;
} found;

/* Wraps around if the distance is damaged; the resulting address lies in no span. */
static uintptr_t from(const void *base, int32_t offset)
{
    return (uintptr_t)base + (uintptr_t)(intptr_t)offset;
}

static const int32_t *constant_offsets(const opjit_aot_kernel *record)
{
    return (const int32_t *)(record + 1);
}

static opjit_status check_constants(const opjit_library *l, const found *f, opjit_error *error)
{
    const opjit_kernel_meta *meta = f->placed.meta;
    const opjit_buffer_info *infos = (const opjit_buffer_info *)((const char *)meta + meta->buffer_info);

    if (f->record->constants != meta->constants)
        return CORRUPT("{kernel.constants}: {%u}, must be %u as in its metadata", f->record->constants,
                       meta->constants);
    for (uint32_t i = 0; i < meta->constants; i++) {
        const opjit_buffer_info *info = &infos[meta->inputs + meta->outputs + i];
        const uintptr_t at = from(f->record, constant_offsets(f->record)[i]);
        if (!inside(l, at, info->bytes, false) || at % info->align != 0)
            return CORRUPT("{constants[%u]}: lies outside or is not aligned", i);
    }
    return OPJIT_OK;
}

/* Checks everything about one version. */
static opjit_status check_kernel(const opjit_library *l, const opjit_aot_entry *entry, found *out, opjit_error *error)
{
    const uintptr_t at = from(entry, entry->kernel);
    const opjit_aot_kernel *record = (const opjit_aot_kernel *)at;
    uintptr_t meta, code;

    if (at % alignof(opjit_aot_kernel) != 0 || !inside(l, at, sizeof *record, false))
        return CORRUPT("{entries.kernel}: lies outside");
    if (record->abi != OPJIT_AOT_ABI)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{library} {kernel.abi}: {%u}, must be %u", record->abi,
                               OPJIT_AOT_ABI);
    if (record->size != sizeof *record + (uint64_t)record->constants * sizeof(int32_t) ||
        !inside(l, at, record->size, false))
        return CORRUPT("{kernel.size}: {%u}, no size of a record with %u constants", record->size, record->constants);
    meta = from(record, record->meta);
    code = from(record, record->code);
    if (!inside(l, meta, record->meta_size, false) || !inside(l, code, record->code_size, true) ||
        !inside(l, from(record, record->packed), 1, true) || !inside(l, from(record, record->typed), 1, true) ||
        (record->runs_here != 0 && !inside(l, from(record, record->runs_here), 1, true)))
        return CORRUPT("{kernel}: its metadata or code lies outside");
    out->record = record;
    out->placed = (rt_placed){ .meta = (const opjit_kernel_meta *)meta,
                               .code = (const uint8_t *)code,
                               .code_size = record->code_size };
    TRY(opjit_rt_meta_check((const void *)meta, record->meta_size, record->code_size, error));
    return check_constants(l, out, error);
}

/* Finds the first version of that name that runs here. */
static opjit_status find(const opjit_library *l, const char *name, found *out, opjit_error *error)
{
    const uint32_t count = l->registry->count;
    uint32_t lo = 0, hi = count;
    opjit_status status = OPJIT_NOT_FOUND;

    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (strcmp(name_of(l, middle), name) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < count && strcmp(name_of(l, lo), name) == 0; lo++) {
        TRY(check_kernel(l, &entries_of(l)[lo], out, error));
        status = opjit_rt_kernel_runs_here(out->placed.meta, error);
        if (status != OPJIT_UNSUPPORTED)
            return status;
    }
    if (status == OPJIT_NOT_FOUND)
        return opjit_rt_refuse(error, OPJIT_NOT_FOUND, "{library}: there is no {!name}kernel \"{%.100s}\"", name);
    opjit_rt_error_prefix(error, "library: no version of %.60s runs here", name);
    return opjit_rt_place(error, status, "library", "name", -1);
}

static opjit_status make_kernel(opjit_library *l, found *f, void **constants, opjit_kernel **out, opjit_error *error)
{
    const rt_kernel_hooks hooks = { .user = l, .destroy = release };

    for (uint32_t i = 0; i < f->record->constants; i++)
        constants[i] = (void *)from(f->record, constant_offsets(f->record)[i]); /* kernels only read them */
    f->placed.named = l->mapping.base == NULL; /* otherwise no linker has told debuggers about the code */
    TRY(opjit_rt_kernel_place(l->core, &f->placed, constants, &hooks, out, error));
    atomic_fetch_add_explicit(&l->references, 1, memory_order_relaxed);
    return OPJIT_OK;
}

opjit_status opjit_library_find(opjit_library *library, const char *name, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_status status;
    rt_arena arena;
    void **constants;
    found f;

    opjit_rt_error_clear(error);
    if (out_kernel != NULL)
        *out_kernel = NULL;
    if (library == NULL || name == NULL || out_kernel == NULL)
        return opjit_rt_refuse_null(error, library == NULL ? "library" : name == NULL ? "name" : "out_kernel");
    TRY(find(library, name, &f, error));
    opjit_rt_arena_init(&arena, &library->core->allocator);
    constants = ARENA_ARRAY(&arena, void *, f.record->constants);
    status = constants == NULL ? opjit_rt_no_memory(error) : make_kernel(library, &f, constants, out_kernel, error);
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_library_entry(const opjit_library *library, const char *name, opjit_entry entry,
                                 void (**out_function)(void), opjit_error *error)
{
    uintptr_t at;
    found f;

    opjit_rt_error_clear(error);
    if (out_function != NULL)
        *out_function = NULL;
    if (library == NULL || name == NULL || out_function == NULL)
        return opjit_rt_refuse_null(error, library == NULL ? "library" : name == NULL ? "name" : "out_function");
    if (entry != OPJIT_ENTRY_TYPED && entry != OPJIT_ENTRY_PACKED)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{entry}: {%u}, must be an opjit_entry (1 or 2)", (unsigned)entry);
    TRY(find(library, name, &f, error));
    at = from(f.record, entry == OPJIT_ENTRY_TYPED ? f.record->typed : f.record->packed);
    memcpy(out_function, &at, sizeof at); /* C has no cast from object to function pointers */
    return OPJIT_OK;
}
