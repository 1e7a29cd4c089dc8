/* SPDX-License-Identifier: Apache-2.0 */
/* diagonal_matrix.c - DIAGONAL_MATRIX: Value on one diagonal of every matrix of the last two dimensions, 0
 * elsewhere. */
#include "frontend/ops/op.h"

#define DESC DML_DIAGONAL_MATRIX_OPERATOR_DESC

static const op_field fields[] = {
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Offset, OP_INT, OP_LATE),
    OP_FIELD(DESC, Value, OP_FLOAT, OP_LATE),
};

static const op_support support[] = {
    { NULL, 0, 2, 8, OP_TYPES_ALL }, /* ranks above 4 are an extension */
    { NULL, DML_FEATURE_LEVEL_2_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_4_0, 2, 4, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_5_1, 2, 4, OP_TYPES_ALL },
};

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    const uint32_t rank = l->op->outputs[0].rank;
    const ir_ref out = opjit_fe_output(l, 0);
    const ir_ref x = opjit_ir_coordinate(f, out, rank - 1), y = opjit_ir_coordinate(f, out, rank - 2);
    const ir_ref on = ir_expr2(f, IR_EQ, IR_BOOL, ir_expr2(f, IR_IADD, IR_INDEX, y, opjit_fe_int(l, "Offset")), x);
    ir_ref value = opjit_fe_float(l, "Value");

    if (type != IR_F32) /* a FLOAT32 tensor gets Value's bits */
        value = ir_expr1(f, IR_CAST, type, value);
    opjit_ir_set_value(f, out, ir_expr3(f, IR_SELECT, type, on, value, opjit_ir_const(f, type, 0)));
}

const op_def opjit_fe_op_diagonal_matrix = {
    .type = DML_OPERATOR_DIAGONAL_MATRIX,
    .name = "DIAGONAL_MATRIX",
    .formula = "Output[.., y, x] = y + Offset == x ? Value : 0",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .lower = lower,
};
