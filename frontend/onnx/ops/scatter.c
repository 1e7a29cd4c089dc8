/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - elements at places that data name: scattering, unpooling, what is not zero. */
#include <opjit/operators.h>

#include "frontend/onnx/ops/ops.h"

/* How updates are combined with what is there; *out_combines: whether they don't just replace it. */
static opjit_status read_reduction(onnx_import *m, const onnx_call *c, bool *out_combines, DML_REDUCE_FUNCTION *out)
{
    static const struct {
        const char *name;
        DML_REDUCE_FUNCTION function;
    } rows[] = { { "add", DML_REDUCE_FUNCTION_SUM },
                 { "mul", DML_REDUCE_FUNCTION_MULTIPLY },
                 { "min", DML_REDUCE_FUNCTION_MIN },
                 { "max", DML_REDUCE_FUNCTION_MAX } };
    for (uint32_t i = 0; i < 4; i++)
        if (opjit_onnx_text_is(m, c, "reduction", rows[i].name, "none")) {
            *out = rows[i].function;
            *out_combines = true;
            return c->inputs[0]->type != ONNX_BOOL
                       ? OPJIT_OK
                       : opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "reduction %s of BOOL is not taken", rows[i].name);
        }
    return opjit_onnx_text_is(m, c, "reduction", "none", "none")
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                   "attribute reduction is none of none, add, mul, min, max");
}

/* Indices and updates have the data's rank and each other's sizes, which are no larger than the data's beside the
 * axis. */
static opjit_status check_elements(onnx_import *m, const onnx_call *c, uint32_t axis)
{
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1], *const updates = c->inputs[2];
    if (at->rank != x->rank || updates->rank != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "indices and updates of %u and %u dimensions, must be %u", at->rank,
                                 updates->rank, x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        if (updates->dims[d] != at->dims[d] || (d != axis && at->dims[d] > x->dims[d]))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "dimension %u: %llu indices and %llu updates for %llu elements", d,
                                     (unsigned long long)at->dims[d], (unsigned long long)updates->dims[d],
                                     (unsigned long long)x->dims[d]);
    return OPJIT_OK;
}

/* What makes the result of three tensors that agree beside the axis. */
static opjit_tensor scatter_along(onnx_import *m, const opjit_tensor inputs[3], uint32_t axis, bool combines,
                                  DML_REDUCE_FUNCTION function)
{
    const DML_SCATTER_ELEMENTS_OPERATOR_DESC put = { .Axis = axis };
    const OPJIT_SCATTER_REDUCE_OPERATOR_DESC combine = { .Axis = axis, .Function = function };
    return combines ? opjit_graph_op(m->graph, OPJIT_OPERATOR_SCATTER_REDUCE, &combine, inputs, 3)
                    : opjit_graph_op(m->graph, DML_OPERATOR_SCATTER_ELEMENTS, &put, inputs, 3);
}

opjit_status opjit_onnx_scatter_elements(onnx_import *m, onnx_call *c)
{
    uint32_t axis, begin[ONNX_RANK] = { 0 }, kept[ONNX_RANK], rest[ONNX_RANK];
    bool combines = false;
    DML_REDUCE_FUNCTION function = DML_REDUCE_FUNCTION_SUM;
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_reduction(m, c, &combines, &function));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    TRY(check_elements(m, c, axis));
    if (opjit_onnx_elements_of(at) == 0)
        return opjit_onnx_give_value(m, c, 0, x);
    const opjit_tensor whole = onnx_tensor_of(m, c, 0);
    opjit_tensor inputs[3] = { whole, onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    bool narrow = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        kept[d] = (uint32_t)(d == axis ? x->dims[d] : at->dims[d]);
        narrow = narrow || kept[d] != x->dims[d];
    }
    if (narrow)
        inputs[0] = opjit_graph_slice(m->graph, whole, begin, kept, NULL);
    opjit_tensor y = scatter_along(m, inputs, axis, combines, function);
    for (uint32_t d = x->rank; d-- > 0;) { /* what the updates don't reach is put back, one dimension after the other */
        if (kept[d] == x->dims[d])
            continue;
        memcpy(rest, kept, sizeof rest);
        begin[d] = kept[d];
        rest[d] = (uint32_t)x->dims[d] - kept[d];
        const opjit_tensor parts[2] = { y, opjit_graph_slice(m->graph, whole, begin, rest, NULL) };
        y = opjit_graph_join(m->graph, parts, 2, d);
        begin[d] = 0;
        kept[d] = (uint32_t)x->dims[d];
    }
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* ScatterND whose updates are combined: x as {places, elements of each}, places counted through. */
static opjit_status scatter_nd_combined(onnx_import *m, onnx_call *c, DML_REDUCE_FUNCTION function)
{
    static const uint32_t last = 1;
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    const uint64_t length = at->dims[at->rank - 1];
    opjit_graph *const g = m->graph;
    uint64_t flat[2] = { 1, 1 };
    if (length == 0 || length > x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "indices of %llu numbers into %u dimensions",
                                 (unsigned long long)length, x->rank);
    const uint64_t updates = opjit_onnx_elements_of(at) / length;
    int64_t *const sizes = opjit_onnx_memory(m, 2 * length * sizeof *sizes);
    if (sizes == NULL)
        return m->error->status;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (d < length) {
            sizes[d] = (int64_t)x->dims[d];
            sizes[length + d] = (int64_t)flat[0];
        }
        flat[d >= length] *= x->dims[d];
    }
    if (opjit_onnx_elements_of(c->inputs[2]) / flat[1] != updates ||
        opjit_onnx_elements_of(c->inputs[2]) % flat[1] != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%llu updates of %llu elements are %llu elements",
                                 (unsigned long long)updates, (unsigned long long)flat[1],
                                 (unsigned long long)opjit_onnx_elements_of(c->inputs[2]));
    onnx_value size = { .type = ONNX_INT64, .rank = 2, .dims = { 1, length }, .data = sizes }, stride = size;
    stride.data = sizes + length;
    opjit_tensor places = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), at->type, ONNX_INT64);
    places = opjit_onnx_reshape(m, places, 2, (uint64_t[]){ updates, length });
    const opjit_tensor negative = opjit_graph_less(g, places, opjit_onnx_scalar(m, ONNX_INT64, 0));
    places = opjit_graph_where(g, negative, opjit_graph_add(g, places, opjit_onnx_tensor(m, &size)), places);
    places = opjit_graph_multiply(g, places, opjit_onnx_tensor(m, &stride));
    places = opjit_graph_reduce(g, places, DML_REDUCE_FUNCTION_SUM, 1, &last);
    const uint64_t rows[2] = { updates, flat[1] };
    const opjit_tensor inputs[3] = {
        opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat),
        opjit_graph_broadcast(g, places, 2, (uint32_t[]){ (uint32_t)updates, (uint32_t)flat[1] }),
        opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), 2, rows),
    };
    return opjit_onnx_give_as(m, c, 0, scatter_along(m, inputs, 0, true, function), x->type, x->rank, x->dims);
}

opjit_status opjit_onnx_scatter_nd(onnx_import *m, onnx_call *c)
{
    uint64_t wide[ONNX_RANK];
    uint32_t rank = 0;
    opjit_tensor inputs[3];
    bool combines = false;
    DML_REDUCE_FUNCTION function = DML_REDUCE_FUNCTION_SUM;
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_reduction(m, c, &combines, &function));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    for (uint32_t i = 0; i < 3; i++)
        rank = c->inputs[i]->rank > rank ? c->inputs[i]->rank : rank;
    if (x->rank == 0 || at->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "inputs 0 and 1 must have at least one dimension");
    if (opjit_onnx_elements_of(at) == 0 || opjit_onnx_elements_of(x) == 0)
        return opjit_onnx_give_value(m, c, 0, x);
    if (combines)
        return scatter_nd_combined(m, c, function);
    for (uint32_t i = 0; i < 3; i++) { /* tensors of one rank, with ones before */
        const onnx_value *const v = c->inputs[i];
        for (uint32_t d = 0; d < rank; d++)
            wide[d] = d < rank - v->rank ? 1 : v->dims[d - (rank - v->rank)];
        inputs[i] = opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), rank, wide);
    }
    const DML_SCATTER_ND_OPERATOR_DESC desc = { .InputDimensionCount = x->rank, .IndicesDimensionCount = at->rank };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_SCATTER_ND, &desc, inputs, 3);
    return opjit_onnx_give_as(m, c, 0, y, x->type, x->rank, x->dims);
}

/* The coordinates of what is not zero, of a constant alone: otherwise nobody knows how many there are. */
opjit_status opjit_onnx_non_zero(onnx_import *m, onnx_call *c)
{
    double *numbers;
    uint32_t count;
    uint64_t found = 0;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_floats(m, c, 0, &numbers, &count));
    for (uint32_t i = 0; i < count; i++)
        found += numbers[i] != 0;
    const uint32_t rank = x->rank == 0 ? 1 : x->rank;
    int64_t *const places = ARENA_ARRAY(m->arena, int64_t, (size_t)(rank * found) + 1);
    if (places == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t i = 0, k = 0; i < count; i++) {
        uint64_t rest = i;
        if (numbers[i] == 0)
            continue;
        for (uint32_t d = rank; d-- > 0;) {
            const uint64_t size = x->rank == 0 ? 1 : x->dims[d];
            places[d * found + k] = (int64_t)(rest % size);
            rest /= size;
        }
        k++;
    }
    const uint64_t dims[2] = { rank, found };
    return opjit_onnx_give_data(m, c, 0, ONNX_INT64, 2, dims, places);
}
