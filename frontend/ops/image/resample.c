/* SPDX-License-Identifier: Apache-2.0 */
/* resample.c - RESAMPLE with its later forms and their gradients.  Coordinate o of the output lies at
 *     x = (o - OutputPixelOffset) / Scale - InputPixelOffset
 * of the input, each operation rounded to FLOAT32 whatever the tensors' type is.
 *
 * NEAREST_NEIGHBOR takes the element at floor(x), or at ceil(x) with RoundingDirection INCREASING; the forms without
 * that field take the one at floor(x + 0.5), where the half is taken off InputPixelOffset.  LINEAR is a (1 - t) + b t,
 * t = x - floor(x), of the elements at floor(x) and behind it: along the last dimension first, then along the one
 * before it, and so on.  In a dimension whose Scale is 1 and whose offsets cancel x is o, and nothing is between.
 * Coordinates outside of the input are clamped.  FLOAT16 and integers are computed in FLOAT32; integers are rounded to
 * nearest, halves to even.
 *
 * Antialiased, a dimension with 1 / Scale > 2 is instead the weighted mean, in order, of the elements j from
 * floor(x) + floor(-1 / Scale) + 1 on, 2 - 2 (floor(-1 / Scale) + 1) of them, clamped, with the weights
 * max(0, 1 - |j - x| Scale), as ONNX has it.  Gradients: resample_grad.c. */
#include <math.h>

#include "frontend/ops/image/resample.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

/* --- linear ------------------------------------------------------------------------------------------------------- */

void opjit_fe_resample_along(resample_values *v, uint32_t d, uint64_t size)
{
    const uint64_t in = v->shape.sizes[d];
    const ir_ref def = opjit_fe_resample_def(v, d, size, IR_SUM, 0);
    ir_func *f = v->l->f;
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    const resample_between b = opjit_fe_resample_between(f, &v->r, d, opjit_ir_coordinate(f, def, d), in);
    const ir_ref t = resample_cast(f, v->wide, b.t), one = opjit_fe_real(f, v->wide, 1);
    opjit_fe_resample_at(v, def, d, b.low, at);
    const ir_ref low =
        ir_expr2(f, IR_MUL, v->wide, opjit_fe_resample_load(v, at), ir_expr2(f, IR_SUB, v->wide, one, t));
    opjit_fe_resample_at(v, def, d, b.high, at);
    opjit_fe_resample_set(
        v, def, ir_expr2(f, IR_ADD, v->wide, low, ir_expr2(f, IR_MUL, v->wide, opjit_fe_resample_load(v, at), t)));
}

/* --- antialiased -------------------------------------------------------------------------------------------------- */

static bool smooths(const resample *r, uint32_t d)
{
    return r->antialiased && 1 / r->scales[d] > 2;
}

/* The first element's distance from floor(x). */
static int64_t first_of(const resample *r, uint32_t d)
{
    return (int64_t)floorf(-1 / r->scales[d]) + 1;
}

/* The weight of the k-th element. */
static ir_ref weight(const resample_values *v, uint32_t d, ir_ref x, ir_ref k)
{
    ir_func *f = v->l->f;
    const ir_ref part = ir_expr2(f, IR_SUB, IR_F32, x, ir_expr1(f, IR_FLOOR, IR_F32, x));
    const ir_ref j = ir_expr1(f, IR_ELEM, IR_F32, moves_add(f, k, first_of(&v->r, d)));
    const ir_ref far =
        ir_expr2(f, IR_MUL, IR_F32, ir_expr2(f, IR_SUB, IR_F32, j, part), resample_real(f, v->r.scales[d]));
    const ir_ref w = ir_expr2(f, IR_SUB, IR_F32, resample_real(f, 1), ir_expr1(f, IR_ABS, IR_F32, far));

    return resample_cast(f, v->wide, ir_expr2(f, IR_MAX, IR_F32, w, resample_real(f, 0)));
}

/* The sum of the weights of each coordinate of a dimension. */
static ir_ref total_of(resample_values *v, uint32_t d, uint64_t size, uint64_t count)
{
    fe_tensor line = { .rank = v->shape.rank };
    ir_func *f = v->l->f;

    for (uint32_t k = 0; k < line.rank; k++)
        line.sizes[k] = k == d ? size : 1;
    const ir_ref total = opjit_fe_reduce_to(v->l, IR_SUM, v->wide, &line, count);
    if (f->failed)
        return 0;
    const ir_ref x = opjit_fe_resample_position(f, &v->r, d, opjit_ir_coordinate(f, total, d));
    opjit_fe_set(v->l, total, weight(v, d, x, opjit_ir_reduced(f, total)));
    return total;
}

static void along_smooth(resample_values *v, uint32_t d)
{
    const uint64_t in = v->shape.sizes[d], out = v->l->op->outputs[0].sizes[d];
    const int64_t first = first_of(&v->r, d);
    const uint64_t count = (uint64_t)(2 - 2 * first);
    const ir_ref total = total_of(v, d, out, count), sum = opjit_fe_resample_def(v, d, out, IR_SUM, count);
    ir_func *f = v->l->f;
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    const ir_ref x = opjit_fe_resample_position(f, &v->r, d, opjit_ir_coordinate(f, sum, d)),
                 k = opjit_ir_reduced(f, sum);
    const ir_ref low = opjit_fe_resample_whole(f, ir_expr1(f, IR_FLOOR, IR_F32, x), count, in);
    const ir_ref j = ir_expr2(f, IR_IADD, IR_INDEX, low, moves_add(f, k, first));
    opjit_fe_resample_at(v, sum, d, opjit_fe_inside(f, j, in), at);
    opjit_fe_resample_set(v, sum, ir_expr2(f, IR_MUL, v->wide, opjit_fe_resample_load(v, at), weight(v, d, x, k)));

    const ir_ref mean = opjit_fe_resample_def(v, d, out, IR_SUM, 0);
    if (f->failed)
        return;
    opjit_fe_resample_at(v, mean, d, opjit_ir_coordinate(f, mean, d), at);
    const ir_ref value = opjit_fe_resample_load(v, at);
    for (uint32_t n = 0; n < v->shape.rank; n++)
        at[n] = n == d ? at[n] : opjit_ir_index(f, 0);
    opjit_fe_resample_set(v, mean, ir_expr2(f, IR_DIV, v->wide, value, opjit_ir_load(f, ir_at(f, total)->ref, at)));
}

/* --- RESAMPLE ----------------------------------------------------------------------------------------------------- */

static void lower(op_lowering *l)
{
    resample_values v = opjit_fe_resample_begin(l);
    const ir_type type = opjit_fe_output_type(l, 0);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = v.r.count; d-- > 0;)
        if (opjit_fe_resample_has_step(l->op, &v.r, d) && smooths(&v.r, d))
            along_smooth(&v, d);
        else if (opjit_fe_resample_has_step(l->op, &v.r, d))
            opjit_fe_resample_along(&v, d, l->op->outputs[0].sizes[d]);
    const ir_ref out = opjit_fe_output(l, 0);
    if (f->failed)
        return;
    for (uint32_t d = 0; d < v.r.count; d++) {
        const ir_ref o = opjit_ir_coordinate(f, out, d);
        at[d] = v.r.linear || resample_keeps(&v.r, d) ? opjit_fe_inside(f, o, v.shape.sizes[d])
                                                      : opjit_fe_resample_nearest(f, &v.r, d, o, v.shape.sizes[d]);
    }
    ir_ref x = v.r.linear ? opjit_fe_resample_load(&v, at) : opjit_ir_load(f, v.tensor, at);
    if (v.r.linear && !ir_is_float(type))
        x = ir_expr1(f, IR_RINT, v.wide, x);
    opjit_fe_set(l, out, x);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_enum_name mode_names[] = {
    { "DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR", DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR },
    { "DML_INTERPOLATION_MODE_LINEAR", DML_INTERPOLATION_MODE_LINEAR },
    { NULL, 0 },
};
const op_enum opjit_fe_interpolation_modes = { "DML_INTERPOLATION_MODE_", mode_names };

#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
#define FLOATS(LEVEL, first)                                                     \
    { NULL, 0, first, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },                   \
    { NULL, DML_FEATURE_LEVEL_##LEVEL, first, 4, OP_TYPES_FLOAT }
static const op_support support[] = { FLOATS(2_0, 4) };
static const op_support support1[] = { FLOATS(2_1, 4) };
static const op_support support2[] = {
    { NULL, 0, 1, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | TYPES_8 },
    { NULL, DML_FEATURE_LEVEL_5_1, 1, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_6_2, 1, 4, OP_TYPES_FLOAT | TYPES_8 },
};
static const op_support support3[] = {
    { NULL, 0, 1, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | TYPES_8 },
    { NULL, DML_FEATURE_LEVEL_6_4, 1, 4, OP_TYPES_FLOAT | TYPES_8 },
};
static const op_support grad_support[] = { FLOATS(3_0, 4) };
static const op_support grad1_support[] = { FLOATS(5_1, 1) };

#define TENSORS(T)                                                    \
    OP_FIELD(T, InputTensor, OP_INPUT, 0),                            \
    OP_FIELD(T, OutputTensor, OP_OUTPUT, 0),                          \
    OP_FIELD_ENUM(T, InterpolationMode, &opjit_fe_interpolation_modes)
#define GRADIENTS(T)                                                  \
    OP_FIELD(T, InputGradientTensor, OP_INPUT, 0),                    \
    OP_FIELD(T, OutputGradientTensor, OP_OUTPUT, 0),                  \
    OP_FIELD_ENUM(T, InterpolationMode, &opjit_fe_interpolation_modes)
#define OFFSETS(T)                                                    \
    OP_FIELD(T, DimensionCount, OP_UINT, OP_COUNT),                   \
    OP_FIELD_ARRAY(T, Scales, DimensionCount, OP_FLOATS, 0),          \
    OP_FIELD_ARRAY(T, InputPixelOffsets, DimensionCount, OP_FLOATS, 0), \
    OP_FIELD_ARRAY(T, OutputPixelOffsets, DimensionCount, OP_FLOATS, 0)

#define PLAIN DML_RESAMPLE_OPERATOR_DESC
static const op_field fields[] = {
    TENSORS(PLAIN),
    OP_FIELD(PLAIN, ScaleCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(PLAIN, Scales, ScaleCount, OP_FLOATS, 0),
};
static const op_field fields1[] = { TENSORS(DML_RESAMPLE1_OPERATOR_DESC), OFFSETS(DML_RESAMPLE1_OPERATOR_DESC) };
static const op_field fields2[] = {
    TENSORS(DML_RESAMPLE2_OPERATOR_DESC),
    OP_FIELD_ENUM(DML_RESAMPLE2_OPERATOR_DESC, RoundingDirection, &opjit_fe_axis_directions),
    OFFSETS(DML_RESAMPLE2_OPERATOR_DESC),
};
static const op_field fields3[] = {
    TENSORS(DML_RESAMPLE3_OPERATOR_DESC),
    OP_FIELD_ENUM(DML_RESAMPLE3_OPERATOR_DESC, RoundingDirection, &opjit_fe_axis_directions),
    OFFSETS(DML_RESAMPLE3_OPERATOR_DESC),
    OP_FIELD(DML_RESAMPLE3_OPERATOR_DESC, Antialiased, OP_BOOL, 0),
};
static const op_field grad_fields[] = {
    GRADIENTS(DML_RESAMPLE_GRAD_OPERATOR_DESC), OFFSETS(DML_RESAMPLE_GRAD_OPERATOR_DESC),
};
static const op_field grad1_fields[] = {
    GRADIENTS(DML_RESAMPLE_GRAD1_OPERATOR_DESC),
    OP_FIELD_ENUM(DML_RESAMPLE_GRAD1_OPERATOR_DESC, RoundingDirection, &opjit_fe_axis_directions),
    OFFSETS(DML_RESAMPLE_GRAD1_OPERATOR_DESC),
};
/* clang-format on */

const op_def opjit_fe_op_resample = {
    .type = DML_OPERATOR_RESAMPLE,
    .name = "RESAMPLE",
    .formula = "Input at ((o + 0.5) / Scale - 0.5): the nearest element, or between the two at each side",
    .desc_size = sizeof(DML_RESAMPLE_OPERATOR_DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = lower,
};

const op_def opjit_fe_op_resample1 = {
    .type = DML_OPERATOR_RESAMPLE1,
    .name = "RESAMPLE1",
    .formula = "Input at ((o - OutputPixelOffset) / Scale - InputPixelOffset): the nearest element, or between two",
    .desc_size = sizeof(DML_RESAMPLE1_OPERATOR_DESC),
    OP_ROWS(fields1, support1),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = lower,
};

const op_def opjit_fe_op_resample2 = {
    .type = DML_OPERATOR_RESAMPLE2,
    .name = "RESAMPLE2",
    .formula = "Input at ((o - OutputPixelOffset) / Scale - InputPixelOffset): rounded up or down, or between two",
    .desc_size = sizeof(DML_RESAMPLE2_OPERATOR_DESC),
    OP_ROWS(fields2, support2),
    .introduced = DML_FEATURE_LEVEL_5_1,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = lower,
};

const op_def opjit_fe_op_resample3 = {
    .type = DML_OPERATOR_RESAMPLE3,
    .name = "RESAMPLE3",
    .formula = "RESAMPLE2; Antialiased: the weighted mean of 2 / Scale elements where Scale is below 1 / 2",
    .desc_size = sizeof(DML_RESAMPLE3_OPERATOR_DESC),
    OP_ROWS(fields3, support3),
    .introduced = DML_FEATURE_LEVEL_6_4,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = lower,
};

const op_def opjit_fe_op_resample_grad = {
    .type = DML_OPERATOR_RESAMPLE_GRAD,
    .name = "RESAMPLE_GRAD",
    .formula = "the sum of InputGradient times the weight that RESAMPLE1 gives the element",
    .desc_size = sizeof(DML_RESAMPLE_GRAD_OPERATOR_DESC),
    OP_ROWS(grad_fields, grad_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = opjit_fe_resample_lower_grad,
};

const op_def opjit_fe_op_resample_grad1 = {
    .type = DML_OPERATOR_RESAMPLE_GRAD1,
    .name = "RESAMPLE_GRAD1",
    .formula = "the sum of InputGradient times the weight that RESAMPLE2 gives the element",
    .desc_size = sizeof(DML_RESAMPLE_GRAD1_OPERATOR_DESC),
    OP_ROWS(grad1_fields, grad1_support),
    .introduced = DML_FEATURE_LEVEL_5_1,
    .validate = opjit_fe_resample_validate,
    .infer = opjit_fe_resample_infer,
    .lower = opjit_fe_resample_lower_grad,
};
