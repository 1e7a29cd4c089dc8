/* SPDX-License-Identifier: Apache-2.0 */
/* rotary.c - rotary embedding: pairs of elements are turned by angles that follow their row's position. */
#include "frontend/onnx/ops/ops.h"

/* Elements first, first + step, ... of the last dimension, `count` of them. */
static opjit_tensor lanes(onnx_import *m, opjit_tensor t, uint32_t first, uint32_t count, int32_t step)
{
    opjit_tensor_type type;
    uint32_t offsets[ONNX_RANK] = { 0 };
    int32_t strides[ONNX_RANK];
    if (opjit_graph_get_type(m->graph, t, &type) != OPJIT_OK) /* there was an error before */
        return (opjit_tensor){ 0, 0 };
    for (uint32_t d = 0; d < type.rank; d++)
        strides[d] = 1;
    offsets[type.rank - 1] = first;
    strides[type.rank - 1] = step;
    type.sizes[type.rank - 1] = count;
    return opjit_graph_slice(m->graph, t, offsets, type.sizes, strides);
}

opjit_tensor opjit_onnx_angles(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t positions, uint64_t batch,
                               uint64_t rows, uint64_t half)
{
    onnx_value *const v = onnx_input(c, i), *const at = onnx_input(c, positions);
    opjit_tensor t = opjit_onnx_tensor(m, v);
    if (at == NULL) { /* {batch, rows, half} */
        const uint64_t dims[4] = { v->rank == 3 ? v->dims[0] : 1, rows, 1, half };
        return opjit_onnx_reshape(m, t, 4, dims);
    }
    const uint64_t whole[3] = { 1, v->dims[0], v->dims[1] };
    const bool each = opjit_onnx_elements_of(at) == rows * batch; /* else it is the first row's */
    const uint64_t flat[3] = { 1, 1, each ? rows * batch : 1 }, result[4] = { each ? batch : 1, rows, 1, half };
    opjit_tensor rows_at = opjit_onnx_reshape(m, onnx_tensor_of(m, c, positions), 3, flat);
    if (!each) {
        const uint32_t sizes[3] = { 1, 1, (uint32_t)rows };
        rows_at = opjit_graph_add(m->graph, rows_at,
                                  opjit_graph_sequence(m->graph, opjit_onnx_dtype(at->type), 3, sizes, 0, 1));
    }
    t = opjit_graph_gather(m->graph, opjit_onnx_reshape(m, t, 3, whole), rows_at, 1, 1);
    return opjit_onnx_reshape(m, t, 4, result);
}

opjit_tensor opjit_onnx_turned(onnx_import *m, opjit_tensor t, const uint64_t *dims, uint64_t half, opjit_tensor cosine,
                               opjit_tensor sine, bool interleaved)
{
    opjit_graph *const g = m->graph;
    const uint32_t n = (uint32_t)half;
    const opjit_tensor a = interleaved ? lanes(m, t, 0, n, 2) : lanes(m, t, 0, n, 1);
    const opjit_tensor b = interleaved ? lanes(m, t, 1, n, 2) : lanes(m, t, n, n, 1);
    opjit_tensor parts[3] = {
        opjit_graph_subtract(g, opjit_graph_multiply(g, a, cosine), opjit_graph_multiply(g, b, sine)),
        opjit_graph_add(g, opjit_graph_multiply(g, a, sine), opjit_graph_multiply(g, b, cosine)),
    };
    if (interleaved) {
        const uint64_t apart[5] = { dims[0], dims[1], dims[2], half, 1 };
        const uint64_t together[4] = { dims[0], dims[1], dims[2], 2 * half };
        parts[0] = opjit_onnx_reshape(m, parts[0], 5, apart);
        parts[1] = opjit_onnx_reshape(m, parts[1], 5, apart);
        parts[0] = opjit_onnx_reshape(m, opjit_graph_join(g, parts, 2, 4), 4, together);
        parts[1] = (opjit_tensor){ 0, 0 };
    }
    uint32_t count = interleaved ? 1 : 2;
    if (2 * half < dims[3])
        parts[count++] = lanes(m, t, 2 * n, (uint32_t)(dims[3] - 2 * half), 1);
    return count == 1 ? parts[0] : opjit_graph_join(g, parts, count, 3);
}

/* Pairs of elements of each head are turned by the angle of their row; arg 1: com.microsoft's order of inputs. */
opjit_status opjit_onnx_rotary_embedding(onnx_import *m, onnx_call *c)
{
    const uint32_t positions = c->row->arg == 1 ? 1 : 3, cosines = c->row->arg == 1 ? 2 : 1;
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0], *const cache = c->inputs[cosines];
    opjit_graph *const g = m->graph;
    const uint64_t said = (uint64_t)opjit_onnx_int(m, c, "num_heads", 0);
    const uint64_t half = cache->rank == 2 || cache->rank == 3 ? cache->dims[cache->rank - 1] : 0;
    if ((x->rank != 3 && x->rank != 4) || half == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, angles of %u", x->rank, cache->rank);
    const bool flat = x->rank == 3;
    const uint64_t rows = flat ? x->dims[1] : x->dims[2];
    const uint64_t heads = flat ? (said != 0 ? said : x->dims[2] / (2 * half)) : x->dims[1];
    if (heads == 0 || (flat && x->dims[2] % heads != 0))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute num_heads: %llu, must divide the width %llu",
                                 (unsigned long long)said, (unsigned long long)x->dims[2]);
    const uint64_t width = flat ? x->dims[2] / heads : x->dims[3];
    const uint64_t places = onnx_input(c, positions) == NULL ? 1 : opjit_onnx_elements_of(c->inputs[positions]);
    if (2 * half > width || (places != 1 && places != rows * x->dims[0]))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "positions that are not one for each row");
    static const uint32_t order[4] = { 0, 2, 1, 3 };
    const uint64_t dims[4] = { x->dims[0], rows, heads, width };
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    t = flat ? opjit_onnx_reshape(m, t, 4, dims) : opjit_graph_transpose(g, t, order);
    const opjit_tensor cosine = opjit_onnx_angles(m, c, cosines, positions, x->dims[0], rows, half);
    const opjit_tensor sine = opjit_onnx_angles(m, c, cosines + 1, positions, x->dims[0], rows, half);
    const bool interleaved = opjit_onnx_int(m, c, "interleaved", 0) != 0;
    opjit_tensor y = opjit_onnx_turned(m, t, dims, half, cosine, sine, interleaved);
    if (!flat)
        y = opjit_graph_transpose(g, y, order);
    return opjit_onnx_give_as(m, c, 0, y, x->type, x->rank, x->dims);
}
