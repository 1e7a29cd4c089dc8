/* SPDX-License-Identifier: Apache-2.0 */
/* upsample.c - UPSAMPLE_2D: the last two dimensions ScaleSize times as large (DML_UPSAMPLE_2D_OPERATOR_DESC).
 *
 * NEAREST_NEIGHBOR takes the element that the center of the output's pixel lies in, o / scale rounded down.  LINEAR is
 * RESAMPLE's, at x = (o + 0.5) / scale - 0.5, each operation rounded to FLOAT32: along the last dimension first.  A
 * dimension whose scale is 1 is left as it is. */
#include "frontend/ops/image/resample.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

#define DESC DML_UPSAMPLE_2D_OPERATOR_DESC

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, ScaleSize, OP_SIZE_2D, 0),
    OP_FIELD_ENUM(DESC, InterpolationMode, &opjit_fe_interpolation_modes),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 4, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 5, OP_TYPES_FLOAT },
};

static uint32_t scale_of(const DESC *desc, uint32_t rank, uint32_t d)
{
    return d + 1 == rank ? desc->ScaleSize.Width : d + 2 == rank ? desc->ScaleSize.Height : 1;
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[0];

    TRY(opjit_fe_check_pair(op, 0, error));
    for (uint32_t d = 0; d < in->rank; d++) {
        const uint32_t scale = scale_of(desc, in->rank, d);
        const char *field = d + 1 == in->rank ? "ScaleSize.Width" : "ScaleSize.Height";
        if (scale == 0 || scale > UINT32_MAX / in->sizes[d])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%u}, must be 1 to %u", op->def->name,
                                   field, scale, (unsigned)(UINT32_MAX / in->sizes[d]));
        TRY(opjit_fe_check_size(op, op->output_names[0], out, d, in->sizes[d] * scale,
                                ", InputTensor's times the scale", error));
    }
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    op_shape out = s->inputs[0];

    infer_type(&s->outputs[0], out.dtype);
    for (uint32_t d = 0; d < out.rank; d++)
        out.sizes[d] *= scale_of(s->desc, out.rank, d);
    infer_shape(&s->outputs[0], &out);
}

static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    const uint32_t rank = l->op->inputs[0].rank;
    const bool linear = desc->InterpolationMode == DML_INTERPOLATION_MODE_LINEAR;
    resample_values v = opjit_fe_resample_begin(l);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    v.r = (resample){ .linear = linear, .count = rank, .image = desc->ScaleSize };
    for (uint32_t d = rank; linear && d-- > rank - 2;)
        if (!resample_keeps(&v.r, d))
            opjit_fe_resample_along(&v, d, l->op->outputs[0].sizes[d]);
    const ir_ref out = opjit_fe_output(l, 0);
    if (f->failed)
        return;
    for (uint32_t d = 0; d < rank; d++) {
        const ir_ref o = opjit_ir_coordinate(f, out, d);
        const int64_t scale = linear ? 1 : scale_of(desc, rank, d);
        at[d] = scale == 1 ? o : ir_expr2(f, IR_IDIV, IR_INDEX, o, opjit_ir_index(f, scale));
    }
    opjit_fe_set(l, out, linear ? opjit_fe_resample_load(&v, at) : opjit_ir_load(f, v.tensor, at));
}

const op_def opjit_fe_op_upsample_2d = {
    .type = DML_OPERATOR_UPSAMPLE_2D,
    .name = "UPSAMPLE_2D",
    .formula = "Input at ((o + 0.5) / ScaleSize - 0.5): the nearest element, or between the two at each side",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
