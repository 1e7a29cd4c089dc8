/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm.c - products of matrices (GEMM, one thread) against OpenBLAS and oneDNN where they are installed, whose
 * sums are in other orders; against a loop of nothing but as many fma; against tiles written by hand in C, whose
 * results are the same bits; products with an end (bias, activation, residual) against the same in two kernels; some on
 * two threads against one, and OpenBLAS's two.
 * OPJIT_BENCH_TARGET=cpu:x86-64-v3: all of them for AVX2. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/bench/fma.h"
#include "tests/bench/gemm.h"
#include "tests/bench/kernel.h"
#include "tests/bench/pool.h"
#include "tests/bench/report.h"

enum { SAMPLE = 2000 /* us */ };

static const double peer_limit = 1 / 0.95, peak_limit = 1 / 0.85, half_limit = 1 / 0.9, bytes_limit = 1 / 3.0,
                    two_limit = 1 / 1.8;

typedef struct sizes {
    const char *name;
    uint32_t batch, m, n, k;
    bool turned;
    gemm_end end;
    double hand_limit; /* 0: no whole tiles and blocks */
    bool half;         /* as FLOAT16, too */
    bool bytes;        /* as UINT8 times INT8, too */
    bool large;        /* not with --quick */
    bool kept;         /* once more with a constant B, whose copy the kernel keeps */
    bool two;          /* on two threads, too */
} sizes;

static const sizes cases[] = {
    { .name = "64^3", .batch = 1, .m = 64, .n = 64, .k = 64, .hand_limit = 1.3 },
    { .name = "12 x 64^3", .batch = 12, .m = 64, .n = 64, .k = 64, .half = true },
    { .name = "128^3", .batch = 1, .m = 128, .n = 128, .k = 128 },
    { .name = "256^3", .batch = 1, .m = 256, .n = 256, .k = 256 },
    { .name = "384^3", .batch = 1, .m = 384, .n = 384, .k = 384 },
    { .name = "512^3", .batch = 1, .m = 512, .n = 512, .k = 512, .hand_limit = 1.1, .half = true, .bytes = true,
      .kept = true },
    { .name = "768^3", .batch = 1, .m = 768, .n = 768, .k = 768 },
    { .name = "1024^3", .batch = 1, .m = 1024, .n = 1024, .k = 1024, .hand_limit = 1.1, .half = true, .bytes = true,
      .two = true },
    { .name = "1536^3", .batch = 1, .m = 1536, .n = 1536, .k = 1536, .large = true },
    { .name = "2048^3", .batch = 1, .m = 2048, .n = 2048, .k = 2048, .large = true },
    { .name = "511x513x517", .batch = 1, .m = 511, .n = 513, .k = 517, .half = true, .bytes = true },
    { .name = "1000^3", .batch = 1, .m = 1000, .n = 1000, .k = 1000, .half = true, .bytes = true },
    { .name = "128x768x3072", .batch = 1, .m = 128, .n = 768, .k = 3072, .half = true, .bytes = true,
      .two = true, .kept = true },
    { .name = "128x3072x768", .batch = 1, .m = 128, .n = 3072, .k = 768, .hand_limit = 1.1 },
    { .name = "16x4096x4096", .batch = 1, .m = 16, .n = 4096, .k = 4096, .half = true, .bytes = true, .kept = true },
    { .name = "4x4096x4096", .batch = 1, .m = 4, .n = 4096, .k = 4096, .kept = true },
    { .name = "1x4096x4096", .batch = 1, .m = 1, .n = 4096, .k = 4096, .half = true, .kept = true },
    { .name = "16x4096x4096 turned", .batch = 1, .m = 16, .n = 4096, .k = 4096, .turned = true, .kept = true },
    { .name = "4x4096x4096 turned", .batch = 1, .m = 4, .n = 4096, .k = 4096, .turned = true, .kept = true },
    { .name = "1x4096x4096 turned", .batch = 1, .m = 1, .n = 4096, .k = 4096, .turned = true, .kept = true },
    { .name = "512^3 turned", .batch = 1, .m = 512, .n = 512, .k = 512, .turned = true, .kept = true },
    { .name = "4096x8x512", .batch = 1, .m = 4096, .n = 8, .k = 512 },
    { .name = "4096x1x4096", .batch = 1, .m = 4096, .n = 1, .k = 4096 },
    { .name = "2x3x65536 turned", .batch = 1, .m = 2, .n = 3, .k = 65536, .turned = true },
    { .name = "1x1x65536", .batch = 1, .m = 1, .n = 1, .k = 65536, .turned = true },
    { .name = "128x3072x768 relu", .batch = 1, .m = 128, .n = 3072, .k = 768, .end = GEMM_BIAS_RELU },
    { .name = "128x3072x768 gelu", .batch = 1, .m = 128, .n = 3072, .k = 768, .end = GEMM_BIAS_GELU },
    { .name = "512^3 gelu residual", .batch = 1, .m = 512, .n = 512, .k = 512, .end = GEMM_BIAS_GELU_RESIDUAL },
};

enum { SLOTS = 5 }; /* of a call */

typedef struct product {
    const sizes *s;
    gemm g;       /* out: the kernel's */
    gemm other;   /* out: the references' */
    float *mid;   /* the product alone, where it has an end */
    kernel whole;
    kernel parts[2]; /* product, end */
    kernel kept;     /* whole, B a constant */
} product;

static const char *target; /* of the context */
static pool *two_threads;  /* NULL: not started */

/* --- ours --------------------------------------------------------------------------------------------------------- */

static void run_parts(void *arg)
{
    kernel *parts = arg;
    kernel_run(&parts[0]);
    kernel_run(&parts[1]);
}

static opjit_tensor input(opjit_graph *g, const char *name, DML_TENSOR_DATA_TYPE type, uint32_t batch, uint32_t rows,
                          uint32_t columns)
{
    return opjit_graph_input(g, name, type, 4, (const uint32_t[]){ 1, batch, rows, columns });
}

/* constant: B's elements, or NULL where they are given to each call. */
static opjit_tensor product_of(opjit_graph *g, const sizes *s, DML_TENSOR_DATA_TYPE type, const void *constant)
{
    const opjit_tensor a = input(g, "a", type, s->batch, s->m, s->k);
    const uint32_t of_b[] = { 1, s->batch, s->turned ? s->n : s->k, s->turned ? s->k : s->n };
    const uint64_t bytes = (uint64_t)s->batch * s->n * s->k * (type == DML_TENSOR_DATA_TYPE_FLOAT16 ? 2 : 4);
    const opjit_tensor b = constant == NULL ? opjit_graph_input(g, "b", type, 4, of_b)
                                            : opjit_graph_constant(g, type, 4, of_b, constant, bytes, 0);
    return opjit_graph_matrix_multiply(g, a, b, 0, s->turned);
}

static opjit_tensor end_of(opjit_graph *g, const sizes *s, opjit_tensor x)
{
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    if (s->end == GEMM_PLAIN)
        return x;
    x = opjit_graph_add(g, x, input(g, "bias", type, 1, 1, s->n));
    x = s->end == GEMM_BIAS_RELU ? opjit_graph_relu(g, x) : opjit_graph_gelu(g, x);
    if (s->end == GEMM_BIAS_GELU_RESIDUAL)
        x = opjit_graph_add(g, x, input(g, "residual", type, s->batch, s->m, s->n));
    return x;
}

typedef enum part { WHOLE, PRODUCT, END } part;

static bool make_kernel(opjit_context *context, const sizes *s, part p, DML_TENSOR_DATA_TYPE type,
                        const void *constant, const opjit_binding *bindings, uint32_t count, kernel *out)
{
    opjit_graph *g = NULL;
    opjit_error error;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    opjit_tensor x = p == END ? input(g, "x", type, s->batch, s->m, s->n) : product_of(g, s, type, constant);
    opjit_graph_output(g, "out", p == PRODUCT ? x : end_of(g, s, x));
    const opjit_status status = opjit_graph_compile(g, NULL, &out->kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", s->name, error.message);
    opjit_graph_destroy(g);
    memcpy(out->bindings, bindings, count * sizeof *bindings);
    out->call = (opjit_call){ .struct_size = sizeof out->call, .binding_count = count, .bindings = out->bindings };
    return status == OPJIT_OK;
}

static bool make_kernels(opjit_context *context, product *p)
{
    const sizes *s = p->s;
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    const uint64_t batch = s->batch * sizeof(float), bytes = batch * s->m * s->n;
    const opjit_binding a = { p->g.a, batch * s->m * s->k }, b = { p->g.b, batch * s->k * s->n };
    const opjit_binding bias = { p->g.bias, s->n * sizeof(float) }, residual = { p->g.residual, bytes };
    const opjit_binding mid = { p->mid, bytes }, out = { p->g.out, bytes };
    if (s->kept && !make_kernel(context, s, WHOLE, type, p->g.b, (opjit_binding[]){ a, out }, 2, &p->kept))
        return false;
    if (s->end == GEMM_PLAIN)
        return make_kernel(context, s, WHOLE, type, NULL, (opjit_binding[]){ a, b, out }, 3, &p->whole);
    const bool more = s->end == GEMM_BIAS_GELU_RESIDUAL;
    const opjit_binding whole[] = { a, b, bias, more ? residual : out, out };
    const opjit_binding end[] = { mid, bias, more ? residual : out, out };
    return make_kernel(context, s, WHOLE, type, NULL, whole, 4 + more, &p->whole) &&
           make_kernel(context, s, PRODUCT, type, NULL, (opjit_binding[]){ a, b, mid }, 3, &p->parts[0]) &&
           make_kernel(context, s, END, type, NULL, end, 3 + more, &p->parts[1]);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void put(report *r, const char *name, void *ours, const char *reference, measure_fn other, void *arg,
                double limit)
{
    measure_pair pair;
    measure_run(kernel_run, ours, other, arg, r->pairs, SAMPLE, &pair);
    report_put_pair(r, name, &pair, reference, limit);
}

static void put_peak(report *r, product *p, const char *name, kernel *ours)
{
    const bool wide = strstr(target, "x86-64-v4") != NULL;
    const sizes *s = p->s;
    fma_alone peak = { .wide = wide };
    peak.rounds = (uint64_t)s->batch * s->m * s->n * s->k / (wide ? 16 : 8) / FMA_CHAINS;
    if (gemm_hand_runs())
        put(r, name, ours, "fma alone", fma_alone_run, &peak, s->m >= 64 && s->n >= 64 ? peak_limit : 0);
}

static void put_peers(report *r, product *p, const char *name, kernel *ours)
{
    const sizes *s = p->s;
    const double limit = s->m >= 64 && s->n >= 64 ? peer_limit : 1;
    struct gemm_dnn *dnn = gemm_dnn_make(&p->other);
    if (gemm_has_blas() && s->end == GEMM_PLAIN)
        put(r, name, ours, "OpenBLAS", gemm_blas_run, &p->other, limit);
    if (gemm_has_blas() && s->end == GEMM_PLAIN && s->m == 1)
        put(r, name, ours, "OpenBLAS, sgemv", gemm_blas_vector_run, &p->other, limit);
    if (dnn)
        put(r, name, ours, "oneDNN", gemm_dnn_run, dnn, limit);
    gemm_dnn_free(dnn);
}

/* The same product of FLOAT16; the elements are small numbers whatever the bits. */
static bool put_half(report *r, opjit_context *context, product *p)
{
    const sizes *s = p->s;
    const uint64_t batch = s->batch * (uint64_t)2;
    uint64_t bytes[] = { batch * s->m * s->k, batch * s->k * s->n, batch * s->m * s->n };
    kernel half = { .kernel = NULL };
    opjit_binding bindings[3];
    bool ok = true;
    for (uint32_t i = 0; i < 3; i++) {
        bytes[i] = (bytes[i] + 3) / 4 * 4; /* as DirectML counts them */
        bindings[i] = (opjit_binding){ measure_buffer(bytes[i]), bytes[i] };
        ok = ok && bindings[i].data;
        for (uint64_t e = 0; bindings[i].data && e < bytes[i] / 2; e++)
            ((uint16_t *)bindings[i].data)[e] = (uint16_t)(0x3000 + (e * 2654435761u >> 20 & 0xbff));
    }
    ok = ok && make_kernel(context, s, WHOLE, DML_TENSOR_DATA_TYPE_FLOAT16, NULL, bindings, 3, &half);
    char name[64];
    snprintf(name, sizeof name, "%s f16", s->name);
    if (ok)
        put(r, name, &half, "FLOAT32", kernel_run, &p->whole, half_limit);
    for (uint32_t i = 0; i < 3; i++)
        if (bindings[i].data)
            measure_buffer_free(bindings[i].data, bytes[i]);
    opjit_kernel_release(half.kernel);
    return ok && !half.failed;
}

/* UINT8 less a zero point times INT8 less another one, in INT32; constant: B and its zero point are. */
static bool make_bytes(opjit_context *context, const sizes *s, const opjit_binding *bindings, bool constant,
                       kernel *out)
{
    opjit_graph *g = NULL;
    opjit_error error;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_INT8;
    const uint32_t of_b[] = { 1, s->batch, s->k, s->n }, of_zero[] = { 1, 1, 1, 1 };
    const opjit_binding given[] = { bindings[0], bindings[1], bindings[constant ? 4 : 2], bindings[3], bindings[4] };
    const opjit_tensor inputs[] = { input(g, "a", DML_TENSOR_DATA_TYPE_UINT8, s->batch, s->m, s->k),
                                    input(g, "az", DML_TENSOR_DATA_TYPE_UINT8, 1, 1, 1),
                                    constant ? opjit_graph_constant(g, type, 4, of_b, bindings[2].data,
                                                                    (uint64_t)s->batch * s->k * s->n, 0)
                                             : opjit_graph_input(g, "b", type, 4, of_b),
                                    constant ? opjit_graph_constant(g, type, 4, of_zero, bindings[3].data, 1, 0)
                                             : opjit_graph_input(g, "bz", type, 4, of_zero) };
    const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC desc = { 0 };
    opjit_graph_output(g, "out", opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, &desc, inputs, 4));
    const opjit_status status = opjit_graph_compile(g, NULL, &out->kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", s->name, error.message);
    opjit_graph_destroy(g);
    memcpy(out->bindings, given, sizeof given);
    out->call = (opjit_call){ .struct_size = sizeof out->call, .binding_count = constant ? 3 : 5,
                              .bindings = out->bindings };
    return status == OPJIT_OK;
}

static bool put_bytes(report *r, opjit_context *context, product *p)
{
    const sizes *s = p->s;
    const uint64_t batch = s->batch;
    uint64_t bytes[] = { batch * s->m * s->k, 4, batch * s->k * s->n, 4, batch * s->m * s->n * 4 };
    kernel whole = { .kernel = NULL }, kept = { .kernel = NULL };
    opjit_binding bindings[5];
    bool ok = true;
    for (uint32_t i = 0; i < 5; i++) {
        bytes[i] = (bytes[i] + 3) / 4 * 4; /* as DirectML counts them */
        bindings[i] = (opjit_binding){ measure_buffer(bytes[i]), bytes[i] };
        ok = ok && bindings[i].data;
        for (uint64_t e = 0; bindings[i].data && e < bytes[i]; e++)
            ((uint8_t *)bindings[i].data)[e] = (uint8_t)((e + 7) * 2654435761u >> 20);
    }
    ok = ok && make_bytes(context, s, bindings, false, &whole) && make_bytes(context, s, bindings, true, &kept);
    char name[64];
    snprintf(name, sizeof name, "%s u8 i8", s->name);
    if (ok)
        put(r, name, &whole, "FLOAT32", kernel_run, &p->whole, bytes_limit);
    snprintf(name, sizeof name, "%s u8 i8 constant", s->name);
    if (ok)
        put(r, name, &kept, "B given", kernel_run, &whole, 1);
    for (uint32_t i = 0; i < 5; i++)
        if (bindings[i].data)
            measure_buffer_free(bindings[i].data, bytes[i]);
    opjit_kernel_release(whole.kernel);
    opjit_kernel_release(kept.kernel);
    return ok && !whole.failed && !kept.failed;
}

typedef struct alone {
    kernel *kernel;
    double ns; /* CPU time of all runs so far */
} alone;

static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_alone(void *arg)
{
    alone *one = arg;
    const double before = thread_ns();
    kernel_run(one->kernel);
    one->ns += thread_ns() - before;
}

/* Half of what both threads used, and all that the one used by itself (pool.h). */
static double cpu_ns(const void *arg)
{
    return pool_cpu_ns(two_threads) + ((const alone *)arg)->ns;
}

/* Beside OpenBLAS it is wall-clock time, which means something only where two cores are free. */
static void put_two(report *r, product *p)
{
    kernel two = p->whole;
    alone one = { .kernel = &p->whole };
    measure_pair pair;
    char name[64];
    two.call.bindings = two.bindings;
    two.call.executor = pool_executor(two_threads);
    snprintf(name, sizeof name, "%s, 2 threads", p->s->name);
    measure_run_clock(cpu_ns, &one, kernel_run, &two, run_alone, &one, r->pairs, SAMPLE, &pair);
    report_put_pair(r, name, &pair, "one thread", two_limit);
    if (gemm_has_blas()) {
        gemm_blas_threads(2);
        measure_run_wall(kernel_run, &two, gemm_blas_run, &p->other, r->pairs, SAMPLE, &pair);
        gemm_blas_threads(1);
        report_put_pair(r, name, &pair, "OpenBLAS, 2", 0);
    }
    p->whole.failed = p->whole.failed || two.failed;
}

static bool measure(report *r, opjit_context *context, product *p)
{
    const sizes *s = p->s;
    put_peers(r, p, s->name, &p->whole);
    put_peak(r, p, s->name, &p->whole);
    if (s->kept) {
        char name[64];
        snprintf(name, sizeof name, "%s constant", s->name);
        put_peers(r, p, name, &p->kept);
        put_peak(r, p, name, &p->kept);
        put(r, name, &p->kept, "B given", kernel_run, &p->whole, 1);
    }
    if (gemm_hand_runs() && s->hand_limit > 0) {
        kernel_run(&p->whole);
        gemm_hand_run(&p->other);
        if (memcmp(p->g.out, p->other.out, (size_t)s->m * s->n * sizeof(float)) != 0) {
            fprintf(stderr, "%s: the kernel and the tiles by hand differ\n", s->name);
            return false;
        }
        put(r, s->name, &p->whole, "hand", gemm_hand_run, &p->other, s->hand_limit);
    }
    if (s->two && two_threads)
        put_two(r, p);
    if (s->end != GEMM_PLAIN)
        put(r, s->name, &p->whole, "two kernels", run_parts, p->parts, 1);
    if (s->half && !put_half(r, context, p))
        return false;
    if (s->bytes && !put_bytes(r, context, p))
        return false;
    return !p->whole.failed && !p->kept.failed && !p->parts[0].failed && !p->parts[1].failed;
}

static float *matrix(size_t count)
{
    float *const f = measure_buffer(count * sizeof *f);
    for (size_t i = 0; f && i < count; i++)
        f[i] = (float)((int)((uint32_t)(i * 2654435761u) >> 20) - 2048) / 1024;
    return f;
}

static bool one(report *r, opjit_context *context, const sizes *s)
{
    product p = { .s = s };
    const size_t batch = s->batch, result = batch * s->m * s->n;
    const size_t counts[] = { batch * s->m * s->k, batch * s->k * s->n, result, result, result, s->n, result,
                              (size_t)GEMM_K_BLOCK * GEMM_COLUMN_BLOCK };
    enum { BUFFERS = sizeof counts / sizeof *counts };
    float *buffers[BUFFERS];
    bool ok = true;
    for (uint32_t i = 0; i < BUFFERS; i++)
        ok = (buffers[i] = matrix(counts[i])) != NULL && ok;
    p.g = (gemm){ .batch = s->batch, .m = s->m, .n = s->n, .k = s->k, .turned = s->turned, .end = s->end,
                  .a = buffers[0], .b = buffers[1], .out = buffers[2], .bias = buffers[5], .residual = buffers[6],
                  .panels = buffers[7] };
    p.other = p.g;
    p.other.out = buffers[3];
    p.mid = buffers[4];
    ok = ok && make_kernels(context, &p) && measure(r, context, &p);
    opjit_kernel_release(p.whole.kernel);
    opjit_kernel_release(p.kept.kernel);
    opjit_kernel_release(p.parts[0].kernel);
    opjit_kernel_release(p.parts[1].kernel);
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (buffers[i])
            measure_buffer_free(buffers[i], counts[i] * sizeof(float));
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    const int status = report_open(&r, "gemm", argc, argv, &context);
    if (status != 0)
        return status;
    target = opjit_context_target(context);
    gemm_peers_open(strstr(target, "x86-64-v4") != NULL, 1);
    two_threads = pool_start();
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ok; i++)
        if (report_wants(&r, cases[i].name) && !(r.quick && cases[i].large))
            ok = one(&r, context, &cases[i]);
    opjit_context_destroy(context);
    if (two_threads)
        pool_stop(two_threads);
    return ok ? report_end(&r) : 1;
}
