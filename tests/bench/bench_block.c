/* SPDX-License-Identifier: Apache-2.0 */
/* bench_block.c - a block of a transformer as one graph (layer norm, a product for queries, keys and values, attention,
 * projection and residual, layer norm, two products with GELU and residual; FLOAT32, one thread): against its parts as
 * kernels of their own, against a loop of nothing but as many fma, each part against its fma, and how long it compiles.
 * Either of all tokens, or of one that is decoded with the keys and values of those before. */
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

enum { SAMPLE = 4000 /* us */, TIMES = 7 /* compiles */, MOST_INPUTS = 15 };

typedef struct sizes {
    const char *name;
    uint32_t heads, size, tokens, past; /* past: keys of earlier tokens; 0: none */
} sizes;

static const sizes cases[] = {
    { .name = "12 x 512 x 64", .heads = 12, .size = 64, .tokens = 512 },
    { .name = "12 x 1 of 1024 x 64", .heads = 12, .size = 64, .tokens = 1, .past = 1023 },
};

/* Tensors: inputs of the block, then what its parts hand on. */
typedef enum tensor {
    X,
    SCALE1, BIAS1,
    W_QKV, B_QKV,
    W_OUT, B_OUT,
    SCALE2, BIAS2,
    W_UP, B_UP,
    W_DOWN, B_DOWN,
    PAST_K, PAST_V,
    NORM1, QKV, CONTEXT, MIDDLE, NORM2, HIDDEN, RESULT,
    TENSORS
} tensor;

static void sizes_of(const sizes *s, tensor t, uint32_t *out)
{
    const uint32_t e = s->heads * s->size, rows = t == W_UP || t == W_QKV || t == W_OUT ? e : t == W_DOWN ? 4 * e : 0;
    const bool is_bias = t == SCALE1 || t == BIAS1 || t == SCALE2 || t == BIAS2 || t == B_QKV || t == B_OUT ||
                         t == B_UP || t == B_DOWN;
    const bool wide = t == W_UP || t == B_UP || t == HIDDEN, three = t == W_QKV || t == B_QKV || t == QKV;
    out[0] = 1;
    out[1] = t == PAST_K || t == PAST_V ? s->heads : 1;
    out[2] = t == PAST_K || t == PAST_V ? s->past : is_bias ? 1 : rows > 0 ? rows : s->tokens;
    out[3] = t == PAST_K || t == PAST_V ? s->size : wide ? 4 * e : three ? 3 * e : e;
}

static size_t count_of(const sizes *s, tensor t)
{
    uint32_t n[4];
    sizes_of(s, t, n);
    return (size_t)n[0] * n[1] * n[2] * n[3];
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static opjit_tensor product(opjit_graph *g, opjit_tensor a, opjit_tensor b, opjit_tensor bias)
{
    return opjit_graph_add(g, opjit_graph_matrix_multiply(g, a, b, 0, 0), bias);
}

/* The heads of queries, keys or values: [1, heads, tokens, size]. */
static opjit_tensor heads_of(opjit_graph *g, const sizes *s, opjit_tensor qkv, uint32_t number, opjit_tensor past)
{
    const uint32_t e = s->heads * s->size;
    opjit_tensor x = opjit_graph_slice(g, qkv, (const uint32_t[]){ 0, 0, 0, number * e },
                                       (const uint32_t[]){ 1, 1, s->tokens, e }, NULL);
    x = opjit_graph_reshape(g, x, 4, (const uint32_t[]){ 1, s->tokens, s->heads, s->size });
    x = opjit_graph_transpose(g, x, (const uint32_t[]){ 0, 2, 1, 3 });
    return number == 0 || s->past == 0 ? x : opjit_graph_join(g, (const opjit_tensor[]){ past, x }, 2, 2);
}

static opjit_tensor attention(opjit_graph *g, const sizes *s, const opjit_tensor *in)
{
    const DML_GEMM_OPERATOR_DESC desc = { .TransB = DML_MATRIX_TRANSFORM_TRANSPOSE,
                                          .Alpha = (float)(1 / sqrt((double)s->size)) };
    const opjit_tensor q = heads_of(g, s, in[QKV], 0, in[PAST_K]), k = heads_of(g, s, in[QKV], 1, in[PAST_K]);
    const opjit_tensor v = heads_of(g, s, in[QKV], 2, in[PAST_V]);
    const opjit_tensor scores = opjit_graph_op(g, DML_OPERATOR_GEMM, &desc, (const opjit_tensor[]){ q, k }, 2);
    opjit_tensor x = opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 3), v, 0, 0);
    x = opjit_graph_transpose(g, x, (const uint32_t[]){ 0, 2, 1, 3 });
    return opjit_graph_reshape(g, x, 4, (const uint32_t[]){ 1, 1, s->tokens, s->heads * s->size });
}

static opjit_tensor step(opjit_graph *g, const sizes *s, tensor t, const opjit_tensor *in)
{
    switch (t) {
    case NORM1: return opjit_graph_layer_norm(g, in[X], in[SCALE1], in[BIAS1], 3, 1e-5f);
    case QKV: return product(g, in[NORM1], in[W_QKV], in[B_QKV]);
    case CONTEXT: return attention(g, s, in);
    case MIDDLE: return opjit_graph_add(g, product(g, in[CONTEXT], in[W_OUT], in[B_OUT]), in[X]);
    case NORM2: return opjit_graph_layer_norm(g, in[MIDDLE], in[SCALE2], in[BIAS2], 3, 1e-5f);
    case HIDDEN: return opjit_graph_gelu(g, product(g, in[NORM2], in[W_UP], in[B_UP]));
    default: return opjit_graph_add(g, product(g, in[HIDDEN], in[W_DOWN], in[B_DOWN]), in[MIDDLE]);
    }
}

static const char *const names[] = { "norm", "queries, keys, values", "attention", "projection", "norm", "up and GELU",
                                     "down" };

/* What each part reads, as bits; the block reads all before NORM1. */
#define BIT(t) (1u << (t))
static const uint32_t reads[] = {
    BIT(X) | BIT(SCALE1) | BIT(BIAS1),
    BIT(NORM1) | BIT(W_QKV) | BIT(B_QKV),
    BIT(QKV) | BIT(PAST_K) | BIT(PAST_V),
    BIT(CONTEXT) | BIT(W_OUT) | BIT(B_OUT) | BIT(X),
    BIT(MIDDLE) | BIT(SCALE2) | BIT(BIAS2),
    BIT(NORM2) | BIT(W_UP) | BIT(B_UP),
    BIT(HIDDEN) | BIT(W_DOWN) | BIT(B_DOWN) | BIT(MIDDLE),
    BIT(NORM1) - 1, /* the block */
};
enum { PARTS = sizeof names / sizeof *names, BLOCK = PARTS };

typedef struct transformer {
    const sizes *s;
    float *memory[TENSORS];
    kernel kernels[PARTS + 1];
} transformer;

static opjit_status make_kernel(opjit_context *context, const transformer *b, uint32_t part, kernel *out,
                                opjit_error *error)
{
    opjit_graph *g = NULL;
    opjit_tensor in[TENSORS] = { 0 };
    uint32_t n[4], count = 0;
    opjit_status status = opjit_graph_create(context, &g, error);
    if (status != OPJIT_OK)
        return status;
    for (uint32_t t = 0; t < TENSORS; t++) {
        if ((reads[part] & BIT(t)) == 0 || count_of(b->s, (tensor)t) == 0)
            continue;
        char name[8];
        snprintf(name, sizeof name, "t%u", (unsigned)t);
        sizes_of(b->s, (tensor)t, n);
        in[t] = opjit_graph_input(g, name, DML_TENSOR_DATA_TYPE_FLOAT32, 4, n);
        out->bindings[count++] = (opjit_binding){ b->memory[t], count_of(b->s, (tensor)t) * sizeof(float) };
    }
    const uint32_t first = part == BLOCK ? NORM1 : NORM1 + part, last = part == BLOCK ? RESULT : NORM1 + part;
    for (uint32_t t = first; t <= last; t++)
        in[t] = step(g, b->s, (tensor)t, in);
    out->bindings[count++] = (opjit_binding){ b->memory[last], count_of(b->s, (tensor)last) * sizeof(float) };
    out->call = (opjit_call){ .struct_size = sizeof out->call, .binding_count = count, .bindings = out->bindings };
    opjit_graph_output(g, "out", in[last]);
    status = opjit_graph_compile(g, NULL, &out->kernel, error);
    opjit_graph_destroy(g);
    return status;
}

/* Products of a part; the block's with PARTS. */
static double products_of(const sizes *s, uint32_t part)
{
    const double e = (double)s->heads * s->size, rows = s->tokens;
    const double of[] = { 0, 3 * e * e * rows, 2 * e * rows * (s->tokens + s->past), e * e * rows,
                          0, 4 * e * e * rows, 4 * e * e * rows };
    double all = 0;
    for (uint32_t i = 0; i < PARTS; i++)
        all += of[i];
    return part == BLOCK ? all : of[part];
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void run_block(void *arg)
{
    kernel_run(&((transformer *)arg)->kernels[BLOCK]);
}

static void run_parts(void *arg)
{
    for (uint32_t i = 0; i < PARTS; i++)
        kernel_run(&((transformer *)arg)->kernels[i]);
}

static void put_fma(report *r, transformer *b, uint32_t part, bool wide)
{
    measure_pair pair;
    char name[80];
    fma_alone peak = { .wide = wide };
    peak.rounds = (uint64_t)(products_of(b->s, part) / (wide ? 16 : 8) / FMA_CHAINS);
    snprintf(name, sizeof name, "%s%s%s", b->s->name, part == BLOCK ? "" : ": ", part == BLOCK ? "" : names[part]);
    if (peak.rounds == 0 || !gemm_hand_runs())
        return;
    measure_run(kernel_run, &b->kernels[part], fma_alone_run, &peak, r->pairs, SAMPLE, &pair);
    report_put_pair(r, name, &pair, "fma alone", 0);
}

static bool put_compile(report *r, const transformer *b)
{
    double ns[TIMES], median, lo, hi;
    char name[80], note[80];
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    bool ok = true;
    for (uint32_t i = 0; i < TIMES && ok; i++) {
        opjit_context *context = NULL; /* of its own, whose kernels are all new; tiles are known to the process */
        opjit_error error;
        kernel k = { 0 };
        ok = opjit_context_create(NULL, &context, &error) == OPJIT_OK;
        const double begin = measure_cpu_ns();
        ok = ok && make_kernel(context, b, BLOCK, &k, &error) == OPJIT_OK;
        ns[i] = measure_cpu_ns() - begin;
        opjit_kernel_release(k.kernel);
        opjit_context_destroy(context);
    }
    ok = ok && opjit_kernel_get_info(b->kernels[BLOCK].kernel, &info, NULL) == OPJIT_OK;
    if (!ok)
        return false;
    measure_median(ns, TIMES, &median, &lo, &hi);
    snprintf(name, sizeof name, "%s compile", b->s->name);
    snprintf(note, sizeof note, "%u stages, workspace %.1f MiB", (unsigned)info.meta->steps,
             (double)info.workspace_bytes / (1 << 20));
    report_put(r, &(report_row){ .name = name,
                                 .ns = median,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .ratio = NAN,
                                 .note = note });
    return true;
}

static bool measure(report *r, const char *target, transformer *b)
{
    const bool wide = strstr(target, "x86-64-v4") != NULL;
    measure_pair pair;
    measure_run(run_block, b, run_parts, b, r->pairs, SAMPLE, &pair);
    report_put_pair(r, b->s->name, &pair, "its parts", 1);
    put_fma(r, b, BLOCK, wide);
    for (uint32_t i = 0; i < PARTS; i++)
        put_fma(r, b, i, wide);
    return put_compile(r, b);
}

static float *matrix(size_t count, double scale)
{
    float *const f = measure_buffer(count * sizeof *f);
    for (size_t i = 0; f && i < count; i++)
        f[i] = (float)(((int)((uint32_t)(i * 2654435761u) >> 20) - 2048) / 2048.0 * scale);
    return f;
}

static bool one(report *r, opjit_context *context, const char *target, const sizes *s)
{
    transformer b = { .s = s };
    opjit_error error = { 0 };
    bool ok = true;
    for (uint32_t t = 0; t < TENSORS && ok; t++)
        if (count_of(s, (tensor)t) > 0)
            ok = (b.memory[t] = matrix(count_of(s, (tensor)t), 1 / sqrt((double)s->heads * s->size))) != NULL;
    for (uint32_t i = 0; i <= PARTS && ok; i++)
        ok = make_kernel(context, &b, i, &b.kernels[i], &error) == OPJIT_OK;
    if (!ok)
        fprintf(stderr, "%s: %s\n", s->name, error.message);
    ok = ok && measure(r, target, &b);
    for (uint32_t i = 0; i <= PARTS; i++) {
        ok = ok && !b.kernels[i].failed;
        opjit_kernel_release(b.kernels[i].kernel);
    }
    for (uint32_t t = 0; t < TENSORS; t++)
        if (b.memory[t])
            measure_buffer_free(b.memory[t], count_of(s, (tensor)t) * sizeof(float));
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    opjit_error error;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const int status = report_options(&r, argc, argv);
    if (status != 0)
        return status;
    options.target = getenv("OPJIT_BENCH_TARGET");
    if (opjit_context_create(&options, &context, &error) != OPJIT_OK) {
        fprintf(stderr, "bench_block: %s\n", error.message);
        return 1;
    }
    const char *target = opjit_context_target(context);
    gemm_peers_open(strstr(target, "x86-64-v4") != NULL, 1);
    report_begin(&r, "block of a transformer", target);
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ok; i++)
        if (report_wants(&r, cases[i].name))
            ok = one(&r, context, target, &cases[i]);
    opjit_context_destroy(context);
    return ok ? report_end(&r) : 1;
}
