/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - convolutions and pooling.  Tensors are {batch, channels, ...}; the operators take two or three spatial
 * dimensions, so that one becomes two, the first of size 1. */
#include "frontend/graph/build.h"
#include "frontend/onnx/ops/ops.h"

#define SPATIAL 3u

/* A window that slides: what ONNX says of it, as the operators take it. */
typedef struct window {
    uint32_t count; /* spatial dimensions: 2 or 3 */
    bool lifted;    /* one spatial dimension has become two */
    uint32_t sizes[SPATIAL], strides[SPATIAL], dilations[SPATIAL], start[SPATIAL], end[SPATIAL];
} window;

/* Moves what stands at index 0 to index 1. */
static void lift(window *w)
{
    uint32_t *const lists[] = { w->sizes, w->strides, w->dilations, w->start, w->end };
    for (uint32_t i = 0; i < 5; i++) {
        lists[i][1] = lists[i][0];
        lists[i][0] = i < 3 ? 1 : 0;
    }
    w->count = 2;
    w->lifted = true;
}

/* The tensor with two spatial dimensions at least. */
static opjit_tensor lifted(onnx_import *m, opjit_tensor t, const onnx_value *v)
{
    if (v->rank != 3)
        return t;
    const uint64_t dims[4] = { v->dims[0], v->dims[1], 1, v->dims[2] };
    return opjit_onnx_reshape(m, t, 4, dims);
}

/* Padding so that there are ceil(size / stride) windows. */
static void pad_same(const onnx_value *x, bool upper, window *w)
{
    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t size = x->dims[2 + d], stride = w->strides[d], count = (size + stride - 1) / stride;
        const uint64_t need = (count - 1) * stride + (uint64_t)(w->sizes[d] - 1) * w->dilations[d] + 1;
        const uint32_t total = need > size ? (uint32_t)(need - size) : 0;
        w->start[d] = upper ? total / 2 : total - total / 2;
        w->end[d] = total - w->start[d];
    }
}

/* Reads strides, dilations and padding; sizes of the window are there. */
static opjit_status read_window(onnx_import *m, const onnx_call *c, const onnx_value *x, window *w)
{
    static const char *const names[] = { "the stride", "the dilation", "the size of the window" };
    uint32_t pads[2 * SPATIAL];
    TRY(opjit_onnx_spatial(m, c, "strides", w->count, 1, w->strides));
    TRY(opjit_onnx_spatial(m, c, "dilations", w->count, 1, w->dilations));
    TRY(opjit_onnx_spatial(m, c, "pads", 2 * w->count, 0, pads));
    for (uint32_t d = 0; d < w->count; d++) {
        w->start[d] = pads[d];
        w->end[d] = pads[w->count + d];
        const uint32_t numbers[] = { w->strides[d], w->dilations[d], w->sizes[d] };
        for (uint32_t i = 0; i < 3; i++)
            if (numbers[i] == 0)
                return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                         "%s along spatial dimension %u: 0, must be at least 1", names[i], d);
    }
    if (opjit_onnx_text_is(m, c, "auto_pad", "SAME_UPPER", "NOTSET"))
        pad_same(x, true, w);
    else if (opjit_onnx_text_is(m, c, "auto_pad", "SAME_LOWER", "NOTSET"))
        pad_same(x, false, w);
    return OPJIT_OK;
}

/* Checks the ranks and gives the number of spatial dimensions. */
static opjit_status spatial_of(onnx_import *m, const onnx_call *c, const onnx_value *x, uint32_t *out)
{
    if (x->rank < 3 || x->rank > 2 + SPATIAL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions, must be 3 to 5", x->rank);
    *out = x->rank - 2;
    return OPJIT_OK;
}

/* The result of a window operator: with one spatial dimension less where one was added. */
static opjit_status give_window(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor y, int32_t type, const window *w)
{
    opjit_tensor_type got;
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_status(m));
    (void)opjit_graph_get_type(m->graph, y, &got);
    uint32_t rank = 0;
    for (uint32_t d = 0; d < got.rank; d++)
        if (!w->lifted || d != 2)
            dims[rank++] = got.sizes[d];
    return opjit_onnx_give_as(m, c, i, y, type, rank, dims);
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

/* A vector of one number per channel, as {1, channels, 1, 1}; null where it is absent. */
static opjit_tensor per_channel(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t rank)
{
    return opjit_onnx_vector(m, c, i, rank, 1);
}

/* The window of a convolution with the filter at input i. */
static opjit_status read_filter(onnx_import *m, const onnx_call *c, uint32_t i, window *w)
{
    const onnx_value *const x = c->inputs[0], *const filter = c->inputs[i];
    *w = (window){ 0 };
    TRY(spatial_of(m, c, x, &w->count));
    if (filter->rank != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a filter of %u dimensions, must be %u", filter->rank,
                                 x->rank);
    TRY(opjit_onnx_spatial(m, c, "kernel_shape", w->count, 0, w->sizes));
    for (uint32_t d = 0; d < w->count; d++) {
        if (w->sizes[d] != 0 && w->sizes[d] != filter->dims[2 + d])
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "attribute kernel_shape: %u, must be %llu as size %u of the filter", w->sizes[d],
                                     (unsigned long long)filter->dims[2 + d], 2 + d);
        w->sizes[d] = (uint32_t)filter->dims[2 + d];
    }
    return read_window(m, c, x, w);
}

/* The convolution of the window; extra: at the end of what a backward one makes. */
static opjit_status give_convolution(onnx_import *m, onnx_call *c, window *w, DML_CONVOLUTION_DIRECTION direction,
                                     uint32_t *extra)
{
    if (w->count == 1) {
        lift(w);
        extra[1] = extra[0];
        extra[0] = 0;
    }
    const DML_CONVOLUTION_OPERATOR_DESC desc = { .Mode = DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                                 .Direction = direction,
                                                 .DimensionCount = w->count,
                                                 .Strides = w->strides,
                                                 .Dilations = w->dilations,
                                                 .StartPadding = w->start,
                                                 .EndPadding = w->end,
                                                 .OutputPadding = extra,
                                                 .GroupCount = (uint32_t)opjit_onnx_int(m, c, "group", 1) };
    const opjit_tensor inputs[3] = { lifted(m, onnx_tensor_of(m, c, 0), c->inputs[0]),
                                     lifted(m, onnx_tensor_of(m, c, 1), c->inputs[1]),
                                     per_channel(m, c, 2, w->count + 2) };
    return give_window(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_CONVOLUTION, &desc, inputs, 3),
                       c->inputs[0]->type, w);
}

opjit_status opjit_onnx_conv(onnx_import *m, onnx_call *c)
{
    window w;
    uint32_t none[SPATIAL] = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_filter(m, c, 1, &w));
    TRY(give_convolution(m, c, &w, DML_CONVOLUTION_DIRECTION_FORWARD, none));
    return opjit_onnx_remember(m, c);
}

/* Padding of a transposed convolution whose output_shape is given, or by auto_pad. */
static opjit_status transposed_padding(onnx_import *m, const onnx_call *c, window *w, uint32_t *extra)
{
    uint32_t shape[SPATIAL];
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_spatial(m, c, "output_padding", w->count, 0, extra));
    TRY(opjit_onnx_spatial(m, c, "output_shape", w->count, 0, shape));
    const bool upper = opjit_onnx_text_is(m, c, "auto_pad", "SAME_UPPER", "NOTSET");
    const bool same = upper || opjit_onnx_text_is(m, c, "auto_pad", "SAME_LOWER", "NOTSET");
    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t whole =
            (x->dims[2 + d] - 1) * w->strides[d] + (uint64_t)(w->sizes[d] - 1) * w->dilations[d] + 1 + extra[d];
        const uint64_t want = shape[d] != 0 ? shape[d] : x->dims[2 + d] * w->strides[d];
        if (shape[d] == 0 && !same)
            continue;
        const uint32_t total = whole > want ? (uint32_t)(whole - want) : 0;
        /* ONNX: with SAME_UPPER the end has the odd one, else the start. */
        w->start[d] = upper ? total / 2 : total - total / 2;
        w->end[d] = total - w->start[d];
        if (want > whole && shape[d] != 0) /* auto_pad pads, and adds nothing */
            extra[d] += (uint32_t)(want - whole);
    }
    return OPJIT_OK;
}

/* Whether no two windows meet: each input element makes a block of its own. */
static bool is_apart(const window *w, const uint32_t *extra)
{
    bool apart = true;
    for (uint32_t d = 0; d < w->count; d++)
        apart = apart && w->sizes[d] == w->strides[d] && w->dilations[d] == 1 && w->start[d] == 0 && w->end[d] == 0 &&
                extra[d] == 0;
    return apart;
}

/* A transposed convolution whose windows don't meet is a product {outputs * window, inputs} by {inputs, places}, whose
 * blocks then move to their places. */
static opjit_status conv_transpose_apart(onnx_import *m, onnx_call *c, const window *w)
{
    const onnx_value *const x = c->inputs[0], *const filter = c->inputs[1];
    uint64_t rows = 1;
    uint64_t places = 1, wide[2 * SPATIAL + 2], result[SPATIAL + 2];
    uint32_t order[2 * SPATIAL + 2] = { 0, 1 };
    opjit_graph *const g = m->graph;
    wide[0] = result[0] = x->dims[0];
    wide[1] = result[1] = filter->dims[1];
    for (uint32_t d = 0; d < w->count; d++) {
        places *= x->dims[2 + d];
        rows *= w->sizes[d];
        wide[2 + d] = w->sizes[d];
        wide[2 + w->count + d] = x->dims[2 + d];
        order[2 + 2 * d] = 2 + w->count + d;
        order[3 + 2 * d] = 2 + d;
        result[2 + d] = x->dims[2 + d] * w->sizes[d];
    }
    rows *= filter->dims[1];
    const uint64_t a[3] = { 1, filter->dims[0], rows }, b[3] = { x->dims[0], x->dims[1], places };
    const uint32_t repeated[3] = { (uint32_t)x->dims[0], (uint32_t)filter->dims[0], (uint32_t)rows };
    const opjit_tensor left =
        opjit_graph_broadcast(g, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), 3, a), 3, repeated);
    opjit_tensor y = opjit_graph_matrix_multiply(g, left, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, b), 1, 0);
    y = opjit_graph_transpose(g, opjit_onnx_reshape(m, y, 2 * w->count + 2, wide), order);
    y = opjit_onnx_reshape(m, y, w->count + 2, result);
    if (onnx_input(c, 2) != NULL)
        y = opjit_graph_add(g, y, per_channel(m, c, 2, w->count + 2));
    return opjit_onnx_give_as(m, c, 0, y, x->type, w->count + 2, result);
}

opjit_status opjit_onnx_conv_transpose(onnx_import *m, onnx_call *c)
{
    window w;
    uint32_t extra[SPATIAL] = { 0 };
    TRY(opjit_onnx_need(m, c, 2));
    TRY(read_filter(m, c, 1, &w));
    TRY(transposed_padding(m, c, &w, extra));
    if (is_apart(&w, extra) && opjit_onnx_int(m, c, "group", 1) == 1)
        return conv_transpose_apart(m, c, &w);
    return give_convolution(m, c, &w, DML_CONVOLUTION_DIRECTION_BACKWARD, extra);
}

/* ConvInteger, and QLinearConv (arg 1). */
opjit_status opjit_onnx_conv_quantized(onnx_import *m, onnx_call *c)
{
    const bool linear = c->row->arg == 1;
    window w;
    TRY(opjit_onnx_need(m, c, linear ? 8 : 2));
    TRY(read_filter(m, c, linear ? 3 : 1, &w));
    if (w.count == 1)
        lift(&w);
    const uint32_t rank = w.count + 2, groups = (uint32_t)opjit_onnx_int(m, c, "group", 1);
    const opjit_tensor x = lifted(m, onnx_tensor_of(m, c, 0), c->inputs[0]);
    if (!linear) {
        const DML_CONVOLUTION_INTEGER_OPERATOR_DESC desc = { NULL,      NULL,        NULL,    NULL,  NULL,  w.count,
                                                             w.strides, w.dilations, w.start, w.end, groups };
        const opjit_tensor inputs[4] = { x, per_channel(m, c, 2, rank),
                                         lifted(m, onnx_tensor_of(m, c, 1), c->inputs[1]), per_channel(m, c, 3, rank) };
        return give_window(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_CONVOLUTION_INTEGER, &desc, inputs, 4),
                           ONNX_INT32, &w);
    }
    DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC desc = { 0 };
    desc.DimensionCount = w.count;
    desc.Strides = w.strides;
    desc.Dilations = w.dilations;
    desc.StartPadding = w.start;
    desc.EndPadding = w.end;
    desc.GroupCount = groups;
    const opjit_tensor inputs[9] = { x,
                                     per_channel(m, c, 1, rank),
                                     per_channel(m, c, 2, rank),
                                     lifted(m, onnx_tensor_of(m, c, 3), c->inputs[3]),
                                     per_channel(m, c, 4, rank),
                                     per_channel(m, c, 5, rank),
                                     per_channel(m, c, 8, rank),
                                     per_channel(m, c, 6, rank),
                                     per_channel(m, c, 7, rank) };
    return give_window(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION, &desc, inputs, 9),
                       c->inputs[7]->type, &w);
}

/* --- pooling ------------------------------------------------------------------------------------------------------ */

/* With ceil_mode a last window may end behind the padding: more of it, in *beyond. */
static void pad_last_window(const onnx_value *x, window *w, bool *beyond)
{
    for (uint32_t d = 0; d < w->count; d++) {
        const int64_t span = (int64_t)(w->sizes[d] - 1) * w->dilations[d] + 1;
        const int64_t room = (int64_t)x->dims[2 + d] + w->start[d] + w->end[d] - span;
        int64_t last = room < 0 ? 0 : (room + w->strides[d] - 1) / w->strides[d];
        if (last * w->strides[d] >= (int64_t)x->dims[2 + d] + w->start[d])
            last--; /* a window that begins behind the elements is none */
        const int64_t more = last * w->strides[d] - room;
        if (more > 0) {
            w->end[d] += (uint32_t)more;
            *beyond = true;
        }
    }
}

/* Input 0 with the padding that is counted as its own elements; the window keeps what lies behind it. */
static onnx_value pad_ahead(onnx_import *m, const onnx_call *c, const window *counted, window *w)
{
    onnx_value v = *c->inputs[0];
    uint32_t start[ONNX_RANK] = { 0 }, end[ONNX_RANK] = { 0 };
    for (uint32_t d = 0; d < w->count; d++) {
        start[2 + d] = counted->start[d];
        end[2 + d] = counted->end[d];
        v.dims[2 + d] += (uint64_t)start[2 + d] + end[2 + d];
        w->end[d] -= counted->end[d];
        w->start[d] = 0;
    }
    v.tensor = opjit_graph_pad(m->graph, onnx_tensor_of(m, c, 0), v.rank, start, end, 0);
    return v;
}

/* Numbers of elements of {batches, channels, height, width} that count down the columns of each channel. */
static opjit_tensor count_by_columns(onnx_import *m, opjit_tensor at, const uint64_t *dims)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor height = opjit_onnx_scalar(m, ONNX_INT64, (double)dims[2]);
    const opjit_tensor width = opjit_onnx_scalar(m, ONNX_INT64, (double)dims[3]);
    const opjit_tensor line = opjit_graph_divide(g, at, width), column = opjit_graph_modulus_truncate(g, at, width);
    const opjit_tensor row = opjit_graph_modulus_truncate(g, line, height);
    const opjit_tensor first = opjit_graph_multiply(g, opjit_graph_subtract(g, line, row), width);
    return opjit_graph_add(g, first, opjit_graph_add(g, opjit_graph_multiply(g, column, height), row));
}

/* AveragePool, MaxPool, LpPool and their global forms; arg: the operator, negative for a global one. */
opjit_status opjit_onnx_pool(onnx_import *m, onnx_call *c)
{
    const bool global = c->row->arg < 0;
    const DML_OPERATOR_TYPE type = (DML_OPERATOR_TYPE)(global ? -c->row->arg : c->row->arg);
    window w = { 0 };
    bool beyond = false;
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value padded = *c->inputs[0];
    const onnx_value *x = c->inputs[0];
    TRY(spatial_of(m, c, x, &w.count));
    TRY(opjit_onnx_spatial(m, c, "kernel_shape", w.count, 1, w.sizes));
    for (uint32_t d = 0; d < w.count && global; d++)
        w.sizes[d] = (uint32_t)x->dims[2 + d];
    TRY(read_window(m, c, x, &w));
    const window floored = w;
    if (opjit_onnx_int(m, c, "ceil_mode", 0) != 0)
        pad_last_window(x, &w, &beyond);
    bool counts_padding = opjit_onnx_int(m, c, "count_include_pad", 0) != 0;
    if (beyond && counts_padding && type == DML_OPERATOR_AVERAGE_POOLING1) {
        padded = pad_ahead(m, c, &floored, &w);
        x = &padded;
        counts_padding = false;
    }
    const bool by_columns = onnx_wants(c, 1) && opjit_onnx_int(m, c, "storage_order", 0) != 0;
    if (by_columns && w.count > 2)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "indices by columns of 3 spatial dimensions");
    if (w.count == 1)
        lift(&w);
    const opjit_tensor t = lifted(m, x == &padded ? padded.tensor : onnx_tensor_of(m, c, 0), x);
    opjit_tensor results[2];
    const DML_AVERAGE_POOLING1_OPERATOR_DESC average = { NULL,    NULL,  w.count,     w.strides,     w.sizes,
                                                         w.start, w.end, w.dilations, counts_padding };
    const DML_LP_POOLING1_OPERATOR_DESC lp = { NULL,      NULL,        w.count,
                                               w.strides, w.sizes,     w.start,
                                               w.end,     w.dilations, (uint32_t)opjit_onnx_int(m, c, "p", 2) };
    const DML_MAX_POOLING2_OPERATOR_DESC max = { NULL,    NULL,    NULL,  w.count,    w.strides,
                                                 w.sizes, w.start, w.end, w.dilations };
    const void *const desc = type == DML_OPERATOR_AVERAGE_POOLING1 ? (const void *)&average
                             : type == DML_OPERATOR_LP_POOLING1    ? (const void *)&lp
                                                                   : (const void *)&max;
    opjit_onnx_add(m, type, desc, &t, 1, results, onnx_wants(c, 1) ? 2 : 1);
    TRY(give_window(m, c, 0, results[0], x->type, &w));
    if (!onnx_wants(c, 1))
        return OPJIT_OK;
    opjit_tensor at = opjit_onnx_cast(m, results[1], ONNX_UINT32, ONNX_INT64);
    if (by_columns && x->rank == 4)
        at = count_by_columns(m, at, x->dims);
    return give_window(m, c, 1, at, ONNX_INT64, &w);
}

/* Sizes that elements were pooled from, as the window says, in *dims; pads: zeros behind them that a given shape
 * has. */
static opjit_status unpooled_sizes(onnx_import *m, const onnx_call *c, uint64_t *dims, uint32_t *pads)
{
    const onnx_value *const x = c->inputs[0];
    window w = { 0 };
    int64_t *given;
    uint32_t count;
    TRY(spatial_of(m, c, x, &w.count));
    TRY(opjit_onnx_spatial(m, c, "kernel_shape", w.count, 1, w.sizes));
    TRY(read_window(m, c, x, &w));
    TRY(opjit_onnx_input_ints(m, c, 2, &given, &count));
    if (count != 0 && count != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "output_shape has %u sizes, must be %u", count, x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t size = (int64_t)x->dims[d];
        if (d >= 2)
            size = (size - 1) * w.strides[d - 2] + w.sizes[d - 2] - w.start[d - 2] - w.end[d - 2];
        const int64_t wanted = count == 0 ? size : given[d];
        if (size < 1 || wanted < size || wanted > UINT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "size %lld of the result, must be at least %lld",
                                     (long long)wanted, (long long)(size < 1 ? 1 : size));
        dims[d] = (uint64_t)size;
        pads[d] = (uint32_t)(wanted - size);
    }
    return OPJIT_OK;
}

/* Elements at their places among zeros; a place counts through all dimensions of what was pooled. */
opjit_status opjit_onnx_max_unpool(onnx_import *m, onnx_call *c)
{
    const uint32_t none[ONNX_RANK] = { 0 };
    uint32_t pads[ONNX_RANK];
    uint64_t dims[ONNX_RANK], total = 1;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    if (at->rank != x->rank || memcmp(at->dims, x->dims, x->rank * sizeof x->dims[0]) != 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "indices have other sizes than the elements");
    TRY(unpooled_sizes(m, c, dims, pads));
    for (uint32_t d = 0; d < x->rank; d++) {
        if (dims[d] > UINT32_MAX / total)
            return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "a result of 2^32 elements or more");
        total *= dims[d];
    }
    const uint64_t flat[4] = { 1, 1, 1, opjit_onnx_elements_of(x) };
    const opjit_tensor places = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), at->type, ONNX_UINT64);
    const opjit_tensor inputs[2] = { opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 4, flat),
                                     opjit_onnx_reshape(m, places, 4, flat) };
    const DML_MAX_UNPOOLING_OPERATOR_DESC desc = { NULL, NULL, NULL };
    const opjit_tensor_type type = { DML_TENSOR_DATA_TYPE_UNKNOWN, 4, { 1, 1, 1, (uint32_t)total } };
    opjit_tensor y = opjit_fe_build_op(m->graph, DML_OPERATOR_MAX_UNPOOLING, &desc, inputs, 2, &type);
    y = opjit_onnx_reshape(m, y, x->rank, dims);
    if (memcmp(pads, none, x->rank * sizeof pads[0]) != 0)
        y = opjit_graph_pad(m->graph, y, x->rank, none, pads, 0);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* GlobalAveragePool and GlobalMaxPool: over all but the first two dimensions. */
opjit_status opjit_onnx_global_pool(onnx_import *m, onnx_call *c)
{
    uint32_t axes[ONNX_RANK], count = 0;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    for (uint32_t d = 2; d < x->rank; d++)
        axes[count++] = d;
    opjit_tensor y = onnx_tensor_of(m, c, 0);
    if (count != 0)
        y = opjit_graph_reduce(m->graph, y, (DML_REDUCE_FUNCTION)c->row->arg, count, axes);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}

/* --- com.microsoft's forms ---------------------------------------------------------------------------------------- */

/* FusedConv: an activation of Conv, and of input 3, which is added before. */
opjit_status opjit_onnx_fused_conv(onnx_import *m, onnx_call *c)
{
    const onnx_attribute *const given = opjit_onnx_attribute(m, c, "activation_params");
    float numbers[2] = { 0 };
    for (uint32_t i = 0; i < 2 && given != NULL && given->floats != NULL && i < given->count; i++)
        numbers[i] = given->floats[i];
    TRY(opjit_onnx_conv(m, c));
    const onnx_value *const y = &c->outputs[0];
    if (onnx_input(c, 3) != NULL)
        TRY(opjit_onnx_give(m, c, 0, opjit_graph_add(m->graph, y->tensor, onnx_tensor_of(m, c, 3)), y->type, y->rank));
    return opjit_onnx_activate(m, c, numbers);
}

/* The operator, between transposes where the channels come last; arg: which one. */
opjit_status opjit_onnx_channels_last(onnx_import *m, onnx_call *c)
{
    static const onnx_row rows[] = { { "", "MaxPool", opjit_onnx_pool, DML_OPERATOR_MAX_POOLING2, NULL },
                                     { "", "QLinearConv", opjit_onnx_conv_quantized, 1, NULL },
                                     { "com.microsoft", "", opjit_onnx_qlinear, 0, NULL } };
    const onnx_row *const row = &rows[c->row->arg];
    uint32_t axes[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value x = *c->inputs[0], y;
    if (c->row->arg != 0 && opjit_onnx_int(m, c, "channels_last", 0) == 0)
        return opjit_onnx_call_row(m, c, c->node, row, c->inputs, c->input_count, &c->outputs[0]);
    if (x.rank < 3)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u dimensions, must be at least 3", x.rank);
    for (uint32_t d = 0; d < x.rank; d++) {
        axes[d] = d == 0 ? 0 : d == 1 ? x.rank - 1 : d - 1;
        x.dims[d] = c->inputs[0]->dims[axes[d]];
    }
    onnx_value first = onnx_value_of(&x, x.type, opjit_onnx_transpose_tensor(m, onnx_tensor_of(m, c, 0), x.rank, axes));
    onnx_value **const inputs = ARENA_ARRAY(m->arena, onnx_value *, (size_t)c->input_count);
    if (inputs == NULL)
        return opjit_rt_no_memory(m->error);
    memcpy(inputs, c->inputs, c->input_count * sizeof *inputs);
    inputs[0] = &first;
    TRY(opjit_onnx_call_row(m, c, c->node, row, inputs, c->input_count, &y));
    for (uint32_t d = 0; d < y.rank; d++)
        axes[d] = d == 0 ? 0 : d == y.rank - 1 ? 1 : d + 1;
    return opjit_onnx_give(m, c, 0, opjit_onnx_transpose_tensor(m, y.tensor, y.rank, axes), y.type, y.rank);
}
