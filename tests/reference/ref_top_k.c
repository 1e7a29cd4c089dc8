/* SPDX-License-Identifier: Apache-2.0 */
/* ref_top_k.c - TOP_K and TOP_K1, literally: the best element that was not taken yet, K times. */
#include <stdlib.h>

#include "tests/reference/reference.h"

/* Whether a comes before b by value: a is greater, or less; NaNs are above all numbers. */
static bool beats(DML_TENSOR_DATA_TYPE dtype, bool greatest, uint64_t a, uint64_t b)
{
    const uint64_t x = greatest ? a : b, y = greatest ? b : a; /* x > y? */
    const uint32_t shift = 64 - 8 * ref_dtype_size(dtype);
    if (ref_dtype_is_float(dtype)) {
        const bool x_nan = ref_is_nan(dtype, x), y_nan = ref_is_nan(dtype, y);
        return x_nan ? !y_nan : !y_nan && ref_real(dtype, x) > ref_real(dtype, y);
    }
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_INT8:
    case DML_TENSOR_DATA_TYPE_INT16:
    case DML_TENSOR_DATA_TYPE_INT32:
    case DML_TENSOR_DATA_TYPE_INT64: return (int64_t)(x << shift) > (int64_t)(y << shift);
    default: return x << shift > y << shift;
    }
}

void ref_top_k(const DML_TOP_K1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), values = ref_tensor_of(desc->OutputValueTensor),
                     indices = ref_tensor_of(desc->OutputIndexTensor);
    const bool greatest = desc->AxisDirection == DML_AXIS_DIRECTION_DECREASING;
    const uint32_t length = in.sizes[desc->Axis];
    ref_tensor rows = in;
    uint32_t at[8];
    bool *taken = malloc(length);
    rows.sizes[desc->Axis] = 1;
    for (uint64_t e = 0; taken != NULL && e < ref_tensor_elements(&rows); e++) {
        ref_tensor_coordinates(&rows, e, at);
        for (uint32_t k = 0; k < length; k++)
            taken[k] = false;
        for (uint32_t place = 0; place < desc->K; place++) {
            uint32_t best = length;
            uint64_t bits = 0;
            for (at[desc->Axis] = 0; at[desc->Axis] < length; at[desc->Axis]++) {
                const uint64_t own = ref_get(&in, inputs[0], at);
                if (!taken[at[desc->Axis]] && (best == length || beats(in.dtype, greatest, own, bits))) {
                    best = at[desc->Axis];
                    bits = own;
                }
            }
            taken[best] = true;
            at[desc->Axis] = place;
            ref_set(&values, outputs[0], at, bits);
            ref_set(&indices, outputs[1], at, best);
        }
    }
    free(taken);
}
