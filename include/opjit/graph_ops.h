/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/graph_ops.h - a function for each of the common operators of the graph builder, which fills in the descriptor
 * and calls opjit/graph.h: nothing here is in the library, and whatever is not here opjit_graph_op does.  Since 0.1.
 *
 * All of them take the graph first and give one tensor, null where the graph has failed; each is [one thread, 0.1].
 * Operands are broadcast to each other as opjit_graph_add_node says; one number is opjit_graph_scalar.  Axes are
 * counted from 0, the outermost.  What each computes, and its corners, is in DirectML's documents and in `opjit ops
 * NAME`.  Arrays have the number of elements that the comment says, and are copied. */
#ifndef OPJIT_GRAPH_OPS_H
#define OPJIT_GRAPH_OPS_H

#include <opjit/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- of one, two, three operands ---------------------------------------------------------------------------------- */
static inline opjit_tensor opjit_graph_op1(opjit_graph *graph, DML_OPERATOR_TYPE type, opjit_tensor x)
{
    return opjit_graph_op(graph, type, NULL, &x, 1);
}
static inline opjit_tensor opjit_graph_op2(opjit_graph *graph, DML_OPERATOR_TYPE type, opjit_tensor a, opjit_tensor b)
{
    const opjit_tensor inputs[2] = { a, b };
    return opjit_graph_op(graph, type, NULL, inputs, 2);
}

/* opjit_graph_abs(graph, x) and the like: one line for each operator whose descriptor has tensors alone. */
#define OPJIT_GRAPH_UNARY(name, TYPE)                                               \
    static inline opjit_tensor opjit_graph_##name(opjit_graph *graph, opjit_tensor x) \
    {                                                                               \
        return opjit_graph_op1(graph, DML_OPERATOR_##TYPE, x);                      \
    }
#define OPJIT_GRAPH_BINARY(name, TYPE)                                                                \
    static inline opjit_tensor opjit_graph_##name(opjit_graph *graph, opjit_tensor a, opjit_tensor b) \
    {                                                                                                 \
        return opjit_graph_op2(graph, DML_OPERATOR_##TYPE, a, b);                                     \
    }
OPJIT_GRAPH_UNARY(copy, ELEMENT_WISE_IDENTITY)
OPJIT_GRAPH_UNARY(abs, ELEMENT_WISE_ABS)
OPJIT_GRAPH_UNARY(negate, ELEMENT_WISE_NEGATE)
OPJIT_GRAPH_UNARY(sign, ELEMENT_WISE_SIGN)
OPJIT_GRAPH_UNARY(recip, ELEMENT_WISE_RECIP)
OPJIT_GRAPH_UNARY(sqrt, ELEMENT_WISE_SQRT)
OPJIT_GRAPH_UNARY(exp, ELEMENT_WISE_EXP)
OPJIT_GRAPH_UNARY(log, ELEMENT_WISE_LOG)
OPJIT_GRAPH_UNARY(sin, ELEMENT_WISE_SIN)
OPJIT_GRAPH_UNARY(cos, ELEMENT_WISE_COS)
OPJIT_GRAPH_UNARY(tanh, ELEMENT_WISE_TANH)
OPJIT_GRAPH_UNARY(erf, ELEMENT_WISE_ERF)
OPJIT_GRAPH_UNARY(ceil, ELEMENT_WISE_CEIL)
OPJIT_GRAPH_UNARY(floor, ELEMENT_WISE_FLOOR)
OPJIT_GRAPH_UNARY(is_nan, ELEMENT_WISE_IS_NAN)
OPJIT_GRAPH_UNARY(logical_not, ELEMENT_WISE_LOGICAL_NOT)
OPJIT_GRAPH_UNARY(bit_not, ELEMENT_WISE_BIT_NOT)
OPJIT_GRAPH_UNARY(relu, ACTIVATION_RELU)
OPJIT_GRAPH_UNARY(sigmoid, ACTIVATION_SIGMOID)
OPJIT_GRAPH_UNARY(gelu, ACTIVATION_GELU)
OPJIT_GRAPH_UNARY(softsign, ACTIVATION_SOFTSIGN)
OPJIT_GRAPH_BINARY(add, ELEMENT_WISE_ADD)
OPJIT_GRAPH_BINARY(subtract, ELEMENT_WISE_SUBTRACT)
OPJIT_GRAPH_BINARY(multiply, ELEMENT_WISE_MULTIPLY)
OPJIT_GRAPH_BINARY(divide, ELEMENT_WISE_DIVIDE)
OPJIT_GRAPH_BINARY(max, ELEMENT_WISE_MAX)
OPJIT_GRAPH_BINARY(min, ELEMENT_WISE_MIN)
OPJIT_GRAPH_BINARY(mean, ELEMENT_WISE_MEAN)
OPJIT_GRAPH_BINARY(pow, ELEMENT_WISE_POW)
OPJIT_GRAPH_BINARY(modulus_truncate, ELEMENT_WISE_MODULUS_TRUNCATE)
OPJIT_GRAPH_BINARY(modulus_floor, ELEMENT_WISE_MODULUS_FLOOR)
OPJIT_GRAPH_BINARY(equals, ELEMENT_WISE_LOGICAL_EQUALS)
OPJIT_GRAPH_BINARY(greater, ELEMENT_WISE_LOGICAL_GREATER_THAN)
OPJIT_GRAPH_BINARY(greater_or_equal, ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL)
OPJIT_GRAPH_BINARY(less, ELEMENT_WISE_LOGICAL_LESS_THAN)
OPJIT_GRAPH_BINARY(less_or_equal, ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL)
OPJIT_GRAPH_BINARY(logical_and, ELEMENT_WISE_LOGICAL_AND)
OPJIT_GRAPH_BINARY(logical_or, ELEMENT_WISE_LOGICAL_OR)
OPJIT_GRAPH_BINARY(logical_xor, ELEMENT_WISE_LOGICAL_XOR)
OPJIT_GRAPH_BINARY(bit_and, ELEMENT_WISE_BIT_AND)
OPJIT_GRAPH_BINARY(bit_or, ELEMENT_WISE_BIT_OR)
OPJIT_GRAPH_BINARY(bit_xor, ELEMENT_WISE_BIT_XOR)
OPJIT_GRAPH_BINARY(shift_left, ELEMENT_WISE_BIT_SHIFT_LEFT)
OPJIT_GRAPH_BINARY(shift_right, ELEMENT_WISE_BIT_SHIFT_RIGHT)
#undef OPJIT_GRAPH_UNARY
#undef OPJIT_GRAPH_BINARY

/* condition (UINT8) ? a : b. */
static inline opjit_tensor opjit_graph_where(opjit_graph *graph, opjit_tensor condition, opjit_tensor a, opjit_tensor b)
{
    const opjit_tensor inputs[3] = { condition, a, b };
    return opjit_graph_op(graph, DML_OPERATOR_ELEMENT_WISE_IF, NULL, inputs, 3);
}
/* x clamped to [least, most]; each bound is rounded once to x's type. */
static inline opjit_tensor opjit_graph_clip(opjit_graph *graph, opjit_tensor x, float least, float most)
{
    const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC desc = { NULL, NULL, NULL, least, most };
    return opjit_graph_op(graph, DML_OPERATOR_ELEMENT_WISE_CLIP, &desc, &x, 1);
}
/* x in another data type. */
static inline opjit_tensor opjit_graph_cast(opjit_graph *graph, opjit_tensor x, DML_TENSOR_DATA_TYPE dtype)
{
    opjit_tensor_type type = { DML_TENSOR_DATA_TYPE_UNKNOWN, 0, { 0 } };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor result = { 0, 0 };
    type.dtype = dtype;
    node.type = DML_OPERATOR_CAST;
    node.inputs = &x;
    node.input_count = node.output_count = 1;
    node.output_types = &type;
    (void)opjit_graph_add_node(graph, &node, &result);
    return result;
}

/* --- along axes --------------------------------------------------------------------------------------------------- */
/* function over axis_count axes, which stay as dimensions of size 1. */
static inline opjit_tensor opjit_graph_reduce(opjit_graph *graph, opjit_tensor x, DML_REDUCE_FUNCTION function,
                                              uint32_t axis_count, const uint32_t *axes)
{
    const DML_REDUCE_OPERATOR_DESC desc = { function, NULL, NULL, axis_count, axes };
    return opjit_graph_op(graph, DML_OPERATOR_REDUCE, &desc, &x, 1);
}
/* The same over one axis. */
static inline opjit_tensor opjit_graph_reduce_sum(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    return opjit_graph_reduce(graph, x, DML_REDUCE_FUNCTION_SUM, 1, &axis);
}
static inline opjit_tensor opjit_graph_reduce_mean(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    return opjit_graph_reduce(graph, x, DML_REDUCE_FUNCTION_AVERAGE, 1, &axis);
}
static inline opjit_tensor opjit_graph_reduce_max(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    return opjit_graph_reduce(graph, x, DML_REDUCE_FUNCTION_MAX, 1, &axis);
}
static inline opjit_tensor opjit_graph_reduce_min(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    return opjit_graph_reduce(graph, x, DML_REDUCE_FUNCTION_MIN, 1, &axis);
}
/* The index along the axis (UINT32) of the greatest element, and of the least one; the first of equal ones. */
static inline opjit_tensor opjit_graph_argmax(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    const DML_ARGMAX_OPERATOR_DESC desc = { NULL, NULL, 1, &axis, DML_AXIS_DIRECTION_INCREASING };
    return opjit_graph_op(graph, DML_OPERATOR_ARGMAX, &desc, &x, 1);
}
static inline opjit_tensor opjit_graph_argmin(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    const DML_ARGMIN_OPERATOR_DESC desc = { NULL, NULL, 1, &axis, DML_AXIS_DIRECTION_INCREASING };
    return opjit_graph_op(graph, DML_OPERATOR_ARGMIN, &desc, &x, 1);
}
static inline opjit_tensor opjit_graph_softmax(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc = { NULL, NULL, 1, &axis };
    return opjit_graph_op(graph, DML_OPERATOR_ACTIVATION_SOFTMAX1, &desc, &x, 1);
}
static inline opjit_tensor opjit_graph_log_softmax(opjit_graph *graph, opjit_tensor x, uint32_t axis)
{
    const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC desc = { NULL, NULL, 1, &axis };
    return opjit_graph_op(graph, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &desc, &x, 1);
}
/* (x - mean) / sqrt(variance + epsilon) over one axis, times scale, plus bias; both may be null handles. */
static inline opjit_tensor opjit_graph_layer_norm(opjit_graph *graph, opjit_tensor x, opjit_tensor scale,
                                                  opjit_tensor bias, uint32_t axis, float epsilon)
{
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc = { NULL, NULL, NULL, NULL, 1, &axis, 1, epsilon, NULL };
    const opjit_tensor inputs[3] = { x, scale, bias };
    return opjit_graph_op(graph, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &desc, inputs, 3);
}
/* The k greatest elements along one axis, the greatest first, and their indices along it (UINT32) in *out_indices, if
 * that is not NULL. */
static inline opjit_tensor opjit_graph_top_k(opjit_graph *graph, opjit_tensor x, uint32_t axis, uint32_t k,
                                             opjit_tensor *out_indices)
{
    const DML_TOP_K_OPERATOR_DESC desc = { NULL, NULL, NULL, axis, k };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor results[2] = { { 0, 0 }, { 0, 0 } };
    node.type = DML_OPERATOR_TOP_K;
    node.desc = &desc;
    node.inputs = &x;
    node.input_count = 1;
    node.output_count = 2;
    (void)opjit_graph_add_node(graph, &node, results);
    if (out_indices != NULL)
        *out_indices = results[1];
    return results[0];
}
/* Running sums: of the elements up to and including each one, or without it where exclusive is not 0. */
static inline opjit_tensor opjit_graph_cumulative_sum(opjit_graph *graph, opjit_tensor x, uint32_t axis, int exclusive)
{
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc = { NULL, NULL, axis, DML_AXIS_DIRECTION_INCREASING, exclusive };
    return opjit_graph_op(graph, DML_OPERATOR_CUMULATIVE_SUMMATION, &desc, &x, 1);
}

/* --- products ----------------------------------------------------------------------------------------------------- */
/* The product of the matrices in the last two dimensions, in a batch of the others; transposed where not 0. */
static inline opjit_tensor opjit_graph_matrix_multiply(opjit_graph *graph, opjit_tensor a, opjit_tensor b,
                                                       int transpose_a, int transpose_b)
{
    const DML_GEMM_OPERATOR_DESC desc = { NULL, NULL, NULL, NULL,
                                          transpose_a ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          transpose_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                          1, 0, NULL };
    const opjit_tensor inputs[2] = { a, b };
    return opjit_graph_op(graph, DML_OPERATOR_GEMM, &desc, inputs, 2);
}
/* ONNX's Conv.  x is {batch, channels, ...}, filter {output channels, channels / groups, ...}, each with `dimensions`
 * spatial dimensions behind these; bias is {1, output channels, 1, ...} or a null handle.  Four arrays of `dimensions`
 * (1 to 3) numbers: padding with zeros before and behind, strides, dilations. */
static inline opjit_tensor opjit_graph_convolution(opjit_graph *graph, opjit_tensor x, opjit_tensor filter,
                                                   opjit_tensor bias, uint32_t dimensions, const uint32_t *start,
                                                   const uint32_t *end, const uint32_t *strides,
                                                   const uint32_t *dilations, uint32_t groups)
{
    static const uint32_t zeros[8] = { 0 };
    const DML_CONVOLUTION_OPERATOR_DESC desc = { NULL, NULL, NULL, NULL, DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                                 DML_CONVOLUTION_DIRECTION_FORWARD, dimensions, strides, dilations,
                                                 start, end, zeros, groups, NULL };
    const opjit_tensor inputs[3] = { x, filter, bias };
    return opjit_graph_op(graph, DML_OPERATOR_CONVOLUTION, &desc, inputs, 3);
}

/* --- that move elements ------------------------------------------------------------------------------------------- */
/* The count tensors, concatenated along the axis. */
static inline opjit_tensor opjit_graph_join(opjit_graph *graph, const opjit_tensor *tensors, uint32_t count,
                                            uint32_t axis)
{
    const DML_JOIN_OPERATOR_DESC desc = { count, NULL, NULL, axis };
    return opjit_graph_op(graph, DML_OPERATOR_JOIN, &desc, tensors, count);
}
/* count equal parts along the axis, into parts[count]. */
static inline void opjit_graph_split(opjit_graph *graph, opjit_tensor x, uint32_t axis, uint32_t count,
                                     opjit_tensor *parts)
{
    const DML_SPLIT_OPERATOR_DESC desc = { NULL, count, NULL, axis };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    node.type = DML_OPERATOR_SPLIT;
    node.desc = &desc;
    node.inputs = &x;
    node.input_count = 1;
    node.output_count = count;
    (void)opjit_graph_add_node(graph, &node, parts);
}
/* x[.., indices[i..], ..] along the axis, of x's rank: the last index_dimensions sizes of indices take the axis' place,
 * and leading sizes of 1 are dropped or added.  Indices are INT32, INT64, UINT32 or UINT64; negative ones count from
 * the end, all are clamped. */
static inline opjit_tensor opjit_graph_gather(opjit_graph *graph, opjit_tensor x, opjit_tensor indices, uint32_t axis,
                                              uint32_t index_dimensions)
{
    const DML_GATHER_OPERATOR_DESC desc = { NULL, NULL, NULL, axis, index_dimensions };
    const opjit_tensor inputs[2] = { x, indices };
    return opjit_graph_op(graph, DML_OPERATOR_GATHER, &desc, inputs, 2);
}
/* x with start[d] elements of value before it and end[d] behind it in each dimension; arrays of rank numbers. */
static inline opjit_tensor opjit_graph_pad(opjit_graph *graph, opjit_tensor x, uint32_t rank, const uint32_t *start,
                                           const uint32_t *end, float value)
{
    const DML_PADDING_OPERATOR_DESC desc = { NULL, NULL, DML_PADDING_MODE_CONSTANT, value, rank, start, end };
    return opjit_graph_op(graph, DML_OPERATOR_PADDING, &desc, &x, 1);
}
/* x repeated repeats[d] times in each dimension; an array of rank numbers. */
static inline opjit_tensor opjit_graph_tile(opjit_graph *graph, opjit_tensor x, uint32_t rank, const uint32_t *repeats)
{
    const DML_TILE_OPERATOR_DESC desc = { NULL, NULL, rank, repeats };
    return opjit_graph_op(graph, DML_OPERATOR_TILE, &desc, &x, 1);
}

/* --- over sliding windows ----------------------------------------------------------------------------------------- */
/* The mean over sliding windows.  x is {batch, channels, ...} with 2 or 3 spatial dimensions, which `dimensions`
 * counts; the arrays have as many numbers.  start and end are padding: elements of 0, which the divisor counts where
 * include_padding is not 0. */
static inline opjit_tensor opjit_graph_average_pool(opjit_graph *graph, opjit_tensor x, uint32_t dimensions,
                                                    const uint32_t *window, const uint32_t *strides,
                                                    const uint32_t *start, const uint32_t *end, int include_padding)
{
    const DML_AVERAGE_POOLING_OPERATOR_DESC desc = { NULL,   NULL,  dimensions, strides,
                                                     window, start, end,        include_padding };
    return opjit_graph_op(graph, DML_OPERATOR_AVERAGE_POOLING, &desc, &x, 1);
}
/* The maximum over such windows.  out_indices, unless it is NULL: the index of each (UINT32), in x as a packed array;
 * of equal elements the first. */
static inline opjit_tensor opjit_graph_max_pool(opjit_graph *graph, opjit_tensor x, uint32_t dimensions,
                                                const uint32_t *window, const uint32_t *strides, const uint32_t *start,
                                                const uint32_t *end, opjit_tensor *out_indices)
{
    const DML_MAX_POOLING1_OPERATOR_DESC desc = { NULL, NULL, NULL, dimensions, strides, window, start, end };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor results[2] = { { 0, 0 }, { 0, 0 } };
    node.type = DML_OPERATOR_MAX_POOLING1;
    node.desc = &desc;
    node.inputs = &x;
    node.input_count = 1;
    node.output_count = out_indices != NULL ? 2 : 1;
    (void)opjit_graph_add_node(graph, &node, results);
    if (out_indices != NULL)
        *out_indices = results[1];
    return results[0];
}

/* --- resampling --------------------------------------------------------------------------------------------------- */
/* x resampled to other sizes, an array of x's rank, 1 to 4; pixels are squares whose centers lie between whole numbers.
 * Linear, or where linear is 0 the nearest element.  FLOAT32, FLOAT16, FLOAT64, INT8 or UINT8. */
static inline opjit_tensor opjit_graph_resample(opjit_graph *graph, opjit_tensor x, int linear, const uint32_t *sizes)
{
    float scales[8] = { 0 }, in[8] = { 0 }, out[8] = { 0 };
    const DML_INTERPOLATION_MODE mode =
        linear ? DML_INTERPOLATION_MODE_LINEAR : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR;
    DML_RESAMPLE2_OPERATOR_DESC desc = { NULL, NULL, mode, DML_AXIS_DIRECTION_DECREASING, 0, scales, in, out };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor result = { 0, 0 };
    opjit_tensor_type type;
    if (opjit_graph_get_type(graph, x, &type) != OPJIT_OK)
        return result;
    for (uint32_t d = 0; d < type.rank && d < 8; d++) {
        scales[d] = (float)sizes[d] / (float)type.sizes[d];
        in[d] = linear ? 0.5f : 0.0f;
        out[d] = -0.5f;
        type.sizes[d] = sizes[d];
    }
    desc.DimensionCount = type.rank;
    node.type = DML_OPERATOR_RESAMPLE2;
    node.desc = &desc;
    node.inputs = &x;
    node.input_count = 1;
    node.output_count = 1;
    node.output_types = &type;
    (void)opjit_graph_add_node(graph, &node, &result);
    return result;
}

/* --- random numbers ----------------------------------------------------------------------------------------------- */
/* UINT32 bits by Philox 4x32-10 of a state: UINT32 of sizes { .., 1, 6 }, a counter of 128 bits, lowest word first, and
 * a key.  out_state, unless it is NULL: the state to go on with. */
static inline opjit_tensor opjit_graph_random(opjit_graph *graph, opjit_tensor state, uint32_t rank,
                                              const uint32_t *sizes, opjit_tensor *out_state)
{
    const DML_RANDOM_GENERATOR_OPERATOR_DESC desc = { NULL, NULL, NULL, DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 };
    opjit_tensor_type types[2] = { { DML_TENSOR_DATA_TYPE_UINT32, 0, { 0 } },
                                   { DML_TENSOR_DATA_TYPE_UNKNOWN, 0, { 0 } } };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor results[2] = { { 0, 0 }, { 0, 0 } };
    types[0].rank = rank;
    for (uint32_t d = 0; d < rank && d < 8; d++)
        types[0].sizes[d] = sizes[d];
    node.type = DML_OPERATOR_RANDOM_GENERATOR;
    node.desc = &desc;
    node.inputs = &state;
    node.input_count = 1;
    node.output_count = out_state != NULL ? 2 : 1;
    node.output_types = types;
    (void)opjit_graph_add_node(graph, &node, results);
    if (out_state != NULL)
        *out_state = results[1];
    return results[0];
}

/* --- triangles ---------------------------------------------------------------------------------------------------- */
/* x where column - row <= diagonal in the last two dimensions, else 0: numpy's tril; and, its triu, where column - row
 * >= diagonal, else 0.  diagonal is below INT32_MAX. */
static inline opjit_tensor opjit_graph_lower_triangle(opjit_graph *graph, opjit_tensor x, int32_t diagonal)
{
    return opjit_graph_fill_band(graph, x, 0, diagonal + 1, INT32_MAX);
}
static inline opjit_tensor opjit_graph_upper_triangle(opjit_graph *graph, opjit_tensor x, int32_t diagonal)
{
    return opjit_graph_fill_band(graph, x, 0, INT32_MIN, diagonal);
}
/* 1 where column - row == diagonal, else 0.  diagonal is below INT32_MAX. */
static inline opjit_tensor opjit_graph_eye(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                           const uint32_t *sizes, int32_t diagonal)
{
    return opjit_graph_band(graph, dtype, rank, sizes, 1, diagonal, diagonal + 1);
}

#ifdef __cplusplus
}
#endif
#endif
