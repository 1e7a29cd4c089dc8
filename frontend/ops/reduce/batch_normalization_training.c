/* SPDX-License-Identifier: Apache-2.0 */
/* batch_normalization_training.c - BATCH_NORMALIZATION_TRAINING and the gradients of both batch normalizations.  Mean,
 * variance and sums are over the dimensions in which ScaleTensor has a size of 1, in the order of reduce.h.
 *
 * What the documents leave open: the variance is the mean of the squares (no n - 1); mean(Input) in
 * BATCH_NORMALIZATION_TRAINING_GRAD is MeanTensor; formulas are computed from left to right. */
#include "frontend/ops/infer.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define TRAINING DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC
#define GRAD DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC
#define TRAINING_GRAD DML_BATCH_NORMALIZATION_TRAINING_GRAD_OPERATOR_DESC

/* Positions. */
enum { INPUT, SCALE, BIAS, FUSED_ADD };
enum { OUTPUT, OUTPUT_MEAN, OUTPUT_VARIANCE };
enum { G_INPUT, G_GRADIENT, G_MEAN, G_VARIANCE, G_SCALE };
enum { G_OUTPUT, G_OUTPUT_SCALE, G_OUTPUT_BIAS };

/* clang-format off */
static const op_field training_fields[] = {
    OP_FIELD(TRAINING, InputTensor, OP_INPUT, 0),
    OP_FIELD(TRAINING, ScaleTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(TRAINING, BiasTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(TRAINING, FusedAddTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(TRAINING, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(TRAINING, OutputMeanTensor, OP_OUTPUT, 0),
    OP_FIELD(TRAINING, OutputVarianceTensor, OP_OUTPUT, 0),
    OP_FIELD(TRAINING, Epsilon, OP_FLOAT, 0),
    OP_FIELD(TRAINING, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
#define GRAD_FIELDS(DESC)                                     \
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),                 \
    OP_FIELD(DESC, InputGradientTensor, OP_INPUT, 0),         \
    OP_FIELD(DESC, MeanTensor, OP_INPUT, OP_BROADCAST),       \
    OP_FIELD(DESC, VarianceTensor, OP_INPUT, OP_BROADCAST),   \
    OP_FIELD(DESC, ScaleTensor, OP_INPUT, OP_BROADCAST),      \
    OP_FIELD(DESC, OutputGradientTensor, OP_OUTPUT, 0),       \
    OP_FIELD(DESC, OutputScaleGradientTensor, OP_OUTPUT, 0),  \
    OP_FIELD(DESC, OutputBiasGradientTensor, OP_OUTPUT, 0),   \
    OP_FIELD(DESC, Epsilon, OP_FLOAT, 0)
static const op_field grad_fields[] = { GRAD_FIELDS(GRAD) };
static const op_field training_grad_fields[] = { GRAD_FIELDS(TRAINING_GRAD) };
/* clang-format on */
_Static_assert(sizeof(GRAD) == sizeof(TRAINING_GRAD) && offsetof(GRAD, Epsilon) == offsetof(TRAINING_GRAD, Epsilon),
               "both gradients are lowered by one function");

static const op_support training_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_4_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};
static const op_support grad_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};

/* --- validation and inference ------------------------------------------------------------------------------------- */

/* An output has the type, rank and sizes of an input. */
static opjit_status check_as(const opjit_operator *op, uint32_t output, uint32_t input, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, input, output, error));
    return opjit_fe_same_sizes(op, input, output, error);
}

static opjit_status validate_training(const opjit_operator *op, opjit_error *error)
{
    TRY(check_as(op, OUTPUT, INPUT, error));
    if (op->inputs[FUSED_ADD].present)
        TRY(check_as(op, OUTPUT, FUSED_ADD, error));
    TRY(opjit_fe_same_type(op, SCALE, OUTPUT, error));
    TRY(opjit_fe_broadcast_sizes(op, SCALE, error));
    TRY(check_as(op, OUTPUT_MEAN, SCALE, error));
    TRY(check_as(op, OUTPUT_MEAN, BIAS, error));
    return check_as(op, OUTPUT_VARIANCE, SCALE, error);
}

static opjit_status validate_grad(const opjit_operator *op, opjit_error *error)
{
    TRY(check_as(op, G_OUTPUT, G_INPUT, error));
    TRY(check_as(op, G_OUTPUT, G_GRADIENT, error));
    TRY(opjit_fe_same_type(op, G_MEAN, G_OUTPUT, error));
    TRY(opjit_fe_broadcast_sizes(op, G_MEAN, error));
    for (uint32_t i = G_MEAN; i <= G_SCALE; i++)
        TRY(check_as(op, G_OUTPUT_SCALE, i, error));
    return check_as(op, G_OUTPUT_BIAS, G_MEAN, error);
}

/* The first output is as input 0, the others as input `factor`, which keeps sizes of 1. */
static void infer_outputs(op_inference *s, uint32_t factor)
{
    opjit_fe_infer_same(s);
    for (uint32_t i = factor; i < s->input_count; i++)
        if (s->inputs[i].broadcasts)
            opjit_fe_infer_rank(&s->inputs[i], s->inputs[0].rank);
    for (uint32_t i = 1; i < s->output_count; i++) {
        infer_type(&s->outputs[i], s->inputs[factor].dtype);
        infer_shape(&s->outputs[i], &s->inputs[factor]);
    }
}

static void infer_training(op_inference *s)
{
    infer_outputs(s, SCALE);
}

static void infer_grad(op_inference *s)
{
    infer_outputs(s, G_MEAN);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* The dimensions in which this input has a size of 1. */
static uint32_t ones_of(const op_lowering *l, uint32_t input)
{
    uint32_t axes = 0;

    for (uint32_t d = 0; d < l->op->inputs[input].rank; d++)
        axes |= l->op->inputs[input].sizes[d] == 1 ? 1u << d : 0;
    return axes;
}

/* An input at these coordinates of input 0, those on axes being 0. */
static ir_ref load_at(op_lowering *l, const op_element *e, uint32_t input, uint32_t axes, const ir_ref *at)
{
    ir_ref of[OPJIT_MAX_RANK];

    if (l->f->failed)
        return 0;
    for (uint32_t d = 0; d < l->op->inputs[input].rank; d++)
        of[d] = (axes >> d & 1) != 0 ? opjit_ir_index(l->f, 0) : at[d];
    const ir_ref x = opjit_ir_load(l->f, l->inputs[input], of);
    return e->type == e->result ? x : cast_to(e, e->type, x);
}

/* The sum at `at`, over the number of its terms. */
static ir_ref mean_at(op_lowering *l, const op_element *e, ir_ref sum, uint32_t axes, const ir_ref *at)
{
    return op2(e, IR_DIV, opjit_fe_value_at(l, sum, axes, at),
               opjit_fe_real(l->f, e->type, opjit_fe_reduced_count(l, axes)));
}

static ir_ref root(const op_element *e, ir_ref variance, float epsilon)
{
    return op1(e, IR_SQRT, op2(e, IR_ADD, variance, opjit_fe_number(e, epsilon)));
}

/* A definition of the mean of a sum. */
static ir_ref lower_mean(op_lowering *l, const op_element *e, ir_ref sum, uint32_t axes)
{
    const ir_ref mean = opjit_fe_def(l, e->type, axes);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, mean, at);
    opjit_fe_set(l, mean, mean_at(l, e, sum, axes, at));
    return mean;
}

/* An output that is a definition, rounded. */
static void yield_def(op_lowering *l, uint32_t output, ir_ref def)
{
    const ir_ref out = opjit_fe_output(l, output);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, def, 0, at));
}

static void lower_training(op_lowering *l)
{
    const TRAINING *desc = l->op->desc;
    op_element e = { .f = l->f, .desc = desc, .result = opjit_fe_output_type(l, OUTPUT), .masks = l->masks };
    const uint32_t axes = ones_of(l, SCALE);
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, e.type, axes, at);
    opjit_fe_set(l, sum, opjit_fe_wide_input(l, at));
    const ir_ref mean = lower_mean(l, &e, sum, axes), squares = opjit_fe_reduce(l, IR_SUM, e.type, axes, at);
    const ir_ref centered = op2(&e, IR_SUB, opjit_fe_wide_input(l, at), opjit_fe_value_at(l, mean, axes, at));
    opjit_fe_set(l, squares, op2(&e, IR_MUL, centered, centered));
    const ir_ref variance = lower_mean(l, &e, squares, axes), deviation = opjit_fe_def(l, e.type, axes);
    opjit_fe_own(l, deviation, at);
    opjit_fe_set(l, deviation, root(&e, opjit_fe_value_at(l, variance, axes, at), desc->Epsilon));

    const ir_ref out = opjit_fe_output(l, OUTPUT);
    opjit_fe_own(l, out, at);
    ir_ref x = op2(&e, IR_SUB, opjit_fe_wide_input(l, at), opjit_fe_value_at(l, mean, axes, at));
    x = op2(&e, IR_DIV, x, opjit_fe_value_at(l, deviation, axes, at));
    x = op2(&e, IR_MUL, load_at(l, &e, SCALE, axes, at), x);
    x = op2(&e, IR_ADD, x, load_at(l, &e, BIAS, axes, at));
    if (l->op->inputs[FUSED_ADD].present)
        x = op2(&e, IR_ADD, x, load_at(l, &e, FUSED_ADD, 0, at));
    opjit_fe_set(l, out, l->f->failed ? 0 : opjit_fe_activate(&e, desc->FusedActivation, x));
    yield_def(l, OUTPUT_MEAN, mean);
    yield_def(l, OUTPUT_VARIANCE, variance);
}

/* What a term of a gradient's sum is. */
typedef enum term { GRADIENT, PRODUCT, NORMALIZED } term;

/* The sum of InputGradient; times Input - Mean; that over the deviation. */
static ir_ref lower_sum(op_lowering *l, const op_element *e, uint32_t axes, term what)
{
    const GRAD *desc = l->op->desc;
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, e->type, axes, at);
    ir_ref x = load_at(l, e, G_GRADIENT, 0, at);

    if (what != GRADIENT)
        x = op2(e, IR_MUL, x, op2(e, IR_SUB, load_at(l, e, G_INPUT, 0, at), load_at(l, e, G_MEAN, axes, at)));
    if (what == NORMALIZED)
        x = op2(e, IR_DIV, x, root(e, load_at(l, e, G_VARIANCE, axes, at), desc->Epsilon));
    opjit_fe_set(l, sum, x);
    return sum;
}

/* InputGradient * (Scale / sqrt(Variance + Epsilon)) */
static ir_ref plain_gradient(op_lowering *l, const op_element *e, uint32_t axes, const ir_ref *at)
{
    const GRAD *desc = l->op->desc;
    const ir_ref deviation = root(e, load_at(l, e, G_VARIANCE, axes, at), desc->Epsilon);

    return op2(e, IR_MUL, load_at(l, e, G_GRADIENT, 0, at),
               op2(e, IR_DIV, load_at(l, e, G_SCALE, axes, at), deviation));
}

/* Scale * (1 / sqrt(Variance + Epsilon)) * (InputGradient - mean(InputGradient) - (Input - Mean) * mean(InputGradient *
 * (Input - Mean)) / (Variance + Epsilon)) */
static ir_ref training_gradient(op_lowering *l, const op_element *e, uint32_t axes, const ir_ref *at, ir_ref gradients,
                                ir_ref products)
{
    const TRAINING_GRAD *desc = l->op->desc;
    const ir_ref variance = load_at(l, e, G_VARIANCE, axes, at);
    const ir_ref inverse = op2(e, IR_DIV, one(e), root(e, variance, desc->Epsilon));
    const ir_ref gradient = op2(e, IR_SUB, load_at(l, e, G_GRADIENT, 0, at), mean_at(l, e, gradients, axes, at));
    const ir_ref input = op2(e, IR_SUB, load_at(l, e, G_INPUT, 0, at), load_at(l, e, G_MEAN, axes, at));
    const ir_ref part = op2(e, IR_DIV, op2(e, IR_MUL, input, mean_at(l, e, products, axes, at)),
                            op2(e, IR_ADD, variance, opjit_fe_number(e, desc->Epsilon)));

    return op2(e, IR_MUL, op2(e, IR_MUL, load_at(l, e, G_SCALE, axes, at), inverse), op2(e, IR_SUB, gradient, part));
}

static void lower_grad(op_lowering *l)
{
    op_element e = { .f = l->f, .desc = l->op->desc, .result = opjit_fe_output_type(l, G_OUTPUT), .masks = l->masks };
    const bool training = l->op->def->type == DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD;
    const uint32_t axes = ones_of(l, G_MEAN);
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref gradients = lower_sum(l, &e, axes, GRADIENT), scales = lower_sum(l, &e, axes, NORMALIZED);
    const ir_ref products = training ? lower_sum(l, &e, axes, PRODUCT) : 0, out = opjit_fe_output(l, G_OUTPUT);
    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out,
                 training ? training_gradient(l, &e, axes, at, gradients, products) : plain_gradient(l, &e, axes, at));
    yield_def(l, G_OUTPUT_SCALE, scales);
    yield_def(l, G_OUTPUT_BIAS, gradients);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

const op_def opjit_fe_op_batch_normalization_training = {
    .type = DML_OPERATOR_BATCH_NORMALIZATION_TRAINING,
    .name = "BATCH_NORMALIZATION_TRAINING",
    .formula = "FusedActivation(Scale * ((x - mean) / sqrt(variance + Epsilon)) + Bias + FusedAdd), mean, variance",
    .desc_size = sizeof(TRAINING),
    OP_ROWS(training_fields, training_support),
    .introduced = DML_FEATURE_LEVEL_4_1,
    .validate = validate_training,
    .infer = infer_training,
    .lower = lower_training,
};

const op_def opjit_fe_op_batch_normalization_grad = {
    .type = DML_OPERATOR_BATCH_NORMALIZATION_GRAD,
    .name = "BATCH_NORMALIZATION_GRAD",
    .formula =
        "gradients of BATCH_NORMALIZATION: InputGradient * (Scale / sqrt(Variance + Epsilon)), of Scale, of Bias",
    .desc_size = sizeof(GRAD),
    OP_ROWS(grad_fields, grad_support),
    .introduced = DML_FEATURE_LEVEL_3_1,
    .validate = validate_grad,
    .infer = infer_grad,
    .lower = lower_grad,
};

const op_def opjit_fe_op_batch_normalization_training_grad = {
    .type = DML_OPERATOR_BATCH_NORMALIZATION_TRAINING_GRAD,
    .name = "BATCH_NORMALIZATION_TRAINING_GRAD",
    .formula = "gradients of BATCH_NORMALIZATION_TRAINING: of Input, Scale and Bias",
    .desc_size = sizeof(TRAINING_GRAD),
    OP_ROWS(training_grad_fields, training_support),
    .introduced = DML_FEATURE_LEVEL_4_1,
    .validate = validate_grad,
    .infer = infer_grad,
    .lower = lower_grad,
};
