/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - a <= b by the shape of bounds: chains of clamp, imin and imax through lets, as split and schedule
 * make them. Lets are compared as names before they are looked into, so that a long chain of bounds is as easy as a
 * short one; what needs sums to cancel is opjit_ir_proves_le's work. */
#include "ir/passes/pass.h"

enum { ORDER_DEPTH = 12 };

typedef struct order {
    const ir_func *f;
    uint32_t budget;
} order;

/* What a let that expr reads stands for; else expr. */
static ir_ref definition(const ir_func *f, ir_ref expr)
{
    const ir_node *n = ir_at(f, expr);
    return n->op == IR_GET && ir_at(f, n->ref)->op == IR_LET ? ir_operand(f, n->ref, 0) : expr;
}

static bool ordered(order *o, ir_ref a, ir_ref b, uint32_t depth);

/* Whether whatever is at least a smaller bound of b is: clamp gives its limit, or one of the others and less than
 * it. */
static bool below(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    const ir_func *f = o->f;
    const ir_ref value = definition(f, b);
    const ir_node *n = ir_at(f, value);
#define LE(i) ordered(o, a, ir_operand(f, value, i), depth - 1)
    switch ((ir_op)n->op) {
    case IR_CLAMP: return LE(2) && (LE(1) || LE(0));
    case IR_IMIN:  return LE(0) && LE(1);
    case IR_IMAX:  return LE(0) || LE(1);
    case IR_UP:    return LE(0);
    default:       return false;
    }
#undef LE
}

static bool above(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    const ir_func *f = o->f;
    const ir_ref value = definition(f, a);
    const ir_node *n = ir_at(f, value);
#define LE(i) ordered(o, ir_operand(f, value, i), b, depth - 1)
    switch ((ir_op)n->op) {
    case IR_CLAMP: return LE(2) || (LE(1) && LE(0));
    case IR_IMIN:  return LE(0) || LE(1);
    case IR_IMAX:  return LE(0) && LE(1);
    case IR_DOWN:  return LE(0);
    default:       return false;
    }
#undef LE
}

static bool ordered(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    if (opjit_ir_same(o->f, a, b))
        return true;
    const ir_interval x = opjit_ir_interval(o->f, a), y = opjit_ir_interval(o->f, b);
    int64_t distance;
    if ((x.lo <= x.hi && y.lo <= y.hi && x.hi <= y.lo) ||
        (opjit_ir_distance(o->f, definition(o->f, a), definition(o->f, b), &distance) && distance <= 0))
        return true;
    if (depth == 0 || o->budget == 0)
        return false;
    o->budget--;
    return below(o, a, b, depth) || above(o, a, b, depth);
}

bool opjit_ir_ordered(const ir_func *f, ir_ref a, ir_ref b)
{
    order o = { .f = f, .budget = 256 };
    return ordered(&o, a, b, ORDER_DEPTH);
}
