/* SPDX-License-Identifier: Apache-2.0 */
/* ref_recurrent.c - RNN, GRU and LSTM, literally: time after time, sequence after sequence, gate after gate.  Products
 * are chains of fma in blocks of 256, everything is FLOAT32 until it is stored.  Of activations RELU, LINEAR,
 * HARD_SIGMOID and SOFTSIGN, which need no functions of mathematics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum { X, W, R, B, H0 }; /* positions of inputs */

typedef struct network {
    ref_tensor tensors[8]; /* by position; of what is absent nothing */
    ref_inputs inputs;
    const DML_OPERATOR_DESC *activations;
    uint32_t gates, functions, lengths, times, batch, hidden, width;
    uint32_t direction, b; /* of the sequence that is computed; direction: 0 or 1 */
    bool backward;
    float *h, *c, *next;  /* hidden values and cells before, hidden values now, of the sequence */
} network;

static float rounded(double x)
{
    return (float)ref_rounded(F32, x);
}

static float get(const network *n, uint32_t input, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const ref_tensor *t = &n->tensors[input];
    return (float)ref_real(t->dtype, ref_get(t, n->inputs[input], (const uint32_t[8]){ a, b, c, d }));
}

float ref_activated(const DML_OPERATOR_DESC *op, float x)
{
    const DML_ACTIVATION_LINEAR_OPERATOR_DESC *linear = op->Desc; /* HARD_SIGMOID has the same fields */
    float y;
    switch (op->Type) {
    case DML_OPERATOR_ACTIVATION_RELU: return x > 0 || x != x ? x : 0;
    case DML_OPERATOR_ACTIVATION_SOFTSIGN: return rounded((double)x / rounded(1.0 + fabsf(x)));
    case DML_OPERATOR_ACTIVATION_LINEAR: return rounded((double)rounded((double)linear->Alpha * x) + linear->Beta);
    default:
        y = rounded((double)rounded((double)linear->Alpha * x) + linear->Beta);
        y = y < 1 || y != y ? y : 1;
        return y > 0 || y != y ? y : 0;
    }
}

static float activated(const network *n, uint32_t function, float x)
{
    return ref_activated(&n->activations[n->direction * n->functions + function], x);
}

/* X_t * W^T of a gate's element. */
static float weighted(const network *n, uint32_t t, uint32_t gate, uint32_t j)
{
    ref_dot dot = { .dtype = F32, .block = 256 };
    for (uint32_t k = 0; k < n->width; k++)
        ref_dot_step(&dot, k, get(n, X, 0, t, n->b, k), get(n, W, 0, n->direction, gate * n->hidden + j, k));
    return (float)ref_dot_result(&dot);
}

/* values * R^T of a gate's element. */
static float recurrence(const network *n, const float *values, uint32_t gate, uint32_t j)
{
    ref_dot dot = { .dtype = F32, .block = 256 };
    for (uint32_t k = 0; k < n->hidden; k++)
        ref_dot_step(&dot, k, values[k], get(n, R, 0, n->direction, gate * n->hidden + j, k));
    return (float)ref_dot_result(&dot);
}

/* x and a bias of a gate's element, Wb or (recurrent) Rb. */
static float biased(const network *n, float x, bool recurrent, uint32_t gate, uint32_t j)
{
    if (n->inputs[B] == NULL)
        return x;
    return rounded((double)x + get(n, B, 0, 0, n->direction, ((recurrent ? n->gates : 0) + gate) * n->hidden + j));
}

static float both_biased(const network *n, float x, uint32_t gate, uint32_t j)
{
    return biased(n, biased(n, x, false, gate, j), true, gate, j);
}

static float plain_gate(const network *n, uint32_t t, uint32_t gate, uint32_t j)
{
    const double x = rounded((double)weighted(n, t, gate, j) + recurrence(n, n->h, gate, j));
    return both_biased(n, (float)x, gate, j);
}

/* --- all sequences ------------------------------------------------------------------------------------------------ */

static void put(const DML_TENSOR_DESC *desc, void *base, const uint32_t at[8], float x)
{
    const ref_tensor t = ref_tensor_of(desc);
    ref_set(&t, base, at, ref_real_bits(t.dtype, x));
}

/* One time of one sequence: n->next and n->c from n->h and n->c. */
typedef void step_of(network *n, const void *desc, uint32_t t);

typedef struct outputs {
    const DML_TENSOR_DESC *sequence, *single, *cell;
    void *const *to;
} outputs;

static void run_sequence(network *n, const outputs *out, step_of *step, const void *desc)
{
    uint32_t length = n->times;
    if (n->inputs[n->lengths] != NULL) {
        const ref_tensor *t = &n->tensors[n->lengths];
        const uint64_t given = ref_get(t, n->inputs[n->lengths], (const uint32_t[8]){ 0, 0, 0, n->b });
        length = given < length ? (uint32_t)given : length;
    }
    for (uint32_t i = 0; i < n->times; i++) {
        const uint32_t t = i < length && n->backward ? length - 1 - i : i;
        if (i < length) {
            step(n, desc, t);
            memcpy(n->h, n->next, n->hidden * sizeof *n->h);
        }
        for (uint32_t j = 0; j < n->hidden && out->sequence != NULL; j++)
            put(out->sequence, out->to[0], (const uint32_t[8]){ t, n->direction, n->b, j }, i < length ? n->h[j] : 0);
    }
    for (uint32_t j = 0; j < n->hidden; j++) {
        const uint32_t at[8] = { 0, n->direction, n->b, j };
        if (out->single != NULL)
            put(out->single, out->to[1], at, n->h[j]);
        if (out->cell != NULL)
            put(out->cell, out->to[2], at, n->c[j]);
    }
}

static void run(network *n, DML_RECURRENT_NETWORK_DIRECTION direction, uint32_t cells, const outputs *out,
                step_of *step, const void *desc)
{
    const uint32_t directions = direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    n->times = n->tensors[X].sizes[1];
    n->batch = n->tensors[X].sizes[2];
    n->width = n->tensors[X].sizes[3];
    n->hidden = n->tensors[R].sizes[3];
    n->h = calloc(3 * (size_t)n->hidden, sizeof *n->h);
    n->c = n->h + n->hidden;
    n->next = n->c + n->hidden;
    for (n->direction = 0; n->direction < directions; n->direction++)
        for (n->b = 0; n->b < n->batch; n->b++) {
            n->backward = n->direction == 1 || direction == DML_RECURRENT_NETWORK_DIRECTION_BACKWARD;
            for (uint32_t j = 0; j < n->hidden; j++) {
                n->h[j] = n->inputs[H0] == NULL ? 0 : get(n, H0, 0, n->direction, n->b, j);
                n->c[j] = cells == 0 || n->inputs[cells] == NULL ? 0 : get(n, cells, 0, n->direction, n->b, j);
            }
            run_sequence(n, out, step, desc);
        }
    free(n->h);
}

static void take(network *n, uint32_t input, const DML_TENSOR_DESC *desc)
{
    if (desc != NULL)
        n->tensors[input] = ref_tensor_of(desc);
}

/* --- the three operators ------------------------------------------------------------------------------------------ */

static void step_rnn(network *n, const void *desc, uint32_t t)
{
    (void)desc;
    for (uint32_t j = 0; j < n->hidden; j++)
        n->next[j] = activated(n, 0, plain_gate(n, t, 0, j));
}

void ref_rnn(const DML_RNN_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs to)
{
    network n = { .inputs = inputs, .activations = desc->ActivationDescs, .gates = 1, .functions = 1, .lengths = 5 };
    const outputs out = { desc->OutputSequenceTensor, desc->OutputSingleTensor, NULL, to };
    const DML_TENSOR_DESC *all[6] = { desc->InputTensor, desc->WeightTensor,     desc->RecurrenceTensor,
                                      desc->BiasTensor,  desc->HiddenInitTensor, desc->SequenceLengthsTensor };
    for (uint32_t i = 0; i < 6; i++)
        take(&n, i, all[i]);
    run(&n, desc->Direction, 0, &out, step_rnn, desc);
}

static void step_gru(network *n, const void *of, uint32_t t)
{
    enum { Z, RESET, H };
    const DML_GRU_OPERATOR_DESC *desc = of;
    float *reset = calloc(n->hidden, sizeof *reset); /* r . H */
    for (uint32_t j = 0; j < n->hidden; j++)
        reset[j] = rounded((double)activated(n, 0, plain_gate(n, t, RESET, j)) * n->h[j]);
    for (uint32_t j = 0; j < n->hidden; j++) {
        const float z = activated(n, 0, plain_gate(n, t, Z, j)), x = weighted(n, t, H, j);
        float h;
        if (desc->LinearBeforeReset) {
            const float r = activated(n, 0, plain_gate(n, t, RESET, j));
            h = rounded((double)x + rounded((double)r * biased(n, recurrence(n, n->h, H, j), true, H, j)));
        } else {
            h = biased(n, rounded((double)x + recurrence(n, reset, H, j)), true, H, j);
        }
        h = activated(n, 1, biased(n, h, false, H, j));
        n->next[j] = rounded((double)rounded((double)rounded(1.0 - z) * h) + rounded((double)z * n->h[j]));
    }
    free(reset);
}

void ref_gru(const DML_GRU_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs to)
{
    network n = { .inputs = inputs, .activations = desc->ActivationDescs, .gates = 3, .functions = 2, .lengths = 5 };
    const outputs out = { desc->OutputSequenceTensor, desc->OutputSingleTensor, NULL, to };
    const DML_TENSOR_DESC *all[6] = { desc->InputTensor, desc->WeightTensor,     desc->RecurrenceTensor,
                                      desc->BiasTensor,  desc->HiddenInitTensor, desc->SequenceLengthsTensor };
    for (uint32_t i = 0; i < 6; i++)
        take(&n, i, all[i]);
    run(&n, desc->Direction, 0, &out, step_gru, desc);
}

/* A gate before its function; peephole: which of the three weights of the cells it has, -1: none. */
static float lstm_gate(const network *n, const DML_LSTM_OPERATOR_DESC *desc, uint32_t t, uint32_t gate, uint32_t j,
                       float cell, int peephole)
{
    float x = rounded((double)weighted(n, t, gate, j) + recurrence(n, n->h, gate, j));
    if (peephole >= 0 && n->inputs[7] != NULL)
        x = rounded((double)x +
                    rounded((double)get(n, 7, 0, 0, n->direction, (uint32_t)peephole * n->hidden + j) * cell));
    x = both_biased(n, x, gate, j);
    if (desc->UseClipThreshold) {
        x = x > -desc->ClipThreshold || x != x ? x : -desc->ClipThreshold;
        x = x < desc->ClipThreshold || x != x ? x : desc->ClipThreshold;
    }
    return x;
}

static void step_lstm(network *n, const void *of, uint32_t t)
{
    enum { I, O, F, C };
    const DML_LSTM_OPERATOR_DESC *desc = of;
    for (uint32_t j = 0; j < n->hidden; j++) {
        const float old = n->c[j], i = activated(n, 0, lstm_gate(n, desc, t, I, j, old, 0));
        const float c = activated(n, 1, lstm_gate(n, desc, t, C, j, old, -1));
        const float f = desc->CoupleInputForget ? rounded(1.0 - i)
                                                : activated(n, 0, lstm_gate(n, desc, t, F, j, old, 2));
        n->c[j] = rounded((double)rounded((double)f * old) + rounded((double)i * c));
        const float o = activated(n, 0, lstm_gate(n, desc, t, O, j, n->c[j], 1));
        n->next[j] = rounded((double)o * activated(n, 2, n->c[j]));
    }
}

void ref_lstm(const DML_LSTM_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs to)
{
    network n = { .inputs = inputs, .activations = desc->ActivationDescs, .gates = 4, .functions = 3, .lengths = 6 };
    const outputs out = { desc->OutputSequenceTensor, desc->OutputSingleTensor, desc->OutputCellSingleTensor, to };
    const DML_TENSOR_DESC *all[8] = { desc->InputTensor,           desc->WeightTensor,     desc->RecurrenceTensor,
                                      desc->BiasTensor,            desc->HiddenInitTensor, desc->CellMemInitTensor,
                                      desc->SequenceLengthsTensor, desc->PeepholeTensor };
    for (uint32_t i = 0; i < 8; i++)
        take(&n, i, all[i]);
    run(&n, desc->Direction, 5, &out, step_lstm, desc);
}
