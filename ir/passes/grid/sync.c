/* SPDX-License-Identifier: Apache-2.0 */
/* sync.c - puts syncs wherever a thread may touch memory that another one has stored, or stores what another one must
 * have read.  Part of grid. */
#include "ir/passes/grid/grid.h"

enum { MOST_TENSORS = 64 };

/* Memory that threads have touched since the last sync: one bit per tensor, those from 63 on together. */
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

/* What a store to the tensor changes, inputs that may share its memory included. */
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
        find_stores(f, s, apart || (n->flags & IR_FOR_DISTRIBUTE) != 0, out);
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

/* once: tensors of which each element is stored once, by any thread: outputs and temps. */
static bool meets(touched before, touched now, uint64_t once)
{
    const uint64_t stored = before.apart | before.alike, stores = now.apart | now.alike;
    return ((before.read & stores) | (stored & now.read) | (before.apart & stores & ~once) |
            (before.alike & now.apart & ~once)) != 0;
}

/* Puts syncs into the list: *before is what was touched before the list, and becomes what was touched before its
 * end. */
static void add_syncs(gridder *g, ir_ref parent, touched *before)
{
    ir_func *f = g->f;
    ir_ref last = 0;
    for (ir_ref s = ir_at(f, parent)->body; s != 0; last = s, s = ir_at(f, s)->next) {
        const touched own = touches(f, s);
        const bool is_uniform = ir_at(f, s)->op == IR_FOR && !(ir_at(f, s)->flags & IR_FOR_DISTRIBUTE);
        if (meets(*before, own, g->once)) {
            const ir_ref sync = opjit_ir_sync(f);
            if (sync == 0)
                return;
            ir_took(f, IR_STEP_SYNC);
            f->nodes[sync].next = s;
            if (last != 0)
                f->nodes[last].next = sync;
            else
                f->nodes[parent].body = sync;
            *before = (touched){ 0, 0, 0 };
        }
        if (is_uniform) { /* what one iteration touches comes before the next one */
            touched round = *before;
            add(&round, own);
            add_syncs(g, s, &round);
        }
        add(before, own);
    }
}

/* Scratch is used again in the team's next iteration of the stage; everything else belongs to one iteration. */
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

void opjit_ir_add_syncs(gridder *g, ir_ref stage)
{
    touched before = before_stage(g, stage);
    add_syncs(g, stage, &before);
}
