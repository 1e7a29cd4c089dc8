/* SPDX-License-Identifier: Apache-2.0 */
/* empty.c - calls with an input without elements, as detectors have that found nothing.  Rows know tensors that have
 * elements, mostly.  So the call is made twice in graphs of its own, with 2 and with 3 for each size that is 0; sizes
 * of its outputs grow along, and say what they are for 0.  Where all outputs then have no elements, there is nothing
 * else to do. */
#include "frontend/onnx/ops/ops.h"

bool opjit_onnx_has_empty(const onnx_call *c)
{
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] != NULL && c->inputs[i]->type < ONNX_SEQUENCE && opjit_onnx_elements_of(c->inputs[i]) == 0)
            return true;
    return false;
}

/* The value as an input of the graph, with other sizes for those that are 0. */
static onnx_value input_of(opjit_graph *graph, const onnx_value *v, uint32_t size)
{
    onnx_value in = { .type = v->type, .rank = v->rank };
    uint32_t sizes[ONNX_RANK] = { 1 };
    for (uint32_t d = 0; d < v->rank; d++) {
        in.dims[d] = v->dims[d] == 0 ? size : v->dims[d];
        sizes[d] = (uint32_t)in.dims[d];
    }
    in.tensor = opjit_graph_input(graph, NULL, opjit_onnx_dtype(v->type), v->rank == 0 ? 1 : v->rank, sizes);
    return in;
}

/* The outputs' types and sizes with this size for each 0; false: they are not known. */
static bool make_apart(const onnx_import *m, const onnx_call *c, uint32_t size, onnx_value *outputs)
{
    opjit_error error = { 0 };
    onnx_import apart = *m;
    onnx_call call = *c;
    apart.error = &error;
    apart.computing = NULL;
    apart.is_sample = false;
    call.outputs = outputs;
    call.inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)c->input_count + 1);
    onnx_value *const values = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->input_count + 1);
    if (call.inputs == NULL || values == NULL || opjit_graph_create(m->context, &apart.graph, &error) != OPJIT_OK)
        return false;
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (c->inputs[i] == NULL)
            continue;
        values[i] = *c->inputs[i];
        values[i].tensor = (opjit_tensor){ 0, 0 };
        values[i].made = NULL;
        if (!onnx_is_constant(&values[i]) || opjit_onnx_elements_of(&values[i]) == 0)
            values[i] = input_of(apart.graph, &values[i], size);
        call.inputs[i] = &values[i];
    }
    const bool known = c->row->make(&apart, &call) == OPJIT_OK && opjit_onnx_status(&apart) == OPJIT_OK;
    opjit_graph_destroy(apart.graph);
    return known;
}

opjit_status opjit_onnx_make_empty(onnx_import *m, onnx_call *c, bool *done)
{
    onnx_value *const by_2 = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->output_count + 1);
    onnx_value *const by_3 = ARENA_ARRAY(m->arena, onnx_value, (size_t)c->output_count + 1);
    *done = false;
    if (by_2 == NULL || by_3 == NULL)
        return opjit_rt_no_memory(m->error);
    if (!make_apart(m, c, 2, by_2) || !make_apart(m, c, 3, by_3))
        return OPJIT_OK;
    for (uint32_t i = 0; i < c->output_count; i++) {
        onnx_value *const v = &by_2[i];
        if (v->type != by_3[i].type || v->rank != by_3[i].rank || v->type >= ONNX_SEQUENCE)
            return OPJIT_OK;
        for (uint32_t d = 0; d < v->rank; d++) {
            if (3 * v->dims[d] < 2 * by_3[i].dims[d])
                return OPJIT_OK;
            v->dims[d] = 3 * v->dims[d] - 2 * by_3[i].dims[d];
        }
        if (v->type != ONNX_UNDEFINED && opjit_onnx_elements_of(v) != 0)
            return OPJIT_OK;
    }
    for (uint32_t i = 0; i < c->output_count; i++)
        if (by_2[i].type != ONNX_UNDEFINED)
            TRY(opjit_onnx_give_nothing(m, c, i, by_2[i].type, by_2[i].rank, by_2[i].dims));
    *done = true;
    return OPJIT_OK;
}
