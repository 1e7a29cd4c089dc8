/* SPDX-License-Identifier: Apache-2.0 */
/* build_fill.c - generators of graphs that are being built, whose scalars are given as doubles. */
#include <math.h>
#include <string.h>

#include "frontend/graph/build.h"

/* --- scalars ------------------------------------------------------------------------------------------------------ */

/* An integer type's least value, and the power of two above its greatest one. */
typedef struct range {
    double least, end;
} range;

static range range_of(DML_TENSOR_DATA_TYPE type)
{
    const int bits = 8 * (int)opjit_rt_dtype_size(type);
    const bool is_signed = type == DML_TENSOR_DATA_TYPE_INT8 || type == DML_TENSOR_DATA_TYPE_INT16 ||
                           type == DML_TENSOR_DATA_TYPE_INT32 || type == DML_TENSOR_DATA_TYPE_INT64;

    return is_signed ? (range){ -ldexp(1, bits - 1), ldexp(1, bits - 1) } : (range){ 0, ldexp(1, bits) };
}

/* A whole number of the type's range, modulo 2^64. */
static uint64_t whole_bits(double value)
{
    return value < 0 ? 0 - (uint64_t)-value : (uint64_t)value;
}

/* op, field: for the message. */
static opjit_status to_scalar(opjit_graph *g, const char *op, const char *field, DML_TENSOR_DATA_TYPE type,
                              double value, DML_SCALAR_UNION *out)
{
    range r;

    memset(out, 0, sizeof *out);
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64: out->Float64 = value; return OPJIT_OK;
    case DML_TENSOR_DATA_TYPE_FLOAT32: out->Float32 = (float)value; return OPJIT_OK;
    case DML_TENSOR_DATA_TYPE_FLOAT16: out->UInt16 = opjit_ir_f64_to_f16(value); return OPJIT_OK;
    default: break;
    }
    if (opjit_rt_dtype_size(type) == 0)
        return OPJIT_OK; /* the tensor is refused */
    r = range_of(type);
    if (!(value >= r.least && value < r.end) || value != floor(value))
        return opjit_rt_refuse(&g->error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%g}, must be a whole number of %s", op,
                               field, value, opjit_rt_dtype_name(type));
    out->UInt64 = whole_bits(value);
    return OPJIT_OK;
}

/* The output of a generator, with the sizes that the caller gave. */
static opjit_status to_type(opjit_graph *g, const char *what, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                            const uint32_t *sizes, opjit_tensor_type *out)
{
    TRY(opjit_fe_build_check_sizes(g, what, rank, sizes));
    *out = (opjit_tensor_type){ .dtype = dtype, .rank = rank };
    memcpy(out->sizes, sizes, rank * sizeof *sizes);
    return OPJIT_OK;
}

/* --- generators --------------------------------------------------------------------------------------------------- */

opjit_tensor opjit_graph_fill(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank, const uint32_t *sizes,
                              double value)
{
    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC desc = { .ValueDataType = dtype };
    opjit_tensor_type type;

    if (!build_goes_on(graph) || to_type(graph, "graph_fill", dtype, rank, sizes, &type) != OPJIT_OK ||
        to_scalar(graph, "FILL_VALUE_CONSTANT", "Value", dtype, value, &desc.Value) != OPJIT_OK)
        return build_null;
    return opjit_fe_build_op(graph, DML_OPERATOR_FILL_VALUE_CONSTANT, &desc, NULL, 0, &type);
}

opjit_tensor opjit_graph_scalar(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, double value)
{
    static const uint32_t ones[OPJIT_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    const op_def *def = opjit_fe_op_find(DML_OPERATOR_FILL_VALUE_CONSTANT);
    const op_support *row;

    if (!build_goes_on(graph))
        return build_null;
    row = opjit_fe_op_support(def, "OutputTensor", graph->context->feature_level);
    return opjit_graph_fill(graph, dtype, row == NULL ? 1 : row->rank_min, ones, value);
}

opjit_tensor opjit_graph_sequence(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank, const uint32_t *sizes,
                                  double start, double delta)
{
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC desc = { .ValueDataType = dtype };
    opjit_tensor_type type;

    if (!build_goes_on(graph) || to_type(graph, "graph_sequence", dtype, rank, sizes, &type) != OPJIT_OK ||
        to_scalar(graph, "FILL_VALUE_SEQUENCE", "ValueStart", dtype, start, &desc.ValueStart) != OPJIT_OK ||
        to_scalar(graph, "FILL_VALUE_SEQUENCE", "ValueDelta", dtype, delta, &desc.ValueDelta) != OPJIT_OK)
        return build_null;
    return opjit_fe_build_op(graph, DML_OPERATOR_FILL_VALUE_SEQUENCE, &desc, NULL, 0, &type);
}

opjit_tensor opjit_graph_band(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank, const uint32_t *sizes,
                              double value, int32_t begin, int32_t end)
{
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc = { .ValueDataType = dtype,
                                                .DiagonalFillBegin = begin,
                                                .DiagonalFillEnd = end };
    opjit_tensor_type type;

    if (!build_goes_on(graph) || to_type(graph, "graph_band", dtype, rank, sizes, &type) != OPJIT_OK ||
        to_scalar(graph, "DIAGONAL_MATRIX1", "Value", dtype, value, &desc.Value) != OPJIT_OK)
        return build_null;
    return opjit_fe_build_op(graph, DML_OPERATOR_DIAGONAL_MATRIX1, &desc, NULL, 0, &type);
}

opjit_tensor opjit_graph_fill_band(opjit_graph *graph, opjit_tensor x, double value, int32_t begin, int32_t end)
{
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc = { .DiagonalFillBegin = begin, .DiagonalFillEnd = end };
    const build_tensor *t;

    if (!build_goes_on(graph))
        return build_null;
    t = opjit_fe_build_tensor(graph, x, "graph_fill_band", "x");
    if (t == NULL || to_scalar(graph, "DIAGONAL_MATRIX1", "Value", t->dtype, value, &desc.Value) != OPJIT_OK)
        return build_null;
    return opjit_graph_op(graph, DML_OPERATOR_DIAGONAL_MATRIX1, &desc, &x, 1);
}
