/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.c - see graphs.h. */
#include "tests/bench/graphs.h"

#include <math.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define U8 DML_TENSOR_DATA_TYPE_UINT8

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static bool along(graph_layout layout, uint32_t dimension)
{
    return layout == GRAPH_FULL || (layout == GRAPH_COLUMNS && dimension == 2) ||
           (layout == GRAPH_ROWS && dimension == 1) || (layout == GRAPH_HEADS && dimension == 0);
}

/* As stored (repeated dimensions are 1), or as a reader sees it. */
static const DML_TENSOR_DESC *describe(graph *g, graph_port *port, graph_value value, bool reader)
{
    uint64_t bytes = value.type == U8 ? 1 : 4;

    for (uint32_t d = 3; d-- > 0;) {
        const bool own = along(value.layout, d);
        port->sizes[d] = own || reader ? g->shape[d] : 1;
        port->strides[d] = own ? (uint32_t)(bytes / (value.type == U8 ? 1 : 4)) : 0;
        bytes *= own ? g->shape[d] : 1;
    }
    port->buffer = (DML_BUFFER_TENSOR_DESC){ .DataType = value.type,
                                             .DimensionCount = 3,
                                             .Sizes = port->sizes,
                                             .Strides = port->strides,
                                             .TotalTensorSizeInBytes = (bytes + 3) & ~UINT64_C(3),
                                             .GuaranteedBaseOffsetAlignment = 64 };
    port->desc = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &port->buffer };
    return &port->desc;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static void begin(graph *g, const uint32_t shape[3])
{
    g->count = g->input_count = 0;
    memcpy(g->shape, shape, sizeof g->shape);
}

static graph_value input(graph *g, graph_layout layout)
{
    return (graph_value){ ~(int32_t)g->input_count++, F32, layout };
}

static graph_node *add(graph *g, DML_OPERATOR_TYPE type, graph_value out, graph_value *result)
{
    graph_node *const node = &g->nodes[g->count];

    memset(node, 0, sizeof *node);
    node->type = type;
    describe(g, &node->ports[GRAPH_PORTS], out, false);
    *result = out;
    result->node = (int32_t)g->count++;
    return node;
}

static const DML_TENSOR_DESC *read(graph *g, graph_node *node, graph_value value)
{
    node->inputs[node->input_count] = value;
    return describe(g, &node->ports[node->input_count++], value, true);
}

static const DML_TENSOR_DESC *output_of(graph_node *node)
{
    return &node->ports[GRAPH_PORTS].desc;
}

static graph_value full(DML_TENSOR_DATA_TYPE type)
{
    return (graph_value){ 0, type, GRAPH_FULL };
}

/* ADD, SUBTRACT, MULTIPLY, MAX, MIN: all of one form. */
static graph_value binary(graph *g, DML_OPERATOR_TYPE type, graph_value a, graph_value b)
{
    graph_value result;
    graph_node *const node = add(g, type, full(F32), &result);

    node->fields.binary.ATensor = read(g, node, a);
    node->fields.binary.BTensor = read(g, node, b);
    node->fields.binary.OutputTensor = output_of(node);
    return result;
}

static graph_value exponential(graph *g, graph_value x)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_ELEMENT_WISE_EXP, full(F32), &result);

    node->fields.unary.InputTensor = read(g, node, x);
    node->fields.unary.OutputTensor = output_of(node);
    return result;
}

static graph_value clip(graph *g, graph_value x, float least, float most)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_ELEMENT_WISE_CLIP, full(F32), &result);

    node->fields.clip.InputTensor = read(g, node, x);
    node->fields.clip.OutputTensor = output_of(node);
    node->fields.clip.Min = least;
    node->fields.clip.Max = most;
    return result;
}

/* Value on diagonals [first, last); elsewhere x, or 0 where x is NULL. */
static graph_value band(graph *g, const graph_value *x, DML_TENSOR_DATA_TYPE type, DML_SCALAR_UNION value,
                        int32_t first, int32_t last)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_DIAGONAL_MATRIX1, full(type), &result);

    node->fields.band.InputTensor = x != NULL ? read(g, node, *x) : NULL;
    node->fields.band.OutputTensor = output_of(node);
    node->fields.band.ValueDataType = type;
    node->fields.band.Value = value;
    node->fields.band.DiagonalFillBegin = first;
    node->fields.band.DiagonalFillEnd = last;
    return result;
}

static graph_value choice(graph *g, graph_value condition, graph_value a, graph_value b)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_ELEMENT_WISE_IF, full(F32), &result);

    node->fields.choice.ConditionTensor = read(g, node, condition);
    node->fields.choice.ATensor = read(g, node, a);
    node->fields.choice.BTensor = read(g, node, b);
    node->fields.choice.OutputTensor = output_of(node);
    return result;
}

static graph_value constant(graph *g, float value)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_FILL_VALUE_CONSTANT, full(F32), &result);

    node->fields.constant.OutputTensor = output_of(node);
    node->fields.constant.ValueDataType = F32;
    node->fields.constant.Value.Float32 = value;
    return result;
}

/* 0, 1, 2, ... along one dimension. */
static graph_value positions(graph *g, graph_layout layout)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_FILL_VALUE_SEQUENCE, (graph_value){ 0, F32, layout }, &result);

    node->fields.sequence.OutputTensor = output_of(node);
    node->fields.sequence.ValueDataType = F32;
    node->fields.sequence.ValueStart.Float32 = 0;
    node->fields.sequence.ValueDelta.Float32 = 1;
    return result;
}

static graph_value softmax(graph *g, graph_value x)
{
    static const uint32_t axis = 2;
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_ACTIVATION_SOFTMAX1, full(F32), &result);

    node->fields.softmax.InputTensor = read(g, node, x);
    node->fields.softmax.OutputTensor = output_of(node);
    node->fields.softmax.AxisCount = 1;
    node->fields.softmax.Axes = &axis;
    return result;
}

static graph_value gelu(graph *g, graph_value x)
{
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_ACTIVATION_GELU, full(F32), &result);

    node->fields.gelu.InputTensor = read(g, node, x);
    node->fields.gelu.OutputTensor = output_of(node);
    return result;
}

static graph_value normalized(graph *g, graph_value x)
{
    static const uint32_t axis = 2;
    graph_value result;
    graph_node *const node = add(g, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, full(F32), &result);

    node->fields.norm.InputTensor = read(g, node, x);
    node->fields.norm.OutputTensor = output_of(node);
    node->fields.norm.AxisCount = 1;
    node->fields.norm.Axes = &axis;
    node->fields.norm.NormalizeVariance = 1;
    node->fields.norm.Epsilon = 1e-5f;
    return result;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* x where the column is at most the row, else -inf. */
static graph_value masked(graph *g, graph_value x, graph_mask mask)
{
    const DML_SCALAR_UNION low = { .Float32 = -INFINITY }, one = { .UInt8 = 1 };

    if (mask == GRAPH_MASK_DIAGONAL)
        return band(g, &x, F32, low, 1, INT32_MAX);
    if (mask == GRAPH_MASK_ADD)
        return binary(g, DML_OPERATOR_ELEMENT_WISE_ADD, x, band(g, NULL, F32, low, 1, INT32_MAX));
    const graph_value condition = band(g, NULL, U8, one, INT32_MIN, 1);
    return choice(g, condition, x, constant(g, -INFINITY));
}

void graph_alibi(graph *g, const uint32_t shape[3], graph_mask mask)
{
    begin(g, shape);
    const graph_value scores = input(g, GRAPH_FULL), slopes = input(g, GRAPH_HEADS);
    const graph_value columns = positions(g, GRAPH_COLUMNS), rows = positions(g, GRAPH_ROWS);
    const graph_value distance = binary(g, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, columns, rows);
    const graph_value bias = binary(g, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, distance, slopes);
    exponential(g, masked(g, binary(g, DML_OPERATOR_ELEMENT_WISE_ADD, scores, bias), mask));
}

void graph_causal_softmax(graph *g, const uint32_t shape[3], graph_mask mask)
{
    begin(g, shape);
    softmax(g, masked(g, input(g, GRAPH_FULL), mask));
}

void graph_chain(graph *g, const uint32_t shape[3], uint32_t length)
{
    begin(g, shape);
    graph_value x = input(g, GRAPH_FULL);
    const graph_value row = input(g, GRAPH_COLUMNS);

    for (uint32_t i = 0; i < length; i++) {
        switch (i % 5) {
        case 0: x = binary(g, DML_OPERATOR_ELEMENT_WISE_ADD, x, row); break;
        case 1: x = binary(g, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, row); break;
        case 2: x = binary(g, DML_OPERATOR_ELEMENT_WISE_MAX, x, row); break;
        case 3: x = binary(g, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, x, row); break;
        default: x = clip(g, x, -0.75f, 0.75f); break;
        }
    }
}

void graph_rows(graph *g, const uint32_t shape[3], bool with_gelu)
{
    begin(g, shape);
    const graph_value x = normalized(g, input(g, GRAPH_FULL));
    softmax(g, with_gelu ? gelu(g, x) : x);
}

void graph_one(graph *g, const uint32_t shape[3], graph_function function)
{
    begin(g, shape);
    const graph_value x = input(g, GRAPH_FULL);

    switch (function) {
    case GRAPH_EXP: exponential(g, x); break;
    case GRAPH_GELU: gelu(g, x); break;
    case GRAPH_SOFTMAX: softmax(g, x); break;
    case GRAPH_NORM: normalized(g, x); break;
    }
}

/* --- operators and edges ------------------------------------------------------------------------------------------ */

static void add_edges(graph *g, uint32_t to)
{
    const graph_node *const node = &g->nodes[to];
    /* DIAGONAL_MATRIX1's optional input is number 0, present or not. */
    for (uint32_t i = 0; i < node->input_count; i++) {
        const int32_t from = node->inputs[i].node;
        if (from < 0) {
            const uint32_t n = g->desc.InputEdgeCount++;
            g->inputs[n] = (DML_INPUT_GRAPH_EDGE_DESC){ .GraphInputIndex = (uint32_t)~from,
                                                        .ToNodeIndex = to,
                                                        .ToNodeInputIndex = i };
            g->input_edges[n] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &g->inputs[n] };
        } else {
            const uint32_t n = g->desc.IntermediateEdgeCount++;
            g->intermediates[n] = (DML_INTERMEDIATE_GRAPH_EDGE_DESC){ .FromNodeIndex = (uint32_t)from,
                                                                      .ToNodeIndex = to,
                                                                      .ToNodeInputIndex = i };
            g->edges[n] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &g->intermediates[n] };
        }
    }
}

bool graph_make(opjit_context *context, graph *g)
{
    opjit_error error;

    g->desc = (DML_GRAPH_DESC){ .InputCount = g->input_count,
                                .OutputCount = 1,
                                .NodeCount = g->count,
                                .Nodes = g->node_descs,
                                .InputEdges = g->input_edges,
                                .OutputEdgeCount = 1,
                                .OutputEdges = &g->output_edge,
                                .IntermediateEdges = g->edges };
    memset(g->operators, 0, sizeof g->operators);
    for (uint32_t i = 0; i < g->count; i++) {
        const DML_OPERATOR_DESC op = { g->nodes[i].type, &g->nodes[i].fields };
        if (opjit_operator_create(context, &op, &g->operators[i], &error) != OPJIT_OK) {
            graph_free(g);
            return subject_complain("operator", &error);
        }
        g->operator_descs[i] = (DML_OPERATOR_GRAPH_NODE_DESC){ g->operators[i], NULL };
        g->node_descs[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &g->operator_descs[i] };
        add_edges(g, i);
    }
    g->output = (DML_OUTPUT_GRAPH_EDGE_DESC){ .FromNodeIndex = g->count - 1 };
    g->output_edge = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &g->output };
    return true;
}

void graph_free(graph *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        opjit_operator_release(g->operators[i]);
}
