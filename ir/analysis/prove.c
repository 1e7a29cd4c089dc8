/* SPDX-License-Identifier: Apache-2.0 */
/* prove.c - proves a <= b + slack, and decides conditions.
 *
 * a - b - slack is a sum whose equal terms cancel.  It is at most 0 if its interval says so, or if it still is after
 * a term is replaced by a bound of it: an end of its loop, or an operand of a clamp, choice or rounding. */
#include "ir/analysis/proof.h"

enum { DEPTH = 6 /* terms replaced one after the other */ };

/* A sum that could not be proven with so much budget; terms are replaced in any order, so most sums come again. */
typedef struct failure {
    uint64_t hash; /* 0: none */
    uint32_t spent;
} failure;

typedef struct proof {
    interval_walk *w;
    uint32_t budget;
    bool has_failed;
    failure failed[2 * IR_SUMS]; /* by hash; unset until has_failed: most proofs need one sum */
} proof;

static uint64_t hash_of(const ir_affine *s, uint32_t depth)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->count; i++) /* the same in any order */
        sum += opjit_ir_hash(s->atoms[i], (uint64_t)s->factors[i]);
    return opjit_ir_hash(opjit_ir_hash(sum, (uint64_t)s->constant), depth) | 1;
}

static failure *failure_of(proof *p, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 32) % (2 * IR_SUMS);
    if (!p->has_failed)
        memset(p->failed, 0, sizeof p->failed);
    p->has_failed = true;
    while (p->failed[i].hash != 0 && p->failed[i].hash != hash)
        i = (i + 1) % (2 * IR_SUMS);
    return &p->failed[i];
}

/* The ends by themselves: as a pair, each addition would wait until the one before it is in memory. */
static ir_interval sum_interval(interval_walk *w, const ir_affine *s)
{
    int64_t lo = s->constant, hi = s->constant;
    for (uint32_t i = 0; i < s->count; i++) {
        const int64_t factor = s->factors[i];
        const ir_interval x = opjit_ir_walk_interval(w, s->atoms[i]);
        if (interval_is_empty(x))
            return x;
        lo = saturating_add(lo, saturating_mul(factor < 0 ? x.hi : x.lo, factor));
        hi = saturating_add(hi, saturating_mul(factor < 0 ? x.lo : x.hi, factor));
    }
    return (ir_interval){ lo, hi };
}

static bool prove(proof *p, const ir_affine *s, uint32_t depth);

/* s with term i replaced by factor * (by + plus). */
static bool prove_with(proof *p, const ir_affine *s, uint32_t i, int64_t factor, ir_ref by, int64_t plus,
                       uint32_t depth)
{
    ir_affine changed = *s;
    int64_t product;
    opjit_ir_affine_remove(&changed, i);
    return opjit_ir_affine_add_values(p->w->f, &changed, by, factor) && checked_muli(plus, factor, &product) &&
           checked_addi(changed.constant, product, &changed.constant) && prove(p, &changed, depth - 1);
}

static int64_t only_multiple(interval_walk *w, ir_ref r)
{
    const ir_func *f = w->f;
    if (ir_at(f, r)->op != IR_IMOD || !ir_is_index_const(f, ir_operand(f, r, 1)))
        return -1;
    const int64_t by = ir_index_value(f, ir_operand(f, r, 1));
    const ir_interval x = opjit_ir_walk_interval(w, ir_operand(f, r, 0));
    return by < 1 || x.lo < 0 || interval_is_empty(x) || x.lo / by != x.hi / by ? -1 : x.lo / by * by;
}

int64_t opjit_ir_only_multiple(const ir_func *f, ir_ref r)
{
    interval_walk w;
    interval_walk_begin(&w, f);
    return only_multiple(&w, r);
}

/* Replaces term i by an expression that is no smaller (factor > 0) or no larger (factor < 0). */
static bool prove_by_term(proof *p, const ir_affine *s, uint32_t i, uint32_t depth)
{
    const ir_func *f = p->w->f;
    const ir_ref term = s->atoms[i];
    const ir_node *node = ir_at(f, term), *owner = ir_at(f, node->ref);
    const int64_t factor = s->factors[i];
    const bool up = factor > 0;
#define WITH(operand, plus) prove_with(p, s, i, factor, ir_operand(f, term, operand), plus, depth)
    switch ((ir_op)node->op) {
    case IR_VAR:
        if (owner->op != IR_FOR && owner->op != IR_STAGE)
            return false;
        return prove_with(p, s, i, factor, ir_operand(f, node->ref, up), up ? -1 : 0, depth);
    case IR_IMIN: return up ? WITH(0, 0) || WITH(1, 0) : WITH(0, 0) && WITH(1, 0);
    case IR_IMAX: return up ? WITH(0, 0) && WITH(1, 0) : WITH(0, 0) || WITH(1, 0);
    case IR_CLAMP: return up ? WITH(2, 0) || (WITH(0, 0) && WITH(1, 0)) : WITH(2, 0) && (WITH(1, 0) || WITH(0, 0));
    case IR_DOWN: return WITH(0, up ? 0 : 1 - ir_index_value(f, ir_operand(f, term, 1)));
    case IR_UP: return WITH(0, up ? ir_index_value(f, ir_operand(f, term, 1)) - 1 : 0);
    case IR_IDIV: { /* k * idiv(x, k) is between x - k + 1 and x */
        const int64_t k = ir_index_value(f, ir_operand(f, term, 1));
        return k > 0 && factor % k == 0 &&
               prove_with(p, s, i, factor / k, ir_operand(f, term, 0), up ? 0 : 1 - k, depth);
    }
    case IR_IMOD: {
        const int64_t multiple = only_multiple(p->w, term);
        return multiple >= 0 && WITH(0, -multiple);
    }
    default: return false;
    }
#undef WITH
}

static bool prove(proof *p, const ir_affine *s, uint32_t depth)
{
    const ir_interval known = sum_interval(p->w, s);
    if (known.hi <= 0 || interval_is_empty(known))
        return true;
    if (depth == 0 || p->budget == 0)
        return false;
    if (known.lo > 0) { /* replacing terms only makes it larger */
        p->budget--;
        return false;
    }
    if (depth == DEPTH && opjit_ir_is_above(p->w->f, s))
        return false;
    const uint64_t hash = hash_of(s, depth);
    const failure *known_failure = failure_of(p, hash);
    if (known_failure->hash != 0) {
        p->budget -= known_failure->spent < p->budget ? known_failure->spent : p->budget;
        return false;
    }
    const uint32_t budget = p->budget--;
    for (uint32_t i = s->count; i-- > 0;)
        if (prove_by_term(p, s, i, depth))
            return true;
    *failure_of(p, hash) = (failure){ hash, budget - p->budget };
    return false;
}

static bool walk_proves_within(interval_walk *w, ir_ref a, ir_ref b, int64_t slack, uint32_t sums)
{
    ir_affine s = { 0 };
    if (!opjit_ir_affine_add_values(w->f, &s, a, 1) || !opjit_ir_affine_add_values(w->f, &s, b, -1) ||
        slack == INT64_MIN || !checked_subi(s.constant, slack, &s.constant))
        return false;
    proof p;
    p.w = w;
    p.budget = sums;
    p.has_failed = false;
    return prove(&p, &s, DEPTH);
}

static bool walk_proves_le(interval_walk *w, ir_ref a, ir_ref b, int64_t slack)
{
    return walk_proves_within(w, a, b, slack, IR_SUMS);
}

bool opjit_ir_proves_within(const ir_func *f, ir_ref a, ir_ref b, int64_t slack, uint32_t sums)
{
    interval_walk w;
    interval_walk_begin(&w, f);
    return (slack >= 0 && opjit_ir_ordered(f, a, b)) || walk_proves_within(&w, a, b, slack, sums);
}

bool opjit_ir_proves_le(const ir_func *f, ir_ref a, ir_ref b, int64_t slack)
{
    return opjit_ir_proves_within(f, a, b, slack, IR_SUMS);
}

bool opjit_ir_sum_is_at_most_0(const ir_func *f, const ir_affine *sum)
{
    interval_walk w;
    interval_walk_begin(&w, f);
    const ir_interval known = sum_interval(&w, sum);
    return known.hi <= 0 || interval_is_empty(known);
}

/* --- decide ------------------------------------------------------------------------------------------------------- */

static int decide_comparison(interval_walk *w, ir_op op, ir_ref a, ir_ref b)
{
    switch (op) {
    case IR_LT: return walk_proves_le(w, a, b, -1) ? 1 : walk_proves_le(w, b, a, 0) ? 0 : -1;
    case IR_LE: return walk_proves_le(w, a, b, 0) ? 1 : walk_proves_le(w, b, a, -1) ? 0 : -1;
    default: break;
    }
    const bool different = walk_proves_le(w, a, b, -1) || walk_proves_le(w, b, a, -1);
    const bool equal = !different && walk_proves_le(w, a, b, 0) && walk_proves_le(w, b, a, 0);
    return !different && !equal ? -1 : equal == (op == IR_EQ);
}

static int decide_logic(ir_op op, int a, int b)
{
    switch (op) {
    case IR_AND: return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1;
    case IR_OR: return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : -1;
    default: return a < 0 || b < 0 ? -1 : a ^ b;
    }
}

int opjit_ir_walk_decide(interval_walk *w, ir_ref expr)
{
    const ir_func *f = w->f;
    const ir_node *node = ir_at(f, expr);
    if (node->type != IR_BOOL || w->budget == 0)
        return -1;
    w->budget--;
    switch ((ir_op)node->op) {
    case IR_CONST: return node->imm != 0;
    case IR_GET: return ir_at(f, node->ref)->op == IR_LET ? opjit_ir_walk_decide(w, ir_operand(f, node->ref, 0)) : -1;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: {
        const ir_ref a = ir_operand(f, expr, 0), b = ir_operand(f, expr, 1);
        return ir_at(f, a)->type == IR_INDEX ? decide_comparison(w, (ir_op)node->op, a, b) : -1;
    }
    case IR_AND:
    case IR_OR:
    case IR_XOR:
        return decide_logic((ir_op)node->op, opjit_ir_walk_decide(w, ir_operand(f, expr, 0)),
                            opjit_ir_walk_decide(w, ir_operand(f, expr, 1)));
    case IR_NOT: {
        const int inner = opjit_ir_walk_decide(w, ir_operand(f, expr, 0));
        return inner < 0 ? -1 : !inner;
    }
    case IR_SELECT: {
        const int choice = opjit_ir_walk_decide(w, ir_operand(f, expr, 0));
        if (choice >= 0)
            return opjit_ir_walk_decide(w, ir_operand(f, expr, choice ? 1 : 2));
        const int a = opjit_ir_walk_decide(w, ir_operand(f, expr, 1));
        return a >= 0 && a == opjit_ir_walk_decide(w, ir_operand(f, expr, 2)) ? a : -1;
    }
    default: return -1;
    }
}

int opjit_ir_decide(const ir_func *f, ir_ref bool_expr)
{
    interval_walk w;
    interval_walk_begin(&w, f);
    return opjit_ir_walk_decide(&w, bool_expr);
}
