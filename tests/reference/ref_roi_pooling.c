/* SPDX-License-Identifier: Apache-2.0 */
/* ref_roi_pooling.c - ROI_POOLING by the book. */
#include <math.h>

#include "tests/reference/reference.h"

static int64_t corner(const ref_tensor *t, const void *regions, uint32_t region, uint32_t k, float scale)
{
    const uint32_t at[8] = { 0, 0, region, k };
    const double most = 1 << 29, x = ref_rounded(t->dtype, ref_real(t->dtype, ref_get(t, regions, at)) * (double)scale);
    const double near = isnan(x) ? 0 : round(x);
    return near > most ? 1 << 29 : near < -most ? -(1 << 29) : (int64_t)near;
}

static int64_t clamped(int64_t x, uint32_t size)
{
    return x < 0 ? 0 : x > size ? size : x;
}

/* The first element of a part, or, with `up`, the one behind its last. */
static int64_t begin(int64_t first, int64_t last, uint32_t part, uint32_t parts, bool up, uint32_t size)
{
    const int64_t length = last - first + 1 < 1 ? 1 : last - first + 1;
    return clamped((part * length + (up ? parts - 1 : 0)) / parts + first, size);
}

void ref_roi_pooling(const DML_ROI_POOLING_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), regions = ref_tensor_of(desc->ROITensor),
                     out = ref_tensor_of(desc->OutputTensor);
    const uint32_t height = desc->PooledSize.Height, width = desc->PooledSize.Width;
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        int64_t c[4];
        double most = 0;
        bool any = false;
        ref_tensor_coordinates(&out, e, at);
        for (uint32_t k = 0; k < 4; k++)
            c[k] = corner(&regions, inputs[1], at[0], 1 + k, desc->SpatialScale);
        const uint32_t head[8] = { 0, 0, at[0], 0 };
        const double batch = trunc(ref_real(regions.dtype, ref_get(&regions, inputs[1], head)));
        const uint32_t image = !(batch > 0) ? 0 : batch > in.sizes[0] - 1 ? in.sizes[0] - 1 : (uint32_t)batch;
        for (int64_t y = begin(c[1], c[3], at[2], height, false, in.sizes[2]);
             y < begin(c[1], c[3], at[2] + 1, height, true, in.sizes[2]); y++)
            for (int64_t x = begin(c[0], c[2], at[3], width, false, in.sizes[3]);
                 x < begin(c[0], c[2], at[3] + 1, width, true, in.sizes[3]); x++) {
                const uint32_t of[8] = { image, at[1], (uint32_t)y, (uint32_t)x };
                const double value = ref_real(in.dtype, ref_get(&in, inputs[0], of));
                if (!any || !(most > value || isnan(most)))
                    most = value;
                any = true;
            }
        ref_set(&out, output, at, ref_real_bits(out.dtype, most));
    }
}
