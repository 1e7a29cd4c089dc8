/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - V7 for loads: what a stage reads of memory that it writes was stored by the same iteration. */
#include "ir/verify/verifier.h"

typedef struct stage_reads {
    verifier *v;
    ir_ref stage;
} stage_reads;

/* Whether every store of the tensor in the block has the load's coordinates, or shares one that tells iterations
 * apart. */
static bool read_is_own(const stage_reads *w, ir_ref first, ir_ref load)
{
    const ir_func *f = w->v->f;
    int64_t factor;
    for (ir_ref s = first; s; s = ir_at(f, s)->next) {
        const ir_node *node = ir_at(f, s);
        if (!read_is_own(w, node->body, load))
            return false;
        if (node->op != IR_STORE || node->ref != opjit_ir_root(f, ir_at(f, load)->ref))
            continue;
        if (node->ref != ir_at(f, load)->ref)
            return false; /* through a view, which is not followed */
        bool all = true, apart = false;
        for (uint32_t d = 0; d < ir_at(f, load)->count; d++) {
            const ir_ref x = ir_operand(f, load, d);
            const bool shared = opjit_ir_same(f, ir_operand(f, s, 1 + d), x);
            all = all && shared;
            apart = apart || (shared && opjit_ir_factor(f, x, ir_at(f, w->stage)->ref, &factor) && factor != 0);
        }
        if (!all && !apart)
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
        v->walk++;
        TRY(opjit_ir_verify_proof(v, check_stage_block(&w, ir_at(v->f, s)->body)));
    }
    return OPJIT_OK;
}
