/* SPDX-License-Identifier: Apache-2.0 */
/* stmt.c - blocks of statements, one after the other, or copies of them side by side. */
#include "codegen/cg.h"
#include "codegen/emit/order.h"
#include "codegen/softops/kept.h"

/* --- statements --------------------------------------------------------------------------------------------------- */

/* An index let that is affine in the vectorised variable is looked through wherever it is read, so it needs no slot. */
static bool is_looked_through(const cg_func *f, ir_ref let)
{
    const ir_ref value = ir_operand(f->ir, let, 0);
    int64_t factor;
    return ir_at(f->ir, let)->type == IR_INDEX && opjit_cg_varies(f, value) && !f->info[value].fresh &&
           !f->info[value].stays && opjit_cg_affine(f, value, f->loops[f->piece->vec].var, &factor);
}

static void emit_statement(cg_func *f, ir_ref s)
{
    switch ((ir_op)ir_at(f->ir, s)->op) {
    case IR_FOR: f->put_loop(f, s); break;
    case IR_ACC: opjit_cg_acc(f, s); break;
    case IR_UPD: opjit_cg_upd(f, s); break;
    case IR_STORE: opjit_cg_store(f, s); break;
    case IR_SYNC: f->cpu->grid->sync(f); break;
    case IR_LET:
        if (!is_looked_through(f, s))
            opjit_cg_remember(f, CG_VALUE, s, f->piece->copy_scope, opjit_cg_emit(f, ir_operand(f->ir, s, 0)));
        break;
    default: break; /* the survey refuses it */
    }
}

/* --- copies side by side ------------------------------------------------------------------------------------------ */

/* Allocates what each copy remembers by itself.  false: no memory. */
static bool begin_sides(cg_func *f, uint32_t copies)
{
    static const cg_slot slots[] = { CG_VALUE, CG_SPLAT };
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
    loop->offset = (int64_t)copy * f->piece->lanes * loop->threads * loop->step;
}

/* Floats that vary, that may be computed anywhere in the statement, and that are more than a leaf: operands first, in
 * the order of emission. */
static void put_in_order(cg_func *f, ir_ref node, uint32_t *count)
{
    cg_info *info = &f->info[node];
    const ir_node *n = ir_at(f->ir, node);
    if (info->ordered == f->orders || !opjit_cg_varies(f, node) || n->type == IR_INDEX || n->count == 0)
        return;
    info->ordered = f->orders;
    const cg_order order = opjit_cg_order(f, node);
    if (n->op != IR_LOAD && !info->guarded)
        for (uint32_t i = 0; i < n->count; i++) /* as deep as emission, see the survey */
            put_in_order(f, ir_operand(f->ir, node, i < CG_ORDERED ? order.at[i] : i), count);
    if (!info->guarded && ir_is_float((ir_type)n->type))
        f->order[(*count)++] = node;
}

/* How many copies, up to `most`, one call of the function is for. */
static uint32_t copies_of_call(const cg_func *f, ir_ref node, uint32_t most)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t all = opjit_cg_math_copies(f, n);
    if (all == 0 || f->piece->mask || f->piece->lanes * opjit_ir_type_size((ir_type)n->type) < f->target->vector_bytes)
        return 1;
    return all <= most ? all : most >= CG_CALL_COPIES ? CG_CALL_COPIES : 1;
}

/* Emits so many copies, from `from` on, of a mathematical function. */
static void emit_together(cg_func *f, ir_ref node, uint32_t from, uint32_t copies)
{
    cg_math_values operands[CG_MATH_COPIES];
    LLVMValueRef out[CG_MATH_COPIES];
    for (uint32_t u = 0; u < copies; u++) {
        set_side(f, from + u);
        opjit_cg_math_operands(f, node, operands[u]);
    }
    opjit_cg_math_together(f, node, operands, copies, out);
    for (uint32_t u = 0; u < copies; u++) {
        set_side(f, from + u);
        opjit_cg_remember(f, CG_VALUE, node, f->info[node].fresh ? f->scope_count - 1 : f->piece->copy_scope, out[u]);
    }
}

static void emit_copies(cg_func *f, ir_ref node, uint32_t from, uint32_t to)
{
    for (uint32_t u = from, copies; u < to; u += copies) {
        copies = copies_of_call(f, node, to - u);
        set_side(f, u);
        if (copies > 1)
            emit_together(f, node, u, copies);
        else
            opjit_cg_emit(f, node);
    }
}

/* Emits copies [from, to): of each statement, each operation of one copy after that of the previous copy. */
static void emit_group(cg_func *f, ir_ref first, uint32_t from, uint32_t to)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        uint32_t count = 0;
        f->orders++;
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            if (ir_at(f->ir, s)->op != IR_STORE || i == 0)
                put_in_order(f, ir_operand(f->ir, s, i), &count);
        opjit_cg_scope_push(f);
        for (uint32_t i = 0; i < count; i++)
            emit_copies(f, f->order[i], from, to);
        for (uint32_t u = from; u < to; u++) {
            set_side(f, u);
            emit_statement(f, s);
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
