/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - TILE: the input repeated Repeats times in each dimension. */
#include <string.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

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

static void infer(op_inference *s)
{
    const DESC *desc = s->desc;
    op_shape tiled = s->inputs[0];

    for (uint32_t d = 0; d < tiled.rank && d < desc->RepeatsCount; d++)
        tiled.sizes[d] *= desc->Repeats[d];
    infer_type(&s->outputs[0], tiled.dtype);
    infer_shape(&s->outputs[0], &tiled);
}

/* Most repetitions of a row that become stages of their own, and the shortest row for that. */
#define MOST_PARTS 16u
#define LEAST_ROW 64u /* elements */

/* The statement's value: the input at its coordinates modulo the input's sizes. */
static void repeat(op_lowering *l, ir_ref out)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    if (out == 0)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = ir_expr2(f, IR_IMOD, IR_INDEX, opjit_ir_coordinate(f, out, d),
                         opjit_ir_index(f, (int64_t)l->op->inputs[0].sizes[d]));
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

/* Writes long rows once per repetition, so that a row is copied as a whole. */
static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    const uint32_t last = l->op->inputs[0].rank - 1;
    const uint64_t row = l->op->inputs[0].sizes[last];
    uint64_t offsets[OPJIT_MAX_RANK] = { 0 }, sizes[OPJIT_MAX_RANK];

    if (l->f->failed)
        return;
    if (l->f->tensors[l->outputs[0]].role != IR_OUT || row < LEAST_ROW || desc->Repeats[last] > MOST_PARTS) {
        repeat(l, opjit_fe_output(l, 0));
        return;
    }
    memcpy(sizes, l->op->outputs[0].sizes, sizeof sizes);
    sizes[last] = row;
    for (uint32_t i = 0; i < desc->Repeats[last]; i++, offsets[last] += row)
        repeat(l, opjit_fe_output_box(l, 0, offsets, sizes));
}

const op_def opjit_fe_op_tile = {
    .type = DML_OPERATOR_TILE,
    .name = "TILE",
    .formula = "Output[c] = Input[c mod Input.Sizes]",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
