/* SPDX-License-Identifier: Apache-2.0 */
/* batch_normalization.c - BATCH_NORMALIZATION: an element less its mean, divided by the root of its variance, scaled
 * and shifted, where mean, variance, Scale and Bias are inputs that may be one for many elements. */
#include "frontend/ops/pointwise.h"

enum { INPUT, MEAN, VARIANCE, SCALE, BIAS }; /* positions */

#define BATCH POINTWISE_DESC(BATCH_NORMALIZATION)

/* clang-format off */
static const op_field batch_normalization_fields[] = {
    OP_FIELD(BATCH, InputTensor, OP_INPUT, 0),
    OP_FIELD(BATCH, MeanTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(BATCH, VarianceTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(BATCH, ScaleTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(BATCH, BiasTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(BATCH, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(BATCH, Spatial, OP_BOOL, 0),
    OP_FIELD(BATCH, Epsilon, OP_FLOAT, 0),
    OP_FIELD(BATCH, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
/* clang-format on */

static const op_support batch_normalization_support[] = {
    { NULL, 0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, 8, OP_TYPES_FLOAT },
};

/* Before level 4.0, unless locations are Spatial, each of them has a mean and a variance of its own. */
static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const BATCH *desc = op->desc;

    TRY(opjit_fe_validate_pointwise(op, error));
    if (op->level == 0 || op->level >= DML_FEATURE_LEVEL_4_0 || desc->Spatial)
        return OPJIT_OK;
    for (uint32_t i = MEAN; i <= VARIANCE; i++)
        for (uint32_t d = 2; d < op->inputs[i].rank; d++)
            if (op->inputs[i].sizes[d] != op->inputs[INPUT].sizes[d])
                return opjit_rt_refuse(
                    error, OPJIT_UNSUPPORTED,
                    "{%s} {%s.Sizes[%u]}: {1}, must be %u as InputTensor.Sizes where Spatial is 0, before "
                    "feature level 4.0",
                    op->def->name, op->input_names[i], (unsigned)d, (unsigned)op->inputs[INPUT].sizes[d]);
    return OPJIT_OK;
}

static ir_ref batch_normalization_element(const op_element *e, const ir_ref *x)
{
    const BATCH *d = e->desc;
    const ir_ref deviation = op1(e, IR_SQRT, op2(e, IR_ADD, x[VARIANCE], opjit_fe_number(e, d->Epsilon)));
    const ir_ref normal = op2(e, IR_DIV, op2(e, IR_SUB, x[INPUT], x[MEAN]), deviation);

    return opjit_fe_activate(e, d->FusedActivation, op2(e, IR_ADD, op2(e, IR_MUL, x[SCALE], normal), x[BIAS]));
}

POINTWISE_ROW(batch_normalization, BATCH_NORMALIZATION, 1_0,
              "FusedActivation(Scale * ((x - Mean) / sqrt(Variance + Epsilon)) + Bias)", validate, 0);
