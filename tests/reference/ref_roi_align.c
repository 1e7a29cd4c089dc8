/* SPDX-License-Identifier: Apache-2.0 */
/* ref_roi_align.c - ROI_ALIGN1 by the book: samples one after the other, column by column.  Every operation is rounded
 * to FLOAT32, or is one of FLOAT64. */
#include <math.h>

#include "tests/reference/reference.h"

typedef struct axis {
    DML_TENSOR_DATA_TYPE type;
    double begin, step, input_offset, output_offset;
    uint64_t samples;
    uint32_t size; /* of the image */
    bool nearest;
} axis;

static double r(const axis *a, double x)
{
    return ref_rounded(a->type, x);
}

static uint64_t samples_of(const DML_ROI_ALIGN1_OPERATOR_DESC *desc, double each, uint32_t in, uint32_t out)
{
    const uint64_t least = desc->MinimumSamplesPerOutput == 0 ? 1 : desc->MinimumSamplesPerOutput;
    const uint64_t twice = (2 * (uint64_t)in + out - 1) / out;
    uint64_t most = desc->MaximumSamplesPerOutput < twice ? desc->MaximumSamplesPerOutput : twice;
    most = most < least ? least : most;
    const double up = ceil(each);
    return !(up > (double)least) ? least : up > (double)most ? most : (uint64_t)up;
}

static axis axis_of(const DML_ROI_ALIGN1_OPERATOR_DESC *desc, DML_TENSOR_DATA_TYPE type, double from, double to,
                    float scale, uint32_t in, uint32_t out)
{
    axis a = { .type = type,
               .input_offset = (double)desc->InputPixelOffset,
               .output_offset = (double)desc->OutputPixelOffset,
               .size = in,
               .nearest = desc->InterpolationMode == DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR };
    a.begin = r(&a, from * (double)scale);
    const double size = r(&a, r(&a, to * (double)scale) - a.begin);
    a.samples = samples_of(desc, r(&a, size / r(&a, (double)out)), in, out);
    uint64_t all = a.samples * out;
    if (desc->AlignRegionsToCorners && all > 1)
        all--;
    a.step = r(&a, size / r(&a, (double)all));
    return a;
}

/* Where a sample lies. */
static double place(const axis *a, uint32_t o, uint64_t s)
{
    const double own = r(a, (double)(o * a->samples + s)), moved = r(a, own - a->output_offset);
    return r(a, r(a, r(a, moved * a->step) + a->begin) - a->input_offset);
}

static bool is_inside(const axis *a, double x)
{
    return x >= -1 && x <= r(a, (double)a->size);
}

/* The elements at both sides of a place. */
static double sides(const axis *a, double x, uint32_t out[2])
{
    const double last = r(a, (double)a->size - 1), moved = x > last ? last : x > 0 ? x : 0;
    const double low = a->nearest ? ceil(r(a, moved - 0.5)) : floor(moved);
    out[0] = low <= 0 ? 0 : low >= a->size - 1 ? a->size - 1 : (uint32_t)low;
    out[1] = out[0] + 1 < a->size ? out[0] + 1 : out[0];
    return r(a, moved - floor(moved));
}

static double between(const axis *a, double x, double y, double t)
{
    return r(a, r(a, x * r(a, 1 - t)) + r(a, y * t));
}

static double sample(const axis *across, const axis *down, const ref_tensor *in, const void *input, uint32_t at[8],
                     double x, double y)
{
    uint32_t columns[2], rows[2];
    double row[2];
    const double tx = sides(across, x, columns), ty = sides(down, y, rows);
    for (int i = 0; i < 2; i++) {
        at[2] = rows[i];
        at[3] = columns[0];
        const double a = ref_real(in->dtype, ref_get(in, input, at));
        if (across->nearest)
            return a;
        at[3] = columns[1];
        row[i] = between(across, a, ref_real(in->dtype, ref_get(in, input, at)), tx);
    }
    return between(down, row[0], row[1], ty);
}

static double corner(const ref_tensor *t, const void *regions, uint32_t region, uint32_t k)
{
    uint32_t at[8] = { 0 };
    at[t->rank - 2] = region;
    at[t->rank - 1] = k;
    return ref_real(t->dtype, ref_get(t, regions, at));
}

void ref_roi_align1(const DML_ROI_ALIGN1_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), regions = ref_tensor_of(desc->ROITensor),
                     batches = ref_tensor_of(desc->BatchIndicesTensor), out = ref_tensor_of(desc->OutputTensor);
    const bool max = desc->ReductionFunction == DML_REDUCE_FUNCTION_MAX;
    uint32_t at[8], of[8] = { 0 }, last[8] = { 0 };
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        double corners[4], all = max ? -(double)INFINITY : 0;
        for (uint32_t k = 0; k < 4; k++)
            corners[k] = corner(&regions, inputs[1], at[0], k);
        const axis across = axis_of(desc, in.dtype, corners[0], corners[2], desc->SpatialScaleX, in.sizes[3],
                                    out.sizes[3]),
                   down = axis_of(desc, in.dtype, corners[1], corners[3], desc->SpatialScaleY, in.sizes[2],
                                  out.sizes[2]);
        last[batches.rank - 1] = at[0];
        const uint64_t batch = ref_get(&batches, inputs[2], last);
        of[0] = batch < in.sizes[0] ? (uint32_t)batch : in.sizes[0] - 1;
        of[1] = at[1];
        for (uint64_t i = 0; i < across.samples; i++)
            for (uint64_t j = 0; j < down.samples; j++) {
                const double x = place(&across, at[3], i), y = place(&down, at[2], j);
                const double value = is_inside(&across, x) && is_inside(&down, y)
                                         ? sample(&across, &down, &in, inputs[0], of, x, y)
                                         : (double)desc->OutOfBoundsInputValue;
                all = !max ? r(&across, all + value) : all > value || isnan(all) ? all : value;
            }
        if (!max)
            all = r(&across, all / r(&across, (double)(across.samples * down.samples)));
        ref_set(&out, output, at, ref_real_bits(out.dtype, all));
    }
}
