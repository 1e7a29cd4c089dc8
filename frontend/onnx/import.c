/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - nodes, one after the other: which of them are needed, in which order, what their inputs are, which row
 * makes them. */
#include <stdio.h>

#include "frontend/onnx/compute.h"
#include "frontend/onnx/ops/ops.h"

/* node 12 "conv1" (Conv) */
static void prefix_node(onnx_import *m, const onnx_node *n)
{
    if (n->name.size != 0)
        opjit_rt_error_prefix(m->error, "node %u \"" ONNX_NAME "\" (" ONNX_NAME ")", n->index, ONNX_SHOW(n->name),
                              ONNX_SHOW(n->op));
    else
        opjit_rt_error_prefix(m->error, "node %u (" ONNX_NAME ")", n->index, ONNX_SHOW(n->op));
}

/* --- which nodes are needed, and in which order ------------------------------------------------------------------- */

/* The node that makes a name. */
typedef struct name_maker {
    uint32_t node, readers;
    onnx_uses uses; /* by nodes that are not imported yet and need more of it than its sizes, and by outputs */
} name_maker;

typedef enum node_state { NODE_UNSEEN, NODE_NEEDED, NODE_OPEN, NODE_ORDERED } node_state;

/* Nodes by the names that they make, and what is known of each.  A walk goes from readers to makers: the first one to
 * find the nodes that are needed, the second one to put makers before readers. */
typedef struct need {
    onnx_scope *makers;
    uint8_t *state; /* node_state */
    uint32_t *stack;
    uint32_t height;
    uint64_t reads; /* of names that nodes make, by the nodes that are needed */
    bool ordering;
    uint32_t *levels, level; /* of nodes, and the greatest of those that make what a node reads; NULL: not yet */
} need;

static void mark(need *w, wire_bytes name, bool elements)
{
    name_maker *const maker = name.size == 0 ? NULL : opjit_onnx_find(w->makers, name);
    if (maker == NULL)
        return;
    if (w->levels != NULL) {
        w->level = w->levels[maker->node] > w->level ? w->levels[maker->node] : w->level;
        return;
    }
    if (!w->ordering) {
        maker->readers++;
        maker->uses.count += elements;
        w->reads++;
    }
    if (w->state[maker->node] == (w->ordering ? NODE_NEEDED : NODE_UNSEEN)) {
        w->state[maker->node] = NODE_NEEDED;
        w->stack[w->height++] = maker->node;
    }
}

/* Whether the node reads elements of its inputs, not their sizes alone. */
static bool reads_elements(const onnx_node *n)
{
    return !wire_is(n->op, "Shape") && !wire_is(n->op, "Size");
}

static void mark_inputs(need *w, const onnx_node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        mark(w, n->inputs[i], reads_elements(n));
    for (uint32_t a = 0; a < n->attribute_count; a++) {
        const onnx_graph *const g = n->attributes[a].graph;
        for (uint32_t i = 0; g != NULL && i < g->node_count; i++)
            mark_inputs(w, &g->nodes[i]); /* as deep as read.c takes */
        for (uint32_t i = 0; g != NULL && i < g->output_count; i++)
            mark(w, g->outputs[i].name, true);
    }
}

static onnx_uses *uses_of(const onnx_scope *makers, wire_bytes name)
{
    name_maker *const maker = name.size == 0 ? NULL : opjit_onnx_find(makers, name);
    return maker == NULL ? NULL : &maker->uses;
}

/* A use of a name is over. */
static void drop(onnx_import *m, const onnx_scope *makers, wire_bytes name)
{
    onnx_uses *const uses = uses_of(makers, name);
    if (uses != NULL)
        opjit_onnx_drop_use(m, uses);
}

/* The node is imported, and has read what mark_inputs counted. */
static void drop_inputs(onnx_import *m, const onnx_scope *makers, const onnx_node *n)
{
    for (uint32_t i = 0; i < n->input_count && reads_elements(n); i++)
        drop(m, makers, n->inputs[i]);
    for (uint32_t a = 0; a < n->attribute_count; a++) {
        const onnx_graph *const g = n->attributes[a].graph;
        for (uint32_t i = 0; g != NULL && i < g->node_count; i++)
            drop_inputs(m, makers, &g->nodes[i]);
        for (uint32_t i = 0; g != NULL && i < g->output_count; i++)
            drop(m, makers, g->outputs[i].name);
    }
}

uint64_t opjit_onnx_output_count(const onnx_node *nodes, uint32_t count)
{
    uint64_t names = 0;
    for (uint32_t n = 0; n < count; n++)
        names += nodes[n].output_count;
    return names;
}

/* The needed nodes in the order of the file, except that what a later node makes is made first: files are to be sorted,
 * but some converters put new nodes at the end.  Nodes of a circle are in any order. */
static opjit_status order_needed(onnx_import *m, need *w, const onnx_node *nodes, uint32_t count, uint32_t *out,
                                 uint32_t *out_count)
{
    w->stack = ARENA_ARRAY(m->arena, uint32_t, (size_t)w->reads + 1);
    w->ordering = true;
    if (w->stack == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t n = 0; n < count; n++) {
        if (w->state[n] == NODE_NEEDED)
            w->stack[w->height++] = n;
        while (w->height > 0) {
            const uint32_t top = w->stack[w->height - 1];
            if (w->state[top] == NODE_NEEDED) {
                w->state[top] = NODE_OPEN;
                mark_inputs(w, &nodes[top]);
                continue;
            }
            if (w->state[top] == NODE_OPEN) {
                w->state[top] = NODE_ORDERED;
                out[(*out_count)++] = top;
            }
            w->height--;
        }
    }
    return OPJIT_OK;
}

/* Whether elements of an input decide how many the node gives, so that a part of the model ends there (compute.c). */
static bool ends_part(const onnx_node *n)
{
    return wire_is(n->op, "NonZero") || wire_is(n->op, "NonMaxSuppression") || wire_is(n->op, "Compress") ||
           wire_is(n->op, "Unique");
}

/* Of nodes that don't wait for each other, those behind fewer ends of parts come first: what a hundred classes of a
 * detector need is then made by one part, not by one for each of them. */
static opjit_status order_parts(onnx_import *m, need *w, const onnx_node *nodes, uint32_t count, uint32_t *order,
                                uint32_t ordered)
{
    uint32_t *const first = ARENA_ARRAY(m->arena, uint32_t, (size_t)ordered + 2); /* by level: of its nodes */
    const uint32_t *const before = opjit_rt_arena_copy(m->arena, order, ordered, sizeof *order);
    w->levels = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    if (first == NULL || before == NULL || w->levels == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < ordered; i++) {
        w->level = 0;
        mark_inputs(w, &nodes[order[i]]);
        w->levels[order[i]] = w->level + ends_part(&nodes[order[i]]);
        first[w->levels[order[i]] + 1]++;
    }
    for (uint32_t i = 0; i < ordered; i++)
        first[i + 1] += first[i];
    for (uint32_t i = 0; i < ordered; i++)
        order[first[w->levels[before[i]]]++] = before[i];
    return OPJIT_OK;
}

static opjit_status find_needed(onnx_import *m, const onnx_node *nodes, uint32_t count, const wire_bytes *wanted,
                                uint32_t wanted_count, uint32_t **out, uint32_t *out_count)
{
    need w = { 0 };
    const uint64_t names = opjit_onnx_output_count(nodes, count);
    name_maker *maker = ARENA_ARRAY(m->arena, name_maker, (size_t)names + 1);
    w.state = ARENA_ARRAY(m->arena, uint8_t, (size_t)count + 1);
    w.stack = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    w.makers = opjit_onnx_scope(m, NULL, names);
    *out = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    *out_count = 0;
    if (maker == NULL || w.state == NULL || w.stack == NULL || w.makers == NULL || *out == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t i = 0; i < nodes[n].output_count; i++)
            if (nodes[n].outputs[i].size != 0) {
                const name_maker *const other = opjit_onnx_find(w.makers, nodes[n].outputs[i]);
                if (other != NULL)
                    return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT,
                                           "{graph}: {\"" ONNX_NAME "\"} is made by node %u and by node %u",
                                           ONNX_SHOW(nodes[n].outputs[i]), other->node, n);
                *maker = (name_maker){ .node = n };
                TRY(opjit_onnx_enter(m, w.makers, nodes[n].outputs[i], maker++));
            }
    for (uint32_t i = 0; i < wanted_count; i++)
        mark(&w, wanted[i], true);
    while (w.height > 0)
        mark_inputs(&w, &nodes[w.stack[--w.height]]);
    m->makers = w.makers;
    TRY(order_needed(m, &w, nodes, count, *out, out_count));
    return m->computing == NULL ? OPJIT_OK : order_parts(m, &w, nodes, count, *out, *out_count);
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
        name_maker *const maker = opjit_onnx_find(m->makers, n->outputs[i]);
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
    uint32_t *order = NULL, needed = 0;
    const onnx_scope *const outer = m->makers;
    TRY(find_needed(m, nodes, count, wanted, wanted_count, &order, &needed));
    const onnx_scope *const makers = m->makers;
    for (uint32_t i = 0; i < needed; i++) {
        const onnx_node *const n = &nodes[order[i]];
        m->makers = makers; /* a node with graphs of its own has others */
        if (import_node(m, n) != OPJIT_OK) {
            prefix_node(m, n);
            return opjit_rt_at_node(m->error, m->error->status, n->index);
        }
        drop_inputs(m, makers, n);
    }
    m->makers = makers;
    const opjit_status status = opjit_onnx_give_graph(m, uses_of, wanted, wanted_count);
    m->makers = outer;
    return status;
}
