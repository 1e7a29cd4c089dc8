/* SPDX-License-Identifier: Apache-2.0 */
/* graph_case.c - see graph_case.h. */
#include "tests/support/graph_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/require.h"

static void *array(uint32_t count, size_t size)
{
    void *memory = calloc(count, size);
    test_require(memory != NULL, "no memory");
    return memory;
}

void graph_begin(graph_case *g, opjit_context *context, uint32_t capacity)
{
    *g = (graph_case){ .context = context, .capacity = capacity };
    g->nodes = array(capacity, sizeof *g->nodes);
    g->operators = array(capacity, sizeof *g->operators);
    g->constants = array(capacity, sizeof *g->constants);
    g->input_edges = array(capacity, sizeof *g->input_edges);
    g->edges = array(capacity, sizeof *g->edges);
    g->output_edges = array(capacity, sizeof *g->output_edges);
    g->inputs = array(capacity, sizeof *g->inputs);
    g->intermediates = array(capacity, sizeof *g->intermediates);
    g->outputs = array(capacity, sizeof *g->outputs);
    g->desc.Nodes = g->nodes;
    g->desc.InputEdges = g->input_edges;
    g->desc.OutputEdges = g->output_edges;
    g->desc.IntermediateEdges = g->edges;
}

void graph_end(graph_case *g)
{
    for (uint32_t i = 0; i < g->capacity; i++) /* a test may have changed NodeCount */
        opjit_operator_release(g->operators[i].Operator);
    free(g->nodes);
    free(g->operators);
    free(g->constants);
    free(g->input_edges);
    free(g->edges);
    free(g->output_edges);
    free(g->inputs);
    free(g->intermediates);
    free(g->outputs);
}

uint32_t graph_operator_of(graph_case *g, opjit_operator *op, const char *label)
{
    const uint32_t i = g->desc.NodeCount++;

    test_require(i < g->capacity, "a graph of more than %u nodes or edges", g->capacity);
    opjit_operator_retain(op);
    g->operators[i] = (DML_OPERATOR_GRAPH_NODE_DESC){ op, label };
    g->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &g->operators[i] };
    return i;
}

uint32_t graph_operator(graph_case *g, DML_OPERATOR_TYPE type, const void *desc, const char *label)
{
    const DML_OPERATOR_DESC op_desc = { type, desc };
    opjit_error error = { 0 };
    opjit_operator *op = NULL;

    test_require(opjit_operator_create(g->context, &op_desc, &op, &error) == OPJIT_OK, "%s", error.message);
    const uint32_t i = graph_operator_of(g, op, label);
    opjit_operator_release(op);
    return i;
}

uint32_t graph_constant(graph_case *g, const void *data, size_t bytes, const char *label)
{
    const uint32_t i = g->desc.NodeCount++;

    test_require(i < g->capacity, "a graph of more than %u nodes or edges", g->capacity);
    g->constants[i] = (DML_CONSTANT_DATA_GRAPH_NODE_DESC){ data, bytes, label };
    g->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_CONSTANT, &g->constants[i] };
    return i;
}

void graph_input(graph_case *g, uint32_t index, uint32_t to, uint32_t input)
{
    const uint32_t i = g->desc.InputEdgeCount++;

    test_require(i < g->capacity, "a graph of more than %u nodes or edges", g->capacity);
    g->inputs[i] = (DML_INPUT_GRAPH_EDGE_DESC){ index, to, input, NULL };
    g->input_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &g->inputs[i] };
    if (g->desc.InputCount <= index)
        g->desc.InputCount = index + 1;
}

void graph_edge(graph_case *g, uint32_t from, uint32_t output, uint32_t to, uint32_t input)
{
    const uint32_t i = g->desc.IntermediateEdgeCount++;

    test_require(i < g->capacity, "a graph of more than %u nodes or edges", g->capacity);
    g->intermediates[i] = (DML_INTERMEDIATE_GRAPH_EDGE_DESC){ from, output, to, input, NULL };
    g->edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &g->intermediates[i] };
}

void graph_output(graph_case *g, uint32_t from, uint32_t output, uint32_t index)
{
    const uint32_t i = g->desc.OutputEdgeCount++;

    test_require(i < g->capacity, "a graph of more than %u nodes or edges", g->capacity);
    g->outputs[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ from, output, index, NULL };
    g->output_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &g->outputs[i] };
    if (g->desc.OutputCount <= index)
        g->desc.OutputCount = index + 1;
}

static opjit_status lower(const graph_case *g, fe_graph *graph, ir_func *out, opjit_error *error)
{
    const fe_subject subject = { .desc = &g->desc };
    fe_options options;

    TRY(opjit_fe_options_read(g->context, NULL, NULL, &options, error));
    TRY(opjit_fe_graph_read(g->context, &subject, true, graph, error));
    return opjit_fe_graph_lower(graph, &options, "test", &opjit_rt_default_allocator, out, error);
}

opjit_status graph_run_lowered(const graph_case *g, void *const *buffers, opjit_error *error)
{
    fe_graph graph = { 0 };
    const ir_run run = { .buffers = buffers };
    ir_func f;
    opjit_status status;

    opjit_rt_arena_init(&graph.arena, &opjit_rt_default_allocator);
    status = lower(g, &graph, &f, error);
    if (status == OPJIT_OK) {
        status = opjit_ir_interpret(&f, &run, error);
        opjit_ir_free(&f);
    }
    opjit_fe_graph_free(&graph);
    return status;
}

void graph_print_lowered(const graph_case *g, char *text, size_t size)
{
    fe_graph graph = { 0 };
    opjit_error error = { 0 };
    rt_bytes out;
    ir_func f;

    opjit_rt_arena_init(&graph.arena, &opjit_rt_default_allocator);
    test_require(lower(g, &graph, &f, &error) == OPJIT_OK, "%s", error.message);
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    opjit_ir_print(&f, &out);
    test_require(!out.failed, "no memory");
    snprintf(text, size, "%.*s", (int)out.size, (const char *)out.data);
    opjit_rt_bytes_free(&out);
    opjit_ir_free(&f);
    opjit_fe_graph_free(&graph);
}

const DML_TENSOR_DESC *graph_tensor_set(graph_tensor *t, DML_TENSOR_DATA_TYPE type, uint32_t rank,
                                        const uint32_t *sizes, const uint32_t *strides, uint64_t bytes)
{
    memcpy(t->sizes, sizes, rank * sizeof *sizes);
    if (strides != NULL)
        memcpy(t->strides, strides, rank * sizeof *strides);
    t->buffer = (DML_BUFFER_TENSOR_DESC){
        type, DML_TENSOR_FLAG_NONE, rank, t->sizes, strides == NULL ? NULL : t->strides, bytes, 0
    };
    t->desc = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &t->buffer };
    return &t->desc;
}
