/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - If: the branch that a known condition takes; of an unknown one both, and a choice between them. */
#include "frontend/onnx/ops.h"

/* Imports a branch in a scope of its own; its outputs are in out. */
static opjit_status run_branch(onnx_import *m, const onnx_call *c, const char *name, onnx_value *out)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    if (a == NULL || a->graph == NULL || a->graph->output_count < c->output_count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s is no graph with %u outputs", name,
                                 c->output_count);
    const onnx_graph *const g = a->graph;
    onnx_scope *const scope = m->scope;
    wire_bytes *const wanted = ARENA_ARRAY(m->arena, wire_bytes, (size_t)g->output_count + 1);
    if (wanted == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < g->output_count; i++)
        wanted[i] = g->outputs[i].name;
    m->scope = opjit_onnx_scope(m, scope);
    opjit_status status = m->error->status;
    if (status == OPJIT_OK)
        status = opjit_onnx_initializers(m, g);
    if (status == OPJIT_OK)
        status = opjit_onnx_nodes(m, g->nodes, g->node_count, wanted, g->output_count);
    for (uint32_t i = 0; i < c->output_count && status == OPJIT_OK; i++) {
        const onnx_value *const v = opjit_onnx_lookup(m, wanted[i]);
        if (v == NULL)
            status = opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                       "{output} {\"" ONNX_NAME "\"} of %s is made by no node", ONNX_SHOW(wanted[i]),
                                       name);
        else
            out[i] = *v;
    }
    m->scope = scope;
    return status;
}

opjit_status opjit_onnx_if(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    if (onnx_is_constant(c->inputs[0])) {
        const uint8_t *const condition = opjit_onnx_data(m, c->inputs[0]);
        if (condition == NULL)
            return m->error->status;
        return run_branch(m, c, *condition != 0 ? "then_branch" : "else_branch", c->outputs);
    }
    onnx_value *const others = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->output_count + 1);
    onnx_value *const ours = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->output_count + 1);
    if (others == NULL || ours == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(run_branch(m, c, "then_branch", ours));
    TRY(run_branch(m, c, "else_branch", others));
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (ours[i].type != others[i].type || ours[i].rank != others[i].rank ||
            memcmp(ours[i].dims, others[i].dims, ours[i].rank * sizeof *ours[i].dims) != 0)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                     "the condition is known at run time only, and the branches give output %u in "
                                     "different sizes or types", i);
        const opjit_tensor y = opjit_graph_where(m->graph, onnx_tensor_of(m, c, 0), opjit_onnx_tensor(m, &ours[i]),
                                                 opjit_onnx_tensor(m, &others[i]));
        TRY(opjit_onnx_give_as(m, c, i, y, ours[i].type, ours[i].rank, ours[i].dims));
    }
    return OPJIT_OK;
}
