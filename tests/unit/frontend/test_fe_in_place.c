/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_in_place.c - which outputs a kernel allows in the memory of which inputs, for CPUs and for grids of threads,
 * and that several pairs at a time are right where each needs a schedule of its own. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define U8 DML_TENSOR_DATA_TYPE_UINT8

enum { N = 131 }; /* not a multiple of any vector width */

typedef struct shapes {
    graph_tensor matrix, wide, across, row, column, flags; /* across: the same memory, transposed */
} shapes;

static void make_shapes(shapes *s)
{
    const uint32_t square[] = { N, N }, wide[] = { N, 2 * N };
    const uint32_t turned[] = { 1, N }, repeated[] = { 0, 1 }, each[] = { 1, 0 };
    graph_tensor_set(&s->matrix, F32, 2, square, NULL, 0);
    graph_tensor_set(&s->wide, F32, 2, wide, NULL, 0);
    graph_tensor_set(&s->across, F32, 2, square, turned, 0);
    graph_tensor_set(&s->row, F32, 2, square, repeated, 0);
    graph_tensor_set(&s->column, F32, 2, square, each, 0);
    graph_tensor_set(&s->flags, U8, 2, square, NULL, 0);
}

/* --- graphs of one output, Outputs[0] ----------------------------------------------------------------------------- */

static uint32_t softmax(graph_case *g, const DML_TENSOR_DESC *in, const shapes *s, DML_OPERATOR_TYPE type,
                        uint32_t axis)
{
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc = { in, &s->matrix.desc, 1, &axis };
    return graph_operator(g, type, &desc, "softmax");
}

static uint32_t scan(graph_case *g, const DML_TENSOR_DESC *in, const shapes *s, uint32_t axis, bool backward)
{
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc = {
        in, &s->matrix.desc, axis, backward ? DML_AXIS_DIRECTION_DECREASING : DML_AXIS_DIRECTION_INCREASING, backward
    };
    return graph_operator(g, backward ? DML_OPERATOR_CUMULATIVE_PRODUCT : DML_OPERATOR_CUMULATIVE_SUMMATION, &desc,
                          "scan");
}

static uint32_t normalize(graph_case *g, const shapes *s, uint32_t axis)
{
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc = {
        &s->matrix.desc, NULL, NULL, &s->matrix.desc, 1, &axis, 1, 0x1p-10f, NULL
    };
    return graph_operator(g, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &desc, "normalize");
}

static uint32_t add(graph_case *g, const DML_TENSOR_DESC *b, const shapes *s)
{
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { &s->matrix.desc, b, &s->matrix.desc };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &desc, "add");
}

/* x where the column is not after the row, else -inf. */
static uint32_t masked(graph_case *g, const shapes *s, const DML_TENSOR_DESC *x)
{
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC seen = { NULL, &s->flags.desc, U8, { .UInt8 = 1 }, INT32_MIN, 1 };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC never = { &s->matrix.desc, F32, { .UInt32 = 0xff800000 } };
    const DML_ELEMENT_WISE_IF_OPERATOR_DESC desc = { &s->flags.desc, x, &s->matrix.desc, &s->matrix.desc };
    const uint32_t flags = graph_operator(g, DML_OPERATOR_DIAGONAL_MATRIX1, &seen, "seen");
    const uint32_t low = graph_operator(g, DML_OPERATOR_FILL_VALUE_CONSTANT, &never, "never");
    const uint32_t node = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_IF, &desc, "masked");
    graph_edge(g, flags, 0, node, 0);
    graph_edge(g, low, 0, node, 2);
    return node;
}

static uint32_t gelu(graph_case *g, const shapes *s)
{
    const DML_ACTIVATION_GELU_OPERATOR_DESC desc = { &s->matrix.desc, &s->matrix.desc };
    return graph_operator(g, DML_OPERATOR_ACTIVATION_GELU, &desc, "gelu");
}

static void one(graph_case *g, uint32_t node)
{
    graph_input(g, 0, node, 0);
    graph_output(g, node, 0, 0);
}

static void scan_rows(graph_case *g, const shapes *s) { one(g, scan(g, &s->matrix.desc, s, 1, false)); }
static void scan_backward(graph_case *g, const shapes *s) { one(g, scan(g, &s->matrix.desc, s, 1, true)); }
static void scan_columns(graph_case *g, const shapes *s) { one(g, scan(g, &s->matrix.desc, s, 0, false)); }
static void scan_across(graph_case *g, const shapes *s) { one(g, scan(g, &s->across.desc, s, 1, false)); }
static void softmax_rows(graph_case *g, const shapes *s)
{
    one(g, softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_SOFTMAX1, 1));
}
static void log_softmax_rows(graph_case *g, const shapes *s)
{
    one(g, softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, 1));
}
static void hardmax_rows(graph_case *g, const shapes *s)
{
    one(g, softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_HARDMAX1, 1));
}
static void softmax_across(graph_case *g, const shapes *s)
{
    one(g, softmax(g, &s->across.desc, s, DML_OPERATOR_ACTIVATION_SOFTMAX1, 1));
}
static void layer_norm(graph_case *g, const shapes *s) { one(g, normalize(g, s, 1)); }

static void chain_with_mask(graph_case *g, const shapes *s)
{
    const uint32_t first = add(g, &s->row.desc, s), middle = masked(g, s, &s->matrix.desc), last = gelu(g, s);
    graph_input(g, 0, first, 0);
    graph_input(g, 1, first, 1);
    graph_edge(g, first, 0, middle, 1);
    graph_edge(g, middle, 0, last, 0);
    graph_output(g, last, 0, 0);
}

static void causal_softmax(graph_case *g, const shapes *s)
{
    const uint32_t first = masked(g, s, &s->matrix.desc);
    const uint32_t last = softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_SOFTMAX1, 1);
    graph_input(g, 0, first, 1);
    graph_edge(g, first, 0, last, 0);
    graph_output(g, last, 0, 0);
}

static void norm_and_residual(graph_case *g, const shapes *s)
{
    const uint32_t first = normalize(g, s, 1), last = add(g, &s->matrix.desc, s);
    graph_input(g, 0, first, 0);
    graph_edge(g, first, 0, last, 0);
    graph_input(g, 0, last, 1);
    graph_output(g, last, 0, 0);
}

static void transpose(graph_case *g, const shapes *s)
{
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = { &s->across.desc, &s->matrix.desc, NULL };
    one(g, graph_operator(g, DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc, "transpose"));
}

/* One input read directly and transposed: the same binding, read twice. */
static void add_own_transpose(graph_case *g, const shapes *s)
{
    const uint32_t node = add(g, &s->across.desc, s);
    graph_input(g, 0, node, 0);
    graph_input(g, 0, node, 1);
    graph_output(g, node, 0, 0);
}

static void reversed(graph_case *g, const shapes *s)
{
    const uint32_t offsets[2] = { 0, 0 }, windows[2] = { N, N };
    const int32_t strides[2] = { 1, -1 };
    const DML_SLICE1_OPERATOR_DESC desc = { &s->matrix.desc, &s->matrix.desc, 2, offsets, windows, strides };
    one(g, graph_operator(g, DML_OPERATOR_SLICE1, &desc, "reversed"));
}

static void broadcast(graph_case *g, const shapes *s)
{
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = { &s->row.desc, &s->matrix.desc, NULL };
    one(g, graph_operator(g, DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc, "broadcast"));
}

static void doubled(graph_case *g, const shapes *s)
{
    const DML_TENSOR_DESC both[] = { s->matrix.desc, s->matrix.desc };
    const DML_JOIN_OPERATOR_DESC desc = { 2, both, &s->wide.desc, 1 };
    const uint32_t node = graph_operator(g, DML_OPERATOR_JOIN, &desc, "join");
    graph_input(g, 0, node, 0);
    graph_input(g, 0, node, 1);
    graph_output(g, node, 0, 0);
}

/* Rows that are normalized, read from columns that are. */
static void rows_of_columns(graph_case *g, const shapes *s)
{
    const uint32_t first = softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_SOFTMAX1, 0);
    const uint32_t last = softmax(g, &s->matrix.desc, s, DML_OPERATOR_ACTIVATION_SOFTMAX1, 1);
    graph_input(g, 0, first, 0);
    graph_edge(g, first, 0, last, 0);
    graph_output(g, last, 0, 0);
}

static const struct {
    const char *name;
    void (*build)(graph_case *, const shapes *);
    uint32_t mask; /* of the output */
} kinds[] = {
    { "scan", scan_rows, 1 },
    { "scan, backward, exclusive", scan_backward, 1 },
    { "scan along columns", scan_columns, 1 },
    { "softmax", softmax_rows, 1 },
    { "log softmax", log_softmax_rows, 1 },
    { "hardmax", hardmax_rows, 1 },
    { "layer norm", layer_norm, 1 },
    { "chain with a mask; its row is no matrix", chain_with_mask, 1 },
    { "causal softmax", causal_softmax, 1 },
    { "layer norm and the row itself", norm_and_residual, 1 },
    { "scan of rows that are columns", scan_across, 0 },
    { "softmax of rows that are columns", softmax_across, 0 },
    { "transpose", transpose, 0 },
    { "sum with its own transpose", add_own_transpose, 0 },
    { "reversed rows", reversed, 0 },
    { "broadcast row", broadcast, 0 },
    { "joined twice", doubled, 0 },
    { "softmax of columns, then of rows", rows_of_columns, 1 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void check_kind(opjit_context *context, uint32_t kind, const char *target)
{
    static shapes s;
    graph_case g;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    make_shapes(&s);
    graph_begin(&g, context, 16);
    kinds[kind].build(&g, &s);
    options.flags = OPJIT_COMPILE_INTERPRET;
    options.target = target;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s, %s: %s",
                  kinds[kind].name, target, error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_msg(info.buffers[info.inputs].alias_inputs == kinds[kind].mask, "%s, %s: %u, and should be %u",
                  kinds[kind].name, target, info.buffers[info.inputs].alias_inputs, kinds[kind].mask);
    opjit_kernel_release(kernel);
    graph_end(&g);
}

START_TEST(allowed)
{
    static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4", "nvptx:sm_90", "spirv",
                                           "cpu:x86-64-v3,l1=1024,l2=1024,l3=1024" };
    opjit_context *context = test_context_create();
    for (uint32_t i = 0; i < sizeof targets / sizeof *targets; i++)
        check_kind(context, (uint32_t)_i, targets[i]);
    opjit_context_destroy(context);
}
END_TEST

/* Two outputs, each the negative of an input under a mask, whose rows end in vectors that reach back over stored
 * elements: these must not be computed again, whichever pairs are in place. */
START_TEST(several_pairs)
{
    static shapes s;
    static float values[4][N * N];
    graph_case g;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    opjit_context *context = test_context_create();
    make_shapes(&s);
    graph_begin(&g, context, 16);
    for (uint32_t i = 0; i < 2; i++) {
        const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC desc = { &s.matrix.desc, &s.matrix.desc };
        const uint32_t negate = graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, "negate");
        const uint32_t mask = masked(&g, &s, &s.matrix.desc);
        graph_input(&g, i, negate, 0);
        graph_edge(&g, negate, 0, mask, 1);
        graph_output(&g, mask, 0, i);
    }
    options.target = "cpu:x86-64-v2";
    options.flags = test_have_codegen(context) ? 0 : OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t pairs = 0; pairs < 4; pairs++) {
        opjit_binding bindings[4];
        opjit_call call = OPJIT_CALL_INIT;
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t home = i >= 2 && (pairs >> (i - 2) & 1) != 0 ? i - 2 : i;
            for (uint32_t k = 0; k < N * N; k++)
                values[i][k] = (float)(i * 10000 + k);
            bindings[i] = (opjit_binding){ values[home], sizeof values[home] };
        }
        call.binding_count = 4;
        call.bindings = bindings;
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%u: %s", pairs, error.message);
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t k = 0; k < N * N; k++)
                ck_assert_msg(((const float *)bindings[2 + i].data)[k] ==
                                  (k % N <= k / N ? -(float)(i * 10000 + k) : -HUGE_VALF),
                              "pairs %u, output %u, %u", pairs, i, k);
    }
    opjit_kernel_release(kernel);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.in_place");
    TCase *tcase = tcase_create("in_place");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, allowed, 0, KINDS);
    tcase_add_test(tcase, several_pairs);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
