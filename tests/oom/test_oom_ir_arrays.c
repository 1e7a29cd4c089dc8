/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_ir_arrays.c - the passes on random functions with array 1, 2, 3 ... of their arenas failing, which fails in
 * many more places than the allocator does: a pass asks for failure at its end, so everything before has to stand
 * it. */
#include <check.h>

#include "ir/ir.h"
#include "tests/support/ir_graphs.h"
#include "tests/support/ir_samples.h"

static uint64_t left; /* arrays until one fails */

/* The linker puts the first one in place of the library's, which the second one is. */
void *__wrap_opjit_rt_arena_allocate(rt_arena *arena, size_t count, size_t size);
void *__real_opjit_rt_arena_allocate(rt_arena *arena, size_t count, size_t size);

void *__wrap_opjit_rt_arena_allocate(rt_arena *arena, size_t count, size_t size)
{
    return left == 0 || --left == 0 ? NULL : __real_opjit_rt_arena_allocate(arena, count, size);
}

static void build(uint64_t number, uint64_t seed, ir_func *out)
{
    test_random r;
    ir_sample s;
    opjit_error error = { 0 };
    left = UINT64_MAX;
    test_random_init(&r, seed, number % 2, number);
    if (number % 2 == 0)
        ir_sample_random(&r, 3000, &s);
    const opjit_status status = number % 2 == 0 ? ir_sample_build(&s, &opjit_rt_default_allocator, out, &error)
                                                : ir_graph_random(&r, &opjit_rt_default_allocator, out, &error);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
}

/* Whether the pipeline finished with array `fail_at` failing, and all behind it. */
static bool run_once(uint64_t number, uint64_t seed, const rt_target *target, uint64_t fail_at)
{
    ir_func f;
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target };
    build(number, seed, &f);
    left = fail_at;
    const opjit_status status = opjit_ir_run_passes(&f, &env, opjit_ir_last_pass(target), &error);
    left = UINT64_MAX;
    opjit_ir_free(&f);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "case %llu, array %llu: %s",
                  (unsigned long long)number, (unsigned long long)fail_at, error.message);
    return status == OPJIT_OK;
}

START_TEST(every_array)
{
    static const char *const targets[] = { "cpu:x86-64-v3", "nvptx:sm_90", "cpu:x86-64-v3,l2=1024,l3=0" };
    const test_cases cases = test_cases_init("oom.ir_arrays", 60);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        rt_target target;
        opjit_error error = { 0 };
        left = UINT64_MAX;
        ck_assert_msg(opjit_rt_target_parse(targets[n % 3], &target, &error) == OPJIT_OK, "%s", error.message);
        uint64_t fail_at = 1;
        while (!run_once(n, cases.seed, &target, fail_at))
            fail_at += 1 + fail_at / 100; /* long pipelines here and there */
        ck_assert_uint_gt(fail_at, 20); /* the linker has put ours in place */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.ir_arrays");
    TCase *tcase = tcase_create("arrays");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_array);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
