/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - images cut, padded and put together, grids of places, and rows written into a cache. */
#include "frontend/onnx/ops/ops.h"

/* Grids for GridSample: each place is theta times its own coordinates, of -1 to 1, and 1. */
opjit_status opjit_onnx_affine_grid(onnx_import *m, onnx_call *c)
{
    int64_t *said;
    uint32_t count;
    TRY(opjit_onnx_need(m, c, 2));
    TRY(opjit_onnx_input_ints(m, c, 1, &said, &count));
    const onnx_value *const theta = c->inputs[0];
    const uint32_t axes = count < 2 ? 0 : count - 2, rank = axes + 2;
    const bool corners = opjit_onnx_int(m, c, "align_corners", 0) != 0;
    opjit_graph *const g = m->graph;
    if ((axes != 2 && axes != 3) || theta->rank != 3 || theta->dims[1] != axes || theta->dims[2] != axes + 1)
        return opjit_onnx_refuse(
            m, c, OPJIT_INVALID_ARGUMENT,
            "%u sizes, must be 4 or 5, and theta of %u dimensions, must be {batch, 2, 3} or {batch, 3, 4}", count,
            theta->rank);
    uint64_t dims[ONNX_RANK] = { theta->dims[0] }, factor[ONNX_RANK] = { theta->dims[0], 1, 1, 1, 1 };
    dims[rank - 1] = factor[rank - 1] = axes;
    opjit_tensor y = { 0, 0 };
    for (uint32_t k = 0; k <= axes; k++) { /* the last dimension is x, the one before it y */
        const uint32_t begin[3] = { 0, 0, axes - k }, size[3] = { (uint32_t)theta->dims[0], axes, 1 };
        opjit_tensor part =
            opjit_onnx_reshape(m, opjit_graph_slice(g, onnx_tensor_of(m, c, 0), begin, size, NULL), rank, factor);
        if (k > 0) {
            uint32_t places[ONNX_RANK] = { 1, 1, 1, 1, 1 };
            const int64_t n = said[1 + k];
            if (n < 1 || n > INT32_MAX)
                return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u: %lld, must be 1 to 2^31 - 1", 1 + k,
                                         (long long)n);
            const double step = !corners ? 2 / (double)n : n == 1 ? 0 : 2 / (double)(n - 1);
            dims[k] = places[k] = (uint32_t)n;
            part = opjit_graph_multiply(g, part,
                                        opjit_graph_sequence(g, opjit_onnx_dtype(theta->type), rank, places,
                                                             corners ? -1 : -1 + step / 2, step));
        }
        y = k == 0 ? part : opjit_graph_add(g, y, part);
    }
    return opjit_onnx_give_as(m, c, 0, y, theta->type, rank, dims);
}

/* The middle of dimensions that are too long, and zeros on both sides of those that are too short. */
opjit_status opjit_onnx_center_crop_pad(onnx_import *m, onnx_call *c)
{
    int64_t *said;
    uint32_t count;
    uint32_t begin[ONNX_RANK] = { 0 }, kept[ONNX_RANK], before[ONNX_RANK] = { 0 }, behind[ONNX_RANK] = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    TRY(opjit_onnx_input_ints(m, c, 1, &said, &count));
    const onnx_value *const x = c->inputs[0];
    const onnx_attribute *const axes = opjit_onnx_attribute(m, c, "axes");
    bool padded = false;
    if (count != (axes == NULL ? x->rank : axes->count) || (axes != NULL && axes->ints == NULL) || x->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u sizes, must be one for each of %u dimensions", count,
                                 axes == NULL ? x->rank : axes->count);
    for (uint32_t d = 0; d < x->rank; d++)
        kept[d] = (uint32_t)x->dims[d];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = i;
        if (axes != NULL)
            TRY(opjit_onnx_axis(m, c, axes->ints[i], x->rank, &d));
        const int64_t have = (int64_t)x->dims[d], want = said[i];
        if (want < 1 || want > INT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "size %u: %lld, must be 1 to 2^31 - 1", i,
                                     (long long)want);
        kept[d] = (uint32_t)(want < have ? want : have);
        begin[d] = (uint32_t)((have - kept[d]) / 2);
        before[d] = (uint32_t)((want - kept[d]) / 2);
        behind[d] = (uint32_t)(want - kept[d] - before[d]);
        padded = padded || want > have;
    }
    opjit_tensor y = opjit_graph_slice(m->graph, onnx_tensor_of(m, c, 0), begin, kept, NULL);
    if (padded)
        y = opjit_graph_pad(m->graph, y, x->rank, before, behind, 0);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* Windows of an image that lie in columns, added where they overlap. */
opjit_status opjit_onnx_col2im(onnx_import *m, onnx_call *c)
{
    enum { SPATIAL = ONNX_RANK - 2 };
    int64_t *image, *block;
    uint32_t count, block_count, sizes[SPATIAL], strides[SPATIAL], dilations[SPATIAL], pads[2 * SPATIAL];
    TRY(opjit_onnx_need(m, c, 3));
    TRY(opjit_onnx_input_ints(m, c, 1, &image, &count));
    TRY(opjit_onnx_input_ints(m, c, 2, &block, &block_count));
    const onnx_value *const x = c->inputs[0];
    if (x->rank != 3 || count == 0 || count > SPATIAL || count != block_count)
        return opjit_onnx_refuse(
            m, c, OPJIT_INVALID_ARGUMENT,
            "%u sizes of the image and %u of the block, must be as many, 1 to 3, of 3 dimensions, not %u", count,
            block_count, x->rank);
    TRY(opjit_onnx_spatial(m, c, "strides", count, 1, strides));
    TRY(opjit_onnx_spatial(m, c, "dilations", count, 1, dilations));
    TRY(opjit_onnx_spatial(m, c, "pads", 2 * count, 0, pads));
    opjit_tensor_type type = { .dtype = opjit_onnx_dtype(x->type), .rank = count + 2 };
    uint64_t window = 1;
    for (uint32_t d = 0; d < count; d++) {
        if (image[d] < 1 || image[d] > INT32_MAX || block[d] < 1 || block[d] > INT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "size %lld of the image, %lld of the block, must be 1 to 2^31 - 1",
                                     (long long)image[d], (long long)block[d]);
        type.sizes[2 + d] = (uint32_t)image[d];
        sizes[d] = (uint32_t)block[d];
        window = window > x->dims[1] ? window : window * sizes[d];
    }
    if (x->dims[1] % window != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%llu rows, must be a multiple of the block's %llu elements",
                                 (unsigned long long)x->dims[1], (unsigned long long)window);
    type.sizes[0] = (uint32_t)x->dims[0];
    type.sizes[1] = (uint32_t)(x->dims[1] / window);
    const DML_FOLD_OPERATOR_DESC desc = { NULL, NULL, count, sizes, strides, dilations, pads, pads + count };
    const opjit_tensor columns = onnx_tensor_of(m, c, 0);
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor y = { 0, 0 };
    node.type = DML_OPERATOR_FOLD;
    node.desc = &desc;
    node.inputs = &columns;
    node.input_count = node.output_count = 1;
    node.output_types = &type;
    (void)opjit_graph_add_node(m->graph, &node, &y);
    return opjit_onnx_give(m, c, 0, y, x->type, count + 2);
}

opjit_tensor opjit_onnx_write_rows(onnx_import *m, opjit_tensor past, opjit_tensor news, uint32_t rank,
                                   const uint64_t *dims, uint32_t axis, uint64_t count, opjit_tensor first,
                                   bool circular)
{
    opjit_graph *const g = m->graph;
    uint32_t places[ONNX_RANK], sizes[ONNX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = (uint32_t)dims[d];
        places[d] = d == axis ? sizes[d] : 1;
    }
    const opjit_tensor none = opjit_onnx_scalar(m, ONNX_INT32, 0);
    const opjit_tensor last = opjit_onnx_scalar(m, ONNX_INT32, (double)count - 1);
    opjit_tensor at =
        opjit_graph_subtract(g, opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT32, rank, places, 0, 1), first);
    if (circular)
        at = opjit_graph_op2(g, DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR, at,
                             opjit_onnx_scalar(m, ONNX_INT32, (double)dims[axis]));
    const opjit_tensor inside = opjit_graph_max(g, none, opjit_graph_min(g, last, at));
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { .Axis = axis };
    const opjit_tensor inputs[2] = { news, opjit_graph_broadcast(g, inside, rank, sizes) };
    return opjit_graph_where(g, opjit_graph_equals(g, at, inside),
                             opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2), past);
}

/* Rows of input 1 in the place of those of input 0 that begin where input 2 says of each batch. */
opjit_status opjit_onnx_tensor_scatter(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const past = c->inputs[0], *const news = c->inputs[1];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -2), past->rank, &axis));
    bool fits = axis > 0 && news->rank == past->rank && news->dims[axis] <= past->dims[axis] && news->dims[axis] > 0 &&
                past->dims[axis] <= INT32_MAX;
    for (uint32_t d = 0; d < past->rank && fits; d++)
        fits = d == axis || news->dims[d] == past->dims[d];
    if (!fits)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u and %u dimensions, of which %u is written",
                                 past->rank, news->rank, axis);
    const uint64_t each[ONNX_RANK] = { past->dims[0], 1, 1, 1, 1, 1, 1, 1 };
    opjit_tensor first = opjit_onnx_scalar(m, ONNX_INT32, 0);
    if (onnx_input(c, 2) != NULL)
        first = opjit_onnx_cast(m, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), past->rank, each), c->inputs[2]->type,
                                ONNX_INT32);
    const opjit_tensor y =
        opjit_onnx_write_rows(m, onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), past->rank, past->dims, axis,
                              news->dims[axis], first, opjit_onnx_text_is(m, c, "mode", "circular", "linear"));
    return opjit_onnx_give(m, c, 0, y, past->type, past->rank);
}
