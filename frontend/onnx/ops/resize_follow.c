/* SPDX-License-Identifier: Apache-2.0 */
/* resize_follow.c - tables of Resize whose sizes follow from a dynamic dimension: as operators of the graph, which
 * compute just what resize.c does, step by step and rounding by rounding. */
#include "frontend/onnx/ops/resize.h"

#define MOST_EXACT (UINT64_C(1) << 24) /* sizes up to which each place is a FLOAT32 */

static opjit_tensor by(onnx_import *m, DML_OPERATOR_TYPE op, opjit_tensor x, int32_t type, double value)
{
    return opjit_graph_op2(m->graph, op, x, opjit_onnx_scalar(m, type, value));
}

/* As place_by_rule does, in FLOAT32. */
static opjit_tensor places_of(onnx_import *m, const resize *r, uint32_t axis, const resize_table *t)
{
    const uint32_t along[3] = { 1, 1, (uint32_t)t->out };
    const float scale = (float)r->scales[axis], size = (float)t->in;
    opjit_tensor x = opjit_graph_sequence(m->graph, DML_TENSOR_DATA_TYPE_FLOAT32, 3, along, 0, 1);
    if (r->rule == ALIGN_CORNERS) {
        x = by(m, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, ONNX_FLOAT, (double)(size - 1));
        return by(m, DML_OPERATOR_ELEMENT_WISE_DIVIDE, x, ONNX_FLOAT, (double)(scale * size - 1));
    }
    if (r->rule != ASYMMETRIC)
        x = by(m, DML_OPERATOR_ELEMENT_WISE_ADD, x, ONNX_FLOAT, 0.5);
    x = by(m, DML_OPERATOR_ELEMENT_WISE_DIVIDE, x, ONNX_FLOAT, (double)scale);
    return r->rule == ASYMMETRIC || r->rule == HALF_PIXEL_FOR_NEAREST
               ? x
               : by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, x, ONNX_FLOAT, 0.5);
}

/* As opjit_onnx_cubic does: up to distance 1 by one polynomial, up to 2 by another. */
static opjit_tensor cubic(onnx_import *m, opjit_tensor x, bool is_near, double a)
{
    opjit_graph *const g = m->graph;
    if (is_near) {
        const opjit_tensor y = by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT,
                                  by(m, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, ONNX_DOUBLE, a + 2), ONNX_DOUBLE, a + 3);
        return by(m, DML_OPERATOR_ELEMENT_WISE_ADD, opjit_graph_multiply(g, opjit_graph_multiply(g, y, x), x),
                  ONNX_DOUBLE, 1);
    }
    opjit_tensor y = by(m, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, ONNX_DOUBLE, a);
    y = opjit_graph_multiply(g, by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, y, ONNX_DOUBLE, 5 * a), x);
    y = opjit_graph_multiply(g, by(m, DML_OPERATOR_ELEMENT_WISE_ADD, y, ONNX_DOUBLE, 8 * a), x);
    return by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, y, ONNX_DOUBLE, 4 * a);
}

/* The share of tap k, where ratio is how far the place lies beyond the tap before the middle: 1 of a whole place. */
static opjit_tensor share_of(onnx_import *m, const resize *r, const resize_table *t, opjit_tensor ratio, uint32_t k)
{
    const double from = (double)k - (t->taps / 2 - 1);
    opjit_tensor x = opjit_graph_abs(
        m->graph, opjit_graph_subtract(m->graph, opjit_onnx_scalar(m, ONNX_DOUBLE, from), ratio));
    if (r->mode == LINEAR) {
        x = opjit_graph_subtract(m->graph, opjit_onnx_scalar(m, ONNX_DOUBLE, 1), x);
        x = by(m, DML_OPERATOR_ELEMENT_WISE_MAX, x, ONNX_DOUBLE, 0);
    } else {
        x = cubic(m, x, k == 1 || k == 2, r->cubic);
    }
    return opjit_onnx_reshape(m, opjit_onnx_cast(m, x, ONNX_DOUBLE, ONNX_FLOAT), 3, (uint64_t[]){ 1, t->out, 1 });
}

static opjit_tensor rounded(onnx_import *m, rounding rule, opjit_tensor x)
{
    if (rule == PREFER_FLOOR)
        x = by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, x, ONNX_DOUBLE, 0.5);
    else if (rule == PREFER_CEIL)
        x = by(m, DML_OPERATOR_ELEMENT_WISE_ADD, x, ONNX_DOUBLE, 0.5);
    return rule == PREFER_FLOOR || rule == ROUND_CEIL ? opjit_graph_ceil(m->graph, x) : opjit_graph_floor(m->graph, x);
}

/* The element there, of those that there are. */
static opjit_tensor element_at(onnx_import *m, const resize_table *t, opjit_tensor x)
{
    x = by(m, DML_OPERATOR_ELEMENT_WISE_MAX, x, ONNX_DOUBLE, 0);
    x = by(m, DML_OPERATOR_ELEMENT_WISE_MIN, x, ONNX_DOUBLE, (double)(t->in - 1));
    return opjit_onnx_cast(m, x, ONNX_DOUBLE, ONNX_UINT32);
}

/* Where polynomials meet, and where the second one ends, both have to be what opjit_onnx_cubic is. */
static bool meets(double a)
{
    return ((a * 1 - 5 * a) * 1 + 8 * a) * 1 - 4 * a == opjit_onnx_cubic(1, a) &&
           ((a * 2 - 5 * a) * 2 + 8 * a) * 2 - 4 * a == 0;
}

static bool can_follow(const resize *r, uint32_t axis, const resize_table *t)
{
    const float scale = (float)r->scales[axis], size = (float)t->in, out = (float)t->out;
    const bool shifted = r->rule == HALF_PIXEL_SYMMETRIC && out != scale * size;
    const bool lone = (r->rule == ALIGN_CORNERS && (scale * size <= 1 || out <= 1)) ||
                      (r->rule == PYTORCH_HALF_PIXEL && out <= 1);
    return t->taps <= RESIZE_TAPS && t->offsets == NULL && r->rule != CROP_AND_RESIZE && !r->exclude_outside &&
           !(r->antialias && r->mode != NEAREST) && !shifted && !lone && t->in <= MOST_EXACT && t->out <= MOST_EXACT &&
           (r->mode != CUBIC || meets(r->cubic));
}

void opjit_onnx_resize_follow(onnx_import *m, const resize *r, uint32_t axis, resize_table *t)
{
    const rounding by_scale = r->scales[axis] < 1 ? ROUND_CEIL : ROUND_FLOOR;
    if (!can_follow(r, axis, t))
        return;
    const opjit_tensor place = opjit_onnx_cast(m, places_of(m, r, axis, t), ONNX_FLOAT, ONNX_DOUBLE);
    if (r->mode == NEAREST) {
        t->places[0] =
            element_at(m, t, rounded(m, r->nearest == ROUND_BY_SCALE ? by_scale : r->nearest, place));
        return;
    }
    const opjit_tensor whole =
        by(m, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, opjit_graph_ceil(m->graph, place), ONNX_DOUBLE, 1);
    const opjit_tensor ratio = opjit_graph_subtract(m->graph, place, whole);
    for (uint32_t k = 0; k < t->taps; k++) {
        const double from = (double)k - (t->taps / 2 - 1);
        t->places[k] = element_at(m, t, by(m, DML_OPERATOR_ELEMENT_WISE_ADD, whole, ONNX_DOUBLE, from));
        t->shares[k] = share_of(m, r, t, ratio, k);
    }
}
