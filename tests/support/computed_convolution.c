/* SPDX-License-Identifier: Apache-2.0 */
/* computed_convolution.c - draws of convolutions. */
#include "tests/support/computed_draw.h"

enum { STRIDES, DILATIONS, START, END, OUTPUT }; /* rows of computed_case.spaces */

typedef struct sizes_of {
    bool backward;
    uint32_t groups, ins, outs; /* channels of a group */
} sizes_of;

/* One spatial dimension; whether something of the output is left. */
static bool draw_dimension(computed_draw *d, const sizes_of *s, uint32_t i, uint32_t most)
{
    computed_case *c = d->c;
    const uint32_t in = d->r == NULL ? 6 : 1 + below(d, most), taps = 1 + below(d, chance(d, 70) ? 3 : 5);
    c->spaces[STRIDES][i] = d->r == NULL ? 2 : 1 + below(d, chance(d, 50) ? 1 : 3);
    c->spaces[DILATIONS][i] = d->r == NULL ? 2 : 1 + below(d, chance(d, 70) ? 1 : 3);
    c->spaces[START][i] = below(d, chance(d, 50) ? 2 : 4);
    c->spaces[END][i] = below(d, chance(d, 50) ? 2 : 4);
    c->spaces[OUTPUT][i] = d->r == NULL || chance(d, 20) ? below(d, 3) : 0;
    const int64_t window = (int64_t)(taps - 1) * c->spaces[DILATIONS][i] + 1;
    const int64_t cut = (int64_t)c->spaces[START][i] + c->spaces[END][i], stride = c->spaces[STRIDES][i];
    const int64_t out = s->backward         ? (in - 1) * stride + window + c->spaces[OUTPUT][i] - cut
                        : in + cut < window ? 0
                                            : (in + cut - window) / stride + 1 + c->spaces[OUTPUT][i];
    c->inputs[0].sizes[2 + i] = in;
    c->inputs[1].sizes[2 + i] = taps;
    c->output.sizes[2 + i] = (uint32_t)out;
    return out > 0;
}

/* Sizes of input, filter, output and, with `bias`, of input 2; types and layouts. */
static void draw_convolved(computed_draw *d, const sizes_of *s)
{
    computed_case *c = d->c;
    const uint32_t most = d->rank == 3 ? 40 : d->rank == 4 ? 9 : 4, batch = d->r == NULL ? 2 : 1 + below(d, 2);
    test_tensor_link(&c->inputs[0], d->type, d->rank);
    test_tensor_link(&c->inputs[1], d->type, d->rank);
    test_tensor_link(&c->output, d->type, d->rank);
    for (uint32_t i = 0; i + 2 < d->rank; i++)
        while (!draw_dimension(d, s, i, most))
            continue;
    c->inputs[0].sizes[0] = c->output.sizes[0] = batch;
    c->inputs[0].sizes[1] = s->groups * s->ins;
    c->output.sizes[1] = s->groups * s->outs;
    c->inputs[1].sizes[0] = s->groups * (s->backward ? s->ins : s->outs);
    c->inputs[1].sizes[1] = s->backward ? s->outs : s->ins;
    c->present[0] = c->present[1] = true;
    lay_out(d, &c->inputs[0], false);
    lay_out(d, &c->inputs[1], false);
    lay_out(d, &c->output, true);
}

/* An input of one element a channel of the output. */
static const DML_TENSOR_DESC *draw_channels(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = true;
    test_tensor_link(t, type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++)
        t->sizes[k] = k == 1 ? d->c->output.sizes[1] : 1;
    lay_out(d, t, false);
    return &t->desc;
}

/* The plain case is forward in FLOAT16 and backward in other types. */
void draw_convolution(computed_draw *d)
{
    computed_case *c = d->c;
    const bool many = d->r != NULL && test_random_chance(d->r, 4);
    const bool backward = d->r == NULL ? d->type != DML_TENSOR_DATA_TYPE_FLOAT16 : chance(d, 50);
    const sizes_of s = { backward, d->r == NULL ? 2 : 1 + below(d, chance(d, 60) ? 1 : 3),
                         d->r == NULL ? 3
                                      : 1 + below(d, many            ? 700
                                                     : chance(d, 20) ? 60
                                                                     : 4),
                         1 + below(d, many ? 2 : 3) };
    const DML_CONVOLUTION_MODE mode = (DML_CONVOLUTION_MODE)below(d, 2);
    draw_convolved(d, &s);
    const DML_TENSOR_DESC *bias = chance(d, 50) ? draw_channels(d, 2, d->type) : NULL;
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
