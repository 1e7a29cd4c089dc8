/* SPDX-License-Identifier: Apache-2.0 */
/* gru.c - GRU: gates z and r, in this order in the tensors, and what becomes the hidden values.
 *
 *     z = f(X * Wz^T + H * Rz^T + Wbz + Rbz), r likewise, H being the values before
 *     h = g(X * Wh^T + (r . H) * Rh^T + Rbh + Wbh); with LinearBeforeReset g(X * Wh^T + r . (H * Rh^T + Rbh) + Wbh)
 *     the new H = (1 - z) . h + z . H */
#include "frontend/ops/recurrent/recurrent.h"

#define GRU DML_GRU_OPERATOR_DESC

enum { LENGTHS = 5, GATES = 3, FUNCTIONS = 2 };
enum { Z, R, H }; /* gates */
enum { F, G };    /* functions */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(GRU, InputTensor, OP_INPUT, 0),
    OP_FIELD(GRU, WeightTensor, OP_INPUT, 0),
    OP_FIELD(GRU, RecurrenceTensor, OP_INPUT, 0),
    OP_FIELD(GRU, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(GRU, HiddenInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(GRU, SequenceLengthsTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(GRU, OutputSequenceTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(GRU, OutputSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(GRU, ActivationDescCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(GRU, ActivationDescs, ActivationDescCount, OP_ACTIVATIONS, 0),
    OP_FIELD_ENUM(GRU, Direction, &opjit_fe_recurrent_directions),
    OP_FIELD(GRU, LinearBeforeReset, OP_BOOL, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { "SequenceLengthsTensor", DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES(UINT32) },
};

static recurrent read_fields(const void *desc)
{
    const GRU *d = desc;
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

/* --- formula ------------------------------------------------------------------------------------------------------ */

/* z or r */
static ir_ref gate_at(recurrent *r, ir_ref product, const ir_ref at[4], uint64_t gate)
{
    ir_ref x = op2(&r->e, IR_ADD, opjit_fe_recurrent_weighted(r, at, gate),
                   opjit_fe_recurrent_gate_at(r, product, at, gate));
    x = opjit_fe_recurrent_plus(r, x, opjit_fe_recurrent_bias(r, at, gate));
    x = opjit_fe_recurrent_plus(r, x, opjit_fe_recurrent_bias(r, at, GATES + gate));
    return opjit_fe_recurrent_function(r, F, x, at);
}

/* The products of r . H with Rh^T. */
static ir_ref lower_reset(recurrent *r, ir_ref product)
{
    ir_ref at[4];
    const ir_ref reset = opjit_fe_recurrent_def(r, r->hidden, at);
    opjit_fe_set(r->l, reset,
                 op2(&r->e, IR_MUL, gate_at(r, product, at, R), opjit_fe_recurrent_at(r, r->before, at)));
    return opjit_fe_recurrent_product(r, reset, H, 1);
}

/* h, from the products of all gates, or those of r . H. */
static ir_ref candidate_at(recurrent *r, ir_ref product, ir_ref reset, const ir_ref at[4])
{
    const ir_ref weighted = opjit_fe_recurrent_weighted(r, at, H), bias = opjit_fe_recurrent_bias(r, at, GATES + H);
    ir_ref x;
    if (reset != 0) {
        x = op2(&r->e, IR_ADD, weighted, opjit_fe_recurrent_at(r, reset, at));
        x = opjit_fe_recurrent_plus(r, x, bias);
    } else {
        x = opjit_fe_recurrent_plus(r, opjit_fe_recurrent_gate_at(r, product, at, H), bias);
        x = op2(&r->e, IR_ADD, weighted, op2(&r->e, IR_MUL, gate_at(r, product, at, R), x));
    }
    return opjit_fe_recurrent_function(r, G, opjit_fe_recurrent_plus(r, x, opjit_fe_recurrent_bias(r, at, H)), at);
}

static void lower(op_lowering *l)
{
    const GRU *desc = l->op->desc;
    recurrent r = read_fields(desc);
    ir_ref at[4];

    opjit_fe_recurrent_begin(l, &r);
    r.before = opjit_fe_recurrent_state(&r, RECURRENT_HIDDEN);
    const ir_ref product = opjit_fe_recurrent_product(&r, r.before, 0, desc->LinearBeforeReset ? GATES : H);
    const ir_ref reset = desc->LinearBeforeReset ? 0 : lower_reset(&r, product);
    const ir_ref hidden = opjit_fe_recurrent_def(&r, r.hidden, at);
    const ir_ref z = gate_at(&r, product, at, Z), before = opjit_fe_recurrent_at(&r, r.before, at);
    const ir_ref new = op2(&r.e, IR_MUL, op2(&r.e, IR_SUB, one(&r.e), z), candidate_at(&r, product, reset, at));
    const ir_ref x = op2(&r.e, IR_ADD, new, op2(&r.e, IR_MUL, z, before));
    opjit_fe_set(l, hidden, opjit_fe_recurrent_unless_ended(&r, x, before, at));
    opjit_fe_recurrent_end(&r, hidden, 0);
}

const op_def opjit_fe_op_gru = {
    .type = DML_OPERATOR_GRU,
    .name = "GRU",
    .formula = "H_t = (1 - z) . h + z . H_(t-1), gated recurrent units along a sequence",
    .desc_size = sizeof(GRU),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_recurrent_infer,
    .lower = lower,
};
