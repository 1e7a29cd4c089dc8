/* SPDX-License-Identifier: Apache-2.0 */
/* ref_local_response.c - LOCAL_RESPONSE_NORMALIZATION, its gradient, and ADAM_OPTIMIZER in double, by their formulas:
 * powers are compared within a tolerance. */
#include <math.h>

#include "tests/reference/reference.h"

typedef struct around {
    ref_tensor in;
    const void *x;
    bool across;
    int64_t before, behind;
    double alpha, beta, bias;
} around;

static double real_at(const ref_tensor *t, const void *base, const uint32_t at[8])
{
    return ref_real(t->dtype, ref_get(t, base, at));
}

/* Whether the element `other` is among those around `at`. */
static bool is_around(const around *a, const uint32_t at[8], const uint32_t other[8])
{
    for (uint32_t d = 0; d < 4; d++) {
        const bool along = a->across ? d == 1 : d >= 2;
        const int64_t distance = (int64_t)other[d] - (int64_t)at[d];
        if (along ? distance < -a->before || distance > a->behind : distance != 0)
            return false;
    }
    return true;
}

static double divisor(const around *a, const uint32_t at[8])
{
    double sum = 0;
    uint32_t other[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&a->in); e++) {
        ref_tensor_coordinates(&a->in, e, other);
        if (is_around(a, at, other))
            sum += real_at(&a->in, a->x, other) * real_at(&a->in, a->x, other);
    }
    return a->bias + a->alpha * sum;
}

static around around_of(const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC *d, const void *x)
{
    return (around){ ref_tensor_of(d->InputTensor),
                     x,
                     d->CrossChannel != 0,
                     ((int64_t)d->LocalSize - 1) / 2,
                     d->LocalSize / 2,
                     (double)d->Alpha / d->LocalSize,
                     (double)d->Beta,
                     (double)d->Bias };
}

void ref_local_response_normalization(const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC *desc, const void *input,
                                      void *output)
{
    const around a = around_of(desc, input);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const double y = real_at(&a.in, input, at) / pow(divisor(&a, at), a.beta);
        ref_set(&out, output, at, ref_real_bits(out.dtype, y));
    }
}

void ref_local_response_normalization_grad(const DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC *desc,
                                           ref_inputs inputs, void *output)
{
    const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC same = { desc->InputTensor, NULL,        desc->CrossChannel,
                                                                  desc->LocalSize,   desc->Alpha, desc->Beta,
                                                                  desc->Bias };
    const around a = around_of(&same, inputs[0]);
    const ref_tensor gradients = ref_tensor_of(desc->InputGradientTensor),
                     out = ref_tensor_of(desc->OutputGradientTensor);
    uint32_t at[8], other[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        double sum = 0;
        ref_tensor_coordinates(&out, e, at);
        for (uint64_t k = 0; k < ref_tensor_elements(&out); k++) {
            ref_tensor_coordinates(&out, k, other);
            if (is_around(&a, other, at))
                sum += real_at(&gradients, inputs[1], other) * real_at(&a.in, inputs[0], other) /
                       pow(divisor(&a, other), a.beta + 1);
        }
        const double y = real_at(&gradients, inputs[1], at) / pow(divisor(&a, at), a.beta) -
                         2 * a.alpha * a.beta * real_at(&a.in, inputs[0], at) * sum;
        ref_set(&out, output, at, ref_real_bits(out.dtype, y));
    }
}

void ref_adam_optimizer(const DML_ADAM_OPTIMIZER_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor weights = ref_tensor_of(desc->InputParametersTensor),
                     firsts = ref_tensor_of(desc->InputFirstMomentTensor),
                     seconds = ref_tensor_of(desc->InputSecondMomentTensor),
                     gradients = ref_tensor_of(desc->GradientTensor), steps = ref_tensor_of(desc->TrainingStepTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputParametersTensor),
                     out_first = ref_tensor_of(desc->OutputFirstMomentTensor),
                     out_second = ref_tensor_of(desc->OutputSecondMomentTensor);
    const uint32_t origin[8] = { 0 };
    const double t = (double)ref_get(&steps, inputs[4], origin), b1 = (double)desc->Beta1, b2 = (double)desc->Beta2;
    const double alpha = sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const double g = real_at(&gradients, inputs[3], at);
        const double m = b1 * real_at(&firsts, inputs[1], at) + (1 - b1) * g;
        const double v = b2 * real_at(&seconds, inputs[2], at) + (1 - b2) * g * g;
        const double x = real_at(&weights, inputs[0], at) -
                         (double)desc->LearningRate * alpha * m / (sqrt(v) + (double)desc->Epsilon);
        ref_set(&out, outputs[0], at, ref_real_bits(out.dtype, x));
        ref_set(&out_first, outputs[1], at, ref_real_bits(out.dtype, m));
        ref_set(&out_second, outputs[2], at, ref_real_bits(out.dtype, v));
    }
}
