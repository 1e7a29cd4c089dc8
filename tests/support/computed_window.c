/* SPDX-License-Identifier: Apache-2.0 */
/* computed_window.c - draws of operators with sliding windows, for rows of computed.c. */
#include "tests/support/computed_draw.h"

/* The image, of some type, and the pooled tensor. */
static const test_window *draw_window(computed_draw *d, test_tensor *image, DML_TENSOR_DATA_TYPE type,
                                      test_tensor *pooled, bool dilated)
{
    test_window *w = &d->c->window;
    const uint32_t count = d->rank > 2 ? d->rank - 2 : 1;
    test_tensor_link(image, type, d->rank);
    test_tensor_link(pooled, d->type, d->rank);
    test_window_draw(d->r, w, count, dilated, pooled == &d->c->output, image->sizes, pooled->sizes);
    lay_out(d, image, image == &d->c->output);
    lay_out(d, pooled, pooled == &d->c->output);
    return w;
}

/* The input is the image, and the output has its windows. */
static const test_window *draw_forward(computed_draw *d, bool dilated)
{
    d->c->present[0] = true;
    return draw_window(d, &d->c->inputs[0], d->type, &d->c->output, dilated);
}

/* --- averages ----------------------------------------------------------------------------------------------------- */

void computed_draw_average(computed_draw *d)
{
    const bool dilated = d->c->op.Type == DML_OPERATOR_AVERAGE_POOLING1;
    const test_window *w = draw_forward(d, dilated);
    const DML_TENSOR_DESC *in = &d->c->inputs[0].desc, *out = &d->c->output.desc;
    const bool padding = d->r != NULL && test_random_chance(d->r, 50);
    d->c->dilated.average1 = (DML_AVERAGE_POOLING1_OPERATOR_DESC){ in,       out,    w->count,     w->strides, w->sizes,
                                                                   w->start, w->end, w->dilations, padding };
    if (dilated)
        d->c->desc.average1 = d->c->dilated.average1;
    else
        d->c->desc.average =
            (DML_AVERAGE_POOLING_OPERATOR_DESC){ in, out, w->count, w->strides, w->sizes, w->start, w->end, padding };
}

void computed_average(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_average_pooling1(&c->dilated.average1, inputs[0], outputs[0]);
}

void computed_draw_average_grad(computed_draw *d)
{
    const test_window *w = draw_window(d, &d->c->output, d->type, &d->c->inputs[0], false);
    d->c->present[0] = true;
    d->c->desc.average_grad = (DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC){ &d->c->inputs[0].desc,
                                                                        &d->c->output.desc,
                                                                        w->count,
                                                                        w->strides,
                                                                        w->sizes,
                                                                        w->start,
                                                                        w->end,
                                                                        d->r != NULL && test_random_chance(d->r, 50) };
}

void computed_average_grad(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_average_pooling_grad(&c->desc.average_grad, inputs[0], outputs[0]);
}

/* A scale or zero point: one number, or one for each channel; any rank up to the image's. */
static const DML_TENSOR_DESC *draw_channels(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, bool needed)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = needed || chance(d, 60);
    if (!d->c->present[i])
        return NULL;
    const bool channels = chance(d, 50);
    const uint32_t least = channels ? d->rank - 1 : 1;
    test_tensor_link(t, type, least + below(d, (d->rank > 5 ? 5 : d->rank) - least + 1));
    for (uint32_t k = 0; k < t->buffer.DimensionCount; k++)
        t->sizes[k] = channels && k + d->rank - t->buffer.DimensionCount == 1 ? d->c->output.sizes[1] : 1;
    lay_out(d, t, false);
    return &t->desc;
}

static DML_TENSOR_DATA_TYPE draw_byte(computed_draw *d)
{
    return below(d, 2) == 0 ? DML_TENSOR_DATA_TYPE_UINT8 : DML_TENSOR_DATA_TYPE_INT8;
}

void computed_draw_quantized_average(computed_draw *d)
{
    const DML_TENSOR_DATA_TYPE in = d->r == NULL ? d->type : draw_byte(d);
    const test_window *w = draw_window(d, &d->c->inputs[0], in, &d->c->output, true);
    d->c->present[0] = true;
    const DML_TENSOR_DESC *in_scale = draw_channels(d, 1, DML_TENSOR_DATA_TYPE_FLOAT32, true);
    const DML_TENSOR_DESC *in_zero = draw_channels(d, 2, in, false);
    const DML_TENSOR_DESC *out_scale = draw_channels(d, 3, DML_TENSOR_DATA_TYPE_FLOAT32, true);
    const DML_TENSOR_DESC *out_zero = draw_channels(d, 4, d->type, false);
    d->c->desc.quantized_average =
        (DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC){ &d->c->inputs[0].desc,
                                                              in_scale,
                                                              in_zero,
                                                              out_scale,
                                                              out_zero,
                                                              &d->c->output.desc,
                                                              w->count,
                                                              w->strides,
                                                              w->sizes,
                                                              w->start,
                                                              w->end,
                                                              w->dilations,
                                                              d->r != NULL && test_random_chance(d->r, 50) };
}

void computed_quantized_average(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_quantized_linear_average_pooling(&c->desc.quantized_average, inputs, outputs[0]);
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

void computed_draw_lp_pooling(computed_draw *d)
{
    const bool dilated = d->c->op.Type == DML_OPERATOR_LP_POOLING1;
    const test_window *w = draw_forward(d, dilated);
    const DML_TENSOR_DESC *in = &d->c->inputs[0].desc, *out = &d->c->output.desc;
    const uint32_t p = 1 + below(d, 2);
    d->c->dilated.lp_pooling1 =
        (DML_LP_POOLING1_OPERATOR_DESC){ in, out, w->count, w->strides, w->sizes, w->start, w->end, w->dilations, p };
    if (dilated)
        d->c->desc.lp_pooling1 = d->c->dilated.lp_pooling1;
    else
        d->c->desc.lp_pooling =
            (DML_LP_POOLING_OPERATOR_DESC){ in, out, w->count, w->strides, w->sizes, w->start, w->end, p };
}

void computed_lp_pooling(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_lp_pooling1(&c->dilated.lp_pooling1, inputs[0], outputs[0]);
}

/* --- maxima ------------------------------------------------------------------------------------------------------- */

/* MAX_POOLING and its later forms, with indices or without. */
void computed_draw_max(computed_draw *d)
{
    const DML_OPERATOR_TYPE type = d->c->op.Type;
    const test_window *w = draw_forward(d, type == DML_OPERATOR_MAX_POOLING2);
    const DML_TENSOR_DESC *in = &d->c->inputs[0].desc, *out = &d->c->output.desc;
    const bool numbered = type != DML_OPERATOR_MAX_POOLING && chance(d, 75);
    const DML_TENSOR_DESC *indices = numbered ? &d->c->more[0].desc : NULL;
    d->c->more_present[0] = numbered;
    test_tensor_link(&d->c->more[0],
                     d->r != NULL && chance(d, 50) ? DML_TENSOR_DATA_TYPE_UINT64 : DML_TENSOR_DATA_TYPE_UINT32,
                     d->rank);
    memcpy(d->c->more[0].sizes, d->c->output.sizes, sizeof d->c->more[0].sizes);
    lay_out(d, &d->c->more[0], true);
    d->c->dilated.max2 = (DML_MAX_POOLING2_OPERATOR_DESC){ in,       out,      indices, w->count,    w->strides,
                                                           w->sizes, w->start, w->end,  w->dilations };
    if (type == DML_OPERATOR_MAX_POOLING2)
        d->c->desc.max2 = d->c->dilated.max2;
    else if (type == DML_OPERATOR_MAX_POOLING1)
        d->c->desc.max1 =
            (DML_MAX_POOLING1_OPERATOR_DESC){ in, out, indices, w->count, w->strides, w->sizes, w->start, w->end };
    else
        d->c->desc.max = (DML_MAX_POOLING_OPERATOR_DESC){ in, out, w->count, w->strides, w->sizes, w->start, w->end };
}

void computed_max(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_max_pooling2(&c->dilated.max2, inputs, outputs);
}

/* The input and its gradient are of one shape, as the pooled gradient is of another. */
void computed_draw_max_grad(computed_draw *d)
{
    test_tensor *in = &d->c->inputs[0];
    const test_window *w = draw_window(d, in, d->type, &d->c->inputs[1], true);
    test_tensor_link(&d->c->output, d->type, d->rank);
    memcpy(d->c->output.sizes, in->sizes, sizeof in->sizes);
    lay_out(d, &d->c->output, true);
    d->c->present[0] = d->c->present[1] = true;
    d->c->desc.max_grad = (DML_MAX_POOLING_GRAD_OPERATOR_DESC){
        &in->desc, &d->c->inputs[1].desc, &d->c->output.desc, w->count, w->strides, w->sizes, w->start,
        w->end,    w->dilations
    };
}

void computed_max_grad(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_max_pooling_grad(&c->desc.max_grad, inputs, outputs[0]);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* The image and the matrix of its windows, of three dimensions or of as many as the image. */
static const test_window *draw_matrix(computed_draw *d, test_tensor *image, test_tensor *matrix)
{
    test_window *w = &d->c->window;
    const uint32_t count = d->rank > 2 ? d->rank - 2 : 1, rank = chance(d, 70) ? 3 : d->rank;
    uint32_t pooled[8], *sizes = &matrix->sizes[rank - 3];
    test_tensor_link(image, d->type, d->rank);
    test_tensor_link(matrix, d->type, rank);
    test_window_draw(d->r, w, count, true, false, image->sizes, pooled);
    for (uint32_t i = 0; i < rank; i++)
        matrix->sizes[i] = 1;
    sizes[0] = image->sizes[0];
    sizes[1] = image->sizes[1];
    for (uint32_t i = 0; i < count; i++) {
        sizes[1] *= w->sizes[i];
        sizes[2] *= pooled[2 + i];
    }
    lay_out(d, image, image == &d->c->output);
    lay_out(d, matrix, matrix == &d->c->output);
    d->c->present[0] = true;
    return w;
}

void computed_draw_unfold(computed_draw *d)
{
    const test_window *w = draw_matrix(d, &d->c->inputs[0], &d->c->output);
    d->c->desc.unfold =
        (DML_UNFOLD_OPERATOR_DESC){ &d->c->inputs[0].desc, &d->c->output.desc, w->count, w->sizes, w->strides,
                                    w->dilations,          w->start,           w->end };
}

void computed_unfold(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_unfold(&c->desc.unfold, inputs[0], outputs[0]);
}

void computed_draw_fold(computed_draw *d)
{
    const test_window *w = draw_matrix(d, &d->c->output, &d->c->inputs[0]);
    d->c->desc.fold =
        (DML_FOLD_OPERATOR_DESC){ &d->c->inputs[0].desc, &d->c->output.desc, w->count, w->sizes, w->strides,
                                  w->dilations,          w->start,           w->end };
}

void computed_fold(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_fold(&c->desc.fold, inputs[0], outputs[0]);
}
