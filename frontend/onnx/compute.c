/* SPDX-License-Identifier: Apache-2.0 */
/* compute.c - values that have to be known while the model is read, but depend on what a call brings: how long a
 * predicted sound is, which boxes are left, whether a loop goes on.  Where the call's inputs are given
 * (OPJIT_MODEL_INPUT_OF_CALL), the graph that there is so far becomes a kernel of that one value, which is called at
 * once.  The value is a constant from then on: what it alone depends on is no part of the model's kernel. */
#include "frontend/onnx/compute.h"

enum { COMPUTED_MOST = 64 }; /* values of a model: each takes the time of compiling what it depends on */

void opjit_onnx_bring(onnx_import *m, const opjit_model_input *given)
{
    onnx_computing *const w = m->computing;
    if (w != NULL)
        w->inputs[w->input_count++] = given == NULL ? (onnx_brought){ NULL, NULL, 0 }
                                                    : (onnx_brought){ given->value, NULL, given->bytes };
}

opjit_status opjit_onnx_find_read(opjit_graph *graph, rt_arena *arena, bool **out, uint32_t *out_count,
                                  opjit_error *error)
{
    const DML_GRAPH_DESC *desc;
    TRY(opjit_graph_get_desc(graph, &desc, error));
    *out_count = desc->InputCount;
    *out = ARENA_ARRAY(arena, bool, (size_t)desc->InputCount + 1);
    if (*out == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < desc->InputEdgeCount; i++)
        (*out)[((const DML_INPUT_GRAPH_EDGE_DESC *)desc->InputEdges[i].Desc)->GraphInputIndex] = true;
    return OPJIT_OK;
}

/* The inputs' elements to where the kernels read them. */
static void copy_inputs(const onnx_computing *w)
{
    for (uint32_t i = 0; i < w->input_count; i++)
        if (w->inputs[i].copy != NULL)
            memcpy(w->inputs[i].copy, w->inputs[i].value, (size_t)w->inputs[i].bytes);
}

/* Binds the inputs that the graph's nodes read (a folded node's graph has none); *known is false where one of them is
 * not. */
static opjit_status bind_inputs(onnx_import *m, onnx_computed *c, bool *known)
{
    const onnx_computing *const w = m->computing;
    bool *is_read;
    uint32_t count;
    *known = true;
    TRY(opjit_onnx_find_read(m->graph, m->arena, &is_read, &count, m->error));
    c->bindings = ARENA_ARRAY(m->arena, opjit_binding, (size_t)w->input_count + 1);
    if (c->bindings == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0; i < count && i < w->input_count; i++) {
        onnx_brought *const in = &w->inputs[i];
        if (!is_read[i])
            continue;
        const uint64_t bytes = align_up(in->bytes, 4);
        if (in->value == NULL)
            *known = false;
        if (in->copy == NULL && in->value != NULL)
            in->copy = opjit_onnx_memory(m, bytes);
        TRY(m->error->status);
        c->bindings[c->binding_count++] = (opjit_binding){ in->copy, bytes };
    }
    return OPJIT_OK;
}

static opjit_status call(const onnx_computed *c, opjit_error *error)
{
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = c->bindings;
    call.binding_count = c->binding_count;
    return opjit_kernel_call(c->kernel, &call, error);
}

/* Compiles the graph, whose only output is the value, and calls it. */
static opjit_status compute(onnx_import *m, onnx_value *v, onnx_computed *c)
{
    onnx_computing *const w = m->computing;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    bool known;
    TRY(opjit_graph_output(m->graph, NULL, v->tensor));
    TRY(bind_inputs(m, c, &known));
    if (!known)
        return OPJIT_OK;
    c->bytes = opjit_onnx_elements_of(v) * opjit_rt_dtype_size(opjit_onnx_dtype(v->type));
    const uint64_t bytes = align_up(c->bytes, 4);
    void *const out = opjit_onnx_memory(m, bytes), *const value = opjit_onnx_memory(m, bytes);
    TRY(m->error->status);
    c->bindings[c->binding_count++] = (opjit_binding){ out, bytes };
    if (w->options != NULL)
        TRY(opjit_fe_options_copy(w->options, &options, m->error));
    options.struct_size = sizeof options;
    options.flags |= OPJIT_COMPILE_BORROW_CONSTANTS;
    TRY(opjit_graph_compile(m->graph, &options, &c->kernel, m->error));
    copy_inputs(w);
    TRY(call(c, m->error));
    memcpy(value, out, (size_t)c->bytes);
    c->value = v->data = value;
    v->tensor = (opjit_tensor){ 0, 0 };
    v->made = NULL;
    return OPJIT_OK;
}

opjit_status opjit_onnx_compute(onnx_import *m, onnx_value *v)
{
    onnx_computing *const w = m->computing;
    if (w == NULL || m->error->status != OPJIT_OK || v->type >= ONNX_SEQUENCE || onnx_is_constant(v))
        return m->error->status;
    if (w->count == COMPUTED_MOST)
        return opjit_rt_refuse(m->error, OPJIT_LIMIT, "{!values}more than %d values to be computed", COMPUTED_MOST);
    onnx_computed *const c = ARENA_NEW(m->arena, onnx_computed);
    if (c == NULL)
        return opjit_rt_no_memory(m->error);
    *c = (onnx_computed){ .next = NULL };
    const opjit_status status = opjit_onnx_status(m) == OPJIT_OK ? compute(m, v, c) : m->error->status;
    opjit_fe_built_drop_outputs(m->graph);
    if (c->kernel == NULL)
        return status;
    if (w->last == NULL)
        w->first = c;
    else
        w->last->next = c;
    w->last = c;
    w->count++;
    return status;
}

opjit_status opjit_onnx_compute_again(const onnx_computing *w, opjit_error *error)
{
    copy_inputs(w);
    for (const onnx_computed *c = w->first; c != NULL; c = c->next) {
        TRY(call(c, error));
        if (memcmp(c->bindings[c->binding_count - 1].data, c->value, (size_t)c->bytes) != 0)
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{!values}a value that the model was read with is another for these inputs");
    }
    return OPJIT_OK;
}
