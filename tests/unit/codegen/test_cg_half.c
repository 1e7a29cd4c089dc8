/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_half.c - whole numbers as f16: compiled code against the interpreter, for all numbers that short integers
 * hold, and for steps and bounds of every kind. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = {
    "cpu:x86-64-v4+avx512fp16", "cpu:x86-64-v4",          "cpu:x86-64-v3", "cpu:x86-64-v1",
    "cpu:aarch64,l3=16777216",  "cpu:rv64gcv,l3=16777216"
};

/* count numbers, computed from j. */
static const struct numbers {
    uint32_t count;
    const char *index;
    bool is_short; /* fits a short integer, signed or unsigned */
} numbers[] = {
    { 65536, "%2", true },                       /* all unsigned ones */
    { 65536, "iadd(%2, -32768)", true },         /* all signed ones */
    { 65535, "iadd(%2, -1)", false },            /* neither */
    { 65537, "%2", false },                      /* one more */
    { 9000, "isub(27003, imul(%2, 3))", true },  /* down */
    { 700, "isub(imul(%2, 93), 32000)", false }, /* up to 33007 */
    { 21845, "imul(%2, 3)", true },
    { 77, "iadd(imul(%2, -64), 65535)", true },
    { 1200, "iadd(%1, imul(%2, 4))", true },
};
enum { TARGETS = sizeof(targets) / sizeof(targets[0]), NUMBERS = sizeof(numbers) / sizeof(numbers[0]), ROWS = 2 };

static void make(ir_func *f, const char *target, const struct numbers *n)
{
    char text[512];
    snprintf(text, sizeof text,
             "kernel @halves after cleanup {\n    out %%0: f16[%d,%u]\n    stage @0 for %%1 in 0..%d {\n"
             "        for %%2 in 0..%u { store %%0[%%1,%%2], cast f16 (elem f32 (%s)) }\n    }\n}\n",
             ROWS, n->count, ROWS, n->count, n->index);
    harness_schedule(f, text, target);
}

START_TEST(bits)
{
    const char *const name = targets[_i / NUMBERS];
    const struct numbers *n = &numbers[_i % NUMBERS];
    test_random r;
    ir_func f;
    char what[160];
    test_random_init(&r, 14, 0, (uint64_t)_i);
    make(&f, name, n);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        harness_kernel k = harness_compile(&f, name, level);
        snprintf(what, sizeof what, "%u of %s, %s, level %u", n->count, n->index, name, level);
        const harness_run run = { .end = ROWS, .at_end = true, .what = what };
        if (test_can_run(name, false))
            harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* Where there is an instruction for short integers, it converts them, and others are converted as usual. */
START_TEST(shorts)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        ir_func f;
        make(&f, targets[0], &numbers[i]);
        codegen_result code = harness_emit(&f, targets[0], OPJIT_LEVEL_QUICK, CODEGEN_ASM);
        opjit_rt_bytes_zero_end(&code.bytes);
        const char *const text = (const char *)code.bytes.data;
        const bool converts = strstr(text, "vcvtw2ph") != NULL || strstr(text, "vcvtuw2ph") != NULL;
        ck_assert_msg(converts == numbers[i].is_short, "%s is%s converted as shorts", numbers[i].index,
                      converts ? "" : " not");
        harness_free_result(&code);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.half");
    TCase *tcase = tcase_create("half");
    test_can_run(targets[0], true);
    tcase_add_loop_test(tcase, bits, 0, TARGETS * NUMBERS);
    tcase_add_test(tcase, shorts);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
