/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - the basic blocks of loops and conditions, and what should be computed in an earlier one. */
#include "codegen/plan.h"

/* --- early -------------------------------------------------------------------------------------------------------- */

LLVMBasicBlockRef opjit_cg_early_begin(cg_func *f, cg_when when)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->b), entry = LLVMGetEntryBasicBlock(f->fn);
    LLVMBasicBlockRef to = when == CG_AT_ENTRY ? entry : when == CG_EARLY ? f->piece->early : NULL;
    LLVMValueRef end = to != NULL ? LLVMGetBasicBlockTerminator(to) : NULL;
    if (end == NULL || here == to || here == entry)
        return NULL;
    LLVMPositionBuilderBefore(f->b, end);
    return here;
}

/* A block that is left already is the early one, which the entry was made from. */
void opjit_cg_early_end(cg_func *f, LLVMBasicBlockRef here)
{
    LLVMValueRef end = here != NULL ? LLVMGetBasicBlockTerminator(here) : NULL;
    if (end != NULL)
        LLVMPositionBuilderBefore(f->b, end);
    else if (here != NULL)
        LLVMPositionBuilderAtEnd(f->b, here);
}

void opjit_cg_early_here(cg_func *f)
{
    f->piece->early = LLVMGetInsertBlock(f->b);
    opjit_cg_next_block(f);
}

cg_when opjit_cg_when(const cg_func *f, ir_ref node)
{
    const cg_info *info = &f->info[node];
    if (ir_at(f->ir, node)->type != IR_INDEX || info->inside >> 1 != 0 || info->late)
        return CG_HERE;
    return info->inside == 0 && f->stage->same ? CG_AT_ENTRY : CG_EARLY;
}

/* --- control flow ------------------------------------------------------------------------------------------------- */

/* Begins the first round; `where` is a block before it, at whose end the variable's first value is stored if the
 * variable is in memory. */
static LLVMValueRef begin_rounds(cg_func *f, cg_count *c, LLVMBasicBlockRef where, LLVMValueRef lo, LLVMValueRef guard)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    f->rounds = true;
    c->body = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    c->after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    c->slot = where ? opjit_cg_alloca(f, f->type.i64) : NULL;
    if (guard)
        LLVMBuildCondBr(f->b, guard, c->body, c->after);
    else
        LLVMBuildBr(f->b, c->body);
    if (where) {
        LLVMPositionBuilderBefore(f->b, LLVMGetBasicBlockTerminator(where));
        LLVMBuildStore(f->b, lo, c->slot);
    }
    LLVMPositionBuilderAtEnd(f->b, c->body);
    if (where)
        return c->iv = LLVMBuildLoad2(f->b, f->type.i64, c->slot, "");
    c->iv = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(c->iv, &lo, &before, 1);
    return c->iv;
}

LLVMValueRef opjit_cg_count_begin(cg_func *f, cg_count *c, bool blocks, LLVMValueRef lo, LLVMValueRef guard)
{
    c->early = false;
    return begin_rounds(f, c, blocks && !f->peak ? LLVMGetInsertBlock(f->b) : NULL, lo, guard);
}

LLVMValueRef opjit_cg_count_begin_early(cg_func *f, cg_count *c, LLVMValueRef lo, LLVMValueRef guard)
{
    c->early = true;
    return begin_rounds(f, c, f->piece->early, lo, guard);
}

/* The variable's next value, stored if the variable is in memory. */
static LLVMValueRef next_round(cg_func *f, const cg_count *c, int64_t step)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->b);
    LLVMValueRef iv = c->slot && here != c->body ? LLVMBuildLoad2(f->b, f->type.i64, c->slot, "") : c->iv;
    LLVMValueRef next = LLVMBuildAdd(f->b, opjit_cg_opaque(f, iv), opjit_cg_number(f, 64, 1, (uint64_t)step), "");
    if (c->slot)
        LLVMBuildStore(f->b, next, c->slot);
    else
        LLVMAddIncoming(c->iv, &next, &here, 1);
    return next;
}

void opjit_cg_count_end(cg_func *f, cg_count *c, int64_t step, LLVMValueRef hi)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b), again = c->body;
    LLVMValueRef next;
    if (c->early) {
        LLVMValueRef iv = latch != c->body ? LLVMBuildLoad2(f->b, f->type.i64, c->slot, "") : c->iv;
        next = LLVMBuildAdd(f->b, iv, opjit_cg_number(f, 64, 1, (uint64_t)step), "");
        again = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    } else {
        next = next_round(f, c, step);
    }
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntNE, next, hi, ""), again, c->after);
    if (c->early) {
        LLVMPositionBuilderAtEnd(f->b, again);
        next_round(f, c, step);
        LLVMBuildBr(f->b, c->body);
    }
    LLVMMoveBasicBlockAfter(c->after, LLVMGetInsertBlock(f->b));
    LLVMPositionBuilderAtEnd(f->b, c->after);
}

LLVMBasicBlockRef opjit_cg_if_begin(cg_func *f, LLVMValueRef condition)
{
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildCondBr(f->b, condition, then, after);
    LLVMPositionBuilderAtEnd(f->b, then);
    return after;
}

void opjit_cg_if_leave(cg_func *f, LLVMBasicBlockRef otherwise, LLVMBasicBlockRef end)
{
    LLVMBuildBr(f->b, end);
    LLVMMoveBasicBlockAfter(otherwise, LLVMGetInsertBlock(f->b));
    LLVMPositionBuilderAtEnd(f->b, otherwise);
}

void opjit_cg_if_end(cg_func *f, LLVMBasicBlockRef after)
{
    opjit_cg_if_leave(f, after, after);
}

void opjit_cg_next_block(cg_func *f)
{
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    opjit_cg_if_end(f, next);
}
