/* SPDX-License-Identifier: Apache-2.0 */
/* computed_batch.c - draws of batch normalizations for training, local response normalization, ADAM_OPTIMIZER,
 * VALUE_SCALE_2D, DYNAMIC_QUANTIZE_LINEAR and TOP_K, for rows of computed.c. */
#include "tests/support/computed_draw.h"

/* A tensor of the sizes of another one, of a layout of its own. */
static const DML_TENSOR_DESC *draw_like(computed_draw *d, test_tensor *t, const test_tensor *like,
                                        DML_TENSOR_DATA_TYPE type, bool is_output)
{
    test_tensor_link(t, type, d->rank);
    memcpy(t->sizes, like->sizes, sizeof t->sizes);
    lay_out(d, t, is_output);
    return &t->desc;
}

static const DML_TENSOR_DESC *draw_input(computed_draw *d, uint32_t i, const test_tensor *like)
{
    d->c->present[i] = true;
    return draw_like(d, &d->c->inputs[i], like, d->type, false);
}

static const DML_TENSOR_DESC *draw_more(computed_draw *d, uint32_t i, const test_tensor *like,
                                        DML_TENSOR_DATA_TYPE type)
{
    d->c->more_present[i] = true;
    return draw_like(d, &d->c->more[i], like, type, true);
}

/* Input i: sizes of 1 where elements share a mean. */
static const test_tensor *draw_small(computed_draw *d, uint32_t i)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = true;
    test_tensor_link(t, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        t->sizes[k] = (d->r == NULL ? k != 1 : chance(d, 60)) ? 1 : d->c->inputs[0].sizes[k];
    lay_out(d, t, false);
    return t;
}

void computed_draw_training(computed_draw *d)
{
    DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC *desc = &d->c->desc.training;
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 4) ? 5000 : 300, false);
    const test_tensor *scale = draw_small(d, 1);
    desc->InputTensor = &d->c->inputs[0].desc;
    desc->ScaleTensor = &scale->desc;
    desc->BiasTensor = draw_input(d, 2, scale);
    desc->FusedAddTensor = chance(d, 50) ? draw_input(d, 3, &d->c->output) : NULL;
    desc->OutputTensor = &d->c->output.desc;
    desc->OutputMeanTensor = draw_more(d, 0, scale, d->type);
    desc->OutputVarianceTensor = draw_more(d, 1, scale, d->type);
    desc->Epsilon = 0x1p-10f;
    desc->FusedActivation = draw_activation(d);
}

void computed_training(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_batch_normalization_training(&c->desc.training, inputs, outputs);
}

/* Both gradients have the same fields. */
void computed_draw_batch_grad(computed_draw *d)
{
    DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC *desc = &d->c->desc.batch_grad;
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 4) ? 5000 : 300, false);
    const test_tensor *mean = draw_small(d, 2);
    desc->InputTensor = &d->c->inputs[0].desc;
    desc->InputGradientTensor = draw_input(d, 1, &d->c->output);
    desc->MeanTensor = &mean->desc;
    desc->VarianceTensor = draw_input(d, 3, mean);
    desc->ScaleTensor = draw_input(d, 4, mean);
    desc->OutputGradientTensor = &d->c->output.desc;
    desc->OutputScaleGradientTensor = draw_more(d, 0, mean, d->type);
    desc->OutputBiasGradientTensor = draw_more(d, 1, mean, d->type);
    desc->Epsilon = 0x1p-10f;
}

void computed_batch_grad(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_batch_normalization_grad(&c->desc.batch_grad, c->op.Type == DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD,
                                 inputs, outputs);
}

void computed_draw_value_scale(computed_draw *d)
{
    static const float biases[3] = { 0.5f, -1.25f, 0.1f };
    computed_case *c = d->c;
    test_tensor *in = &c->inputs[0];
    c->present[0] = true;
    test_tensor_link(in, d->type, d->rank);
    test_tensor_link(&c->output, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        in->sizes[k] = d->r == NULL ? 2 + k % 4 : 1 + below(d, k < 2 ? 3 : 20);
    in->sizes[1] = chance(d, 60) ? 3 : 1;
    memcpy(c->output.sizes, in->sizes, sizeof in->sizes);
    lay_out(d, in, false);
    lay_out(d, &c->output, true);
    c->desc.value_scale = (DML_VALUE_SCALE_2D_OPERATOR_DESC){ &in->desc, &c->output.desc, chance(d, 50) ? 0.3f : -2,
                                                              in->sizes[1], biases };
}

void computed_value_scale(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_value_scale_2d(&c->desc.value_scale, inputs[0], outputs[0]);
}

/* The row's type is the input's. */
void computed_draw_dynamic(computed_draw *d)
{
    static const uint32_t ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC *desc = &d->c->desc.dynamic;
    const DML_TENSOR_DATA_TYPE type = chance(d, 50) ? DML_TENSOR_DATA_TYPE_UINT8 : DML_TENSOR_DATA_TYPE_INT8;
    test_tensor one = { .interleaved = false };
    memcpy(one.sizes, ones, sizeof one.sizes);
    draw_tensors(d, d->r != NULL && test_random_chance(d->r, 10) ? 9000 : 300, false);
    desc->InputTensor = &d->c->inputs[0].desc;
    desc->OutputTensor = draw_like(d, &d->c->output, &d->c->inputs[0], type, true);
    desc->OutputScaleTensor =
        draw_more(d, 0, &one, d->type == DML_TENSOR_DATA_TYPE_FLOAT64 ? d->type : DML_TENSOR_DATA_TYPE_FLOAT32);
    desc->OutputZeroPointTensor = draw_more(d, 1, &one, type);
}

void computed_dynamic(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_dynamic_quantize_linear(&c->desc.dynamic, inputs[0], outputs);
}

/* --- powers: compared within a tolerance -------------------------------------------------------------------------- */

static void draw_planes(computed_draw *d)
{
    test_tensor *in = &d->c->inputs[0];
    d->c->present[0] = true;
    test_tensor_link(in, d->type, d->rank);
    test_tensor_link(&d->c->output, d->type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        in->sizes[k] = d->r == NULL ? 2 + k % 4 : 1 + below(d, k == 0 ? 2 : 5);
    memcpy(d->c->output.sizes, in->sizes, sizeof in->sizes);
    lay_out(d, in, false);
    lay_out(d, &d->c->output, true);
}

void computed_draw_response(computed_draw *d)
{
    static const float betas[] = { 0.75f, 1, 0.5f, 2 };
    computed_case *c = d->c;
    draw_planes(d);
    const bool across = d->r != NULL && chance(d, 50);
    const uint32_t size = d->r == NULL ? 3 : 1 + below(d, chance(d, 80) ? 5 : 100000);
    const float beta = betas[d->r == NULL ? 0 : below(d, 4)];
    if (c->op.Type == DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION)
        c->desc.response = (DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC){
            &c->inputs[0].desc, &c->output.desc, across, size, 0.5f, beta, 1.25f
        };
    else
        c->desc.response_grad = (DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC){
            &c->inputs[0].desc, draw_input(d, 1, &c->output), &c->output.desc, across, size, 0.5f, beta, 1.25f
        };
}

void computed_response(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    if (c->op.Type == DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION)
        ref_local_response_normalization(&c->desc.response, inputs[0], outputs[0]);
    else
        ref_local_response_normalization_grad(&c->desc.response_grad, inputs, outputs[0]);
}

void computed_draw_adam(computed_draw *d)
{
    computed_case *c = d->c;
    DML_ADAM_OPTIMIZER_OPERATOR_DESC *desc = &c->desc.adam;
    test_tensor *step = &c->inputs[4];
    draw_tensors(d, 200, false);
    desc->InputParametersTensor = &c->inputs[0].desc;
    desc->InputFirstMomentTensor = draw_input(d, 1, &c->output);
    desc->InputSecondMomentTensor = draw_input(d, 2, &c->output);
    desc->GradientTensor = draw_input(d, 3, &c->output);
    c->present[4] = true;
    test_tensor_link(step, DML_TENSOR_DATA_TYPE_UINT32, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        step->sizes[k] = 1;
    lay_out(d, step, false);
    desc->TrainingStepTensor = &step->desc;
    desc->OutputParametersTensor = &c->output.desc;
    desc->OutputFirstMomentTensor = draw_more(d, 0, &c->output, d->type);
    desc->OutputSecondMomentTensor = draw_more(d, 1, &c->output, d->type);
    desc->LearningRate = 0.125f;
    desc->Beta1 = 0.875f;
    desc->Beta2 = 0.75f;
    desc->Epsilon = 0.5f;
}

void computed_adam(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_adam_optimizer(&c->desc.adam, inputs, outputs);
}

/* --- TOP_K -------------------------------------------------------------------------------------------------------- */

void computed_draw_top_k(computed_draw *d)
{
    computed_case *c = d->c;
    DML_TOP_K1_OPERATOR_DESC *desc = &c->desc.top_k;               /* TOP_K lacks the last field */
    /* so many that blocks of them are ranked first, or that their digits are */
    const bool many = d->r != NULL && test_random_chance(d->r, 3), all = many && test_random_chance(d->r, 50);
    draw_tensors(d, 200, chance(d, 40));
    const uint32_t axis = below(d, d->rank);
    if (many)
        test_tensor_link(&c->inputs[0], d->type, d->rank);
    for (uint32_t i = 0; i < d->rank && many; i++)
        c->inputs[0].sizes[i] = i != axis ? 1 + below(d, i > 1 ? 1 : 2)
                                : all     ? 193 + below(d, 800)
                                          : 4096 + below(d, 12000);
    if (many)
        lay_out(d, &c->inputs[0], false);
    const uint32_t size = c->inputs[0].sizes[axis], count = d->r == NULL ? 2 : 1 + below(d, many && !all ? 30 : size);
    test_tensor_link(&c->output, d->type, d->rank);
    memcpy(c->output.sizes, c->inputs[0].sizes, sizeof c->output.sizes);
    c->output.sizes[axis] = count;
    lay_out(d, &c->output, true);
    desc->InputTensor = &c->inputs[0].desc;
    desc->OutputValueTensor = &c->output.desc;
    const bool wide = d->r != NULL && test_random_chance(d->r, 30);
    desc->OutputIndexTensor =
        draw_more(d, 0, &c->output, wide ? DML_TENSOR_DATA_TYPE_UINT64 : DML_TENSOR_DATA_TYPE_UINT32);
    desc->Axis = axis;
    desc->K = count;
    desc->AxisDirection = (DML_AXIS_DIRECTION)below(d, 2);
    if (c->op.Type == DML_OPERATOR_TOP_K)
        desc->AxisDirection = DML_AXIS_DIRECTION_DECREASING;
}

void computed_top_k(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_top_k(&c->desc.top_k, inputs, outputs);
}
