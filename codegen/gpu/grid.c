/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - stages as kernels for a grid of threads: each thread does the part that pass grid (ir/passes/grid) assigns
 * to it.  The rest of codegen emits the program of one thread as it emits that of a CPU. */
#include "codegen/gpu/grid.h"
#include "codegen/plan.h"
#include "ir/eval/numerics.h"

static LLVMValueRef number(cg_func *f, int64_t value)
{
    return opjit_cg_number(f, 64, 1, (uint64_t)value);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

/* Buffers by slot, parameters in 64 bits, the workspace. */
static LLVMTypeRef kernel_type(const cg_func *f)
{
    const uint32_t params = f->ir->param_count - 1, count = f->buffer_count + params + 1;
    LLVMTypeRef *types = ARENA_ARRAY(f->arena, LLVMTypeRef, count);
    for (uint32_t i = 0; types && i < count; i++)
        types[i] = i >= f->buffer_count && i + 1 < count ? f->type.i64 : f->type.ptr;
    return types ? LLVMFunctionType(f->type.none, types, count, 0) : NULL;
}

bool opjit_cg_grid_begin(cg_func *f, const char *name)
{
    LLVMTypeRef type = kernel_type(f);
    if (!type)
        return false;
    f->fn = LLVMAddFunction(f->module, name, type);
    opjit_cg_attributes(f, f->fn);
    f->cpu->grid->kernel(f, f->fn, f->launch.block);
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, f->fn, ""));
    return true;
}

LLVMValueRef opjit_cg_grid_param(cg_func *f, uint32_t param, ir_type type)
{
    LLVMValueRef v = LLVMGetParam(f->fn, f->buffer_count + param);
    const uint32_t bits = 8 * opjit_ir_type_size(type);
    return bits == 64 ? v : LLVMBuildTrunc(f->entry, v, opjit_cg_int(f, bits, 1), "");
}

static LLVMValueRef moved(cg_func *f, LLVMValueRef p, LLVMValueRef bytes)
{
    return LLVMBuildGEP2(f->entry, f->type.i8, p, &bytes, 1, "");
}

/* The block's shared memory. */
static LLVMValueRef block_memory(cg_func *f)
{
    if (f->block_memory)
        return f->block_memory;
    LLVMTypeRef type = LLVMArrayType2(f->type.i8, f->launch.shared);
    f->block_memory = LLVMAddGlobalInAddressSpace(f->module, type, "scratch", f->cpu->grid->shared);
    LLVMSetLinkage(f->block_memory, LLVMInternalLinkage);
    LLVMSetInitializer(f->block_memory, LLVMGetUndef(type));
    LLVMSetAlignment(f->block_memory, 64);
    return f->block_memory;
}

/* A team's scratch: in shared memory, by the team's number in the block, or after the temps, by its number in the
 * grid. */
static LLVMValueRef scratch(cg_func *f)
{
    const ir_launch *l = &f->launch;
    LLVMValueRef size = number(f, (int64_t)l->team_scratch);
    if (l->scratch > 0) {
        LLVMValueRef p = moved(f, LLVMGetLastParam(f->fn), number(f, (int64_t)align_up(f->ir->shared_size, 64)));
        return moved(f, p, LLVMBuildMul(f->entry, f->team_number, size, ""));
    }
    return moved(f, block_memory(f), LLVMBuildMul(f->entry, f->team_in_block, size, ""));
}

LLVMValueRef opjit_cg_grid_folds(cg_func *f)
{
    const ir_launch *l = &f->launch;
    return moved(f, block_memory(f), number(f, l->shared - l->folds));
}

LLVMValueRef opjit_cg_grid_base(cg_func *f, uint32_t tensor)
{
    const ir_tensor *t = &f->ir->tensors[tensor];
    if (t->role == IR_CONSTANT && f->constant_data)
        return f->constant_data[t->slot - f->buffer_count];
    if (t->role == IR_IN || t->role == IR_OUT || t->role == IR_CONSTANT)
        return LLVMGetParam(f->fn, t->slot);
    LLVMValueRef p;
    if (t->role == IR_TEMP)
        p = LLVMGetLastParam(f->fn);
    else
        p = f->scratch = f->scratch ? f->scratch : scratch(f);
    return t->offset ? moved(f, p, number(f, t->offset)) : p;
}

/* Finds the thread's team in its block and in the grid, and its number in the team. */
static void find_team(cg_func *f, LLVMValueRef thread, LLVMValueRef block)
{
    const ir_launch *l = &f->launch;
    const bool alone = l->team == l->block;
    f->thread = alone ? thread : LLVMBuildAnd(f->b, thread, number(f, l->team - 1), "");
    f->team_in_block = alone ? number(f, 0) : LLVMBuildLShr(f->b, thread, number(f, __builtin_ctz(l->team)), "");
    f->team_number = block;
    if (!alone)
        f->team_number =
            LLVMBuildAdd(f->b, LLVMBuildMul(f->b, block, number(f, l->block / l->team), ""), f->team_in_block, "");
}

/* Runs one iteration, that of the team's number; more if the grid has fewer teams than the stage has iterations. */
void opjit_cg_grid_stage(cg_func *f, ir_ref stage)
{
    const ir_node *n = ir_at(f->ir, stage);
    const ir_launch *l = &f->launch;
    const uint64_t teams = l->grid * (l->block / l->team);
    const int64_t iterations = ir_index_value(f->ir, ir_operand(f->ir, stage, 1));
    LLVMValueRef thread = LLVMBuildZExt(f->b, f->cpu->grid->thread(f), f->type.i64, "");
    LLVMValueRef block = LLVMBuildZExt(f->b, f->cpu->grid->block(f), f->type.i64, "");
    find_team(f, thread, block);
    LLVMValueRef inside = LLVMBuildICmp(f->b, LLVMIntSLT, f->team_number, number(f, iterations), "");
    LLVMPositionBuilderBefore(f->entry, inside); /* everything that it makes dominates the function */
    f->loops[0] = (cg_loop){ .var = n->ref, .iv = f->team_number, .step = 1, .threads = 1 };
    f->loop_count = 1;
    f->piece->lanes = f->piece->copies = 1;
    f->piece->lane_bits = 8;
    opjit_cg_scope_push(f);
    f->loops[0].scope = f->next_scope;
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = 0;
    opjit_cg_hoist(f, n->body, 0, 1);
    const bool exact = (uint64_t)iterations == teams, goes_round = (uint64_t)iterations > teams;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b), after = exact ? NULL : opjit_cg_if_begin(f, inside);
    LLVMBasicBlockRef body = LLVMGetInsertBlock(f->b);
    if (goes_round) {
        f->loops[0].iv = LLVMBuildPhi(f->b, f->type.i64, "");
        LLVMAddIncoming(f->loops[0].iv, &f->team_number, &before, 1);
    }
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
    opjit_cg_block(f, n->body);
    opjit_cg_scope_pop(f);
    if (goes_round) {
        LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
        LLVMValueRef next = LLVMBuildAdd(f->b, f->loops[0].iv, number(f, (int64_t)teams), "");
        LLVMAddIncoming(f->loops[0].iv, &next, &latch, 1);
        LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, next, number(f, iterations), ""), body, after);
        LLVMMoveBasicBlockAfter(after, latch);
        LLVMPositionBuilderAtEnd(f->b, after);
    } else if (after) {
        opjit_cg_if_end(f, after);
    }
    opjit_cg_scope_pop(f);
}

/* --- threads of a team -------------------------------------------------------------------------------------------- */

LLVMBasicBlockRef opjit_cg_one_begin(cg_func *f)
{
    if (!f->cpu->grid || f->launch.team == 1 || f->piece->apart)
        return NULL;
    return opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntEQ, f->thread, number(f, 0), ""));
}

void opjit_cg_one_end(cg_func *f, LLVMBasicBlockRef after)
{
    if (after)
        opjit_cg_if_end(f, after);
}

/* The integer v of thread `lane`. */
LLVMValueRef opjit_cg_from(cg_func *f, LLVMValueRef v, LLVMValueRef lane)
{
    const uint32_t bits = opjit_cg_bits(v);
    if (bits < 32)
        return opjit_cg_resize(f, f->cpu->grid->from(f, opjit_cg_resize(f, v, 32, false), lane), bits, false);
    if (bits == 32)
        return f->cpu->grid->from(f, v, lane);
    LLVMValueRef low = opjit_cg_resize(f, f->cpu->grid->from(f, opjit_cg_resize(f, v, 32, false), lane), 64, false);
    LLVMValueRef shift = number(f, 32), high = opjit_cg_resize(f, LLVMBuildLShr(f->b, v, shift, ""), 32, false);
    high = opjit_cg_resize(f, f->cpu->grid->from(f, high, lane), 64, false);
    return LLVMBuildOr(f->b, low, LLVMBuildShl(f->b, high, shift, ""), "");
}

LLVMValueRef opjit_cg_lane_after(cg_func *f, uint32_t more)
{
    LLVMValueRef thread = LLVMBuildTrunc(f->b, f->thread, f->type.i32, "");
    LLVMValueRef sum = LLVMBuildAdd(f->b, thread, opjit_cg_number(f, 32, 1, more), "");
    return LLVMBuildAnd(f->b, sum, opjit_cg_number(f, 32, 1, IR_REDUCE_LANES - 1), "");
}

/* --- what is chosen ----------------------------------------------------------------------------------------------- */

/* Whether the loop is exactly one round, in which no thread has to check where it ends. */
static bool is_one_round(const cg_func *f, ir_ref lo, ir_ref hi, int64_t round)
{
    int64_t most, least;
    return opjit_ir_span(f->ir, lo, hi, &most) && most == round && opjit_ir_span(f->ir, hi, lo, &least) &&
           least == -round;
}

/* The most that hi - lo can be, which may be a clamp from lo on; both may be known to be whole rounds apart. */
static int64_t longest(const cg_func *f, ir_ref lo, ir_ref hi, uint64_t round)
{
    const ir_node *n = ir_at(f->ir, hi);
    const ir_ref value = n->op == IR_GET && ir_at(f->ir, n->ref)->op == IR_LET ? ir_operand(f->ir, n->ref, 0) : hi;
    const bool from_lo = ir_at(f->ir, value)->op == IR_CLAMP && opjit_ir_same(f->ir, ir_operand(f->ir, value, 1), lo);
    int64_t most = INT64_MAX, other;
    uint64_t gap;
    if (opjit_ir_span(f->ir, lo, hi, &other))
        most = other;
    if (from_lo && opjit_ir_span(f->ir, lo, ir_operand(f->ir, value, 0), &other) && other < most)
        most = other < 0 ? 0 : other;
    if (most != INT64_MAX && opjit_cg_gap(f, lo, hi, round, &gap) && gap == 0)
        most -= most % (int64_t)round;
    return most;
}

static bool updates(const cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD)
            return true;
    return false;
}

void opjit_cg_choose_groups(const cg_func *f, cg_plan *plan)
{
    const ir_node *n = ir_at(f->ir, plan->is.loop);
    const ir_ref lo = plan->is.lo, hi = plan->is.hi;
    const uint32_t lanes = n->vec > 1 ? n->vec : 1, team = f->launch.team, copies = n->unroll > 1 ? n->unroll : 1;
    cg_groups *groups = &plan->groups;
    *groups = (cg_groups){ .lanes = lanes, .updates = updates(f, n->body) };
    groups->threads = groups->updates ? IR_REDUCE_LANES : team;
    if (!groups->updates && is_one_round(f, lo, hi, (int64_t)lanes * copies * team)) {
        groups->exact = true;
        groups->several = copies;
        return;
    }
    const int64_t most = longest(f, lo, hi, (uint64_t)lanes * team);
    uint64_t gap;
    const bool whole = lanes == 1 || (opjit_cg_gap(f, lo, hi, lanes, &gap) && gap == 0);
    groups->one = !groups->updates && whole && most <= (int64_t)lanes * team;
    if (groups->one)
        return;
    groups->several = copies > 1 && most >= (int64_t)lanes * copies ? copies : 0;
    groups->single = most >= lanes;
    groups->rest = !whole;
}

/* --- loops -------------------------------------------------------------------------------------------------------- */

typedef struct distribution {
    cg_func *f;
    ir_ref body;
    LLVMValueRef hi;
    const cg_groups *groups;
} distribution;

/* At most one round, and nothing after it. */
static void one_round(const distribution *s, uint32_t lanes, LLVMValueRef pos)
{
    cg_func *f = s->f;
    LLVMValueRef inside = LLVMBuildICmp(f->b, LLVMIntSLT, pos, s->hi, "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, inside);
    opjit_cg_copies(f, s->body, lanes, 1, pos);
    opjit_cg_if_end(f, after);
}

/* This thread's whole groups from pos on, `copies` of them per round; returns where they end.  exact: the loop has
 * whole groups only.  The assembler optimises the loop; the time here depends on the length of the text. */
static LLVMValueRef rounds(const distribution *s, uint32_t lanes, uint32_t copies, uint32_t threads, LLVMValueRef pos,
                           bool exact)
{
    cg_func *f = s->f;
    const int64_t reach = exact ? 1 : (int64_t)lanes * ((int64_t)(copies - 1) * threads + 1);
    LLVMValueRef end = opjit_cg_sub(f, s->hi, number(f, reach - 1));
    f->loops[f->loop_count - 1].threads = threads;
    opjit_cg_apart_load(f, s->body);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildBr(f->b, head);
    LLVMPositionBuilderAtEnd(f->b, head);
    LLVMValueRef iv = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(iv, &pos, &before, 1);
    opjit_cg_apart_begin(f, s->body, before);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, iv, end, ""), body, after);
    LLVMPositionBuilderAtEnd(f->b, body);
    opjit_cg_copies(f, s->body, lanes, copies, iv);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    LLVMValueRef next = LLVMBuildAdd(f->b, iv, number(f, (int64_t)lanes * copies * threads), "");
    LLVMAddIncoming(iv, &next, &latch, 1);
    LLVMBuildBr(f->b, head);
    LLVMMoveBasicBlockAfter(after, latch);
    LLVMPositionBuilderAtEnd(f->b, after);
    opjit_cg_apart_end(f, s->body, latch);
    return iv;
}

static void emit_groups(const distribution *s, LLVMValueRef pos)
{
    cg_func *f = s->f;
    const cg_groups *groups = s->groups;
    if (groups->exact)
        opjit_cg_copies(f, s->body, groups->lanes, groups->several, pos);
    if (groups->one)
        one_round(s, groups->lanes, pos);
    if (groups->several > 0 && !groups->exact)
        pos = rounds(s, groups->lanes, groups->several, groups->threads, pos, false);
    if (groups->single)
        pos = rounds(s, groups->lanes, 1, groups->threads, pos, !groups->rest);
    if (groups->rest) /* done by the thread whose group it would be */
        rounds(s, 1, 1, 1, pos, true);
}

/* Lane l of an accumulator belongs to thread l, whose iterations have k = l modulo the lanes; blocks of k are folded
 * before the next one begins. */
static void emit_updates(const distribution *s, LLVMValueRef lo)
{
    cg_func *f = s->f;
    const bool blocked = opjit_cg_apart_blocked(f, s->body);
    LLVMValueRef first = lo, block = NULL;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b), body = NULL, after = NULL;
    distribution part = *s;
    if (blocked) {
        block = LLVMBuildAnd(f->b, lo, number(f, -IR_REDUCE_BLOCK), "");
        after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSLT, lo, s->hi, ""));
        body = LLVMGetInsertBlock(f->b);
        LLVMValueRef start = block;
        block = LLVMBuildPhi(f->b, f->type.i64, "");
        LLVMAddIncoming(block, &start, &before, 1);
        first = opjit_cg_limit(f, true, lo, block);
        part.hi = opjit_cg_limit(f, false, s->hi, opjit_cg_add(f, block, number(f, IR_REDUCE_BLOCK)));
        opjit_cg_apart_enter(f, s->body, block);
    }
    LLVMValueRef off = LLVMBuildAnd(f->b, LLVMBuildSub(f->b, f->thread, first, ""), number(f, IR_REDUCE_LANES - 1), "");
    emit_groups(&part, opjit_cg_add(f, first, off));
    if (blocked) {
        LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
        LLVMValueRef next = LLVMBuildAdd(f->b, block, number(f, IR_REDUCE_BLOCK), "");
        LLVMAddIncoming(block, &next, &latch, 1);
        LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, next, s->hi, ""), body, after);
        LLVMMoveBasicBlockAfter(after, latch);
        LLVMPositionBuilderAtEnd(f->b, after);
    }
}

/* The same where the team is a block: warp w has blocks w, w + warps, ... of k.  In each round every warp folds its
 * block, and all threads add up the results in the order of the blocks. */
static void emit_updates_in_block(const distribution *s, LLVMValueRef lo)
{
    cg_func *f = s->f;
    distribution part = *s;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMValueRef start = LLVMBuildAnd(f->b, lo, number(f, -IR_REDUCE_BLOCK), "");
    LLVMValueRef warp = LLVMBuildLShr(f->b, f->thread, number(f, __builtin_ctz(IR_REDUCE_LANES)), "");
    LLVMValueRef own = LLVMBuildMul(f->b, warp, number(f, IR_REDUCE_BLOCK), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSLT, lo, s->hi, ""));
    LLVMBasicBlockRef body = LLVMGetInsertBlock(f->b);
    LLVMValueRef round = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMAddIncoming(round, &start, &before, 1);
    LLVMValueRef block = opjit_cg_add(f, round, own), first = opjit_cg_limit(f, true, lo, block);
    part.hi = opjit_cg_limit(f, false, s->hi, opjit_cg_add(f, block, number(f, IR_REDUCE_BLOCK)));
    opjit_cg_apart_reset(f, s->body);
    LLVMValueRef off = LLVMBuildAnd(f->b, LLVMBuildSub(f->b, f->thread, first, ""), number(f, IR_REDUCE_LANES - 1), "");
    emit_groups(&part, opjit_cg_add(f, first, off));
    LLVMValueRef next = opjit_cg_add(f, round, number(f, (int64_t)f->launch.team / IR_REDUCE_LANES * IR_REDUCE_BLOCK));
    opjit_cg_apart_meet(f, s->body, warp, round, opjit_cg_limit(f, false, s->hi, next));
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    LLVMAddIncoming(round, &next, &latch, 1);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, next, s->hi, ""), body, after);
    LLVMMoveBasicBlockAfter(after, latch);
    LLVMPositionBuilderAtEnd(f->b, after);
}

/* Thread number times lanes, computed once per kernel. */
static LLVMValueRef first_element(cg_func *f, uint32_t lanes)
{
    LLVMValueRef *first = &f->first[__builtin_ctz(lanes)];
    if (lanes > 1 && !*first)
        *first = LLVMBuildMul(f->entry, f->thread, number(f, lanes), "");
    return lanes > 1 ? *first : f->thread;
}

void opjit_cg_distribute(cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    const uint32_t lanes = plan->groups.lanes;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->lane_bits = is->bits;
    LLVMValueRef lo = opjit_cg_emit(f, is->lo);
    const distribution s = { .f = f, .body = is->body, .hi = opjit_cg_emit(f, is->hi), .groups = &plan->groups };
    f->loops[f->loop_count++] =
        (cg_loop){ .var = is->var, .iv = lo, .step = 1, .threads = f->launch.team, .plan = plan };
    opjit_cg_scope_push(f);
    f->loops[f->loop_count - 1].scope = f->next_scope;
    opjit_cg_hoist(f, is->body, f->loop_count - 1, lanes);
    f->piece->apart = true;
    if (plan->groups.updates && f->launch.team > IR_REDUCE_LANES)
        emit_updates_in_block(&s, lo);
    else if (plan->groups.updates)
        emit_updates(&s, lo);
    else
        emit_groups(&s, opjit_cg_add(f, lo, first_element(f, lanes)));
    opjit_cg_scope_pop(f);
    f->loop_count--;
    cg_piece_end(f);
}
