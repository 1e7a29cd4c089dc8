/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_still.c - what is the same in all rounds of two loops is made before both, not once per round of the outer
 * one. */
#define _GNU_SOURCE
#include "cg_harness.h"

static const char text[] = /* lines that are shorter than a vector */
    "kernel @still after split {\n"
    "    in %0: f32[7,7]\n"
    "    in %1: f32[8]\n"
    "    in %2: f32[1]\n"
    "    out %3: f32[8,7,7]\n"
    "    stage @0 for %4 in 0..8 {\n"
    "        for %5 in 0..7 {\n"
    "            for %6 in 0..7 {\n"
    "                store %3[%4,%5,%6], mul(load %0[%5,%6], div(load %1[%4], load %2[0]))\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* Blocks after the first one that have begun where it is made: one is the stage's loop. */
static int blocks_before(const char *code, const char *what)
{
    const char *end = strstr(code, what);
    int count = 0;
    ck_assert_msg(end != NULL, "%s", code);
    for (const char *at = strstr(code, "preds ="); at != NULL && at < end; at = strstr(at + 1, "preds ="))
        count++;
    return count;
}

START_TEST(before_both)
{
    ir_func f;
    test_random r;
    test_random_init(&r, 3, 0, 0);
    harness_schedule(&f, text, "cpu:x86-64-v4");
    codegen_result made = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&made.bytes);
    const char *const code = (const char *)made.bytes.data;
    ck_assert_msg(blocks_before(code, " fdiv ") == 1, "%s", code);
    ck_assert(strstr(strstr(code, " fdiv ") + 1, " fdiv ") == NULL);
    harness_free_result(&made);
    if (test_can_run("cpu:x86-64-v4", false)) {
        harness_kernel k = harness_compile(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK);
        const harness_run run = { .end = 8, .at_end = true, .any_nan = true, .what = text };
        harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.still");
    TCase *tcase = tcase_create("loops");
    tcase_add_test(tcase, before_both);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
