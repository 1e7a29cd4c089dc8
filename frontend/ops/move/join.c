/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - JOIN and SPLIT: concatenates tensors along an axis, and splits them again. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

/* Most parts of one output that become stages of their own: each stage takes time to compile, each part of a stage
 * takes the verifier time. */
#define MOST_PARTS 48u
/* Most parts of a row that become loops of one stage. */
#define MOST_PIECES 8u

/* --- JOIN --------------------------------------------------------------------------------------------------------- */

#define JOIN DML_JOIN_OPERATOR_DESC

/* clang-format off */
static const op_field join_fields[] = {
    OP_FIELD(JOIN, InputCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(JOIN, InputTensors, InputCount, OP_INPUTS, 0),
    OP_FIELD(JOIN, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(JOIN, Axis, OP_UINT, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, MOVES_RANKS, OP_TYPES_ALL },
};

static opjit_status validate_join(const opjit_operator *op, opjit_error *error)
{
    const JOIN *desc = op->desc;
    const fe_tensor *out = &op->outputs[0];
    uint64_t sum = 0;

    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    for (uint32_t i = 0; i < op->input_count; i++) {
        TRY(opjit_fe_same_type(op, i, 0, error));
        TRY(opjit_fe_check_rank(op, op->input_names[i], &op->inputs[i], out->rank, " as OutputTensor.DimensionCount",
                                error));
        for (uint32_t d = 0; d < out->rank; d++)
            if (d != desc->Axis)
                TRY(opjit_fe_check_size(op, op->input_names[i], &op->inputs[i], d, out->sizes[d], " as in OutputTensor",
                                        error));
        sum += op->inputs[i].sizes[desc->Axis]; /* at most 1024 times 2^32 */
    }
    return opjit_fe_check_size(op, "OutputTensor", out, desc->Axis, sum, ", the sum of InputTensors' sizes on Axis",
                               error);
}

static void infer_join(op_inference *s)
{
    const JOIN *desc = s->desc;
    op_shape all = s->inputs[0];

    for (uint32_t i = 1; i < s->input_count && desc->Axis < all.rank; i++)
        all.sizes[desc->Axis] += s->inputs[i].sizes[desc->Axis]; /* as many as 1024 times 2^32 */
    infer_type(&s->outputs[0], all.dtype);
    infer_shape(&s->outputs[0], &all);
}

/* Input i at the coordinates of `out`, starting at `start` on the axis.  In bounds whether it is selected or not. */
static ir_ref part_at(op_lowering *l, uint32_t i, ir_ref out, uint32_t axis, int64_t start)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < l->op->inputs[i].rank; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    at[axis] = moves_add(f, at[axis], -start);
    return opjit_ir_load(f, l->inputs[i], at);
}

/* Selects among the inputs from first to last, which begin at start, by binary search. */
static ir_ref choose(op_lowering *l, ir_ref out, uint32_t axis, uint32_t first, uint32_t last, int64_t start)
{
    ir_func *f = l->f;
    const uint32_t middle = first + (last - first) / 2;
    int64_t cut = start;

    if (first == last)
        return part_at(l, first, out, axis, start);
    for (uint32_t i = first; i <= middle; i++)
        cut += (int64_t)l->op->inputs[i].sizes[axis];
    return ir_expr3(f, IR_SELECT, opjit_fe_output_type(l, 0),
                    ir_expr2(f, IR_LT, IR_BOOL, opjit_ir_coordinate(f, out, axis), opjit_ir_index(f, cut)),
                    choose(l, out, axis, first, middle, start), choose(l, out, axis, middle + 1, last, cut));
}

/* Copies all of input i, to `start` on the axis. */
static void copy_part(op_lowering *l, uint32_t i, uint32_t axis, uint64_t start)
{
    uint64_t at[OPJIT_MAX_RANK] = { 0 };
    ir_ref out;

    at[axis] = start;
    out = opjit_fe_output_box(l, 0, at, l->op->inputs[i].sizes);
    if (out != 0)
        opjit_ir_set_value(l->f, out, opjit_fe_input_at(l, i, out));
}

/* Whether the parts are written one after the other.  Not for a few parts of a row; and what other nodes read is a
 * select. */
static bool by_parts(const op_lowering *l, uint32_t axis)
{
    const fe_tensor *out = &l->op->outputs[0];
    bool in_row = true;

    for (uint32_t d = axis + 1; d < out->rank; d++)
        in_row = in_row && out->sizes[d] == 1;
    return l->f->tensors[l->outputs[0]].role == IR_OUT && l->op->input_count > (in_row ? MOST_PIECES : 1) &&
           l->op->input_count <= MOST_PARTS;
}

static void lower_join(op_lowering *l)
{
    const JOIN *desc = l->op->desc;
    uint64_t start = 0;
    ir_ref out;

    if (l->f->failed)
        return;
    if (by_parts(l, desc->Axis)) {
        for (uint32_t i = 0; i < l->op->input_count; i++) {
            copy_part(l, i, desc->Axis, start);
            start += l->op->inputs[i].sizes[desc->Axis];
        }
        return;
    }
    out = opjit_fe_output(l, 0);
    if (out != 0)
        opjit_ir_set_value(l->f, out, choose(l, out, desc->Axis, 0, l->op->input_count - 1, 0));
}

const op_def opjit_fe_op_join = {
    .type = DML_OPERATOR_JOIN,
    .name = "JOIN",
    .formula = "Output = Inputs[0], Inputs[1], ... along Axis",
    .desc_size = sizeof(JOIN),
    OP_ROWS(join_fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_join,
    .infer = infer_join,
    .lower = lower_join,
};

/* --- SPLIT -------------------------------------------------------------------------------------------------------- */

#define SPLIT DML_SPLIT_OPERATOR_DESC

/* clang-format off */
static const op_field split_fields[] = {
    OP_FIELD(SPLIT, InputTensor, OP_INPUT, 0),
    OP_FIELD(SPLIT, OutputCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(SPLIT, OutputTensors, OutputCount, OP_OUTPUTS, 0),
    OP_FIELD(SPLIT, Axis, OP_UINT, 0),
};
/* clang-format on */

static opjit_status validate_split(const opjit_operator *op, opjit_error *error)
{
    const SPLIT *desc = op->desc;
    const fe_tensor *in = &op->inputs[0];
    uint64_t sum = 0;

    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    for (uint32_t i = 0; i < op->output_count; i++) {
        TRY(opjit_fe_check_pair(op, i, error));
        for (uint32_t d = 0; d < in->rank; d++)
            if (d != desc->Axis)
                TRY(opjit_fe_check_size(op, op->output_names[i], &op->outputs[i], d, in->sizes[d], " as in InputTensor",
                                        error));
        sum += op->outputs[i].sizes[desc->Axis];
    }
    return opjit_fe_check_size(op, "InputTensor", in, desc->Axis, sum, ", the sum of OutputTensors' sizes on Axis",
                               error);
}

/* Equal parts. */
static void infer_split(op_inference *s)
{
    const SPLIT *desc = s->desc;
    op_shape part = s->inputs[0];

    if (desc->Axis < part.rank)
        part.sizes[desc->Axis] /= s->output_count;
    for (uint32_t i = 0; i < s->output_count; i++) {
        infer_type(&s->outputs[i], part.dtype);
        infer_shape(&s->outputs[i], &part);
    }
}

static void lower_split(op_lowering *l)
{
    ir_func *f = l->f;
    const SPLIT *desc = l->op->desc;
    int64_t start = 0;

    for (uint32_t i = 0; i < l->op->output_count; i++) {
        const ir_ref out = opjit_fe_output(l, i);
        ir_ref at[OPJIT_MAX_RANK];
        if (f->failed)
            return;
        for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
            at[d] = opjit_ir_coordinate(f, out, d);
        at[desc->Axis] = moves_add(f, at[desc->Axis], start);
        opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
        start += (int64_t)l->op->outputs[i].sizes[desc->Axis];
    }
}

const op_def opjit_fe_op_split = {
    .type = DML_OPERATOR_SPLIT,
    .name = "SPLIT",
    .formula = "Outputs[0], Outputs[1], ... = Input along Axis",
    .desc_size = sizeof(SPLIT),
    OP_ROWS(split_fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_split,
    .infer = infer_split,
    .lower = lower_split,
};
