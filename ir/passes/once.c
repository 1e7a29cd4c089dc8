/* SPDX-License-Identifier: Apache-2.0 */
/* once.c - stages that run once.  Part of expand, its last step: a stage that reads constants alone, or what such stages
 * store, and stores one temp, makes the same bytes at each call.  It is marked and moved to the front, and what other
 * stages read of it is kept.  Needs: scheduled loop form for a CPU.  Leaves: rule V22. */
#include "ir/passes/pass.h"

enum {
    MOST_GROWTH = 4,         /* what is kept, in bytes, for each byte that it is made of, */
    LEAST_LIMIT = 64 * 1024, /* and always as much */
};

typedef struct finder {
    ir_func *f;
    uint32_t *stores, *once; /* by temp: stages that store it, and those of them that run once */
    uint32_t *read;          /* by tensor: the last stage that read it, counted from 1 */
    uint32_t stage;
} finder;

bool opjit_ir_may_keep(uint64_t bytes, uint64_t from)
{
    return bytes <= LEAST_LIMIT || bytes / MOST_GROWTH <= from;
}

uint64_t opjit_ir_constant_bytes(ir_func *f, const inline_source *sources, ir_ref expr)
{
    const ir_reach seen = opjit_ir_reach_one(f, expr);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        const uint64_t own = f->tensors[root].role == IR_CONSTANT ? f->tensors[root].bytes : sources[root].constant;
        if (n->op == IR_PARAM || (n->op == IR_LOAD && own == 0))
            return 0;
        bytes = n->op == IR_LOAD && own > bytes ? own : bytes;
    }
    return bytes;
}

/* The one temp that the stage stores; 0: it stores something else. */
static uint32_t stored_temp(const ir_func *f, const ir_reach *seen)
{
    uint32_t temp = 0;
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_node *n = ir_at(f, seen->nodes[k]);
        if (n->op != IR_STORE || f->tensors[n->ref].role == IR_SCRATCH)
            continue;
        if (f->tensors[n->ref].role != IR_TEMP || (temp != 0 && temp != n->ref))
            return 0;
        temp = n->ref;
    }
    return temp;
}

/* Whether all that the stage reads is there before any call; *bytes: how much that is. */
static bool reads_constants(finder *s, const ir_reach *seen, uint32_t own, uint64_t *bytes)
{
    const ir_func *f = s->f;
    *bytes = 0;
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_node *n = ir_at(f, seen->nodes[k]);
        if (n->op == IR_PARAM || n->op == IR_HEAD)
            return false;
        if (n->op != IR_LOAD)
            continue;
        const uint32_t root = opjit_ir_root(f, n->ref);
        const ir_tensor *t = &f->tensors[root];
        if (t->role == IR_SCRATCH || root == own)
            continue;
        if (t->role != IR_CONSTANT && (t->role != IR_TEMP || s->stores[root] == 0 || s->once[root] < s->stores[root]))
            return false;
        if (s->read[root] != s->stage && !checked_add(*bytes, t->bytes, bytes))
            return false;
        s->read[root] = s->stage;
    }
    return true;
}

static bool is_once(finder *s, const ir_reach *seen, uint32_t temp)
{
    uint64_t bytes;
    return temp != 0 && reads_constants(s, seen, temp, &bytes) && opjit_ir_may_keep(s->f->tensors[temp].bytes, bytes);
}

/* By stage, first the temp that it alone stores, then 0 where it runs at each call. */
static void find_temps(finder *s, uint32_t *temps)
{
    uint32_t at = 0;
    for (ir_ref r = s->f->body; r != 0; r = ir_at(s->f, r)->next) {
        const rt_arena_mark mark = rt_arena_position(&s->f->scratch);
        const ir_reach seen = opjit_ir_reach_one(s->f, r);
        temps[at] = stored_temp(s->f, &seen);
        for (uint32_t k = 0; k < seen.count && temps[at] == 0; k++) /* temps of such stages are none of ours */
            if (ir_at(s->f, seen.nodes[k])->op == IR_STORE)
                s->stores[ir_at(s->f, seen.nodes[k])->ref] = UINT32_MAX / 2;
        s->stores[temps[at++]]++;
        opjit_rt_arena_rewind(&s->f->scratch, mark);
    }
}

static void find_once(finder *s, uint32_t *temps)
{
    for (ir_ref r = s->f->body; r != 0; r = ir_at(s->f, r)->next, s->stage++) {
        const rt_arena_mark mark = rt_arena_position(&s->f->scratch);
        const ir_reach seen = opjit_ir_reach_one(s->f, r);
        uint32_t *const temp = &temps[s->stage - 1];
        if (seen.nodes == NULL || !is_once(s, &seen, *temp))
            *temp = 0;
        s->once[*temp]++;
        opjit_rt_arena_rewind(&s->f->scratch, mark);
    }
}

/* Temps that stages of each call read. */
static void keep(ir_func *f, ir_ref stage, const bool *made)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    const ir_reach seen = opjit_ir_reach_one(f, stage);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        if (made[root])
            f->tensors[root].role = IR_KEPT;
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}

void opjit_ir_mark_once(ir_func *f)
{
    finder s = { .f = f, .stage = 1 };
    block first = { 0 }, rest = { 0 };
    uint32_t count = 0, at = 0;
    ir_ref next;
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        count++;
    s.stores = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    s.once = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    s.read = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    uint32_t *const temps = ARENA_ARRAY(&f->scratch, uint32_t, count);
    bool *const made = ARENA_ARRAY(&f->scratch, bool, f->tensor_count);
    f->failed = f->failed || !s.stores || !s.once || !s.read || !temps || !made;
    if (f->failed)
        return;
    find_temps(&s, temps);
    find_once(&s, temps);
    for (ir_ref r = f->body; r != 0; r = next, at++) {
        const uint32_t temp = temps[at];
        next = ir_at(f, r)->next;
        if (temp == 0 || s.once[temp] < s.stores[temp]) {
            opjit_ir_block_add(f, &rest, r);
            continue;
        }
        f->nodes[r].flags |= IR_STAGE_ONCE;
        made[temp] = true;
        opjit_ir_block_add(f, &first, r);
        ir_took(f, IR_STEP_ONCE);
    }
    if (f->failed || first.first == 0)
        return;
    for (ir_ref r = rest.first; r != 0; r = ir_at(f, r)->next)
        keep(f, r, made);
    f->nodes[first.tail].next = rest.first;
    f->body = first.first;
}

/* --- what is made of them ----------------------------------------------------------------------------------------- */

static bool is_marked(const ir_func *f, ir_ref stage)
{
    return stage != 0 && ir_at(f, stage)->op == IR_STAGE && (ir_at(f, stage)->flags & IR_STAGE_ONCE) != 0;
}

uint32_t opjit_ir_once_count(const ir_func *f)
{
    uint32_t count = 0;
    for (ir_ref r = f->body; is_marked(f, r); r = ir_at(f, r)->next)
        count++;
    return count;
}

void opjit_ir_drop_once(ir_func *f)
{
    for (ir_ref r = f->body; is_marked(f, r); r = ir_at(f, r)->next)
        f->nodes[r].flags &= (uint16_t)~IR_STAGE_ONCE;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_KEPT)
            f->tensors[t].role = IR_TEMP;
}

/* By tensor: whether stages that run once load or store it.  In f's scratch memory; NULL: there is none. */
static bool *find_touched(ir_func *f)
{
    bool *touched = ARENA_ARRAY(&f->scratch, bool, f->tensor_count);
    for (ir_ref r = f->body; is_marked(f, r) && touched != NULL; r = ir_at(f, r)->next) {
        const ir_reach seen = opjit_ir_reach_one(f, r);
        for (uint32_t k = 0; k < seen.count; k++) {
            const ir_node *n = ir_at(f, seen.nodes[k]);
            if (n->op == IR_LOAD || n->op == IR_STORE)
                touched[n->ref] = touched[opjit_ir_root(f, n->ref)] = true;
        }
    }
    return f->failed ? NULL : touched;
}

void opjit_ir_print_once(const ir_func *f, rt_bytes *out)
{
    ir_func alone;
    ir_ref last = 0;
    if (opjit_ir_once_count(f) == 0)
        return;
    if (opjit_ir_copy(f, &alone, NULL) != OPJIT_OK) {
        out->failed = true;
        return;
    }
    for (ir_ref r = alone.body; is_marked(&alone, r); r = ir_at(&alone, r)->next)
        last = r;
    alone.nodes[last].next = 0;
    const bool *touched = find_touched(&alone);
    out->failed = out->failed || touched == NULL;
    for (uint32_t t = 1; t < alone.tensor_count && touched != NULL; t++) {
        if (alone.tensors[t].role == IR_KEPT)
            opjit_rt_bytes_u64(out, (uint64_t)alone.tensors[t].offset);
        if (!touched[t])
            alone.tensors[t].role = IR_VALUE; /* which is not declared */
    }
    if (!out->failed)
        opjit_ir_print(&alone, out);
    opjit_ir_free(&alone);
}
