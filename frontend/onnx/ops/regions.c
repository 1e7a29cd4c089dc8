/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c - regions of images: RoiAlign, MaxRoiPool. */
#include "frontend/graph/build.h"
#include "frontend/onnx/ops/ops.h"

opjit_status opjit_onnx_max_roi_pool(onnx_import *m, onnx_call *c)
{
    DML_ROI_POOLING_OPERATOR_DESC desc = { .SpatialScale = opjit_onnx_float(m, c, "spatial_scale", 1) };
    uint32_t sizes[2];
    TRY(opjit_onnx_need(m, c, 2));
    TRY(opjit_onnx_spatial(m, c, "pooled_shape", 2, 1, sizes));
    const onnx_value *const x = c->inputs[0], *const regions = c->inputs[1];
    if (x->rank != 4 || regions->rank != 2 || regions->dims[1] != 5)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%u dimensions, must be 4, regions of %u, must be {regions, 5}", x->rank,
                                 regions->rank);
    desc.PooledSize.Height = sizes[0];
    desc.PooledSize.Width = sizes[1];
    const uint64_t flat[4] = { 1, 1, regions->dims[0], 5 };
    const opjit_tensor inputs[2] = { onnx_tensor_of(m, c, 0), opjit_onnx_reshape(m, onnx_tensor_of(m, c, 1), 4, flat) };
    return opjit_onnx_give(m, c, 0, opjit_graph_op(m->graph, DML_OPERATOR_ROI_POOLING, &desc, inputs, 2), x->type, 4);
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

/* --- the greatest corner ------------------------------------------------------------------------------------------ */

/* What RoiAlign's samples along one axis are computed from. */
typedef struct regions_of {
    int32_t type;   /* that it is computed in */
    uint64_t count; /* of regions */
    uint32_t grid;  /* samples of a result along an axis */
    float scale;
    bool half; /* coordinates are half a pixel less; else a region is at least one wide */
} regions_of;

/* The elements around each sample, and what these weigh: {regions, samples, 1} or {regions, 1, samples}.  */
typedef struct corners {
    opjit_tensor places[2]; /* INT32 */
    opjit_tensor weights[2];
    uint64_t samples;
} corners;

/* One coordinate of each region, {regions, 1, 1}. */
static opjit_tensor edge_of(onnx_import *m, const onnx_call *c, const regions_of *r, uint32_t column)
{
    const uint32_t begin[2] = { 0, column }, sizes[2] = { (uint32_t)r->count, 1 };
    const uint64_t dims[3] = { r->count, 1, 1 };
    opjit_tensor t = opjit_graph_slice(m->graph, onnx_tensor_of(m, c, 1), begin, sizes, NULL);
    t = opjit_onnx_reshape(m, opjit_onnx_cast(m, t, c->inputs[1]->type, r->type), 3, dims);
    t = opjit_graph_multiply(m->graph, t, opjit_onnx_scalar(m, r->type, (double)r->scale));
    return r->half ? opjit_graph_subtract(m->graph, t, opjit_onnx_scalar(m, r->type, 0.5)) : t;
}

/* Along axis 0 (x, columns) or 1 (y, rows): of an image of `size` elements, to `results` ones. */
static opjit_status corners_along(onnx_import *m, const onnx_call *c, const regions_of *r, uint32_t axis, uint64_t size,
                                  uint32_t results, corners *out)
{
    opjit_graph *const g = m->graph;
    const opjit_tensor zero = opjit_onnx_scalar(m, r->type, 0), one = opjit_onnx_scalar(m, r->type, 1),
                       last = opjit_onnx_scalar(m, r->type, (double)size - 1);
    out->samples = (uint64_t)results * r->grid;
    float *const tables = opjit_onnx_room(m, 2 * out->samples * sizeof *tables);
    if (tables == NULL)
        return m->error->status;
    for (uint64_t i = 0; i < out->samples; i++) {
        tables[i] = (float)(i / r->grid);
        tables[out->samples + i] = (float)(i % r->grid) + 0.5f;
    }
    const uint64_t dims[3] = { 1, axis == 0 ? 1 : out->samples, axis == 0 ? out->samples : 1 };
    opjit_tensor result[2];
    for (uint32_t i = 0; i < 2; i++)
        result[i] = opjit_onnx_cast(
            m,
            opjit_onnx_reshape(m, opjit_onnx_table(m, ONNX_FLOAT, out->samples, 0, tables + i * out->samples), 3, dims),
            ONNX_FLOAT, r->type);
    const opjit_tensor begin = edge_of(m, c, r, axis);
    opjit_tensor wide = opjit_graph_subtract(g, edge_of(m, c, r, axis + 2), begin);
    wide = opjit_graph_divide(g, r->half ? wide : opjit_graph_max(g, wide, one),
                              opjit_onnx_scalar(m, r->type, (double)results));
    const opjit_tensor within =
        opjit_graph_divide(g, opjit_graph_multiply(g, result[1], wide), opjit_onnx_scalar(m, r->type, (double)r->grid));
    const opjit_tensor at =
        opjit_graph_add(g, opjit_graph_add(g, begin, opjit_graph_multiply(g, result[0], wide)), within);
    const opjit_tensor inside =
        opjit_graph_logical_and(g, opjit_graph_greater_or_equal(g, at, opjit_onnx_scalar(m, r->type, -1)),
                                opjit_graph_less_or_equal(g, at, opjit_onnx_scalar(m, r->type, (double)size)));
    const opjit_tensor clamped = opjit_graph_min(g, opjit_graph_max(g, at, zero), last),
                       low = opjit_graph_floor(g, clamped);
    const opjit_tensor part = opjit_graph_subtract(g, clamped, low);
    out->places[0] = opjit_onnx_cast(m, low, r->type, ONNX_INT32);
    out->places[1] = opjit_onnx_cast(m, opjit_graph_min(g, opjit_graph_add(g, low, one), last), r->type, ONNX_INT32);
    out->weights[0] = opjit_graph_where(g, inside, opjit_graph_subtract(g, one, part), zero);
    out->weights[1] = opjit_graph_where(g, inside, part, zero);
    return OPJIT_OK;
}

/* Mode max as ONNX's reference and ONNX Runtime have it: not of the samples, but of the four elements around each one,
 * times what each weighs. */
static opjit_status give_greatest(onnx_import *m, onnx_call *c, const regions_of *r, const uint32_t results[2])
{
    opjit_graph *const g = m->graph;
    const onnx_value *const x = c->inputs[0];
    corners rows, columns;
    TRY(corners_along(m, c, r, 1, x->dims[2], results[0], &rows));
    TRY(corners_along(m, c, r, 0, x->dims[3], results[1], &columns));
    const uint64_t each[1] = { r->count }, flat[3] = { r->count, x->dims[1], x->dims[2] * x->dims[3] };
    const uint64_t places[3] = { r->count, 1, rows.samples * columns.samples };
    if (flat[2] > INT32_MAX || places[2] > INT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "images of %llu elements, %llu samples, must be below 2^31",
                                 (unsigned long long)flat[2], (unsigned long long)places[2]);
    const opjit_tensor batches = opjit_onnx_reshape(m, onnx_tensor_of(m, c, 2), 1, each);
    const opjit_tensor images =
        opjit_onnx_reshape(m, opjit_graph_gather(g, onnx_tensor_of(m, c, 0), batches, 0, 1), 3, flat);
    const uint32_t wide[3] = { (uint32_t)flat[0], (uint32_t)flat[1], (uint32_t)places[2] };
    const DML_GATHER_ELEMENTS_OPERATOR_DESC desc = { .Axis = 2 };
    opjit_tensor best = { 0, 0 };
    for (uint32_t i = 0; i < 4; i++) {
        const opjit_tensor row =
            opjit_graph_multiply(g, rows.places[i / 2], opjit_onnx_scalar(m, ONNX_INT32, (double)x->dims[3]));
        const opjit_tensor at = opjit_onnx_reshape(m, opjit_graph_add(g, row, columns.places[i % 2]), 3, places);
        const opjit_tensor pair[2] = { images, opjit_graph_broadcast(g, at, 3, wide) };
        const opjit_tensor weight =
            opjit_onnx_reshape(m, opjit_graph_multiply(g, rows.weights[i / 2], columns.weights[i % 2]), 3, places);
        const opjit_tensor element = opjit_graph_op(g, DML_OPERATOR_GATHER_ELEMENTS, &desc, pair, 2);
        const opjit_tensor product = opjit_graph_multiply(g, element, weight);
        best = i == 0 ? product : opjit_graph_max(g, best, product);
    }
    const uint64_t apart[6] = { r->count, x->dims[1], results[0], r->grid, results[1], r->grid };
    const uint64_t dims[4] = { r->count, x->dims[1], results[0], results[1] };
    const uint32_t axes[2] = { 3, 5 };
    best = opjit_graph_reduce(g, opjit_onnx_reshape(m, best, 6, apart), DML_REDUCE_FUNCTION_MAX, 2, axes);
    return opjit_onnx_give_as(m, c, 0, best, x->type, 4, dims);
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
    if (opjit_onnx_text_is(m, c, "mode", "max", "avg")) {
        const regions_of r = { .type = x->type,
                               .count = regions->dims[0],
                               .grid = (uint32_t)samples,
                               .scale = scale,
                               .half = half };
        return samples == 0 ? opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                                "mode max with samples that follow from the regions is not taken")
                            : give_greatest(m, c, &r, (const uint32_t[]){ (uint32_t)sizes[0], (uint32_t)sizes[1] });
    }
    DML_ROI_ALIGN1_OPERATOR_DESC desc = { 0 };
    desc.ReductionFunction = DML_REDUCE_FUNCTION_AVERAGE;
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
