/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_kernel_optimize.c - the swap of a kernel to its peak version: once, while it is made, with a larger
 * workspace, during calls. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/runtime/kernel_call.h"

/* --- the peak version --------------------------------------------------------------------------------------------- */
#if defined(__x86_64__)
static struct {
    sample s;
    opjit_status status;
    atomic_int calls;
} peak;

static opjit_status make_peak(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *e)
{
    (void)user, (void)cancel;
    atomic_fetch_add(&peak.calls, 1);
    if (peak.status != OPJIT_OK)
        return opjit_rt_error_set(e, peak.status, "no peak");
    opjit_rt_bytes_free(image);
    return sample_build(&peak.s, image, image->allocator, e);
}

static const rt_kernel_hooks optimizing = { .optimize = make_peak, .destroy = count_destroy };

static void prepare_peak(void)
{
    memset(&peak, 0, sizeof peak);
    s.param = (opjit_param_info){ DML_TENSOR_DATA_TYPE_UINT8, 0, 0, 255 };
    sample_use_param(&s);
    s.variants[0].first_step = 0; /* quick: adds 1, whatever the parameter */
    peak.s = s;
    peak.s.source.level = OPJIT_LEVEL_PEAK;
    peak.s.variants[0].first_step = 1;
}

START_TEST(optimize)
{
    static const uint64_t five = 5;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    prepare_peak();
    create(&optimizing);
    call.params = &five;
    call.param_count = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    peak.status = OPJIT_CODEGEN;
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_CODEGEN);
    peak.status = OPJIT_OK;
    peak.s.buffers[0].align = 2; /* another kernel's image */
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_INTERNAL);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    peak.s.buffers[0].align = 1;
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(5, in);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_int_eq(info.level, OPJIT_LEVEL_PEAK);
    ck_assert_int_eq(peak.calls, 3);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK); /* is peak already */
    ck_assert_int_eq(peak.calls, 3);
}
END_TEST

static opjit_status ask_for_peak(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *e)
{
    opjit_error refused;
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &refused), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(refused.message, "this thread is optimizing that kernel already: an event sink can't ask for it");
    return make_peak(user, cancel, image, e);
}

/* As an event sink may that is told of the compile. */
START_TEST(optimize_while_optimizing)
{
    static const rt_kernel_hooks asking = { .optimize = ask_for_peak, .destroy = count_destroy };
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    prepare_peak();
    create(&asking);
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_int_eq(info.level, OPJIT_LEVEL_PEAK);
}
END_TEST

/* A workspace sized before the swap still serves: with the version it was made for. */
START_TEST(optimize_grows_the_workspace)
{
    static _Alignas(64) uint8_t space[4096];
    static const uint64_t five = 5;
    prepare_peak();
    s.source.shared_size = 64;
    peak.s.source.shared_size = 128;
    create(&optimizing);
    call.params = &five;
    call.param_count = 1;
    call.workspace = (opjit_binding){ space, 64 };
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    call.workspace.bytes = 128;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(5, in);
    call.workspace.bytes = 63;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

static void *call_often(void *failures)
{
    static const uint64_t five = 5;
    uint8_t mine[SAMPLE_ELEMENTS];
    opjit_binding b[2] = { bindings[0], { mine, sizeof mine } };
    opjit_call c = call;
    c.bindings = b;
    c.params = &five;
    c.param_count = 1;
    for (int i = 0; i < 20000; i++)
        if (opjit_kernel_call(kernel, &c, NULL) != OPJIT_OK || (mine[3] != 4 && mine[3] != 8))
            atomic_fetch_add((atomic_int *)failures, 1);
    return NULL;
}

START_TEST(optimize_during_calls)
{
    atomic_int failures = 0;
    pthread_t threads[3];
    prepare_peak();
    create(&optimizing);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &failures), 0);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(failures, 0);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("rt.kernel.optimize");
    TCase *tcase = tcase_create("optimize");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
#if defined(__x86_64__)
    tcase_add_test(tcase, optimize);
    tcase_add_test(tcase, optimize_while_optimizing);
    tcase_add_test(tcase, optimize_grows_the_workspace);
    tcase_add_test(tcase, optimize_during_calls);
#endif
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
