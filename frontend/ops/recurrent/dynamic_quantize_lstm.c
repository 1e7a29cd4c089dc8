/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_quantize_lstm.c - DYNAMIC_QUANTIZE_LSTM, opjit's own: an LSTM whose products are of bytes.  Gates lie as
 * LSTM has them, and so does what a cell does; with q(x) for x quantized to UINT8 by the range of its elements,
 *
 *     i = f(q(X) * Wi^T + (Wbi + Rbi) + q(H) * Ri^T), o and f likewise, c with g
 *     the new C = f . C + i . c; the new H = o . h(the new C)
 *
 * X is quantized by the range of all of it, H by that of each step and direction, over the whole batch.  A product is
 * one of integers less their zero points, in INT32, rounded once and multiplied with the rounded product of both
 * scales. */
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/recurrent/recurrent.h"
#include "ir/eval/numerics.h"

#define DESC OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC

enum { CELL = 5, GATES = 4, FUNCTIONS = 3 };
enum { SCALE = 6, ZERO = 7, OF_RECURRENCE = 2 }; /* WeightTensor's; RecurrenceTensor's are so many behind them */
enum { GATE_I, GATE_O, GATE_F, GATE_C };
enum { F, G, H }; /* functions */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, WeightTensor, OP_INPUT, 0),
    OP_FIELD(DESC, RecurrenceTensor, OP_INPUT, 0),
    OP_FIELD(DESC, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, HiddenInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, CellMemInitTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, WeightScaleTensor, OP_INPUT, 0),
    OP_FIELD(DESC, WeightZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, RecurrenceScaleTensor, OP_INPUT, 0),
    OP_FIELD(DESC, RecurrenceZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputSequenceTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputCellSingleTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(DESC, ActivationDescCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(DESC, ActivationDescs, ActivationDescCount, OP_ACTIVATIONS, 0),
    OP_FIELD_ENUM(DESC, Direction, &opjit_fe_recurrent_directions),
};
#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT },
    { "WeightTensor", 0, 4, 4, TYPES_8 },
    { "RecurrenceTensor", 0, 4, 4, TYPES_8 },
    { "WeightZeroPointTensor", 0, 4, 4, TYPES_8 },
    { "RecurrenceZeroPointTensor", 0, 4, 4, TYPES_8 },
};
/* clang-format on */

static recurrent read_fields(const void *desc)
{
    const DESC *d = desc;
    return (recurrent){ .gates = GATES,
                        .lengths = RECURRENT_NONE,
                        .typed = 1u << RECURRENT_WEIGHT | 1u << RECURRENT_RECURRENCE | 1u << ZERO |
                                 1u << (ZERO + OF_RECURRENCE),
                        .direction = (uint32_t)d->Direction,
                        .activations = d->ActivationDescs,
                        .activation_count = d->ActivationDescCount,
                        .functions = FUNCTIONS };
}

/* One element for each direction, or for each of its columns. */
static opjit_status check_vector(const opjit_operator *op, uint32_t input, uint64_t directions, uint64_t columns,
                                 opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input];
    TRY(opjit_fe_recurrent_sizes(op, input, (uint64_t[]){ 1, 1, directions, t->sizes[3] }, error));
    if (!t->present || t->sizes[3] == 1)
        return OPJIT_OK;
    return opjit_fe_check_size(op, op->input_names[input], t, 3, columns, ", or 1", error);
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const recurrent r = read_fields(op->desc);
    const uint64_t directions = r.direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const uint64_t batch = op->inputs[RECURRENT_INPUT].sizes[2], hidden = op->inputs[RECURRENT_RECURRENCE].sizes[3];

    TRY(opjit_fe_recurrent_validate(op, &r, error));
    TRY(opjit_fe_recurrent_sizes(op, CELL, (uint64_t[]){ 1, directions, batch, hidden }, error));
    for (uint32_t i = 0; i <= OF_RECURRENCE; i += OF_RECURRENCE) {
        const uint32_t weights = i == 0 ? RECURRENT_WEIGHT : RECURRENT_RECURRENCE;
        TRY(check_vector(op, SCALE + i, directions, GATES * hidden, error));
        TRY(check_vector(op, ZERO + i, directions, GATES * hidden, error));
        if (op->inputs[ZERO + i].present)
            TRY(opjit_fe_same_input_type(op, ZERO + i, weights, error));
    }
    return OPJIT_OK;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Rows of numbers [step, direction, row, element], and these as bytes with a scale and a zero point for each step and
 * direction. */
typedef struct numbers {
    recurrent *r;
    ir_ref def; /* 0: InputTensor, [1, 1, time and batch, element] */
    fe_tensor sizes;
    ir_ref bytes, scale, zero;
} numbers;

static ir_ref number_at(const numbers *n, const ir_ref at[4])
{
    recurrent *r = n->r;
    ir_func *f = r->e.f;
    if (n->def != 0)
        return opjit_fe_recurrent_at(r, n->def, at);
    const ir_ref time = moves_digit(f, at[2], r->batch, r->times), batch = moves_digit(f, at[2], 1, r->batch);
    return opjit_fe_recurrent_input(r, RECURRENT_INPUT, (ir_ref[]){ opjit_ir_index(f, 0), time, batch, at[3] });
}

/* The least or the greatest of each row, and of all rows of a step and direction. */
static ir_ref lower_end(const numbers *n, ir_kind kind)
{
    op_lowering *l = n->r->l;
    const uint64_t *sizes = n->sizes.sizes;
    const fe_tensor rows = recurrent_sizes(sizes[0], sizes[1], sizes[2], 1);
    const fe_tensor all = recurrent_sizes(sizes[0], sizes[1], 1, 1);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref of_row = opjit_fe_reduce_lanes(l, kind, IR_F32, &rows, IR_REDUCE_LANES, sizes[3]);
    opjit_fe_own(l, of_row, at);
    at[3] = l->f->failed ? 0 : opjit_ir_reduced(l->f, of_row);
    opjit_fe_set(l, of_row, number_at(n, at));
    const ir_ref end = opjit_fe_reduce_to(l, kind, IR_F32, &all, sizes[2]);
    opjit_fe_own(l, end, at);
    at[2] = l->f->failed ? 0 : opjit_ir_reduced(l->f, end);
    opjit_fe_set(l, end, opjit_fe_value_at(l, of_row, 0, at));
    return end;
}

static void lower_bytes(numbers *n)
{
    op_lowering *l = n->r->l;
    op_element e = n->r->e;
    const fe_tensor like = recurrent_sizes(n->sizes.sizes[0], n->sizes.sizes[1], 1, 1);
    const ir_ref least = lower_end(n, IR_KMIN), greatest = lower_end(n, IR_KMAX);
    ir_ref at[OPJIT_MAX_RANK];
    e.result = IR_U8;
    n->scale = opjit_fe_def_to(l, IR_F32, &like);
    opjit_fe_own(l, n->scale, at);
    opjit_fe_set(l, n->scale,
                 opjit_fe_range_scale(&e, opjit_fe_value_at(l, least, 0, at), opjit_fe_value_at(l, greatest, 0, at)));
    n->zero = opjit_fe_def_to(l, IR_U8, &like);
    opjit_fe_own(l, n->zero, at);
    opjit_fe_set(l, n->zero,
                 opjit_fe_range_zero(&e, opjit_fe_value_at(l, least, 0, at), opjit_fe_value_at(l, n->scale, 0, at)));
    n->bytes = opjit_fe_def_to(l, IR_U8, &n->sizes);
    opjit_fe_own(l, n->bytes, at);
    const ir_ref one_of[4] = { at[0], at[1], opjit_ir_index(l->f, 0), opjit_ir_index(l->f, 0) };
    opjit_fe_set(l, n->bytes,
                 opjit_fe_quantize(&e, number_at(n, at), opjit_fe_value_at(l, n->scale, 0, one_of),
                                   opjit_fe_value_at(l, n->zero, 0, one_of)));
}

/* The element of a scale or a zero point for a column of a direction; 0: absent. */
static ir_ref vector_at(recurrent *r, uint32_t input, ir_ref direction, ir_ref column)
{
    ir_func *f = r->e.f;
    const fe_tensor *t = &r->l->op->inputs[input];
    const ir_ref zero_ = opjit_ir_index(f, 0);
    if (!t->present || f->failed)
        return 0;
    const ir_ref at[4] = { zero_, zero_, direction, t->sizes[3] == 1 ? zero_ : column };
    return opjit_ir_load(f, r->l->inputs[input], at);
}

/* Their products with weights, a column for each element of the gates: sums of products of integers. */
static ir_ref lower_sums(const numbers *n, uint32_t weights, uint32_t zero_point)
{
    recurrent *r = n->r;
    op_lowering *l = r->l;
    const fe_tensor like =
        recurrent_sizes(n->sizes.sizes[0], r->directions, n->sizes.sizes[2], GATES * r->hidden);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref sums = opjit_fe_reduce_to(l, IR_DOT, IR_I32, &like, n->sizes.sizes[3]);
    opjit_fe_own(l, sums, at);
    if (l->f->failed)
        return 0;
    const ir_ref k = opjit_ir_reduced(l->f, sums), zero_ = opjit_ir_index(l->f, 0);
    const ir_ref direction = n->sizes.sizes[1] == 1 ? zero_ : at[1];
    const ir_ref a = opjit_fe_difference(
        l->f, opjit_fe_value_at(l, n->bytes, 0, (ir_ref[]){ at[0], direction, at[2], k }),
        opjit_fe_value_at(l, n->zero, 0, (ir_ref[]){ at[0], direction, zero_, zero_ }));
    const ir_ref weight =
        l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[weights], (ir_ref[]){ zero_, at[1], at[3], k });
    const ir_ref b = opjit_fe_difference(l->f, weight, vector_at(r, zero_point, at[1], at[3]));
    opjit_fe_set(l, sums, ir_expr2(l->f, IR_PAIR, IR_I32, a, b));
    return sums;
}

/* A sum, which is the product's in a column, as a number. */
static ir_ref scaled(const numbers *n, ir_ref sum, uint32_t scale, const ir_ref at[4], ir_ref column)
{
    recurrent *r = n->r;
    const ir_ref zero_ = opjit_ir_index(r->e.f, 0), direction = n->sizes.sizes[1] == 1 ? zero_ : at[1];
    const ir_ref own = opjit_fe_value_at(r->l, n->scale, 0, (ir_ref[]){ at[0], direction, zero_, zero_ });
    ir_ref of_weights = vector_at(r, scale, at[1], column);
    if (!r->e.f->failed && ir_at(r->e.f, of_weights)->type != IR_F32)
        of_weights = cast_to(&r->e, IR_F32, of_weights);
    return op2(&r->e, IR_MUL, cast_to(&r->e, IR_F32, sum), op2(&r->e, IR_MUL, own, of_weights));
}

/* q(X) * W^T and both biases, for all times. */
static void lower_weighted(recurrent *r)
{
    op_lowering *l = r->l;
    numbers x = { .r = r, .sizes = recurrent_sizes(1, 1, r->times * r->batch, r->inputs) };
    ir_ref at[OPJIT_MAX_RANK];
    lower_bytes(&x);
    const ir_ref sums = lower_sums(&x, RECURRENT_WEIGHT, ZERO);
    const fe_tensor like = recurrent_sizes(1, r->directions, r->times * r->batch, GATES * r->hidden);
    r->weighted = opjit_fe_def_to(l, IR_F32, &like);
    r->rows = l->inputs[RECURRENT_INPUT];
    opjit_fe_own(l, r->weighted, at);
    const ir_ref product = scaled(&x, opjit_fe_value_at(l, sums, 0, at), SCALE, at, at[3]);
    ir_ref bias = opjit_fe_recurrent_bias(r, at, 0);
    if (bias != 0)
        bias = op2(&r->e, IR_ADD, bias, opjit_fe_recurrent_bias(r, at, GATES));
    opjit_fe_set(l, r->weighted, opjit_fe_recurrent_plus(r, product, bias));
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static ir_ref gate_at(const numbers *h, ir_ref sums, const ir_ref at[4], uint64_t gate)
{
    recurrent *r = h->r;
    const ir_ref column = moves_add(r->e.f, at[3], (int64_t)(gate * r->hidden));
    const ir_ref product =
        scaled(h, opjit_fe_recurrent_gate_at(r, sums, at, gate), SCALE + OF_RECURRENCE, at, column);
    const ir_ref x = op2(&r->e, IR_ADD, opjit_fe_recurrent_weighted(r, at, gate), product);
    return opjit_fe_recurrent_function(r, gate == GATE_C ? G : F, x, at);
}

static void lower(op_lowering *l)
{
    recurrent r = read_fields(l->op->desc);
    ir_ref at[4];

    opjit_fe_recurrent_open(l, &r);
    lower_weighted(&r);
    r.before = opjit_fe_recurrent_state(&r, RECURRENT_HIDDEN);
    const ir_ref before = opjit_fe_recurrent_state(&r, CELL);
    numbers h = { &r, r.before, recurrent_sizes(r.times, r.directions, r.batch, r.hidden), 0, 0, 0 };
    lower_bytes(&h);
    const ir_ref sums = lower_sums(&h, RECURRENT_RECURRENCE, ZERO + OF_RECURRENCE);
    const ir_ref cells = opjit_fe_recurrent_def(&r, r.hidden, at), old = opjit_fe_recurrent_at(&r, before, at);
    const ir_ref kept = op2(&r.e, IR_MUL, gate_at(&h, sums, at, GATE_F), old);
    const ir_ref added = op2(&r.e, IR_MUL, gate_at(&h, sums, at, GATE_I), gate_at(&h, sums, at, GATE_C));
    opjit_fe_set(l, cells, op2(&r.e, IR_ADD, kept, added));
    opjit_ir_feed(l->f, cells, before);
    const ir_ref hidden = opjit_fe_recurrent_def(&r, r.hidden, at), cell = opjit_fe_recurrent_at(&r, cells, at);
    opjit_fe_set(l, hidden,
                 op2(&r.e, IR_MUL, gate_at(&h, sums, at, GATE_O), opjit_fe_recurrent_function(&r, H, cell, at)));
    opjit_fe_recurrent_end(&r, hidden, cells);
}

const op_def opjit_fe_op_dynamic_quantize_lstm = {
    .type = OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM,
    .name = "DYNAMIC_QUANTIZE_LSTM",
    .formula = "LSTM with products of bytes: X and each step's H are quantized by the range of their elements",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .validate = validate,
    .infer = opjit_fe_recurrent_infer,
    .lower = lower,
};
