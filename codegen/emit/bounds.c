/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - what can be known of loop bounds and addresses without running: remainders and spans.  Reads the IR
 * only. */
#include "codegen/cg.h"

enum { WALK_LIMIT = 64, SPAN_DEPTH = 4 }; /* how deep bounds are looked into; spans branch */

static uint64_t mod(int64_t x, uint64_t m)
{
    const int64_t r = x % (int64_t)m;
    return (uint64_t)(r < 0 ? r + (int64_t)m : r);
}

static bool residue(const cg_func *f, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out);

static bool operand_residues(const cg_func *f, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out)
{
    for (uint32_t i = 0; i < ir_at(f->ir, node)->count; i++)
        if (!residue(f, ir_operand(f->ir, node, i), m, depth, &out[i]))
            return false;
    return true;
}

/* A loop variable is its lower bound plus steps; the vectorised one moves by whole vectors. */
static bool var_residue(const cg_func *f, ir_ref var, uint64_t m, uint32_t depth, uint64_t *out)
{
    const ir_ref owner = ir_at(f->ir, var)->ref;
    const ir_node *n = ir_at(f->ir, owner);
    if (n->op == IR_STAGE && f->guess.on) {
        *out = f->guess.stage % m;
        return true;
    }
    const bool vectorised = f->lanes > 1 && f->loops[f->vec].var == var;
    uint64_t step = n->op == IR_FOR ? n->imm : 1;
    if (vectorised && (f->shifted || !checked_mul(step, f->lanes, &step)))
        return false;
    return step % m == 0 && residue(f, ir_operand(f->ir, owner, 0), m, depth, out);
}

static bool residue(const cg_func *f, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out)
{
    const ir_node *n = ir_at(f->ir, node);
    uint64_t r[3] = { 0 };
    *out = 0;
    if (m == 1)
        return true;
    if (depth == 0 || f->info[node].weight > CG_MAX_WEIGHT)
        return false;
    switch ((ir_op)n->op) {
    case IR_CONST: *out = mod((int64_t)n->imm, m); return true;
    case IR_VAR: return var_residue(f, node, m, depth - 1, out);
    case IR_HEAD: *out = f->guess.head % m; return f->guess.on && node == f->head;
    case IR_GET:
        return ir_at(f->ir, n->ref)->op == IR_LET && residue(f, ir_operand(f->ir, n->ref, 0), m, depth - 1, out);
    case IR_IADD:
        if (!operand_residues(f, node, m, depth - 1, r))
            return false;
        *out = (r[0] + r[1]) % m;
        return true;
    case IR_ISUB:
        if (!operand_residues(f, node, m, depth - 1, r))
            return false;
        *out = (r[0] + m - r[1]) % m;
        return true;
    case IR_IMUL: {
        const uint64_t k = mod((int64_t)ir_at(f->ir, ir_operand(f->ir, node, 1))->imm, m);
        if (k != 0 && !residue(f, ir_operand(f->ir, node, 0), m, depth - 1, r))
            return false;
        *out = r[0] * k % m;
        return true;
    }
    case IR_DOWN:
    case IR_UP: return ir_at(f->ir, ir_operand(f->ir, node, 1))->imm % m == 0;
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP: /* whichever it is */
        if (!operand_residues(f, node, m, depth - 1, r) || r[0] != r[1] || (n->op == IR_CLAMP && r[0] != r[2]))
            return false;
        *out = r[0];
        return true;
    default: return false;
    }
}

/* m below 2^31, so that no product of remainders overflows. */
bool opjit_cg_residue(const cg_func *f, ir_ref node, uint64_t m, uint64_t *out)
{
    return m > 0 && m < (uint64_t)1 << 31 && residue(f, node, m, WALK_LIMIT, out);
}

/* Remainders are affine in what is guessed, so numbers that agree at three points agree everywhere. */
bool opjit_cg_gap(cg_func *f, ir_ref a, ir_ref b, uint64_t m, uint64_t *out)
{
    static const cg_guess guesses[] = { { true, 0, 0 }, { true, 1, 0 }, { true, 0, 1 } };
    uint64_t x, y, first = 0;
    bool same = opjit_cg_residue(f, a, m, &x) && opjit_cg_residue(f, b, m, &y);
    if (same)
        first = (y + m - x) % m;
    else if (f->head != 0) {
        same = true;
        for (uint32_t i = 0; i < 3 && same; i++) {
            f->guess = guesses[i];
            same = opjit_cg_residue(f, a, m, &x) && opjit_cg_residue(f, b, m, &y) &&
                   (i == 0 || (y + m - x) % m == first);
            first = same ? (y + m - x) % m : 0;
        }
        f->guess.on = false;
    }
    *out = first;
    return same;
}

/* --- spans -------------------------------------------------------------------------------------------------------- */

static ir_ref through_let(const cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    return n->op == IR_GET && ir_at(f->ir, n->ref)->op == IR_LET ? ir_operand(f->ir, n->ref, 0) : node;
}

/* node <= base + slack (up), or node >= base + slack. */
static void reduce(const cg_func *f, bool up, ir_ref node, ir_ref *base, int64_t *slack)
{
    *slack = 0;
    for (*base = through_let(f, node);; *base = through_let(f, ir_operand(f->ir, *base, 0))) {
        const ir_node *n = ir_at(f->ir, *base);
        const ir_ref k_ref = n->count == 2 ? ir_operand(f->ir, *base, 1) : 0;
        int64_t more;
        if (!k_ref || !ir_is_index_const(f->ir, k_ref))
            return;
        const int64_t k = ir_index_value(f->ir, k_ref);
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

static bool span(const cg_func *f, ir_ref lo, ir_ref hi, uint32_t depth, int64_t *out);

/* The smaller of what is known so far (*known) and hi - lo for these two. */
static void consider(const cg_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    int64_t d;
    if (!span(f, lo, hi, depth, &d) || (*known && *out <= d))
        return;
    *known = true;
    *out = d;
}

/* The larger of hi - lo for two choices of (lo, hi), if both are known and it is better than *out. */
static void consider_both(const cg_func *f, const ir_ref lo[2], const ir_ref hi[2], uint32_t depth, bool *known,
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
static void open_hi(const cg_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    const ir_node *n = ir_at(f->ir, hi);
    if (n->op == IR_IMIN) {
        consider(f, lo, ir_operand(f->ir, hi, 0), depth, known, out);
        consider(f, lo, ir_operand(f->ir, hi, 1), depth, known, out);
    } else if (n->op == IR_IMAX || n->op == IR_CLAMP) {
        consider_both(f, (ir_ref[]){ lo, lo }, (ir_ref[]){ ir_operand(f->ir, hi, 0), ir_operand(f->ir, hi, 1) }, depth,
                      known, out);
        if (n->op == IR_CLAMP)
            consider(f, lo, ir_operand(f->ir, hi, 2), depth, known, out);
    }
}

/* Lower bounds of lo: imax is above both, imin above the smaller, clamp(x, l, k) above the smaller of k and any of
 * x, l. */
static void open_lo(const cg_func *f, ir_ref lo, ir_ref hi, uint32_t depth, bool *known, int64_t *out)
{
    const ir_node *n = ir_at(f->ir, lo);
    if (n->op == IR_IMAX) {
        consider(f, ir_operand(f->ir, lo, 0), hi, depth, known, out);
        consider(f, ir_operand(f->ir, lo, 1), hi, depth, known, out);
    } else if (n->op == IR_IMIN) {
        consider_both(f, (ir_ref[]){ ir_operand(f->ir, lo, 0), ir_operand(f->ir, lo, 1) }, (ir_ref[]){ hi, hi }, depth,
                      known, out);
    } else if (n->op == IR_CLAMP) {
        for (uint32_t i = 0; i < 2; i++)
            consider_both(f, (ir_ref[]){ ir_operand(f->ir, lo, i), ir_operand(f->ir, lo, 2) }, (ir_ref[]){ hi, hi },
                          depth, known, out);
    }
}

static bool span(const cg_func *f, ir_ref lo, ir_ref hi, uint32_t depth, int64_t *out)
{
    ir_ref base_lo, base_hi;
    int64_t slack_lo, slack_hi, d;
    bool known = false;
    lo = through_let(f, lo);
    hi = through_let(f, hi);
    const ir_interval a = opjit_ir_interval(f->ir, lo), b = opjit_ir_interval(f->ir, hi);
    if (checked_subi(b.hi, a.lo, &d)) {
        known = true;
        *out = d;
    }
    reduce(f, false, lo, &base_lo, &slack_lo);
    reduce(f, true, hi, &base_hi, &slack_hi);
    if (opjit_ir_same(f->ir, base_lo, base_hi) && checked_subi(slack_hi, slack_lo, &d) && (!known || d < *out)) {
        known = true;
        *out = d;
    }
    if (depth == 0)
        return known;
    /* What stands below rounding and constants may be a choice that says more. */
    if ((ir_at(f->ir, base_lo)->op != ir_at(f->ir, lo)->op || ir_at(f->ir, base_hi)->op != ir_at(f->ir, hi)->op) &&
        span(f, base_lo, base_hi, depth - 1, &d) && checked_subi(d, slack_lo, &d) && checked_addi(d, slack_hi, &d) &&
        (!known || d < *out)) {
        known = true;
        *out = d;
    }
    /* Cutting both at the same place brings them no further apart. */
    const ir_node *x = ir_at(f->ir, lo), *y = ir_at(f->ir, hi);
    if (x->op == IR_CLAMP && y->op == IR_CLAMP &&
        opjit_ir_same(f->ir, ir_operand(f->ir, lo, 1), ir_operand(f->ir, hi, 1)) &&
        opjit_ir_same(f->ir, ir_operand(f->ir, lo, 2), ir_operand(f->ir, hi, 2)) &&
        span(f, ir_operand(f->ir, lo, 0), ir_operand(f->ir, hi, 0), depth - 1, &d)) {
        d = d < 0 ? 0 : d;
        *out = known && *out < d ? *out : d;
        known = true;
    }
    open_hi(f, lo, hi, depth - 1, &known, out);
    open_lo(f, lo, hi, depth - 1, &known, out);
    return known;
}

bool opjit_cg_at_most(const cg_func *f, ir_ref a, ir_ref b)
{
    uint64_t x, y, m = 2;
    int64_t d;
    if (!span(f, b, a, SPAN_DEPTH, &d))
        return false;
    while (m <= 64 && (int64_t)m <= d)
        m *= 2;
    /* Two multiples of 8 that are at most 7 apart are not apart. */
    return d <= 0 || (d < (int64_t)m && residue(f, a, m, WALK_LIMIT, &x) && residue(f, b, m, WALK_LIMIT, &y) && x == y);
}

bool opjit_cg_span(const cg_func *f, ir_ref lo, ir_ref hi, int64_t *out)
{
    return span(f, lo, hi, SPAN_DEPTH, out);
}
