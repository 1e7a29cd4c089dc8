/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic.c - kernels with dynamic dimensions, compiled and interpreted: for each size of two dozen graphs
 * the bits of the kernel that is made for it alone; dimensions that differ in nothing but their names. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/frontend/dynamic_sizes.h"

static void softmax_of_rows(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_softmax(g, INPUT("x", n, 200), 1));
}

static void softmax_of_two(opjit_graph *g, uint32_t n, uint32_t m)
{
    opjit_graph_output(g, "y", opjit_graph_softmax(g, INPUT("x", 2, m, n), 2));
}

static void causal(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor masked = opjit_graph_fill_band(g, INPUT("x", 3, n, n), -INFINITY, 1, INT32_MAX);
    opjit_graph_output(g, "y", opjit_graph_softmax(g, masked, 2));
}

static void causal_by_mask(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const uint32_t sizes[] = { n, n };
    const opjit_tensor mask = opjit_graph_band(g, DML_TENSOR_DATA_TYPE_UINT8, 2, sizes, 1, INT32_MIN, 1);
    const opjit_tensor none = opjit_graph_fill(g, F32, 2, sizes, -INFINITY);
    opjit_graph_output(g, "y", opjit_graph_softmax(g, opjit_graph_where(g, mask, INPUT("x", n, n), none), 1));
}

static void greatest(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_top_k(g, INPUT("x", n, 400), 1, 50, NULL));
}

static void maximum(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const uint32_t axes[] = { 0, 1 };
    opjit_graph_output(g, "y", opjit_graph_reduce(g, INPUT("x", n, 33), DML_REDUCE_FUNCTION_MAX, 2, axes));
}

/* An input whose bytes are rounded up, of a number of elements that is no loop's. */
static void repeated_bytes(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_UINT8, 2, (const uint32_t[]){ n, m });
    opjit_graph_output(g, "y", opjit_graph_tile(g, x, 2, (const uint32_t[]){ 3, 1 }));
}

static void sums_across(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const uint32_t axis = 1;
    opjit_graph_output(g, "y", opjit_graph_reduce(g, INPUT("x", 3, 40, n), DML_REDUCE_FUNCTION_SUM, 1, &axis));
}

static void triangle(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_lower_triangle(g, INPUT("x", n, n), 0));
}

static void gelu(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor x = INPUT("x", n, 96);
    opjit_graph_output(g, "y", opjit_graph_add(g, opjit_graph_gelu(g, x), x));
}

static void layer_norm(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(
        g, "y", opjit_graph_layer_norm(g, INPUT("x", n, 128), INPUT("scale", 1, 128), INPUT("bias", 1, 128), 1, 1e-5f));
}

static void wide_product(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", n, 48), INPUT("z", 48, 600), 0, 0));
}

static void transposed(opjit_graph *g, uint32_t n, uint32_t m)
{
    const uint32_t axes[] = { 0, 2, 1 };
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_transpose(g, INPUT("x", 2, n, 70), axes));
    opjit_graph_output(g, "back", opjit_graph_transpose(g, INPUT("b", 2, 70, n), axes));
    opjit_graph_output(g, "square", opjit_graph_transpose(g, INPUT("s", 1, n, n), axes));
}

static void across(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor x = opjit_graph_transpose(g, INPUT("x", n, 40), (const uint32_t[]){ 1, 0 });
    opjit_graph_output(g, "y", opjit_graph_add(g, x, INPUT("z", 40, n)));
}

/* m n^2 elements. */
static void causal_of_any(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor masked = opjit_graph_fill_band(g, INPUT("x", m, n, n), -INFINITY, 1, INT32_MAX);
    opjit_graph_output(g, "y", opjit_graph_softmax(g, masked, 2));
}

/* 2 n m - m of them: what is taken away depends on sizes. */
static void all_but_first(opjit_graph *g, uint32_t n, uint32_t m)
{
    const uint32_t at[] = { 1, 0 }, sizes[] = { 2 * n - 1, m };
    opjit_graph_output(g, "y", opjit_graph_slice(g, INPUT("x", 2 * n, m), at, sizes, NULL));
}

static void running(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_cumulative_sum(g, INPUT("x", 4, n), 1, 0));
}

/* Blocks of a sum of all elements are of more than one row. */
static void sum_of_all(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(
        g, "y", opjit_graph_reduce(g, INPUT("x", n, 768), DML_REDUCE_FUNCTION_SUM, 2, (const uint32_t[]){ 0, 1 }));
}

static void greatest_of_all(opjit_graph *g, uint32_t n, uint32_t m)
{
    opjit_graph_output(g, "y",
                       opjit_graph_reduce(g, INPUT("x", n, m), DML_REDUCE_FUNCTION_MAX, 2, (const uint32_t[]){ 0, 1 }));
}

static const subject subjects[] = {
    { "softmax of rows", softmax_of_rows, 1, 900, 200 },
    { "softmax of two", softmax_of_two, 2, 300, 200 },
    { "sum of all", sum_of_all, 1, 900, 200 },
    { "greatest of all", greatest_of_all, 2, 300, 200 },
    { "causal", causal, 1, 200, 128 },
    { "causal by a mask", causal_by_mask, 1, 512, 128 },
    { "causal, any number", causal_of_any, 2, 90, 48 },
    { "all but the first", all_but_first, 2, 300, 100 },
    { "triangle", triangle, 1, 300, 200 },
    { "gelu", gelu, 1, 700, 256 },
    { "layer norm", layer_norm, 1, 700, 256 },
    { "means", means, 1, 1000, 700 },
    { "product", product, 1, 1200, 512 },
    { "wide product", wide_product, 1, 900, 512 },
    { "product of terms", product_of_terms, 1, 900, 700 },
    { "joined", joined, 2, 400, 128 },
    { "across", across, 1, 500, 200 },
    { "transposed", transposed, 1, 300, 100 },
    { "running", running, 1, 900, 300 },
    { "greatest", greatest, 1, 64, 8 },
    { "maximum", maximum, 1, 64, 64 },
    { "sums across", sums_across, 1, 64, 16 },
    { "repeated bytes", repeated_bytes, 2, 40, 16 },
};

START_TEST(sizes)
{
    const subject *s = &subjects[_i];
    opjit_kernel *kernels[3] = { compile(s, OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK) };
    uint32_t count = 1;

    if (opjit_context_warm(context, &error) == OPJIT_OK) {
        kernels[count++] = compile(s, 0, OPJIT_LEVEL_QUICK);
        kernels[count++] = compile(s, 0, OPJIT_LEVEL_PEAK);
    }
    for (uint64_t n = 1; n <= s->hi; n += n < 10 ? 1 : n < 40 ? 7 : 1 + n / 3) {
        const uint64_t dims[2] = { n, n < 40 ? n : s->hi - n + 1 };
        check_size(s, (const opjit_kernel *const *)kernels, count, dims);
    }
    const uint64_t largest[2] = { s->hi, s->hi };
    check_size(s, (const opjit_kernel *const *)kernels, count, largest);
    for (uint32_t k = 0; k < count; k++)
        opjit_kernel_release(kernels[k]);
}
END_TEST

static void joined_the_other_way(opjit_graph *g, uint32_t n, uint32_t m)
{
    joined(g, m, n);
}

/* Graphs that are the same wherever both dimensions are, too, have kernels of their own. */
START_TEST(dimensions_with_the_same_bounds)
{
    static const subject both[] = { { "joined", joined, 2, 40, 16 },
                                    { "joined the other way", joined_the_other_way, 2, 40, 16 } };
    for (uint32_t i = 0; i < 2; i++) {
        const opjit_kernel *kernel = compile(&both[i], OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK);
        check_size(&both[i], &kernel, 1, (const uint64_t[]){ 3, 21 });
        opjit_kernel_release((opjit_kernel *)kernel);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.dynamic");
    TCase *tcase = tcase_create("dynamic");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, sizes, 0, sizeof subjects / sizeof subjects[0]);
    tcase_add_test(tcase, dimensions_with_the_same_bounds);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
