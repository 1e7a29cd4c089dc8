/* SPDX-License-Identifier: Apache-2.0 */
/* ref_unfold.c - UNFOLD and FOLD by the book: for every window of the image, its taps. */
#include <string.h>

#include "tests/reference/reference.h"

typedef struct folding {
    ref_tensor image, matrix;
    const void *base; /* the matrix' */
    uint32_t count;
    const uint32_t *sizes, *strides, *dilations, *start;
    uint64_t taps, along[6]; /* windows in each dimension */
    uint32_t at[8];          /* of an element of the image */
} folding;

static folding folding_of(const ref_tensor image, const ref_tensor matrix, const DML_UNFOLD_OPERATOR_DESC *desc)
{
    folding s = { .image = image,
                  .matrix = matrix,
                  .count = desc->DimensionCount,
                  .sizes = desc->WindowSizes,
                  .strides = desc->Strides,
                  .dilations = desc->Dilations,
                  .start = desc->StartPadding,
                  .taps = 1 };
    for (uint32_t d = 0; d < s.count; d++) {
        const uint64_t padded = (uint64_t)image.sizes[2 + d] + desc->StartPadding[d] + desc->EndPadding[d];
        s.along[d] = (padded - (uint64_t)s.dilations[d] * (s.sizes[d] - 1) - 1) / s.strides[d] + 1;
        s.taps *= s.sizes[d];
    }
    return s;
}

static void matrix_at(const folding *s, uint32_t batch, uint64_t row, uint64_t column, uint32_t at[8])
{
    memset(at, 0, 8 * sizeof *at);
    at[s->matrix.rank - 3] = batch;
    at[s->matrix.rank - 2] = (uint32_t)row;
    at[s->matrix.rank - 1] = (uint32_t)column;
}

void ref_unfold(const DML_UNFOLD_OPERATOR_DESC *desc, const void *input, void *output)
{
    const folding s = folding_of(ref_tensor_of(desc->InputTensor), ref_tensor_of(desc->OutputTensor), desc);
    const uint32_t *sizes = &s.matrix.sizes[s.matrix.rank - 3];
    for (uint64_t e = 0; e < ref_tensor_elements(&s.matrix); e++) {
        const uint64_t column = e % sizes[2], row = e / sizes[2] % sizes[1];
        const uint32_t batch = (uint32_t)(e / sizes[2] / sizes[1]);
        uint64_t window = column, tap = row % s.taps;
        uint32_t from[8] = { batch, (uint32_t)(row / s.taps) }, to[8];
        bool inside = true;
        for (uint32_t d = s.count; d-- > 0; window /= s.along[d], tap /= s.sizes[d]) {
            const int64_t x =
                (int64_t)(window % s.along[d] * s.strides[d] + tap % s.sizes[d] * s.dilations[d]) - s.start[d];
            inside = inside && x >= 0 && x < s.image.sizes[2 + d];
            from[2 + d] = (uint32_t)x;
        }
        matrix_at(&s, batch, row, column, to);
        ref_set(&s.matrix, output, to, inside ? ref_get(&s.image, input, from) : 0);
    }
}

static uint64_t holders_along(const folding *s, uint32_t d)
{
    return ref_holders(s->sizes[d], s->strides[d], s->dilations[d], s->along[d]);
}

/* The part of the image's element that window number k gives, of those that may hold it; false: there is none. */
static bool part(const folding *s, uint64_t k, uint64_t *bits)
{
    uint64_t tap = 0, taps = 1, column = 0, below = 1;
    uint32_t from[8];
    for (uint32_t d = s->count; d-- > 0; k /= holders_along(s, d)) {
        int64_t own;
        const int64_t o = ref_holder(k % holders_along(s, d), (int64_t)s->at[2 + d] + s->start[d], s->sizes[d],
                                     s->strides[d], s->dilations[d], s->along[d], &own);
        if (o < 0)
            return false;
        column += (uint64_t)o * below;
        below *= s->along[d];
        tap += (uint64_t)own * taps;
        taps *= s->sizes[d];
    }
    matrix_at(s, s->at[0], s->at[1] * s->taps + tap, column, from);
    *bits = ref_get(&s->matrix, s->base, from);
    return true;
}

static double real_part(void *user, uint64_t k)
{
    const folding *s = user;
    uint64_t bits;
    return part(s, k, &bits) ? ref_real(s->image.dtype, bits) : 0;
}

void ref_fold(const DML_FOLD_OPERATOR_DESC *desc, const void *input, void *output)
{
    const DML_UNFOLD_OPERATOR_DESC same = { NULL,
                                            NULL,
                                            desc->DimensionCount,
                                            desc->WindowSizes,
                                            desc->Strides,
                                            desc->Dilations,
                                            desc->StartPadding,
                                            desc->EndPadding };
    folding s = folding_of(ref_tensor_of(desc->OutputTensor), ref_tensor_of(desc->InputTensor), &same);
    const DML_TENSOR_DATA_TYPE type = s.image.dtype;
    s.base = input;
    for (uint64_t e = 0; e < ref_tensor_elements(&s.image); e++) {
        uint64_t sum = 0, bits, holders = 1;
        for (uint32_t d = 0; d < s.count; d++)
            holders *= holders_along(&s, d);
        ref_tensor_coordinates(&s.image, e, s.at);
        for (uint64_t k = 0; k < holders && !ref_dtype_is_float(type); k++)
            sum += part(&s, k, &bits) ? bits : 0; /* modulo 2^N */
        if (ref_dtype_is_float(type))
            sum = ref_real_bits(type, ref_sum(type, 1, holders, real_part, &s));
        ref_set(&s.image, output, s.at, sum);
    }
}
