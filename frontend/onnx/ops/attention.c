/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c - Attention of ONNX and of com.microsoft, MultiHeadAttention. */
#include <math.h>

#include "frontend/onnx/ops/attention_forms.h"

/* The bounds of what a query sees: attributes is_causal, left_window_size and right_window_size; -1: none. */
static opjit_status read_windows(onnx_import *m, const onnx_call *c, int64_t *left, int64_t *right)
{
    *left = opjit_onnx_int(m, c, "left_window_size", -1);
    *right = opjit_onnx_int(m, c, "right_window_size", -1);
    if (*left < -1 || *right < -1 || *left > INT32_MAX / 4 || *right > INT32_MAX / 4)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "windows of %lld and %lld keys, must be -1 to 2^29 - 1",
                                 (long long)*left, (long long)*right);
    if (opjit_onnx_int(m, c, "is_causal", 0) != 0)
        *right = 0;
    return OPJIT_OK;
}

/* The mask of input 3, whose rows may be shorter than the keys: what is behind them is not seen. */
static opjit_tensor padded_mask(onnx_import *m, const onnx_call *c, const attention *a)
{
    const onnx_value *const v = onnx_input(c, 3);
    opjit_tensor t = opjit_onnx_attention_mask(m, c, 3, a->type);
    uint32_t none[ONNX_RANK] = { 0 }, behind[ONNX_RANK] = { 0 };
    if (v == NULL || v->rank == 0 || v->dims[v->rank - 1] == 1 || v->dims[v->rank - 1] >= a->keys)
        return t;
    behind[v->rank - 1] = (uint32_t)(a->keys - v->dims[v->rank - 1]);
    return opjit_graph_pad(m->graph, t, v->rank, none, behind, -INFINITY);
}

/* Adds to the mask what input 6 says, {batch}: how many keys count, of which the last ones are the queries' own. */
static opjit_status add_lengths(onnx_import *m, const onnx_call *c, attention *a, int64_t left, int64_t right)
{
    opjit_graph *const g = m->graph;
    const uint32_t row[4] = { 1, 1, (uint32_t)a->queries, 1 }, column[4] = { 1, 1, 1, (uint32_t)a->keys };
    const uint64_t dims[4] = { a->batch, 1, 1, 1 };
    if (opjit_onnx_elements_of(c->inputs[6]) != a->batch || a->past != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu lengths of %llu sequences, or a past with them",
                                 (unsigned long long)opjit_onnx_elements_of(c->inputs[6]),
                                 (unsigned long long)a->batch);
    const opjit_tensor count =
        opjit_onnx_cast(m, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 6), 4, dims), c->inputs[6]->type, ONNX_INT32);
    const opjit_tensor key = opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, 4, column, 0, 1);
    const opjit_tensor own = opjit_graph_subtract(
        g, opjit_graph_add(g, count, opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, 4, row, 0, 1)),
        opjit_onnx_scalar(m, ONNX_INT32, (double)a->queries));
    const opjit_tensor apart = opjit_graph_subtract(g, key, own);
    opjit_tensor sees = opjit_graph_less(g, key, count);
    if (left >= 0)
        sees = opjit_graph_logical_and(
            g, sees, opjit_graph_greater_or_equal(g, apart, opjit_onnx_scalar(m, ONNX_INT32, -(double)left)));
    if (right >= 0)
        sees = opjit_graph_logical_and(
            g, sees, opjit_graph_less_or_equal(g, apart, opjit_onnx_scalar(m, ONNX_INT32, (double)right)));
    const opjit_tensor mask =
        opjit_graph_where(g, sees, opjit_onnx_scalar(m, a->type, 0), opjit_onnx_scalar(m, a->type, -INFINITY));
    a->mask = a->mask.index == 0 ? mask : opjit_graph_add(g, a->mask, mask);
    return OPJIT_OK;
}

/* What of all keys a query sees: by the mask, by lengths, by windows. */
static opjit_status read_sight(onnx_import *m, const onnx_call *c, attention *a)
{
    int64_t left, right;
    TRY(read_windows(m, c, &left, &right));
    a->zero_unseen = true; /* as opset 23 says */
    a->mask = padded_mask(m, c, a);
    if (onnx_input(c, 6) != NULL)
        return add_lengths(m, c, a, left, right);
    a->causal = right >= 0;
    a->ahead = right > 0 ? (uint64_t)right : 0;
    a->window = left >= 0 ? (uint64_t)left + 1 : 0;
    return OPJIT_OK;
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
    const int64_t mode = opjit_onnx_int(m, c, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute qk_matmul_output_mode: %lld, must be 0 to 3",
                                 (long long)mode);
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
        a.q = opjit_onnx_split_heads(m, a.q, a.batch, a.queries, a.heads, a.width);
        a.k = opjit_onnx_split_heads(m, a.k, a.batch, a.keys, a.kv_heads, a.width);
        a.v = opjit_onnx_split_heads(m, a.v, a.batch, a.keys, a.kv_heads, a.v_width);
    }
    a.past = onnx_input(c, 4) == NULL ? 0 : onnx_input(c, 4)->dims[2];
    TRY(opjit_onnx_add_past(m, c, 4, 1, &a.k, a.type));
    TRY(opjit_onnx_add_past(m, c, 5, 2, &a.v, a.type));
    a.keys += a.past;
    TRY(read_sight(m, c, &a));
    a.scale = (double)opjit_onnx_float(m, c, "scale", (float)(1 / sqrt((double)a.width)));
    a.softcap = (double)opjit_onnx_float(m, c, "softcap", 0);
    const opjit_tensor y = opjit_onnx_attend(m, &a);
    if (onnx_wants(c, 3))
        TRY(opjit_onnx_give(m, c, 3, a.made[mode], a.type, 4));
    return opjit_onnx_give(m, c, 0, flat ? opjit_onnx_join_heads(m, y, a.batch, a.queries, a.heads, a.v_width) : y,
                           a.type, q->rank);
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
    a.q = opjit_onnx_split_heads(m, parts[0], a.batch, a.queries, a.heads, a.width);
    a.k = k->rank == 4 ? parts[1] : opjit_onnx_split_heads(m, parts[1], a.batch, a.keys, a.heads, a.width);
    a.v = v->rank == 4 ? parts[2] : opjit_onnx_split_heads(m, parts[2], a.batch, a.keys, a.heads, a.v_width);
    a.past = onnx_input(c, 6) == NULL ? 0 : onnx_input(c, 6)->dims[2];
    TRY(opjit_onnx_add_past(m, c, 6, 1, &a.k, a.type));
    TRY(opjit_onnx_add_past(m, c, 7, 2, &a.v, a.type));
    a.keys += a.past;
    a.mask = opjit_onnx_attention_mask(m, c, 5, a.type);
    TRY(add_key_mask(m, c, &a, 4));
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    a.scale = opjit_onnx_attention_scale(m, c, a.width);
    return opjit_onnx_give(
        m, c, 0, opjit_onnx_join_heads(m, opjit_onnx_attend(m, &a), a.batch, a.queries, a.heads, a.v_width), a.type, 3);
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
        *parts[i] = opjit_onnx_split_heads(m, opjit_graph_slice(m->graph, all, offsets, sizes, NULL), a.batch,
                                           a.queries, a.heads, widths[i] / a.heads);
        offsets[1] += sizes[1];
    }
    TRY(add_joint_past(m, c, quantized ? 8 : 4, &a));
    if (!quantized)
        a.mask = opjit_onnx_attention_mask(m, c, 5, a.type);
    TRY(add_key_mask(m, c, &a, quantized ? 5 : 3));
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    a.scale = opjit_onnx_attention_scale(m, c, a.width);
    return opjit_onnx_give(
        m, c, 0, opjit_onnx_join_heads(m, opjit_onnx_attend(m, &a), a.batch, a.queries, a.heads, a.v_width), a.type, 3);
}
