/* SPDX-License-Identifier: Apache-2.0 */
/* ref_quantize.c - QUANTIZE and DEQUANTIZE by the book. */
#include <math.h>

#include "tests/reference/reference.h"

/* An integer of 8 or 4 bits. */
static double whole(const ref_tensor *t, uint64_t bits)
{
    const int64_t x = (int64_t)bits;
    switch (t->dtype) {
    case DML_TENSOR_DATA_TYPE_INT8: return (double)(x > 127 ? x - 256 : x);
    case DML_TENSOR_DATA_TYPE_INT4: return (double)(x > 7 ? x - 16 : x);
    default: return (double)x;
    }
}

/* The element for the block that the element at these coordinates of `like` is in. */
static uint64_t of_block(const ref_tensor *t, const void *base, const ref_tensor *like, const uint32_t at[8])
{
    uint32_t of[8] = { 0 };
    for (uint32_t d = 0; d < t->rank; d++)
        of[d] = at[d] / (like->sizes[d] / t->sizes[d]);
    return ref_get(t, base, of);
}

static double zero_of(const DML_TENSOR_DESC *tensors, uint32_t count, ref_inputs inputs, const ref_tensor *like,
                      const uint32_t at[8])
{
    if (count < 2)
        return 0;
    const ref_tensor zero = ref_tensor_of(&tensors[1]);
    return whole(&zero, of_block(&zero, inputs[2], like, at));
}

void ref_quantize(const DML_QUANTIZE_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor),
                     scales = ref_tensor_of(&desc->QuantizationTensors[0]);
    const bool is_signed = out.dtype == DML_TENSOR_DATA_TYPE_INT8 || out.dtype == DML_TENSOR_DATA_TYPE_INT4;
    const bool halves = out.dtype == DML_TENSOR_DATA_TYPE_INT4 || out.dtype == DML_TENSOR_DATA_TYPE_UINT4;
    const double steps = halves ? 16 : 256, low = is_signed ? -steps / 2 : 0, high = low + steps - 1;
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const double x = ref_real(in.dtype, ref_get(&in, inputs[0], at)),
                     scale = ref_real(scales.dtype, of_block(&scales, inputs[1], &in, at));
        const double near = rint(ref_rounded(in.dtype, x / scale));
        const double sum = (isnan(near) ? 0 : near) +
                           zero_of(desc->QuantizationTensors, desc->QuantizationTensorCount, inputs, &in, at);
        ref_set(&out, output, at, (uint64_t)(int64_t)(sum < low ? low : sum > high ? high : sum));
    }
    if (halves && ref_tensor_span(&out) % 2 != 0) /* the rest of the last byte */
        ref_store(&out, output, ref_tensor_span(&out), 0);
}

void ref_dequantize(const DML_DEQUANTIZE_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor),
                     scales = ref_tensor_of(&desc->QuantizationTensors[0]);
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const double x = whole(&in, ref_get(&in, inputs[0], at)),
                     scale = ref_real(scales.dtype, of_block(&scales, inputs[1], &in, at)),
                     zero = zero_of(desc->QuantizationTensors, desc->QuantizationTensorCount, inputs, &in, at);
        ref_set(&out, output, at, ref_real_bits(out.dtype, ref_rounded(out.dtype, (x - zero) * scale)));
    }
}
