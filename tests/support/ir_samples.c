/* SPDX-License-Identifier: Apache-2.0 */
/* ir_samples.c - builds and draws sample functions (ir_samples.h). */
#include "tests/support/ir_samples.h"

#include <string.h>

uint64_t ir_sample_bytes(const ir_sample *s, const uint64_t *strides)
{
    uint64_t last = 0;
    for (uint32_t d = 0; d < s->rank; d++)
        last += (s->sizes[d] - 1) * strides[d];
    return (last + 1) * opjit_ir_type_size(s->type);
}

static uint32_t add_tensor(const ir_sample *s, ir_func *f, ir_role role, const uint64_t *strides, uint32_t slot)
{
    ir_tensor t = { .role = role, .type = s->type, .rank = s->rank, .bytes = ir_sample_bytes(s, strides),
                    .align = opjit_ir_type_size(s->type), .slot = slot };
    for (uint32_t d = 0; d < s->rank; d++) {
        t.sizes[d] = s->sizes[d];
        t.strides[d] = s->sizes[d] == 1 ? 0 : strides[d];
    }
    return opjit_ir_tensor(f, &t);
}

/* A scalar of the operator: constant or parameter. */
static ir_ref scalar(const ir_sample *s, ir_func *f, uint64_t bits, const char *name)
{
    return s->late ? opjit_ir_param(f, opjit_ir_param_add(f, s->type, 0, 0, name)) : opjit_ir_const(f, s->type, bits);
}

static ir_ref bound(const ir_sample *s, ir_func *f, int64_t value, const char *name)
{
    return s->late ? opjit_ir_param(f, opjit_ir_param_add(f, IR_INDEX, INT32_MIN, INT32_MAX, name))
                   : opjit_ir_index(f, value);
}

static ir_ref e2(ir_func *f, ir_op op, ir_ref a, ir_ref b) { return ir_expr2(f, op, IR_NONE, a, b); }

/* The scalar factors of a sequence; f16 is computed in f32. */
static ir_ref sequence(const ir_sample *s, ir_func *f, const ir_ref *at)
{
    const ir_ref start = scalar(s, f, s->value, "Start"), delta = scalar(s, f, s->delta, "Delta");
    ir_ref e = opjit_ir_index(f, 0);
    for (uint32_t d = 0; d < s->rank; d++)
        e = e2(f, IR_IADD, e2(f, IR_IMUL, e, opjit_ir_index(f, (int64_t)s->sizes[d])), at[d]);
    if (s->type == IR_F32)
        return ir_expr3(f, IR_FMA, IR_NONE, ir_expr1(f, IR_ELEM, IR_F32, e), delta, start);
    if (s->type == IR_F16)
        return ir_expr1(f, IR_CAST, IR_F16,
                        ir_expr3(f, IR_FMA, IR_NONE, ir_expr1(f, IR_ELEM, IR_F32, e),
                                 ir_expr1(f, IR_CAST, IR_F32, delta), ir_expr1(f, IR_CAST, IR_F32, start)));
    const ir_ref step = e2(f, IR_MUL, ir_expr1(f, IR_ELEM, s->type, e), delta);
    return s->type == IR_F64 ? e2(f, IR_ADD, step, start) : e2(f, IR_ADD, start, step);
}

static ir_ref diagonal(const ir_sample *s, ir_func *f, const ir_ref *at, uint32_t input)
{
    const ir_ref x = at[s->rank - 1], y = at[s->rank - 2];
    const ir_ref value = scalar(s, f, s->value, "Value"), begin = bound(s, f, s->begin, "Begin");
    const ir_ref other = input != 0 ? opjit_ir_load(f, input, at) : opjit_ir_const(f, s->type, 0);
    if (s->kind == SAMPLE_DIAGONAL)
        return ir_expr3(f, IR_SELECT, IR_NONE, e2(f, IR_EQ, e2(f, IR_IADD, y, begin), x), value, other);
    const ir_ref end = bound(s, f, s->end, "End"), t = e2(f, IR_ISUB, x, y);
    const ir_ref order = e2(f, IR_LE, begin, end);
    const ir_ref use = e2(f, IR_XOR, e2(f, IR_XOR, order, e2(f, IR_LE, begin, t)), e2(f, IR_LT, t, end));
    return ir_expr3(f, IR_SELECT, IR_NONE, use, value, other);
}

/* --- random expressions ----------------------------------------------------------------------------------------- */

typedef struct drawing {
    const ir_sample *s;
    ir_func *f;
    const ir_ref *at;
    uint32_t input;
    test_random r;
} drawing;

static ir_ref random_index(drawing *d, uint32_t depth)
{
    static const ir_op pairs[] = { IR_IADD, IR_ISUB, IR_IMIN, IR_IMAX };
    static const ir_op by_constant[] = { IR_IMUL, IR_IDIV, IR_IMOD, IR_DOWN, IR_UP };
    ir_func *f = d->f;
    if (depth == 0 || test_random_chance(&d->r, 25))
        return test_random_chance(&d->r, 75) ? d->at[test_random_below(&d->r, d->s->rank)]
                                             : opjit_ir_index(f, test_random_between(&d->r, -20, 70));
    const ir_ref a = random_index(d, depth - 1);
    if (test_random_chance(&d->r, 60))
        return e2(f, pairs[test_random_below(&d->r, 4)], a, random_index(d, depth - 1));
    if (test_random_chance(&d->r, 15)) {
        const ir_ref lo = random_index(d, depth - 1);
        return ir_expr3(f, IR_CLAMP, IR_NONE, a, lo, random_index(d, depth - 1));
    }
    const ir_op op = by_constant[test_random_below(&d->r, 5)];
    const int64_t k = op == IR_DOWN || op == IR_UP ? 1 << test_random_below(&d->r, 5)
                      : op == IR_IMUL             ? test_random_between(&d->r, -4, 4)
                                                  : test_random_between(&d->r, 1, 9);
    return e2(f, op, a, opjit_ir_index(f, k));
}

static ir_ref random_bool(drawing *d, uint32_t depth)
{
    static const ir_op comparisons[] = { IR_LT, IR_LE, IR_EQ, IR_NE }, logic[] = { IR_AND, IR_OR, IR_XOR };
    ir_func *f = d->f;
    if (depth == 0 || test_random_chance(&d->r, 50)) {
        const ir_ref a = random_index(d, 2);
        return e2(f, comparisons[test_random_below(&d->r, 4)], a, random_index(d, 2));
    }
    const ir_ref a = random_bool(d, depth - 1);
    if (test_random_chance(&d->r, 20))
        return ir_expr1(f, IR_NOT, IR_NONE, a);
    return e2(f, logic[test_random_below(&d->r, 3)], a, random_bool(d, depth - 1));
}

static ir_ref random_value(drawing *d, uint32_t depth)
{
    ir_func *f = d->f;
    if (depth == 0 || test_random_chance(&d->r, 20)) {
        switch (test_random_below(&d->r, 4)) {
        case 0:  return opjit_ir_const(f, d->s->type, 0);
        case 1:  return opjit_ir_const(f, d->s->type, test_random_u64(&d->r));
        case 2:  return ir_expr1(f, IR_ELEM, d->s->type, random_index(d, 2));
        default: return opjit_ir_load(f, d->input, d->at);
        }
    }
    const ir_ref a = random_value(d, depth - 1), b = random_value(d, depth - 1);
    if (ir_is_integer(d->s->type) && test_random_chance(&d->r, 30))
        return e2(f, IR_ADD, a, b);
    return ir_expr3(f, IR_SELECT, IR_NONE, random_bool(d, 2), a, b);
}

static ir_ref expression(const ir_sample *s, ir_func *f, const ir_ref *at, uint32_t input)
{
    drawing d = { .s = s, .f = f, .at = at, .input = input };
    test_random_init(&d.r, s->seed, 0, 0);
    return random_value(&d, 3);
}

static ir_ref sample_value(const ir_sample *s, ir_func *f, const ir_ref *at, uint32_t input)
{
    switch (s->kind) {
    case SAMPLE_CONSTANT:   return scalar(s, f, s->value, "Value");
    case SAMPLE_SEQUENCE:   return sequence(s, f, at);
    case SAMPLE_EXPRESSION: return expression(s, f, at, input);
    default:                return diagonal(s, f, at, input);
    }
}

opjit_status ir_sample_build(const ir_sample *s, const opjit_allocator *allocator, ir_func *out, opjit_error *error)
{
    TRY(opjit_ir_init(out, allocator, "sample", error));
    ir_ref at[8] = { 0 }, tail = 0;
    const uint32_t input =
        s->has_input ? add_tensor(s, out, IR_IN, s->in_place ? s->out_strides : s->in_strides, 0) : 0;
    const uint32_t output = add_tensor(s, out, IR_OUT, s->out_strides, s->has_input ? 1 : 0);
    if (s->has_input && s->in_place && output != 0)
        out->tensors[output].alias = input;
    const ir_ref yield = opjit_ir_yield(out, output);
    for (uint32_t d = 0; d < s->rank; d++)
        at[d] = opjit_ir_coordinate(out, yield, d);
    if (out->failed) {
        opjit_ir_free(out);
        return opjit_rt_no_memory(error);
    }
    opjit_ir_set_value(out, yield, sample_value(s, out, at, input));
    opjit_ir_append(out, 0, &tail, yield);
    if (!out->failed)
        return OPJIT_OK;
    opjit_ir_free(out);
    return opjit_rt_no_memory(error);
}

void ir_sample_params(const ir_sample *s, uint64_t params[4])
{
    params[0] = s->value;
    params[1] = s->kind == SAMPLE_SEQUENCE ? s->delta : (uint64_t)s->begin;
    params[2] = (uint64_t)s->end;
    params[3] = 0;
}

/* --- drawing ---------------------------------------------------------------------------------------------------- */

/* Strides that give each coordinate its own element: the dimensions in random order, some with a gap after them. */
static void random_strides(test_random *r, const ir_sample *s, uint64_t *strides)
{
    uint32_t order[8];
    uint64_t next = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        order[d] = s->rank - 1 - d;
    if (test_random_chance(r, 25)) {
        const uint32_t a = (uint32_t)test_random_below(r, s->rank), b = (uint32_t)test_random_below(r, s->rank);
        const uint32_t swap = order[a];
        order[a] = order[b];
        order[b] = swap;
    }
    for (uint32_t d = 0; d < s->rank; d++) {
        strides[order[d]] = next;
        next *= s->sizes[order[d]];
        next += test_random_chance(r, 15) ? test_random_below(r, 5) : 0;
    }
}

static int64_t random_bound(test_random *r, const ir_sample *s)
{
    const int64_t most = (int64_t)(s->sizes[s->rank - 1] + s->sizes[s->rank - 2]) + 2;
    switch (test_random_below(r, 8)) {
    case 0: return INT32_MIN;
    case 1: return INT32_MAX;
    default: return test_random_between(r, -most, most);
    }
}

void ir_sample_random(test_random *r, uint64_t elements, ir_sample *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = (ir_sample_kind)test_random_below(r, SAMPLE_KINDS);
    const bool is_diagonal = out->kind == SAMPLE_DIAGONAL || out->kind == SAMPLE_DIAGONAL1;
    out->type = (ir_type)(IR_F16 + test_random_below(r, 11));
    out->rank = (uint32_t)test_random_between(r, is_diagonal ? 2 : 1, test_random_chance(r, 20) ? 8 : 4);
    for (uint32_t d = out->rank; d-- > 0;) {
        uint64_t most = test_random_chance(r, 20) ? 1 : test_random_chance(r, 50) ? 7 : 90;
        most = most > elements ? elements : most;
        out->sizes[d] = 1 + test_random_below(r, most);
        elements /= out->sizes[d];
        elements += elements == 0;
    }
    random_strides(r, out, out->out_strides);
    random_strides(r, out, out->in_strides);
    for (uint32_t d = 0; d < out->rank; d++)
        if (test_random_chance(r, 15))
            out->in_strides[d] = 0;
    out->has_input = out->kind == SAMPLE_EXPRESSION || (is_diagonal && test_random_chance(r, 50));
    out->in_place = out->has_input && test_random_chance(r, 30);
    out->late = out->kind != SAMPLE_EXPRESSION && test_random_chance(r, 30);
    out->seed = test_random_u64(r);
    out->begin = is_diagonal ? random_bound(r, out) : 0;
    out->end = is_diagonal ? (test_random_chance(r, 30) ? out->begin + 1 : random_bound(r, out)) : 0;
    out->end = out->end > INT32_MAX ? INT32_MAX : out->end;
    const uint32_t bits = 8 * opjit_ir_type_size(out->type);
    out->value = test_random_u64(r) >> (64 - bits);
    out->delta = test_random_u64(r) >> (64 - bits);
}
