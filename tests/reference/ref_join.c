/* SPDX-License-Identifier: Apache-2.0 */
/* ref_join.c - JOIN: copies each input after the previous one, along Axis; SPLIT: fills each output from where the
 * previous one ended. */
#include "tests/reference/reference.h"

void ref_join(const DML_JOIN_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    uint32_t start = 0;
    for (uint32_t i = 0; i < desc->InputCount; i++) {
        const ref_tensor in = ref_tensor_of(&desc->InputTensors[i]);
        for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
            uint32_t c[8];
            ref_tensor_coordinates(&in, e, c);
            const uint64_t element = ref_get(&in, inputs[i], c);
            c[desc->Axis] += start;
            ref_set(&out, outputs[0], c, element);
        }
        start += in.sizes[desc->Axis];
    }
}

void ref_split(const DML_SPLIT_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor);
    uint32_t start = 0;
    for (uint32_t i = 0; i < desc->OutputCount; i++) {
        const ref_tensor out = ref_tensor_of(&desc->OutputTensors[i]);
        for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
            uint32_t c[8];
            ref_tensor_coordinates(&out, e, c);
            const uint64_t to = ref_tensor_offset(&out, c);
            c[desc->Axis] += start;
            ref_store(&out, outputs[i], to, ref_get(&in, inputs[0], c));
        }
        start += out.sizes[desc->Axis];
    }
}
