/* SPDX-License-Identifier: Apache-2.0 */
/* op_attention.c - attention, of products, softmax and pointwise operators: graphs that the passes know as it. */
#include <math.h>

#include "frontend/onnx/ops.h"

/* What the forms of attention have in common; tensors are {batch, heads, rows, width}. */
typedef struct attention {
    opjit_tensor q, k, v;
    opjit_tensor mask; /* FLOAT, broadcast to {batch, heads, queries, keys}; null: none */
    uint64_t batch, heads, kv_heads, queries, keys, width, v_width;
    double scale, softcap;
    bool causal;
    uint64_t window; /* keys that a query sees at most; 0: all */
    uint64_t past;   /* keys that come before the first query's own */
    bool is_prompt;  /* none does */
    int32_t type;
} attention;

/* {batch, rows, heads * width} as {batch, heads, rows, width}. */
static opjit_tensor split_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
                                uint64_t width)
{
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    const uint64_t dims[4] = { batch, rows, heads, width };
    return opjit_graph_transpose(m->graph, opjit_onnx_reshape(m, t, 4, dims), order);
}

/* The inverse. */
static opjit_tensor join_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
                               uint64_t width)
{
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    const uint64_t dims[3] = { batch, rows, heads * width };
    return opjit_onnx_reshape(m, opjit_graph_transpose(m->graph, t, order), 3, dims);
}

/* Each head of keys or values for as many heads of queries. */
static opjit_tensor repeat_heads(onnx_import *m, const attention *a, opjit_tensor t, uint64_t width)
{
    const uint64_t times = a->heads / a->kv_heads;
    if (times == 1)
        return t;
    const uint64_t apart[5] = { a->batch, a->kv_heads, 1, a->keys, width };
    const uint32_t wide[5] = { (uint32_t)a->batch, (uint32_t)a->kv_heads, (uint32_t)times, (uint32_t)a->keys,
                               (uint32_t)width };
    const uint64_t result[4] = { a->batch, a->heads, a->keys, width };
    return opjit_onnx_repeat(m, t, 5, apart, wide, 4, result);
}

/* Softmax of scale * q * k^T and the masks, times v: {batch, heads, queries, v_width}. */
static opjit_tensor attend(onnx_import *m, const attention *a)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor pair[2] = { a->q, repeat_heads(m, a, a->k, a->width) };
    const DML_GEMM_OPERATOR_DESC desc = { .TransB = DML_MATRIX_TRANSFORM_TRANSPOSE, .Alpha = (float)a->scale };
    opjit_tensor scores = opjit_graph_op(g, DML_OPERATOR_GEMM, &desc, pair, 2);
    if (a->softcap != 0) {
        const opjit_tensor cap = opjit_onnx_scalar(m, a->type, a->softcap);
        scores = opjit_graph_multiply(g, opjit_graph_tanh(g, opjit_graph_divide(g, scores, cap)), cap);
    }
    if (a->mask.index != 0)
        scores = opjit_graph_add(g, scores, a->mask);
    if (a->causal)
        scores = opjit_graph_fill_band(g, scores, -INFINITY, (int32_t)a->past + 1, INT32_MAX);
    if (a->window != 0)
        scores = opjit_graph_fill_band(g, scores, -INFINITY, INT32_MIN, (int32_t)a->past + 1 - (int32_t)a->window);
    return opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 3), repeat_heads(m, a, a->v, a->v_width), 0,
                                       0);
}

/* A mask of bool becomes 0 where it is true, -inf elsewhere. */
static opjit_tensor mask_of(onnx_import *m, const onnx_call *c, uint32_t i, int32_t type)
{
    onnx_value *const v = onnx_input(c, i);
    if (v == NULL)
        return (opjit_tensor){ 0, 0 };
    const opjit_tensor t = opjit_onnx_tensor(m, v);
    if (v->type != ONNX_BOOL)
        return opjit_onnx_cast(m, t, v->type, type);
    return opjit_graph_where(m->graph, t, opjit_onnx_scalar(m, type, 0), opjit_onnx_scalar(m, type, -INFINITY));
}

/* Keys or values behind those of the past, along their rows; the sum is the output `present`. */
static opjit_status add_past(onnx_import *m, onnx_call *c, uint32_t past, uint32_t present, opjit_tensor *t,
                             int32_t type)
{
    if (onnx_input(c, past) != NULL && opjit_onnx_elements_of(c->inputs[past]) != 0) {
        const opjit_tensor both[2] = { onnx_tensor_of(m, c, past), *t };
        *t = opjit_graph_join(m->graph, both, 2, 2);
    }
    return onnx_wants(c, present) ? opjit_onnx_give(m, c, present, *t, type, 4) : OPJIT_OK;
}

/* ONNX's Attention: q, k, v of 3 or 4 dimensions, mask, past keys and values. */
opjit_status opjit_onnx_attention(onnx_import *m, onnx_call *c)
{
    attention a = { 0 };
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const q = c->inputs[0], *const k = c->inputs[1], *const v = c->inputs[2];
    const bool flat = q->rank == 3;
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u, %u and %u dimensions, must be 3 or 4", q->rank,
                                 k->rank, v->rank);
    if (onnx_wants(c, 3) || onnx_input(c, 6) != NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "the product of queries and keys as an output, and lengths "
                                 "that are known at run time only, are not taken");
    if (opjit_onnx_int(m, c, "left_window_size", -1) >= 0 || opjit_onnx_int(m, c, "right_window_size", -1) >= 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "windows of keys are not taken");
    a.type = q->type;
    a.batch = q->dims[0];
    a.heads = flat ? (uint64_t)opjit_onnx_int(m, c, "q_num_heads", 0) : q->dims[1];
    a.kv_heads = flat ? (uint64_t)opjit_onnx_int(m, c, "kv_num_heads", 0) : k->dims[1];
    if (a.heads == 0 || a.kv_heads == 0 || a.heads % a.kv_heads != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%llu heads of queries, must be a multiple of %llu heads of keys",
                                 (unsigned long long)a.heads, (unsigned long long)a.kv_heads);
    a.queries = q->dims[q->rank - 2];
    a.width = flat ? q->dims[2] / a.heads : q->dims[3];
    a.v_width = flat ? v->dims[2] / a.kv_heads : v->dims[3];
    a.keys = k->dims[k->rank - 2];
    a.q = onnx_tensor_of(m, c, 0);
    a.k = onnx_tensor_of(m, c, 1);
    a.v = onnx_tensor_of(m, c, 2);
    if (flat) {
        a.q = split_heads(m, a.q, a.batch, a.queries, a.heads, a.width);
        a.k = split_heads(m, a.k, a.batch, a.keys, a.kv_heads, a.width);
        a.v = split_heads(m, a.v, a.batch, a.keys, a.kv_heads, a.v_width);
    }
    a.past = onnx_input(c, 4) == NULL ? 0 : onnx_input(c, 4)->dims[2];
    TRY(add_past(m, c, 4, 1, &a.k, a.type));
    TRY(add_past(m, c, 5, 2, &a.v, a.type));
    a.keys += a.past;
    a.mask = mask_of(m, c, 3, a.type);
    a.causal = opjit_onnx_int(m, c, "is_causal", 0) != 0;
    a.scale = (double)opjit_onnx_float(m, c, "scale", (float)(1 / sqrt((double)a.width)));
    a.softcap = (double)opjit_onnx_float(m, c, "softcap", 0);
    const opjit_tensor y = attend(m, &a);
    return opjit_onnx_give(m, c, 0, flat ? join_heads(m, y, a.batch, a.queries, a.heads, a.v_width) : y, a.type,
                           q->rank);
}

/* Part i of three of a bias, which begins at that many elements. */
static opjit_tensor bias_part(onnx_import *m, const onnx_call *c, uint32_t input, uint64_t begin, uint64_t size)
{
    const uint32_t offset[1] = { (uint32_t)begin }, length[1] = { (uint32_t)size };
    return opjit_graph_slice(m->graph, onnx_tensor_of(m, c, input), offset, length, NULL);
}

/* Adds input i to the mask: {batch, keys} or {batch, queries, keys}, of which 0 counts as far below every score, or the
 * number of keys that count, {batch}. */
static opjit_status add_key_mask(onnx_import *m, const onnx_call *c, attention *a, uint32_t i)
{
    opjit_graph *const g = m->graph;
    const onnx_value *const v = onnx_input(c, i);
    if (v == NULL)
        return OPJIT_OK;
    const bool fits = v->rank >= 1 && v->rank <= 3 && v->dims[0] == a->batch &&
                      (v->rank != 3 || v->dims[1] == a->queries) && (v->rank == 1 || v->dims[v->rank - 1] == a->keys);
    if (!fits)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a key mask of %u dimensions, the first of %llu", v->rank,
                                 (unsigned long long)v->dims[0]);
    const uint64_t dims[4] = { a->batch, 1, v->rank == 3 ? a->queries : 1, v->rank == 1 ? 1 : a->keys };
    const uint32_t places[4] = { 1, 1, 1, (uint32_t)a->keys };
    opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), 4, dims);
    t = v->rank != 1 ? opjit_onnx_cast(m, t, v->type, ONNX_BOOL)
                     : opjit_graph_greater(g, t, opjit_graph_sequence(g, opjit_onnx_dtype(v->type), 4, places, 0, 1));
    const double filter = (double)opjit_onnx_float(m, c, "mask_filter_value", -10000);
    t = opjit_graph_where(g, t, opjit_onnx_scalar(m, a->type, 0), opjit_onnx_scalar(m, a->type, filter));
    a->mask = a->mask.index == 0 ? t : opjit_graph_add(g, a->mask, t);
    return OPJIT_OK;
}

/* The scale that the node says, or one over the root of the width. */
static double scale_of(const onnx_import *m, const onnx_call *c, uint64_t width)
{
    const float scale = opjit_onnx_float(m, c, "scale", 0);
    return scale != 0 ? (double)scale : 1 / sqrt((double)width);
}

/* com.microsoft's MultiHeadAttention: query, key, value of three dimensions, bias, key mask, attention bias, past. */
opjit_status opjit_onnx_multi_head_attention(onnx_import *m, onnx_call *c)
{
    attention a = { 0 };
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const q = c->inputs[0], *const k = c->inputs[1], *const v = c->inputs[2];
    if (q->rank != 3 || v->rank != k->rank || (k->rank != 3 && k->rank != 4))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "packed queries, keys and values are not taken");
    a.heads = a.kv_heads = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    if (a.heads == 0 || q->dims[2] % a.heads != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_heads: %llu, must divide the width %llu",
                                 (unsigned long long)a.heads, (unsigned long long)q->dims[2]);
    a.type = q->type;
    a.batch = q->dims[0];
    a.queries = q->dims[1];
    a.width = q->dims[2] / a.heads;
    a.keys = k->dims[k->rank - 2];
    a.v_width = v->rank == 4 ? v->dims[3] : v->dims[2] / a.heads;
    opjit_tensor parts[3] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    for (uint32_t i = 0; i < 3 && onnx_input(c, 3) != NULL && c->inputs[i]->rank == 3; i++)
        parts[i] =
            opjit_graph_add(m->graph, parts[i], bias_part(m, c, 3, i == 0 ? 0 : i * q->dims[2], c->inputs[i]->dims[2]));
    a.q = split_heads(m, parts[0], a.batch, a.queries, a.heads, a.width);
    a.k = k->rank == 4 ? parts[1] : split_heads(m, parts[1], a.batch, a.keys, a.heads, a.width);
    a.v = v->rank == 4 ? parts[2] : split_heads(m, parts[2], a.batch, a.keys, a.heads, a.v_width);
    a.past = onnx_input(c, 6) == NULL ? 0 : onnx_input(c, 6)->dims[2];
    TRY(add_past(m, c, 6, 1, &a.k, a.type));
    TRY(add_past(m, c, 7, 2, &a.v, a.type));
    a.keys += a.past;
    a.mask = mask_of(m, c, 5, a.type);
    TRY(add_key_mask(m, c, &a, 4));
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    a.scale = scale_of(m, c, a.width);
    return opjit_onnx_give(m, c, 0, join_heads(m, attend(m, &a), a.batch, a.queries, a.heads, a.v_width), a.type, 3);
}

/* The widths of queries, keys and values in the columns of the weights. */
static opjit_status read_widths(onnx_import *m, const onnx_call *c, uint64_t columns, uint64_t heads, uint64_t out[3])
{
    const onnx_attribute *const said = opjit_onnx_attribute(m, c, "qkv_hidden_sizes");
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = said != NULL && said->ints != NULL && said->count == 3 ? (uint64_t)said->ints[i] : columns / 3;
        if (heads == 0 || out[i] == 0 || out[i] > columns || out[i] % heads != 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "attribute num_heads: %llu, must divide the width %llu", (unsigned long long)heads,
                                     (unsigned long long)out[i]);
    }
    return out[0] == out[1] && out[0] + out[1] + out[2] == columns
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute qkv_hidden_sizes: their sum is not %llu",
                                   (unsigned long long)columns);
}

/* Keys and values behind those of the past, {2, batch, heads, rows, width}; both together are output 1. */
static opjit_status add_joint_past(onnx_import *m, onnx_call *c, uint32_t past, attention *a)
{
    opjit_graph *const g = m->graph;
    const onnx_value *const p = onnx_input(c, past);
    opjit_tensor *const parts[2] = { &a->k, &a->v };
    if (a->width != a->v_width && (p != NULL || onnx_wants(c, 1)))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "past keys and values of different widths");
    if (p != NULL && p->rank != 5)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "past keys and values of %u dimensions, must be 5",
                                 p->rank);
    a->past = p == NULL ? 0 : p->dims[3];
    a->keys += a->past;
    opjit_tensor both[2];
    const uint64_t apart[5] = { 1, a->batch, a->heads, a->keys, a->width };
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t begin[5] = { i },
                       sizes[5] = { 1, (uint32_t)a->batch, (uint32_t)a->heads, (uint32_t)a->past, (uint32_t)a->width };
        const uint64_t dims[4] = { a->batch, a->heads, a->past, a->width };
        if (a->past != 0) {
            const opjit_tensor pair[2] = {
                opjit_onnx_reshape(m, opjit_graph_slice(g, onnx_tensor_of(m, c, past), begin, sizes, NULL), 4, dims),
                *parts[i]
            };
            *parts[i] = opjit_graph_join(g, pair, 2, 2);
        }
        both[i] = onnx_wants(c, 1) ? opjit_onnx_reshape(m, *parts[i], 5, apart) : *parts[i];
    }
    return onnx_wants(c, 1) ? opjit_onnx_give(m, c, 1, opjit_graph_join(g, both, 2, 0), a->type, 5) : OPJIT_OK;
}

/* Rows of input 0 by the weights; quantized: of 8 bits, scales are inputs 3 and 4, zero points 6 and 7. */
static opjit_tensor project(onnx_import *m, const onnx_call *c, const uint64_t flat[2], bool quantized)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor x = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat), w = onnx_tensor_of(m, c, 1);
    opjit_tensor y;
    if (!quantized) {
        y = opjit_graph_matrix_multiply(g, x, w, 0, 0);
    } else {
        const opjit_tensor inputs[4] = { x, opjit_onnx_vector(m, c, 6, 2, 0), w, opjit_onnx_vector(m, c, 7, 2, 1) };
        y = opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, NULL, inputs, 4);
        y = opjit_graph_multiply(
            g, opjit_onnx_cast(m, y, ONNX_INT32, ONNX_FLOAT),
            opjit_graph_multiply(g, opjit_onnx_vector(m, c, 3, 2, 0), opjit_onnx_vector(m, c, 4, 2, 1)));
    }
    return onnx_input(c, 2) == NULL ? y : opjit_graph_add(g, y, onnx_tensor_of(m, c, 2));
}

/* com.microsoft's Attention: input {batch, rows, hidden}, weights {hidden, queries + keys + values}, bias, key mask,
 * past, bias of the scores; QAttention (arg 1): input and weights of 8 bits, mask and past come later. */
opjit_status opjit_onnx_attention_of_weights(onnx_import *m, onnx_call *c)
{
    const bool quantized = c->row->arg == 1;
    attention a = { 0 };
    uint64_t widths[3];
    TRY(opjit_onnx_need(m, c, quantized ? 5 : 2));
    const onnx_value *const x = c->inputs[0], *const w = c->inputs[1];
    if (x->rank != 3 || w->rank != 2 || w->dims[0] != x->dims[2] || opjit_onnx_int(m, c, "do_rotary", 0) != 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions by %u, or rotary embedding, are not taken",
                                 x->rank, w->rank);
    a.heads = a.kv_heads = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    TRY(read_widths(m, c, w->dims[1], a.heads, widths));
    a.type = quantized ? ONNX_FLOAT : x->type;
    a.batch = x->dims[0];
    a.queries = a.keys = x->dims[1];
    a.width = widths[0] / a.heads;
    a.v_width = widths[2] / a.heads;
    const uint64_t flat[2] = { a.batch * a.queries, x->dims[2] };
    const opjit_tensor all = project(m, c, flat, quantized);
    opjit_tensor *const parts[3] = { &a.q, &a.k, &a.v };
    uint32_t offsets[2] = { 0, 0 };
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t sizes[2] = { (uint32_t)flat[0], (uint32_t)widths[i] };
        *parts[i] = split_heads(m, opjit_graph_slice(m->graph, all, offsets, sizes, NULL), a.batch, a.queries, a.heads,
                                widths[i] / a.heads);
        offsets[1] += sizes[1];
    }
    TRY(add_joint_past(m, c, quantized ? 8 : 4, &a));
    if (!quantized)
        a.mask = mask_of(m, c, 5, a.type);
    TRY(add_key_mask(m, c, &a, quantized ? 5 : 3));
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    a.scale = scale_of(m, c, a.width);
    return opjit_onnx_give(m, c, 0, join_heads(m, attend(m, &a), a.batch, a.queries, a.heads, a.v_width), a.type, 3);
}

/* --- GroupQueryAttention ------------------------------------------------------------------------------------------ */

/* Whether lengths are looked at in each call: there are several sequences, or room for more keys than there are yet.
 * Else those of the past and of the call are all keys there are. */
static opjit_status read_lengths(onnx_import *m, const onnx_call *c, attention *a, uint32_t lengths, bool *each_call)
{
    int64_t total = 0, *each = NULL;
    uint32_t count = 0;
    TRY(opjit_onnx_input_int(m, c, lengths + 1, &total));
    *each_call = true;
    if (onnx_is_constant(c->inputs[lengths]))
        TRY(opjit_onnx_input_ints(m, c, lengths, &each, &count));
    if (total == (int64_t)(a->queries + a->past) && (a->batch == 1 || count != 0)) {
        *each_call = false;
        for (uint32_t i = 0; i < count; i++)
            *each_call = *each_call || each[i] != total - 1;
    }
    if (!*each_call)
        return OPJIT_OK;
    if (total < (int64_t)a->queries || opjit_onnx_elements_of(c->inputs[lengths]) != a->batch)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%lld keys in all, lengths of %llu sequences",
                                 (long long)total, (unsigned long long)opjit_onnx_elements_of(c->inputs[lengths]));
    a->keys = a->past > (uint64_t)total ? a->past : (uint64_t)total;
    a->is_prompt = total == (int64_t)a->queries;
    return OPJIT_OK;
}

/* The place of each sequence's first new key, INT32 {batch, 1, 1, 1}: behind its own past. */
static opjit_tensor first_places(onnx_import *m, const onnx_call *c, const attention *a, uint32_t lengths)
{
    const uint64_t dims[4] = { a->batch, 1, 1, 1 };
    if (a->is_prompt)
        return opjit_onnx_scalar(m, ONNX_INT32, 0);
    const opjit_tensor last = opjit_onnx_cast(m, opjit_onnx_reshape(m, onnx_tensor_of(m, c, lengths), 4, dims),
                                              c->inputs[lengths]->type, ONNX_INT32);
    return opjit_graph_subtract(m->graph, last, opjit_onnx_scalar(m, ONNX_INT32, (double)a->queries - 1));
}

/* Keys or values at their places between those of the past; they are the output `present`. */
static opjit_status place_rows(onnx_import *m, onnx_call *c, const attention *a, uint32_t past, uint32_t present,
                               opjit_tensor first, opjit_tensor *t)
{
    const uint64_t dims[4] = { a->batch, a->kv_heads, a->keys, a->width };
    const uint32_t none[4] = { 0 }, behind[4] = { 0, 0, (uint32_t)(a->keys - a->past), 0 };
    const uint32_t sizes[4] = { (uint32_t)a->batch, (uint32_t)a->kv_heads, (uint32_t)a->keys, (uint32_t)a->width };
    opjit_tensor old =
        a->past == 0 ? opjit_graph_fill(m->graph, opjit_onnx_dtype(a->type), 4, sizes, 0) : onnx_tensor_of(m, c, past);
    if (a->past != 0 && a->keys > a->past)
        old = opjit_graph_pad(m->graph, old, 4, none, behind, 0);
    *t = opjit_onnx_write_rows(m, old, *t, 4, dims, 2, a->queries, first, false);
    return onnx_wants(c, present) ? opjit_onnx_give(m, c, present, *t, a->type, 4) : OPJIT_OK;
}

/* 0 where a query sees a key: up to its own, within the window; -inf elsewhere.  {batch or 1, 1, queries, keys}. */
static opjit_tensor seen(onnx_import *m, const attention *a, opjit_tensor first)
{
    opjit_graph *const g = m->graph;
    const uint32_t row[4] = { 1, 1, (uint32_t)a->queries, 1 }, column[4] = { 1, 1, 1, (uint32_t)a->keys };
    const opjit_tensor own =
        opjit_graph_add(g, first, opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, 4, row, 0, 1));
    const opjit_tensor key = opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, 4, column, 0, 1);
    const opjit_tensor shown = opjit_onnx_scalar(m, a->type, 0), hidden = opjit_onnx_scalar(m, a->type, -INFINITY);
    opjit_tensor mask = opjit_graph_where(g, opjit_graph_less_or_equal(g, key, own), shown, hidden);
    if (a->window != 0)
        mask = opjit_graph_where(
            g,
            opjit_graph_greater(g, opjit_graph_add(g, key, opjit_onnx_scalar(m, ONNX_INT32, (double)a->window)), own),
            mask, hidden);
    return mask;
}

/* Rows of a table of angles at the places of the new keys, {batch or 1, queries, 1, half}. */
static opjit_tensor angles_from(onnx_import *m, const onnx_call *c, const attention *a, uint32_t table, uint64_t half,
                                opjit_tensor first)
{
    opjit_graph *const g = m->graph;
    const uint64_t each = a->is_prompt ? 1 : a->batch, flat = each * a->queries;
    const uint32_t row[4] = { 1, 1, (uint32_t)a->queries, 1 };
    const opjit_tensor at = opjit_onnx_reshape(
        m, opjit_graph_add(g, first, opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, 4, row, 0, 1)), 1, &flat);
    return opjit_onnx_reshape(m, opjit_graph_gather(g, onnx_tensor_of(m, c, table), at, 0, 1), 4,
                              (uint64_t[]){ each, a->queries, 1, half });
}

/* Rows of a table of angles: those that positions say, or as many as queries behind those of the past. */
static opjit_tensor angles(onnx_import *m, const onnx_call *c, const attention *a, uint32_t table, uint32_t positions,
                           uint64_t half)
{
    if (onnx_input(c, positions) != NULL)
        return opjit_onnx_angles(m, c, table, positions, a->batch, a->queries, half);
    const uint32_t begin[2] = { (uint32_t)a->past, 0 }, sizes[2] = { (uint32_t)a->queries, (uint32_t)half };
    const uint64_t dims[4] = { 1, a->queries, 1, half };
    return opjit_onnx_reshape(m, opjit_graph_slice(m->graph, onnx_tensor_of(m, c, table), begin, sizes, NULL), 4, dims);
}

/* Keys and values with those of the past, and what queries see of them; the past's are inputs past and past + 1. */
static opjit_status mask_group(onnx_import *m, onnx_call *c, attention *a, uint32_t past, uint32_t bias, bool each_call,
                               opjit_tensor first_at)
{
    const int64_t window = opjit_onnx_int(m, c, "local_window_size", -1);
    a->window = window > 0 && (uint64_t)window < a->keys ? (uint64_t)window : 0;
    a->mask = mask_of(m, c, bias, a->type);
    a->causal = !each_call;
    if (each_call) {
        TRY(place_rows(m, c, a, past, 1, first_at, &a->k));
        TRY(place_rows(m, c, a, past + 1, 2, first_at, &a->v));
        const opjit_tensor mask = seen(m, a, first_at);
        a->mask = a->mask.index == 0 ? mask : opjit_graph_add(m->graph, a->mask, mask);
        a->window = 0;
    } else {
        TRY(add_past(m, c, past, 1, &a->k, a->type));
        TRY(add_past(m, c, past + 1, 2, &a->v, a->type));
    }
    return OPJIT_OK;
}

/* com.microsoft's GroupQueryAttention: query, key, value (or all in the first), past key and value, lengths, the number
 * of all keys, tables of cosines and sines, positions, attention bias. */
opjit_status opjit_onnx_group_query_attention(onnx_import *m, onnx_call *c)
{
    enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS, SINK };
    attention a = { 0 };
    opjit_graph *const g = m->graph;
    if (onnx_input(c, QUERY) == NULL || onnx_input(c, LENGTHS) == NULL || onnx_input(c, TOTAL) == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "queries or lengths are missing");
    const onnx_value *const q = c->inputs[QUERY], *const key = onnx_input(c, KEY), *const value = onnx_input(c, VALUE);
    const onnx_value *const past = onnx_input(c, PAST_KEY);
    const bool rotary = opjit_onnx_int(m, c, "do_rotary", 0) != 0;
    if (onnx_input(c, SINK) != NULL || opjit_onnx_int(m, c, "smooth_softmax", 0) > 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "smooth softmax is not taken");
    a.heads = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    a.kv_heads = (uint64_t)opjit_onnx_int(m, c, "kv_num_heads", 0);
    const uint64_t heads[3] = { a.heads, a.kv_heads, a.kv_heads }, all = a.heads + 2 * a.kv_heads;
    if (q->rank != 3 || a.kv_heads == 0 || a.heads == 0 || a.heads > q->dims[2] || a.kv_heads > q->dims[2] ||
        a.heads % a.kv_heads != 0 || q->dims[2] % (key == NULL ? all : a.heads) != 0 ||
        (key == NULL) != (value == NULL) || (key != NULL && (key->rank != 3 || value->rank != 3)))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%llu heads of queries, must be a multiple of %llu heads of keys",
                                 (unsigned long long)a.heads, (unsigned long long)a.kv_heads);
    a.type = q->type;
    a.batch = q->dims[0];
    a.queries = q->dims[1];
    a.width = a.v_width = q->dims[2] / (key == NULL ? all : a.heads);
    a.past = past == NULL || past->rank != 4 ? 0 : past->dims[2];
    a.keys = a.queries + a.past;
    bool each_call;
    TRY(read_lengths(m, c, &a, LENGTHS, &each_call));
    const opjit_tensor first_at = each_call ? first_places(m, c, &a, LENGTHS) : (opjit_tensor){ 0, 0 };
    const uint64_t half = rotary && onnx_input(c, COSINES) != NULL ? c->inputs[COSINES]->dims[1] : 0;
    if (rotary && (half == 0 || 2 * half > a.width || onnx_input(c, SINES) == NULL ||
                   (onnx_input(c, POSITIONS) == NULL && c->inputs[COSINES]->dims[0] < a.keys)))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "tables of %llu angles for a width of %llu",
                                 (unsigned long long)half, (unsigned long long)a.width);
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    opjit_tensor *const parts[3] = { &a.q, &a.k, &a.v };
    for (uint32_t i = 0, first = 0; i < 3; i++) {
        const uint64_t dims[4] = { a.batch, a.queries, heads[i], a.width };
        const uint32_t begin[3] = { 0, 0, first };
        const uint32_t sizes[3] = { (uint32_t)a.batch, (uint32_t)a.queries, (uint32_t)(heads[i] * a.width) };
        opjit_tensor t = key == NULL ? opjit_graph_slice(g, onnx_tensor_of(m, c, QUERY), begin, sizes, NULL)
                                     : onnx_tensor_of(m, c, QUERY + i);
        t = opjit_onnx_reshape(m, t, 4, dims);
        const bool by_length = each_call && onnx_input(c, POSITIONS) == NULL;
        opjit_tensor turns[2];
        for (uint32_t k = 0; k < 2 && half != 0 && i < 2; k++)
            turns[k] = by_length ? angles_from(m, c, &a, COSINES + k, half, first_at)
                                 : angles(m, c, &a, COSINES + k, POSITIONS, half);
        if (half != 0 && i < 2)
            t = opjit_onnx_turned(m, t, dims, half, turns[0], turns[1],
                                  opjit_onnx_int(m, c, "rotary_interleaved", 0) != 0);
        *parts[i] = opjit_graph_transpose(g, t, order);
        first += sizes[2];
    }
    TRY(mask_group(m, c, &a, PAST_KEY, BIAS, each_call, first_at));
    a.scale = scale_of(m, c, a.width);
    a.softcap = (double)opjit_onnx_float(m, c, "softcap", 0);
    return opjit_onnx_give(m, c, 0, join_heads(m, attend(m, &a), a.batch, a.queries, a.heads, a.width), a.type, 3);
}
