/* SPDX-License-Identifier: Apache-2.0 */
/* activation.c - ACTIVATION operators on one element at a time, alone or fused into another operator.  The softmax
 * family, which looks at whole rows, is in softmax.c.
 *
 * The formulas are literal except where the literal form overflows or cancels and the function does not: e^x - 1 is one
 * operation, and e is raised to negative powers only. */
#include "frontend/ops/pointwise.h"

/* --- parts of formulas -------------------------------------------------------------------------------------------- */

static ir_ref negative(const op_element *e, ir_ref x)
{
    return op2(e, IR_LT, x, zero(e));
}

static ir_ref not_negative(const op_element *e, ir_ref x)
{
    return op2(e, IR_LE, zero(e), x);
}

static ir_ref positive(const op_element *e, ir_ref x)
{
    return op2(e, IR_LT, zero(e), x);
}

static ir_ref scaled(const op_element *e, float factor, ir_ref x)
{
    return op2(e, IR_MUL, opjit_fe_number(e, factor), x);
}

/* factor * x + term, rounded twice. */
static ir_ref linear(const op_element *e, ir_ref x, float factor, float term)
{
    return op2(e, IR_ADD, scaled(e, factor, x), opjit_fe_number(e, term));
}

/* 1 / (1 + e^-x); for x < 0 as e^x / (1 + e^x). */
static ir_ref sigmoid(const op_element *e, ir_ref x)
{
    const ir_ref power = op1(e, IR_EXP, op1(e, IR_NEG, op1(e, IR_ABS, x)));
    return op2(e, IR_DIV, choose(e, negative(e, x), power, one(e)), op2(e, IR_ADD, one(e), power));
}

static ir_ref hard_sigmoid(const op_element *e, ir_ref x, float alpha, float beta)
{
    return op2(e, IR_MAX, zero(e), op2(e, IR_MIN, linear(e, x, alpha, beta), one(e)));
}

/* ln(1 + e^x) */
static ir_ref softplus(const op_element *e, ir_ref x)
{
    const ir_ref power = op1(e, IR_EXP, op1(e, IR_NEG, op1(e, IR_ABS, x)));
    return op2(e, IR_ADD, op2(e, IR_MAX, x, zero(e)), op1(e, IR_LOG1P, power));
}

static ir_ref celu(const op_element *e, ir_ref x, float alpha)
{
    const ir_ref power = op1(e, IR_EXPM1, op2(e, IR_DIV, x, opjit_fe_number(e, alpha)));
    return op2(e, IR_ADD, op2(e, IR_MAX, zero(e), x), op2(e, IR_MIN, zero(e), scaled(e, alpha, power)));
}

static ir_ref shrink(const op_element *e, ir_ref x, float bias, float threshold)
{
    const ir_ref above = op2(e, IR_LT, opjit_fe_number(e, threshold), x);
    const ir_ref below = op2(e, IR_LT, x, opjit_fe_number(e, -threshold));
    const ir_ref by = opjit_fe_number(e, bias);

    return choose(e, above, op2(e, IR_SUB, x, by), choose(e, below, op2(e, IR_ADD, x, by), zero(e)));
}

static ir_ref gelu(const op_element *e, ir_ref x)
{
    const uint64_t sqrt2 = e->type == IR_F64 ? UINT64_C(0x3ff6a09e667f3bcd) : 0x3fb504f3u;
    const ir_ref error = op1(e, IR_ERF, op2(e, IR_DIV, x, opjit_ir_const(e->f, e->type, sqrt2)));

    return op2(e, IR_MUL, scaled(e, 0.5f, x), op2(e, IR_ADD, one(e), error));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
/* The fields after the tensors, each with its flags. */
#define NONE(NAME)
#define ALPHA(NAME) OP_FIELD(POINTWISE_DESC(NAME), Alpha, OP_FLOAT, 0),
#define ALPHA_NOT_0(NAME) OP_FIELD(POINTWISE_DESC(NAME), Alpha, OP_FLOAT, OP_NONZERO),
#define ALPHA_BETA(NAME) ALPHA(NAME) OP_FIELD(POINTWISE_DESC(NAME), Beta, OP_FLOAT, 0),
#define ALPHA_GAMMA(NAME) ALPHA(NAME) OP_FIELD(POINTWISE_DESC(NAME), Gamma, OP_FLOAT, 0),
#define STEEPNESS(NAME) OP_FIELD(POINTWISE_DESC(NAME), Steepness, OP_FLOAT, OP_ONE_UP),
#define INPUT_SCALE(NAME) OP_FIELD(POINTWISE_DESC(NAME), SigmoidInputScale, OP_FLOAT, 0),
#define BIAS_THRESHOLD(NAME)                                                 \
    OP_FIELD(POINTWISE_DESC(NAME), Bias, OP_FLOAT, 0), OP_FIELD(POINTWISE_DESC(NAME), Threshold, OP_FLOAT, 0),

#define ROW(symbol, NAME, LEVEL, types, parameters, text, traits, value)     \
    static const op_field symbol##_fields[] = {                              \
        OP_FIELD(POINTWISE_DESC(NAME), InputTensor, OP_INPUT, 0),            \
        OP_FIELD(POINTWISE_DESC(NAME), OutputTensor, OP_OUTPUT, 0),          \
        parameters(NAME)                                                     \
    };                                                                       \
    static const op_support symbol##_support[] = { POINTWISE_SUPPORT(NULL, LEVEL, types) }; \
    POINTWISE_ELEMENT(symbol, NAME, value)                                   \
    POINTWISE_ROW(symbol, NAME, LEVEL, text, opjit_fe_validate_pointwise, traits)
#define FUSABLE(symbol, NAME, LEVEL, parameters, text, value) \
    ROW(symbol, NAME, LEVEL, OP_TYPES_FLOAT, parameters, text, OP_FUSABLE, value)

ROW(activation_identity, ACTIVATION_IDENTITY, 1_0, OP_TYPES_FLOAT, NONE, "x", OP_FUSABLE | OP_KEEPS_BITS, x[0]);
ROW(activation_relu, ACTIVATION_RELU, 1_0, OP_TYPES_FLOAT | OP_TYPES(INT32) | OP_TYPES(INT16) | OP_TYPES(INT8), NONE,
    "max(x, 0)", OP_FUSABLE, op2(e, IR_MAX, x[0], zero(e)));
FUSABLE(activation_leaky_relu, ACTIVATION_LEAKY_RELU, 1_0, ALPHA, "x >= 0 ? x : Alpha * x",
        choose(e, not_negative(e, x[0]), x[0], scaled(e, d->Alpha, x[0])));
FUSABLE(activation_thresholded_relu, ACTIVATION_THRESHOLDED_RELU, 1_0, ALPHA, "x > Alpha ? x : 0",
        choose(e, op2(e, IR_LT, opjit_fe_number(e, d->Alpha), x[0]), x[0], zero(e)));
FUSABLE(activation_linear, ACTIVATION_LINEAR, 1_0, ALPHA_BETA, "Alpha * x + Beta",
        linear(e, x[0], d->Alpha, d->Beta));
FUSABLE(activation_shrink, ACTIVATION_SHRINK, 2_0, BIAS_THRESHOLD,
        "x > Threshold ? x - Bias : x < -Threshold ? x + Bias : 0", shrink(e, x[0], d->Bias, d->Threshold));
FUSABLE(activation_softsign, ACTIVATION_SOFTSIGN, 1_0, NONE, "x / (1 + |x|)",
        op2(e, IR_DIV, x[0], op2(e, IR_ADD, one(e), op1(e, IR_ABS, x[0]))));
FUSABLE(activation_hard_sigmoid, ACTIVATION_HARD_SIGMOID, 1_0, ALPHA_BETA, "max(0, min(Alpha * x + Beta, 1))",
        hard_sigmoid(e, x[0], d->Alpha, d->Beta));
ROW(activation_hard_swish, ACTIVATION_HARD_SWISH, 6_2, OP_TYPES_FLOAT, ALPHA_BETA,
    "x * max(0, min(Alpha * x + Beta, 1))", 0, op2(e, IR_MUL, x[0], hard_sigmoid(e, x[0], d->Alpha, d->Beta)));

FUSABLE(activation_elu, ACTIVATION_ELU, 1_0, ALPHA, "x >= 0 ? x : Alpha * (e^x - 1)",
        choose(e, not_negative(e, x[0]), x[0], scaled(e, d->Alpha, op1(e, IR_EXPM1, x[0]))));
FUSABLE(activation_scaled_elu, ACTIVATION_SCALED_ELU, 1_0, ALPHA_GAMMA,
        "Gamma * (x > 0 ? x : Alpha * (e^x - 1))",
        scaled(e, d->Gamma, choose(e, positive(e, x[0]), x[0], scaled(e, d->Alpha, op1(e, IR_EXPM1, x[0])))));
FUSABLE(activation_celu, ACTIVATION_CELU, 3_0, ALPHA_NOT_0, "max(0, x) + min(0, Alpha * (e^(x / Alpha) - 1))",
        celu(e, x[0], d->Alpha));
FUSABLE(activation_sigmoid, ACTIVATION_SIGMOID, 1_0, NONE, "1 / (1 + e^-x)", sigmoid(e, x[0]));
ROW(activation_swish, ACTIVATION_SWISH, 6_2, OP_TYPES_FLOAT, INPUT_SCALE, "x * sigmoid(SigmoidInputScale * x)", 0,
    op2(e, IR_MUL, x[0], sigmoid(e, scaled(e, d->SigmoidInputScale, x[0]))));
FUSABLE(activation_tanh, ACTIVATION_TANH, 1_0, NONE, "tanh(x)", op1(e, IR_TANH, x[0]));
FUSABLE(activation_scaled_tanh, ACTIVATION_SCALED_TANH, 1_0, ALPHA_BETA, "Alpha * tanh(Beta * x)",
        scaled(e, d->Alpha, op1(e, IR_TANH, scaled(e, d->Beta, x[0]))));
FUSABLE(activation_softplus, ACTIVATION_SOFTPLUS, 1_0, STEEPNESS, "log(1 + e^(Steepness * x)) / Steepness",
        op2(e, IR_DIV, softplus(e, scaled(e, d->Steepness, x[0])), opjit_fe_number(e, d->Steepness)));
FUSABLE(activation_parametric_softplus, ACTIVATION_PARAMETRIC_SOFTPLUS, 1_0, ALPHA_BETA,
        "Alpha * log(1 + e^(Beta * x))", scaled(e, d->Alpha, softplus(e, scaled(e, d->Beta, x[0]))));
FUSABLE(activation_gelu, ACTIVATION_GELU, 5_1, NONE, "0.5 * x * (1 + erf(x / sqrt(2)))", gelu(e, x[0]));

/* --- activations of two inputs ---------------------------------------------------------------------------------- */

#define TYPES_RELU (OP_TYPES_FLOAT | OP_TYPES(INT32) | OP_TYPES(INT16) | OP_TYPES(INT8))

static const op_field activation_parameterized_relu_fields[] = {
    OP_FIELD(POINTWISE_DESC(ACTIVATION_PARAMETERIZED_RELU), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ACTIVATION_PARAMETERIZED_RELU), SlopeTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ACTIVATION_PARAMETERIZED_RELU), OutputTensor, OP_OUTPUT, 0),
};
static const op_support activation_parameterized_relu_support[] = { POINTWISE_SUPPORT(NULL, 1_0, TYPES_RELU) };
POINTWISE_ELEMENT(activation_parameterized_relu, ACTIVATION_PARAMETERIZED_RELU,
                  choose(e, not_negative(e, x[0]), x[0], op2(e, IR_MUL, x[1], x[0])))
POINTWISE_ROW(activation_parameterized_relu, ACTIVATION_PARAMETERIZED_RELU, 1_0, "x >= 0 ? x : slope * x",
              opjit_fe_validate_pointwise, 0);

static const op_field activation_relu_grad_fields[] = {
    OP_FIELD(POINTWISE_DESC(ACTIVATION_RELU_GRAD), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ACTIVATION_RELU_GRAD), InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ACTIVATION_RELU_GRAD), OutputGradientTensor, OP_OUTPUT, 0),
};
static const op_support activation_relu_grad_support[] = { POINTWISE_SUPPORT(NULL, 3_0, TYPES_RELU) };
POINTWISE_ELEMENT(activation_relu_grad, ACTIVATION_RELU_GRAD, choose(e, positive(e, x[0]), x[1], zero(e)))
POINTWISE_ROW(activation_relu_grad, ACTIVATION_RELU_GRAD, 3_0, "x > 0 ? gradient : 0", opjit_fe_validate_pointwise,
              OP_KEEPS_BITS);
/* clang-format on */
