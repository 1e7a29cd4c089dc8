/* SPDX-License-Identifier: Apache-2.0 */
/* ref_activation.c - the formulas of ACTIVATION operators on one element, in floats.  Those with e^x are written so
 * that they neither overflow nor cancel where the function does not. */
#include <math.h>

#include "tests/reference/pointwise.h"

#define DESC(NAME) ((const DML_ACTIVATION_##NAME##_OPERATOR_DESC *)op->Desc)
#define OP(NAME) case DML_OPERATOR_ACTIVATION_##NAME
#define NUMBER(value) ref_exactly((double)(value))

static const ref_range nothing = { 0, 0 }, one = { 1, 1 };

/* The exponential of -|x|. */
static ref_range falling(ref_floats f, ref_range x)
{
    const double lo = fmin(-fabs(x.lo), -fabs(x.hi)), hi = fmax(-fabs(x.lo), -fabs(x.hi));
    return isnan(x.lo) ? x : ref_function(f, expl, (ref_range){ lo, hi });
}

/* 1 / (1 + e^-x) */
static ref_range sigmoid(ref_floats f, ref_range x)
{
    const ref_range power = falling(f, x), sum = ref_add(f, one, power);
    return ref_div(f, x.lo < 0 ? power : one, sum);
}

static ref_range hard_sigmoid(ref_floats f, ref_range x, float alpha, float beta)
{
    const ref_range line = ref_add(f, ref_mul(f, NUMBER(alpha), x), NUMBER(beta));
    return ref_max(nothing, ref_min(line, one));
}

/* ln(1 + e^x) */
static ref_range softplus(ref_floats f, ref_range x)
{
    return ref_add(f, ref_max(x, nothing), ref_function(f, log1pl, falling(f, x)));
}

/* Alpha * (e^x - 1) */
static ref_range elu(ref_floats f, ref_range x, float alpha)
{
    return ref_mul(f, NUMBER(alpha), ref_function(f, expm1l, x));
}

static ref_range gelu(ref_floats f, ref_range x)
{
    const double root = ref_round(f, sqrt(2.0));
    const ref_range error = ref_function(f, erfl, ref_div(f, x, ref_exactly(root)));
    return ref_mul(f, ref_mul(f, ref_exactly(0.5), x), ref_add(f, one, error));
}

static bool by_exponential(const DML_OPERATOR_DESC *op, ref_floats f, ref_range x, ref_range *out)
{
    ref_range inner;
    switch (op->Type) {
        OP(ELU) : *out = x.lo >= 0 ? x : elu(f, x, DESC(ELU)->Alpha);
        return true;
        OP(SCALED_ELU) : inner = x.lo > 0 ? x : elu(f, x, DESC(SCALED_ELU)->Alpha);
        *out = ref_mul(f, NUMBER(DESC(SCALED_ELU)->Gamma), inner);
        return true;
        OP(CELU) : inner = elu(f, ref_div(f, x, NUMBER(DESC(CELU)->Alpha)), DESC(CELU)->Alpha);
        *out = ref_add(f, ref_max(nothing, x), ref_min(nothing, inner));
        return true;
        OP(SIGMOID) : *out = sigmoid(f, x);
        return true;
        OP(SWISH) : *out = ref_mul(f, x, sigmoid(f, ref_mul(f, NUMBER(DESC(SWISH)->SigmoidInputScale), x)));
        return true;
        OP(TANH) : *out = ref_function(f, tanhl, x);
        return true;
        OP(SCALED_TANH) : inner = ref_function(f, tanhl, ref_mul(f, NUMBER(DESC(SCALED_TANH)->Beta), x));
        *out = ref_mul(f, NUMBER(DESC(SCALED_TANH)->Alpha), inner);
        return true;
        OP(SOFTPLUS) : inner = softplus(f, ref_mul(f, NUMBER(DESC(SOFTPLUS)->Steepness), x));
        *out = ref_div(f, inner, NUMBER(DESC(SOFTPLUS)->Steepness));
        return true;
        OP(PARAMETRIC_SOFTPLUS) : inner = softplus(f, ref_mul(f, NUMBER(DESC(PARAMETRIC_SOFTPLUS)->Beta), x));
        *out = ref_mul(f, NUMBER(DESC(PARAMETRIC_SOFTPLUS)->Alpha), inner);
        return true;
        OP(GELU) : *out = gelu(f, x);
        return true;
    default: return false;
    }
}

static ref_range shrink(ref_floats f, ref_range x, float bias, float threshold)
{
    if (x.lo > (double)threshold)
        return ref_sub(f, x, NUMBER(bias));
    return x.lo < -(double)threshold ? ref_add(f, x, NUMBER(bias)) : nothing;
}

/* Every operation rounds once, so x is one number here. */
bool ref_activation(const DML_OPERATOR_DESC *op, ref_floats f, const ref_range *inputs, ref_range *out)
{
    const ref_range x = inputs[0];
    if (by_exponential(op, f, x, out))
        return true;
    switch (op->Type) {
        OP(IDENTITY) : *out = x;
        return true;
        OP(RELU) : *out = ref_max(x, nothing);
        return true;
        OP(LEAKY_RELU) : *out = x.lo >= 0 ? x : ref_mul(f, NUMBER(DESC(LEAKY_RELU)->Alpha), x);
        return true;
        OP(THRESHOLDED_RELU) : *out = x.lo > (double)DESC(THRESHOLDED_RELU)->Alpha ? x : nothing;
        return true;
        OP(PARAMETERIZED_RELU) : *out = x.lo >= 0 ? x : ref_mul(f, inputs[1], x);
        return true;
        OP(RELU_GRAD) : *out = x.lo > 0 ? inputs[1] : nothing;
        return true;
        OP(LINEAR) : *out = ref_add(f, ref_mul(f, NUMBER(DESC(LINEAR)->Alpha), x), NUMBER(DESC(LINEAR)->Beta));
        return true;
        OP(SHRINK) : *out = shrink(f, x, DESC(SHRINK)->Bias, DESC(SHRINK)->Threshold);
        return true;
        OP(SOFTSIGN) : *out = ref_div(f, x, ref_add(f, one, ref_exactly(fabs(x.lo))));
        return true;
        OP(HARD_SIGMOID) : *out = hard_sigmoid(f, x, DESC(HARD_SIGMOID)->Alpha, DESC(HARD_SIGMOID)->Beta);
        return true;
        OP(HARD_SWISH) : *out = ref_mul(f, x, hard_sigmoid(f, x, DESC(HARD_SWISH)->Alpha, DESC(HARD_SWISH)->Beta));
        return true;
    default: return false;
    }
}
