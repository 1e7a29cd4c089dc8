/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - types, constants, lanes, and the table of values that have been emitted, by node.  No operations on
 * elements. */
#include "codegen/cg.h"

/* --- types -------------------------------------------------------------------------------------------------------- */

static LLVMTypeRef widen(LLVMTypeRef element, uint32_t lanes)
{
    return lanes > 1 ? LLVMVectorType(element, lanes) : element;
}

LLVMTypeRef opjit_cg_int(const cg_func *f, uint32_t bits, uint32_t lanes)
{
    LLVMTypeRef t = bits == 1    ? f->type.i1
                    : bits == 8  ? f->type.i8
                    : bits == 16 ? f->type.i16
                    : bits == 32 ? f->type.i32
                                 : f->type.i64;
    return widen(t, lanes);
}

LLVMTypeRef opjit_cg_float(const cg_func *f, ir_type type, uint32_t lanes)
{
    return widen(type == IR_F16 ? f->type.f16 : type == IR_F32 ? f->type.f32 : f->type.f64, lanes);
}

static bool is_vector(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind;
}

uint32_t opjit_cg_lanes(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return is_vector(t) ? LLVMGetVectorSize(t) : 1;
}

static LLVMTypeRef element_of(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    return is_vector(t) ? LLVMGetElementType(t) : t;
}

uint32_t opjit_cg_bits(LLVMValueRef v)
{
    LLVMTypeRef t = element_of(v);
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t);
    case LLVMHalfTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    default: return 64;
    }
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef repeat(LLVMValueRef element, uint32_t lanes)
{
    LLVMValueRef all[CG_MAX_LANES];
    if (lanes <= 1)
        return element;
    for (uint32_t i = 0; i < lanes; i++)
        all[i] = element;
    return LLVMConstVector(all, lanes);
}

LLVMValueRef opjit_cg_number(const cg_func *f, uint32_t bits, uint32_t lanes, uint64_t value)
{
    if (bits < 64)
        value &= ((uint64_t)1 << bits) - 1;
    return repeat(LLVMConstInt(opjit_cg_int(f, bits, 1), value, 0), lanes);
}

LLVMValueRef opjit_cg_real(const cg_func *f, ir_type type, uint32_t lanes, double value)
{
    return repeat(LLVMConstReal(opjit_cg_float(f, type, 1), value), lanes);
}

LLVMValueRef opjit_cg_iota(const cg_func *f, uint32_t bits, uint32_t lanes, int64_t start, int64_t step)
{
    LLVMValueRef all[CG_MAX_LANES];
    for (uint32_t i = 0; i < lanes; i++)
        all[i] = opjit_cg_number(f, bits, 1, (uint64_t)start + i * (uint64_t)step);
    return lanes > 1 ? LLVMConstVector(all, lanes) : all[0];
}

/* --- lanes and forms ---------------------------------------------------------------------------------------------- */

enum { FEW = 8 }; /* instructions that a shuffle may take along out of fast selection */

/* Whether the block ends with fewer instructions than that after this one, none of which writes memory; or, where it is
 * NULL, begins with as few. */
static bool is_near_end(const cg_func *f, LLVMValueRef from)
{
    uint32_t count = 0;
    LLVMValueRef i = LLVMGetLastInstruction(LLVMGetInsertBlock(f->b));
    if (i && LLVMIsATerminatorInst(i)) /* emission in front of it */
        i = LLVMGetPreviousInstruction(i);
    for (; i != from && i && count < FEW; i = LLVMGetPreviousInstruction(i), count++)
        if (from && (LLVMIsAStoreInst(i) || LLVMIsACallInst(i)))
            return false;
    return i == from;
}

/* Lane 0 of a vector that has nothing else, in all lanes, by intrinsics, each of which leaves fast selection alone:
 * of a number that has just been loaded.  NULL: it is none, or the block is so short that a shuffle takes little
 * along. */
static LLVMValueRef loaded_splat(cg_func *f, LLVMValueRef v, uint32_t lanes)
{
    LLVMTypeRef type = widen(LLVMTypeOf(v), lanes);
    if (!opjit_cg_compares(f, opjit_cg_bits(v), lanes) || !LLVMIsALoadInst(v) ||
        LLVMGetInstructionParent(v) != LLVMGetInsertBlock(f->b) || !is_near_end(f, v) || is_near_end(f, NULL))
        return NULL;
    LLVMValueRef one[CG_MAX_LANES];
    for (uint32_t i = 0; i < lanes; i++)
        one[i] = LLVMConstInt(f->type.i1, i == 0, 0);
    LLVMValueRef first = opjit_cg_load_where(f, LLVMGetOperand(v, 0), LLVMConstVector(one, lanes), LLVMGetPoison(type),
                                             LLVMGetAlignment(v));
    return f->cpu->repeat(f, first);
}

LLVMValueRef opjit_cg_splat(cg_func *f, LLVMValueRef v, uint32_t lanes)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    if (lanes <= 1 || is_vector(t))
        return v;
    if (LLVMIsConstant(v))
        return repeat(v, lanes);
    LLVMValueRef loaded = loaded_splat(f, v, lanes);
    if (loaded)
        return loaded;
    LLVMValueRef none = LLVMGetPoison(widen(t, lanes));
    LLVMValueRef one = LLVMBuildInsertElement(f->b, none, v, LLVMConstInt(f->type.i32, 0, 0), "");
    return LLVMBuildShuffleVector(f->b, one, none, LLVMConstNull(widen(f->type.i32, lanes)), "");
}

static bool is_float_value(LLVMValueRef v)
{
    return LLVMGetTypeKind(element_of(v)) != LLVMIntegerTypeKind;
}

/* A cast of a cast back to the same type is the first value: each instruction takes time to compile. */
static LLVMValueRef bitcast(cg_func *f, LLVMValueRef v, LLVMTypeRef type)
{
    if (LLVMIsABitCastInst(v) && LLVMTypeOf(LLVMGetOperand(v, 0)) == type)
        return LLVMGetOperand(v, 0);
    return LLVMBuildBitCast(f->b, v, type, "");
}

LLVMValueRef opjit_cg_as_bits(cg_func *f, LLVMValueRef v)
{
    return is_float_value(v) ? bitcast(f, v, opjit_cg_int(f, opjit_cg_bits(v), opjit_cg_lanes(v))) : v;
}

LLVMValueRef opjit_cg_as_float(cg_func *f, LLVMValueRef v)
{
    if (is_float_value(v))
        return v;
    const ir_type type = opjit_cg_bits(v) == 64 ? IR_F64 : IR_F32;
    return bitcast(f, v, opjit_cg_float(f, type, opjit_cg_lanes(v)));
}

LLVMValueRef opjit_cg_resize(cg_func *f, LLVMValueRef v, uint32_t bits, bool is_signed)
{
    const uint32_t from = opjit_cg_bits(v);
    LLVMTypeRef to = opjit_cg_int(f, bits, opjit_cg_lanes(v));
    if (from == bits)
        return v;
    if (from > bits)
        return LLVMBuildTrunc(f->b, v, to, "");
    return is_signed ? LLVMBuildSExt(f->b, v, to, "") : LLVMBuildZExt(f->b, v, to, "");
}

LLVMValueRef opjit_cg_lane(cg_func *f, LLVMValueRef v, uint32_t lane)
{
    if (!is_vector(LLVMTypeOf(v)))
        return v;
    return LLVMBuildExtractElement(f->b, v, LLVMConstInt(f->type.i32, lane, 0), "");
}

LLVMValueRef opjit_cg_fold_lanes(cg_func *f, bool all, LLVMValueRef v)
{
    LLVMValueRef out = opjit_cg_lane(f, v, 0);
    for (uint32_t i = 1; i < opjit_cg_lanes(v); i++) {
        LLVMValueRef lane = opjit_cg_lane(f, v, i);
        out = all ? LLVMBuildAnd(f->b, out, lane, "") : LLVMBuildOr(f->b, out, lane, "");
    }
    return out;
}

LLVMValueRef opjit_cg_insert(cg_func *f, LLVMValueRef v, LLVMValueRef element, uint32_t lane)
{
    return LLVMBuildInsertElement(f->b, v, element, LLVMConstInt(f->type.i32, lane, 0), "");
}

LLVMValueRef opjit_cg_call_plain(cg_func *f, const char *name, uint32_t count, LLVMValueRef *args)
{
    LLVMTypeRef type;
    LLVMValueRef callee = compat_intrinsic(&f->latest, f->module, f->llvm, name, NULL, 0, &type);
    return LLVMBuildCall2(f->b, type, callee, args, count, "");
}

LLVMValueRef opjit_cg_call_of(cg_func *f, const char *name, LLVMTypeRef overload, uint32_t count, LLVMValueRef *args)
{
    LLVMTypeRef type;
    LLVMValueRef callee = compat_intrinsic(&f->latest, f->module, f->llvm, name, &overload, 1, &type);
    return LLVMBuildCall2(f->b, type, callee, args, count, "");
}

LLVMValueRef opjit_cg_call(cg_func *f, const char *name, uint32_t count, LLVMValueRef *args)
{
    return opjit_cg_call_of(f, name, LLVMTypeOf(args[0]), count, args);
}

static bool is_zero(LLVMValueRef v)
{
    return LLVMIsConstant(v) && LLVMIsNull(v);
}

LLVMValueRef opjit_cg_add(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return is_zero(a) ? b : is_zero(b) ? a : LLVMBuildAdd(f->b, a, b, "");
}

LLVMValueRef opjit_cg_sub(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return is_zero(b) ? a : LLVMBuildSub(f->b, a, b, "");
}

/* The same number, hidden from LLVM's loop analysis: strength reduction looks at every way to express every value of
 * all enclosing loops, and takes longer than everything else where bounds depend on each other. */
LLVMValueRef opjit_cg_opaque(cg_func *f, LLVMValueRef v)
{
    if (!f->peak || f->cpu->grid || LLVMIsConstant(v))
        return v;
    if (LLVMIsAPHINode(v)) /* a freeze of the variable itself would be moved out of the loop */
        v = LLVMBuildAnd(f->b, v, opjit_cg_number(f, 64, 1, UINT64_MAX), "");
    return LLVMBuildFreeze(f->b, v, "");
}

LLVMValueRef opjit_cg_alloca(cg_func *f, LLVMTypeRef type)
{
    return LLVMBuildAlloca(f->entry, type, "");
}

LLVMValueRef opjit_cg_offset(cg_func *f, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index)
{
    return is_zero(index) ? pointer : LLVMBuildGEP2(f->b, element, pointer, &index, 1, "");
}

/* --- what is remembered ------------------------------------------------------------------------------------------- */

/* A scope is a stretch of code that dominates everything emitted until the scope is popped.  An entry is valid while
 * the scope that it was made in is open; ids are never reused. */
void opjit_cg_scope_push(cg_func *f)
{
    f->scopes[f->scope_count++] = ++f->next_scope;
}

void opjit_cg_scope_pop(cg_func *f)
{
    f->scope_count--;
}

cg_entry opjit_cg_entry(const cg_func *f, uint32_t depth, LLVMValueRef value)
{
    return (cg_entry){ .value = value, .scope = f->scopes[depth], .depth = depth };
}

LLVMValueRef opjit_cg_live(const cg_func *f, const cg_entry *e)
{
    return e->value && e->depth < f->scope_count && f->scopes[e->depth] == e->scope ? e->value : NULL;
}

cg_entry *opjit_cg_place(const cg_func *f, cg_slot slot, ir_ref node, uint32_t depth)
{
    return depth < f->piece->copy_scope ? &f->cache[slot][node] : &f->own[slot][node];
}

/* Makes a new value of a vector of floats that its block has used often, at quick: LLVM's fast register allocator
 * counts at most 8 uses, and then the value goes to the stack, even if no other block reads it.  The fence becomes no
 * instruction; a freeze would be the same value again. */
static LLVMValueRef renewed(cg_func *f, cg_entry *e)
{
    LLVMValueRef v = opjit_cg_live(f, e);
    if (!v || f->peak || opjit_cg_lanes(v) == 1 || opjit_cg_bits(v) < 32 || !LLVMIsAInstruction(v) ||
        LLVMGetInstructionParent(v) != LLVMGetInsertBlock(f->b))
        return v;
    uint32_t uses = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(v); use && uses < CG_FEW_USES; use = LLVMGetNextUse(use))
        uses++;
    if (uses == CG_FEW_USES) {
        LLVMValueRef number = opjit_cg_as_float(f, v);
        e->value = opjit_cg_call(f, "llvm.arithmetic.fence", 1, &number);
    }
    return e->value;
}

/* In a row of a transposed block, what depends on the row was made for it. */
LLVMValueRef opjit_cg_recall(cg_func *f, cg_slot slot, ir_ref node)
{
    const bool any_row = slot == CG_POINTER || slot == CG_PLACE || !(f->info[node].vary >> f->piece->block.loop & 1);
    if (f->piece->block.row_depth > 0 && !any_row && f->cache[slot][node].depth < f->piece->block.row_depth)
        return NULL;
    cg_entry *own = &f->own[slot][node], *shared = &f->cache[slot][node]; /* copy 0's */
    const bool other = f->own[slot] != f->cache[slot] && shared->depth < f->piece->copy_scope && !opjit_cg_live(f, own);
    cg_entry *e = other ? shared : own;
    return slot == CG_VALUE && ir_is_float((ir_type)ir_at(f->ir, node)->type) ? renewed(f, e) : opjit_cg_live(f, e);
}

void opjit_cg_remember(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef value)
{
    *opjit_cg_place(f, slot, node, depth) = opjit_cg_entry(f, depth, value);
}

/* Whether to make a new value of such an address every few copies, at quick: LLVM's fast register allocator counts at
 * most 8 uses, and then the address goes to the stack in each round, where a store takes as long as a vector's. */
static bool renews(const cg_func *f)
{
    return !f->peak && f->piece->copies > CG_FEW_USES;
}

void opjit_cg_remember_address(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef address)
{
    opjit_cg_remember(f, slot, node, depth, renews(f) ? LLVMBuildFreeze(f->b, address, "") : address);
}

LLVMValueRef opjit_cg_address(cg_func *f, cg_slot slot, ir_ref node, LLVMTypeRef element, int64_t grow)
{
    const cg_loop *loop = &f->loops[f->loop_count - 1];
    cg_entry *e = opjit_cg_live(f, &f->own[slot][node]) ? &f->own[slot][node] : &f->cache[slot][node];
    const int64_t since = loop->offset - e->offset;
    if (renews(f) && grow != 0 && since == CG_FEW_USES * (int64_t)f->piece->lanes * loop->step) {
        e->value = opjit_cg_offset(f, element, e->value, opjit_cg_number(f, 64, 1, (uint64_t)(grow * since)));
        e->value = LLVMBuildFreeze(f->b, e->value, "");
        e->offset = loop->offset;
    }
    const int64_t rest = grow * (loop->offset - e->offset);
    return opjit_cg_offset(f, element, e->value, opjit_cg_number(f, 64, 1, (uint64_t)rest));
}
