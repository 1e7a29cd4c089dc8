/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - graphs that are being built: their life, their errors, handles, inputs, constants, outputs and names. */
#include <string.h>

#include "frontend/graph/build.h"

#define ITEMS_MAX (1u << 24) /* nodes, and likewise tensors: as many as the reader takes */

/* --- life --------------------------------------------------------------------------------------------------------- */

opjit_status opjit_graph_create(opjit_context *context, opjit_graph **out_graph, opjit_error *error)
{
    opjit_graph *g;

    opjit_rt_error_clear(error);
    if (out_graph == NULL)
        return opjit_rt_refuse_null(error, "out_graph");
    *out_graph = NULL;
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    g = opjit_rt_allocate(&context->core->allocator, sizeof *g, _Alignof(opjit_graph));
    if (g == NULL)
        return opjit_rt_no_memory(error);
    memset(g, 0, sizeof *g);
    g->context = context;
    g->label = "";
    g->core = opjit_rt_core_retain(context->core);
    opjit_rt_arena_init(&g->arena, &g->core->allocator);
    opjit_rt_arena_init(&g->scratch, &g->core->allocator);
    opjit_rt_arena_init(&g->described, &g->core->allocator);
    *out_graph = g;
    return OPJIT_OK;
}

void opjit_graph_label(opjit_graph *graph, const char *label)
{
    const char *copy = graph == NULL || graph->error.status != OPJIT_OK ? NULL : opjit_fe_build_text(graph, label);

    if (copy != NULL)
        graph->label = copy;
}

void opjit_graph_destroy(opjit_graph *graph)
{
    rt_core *core;

    if (graph == NULL)
        return;
    core = graph->core;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        opjit_operator_release(build_nodes(graph)[i].op);
    opjit_rt_arena_free(&graph->described);
    opjit_rt_arena_free(&graph->scratch);
    opjit_rt_arena_free(&graph->arena);
    opjit_rt_release(&core->allocator, graph, sizeof *graph);
    opjit_rt_core_release(core);
}

opjit_status opjit_graph_status(const opjit_graph *graph, opjit_error *out_error)
{
    opjit_rt_error_clear(out_error);
    if (graph == NULL)
        return opjit_rt_refuse_null(out_error, "graph");
    if (out_error != NULL)
        *out_error = graph->error;
    return graph->error.status;
}

/* --- arrays and handles ------------------------------------------------------------------------------------------- */

void *opjit_fe_build_item(opjit_graph *g, build_array *array, size_t size)
{
    if (array->count == array->capacity) {
        const uint32_t capacity = array->capacity == 0 ? 16 : 2 * array->capacity;
        void *items = array->count >= ITEMS_MAX ? NULL : opjit_rt_arena_allocate(&g->arena, capacity, size);
        if (items == NULL) {
            if (array->count >= ITEMS_MAX)
                opjit_rt_refuse(&g->error, OPJIT_LIMIT, "{graph}: {!tensors}{%u} tensors, must be at most %u",
                                array->count + 1, ITEMS_MAX);
            else
                opjit_rt_no_memory(&g->error);
            return NULL;
        }
        if (array->count != 0)
            memcpy(items, array->items, array->count * size);
        array->items = items;
        array->capacity = capacity;
    }
    g->is_described = false;
    return (unsigned char *)array->items + size * array->count++;
}

const char *opjit_fe_build_text(opjit_graph *g, const char *text)
{
    const char *copy = text == NULL ? "" : opjit_rt_arena_string(&g->arena, text, strlen(text));

    if (copy == NULL)
        opjit_rt_no_memory(&g->error);
    return copy;
}

/* Tells two graphs that live from each other without a counter, which would be state of the process. */
static uint32_t mark_of(const opjit_graph *g)
{
    return (uint32_t)((uintptr_t)g >> 4);
}

uint32_t opjit_fe_built_mark(const opjit_graph *g)
{
    return mark_of(g);
}

const build_tensor *opjit_fe_build_tensor(opjit_graph *g, opjit_tensor handle, const char *op, const char *field)
{
    if (handle.index != 0 && handle.index <= g->tensors.count && handle.graph == mark_of(g))
        return &build_tensors(g)[handle.index - 1];
    if (handle.index == 0)
        opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {a null handle}, must be a tensor of the graph",
                        op, field);
    else
        opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                        "{%s} {%s}: {handle %u of another graph}, must be a tensor of this one", op, field,
                        handle.index);
    return NULL;
}

opjit_tensor opjit_fe_build_add(opjit_graph *g, const build_tensor *tensor)
{
    build_tensor *t = opjit_fe_build_item(g, &g->tensors, sizeof *t);

    if (t == NULL)
        return build_null;
    *t = *tensor;
    for (uint32_t d = t->rank; d < OPJIT_MAX_RANK; d++) {
        t->sizes[d] = 1;
        t->strides[d] = 0;
    }
    return (opjit_tensor){ mark_of(g), g->tensors.count };
}

opjit_status opjit_graph_get_type(const opjit_graph *graph, opjit_tensor tensor, opjit_tensor_type *out_type)
{
    const build_tensor *t;

    if (out_type == NULL)
        return OPJIT_INVALID_ARGUMENT;
    memset(out_type, 0, sizeof *out_type);
    if (!build_goes_on(graph))
        return graph == NULL ? OPJIT_INVALID_ARGUMENT : graph->error.status;
    if (tensor.index == 0 || tensor.index > graph->tensors.count || tensor.graph != mark_of(graph))
        return OPJIT_INVALID_ARGUMENT;
    t = &build_tensors(graph)[tensor.index - 1];
    out_type->dtype = t->dtype;
    out_type->rank = t->rank;
    memcpy(out_type->sizes, t->sizes, sizeof out_type->sizes);
    return OPJIT_OK;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_fe_build_check_sizes(opjit_graph *g, const char *what, uint32_t rank, const uint32_t *sizes)
{
    if (rank < 1 || rank > OPJIT_MAX_RANK)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {rank}: {%u}, must be 1 to %u", what, rank,
                               OPJIT_MAX_RANK);
    if (sizes == NULL)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {sizes}: {NULL}, must be an array of %u", what,
                               rank);
    return OPJIT_OK;
}

/* Strides of its sizes without gaps. */
static void pack(build_tensor *t)
{
    uint64_t stride = 1;

    for (uint32_t d = t->rank; d-- > 0; stride *= t->sizes[d])
        t->strides[d] = (uint32_t)stride; /* below the count of elements, which fits where the tensor does */
}

/* --- inputs and constants ----------------------------------------------------------------------------------------- */

opjit_tensor opjit_graph_input_desc(opjit_graph *graph, const char *name, const DML_TENSOR_DESC *desc)
{
    build_tensor t = { .source = { FE_INPUT, 0, 0 }, .whole = true };
    fe_tensor resolved;
    build_input *input;

    if (!build_goes_on(graph))
        return build_null;
    t.source.index = graph->inputs.count;
    if (opjit_fe_tensor_resolve(desc, false, "graph_input", name == NULL ? "desc" : name, &resolved, &graph->error) !=
        OPJIT_OK)
        return build_null;
    t.dtype = resolved.dtype;
    t.rank = resolved.rank;
    for (uint32_t d = 0; d < t.rank; d++) {
        t.sizes[d] = (uint32_t)resolved.sizes[d];
        t.strides[d] = (uint32_t)resolved.strides[d];
    }
    name = opjit_fe_build_text(graph, name);
    input = name == NULL ? NULL : opjit_fe_build_item(graph, &graph->inputs, sizeof *input);
    if (input == NULL)
        return build_null;
    *input = (build_input){ .name = name, .desc = *(const DML_BUFFER_TENSOR_DESC *)desc->Desc };
    graph->is_named = graph->is_named || name[0] != '\0';
    return opjit_fe_build_add(graph, &t);
}

opjit_tensor opjit_graph_input(opjit_graph *graph, const char *name, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                               const uint32_t *sizes)
{
    const DML_BUFFER_TENSOR_DESC buffer = { dtype, DML_TENSOR_FLAG_NONE, rank, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC desc = { DML_TENSOR_TYPE_BUFFER, &buffer };

    return opjit_graph_input_desc(graph, name, &desc);
}

/* A copy that is aligned for any kernel, so that it can be lent to kernels. */
static const void *copy_data(opjit_graph *g, const void *data, uint64_t bytes)
{
    uint8_t *memory =
        bytes > SIZE_MAX / 2 ? NULL : opjit_rt_arena_allocate(&g->arena, 1, (size_t)bytes + OPJIT_WORKSPACE_ALIGNMENT);

    if (memory == NULL) {
        opjit_rt_no_memory(&g->error);
        return NULL;
    }
    memory += -(uintptr_t)memory % OPJIT_WORKSPACE_ALIGNMENT;
    return memcpy(memory, data, (size_t)bytes);
}

static opjit_status check_constant(opjit_graph *g, const fe_tensor *t, const void *data, uint64_t bytes, uint32_t flags)
{
    const uint64_t needed = opjit_rt_dtype_bytes(t->dtype, t->elements);

    if (g->context->feature_level != 0 && g->context->feature_level < DML_FEATURE_LEVEL_6_2)
        return opjit_rt_refuse(&g->error, OPJIT_UNSUPPORTED,
                               "{graph_constant}: {feature level} {%s}, must be at least 6.2",
                               opjit_fe_level_text(g->context->feature_level).text);
    if ((flags & ~OPJIT_GRAPH_BORROW) != 0)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{graph_constant} {flags}: {0x%x}, must be 0 or 0x%x",
                               flags, OPJIT_GRAPH_BORROW);
    if (data == NULL)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_constant} {data}: {NULL}, must be the constant's bytes");
    if (bytes != needed)
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_constant} {bytes}: {%llu}, must be %llu for that type and those sizes",
                               (unsigned long long)bytes, (unsigned long long)needed);
    return OPJIT_OK;
}

opjit_tensor opjit_graph_constant(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank, const uint32_t *sizes,
                                  const void *data, uint64_t bytes, uint32_t flags)
{
    const DML_BUFFER_TENSOR_DESC buffer = { dtype, DML_TENSOR_FLAG_NONE, rank, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC desc = { DML_TENSOR_TYPE_BUFFER, &buffer };
    build_tensor t = { .source = { FE_CONSTANT, 0, 0 }, .dtype = dtype, .rank = rank, .whole = true };
    build_constant *constant;
    fe_tensor resolved;

    if (!build_goes_on(graph))
        return build_null;
    if (opjit_fe_tensor_resolve(&desc, false, "graph_constant", "tensor", &resolved, &graph->error) != OPJIT_OK ||
        check_constant(graph, &resolved, data, bytes, flags) != OPJIT_OK)
        return build_null;
    t.source.index = graph->constants.count;
    memcpy(t.sizes, sizes, rank * sizeof *sizes);
    pack(&t);
    if ((flags & OPJIT_GRAPH_BORROW) == 0)
        data = copy_data(graph, data, bytes);
    constant = data == NULL ? NULL : opjit_fe_build_item(graph, &graph->constants, sizeof *constant);
    if (constant == NULL)
        return build_null;
    *constant = (build_constant){ data, bytes, "" };
    return opjit_fe_build_add(graph, &t);
}

/* --- outputs and names -------------------------------------------------------------------------------------------- */

opjit_status opjit_graph_output(opjit_graph *graph, const char *name, opjit_tensor tensor)
{
    const build_tensor *t;
    build_output *output;

    if (!build_goes_on(graph))
        return graph == NULL ? OPJIT_INVALID_ARGUMENT : graph->error.status;
    t = opjit_fe_build_tensor(graph, tensor, "graph_output", "tensor");
    if (t != NULL && !(t->whole && t->source.kind == FE_NODE)) {
        tensor = opjit_fe_build_copy(graph, tensor);
        t = tensor.index == 0 ? NULL : opjit_fe_build_tensor(graph, tensor, "graph_output", "tensor");
    }
    name = t == NULL ? NULL : opjit_fe_build_text(graph, name);
    output = name == NULL ? NULL : opjit_fe_build_item(graph, &graph->outputs, sizeof *output);
    if (output == NULL)
        return graph->error.status;
    *output = (build_output){ name, t->source };
    graph->is_named = graph->is_named || name[0] != '\0';
    return OPJIT_OK;
}

opjit_status opjit_graph_name(opjit_graph *graph, opjit_tensor tensor, const char *name)
{
    const build_tensor *t;

    if (!build_goes_on(graph))
        return graph == NULL ? OPJIT_INVALID_ARGUMENT : graph->error.status;
    t = opjit_fe_build_tensor(graph, tensor, "graph_name", "tensor");
    if (t == NULL)
        return graph->error.status;
    if (t->source.kind == FE_INPUT)
        return opjit_rt_refuse(&graph->error, OPJIT_INVALID_ARGUMENT,
                               "{graph_name} {tensor}: {an input}, must be an operator's or a constant");
    name = opjit_fe_build_text(graph, name);
    if (name == NULL)
        return graph->error.status;
    if (t->source.kind == FE_NODE)
        build_nodes(graph)[t->source.index].name = name;
    else
        ((build_constant *)graph->constants.items)[t->source.index].name = name;
    graph->is_described = false;
    return OPJIT_OK;
}
