/* SPDX-License-Identifier: Apache-2.0 */
/* ref_diagonal_matrix1.c - DIAGONAL_MATRIX1:
 *     topX = coordinate.x - coordinate.y
 *     useValue = (DiagonalFillEnd >= DiagonalFillBegin) ^ (topX >= DiagonalFillBegin) ^ (topX < DiagonalFillEnd)
 *     OutputTensor[coordinate] = if useValue then Value
 *                                else if InputTensor not null then InputTensor[coordinate]
 *                                else 0
 * with x the last and y the last but one coordinate; topX in 64 bits, where it can't overflow. */
#include <stddef.h>

#include "tests/reference/reference.h"

void ref_diagonal_matrix1(const DML_DIAGONAL_MATRIX1_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const ref_tensor in = ref_tensor_of(desc->InputTensor != NULL ? desc->InputTensor : desc->OutputTensor);
    const uint64_t value = ref_scalar_bits(desc->ValueDataType, &desc->Value);
    const int64_t begin = desc->DiagonalFillBegin;
    const int64_t end = desc->DiagonalFillEnd;
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&out, e, c);
        const int64_t top_x = (int64_t)c[out.rank - 1] - (int64_t)c[out.rank - 2];
        const bool use_value = (end >= begin) ^ (top_x >= begin) ^ (top_x < end);
        uint64_t element = 0;
        if (use_value)
            element = value;
        else if (desc->InputTensor != NULL)
            element = ref_load(&in, input, ref_tensor_offset(&in, c));
        ref_store(&out, output, ref_tensor_offset(&out, c), element);
    }
}
