/* SPDX-License-Identifier: Apache-2.0 */
/* ir_verify_bounds.c - V8: each coordinate of a load, under the guards of the selects around it, and of a store is
 * inside its tensor.  By proof, not by running: what can't be proven is an error. */
#include "ir/ir_verify.h"

enum { GUARDS = 16, STEPS = 400 /* of the proof for one coordinate */ };

/* Comparisons known to hold where the position is evaluated: left + slack <= right. */
typedef struct guard {
    ir_ref left, right;
    int64_t slack;
} guard;

typedef struct bounds {
    verifier *v;
    guard guards[GUARDS];
    uint32_t count, steps;
    uint32_t base;    /* guards that loops give */
    ir_ref seen[256]; /* nodes checked without the guard of a select: they hold under every one */
} bounds;

static void push(bounds *b, ir_ref left, ir_ref right, int64_t slack)
{
    if (b->count < GUARDS)
        b->guards[b->count++] = (guard){ left, right, slack };
}

/* Enters what a condition that is `truth` says about indices. */
static void assume(bounds *b, ir_ref condition, bool truth)
{
    const ir_func *f = b->v->f;
    const ir_node node = *ir_at(f, condition);
    if (node.op == IR_GET) {
        if (ir_at(f, node.ref)->op == IR_LET)
            assume(b, ir_operand(f, node.ref, 0), truth);
        return;
    }
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
    } else if (index && (node.op == IR_LT || node.op == IR_LE)) {
        const int64_t strict = (node.op == IR_LT) == truth;
        if (truth)
            push(b, x, y, strict);
        else
            push(b, y, x, strict);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE) && truth == (node.op == IR_EQ)) {
        push(b, x, y, 0);
        push(b, y, x, 0);
    }
}

static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth);

/* A choice or quotient, and the constant that is added to it. */
static ir_ref without_constant(const ir_func *f, ir_ref r, int64_t *constant)
{
    *constant = 0;
    if (ir_at(f, r)->op != IR_IADD || !ir_is_index_const(f, ir_operand(f, r, 1)))
        return r;
    *constant = ir_index_value(f, ir_operand(f, r, 1));
    return ir_operand(f, r, 0);
}

/* a <= r + slack by what r is made of: not above both of imin, not above one of imax. */
static bool below_parts(bounds *b, ir_ref a, ir_ref r, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    int64_t constant, product;
    r = without_constant(f, r, &constant);
    if (!checked_addi(slack, constant, &slack))
        return false;
    switch ((ir_op)ir_at(f, r)->op) {
    case IR_IMIN: return holds(b, a, ir_operand(f, r, 0), slack, depth) && holds(b, a, ir_operand(f, r, 1), slack, depth);
    case IR_IMAX: return holds(b, a, ir_operand(f, r, 0), slack, depth) || holds(b, a, ir_operand(f, r, 1), slack, depth);
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

/* r <= c + slack by what r is made of. */
static bool parts_below(bounds *b, ir_ref r, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    int64_t constant, product;
    r = without_constant(f, r, &constant);
    if (!checked_subi(slack, constant, &slack))
        return false;
    switch ((ir_op)ir_at(f, r)->op) {
    case IR_IMIN: return holds(b, ir_operand(f, r, 0), c, slack, depth) || holds(b, ir_operand(f, r, 1), c, slack, depth);
    case IR_IMAX: return holds(b, ir_operand(f, r, 0), c, slack, depth) && holds(b, ir_operand(f, r, 1), c, slack, depth);
    case IR_CLAMP:
        return holds(b, ir_operand(f, r, 2), c, slack, depth) || (holds(b, ir_operand(f, r, 1), c, slack, depth) &&
                                                   holds(b, ir_operand(f, r, 0), c, slack, depth));
    case IR_IDIV: /* floor(y / k) <= m where y <= m * k + k - 1 */
        return ir_is_index_const(f, c) && checked_addi(ir_index_value(f, c), slack, &constant) &&
               checked_addi(constant, 1, &constant) && checked_muli(constant, ir_index_value(f, ir_operand(f, r, 1)), &product) &&
               holds(b, ir_operand(f, r, 0), opjit_ir_index(f, product), -1, depth);
    default: return false;
    }
}

/* a <= c + slack, by what they are made of, or with the help of one or two guards.  A guard adds
 * right - left - slack >= 0 to the left side. */
static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    if (b->steps == 0)
        return false;
    b->steps--;
    if (opjit_ir_proves_le(f, a, c, slack) || below_parts(b, a, c, slack, depth) || parts_below(b, a, c, slack, depth))
        return true;
    for (uint32_t i = 0; depth > 0 && i < b->count; i++) {
        const guard *g = &b->guards[i];
        const ir_ref more = ir_expr2(f, IR_IADD, IR_INDEX, a, ir_expr2(f, IR_ISUB, IR_INDEX, g->right, g->left));
        int64_t changed;
        if (!f->failed && checked_addi(slack, g->slack, &changed) && holds(b, more, c, changed, depth - 1))
            return true;
    }
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
    if (node.count == 0 || b->seen[expr % 256] == expr)
        return OPJIT_OK;
    if (node.op == IR_LOAD)
        TRY(check_coordinates(b, expr, 0));
    if (node.op == IR_SELECT) {
        const ir_ref condition = ir_operand(b->v->f, expr, 0);
        const int decided = opjit_ir_decide(b->v->f, condition);
        const uint32_t count = b->count;
        TRY(check_loads(b, condition));
        for (uint32_t arm = 1; arm <= 2; arm++) {
            if (decided == (arm == 1 ? 0 : 1))
                continue; /* never evaluated */
            assume(b, condition, arm == 1);
            TRY(check_loads(b, ir_operand(b->v->f, expr, arm)));
            b->count = count;
        }
    } else {
        for (uint32_t i = 0; i < node.count; i++)
            TRY(check_loads(b, ir_operand(b->v->f, expr, i)));
    }
    if (b->count == b->base)
        b->seen[expr % 256] = expr;
    return OPJIT_OK;
}

/* A boxed yield stores offset + i * step for i below the size. */
static opjit_status check_box(bounds *b, ir_ref yield)
{
    verifier *v = b->v;
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

/* What a bound is, behind its let. */
static ir_ref bound_value(const ir_func *f, ir_ref bound)
{
    const bool let = ir_at(f, bound)->op == IR_GET && ir_at(f, ir_at(f, bound)->ref)->op == IR_LET;
    return let ? ir_operand(f, ir_at(f, bound)->ref, 0) : bound;
}

/* In a loop that ends at max(p, q) with q not above its begin the variable is below p, and in one that begins at
 * min(p, q) with q not below its end it is not below p: where q decides there are no iterations.  clamp(p, l, h) is
 * such a max and such a min. */
static void assume_loop(bounds *b, ir_ref loop)
{
    ir_func *f = b->v->f;
    const ir_ref var = ir_at(f, loop)->ref, lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    const ir_ref low = bound_value(f, lo), high = bound_value(f, hi);
    const ir_op at_low = (ir_op)ir_at(f, low)->op, at_high = (ir_op)ir_at(f, high)->op;
    if (at_high == IR_CLAMP && opjit_ir_proves_le(f, ir_operand(f, high, 1), lo, 0))
        push(b, var, ir_operand(f, high, 0), 1);
    if (at_low == IR_CLAMP && opjit_ir_proves_le(f, hi, ir_operand(f, low, 2), 0))
        push(b, ir_operand(f, low, 0), var, 0);
    for (uint32_t i = 0; i < 2; i++) {
        if (at_high == IR_IMAX && opjit_ir_proves_le(f, ir_operand(f, high, i), lo, 0))
            push(b, var, ir_operand(f, high, 1 - i), 1);
        if (at_low == IR_IMIN && opjit_ir_proves_le(f, hi, ir_operand(f, low, i), 0))
            push(b, ir_operand(f, low, 1 - i), var, 0);
    }
}

opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement)
{
    bounds b = { .v = v };
    for (uint32_t i = 0; i < v->open_count; i++)
        assume_loop(&b, v->open[i]);
    b.base = b.count;
    const ir_node node = *ir_at(v->f, statement);
    for (uint32_t i = 0; i < node.count; i++)
        TRY(check_loads(&b, ir_operand(v->f, statement, i)));
    if (node.op == IR_STORE)
        TRY(check_coordinates(&b, statement, 1));
    return node.op == IR_YIELD && node.imm ? check_box(&b, statement) : OPJIT_OK;
}
