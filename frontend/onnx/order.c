/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - which nodes of a graph are needed, and in which order.  Each walk goes from a node to the makers of what it
 * reads: one finds the nodes that are needed, one puts makers before readers, one counts the ends of parts before each
 * node. */
#include "frontend/onnx/order.h"

/* --- what a node reads -------------------------------------------------------------------------------------------- */

/* The maker of a name that is read; elements: of these, not of the sizes alone. */
typedef void visitor(void *walk, onnx_producer *maker, bool elements);

static void each_name(const onnx_scope *makers, wire_bytes name, bool elements, visitor *visit, void *walk)
{
    onnx_producer *const maker = name.size == 0 ? NULL : opjit_onnx_find(makers, name);
    if (maker != NULL)
        visit(walk, maker, elements);
}

/* Visits the makers of what the node and the graphs in it read, each as often as it is read; names that no node of
 * `makers` makes are passed over. */
static void each_read(const onnx_scope *makers, const onnx_node *n, visitor *visit, void *walk)
{
    const bool elements = !wire_is(n->op, "Shape") && !wire_is(n->op, "Size");
    for (uint32_t i = 0; i < n->input_count; i++)
        each_name(makers, n->inputs[i], elements, visit, walk);
    for (uint32_t a = 0; a < n->attribute_count; a++) {
        const onnx_graph *const g = n->attributes[a].graph;
        for (uint32_t i = 0; g != NULL && i < g->node_count; i++)
            each_read(makers, &g->nodes[i], visit, walk); /* as deep as read.c takes */
        for (uint32_t i = 0; g != NULL && i < g->output_count; i++)
            each_name(makers, g->outputs[i].name, true, visit, walk);
    }
}

static void drop(void *m, onnx_producer *maker, bool elements)
{
    if (elements)
        opjit_onnx_drop_use(m, &maker->uses);
}

void opjit_onnx_drop_inputs(onnx_import *m, const onnx_scope *makers, const onnx_node *n)
{
    each_read(makers, n, drop, m);
}

/* --- which nodes are needed --------------------------------------------------------------------------------------- */

typedef enum node_state { NODE_UNSEEN, NODE_NEEDED, NODE_OPEN, NODE_ORDERED } node_state;

/* Nodes, and those of them that a walk has yet to look at. */
typedef struct need {
    const onnx_node *nodes;
    uint32_t count;
    const onnx_scope *makers;
    uint8_t *state; /* node_state */
    uint32_t *stack, height;
    uint64_t reads; /* of names that nodes make, by the nodes that are needed */
} need;

static void push(need *w, uint32_t node)
{
    w->state[node] = NODE_NEEDED;
    w->stack[w->height++] = node;
}

static void find(void *walk, onnx_producer *maker, bool elements)
{
    need *const w = walk;
    maker->readers++;
    maker->uses.count += elements;
    w->reads++;
    if (w->state[maker->node] == NODE_UNSEEN)
        push(w, maker->node);
}

/* Of the names that are wanted. */
static void find_needed(need *w, const wire_bytes *wanted, uint32_t wanted_count)
{
    for (uint32_t i = 0; i < wanted_count; i++)
        each_name(w->makers, wanted[i], true, find, w);
    while (w->height > 0)
        each_read(w->makers, &w->nodes[w->stack[--w->height]], find, w);
}

/* --- in which order ----------------------------------------------------------------------------------------------- */

static void open_maker(void *walk, onnx_producer *maker, bool elements)
{
    need *const w = walk;
    (void)elements;
    if (w->state[maker->node] == NODE_NEEDED)
        push(w, maker->node);
}

/* Files are to be sorted, but some converters put new nodes at the end.  Nodes of a circle are in any order. */
static void put_makers_first(need *w, onnx_order *out)
{
    for (uint32_t n = 0; n < w->count; n++) {
        if (w->state[n] == NODE_NEEDED)
            push(w, n);
        while (w->height > 0) {
            const uint32_t top = w->stack[w->height - 1];
            if (w->state[top] == NODE_NEEDED) {
                w->state[top] = NODE_OPEN;
                each_read(w->makers, &w->nodes[top], open_maker, w);
                continue;
            }
            if (w->state[top] == NODE_OPEN) {
                w->state[top] = NODE_ORDERED;
                out->nodes[out->count++] = top;
            }
            w->height--;
        }
    }
}

/* Whether elements of an input decide how many the node gives, so that a part of the model ends there (compute.c). */
static bool ends_part(const onnx_node *n)
{
    return wire_is(n->op, "NonZero") || wire_is(n->op, "NonMaxSuppression") || wire_is(n->op, "Compress") ||
           wire_is(n->op, "Unique");
}

/* How many ends of parts are before each node, and before what is read last. */
typedef struct ends {
    uint32_t *before, most;
} ends;

static void count_ends(void *walk, onnx_producer *maker, bool elements)
{
    ends *const e = walk;
    (void)elements;
    if (e->before[maker->node] > e->most)
        e->most = e->before[maker->node];
}

/* Of nodes that don't wait for each other, those behind fewer ends of parts come first: what a hundred classes of a
 * detector need is then made by one part, not by one for each of them. */
static opjit_status order_parts(onnx_import *m, const need *w, onnx_order *out)
{
    const uint32_t *const nodes = opjit_rt_arena_copy(m->arena, out->nodes, out->count, sizeof *out->nodes);
    uint32_t *const first = ARENA_ARRAY(m->arena, uint32_t, (size_t)out->count + 2); /* by ends before: of its nodes */
    ends e = { .before = ARENA_ARRAY(m->arena, uint32_t, (size_t)w->count + 1) };
    if (first == NULL || nodes == NULL || e.before == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < out->count; i++) {
        e.most = 0;
        each_read(w->makers, &w->nodes[nodes[i]], count_ends, &e);
        e.before[nodes[i]] = e.most + ends_part(&w->nodes[nodes[i]]);
        first[e.before[nodes[i]] + 1]++;
    }
    for (uint32_t i = 0; i < out->count; i++)
        first[i + 1] += first[i];
    for (uint32_t i = 0; i < out->count; i++)
        out->nodes[first[e.before[nodes[i]]]++] = nodes[i];
    return OPJIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

uint64_t opjit_onnx_output_count(const onnx_node *nodes, uint32_t count)
{
    uint64_t names = 0;
    for (uint32_t n = 0; n < count; n++)
        names += nodes[n].output_count;
    return names;
}

/* The table of names, with the node that makes each. */
static opjit_status enter_makers(onnx_import *m, const onnx_node *nodes, uint32_t count, onnx_scope **out)
{
    const uint64_t names = opjit_onnx_output_count(nodes, count);
    onnx_producer *maker = ARENA_ARRAY(m->arena, onnx_producer, (size_t)names + 1);
    *out = opjit_onnx_scope(m, NULL, names);
    if (maker == NULL || *out == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t n = 0; n < count; n++)
        for (uint32_t i = 0; i < nodes[n].output_count; i++)
            if (nodes[n].outputs[i].size != 0) {
                const onnx_producer *const other = opjit_onnx_find(*out, nodes[n].outputs[i]);
                if (other != NULL)
                    return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT,
                                           "{graph}: {\"" ONNX_NAME "\"} is made by node %u and by node %u",
                                           ONNX_SHOW(nodes[n].outputs[i]), other->node, n);
                *maker = (onnx_producer){ .node = n };
                TRY(opjit_onnx_enter(m, *out, nodes[n].outputs[i], maker++));
            }
    return OPJIT_OK;
}

opjit_status opjit_onnx_order(onnx_import *m, const onnx_node *nodes, uint32_t count, const wire_bytes *wanted,
                              uint32_t wanted_count, onnx_order *out)
{
    need w = { .nodes = nodes, .count = count };
    *out = (onnx_order){ .nodes = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1) };
    w.state = ARENA_ARRAY(m->arena, uint8_t, (size_t)count + 1);
    w.stack = ARENA_ARRAY(m->arena, uint32_t, (size_t)count + 1);
    if (w.state == NULL || w.stack == NULL || out->nodes == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(enter_makers(m, nodes, count, &out->makers));
    w.makers = out->makers;
    find_needed(&w, wanted, wanted_count);
    w.stack = ARENA_ARRAY(m->arena, uint32_t, (size_t)w.reads + 1); /* a maker may wait once for each of its readers */
    if (w.stack == NULL)
        return opjit_rt_no_memory(m->error);
    put_makers_first(&w, out);
    return m->computing == NULL ? OPJIT_OK : order_parts(m, &w, out);
}
