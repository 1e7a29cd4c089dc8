/* SPDX-License-Identifier: Apache-2.0 */
/* ref_mean_variance_normalization.c - MEAN_VARIANCE_NORMALIZATION2, literally, and 1: for each group of elements along
 * the axes its mean and variance, in the documented order of sums, then its elements.  Every operation rounds to float
 * (FLOAT64: double).  RELU is the only activation. */
#include <math.h>

#include "tests/reference/reference.h"

typedef struct group {
    ref_tensor in;
    const void *base;
    uint32_t axes, lanes, at[8];
    uint64_t count;
    const double *mean; /* what terms of a sum are off; NULL: 0 */
    bool squares;       /* of what they are off */
} group;

static double rounded(const group *g, double x)
{
    return ref_rounded(g->in.dtype, x);
}

/* The coordinates of element k of those that are normalised together, row-major over the axes. */
static void coordinates(const group *g, uint64_t k, uint32_t at[8])
{
    for (uint32_t d = g->in.rank; d-- > 0;) {
        const bool along = (g->axes >> d & 1) != 0;
        at[d] = along ? (uint32_t)(k % g->in.sizes[d]) : g->at[d];
        k = along ? k / g->in.sizes[d] : k;
    }
}

static double element(const group *g, uint64_t k)
{
    uint32_t at[8];
    coordinates(g, k, at);
    return ref_real(g->in.dtype, ref_get(&g->in, g->base, at));
}

static double term(void *user, uint64_t k)
{
    const group *g = user;
    const double x = g->mean == NULL ? element(g, k) : rounded(g, element(g, k) - *g->mean);
    return g->squares ? rounded(g, x * x) : x;
}

/* The average of the elements' distances from the mean, or of their squares. */
static double average(const group *g, const double *mean, bool squares)
{
    group terms = *g;
    terms.mean = mean;
    terms.squares = squares;
    return rounded(g, ref_sum(g->in.dtype, g->lanes, g->count, term, &terms) / rounded(g, (double)g->count));
}

/* Scale or Bias at these coordinates; a size of 1 applies to all. */
static double factor(const DML_TENSOR_DESC *desc, const void *base, const uint32_t at[8])
{
    const ref_tensor t = ref_tensor_of(desc);
    uint32_t own[8];
    for (uint32_t d = 0; d < t.rank; d++)
        own[d] = t.sizes[d] == 1 ? 0 : at[d];
    return ref_real(t.dtype, ref_get(&t, base, own));
}

/* Normalises the elements with the coordinates g->at, except along the axes. */
static void normalise(const DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC *desc, const group *g, const void *scale,
                      const void *bias, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const double mean = average(g, NULL, false), variance = average(g, desc->UseMean ? &mean : NULL, true);
    const double deviation = rounded(g, sqrt(rounded(g, variance + (double)desc->Epsilon)));
    for (uint64_t k = 0; k < g->count; k++) {
        uint32_t at[8];
        coordinates(g, k, at);
        double x = element(g, k);
        if (desc->UseMean)
            x = rounded(g, x - mean);
        if (desc->UseVariance)
            x = rounded(g, x / deviation);
        if (scale != NULL)
            x = rounded(g, factor(desc->ScaleTensor, scale, at) * x);
        if (bias != NULL)
            x = rounded(g, x + factor(desc->BiasTensor, bias, at));
        if (desc->FusedActivation != NULL)
            x = x > 0 || x != x ? x : 0;
        ref_set(&out, output, at, ref_real_bits(out.dtype, x));
    }
}

void ref_mean_variance_normalization2(const DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC *desc, const void *input,
                                      const void *scale, const void *bias, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    group g = { .in = ref_tensor_of(desc->InputTensor), .base = input, .count = 1 };
    for (uint32_t i = 0; i < desc->AxisCount; i++)
        g.axes |= 1u << desc->Axes[i];
    for (uint32_t d = 0; d < g.in.rank; d++)
        g.count *= (g.axes >> d & 1) != 0 ? g.in.sizes[d] : 1;
    g.lanes = ref_sum_lanes(&g.in, g.axes);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        bool first = true;
        ref_tensor_coordinates(&out, e, g.at);
        for (uint32_t d = 0; d < g.in.rank; d++)
            first = first && ((g.axes >> d & 1) == 0 || g.at[d] == 0);
        if (first)
            normalise(desc, &g, scale, bias, output);
    }
}

void ref_mean_variance_normalization1(const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *desc, const void *input,
                                      const void *scale, const void *bias, void *output)
{
    const DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC same = { desc->InputTensor,
                                                                  desc->ScaleTensor,
                                                                  desc->BiasTensor,
                                                                  desc->OutputTensor,
                                                                  desc->AxisCount,
                                                                  desc->Axes,
                                                                  1,
                                                                  desc->NormalizeVariance,
                                                                  desc->Epsilon,
                                                                  desc->FusedActivation };
    ref_mean_variance_normalization2(&same, input, scale, bias, output);
}
