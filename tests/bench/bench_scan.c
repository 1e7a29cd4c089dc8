/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scan.c - running sums and products along the last axis, at both levels, against the plain loop in C, which is
 * bound by one addition after the other: vectors gain nothing here.  Results are compared bit for bit before anything
 * is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/report.h"

#define LARGEST (UINT64_C(2) << 20)
#define SAMPLE_US 1000.0

typedef enum element { F32, F64, I32, I64, ELEMENTS } element;

typedef struct scan {
    const char *name;
    uint32_t sizes[2];
    element type;
    bool product, exclusive, backward;
} scan;

static const scan scans[] = {
    { "scan f32 512 x 512", { 512, 512 }, F32, false, false, false },
    { "scan f32 512 x 512 exclusive", { 512, 512 }, F32, false, true, false },
    { "scan f32 512 x 512 backward", { 512, 512 }, F32, false, false, true },
    { "scan f32 512 x 512 product", { 512, 512 }, F32, true, false, false },
    { "scan f64 512 x 256", { 512, 256 }, F64, false, false, false },
    { "scan i32 512 x 512", { 512, 512 }, I32, false, false, false },
    { "scan i64 512 x 256 exclusive", { 512, 256 }, I64, false, true, false },
    { "scan f32 1 x 65536", { 1, 65536 }, F32, false, false, false },
    { "scan f32 2048 x 100", { 2048, 100 }, F32, false, false, false },
    { "scan f32 2048 x 13", { 2048, 13 }, F32, false, false, false },
};

static const DML_TENSOR_DATA_TYPE types[ELEMENTS] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT64,
                                                      DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_INT64 };
static const uint32_t widths[ELEMENTS] = { 4, 8, 4, 8 };

/* --- by hand ------------------------------------------------------------------------------------------------------ */

/* One step: the loop as everybody writes it, compiled.  Integers wrap. */
#define ROW(NAME, TYPE, START, STEP)                                                                        \
    static void NAME(const void *in, void *out, int64_t count, int64_t first, int64_t step, bool exclusive) \
    {                                                                                                       \
        const TYPE *x = (const TYPE *)in + first;                                                           \
        TYPE *y = (TYPE *)out + first, s = START;                                                           \
        if (exclusive)                                                                                      \
            for (int64_t i = 0; i < count; i++, x += step, y += step) {                                     \
                *y = s;                                                                                     \
                s = s STEP * x;                                                                             \
            }                                                                                               \
        else                                                                                                \
            for (int64_t i = 0; i < count; i++, x += step, y += step) {                                     \
                s = s STEP * x;                                                                             \
                *y = s;                                                                                     \
            }                                                                                               \
    }
ROW(sum_f32, float, 0, +)
ROW(prod_f32, float, 1, *)
ROW(sum_f64, double, 0, +)
ROW(sum_i32, uint32_t, 0, +)
ROW(sum_i64, uint64_t, 0, +)

typedef struct twin {
    const scan *what;
    const char *in;
    char *out;
} twin;

static void run_twin(void *arg)
{
    static void (*const rows[ELEMENTS])(const void *, void *, int64_t, int64_t, int64_t, bool) = { sum_f32, sum_f64,
                                                                                                   sum_i32, sum_i64 };
    const twin *const t = arg;
    const int64_t count = t->what->sizes[1], step = t->what->backward ? -1 : 1;
    for (int64_t row = 0; row < t->what->sizes[0]; row++) {
        const size_t at = (size_t)(row * count) * widths[t->what->type];
        (t->what->product ? prod_f32 : rows[t->what->type])(t->in + at, t->out + at, count, step < 0 ? count - 1 : 0,
                                                            step, t->what->exclusive);
    }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

typedef struct scan_desc {
    subject_desc base;
    DML_BUFFER_TENSOR_DESC buffer;
    DML_TENSOR_DESC tensor;
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC fields; /* CUMULATIVE_PRODUCT has the same */
} scan_desc;

static void describe(const scan *c, scan_desc *d)
{
    *d = (scan_desc){ 0 };
    d->buffer =
        (DML_BUFFER_TENSOR_DESC){ .DataType = types[c->type],
                                  .DimensionCount = 2,
                                  .Sizes = c->sizes,
                                  .TotalTensorSizeInBytes = (uint64_t)c->sizes[0] * c->sizes[1] * widths[c->type],
                                  .GuaranteedBaseOffsetAlignment = 64 };
    d->tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->buffer };
    d->fields = (DML_CUMULATIVE_SUMMATION_OPERATOR_DESC){ &d->tensor, &d->tensor, 1,
                                                          c->backward ? DML_AXIS_DIRECTION_DECREASING
                                                                      : DML_AXIS_DIRECTION_INCREASING,
                                                          c->exclusive };
    d->base.op = (DML_OPERATOR_DESC){ c->product ? DML_OPERATOR_CUMULATIVE_PRODUCT : DML_OPERATOR_CUMULATIVE_SUMMATION,
                                      &d->fields };
}

static bool run_scan(report *r, opjit_context *context, const scan *c, opjit_level level, const void *in, void *out,
                     void *by_hand)
{
    twin t = { c, in, by_hand };
    measure_pair pair;
    scan_desc d;
    subject s;
    char name[64];

    snprintf(name, sizeof name, "%s, %s", c->name, level == OPJIT_LEVEL_PEAK ? "peak" : "quick");
    if (!report_wants(r, name))
        return true;
    describe(c, &d);
    const uint64_t bytes = d.buffer.TotalTensorSizeInBytes;
    if (!subject_make(context, &d.base, level, NULL, &s))
        return false;
    subject_bind(&s, in, out, bytes, NULL);
    subject_run(&s);
    run_twin(&t);
    const bool equal = memcmp(out, by_hand, bytes) == 0;
    if (!equal)
        fprintf(stderr, "%s: the kernel and the loop by hand differ\n", name);
    measure_run(subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    report_put(r, &(report_row){ .name = name,
                                 .ns = pair.a_ns,
                                 .bytes = 2 * (double)bytes,
                                 .memset_ratio = NAN,
                                 .reference = "plain C",
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = BAR_AT_MOST,
                                 .limit = level == OPJIT_LEVEL_PEAK ? 1.15 : 1.4 });
    const bool ok = equal && !s.failed;
    subject_free(&s);
    return ok;
}

/* Of f64 and f32 alike numbers near 1, so that products neither vanish nor overflow at once. */
static void fill(char *in, element type)
{
    for (uint32_t i = 0, x = 1; i < LARGEST / widths[type]; i++) {
        x = x * 1664525 + 1013904223;
        const double v = 0.5 + (double)(x >> 8) / 16777216.0;
        const float f = (float)v;
        const uint64_t n = x;
        memcpy(in + (size_t)i * widths[type],
               type == F32   ? (const void *)&f
               : type == F64 ? (const void *)&v
                             : (const void *)&n,
               widths[type]);
    }
}

int main(int argc, char **argv)
{
    static const opjit_level levels[] = { OPJIT_LEVEL_QUICK, OPJIT_LEVEL_PEAK };
    opjit_context *context;
    opjit_error error;
    report r;
    bool ok = true;
    const int status = report_options(&r, argc, argv);

    if (status != 0)
        return status;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    char *const in = measure_buffer(LARGEST), *const out = measure_buffer(LARGEST),
                *const by_hand = measure_buffer(LARGEST);
    if (in == NULL || out == NULL || by_hand == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    report_begin(&r, "running sums", opjit_context_target(context));
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++) {
        fill(in, scans[i].type);
        for (size_t l = 0; ok && l < 2; l++)
            ok = run_scan(&r, context, &scans[i], levels[l], in, out, by_hand);
    }
    measure_buffer_free(in, LARGEST);
    measure_buffer_free(out, LARGEST);
    measure_buffer_free(by_hand, LARGEST);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
