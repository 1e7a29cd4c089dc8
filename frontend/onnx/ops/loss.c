/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c - losses of training: what the scores {batch, classes, ...} say of the target classes {batch, ...}. */
#include "frontend/onnx/ops/ops.h"

/* -scores[target] * weight[target], reduced as the attribute says; what has the ignored class counts nothing. */
static opjit_status give_likelihood(onnx_import *m, onnx_call *c, opjit_tensor scores)
{
    const onnx_value *const x = c->inputs[0], *const target = c->inputs[1];
    const onnx_attribute *const ignored = opjit_onnx_attribute(m, c, "ignore_index");
    const bool none = opjit_onnx_text_is(m, c, "reduction", "none", "mean");
    const bool mean = opjit_onnx_text_is(m, c, "reduction", "mean", "mean");
    opjit_graph *const g = m->graph;
    uint64_t wide[ONNX_RANK];
    uint32_t axes[ONNX_RANK];
    if (x->rank < 2 || target->rank != x->rank - 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "scores of %u dimensions, targets of %u", x->rank,
                                 target->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        wide[d] = d == 1 ? 1 : x->dims[d];
        axes[d] = d;
    }
    opjit_tensor at = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), target->type, ONNX_INT64), counted = { 0, 0 };
    at = opjit_onnx_reshape(m, at, x->rank, wide);
    if (ignored != NULL) {
        const opjit_tensor is_ignored = opjit_graph_equals(g, at, opjit_onnx_scalar(m, ONNX_INT64, (double)ignored->i));
        counted = opjit_onnx_cast(m, opjit_graph_logical_not(g, is_ignored), ONNX_BOOL, x->type);
        at = opjit_graph_where(g, is_ignored, opjit_onnx_scalar(m, ONNX_INT64, 0), at);
    }
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { NULL, NULL, NULL, 1 };
    const opjit_tensor inputs[2] = { scores, at };
    opjit_tensor loss = opjit_graph_negate(g, opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2));
    opjit_tensor weight = counted;
    if (onnx_input(c, 2) != NULL) {
        uint32_t sizes[ONNX_RANK];
        for (uint32_t d = 0; d < x->rank; d++)
            sizes[d] = (uint32_t)x->dims[d];
        const opjit_tensor by_class = opjit_graph_broadcast(g, opjit_onnx_vector(m, c, 2, x->rank, 1), x->rank, sizes);
        const opjit_tensor pair[2] = { by_class, at };
        weight = opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, pair, 2);
        weight = counted.index == 0 ? weight : opjit_graph_multiply(g, weight, counted);
    }
    if (weight.index != 0)
        loss = opjit_graph_multiply(g, loss, weight);
    if (none)
        return opjit_onnx_give_as(m, c, 0, loss, x->type, target->rank, target->dims);
    const bool average = mean && weight.index == 0;
    loss = opjit_graph_reduce(g, loss, average ? DML_REDUCE_FUNCTION_AVERAGE : DML_REDUCE_FUNCTION_SUM, x->rank, axes);
    if (mean && weight.index != 0)
        loss = opjit_graph_divide(g, loss, opjit_graph_reduce(g, weight, DML_REDUCE_FUNCTION_SUM, x->rank, axes));
    return opjit_onnx_give(m, c, 0, loss, x->type, 0);
}

opjit_status opjit_onnx_negative_log_likelihood(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    return give_likelihood(m, c, onnx_tensor_of(m, c, 0));
}

/* The same of the logarithm of softmax, which is output 1. */
opjit_status opjit_onnx_softmax_cross_entropy(onnx_import *m, onnx_call *c)
{
    static const uint32_t classes = 1;
    const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC desc = { NULL, NULL, 1, &classes };
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    if (x->rank < 2)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "scores of %u dimensions", x->rank);
    const opjit_tensor scores = opjit_graph_op(m->graph, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, &desc, &t, 1);
    if (onnx_wants(c, 1))
        TRY(opjit_onnx_give(m, c, 1, scores, x->type, x->rank));
    return give_likelihood(m, c, scores);
}
