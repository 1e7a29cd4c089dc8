/* SPDX-License-Identifier: Apache-2.0 */
/* ref_fill_value_sequence.c - FILL_VALUE_SEQUENCE:
 *     OutputTensor[elementIndex] = ValueStart + elementIndex * ValueDelta
 * with elementIndex the row-major index among the logical elements.  How it is rounded, which the document leaves
 * open: integers modulo 2^N; FLOAT32 and FLOAT16 one fused multiply and add in FLOAT32, FLOAT16 then rounded;
 * FLOAT64 product, then sum. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

static float float_of_bits(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t element_float32(uint64_t start, uint64_t delta, uint64_t e)
{
    const float value = fmaf((float)e, float_of_bits(delta), float_of_bits(start));
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t element_float16(uint64_t start, uint64_t delta, uint64_t e)
{
    const float first = ref_float_of_half((uint16_t)start);
    const float step = ref_float_of_half((uint16_t)delta);
    return ref_half_of_float(fmaf((float)e, step, first));
}

static uint64_t element_float64(uint64_t start, uint64_t delta, uint64_t e)
{
    double first, step;
    uint64_t bits;
    memcpy(&first, &start, sizeof first);
    memcpy(&step, &delta, sizeof step);
    const double product = (double)e * step;
    const double sum = first + product;
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}

void ref_fill_value_sequence(const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC *desc, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const uint64_t start = ref_scalar_bits(desc->ValueDataType, &desc->ValueStart);
    const uint64_t delta = ref_scalar_bits(desc->ValueDataType, &desc->ValueDelta);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint64_t value;
        uint32_t c[8];
        switch (out.dtype) {
        case DML_TENSOR_DATA_TYPE_FLOAT16: value = element_float16(start, delta, e); break;
        case DML_TENSOR_DATA_TYPE_FLOAT32: value = element_float32(start, delta, e); break;
        case DML_TENSOR_DATA_TYPE_FLOAT64: value = element_float64(start, delta, e); break;
        default: value = start + e * delta; break; /* the store keeps the low bits: modulo 2^N */
        }
        ref_tensor_coordinates(&out, e, c);
        ref_store(&out, output, ref_tensor_offset(&out, c), value);
    }
}
