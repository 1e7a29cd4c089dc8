/* SPDX-License-Identifier: Apache-2.0 */
/* ref_reduce.c - REDUCE, ARGMIN, ARGMAX and HARDMAX, literally: each output element reads its elements of the input one
 * by one.  Floating sums and products are in the documented order: element k in lane k mod 32 if the last dimension of
 * more than one element is reduced, otherwise in a single lane; blocks of 4096 elements; lanes fold by halves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

typedef struct values {
    ref_tensor in;
    const void *base;
    uint32_t axes, lanes;
    uint64_t count;
    uint32_t at[8]; /* of the output's element */
} values;

static values values_of(const DML_TENSOR_DESC *input, const void *base, uint32_t axis_count, const uint32_t *axes)
{
    values v = { .in = ref_tensor_of(input), .base = base, .lanes = 1, .count = 1 };
    for (uint32_t i = 0; i < axis_count; i++)
        v.axes |= 1u << axes[i];
    for (uint32_t d = 0; d < v.in.rank; d++) {
        if (v.in.sizes[d] > 1)
            v.lanes = (v.axes >> d & 1) != 0 ? 32 : 1;
        v.count *= (v.axes >> d & 1) != 0 ? v.in.sizes[d] : 1;
    }
    return v;
}

/* Element number k of those that belong to v->at, row-major over the axes. */
static uint64_t element(const values *v, uint64_t k)
{
    uint32_t at[8];
    for (uint32_t d = v->in.rank; d-- > 0;) {
        at[d] = v->at[d];
        if ((v->axes >> d & 1) == 0)
            continue;
        at[d] = (uint32_t)(k % v->in.sizes[d]);
        k /= v->in.sizes[d];
    }
    return ref_get(&v->in, v->base, at);
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

static double real(DML_TENSOR_DATA_TYPE dtype, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    double d;
    float f;
    if (dtype == DML_TENSOR_DATA_TYPE_FLOAT16)
        return ref_float_of_half((uint16_t)bits);
    memcpy(&f, &word, 4);
    memcpy(&d, &bits, 8);
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? f : d;
}

static uint64_t bits_of(DML_TENSOR_DATA_TYPE dtype, double x)
{
    const float f = (float)x;
    uint32_t word;
    uint64_t bits;
    memcpy(&word, &f, 4);
    memcpy(&bits, &x, 8);
    return dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? bits
           : dtype == DML_TENSOR_DATA_TYPE_FLOAT16 ? ref_half_of_float(f) : word;
}

/* One operation, rounded to the type of accumulation: double has more than twice the digits of float, so rounding twice
 * equals rounding once. */
static double rounded(const values *v, double x)
{
    return v->in.dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? x : (double)(float)x;
}

static double step(const values *v, DML_REDUCE_FUNCTION function, double a, double b)
{
    switch (function) {
    case DML_REDUCE_FUNCTION_MAX: return a > b || a != a ? a : b;
    case DML_REDUCE_FUNCTION_MIN: return a < b || a != a ? a : b;
    case DML_REDUCE_FUNCTION_MULTIPLY: return rounded(v, a * b);
    default: return rounded(v, a + b);
    }
}

static double start(DML_REDUCE_FUNCTION function)
{
    return function == DML_REDUCE_FUNCTION_MAX        ? -HUGE_VAL
           : function == DML_REDUCE_FUNCTION_MIN      ? HUGE_VAL
           : function == DML_REDUCE_FUNCTION_MULTIPLY ? 1
                                                      : 0;
}

static double block(const values *v, DML_REDUCE_FUNCTION function, uint64_t first, uint64_t end)
{
    double lane[32];
    for (uint32_t i = 0; i < v->lanes; i++)
        lane[i] = start(function);
    for (uint64_t k = first; k < end; k++) {
        double x = real(v->in.dtype, element(v, k));
        if (function == DML_REDUCE_FUNCTION_L1)
            x = fabs(x);
        if (function == DML_REDUCE_FUNCTION_L2 || function == DML_REDUCE_FUNCTION_SUM_SQUARE)
            x = rounded(v, x * x);
        lane[k % v->lanes] = step(v, function, lane[k % v->lanes], x);
    }
    for (uint32_t half = v->lanes / 2; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            lane[i] = step(v, function, lane[i], lane[i + half]);
    return lane[0];
}

static uint64_t reduce_real(const values *v, DML_REDUCE_FUNCTION function)
{
    double total = 0;
    for (uint64_t first = 0; first < v->count; first += 4096) {
        const double one = block(v, function, first, first + 4096 < v->count ? first + 4096 : v->count);
        total = first == 0 ? one : step(v, function, total, one);
    }
    if (function == DML_REDUCE_FUNCTION_AVERAGE)
        total = rounded(v, total / rounded(v, (double)v->count));
    if (function == DML_REDUCE_FUNCTION_L2)
        total = rounded(v, sqrt(total));
    return bits_of(v->in.dtype, total);
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

static bool is_signed(DML_TENSOR_DATA_TYPE t)
{
    return t == DML_TENSOR_DATA_TYPE_INT8 || t == DML_TENSOR_DATA_TYPE_INT16 || t == DML_TENSOR_DATA_TYPE_INT32 ||
           t == DML_TENSOR_DATA_TYPE_INT64;
}

/* The value in all 64 bits. */
static uint64_t widened(DML_TENSOR_DATA_TYPE t, uint64_t bits)
{
    const uint32_t shift = 64 - 8 * ref_dtype_size(t);
    const uint64_t sign = bits >> (63 - shift) & 1;
    bits = bits << shift >> shift;
    return is_signed(t) && sign != 0 && shift > 0 ? bits | ~(uint64_t)0 << (64 - shift) : bits;
}

static bool less(DML_TENSOR_DATA_TYPE t, uint64_t a, uint64_t b)
{
    return ref_dtype_is_float(t) ? real(t, a) < real(t, b)
           : is_signed(t)        ? (int64_t)widened(t, a) < (int64_t)widened(t, b)
                                 : widened(t, a) < widened(t, b);
}

static uint64_t reduce_integer(const values *v, DML_REDUCE_FUNCTION function)
{
    const DML_TENSOR_DATA_TYPE t = v->in.dtype;
    uint64_t total = function == DML_REDUCE_FUNCTION_MULTIPLY;
    for (uint64_t k = 0; k < v->count; k++) {
        const uint64_t bits = element(v, k), x = widened(t, bits);
        switch (function) {
        case DML_REDUCE_FUNCTION_MAX: total = k == 0 || less(t, total, bits) ? bits : total; break;
        case DML_REDUCE_FUNCTION_MIN: total = k == 0 || less(t, bits, total) ? bits : total; break;
        case DML_REDUCE_FUNCTION_MULTIPLY: total *= x; break;
        case DML_REDUCE_FUNCTION_SUM_SQUARE: total += x * x; break;
        case DML_REDUCE_FUNCTION_L1: total += is_signed(t) && (int64_t)x < 0 ? 0 - x : x; break;
        default: total += x; break;
        }
    }
    return total;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */

/* The first NaN, else the best one; of equal ones the first, or the last. */
static uint64_t best(const values *v, bool max, bool last)
{
    const DML_TENSOR_DATA_TYPE t = v->in.dtype;
    uint64_t found = 0;
    for (uint64_t k = 0; k < v->count; k++)
        if (ref_is_nan(t, element(v, k)))
            return k;
    for (uint64_t k = 1; k < v->count; k++) {
        const uint64_t x = element(v, found), y = element(v, k);
        const bool better = max ? less(t, x, y) : less(t, y, x), worse = max ? less(t, y, x) : less(t, x, y);
        if (better || (last && !worse))
            found = k;
    }
    return found;
}

void ref_reduce(const DML_REDUCE_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    values v = values_of(desc->InputTensor, input, desc->AxisCount, desc->Axes);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, v.at);
        uint64_t bits;
        if (desc->Function == DML_REDUCE_FUNCTION_ARGMAX || desc->Function == DML_REDUCE_FUNCTION_ARGMIN)
            bits = best(&v, desc->Function == DML_REDUCE_FUNCTION_ARGMAX, false);
        else
            bits =
                ref_dtype_is_float(v.in.dtype) ? reduce_real(&v, desc->Function) : reduce_integer(&v, desc->Function);
        ref_set(&out, output, v.at, bits);
    }
}

void ref_arg(const DML_ARGMAX_OPERATOR_DESC *desc, bool max, const void *input, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    values v = values_of(desc->InputTensor, input, desc->AxisCount, desc->Axes);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, v.at);
        ref_set(&out, output, v.at, best(&v, max, desc->AxisDirection == DML_AXIS_DIRECTION_DECREASING));
    }
}

void ref_hardmax(const DML_ACTIVATION_HARDMAX1_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    values v = values_of(desc->InputTensor, input, desc->AxisCount, desc->Axes);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t at[8];
        uint64_t number = 0;
        ref_tensor_coordinates(&out, e, at);
        memcpy(v.at, at, sizeof at);
        for (uint32_t d = 0; d < out.rank; d++)
            if ((v.axes >> d & 1) != 0)
                number = number * out.sizes[d] + at[d];
        ref_set(&out, output, at, bits_of(out.dtype, best(&v, true, false) == number));
    }
}
