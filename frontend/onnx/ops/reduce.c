/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - operators along axes: reductions, running sums, softmax, the greatest ones. */
#include <math.h>

#include "frontend/onnx/ops/ops.h"

/* The sizes without the axes, or with 1 in their place. */
static uint32_t sizes_without(const onnx_value *x, const uint32_t *axes, uint32_t count, bool keep, uint64_t *dims)
{
    uint32_t rank = 0;
    for (uint32_t d = 0, i = 0; d < x->rank; d++) {
        const bool is_axis = i < count && axes[i] == d;
        i += is_axis;
        if (!is_axis || keep)
            dims[rank++] = is_axis ? 1 : x->dims[d];
    }
    return rank;
}

/* Whether the function of one element is that element. */
static bool is_own_result(DML_REDUCE_FUNCTION function)
{
    return function == DML_REDUCE_FUNCTION_SUM || function == DML_REDUCE_FUNCTION_AVERAGE ||
           function == DML_REDUCE_FUNCTION_MULTIPLY || function == DML_REDUCE_FUNCTION_MIN ||
           function == DML_REDUCE_FUNCTION_MAX;
}

/* What the function makes of no elements of the type, in *out; false: a number that only integers have. */
static bool of_nothing(DML_REDUCE_FUNCTION function, int32_t type, double *out)
{
    const bool is_log = function == DML_REDUCE_FUNCTION_LOG_SUM || function == DML_REDUCE_FUNCTION_LOG_SUM_EXP;
    const bool is_least = function == DML_REDUCE_FUNCTION_MIN;
    *out = function == DML_REDUCE_FUNCTION_MULTIPLY ? 1 : 0; /* the mean's, too, as ONNX Runtime has it */
    if (is_least || is_log || function == DML_REDUCE_FUNCTION_MAX)
        *out = is_least ? INFINITY : -INFINITY;
    return isfinite(*out) || onnx_is_float(type);
}

/* ReduceSum and its kin: axes are an attribute up to opset 17 (ReduceSum: 12), else input 1. */
opjit_status opjit_onnx_reduce(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK], count;
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axes(m, c, "axes", 1, x->rank, axes, &count));
    if (count == 0 && opjit_onnx_int(m, c, "noop_with_empty_axes", 0) == 0)
        for (; count < x->rank; count++)
            axes[count] = count;
    const DML_REDUCE_FUNCTION function = (DML_REDUCE_FUNCTION)c->row->arg;
    if (count == 0 && is_own_result(function))
        return opjit_onnx_give_value(m, c, 0, x);
    const uint32_t rank = sizes_without(x, axes, count, opjit_onnx_int(m, c, "keepdims", 1) != 0, dims);
    double nothing;
    if (opjit_onnx_elements_of(x) == 0 && count > 0 && of_nothing(function, x->type, &nothing))
        return opjit_onnx_give_everywhere(m, c, 0, opjit_onnx_scalar(m, x->type, nothing), x->type, rank, dims);
    opjit_tensor y = onnx_tensor_of(m, c, 0);
    if (count == 0) { /* each element, or a scalar, by itself: what the function makes of one element */
        axes[count++] = 1;
        y = opjit_onnx_reshape(m, y, 2, (uint64_t[]){ opjit_onnx_elements_of(x), 1 });
    }
    const bool is_int =
        x->type == ONNX_INT32 || x->type == ONNX_INT64 || x->type == ONNX_UINT32 || x->type == ONNX_UINT64;
    const bool is_mean = is_int && function == DML_REDUCE_FUNCTION_AVERAGE;
    /* Roots and logarithms of integers are taken of FLOAT64, and lose what is behind the point. */
    const bool is_root = is_int && (function == DML_REDUCE_FUNCTION_L2 || function == DML_REDUCE_FUNCTION_LOG_SUM ||
                                    function == DML_REDUCE_FUNCTION_LOG_SUM_EXP);
    y = is_root ? opjit_onnx_cast(m, y, x->type, ONNX_DOUBLE) : y;
    y = opjit_graph_reduce(m->graph, y, is_mean ? DML_REDUCE_FUNCTION_SUM : function, count, axes);
    y = is_root ? opjit_onnx_cast(m, y, ONNX_DOUBLE, x->type) : y;
    if (is_mean) { /* the quotient of integers */
        uint64_t summed = 1;
        for (uint32_t i = 0; i < count && x->rank != 0; i++)
            summed *= x->dims[axes[i]];
        y = opjit_graph_divide(m->graph, y, opjit_onnx_scalar(m, x->type, (double)summed));
    }
    return opjit_onnx_give_as(m, c, 0, y, x->type, rank, dims);
}

opjit_status opjit_onnx_arg(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    const DML_ARGMAX_OPERATOR_DESC desc = { NULL, NULL, 1, &axis,
                                            opjit_onnx_int(m, c, "select_last_index", 0) != 0
                                                ? DML_AXIS_DIRECTION_DECREASING
                                                : DML_AXIS_DIRECTION_INCREASING };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    const opjit_tensor y = opjit_graph_op(m->graph, (DML_OPERATOR_TYPE)c->row->arg, &desc, &t, 1);
    const uint32_t rank = sizes_without(x, &axis, 1, opjit_onnx_int(m, c, "keepdims", 1) != 0, dims);
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, ONNX_UINT32, ONNX_INT64), ONNX_INT64, rank, dims);
}

opjit_status opjit_onnx_cumulative(onnx_import *m, onnx_call *c)
{
    int64_t number = 0;
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_int(m, c, 1, &number));
    TRY(opjit_onnx_axis(m, c, number, x->rank, &axis));
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc = { NULL, NULL, axis,
                                                          opjit_onnx_int(m, c, "reverse", 0) != 0
                                                              ? DML_AXIS_DIRECTION_DECREASING
                                                              : DML_AXIS_DIRECTION_INCREASING,
                                                          opjit_onnx_int(m, c, "exclusive", 0) != 0 };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, (DML_OPERATOR_TYPE)c->row->arg, &desc, &t, 1), x->type,
                           x->rank);
}

/* Softmax, LogSoftmax, Hardmax: along one axis; up to opset 12 over all from the axis on. */
opjit_status opjit_onnx_softmax(onnx_import *m, onnx_call *c)
{
    const bool old = m->opset < 13;
    uint32_t axes[ONNX_RANK], count = 0, axis;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (x->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input 0 is a scalar, must have at least one dimension");
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", old ? 1 : -1), x->rank, &axis));
    for (uint32_t d = axis; d < (old ? x->rank : axis + 1); d++)
        axes[count++] = d;
    if (opjit_onnx_elements_of(x) == 0)
        return opjit_onnx_give_nothing(m, c, 0, x->type, x->rank, x->dims);
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc = { NULL, NULL, count, axes };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, (DML_OPERATOR_TYPE)c->row->arg, &desc, &t, 1), x->type,
                           x->rank);
}

opjit_status opjit_onnx_top_k(onnx_import *m, onnx_call *c)
{
    int64_t k = opjit_onnx_int(m, c, "k", 0);
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_int(m, c, 1, &k));
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -1), x->rank, &axis));
    if (k < 0 || (uint64_t)k > x->dims[axis])
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "k: %lld, must be 0 to %llu", (long long)k,
                                 (unsigned long long)x->dims[axis]);
    if (k == 0 || opjit_onnx_elements_of(x) == 0) {
        uint64_t dims[ONNX_RANK];
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = (uint64_t)k;
        TRY(opjit_onnx_give_nothing(m, c, 0, x->type, x->rank, dims));
        return opjit_onnx_give_nothing(m, c, 1, ONNX_INT64, x->rank, dims);
    }
    const DML_TOP_K1_OPERATOR_DESC desc = {
        NULL,
        NULL,
        NULL,
        axis,
        (uint32_t)k,
        opjit_onnx_int(m, c, "largest", 1) != 0 ? DML_AXIS_DIRECTION_DECREASING : DML_AXIS_DIRECTION_INCREASING
    };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    opjit_tensor results[2];
    opjit_onnx_add(m, DML_OPERATOR_TOP_K1, &desc, &t, 1, results, 2);
    TRY(opjit_onnx_give(m, c, 0, results[0], x->type, x->rank));
    return opjit_onnx_give(m, c, 1, opjit_onnx_cast(m, results[1], ONNX_UINT32, ONNX_INT64), ONNX_INT64, x->rank);
}
