/* SPDX-License-Identifier: Apache-2.0 */
/* fill_value_constant.c - FILL_VALUE_CONSTANT: every element has the bits of Value. */
#include "frontend/ops/op.h"

#define DESC DML_FILL_VALUE_CONSTANT_OPERATOR_DESC

static const op_field fields[] = {
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, ValueDataType, OP_DTYPE, 0),
    OP_FIELD(DESC, Value, OP_SCALAR, OP_LATE),
};

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_4_0, 1, 8, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_4_1, 1, 8, OP_TYPES_ALL },
};

static void lower(op_lowering *l)
{
    const ir_ref out = opjit_fe_output(l, 0);

    opjit_ir_set_value(l->f, out, opjit_fe_scalar(l, "Value"));
}

const op_def opjit_fe_op_fill_value_constant = {
    .type = DML_OPERATOR_FILL_VALUE_CONSTANT,
    .name = "FILL_VALUE_CONSTANT",
    .formula = "Output[c] = Value",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .lower = lower,
};
