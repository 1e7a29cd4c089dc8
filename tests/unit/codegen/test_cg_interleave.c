/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_interleave.c - rows of a few elements that are read along rows of their own, or as they are stored, in place
 * too: rows of one to five elements, of every type, any number of them, in parts that begin anywhere; loads of two
 * widths; values that are the same for all rows, or for a whole row; and what must not be done in lanes.  Compiled
 * code against the interpreter, between inaccessible pages. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>
#include <string.h>

static const char *const targets[] = { "cpu:x86-64-v1",        "cpu:x86-64-v2", "cpu:x86-64-v3",
                                       "cpu:x86-64-v4",        "cpu:aarch64",   "cpu:aarch64+sve,vec=32",
                                       "cpu:x86-64-v4,vec=64", "cpu:rv64gc",    "cpu:rv64gcv,vec=32" };

/* %0 and %1 have a row per element, %1 of another type; %2 has the output's layout; %3 has one element per row of the
 * output, %4 one per element of a row. */
static const char *const values[] = {
    "load %%0[%%p,%%i]",
    "cast %s (load %%1[%%p,%%i])",
    "add(load %%0[%%p,%%i], load %%4[%%i])",
    "mul(load %%3[%%p], add(load %%0[%%p,%%i], load %%4[%%i]))",
    "select(lt(%%i, 1), load %%0[%%p,%%i], cast %s (load %%1[%%p,0]))",
    "max(load %%0[%%p,%%i], elem %s (imul(%%i, 3)))",
    "select(lt(load %%0[%%p,%%i], load %%3[%%p]), load %%4[%%i], load %%0[%%p,%%i])",
    "add(load %%2[%%p,%%i], load %%0[%%p,%%i])",
    "mul(add(load %%2[%%p,%%i], load %%4[%%i]), load %%3[%%p])",
    "add(load %%2[%%p,%%i], load %%2[%%p,0])", /* in place one after the other, as all from here on */
    "add(load %%0[%%p,%%i], elem %s (iadd(%%i, imul(%%p, 3))))",
    "select(lt(%%p, 7), load %%0[%%p,%%i], load %%2[%%p,%%i])",
    "load %%0[isub(ROWS, %%p),%%i]",
};
enum { VALUES = sizeof values / sizeof *values, TARGETS = sizeof targets / sizeof *targets };

typedef struct sample {
    const char *type, *other, *value, *target;
    uint32_t rows, columns, vec, unroll, level, pad;
    bool mask, nested, in_place; /* nested: rows are a loop in the stage; in_place: the output is %2 */
} sample;

static void make(const sample *s, ir_func *f)
{
    char text[1500], value[200], last[16], loop[60] = "", out[80];
    opjit_error error = { .status = OPJIT_OK };
    snprintf(value, sizeof value, s->value, s->type);
    snprintf(last, sizeof last, "%u", s->rows - 1);
    if (s->nested)
        snprintf(loop, sizeof loop, "    for %%p in 0..%u {\n", s->rows);
    char *const at = strstr(value, "ROWS");
    if (at != NULL) {
        char rest[100];
        snprintf(rest, sizeof rest, "%s", at + 4);
        snprintf(at, sizeof value - (size_t)(at - value), "%s%s", last, rest);
    }
    if (s->in_place)
        snprintf(out, sizeof out, "%s[%u,%u]\n    alias %%5 %%2", s->type, s->rows, s->columns);
    else
        snprintf(out, sizeof out, "%s[%u,%u] stride [%u,1] bytes 65536", s->type, s->rows, s->columns,
                 s->columns + s->pad);
    const int length = snprintf(
        text, sizeof text,
        "kernel @interleave after schedule {\n    in %%0: %s[%u,%u] stride [1,%u]\n"
        "    in %%1: %s[%u,%u] stride [1,%u]\n    in %%2: %s[%u,%u]\n    in %%3: %s[%u]\n    in %%4: %s[%u]\n"
        "    out %%5: %s\n    stage @0 for %%%s in 0..%u {\n%s"
        "        for %%i in 0..%u vec %u unroll %u%s { store %%5[%%p,%%i], %s }\n    }\n%s}\n",
        s->type, s->rows, s->columns, s->rows + 3, s->other, s->rows, s->columns, s->rows, s->type, s->rows, s->columns,
        s->type, s->rows, s->type, s->columns, out, s->nested ? "q" : "p", s->nested ? 1 : s->rows, loop, s->columns,
        s->vec, s->unroll, s->mask ? " tail mask" : "", value, s->nested ? "    }\n" : "");
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "%s\n%s", error.message, text);
}

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char what[240];
    make(s, &f);
    snprintf(what, sizeof what,
             "%s from %s, %s, %u x %u, vec %u, unroll %u, mask %d, pad %u, nested %d, in place %d, %s, level %u",
             s->type, s->other, s->value, s->rows, s->columns, s->vec, s->unroll, s->mask, s->pad, s->nested,
             s->in_place, s->target, s->level);
    harness_kernel k = harness_compile(&f, s->target, s->level);
    for (uint32_t i = 0; i < 3 && test_can_run(s->target, false); i++) {
        const uint64_t rows = s->nested ? 1 : s->rows, begin = i < 2 ? 0 : test_random_below(r, rows);
        const harness_run run = { .begin = begin, .end = rows, .any_nan = true, .at_end = i != 0, .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(rows)
{
    static const char *const types[] = { "f32", "u8", "f64", "i16", "u32", "f16", "i64" };
    test_random r;
    test_random_init(&r, 1, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 8; n++) {
        sample s = { .type = types[test_random_below(&r, 7)],
                     .other = types[test_random_below(&r, 7)],
                     .value = values[test_random_below(&r, VALUES)],
                     .target = targets[test_random_below(&r, TARGETS)],
                     .rows = 1 + (uint32_t)test_random_below(&r, 100),
                     .columns = 1 + (uint32_t)test_random_below(&r, 5),
                     .vec = 1u << test_random_below(&r, 5),
                     .unroll = 1u << test_random_below(&r, 2),
                     .level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2) };
        s.mask = s.vec > 1 && test_random_chance(&r, 50);
        s.pad = test_random_chance(&r, 20);
        s.nested = test_random_chance(&r, 40);
        s.in_place = s.pad == 0 && strstr(s.value, "%%2[%%p,0]") == NULL && test_random_chance(&r, 40);
        check_sample(&s, &r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.interleave");
    TCase *tcase = tcase_create("rows");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, rows, 0, 30);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
