/* SPDX-License-Identifier: Apache-2.0 */
/* ref_resample.c - resampling by the book, one dimension after the other, from the last one on: the values so far are a
 * packed array of doubles, each rounded to what the type is computed in.  Coordinates are computed in float. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

typedef struct field {
    uint32_t rank, sizes[4];
    double *at;
} field;

static bool keeps(const DML_RESAMPLE3_OPERATOR_DESC *desc, uint32_t d)
{
    return desc->Scales[d] == 1 && desc->InputPixelOffsets[d] + desc->OutputPixelOffsets[d] == 0;
}

static float place(const DML_RESAMPLE3_OPERATOR_DESC *desc, float half, uint32_t d, uint32_t o)
{
    if (keeps(desc, d))
        return (float)o;
    const float input = desc->InputPixelOffsets[d] - half;
    const float moved = (float)o - desc->OutputPixelOffsets[d];
    const float scaled = moved / desc->Scales[d];
    return scaled - input;
}

static uint32_t inside(double x, uint32_t size)
{
    return x < 0 ? 0 : x > size - 1 ? size - 1 : (uint32_t)x;
}

/* The weights that elements of a line have in coordinate o of the other one, and of which elements, in order; how
 * many. */
typedef struct part {
    uint32_t from;
    double weight;
} part;

static double rounded(DML_TENSOR_DATA_TYPE type, double x)
{
    return type == DML_TENSOR_DATA_TYPE_FLOAT64 ? x : (double)(float)x;
}

static uint32_t parts_of(const DML_RESAMPLE3_OPERATOR_DESC *desc, float half, DML_TENSOR_DATA_TYPE type, uint32_t d,
                         uint32_t o, uint32_t size, part *parts)
{
    const float x = place(desc, half, d, o), low = floorf(x), t = x - low;
    if (keeps(desc, d)) {
        parts[0] = (part){ inside(o, size), 1 };
        return 1;
    }
    if (desc->InterpolationMode == DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR) {
        const bool up = desc->RoundingDirection == DML_AXIS_DIRECTION_INCREASING && half == 0;
        parts[0] = (part){ inside(up ? (double)ceilf(x) : (double)low, size), 1 };
        return 1;
    }
    if (!desc->Antialiased || !(1 / desc->Scales[d] > 2)) {
        parts[0] = (part){ inside(low, size), rounded(type, 1 - (double)t) };
        parts[1] = (part){ inside((double)low + 1, size), t };
        return 2;
    }
    const int first = (int)floorf(-1 / desc->Scales[d]) + 1;
    for (int k = 0; k < 2 - 2 * first; k++) {
        const float far = ((float)(first + k) - t) * desc->Scales[d], w = 1 - fabsf(far);
        parts[k] = (part){ inside((double)low + first + k, size), w > 0 || isnan(w) ? (double)w : 0 };
    }
    return (uint32_t)(2 - 2 * first);
}

enum { PARTS = 4096 };

/* Element (outer, k, inner) of an array whose middle dimension has `size` elements. */
static double *element(const field *f, uint32_t d, uint64_t outer, uint32_t k, uint64_t inner)
{
    uint64_t below = 1;
    for (uint32_t i = d + 1; i < f->rank; i++)
        below *= f->sizes[i];
    return &f->at[(outer * f->sizes[d] + k) * below + inner];
}

static field resized(const field *f, uint32_t d, uint32_t size, uint64_t *outer, uint64_t *inner)
{
    field to = *f;
    to.sizes[d] = size;
    *outer = *inner = 1;
    for (uint32_t i = 0; i < f->rank; i++)
        *(i < d ? outer : inner) *= i == d ? 1 : f->sizes[i];
    to.at = calloc(*outer * size * *inner, sizeof *to.at);
    return to;
}

static void along(field *f, const DML_RESAMPLE3_OPERATOR_DESC *desc, float half, DML_TENSOR_DATA_TYPE type, uint32_t d,
                  uint32_t size)
{
    static part parts[PARTS];
    const bool smooth =
        desc->InterpolationMode == DML_INTERPOLATION_MODE_LINEAR && desc->Antialiased && 1 / desc->Scales[d] > 2;
    uint64_t outer, inner;
    const field to = resized(f, d, size, &outer, &inner);
    for (uint32_t o = 0; o < size; o++) {
        const uint32_t count = parts_of(desc, half, type, d, o, f->sizes[d], parts);
        double total = 0;
        for (uint32_t k = 0; k < count; k++)
            total = rounded(type, total + parts[k].weight);
        for (uint64_t i = 0; i < outer * inner; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < count; k++) {
                const double x = *element(f, d, i / inner, parts[k].from, i % inner);
                const double y = count == 1 ? x : rounded(type, x * parts[k].weight);
                sum = k == 0 && !smooth ? y : rounded(type, sum + y);
            }
            *element(&to, d, i / inner, o, i % inner) = smooth ? rounded(type, sum / total) : sum;
        }
    }
    free(f->at);
    *f = to;
}

/* The other way: every coordinate of the large line gives its parts to elements of the small one. */
static void along_gradient(field *f, const DML_RESAMPLE3_OPERATOR_DESC *desc, float half, DML_TENSOR_DATA_TYPE type,
                           uint32_t d, uint32_t size)
{
    static part parts[PARTS];
    uint64_t outer, inner;
    const field to = resized(f, d, size, &outer, &inner);
    for (uint32_t o = 0; o < f->sizes[d]; o++) {
        const uint32_t count = parts_of(desc, half, type, d, o, size, parts);
        if (count == 2 && parts[0].from == parts[1].from) { /* both are the edge */
            parts[0].weight = rounded(type, parts[0].weight + parts[1].weight);
            parts[1].weight = 0;
        }
        for (uint64_t i = 0; i < outer * inner; i++)
            for (uint32_t k = 0; k < count; k++) {
                double *sum = element(&to, d, i / inner, parts[k].from, i % inner);
                const double x = *element(f, d, i / inner, o, i % inner);
                if (parts[k].weight != 0)
                    *sum = rounded(type, *sum + rounded(type, x * parts[k].weight));
            }
    }
    free(f->at);
    *f = to;
}

static double number(const ref_tensor *t, uint64_t bits)
{
    return ref_dtype_is_float(t->dtype)            ? ref_real(t->dtype, bits)
           : t->dtype == DML_TENSOR_DATA_TYPE_INT8 ? (double)(int8_t)bits
                                                   : (double)bits;
}

/* An integer, which a mean can't leave the range of. */
static uint64_t bits_of(DML_TENSOR_DATA_TYPE type, double x)
{
    const double low = type == DML_TENSOR_DATA_TYPE_INT8 ? -128 : 0;
    const double y = isnan(x) ? 0 : rint(x) < low ? low : rint(x) > low + 255 ? low + 255 : rint(x);
    return ref_dtype_is_float(type) ? ref_real_bits(type, x) : (uint64_t)(int64_t)y;
}

static void resample(const DML_RESAMPLE3_OPERATOR_DESC *desc, float half, bool gradient, const void *input,
                     void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    const uint64_t count = ref_tensor_elements(&in);
    uint32_t at[8];
    field f = { .rank = in.rank, .at = malloc(count * sizeof *f.at) };
    memcpy(f.sizes, in.sizes, in.rank * sizeof *f.sizes);
    for (uint64_t e = 0; e < count; e++) {
        ref_tensor_coordinates(&in, e, at);
        f.at[e] = number(&in, ref_get(&in, input, at));
    }
    for (uint32_t d = in.rank; d-- > 0;)
        if (in.sizes[d] != out.sizes[d] || !keeps(desc, d))
            (gradient ? along_gradient : along)(&f, desc, half, in.dtype, d, out.sizes[d]);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        ref_set(&out, output, at, bits_of(out.dtype, f.at[e]));
    }
    free(f.at);
}

void ref_resample3(const DML_RESAMPLE3_OPERATOR_DESC *desc, bool halves, const void *input, void *output)
{
    const bool nearest = desc->InterpolationMode == DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR;
    resample(desc, halves && nearest ? 0.5f : 0, false, input, output);
}

void ref_resample_grad(const DML_RESAMPLE3_OPERATOR_DESC *desc, bool halves, const void *input, void *output)
{
    const bool nearest = desc->InterpolationMode == DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR;
    resample(desc, halves && nearest ? 0.5f : 0, true, input, output);
}
