/* SPDX-License-Identifier: Apache-2.0 */
/* resample.h - shared by RESAMPLE's forms and their gradients (resample.c says what they compute): fields, checks,
 * where coordinates lie, and values that are resampled along one dimension after the other.  For the files of this
 * folder. */
#ifndef OPJIT_FRONTEND_OPS_RESAMPLE_H
#define OPJIT_FRONTEND_OPS_RESAMPLE_H

#include <string.h>

#include "frontend/ops/op.h"

extern const op_enum opjit_fe_interpolation_modes; /* of DML_INTERPOLATION_MODE: resample.c */

/* What the descriptors say. */
typedef struct resample {
    bool linear, up, antialiased; /* up: the nearest element is that of ceil(x) */
    uint32_t count;
    const float *scales, *input_offsets, *output_offsets; /* offsets NULL: 0.5 and -0.5 */
    DML_SIZE_2D image;                                    /* scales NULL: those of the last two dimensions */
    bool halves;                                          /* InputPixelOffset is 0.5 less for the nearest element */
} resample;

static inline float resample_scale(const resample *r, uint32_t d)
{
    if (r->scales != NULL)
        return r->scales[d];
    return d + 1 == r->count ? (float)r->image.Width : d + 2 == r->count ? (float)r->image.Height : 1;
}

static inline float resample_output_offset(const resample *r, uint32_t d)
{
    return r->output_offsets == NULL ? -0.5f : r->output_offsets[d];
}

static inline float resample_input_offset(const resample *r, uint32_t d)
{
    const float offset = r->input_offsets == NULL ? 0.5f : r->input_offsets[d];
    return r->halves && !r->linear ? offset - 0.5f : offset;
}

/* Whether x is o. */
static inline bool resample_keeps(const resample *r, uint32_t d)
{
    const float offset = r->input_offsets == NULL ? 0.5f : r->input_offsets[d];
    return resample_scale(r, d) == 1 && offset + resample_output_offset(r, d) == 0;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */
static inline bool opjit_fe_resample_is_gradient(const opjit_operator *op)
{
    return op->def->type == DML_OPERATOR_RESAMPLE_GRAD || op->def->type == DML_OPERATOR_RESAMPLE_GRAD1;
}

/* Whether dimension d is resampled by a step of its own. */
static inline bool opjit_fe_resample_has_step(const opjit_operator *op, const resample *r, uint32_t d)
{
    if (opjit_fe_resample_is_gradient(op))
        return !resample_keeps(r, d) || op->inputs[0].sizes[d] != op->outputs[0].sizes[d];
    return r->linear && !resample_keeps(r, d);
}

opjit_status opjit_fe_resample_validate(const opjit_operator *op, opjit_error *error);
/* What only gradients have: LIMIT where the sums take far more steps than there are elements. */
opjit_status opjit_fe_resample_check_gradient(const opjit_operator *op, const resample *r, opjit_error *error);
void opjit_fe_resample_infer(op_inference *s);

/* --- coordinates -------------------------------------------------------------------------------------------------- */
static inline ir_ref resample_real(ir_func *f, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return opjit_ir_const(f, IR_F32, bits);
}

/* Where coordinate o lies: x. */
ir_ref opjit_fe_resample_position(ir_func *f, const resample *r, uint32_t d, ir_ref o);
/* A whole number in FLOAT32 as a coordinate, of which no more is known than that it is `margin` or more outside. */
ir_ref opjit_fe_resample_whole(ir_func *f, ir_ref x, uint64_t margin, uint64_t size);
/* The element that NEAREST_NEIGHBOR takes. */
ir_ref opjit_fe_resample_nearest(ir_func *f, const resample *r, uint32_t d, ir_ref o, uint64_t size);
/* The two elements that coordinate o is between, and where: t. */
typedef struct resample_between {
    ir_ref low, high, t;
} resample_between;
resample_between opjit_fe_resample_between(ir_func *f, const resample *r, uint32_t d, ir_ref o, uint64_t size);

/* --- values ------------------------------------------------------------------------------------------------------- */
/* What is resampled so far: a definition, or the input; in which type it is computed. */
typedef struct resample_values {
    op_lowering *l;
    resample r;
    ir_type wide;
    uint32_t tensor;
    fe_tensor shape;
} resample_values;
resample_values opjit_fe_resample_begin(op_lowering *l); /* the input */
static inline ir_ref resample_cast(ir_func *f, ir_type type, ir_ref x)
{
    return f->failed || ir_at(f, x)->type == type ? x : ir_expr1(f, IR_CAST, type, x);
}

/* The value at these coordinates, in the type it is computed in. */
ir_ref opjit_fe_resample_load(const resample_values *v, const ir_ref *at);
/* The coordinates of a definition with one of them replaced. */
void opjit_fe_resample_at(const resample_values *v, ir_ref def, uint32_t d, ir_ref in, ir_ref at[OPJIT_MAX_RANK]);
/* A definition whose size in dimension d is another one, which reduces count values unless that is 0; when its value is
 * set, it is what the values are. */
ir_ref opjit_fe_resample_def(resample_values *v, uint32_t d, uint64_t size, ir_kind kind, uint64_t count);
void opjit_fe_resample_set(resample_values *v, ir_ref def, ir_ref value);
/* LINEAR along dimension d, to a size: what the values are then. */
void opjit_fe_resample_along(resample_values *v, uint32_t d, uint64_t size);

/* The gradients (resample_grad.c). */
void opjit_fe_resample_lower_grad(op_lowering *l);

#endif
