/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic.c - kernels with dynamic dimensions: for each size the bits of the kernel that is made for it alone,
 * compiled and interpreted; bindings are checked for the call's sizes; what no one kernel can serve is refused. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/support/checker.h"
#include "tests/support/dynamic_call.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum {
    WEIGHTS = 96 * 80,
    INTERPRETED_MOST = 100 /* a dimension: the interpreter takes long for more */
};

static opjit_context *context;
static opjit_error error;
static _Alignas(64) float weights[WEIGHTS];

/* --- graphs ------------------------------------------------------------------------------------------------------- */

#define INPUT(name, ...) \
    opjit_graph_input(g, name, F32, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, (const uint32_t[]){ __VA_ARGS__ })

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
static void means(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_reduce_mean(g, INPUT("x", 5, n), 1));
}
static void product(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, (const uint32_t[]){ 96, 80 }, weights, sizeof weights, 0);
    opjit_graph_output(g, "y", opjit_graph_relu(g, opjit_graph_matrix_multiply(g, INPUT("x", n, 96), w, 0, 0)));
}
static void wide_product(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", n, 48), INPUT("z", 48, 600), 0, 0));
}
static void product_of_terms(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", 24, n), INPUT("z", n, 64), 0, 0));
}
static void joined(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor parts[] = { INPUT("x", n, 24), INPUT("z", m, 24) };
    opjit_graph_output(g, "y", opjit_graph_join(g, parts, 2, 0));
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

/* Attention of one query, and of all. */
static opjit_tensor attend(opjit_graph *g, opjit_tensor scores, uint32_t n)
{
    return opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 2), INPUT("v", 2, n, 32), 0, 0);
}
static void decode(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor q = INPUT("q", 2, 1, 32), k = INPUT("k", 2, n, 32);
    opjit_graph_output(g, "y", attend(g, opjit_graph_matrix_multiply(g, q, k, 0, 1), n));
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
static void longer(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_softmax(g, INPUT("x", 2, n), 1));
}
static void queries_by_keys(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor q = INPUT("q", 2, m, 32), k = INPUT("k", 2, n, 32);
    opjit_graph_output(g, "y", attend(g, opjit_graph_matrix_multiply(g, q, k, 0, 1), n));
}

/* Keys and values of n tokens, joined to those of one more, which outputs give to the next step: sizes of n + 1, which
 * is even where n is a prime. */
static void decode_past(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor keys[] = { INPUT("past_k", 4, n, 32), INPUT("k", 4, 1, 32) };
    const opjit_tensor values[] = { INPUT("past_v", 4, n, 32), INPUT("v", 4, 1, 32) };
    const opjit_tensor k = opjit_graph_join(g, keys, 2, 1), v = opjit_graph_join(g, values, 2, 1);
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, INPUT("q", 4, 1, 32), k, 0, 1);
    const opjit_tensor shares = opjit_graph_softmax(g, opjit_graph_add(g, scores, INPUT("mask", 4, 1, n + 1)), 2);
    opjit_graph_output(g, "present_k", k);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, shares, v, 0, 0));
}

/* Blocks of a sum of all elements are of more than one row. */
static void sum_of_all(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_reduce(g, INPUT("x", n, 768), DML_REDUCE_FUNCTION_SUM, 2,
                                                  (const uint32_t[]){ 0, 1 }));
}

static void greatest_of_all(opjit_graph *g, uint32_t n, uint32_t m)
{
    opjit_graph_output(g, "y", opjit_graph_reduce(g, INPUT("x", n, m), DML_REDUCE_FUNCTION_MAX, 2,
                                                  (const uint32_t[]){ 0, 1 }));
}

typedef struct subject {
    const char *name;
    void (*build)(opjit_graph *g, uint32_t n, uint32_t m);
    uint32_t dims, hi, typical;
} subject;

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

typedef struct description {
    const subject *s;
    opjit_graph *graph;
    uint32_t calls;
} description;

static opjit_graph *build(const subject *s, const uint64_t *dims)
{
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    s->build(g, (uint32_t)dims[0], s->dims > 1 ? (uint32_t)dims[1] : 0);
    return g;
}

static opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *e)
{
    description *d = user;
    ck_assert_ptr_nonnull(e);
    d->calls++;
    opjit_graph_destroy(d->graph);
    d->graph = build(d->s, dims);
    return opjit_graph_get_desc(d->graph, out, e);
}

static opjit_kernel *compile_with(const subject *s, const opjit_compile_options *options)
{
    const opjit_dim dims[2] = { { "n", 1, s->hi, s->typical }, { "m", 1, s->hi, s->typical } };
    description d = { .s = s };
    opjit_kernel *kernel;
    ck_assert_msg(opjit_compile_dynamic(context, dims, s->dims, describe, &d, options, &kernel, &error) == OPJIT_OK,
                  "%s: %s", s->name, error.message);
    opjit_graph_destroy(d.graph);
    return kernel;
}

static opjit_kernel *compile(const subject *s, uint32_t flags, opjit_level level)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    options.level = level;
    return compile_with(s, &options);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void check_size(const subject *s, const opjit_kernel *const *kernels, uint32_t count, const uint64_t *dims)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const bool small = dims[0] <= INTERPRETED_MOST && (s->dims < 2 || dims[1] <= INTERPRETED_MOST);
    const bool interpreted = count == 1 || small || (s->build == means && dims[0] % 2 == 0);
    opjit_graph *const g = build(s, dims);
    opjit_kernel *fixed;
    char what[64];
    dynamic_memory expected, given;

    options.flags = (interpreted ? OPJIT_COMPILE_INTERPRET : 0) | OPJIT_COMPILE_NO_CACHE;
    ck_assert_msg(opjit_graph_compile(g, &options, &fixed, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    dynamic_allocate(&expected, fixed, NULL, 0, UINT64_MAX);
    ck_assert_msg(dynamic_call(&expected, fixed, NULL, 0, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t k = interpreted ? 0 : 1; k < count; k++) {
        dynamic_allocate(&given, kernels[k], dims, s->dims, UINT64_MAX);
        ck_assert_msg(dynamic_call(&given, kernels[k], dims, s->dims, &error) == OPJIT_OK, "%s: %s", s->name,
                      error.message);
        snprintf(what, sizeof what, "%s, kernel %u", s->name, k);
        dynamic_compare(&expected, &given, what, dims);
        dynamic_release(&given);
    }
    dynamic_release(&expected);
    opjit_kernel_release(fixed);
}

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

static void far_band(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_fill_band(g, INPUT("x", 4, n), -1.0f, 600, 700));
}

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

/* Sizes whose loops or sums are of several kinds: one kernel has functions for each. */
static const subject of_ranges[] = {
    { "far band", far_band, 1, 2000, 100 },          { "letters", letters, 1, 64, 20 },
    { "long softmax", longer, 1, 70000, 512 },       { "long means", means, 1, 70000, 700 },
    { "attention of one", decode, 1, 4096, 300 },    { "attention", prefill, 1, 600, 100 },
    { "few rows", product, 1, 4096, 4 },             { "terms", product_of_terms, 1, 4096, 60 },
    { "queries by keys", queries_by_keys, 2, 600, 150 }, { "attention of one, 12 heads", decode_heads, 1, 4096, 512 },
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

static uint64_t allocations;

static void *count_allocation(void *user, size_t size, size_t alignment)
{
    (void)user;
    allocations++;
    const size_t unit = alignment < 16 ? 16 : alignment;
    return aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
static void count_release(void *user, void *block, size_t size)
{
    (void)user;
    (void)size;
    free(block);
}

static const subject decoders[] = { { "decoder", decode, 1, 4096, 512 },
                                    { "decoder with a past", decode_past, 1, 1000, 256 } };

/* Keys of one more token at each call: one compile, and no call takes memory. */
START_TEST(decoder_loop)
{
    enum { LENGTHS = 1000 };
    const subject s = decoders[_i];
    const opjit_allocator allocator = { NULL, count_allocation, count_release };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_cache_stats before = OPJIT_CACHE_STATS_INIT, after = OPJIT_CACHE_STATS_INIT;
    const uint64_t largest[2] = { s.hi, 0 };
    dynamic_memory m;

    opjit_context_destroy(context);
    options.allocator = &allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    opjit_kernel *const kernel = compile(&s, OPJIT_COMPILE_INTERPRET * (opjit_context_warm(context, NULL) != OPJIT_OK),
                                         OPJIT_LEVEL_QUICK);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    const size_t bytes = (size_t)info.workspace_bytes + DYNAMIC_GUARD;
    void *const workspace = aligned_alloc(DYNAMIC_GUARD, (bytes + DYNAMIC_GUARD - 1) / DYNAMIC_GUARD * DYNAMIC_GUARD);
    ck_assert_ptr_nonnull(workspace);
    dynamic_allocate(&m, kernel, largest, 1, UINT64_MAX);
    ck_assert_int_eq(opjit_cache_get_stats(context, &before, NULL), OPJIT_OK);
    const uint64_t made = allocations;
    for (uint64_t n = 1; n <= LENGTHS; n++) {
        opjit_call c = OPJIT_CALL_INIT;
        c.bindings = m.bindings;
        c.binding_count = m.count;
        c.dims = &n;
        c.dim_count = 1;
        c.workspace = (opjit_binding){ workspace, info.workspace_bytes };
        ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
    }
    ck_assert_uint_eq(allocations, made);
    ck_assert_int_eq(opjit_cache_get_stats(context, &after, NULL), OPJIT_OK);
    ck_assert_uint_eq(after.misses, before.misses);
    dynamic_release(&m);
    free(workspace);
    opjit_kernel_release(kernel);
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

static void joined_the_other_way(opjit_graph *g, uint32_t n, uint32_t m)
{
    joined(g, m, n);
}

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

/* Rows of a past, of which there may be none, and behind them two more; sums of all. */
static void behind_the_past(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor past = INPUT("past", n == 0 ? 1 : n, 40), rows = INPUT("rows", 2, 40);
    const opjit_tensor all = n == 0 ? rows : opjit_graph_join(g, (opjit_tensor[]){ past, rows }, 2, 0);
    opjit_graph_output(g, "sums", opjit_graph_reduce_mean(g, all, 1));
    opjit_graph_output(g, "all", opjit_graph_gelu(g, all));
}

/* The same, transposed: without a past "rows" is read so, and with one as it is. */
static void behind_the_past_across(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor past = INPUT("past", n == 0 ? 1 : n, 40), rows = INPUT("rows", 2, 40);
    const opjit_tensor all = n == 0 ? rows : opjit_graph_join(g, (opjit_tensor[]){ past, rows }, 2, 0);
    const opjit_tensor across = opjit_graph_transpose(g, all, (const uint32_t[]){ 1, 0 });
    opjit_graph_output(g, "sums", opjit_graph_reduce_mean(g, across, 0));
    opjit_graph_output(g, "all", opjit_graph_transpose(g, opjit_graph_gelu(g, across), (const uint32_t[]){ 1, 0 }));
}

static const subject of_pasts[] = { { "behind the past", behind_the_past, 1, 300, 64 },
                                    { "behind the past, across", behind_the_past_across, 1, 300, 64 } };

/* A call with a size of 0 brings an input without elements. */
START_TEST(sizes_from_0)
{
    const subject s = of_pasts[_i];
    const opjit_dim dim = { "n", 0, s.hi, s.typical };
    float rows[2][40], sums[2], all[2][40];
    const opjit_binding bindings[] = { { NULL, 0 }, { rows, sizeof rows }, { sums, sizeof sums }, { all, sizeof all } };
    const uint64_t none = 0;
    opjit_call call = OPJIT_CALL_INIT;
    uint64_t own[8], bytes;

    call.bindings = bindings;
    call.binding_count = 4;
    call.dims = &none;
    call.dim_count = 1;
    for (uint32_t i = 0; i < 80; i++)
        rows[i / 40][i % 40] = (float)i / 16.0f - 2.0f;
    for (uint32_t way = 0; way < 2; way++) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        description d = { .s = &s };
        opjit_kernel *kernel;
        if (way == 1 && opjit_context_warm(context, &error) != OPJIT_OK)
            break;
        options.flags = way == 0 ? OPJIT_COMPILE_INTERPRET : 0;
        ck_assert_msg(opjit_compile_dynamic(context, &dim, 1, describe, &d, &options, &kernel, &error) == OPJIT_OK,
                      "%s", error.message);
        opjit_graph_destroy(d.graph);
        const opjit_kernel *const list[] = { kernel, kernel };
        for (uint64_t n = 1; n <= s.hi; n += 1 + n / 2)
            check_size(&s, list, 2 - (n < 10), &n);
        ck_assert_int_eq(opjit_kernel_sizes(kernel, &none, 1, 0, own, &bytes, &error), OPJIT_OK);
        ck_assert_uint_eq(bytes, 0);
        memset(all, 0, sizeof all);
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        ck_assert(sums[0] == -0.78125f && sums[1] == 1.71875f);
        ck_assert(all[0][32] == 0.0f && all[1][39] > 2.9f && all[0][0] < 0.0f);
        opjit_kernel_release(kernel);
    }
}
END_TEST

START_TEST(sizes_from_0_are_checked)
{
    const opjit_dim typical = { "n", 0, 300, 0 }, never = { "n", 0, 0, 1 },
                    many[] = { { "a", 0, 9, 4 }, { "b", 0, 9, 4 }, { "c", 0, 9, 4 } };
    description d = { .s = &of_pasts[0] };
    opjit_kernel *kernel;

    ck_assert_int_eq(opjit_compile_dynamic(context, &typical, 1, describe, &d, NULL, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "dims[0].typical (n): 0, must be 1 to 300");
    ck_assert_int_eq(opjit_compile_dynamic(context, &never, 1, describe, &d, NULL, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "dims[0] (n): bounds 0 to 0, must be 0 to 2147483647 in order, and more than 0 alone");
    ck_assert_int_eq(opjit_compile_dynamic(context, many, 3, describe, &d, NULL, &kernel, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "dims[2] (c): more than 2 dimensions begin with 0, each of which doubles the "
                                    "kernel's functions");
    opjit_graph_destroy(d.graph);
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
    for (uint32_t i = 0; i < WEIGHTS; i++)
        weights[i] = (float)(i % 61) / 16.0f - 1.5f;
}
static void teardown(void)
{
    opjit_context_destroy(context);
}

int main(void)
{
    Suite *suite = suite_create("fe.dynamic");
    TCase *tcase = tcase_create("sizes");
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, sizes, 0, sizeof subjects / sizeof subjects[0]);
    tcase_add_loop_test(tcase, sizes_in_ranges, 0, sizeof of_ranges / sizeof of_ranges[0]);
    tcase_add_test(tcase, images_with_ranges);
    tcase_add_loop_test(tcase, last_columns, 0, 4);
    tcase_add_loop_test(tcase, products_at_each_level, 0, 4);
    tcase_add_loop_test(tcase, decoder_loop, 0, sizeof decoders / sizeof *decoders);
    tcase_add_test(tcase, too_many_ranges);
    tcase_add_test(tcase, multiples_at_each_level);
    tcase_add_test(tcase, sizes_with_another_definition);
    tcase_add_test(tcase, dimensions_with_the_same_bounds);
    tcase_add_test(tcase, stages_without_iterations);
    tcase_add_loop_test(tcase, few_sizes, 2, 18);
    tcase_add_loop_test(tcase, sizes_from_0, 0, sizeof of_pasts / sizeof *of_pasts);
    tcase_add_test(tcase, sizes_from_0_are_checked);
    tcase_add_loop_test(tcase, few_sizes_of_two, 2, 10);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
