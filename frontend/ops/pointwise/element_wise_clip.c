/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_clip.c - ELEMENT_WISE_CLIP, THRESHOLD and related operators: bounds as FLOAT or, in the "1" forms, in
 * the tensor's own type. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define TYPED_BOUNDS(NAME)                                                   \
    OP_FIELD(POINTWISE_DESC(NAME), MinMaxDataType, OP_DTYPE, 0),             \
    OP_FIELD(POINTWISE_DESC(NAME), Min, OP_SCALAR, 0),                       \
    OP_FIELD(POINTWISE_DESC(NAME), Max, OP_SCALAR, 0)
#define FLOAT_BOUNDS(NAME)                                                   \
    OP_FIELD(POINTWISE_DESC(NAME), Min, OP_FLOAT, 0),                        \
    OP_FIELD(POINTWISE_DESC(NAME), Max, OP_FLOAT, 0)
#define SCALED_TENSORS(NAME)                                                 \
    OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),                \
    OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),              \
    OP_FIELD(POINTWISE_DESC(NAME), ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL)
#define GRADIENT_TENSORS(NAME)                                               \
    OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),                \
    OP_FIELD(POINTWISE_DESC(NAME), InputGradientTensor, OP_INPUT, 0),        \
    OP_FIELD(POINTWISE_DESC(NAME), OutputGradientTensor, OP_OUTPUT, 0)
#define ROW(symbol, NAME, LEVEL, types, text, value)                         \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, types) }; \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, 0)
/* clang-format on */

/* A typed bound, converted to the formula's type. */
static ir_ref bound(const op_element *e, const DML_SCALAR_UNION *value)
{
    const ir_ref number = opjit_ir_const(e->f, e->result, value->UInt64);
    return e->result == e->type ? number : cast_to(e, e->type, number);
}

/* Max wins where Min > Max. */
static ir_ref clip(const op_element *e, ir_ref x, ir_ref min, ir_ref max)
{
    return op2(e, IR_MIN, op2(e, IR_MAX, x, min), max);
}

/* Compared literally: the gradient passes where x is a NaN. */
static ir_ref clip_grad(const op_element *e, const ir_ref *x, ir_ref min, ir_ref max)
{
    const ir_ref outside = op2(e, IR_OR, op2(e, IR_LE, x[0], min), op2(e, IR_LE, max, x[0]));
    return choose(e, outside, zero(e), x[1]);
}

/* clang-format off */
#define CLIP_TEXT "min(max(x, Min), Max)"
#define CLIP_GRAD_TEXT "x <= Min or x >= Max ? 0 : gradient"

static const op_field element_wise_clip_fields[] = {
    SCALED_TENSORS(ELEMENT_WISE_CLIP), FLOAT_BOUNDS(ELEMENT_WISE_CLIP),
};
ROW(element_wise_clip, ELEMENT_WISE_CLIP, 1_0, TYPES_NUMBER, CLIP_TEXT,
    clip(e, x[0], opjit_fe_number(e, d->Min), opjit_fe_number(e, d->Max)));

static const op_field element_wise_clip1_fields[] = {
    SCALED_TENSORS(ELEMENT_WISE_CLIP1), TYPED_BOUNDS(ELEMENT_WISE_CLIP1),
};
ROW(element_wise_clip1, ELEMENT_WISE_CLIP1, 5_0, TYPES_NUMBER, CLIP_TEXT,
    clip(e, x[0], bound(e, &d->Min), bound(e, &d->Max)));

static const op_field element_wise_clip_grad_fields[] = {
    GRADIENT_TENSORS(ELEMENT_WISE_CLIP_GRAD), FLOAT_BOUNDS(ELEMENT_WISE_CLIP_GRAD),
};
ROW(element_wise_clip_grad, ELEMENT_WISE_CLIP_GRAD, 3_1, TYPES_NUMBER, CLIP_GRAD_TEXT,
    clip_grad(e, x, opjit_fe_number(e, d->Min), opjit_fe_number(e, d->Max)));

static const op_field element_wise_clip_grad1_fields[] = {
    GRADIENT_TENSORS(ELEMENT_WISE_CLIP_GRAD1), TYPED_BOUNDS(ELEMENT_WISE_CLIP_GRAD1),
};
ROW(element_wise_clip_grad1, ELEMENT_WISE_CLIP_GRAD1, 5_0, TYPES_NUMBER, CLIP_GRAD_TEXT,
    clip_grad(e, x, bound(e, &d->Min), bound(e, &d->Max)));

static const op_field element_wise_threshold_fields[] = {
    SCALED_TENSORS(ELEMENT_WISE_THRESHOLD), OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_THRESHOLD), Min, OP_FLOAT, 0),
};
ROW(element_wise_threshold, ELEMENT_WISE_THRESHOLD, 1_0, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32, "max(x, Min)",
    op2(e, IR_MAX, x[0], opjit_fe_number(e, d->Min)));
/* clang-format on */
