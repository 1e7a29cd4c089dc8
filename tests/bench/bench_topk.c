/* SPDX-License-Identifier: Apache-2.0 */
/* bench_topk.c - TOP_K at level quick against quickselect and quicksort in C, on keys beside their places.  Results are
 * compared bit for bit before anything is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/opjit.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

#define SAMPLE_US 4000.0
enum { TENSORS = 3 };

typedef struct topk {
    const char *name;
    DML_TENSOR_DATA_TYPE type;
    uint32_t rows, columns, k;
} topk;

static const topk topks[] = {
    { "f32 1000 x 1000, 100 of them", DML_TENSOR_DATA_TYPE_FLOAT32, 1000, 1000, 100 },
    { "f16 1000 x 1000, 100 of them", DML_TENSOR_DATA_TYPE_FLOAT16, 1000, 1000, 100 },
    { "i32 1000 x 1000, 100 of them", DML_TENSOR_DATA_TYPE_INT32, 1000, 1000, 100 },
    { "i64 1000 x 1000, 100 of them", DML_TENSOR_DATA_TYPE_INT64, 1000, 1000, 100 },
    { "f32 10 x 100000, 100 of them", DML_TENSOR_DATA_TYPE_FLOAT32, 10, 100000, 100 },
    { "f32 1000 x 1000, 5 of them", DML_TENSOR_DATA_TYPE_FLOAT32, 1000, 1000, 5 },
    { "f32 100 x 10000, 1000 of them", DML_TENSOR_DATA_TYPE_FLOAT32, 100, 10000, 1000 },
    { "f32 1 x 1000, all of them", DML_TENSOR_DATA_TYPE_FLOAT32, 1, 1000, 1000 },
    { "f32 1 x 100000, all of them", DML_TENSOR_DATA_TYPE_FLOAT32, 1, 100000, 100000 },
    { "i64 1 x 100000, all of them", DML_TENSOR_DATA_TYPE_INT64, 1, 100000, 100000 },
    { "f32 100 x 1000, all of them", DML_TENSOR_DATA_TYPE_FLOAT32, 100, 1000, 1000 },
};

typedef struct pair {
    uint64_t key;
    uint64_t place;
} pair;

typedef struct run {
    const topk *what;
    const void *in;
    void *values;
    uint32_t *places;
    pair *row; /* by hand */
    kernel k; /* ours */
} run;

static uint32_t width_of(const topk *w)
{
    return w->type == DML_TENSOR_DATA_TYPE_FLOAT16 ? 2 : w->type == DML_TENSOR_DATA_TYPE_INT64 ? 8 : 4;
}

/* --- by hand ------------------------------------------------------------------------------------------------------ */

/* An unsigned number in the order of the elements, which are no NaNs and not -0. */
static uint64_t key_of(const topk *w, const void *row, uint32_t i)
{
    uint32_t x;
    uint16_t half;
    uint64_t wide;
    switch (w->type) {
    case DML_TENSOR_DATA_TYPE_INT64:
        memcpy(&wide, (const uint8_t *)row + (size_t)8 * i, 8);
        return wide ^ UINT64_C(1) << 63;
    case DML_TENSOR_DATA_TYPE_FLOAT16:
        memcpy(&half, (const uint8_t *)row + (size_t)2 * i, 2);
        return half >> 15 != 0 ? 0xffffu ^ half : half | 0x8000u;
    default:
        memcpy(&x, (const uint8_t *)row + (size_t)4 * i, 4);
        return x >> 31 == 0 ? x | 0x80000000u : w->type == DML_TENSOR_DATA_TYPE_INT32 ? x ^ 0x80000000u : ~x;
    }
}

static bool comes_first(const pair *a, const pair *b)
{
    return a->key != b->key ? a->key > b->key : a->place < b->place;
}

/* Partitions [lo, hi] around a median of three: returns the last place of the first part. */
static size_t split(pair *p, size_t lo, size_t hi)
{
    const size_t mid = lo + (hi - lo) / 2;
    const pair *a = &p[lo], *b = &p[mid], *c = &p[hi];
    const pair *m = comes_first(a, b) ? comes_first(b, c) ? b : comes_first(a, c) ? c : a
                                      : comes_first(a, c) ? a : comes_first(b, c) ? c : b;
    const pair pivot = *m;
    size_t i = lo, j = hi;
    for (;; i++, j--) {
        while (comes_first(&p[i], &pivot))
            i++;
        while (comes_first(&pivot, &p[j]))
            j--;
        if (i >= j)
            return j;
        const pair t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
}

static void sort(pair *p, size_t lo, size_t hi)
{
    while (lo + 16 < hi) {
        const size_t at = split(p, lo, hi);
        sort(p, at + 1, hi);
        hi = at;
    }
    for (size_t i = lo + 1; i <= hi; i++) {
        const pair x = p[i];
        size_t j = i;
        for (; j > lo && comes_first(&x, &p[j - 1]); j--)
            p[j] = p[j - 1];
        p[j] = x;
    }
}

static void run_by_hand(void *arg)
{
    const run *r = arg;
    const topk *w = r->what;
    const uint32_t width = width_of(w);
    for (uint32_t y = 0; y < w->rows; y++) {
        const uint8_t *row = (const uint8_t *)r->in + (size_t)y * w->columns * width;
        for (uint32_t i = 0; i < w->columns; i++)
            r->row[i] = (pair){ key_of(w, row, i), i };
        size_t lo = 0, hi = w->columns - 1;
        while (lo < hi) {
            const size_t at = split(r->row, lo, hi);
            if (w->k - 1 <= at)
                hi = at;
            else
                lo = at + 1;
        }
        sort(r->row, 0, w->k - 1);
        for (uint32_t i = 0; i < w->k; i++) {
            const size_t to = (size_t)y * w->k + i;
            r->places[to] = (uint32_t)r->row[i].place;
            memcpy((uint8_t *)r->values + to * width, row + r->row[i].place * width, width);
        }
    }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

static bool make(opjit_context *context, const topk *w, opjit_kernel **out)
{
    const uint32_t sizes[2][2] = { { w->rows, w->columns }, { w->rows, w->k } };
    DML_BUFFER_TENSOR_DESC buffers[TENSORS];
    DML_TENSOR_DESC tensors[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++) {
        buffers[i] = (DML_BUFFER_TENSOR_DESC){ .DataType = i == 2 ? DML_TENSOR_DATA_TYPE_UINT32 : w->type,
                                               .DimensionCount = 2,
                                               .Sizes = sizes[i == 0 ? 0 : 1] };
        tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &buffers[i] };
    }
    const DML_TOP_K_OPERATOR_DESC desc = { &tensors[0], &tensors[1], &tensors[2], 1, w->k };
    const DML_OPERATOR_DESC of = { DML_OPERATOR_TOP_K, &desc };
    opjit_operator *op = NULL;
    opjit_error error;
    const bool made = opjit_operator_create(context, &of, &op, &error) == OPJIT_OK &&
                      opjit_compile_operator(context, op, NULL, out, &error) == OPJIT_OK;
    opjit_operator_release(op);
    return made || subject_complain("kernel", &error);
}

/* Numbers of any sign, among FLOAT16's many equal ones. */
static void fill(const topk *w, void *memory)
{
    uint64_t x = 1;
    for (size_t e = 0; e < (size_t)w->rows * w->columns; e++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const float real = (float)(int32_t)(x >> 32) + 0.5f;
        switch (w->type) {
        case DML_TENSOR_DATA_TYPE_INT64: memcpy((uint8_t *)memory + 8 * e, &x, 8); break;
        case DML_TENSOR_DATA_TYPE_INT32: memcpy((uint8_t *)memory + 4 * e, (uint8_t *)&x + 4, 4); break;
        case DML_TENSOR_DATA_TYPE_FLOAT16: /* 1 to 2048 of both signs */
            ((uint16_t *)memory)[e] = (uint16_t)((x >> 63 << 15) | (0x3c00 + (x >> 32) % 0x2c00));
            break;
        default: memcpy((uint8_t *)memory + 4 * e, &real, 4); break;
        }
    }
}

static bool measure(report *rep, run *ours, run *hand)
{
    const topk *w = ours->what;
    const size_t made = (size_t)w->rows * w->k;
    measure_pair times;
    kernel_run(&ours->k);
    run_by_hand(hand);
    const bool equal = memcmp(ours->values, hand->values, made * width_of(w)) == 0 &&
                       memcmp(ours->places, hand->places, made * sizeof *hand->places) == 0;
    if (!equal)
        fprintf(stderr, "%s: the kernel and the code by hand differ\n", w->name);
    measure_run(kernel_run, &ours->k, run_by_hand, hand, rep->pairs, SAMPLE_US, &times);
    report_put(rep, &(report_row){ .name = w->name,
                                   .ns = times.a_ns,
                                   .bytes = (double)w->rows * w->columns * width_of(w) +
                                            (double)made * (width_of(w) + sizeof *hand->places),
                                   .memset_ratio = NAN,
                                   .reference = "quickselect",
                                   .ratio = times.ratio,
                                   .lo = times.lo,
                                   .hi = times.hi,
                                   .bar = BAR_AT_MOST,
                                   .limit = width_of(w) == 8 ? 1.5 : 1 });
    return equal && !ours->k.failed;
}

static bool run_topk(report *rep, opjit_context *context, const topk *w)
{
    if (!report_wants(rep, w->name))
        return true;
    const uint64_t in = (uint64_t)w->rows * w->columns * width_of(w), values = (uint64_t)w->rows * w->k * width_of(w),
                   places = (uint64_t)w->rows * w->k * 4, row = w->columns * sizeof(pair);
    const uint64_t bytes[] = { in, values, places, values, places, row };
    void *memory[6];
    bool ok = true;
    for (int i = 0; i < 6; i++) {
        memory[i] = measure_buffer(bytes[i]);
        ok = ok && memory[i] != NULL;
    }
    run ours = { .what = w, .k.call = OPJIT_CALL_INIT, .in = memory[0], .values = memory[1], .places = memory[2] };
    run hand = { .what = w, .in = memory[0], .values = memory[3], .places = memory[4], .row = memory[5] };
    for (int i = 0; i < TENSORS; i++)
        ours.k.bindings[i] = (opjit_binding){ memory[i], bytes[i] };
    ours.k.call.bindings = ours.k.bindings;
    ours.k.call.binding_count = TENSORS;
    if (ok)
        fill(w, memory[0]);
    ok = ok && make(context, w, &ours.k.kernel) && measure(rep, &ours, &hand);
    opjit_kernel_release(ours.k.kernel);
    for (int i = 0; i < 6; i++)
        measure_buffer_free(memory[i], bytes[i]);
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    report r;
    bool ok = true;
    const int status = report_open(&r, "greatest elements", argc, argv, &context);

    if (status != 0)
        return status;
    for (size_t i = 0; ok && i < sizeof topks / sizeof *topks; i++)
        ok = run_topk(&r, context, &topks[i]);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
