/* SPDX-License-Identifier: Apache-2.0 */
/* op_scatter.c - elements at places that data name: scattering, unpooling, what is not zero, regions. */
#include "frontend/graph/build.h"
#include "frontend/onnx/ops.h"

#define NOWHERE 4e18f /* an index that no tensor has */

/* How updates are combined with what is there; *out stays where they replace it. */
static opjit_status read_reduction(onnx_import *m, const onnx_call *c, DML_OPERATOR_TYPE *out_pair,
                                   DML_REDUCE_FUNCTION *out_all)
{
    static const struct {
        const char *name;
        DML_OPERATOR_TYPE pair;
        DML_REDUCE_FUNCTION all;
    } rows[] = { { "add", DML_OPERATOR_ELEMENT_WISE_ADD, DML_REDUCE_FUNCTION_SUM },
                 { "mul", DML_OPERATOR_ELEMENT_WISE_MULTIPLY, DML_REDUCE_FUNCTION_MULTIPLY },
                 { "min", DML_OPERATOR_ELEMENT_WISE_MIN, DML_REDUCE_FUNCTION_MIN },
                 { "max", DML_OPERATOR_ELEMENT_WISE_MAX, DML_REDUCE_FUNCTION_MAX } };
    for (uint32_t i = 0; i < 4; i++)
        if (opjit_onnx_text_is(m, c, "reduction", rows[i].name, "none")) {
            *out_pair = rows[i].pair;
            *out_all = rows[i].all;
            return OPJIT_OK;
        }
    return opjit_onnx_text_is(m, c, "reduction", "none", "none")
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                   "attribute reduction is none of none, add, mul, min, max");
}

/* x with the updates combined at places of the axis.  at and updates have one dimension more, behind the axis, for the
 * updates that may be meant for a place.  DirectML's operators scatter in no order, so that updates of one place would
 * be lost: here each place looks at all of them, as a reduction of what is meant for it. */
static opjit_tensor combined(onnx_import *m, const onnx_value *x, opjit_tensor t, opjit_tensor at, opjit_tensor updates,
                             uint32_t axis, DML_OPERATOR_TYPE pair, DML_REDUCE_FUNCTION all)
{
    opjit_graph *const g = m->graph;
    uint64_t wide[ONNX_RANK];
    uint32_t places[ONNX_RANK];
    const uint32_t over = axis + 1;
    const bool sums = all == DML_REDUCE_FUNCTION_SUM || all == DML_REDUCE_FUNCTION_MULTIPLY;
    for (uint32_t d = 0; d <= x->rank; d++) {
        wide[d] = d == over ? 1 : x->dims[d - (d > over)];
        places[d] = d == axis ? (uint32_t)wide[d] : 1;
    }
    const opjit_tensor negative = opjit_graph_less(g, at, opjit_onnx_scalar(m, ONNX_INT64, 0));
    at = opjit_graph_where(g, negative, opjit_graph_add(g, at, opjit_onnx_scalar(m, ONNX_INT64, (double)x->dims[axis])),
                           at);
    const opjit_tensor here =
        opjit_graph_equals(g, at, opjit_graph_sequence(g, DML_TENSOR_DATA_TYPE_INT64, x->rank + 1, places, 0, 1));
    const opjit_tensor otherwise = sums ? opjit_onnx_scalar(m, x->type, all == DML_REDUCE_FUNCTION_MULTIPLY)
                                        : opjit_onnx_reshape(m, t, x->rank + 1, wide);
    const opjit_tensor meant = opjit_graph_where(g, here, updates, otherwise);
    const opjit_tensor y = opjit_onnx_reshape(m, opjit_graph_reduce(g, meant, all, 1, &over), x->rank, x->dims);
    return opjit_graph_op2(g, pair, t, y); /* a place that all updates meet has none of t yet */
}

/* Refuses what would look at too many updates for each place. */
static opjit_status check_work(onnx_import *m, const onnx_call *c, const onnx_value *x, uint64_t updates)
{
    const uint64_t elements = opjit_onnx_elements_of(x);
    if (x->rank >= ONNX_RANK || (updates != 0 && elements > ((uint64_t)1 << 36) / updates))
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "%llu updates that may be meant for each of %llu elements",
                                 (unsigned long long)updates, (unsigned long long)elements);
    return OPJIT_OK;
}

opjit_status opjit_onnx_scatter_elements(onnx_import *m, onnx_call *c)
{
    uint32_t axis;
    DML_OPERATOR_TYPE pair = DML_OPERATOR_INVALID;
    DML_REDUCE_FUNCTION all = DML_REDUCE_FUNCTION_SUM;
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_reduction(m, c, &pair, &all));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x->rank, &axis));
    opjit_tensor inputs[3] = { onnx_tensor_of(m, c, 0), onnx_tensor_of(m, c, 1), onnx_tensor_of(m, c, 2) };
    if (pair == DML_OPERATOR_INVALID) {
        const DML_SCATTER_ELEMENTS_OPERATOR_DESC desc = { .Axis = axis };
        const opjit_tensor y = opjit_graph_op(m->graph, DML_OPERATOR_SCATTER_ELEMENTS, &desc, inputs, 3);
        return opjit_onnx_give(m, c, 0, y, x->type, x->rank);
    }
    uint64_t wide[ONNX_RANK];
    TRY(check_work(m, c, x, at->rank == x->rank ? at->dims[axis] : 1));
    uint32_t none[ONNX_RANK] = { 0 }, lacking[ONNX_RANK] = { 0 };
    for (uint32_t d = 0; d < x->rank; d++) {
        if (at->rank != x->rank || (d != axis && at->dims[d] > x->dims[d]))
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "indices of more elements than the data have beside "
                                     "the axis");
        lacking[d] = d == axis ? 0 : (uint32_t)(x->dims[d] - at->dims[d]);
    }
    for (uint32_t d = 0; d <= x->rank; d++)
        wide[d] = d == axis ? 1 : d == axis + 1 ? at->dims[axis] : x->dims[d - (d > axis)];
    inputs[1] = opjit_onnx_cast(m, inputs[1], at->type, ONNX_INT64);
    for (uint32_t i = 1; i < 3; i++) { /* where updates are lacking, they are meant for no place */
        if (memcmp(none, lacking, sizeof none) != 0)
            inputs[i] = opjit_graph_pad(m->graph, inputs[i], x->rank, none, lacking, i == 1 ? NOWHERE : 0);
        inputs[i] = opjit_onnx_reshape(m, inputs[i], x->rank + 1, wide);
    }
    return opjit_onnx_give(m, c, 0, combined(m, x, inputs[0], inputs[1], inputs[2], axis, pair, all), x->type, x->rank);
}

/* ScatterND whose updates are combined: x as {places, elements of each}, places counted through. */
static opjit_status scatter_nd_combined(onnx_import *m, onnx_call *c, DML_OPERATOR_TYPE pair, DML_REDUCE_FUNCTION all)
{
    static const uint32_t last = 1;
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    const uint64_t length = at->dims[at->rank - 1];
    opjit_graph *const g = m->graph;
    onnx_value flat = { .type = x->type, .rank = 2, .dims = { 1, 1 } };
    if (length == 0 || length > x->rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "indices of %llu numbers into %u dimensions",
                                 (unsigned long long)length, x->rank);
    const uint64_t updates = opjit_onnx_elements_of(at) / length;
    TRY(check_work(m, c, x, updates));
    int64_t *const sizes = opjit_onnx_memory(m, 2 * length * sizeof *sizes);
    if (sizes == NULL)
        return m->error->status;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (d < length) {
            sizes[d] = (int64_t)x->dims[d];
            sizes[length + d] = (int64_t)flat.dims[0];
        }
        flat.dims[d >= length] *= x->dims[d];
    }
    onnx_value size = { .type = ONNX_INT64, .rank = 2, .dims = { 1, length }, .data = sizes }, stride = size;
    stride.data = sizes + length;
    opjit_tensor places = opjit_onnx_cast(m, onnx_tensor_of(m, c, 1), at->type, ONNX_INT64);
    places = opjit_onnx_reshape(m, places, 2, (uint64_t[]){ updates, length });
    const opjit_tensor negative = opjit_graph_less(g, places, opjit_onnx_scalar(m, ONNX_INT64, 0));
    places = opjit_graph_where(g, negative, opjit_graph_add(g, places, opjit_onnx_tensor(m, &size)), places);
    places = opjit_graph_multiply(g, places, opjit_onnx_tensor(m, &stride));
    places = opjit_graph_reduce(g, places, DML_REDUCE_FUNCTION_SUM, 1, &last);
    places = opjit_onnx_reshape(m, places, 3, (uint64_t[]){ 1, updates, 1 });
    const opjit_tensor news =
        opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), 3, (uint64_t[]){ 1, updates, flat.dims[1] });
    const opjit_tensor t = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 0), 2, flat.dims);
    return opjit_onnx_give_as(m, c, 0, combined(m, &flat, t, places, news, 0, pair, all), x->type, x->rank, x->dims);
}

opjit_status opjit_onnx_scatter_nd(onnx_import *m, onnx_call *c)
{
    uint64_t wide[ONNX_RANK];
    uint32_t rank = 0;
    opjit_tensor inputs[3];
    DML_OPERATOR_TYPE pair = DML_OPERATOR_INVALID;
    DML_REDUCE_FUNCTION all = DML_REDUCE_FUNCTION_SUM;
    TRY(opjit_onnx_need(m, c, 3));
    TRY(read_reduction(m, c, &pair, &all));
    const onnx_value *const x = c->inputs[0], *const at = c->inputs[1];
    for (uint32_t i = 0; i < 3; i++)
        rank = c->inputs[i]->rank > rank ? c->inputs[i]->rank : rank;
    if (x->rank == 0 || at->rank == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "a scalar has no places");
    if (pair != DML_OPERATOR_INVALID)
        return scatter_nd_combined(m, c, pair, all);
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

/* Regions {n, 4} that are, times scale, at least one element wide and high: what output_half_pixel does. */
static opjit_tensor at_least_one(onnx_import *m, const onnx_call *c, float scale)
{
    opjit_graph *const g = m->graph;
    const uint32_t sizes[2] = { (uint32_t)c->inputs[1]->dims[0], 2 }, first[2] = { 0, 0 }, second[2] = { 0, 2 };
    const opjit_tensor regions = onnx_tensor_of(m, c, 1), begin = opjit_graph_slice(g, regions, first, sizes, NULL);
    const opjit_tensor one = opjit_onnx_scalar(m, c->inputs[1]->type, 1 / (double)scale);
    const opjit_tensor parts[2] = { begin, opjit_graph_max(g, opjit_graph_slice(g, regions, second, sizes, NULL),
                                                           opjit_graph_add(g, begin, one)) };
    return opjit_graph_join(g, parts, 2, 1);
}

opjit_status opjit_onnx_roi_align(onnx_import *m, onnx_call *c)
{
    TRY(opjit_onnx_need(m, c, 3));
    const onnx_value *const x = c->inputs[0], *const regions = c->inputs[1];
    const bool half = opjit_onnx_text_is(m, c, "coordinate_transformation_mode", "half_pixel",
                                         m->opset < 16 ? "output_half_pixel" : "half_pixel");
    const float scale = opjit_onnx_float(m, c, "spatial_scale", 1);
    const int64_t samples = opjit_onnx_int(m, c, "sampling_ratio", 0);
    const int64_t sizes[2] = { opjit_onnx_int(m, c, "output_height", 1), opjit_onnx_int(m, c, "output_width", 1) };
    if (x->rank != 4 || regions->rank != 2 || samples < 0 || samples > 1000 || sizes[0] < 1 || sizes[1] < 1 ||
        sizes[0] > INT32_MAX || sizes[1] > INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u dimensions, %lld samples, %lld by %lld results",
                                 x->rank, (long long)samples, (long long)sizes[0], (long long)sizes[1]);
    DML_ROI_ALIGN1_OPERATOR_DESC desc = { 0 };
    desc.ReductionFunction =
        opjit_onnx_text_is(m, c, "mode", "max", "avg") ? DML_REDUCE_FUNCTION_MAX : DML_REDUCE_FUNCTION_AVERAGE;
    desc.InterpolationMode = DML_INTERPOLATION_MODE_LINEAR;
    desc.SpatialScaleX = desc.SpatialScaleY = scale;
    desc.InputPixelOffset = half ? 0.5f : 0;
    desc.OutputPixelOffset = -0.5f;
    desc.MinimumSamplesPerOutput = samples == 0 ? 1 : (uint32_t)samples;
    desc.MaximumSamplesPerOutput = samples == 0 ? UINT32_MAX : (uint32_t)samples;
    const uint64_t boxes[4] = { 1, 1, regions->dims[0], 4 }, images[4] = { 1, 1, 1, regions->dims[0] };
    const opjit_tensor inputs[3] = {
        onnx_tensor_of(m, c, 0),
        opjit_onnx_reshape(m, half ? onnx_tensor_of(m, c, 1) : at_least_one(m, c, scale), 4, boxes),
        opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 2), c->inputs[2]->type, ONNX_UINT32), 4, images)
    };
    const opjit_tensor_type type = { DML_TENSOR_DATA_TYPE_UNKNOWN,
                                     4,
                                     { (uint32_t)regions->dims[0], (uint32_t)x->dims[1], (uint32_t)sizes[0],
                                       (uint32_t)sizes[1] } };
    const opjit_tensor y = opjit_fe_build_op(m->graph, DML_OPERATOR_ROI_ALIGN1, &desc, inputs, 3, &type);
    return opjit_onnx_give(m, c, 0, y, x->type, 4);
}
