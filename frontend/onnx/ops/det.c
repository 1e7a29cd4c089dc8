/* SPDX-License-Identifier: Apache-2.0 */
/* det.c - Det: determinants of square matrices, by elimination with the greatest element of a column as its pivot.
 * A step takes one row and one column away from all matrices at once. */
#include "frontend/onnx/ops/ops.h"

enum { ROWS_MOST = 64 }; /* as many steps, each of several operators */

/* Of each matrix, `rows` and `columns` from these on. */
static opjit_tensor part_of(onnx_import *m, opjit_tensor t, uint32_t count, uint32_t first_row, uint32_t rows,
                            uint32_t first_column, uint32_t columns)
{
    const uint32_t begin[3] = { 0, first_row, first_column }, sizes[3] = { count, rows, columns };
    return opjit_graph_slice(m->graph, t, begin, sizes, NULL);
}

/* {count, n, n} becomes {count, n - 1, n - 1}, and *det, {count, 1, 1}, is multiplied by the pivot. */
static opjit_tensor eliminate(onnx_import *m, opjit_tensor t, uint32_t count, uint32_t n, int32_t type,
                              opjit_tensor *det)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor zero = opjit_onnx_scalar(m, type, 0), one = opjit_onnx_scalar(m, type, 1);
    const uint32_t numbers[3] = { 1, n, 1 }, wide[3] = { count, 1, n };
    const opjit_tensor column = part_of(m, t, count, 0, n, 0, 1);
    const opjit_tensor at = opjit_graph_argmax(g, opjit_graph_abs(g, column), 1); /* {count, 1, 1} */
    const opjit_tensor row = opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_UINT32, 3, numbers, 0, 1);
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { NULL, NULL, NULL, 1 };
    const opjit_tensor inputs[2] = { t, opjit_graph_broadcast(g, at, 3, wide) };
    const opjit_tensor pivots = opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2);
    const opjit_tensor pivot = part_of(m, pivots, count, 0, 1, 0, 1);
    const opjit_tensor is_first = opjit_graph_equals(g, at, opjit_onnx_scalar(m, ONNX_UINT32, 0));
    const opjit_tensor sign = opjit_graph_where(g, is_first, one, opjit_onnx_scalar(m, type, -1));
    *det = opjit_graph_multiply(g, *det, opjit_graph_multiply(g, sign, pivot));
    /* The first row takes the pivot's place, which goes. */
    const opjit_tensor first = part_of(m, t, count, 0, 1, 0, n);
    const opjit_tensor swapped = opjit_graph_where(g, opjit_graph_equals(g, row, at), first, t);
    const opjit_tensor ratio = opjit_graph_divide(g, part_of(m, swapped, count, 1, n - 1, 0, 1), pivot);
    const opjit_tensor factor = opjit_graph_where(g, opjit_graph_equals(g, pivot, zero), zero, ratio);
    return opjit_graph_subtract(g, part_of(m, swapped, count, 1, n - 1, 1, n - 1),
                                opjit_graph_multiply(g, factor, part_of(m, pivots, count, 0, 1, 1, n - 1)));
}

opjit_status opjit_onnx_det(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (x->rank < 2)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u dimensions, must be at least 2", x->rank);
    const uint64_t n = x->dims[x->rank - 1];
    if (n == 0 || x->dims[x->rank - 2] != n)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "matrices of %llu rows and %llu columns, must be square",
                                 (unsigned long long)x->dims[x->rank - 2], (unsigned long long)n);
    if (n > ROWS_MOST)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "matrices of %llu rows, must be at most %d",
                                 (unsigned long long)n, ROWS_MOST);
    const uint64_t count = opjit_onnx_elements_of(x) / (n * n), sizes[3] = { count, n, n };
    opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, sizes);
    opjit_tensor det = opjit_graph_fill(m->graph, opjit_onnx_dtype(x->type), 3,
                                        (const uint32_t[]){ (uint32_t)count, 1, 1 }, 1);
    for (uint32_t left = (uint32_t)n; left > 1; left--)
        t = eliminate(m, t, (uint32_t)count, left, x->type, &det);
    return opjit_onnx_give_as(m, c, 0, opjit_graph_multiply(m->graph, det, t), x->type, x->rank - 2, x->dims);
}
