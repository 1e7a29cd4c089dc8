/* SPDX-License-Identifier: Apache-2.0 */
/* ref_convolution.c - CONVOLUTION, literally: for each element a walk over the channels of its group and over all
 * places of the input, of which those take part that some tap of the window lies on. */
#include <string.h>

#include "tests/reference/reference.h"

typedef struct convolution {
    const DML_CONVOLUTION_OPERATOR_DESC *desc;
    ref_tensor in, filter, out;
    const void *input, *weights;
    bool backward;
    const uint32_t *at; /* the output's element */
} convolution;

/* The tap that connects place x of the padded or the plain input with place y of the output, from -1 on; -1: none. */
static int64_t tap_of(const convolution *c, uint32_t i, int64_t x, int64_t y)
{
    const DML_CONVOLUTION_OPERATOR_DESC *d = c->desc;
    const int64_t stride = d->Strides[i], dilation = d->Dilations[i], start = d->StartPadding[i];
    const int64_t distance = c->backward ? y + start - x * stride : x + start - y * stride;
    const int64_t tap = distance / dilation;
    return distance < 0 || distance % dilation != 0 || tap >= (int64_t)c->filter.sizes[2 + i] ? -1 : tap;
}

/* Reads the taps that place[] is at; returns whether there is one in each dimension.  number: of the step in the
 * window, whose steps are in the order of places. */
static bool find_taps(const convolution *c, const int64_t place[8], uint32_t filter[8], uint32_t *number)
{
    *number = 0;
    for (uint32_t i = 0; i < c->in.rank - 2; i++) {
        const int64_t tap = tap_of(c, i, place[i], c->at[2 + i]);
        const uint32_t size = c->filter.sizes[2 + i], other = size - 1 - (uint32_t)tap;
        if (tap < 0)
            return false;
        filter[2 + i] = c->desc->Mode == DML_CONVOLUTION_MODE_CROSS_CORRELATION ? (uint32_t)tap : other;
        *number = *number * size + (c->backward ? other : (uint32_t)tap);
    }
    return true;
}

/* The first place in dimension i, and the one behind the last. */
static int64_t first_place(const convolution *c, uint32_t i)
{
    return c->backward ? 0 : -(int64_t)c->desc->StartPadding[i];
}
static int64_t end_of_places(const convolution *c, uint32_t i)
{
    const int64_t window = (int64_t)(c->filter.sizes[2 + i] - 1) * c->desc->Dilations[i] + 1;
    return c->backward ? (int64_t)c->in.sizes[2 + i]
                       : first_place(c, i) + (int64_t)(c->out.sizes[2 + i] - 1) * c->desc->Strides[i] + window;
}

/* Adds the products of one channel of the group. */
static void add_channel(const convolution *c, uint32_t channel, uint32_t taps, ref_dot *sum)
{
    const uint32_t space = c->in.rank - 2, outs = c->out.sizes[1] / c->desc->GroupCount;
    const uint32_t own = c->at[1] / outs * (c->in.sizes[1] / c->desc->GroupCount) + channel;
    uint32_t in[8] = { c->at[0], own },
             filter[8] = { c->backward ? own : c->at[1], c->backward ? c->at[1] % outs : channel }, number;
    int64_t place[8];
    for (uint32_t i = 0; i < space; i++)
        place[i] = first_place(c, i);
    for (bool more = true; more;) {
        bool inside = true;
        for (uint32_t i = 0; i < space; i++) {
            inside = inside && place[i] >= 0 && place[i] < (int64_t)c->in.sizes[2 + i];
            in[2 + i] = (uint32_t)place[i];
        }
        if (find_taps(c, place, filter, &number))
            ref_dot_step(sum, (uint64_t)channel * taps + number,
                         inside ? ref_real(c->in.dtype, ref_get(&c->in, c->input, in)) : 0,
                         ref_real(c->filter.dtype, ref_get(&c->filter, c->weights, filter)));
        more = false;
        for (uint32_t i = space; i-- > 0 && !more;) { /* the next place, the last dimension first */
            more = ++place[i] < end_of_places(c, i);
            if (!more)
                place[i] = first_place(c, i);
        }
    }
}

void ref_convolution(const DML_CONVOLUTION_OPERATOR_DESC *desc, ref_inputs inputs, void *output)
{
    const bool backward = desc->Direction == DML_CONVOLUTION_DIRECTION_BACKWARD;
    convolution c = { desc,
                      ref_tensor_of(desc->InputTensor),
                      ref_tensor_of(desc->FilterTensor),
                      ref_tensor_of(desc->OutputTensor),
                      inputs[0],
                      inputs[1],
                      backward,
                      NULL };
    uint32_t taps = 1;
    for (uint32_t d = 2; d < c.filter.rank; d++)
        taps *= c.filter.sizes[d];
    for (uint64_t e = 0; e < ref_tensor_elements(&c.out); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&c.out, e, at);
        c.at = at;
        ref_dot sum = { .dtype = c.out.dtype, .block = taps > 256 ? taps : 256 / taps * taps }; /* whole channels */
        for (uint32_t channel = 0; channel < c.in.sizes[1] / desc->GroupCount; channel++)
            add_channel(&c, channel, taps, &sum);
        double x = ref_dot_result(&sum);
        if (desc->BiasTensor != NULL) {
            const ref_tensor bias = ref_tensor_of(desc->BiasTensor);
            const uint32_t of[8] = { 0, at[1] };
            x = ref_rounded(c.out.dtype, x + ref_real(bias.dtype, ref_get(&bias, inputs[2], of)));
        }
        for (uint32_t i = 0; i + 2 < c.out.rank && !backward; i++) /* zeros around the result */
            x = at[2 + i] >= c.out.sizes[2 + i] - desc->OutputPadding[i] ? 0 : x;
        if (desc->FusedActivation != NULL)
            x = x > 0 || x != x ? x : 0;
        ref_set(&c.out, output, at, ref_real_bits(c.out.dtype, x));
    }
}
