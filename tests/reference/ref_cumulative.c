/* SPDX-License-Identifier: Apache-2.0 */
/* ref_cumulative.c - CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT, literally: for each line along the axis, one element
 * after the other in the direction.  FLOAT16 is accumulated in float, and each output rounded. */
#include <string.h>

#include "tests/reference/reference.h"

static float float_of(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float f;
    memcpy(&f, &word, 4);
    return f;
}

static uint64_t bits_of_float(float f)
{
    uint32_t word;
    memcpy(&word, &f, 4);
    return word;
}

static uint64_t step_double(bool product, uint64_t a, uint64_t b)
{
    double x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    x = product ? x * y : x + y;
    memcpy(&a, &x, 8);
    return a;
}

/* The running value, as bits of float for FLOAT16. */
static uint64_t step(DML_TENSOR_DATA_TYPE type, bool product, uint64_t total, uint64_t x)
{
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64: return step_double(product, total, x);
    case DML_TENSOR_DATA_TYPE_FLOAT16: x = bits_of_float(ref_float_of_half((uint16_t)x)); break;
    case DML_TENSOR_DATA_TYPE_FLOAT32: break;
    default: return product ? total * x : total + x;
    }
    const float a = float_of(total), b = float_of(x);
    return bits_of_float(product ? a * b : a + b);
}

static uint64_t start(DML_TENSOR_DATA_TYPE type, bool product)
{
    if (!product)
        return 0;
    return type == DML_TENSOR_DATA_TYPE_FLOAT64   ? 0x3ff0000000000000u
           : type == DML_TENSOR_DATA_TYPE_FLOAT32 ? 0x3f800000u
           : type == DML_TENSOR_DATA_TYPE_FLOAT16 ? 0x3f800000u
                                                  : 1;
}

void ref_cumulative(const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC *desc, bool product, const void *input, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    const uint32_t size = in.sizes[desc->Axis];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&out, e, at);
        if (at[desc->Axis] != 0) /* the whole line is done at its first element */
            continue;
        uint64_t total = start(in.dtype, product);
        for (uint32_t i = 0; i < size; i++) {
            at[desc->Axis] = desc->AxisDirection == DML_AXIS_DIRECTION_DECREASING ? size - 1 - i : i;
            const uint64_t before = total;
            total = step(in.dtype, product, total, ref_get(&in, input, at));
            const uint64_t bits = desc->HasExclusiveSum ? before : total;
            const bool half = in.dtype == DML_TENSOR_DATA_TYPE_FLOAT16;
            ref_set(&out, output, at, half ? ref_half_of_float(float_of(bits)) : bits);
        }
    }
}
