/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c - RNN, GRU and LSTM: DirectML's operators have ONNX's meaning, in four dimensions. */
#include <opjit/operators.h>
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
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %u dimensions, must have 3",
                                 x->rank != 3 ? 0 : 2, x->rank != 3 ? x->rank : w->rank);
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

/* Weights lie with the gates last; LSTM has them first. */
static opjit_tensor turned_weights(onnx_import *m, const onnx_call *c, uint32_t i, const recurrent *r)
{
    static const uint32_t axes[4] = { 0, 1, 3, 2 };
    return opjit_graph_transpose(m->graph, part(m, c, i, r, false), axes);
}

/* A scale or zero point: one element for each direction, or for each of its columns.  Null: absent. */
static opjit_tensor vector(onnx_import *m, const onnx_call *c, uint32_t i, const recurrent *r)
{
    const onnx_value *const v = onnx_input(c, i);
    if (v == NULL)
        return (opjit_tensor){ 0, 0 };
    const uint64_t dims[4] = { 1, 1, r->directions, opjit_onnx_elements_of(v) / r->directions };
    return opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), 4, dims);
}

/* com.microsoft's DynamicQuantizeLSTM: X, W, R, B, lengths, h0, c0, peepholes, then scale and zero point of W and R. */
opjit_status opjit_onnx_quantized_lstm(onnx_import *m, onnx_call *c)
{
    enum { W = 1, R, B, LENGTHS, H0, C0, PEEPHOLES, SCALES };
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    recurrent r = { 0 };
    opjit_tensor results[3];
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_recurrent(m, c, defaults, 3, &r));
    if (opjit_onnx_float(m, c, "clip", 0) != 0 || opjit_onnx_int(m, c, "input_forget", 0) != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attributes clip and input_forget are not taken");
    if (onnx_input(c, LENGTHS) != NULL || onnx_input(c, PEEPHOLES) != NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "lengths and peepholes are not taken");
    r.hidden = c->inputs[R]->dims[1];
    const opjit_tensor inputs[10] = { part(m, c, 0, &r, true),         turned_weights(m, c, W, &r),
                                      turned_weights(m, c, R, &r),     part(m, c, B, &r, false),
                                      part(m, c, H0, &r, true),        part(m, c, C0, &r, true),
                                      vector(m, c, SCALES, &r),        vector(m, c, SCALES + 1, &r),
                                      vector(m, c, SCALES + 2, &r),    vector(m, c, SCALES + 3, &r) };
    const OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC desc = { .ActivationDescCount = r.activation_count,
                                                             .ActivationDescs = r.descs,
                                                             .Direction = r.direction };
    opjit_onnx_add(m, OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM, &desc, inputs, 10, results, 3);
    TRY(opjit_onnx_status(m));
    return give_outputs(m, c, &r, results, 3);
}
