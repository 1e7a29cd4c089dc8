/* SPDX-License-Identifier: Apache-2.0 */
/* bench_reduce.c - sums along one axis or of all elements, against hand-written loops that add in the same fixed order:
 * blocks of 4096, in the last axis 32 lanes that are folded by halves.  Results are compared bit for bit before
 * anything is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "frontend/cli/measure/subject.h"
#include "tests/bench/pool.h"
#include "tests/bench/report.h"

#define LARGEST (UINT64_C(16) << 20)
#define SAMPLE_US 2000.0

typedef struct reduction {
    const char *name;
    uint32_t sizes[3];
    uint32_t axis; /* ALL: all of them */
    double limit;
} reduction;

enum { ALL = 3 };

static const reduction reductions[] = {
    { "sum f32 16 x 512 x 512 columns", { 16, 512, 512 }, 1, 1.15 },
    { "sum f32 16 x 512 x 512 rows", { 16, 512, 512 }, 2, 1.15 },
    { "sum f32 16 x 512 x 512 batch", { 16, 512, 512 }, 0, 1.15 },
    { "sum f32 1 x 16384 x 256 columns", { 1, 16384, 256 }, 1, 1.15 },
    { "sum f32 512 x 128 x 64 columns", { 512, 128, 64 }, 1, 1.15 },
    { "sum f32 4 x 128 x 128 columns", { 4, 128, 128 }, 1, 1.15 },
    { "sum f32 4 x 1024 x 1024 columns", { 4, 1024, 1024 }, 1, 1.15 },
    { "sum f32 1 x 512 x 512 columns", { 1, 512, 512 }, 1, 1.15 },
    { "sum f32 16 x 512 x 512 all", { 16, 512, 512 }, ALL, 1.15 },
    { "sum f32 16 x 64 x 64 all", { 16, 64, 64 }, ALL, 1.15 },
    { "sum f32 8 x 512 x 64 all", { 8, 512, 64 }, ALL, 1.15 },
};

typedef struct twin {
    const reduction *what;
    const float *in;
    float *out;
    uint32_t at_once; /* rows that are added together: 1 or 4 */
    const opjit_executor *executor; /* for ALL; NULL: this thread */
} twin;

/* --- by hand ------------------------------------------------------------------------------------------------------ */

enum { BLOCK = 4096, LANES = 32, MOST_COLUMNS = 1024 };
#if defined(__x86_64__)
#define ISA __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))
#define UNROLLED _Pragma("GCC unroll 4")

/* out[c] += the elements c, c + pitch, c + 2 pitch, ... of count rows, `at_once` rows at a time. */
INLINE void add_rows(const float *in, float *out, uint32_t count, size_t pitch, uint32_t columns,
                     const uint32_t at_once)
{
    for (uint32_t k = 0; k + at_once <= count; k += at_once, in += at_once * pitch) {
        for (uint32_t c = 0; c < columns; c += 32) {
            __m256 s[4];
            UNROLLED
            for (uint32_t v = 0; v < 4; v++)
                s[v] = _mm256_load_ps(out + c + 8 * v);
            UNROLLED
            for (uint32_t row = 0; row < at_once; row++)
                UNROLLED
                for (uint32_t v = 0; v < 4; v++)
                    s[v] = _mm256_add_ps(s[v], _mm256_load_ps(in + row * pitch + c + 8 * v));
            UNROLLED
            for (uint32_t v = 0; v < 4; v++)
                _mm256_store_ps(out + c + 8 * v, s[v]);
        }
    }
    if (at_once > 1)
        add_rows(in, out, count % at_once, pitch, columns, 1);
}

INLINE void sum_columns_by(const float *in, float *out, uint32_t count, size_t pitch, uint32_t columns,
                           const uint32_t at_once)
{
    static _Alignas(64) float block[MOST_COLUMNS];
    memset(out, 0, columns * sizeof *out);
    add_rows(in, out, count < BLOCK ? count : BLOCK, pitch, columns, at_once);
    for (uint32_t k = BLOCK; k < count; k += BLOCK) {
        memset(block, 0, columns * sizeof *block);
        add_rows(in + k * pitch, block, count - k < BLOCK ? count - k : BLOCK, pitch, columns, at_once);
        for (uint32_t c = 0; c < columns; c++)
            out[c] += block[c];
    }
}

ISA static void sum_columns(const float *in, float *out, uint32_t count, size_t pitch, uint32_t columns,
                            uint32_t at_once)
{
    if (at_once == 1)
        sum_columns_by(in, out, count, pitch, columns, 1);
    else
        sum_columns_by(in, out, count, pitch, columns, 4);
}

/* For whole vectors of lanes, at most a block. */
ISA static float sum_row(const float *in, uint32_t count)
{
    __m256 s[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps() };
    for (uint32_t k = 0; k < count; k += LANES)
        UNROLLED
        for (uint32_t l = 0; l < 4; l++)
            s[l] = _mm256_add_ps(s[l], _mm256_load_ps(in + k + 8 * l));
    const __m256 a = _mm256_add_ps(_mm256_add_ps(s[0], s[2]), _mm256_add_ps(s[1], s[3]));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

static bool runs(void) { return __builtin_cpu_supports("avx2"); }
#else
static void sum_columns(const float *in, float *out, uint32_t count, size_t pitch, uint32_t columns, uint32_t at_once)
{
    (void)in, (void)out, (void)count, (void)pitch, (void)columns, (void)at_once;
}
static float sum_row(const float *in, uint32_t count) { return in[count - 1]; }
static bool runs(void) { return false; }
#endif

/* For whole blocks only, which is what the cases here have. */
static void sum_blocks(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const twin *const t = arg;
    (void)worker;
    for (uint64_t b = begin; b < end; b++)
        t->out[1 + b] = sum_row(t->in + b * BLOCK, BLOCK);
}

static void sum_all(twin *t)
{
    const uint64_t count = (uint64_t)t->what->sizes[0] * t->what->sizes[1] * t->what->sizes[2] / BLOCK;
    if (t->executor != NULL)
        (void)t->executor->run(t->executor->user, count, 4, sum_blocks, t);
    else
        sum_blocks(t, 0, 0, count);
    t->out[0] = 0;
    for (uint64_t b = 0; b < count; b++)
        t->out[0] += t->out[1 + b];
}

static void run_twin(void *arg)
{
    twin *const t = arg;
    const uint32_t *const sizes = t->what->sizes, axis = t->what->axis;
    if (axis == ALL) {
        sum_all(t);
        return;
    }
    if (axis == 0) {
        for (uint32_t row = 0; row < sizes[1]; row++)
            sum_columns(t->in + (size_t)row * sizes[2], t->out + (size_t)row * sizes[2], sizes[0],
                        (size_t)sizes[1] * sizes[2], sizes[2], t->at_once);
        return;
    }
    for (uint32_t i = 0; i < sizes[0]; i++) {
        const float *const in = t->in + (size_t)i * sizes[1] * sizes[2];
        if (axis == 1)
            sum_columns(in, t->out + (size_t)i * sizes[2], sizes[1], sizes[2], sizes[2], t->at_once);
        for (uint32_t row = 0; axis == 2 && row < sizes[1]; row++)
            t->out[(size_t)i * sizes[1] + row] = sum_row(in + (size_t)row * sizes[2], sizes[2]);
    }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

/* The operator with tensors of its own. */
typedef struct reduce_desc {
    subject_desc base;
    uint32_t sizes[3], axes[3];
    DML_BUFFER_TENSOR_DESC in, out;
    DML_TENSOR_DESC in_tensor, out_tensor;
    DML_REDUCE_OPERATOR_DESC fields;
} reduce_desc;

static void describe(const reduction *c, reduce_desc *d)
{
    *d = (reduce_desc){ 0 };
    uint32_t axes = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const bool reduced = c->axis == i || c->axis == ALL;
        d->sizes[i] = reduced ? 1 : c->sizes[i];
        if (reduced)
            d->axes[axes++] = i;
    }
    d->in = d->out = (DML_BUFFER_TENSOR_DESC){ .DataType = DML_TENSOR_DATA_TYPE_FLOAT32,
                                               .DimensionCount = 3,
                                               .GuaranteedBaseOffsetAlignment = 64 };
    d->in.Sizes = c->sizes;
    d->out.Sizes = d->sizes;
    d->in.TotalTensorSizeInBytes = (uint64_t)c->sizes[0] * c->sizes[1] * c->sizes[2] * sizeof(float);
    d->out.TotalTensorSizeInBytes = (uint64_t)d->sizes[0] * d->sizes[1] * d->sizes[2] * sizeof(float);
    d->in_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->in };
    d->out_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->out };
    d->fields = (DML_REDUCE_OPERATOR_DESC){ DML_REDUCE_FUNCTION_SUM, &d->in_tensor, &d->out_tensor, axes, d->axes };
    d->base.op = (DML_OPERATOR_DESC){ DML_OPERATOR_REDUCE, &d->fields };
}

/* two: the pool to run on; NULL: this thread only. */
static bool run_reduction(report *r, opjit_context *context, const reduction *c, const float *in, float *out,
                          float *by_hand, const pool *two)
{
    const opjit_executor *const executor = two != NULL ? pool_executor(two) : NULL;
    twin t = { .what = c, .in = in, .out = by_hand, .at_once = 1, .executor = executor }, other = t;
    measure_pair pair;
    reduce_desc d;
    subject s;
    char name[64];

    snprintf(name, sizeof name, "%s%s", c->name, two != NULL ? ", 2 threads" : "");
    if (!report_wants(r, name))
        return true;
    describe(c, &d);
    if (!subject_make(context, &d.base, OPJIT_LEVEL_AUTO, NULL, &s))
        return false;
    subject_bind(&s, in, out, d.out.TotalTensorSizeInBytes, executor);
    s.bindings[0].bytes = d.in.TotalTensorSizeInBytes;
    subject_run(&s);
    run_twin(&t);
    const bool equal = memcmp(out, by_hand, d.out.TotalTensorSizeInBytes) == 0;
    if (!equal)
        fprintf(stderr, "%s: the kernel and the loops by hand differ\n", name);
    other.at_once = 4;
    if (c->axis != ALL) {
        measure_run(run_twin, &other, run_twin, &t, r->pairs, SAMPLE_US, &pair);
        if (pair.ratio < 1)
            t = other;
    }
    if (two != NULL)
        measure_run_clock(pool_cpu_ns, two, subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    else
        measure_run(subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    report_put(r, &(report_row){ .name = name,
                                 .ns = pair.a_ns,
                                 .bytes = (double)d.in.TotalTensorSizeInBytes,
                                 .memset_ratio = NAN,
                                 .reference = "hand avx2",
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = BAR_AT_MOST,
                                 .limit = c->limit });
    const bool ok = equal && !s.failed;
    subject_free(&s);
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    opjit_error error;
    report r;
    bool ok = true;
    const int status = report_options(&r, argc, argv);

    if (status != 0)
        return status;
    if (!runs()) {
        fprintf(stderr, "the loops by hand need AVX2\n");
        return 1;
    }
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    float *const in = measure_buffer(LARGEST), *const out = measure_buffer(LARGEST),
                 *const by_hand = measure_buffer(LARGEST);
    if (in == NULL || out == NULL || by_hand == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (uint32_t i = 0, x = 1; i < LARGEST / sizeof *in; i++) { /* so that another order gives other bits */
        x = x * 1664525 + 1013904223;
        in[i] = (float)(x >> 8) / 16777216.0f;
    }
    report_begin(&r, "reductions", opjit_context_target(context));
    for (size_t i = 0; ok && i < sizeof reductions / sizeof *reductions; i++)
        ok = run_reduction(&r, context, &reductions[i], in, out, by_hand, NULL);
    pool *const two = r.quick ? NULL : pool_start(); /* its helper takes a core, so it comes last */
    for (size_t i = 0; ok && two != NULL && i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].axis == ALL && reductions[i].sizes[1] == 512) /* smaller ones: a stage of one iteration */
            ok = run_reduction(&r, context, &reductions[i], in, out, by_hand, two);
    if (two != NULL)
        pool_stop(two);
    measure_buffer_free(in, LARGEST);
    measure_buffer_free(out, LARGEST);
    measure_buffer_free(by_hand, LARGEST);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
