/* SPDX-License-Identifier: Apache-2.0 */
/* value_scale.c - VALUE_SCALE_2D: x * Scale + Bias[channel], of images with one channel or three. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_VALUE_SCALE_2D_OPERATOR_DESC

enum { CHANNEL = 1 }; /* dimension */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Scale, OP_FLOAT, 0),
    OP_FIELD(DESC, ChannelCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(DESC, Bias, ChannelCount, OP_FLOATS, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    if (desc->ChannelCount != 1 && desc->ChannelCount != 3)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {ChannelCount}: {%u}, must be 1 or 3",
                               op->def->name, desc->ChannelCount);
    return opjit_fe_check_size(op, "InputTensor", &op->inputs[0], CHANNEL, desc->ChannelCount, " as ChannelCount",
                               error);
}

static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    op_element e = { .f = l->f, .desc = desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref x = op2(&e, IR_MUL, opjit_fe_wide_input(l, at), opjit_fe_number(&e, desc->Scale));
    ir_ref bias = opjit_fe_number(&e, desc->Bias[desc->ChannelCount - 1]);
    for (uint32_t c = desc->ChannelCount - 1; c-- > 0;)
        bias = choose(&e, ir_expr2(l->f, IR_EQ, IR_BOOL, at[CHANNEL], opjit_ir_index(l->f, c)),
                      opjit_fe_number(&e, desc->Bias[c]), bias);
    opjit_fe_set(l, out, op2(&e, IR_ADD, x, bias));
}

const op_def opjit_fe_op_value_scale_2d = {
    .type = DML_OPERATOR_VALUE_SCALE_2D,
    .name = "VALUE_SCALE_2D",
    .formula = "x * Scale + Bias[channel]",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_infer_same,
    .lower = lower,
};
