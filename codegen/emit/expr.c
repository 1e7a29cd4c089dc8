/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - expressions, each emitted once and remembered, as a scalar or in lanes.  f->op (ops.c) emits one node; it
 * comes back here for the node's operands. */
#include "codegen/emit/masks.h"
#include "codegen/emit/order.h"

bool opjit_cg_varies(const cg_func *f, ir_ref node)
{
    return f->piece->lanes > 1 && (f->info[node].vary & f->info[f->loops[f->piece->vec].var].vary) != 0;
}

cg_order opjit_cg_order(const cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    cg_order order = { { 0, 1, 2 } };
    uint32_t weights[CG_ORDERED] = { 0 };
    for (uint32_t i = 0; i < n->count && i < CG_ORDERED; i++) {
        const uint32_t weight = f->info[ir_operand(f->ir, node, i)].weight;
        uint32_t at = i;
        for (; at > 0 && weights[at - 1] < weight; at--) {
            weights[at] = weights[at - 1];
            order.at[at] = order.at[at - 1];
        }
        weights[at] = weight;
        order.at[at] = i;
    }
    return order;
}

LLVMValueRef opjit_cg_emit(cg_func *f, ir_ref node)
{
    LLVMValueRef v = opjit_cg_recall(f, CG_VALUE, node);
    if (v)
        return v;
    if (ir_at(f->ir, node)->op == IR_VAR)
        return f->op(f, node); /* another block may have to read it again */
    const cg_when when = opjit_cg_when(f, node);
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, when);
    v = f->op(f, node);
    opjit_cg_early_end(f, here);
    const cg_info *info = &f->info[node];
    /* Valid for this statement, or this mask. */
    const bool short_lived = info->fresh || (f->piece->mask && info->guarded);
    const uint32_t scope = when == CG_AT_ENTRY ? 0 : short_lived ? f->scope_count - 1 : f->piece->copy_scope;
    opjit_cg_remember(f, CG_VALUE, node, scope, v);
    return v;
}

LLVMValueRef opjit_cg_emit_lanes(cg_func *f, ir_ref node, uint32_t lanes)
{
    LLVMValueRef v = opjit_cg_emit(f, node);
    if (lanes <= 1 || opjit_cg_lanes(v) > 1)
        return v;
    if (LLVMIsConstant(v))
        return opjit_cg_splat(f, v, lanes);
    LLVMValueRef wide = opjit_cg_recall(f, CG_SPLAT, node);
    if (!wide || opjit_cg_lanes(wide) != lanes) {
        wide = LLVMTypeOf(v) == f->type.i1 ? opjit_cg_condition_lanes(f, v, lanes) : opjit_cg_splat(f, v, lanes);
        const bool short_lived = f->info[node].fresh || (f->piece->mask && f->info[node].guarded);
        opjit_cg_remember(f, CG_SPLAT, node, short_lived ? f->scope_count - 1 : f->piece->copy_scope, wide);
    }
    return wide;
}
