/* SPDX-License-Identifier: Apache-2.0 */
/* at_once.c - a Scan whose rounds do not wait for each other: the body is made once, and the rounds are one more
 * dimension in front of what differs from round to round. */
#include "frontend/onnx/ops/ops.h"

enum { NODES_MOST = 64, READS_MOST = 8 }; /* of a body, and of one of its nodes */

typedef struct scan {
    const onnx_graph *body;
    uint32_t states;
    bool differs[NODES_MOST]; /* node by node: what it makes is another value in each round */
} scan;

/* The node before `end` that makes the name; `end`: there is none. */
static uint32_t maker_of(const onnx_graph *g, uint32_t end, wire_bytes name)
{
    uint32_t n = 0;
    while (n < end && !wire_same(g->nodes[n].outputs[0], name))
        n++;
    return n;
}

/* The input of the body that has the name; their count: none has. */
static uint32_t input_of(const onnx_graph *g, wire_bytes name)
{
    uint32_t i = 0;
    while (i < g->input_count && !wire_same(g->inputs[i].name, name))
        i++;
    return i;
}

static bool differs(const scan *s, uint32_t end, wire_bytes name)
{
    const uint32_t maker = maker_of(s->body, end, name), input = input_of(s->body, name);
    return maker < end ? s->differs[maker] : input < s->body->input_count && input >= s->states;
}

/* Whether the value can have one more dimension. */
static bool has_room(const onnx_value *v)
{
    return v != NULL && v->type < ONNX_SEQUENCE && v->rank < ONNX_RANK && opjit_onnx_elements_of(v) != 0;
}

static bool has_elements(const onnx_import *m, const onnx_node *n)
{
    const onnx_call c = { .node = n };
    const onnx_attribute *const a = opjit_onnx_attribute(m, &c, "value");
    return a != NULL && a->tensor != NULL && a->tensor->elements != 0 && a->tensor->rank < ONNX_RANK;
}

/* Whether an operator with one more dimension in front of its inputs gives that of its results. */
static bool goes_by_elements(const onnx_row *row)
{
    return row != NULL && (row->make == opjit_onnx_unary || row->make == opjit_onnx_binary ||
                           row->make == opjit_onnx_variadic || row->make == opjit_onnx_compare ||
                           row->make == opjit_onnx_pow || row->make == opjit_onnx_where ||
                           row->make == opjit_onnx_sigmoid || row->make == opjit_onnx_cast_to ||
                           row->make == opjit_onnx_same);
}

static bool takes_node(const onnx_import *m, scan *s, uint32_t k)
{
    const onnx_node *const n = &s->body->nodes[k];
    const onnx_row *const row = opjit_onnx_find_row(n);
    if (row == NULL || n->input_count > READS_MOST || opjit_onnx_find(m->functions, n->op) != NULL)
        return false;
    if (row->make == opjit_onnx_constant)
        return has_elements(m, n);
    if (n->input_count == 0 || !(goes_by_elements(row) || row->make == opjit_onnx_reduce))
        return false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const wire_bytes name = n->inputs[i];
        const uint32_t maker = maker_of(s->body, s->body->node_count, name);
        const bool is_here = maker < k || input_of(s->body, name) < s->body->input_count;
        bool is_stored = false;
        for (uint32_t t = 0; t < s->body->initializer_count && !is_here; t++)
            is_stored = is_stored || wire_same(s->body->initializers[t].name, name);
        if (maker >= k && maker < s->body->node_count)
            return false;
        if (name.size == 0 || (!is_here && !is_stored && !has_room(opjit_onnx_lookup(m, name))))
            return false;
        s->differs[k] = s->differs[k] || differs(s, k, name);
        if (i != 0 && row->make == opjit_onnx_reduce && differs(s, k, name))
            return false;
    }
    return true;
}

/* Whether the body hands the state on as it is. */
static bool keeps_state(const onnx_graph *g, uint32_t i)
{
    wire_bytes name = g->outputs[i].name;
    for (uint32_t end = g->node_count, maker; (maker = maker_of(g, end, name)) < end; end = maker) {
        if (opjit_onnx_find_row(&g->nodes[maker])->make != opjit_onnx_same)
            return false;
        name = g->nodes[maker].inputs[0];
    }
    return input_of(g, name) == i;
}

static bool is_zero(const onnx_import *m, const onnx_call *c, const char *name)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    for (uint32_t i = 0; a != NULL && a->ints != NULL && i < a->count; i++)
        if (a->ints[i] != 0)
            return false;
    return true;
}

static bool takes(const onnx_import *m, const onnx_call *c, scan *s)
{
    const onnx_graph *const g = s->body;
    bool fits = g->node_count <= NODES_MOST && g->initializer_count <= NODES_MOST && !g->sparse &&
                is_zero(m, c, "scan_input_axes") && is_zero(m, c, "scan_output_axes") &&
                is_zero(m, c, "scan_input_directions") && is_zero(m, c, "scan_output_directions");
    for (uint32_t i = 0; i < c->input_count && fits; i++)
        fits = has_room(c->inputs[i]);
    for (uint32_t i = 0; fits && i < g->initializer_count; i++)
        fits = g->initializers[i].elements != 0 && g->initializers[i].rank < ONNX_RANK;
    for (uint32_t n = 0; fits && n < g->node_count; n++)
        fits = g->nodes[n].output_count == 1;
    for (uint32_t n = 0; fits && n < g->node_count; n++)
        fits = takes_node(m, s, n);
    for (uint32_t i = 0; fits && i < g->output_count; i++)
        fits = i < s->states ? keeps_state(g, i) : differs(s, g->node_count, g->outputs[i].name);
    return fits;
}

/* ReduceSum and its kin of all rounds: their axes come one later. */
static opjit_status reduce_rounds(onnx_import *m, const onnx_call *c, const onnx_call *by, onnx_value *out)
{
    onnx_value x = *by->inputs[0], *input = &x;
    uint32_t axes[ONNX_RANK], count;
    TRY(opjit_onnx_axes(m, by, "axes", 1, x.rank - 1, axes, &count));
    if (count == 0 && opjit_onnx_int(m, by, "noop_with_empty_axes", 0) != 0)
        return opjit_onnx_call_row(m, c, by->node, by->row, by->inputs, by->input_count, out);
    int64_t keep = opjit_onnx_int(m, by, "keepdims", 1), later[ONNX_RANK];
    if (x.rank == 1) { /* a scalar in each round: reduced along a dimension of its own, which goes */
        x.dims[x.rank++] = 1;
        x.tensor = opjit_onnx_reshape(m, opjit_onnx_tensor(m, by->inputs[0]), x.rank, x.dims);
        x.data = x.source = NULL;
        keep = 0;
    }
    const uint32_t all = count == 0 ? x.rank - 1 : count;
    for (uint32_t i = 0; i < all; i++)
        later[i] = 1 + (count == 0 ? i : axes[i]);
    onnx_attribute attributes[] = {
        { .name = { (const uint8_t *)"axes", 4 }, .type = ONNX_IS_INTS, .count = all, .ints = later },
        { .name = { (const uint8_t *)"keepdims", 8 }, .type = ONNX_IS_INT, .i = keep },
    };
    onnx_node node = *by->node;
    node.attributes = attributes;
    node.attribute_count = 2;
    node.input_count = 1;
    return opjit_onnx_call_row(m, c, &node, by->row, &input, 1, out);
}

/* Node k of the body, for all rounds: inputs that differ have as many dimensions behind the rounds as the input with
 * the most. */
static opjit_status make_node(onnx_import *m, const onnx_call *c, const scan *s, uint32_t k)
{
    const onnx_node *const n = &s->body->nodes[k];
    onnx_value *inputs[READS_MOST], wide[READS_MOST], *const out = ARENA_NEW(m->arena, onnx_value);
    const onnx_call by = { .node = n, .row = opjit_onnx_find_row(n), .inputs = inputs, .input_count = n->input_count };
    uint32_t most = 0;
    if (out == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < n->input_count; i++) {
        inputs[i] = opjit_onnx_lookup(m, n->inputs[i]);
        const uint32_t rank = inputs[i]->rank - differs(s, k, n->inputs[i]);
        most = rank > most ? rank : most;
    }
    m->nodes++;
    if (s->differs[k] && by.row->make == opjit_onnx_reduce) {
        TRY(reduce_rounds(m, c, &by, out));
        out->made = NULL;
        return opjit_onnx_enter(m, m->scope, n->outputs[0], out);
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        const uint32_t rank = inputs[i]->rank, more = most + 1 - rank;
        if (!differs(s, k, n->inputs[i]) || more == 0)
            continue;
        wide[i] = (onnx_value){ .type = inputs[i]->type, .rank = most + 1, .dims = { inputs[i]->dims[0] } };
        for (uint32_t d = 1; d <= most; d++)
            wide[i].dims[d] = d <= more ? 1 : inputs[i]->dims[d - more];
        wide[i].tensor = opjit_onnx_reshape(m, opjit_onnx_tensor(m, inputs[i]), wide[i].rank, wide[i].dims);
        inputs[i] = &wide[i];
    }
    TRY(opjit_onnx_call_row(m, c, n, by.row, inputs, n->input_count, out));
    out->made = NULL; /* its inputs are of this function */
    return opjit_onnx_enter(m, m->scope, n->outputs[0], out);
}

static opjit_status make_rounds(onnx_import *m, onnx_call *c, const scan *s)
{
    TRY(m->error->status);
    TRY(opjit_onnx_initializers(m, s->body));
    for (uint32_t i = 0; i < c->input_count; i++) {
        onnx_value v = *c->inputs[i];
        v.made = NULL;
        TRY(opjit_onnx_define(m, s->body->inputs[i].name, &v));
    }
    for (uint32_t k = 0; k < s->body->node_count; k++)
        if (make_node(m, c, s, k) != OPJIT_OK || opjit_onnx_status(m) != OPJIT_OK) {
            opjit_onnx_prefix_node(m, &s->body->nodes[k]);
            return m->error->status;
        }
    for (uint32_t i = 0; i < c->output_count; i++)
        if (i < s->states)
            TRY(opjit_onnx_give_value(m, c, i, c->inputs[i]));
        else
            TRY(opjit_onnx_give_value(m, c, i, opjit_onnx_lookup(m, s->body->outputs[i].name)));
    return OPJIT_OK;
}

opjit_status opjit_onnx_scan_at_once(onnx_import *m, onnx_call *c, const onnx_graph *body, uint32_t states, bool *done)
{
    scan s = { .body = body, .states = states };
    *done = takes(m, c, &s);
    if (!*done)
        return OPJIT_OK;
    onnx_scope *const outer = m->scope;
    m->scope = opjit_onnx_scope(m, outer, body->node_count + body->initializer_count + c->input_count);
    const opjit_status status = make_rounds(m, c, &s);
    m->scope = outer;
    return status;
}
