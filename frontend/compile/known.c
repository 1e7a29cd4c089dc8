/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - kernels of graphs that nobody has made in this process: their key and their constants are known from the
 * last time.  The caches have such a kernel or they don't; and the disk cache what it made of its constants. */
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/cache/disk.h"

enum { KEPT_LEAST = 32 << 10 }; /* bytes: fewer are made sooner than found */

opjit_status opjit_fe_know(opjit_context *context, opjit_graph *graph, rt_arena *arena, fe_known *out,
                           opjit_error *error)
{
    fe_graph read = { 0 };
    fe_subject subject = { 0 };
    fe_ask ask;
    rt_bytes key;
    opjit_status status;

    *out = (fe_known){ .constant_count = 0 };
    TRY(opjit_fe_built(graph, &subject.desc, &ask, error));
    subject.is_named = ask.is_named;
    opjit_rt_arena_init(&read.arena, &context->core->allocator);
    opjit_rt_bytes_init(&key, &context->core->allocator);
    status = opjit_fe_graph_read(context, &subject, false, &read, error);
    if (status == OPJIT_OK) {
        const fe_tensor *const shape = opjit_fe_graph_shape(&read);
        if (shape != NULL)
            out->shape = *shape;
        out->key_hash = opjit_fe_graph_key(&read, &key);
        out->key_size = key.size;
        out->key = key.failed ? NULL : opjit_rt_arena_copy(arena, key.data, key.size, 1);
        out->constant_count = read.constant_count;
        out->constants = opjit_rt_arena_allocate(arena, (size_t)read.constant_count + 1, sizeof *out->constants);
        if (out->key == NULL || out->constants == NULL)
            status = opjit_rt_no_memory(error);
    }
    for (uint32_t i = 0; status == OPJIT_OK && i < read.constant_count; i++) {
        out->constants[i].data = read.constants[i].data;
        out->constants[i].bytes = read.constants[i].bytes;
    }
    opjit_rt_bytes_free(&key);
    opjit_fe_graph_free(&read);
    return status;
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

/* A word, and all that decides the bytes. */
typedef struct kept_key {
    char name[8];
    rt_hash identity, kernel;
    uint64_t bytes, layout;
} kept_key;

/* Names what this kernel keeps, for which *kept has room; false: too little to be stored. */
static bool name_kept(rt_hash identity, const opjit_kernel *kernel, rt_hash kernel_key, rt_kept *kept, kept_key *name,
                      rt_disk_key *out)
{
    opjit_rt_kernel_keeps(kernel, kept);
    *name = (kept_key){ "weights", identity, kernel_key, kept->bytes, kept->layout };
    *out = (rt_disk_key){ name, sizeof *name, opjit_rt_hash(name, sizeof *name), RT_DISK_MODEL };
    return kept->bytes >= KEPT_LEAST;
}

void opjit_fe_store_kept(rt_core *core, rt_hash identity, const opjit_kernel *kernel)
{
    const opjit_event event = opjit_rt_kernel_event(kernel, OPJIT_EVENT_LOAD, OPJIT_EVENT_DISK_CACHE);
    const void *const data = opjit_rt_kernel_kept(kernel);
    rt_disk_key key;
    kept_key name;
    rt_kept kept;

    if (core->disk == NULL || data == NULL ||
        !name_kept(identity, kernel, (rt_hash){ event.key_lo, event.key_hi }, &kept, &name, &key))
        return;
    if (kept.bytes <= opjit_rt_disk_capacity(core->disk) / 4) /* one model's must not take the place of all else */
        (void)opjit_rt_disk_store(core->disk, &key, data, (size_t)kept.bytes);
}

/* What the kernel keeps, mapped, if it is there: else data is NULL. */
static void find_kept(rt_core *core, rt_hash identity, const opjit_kernel *kernel, rt_hash kernel_key, rt_kept *out)
{
    rt_disk_map map;
    rt_disk_key key;
    kept_key name;

    if (!name_kept(identity, kernel, kernel_key, out, &name, &key) ||
        opjit_rt_disk_map(core->disk, &key, &map) != RT_DISK_FOUND)
        return;
    if (map.content_size == out->bytes) {
        out->data = map.content;
        out->map = map.base;
        out->map_bytes = map.size;
    } else {
        opjit_rt_disk_unmap(&map);
    }
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* rt_kernel_hooks.optimize: makes the graph first. */
static opjit_status optimize(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *error)
{
    const fe_unit *const unit = user;
    const fe_known *const known = unit->known;
    opjit_graph *graph = NULL;
    fe_unit *full = NULL;
    void *owner = NULL;
    opjit_status status = known->make(known->user, &graph, &owner, error);

    if (status == OPJIT_OK) {
        fe_subject subject = { .compile_id = unit->compile_id };
        fe_ask ask;
        status = opjit_fe_built(graph, &subject.desc, &ask, error);
        subject.is_named = ask.is_named;
        if (status == OPJIT_OK)
            status = opjit_fe_unit_new(opjit_fe_built_context(graph), &subject, &unit->options, unit->key, &full,
                                       error);
    }
    if (status == OPJIT_OK) {
        full->subject_key = unit->subject_key;
        full->subject_key_size = unit->subject_key_size;
        status = opjit_fe_unit_optimize(full, cancel, image, error);
        opjit_fe_unit_destroy(full);
    }
    known->release(owner);
    return status;
}

static fe_unit *new_unit(rt_core *core, const fe_known *known, const fe_options *options, rt_hash key)
{
    fe_unit *const unit = opjit_rt_allocate(&core->allocator, sizeof *unit, _Alignof(fe_unit));

    if (unit == NULL)
        return NULL;
    memset(unit, 0, offsetof(fe_unit, room));
    unit->core = opjit_rt_core_retain(core);
    opjit_rt_arena_init_in(&unit->graph.arena, &core->allocator, unit->room, sizeof unit->room);
    unit->options = *options;
    unit->options.own = *options->target;
    unit->options.target = &unit->options.own;
    unit->options.executor = NULL; /* which the kernel outlives */
    unit->key = key;
    unit->subject_key = known->key;
    unit->subject_key_size = known->key_size;
    unit->known = known;
    unit->graph.label = "graph";
    unit->graph.constants = ARENA_ARRAY(&unit->graph.arena, fe_buffer, known->constant_count);
    if (unit->graph.constants == NULL) {
        opjit_fe_unit_destroy(unit);
        return NULL;
    }
    unit->graph.constant_count = known->constant_count;
    for (uint32_t i = 0; i < known->constant_count; i++) /* the others are bound to it */
        if (known->constants[i].bytes <= FE_FOLDED_BYTES)
            unit->graph.constants[i].data = known->constants[i].data;
    return unit;
}

static void report_hit(rt_core *core, const fe_known *known, const fe_options *options, const opjit_kernel *kernel)
{
    const opjit_event event = opjit_rt_kernel_event(kernel, OPJIT_EVENT_HIT, OPJIT_EVENT_DISK_CACHE);

    opjit_rt_event(core, &event, "hit,%s,disk",
                   opjit_fe_label("graph", known->shape.present ? &known->shape : NULL, options->target).text);
}

/* The kernel without large constants, out of the disk cache: NULL where it isn't there. */
static opjit_status load(opjit_context *context, const fe_known *known, const fe_options *options,
                         const rt_disk_key *key, opjit_kernel **out, opjit_error *error)
{
    rt_core *const core = context->core;
    rt_kernel_hooks hooks = { .destroy = opjit_fe_unit_destroy, .from_disk = true, .zeroed = true };
    const rt_kernel_times times = { 0 };
    rt_bytes image;

    hooks.optimize = options->level == OPJIT_LEVEL_QUICK ? optimize : NULL;
    opjit_rt_bytes_init(&image, &core->allocator);
    const rt_disk_result found = opjit_rt_disk_load(core->disk, key, &image);
    if (found == RT_DISK_REJECTED)
        opjit_rt_cache_count(context->cache, RT_CACHE_DISK_REJECT);
    if (found != RT_DISK_FOUND)
        return OPJIT_OK;
    fe_unit *const unit = new_unit(core, known, options, key->hash);
    hooks.user = unit;
    opjit_status status = unit == NULL ? opjit_rt_no_memory(error)
                                       : opjit_fe_unit_kernel(unit, &image, hooks, &times, out, error);
    opjit_rt_bytes_free(&image);
    if (status != OPJIT_OK && unit != NULL)
        opjit_fe_unit_destroy(unit);
    if (status != OPJIT_OK)
        return status;
    opjit_rt_cache_count(context->cache, RT_CACHE_DISK_HIT_APART);
    if (rt_wants_events(core))
        report_hit(core, known, options, *out);
    return OPJIT_OK;
}

/* Gives the kernel its constants, and what it made of them the last time. */
static opjit_status bind(rt_core *core, const fe_known *known, const fe_options *options, rt_hash key,
                         opjit_kernel **kernel, opjit_error *error)
{
    fe_graph graph = { .constant_count = known->constant_count };
    opjit_status status = OPJIT_OK;
    bool binds = false;
    rt_kept kept;

    opjit_rt_arena_init(&graph.arena, &core->allocator);
    graph.constants = ARENA_ARRAY(&graph.arena, fe_buffer, known->constant_count);
    if (graph.constants == NULL)
        status = opjit_rt_no_memory(error);
    for (uint32_t i = 0; status == OPJIT_OK && i < known->constant_count; i++) {
        graph.constants[i].data = known->constants[i].data;
        graph.constants[i].bytes = known->constants[i].bytes;
        binds = binds || known->constants[i].bytes > FE_FOLDED_BYTES;
    }
    if (binds) {
        find_kept(core, known->identity, *kernel, key, &kept);
        status = opjit_fe_bind_constants(core, &graph, options, &kept, kernel, error);
        const bool taken = status == OPJIT_OK && kept.data != NULL && opjit_rt_kernel_kept(*kernel) == kept.data;
        if (kept.data != NULL && !taken)
            opjit_rt_disk_unmap(&(rt_disk_map){ kept.map, kept.map_bytes, NULL, 0 });
        if (status == OPJIT_OK && !taken)
            opjit_fe_store_kept(core, known->identity, *kernel);
    } else if (status != OPJIT_OK) {
        opjit_kernel_release(*kernel);
        *kernel = NULL;
    }
    opjit_rt_arena_free(&graph.arena);
    return status;
}

opjit_status opjit_fe_compile_known(opjit_context *context, const fe_known *known,
                                    const opjit_compile_options *options, opjit_kernel **out, opjit_error *error)
{
    uint8_t options_key[FE_OPTIONS_KEY_SIZE];
    rt_core *const core = context->core;
    opjit_compile_options given = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_status status = OPJIT_OK;
    fe_options read;
    rt_bytes whole;

    *out = NULL;
    if (options != NULL)
        TRY(opjit_fe_options_copy(options, &given, error));
    TRY(opjit_fe_options_read(context, NULL, options, &read, error));
    if (core->disk == NULL || given.late_count != 0 || rt_target_team(read.target) > 0 || read.name != NULL ||
        (read.flags & (OPJIT_COMPILE_NO_CACHE | OPJIT_COMPILE_INTERPRET)) != 0 ||
        opjit_rt_core_runs(core, read.target, NULL) != OPJIT_OK)
        return OPJIT_NOT_FOUND;
    const size_t options_size = opjit_fe_options_key(&read, options_key);
    opjit_rt_bytes_init(&whole, &core->allocator);
    opjit_rt_bytes_append(&whole, known->key, known->key_size);
    opjit_rt_bytes_append(&whole, options_key, options_size);
    if (whole.failed) {
        opjit_rt_bytes_free(&whole);
        return opjit_rt_no_memory(error);
    }
    const rt_hash hash = opjit_rt_hash(whole.data, whole.size);
    const rt_key key = { .subject = whole.data,
                         .subject_size = known->key_size,
                         .options = whole.data + known->key_size,
                         .options_size = options_size,
                         .hash = opjit_fe_key_hash(known->key_hash, options_key, options_size) };
    const rt_disk_key disk_key = { whole.data, whole.size, hash, RT_DISK_KERNEL };
    *out = opjit_rt_cache_find(context->cache, &key);
    if (*out == NULL)
        status = load(context, known, &read, &disk_key, out, error);
    opjit_rt_bytes_free(&whole);
    if (status == OPJIT_OK && *out == NULL)
        return OPJIT_NOT_FOUND;
    return status == OPJIT_OK ? bind(core, known, &read, hash, out, error) : status;
}
