/* SPDX-License-Identifier: Apache-2.0 */
/* one_hot.c - ONE_HOT: the on value where the coordinate on Axis equals the index, the off value elsewhere.  Negative
 * indices count from the end; an index that is still outside matches nothing. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

#define DESC DML_ONE_HOT_OPERATOR_DESC

static const op_field fields[] = {
    OP_FIELD(DESC, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(DESC, ValuesTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Axis, OP_UINT, 0),
};

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_2_0, MOVES_RANKS, OP_TYPES_ALL },
    { "IndicesTensor", DML_FEATURE_LEVEL_2_0, MOVES_RANKS, MOVES_INDEX_TYPES },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;
    const fe_tensor *indices = &op->inputs[0], *values = &op->inputs[1], *out = &op->outputs[0];

    TRY(opjit_fe_same_type(op, 1, 0, error));
    TRY(opjit_fe_check_rank(op, "IndicesTensor", indices, out->rank, " as OutputTensor.DimensionCount", error));
    TRY(opjit_fe_check_rank(op, "ValuesTensor", values, out->rank, " as OutputTensor.DimensionCount", error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    for (uint32_t d = 0; d < out->rank; d++) {
        const bool on_axis = d == desc->Axis, last = d + 1 == out->rank;
        TRY(opjit_fe_check_size(op, "IndicesTensor", indices, d, on_axis ? 1 : out->sizes[d],
                                on_axis ? " on Axis" : " as in OutputTensor", error));
        TRY(opjit_fe_check_size(op, "ValuesTensor", values, d, last ? 2 : 1, last ? ": off and on value" : "", error));
    }
    return OPJIT_OK;
}

/* The size on Axis does not follow from the inputs. */
static void infer(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[1].dtype);
    opjit_fe_infer_rank(&s->inputs[1], s->inputs[0].rank);
}

static ir_ref value_at(op_lowering *l, int64_t which)
{
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < l->op->inputs[1].rank; d++)
        at[d] = opjit_ir_index(l->f, d + 1 == l->op->inputs[1].rank ? which : 0);
    return opjit_ir_load(l->f, l->inputs[1], at);
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const DESC *desc = l->op->desc;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], index, hit;

    if (f->failed)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = d == desc->Axis ? opjit_ir_index(f, 0) : opjit_ir_coordinate(f, out, d);
    index = opjit_fe_index_from_end(l, opjit_ir_load(f, l->inputs[0], at), l->op->outputs[0].sizes[desc->Axis]);
    hit = ir_expr2(f, IR_EQ, IR_BOOL, index, opjit_ir_coordinate(f, out, desc->Axis));
    opjit_ir_set_value(f, out, ir_expr3(f, IR_SELECT, opjit_fe_output_type(l, 0), hit, value_at(l, 1), value_at(l, 0)));
}

const op_def opjit_fe_op_one_hot = {
    .type = DML_OPERATOR_ONE_HOT,
    .name = "ONE_HOT",
    .formula = "Output[c] = Indices[c, but 0 on Axis] == c[Axis] ? Values[1] : Values[0]",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
