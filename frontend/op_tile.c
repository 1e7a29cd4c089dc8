/* op_tile.c - TILE: the input again and again, Repeats times in each dimension. */
#include "frontend/moves.h"

#define DESC DML_TILE_OPERATOR_DESC

static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, RepeatsCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(DESC, Repeats, RepeatsCount, OP_UINTS, 0),
};

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, MOVES_RANKS, OP_TYPES_ALL },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;

    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, "RepeatsCount", desc->RepeatsCount, error));
    for (uint32_t d = 0; d < desc->RepeatsCount; d++) {
        TRY(opjit_fe_check_entry(op, "Repeats", d, desc->Repeats[d], 1, UINT32_MAX, "", error));
        TRY(opjit_fe_check_size(op, "OutputTensor", &op->outputs[0], d, op->inputs[0].sizes[d] * desc->Repeats[d],
                                " as InputTensor's times Repeats", error));
    }
    return OPJIT_OK;
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = ir_expr2(f, IR_IMOD, IR_INDEX, opjit_ir_coordinate(f, out, d),
                         opjit_ir_index(f, (int64_t)l->op->inputs[0].sizes[d]));
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

const op_def opjit_fe_op_tile = {
    .type = DML_OPERATOR_TILE,
    .name = "TILE",
    .formula = "Output[c] = Input[c mod Input.Sizes]",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .lower = lower,
};
