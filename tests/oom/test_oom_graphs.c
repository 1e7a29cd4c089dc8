/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_graphs.c - graphs without memory: descriptions, the builder, dynamic dimensions, a device (oom_rows.h). */
#define _POSIX_C_SOURCE 200809L
#include <opjit/cache.h>
#include <opjit/device.h>
#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>

#include "tests/oom/oom_rows.h"

static opjit_status graph_with(world *w, uint32_t flags, size_t constant_bytes, opjit_error *error)
{
    static const char *const names[] = { "1.Value" };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    options.flags = flags;
    options.late = names;
    options.late_count = 1;
    status = with_graph(w, constant_bytes, &options, NULL, NULL, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    return status;
}

static opjit_status graph_check(world *w, opjit_error *error)
{
    return with_graph(w, 140, NULL, NULL, NULL, NULL, error);
}

static opjit_status graph_small(world *w, opjit_error *error)
{
    return graph_with(w, OPJIT_COMPILE_INTERPRET, 140, error);
}
static opjit_status graph_bound(world *w, opjit_error *error)
{
    return graph_with(w, OPJIT_COMPILE_INTERPRET, 5000, error);
}
static opjit_status graph_code(world *w, opjit_error *error)
{
    return graph_with(w, 0, 5000, error);
}

/* A context for the fake driver's device, and a kernel with a constant of its own, called once. */
static opjit_status device(world *w, opjit_error *error)
{
    world there = *w;
    opjit_kernel *kernel = NULL;
    float host[35] = { 0 };
    opjit_binding bindings[3] = { { NULL, sizeof host }, { NULL, sizeof host }, { NULL, sizeof host } };
    opjit_call c = OPJIT_CALL_INIT;
    opjit_status status = create_context_for("cuda", &there.context, error);

    if (status == OPJIT_OK)
        status = with_graph(&there, 5000, NULL, NULL, NULL, &kernel, error);
    for (int i = 0; i < 3 && status == OPJIT_OK; i++) {
        status = opjit_device_allocate(there.context, sizeof host, &bindings[i].data, error);
        if (status == OPJIT_OK)
            status = opjit_device_write(there.context, NULL, bindings[i].data, host, sizeof host, error);
    }
    c.bindings = bindings;
    c.binding_count = 3;
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &c, error);
    if (status == OPJIT_OK)
        status = opjit_device_read(there.context, NULL, host, bindings[2].data, sizeof host, error);
    ck_assert(status != OPJIT_OK || (host[0] == 3 && host[1] == 3 && host[2] == 0));
    for (int i = 0; i < 3; i++)
        opjit_device_free(there.context, bindings[i].data);
    opjit_kernel_release(kernel);
    if (there.context != w->context)
        opjit_context_destroy(there.context);
    return status;
}

static opjit_status graph_explain(world *w, opjit_error *error)
{
    int stages = 0;
    const opjit_status status = with_graph(w, 140, NULL, &stages, NULL, NULL, error);

    ck_assert(status != OPJIT_OK || stages >= 7);
    return status;
}

/* Sticky: whichever call the allocation fails in, the last one tells. */
static opjit_status graph_builder(world *w, opjit_error *error)
{
    static const uint32_t axes[] = { 1, 0 };
    static const float data[35] = { 0 };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;
    opjit_graph *g = (opjit_graph *)w;
    opjit_status status = opjit_graph_create(w->context, &g, error);
    opjit_tensor x;

    check_output(status, g);
    if (status != OPJIT_OK)
        return status;
    x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    x = opjit_graph_add(g, x, opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, data, sizeof data, 0));
    for (int i = 0; i < 20; i++) /* more than the arrays begin with */
        x = opjit_graph_add(g, opjit_graph_scalar(g, DML_TENSOR_DATA_TYPE_FLOAT32, 1), x);
    opjit_graph_name(g, x, "sum");
    opjit_graph_output(g, "y", opjit_graph_transpose(g, x, axes));
    options.flags = OPJIT_COMPILE_INTERPRET;
    status = opjit_graph_compile(g, &options, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

/* The matrix with a dimension for its rows. */
static opjit_status dynamic_desc(world *w, opjit_error *error)
{
    static const uint32_t of_rows[] = { OPJIT_DIM(0), 7 };
    static const DML_BUFFER_TENSOR_DESC rows_of = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, of_rows, NULL, 0, 0
    };
    const DML_TENSOR_DESC given = { DML_TENSOR_TYPE_BUFFER, &rows_of };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC fields = {
        NULL, &given, DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 3 }, INT32_MIN, 1
    };
    const DML_OPERATOR_DESC symbolic = { DML_OPERATOR_DIAGONAL_MATRIX1, &fields }, *const operators[] = { &symbolic };
    const DML_OPERATOR_GRAPH_NODE_DESC op = { NULL, "mask" };
    const DML_GRAPH_NODE_DESC node = { DML_GRAPH_NODE_TYPE_OPERATOR, &op };
    const DML_OUTPUT_GRAPH_EDGE_DESC out = { 0, 0, 0, NULL };
    const DML_GRAPH_EDGE_DESC edge = { DML_GRAPH_EDGE_TYPE_OUTPUT, &out };
    const DML_GRAPH_DESC graph = {
        .OutputCount = 1, .NodeCount = 1, .Nodes = &node, .OutputEdgeCount = 1, .OutputEdges = &edge
    };
    const opjit_dim dim = { "n", 1, 40, 20 };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;

    options.flags = OPJIT_COMPILE_INTERPRET;
    const opjit_status status =
        opjit_compile_dynamic_desc(w->context, &dim, 1, &graph, operators, &options, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

/* A product with a constant, of which the kernel keeps a copy. */
static opjit_status kept(world *w, opjit_error *error)
{
    static const uint32_t of_x[] = { 3, 40 }, of_b[] = { 48, 40 };
    static const float data[48 * 40] = { 1 };
    opjit_kernel_info made = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;
    opjit_graph *g = (opjit_graph *)w;
    opjit_status status = opjit_graph_create(w->context, &g, error);

    check_output(status, g);
    if (status != OPJIT_OK)
        return status;
    const opjit_tensor x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, of_x);
    const opjit_tensor b = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, of_b, data, sizeof data, 0);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, x, b, 0, true));
    status = opjit_graph_compile(g, NULL, &kernel, error);
    check_output(status, kernel);
    if (status == OPJIT_OK) {
        ck_assert_int_eq(opjit_kernel_get_info(kernel, &made, NULL), OPJIT_OK);
        ck_assert_uint_ge(made.kept_bytes, sizeof data);
        status = opjit_kernel_optimize(kernel, error);
    }
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

/* clang-format off */
static const oom_row rows[] = {
    { "check_graph", graph_check, false },
    { "compile_graph, interpreted", graph_small, false },
    { "compile_graph, bound constants", graph_bound, false },
    { "graph_explain", graph_explain, false },
    { "graph builder", graph_builder, false },
    { "compile_dynamic_desc", dynamic_desc, false },
    { "compile_graph, code", graph_code, true },
    { "compile_graph, kept memory", kept, true },
    { "a kernel on a device", device, true },
};
/* clang-format on */

START_TEST(fails_one_by_one)
{
    oom_check(&rows[_i], _i == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.graphs");
    TCase *tcase = tcase_create("oom");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 240);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, fails_one_by_one, 0, sizeof rows / sizeof *rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
