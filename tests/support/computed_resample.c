/* SPDX-License-Identifier: Apache-2.0 */
/* computed_resample.c - draws of the operators that resample, for rows of computed.c. */
#include "tests/support/computed_draw.h"

/* The small tensor is enlarged or made smaller to the large one; some dimensions are left as they are. */
static void draw_axes_of(computed_draw *d, test_tensor *small, test_tensor *large, bool offsets)
{
    static const float scales[] = { 1, 2, 0.5f, 1.5f, 0.3f, 2.7f, 0.1f, 3 },
                       places[] = { 0, 0.5f, -0.5f, 0.25f, -3, 7 };
    computed_case *c = d->c;
    test_tensor_link(small, d->type, d->rank);
    test_tensor_link(large, d->type, d->rank);
    for (uint32_t i = 0; i < d->rank; i++) {
        const bool plain = d->r != NULL && test_random_chance(d->r, 40), usual = !offsets || chance(d, 60);
        const uint32_t k = i & 3; /* more than four are refused */
        small->sizes[i] = 1 + below(d, d->rank > 2 ? 6 : 20);
        c->scales[k] = plain || (d->r == NULL && i + 1 < d->rank) ? 1 : d->r == NULL ? 1.5f : scales[below(d, 8)];
        c->input_offsets[k] = usual ? 0.5f : places[below(d, 6)];
        c->output_offsets[k] = usual ? -0.5f : places[below(d, 6)];
        const uint32_t exact = (uint32_t)((float)small->sizes[i] * c->scales[k]);
        large->sizes[i] = chance(d, 70) && exact > 0 ? exact : 1 + below(d, 9);
    }
    lay_out(d, small, small == &c->output);
    lay_out(d, large, large == &c->output);
    c->present[0] = true;
}

/* All fields there are, which the forms have in different places. */
static void draw_fields(computed_draw *d)
{
    computed_case *c = d->c;
    const bool linear = chance(d, 60), up = d->r != NULL && test_random_chance(d->r, 50);
    const bool antialiased = c->op.Type == DML_OPERATOR_RESAMPLE3 && chance(d, 60);
    c->resample = (DML_RESAMPLE3_OPERATOR_DESC){
        &c->inputs[0].desc,
        &c->output.desc,
        linear ? DML_INTERPOLATION_MODE_LINEAR : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR,
        up ? DML_AXIS_DIRECTION_INCREASING : DML_AXIS_DIRECTION_DECREASING,
        d->rank,
        c->scales,
        c->input_offsets,
        c->output_offsets,
        antialiased,
    };
}

void computed_draw_resample(computed_draw *d)
{
    const DML_RESAMPLE3_OPERATOR_DESC *all = &d->c->resample;
    draw_axes_of(d, &d->c->inputs[0], &d->c->output, d->c->op.Type != DML_OPERATOR_RESAMPLE);
    draw_fields(d);
    switch (d->c->op.Type) {
    case DML_OPERATOR_RESAMPLE:
        d->c->desc.resample = (DML_RESAMPLE_OPERATOR_DESC){ all->InputTensor, all->OutputTensor, all->InterpolationMode,
                                                            all->DimensionCount, all->Scales };
        break;
    case DML_OPERATOR_RESAMPLE1:
        d->c->desc.resample1 =
            (DML_RESAMPLE1_OPERATOR_DESC){ all->InputTensor,       all->OutputTensor, all->InterpolationMode,
                                           all->DimensionCount,    all->Scales,       all->InputPixelOffsets,
                                           all->OutputPixelOffsets };
        break;
    case DML_OPERATOR_RESAMPLE2:
        d->c->desc.resample2 =
            (DML_RESAMPLE2_OPERATOR_DESC){ all->InputTensor,       all->OutputTensor,      all->InterpolationMode,
                                           all->RoundingDirection, all->DimensionCount,    all->Scales,
                                           all->InputPixelOffsets, all->OutputPixelOffsets };
        break;
    default: d->c->desc.resample3 = *all; break;
    }
}

void computed_resample(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    const bool halves = c->op.Type == DML_OPERATOR_RESAMPLE || c->op.Type == DML_OPERATOR_RESAMPLE1;
    ref_resample3(&c->resample, halves, inputs[0], outputs[0]);
}

void computed_draw_resample_grad(computed_draw *d)
{
    const DML_RESAMPLE3_OPERATOR_DESC *all = &d->c->resample;
    draw_axes_of(d, &d->c->output, &d->c->inputs[0], true);
    draw_fields(d);
    if (d->c->op.Type == DML_OPERATOR_RESAMPLE_GRAD)
        d->c->desc.resample_grad =
            (DML_RESAMPLE_GRAD_OPERATOR_DESC){ all->InputTensor,       all->OutputTensor, all->InterpolationMode,
                                               all->DimensionCount,    all->Scales,       all->InputPixelOffsets,
                                               all->OutputPixelOffsets };
    else
        d->c->desc.resample_grad1 =
            (DML_RESAMPLE_GRAD1_OPERATOR_DESC){ all->InputTensor,       all->OutputTensor,      all->InterpolationMode,
                                                all->RoundingDirection, all->DimensionCount,    all->Scales,
                                                all->InputPixelOffsets, all->OutputPixelOffsets };
}

void computed_resample_grad(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_resample_grad(&c->resample, c->op.Type == DML_OPERATOR_RESAMPLE_GRAD, inputs[0], outputs[0]);
}

void computed_draw_upsample(computed_draw *d)
{
    computed_case *c = d->c;
    const DML_SIZE_2D scale = { 1 + below(d, 5), 1 + below(d, 4) };
    test_tensor *in = &c->inputs[0], *out = &c->output;
    test_tensor_link(in, d->type, d->rank);
    test_tensor_link(out, d->type, d->rank);
    for (uint32_t i = 0; i < d->rank; i++) {
        in->sizes[i] = 1 + below(d, i + 2 < d->rank ? 3 : 9);
        out->sizes[i] = in->sizes[i] * (i + 1 == d->rank ? scale.Width : i + 2 == d->rank ? scale.Height : 1);
    }
    lay_out(d, in, false);
    lay_out(d, out, true);
    c->present[0] = true;
    c->desc.upsample = (DML_UPSAMPLE_2D_OPERATOR_DESC){ &in->desc, &out->desc, scale,
                                                        chance(d, 60) ? DML_INTERPOLATION_MODE_LINEAR
                                                                      : DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR };
}

void computed_upsample(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_upsample_2d(&c->desc.upsample, inputs[0], outputs[0]);
}
