/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the public functions that compile: options, key, cache; on a miss compile.c makes the kernel. */
#include <string.h>

#include "frontend/frontend.h"

/* What a miss needs. */
typedef struct job {
    opjit_context *context;
    fe_subject subject;
    const char *label; /* for events, with shape */
    const fe_tensor *shape;
    const fe_options *options;
    const rt_key *key;
    bool only_cached; /* fe_ask's */
} job;

/* A function of its own, so that its buffer is not in the stack frame of each hit. */
OUT_OF_LINE static void report_miss(job *j)
{
    rt_core *core = j->context->core;
    const opjit_event event = { .kind = OPJIT_EVENT_MISS,
                                .subject = OPJIT_EVENT_MEMORY_CACHE,
                                .level = j->options->level,
                                .compile_id = j->subject.compile_id,
                                .name = j->label,
                                .target = j->options->target->text };

    opjit_rt_event(core, &event, "miss,%s", opjit_fe_label(j->label, j->shape, j->options->target).text);
}

OUT_OF_LINE static void report_hit(const job *j, const opjit_kernel *kernel)
{
    opjit_event event = opjit_rt_kernel_event(kernel, OPJIT_EVENT_HIT, OPJIT_EVENT_MEMORY_CACHE);

    event.compile_id = 0; /* nothing is compiled here */
    event.bytes = opjit_rt_kernel_bytes(kernel);
    opjit_rt_event(j->context->core, &event, "hit,%s", opjit_fe_label(j->label, j->shape, j->options->target).text);
}

static opjit_status make(void *user, opjit_kernel **out_kernel, opjit_error *error)
{
    job *j = user;

    if (rt_wants_events(j->context->core)) {
        j->subject.compile_id = rt_next_compile(j->context->core);
        if ((j->options->flags & OPJIT_COMPILE_NO_CACHE) == 0)
            report_miss(j);
    }
    return opjit_fe_compile(j->context, &j->subject, j->options, j->key, out_kernel, error);
}

uint64_t opjit_fe_key_hash(uint64_t subject_hash, const uint8_t *options_key, size_t options_size)
{
    const uint64_t hash = opjit_rt_hash64(options_key, options_size);
    return subject_hash ^ (hash << 1 | hash >> 63); /* rotated: equal halves must not cancel out */
}

/* Both halves of the key stay with their owner.  subject_hash is that of the first, which an operator keeps.  room: the
 * subject, where the other half may be behind it; or NULL. */
static opjit_status find_or_make_hashed(job *j, const rt_bytes *subject, uint64_t subject_hash, rt_bytes *room,
                                        opjit_kernel **out, opjit_error *error)
{
    uint8_t options_key[FE_OPTIONS_KEY_SIZE];
    const size_t options_size = opjit_fe_options_key(j->options, options_key);
    const size_t subject_size = subject->size;
    if (room != NULL)
        opjit_rt_bytes_append(room, options_key, options_size);
    if (subject->failed)
        return opjit_rt_no_memory(error);
    const rt_key key = {
        .subject = subject->data,
        .subject_size = subject_size,
        .options = room != NULL ? subject->data + subject_size : options_key,
        .options_size = options_size,
        .hash = opjit_fe_key_hash(subject_hash, options_key, options_size),
    };
    bool hit = false;

    j->key = &key;
    if (j->only_cached) {
        *out = (j->options->flags & OPJIT_COMPILE_NO_CACHE) != 0 ? NULL : opjit_rt_cache_find(j->context->cache, &key);
        if (*out == NULL)
            return OPJIT_NOT_FOUND;
        if (rt_wants_events(j->context->core))
            report_hit(j, *out);
        return OPJIT_OK;
    }
    if ((j->options->flags & OPJIT_COMPILE_NO_CACHE) != 0)
        return make(j, out, error);
    TRY(opjit_rt_cache_get(j->context->cache, &key, make, j, out, &hit, error));
    if (hit && rt_wants_events(j->context->core))
        report_hit(j, *out);
    return OPJIT_OK;
}

/* With late fields the operator's key is that without their values: one kernel for all of them. */
static opjit_status find_or_make_late(job *j, opjit_kernel **out, opjit_error *error)
{
    uint8_t room[512];
    rt_bytes subject;
    opjit_status status;

    opjit_rt_bytes_init_in(&subject, &j->context->core->allocator, room, sizeof room);
    opjit_fe_operator_key(j->subject.op, j->options->late_mask, &subject);
    status = subject.failed ? opjit_rt_no_memory(error)
                            : find_or_make_hashed(j, &subject, opjit_rt_hash64(subject.data, subject.size), &subject,
                                                  out, error);
    opjit_rt_bytes_free(&subject);
    return status;
}

/* Adds what a caller inside of the library asks for to the options. */
static void ask_for(job *j, fe_options *options, const fe_ask *ask)
{
    if (ask == NULL)
        return;
    options->cancel = ask->cancel;
    options->image = ask->image;
    options->image_bytes = ask->image_bytes;
    j->only_cached = ask->only_cached;
}

opjit_status opjit_fe_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                       const fe_ask *ask, opjit_kernel **out_kernel, opjit_error *error)
{
    fe_options read;
    job j = { .context = context, .subject = { .op = op }, .options = &read };

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (context == NULL || op == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "op");
    j.label = opjit_fe_operator_label(op);
    j.shape = &op->outputs[0];
    TRY(opjit_fe_options_read(context, op, options, &read, error));
    ask_for(&j, &read, ask);
    return read.late_count != 0 ? find_or_make_late(&j, out_kernel, error)
                                : find_or_make_hashed(&j, &op->key, op->hash, NULL, out_kernel, error);
}

opjit_status opjit_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                    opjit_kernel **out_kernel, opjit_error *error)
{
    return opjit_fe_compile_operator(context, op, options, NULL, out_kernel, error);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* The late fields' names out of options, whose other fields opjit_fe_options_read has checked. */
opjit_status opjit_fe_graph_subject(const DML_GRAPH_DESC *desc, const opjit_compile_options *options, fe_subject *out,
                                    opjit_error *error)
{
    opjit_compile_options given;

    *out = (fe_subject){ .desc = desc };
    if (options == NULL)
        return OPJIT_OK;
    TRY(opjit_fe_options_copy(options, &given, error));
    out->late = given.late;
    out->late_count = given.late_count;
    return OPJIT_OK;
}

opjit_status opjit_fe_subject_hash(opjit_context *context, const fe_subject *subject, const fe_options *options,
                                   rt_hash *out, opjit_error *error)
{
    uint8_t options_key[FE_OPTIONS_KEY_SIZE];
    const size_t options_size = opjit_fe_options_key(options, options_key);
    fe_graph graph = { 0 };
    rt_bytes key;
    opjit_status status = OPJIT_OK;

    opjit_rt_bytes_init(&key, &context->core->allocator);
    if (subject->dynamic != NULL) {
        fe_dynamic own = *subject->dynamic;
        status = opjit_fe_dynamic_key(&own, &key, error);
    } else if (subject->op != NULL) {
        opjit_fe_operator_key(subject->op, options->late_mask, &key);
    } else {
        opjit_rt_arena_init(&graph.arena, &context->core->allocator);
        status = opjit_fe_graph_read(context, subject, false, &graph, error);
        if (status == OPJIT_OK)
            opjit_fe_graph_key(&graph, &key);
        opjit_fe_graph_free(&graph);
    }
    opjit_rt_bytes_append(&key, options_key, options_size);
    if (status == OPJIT_OK && key.failed)
        status = opjit_rt_no_memory(error);
    if (status == OPJIT_OK)
        *out = opjit_rt_hash(key.data, key.size);
    opjit_rt_bytes_free(&key);
    return status;
}

/* Where constant i is to be read: a small one where the base has it, a large one in a copy that kernels with equal ones
 * share, or where the caller lends it, if the code may read it there. */
static opjit_status place_constant(rt_core *core, const opjit_kernel *base, uint32_t i, const fe_buffer *constant,
                                   bool borrow, rt_constant **out_shared, void **out, opjit_error *error)
{
    uint32_t align;

    *out = opjit_rt_kernel_constant(base, i, &align);
    if (*out != NULL)
        return OPJIT_OK;
    *out = (void *)(uintptr_t)constant->data; /* kernels only read them */
    if (borrow && (uintptr_t)constant->data % align == 0)
        return OPJIT_OK;
    TRY(opjit_rt_constant_share(&core->constants, constant->data, (size_t)constant->bytes, out_shared, error));
    *out = (*out_shared)->data;
    return OPJIT_OK;
}

opjit_status opjit_fe_bind_constants(rt_core *core, fe_graph *graph, const fe_options *options, const rt_kept *kept,
                                     opjit_kernel **kernel, opjit_error *error)
{
    const bool borrow = (options->flags & OPJIT_COMPILE_BORROW_CONSTANTS) != 0;
    const uint32_t count = graph->constant_count;
    void **constants = ARENA_ARRAY(&graph->arena, void *, count);
    rt_constant **shared = opjit_rt_allocate(&core->allocator, count * sizeof *shared, _Alignof(rt_constant *));
    opjit_kernel *base = *kernel;
    opjit_status status = OPJIT_OK;

    *kernel = NULL;
    if (shared != NULL)
        memset(shared, 0, count * sizeof *shared);
    if (constants == NULL || shared == NULL)
        status = opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count && status == OPJIT_OK; i++)
        status = place_constant(core, base, i, &graph->constants[i], borrow, &shared[i], &constants[i], error);
    if (status == OPJIT_OK)
        status = opjit_rt_kernel_bind(base, constants, shared, options->executor, kept, kernel, error);
    if (status != OPJIT_OK)
        opjit_rt_constants_drop(core, shared, count);
    opjit_kernel_release(base);
    return status;
}

static opjit_status compile_graph(job *j, fe_graph *graph, rt_bytes *key, opjit_kernel **out, opjit_error *error)
{
    TRY(opjit_fe_graph_read(j->context, &j->subject, false, graph, error));
    j->label = graph->label;
    j->shape = opjit_fe_graph_shape(graph);
    const uint64_t hash = opjit_fe_graph_key(graph, key);
    if (key->failed)
        return opjit_rt_no_memory(error);
    TRY(find_or_make_hashed(j, key, hash, key, out, error));
    if (!opjit_fe_graph_binds(graph))
        return OPJIT_OK;
    return opjit_fe_bind_constants(j->context->core, graph, j->options, NULL, out, error);
}

opjit_status opjit_fe_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                    const opjit_compile_options *options, const fe_ask *ask, opjit_kernel **out_kernel,
                                    opjit_error *error)
{
    _Alignas(16) uint8_t room[16384], key_room[8192]; /* for some fifty nodes */
    fe_graph graph = { 0 };
    fe_options read;
    job j = { .context = context, .options = &read };
    rt_bytes key;
    opjit_status status;

    TRY(opjit_fe_options_read(context, NULL, options, &read, error));
    ask_for(&j, &read, ask);
    TRY(opjit_fe_graph_subject(desc, options, &j.subject, error));
    j.subject.is_named = ask != NULL && ask->is_named;
    opjit_rt_arena_init_in(&graph.arena, &context->core->allocator, room, sizeof room);
    opjit_rt_bytes_init_in(&key, &context->core->allocator, key_room, sizeof key_room);
    status = compile_graph(&j, &graph, &key, out_kernel, error);
    opjit_rt_bytes_free(&key);
    opjit_fe_graph_free(&graph);
    return status;
}

opjit_status opjit_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                 const opjit_compile_options *options, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (context == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "desc");
    return opjit_fe_compile_graph(context, desc, options, NULL, out_kernel, error);
}

/* --- dynamic dimensions ------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_compile_dynamic(const fe_dynamic *dynamic, const opjit_compile_options *options,
                                      const rt_bytes *key, opjit_kernel **out, opjit_error *error)
{
    opjit_context *context = dynamic->context;
    opjit_compile_options given;
    fe_options read;
    job j = { .context = context, .subject = { .dynamic = dynamic }, .options = &read, .label = "graph" };
    fe_graph graph = { 0 };
    opjit_status status;

    if (options != NULL)
        TRY(opjit_fe_options_copy(options, &given, error));
    TRY(opjit_fe_options_read(context, NULL, options, &read, error));
    TRY(opjit_fe_dynamic_check(&read, options == NULL ? NULL : &given, error));
    TRY(find_or_make_hashed(&j, key, opjit_rt_hash64(key->data, key->size), NULL, out, error));
    if (!dynamic->binds)
        return OPJIT_OK;
    status = opjit_fe_dynamic_read(dynamic, false, &graph, error);
    if (status == OPJIT_OK)
        status = opjit_fe_bind_constants(context->core, &graph, &read, NULL, out, error);
    opjit_fe_graph_free(&graph);
    if (status != OPJIT_OK) {
        opjit_kernel_release(*out);
        *out = NULL;
    }
    return status;
}
