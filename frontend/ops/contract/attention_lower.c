/* SPDX-License-Identifier: Apache-2.0 */
/* attention_lower.c - the formula of MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1: a dot of queries and keys, the
 * formula of SOFTMAX on its rows, a dot of weights and values.  FLOAT16 is computed in FLOAT32. */
#include <string.h>

#include "frontend/ops/contract/attention.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"
#include "ir/eval/numerics.h"

/* What the formula works with.  Definitions have the coordinates {sequence, head, query or key, element of a head}. */
typedef struct attention {
    op_lowering *l;
    op_element e;
    attention_sizes s;
    ir_ref keys, values; /* definitions of all keys and values, the past ones first */
} attention;

/* --- definitions -------------------------------------------------------------------------------------------------- */

static ir_ref define(attention *a, uint64_t heads, uint64_t rows, uint64_t columns, ir_ref at[4])
{
    const fe_tensor like = { .rank = 4, .sizes = { a->s.batch, heads, rows, columns } };
    const ir_ref def = opjit_fe_def_to(a->l, a->e.type, &like);

    for (uint32_t d = 0; d < 4; d++)
        at[d] = a->l->f->failed ? 0 : opjit_ir_coordinate(a->l->f, def, d);
    return def;
}

/* One that reduces; at[4]: the reduction's variable. */
static ir_ref define_reduced(attention *a, ir_kind kind, uint32_t lanes, uint64_t columns, uint64_t count, ir_ref at[5])
{
    const fe_tensor like = { .rank = 4, .sizes = { a->s.batch, a->s.heads, a->s.queries, columns } };
    const ir_ref def = opjit_fe_reduce_lanes(a->l, kind, a->e.type, &like, lanes, count);

    for (uint32_t d = 0; d < 5; d++)
        at[d] = a->l->f->failed ? 0 : d < 4 ? opjit_ir_coordinate(a->l->f, def, d) : opjit_ir_reduced(a->l->f, def);
    return def;
}

static ir_ref read(attention *a, ir_ref def, ir_ref b, ir_ref h, ir_ref row, ir_ref column)
{
    ir_func *f = a->l->f;

    return f->failed ? 0 : opjit_ir_load(f, ir_at(f, def)->ref, (const ir_ref[]){ b, h, row, column });
}

static void set(attention *a, ir_ref def, ir_ref x)
{
    if (!a->l->f->failed)
        opjit_ir_set_value(a->l->f, def, x);
}

/* An element of an input, by its last coordinates; those before them are 0, as those are where the input has a size of
 * 1. */
static ir_ref load(attention *a, uint32_t input, uint32_t count, const ir_ref *at)
{
    const fe_tensor *t = &a->l->op->inputs[input];
    ir_func *f = a->l->f;
    ir_ref of[OPJIT_MAX_RANK];

    if (f->failed)
        return 0;
    for (uint32_t d = 0; d < t->rank; d++)
        of[d] = d + count < t->rank || t->sizes[d] == 1 ? opjit_ir_index(f, 0) : at[d + count - t->rank];
    return opjit_ir_load(f, a->l->inputs[input], of);
}

static ir_ref widened(attention *a, ir_ref x)
{
    return a->l->f->failed || ir_at(a->l->f, x)->type == a->e.type ? x : cast_to(&a->e, a->e.type, x);
}

static ir_ref constant(attention *a, uint64_t x)
{
    return opjit_ir_index(a->l->f, (int64_t)x);
}

/* An element of an INT32 input of one dimension, or of two. */
static ir_ref number(attention *a, uint32_t input, uint32_t count, const ir_ref *at)
{
    ir_ref x = load(a, input, count, at);

    if (a->l->f->failed)
        return 0;
    if (ir_at(a->l->f, x)->type != IR_I32)
        x = ir_expr1(a->l->f, IR_CAST, IR_I32, x);
    return ir_expr1(a->l->f, IR_TO_INDEX, IR_INDEX, x);
}

static bool is_there(const attention *a, uint32_t input)
{
    return input < a->l->op->input_count && a->l->op->inputs[input].present;
}

/* --- queries, keys and values ------------------------------------------------------------------------------------- */

/* Where they are: in a tensor of their own, with an element of all heads behind the other; or stacked, at this
 * place. */
typedef struct source {
    uint32_t own, stacked, place;
    uint64_t size, bias; /* elements of a head; where the heads' begin in BiasTensor */
} source;

/* Element d of head h at this position of the sequence, with the bias. */
static ir_ref element(attention *a, const source *from, ir_ref b, ir_ref h, ir_ref position, ir_ref d)
{
    ir_func *f = a->l->f;
    const ir_ref all = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, h, (int64_t)from->size), d);
    const ir_ref own[3] = { b, position, all };
    const ir_ref stacked[5] = { b, position, h, constant(a, from->place), d };
    ir_ref x = widened(a, is_there(a, from->own) ? load(a, from->own, 3, own) : load(a, from->stacked, 5, stacked));

    if (is_there(a, BIAS)) {
        const ir_ref at = moves_add(f, all, (int64_t)from->bias);
        x = op2(&a->e, IR_ADD, x, widened(a, load(a, BIAS, 1, &at)));
    }
    return x;
}

static uint32_t stacked_of(const attention *a, uint32_t pair)
{
    return is_there(a, pair) ? pair : STACKED_QKV;
}

static ir_ref lower_queries(attention *a)
{
    const source from = { QUERY, stacked_of(a, STACKED_QK), 0, a->s.size, 0 };
    ir_ref at[4];
    const ir_ref def = define(a, a->s.heads, a->s.queries, a->s.size, at);

    set(a, def, element(a, &from, at[0], at[1], at[2], at[3]));
    return def;
}

/* How many keys of PastKeyTensor are there for sequence b, given in PastSequenceLengthsTensor. */
static ir_ref past_of(attention *a, ir_ref b)
{
    const uint64_t room = a->s.total - a->s.added, most = a->s.past < room ? a->s.past : room;

    return ir_expr3(a->l->f, IR_CLAMP, IR_INDEX, number(a, PAST_LENGTHS, 1, &b), constant(a, 0), constant(a, most));
}

/* The past ones, then the new ones; with PastSequenceLengthsTensor zeros follow them. */
static ir_ref lower_all(attention *a, const source *from, uint32_t past)
{
    ir_func *f = a->l->f;
    const attention_sizes *s = &a->s;
    ir_ref at[4];
    const ir_ref def = define(a, s->key_heads, s->total, from->size, at);
    const bool counted = is_there(a, PAST_LENGTHS);

    if (!counted && s->past == 0) {
        set(a, def, element(a, from, at[0], at[1], at[2], at[3]));
        return def;
    }
    const ir_ref begin = counted ? past_of(a, at[0]) : constant(a, s->past);
    const ir_ref later = ir_expr2(f, IR_ISUB, IR_INDEX, at[2], begin);
    ir_ref x = element(a, from, at[0], at[1], counted ? opjit_fe_inside(f, later, s->added) : later, at[3]);
    if (counted)
        x = choose(&a->e, ir_expr2(f, IR_LT, IR_BOOL, later, constant(a, s->added)), x, zero(&a->e));
    if (s->past != 0) {
        const ir_ref of[4] = { at[0], at[1], counted ? opjit_fe_inside(f, at[2], s->past) : at[2], at[3] };
        x = choose(&a->e, ir_expr2(f, IR_LT, IR_BOOL, at[2], begin), widened(a, load(a, past, 4, of)), x);
    }
    set(a, def, x);
    return def;
}

static void lower_keys_and_values(attention *a)
{
    const attention_sizes *s = &a->s;
    const uint64_t hidden = s->heads * s->size;
    const bool pairs = is_there(a, STACKED_KV);
    const source key = { KEY, pairs ? STACKED_KV : stacked_of(a, STACKED_QK), pairs ? 0 : 1, s->size, hidden };
    const source value = { VALUE, stacked_of(a, STACKED_KV), pairs ? 1 : 2, s->value_size,
                           hidden + s->key_heads * s->size };

    a->keys = lower_all(a, &key, PAST_KEY);
    a->values = lower_all(a, &value, PAST_VALUE);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* first[b] <= x < first[b + 1], numbers of the mask from `at` on. */
static ir_ref inside(attention *a, ir_ref b, uint64_t at, ir_ref x)
{
    ir_func *f = a->l->f;
    const ir_ref begin = moves_add(f, b, (int64_t)at), end = moves_add(f, b, (int64_t)at + 1);

    return ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_LE, IR_BOOL, number(a, MASK, 1, &begin), x),
                    ir_expr2(f, IR_LT, IR_BOOL, x, number(a, MASK, 1, &end)));
}

/* Whether nothing is added to the score at these coordinates. */
static ir_ref is_unmasked(attention *a, DML_MULTIHEAD_ATTENTION_MASK_TYPE type, const ir_ref at[4])
{
    ir_func *f = a->l->f;
    const attention_sizes *s = &a->s;
    const ir_ref end[2] = { constant(a, 0), at[0] }, start[2] = { constant(a, 1), at[0] };

    switch (type) {
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH:
        return ir_expr2(f, IR_LT, IR_BOOL, at[3], number(a, MASK, 1, &at[0]));
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START:
        return ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_LE, IR_BOOL, number(a, MASK, 2, start), at[3]),
                        ir_expr2(f, IR_LT, IR_BOOL, at[3], number(a, MASK, 2, end)));
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END: {
        const ir_ref query = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, at[0], (int64_t)s->queries), at[2]);
        const ir_ref key = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, at[0], (int64_t)s->total), at[3]);
        const ir_ref both =
            ir_expr2(f, IR_AND, IR_BOOL, inside(a, at[0], s->batch, query), inside(a, at[0], 2 * s->batch + 1, key));
        return ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_LT, IR_BOOL, at[3], number(a, MASK, 1, &at[0])), both);
    }
    default: return ir_expr2(f, IR_NE, IR_BOOL, load(a, MASK, 4, at), opjit_ir_const(f, IR_I32, 0));
    }
}

/* Query * Key, for each pair of a query and a key. */
static ir_ref lower_products(attention *a, ir_ref queries)
{
    const attention_sizes *s = &a->s;
    ir_ref at[5];
    const ir_ref dot = define_reduced(a, IR_DOT, 1, s->total, s->size, at);
    const ir_ref of = s->heads == s->key_heads
                          ? at[1]
                          : ir_expr2(a->l->f, IR_IDIV, IR_INDEX, at[1], constant(a, s->heads / s->key_heads));

    set(a, dot,
        op2(&a->e, IR_PAIR, read(a, queries, at[0], at[1], at[2], at[4]), read(a, a->keys, at[0], of, at[3], at[4])));
    return dot;
}

/* The products * Scale + RelativePositionBias, and MaskFilterValue where the mask says so. */
static ir_ref lower_scores(attention *a, ir_ref products)
{
    ir_func *f = a->l->f;
    const op_def *row = a->l->op->def;
    const void *desc = a->l->op->desc;
    const DML_MULTIHEAD_ATTENTION_MASK_TYPE *mask = opjit_fe_field(row, desc, "MaskType");
    const float *scale = opjit_fe_field(row, desc, "Scale"), *filter = opjit_fe_field(row, desc, "MaskFilterValue");
    ir_ref at[4];
    const ir_ref def = define(a, a->s.heads, a->s.queries, a->s.total, at);
    ir_ref x = op2(&a->e, IR_MUL, read(a, products, at[0], at[1], at[2], at[3]), opjit_fe_number(&a->e, *scale));

    if (is_there(a, RELATIVE_BIAS))
        x = op2(&a->e, IR_ADD, x, widened(a, load(a, RELATIVE_BIAS, 4, at)));
    if (is_there(a, MASK))
        x = choose(&a->e, is_unmasked(a, *mask, at), x, op2(&a->e, IR_ADD, x, opjit_fe_number(&a->e, *filter)));
    if (is_there(a, PAST_LENGTHS)) {
        const ir_ref own = ir_expr2(f, IR_IADD, IR_INDEX, past_of(a, at[0]), at[2]);
        const ir_ref none = opjit_ir_const(f, a->e.type, a->e.type == IR_F64 ? 0xfff0000000000000u : 0xff800000u);
        x = choose(&a->e, ir_expr2(f, IR_LE, IR_BOOL, at[3], own), x, none);
    }
    set(a, def, x);
    return def;
}

/* As SOFTMAX does: exponentials, and the reciprocals of their sums. */
static ir_ref lower_weights(attention *a, ir_ref scores)
{
    const attention_sizes *s = &a->s;
    ir_func *f = a->l->f;
    ir_ref at[5];
    const ir_ref zero_index = constant(a, 0);

    const ir_ref max = define_reduced(a, IR_KMAX, IR_REDUCE_LANES, 1, s->total, at);
    set(a, max, read(a, scores, at[0], at[1], at[2], at[4]));
    const ir_ref e = define(a, s->heads, s->queries, s->total, at);
    set(a, e,
        opjit_fe_exp_below(f, a->e.type, read(a, scores, at[0], at[1], at[2], at[3]),
                           read(a, max, at[0], at[1], at[2], zero_index)));
    const ir_ref sum = define_reduced(a, IR_SUM, IR_REDUCE_LANES, 1, s->total, at);
    set(a, sum, read(a, e, at[0], at[1], at[2], at[4]));
    const ir_ref scale = define(a, s->heads, s->queries, 1, at);
    set(a, scale, op2(&a->e, IR_DIV, one(&a->e), read(a, sum, at[0], at[1], at[2], zero_index)));
    const ir_ref weights = define(a, s->heads, s->queries, s->total, at);
    set(a, weights,
        op2(&a->e, IR_MUL, read(a, e, at[0], at[1], at[2], at[3]), read(a, scale, at[0], at[1], at[2], zero_index)));
    return weights;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

static ir_ref coordinate(const attention *a, ir_ref statement, uint32_t output, uint32_t from_end)
{
    ir_func *f = a->l->f;

    return f->failed ? 0 : opjit_ir_coordinate(f, statement, a->l->op->outputs[output].rank - 1 - from_end);
}

/* Weights * Value, the heads of a query behind each other. */
static void lower_output(attention *a, ir_ref weights)
{
    const attention_sizes *s = &a->s;
    ir_func *f = a->l->f;
    ir_ref at[5];
    const ir_ref dot = define_reduced(a, IR_DOT, 1, s->value_size, s->total, at);
    const ir_ref of =
        s->heads == s->key_heads ? at[1] : ir_expr2(f, IR_IDIV, IR_INDEX, at[1], constant(a, s->heads / s->key_heads));

    set(a, dot,
        op2(&a->e, IR_PAIR, read(a, weights, at[0], at[1], at[2], at[4]), read(a, a->values, at[0], of, at[4], at[3])));
    const ir_ref out = opjit_fe_output(a->l, OUTPUT), column = coordinate(a, out, OUTPUT, 0);
    const ir_ref head = ir_expr2(f, IR_IDIV, IR_INDEX, column, constant(a, s->value_size));
    const ir_ref own = ir_expr2(f, IR_IMOD, IR_INDEX, column, constant(a, s->value_size));
    opjit_fe_set(a->l, out, read(a, dot, coordinate(a, out, OUTPUT, 2), head, coordinate(a, out, OUTPUT, 1), own));
}

static void lower_present(attention *a, uint32_t output, ir_ref def)
{
    if (!a->l->op->outputs[output].present)
        return;
    const ir_ref out = opjit_fe_output(a->l, output);
    opjit_fe_set(a->l, out,
                 read(a, def, coordinate(a, out, output, 3), coordinate(a, out, output, 2),
                      coordinate(a, out, output, 1), coordinate(a, out, output, 0)));
}

void opjit_fe_lower_attention(op_lowering *l)
{
    attention a = { .l = l, .s = opjit_fe_attention_sizes(l->op) };

    a.e = (op_element){ .f = l->f, .desc = l->op->desc, .result = opjit_fe_output_type(l, OUTPUT), .masks = l->masks };
    a.e.type = opjit_fe_wide(a.e.result);
    const ir_ref queries = lower_queries(&a);
    lower_keys_and_values(&a);
    lower_output(&a, lower_weights(&a, lower_scores(&a, lower_products(&a, queries))));
    lower_present(&a, PRESENT_KEY, a.keys);
    lower_present(&a, PRESENT_VALUE, a.values);
}
