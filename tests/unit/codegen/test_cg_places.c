/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_places.c - loads at places that are loaded, as vectors and one by one, and bytes that are looked up: compiled
 * code against the interpreter. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v4", "cpu:x86-64-v4+avx512vbmi", "cpu:x86-64-v3", "cpu:x86-64-v1",
                                       "cpu:aarch64" };

#define FROM_END(INDEX) "clamp(select(lt(" INDEX ", 0), iadd(" INDEX ", 60), " INDEX "), 0, 59)"

/* A table, the type of places, what is stored, and the value at row %3 and column %4. */
static const struct value {
    const char *table, *places, *type, *text;
    const char *intrinsic; /* with AVX-512 and VBMI; NULL: there is none */
} values[] = {
    { "f32[5,60]", "i64", "f32", "load %0[%3," FROM_END("clamp(index(load %1[%3,%4]), -61, 60)") "]", "gather3siv8" },
    { "f32[60,700]", "i64", "f32", "load %0[" FROM_END("clamp(index(load %1[%3,%4]), -61, 60)") ",%4]", "gather3siv8" },
    { "f32[5,60]", "i32", "f32", "load %0[%3," FROM_END("clamp(index(load %1[%3,%4]), -61, 60)") "]", "gather.dpi" },
    { "f64[5,60]", "i64", "f64", "load %0[%3," FROM_END("clamp(index(load %1[%3,%4]), -61, 60)") "]", "gather.dpq" },
    { "u16[5,60]", "i64", "u16", "load %0[%3," FROM_END("clamp(index(load %1[%3,%4]), -61, 60)") "]", NULL },
    { "u8[256]", "u8", "u8", "load %0[index(load %1[%3,%4])]", "vpermi2var.qi" },
    { "i8[256]", "i8", "i8", "load %0[index(bits u8 (load %1[%3,%4]))]", "vpermi2var.qi" },
    { "f32[256]", "u8", "f32", "load %0[index(load %1[%3,%4])]", NULL },
};
static const uint32_t columns[] = { 3, 64, 77, 700 };
enum {
    TARGETS = sizeof(targets) / sizeof(targets[0]),
    VALUES = sizeof(values) / sizeof(values[0]),
    COLUMNS = sizeof(columns) / sizeof(columns[0]),
    ROWS = 5
};

static void make(ir_func *f, const char *target, const struct value *v, uint32_t n)
{
    char text[1024];
    snprintf(text, sizeof text,
             "kernel @rows after cleanup {\n    in %%0: %s\n    in %%1: %s[%d,%u]\n    out %%2: %s[%d,%u]\n"
             "    stage @0 for %%3 in 0..%d {\n        for %%4 in 0..%u { store %%2[%%3,%%4], %s }\n    }\n}\n",
             v->table, v->places, ROWS, n, v->type, ROWS, n, ROWS, n, v->text);
    harness_schedule(f, text, target);
}

START_TEST(bits)
{
    const struct value *v = &values[_i % VALUES];
    const char *const name = targets[_i / VALUES];
    for (uint32_t i = 0; i < COLUMNS; i++) {
        test_random r;
        ir_func f;
        char what[256];
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

/* Vectors are loaded by the instruction that there is for them. */
START_TEST(used)
{
    const struct value *v = &values[_i];
    ir_func f;
    make(&f, targets[1], v, columns[COLUMNS - 1]);
    codegen_result text = harness_emit(&f, targets[1], OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&text.bytes);
    const char *const all = (const char *)text.bytes.data;
    ck_assert_msg(v->intrinsic != NULL ? strstr(all, v->intrinsic) != NULL
                                       : strstr(all, "gather") == NULL && strstr(all, "vpermi2var") == NULL,
                  "%s:\n%s", v->text, all);
    harness_free_result(&text);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.places");
    TCase *tcase = tcase_create("places");
    tcase_add_loop_test(tcase, bits, 0, TARGETS * VALUES);
    tcase_add_loop_test(tcase, used, 0, VALUES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
