/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_made.c - what is kept while a kernel for many sizes is looked for: functions by their sizes, and memory that
 * was given back. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/compile/dynamic_made.h"
#include "frontend/compile/dynamic_pool.h"

static opjit_error error;

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* n elements, copied, or with 1 added where they are even. */
static ir_func function_of(int64_t n)
{
    char text[400];
    ir_func f;

    snprintf(text, sizeof text,
             "kernel @k after cleanup { in %%0: f32[%d]\n out %%1: f32[%d]\n const %%2: f32[1] = \"0000803f\"\n"
             "stage @0 for %%3 in 0..%d grain 1 {\n store %%1[%%3], %s\n }\n }",
             (int)n, (int)n, (int)n, n % 2 == 0 ? "add(load %0[%3], load %2[0])" : "load %0[%3]");
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    return f;
}

static void check_found(const fe_made *made, const fe_made_for *key, bool wanted)
{
    ir_func own, f = function_of(key->values[0]);
    bool found;

    ck_assert_int_eq(opjit_fe_made_find(made, key, &own, &found, &error), OPJIT_OK);
    ck_assert_msg(found == wanted, "%d", (int)key->values[0]);
    if (found) {
        rt_bytes texts[2];
        opjit_rt_bytes_init(&texts[0], &opjit_rt_default_allocator);
        opjit_rt_bytes_init(&texts[1], &opjit_rt_default_allocator);
        opjit_ir_print(&f, &texts[0]);
        opjit_ir_print(&own, &texts[1]);
        ck_assert(texts[0].size == texts[1].size && memcmp(texts[0].data, texts[1].data, texts[0].size) == 0);
        opjit_rt_bytes_free(&texts[0]);
        opjit_rt_bytes_free(&texts[1]);
        opjit_ir_free(&own);
    }
    opjit_ir_free(&f);
}

/* Functions of one kind are kept as what differs from the first of it. */
START_TEST(functions)
{
    fe_made *const made = calloc(1, sizeof *made);

    for (int64_t n = 3; n < 40; n++) {
        const fe_made_for key = { 0, { n } }, other = { 1, { n } };
        ir_func f = function_of(n);
        check_found(made, &key, false);
        ck_assert_int_eq(opjit_fe_made_keep(made, &key, &f, &error), OPJIT_OK);
        opjit_ir_free(&f);
        check_found(made, &key, true);
        check_found(made, &other, false);
    }
    ck_assert_uint_eq(made->whole_count, 2);
    for (int64_t n = 3; n < 40; n++)
        check_found(made, &(fe_made_for){ 0, { n } }, true);
    opjit_fe_made_free(made);
    check_found(made, &(fe_made_for){ 0, { 3 } }, false);
    free(made);
}
END_TEST

/* More than there is room for: the last ones are there. */
START_TEST(many_functions)
{
    fe_made *const made = calloc(1, sizeof *made);
    ir_func f = function_of(5);

    for (uint64_t k = 1; k <= 2 * FE_MADE; k++) {
        const fe_made_for key = { k, { 5 } };
        ck_assert_int_eq(opjit_fe_made_keep(made, &key, &f, &error), OPJIT_OK);
        check_found(made, &key, true);
    }
    check_found(made, &(fe_made_for){ 1, { 5 } }, false);
    opjit_fe_made_free(made);
    opjit_ir_free(&f);
    free(made);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

static size_t bytes_held, pieces;

static void *take(void *user, size_t size, size_t alignment)
{
    (void)user;
    bytes_held += size;
    pieces++;
    return opjit_rt_allocate(&opjit_rt_default_allocator, size, alignment);
}

static void give(void *user, void *memory, size_t size)
{
    (void)user;
    bytes_held -= size;
    opjit_rt_release(&opjit_rt_default_allocator, memory, size);
}

static const opjit_allocator counted = { NULL, take, give };

/* What was given back is there again, aligned, and in the end all that was taken is given back. */
START_TEST(memory)
{
    static const size_t alignments[] = { 8, 16, 64, 4096, 2 << 20 };
    fe_pool pool;

    opjit_fe_pool_init(&pool, &counted);
    for (size_t round = 0; round < 3; round++)
        for (size_t size = 1; size < (5 << 20); size += size / 7 + 1)
            for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
                unsigned char *const piece = opjit_rt_allocate(&pool.own, size, alignments[i]);
                ck_assert_ptr_nonnull(piece);
                ck_assert_uint_eq((uintptr_t)piece % alignments[i], 0);
                memset(piece, 0xa5, size);
                opjit_rt_release(&pool.own, piece, size);
            }
    opjit_fe_pool_free(&pool);
    ck_assert_uint_eq(bytes_held, 0);
}
END_TEST

START_TEST(memory_again)
{
    fe_pool pool;

    opjit_fe_pool_init(&pool, &counted);
    void *const first = opjit_rt_allocate(&pool.own, 100000, 16);
    void *const second = opjit_rt_allocate(&pool.own, 100000, 16);
    pieces = 0;
    ck_assert_ptr_ne(first, second);
    opjit_rt_release(&pool.own, first, 100000);
    ck_assert_ptr_eq(opjit_rt_allocate(&pool.own, 99000, 64), first); /* of the same size but for a fifth */
    ck_assert_uint_eq(pieces, 0);
    opjit_rt_release(&pool.own, second, 100000);
    opjit_rt_release(&pool.own, first, 99000);
    opjit_fe_pool_free(&pool);
    ck_assert_uint_eq(bytes_held, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fe.made");
    TCase *tc = tcase_create("kept");
    tcase_add_test(tc, functions);
    tcase_add_test(tc, many_functions);
    tcase_add_test(tc, memory);
    tcase_add_test(tc, memory_again);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
