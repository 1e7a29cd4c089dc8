/* SPDX-License-Identifier: Apache-2.0 */
/* element_wise_math.c - ELEMENT_WISE operators that are mathematical functions.  The functions are ops of the IR with
 * error bounds of their own (ir/README.md); powers are in element_wise_pow.c. */
#include "frontend/ops/pointwise.h"

/* clang-format off */
#define FUNCTION(symbol, NAME, LEVEL, text, op)                              \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),            \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
        OP_FIELD(POINTWISE_DESC(NAME), ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL), \
    };                                                                       \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, OP_TYPES_FLOAT) }; \
    POINTWISE_ELEMENT(symbol, NAME, op1(e, op, x[0]))                        \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, 0)

FUNCTION(element_wise_exp, ELEMENT_WISE_EXP, 1_0, "exp(x)", IR_EXP);
FUNCTION(element_wise_log, ELEMENT_WISE_LOG, 1_0, "log(x)", IR_LOG);
FUNCTION(element_wise_erf, ELEMENT_WISE_ERF, 2_0, "erf(x)", IR_ERF);
FUNCTION(element_wise_sin, ELEMENT_WISE_SIN, 1_0, "sin(x)", IR_SIN);
FUNCTION(element_wise_cos, ELEMENT_WISE_COS, 1_0, "cos(x)", IR_COS);
FUNCTION(element_wise_tan, ELEMENT_WISE_TAN, 1_0, "tan(x)", IR_TAN);
FUNCTION(element_wise_asin, ELEMENT_WISE_ASIN, 1_0, "asin(x)", IR_ASIN);
FUNCTION(element_wise_acos, ELEMENT_WISE_ACOS, 1_0, "acos(x)", IR_ACOS);
FUNCTION(element_wise_atan, ELEMENT_WISE_ATAN, 1_0, "atan(x)", IR_ATAN);
FUNCTION(element_wise_sinh, ELEMENT_WISE_SINH, 2_0, "sinh(x)", IR_SINH);
FUNCTION(element_wise_cosh, ELEMENT_WISE_COSH, 2_0, "cosh(x)", IR_COSH);
FUNCTION(element_wise_tanh, ELEMENT_WISE_TANH, 2_0, "tanh(x)", IR_TANH);
FUNCTION(element_wise_asinh, ELEMENT_WISE_ASINH, 2_0, "asinh(x)", IR_ASINH);
FUNCTION(element_wise_acosh, ELEMENT_WISE_ACOSH, 2_0, "acosh(x)", IR_ACOSH);
FUNCTION(element_wise_atanh, ELEMENT_WISE_ATANH, 2_0, "atanh(x)", IR_ATANH);

static const op_field element_wise_atan_yx_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ATAN_YX), ATensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ATAN_YX), BTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_ATAN_YX), OutputTensor, OP_OUTPUT, 0),
};
/* clang-format on */
static const op_support element_wise_atan_yx_support[] = { POINTWISE_SUPPORT(NULL, 3_1, OP_TYPES_FLOAT) };
POINTWISE_ELEMENT(element_wise_atan_yx, ELEMENT_WISE_ATAN_YX, op2(e, IR_ATAN2, x[0], x[1]))
POINTWISE_ROW(element_wise_atan_yx, ELEMENT_WISE_ATAN_YX, 3_1, "atan2(a, b)", opjit_fe_validate_pointwise, 0);
