/* SPDX-License-Identifier: Apache-2.0 */
/* ref_lp_normalization.c - LP_NORMALIZATION by the book: for each line along the axis the sum of |x|^P, Epsilon added,
 * the root, then each element over it.  Every operation rounds to float (FLOAT64: double). */
#include <math.h>

#include "tests/reference/reference.h"

typedef struct line {
    ref_tensor in;
    const void *base;
    uint32_t axis, p, at[8];
} line;

static double element(line *v, uint64_t k)
{
    v->at[v->axis] = (uint32_t)k;
    return ref_real(v->in.dtype, ref_get(&v->in, v->base, v->at));
}

static double power(void *user, uint64_t k)
{
    line *v = user;
    const double x = element(v, k);
    return v->p == 1 ? fabs(x) : ref_rounded(v->in.dtype, x * x);
}

void ref_lp_normalization(const DML_LP_NORMALIZATION_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const DML_TENSOR_DATA_TYPE type = out.dtype;
    line v = { .in = ref_tensor_of(desc->InputTensor), .base = input, .axis = desc->Axis, .p = desc->P };
    const uint32_t lanes = ref_sum_lanes(&v.in, 1u << desc->Axis), length = v.in.sizes[desc->Axis];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, v.at);
        if (v.at[v.axis] != 0)
            continue;
        double norm = ref_rounded(type, ref_sum(type, lanes, length, power, &v) + (double)desc->Epsilon);
        if (desc->P == 2)
            norm = ref_rounded(type, sqrt(norm));
        for (uint32_t k = 0; k < length; k++) {
            const double y = ref_rounded(type, element(&v, k) / norm);
            ref_set(&out, output, v.at, ref_real_bits(type, y));
        }
    }
}
