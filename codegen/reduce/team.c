/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - accumulators whose lanes are the threads of a GPU's team: in registers around a loop; where a team is a
 * block of several warps, the warps' results are combined.  Steps, folds and totals are in accumulator.c. */
#include "codegen/reduce/accumulator.h"
#include "codegen/gpu/grid.h"

static LLVMValueRef number(cg_func *f, uint32_t bits, uint64_t value)
{
    return opjit_cg_number(f, bits, 1, value);
}

/* --- one lane per thread ----------------------------------------------------------------------------------------- */

static cg_part held_entry(cg_func *f, const ir_node *acc, const cg_acc *a)
{
    cg_part e = { .value = a->held[0] };
    if (cg_acc_is_arg(acc)) {
        e.where = a->held[1];
        e.some = cg_is_set(f, a->held[2]);
    }
    return e;
}

static void hold_entry(cg_func *f, const ir_node *acc, cg_acc *a, cg_part e)
{
    a->held[0] = e.value;
    if (cg_acc_is_arg(acc)) {
        a->held[1] = e.where;
        a->held[2] = opjit_cg_resize(f, e.some, 8, false);
    }
}

void opjit_cg_apart_update(cg_func *f, const ir_node *acc, cg_acc *a, cg_part e)
{
    hold_entry(f, acc, a, opjit_cg_acc_combine(f, acc, a, held_entry(f, acc, a), e));
}

/* The accumulator of statement s, if each thread has one of its lanes and no statement of the body before s updates it;
 * else NULL. */
static cg_acc *apart_of(const cg_func *f, ir_ref body, ir_ref s)
{
    const ir_node *n = ir_at(f->ir, s);
    if (n->op != IR_UPD || !f->accs[n->ref]->apart)
        return NULL;
    for (ir_ref r = body; r != s; r = ir_at(f->ir, r)->next)
        if (ir_at(f->ir, r)->op == IR_UPD && ir_at(f->ir, r)->ref == n->ref)
            return NULL;
    return f->accs[n->ref];
}

static uint32_t parts_of(const cg_func *f, ir_ref s)
{
    return cg_acc_is_arg(ir_at(f->ir, ir_at(f->ir, s)->ref)) ? 3 : 1;
}

void opjit_cg_apart_load(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        const ir_node *acc = ir_at(f->ir, ir_at(f->ir, s)->ref);
        if (a)
            hold_entry(f, acc, a, opjit_cg_acc_read(f, acc, a, 1, number(f, 64, 0)));
    }
}

void opjit_cg_apart_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        for (uint32_t i = 0; a && i < parts_of(f, s); i++) {
            a->phis[i] = LLVMBuildPhi(f->b, LLVMTypeOf(a->held[i]), "");
            LLVMAddIncoming(a->phis[i], &a->held[i], &before, 1);
            a->held[i] = a->phis[i];
        }
    }
}

void opjit_cg_apart_end(cg_func *f, ir_ref body, LLVMBasicBlockRef latch)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = apart_of(f, body, s);
        const ir_node *acc = ir_at(f->ir, ir_at(f->ir, s)->ref);
        for (uint32_t i = 0; a && i < parts_of(f, s); i++) {
            LLVMAddIncoming(a->phis[i], &a->held[i], &latch, 1);
            a->held[i] = a->phis[i];
        }
        if (a)
            opjit_cg_acc_write(f, acc, a, number(f, 64, 0), held_entry(f, acc, a));
    }
}

bool opjit_cg_apart_blocked(const cg_func *f, ir_ref body)
{
    bool blocked = false;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        blocked = blocked || (a && a->blocked);
    }
    return blocked;
}

void opjit_cg_apart_enter(cg_func *f, ir_ref body, LLVMValueRef k)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a && a->blocked)
            opjit_cg_acc_enter_block(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a, k);
    }
}

/* --- a team that is a block --------------------------------------------------------------------------------------- */

void opjit_cg_apart_reset(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a)
            opjit_cg_acc_reset(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a);
    }
}

/* What each warp's lanes fold to, by warp: values, their indices, whether there is one. */
typedef struct folds {
    LLVMValueRef value, where, some;
} folds;

static cg_part read_fold(cg_func *f, const ir_node *acc, const cg_acc *a, const folds *p, LLVMValueRef warp)
{
    cg_part e = { .value = opjit_cg_array_read(f, p->value, cg_acc_bits(a), 1, warp) };
    if (cg_acc_is_arg(acc)) {
        e.where = opjit_cg_array_read(f, p->where, 64, 1, warp);
        e.some = cg_is_set(f, opjit_cg_array_read(f, p->some, 8, 1, warp));
    }
    return e;
}

static void write_fold(cg_func *f, const ir_node *acc, const cg_acc *a, const folds *p, LLVMValueRef warp)
{
    const cg_part e = opjit_cg_acc_fold(f, acc, a);
    LLVMValueRef lane = LLVMBuildAnd(f->b, f->thread, number(f, 64, IR_REDUCE_LANES - 1), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntEQ, lane, number(f, 64, 0), ""));
    opjit_cg_array_write(f, p->value, cg_acc_bits(a), warp, opjit_cg_as_bits(f, e.value));
    if (cg_acc_is_arg(acc)) {
        opjit_cg_array_write(f, p->where, 64, warp, e.where);
        opjit_cg_array_write(f, p->some, 8, warp, opjit_cg_resize(f, e.some, 8, false));
    }
    opjit_cg_if_end(f, after);
}

static void meet(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef warp, LLVMValueRef k, LLVMValueRef hi)
{
    const uint64_t warps = f->launch.team / IR_REDUCE_LANES;
    LLVMValueRef base = opjit_cg_grid_folds(f);
    const folds p = { base, opjit_cg_offset(f, f->type.i64, base, number(f, 64, warps)),
                      opjit_cg_offset(f, f->type.i64, base, number(f, 64, 2 * warps)) };
    write_fold(f, acc, a, &p, warp);
    f->cpu->grid->sync(f);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildBr(f->b, body);
    LLVMPositionBuilderAtEnd(f->b, body);
    LLVMValueRef at = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(at, &k, &before, 1);
    LLVMValueRef which = LLVMBuildLShr(f->b, LLVMBuildSub(f->b, at, k, ""), number(f, 64, IR_REDUCE_BLOCK_SHIFT), "");
    opjit_cg_acc_add_block(f, acc, a, read_fold(f, acc, a, &p, which));
    LLVMValueRef next = LLVMBuildAdd(f->b, at, number(f, 64, IR_REDUCE_BLOCK), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    LLVMAddIncoming(at, &next, &latch, 1);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, next, hi, ""), body, after);
    LLVMMoveBasicBlockAfter(after, latch);
    LLVMPositionBuilderAtEnd(f->b, after);
    f->cpu->grid->sync(f); /* before the next ones are written */
}

void opjit_cg_apart_meet(cg_func *f, ir_ref body, LLVMValueRef warp, LLVMValueRef k, LLVMValueRef hi)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const cg_acc *const a = apart_of(f, body, s);
        if (a)
            meet(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a, warp, k, hi);
    }
}
