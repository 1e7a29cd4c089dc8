/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.c - RNN: H_t = f(X_t * W^T + H_(t-1) * R^T + Wb + Rb), one function for each direction. */
#include "frontend/ops/recurrent/recurrent.h"

#define RNN DML_RNN_OPERATOR_DESC

enum { LENGTHS = 5, GATES = 1, FUNCTIONS = 1 };

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(RNN, InputTensor, OP_INPUT, 0),
    OP_FIELD(RNN, WeightTensor, OP_INPUT, 0),
    OP_FIELD(RNN, RecurrenceTensor, OP_INPUT, 0),
    OP_FIELD(RNN, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(RNN, HiddenInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(RNN, SequenceLengthsTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(RNN, OutputSequenceTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(RNN, OutputSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(RNN, ActivationDescCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(RNN, ActivationDescs, ActivationDescCount, OP_ACTIVATIONS, 0),
    OP_FIELD_ENUM(RNN, Direction, &opjit_fe_recurrent_directions),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { "SequenceLengthsTensor", DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES(UINT32) },
};

static recurrent read_fields(const void *desc)
{
    const RNN *d = desc;
    return (recurrent){ .gates = GATES,
                        .lengths = LENGTHS,
                        .typed = 1u << LENGTHS,
                        .direction = (uint32_t)d->Direction,
                        .activations = d->ActivationDescs,
                        .activation_count = d->ActivationDescCount,
                        .functions = FUNCTIONS };
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const recurrent r = read_fields(op->desc);
    return opjit_fe_recurrent_validate(op, &r, error);
}

static void lower(op_lowering *l)
{
    recurrent r = read_fields(l->op->desc);
    ir_ref at[4];

    opjit_fe_recurrent_begin(l, &r);
    r.before = opjit_fe_recurrent_state(&r, RECURRENT_HIDDEN);
    const ir_ref product = opjit_fe_recurrent_product(&r, r.before, 0, GATES);
    const ir_ref hidden = opjit_fe_recurrent_def(&r, r.hidden, at);
    ir_ref x = op2(&r.e, IR_ADD, opjit_fe_recurrent_weighted(&r, at, 0), opjit_fe_recurrent_at(&r, product, at));
    x = opjit_fe_recurrent_plus(&r, x, opjit_fe_recurrent_bias(&r, at, 0));
    x = opjit_fe_recurrent_plus(&r, x, opjit_fe_recurrent_bias(&r, at, GATES));
    x = opjit_fe_recurrent_function(&r, 0, x, at);
    opjit_fe_set(l, hidden, opjit_fe_recurrent_unless_ended(&r, x, opjit_fe_recurrent_at(&r, r.before, at), at));
    opjit_fe_recurrent_end(&r, hidden, 0);
}

const op_def opjit_fe_op_rnn = {
    .type = DML_OPERATOR_RNN,
    .name = "RNN",
    .formula = "H_t = f(X_t * W^T + H_(t-1) * R^T + Wb + Rb), along a sequence",
    .desc_size = sizeof(RNN),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_recurrent_infer,
    .lower = lower,
};
