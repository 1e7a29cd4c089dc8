/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c - RNN, GRU and LSTM: DirectML's operators have ONNX's meaning, in four dimensions. */
#include <strings.h>

#include "frontend/onnx/ops/ops.h"

enum { ACTIVATIONS = 6 };

/* An activation by its ONNX name, with alpha and beta where they are given. */
typedef struct activation {
    DML_OPERATOR_DESC desc;
    union {
        DML_ACTIVATION_RELU_OPERATOR_DESC plain;
        DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC two; /* and all others with up to two numbers behind the tensors */
    } fields;
} activation;

static const struct {
    const char *name;
    DML_OPERATOR_TYPE type;
    uint32_t numbers;  /* how many of alpha and beta it takes */
    float alpha, beta; /* defaults */
} activations[] = {
    { "Sigmoid", DML_OPERATOR_ACTIVATION_SIGMOID, 0, 0, 0 },
    { "Tanh", DML_OPERATOR_ACTIVATION_TANH, 0, 0, 0 },
    { "Relu", DML_OPERATOR_ACTIVATION_RELU, 0, 0, 0 },
    { "Affine", DML_OPERATOR_ACTIVATION_LINEAR, 2, 1, 0 },
    { "LeakyRelu", DML_OPERATOR_ACTIVATION_LEAKY_RELU, 1, 0.01f, 0 },
    { "ThresholdedRelu", DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU, 1, 1, 0 },
    { "ScaledTanh", DML_OPERATOR_ACTIVATION_SCALED_TANH, 2, 1, 1 },
    { "HardSigmoid", DML_OPERATOR_ACTIVATION_HARD_SIGMOID, 2, 0.2f, 0.5f },
    { "Elu", DML_OPERATOR_ACTIVATION_ELU, 1, 1, 0 },
    { "Softsign", DML_OPERATOR_ACTIVATION_SOFTSIGN, 0, 0, 0 },
    { "Softplus", DML_OPERATOR_ACTIVATION_SOFTPLUS, 0, 1, 0 },
};

/* The next of the attribute's numbers, if there is one: each function takes as many as it has. */
static float next_number(const onnx_attribute *a, uint32_t *taken, float otherwise)
{
    return a != NULL && a->floats != NULL && *taken < a->count ? a->floats[(*taken)++] : otherwise;
}

/* Whether a function has this name; ONNX Runtime takes small letters, too. */
static bool is_named(wire_bytes given, const char *name)
{
    return given.size == strlen(name) && strncasecmp((const char *)given.data, name, given.size) == 0;
}

/* Activation i of the node, after those before it took some of alphas and betas; defaults: those of one direction. */
static opjit_status read_activation(onnx_import *m, const onnx_call *c, uint32_t i, const char *const *defaults,
                                    uint32_t each, uint32_t taken[2], activation *out)
{
    const onnx_attribute *const names = opjit_onnx_attribute(m, c, "activations");
    const onnx_attribute *const alpha = opjit_onnx_attribute(m, c, "activation_alpha");
    const onnx_attribute *const beta = opjit_onnx_attribute(m, c, "activation_beta");
    const wire_bytes otherwise = { (const uint8_t *)defaults[i % each], strlen(defaults[i % each]) };
    const wire_bytes name = names != NULL && names->strings != NULL && i < names->count ? names->strings[i] : otherwise;
    for (uint32_t k = 0; k < sizeof activations / sizeof *activations; k++) {
        if (!is_named(name, activations[k].name))
            continue;
        out->fields.two = (DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC){
            .Alpha = next_number(activations[k].numbers > 0 ? alpha : NULL, &taken[0], activations[k].alpha),
            .Beta = next_number(activations[k].numbers > 1 ? beta : NULL, &taken[1], activations[k].beta)
        };
        out->desc = (DML_OPERATOR_DESC){ activations[k].type, &out->fields };
        return OPJIT_OK;
    }
    return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "activation " ONNX_NAME " is not taken", ONNX_SHOW(name));
}

/* What is said of the call as a whole. */
typedef struct recurrent {
    DML_RECURRENT_NETWORK_DIRECTION direction;
    uint32_t directions;
    bool by_batch; /* layout 1: the batch comes before time */
    uint64_t steps, batch, hidden;
    activation activation[ACTIVATIONS];
    DML_OPERATOR_DESC descs[ACTIVATIONS];
    uint32_t activation_count;
} recurrent;

static opjit_status read_recurrent(onnx_import *m, const onnx_call *c, const char *const *defaults, uint32_t each,
                                   recurrent *r)
{
    const onnx_value *const x = c->inputs[0], *const w = c->inputs[2];
    r->by_batch = opjit_onnx_int(m, c, "layout", 0) != 0;
    if (x->rank != 3 || w->rank != 3)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u dimensions, must be 3", x->rank);
    r->direction = opjit_onnx_text_is(m, c, "direction", "reverse", "forward")
                       ? DML_RECURRENT_NETWORK_DIRECTION_BACKWARD
                   : opjit_onnx_text_is(m, c, "direction", "bidirectional", "forward")
                       ? DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL
                       : DML_RECURRENT_NETWORK_DIRECTION_FORWARD;
    r->directions = r->direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    r->steps = x->dims[r->by_batch];
    r->batch = x->dims[!r->by_batch];
    r->hidden = w->dims[2];
    r->activation_count = each * r->directions;
    uint32_t taken[2] = { 0 };
    for (uint32_t i = 0; i < r->activation_count; i++) {
        TRY(read_activation(m, c, i, defaults, each, taken, &r->activation[i]));
        r->descs[i] = r->activation[i].desc;
    }
    return OPJIT_OK;
}

/* Input i as four dimensions, the first of size 1; states of layout 1 have the batch first.  Null: absent. */
static opjit_tensor part(onnx_import *m, const onnx_call *c, uint32_t i, const recurrent *r, bool is_state)
{
    static const uint32_t turned[3] = { 1, 0, 2 };
    onnx_value *const v = onnx_input(c, i);
    uint64_t dims[4] = { 1, 1, 1, 1 };
    if (v == NULL)
        return (opjit_tensor){ 0, 0 };
    if (v->rank > 3) {
        opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %u dimensions, must have at most 3", i, v->rank);
        return (opjit_tensor){ 0, 0 };
    }
    opjit_tensor t = opjit_onnx_tensor(m, v);
    uint64_t sizes[ONNX_RANK];
    memcpy(sizes, v->dims, sizeof sizes);
    if (is_state && r->by_batch && v->rank == 3) {
        t = opjit_graph_transpose(m->graph, t, turned);
        sizes[0] = v->dims[1];
        sizes[1] = v->dims[0];
    }
    for (uint32_t d = 0; d < v->rank; d++)
        dims[4 - v->rank + d] = sizes[d];
    return opjit_onnx_reshape(m, t, 4, dims);
}

/* Outputs: the sequence {steps, directions, batch, hidden}, then states {1, directions, batch, hidden}. */
static opjit_status give_outputs(onnx_import *m, onnx_call *c, const recurrent *r, const opjit_tensor *results,
                                 uint32_t count)
{
    static const uint32_t sequence[4] = { 2, 0, 1, 3 }, state[3] = { 1, 0, 2 };
    const int32_t type = c->inputs[0]->type;
    for (uint32_t i = 0; i < count; i++) {
        if (!onnx_wants(c, i))
            continue;
        opjit_tensor t = results[i];
        if (i != 0) {
            const uint64_t dims[3] = { r->directions, r->batch, r->hidden };
            t = opjit_onnx_reshape(m, t, 3, dims);
        }
        if (r->by_batch)
            t = opjit_graph_transpose(m->graph, t, i == 0 ? sequence : state);
        TRY(opjit_onnx_give(m, c, i, t, type, i == 0 ? 4 : 3));
    }
    return OPJIT_OK;
}

/* Adds the operator of the descriptor: X, W, R, B, h0, c0 (LSTM), lengths, peepholes (LSTM). */
static opjit_status add(onnx_import *m, onnx_call *c, const recurrent *r, const void *desc)
{
    const DML_OPERATOR_TYPE type = (DML_OPERATOR_TYPE)c->row->arg;
    const bool lstm = type == DML_OPERATOR_LSTM;
    opjit_tensor results[3];
    opjit_tensor lengths = part(m, c, 4, r, false);
    opjit_tensor inputs[8] = { part(m, c, 0, r, true), part(m, c, 1, r, false), part(m, c, 2, r, false),
                               part(m, c, 3, r, false), part(m, c, 5, r, true) };
    if (lengths.index != 0)
        lengths = opjit_onnx_cast(m, lengths, c->inputs[4]->type, ONNX_UINT32);
    uint32_t count = 5;
    if (lstm)
        inputs[count++] = part(m, c, 6, r, true);
    inputs[count++] = lengths;
    if (lstm)
        inputs[count++] = part(m, c, 7, r, false);
    const uint32_t made = lstm ? 3 : 2;
    opjit_onnx_add(m, type, desc, inputs, count, results, made);
    TRY(opjit_onnx_status(m));
    return give_outputs(m, c, r, results, made);
}

opjit_status opjit_onnx_rnn(onnx_import *m, onnx_call *c)
{
    static const char *const defaults[] = { "Tanh" };
    recurrent r = { 0 };
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_recurrent(m, c, defaults, 1, &r));
    if (opjit_onnx_attribute(m, c, "clip") != NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute clip is not taken");
    DML_RNN_OPERATOR_DESC desc = { 0 };
    desc.ActivationDescCount = r.activation_count;
    desc.ActivationDescs = r.descs;
    desc.Direction = r.direction;
    return add(m, c, &r, &desc);
}

opjit_status opjit_onnx_gru(onnx_import *m, onnx_call *c)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh" };
    recurrent r = { 0 };
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_recurrent(m, c, defaults, 2, &r));
    if (opjit_onnx_attribute(m, c, "clip") != NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute clip is not taken");
    DML_GRU_OPERATOR_DESC desc = { 0 };
    desc.ActivationDescCount = r.activation_count;
    desc.ActivationDescs = r.descs;
    desc.Direction = r.direction;
    desc.LinearBeforeReset = opjit_onnx_int(m, c, "linear_before_reset", 0) != 0;
    return add(m, c, &r, &desc);
}

opjit_status opjit_onnx_lstm(onnx_import *m, onnx_call *c)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    recurrent r = { 0 };
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_recurrent(m, c, defaults, 3, &r));
    DML_LSTM_OPERATOR_DESC desc = { 0 };
    desc.ActivationDescCount = r.activation_count;
    desc.ActivationDescs = r.descs;
    desc.Direction = r.direction;
    desc.ClipThreshold = opjit_onnx_float(m, c, "clip", 0);
    desc.UseClipThreshold = opjit_onnx_attribute(m, c, "clip") != NULL;
    desc.CoupleInputForget = opjit_onnx_int(m, c, "input_forget", 0) != 0;
    return add(m, c, &r, &desc);
}

/* --- DynamicQuantizeLSTM ------------------------------------------------------------------------------------------ */

/* One direction of com.microsoft's DynamicQuantizeLSTM. */
typedef struct quantized_lstm {
    onnx_value weights[2], scale[2], zero[2]; /* of X and of the state: {inputs, columns}, {1, 1 or columns} */
    onnx_value bias;                          /* {1, columns}; type 0: none */
    uint64_t steps, batch, hidden;
    bool backward;
} quantized_lstm;

/* Part d of a constant input, by other sizes.  Refuses what is not known. */
static opjit_status take_part(onnx_import *m, const onnx_call *c, uint32_t i, uint64_t d, uint64_t rows,
                              uint64_t columns, onnx_value *out)
{
    onnx_value *const v = onnx_input(c, i);
    const uint8_t *const data = v == NULL ? NULL : opjit_onnx_stored(m, v);
    TRY(m->error->status);
    if (data == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input %u is not known when the model is compiled", i);
    if (v->rank == 0 || v->dims[0] <= d || opjit_onnx_elements_of(v) != v->dims[0] * rows * columns)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %llu elements, must have %llu for each "
                                                               "direction",
                                 i, (unsigned long long)opjit_onnx_elements_of(v),
                                 (unsigned long long)(rows * columns));
    const size_t bytes = (size_t)(rows * columns) * opjit_rt_dtype_size(opjit_onnx_dtype(v->type));
    const void *part = data + d * bytes;
    if (v->type != ONNX_INT8 && v->type != ONNX_UINT8) { /* those lie anywhere; of the others there are few */
        void *const copy = opjit_onnx_room(m, bytes);
        if (copy == NULL)
            return m->error->status;
        part = memcpy(copy, part, bytes);
    }
    *out = (onnx_value){ .type = v->type, .rank = 2, .dims = { rows, columns }, .data = part };
    return OPJIT_OK;
}

static opjit_status read_quantized(onnx_import *m, const onnx_call *c, uint64_t d, quantized_lstm *q)
{
    enum { B = 3, SCALES = 8 };
    const uint64_t columns = 4 * q->hidden;
    for (uint32_t i = 0; i < 2; i++) { /* W, then R */
        const onnx_value *const scale = onnx_input(c, SCALES + 2 * i), *const w = c->inputs[1 + i];
        const uint64_t each = scale != NULL && scale->rank == 2 ? columns : 1;
        TRY(take_part(m, c, 1 + i, d, w->dims[1], columns, &q->weights[i]));
        TRY(take_part(m, c, SCALES + 2 * i, d, 1, each, &q->scale[i]));
        TRY(take_part(m, c, SCALES + 1 + 2 * i, d, 1, each, &q->zero[i]));
    }
    if (onnx_input(c, B) == NULL)
        return OPJIT_OK;
    TRY(take_part(m, c, B, d, 2, columns, &q->bias));
    float *const bias = (float *)(uintptr_t)q->bias.data; /* a copy: X's, to which the state's is added */
    for (uint64_t k = 0; k < columns && q->bias.type == ONNX_FLOAT; k++)
        bias[k] += bias[columns + k];
    q->bias.dims[0] = 1;
    return OPJIT_OK;
}

/* {rows, n}, which becomes 8 bits by its range, by the weights. */
static opjit_tensor quantized_product(onnx_import *m, opjit_tensor x, quantized_lstm *q, uint32_t i)
{
    static const uint64_t one[2] = { 1, 1 };
    opjit_graph *const g = m->graph;
    opjit_tensor parts[3]; /* elements, scale, zero point */
    opjit_onnx_add(m, DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR, NULL, &x, 1, parts, 3);
    const opjit_tensor inputs[4] = { parts[0], opjit_onnx_reshape(m, parts[2], 2, one),
                                     opjit_onnx_tensor(m, &q->weights[i]), opjit_onnx_tensor(m, &q->zero[i]) };
    const opjit_tensor sums = opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, NULL, inputs, 4);
    return opjit_graph_multiply(
        g, opjit_onnx_cast(m, sums, ONNX_INT32, ONNX_FLOAT),
        opjit_graph_multiply(g, opjit_onnx_reshape(m, parts[1], 2, one), opjit_onnx_tensor(m, &q->scale[i])));
}

/* Columns of gate k: input, output, forget, cell. */
static opjit_tensor gate(onnx_import *m, const quantized_lstm *q, opjit_tensor gates, uint32_t k)
{
    const uint32_t begin[2] = { 0, k * (uint32_t)q->hidden }, sizes[2] = { (uint32_t)q->batch, (uint32_t)q->hidden };
    const opjit_tensor part = opjit_graph_slice(m->graph, gates, begin, sizes, NULL);
    return k == 3 ? opjit_graph_tanh(m->graph, part) : opjit_graph_sigmoid(m->graph, part);
}

/* The steps of a direction; h and c are the states, null for 0.  *y: {steps, 1, batch, hidden}. */
static opjit_status run_quantized(onnx_import *m, opjit_tensor x, quantized_lstm *q, opjit_tensor *h, opjit_tensor *c,
                                  opjit_tensor *y)
{
    opjit_graph *const g = m->graph;
    const uint64_t apart[4] = { 1, 1, q->batch, q->hidden };
    const uint32_t sizes[2] = { (uint32_t)q->batch, 4 * (uint32_t)q->hidden };
    opjit_tensor *const seen = ARENA_ARRAY(m->arena, opjit_tensor, (size_t)q->steps);
    if (seen == NULL)
        return opjit_rt_no_memory(m->error);
    opjit_tensor of_x = quantized_product(m, x, q, 0);
    if (q->bias.type != ONNX_UNDEFINED)
        of_x = opjit_graph_add(g, of_x, opjit_onnx_tensor(m, &q->bias));
    for (uint64_t n = 0; n < q->steps && opjit_onnx_status(m) == OPJIT_OK; n++) {
        const uint64_t step = q->backward ? q->steps - 1 - n : n;
        const uint32_t begin[2] = { (uint32_t)(step * q->batch), 0 };
        opjit_tensor gates = opjit_graph_slice(g, of_x, begin, sizes, NULL);
        if (h->index != 0)
            gates = opjit_graph_add(g, gates, quantized_product(m, *h, q, 1));
        const opjit_tensor now = opjit_graph_multiply(g, gate(m, q, gates, 0), gate(m, q, gates, 3));
        *c = c->index == 0 ? now : opjit_graph_add(g, opjit_graph_multiply(g, gate(m, q, gates, 2), *c), now);
        *h = opjit_graph_multiply(g, gate(m, q, gates, 1), opjit_graph_tanh(g, *c));
        seen[step] = opjit_onnx_reshape(m, *h, 4, apart);
    }
    *y = opjit_onnx_join(m, seen, (uint32_t)q->steps, 0);
    return m->error->status;
}

/* Part d of a state {directions, batch, hidden}; null: absent. */
static opjit_tensor state_of(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t d, const quantized_lstm *q)
{
    const uint32_t begin[3] = { d, 0, 0 }, sizes[3] = { 1, (uint32_t)q->batch, (uint32_t)q->hidden };
    const uint64_t dims[2] = { q->batch, q->hidden };
    if (onnx_input(c, i) == NULL)
        return (opjit_tensor){ 0, 0 };
    return opjit_onnx_reshape(m, opjit_graph_slice(m->graph, onnx_tensor_of(m, c, i), begin, sizes, NULL), 2, dims);
}

/* com.microsoft's DynamicQuantizeLSTM: X and the state of each step become 8 bits by their range, so that the steps are
 * operators of their own. */
opjit_status opjit_onnx_quantized_lstm(onnx_import *m, onnx_call *c)
{
    enum { W = 1, R, B, LENGTHS, H0, C0, PEEPHOLES, STEPS_MOST = 4096 };
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    static const char *const others[] = { "activations", "clip", "input_forget" };
    recurrent r = { 0 };
    opjit_tensor results[3][2];
    TRY(opjit_onnx_need(m, c, 3));
    if (c->inputs[W]->rank != 3 || c->inputs[R]->rank != 3)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "weights of %u dimensions", c->inputs[W]->rank);
    TRY(read_recurrent(m, c, defaults, 3, &r));
    for (uint32_t i = 0; i < r.activation_count; i++)
        if (r.activation[i].desc.Type != (i % 3 == 0 ? DML_OPERATOR_ACTIVATION_SIGMOID : DML_OPERATOR_ACTIVATION_TANH))
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute %s is not taken", others[0]);
    for (uint32_t i = 1; i < 3; i++)
        if (i == 1 ? opjit_onnx_float(m, c, others[i], 0) != 0 : opjit_onnx_int(m, c, others[i], 0) != 0)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute %s is not taken", others[i]);
    if (onnx_input(c, LENGTHS) != NULL || onnx_input(c, PEEPHOLES) != NULL || r.by_batch || r.steps > STEPS_MOST ||
        r.steps == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%llu steps (at most %u), lengths, peepholes or layout 1",
                                 (unsigned long long)r.steps, STEPS_MOST);
    quantized_lstm q = { .steps = r.steps, .batch = r.batch, .hidden = c->inputs[R]->dims[1] };
    r.hidden = q.hidden;
    const uint64_t flat[2] = { q.steps * q.batch, c->inputs[0]->dims[2] };
    const opjit_tensor x = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat);
    for (uint32_t d = 0; d < r.directions; d++) {
        q.backward = r.direction == DML_RECURRENT_NETWORK_DIRECTION_BACKWARD || d == 1;
        TRY(read_quantized(m, c, d, &q));
        opjit_tensor h = state_of(m, c, H0, d, &q), cell = state_of(m, c, C0, d, &q);
        TRY(run_quantized(m, x, &q, &h, &cell, &results[0][d]));
        const uint64_t apart[4] = { 1, 1, q.batch, q.hidden };
        results[1][d] = opjit_onnx_reshape(m, h, 4, apart);
        results[2][d] = opjit_onnx_reshape(m, cell, 4, apart);
    }
    opjit_tensor joined[3];
    for (uint32_t i = 0; i < 3; i++)
        joined[i] = r.directions == 1 ? results[i][0] : opjit_graph_join(m->graph, results[i], 2, 1);
    return give_outputs(m, c, &r, joined, 3);
}
