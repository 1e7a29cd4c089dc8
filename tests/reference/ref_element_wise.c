/* SPDX-License-Identifier: Apache-2.0 */
/* ref_element_wise.c - the formulas of ELEMENT_WISE operators whose tensors have one type, in floats and in
 * integers. */
#include <math.h>

#include "tests/reference/pointwise.h"

#define DESC(NAME) ((const DML_ELEMENT_WISE_##NAME##_OPERATOR_DESC *)op->Desc)
#define OP(NAME) case DML_OPERATOR_ELEMENT_WISE_##NAME

/* --- floats ------------------------------------------------------------------------------------------------------- */

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double round_by(DML_ROUNDING_MODE mode, double x)
{
    switch (mode) {
    case DML_ROUNDING_MODE_TOWARD_ZERO: return trunc(x);
    case DML_ROUNDING_MODE_TOWARD_INFINITY: return round(x);
    default: return rint(x);
    }
}

/* The remainder with the divisor's sign; the sum is rounded. */
static double modulus_floor(ref_floats f, double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0.0, b);
    if (isnan(rest) || signbit(rest) == signbit(b))
        return rest;
    return ref_round(f, rest + b);
}

static bool float_functions(const DML_OPERATOR_DESC *op, ref_floats f, const ref_range *x, ref_range *out)
{
    switch (op->Type) {
        OP(EXP) : *out = ref_function(f, expl, x[0]);
        return true;
        OP(LOG) : *out = ref_function(f, logl, x[0]);
        return true;
        OP(SIN) : *out = ref_function(f, sinl, x[0]);
        return true;
        OP(COS) : *out = ref_function(f, cosl, x[0]);
        return true;
        OP(TAN) : *out = ref_function(f, tanl, x[0]);
        return true;
        OP(ASIN) : *out = ref_function(f, asinl, x[0]);
        return true;
        OP(ACOS) : *out = ref_function(f, acosl, x[0]);
        return true;
        OP(ATAN) : *out = ref_function(f, atanl, x[0]);
        return true;
        OP(SINH) : *out = ref_function(f, sinhl, x[0]);
        return true;
        OP(COSH) : *out = ref_function(f, coshl, x[0]);
        return true;
        OP(TANH) : *out = ref_function(f, tanhl, x[0]);
        return true;
        OP(ASINH) : *out = ref_function(f, asinhl, x[0]);
        return true;
        OP(ACOSH) : *out = ref_function(f, acoshl, x[0]);
        return true;
        OP(ATANH) : *out = ref_function(f, atanhl, x[0]);
        return true;
        OP(ERF) : *out = ref_function(f, erfl, x[0]);
        return true;
        OP(POW) : *out = ref_function2(f, powl, x[0].lo, x[1].lo);
        return true;
        OP(CONSTANT_POW) : *out = ref_function2(f, powl, x[0].lo, DESC(CONSTANT_POW)->Exponent);
        return true;
        OP(ATAN_YX) : *out = ref_function2(f, atan2l, x[0].lo, x[1].lo);
        return true;
    default: return false;
    }
}

/* A bound of CLIP1, in the tensor's type. */
static double typed(DML_TENSOR_DATA_TYPE dtype, const DML_SCALAR_UNION *value)
{
    return ref_float_of((ref_element){ dtype, ref_scalar_bits(dtype, value) });
}

static bool float_bounds(const DML_OPERATOR_DESC *op, const ref_range *x, ref_range *out)
{
    double min, max;
    switch (op->Type) {
        OP(THRESHOLD) : *out = ref_max(x[0], ref_exactly(DESC(THRESHOLD)->Min));
        return true;
        OP(CLIP) : min = DESC(CLIP)->Min, max = DESC(CLIP)->Max;
        break;
        OP(CLIP_GRAD) : min = DESC(CLIP_GRAD)->Min, max = DESC(CLIP_GRAD)->Max;
        break;
        OP(CLIP1) : min = typed(DESC(CLIP1)->MinMaxDataType, &DESC(CLIP1)->Min);
        max = typed(DESC(CLIP1)->MinMaxDataType, &DESC(CLIP1)->Max);
        break;
        OP(CLIP_GRAD1) : min = typed(DESC(CLIP_GRAD1)->MinMaxDataType, &DESC(CLIP_GRAD1)->Min);
        max = typed(DESC(CLIP_GRAD1)->MinMaxDataType, &DESC(CLIP_GRAD1)->Max);
        break;
    default: return false;
    }
    if (op->Type == DML_OPERATOR_ELEMENT_WISE_CLIP || op->Type == DML_OPERATOR_ELEMENT_WISE_CLIP1)
        *out = ref_min(ref_max(x[0], ref_exactly(min)), ref_exactly(max));
    else
        *out = ref_exactly(x[0].lo <= min || x[0].lo >= max ? 0 : x[1].lo);
    return true;
}

/* FusedActivation(Scale * ((x - Mean) / sqrt(Variance + Epsilon)) + Bias) */
static bool batch_normalization(const DML_BATCH_NORMALIZATION_OPERATOR_DESC *desc, ref_floats f, const ref_range *x,
                                ref_range *out)
{
    const double variance = ref_add(f, x[2], ref_exactly(desc->Epsilon)).lo;
    const ref_range deviation = ref_exactly(ref_round(f, sqrt(variance)));
    const ref_range normal = ref_div(f, ref_sub(f, x[0], x[1]), deviation);
    *out = ref_add(f, ref_mul(f, x[3], normal), x[4]);
    return desc->FusedActivation == NULL || ref_activation(desc->FusedActivation, f, out, out);
}

bool ref_element_wise_float(const DML_OPERATOR_DESC *op, ref_floats f, const ref_range *x, ref_range *out)
{
    const double a = x[0].lo, b = x[1].lo;
    const ref_range difference = ref_sub(f, x[0], x[1]);
    if (float_functions(op, f, x, out) || float_bounds(op, x, out))
        return true;
    switch (op->Type) {
        OP(IDENTITY) : *out = x[0];
        return true;
        OP(ABS) : *out = ref_exactly(fabs(a));
        return true;
        OP(NEGATE) : *out = ref_exactly(-a);
        return true;
        OP(SIGN) : *out = ref_exactly(sign(a));
        return true;
        OP(CEIL) : *out = ref_exactly(ceil(a));
        return true;
        OP(FLOOR) : *out = ref_exactly(floor(a));
        return true;
        OP(ROUND) : *out = ref_exactly(round_by(DESC(ROUND)->RoundingMode, a));
        return true;
        OP(SQRT) : *out = ref_exactly(ref_round(f, sqrt(a)));
        return true;
        OP(RECIP) : *out = ref_div(f, ref_exactly(1), x[0]);
        return true;
        OP(ADD) : *out = ref_add(f, x[0], x[1]);
        return true;
        OP(SUBTRACT) : *out = difference;
        return true;
        OP(MULTIPLY) : *out = ref_mul(f, x[0], x[1]);
        return true;
        OP(DIVIDE) : *out = ref_div(f, x[0], x[1]);
        return true;
        OP(MAX) : *out = ref_max(x[0], x[1]);
        return true;
        OP(MIN) : *out = ref_min(x[0], x[1]);
        return true;
        OP(MEAN) : *out = ref_div(f, ref_add(f, x[0], x[1]), ref_exactly(2));
        return true;
        OP(MODULUS_TRUNCATE) : *out = ref_exactly(fmod(a, b));
        return true;
        OP(MODULUS_FLOOR) : *out = ref_exactly(modulus_floor(f, a, b));
        return true;
        OP(DIFFERENCE_SQUARE) : *out = ref_mul(f, difference, difference);
        return true;
        OP(ADD1) : *out = ref_add(f, x[0], x[1]);
        return DESC(ADD1)->FusedActivation == NULL || ref_activation(DESC(ADD1)->FusedActivation, f, out, out);
    case DML_OPERATOR_BATCH_NORMALIZATION: return batch_normalization(op->Desc, f, x, out);
    default: return false;
    }
}

/* --- integers: modulo 2^N, so in 64 bits unless the sign or a quotient matters ----------------------------------- */

typedef struct integers {
    bool is_signed;
    uint32_t width;
} integers;

static bool below(integers t, uint64_t a, uint64_t b)
{
    return t.is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t quotient(integers t, uint64_t a, uint64_t b)
{
    if (b == 0)
        return UINT64_MAX;
    if (!t.is_signed)
        return a / b;
    return (int64_t)b == -1 ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t modulus(integers t, uint64_t a, uint64_t b)
{
    return b == 0 ? a : a - b * quotient(t, a, b);
}

static uint64_t modulus_floor_of(integers t, uint64_t a, uint64_t b)
{
    const uint64_t rest = modulus(t, a, b);
    return t.is_signed && rest != 0 && ((int64_t)rest < 0) != ((int64_t)b < 0) ? rest + b : rest;
}

/* base^power for a power that is not negative. */
static uint64_t raised(uint64_t base, uint64_t power)
{
    const uint64_t half = power == 0 ? 1 : raised(base, power / 2);
    return power == 0 ? 1 : half * half * (power % 2 != 0 ? base : 1);
}

/* 1 / base^power, toward zero: nonzero for few bases only. */
static uint64_t reciprocal(integers t, uint64_t base, bool odd)
{
    if (t.is_signed && (int64_t)base == -1)
        return odd ? UINT64_MAX : 1;
    return base == 1;
}

static uint64_t power(integers t, uint64_t base, uint64_t exponent)
{
    return t.is_signed && (int64_t)exponent < 0 ? reciprocal(t, base, exponent & 1) : raised(base, exponent);
}

/* Element types have at most 32 bits here. */
static ref_result constant_power(integers t, uint64_t base, float exponent)
{
    const double wide = t.is_signed ? (double)(int64_t)base : (double)base;
    if (isfinite(exponent) && truncf(exponent) == exponent) {
        const bool odd = fmod((double)exponent, 2) != 0;
        if (exponent < 0)
            return ref_result_bits(reciprocal(t, base, odd));
        /* from 2^63 on a multiple of 2^40: odd numbers give 1, even ones 0 */
        return ref_result_bits(exponent < 0x1p63f ? raised(base, (uint64_t)exponent) : base & 1);
    }
    const ref_range range = ref_function2((ref_floats){ true }, powl, wide, exponent);
    const double lowest = t.is_signed ? -ldexp(1, (int)t.width - 1) : 0;
    const double highest = ldexp(1, (int)(t.is_signed ? t.width - 1 : t.width)) - 1;
    ref_result result = ref_result_bits(0);
    if (isnan(range.lo))
        return result;
    result.range.lo = fmin(fmax(trunc(range.lo), lowest), highest);
    result.range.hi = fmin(fmax(trunc(range.hi), lowest), highest);
    result.exact = result.range.lo == result.range.hi;
    result.bits = (uint64_t)(int64_t)result.range.lo;
    return result;
}

/* The exact sum of 32-bit numbers halved, toward zero. */
static uint64_t mean(integers t, uint64_t a, uint64_t b)
{
    return t.is_signed ? (uint64_t)(((int64_t)a + (int64_t)b) / 2) : (a + b) / 2;
}

/* A FLOAT bound in the type, extended. */
static uint64_t bound(DML_TENSOR_DATA_TYPE dtype, float value)
{
    return ref_integer_of((ref_element){ dtype, ref_element_of_float(dtype, value) });
}

static uint64_t typed_bound(DML_TENSOR_DATA_TYPE dtype, const DML_SCALAR_UNION *value)
{
    return ref_integer_of((ref_element){ dtype, ref_scalar_bits(dtype, value) });
}

static uint64_t clip(integers t, uint64_t x, uint64_t min, uint64_t max)
{
    const uint64_t least = below(t, min, x) ? x : min;
    return below(t, least, max) ? least : max;
}

static uint64_t clip_grad(integers t, const uint64_t *x, uint64_t min, uint64_t max)
{
    return below(t, min, x[0]) && below(t, x[0], max) ? x[1] : 0;
}

static bool integer_bounds(const DML_OPERATOR_DESC *op, integers t, DML_TENSOR_DATA_TYPE type, const uint64_t *x,
                           uint64_t *out)
{
    switch (op->Type) {
        OP(CLIP) : *out = clip(t, x[0], bound(type, DESC(CLIP)->Min), bound(type, DESC(CLIP)->Max));
        return true;
        OP(CLIP1) : *out = clip(t, x[0], typed_bound(type, &DESC(CLIP1)->Min), typed_bound(type, &DESC(CLIP1)->Max));
        return true;
        OP(CLIP_GRAD) : *out = clip_grad(t, x, bound(type, DESC(CLIP_GRAD)->Min), bound(type, DESC(CLIP_GRAD)->Max));
        return true;
        OP(CLIP_GRAD1)
            : *out =
                  clip_grad(t, x, typed_bound(type, &DESC(CLIP_GRAD1)->Min), typed_bound(type, &DESC(CLIP_GRAD1)->Max));
        return true;
        OP(THRESHOLD)
            : *out = below(t, bound(type, DESC(THRESHOLD)->Min), x[0]) ? x[0] : bound(type, DESC(THRESHOLD)->Min);
        return true;
    default: return false;
    }
}

static bool integer_bits(const DML_OPERATOR_DESC *op, integers t, uint64_t a, uint64_t b, uint64_t *out)
{
    switch (op->Type) {
        OP(LOGICAL_AND) : *out = a != 0 && b != 0;
        return true;
        OP(LOGICAL_OR) : *out = a != 0 || b != 0;
        return true;
        OP(LOGICAL_XOR) : *out = (a != 0) != (b != 0);
        return true;
        OP(LOGICAL_NOT) : *out = a == 0;
        return true;
        OP(BIT_AND) : *out = a & b;
        return true;
        OP(BIT_OR) : *out = a | b;
        return true;
        OP(BIT_XOR) : *out = a ^ b;
        return true;
        OP(BIT_NOT) : *out = ~a;
        return true;
        OP(BIT_SHIFT_LEFT) : *out = b >= t.width ? 0 : a << b;
        return true;
        OP(BIT_SHIFT_RIGHT) : *out = b >= t.width ? 0 : a >> b;
        return true;
    default: return false;
    }
}

static bool integer_arithmetic(const DML_OPERATOR_DESC *op, integers t, uint64_t a, uint64_t b, uint64_t *out)
{
    const bool negative = t.is_signed && (int64_t)a < 0;
    switch (op->Type) {
        OP(IDENTITY) : *out = a;
        return true;
        OP(ABS) : *out = negative ? 0 - a : a;
        return true;
        OP(NEGATE) : *out = 0 - a;
        return true;
        OP(SIGN) : *out = negative ? UINT64_MAX : a != 0;
        return true;
        OP(ADD) : *out = a + b;
        return true;
        OP(SUBTRACT) : *out = a - b;
        return true;
        OP(MULTIPLY) : *out = a * b;
        return true;
        OP(DIVIDE) : *out = quotient(t, a, b);
        return true;
        OP(MODULUS_TRUNCATE) : *out = modulus(t, a, b);
        return true;
        OP(MODULUS_FLOOR) : *out = modulus_floor_of(t, a, b);
        return true;
        OP(MAX) : *out = below(t, b, a) ? a : b;
        return true;
        OP(MIN) : *out = below(t, a, b) ? a : b;
        return true;
        OP(MEAN) : *out = mean(t, a, b);
        return true;
        OP(DIFFERENCE_SQUARE) : *out = (a - b) * (a - b);
        return true;
        OP(POW) : *out = power(t, a, b);
        return true;
    case DML_OPERATOR_ACTIVATION_RELU: *out = negative ? 0 : a; return true;
    case DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU: *out = negative ? a * b : a; return true;
    case DML_OPERATOR_ACTIVATION_RELU_GRAD: *out = negative || a == 0 ? 0 : b; return true;
    default: return false;
    }
}

bool ref_element_wise_integer(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const uint64_t *x,
                              ref_result *out)
{
    const integers t = { ref_dtype_is_signed(dtype), 8 * ref_dtype_size(dtype) };
    uint64_t value = 0;
    if (op->Type == DML_OPERATOR_ELEMENT_WISE_CONSTANT_POW) {
        *out = constant_power(t, x[0], DESC(CONSTANT_POW)->Exponent);
        return true;
    }
    const bool found = integer_arithmetic(op, t, x[0], x[1], &value) || integer_bits(op, t, x[0], x[1], &value) ||
                       integer_bounds(op, t, dtype, x, &value);
    *out = ref_result_bits(value);
    return found;
}
