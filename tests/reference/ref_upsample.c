/* SPDX-License-Identifier: Apache-2.0 */
/* ref_upsample.c - UPSAMPLE_2D by the book: between two elements of two rows. */
#include <math.h>
#include <string.h>

#include "tests/reference/reference.h"

/* The elements at both sides of output coordinate o, and where between them it lies. */
typedef struct sides {
    uint32_t low, high;
    float t;
} sides;

static sides sides_of(uint32_t o, uint32_t scale, uint32_t size)
{
    const float moved = (float)o + 0.5f, scaled = moved / (float)scale, x = scaled - 0.5f;
    const float low = floorf(x);
    const double next = (double)low + 1;
    if (scale == 1)
        return (sides){ o, o, 0 };
    return (sides){ low < 0 ? 0 : low > (float)(size - 1) ? size - 1 : (uint32_t)low,
                    next < 0 ? 0 : next > size - 1 ? size - 1 : (uint32_t)next, x - low };
}

static double between(DML_TENSOR_DATA_TYPE type, uint32_t scale, double a, double b, float t)
{
    if (scale == 1)
        return a;
    const double rest = ref_rounded(type, 1 - (double)t);
    return ref_rounded(type, ref_rounded(type, a * rest) + ref_rounded(type, b * t));
}

void ref_upsample_2d(const DML_UPSAMPLE_2D_OPERATOR_DESC *desc, const void *input, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    const uint32_t y = out.rank - 2, x = out.rank - 1, down = desc->ScaleSize.Height, across = desc->ScaleSize.Width;
    uint32_t at[8], from[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        memcpy(from, at, sizeof from);
        from[y] = at[y] / down;
        from[x] = at[x] / across;
        if (desc->InterpolationMode == DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR) {
            ref_set(&out, output, at, ref_get(&in, input, from));
            continue;
        }
        const sides rows = sides_of(at[y], down, in.sizes[y]), columns = sides_of(at[x], across, in.sizes[x]);
        double row[2];
        for (int i = 0; i < 2; i++) {
            from[y] = i == 0 ? rows.low : rows.high;
            from[x] = columns.low;
            const double a = ref_real(in.dtype, ref_get(&in, input, from));
            from[x] = columns.high;
            row[i] = between(in.dtype, across, a, ref_real(in.dtype, ref_get(&in, input, from)), columns.t);
        }
        ref_set(&out, output, at, ref_real_bits(out.dtype, between(in.dtype, down, row[0], row[1], rows.t)));
    }
}
