/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_pow.c - ELEMENT_WISE_POW and CONSTANT_POW: C's pow for floats, exact powers modulo 2^N for
 * integers. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define TYPES_POW (OP_TYPES_FLOAT | OP_TYPES_INT_TO_32)

static const op_field element_wise_pow_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_POW), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_POW), ExponentTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_POW), OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_POW), ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL),
};
static const op_field element_wise_constant_pow_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_CONSTANT_POW), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_CONSTANT_POW), OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_CONSTANT_POW), ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_CONSTANT_POW), Exponent, OP_FLOAT, 0),
};
/* clang-format on */

/* x to a negative power, which is 1 / x^n toward zero: x itself for 1 and for odd powers of -1; otherwise 1 for -1 and
 * for 0. */
static ir_ref reciprocal_power(const op_element *e, ir_ref x, ir_ref odd)
{
    const ir_ref is_one = op2(e, IR_EQ, x, one(e));
    const ir_ref minus_one = opjit_fe_whole(e, e->type, -1);
    ir_ref value = choose(e, is_one, one(e), zero(e));

    if (ir_is_signed(e->type))
        value = choose(e, op2(e, IR_EQ, x, minus_one), choose(e, odd, minus_one, one(e)), value);
    return value;
}

static ir_ref element_wise_pow_element(const op_element *e, const ir_ref *x)
{
    const ir_ref power = op2(e, ir_is_float(e->type) ? IR_POW : IR_IPOW, x[0], x[1]);
    ir_ref odd;

    if (!ir_is_signed(e->type))
        return power;
    odd = op2(e, IR_NE, op2(e, IR_AND, x[1], one(e)), zero(e));
    return choose(e, op2(e, IR_LT, x[1], zero(e)), reciprocal_power(e, x[0], odd), power);
}

/* --- CONSTANT_POW ------------------------------------------------------------------------------------------------- */

/* Whether value is a whole number below 2^31 in absolute value, or an even one beyond. */
static bool is_whole(float value)
{
    return !(value > -0x1p31f && value < 0x1p31f) || value == (float)(int32_t)value;
}

/* x to any whole power of 0 or more, modulo 2^N.  Powers of odd numbers repeat after 2^(N - 2) and those of even
 * numbers are 0 from N on, so every large power has a smaller equivalent.  From 2^63 on a float is a multiple of 2^(N -
 * 2). */
static ir_ref whole_power(const op_element *e, ir_ref x, float exponent)
{
    const uint32_t bits = 8 * opjit_ir_type_size(e->type);
    const uint64_t period = UINT64_C(1) << (bits - 2);
    uint64_t power = 0;

    if (exponent < 0x1p63f)
        power = (uint64_t)exponent;
    if (exponent >= 0x1p63f || power >= 2 * period)
        power = power % period + period; /* not below N */
    return op2(e, IR_IPOW, x, opjit_ir_const(e->f, e->type, power));
}

/* Integers to a fractional, infinite or NaN power, through FLOAT64. */
static ir_ref power_by_float(const op_element *e, ir_ref x, float exponent)
{
    op_element wide = *e;

    wide.type = IR_F64;
    return cast_to(e, e->type, op2(&wide, IR_POW, cast_to(e, IR_F64, x), opjit_fe_number(&wide, exponent)));
}

static ir_ref element_wise_constant_pow_element(const op_element *e, const ir_ref *x)
{
    const float exponent = ((const DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC *)e->desc)->Exponent;
    const bool finite = exponent - exponent == 0;
    bool odd;

    if (ir_is_float(e->type)) /* common, and more exact than pow's bound */
        return exponent == 2 ? op2(e, IR_MUL, x[0], x[0]) : op2(e, IR_POW, x[0], opjit_fe_number(e, exponent));
    if (!finite || !is_whole(exponent))
        return power_by_float(e, x[0], exponent);
    if (exponent >= 0)
        return whole_power(e, x[0], exponent);
    odd = exponent > -0x1p31f && (int32_t)exponent % 2 != 0;
    return reciprocal_power(e, x[0], opjit_ir_const(e->f, IR_BOOL, odd));
}

static const op_support element_wise_pow_support[] = { POINTWISE_SUPPORT(NULL, 1_0, TYPES_POW) };
static const op_support element_wise_constant_pow_support[] = { POINTWISE_SUPPORT(NULL, 1_0, TYPES_POW) };
POINTWISE_ROW(element_wise_pow, ELEMENT_WISE_POW, 1_0, "x^exponent", opjit_fe_validate_pointwise, 0);
POINTWISE_ROW(element_wise_constant_pow, ELEMENT_WISE_CONSTANT_POW, 1_0, "x^Exponent", opjit_fe_validate_pointwise, 0);
