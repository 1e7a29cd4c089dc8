/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_joined.c - rows of tensors that were joined along another dimension: a row's address is chosen before its
 * loop, and one vector is loaded.  Compiled code against the interpreter, between inaccessible pages. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4" };

/* Three tensors of 2, 3 and 2 rows; in the second kernel only even or odd columns of the last one count, in the third
 * what is joined is the arm of another choice by row. */
static const char *const values[] = {
    "select(lt(%%i, 5), select(lt(%%i, 2), load %%0[%%i,%%j], load %%1[iadd(%%i, -2),%%j]), "
    "load %%2[iadd(%%i, -5),%%j])",
    "select(eq(imod(%%j, 2), 0), select(lt(%%i, 5), select(lt(%%i, 2), load %%0[%%i,%%j], "
    "load %%1[iadd(%%i, -2),%%j]), load %%2[iadd(%%i, -5),%%j]), %s)",
    "select(lt(%%i, 5), add(select(lt(%%i, 2), load %%0[%%i,%%j], load %%1[iadd(%%i, -2),%%j]), %s), "
    "load %%2[iadd(%%i, -5),%%j])",
};

static const char *const types[][2] = { { "f32", "f32 0x1p+0" }, { "u8", "u8 1" }, { "i64", "i64 1" } };

static void make(uint32_t value, uint32_t which, uint32_t columns, const char *target, ir_func *f)
{
    char text[2000], expression[600];
    const char *const type = types[which][0];
    snprintf(expression, sizeof expression, values[value], types[which][1]);
    snprintf(text, sizeof text,
             "kernel @joined after split {\n    in %%0: %s[2,%u]\n    in %%1: %s[3,%u]\n    in %%2: %s[2,%u]\n"
             "    out %%3: %s[7,%u]\n    stage @0 for %%i in 0..7 {\n"
             "        for %%j in 0..%u { store %%3[%%i,%%j], %s }\n    }\n}\n",
             type, columns, type, columns, type, columns, type, columns, columns, expression);
    harness_schedule(f, text, target);
}

START_TEST(rows)
{
    static const uint32_t columns[] = { 5, 16, 31, 300 };
    test_random r;
    test_random_init(&r, 4, 0, (uint64_t)_i);
    const char *const target = targets[_i % 3];
    for (uint32_t n = 0; n < 36; n++) {
        ir_func f;
        make(n % 3, n / 3 % 3, columns[n / 9], target, &f);
        harness_kernel k = harness_compile(&f, target, _i < 3 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK);
        for (uint32_t i = 0; i < 2 && test_can_run(target, false); i++) {
            const harness_run run = { .end = 7, .any_nan = true, .at_end = i != 0, .what = target };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

static int count(const char *code, const char *what)
{
    int n = 0;
    for (const char *at = strstr(code, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

/* As many as are stored, and none that is masked. */
START_TEST(one_load)
{
    ir_func f;
    make(0, 0, 16, "cpu:x86-64-v4", &f);
    codegen_result made = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&made.bytes);
    const char *const code = (const char *)made.bytes.data;
    ck_assert_int_gt(count(code, "store <16 x float>"), 0);
    ck_assert_int_eq(count(code, "load <16 x float>"), count(code, "store <16 x float>"));
    ck_assert_int_eq(count(code, "masked.load"), 0);
    harness_free_result(&made);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.joined");
    TCase *tcase = tcase_create("rows");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, rows, 0, 6);
    tcase_add_test(tcase, one_load);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
