/* SPDX-License-Identifier: Apache-2.0 */
/* computed_convolution.c - draws of convolutions. */
#include "tests/support/computed_draw.h"

enum { STRIDES, DILATIONS, START, END, OUTPUT }; /* rows of computed_case.spaces */

/* What is drawn before sizes. */
typedef struct plan {
    bool backward, pads_output;
    uint32_t groups, ins, outs; /* channels of a group */
    uint32_t filter;            /* which input it is */
    DML_TENSOR_DATA_TYPE filter_type, out_type;
} plan;

/* One spatial dimension; whether something of the output is left. */
static bool draw_dimension(computed_draw *d, const plan *s, uint32_t i, uint32_t most)
{
    computed_case *c = d->c;
    const uint32_t in = d->r == NULL ? 6 : 1 + below(d, most), taps = 1 + below(d, chance(d, 70) ? 3 : 5);
    c->spaces[STRIDES][i] = d->r == NULL ? 2 : 1 + below(d, chance(d, 50) ? 1 : 3);
    c->spaces[DILATIONS][i] = d->r == NULL ? 2 : 1 + below(d, chance(d, 70) ? 1 : 3);
    c->spaces[START][i] = below(d, chance(d, 50) ? 2 : 4);
    c->spaces[END][i] = below(d, chance(d, 50) ? 2 : 4);
    c->spaces[OUTPUT][i] = s->pads_output && (d->r == NULL || chance(d, 20)) ? below(d, 3) : 0;
    const int64_t window = (int64_t)(taps - 1) * c->spaces[DILATIONS][i] + 1;
    const int64_t cut = (int64_t)c->spaces[START][i] + c->spaces[END][i], stride = c->spaces[STRIDES][i];
    const int64_t out = s->backward         ? (in - 1) * stride + window + c->spaces[OUTPUT][i] - cut
                        : in + cut < window ? 0
                                            : (in + cut - window) / stride + 1 + c->spaces[OUTPUT][i];
    c->inputs[0].sizes[2 + i] = in;
    c->inputs[s->filter].sizes[2 + i] = taps;
    c->output.sizes[2 + i] = (uint32_t)out;
    return out > 0;
}

/* Input, filter and output. */
static void draw_convolved(computed_draw *d, const plan *s)
{
    computed_case *c = d->c;
    const uint32_t most = d->rank == 3 ? 40 : d->rank == 4 ? 9 : 4, batch = d->r == NULL ? 2 : 1 + below(d, 2);
    test_tensor_link(&c->inputs[0], d->type, d->rank);
    test_tensor_link(&c->inputs[s->filter], s->filter_type, d->rank);
    test_tensor_link(&c->output, s->out_type, d->rank);
    for (uint32_t i = 0; i + 2 < d->rank; i++)
        while (!draw_dimension(d, s, i, most))
            continue;
    c->inputs[0].sizes[0] = c->output.sizes[0] = batch;
    c->inputs[0].sizes[1] = s->groups * s->ins;
    c->output.sizes[1] = s->groups * s->outs;
    c->inputs[s->filter].sizes[0] = s->groups * (s->backward ? s->ins : s->outs);
    c->inputs[s->filter].sizes[1] = s->backward ? s->outs : s->ins;
    c->present[0] = c->present[s->filter] = true;
    lay_out(d, &c->inputs[0], false);
    lay_out(d, &c->inputs[s->filter], false);
    lay_out(d, &c->output, true);
}

/* An input of one element, or of one a channel of the output, in the second dimension or the only one; NULL: it is
 * absent. */
static const DML_TENSOR_DESC *draw_channels(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, bool many,
                                            unsigned percent)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = chance(d, percent);
    if (!d->c->present[i])
        return NULL;
    test_tensor_link(t, type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        t->sizes[k] = many && k == (d->rank > 1) ? d->c->output.sizes[1] : 1;
    lay_out(d, t, false);
    return &t->desc;
}

/* The plain case is forward in FLOAT16 and backward in other types. */
void draw_convolution(computed_draw *d)
{
    computed_case *c = d->c;
    const bool many = d->r != NULL && test_random_chance(d->r, 4);
    const bool backward = d->r == NULL ? d->type != DML_TENSOR_DATA_TYPE_FLOAT16 : chance(d, 50);
    plan s = { .backward = backward, .pads_output = true, .filter = 1, .filter_type = d->type, .out_type = d->type };
    s.groups = d->r == NULL ? 2 : 1 + below(d, chance(d, 60) ? 1 : 3);
    s.ins = d->r == NULL ? 3 : 1 + below(d, many ? 700 : chance(d, 20) ? 60 : 4);
    s.outs = 1 + below(d, many ? 2 : 3);
    if (d->r != NULL && !many && test_random_chance(d->r, 10)) { /* vectors of channels with windows of their own */
        s.groups = 16 * (1 + below(d, 2));
        s.ins = s.outs = 1;
    }
    const DML_CONVOLUTION_MODE mode = (DML_CONVOLUTION_MODE)below(d, 2);
    draw_convolved(d, &s);
    const DML_TENSOR_DESC *bias = chance(d, 50) ? draw_channels(d, 2, d->type, true, 100) : NULL;
    c->desc.convolution = (DML_CONVOLUTION_OPERATOR_DESC){ &c->inputs[0].desc,
                                                           &c->inputs[1].desc,
                                                           bias,
                                                           &c->output.desc,
                                                           mode,
                                                           backward ? DML_CONVOLUTION_DIRECTION_BACKWARD
                                                                    : DML_CONVOLUTION_DIRECTION_FORWARD,
                                                           d->rank - 2,
                                                           c->spaces[STRIDES],
                                                           c->spaces[DILATIONS],
                                                           c->spaces[START],
                                                           c->spaces[END],
                                                           c->spaces[OUTPUT],
                                                           s.groups,
                                                           draw_activation(d) };
}

void run_convolution(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_convolution(&c->desc.convolution, inputs, outputs[0]);
}

/* --- of integers -------------------------------------------------------------------------------------------------- */

static DML_TENSOR_DATA_TYPE byte_type(computed_draw *d)
{
    return below(d, 2) == 0 ? DML_TENSOR_DATA_TYPE_UINT8 : DML_TENSOR_DATA_TYPE_INT8;
}

static plan draw_plan(computed_draw *d, uint32_t filter, DML_TENSOR_DATA_TYPE out_type)
{
    plan s = { .filter = filter, .filter_type = byte_type(d), .out_type = out_type };
    s.groups = d->r == NULL ? 2 : 1 + below(d, chance(d, 60) ? 1 : 3);
    s.ins = 1 + below(d, chance(d, 80) ? 3 : 40);
    s.outs = 1 + below(d, 3);
    draw_convolved(d, &s);
    return s;
}

/* Of any rank. */
static const DML_TENSOR_DESC *draw_zero(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, bool many)
{
    const uint32_t rank = d->rank;
    if (d->r != NULL && chance(d, 40))
        d->rank = 1 + below(d, 4);
    const DML_TENSOR_DESC *desc = draw_channels(d, i, type, many, 50);
    d->rank = rank;
    return desc;
}

void draw_convolution_integer(computed_draw *d)
{
    computed_case *c = d->c;
    DML_CONVOLUTION_INTEGER_OPERATOR_DESC *desc = &c->desc.convolution_integer;
    const plan s = draw_plan(d, 2, DML_TENSOR_DATA_TYPE_INT32);
    *desc = (DML_CONVOLUTION_INTEGER_OPERATOR_DESC){ .InputTensor = &c->inputs[0].desc,
                                                     .FilterTensor = &c->inputs[2].desc,
                                                     .OutputTensor = &c->output.desc,
                                                     .DimensionCount = d->rank - 2,
                                                     .Strides = c->spaces[STRIDES],
                                                     .Dilations = c->spaces[DILATIONS],
                                                     .StartPadding = c->spaces[START],
                                                     .EndPadding = c->spaces[END],
                                                     .GroupCount = s.groups };
    desc->InputZeroPointTensor = draw_zero(d, 1, d->type, false);
    desc->FilterZeroPointTensor = draw_zero(d, 3, s.filter_type, chance(d, 50));
}

void run_convolution_integer(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_convolution_integer(&c->desc.convolution_integer, inputs, outputs[0]);
}

void draw_quantized_convolution(computed_draw *d)
{
    computed_case *c = d->c;
    DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC *desc = &c->desc.quantized_convolution;
    const DML_TENSOR_DATA_TYPE real = DML_TENSOR_DATA_TYPE_FLOAT32, out = d->r == NULL ? d->type : byte_type(d);
    const plan s = draw_plan(d, 3, out);
    *desc = (DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC){ .InputTensor = &c->inputs[0].desc,
                                                              .FilterTensor = &c->inputs[3].desc,
                                                              .OutputTensor = &c->output.desc,
                                                              .DimensionCount = d->rank - 2,
                                                              .Strides = c->spaces[STRIDES],
                                                              .Dilations = c->spaces[DILATIONS],
                                                              .StartPadding = c->spaces[START],
                                                              .EndPadding = c->spaces[END],
                                                              .GroupCount = s.groups };
    desc->InputScaleTensor = draw_channels(d, 1, real, false, 100);
    desc->InputZeroPointTensor = draw_channels(d, 2, d->type, false, 50);
    desc->FilterScaleTensor = draw_channels(d, 4, real, chance(d, 50), 100);
    desc->FilterZeroPointTensor = draw_channels(d, 5, s.filter_type, chance(d, 50), 50);
    desc->BiasTensor = draw_channels(d, 6, DML_TENSOR_DATA_TYPE_INT32, true, 50);
    desc->OutputScaleTensor = draw_channels(d, 7, real, false, 100);
    desc->OutputZeroPointTensor = draw_channels(d, 8, out, false, 50);
}

void run_quantized_convolution(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_quantized_linear_convolution(&c->desc.quantized_convolution, inputs, outputs[0]);
}
