/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_in_place.c - outputs in the memory of inputs, wherever the kernel allows it: random operators of every
 * kind and random graphs compute the same bits as with separate buffers, and change nothing else.  To run one case of a
 * failure again: OPJIT_SEED=<seed> OPJIT_CASE=<number> ./property_in_place. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ops/op.h"
#include "tests/machines/emulated.h"
#include "tests/reference/reference.h"
#include "tests/support/checker.h"
#include "tests/support/in_place.h"
#include "tests/support/moves.h"
#include "tests/support/pointwise_case.h"

enum { OPERATOR_CASES = 500, GRAPH_CASES = 400, VALUES = 20, MOST_ELEMENTS = 300 };

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "interpreted, pieces", .flags = OPJIT_COMPILE_INTERPRET, .how = TEST_PIECES },
    { .name = "quick" },
    { .name = "x86-64-v1", .target = "cpu:x86-64-v1" },
    { .name = "x86-64-v2, peak", .target = "cpu:x86-64-v2", .level = OPJIT_LEVEL_PEAK },
    { .name = "x86-64-v3", .target = "cpu:x86-64-v3", .how = TEST_PIECES },
    { .name = "x86-64-v3, small caches", .target = "cpu:x86-64-v3,l1=1024,l2=2048,l3=4096" },
    { .name = "x86-64-v3, small caches, peak, threads", .target = "cpu:x86-64-v3,l1=1024,l2=2048,l3=4096",
      .level = OPJIT_LEVEL_PEAK, .how = TEST_THREADS },
    { .name = "x86-64-v4", .target = "cpu:x86-64-v4" },
    { .name = "peak, threads", .level = OPJIT_LEVEL_PEAK, .how = TEST_THREADS },
};
enum { INTERPRETED = 2 }; /* the first of them */

static uint64_t shared_calls; /* calls with an output in an input's memory */

static const test_mode *draw_mode(test_random *r, bool codegen)
{
    size_t count;
    const test_mode *list = test_modes(modes, codegen ? sizeof modes / sizeof *modes : INTERPRETED, &count);
    return &list[test_random_below(r, count)];
}

static opjit_compile_options options_of(const test_mode *mode)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = mode->flags;
    options.level = mode->level;
    options.target = mode->target;
    return options;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

static void check_operator(in_place_trial *t, opjit_context *context, const DML_OPERATOR_DESC *op, bool codegen)
{
    opjit_operator *made = NULL;
    opjit_error error = { 0 };
    t->mode = draw_mode(t->r, codegen);
    const opjit_compile_options options = options_of(t->mode);
    opjit_status status = opjit_operator_create(context, op, &made, &error);
    if (status == OPJIT_LIMIT) /* a layout that it refuses */
        return;
    ck_assert_msg(status == OPJIT_OK, IN_PLACE_WHERE "%s", IN_PLACE_AT(t), error.message);
    status = test_compile_operator(context, made, &options, &t->kernel, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, IN_PLACE_WHERE "%s", IN_PLACE_AT(t),
                  error.message);
    if (status == OPJIT_OK)
        shared_calls += in_place_check(t);
    opjit_operator_release(made);
}

/* Operators on whole rows: each draws its fields for one input and output of the same shape. */
static void draw_rows(in_place_trial *t, opjit_context *context, bool codegen)
{
    static const DML_OPERATOR_TYPE types[] = {
        DML_OPERATOR_CUMULATIVE_SUMMATION,    DML_OPERATOR_CUMULATIVE_PRODUCT,
        DML_OPERATOR_ACTIVATION_SOFTMAX,      DML_OPERATOR_ACTIVATION_LOG_SOFTMAX,
        DML_OPERATOR_ACTIVATION_HARDMAX,      DML_OPERATOR_ACTIVATION_SOFTMAX1,
        DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, DML_OPERATOR_ACTIVATION_HARDMAX1,
        DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1,
    };
    static const DML_TENSOR_DATA_TYPE reals[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    const uint64_t kind = test_random_below(t->r, sizeof types / sizeof *types);
    const DML_OPERATOR_TYPE type = types[kind];
    test_tensor tensor, scale;
    uint32_t axes[2];
    test_tensor_link(&tensor, reals[test_random_below(t->r, 3)], (uint32_t)test_random_between(t->r, 1, 4));
    test_tensor_random_sizes(t->r, &tensor, MOST_ELEMENTS);
    const uint32_t rank = tensor.buffer.DimensionCount;
    test_tensor_random_layout(t->r, &tensor, true);
    if (tensor.interleaved) {
        tensor.buffer.Strides = NULL;
        tensor.buffer.TotalTensorSizeInBytes = 0;
    }
    axes[0] = (uint32_t)test_random_below(t->r, rank);
    if (test_random_chance(t->r, 60))
        axes[0] = rank - 1;
    axes[1] = (axes[0] + 1) % rank;
    const uint32_t axis_count = rank > 1 && test_random_chance(t->r, 25) ? 2 : 1;
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC scan = { &tensor.desc, &tensor.desc, axes[0],
                                                          (DML_AXIS_DIRECTION)test_random_below(t->r, 2),
                                                          test_random_chance(t->r, 50) };
    const DML_ACTIVATION_SOFTMAX_OPERATOR_DESC softmax = { &tensor.desc, &tensor.desc };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax1 = { &tensor.desc, &tensor.desc, axis_count, axes };
    test_tensor_link(&scale, tensor.buffer.DataType, rank);
    for (uint32_t d = 0; d < rank; d++)
        scale.sizes[d] = 1;
    const bool scaled = test_random_chance(t->r, 50);
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC mvn = {
        &tensor.desc, scaled ? &scale.desc : NULL, NULL, &tensor.desc, axis_count, axes, test_random_chance(t->r, 70),
        0x1p-4f,      NULL
    };
    const void *const descs[] = { &scan, &scan, &softmax, &softmax, &softmax, &softmax1, &softmax1, &softmax1, &mvn };
    t->what = opjit_fe_op_type_name(type);
    check_operator(t, context, &(DML_OPERATOR_DESC){ type, descs[kind] }, codegen);
}

static void draw_operator(in_place_trial *t, opjit_context *context, bool codegen)
{
    static pointwise_case pointwise;
    static move_case move;
    static test_case generator;
    switch (test_random_below(t->r, 4)) {
    case 0: draw_rows(t, context, codegen); return;
    case 1:
        pointwise_case_random(t->r, &ref_pointwise_rows[t->number % ref_pointwise_row_count], MOST_ELEMENTS,
                              &pointwise);
        t->what = opjit_fe_op_type_name(pointwise.op.Type);
        check_operator(t, context, &pointwise.op, codegen);
        return;
    case 2:
        move_case_random(t->r, move_operators[t->number % MOVE_OPERATOR_COUNT], MOST_ELEMENTS, &move);
        t->what = move_operator_name(move.op.Type);
        check_operator(t, context, &move.op, codegen);
        return;
    default:
        test_case_random(t->r, test_operators[t->number % TEST_OPERATOR_COUNT], MOST_ELEMENTS, &generator);
        t->what = test_operator_name(generator.op.Type);
        check_operator(t, context, &generator.op, codegen);
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* Values of one shape, packed. */
typedef struct net {
    in_place_trial *t;
    graph_case graph;
    DML_TENSOR_DATA_TYPE type;
    uint32_t rank, sizes[8], inputs;
    graph_tensor shape, across, flags; /* across: as if it were another matrix of the same shape, transposed */
    struct {
        uint32_t node; /* UINT32_MAX: an input */
        uint32_t input;
    } values[VALUES];
    uint32_t count;
} net;

static void connect(net *n, uint32_t from, uint32_t to, uint32_t input)
{
    if (n->values[from].node == UINT32_MAX)
        graph_input(&n->graph, n->values[from].input, to, input);
    else
        graph_edge(&n->graph, n->values[from].node, 0, to, input);
}

static uint32_t any_value(const net *n)
{
    const uint32_t recent = n->count > 3 ? n->count - 3 : 0;
    return test_random_chance(n->t->r, 60) ? recent + (uint32_t)test_random_below(n->t->r, n->count - recent)
                                           : (uint32_t)test_random_below(n->t->r, n->count);
}

/* What a node reads: the value, or its transpose. */
static const DML_TENSOR_DESC *reading(const net *n)
{
    const bool square = n->rank >= 2 && n->sizes[n->rank - 1] == n->sizes[n->rank - 2];
    return square && test_random_chance(n->t->r, 15) ? &n->across.desc : &n->shape.desc;
}

static void add_node(net *n)
{
    test_random *r = n->t->r;
    const DML_TENSOR_DESC *own = &n->shape.desc;
    const uint32_t a = any_value(n), b = any_value(n), axis = n->rank - 1 - (test_random_chance(r, 15) && n->rank > 1);
    uint32_t node;
    switch (test_random_below(r, 9)) {
    case 0: {
        const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc = { reading(n), own, 1, &axis };
        static const DML_OPERATOR_TYPE kinds[] = { DML_OPERATOR_ACTIVATION_SOFTMAX1,
                                                   DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1,
                                                   DML_OPERATOR_ACTIVATION_HARDMAX1 };
        node = graph_operator(&n->graph, kinds[test_random_below(r, 3)], &desc, NULL);
        connect(n, a, node, 0);
        break;
    }
    case 1: {
        const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc = { reading(n), NULL, NULL, own, 1, &axis, 1, 0x1p-4f,
                                                                      NULL };
        node = graph_operator(&n->graph, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &desc, NULL);
        connect(n, a, node, 0);
        break;
    }
    case 2: {
        const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc = { reading(n), own, axis,
                                                              (DML_AXIS_DIRECTION)test_random_below(r, 2),
                                                              test_random_chance(r, 50) };
        node = graph_operator(&n->graph, DML_OPERATOR_CUMULATIVE_SUMMATION, &desc, NULL);
        connect(n, a, node, 0);
        break;
    }
    case 3: {
        const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc = { own, own, n->type, { .UInt16 = 0x3c00 },
                                                          (int32_t)test_random_between(r, -3, 3), INT32_MAX };
        node = graph_operator(&n->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &desc, NULL);
        connect(n, a, node, 0);
        break;
    }
    case 4: {
        const DML_DIAGONAL_MATRIX1_OPERATOR_DESC mask = {
            NULL,           &n->flags.desc, DML_TENSOR_DATA_TYPE_UINT8,
            { .UInt8 = 1 }, INT32_MIN,      (int32_t)test_random_between(r, -2, 2)
        };
        const DML_ELEMENT_WISE_IF_OPERATOR_DESC desc = { &n->flags.desc, own, reading(n), own };
        const uint32_t flags = graph_operator(&n->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &mask, NULL);
        node = graph_operator(&n->graph, DML_OPERATOR_ELEMENT_WISE_IF, &desc, NULL);
        graph_edge(&n->graph, flags, 0, node, 0);
        connect(n, a, node, 1);
        connect(n, b, node, 2);
        break;
    }
    case 5: {
        const DML_ACTIVATION_GELU_OPERATOR_DESC desc = { reading(n), own };
        node = graph_operator(&n->graph, DML_OPERATOR_ACTIVATION_GELU, &desc, NULL);
        connect(n, a, node, 0);
        break;
    }
    default: {
        static const DML_OPERATOR_TYPE kinds[] = { DML_OPERATOR_ELEMENT_WISE_ADD, DML_OPERATOR_ELEMENT_WISE_SUBTRACT,
                                                   DML_OPERATOR_ELEMENT_WISE_MULTIPLY, DML_OPERATOR_ELEMENT_WISE_MAX };
        const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { own, reading(n), own };
        node = graph_operator(&n->graph, kinds[test_random_below(r, 4)], &desc, NULL);
        connect(n, a, node, 0);
        connect(n, b, node, 1);
    }
    }
    n->values[n->count].node = node;
    n->count++;
}

static void draw_shapes(net *n)
{
    test_random *r = n->t->r;
    uint32_t strides[8], packed = 1;
    n->type = test_random_chance(r, 70) ? DML_TENSOR_DATA_TYPE_FLOAT32 : DML_TENSOR_DATA_TYPE_FLOAT16;
    n->rank = (uint32_t)test_random_between(r, 2, 3);
    for (uint32_t d = 0; d < n->rank; d++)
        n->sizes[d] = (uint32_t)test_random_between(r, 1, d + 1 == n->rank ? 70 : d == 0 ? 6 : 20);
    if (test_random_chance(r, 40))
        n->sizes[n->rank - 1] = n->sizes[n->rank - 2] = (uint32_t)test_random_between(r, 2, 40);
    for (uint32_t d = n->rank; d-- > 0; packed *= n->sizes[d])
        strides[d] = packed;
    graph_tensor_set(&n->shape, n->type, n->rank, n->sizes, NULL, 0);
    graph_tensor_set(&n->flags, DML_TENSOR_DATA_TYPE_UINT8, n->rank, n->sizes, NULL, 0);
    const uint32_t swap = strides[n->rank - 1];
    strides[n->rank - 1] = strides[n->rank - 2];
    strides[n->rank - 2] = swap;
    graph_tensor_set(&n->across, n->type, n->rank, n->sizes, strides, 0);
}

static void check_graph(in_place_trial *t, opjit_context *context, bool codegen)
{
    static net n; /* its tensors point into it */
    opjit_error error = { 0 };
    const uint32_t nodes = (uint32_t)test_random_between(t->r, 1, 8),
                   outputs = (uint32_t)test_random_between(t->r, 1, 3);
    memset(&n, 0, sizeof n);
    n.t = t;
    draw_shapes(&n);
    graph_begin(&n.graph, context, 64);
    n.inputs = (uint32_t)test_random_between(t->r, 1, 3);
    for (uint32_t i = 0; i < n.inputs; i++) {
        n.values[n.count].node = UINT32_MAX;
        n.values[n.count++].input = i;
    }
    for (uint32_t i = 0; i < nodes; i++)
        add_node(&n);
    for (uint32_t i = 0; i < outputs && i < nodes; i++)
        graph_output(&n.graph, n.values[n.count - 1 - i].node, 0, i);
    t->what = "graph";
    t->mode = draw_mode(t->r, codegen);
    const opjit_compile_options options = options_of(t->mode);
    const opjit_status status = test_compile_graph(context, &n.graph.desc, &options, &t->kernel, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, IN_PLACE_WHERE "%s", IN_PLACE_AT(t),
                  error.message);
    if (status == OPJIT_OK && t->number % 2 == 0)
        in_place_compare_lowered(t, &n.graph);
    if (status == OPJIT_OK)
        shared_calls += in_place_check(t);
    graph_end(&n.graph);
}

/* --- the loops ---------------------------------------------------------------------------------------------------- */

static void run(const char *name, uint64_t count, void (*check)(in_place_trial *, opjit_context *, bool))
{
    const test_cases cases = test_cases_init(name, count);
    opjit_context *context = test_context_create();
    const bool codegen = test_have_codegen(context);
    shared_calls = 0;
    for (uint64_t i = cases.first; i < cases.end; i++) {
        test_random r;
        in_place_trial t = { .r = &r, .number = i };
        test_random_init(&r, cases.seed, 77, i);
        check(&t, context, codegen);
    }
    printf("%s: %" PRIu64 " calls in place\n", name, shared_calls);
    ck_assert_msg(!codegen || cases.end - cases.first < 20 || shared_calls > 0, "no call was in place");
    opjit_context_destroy(context);
}

START_TEST(operators_in_place)
{
    run("in_place, operators", OPERATOR_CASES, draw_operator);
}
END_TEST

START_TEST(graphs_in_place)
{
    run("in_place, graphs", GRAPH_CASES, check_graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.in_place");
    TCase *tcase = tcase_create("in_place");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 280);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, operators_in_place);
    tcase_add_test(tcase, graphs_in_place);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
