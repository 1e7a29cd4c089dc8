/* SPDX-License-Identifier: Apache-2.0 */
/* ref_roi_align.c - ROI_ALIGN1 by the book: samples one after the other, column by column; and its gradients.  Every
 * operation is rounded to FLOAT32, or is one of FLOAT64. */
#include <math.h>
#include <stdlib.h>

#include "tests/reference/reference.h"

typedef struct axis {
    DML_TENSOR_DATA_TYPE type;
    double begin, step, steps, input_offset, output_offset;
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
    a.steps = r(&a, (double)all);
    a.step = r(&a, size / a.steps);
    return a;
}

static double moved_by(const axis *a, uint32_t o, uint64_t s)
{
    return r(a, r(a, (double)(o * a->samples + s)) - a->output_offset);
}

/* Where a sample lies. */
static double place(const axis *a, uint32_t o, uint64_t s)
{
    return r(a, r(a, r(a, moved_by(a, o, s) * a->step) + a->begin) - a->input_offset);
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

static uint32_t batch_of(const ref_tensor *t, const void *batches, uint32_t region, uint32_t count)
{
    uint32_t at[8] = { 0 };
    at[t->rank - 1] = region;
    const uint64_t batch = ref_get(t, batches, at);
    return batch < count ? (uint32_t)batch : count - 1;
}

void ref_roi_align1(const DML_ROI_ALIGN1_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), regions = ref_tensor_of(desc->ROITensor),
                     batches = ref_tensor_of(desc->BatchIndicesTensor), out = ref_tensor_of(desc->OutputTensor);
    const bool max = desc->ReductionFunction == DML_REDUCE_FUNCTION_MAX;
    uint32_t at[8], of[8] = { 0 };
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, at);
        double corners[4], all = max ? -(double)INFINITY : 0;
        for (uint32_t k = 0; k < 4; k++)
            corners[k] = corner(&regions, inputs[1], at[0], k);
        const axis across = axis_of(desc, in.dtype, corners[0], corners[2], desc->SpatialScaleX, in.sizes[3],
                                    out.sizes[3]),
                   down = axis_of(desc, in.dtype, corners[1], corners[3], desc->SpatialScaleY, in.sizes[2],
                                  out.sizes[2]);
        of[0] = batch_of(&batches, inputs[2], at[0], in.sizes[0]);
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

/* --- gradients ---------------------------------------------------------------------------------------------------- */

typedef struct gradient {
    const DML_ROI_ALIGN_GRAD_OPERATOR_DESC *desc;
    ref_inputs inputs;
    ref_tensor incoming, image; /* the image, or its gradient where it is absent: of its sizes */
    double *sums;               /* of the image's gradient, packed */
    double corners[4];          /* sums of the region's */
    axis across, down;          /* of the region */
    uint32_t region, batch;
} gradient;

/* The weight of element i in the samples of an output element. */
static double weight(const axis *a, uint32_t o, uint32_t i)
{
    double sum = 0;
    for (uint64_t s = 0; s < a->samples; s++) {
        const double x = place(a, o, s);
        uint32_t at[2];
        if (!is_inside(a, x))
            continue;
        const double between = sides(a, x, at), t = a->nearest ? 0 : between;
        sum = r(a, sum + r(a, (at[0] == i ? r(a, 1 - t) : 0) + (at[1] == i ? t : 0)));
    }
    return sum;
}

static double *sum_at(const gradient *g, uint32_t channel, uint32_t y, uint32_t x)
{
    const uint32_t *sizes = g->image.sizes;
    return &g->sums[((g->batch * (uint64_t)sizes[1] + channel) * sizes[2] + y) * sizes[3] + x];
}

static double incoming_at(const gradient *g, const uint32_t o[8])
{
    return ref_real(g->incoming.dtype, ref_get(&g->incoming, g->inputs[1], o));
}

/* What the mean of its samples adds to the image's gradient. */
static void add_mean(gradient *g, const uint32_t o[8])
{
    const axis *a = &g->across;
    const double each = r(a, incoming_at(g, o) / r(a, (double)(g->across.samples * g->down.samples)));
    for (uint32_t y = 0; y < g->image.sizes[2]; y++)
        for (uint32_t x = 0; x < g->image.sizes[3]; x++) {
            const double v = weight(&g->down, o[2], y), w = weight(a, o[3], x);
            double *sum = sum_at(g, o[1], y, x);
            if (v != 0 && w != 0)
                *sum = r(a, *sum + r(a, each * r(a, v * w)));
        }
}

static double image_at(const gradient *g, uint32_t channel, uint32_t y, uint32_t x)
{
    const uint32_t at[8] = { g->batch, channel, y, x };
    return ref_real(g->image.dtype, ref_get(&g->image, g->inputs[0], at));
}

/* What a sample adds to the gradient of the region's corners. */
static void add_corners(gradient *g, const uint32_t o[8], uint64_t i, uint64_t j, double incoming)
{
    const axis *a = &g->across;
    uint32_t columns[2], rows[2];
    const double x = place(a, o[3], i), y = place(&g->down, o[2], j);
    double tx = sides(a, x, columns), ty = sides(&g->down, y, rows);
    if (a->nearest)
        tx = ty = 0;
    if (tx == 0)
        columns[1] = columns[0];
    if (ty == 0)
        rows[1] = rows[0];
    const double top_left = image_at(g, o[1], rows[0], columns[0]), top_right = image_at(g, o[1], rows[0], columns[1]),
                 bottom_left = image_at(g, o[1], rows[1], columns[0]),
                 bottom_right = image_at(g, o[1], rows[1], columns[1]);
    const double slope_x = r(a, r(a, r(a, 1 - ty) * r(a, top_right - top_left)) +
                                    r(a, ty * r(a, bottom_right - bottom_left))),
                 slope_y = r(a, r(a, r(a, 1 - tx) * r(a, bottom_left - top_left)) +
                                    r(a, tx * r(a, bottom_right - top_right)));
    const double part_x = r(a, moved_by(a, o[3], i) / a->steps),
                 part_y = r(a, moved_by(&g->down, o[2], j) / g->down.steps);
    const double dx = r(a, slope_x * incoming), dy = r(a, slope_y * incoming);
    const double adds[] = { r(a, dx * r(a, 1 - part_x)), r(a, dy * r(a, 1 - part_y)), r(a, dx * part_x),
                            r(a, dy * part_y) };
    for (int k = 0; k < 4; k++)
        g->corners[k] = r(a, g->corners[k] + adds[k]);
}

static void add_means_of_corners(gradient *g, const uint32_t o[8])
{
    const axis *a = &g->across;
    const double each = r(a, incoming_at(g, o) / r(a, (double)(g->across.samples * g->down.samples)));
    for (uint64_t i = 0; i < g->across.samples; i++)
        for (uint64_t j = 0; j < g->down.samples; j++)
            if (is_inside(a, place(a, o[3], i)) && is_inside(&g->down, place(&g->down, o[2], j)))
                add_corners(g, o, i, j, each);
}

/* What the greatest sample, the first of equals, adds to both. */
static void add_greatest(gradient *g, const uint32_t o[8])
{
    const axis *a = &g->across;
    uint32_t of[8] = { g->batch, o[1] };
    uint64_t column = 0, row = 0;
    double greatest = 0;
    bool any = false;
    for (uint64_t i = 0; i < a->samples; i++)
        for (uint64_t j = 0; j < g->down.samples; j++) {
            const double x = place(a, o[3], i), y = place(&g->down, o[2], j);
            if (!is_inside(a, x) || !is_inside(&g->down, y))
                continue;
            const double value = sample(a, &g->down, &g->image, g->inputs[0], of, x, y);
            if (any && !(value > greatest || (isnan(value) && !isnan(greatest))))
                continue;
            any = true;
            greatest = value;
            column = i;
            row = j;
        }
    if (!any)
        return;
    uint32_t columns[2], rows[2];
    const double tx = sides(a, place(a, o[3], column), columns), ty = sides(&g->down, place(&g->down, o[2], row), rows);
    const double across[2] = { a->nearest ? 1 : r(a, 1 - tx), a->nearest ? 0 : tx },
                 down[2] = { a->nearest ? 1 : r(a, 1 - ty), a->nearest ? 0 : ty };
    for (int k = 0; k < 4; k++) {
        const double both = r(a, down[k / 2] * across[k % 2]);
        double *sum = sum_at(g, o[1], rows[k / 2], columns[k % 2]);
        if (both != 0)
            *sum = r(a, *sum + r(a, incoming_at(g, o) * both));
    }
    if (g->desc->OutputROIGradientTensor != NULL)
        add_corners(g, o, column, row, incoming_at(g, o));
}

static void begin_region(gradient *g, uint32_t region)
{
    const DML_ROI_ALIGN_GRAD_OPERATOR_DESC *d = g->desc;
    const DML_ROI_ALIGN1_OPERATOR_DESC as = { .InterpolationMode = d->InterpolationMode,
                                              .InputPixelOffset = d->InputPixelOffset,
                                              .OutputPixelOffset = d->OutputPixelOffset,
                                              .MinimumSamplesPerOutput = d->MinimumSamplesPerOutput,
                                              .MaximumSamplesPerOutput = d->MaximumSamplesPerOutput,
                                              .AlignRegionsToCorners = d->AlignRegionsToCorners };
    const ref_tensor regions = ref_tensor_of(d->ROITensor), batches = ref_tensor_of(d->BatchIndicesTensor);
    double at[4];
    for (uint32_t k = 0; k < 4; k++) {
        at[k] = corner(&regions, g->inputs[2], region, k);
        g->corners[k] = 0;
    }
    g->region = region;
    g->batch = batch_of(&batches, g->inputs[3], region, g->image.sizes[0]);
    const uint32_t *in = g->image.sizes, *out = g->incoming.sizes;
    g->across = axis_of(&as, g->incoming.dtype, at[0], at[2], d->SpatialScaleX, in[3], out[3]);
    g->down = axis_of(&as, g->incoming.dtype, at[1], at[3], d->SpatialScaleY, in[2], out[2]);
}

static void add_element(gradient *g, const uint32_t o[8])
{
    if (g->desc->ReductionFunction == DML_REDUCE_FUNCTION_MAX) {
        add_greatest(g, o);
        return;
    }
    if (g->desc->OutputGradientTensor != NULL)
        add_mean(g, o);
    if (g->desc->OutputROIGradientTensor != NULL)
        add_means_of_corners(g, o);
}

static void end_region(const gradient *g, void *output)
{
    const ref_tensor t = ref_tensor_of(g->desc->OutputROIGradientTensor);
    uint32_t at[8] = { 0 };
    at[t.rank - 2] = g->region;
    for (uint32_t k = 0; k < 4; k++) {
        at[t.rank - 1] = k;
        const double scale = (double)(k % 2 == 0 ? g->desc->SpatialScaleX : g->desc->SpatialScaleY);
        ref_set(&t, output, at, ref_real_bits(t.dtype, r(&g->across, g->corners[k] * scale)));
    }
}

void ref_roi_align_grad(const DML_ROI_ALIGN_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    gradient g = { .desc = desc,
                   .inputs = inputs,
                   .incoming = ref_tensor_of(desc->InputGradientTensor),
                   .image = ref_tensor_of(desc->InputTensor != NULL ? desc->InputTensor : desc->OutputGradientTensor) };
    uint32_t at[8];
    g.sums = calloc(ref_tensor_elements(&g.image), sizeof *g.sums);
    for (uint32_t k = 0; k < g.incoming.sizes[0]; k++) {
        begin_region(&g, k);
        for (uint32_t c = 0; c < g.incoming.sizes[1]; c++)
            for (uint32_t y = 0; y < g.incoming.sizes[2]; y++)
                for (uint32_t x = 0; x < g.incoming.sizes[3]; x++)
                    add_element(&g, (const uint32_t[8]){ k, c, y, x });
        if (desc->OutputROIGradientTensor != NULL)
            end_region(&g, outputs[1]);
    }
    for (uint64_t e = 0; desc->OutputGradientTensor != NULL && e < ref_tensor_elements(&g.image); e++) {
        const ref_tensor out = ref_tensor_of(desc->OutputGradientTensor);
        ref_tensor_coordinates(&out, e, at);
        ref_set(&out, outputs[0], at, ref_real_bits(out.dtype, g.sums[e]));
    }
    free(g.sums);
}
