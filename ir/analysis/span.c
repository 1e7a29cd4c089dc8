/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - by how much one bound of a loop can exceed the other, at most: by intervals, and by the operands of
 * clamps, choices and roundings.  The answer is a number; that of order.c is yes or unknown. */
#include "ir/analysis/proof.h"

enum { SPAN_DEPTH = 4 }; /* how deep bounds are looked into; spans branch */

/* node <= base + slack (up), or node >= base + slack. */
static void reduce(const ir_func *f, bool up, ir_ref node, ir_ref *base, int64_t *slack)
{
    *slack = 0;
    for (*base = ir_let_value(f, node);; *base = ir_let_value(f, ir_operand(f, *base, 0))) {
        const ir_node *n = ir_at(f, *base);
        const ir_ref k_ref = n->count == 2 ? ir_operand(f, *base, 1) : 0;
        int64_t more;
        if (!k_ref || !ir_is_index_const(f, k_ref))
            return;
        const int64_t k = ir_index_value(f, k_ref);
        if (n->op == IR_IADD)
            more = k;
        else if (n->op == IR_ISUB && k != INT64_MIN)
            more = -k;
        else if (n->op == IR_UP || n->op == IR_DOWN)
            more = (n->op == IR_UP) != up ? 0 : up ? k - 1 : 1 - k;
        else
            return;
        if (!checked_addi(*slack, more, slack)) {
            *slack = 0;
            *base = node;
            return;
        }
    }
}

static bool span(const ir_func *f, ir_ref lo, ir_ref hi, uint32_t depth, int64_t *out);

/* The smaller of what is known so far (*known) and hi - lo for these two. */
static void consider(const ir_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    int64_t d;
    if (!span(f, lo, hi, depth, &d) || (*known && *out <= d))
        return;
    *known = true;
    *out = d;
}

/* The larger of hi - lo for two choices of (lo, hi), if both are known and it is better than *out. */
static void consider_both(const ir_func *f, const ir_ref lo[2], const ir_ref hi[2], uint32_t depth, bool *known,
                          int64_t *out)
{
    int64_t a, b;
    if (!span(f, lo[0], hi[0], depth, &a) || !span(f, lo[1], hi[1], depth, &b))
        return;
    a = a > b ? a : b;
    *out = *known && *out < a ? *out : a;
    *known = true;
}

/* Upper bounds of hi: imin is below both, imax and clamp(x, l, k) = imin(imax(x, l), k) are below the larger. */
static void open_hi(const ir_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    const ir_node *n = ir_at(f, hi);
    if (n->op == IR_IMIN) {
        consider(f, lo, ir_operand(f, hi, 0), depth, known, out);
        consider(f, lo, ir_operand(f, hi, 1), depth, known, out);
    } else if (n->op == IR_IMAX || n->op == IR_CLAMP) {
        consider_both(f, (ir_ref[]){ lo, lo }, (ir_ref[]){ ir_operand(f, hi, 0), ir_operand(f, hi, 1) }, depth, known,
                      out);
        if (n->op == IR_CLAMP)
            consider(f, lo, ir_operand(f, hi, 2), depth, known, out);
    }
}

/* Lower bounds of lo: imax is above both, imin above the smaller, clamp(x, l, k) above the smaller of k and any of
 * x, l. */
static void open_lo(const ir_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    const ir_node *n = ir_at(f, lo);
    if (n->op == IR_IMAX) {
        consider(f, ir_operand(f, lo, 0), hi, depth, known, out);
        consider(f, ir_operand(f, lo, 1), hi, depth, known, out);
    } else if (n->op == IR_IMIN) {
        consider_both(f, (ir_ref[]){ ir_operand(f, lo, 0), ir_operand(f, lo, 1) }, (ir_ref[]){ hi, hi }, depth, known,
                      out);
    } else if (n->op == IR_CLAMP) {
        for (uint32_t i = 0; i < 2; i++)
            consider_both(f, (ir_ref[]){ ir_operand(f, lo, i), ir_operand(f, lo, 2) }, (ir_ref[]){ hi, hi }, depth,
                          known, out);
    }
}

static bool span(const ir_func *f, ir_ref lo, ir_ref hi, uint32_t depth, int64_t *out)
{
    ir_ref base_lo, base_hi;
    int64_t slack_lo, slack_hi, d;
    bool known = false;
    lo = ir_let_value(f, lo);
    hi = ir_let_value(f, hi);
    const ir_interval a = opjit_ir_interval(f, lo), b = opjit_ir_interval(f, hi);
    if (checked_subi(b.hi, a.lo, &d)) {
        known = true;
        *out = d;
        if (a.lo == a.hi && b.lo == b.hi) /* two numbers: nothing says more */
            return true;
    }
    reduce(f, false, lo, &base_lo, &slack_lo);
    reduce(f, true, hi, &base_hi, &slack_hi);
    if (opjit_ir_same(f, base_lo, base_hi) && checked_subi(slack_hi, slack_lo, &d) && (!known || d < *out)) {
        known = true;
        *out = d;
    }
    if (depth == 0)
        return known;
    /* The operand of a rounding or of a sum with a constant may be a choice that says more. */
    if ((ir_at(f, base_lo)->op != ir_at(f, lo)->op || ir_at(f, base_hi)->op != ir_at(f, hi)->op) &&
        span(f, base_lo, base_hi, depth - 1, &d) && checked_subi(d, slack_lo, &d) && checked_addi(d, slack_hi, &d) &&
        (!known || d < *out)) {
        known = true;
        *out = d;
    }
    /* Cutting both at the same place brings them no further apart. */
    const ir_node *x = ir_at(f, lo), *y = ir_at(f, hi);
    if (x->op == IR_CLAMP && y->op == IR_CLAMP && opjit_ir_same(f, ir_operand(f, lo, 1), ir_operand(f, hi, 1)) &&
        opjit_ir_same(f, ir_operand(f, lo, 2), ir_operand(f, hi, 2)) &&
        span(f, ir_operand(f, lo, 0), ir_operand(f, hi, 0), depth - 1, &d)) {
        d = d < 0 ? 0 : d;
        *out = known && *out < d ? *out : d;
        known = true;
    }
    open_hi(f, lo, hi, depth - 1, &known, out);
    open_lo(f, lo, hi, depth - 1, &known, out);
    return known;
}

bool opjit_ir_span(const ir_func *f, ir_ref lo, ir_ref hi, int64_t *out)
{
    return span(f, lo, hi, SPAN_DEPTH, out);
}
