/* SPDX-License-Identifier: Apache-2.0 */
/* ref_mean_variance_normalization.c - MEAN_VARIANCE_NORMALIZATION1 by the book: for each group of elements along the
 * axes its mean and variance, in the documented order of sums, then its elements.  Every operation rounds to float
 * (FLOAT64: double); of activations RELU alone. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

static double value_of(DML_TENSOR_DATA_TYPE type, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    double d;
    float f;
    memcpy(&d, &bits, 8);
    memcpy(&f, &word, 4);
    return type == DML_TENSOR_DATA_TYPE_FLOAT16   ? ref_float_of_half((uint16_t)bits)
           : type == DML_TENSOR_DATA_TYPE_FLOAT32 ? f
                                                  : d;
}

static uint64_t bits_of(DML_TENSOR_DATA_TYPE type, double x)
{
    const float f = (float)x;
    uint32_t word;
    uint64_t bits;
    memcpy(&word, &f, 4);
    memcpy(&bits, &x, 8);
    return type == DML_TENSOR_DATA_TYPE_FLOAT16   ? ref_half_of_float(f)
           : type == DML_TENSOR_DATA_TYPE_FLOAT32 ? word
                                                  : bits;
}

typedef struct group {
    ref_tensor in;
    const void *base;
    uint32_t axes, lanes, at[8];
    uint64_t count;
} group;

/* Double has more than twice the digits of float, so rounding twice is rounding once. */
static double rounded(const group *g, double x)
{
    return g->in.dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? x : (double)(float)x;
}

/* Where element k of those that are normalised together is, row-major over the axes. */
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
    return value_of(g->in.dtype, ref_get(&g->in, g->base, at));
}

/* Of the elements, or of the squares of what they are off the mean. */
static double average(const group *g, const double *mean)
{
    double total = 0;
    for (uint64_t first = 0; first < g->count; first += 4096) {
        double lane[32] = { 0 };
        for (uint64_t k = first; k < g->count && k < first + 4096; k++) {
            double x = element(g, k);
            if (mean != NULL) {
                x = rounded(g, x - *mean);
                x = rounded(g, x * x);
            }
            lane[k % g->lanes] = rounded(g, lane[k % g->lanes] + x);
        }
        for (uint32_t half = g->lanes / 2; half > 0; half /= 2)
            for (uint32_t i = 0; i < half; i++)
                lane[i] = rounded(g, lane[i] + lane[i + half]);
        total = first == 0 ? lane[0] : rounded(g, total + lane[0]);
    }
    return rounded(g, total / rounded(g, (double)g->count));
}

/* Scale or Bias there, whose sizes of 1 stand for all. */
static double factor(const DML_TENSOR_DESC *desc, const void *base, const uint32_t at[8])
{
    const ref_tensor t = ref_tensor_of(desc);
    uint32_t own[8];
    for (uint32_t d = 0; d < t.rank; d++)
        own[d] = t.sizes[d] == 1 ? 0 : at[d];
    return value_of(t.dtype, ref_get(&t, base, own));
}

/* The elements that have the coordinates g->at but along the axes. */
static void normalise(const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *desc, const group *g, const void *scale,
                      const void *bias, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const double mean = average(g, NULL);
    const double deviation = rounded(g, sqrt(rounded(g, average(g, &mean) + (double)desc->Epsilon)));
    for (uint64_t k = 0; k < g->count; k++) {
        uint32_t at[8];
        coordinates(g, k, at);
        double x = rounded(g, element(g, k) - mean);
        if (desc->NormalizeVariance)
            x = rounded(g, x / deviation);
        if (scale != NULL)
            x = rounded(g, factor(desc->ScaleTensor, scale, at) * x);
        if (bias != NULL)
            x = rounded(g, x + factor(desc->BiasTensor, bias, at));
        if (desc->FusedActivation != NULL)
            x = x > 0 || x != x ? x : 0;
        ref_set(&out, output, at, bits_of(out.dtype, x));
    }
}

void ref_mean_variance_normalization1(const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *desc, const void *input,
                                      const void *scale, const void *bias, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    group g = { .in = ref_tensor_of(desc->InputTensor), .base = input, .lanes = 1, .count = 1 };
    for (uint32_t i = 0; i < desc->AxisCount; i++)
        g.axes |= 1u << desc->Axes[i];
    for (uint32_t d = 0; d < g.in.rank; d++) {
        if (g.in.sizes[d] > 1)
            g.lanes = (g.axes >> d & 1) != 0 ? 32 : 1;
        g.count *= (g.axes >> d & 1) != 0 ? g.in.sizes[d] : 1;
    }
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        bool first = true;
        ref_tensor_coordinates(&out, e, g.at);
        for (uint32_t d = 0; d < g.in.rank; d++)
            first = first && ((g.axes >> d & 1) == 0 || g.at[d] == 0);
        if (first)
            normalise(desc, &g, scale, bias, output);
    }
}
