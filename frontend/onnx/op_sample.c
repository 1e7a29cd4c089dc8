/* SPDX-License-Identifier: Apache-2.0 */
/* op_sample.c - GridSample: elements of an image {batch, channels, height, width} at places that data name, as gathered
 * elements and weights. */
#include "frontend/onnx/ops.h"

typedef enum beyond { ZEROS, BORDER, REFLECTION } beyond;

typedef struct sampling {
    opjit_tensor image;     /* {batch, channels, height * width} */
    opjit_tensor place[2];  /* row and column, {batch, 1, places}: real numbers */
    uint64_t sizes[2];      /* height, width */
    uint64_t channels, places, batch;
    int32_t type;
    beyond beyond;
} sampling;

static opjit_tensor rounded(onnx_import *m, opjit_tensor t, DML_ROUNDING_MODE mode)
{
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC desc = { NULL, NULL, mode };
    return opjit_graph_op(m->graph, DML_OPERATOR_ELEMENT_WISE_ROUND, &desc, &t, 1);
}

static opjit_tensor floor_of(onnx_import *m, opjit_tensor t)
{
    return opjit_graph_op1(m->graph, DML_OPERATOR_ELEMENT_WISE_FLOOR, t);
}

/* -1 to 1 as a place along an axis of that size, by the rule, and for REFLECTION mirrored into the axis. */
static opjit_tensor place_of(onnx_import *m, opjit_tensor t, const sampling *s, uint32_t axis, bool corners)
{
    opjit_graph *const g = m->graph;
    const double size = (double)s->sizes[axis], least = corners ? 0 : -0.5, span = corners ? size - 1 : size;
    t = opjit_graph_multiply(g, opjit_graph_add(g, t, opjit_onnx_scalar(m, s->type, 1)),
                             opjit_onnx_scalar(m, s->type, span / 2));
    if (!corners)
        t = opjit_graph_subtract(g, t, opjit_onnx_scalar(m, s->type, 0.5));
    if (s->beyond != REFLECTION || span == 0)
        return t;
    const opjit_tensor period = opjit_onnx_scalar(m, s->type, 2 * span);
    opjit_tensor far = opjit_graph_subtract(g, t, opjit_onnx_scalar(m, s->type, least));
    const opjit_tensor periods = floor_of(m, opjit_graph_divide(g, far, period));
    far = opjit_graph_subtract(g, far, opjit_graph_multiply(g, period, periods));
    far = opjit_graph_min(g, far, opjit_graph_subtract(g, period, far));
    return opjit_graph_add(g, far, opjit_onnx_scalar(m, s->type, least));
}

/* The elements at whole rows and columns, {batch, channels, places}; for ZEROS 0 where there is none. */
static opjit_tensor elements_at(onnx_import *m, const sampling *s, opjit_tensor row, opjit_tensor column)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor at[2] = { row, column };
    opjit_tensor inside = { 0, 0 }, kept[2];
    for (uint32_t i = 0; i < 2; i++) {
        kept[i] = opjit_graph_clip(g, at[i], 0, (float)(s->sizes[i] - 1));
        const opjit_tensor is_inside = opjit_graph_equals(g, kept[i], at[i]);
        inside = i == 0 ? is_inside : opjit_graph_logical_and(g, inside, is_inside);
        kept[i] = opjit_graph_cast(g, kept[i], DML_TENSOR_DATA_TYPE_INT64);
    }
    const opjit_tensor flat = opjit_graph_add(
        g, opjit_graph_multiply(g, kept[0], opjit_onnx_scalar(m, ONNX_INT64, (double)s->sizes[1])), kept[1]);
    const uint32_t sizes[3] = { (uint32_t)s->batch, (uint32_t)s->channels, (uint32_t)s->places };
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { NULL, NULL, NULL, 2 };
    const opjit_tensor inputs[2] = { s->image, opjit_graph_broadcast(g, flat, 3, sizes) };
    const opjit_tensor y = opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2);
    return s->beyond != ZEROS ? y : opjit_graph_where(g, inside, y, opjit_onnx_scalar(m, s->type, 0));
}

/* Between the four elements around each place. */
static opjit_tensor bilinear(onnx_import *m, const sampling *s)
{
    opjit_graph *const g = m->graph;
    opjit_tensor sum = { 0, 0 }, begin[2], part[2];
    const opjit_tensor one = opjit_onnx_scalar(m, s->type, 1);
    for (uint32_t i = 0; i < 2; i++) {
        begin[i] = floor_of(m, s->place[i]);
        part[i] = opjit_graph_subtract(g, s->place[i], begin[i]);
    }
    for (uint32_t corner = 0; corner < 4; corner++) {
        opjit_tensor at[2], weight[2];
        for (uint32_t i = 0; i < 2; i++) {
            const bool next = (corner >> (1 - i) & 1) != 0;
            at[i] = next ? opjit_graph_add(g, begin[i], one) : begin[i];
            weight[i] = next ? part[i] : opjit_graph_subtract(g, one, part[i]);
        }
        const opjit_tensor term = opjit_graph_multiply(g, elements_at(m, s, at[0], at[1]),
                                                       opjit_graph_multiply(g, weight[0], weight[1]));
        sum = corner == 0 ? term : opjit_graph_add(g, sum, term);
    }
    return sum;
}

opjit_status opjit_onnx_grid_sample(onnx_import *m, onnx_call *c)
{
    sampling s = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const grid = c->inputs[1];
    const bool corners = opjit_onnx_int(m, c, "align_corners", 0) != 0;
    const bool nearest = opjit_onnx_text_is(m, c, "mode", "nearest", "linear");
    if (opjit_onnx_text_is(m, c, "mode", "bicubic", "linear") || opjit_onnx_text_is(m, c, "mode", "cubic", "linear"))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "mode cubic is not taken");
    if (x->rank != 4 || grid->rank != 4 || grid->dims[3] != 2 || grid->dims[0] != x->dims[0])
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, must be 4", x->rank);
    s.beyond = opjit_onnx_text_is(m, c, "padding_mode", "border", "zeros")       ? BORDER
               : opjit_onnx_text_is(m, c, "padding_mode", "reflection", "zeros") ? REFLECTION
                                                                                 : ZEROS;
    s.batch = x->dims[0];
    s.channels = x->dims[1];
    s.places = grid->dims[1] * grid->dims[2];
    s.type = grid->type;
    opjit_graph *const g = m->graph;
    const uint64_t flat[3] = { s.batch, s.channels, x->dims[2] * x->dims[3] };
    const uint64_t one[3] = { s.batch, 1, s.places }, pairs[3] = { s.batch, s.places, 2 };
    const uint32_t sizes[3] = { (uint32_t)s.batch, (uint32_t)s.places, 1 };
    s.image = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, flat);
    const opjit_tensor places = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), 3, pairs);
    for (uint32_t i = 0; i < 2; i++) { /* the grid has columns first */
        const uint32_t begin[3] = { 0, 0, 1 - i };
        s.sizes[i] = x->dims[2 + i];
        const opjit_tensor t = opjit_onnx_reshape(m, opjit_graph_slice(g, places, begin, sizes, NULL), 3, one);
        s.place[i] = place_of(m, t, &s, i, corners);
        if (nearest)
            s.place[i] = rounded(m, s.place[i], DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN);
        else if (s.beyond == BORDER)
            s.place[i] = opjit_graph_clip(g, s.place[i], 0, (float)(s.sizes[i] - 1));
    }
    const opjit_tensor y = nearest ? elements_at(m, &s, s.place[0], s.place[1]) : bilinear(m, &s);
    const uint64_t dims[4] = { s.batch, s.channels, grid->dims[1], grid->dims[2] };
    return opjit_onnx_give_as(m, c, 0, y, x->type, 4, dims);
}
