/* SPDX-License-Identifier: Apache-2.0 */
/* fill_value_sequence.c - FILL_VALUE_SEQUENCE: element e is ValueStart + e * ValueDelta, e being the logical
 * row-major index whatever the strides are.  Never accumulated; how it rounds depends on the type, see lower. */
#include "frontend/ops/op.h"

#define DESC DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC

static const op_field fields[] = {
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, ValueDataType, OP_DTYPE, 0),
    OP_FIELD(DESC, ValueStart, OP_SCALAR, OP_LATE),
    OP_FIELD(DESC, ValueDelta, OP_SCALAR, OP_LATE),
};

static const op_support support[] = {
    { NULL, 0, 1, 8, OP_TYPES_ALL }, /* FLOAT64 is an extension: no feature level has it */
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_4_0, 1, 8, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_5_0, 1, 8, OP_TYPES_FLOAT | OP_TYPES_INT_TO_32 | OP_TYPES_INT_64 },
};

/* The row-major index of statement out's coordinates: sum of c[i] * (product of the sizes after i). */
static ir_ref element_index(const op_lowering *l, ir_ref out)
{
    const fe_tensor *tensor = &l->op->outputs[0];
    ir_ref index = opjit_ir_coordinate(l->f, out, tensor->rank - 1);
    uint64_t weight = 1;

    for (uint32_t i = tensor->rank - 1; i-- > 0;) {
        ir_ref scaled;
        weight *= tensor->sizes[i + 1]; /* divides the element count, so below 2^32 */
        scaled =
            ir_expr2(l->f, IR_IMUL, IR_INDEX, opjit_ir_coordinate(l->f, out, i), opjit_ir_index(l->f, (int64_t)weight));
        index = ir_expr2(l->f, IR_IADD, IR_INDEX, scaled, index);
    }
    return index;
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    const ir_type computed = type == IR_F16 ? IR_F32 : type; /* halves: in FLOAT32, rounded once at the end */
    const ir_ref out = opjit_fe_output(l, 0);
    const ir_ref e = ir_expr1(f, IR_ELEM, computed, element_index(l, out));
    ir_ref start = opjit_fe_scalar(l, "ValueStart");
    ir_ref delta = opjit_fe_scalar(l, "ValueDelta");
    ir_ref value;

    switch (type) {
    case IR_F16:
        start = ir_expr1(f, IR_CAST, IR_F32, start);
        delta = ir_expr1(f, IR_CAST, IR_F32, delta);
        value = ir_expr1(f, IR_CAST, IR_F16, ir_expr3(f, IR_FMA, IR_F32, e, delta, start));
        break;
    case IR_F32: value = ir_expr3(f, IR_FMA, IR_F32, e, delta, start); break;
    case IR_F64: value = ir_expr2(f, IR_ADD, IR_F64, ir_expr2(f, IR_MUL, IR_F64, e, delta), start); break;
    default: /* integers: modulo 2^N */
        value = ir_expr2(f, IR_ADD, type, start, ir_expr2(f, IR_MUL, type, e, delta));
        break;
    }
    opjit_ir_set_value(f, out, value);
}

const op_def opjit_fe_op_fill_value_sequence = {
    .type = DML_OPERATOR_FILL_VALUE_SEQUENCE,
    .name = "FILL_VALUE_SEQUENCE",
    .formula = "Output[e] = ValueStart + e * ValueDelta, e the row-major index",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .lower = lower,
};
