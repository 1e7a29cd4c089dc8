/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_graph.c - graphs: messages of what is refused, what edges carry, keys, constants, late fields, and that the
 * order of a description makes no difference.  Results are those of the value form; passes are tested elsewhere. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/meter.h"
#include "tests/support/require.h"

enum { ROWS = 3, COLUMNS = 4, COUNT = ROWS * COLUMNS, CAPACITY = 16 };

static const uint32_t shape[] = { ROWS, COLUMNS };

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* 10, 11, 12 ... in the order of the tensor's memory. */
static uint32_t sequence(graph_case *g, const DML_TENSOR_DESC *output, const char *label)
{
    const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC desc = {
        output, DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 10 }, { .Int32 = 1 }
    };
    return graph_operator(g, DML_OPERATOR_FILL_VALUE_SEQUENCE, &desc, label);
}

static uint32_t add(graph_case *g, const DML_TENSOR_DESC *a, const DML_TENSOR_DESC *b, const DML_TENSOR_DESC *output,
                    const char *label)
{
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { a, b, output };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &desc, label);
}

static uint32_t negate(graph_case *g, const DML_TENSOR_DESC *in, const DML_TENSOR_DESC *out, const char *label)
{
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC desc = { in, out };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, label);
}

/* The band's bounds are late fields. */
static uint32_t band(graph_case *g, const DML_TENSOR_DESC *out, const char *label)
{
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc = { NULL, out, DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 7 }, 0, 2 };
    return graph_operator(g, DML_OPERATOR_DIAGONAL_MATRIX1, &desc, label);
}

static graph_tensor packed, transposed, vector, wide, padded, flat, real;

static void set_tensors(void)
{
    graph_tensor_set(&packed, DML_TENSOR_DATA_TYPE_INT32, 2, shape, NULL, 0);
    graph_tensor_set(&transposed, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ COLUMNS, ROWS },
                     (uint32_t[]){ 1, COLUMNS }, 0);
    graph_tensor_set(&vector, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ 1, COLUMNS }, NULL, 0);
    graph_tensor_set(&wide, DML_TENSOR_DATA_TYPE_INT32, 2, shape, (uint32_t[]){ 0, 1 }, 0);
    graph_tensor_set(&padded, DML_TENSOR_DATA_TYPE_INT32, 2, shape, (uint32_t[]){ COLUMNS + 1, 1 }, 0);
    graph_tensor_set(&flat, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ COUNT }, NULL, 0);
    graph_tensor_set(&real, DML_TENSOR_DATA_TYPE_FLOAT32, 2, shape, NULL, 0);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void check_refused(const graph_case *g, opjit_status status, const char *message)
{
    opjit_kernel *kernel = (opjit_kernel *)(uintptr_t)g;
    opjit_error error = { 0 };

    ck_assert_int_eq(opjit_compile_graph(g->context, &g->desc, NULL, &kernel, &error), status);
    ck_assert_str_eq(error.message, message);
    test_require_place(&error);
    if (strstr(message, " of node ") != NULL ||
        strstr(message, "graph: cycle") == message) /* a program can point to it */
        ck_assert_int_ge(error.node, 0);
    ck_assert_int_lt(error.node, (int)g->desc.NodeCount);
    ck_assert_ptr_null(kernel);
    opjit_error checked = { 0 };
    ck_assert_int_eq(opjit_check_graph(g->context, &g->desc, NULL, NULL, &checked), status);
    ck_assert_str_eq(checked.message, message);
    ck_assert_int_eq(checked.node, error.node);
}

/* "sum" adds "a" and "b" and is the output. */
static void begin_sum(graph_case *g, opjit_context *context)
{
    graph_begin(g, context, CAPACITY);
    sequence(g, &packed.desc, "a");
    band(g, &packed.desc, "b");
    add(g, &packed.desc, &packed.desc, &packed.desc, "sum");
    graph_edge(g, 0, 0, 2, 0);
    graph_edge(g, 1, 0, 2, 1);
    graph_output(g, 2, 0, 0);
}

static void check_change(opjit_context *context, void (*change)(graph_case *g), opjit_status status,
                         const char *message)
{
    graph_case g;

    begin_sum(&g, context);
    change(&g);
    check_refused(&g, status, message);
    graph_end(&g);
}

static void no_nodes(graph_case *g)
{
    g->desc.NodeCount = 0;
}
static void null_edges(graph_case *g)
{
    g->desc.IntermediateEdges = NULL;
}
static void no_outputs(graph_case *g)
{
    g->desc.OutputCount = 0;
}
static void too_many(graph_case *g)
{
    g->desc.InputCount = UINT32_MAX;
}
static void too_many_outputs(graph_case *g)
{
    g->desc.OutputCount = 1u << 24;
}
static void node_type(graph_case *g)
{
    g->nodes[1].Type = (DML_GRAPH_NODE_TYPE)7;
}
static void node_desc(graph_case *g)
{
    g->nodes[1].Desc = NULL;
}
static void edge_type(graph_case *g)
{
    g->edges[1].Type = DML_GRAPH_EDGE_TYPE_INPUT;
}
static void edge_desc(graph_case *g)
{
    g->output_edges[0].Desc = NULL;
}
static void no_node(graph_case *g)
{
    g->intermediates[1].ToNodeIndex = 3;
}
static void no_input(graph_case *g)
{
    g->intermediates[1].ToNodeInputIndex = 2;
}
static void no_output(graph_case *g)
{
    g->intermediates[1].FromNodeOutputIndex = 1;
}
static void absent_input(graph_case *g)
{
    graph_edge(g, 0, 0, 1, 0);
}
static void missing_edge(graph_case *g)
{
    g->desc.IntermediateEdgeCount = 1;
}
static void twice(graph_case *g)
{
    graph_input(g, 0, 2, 1);
}
static void output_twice(graph_case *g)
{
    graph_output(g, 1, 0, 0);
}
static void output_missing(graph_case *g)
{
    g->desc.OutputCount = 2;
}
static void self_cycle(graph_case *g)
{
    g->intermediates[0].FromNodeIndex = 2;
}
static void input_index(graph_case *g)
{
    g->intermediates[1].ToNodeInputIndex = 0;
    g->desc.IntermediateEdgeCount = 1;
    graph_input(g, 1, 2, 1);
    g->desc.InputCount = 1;
}

/* An input edge may lead to an input that is OWNED_BY_DML; a node's output and a constant may not. */
START_TEST(owned_inputs)
{
    opjit_context *context = test_context_create();
    static const int32_t data[COUNT];
    graph_tensor owned = packed;

    owned.buffer.Flags = DML_TENSOR_FLAG_OWNED_BY_DML;
    owned.buffer.Sizes = owned.sizes;
    owned.desc.Desc = &owned.buffer;
    for (uint32_t from = 0; from < 3; from++) {
        graph_case g;
        graph_begin(&g, context, CAPACITY);
        if (from == 1)
            sequence(&g, &packed.desc, "a");
        else if (from == 2)
            graph_constant(&g, data, sizeof data, "a");
        add(&g, &packed.desc, &owned.desc, &packed.desc, "sum");
        const uint32_t sum = from > 0;
        graph_input(&g, 0, sum, 0);
        if (from == 0)
            graph_input(&g, 1, sum, 1);
        else
            graph_edge(&g, 0, 0, sum, 1);
        graph_output(&g, sum, 0, 0);
        if (from == 0) {
            opjit_kernel *kernel;
            opjit_error error;
            ck_assert_msg(opjit_compile_graph(context, &g.desc, NULL, &kernel, &error) == OPJIT_OK, "%s",
                          error.message);
            opjit_kernel_release(kernel);
            opjit_tensor_info inputs[] = { OPJIT_TENSOR_INFO_INIT, OPJIT_TENSOR_INFO_INIT };
            ck_assert_int_eq(opjit_check_graph(context, &g.desc, inputs, NULL, &error), OPJIT_OK);
            ck_assert_int_eq(inputs[0].flags, DML_TENSOR_FLAG_NONE);
            ck_assert_int_eq(inputs[1].flags, DML_TENSOR_FLAG_OWNED_BY_DML);
            g.inputs[1].GraphInputIndex = 0; /* owned for one of its readers */
            ck_assert_int_eq(opjit_check_graph(context, &g.desc, inputs, NULL, &error), OPJIT_OK);
            ck_assert_int_eq(inputs[0].flags, DML_TENSOR_FLAG_OWNED_BY_DML);
            ck_assert_uint_eq(inputs[1].rank, 0);
            inputs[1].struct_size = 3;
            ck_assert_int_eq(opjit_check_graph(context, &g.desc, inputs, NULL, &error), OPJIT_INVALID_ARGUMENT);
        } else {
            check_refused(&g, OPJIT_INVALID_ARGUMENT,
                          "graph: IntermediateEdges[0] leads to BTensor of node 1 \"sum\" (ELEMENT_WISE_ADD), whose "
                          "Flags are 0x1 (OWNED_BY_DML): must be 0, only what an input edge leads to is bound as a "
                          "constant");
        }
        graph_end(&g);
    }
    opjit_context_destroy(context);
}
END_TEST

/* Counts without arrays behind them cost next to nothing. */
START_TEST(memory_of_counts)
{
    static const uint32_t counts[] = { 1, 65536, 65537, 1u << 24, UINT32_MAX };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_compile_options interpret = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context;
    opjit_error error;
    test_meter meter;

    interpret.flags = OPJIT_COMPILE_INTERPRET;
    test_meter_begin(&meter);
    options.allocator = &meter.allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        opjit_kernel *kernel;
        graph_case g;
        graph_begin(&g, context, CAPACITY);
        negate(&g, &real.desc, &real.desc, "n");
        graph_input(&g, 0, 0, 0);
        graph_output(&g, 0, 0, 0);
        g.desc.InputCount = counts[i];
        test_meter_reset(&meter);
        const size_t before = meter.live;
        ck_assert_int_eq(opjit_compile_graph(context, &g.desc, &interpret, &kernel, &error),
                         counts[i] <= 65536 ? OPJIT_OK : OPJIT_LIMIT);
        ck_assert_msg(meter.peak < before + 1000000, "%zu bytes for InputCount %u", meter.peak, counts[i]);
        opjit_kernel_release(kernel);
        g.desc.InputCount = 1;
        g.desc.OutputCount = counts[i];
        test_meter_reset(&meter);
        ck_assert_int_eq(opjit_compile_graph(context, &g.desc, &interpret, &kernel, &error),
                         counts[i] == 1       ? OPJIT_OK
                         : counts[i] <= 65536 ? OPJIT_INVALID_ARGUMENT
                                              : OPJIT_LIMIT);
        ck_assert_msg(meter.peak < before + 2000000, "%zu bytes for OutputCount %u", meter.peak, counts[i]);
        opjit_kernel_release(kernel);
        graph_end(&g);
    }
    opjit_context_destroy(context);
    ck_assert_uint_eq(meter.live, 0);
}
END_TEST

START_TEST(structure_is_refused)
{
    opjit_context *context = test_context_create();
    const opjit_status bad = OPJIT_INVALID_ARGUMENT;

    check_change(context, no_nodes, bad, "graph: NodeCount: 0, must be at least 1");
    check_change(context, null_edges, bad, "graph: IntermediateEdges: NULL, must be an array of 2");
    check_change(context, no_outputs, bad, "graph: OutputCount: 0, must be at least 1");
    check_change(context, too_many, OPJIT_LIMIT, "graph: InputCount: 4294967295, must be at most 65536");
    check_change(context, too_many_outputs, OPJIT_LIMIT, "graph: OutputCount: 16777216, must be at most 65536");
    check_change(context, node_type, bad, "graph: Nodes[1].Type: 7, must be 1 (OPERATOR) or 2 (CONSTANT)");
    check_change(context, node_desc, bad, "graph: Nodes[1].Desc: NULL, must be the node's description");
    check_change(context, edge_type, bad, "graph: IntermediateEdges[1].Type: 1, must be 3");
    check_change(context, edge_desc, bad, "graph: OutputEdges[0].Desc: NULL, must be the edge's description");
    check_change(context, no_node, bad, "graph: IntermediateEdges[1].ToNodeIndex: 3, must be below 3 (NodeCount)");
    check_change(
        context, no_input, bad,
        "graph: IntermediateEdges[1].ToNodeInputIndex: 2, must be below 2 (node 2 \"sum\" (ELEMENT_WISE_ADD))");
    check_change(
        context, no_output, bad,
        "graph: IntermediateEdges[1].FromNodeOutputIndex: 1, must be below 1 (node 1 \"b\" (DIAGONAL_MATRIX1))");
    check_change(context, absent_input, bad,
                 "graph: IntermediateEdges[2] leads to InputTensor of node 1 \"b\" (DIAGONAL_MATRIX1), which has none");
    check_change(context, missing_edge, bad, "graph: BTensor of node 2 \"sum\" (ELEMENT_WISE_ADD) has no edge");
    check_change(context, twice, bad,
                 "graph: BTensor of node 2 \"sum\" (ELEMENT_WISE_ADD) is driven twice: by InputEdges[0] and "
                 "IntermediateEdges[1]");
    check_change(context, output_twice, bad,
                 "graph: output 0 is driven twice: by node 2 \"sum\" (ELEMENT_WISE_ADD) and by node 1 \"b\" "
                 "(DIAGONAL_MATRIX1)");
    check_change(context, output_missing, bad, "graph: output 1 of OutputCount 2 has no edge");
    check_change(context, self_cycle, bad,
                 "graph: cycle: node 2 \"sum\" (ELEMENT_WISE_ADD) -> node 2 \"sum\" (ELEMENT_WISE_ADD)");
    check_change(context, input_index, bad, "graph: InputEdges[0].GraphInputIndex: 1, must be below 1 (InputCount)");
    opjit_context_destroy(context);
}
END_TEST

START_TEST(null_handles_are_refused)
{
    opjit_context *context = test_context_create();
    const DML_GRAPH_DESC desc = { 0 };
    opjit_kernel *kernel;
    opjit_error error;

    ck_assert_int_eq(opjit_compile_graph(NULL, &desc, NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "context is NULL");
    ck_assert_int_eq(opjit_compile_graph(context, NULL, NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "desc is NULL");
    ck_assert_int_eq(opjit_compile_graph(context, &desc, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "out_kernel is NULL");
    ck_assert_int_eq(opjit_compile_graph(context, &desc, NULL, &kernel, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_graph_explain(context, &desc, NULL, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "fn is NULL");
    opjit_context_destroy(context);
}
END_TEST

START_TEST(long_cycles_are_named)
{
    opjit_context *context = test_context_create();
    graph_case g;

    graph_begin(&g, context, CAPACITY);
    for (uint32_t i = 0; i < 3; i++)
        negate(&g, &packed.desc, &packed.desc, i == 1 ? NULL : "n");
    for (uint32_t i = 0; i < 3; i++)
        graph_edge(&g, i, 0, (i + 1) % 3, 0);
    sequence(&g, &packed.desc, "s"); /* the cycle leads to no output */
    graph_output(&g, 3, 0, 0);
    check_refused(&g, OPJIT_INVALID_ARGUMENT,
                  "graph: cycle: node 1 (ELEMENT_WISE_NEGATE) -> node 2 \"n\" (ELEMENT_WISE_NEGATE) -> node 0 \"n\" "
                  "(ELEMENT_WISE_NEGATE) -> node 1 (ELEMENT_WISE_NEGATE)");
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* negate reads what sequence writes; live: negate is the output, else only the sequence is. */
static void check_edge(opjit_context *context, graph_tensor *from, graph_tensor *to, graph_tensor *out, bool live,
                       opjit_status status, const char *message)
{
    graph_case g;

    graph_begin(&g, context, CAPACITY);
    sequence(&g, &from->desc, "from");
    negate(&g, &to->desc, &out->desc, "to");
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, live ? 1 : 0, 0, 0);
    check_refused(&g, status, message);
    graph_end(&g);
}

START_TEST(bytes_that_do_not_fit_are_refused)
{
    static const char *const unwritten = "graph: InputTensor of node 1 \"to\" (ELEMENT_WISE_NEGATE) reads bytes that "
                                         "OutputTensor of node 0 \"from\" (FILL_VALUE_SEQUENCE) does not write";
    static const char *const larger =
        "graph: InputTensor of node 1 \"to\" (ELEMENT_WISE_NEGATE) has TotalTensorSizeInBytes 48, must be at most the "
        "16 of OutputTensor of node 0 \"from\" (FILL_VALUE_SEQUENCE)";
    opjit_context *context = test_context_create();
    graph_tensor roomy, tangled;

    for (int live = 0; live < 2; live++) {
        check_edge(context, &vector, &packed, &packed, live, OPJIT_INVALID_ARGUMENT, larger);
        check_edge(context, &padded, &packed, &packed, live, OPJIT_INVALID_ARGUMENT, unwritten);
        graph_tensor_set(&roomy, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ 1, COLUMNS }, NULL, 48);
        check_edge(context, &roomy, &packed, &packed, live, OPJIT_INVALID_ARGUMENT, unwritten);
        check_edge(
            context, &packed, &real, &real, live, OPJIT_INVALID_ARGUMENT,
            "graph: InputTensor of node 1 \"to\" (ELEMENT_WISE_NEGATE) is FLOAT32, must be INT32 as OutputTensor "
            "of node 0 \"from\" (FILL_VALUE_SEQUENCE)");
        /* 0, 3, 2, 5, 4, 7: each element once, but an address alone does not tell which element it is. */
        graph_tensor_set(&tangled, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ 3, 2 }, (uint32_t[]){ 2, 3 }, 0);
        graph_tensor_set(&roomy, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ 2 }, (uint32_t[]){ 5 }, 0);
        check_edge(context, &tangled, &roomy, &roomy, live, OPJIT_LIMIT,
                   "graph: whether InputTensor of node 1 \"to\" (ELEMENT_WISE_NEGATE) reads only bytes that "
                   "OutputTensor of node 0 \"from\" (FILL_VALUE_SEQUENCE) writes was not decided: the layouts "
                   "interleave");
    }
    opjit_context_destroy(context);
}
END_TEST

START_TEST(constants_are_checked)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = test_context_create(), *old = NULL;
    const int32_t data[COUNT] = { 0 };
    graph_case g;

    graph_begin(&g, context, CAPACITY);
    negate(&g, &packed.desc, &packed.desc, "n");
    graph_constant(&g, data, sizeof data - 1, "c");
    graph_edge(&g, 1, 0, 0, 0);
    graph_output(&g, 0, 0, 0);
    check_refused(&g, OPJIT_INVALID_ARGUMENT,
                  "graph: constant node 1 has DataSize 47, must be at least 48 for InputTensor of node 0 \"n\" "
                  "(ELEMENT_WISE_NEGATE)");
    g.constants[1].DataSize = 0;
    check_refused(&g, OPJIT_INVALID_ARGUMENT, "graph: Nodes[1].DataSize: 0, must be at least 1");
    g.constants[1].DataSize = (UINT64_C(1) << 40) + 1;
    check_refused(&g, OPJIT_LIMIT,
                  "graph: Nodes[1].DataSize: 1099511627777, must be at most 1099511627776 (1 TiB)");
    g.constants[1].Data = NULL;
    check_refused(&g, OPJIT_INVALID_ARGUMENT, "graph: Nodes[1].Data: NULL, must be the constant's bytes");
    options.feature_level = DML_FEATURE_LEVEL_6_1;
    ck_assert_int_eq(opjit_context_create(&options, &old, NULL), OPJIT_OK);
    g.context = old;
    check_refused(&g, OPJIT_UNSUPPORTED,
                  "graph: Nodes[1].Type: 2 (CONSTANT), must be 1 (OPERATOR) at feature level 6.1");
    opjit_context_destroy(old);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* --- what edges carry --------------------------------------------------------------------------------------------- */

static void check_lowered(const graph_case *g, void *const *buffers, const int32_t *out, const int32_t *expected,
                          uint32_t count)
{
    opjit_error error = { 0 };

    ck_assert_msg(graph_run_lowered(g, buffers, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(out[i] == expected[i], "element %u is %d, not %d", i, (int)out[i], (int)expected[i]);
}

/* The sequence as `to` sees it, negated into packed tensors. */
static void check_view(opjit_context *context, graph_tensor *from, graph_tensor *to, const int32_t *expected)
{
    int32_t out[COUNT] = { 0 };
    void *const buffers[] = { out };
    graph_tensor plain;
    graph_case g;

    graph_tensor_set(&plain, DML_TENSOR_DATA_TYPE_INT32, to->buffer.DimensionCount, to->sizes, NULL, 0);
    graph_begin(&g, context, CAPACITY);
    sequence(&g, &from->desc, NULL);
    negate(&g, &to->desc, &plain.desc, NULL);
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, 1, 0, 0);
    check_lowered(&g, buffers, out, expected, COUNT);
    graph_end(&g);
}

START_TEST(edges_carry_bytes)
{
    opjit_context *context = test_context_create();
    int32_t expected[COUNT];
    graph_tensor part;

    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i);
    check_view(context, &packed, &packed, expected);
    check_view(context, &packed, &flat, expected); /* reshape */
    check_view(context, &padded, &padded, expected);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i % ROWS * COLUMNS + i / ROWS);
    check_view(context, &packed, &transposed, expected);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i % COLUMNS);
    check_view(context, &vector, &wide, expected); /* broadcast */
    /* Rows of a padded tensor, each element three times. */
    graph_tensor_set(&part, DML_TENSOR_DATA_TYPE_INT32, 3, (uint32_t[]){ 2, 2, 3 }, (uint32_t[]){ COLUMNS + 1, 2, 0 },
                     0);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i / 6 * COLUMNS + i / 3 % 2 * 2);
    check_view(context, &padded, &part, expected);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(one_value_feeds_many)
{
    opjit_context *context = test_context_create();
    int32_t in[COUNT], out[2][COUNT] = { { 0 } }, bytes[3] = { 0 }, expected[COUNT];
    const int32_t data[] = { 5, 6, 7, 8 };
    void *const buffers[] = { in, out[0], out[1], bytes };
    graph_case g;

    for (int i = 0; i < COUNT; i++)
        in[i] = 100 * i;
    graph_begin(&g, context, CAPACITY);
    add(&g, &packed.desc, &wide.desc, &packed.desc, "sum");
    add(&g, &packed.desc, &packed.desc, &packed.desc, "twice");
    graph_constant(&g, data, sizeof data - 4, "c");
    graph_constant(&g, data, sizeof data, "d");
    graph_input(&g, 3, 0, 0); /* inputs 0 to 2 are not used and have no binding */
    graph_edge(&g, 3, 0, 0, 1);
    graph_edge(&g, 0, 0, 1, 0);
    graph_edge(&g, 0, 0, 1, 1);
    graph_output(&g, 0, 0, 1); /* read by other nodes as well */
    graph_output(&g, 1, 0, 0);
    graph_output(&g, 2, 0, 2); /* a constant, as it is */
    for (int i = 0; i < COUNT; i++)
        expected[i] = 2 * (in[i] + data[i % COLUMNS]);
    check_lowered(&g, buffers, out[0], expected, COUNT);
    for (int i = 0; i < COUNT; i++)
        expected[i] /= 2;
    check_lowered(&g, buffers, out[1], expected, COUNT);
    check_lowered(&g, buffers, bytes, data, 3);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* Views where layouts differ, an inline constant, one value with two readers: as in golden/graph. */
START_TEST(lowered_text)
{
    const char *data = getenv("OPJIT_TEST_DATA");
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    const int32_t bias[] = { 5, 6, 7, 8 };
    char path[1024], got[8192], want[8192] = "";
    graph_case g;
    FILE *file;

    options.target = "cpu:x86-64-v1";
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    graph_begin(&g, context, CAPACITY);
    band(&g, &packed.desc, "mask");
    add(&g, &transposed.desc, &transposed.desc, &transposed.desc, "square");
    add(&g, &packed.desc, &wide.desc, &packed.desc, "bias");
    graph_constant(&g, bias, sizeof bias, "values");
    graph_input(&g, 0, 1, 1);
    graph_edge(&g, 0, 0, 1, 0);
    graph_edge(&g, 1, 0, 2, 0);
    graph_edge(&g, 3, 0, 2, 1);
    graph_output(&g, 1, 0, 1);
    graph_output(&g, 2, 0, 0);
    graph_print_lowered(&g, got, sizeof got);
    snprintf(path, sizeof path, "%s/golden/graph/views.ir", data == NULL ? "tests" : data);
    if (getenv("OPJIT_UPDATE_GOLDEN") != NULL) {
        file = fopen(path, "w");
        ck_assert(file != NULL && fputs(got, file) >= 0 && fclose(file) == 0);
    }
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s can't be read", path);
    want[fread(want, 1, sizeof want - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(got, want);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* --- keys --------------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const graph_case *g, rt_bytes *out)
{
    const fe_subject subject = { .desc = &g->desc };
    fe_graph graph = { 0 };

    opjit_rt_arena_init(&graph.arena, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_fe_graph_read(g->context, &subject, false, &graph, NULL), OPJIT_OK);
    opjit_rt_bytes_init(out, &opjit_rt_default_allocator);
    const uint64_t hash = opjit_fe_graph_key(&graph, out);
    ck_assert(!out->failed);
    opjit_fe_graph_free(&graph);
    return hash;
}

static bool equal_keys(const graph_case *a, const graph_case *b)
{
    rt_bytes x, y;
    bool equal;

    const bool equal_hashes = key_of(a, &x) == key_of(b, &y);
    equal = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    ck_assert(equal == equal_hashes);
    opjit_rt_bytes_free(&x);
    opjit_rt_bytes_free(&y);
    return equal;
}

/* The same graph in another order, with other labels and a node that leads nowhere; swap: exchanges operands. */
static void begin_other(graph_case *g, opjit_context *context, bool swap)
{
    graph_begin(g, context, CAPACITY);
    add(g, &packed.desc, &packed.desc, &packed.desc, "other");
    negate(g, &packed.desc, &packed.desc, NULL);
    band(g, &packed.desc, NULL);
    sequence(g, &packed.desc, NULL);
    graph_edge(g, 3, 0, 1, 0);
    graph_edge(g, 2, 0, 0, swap ? 0 : 1);
    graph_edge(g, 3, 0, 0, swap ? 1 : 0);
    graph_output(g, 0, 0, 0);
}

START_TEST(order_and_labels_are_not_in_the_key)
{
    opjit_context *context = test_context_create();
    graph_case a, b, c;

    begin_sum(&a, context);
    begin_other(&b, context, false);
    begin_other(&c, context, true);
    ck_assert(equal_keys(&a, &b));
    ck_assert(!equal_keys(&a, &c));
    graph_end(&a);
    graph_end(&b);
    graph_end(&c);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(contents_of_small_constants_are_in_the_key)
{
    enum { LARGE = FE_FOLDED_BYTES / 4 + 1 };
    opjit_context *context = test_context_create();
    int32_t *data = calloc(LARGE, sizeof *data), *other = calloc(LARGE, sizeof *other);
    graph_tensor large;
    graph_case a, b;

    ck_assert(data != NULL && other != NULL);
    for (uint32_t count = LARGE - 1; count <= LARGE; count++) {
        graph_tensor_set(&large, DML_TENSOR_DATA_TYPE_INT32, 1, &count, NULL, 0);
        graph_begin(&a, context, CAPACITY);
        negate(&a, &large.desc, &large.desc, NULL);
        graph_constant(&a, data, count * sizeof *data, NULL);
        graph_edge(&a, 1, 0, 0, 0);
        graph_output(&a, 0, 0, 0);
        b = a;
        b.nodes =
            (DML_GRAPH_NODE_DESC[]){ a.nodes[0],
                                     { DML_GRAPH_NODE_TYPE_CONSTANT,
                                       &(DML_CONSTANT_DATA_GRAPH_NODE_DESC){ other, count * sizeof *data, "b" } } };
        b.desc.Nodes = b.nodes;
        other[count - 1] = 0;
        ck_assert(equal_keys(&a, &b));
        other[count - 1] = 1;
        ck_assert(equal_keys(&a, &b) == (count == LARGE));
        graph_end(&a);
    }
    free(data);
    free(other);
    opjit_context_destroy(context);
}
END_TEST

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static opjit_kernel *compile(const graph_case *g, opjit_compile_options options)
{
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };

    options.struct_size = sizeof options;
    options.flags |= OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_compile_graph(g->context, &g->desc, &options, &kernel, &error) == OPJIT_OK, "%s",
                  error.message);
    return kernel;
}

static void call(const opjit_kernel *kernel, const opjit_binding *bindings, uint32_t count, const uint64_t *params,
                 uint32_t param_count)
{
    opjit_call c = OPJIT_CALL_INIT;
    opjit_error error = { 0 };

    c.bindings = bindings;
    c.binding_count = count;
    c.params = params;
    c.param_count = param_count;
    ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(kernels_come_from_the_cache)
{
    opjit_context *context = test_context_create();
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernels[2];
    int32_t out[COUNT] = { 0 };
    const opjit_binding binding = { out, sizeof out };
    graph_case a, b;

    begin_sum(&a, context);
    begin_other(&b, context, false);
    kernels[0] = compile(&a, (opjit_compile_options){ 0 });
    kernels[1] = compile(&b, (opjit_compile_options){ 0 });
    ck_assert_ptr_eq(kernels[0], kernels[1]);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.hits, 1);
    call(kernels[0], &binding, 1, NULL, 0);
    for (int i = 0; i < COUNT; i++) {
        const int t = i % COLUMNS - i / COLUMNS;
        ck_assert_int_eq(out[i], 10 + i + (t >= 0 && t < 2 ? 7 : 0));
    }
    ck_assert_int_eq(opjit_kernel_get_info(kernels[0], &info, NULL), OPJIT_OK);
    ck_assert_str_eq((const char *)info.meta + info.buffers[0].name, "Outputs[0]");
    ck_assert_int_eq(strncmp(info.name, "graph_i32_", 10), 0);
    opjit_kernel_release(kernels[0]);
    opjit_kernel_release(kernels[1]);
    graph_end(&a);
    graph_end(&b);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(fields_are_late_by_node)
{
    opjit_context *context = test_context_create();
    const char *const names[] = { "b.DiagonalFillEnd", "0.ValueStart" };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const uint64_t params[] = { 1, 40 };
    int32_t out[COUNT] = { 0 };
    const opjit_binding binding = { out, sizeof out };
    opjit_kernel *kernel;
    graph_case g;

    begin_sum(&g, context);
    options.late = names;
    options.late_count = 2;
    kernel = compile(&g, options);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq((const char *)info.meta + info.params[i].name, names[i]);
    call(kernel, &binding, 1, params, 2);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(out[i], 40 + i + (i % COLUMNS == i / COLUMNS ? 7 : 0));
    opjit_kernel_release(kernel);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(late_names_are_checked)
{
    static const struct {
        const char *names[2], *message;
    } cases[] = {
        { { "b.DiagonalFillEnd", NULL }, "options.late[1]: NULL, must be a field's name" },
        { { "Value", "" }, "options.late[0]: \"Value\", must be \"node.Field\", a node's label or index" },
        { { ".Value", "" }, "options.late[0]: \".Value\", must be \"node.Field\", a node's label or index" },
        { { "9.Value", "" }, "options.late[0]: \"9.Value\", must be \"node.Field\", a node's label or index" },
        { { "99999999999999999999.Value", "" },
          "options.late[0]: \"99999999999999999999.Value\", must be \"node.Field\", a node's label or index" },
        { { "b.Offset", "" },
          "options.late[0]: \"Offset\", must be Value, DiagonalFillBegin or DiagonalFillEnd for DIAGONAL_MATRIX1" },
        { { "sum.Value", "" }, "options.late[0]: \"Value\", but ELEMENT_WISE_ADD has no late field" },
        { { "b.Value", "1.Value" }, "options.late[1]: \"1.Value\" is there twice" },
        { { "a.ValueStart", "lost.Value" },
          "options.late[1]: \"lost.Value\": node 3 \"lost\" (DIAGONAL_MATRIX1) is not used by any output" },
        { { "same.Value", "" }, "options.late[0]: \"same.Value\": 2 nodes have that label; give the node's index" },
    };
    opjit_context *context = test_context_create();
    graph_case g;

    begin_sum(&g, context);
    band(&g, &packed.desc, "lost");
    band(&g, &packed.desc, "same");
    band(&g, &packed.desc, "same");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        opjit_error error = { 0 };
        opjit_kernel *kernel;
        options.late = cases[i].names;
        options.late_count = 2;
        ck_assert_int_eq(opjit_compile_graph(context, &g.desc, &options, &kernel, &error), OPJIT_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, cases[i].message);
    }
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* Kernels of one key with constants of their own; a borrowed constant may change visibly. */
START_TEST(large_constants_are_bound)
{
    enum { LARGE = 2048 };
    opjit_context *context = test_context_create();
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    static _Alignas(64) int32_t data[2][LARGE];
    static int32_t out[LARGE];
    const opjit_binding binding = { out, sizeof out };
    opjit_kernel *kernels[3];
    graph_tensor large;
    graph_case g;

    graph_tensor_set(&large, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ LARGE }, NULL, 0);
    graph_begin(&g, context, CAPACITY);
    negate(&g, &large.desc, &large.desc, NULL);
    graph_constant(&g, data[0], sizeof data[0], NULL);
    graph_edge(&g, 1, 0, 0, 0);
    graph_output(&g, 0, 0, 0);
    for (int i = 0; i < LARGE; i++) {
        data[0][i] = i;
        data[1][i] = 5 * i;
    }
    kernels[0] = compile(&g, options);
    g.constants[1].Data = data[1];
    kernels[1] = compile(&g, options);
    options.flags = OPJIT_COMPILE_BORROW_CONSTANTS;
    kernels[2] = compile(&g, options);
    graph_end(&g);
    opjit_context_destroy(context);
    data[0][3] = data[1][3] = 1000;
    for (int k = 0; k < 3; k++) {
        call(kernels[k], &binding, 1, NULL, 0);
        ck_assert_int_eq(out[LARGE - 1], -(k == 0 ? 1 : 5) * (LARGE - 1));
        ck_assert_int_eq(out[3], k == 0 ? -3 : k == 1 ? -15 : -1000);
        ck_assert_int_eq(opjit_kernel_optimize(kernels[k], NULL), OPJIT_OK);
        opjit_kernel_release(kernels[k]);
    }
}
END_TEST

/* --- size --------------------------------------------------------------------------------------------------------- */

START_TEST(long_chains_are_read)
{
    enum { NODES = 20000 };
    opjit_context *context = test_context_create();
    int32_t out[COUNT] = { 0 }, expected[COUNT];
    void *const buffers[] = { out };
    graph_case g;

    graph_begin(&g, context, NODES);
    sequence(&g, &packed.desc, NULL);
    for (uint32_t i = 1; i < NODES; i++) {
        negate(&g, &packed.desc, &packed.desc, NULL);
        graph_edge(&g, i - 1, 0, i, 0);
    }
    graph_output(&g, NODES - 1, 0, 0);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i);
    check_lowered(&g, buffers, out, expected, COUNT);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.graph");
    TCase *refused = tcase_create("refused"), *edges = tcase_create("edges"), *kernels = tcase_create("kernels");
    SRunner *runner;
    int failed;

    set_tensors();
    tcase_add_test(refused, structure_is_refused);
    tcase_add_test(refused, memory_of_counts);
    tcase_add_test(refused, owned_inputs);
    tcase_add_test(refused, null_handles_are_refused);
    tcase_add_test(refused, long_cycles_are_named);
    tcase_add_test(refused, bytes_that_do_not_fit_are_refused);
    tcase_add_test(refused, constants_are_checked);
    tcase_add_test(refused, late_names_are_checked);
    suite_add_tcase(suite, refused);
    tcase_add_test(edges, edges_carry_bytes);
    tcase_add_test(edges, one_value_feeds_many);
    tcase_add_test(edges, lowered_text);
    tcase_add_test(edges, long_chains_are_read);
    tcase_set_timeout(edges, 60);
    suite_add_tcase(suite, edges);
    tcase_add_test(kernels, order_and_labels_are_not_in_the_key);
    tcase_add_test(kernels, contents_of_small_constants_are_in_the_key);
    tcase_add_test(kernels, kernels_come_from_the_cache);
    tcase_add_test(kernels, fields_are_late_by_node);
    tcase_add_test(kernels, large_constants_are_bound);
    suite_add_tcase(suite, kernels);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
