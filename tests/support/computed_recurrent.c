/* SPDX-License-Identifier: Apache-2.0 */
/* computed_recurrent.c - draws of RNN, GRU, LSTM and DYNAMIC_QUANTIZE_LSTM, for rows of computed.c. */
#include "tests/support/computed_draw.h"

typedef struct sizes {
    uint32_t times, batch, width, hidden, directions;
} sizes;

static const DML_TENSOR_DESC *draw_of(computed_draw *d, test_tensor *t, DML_TENSOR_DATA_TYPE type, bool is_output,
                                      const uint32_t *of)
{
    test_tensor_link(t, type, d->rank); /* 4, where it is to be legal */
    for (uint32_t i = 0; i < d->rank; i++)
        t->sizes[i] = i < 4 ? of[i] : 1;
    lay_out(d, t, is_output);
    return &t->desc;
}

static const DML_TENSOR_DESC *draw_input(computed_draw *d, uint32_t i, bool optional, const uint32_t *of)
{
    d->c->present[i] = !optional || chance(d, 60);
    return d->c->present[i] ? draw_of(d, &d->c->inputs[i], d->type, false, of) : NULL;
}

static const DML_TENSOR_DESC *draw_output(computed_draw *d, uint32_t i, const uint32_t *of)
{
    d->c->more_present[i] = chance(d, 60);
    return d->c->more_present[i] ? draw_of(d, &d->c->more[i], d->type, true, of) : NULL;
}

static const DML_TENSOR_DESC *draw_lengths(computed_draw *d, uint32_t i, uint32_t batch)
{
    d->c->present[i] = chance(d, 40);
    return d->c->present[i] ? draw_of(d, &d->c->inputs[i], DML_TENSOR_DATA_TYPE_UINT32, false,
                                      (const uint32_t[]){ 1, 1, 1, batch })
                            : NULL;
}

/* Mostly small; sometimes more sequences than a block has, or rows that are worth tiles. */
static sizes draw_sizes(computed_draw *d, bool both)
{
    sizes s = { 3, 2, 3, 4, both ? 2 : 1 };
    if (d->r == NULL)
        return s;
    const bool many = test_random_chance(d->r, 8), wide = test_random_chance(d->r, 15);
    s.times = 1 + below(d, many || wide ? 3 : 6);
    s.batch = many ? 17 + below(d, 40) : 1 + below(d, wide ? 17 : 5);
    s.width = 1 + below(d, 12);
    s.hidden = 1 + below(d, many ? 9 : wide ? 40 : 14);
    return s;
}

static void draw_activations(computed_draw *d, uint32_t count)
{
    static const DML_OPERATOR_TYPE types[] = { DML_OPERATOR_ACTIVATION_RELU, DML_OPERATOR_ACTIVATION_LINEAR,
                                               DML_OPERATOR_ACTIVATION_HARD_SIGMOID,
                                               DML_OPERATOR_ACTIVATION_SOFTSIGN };
    const bool alike = chance(d, 50);
    for (uint32_t i = 0; i < count; i++) {
        d->c->functions_desc[i] = (DML_ACTIVATION_LINEAR_OPERATOR_DESC){ NULL, NULL, 0.25f, 0.5f };
        d->c->functions[i] = (DML_OPERATOR_DESC){ types[below(d, 4)], &d->c->functions_desc[i] };
        if (alike && i >= count / 2)
            d->c->functions[i].Type = d->c->functions[i - count / 2].Type;
    }
}

void computed_draw_recurrent(computed_draw *d)
{
    const bool lstm = d->c->op.Type == DML_OPERATOR_LSTM, gru = d->c->op.Type == DML_OPERATOR_GRU;
    const DML_RECURRENT_NETWORK_DIRECTION direction = (DML_RECURRENT_NETWORK_DIRECTION)below(d, 3);
    const sizes s = draw_sizes(d, direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL);
    const uint32_t gates = (lstm ? 4 : gru ? 3 : 1) * s.hidden, n = s.directions, b = s.batch, h = s.hidden;
    const uint32_t functions = (lstm ? 3 : gru ? 2 : 1) * n, single[4] = { 1, n, b, h };
    const DML_TENSOR_DESC *x = draw_input(d, 0, false, (const uint32_t[]){ 1, s.times, b, s.width });
    const DML_TENSOR_DESC *w = draw_input(d, 1, false, (const uint32_t[]){ 1, n, gates, s.width });
    const DML_TENSOR_DESC *r = draw_input(d, 2, false, (const uint32_t[]){ 1, n, gates, h });
    const DML_TENSOR_DESC *bias = draw_input(d, 3, true, (const uint32_t[]){ 1, 1, n, 2 * gates });
    const DML_TENSOR_DESC *init = draw_input(d, 4, true, single);
    const DML_TENSOR_DESC *cells = lstm ? draw_input(d, 5, true, single) : NULL;
    const DML_TENSOR_DESC *lengths = draw_lengths(d, lstm ? 6 : 5, b);
    const DML_TENSOR_DESC *peephole = lstm ? draw_input(d, 7, true, (const uint32_t[]){ 1, 1, n, 3 * h }) : NULL;
    const DML_TENSOR_DESC *sequence =
        draw_of(d, &d->c->output, d->type, true, (const uint32_t[]){ s.times, n, b, h });
    const DML_TENSOR_DESC *last = draw_output(d, 0, single), *cell = lstm ? draw_output(d, 1, single) : NULL;
    draw_activations(d, functions);
    if (lstm)
        d->c->desc.lstm = (DML_LSTM_OPERATOR_DESC){
            x, w, r, bias, init, cells, lengths, peephole, sequence, last, cell, functions, d->c->functions, direction,
            1.5f, chance(d, 40), chance(d, 40)
        };
    else if (gru)
        d->c->desc.gru = (DML_GRU_OPERATOR_DESC){
            x, w, r, bias, init, lengths, sequence, last, functions, d->c->functions, direction,
            d->r != NULL && test_random_chance(d->r, 50)
        };
    else
        d->c->desc.rnn = (DML_RNN_OPERATOR_DESC){ x,    w,         r,               bias,     init, lengths, sequence,
                                                  last, functions, d->c->functions, direction };
}

void computed_recurrent(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    if (c->op.Type == DML_OPERATOR_LSTM)
        ref_lstm(&c->desc.lstm, inputs, outputs);
    else if (c->op.Type == DML_OPERATOR_GRU)
        ref_gru(&c->desc.gru, inputs, outputs);
    else
        ref_rnn(&c->desc.rnn, inputs, outputs);
}

/* --- DYNAMIC_QUANTIZE_LSTM ---------------------------------------------------------------------------------------- */

static const DML_TENSOR_DESC *draw_weights(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, const uint32_t *of)
{
    d->c->present[i] = true;
    return draw_of(d, &d->c->inputs[i], type, false, of);
}

/* One element for each direction, or for each of its columns. */
static const DML_TENSOR_DESC *draw_vector(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t directions,
                                          uint32_t columns)
{
    return draw_weights(d, i, type, (const uint32_t[]){ 1, 1, directions, chance(d, 50) ? columns : 1 });
}

void computed_draw_quantized_lstm(computed_draw *d)
{
    const DML_RECURRENT_NETWORK_DIRECTION direction = (DML_RECURRENT_NETWORK_DIRECTION)below(d, 3);
    const DML_TENSOR_DATA_TYPE of_w = below(d, 2) == 0 ? DML_TENSOR_DATA_TYPE_UINT8 : DML_TENSOR_DATA_TYPE_INT8,
                               of_r = chance(d, 70) ? of_w : DML_TENSOR_DATA_TYPE_UINT8;
    const sizes s = draw_sizes(d, direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL);
    const uint32_t gates = 4 * s.hidden, n = s.directions, b = s.batch, h = s.hidden, single[4] = { 1, n, b, h };
    OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC *desc = &d->c->desc.quantized_lstm;
    desc->InputTensor = draw_input(d, 0, false, (const uint32_t[]){ 1, s.times, b, s.width });
    desc->WeightTensor = draw_weights(d, 1, of_w, (const uint32_t[]){ 1, n, gates, s.width });
    desc->RecurrenceTensor = draw_weights(d, 2, of_r, (const uint32_t[]){ 1, n, gates, h });
    desc->BiasTensor = draw_input(d, 3, true, (const uint32_t[]){ 1, 1, n, 2 * gates });
    desc->HiddenInitTensor = draw_input(d, 4, true, single);
    desc->CellMemInitTensor = draw_input(d, 5, true, single);
    desc->WeightScaleTensor = draw_vector(d, 6, d->type, n, gates);
    desc->WeightZeroPointTensor = chance(d, 60) ? draw_vector(d, 7, of_w, n, gates) : NULL;
    desc->RecurrenceScaleTensor = draw_vector(d, 8, d->type, n, gates);
    desc->RecurrenceZeroPointTensor = chance(d, 60) ? draw_vector(d, 9, of_r, n, gates) : NULL;
    desc->OutputSequenceTensor =
        draw_of(d, &d->c->output, d->type, true, (const uint32_t[]){ s.times, n, b, h });
    desc->OutputSingleTensor = draw_output(d, 0, single);
    desc->OutputCellSingleTensor = draw_output(d, 1, single);
    desc->ActivationDescCount = 3 * n;
    draw_activations(d, desc->ActivationDescCount);
    desc->ActivationDescs = d->c->functions;
    desc->Direction = direction;
}

void computed_quantized_lstm(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_dynamic_quantize_lstm(&c->desc.quantized_lstm, inputs, outputs);
}
