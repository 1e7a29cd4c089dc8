/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - attributes of stages and loops on a grid of threads.  Part of grid, the last pass for GPUs.
 *
 * An iteration of a stage is done by a team, the threads of a warp, which run in lock step; or by one thread, where
 * nothing in it can be shared out.  Loops whose iterations don't need each other are marked `distributed`: group g of
 * `vec` iterations goes to thread g modulo the team.  Loops that update accumulators of 32 lanes are distributed one
 * by one, k to thread k modulo 32: so thread l has lane l, and the order of reductions is what it is everywhere.  What
 * is outside of such loops is computed by all threads alike, and stored by thread 0.  A `sync` stands wherever a
 * thread may touch memory that another one has stored, or has read and must have read.  As a program the function
 * stays what it was. */
#include "ir/passes/grid/grid.h"

/* --- attributes --------------------------------------------------------------------------------------------------- */

static bool updates(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_UPD)
            return true;
    return false;
}

/* Whether every vector of the loop is stored whole: it begins where memory has a whole vector, as `store nt` says. */
static bool stores_whole(gridder *g, ir_ref loop)
{
    ir_func *f = g->f;
    const uint64_t lanes = ir_at(f, loop)->vec;
    if (ir_at(f, loop)->flags & IR_FOR_NT)
        return true;
    bool whole = opjit_ir_divisor(f, ir_operand(f, loop, 0)) >= lanes;
    for (ir_ref s = ir_at(f, loop)->body; s != 0 && whole; s = ir_at(f, s)->next) {
        const ir_node n = *ir_at(f, s);
        const ir_tensor *t = n.op == IR_STORE ? &f->tensors[n.ref] : NULL;
        for (uint32_t d = 0; t != NULL && d < t->rank && whole; d++) {
            ir_linear form;
            if (t->sizes[d] == 1 || t->strides[d] % lanes == 0)
                continue;
            whole = opjit_ir_linear(f, ir_operand(f, s, 1 + d), ir_at(f, loop)->ref, &form) &&
                    t->strides[d] * opjit_ir_divisor(f, form.rest) % lanes == 0;
        }
    }
    return whole;
}

static void set_attributes(gridder *g, ir_ref first)
{
    ir_func *f = g->f;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        ir_node *n = &f->nodes[s];
        if (n->op != IR_FOR)
            continue;
        const bool is_distributed = (n->flags & IR_FOR_DISTRIBUTE) != 0;
        g->any = g->any || is_distributed;
        if (!is_distributed || updates(f, n->body) || (n->vec > 1 && !stores_whole(g, s)))
            f->nodes[s].vec = 0;
        n = &f->nodes[s]; /* a query may have added nodes */
        if (!is_distributed)
            n->unroll = 0;
        n->flags &= IR_FOR_DISTRIBUTE | IR_FOR_SERIAL;
        set_attributes(g, n->body);
    }
}

/* Whether the threads of a team communicate: by a sync in the list or below it, or by an accumulator of the whole
 * team. */
static bool meet(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_SYNC || ir_at(f, s)->op == IR_ACC ||
            (!(ir_at(f, s)->flags & IR_FOR_DISTRIBUTE) && meet(f, ir_at(f, s)->body)))
            return true;
    return false;
}

void opjit_ir_keep_attributes(gridder *g, ir_ref stage)
{
    ir_func *f = g->f;
    const uint32_t scheduled = ir_at(f, stage)->vec;
    g->any = false;
    set_attributes(g, ir_at(f, stage)->body);
    f->nodes[stage].vec = (uint16_t)(!g->any ? 1 : scheduled > 0 ? scheduled : rt_target_team(g->target));
    f->nodes[stage].imm = 1; /* of the launch, not of tasks */
}

void opjit_ir_set_alone(gridder *g, ir_ref stage)
{
    if (!rt_target_lock_step(g->target) && meet(g->f, ir_at(g->f, stage)->body))
        g->f->nodes[stage].flags |= IR_STAGE_ALONE;
}
