/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - what can be known of loop bounds and addresses without running: remainders and spans.  Emits nothing. */
#include "codegen/cg.h"

enum { WALK_LIMIT = 64 }; /* how deep bounds are looked into, by recursion */

static uint64_t mod(int64_t x, uint64_t m)
{
    const int64_t r = x % (int64_t)m;
    return (uint64_t)(r < 0 ? r + (int64_t)m : r);
}

cg_residues opjit_cg_residues(const cg_func *f)
{
    return (cg_residues){ .f = f,
                          .moving = f->piece->lanes > 1 ? f->loops[f->piece->vec].var : 0,
                          .lanes = f->piece->shifted ? 0 : f->piece->lanes };
}

static bool residue(const cg_residues *with, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out);

static bool operand_residues(const cg_residues *with, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out)
{
    const ir_func *ir = with->f->ir;
    for (uint32_t i = 0; i < ir_at(ir, node)->count; i++)
        if (!residue(with, ir_operand(ir, node, i), m, depth, &out[i]))
            return false;
    return true;
}

/* A loop variable is its lower bound plus steps; the vectorised one moves by whole vectors. */
static bool var_residue(const cg_residues *with, ir_ref var, uint64_t m, uint32_t depth, uint64_t *out)
{
    const ir_func *ir = with->f->ir;
    const ir_ref owner = ir_at(ir, var)->ref;
    const ir_node *n = ir_at(ir, owner);
    if (n->op == IR_STAGE && with->guess.on) {
        *out = with->guess.stage % m;
        return true;
    }
    uint64_t step = n->op == IR_FOR ? n->imm : 1;
    if (with->moving == var && (with->lanes == 0 || !checked_mul(step, with->lanes, &step)))
        return false;
    return step % m == 0 && residue(with, ir_operand(ir, owner, 0), m, depth, out);
}

static bool residue(const cg_residues *with, ir_ref node, uint64_t m, uint32_t depth, uint64_t *out)
{
    const ir_func *ir = with->f->ir;
    const ir_node *n = ir_at(ir, node);
    uint64_t r[3] = { 0 };
    *out = 0;
    if (m == 1)
        return true;
    if (depth == 0 || with->f->info[node].weight > CG_MAX_WEIGHT)
        return false;
    switch ((ir_op)n->op) {
    case IR_CONST: *out = mod((int64_t)n->imm, m); return true;
    case IR_VAR: return var_residue(with, node, m, depth - 1, out);
    case IR_HEAD: *out = with->guess.head % m; return with->guess.on && node == with->f->head;
    case IR_GET: return ir_at(ir, n->ref)->op == IR_LET && residue(with, ir_operand(ir, n->ref, 0), m, depth - 1, out);
    case IR_IADD:
        if (!operand_residues(with, node, m, depth - 1, r))
            return false;
        *out = (r[0] + r[1]) % m;
        return true;
    case IR_ISUB:
        if (!operand_residues(with, node, m, depth - 1, r))
            return false;
        *out = (r[0] + m - r[1]) % m;
        return true;
    case IR_IMUL: {
        const uint64_t k = mod((int64_t)ir_at(ir, ir_operand(ir, node, 1))->imm, m);
        if (k != 0 && !residue(with, ir_operand(ir, node, 0), m, depth - 1, r))
            return false;
        *out = r[0] * k % m;
        return true;
    }
    case IR_DOWN:
    case IR_UP: return ir_at(ir, ir_operand(ir, node, 1))->imm % m == 0;
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP: /* whichever it is */
        if (!operand_residues(with, node, m, depth - 1, r) || r[0] != r[1] || (n->op == IR_CLAMP && r[0] != r[2]))
            return false;
        *out = r[0];
        return true;
    default: return false;
    }
}

/* m below 2^31, so that no product of remainders overflows. */
bool opjit_cg_residue(const cg_residues *with, ir_ref node, uint64_t m, uint64_t *out)
{
    return m > 0 && m < (uint64_t)1 << 31 && residue(with, node, m, WALK_LIMIT, out);
}

/* Remainders are affine in what is guessed, so numbers that agree at three points agree everywhere. */
const cg_guess opjit_cg_guesses[CG_GUESSES] = { { true, 0, 0 }, { true, 1, 0 }, { true, 0, 1 } };

bool opjit_cg_gap(const cg_func *f, ir_ref a, ir_ref b, uint64_t m, uint64_t *out)
{
    cg_residues with = opjit_cg_residues(f);
    uint64_t x, y, first = 0;
    bool same = opjit_cg_residue(&with, a, m, &x) && opjit_cg_residue(&with, b, m, &y);
    if (same)
        first = (y + m - x) % m;
    else if (f->head != 0) {
        same = true;
        for (uint32_t i = 0; i < CG_GUESSES && same; i++) {
            with.guess = opjit_cg_guesses[i];
            same = opjit_cg_residue(&with, a, m, &x) && opjit_cg_residue(&with, b, m, &y) &&
                   (i == 0 || (y + m - x) % m == first);
            first = same ? (y + m - x) % m : 0;
        }
    }
    *out = first;
    return same;
}

bool opjit_cg_at_most(const cg_func *f, ir_ref a, ir_ref b)
{
    const cg_residues with = opjit_cg_residues(f);
    uint64_t x, y, m = 2;
    int64_t d;
    if (!opjit_ir_span(f->ir, b, a, &d))
        return false;
    while (m <= 64 && (int64_t)m <= d)
        m *= 2;
    /* Two multiples of 8 that are at most 7 apart are not apart. */
    return d <= 0 ||
           (d < (int64_t)m && residue(&with, a, m, WALK_LIMIT, &x) && residue(&with, b, m, WALK_LIMIT, &y) && x == y);
}
