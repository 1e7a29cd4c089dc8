/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - nodes that read constants alone: a graph of that node, run by the interpreter while the model is read. */
#include "frontend/frontend.h"
#include "frontend/onnx/ops/ops.h"

enum {
    FOLDED_MOST = 1 << 18, /* elements of results */
    WEIGHTS_MOST = 1 << 9, /* of those that no size, place or condition is made of */
    WORK_MOST = 1 << 20,   /* elements and terms of sums */
    WEIGHTS_WORK_MOST = 1 << 13,
    DEQUANTIZED_MOST = 64  /* elements that DequantizeLinear makes */
};

/* Makes constants of what the node made in the graph; *done is false where that would take more than `most`. */
static opjit_status take_outputs(onnx_import *m, onnx_call *c, uint64_t most, bool *done)
{
    void **const data = ARENA_ARRAY(m->arena, void *, (size_t)c->output_count + 1);
    void **const made = ARENA_ARRAY(m->arena, void *, (size_t)c->output_count + 1);
    const DML_GRAPH_DESC *desc;
    uint32_t count = 0;
    *done = true;
    if (data == NULL || made == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < c->output_count; i++) {
        onnx_value *const v = &c->outputs[i];
        if (v->type == ONNX_UNDEFINED)
            continue;
        if (onnx_is_constant(v)) { /* an input's value, which may have become a tensor of the node's graph */
            v->tensor = (opjit_tensor){ 0, 0 };
            continue;
        }
        const uint64_t bytes =
            align_up(opjit_onnx_elements_of(v) * opjit_rt_dtype_size(opjit_onnx_dtype(v->type)), 4);
        data[i] = opjit_onnx_memory(m, bytes);
        if (data[i] == NULL)
            return m->error->status;
        made[count++] = data[i];
        (void)opjit_graph_output(m->graph, NULL, v->tensor);
    }
    if (count != 0) {
        TRY(opjit_graph_get_desc(m->graph, &desc, m->error));
        TRY(opjit_fe_evaluate(m->context, desc, most, made, done, m->error));
    }
    for (uint32_t i = 0; i < c->output_count && *done; i++)
        if (data[i] != NULL) {
            c->outputs[i].data = data[i];
            c->outputs[i].tensor = (opjit_tensor){ 0, 0 };
        }
    return OPJIT_OK;
}

/* Whether the results are few enough to be computed here, and *work how much that may take.  A kernel computes the
 * others once, from its constants, and faster than the interpreter does each time that the model is read: weights
 * stored as float16, say, or products.  Dequantized ones are mostly read by operators that take the integers instead,
 * and are then computed by nobody. */
static bool is_small(const onnx_call *c, uint64_t *work)
{
    const bool dequantized = c->row->make == opjit_onnx_dequantize;
    uint64_t total = 0;
    *work = WORK_MOST;
    for (uint32_t i = 0; i < c->output_count; i++) {
        const onnx_value *const v = &c->outputs[i];
        const uint64_t count = v->type == ONNX_UNDEFINED ? 0 : opjit_onnx_elements_of(v);
        const bool weights = v->type != ONNX_INT64 && v->type != ONNX_INT32 && v->type != ONNX_BOOL && count != 0;
        if (count > (dequantized ? DEQUANTIZED_MOST : weights ? WEIGHTS_MOST : FOLDED_MOST) ||
            (total += count) > FOLDED_MOST)
            return false;
        *work = weights ? WEIGHTS_WORK_MOST : *work;
    }
    return true;
}

opjit_status opjit_onnx_fold(onnx_import *m, onnx_call *c)
{
    opjit_graph *const graph = m->graph;
    onnx_value **const inputs = c->inputs;
    TRY(opjit_graph_create(m->context, &m->graph, m->error));
    c->inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)c->input_count + 1);
    onnx_value *const copies = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->input_count + 1);
    if (c->inputs == NULL || copies == NULL)
        opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < c->input_count && m->error->status == OPJIT_OK; i++) {
        if (inputs[i] == NULL)
            continue;
        copies[i] = *inputs[i];
        copies[i].tensor = (opjit_tensor){ 0, 0 };
        copies[i].follows = NULL;
        c->inputs[i] = &copies[i];
    }
    if (m->error->status == OPJIT_OK)
        c->row->make(m, c);
    (void)opjit_onnx_status(m);
    uint64_t work;
    bool here = is_small(c, &work);
    if (m->error->status == OPJIT_OK && here)
        take_outputs(m, c, work, &here);
    opjit_graph_destroy(m->graph);
    m->graph = graph;
    c->inputs = inputs;
    return m->error->status != OPJIT_OK || here ? m->error->status : c->row->make(m, c);
}
