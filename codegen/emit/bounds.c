/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - what can be known of loop bounds and addresses without running: remainders and spans.  Reads the IR
 * only. */
#include "codegen/cg.h"

enum { WALK_LIMIT = 64 }; /* how deep bounds are looked into */

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
            same =
                opjit_cg_residue(f, a, m, &x) && opjit_cg_residue(f, b, m, &y) && (i == 0 || (y + m - x) % m == first);
            first = same ? (y + m - x) % m : 0;
        }
        f->guess.on = false;
    }
    *out = first;
    return same;
}

bool opjit_cg_at_most(const cg_func *f, ir_ref a, ir_ref b)
{
    uint64_t x, y, m = 2;
    int64_t d;
    if (!opjit_ir_span(f->ir, b, a, &d))
        return false;
    while (m <= 64 && (int64_t)m <= d)
        m *= 2;
    /* Two multiples of 8 that are at most 7 apart are not apart. */
    return d <= 0 || (d < (int64_t)m && residue(f, a, m, WALK_LIMIT, &x) && residue(f, b, m, WALK_LIMIT, &y) && x == y);
}
