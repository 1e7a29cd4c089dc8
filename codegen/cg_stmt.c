/* cg_stmt.c - blocks of statements, and the basic blocks of loops and conditions. */
#include "codegen/cg.h"

/* --- control flow ------------------------------------------------------------------------------------------------- */

LLVMValueRef opjit_cg_count_begin(cg_func *f, cg_count *c, bool blocks, LLVMValueRef lo, LLVMValueRef guard)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    c->body = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    c->after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    c->slot = blocks && !f->peak ? opjit_cg_alloca(f, f->type.i64) : NULL;
    if (c->slot)
        LLVMBuildStore(f->b, lo, c->slot);
    if (guard)
        LLVMBuildCondBr(f->b, guard, c->body, c->after);
    else
        LLVMBuildBr(f->b, c->body);
    LLVMPositionBuilderAtEnd(f->b, c->body);
    if (c->slot)
        return c->iv = LLVMBuildLoad2(f->b, f->type.i64, c->slot, "");
    c->iv = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(c->iv, &lo, &before, 1);
    return c->iv;
}

void opjit_cg_count_end(cg_func *f, cg_count *c, int64_t step, LLVMValueRef hi)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    LLVMValueRef iv = c->slot && latch != c->body ? LLVMBuildLoad2(f->b, f->type.i64, c->slot, "") : c->iv;
    LLVMValueRef next = LLVMBuildAdd(f->b, opjit_cg_opaque(f, iv), opjit_cg_number(f, 64, 1, (uint64_t)step), "");
    if (c->slot)
        LLVMBuildStore(f->b, next, c->slot);
    else
        LLVMAddIncoming(c->iv, &next, &latch, 1);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntNE, next, hi, ""), c->body, c->after);
    LLVMMoveBasicBlockAfter(c->after, latch);
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

void opjit_cg_if_end(cg_func *f, LLVMBasicBlockRef after)
{
    LLVMBuildBr(f->b, after);
    LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(f->b));
    LLVMPositionBuilderAtEnd(f->b, after);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

/* An index let that is affine in the vectorised variable is looked through wherever it is read: no place is made for
 * it. */
static bool is_looked_through(const cg_func *f, ir_ref let)
{
    const ir_ref value = ir_operand(f->ir, let, 0);
    int64_t factor;
    return ir_at(f->ir, let)->type == IR_INDEX && opjit_cg_varies(f, value) && !f->info[value].fresh &&
           !f->info[value].guarded && opjit_cg_affine(f, value, f->loops[f->vec].var, &factor);
}

static void emit_statement(cg_func *f, ir_ref s)
{
    switch ((ir_op)ir_at(f->ir, s)->op) {
    case IR_FOR: opjit_cg_for(f, s); break;
    case IR_ACC: opjit_cg_acc(f, s); break;
    case IR_UPD: opjit_cg_upd(f, s); break;
    case IR_STORE: opjit_cg_store(f, s); break;
    case IR_LET:
        if (!is_looked_through(f, s))
            opjit_cg_remember(f, CG_VALUE, s, f->copy_scope, opjit_cg_emit(f, ir_operand(f->ir, s, 0)));
        break;
    default: break; /* the plan refuses it */
    }
}

void opjit_cg_block(cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        opjit_cg_scope_push(f);
        emit_statement(f, s);
        opjit_cg_scope_pop(f);
    }
}
