/* SPDX-License-Identifier: Apache-2.0 */
/* ref_integer_products.c - products of matrices, and convolutions, of integers less their zero points: each element a
 * sum in 32 bits; as floats, and quantized. */
#include <math.h>

#include "tests/reference/reference.h"

/* An input's element as a number modulo 2^32, and as a real number; `along` is its coordinate wherever the tensor has
 * more than one element.  Absent: 0. */
static uint64_t bits_along(const DML_TENSOR_DESC *desc, const void *base, uint32_t along, ref_tensor *t)
{
    uint32_t at[8];
    *t = ref_tensor_of(desc);
    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = t->sizes[d] == 1 ? 0 : along;
    return ref_get(t, base, at);
}

static uint32_t word_of(const ref_tensor *t, uint64_t bits)
{
    return t->dtype == DML_TENSOR_DATA_TYPE_INT8    ? (uint32_t)(int8_t)bits
           : t->dtype == DML_TENSOR_DATA_TYPE_INT16 ? (uint32_t)(int16_t)bits
                                                    : (uint32_t)bits;
}

static uint32_t word_along(const DML_TENSOR_DESC *desc, const void *base, uint32_t along)
{
    ref_tensor t;
    if (desc == NULL)
        return 0;
    const uint64_t bits = bits_along(desc, base, along, &t);
    return word_of(&t, bits);
}

static double real_along(const DML_TENSOR_DESC *desc, const void *base, uint32_t along)
{
    ref_tensor t;
    const uint64_t bits = bits_along(desc, base, along, &t);
    return ref_real(t.dtype, bits);
}

static double scaled(DML_TENSOR_DATA_TYPE dtype, uint32_t sum, double a_scale, double b_scale)
{
    return ref_rounded(dtype, ref_rounded(dtype, (double)(int32_t)sum) * ref_rounded(dtype, a_scale * b_scale));
}

static uint64_t quantized(DML_TENSOR_DATA_TYPE dtype, uint32_t products, double a_scale, double b_scale, double scale,
                          uint32_t zero_point)
{
    const bool is_signed = dtype == DML_TENSOR_DATA_TYPE_INT8;
    const float factor = (float)((double)(float)(a_scale * b_scale) / scale);
    const double x = rint((double)((float)(int32_t)products * factor));
    const double sum = (isnan(x) ? 0 : x) + (double)(int32_t)zero_point;
    return (uint64_t)(int64_t)fmin(fmax(sum, is_signed ? -128 : 0), is_signed ? 127 : 255);
}

/* --- matrices ----------------------------------------------------------------------------------------------------- */

typedef struct factor {
    const DML_TENSOR_DESC *desc, *zero;
    const void *base, *zero_base;
} factor;

static uint32_t product(const factor *a, const factor *b, const uint32_t at[8], uint32_t rank)
{
    const ref_tensor ta = ref_tensor_of(a->desc), tb = ref_tensor_of(b->desc);
    const uint32_t row = at[rank - 2], column = at[rank - 1];
    const uint32_t a_zero = word_along(a->zero, a->zero_base, row), b_zero = word_along(b->zero, b->zero_base, column);
    uint32_t sum = 0, in_a[8], in_b[8];
    for (uint32_t d = 0; d < 8; d++)
        in_a[d] = in_b[d] = d < rank ? at[d] : 0;
    for (uint32_t k = 0; k < ta.sizes[rank - 1]; k++) {
        in_a[rank - 1] = in_b[rank - 2] = k;
        sum +=
            (word_of(&ta, ref_get(&ta, a->base, in_a)) - a_zero) * (word_of(&tb, ref_get(&tb, b->base, in_b)) - b_zero);
    }
    return sum;
}

void ref_matrix_multiply_integer(const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const factor a = { desc->ATensor, desc->AZeroPointTensor, inputs[0], inputs[1] };
    const factor b = { desc->BTensor, desc->BZeroPointTensor, inputs[2], inputs[3] };
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        ref_set(&out, output, at, product(&a, &b, at, out.rank));
    }
}

void ref_matrix_multiply_integer_to_float(const DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const factor a = { desc->ATensor, desc->AZeroPointTensor, inputs[0], inputs[2] };
    const factor b = { desc->BTensor, desc->BZeroPointTensor, inputs[3], inputs[5] };
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        double x = scaled(out.dtype, product(&a, &b, at, out.rank),
                          real_along(desc->AScaleTensor, inputs[1], at[out.rank - 2]),
                          real_along(desc->BScaleTensor, inputs[4], at[out.rank - 1]));
        if (desc->BiasTensor != NULL) {
            const ref_tensor bias = ref_tensor_of(desc->BiasTensor);
            x = ref_rounded(out.dtype, x + ref_real(bias.dtype, ref_get(&bias, inputs[6], at)));
        }
        ref_set(&out, output, at, ref_real_bits(out.dtype, x));
    }
}

void ref_quantized_linear_matrix_multiply(const DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const factor a = { desc->ATensor, desc->AZeroPointTensor, inputs[0], inputs[2] };
    const factor b = { desc->BTensor, desc->BZeroPointTensor, inputs[3], inputs[5] };
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const uint32_t row = at[out.rank - 2], column = at[out.rank - 1];
        ref_set(&out, output, at,
                quantized(out.dtype, product(&a, &b, at, out.rank), real_along(desc->AScaleTensor, inputs[1], row),
                          real_along(desc->BScaleTensor, inputs[4], column),
                          real_along(desc->OutputScaleTensor, inputs[6], row),
                          word_along(desc->OutputZeroPointTensor, inputs[7], row)));
    }
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

typedef struct convolution {
    factor input, filter;
    const uint32_t *strides, *dilations, *start;
    uint32_t groups;
} convolution;

static uint32_t convolved(const convolution *c, const ref_tensor *out, const uint32_t at[8])
{
    const ref_tensor in = ref_tensor_of(c->input.desc), filter = ref_tensor_of(c->filter.desc);
    const uint32_t depth = in.sizes[1] / c->groups, group = at[1] / (out->sizes[1] / c->groups);
    const uint32_t zero = word_along(c->input.zero, c->input.zero_base, 0);
    const uint32_t filter_zero = word_along(c->filter.zero, c->filter.zero_base, at[1]);
    ref_tensor window = filter; /* its elements with this output channel */
    uint32_t sum = 0, tap[8], x[8];
    window.sizes[0] = 1;
    for (uint64_t e = 0; e < ref_tensor_elements(&window); e++) {
        bool inside = true;
        ref_tensor_coordinates(&window, e, tap);
        tap[0] = at[1];
        x[0] = at[0];
        x[1] = group * depth + tap[1];
        for (uint32_t i = 0; i + 2 < in.rank; i++) {
            const int64_t place =
                (int64_t)at[2 + i] * c->strides[i] + (int64_t)tap[2 + i] * c->dilations[i] - c->start[i];
            inside = inside && place >= 0 && place < in.sizes[2 + i];
            x[2 + i] = (uint32_t)place;
        }
        if (inside)
            sum += (word_of(&in, ref_get(&in, c->input.base, x)) - zero) *
                   (word_of(&filter, ref_get(&filter, c->filter.base, tap)) - filter_zero);
    }
    return sum;
}

void ref_convolution_integer(const DML_CONVOLUTION_INTEGER_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const convolution c = { { desc->InputTensor, desc->InputZeroPointTensor, inputs[0], inputs[1] },
                            { desc->FilterTensor, desc->FilterZeroPointTensor, inputs[2], inputs[3] },
                            desc->Strides,
                            desc->Dilations,
                            desc->StartPadding,
                            desc->GroupCount };
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        ref_set(&out, output, at, convolved(&c, &out, at));
    }
}

void ref_quantized_linear_convolution(const DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC *desc, ref_inputs inputs,
                                      void *output)
{
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const convolution c = { { desc->InputTensor, desc->InputZeroPointTensor, inputs[0], inputs[2] },
                            { desc->FilterTensor, desc->FilterZeroPointTensor, inputs[3], inputs[5] },
                            desc->Strides,
                            desc->Dilations,
                            desc->StartPadding,
                            desc->GroupCount };
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        const uint32_t sum = convolved(&c, &out, at) + word_along(desc->BiasTensor, inputs[6], at[1]);
        ref_set(&out, output, at,
                quantized(out.dtype, sum, real_along(desc->InputScaleTensor, inputs[1], 0),
                          real_along(desc->FilterScaleTensor, inputs[4], at[1]),
                          real_along(desc->OutputScaleTensor, inputs[7], 0),
                          word_along(desc->OutputZeroPointTensor, inputs[8], 0)));
    }
}
