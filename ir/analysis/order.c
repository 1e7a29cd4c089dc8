/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - which of two index expressions is less, and by how much: by cancelling equal terms, by intervals, and by
 * the shape of bounds: chains of clamp, imin and imax through lets, as split and schedule make them.  Lets are
 * compared as names before their values are, so a long chain of bounds costs no more than a short one.  Bounds in
 * which sums have to cancel on the way are left to prove.c. */
#include "ir/analysis/proof.h"

enum { ORDER_DEPTH = 12, ORDER_BUDGET = 256 };

/* --- gaps --------------------------------------------------------------------------------------------------------- */

ir_interval opjit_ir_gap(const ir_func *f, ir_ref a, ir_ref b)
{
    ir_interval gap;
    if (opjit_ir_distance(f, b, a, &gap.lo))
        return (ir_interval){ gap.lo, gap.lo };
    const ir_interval x = opjit_ir_interval(f, a), y = opjit_ir_interval(f, b);
    gap.lo = checked_subi(y.lo, x.hi, &gap.lo) ? gap.lo : INT64_MIN;
    gap.hi = checked_subi(y.hi, x.lo, &gap.hi) ? gap.hi : INT64_MAX;
    return gap;
}

bool opjit_ir_at_most(const ir_func *f, ir_ref a, ir_ref b)
{
    int64_t distance;
    if (opjit_ir_distance(f, a, b, &distance))
        return distance <= 0;
    const ir_interval x = opjit_ir_interval(f, a), y = opjit_ir_interval(f, b);
    return !interval_is_empty(x) && !interval_is_empty(y) && x.hi <= y.lo;
}

int64_t opjit_ir_longest(const ir_func *f, ir_ref lo, ir_ref hi)
{
    return opjit_ir_gap(f, lo, hi).hi;
}

bool opjit_ir_at_least(const ir_func *f, ir_ref lo, ir_ref hi, int64_t length)
{
    if (ir_at(f, hi)->op == IR_IMIN)
        return opjit_ir_at_least(f, lo, ir_operand(f, hi, 0), length) &&
               opjit_ir_at_least(f, lo, ir_operand(f, hi, 1), length);
    return opjit_ir_gap(f, lo, hi).lo >= length;
}

bool opjit_ir_runs_never(const ir_func *f, ir_ref lo, ir_ref hi)
{
    return opjit_ir_gap(f, lo, hi).hi <= 0;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

typedef struct order {
    const ir_func *f;
    uint32_t budget;
} order;

static bool ordered(order *o, ir_ref a, ir_ref b, uint32_t depth);

/* Whether whatever is at least a smaller bound of b is: clamp gives its limit, or one of the others and less than
 * it. */
static bool below(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    const ir_func *f = o->f;
    const ir_ref value = ir_let_value(f, b);
    const ir_node *n = ir_at(f, value);
#define LE(i) ordered(o, a, ir_operand(f, value, i), depth - 1)
    switch ((ir_op)n->op) {
    case IR_CLAMP: return LE(2) && (LE(1) || LE(0));
    case IR_IMIN: return LE(0) && LE(1);
    case IR_IMAX: return LE(0) || LE(1);
    case IR_UP: return LE(0);
    default: return false;
    }
#undef LE
}

static bool above(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    const ir_func *f = o->f;
    const ir_ref value = ir_let_value(f, a);
    const ir_node *n = ir_at(f, value);
#define LE(i) ordered(o, ir_operand(f, value, i), b, depth - 1)
    switch ((ir_op)n->op) {
    case IR_CLAMP: return LE(2) || (LE(1) && LE(0));
    case IR_IMIN: return LE(0) || LE(1);
    case IR_IMAX: return LE(0) && LE(1);
    case IR_DOWN: return LE(0);
    default: return false;
    }
#undef LE
}

static bool ordered(order *o, ir_ref a, ir_ref b, uint32_t depth)
{
    if (opjit_ir_same(o->f, a, b) || opjit_ir_at_most(o->f, ir_let_value(o->f, a), ir_let_value(o->f, b)))
        return true;
    if (depth == 0 || o->budget == 0)
        return false;
    o->budget--;
    return below(o, a, b, depth) || above(o, a, b, depth);
}

bool opjit_ir_ordered(const ir_func *f, ir_ref a, ir_ref b)
{
    order o = { .f = f, .budget = ORDER_BUDGET };
    return ordered(&o, a, b, ORDER_DEPTH);
}
