/* SPDX-License-Identifier: Apache-2.0 */
/* holds.c - proves a <= c + slack at a position, with the help of guards. */
#include "ir/verify/guards.h"

enum { STEPS = 400 /* of a proof */ };

static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth);

/* Splits off the constant that is added to a select or quotient. */
static ir_ref without_constant(const ir_func *f, ir_ref r, int64_t *constant)
{
    *constant = 0;
    if (ir_at(f, r)->op != IR_IADD || !ir_is_index_const(f, ir_operand(f, r, 1)))
        return r;
    *constant = ir_index_value(f, ir_operand(f, r, 1));
    return ir_operand(f, r, 0);
}

/* a <= r + slack by the operands of r: a must not exceed both of imin, or one of imax. */
static bool below_parts(bounds *b, ir_ref a, ir_ref r, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    int64_t constant, product;
    r = without_constant(f, r, &constant);
    if (!checked_addi(slack, constant, &slack))
        return false;
    switch ((ir_op)ir_at(f, r)->op) {
    case IR_IMIN:
        return holds(b, a, ir_operand(f, r, 0), slack, depth) && holds(b, a, ir_operand(f, r, 1), slack, depth);
    case IR_IMAX:
        return holds(b, a, ir_operand(f, r, 0), slack, depth) || holds(b, a, ir_operand(f, r, 1), slack, depth);
    case IR_CLAMP:
        return holds(b, a, ir_operand(f, r, 2), slack, depth) &&
               (holds(b, a, ir_operand(f, r, 1), slack, depth) || holds(b, a, ir_operand(f, r, 0), slack, depth));
    case IR_IDIV: /* m <= floor(y / k) where m * k <= y */
        return ir_is_index_const(f, a) && checked_subi(ir_index_value(f, a), slack, &constant) &&
               checked_muli(constant, ir_index_value(f, ir_operand(f, r, 1)), &product) &&
               holds(b, opjit_ir_index(f, product), ir_operand(f, r, 0), 0, depth);
    default: return false;
    }
}

/* r <= c + slack by the operands of r. */
static bool parts_below(bounds *b, ir_ref r, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    int64_t constant, product;
    r = without_constant(f, r, &constant);
    if (!checked_subi(slack, constant, &slack))
        return false;
    switch ((ir_op)ir_at(f, r)->op) {
    case IR_IMIN:
        return holds(b, ir_operand(f, r, 0), c, slack, depth) || holds(b, ir_operand(f, r, 1), c, slack, depth);
    case IR_IMAX:
        return holds(b, ir_operand(f, r, 0), c, slack, depth) && holds(b, ir_operand(f, r, 1), c, slack, depth);
    case IR_CLAMP:
        return holds(b, ir_operand(f, r, 2), c, slack, depth) ||
               (holds(b, ir_operand(f, r, 1), c, slack, depth) && holds(b, ir_operand(f, r, 0), c, slack, depth));
    case IR_IDIV: /* floor(y / k) <= m where y <= m * k + k - 1 */
        return ir_is_index_const(f, c) && checked_addi(ir_index_value(f, c), slack, &constant) &&
               checked_addi(constant, 1, &constant) &&
               checked_muli(constant, ir_index_value(f, ir_operand(f, r, 1)), &product) &&
               holds(b, ir_operand(f, r, 0), opjit_ir_index(f, product), -1, depth);
    default: return false;
    }
}

/* How many times the guard must be added to the sum to cancel its variable there. */
static int64_t times_of(const guard *g, const ir_affine *sum)
{
    int64_t own = 0, there = 0;
    for (uint32_t i = 0; i < g->sum.count; i++)
        own += g->sum.atoms[i] == g->var ? g->sum.factors[i] : 0;
    for (uint32_t i = 0; i < sum->count; i++)
        there -= sum->atoms[i] == g->var ? sum->factors[i] : 0;
    return own == 0 || own == INT64_MIN || there == INT64_MIN || there % own != 0 || there / own < 1 ? 1 : there / own;
}

/* Whether intervals say that sum + times * (expr - least of the guard) is at most 0. */
static bool holds_plus(const ir_func *f, const guard *g, int64_t times, const ir_affine *sum)
{
    ir_affine with = *sum;
    int64_t least;
    return checked_muli(g->least, times, &least) && opjit_ir_affine_add_sum(f, &with, &g->sum, times) &&
           checked_subi(with.constant, least, &with.constant) && opjit_ir_sum_is_at_most_0(f, &with);
}

/* sum <= 0 by intervals, with one guard or without; nearly all that is proven is proven so. */
static bool holds_at_once(const bounds *b, const ir_affine *sum)
{
    const ir_func *f = b->v->f;
    bool holds = opjit_ir_sum_is_at_most_0(f, sum);
    for (uint32_t i = 0; i < b->known.count && !holds; i++) {
        const guard *g = &b->known.at_least[i];
        const int64_t times = times_of(g, sum);
        holds = holds_plus(f, g, times, sum) ||
                (g->divisor != 1 && times != g->divisor && holds_plus(f, g, g->divisor, sum));
    }
    return holds;
}

/* a <= c + slack, with a multiple of the guard's expr - least >= 0 added to a. */
static bool holds_times(bounds *b, const guard *g, int64_t times, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    const ir_ref part = times == 1 ? g->expr : ir_expr2(f, IR_IMUL, IR_INDEX, g->expr, opjit_ir_index(f, times));
    const ir_ref more = ir_expr2(f, IR_IADD, IR_INDEX, a, part);
    int64_t changed;
    return !f->failed && checked_muli(g->least, times, &changed) && checked_addi(slack, changed, &changed) &&
           (depth > 0 ? holds(b, more, c, changed, depth) : opjit_ir_proves_within(f, more, c, changed, b->sums));
}

/* Likewise; k * idiv(x, k) is near x, which a smaller multiple is not. */
static bool holds_with(bounds *b, const guard *g, int64_t times, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    return holds_times(b, g, times, a, c, slack, depth) ||
           (g->divisor != 1 && times != g->divisor && holds_times(b, g, g->divisor, a, c, slack, depth));
}

/* a <= c + slack, by their operands, or with the help of one or two guards. */
static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    const guards *k = &b->known;
    ir_affine sum;
    if (b->steps == 0)
        return false;
    b->steps--;
    if (!opjit_ir_guards_difference(f, &sum, a, c) || !checked_subi(sum.constant, slack, &sum.constant))
        return false;
    if (holds_at_once(b, &sum) || opjit_ir_proves_within(f, a, c, slack, b->sums))
        return true;
    for (uint32_t i = 0; depth > 0 && i < k->count; i++)
        if (holds_with(b, &k->at_least[i], times_of(&k->at_least[i], &sum), a, c, slack, 0))
            return true;
    if (below_parts(b, a, c, slack, depth) || parts_below(b, a, c, slack, depth))
        return true;
    for (uint32_t i = 0; depth > 1 && i < k->count; i++)
        if (holds_with(b, &k->at_least[i], times_of(&k->at_least[i], &sum), a, c, slack, depth - 1))
            return true;
    return false;
}

bool opjit_ir_guards_prove(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t count)
{
    b->steps = STEPS;
    return holds(b, a, c, slack, count);
}
