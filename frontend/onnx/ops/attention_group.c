/* SPDX-License-Identifier: Apache-2.0 */
/* attention_group.c - com.microsoft's GroupQueryAttention, whose keys may lie in room for more than there are. */
#include <math.h>

#include "frontend/onnx/ops/attention_forms.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS, SINK };

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

/* Queries or keys, of the sizes in dims, turned by the angles of the tables; half 0: as they are. */
static opjit_tensor turned(onnx_import *m, const onnx_call *c, const attention *a, opjit_tensor t, const uint64_t *dims,
                           uint64_t half, bool each_call, opjit_tensor first_at)
{
    const bool by_length = each_call && onnx_input(c, POSITIONS) == NULL;
    opjit_tensor turns[2];
    for (uint32_t k = 0; k < 2 && half != 0; k++)
        turns[k] = by_length ? angles_from(m, c, a, COSINES + k, half, first_at)
                             : angles(m, c, a, COSINES + k, POSITIONS, half);
    return half == 0 ? t
                     : opjit_onnx_turned(m, t, dims, half, turns[0], turns[1],
                                         opjit_onnx_int(m, c, "rotary_interleaved", 0) != 0);
}

/* Keys and values with those of the past, and what queries see of them; the past's are inputs past and past + 1. */
static opjit_status mask_group(onnx_import *m, onnx_call *c, attention *a, uint32_t past, uint32_t bias, bool each_call,
                               opjit_tensor first_at)
{
    const int64_t window = opjit_onnx_int(m, c, "local_window_size", -1);
    a->window = window > 0 && (uint64_t)window < a->keys ? (uint64_t)window : 0;
    a->mask = opjit_onnx_attention_mask(m, c, bias, a->type);
    a->causal = !each_call;
    if (each_call) {
        TRY(place_rows(m, c, a, past, 1, first_at, &a->k));
        TRY(place_rows(m, c, a, past + 1, 2, first_at, &a->v));
        const opjit_tensor mask = seen(m, a, first_at);
        a->mask = a->mask.index == 0 ? mask : opjit_graph_add(m->graph, a->mask, mask);
        a->window = 0;
    } else {
        TRY(opjit_onnx_add_past(m, c, past, 1, &a->k, a->type));
        TRY(opjit_onnx_add_past(m, c, past + 1, 2, &a->v, a->type));
    }
    return OPJIT_OK;
}

/* com.microsoft's GroupQueryAttention: query, key, value (or all in the first), past key and value, lengths, the number
 * of all keys, tables of cosines and sines, positions, attention bias. */
opjit_status opjit_onnx_group_query_attention(onnx_import *m, onnx_call *c)
{
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
        *parts[i] = opjit_graph_transpose(g, i < 2 ? turned(m, c, &a, t, dims, half, each_call, first_at) : t, order);
        first += sizes[2];
    }
    TRY(mask_group(m, c, &a, PAST_KEY, BIAS, each_call, first_at));
    a.scale = opjit_onnx_attention_scale(m, c, a.width);
    a.softcap = (double)opjit_onnx_float(m, c, "softcap", 0);
    return opjit_onnx_give(
        m, c, 0, opjit_onnx_join_heads(m, opjit_onnx_attend(m, &a), a.batch, a.queries, a.heads, a.width), a.type, 3);
}
