/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_table.c - loops that read from tables what they would compute with divisions, all of what they store or a
 * condition: compiled code against the interpreter, for every element type, row length and place. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v3", "cpu:x86-64-v1", "cpu:x86-64-v4",
                                       "cpu:aarch64",   "cpu:rv64gcv",   "cpu:x86-64-v3,l1=1024,l2=1024,l3=0" };

/* The value stored at j: all of it, or a part, is the same in each row. */
static const struct value {
    const char *type, *text;
} values[] = {
    { "f32", "select(eq(isub(imod(idiv(%3, 3), 3), imod(%3, 3)), 0), f32 0x1p+0, f32 0x0p+0)" },
    { "u8", "select(eq(isub(imod(idiv(%3, 8), 8), imod(%3, 8)), 0), u8 1, u8 0)" },
    { "f16", "cast f16 (elem f32 (imod(iadd(imul(%3, 7), -40), 300)))" },
    { "f64", "neg(elem f64 (isub(idiv(%3, 5), imod(%3, 6))))" },
    { "i64", "select(lt(imod(%3, 7), idiv(%3, 11)), elem i64 (imul(%3, -1048577)), i64 -3)" },
    { "i16", "elem i16 (idiv(imul(%3, 70001), 3))" },
    { "f32", "select(le(isub(imod(idiv(%3, 3), 3), imod(%3, 3)), -1), f32 0x0p+0, load %1[%2,%3])" },
    { "u8", "select(or(lt(imod(%3, 5), 2), eq(imod(idiv(%3, 5), 3), 1)), load %1[%2,%3], u8 7)" },
    { "f16", "select(lt(isub(imod(idiv(%3, 3), 3), imod(%3, 3)), 1), load %1[%2,%3], f16 0x0p+0)" },
    { "i32", "add(load %1[%2,%3], select(lt(imod(%3, 7), 3), i32 1, elem i32 (%3)))" },
    { "f32", "select(eq(isub(imod(idiv(%3, 3), 3), imod(%3, 3)), imod(%2, 2)), f32 0x1p+0, f32 0x0p+0)" },
    { "u8", "select(eq(isub(idiv(%3, 5), imul(imod(%3, 7), 300)), isub(%2, 300)), load %1[%2,%3], u8 0)" },
    { "i64", "select(not(lt(imod(%3, 7), idiv(%3, 11))), i64 -3, load %1[%2,%3])" },
};
static const uint32_t columns[] = { 9, 64, 72, 144, 147, 500, 4200 }; /* the last is too large for most types */
enum {
    TARGETS = sizeof(targets) / sizeof(targets[0]),
    VALUES = sizeof(values) / sizeof(values[0]),
    COLUMNS = sizeof(columns) / sizeof(columns[0]),
    ROWS = 5
};

static void make(ir_func *f, const char *target, const struct value *v, uint32_t n)
{
    char text[768];
    snprintf(text, sizeof text,
             "kernel @rows after cleanup {\n    out %%0: %s[%d,%u]\n    in %%1: %s[%d,%u]\n"
             "    stage @0 for %%2 in 0..%d {\n"
             "        for %%3 in 0..%u { store %%0[%%2,%%3], %s }\n    }\n}\n",
             v->type, ROWS, n, v->type, ROWS, n, ROWS, n, v->text);
    harness_schedule(f, text, target);
}

START_TEST(bits)
{
    const struct value *v = &values[_i % VALUES];
    const char *const name = targets[_i / VALUES];
    for (uint32_t i = 0; i < COLUMNS; i++) {
        test_random r;
        ir_func f;
        char what[160];
        test_random_init(&r, 13, 0, (uint64_t)_i);
        make(&f, name, v, columns[i]);
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            harness_kernel k = harness_compile(&f, name, level);
            snprintf(what, sizeof what, "%s, %u columns, %s, level %u", v->text, columns[i], name, level);
            for (uint32_t n = 0; n < (k.code ? 2 : 1) && test_can_run(name, false); n++) {
                const harness_run run = { .begin = n, .end = ROWS, .at_end = n == 0, .what = what };
                harness_check(&f, &k, &run, &r);
            }
            harness_unload(&k);
        }
        opjit_ir_free(&f);
    }
}
END_TEST

/* What is alike in all rows is in a table; what is not is computed. */
START_TEST(used)
{
    const struct value with_row = { "f32", "elem f32 (imod(iadd(%3, imul(%2, 5)), 7))" };
    for (uint32_t i = 0; i <= VALUES; i++) {
        ir_func f;
        make(&f, targets[0], i < VALUES ? &values[i] : &with_row, 144);
        codegen_result text = harness_emit(&f, targets[0], OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
        opjit_rt_bytes_zero_end(&text.bytes);
        const bool has_table = strstr((const char *)text.bytes.data, "@table") != NULL;
        ck_assert_msg(has_table == (i < VALUES), "value %u has %s table", i, has_table ? "a" : "no");
        harness_free_result(&text);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.table");
    TCase *tcase = tcase_create("table");
    tcase_add_loop_test(tcase, bits, 0, TARGETS * VALUES);
    tcase_add_test(tcase, used);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
