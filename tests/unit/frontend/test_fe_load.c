/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_load.c - opjit_graph_load: an image that is the graph's kernel is loaded, any other is not. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

enum { LENGTH = 2000 }; /* floats: more than is part of the code */
static _Alignas(64) float x[LENGTH], constant[2][LENGTH], y[LENGTH];
static opjit_context *sender, *receiver;
static opjit_error error;

/* x + constant * factor */
static opjit_graph *describe(opjit_context *context, const float *data, double factor)
{
    const uint32_t sizes[] = { LENGTH };
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor a = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 1, sizes);
    const opjit_tensor b =
        opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 1, sizes, data, sizeof constant[0], OPJIT_GRAPH_BORROW);
    const opjit_tensor f = opjit_graph_scalar(g, DML_TENSOR_DATA_TYPE_FLOAT32, factor);
    opjit_graph_output(g, "y", opjit_graph_add(g, a, opjit_graph_multiply(g, b, f)));
    return g;
}

static void check_result(const opjit_kernel *kernel, const float *data, float factor)
{
    const opjit_binding bindings[] = { { x, sizeof x }, { y, sizeof y } };
    opjit_call call = OPJIT_CALL_INIT;
    call.binding_count = 2;
    call.bindings = bindings;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < LENGTH; i++)
        ck_assert_float_eq(y[i], x[i] + data[i] * factor);
}

/* The kernel of the graph with the image at hand; whether it was loaded. */
static bool is_loaded(const float *data, double factor, opjit_level level, const void *image, uint64_t bytes)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_graph *const g = describe(receiver, data, factor);
    opjit_kernel *kernel;
    options.level = level;
    ck_assert_int_eq(opjit_cache_clear(receiver, &error), OPJIT_OK);
    ck_assert_msg(opjit_graph_load(g, &options, image, bytes, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    check_result(kernel, data, (float)factor);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    opjit_kernel_release(kernel);
    return (info.flags & OPJIT_KERNEL_FROM_DISK) != 0;
}

START_TEST(only_its_own_image_is_loaded)
{
    opjit_graph *const g = describe(sender, constant[0], 2);
    opjit_kernel *kernel;
    const void *image;
    uint64_t bytes;
    ck_assert_msg(opjit_graph_compile(g, NULL, &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &image, &bytes, &error), OPJIT_OK);
    char *const copy = malloc((size_t)bytes + 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy + 1, image, (size_t)bytes); /* at an odd address */
    ck_assert(is_loaded(constant[0], 2, OPJIT_LEVEL_AUTO, copy + 1, bytes));
    ck_assert(is_loaded(constant[1], 2, OPJIT_LEVEL_AUTO, copy + 1, bytes)); /* code is the same for all constants */
    ck_assert(!is_loaded(constant[0], 3, OPJIT_LEVEL_AUTO, copy + 1, bytes));
    ck_assert(!is_loaded(constant[0], 2, OPJIT_LEVEL_PEAK, copy + 1, bytes));
    ck_assert(!is_loaded(constant[0], 2, OPJIT_LEVEL_AUTO, copy + 1, bytes - 1));
    ck_assert(!is_loaded(constant[0], 2, OPJIT_LEVEL_AUTO, copy + 1, 0));
    ck_assert(!is_loaded(constant[0], 2, OPJIT_LEVEL_AUTO, copy + 1, UINT64_MAX));
    for (uint64_t at = 0; at < bytes; at += bytes / 13 + 1) {
        copy[1 + at] ^= 0x40;
        ck_assert(!is_loaded(constant[0], 2, OPJIT_LEVEL_AUTO, copy + 1, bytes));
        copy[1 + at] ^= 0x40;
    }
    free(copy);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_graph_load(g, NULL, NULL, 0, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(kernel);
    ck_assert_int_eq(opjit_graph_load(NULL, NULL, "image", 5, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_graph_load(g, NULL, "image", 5, NULL, &error), OPJIT_INVALID_ARGUMENT);
    opjit_graph_destroy(g);
}
END_TEST

static void set_up(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &sender, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_context_create(NULL, &receiver, &error), OPJIT_OK);
    for (int i = 0; i < LENGTH; i++) {
        x[i] = (float)i;
        constant[0][i] = (float)(i % 7);
        constant[1][i] = (float)(i % 5 - 2);
    }
}

static void tear_down(void)
{
    opjit_context_destroy(sender);
    opjit_context_destroy(receiver);
}

int main(void)
{
    Suite *suite = suite_create("fe.load");
    TCase *tcase = tcase_create("graphs with images");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, only_its_own_image_is_loaded);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
