/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - GridSample and DeformConv: elements of images {batch, channels, (depth,) height, width} at places that
 * data name, as gathered elements and weights. */
#include "frontend/onnx/ops/ops.h"

enum { MOST_AXES = 3, MOST_TAPS = 4 };

typedef enum beyond { ZEROS, BORDER, REFLECTION } beyond;

typedef struct sampling {
    opjit_tensor image;            /* {batch, channels, elements} */
    opjit_tensor place[MOST_AXES]; /* along each axis, {batch, 1, places}: real numbers */
    uint64_t sizes[MOST_AXES];     /* (depth,) height, width */
    uint64_t channels, places, batch;
    uint32_t axes;
    int32_t type, image_type; /* of places and weights; of the image, another one where its elements stay as they are */
    beyond beyond;
    bool corners; /* -1 and 1 are the centers of the outer elements, not their edges */
} sampling;

static opjit_tensor rounded(onnx_import *m, opjit_tensor t, DML_ROUNDING_MODE mode)
{
    const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC desc = { NULL, NULL, mode };
    return opjit_graph_op(m->graph, DML_OPERATOR_ELEMENT_WISE_ROUND, &desc, &t, 1);
}

/* Places mirrored into the axis. */
static opjit_tensor reflected(onnx_import *m, opjit_tensor t, const sampling *s, uint32_t axis)
{
    opjit_graph *const g = m->graph;
    const double size = (double)s->sizes[axis], span = s->corners ? size - 1 : size;
    if (span == 0)
        return t;
    const opjit_tensor least = opjit_onnx_scalar(m, s->type, s->corners ? 0 : -0.5);
    const opjit_tensor period = opjit_onnx_scalar(m, s->type, 2 * span);
    opjit_tensor far = opjit_graph_subtract(g, t, least);
    const opjit_tensor periods = opjit_graph_floor(g, opjit_graph_divide(g, far, period));
    far = opjit_graph_subtract(g, far, opjit_graph_multiply(g, period, periods));
    far = opjit_graph_min(g, far, opjit_graph_subtract(g, period, far));
    return opjit_graph_add(g, far, least);
}

/* -1 to 1 as a place along an axis of that size, by the rule. */
static opjit_tensor place_of(onnx_import *m, opjit_tensor t, const sampling *s, uint32_t axis)
{
    opjit_graph *const g = m->graph;
    const double size = (double)s->sizes[axis], span = s->corners ? size - 1 : size;
    t = opjit_graph_multiply(g, opjit_graph_add(g, t, opjit_onnx_scalar(m, s->type, 1)),
                             opjit_onnx_scalar(m, s->type, span / 2));
    return s->corners ? t : opjit_graph_subtract(g, t, opjit_onnx_scalar(m, s->type, 0.5));
}

/* The elements at whole places, {batch, channels, places}; for ZEROS 0 where there is none. */
static opjit_tensor elements_at(onnx_import *m, const sampling *s, const opjit_tensor *at)
{
    opjit_graph *const g = m->graph;
    opjit_tensor inside = { 0, 0 }, flat = { 0, 0 };
    for (uint32_t i = 0; i < s->axes; i++) {
        const opjit_tensor kept = opjit_graph_clip(g, at[i], 0, (float)(s->sizes[i] - 1));
        const opjit_tensor is_inside = opjit_graph_equals(g, kept, at[i]);
        const opjit_tensor whole = opjit_graph_cast(g, kept, DML_TENSOR_DATA_TYPE_INT64);
        const opjit_tensor size = opjit_onnx_scalar(m, ONNX_INT64, (double)s->sizes[i]);
        inside = i == 0 ? is_inside : opjit_graph_logical_and(g, inside, is_inside);
        flat = i == 0 ? whole : opjit_graph_add(g, opjit_graph_multiply(g, flat, size), whole);
    }
    const uint32_t sizes[3] = { (uint32_t)s->batch, (uint32_t)s->channels, (uint32_t)s->places };
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { NULL, NULL, NULL, 2 };
    const opjit_tensor inputs[2] = { s->image, opjit_graph_broadcast(g, flat, 3, sizes) };
    const opjit_tensor y = opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2);
    return s->beyond != ZEROS ? y : opjit_graph_where(g, inside, y, opjit_onnx_scalar(m, s->image_type, 0));
}

/* ((a x + b) x + c) x + d */
static opjit_tensor polynomial(onnx_import *m, int32_t type, opjit_tensor x, const double numbers[4])
{
    opjit_tensor y = opjit_onnx_scalar(m, type, numbers[0]);
    for (uint32_t k = 1; k < 4; k++)
        y = opjit_graph_add(m->graph, opjit_graph_multiply(m->graph, y, x), opjit_onnx_scalar(m, type, numbers[k]));
    return y;
}

/* The elements along one axis that a result is made of, and how much of each; part: of the way from one to the next. */
typedef struct taps {
    opjit_tensor at[MOST_TAPS], weight[MOST_TAPS];
} taps;

static taps linear_taps(onnx_import *m, const sampling *s, opjit_tensor begin, opjit_tensor part)
{
    const opjit_tensor one = opjit_onnx_scalar(m, s->type, 1);
    return (taps){ { begin, opjit_graph_add(m->graph, begin, one) },
                   { opjit_graph_subtract(m->graph, one, part), part } };
}

/* By cubic convolution with -0.75: one polynomial for the two inner elements, another one for the outer two. */
static taps cubic_taps(onnx_import *m, const sampling *s, uint32_t axis, opjit_tensor begin, opjit_tensor part)
{
    static const double inner[4] = { 1.25, -2.25, 0, 1 }, outer[4] = { -0.75, 3.75, -6, 3 };
    opjit_graph *const g = m->graph;
    taps t;
    for (uint32_t k = 0; k < 4; k++) {
        const opjit_tensor step = opjit_onnx_scalar(m, s->type, (double)k - 1);
        const opjit_tensor way = k < 2 ? opjit_graph_subtract(g, part, step) : opjit_graph_subtract(g, step, part);
        t.weight[k] = polynomial(m, s->type, way, k == 1 || k == 2 ? inner : outer);
        t.at[k] = opjit_graph_add(g, begin, step);
        if (s->beyond == REFLECTION)
            t.at[k] = reflected(m, t.at[k], s, axis);
    }
    return t;
}

/* Between the elements around each place: 2 or, for cubic, 4 along each axis. */
static opjit_tensor between(onnx_import *m, const sampling *s, bool cubic)
{
    opjit_graph *const g = m->graph;
    const uint32_t bits = cubic ? 2 : 1; /* of an element's number along an axis */
    opjit_tensor sum = { 0, 0 };
    taps axis[MOST_AXES];
    for (uint32_t i = 0; i < s->axes; i++) {
        const opjit_tensor begin = opjit_graph_floor(g, s->place[i]);
        const opjit_tensor part = opjit_graph_subtract(g, s->place[i], begin);
        axis[i] = cubic ? cubic_taps(m, s, i, begin, part) : linear_taps(m, s, begin, part);
    }
    for (uint32_t corner = 0; corner < 1u << bits * s->axes; corner++) {
        opjit_tensor at[MOST_AXES], weight = { 0, 0 };
        for (uint32_t i = 0; i < s->axes; i++) {
            const uint32_t k = corner >> bits * (s->axes - 1 - i) & ((1u << bits) - 1);
            at[i] = axis[i].at[k];
            weight = i == 0 ? axis[i].weight[k] : opjit_graph_multiply(g, weight, axis[i].weight[k]);
        }
        const opjit_tensor term = opjit_graph_multiply(g, elements_at(m, s, at), weight);
        sum = corner == 0 ? term : opjit_graph_add(g, sum, term);
    }
    return sum;
}

/* The places along each axis, out of a grid whose last dimension has the axes in reverse. */
static void read_places(onnx_import *m, const onnx_call *c, sampling *s, bool nearest, bool cubic)
{
    const uint64_t one[3] = { s->batch, 1, s->places }, rows[3] = { s->batch, s->places, s->axes };
    const uint32_t sizes[3] = { (uint32_t)s->batch, (uint32_t)s->places, 1 };
    const opjit_tensor grid = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), c->inputs[1]->type, s->type);
    const opjit_tensor places = opjit_onnx_reshape(m, grid, 3, rows);
    for (uint32_t i = 0; i < s->axes; i++) {
        const uint32_t begin[3] = { 0, 0, s->axes - 1 - i };
        const opjit_tensor t = opjit_onnx_reshape(m, opjit_graph_slice(m->graph, places, begin, sizes, NULL), 3, one);
        s->place[i] = place_of(m, t, s, i);
        if (s->beyond == REFLECTION)
            s->place[i] = reflected(m, s->place[i], s, i);
        if (nearest)
            s->place[i] = rounded(m, s->place[i], DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN);
        else if (s->beyond == BORDER && !cubic)
            s->place[i] = opjit_graph_clip(m->graph, s->place[i], 0, (float)(s->sizes[i] - 1));
    }
}

opjit_status opjit_onnx_grid_sample(onnx_import *m, onnx_call *c)
{
    sampling s = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const grid = c->inputs[1];
    const bool nearest = opjit_onnx_text_is(m, c, "mode", "nearest", "linear");
    const bool cubic =
        opjit_onnx_text_is(m, c, "mode", "bicubic", "linear") || opjit_onnx_text_is(m, c, "mode", "cubic", "linear");
    uint64_t flat[3], dims[ONNX_RANK];
    if (x->rank < 4 || x->rank > 2 + MOST_AXES || grid->rank != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions and a grid of %u, must both be 4 or 5",
                                 x->rank, grid->rank);
    s.axes = x->rank - 2;
    if (grid->dims[s.axes + 1] != s.axes || grid->dims[0] != x->dims[0])
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "a grid of %llu batches and places of %llu numbers, "
                                 "must be %llu and %u",
                                 (unsigned long long)grid->dims[0], (unsigned long long)grid->dims[s.axes + 1],
                                 (unsigned long long)x->dims[0], s.axes);
    if (cubic && s.axes != 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "mode cubic of %u axes, must be 2", s.axes);
    s.beyond = opjit_onnx_text_is(m, c, "padding_mode", "border", "zeros")       ? BORDER
               : opjit_onnx_text_is(m, c, "padding_mode", "reflection", "zeros") ? REFLECTION
                                                                                 : ZEROS;
    s.corners = opjit_onnx_int(m, c, "align_corners", 0) != 0;
    s.batch = dims[0] = flat[0] = x->dims[0];
    s.channels = dims[1] = flat[1] = x->dims[1];
    s.places = flat[2] = 1;
    s.type = x->type == ONNX_DOUBLE || grid->type == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT;
    s.image_type = nearest ? x->type : s.type;
    for (uint32_t i = 0; i < s.axes; i++) {
        s.sizes[i] = x->dims[2 + i];
        dims[2 + i] = grid->dims[1 + i];
        flat[2] *= s.sizes[i];
        s.places *= dims[2 + i];
    }
    s.image = opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, s.image_type), 3, flat);
    read_places(m, c, &s, nearest, cubic);
    const opjit_tensor y = nearest ? elements_at(m, &s, s.place) : between(m, &s, cubic);
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, s.image_type, x->type), x->type, x->rank, dims);
}

/* --- DeformConv --------------------------------------------------------------------------------------------------- */

/* A convolution whose window's taps are moved by offsets. */
typedef struct deformed {
    uint32_t window[2], strides[2], dilations[2], pads[4]; /* of height and width */
    uint64_t groups, offset_groups;                        /* of the filter's channels; channels that move alike */
    uint64_t taps, sizes[2], places;                       /* of the window; of the result, and their product */
} deformed;

static opjit_status read_deformed(onnx_import *m, const onnx_call *c, deformed *d)
{
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0], *const w = c->inputs[1];
    const int64_t groups = opjit_onnx_int(m, c, "group", 1), offset_groups = opjit_onnx_int(m, c, "offset_group", 1);
    if (x->rank != 4 || w->rank != 4)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions and a filter of %u, must both be 4", x->rank,
                                 w->rank);
    TRY(opjit_onnx_spatial(m, c, "strides", 2, 1, d->strides));
    TRY(opjit_onnx_spatial(m, c, "dilations", 2, 1, d->dilations));
    TRY(opjit_onnx_spatial(m, c, "pads", 4, 0, d->pads));
    if (groups < 1 || w->dims[0] % (uint64_t)groups != 0 || x->dims[1] != w->dims[1] * (uint64_t)groups)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%lld groups of %llu channels, filters of %llu channels",
                                 (long long)groups, (unsigned long long)x->dims[1], (unsigned long long)w->dims[1]);
    if (offset_groups < 1 || x->dims[1] % (uint64_t)offset_groups != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute offset_group: %lld of %llu channels",
                                 (long long)offset_groups, (unsigned long long)x->dims[1]);
    d->groups = (uint64_t)groups;
    d->offset_groups = (uint64_t)offset_groups;
    for (uint32_t i = 0; i < 2; i++) {
        d->window[i] = (uint32_t)w->dims[2 + i];
        const uint64_t size = x->dims[2 + i] + d->pads[i] + d->pads[2 + i];
        const uint64_t reach = (uint64_t)(d->window[i] - 1) * d->dilations[i] + 1;
        if (d->strides[i] == 0 || d->dilations[i] == 0 || d->window[i] == 0 || size < reach)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "a window of %llu in %llu elements with its padding, strides %u, dilations %u",
                                     (unsigned long long)reach, (unsigned long long)size, d->strides[i],
                                     d->dilations[i]);
        d->sizes[i] = (size - reach) / d->strides[i] + 1;
    }
    d->taps = (uint64_t)d->window[0] * d->window[1];
    d->places = d->sizes[0] * d->sizes[1];
    return OPJIT_OK;
}

/* Refuses input i unless it has `per_tap` channels per tap and group of channels, and the result's sizes. */
static opjit_status check_moves(onnx_import *m, const onnx_call *c, const deformed *d, uint32_t i, uint64_t per_tap)
{
    const onnx_value *const v = c->inputs[i];
    const uint64_t channels = d->offset_groups * d->taps * per_tap;
    return v->rank == 4 && v->dims[0] == c->inputs[0]->dims[0] && v->dims[1] == channels &&
                   v->dims[2] == d->sizes[0] && v->dims[3] == d->sizes[1]
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u must have sizes %llu, %llu, %llu, %llu", i,
                                   (unsigned long long)c->inputs[0]->dims[0], (unsigned long long)channels,
                                   (unsigned long long)d->sizes[0], (unsigned long long)d->sizes[1]);
}

/* Where taps lie along an axis before they are moved, {1, taps, height, width}, of which two sizes are 1. */
static opjit_tensor unmoved(onnx_import *m, const deformed *d, uint32_t axis)
{
    const uint32_t window[4] = { 1, d->window[0], d->window[1], 1 };
    const uint32_t places[4] = { 1, 1, axis == 0 ? (uint32_t)d->sizes[0] : 1, axis == 1 ? (uint32_t)d->sizes[1] : 1 };
    const uint32_t along[4] = { 1, axis == 0 ? d->window[0] : 1, axis == 1 ? d->window[1] : 1, 1 };
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    opjit_graph *const g = m->graph;
    const uint64_t wide[4] = { 1, d->taps, 1, 1 };
    const opjit_tensor tap = opjit_graph_sequence(g, type, 4, along, 0, d->dilations[axis]);
    const opjit_tensor tap_places = opjit_onnx_reshape(m, opjit_graph_broadcast(g, tap, 4, window), 4, wide);
    const opjit_tensor begin = opjit_graph_sequence(g, type, 4, places, -(double)d->pads[axis], d->strides[axis]);
    return opjit_graph_add(g, tap_places, begin);
}

/* The elements under each tap, {batch, channels, taps * places}, FLOAT. */
static opjit_tensor taps_of(onnx_import *m, const onnx_call *c, const deformed *d)
{
    opjit_graph *const g = m->graph;
    const onnx_value *const x = c->inputs[0];
    const uint64_t groups = x->dims[0] * d->offset_groups;
    sampling s = { .sizes = { x->dims[2], x->dims[3] }, .channels = x->dims[1] / d->offset_groups,
                   .places = d->taps * d->places, .batch = groups, .axes = 2, .beyond = ZEROS };
    s.type = s.image_type = ONNX_FLOAT;
    const uint64_t image[3] = { groups, s.channels, x->dims[2] * x->dims[3] }, flat[3] = { groups, 1, s.places };
    const uint64_t apart[4] = { groups, d->taps * 2, d->sizes[0], d->sizes[1] };
    s.image = opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_FLOAT), 3, image);
    const opjit_tensor moves =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 2), x->type, ONNX_FLOAT), 4, apart);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t begin[4] = { 0, i, 0, 0 };
        const int32_t strides[4] = { 1, 2, 1, 1 };
        const uint32_t sizes[4] = { (uint32_t)groups, (uint32_t)d->taps, (uint32_t)d->sizes[0], (uint32_t)d->sizes[1] };
        const opjit_tensor move = opjit_graph_slice(g, moves, begin, sizes, strides);
        s.place[i] = opjit_onnx_reshape(m, opjit_graph_add(g, move, unmoved(m, d, i)), 3, flat);
    }
    const opjit_tensor y = between(m, &s, false);
    if (onnx_input(c, 4) == NULL)
        return y;
    const opjit_tensor mask =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 4), x->type, ONNX_FLOAT), 3, flat);
    return opjit_graph_multiply(g, y, mask);
}

opjit_status opjit_onnx_deform_conv(onnx_import *m, onnx_call *c)
{
    deformed d;
    TRY(read_deformed(m, c, &d));
    TRY(check_moves(m, c, &d, 2, 2));
    if (onnx_input(c, 4) != NULL)
        TRY(check_moves(m, c, &d, 4, 1));
    opjit_graph *const g = m->graph;
    const onnx_value *const x = c->inputs[0], *const w = c->inputs[1];
    const uint64_t terms = w->dims[1] * d.taps, rows = w->dims[0] / d.groups;
    const uint64_t columns[4] = { x->dims[0], d.groups, terms, d.places }, filters[4] = { 1, d.groups, rows, terms };
    const uint64_t result[4] = { x->dims[0], w->dims[0], d.sizes[0], d.sizes[1] };
    const uint32_t wide[4] = { (uint32_t)x->dims[0], (uint32_t)d.groups, (uint32_t)rows, (uint32_t)terms };
    const opjit_tensor filter =
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), w->type, ONNX_FLOAT), 4, filters);
    const opjit_tensor elements = opjit_onnx_reshape(m, taps_of(m, c, &d), 4, columns);
    opjit_tensor y = opjit_graph_matrix_multiply(g, opjit_graph_broadcast(g, filter, 4, wide), elements, 0, 0);
    y = opjit_onnx_reshape(m, y, 4, result);
    if (onnx_input(c, 3) != NULL)
        y = opjit_graph_add(g, y, opjit_onnx_cast(m, opjit_onnx_vector(m, c, 3, 4, 1), x->type, ONNX_FLOAT));
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, ONNX_FLOAT, x->type), x->type, 4, result);
}
