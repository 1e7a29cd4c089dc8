/* SPDX-License-Identifier: Apache-2.0 */
/* diagonal_matrix1.c - DIAGONAL_MATRIX1: Value in (or, with the bounds reversed, outside of) a band of diagonals of
 * every matrix of the last two dimensions, the input or 0 elsewhere. */
#include "frontend/ops/infer.h"

#define DESC DML_DIAGONAL_MATRIX1_OPERATOR_DESC

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, ValueDataType, OP_DTYPE, 0),
    OP_FIELD(DESC, Value, OP_SCALAR, OP_LATE),
    OP_FIELD(DESC, DiagonalFillBegin, OP_INT, OP_LATE),
    OP_FIELD(DESC, DiagonalFillEnd, OP_INT, OP_LATE),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 2, 8, OP_TYPES_ALL }, /* ranks above 4 are an extension */
    { NULL, DML_FEATURE_LEVEL_5_1, 2, 4, OP_TYPES_ALL },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    return op->inputs[0].present ? opjit_fe_same_shape(op, 0, 0, error) : OPJIT_OK;
}

/* The document's pseudocode.  Index arithmetic has 64 bits, so INT32_MIN and INT32_MAX are bounds like any other. */
static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    const uint32_t rank = l->op->outputs[0].rank;
    const ir_ref out = opjit_fe_output(l, 0);
    const ir_ref x = opjit_ir_coordinate(f, out, rank - 1), y = opjit_ir_coordinate(f, out, rank - 2);
    const ir_ref begin = opjit_fe_int(l, "DiagonalFillBegin"), end = opjit_fe_int(l, "DiagonalFillEnd");
    const ir_ref top_x = ir_expr2(f, IR_ISUB, IR_INDEX, x, y);
    const ir_ref ordered = ir_expr2(f, IR_LE, IR_BOOL, begin, end);
    const ir_ref from_begin = ir_expr2(f, IR_LE, IR_BOOL, begin, top_x);
    const ir_ref before_end = ir_expr2(f, IR_LT, IR_BOOL, top_x, end);
    const ir_ref use = ir_expr2(f, IR_XOR, IR_BOOL, ir_expr2(f, IR_XOR, IR_BOOL, ordered, from_begin), before_end);
    const ir_ref rest = l->inputs[0] != 0 ? opjit_fe_input_at(l, 0, out) : opjit_ir_const(f, type, 0);

    opjit_ir_set_value(f, out, ir_expr3(f, IR_SELECT, type, use, opjit_fe_scalar(l, "Value"), rest));
}

const op_def opjit_fe_op_diagonal_matrix1 = {
    .type = DML_OPERATOR_DIAGONAL_MATRIX1,
    .name = "DIAGONAL_MATRIX1",
    .formula = "Output[.., y, x] = (End >= Begin) ^ (x - y >= Begin) ^ (x - y < End) ? Value : Input or 0",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_5_1,
    .validate = validate,
    .infer = opjit_fe_infer_same,
    .lower = lower,
};
