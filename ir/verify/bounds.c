/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - V8: each coordinate of a load, under the guards of the selects around it, and of a store is inside its
 * tensor.  Takes a statement; proves this, or reports an error: what can't be proven is refused. */
#include "ir/verify/verifier.h"

enum { GUARDS = 24, STEPS = 400 /* of the proof for one coordinate */ };

/* A fact that holds where the position is evaluated: expr is at least `least`, or expr is not 0.  var: a variable in
 * expr; divisor: that of a quotient in it, 1: none. */
typedef struct guard {
    ir_ref expr, var;
    int64_t least, divisor;
} guard;

typedef struct comparison { /* less + strict <= more */
    ir_ref less, more;
    int64_t strict;
} comparison;

typedef struct guards {
    guard at_least[GUARDS];
    ir_ref not_zero[GUARDS];
    comparison choices[GUARDS]; /* with a value that is selected */
    uint32_t count, zero_count, choice_count, changes;
} guards;

typedef struct bounds {
    verifier *v;
    guards known;
    uint32_t steps;
    uint32_t base; /* guards that loops changed */
} bounds;

/* a - b where that is a constant; lets are what they stand for. */
static bool distance_of(const ir_func *f, ir_ref a, ir_ref b, int64_t *out)
{
    ir_affine form = { 0 };
    if (!opjit_ir_affine_add_values(f, &form, a, 1) || !opjit_ir_affine_add_values(f, &form, b, -1))
        return false;
    *out = form.constant;
    return form.count == 0;
}

/* If expr is at least a value and differs from it, it is at least one more. */
static void tighten(const ir_func *f, const guards *k, guard *g)
{
    for (uint32_t i = 0; i < k->zero_count; i++) {
        int64_t distance;
        if (distance_of(f, g->expr, k->not_zero[i], &distance) && distance == g->least && distance < INT64_MAX) {
            g->least++;
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
static int64_t divisor_of(const ir_func *f, ir_ref expr)
{
    ir_affine sum = { 0 };
    if (!opjit_ir_affine_add_values(f, &sum, expr, 1))
        return 1;
    for (uint32_t i = 0; i < sum.count; i++) {
        const bool quotient = ir_at(f, sum.atoms[i])->op == IR_IDIV;
        const int64_t by = quotient ? ir_index_value(f, ir_operand(f, sum.atoms[i], 1)) : 1;
        if (by > 1 && sum.factors[i] % by != 0)
            return by;
    }
    return 1;
}

/* Adds expr >= least; merges guards that differ by a constant. */
static void push(bounds *b, ir_ref expr, int64_t least)
{
    const ir_func *f = b->v->f;
    guards *k = &b->known;
    uint32_t i = 0;
    int64_t distance = 0;
    if (f->failed)
        return;
    while (i < k->count && !distance_of(f, k->at_least[i].expr, expr, &distance))
        i++;
    if (i == GUARDS || (i < k->count && !checked_addi(least, distance, &least)))
        return;
    if (i == k->count)
        k->at_least[k->count++] = (guard){ expr, variable_of(f, expr), least, divisor_of(f, expr) };
    else if (k->at_least[i].least < least)
        k->at_least[i].least = least;
    tighten(f, k, &k->at_least[i]);
    k->changes++;
}

static ir_ref difference(bounds *b, ir_ref x, ir_ref y)
{
    return ir_expr2(b->v->f, IR_ISUB, IR_INDEX, x, y);
}

/* x != y: x is above y if it is known not to be below. */
static void push_different(bounds *b, ir_ref x, ir_ref y)
{
    guards *k = &b->known;
    for (uint32_t side = 0; side < 2; side++) {
        const ir_ref from = side ? y : x, less = side ? x : y, expr = difference(b, from, less);
        if (b->v->f->failed || k->zero_count == GUARDS)
            return;
        k->not_zero[k->zero_count++] = expr;
        k->changes++;
        if (opjit_ir_proves_le(b->v->f, less, from, 0))
            push(b, expr, 1);
        for (uint32_t i = 0; i < k->count; i++)
            tighten(b->v->f, k, &k->at_least[i]);
    }
}

static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth);

static bool known_le(bounds *b, ir_ref x, ir_ref y, int64_t slack)
{
    b->steps = STEPS;
    return holds(b, x, y, slack, 1);
}

/* Whether a comparison with the limit can become one with an operand of the limit. */
static bool is_choice(const ir_func *f, ir_ref limit)
{
    const ir_op op = (ir_op)ir_at(f, ir_let_value(f, limit))->op;
    return op == IR_CLAMP || op == IR_IMAX || op == IR_IMIN;
}

/* Whether x + strict <= q is impossible, or says no more than it does with p in place of q. */
static bool says_no_more(bounds *b, ir_ref x, ir_ref q, ir_ref p, int64_t strict, uint32_t depth)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, q);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    if (opjit_ir_proves_le(f, q, p, 0) || known_le(b, q, x, strict - 1))
        return true;
    return depth > 0 && (op == IR_CLAMP || op == IR_IMAX) &&
           says_no_more(b, x, ir_operand(f, value, 0), p, strict, depth - 1) &&
           says_no_more(b, x, ir_operand(f, value, 1), p, strict, depth - 1);
}

/* x + strict <= limit.  If x is below max(p, q) and not below q, it is below p; clamp is such a max. */
static void learn_below(bounds *b, ir_ref x, ir_ref limit, int64_t strict)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, limit);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    for (uint32_t i = 0; i < 2 && (op == IR_CLAMP || op == IR_IMAX); i++)
        if (says_no_more(b, x, ir_operand(f, value, 1 - i), ir_operand(f, value, i), strict, 3))
            push(b, difference(b, ir_operand(f, value, i), x), strict);
}

/* limit + strict <= x.  If x is not below min(p, q) but below q, it is not below p; likewise for clamp's max. */
static void learn_above(bounds *b, ir_ref limit, ir_ref x, int64_t strict)
{
    const ir_func *f = b->v->f;
    const ir_ref value = ir_let_value(f, limit);
    const ir_op op = (ir_op)ir_at(f, value)->op;
    if (op == IR_CLAMP && known_le(b, x, ir_operand(f, value, 2), strict - 1)) {
        push(b, difference(b, x, ir_operand(f, value, 0)), strict);
        push(b, difference(b, x, ir_operand(f, value, 1)), strict);
    }
    for (uint32_t i = 0; i < 2 && op == IR_IMIN; i++)
        if (known_le(b, x, ir_operand(f, value, 1 - i), strict - 1))
            push(b, difference(b, x, ir_operand(f, value, i)), strict);
}

/* Draws conclusions from comparisons now that others are known. */
static void learn(bounds *b)
{
    for (uint32_t i = 0; i < b->known.choice_count; i++) {
        const comparison c = b->known.choices[i];
        learn_below(b, c.less, c.more, c.strict);
        learn_above(b, c.less, c.more, c.strict);
    }
}

/* less + strict <= more */
static void push_less(bounds *b, ir_ref less, ir_ref more, int64_t strict)
{
    guards *k = &b->known;
    push(b, difference(b, more, less), strict);
    if ((is_choice(b->v->f, less) || is_choice(b->v->f, more)) && k->choice_count < GUARDS)
        k->choices[k->choice_count++] = (comparison){ less, more, strict };
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
static void assume(bounds *b, ir_ref condition, bool truth)
{
    const ir_func *f = b->v->f;
    condition = condition_of(f, condition);
    const ir_node node = *ir_at(f, condition);
    if (node.count == 0)
        return;
    const ir_ref x = ir_operand(f, condition, 0), y = node.count > 1 ? ir_operand(f, condition, 1) : 0;
    const bool index = ir_at(f, x)->type == IR_INDEX;
    if (node.op == IR_NOT) {
        assume(b, x, !truth);
    } else if (node.op == IR_AND || node.op == IR_OR) {
        if (truth == (node.op == IR_AND)) {
            assume(b, x, truth);
            assume(b, y, truth);
        }
    } else if (node.op == IR_XOR && truth) { /* exactly one of them holds */
        const ir_ref p = condition_of(f, x), q = condition_of(f, y);
        if (implies(f, p, q) || implies(f, q, p)) {
            const bool first = implies(f, p, q);
            assume(b, first ? q : p, true);
            assume(b, first ? p : q, false);
        }
    } else if (is_less(f, condition)) {
        const int64_t strict = (node.op == IR_LT) == truth;
        push_less(b, truth ? x : y, truth ? y : x, strict);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE) && truth == (node.op == IR_EQ)) {
        push(b, difference(b, y, x), 0);
        push(b, difference(b, x, y), 0);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE)) {
        push_different(b, x, y);
    }
}

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

/* How many times the guard must be added to a to cancel its variable in a - c. */
static int64_t times_of(const ir_func *f, const guard *g, ir_ref a, ir_ref c)
{
    int64_t own, left, right;
    if (g->var == 0 || !opjit_ir_factor(f, g->expr, g->var, &own) || !opjit_ir_factor(f, a, g->var, &left) ||
        !opjit_ir_factor(f, c, g->var, &right) || own == 0 || !checked_subi(right, left, &left) || own == INT64_MIN ||
        left == INT64_MIN || left % own != 0 || left / own < 1)
        return 1;
    return left / own;
}

/* a <= c + slack, with a multiple of the guard's expr - least >= 0 added to a. */
static bool holds_times(bounds *b, const guard *g, int64_t times, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    const ir_ref part = times == 1 ? g->expr : ir_expr2(f, IR_IMUL, IR_INDEX, g->expr, opjit_ir_index(f, times));
    const ir_ref more = ir_expr2(f, IR_IADD, IR_INDEX, a, part);
    int64_t changed;
    return !f->failed && checked_muli(g->least, times, &changed) && checked_addi(slack, changed, &changed) &&
           (depth > 0 ? holds(b, more, c, changed, depth) : opjit_ir_proves_le(f, more, c, changed));
}

/* Likewise; k * idiv(x, k) is near x, which a smaller multiple is not. */
static bool holds_with(bounds *b, const guard *g, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    const int64_t times = times_of(b->v->f, g, a, c);
    return holds_times(b, g, times, a, c, slack, depth) ||
           (g->divisor != 1 && times != g->divisor && holds_times(b, g, g->divisor, a, c, slack, depth));
}

/* a <= c + slack, by their operands, or with the help of one or two guards. */
static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    if (b->steps == 0)
        return false;
    b->steps--;
    if (opjit_ir_proves_le(f, a, c, slack))
        return true;
    for (uint32_t i = 0; depth > 0 && i < b->known.count; i++)
        if (holds_with(b, &b->known.at_least[i], a, c, slack, 0)) /* this nearly always succeeds if anything does */
            return true;
    if (below_parts(b, a, c, slack, depth) || parts_below(b, a, c, slack, depth))
        return true;
    for (uint32_t i = 0; depth > 1 && i < b->known.count; i++)
        if (holds_with(b, &b->known.at_least[i], a, c, slack, depth - 1))
            return true;
    return false;
}

static opjit_status check_coordinates(bounds *b, ir_ref node, uint32_t first)
{
    verifier *v = b->v;
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, node)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const ir_ref x = ir_operand(f, node, first + d);
        const ir_interval known = opjit_ir_interval(f, x);
        if (known.lo > known.hi || (known.lo >= 0 && known.hi < (int64_t)t.sizes[d]))
            continue;
        const ir_ref zero = opjit_ir_index(f, 0), last = opjit_ir_index(f, (int64_t)t.sizes[d] - 1);
        b->steps = STEPS;
        if (!holds(b, zero, x, 0, 2) || !holds(b, x, last, 0, 2))
            return opjit_ir_verify_fail(v, 8, node, "coordinate %u is in [%lld, %lld], size %llu", d,
                                        (long long)known.lo, (long long)known.hi, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

static opjit_status check_loads(bounds *b, ir_ref expr)
{
    const ir_node node = *ir_at(b->v->f, expr);
    if (!b->v->loads[expr] || b->v->walked[expr] == b->v->walk)
        return OPJIT_OK;
    if (node.op == IR_LOAD)
        TRY(check_coordinates(b, expr, 0));
    if (node.op == IR_SELECT) {
        const ir_ref condition = ir_operand(b->v->f, expr, 0);
        const int decided = opjit_ir_decide(b->v->f, condition);
        const guards known = b->known;
        TRY(check_loads(b, condition));
        for (uint32_t arm = 1; arm <= 2; arm++) {
            if (decided == (arm == 1 ? 0 : 1))
                continue; /* never evaluated */
            assume(b, condition, arm == 1);
            if (b->known.changes != known.changes)
                learn(b);
            TRY(check_loads(b, ir_operand(b->v->f, expr, arm)));
            b->known = known;
        }
    } else {
        for (uint32_t i = 0; i < node.count; i++)
            TRY(check_loads(b, ir_operand(b->v->f, expr, i)));
    }
    if (b->known.changes == b->base)
        b->v->walked[expr] = b->v->walk; /* proven without guards, so it holds under any */
    return OPJIT_OK;
}

/* A boxed yield stores offset + i * step for i below the size. */
static opjit_status check_box(verifier *v, ir_ref yield)
{
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, yield)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const uint32_t first = 1 + t.rank + 3 * d;
        const ir_interval offset = opjit_ir_interval(f, ir_operand(f, yield, first));
        int64_t reach, last;
        if (!checked_muli(ir_index_value(f, ir_operand(f, yield, first + 1)) - 1,
                          ir_index_value(f, ir_operand(f, yield, first + 2)), &reach) ||
            !checked_addi(reach, offset.hi, &last) || offset.lo < 0 || last >= (int64_t)t.sizes[d])
            return opjit_ir_verify_fail(v, 8, yield, "box %u leaves size %llu", d, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

/* Adds the bounds of enclosing loops that are selects, and that loops which may be empty are not; the prover handles
 * the others. */
static void assume_loops(bounds *b)
{
    const verifier *v = b->v;
    for (uint32_t i = 0; i < v->open_count; i++) {
        const ir_ref loop = v->open[i], var = ir_at(v->f, loop)->ref;
        const ir_ref lo = ir_operand(v->f, loop, 0), hi = ir_operand(v->f, loop, 1);
        if (is_choice(v->f, hi))
            push_less(b, var, hi, 1);
        if (is_choice(v->f, lo))
            push_less(b, lo, var, 0);
        if (ir_at(v->f, loop)->op == IR_FOR && opjit_ir_gap(v->f, lo, hi).lo < 1)
            push(b, difference(b, hi, lo), 1);
    }
    learn(b);
}

/* Whether intervals alone say that each load below expr is inside of its tensor. */
static bool is_plain(verifier *v, ir_ref expr)
{
    const ir_node *node = ir_at(v->f, expr);
    if (!v->loads[expr] || v->walked[expr] == v->walk)
        return true;
    v->walked[expr] = v->walk;
    bool plain = node->op != IR_LOAD || opjit_ir_in_bounds(v->f, expr);
    for (uint32_t i = 0; i < node->count && plain; i++)
        plain = is_plain(v, ir_operand(v->f, expr, i));
    return plain;
}

opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement)
{
    const ir_node node = *ir_at(v->f, statement);
    bool plain = node.op != IR_STORE || opjit_ir_in_bounds(v->f, statement);
    v->walk++;
    for (uint32_t i = 0; i < node.count && plain; i++)
        plain = is_plain(v, ir_operand(v->f, statement, i));
    if (plain) /* as nearly all are: what loops and selects say would not be asked */
        return node.op == IR_YIELD && node.imm ? check_box(v, statement) : OPJIT_OK;
    bounds b = { .v = v };
    v->walk++;
    assume_loops(&b);
    b.base = b.known.changes;
    for (uint32_t i = 0; i < node.count; i++)
        TRY(check_loads(&b, ir_operand(v->f, statement, i)));
    if (node.op == IR_STORE)
        TRY(check_coordinates(&b, statement, 1));
    return node.op == IR_YIELD && node.imm ? check_box(v, statement) : OPJIT_OK;
}
