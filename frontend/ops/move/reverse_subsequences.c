/* SPDX-License-Identifier: Apache-2.0 */
/* reverse_subsequences.c - REVERSE_SUBSEQUENCES: along Axis, reverses the first elements, as many as a length says, and
 * keeps the others.  Lengths are clamped into the dimension. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

#define DESC DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC
#define TYPES (OP_TYPES_ALL & ~OP_TYPES(FLOAT64))

static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, SequenceLengthsTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Axis, OP_UINT, 0),
};

static const op_support support[] = {
    { NULL, 0, MOVES_RANKS, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_2_1, MOVES_RANKS, TYPES },
    { "SequenceLengthsTensor", DML_FEATURE_LEVEL_2_1, MOVES_RANKS, MOVES_INDEX_TYPES },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;
    const fe_tensor *in = &op->inputs[0], *lengths = &op->inputs[1];

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    TRY(opjit_fe_check_rank(op, "SequenceLengthsTensor", lengths, in->rank, " as InputTensor.DimensionCount", error));
    for (uint32_t d = 0; d < in->rank; d++)
        TRY(opjit_fe_check_size(op, "SequenceLengthsTensor", lengths, d, d == desc->Axis ? 1 : in->sizes[d],
                                d == desc->Axis ? " on Axis" : " as in InputTensor", error));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    opjit_fe_infer_same(s);
    opjit_fe_infer_rank(&s->inputs[1], s->inputs[0].rank);
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const DESC *desc = l->op->desc;
    const uint64_t size = l->op->inputs[0].sizes[desc->Axis];
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], c, length, reversed;

    if (f->failed)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    c = at[desc->Axis];
    at[desc->Axis] = opjit_ir_index(f, 0);
    length = ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, opjit_ir_load(f, l->inputs[1], at)),
                      opjit_ir_index(f, 0), opjit_ir_index(f, (int64_t)size));
    reversed = ir_expr2(f, IR_ISUB, IR_INDEX, moves_add(f, length, -1), c);
    at[desc->Axis] =
        opjit_fe_inside(f, ir_expr3(f, IR_SELECT, IR_INDEX, ir_expr2(f, IR_LT, IR_BOOL, c, length), reversed, c), size);
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

const op_def opjit_fe_op_reverse_subsequences = {
    .type = DML_OPERATOR_REVERSE_SUBSEQUENCES,
    .name = "REVERSE_SUBSEQUENCES",
    .formula = "Output[c] = Input[c, but c < n ? n - 1 - c : c on Axis], n = SequenceLengths[c, but 0 on Axis]",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
