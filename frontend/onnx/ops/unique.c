/* SPDX-License-Identifier: Apache-2.0 */
/* unique.c - Unique: how many results there are depends on values, which have to be known while the model is read. */
#include <math.h>
#include <stdlib.h>

#include "frontend/onnx/ops/ops.h"

/* Elements {outer, rows, inner}: floats, or ints where floats is NULL. */
typedef struct table {
    const double *floats;
    const int64_t *ints;
    bool is_unsigned, is_flat; /* is_flat: rows are all elements; else */
    uint32_t axis;             /* rows are along this axis */
    uint64_t outer, rows, inner;
} table;

typedef struct table_row {
    const table *of;
    uint64_t at;
} table_row;

/* Rows that are equal: the first one of the input, how many there are, and their place among the results. */
typedef struct group {
    uint64_t first, count, place;
} group;

/* NaN is above all numbers, and equal to NaN. */
static int compare_elements(const table *t, uint64_t i, uint64_t k)
{
    if (t->floats != NULL) {
        const double a = t->floats[i], b = t->floats[k];
        return isnan(a) || isnan(b) ? (isnan(a) != 0) - (isnan(b) != 0) : (a > b) - (a < b);
    }
    const uint64_t sign = t->is_unsigned ? 0 : UINT64_C(1) << 63;
    const uint64_t a = (uint64_t)t->ints[i] ^ sign, b = (uint64_t)t->ints[k] ^ sign;
    return (a > b) - (a < b);
}

static int compare_rows(const table *t, uint64_t a, uint64_t b)
{
    for (uint64_t o = 0; o < t->outer; o++)
        for (uint64_t k = 0; k < t->inner; k++) {
            const int order =
                compare_elements(t, (o * t->rows + a) * t->inner + k, (o * t->rows + b) * t->inner + k);
            if (order != 0)
                return order;
        }
    return 0;
}

/* Equal rows in the order of the input. */
static int by_elements(const void *left, const void *right)
{
    const table_row *const a = left, *const b = right;
    const int order = compare_rows(a->of, a->at, b->at);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

static int by_first(const void *left, const void *right)
{
    const group *const a = left, *const b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static opjit_status read_table(onnx_import *m, const onnx_call *c, table *t)
{
    const int32_t type = c->inputs[0]->type;
    double *floats = NULL;
    int64_t *ints = NULL;
    uint32_t count;
    t->is_unsigned = type == ONNX_UINT64;
    if (onnx_is_float(type))
        TRY(opjit_onnx_input_floats(m, c, 0, &floats, &count));
    else
        TRY(opjit_onnx_input_ints(m, c, 0, &ints, &count));
    t->floats = floats;
    t->ints = ints;
    t->outer = t->inner = 1;
    t->rows = count;
    t->is_flat = opjit_onnx_attribute(m, c, "axis") == NULL;
    if (t->is_flat)
        return OPJIT_OK;
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &t->axis));
    t->rows = x->dims[t->axis];
    for (uint32_t d = 0; d < x->rank; d++)
        *(d < t->axis ? &t->outer : &t->inner) *= d == t->axis ? 1 : x->dims[d];
    return OPJIT_OK;
}

/* Groups of equal rows, in the order of the results; of[row] is the group that it is in. */
static uint64_t find_groups(const table *t, table_row *rows, group *groups, bool sorted, int64_t *of)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->rows; i++)
        rows[i] = (table_row){ t, i };
    qsort(rows, (size_t)t->rows, sizeof *rows, by_elements);
    for (uint64_t i = 0; i < t->rows; i++) {
        if (i == 0 || compare_rows(t, rows[i - 1].at, rows[i].at) != 0) {
            groups[count] = (group){ .first = rows[i].at, .place = count };
            count++;
        }
        groups[count - 1].count++;
        of[rows[i].at] = (int64_t)(count - 1);
    }
    if (sorted)
        return count;
    qsort(groups, (size_t)count, sizeof *groups, by_first);
    for (uint64_t i = 0; i < count; i++) /* rows is free now: where each group went */
        rows[groups[i].place].at = i;
    for (uint64_t i = 0; i < t->rows; i++)
        of[i] = (int64_t)rows[of[i]].at;
    return count;
}

/* The rows that the groups have first, elements of `size` bytes. */
static void *take_rows(onnx_import *m, const table *t, const group *groups, uint64_t count, const uint8_t *data,
                       size_t size)
{
    const size_t inner = (size_t)t->inner * size;
    uint8_t *const out = opjit_onnx_memory(m, t->outer * count * inner);
    for (uint64_t o = 0; o < t->outer && out != NULL; o++)
        for (uint64_t i = 0; i < count; i++)
            memcpy(out + (o * count + i) * inner, data + (o * t->rows + groups[i].first) * inner, inner);
    return out;
}

opjit_status opjit_onnx_unique(onnx_import *m, onnx_call *c)
{
    table t = { 0 };
    TRY(opjit_onnx_need(m, c, 1));
    TRY(read_table(m, c, &t));
    const onnx_value *const x = c->inputs[0];
    const uint8_t *const data = opjit_onnx_data(m, c->inputs[0]);
    table_row *const rows = ARENA_ARRAY(m->arena, table_row, (size_t)t.rows + 1);
    group *const groups = ARENA_ARRAY(m->arena, group, (size_t)t.rows + 1);
    int64_t *const of = opjit_onnx_memory(m, t.rows * sizeof *of);
    if (data == NULL || rows == NULL || groups == NULL || of == NULL)
        return m->error->status != OPJIT_OK ? m->error->status : opjit_rt_no_memory(m->error);
    const uint64_t count = find_groups(&t, rows, groups, opjit_onnx_int(m, c, "sorted", 1) != 0, of);
    int64_t *const first = opjit_onnx_memory(m, count * sizeof *first);
    int64_t *const counts = opjit_onnx_memory(m, count * sizeof *counts);
    void *const y = take_rows(m, &t, groups, count, data, opjit_rt_dtype_size(opjit_onnx_dtype(x->type)));
    TRY(m->error->status);
    for (uint64_t i = 0; i < count; i++) {
        first[i] = (int64_t)groups[i].first;
        counts[i] = (int64_t)groups[i].count;
    }
    uint64_t dims[ONNX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[t.axis] = count; /* of a flat table, too: its axis is 0 */
    TRY(opjit_onnx_give_data(m, c, 0, x->type, t.is_flat ? 1 : x->rank, dims, y));
    TRY(opjit_onnx_give_data(m, c, 1, ONNX_INT64, 1, &count, first));
    TRY(opjit_onnx_give_data(m, c, 2, ONNX_INT64, 1, &t.rows, of));
    return opjit_onnx_give_data(m, c, 3, ONNX_INT64, 1, &count, counts);
}
