/* SPDX-License-Identifier: Apache-2.0 */
/* bench_attention.c - attention (two products and a softmax, one thread): against a loop of nothing but as many fma,
 * against three kernels, against OpenBLAS with our softmax where it is installed (its sums are in another order),
 * causal against all keys, and how long its kernel compiles when its tiles are known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/bench/fma.h"
#include "tests/bench/gemm.h"
#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

enum { SAMPLE = 2000 /* us */, SLOTS = 4 };

typedef struct sizes {
    const char *name;
    uint32_t heads, queries, keys, size;
    bool large; /* not with --quick */
} sizes;

static const sizes cases[] = {
    { .name = "12 x 512 x 64", .heads = 12, .queries = 512, .keys = 512, .size = 64 },
    { .name = "2 x 2048 x 64", .heads = 2, .queries = 2048, .keys = 2048, .size = 64 },
    { .name = "12 x 128 x 64", .heads = 12, .queries = 128, .keys = 128, .size = 64 },
    { .name = "12 x 197 x 64", .heads = 12, .queries = 197, .keys = 197, .size = 64 }, /* pictures of 224 x 224 */
    { .name = "12 x 77 x 64", .heads = 12, .queries = 77, .keys = 77, .size = 64 },    /* their captions */
    { .name = "8 x 300 x 80", .heads = 8, .queries = 300, .keys = 300, .size = 80 },
    { .name = "12 x 32 of 2048 x 64", .heads = 12, .queries = 32, .keys = 2048, .size = 64 },
    { .name = "12 x 1 of 2048 x 64", .heads = 12, .queries = 1, .keys = 2048, .size = 64 },
    { .name = "4 x 4096 x 128", .heads = 4, .queries = 4096, .keys = 4096, .size = 128, .large = true },
};

static const double peak_limit = 1 / 0.75, causal_limit = 0.6, compile_limit = 8e6;

typedef enum part { WHOLE, CAUSAL, OPERATOR, SCORES, SOFTMAX, RESULTS, CAUSAL_SOFTMAX, KERNELS } part;

typedef struct attention {
    const sizes *s;
    kernel kernels[KERNELS];
    gemm scores, results;
} attention;

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void run_three(void *arg)
{
    kernel *k = arg;
    kernel_run(&k[SCORES]);
    kernel_run(&k[SOFTMAX]);
    kernel_run(&k[RESULTS]);
}

static void run_three_causal(void *arg)
{
    kernel *k = arg;
    kernel_run(&k[SCORES]);
    kernel_run(&k[CAUSAL_SOFTMAX]);
    kernel_run(&k[RESULTS]);
}

static void run_blas(void *arg)
{
    attention *a = arg;
    gemm_blas_run(&a->scores);
    kernel_run(&a->kernels[SOFTMAX]);
    gemm_blas_run(&a->results);
}

static opjit_tensor input(opjit_graph *g, const char *name, uint32_t heads, uint32_t rows, uint32_t columns)
{
    return opjit_graph_input(g, name, DML_TENSOR_DATA_TYPE_FLOAT32, 4, (const uint32_t[]){ 1, heads, rows, columns });
}

static opjit_tensor scores_of(opjit_graph *g, const sizes *s)
{
    const DML_GEMM_OPERATOR_DESC desc = { .TransB = DML_MATRIX_TRANSFORM_TRANSPOSE,
                                          .Alpha = (float)(1 / sqrt((double)s->size)) };
    opjit_tensor inputs[2];
    inputs[0] = input(g, "q", s->heads, s->queries, s->size); /* in the order of the bindings */
    inputs[1] = input(g, "k", s->heads, s->keys, s->size);
    return opjit_graph_op(g, DML_OPERATOR_GEMM, &desc, inputs, 2);
}

static opjit_tensor weights_of(opjit_graph *g, opjit_tensor scores, bool causal)
{
    return opjit_graph_softmax(g, causal ? opjit_graph_fill_band(g, scores, -INFINITY, 1, INT32_MAX) : scores, 3);
}

/* One sequence of this many heads, whose elements lie side by side. */
static opjit_tensor operator_of(opjit_graph *g, const sizes *s)
{
    const uint32_t hidden = s->heads * s->size;
    const uint32_t queries[3] = { 1, s->queries, hidden }, keys[3] = { 1, s->keys, hidden };
    const DML_MULTIHEAD_ATTENTION_OPERATOR_DESC desc = { .Scale = (float)(1 / sqrt((double)s->size)),
                                                         .HeadCount = s->heads };
    opjit_tensor inputs[3];
    inputs[0] = opjit_graph_input(g, "q", DML_TENSOR_DATA_TYPE_FLOAT32, 3, queries);
    inputs[1] = opjit_graph_input(g, "k", DML_TENSOR_DATA_TYPE_FLOAT32, 3, keys);
    inputs[2] = opjit_graph_input(g, "v", DML_TENSOR_DATA_TYPE_FLOAT32, 3, keys);
    return opjit_graph_op(g, DML_OPERATOR_MULTIHEAD_ATTENTION, &desc, inputs, 3);
}

static opjit_tensor part_of(opjit_graph *g, const sizes *s, part p)
{
    const bool is_softmax = p == SOFTMAX || p == CAUSAL_SOFTMAX;
    if (p == OPERATOR)
        return operator_of(g, s);
    opjit_tensor x = p == WHOLE || p == CAUSAL || p == SCORES
                         ? scores_of(g, s)
                         : input(g, is_softmax ? "x" : "w", s->heads, s->queries, s->keys);
    if (p != SCORES && p != RESULTS)
        x = weights_of(g, x, p == CAUSAL || p == CAUSAL_SOFTMAX);
    if (p == SCORES || is_softmax)
        return x;
    return opjit_graph_matrix_multiply(g, x, input(g, "v", s->heads, s->keys, s->size), 0, 0);
}

static bool make_kernel(opjit_context *context, const sizes *s, part p, const opjit_binding *bindings, uint32_t count,
                        kernel *out)
{
    opjit_graph *g = NULL;
    opjit_error error;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    opjit_graph_output(g, "out", part_of(g, s, p));
    const opjit_status status = opjit_graph_compile(g, NULL, &out->kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", s->name, error.message);
    opjit_graph_destroy(g);
    memcpy(out->bindings, bindings, count * sizeof *bindings);
    out->call = (opjit_call){ .struct_size = sizeof out->call, .binding_count = count, .bindings = out->bindings };
    return status == OPJIT_OK;
}

/* Of a context of its own, whose kernels are all new; tiles are known to the process. */
static double compile_ns(const sizes *s)
{
    opjit_context *context = NULL;
    opjit_graph *g = NULL;
    opjit_kernel *k = NULL;
    double ns = NAN;
    if (opjit_context_create(NULL, &context, NULL) == OPJIT_OK && opjit_graph_create(context, &g, NULL) == OPJIT_OK) {
        opjit_graph_output(g, "out", part_of(g, s, CAUSAL));
        const double begin = measure_cpu_ns();
        if (opjit_graph_compile(g, NULL, &k, NULL) == OPJIT_OK)
            ns = measure_cpu_ns() - begin;
    }
    opjit_kernel_release(k);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
    return ns;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void put(report *r, const char *name, measure_fn run, void *ours, const char *reference, measure_fn other,
                void *arg, double limit)
{
    measure_pair pair;
    measure_run(run, ours, other, arg, r->pairs, SAMPLE, &pair);
    report_put_pair(r, name, &pair, reference, limit);
}

static void put_compile(report *r, const char *name, const sizes *s)
{
    enum { TIMES = 15 };
    double ns[TIMES], median, lo, hi;
    for (uint32_t i = 0; i < TIMES; i++)
        ns[i] = compile_ns(s);
    measure_median(ns, TIMES, &median, &lo, &hi);
    report_put(r, &(report_row){ .name = name,
                                 .ns = median,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .ratio = NAN,
                                 .bar = BAR_AT_MOST,
                                 .limit = compile_limit,
                                 .in_ns = true,
                                 .ns_lo = lo,
                                 .ns_hi = hi });
}

static void measure(report *r, const char *target, attention *a)
{
    const sizes *s = a->s;
    const bool wide = strstr(target, "x86-64-v4") != NULL;
    kernel *k = a->kernels;
    char causal[64], one[64];
    fma_alone peak = { .wide = wide };
    peak.rounds = (uint64_t)s->heads * s->queries * s->keys * s->size * 2 / (wide ? 16 : 8) / FMA_CHAINS;
    snprintf(causal, sizeof causal, "%s causal", s->name);
    snprintf(one, sizeof one, "%s operator", s->name);
    if (gemm_hand_runs())
        put(r, s->name, kernel_run, &k[WHOLE], "fma alone", fma_alone_run, &peak, s->queries >= 512 ? peak_limit : 0);
    put(r, s->name, kernel_run, &k[WHOLE], "three kernels", run_three, k, 1);
    put(r, causal, kernel_run, &k[CAUSAL], "all keys", kernel_run, &k[WHOLE], s->queries >= 512 ? causal_limit : 0);
    put(r, causal, kernel_run, &k[CAUSAL], "three kernels", run_three_causal, k, 1);
    put(r, one, kernel_run, &k[OPERATOR], "graph", kernel_run, &k[WHOLE], 0);
    if (gemm_has_blas())
        put(r, s->name, kernel_run, &k[WHOLE], "OpenBLAS and softmax", run_blas, a, 1);
    snprintf(one, sizeof one, "%s compile", s->name);
    put_compile(r, one, s);
}

static float *matrix(size_t count)
{
    float *const f = measure_buffer(count * sizeof *f);
    for (size_t i = 0; f && i < count; i++)
        f[i] = (float)((int)((uint32_t)(i * 2654435761u) >> 20) - 2048) / 1024;
    return f;
}

static bool make_all(opjit_context *context, attention *a, float *const *f, const size_t *counts)
{
    opjit_binding of[6];
    for (uint32_t i = 0; i < 6; i++)
        of[i] = (opjit_binding){ f[i], counts[i] * sizeof(float) };
    const opjit_binding all[] = { of[0], of[1], of[2], of[3] }, scores[] = { of[0], of[1], of[4] };
    const opjit_binding softmax[] = { of[4], of[5] }, results[] = { of[5], of[2], of[3] };
    bool ok = true;
    for (uint32_t p = 0; p < KERNELS && ok; p++) {
        const bool is_softmax = p == SOFTMAX || p == CAUSAL_SOFTMAX;
        ok = make_kernel(context, a->s, (part)p,
                         is_softmax     ? softmax
                         : p == SCORES  ? scores
                         : p == RESULTS ? results
                                        : all,
                         is_softmax                    ? 2
                         : p == SCORES || p == RESULTS ? 3
                                                       : 4,
                         &a->kernels[p]);
    }
    return ok;
}

static bool one(report *r, opjit_context *context, const char *target, const sizes *s)
{
    const size_t own = (size_t)s->heads * s->queries * s->size, other = (size_t)s->heads * s->keys * s->size;
    const size_t all = (size_t)s->heads * s->queries * s->keys;
    const size_t counts[] = { own, other, other, own, all, all };
    enum { BUFFERS = sizeof counts / sizeof *counts };
    attention a = { .s = s };
    float *f[BUFFERS];
    bool ok = true;
    for (uint32_t i = 0; i < BUFFERS; i++)
        ok = (f[i] = matrix(counts[i])) != NULL && ok;
    a.scores = (gemm){ .batch = s->heads,
                       .m = s->queries,
                       .n = s->keys,
                       .k = s->size,
                       .turned = true,
                       .a = f[0],
                       .b = f[1],
                       .out = f[4] };
    a.results =
        (gemm){ .batch = s->heads, .m = s->queries, .n = s->size, .k = s->keys, .a = f[5], .b = f[2], .out = f[3] };
    ok = ok && make_all(context, &a, f, counts);
    if (ok)
        measure(r, target, &a);
    for (uint32_t i = 0; i < KERNELS; i++) {
        ok = ok && !a.kernels[i].failed;
        opjit_kernel_release(a.kernels[i].kernel);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (f[i])
            measure_buffer_free(f[i], counts[i] * sizeof(float));
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    const int status = report_open(&r, "attention", argc, argv, &context);
    if (status != 0)
        return status;
    const char *target = opjit_context_target(context);
    gemm_peers_open(strstr(target, "x86-64-v4") != NULL, 1);
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ok; i++)
        if (report_wants(&r, cases[i].name) && !(r.quick && cases[i].large))
            ok = one(&r, context, target, &cases[i]);
    opjit_context_destroy(context);
    return ok ? report_end(&r) : 1;
}
