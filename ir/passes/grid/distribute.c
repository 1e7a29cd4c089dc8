/* SPDX-License-Identifier: Apache-2.0 */
/* distribute.c - distributes loops over the threads of a team, and the lanes of accumulators with them.  Part of
 * grid. */
#include "ir/passes/grid/grid.h"

/* --- which loops -------------------------------------------------------------------------------------------------- */

static bool has_loop(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR)
            return true;
    return false;
}

/* Whether `what` is in the list or below it. */
static bool contains(const ir_func *f, ir_ref first, ir_ref what)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (s == what || contains(f, ir_at(f, s)->body, what)) /* as deep as loops nest: rule V16 */
            return true;
    return false;
}

/* Whether the expression changes with a loop of the list or below it. */
static bool moves_inside(const ir_func *f, ir_ref first, ir_ref expr)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR &&
            (opjit_ir_varies(f, expr, ir_at(f, s)->ref) || moves_inside(f, ir_at(f, s)->body, expr)))
            return true;
    return false;
}

/* Whether different iterations store different elements: some coordinate moves with the variable and with nothing else
 * that changes in the loop. */
static bool stores_apart(ir_func *f, ir_ref loop, ir_ref store)
{
    const ir_ref var = ir_at(f, loop)->ref;
    for (uint32_t i = 1; i < ir_at(f, store)->count; i++) {
        ir_linear form;
        if (opjit_ir_linear(f, ir_operand(f, store, i), var, &form) && form.factor != 0 &&
            !moves_inside(f, ir_at(f, loop)->body, form.rest))
            return true;
    }
    return false;
}

/* Whether no expression below reads what another iteration may store: the same block stores at its coordinates. */
static bool reads_own(ir_func *f, ir_ref block_first, ir_ref load)
{
    for (ir_ref s = block_first; s != 0; s = ir_at(f, s)->next) {
        bool equal = ir_at(f, s)->op == IR_STORE && ir_at(f, s)->ref == ir_at(f, load)->ref;
        for (uint32_t d = 0; equal && d < ir_at(f, load)->count; d++)
            equal = opjit_ir_same(f, ir_operand(f, s, 1 + d), ir_operand(f, load, d));
        if (equal)
            return true;
    }
    return false;
}

/* Whether the list or anything below it stores to the tensor's memory. */
static bool stores_to(const ir_func *f, ir_ref first, uint32_t root)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if ((ir_at(f, s)->op == IR_STORE && opjit_ir_root(f, ir_at(f, s)->ref) == root) ||
            stores_to(f, ir_at(f, s)->body, root))
            return true;
    return false;
}

static bool distributes_block(ir_func *f, ir_ref loop, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node n = *ir_at(f, s);
        /* Elements of outputs and temps are stored once, by any iteration: V6, V7. */
        if (n.op == IR_STORE && f->tensors[n.ref].role == IR_SCRATCH && !stores_apart(f, loop, s))
            return false;
        const bool own = n.op == IR_UPD && contains(f, ir_at(f, loop)->body, n.ref);
        if (n.op == IR_UPD && !own && (first != ir_at(f, loop)->body || ir_at(f, n.ref)->imm != IR_REDUCE_LANES))
            return false;
        if (n.op == IR_SYNC || !distributes_block(f, loop, n.body))
            return false;
    }
    return true;
}

/* Whether any thread may run any of the loop's iterations at any time. */
static bool distributes(ir_func *f, ir_ref loop)
{
    const ir_ref body = ir_at(f, loop)->body;
    if (ir_at(f, loop)->imm != 1 || !distributes_block(f, loop, body))
        return false;
    const ir_reach seen = opjit_ir_reach(f, body);
    if (seen.nodes == NULL)
        return false;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node n = *ir_at(f, r);
        if (n.op == IR_LOAD && stores_to(f, body, opjit_ir_root(f, n.ref)) && !reads_own(f, body, r))
            return false;
        if (n.op == IR_GET && ir_at(f, n.ref)->op == IR_ACC && !contains(f, body, n.ref))
            return false; /* all threads together have it */
    }
    return true;
}

/* Marks the innermost loops that can be; *found: the list has some. */
static bool mark_distributed(ir_func *f, ir_ref first)
{
    bool found = false;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_FOR || ir_is_serial(f, s))
            continue;
        bool inside = has_loop(f, ir_at(f, s)->body) && mark_distributed(f, ir_at(f, s)->body);
        if (!inside && distributes(f, s)) {
            f->nodes[s].flags |= IR_FOR_DISTRIBUTE;
            ir_took(f, IR_STEP_DISTRIBUTE);
            inside = true;
        }
        found = found || inside;
    }
    return found;
}

/* --- accumulators ------------------------------------------------------------------------------------------------- */

typedef struct acc_use {
    ir_ref acc;
    bool distributed, alike; /* updated in distributed loops; in others */
    bool read_apart;    /* read where threads are apart */
} acc_use;

/* around: the distributed loop around the list, 0: none. */
static void find_uses(ir_func *f, ir_ref first, ir_ref around, acc_use *use)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        const bool is_distributed = n->op == IR_FOR && (n->flags & IR_FOR_DISTRIBUTE) != 0;
        if (n->op == IR_UPD && n->ref == use->acc) {
            use->distributed = use->distributed || around != 0;
            use->alike = use->alike || around == 0;
        }
        for (uint32_t i = 0; around != 0 && i < n->count; i++)
            use->read_apart = use->read_apart || opjit_ir_uses(f, ir_operand(f, s, i), use->acc);
        find_uses(f, n->body, around != 0 ? around : is_distributed ? s : 0, use);
    }
}

/* Removes the mark from the list's loops that update the accumulator. */
static void join(ir_func *f, ir_ref first, ir_ref acc)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_FOR)
            continue;
        for (ir_ref u = ir_at(f, s)->body; u != 0; u = ir_at(f, u)->next)
            if (ir_at(f, u)->op == IR_UPD && ir_at(f, u)->ref == acc)
                f->nodes[s].flags &= (uint8_t)~IR_FOR_DISTRIBUTE;
        join(f, ir_at(f, s)->body, acc);
    }
}

/* Whether the accumulator is inside a distributed loop: it belongs to one thread. */
static bool is_private(const ir_func *f, ir_ref first, ir_ref acc)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR && (ir_at(f, s)->flags & IR_FOR_DISTRIBUTE ? contains(f, ir_at(f, s)->body, acc)
                                                                              : is_private(f, ir_at(f, s)->body, acc)))
            return true;
    return false;
}

/* An accumulator belongs to the team, lane by lane, or is the same in all threads.  Returns whether one of the list or
 * below it was neither, so that its loops were joined: they may update others, too. */
static bool settle_accumulator(ir_func *f, ir_ref body, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        acc_use use = { .acc = s };
        if (settle_accumulator(f, body, ir_at(f, s)->body))
            return true;
        if (ir_at(f, s)->op != IR_ACC || is_private(f, body, s))
            continue;
        find_uses(f, body, 0, &use);
        if (use.distributed && (use.alike || use.read_apart)) {
            join(f, body, s);
            return true;
        }
    }
    return false;
}

void opjit_ir_distribute(ir_func *f, ir_ref stage)
{
    const ir_ref body = ir_at(f, stage)->body;
    mark_distributed(f, body);
    while (settle_accumulator(f, body, body))
        ;
}
