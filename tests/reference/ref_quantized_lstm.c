/* SPDX-License-Identifier: Apache-2.0 */
/* ref_quantized_lstm.c - DYNAMIC_QUANTIZE_LSTM, literally: direction after direction, step after step, each element of
 * the batch with four sums of integers.  Everything else is FLOAT32 until it is stored.  Of activations RELU, LINEAR,
 * HARD_SIGMOID and SOFTSIGN, which need no functions of mathematics. */
#include <math.h>
#include <stdlib.h>

#include "tests/reference/reference.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum { X, W, R, B, H0, C0, SCALE, ZERO, OF_R = 2, INPUTS = 10 }; /* positions of inputs; R's scale is OF_R behind W's */
enum { I, O, F, C, GATES };

typedef struct network {
    const OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC *desc;
    ref_tensor tensors[INPUTS];
    ref_inputs inputs;
    uint32_t times, batch, hidden, width, direction;
} network;

/* Numbers as bytes. */
typedef struct quantized {
    float scale;
    int32_t zero, *bytes;
} quantized;

static float rounded(double x)
{
    return (float)ref_rounded(F32, x);
}

static float get(const network *n, uint32_t input, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const ref_tensor *t = &n->tensors[input];
    return (float)ref_real(t->dtype, ref_get(t, n->inputs[input], (const uint32_t[8]){ a, b, c, d }));
}

/* A byte of weights. */
static int32_t get_byte(const network *n, uint32_t input, uint32_t b, uint32_t c, uint32_t d)
{
    const ref_tensor *t = &n->tensors[input];
    const uint64_t bits = ref_get(t, n->inputs[input], (const uint32_t[8]){ 0, b, c, d });
    return t->dtype == DML_TENSOR_DATA_TYPE_INT8 ? (int32_t)(int8_t)bits : (int32_t)(uint8_t)bits;
}

/* The last coordinate of a scale or zero point for a column. */
static uint32_t place(const network *n, uint32_t input, uint32_t column)
{
    return n->tensors[input].sizes[3] == 1 ? 0 : column;
}

static double clamped(double x)
{
    return isnan(x) ? 0 : fmin(fmax(x, 0), 255);
}

static void quantize(quantized *q, const float *x, uint32_t count)
{
    double lo = 0, hi = 0;
    for (uint32_t i = 0; i < count; i++) {
        lo = lo < x[i] || isnan(lo) ? lo : x[i];
        hi = hi > x[i] || isnan(hi) ? hi : x[i];
    }
    q->scale = hi == lo ? 1 : rounded(rounded(hi - lo) / 255.0);
    q->zero = (int32_t)clamped(rint(rounded(0.0 - rounded(lo / (double)q->scale))));
    for (uint32_t i = 0; i < count; i++) {
        const double quotient = rint(rounded((double)x[i] / (double)q->scale));
        q->bytes[i] = (int32_t)clamped((isnan(quotient) ? 0 : quotient) + q->zero);
    }
}

/* A row of them by a column of the weights. */
static float product(const network *n, const quantized *q, const int32_t *row, uint32_t length, uint32_t weights,
                     uint32_t column)
{
    const uint32_t more = weights == R ? OF_R : 0, zero = ZERO + more, scale = SCALE + more;
    const int32_t point = n->inputs[zero] == NULL
                              ? 0
                              : get_byte(n, zero, 0, n->direction, place(n, zero, column));
    const float of_weights = get(n, scale, 0, 0, n->direction, place(n, scale, column));
    uint32_t sum = 0;
    for (uint32_t k = 0; k < length; k++)
        sum += (uint32_t)((row[k] - q->zero) * (get_byte(n, weights, n->direction, column, k) - point));
    return rounded((double)rounded((double)(int32_t)sum) * rounded((double)q->scale * of_weights));
}

static float activated(const network *n, uint32_t function, float x)
{
    return ref_activated(&n->desc->ActivationDescs[n->direction * 3 + function], x);
}

/* A gate of one sequence at a time, after its function. */
static float gate_of(const network *n, const quantized *x, const quantized *h, uint32_t t, uint32_t b, uint32_t gate,
                     uint32_t j)
{
    const uint32_t column = gate * n->hidden + j;
    float of_x = product(n, x, x->bytes + (t * n->batch + b) * n->width, n->width, W, column);
    if (n->inputs[B] != NULL)
        of_x = rounded((double)of_x + rounded((double)get(n, B, 0, 0, n->direction, column) +
                                              get(n, B, 0, 0, n->direction, GATES * n->hidden + column)));
    const float of_h = product(n, h, h->bytes + b * n->hidden, n->hidden, R, column);
    return activated(n, gate == C ? 1 : 0, rounded((double)of_x + of_h));
}

static void put(const DML_TENSOR_DESC *desc, void *base, const uint32_t at[8], float x)
{
    if (desc == NULL)
        return;
    const ref_tensor t = ref_tensor_of(desc);
    ref_set(&t, base, at, ref_real_bits(t.dtype, x));
}

/* All steps of a direction; h, c: the states of the batch. */
static void run(const network *n, const quantized *x, float *h, float *c, bool backward, ref_outputs to)
{
    quantized of_h = { .bytes = calloc((size_t)n->batch * n->hidden, sizeof(int32_t)) };
    for (uint32_t step = 0; step < n->times; step++) {
        const uint32_t t = backward ? n->times - 1 - step : step;
        quantize(&of_h, h, n->batch * n->hidden);
        for (uint32_t b = 0; b < n->batch; b++)
            for (uint32_t j = 0; j < n->hidden; j++) {
                const uint32_t own = b * n->hidden + j;
                const float i = gate_of(n, x, &of_h, t, b, I, j), o = gate_of(n, x, &of_h, t, b, O, j);
                const float f = gate_of(n, x, &of_h, t, b, F, j), g = gate_of(n, x, &of_h, t, b, C, j);
                c[own] = rounded((double)rounded((double)f * c[own]) + rounded((double)i * g));
                h[own] = rounded((double)o * activated(n, 2, c[own]));
                put(n->desc->OutputSequenceTensor, to[0], (const uint32_t[8]){ t, n->direction, b, j }, h[own]);
                put(n->desc->OutputSingleTensor, to[1], (const uint32_t[8]){ 0, n->direction, b, j }, h[own]);
                put(n->desc->OutputCellSingleTensor, to[2], (const uint32_t[8]){ 0, n->direction, b, j }, c[own]);
            }
    }
    free(of_h.bytes);
}

static void run_directions(network *n, uint32_t directions, const quantized *x, ref_outputs to)
{
    const uint32_t count = n->batch * n->hidden;
    float *h = calloc(2 * (size_t)count, sizeof *h), *c = h + count;
    for (n->direction = 0; n->direction < directions; n->direction++) {
        for (uint32_t e = 0; e < count; e++) {
            const uint32_t b = e / n->hidden, j = e % n->hidden;
            h[e] = n->inputs[H0] == NULL ? 0 : get(n, H0, 0, n->direction, b, j);
            c[e] = n->inputs[C0] == NULL ? 0 : get(n, C0, 0, n->direction, b, j);
        }
        run(n, x, h, c, n->direction == 1 || n->desc->Direction == DML_RECURRENT_NETWORK_DIRECTION_BACKWARD, to);
    }
    free(h);
}

void ref_dynamic_quantize_lstm(const OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs to)
{
    const DML_TENSOR_DESC *all[INPUTS] = { desc->InputTensor,           desc->WeightTensor,
                                           desc->RecurrenceTensor,      desc->BiasTensor,
                                           desc->HiddenInitTensor,      desc->CellMemInitTensor,
                                           desc->WeightScaleTensor,     desc->WeightZeroPointTensor,
                                           desc->RecurrenceScaleTensor, desc->RecurrenceZeroPointTensor };
    network n = { .desc = desc, .inputs = inputs };
    for (uint32_t i = 0; i < INPUTS; i++)
        if (all[i] != NULL)
            n.tensors[i] = ref_tensor_of(all[i]);
    n.times = n.tensors[X].sizes[1];
    n.batch = n.tensors[X].sizes[2];
    n.width = n.tensors[X].sizes[3];
    n.hidden = n.tensors[R].sizes[3];
    const uint32_t rows = n.times * n.batch, count = rows * n.width;
    float *numbers = calloc(count, sizeof *numbers);
    quantized x = { .bytes = calloc(count, sizeof(int32_t)) };
    for (uint32_t e = 0; e < count; e++)
        numbers[e] = get(&n, X, 0, e / n.width / n.batch, e / n.width % n.batch, e % n.width);
    quantize(&x, numbers, count);
    run_directions(&n, desc->Direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1, &x, to);
    free(x.bytes);
    free(numbers);
}
