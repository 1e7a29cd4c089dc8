/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic_samples.c - what the samples of sizes do not show: definitions that change above them, and
 * dimensions so small that samples lie beyond them.  One kernel has the right bits for all sizes, or there is none. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdlib.h>

#include "tests/unit/frontend/dynamic_sizes.h"

static void sums_of_columns(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_reduce_mean(g, INPUT("x", n, 40), 0));
}

static void padded(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    static const uint32_t start[2] = { 0, 2 }, end[2] = { 1, 3 };
    opjit_graph_output(g, "y", opjit_graph_pad(g, opjit_graph_gelu(g, INPUT("x", n, n)), 2, start, end, 0.5f));
}

/* Above the samples these are defined otherwise: a mask begins to hide something, a sum has another order.  One kernel
 * for all of these sizes has the right bits, or there is none. */
START_TEST(sizes_with_another_definition)
{
    static const subject risky[] = { { "far band", far_band, 1, 2000, 100 },
                                     { "product of few terms", product_of_terms, 1, 900, 60 },
                                     { "sums of columns", sums_of_columns, 1, 9000, 1000 },
                                     { "padded", padded, 1, 20, 17 } };
    static const uint64_t tried[] = { 1, 2, 17, 18, 19, 20, 275, 646, 900, 2000, 4326, 9000 };
    for (uint32_t level = 0; level < 2; level++)
        for (uint32_t i = 0; i < sizeof risky / sizeof *risky; i++) {
            const opjit_dim dim = { "n", 1, risky[i].hi, risky[i].typical };
            opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
            description d = { .s = &risky[i] };
            opjit_kernel *kernel;
            options.level = level == 0 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
            const opjit_status status =
                opjit_compile_dynamic(context, &dim, 1, describe, &d, &options, &kernel, &error);
            opjit_graph_destroy(d.graph);
            if (status != OPJIT_OK) {
                ck_assert_msg(status == OPJIT_UNSUPPORTED || status == OPJIT_UNAVAILABLE, "%s", error.message);
                continue;
            }
            const opjit_kernel *const list[] = { kernel, kernel }; /* the first one is for small sizes */
            for (uint32_t k = 0; k < sizeof tried / sizeof *tried && tried[k] <= risky[i].hi; k++)
                check_size(&risky[i], list, 2, (const uint64_t[]){ tried[k], 0 });
            opjit_kernel_release(kernel);
        }
}
END_TEST

static void few_by_few(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor x = INPUT("x", n, m);
    opjit_graph_output(g, "y", opjit_graph_relu(g, x));
    opjit_graph_output(g, "z", opjit_graph_softmax(g, x, 1));
}

/* Of two dimensions that are both small, too, samples tell which one a size is. */
START_TEST(few_sizes_of_two)
{
    const uint32_t hi = (uint32_t)_i;
    for (uint32_t typical = 1; typical <= hi; typical += 2) {
        const subject s = { "few by few", few_by_few, 2, hi, typical };
        const opjit_kernel *kernels[2] = { compile(&s, OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_QUICK) };
        const uint32_t count = opjit_context_warm(context, &error) == OPJIT_OK ? 2 : 1;
        if (count == 2)
            kernels[1] = compile(&s, 0, OPJIT_LEVEL_PEAK);
        for (uint64_t n = 1; n <= hi; n++)
            for (uint64_t m = 1; m <= hi; m++)
                check_size(&s, kernels, count, (const uint64_t[]){ n, m });
        for (uint32_t k = 0; k < count; k++)
            opjit_kernel_release((opjit_kernel *)kernels[k]);
    }
}
END_TEST

static void softmax_of_one(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_softmax(g, INPUT("x", 1, n), 1));
}

/* Of samples whose last block of lines lacks one line, the loop that stores what is behind them has one iteration. */
static void few_lines(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const uint32_t ones[2] = { 1, 1 };
    const opjit_tensor x = INPUT("x", 1, 3, n, 16), filter = INPUT("w", 8, 3, 3, 3), none = { 0 };
    opjit_graph_output(g, "y", opjit_graph_convolution(g, x, filter, none, 2, ones, ones, ones, ones, 1));
}

/* Samples of few sizes lie beyond them: that their tensors have whole vectors says nothing of these. */
START_TEST(few_sizes)
{
    static const char *const targets[] = { NULL, "cpu:x86-64-v1" };
    const uint32_t hi = (uint32_t)_i;

    if (opjit_context_warm(context, &error) != OPJIT_OK)
        return;
    for (uint32_t t = 0; t < (__builtin_cpu_supports("sse2") ? 2u : 1u); t++)
        for (uint32_t typical = 1; typical <= hi; typical++) {
            const subject s = { typical % 2 != 0 ? "softmax of one" : "few lines",
                                typical % 2 != 0 ? softmax_of_one : few_lines, 1, hi, typical };
            opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
            options.target = targets[t];
            const opjit_kernel *const kernel = compile_with(&s, &options), *const list[] = { kernel, kernel };
            for (uint64_t n = 1; n <= hi; n++)
                check_size(&s, list, 2, &n);
            opjit_kernel_release((opjit_kernel *)kernel);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.dynamic.samples");
    TCase *tcase = tcase_create("samples");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, sizes_with_another_definition);
    tcase_add_loop_test(tcase, few_sizes, 2, 18);
    tcase_add_loop_test(tcase, few_sizes_of_two, 2, 10);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
