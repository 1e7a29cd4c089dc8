/* SPDX-License-Identifier: Apache-2.0 */
/* hoist.c - emits what does not change in a loop before it. */
#include "codegen/emit/access.h"

static bool is_leaf(const ir_node *n)
{
    return n->op == IR_CONST || n->op == IR_VAR || n->op == IR_GET;
}

/* Whether the value may be made before the loop: nothing inside of it, no load that may change or be out of bounds. */
static bool is_outside(const cg_info *info, uint32_t loop)
{
    return info->inside >> loop == 0 && !info->fresh && !info->stays;
}

/* What is hoisted for: a loop, and lanes of its vectors. */
typedef struct hoist {
    uint32_t loop, lanes;
    bool only_adds; /* its body is updates of accumulators: what it loads does not change meanwhile */
} hoist;

/* Whether it is a load of one element that is in bounds, whose memory the loop does not write. */
static bool is_still(const cg_func *f, const hoist *h, ir_ref node, uint32_t outside)
{
    const ir_node *n = ir_at(f->ir, node);
    if (!h->only_adds || n->op != IR_LOAD || f->info[node].inside >> outside != 0 || f->info[node].stays)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (f->info[ir_operand(f->ir, node, i)].fresh)
            return false;
    return true;
}

/* Whether the walk has been at the node, which it then has. */
static bool is_seen(cg_func *f, ir_ref node)
{
    cg_entry *const pointer = &f->cache[CG_POINTER][node];
    const bool seen = pointer->scope == f->scopes[f->scope_count - 1];
    if (!seen)
        *pointer = (cg_entry){ .scope = f->scopes[f->scope_count - 1] };
    return seen;
}

/* Emits the value before the loop, which may run no iteration: operations are total, but loads must be in bounds in any
 * case. */
static void hoist_expr(cg_func *f, const hoist *h, ir_ref node, bool splat)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t loop = h->loop, lanes = h->lanes;
    const cg_info *info = &f->info[node];
    const uint32_t outside = f->piece->block.on ? f->piece->block.loop : loop; /* rows have values of their own */
    if (is_outside(info, outside) || is_still(f, h, node, outside)) {
        LLVMValueRef v = is_leaf(n) && !splat ? NULL : opjit_cg_emit(f, node);
        if (v && splat && lanes > 1 && n->op != IR_CONST && n->type != IR_INDEX && n->type != IR_BOOL)
            opjit_cg_emit_lanes(f, node, lanes);
        return;
    }
    if (is_seen(f, node))
        return;
    const bool varies = lanes > 1 && (info->vary >> loop & 1);
    for (uint32_t i = 0; i < n->count; i++)
        hoist_expr(f, h, ir_operand(f->ir, node, i), varies);
    if (n->op == IR_LOAD)
        opjit_cg_hoist_pointer(f, node, loop);
    if (n->op == IR_SELECT && varies && is_outside(&f->info[ir_operand(f->ir, node, 0)], outside))
        opjit_cg_hoist_joined(f, node, loop);
    if (n->op == IR_ELEM && varies)
        opjit_cg_hoist_start(f, node, loop, lanes);
}

/* Likewise values alone, no pointers; splat: in vectors. */
static void hoist_value(cg_func *f, ir_ref node, uint32_t loop, uint32_t lanes, bool splat)
{
    const ir_node *n = ir_at(f->ir, node);
    if (is_outside(&f->info[node], loop)) {
        if (!is_leaf(n) && n->type != IR_INDEX && n->type != IR_BOOL)
            (void)(splat ? opjit_cg_emit_lanes(f, node, lanes) : opjit_cg_emit(f, node));
        return;
    }
    if (n->op == IR_LOAD || is_seen(f, node))
        return;
    for (uint32_t i = 0; i < n->count; i++)
        hoist_value(f, ir_operand(f->ir, node, i), loop, lanes, true);
}

/* Values of an innermost loop with vectors that are the same in all of this one, too: a loop over lines that are as
 * short as a vector would make them again for each of these. */
static void hoist_inner(cg_func *f, ir_ref inner, uint32_t loop)
{
    const ir_node *c = ir_at(f->ir, inner);
    if (f->cpu->grid || f->piece->block.on || c->vec < 2 || c->hold)
        return;
    for (ir_ref s = c->body; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_FOR)
            return;
    for (ir_ref s = c->body; s != 0; s = ir_at(f->ir, s)->next)
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            hoist_value(f, ir_operand(f->ir, s, i), loop, c->vec, false);
}

/* Pointers and values for the loop's own statements; values for loops inside it. */
void opjit_cg_hoist(cg_func *f, ir_ref first, uint32_t loop, uint32_t lanes)
{
    hoist h = { loop, lanes, !f->piece->block.on };
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        h.only_adds = h.only_adds && ir_at(f->ir, s)->op == IR_UPD;
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s);
        for (uint32_t i = 0; i < n->count; i++)
            hoist_expr(f, &h, ir_operand(f->ir, s, i), lanes > 1 && n->op == IR_STORE && i == 0);
        if (n->op == IR_STORE)
            opjit_cg_hoist_pointer(f, s, loop);
        if (n->op == IR_FOR)
            hoist_inner(f, s, loop);
    }
}
