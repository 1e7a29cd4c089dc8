/* SPDX-License-Identifier: Apache-2.0 */
/* mean_variance_normalization.c - MEAN_VARIANCE_NORMALIZATION with its later forms: x minus the mean, divided by the
 * root of the variance, along axes; then Scale, Bias and a fused activation.  The third form may leave out the mean, so
 * that the variance is the mean of the squares, or the division.  Sums are in the order of ir/README.md, FLOAT16 is
 * computed in FLOAT32. */
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define MVN DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC
#define MVN1 DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC
#define MVN2 DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC

enum { INPUT, SCALE, BIAS }; /* positions among the inputs */

/* clang-format off */
static const op_field mvn_fields[] = {
    OP_FIELD(MVN, InputTensor, OP_INPUT, 0),
    OP_FIELD(MVN, ScaleTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN, BiasTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(MVN, CrossChannel, OP_BOOL, 0),
    OP_FIELD(MVN, NormalizeVariance, OP_BOOL, 0),
    OP_FIELD(MVN, Epsilon, OP_FLOAT, 0),
    OP_FIELD(MVN, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
static const op_field mvn1_fields[] = {
    OP_FIELD(MVN1, InputTensor, OP_INPUT, 0),
    OP_FIELD(MVN1, ScaleTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN1, BiasTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(MVN1, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(MVN1, Axes, AxisCount, OP_UINTS, 0),
    OP_FIELD(MVN1, NormalizeVariance, OP_BOOL, 0),
    OP_FIELD(MVN1, Epsilon, OP_FLOAT, 0),
    OP_FIELD(MVN1, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
static const op_field mvn2_fields[] = {
    OP_FIELD(MVN2, InputTensor, OP_INPUT, 0),
    OP_FIELD(MVN2, ScaleTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN2, BiasTensor, OP_INPUT, OP_OPTIONAL | OP_BROADCAST),
    OP_FIELD(MVN2, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(MVN2, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(MVN2, Axes, AxisCount, OP_UINTS, 0),
    OP_FIELD(MVN2, UseMean, OP_BOOL, 0),
    OP_FIELD(MVN2, UseVariance, OP_BOOL, 0),
    OP_FIELD(MVN2, Epsilon, OP_FLOAT, 0),
    OP_FIELD(MVN2, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
/* clang-format on */

static const op_support mvn_support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
};
static const op_support mvn1_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};

static const op_support mvn2_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_6_3, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};

/* --- validation --------------------------------------------------------------------------------------------------- */

/* Scale or Bias. */
static opjit_status check_factor(const opjit_operator *op, uint32_t input, opjit_error *error)
{
    if (!op->inputs[input].present)
        return OPJIT_OK;
    TRY(opjit_fe_same_type(op, input, 0, error));
    return opjit_fe_broadcast_sizes(op, input, error);
}

static opjit_status validate_mvn(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_shape(op, INPUT, 0, error));
    TRY(check_factor(op, SCALE, error));
    TRY(check_factor(op, BIAS, error));
    if (op->level != 0 && op->level < DML_FEATURE_LEVEL_5_2 && op->inputs[BIAS].present && !op->inputs[SCALE].present)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{%s} {ScaleTensor}: {NULL}, must be there where BiasTensor is, before feature level 5.2", op->def->name);
    return OPJIT_OK;
}

static opjit_status validate_mvn1(const opjit_operator *op, opjit_error *error)
{
    const MVN1 *desc = op->desc;

    TRY(validate_mvn(op, error));
    return opjit_fe_check_axes(op, desc->Axes, desc->AxisCount, error);
}

static opjit_status validate_mvn2(const opjit_operator *op, opjit_error *error)
{
    const MVN2 *desc = op->desc;

    TRY(validate_mvn(op, error));
    return opjit_fe_check_axes(op, desc->Axes, desc->AxisCount, error);
}

/* Scale and Bias may have sizes of 1 as they are. */
static void infer(op_inference *s)
{
    opjit_fe_infer_same(s);
    opjit_fe_infer_rank(&s->inputs[SCALE], s->inputs[INPUT].rank);
    opjit_fe_infer_rank(&s->inputs[BIAS], s->inputs[INPUT].rank);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

/* What the three operators have in common. */
typedef struct form {
    uint32_t axes;
    bool centers, divides; /* by the mean, by the deviation */
    float epsilon;
    const DML_OPERATOR_DESC *activation;
} form;

/* Average along the axes of x - mean, or of its squares; mean 0: of x. */
static ir_ref lower_average(op_lowering *l, const op_element *e, uint32_t axes, ir_ref mean, bool squares)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, e->type, axes, at);
    ir_ref x = opjit_fe_wide_input(l, at);

    if (mean != 0)
        x = op2(e, IR_SUB, x, opjit_fe_value_at(l, mean, axes, at));
    opjit_fe_set(l, sum, squares ? op2(e, IR_MUL, x, x) : x);
    const ir_ref average = opjit_fe_def(l, e->type, axes);
    opjit_fe_own(l, average, at);
    const ir_ref total = opjit_fe_value_at(l, sum, 0, at);
    opjit_fe_set(l, average, op2(e, IR_DIV, total, opjit_fe_real(f, e->type, opjit_fe_reduced_count(l, axes))));
    return average;
}

/* sqrt(variance + Epsilon), once for all elements that share it; without a mean that of the squares. */
static ir_ref lower_deviation(op_lowering *l, const op_element *e, const form *n, ir_ref mean)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref variance = lower_average(l, e, n->axes, mean, true);
    const ir_ref deviation = opjit_fe_def(l, e->type, n->axes);

    opjit_fe_own(l, deviation, at);
    const ir_ref v = opjit_fe_value_at(l, variance, 0, at);
    opjit_fe_set(l, deviation, op1(e, IR_SQRT, op2(e, IR_ADD, v, opjit_fe_number(e, n->epsilon))));
    return deviation;
}

/* Scale or Bias for the output's element. */
static ir_ref factor_at(op_lowering *l, const op_element *e, uint32_t input, ir_ref out)
{
    const ir_ref x = opjit_fe_input_at(l, input, out);

    if (l->f->failed)
        return 0;
    return e->type == e->result ? x : cast_to(e, e->type, x);
}

static void lower_form(op_lowering *l, const form *n)
{
    op_element e = { .f = l->f, .desc = l->op->desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref mean = n->centers ? lower_average(l, &e, n->axes, 0, false) : 0;
    const ir_ref deviation = n->divides ? lower_deviation(l, &e, n, mean) : 0;
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    ir_ref x = opjit_fe_wide_input(l, at);
    if (n->centers)
        x = op2(&e, IR_SUB, x, opjit_fe_value_at(l, mean, n->axes, at));
    if (n->divides)
        x = op2(&e, IR_DIV, x, opjit_fe_value_at(l, deviation, n->axes, at));
    if (l->op->inputs[SCALE].present)
        x = op2(&e, IR_MUL, factor_at(l, &e, SCALE, out), x);
    if (l->op->inputs[BIAS].present)
        x = op2(&e, IR_ADD, x, factor_at(l, &e, BIAS, out));
    opjit_fe_set(l, out, l->f->failed ? 0 : opjit_fe_activate(&e, n->activation, x));
}

static void lower_mvn(op_lowering *l)
{
    const MVN *desc = l->op->desc;

    lower_form(l, &(form){ desc->CrossChannel ? 0xe : 0xc, true, desc->NormalizeVariance != 0, desc->Epsilon,
                           desc->FusedActivation });
}

static void lower_mvn1(op_lowering *l)
{
    const MVN1 *desc = l->op->desc;

    lower_form(l, &(form){ opjit_fe_axes_mask(desc->Axes, desc->AxisCount), true, desc->NormalizeVariance != 0,
                           desc->Epsilon, desc->FusedActivation });
}

static void lower_mvn2(op_lowering *l)
{
    const MVN2 *desc = l->op->desc;

    lower_form(l, &(form){ opjit_fe_axes_mask(desc->Axes, desc->AxisCount), desc->UseMean != 0, desc->UseVariance != 0,
                           desc->Epsilon, desc->FusedActivation });
}

const op_def opjit_fe_op_mean_variance_normalization = {
    .type = DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION,
    .name = "MEAN_VARIANCE_NORMALIZATION",
    .formula = "FusedActivation(Scale * ((x - mean) / sqrt(variance + Epsilon)) + Bias), over HW or CHW",
    .desc_size = sizeof(MVN),
    OP_ROWS(mvn_fields, mvn_support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_mvn,
    .infer = infer,
    .lower = lower_mvn,
};

const op_def opjit_fe_op_mean_variance_normalization1 = {
    .type = DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1,
    .name = "MEAN_VARIANCE_NORMALIZATION1",
    .formula = "FusedActivation(Scale * ((x - mean) / sqrt(variance + Epsilon)) + Bias), over Axes",
    .desc_size = sizeof(MVN1),
    OP_ROWS(mvn1_fields, mvn1_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_mvn1,
    .infer = infer,
    .lower = lower_mvn1,
};

const op_def opjit_fe_op_mean_variance_normalization2 = {
    .type = DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2,
    .name = "MEAN_VARIANCE_NORMALIZATION2",
    .formula =
        "FusedActivation(Scale * ((x - mean) / sqrt(variance + Epsilon)) + Bias), over Axes; without UseMean mean is 0",
    .desc_size = sizeof(MVN2),
    OP_ROWS(mvn2_fields, mvn2_support),
    .introduced = DML_FEATURE_LEVEL_6_3,
    .validate = validate_mvn2,
    .infer = infer,
    .lower = lower_mvn2,
};
