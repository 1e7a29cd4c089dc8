/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_compare.c - ELEMENT_WISE operators whose result is a truth value, 0 or 1, or that select by one:
 * comparisons, LOGICAL_..., IS_NAN, IS_INFINITY, IF. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define TYPES_TRUTH (OP_TYPES(UINT32) | OP_TYPES(UINT8))
#define BINARY_FIELDS(symbol, NAME)                                          \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), ATensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), BTensor, OP_INPUT, 0),                \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
    };
#define UNARY_FIELDS(symbol, NAME)                                           \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),            \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
    };
/* clang-format on */

/* --- comparisons: NaN is unequal to everything and unordered ----------------------------------------------------- */

/* The inputs share a type; the output has its own. */
static opjit_status validate_comparison(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_validate_sizes(op, error));
    return opjit_fe_same_input_type(op, 1, 0, error);
}

/* clang-format off */
#define COMPARISON(symbol, NAME, LEVEL, text, value)                         \
    BINARY_FIELDS(symbol, NAME)                                              \
    static const op_support symbol##_support[] = {                           \
        POINTWISE_SUPPORT(NULL, LEVEL, OP_TYPES_ALL),                        \
        POINTWISE_SUPPORT("OutputTensor", LEVEL, TYPES_TRUTH),               \
    };                                                                       \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_TYPED_ROW(symbol, NAME, LEVEL, text, validate_comparison, opjit_fe_infer_truth, OP_KEEPS_BITS)

COMPARISON(element_wise_logical_equals, ELEMENT_WISE_LOGICAL_EQUALS, 1_0, "a == b", op2(e, IR_EQ, x[0], x[1]));
COMPARISON(element_wise_logical_greater_than, ELEMENT_WISE_LOGICAL_GREATER_THAN, 1_0, "a > b",
           op2(e, IR_LT, x[1], x[0]));
COMPARISON(element_wise_logical_less_than, ELEMENT_WISE_LOGICAL_LESS_THAN, 1_0, "a < b", op2(e, IR_LT, x[0], x[1]));
COMPARISON(element_wise_logical_greater_than_or_equal, ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL, 3_0, "a >= b",
           op2(e, IR_LE, x[1], x[0]));
COMPARISON(element_wise_logical_less_than_or_equal, ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL, 3_0, "a <= b",
           op2(e, IR_LE, x[0], x[1]));
/* clang-format on */

/* --- LOGICAL_...: everything but 0 is true ---------------------------------------------------------------------- */

static ir_ref truth(const op_element *e, ir_ref x)
{
    return op2(e, IR_NE, x, zero(e));
}

/* clang-format off */
#define LOGICAL(f, symbol, NAME, text, value)                                \
    f(symbol, NAME)                                                          \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, 1_0, TYPES_TRUTH) }; \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_ROW(symbol, NAME, 1_0, text, opjit_fe_validate_pointwise, 0)

LOGICAL(BINARY_FIELDS, element_wise_logical_and, ELEMENT_WISE_LOGICAL_AND, "a && b",
        op2(e, IR_AND, truth(e, x[0]), truth(e, x[1])));
LOGICAL(BINARY_FIELDS, element_wise_logical_or, ELEMENT_WISE_LOGICAL_OR, "a || b",
        op2(e, IR_OR, truth(e, x[0]), truth(e, x[1])));
LOGICAL(BINARY_FIELDS, element_wise_logical_xor, ELEMENT_WISE_LOGICAL_XOR, "!a != !b",
        op2(e, IR_XOR, truth(e, x[0]), truth(e, x[1])));
LOGICAL(UNARY_FIELDS, element_wise_logical_not, ELEMENT_WISE_LOGICAL_NOT, "!x", op2(e, IR_EQ, x[0], zero(e)));

/* --- IS_NAN, IS_INFINITY ---------------------------------------------------------------------------------------- */

#define CLASS(symbol, NAME, LEVEL, text)                                     \
    static const op_support symbol##_support[] = {                           \
        POINTWISE_SUPPORT(NULL, LEVEL, OP_TYPES_FLOAT),                      \
        POINTWISE_SUPPORT("OutputTensor", LEVEL, OP_TYPES(UINT8)),           \
    };                                                                       \
    POINTWISE_TYPED_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_sizes, opjit_fe_infer_truth, OP_KEEPS_BITS)

UNARY_FIELDS(element_wise_is_nan, ELEMENT_WISE_IS_NAN)
POINTWISE_ELEMENT(element_wise_is_nan, ELEMENT_WISE_IS_NAN, op2(e, IR_NE, x[0], x[0]))
CLASS(element_wise_is_nan, ELEMENT_WISE_IS_NAN, 2_0, "x is NaN");

static const op_enum_name infinity_modes[] = {
    { "DML_IS_INFINITY_MODE_EITHER", DML_IS_INFINITY_MODE_EITHER },
    { "DML_IS_INFINITY_MODE_POSITIVE", DML_IS_INFINITY_MODE_POSITIVE },
    { "DML_IS_INFINITY_MODE_NEGATIVE", DML_IS_INFINITY_MODE_NEGATIVE },
    { NULL, 0 },
};
static const op_enum infinity_mode = { "DML_IS_INFINITY_MODE_", infinity_modes };

static const op_field element_wise_is_infinity_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IS_INFINITY), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IS_INFINITY), OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(POINTWISE_DESC(ELEMENT_WISE_IS_INFINITY), InfinityMode, &infinity_mode),
};
/* clang-format on */

static ir_ref element_wise_is_infinity_element(const op_element *e, const ir_ref *x)
{
    const DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC *d = e->desc;
    const ir_ref infinity = cast_to(e, e->type, opjit_ir_const(e->f, IR_F32, 0x7f800000u));

    switch (d->InfinityMode) {
    case DML_IS_INFINITY_MODE_POSITIVE: return op2(e, IR_EQ, x[0], infinity);
    case DML_IS_INFINITY_MODE_NEGATIVE: return op2(e, IR_EQ, x[0], op1(e, IR_NEG, infinity));
    default: return op2(e, IR_EQ, op1(e, IR_ABS, x[0]), infinity);
    }
}

CLASS(element_wise_is_infinity, ELEMENT_WISE_IS_INFINITY, 2_1, "x is infinite, of either sign or of one");

/* --- IF ----------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_field element_wise_if_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IF), ConditionTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IF), ATensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IF), BTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_IF), OutputTensor, OP_OUTPUT, 0),
};
static const op_support element_wise_if_support[] = {
    POINTWISE_SUPPORT(NULL, 2_0, OP_TYPES_ALL),
    POINTWISE_SUPPORT("ConditionTensor", 2_0, OP_TYPES(UINT8)),
};
/* clang-format on */

static opjit_status validate_if(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, 1, 0, error));
    TRY(opjit_fe_same_type(op, 2, 0, error));
    return opjit_fe_validate_sizes(op, error);
}

static void infer_if(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[1].dtype);
    opjit_fe_infer_sizes(s);
}

POINTWISE_ELEMENT(element_wise_if, ELEMENT_WISE_IF, choose(e, truth(e, x[0]), x[1], x[2]))
POINTWISE_TYPED_ROW(element_wise_if, ELEMENT_WISE_IF, 2_0, "condition ? a : b", validate_if, infer_if, OP_KEEPS_BITS);
