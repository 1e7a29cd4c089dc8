/* SPDX-License-Identifier: Apache-2.0 */
/* ref_scalar.c - element types: their sizes, and the conversions that the documents require.  C has no type for
 * FLOAT16; its values are searched by what they mean, (-1)^s * 2^(e-15) * 1.m, without bit tricks. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

#define HALF_INFINITY 0x7c00u
#define HALF_NAN 0x7e00u

uint32_t ref_dtype_size(DML_TENSOR_DATA_TYPE dtype)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_UINT4:
    case DML_TENSOR_DATA_TYPE_INT4: /* half of it */
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_INT8: return 1;
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_UINT16:
    case DML_TENSOR_DATA_TYPE_INT16: return 2;
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_UINT32:
    case DML_TENSOR_DATA_TYPE_INT32: return 4;
    case DML_TENSOR_DATA_TYPE_FLOAT64:
    case DML_TENSOR_DATA_TYPE_UINT64:
    case DML_TENSOR_DATA_TYPE_INT64: return 8;
    default: return 0;
    }
}

uint64_t ref_dtype_bytes(DML_TENSOR_DATA_TYPE dtype, uint64_t elements)
{
    const bool halves = dtype == DML_TENSOR_DATA_TYPE_UINT4 || dtype == DML_TENSOR_DATA_TYPE_INT4;
    return halves ? (elements + 1) / 2 : elements * ref_dtype_size(dtype);
}

bool ref_dtype_is_float(DML_TENSOR_DATA_TYPE dtype)
{
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT16 || dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ||
           dtype == DML_TENSOR_DATA_TYPE_FLOAT64;
}

/* A NaN has all exponent bits set and a mantissa that is not 0: without its sign it is greater than infinity's bits. */
bool ref_is_nan(DML_TENSOR_DATA_TYPE dtype, uint64_t bits)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: return (bits & 0x7fffu) > 0x7c00u;
    case DML_TENSOR_DATA_TYPE_FLOAT32: return (bits & 0x7fffffffu) > 0x7f800000u;
    case DML_TENSOR_DATA_TYPE_FLOAT64: return (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
    default: return false;
    }
}

uint64_t ref_scalar_bits(DML_TENSOR_DATA_TYPE dtype, const DML_SCALAR_UNION *scalar)
{
    uint64_t bits = 0;
    memcpy(&bits, scalar->Bytes, ref_dtype_size(dtype));
    return bits;
}

float ref_float_of_half(uint16_t half)
{
    const int exponent = (half >> 10) & 31;
    const int mantissa = half & 1023;
    const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31)
        return mantissa != 0 ? nanf("") : (float)(sign * HUGE_VAL);
    if (exponent == 0)
        return (float)(sign * ldexp(mantissa, -24));
    return (float)(sign * ldexp(1024 + mantissa, exponent - 25));
}

/* The value of a positive f16's bits, with 2^16 for infinity: the next f16 would lie there, so the midpoint below it
 * decides between the largest f16 and infinity. */
static double half_value(uint16_t half)
{
    return half == HALF_INFINITY ? 65536.0 : (double)ref_float_of_half(half);
}

uint16_t ref_half_of_double(double value)
{
    const double magnitude = fabs(value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t below = 0;              /* the largest f16 not above magnitude */
    uint16_t above = HALF_INFINITY;
    if (isnan(value))
        return sign | HALF_NAN;
    if (magnitude >= half_value(HALF_INFINITY))
        return sign | HALF_INFINITY;
    while (above - below > 1) {
        const uint16_t middle = (uint16_t)((below + above) / 2);
        if (half_value(middle) <= magnitude)
            below = middle;
        else
            above = middle;
    }
    /* The differences are exact where they are close, because then neither number is above twice the other. */
    const double down = magnitude - half_value(below);
    const double up = half_value(above) - magnitude;
    if (down < up || (down == up && below % 2 == 0))
        return sign | below;
    return sign | above;
}

uint16_t ref_half_of_float(float value)
{
    return ref_half_of_double((double)value);
}

static uint64_t integer_of_float(double value, double lowest, double highest_plus_1, uint64_t lowest_bits,
                                 uint64_t highest_bits)
{
    if (isnan(value))
        return 0;
    value = trunc(value);
    if (value <= lowest)
        return lowest_bits;
    if (value >= highest_plus_1)
        return highest_bits;
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

uint64_t ref_element_of_float(DML_TENSOR_DATA_TYPE dtype, float value)
{
    const unsigned width = 8 * ref_dtype_size(dtype);
    const double wide = (double)value;
    uint64_t bits = 0;
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: return ref_half_of_float(value);
    case DML_TENSOR_DATA_TYPE_FLOAT32: memcpy(&bits, &value, sizeof value); return bits;
    case DML_TENSOR_DATA_TYPE_FLOAT64: memcpy(&bits, &wide, sizeof wide); return bits;
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_UINT16:
    case DML_TENSOR_DATA_TYPE_UINT32:
    case DML_TENSOR_DATA_TYPE_UINT64:
        return integer_of_float(wide, 0.0, ldexp(1.0, (int)width), 0, UINT64_MAX >> (64 - width));
    default:
        return integer_of_float(wide, -ldexp(1.0, (int)width - 1), ldexp(1.0, (int)width - 1),
                                UINT64_MAX << (width - 1), UINT64_MAX >> (65 - width));
    }
}
