/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c - CAST: converts each element to the output's type.  Floats to integers: toward zero, saturating, NaN to 0;
 * integers: modulo 2^N; anything to floats: rounded once, to nearest even. */
#include "frontend/ops/pointwise.h"

static const op_field cast_fields[] = {
    OP_FIELD(POINTWISE_DESC(CAST), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(CAST), OutputTensor, OP_OUTPUT, 0),
};
static const op_support cast_support[] = { POINTWISE_SUPPORT(NULL, 1_0, OP_TYPES_ALL) };

POINTWISE_ELEMENT(cast, CAST, x[0]) /* casts whatever differs from the output's type */
POINTWISE_TYPED_ROW(cast, CAST, 1_0, "x in the output's type", opjit_fe_validate_sizes, opjit_fe_infer_sizes,
                    OP_KEEPS_BITS);
