/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_graph_refused.c - the messages with which graphs are refused: their structure, counts, owned inputs,
 * cycles, edges whose bytes do not fit, constants, names of late fields. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/checker.h"
#include "tests/support/meter.h"
#include "tests/support/require.h"
#include "tests/unit/frontend/small_graphs.h"

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
    check_refused(&g, OPJIT_LIMIT, "graph: Nodes[1].DataSize: 1099511627777, must be at most 1099511627776 (1 TiB)");
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

int main(void)
{
    Suite *suite = suite_create("fe.graph.refused");
    TCase *tcase = tcase_create("refused");
    SRunner *runner = srunner_create(suite);
    set_tensors();
    tcase_add_test(tcase, structure_is_refused);
    tcase_add_test(tcase, memory_of_counts);
    tcase_add_test(tcase, owned_inputs);
    tcase_add_test(tcase, null_handles_are_refused);
    tcase_add_test(tcase, long_cycles_are_named);
    tcase_add_test(tcase, bytes_that_do_not_fit_are_refused);
    tcase_add_test(tcase, constants_are_checked);
    tcase_add_test(tcase, late_names_are_checked);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
