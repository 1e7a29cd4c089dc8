/* SPDX-License-Identifier: Apache-2.0 */
/* stmt.c - blocks of statements, and the basic blocks of loops and conditions. */
#include "codegen/cg.h"

/* --- early -------------------------------------------------------------------------------------------------------- */

LLVMBasicBlockRef opjit_cg_early_begin(cg_func *f, bool allowed)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->b);
    if (!allowed || !f->early || here == f->early)
        return NULL;
    LLVMPositionBuilderBefore(f->b, LLVMGetBasicBlockTerminator(f->early));
    return here;
}

void opjit_cg_early_end(cg_func *f, LLVMBasicBlockRef here)
{
    if (here)
        LLVMPositionBuilderAtEnd(f->b, here);
}

LLVMBasicBlockRef opjit_cg_early_here(cg_func *f)
{
    LLVMBasicBlockRef outer = f->early;
    f->early = LLVMGetInsertBlock(f->b);
    opjit_cg_next_block(f);
    return outer;
}

bool opjit_cg_is_early(const cg_func *f, ir_ref node)
{
    const cg_info *info = &f->info[node];
    return ir_at(f->ir, node)->type == IR_INDEX && info->inside >> 1 == 0 && !info->loads;
}

/* --- control flow ------------------------------------------------------------------------------------------------- */

/* On to the first round; where is a block before it that the variable's first value is stored at the end of, if it is
 * in memory. */
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
    return begin_rounds(f, c, f->early, lo, guard);
}

/* The variable's next value, stored where it has memory. */
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
    case IR_SYNC: f->cpu->grid->sync(f); break;
    case IR_LET:
        if (!is_looked_through(f, s))
            opjit_cg_remember(f, CG_VALUE, s, f->copy_scope, opjit_cg_emit(f, ir_operand(f->ir, s, 0)));
        break;
    default: break; /* the plan refuses it */
    }
}

/* --- copies side by side ------------------------------------------------------------------------------------------ */

/* What copies remember each by itself.  false: no memory, or too many of them. */
static bool begin_sides(cg_func *f, uint32_t copies)
{
    static const cg_slot slots[] = { CG_VALUE, CG_SPLAT };
    if (copies > CG_MAX_SIDE_BY_SIDE)
        return false;
    if (!f->order) {
        f->order = ARENA_ARRAY(f->arena, ir_ref, f->ir->node_count);
        memset(f->sides, 0, sizeof(f->sides));
    }
    memcpy(f->sides[0], f->cache, sizeof(f->cache));
    for (uint32_t u = 1; u < copies && f->order; u++) {
        if (f->sides[u][CG_VALUE])
            continue;
        memcpy(f->sides[u], f->cache, sizeof(f->cache));
        for (uint32_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
            f->sides[u][slots[i]] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
            f->failed = f->failed || !f->sides[u][slots[i]];
        }
    }
    f->failed = f->failed || !f->order;
    return !f->failed;
}

static void set_side(cg_func *f, uint32_t copy)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    memcpy(f->own, f->sides[copy], sizeof(f->own));
    loop->offset = (int64_t)copy * f->lanes * loop->threads * loop->step;
}

/* Floats that vary, may be computed anywhere in the statement, and are more than a leaf: operands first, as they are
 * emitted. */
static void put_in_order(cg_func *f, ir_ref node, uint32_t *count)
{
    cg_info *info = &f->info[node];
    const ir_node *n = ir_at(f->ir, node);
    if (info->ordered == f->orders || !opjit_cg_varies(f, node) || n->type == IR_INDEX || n->count == 0)
        return;
    info->ordered = f->orders;
    if (n->op != IR_LOAD && !info->guarded)
        for (uint32_t i = 0; i < n->count; i++)
            put_in_order(f, ir_operand(f->ir, node, i), count); /* as deep as emission, see the plan */
    if (!info->guarded && ir_is_float((ir_type)n->type))
        f->order[(*count)++] = node;
}

/* Copies [from, to): of each statement, an operation of one after that of the other. */
static void emit_group(cg_func *f, ir_ref first, uint32_t from, uint32_t to)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        uint32_t count = 0;
        f->orders++;
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            if (ir_at(f->ir, s)->op != IR_STORE || i == 0)
                put_in_order(f, ir_operand(f->ir, s, i), &count);
        opjit_cg_scope_push(f);
        for (uint32_t i = 0; i <= count; i++) {
            for (uint32_t u = from; u < to; u++) {
                set_side(f, u);
                if (i < count)
                    opjit_cg_emit(f, f->order[i]);
                else
                    emit_statement(f, s);
            }
        }
        opjit_cg_scope_pop(f);
    }
}

bool opjit_cg_side_by_side(cg_func *f, ir_ref first, uint32_t copies, uint32_t abreast)
{
    const uint32_t group = copies < abreast ? copies : abreast;
    if (!begin_sides(f, copies))
        return false;
    for (uint32_t from = 0; from < copies; from += group) {
        opjit_cg_forget_kept(f);
        emit_group(f, first, from, from + group < copies ? from + group : copies);
    }
    set_side(f, 0);
    return true;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

void opjit_cg_block(cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        opjit_cg_scope_push(f);
        emit_statement(f, s);
        opjit_cg_scope_pop(f);
    }
}
