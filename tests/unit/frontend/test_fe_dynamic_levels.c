/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic_levels.c - products with dynamic dimensions at each CPU level: blocks and tiles of every width,
 * last rows and columns, stages that never run. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/frontend/dynamic_sizes.h"

static void prefill_of_8(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, INPUT("q", 2, n, 8), INPUT("k", 2, n, 8), 0, 1);
    const opjit_tensor shares = opjit_graph_softmax(g, opjit_graph_fill_band(g, scores, -INFINITY, 1, INT32_MAX), 2);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, shares, INPUT("v", 2, n, 8), 0, 0));
}

static void rows_of_three(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, (const uint32_t[]){ 8, 8 }, weights, 256, 0);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", 3 * n, 8), w, 0, 0));
}

/* Tiles of three vectors with AVX2, and lower ones for the last rows: of one tile of columns after the other, or, where
 * the first cache is small, of all. */
static void rows_of_constants(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, (const uint32_t[]){ 96, 72 }, weights, 96 * 72 * 4, 0);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", n, 96), w, 0, 0));
}

/* Blocks and tiles of other levels, which are interpreted here: sizes that are multiples of theirs, none of which is
 * among the least of the range, rows of which tiles of 6 have surplus ones where n is odd, and few rows. */
START_TEST(multiples_at_each_level)
{
    static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4",
                                           "cpu:x86-64-v4,l1=32768" };
    static const subject of[] = { { "attention", prefill_of_8, 1, 300, 270 },
                                  { "rows", rows_of_three, 1, 300, 70 },
                                  { "few rows", rows_of_constants, 1, 16, 8 } };
    static const uint64_t lo[] = { 257, 1, 1 }, tried[] = { 1, 2, 3, 4, 5, 6, 7, 8, 13, 15, 16, 20, 60, 264, 272, 288 };

    for (uint32_t i = 0; i < 3 * sizeof targets / sizeof *targets; i++) {
        const subject *s = &of[i % 3];
        const opjit_dim dim = { "n", lo[i % 3], s->hi, s->typical };
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        description d = { .s = s };
        opjit_kernel *kernel;
        options.target = targets[i / 3];
        options.flags = OPJIT_COMPILE_INTERPRET;
        ck_assert_msg(opjit_compile_dynamic(context, &dim, 1, describe, &d, &options, &kernel, &error) == OPJIT_OK,
                      "%s, %s: %s", s->name, options.target, error.message);
        opjit_graph_destroy(d.graph);
        const opjit_kernel *const list[] = { kernel };
        for (uint32_t k = 0; k < sizeof tried / sizeof *tried; k++)
            if (tried[k] >= dim.lo && tried[k] <= dim.hi)
                check_size(s, list, 1, (const uint64_t[]){ tried[k], 0 });
        opjit_kernel_release(kernel);
    }
}
END_TEST

static void columns_of_f64(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor a = opjit_graph_input(g, "a", DML_TENSOR_DATA_TYPE_FLOAT64, 2, (const uint32_t[]){ 17 * n, 16 }),
                       b = opjit_graph_input(g, "b", DML_TENSOR_DATA_TYPE_FLOAT64, 2, (const uint32_t[]){ 16, m });
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, a, b, 0, 0));
}

/* Samples whose last block has 3 columns don't say that others have 1 or 2: a refusal is right, other bits are not. */
START_TEST(last_columns)
{
    static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };
    static const subject s = { "columns of f64", columns_of_f64, 2, 24, 15 };
    const opjit_dim dims[2] = { { "n", 15, 17, 15 }, { "m", 7, 24, 7 } };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    description d = { .s = &s };
    opjit_kernel *kernel;

    options.target = targets[_i];
    options.flags = OPJIT_COMPILE_INTERPRET;
    const opjit_status status = opjit_compile_dynamic(context, dims, 2, describe, &d, &options, &kernel, &error);
    opjit_graph_destroy(d.graph);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNSUPPORTED, "%s", error.message);
    const opjit_kernel *const list[] = { kernel };
    for (uint64_t m = 7; m <= 24 && status == OPJIT_OK; m++)
        check_size(&s, list, 1, (const uint64_t[]){ 16, m });
    if (status == OPJIT_OK)
        opjit_kernel_release(kernel);
}
END_TEST

static void product_of(opjit_graph *g, DML_TENSOR_DATA_TYPE dtype, uint32_t rows, uint32_t k, uint32_t columns)
{
    const opjit_tensor a = opjit_graph_input(g, "a", dtype, 2, (const uint32_t[]){ k, rows }),
                       b = opjit_graph_input(g, "b", dtype, 2, (const uint32_t[]){ k, columns });
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, a, b, 1, 0));
}

static void all_of_n(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    product_of(g, F32, n, n, n);
}

static void rows_and_columns(opjit_graph *g, uint32_t n, uint32_t m)
{
    product_of(g, F32, n, 64, m);
}

static void terms_and_columns(opjit_graph *g, uint32_t n, uint32_t m)
{
    product_of(g, F32, 60, n, m);
}

static void rows_terms_and_columns(opjit_graph *g, uint32_t n, uint32_t m)
{
    product_of(g, F32, n, m, n);
}

/* Whose bytes are rounded up for odd sizes, which all samples are. */
static void columns_of_f16(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    product_of(g, DML_TENSOR_DATA_TYPE_FLOAT16, 64, 31, n);
}

/* Products of which several sizes change, were refused: so many blocks of rows for each block of columns. */
START_TEST(products_at_each_level)
{
    static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };
    static const subject products[] = { { "all of n", all_of_n, 1, 400, 128 },
                                        { "rows and columns", rows_and_columns, 2, 400, 128 },
                                        { "terms and columns", terms_and_columns, 2, 400, 128 },
                                        { "rows, terms and columns", rows_terms_and_columns, 2, 400, 128 },
                                        { "columns of float16", columns_of_f16, 1, 400, 128 } };
    static const uint64_t checked[][2] = { { 1, 1 }, { 5, 48 }, { 16, 3 }, { 48, 16 }, { 61, 40 } };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;

    options.target = targets[_i];
    options.flags = OPJIT_COMPILE_INTERPRET;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const opjit_kernel *const kernel = compile_with(&products[i], &options);
        for (size_t k = 0; k < sizeof checked / sizeof *checked; k++)
            check_size(&products[i], &kernel, 1, checked[k]);
        opjit_kernel_release((opjit_kernel *)kernel);
    }
}
END_TEST

static void few_columns(opjit_graph *g, uint32_t n, uint32_t m)
{
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", n, 4), INPUT("k", m, 4), 0, 1));
}

/* Columns are fewer than a tile's for all sizes, so that the stage of whole tiles never runs. */
START_TEST(stages_without_iterations)
{
    static const subject s = { "few columns", few_columns, 2, 301, 143 };
    const opjit_dim dims[2] = { { "n", 2, s.hi, s.typical }, { "m", 1, 4, 1 } };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    description d = { .s = &s };
    opjit_kernel *kernel;

    if (!__builtin_cpu_supports("sse4.2") || opjit_context_warm(context, &error) != OPJIT_OK) {
        puts("skipped: the kernel is for SSE4.2");
        return;
    }
    options.target = "cpu:x86-64-v2";
    ck_assert_msg(opjit_compile_dynamic(context, dims, 2, describe, &d, &options, &kernel, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_graph_destroy(d.graph);
    const opjit_kernel *const list[] = { kernel, kernel };
    for (uint64_t n = 2; n <= s.hi; n += 1 + n / 2)
        for (uint64_t m = 1; m <= 4; m++)
            check_size(&s, list, 2, (const uint64_t[]){ n, m });
    opjit_kernel_release(kernel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.dynamic.levels");
    TCase *tcase = tcase_create("levels");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, last_columns, 0, 4);
    tcase_add_loop_test(tcase, products_at_each_level, 0, 4);
    tcase_add_test(tcase, multiples_at_each_level);
    tcase_add_test(tcase, stages_without_iterations);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
