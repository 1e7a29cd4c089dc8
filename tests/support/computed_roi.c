/* SPDX-License-Identifier: Apache-2.0 */
/* computed_roi.c - draws of the operators that pool regions of an image, for rows of computed.c. */
#include "tests/support/computed_draw.h"

/* A list of `last` numbers for each of so many regions (0: of one), in ranks `least` to 4. */
static void draw_list(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t least, uint32_t last,
                      uint32_t regions)
{
    test_tensor *t = &d->c->inputs[i];
    const uint32_t rank = d->r == NULL ? 4 : least + below(d, 5 - least);
    test_tensor_link(t, type, rank);
    for (uint32_t k = 0; k < rank; k++)
        t->sizes[k] = 1;
    t->sizes[rank - 1] = last != 0 ? last : regions;
    if (last != 0)
        t->sizes[rank - 2] = regions;
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

static const float roi_scales[] = { 1, 0.5f, -0.75f, 3 }, roi_places[] = { 0, 0.5f, -0.5f, 0.25f, -3 };

void computed_draw_roi_align(computed_draw *d)
{
    static const float outside[] = { 0, 7, -0.5f };
    computed_case *c = d->c;
    draw_image(d);
    draw_list(d, 1, d->type, 2, 4, c->output.sizes[0]);
    draw_list(d, 2, chance(d, 50) ? DML_TENSOR_DATA_TYPE_UINT32 : DML_TENSOR_DATA_TYPE_UINT64, 1, 0,
              c->output.sizes[0]);
    const bool usual = c->op.Type == DML_OPERATOR_ROI_ALIGN || chance(d, 50);
    const uint32_t least = below(d, 4), some = least + 1 + below(d, 5), most = chance(d, 40) ? UINT32_MAX : some;
    c->roi_align1 = (DML_ROI_ALIGN1_OPERATOR_DESC){
        &c->inputs[0].desc,
        &c->inputs[1].desc,
        &c->inputs[2].desc,
        &c->output.desc,
        chance(d, 60) ? DML_REDUCE_FUNCTION_AVERAGE : DML_REDUCE_FUNCTION_MAX,
        chance(d, 70) ? DML_INTERPOLATION_MODE_LINEAR : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR,
        roi_scales[below(d, 4)],
        roi_scales[below(d, 4)],
        usual ? 0.5f : roi_places[below(d, 5)],
        usual ? -0.5f : roi_places[below(d, 5)],
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

/* The tensors of draw_image are the gradients of image and output; then the image and the regions' gradient. */
void computed_draw_roi_align_grad(computed_draw *d)
{
    computed_case *c = d->c;
    test_tensor *image = &c->inputs[0], *incoming = &c->inputs[1], *corners = &c->more[0];
    draw_image(d);
    test_tensor_link(incoming, d->type, d->rank);
    memcpy(incoming->sizes, c->output.sizes, sizeof incoming->sizes);
    lay_out(d, incoming, false);
    c->present[1] = true;
    test_tensor_link(&c->output, d->type, d->rank);
    memcpy(c->output.sizes, image->sizes, sizeof image->sizes);
    lay_out(d, &c->output, true);
    const uint32_t regions = incoming->sizes[0];
    draw_list(d, 2, d->type, 2, 4, regions);
    draw_list(d, 3, chance(d, 50) ? DML_TENSOR_DATA_TYPE_UINT32 : DML_TENSOR_DATA_TYPE_UINT64, 1, 0, regions);
    const bool max = d->r != NULL && test_random_chance(d->r, 40);
    c->more_present[0] = chance(d, 60);
    c->output_absent = c->more_present[0] && d->r != NULL && test_random_chance(d->r, 30);
    c->present[0] = max || c->more_present[0] || chance(d, 50);
    if (c->more_present[0]) {
        test_tensor_link(corners, d->type, c->inputs[2].buffer.DimensionCount);
        memcpy(corners->sizes, c->inputs[2].sizes, sizeof corners->sizes);
        lay_out(d, corners, true);
    }
    const bool usual = chance(d, 50);
    const uint32_t least = below(d, 4), some = least + 1 + below(d, 5), most = chance(d, 40) ? UINT32_MAX : some;
    c->desc.roi_align_grad = (DML_ROI_ALIGN_GRAD_OPERATOR_DESC){
        c->present[0] ? &image->desc : NULL,
        &incoming->desc,
        &c->inputs[2].desc,
        &c->inputs[3].desc,
        c->output_absent ? NULL : &c->output.desc,
        c->more_present[0] ? &corners->desc : NULL,
        max ? DML_REDUCE_FUNCTION_MAX : DML_REDUCE_FUNCTION_AVERAGE,
        chance(d, 70) ? DML_INTERPOLATION_MODE_LINEAR : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR,
        roi_scales[below(d, 4)],
        roi_scales[below(d, 4)],
        usual ? 0.5f : roi_places[below(d, 5)],
        usual ? -0.5f : roi_places[below(d, 5)],
        least,
        most,
        chance(d, 30),
    };
}

void computed_roi_align_grad(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_roi_align_grad(&c->desc.roi_align_grad, inputs, outputs);
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
