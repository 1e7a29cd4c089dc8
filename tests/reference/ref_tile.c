/* SPDX-License-Identifier: Apache-2.0 */
/* ref_tile.c - TILE: the input again and again, Repeats[d] times in dimension d. */
#include "tests/reference/reference.h"

void ref_tile(const DML_TILE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8], from[8];
        ref_tensor_coordinates(&out, e, c);
        for (uint32_t d = 0; d < in.rank; d++)
            from[d] = c[d] % in.sizes[d];
        ref_set(&out, outputs[0], c, ref_get(&in, inputs[0], from));
    }
}
