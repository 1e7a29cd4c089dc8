/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - random numbers: bits by Philox of a key that is the node's seed and its number, so that each node has
 * numbers of its own, and the same ones in each call. */
#include "frontend/onnx/ops/ops.h"

enum { NORMAL = 1, LIKE = 2 }; /* bits of a row's argument */

/* {rows, count} numbers of FLOAT32 in [0, 1), multiples of 2^-24. */
static opjit_tensor uniform(onnx_import *m, const onnx_call *c, uint32_t rows, uint64_t count)
{
    const uint32_t sizes[2] = { rows, (uint32_t)count };
    const float seed = opjit_onnx_float(m, c, "seed", 0);
    uint32_t *const state = opjit_onnx_memory(m, 6 * sizeof *state); /* a counter from 0 on, and the key */
    if (state == NULL)
        return (opjit_tensor){ 0, 0 };
    memcpy(&state[4], &seed, sizeof seed);
    state[5] = m->nodes;
    opjit_graph *const g = m->graph;
    const opjit_tensor from = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_UINT32, 2, (const uint32_t[]){ 1, 6 }, state,
                                                   6 * sizeof *state, OPJIT_GRAPH_BORROW);
    const opjit_tensor bits = opjit_graph_op2(g, DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT,
                                              opjit_graph_random(g, from, 2, sizes, NULL),
                                              opjit_onnx_scalar(m, ONNX_UINT32, 8));
    return opjit_graph_multiply(g, opjit_onnx_cast(m, bits, ONNX_UINT32, ONNX_FLOAT),
                                opjit_onnx_scalar(m, ONNX_FLOAT, 0x1p-24));
}

/* {1, count} numbers by two uniform ones each: sqrt(-2 log(1 - a)) cos(2 pi b). */
static opjit_tensor normal(onnx_import *m, const onnx_call *c, uint64_t count)
{
    const uint32_t sizes[2] = { 1, (uint32_t)count };
    const opjit_tensor both = uniform(m, c, 2, count);
    opjit_graph *const g = m->graph;
    const opjit_tensor a = opjit_graph_slice(g, both, (const uint32_t[]){ 0, 0 }, sizes, NULL);
    const opjit_tensor b = opjit_graph_slice(g, both, (const uint32_t[]){ 1, 0 }, sizes, NULL);
    const opjit_tensor log = opjit_graph_log(g, opjit_graph_subtract(g, opjit_onnx_scalar(m, ONNX_FLOAT, 1), a));
    const opjit_tensor length = opjit_graph_sqrt(g, opjit_graph_multiply(g, log, opjit_onnx_scalar(m, ONNX_FLOAT, -2)));
    const opjit_tensor angle = opjit_graph_multiply(g, b, opjit_onnx_scalar(m, ONNX_FLOAT, 6.283185307179586));
    return opjit_graph_multiply(g, length, opjit_graph_cos(g, angle));
}

/* The sizes of attribute shape or of input 0, and the type that attribute dtype says. */
static opjit_status read_shape(onnx_import *m, const onnx_call *c, bool like, onnx_value *out)
{
    *out = (onnx_value){ .type = ONNX_FLOAT };
    if (like) {
        TRY(opjit_onnx_need(m, c, 1));
        *out = onnx_value_of(c->inputs[0], c->inputs[0]->type, (opjit_tensor){ 0, 0 });
    } else {
        const onnx_attribute *const shape = opjit_onnx_attribute(m, c, "shape");
        if (shape == NULL || shape->count > ONNX_RANK || (shape->count != 0 && shape->ints == NULL))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute shape: no sizes of at most %u dimensions",
                                     ONNX_RANK);
        out->rank = shape->count;
        for (uint32_t d = 0; d < shape->count; d++)
            out->dims[d] = shape->ints[d] < 0 ? UINT64_MAX : (uint64_t)shape->ints[d];
    }
    out->type = (int32_t)opjit_onnx_int(m, c, "dtype", out->type);
    if (opjit_onnx_elements_of(out) == 0 || opjit_onnx_elements_of(out) > UINT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "no elements, or 2^32 and more");
    return OPJIT_OK;
}

static opjit_status give_random(onnx_import *m, onnx_call *c, opjit_tensor y, int32_t from, const onnx_value *shape)
{
    if (opjit_onnx_dtype(shape->type) == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "elements of %s are not taken",
                                 opjit_onnx_type_name(shape->type).text);
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, from, shape->type), shape->type, shape->rank,
                              shape->dims);
}

opjit_status opjit_onnx_random_numbers(onnx_import *m, onnx_call *c)
{
    onnx_value shape;
    const bool is_normal = (c->row->arg & NORMAL) != 0;
    TRY(read_shape(m, c, (c->row->arg & LIKE) != 0, &shape));
    const float first = opjit_onnx_float(m, c, is_normal ? "mean" : "low", 0);
    const float last = opjit_onnx_float(m, c, is_normal ? "scale" : "high", 1);
    const opjit_tensor by = opjit_onnx_scalar(m, ONNX_FLOAT, is_normal ? last : last - first);
    const uint64_t count = opjit_onnx_elements_of(&shape);
    const opjit_tensor x = is_normal ? normal(m, c, count) : uniform(m, c, 1, count);
    const opjit_tensor y = opjit_graph_add(m->graph, opjit_graph_multiply(m->graph, x, by),
                                           opjit_onnx_scalar(m, ONNX_FLOAT, first));
    return give_random(m, c, y, ONNX_FLOAT, &shape);
}

/* 1 as often as input 0 says. */
opjit_status opjit_onnx_bernoulli(onnx_import *m, onnx_call *c)
{
    onnx_value shape;
    TRY(read_shape(m, c, true, &shape));
    const uint64_t count = opjit_onnx_elements_of(&shape), flat[2] = { 1, count };
    const opjit_tensor often =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), c->inputs[0]->type, ONNX_FLOAT), 2, flat);
    const opjit_tensor y = opjit_graph_greater(m->graph, often, uniform(m, c, 1, count));
    return give_random(m, c, y, ONNX_BOOL, &shape);
}
