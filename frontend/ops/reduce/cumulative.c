/* SPDX-License-Identifier: Apache-2.0 */
/* cumulative.c - CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: the sum or product of the elements so far, in order along
 * an axis.  Not a reduction in lanes and blocks: each element is one step on from its neighbour.  FLOAT16 is computed
 * in FLOAT32. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

#define SUMMATION DML_CUMULATIVE_SUMMATION_OPERATOR_DESC
#define PRODUCT DML_CUMULATIVE_PRODUCT_OPERATOR_DESC
#define TYPES_WHOLE (OP_TYPES_INT_64 | OP_TYPES(INT32) | OP_TYPES(UINT32))

/* clang-format off */
static const op_field summation_fields[] = {
    OP_FIELD(SUMMATION, InputTensor, OP_INPUT, 0),
    OP_FIELD(SUMMATION, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(SUMMATION, Axis, OP_UINT, 0),
    OP_FIELD_ENUM(SUMMATION, AxisDirection, &opjit_fe_axis_directions),
    OP_FIELD(SUMMATION, HasExclusiveSum, OP_BOOL, 0),
};
static const op_field product_fields[] = {
    OP_FIELD(PRODUCT, InputTensor, OP_INPUT, 0),
    OP_FIELD(PRODUCT, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(PRODUCT, Axis, OP_UINT, 0),
    OP_FIELD_ENUM(PRODUCT, AxisDirection, &opjit_fe_axis_directions),
    OP_FIELD(PRODUCT, HasExclusiveProduct, OP_BOOL, 0),
};
/* clang-format on */

static const op_support summation_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | TYPES_WHOLE },
    { NULL, DML_FEATURE_LEVEL_2_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | TYPES_WHOLE },
};
static const op_support product_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | TYPES_WHOLE },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | TYPES_WHOLE },
};

static opjit_status validate(const opjit_operator *op, uint32_t axis, opjit_error *error)
{
    TRY(opjit_fe_same_shape(op, 0, 0, error));
    return opjit_fe_check_axis(op, axis, error);
}

/* Element i of the scan is the one i steps into the direction. */
static void lower(op_lowering *l, ir_kind kind, uint32_t axis, DML_AXIS_DIRECTION direction, bool exclusive)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    const ir_ref last = opjit_ir_index(f, (int64_t)l->op->inputs[0].sizes[axis] - 1);
    const bool increasing = direction == DML_AXIS_DIRECTION_INCREASING;
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref scan = opjit_fe_scan(l, kind, opjit_fe_wide(type), axis, exclusive, at);

    if (f->failed)
        return;
    at[axis] = increasing ? at[axis] : ir_expr2(f, IR_ISUB, IR_INDEX, last, at[axis]);
    opjit_ir_set_value(f, scan, opjit_fe_wide_input(l, at));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    if (f->failed)
        return;
    at[axis] = increasing ? at[axis] : ir_expr2(f, IR_ISUB, IR_INDEX, last, at[axis]);
    const ir_ref y = opjit_fe_value_at(l, scan, 0, at);
    if (!f->failed)
        opjit_ir_set_value(f, out, opjit_fe_wide(type) == type ? y : ir_expr1(f, IR_CAST, type, y));
}

static opjit_status validate_summation(const opjit_operator *op, opjit_error *error)
{
    return validate(op, ((const SUMMATION *)op->desc)->Axis, error);
}

static opjit_status validate_product(const opjit_operator *op, opjit_error *error)
{
    return validate(op, ((const PRODUCT *)op->desc)->Axis, error);
}

static void lower_summation(op_lowering *l)
{
    const SUMMATION *desc = l->op->desc;

    lower(l, IR_SUM, desc->Axis, desc->AxisDirection, desc->HasExclusiveSum != 0);
}

static void lower_product(op_lowering *l)
{
    const PRODUCT *desc = l->op->desc;

    lower(l, IR_PROD, desc->Axis, desc->AxisDirection, desc->HasExclusiveProduct != 0);
}

const op_def opjit_fe_op_cumulative_summation = {
    .type = DML_OPERATOR_CUMULATIVE_SUMMATION,
    .name = "CUMULATIVE_SUMMATION",
    .formula = "Output[i] = Input[0] + ... + Input[i] along Axis; HasExclusiveSum: without Input[i]",
    .desc_size = sizeof(SUMMATION),
    OP_ROWS(summation_fields, summation_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_summation,
    .infer = opjit_fe_infer_same,
    .lower = lower_summation,
};

const op_def opjit_fe_op_cumulative_product = {
    .type = DML_OPERATOR_CUMULATIVE_PRODUCT,
    .name = "CUMULATIVE_PRODUCT",
    .formula = "Output[i] = Input[0] * ... * Input[i] along Axis; HasExclusiveProduct: without Input[i]",
    .desc_size = sizeof(PRODUCT),
    OP_ROWS(product_fields, product_support),
    .introduced = DML_FEATURE_LEVEL_3_1,
    .validate = validate_product,
    .infer = opjit_fe_infer_same,
    .lower = lower_product,
};
