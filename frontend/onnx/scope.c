/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c - names of values: a table for each graph, function and branch. */
#include "frontend/onnx/call.h"

struct onnx_name {
    wire_bytes text;
    void *what; /* NULL: free */
};

onnx_scope *opjit_onnx_scope(onnx_import *m, onnx_scope *parent, uint64_t count)
{
    onnx_scope *const s = ARENA_NEW(m->arena, onnx_scope);
    uint64_t capacity = 32;
    while (capacity < 2 * count && capacity < UINT32_MAX / 2)
        capacity *= 2;
    if (s != NULL)
        s->names = ARENA_ARRAY(m->arena, struct onnx_name, (size_t)capacity);
    if (s == NULL || s->names == NULL) {
        opjit_rt_no_memory(m->error);
        return NULL;
    }
    s->parent = parent;
    s->capacity = (uint32_t)capacity;
    return s;
}

/* Where the name is, or where it would be. */
static struct onnx_name *place_of(const onnx_scope *s, wire_bytes name)
{
    uint32_t at = (uint32_t)opjit_rt_hash64(name.data, (size_t)name.size) & (s->capacity - 1);
    while (s->names[at].what != NULL && !wire_same(s->names[at].text, name))
        at = (at + 1) & (s->capacity - 1);
    return &s->names[at];
}

static opjit_status grow(onnx_import *m, onnx_scope *s)
{
    const onnx_scope old = *s;
    s->capacity = 2 * old.capacity;
    s->names = ARENA_ARRAY(m->arena, struct onnx_name, s->capacity);
    if (s->names == NULL) {
        *s = old;
        return opjit_rt_no_memory(m->error);
    }
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.names[i].what != NULL)
            *place_of(s, old.names[i].text) = old.names[i];
    return OPJIT_OK;
}

opjit_status opjit_onnx_enter(onnx_import *m, onnx_scope *s, wire_bytes name, void *what)
{
    if (2 * s->count >= s->capacity)
        TRY(grow(m, s));
    struct onnx_name *const place = place_of(s, name);
    s->count += place->what == NULL;
    *place = (struct onnx_name){ name, what };
    return OPJIT_OK;
}

void *opjit_onnx_find(const onnx_scope *s, wire_bytes name)
{
    return place_of(s, name)->what;
}

opjit_status opjit_onnx_define(onnx_import *m, wire_bytes name, const onnx_value *v)
{
    onnx_value *const copy = opjit_rt_arena_copy(m->arena, v, 1, sizeof *v);
    return copy == NULL ? opjit_rt_no_memory(m->error) : opjit_onnx_enter(m, m->scope, name, copy);
}

onnx_value *opjit_onnx_lookup(const onnx_import *m, wire_bytes name)
{
    onnx_value *found = NULL;
    for (const onnx_scope *s = m->scope; s != NULL && found == NULL; s = s->parent)
        found = opjit_onnx_find(s, name);
    return found;
}

opjit_status opjit_onnx_initializers(onnx_import *m, const onnx_graph *g)
{
    if (g->sparse)
        return opjit_rt_refuse(m->error, OPJIT_UNSUPPORTED, "{graph}: {sparse_initializer}: not taken");
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onnx_tensor *const t = &g->initializers[i];
        onnx_value v = { .type = opjit_onnx_read_type(t->type), .rank = t->rank, .source = t };
        memcpy(v.dims, t->dims, sizeof v.dims);
        TRY(opjit_onnx_define(m, t->name, &v));
    }
    return OPJIT_OK;
}
