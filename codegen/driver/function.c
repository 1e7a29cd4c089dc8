/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - one stage, one function: its survey and plan, its parallel loop, its end. */
#include "codegen/driver/driver.h"
#include "codegen/emit/access.h"
#include "codegen/gpu/grid.h"
#include "codegen/plan.h"

enum { STACK_ALIGN = 16 /* bytes, of every calling convention here */ };

/* No noalias anywhere: the pointers come from an array, and an output may share an input's memory. */
static void begin_function(cg_func *f, const char *name)
{
    f->fn = LLVMAddFunction(f->module, name, opjit_cg_stage_type(f));
    opjit_cg_attributes(f, f->fn);
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, f->fn, ""));
}

/* A vector that does not fit into registers goes to the stack, which callers align to 16 bytes only.  A store across
 * two pages is very slow beside stores around the caches. */
static void align_stack(cg_func *f)
{
    if (f->vectors && f->rounds && f->target->vector_bytes > STACK_ALIGN)
        LLVMAddAttributeAtIndex(f->fn, LLVMAttributeFunctionIndex,
                                compat_attribute(f->llvm, "alignstack", f->target->vector_bytes));
}

static void end_function(cg_func *f)
{
    align_stack(f);
    if (f->fence) {
        LLVMTypeRef type;
        LLVMValueRef fence = compat_intrinsic(&f->latest, f->module, f->llvm, f->cpu->fence, NULL, 0, &type);
        LLVMBuildCall2(f->b, type, fence, NULL, 0, "");
    }
    LLVMBuildRetVoid(f->b);
}

/* A stage of one iteration: no loop, and no value before it that would have to be kept. */
static void emit_once(cg_func *f, const ir_node *n, LLVMValueRef guard)
{
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, guard);
    f->loops[0].iv = opjit_cg_number(f, 64, 1, 0);
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
    opjit_cg_block(f, n->body);
    opjit_cg_scope_pop(f);
    opjit_cg_if_end(f, after);
    opjit_cg_scope_pop(f);
}

/* Iterations from begin, if guard holds, to end, `once` of them per round: one after the other, or in lanes. */
static void emit_iterations(cg_func *f, ir_ref body, LLVMValueRef begin, LLVMValueRef end, LLVMValueRef guard,
                            int64_t once, uint32_t lanes)
{
    cg_loop *loop = &f->loops[0];
    cg_count c;
    LLVMValueRef iv = opjit_cg_opaque(f, opjit_cg_count_begin(f, &c, true, begin, guard));
    loop->iv = iv;
    loop->slot = c.slot;
    loop->home = c.body;
    for (int64_t k = 0; k < once; k += lanes) {
        if (k > 0) {
            loop->iv = opjit_cg_add(f, iv, opjit_cg_number(f, 64, 1, (uint64_t)k));
            loop->slot = NULL;
        }
        cg_piece own;
        cg_piece_begin(f, &own);
        opjit_cg_scope_push(f);
        f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
        f->piece->lanes = lanes;
        f->piece->shifted = lanes > 1;
        if (f->stage->early)
            opjit_cg_early_here(f);
        opjit_cg_block(f, body);
        opjit_cg_scope_pop(f);
        cg_piece_end(f);
    }
    opjit_cg_count_end(f, &c, once, end);
}

/* The iteration number is the variable; iterations from begin to end. */
static void emit_stage(cg_func *f, ir_ref stage)
{
    const ir_node *n = ir_at(f->ir, stage);
    LLVMValueRef begin = LLVMGetParam(f->fn, 4), end = LLVMGetParam(f->fn, 5);
    f->loops[0] = (cg_loop){ .var = n->ref, .iv = begin, .step = 1, .threads = 1 };
    f->loop_count = 1;
    f->piece->lanes = f->piece->copies = 1;
    f->piece->lane_bits = 8;
    opjit_cg_scope_push(f);
    f->loops[0].scope = f->next_scope;
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = 0;
    LLVMValueRef guard = LLVMBuildICmp(f->b, LLVMIntSLT, begin, end, "");
    LLVMPositionBuilderBefore(f->entry, guard); /* everything that it makes dominates the function */
    if (f->stage->once) {
        emit_once(f, n, guard);
        return;
    }
    if (f->stage->rows.copies > 0) { /* of an odd number of rows the middle one is done twice */
        f->rows_apart = LLVMBuildLShr(f->b, opjit_cg_sub(f, end, begin), opjit_cg_number(f, 64, 1, 1), "");
        end = opjit_cg_sub(f, end, f->rows_apart);
    }
    opjit_cg_hoist(f, n->body, 0, 1);
    const int64_t once = f->stage->at_once;
    if (once > 1) {
        LLVMValueRef count = opjit_cg_sub(f, opjit_cg_limit(f, true, end, begin), begin);
        LLVMValueRef whole = LLVMBuildAnd(f->b, count, opjit_cg_number(f, 64, 1, (uint64_t)-once), "");
        LLVMValueRef rest = opjit_cg_add(f, begin, whole);
        emit_iterations(f, n->body, begin, rest, LLVMBuildICmp(f->b, LLVMIntSLT, begin, rest, ""), once,
                        f->stage->interleaved > 1 ? f->stage->interleaved : 1);
        guard = LLVMBuildICmp(f->b, LLVMIntSLT, rest, end, "");
        begin = rest;
    }
    emit_iterations(f, n->body, begin, end, guard, 1, 1);
    opjit_cg_scope_pop(f);
}

/* Allocates the tables of one stage in the arena, zeroed. */
static bool allocate(cg_func *f)
{
    f->info = ARENA_ARRAY(f->arena, cg_info, f->ir->node_count);
    f->accs = ARENA_ARRAY(f->arena, cg_acc *, f->ir->node_count);
    f->bases = ARENA_ARRAY(f->arena, LLVMValueRef, f->ir->tensor_count);
    f->params = ARENA_ARRAY(f->arena, LLVMValueRef, f->ir->param_count);
    bool ok = f->info && f->accs && f->bases && f->params;
    for (uint32_t i = 0; i < CG_SLOTS; i++) {
        f->cache[i] = f->own[i] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
        ok = ok && f->cache[i];
    }
    return ok;
}

/* The stage's IR with a table of intervals, which plans ask for again and again. */
static bool keep_intervals(cg_func *f)
{
    ir_func *const ir = opjit_rt_arena_copy(f->arena, f->ir, 1, sizeof *f->ir);
    if (!ir)
        return false;
    f->ir = ir;
    opjit_ir_keep_intervals(ir, f->arena);
    return !ir->failed;
}

opjit_status opjit_cg_prepare(cg_func *f)
{
    const ir_ref stage = f->ir->body;
    if (!keep_intervals(f) || !allocate(f))
        return opjit_rt_no_memory(f->error);
    if (f->cpu->grid)
        opjit_ir_launch_of(f->ir, stage, &f->launch);
    f->traits = opjit_cg_traits(f->target);
    f->op = opjit_cg_op;
    f->put_loop = opjit_cg_for;
    f->piece = &f->root;
    TRY(opjit_cg_survey(f, stage));
    return opjit_cg_plan(f, stage);
}

opjit_status opjit_cg_stage(cg_func *f, const char *name)
{
    const ir_ref stage = f->ir->body;
    TRY(opjit_cg_prepare(f));
    if (f->cpu->grid) {
        if (!opjit_cg_grid_begin(f, name))
            return opjit_rt_no_memory(f->error);
        opjit_cg_grid_stage(f, stage);
    } else {
        begin_function(f, name);
        emit_stage(f, stage);
    }
    end_function(f);
    return f->failed ? opjit_rt_no_memory(f->error) : OPJIT_OK;
}

opjit_status opjit_cg_stage_call(cg_func *f, const char *name, LLVMValueRef code)
{
    const uint32_t count = f->ir->tensor_count - 1;
    LLVMValueRef args[6];
    f->bases = ARENA_ARRAY(f->arena, LLVMValueRef, f->ir->tensor_count);
    if (!f->bases)
        return opjit_rt_no_memory(f->error);
    begin_function(f, name);
    LLVMPositionBuilderAtEnd(f->entry, LLVMGetInsertBlock(f->b));
    LLVMGetParams(f->fn, args);
    LLVMValueRef table = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.ptr, count), "");
    for (uint32_t t = 1; t <= count; t++) {
        LLVMValueRef place = opjit_cg_number(f, 64, 1, t - 1);
        if (cg_has_place(&f->ir->tensors[t]))
            LLVMBuildStore(f->b, opjit_cg_base_pointer(f, t), opjit_cg_offset(f, f->type.ptr, table, place));
    }
    args[0] = table;
    LLVMBuildCall2(f->b, opjit_cg_stage_type(f), code, args, 6, "");
    LLVMBuildRetVoid(f->b);
    return OPJIT_OK;
}
