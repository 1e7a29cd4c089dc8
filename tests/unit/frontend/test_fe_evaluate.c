/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_evaluate.c - graphs of constants that are computed at once: the bytes of a kernel of them, from constants at
 * any address, without a leak when memory ends; not where that takes too much. */
#include <check.h>
#include <stdlib.h>

#include <opjit/graph_ops.h>

#include "frontend/frontend.h"
#include "tests/unit/runtime/rt_sample.h"

enum { LARGE = 3000, OUTPUTS = 3 };

static counting memory;
static opjit_context *context;
static opjit_error error;
static _Alignas(64) uint8_t large[4 * LARGE + 4];
static _Alignas(64) int64_t sizes[4] = { 1, 3, 320, 4294967296 };
static _Alignas(64) uint8_t out[2][OUTPUTS][4 * LARGE];

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    for (uint32_t i = 0; i < LARGE; i++) {
        const float x = (float)(i * 7919 % 1000) / 100 - 5;
        memcpy(large + 1 + (size_t)i * 4, &x, sizeof x); /* no multiple of its size */
    }
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(atomic_load(&memory.live), 0);
}

/* Output 0: three of the sizes, by numbers; 1: what they are as INT32, doubled, behind them; 2: a softmax of many. */
static opjit_status describe(opjit_graph **out_graph, bool with_input)
{
    static const int32_t at[3] = { 3, 0, -2 };
    const uint32_t four[1] = { 4 }, three[1] = { 3 }, rows[2] = { 3, LARGE / 3 };
    opjit_graph *g;
    TRY(opjit_graph_create(context, &g, &error));
    const opjit_tensor s = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_INT64, 1, four, sizes, sizeof sizes, 0);
    const opjit_tensor i = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_INT32, 1, three, at, sizeof at, 0);
    const opjit_tensor x = with_input ? opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, rows)
                                      : opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, rows, large + 1,
                                                             4 * LARGE, OPJIT_GRAPH_BORROW);
    const opjit_tensor narrow = opjit_graph_cast(g, s, DML_TENSOR_DATA_TYPE_INT32);
    const opjit_tensor both[2] = { narrow, opjit_graph_add(g, narrow, narrow) };
    opjit_graph_output(g, NULL, opjit_graph_gather(g, s, i, 0, 1));
    opjit_graph_output(g, NULL, opjit_graph_join(g, both, 2, 0));
    opjit_graph_output(g, NULL, opjit_graph_softmax(g, x, 1));
    *out_graph = g;
    return OPJIT_OK;
}

static opjit_status evaluate(bool with_input)
{
    void *const to[OUTPUTS] = { out[0][0], out[0][1], out[0][2] };
    const DML_GRAPH_DESC *desc;
    opjit_graph *g;
    bool done;
    TRY(describe(&g, with_input));
    opjit_status status = opjit_graph_get_desc(g, &desc, &error);
    if (status == OPJIT_OK)
        status = opjit_fe_evaluate(context, desc, UINT64_MAX, to, &done, &error);
    opjit_graph_destroy(g);
    return status;
}

START_TEST(as_a_kernel)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    const opjit_binding bindings[OUTPUTS] = { { out[1][0], 24 }, { out[1][1], 32 }, { out[1][2], 4 * LARGE } };
    opjit_kernel *kernel;
    opjit_graph *g;
    ck_assert_msg(evaluate(false) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(describe(&g, false), OPJIT_OK);
    options.flags = OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
    ck_assert_msg(opjit_graph_compile(g, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    call.bindings = bindings;
    call.binding_count = OUTPUTS;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    const int64_t *const gathered = (const int64_t *)(const void *)out[0][0];
    ck_assert(gathered[0] == 4294967296 && gathered[1] == 1 && gathered[2] == 320);
    const int32_t *const joined = (const int32_t *)(const void *)out[0][1];
    ck_assert(joined[2] == 320 && joined[5] == 6 && joined[6] == 640);
    for (int i = 0; i < OUTPUTS; i++)
        ck_assert_mem_eq(out[0][i], out[1][i], (size_t)bindings[i].bytes);
}
END_TEST

/* Sums so far of a hundred thousand constants: one pass, which took an hour of additions before. */
START_TEST(one_pass)
{
    enum { COUNT = 100000 };
    static int64_t numbers[COUNT], sums[COUNT];
    void *const to[1] = { sums };
    const uint32_t sizes_of[1] = { COUNT };
    const DML_GRAPH_DESC *desc;
    opjit_graph *g;
    bool done;
    for (int64_t i = 0; i < COUNT; i++)
        numbers[i] = i;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
        const opjit_tensor x = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_INT64, 1, sizes_of, numbers,
                                                    sizeof numbers, OPJIT_GRAPH_BORROW);
        opjit_graph_output(g, NULL, opjit_graph_cumulative_sum(g, x, 0, exclusive));
        ck_assert_int_eq(opjit_graph_get_desc(g, &desc, &error), OPJIT_OK);
        ck_assert_msg(opjit_fe_evaluate(context, desc, 8 * COUNT, to, &done, &error) == OPJIT_OK, "%s", error.message);
        ck_assert(done);
        for (int64_t i = 0; i < COUNT; i++)
            ck_assert_int_eq(sums[i], exclusive ? i * (i - 1) / 2 : i * (i + 1) / 2);
        opjit_graph_destroy(g);
    }
}
END_TEST

/* A product of 300 x 300 has 27 million terms. */
START_TEST(too_much)
{
    static float factor[300 * 300], product[300 * 300];
    void *const to[1] = { product };
    const uint32_t square[2] = { 300, 300 };
    const DML_GRAPH_DESC *desc;
    opjit_graph *g;
    bool done = true;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor a = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, square, factor, sizeof factor,
                                                OPJIT_GRAPH_BORROW);
    opjit_graph_output(g, NULL, opjit_graph_matrix_multiply(g, a, a, 0, 0));
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_fe_evaluate(context, desc, 27000000, to, &done, &error), OPJIT_OK);
    ck_assert(!done);
    opjit_graph_destroy(g);
}
END_TEST

START_TEST(inputs_are_refused)
{
    ck_assert_int_eq(evaluate(true), OPJIT_INTERNAL);
    ck_assert_str_eq(error.message, "a graph that is computed at once reads constants alone");
}
END_TEST

START_TEST(out_of_memory)
{
    opjit_status status = OPJIT_OUT_OF_MEMORY;
    for (int fail_at = 1; status != OPJIT_OK; fail_at++) {
        const int live = atomic_load(&memory.live);
        memory.fail_at = atomic_load(&memory.calls) + fail_at;
        status = evaluate(false);
        memory.fail_at = 0;
        ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
        ck_assert_int_eq(atomic_load(&memory.live), live);
        ck_assert_int_lt(fail_at, 1000);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.evaluate");
    TCase *tcase = tcase_create("constants");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, as_a_kernel);
    tcase_add_test(tcase, one_pass);
    tcase_add_test(tcase, too_much);
    tcase_add_test(tcase, inputs_are_refused);
    tcase_add_test(tcase, out_of_memory);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
