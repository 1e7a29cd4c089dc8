/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - a model whose values are computed while it is read (compute.c) as graphs one after the other.
 *
 * A part ends where a value has to be known.  Its kernel gives that value, and of all else that the part made what
 * later nodes read the elements of; these tensors lie in memory, and are inputs of the parts that read them.  So no
 * node is compiled or computed twice, however many values there are. */
#include "frontend/onnx/compute.h"

/* An array of the arena with room for one more; NULL: no memory, which is the error. */
static void *with_room(onnx_import *m, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    const uint32_t larger = *capacity == 0 ? 64 : 2 * *capacity;
    void *const room = opjit_rt_arena_allocate(m->arena, larger, size);
    if (room == NULL) {
        opjit_rt_no_memory(m->error);
        return NULL;
    }
    if (count != 0)
        memcpy(room, items, count * size);
    *capacity = larger;
    return room;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static opjit_status add_part(onnx_import *m)
{
    onnx_part *const p = ARENA_NEW(m->arena, onnx_part);
    if (p == NULL)
        return opjit_rt_no_memory(m->error);
    *p = (onnx_part){ .before = m->computing->part, .graph = m->graph, .mark = opjit_fe_built_mark(m->graph) };
    m->computing->part = p;
    return OPJIT_OK;
}

opjit_status opjit_onnx_first_part(onnx_import *m)
{
    return m->computing == NULL ? OPJIT_OK : add_part(m);
}

bool opjit_onnx_is_cut(const onnx_import *m)
{
    return m->computing != NULL && m->computing->part->is_cut;
}

opjit_status opjit_onnx_next_part(onnx_import *m)
{
    onnx_computing *const w = m->computing;
    opjit_graph *next;
    if (!opjit_onnx_is_cut(m))
        return OPJIT_OK;
    TRY(opjit_graph_create(m->context, &next, m->error));
    opjit_graph *const before = m->graph;
    m->graph = next;
    if (add_part(m) != OPJIT_OK) {
        opjit_graph_destroy(next);
        m->graph = before;
        return m->error->status;
    }
    for (uint32_t i = 0; i < w->input_count; i++)
        (void)opjit_graph_input(next, w->inputs[i].name, w->inputs[i].type.dtype, w->inputs[i].type.rank,
                                w->inputs[i].type.sizes);
    w->watched_count = 0;
    return opjit_graph_status(next, m->error);
}

opjit_status opjit_onnx_list_carried(onnx_computing *w, const bool *is_read, uint32_t count, rt_arena *arena,
                                     opjit_error *error)
{
    w->carried = ARENA_ARRAY(arena, opjit_binding, (size_t)count + 1);
    if (w->carried == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count; i++)
        if (is_read[i]) {
            onnx_carried *const c = w->part->inputs[i];
            c->is_kept = true;
            w->carried[w->carried_count++] = (opjit_binding){ c->data, c->bytes };
        }
    return OPJIT_OK;
}

void opjit_onnx_close_parts(onnx_computing *w, const opjit_graph *graph)
{
    for (const onnx_step *s = w->first; s != NULL; s = s->next)
        opjit_kernel_release(s->kernel);
    for (const onnx_part *p = w->part; p != NULL; p = p->before)
        if (p->graph != graph)
            opjit_graph_destroy(p->graph);
    opjit_onnx_free_blocks(w);
}

/* --- what they make ----------------------------------------------------------------------------------------------- */

/* The part that made a tensor. */
static onnx_part *part_of(const onnx_computing *w, opjit_tensor t)
{
    onnx_part *p = w->part;
    while (p != NULL && p->mark != t.graph)
        p = p->before;
    return p;
}

/* Where the part's tensor is, or was; NULL: it was not put into memory. */
static onnx_carried *find_carried(const onnx_part *p, opjit_tensor t)
{
    return t.index < p->carried_count ? p->carried[t.index] : NULL;
}

opjit_status opjit_onnx_watch(onnx_import *m, const onnx_value *v, onnx_uses *uses)
{
    onnx_computing *const w = m->computing;
    if (w == NULL)
        return OPJIT_OK;
    onnx_watched *const room = with_room(m, w->watched, w->watched_count, &w->watched_capacity, sizeof *room);
    if (room == NULL)
        return m->error->status;
    /* Behind a cut, what a node with a graph gives may be in memory already. */
    const onnx_part *const p = w->part->is_cut && v->type < ONNX_SEQUENCE ? part_of(w, v->tensor) : NULL;
    if (p != NULL && find_carried(p, v->tensor) != NULL)
        opjit_onnx_hold(find_carried(p, v->tensor), uses);
    w->watched = room;
    w->watched[w->watched_count++] = (onnx_watched){ v, uses };
    return OPJIT_OK;
}

static opjit_status set_carried(onnx_import *m, onnx_part *p, opjit_tensor t, onnx_carried *c)
{
    if (t.index >= p->carried_count) {
        const uint32_t count = 2 * t.index + 64;
        onnx_carried **const larger = ARENA_ARRAY(m->arena, onnx_carried *, (size_t)count);
        if (larger == NULL)
            return opjit_rt_no_memory(m->error);
        if (p->carried_count != 0)
            memcpy(larger, p->carried, p->carried_count * sizeof *larger);
        p->carried = larger;
        p->carried_count = count;
    }
    p->carried[t.index] = c;
    return OPJIT_OK;
}

/* Outputs of a part that are to be computed. */
typedef struct wanted {
    onnx_carried **items;
    opjit_tensor *tensors;
    uint32_t count, room, room_tensors;
} wanted;

/* The tensor becomes an output of the part, if it is one that the part makes and that is not in memory. */
static opjit_status want(onnx_import *m, onnx_part *p, opjit_tensor t, wanted *out)
{
    if (t.index <= m->computing->input_count || t.graph != p->mark || find_carried(p, t) != NULL)
        return OPJIT_OK;
    onnx_carried *const c = ARENA_NEW(m->arena, onnx_carried);
    if (c == NULL)
        return opjit_rt_no_memory(m->error);
    onnx_carried **const items = with_room(m, out->items, out->count, &out->room, sizeof *items);
    opjit_tensor *const tensors = with_room(m, out->tensors, out->count, &out->room_tensors, sizeof *tensors);
    if (items == NULL || tensors == NULL)
        return m->error->status;
    out->items = items;
    out->tensors = tensors;
    out->items[out->count] = c;
    out->tensors[out->count++] = t;
    (void)opjit_graph_get_type(p->graph, t, &c->type);
    c->bytes = opjit_rt_dtype_size(c->type.dtype);
    for (uint32_t d = 0; d < c->type.rank; d++)
        c->bytes *= c->type.sizes[d];
    c->bytes = align_up(c->bytes, 4);
    TRY(opjit_onnx_prepare(m, c));
    TRY(set_carried(m, p, t, c));
    return opjit_graph_output(p->graph, NULL, t) == OPJIT_OK ? OPJIT_OK : opjit_graph_status(p->graph, m->error);
}

/* Likewise a value that is to be read; uses NULL: nobody knows how often. */
static opjit_status want_value(onnx_import *m, onnx_part *p, const onnx_value *v, onnx_uses *uses, wanted *out)
{
    if (v->type == ONNX_SEQUENCE) { /* what is in a list is read when the list is, which may become another */
        for (uint64_t i = 0; v->sequence != NULL && i < v->sequence->count; i++)
            TRY(want_value(m, p, &v->sequence->values[i], NULL, out));
        return OPJIT_OK;
    }
    if (v->type > ONNX_SEQUENCE || onnx_is_constant(v))
        return OPJIT_OK;
    TRY(want(m, p, v->tensor, out));
    const onnx_part *const by = part_of(m->computing, v->tensor);
    onnx_carried *const c = by == NULL ? NULL : find_carried(by, v->tensor);
    if (c != NULL && uses != NULL)
        opjit_onnx_hold(c, uses);
    else if (c != NULL)
        c->is_kept = true;
    return OPJIT_OK;
}

/* Binds the inputs that the part's nodes read, and the outputs; *known is false where an input is not. */
static opjit_status bind(onnx_import *m, const onnx_part *p, const wanted *out, onnx_step *s, bool *known)
{
    const onnx_computing *const w = m->computing;
    bool *is_read;
    uint32_t count;
    *known = true;
    TRY(opjit_onnx_find_read(p->graph, m->arena, &is_read, &count, m->error));
    s->bindings = ARENA_ARRAY(m->arena, opjit_binding, (size_t)count + out->count);
    s->carried = ARENA_ARRAY(m->arena, onnx_carried *, (size_t)count + out->count);
    if (s->bindings == NULL || s->carried == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_read[i])
            continue;
        if (i >= w->input_count) {
            s->carried[s->binding_count] = p->inputs[i - w->input_count];
            s->bindings[s->binding_count++].bytes = p->inputs[i - w->input_count]->bytes;
            continue;
        }
        onnx_brought *const in = &w->inputs[i];
        const uint64_t bytes = align_up(in->bytes, 4);
        *known = *known && in->value != NULL;
        if (in->copy == NULL && in->value != NULL)
            in->copy = opjit_onnx_memory(m, bytes);
        TRY(m->error->status);
        s->bindings[s->binding_count++] = (opjit_binding){ in->copy, bytes };
    }
    s->input_count = s->binding_count;
    for (uint32_t i = 0; i < out->count; i++) {
        s->carried[s->binding_count] = out->items[i];
        s->bindings[s->binding_count++].bytes = out->items[i]->bytes;
    }
    return OPJIT_OK;
}

/* What the part's kernel reads is in memory: the steps before are called again if some of it was over. */
static opjit_status recall_inputs(onnx_computing *w, const onnx_step *s, opjit_error *error)
{
    bool is_over = false;
    for (uint32_t i = 0; i < s->input_count; i++)
        if (s->carried[i] != NULL && s->carried[i]->data == NULL)
            s->carried[i]->is_kept = is_over = true;
    return is_over ? opjit_onnx_call_steps(w, error) : OPJIT_OK;
}

/* Compiles the part's kernel of the graph's outputs, and calls it. */
static opjit_status run_part(onnx_import *m, const onnx_part *p, onnx_step *s)
{
    onnx_computing *const w = m->computing;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    if (w->options != NULL)
        TRY(opjit_fe_options_copy(w->options, &options, m->error));
    options.struct_size = sizeof options;
    options.flags |= OPJIT_COMPILE_BORROW_CONSTANTS;
    TRY(recall_inputs(w, s, m->error));
    TRY(opjit_graph_compile(p->graph, &options, &s->kernel, m->error));
    if (w->last == NULL)
        w->first = s;
    else
        w->last->next = s;
    w->last = s;
    opjit_onnx_copy_inputs(w);
    return opjit_onnx_call_step(w, s, m->error);
}

/* Puts a tensor of the part into memory, and where the part is the last one, all that later nodes read. */
static opjit_status end_part(onnx_import *m, onnx_part *p, opjit_tensor t, bool *known)
{
    onnx_computing *const w = m->computing;
    onnx_step *const s = ARENA_NEW(m->arena, onnx_step);
    wanted out = { 0 };
    if (s == NULL)
        return opjit_rt_no_memory(m->error);
    opjit_status status = want(m, p, t, &out);
    for (uint32_t i = 0; i < w->watched_count && p == w->part && !p->is_cut && status == OPJIT_OK; i++)
        if (w->watched[i].uses->count != 0)
            status = want_value(m, p, w->watched[i].value, w->watched[i].uses, &out);
    if (status == OPJIT_OK)
        status = bind(m, p, &out, s, known);
    if (status == OPJIT_OK && *known)
        status = run_part(m, p, s);
    for (uint32_t i = 0; i < out.count && (status != OPJIT_OK || !*known); i++)
        p->carried[out.tensors[i].index] = NULL;
    opjit_fe_built_drop_outputs(p->graph);
    if (status == OPJIT_OK && *known && p == w->part && !p->is_cut) {
        p->is_cut = true;
        opjit_onnx_list_over(w, s);
        opjit_onnx_end_step(w, s);
    }
    return status;
}

opjit_status opjit_onnx_in_memory(onnx_import *m, const onnx_value *v, onnx_carried **out, bool *known)
{
    onnx_computing *const w = m->computing;
    onnx_part *const p = part_of(w, v->tensor);
    *out = NULL;
    *known = true;
    if (p == NULL)
        return opjit_rt_refuse(m->error, OPJIT_INTERNAL, "{!values}a value of no part of the model");
    if (v->tensor.index <= w->input_count)
        return OPJIT_OK;
    if (find_carried(p, v->tensor) == NULL)
        TRY(end_part(m, p, v->tensor, known));
    *out = *known ? find_carried(p, v->tensor) : NULL;
    if (*out == NULL || (*out)->data != NULL)
        return OPJIT_OK;
    (*out)->is_kept = true; /* it was over too soon */
    return opjit_onnx_call_steps(w, m->error);
}

opjit_tensor opjit_onnx_carry(onnx_import *m, onnx_value *v)
{
    const opjit_tensor null = { 0, 0 };
    onnx_part *const p = m->computing->part;
    onnx_carried *c;
    bool known;
    if (v->tensor.index <= m->computing->input_count) {
        v->tensor.graph = p->mark;
        return v->tensor;
    }
    if (opjit_onnx_in_memory(m, v, &c, &known) != OPJIT_OK)
        return null;
    if (c == NULL) {
        opjit_rt_refuse(m->error, OPJIT_INTERNAL, "{!values}a value that can't be computed");
        return null;
    }
    if (c->input.graph != p->mark) {
        onnx_carried **const room = with_room(m, p->inputs, p->input_count, &p->input_capacity, sizeof *room);
        if (room == NULL)
            return null;
        p->inputs = room;
        p->inputs[p->input_count++] = c;
        c->input = opjit_graph_input(m->graph, NULL, c->type.dtype, c->type.rank, c->type.sizes);
        if (opjit_graph_status(m->graph, m->error) != OPJIT_OK || set_carried(m, p, c->input, c) != OPJIT_OK)
            return null;
    }
    v->tensor = c->input;
    return v->tensor;
}
