/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_count.c - how often the statements of a function run: elements that are stored, terms of reductions, loops
 * whose bounds follow a variable around them, and bounds that nothing is known of. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/general/count.h"

typedef struct row {
    const char *name, *text;
    uint64_t stores, results, terms; /* to %1, and in the first stage */
    bool lost;
} row;

static const row rows[] = {
    { "whole rows",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..10 {\n store %1[%2,%3], load %0[%2,%3]\n }\n }\n }",
      40, 40, 0, false },
    { "a row that ends too early", /* in bounds, and two elements of each row are left out */
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..8 {\n store %1[%2,%3], load %0[%2,%3]\n }\n }\n }",
      32, 32, 0, false },
    { "a triangle",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "let %3 = iadd(%2, 1)\n for %4 in 0..%3 {\n store %1[%2,%4], load %0[%2,%4]\n }\n }\n }",
      1 + 2 + 3 + 4, 10, 0, false },
    { "a triangle in a square", /* the middle loop's iterations are alike, the outer one's are not */
      "kernel @k after cleanup { in %0: f32[4,3,10]\n out %1: f32[4,3,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..3 {\n for %4 in 0..imin(iadd(%2, 1), 3) {\n store %1[%2,%3,%4], load %0[%2,%3,%4]\n }\n }\n }\n }",
      3 * (1 + 2 + 3 + 3), 27, 0, false },
    { "what is left of a variable",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..10 {\n for %4 in 0..imod(%3, 4) {\n store %1[%2,%4], load %0[%2,%4]\n }\n }\n }\n }",
      4 * 13, 4 * 13, 0, false },
    { "two rests", /* the same again after six */
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..10 {\n for %4 in 0..iadd(imod(%3, 2), imod(%3, 3)) {\n "
      "store %1[%2,%4], load %0[%2,%4]\n }\n }\n }\n }",
      4 * 14, 4 * 14, 0, false },
    { "a rest in a loop that is empty at first",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..10 {\n for %4 in 0..imod(%3, 2) {\n for %5 in 0..imod(%3, 3) {\n"
      "store %1[%2,%5], load %0[%2,%5]\n }\n }\n }\n }\n }",
      4 * 4, 4 * 4, 0, false },
    { "a rest and the variable",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..10 {\n for %4 in 0..imin(imod(%3, 4), %3) {\n store %1[%2,%4], load %0[%2,%4]\n }\n }\n }\n }",
      4 * 13, 4 * 13, 0, false },
    { "a loop inside of one that is empty at first", /* for the stage's variable 0 nothing reads %3 */
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..4 {\n for %4 in 0..%2 {\n for %5 in 0..%3 {\n store %1[%2,%5], load %0[%2,%5]\n }\n }\n }\n }\n }",
      (0 + 1 + 2 + 3) * (0 + 1 + 2 + 3), 36, 0, false },
    { "the same of a loop between them", /* one iteration of which is not enough to see what is inside */
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 0..4 {\n for %4 in 0..4 {\n for %5 in 2..%4 {\n for %6 in 0..%3 {\n"
      "store %1[%2,%6], load %0[%2,%6]\n }\n }\n }\n }\n }\n }",
      4 * (0 + 1 + 2 + 3), 24, 0, false },
    { "an empty loop",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "for %3 in 5..imin(%2, 4) {\n store %1[%2,%3], load %0[%2,%3]\n }\n }\n }",
      0, 0, 0, false },
    { "sums",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4]\n stage @0 for %2 in 0..4 grain 1 {\n"
      "acc %3: f32 sum lanes 1\n for %4 in 0..10 {\n upd %3, load %0[%2,%4]\n }\n let %5 = get %3\n"
      "store %1[%2], %5\n }\n }",
      4, 4, 40, false },
    { "a bound that is an element",
      "kernel @k after cleanup { in %0: f32[4,10]\n out %1: f32[4,10]\n in %6: u32[4]\n"
      "stage @0 for %2 in 0..4 grain 1 {\n for %3 in 0..clamp(index(load %6[%2]), 0, 10) {\n"
      "store %1[%2,%3], load %0[%2,%3]\n }\n }\n }",
      0, 0, 0, true },
};

START_TEST(counts)
{
    const row *r = &rows[_i];
    rt_arena arena;
    ir_func f;
    ir_counts c;
    opjit_error error = { 0 };

    ck_assert_msg(opjit_ir_parse(r->text, strlen(r->text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK,
                  "%s: %s", r->name, error.message);
    opjit_rt_arena_init(&arena, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_ir_count(&f, &arena, &c, &error), OPJIT_OK);
    ck_assert_uint_eq(c.stage_count, 1);
    ck_assert_msg(c.lost[0] == r->lost, "%s", r->name);
    if (!r->lost) {
        ck_assert_msg(c.stores[2] == r->stores, "%s: %llu stores", r->name, (unsigned long long)c.stores[2]);
        ck_assert_msg(c.results[0] == r->results, "%s: %llu results", r->name, (unsigned long long)c.results[0]);
        ck_assert_msg(c.terms[0] == r->terms, "%s: %llu terms", r->name, (unsigned long long)c.terms[0]);
    }
    opjit_rt_arena_free(&arena);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.count");
    TCase *tcase = tcase_create("counts");
    tcase_add_loop_test(tcase, counts, 0, sizeof rows / sizeof rows[0]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
