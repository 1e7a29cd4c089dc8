/* SPDX-License-Identifier: Apache-2.0 */
/* ref_pooling.c - pooling by the book: a loop over the elements of a window, or for gradients over all windows in their
 * order, each of which gives its part to the elements that it holds.  Every operation rounds to float (FLOAT64:
 * double); a sum has one lane. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

/* A tensor with its window, whose fields every descriptor has; tap and window numbers are row-major. */
typedef struct pool {
    ref_tensor image, pooled;
    const void *base; /* the image's */
    uint32_t count, p;
    const uint32_t *strides, *sizes, *start, *dilations;
    uint32_t window[8]; /* coordinates in the pooled tensor */
} pool;

static uint64_t taps_of(const pool *s)
{
    uint64_t taps = 1;
    for (uint32_t d = 0; d < s->count; d++)
        taps *= s->sizes[d];
    return taps;
}

/* Where a tap of the window lies; false: in the padding. */
static bool place(const pool *s, uint64_t tap, uint32_t at[8])
{
    bool inside = true;
    memcpy(at, s->window, 8 * sizeof *at);
    for (uint32_t d = s->count; d-- > 0; tap /= s->sizes[d]) {
        const int64_t x = (int64_t)s->window[d + 2] * s->strides[d] +
                          (int64_t)(tap % s->sizes[d]) * (s->dilations == NULL ? 1 : s->dilations[d]) - s->start[d];
        inside = inside && x >= 0 && x < (int64_t)s->image.sizes[d + 2];
        at[d + 2] = (uint32_t)x;
    }
    return inside;
}

static double taps_inside(const pool *s, bool include_padding)
{
    uint32_t at[8];
    uint64_t inside = 0;
    for (uint64_t tap = 0; tap < taps_of(s); tap++)
        inside += place(s, tap, at) || include_padding ? 1 : 0;
    return inside == 0 ? 1 : (double)inside;
}

static double element(void *user, uint64_t tap)
{
    const pool *s = user;
    uint32_t at[8];
    if (!place(s, tap, at))
        return 0;
    const double x = ref_real(s->image.dtype, ref_get(&s->image, s->base, at));
    return s->p == 0 ? x : s->p == 1 ? fabs(x) : ref_rounded(s->image.dtype, x * x);
}

void ref_average_pooling1(const DML_AVERAGE_POOLING1_OPERATOR_DESC *desc, const void *input, void *output)
{
    pool s = { ref_tensor_of(desc->InputTensor),
               ref_tensor_of(desc->OutputTensor),
               input,
               desc->DimensionCount,
               0,
               desc->Strides,
               desc->WindowSize,
               desc->StartPadding,
               desc->Dilations,
               { 0 } };
    const DML_TENSOR_DATA_TYPE type = s.image.dtype;
    for (uint64_t e = 0; e < ref_tensor_elements(&s.pooled); e++) {
        ref_tensor_coordinates(&s.pooled, e, s.window);
        const double sum = ref_sum(type, 1, taps_of(&s), element, &s);
        const double divisor = ref_rounded(type, taps_inside(&s, desc->IncludePadding != 0));
        ref_set(&s.pooled, output, s.window, ref_real_bits(type, ref_rounded(type, sum / divisor)));
    }
}

void ref_lp_pooling1(const DML_LP_POOLING1_OPERATOR_DESC *desc, const void *input, void *output)
{
    pool s = { ref_tensor_of(desc->InputTensor),
               ref_tensor_of(desc->OutputTensor),
               input,
               desc->DimensionCount,
               desc->P,
               desc->Strides,
               desc->WindowSize,
               desc->StartPadding,
               desc->Dilations,
               { 0 } };
    const DML_TENSOR_DATA_TYPE type = s.image.dtype;
    for (uint64_t e = 0; e < ref_tensor_elements(&s.pooled); e++) {
        ref_tensor_coordinates(&s.pooled, e, s.window);
        const double sum = ref_sum(type, 1, taps_of(&s), element, &s);
        ref_set(&s.pooled, output, s.window, ref_real_bits(type, s.p == 1 ? sum : ref_rounded(type, sqrt(sum))));
    }
}

/* --- quantized ---------------------------------------------------------------------------------------------------- */

/* The factor of a channel; a tensor of one number, or of one for each channel. */
static double factor(const DML_TENSOR_DESC *desc, const void *base, uint32_t channel)
{
    uint32_t at[8] = { 0 };
    if (desc == NULL)
        return 0;
    const ref_tensor t = ref_tensor_of(desc);
    for (uint32_t d = 0; d < t.rank; d++)
        at[d] = t.sizes[d] > 1 ? channel : 0;
    const uint64_t bits = ref_get(&t, base, at);
    return t.dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? ref_real(t.dtype, bits)
           : t.dtype == DML_TENSOR_DATA_TYPE_INT8  ? (int8_t)bits
                                                   : (uint8_t)bits;
}

typedef struct bytes {
    pool s;
    double zero, scale;
} bytes;

static double dequantized(void *user, uint64_t tap)
{
    const bytes *b = user;
    uint32_t at[8];
    if (!place(&b->s, tap, at))
        return 0;
    const uint64_t bits = ref_get(&b->s.image, b->s.base, at);
    const double x = b->s.image.dtype == DML_TENSOR_DATA_TYPE_INT8 ? (int8_t)bits : (uint8_t)bits;
    return (double)(float)((x - b->zero) * b->scale);
}

void ref_quantized_linear_average_pooling(const DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output)
{
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    const bool is_signed_byte = ref_tensor_of(desc->OutputTensor).dtype == DML_TENSOR_DATA_TYPE_INT8;
    const double low = is_signed_byte ? -128 : 0, high = low + 255;
    bytes b = { { ref_tensor_of(desc->InputTensor),
                  ref_tensor_of(desc->OutputTensor),
                  inputs[0],
                  desc->DimensionCount,
                  0,
                  desc->Strides,
                  desc->WindowSize,
                  desc->StartPadding,
                  desc->Dilations,
                  { 0 } },
                0,
                0 };
    for (uint64_t e = 0; e < ref_tensor_elements(&b.s.pooled); e++) {
        ref_tensor_coordinates(&b.s.pooled, e, b.s.window);
        const uint32_t channel = b.s.window[1];
        b.scale = factor(desc->InputScaleTensor, inputs[1], channel);
        b.zero = factor(desc->InputZeroPointTensor, inputs[2], channel);
        const double sum = ref_sum(type, 1, taps_of(&b.s), dequantized, &b);
        const double average = (double)(float)(sum / (double)(float)taps_inside(&b.s, desc->IncludePadding != 0));
        double y = rint((double)(float)(average / factor(desc->OutputScaleTensor, inputs[3], channel)));
        y = (isnan(y) ? 0 : y) + factor(desc->OutputZeroPointTensor, inputs[4], channel);
        ref_set(&b.s.pooled, output, b.s.window, (uint64_t)(int64_t)(y < low ? low : y > high ? high : y));
    }
}

/* --- maxima ------------------------------------------------------------------------------------------------------- */

static bool is_signed(DML_TENSOR_DATA_TYPE type)
{
    return type == DML_TENSOR_DATA_TYPE_INT64 || type == DML_TENSOR_DATA_TYPE_INT32 ||
           type == DML_TENSOR_DATA_TYPE_INT16 || type == DML_TENSOR_DATA_TYPE_INT8;
}

static int64_t signed_of(DML_TENSOR_DATA_TYPE type, uint64_t bits)
{
    const uint32_t unused = 64 - 8 * ref_dtype_size(type);
    return (int64_t)(bits << unused) >> unused;
}

static bool greater(DML_TENSOR_DATA_TYPE type, uint64_t a, uint64_t b)
{
    if (ref_dtype_is_float(type))
        return ref_real(type, a) > ref_real(type, b);
    return is_signed(type) ? signed_of(type, a) > signed_of(type, b) : a > b;
}

static bool same(DML_TENSOR_DATA_TYPE type, uint64_t a, uint64_t b)
{
    if (!ref_dtype_is_float(type))
        return a == b;
    return ref_real(type, a) == ref_real(type, b) || (ref_is_nan(type, a) && ref_is_nan(type, b));
}

static uint64_t least_of(DML_TENSOR_DATA_TYPE type)
{
    if (ref_dtype_is_float(type))
        return ref_real_bits(type, -INFINITY);
    return is_signed(type) ? UINT64_C(1) << (8 * ref_dtype_size(type) - 1) : 0;
}

/* The maximum of s->window; *out_index: the first element that equals it, UINT64_MAX: none. */
static uint64_t maximum(const pool *s, uint64_t *out_index)
{
    const DML_TENSOR_DATA_TYPE type = s->image.dtype;
    uint64_t max = least_of(type);
    uint32_t at[8];
    for (uint64_t tap = 0; tap < taps_of(s); tap++) {
        const uint64_t x = place(s, tap, at) ? ref_get(&s->image, s->base, at) : least_of(type);
        max = greater(type, max, x) || ref_is_nan(type, max) ? max : x;
    }
    *out_index = UINT64_MAX;
    for (uint64_t tap = taps_of(s); tap-- > 0;) {
        if (!place(s, tap, at) || !same(type, ref_get(&s->image, s->base, at), max))
            continue;
        *out_index = 0;
        for (uint32_t d = 0; d < s->image.rank; d++)
            *out_index = *out_index * s->image.sizes[d] + at[d];
    }
    return max;
}

void ref_max_pooling2(const DML_MAX_POOLING2_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    pool s = { ref_tensor_of(desc->InputTensor),
               ref_tensor_of(desc->OutputTensor),
               inputs[0],
               desc->DimensionCount,
               0,
               desc->Strides,
               desc->WindowSize,
               desc->StartPadding,
               desc->Dilations,
               { 0 } };
    for (uint64_t e = 0; e < ref_tensor_elements(&s.pooled); e++) {
        uint64_t index;
        ref_tensor_coordinates(&s.pooled, e, s.window);
        ref_set(&s.pooled, outputs[0], s.window, maximum(&s, &index));
        if (desc->OutputIndicesTensor == NULL)
            continue;
        const ref_tensor indices = ref_tensor_of(desc->OutputIndicesTensor);
        ref_set(&indices, outputs[1], s.window, index);
    }
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

/* The gradient that the window in s gives to the image's element at these coordinates; 0 where it gives none. */
typedef double part_of(const pool *s, const uint32_t at[8], double gradient, bool include_padding);

static double part_of_average(const pool *s, const uint32_t at[8], double gradient, bool include_padding)
{
    (void)at;
    return ref_rounded(s->image.dtype, gradient / ref_rounded(s->image.dtype, taps_inside(s, include_padding)));
}

static double part_of_maximum(const pool *s, const uint32_t at[8], double gradient, bool include_padding)
{
    uint64_t index, own = 0;
    (void)include_padding;
    (void)maximum(s, &index);
    for (uint32_t d = 0; d < s->image.rank; d++)
        own = own * s->image.sizes[d] + at[d];
    return own == index ? gradient : 0;
}

uint64_t ref_holders(uint64_t size, uint64_t stride, uint64_t dilation, uint64_t along)
{
    uint64_t count = 0;
    if (dilation != 1)
        return size;
    while (count * stride < size && count < along) /* windows whose begin is less than a window's size apart */
        count++;
    return count;
}

int64_t ref_holder(uint64_t j, int64_t x, uint64_t size, uint64_t stride, uint64_t dilation, uint64_t along,
                   int64_t *tap)
{
    int64_t first = 0;
    if (dilation == 1) {
        const uint64_t count = ref_holders(size, stride, dilation, along);
        while ((uint64_t)first + count < along && first * (int64_t)stride + (int64_t)size <= x)
            first++;
        *tap = x - (first + (int64_t)j) * (int64_t)stride;
        return *tap >= 0 && *tap < (int64_t)size ? first + (int64_t)j : -1;
    }
    *tap = (int64_t)(size - 1 - j);
    x -= *tap * (int64_t)dilation;
    return x < 0 || x % (int64_t)stride != 0 || (uint64_t)x / stride >= along ? -1 : x / (int64_t)stride;
}

static uint32_t dilation_of(const pool *s, uint32_t d) { return s->dilations == NULL ? 1 : s->dilations[d]; }

static uint64_t holders_along(const pool *s, uint32_t d)
{
    return ref_holders(s->sizes[d], s->strides[d], dilation_of(s, d), s->pooled.sizes[d + 2]);
}

static uint64_t holders_of(const pool *s)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < s->count; d++)
        count *= holders_along(s, d);
    return count;
}

/* Window number k, in their order, of those that may hold these coordinates; false: it does not. */
static bool find_window(pool *s, const uint32_t at[8], uint64_t k)
{
    memcpy(s->window, at, sizeof s->window);
    for (uint32_t d = s->count; d-- > 0; k /= holders_along(s, d)) {
        int64_t tap;
        const int64_t o = ref_holder(k % holders_along(s, d), (int64_t)at[d + 2] + s->start[d], s->sizes[d],
                                     s->strides[d], dilation_of(s, d), s->pooled.sizes[d + 2], &tap);
        if (o < 0)
            return false;
        s->window[d + 2] = (uint32_t)o;
    }
    return true;
}

typedef struct pixel {
    pool *s;
    const void *gradients;
    part_of *part;
    bool include_padding;
    uint32_t at[8];
} pixel;

static double part(void *user, uint64_t k)
{
    pixel *p = user;
    if (!find_window(p->s, p->at, k))
        return 0;
    const double gradient = ref_real(p->s->pooled.dtype, ref_get(&p->s->pooled, p->gradients, p->s->window));
    return p->part(p->s, p->at, gradient, p->include_padding);
}

static void gradients(pixel *p, void *output)
{
    const ref_tensor *image = &p->s->image;
    for (uint64_t e = 0; e < ref_tensor_elements(image); e++) {
        ref_tensor_coordinates(image, e, p->at);
        ref_set(image, output, p->at, ref_real_bits(image->dtype, ref_sum(image->dtype, 1, holders_of(p->s), part, p)));
    }
}

void ref_average_pooling_grad(const DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC *desc, const void *input, void *output)
{
    pool s = { ref_tensor_of(desc->OutputGradientTensor),
               ref_tensor_of(desc->InputGradientTensor),
               NULL,
               desc->DimensionCount,
               0,
               desc->Strides,
               desc->WindowSize,
               desc->StartPadding,
               NULL,
               { 0 } };
    gradients(&(pixel){ &s, input, part_of_average, desc->IncludePadding != 0, { 0 } }, output);
}

void ref_max_pooling_grad(const DML_MAX_POOLING_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputGradientTensor);
    pool s = { ref_tensor_of(desc->InputTensor),
               ref_tensor_of(desc->InputGradientTensor),
               inputs[0],
               desc->DimensionCount,
               0,
               desc->Strides,
               desc->WindowSize,
               desc->StartPadding,
               desc->Dilations,
               { 0 } };
    pixel p = { &s, inputs[1], part_of_maximum, false, { 0 } };
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) { /* its layout may be another one than the input's */
        ref_tensor_coordinates(&out, e, p.at);
        ref_set(&out, output, p.at, ref_real_bits(out.dtype, ref_sum(out.dtype, 1, holders_of(&s), part, &p)));
    }
}
