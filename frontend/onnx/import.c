/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - nodes, one after the other: what their inputs are, which row makes them. */
#include <stdio.h>

#include "frontend/onnx/ops/ops.h"
#include "frontend/onnx/order.h"

void opjit_onnx_prefix_node(onnx_import *m, const onnx_node *n)
{
    if (n->name.size != 0)
        opjit_rt_error_prefix(m->error, "node %u \"" ONNX_NAME "\" (" ONNX_NAME ")", n->index, ONNX_SHOW(n->name),
                              ONNX_SHOW(n->op));
    else
        opjit_rt_error_prefix(m->error, "node %u (" ONNX_NAME ")", n->index, ONNX_SHOW(n->op));
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* Imports the function's nodes, in a scope of its own, for the call. */
static opjit_status run_function(onnx_import *m, onnx_call *c, const onnx_function *fn)
{
    if (m->depth == ONNX_DEPTH)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "functions in functions without end");
    const onnx_import before = *m;
    onnx_frame *const frame = ARENA_NEW(m->arena, onnx_frame);
    if (frame == NULL)
        return opjit_rt_no_memory(m->error);
    *frame = (onnx_frame){ m->frame, c->node, fn };
    m->scope = opjit_onnx_scope(m, NULL, fn->input_count + opjit_onnx_output_count(fn->nodes, fn->node_count));
    if (m->scope == NULL)
        return m->error->status;
    opjit_status status = OPJIT_OK;
    for (uint32_t i = 0; i < fn->input_count && status == OPJIT_OK; i++)
        if (onnx_input(c, i) != NULL)
            status = opjit_onnx_define(m, fn->inputs[i], onnx_input(c, i));
    m->frame = frame;
    m->depth++;
    if (fn->opset > 0)
        m->opset = fn->opset;
    if (status == OPJIT_OK)
        status = opjit_onnx_nodes(m, fn->nodes, fn->node_count, fn->outputs, fn->output_count);
    for (uint32_t i = 0; i < fn->output_count && i < c->output_count && status == OPJIT_OK; i++) {
        const onnx_value *const v = opjit_onnx_lookup(m, fn->outputs[i]);
        if (v != NULL)
            c->outputs[i] = *v;
    }
    m->scope = before.scope;
    m->frame = before.frame;
    m->depth = before.depth;
    m->opset = before.opset;
    return status;
}

opjit_status opjit_onnx_functions(onnx_import *m, onnx_model *model)
{
    onnx_scope *const functions = opjit_onnx_scope(m, NULL, model->function_count);
    if (functions == NULL)
        return m->error->status;
    for (uint32_t i = model->function_count; i-- > 0;) {
        onnx_function *const f = &model->functions[i];
        f->next = opjit_onnx_find(functions, f->name);
        TRY(opjit_onnx_enter(m, functions, f->name, f));
    }
    m->functions = functions;
    return OPJIT_OK;
}

static const onnx_function *find_function(const onnx_import *m, const onnx_node *n)
{
    const onnx_function *f = opjit_onnx_find(m->functions, n->op);
    while (f != NULL && !wire_same(f->domain, n->domain))
        f = f->next;
    return f;
}

/* Whether all that the call reads is known; graphs in it read by themselves. */
static bool is_constant_call(const onnx_call *c)
{
    uint64_t total = 0;
    if (onnx_has_graph(c->node))
        return false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (c->inputs[i] == NULL)
            continue;
        if (!onnx_is_constant(c->inputs[i]))
            return false;
        total += opjit_onnx_elements_of(c->inputs[i]);
    }
    return total > 0 && total <= 65536;
}

static opjit_status make(onnx_import *m, onnx_call *c)
{
    const onnx_function *const fn = find_function(m, c->node);
    if (fn != NULL)
        return run_function(m, c, fn);
    c->row = opjit_onnx_find_row(c->node);
    if (c->row == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "there is no such operator%s" ONNX_NAME,
                                 c->node->domain.size == 0 ? "" : " in domain ", ONNX_SHOW(c->node->domain));
    if (c->row->make == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%s", c->row->why);
    if (opjit_onnx_takes_lists(c->row))
        return c->row->make(m, c);
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL && c->inputs[i]->type >= ONNX_SEQUENCE)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input %u is no tensor, but %s", i,
                                     c->inputs[i]->type == ONNX_SEQUENCE ? "a sequence"
                                                                         : "an optional value without one");
    bool done = false;
    if (opjit_onnx_has_empty(c) && !onnx_has_graph(c->node))
        TRY(opjit_onnx_make_empty(m, c, &done));
    if (done)
        return OPJIT_OK;
    return is_constant_call(c) ? opjit_onnx_fold(m, c) : c->row->make(m, c);
}

/* conv1 (Conv): as what opjit makes of the node is called. */
static void label_node(const onnx_import *m, const onnx_node *n)
{
    char text[192];
    snprintf(text, sizeof text, n->name.size == 0 ? ONNX_NAME "(" ONNX_NAME ")" : ONNX_NAME " (" ONNX_NAME ")",
             ONNX_SHOW(n->name), ONNX_SHOW(n->op));
    opjit_graph_label(m->graph, text);
}

/* Whether the output is a constant by another name.  It stays one value then, which the graph has once: layers that
 * share their weights read them through a node each, and what is made of the weights is made once. */
static bool is_renamed(const onnx_call *c)
{
    return c->row != NULL && c->row->make == opjit_onnx_same && onnx_is_constant(c->inputs[0]);
}

static uint32_t constants_of(const onnx_call *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->input_count; i++)
        count += c->inputs[i] != NULL && onnx_is_constant(c->inputs[i]);
    return count;
}

/* Makes the call; where values of its inputs were computed for it, again, for the part that comes then. */
static opjit_status make_in_part(onnx_import *m, onnx_call *c)
{
    uint32_t constants;
    do {
        TRY(opjit_onnx_next_part(m));
        constants = constants_of(c);
        for (uint32_t i = 0; i < c->output_count; i++)
            c->outputs[i] = (onnx_value){ .type = ONNX_UNDEFINED };
        label_node(m, c->node);
        TRY(make(m, c));
        TRY(opjit_onnx_status(m));
    } while (opjit_onnx_is_cut(m) && c->row != NULL && constants_of(c) != constants && !onnx_has_graph(c->node));
    return OPJIT_OK;
}

static opjit_status import_node(onnx_import *m, const onnx_node *n)
{
    onnx_call c = { .node = n, .input_count = n->input_count, .output_count = n->output_count };
    const onnx_given *const given = onnx_given_last(m);
    c.inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)n->input_count + 1);
    c.outputs = ARENA_ARRAY(m->arena, onnx_value, (size_t)n->output_count + 1);
    if (c.inputs == NULL || c.outputs == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i].size == 0)
            continue;
        c.inputs[i] = opjit_onnx_lookup(m, n->inputs[i]);
        if (c.inputs[i] == NULL)
            return opjit_onnx_refuse(m, &c, OPJIT_INVALID_ARGUMENT,
                                     "input %u: \"" ONNX_NAME "\" is made by no node before it", i,
                                     ONNX_SHOW(n->inputs[i]));
    }
    if (++m->nodes > ONNX_NODES)
        return opjit_onnx_refuse(m, &c, OPJIT_LIMIT, "more than %u nodes, with those of functions", ONNX_NODES);
    TRY(make_in_part(m, &c));
    TRY(opjit_onnx_follow(m, &c));
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i].size == 0)
            continue;
        if (c.outputs[i].type == ONNX_UNDEFINED)
            return opjit_onnx_refuse(m, &c, OPJIT_UNSUPPORTED, "output %u (\"" ONNX_NAME "\") is not made by opjit", i,
                                     ONNX_SHOW(n->outputs[i]));
        onnx_value *const made = is_renamed(&c) ? c.inputs[0] : &c.outputs[i];
        onnx_producer *const maker = opjit_onnx_find(m->makers, n->outputs[i]);
        made->readers += maker->readers;
        TRY(opjit_onnx_enter(m, m->scope, n->outputs[i], made));
        TRY(opjit_onnx_watch(m, made, &maker->uses));
    }
    opjit_onnx_end_given(m, given);
    return OPJIT_OK;
}

opjit_status opjit_onnx_nodes(onnx_import *m, const onnx_node *nodes, uint32_t count, const wire_bytes *wanted,
                              uint32_t wanted_count)
{
    onnx_order order;
    const onnx_scope *const outer = m->makers;
    TRY(opjit_onnx_order(m, nodes, count, wanted, wanted_count, &order));
    for (uint32_t i = 0; i < order.count; i++) {
        const onnx_node *const n = &nodes[order.nodes[i]];
        m->makers = order.makers; /* a node with graphs of its own has others */
        if (import_node(m, n) != OPJIT_OK) {
            opjit_onnx_prefix_node(m, n);
            return opjit_rt_at_node(m->error, m->error->status, n->index);
        }
        opjit_onnx_drop_inputs(m, order.makers, n);
    }
    m->makers = outer;
    for (uint32_t i = wanted_count; i-- > 0;) {
        onnx_producer *const p = wanted[i].size == 0 ? NULL : opjit_onnx_find(order.makers, wanted[i]);
        TRY(opjit_onnx_add_given(m, p == NULL ? NULL : &p->uses));
    }
    return OPJIT_OK;
}
