/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_fast.c - stages at quick for AVX-512 consist of what LLVM's fast instruction selection knows, and calls: a
 * call that it doesn't know leaves it alone, anything else takes along all that is before it in its block.  The texts
 * have no such instruction on vectors, except near the begin of a block; and the same stages, at every level, against
 * the interpreter, between inaccessible pages. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <ctype.h>
#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };

/* One row of an output, from one statement; i is the row, j the column. */
static const struct {
    const char *name, *tensors, *loop, *value;
} rows[] = {
    /* The first row and column of a convolution with stride 2 are padding. */
    { "padded rows", "in %0: f32[23,40]", "0..20 vec 16 unroll 1 tail mask",
      "select(le(0, iadd(imul(%i, 2), -1)), load %0[iadd(imul(%i, 2), -1),imul(%j, 2)], f32 0x0p+0)" },
    { "one padded vector", "in %0: f32[23,40]", "0..13 vec 16 unroll 1 tail mask",
      "select(lt(%i, 11), select(le(0, iadd(imul(%i, 2), -1)), load %0[iadd(imul(%i, 2), -1),imul(%j, 2)], "
      "f32 0x0p+0), f32 0x0p+0)" },
    { "padded columns", "in %0: f32[23,40]", "0..19 vec 16 unroll 1 tail mask",
      "select(and(le(0, iadd(imul(%i, 2), -1)), le(0, iadd(imul(%j, 2), -1))), "
      "load %0[iadd(imul(%i, 2), -1),iadd(imul(%j, 2), -1)], f32 0x0p+0)" },
    { "every fifth column", "in %0: f32[12,80]", "0..17 vec 16 unroll 1 tail mask",
      "select(le(0, iadd(imul(%j, 5), -1)), load %0[%i,iadd(imul(%j, 5), -1)], f32 0x1p+0)" },
    { "every fifth f64", "in %0: f64[12,80]", "0..16 vec 8 unroll 1",
      "select(le(0, iadd(imul(%j, 5), -1)), load %0[%i,iadd(imul(%j, 5), -1)], f64 0x1p+0)" },
    { "not the first rows", "in %0: f32[12,64]", "0..64 vec 16 unroll 2",
      "select(lt(%i, 3), f32 0x1p+0, load %0[iadd(%i, -3),%j])" },
    { "numbers for all columns", "in %0: f32[23,64]\n    in %9: f32[1]\n    view %8: f32[23,64] stride [0,0] of %9",
      "0..32 vec 16 unroll 2",
      "select(le(0, iadd(imul(%i, 2), -1)), mul(load %0[iadd(imul(%i, 2), -1),imul(%j, 2)], "
      "load %8[iadd(imul(%i, 2), -1),imul(%j, 2)]), f32 0x0p+0)" },
    { "maximum", "in %0: f32[12,70]", "0..13 vec 16 unroll 1 tail mask",
      "max(max(load %0[%i,%j], load %0[%i,iadd(%j, 1)]), load %0[%i,iadd(%j, 2)])" },
    { "minimum of f64", "in %0: f64[12,70]", "0..7 vec 8 unroll 1 tail mask",
      "min(load %0[%i,%j], load %0[%i,iadd(%j, 1)])" },
    { "choice", "in %0: f32[12,70]", "0..13 vec 16 unroll 1 tail mask",
      "select(lt(load %0[%i,%j], f32 0x0p+0), neg(load %0[%i,%j]), abs(load %0[%i,iadd(%j, 1)]))" },
    { "choice of f64", "in %0: f64[12,70]", "0..7 vec 8 unroll 1 tail mask",
      "select(not(le(load %0[%i,%j], load %0[%i,iadd(%j, 1)])), load %0[%i,%j], f64 0x1p+1)" },
    { "equal", "in %0: f32[12,70]", "0..13 vec 16 unroll 1 tail mask",
      "select(or(eq(load %0[%i,%j], load %0[%i,iadd(%j, 1)]), lt(%i, 4)), f32 0x1p+0, load %0[%i,%j])" },
    /* The first rows have no index: it lies before the tensor. */
    { "rows by guarded indices", "in %0: i64[8]\n    in %9: f32[12,64]", "0..13 vec 16 unroll 1 tail mask",
      "select(lt(%i, 4), load %9[%i,%j], load %9[clamp(index(load %0[iadd(%i, -4)]), 0, 11),%j])" },
    { "elements by guarded indices", "in %0: i64[8]\n    in %9: f32[12,64]", "0..13 unroll 4",
      "select(lt(%i, 4), load %9[%i,%j], load %9[clamp(index(load %0[iadd(%i, -4)]), 0, 11),%j])" },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]), HEIGHT = 12, WIDTH = 64 };

static void make(int row, ir_func *f)
{
    char text[1600];
    opjit_error error = { .status = OPJIT_OK };
    const bool wide = strstr(rows[row].tensors, "f64") != NULL;
    const int length =
        snprintf(text, sizeof text,
                 "kernel @fast after schedule {\n    %s\n    out %%7: %s[%d,%d]\n    stage @0 for %%i in 0..%d {\n"
                 "        for %%j in %s {\n            store %%7[%%i,%%j], %s\n        }\n    }\n}\n",
                 rows[row].tensors, wide ? "f64" : "f32", HEIGHT, WIDTH, HEIGHT, rows[row].loop, rows[row].value);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

enum { FEW = 12 }; /* instructions that a shuffle may take along */

/* Whether the line's instruction, after "%1 = ", is of that op and of vectors, or begins with all of the text. */
static bool is_of(const char *line, const char *op)
{
    const char *equals = strstr(line, " = ");
    const char *begin = equals ? equals + 3 : line + strspn(line, " ");
    const size_t length = strlen(op);
    return strncmp(begin, op, length) == 0;
}

static bool is_unknown(const char *line)
{
    static const char *const ops[] = { "select <",       "fcmp ",         "extractelement", "insertelement",
                                       "shufflevector ", "xor <16 x i1>", "and <16 x i1>",  "or <16 x i1>" };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (is_of(line, ops[i]) && strchr(line, '<'))
            return true;
    return (is_of(line, "icmp ") || is_of(line, "select i1")) && strchr(line, '<') && !strstr(line, "getelementptr");
}

/* A name is used after the line that it is defined in. */
static bool is_read(const char *line, const char *end)
{
    char name[24];
    size_t length = 0;
    line += strspn(line, " ");
    while (length + 1 < sizeof name && !isspace((unsigned char)line[length])) {
        name[length] = line[length];
        length++;
    }
    name[length] = '\0';
    for (const char *at = strstr(end, name); at; at = strstr(at + 1, name))
        if (!isdigit((unsigned char)at[length]))
            return true;
    return false;
}

START_TEST(texts)
{
    ir_func f;
    make(_i, &f);
    codegen_result r = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&r.bytes);
    int count = 0;
    char *line = (char *)r.bytes.data;
    for (char *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
        *end = '\0';
        if (line[0] != ' ')
            count = 0;
        else if (++count > FEW && is_unknown(line))
            ck_assert_msg(!is_read(line, end + 1), "%s: %s", rows[_i].name, line);
    }
    harness_free_result(&r);
    opjit_ir_free(&f);
}
END_TEST

/* --- results ------------------------------------------------------------------------------------------------------ */

START_TEST(results)
{
    ir_func f;
    char what[100];
    test_random r;
    test_random_init(&r, 7, 0, (uint64_t)_i);
    make(_i / 2, &f);
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        snprintf(what, sizeof what, "%s, %s, level %d", rows[_i / 2].name, targets[t], _i % 2);
        harness_kernel k =
            harness_compile(&f, targets[t], _i % 2 == 0 ? (uint32_t)OPJIT_LEVEL_QUICK : (uint32_t)OPJIT_LEVEL_PEAK);
        for (uint32_t i = 0; i < 4 && test_can_run(targets[t], false); i++) {
            const harness_run run = { .end = HEIGHT, .at_end = i % 2 != 0, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* What both arms of a condition read is one node, and is loaded in an arm's lanes first. */
START_TEST(both_arms)
{
    static const char text[] = "kernel @arms after fold {\n    in %0: f32[3,2]\n    in %1: f32[12,2]\n"
                               "    out %2: f32[12,2]\n    def %3: f32[12,2] (%4,%5) = load %1[%4,%5]\n"
                               "    yield %2 (%6,%7) = select(lt(%6, 6), select(lt(%6, 3), load %0[%6,%7], "
                               "mul(load %3[%6,%7], load %3[%6,%7])), mul(load %3[%6,%7], load %3[%6,%7]))\n}\n";
    ir_func f;
    test_random r;
    const harness_run run = { .end = HEIGHT, .what = targets[_i / 2] };
    if (!test_can_run(targets[_i / 2], false))
        return;
    test_random_init(&r, 8, 0, (uint64_t)_i);
    harness_schedule(&f, text, targets[_i / 2]);
    harness_kernel k =
        harness_compile(&f, targets[_i / 2], _i % 2 == 0 ? (uint32_t)OPJIT_LEVEL_QUICK : (uint32_t)OPJIT_LEVEL_PEAK);
    harness_check(&f, &k, &run, &r);
    harness_unload(&k);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.fast");
    TCase *tcase = tcase_create("stages");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, texts, 0, ROWS);
    tcase_add_loop_test(tcase, results, 0, 2 * ROWS);
    tcase_add_loop_test(tcase, both_arms, 0, 2 * (int)(sizeof targets / sizeof targets[0]));
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
