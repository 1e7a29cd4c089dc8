/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_unary.c - ELEMENT_WISE operators of one input and, mostly, a ScaleBias: copies, signs, rounding, roots.
 * Mathematical functions are in element_wise_math.c, operators that yield truth values in element_wise_compare.c. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define UNARY_FIELDS(symbol, NAME)                                           \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),            \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
    };
#define SCALED_FIELDS(symbol, NAME)                                          \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),            \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
        OP_FIELD(POINTWISE_DESC(NAME), ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL), \
    };
/* f: UNARY_FIELDS, or SCALED_FIELDS for an operator with ScaleBias. */
#define ROW(f, symbol, NAME, LEVEL, types, text, traits, value)              \
    f(symbol, NAME)                                                          \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, types) }; \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, traits)
#define SCALED(symbol, NAME, LEVEL, text, op) \
    ROW(SCALED_FIELDS, symbol, NAME, LEVEL, OP_TYPES_FLOAT, text, 0, op1(e, op, x[0]))

ROW(SCALED_FIELDS, element_wise_identity, ELEMENT_WISE_IDENTITY, 1_0, OP_TYPES_ALL, "x", OP_KEEPS_BITS, x[0]);
ROW(SCALED_FIELDS, element_wise_abs, ELEMENT_WISE_ABS, 1_0, OP_TYPES_FLOAT | TYPES_SIGNED, "|x|", OP_KEEPS_BITS,
    op1(e, IR_ABS, x[0]));
ROW(UNARY_FIELDS, element_wise_negate, ELEMENT_WISE_NEGATE, 5_0, OP_TYPES_FLOAT | TYPES_SIGNED, "-x", OP_KEEPS_BITS,
    op1(e, IR_NEG, x[0]));
ROW(SCALED_FIELDS, element_wise_recip, ELEMENT_WISE_RECIP, 1_0, OP_TYPES_FLOAT, "1 / x", 0,
    op2(e, IR_DIV, one(e), x[0]));

SCALED(element_wise_sqrt, ELEMENT_WISE_SQRT, 1_0, "sqrt(x)", IR_SQRT);
SCALED(element_wise_ceil, ELEMENT_WISE_CEIL, 1_0, "ceil(x)", IR_CEIL);
SCALED(element_wise_floor, ELEMENT_WISE_FLOOR, 1_0, "floor(x)", IR_FLOOR);

/* A NaN and both zeros are their own sign. */
ROW(UNARY_FIELDS, element_wise_sign, ELEMENT_WISE_SIGN, 2_0, OP_TYPES_FLOAT | TYPES_SIGNED,
    "x > 0 ? 1 : x < 0 ? -1 : x", 0,
    choose(e, op2(e, IR_LT, zero(e), x[0]), one(e),
           choose(e, op2(e, IR_LT, x[0], zero(e)), opjit_fe_whole(e, e->type, -1), x[0])));

/* --- ROUND -------------------------------------------------------------------------------------------------------- */

static const op_enum_name rounding_modes[] = {
    { "DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN", DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN },
    { "DML_ROUNDING_MODE_TOWARD_ZERO", DML_ROUNDING_MODE_TOWARD_ZERO },
    { "DML_ROUNDING_MODE_TOWARD_INFINITY", DML_ROUNDING_MODE_TOWARD_INFINITY },
    { NULL, 0 },
};
static const op_enum rounding_mode = { "DML_ROUNDING_MODE_", rounding_modes };

static const op_field element_wise_round_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ROUND), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ROUND), OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(POINTWISE_DESC(ELEMENT_WISE_ROUND), RoundingMode, &rounding_mode),
};
static const op_support element_wise_round_support[] = { POINTWISE_SUPPORT(NULL, 2_1, OP_TYPES_FLOAT) };
/* clang-format on */

/* x - trunc(x) is exact, so halves are recognised exactly. */
static ir_ref round_away(const op_element *e, ir_ref x)
{
    const ir_ref whole = op1(e, IR_TRUNC, x), rest = op1(e, IR_ABS, op2(e, IR_SUB, x, whole));
    const ir_ref step = choose(e, op2(e, IR_LT, x, zero(e)), opjit_fe_whole(e, e->type, -1), one(e));

    return choose(e, op2(e, IR_LE, opjit_fe_number(e, 0.5f), rest), op2(e, IR_ADD, whole, step), whole);
}

static ir_ref element_wise_round_element(const op_element *e, const ir_ref *x)
{
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC *d = e->desc;

    switch (d->RoundingMode) {
    case DML_ROUNDING_MODE_TOWARD_ZERO: return op1(e, IR_TRUNC, x[0]);
    case DML_ROUNDING_MODE_TOWARD_INFINITY: return round_away(e, x[0]);
    default: return op1(e, IR_RINT, x[0]);
    }
}

POINTWISE_ROW(element_wise_round, ELEMENT_WISE_ROUND, 2_1,
              "x to a whole number: nearest even, toward zero, or nearest and halves away from zero",
              opjit_fe_validate_pointwise, 0);
