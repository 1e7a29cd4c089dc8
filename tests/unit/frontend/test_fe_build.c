/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_build.c - the graph builder: names, constants, operators that were made already, what a masked softmax
 * becomes, and that memory is proportional to the graph.  That every operator is built as by hand property.builder
 * says. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/reflect.h>

#include "tests/support/meter.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32

static const uint32_t sizes_2_3[] = { 2, 3 }, sizes_3_2[] = { 3, 2 }, size_6[] = { 6 };

static opjit_context *make_context(const opjit_allocator *allocator, uint32_t level)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    options.allocator = allocator;
    options.feature_level = level;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    return context;
}

static opjit_graph *make_graph(opjit_context *context)
{
    opjit_graph *g = NULL;
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    return g;
}

static opjit_kernel *compile(opjit_graph *g)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    options.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_graph_compile(g, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    return kernel;
}

static opjit_tensor input(opjit_graph *g, const uint32_t *sizes)
{
    return opjit_graph_input(g, NULL, F32, 2, sizes);
}

/* --- what graphs become ------------------------------------------------------------------------------------------- */

/* [batch,n,n] scores, masked and made weights: one stage, without a workspace of the tensor. */
START_TEST(causal_softmax)
{
    const uint32_t sizes[] = { 4, 64, 64 };
    opjit_context *context = make_context(NULL, 0);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const DML_GRAPH_DESC *desc = NULL;
    opjit_graph *g = make_graph(context);
    opjit_plan *plan = NULL;
    const opjit_tensor x = opjit_graph_input(g, "scores", F32, 3, sizes);
    opjit_tensor masked;
    if (_i == 0) /* the mask as a tensor of its own, broadcast over the batch */
        masked = opjit_graph_add(g, x, opjit_graph_band(g, F32, 2, sizes + 1, -INFINITY, 1, INT32_MAX));
    else
        masked = opjit_graph_fill_band(g, x, -INFINITY, 1, INT32_MAX);
    opjit_graph_output(g, "weights", opjit_graph_softmax(g, masked, 2));
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_plan_graph(context, desc, NULL, &plan, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_plan_get_info(plan, &info, NULL), OPJIT_OK);
    ck_assert_uint_eq(info.meta->steps / info.meta->variants, 1);
    ck_assert_uint_eq(info.meta->shared_size, 0);
    opjit_plan_destroy(plan);

    opjit_kernel *kernel = compile(g);
    static float scores[4][64][64], weights[4][64][64];
    const opjit_binding bindings[] = { { scores, sizeof scores }, { weights, sizeof weights } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    for (int row = 0; row < 64; row++) {
        ck_assert_float_eq_tol(weights[3][row][0], 1.0f / (float)(row + 1), 1e-6f);
        ck_assert(row == 63 || weights[3][row][row + 1] == 0);
    }
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 0), "scores");
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 1), "weights");
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* Kernels of graphs that differ in names differ; messages of calls have the names. */
START_TEST(names)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_kernel *kernels[4];
    opjit_error error;
    for (int i = 0; i < 4; i++) {
        opjit_graph *g = make_graph(context);
        const opjit_tensor x = opjit_graph_input(g, i == 3 ? NULL : "rows", F32, 2, sizes_2_3);
        opjit_graph_output(g, i == 1 ? "other" : i == 3 ? NULL : "result", opjit_graph_exp(g, x));
        kernels[i] = compile(g);
        opjit_graph_destroy(g);
    }
    ck_assert_ptr_eq(kernels[0], kernels[2]);
    ck_assert_ptr_ne(kernels[0], kernels[1]);
    ck_assert_ptr_ne(kernels[0], kernels[3]);
    float memory[6];
    const opjit_binding bindings[] = { { memory, sizeof memory }, { memory + 1, 4 } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernels[0], &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "result") != NULL, "%s", error.message);
    for (int i = 0; i < 4; i++)
        opjit_kernel_release(kernels[i]);
    opjit_context_destroy(context);
}
END_TEST

/* Constants, copied and lent, small and large; a late field by its node's name; a graph that goes on once compiled. */
START_TEST(constants_and_late_fields)
{
    enum { MANY = 2000 };
    static _Alignas(64) float large[MANY], out[MANY], first[MANY];
    const uint32_t sizes[] = { MANY };
    const float three = 3;
    const char *const late[] = { "offset.Value" };
    float copied = 2;
    opjit_context *context = make_context(NULL, 0);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL, *longer = NULL;
    opjit_graph *g = make_graph(context);
    const opjit_tensor factor = opjit_graph_constant(g, F32, 1, (const uint32_t[]){ 1 }, &copied, 4, 0);
    const opjit_tensor data = opjit_graph_constant(g, F32, 1, sizes, large, sizeof large, OPJIT_GRAPH_BORROW);
    const opjit_tensor offset = opjit_graph_scalar(g, F32, 0);
    uint64_t param = 0;
    copied = 99; /* the graph has its own */
    for (int i = 0; i < MANY; i++)
        large[i] = (float)i;
    opjit_graph_name(g, offset, "offset");
    const opjit_tensor sum = opjit_graph_add(g, opjit_graph_multiply(g, data, factor), offset);
    opjit_graph_output(g, "sum", sum);
    options.flags = OPJIT_COMPILE_INTERPRET;
    options.late = late;
    options.late_count = 1;
    ck_assert_int_eq(opjit_graph_compile(g, &options, &kernel, NULL), OPJIT_OK);
    memcpy(&param, &three, sizeof three);
    const opjit_binding bindings[] = { { out, sizeof out }, { first, sizeof first } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 1;
    call.params = &param;
    call.param_count = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert(out[0] == 3 && out[MANY - 1] == 2 * (MANY - 1) + 3);
    opjit_graph_output(g, "first", opjit_graph_negate(g, sum));
    options.late_count = 0;
    ck_assert_int_eq(opjit_graph_compile(g, &options, &longer, NULL), OPJIT_OK);
    opjit_graph_destroy(g);
    call.binding_count = 2;
    call.param_count = 0;
    ck_assert_int_eq(opjit_kernel_call(longer, &call, NULL), OPJIT_OK);
    ck_assert(out[5] == 10 && first[5] == -10);
    opjit_kernel_release(kernel);
    opjit_kernel_release(longer);
    opjit_context_destroy(context);
}
END_TEST

/* What is no operator's own output is copied: an input, a view, a constant; and one output twice. */
START_TEST(outputs_that_are_copied)
{
    const float in[6] = { 1, 2, 3, 4, 5, 6 }, constant = 7;
    float out[6][6];
    opjit_context *context = make_context(NULL, 0);
    opjit_graph *g = make_graph(context);
    const opjit_tensor x = input(g, sizes_2_3), y = opjit_graph_negate(g, x);
    opjit_graph_output(g, NULL, x);
    opjit_graph_output(g, NULL, opjit_graph_transpose(g, x, (const uint32_t[]){ 1, 0 }));
    opjit_graph_output(g, NULL, opjit_graph_constant(g, F32, 1, (const uint32_t[]){ 1 }, &constant, 4, 0));
    opjit_graph_output(g, NULL, opjit_graph_reshape(g, y, 1, size_6));
    opjit_graph_output(g, NULL, y);
    opjit_graph_output(g, "again", y);
    opjit_kernel *kernel = compile(g);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_uint_eq(info.outputs, 6);
    ck_assert_uint_eq(info.buffers[2].rank, 2);
    ck_assert_uint_eq(info.buffers[2].sizes[0], 3);
    ck_assert_uint_eq(info.buffers[4].rank, 1);
    opjit_binding bindings[7] = { { (void *)(uintptr_t)in, sizeof in } };
    for (int i = 0; i < 6; i++)
        bindings[1 + i] = (opjit_binding){ out[i], sizeof out[i] };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 7, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert_mem_eq(out[0], in, sizeof in);
    ck_assert(out[1][0] == 1 && out[1][1] == 4 && out[1][5] == 6);
    ck_assert(out[2][0] == 7 && out[3][5] == -6 && out[4][5] == -6 && out[5][0] == -1);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* An operator that was made already, with layouts of its own: it reads the input's bytes as [3,2]. */
START_TEST(operators_that_were_made)
{
    const DML_BUFFER_TENSOR_DESC buffer = { F32, DML_TENSOR_FLAG_NONE, 2, sizes_3_2, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC negate = { &tensor, &tensor };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ELEMENT_WISE_NEGATE, &negate };
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = NULL;
    opjit_graph *g = make_graph(context);
    opjit_tensor_type type;
    opjit_error error;
    opjit_tensor x = input(g, sizes_2_3), y[2];
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_graph_add_operator(g, op, "own", &x, 1, y, 1), OPJIT_OK);
    opjit_operator_release(op); /* the graph has it */
    ck_assert_int_eq(opjit_graph_get_type(g, y[0], &type), OPJIT_OK);
    ck_assert_uint_eq(type.sizes[0], 3);
    opjit_graph_output(g, NULL, y[0]);
    opjit_kernel_release(compile(g));
    ck_assert_int_eq(opjit_graph_add_operator(g, op, NULL, &x, 1, y, 2), OPJIT_INVALID_ARGUMENT);
    opjit_graph_status(g, &error);
    ck_assert_str_eq(error.message, "ELEMENT_WISE_NEGATE output_count: 2, must be 1");
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* At a level whose fills have rank 4 alone, and that has no constants. */
START_TEST(feature_levels)
{
    const uint32_t sizes[] = { 1, 1, 2, 3 };
    opjit_context *context = make_context(NULL, DML_FEATURE_LEVEL_3_0);
    opjit_graph *g = make_graph(context);
    opjit_error error;
    const opjit_tensor x = opjit_graph_input(g, NULL, F32, 4, sizes);
    const opjit_tensor half = opjit_graph_scalar(g, DML_TENSOR_DATA_TYPE_FLOAT16, 0.5);
    opjit_graph_output(g, NULL, opjit_graph_multiply(g, x, opjit_graph_cast(g, half, F32)));
    opjit_kernel_release(compile(g));
    opjit_graph_constant(g, F32, 4, sizes, sizes, 24, 0);
    ck_assert_int_eq(opjit_graph_status(g, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "graph_constant: feature level 3.0, must be at least 6.2");
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */

enum { THREADS = 4 };

static void *build_and_compile(void *context)
{
    opjit_graph *g = make_graph(context);
    const opjit_tensor x = opjit_graph_input(g, "x", F32, 2, sizes_2_3);
    opjit_tensor y = x;
    for (int i = 0; i < 50; i++)
        y = opjit_graph_multiply(g, opjit_graph_add(g, y, x), opjit_graph_scalar(g, F32, i));
    opjit_graph_output(g, "y", y);
    opjit_kernel *kernel = compile(g);
    opjit_graph_destroy(g);
    return kernel;
}

/* Different graphs of one context. */
START_TEST(graphs_on_threads)
{
    opjit_context *context = make_context(NULL, 0);
    pthread_t threads[THREADS];
    void *kernels[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, build_and_compile, context), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], &kernels[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_ptr_eq(kernels[i], kernels[0]);
        opjit_kernel_release(kernels[i]);
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- size --------------------------------------------------------------------------------------------------------- */

enum { FEW = 1000, MANY = 10000 };

/* Peak bytes and allocations of building and describing so many nodes. */
static void build_many(uint32_t count, size_t *peak, size_t *calls)
{
    test_meter meter;
    const DML_GRAPH_DESC *desc = NULL;
    test_meter_begin(&meter);
    opjit_context *context = make_context(&meter.allocator, 0);
    test_meter_reset(&meter);
    const size_t before = meter.live;
    opjit_graph *g = make_graph(context);
    const opjit_tensor one = opjit_graph_scalar(g, F32, 1), in = input(g, sizes_2_3);
    opjit_tensor x = in;
    for (uint32_t i = 0; i < count; i++)
        x = i % 10 == 9 ? opjit_graph_transpose(g, x, (const uint32_t[]){ 0, 1 })
                        : opjit_graph_add(g, x, i % 2 == 0 ? one : in);
    opjit_graph_output(g, "sum", x);
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, NULL), OPJIT_OK);
    ck_assert_uint_gt(desc->NodeCount, count / 10 * 9);
    *peak = meter.peak - before;
    *calls = meter.calls;
    opjit_graph_destroy(g);
    ck_assert_uint_eq(meter.live, before);
    opjit_context_destroy(context);
    ck_assert_uint_eq(meter.blocks, 0);
}

START_TEST(memory_is_linear)
{
    size_t few, many, few_calls, many_calls;
    build_many(FEW, &few, &few_calls);
    build_many(MANY, &many, &many_calls);
    ck_assert_msg(many < few * (MANY / FEW) * 3 / 2, "%zu bytes for %d nodes, %zu for %d", few, FEW, many, MANY);
    ck_assert_msg(many_calls < few_calls * (MANY / FEW) * 3 / 2, "%zu allocations for %d nodes, %zu for %d", few_calls,
                  FEW, many_calls, MANY);
}
END_TEST

START_TEST(ten_thousand_nodes_compile)
{
    const float in[6] = { 1, 2, 3, 4, 5, 6 };
    float out[6];
    opjit_context *context = make_context(NULL, 0);
    opjit_graph *g = make_graph(context);
    const opjit_tensor first = input(g, sizes_2_3);
    opjit_tensor x = first;
    for (int i = 0; i < MANY; i++)
        x = opjit_graph_add(g, x, first);
    opjit_graph_output(g, NULL, x);
    opjit_kernel *kernel = compile(g);
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof in }, { out, sizeof out } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert(out[0] == MANY + 1 && out[5] == 6.0f * (MANY + 1));
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* The functions of graph_ops.h for products, whose shapes follow. */
START_TEST(products)
{
    const uint32_t planes[] = { 1, 1, 3, 3 }, taps[] = { 1, 1, 2, 2 }, one[] = { 1, 1 }, none[] = { 0, 0 };
    const float in[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, filter[4] = { 1, 0, 0, -1 };
    float out[4][4];
    opjit_context *context = make_context(NULL, 0);
    opjit_graph *g = make_graph(context);
    const opjit_tensor x = opjit_graph_input(g, "x", F32, 4, planes), w = opjit_graph_input(g, "w", F32, 4, taps);
    const opjit_tensor y = opjit_graph_convolution(g, x, w, (opjit_tensor){ 0 }, 2, none, none, one, one, 1);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, w, y, 1, 0));
    opjit_graph_output(g, "z", opjit_graph_matrix_multiply(g, y, w, 0, 1));
    opjit_kernel *kernel = compile(g);
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof in },
                                       { (void *)(uintptr_t)filter, sizeof filter },
                                       { out[0], sizeof out[0] },
                                       { out[1], sizeof out[1] } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 4, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    const float y_times_w[2][4] = { { -4, -4, 4, 4 }, { -4, 4, -4, 4 } }; /* y is -4 everywhere */
    ck_assert_mem_eq(out[0], y_times_w[0], sizeof out[0]);
    ck_assert_mem_eq(out[1], y_times_w[1], sizeof out[1]);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* Two outputs of a typed function. */
START_TEST(greatest)
{
    const uint32_t sizes[] = { 2, 3 };
    const float in[6] = { 1, 3, 3, -1, -2, 0 };
    float values[2][2];
    uint32_t numbers[2][2];
    opjit_context *context = make_context(NULL, 0);
    opjit_graph *g = make_graph(context);
    opjit_tensor indices;
    opjit_graph_output(g, "values", opjit_graph_top_k(g, input(g, sizes), 1, 2, &indices));
    opjit_graph_output(g, "indices", indices);
    opjit_kernel *kernel = compile(g);
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof in },
                                       { values, sizeof values },
                                       { numbers, sizeof numbers } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 3, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert_mem_eq(values, ((const float[2][2]){ { 3, 3 }, { 0, -1 } }), sizeof values);
    ck_assert_mem_eq(numbers, ((const uint32_t[2][2]){ { 1, 2 }, { 2, 0 } }), sizeof numbers);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

/* To the double size, and back. */
START_TEST(resampled)
{
    const uint32_t sizes[] = { 1, 2 }, larger[] = { 1, 4 };
    const float in[2] = { 0, 4 };
    float linear[4], nearest[4], again[2];
    opjit_context *context = make_context(NULL, 0);
    opjit_graph *g = make_graph(context);
    const opjit_tensor x = input(g, sizes), between = opjit_graph_resample(g, x, 1, larger);
    opjit_graph_output(g, "linear", between);
    opjit_graph_output(g, "nearest", opjit_graph_resample(g, x, 0, larger));
    opjit_graph_output(g, "again", opjit_graph_resample(g, between, 1, sizes));
    opjit_kernel *kernel = compile(g);
    const opjit_binding bindings[] = { { (void *)(uintptr_t)in, sizeof in },
                                       { linear, sizeof linear },
                                       { nearest, sizeof nearest },
                                       { again, sizeof again } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 4, .bindings = bindings };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert_mem_eq(linear, ((const float[4]){ 0, 1, 3, 4 }), sizeof linear);
    ck_assert_mem_eq(nearest, ((const float[4]){ 0, 0, 4, 4 }), sizeof nearest);
    ck_assert_mem_eq(again, ((const float[2]){ 0.5f, 3.5f }), sizeof again);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.build");
    TCase *tcase = tcase_create("build");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, causal_softmax, 0, 2);
    tcase_add_test(tcase, products);
    tcase_add_test(tcase, greatest);
    tcase_add_test(tcase, resampled);
    tcase_add_test(tcase, names);
    tcase_add_test(tcase, constants_and_late_fields);
    tcase_add_test(tcase, outputs_that_are_copied);
    tcase_add_test(tcase, operators_that_were_made);
    tcase_add_test(tcase, feature_levels);
    tcase_add_test(tcase, graphs_on_threads);
    tcase_add_test(tcase, memory_is_linear);
    tcase_add_test(tcase, ten_thousand_nodes_compile);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
