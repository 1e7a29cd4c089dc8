/* SPDX-License-Identifier: Apache-2.0 */
/* lp_normalization.c - LP_NORMALIZATION: x divided by the P-norm of the elements along an axis.  Epsilon is added to
 * the sum before its root is taken, as MEAN_VARIANCE_NORMALIZATION adds it to the variance; the document says only that
 * it avoids a division by zero.  FLOAT16 is computed in FLOAT32. */
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define LP DML_LP_NORMALIZATION_OPERATOR_DESC

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(LP, InputTensor, OP_INPUT, 0),
    OP_FIELD(LP, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(LP, Axis, OP_UINT, 0),
    OP_FIELD(LP, Epsilon, OP_FLOAT, 0),
    OP_FIELD(LP, P, OP_UINT, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const LP *desc = op->desc;

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    if (desc->P != 1 && desc->P != 2)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {P}: {%u}, must be 1 or 2", op->def->name, desc->P);
    return OPJIT_OK;
}

/* y = x / (sum of |x|^P + Epsilon)^(1 / P) */
static void lower(op_lowering *l)
{
    const LP *desc = l->op->desc;
    const uint32_t axes = 1u << desc->Axis;
    const op_element e = { .f = l->f, .type = opjit_fe_wide(opjit_fe_output_type(l, 0)) };
    ir_ref at[OPJIT_MAX_RANK];

    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, e.type, axes, at);
    const ir_ref x = opjit_fe_wide_input(l, at);
    opjit_fe_set(l, sum, desc->P == 1 ? op1(&e, IR_ABS, x) : op2(&e, IR_MUL, x, x));

    const ir_ref norm = opjit_fe_def(l, e.type, axes);
    opjit_fe_own(l, norm, at);
    const ir_ref total = op2(&e, IR_ADD, opjit_fe_value_at(l, sum, 0, at), opjit_fe_number(&e, desc->Epsilon));
    opjit_fe_set(l, norm, desc->P == 1 ? total : op1(&e, IR_SQRT, total));

    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, op2(&e, IR_DIV, opjit_fe_wide_input(l, at), opjit_fe_value_at(l, norm, axes, at)));
}

const op_def opjit_fe_op_lp_normalization = {
    .type = DML_OPERATOR_LP_NORMALIZATION,
    .name = "LP_NORMALIZATION",
    .formula = "x / (sum of |x|^P + Epsilon)^(1/P), along Axis",
    .desc_size = sizeof(LP),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_infer_same,
    .lower = lower,
};
