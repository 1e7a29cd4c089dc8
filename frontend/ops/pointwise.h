/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h - what rows of pointwise operators are made of.  Every output element is a formula of the input elements
 * at the same coordinates.  A row gives fields, types and the formula; tensors, FLOAT16, ScaleBias, sharing of memory
 * and layout are the same for all (pointwise.c).  Included by <family>.c and by lowerings that apply an activation. */
#ifndef OPJIT_FRONTEND_OPS_POINTWISE_H
#define OPJIT_FRONTEND_OPS_POINTWISE_H

#include "frontend/ops/infer.h"

/* --- formulas ----------------------------------------------------------------------------------------------------- */
static inline ir_ref op1(const op_element *e, ir_op op, ir_ref x)
{
    return ir_expr1(e->f, op, e->type, x);
}

static inline ir_ref op2(const op_element *e, ir_op op, ir_ref a, ir_ref b)
{
    return ir_expr2(e->f, op, e->type, a, b);
}

/* c ? a : b, which evaluates only one of them. */
static inline ir_ref choose(const op_element *e, ir_ref c, ir_ref a, ir_ref b)
{
    return ir_expr3(e->f, IR_SELECT, e->type, c, a, b);
}

static inline ir_ref cast_to(const op_element *e, ir_type type, ir_ref x)
{
    return ir_expr1(e->f, IR_CAST, type, x);
}

/* A FLOAT field in the formula's type; for integers converted toward zero, saturating. */
ir_ref opjit_fe_number(const op_element *e, float value);
/* A small whole number in any type. */
ir_ref opjit_fe_whole(const op_element *e, ir_type type, int64_t value);
static inline ir_ref zero(const op_element *e)
{
    return opjit_ir_const(e->f, e->type, 0);
}

static inline ir_ref one(const op_element *e)
{
    return opjit_fe_whole(e, e->type, 1);
}

/* --- the operator around the formula ------------------------------------------------------------------------------ */
/* All tensors have one DataType and the same Sizes, or 1 where an input has OP_BROADCAST. */
opjit_status opjit_fe_validate_pointwise(const opjit_operator *op, opjit_error *error);
/* Same Sizes, except for inputs with OP_BROADCAST, and the ScaleBias of integers is whole.  For rows with a rule of
 * their own for types. */
opjit_status opjit_fe_validate_sizes(const opjit_operator *op, opjit_error *error);
void opjit_fe_lower_pointwise(op_lowering *l);
/* x after the operator's field `FusedActivation`, or x where that is NULL.  x has the formula's type, e->type. */
ir_ref opjit_fe_activate(const op_element *e, const DML_OPERATOR_DESC *activation, ir_ref x);

/* --- rows --------------------------------------------------------------------------------------------------------- */
#define POINTWISE_DESC(NAME) DML_##NAME##_OPERATOR_DESC
#define TYPES_SIGNED (OP_TYPES(INT64) | OP_TYPES(INT32) | OP_TYPES(INT16) | OP_TYPES(INT8))
#define TYPES_UNSIGNED (OP_TYPES(UINT64) | OP_TYPES(UINT32) | OP_TYPES(UINT16) | OP_TYPES(UINT8))
#define TYPES_NUMBER (OP_TYPES_FLOAT | TYPES_SIGNED | TYPES_UNSIGNED)

/* Types from the feature level on that introduced the operator; without a level FLOAT64 wherever FLOAT32 is. */
#define POINTWISE_SUPPORT(field_, LEVEL, types_)                                                   \
    { field_, 0, 1, 8, (types_) | (((types_) & OP_TYPES(FLOAT32)) != 0 ? OP_TYPES(FLOAT64) : 0) }, \
    {                                                                                              \
        field_, DML_FEATURE_LEVEL_##LEVEL, 1, 8, types_                                            \
    }

/* The row of DML_OPERATOR_<NAME>, from the arrays <symbol>_fields and <symbol>_support and the function
 * <symbol>_element. */
#define POINTWISE_ROW(symbol, NAME, LEVEL, text, validate_, traits_) \
    POINTWISE_TYPED_ROW(symbol, NAME, LEVEL, text, validate_, opjit_fe_infer_pointwise, traits_)
/* The same where the output's type is not that of the first input. */
#define POINTWISE_TYPED_ROW(symbol, NAME, LEVEL, text, validate_, infer_, traits_) \
    const op_def opjit_fe_op_##symbol = {                                          \
        .type = DML_OPERATOR_##NAME,                                               \
        .name = #NAME,                                                             \
        .formula = text,                                                           \
        .desc_size = sizeof(POINTWISE_DESC(NAME)),                                 \
        OP_ROWS(symbol##_fields, symbol##_support),                                \
        .introduced = DML_FEATURE_LEVEL_##LEVEL,                                   \
        .validate = validate_,                                                     \
        .infer = infer_,                                                           \
        .lower = opjit_fe_lower_pointwise,                                         \
        .element = symbol##_element,                                               \
        .traits = traits_,                                                         \
    }

/* <symbol>_element: value, a formula over e and x and, as d, the descriptor. */
#define POINTWISE_ELEMENT(symbol, NAME, value)                           \
    static ir_ref symbol##_element(const op_element *e, const ir_ref *x) \
    {                                                                    \
        const POINTWISE_DESC(NAME) *d = e->desc;                         \
        (void)d;                                                         \
        return value;                                                    \
    }

#endif
