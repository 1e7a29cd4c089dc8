/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.c - removes what does nothing: a store of the value that its memory already holds (the output shares the
 * input's memory), an update by the identity, a loop without iterations or without body, a let or accumulator that
 * nothing reads.  Needs: loop form.  Leaves: the same form; an empty stage stays. */
#include "ir/passes/pass.h"

/* Whether it is store %out[c], load %in[c] with %out and %in in the same memory. */
static bool stores_itself(const ir_func *f, ir_ref store)
{
    const ir_ref value = ir_operand(f, store, 0);
    const ir_node *s = ir_at(f, store), *v = ir_at(f, value);
    if (v->op != IR_LOAD || (v->ref != s->ref && v->ref != f->tensors[s->ref].alias) || v->count + 1 != s->count)
        return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (!opjit_ir_same(f, ir_operand(f, value, i), ir_operand(f, store, 1 + i)))
            return false;
    return true;
}

/* Sums start at +0, which neither +0 nor -0 changes. */
static bool updates_nothing(const ir_func *f, ir_ref upd)
{
    const ir_node *acc = ir_at(f, ir_at(f, upd)->ref), *value = ir_at(f, ir_operand(f, upd, 0));
    if (value->op != IR_CONST || ir_at(f, upd)->count != 1)
        return false;
    const ir_type type = (ir_type)value->type;
    const uint64_t sign = ir_is_float(type) ? (uint64_t)1 << (8 * opjit_ir_type_size(type) - 1) : 0;
    if (acc->kind == IR_SUM)
        return (value->imm & ~sign) == 0;
    return (acc->kind == IR_PROD || acc->kind == IR_KMIN || acc->kind == IR_KMAX) &&
           value->imm == opjit_ir_identity(type, (ir_kind)acc->kind);
}

/* Whether the statement, whose body is already clean, can go; reads: by node, how often lets and accumulators are
 * read. */
static bool is_idle(const ir_func *f, ir_ref s, const uint8_t *read)
{
    switch ((ir_op)ir_at(f, s)->op) {
    case IR_STORE: return stores_itself(f, s);
    case IR_FOR:   return ir_at(f, s)->body == 0 || opjit_ir_runs_never(f, ir_operand(f, s, 0), ir_operand(f, s, 1));
    case IR_LET: case IR_ACC: return !read[s];
    case IR_UPD:   return updates_nothing(f, s) || !read[ir_at(f, s)->ref];
    default:       return false;
    }
}

static bool clean(ir_func *f, ir_ref parent, const uint8_t *read)
{
    bool changed = false;
    block kept = { .parent = parent };
    ir_ref next, s = ir_at(f, parent)->body;
    f->nodes[parent].body = 0;
    for (; s != 0; s = next) {
        next = ir_at(f, s)->next;
        if (ir_at(f, s)->op == IR_FOR)
            changed = clean(f, s, read) || changed; /* as deep as loops nest: rule V16 */
        if (is_idle(f, s, read))
            changed = true;
        else
            opjit_ir_block_add(f, &kept, s);
    }
    return changed;
}

/* By node: lets and accumulators that an expression of the kernel reads.  NULL: no memory. */
static uint8_t *find_read(ir_func *f)
{
    const ir_reach seen = opjit_ir_reach(f, f->body);
    uint8_t *read = ARENA_ARRAY(&f->scratch, uint8_t, f->node_count);
    if (seen.nodes == NULL || read == NULL) {
        f->failed = true;
        return NULL;
    }
    for (uint32_t k = 0; k < seen.count; k++)
        if (ir_at(f, seen.nodes[k])->op == IR_GET)
            read[ir_at(f, seen.nodes[k])->ref] = 1;
    return read;
}

void opjit_ir_remove_idle(ir_func *f)
{
    for (bool again = true; again;) { /* what goes may have been a let's only reader */
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        const uint8_t *read = find_read(f);
        again = false;
        for (ir_ref s = f->body; s != 0 && read != NULL; s = ir_at(f, s)->next)
            if (ir_at(f, s)->op == IR_STAGE)
                again = clean(f, s, read) || again;
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
}
