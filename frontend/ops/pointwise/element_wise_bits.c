/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_bits.c - ELEMENT_WISE operators on the bits of unsigned integers. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define ROW(symbol, NAME, LEVEL, text, value)                                \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, TYPES_UNSIGNED) }; \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, 0)
#define BITS(symbol, NAME, LEVEL, text, op)                                  \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), ATensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), BTensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
    };                                                                       \
    ROW(symbol, NAME, LEVEL, text, op2(e, op, x[0], x[1]))

BITS(element_wise_bit_and, ELEMENT_WISE_BIT_AND, 3_0, "a & b", IR_AND);
BITS(element_wise_bit_or, ELEMENT_WISE_BIT_OR, 3_0, "a | b", IR_OR);
BITS(element_wise_bit_xor, ELEMENT_WISE_BIT_XOR, 3_0, "a ^ b", IR_XOR);
/* Shifts by the width or more give 0. */
BITS(element_wise_bit_shift_left, ELEMENT_WISE_BIT_SHIFT_LEFT, 2_1, "a << b", IR_SHL);
BITS(element_wise_bit_shift_right, ELEMENT_WISE_BIT_SHIFT_RIGHT, 2_1, "a >> b", IR_SHR);

static const op_field element_wise_bit_not_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_BIT_NOT), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_BIT_NOT), OutputTensor, OP_OUTPUT, 0),
};
ROW(element_wise_bit_not, ELEMENT_WISE_BIT_NOT, 3_0, "~x", op1(e, IR_NOT, x[0]));

/* --- BIT_COUNT: the output has a type of its own ----------------------------------------------------------------- */

static const op_field element_wise_bit_count_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_BIT_COUNT), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_BIT_COUNT), OutputTensor, OP_OUTPUT, 0),
};
static const op_support element_wise_bit_count_support[] = {
    POINTWISE_SUPPORT(NULL, 3_0, TYPES_UNSIGNED),
    POINTWISE_SUPPORT("OutputTensor", 3_0, OP_TYPES(UINT32) | OP_TYPES(UINT8)),
};
/* clang-format on */
POINTWISE_ELEMENT(element_wise_bit_count, ELEMENT_WISE_BIT_COUNT, op1(e, IR_CTPOP, x[0]))
POINTWISE_TYPED_ROW(element_wise_bit_count, ELEMENT_WISE_BIT_COUNT, 3_0, "how many bits of x are 1",
                    opjit_fe_validate_sizes, opjit_fe_infer_truth, 0);
