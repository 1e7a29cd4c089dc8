/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - stages for a grid of threads: the last pass for GPUs.
 *
 * An iteration of a stage is done by a team, the threads of a warp, which run in lock step; or by one thread, where
 * nothing in it can be shared out.  Loops whose iterations don't need each other are marked `spread`: group g of `vec`
 * iterations goes to thread g modulo the team.  Loops that update accumulators of 32 lanes are spread one by one, k to
 * thread k modulo 32: so thread l has lane l, and the order of reductions is what it is everywhere.  What is outside of
 * such loops is computed by all threads alike, and stored by thread 0.  A `sync` stands wherever a thread may touch
 * memory that another one has stored, or has read and must have read.  As a program the function stays what it was. */
#include "ir/passes/pass.h"

enum {
    MOST_TENSORS = 64,
};

typedef struct gridder {
    ir_func *f;
    const rt_target *target;
    bool any;      /* some loop of the stage is spread */
    uint64_t once; /* tensors whose elements are stored once, as bits like those of touched */
} gridder;

/* --- which loops -------------------------------------------------------------------------------------------------- */

static bool has_loop(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR)
            return true;
    return false;
}

/* The statement in the list or below it that is `what`. */
static bool contains(const ir_func *f, ir_ref first, ir_ref what)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (s == what || contains(f, ir_at(f, s)->body, what)) /* as deep as loops nest: rule V16 */
            return true;
    return false;
}

/* Whether the expression moves with a loop of the list or below it. */
static bool moves_inside(const ir_func *f, ir_ref first, ir_ref expr)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR &&
            (opjit_ir_varies(f, expr, ir_at(f, s)->ref) || moves_inside(f, ir_at(f, s)->body, expr)))
            return true;
    return false;
}

/* Whether the store puts other elements in other iterations: some coordinate moves with the variable and with nothing
 * else that moves in the loop. */
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

/* The tensor's memory, and whether the list or anything below it stores there. */
static bool stores_to(const ir_func *f, ir_ref first, uint32_t root)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if ((ir_at(f, s)->op == IR_STORE && opjit_ir_root(f, ir_at(f, s)->ref) == root) ||
            stores_to(f, ir_at(f, s)->body, root))
            return true;
    return false;
}

static bool spreads_block(ir_func *f, ir_ref loop, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node n = *ir_at(f, s);
        /* Elements of outputs and temps are stored once, by whatever iteration: V6, V7. */
        if (n.op == IR_STORE && f->tensors[n.ref].role == IR_SCRATCH && !stores_apart(f, loop, s))
            return false;
        const bool own = n.op == IR_UPD && contains(f, ir_at(f, loop)->body, n.ref);
        if (n.op == IR_UPD && !own && (first != ir_at(f, loop)->body || ir_at(f, n.ref)->imm != IR_REDUCE_LANES))
            return false;
        if (n.op == IR_SYNC || !spreads_block(f, loop, n.body))
            return false;
    }
    return true;
}

/* Whether the loop's iterations can go to any thread, each at any time. */
static bool spreads(ir_func *f, ir_ref loop)
{
    const ir_ref body = ir_at(f, loop)->body;
    if (ir_at(f, loop)->imm != 1 || !spreads_block(f, loop, body))
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

/* The innermost loops that can be; *found: there are some in the list. */
static bool mark_spread(gridder *g, ir_ref first)
{
    ir_func *f = g->f;
    bool found = false;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_FOR)
            continue;
        bool inside = has_loop(f, ir_at(f, s)->body) && mark_spread(g, ir_at(f, s)->body);
        if (!inside && spreads(f, s)) {
            f->nodes[s].flags |= IR_FOR_SPREAD;
            inside = true;
        }
        found = found || inside;
    }
    return found;
}

/* --- accumulators ------------------------------------------------------------------------------------------------- */

typedef struct acc_use {
    ir_ref acc;
    bool spread, alike; /* updated in loops that are spread; in others */
    bool read_apart;    /* read where threads are not together */
} acc_use;

/* around: the spread loop around the list, 0: none. */
static void find_uses(ir_func *f, ir_ref first, ir_ref around, acc_use *use)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        const bool is_spread = n->op == IR_FOR && (n->flags & IR_FOR_SPREAD) != 0;
        if (n->op == IR_UPD && n->ref == use->acc) {
            use->spread = use->spread || around != 0;
            use->alike = use->alike || around == 0;
        }
        for (uint32_t i = 0; around != 0 && i < n->count; i++)
            use->read_apart = use->read_apart || opjit_ir_uses(f, ir_operand(f, s, i), use->acc);
        find_uses(f, n->body, around != 0 ? around : is_spread ? s : 0, use);
    }
}

/* Takes the mark of the list's loops that update the accumulator. */
static void join(ir_func *f, ir_ref first, ir_ref acc)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_FOR)
            continue;
        for (ir_ref u = ir_at(f, s)->body; u != 0; u = ir_at(f, u)->next)
            if (ir_at(f, u)->op == IR_UPD && ir_at(f, u)->ref == acc)
                f->nodes[s].flags &= (uint8_t)~IR_FOR_SPREAD;
        join(f, ir_at(f, s)->body, acc);
    }
}

/* Whether the accumulator stands in a spread loop: it is one thread's. */
static bool is_private(const ir_func *f, ir_ref first, ir_ref acc)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR && (ir_at(f, s)->flags & IR_FOR_SPREAD ? contains(f, ir_at(f, s)->body, acc)
                                                                              : is_private(f, ir_at(f, s)->body, acc)))
            return true;
    return false;
}

/* An accumulator is the team's, lane by lane, or the same in all threads.  Whether one of the list or below it was not,
 * and its loops are joined now: they may update others, too. */
static bool settle_accumulator(ir_func *f, ir_ref body, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        acc_use use = { .acc = s };
        if (settle_accumulator(f, body, ir_at(f, s)->body))
            return true;
        if (ir_at(f, s)->op != IR_ACC || is_private(f, body, s))
            continue;
        find_uses(f, body, 0, &use);
        if (use.spread && (use.alike || use.read_apart)) {
            join(f, body, s);
            return true;
        }
    }
    return false;
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static bool updates(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_UPD)
            return true;
    return false;
}

/* Whether every vector of the loop is stored whole: it begins where one of memory does, as `store nt` says. */
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
        const bool is_spread = (n->flags & IR_FOR_SPREAD) != 0;
        g->any = g->any || is_spread;
        if (!is_spread || updates(f, n->body) || (n->vec > 1 && !stores_whole(g, s)))
            f->nodes[s].vec = 0;
        n = &f->nodes[s]; /* what looks at it may have added nodes */
        if (!is_spread)
            n->unroll = 0;
        n->flags &= IR_FOR_SPREAD;
        set_attributes(g, n->body);
    }
}

/* --- syncs -------------------------------------------------------------------------------------------------------- */

/* Memory that threads have touched since the last sync: by tensor, those from 63 on together. */
typedef struct touched {
    uint64_t apart; /* stored to by any thread */
    uint64_t alike; /* stored to by thread 0 */
    uint64_t read;
} touched;

static uint64_t bit_of(const ir_func *f, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(f, tensor);
    return (uint64_t)1 << (root < MOST_TENSORS - 1 ? root : MOST_TENSORS - 1);
}

/* Of what a store of the tensor changes: also of inputs that may be its memory. */
static uint64_t stored_bits(const ir_func *f, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(f, tensor);
    const ir_tensor *own = &f->tensors[root];
    uint64_t bits = bit_of(f, root);
    for (uint32_t t = 1; t < f->tensor_count && (own->alias | own->shared) != 0; t++)
        if (opjit_ir_shares(f, root, t))
            bits |= bit_of(f, t);
    return bits;
}

static void find_stores(const ir_func *f, ir_ref statement, bool apart, touched *out)
{
    const ir_node *n = ir_at(f, statement);
    if (n->op == IR_STORE)
        *(apart ? &out->apart : &out->alike) |= stored_bits(f, n->ref);
    for (ir_ref s = n->body; s != 0; s = ir_at(f, s)->next)
        find_stores(f, s, apart || (n->flags & IR_FOR_SPREAD) != 0, out);
}

/* What the statement, with all below it, touches. */
static touched touches(ir_func *f, ir_ref statement)
{
    touched t = { 0, 0, 0 };
    const ir_reach seen = opjit_ir_reach_one(f, statement);
    for (uint32_t k = 0; k < seen.count; k++)
        if (ir_at(f, seen.nodes[k])->op == IR_LOAD)
            t.read |= bit_of(f, ir_at(f, seen.nodes[k])->ref);
    find_stores(f, statement, false, &t);
    return t;
}

static void add(touched *a, touched b)
{
    a->apart |= b.apart;
    a->alike |= b.alike;
    a->read |= b.read;
}

/* once: what has each element stored once, by whatever thread: outputs and temps. */
static bool meets(touched before, touched now, uint64_t once)
{
    const uint64_t stored = before.apart | before.alike, stores = now.apart | now.alike;
    return ((before.read & stores) | (stored & now.read) | (before.apart & stores & ~once) |
            (before.alike & now.apart & ~once)) != 0;
}

/* Puts syncs into the list: *before is what was touched before it, and is then what was before its end. */
static void add_syncs(gridder *g, ir_ref parent, touched *before)
{
    ir_func *f = g->f;
    ir_ref last = 0;
    for (ir_ref s = ir_at(f, parent)->body; s != 0 && !f->failed; last = s, s = ir_at(f, s)->next) {
        const touched own = touches(f, s);
        const bool is_uniform = ir_at(f, s)->op == IR_FOR && !(ir_at(f, s)->flags & IR_FOR_SPREAD);
        if (meets(*before, own, g->once)) {
            const ir_ref sync = opjit_ir_sync(f);
            if (sync == 0)
                return;
            f->nodes[sync].next = s;
            if (last != 0)
                f->nodes[last].next = sync;
            else
                f->nodes[parent].body = sync;
            *before = (touched){ 0, 0, 0 };
        }
        if (is_uniform) { /* what one iteration touches is there before the next one */
            touched round = *before;
            add(&round, own);
            add_syncs(g, s, &round);
        }
        add(before, own);
    }
}

/* Scratch is used again in the team's next iteration of the stage; all else is another iteration's own. */
static touched before_stage(gridder *g, ir_ref stage)
{
    ir_func *f = g->f;
    touched t = { 0, 0, 0 };
    uint64_t scratch = 0, other = 0;
    for (ir_ref s = ir_at(f, stage)->body; s != 0; s = ir_at(f, s)->next)
        add(&t, touches(f, s));
    const ir_reach seen = opjit_ir_reach_one(f, stage);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        if (n->op == IR_LOAD || n->op == IR_STORE)
            *(f->tensors[n->ref].role == IR_SCRATCH ? &scratch : &other) |= bit_of(f, n->ref);
    }
    g->once = other & ~scratch;
    return (touched){ t.apart & scratch, t.alike & scratch, t.read & scratch };
}

/* Whether the threads of a team meet: in the list, or below it, a sync or an accumulator that is all theirs. */
static bool meet(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_SYNC || ir_at(f, s)->op == IR_ACC ||
            (!(ir_at(f, s)->flags & IR_FOR_SPREAD) && meet(f, ir_at(f, s)->body)))
            return true;
    return false;
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static void grid_stage(gridder *g, ir_ref stage)
{
    ir_func *f = g->f;
    const uint32_t scheduled = ir_at(f, stage)->vec;
    g->any = false;
    mark_spread(g, ir_at(f, stage)->body);
    while (settle_accumulator(f, ir_at(f, stage)->body, ir_at(f, stage)->body))
        ;
    set_attributes(g, ir_at(f, stage)->body);
    f->nodes[stage].vec = (uint16_t)(!g->any ? 1 : scheduled > 0 ? scheduled : rt_target_team(g->target));
    f->nodes[stage].imm = 1; /* of the launch, not of tasks */
    if (g->any && !f->failed) {
        touched before = before_stage(g, stage);
        add_syncs(g, stage, &before);
        if (!rt_target_lock_step(g->target) && meet(f, ir_at(f, stage)->body))
            f->nodes[stage].flags |= IR_STAGE_ALONE;
    }
}

opjit_status opjit_ir_pass_grid(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    *out_changed = false;
    if (f->stage >= IR_GRIDDED)
        return OPJIT_OK;
    if (env->target == NULL || rt_target_team(env->target) == 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "pass grid is for GPUs, and the target is %s",
                                  env->target != NULL ? env->target->text : "not given");
    gridder g = { .f = f, .target = env->target };
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        grid_stage(&g, s);
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    *out_changed = true;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
