/* SPDX-License-Identifier: Apache-2.0 */
/* top_k.c - TOP_K, TOP_K1: the K greatest or least elements along an axis, in order, and where they are.
 *
 * Of equal elements the first one comes first.  What the documents leave open: a NaN is above all numbers and equal to
 * another NaN; -0 and +0 are equal.  An element's place in the order is the number of those that come before it.  These
 * are counted for each element, which takes time in proportion to the square of the axis' size. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_TOP_K_OPERATOR_DESC
#define DESC1 DML_TOP_K1_OPERATOR_DESC

enum { VALUES, INDICES }; /* positions among the outputs */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputValueTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputIndexTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Axis, OP_UINT, 0),
    OP_FIELD(DESC, K, OP_UINT, 0),
};
static const op_field fields1[] = {
    OP_FIELD(DESC1, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC1, OutputValueTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC1, OutputIndexTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC1, Axis, OP_UINT, 0),
    OP_FIELD(DESC1, K, OP_UINT, 0),
    OP_FIELD_ENUM(DESC1, AxisDirection, &opjit_fe_axis_directions),
};

#define TYPES_32 (OP_TYPES_FLOAT | OP_TYPES_INT_TO_32)
static const op_support support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, TYPES_32 },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, TYPES_32 },
    { NULL, DML_FEATURE_LEVEL_5_0, 1, OPJIT_MAX_RANK, TYPES_32 | OP_TYPES_INT_64 },
    { "OutputIndexTensor", 0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT64) | OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_5_0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT64) | OP_TYPES(UINT32) },
};
/* clang-format on */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc; /* the first fields of both */
    const fe_tensor *in = &op->inputs[0];

    TRY(opjit_fe_check_pair(op, VALUES, error));
    TRY(opjit_fe_check_rank(op, "OutputIndexTensor", &op->outputs[INDICES], in->rank, " as InputTensor.DimensionCount",
                            error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    if (desc->K == 0 || desc->K > in->sizes[desc->Axis])
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {K}: {%u}, must be 1 to %u, the elements of InputTensor along Axis", op->def->name,
                               desc->K, (unsigned)in->sizes[desc->Axis]);
    for (uint32_t i = VALUES; i <= INDICES; i++)
        for (uint32_t d = 0; d < in->rank; d++)
            TRY(opjit_fe_check_size(op, op->output_names[i], &op->outputs[i], d,
                                    d == desc->Axis ? desc->K : in->sizes[d],
                                    d == desc->Axis ? " as K" : " as InputTensor.Sizes", error));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    const DESC *desc = s->desc;
    op_shape made = s->inputs[0];

    if (desc->Axis < made.rank)
        made.sizes[desc->Axis] = desc->K;
    infer_type(&s->outputs[VALUES], made.dtype);
    infer_type(&s->outputs[INDICES], DML_TENSOR_DATA_TYPE_UINT32);
    infer_shape(&s->outputs[VALUES], &made);
    infer_shape(&s->outputs[INDICES], &made);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

/* a > b, or a is a NaN and b is none. */
static ir_ref is_greater(ir_func *f, ir_ref a, ir_ref b)
{
    const ir_ref nan =
        ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_NE, IR_BOOL, a, a), ir_expr2(f, IR_EQ, IR_BOOL, b, b));

    return ir_expr2(f, IR_OR, IR_BOOL, ir_expr2(f, IR_LT, IR_BOOL, b, a), nan);
}

/* x where the condition holds, else 0, in UINT32. */
static ir_ref where(ir_func *f, ir_ref condition, ir_ref x)
{
    return ir_expr3(f, IR_SELECT, IR_U32, condition, x, opjit_ir_const(f, IR_U32, 0));
}

/* Each element's place in the order: how many come before it. */
static ir_ref lower_places(op_lowering *l, uint32_t axis, bool greatest)
{
    ir_func *f = l->f;
    ir_ref own[OPJIT_MAX_RANK], at[OPJIT_MAX_RANK];
    const fe_tensor *in = &l->op->inputs[0];
    const ir_ref places = opjit_fe_reduce_to(l, IR_SUM, IR_U32, in, in->sizes[axis]);

    opjit_fe_own(l, places, own);
    memcpy(at, own, sizeof at);
    at[axis] = f->failed ? 0 : opjit_ir_reduced(f, places);
    const ir_ref x = opjit_fe_wide_input(l, own), other = opjit_fe_wide_input(l, at);
    const ir_ref above = greatest ? is_greater(f, other, x) : is_greater(f, x, other);
    const ir_ref below = greatest ? is_greater(f, x, other) : is_greater(f, other, x);
    const ir_ref first = ir_expr2(f, IR_AND, IR_BOOL, ir_expr1(f, IR_NOT, IR_BOOL, below),
                                  ir_expr2(f, IR_LT, IR_BOOL, at[axis], own[axis]));
    opjit_fe_set(l, places, where(f, ir_expr2(f, IR_OR, IR_BOOL, above, first), opjit_ir_const(f, IR_U32, 1)));
    return places;
}

/* Which element has each place. */
static ir_ref lower_indices(op_lowering *l, uint32_t axis, ir_ref places)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref found = opjit_fe_reduce_to(l, IR_SUM, IR_U32, &l->op->outputs[VALUES], l->op->inputs[0].sizes[axis]);

    opjit_fe_own(l, found, at);
    const ir_ref place = ir_expr1(f, IR_ELEM, IR_U32, at[axis]);
    at[axis] = f->failed ? 0 : opjit_ir_reduced(f, found);
    const ir_ref own = opjit_fe_value_at(l, places, 0, at);
    opjit_fe_set(l, found, where(f, ir_expr2(f, IR_EQ, IR_BOOL, own, place), ir_expr1(f, IR_ELEM, IR_U32, at[axis])));
    return found;
}

static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    const bool greatest = l->op->def->type == DML_OPERATOR_TOP_K ||
                          ((const DESC1 *)l->op->desc)->AxisDirection == DML_AXIS_DIRECTION_DECREASING;
    const ir_ref found = lower_indices(l, desc->Axis, lower_places(l, desc->Axis, greatest));
    const ir_ref values = opjit_fe_output(l, VALUES);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, values, at);
    const ir_ref index = opjit_fe_value_at(l, found, 0, at);
    at[desc->Axis] =
        opjit_fe_inside(l->f, ir_expr1(l->f, IR_TO_INDEX, IR_INDEX, index), l->op->inputs[0].sizes[desc->Axis]);
    opjit_fe_set(l, values, l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[0], at));
    const ir_ref indices = opjit_fe_output(l, INDICES);
    opjit_fe_own(l, indices, at);
    opjit_fe_set(l, indices, opjit_fe_value_at(l, found, 0, at));
}

const op_def opjit_fe_op_top_k = {
    .type = DML_OPERATOR_TOP_K,
    .name = "TOP_K",
    .formula = "the K greatest elements along Axis, in order, and their indices",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

const op_def opjit_fe_op_top_k1 = {
    .type = DML_OPERATOR_TOP_K1,
    .name = "TOP_K1",
    .formula = "the K least elements along Axis, or the greatest (DECREASING), in order, and their indices",
    .desc_size = sizeof(DESC1),
    OP_ROWS(fields1, support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
