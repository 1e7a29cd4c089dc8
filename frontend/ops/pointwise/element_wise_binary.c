/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_binary.c - ELEMENT_WISE arithmetic of two inputs of one type: sums, quotients, remainders, extremes.
 * Powers are in element_wise_pow.c, ATAN_YX in element_wise_math.c, comparisons in element_wise_compare.c. */
#include "frontend/ops/pointwise.h"

#include <math.h>

/* clang-format off */
#define BINARY_FIELDS(symbol, NAME)                                          \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), ATensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), BTensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
    };
#define ROW_OF(symbol, NAME, LEVEL, types, text)                             \
    BINARY_FIELDS(symbol, NAME)                                              \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, types) }; \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, 0)
#define BINARY(symbol, NAME, LEVEL, types, text, value)                      \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    ROW_OF(symbol, NAME, LEVEL, types, text)

BINARY(element_wise_subtract, ELEMENT_WISE_SUBTRACT, 1_0, TYPES_NUMBER, "a - b", op2(e, IR_SUB, x[0], x[1]));
BINARY(element_wise_multiply, ELEMENT_WISE_MULTIPLY, 1_0, TYPES_NUMBER, "a * b", op2(e, IR_MUL, x[0], x[1]));
BINARY(element_wise_divide, ELEMENT_WISE_DIVIDE, 1_0, TYPES_NUMBER, "a / b", op2(e, IR_DIV, x[0], x[1]));
BINARY(element_wise_max, ELEMENT_WISE_MAX, 1_0, TYPES_NUMBER, "a > b or a is NaN ? a : b", op2(e, IR_MAX, x[0], x[1]));
BINARY(element_wise_min, ELEMENT_WISE_MIN, 1_0, TYPES_NUMBER, "a < b or a is NaN ? a : b", op2(e, IR_MIN, x[0], x[1]));
BINARY(element_wise_modulus_truncate, ELEMENT_WISE_MODULUS_TRUNCATE, 2_1, TYPES_NUMBER, "a - b * trunc(a / b)",
       op2(e, IR_REM, x[0], x[1]));
/* clang-format on */

/* --- ADD ---------------------------------------------------------------------------------------------------------- */

/* With masks_absorb, -inf of a mask decides alone: the other term is not read. */
static ir_ref element_wise_add_element(const op_element *e, const ir_ref *x)
{
    ir_ref sum = op2(e, IR_ADD, x[0], x[1]);

    for (uint32_t i = 0; i < 2 && ir_is_float(e->type); i++) {
        const ir_ref lowest = opjit_fe_number(e, -INFINITY);
        if ((e->masks >> i & 1) != 0)
            sum = choose(e, op2(e, IR_EQ, x[i], lowest), lowest, sum);
    }
    return sum;
}

ROW_OF(element_wise_add, ELEMENT_WISE_ADD, 1_0, TYPES_NUMBER, "a + b");

/* --- MODULUS_FLOOR ------------------------------------------------------------------------------------------------ */

/* The truncating remainder, plus the divisor where their signs differ.  A floating zero takes the divisor's sign,
 * too. */
static ir_ref element_wise_modulus_floor_element(const op_element *e, const ir_ref *x)
{
    const ir_ref rest = op2(e, IR_REM, x[0], x[1]), nothing = zero(e);
    const ir_ref negative = op2(e, IR_LT, x[1], nothing);
    const ir_ref signs = op2(e, IR_XOR, op2(e, IR_LT, rest, nothing), negative);
    const ir_ref moves = op2(e, IR_AND, op2(e, IR_NE, rest, nothing), signs);
    const ir_ref value = choose(e, moves, op2(e, IR_ADD, rest, x[1]), rest);

    if (!ir_is_float(e->type))
        return value;
    return choose(e, op2(e, IR_EQ, rest, nothing), choose(e, negative, op1(e, IR_NEG, nothing), nothing), value);
}

ROW_OF(element_wise_modulus_floor, ELEMENT_WISE_MODULUS_FLOOR, 2_1, TYPES_NUMBER, "a - b * floor(a / b)");

/* --- MEAN --------------------------------------------------------------------------------------------------------- */

/* Integers: half of the exact sum, toward zero.  The bits that both have, plus half of those in which they differ, is
 * the mean toward minus infinity, without a wider type. */
static ir_ref mean_of_integers(const op_element *e, ir_ref a, ir_ref b)
{
    const ir_ref differ = op2(e, IR_XOR, a, b);
    const ir_ref below = op2(e, IR_ADD, op2(e, IR_AND, a, b), op2(e, IR_SHR, differ, one(e)));
    const ir_ref half = op2(e, IR_AND, differ, one(e));

    if (!ir_is_signed(e->type))
        return below;
    return op2(e, IR_ADD, below, choose(e, op2(e, IR_LT, below, zero(e)), half, zero(e)));
}

static ir_ref element_wise_mean_element(const op_element *e, const ir_ref *x)
{
    if (!ir_is_float(e->type))
        return mean_of_integers(e, x[0], x[1]);
    return op2(e, IR_DIV, op2(e, IR_ADD, x[0], x[1]), opjit_fe_whole(e, e->type, 2));
}

#define TYPES_MEAN (OP_TYPES_FLOAT | OP_TYPES(INT32) | OP_TYPES(UINT32))
/* clang-format off */
BINARY_FIELDS(element_wise_mean, ELEMENT_WISE_MEAN)
static const op_support element_wise_mean_support[] = {
    { NULL, 0, 1, 8, TYPES_MEAN | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 1, 8, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_2_1, 1, 8, TYPES_MEAN },
};
/* clang-format on */
POINTWISE_ROW(element_wise_mean, ELEMENT_WISE_MEAN, 1_0, "(a + b) / 2", opjit_fe_validate_pointwise, 0);

/* --- DIFFERENCE_SQUARE -------------------------------------------------------------------------------------------- */

static ir_ref element_wise_difference_square_element(const op_element *e, const ir_ref *x)
{
    const ir_ref difference = op2(e, IR_SUB, x[0], x[1]);
    return op2(e, IR_MUL, difference, difference);
}

ROW_OF(element_wise_difference_square, ELEMENT_WISE_DIFFERENCE_SQUARE, 3_1,
       OP_TYPES_FLOAT | OP_TYPES(INT32) | OP_TYPES(UINT32), "(a - b)^2");

/* --- ADD1 --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_field element_wise_add1_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ADD1), ATensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ADD1), BTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ADD1), OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ADD1), FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
/* clang-format on */
static const op_support element_wise_add1_support[] = { POINTWISE_SUPPORT(NULL, 2_0, OP_TYPES_FLOAT) };
POINTWISE_ELEMENT(element_wise_add1, ELEMENT_WISE_ADD1,
                  opjit_fe_activate(e, d->FusedActivation, op2(e, IR_ADD, x[0], x[1])))
POINTWISE_ROW(element_wise_add1, ELEMENT_WISE_ADD1, 2_0, "FusedActivation(a + b)", opjit_fe_validate_pointwise, 0);
