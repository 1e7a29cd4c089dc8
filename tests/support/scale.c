/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - builds, runs and checks large graphs (scale.h). */
#include "tests/support/scale.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 100, PART = 4 /* columns of a SPLIT's output */ };

const char *const scale_names[SCALE_SHAPES] = { "adds", "softmaxes", "blocks", "split", "chain", "wide" };

/* --- operators ---------------------------------------------------------------------------------------------------- */

static const DML_TENSOR_DESC *tensor_of(graph_tensor *t, uint32_t columns)
{
    return graph_tensor_set(t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, (uint32_t[]){ ROWS, columns }, NULL, 0);
}

static bool make(opjit_context *context, scale_graph *g, uint32_t at, DML_OPERATOR_TYPE type, const void *desc,
                 opjit_error *error)
{
    const DML_OPERATOR_DESC op = { type, desc };

    return opjit_operator_create(context, &op, &g->operators[at], error) == OPJIT_OK;
}

static bool make_split(opjit_context *context, scale_graph *g, uint32_t count, opjit_error *error)
{
    graph_tensor in, part;
    DML_TENSOR_DESC *parts = calloc(count, sizeof *parts);
    bool made;

    tensor_of(&in, PART * count);
    tensor_of(&part, PART);
    for (uint32_t i = 0; parts != NULL && i < count; i++)
        parts[i] = part.desc;
    made = parts != NULL &&
           make(context, g, 0, DML_OPERATOR_SPLIT, &(DML_SPLIT_OPERATOR_DESC){ &in.desc, count, parts, 1 }, error);
    free(parts);
    return made;
}

static bool make_operators(opjit_context *context, scale_graph *g, uint32_t count, opjit_error *error)
{
    static const uint32_t axis = 1;
    graph_tensor t;
    const DML_TENSOR_DESC *x = tensor_of(&t, COLUMNS);
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { x, x, x };

    switch (g->shape) {
    case SCALE_SPLIT: return make_split(context, g, count, error);
    case SCALE_SOFTMAXES:
        return make(context, g, 0, DML_OPERATOR_ACTIVATION_SOFTMAX1,
                    &(DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC){ x, x, 1, &axis }, error);
    case SCALE_BLOCKS:
        if (!make(context, g, 1, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1,
                  &(DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC){ x, NULL, NULL, x, 1, &axis, 1, 1e-5f, NULL },
                  error) ||
            !make(context, g, 2, DML_OPERATOR_ACTIVATION_GELU, &(DML_ACTIVATION_GELU_OPERATOR_DESC){ x, x }, error))
            return false;
        break;
    case SCALE_WIDE:
        for (uint32_t i = 1; i < SCALE_OPERATORS; i++) {
            const DML_SCALE_BIAS some = { 1.0f / (float)i, 0.5f };
            if (!make(context, g, i, DML_OPERATOR_ELEMENT_WISE_IDENTITY,
                      &(DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC){ x, x, &some }, error))
                return false;
        }
        break;
    default: break;
    }
    return make(context, g, 0, DML_OPERATOR_ELEMENT_WISE_ADD, &add, error);
}

/* --- nodes and edges ---------------------------------------------------------------------------------------------- */

static uint32_t node(scale_graph *g, uint32_t kind)
{
    return graph_operator_of(&g->g, g->operators[kind], NULL);
}

/* Connects the previous block's result, or the graph's input. */
static void from_last(scale_graph *g, uint32_t last, uint32_t to, uint32_t port)
{
    if (last == UINT32_MAX)
        graph_input(&g->g, 0, to, port);
    else
        graph_edge(&g->g, last, 0, to, port);
}

static void wire_block(scale_graph *g, uint32_t *last)
{
    const uint32_t norm = node(g, 1), gelu = node(g, 2), add = node(g, 0);

    from_last(g, *last, norm, 0);
    graph_edge(&g->g, norm, 0, gelu, 0);
    graph_edge(&g->g, gelu, 0, add, 0);
    from_last(g, *last, add, 1);
    *last = add;
}

/* Nodes that read the input, and a tree of additions over them. */
static void wire_wide(scale_graph *g, uint32_t count)
{
    const uint32_t leaves = (count + 1) / 2;
    uint32_t next = 0;

    for (uint32_t i = 0; i < leaves; i++)
        graph_input(&g->g, 0, node(g, 1 + i % (SCALE_OPERATORS - 1)), 0);
    while (g->g.desc.NodeCount - next > 1) {
        const uint32_t add = node(g, 0);
        graph_edge(&g->g, next, 0, add, 0);
        graph_edge(&g->g, next + 1, 0, add, 1);
        next += 2;
    }
    graph_output(&g->g, next, 0, 0);
}

static void wire(scale_graph *g, uint32_t count)
{
    uint32_t last = UINT32_MAX;

    if (g->shape == SCALE_WIDE) {
        wire_wide(g, count);
        return;
    }
    if (g->shape == SCALE_SPLIT)
        graph_input(&g->g, 0, node(g, 0), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (g->shape == SCALE_SPLIT) {
            graph_output(&g->g, 0, i, i);
        } else if (g->shape == SCALE_BLOCKS) {
            wire_block(g, &last);
        } else {
            const uint32_t made = node(g, 0);
            from_last(g, g->shape == SCALE_ADDS ? UINT32_MAX : last, made, 0);
            if (g->shape != SCALE_SOFTMAXES)
                graph_input(&g->g, g->shape == SCALE_ADDS ? 1 + i : 1, made, 1);
            if (g->shape == SCALE_ADDS)
                graph_output(&g->g, made, 0, i);
            last = made;
        }
    }
    if (g->shape != SCALE_SPLIT && g->shape != SCALE_ADDS)
        graph_output(&g->g, last, 0, 0);
}

bool scale_make(opjit_context *context, scale_shape shape, uint32_t count, scale_graph *g, opjit_error *error)
{
    *g = (scale_graph){ .shape = shape };
    graph_begin(&g->g, context, 4 * count + 4);
    if (!make_operators(context, g, count, error))
        return false;
    wire(g, count);
    g->input_count = g->g.desc.InputCount;
    g->output_count = g->g.desc.OutputCount;
    g->input_elements = ROWS * (shape == SCALE_SPLIT ? PART * count : COLUMNS);
    g->output_elements = ROWS * (shape == SCALE_SPLIT ? PART : COLUMNS);
    return true;
}

void scale_free(scale_graph *g)
{
    for (uint32_t i = 0; i < SCALE_OPERATORS; i++)
        opjit_operator_release(g->operators[i]);
    graph_end(&g->g);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

bool scale_buffers_make(const scale_graph *g, scale_buffers *b)
{
    const size_t in = (size_t)g->input_count * g->input_elements, out = (size_t)g->output_count * g->output_elements;

    *b = (scale_buffers){ .bindings = calloc(g->input_count + g->output_count, sizeof *b->bindings),
                          .memory = malloc((in + out) * sizeof(float)) };
    if (b->bindings == NULL || b->memory == NULL)
        return false;
    memset(b->memory + in, 0xa5, out * sizeof(float));
    for (size_t i = 0; i < in; i++)
        b->memory[i] = (float)((i * 2654435761u >> 7) % 4096) / 2048.0f;
    for (uint32_t i = 0; i < g->input_count; i++)
        b->bindings[i] = (opjit_binding){ b->memory + (size_t)i * g->input_elements, (uint64_t)g->input_elements * 4 };
    for (uint32_t i = 0; i < g->output_count; i++)
        b->bindings[g->input_count + i] =
            (opjit_binding){ b->memory + in + (size_t)i * g->output_elements, (uint64_t)g->output_elements * 4 };
    return true;
}

void scale_buffers_free(scale_buffers *b)
{
    free(b->bindings);
    free(b->memory);
}

static bool run(opjit_kernel *kernel, const opjit_binding *bindings, uint32_t count, opjit_error *error)
{
    opjit_call call = OPJIT_CALL_INIT;

    call.bindings = bindings;
    call.binding_count = count;
    return opjit_kernel_call(kernel, &call, error) == OPJIT_OK;
}

/* One row after another, PART columns per output. */
static bool check_split(const scale_graph *g, const scale_buffers *b)
{
    for (uint32_t i = 0; i < g->output_count; i++)
        for (uint32_t row = 0; row < ROWS; row++)
            if (memcmp((const float *)b->bindings[1 + i].data + row * PART,
                       b->memory + ((size_t)row * g->output_count + i) * PART, PART * sizeof(float)) != 0)
                return false;
    return true;
}

/* values: each node's result, filled in here. */
static bool run_nodes(const scale_graph *scale, const scale_buffers *b, opjit_kernel *const *kernels, float *values,
                      opjit_error *error)
{
    const graph_case *g = &scale->g;
    const uint64_t bytes = (uint64_t)scale->output_elements * 4;
    uint32_t in = 0, between = 0;

    for (uint32_t i = 0; i < g->desc.NodeCount; i++) {
        opjit_binding at[3];
        uint32_t ports = 0, kind = 0;
        while (scale->operators[kind] != g->operators[i].Operator)
            kind++;
        for (; in < g->desc.InputEdgeCount && g->inputs[in].ToNodeIndex == i; in++, ports++)
            at[g->inputs[in].ToNodeInputIndex] = b->bindings[g->inputs[in].GraphInputIndex];
        for (; between < g->desc.IntermediateEdgeCount && g->intermediates[between].ToNodeIndex == i;
             between++, ports++)
            at[g->intermediates[between].ToNodeInputIndex] =
                (opjit_binding){ values + (size_t)g->intermediates[between].FromNodeIndex * scale->output_elements,
                                 bytes };
        at[ports] = (opjit_binding){ values + (size_t)i * scale->output_elements, bytes };
        if (!run(kernels[kind], at, ports + 1, error))
            return false;
    }
    for (uint32_t i = 0; i < scale->output_count; i++)
        if (memcmp(b->bindings[scale->input_count + i].data,
                   values + (size_t)g->outputs[i].FromNodeIndex * scale->output_elements, bytes) != 0)
            return false;
    return true;
}

bool scale_check(opjit_context *context, const scale_graph *g, const scale_buffers *b, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernels[SCALE_OPERATORS] = { NULL };
    float *values;
    bool good = true;

    *error = (opjit_error){ .status = OPJIT_INTERNAL, .message = "other bytes" };
    if (g->shape == SCALE_SPLIT)
        return check_split(g, b);
    options.flags = OPJIT_COMPILE_INTERPRET;
    for (uint32_t i = 0; good && i < SCALE_OPERATORS; i++)
        if (g->operators[i] != NULL)
            good = opjit_compile_operator(context, g->operators[i], &options, &kernels[i], error) == OPJIT_OK;
    values = calloc((size_t)g->g.desc.NodeCount * g->output_elements, sizeof(float));
    good = good && values != NULL && run_nodes(g, b, kernels, values, error);
    free(values);
    for (uint32_t i = 0; i < SCALE_OPERATORS; i++)
        opjit_kernel_release(kernels[i]);
    return good;
}
