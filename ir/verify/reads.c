/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - V7 for loads: what a stage reads of memory that it writes was stored by the same iteration. */
#include "ir/verify/cover.h"

typedef struct stage_reads {
    verifier *v;
    ir_ref stage;
} stage_reads;

/* Whether the coordinates that the load shares with the store tell iterations of the stage apart: one alone, or several
 * as digits of the iteration's number. */
static bool is_told_apart(const stage_reads *w, ir_ref load, ir_ref store)
{
    ir_func *f = w->v->f;
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    cover c = { .v = w->v, .f = f, .tensor = ir_at(f, load)->ref, .rank = t->rank, .gaps = true };
    piece digits = { .store = store };
    int64_t factor;
    for (uint32_t d = 0; d < t->rank; d++) {
        const ir_ref x = ir_operand(f, load, d);
        const bool shared = opjit_ir_same(f, ir_operand(f, store, 1 + d), x);
        if (shared && opjit_ir_factor(f, x, ir_at(f, w->stage)->ref, &factor) && factor != 0)
            return true;
        digits.d[d] = (extent){ .point = shared, .lo = shared ? x : opjit_ir_index(f, 0),
                                .hi = shared ? 0 : opjit_ir_index(f, (int64_t)t->sizes[d]) };
    }
    return !f->failed && opjit_ir_cover_close_digits(&c, &digits, w->stage);
}

/* Whether every store of the tensor in the block has the load's coordinates, or shares those that tell iterations
 * apart. */
static bool read_is_own(const stage_reads *w, ir_ref first, ir_ref load)
{
    const ir_func *f = w->v->f;
    for (ir_ref s = first; s; s = ir_at(f, s)->next) {
        const ir_node *node = ir_at(f, s);
        if (!read_is_own(w, node->body, load))
            return false;
        if (node->op != IR_STORE || node->ref != opjit_ir_root(f, ir_at(f, load)->ref))
            continue;
        if (node->ref != ir_at(f, load)->ref)
            return false; /* through a view, which is not followed */
        bool all = true;
        for (uint32_t d = 0; all && d < ir_at(f, load)->count; d++)
            all = opjit_ir_same(f, ir_operand(f, s, 1 + d), ir_operand(f, load, d));
        if (!all && !is_told_apart(w, load, s))
            return false;
    }
    return true;
}

static opjit_status check_stage_reads(stage_reads *w, ir_ref expr)
{
    const ir_func *f = w->v->f;
    const ir_node *node = ir_at(f, expr);
    if (!w->v->loads[expr] || w->v->walked[expr] == w->v->walk)
        return OPJIT_OK;
    w->v->walked[expr] = w->v->walk;
    const ir_role role = f->tensors[node->op == IR_LOAD ? opjit_ir_root(f, node->ref) : 0].role;
    if (node->op == IR_LOAD && (role == IR_TEMP || role == IR_KEPT || role == IR_OUT) &&
        !read_is_own(w, ir_at(f, w->stage)->body, expr))
        return opjit_ir_verify_fail(w->v, 7, expr, "another iteration of the stage may store what it reads");
    for (uint32_t i = 0; i < node->count; i++)
        TRY(check_stage_reads(w, ir_operand(f, expr, i)));
    return OPJIT_OK;
}

static opjit_status check_stage_block(stage_reads *w, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(w->v->f, s)->next) {
        for (uint32_t i = 0; i < ir_at(w->v->f, s)->count; i++)
            TRY(check_stage_reads(w, ir_operand(w->v->f, s, i)));
        TRY(check_stage_block(w, ir_at(w->v->f, s)->body));
    }
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_reads(verifier *v)
{
    for (ir_ref s = v->f->body; s; s = ir_at(v->f, s)->next) {
        stage_reads w = { .v = v, .stage = s };
        if (ir_is_index_const(v->f, ir_operand(v->f, s, 1)) && ir_index_value(v->f, ir_operand(v->f, s, 1)) == 1)
            continue; /* there is no other iteration */
        v->walk++;
        TRY(opjit_ir_verify_proof(v, check_stage_block(&w, ir_at(v->f, s)->body)));
    }
    return OPJIT_OK;
}
