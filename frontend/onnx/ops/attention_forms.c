/* SPDX-License-Identifier: Apache-2.0 */
/* attention_forms.c - attention, of products, softmax and pointwise operators: graphs that the passes know as it. */
#include "frontend/onnx/ops/attention_forms.h"

#include <math.h>

opjit_tensor opjit_onnx_split_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
                                    uint64_t width)
{
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    const uint64_t dims[4] = { batch, rows, heads, width };
    return opjit_graph_transpose(m->graph, opjit_onnx_reshape(m, t, 4, dims), order);
}

opjit_tensor opjit_onnx_join_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
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

opjit_tensor opjit_onnx_attend(onnx_import *m, attention *a)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor pair[2] = { a->q, repeat_heads(m, a, a->k, a->width) };
    const DML_GEMM_OPERATOR_DESC desc = { .TransB = DML_MATRIX_TRANSFORM_TRANSPOSE, .Alpha = (float)a->scale };
    opjit_tensor scores = opjit_graph_op(g, DML_OPERATOR_GEMM, &desc, pair, 2);
    a->made[0] = scores;
    if (a->softcap != 0) {
        const opjit_tensor cap = opjit_onnx_scalar(m, a->type, a->softcap);
        scores = opjit_graph_multiply(g, opjit_graph_tanh(g, opjit_graph_divide(g, scores, cap)), cap);
    }
    a->made[1] = scores;
    if (a->mask.index != 0)
        scores = opjit_graph_add(g, scores, a->mask);
    if (a->causal)
        scores = opjit_graph_fill_band(g, scores, -INFINITY, (int32_t)(a->past + a->ahead) + 1, INT32_MAX);
    if (a->window != 0)
        scores = opjit_graph_fill_band(g, scores, -INFINITY, INT32_MIN, (int32_t)a->past + 1 - (int32_t)a->window);
    a->made[2] = scores;
    opjit_tensor weights = opjit_graph_softmax(g, scores, 3);
    if (a->zero_unseen && (a->mask.index != 0 || a->window != 0))
        weights = opjit_graph_where(
            g, opjit_graph_equals(g, opjit_graph_reduce_max(g, scores, 3), opjit_onnx_scalar(m, a->type, -INFINITY)),
            opjit_onnx_scalar(m, a->type, 0), weights);
    a->made[3] = weights;
    return opjit_graph_matrix_multiply(g, weights, repeat_heads(m, a, a->v, a->v_width), 0, 0);
}

opjit_tensor opjit_onnx_attention_mask(onnx_import *m, const onnx_call *c, uint32_t i, int32_t type)
{
    onnx_value *const v = onnx_input(c, i);
    if (v == NULL)
        return (opjit_tensor){ 0, 0 };
    const opjit_tensor t = opjit_onnx_tensor(m, v);
    if (v->type != ONNX_BOOL)
        return opjit_onnx_cast(m, t, v->type, type);
    return opjit_graph_where(m->graph, t, opjit_onnx_scalar(m, type, 0), opjit_onnx_scalar(m, type, -INFINITY));
}

opjit_status opjit_onnx_add_past(onnx_import *m, onnx_call *c, uint32_t past, uint32_t present, opjit_tensor *t,
                                 int32_t type)
{
    if (onnx_input(c, past) != NULL && opjit_onnx_elements_of(c->inputs[past]) != 0) {
        const opjit_tensor both[2] = { onnx_tensor_of(m, c, past), *t };
        *t = opjit_graph_join(m->graph, both, 2, 2);
    }
    return onnx_wants(c, present) ? opjit_onnx_give(m, c, present, *t, type, 4) : OPJIT_OK;
}

double opjit_onnx_attention_scale(const onnx_import *m, const onnx_call *c, uint64_t width)
{
    const float scale = opjit_onnx_float(m, c, "scale", 0);
    return scale != 0 ? (double)scale : 1 / sqrt((double)width);
}
