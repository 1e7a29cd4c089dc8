/* SPDX-License-Identifier: Apache-2.0 */
/* affine.c - index expressions that are affine in a loop's variable, and their value in lane 0 of copy 0. */
#include "codegen/emit/indices.h"

/* --- affine forms ------------------------------------------------------------------------------------------------- */

static bool depends(const cg_func *f, ir_ref node, ir_ref var)
{
    return (f->info[node].vary & f->info[var].vary) != 0;
}

/* Looks through a let of an affine value; not through one that reads memory, which may have changed since. */
static ir_ref let_value(const cg_func *f, ir_ref get)
{
    const ir_ref let = ir_at(f->ir, get)->ref;
    return ir_at(f->ir, let)->op == IR_LET && !f->info[let].fresh ? ir_operand(f->ir, let, 0) : 0;
}

/* A variable, with the survey's knowledge of what depends on it. */
typedef struct survey_moving {
    ir_moving m;
    const cg_func *f;
} survey_moving;

static bool moves(const ir_moving *m, ir_ref node)
{
    return depends(((const survey_moving *)(const void *)m)->f, node, m->var);
}

/* A large value counts as unknown: shared parts of it would be walked again and again. */
static ir_ref value_of(const ir_moving *m, ir_ref get)
{
    const cg_func *f = ((const survey_moving *)(const void *)m)->f;
    const ir_ref value = let_value(f, get);
    return value && f->info[value].weight <= CG_MAX_WEIGHT ? value : 0;
}

#define MOVING(f, variable)                                                          \
    {                                                                                \
        { .f = (f)->ir, .var = (variable), .varies = moves, .value = value_of }, (f) \
    }

bool opjit_cg_affine(const cg_func *f, ir_ref node, ir_ref var, int64_t *factor)
{
    const survey_moving s = MOVING(f, var);
    *factor = 0;
    if (node != var && depends(f, node, var) && f->info[node].weight > CG_MAX_WEIGHT)
        return false;
    return opjit_ir_factor_of(&s.m, node, factor);
}

bool opjit_cg_pace_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_pace *io)
{
    const survey_moving s = MOVING(f, var);
    return f->info[node].weight <= CG_MAX_WEIGHT && opjit_ir_pace_add(&s.m, node, factor, io);
}

bool opjit_cg_turns_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_turns *io)
{
    const survey_moving s = MOVING(f, var);
    return opjit_ir_turns_add(&s.m, node, factor, io);
}

bool opjit_cg_lane_step(const cg_func *f, ir_ref node, int64_t *step, int64_t *offset)
{
    const cg_loop *loop = &f->loops[f->piece->vec];
    int64_t factor;
    return opjit_cg_affine(f, node, loop->var, &factor) && checked_muli(factor, loop->step, step) &&
           checked_muli(factor, loop->offset, offset);
}

static cg_loop *loop_of(cg_func *f, ir_ref var)
{
    for (uint32_t i = f->loop_count; i-- > 0;)
        if (f->loops[i].var == var)
            return &f->loops[i];
    return &f->loops[0];
}

LLVMValueRef opjit_cg_variable(cg_func *f, cg_loop *loop)
{
    if (loop->slot && LLVMGetInsertBlock(f->b) != loop->home) {
        loop->home = LLVMGetInsertBlock(f->b);
        loop->iv = LLVMBuildLoad2(f->b, f->type.i64, loop->slot, "");
    }
    return loop->iv;
}

LLVMValueRef opjit_cg_var_value(cg_func *f, ir_ref var, bool with_offset)
{
    cg_loop *loop = loop_of(f, var);
    LLVMValueRef iv = opjit_cg_variable(f, loop);
    if (!with_offset || loop->offset == 0)
        return iv;
    return opjit_cg_add(f, iv, opjit_cg_number(f, 64, 1, (uint64_t)loop->offset));
}

/* --- scalars ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef base_of(cg_func *f, ir_ref node)
{
    const ir_ref var = f->loops[f->piece->vec].var;
    if (node == var)
        return opjit_cg_var_value(f, node, false);
    if (!depends(f, node, var))
        return opjit_cg_emit(f, node);
    const ir_node *n = ir_at(f->ir, node);
    if (n->op == IR_GET)
        return opjit_cg_base(f, let_value(f, node));
    LLVMValueRef a = opjit_cg_base(f, ir_operand(f->ir, node, 0));
    LLVMValueRef b = opjit_cg_base(f, ir_operand(f->ir, node, 1));
    return opjit_cg_of_numbers(f, n->op == IR_IADD ? LLVMAdd : n->op == IR_ISUB ? LLVMSub : LLVMMul, a, b);
}

LLVMValueRef opjit_cg_base(cg_func *f, ir_ref node)
{
    LLVMValueRef v = opjit_cg_recall(f, CG_BASE, node);
    if (!v) {
        v = base_of(f, node);
        opjit_cg_remember(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->piece->loop_scope, v);
    }
    return v;
}
