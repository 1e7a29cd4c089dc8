/* SPDX-License-Identifier: Apache-2.0 */
/* top_k.c - TOP_K, TOP_K1: the K greatest or least elements along an axis, in order, and where they are.
 *
 * Of equal elements the first one comes first.  What the documents leave open: a NaN is above all numbers and equal to
 * another NaN; -0 and +0 are equal.  Elements become unsigned keys in this order; the K greatest keys are selected,
 * then sorted (ranking.h). */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/rank/ranking.h"
#include "frontend/ops/reduce.h"

#define DESC DML_TOP_K_OPERATOR_DESC
#define DESC1 DML_TOP_K1_OPERATOR_DESC

enum { VALUES, INDICES }; /* positions among the outputs */

/* Elements along the axis up to which selecting is more work than sorting all. */
#define SORT_ALL 16
/* The most K that are found one after the other: of any row, and of one that selection does not cut in blocks. */
#define FEW 8
#define MOST_FEW 16
#define SHORT 4096

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputValueTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputIndexTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, Axis, OP_UINT, 0),
    OP_FIELD(DESC, K, OP_UINT, 0),
};
static const op_field fields1[] = {
    OP_FIELD(DESC1, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC1, OutputValueTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC1, OutputIndexTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC1, Axis, OP_UINT, 0),
    OP_FIELD(DESC1, K, OP_UINT, 0),
    OP_FIELD_ENUM(DESC1, AxisDirection, &opjit_fe_axis_directions),
};

#define TYPES_32 (OP_TYPES_FLOAT | OP_TYPES_INT_TO_32)
static const op_support support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, TYPES_32 },
    { NULL, DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, TYPES_32 },
    { NULL, DML_FEATURE_LEVEL_5_0, 1, OPJIT_MAX_RANK, TYPES_32 | OP_TYPES_INT_64 },
    { "OutputIndexTensor", 0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT64) | OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_3_1, 1, OPJIT_MAX_RANK, OP_TYPES(UINT32) },
    { "OutputIndexTensor", DML_FEATURE_LEVEL_5_0, 1, OPJIT_MAX_RANK, OP_TYPES(UINT64) | OP_TYPES(UINT32) },
};
/* clang-format on */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc; /* the first fields of both */
    const fe_tensor *in = &op->inputs[0];

    TRY(opjit_fe_check_pair(op, VALUES, error));
    TRY(opjit_fe_check_rank(op, "OutputIndexTensor", &op->outputs[INDICES], in->rank, " as InputTensor.DimensionCount",
                            error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    if (desc->K == 0 || desc->K > in->sizes[desc->Axis])
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {K}: {%u}, must be 1 to %u, the elements of InputTensor along Axis", op->def->name,
                               desc->K, (unsigned)in->sizes[desc->Axis]);
    for (uint32_t i = VALUES; i <= INDICES; i++)
        for (uint32_t d = 0; d < in->rank; d++)
            TRY(opjit_fe_check_size(op, op->output_names[i], &op->outputs[i], d,
                                    d == desc->Axis ? desc->K : in->sizes[d],
                                    d == desc->Axis ? " as K" : " as InputTensor.Sizes", error));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    const DESC *desc = s->desc;
    op_shape made = s->inputs[0];

    if (desc->Axis < made.rank)
        made.sizes[desc->Axis] = desc->K;
    infer_type(&s->outputs[VALUES], made.dtype);
    infer_type(&s->outputs[INDICES], DML_TENSOR_DATA_TYPE_UINT32);
    infer_shape(&s->outputs[VALUES], &made);
    infer_shape(&s->outputs[INDICES], &made);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

/* Rows along the axis, in the order of the other dimensions. */
static fe_tensor rows_of(const fe_tensor *in, uint32_t axis)
{
    fe_tensor rows = { .rank = 2, .sizes = { 1, in->sizes[axis] } };

    for (uint32_t d = 0; d < in->rank; d++)
        rows.sizes[0] *= d == axis ? 1 : in->sizes[d];
    return rows;
}

/* Coordinates of an element in such a row. */
static void coordinates_of(const op_lowering *l, ir_ref row, uint32_t axis, ir_ref along, ir_ref at[OPJIT_MAX_RANK])
{
    const fe_tensor *in = &l->op->inputs[0];
    uint64_t below = 1;

    for (uint32_t d = in->rank; d-- > 0;) {
        at[d] = d == axis ? along : moves_digit(l->f, row, below, in->sizes[d]);
        below *= d == axis ? 1 : in->sizes[d];
    }
}

/* The row of a statement that has the input's rank. */
static ir_ref row_of(const op_lowering *l, ir_ref statement, uint32_t axis)
{
    const fe_tensor *in = &l->op->inputs[0];
    ir_ref row = opjit_ir_index(l->f, 0);

    for (uint32_t d = 0; d < in->rank && !l->f->failed; d++)
        if (d != axis)
            row = ir_expr2(l->f, IR_IADD, IR_INDEX, moves_mul(l->f, row, (int64_t)in->sizes[d]),
                           opjit_ir_coordinate(l->f, statement, d));
    return row;
}

/* The bits of a floating number of a type as an unsigned number in its order: -0 as +0, all NaNs as the greatest
 * one. */
static ir_ref order_of_float(ir_func *f, ir_type key, ir_ref bits, ir_type type)
{
    const uint64_t sign = UINT64_C(1) << (8 * opjit_ir_type_size(type) - 1), all = sign | (sign - 1);
    const uint64_t infinity = type == IR_F16 ? 0x7c00 : type == IR_F32 ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
    const ir_ref size = ir_expr2(f, IR_AND, key, bits, opjit_ir_const(f, key, sign - 1)),
                 top = opjit_ir_const(f, key, sign), most = opjit_ir_const(f, key, all);
    const ir_ref negative = ir_expr2(f, IR_LT, IR_BOOL, top, bits), /* and not -0 */
        nan = ir_expr2(f, IR_LT, IR_BOOL, opjit_ir_const(f, key, infinity), size);
    const ir_ref number =
        ir_expr3(f, IR_SELECT, key, negative, ir_expr2(f, IR_XOR, key, bits, most), ir_expr2(f, IR_OR, key, bits, top));

    return ir_expr3(f, IR_SELECT, key, nan, most, number);
}

/* The unsigned type of as many bits. */
static ir_type raw_of(ir_type type)
{
    static const ir_type raw[] = { IR_U8, IR_U16, IR_U32, IR_U64 };
    const uint32_t size = opjit_ir_type_size(type);
    return raw[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

/* An element as an unsigned number, the greater the earlier it comes. */
static ir_ref key_of(ir_func *f, ir_type key, ir_ref x, bool greatest)
{
    const ir_type type = (ir_type)(f->failed ? IR_U32 : ir_at(f, x)->type);
    const uint32_t width = 8 * opjit_ir_type_size(type);
    const ir_type raw = raw_of(type);
    const uint64_t sign = UINT64_C(1) << (width - 1);
    ir_ref bits = type == raw ? x : ir_expr1(f, IR_BITS, raw, x);

    bits = raw == key ? bits : ir_expr1(f, IR_CAST, key, bits);
    if (ir_is_float(type))
        bits = order_of_float(f, key, bits, type);
    else if (type != raw)
        bits = ir_expr2(f, IR_XOR, key, bits, opjit_ir_const(f, key, sign));
    return greatest ? bits : ir_expr2(f, IR_XOR, key, bits, opjit_ir_const(f, key, sign | (sign - 1)));
}

/* The keys of all elements, in rows along the axis. */
static ir_ref lower_keys(const ranking *r, uint32_t axis, bool greatest)
{
    const ir_ref keys = opjit_fe_ranking_def(r, r->type, r->rows->sizes[1]);
    ir_ref at[OPJIT_MAX_RANK];

    if (r->l->f->failed)
        return 0;
    coordinates_of(r->l, opjit_ir_coordinate(r->l->f, keys, 0), axis, opjit_fe_ranking_last(r, keys), at);
    opjit_fe_set(r->l, keys, key_of(r->l->f, r->type, opjit_ir_load(r->l->f, r->l->inputs[0], at), greatest));
    return keys;
}

/* All are sorted where they are few, or no more work than the K of them. */
static bool sorts_all(uint64_t size, uint64_t count)
{
    return size <= SORT_ALL || opjit_fe_ranking_padded(size) == opjit_fe_ranking_padded(count);
}

/* Where the K first elements of each row are, in order; behind them, others. */
static ir_ref lower_places(const ranking *r, ir_ref keys, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;

    if (sorts_all(size, count))
        return opjit_fe_ranking_sort(r, keys, size);
    const ir_ref chosen = opjit_fe_ranking_select(r, keys, size, count), few = opjit_fe_ranking_def(r, r->type, count);
    if (f->failed)
        return 0;
    const ir_ref own = opjit_fe_ranking_load(r, chosen, few, opjit_fe_ranking_last(r, few));
    opjit_fe_set(r->l, few, opjit_fe_ranking_load(r, keys, few, opjit_fe_ranking_index(f, own, size)));
    const ir_ref order = opjit_fe_ranking_sort(r, few, count), places = opjit_fe_ranking_def(r, IR_U32, count);
    if (f->failed)
        return 0;
    const ir_ref place = opjit_fe_ranking_load(r, order, places, opjit_fe_ranking_last(r, places));
    opjit_fe_set(r->l, places, opjit_fe_ranking_load(r, chosen, places, opjit_fe_ranking_index(f, place, count)));
    return places;
}

/* The place of an output's element among those along the axis. */
static ir_ref place_of(const ranking *r, ir_ref places, ir_ref output, uint32_t axis)
{
    ir_func *f = r->l->f;

    if (f->failed)
        return 0;
    const ir_ref at[2] = { row_of(r->l, output, axis), opjit_ir_coordinate(f, output, axis) };
    return opjit_ir_load(f, ir_at(f, places)->ref, at);
}

/* The greatest of all, then, K - 1 times, the greatest of those below it: of keys that differ, since each has its place
 * below it, the first one's the greatest. */
static ir_ref lower_few(op_lowering *l, uint32_t axis, bool greatest, uint32_t count)
{
    ir_func *f = l->f;
    const uint32_t mask = UINT32_C(1) << axis;
    const ir_ref keys = opjit_fe_def(l, IR_U64, 0), zero = opjit_ir_const(f, IR_U64, 0);
    ir_ref at[OPJIT_MAX_RANK], most[MOST_FEW] = { 0 };

    opjit_fe_own(l, keys, at);
    if (f->failed)
        return 0;
    const ir_ref key = key_of(f, IR_U32, opjit_ir_load(f, l->inputs[0], at), greatest);
    opjit_ir_set_value(f, keys, opjit_fe_ranking_apart(f, key, at[axis]));
    for (uint32_t i = 0; i < count && !f->failed; i++) {
        most[i] = opjit_fe_reduce(l, IR_KMAX, IR_U64, mask, at);
        ir_ref own = opjit_fe_value_at(l, keys, 0, at);
        if (i > 0)
            own = ir_expr3(f, IR_SELECT, IR_U64,
                           ir_expr2(f, IR_LT, IR_BOOL, own, opjit_fe_value_at(l, most[i - 1], mask, at)), own, zero);
        opjit_fe_set(l, most[i], own);
    }
    const ir_ref places = opjit_fe_def_to(l, IR_U32, &l->op->outputs[VALUES]);
    opjit_fe_own(l, places, at);
    ir_ref chosen = opjit_fe_value_at(l, most[0], mask, at);
    for (uint32_t i = 1; i < count && !f->failed; i++)
        chosen = ir_expr3(f, IR_SELECT, IR_U64, ir_expr2(f, IR_EQ, IR_BOOL, at[axis], opjit_ir_index(f, i)),
                          opjit_fe_value_at(l, most[i], mask, at), chosen);
    opjit_fe_set(l, places, ir_expr1(f, IR_NOT, IR_U32, ir_expr1(f, IR_CAST, IR_U32, chosen)));
    return places;
}

/* K is 1: the place of the first of the greatest keys. */
static ir_ref lower_first(op_lowering *l, uint32_t axis, bool greatest, ir_type key)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref places = opjit_fe_reduce(l, IR_ARGMAX, IR_U32, UINT32_C(1) << axis, at);

    if (!l->f->failed)
        opjit_ir_set_value(l->f, places, key_of(l->f, key, opjit_ir_load(l->f, l->inputs[0], at), greatest));
    return places;
}

/* Both outputs, by a definition of their sizes of the places along the axis. */
static void lower_by_places(op_lowering *l, uint32_t axis, ir_ref places)
{
    ir_func *f = l->f;
    const ir_ref values = opjit_fe_output(l, VALUES);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, values, at);
    at[axis] = opjit_fe_ranking_index(f, opjit_fe_value_at(l, places, 0, at), l->op->inputs[0].sizes[axis]);
    opjit_fe_set(l, values, f->failed ? 0 : opjit_ir_load(f, l->inputs[0], at));
    const ir_ref indices = opjit_fe_output(l, INDICES);
    opjit_fe_own(l, indices, at);
    opjit_fe_set(l, indices, opjit_fe_value_at(l, places, 0, at));
}

/* Whether the greatest elements come first. */
static bool is_greatest(const opjit_operator *op)
{
    return op->def->type == DML_OPERATOR_TOP_K ||
           ((const DESC1 *)op->desc)->AxisDirection == DML_AXIS_DIRECTION_DECREASING;
}

/* --- values alone ------------------------------------------------------------------------------------------------- */

/* An element of the input out of its bits, and its place in the order as a number. */
static ir_ref element_of(const ranking *r, ir_ref bits)
{
    ir_func *f = r->l->f;
    const ir_type type = opjit_ir_type_of(r->l->op->inputs[0].dtype), raw = raw_of(type);

    bits = raw == r->type ? bits : ir_expr1(f, IR_CAST, raw, bits);
    return type == raw ? bits : ir_expr1(f, IR_BITS, type, bits);
}

static ir_ref number_of(const ranking *r, ir_ref bits)
{
    return key_of(r->l->f, r->type, element_of(r, bits), !is_greatest(r->l->op));
}

/* Indices that nobody reads. */
static void leave_indices(op_lowering *l)
{
    const ir_ref indices = opjit_fe_output(l, INDICES);
    opjit_fe_set(l, indices, l->f->failed ? 0 : opjit_ir_const(l->f, opjit_fe_output_type(l, INDICES), 0));
}

/* The first K of all elements in order, whose places nobody reads: their bits are moved, not their places. */
static void lower_values(const ranking *r, uint32_t axis, uint64_t size)
{
    op_lowering *l = r->l;
    ir_func *f = l->f;
    const ranking_elements elements = { .type = r->type, .bits = r->bits, .number = number_of };
    const ir_type type = opjit_ir_type_of(l->op->inputs[0].dtype), raw = raw_of(type);
    const ir_ref all = opjit_fe_ranking_def(r, r->type, size);
    ir_ref at[OPJIT_MAX_RANK];
    uint64_t from;

    if (f->failed)
        return;
    coordinates_of(l, opjit_ir_coordinate(f, all, 0), axis, opjit_fe_ranking_last(r, all), at);
    ir_ref bits = opjit_ir_load(f, l->inputs[0], at);
    bits = type == raw ? bits : ir_expr1(f, IR_BITS, raw, bits);
    opjit_fe_set(l, all, raw == r->type ? bits : ir_expr1(f, IR_CAST, r->type, bits));
    const ir_ref sorted = opjit_fe_ranking_radix(r, all, size, &elements, &from), values = opjit_fe_output(l, VALUES);
    if (f->failed)
        return;
    const ir_ref place[] = { row_of(l, values, axis),
                             moves_add(f, opjit_ir_coordinate(f, values, axis), (int64_t)from) };
    opjit_fe_set(l, values, element_of(r, opjit_ir_load(f, ir_at(f, sorted)->ref, place)));
    leave_indices(l);
}

/* The same of integers in a network: equal ones are the same, so that their keys alone are moved. */
static void lower_integers(const ranking *r, uint32_t axis, uint64_t size)
{
    op_lowering *l = r->l;
    const ranking own = { l, r->rows, raw_of(opjit_ir_type_of(l->op->inputs[0].dtype)), r->bits };
    const bool greatest = is_greatest(l->op);
    const ir_ref sorted = opjit_fe_ranking_sort_keys(&own, lower_keys(&own, axis, greatest), size),
                 values = opjit_fe_output(l, VALUES), key = place_of(&own, sorted, values, axis);

    if (l->f->failed)
        return;
    const ir_ref bits = key_of(l->f, own.type, element_of(&own, key), greatest); /* a key's key is the element */
    opjit_fe_set(l, values, element_of(&own, bits));
    leave_indices(l);
}

static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    const fe_tensor *in = &l->op->inputs[0], rows = rows_of(in, desc->Axis);
    const bool greatest = is_greatest(l->op);
    const uint32_t width = opjit_rt_dtype_size(in->dtype);
    const ranking r = { l, &rows, width == 8 ? IR_U64 : IR_U32, 8 * width };

    if (desc->K == 1) {
        lower_by_places(l, desc->Axis, lower_first(l, desc->Axis, greatest, r.type));
        return;
    }
    const uint64_t size = in->sizes[desc->Axis];
    if (desc->K <= (size < SHORT ? MOST_FEW : FEW) && width < 8 && size > SORT_ALL) {
        lower_by_places(l, desc->Axis, lower_few(l, desc->Axis, greatest, desc->K));
        return;
    }
    if ((l->unread >> INDICES & 1) != 0 && sorts_all(size, desc->K) && size < UINT64_C(1) << 31 &&
        opjit_fe_ranking_has_digits(&r, size)) {
        lower_values(&r, desc->Axis, size);
        return;
    }
    if ((l->unread >> INDICES & 1) != 0 && sorts_all(size, desc->K) && size > SORT_ALL &&
        !ir_is_float(opjit_ir_type_of(in->dtype)) && opjit_fe_ranking_has_network(&r, size)) {
        lower_integers(&r, desc->Axis, size);
        return;
    }
    const ir_ref places = lower_places(&r, lower_keys(&r, desc->Axis, greatest), size, desc->K);
    const ir_ref values = opjit_fe_output(l, VALUES);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, values, at);
    at[desc->Axis] = opjit_fe_ranking_index(l->f, place_of(&r, places, values, desc->Axis), in->sizes[desc->Axis]);
    opjit_fe_set(l, values, l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[0], at));
    const ir_ref indices = opjit_fe_output(l, INDICES);
    opjit_fe_set(l, indices, place_of(&r, places, indices, desc->Axis));
}

const op_def opjit_fe_op_top_k = {
    .type = DML_OPERATOR_TOP_K,
    .name = "TOP_K",
    .formula = "the K greatest elements along Axis, in order, and their indices",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

const op_def opjit_fe_op_top_k1 = {
    .type = DML_OPERATOR_TOP_K1,
    .name = "TOP_K1",
    .formula = "the K least elements along Axis, or the greatest (DECREASING), in order, and their indices",
    .desc_size = sizeof(DESC1),
    OP_ROWS(fields1, support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
