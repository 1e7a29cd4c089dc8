/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_kernel_executors.c - executors that keep their contract and that break it: a call reports what was not run,
 * run twice, or run beyond its extent; and a failure in a piece. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/runtime/kernel_call.h"

/* --- executors ---------------------------------------------------------------------------------------------------- */

typedef void (*piece_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

static opjit_status run_well(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    uint32_t worker = 0;
    (void)user;
    for (uint64_t i = 0; i < extent; i += grain)
        body(arg, worker++ % 3, i, i + grain < extent ? i + grain : extent);
    return OPJIT_OK;
}
static opjit_status run_half(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, extent / 2);
    return OPJIT_OK;
}
static opjit_status run_nothing(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)extent, (void)grain, (void)body, (void)arg;
    return OPJIT_OK;
}
static opjit_status run_twice(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, extent);
    body(arg, 0, 0, extent);
    return OPJIT_OK;
}
static opjit_status run_bad_worker(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 3, 0, extent);
    return OPJIT_OK;
}
static opjit_status run_beyond(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user;
    body(arg, 0, 0, extent + grain);
    return OPJIT_OK;
}
static opjit_status run_off_grain(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, 3);
    body(arg, 0, 3, extent);
    return OPJIT_OK;
}
static opjit_status run_backwards(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, extent, 0);
    return OPJIT_OK;
}
static opjit_status run_cancelled(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)extent, (void)grain, (void)body, (void)arg;
    return OPJIT_CANCELLED;
}

#define BOUNDS "executor: a piece is empty, outside of the extent or not bounded by multiples of grain"
static const struct {
    const char *name;
    opjit_executor executor;
    opjit_status status;
    const char *message;
} executors[] = {
    { "well", { NULL, 3, run_well }, OPJIT_OK, "" },
    { "no function", { NULL, 3, NULL }, OPJIT_INVALID_ARGUMENT, "executor: run is NULL" },
    { "no workers", { NULL, 0, run_well }, OPJIT_INVALID_ARGUMENT, "executor: workers is 0; allowed: 1 and more" },
    { "too much scratch", { NULL, UINT32_MAX, run_well }, OPJIT_OUT_OF_MEMORY, "out of memory" },
    { "half", { NULL, 3, run_half }, OPJIT_INVALID_ARGUMENT, "executor covered 8 of 16 iterations" },
    { "nothing", { NULL, 3, run_nothing }, OPJIT_INVALID_ARGUMENT, "executor covered 0 of 16 iterations" },
    { "twice", { NULL, 3, run_twice }, OPJIT_INVALID_ARGUMENT, "executor covered 32 of 16 iterations" },
    { "bad worker",
      { NULL, 3, run_bad_worker },
      OPJIT_INVALID_ARGUMENT,
      "executor: a worker's index is not below workers" },
    { "beyond", { NULL, 3, run_beyond }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "off grain", { NULL, 3, run_off_grain }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "backwards", { NULL, 3, run_backwards }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "cancelled", { NULL, 3, run_cancelled }, OPJIT_CANCELLED, "executor returned CANCELLED" },
};

START_TEST(executor_row)
{
    s.source.scratch_size = _i == 3 ? UINT64_C(1) << 36 : 64;
    hook.scratch_size = 64;
    create(&interpreting);
    call.executor = &executors[_i].executor;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == executors[_i].status, "%s", executors[_i].name);
    ck_assert_str_eq(error.message, executors[_i].message);
    ck_assert_int_eq(hook.wrong_scratch, 0);
    if (executors[_i].status == OPJIT_OK)
        expect_added(1, in);
}
END_TEST

START_TEST(failure_in_a_piece)
{
    static const opjit_executor executor = { NULL, 3, run_well };
    create(&interpreting);
    call.executor = &executor;
    hook.fail = true;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "iteration 0 refused"); /* the first one's */
    ck_assert_int_eq(error.status, OPJIT_LIMIT);
    call.executor = NULL;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_LIMIT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.kernel.executors");
    TCase *tcase = tcase_create("executors");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, executor_row, 0, sizeof executors / sizeof *executors);
    tcase_add_test(tcase, failure_in_a_piece);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
