/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - operators that move elements: parts, joins, gathers, padding. */
#include "frontend/graph/build.h"
#include "frontend/onnx/ops/ops.h"

/* Parts without elements are left out: exporters write them. */
opjit_status opjit_onnx_concat(onnx_import *m, onnx_call *c)
{
    uint32_t axis, count = 0;
    TRY(opjit_onnx_need(m, c, c->input_count == 0 ? 1 : c->input_count));
    const onnx_value *x = c->inputs[0];
    opjit_tensor *const parts = ARENA_ARRAY(m->arena, opjit_tensor, c->input_count);
    if (parts == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", m->opset < 4 ? 1 : 0), x->rank, &axis));
    for (uint32_t i = 0; i < c->input_count; i++)
        if (opjit_onnx_elements_of(c->inputs[i]) != 0) {
            x = c->inputs[i];
            parts[count++] = onnx_tensor_of(m, c, i);
        }
    if (count <= 1)
        return opjit_onnx_give_value(m, c, 0, x);
    return opjit_onnx_give(m, c, 0, opjit_onnx_join(m, parts, count, axis), x->type, x->rank);
}

/* Sizes of Split's parts: given, or equal but for the last one. */
static opjit_status part_sizes(onnx_import *m, onnx_call *c, uint64_t size, uint64_t *out)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "split");
    int64_t *given = a == NULL ? NULL : a->ints;
    uint32_t count = a == NULL ? 0 : a->count;
    uint64_t left = size;
    if (a == NULL)
        TRY(opjit_onnx_input_ints(m, c, 1, &given, &count));
    if (count != 0 && count != c->output_count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u sizes of parts, but %u outputs", count,
                                 c->output_count);
    const uint64_t each = (size + c->output_count - 1) / c->output_count;
    for (uint32_t i = 0; i < c->output_count; i++) {
        out[i] = count != 0 ? (uint64_t)given[i] : each < left ? each : left;
        if (out[i] > left)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "part %u has size %lld, but %llu are left", i,
                                     (long long)out[i], (unsigned long long)left);
        left -= out[i];
    }
    return left == 0 ? OPJIT_OK
                     : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "the parts leave %llu of the dimension over",
                                         (unsigned long long)left);
}

opjit_status opjit_onnx_split(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    uint64_t *const parts = ARENA_ARRAY(m->arena, uint64_t, (size_t)c->output_count + 1);
    if (parts == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(part_sizes(m, c, x->dims[axis], parts));
    uint32_t offsets[ONNX_RANK] = { 0 }, sizes[ONNX_RANK];
    onnx_value part = { .rank = x->rank };
    for (uint32_t d = 0; d < x->rank; d++) {
        part.dims[d] = x->dims[d];
        sizes[d] = (uint32_t)x->dims[d];
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        part.dims[axis] = parts[i];
        sizes[axis] = (uint32_t)parts[i];
        if (onnx_wants(c, i))
            TRY(opjit_onnx_elements_of(&part) == 0
                    ? opjit_onnx_give_nothing(m, c, i, x->type, x->rank, part.dims)
                    : opjit_onnx_give(m, c, i,
                                      opjit_graph_slice(m->graph, onnx_tensor_of(m, c, 0), offsets, sizes, NULL),
                                      x->type, x->rank));
        offsets[axis] += (uint32_t)parts[i];
    }
    return OPJIT_OK;
}

/* Starts, ends, axes and steps of Slice: attributes up to opset 9, inputs from 10 on. */
typedef struct slices {
    int64_t *starts, *ends, *axes, *steps;
    uint32_t count, axis_count, step_count;
} slices;

static opjit_status read_slices(onnx_import *m, onnx_call *c, slices *s)
{
    uint32_t ends;
    const onnx_attribute *const starts = opjit_onnx_attribute(m, c, "starts");
    const onnx_attribute *const last = opjit_onnx_attribute(m, c, "ends");
    const onnx_attribute *const axes = opjit_onnx_attribute(m, c, "axes");
    *s = (slices){ 0 };
    if (starts != NULL && last != NULL && starts->ints != NULL && last->ints != NULL && starts->count == last->count) {
        s->starts = starts->ints;
        s->ends = last->ints;
        s->count = starts->count;
        s->axes = axes == NULL ? NULL : axes->ints;
        s->axis_count = axes == NULL ? 0 : axes->count;
        return OPJIT_OK;
    }
    TRY(opjit_onnx_need(m, c, 3));
    TRY(opjit_onnx_input_ints(m, c, 1, &s->starts, &s->count));
    TRY(opjit_onnx_input_ints(m, c, 2, &s->ends, &ends));
    TRY(opjit_onnx_input_ints(m, c, 3, &s->axes, &s->axis_count));
    TRY(opjit_onnx_input_ints(m, c, 4, &s->steps, &s->step_count));
    if (ends != s->count)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u starts, but %u ends", s->count, ends);
    return OPJIT_OK;
}

/* What one axis keeps: first, how many, how far apart. */
static void window_of(int64_t size, int64_t start, int64_t end, int64_t step, uint64_t *out_first, uint64_t *out_count)
{
    start = start < 0 ? start + size : start;
    end = end < 0 && end >= -size ? end + size : end;
    if (step > 0) {
        start = start < 0 ? 0 : start > size ? size : start;
        end = end < 0 ? 0 : end > size ? size : end;
        *out_count = end > start ? (uint64_t)((end - start + step - 1) / step) : 0;
    } else {
        start = start < 0 ? 0 : start; /* as the standard says; NumPy takes none of these */
        start = start >= size ? size - 1 : start;
        end = end < 0 ? -1 : end >= size ? size - 1 : end;
        *out_count = start > end ? (uint64_t)((start - end - step - 1) / -step) : 0;
    }
    *out_first = (uint64_t)start;
}

opjit_status opjit_onnx_slice(onnx_import *m, onnx_call *c)
{
    slices s;
    uint32_t offsets[ONNX_RANK] = { 0 }, sizes[ONNX_RANK];
    int32_t strides[ONNX_RANK];
    uint64_t dims[ONNX_RANK];
    bool empty = false;
    TRY(opjit_onnx_need(m, c, 1));
    onnx_value *const x = c->inputs[0];
    TRY(read_slices(m, c, &s));
    if ((s.axis_count != 0 && s.axis_count != s.count) || (s.step_count != 0 && s.step_count != s.count) ||
        s.count > x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%u starts, %u axes, %u steps: must be as many, at most the %u dimensions", s.count,
                                 s.axis_count, s.step_count, x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        dims[d] = x->dims[d];
        strides[d] = 1;
    }
    for (uint32_t i = 0; i < s.count; i++) {
        uint32_t axis;
        uint64_t first;
        int64_t step = s.step_count == 0 ? 1 : s.steps[i];
        TRY(opjit_onnx_axis(m, c, s.axis_count == 0 ? i : s.axes[i], x->rank, &axis));
        if (step == 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "step %u: 0, must be another number", i);
        step = step > INT32_MAX ? INT32_MAX : step < -INT32_MAX ? -INT32_MAX : step;
        window_of((int64_t)x->dims[axis], s.starts[i], s.ends[i], step, &first, &dims[axis]);
        strides[axis] = (int32_t)step;
        offsets[axis] = (uint32_t)first;
        /* A window that counts down is given by its lowest element's offset. */
        if (step < 0 && dims[axis] != 0)
            offsets[axis] = (uint32_t)(first - (dims[axis] - 1) * (uint64_t)-step);
        if (dims[axis] <= 1)
            strides[axis] = 1;
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        empty = empty || dims[d] == 0;
        sizes[d] = (uint32_t)dims[d];
    }
    if (empty)
        return opjit_onnx_give_data(m, c, 0, x->type, x->rank, dims, ""); /* no elements: any memory will do */
    const opjit_tensor y = opjit_graph_slice(m->graph, onnx_tensor_of(m, c, 0), offsets, sizes, strides);
    return opjit_onnx_give_as(m, c, 0, y, x->type, x->rank, dims);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_gather(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    uint64_t dims[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    const uint32_t rank = x->rank - 1 + at->rank;
    if (rank > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", rank, ONNX_RANK);
    uint32_t d = 0;
    for (uint32_t i = 0; i < axis; i++)
        dims[d++] = x->dims[i];
    for (uint32_t i = 0; i < at->rank; i++)
        dims[d++] = at->dims[i];
    for (uint32_t i = axis + 1; i < x->rank; i++)
        dims[d++] = x->dims[i];
    if (opjit_onnx_elements_of(at) == 0 || (opjit_onnx_elements_of(x) == 0 && x->dims[axis] != 0))
        return opjit_onnx_give_nothing(m, c, 0, x->type, rank, dims);
    /* DirectML's ranks are those of the input, so it is three dimensions: before, along and behind the axis. */
    uint64_t flat[3] = { 1, x->dims[axis], 1 };
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis)
            flat[i < axis ? 0 : 2] *= x->dims[i];
    const uint64_t indices[3] = { 1, 1, opjit_onnx_elements_of(at) };
    const opjit_tensor y = opjit_graph_gather(m->graph, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 3, flat),
                                              opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), 3, indices), 1, 1);
    return opjit_onnx_give_as(m, c, 0, y, x->type, rank, dims);
}

opjit_status opjit_onnx_gather_elements(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { NULL, NULL, NULL, axis };
    const opjit_tensor inputs[2] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1) };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_GATHER_ELEMENTS, &desc, inputs, 2);
    return opjit_onnx_give(m, c, 0, y, x->type, c->inputs[1]->rank);
}

opjit_status opjit_onnx_gather_nd(onnx_import *m, onnx_call *c)
{
    uint64_t dims[ONNX_RANK], wide[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    const int64_t batch = opjit_onnx_int(m, c, "batch_dims", 0);
    if (at->rank == 0 || x->rank == 0 || batch < 0 || batch >= at->rank || batch >= x->rank ||
        at->dims[at->rank - 1] > x->rank - (uint64_t)batch)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "indices of %u numbers into %u dimensions",
                                 at->rank == 0 ? 0 : (unsigned)at->dims[at->rank - 1], x->rank);
    const uint32_t length = (uint32_t)at->dims[at->rank - 1];
    const uint32_t rank = at->rank - 1 + x->rank - (uint32_t)batch - length;
    const uint32_t whole = x->rank > at->rank ? x->rank : at->rank;
    if (rank > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", rank, ONNX_RANK);
    for (uint32_t d = 0; d < at->rank - 1; d++)
        dims[d] = at->dims[d];
    for (uint32_t d = 0; d < rank - (at->rank - 1); d++)
        dims[at->rank - 1 + d] = x->dims[(uint32_t)batch + length + d];
    if (opjit_onnx_elements_of(at) == 0)
        return opjit_onnx_give_nothing(m, c, 0, x->type, rank, dims);
    /* Tensors of one rank, with ones before: output and inputs alike. */
    const uint32_t all = whole > rank ? whole : rank;
    opjit_tensor inputs[2];
    for (uint32_t i = 0; i < 2; i++) {
        const onnx_value *const v = c->inputs[i];
        for (uint32_t d = 0; d < all; d++)
            wide[d] = d < all - v->rank ? 1 : v->dims[d - (all - v->rank)];
        inputs[i] = opjit_onnx_reshape(m, onnx_tensor_of(m, c, i), all, wide);
    }
    const DML_GATHER_ND1_OPERATOR_DESC desc = { NULL, NULL, NULL, x->rank, at->rank, (uint32_t)batch };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_GATHER_ND1, &desc, inputs, 2);
    return opjit_onnx_give_as(m, c, 0, y, x->type, rank, dims);
}

/* Of OneHot: a whole number, which may be of a float's type. */
static opjit_status read_depth(onnx_import *m, const onnx_call *c, int64_t *out)
{
    double *numbers;
    uint32_t count;
    TRY(opjit_onnx_input_floats(m, c, 1, &numbers, &count));
    if (count != 1 || !(numbers[0] >= 1 && numbers[0] <= UINT32_MAX))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a depth of %g in %u numbers, must be one of 1 to 2^32 - 1",
                                 count == 0 ? 0 : numbers[0], count);
    *out = (int64_t)numbers[0];
    return OPJIT_OK;
}

opjit_status opjit_onnx_one_hot(onnx_import *m, onnx_call *c)
{
    int64_t depth = 0;
    uint32_t axis;
    uint64_t wide[ONNX_RANK], result[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_depth(m, c, &depth));
    const onnx_value *const at = c->inputs[0], *const values = c->inputs[2];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", -1), at->rank + 1, &axis));
    if (at->rank >= ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%u dimensions, must be at most %u", at->rank + 1, ONNX_RANK);
    opjit_tensor_type type = { DML_TENSOR_DATA_TYPE_UNKNOWN, at->rank + 1, { 0 } };
    for (uint32_t d = 0; d <= at->rank; d++) {
        wide[d] = d == axis ? 1 : at->dims[d - (d > axis)];
        result[d] = d == axis ? (uint64_t)depth : wide[d];
        type.sizes[d] = (uint32_t)result[d];
    }
    opjit_tensor indices = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), at->type, ONNX_INT64);
    indices = opjit_onnx_reshape(m, indices, at->rank + 1, wide);
    const uint64_t two[1] = { 2 };
    const opjit_tensor inputs[2] = { indices, opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), 1, two) };
    const DML_ONE_HOT_OPERATOR_DESC desc = { NULL, NULL, NULL, axis };
    const opjit_tensor y = opjit_fe_build_op(m->graph, DML_OPERATOR_ONE_HOT, &desc, inputs, 2, &type);
    return opjit_onnx_give_as(m, c, 0, y, values->type, at->rank + 1, result);
}

/* --- repeats and padding ------------------------------------------------------------------------------------------ */

/* x, whose dimensions are repeated so often, without quotients: each of these has a dimension of its own, along which
 * the same is read, as long as there are enough of them; else TILE. */
static opjit_tensor tiled(onnx_import *m, const onnx_value *x, opjit_tensor t, const uint32_t *repeats)
{
    uint64_t apart[OPJIT_MAX_RANK], result[OPJIT_MAX_RANK];
    uint32_t wide[OPJIT_MAX_RANK], rank = 0, all = x->rank;
    for (uint32_t d = 0; d < x->rank; d++)
        all += repeats[d] > 1 && (x->dims[d] > 1 || m->is_sample);
    if (all > OPJIT_MAX_RANK)
        return opjit_graph_tile(m->graph, t, x->rank, repeats);
    for (uint32_t d = 0; d < x->rank; d++) {
        const bool one = x->dims[d] == 1 && !m->is_sample; /* other sizes are to have the same dimensions */
        if (repeats[d] > 1 && !one) {
            apart[rank] = 1;
            wide[rank++] = repeats[d];
        }
        apart[rank] = x->dims[d];
        wide[rank++] = one ? repeats[d] : (uint32_t)x->dims[d];
        result[d] = x->dims[d] * repeats[d];
    }
    if (!m->is_sample)
        return opjit_onnx_repeat(m, t, rank, apart, wide, x->rank, result);
    /* For some sizes the result might be a view, for others not. */
    t = opjit_graph_broadcast(m->graph, opjit_onnx_reshape(m, t, rank, apart), rank, wide);
    return opjit_onnx_reshape(m, opjit_graph_copy(m->graph, t), x->rank, result);
}

opjit_status opjit_onnx_tile(onnx_import *m, onnx_call *c)
{
    int64_t *repeats;
    uint32_t count, narrow[ONNX_RANK];
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    TRY(opjit_onnx_input_ints(m, c, 1, &repeats, &count));
    if (count != x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u repeats, must be %u, one for each dimension", count,
                                 x->rank);
    for (uint32_t d = 0; d < count; d++) {
        if (repeats[d] < 1 || repeats[d] > UINT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "repeats of dimension %u: %lld, must be 1 to 2^32 - 1", d,
                                     (long long)repeats[d]);
        narrow[d] = (uint32_t)repeats[d];
    }
    if (count == 0)
        return opjit_onnx_give_value(m, c, 0, x);
    return opjit_onnx_give(m, c, 0, tiled(m, x, onnx_tensor_of(m, c, 0), narrow), x->type, x->rank);
}

/* Pads of all dimensions, begins and then ends: of some axes only where input 3 names them. */
static opjit_status read_pads(onnx_import *m, onnx_call *c, uint32_t rank, int64_t *out)
{
    int64_t *pads, *axes;
    uint32_t count, axis_count;
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "pads");
    for (uint32_t d = 0; d < 2 * rank; d++)
        out[d] = 0;
    if (a != NULL) {
        pads = a->ints;
        count = pads == NULL ? 0 : a->count;
    } else {
        TRY(opjit_onnx_input_ints(m, c, 1, &pads, &count));
    }
    TRY(opjit_onnx_input_ints(m, c, 3, &axes, &axis_count));
    const uint32_t each = onnx_input(c, 3) == NULL ? rank : axis_count;
    if (count != 2 * each)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u pads, must be %u, two for each dimension", count,
                                 2 * each);
    for (uint32_t i = 0; i < each; i++) {
        uint32_t axis = i;
        if (onnx_input(c, 3) != NULL)
            TRY(opjit_onnx_axis(m, c, axes[i], rank, &axis));
        out[axis] = pads[i];
        out[rank + axis] = pads[each + i];
    }
    return OPJIT_OK;
}

static opjit_status pad_mode(onnx_import *m, onnx_call *c, DML_PADDING_MODE *out)
{
    static const struct {
        const char *name;
        DML_PADDING_MODE mode;
    } modes[] = { { "constant", DML_PADDING_MODE_CONSTANT },
                  { "reflect", DML_PADDING_MODE_REFLECTION },
                  { "edge", DML_PADDING_MODE_EDGE },
                  { "wrap", DML_PADDING_MODE_WRAP } };
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (opjit_onnx_text_is(m, c, "mode", modes[i].name, "constant")) {
            *out = modes[i].mode;
            return OPJIT_OK;
        }
    return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute mode is none of constant, reflect, edge, wrap");
}

/* The number that pads are: input 2, or an attribute of real numbers up to opset 10; absent: 0. */
static opjit_status pad_value(onnx_import *m, onnx_call *c, const onnx_value *x, DML_PADDING1_OPERATOR_DESC *desc)
{
    const float number = opjit_onnx_float(m, c, "value", 0);
    const double wide = number;
    const void *data = x->type == ONNX_DOUBLE ? (const void *)&wide : &number;
    onnx_value *const value = onnx_input(c, 2);
    desc->PaddingValueDataType = opjit_onnx_dtype(x->type);
    if (value != NULL) {
        data = opjit_onnx_data(m, value);
        if (data == NULL || opjit_onnx_elements_of(value) != 1 || value->type != x->type)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                     "input 2 has to be one number that is known, of type %s",
                                     opjit_onnx_type_name(x->type).text);
    }
    if (value != NULL || (onnx_is_float(x->type) && opjit_onnx_attribute(m, c, "value") != NULL))
        memcpy(&desc->PaddingValue, data, opjit_rt_dtype_size(desc->PaddingValueDataType));
    return OPJIT_OK;
}

opjit_status opjit_onnx_pad(onnx_import *m, onnx_call *c)
{
    int64_t pads[2 * ONNX_RANK];
    uint32_t start[ONNX_RANK], end[ONNX_RANK], offsets[ONNX_RANK], sizes[ONNX_RANK];
    bool cuts = false;
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    DML_PADDING1_OPERATOR_DESC desc = { 0 };
    TRY(pad_mode(m, c, &desc.PaddingMode));
    TRY(read_pads(m, c, x->rank, pads));
    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t before = pads[d], behind = pads[x->rank + d];
        if (before < -(int64_t)UINT32_MAX || before > UINT32_MAX || behind < -(int64_t)UINT32_MAX ||
            behind > UINT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                     "pads %lld and %lld of dimension %u, must be less than 2^32", (long long)before,
                                     (long long)behind, d);
        const int64_t size = (int64_t)x->dims[d] + (before < 0 ? before : 0) + (behind < 0 ? behind : 0);
        if (size < 1)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "pads %lld and %lld leave nothing of size %llu",
                                     (long long)before, (long long)behind, (unsigned long long)x->dims[d]);
        cuts = cuts || before < 0 || behind < 0;
        offsets[d] = before < 0 ? (uint32_t)-before : 0;
        sizes[d] = (uint32_t)size;
        start[d] = before < 0 ? 0 : (uint32_t)before;
        end[d] = behind < 0 ? 0 : (uint32_t)behind;
    }
    TRY(pad_value(m, c, x, &desc));
    opjit_tensor t = onnx_tensor_of(m, c, 0);
    if (cuts)
        t = opjit_graph_slice(m->graph, t, offsets, sizes, NULL);
    desc.DimensionCount = x->rank;
    desc.StartPadding = start;
    desc.EndPadding = end;
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_PADDING1, &desc, &t, 1), x->type, x->rank);
}

/* --- blocks and sequences ----------------------------------------------------------------------------------------- */

opjit_status opjit_onnx_depth_space(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    const int64_t size = opjit_onnx_int(m, c, "blocksize", 0);
    if (size < 1 || size > INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute blocksize: %lld, must be 1 to 2^31 - 1",
                                 (long long)size);
    const DML_DEPTH_TO_SPACE1_OPERATOR_DESC desc = { NULL, NULL, (uint32_t)size,
                                                     opjit_onnx_text_is(m, c, "mode", "CRD", "DCR")
                                                         ? DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH
                                                         : DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW };
    const opjit_tensor t = onnx_tensor_of(m, c, 0);
    const opjit_tensor y = opjit_graph_op(m->graph, (DML_OPERATOR_TYPE)c->row->arg, &desc, &t, 1);
    return opjit_onnx_give(m, c, 0, y, x->type, 4);
}

opjit_status opjit_onnx_reverse_sequence(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const x = c->inputs[0];
    const int64_t batch = opjit_onnx_int(m, c, "batch_axis", 1), time = opjit_onnx_int(m, c, "time_axis", 0);
    if (x->rank < 2 || !((batch == 0 && time == 1) || (batch == 1 && time == 0)))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "batch_axis %lld and time_axis %lld, must be 0 and 1",
                                 (long long)batch, (long long)time);
    uint64_t dims[ONNX_RANK];
    uint32_t sizes[ONNX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) {
        dims[d] = d == (uint32_t)batch ? x->dims[d] : 1;
        sizes[d] = d == (uint32_t)time ? 1 : (uint32_t)x->dims[d];
    }
    const DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC desc = { NULL, NULL, NULL, (uint32_t)time };
    const opjit_tensor lengths = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), x->rank, dims);
    const opjit_tensor inputs[2] = { onnx_tensor_of(m, c, 0),
                                     opjit_graph_broadcast(m->graph, lengths, x->rank, sizes) };
    const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_REVERSE_SUBSEQUENCES, &desc, inputs, 2);
    return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
}
