/* SPDX-License-Identifier: Apache-2.0 */
/* resample_grad.c - RESAMPLE_GRAD and RESAMPLE_GRAD1: along the last dimension first, then along the one before it, and
 * so on, the sum of the incoming gradient times the weights that the element has in the elements of RESAMPLE's output,
 * in the order of these.  Where a weight is 0 the gradient is not read. */
#include <math.h>

#include "frontend/ops/image/resample.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

/* opjit_fe_resample_position in C, bit for bit. */
static float position_in_c(const resample *r, uint32_t d, uint64_t o)
{
    const float moved = (float)o - resample_output_offset(r, d), scaled = moved / r->scales[d];
    return resample_keeps(r, d) ? (float)o : scaled - resample_input_offset(r, d);
}

/* The first of the incoming elements that are tried for element i: x of those before it is less than i - 1, so that
 * they have no part in i.  Element 0 has all from the start on. */
static int64_t first_tried(const resample *r, uint32_t d, uint64_t i, uint64_t incoming)
{
    const float moved = ((float)i - 1) + resample_input_offset(r, d), scaled = moved * r->scales[d];
    const float first = floorf(scaled + resample_output_offset(r, d)) - 2;

    if (i == 0 || !(first > 0))
        return 0;
    return first < (float)incoming ? (int64_t)first : (int64_t)incoming - 1;
}

static uint64_t clamped(double x, uint64_t size)
{
    return !(x > 0) ? 0 : x < (double)(size - 1) ? (uint64_t)x : size - 1;
}

/* Incoming elements along a dimension: all are looked at, and FLOAT32 tells the coordinates of as many apart. */
#define INCOMING_MOST (1u << 24)
/* Steps of the sums along a dimension: as many in any case, and for each of its elements on both sides. */
#define STEPS_FREE (1u << 16)
#define STEPS_MOST 8

/* How many are tried: the most that any element of `size` needs from its first one on.  0: all are, because offsets are
 * so large that first_tried is rounded beyond some that have a part. */
static uint64_t tried(const resample *r, uint32_t d, uint64_t size, uint64_t incoming)
{
    int64_t most = 1;

    for (uint64_t o = 0; o < incoming; o++) {
        const float x = position_in_c(r, d, o);
        for (int k = 0; k < 2; k++) { /* at floor(x) and behind it, of which NEAREST takes one */
            const int64_t need = (int64_t)o - first_tried(r, d, clamped(floor((double)x) + k, size), incoming) + 1;
            if (need < 1)
                return 0;
            most = need > most ? need : most;
        }
    }
    return (uint64_t)most;
}

opjit_status opjit_fe_resample_check_gradient(const opjit_operator *op, const resample *r, opjit_error *error)
{
    for (uint32_t d = 0; d < r->count; d++) {
        const uint64_t incoming = op->inputs[0].sizes[d], size = op->outputs[0].sizes[d];
        if (!opjit_fe_resample_has_step(op, r, d))
            continue;
        if (incoming > INCOMING_MOST)
            return opjit_rt_refuse(error, OPJIT_LIMIT,
                                   "{%s} {InputGradientTensor.Sizes[%u]}: {%u}, must be at most %u along a dimension "
                                   "that is resampled",
                                   op->def->name, d, (unsigned)incoming, INCOMING_MOST);
        const uint64_t needed = tried(r, d, size, incoming), each = needed != 0 ? needed : incoming;
        if (each * size > STEPS_FREE + STEPS_MOST * (incoming + size))
            return opjit_rt_refuse(error, OPJIT_LIMIT,
                                   "{%s} {Scales[%u]}: {%g}, must be nearer to %u / %u, the sizes along it: up to %u "
                                   "elements have a part in one",
                                   op->def->name, d, (double)r->scales[d], (unsigned)incoming, (unsigned)size,
                                   (unsigned)each);
    }
    return OPJIT_OK;
}

/* first_tried in IR. */
static ir_ref first_of_element(ir_func *f, const resample *r, uint32_t d, ir_ref i, uint64_t incoming)
{
    const ir_ref before = ir_expr2(f, IR_SUB, IR_F32, ir_expr1(f, IR_ELEM, IR_F32, i), resample_real(f, 1));
    const ir_ref moved = ir_expr2(f, IR_ADD, IR_F32, before, resample_real(f, resample_input_offset(r, d)));
    const ir_ref scaled = ir_expr2(f, IR_MUL, IR_F32, moved, resample_real(f, r->scales[d]));
    const ir_ref x = ir_expr1(f, IR_FLOOR, IR_F32,
                              ir_expr2(f, IR_ADD, IR_F32, scaled, resample_real(f, resample_output_offset(r, d))));
    const ir_ref first = opjit_fe_resample_whole(f, ir_expr2(f, IR_SUB, IR_F32, x, resample_real(f, 2)), 1, incoming);

    return ir_expr3(f, IR_SELECT, IR_INDEX, ir_expr2(f, IR_EQ, IR_BOOL, i, opjit_ir_index(f, 0)), opjit_ir_index(f, 0),
                    opjit_fe_inside(f, first, incoming));
}

/* The weight of element i in incoming element o. */
static ir_ref share(const resample_values *v, uint32_t d, ir_ref i, ir_ref o, uint64_t size)
{
    ir_func *f = v->l->f;
    const ir_ref zero = opjit_ir_const(f, v->wide, 0), one = opjit_fe_real(f, v->wide, 1);

    if (!v->r.linear)
        return ir_expr3(f, IR_SELECT, v->wide,
                        ir_expr2(f, IR_EQ, IR_BOOL, opjit_fe_resample_nearest(f, &v->r, d, o, size), i), one, zero);
    const resample_between b = opjit_fe_resample_between(f, &v->r, d, o, size);
    const ir_ref t = resample_cast(f, v->wide, b.t);
    const ir_ref low = ir_expr3(f, IR_SELECT, v->wide, ir_expr2(f, IR_EQ, IR_BOOL, b.low, i),
                                ir_expr2(f, IR_SUB, v->wide, one, t), zero);
    return ir_expr2(f, IR_ADD, v->wide, low,
                    ir_expr3(f, IR_SELECT, v->wide, ir_expr2(f, IR_EQ, IR_BOOL, b.high, i), t, zero));
}

static void along_gradient(resample_values *v, uint32_t d)
{
    const uint64_t incoming = v->shape.sizes[d], size = v->l->op->outputs[0].sizes[d];
    const uint64_t count = tried(&v->r, d, size, incoming);
    const ir_ref sum = opjit_fe_resample_def(v, d, size, IR_SUM, count != 0 ? count : incoming);
    ir_func *f = v->l->f;
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    const ir_ref i = opjit_ir_coordinate(f, sum, d);
    const ir_ref first = count != 0 ? first_of_element(f, &v->r, d, i, incoming) : opjit_ir_index(f, 0);
    const ir_ref o = ir_expr2(f, IR_IADD, IR_INDEX, first, opjit_ir_reduced(f, sum));
    const ir_ref inside = ir_expr2(f, IR_LT, IR_BOOL, o, opjit_ir_index(f, (int64_t)incoming));
    const ir_ref in = opjit_fe_inside(f, o, incoming), zero = opjit_ir_const(f, v->wide, 0);
    opjit_fe_resample_at(v, sum, d, in, at);
    const ir_ref w = share(v, d, i, in, size);
    const ir_ref has = ir_expr2(f, IR_AND, IR_BOOL, inside, ir_expr2(f, IR_NE, IR_BOOL, w, zero));
    opjit_fe_resample_set(
        v, sum,
        ir_expr3(f, IR_SELECT, v->wide, has, ir_expr2(f, IR_MUL, v->wide, opjit_fe_resample_load(v, at), w), zero));
}

void opjit_fe_resample_lower_grad(op_lowering *l)
{
    resample_values v = opjit_fe_resample_begin(l);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = v.r.count; d-- > 0;)
        if (opjit_fe_resample_has_step(l->op, &v.r, d))
            along_gradient(&v, d);
    const ir_ref out = opjit_fe_output(l, 0);
    if (f->failed)
        return;
    for (uint32_t d = 0; d < v.r.count; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    opjit_fe_set(l, out, opjit_fe_resample_load(&v, at));
}
