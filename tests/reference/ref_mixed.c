/* SPDX-License-Identifier: Apache-2.0 */
/* ref_mixed.c - pointwise operators whose tensors differ in type: comparisons, IF, CAST, BIT_COUNT, quantization. */
#include <math.h>

#include "tests/reference/pointwise.h"

#define OP(NAME) case DML_OPERATOR_ELEMENT_WISE_##NAME

/* --- comparisons -------------------------------------------------------------------------------------------------- */

static bool is_less(ref_element a, ref_element b)
{
    if (ref_dtype_is_float(a.dtype))
        return ref_float_of(a) < ref_float_of(b);
    if (ref_dtype_is_signed(a.dtype))
        return (int64_t)ref_integer_of(a) < (int64_t)ref_integer_of(b);
    return a.bits < b.bits;
}

static bool is_equal(ref_element a, ref_element b)
{
    return ref_dtype_is_float(a.dtype) ? ref_float_of(a) == ref_float_of(b) : a.bits == b.bits;
}

static bool is_infinity(DML_IS_INFINITY_MODE mode, double x)
{
    return isinf(x) && (mode == DML_IS_INFINITY_MODE_EITHER || signbit(x) == (mode == DML_IS_INFINITY_MODE_NEGATIVE));
}

static bool truth(const DML_OPERATOR_DESC *op, const ref_element *x, uint64_t *out)
{
    const DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC *infinity = op->Desc;
    switch (op->Type) {
        OP(LOGICAL_EQUALS) : *out = is_equal(x[0], x[1]);
        return true;
        OP(LOGICAL_LESS_THAN) : *out = is_less(x[0], x[1]);
        return true;
        OP(LOGICAL_GREATER_THAN) : *out = is_less(x[1], x[0]);
        return true;
        OP(LOGICAL_LESS_THAN_OR_EQUAL) : *out = is_less(x[0], x[1]) || is_equal(x[0], x[1]);
        return true;
        OP(LOGICAL_GREATER_THAN_OR_EQUAL) : *out = is_less(x[1], x[0]) || is_equal(x[0], x[1]);
        return true;
        OP(IS_NAN) : *out = ref_is_nan(x[0].dtype, x[0].bits);
        return true;
        OP(IS_INFINITY) : *out = is_infinity(infinity->InfinityMode, ref_float_of(x[0]));
        return true;
        OP(IF) : *out = x[0].bits != 0 ? x[1].bits : x[2].bits;
        return true;
    default: return false;
    }
}

/* --- CAST --------------------------------------------------------------------------------------------------------- */

/* Toward zero, saturating, NaN to 0. */
static uint64_t to_integer(DML_TENSOR_DATA_TYPE dtype, double value)
{
    const int width = 8 * (int)ref_dtype_size(dtype);
    const bool is_signed = ref_dtype_is_signed(dtype);
    const double beyond = ldexp(1.0, is_signed ? width - 1 : width), lowest = is_signed ? -beyond : 0;
    const uint64_t highest_bits = UINT64_MAX >> (64 - width + (is_signed ? 1 : 0));
    if (isnan(value))
        return 0;
    value = trunc(value);
    if (value >= beyond)
        return highest_bits;
    if (value <= lowest)
        return is_signed ? ~highest_bits : 0;
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static uint64_t to_float(DML_TENSOR_DATA_TYPE dtype, long double value)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16:
        return ref_half_of_double((double)value); /* integers beyond doubles are infinite */
    case DML_TENSOR_DATA_TYPE_FLOAT32: return ref_element_of_float(dtype, (float)value);
    default: return ref_result_of(dtype, ref_exactly((double)value)).bits;
    }
}

static uint64_t cast(DML_TENSOR_DATA_TYPE dtype, ref_element x)
{
    if (dtype == x.dtype)
        return x.bits;
    if (ref_dtype_is_float(x.dtype))
        return ref_dtype_is_float(dtype) ? to_float(dtype, ref_float_of(x)) : to_integer(dtype, ref_float_of(x));
    if (!ref_dtype_is_float(dtype))
        return ref_integer_of(x);
    return ref_dtype_is_signed(x.dtype) ? to_float(dtype, (long double)(int64_t)ref_integer_of(x))
                                        : to_float(dtype, (long double)ref_integer_of(x));
}

/* --- quantization ------------------------------------------------------------------------------------------------- */

static double integer_value(ref_element x)
{
    return ref_dtype_is_signed(x.dtype) ? (double)(int64_t)ref_integer_of(x) : (double)ref_integer_of(x);
}

/* An absent tensor is 0. */
static double number(ref_element x)
{
    if (x.dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return 0;
    return ref_dtype_is_float(x.dtype) ? ref_float_of(x) : integer_value(x);
}

static uint64_t quantize(DML_TENSOR_DATA_TYPE dtype, ref_floats f, double x, double scale, double zero_point)
{
    const bool is_signed = ref_dtype_is_signed(dtype);
    const double quotient = rint(ref_round(f, ref_round(f, x) / ref_round(f, scale)));
    const double sum = (isnan(quotient) ? 0 : quotient) + zero_point;
    return (uint64_t)(int64_t)fmin(fmax(sum, is_signed ? -128 : 0), is_signed ? 127 : 255);
}

static double dequantize(ref_floats f, ref_element x, ref_element zero_point, ref_element scale)
{
    return ref_round(f, ref_round(f, number(x) - number(zero_point)) * number(scale));
}

static bool quantization(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x, ref_result *out)
{
    const ref_floats f = { x[1].dtype == DML_TENSOR_DATA_TYPE_FLOAT64 };
    double sum;
    switch (op->Type) {
        OP(QUANTIZE_LINEAR) : *out = ref_result_bits(quantize(dtype, f, number(x[0]), number(x[1]), number(x[2])));
        break;
        OP(DEQUANTIZE_LINEAR) : *out = ref_result_of(dtype, ref_exactly(dequantize(f, x[0], x[2], x[1])));
        break;
        OP(QUANTIZED_LINEAR_ADD)
            : sum = ref_round(f, dequantize(f, x[0], x[2], x[1]) + dequantize(f, x[3], x[5], x[4]));
        *out = ref_result_bits(quantize(dtype, f, sum, number(x[6]), number(x[7])));
        break;
    default: return false;
    }
    return true;
}

/* --- copies: whatever the bits are ------------------------------------------------------------------------------ */

static bool copy(const DML_OPERATOR_DESC *op, const ref_element *x, uint64_t *out)
{
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC *identity = op->Desc;
    const DML_ELEMENT_WISE_ABS_OPERATOR_DESC *absolute = op->Desc;
    const uint64_t sign = UINT64_C(1) << (8 * ref_dtype_size(x[0].dtype) - 1);
    if (!ref_dtype_is_float(x[0].dtype))
        return false;
    switch (op->Type) {
        OP(IDENTITY) : *out = x[0].bits;
        return identity->ScaleBias == NULL;
        OP(ABS) : *out = x[0].bits & ~sign;
        return absolute->ScaleBias == NULL;
        OP(NEGATE) : *out = x[0].bits ^ sign;
        return true;
    case DML_OPERATOR_ACTIVATION_IDENTITY: *out = x[0].bits; return true;
    case DML_OPERATOR_ACTIVATION_RELU_GRAD: *out = ref_float_of(x[0]) > 0 ? x[1].bits : 0; return true;
    default: return false;
    }
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static uint64_t bit_count(uint64_t bits)
{
    uint64_t count = 0;
    for (; bits != 0; bits >>= 1)
        count += bits & 1;
    return count;
}

bool ref_mixed(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x, ref_result *out)
{
    uint64_t bits;
    if (quantization(op, dtype, x, out))
        return true;
    if (op->Type == DML_OPERATOR_CAST)
        bits = cast(dtype, x[0]);
    else if (op->Type == DML_OPERATOR_ELEMENT_WISE_BIT_COUNT)
        bits = bit_count(x[0].bits);
    else if (!truth(op, x, &bits) && !copy(op, x, &bits))
        return false;
    *out = ref_result_bits(bits);
    return true;
}
