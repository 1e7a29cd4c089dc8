/* SPDX-License-Identifier: Apache-2.0 */
/* op_attention.c - attention and rotary embedding, of products, softmax and pointwise operators: graphs that the passes
 * know as attention. */
#include <math.h>

#include "frontend/onnx/ops.h"

/* What the forms of attention have in common; tensors are {batch, heads, rows, width}. */
typedef struct attention {
    opjit_tensor q, k, v;
    opjit_tensor mask; /* FLOAT, broadcast to {batch, heads, queries, keys}; null: none */
    uint64_t batch, heads, kv_heads, queries, keys, width, v_width;
    double scale, softcap;
    bool causal;
    uint64_t past; /* keys that come before the first query's own */
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
    return opjit_onnx_reshape(
        m, opjit_graph_broadcast(m->graph, opjit_onnx_reshape(m, t, 5, apart), 5, wide), 4, result);
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
    if (onnx_input(c, past) != NULL) {
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
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "the product of queries and keys as an output, and lengths "
                                                          "that are known at run time only, are not taken");
    a.type = q->type;
    a.batch = q->dims[0];
    a.heads = flat ? (uint64_t)opjit_onnx_int(m, c, "q_num_heads", 0) : q->dims[1];
    a.kv_heads = flat ? (uint64_t)opjit_onnx_int(m, c, "kv_num_heads", 0) : k->dims[1];
    if (a.heads == 0 || a.kv_heads == 0 || a.heads % a.kv_heads != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu heads of queries, %llu of keys",
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

/* A mask of keys, {batch, keys} of INT32: what is 0 counts as far below every score. */
static opjit_tensor key_mask(onnx_import *m, const onnx_call *c, const attention *a, uint32_t i)
{
    const uint64_t dims[4] = { a->batch, 1, 1, a->keys };
    const double filter = (double)opjit_onnx_float(m, c, "mask_filter_value", -10000);
    const opjit_tensor t = opjit_onnx_cast(m, onnx_tensor_of(m, c, i), c->inputs[i]->type, ONNX_BOOL);
    return opjit_onnx_reshape(m,
                              opjit_graph_where(m->graph, t, opjit_onnx_scalar(m, a->type, 0),
                                                opjit_onnx_scalar(m, a->type, filter)),
                              4, dims);
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
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_heads: %llu",
                                 (unsigned long long)a.heads);
    a.type = q->type;
    a.batch = q->dims[0];
    a.queries = q->dims[1];
    a.width = q->dims[2] / a.heads;
    a.keys = k->dims[k->rank - 2];
    a.v_width = v->rank == 4 ? v->dims[3] : v->dims[2] / a.heads;
    opjit_tensor parts[3] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    for (uint32_t i = 0; i < 3 && onnx_input(c, 3) != NULL && c->inputs[i]->rank == 3; i++)
        parts[i] = opjit_graph_add(m->graph, parts[i],
                                   bias_part(m, c, 3, i == 0 ? 0 : i * q->dims[2], c->inputs[i]->dims[2]));
    a.q = split_heads(m, parts[0], a.batch, a.queries, a.heads, a.width);
    a.k = k->rank == 4 ? parts[1] : split_heads(m, parts[1], a.batch, a.keys, a.heads, a.width);
    a.v = v->rank == 4 ? parts[2] : split_heads(m, parts[2], a.batch, a.keys, a.heads, a.v_width);
    a.past = onnx_input(c, 6) == NULL ? 0 : onnx_input(c, 6)->dims[2];
    TRY(add_past(m, c, 6, 1, &a.k, a.type));
    TRY(add_past(m, c, 7, 2, &a.v, a.type));
    a.keys += a.past;
    a.mask = mask_of(m, c, 5, a.type);
    if (onnx_input(c, 4) != NULL) {
        if (c->inputs[4]->rank != 2 || c->inputs[4]->dims[1] != a.keys)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a key mask of %u dimensions", c->inputs[4]->rank);
        const opjit_tensor keys = key_mask(m, c, &a, 4);
        a.mask = a.mask.index == 0 ? keys : opjit_graph_add(m->graph, a.mask, keys);
    }
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    const float scale = opjit_onnx_float(m, c, "scale", 0);
    a.scale = scale != 0 ? (double)scale : 1 / sqrt((double)a.width);
    return opjit_onnx_give(m, c, 0, join_heads(m, attend(m, &a), a.batch, a.queries, a.heads, a.v_width), a.type, 3);
}

/* com.microsoft's Attention: input {batch, rows, hidden}, weights {hidden, 3 * width}, bias, key mask. */
opjit_status opjit_onnx_attention_of_weights(onnx_import *m, onnx_call *c)
{
    attention a = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const w = c->inputs[1];
    if (x->rank != 3 || w->rank != 2 || onnx_input(c, 4) != NULL || opjit_onnx_int(m, c, "do_rotary", 0) != 0 ||
        opjit_onnx_attribute(m, c, "qkv_hidden_sizes") != NULL || onnx_wants(c, 1))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "past keys, rotary embedding and widths of their own are not "
                                                          "taken");
    a.heads = a.kv_heads = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    const uint64_t hidden = w->dims[1] / 3;
    if (a.heads == 0 || hidden % a.heads != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_heads: %llu",
                                 (unsigned long long)a.heads);
    opjit_graph *const g = m->graph;
    a.type = x->type;
    a.batch = x->dims[0];
    a.queries = a.keys = x->dims[1];
    a.width = a.v_width = hidden / a.heads;
    const uint64_t flat[2] = { a.batch * a.queries, x->dims[2] };
    opjit_tensor all = opjit_graph_matrix_multiply(g, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat),
                                                   onnx_tensor_of(m, c, 1), 0, 0);
    if (onnx_input(c, 2) != NULL)
        all = opjit_graph_add(g, all, onnx_tensor_of(m, c, 2));
    const uint32_t sizes[2] = { (uint32_t)flat[0], (uint32_t)hidden };
    opjit_tensor *const parts[3] = { &a.q, &a.k, &a.v };
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t offsets[2] = { 0, (uint32_t)(i * hidden) };
        *parts[i] = split_heads(m, opjit_graph_slice(g, all, offsets, sizes, NULL), a.batch, a.queries, a.heads,
                                a.width);
    }
    a.mask = mask_of(m, c, 5, a.type);
    if (onnx_input(c, 3) != NULL) {
        if (c->inputs[3]->rank != 2 || c->inputs[3]->dims[0] != a.batch || c->inputs[3]->dims[1] != a.keys)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a key mask of %u dimensions", c->inputs[3]->rank);
        const opjit_tensor keys = key_mask(m, c, &a, 3);
        a.mask = a.mask.index == 0 ? keys : opjit_graph_add(g, a.mask, keys);
    }
    a.causal = opjit_onnx_int(m, c, "unidirectional", 0) != 0;
    const float scale = opjit_onnx_float(m, c, "scale", 0);
    a.scale = scale != 0 ? (double)scale : 1 / sqrt((double)a.width);
    return opjit_onnx_give(m, c, 0, join_heads(m, attend(m, &a), a.batch, a.queries, a.heads, a.width), a.type, 3);
}

/* --- rotary embedding --------------------------------------------------------------------------------------------- */

/* Elements first, first + step, ... of the last dimension, `count` of them. */
static opjit_tensor lanes(onnx_import *m, opjit_tensor t, uint32_t first, uint32_t count, int32_t step)
{
    opjit_tensor_type type;
    uint32_t offsets[ONNX_RANK] = { 0 };
    int32_t strides[ONNX_RANK];
    (void)opjit_graph_get_type(m->graph, t, &type);
    for (uint32_t d = 0; d < type.rank; d++)
        strides[d] = 1;
    offsets[type.rank - 1] = first;
    strides[type.rank - 1] = step;
    type.sizes[type.rank - 1] = count;
    return opjit_graph_slice(m->graph, t, offsets, type.sizes, strides);
}

/* Rows of a cache of cosines or sines by position: {batch or 1, rows, 1, half}. */
static opjit_tensor cached(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t positions, uint64_t batch,
                           uint64_t rows, uint64_t half)
{
    onnx_value *const v = onnx_input(c, i), *const at = onnx_input(c, positions);
    opjit_tensor t = opjit_onnx_tensor(m, v);
    if (at == NULL) { /* {batch, rows, half} */
        const uint64_t dims[4] = { v->rank == 3 ? v->dims[0] : 1, rows, 1, half };
        return opjit_onnx_reshape(m, t, 4, dims);
    }
    const uint64_t whole[3] = { 1, v->dims[0], v->dims[1] }, flat[3] = { 1, 1, opjit_onnx_elements_of(at) };
    const bool each = flat[2] == rows * batch;
    const uint64_t result[4] = { each ? batch : 1, each ? rows : flat[2], 1, half };
    t = opjit_graph_gather(m->graph, opjit_onnx_reshape(m, t, 3, whole),
                           opjit_onnx_reshape(m, onnx_tensor_of(m, c, positions), 3, flat), 1, 1);
    return opjit_onnx_reshape(m, t, 4, result);
}

/* Pairs of elements of each head are turned by the angle of their row; arg 1: com.microsoft's order of inputs. */
opjit_status opjit_onnx_rotary_embedding(onnx_import *m, onnx_call *c)
{
    const uint32_t positions = c->row->arg == 1 ? 1 : 3, cosines = c->row->arg == 1 ? 2 : 1;
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0], *const cache = c->inputs[cosines];
    opjit_graph *const g = m->graph;
    const uint64_t said = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    const uint64_t half = cache->dims[cache->rank - 1];
    if ((x->rank != 3 && x->rank != 4) || half == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions", x->rank);
    const bool flat = x->rank == 3;
    const uint64_t rows = flat ? x->dims[1] : x->dims[2];
    const uint64_t heads = flat ? (said != 0 ? said : x->dims[2] / (2 * half)) : x->dims[1];
    if (heads == 0 || (flat && x->dims[2] % heads != 0))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_heads: %llu", (unsigned long long)said);
    const uint64_t width = flat ? x->dims[2] / heads : x->dims[3];
    if (2 * half > width || (onnx_input(c, positions) != NULL && opjit_onnx_elements_of(c->inputs[positions]) !=
                                                                     rows * x->dims[0]))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "positions that are not one for each row");
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    const uint64_t dims[4] = { x->dims[0], rows, heads, width };
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    t = flat ? opjit_onnx_reshape(m, t, 4, dims) : opjit_graph_transpose(g, t, order);
    const opjit_tensor cosine = cached(m, c, cosines, positions, x->dims[0], rows, half);
    const opjit_tensor sine = cached(m, c, cosines + 1, positions, x->dims[0], rows, half);
    const bool interleaved = opjit_onnx_int(m, c, "interleaved", 0) != 0;
    const uint32_t n = (uint32_t)half;
    const opjit_tensor a = interleaved ? lanes(m, t, 0, n, 2) : lanes(m, t, 0, n, 1);
    const opjit_tensor b = interleaved ? lanes(m, t, 1, n, 2) : lanes(m, t, n, n, 1);
    opjit_tensor parts[3] = {
        opjit_graph_subtract(g, opjit_graph_multiply(g, a, cosine), opjit_graph_multiply(g, b, sine)),
        opjit_graph_add(g, opjit_graph_multiply(g, a, sine), opjit_graph_multiply(g, b, cosine)),
    };
    if (interleaved) {
        const uint64_t apart[5] = { dims[0], rows, heads, half, 1 };
        const uint64_t together[4] = { dims[0], rows, heads, 2 * half };
        parts[0] = opjit_onnx_reshape(m, parts[0], 5, apart);
        parts[1] = opjit_onnx_reshape(m, parts[1], 5, apart);
        parts[0] = opjit_onnx_reshape(m, opjit_graph_join(g, parts, 2, 4), 4, together);
        parts[1] = (opjit_tensor){ 0, 0 };
    }
    uint32_t count = interleaved ? 1 : 2;
    if (2 * half < width)
        parts[count++] = lanes(m, t, 2 * n, (uint32_t)(width - 2 * half), 1);
    opjit_tensor y = count == 1 ? parts[0] : opjit_graph_join(g, parts, count, 3);
    if (!flat)
        y = opjit_graph_transpose(g, y, order);
    return opjit_onnx_give_as(m, c, 0, y, x->type, x->rank, x->dims);
}
