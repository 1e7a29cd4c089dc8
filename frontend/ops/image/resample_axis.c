/* SPDX-License-Identifier: Apache-2.0 */
/* resample_axis.c - what RESAMPLE's forms and their gradients share: resample.h. */
#include <math.h>

#include "frontend/ops/image/resample.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

/* By name, because the rows have different ones of them. */
static uint32_t number(const op_def *def, const void *desc, const char *name)
{
    const void *field = opjit_fe_field(def, desc, name);
    uint32_t value = 0;

    if (field != NULL)
        memcpy(&value, field, sizeof value);
    return value;
}

static const float *numbers(const op_def *def, const void *desc, const char *name)
{
    const void *field = opjit_fe_field(def, desc, name);
    const float *values = NULL;

    if (field != NULL)
        memcpy(&values, field, sizeof values);
    return values;
}

static const char *count_name(const op_def *def, const void *desc)
{
    return opjit_fe_field(def, desc, "ScaleCount") != NULL ? "ScaleCount" : "DimensionCount";
}

static resample resample_of(const opjit_operator *op)
{
    const op_def *def = op->def;
    const void *desc = op->desc;

    return (resample){ .linear = number(def, desc, "InterpolationMode") == DML_INTERPOLATION_MODE_LINEAR,
                       .up = opjit_fe_field(def, desc, "RoundingDirection") != NULL &&
                             number(def, desc, "RoundingDirection") == DML_AXIS_DIRECTION_INCREASING,
                       .antialiased = number(def, desc, "Antialiased") != 0,
                       .count = number(def, desc, count_name(def, desc)),
                       .scales = numbers(def, desc, "Scales"),
                       .input_offsets = numbers(def, desc, "InputPixelOffsets"),
                       .output_offsets = numbers(def, desc, "OutputPixelOffsets"),
                       .halves = opjit_fe_field(def, desc, "RoundingDirection") == NULL };
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static opjit_status check_finite(const opjit_operator *op, const char *field, uint32_t d, float value,
                                 opjit_error *error)
{
    if (isfinite(value))
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s[%u]}: {%g}, must be finite", op->def->name, field,
                           d, (double)value);
}

/* What is between the steps has a limited number of elements, as tensors have.  Dimensions behind the one of a step
 * have the output's sizes by then. */
static opjit_status check_steps(const opjit_operator *op, const resample *r, opjit_error *error)
{
    uint64_t sizes[OPJIT_MAX_RANK];

    memcpy(sizes, op->inputs[0].sizes, sizeof sizes);
    for (uint32_t d = r->count; d-- > 0;) {
        uint64_t elements = 1;
        if (!opjit_fe_resample_has_step(op, r, d))
            continue;
        sizes[d] = op->outputs[0].sizes[d];
        for (uint32_t k = 0; k < r->count; k++) { /* of factors below 2^32 */
            elements *= sizes[k];
            if (elements > UINT32_MAX)
                return opjit_rt_refuse(error, OPJIT_LIMIT,
                                       "{%s} {%s.Sizes[%u]}: {%u}, must make, with the sizes before it of the input "
                                       "and those behind it of the output, at most %u elements",
                                       op->def->name, op->output_names[0], d, (unsigned)sizes[d], UINT32_MAX);
        }
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_resample_validate(const opjit_operator *op, opjit_error *error)
{
    const resample r = resample_of(op);
    const float least = 0x1p-20f;

    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, count_name(op->def, op->desc), r.count, error));
    for (uint32_t d = 0; d < r.count; d++) {
        TRY(check_finite(op, "Scales", d, r.scales[d], error));
        if (!(r.scales[d] >= least))
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {Scales[%u]}: {%g}, must be at least 2^-20",
                                   op->def->name, d, (double)r.scales[d]);
        TRY(check_finite(op, "InputPixelOffsets", d, resample_input_offset(&r, d), error));
        TRY(check_finite(op, "OutputPixelOffsets", d, resample_output_offset(&r, d), error));
    }
    TRY(check_steps(op, &r, error));
    return opjit_fe_resample_is_gradient(op) ? opjit_fe_resample_check_gradient(op, &r, error) : OPJIT_OK;
}

/* Sizes don't follow: the documents let them differ from the input's times Scales. */
void opjit_fe_resample_infer(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
}

/* --- coordinates -------------------------------------------------------------------------------------------------- */

/* Where coordinate o lies: x. */
ir_ref opjit_fe_resample_position(ir_func *f, const resample *r, uint32_t d, ir_ref o)
{
    const ir_ref own = ir_expr1(f, IR_ELEM, IR_F32, o);

    if (resample_keeps(r, d))
        return own;
    const ir_ref moved = ir_expr2(f, IR_SUB, IR_F32, own, resample_real(f, resample_output_offset(r, d)));
    const ir_ref scaled = ir_expr2(f, IR_DIV, IR_F32, moved, resample_real(f, resample_scale(r, d)));

    return ir_expr2(f, IR_SUB, IR_F32, scaled, resample_real(f, resample_input_offset(r, d)));
}

/* A whole number in FLOAT32 as a coordinate, of which no more is known than that it is `margin` or more outside. */
ir_ref opjit_fe_resample_whole(ir_func *f, ir_ref x, uint64_t margin, uint64_t size)
{
    const ir_ref index = ir_expr1(f, IR_TO_INDEX, IR_INDEX, ir_expr1(f, IR_CAST, IR_I64, x));
    return ir_expr3(f, IR_CLAMP, IR_INDEX, index, opjit_ir_index(f, -(int64_t)margin),
                    opjit_ir_index(f, (int64_t)(size - 1 + margin)));
}

ir_ref opjit_fe_resample_nearest(ir_func *f, const resample *r, uint32_t d, ir_ref o, uint64_t size)
{
    const ir_ref x = ir_expr1(f, r->up ? IR_CEIL : IR_FLOOR, IR_F32, opjit_fe_resample_position(f, r, d, o));
    return opjit_fe_inside(f, opjit_fe_resample_whole(f, x, 1, size), size);
}

resample_between opjit_fe_resample_between(ir_func *f, const resample *r, uint32_t d, ir_ref o, uint64_t size)
{
    const ir_ref x = opjit_fe_resample_position(f, r, d, o), floor = ir_expr1(f, IR_FLOOR, IR_F32, x),
                 low = opjit_fe_resample_whole(f, floor, 1, size);

    return (resample_between){ opjit_fe_inside(f, low, size), opjit_fe_inside(f, moves_add(f, low, 1), size),
                               ir_expr2(f, IR_SUB, IR_F32, x, floor) };
}

/* --- values ------------------------------------------------------------------------------------------------------- */

resample_values opjit_fe_resample_begin(op_lowering *l)
{
    const ir_type type = opjit_fe_output_type(l, 0);

    return (resample_values){ l, resample_of(l->op), type == IR_F64 ? IR_F64 : IR_F32, l->inputs[0], l->op->inputs[0] };
}

ir_ref opjit_fe_resample_load(const resample_values *v, const ir_ref *at)
{
    return v->l->f->failed ? 0 : resample_cast(v->l->f, v->wide, opjit_ir_load(v->l->f, v->tensor, at));
}

/* The coordinates of a definition with one of them replaced. */
void opjit_fe_resample_at(const resample_values *v, ir_ref def, uint32_t d, ir_ref in, ir_ref at[OPJIT_MAX_RANK])
{
    for (uint32_t k = 0; k < v->shape.rank; k++)
        at[k] = k == d ? in : opjit_ir_coordinate(v->l->f, def, k);
}

/* A definition whose size in dimension d is another one. */
ir_ref opjit_fe_resample_def(resample_values *v, uint32_t d, uint64_t size, ir_kind kind, uint64_t count)
{
    v->shape.sizes[d] = size;
    return count == 0 ? opjit_fe_def_to(v->l, v->wide, &v->shape)
                      : opjit_fe_reduce_to(v->l, kind, v->wide, &v->shape, count);
}

void opjit_fe_resample_set(resample_values *v, ir_ref def, ir_ref value)
{
    opjit_fe_set(v->l, def, value);
    if (!v->l->f->failed)
        v->tensor = ir_at(v->l->f, def)->ref;
}
