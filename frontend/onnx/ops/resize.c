/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - Resize and Upsample, one axis after the other: which elements each result takes, and with what weight,
 * is computed here, as onnx's reference does it, and is a table of the graph. */
#include <math.h>

#include "frontend/onnx/ops/resize.h"

#define MOST_ENTRIES (UINT64_C(1) << 22) /* of a table, or of such a matrix */

/* --- one axis ----------------------------------------------------------------------------------------------------- */

/* Where result i lies in the input, by the rule; in FLOAT32, as ONNX Runtime computes it, so that places halfway
 * between two elements, and on one, are the same. */
static float place_by_rule(const resize *r, uint32_t axis, uint64_t in, uint64_t i)
{
    const float scale = (float)r->scales[axis], out = (float)r->sizes[axis], x = (float)i, size = (float)in;
    const float begin = (float)r->roi[0][axis], end = (float)r->roi[1][axis];
    switch (r->rule) {
    case HALF_PIXEL: return (x + 0.5f) / scale - 0.5f;
    case HALF_PIXEL_SYMMETRIC: return size / 2 * (1 - out / (scale * size)) + (x + 0.5f) / scale - 0.5f;
    case PYTORCH_HALF_PIXEL: return out > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case ALIGN_CORNERS: return scale * size <= 1 || out <= 1 ? 0 : x * (size - 1) / (scale * size - 1);
    case ASYMMETRIC: return x / scale;
    case HALF_PIXEL_FOR_NEAREST: return (x + 0.5f) / scale;
    case CROP_AND_RESIZE:
        return out > 1 ? begin * (size - 1) + x * (end - begin) * (size - 1) / (out - 1)
                       : 0.5f * (begin + end) * (size - 1);
    }
    return 0;
}

/* The same, within what an index holds; far outside it is the end's element all the same. */
static double place_of(const resize *r, uint32_t axis, uint64_t in, uint64_t i)
{
    const double x = (double)place_by_rule(r, axis, in, i);
    return x > -1e9 ? (x < 1e10 ? x : 1e10) : -1e9; /* a NaN, too */
}

static double rounded(rounding rule, double x)
{
    return rule == PREFER_FLOOR  ? ceil(x - 0.5)
           : rule == PREFER_CEIL ? floor(x + 0.5)
           : rule == ROUND_FLOOR ? floor(x)
                                 : ceil(x);
}

double opjit_onnx_cubic(double x, double a)
{
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* How many input elements a result takes. */
static uint32_t taps_of(const resize *r, uint32_t axis)
{
    const double scale = r->antialias && r->scales[axis] < 1 ? r->scales[axis] : 1;
    const double reach = r->mode == CUBIC ? 2 : 1;
    const double start = floor(-reach / scale) + 1;
    return r->mode == NEAREST ? 1 : start < -1e6 ? 2000000 : (uint32_t)(2 - 2 * start);
}

/* Elements and weights of result i; weights of what lies outside count for the nearest element there is. */
static void weigh(const resize *r, uint32_t axis, uint64_t in, uint64_t i, uint32_t taps, int64_t *at, double *weight)
{
    const double x = place_of(r, axis, in, i), whole = floor(x), ratio = x == whole ? 1 : x - whole;
    const double scale = r->antialias && r->scales[axis] < 1 ? r->scales[axis] : 1;
    const int64_t last = (int64_t)in - 1;
    double sum = 0;
    if (r->mode == NEAREST) {
        const rounding by_scale = r->scales[axis] < 1 ? ROUND_CEIL : ROUND_FLOOR;
        at[0] = (int64_t)rounded(r->nearest == ROUND_BY_SCALE ? by_scale : r->nearest, x);
        weight[0] = 1;
    }
    for (uint32_t t = 0; t < taps && r->mode != NEAREST; t++) {
        const double distance = ((double)t - (taps / 2 - 1) - ratio) * scale;
        at[t] = (int64_t)whole + (x == whole ? -1 : 0) + t - (taps / 2 - 1);
        weight[t] = r->mode == CUBIC ? opjit_onnx_cubic(distance, r->cubic) : fmax(0, 1 - fabs(distance));
        if (r->exclude_outside && (at[t] < 0 || at[t] > last))
            weight[t] = 0;
        sum += weight[t];
    }
    for (uint32_t t = 0; t < taps; t++) {
        at[t] = at[t] < 0 ? 0 : at[t] > last ? last : at[t];
        if (r->mode != NEAREST && (r->antialias || r->exclude_outside) && sum != 0)
            weight[t] /= sum;
    }
}

static opjit_status make_table(onnx_import *m, const onnx_call *c, const resize *r, uint32_t axis, uint64_t in,
                               resize_table *t)
{
    int64_t *at;
    double *weight;
    *t = (resize_table){ .taps = taps_of(r, axis), .in = in, .out = r->sizes[axis] };
    if (t->out > MOST_ENTRIES / t->taps || (t->taps > RESIZE_TAPS && t->out > MOST_ENTRIES / in))
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "size %u becomes %llu with %u elements for each, which is too much",
                                 axis, (unsigned long long)t->out, t->taps);
    t->at = ARENA_ARRAY(m->arena, uint32_t, (size_t)t->taps * t->out);
    t->weights = ARENA_ARRAY(m->arena, float, (size_t)t->taps * t->out);
    at = ARENA_ARRAY(m->arena, int64_t, t->taps);
    weight = ARENA_ARRAY(m->arena, double, t->taps);
    if (t->at == NULL || t->weights == NULL || at == NULL || weight == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint64_t i = 0; i < t->out; i++) {
        const double x = place_of(r, axis, in, i);
        const bool outside = r->rule == CROP_AND_RESIZE && (x < 0 || x > (double)in - 1);
        weigh(r, axis, in, i, t->taps, at, weight);
        for (uint32_t k = 0; k < t->taps; k++) {
            t->at[k * t->out + i] = (uint32_t)at[k];
            t->weights[k * t->out + i] = outside ? 0 : (float)weight[k];
        }
        if (outside && t->offsets == NULL) {
            t->offsets = ARENA_ARRAY(m->arena, float, t->out);
            if (t->offsets == NULL)
                return opjit_rt_no_memory(m->error);
        }
        if (outside)
            t->offsets[i] = (float)r->beyond;
    }
    return OPJIT_OK;
}

/* Numbers along the middle of three dimensions, in the graph. */
static opjit_tensor numbers(onnx_import *m, const void *data, int32_t type, uint64_t count)
{
    onnx_value v = { .type = type, .rank = 3, .dims = { 1, count, 1 }, .data = data };
    return opjit_onnx_tensor(m, &v);
}

/* Whether each element is repeated as often as every other one, in order. */
static bool repeats(const resize_table *t)
{
    if (t->taps != 1 || t->out % t->in != 0 || t->offsets != NULL)
        return false;
    for (uint64_t i = 0; i < t->out; i++)
        if (t->at[i] != i / (t->out / t->in))
            return false;
    return true;
}

/* A product with the matrix of all weights, {out, in}, for many taps: of one matrix x where the resized dimension is
 * the last one, else of each of x's matrices. */
static opjit_tensor by_product(onnx_import *m, const resize_table *t, opjit_tensor x)
{
    opjit_tensor_type type;
    float *const matrix = ARENA_ARRAY(m->arena, float, (size_t)t->in * t->out);
    if (matrix == NULL) {
        opjit_rt_no_memory(m->error);
        return (opjit_tensor){ 0, 0 };
    }
    for (uint32_t k = 0; k < t->taps; k++)
        for (uint64_t i = 0; i < t->out; i++)
            matrix[i * t->in + t->at[k * t->out + i]] += t->weights[k * t->out + i];
    onnx_value v = { .type = ONNX_FLOAT, .rank = 3, .dims = { 1, t->out, t->in }, .data = matrix };
    const opjit_tensor all = opjit_onnx_tensor(m, &v);
    (void)opjit_graph_get_type(m->graph, x, &type);
    const uint32_t sizes[3] = { type.sizes[0], (uint32_t)t->out, (uint32_t)t->in };
    if (type.sizes[2] == 1) {
        const uint32_t rows[3] = { 1, sizes[0], sizes[2] }, result[3] = { sizes[0], sizes[1], 1 };
        x = opjit_graph_matrix_multiply(m->graph, opjit_graph_reshape(m->graph, x, 3, rows), all, 0, 1);
        return opjit_graph_reshape(m->graph, x, 3, result);
    }
    return opjit_graph_matrix_multiply(m->graph, opjit_graph_broadcast(m->graph, all, 3, sizes), x, 0, 0);
}

/* x of three dimensions, of which the middle one is resized; FLOAT32 unless each result takes one element. */
static opjit_tensor resize_middle(onnx_import *m, const resize_table *t, opjit_tensor x)
{
    opjit_graph *const g = m->graph;
    opjit_tensor_type type;
    (void)opjit_graph_get_type(g, x, &type);
    opjit_tensor y = { 0, 0 };
    if (t->taps > RESIZE_TAPS)
        y = by_product(m, t, x);
    for (uint32_t k = 0; k < t->taps && t->taps <= RESIZE_TAPS; k++) {
        onnx_value at = { .type = ONNX_UINT32, .rank = 3, .dims = { 1, 1, t->out }, .data = t->at + k * t->out };
        const bool follows = t->places[k].index != 0;
        opjit_tensor part = opjit_graph_gather(g, x, follows ? t->places[k] : opjit_onnx_tensor(m, &at), 1, 1);
        if (t->taps > 1 || t->offsets != NULL)
            part = opjit_graph_multiply(
                g, part, follows ? t->shares[k] : numbers(m, t->weights + k * t->out, ONNX_FLOAT, t->out));
        y = k == 0 ? part : opjit_graph_add(g, y, part);
    }
    return t->offsets == NULL ? y : opjit_graph_add(g, y, numbers(m, t->offsets, ONNX_FLOAT, t->out));
}

/* x with the elements along some axes repeated, which tables[axis] say; other axes have none, and out 0. */
static opjit_tensor repeat_all(onnx_import *m, const resize_table *tables, opjit_tensor x, uint32_t rank,
                               const uint64_t *dims)
{
    uint64_t apart[ONNX_RANK + 1] = { 0 }, result[ONNX_RANK];
    uint32_t wide[ONNX_RANK + 1] = { 0 }, count = 0;
    bool joins = false; /* the dimension before is of axes that stay as they are */
    for (uint32_t d = 0; d < rank; d++) {
        const resize_table *const t = &tables[d];
        result[d] = t->out != 0 ? t->out : dims[d];
        if (t->out == 0 && joins) {
            apart[count - 1] *= dims[d];
            wide[count - 1] = (uint32_t)apart[count - 1];
            continue;
        }
        apart[count] = dims[d];
        wide[count++] = (uint32_t)dims[d];
        joins = t->out == 0;
        if (t->out == 0)
            continue;
        apart[count] = 1;
        wide[count++] = (uint32_t)(t->out / t->in);
    }
    return opjit_onnx_repeat(m, x, count, apart, wide, rank, result);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

/* Which of the words the attribute is. */
static opjit_status choose(onnx_import *m, const onnx_call *c, const char *name, const char *otherwise,
                           const char *const *words, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (opjit_onnx_text_is(m, c, name, words[i], otherwise)) {
            *out = i;
            return OPJIT_OK;
        }
    return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute %s: no such choice", name);
}

static opjit_status read_choices(onnx_import *m, onnx_call *c, resize *r)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", "bilinear" };
    static const char *const rules[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize" };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
    const bool old = m->opset < 11 || wire_is(c->node->op, "Upsample");
    uint32_t mode = 0, rule = 0, nearest = 0;
    TRY(choose(m, c, "mode", "nearest", modes, 4, &mode));
    TRY(choose(m, c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", rules, 7, &rule));
    TRY(choose(m, c, "nearest_mode", "round_prefer_floor", roundings, 4, &nearest));
    r->mode = mode == 3 ? LINEAR : (resize_mode)mode;
    r->rule = (place_rule)rule;
    r->nearest = old ? ROUND_BY_SCALE : (rounding)nearest;
    r->antialias = opjit_onnx_int(m, c, "antialias", 0) != 0;
    r->exclude_outside = opjit_onnx_int(m, c, "exclude_outside", 0) != 0;
    r->cubic = (double)opjit_onnx_float(m, c, "cubic_coeff_a", -0.75f);
    r->beyond = (double)opjit_onnx_float(m, c, "extrapolation_value", 0);
    return OPJIT_OK;
}

/* Scales and sizes of all axes, out of inputs (opset 10 and Upsample: input 1 has scales) or an attribute. */
static opjit_status read_sizes(onnx_import *m, onnx_call *c, const onnx_value *x, resize *r)
{
    const onnx_attribute *const of_axes = opjit_onnx_attribute(m, c, "axes");
    const onnx_attribute *const old_scales = opjit_onnx_attribute(m, c, "scales");
    const bool old = m->opset < 11 || wire_is(c->node->op, "Upsample");
    double *scales = NULL, *roi = NULL;
    int64_t *sizes = NULL;
    uint32_t scale_count = 0, size_count = 0, roi_count = 0;
    TRY(opjit_onnx_input_floats(m, c, old ? 1 : 2, &scales, &scale_count));
    if (!old)
        TRY(opjit_onnx_input_ints(m, c, 3, &sizes, &size_count));
    if (r->rule == CROP_AND_RESIZE)
        TRY(opjit_onnx_input_floats(m, c, 1, &roi, &roi_count));
    const uint32_t given = of_axes == NULL ? x->rank : of_axes->count;
    const bool by_attribute = old_scales != NULL && old_scales->floats != NULL && old_scales->count == x->rank;
    if (!by_attribute && ((scale_count != 0) == (size_count != 0) || (scale_count != 0 && scale_count != given) ||
                          (size_count != 0 && size_count != given) || (roi_count != 0 && roi_count != 2 * given)))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "%u scales and %u sizes, must be one of them for each of %u axes", scale_count,
                                 size_count, given);
    for (uint32_t d = 0; d < x->rank; d++) {
        r->scales[d] = 1;
        r->sizes[d] = x->dims[d];
        r->roi[1][d] = 1;
    }
    const bool larger = opjit_onnx_text_is(m, c, "keep_aspect_ratio_policy", "not_larger", "stretch");
    const bool smaller = opjit_onnx_text_is(m, c, "keep_aspect_ratio_policy", "not_smaller", "stretch");
    double common = 0;
    for (uint32_t i = 0; i < given; i++) {
        uint32_t axis = i;
        if (of_axes != NULL && of_axes->ints != NULL)
            TRY(opjit_onnx_axis(m, c, of_axes->ints[i], x->rank, &axis));
        if (size_count != 0 && sizes[i] < 1)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "size %u: %lld, must be at least 1", axis,
                                     (long long)sizes[i]);
        const double scale = by_attribute       ? (double)old_scales->floats[i]
                             : scale_count != 0 ? scales[i]
                                                : (double)sizes[i] / (double)x->dims[axis];
        r->scales[axis] = scale;
        const double size = size_count != 0 ? (double)sizes[i] : (double)((float)scale * (float)x->dims[axis]);
        if (!(scale > 0) || scale < 1e-9 || size >= 4294967296.0 || size < 1)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "scale %u: %g, must give a size of 1 to 2^32 - 1", axis,
                                     scale);
        r->sizes[axis] = (uint64_t)floor(size); /* 2.6f of 5 are 13 */
        common = i == 0 || (larger && scale < common) || (smaller && scale > common) ? scale : common;
        if (roi_count != 0) {
            r->roi[0][axis] = roi[i];
            r->roi[1][axis] = roi[given + i];
        }
    }
    for (uint32_t i = 0; i < given && size_count != 0 && (larger || smaller); i++) {
        uint32_t axis = i;
        if (of_axes != NULL && of_axes->ints != NULL)
            TRY(opjit_onnx_axis(m, c, of_axes->ints[i], x->rank, &axis));
        r->scales[axis] = common;
        if ((r->sizes[axis] = (uint64_t)floor(common * (double)x->dims[axis] + 0.5)) == 0)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "size %u: 0 by the scale %g", axis, common);
    }
    return OPJIT_OK;
}

opjit_status opjit_onnx_resize(onnx_import *m, onnx_call *c)
{
    resize r = { 0 };
    uint64_t dims[ONNX_RANK], flat[3];
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (opjit_onnx_elements_of(x) == 0)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "a tensor without elements");
    TRY(read_choices(m, c, &r));
    TRY(read_sizes(m, c, x, &r));
    const int32_t type = r.mode == NEAREST && r.rule != CROP_AND_RESIZE ? x->type : ONNX_FLOAT;
    opjit_tensor y = opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, type);
    resize_table tables[ONNX_RANK] = { 0 };
    bool repeated = true;
    uint32_t count = 0;
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (r.sizes[d] == x->dims[d] && r.scales[d] == 1 && r.rule != CROP_AND_RESIZE)
            continue;
        TRY(make_table(m, c, &r, d, x->dims[d], &tables[d]));
        repeated = repeated && repeats(&tables[d]);
        count++;
    }
    repeated = repeated && count > 0 && x->rank + count <= OPJIT_MAX_RANK;
    if (repeated)
        y = repeat_all(m, tables, y, x->rank, dims);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (tables[d].out == 0)
            continue;
        flat[0] = flat[2] = 1;
        flat[1] = dims[d];
        for (uint32_t i = 0; i < x->rank; i++)
            if (i != d)
                flat[i < d ? 0 : 2] *= dims[i];
        dims[d] = tables[d].out;
        if (!repeated && m->is_sample)
            opjit_onnx_resize_follow(m, &r, d, &tables[d]);
        if (!repeated)
            y = opjit_onnx_reshape(m, resize_middle(m, &tables[d], opjit_onnx_reshape(m, y, 3, flat)), x->rank, dims);
    }
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_cast(m, y, type, x->type), x->type, x->rank, dims);
}
