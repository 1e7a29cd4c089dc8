/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - If: the branch that a known condition takes; of an unknown one both, and a choice between them.  Loop and
 * Scan, whose number of rounds is known, as their rounds one after the other, unless at_once.c makes them at once. */
#include "frontend/onnx/compute.h"
#include "frontend/onnx/ops/ops.h"

/* The graph of an attribute, with these inputs and at least these outputs; NULL: it was refused. */
static const onnx_graph *graph_of(onnx_import *m, const onnx_call *c, const char *name, uint32_t inputs,
                                  uint32_t outputs)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    if (a != NULL && a->graph != NULL && a->graph->input_count == inputs && a->graph->output_count >= outputs)
        return a->graph;
    opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s is no graph with %u inputs and %u outputs", name,
                      inputs, outputs);
    return NULL;
}

/* Imports the graph in a scope of its own, with these values of its inputs; its first outputs are in out. */
static opjit_status run_graph(onnx_import *m, const onnx_call *c, const onnx_graph *g, const char *name,
                              const onnx_value *in, onnx_value *out, uint32_t out_count)
{
    onnx_scope *const scope = m->scope;
    wire_bytes *const wanted = ARENA_ARRAY(m->arena, wire_bytes, (size_t)g->output_count + 1);
    if (wanted == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < g->output_count; i++)
        wanted[i] = g->outputs[i].name;
    m->scope = opjit_onnx_scope(m, scope, 0);
    opjit_status status = m->error->status;
    if (status == OPJIT_OK)
        status = opjit_onnx_initializers(m, g);
    for (uint32_t i = 0; i < g->input_count && status == OPJIT_OK; i++) {
        onnx_value v = in[i];
        v.made = NULL; /* how many read it, is known where it was made */
        status = opjit_onnx_define(m, g->inputs[i].name, &v);
    }
    if (status == OPJIT_OK)
        status = opjit_onnx_nodes(m, g->nodes, g->node_count, wanted, g->output_count);
    for (uint32_t i = 0; i < out_count && status == OPJIT_OK; i++) {
        const onnx_value *const v = opjit_onnx_lookup(m, wanted[i]);
        if (v == NULL)
            status = opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                       "output \"" ONNX_NAME "\" of %s is made by no node", ONNX_SHOW(wanted[i]),
                                       name);
        else
            out[i] = *v;
    }
    m->scope = scope;
    return status;
}

static opjit_status run_branch(onnx_import *m, const onnx_call *c, const char *name, onnx_value *out)
{
    const onnx_graph *const g = graph_of(m, c, name, 0, c->output_count);
    return g == NULL ? m->error->status : run_graph(m, c, g, name, NULL, out, c->output_count);
}

/* A branch that may never be taken: where it is refused, what would spare it is the condition's value. */
static opjit_status run_either(onnx_import *m, const onnx_call *c, const char *name, onnx_value *out)
{
    if (run_branch(m, c, name, out) != OPJIT_OK)
        opjit_rt_error_prefix(m->error, "input 0 (\"" ONNX_NAME "\") is known at run time only, so both branches are "
                              "compiled: %s", ONNX_SHOW(c->node->inputs[0]), name);
    return m->error->status;
}

opjit_status opjit_onnx_if(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    if (c->inputs[0]->type != ONNX_BOOL || opjit_onnx_elements_of(c->inputs[0]) != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a condition that is not one truth value");
    TRY(onnx_compute(m, c->inputs[0]));
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
    TRY(run_either(m, c, "then_branch", ours));
    TRY(run_either(m, c, "else_branch", others));
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (ours[i].type != others[i].type || ours[i].rank != others[i].rank ||
            memcmp(ours[i].dims, others[i].dims, ours[i].rank * sizeof *ours[i].dims) != 0)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                     "input 0 (\"" ONNX_NAME "\") is known at run time only, and the branches give "
                                     "output %u in different sizes or types", ONNX_SHOW(c->node->inputs[0]), i);
        const opjit_tensor y = opjit_graph_where(m->graph, onnx_tensor_of(m, c, 0), opjit_onnx_tensor(m, &ours[i]),
                                                 opjit_onnx_tensor(m, &others[i]));
        TRY(opjit_onnx_give_as(m, c, i, y, ours[i].type, ours[i].rank, ours[i].dims));
    }
    return OPJIT_OK;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* Values that rounds give, in the order of the rounds. */
typedef struct series {
    onnx_value *values;
    uint64_t count, capacity;
} series;

static opjit_status append(onnx_import *m, series *s, const onnx_value *v)
{
    if (s->count == s->capacity) {
        const uint64_t capacity = s->capacity == 0 ? 16 : 2 * s->capacity;
        onnx_value *const values = ARENA_ARRAY(m->arena, onnx_value, (size_t)capacity);
        if (values == NULL)
            return opjit_rt_no_memory(m->error);
        if (s->count != 0)
            memcpy(values, s->values, (size_t)s->count * sizeof *values);
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->count++] = *v;
    return OPJIT_OK;
}

/* The values one after the other along a new axis, as output i; of constants alone a constant. */
static opjit_status give_series(onnx_import *m, onnx_call *c, uint32_t i, series *s, uint32_t axis, bool backward)
{
    if (!onnx_wants(c, i))
        return OPJIT_OK;
    if (s->count == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "output %u of no rounds: a tensor without elements", i);
    const onnx_value *const first = &s->values[0];
    uint64_t dims[ONNX_RANK];
    if (first->rank >= ONNX_RANK || axis > first->rank)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "output %u of %u dimensions", i, first->rank + 1);
    bool constant = axis == 0 && !backward;
    for (uint64_t k = 0; k < s->count; k++) {
        if (s->values[k].rank != first->rank || s->values[k].type != first->type ||
            memcmp(s->values[k].dims, first->dims, first->rank * sizeof *dims) != 0)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "output %u has other sizes or types in another round", i);
        constant = constant && onnx_is_constant(&s->values[k]);
    }
    for (uint32_t d = 0; d <= first->rank; d++)
        dims[d] = d == axis ? 1 : first->dims[d - (d > axis)];
    const uint64_t bytes = opjit_onnx_elements_of(first) * opjit_rt_dtype_size(opjit_onnx_dtype(first->type));
    if (constant && bytes <= ONNX_NUMBERS) { /* few, as shapes are */
        uint8_t *const data = opjit_onnx_memory(m, bytes * s->count);
        for (uint64_t k = 0; k < s->count && data != NULL; k++) {
            const void *const one = opjit_onnx_data(m, &s->values[k]);
            if (one == NULL)
                return m->error->status;
            memcpy(data + k * bytes, one, (size_t)bytes);
        }
        dims[axis] = s->count;
        return opjit_onnx_give_data(m, c, i, first->type, first->rank + 1, dims, data);
    }
    opjit_tensor *const parts = ARENA_ARRAY(m->arena, opjit_tensor, (size_t)s->count);
    if (parts == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint64_t k = 0; k < s->count; k++)
        parts[backward ? s->count - 1 - k : k] =
            opjit_onnx_reshape(m, opjit_onnx_tensor(m, &s->values[k]), first->rank + 1, dims);
    const opjit_tensor y = opjit_onnx_join(m, parts, (uint32_t)s->count, axis);
    return opjit_onnx_give(m, c, i, y, first->type, first->rank + 1);
}

/* A round counts as nodes of its own, so that rounds without nodes end, too. */
static opjit_status count_round(onnx_import *m, const onnx_call *c)
{
    enum { OWN = 16 };
    m->nodes += OWN;
    return m->nodes > ONNX_NODES
               ? opjit_onnx_refuse(m, c, OPJIT_LIMIT, "more than %u nodes, with those of all rounds", ONNX_NODES)
               : OPJIT_OK;
}

/* Whether a condition, which has to be known, holds; NULL: it does. */
static opjit_status read_condition(onnx_import *m, const onnx_call *c, onnx_value *v, bool *out)
{
    *out = true;
    if (v == NULL)
        return OPJIT_OK;
    TRY(onnx_compute(m, v));
    const uint8_t *const data = onnx_is_constant(v) ? opjit_onnx_data(m, v) : NULL;
    TRY(m->error->status);
    if (data == NULL || opjit_onnx_elements_of(v) != 1 || v->type != ONNX_BOOL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a loop whose length is known at run time only");
    *out = *data != 0;
    return OPJIT_OK;
}

/* Inputs: most rounds, condition, states; the body's: round, condition, states; its outputs: condition, states, and
 * what becomes a series. */
opjit_status opjit_onnx_loop(onnx_import *m, onnx_call *c)
{
    static const uint8_t yes = 1;
    int64_t most = INT64_MAX;
    bool goes_on = true;
    const uint32_t states = c->input_count < 2 ? 0 : c->input_count - 2;
    TRY(opjit_onnx_input_int(m, c, 0, &most));
    TRY(read_condition(m, c, onnx_input(c, 1), &goes_on));
    const onnx_graph *const body = graph_of(m, c, "body", states + 2, c->output_count + 1);
    if (body == NULL)
        return m->error->status;
    if (body->output_count < states + 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u states, but %u outputs of the body", states,
                                 body->output_count);
    const uint32_t scans = body->output_count - 1 - states;
    onnx_value *const in = ARENA_ARRAY(m->arena, onnx_value, (size_t)states + 2);
    onnx_value *const out = ARENA_ARRAY(m->arena, onnx_value, (size_t)body->output_count);
    series *const all = ARENA_ARRAY(m->arena, series, (size_t)scans + 1);
    if (in == NULL || out == NULL || all == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < states; i++) {
        if (onnx_input(c, 2 + i) == NULL)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "input %u is missing", 2 + i);
        in[2 + i] = *c->inputs[2 + i];
    }
    for (int64_t round = 0; round < most && goes_on; round++) {
        int64_t *const number = opjit_rt_arena_copy(m->arena, &round, 1, sizeof round);
        if (number == NULL)
            return opjit_rt_no_memory(m->error);
        TRY(count_round(m, c));
        in[0] = (onnx_value){ .type = ONNX_INT64, .data = number };
        in[1] = (onnx_value){ .type = ONNX_BOOL, .data = &yes };
        onnx_given *const before = round == 0 ? NULL : onnx_given_last(m);
        TRY(run_graph(m, c, body, "body", in, out, body->output_count));
        opjit_onnx_end_round(m, before, onnx_given_last(m), 1, states);
        TRY(read_condition(m, c, &out[0], &goes_on));
        for (uint32_t i = 0; i < states; i++)
            in[2 + i] = out[1 + i];
        for (uint32_t i = 0; i < scans; i++)
            TRY(append(m, &all[i], &out[1 + states + i]));
    }
    for (uint32_t i = 0; i < states; i++)
        TRY(opjit_onnx_give_value(m, c, i, &in[2 + i]));
    for (uint32_t i = 0; i < scans; i++)
        TRY(give_series(m, c, states + i, &all[i], 0, false));
    return OPJIT_OK;
}

/* Number i of an attribute's; 0: there is none. */
static int64_t number_of(const onnx_import *m, const onnx_call *c, const char *name, uint32_t i)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, name);
    return a == NULL || a->ints == NULL || i >= a->count ? 0 : a->ints[i];
}

/* Slice `at` of the value along the axis, which goes. */
static opjit_status take_slice(onnx_import *m, onnx_value *v, uint32_t axis, uint64_t at, onnx_value *out)
{
    uint32_t begin[ONNX_RANK] = { 0 }, sizes[ONNX_RANK];
    *out = (onnx_value){ .type = v->type, .rank = v->rank - 1 };
    for (uint32_t d = 0, k = 0; d < v->rank; d++) {
        sizes[d] = d == axis ? 1 : (uint32_t)v->dims[d];
        if (d != axis)
            out->dims[k++] = v->dims[d];
    }
    begin[axis] = (uint32_t)at;
    const opjit_tensor t = opjit_graph_slice(m->graph, opjit_onnx_tensor(m, v), begin, sizes, NULL);
    out->tensor = opjit_onnx_reshape(m, t, out->rank, out->dims);
    return opjit_onnx_status(m);
}

/* Along which axis each input behind the states is read, and how many slices all of these have. */
static opjit_status count_slices(onnx_import *m, const onnx_call *c, uint32_t states, uint32_t *axes, uint64_t *rounds)
{
    for (uint32_t i = 0; i < c->input_count - states; i++) {
        const onnx_value *const v = c->inputs[states + i];
        TRY(opjit_onnx_axis(m, c, number_of(m, c, "scan_input_axes", i), v->rank, &axes[i]));
        if (i != 0 && v->dims[axes[i]] != *rounds)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %llu slices, others %llu", states + i,
                                     (unsigned long long)v->dims[axes[i]], (unsigned long long)*rounds);
        *rounds = v->dims[axes[i]];
    }
    return OPJIT_OK;
}

/* Inputs: states, then what is read a slice in each round; outputs likewise. */
opjit_status opjit_onnx_scan(onnx_import *m, onnx_call *c)
{
    const int64_t read = opjit_onnx_int(m, c, "num_scan_inputs", 0);
    if (m->opset < 9)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "Scan of opset 8, which has a batch, is not taken");
    if (read < 1 || read > c->input_count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_scan_inputs: %lld, must be 1 to %u",
                                 (long long)read, c->input_count);
    TRY(opjit_onnx_need(m, c, c->input_count));
    const uint32_t scanned = (uint32_t)read, states = c->input_count - scanned;
    const onnx_graph *const body = graph_of(m, c, "body", c->input_count, c->output_count);
    if (body == NULL)
        return m->error->status;
    if (body->output_count < states)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u states, but %u outputs of the body", states,
                                 body->output_count);
    const uint32_t scans = body->output_count - states;
    onnx_value *const in = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->input_count);
    onnx_value *const out = ARENA_ARRAY(m->arena, onnx_value, (size_t)body->output_count + 1);
    series *const all = ARENA_ARRAY(m->arena, series, (size_t)scans + 1);
    uint32_t *const axes = ARENA_ARRAY(m->arena, uint32_t, (size_t)scanned);
    uint64_t rounds = 0;
    if (in == NULL || out == NULL || all == NULL || axes == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < states; i++)
        in[i] = *c->inputs[i];
    TRY(count_slices(m, c, states, axes, &rounds));
    bool done;
    TRY(opjit_onnx_scan_at_once(m, c, body, states, &done));
    if (done)
        return OPJIT_OK;
    for (uint64_t round = 0; round < rounds; round++) {
        TRY(count_round(m, c));
        for (uint32_t i = 0; i < scanned; i++) {
            const bool backward = number_of(m, c, "scan_input_directions", i) != 0;
            TRY(take_slice(m, c->inputs[states + i], axes[i], backward ? rounds - 1 - round : round, &in[states + i]));
        }
        onnx_given *const before = round == 0 ? NULL : onnx_given_last(m);
        TRY(run_graph(m, c, body, "body", in, out, body->output_count));
        opjit_onnx_end_round(m, before, onnx_given_last(m), 0, states);
        for (uint32_t i = 0; i < states; i++)
            in[i] = out[i];
        for (uint32_t i = 0; i < scans; i++)
            TRY(append(m, &all[i], &out[states + i]));
    }
    for (uint32_t i = 0; i < states; i++)
        TRY(opjit_onnx_give_value(m, c, i, &in[i]));
    for (uint32_t i = 0; i < scans; i++) {
        uint32_t axis = 0;
        if (all[i].count != 0)
            TRY(opjit_onnx_axis(m, c, number_of(m, c, "scan_output_axes", i), all[i].values[0].rank + 1, &axis));
        TRY(give_series(m, c, states + i, &all[i], axis, number_of(m, c, "scan_output_directions", i) != 0));
    }
    return OPJIT_OK;
}
