/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic_ranges.c - kernels of sizes whose loops or sums are of several kinds, with functions for each range
 * of sizes: the bits of each size, images, and graphs of too many kinds. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/frontend/dynamic_sizes.h"

/* As a model that reads letters begins: two layers of windows, whose loops are of a kind for a few sizes each. */
static void letters(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    static const uint32_t ones[2] = { 1, 1 }, pads[2] = { 0, 1 };
    const opjit_tensor none = { 0 }, x = INPUT("x", 1, 96, 1, n), one = INPUT("w", 48, 96, 1, 3),
                       two = INPUT("v", 32, 48, 1, 3);
    const opjit_tensor hidden =
        opjit_graph_relu(g, opjit_graph_convolution(g, x, one, none, 2, pads, pads, ones, ones, 1));
    opjit_graph_output(g, "y", opjit_graph_convolution(g, hidden, two, none, 2, pads, pads, ones, ones, 1));
}

static void longer(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_softmax(g, INPUT("x", 2, n), 1));
}

/* A batch whose products of few keys are, for one size alone, worth tiles together. */
static void decode_heads(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, INPUT("q", 12, 1, 64), INPUT("k", 12, n, 64), 0, 1);
    const opjit_tensor shares = opjit_graph_softmax(g, scores, 2);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, shares, INPUT("v", 12, n, 64), 0, 0));
}

/* A load under a condition: where exp is expanded, it is made for all elements, and held inside of its tensor. */
static void exp_of_triangle(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_lower_triangle(g, opjit_graph_exp(g, INPUT("x", n, 3)), 0));
}

static void prefill(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor q = INPUT("q", 2, n, 32), k = INPUT("k", 2, n, 32);
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, q, k, 0, 1);
    opjit_graph_output(g, "y", attend(g, opjit_graph_fill_band(g, scores, -INFINITY, 1, INT32_MAX), n));
}

static void queries_by_keys(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor q = INPUT("q", 2, m, 32), k = INPUT("k", 2, n, 32);
    opjit_graph_output(g, "y", attend(g, opjit_graph_matrix_multiply(g, q, k, 0, 1), n));
}

/* Sizes whose loops or sums are of several kinds: one kernel has functions for each. */
static const subject of_ranges[] = {
    { "far band", far_band, 1, 2000, 100 },
    { "letters", letters, 1, 64, 20 },
    { "long softmax", longer, 1, 70000, 512 },
    { "long means", means, 1, 70000, 700 },
    { "attention of one", decode, 1, 4096, 300 },
    { "attention", prefill, 1, 600, 100 },
    { "few rows", product, 1, 4096, 4 },
    { "terms", product_of_terms, 1, 4096, 60 },
    { "queries by keys", queries_by_keys, 2, 600, 150 },
    { "attention of one, 12 heads", decode_heads, 1, 4096, 512 },
    { "triangle of three columns", exp_of_triangle, 1, 1000, 500 },
    { "attention with a past", decode_past, 1, 1000, 256 },
};

START_TEST(sizes_in_ranges)
{
    static const uint32_t edges[] = { 1,   2,   15,  16,   17,   64,   65,   256,   257,   600,   602,
                                      604, 701, 703, 4095, 4096, 4097, 8192, 12288, 65521, 65537, 70000 };
    const subject *s = &of_ranges[_i];
    opjit_kernel *kernels[3] = { compile(s, OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK) };
    uint32_t count = 1;

    if (opjit_context_warm(context, &error) == OPJIT_OK) {
        kernels[count++] = compile(s, 0, OPJIT_LEVEL_QUICK);
        kernels[count++] = compile(s, 0, OPJIT_LEVEL_PEAK);
    }
    for (uint32_t i = 0, seed = 1; i < 40; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t most = i % 2 == 0 ? s->hi : (s->hi < 300 ? s->hi : 300);
        const uint64_t n = i < sizeof edges / sizeof *edges ? edges[i] : 1 + (seed >> 8) % most;
        const uint64_t dims[2] = { n, 1 + (seed >> 4) % s->hi };
        if (n <= s->hi)
            check_size(s, (const opjit_kernel *const *)kernels, count, dims);
    }
    for (uint32_t k = 0; k < count; k++)
        opjit_kernel_release(kernels[k]);
}
END_TEST

/* Ranges are in the image, so whoever loads it has them. */
START_TEST(images_with_ranges)
{
    const subject *s = &of_ranges[2];
    const void *image;
    uint64_t bytes;
    opjit_kernel *loaded;

    if (opjit_context_warm(context, &error) != OPJIT_OK)
        return;
    opjit_kernel *const made = compile(s, 0, OPJIT_LEVEL_QUICK);
    ck_assert_msg(opjit_kernel_get_image(made, &image, &bytes, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_kernel_load(context, image, bytes, NULL, 0, &loaded, &error) == OPJIT_OK, "%s", error.message);
    const opjit_kernel *const list[] = { loaded, loaded };
    for (uint64_t n = 200; n < s->hi; n *= 4)
        check_size(s, list, 2, (const uint64_t[]){ n, 0 });
    opjit_kernel_release(loaded);
    opjit_kernel_release(made);
}
END_TEST

static void far_bands(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_tensor x = INPUT("x", 4, n);
    for (int32_t i = 1; i < 16; i++)
        x = opjit_graph_fill_band(g, x, -(float)i, 100 * i, 100 * i + 20 + i);
    opjit_graph_output(g, "y", x);
}

/* Each mask that hides a band has kinds of its own: no bounded number of functions has them all. */
START_TEST(too_many_ranges)
{
    static const subject s = { "far bands", far_bands, 1, 2000, 100 };
    const opjit_dim dim = { "n", 1, s.hi, s.typical };
    description d = { .s = &s };
    opjit_kernel *kernel;
    const opjit_status status = opjit_compile_dynamic(context, &dim, 1, describe, &d, NULL, &kernel, &error);

    opjit_graph_destroy(d.graph);
    ck_assert(status == OPJIT_UNSUPPORTED || status == OPJIT_UNAVAILABLE);
    ck_assert_msg(d.calls < 4000, "%u descriptions", (unsigned)d.calls);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.dynamic.ranges");
    TCase *tcase = tcase_create("ranges");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, sizes_in_ranges, 0, sizeof of_ranges / sizeof of_ranges[0]);
    tcase_add_test(tcase, images_with_ranges);
    tcase_add_test(tcase, too_many_ranges);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
