/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c - checks and definitions that RNN, GRU and LSTM share. */
#include "frontend/ops/recurrent/recurrent.h"

#include "frontend/ops/moves.h"

/* clang-format off */
static const op_enum_name direction_names[] = {
    { "DML_RECURRENT_NETWORK_DIRECTION_FORWARD", DML_RECURRENT_NETWORK_DIRECTION_FORWARD },
    { "DML_RECURRENT_NETWORK_DIRECTION_BACKWARD", DML_RECURRENT_NETWORK_DIRECTION_BACKWARD },
    { "DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL", DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL },
    { NULL, 0 },
};
/* clang-format on */
const op_enum opjit_fe_recurrent_directions = { "DML_RECURRENT_NETWORK_DIRECTION_", direction_names };

#define MOST_ELEMENTS (UINT64_C(1) << 56) /* of a definition: its bytes fit 64 bits */

static void read_sizes(const opjit_operator *op, recurrent *r)
{
    const fe_tensor *x = &op->inputs[RECURRENT_INPUT];
    r->directions = r->direction == DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    r->times = x->sizes[1];
    r->batch = x->sizes[2];
    r->inputs = x->sizes[3];
    r->hidden = op->inputs[RECURRENT_RECURRENCE].sizes[3];
}

/* --- validation --------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_recurrent_sizes(const opjit_operator *op, uint32_t input, const uint64_t *sizes,
                                      opjit_error *error)
{
    for (uint32_t d = 0; d < 4 && op->inputs[input].present; d++)
        TRY(opjit_fe_check_size(op, op->input_names[input], &op->inputs[input], d, sizes[d], "", error));
    return OPJIT_OK;
}

static opjit_status check_types(const opjit_operator *op, const recurrent *r, opjit_error *error)
{
    const DML_TENSOR_DATA_TYPE type = op->inputs[RECURRENT_INPUT].dtype;
    bool any = false;

    for (uint32_t i = 0; i < op->input_count; i++)
        if ((r->typed >> i & 1) == 0)
            TRY(opjit_fe_same_input_type(op, i, RECURRENT_INPUT, error));
    for (uint32_t i = 0; i < op->output_count; i++) {
        any = any || op->outputs[i].present;
        if (op->outputs[i].present && op->outputs[i].dtype != type)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s as InputTensor",
                                   op->def->name, op->output_names[i], opjit_rt_dtype_name(op->outputs[i].dtype),
                                   opjit_rt_dtype_name(type));
    }
    if (!any)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {OutputSequenceTensor}: {NULL}, one output must be",
                               op->def->name);
    return OPJIT_OK;
}

/* No definition has more elements than its bytes have numbers. */
static opjit_status check_elements(const opjit_operator *op, const recurrent *r, opjit_error *error)
{
    uint64_t elements = r->gates, matrix;

    if (!checked_mul(elements, r->hidden, &elements) || !checked_mul(elements, r->directions, &elements) ||
        !checked_mul(elements, r->hidden, &matrix) || matrix > MOST_ELEMENTS ||
        !checked_mul(elements, r->times, &elements) || !checked_mul(elements, r->batch, &elements) ||
        elements > MOST_ELEMENTS)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {InputTensor.Sizes}: {its gates} have more than 2^56 elements",
                               op->def->name);
    return OPJIT_OK;
}

opjit_status opjit_fe_recurrent_validate(const opjit_operator *op, const recurrent *given, opjit_error *error)
{
    recurrent r = *given;

    read_sizes(op, &r);
    TRY(check_types(op, &r, error));
    const uint64_t d = r.directions, all = r.gates * r.hidden;
    if (r.activation_count != r.functions * d)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {ActivationDescCount}: {%u}, must be %u",
                               op->def->name, r.activation_count, (unsigned)(r.functions * d));
    TRY(check_elements(op, &r, error));
    TRY(opjit_fe_recurrent_sizes(op, RECURRENT_INPUT, (uint64_t[]){ 1, r.times, r.batch, r.inputs }, error));
    TRY(opjit_fe_recurrent_sizes(op, RECURRENT_WEIGHT, (uint64_t[]){ 1, d, all, r.inputs }, error));
    TRY(opjit_fe_recurrent_sizes(op, RECURRENT_RECURRENCE, (uint64_t[]){ 1, d, all, r.hidden }, error));
    TRY(opjit_fe_recurrent_sizes(op, RECURRENT_BIAS, (uint64_t[]){ 1, 1, d, 2 * all }, error));
    TRY(opjit_fe_recurrent_sizes(op, RECURRENT_HIDDEN, (uint64_t[]){ 1, d, r.batch, r.hidden }, error));
    if (r.lengths != RECURRENT_NONE)
        TRY(opjit_fe_recurrent_sizes(op, r.lengths, (uint64_t[]){ 1, 1, 1, r.batch }, error));
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint64_t sizes[4] = { i == RECURRENT_SEQUENCE ? r.times : 1, d, r.batch, r.hidden };
        for (uint32_t k = 0; k < 4 && op->outputs[i].present; k++)
            TRY(opjit_fe_check_size(op, op->output_names[i], &op->outputs[i], k, sizes[k], "", error));
    }
    return OPJIT_OK;
}

void opjit_fe_recurrent_infer(op_inference *s)
{
    const op_shape *x = &s->inputs[RECURRENT_INPUT], *w = &s->inputs[RECURRENT_RECURRENCE];
    op_shape made = *x;

    made.rank = 4;
    for (uint32_t i = 0; i < s->output_count && x->rank == 4 && w->rank == 4; i++) {
        made.sizes[0] = i == RECURRENT_SEQUENCE ? x->sizes[1] : 1;
        made.sizes[1] = w->sizes[1];
        made.sizes[2] = x->sizes[2];
        made.sizes[3] = w->sizes[3];
        infer_type(&s->outputs[i], x->dtype);
        infer_shape(&s->outputs[i], &made);
    }
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static ir_ref wide(const recurrent *r, ir_ref x)
{
    const op_element *e = &r->e;
    return e->f->failed || ir_at(e->f, x)->type == IR_F32 ? x : cast_to(e, IR_F32, x);
}

ir_ref opjit_fe_recurrent_input(recurrent *r, uint32_t input, const ir_ref at[4])
{
    return wide(r, r->e.f->failed ? 0 : opjit_ir_load(r->e.f, r->l->inputs[input], at));
}

static ir_ref input_at(recurrent *r, uint32_t input, ir_ref a, ir_ref b, ir_ref c, ir_ref d)
{
    return opjit_fe_recurrent_input(r, input, (ir_ref[]){ a, b, c, d });
}

ir_ref opjit_fe_recurrent_at(recurrent *r, ir_ref def, const ir_ref at[4])
{
    return opjit_fe_value_at(r->l, def, 0, at);
}

ir_ref opjit_fe_recurrent_gate_at(recurrent *r, ir_ref def, const ir_ref at[4], uint64_t gate)
{
    const ir_ref own = moves_add(r->e.f, at[3], (int64_t)(gate * r->hidden));
    return opjit_fe_recurrent_at(r, def, (ir_ref[]){ at[0], at[1], at[2], own });
}

ir_ref opjit_fe_recurrent_plus(const recurrent *r, ir_ref a, ir_ref b)
{
    return b == 0 ? a : op2(&r->e, IR_ADD, a, b);
}

static bool has_lengths(const recurrent *r)
{
    return r->lengths != RECURRENT_NONE && r->l->op->inputs[r->lengths].present;
}

/* How many times the sequence has, at most all: an index. */
static ir_ref length_of(recurrent *r, ir_ref batch)
{
    ir_func *f = r->e.f;
    const ir_ref zero_ = opjit_ir_index(f, 0), times = opjit_ir_index(f, (int64_t)r->times);
    if (!has_lengths(r))
        return times;
    const ir_ref given =
        f->failed ? 0 : opjit_ir_load(f, r->l->inputs[r->lengths], (ir_ref[]){ zero_, zero_, zero_, batch });
    return ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, given), zero_, times);
}

/* The time of a step, or the step of a time: the same, or counted from the end of the sequence. */
static ir_ref other(recurrent *r, ir_ref t, ir_ref direction, ir_ref batch)
{
    ir_func *f = r->e.f;
    if (r->direction == DML_RECURRENT_NETWORK_DIRECTION_FORWARD)
        return t;
    ir_ref back = ir_expr2(f, IR_ISUB, IR_INDEX, moves_add(f, length_of(r, batch), -1), t);
    if (has_lengths(r))
        back = opjit_fe_inside(f, back, r->times);
    if (r->direction == DML_RECURRENT_NETWORK_DIRECTION_BACKWARD)
        return back;
    const ir_ref forward = ir_expr2(f, IR_EQ, IR_BOOL, direction, opjit_ir_index(f, 0));
    return ir_expr3(f, IR_SELECT, IR_INDEX, forward, t, back);
}

ir_ref opjit_fe_recurrent_weighted(recurrent *r, const ir_ref at[4], uint64_t gate)
{
    ir_func *f = r->e.f;
    const ir_ref time = other(r, at[0], at[1], at[2]);
    const ir_ref row = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, time, (int64_t)r->batch), at[2]);
    const ir_ref own[] = { r->rows != 0 ? opjit_ir_index(f, 0) : time, at[1], r->rows != 0 ? row : at[2], at[3] };
    return opjit_fe_recurrent_gate_at(r, r->weighted, own, gate);
}

ir_ref opjit_fe_recurrent_bias(recurrent *r, const ir_ref at[4], uint64_t gate)
{
    const ir_ref zero_ = opjit_ir_index(r->e.f, 0);
    if (!r->l->op->inputs[RECURRENT_BIAS].present)
        return 0;
    return input_at(r, RECURRENT_BIAS, zero_, zero_, at[1], moves_add(r->e.f, at[3], (int64_t)(gate * r->hidden)));
}

static bool equal_activations(const DML_OPERATOR_DESC *a, const DML_OPERATOR_DESC *b)
{
    const op_def *def = opjit_fe_op_find(a->Type);
    bool equal = a->Type == b->Type;
    for (uint32_t i = 0; equal && i < def->field_count; i++) {
        const size_t at = def->fields[i].offset;
        equal = def->fields[i].kind != OP_FLOAT ||
                memcmp((const uint8_t *)a->Desc + at, (const uint8_t *)b->Desc + at, sizeof(float)) == 0;
    }
    return equal;
}

ir_ref opjit_fe_recurrent_function(recurrent *r, uint32_t number, ir_ref x, const ir_ref at[4])
{
    ir_func *f = r->e.f;
    const DML_OPERATOR_DESC *first = &r->activations[number];
    if (f->failed)
        return 0;
    const ir_ref forward = opjit_fe_activate(&r->e, first, x);
    if (r->directions == 1 || equal_activations(first, first + r->functions))
        return forward;
    return choose(&r->e, ir_expr2(f, IR_EQ, IR_BOOL, at[1], opjit_ir_index(f, 0)), forward,
                  opjit_fe_activate(&r->e, first + r->functions, x));
}

ir_ref opjit_fe_recurrent_unless_ended(recurrent *r, ir_ref x, ir_ref before, const ir_ref at[4])
{
    if (!has_lengths(r))
        return x;
    return choose(&r->e, ir_expr2(r->e.f, IR_LT, IR_BOOL, at[0], length_of(r, at[2])), x, before);
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

ir_ref opjit_fe_recurrent_def(recurrent *r, uint64_t elements, ir_ref at[4])
{
    const fe_tensor like = recurrent_sizes(r->times, r->directions, r->batch, elements);
    ir_ref own[OPJIT_MAX_RANK];
    const ir_ref def = opjit_fe_def_to(r->l, IR_F32, &like);
    opjit_fe_own(r->l, def, own);
    memcpy(at, own, 4 * sizeof *at);
    return def;
}

/* The input as a matrix of as many rows as there are times and sequences; 0: its layout has none. */
static uint32_t input_rows(recurrent *r)
{
    ir_func *f = r->e.f;
    const ir_tensor in = f->tensors[r->l->inputs[RECURRENT_INPUT]];
    const bool single = r->times == 1 || r->batch == 1;
    ir_tensor view = { .role = IR_VIEW, .type = in.type, .rank = 2, .bytes = in.bytes, .align = in.align };
    if (!single && in.strides[1] != in.strides[2] * r->batch)
        return 0;
    view.of = r->l->inputs[RECURRENT_INPUT];
    view.sizes[0] = r->times * r->batch;
    view.sizes[1] = r->inputs;
    view.strides[0] = r->batch == 1 ? in.strides[1] : in.strides[2];
    view.strides[1] = in.strides[3];
    return opjit_ir_tensor(f, &view);
}

/* One product of all rows, or where the layout has none, one per time. */
static ir_ref lower_weighted(recurrent *r)
{
    ir_func *f = r->e.f;
    r->rows = f->failed ? 0 : input_rows(r);
    const fe_tensor like = r->rows != 0 ? recurrent_sizes(1, r->directions, r->times * r->batch, r->gates * r->hidden)
                                        : recurrent_sizes(r->times, r->directions, r->batch, r->gates * r->hidden);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref dot = opjit_fe_reduce_to(r->l, IR_DOT, IR_F32, &like, r->inputs);
    opjit_fe_own(r->l, dot, at);
    if (f->failed)
        return 0;
    const ir_ref k = opjit_ir_reduced(f, dot), zero_ = opjit_ir_index(f, 0);
    const ir_ref x = r->rows != 0 ? wide(r, opjit_ir_load(f, r->rows, (ir_ref[]){ at[2], k }))
                                  : input_at(r, RECURRENT_INPUT, zero_, at[0], at[2], k);
    opjit_fe_set(r->l, dot, op2(&r->e, IR_PAIR, x, input_at(r, RECURRENT_WEIGHT, zero_, at[1], at[3], k)));
    return dot;
}

static ir_ref lower_matrix(recurrent *r)
{
    const fe_tensor like = recurrent_sizes(1, r->directions, r->hidden, r->gates * r->hidden);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref def = opjit_fe_def_to(r->l, IR_F32, &like);
    opjit_fe_own(r->l, def, at);
    opjit_fe_set(r->l, def, input_at(r, RECURRENT_RECURRENCE, at[0], at[1], at[3], at[2]));
    return def;
}

void opjit_fe_recurrent_open(op_lowering *l, recurrent *r)
{
    r->l = l;
    r->e = (op_element){ .f = l->f, .desc = l->op->desc, .type = IR_F32, .result = IR_F32, .masks = l->masks };
    read_sizes(l->op, r);
}

void opjit_fe_recurrent_begin(op_lowering *l, recurrent *r)
{
    opjit_fe_recurrent_open(l, r);
    r->weighted = lower_weighted(r);
    r->matrix = lower_matrix(r);
}

ir_ref opjit_fe_recurrent_state(recurrent *r, uint32_t input)
{
    ir_ref at[4];
    const ir_ref def = opjit_fe_recurrent_def(r, r->hidden, at);
    const bool present = r->l->op->inputs[input].present;
    opjit_fe_set(r->l, def,
                 present ? input_at(r, input, opjit_ir_index(r->e.f, 0), at[1], at[2], at[3]) : zero(&r->e));
    return def;
}

ir_ref opjit_fe_recurrent_product(recurrent *r, ir_ref values, uint64_t first, uint64_t gates)
{
    ir_func *f = r->e.f;
    const fe_tensor like = recurrent_sizes(r->times, r->directions, r->batch, gates * r->hidden);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref dot = opjit_fe_reduce_to(r->l, IR_DOT, IR_F32, &like, r->hidden);
    opjit_fe_own(r->l, dot, at);
    if (f->failed)
        return 0;
    const ir_ref k = opjit_ir_reduced(f, dot), gate = moves_add(f, at[3], (int64_t)(first * r->hidden));
    const ir_ref h = opjit_fe_recurrent_at(r, values, (ir_ref[]){ at[0], at[1], at[2], k });
    const ir_ref m = opjit_fe_recurrent_at(r, r->matrix, (ir_ref[]){ opjit_ir_index(f, 0), at[1], k, gate });
    opjit_fe_set(r->l, dot, op2(&r->e, IR_PAIR, h, m));
    return dot;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* The values of each time, and zeros behind the end of a sequence. */
static void lower_sequence(recurrent *r, ir_ref hidden)
{
    const ir_ref out = opjit_fe_output(r->l, RECURRENT_SEQUENCE);
    ir_ref at[OPJIT_MAX_RANK];
    opjit_fe_own(r->l, out, at);
    const ir_ref step = other(r, at[0], at[1], at[2]);
    const ir_ref x = opjit_fe_recurrent_at(r, hidden, (ir_ref[]){ step, at[1], at[2], at[3] });
    opjit_fe_set(r->l, out, opjit_fe_recurrent_unless_ended(r, x, zero(&r->e), at));
}

/* The values of the last step. */
static void lower_single(recurrent *r, uint32_t output, ir_ref def)
{
    const ir_ref out = opjit_fe_output(r->l, output), last = opjit_ir_index(r->e.f, (int64_t)r->times - 1);
    ir_ref at[OPJIT_MAX_RANK];
    opjit_fe_own(r->l, out, at);
    opjit_fe_set(r->l, out, opjit_fe_recurrent_at(r, def, (ir_ref[]){ last, at[1], at[2], at[3] }));
}

void opjit_fe_recurrent_end(recurrent *r, ir_ref hidden, ir_ref cell)
{
    const fe_tensor *outputs = r->l->op->outputs;
    opjit_ir_feed(r->e.f, hidden, r->before);
    if (outputs[RECURRENT_SEQUENCE].present)
        lower_sequence(r, hidden);
    if (outputs[RECURRENT_SINGLE].present)
        lower_single(r, RECURRENT_SINGLE, hidden);
    if (cell != 0 && outputs[RECURRENT_CELL].present)
        lower_single(r, RECURRENT_CELL, cell);
}
