/* SPDX-License-Identifier: Apache-2.0 */
/* adam.c - ADAM_OPTIMIZER: weights and both moments of their gradients after a step of training, from left to right as
 * the document has it.  Weights are computed from moments that are not rounded to FLOAT16. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_ADAM_OPTIMIZER_OPERATOR_DESC

enum { WEIGHTS, FIRST, SECOND, GRADIENT, STEP }; /* positions; the first three of outputs, too */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputParametersTensor, OP_INPUT, 0),
    OP_FIELD(DESC, InputFirstMomentTensor, OP_INPUT, 0),
    OP_FIELD(DESC, InputSecondMomentTensor, OP_INPUT, 0),
    OP_FIELD(DESC, GradientTensor, OP_INPUT, 0),
    OP_FIELD(DESC, TrainingStepTensor, OP_INPUT, OP_BROADCAST),
    OP_FIELD(DESC, OutputParametersTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputFirstMomentTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputSecondMomentTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, LearningRate, OP_FLOAT, 0),
    OP_FIELD(DESC, Beta1, OP_FLOAT, 0),
    OP_FIELD(DESC, Beta2, OP_FLOAT, 0),
    OP_FIELD(DESC, Epsilon, OP_FLOAT, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 4, OP_TYPES_FLOAT },
    { "TrainingStepTensor", 0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT32) },
    { "TrainingStepTensor", DML_FEATURE_LEVEL_3_0, 4, 4, OP_TYPES(UINT32) },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *step = &op->inputs[STEP];

    for (uint32_t i = WEIGHTS; i <= GRADIENT; i++)
        TRY(opjit_fe_same_shape(op, i, WEIGHTS, error));
    for (uint32_t i = FIRST; i <= SECOND; i++)
        TRY(opjit_fe_same_shape(op, WEIGHTS, i, error));
    TRY(opjit_fe_check_rank(op, "TrainingStepTensor", step, op->inputs[WEIGHTS].rank,
                            " as InputParametersTensor.DimensionCount", error));
    for (uint32_t d = 0; d < step->rank; d++)
        TRY(opjit_fe_check_size(op, "TrainingStepTensor", step, d, 1, "", error));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    opjit_fe_infer_rank(&s->inputs[STEP], s->inputs[WEIGHTS].rank);
    for (uint32_t i = WEIGHTS; i <= SECOND; i++) {
        infer_type(&s->outputs[i], s->inputs[WEIGHTS].dtype);
        infer_shape(&s->outputs[i], &s->inputs[WEIGHTS]);
    }
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

static ir_ref load(op_lowering *l, const op_element *e, uint32_t input, const ir_ref *at)
{
    const ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[input], at);

    return e->type == e->result ? x : cast_to(e, e->type, x);
}

static ir_ref rest_of(const op_element *e, float beta)
{
    return op2(e, IR_SUB, one(e), opjit_fe_number(e, beta));
}

/* Beta * moment + (1 - Beta) * gradient, times the gradient again for the second moment. */
static ir_ref moment(op_lowering *l, const op_element *e, uint32_t input, float beta, const ir_ref *at)
{
    const ir_ref gradient = load(l, e, GRADIENT, at);
    ir_ref added = op2(e, IR_MUL, rest_of(e, beta), gradient);

    if (input == SECOND)
        added = op2(e, IR_MUL, added, gradient);
    return op2(e, IR_ADD, op2(e, IR_MUL, opjit_fe_number(e, beta), load(l, e, input, at)), added);
}

/* A definition of one element: LearningRate * (sqrt(1 - Beta2^T) / (1 - Beta1^T)) */
static ir_ref lower_rate(op_lowering *l, const op_element *e, uint32_t axes)
{
    const DESC *desc = l->op->desc;
    const ir_ref rate = opjit_fe_def(l, e->type, axes);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, rate, at);
    const ir_ref step = cast_to(e, e->type, l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[STEP], at));
    const ir_ref second = op2(e, IR_SUB, one(e), op2(e, IR_POW, opjit_fe_number(e, desc->Beta2), step));
    const ir_ref first = op2(e, IR_SUB, one(e), op2(e, IR_POW, opjit_fe_number(e, desc->Beta1), step));
    opjit_fe_set(
        l, rate,
        op2(e, IR_MUL, opjit_fe_number(e, desc->LearningRate), op2(e, IR_DIV, op1(e, IR_SQRT, second), first)));
    return rate;
}

static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    op_element e = { .f = l->f, .desc = desc, .result = opjit_fe_output_type(l, WEIGHTS), .masks = l->masks };
    const uint32_t axes = (1u << l->op->inputs[WEIGHTS].rank) - 1;
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref rate = lower_rate(l, &e, axes), weights = opjit_fe_output(l, WEIGHTS);
    opjit_fe_own(l, weights, at);
    const ir_ref first = moment(l, &e, FIRST, desc->Beta1, at), second = moment(l, &e, SECOND, desc->Beta2, at);
    const ir_ref divisor = op2(&e, IR_ADD, op1(&e, IR_SQRT, second), opjit_fe_number(&e, desc->Epsilon));
    const ir_ref by = op2(&e, IR_DIV, op2(&e, IR_MUL, opjit_fe_value_at(l, rate, axes, at), first), divisor);
    opjit_fe_set(l, weights, op2(&e, IR_SUB, load(l, &e, WEIGHTS, at), by));
    for (uint32_t i = FIRST; i <= SECOND; i++) {
        const ir_ref out = opjit_fe_output(l, i);
        opjit_fe_own(l, out, at);
        opjit_fe_set(l, out, moment(l, &e, i, i == FIRST ? desc->Beta1 : desc->Beta2, at));
    }
}

const op_def opjit_fe_op_adam_optimizer = {
    .type = DML_OPERATOR_ADAM_OPTIMIZER,
    .name = "ADAM_OPTIMIZER",
    .formula = "X - LearningRate * (sqrt(1 - Beta2^T) / (1 - Beta1^T)) * M / (sqrt(V) + Epsilon), and the moments M, V",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
