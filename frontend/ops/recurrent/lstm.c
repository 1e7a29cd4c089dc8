/* SPDX-License-Identifier: Apache-2.0 */
/* lstm.c - LSTM: gates i, o, f and c, in this order in the tensors, cells C and hidden values H.
 *
 *     i = f(clip(X * Wi^T + H * Ri^T + Pi . C + Wbi + Rbi)), C and H being those before; f likewise
 *     c = g(clip(X * Wc^T + H * Rc^T + Wbc + Rbc))
 *     the new C = f . C + i . c; with CoupleInputForget f is 1 - i
 *     o = f(clip(X * Wo^T + H * Ro^T + Po . the new C + Wbo + Rbo)), as ONNX has it; the new H = o . h(the new C) */
#include "frontend/ops/moves.h"
#include "frontend/ops/recurrent/recurrent.h"

#define LSTM DML_LSTM_OPERATOR_DESC

enum { CELL = 5, LENGTHS = 6, PEEPHOLE = 7, GATES = 4, FUNCTIONS = 3, PEEPHOLES = 3 };
enum { GATE_I, GATE_O, GATE_F, GATE_C };
enum { F, G, H }; /* functions */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(LSTM, InputTensor, OP_INPUT, 0),
    OP_FIELD(LSTM, WeightTensor, OP_INPUT, 0),
    OP_FIELD(LSTM, RecurrenceTensor, OP_INPUT, 0),
    OP_FIELD(LSTM, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, HiddenInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, CellMemInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, SequenceLengthsTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, PeepholeTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, OutputSequenceTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, OutputSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, OutputCellSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(LSTM, ActivationDescCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(LSTM, ActivationDescs, ActivationDescCount, OP_ACTIVATIONS, 0),
    OP_FIELD_ENUM(LSTM, Direction, &opjit_fe_recurrent_directions),
    OP_FIELD(LSTM, ClipThreshold, OP_FLOAT, 0),
    OP_FIELD(LSTM, UseClipThreshold, OP_BOOL, 0),
    OP_FIELD(LSTM, CoupleInputForget, OP_BOOL, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { "SequenceLengthsTensor", DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES(UINT32) },
};

static recurrent read_fields(const void *desc)
{
    const LSTM *d = desc;
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
    const uint64_t directions = r.direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const uint64_t batch = op->inputs[RECURRENT_INPUT].sizes[2], hidden = op->inputs[RECURRENT_RECURRENCE].sizes[3];

    TRY(opjit_fe_recurrent_validate(op, &r, error));
    TRY(opjit_fe_recurrent_sizes(op, CELL, (uint64_t[]){ 1, directions, batch, hidden }, error));
    return opjit_fe_recurrent_sizes(op, PEEPHOLE, (uint64_t[]){ 1, 1, directions, PEEPHOLES * hidden }, error);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

static ir_ref clip(const recurrent *r, ir_ref x)
{
    const LSTM *desc = r->l->op->desc;
    if (!desc->UseClipThreshold)
        return x;
    const ir_ref above = op2(&r->e, IR_MAX, x, opjit_fe_number(&r->e, -desc->ClipThreshold));
    return op2(&r->e, IR_MIN, above, opjit_fe_number(&r->e, desc->ClipThreshold));
}

/* The weight of the cells in a gate, times them; 0: there is none. */
static ir_ref peephole(recurrent *r, const ir_ref at[4], uint64_t gate, ir_ref cell)
{
    ir_func *f = r->e.f;
    const ir_ref zero_ = opjit_ir_index(f, 0);
    if (!r->l->op->inputs[PEEPHOLE].present || gate >= PEEPHOLES || f->failed)
        return 0;
    const ir_ref own = moves_add(f, at[3], (int64_t)(gate * r->hidden));
    ir_ref weight = opjit_ir_load(f, r->l->inputs[PEEPHOLE], (ir_ref[]){ zero_, zero_, at[1], own });
    if (!f->failed && ir_at(f, weight)->type != IR_F32)
        weight = cast_to(&r->e, IR_F32, weight);
    return op2(&r->e, IR_MUL, weight, cell);
}

static ir_ref gate_at(recurrent *r, ir_ref product, const ir_ref at[4], uint64_t gate, ir_ref cell)
{
    ir_ref x = op2(&r->e, IR_ADD, opjit_fe_recurrent_weighted(r, at, gate),
                   opjit_fe_recurrent_gate_at(r, product, at, gate));
    x = opjit_fe_recurrent_plus(r, x, peephole(r, at, gate, cell));
    x = opjit_fe_recurrent_plus(r, x, opjit_fe_recurrent_bias(r, at, gate));
    x = opjit_fe_recurrent_plus(r, x, opjit_fe_recurrent_bias(r, at, GATES + gate));
    return opjit_fe_recurrent_function(r, gate == GATE_C ? G : F, clip(r, x), at);
}

static ir_ref lower_cells(recurrent *r, ir_ref product, ir_ref before)
{
    const LSTM *desc = r->l->op->desc;
    ir_ref at[4];
    const ir_ref cells = opjit_fe_recurrent_def(r, r->hidden, at), old = opjit_fe_recurrent_at(r, before, at);
    const ir_ref i = gate_at(r, product, at, GATE_I, old), c = gate_at(r, product, at, GATE_C, old);
    const ir_ref keep = desc->CoupleInputForget ? op2(&r->e, IR_SUB, one(&r->e), i)
                                                : gate_at(r, product, at, GATE_F, old);
    const ir_ref x = op2(&r->e, IR_ADD, op2(&r->e, IR_MUL, keep, old), op2(&r->e, IR_MUL, i, c));
    opjit_fe_set(r->l, cells, opjit_fe_recurrent_unless_ended(r, x, old, at));
    opjit_ir_feed(r->e.f, cells, before);
    return cells;
}

static void lower(op_lowering *l)
{
    recurrent r = read_fields(l->op->desc);
    ir_ref at[4];

    opjit_fe_recurrent_begin(l, &r);
    r.before = opjit_fe_recurrent_state(&r, RECURRENT_HIDDEN);
    const ir_ref before = opjit_fe_recurrent_state(&r, CELL);
    const ir_ref product = opjit_fe_recurrent_product(&r, r.before, 0, GATES);
    const ir_ref cells = lower_cells(&r, product, before);
    const ir_ref hidden = opjit_fe_recurrent_def(&r, r.hidden, at), cell = opjit_fe_recurrent_at(&r, cells, at);
    const ir_ref x = op2(&r.e, IR_MUL, gate_at(&r, product, at, GATE_O, cell),
                         opjit_fe_recurrent_function(&r, H, cell, at));
    opjit_fe_set(l, hidden, opjit_fe_recurrent_unless_ended(&r, x, opjit_fe_recurrent_at(&r, r.before, at), at));
    opjit_fe_recurrent_end(&r, hidden, cells);
}

const op_def opjit_fe_op_lstm = {
    .type = DML_OPERATOR_LSTM,
    .name = "LSTM",
    .formula = "H_t = o . h(C_t), C_t = f . C_(t-1) + i . c, long short-term memory along a sequence",
    .desc_size = sizeof(LSTM),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_recurrent_infer,
    .lower = lower,
};
