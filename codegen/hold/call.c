/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - the call of a tile: its arguments as 64-bit words in memory of the stack frame. */
#include "codegen/emit/access.h"
#include "codegen/hold/hold.h"
#include "codegen/plan.h"

/* Its function in this module. */
static LLVMValueRef tile_function(cg_func *f, const cg_tile *t)
{
    cg_made *made;
    LLVMTypeRef type = LLVMFunctionType(f->type.none, &f->type.ptr, 1, 0);
    LLVMValueRef fn = opjit_cg_kept_function(f, "hold", t, sizeof *t, type, &made);
    if (made) {
        made->tile = opjit_rt_arena_copy(f->tiles->arena, t, 1, sizeof *t);
        f->failed = f->failed || !made->tile;
    }
    return fn;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

/* A scope of its own: the tile's variables have other values in each argument, so nothing may be remembered from one to
 * the next. */
static void open_scope(cg_func *f, cg_piece *own)
{
    cg_piece_begin(f, own);
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
}

static void close_scope(cg_func *f)
{
    opjit_cg_scope_pop(f);
    cg_piece_end(f);
}

/* Where the access is, in elements, with the tile's variables at these values; lo: the held one's. */
static LLVMValueRef offset(cg_func *f, const cg_tile_plan *plan, const cg_access *a, const int64_t *at, LLVMValueRef lo)
{
    const uint32_t loops = f->loop_count;
    for (uint32_t l = 0; l < plan->tile.loops; l++)
        f->loops[f->loop_count++] = (cg_loop){
            .var = plan->var[l],
            .iv = l == 0 ? lo : opjit_cg_number(f, 64, 1, (uint64_t)at[l]),
            .step = 1,
            .threads = 1,
        };
    LLVMValueRef elements = opjit_cg_lane0_offset(f, a, 0);
    f->loop_count = loops;
    return elements;
}

static LLVMValueRef address(cg_func *f, const cg_tile_plan *plan, const cg_tile_arg *arg, LLVMValueRef lo)
{
    const cg_access a = opjit_cg_access_of(f, arg->node);
    LLVMValueRef base = opjit_cg_base_pointer(f, a.tensor);
    return opjit_cg_offset(f, opjit_cg_int(f, a.bits, 1), base, offset(f, plan, &a, arg->at, lo));
}

/* With loop l's variable at 0 or 1, and all others at 0. */
static LLVMValueRef offset_at(cg_func *f, const cg_tile_plan *plan, const cg_access *a, uint32_t l, int64_t value)
{
    int64_t at[CG_TILE_LOOPS] = { 0 };
    cg_piece own;
    at[l] = value;
    open_scope(f, &own);
    LLVMValueRef elements = offset(f, plan, a, at, opjit_cg_number(f, 64, 1, (uint64_t)at[0]));
    close_scope(f);
    return elements ? elements : opjit_cg_number(f, 64, 1, 0);
}

/* Bytes from one value of loop l's variable to the next. */
static LLVMValueRef distance(cg_func *f, const cg_tile_plan *plan, const cg_tile_arg *arg)
{
    const cg_access a = opjit_cg_access_of(f, arg->node);
    const uint32_t l = (uint32_t)arg->number;
    LLVMValueRef first = offset_at(f, plan, &a, l, 0), next = offset_at(f, plan, &a, l, 1);
    return opjit_cg_times(f, opjit_cg_sub(f, next, first), a.bits / 8);
}

/* The expression's value, extended to 64 bits. */
static LLVMValueRef word(cg_func *f, ir_ref node)
{
    LLVMValueRef v = opjit_cg_emit(f, node);
    if (ir_at(f->ir, node)->type == IR_BOOL)
        v = opjit_cg_narrow(f, v);
    return opjit_cg_resize(f, opjit_cg_as_bits(f, v), 64, false);
}

static LLVMValueRef argument(cg_func *f, const cg_tile_plan *plan, const cg_tile_arg *arg, LLVMValueRef lo,
                             LLVMValueRef hi)
{
    LLVMValueRef v = lo;
    cg_piece own;
    open_scope(f, &own);
    switch (arg->kind) {
    case CG_PASS_COUNT: v = opjit_cg_sub(f, hi, lo); break;
    case CG_PASS_LO: break;
    case CG_PASS_NUMBER: v = opjit_cg_number(f, 64, 1, (uint64_t)arg->number); break;
    case CG_PASS_VALUE: v = word(f, arg->node); break;
    case CG_PASS_BASE: v = opjit_cg_base_pointer(f, arg->tensor); break;
    case CG_PASS_ADDRESS: v = address(f, plan, arg, lo); break;
    case CG_PASS_FETCH: v = opjit_cg_next_address(f, plan); break;
    case CG_PASS_DISTANCE: v = distance(f, plan, arg); break;
    }
    close_scope(f);
    return v;
}

void opjit_cg_put_tile(cg_func *f, const cg_plan *loop)
{
    const cg_tile_plan *plan = loop->tile;
    if (loop->is.loop != plan->loop)
        return;
    LLVMValueRef words = opjit_cg_alloca(f, LLVMArrayType2(f->type.i64, plan->tile.args));
    LLVMValueRef lo = opjit_cg_emit(f, loop->is.lo), hi = opjit_cg_emit(f, loop->is.hi);
    for (uint32_t i = 0; i < plan->tile.args; i++) {
        LLVMValueRef v = argument(f, plan, &plan->arg[i], lo, hi);
        LLVMBuildStore(f->b, v, opjit_cg_offset(f, f->type.i64, words, opjit_cg_number(f, 64, 1, i)));
    }
    LLVMValueRef fn = tile_function(f, &plan->tile);
    LLVMBuildCall2(f->b, LLVMGlobalGetValueType(fn), fn, &words, 1, "");
}
