/* SPDX-License-Identifier: Apache-2.0 */
/* guards.c - facts about indices at a position: bounds of loops, conditions of selects, and what follows from
 * comparisons with clamp, imin and imax. */
#include <stdlib.h>

#include "ir/verify/guards.h"

bool opjit_ir_guards_difference(const ir_func *f, ir_affine *out, ir_ref a, ir_ref b)
{
    uint32_t replaced = 0;
    *out = (ir_affine){ 0 };
    if (!opjit_ir_affine_add_values(f, out, a, 1) || !opjit_ir_affine_add_values(f, out, b, -1))
        return false;
    for (uint32_t i = 0; i < out->count && replaced < IR_AFFINE_TERMS; i++) {
        const ir_ref atom = out->atoms[i];
        const int64_t factor = out->factors[i], multiple = opjit_ir_only_multiple(f, atom);
        int64_t constant;
        if (multiple < 0)
            continue;
        opjit_ir_affine_remove(out, i);
        if (!checked_muli(multiple, factor, &constant) || !checked_subi(out->constant, constant, &out->constant) ||
            !opjit_ir_affine_add_values(f, out, ir_operand(f, atom, 0), factor))
            return false;
        replaced++;
        i = UINT32_MAX; /* from the first one on: the order has changed */
    }
    return true;
}

/* a - b where that is a constant. */
static bool distance_of(const ir_func *f, const ir_affine *a, const ir_affine *b, int64_t *out)
{
    ir_affine sum = *a;
    const bool known = opjit_ir_affine_add_sum(f, &sum, b, -1) && sum.count == 0;
    *out = sum.constant;
    return known;
}

/* If expr is at least a value and differs from it, it is at least one more. */
static void tighten(guards *k, const ir_func *f, guard *g)
{
    for (uint32_t i = 0; i < k->zero_count; i++) {
        int64_t distance;
        if (distance_of(f, &g->sum, &k->not_zero[i], &distance) && distance == g->least && distance < INT64_MAX) {
            g->least++;
            k->changes++;
            i = UINT32_MAX; /* start again */
        }
    }
}

/* The first variable in a sum; 0: none. */
static ir_ref variable_of(const ir_func *f, ir_ref expr)
{
    const ir_node *node = ir_at(f, expr);
    ir_ref var = 0;
    if (node->op == IR_GET && ir_at(f, node->ref)->op == IR_LET)
        return variable_of(f, ir_operand(f, node->ref, 0));
    if (node->op != IR_IADD && node->op != IR_ISUB && node->op != IR_IMUL)
        return node->op == IR_VAR ? expr : 0;
    for (uint32_t i = 0; i < node->count && var == 0; i++)
        var = variable_of(f, ir_operand(f, expr, i));
    return var;
}

/* k of a term idiv(x, k) of the sum whose factor is no multiple of k; 1: there is none. */
static int64_t divisor_of(const ir_func *f, const ir_affine *sum)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        const bool quotient = ir_at(f, sum->atoms[i])->op == IR_IDIV;
        const int64_t by = quotient ? ir_index_value(f, ir_operand(f, sum->atoms[i], 1)) : 1;
        if (by > 1 && sum->factors[i] % by != 0)
            return by;
    }
    return 1;
}

/* Divides sum >= least by what divides all of the sum's factors; false: by 1. */
static bool divide(ir_affine *sum, int64_t *least)
{
    int64_t by = 0, above;
    for (uint32_t i = 0; i < sum->count; i++)
        by = gcd(by, sum->factors[i] == INT64_MIN ? 1 : llabs(sum->factors[i]));
    if (by < 2 || !checked_subi(*least, sum->constant, &above))
        return false;
    for (uint32_t i = 0; i < sum->count; i++)
        sum->factors[i] /= by;
    *least = above / by + (above % by > 0); /* up */
    sum->constant = 0;
    return true;
}

/* x - y, or what it was divided to. */
static ir_ref difference(bounds *b, ir_ref x, ir_ref y, const ir_affine *divided)
{
    return divided != NULL ? opjit_ir_affine_build(b->v->f, divided) : ir_expr2(b->v->f, IR_ISUB, IR_INDEX, x, y);
}

/* Adds x - y >= least; merges guards that differ by a constant.  false: that is known, or there is no room. */
static bool push(bounds *b, ir_ref x, ir_ref y, int64_t least)
{
    const ir_func *f = b->v->f;
    guards *k = &b->known;
    uint32_t i = 0;
    int64_t distance = 0;
    ir_affine sum;
    if (f->failed || !opjit_ir_guards_difference(f, &sum, x, y))
        return false;
    const bool divided = divide(&sum, &least);
    while (i < k->count && !distance_of(f, &k->at_least[i].sum, &sum, &distance))
        i++;
    if (i == GUARDS || (i < k->count && !checked_addi(least, distance, &least)))
        return false;
    guard *g = &k->at_least[i];
    if (i < k->count && g->least >= least)
        return false;
    if (i == k->count) {
        const ir_ref expr = difference(b, x, y, divided ? &sum : NULL);
        *g = (guard){ .expr = expr, .var = variable_of(f, expr), .divisor = divisor_of(f, &sum), .sum = sum };
        if (g->var == 0 && sum.count > 0)
            g->var = sum.atoms[0];
        k->count++;
    }
    g->least = least;
    k->changes++;
    tighten(k, f, g);
    return true;
}

/* x != y: x is above y if it is known not to be below. */
static void push_different(bounds *b, ir_ref x, ir_ref y)
{
    const ir_func *f = b->v->f;
    guards *k = &b->known;
    for (uint32_t side = 0; side < 2; side++) {
        const ir_ref from = side ? y : x, less = side ? x : y;
        ir_affine *sum = &k->not_zero[k->zero_count];
        if (k->zero_count == GUARDS)
            return;
        if (!opjit_ir_guards_difference(f, sum, from, less))
            return;
        k->zero_count++;
        k->changes++;
        if (opjit_ir_proves_le(f, less, from, 0))
            push(b, from, less, 1);
        for (uint32_t i = 0; i < k->count; i++)
            tighten(k, f, &k->at_least[i]);
    }
}

/* Whether a comparison with the limit can become one with an operand of the limit. */
static bool is_choice(const ir_func *f, ir_ref limit)
{
    const ir_op op = (ir_op)ir_at(f, ir_let_value(f, limit))->op;
    return op == IR_CLAMP || op == IR_IMAX || op == IR_IMIN;
}

/* What is above the limit as well, if it is rounded down (to: IR_DOWN), or below it, if it is rounded up. */
static ir_ref unrounded(const ir_func *f, ir_ref limit, ir_op to)
{
    const ir_ref value = ir_let_value(f, limit);
    return ir_at(f, value)->op == to ? ir_operand(f, value, 0) : limit;
}

/* k if the limit is idiv(value that is selected, k); 0. */
static int64_t choice_is_divided_by(const ir_func *f, ir_ref limit)
{
    const ir_ref value = ir_let_value(f, limit);
    return ir_at(f, value)->op == IR_IDIV && is_choice(f, ir_operand(f, value, 0))
               ? ir_index_value(f, ir_operand(f, value, 1))
               : 0;
}

static void push_less(bounds *b, ir_ref less, ir_ref more, int64_t strict);

/* Whether x + strict <= q is impossible, or says no more than it does with p in place of q; above: q + strict <= x. */
static bool says_no_more(bounds *b, ir_ref x, ir_ref q, ir_ref p, int64_t strict, bool above, uint32_t depth)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, q);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    if (opjit_ir_guards_prove(b, above ? x : q, above ? q : x, strict - 1, 1) ||
        opjit_ir_proves_le(f, above ? p : q, above ? q : p, 0))
        return true;
    return depth > 0 && (above ? op == IR_IMIN : op == IR_CLAMP || op == IR_IMAX) &&
           says_no_more(b, x, ir_operand(f, value, 0), p, strict, above, depth - 1) &&
           says_no_more(b, x, ir_operand(f, value, 1), p, strict, above, depth - 1);
}

/* x + strict <= limit.  If x is below max(p, q) and not below q, it is below p; clamp is such a max. */
static uint32_t learn_below(bounds *b, ir_ref x, ir_ref limit, int64_t strict, uint32_t drawn)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, limit);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    for (uint32_t i = 0; i < 2 && (op == IR_CLAMP || op == IR_IMAX) && drawn == 0; i++) {
        const ir_ref p = ir_operand(f, value, i), q = ir_operand(f, value, 1 - i);
        if (!says_no_more(b, x, q, p, strict, false, 3))
            continue;
        push_less(b, x, p, strict);
        drawn = 1;
    }
    return drawn;
}

/* limit + strict <= x.  If x is not below min(p, q) but below q, it is not below p; likewise both of clamp's max. */
static uint32_t learn_above(bounds *b, ir_ref limit, ir_ref x, int64_t strict, uint32_t drawn)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, limit);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    for (uint32_t i = 0; i < 2 && (op == IR_IMIN || op == IR_CLAMP); i++) {
        const ir_ref p = ir_operand(f, value, i), q = ir_operand(f, value, op == IR_CLAMP ? 2 : 1 - i);
        if ((drawn & 1u << i) != 0 || !says_no_more(b, x, q, p, strict, true, 3))
            continue;
        push_less(b, p, x, strict);
        drawn |= 1u << i;
    }
    return drawn;
}

/* x if the value is idiv(x, *by), written as imod(idiv(p, *by), b): x = imod(p, *by * b), where 0 <= p; 0. */
static ir_ref undivided(ir_func *f, ir_ref value, int64_t *by)
{
    const ir_ref digit = ir_let_value(f, value);
    const ir_ref quotient = ir_at(f, digit)->op == IR_IMOD ? ir_let_value(f, ir_operand(f, digit, 0)) : 0;
    if (quotient == 0 || ir_at(f, quotient)->op != IR_IDIV)
        return 0;
    const ir_ref p = ir_operand(f, quotient, 0), by_node = ir_operand(f, quotient, 1), b_node = ir_operand(f, digit, 1);
    if (!ir_is_index_const(f, by_node) || !ir_is_index_const(f, b_node))
        return 0;
    const int64_t b = ir_index_value(f, b_node);
    int64_t product;
    *by = ir_index_value(f, by_node);
    if (*by < 1 || b < 1 || opjit_ir_interval(f, p).lo < 0 || !checked_muli(*by, b, &product))
        return 0;
    return ir_make2(f, IR_IMOD, IR_INDEX, p, opjit_ir_index(f, product));
}

/* less + strict <= more where one of them is idiv(x, by): the same of x, which other indices are made of. */
static void push_undivided(bounds *b, ir_ref less, ir_ref more, int64_t strict)
{
    ir_func *f = b->v->f;
    int64_t by, above;
    const ir_ref low = undivided(f, less, &by);
    if (low != 0 && checked_muli(strict - 1, by, &above) && checked_addi(above, 1, &above))
        push_less(b, low, ir_make2(f, IR_IMUL, IR_INDEX, more, opjit_ir_index(f, by)), above);
    const ir_ref high = undivided(f, more, &by);
    if (high != 0 && checked_muli(strict, by, &above))
        push_less(b, ir_make2(f, IR_IMUL, IR_INDEX, less, opjit_ir_index(f, by)), high, above);
}

/* less + strict <= more.  What is below the smaller of two is below both, what is below a clamp is below its high end,
 * and what is below a number that is rounded down is below that number. */
static void push_less(bounds *b, ir_ref less, ir_ref more, int64_t strict)
{
    const ir_func *f = b->v->f;
    guards *k = &b->known;
    const ir_ref limit = ir_let_value(f, more), low = unrounded(f, less, IR_UP), high = unrounded(f, more, IR_DOWN);
    if (push(b, more, less, strict) && (is_choice(f, less) || is_choice(f, more)) && k->choice_count < GUARDS)
        k->choices[k->choice_count++] = (comparison){ .less = less, .more = more, .strict = strict };
    if (low != less || high != more)
        push_less(b, low, high, strict);
    const int64_t by = choice_is_divided_by(f, limit);
    int64_t product;
    if (by > 0 && checked_muli(strict, by, &product)) /* x <= floor(y / k) where x * k <= y */
        push_less(b, ir_make2(b->v->f, IR_IMUL, IR_INDEX, less, opjit_ir_index(b->v->f, by)), ir_operand(f, limit, 0),
                  product);
    for (uint32_t i = 0; i < 2 && ir_at(f, limit)->op == IR_IMIN; i++)
        push_less(b, less, ir_operand(f, limit, i), strict);
    if (ir_at(f, limit)->op == IR_CLAMP)
        push_less(b, less, ir_operand(f, limit, 2), strict);
    push_undivided(b, less, more, strict);
}

bool opjit_ir_guards_learn(bounds *b)
{
    enum { ROUNDS = 3 }; /* what one comparison says may be what another one needs */
    guards *k = &b->known;
    const uint32_t before = k->changes;
    b->sums = IR_SUMS;
    for (uint32_t round = 0; round < ROUNDS && k->learned != k->changes; round++) {
        k->learned = k->changes;
        for (uint32_t i = 0; i < k->choice_count; i++) { /* also those that are found here */
            comparison *c = &k->choices[i];
            c->below = learn_below(b, c->less, c->more, c->strict, c->below);
            c->above = learn_above(b, c->less, c->more, c->strict, c->above);
        }
    }
    return k->changes != before;
}

/* The condition's value, through lets. */
static ir_ref condition_of(const ir_func *f, ir_ref condition)
{
    const ir_node *node = ir_at(f, condition);
    return node->op == IR_GET && ir_at(f, node->ref)->op == IR_LET ? condition_of(f, ir_operand(f, node->ref, 0))
                                                                   : condition;
}

static bool is_less(const ir_func *f, ir_ref condition)
{
    const ir_node *node = ir_at(f, condition);
    return (node->op == IR_LT || node->op == IR_LE) && ir_at(f, ir_operand(f, condition, 0))->type == IR_INDEX;
}

/* Whether one comparison implies the other: both compare the same value with a limit. */
static bool implies(const ir_func *f, ir_ref a, ir_ref b)
{
    return is_less(f, a) && is_less(f, b) && opjit_ir_same(f, ir_operand(f, a, 0), ir_operand(f, b, 0)) &&
           opjit_ir_proves_le(f, ir_operand(f, a, 1), ir_operand(f, b, 1),
                              (ir_at(f, a)->op == IR_LT) - (ir_at(f, b)->op == IR_LT));
}

/* Adds what a condition that is `truth` says about indices. */
void opjit_ir_guards_assume(bounds *b, ir_ref condition, bool truth)
{
    const ir_func *f = b->v->f;
    condition = condition_of(f, condition);
    const ir_node node = *ir_at(f, condition);
    if (node.count == 0)
        return;
    const ir_ref x = ir_operand(f, condition, 0), y = node.count > 1 ? ir_operand(f, condition, 1) : 0;
    const bool index = ir_at(f, x)->type == IR_INDEX;
    if (node.op == IR_NOT) {
        opjit_ir_guards_assume(b, x, !truth);
    } else if (node.op == IR_AND || node.op == IR_OR) {
        if (truth == (node.op == IR_AND)) {
            opjit_ir_guards_assume(b, x, truth);
            opjit_ir_guards_assume(b, y, truth);
        }
    } else if (node.op == IR_XOR && truth) { /* exactly one of them holds */
        const ir_ref p = condition_of(f, x), q = condition_of(f, y);
        if (implies(f, p, q) || implies(f, q, p)) {
            const bool first = implies(f, p, q);
            opjit_ir_guards_assume(b, first ? q : p, true);
            opjit_ir_guards_assume(b, first ? p : q, false);
        }
    } else if (is_less(f, condition)) {
        const int64_t strict = (node.op == IR_LT) == truth;
        push_less(b, truth ? x : y, truth ? y : x, strict);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE) && truth == (node.op == IR_EQ)) {
        push(b, y, x, 0);
        push(b, x, y, 0);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE)) {
        push_different(b, x, y);
    }
}

/* Adds the bounds of enclosing loops that are selects, and that loops which may be empty are not; the prover handles
 * the others. */
void opjit_ir_guards_assume_loops(bounds *b)
{
    const verifier *v = b->v;
    for (uint32_t i = 0; i < v->open_count; i++) {
        const ir_ref loop = v->open[i], var = ir_at(v->f, loop)->ref;
        const ir_ref lo = ir_operand(v->f, loop, 0), hi = ir_operand(v->f, loop, 1);
        if (is_choice(v->f, unrounded(v->f, hi, IR_DOWN)) || choice_is_divided_by(v->f, hi) > 0)
            push_less(b, var, hi, 1);
        if (is_choice(v->f, unrounded(v->f, lo, IR_UP)))
            push_less(b, lo, var, 0);
        if (ir_at(v->f, loop)->op == IR_FOR && opjit_ir_gap(v->f, lo, hi).lo < 1)
            push(b, hi, lo, 1);
    }
}

