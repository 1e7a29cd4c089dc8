/* SPDX-License-Identifier: Apache-2.0 */
/* compute.c - values that have to be known while the model is read, but depend on what a call brings: how long a
 * predicted sound is, which boxes are left, whether a loop goes on.  Where the call's inputs are given
 * (OPJIT_MODEL_INPUT_OF_CALL), the graph that there is so far becomes a kernel, which is called at once (parts.c), and
 * the value is a constant from then on. */
#include "frontend/onnx/compute.h"

enum { COMPUTED_MOST = 4096 }; /* values of a model */

void opjit_onnx_bring(onnx_import *m, const char *name, opjit_tensor tensor, const opjit_model_input *given)
{
    onnx_computing *const w = m->computing;
    if (w == NULL)
        return;
    onnx_brought *const in = &w->inputs[w->input_count++];
    *in = (onnx_brought){ .name = name };
    (void)opjit_graph_get_type(m->graph, tensor, &in->type);
    if (given != NULL) {
        in->value = given->value;
        in->bytes = given->bytes;
    }
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

void opjit_onnx_copy_inputs(const onnx_computing *w)
{
    for (uint32_t i = 0; i < w->input_count; i++)
        if (w->inputs[i].copy != NULL)
            memcpy(w->inputs[i].copy, w->inputs[i].value, (size_t)w->inputs[i].bytes);
}

opjit_status opjit_onnx_call_steps(onnx_computing *w, opjit_error *error)
{
    opjit_onnx_copy_inputs(w);
    for (const onnx_step *s = w->first; s != NULL; s = s->next) {
        TRY(opjit_onnx_call_step(w, s, error));
        opjit_onnx_end_step(w, s);
    }
    return OPJIT_OK;
}

/* Where the elements of the value are, after they were computed if need be; NULL: they depend on an input that is not
 * known. */
static opjit_status find_elements(onnx_import *m, const onnx_value *v, const void **out)
{
    const onnx_computing *const w = m->computing;
    onnx_carried *found;
    bool known;
    if (v->tensor.index <= w->input_count) {
        *out = w->inputs[v->tensor.index - 1].value;
        return OPJIT_OK;
    }
    TRY(opjit_onnx_in_memory(m, v, &found, &known));
    *out = known ? found->data : NULL;
    if (known)
        found->is_kept = true; /* what is computed again is compared when all is */
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
    *c = (onnx_computed){ .next = w->values };
    TRY(opjit_onnx_status(m));
    TRY(find_elements(m, v, &c->now));
    if (c->now == NULL)
        return OPJIT_OK;
    c->bytes = opjit_onnx_elements_of(v) * opjit_rt_dtype_size(opjit_onnx_dtype(v->type));
    void *const value = opjit_onnx_room(m, align_up(c->bytes, 4));
    TRY(m->error->status);
    memcpy(value, c->now, (size_t)c->bytes);
    c->value = v->data = value;
    v->tensor = (opjit_tensor){ 0, 0 };
    v->made = NULL;
    w->values = c;
    w->count++;
    return OPJIT_OK;
}

opjit_status opjit_onnx_compute_again(onnx_computing *w, opjit_error *error)
{
    TRY(opjit_onnx_call_steps(w, error));
    for (const onnx_computed *c = w->values; c != NULL; c = c->next)
        if (memcmp(c->now, c->value, (size_t)c->bytes) != 0)
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{!values}a value that the model was read with is another for these inputs");
    return OPJIT_OK;
}
