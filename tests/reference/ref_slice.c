/* SPDX-License-Identifier: Apache-2.0 */
/* ref_slice.c - SLICE, SLICE1 and SLICE_GRAD.
 *     SLICE:      output[c] = input[Offsets + c * Strides], output sizes = Sizes
 *     SLICE1:     the same over a window of InputWindowSizes; where the stride is negative, from the window's last
 *     element
 *                 on backwards
 *     SLICE_GRAD: zeros, then output[where SLICE1 reads for c] = input[c] */
#include "tests/reference/reference.h"

void ref_slice(const DML_SLICE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8], from[8];
        ref_tensor_coordinates(&out, e, c);
        for (uint32_t d = 0; d < in.rank; d++)
            from[d] = desc->Offsets[d] + c[d] * desc->Strides[d];
        ref_set(&out, outputs[0], c, ref_get(&in, inputs[0], from));
    }
}

/* The coordinate that element i of a window's slice has. */
static uint32_t window_at(uint32_t offset, uint32_t size, int32_t stride, uint32_t i)
{
    int64_t at = stride > 0 ? offset : (int64_t)offset + size - 1;
    for (; i > 0; i--)
        at += stride;
    return (uint32_t)at;
}

void ref_slice1(const DML_SLICE1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8], from[8];
        ref_tensor_coordinates(&out, e, c);
        for (uint32_t d = 0; d < in.rank; d++)
            from[d] =
                window_at(desc->InputWindowOffsets[d], desc->InputWindowSizes[d], desc->InputWindowStrides[d], c[d]);
        ref_set(&out, outputs[0], c, ref_get(&in, inputs[0], from));
    }
}

void ref_slice_grad(const DML_SLICE_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputGradientTensor), out = ref_tensor_of(desc->OutputGradientTensor);
    uint32_t c[8], to[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, c);
        ref_set(&out, outputs[0], c, 0);
    }
    for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
        ref_tensor_coordinates(&in, e, c);
        for (uint32_t d = 0; d < in.rank; d++)
            to[d] =
                window_at(desc->InputWindowOffsets[d], desc->InputWindowSizes[d], desc->InputWindowStrides[d], c[d]);
        ref_set(&out, outputs[0], to, ref_get(&in, inputs[0], c));
    }
}
