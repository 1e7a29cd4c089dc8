/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - constants that follow from a dynamic dimension.  While the model is read for one of its sizes, shape
 * arithmetic becomes numbers as ever, and what is made of these (a range of positions, a mask of so many rows) is a
 * constant.  For other sizes it is another one, which one kernel can't have.  So such a constant remembers the call
 * that made it; where a tensor of the graph is asked for, the graph gets the call's operators instead. */
#include "frontend/onnx/call.h"

enum { NUMBERS_MOST = 16 }; /* of a list of sizes that becomes a tensor */

static bool any_follows(const onnx_call *c)
{
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL && (c->inputs[i]->follows != NULL || !onnx_is_constant(c->inputs[i])))
            return true;
    return false;
}

opjit_status opjit_onnx_follow(onnx_import *m, onnx_call *c)
{
    onnx_made *made = NULL;
    /* Graphs of If and Loop are read where they stand, and their nodes mark what they make. */
    if (!m->is_sample || c->row == NULL || onnx_has_graph(c->node) || !any_follows(c))
        return OPJIT_OK;
    for (uint32_t i = 0; i < c->output_count; i++) {
        onnx_value *const v = &c->outputs[i];
        if (v->type == ONNX_UNDEFINED || v->type >= ONNX_SEQUENCE || v->data == NULL || v->follows != NULL)
            continue;
        if (made == NULL)
            made = ARENA_NEW(m->arena, onnx_made);
        if (made == NULL)
            return opjit_rt_no_memory(m->error);
        *made = (onnx_made){ *c, m->frame, m->opset, m->graph };
        v->follows = made;
        v->output = i;
    }
    return OPJIT_OK;
}

/* A few integers, each as a number of the graph. */
static opjit_tensor tensor_of_numbers(onnx_import *m, const onnx_value *v)
{
    opjit_tensor parts[NUMBERS_MOST];
    const uint64_t count = opjit_onnx_elements_of(v);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = opjit_onnx_scalar(m, v->type,
                                     v->type == ONNX_INT64 ? (double)((const int64_t *)v->data)[i]
                                                           : (double)((const int32_t *)v->data)[i]);
    return count == 1 ? parts[0] : opjit_graph_join(m->graph, parts, (uint32_t)count, 0);
}

static bool is_number(const onnx_value *v, uint64_t most)
{
    return (v->type == ONNX_INT64 || v->type == ONNX_INT32) && opjit_onnx_elements_of(v) <= most;
}

/* What the call makes in the graph. */
static opjit_status call_again(onnx_import *m, const onnx_value *v, onnx_value *out)
{
    const onnx_frame *const frame = m->frame;
    const int64_t opset = m->opset;
    onnx_call c = v->follows->call;
    c.outputs = ARENA_ARRAY(m->arena, onnx_value, (size_t)c.output_count + 1);
    if (c.outputs == NULL)
        return opjit_rt_no_memory(m->error);
    m->frame = v->follows->frame;
    m->opset = v->follows->opset;
    const opjit_status status = c.row->make(m, &c);
    m->frame = frame;
    m->opset = opset;
    *out = c.outputs[v->output];
    return status;
}

opjit_tensor opjit_onnx_followed(onnx_import *m, onnx_value *v)
{
    onnx_value made = *v;
    opjit_tensor tensor = { 0, 0 };
    if (++m->following > ONNX_FOLLOWED)
        opjit_rt_refuse(m->error, OPJIT_LIMIT, "{!tensor}more than %u nodes in a row follow from a dynamic dimension",
                        ONNX_FOLLOWED);
    else if (is_number(v, 1))
        tensor = tensor_of_numbers(m, v);
    else if (call_again(m, v, &made) == OPJIT_OK && made.follows == NULL && onnx_is_constant(&made))
        tensor = made.data != NULL && is_number(&made, NUMBERS_MOST) ? tensor_of_numbers(m, &made) : tensor;
    if (tensor.index == 0 && m->error->status == OPJIT_OK)
        tensor = opjit_onnx_tensor(m, &made);
    m->following--;
    v->tensor = opjit_onnx_reshape(m, tensor, v->rank, v->dims);
    return v->tensor;
}
