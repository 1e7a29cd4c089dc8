/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_transpose.c - blocks that are transposed in registers: rows and columns of any number, whole blocks or not,
 * vectors of every width, loads of two widths, values that depend on the row.  Compiled code against the interpreter,
 * between inaccessible pages. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };

/* %0, or its copy, and %1 are transposed relative to the output, %1 of another type; %2 has the output's layout; %3 has
 * one element per row. */
static const char *const values[] = {
    "load %%0[%%i,%%j]",
    "cast %s (load %%1[%%i,%%j])",
    "add(load %%0[%%i,%%j], %%v)",
    "min(load %%0[%%i,%%j], load %%2[%%i,%%j])",
    "select(lt(%%j, %%i), load %%0[%%i,%%j], load %%2[%%i,%%j])",
    "add(load %%0[%%i,%%j], elem %s (iadd(%%i, imul(%%j, 3))))",
    "max(load %%0[%%i,%%j], cast %s (load %%1[%%i,%%j]))",
    "select(le(isub(%%i, %%j), 2), add(%%v, load %%0[%%i,%%j]), elem %s (%%j))",
};
enum { VALUES = sizeof values / sizeof *values };

typedef struct sample {
    const char *type, *other, *value, *target;
    uint32_t rows, columns, turn, vec, unroll, level;
    bool overlap, mask, streams;
    bool copied; /* %0 is copied to scratch first, which is read */
} sample;

static void make(const sample *s, ir_func *f)
{
    char text[2000], value[200], copy[300] = "";
    opjit_error error = { .status = OPJIT_OK };
    snprintf(value, sizeof value, s->value, s->type);
    for (char *at = value; s->copied && (at = strstr(at, "%0")) != NULL;)
        at[1] = '5';
    if (s->copied)
        snprintf(copy, sizeof copy,
                 "for %%a in 0..%u {\n for %%b in 0..%u { store %%5[%%a,%%b], load %%0[%%a,%%b] }\n }\n", s->rows,
                 s->columns);
    const int length = snprintf(
        text, sizeof text,
        "kernel @turn after schedule {\n    in %%0: %s[%u,%u] stride [1,%u]\n    in %%1: %s[%u,%u] stride [1,%u]\n"
        "    in %%2: %s[%u,%u]\n    in %%3: %s[%u,1]\n    out %%4: %s[%u,%u] align 64\n"
        "    scratch %%5: %s[%u,%u] stride [1,%u]\n    stage @0 for %%p in 0..1 {\n        %s"
        "for %%i in 0..%u transpose %u%s {\n            let %%v = load %%3[%%i,0]\n"
        "            for %%j in 0..%u vec %u unroll %u%s%s { store %%4[%%i,%%j], %s }\n        }\n    }\n}\n",
        s->type, s->rows, s->columns, s->rows + 3, s->other, s->rows, s->columns, s->rows, s->type, s->rows, s->columns,
        s->type, s->rows, s->type, s->rows, s->columns, s->type, s->rows, s->columns, s->rows + 3, copy, s->rows,
        s->turn, s->overlap ? " tail overlap" : "", s->columns, s->vec, s->unroll, s->streams ? " store nt" : "",
        s->overlap ? " tail overlap"
        : s->mask  ? " tail mask"
                   : "",
        value);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
    ck_assert(opjit_ir_layout(f, &error) == OPJIT_OK);
    if (strstr(value, "%v") != NULL) /* otherwise it is a dead let */
        ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "%s\n%s", error.message, text);
}

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char what[200];
    make(s, &f);
    snprintf(what, sizeof what,
             "%s from %s, %s, %u x %u, turn %u, vec %u, unroll %u, overlap %d, mask %d, %s, level %u%s", s->type,
             s->other, s->value, s->rows, s->columns, s->turn, s->vec, s->unroll, s->overlap, s->mask, s->target,
             s->level, s->copied ? ", copied" : "");
    harness_kernel k = harness_compile(&f, s->target, s->level);
    for (uint32_t i = 0; i < 2 && test_can_run(s->target, false); i++) {
        const harness_run run = { .end = 1, .any_nan = true, .at_end = i != 0, .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(blocks)
{
    static const char *const types[] = { "f32", "u8", "f64", "i16", "u32", "f16", "i64" };
    test_random r;
    test_random_init(&r, 1, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 8; n++) {
        sample s = { .type = types[test_random_below(&r, 7)],
                     .other = types[test_random_below(&r, 7)],
                     .value = values[test_random_below(&r, VALUES)],
                     .target = targets[test_random_below(&r, 4)],
                     .turn = 2u << test_random_below(&r, 4),
                     .vec = 2u << test_random_below(&r, 5),
                     .unroll = 1u << test_random_below(&r, 3),
                     .level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2) };
        s.rows = s.turn * (1 + (uint32_t)test_random_below(&r, 2));
        s.columns = s.vec * s.unroll * (1 + (uint32_t)test_random_below(&r, 2));
        s.streams = test_random_chance(&r, 30);
        s.copied = test_random_chance(&r, 30);
        if (test_random_chance(&r, 60)) {
            s.overlap = test_random_chance(&r, 50);
            s.mask = test_random_chance(&r, 30);
            s.rows += (uint32_t)test_random_below(&r, s.turn);
            s.columns += (uint32_t)test_random_below(&r, s.vec * s.unroll);
        }
        check_sample(&s, &r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.transpose");
    TCase *tcase = tcase_create("transposed");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, blocks, 0, 16);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
