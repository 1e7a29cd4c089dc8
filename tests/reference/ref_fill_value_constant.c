/* SPDX-License-Identifier: Apache-2.0 */
/* ref_fill_value_constant.c - FILL_VALUE_CONSTANT:
 *     OutputTensor[coordinate] = Value */
#include "tests/reference/reference.h"

void ref_fill_value_constant(const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC *desc, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const uint64_t value = ref_scalar_bits(desc->ValueDataType, &desc->Value);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&out, e, c);
        ref_store(&out, output, ref_tensor_offset(&out, c), value);
    }
}
