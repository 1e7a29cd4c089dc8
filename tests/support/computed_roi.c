/* SPDX-License-Identifier: Apache-2.0 */
/* computed_roi.c - draws of the operators that pool regions of an image, for rows of computed.c. */
#include "tests/support/computed_draw.h"

/* A list of `last` numbers for each region (0: of one), in ranks `least` to 4. */
static void draw_list(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t least, uint32_t last)
{
    test_tensor *t = &d->c->inputs[i];
    const uint32_t rank = d->r == NULL ? 4 : least + below(d, 5 - least);
    test_tensor_link(t, type, rank);
    for (uint32_t k = 0; k < rank; k++)
        t->sizes[k] = 1;
    t->sizes[rank - 1] = last != 0 ? last : d->c->output.sizes[0];
    if (last != 0)
        t->sizes[rank - 2] = d->c->output.sizes[0];
    lay_out(d, t, false);
    d->c->present[i] = true;
}

static void draw_image(computed_draw *d)
{
    test_tensor *in = &d->c->inputs[0], *out = &d->c->output;
    test_tensor_link(in, d->type, d->rank); /* other ranks than 4 are refused */
    test_tensor_link(out, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++) {
        in->sizes[k] = 1 + below(d, k < 2 ? 3 : 9);
        out->sizes[k] = k == 1 ? in->sizes[k] : 1 + below(d, k == 3 && chance(d, 20) ? 20 : 4);
    }
    lay_out(d, in, false);
    lay_out(d, out, true);
    d->c->present[0] = true;
}

void computed_draw_roi_align(computed_draw *d)
{
    static const float scales[] = { 1, 0.5f, -0.75f, 3 }, places[] = { 0, 0.5f, -0.5f, 0.25f, -3 },
                       outside[] = { 0, 7, -0.5f };
    computed_case *c = d->c;
    draw_image(d);
    draw_list(d, 1, d->type, 2, 4);
    draw_list(d, 2, chance(d, 50) ? DML_TENSOR_DATA_TYPE_UINT32 : DML_TENSOR_DATA_TYPE_UINT64, 1, 0);
    const bool usual = c->op.Type == DML_OPERATOR_ROI_ALIGN || chance(d, 50);
    const uint32_t least = below(d, 4), some = least + 1 + below(d, 5), most = chance(d, 40) ? UINT32_MAX : some;
    c->roi_align1 = (DML_ROI_ALIGN1_OPERATOR_DESC){
        &c->inputs[0].desc,
        &c->inputs[1].desc,
        &c->inputs[2].desc,
        &c->output.desc,
        chance(d, 60) ? DML_REDUCE_FUNCTION_AVERAGE : DML_REDUCE_FUNCTION_MAX,
        chance(d, 70) ? DML_INTERPOLATION_MODE_LINEAR : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR,
        scales[below(d, 4)],
        scales[below(d, 4)],
        usual ? 0.5f : places[below(d, 5)],
        usual ? -0.5f : places[below(d, 5)],
        outside[below(d, 3)],
        least,
        most,
        c->op.Type == DML_OPERATOR_ROI_ALIGN1 && chance(d, 30),
    };
    const DML_ROI_ALIGN1_OPERATOR_DESC *all = &c->roi_align1;
    if (c->op.Type == DML_OPERATOR_ROI_ALIGN1)
        c->desc.roi_align1 = *all;
    else
        c->desc.roi_align = (DML_ROI_ALIGN_OPERATOR_DESC){ all->InputTensor,
                                                           all->ROITensor,
                                                           all->BatchIndicesTensor,
                                                           all->OutputTensor,
                                                           all->ReductionFunction,
                                                           all->InterpolationMode,
                                                           all->SpatialScaleX,
                                                           all->SpatialScaleY,
                                                           all->OutOfBoundsInputValue,
                                                           all->MinimumSamplesPerOutput,
                                                           all->MaximumSamplesPerOutput };
}

void computed_roi_align(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_roi_align1(&c->roi_align1, inputs, outputs[0]);
}

void computed_draw_roi_pooling(computed_draw *d)
{
    static const float scales[] = { 1, 0.5f, 0.25f, 2 };
    computed_case *c = d->c;
    test_tensor *regions = &c->inputs[1];
    draw_image(d);
    test_tensor_link(regions, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        regions->sizes[k] = k == 3 ? 5 : k == 2 ? c->output.sizes[0] : 1;
    lay_out(d, regions, false);
    c->present[1] = true;
    c->desc.roi_pooling = (DML_ROI_POOLING_OPERATOR_DESC){ &c->inputs[0].desc, &regions->desc, &c->output.desc,
                                                           scales[below(d, 4)],
                                                           { c->output.sizes[3], c->output.sizes[2] } };
}

void computed_roi_pooling(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_roi_pooling(&c->desc.roi_pooling, inputs, outputs[0]);
}
