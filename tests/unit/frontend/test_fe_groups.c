/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_groups.c - kernels of many stages, which are compiled in groups: the same image on one thread and on a
 * host's, right results, and an executor that fails. */
#include <check.h>
#include <string.h>

#include <opjit/graph_ops.h>

enum { STAGES = 70, COLUMNS = 24 };

static opjit_context *context;

static void setup(void)
{
    opjit_error error;
    ck_assert_msg(opjit_context_create(NULL, &context, &error) == OPJIT_OK, "%s", error.message);
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

/* As many softmaxes of one input, each of its own number of rows. */
static opjit_graph *many_stages(void)
{
    opjit_error error;
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor x =
        opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, (const uint32_t[]){ STAGES, COLUMNS });
    for (uint32_t i = 0; i < STAGES; i++) {
        const uint32_t offsets[2] = { 0, 0 }, sizes[2] = { i + 1, COLUMNS };
        (void)opjit_graph_output(g, NULL, opjit_graph_softmax(g, opjit_graph_slice(g, x, offsets, sizes, NULL), 1));
    }
    return g;
}

/* As many products, of different sizes, so that there are tiles to compile beside the stages. */
static opjit_graph *many_products(void)
{
    opjit_error error;
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor x =
        opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, (const uint32_t[]){ STAGES, STAGES });
    for (uint32_t i = 0; i < STAGES / 2; i++) {
        const uint32_t offsets[2] = { 0, 0 }, left[2] = { i + 1, STAGES }, right[2] = { STAGES, 2 * i + 1 };
        const opjit_tensor a = opjit_graph_slice(g, x, offsets, left, NULL);
        const opjit_tensor b = opjit_graph_slice(g, x, offsets, right, NULL);
        (void)opjit_graph_output(g, NULL, opjit_graph_matrix_multiply(g, a, b, 0, 0));
    }
    return g;
}

static opjit_status compile(opjit_graph *g, const opjit_executor *executor, opjit_kernel **out, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = OPJIT_COMPILE_NO_CACHE;
    options.executor = executor;
    return opjit_graph_compile(g, &options, out, error);
}

START_TEST(one_image_on_any_number_of_threads)
{
    opjit_graph *const g = _i == 0 ? many_stages() : many_products();
    const void *images[3] = { NULL };
    uint64_t bytes[3];
    opjit_kernel *kernels[3];
    opjit_error error;
    for (uint32_t i = 0; i < 3; i++) {
        opjit_pool *pool;
        ck_assert_int_eq(opjit_pool_create(NULL, i + 1, &pool, &error), OPJIT_OK);
        const opjit_status status = compile(g, i == 0 ? NULL : opjit_pool_executor(pool), &kernels[i], &error);
        opjit_pool_destroy(pool);
        if (status == OPJIT_UNAVAILABLE) {
            opjit_graph_destroy(g);
            return; /* built without code generation */
        }
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(opjit_kernel_get_image(kernels[i], &images[i], &bytes[i], &error), OPJIT_OK);
        ck_assert_uint_eq(bytes[i], bytes[0]);
        ck_assert_mem_eq(images[i], images[0], (size_t)bytes[0]);
    }
    for (uint32_t i = 0; i < 3; i++)
        opjit_kernel_release(kernels[i]);
    opjit_graph_destroy(g);
}
END_TEST

START_TEST(results_of_every_stage)
{
    static float x[STAGES][COLUMNS], y[STAGES][STAGES][COLUMNS];
    opjit_graph *const g = many_stages();
    opjit_binding bindings[1 + STAGES] = { { x, sizeof x } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_kernel *kernel;
    opjit_error error;
    for (uint32_t i = 0; i < STAGES; i++) {
        bindings[1 + i] = (opjit_binding){ y[i], (i + 1) * sizeof y[0][0] };
        for (uint32_t k = 0; k < COLUMNS; k++)
            x[i][k] = (float)((i * 7 + k * 3) % 11);
    }
    const opjit_status status = compile(g, NULL, &kernel, &error);
    opjit_graph_destroy(g);
    if (status == OPJIT_UNAVAILABLE)
        return;
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    call.bindings = bindings;
    call.binding_count = 1 + STAGES;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0; i < STAGES; i++)
        for (uint32_t row = 0; row <= i; row++) { /* all of them have the same rows */
            ck_assert_mem_eq(y[i][row], y[STAGES - 1][row], sizeof y[0][0]);
            ck_assert(y[i][row][0] > 0 && y[i][row][0] < 1);
        }
    opjit_kernel_release(kernel);
}
END_TEST

/* As many pieces as *user says, the last ones first. */
static opjit_status run_some(void *user, uint64_t extent, uint64_t grain,
                             void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    ck_assert_uint_eq(grain, 1);
    for (uint64_t i = 0; i < extent && i < *(const uint64_t *)user; i++)
        body(arg, 0, extent - 1 - i, extent - i);
    return OPJIT_OK;
}

/* Without the tiles, without the last group; in another order. */
START_TEST(executors_that_run_some)
{
    opjit_graph *const g = many_products();
    opjit_kernel *kernel;
    opjit_error error;
    uint64_t pieces = UINT64_MAX;
    const opjit_executor executor = { &pieces, 1, run_some };
    opjit_status status = compile(g, &executor, &kernel, &error);
    if (status != OPJIT_UNAVAILABLE) {
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
        opjit_kernel_release(kernel);
        for (pieces = 0; pieces < 4; pieces++) {
            status = compile(g, &executor, &kernel, &error);
            ck_assert_ptr_null(kernel);
            ck_assert_msg(status == OPJIT_CANCELLED, "%u pieces", (unsigned)pieces);
        }
    }
    opjit_graph_destroy(g);
}
END_TEST

static opjit_status run_nothing(void *user, uint64_t extent, uint64_t grain,
                                void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    (void)extent;
    (void)grain;
    (void)body;
    (void)arg;
    return *(const opjit_status *)user;
}

START_TEST(executors_that_fail)
{
    opjit_graph *const g = many_stages();
    opjit_kernel *kernel;
    opjit_error error;
    opjit_status answer = OPJIT_CANCELLED;
    const opjit_executor executor = { &answer, 2, run_nothing };
    opjit_status status = compile(g, &executor, &kernel, &error);
    ck_assert_ptr_null(kernel);
    ck_assert(status == OPJIT_CANCELLED || status == OPJIT_UNAVAILABLE);
    answer = OPJIT_OK; /* it says that it has done what it has not */
    status = compile(g, &executor, &kernel, &error);
    ck_assert_ptr_null(kernel);
    ck_assert(status == OPJIT_CANCELLED || status == OPJIT_UNAVAILABLE);
    opjit_graph_destroy(g);
}
END_TEST

#ifndef OPJIT_STATIC_CODEGEN
/* The first compile loads the code generator beside the passes; here there is none. */
START_TEST(no_code_generator)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_kernel *kernel;
    opjit_error error;
    opjit_pool *pool;
    options.codegen_path = "/nowhere/libopjit-codegen.so";
    options.flags = _i == 0 ? 0 : OPJIT_CONTEXT_ALLOW_INTERPRETER;
    teardown();
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_pool_create(NULL, 2, &pool, &error), OPJIT_OK);
    opjit_graph *const g = many_stages();
    const opjit_status status = compile(g, opjit_pool_executor(pool), &kernel, &error);
    opjit_graph_destroy(g);
    opjit_pool_destroy(pool);
    ck_assert_int_eq(status, _i == 0 ? OPJIT_UNAVAILABLE : OPJIT_OK);
    opjit_kernel_release(kernel);
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("fe.groups");
    TCase *t = tcase_create("groups");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, one_image_on_any_number_of_threads, 0, 2);
    tcase_add_test(t, results_of_every_stage);
    tcase_add_test(t, executors_that_run_some);
    tcase_add_test(t, executors_that_fail);
#ifndef OPJIT_STATIC_CODEGEN
    tcase_add_loop_test(t, no_code_generator, 0, 2);
#endif
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
