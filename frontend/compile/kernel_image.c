/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_image.c - describes a compiled or interpreted program as the image's metadata: buffers, parameters, steps,
 * variants.  How the bytes lie is runtime/image/image.c's. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir/analysis/analysis.h"

/* The arrays that the image is built from. */
typedef struct tables {
    rt_arena *arena;
    const char *name; /* the kernel's */
    opjit_buffer_info *buffers;
    const char **buffer_names;
    opjit_param_info *params;
    const char **param_names;
    opjit_step_info *steps;
    opjit_launch_info *launches; /* by step; NULL: the steps are stages */
    const char **launch_names;
    opjit_variant_info *variants;
} tables;

enum { STAGE_NAME = FE_NAME_SIZE + 24 }; /* NAME_v0_s1 */

static void describe_buffer(const fe_tensor *t, uint32_t align, const char *name, uint32_t role, uint32_t alias_inputs,
                            uint32_t at, tables *out)
{
    opjit_buffer_info *info = &out->buffers[at];

    info->role = role;
    info->dtype = (uint32_t)t->dtype;
    info->rank = t->rank;
    info->align = out->launches != NULL && align < OPJIT_GPU_ALIGNMENT ? OPJIT_GPU_ALIGNMENT : align;
    memcpy(info->sizes, t->sizes, sizeof info->sizes);
    memcpy(info->strides, t->strides, sizeof info->strides);
    info->bytes = t->bytes;
    info->alias_inputs = alias_inputs;
    out->buffer_names[at] = name;
}

static void describe_buffers(const fe_unit *unit, rt_meta_source *source, tables *out)
{
    const fe_graph *graph = &unit->graph;
    uint32_t at = 0;

    for (uint32_t i = 0; i < graph->input_count; i++) {
        const fe_buffer *const in = &graph->inputs[i];
        describe_buffer(&in->tensor, in->tensor.align, in->name, OPJIT_BUFFER_INPUT, 0, at++, out);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const fe_buffer *const made = &graph->outputs[i];
        describe_buffer(&made->tensor, made->tensor.align, made->name, OPJIT_BUFFER_OUTPUT,
                        i < 8 ? unit->program.alias_inputs[i] : 0, at++, out);
    }
    for (uint32_t i = 0; i < graph->constant_count; i++) {
        const fe_buffer *const constant = &graph->constants[i];
        describe_buffer(&constant->tensor, opjit_fe_constant_align(graph, constant, unit->options.target),
                        constant->name, OPJIT_BUFFER_CONSTANT, 0, at++, out);
    }
    source->inputs = graph->input_count;
    source->outputs = graph->output_count;
    source->constants = graph->constant_count;
}

/* INT fields are INT32 with all of its values; scalars are their data type, with all of its values. */
static void describe_param(const opjit_operator *op, uint32_t field, opjit_param_info *info)
{
    static const struct {
        int64_t lo, hi;
    } ranges[] = {
        [DML_TENSOR_DATA_TYPE_UINT32] = { 0, UINT32_MAX },
        [DML_TENSOR_DATA_TYPE_UINT16] = { 0, UINT16_MAX },
        [DML_TENSOR_DATA_TYPE_UINT8] = { 0, UINT8_MAX },
        [DML_TENSOR_DATA_TYPE_INT32] = { INT32_MIN, INT32_MAX },
        [DML_TENSOR_DATA_TYPE_INT16] = { INT16_MIN, INT16_MAX },
        [DML_TENSOR_DATA_TYPE_INT8] = { INT8_MIN, INT8_MAX },
        [DML_TENSOR_DATA_TYPE_FLOAT64] = { 0, 0 },
        [DML_TENSOR_DATA_TYPE_UINT64] = { INT64_MIN, INT64_MAX }, /* all patterns of the slot's bits */
        [DML_TENSOR_DATA_TYPE_INT64] = { INT64_MIN, INT64_MAX },
    };
    const op_field *row = &op->def->fields[field];

    info->dtype = row->kind == OP_INT     ? DML_TENSOR_DATA_TYPE_INT32
                  : row->kind == OP_FLOAT ? DML_TENSOR_DATA_TYPE_FLOAT32
                                          : (uint32_t)opjit_fe_scalar_type(op, field);
    info->lo = ranges[info->dtype].lo;
    info->hi = ranges[info->dtype].hi;
}

/* How a GPU runs a stage, and the name that codegen gives it. */
static opjit_status describe_launch(const ir_func *f, ir_ref stage, uint32_t variant, uint32_t index, uint32_t at,
                                    tables *out, opjit_error *error)
{
    char name[STAGE_NAME];
    ir_launch launch;

    opjit_ir_launch_of(f, stage, &launch);
    snprintf(name, sizeof name, "%s_v%u_s%u", out->name, variant, index);
    out->launches[at] = (opjit_launch_info){
        .shared_bytes = launch.shared, .grid = { (uint32_t)launch.grid, 1, 1 }, .block = { launch.block, 1, 1 }
    };
    out->launch_names[at] = opjit_rt_arena_string(out->arena, name, strlen(name));
    return out->launch_names[at] == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* entries: where each stage of f begins in the code; NULL: nowhere, they are interpreted. */
static opjit_status describe_steps(const ir_func *f, const uint64_t *entries, rt_meta_source *source, tables *out,
                                   opjit_error *error)
{
    const uint32_t first = source->steps;

    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const ir_ref lo = ir_operand(f, s, 0), hi = ir_operand(f, s, 1);
        opjit_step_info *step = &out->steps[source->steps];
        if (ir_at(f, s)->op != IR_STAGE)
            continue;
        if (!ir_is_index_const(f, lo) || ir_index_value(f, lo) != 0 || !opjit_ir_is_size(f, hi))
            return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s: stage %u does not run from 0 to a size", f->name,
                                      source->steps);
        step->kind = out->launches == NULL ? OPJIT_STEP_STAGE : OPJIT_STEP_LAUNCH;
        if (out->launches != NULL)
            TRY(describe_launch(f, s, source->variants, source->steps - first, source->steps, out, error));
        step->entry = entries == NULL ? 0 : (uint32_t)entries[source->steps - first];
        step->extent = (uint64_t)opjit_ir_interval(f, hi).hi;
        step->grain = ir_at(f, s)->imm;
        source->steps++;
    }
    return OPJIT_OK;
}

/* A GPU's scratch lies in the workspace of all, where it isn't a block's own. */
static void add_workspace(const ir_func *f, bool on_gpu, rt_meta_source *source)
{
    const uint64_t shared = align_up(on_gpu ? opjit_ir_grid_workspace(f) : f->shared_size, OPJIT_WORKSPACE_ALIGNMENT);
    const uint64_t scratch = on_gpu ? 0 : align_up(f->scratch_size, OPJIT_WORKSPACE_ALIGNMENT);

    source->shared_size = shared > source->shared_size ? shared : source->shared_size;
    source->scratch_size = scratch > source->scratch_size ? scratch : source->scratch_size;
}

static rt_space space_of(const fe_unit *unit)
{
    return (rt_space){ unit->dim_count, unit->program.quotient_count, unit->program.quotients };
}

/* For many sizes: as often as the forms say that the steps run at most, which may be less than the ends of their
 * intervals: b (n - 2) is at most 3 * 50 where b n - 2 b is below 3 * 52 - 2. */
static void limit_extents(const fe_unit *unit, const opjit_range_info *range, uint32_t first,
                          const rt_meta_source *source, tables *out)
{
    const opjit_size_form *const forms = source->forms + (source->inputs + source->outputs) * OPJIT_BUFFER_FORMS;
    opjit_param_info dims[OPJIT_MAX_POWERS] = { 0 };
    for (uint32_t d = 0; d < unit->dim_count; d++) {
        dims[d] = unit->dims[d];
        dims[d].lo = range != NULL ? range->lo[d] : dims[d].lo;
        dims[d].hi = range != NULL ? range->hi[d] : dims[d].hi;
    }
    const rt_space space = space_of(unit);
    opjit_rt_quotient_ranges(&space, dims);
    for (uint32_t s = first; s < source->steps; s++) {
        uint64_t most;
        if (opjit_rt_form_range(&forms[s], &space, dims, &most)) /* else the image is refused */
            out->steps[s].extent = most;
    }
}

static opjit_status describe_variants(const fe_unit *unit, const uint64_t *entries, rt_meta_source *source, tables *out,
                                      opjit_error *error)
{
    for (uint32_t i = 0; i < unit->program.count; i++) {
        const ir_func *f = &unit->program.variants[i];
        const uint32_t first = source->steps;
        const uint32_t once = opjit_ir_once_count(f);
        TRY(describe_steps(f, entries == NULL ? NULL : entries + first, source, out, error));
        if (source->forms != NULL)
            limit_extents(unit, source->ranges == NULL ? NULL : &source->ranges[i], first, source, out);
        out->variants[source->variants++] =
            (opjit_variant_info){ unit->program.masks[i], first + once, source->steps - first - once };
        source->once_first = first; /* the last variant's are run for all */
        source->once_steps = once;
        add_workspace(f, out->launches != NULL, source);
    }
    return OPJIT_OK;
}

/* Of a graph with custom operators: one list, the stages of each part and then the calls behind it. */
static opjit_status describe_parts(const fe_unit *unit, const uint64_t *entries, rt_meta_source *source, tables *out,
                                   opjit_error *error)
{
    const ir_func *f = unit->program.variants;
    uint32_t calls = 0;

    for (uint32_t i = 0; i < unit->graph.part_count; i++) {
        const fe_part *part = &unit->graph.parts[i];
        if (part->graph.output_count != 0) {
            TRY(describe_steps(f, entries == NULL ? NULL : entries + source->steps - calls, source, out, error));
            add_workspace(f++, out->launches != NULL, source);
        }
        for (uint32_t k = 0; k < part->calls; k++)
            out->steps[source->steps++] = (opjit_step_info){ OPJIT_STEP_CUSTOM, calls++, 1, 1 };
    }
    out->variants[source->variants++] = (opjit_variant_info){ 0, 0, source->steps };
    source->shared_size += unit->graph.plan.temp_bytes;
    return OPJIT_OK;
}

static opjit_status allocate_tables(const fe_unit *unit, uint32_t steps, bool on_gpu, rt_arena *arena, tables *out,
                                    opjit_error *error)
{
    const fe_graph *graph = &unit->graph;
    const uint32_t buffers = graph->input_count + graph->output_count + graph->constant_count;
    const uint32_t params = graph->late_count + unit->dim_count;
    const uint32_t variants = graph->parts != NULL ? 1 : unit->program.count;

    *out = (tables){ .arena = arena, .name = unit->name };
    out->buffers = ARENA_ARRAY(arena, opjit_buffer_info, buffers);
    out->buffer_names = ARENA_ARRAY(arena, const char *, buffers);
    out->params = ARENA_ARRAY(arena, opjit_param_info, params);
    out->param_names = ARENA_ARRAY(arena, const char *, params);
    out->steps = ARENA_ARRAY(arena, opjit_step_info, steps);
    out->variants = ARENA_ARRAY(arena, opjit_variant_info, variants);
    if (on_gpu) {
        out->launches = ARENA_ARRAY(arena, opjit_launch_info, steps);
        out->launch_names = ARENA_ARRAY(arena, const char *, steps);
        if (out->launches == NULL || out->launch_names == NULL)
            return opjit_rt_no_memory(error);
    }
    if (out->buffers == NULL || out->buffer_names == NULL || out->params == NULL || out->param_names == NULL ||
        out->steps == NULL || out->variants == NULL)
        return opjit_rt_no_memory(error);
    return OPJIT_OK;
}

/* The number for the largest sizes. */
static uint64_t largest(const fe_unit *unit, const opjit_size_form *form)
{
    uint64_t dims[OPJIT_MAX_DIMS] = { 0 };

    for (uint32_t d = 0; d < unit->dim_count; d++)
        dims[d] = (uint64_t)unit->dims[d].hi;
    const rt_space space = space_of(unit);
    return opjit_rt_form_value(&space, form, dims);
}

/* All that the metadata says, in tables of the arena.  entries: where each stage begins in the code, or NULL.  on_gpu:
 * stages are launched. */
static opjit_status describe(const fe_unit *unit, const uint64_t *entries, bool on_gpu, rt_arena *arena,
                             rt_meta_source *out, opjit_error *error)
{
    uint32_t steps = unit->graph.plan.call_count;
    tables all;

    *out = (rt_meta_source){
        .name = unit->name,
        .target = unit->options.target->text,
        .level = unit->options.level,
        .flops = unit->program.flops,
        .bytes_read = unit->program.bytes_read,
        .bytes_written = unit->program.bytes_written,
        .unproven_bounds = unit->program.unproven_bounds,
        .kept_size = unit->program.kept_size,
        .kept_layout = unit->program.kept_layout,
    };
    for (uint32_t i = 0; i < unit->program.count; i++)
        steps += opjit_fe_stage_count(&unit->program.variants[i]);
    TRY(allocate_tables(unit, steps, on_gpu, arena, &all, error));
    memcpy(out->key, &unit->key.lo, 8);
    memcpy(out->key + 8, &unit->key.hi, 8);
    describe_buffers(unit, out, &all);
    for (; out->params < unit->graph.late_count; out->params++) {
        const fe_late *late = &unit->graph.late[out->params];
        describe_param(late->op, late->field, &all.params[out->params]);
        all.param_names[out->params] = late->name;
    }
    for (uint32_t d = 0; d < unit->dim_count; d++, out->params++) {
        all.params[out->params] = unit->dims[d];
        all.param_names[out->params] = unit->dim_names[d];
    }
    out->dims = unit->dim_count;
    if (unit->dim_count != 0) { /* the program goes before the image is written */
        out->forms = opjit_rt_arena_copy(arena, unit->program.forms, unit->program.form_count, sizeof *out->forms);
        out->quotient_count = unit->program.quotient_count;
        out->quotients = opjit_rt_arena_copy(arena, unit->program.quotients, OPJIT_MAX_POWERS, sizeof *out->quotients);
        if (out->forms == NULL || out->quotients == NULL)
            return opjit_rt_no_memory(error);
        out->ranges = unit->program.count < 2 ? NULL
                                              : opjit_rt_arena_copy(arena, unit->program.ranges, unit->program.count,
                                                                    sizeof *out->ranges);
        if (out->ranges == NULL && unit->program.count > 1)
            return opjit_rt_no_memory(error);
        for (uint32_t i = 0; i < out->inputs + out->outputs; i++)
            all.buffers[i].bytes = largest(unit, &out->forms[i * OPJIT_BUFFER_FORMS]);
    }
    TRY(unit->graph.parts != NULL ? describe_parts(unit, entries, out, &all, error)
                                  : describe_variants(unit, entries, out, &all, error));
    out->buffers = all.buffers;
    out->buffer_names = all.buffer_names;
    out->param_infos = all.params;
    out->param_names = all.param_names;
    out->step_infos = all.steps;
    out->launches = all.launches;
    out->launch_names = all.launch_names;
    out->variant_infos = all.variants;
    return OPJIT_OK;
}

static opjit_status image_make(fe_unit *unit, const codegen_result *code, rt_arena *arena, rt_bytes *out,
                               opjit_error *error)
{
    const bool on_gpu = code != NULL && rt_target_team(unit->options.target) > 0;
    rt_meta_source source;
    uint32_t steps = 0;

    for (uint32_t i = 0; i < unit->program.count; i++)
        steps += opjit_fe_stage_count(&unit->program.variants[i]);
    if (code != NULL && !on_gpu && code->entry_count != steps)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s: %u stages became %u functions", unit->name, steps,
                                  code->entry_count);
    TRY(describe(unit, code == NULL ? NULL : code->entries, on_gpu, arena, &source, error));
    if (code != NULL) {
        source.features[0] = unit->options.target->features;
        opjit_fe_program_free(&unit->program); /* it is described now, and takes memory that the code may have */
    }
    return opjit_rt_image_build(&source, code == NULL ? NULL : code->bytes.data, code == NULL ? 0 : code->bytes.size,
                                out, error);
}

opjit_status opjit_fe_image_make(fe_unit *unit, const codegen_result *code, rt_bytes *out, opjit_error *error)
{
    rt_arena arena;
    opjit_status status;

    opjit_rt_arena_init(&arena, &unit->core->allocator);
    status = image_make(unit, code, &arena, out, error);
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_fe_meta_make(const fe_unit *unit, rt_bytes *out, opjit_error *error)
{
    rt_meta_source source;
    rt_arena arena;
    opjit_status status;

    opjit_rt_arena_init(&arena, &unit->core->allocator);
    status = describe(unit, NULL, rt_target_team(unit->options.target) > 0, &arena, &source, error);
    source.features[0] = unit->options.target->features;
    if (status == OPJIT_OK)
        status = opjit_rt_meta_build(&source, out, error);
    opjit_rt_arena_free(&arena);
    return status;
}
