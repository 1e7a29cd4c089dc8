/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_ir_passes.c - the pipeline with allocation 1, 2, 3 ... failing: the right status, and no leak. */
#include <check.h>

#include "ir/ir.h"
#include "tests/support/ir_samples.h"

typedef struct failing {
    uint64_t calls, fail_at, live;
} failing;

static void *failing_allocate(void *user, size_t size, size_t alignment)
{
    failing *state = user;
    if (++state->calls == state->fail_at)
        return NULL;
    void *memory = opjit_rt_default_allocator.allocate(NULL, size, alignment);
    state->live += memory != NULL;
    return memory;
}

static void failing_release(void *user, void *memory, size_t size)
{
    failing *state = user;
    state->live -= memory != NULL;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

static const ir_sample samples[] = {
    { .kind = SAMPLE_DIAGONAL1,
      .type = IR_F32,
      .rank = 4,
      .sizes = { 4, 3, 50, 60 },
      .out_strides = { 9000, 3000, 60, 1 },
      .in_strides = { 9000, 0, 60, 1 },
      .has_input = true,
      .late = true },
    { .kind = SAMPLE_SEQUENCE, .type = IR_F16, .rank = 2, .sizes = { 70, 80 }, .out_strides = { 1, 72 }, .late = true },
};

/* Whether the pipeline finished. */
static bool run_once(const ir_sample *sample, const rt_target *target, failing *state)
{
    ir_func f = { 0 };
    opjit_error error = { 0 };
    const opjit_allocator allocator = { state, failing_allocate, failing_release };
    const ir_pass_env env = { .target = target };
    opjit_status status = ir_sample_build(sample, &allocator, &f, &error);
    if (status == OPJIT_OK)
        status = opjit_ir_run_passes(&f, &env, IR_EXPANDED, &error);
    opjit_ir_free(&f);
    ck_assert_uint_eq(state->live, 0);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
    return status == OPJIT_OK;
}

START_TEST(every_allocation)
{
    rt_target target;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_rt_target_parse("cpu:x86-64-v3", &target, &error) == OPJIT_OK, "%s", error.message);
    for (uint64_t fail_at = 1;; fail_at++) {
        failing state = { .fail_at = fail_at };
        if (run_once(&samples[_i], &target, &state))
            break;
        ck_assert_uint_eq(state.calls >= fail_at, 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.ir_passes");
    TCase *tcase = tcase_create("passes");
    tcase_add_loop_test(tcase, every_allocation, 0, sizeof samples / sizeof samples[0]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
