/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic.c - one kernel for many sizes: its key, and its program, which ir/general makes of the graph as it is
 * described for some of them. */
#include <string.h>

#include "frontend/compile/dynamic_made.h"
#include "frontend/compile/dynamic_pool.h"

#include <opjit/dynamic.h>

#include "ir/general/general.h"

enum { LOW_TILE_RANGES = 8 }; /* more than these would take too long to compile for what lower tiles save */
_Static_assert(IR_RANGES <= FE_VARIANTS_MAX, "a range is a variant");

static opjit_status describe(const fe_dynamic *dynamic, const uint64_t *dims, fe_subject *out, opjit_error *error)
{
    opjit_graph *graph = NULL;
    opjit_error unasked = { 0 };
    fe_ask ask;

    error = error == NULL ? &unasked : error; /* hosts may rely on one */
    if (dynamic->build == NULL) {
        TRY(dynamic->describe(dynamic->user, dims, &out->desc, error));
        return out->desc != NULL
                   ? OPJIT_OK
                   : opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{describe}: its description is {NULL}");
    }
    TRY(dynamic->build(dynamic->user, dims, &graph, error));
    if (graph == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{build}: its graph is {NULL}");
    TRY(opjit_fe_built(graph, &out->desc, &ask, error));
    out->is_named = ask.is_named;
    return OPJIT_OK;
}

/* Describes the graph for these sizes, and reads it.  *out is to be freed in any case. */
static opjit_status read_for(const fe_dynamic *dynamic, const int64_t *sizes, bool keep,
                             const opjit_allocator *allocator, fe_graph *out, opjit_error *error)
{
    fe_subject subject = { .is_named = false };
    uint64_t dims[OPJIT_MAX_DIMS] = { 0 };

    for (uint32_t d = 0; d < dynamic->dim_count; d++)
        dims[d] = (uint64_t)sizes[d];
    opjit_rt_arena_init(&out->arena, allocator);
    TRY(describe(dynamic, dims, &subject, error));
    return opjit_fe_graph_read(dynamic->context, &subject, keep, out, error);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* What the runtime asks of a binding, for the sizes of a sample. */
typedef struct sampled {
    struct sampled *next;
    int64_t dims[OPJIT_MAX_DIMS];
    int64_t *numbers; /* OPJIT_BUFFER_FORMS for each input and output */
} sampled;

typedef struct sampler {
    const fe_dynamic *dynamic;
    const fe_graph *graph; /* for the largest sizes */
    const fe_options *options;
    const char *name;
    const opjit_allocator *allocator;
    fe_pool pool; /* of all that is made on the way */
    ir_pass_env env;
    fe_sizes sizes;
    fe_made *values, *loops; /* definitions, of which there is one for each size, and loops */
    ir_space space;
    rt_arena arena;
    sampled *first, **next; /* all that were described; where the pointer to one more goes */
    uint32_t count, buffers;
} sampler;

static void note_buffer(const fe_tensor *t, int64_t *out)
{
    out[0] = (int64_t)opjit_rt_dtype_bytes(t->dtype, t->span); /* without what rounds it up */
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
        out[1 + d] = (int64_t)t->sizes[d];
}

static opjit_status note(sampler *s, const int64_t *values, const fe_graph *graph, opjit_error *error)
{
    sampled *const own = ARENA_NEW(&s->arena, sampled);
    int64_t *const numbers = ARENA_ARRAY(&s->arena, int64_t, s->buffers * OPJIT_BUFFER_FORMS);

    if (own == NULL || numbers == NULL)
        return opjit_rt_no_memory(error);
    own->numbers = numbers;
    memcpy(own->dims, values, sizeof own->dims);
    for (uint32_t i = 0; i < s->buffers; i++)
        note_buffer(i < graph->input_count ? &graph->inputs[i].tensor : &graph->outputs[i - graph->input_count].tensor,
                    numbers + (size_t)i * OPJIT_BUFFER_FORMS);
    *s->next = own;
    s->next = &own->next;
    s->count++;
    return OPJIT_OK;
}

static bool has_zero(const int64_t *values, uint32_t count)
{
    uint32_t d = 0;
    while (d < count && values[d] != 0)
        d++;
    return d < count;
}

static opjit_status lower_sample(sampler *s, const int64_t *values, bool is_sample, ir_func *out, opjit_error *error)
{
    fe_graph graph = { 0 };
    opjit_status status = read_for(s->dynamic, values, true, &s->pool.own, &graph, error);

    if (status == OPJIT_OK)
        status = opjit_fe_sample_read(s->graph, &graph, has_zero(values, s->dynamic->dim_count), error);
    if (status == OPJIT_OK)
        status = opjit_fe_graph_lower(&graph, s->options, s->name, &s->pool.own, out, error);
    if (status == OPJIT_OK) {
        for (uint32_t t = 1; t < out->tensor_count && graph.node_count != s->graph->node_count; t++)
            out->tensors[t].origin = 0; /* nodes are told by their numbers, which another number of them has moved */
        if (s->count != 0 || is_sample) /* forms are fitted by the first ones: not by sizes that differ in one */
            status = note(s, values, &graph, error);
        if (status != OPJIT_OK)
            opjit_ir_free(out);
    }
    opjit_fe_graph_free(&graph);
    return status;
}

/* The graph's definition for these values.  is_sample: its loops are made, too. */
static opjit_status find_value(sampler *s, const fe_made_for *key, bool is_sample, ir_func *out, opjit_error *error)
{
    bool found;

    TRY(opjit_fe_made_find(s->values, key, out, &found, error));
    if (found)
        return OPJIT_OK;
    TRY(lower_sample(s, key->values, is_sample, out, error));
    const opjit_status status = s->count != 0 ? opjit_fe_made_keep(s->values, key, out, error) : OPJIT_OK;
    if (status != OPJIT_OK) /* one that was not noted is not kept */
        opjit_ir_free(out);
    return status;
}

/* Its loops, which depend on what is known of sizes, too. */
static opjit_status find_loops(sampler *s, const ir_dim *dims, fe_made_for *key, const ir_func *value, ir_func *out,
                               opjit_error *error)
{
    const double growth = opjit_fe_sizes_growth(dims, s->dynamic->dim_count, key->values);
    bool found;

    TRY(opjit_fe_sizes_list(&s->sizes, value, growth, &s->env.varying, error));
    key->loops = opjit_ir_hash(opjit_fe_sizes_hash(&s->env.varying), s->env.low_tiles + 2u * s->space.count) | 1;
    TRY(opjit_fe_made_find(s->loops, key, out, &found, error));
    if (found)
        return OPJIT_OK;
    TRY(opjit_fe_make_loops(&s->env, value, s->space.count != 0, out, error));
    const opjit_status status = opjit_fe_made_keep(s->loops, key, out, error);
    if (status != OPJIT_OK)
        opjit_ir_free(out);
    return status;
}

static opjit_status make_sample(void *user, const ir_dim *dims, const int64_t *values, ir_func *out_value, ir_func *out,
                                opjit_error *error)
{
    sampler *s = user;
    fe_made_for key = { 0, { 0 } };

    if (fe_is_cancelled(s->options))
        return opjit_rt_cancelled(error);
    memcpy(key.values, values, s->dynamic->dim_count * sizeof *values);
    TRY(find_value(s, &key, out != NULL, out_value, error));
    const opjit_status status = out != NULL ? find_loops(s, dims, &key, out_value, out, error)
                                            : opjit_fe_sizes_note(&s->sizes, out_value, error);
    if (status != OPJIT_OK)
        opjit_ir_free(out_value);
    return status;
}

/* --- forms -------------------------------------------------------------------------------------------------------- */

static opjit_status refuse_binding(const fe_graph *graph, uint32_t form, opjit_error *error)
{
    const uint32_t i = form / OPJIT_BUFFER_FORMS;
    const fe_buffer *buffer = i < graph->input_count ? &graph->inputs[i] : &graph->outputs[i - graph->input_count];

    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                           "{graph}: {!dims}the sizes of \"%.60s\" follow from no dimension in a known way; give one "
                           "of the sizes",
                           buffer->name);
}

/* An input's sizes are those that a node reads it with: others, such as its transpose's, where a size of 0 or 1 leaves
 * that node out.  Its bytes are the same. */
static bool is_as_read(const sampler *s, uint32_t form)
{
    return form / OPJIT_BUFFER_FORMS < s->graph->input_count && form % OPJIT_BUFFER_FORMS != 0;
}

/* By the first samples; for the others they have to be right. */
static opjit_status fit_buffers(sampler *s, opjit_size_form *out, opjit_error *error)
{
    ir_samples samples = { .space = s->space };
    int64_t series[IR_SAMPLES], value;

    for (const sampled *own = s->first; own != NULL && samples.count < IR_SAMPLES; own = own->next)
        if (!has_zero(own->dims, samples.space.dims))
            memcpy(samples.values[samples.count++], own->dims, sizeof own->dims);
    for (uint32_t k = 0; k < s->buffers * OPJIT_BUFFER_FORMS; k++) {
        const sampled *own = s->first;
        for (uint32_t i = 0; i < samples.count; own = own->next)
            if (!has_zero(own->dims, samples.space.dims))
                series[i++] = own->numbers[k];
        if (!opjit_ir_form_fit(&samples, series, &out[k]) ||
            !opjit_fe_form_is_bounded(s->dynamic, &s->space, NULL, &out[k]))
            return refuse_binding(s->graph, k, error);
        for (own = s->first; own != NULL && !is_as_read(s, k); own = own->next)
            if (!opjit_ir_form_value(&out[k], &samples.space, own->dims, &value) || value != own->numbers[k])
                return refuse_binding(s->graph, k, error);
    }
    return OPJIT_OK;
}

/* --- the program -------------------------------------------------------------------------------------------------- */

/* The function of a range, with memory for its largest sizes. */
static opjit_status finish(sampler *s, ir_range *range, opjit_error *error)
{
    ir_func *f = &range->general.f;

    TRY(opjit_fe_expand_general(&s->env, &range->general, error));
    TRY(opjit_fe_check_stages(s->dynamic, &s->space, range, error));
    TRY(opjit_ir_general_resize(&range->general, range->hi, error));
    TRY(opjit_ir_pack(f, error));
    TRY(opjit_ir_layout(f, error));
    opjit_ir_trim(f);
    return opjit_fe_pool_leave(s->allocator, f, error);
}

/* The forms of buffers, then those of all stages. */
static opjit_status fit_all(sampler *s, const ir_range *ranges, uint32_t count, fe_program *out, opjit_error *error)
{
    uint32_t at = s->buffers * OPJIT_BUFFER_FORMS;

    out->form_count = at;
    for (uint32_t i = 0; i < count; i++)
        out->form_count += ranges[i].general.extent_count;
    out->forms = opjit_rt_allocate(out->allocator, out->form_count * sizeof *out->forms, _Alignof(opjit_size_form));
    if (out->forms == NULL)
        return opjit_rt_no_memory(error);
    TRY(fit_buffers(s, out->forms, error));
    for (uint32_t i = 0; i < count; at += ranges[i++].general.extent_count)
        memcpy(out->forms + at, ranges[i].general.extents, ranges[i].general.extent_count * sizeof *out->forms);
    return OPJIT_OK;
}

static opjit_status finish_all(sampler *s, ir_range *ranges, uint32_t count, fe_program *out, opjit_error *error)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(finish(s, &ranges[i], error));
    TRY(fit_all(s, ranges, count, out, error));
    for (uint32_t i = 0; i < count; i++) {
        out->variants[out->count] = ranges[i].general.f; /* from here on the program frees it */
        for (uint32_t d = 0; d < s->dynamic->dim_count; d++) {
            out->ranges[i].lo[d] = (uint32_t)ranges[i].lo[d];
            out->ranges[i].hi[d] = (uint32_t)ranges[i].hi[d];
        }
        out->masks[out->count++] = 0;
        memset(&ranges[i].general.f, 0, sizeof ranges[i].general.f);
    }
    out->quotient_count = s->space.count;
    memcpy(out->quotients, s->space.quotients, sizeof out->quotients);
    return opjit_fe_share_kept(out, error);
}

/* Puts the graph's node, counted from 1, before a refusal that is about it. */
static opjit_status name_node(const fe_graph *graph, uint32_t origin, opjit_status status, opjit_error *error)
{
    if (origin == 0 || origin > graph->node_count)
        return status;
    const fe_node *const node = &graph->nodes[origin - 1];
    opjit_rt_error_prefix(error, "%s", opjit_fe_node_text(node->op, node->name, node->given).text);
    return opjit_rt_at_node(error, status, node->given);
}

/* Functions for all sizes; lower tiles for the last rows of products unless these make loops of too many kinds, and
 * quotients of dimensions, where sizes are such, unless these make loops that differ for each remainder.  The first
 * refusal is the message. */
static opjit_status find_ranges(sampler *s, ir_range *ranges, uint32_t *count, uint32_t *origin, opjit_error *error)
{
    static const ir_search roads[] = { { LOW_TILE_RANGES, true }, { LOW_TILE_RANGES, false }, { IR_RANGES, false } };
    opjit_status status = OPJIT_UNSUPPORTED;
    uint32_t others;
    int64_t typical[OPJIT_MAX_DIMS] = { 0 };
    ir_dim dims[OPJIT_MAX_DIMS];

    for (uint32_t d = 0; d < s->dynamic->dim_count; d++) {
        const opjit_dim *own = &s->dynamic->dims[d];
        dims[d] = (ir_dim){ .name = own->name, .lo = (int64_t)own->lo, .hi = (int64_t)own->hi };
        typical[d] = (int64_t)own->typical;
    }
    for (uint32_t i = 0; i < sizeof roads / sizeof *roads && status == OPJIT_UNSUPPORTED; i++) {
        if (i == 1 && s->space.count == 0) /* the first one was that */
            continue;
        s->env.low_tiles = roads[i].most == LOW_TILE_RANGES;
        status = opjit_ir_ranges_find(dims, typical, s->dynamic->dim_count, make_sample, s, roads[i], ranges, count,
                                      &s->space, i == 0 ? origin : &others, i == 0 ? error : NULL);
    }
    if (status == OPJIT_OK)
        opjit_rt_error_clear(error);
    return status;
}

static opjit_status make_general(sampler *s, fe_program *out, opjit_error *error)
{
    ir_range *const ranges = ARENA_ARRAY(&s->arena, ir_range, IR_RANGES);
    uint32_t count, origin;

    s->values = ARENA_NEW(&s->arena, fe_made);
    s->loops = ARENA_NEW(&s->arena, fe_made);
    if (ranges == NULL || s->values == NULL || s->loops == NULL)
        return opjit_rt_no_memory(error);
    opjit_status status = find_ranges(s, ranges, &count, &origin, error);
    if (status != OPJIT_OK)
        return name_node(s->graph, origin, status, error);
    status = finish_all(s, ranges, count, out, error);
    for (uint32_t i = 0; i < count; i++)
        opjit_ir_general_free(&ranges[i].general);
    return status;
}

opjit_status opjit_fe_dynamic_program(const fe_dynamic *dynamic, const fe_graph *graph, const fe_options *options,
                                      const char *name, const opjit_allocator *allocator, fe_program *out,
                                      opjit_error *error)
{
    const double start = rt_milliseconds();
    sampler s = { .dynamic = dynamic,
                  .graph = graph,
                  .options = options,
                  .name = name,
                  .allocator = allocator,
                  .env = { .target = options->target,
                           .verify = options->verify,
                           .cancel = options->cancel,
                           .calls_math = options->level == OPJIT_LEVEL_QUICK && options->target != NULL &&
                                         opjit_rt_target_calls_math(options->target),
                           .once = options->once,
                           .general = true,
                           .masks_absorb = (options->flags & OPJIT_COMPILE_MASKS_ABSORB) != 0 },
                  .buffers = graph->input_count + graph->output_count };
    opjit_status status = OPJIT_OK;

    memset(out, 0, sizeof *out);
    out->allocator = allocator;
    s.next = &s.first;
    out->capacity = IR_RANGES;
    out->variants = opjit_rt_allocate(allocator, out->capacity * sizeof *out->variants, _Alignof(ir_func));
    if (out->variants == NULL)
        return opjit_rt_no_memory(error);
    opjit_rt_arena_init(&s.arena, allocator);
    opjit_fe_sizes_init(&s.sizes, allocator);
    opjit_fe_pool_init(&s.pool, allocator);
    status = make_general(&s, out, error);
    opjit_fe_sizes_free(&s.sizes);
    opjit_fe_made_free(s.values);
    opjit_fe_made_free(s.loops);
    opjit_fe_pool_free(&s.pool);
    opjit_rt_arena_free(&s.arena);
    out->passes_ms = rt_milliseconds() - start;
    if (status != OPJIT_OK)
        opjit_fe_program_free(out);
    return status;
}

/* --- the key ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_fe_dynamic_read(const fe_dynamic *dynamic, bool keep, fe_graph *out, opjit_error *error)
{
    int64_t largest[OPJIT_MAX_DIMS] = { 0 };

    for (uint32_t d = 0; d < dynamic->dim_count; d++)
        largest[d] = (int64_t)dynamic->dims[d].hi;
    return read_for(dynamic, largest, keep, &dynamic->context->core->allocator, out, error);
}

opjit_status opjit_fe_dynamic_label(const fe_dynamic *dynamic, fe_graph *graph, opjit_error *error)
{
    fe_subject subject = { .is_named = false };
    uint64_t dims[OPJIT_MAX_DIMS] = { 0 };

    for (uint32_t d = 0; d < dynamic->dim_count; d++)
        dims[d] = dynamic->dims[d].hi;
    TRY(describe(dynamic, dims, &subject, error));
    return opjit_fe_graph_label(&subject, graph, error);
}

/* Appends the graph for these sizes. */
static opjit_status put_graph(fe_dynamic *dynamic, const int64_t *sizes, rt_bytes *key, opjit_error *error)
{
    fe_graph graph = { 0 };
    const opjit_status status = read_for(dynamic, sizes, false, &dynamic->context->core->allocator, &graph, error);

    if (status == OPJIT_OK) {
        opjit_fe_graph_key(&graph, key);
        dynamic->binds = dynamic->binds || opjit_fe_graph_binds(&graph);
    }
    opjit_fe_graph_free(&graph);
    return status;
}

/* The graph for the largest sizes, for the typical ones, and for these with the least size of each dimension: what
 * follows from a dimension differs between them, and dimensions with the same bounds differ in some. */
static opjit_status put_key(fe_dynamic *dynamic, rt_bytes *key, opjit_error *error)
{
    int64_t largest[OPJIT_MAX_DIMS] = { 0 }, typical[OPJIT_MAX_DIMS] = { 0 };

    opjit_rt_bytes_u32(key, FE_DYNAMIC_KEY);
    opjit_rt_bytes_u32(key, dynamic->dim_count);
    for (uint32_t d = 0; d < dynamic->dim_count; d++) {
        const opjit_dim *own = &dynamic->dims[d];
        opjit_rt_bytes_str(key, own->name);
        opjit_rt_bytes_u64(key, own->lo);
        opjit_rt_bytes_u64(key, own->hi);
        opjit_rt_bytes_u64(key, own->typical);
        largest[d] = (int64_t)own->hi;
        typical[d] = (int64_t)own->typical;
    }
    TRY(put_graph(dynamic, largest, key, error));
    TRY(put_graph(dynamic, typical, key, error));
    for (uint32_t d = 0; d < dynamic->dim_count; d++) {
        typical[d] = (int64_t)dynamic->dims[d].lo;
        TRY(put_graph(dynamic, typical, key, error));
        typical[d] = (int64_t)dynamic->dims[d].typical;
        dynamic->binds = dynamic->binds || dynamic->dims[d].lo == 0;
    }
    return key->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_fe_dynamic_key(fe_dynamic *dynamic, rt_bytes *key, opjit_error *error)
{
    TRY(opjit_fe_dims_check(dynamic->dims, dynamic->dim_count, error));
    return put_key(dynamic, key, error);
}

static opjit_status compile(fe_dynamic *dynamic, const opjit_compile_options *options, opjit_kernel **out_kernel,
                            opjit_error *error)
{
    rt_bytes key;

    opjit_rt_bytes_init(&key, &dynamic->context->core->allocator);
    opjit_status status = opjit_fe_dynamic_key(dynamic, &key, error);
    if (status == OPJIT_OK)
        status = opjit_fe_compile_dynamic(dynamic, options, &key, out_kernel, error);
    opjit_rt_bytes_free(&key);
    return status;
}

opjit_status opjit_compile_dynamic(opjit_context *context, const opjit_dim *dims, uint32_t dim_count,
                                   opjit_describe_fn describe_fn, void *user, const opjit_compile_options *options,
                                   opjit_kernel **out_kernel, opjit_error *error)
{
    fe_dynamic dynamic = {
        .context = context, .dims = dims, .dim_count = dim_count, .describe = describe_fn, .user = user
    };

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (context == NULL || describe_fn == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "describe");
    return compile(&dynamic, options, out_kernel, error);
}

opjit_status opjit_graph_compile_dynamic(opjit_context *context, const opjit_dim *dims, uint32_t dim_count,
                                         opjit_build_fn build, void *user, const opjit_compile_options *options,
                                         opjit_kernel **out_kernel, opjit_error *error)
{
    fe_dynamic dynamic = { .context = context, .dims = dims, .dim_count = dim_count, .build = build, .user = user };

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (context == NULL || build == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "build");
    return compile(&dynamic, options, out_kernel, error);
}
