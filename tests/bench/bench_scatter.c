/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scatter.c - updates at places from data, coordinates of what is not zero, and the inverse of pooling, at level
 * quick, against the plain loops in C.  Results are compared bit for bit before anything is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/operators.h>
#include <opjit/opjit.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

#define SAMPLE_US 1000.0
enum { TENSORS = 4 };

typedef enum form { ELEMENTS, SUMS, ROWS, UNPOOL, NONZERO } form;

/* Rows and columns of input and updates; ELEMENTS, SUMS: along the axis. */
typedef struct scatter {
    const char *name;
    form form;
    uint32_t rows, columns, updates, axis;
} scatter;

static const scatter scatters[] = {
    { "elements f32 1 x 1000000, 100000 updates", ELEMENTS, 1, 1000000, 100000, 1 },
    { "elements f32 1000 x 512, 256 updates a row", ELEMENTS, 1000, 512, 256, 1 },
    { "elements f32 1000 x 512, 500 updates a column", ELEMENTS, 1000, 512, 500, 0 },
    { "sums f32 1 x 1000000, 100000 updates", SUMS, 1, 1000000, 100000, 1 },
    { "sums f32 1000 x 512, 500 updates a column", SUMS, 1000, 512, 500, 0 },
    { "rows f32 2000 x 768, 1000 updates", ROWS, 2000, 768, 1000, 0 },
    { "unpooling f32 448 x 448 to 896 x 896", UNPOOL, 448, 448, 4, 0 },
    { "nonzero f32 1000 x 1000, half of them", NONZERO, 1000, 1000, 1000000, 0 },
};

typedef struct run {
    const scatter *what;
    const float *in, *updates;
    const int64_t *indices; /* UNPOOL: UINT32 */
    void *out, *count;
    kernel k; /* ours */
} run;

/* --- by hand ------------------------------------------------------------------------------------------------------ */

static void nonzero_by_hand(const run *r)
{
    uint32_t *to = r->out, count = 0;
    const size_t all = (size_t)r->what->rows * r->what->columns;
    for (uint32_t y = 0; y < r->what->rows; y++)
        for (uint32_t x = 0; x < r->what->columns; x++)
            if (r->in[(size_t)y * r->what->columns + x] != 0) {
                to[2 * (size_t)count] = y;
                to[2 * (size_t)count++ + 1] = x;
            }
    memset(to + 2 * (size_t)count, 0, 2 * (all - count) * sizeof *to);
    memcpy(r->count, &count, sizeof count);
}

static int64_t place(int64_t index, uint32_t size)
{
    index = index < 0 ? index + size : index;
    return index < 0 ? 0 : index >= size ? size - 1 : index;
}

static void run_by_hand(void *arg)
{
    const run *r = arg;
    const scatter *w = r->what;
    const size_t all = (size_t)w->rows * w->columns;
    float *to = r->out;
    switch (w->form) {
    case NONZERO: nonzero_by_hand(r); return;
    case UNPOOL:
        memset(to, 0, w->updates * all * sizeof *to);
        for (size_t i = 0; i < all; i++) {
            const uint32_t at = ((const uint32_t *)(const void *)r->indices)[i];
            if (at < w->updates * all)
                to[at] = r->in[i];
        }
        return;
    case ROWS:
        memcpy(to, r->in, all * sizeof *to);
        for (uint32_t i = 0; i < w->updates; i++)
            memcpy(to + (size_t)place(r->indices[i], w->rows) * w->columns, r->updates + (size_t)i * w->columns,
                   w->columns * sizeof *to);
        return;
    default: break;
    }
    memcpy(to, r->in, all * sizeof *to);
    const uint32_t outer = w->axis == 1 ? w->rows : w->updates, inner = w->axis == 1 ? w->updates : w->columns;
    for (uint32_t i = 0; i < outer; i++)
        for (uint32_t k = 0; k < inner; k++) {
            const size_t from = (size_t)i * inner + k;
            const int64_t at = place(r->indices[from], w->axis == 1 ? w->columns : w->rows);
            float *const x = &to[w->axis == 1 ? (size_t)i * w->columns + (size_t)at : (size_t)at * w->columns + k];
            *x = w->form == SUMS ? *x + r->updates[from] : r->updates[from];
        }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

typedef struct described {
    uint32_t sizes[TENSORS][4];
    DML_BUFFER_TENSOR_DESC buffers[TENSORS];
    DML_TENSOR_DESC tensors[TENSORS];
    DML_SCATTER_ELEMENTS_OPERATOR_DESC elements;
    OPJIT_SCATTER_REDUCE_OPERATOR_DESC sums;
    DML_SCATTER_ND_OPERATOR_DESC nd;
    DML_MAX_UNPOOLING_OPERATOR_DESC unpool;
    DML_NONZERO_COORDINATES_OPERATOR_DESC nonzero;
    DML_OPERATOR_DESC op;
} described;

static void tensor(described *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns)
{
    memcpy(d->sizes[i], (const uint32_t[4]){ 1, 1, rows, columns }, sizeof d->sizes[i]);
    d->buffers[i] = (DML_BUFFER_TENSOR_DESC){ .DataType = type, .DimensionCount = 4, .Sizes = d->sizes[i] };
    d->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->buffers[i] };
}

static void describe(const scatter *w, described *d)
{
    const DML_TENSOR_DESC *t = d->tensors;
    tensor(d, 0, DML_TENSOR_DATA_TYPE_FLOAT32, w->rows, w->columns);
    switch (w->form) {
    case ELEMENTS:
    case SUMS:
        tensor(d, 1, DML_TENSOR_DATA_TYPE_INT64, w->axis == 1 ? w->rows : w->updates,
               w->axis == 1 ? w->updates : w->columns);
        tensor(d, 2, DML_TENSOR_DATA_TYPE_FLOAT32, d->sizes[1][2], d->sizes[1][3]);
        tensor(d, 3, DML_TENSOR_DATA_TYPE_FLOAT32, w->rows, w->columns);
        d->elements = (DML_SCATTER_ELEMENTS_OPERATOR_DESC){ &t[0], &t[1], &t[2], &t[3], 2 + w->axis };
        d->op = (DML_OPERATOR_DESC){ DML_OPERATOR_SCATTER_ELEMENTS, &d->elements };
        d->sums = (OPJIT_SCATTER_REDUCE_OPERATOR_DESC){ &t[0], &t[1], &t[2], &t[3], 2 + w->axis,
                                                        DML_REDUCE_FUNCTION_SUM };
        if (w->form == SUMS)
            d->op = (DML_OPERATOR_DESC){ OPJIT_OPERATOR_SCATTER_REDUCE, &d->sums };
        break;
    case ROWS:
        tensor(d, 1, DML_TENSOR_DATA_TYPE_INT64, w->updates, 1);
        tensor(d, 2, DML_TENSOR_DATA_TYPE_FLOAT32, w->updates, w->columns);
        tensor(d, 3, DML_TENSOR_DATA_TYPE_FLOAT32, w->rows, w->columns);
        d->nd = (DML_SCATTER_ND_OPERATOR_DESC){ &t[0], &t[1], &t[2], &t[3], 2, 2 };
        d->op = (DML_OPERATOR_DESC){ DML_OPERATOR_SCATTER_ND, &d->nd };
        break;
    case UNPOOL:
        tensor(d, 1, DML_TENSOR_DATA_TYPE_UINT32, w->rows, w->columns);
        tensor(d, 2, DML_TENSOR_DATA_TYPE_FLOAT32, 2 * w->rows, 2 * w->columns);
        d->unpool = (DML_MAX_UNPOOLING_OPERATOR_DESC){ &t[0], &t[1], &t[2] };
        d->op = (DML_OPERATOR_DESC){ DML_OPERATOR_MAX_UNPOOLING, &d->unpool };
        break;
    case NONZERO:
        tensor(d, 1, DML_TENSOR_DATA_TYPE_UINT32, 1, 1);
        tensor(d, 2, DML_TENSOR_DATA_TYPE_UINT32, w->rows * w->columns, 2);
        d->nonzero = (DML_NONZERO_COORDINATES_OPERATOR_DESC){ &t[0], &t[1], &t[2] };
        d->op = (DML_OPERATOR_DESC){ DML_OPERATOR_NONZERO_COORDINATES, &d->nonzero };
        break;
    }
}

static uint64_t bytes_of(const described *d, uint32_t i)
{
    const uint64_t width = d->buffers[i].DataType == DML_TENSOR_DATA_TYPE_INT64 ? 8 : 4;
    return width * d->sizes[i][2] * d->sizes[i][3];
}

/* Numbers, half of them 0 for NONZERO; indices inside. */
static void fill(const scatter *w, const described *d, void *memory, uint32_t i)
{
    const uint64_t count = (uint64_t)d->sizes[i][2] * d->sizes[i][3];
    const uint32_t size = w->form == UNPOOL ? 4 * w->rows * w->columns : w->axis == 1 ? w->columns : w->rows;
    uint32_t x = i + 1;
    for (uint64_t e = 0; e < count; e++) {
        x = x * 1664525 + 1013904223;
        const uint32_t index = (uint32_t)((uint64_t)x * size >> 32);
        if (d->buffers[i].DataType == DML_TENSOR_DATA_TYPE_INT64)
            ((int64_t *)memory)[e] = index;
        else if (d->buffers[i].DataType == DML_TENSOR_DATA_TYPE_UINT32)
            ((uint32_t *)memory)[e] = index;
        else
            ((float *)memory)[e] = w->form == NONZERO && x >> 31 ? 0 : (float)(x >> 8);
    }
}

static bool make(opjit_context *context, const described *d, opjit_kernel **out)
{
    opjit_operator *op = NULL;
    opjit_error error;
    const bool made = opjit_operator_create(context, &d->op, &op, &error) == OPJIT_OK &&
                      opjit_compile_operator(context, op, NULL, out, &error) == OPJIT_OK;
    opjit_operator_release(op);
    return made || subject_complain("kernel", &error);
}

static bool measure(report *rep, run *ours, run *hand, const described *d, uint32_t last)
{
    const scatter *w = ours->what;
    measure_pair pair;
    double bytes = 0;
    kernel_run(&ours->k);
    run_by_hand(hand);
    const bool equal = memcmp(ours->out, hand->out, bytes_of(d, last)) == 0 &&
                       (w->form != NONZERO || memcmp(ours->count, hand->count, 4) == 0);
    if (!equal)
        fprintf(stderr, "%s: the kernel and the loop by hand differ\n", w->name);
    for (uint32_t i = 0; i <= last; i++)
        bytes += (double)bytes_of(d, i);
    measure_run(kernel_run, &ours->k, run_by_hand, hand, rep->pairs, SAMPLE_US, &pair);
    report_put(rep, &(report_row){ .name = w->name,
                                   .ns = pair.a_ns,
                                   .bytes = bytes,
                                   .memset_ratio = NAN,
                                   .reference = "plain C",
                                   .ratio = pair.ratio,
                                   .lo = pair.lo,
                                   .hi = pair.hi,
                                   .bar = BAR_AT_MOST,
                                   .limit = 2 });
    return equal && !ours->k.failed;
}

static bool run_scatter(report *rep, opjit_context *context, const scatter *w)
{
    described d = { .op = { .Type = DML_OPERATOR_INVALID } };
    run ours = { .what = w, .k.call = OPJIT_CALL_INIT }, hand;
    void *memory[TENSORS + 2] = { NULL };
    uint32_t counts[2] = { 0 };
    bool ok = true;
    if (!report_wants(rep, w->name))
        return true;
    describe(w, &d);
    const uint32_t last = d.buffers[3].DimensionCount != 0 ? 3 : 2, inputs = w->form == NONZERO ? 1 : last;
    for (uint32_t i = 0; i <= last + 1 && ok; i++) { /* one more: what is made by hand */
        const uint64_t bytes = bytes_of(&d, i <= last ? i : last);
        memory[i] = measure_buffer(bytes);
        ok = memory[i] != NULL;
        if (ok && i < inputs)
            fill(w, &d, memory[i], i);
        if (ok && i <= last)
            ours.k.bindings[i] = (opjit_binding){ memory[i], bytes };
    }
    if (w->form == NONZERO)
        ours.k.bindings[1] = (opjit_binding){ &counts[0], sizeof counts[0] };
    ours.k.call.binding_count = last + 1;
    ours.k.call.bindings = ours.k.bindings;
    ours.in = memory[0];
    ours.indices = memory[1];
    ours.updates = memory[2];
    hand = ours;
    ours.out = memory[last];
    ours.count = &counts[0];
    hand.out = memory[last + 1];
    hand.count = &counts[1];
    ok = ok && make(context, &d, &ours.k.kernel) && measure(rep, &ours, &hand, &d, last);
    opjit_kernel_release(ours.k.kernel);
    for (uint32_t i = 0; i <= last + 1; i++)
        measure_buffer_free(memory[i], bytes_of(&d, i <= last ? i : last));
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    report r;
    bool ok = true;
    const int status = report_open(&r, "scatters", argc, argv, &context);

    if (status != 0)
        return status;
    for (size_t i = 0; ok && i < sizeof scatters / sizeof *scatters; i++)
        ok = run_scatter(&r, context, &scatters[i]);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
