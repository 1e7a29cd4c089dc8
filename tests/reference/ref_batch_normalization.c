/* SPDX-License-Identifier: Apache-2.0 */
/* ref_batch_normalization.c - BATCH_NORMALIZATION_TRAINING and the gradients of both, VALUE_SCALE_2D and
 * DYNAMIC_QUANTIZE_LINEAR, from left to right as the documents have them. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

/* What terms of a sum are made of: of the elements of the input that share one mean. */
typedef struct group {
    ref_tensor in, small; /* small: a tensor with sizes of 1 where elements are summed */
    const void *x, *gradient, *mean, *variance;
    ref_tensor t_gradient, t_mean, t_variance;
    double center, epsilon;
    const uint32_t *at;
    bool squares, normalizes, multiplies;
} group;

static double real_at(const ref_tensor *t, const void *base, const uint32_t at[8])
{
    uint32_t own[8];
    for (uint32_t d = 0; d < 8; d++)
        own[d] = d < t->rank && t->sizes[d] > 1 ? at[d] : 0;
    return ref_real(t->dtype, ref_get(t, base, own));
}

static uint32_t axes_of(const ref_tensor *small)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < small->rank; d++)
        axes |= small->sizes[d] == 1 ? 1u << d : 0;
    return axes;
}

static uint64_t count_of(const group *g)
{
    return ref_tensor_elements(&g->in) / ref_tensor_elements(&g->small);
}

/* The coordinates of term k: summed dimensions from k, row-major, others from the mean's. */
static void place(const group *g, uint64_t k, uint32_t at[8])
{
    for (uint32_t d = g->in.rank; d-- > 0;) {
        at[d] = g->at[d];
        if (g->small.sizes[d] == 1) {
            at[d] = (uint32_t)(k % g->in.sizes[d]);
            k /= g->in.sizes[d];
        }
    }
}

static double root(DML_TENSOR_DATA_TYPE dtype, double variance, double epsilon)
{
    return ref_rounded(dtype, sqrt(ref_rounded(dtype, variance + epsilon)));
}

/* x, or (x - center) squared. */
static double input_term(void *user, uint64_t k)
{
    const group *g = user;
    uint32_t at[8];
    place(g, k, at);
    const double x = real_at(&g->in, g->x, at);
    const double centered = g->squares ? ref_rounded(g->in.dtype, x - g->center) : x;
    return g->squares ? ref_rounded(g->in.dtype, centered * centered) : x;
}

/* The gradient, times x - mean, over the deviation. */
static double gradient_term(void *user, uint64_t k)
{
    const group *g = user;
    const DML_TENSOR_DATA_TYPE dtype = g->in.dtype;
    uint32_t at[8];
    place(g, k, at);
    double x = real_at(&g->t_gradient, g->gradient, at);
    if (g->multiplies)
        x = ref_rounded(dtype, x * ref_rounded(dtype, real_at(&g->in, g->x, at) - real_at(&g->t_mean, g->mean, at)));
    if (g->normalizes)
        x = ref_rounded(dtype, x / root(dtype, real_at(&g->t_variance, g->variance, at), g->epsilon));
    return x;
}

static double sum_of(group *g, ref_term *term)
{
    return ref_sum(g->in.dtype, ref_sum_lanes(&g->in, axes_of(&g->small)), count_of(g), term, g);
}

static double mean_of(group *g, ref_term *term)
{
    return ref_rounded(g->in.dtype, sum_of(g, term) / (double)count_of(g));
}

/* Mean and variance of the group. */
static void moments(group *g, double *mean, double *variance)
{
    g->squares = false;
    *mean = mean_of(g, input_term);
    g->center = *mean;
    g->squares = true;
    *variance = mean_of(g, input_term);
}

void ref_batch_normalization_training(const DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC *desc, ref_inputs inputs,
                                      ref_outputs outputs)
{
    const ref_tensor scale = ref_tensor_of(desc->ScaleTensor), bias = ref_tensor_of(desc->BiasTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor), means = ref_tensor_of(desc->OutputMeanTensor),
                     variances = ref_tensor_of(desc->OutputVarianceTensor);
    const DML_TENSOR_DATA_TYPE dtype = out.dtype;
    group g = { .in = ref_tensor_of(desc->InputTensor), .small = scale, .x = inputs[0] };
    double mean, variance;
    uint32_t at[8];
    g.at = at;
    for (uint64_t e = 0; e < ref_tensor_elements(&scale); e++) {
        ref_tensor_coordinates(&scale, e, at);
        moments(&g, &mean, &variance);
        ref_set(&means, outputs[1], at, ref_real_bits(dtype, mean));
        ref_set(&variances, outputs[2], at, ref_real_bits(dtype, variance));
        for (uint64_t k = 0; k < count_of(&g); k++) {
            uint32_t own[8];
            place(&g, k, own);
            double x = ref_rounded(dtype, real_at(&g.in, inputs[0], own) - mean);
            x = ref_rounded(dtype, x / root(dtype, variance, (double)desc->Epsilon));
            x = ref_rounded(dtype, real_at(&scale, inputs[1], own) * x);
            x = ref_rounded(dtype, x + real_at(&bias, inputs[2], own));
            if (desc->FusedAddTensor != NULL) {
                const ref_tensor more = ref_tensor_of(desc->FusedAddTensor);
                x = ref_rounded(dtype, x + real_at(&more, inputs[3], own));
            }
            if (desc->FusedActivation != NULL)
                x = x > 0 || x != x ? x : 0;
            ref_set(&out, outputs[0], own, ref_real_bits(dtype, x));
        }
    }
}

/* One element of the gradient of the input. */
static double gradient_of(const group *g, const ref_tensor *scales, const void *scale_base, bool training, double sum,
                          double products, const uint32_t own[8])
{
    const DML_TENSOR_DATA_TYPE dtype = g->in.dtype;
    const double scale = real_at(scales, scale_base, own), gradient = real_at(&g->t_gradient, g->gradient, own);
    const double variance = real_at(&g->t_variance, g->variance, own), deviation = root(dtype, variance, g->epsilon);
    if (!training)
        return ref_rounded(dtype, gradient * ref_rounded(dtype, scale / deviation));
    const double n = (double)count_of(g), centered = ref_rounded(dtype, gradient - ref_rounded(dtype, sum / n));
    const double x = ref_rounded(dtype, real_at(&g->in, g->x, own) - real_at(&g->t_mean, g->mean, own));
    const double part = ref_rounded(dtype, ref_rounded(dtype, x * ref_rounded(dtype, products / n)) /
                                               ref_rounded(dtype, variance + g->epsilon));
    return ref_rounded(dtype, ref_rounded(dtype, scale * ref_rounded(dtype, 1 / deviation)) *
                                  ref_rounded(dtype, centered - part));
}

void ref_batch_normalization_grad(const DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC *desc, bool training,
                                  ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor out = ref_tensor_of(desc->OutputGradientTensor), scale = ref_tensor_of(desc->ScaleTensor);
    const ref_tensor scales = ref_tensor_of(desc->OutputScaleGradientTensor),
                     biases = ref_tensor_of(desc->OutputBiasGradientTensor);
    group g = { .in = ref_tensor_of(desc->InputTensor),
                .small = ref_tensor_of(desc->MeanTensor),
                .x = inputs[0],
                .gradient = inputs[1],
                .mean = inputs[2],
                .variance = inputs[3],
                .t_gradient = ref_tensor_of(desc->InputGradientTensor),
                .t_mean = ref_tensor_of(desc->MeanTensor),
                .t_variance = ref_tensor_of(desc->VarianceTensor),
                .epsilon = (double)desc->Epsilon };
    uint32_t at[8];
    g.at = at;
    for (uint64_t e = 0; e < ref_tensor_elements(&g.small); e++) {
        ref_tensor_coordinates(&g.small, e, at);
        const double sum = sum_of(&g, gradient_term);
        g.multiplies = true;
        const double products = sum_of(&g, gradient_term);
        g.normalizes = true;
        const double normalized = sum_of(&g, gradient_term);
        g.multiplies = g.normalizes = false;
        ref_set(&scales, outputs[1], at, ref_real_bits(out.dtype, normalized));
        ref_set(&biases, outputs[2], at, ref_real_bits(out.dtype, sum));
        for (uint64_t k = 0; k < count_of(&g); k++) {
            uint32_t own[8];
            place(&g, k, own);
            ref_set(&out, outputs[0], own,
                    ref_real_bits(out.dtype, gradient_of(&g, &scale, inputs[4], training, sum, products, own)));
        }
    }
}

void ref_value_scale_2d(const DML_VALUE_SCALE_2D_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const double x = ref_rounded(out.dtype, ref_real(in.dtype, ref_get(&in, input, at)) * (double)desc->Scale);
        ref_set(&out, output, at, ref_real_bits(out.dtype, ref_rounded(out.dtype, x + (double)desc->Bias[at[1]])));
    }
}

static double within(double x, double lowest)
{
    return isnan(x) ? 0 : fmin(fmax(x, lowest), lowest + 255);
}

void ref_dynamic_quantize_linear(const DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC *desc, const void *input,
                                 ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor),
                     scales = ref_tensor_of(desc->OutputScaleTensor),
                     zeros = ref_tensor_of(desc->OutputZeroPointTensor);
    const double lowest = out.dtype == DML_TENSOR_DATA_TYPE_INT8 ? -128 : 0;
    const uint32_t first[8] = { 0 };
    double lo = 0, hi = 0;
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
        ref_tensor_coordinates(&in, e, at);
        const double x = ref_real(in.dtype, ref_get(&in, input, at));
        lo = lo < x || isnan(lo) ? lo : x;
        hi = hi > x || isnan(hi) ? hi : x;
    }
    const double scale = hi == lo ? 1 : ref_rounded(in.dtype, ref_rounded(in.dtype, hi - lo) / 255);
    const double zero = within(rint(ref_rounded(in.dtype, lowest - ref_rounded(in.dtype, lo / scale))), lowest);
    ref_set(&scales, outputs[1], first, ref_real_bits(scales.dtype, scale));
    ref_set(&zeros, outputs[2], first, (uint64_t)(int64_t)zero);
    for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
        ref_tensor_coordinates(&in, e, at);
        const double quotient = rint(ref_rounded(in.dtype, ref_real(in.dtype, ref_get(&in, input, at)) / scale));
        const double y = fmin(fmax((isnan(quotient) ? 0 : quotient) + zero, lowest), lowest + 255);
        ref_set(&out, outputs[0], at, (uint64_t)(int64_t)y);
    }
}
