/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - nodes that read constants alone: a graph of that node, run by the interpreter while the model is read. */
#include "frontend/frontend.h"
#include "frontend/onnx/ops/ops.h"

enum {
    FOLDED_MOST = 1 << 18, /* elements of results */
    WEIGHTS_MOST = 1 << 12, /* of those that no size, place or condition is made of */
    PRODUCT_MOST = 1 << 12, /* elements that a product or convolution reads */
    DEQUANTIZED_MOST = 64 /* elements that DequantizeLinear makes */
};

/* Makes constants of what the node made in the graph. */
static opjit_status take_outputs(onnx_import *m, onnx_call *c)
{
    void **const data = ARENA_ARRAY(m->arena, void *, (size_t)c->output_count + 1);
    void **const made = ARENA_ARRAY(m->arena, void *, (size_t)c->output_count + 1);
    const DML_GRAPH_DESC *desc;
    uint32_t count = 0;
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
        TRY(opjit_fe_evaluate(m->context, desc, made, m->error));
    }
    for (uint32_t i = 0; i < c->output_count; i++)
        if (data[i] != NULL) {
            c->outputs[i].data = data[i];
            c->outputs[i].tensor = (opjit_tensor){ 0, 0 };
        }
    return OPJIT_OK;
}

/* Whether an element of the result takes many others. */
static bool is_product(const onnx_row *row)
{
    return row->make == opjit_onnx_gemm || row->make == opjit_onnx_matmul || row->make == opjit_onnx_einsum ||
           row->make == opjit_onnx_conv || row->make == opjit_onnx_conv_transpose;
}

/* The most elements of a result of that type that are computed here. */
static uint64_t most_of(const onnx_call *c, int32_t type)
{
    if (c->row->make == opjit_onnx_dequantize)
        return DEQUANTIZED_MOST;
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_BOOL ? FOLDED_MOST : WEIGHTS_MOST;
}

/* Whether the results are few enough to be computed here.  A kernel computes the others once, from its constants, and
 * faster than the interpreter does each time that the model is read: weights stored as float16, say.  Dequantized ones
 * are mostly read by operators that take the integers instead, and are then computed by nobody. */
static bool is_small(const onnx_call *c)
{
    uint64_t total = 0, read = 0;
    for (uint32_t i = 0; i < c->input_count && is_product(c->row); i++) {
        const uint64_t count = c->inputs[i] == NULL ? 0 : opjit_onnx_elements_of(c->inputs[i]);
        if (count > PRODUCT_MOST || (read += count) > PRODUCT_MOST)
            return false;
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        const onnx_value *const v = &c->outputs[i];
        const uint64_t count = v->type == ONNX_UNDEFINED ? 0 : opjit_onnx_elements_of(v);
        if (count > most_of(c, v->type) || (total += count) > FOLDED_MOST)
            return false;
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
    const bool here = is_small(c);
    if (m->error->status == OPJIT_OK && here)
        take_outputs(m, c);
    opjit_graph_destroy(m->graph);
    m->graph = graph;
    c->inputs = inputs;
    return m->error->status != OPJIT_OK || here ? m->error->status : c->row->make(m, c);
}
