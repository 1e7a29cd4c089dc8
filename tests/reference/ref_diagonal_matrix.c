/* SPDX-License-Identifier: Apache-2.0 */
/* ref_diagonal_matrix.c - DIAGONAL_MATRIX:
 *     OutputTensor[coordinate] = if (coordinate.y + Offset == coordinate.x) then Value else 0
 * with x the last and y the last but one coordinate; the sum in 64 bits, where it can't overflow. */
#include "tests/reference/reference.h"

void ref_diagonal_matrix(const DML_DIAGONAL_MATRIX_OPERATOR_DESC *desc, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const uint64_t value = ref_element_of_float(out.dtype, desc->Value);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&out, e, c);
        const int64_t x = c[out.rank - 1];
        const int64_t y = c[out.rank - 2];
        ref_store(&out, output, ref_tensor_offset(&out, c), y + desc->Offset == x ? value : 0);
    }
}
