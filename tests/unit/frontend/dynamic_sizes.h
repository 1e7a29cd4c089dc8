/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_sizes.h - shared by tests of kernels with dynamic dimensions: graphs of some sizes, one kernel for all of
 * these, and that it computes for each size the bits of the kernel that is made for it alone.  Includers define
 * _POSIX_C_SOURCE. */
#ifndef OPJIT_TESTS_UNIT_DYNAMIC_SIZES_H
#define OPJIT_TESTS_UNIT_DYNAMIC_SIZES_H

#include <check.h>
#include <stdio.h>

#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

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

static inline void joined(opjit_graph *g, uint32_t n, uint32_t m)
{
    const opjit_tensor parts[] = { INPUT("x", n, 24), INPUT("z", m, 24) };
    opjit_graph_output(g, "y", opjit_graph_join(g, parts, 2, 0));
}

static inline void product(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, (const uint32_t[]){ 96, 80 }, weights, sizeof weights, 0);
    opjit_graph_output(g, "y", opjit_graph_relu(g, opjit_graph_matrix_multiply(g, INPUT("x", n, 96), w, 0, 0)));
}

static inline void product_of_terms(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, INPUT("x", 24, n), INPUT("z", n, 64), 0, 0));
}

static inline void means(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_reduce_mean(g, INPUT("x", 5, n), 1));
}

/* Attention of one query, and of all. */
static inline opjit_tensor attend(opjit_graph *g, opjit_tensor scores, uint32_t n)
{
    return opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 2), INPUT("v", 2, n, 32), 0, 0);
}

static inline void decode(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor q = INPUT("q", 2, 1, 32), k = INPUT("k", 2, n, 32);
    opjit_graph_output(g, "y", attend(g, opjit_graph_matrix_multiply(g, q, k, 0, 1), n));
}

/* Keys and values of n tokens, joined to those of one more, which outputs give to the next step: sizes of n + 1, which
 * is even where n is a prime. */
static inline void decode_past(opjit_graph *g, uint32_t n, uint32_t m)
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

static inline void far_band(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    opjit_graph_output(g, "y", opjit_graph_fill_band(g, INPUT("x", 4, n), -1.0f, 600, 700));
}

typedef struct subject {
    const char *name;
    void (*build)(opjit_graph *g, uint32_t n, uint32_t m);
    uint32_t dims, hi, typical;
} subject;

typedef struct description {
    const subject *s;
    opjit_graph *graph;
    uint32_t calls;
} description;

static inline opjit_graph *build(const subject *s, const uint64_t *dims)
{
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    s->build(g, (uint32_t)dims[0], s->dims > 1 ? (uint32_t)dims[1] : 0);
    return g;
}

static inline opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *e)
{
    description *d = user;
    ck_assert_ptr_nonnull(e);
    d->calls++;
    opjit_graph_destroy(d->graph);
    d->graph = build(d->s, dims);
    return opjit_graph_get_desc(d->graph, out, e);
}

static inline opjit_kernel *compile_with(const subject *s, const opjit_compile_options *options)
{
    const opjit_dim dims[2] = { { "n", 1, s->hi, s->typical }, { "m", 1, s->hi, s->typical } };
    description d = { .s = s };
    opjit_kernel *kernel;
    ck_assert_msg(opjit_compile_dynamic(context, dims, s->dims, describe, &d, options, &kernel, &error) == OPJIT_OK,
                  "%s: %s", s->name, error.message);
    opjit_graph_destroy(d.graph);
    return kernel;
}

static inline opjit_kernel *compile(const subject *s, uint32_t flags, opjit_level level)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = flags;
    options.level = level;
    return compile_with(s, &options);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static inline void check_size(const subject *s, const opjit_kernel *const *kernels, uint32_t count,
                              const uint64_t *dims)
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

static inline void setup(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
    for (uint32_t i = 0; i < WEIGHTS; i++)
        weights[i] = (float)(i % 61) / 16.0f - 1.5f;
}

static inline void teardown(void)
{
    opjit_context_destroy(context);
}

#endif
