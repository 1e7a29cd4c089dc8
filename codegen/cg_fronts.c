/* cg_fronts.c - a long loop that does hardly more than store, beyond the first cache, goes on at two fronts: a few
 * vectors where it begins, as many from its middle on, and so on.  Lines that are not in the first cache take their
 * time to come, and more of them are on their way at two fronts.  It costs nothing to compile, unlike instructions that
 * fetch, which fast selection doesn't know. */
#include "codegen/cg.h"

enum {
    GROUP = 8,              /* copies at a front before the other one has its turn: a few lines in order */
    LEAST_DISTANCE = 16384, /* bytes from front to front; those in one page are slower than one */
};

uint32_t opjit_cg_front_copies(const cg_func *f, ir_ref body, uint32_t lanes, uint32_t unroll, int64_t count)
{
    const ir_node *s = ir_at(f->ir, body);
    if (s->op != IR_STORE || s->next != 0 || f->cpu->grid || f->nontemporal || f->turn.on || f->mask || lanes < 2)
        return 0;
    const ir_tensor *t = &f->ir->tensors[s->ref];
    const cg_info *value = &f->info[ir_operand(f->ir, body, 0)];
    const int64_t least = 2 * LEAST_DISTANCE / opjit_ir_type_size(t->type);
    if (t->role != IR_OUT || t->alias != 0 || t->bytes < f->target->l2 / 2 || count < least || value->fresh ||
        value->guarded || !opjit_cg_contiguous(f, body, f->loops[f->loop_count - 1].var, 1))
        return 0;
    return unroll > 2 * GROUP ? unroll : 2 * GROUP;
}

/* What is remembered at one front is of no use at the other. */
static bool second_memory(cg_func *f)
{
    for (uint32_t i = 0; i < CG_SLOTS; i++) {
        if (!f->fronts.cache[i])
            f->fronts.cache[i] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
        if (!f->fronts.cache[i])
            return false;
        memcpy(f->fronts.cache[i], f->cache[i], f->ir->node_count * sizeof(cg_entry));
    }
    return true;
}

static void swap_fronts(cg_func *f)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    LLVMValueRef iv = loop->iv;
    cg_entry *cache[CG_SLOTS];
    loop->iv = f->fronts.iv;
    f->fronts.iv = iv;
    memcpy(cache, f->cache, sizeof(cache));
    memcpy(f->cache, f->fronts.cache, sizeof(cache));
    memcpy(f->own, f->cache, sizeof(cache));
    memcpy(f->fronts.cache, cache, sizeof(cache));
}

void opjit_cg_front_round(cg_func *f, ir_ref body, uint32_t copies)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    if (!second_memory(f)) {
        f->failed = true;
        return;
    }
    f->fronts.iv = opjit_cg_add(f, loop->iv, f->fronts.distance);
    for (uint32_t u = 0; u < copies; u++) {
        loop->offset = (int64_t)(u / (2 * GROUP) * GROUP + u % GROUP) * f->lanes;
        opjit_cg_copy(f, body);
        if (u % GROUP == GROUP - 1)
            swap_fronts(f);
    }
}
