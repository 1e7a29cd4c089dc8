/* SPDX-License-Identifier: Apache-2.0 */
/* ref_depth_space.c - SPACE_TO_DEPTH1 and DEPTH_TO_SPACE1; the forms without Order are DEPTH_COLUMN_ROW.
 *     out[n, (by*B + bx)*C + c, y, x] = in[n, c, y*B + by, x*B + bx]        DEPTH_COLUMN_ROW
 *     out[n, (c*B + by)*B + bx, y, x] = in[n, c, y*B + by, x*B + bx]        COLUMN_ROW_DEPTH
 * and DEPTH_TO_SPACE the inverse: one walk over space, copying one way or the other. */
#include "tests/reference/reference.h"

static void walk(const ref_tensor *space, uint32_t b, DML_DEPTH_SPACE_ORDER order, const ref_tensor *depth,
                 const void *from, void *to, bool to_depth)
{
    for (uint64_t e = 0; e < ref_tensor_elements(space); e++) {
        uint32_t s[8];
        ref_tensor_coordinates(space, e, s);
        const uint32_t c = s[1], y = s[2] / b, by = s[2] % b, x = s[3] / b, bx = s[3] % b;
        const uint32_t k = order == DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH ? (c * b + by) * b + bx
                                                                           : (by * b + bx) * space->sizes[1] + c;
        const uint32_t d[8] = { s[0], k, y, x };
        if (to_depth)
            ref_set(depth, to, d, ref_get(space, from, s));
        else
            ref_set(space, to, s, ref_get(depth, from, d));
    }
}

void ref_space_to_depth1(const DML_SPACE_TO_DEPTH1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    walk(&in, desc->BlockSize, desc->Order, &out, inputs[0], outputs[0], true);
}

void ref_depth_to_space1(const DML_DEPTH_TO_SPACE1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    walk(&out, desc->BlockSize, desc->Order, &in, inputs[0], outputs[0], false);
}
