/* SPDX-License-Identifier: Apache-2.0 */
/* select_late.c - vectors that are wider than a register, of which single lanes alone are needed: the offsets of what
 * is read lane by lane.  Nothing is done where they are made; an extraction makes its lane, all by scalars. */
#include "codegen/direct.h"

enum { DEEPEST = 8 };

static bool is_undefined(LLVMValueRef v)
{
    return LLVMIsConstant(v) && LLVMIsUndef(v); /* poison is undef, too */
}

/* All lanes are the same one of a vector. */
static bool is_splat(LLVMValueRef v)
{
    bool same = LLVMIsAShuffleVectorInst(v) && LLVMGetNumMaskElements(v) > 0 && LLVMGetMaskValue(v, 0) >= 0;
    for (unsigned i = 1; same && i < LLVMGetNumMaskElements(v); i++)
        same = LLVMGetMaskValue(v, i) == LLVMGetMaskValue(v, 0);
    return same;
}

/* Whether nothing but single lanes of it is needed. */
static bool only_lanes(LLVMValueRef v, uint32_t depth)
{
    bool only = depth > 0;
    for (LLVMUseRef u = LLVMGetFirstUse(v); u && only; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        const bool lane = LLVMIsAExtractElementInst(user) != NULL, stored = LLVMIsAStoreInst(user) != NULL;
        only = lane || (!stored && !LLVMIsAICmpInst(user) && only_lanes(user, depth - 1));
    }
    return only;
}

/* Whether the vector can be made lane by lane. */
bool opjit_dx_is_late(dx_func *f, LLVMValueRef v)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const bool wide = opjit_dx_is_wide(f, t);
    if (wide && LLVMIsAInsertElementInst(v))
        return is_undefined(LLVMGetOperand(v, 0)) && LLVMIsAConstantInt(LLVMGetOperand(v, 2));
    if (wide && !only_lanes(v, DEEPEST))
        return false;
    if (!t.lanes || t.kind != DX_T_INT || t.bits < 32 || dx_bytes(t) <= f->bytes)
        return false;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMSExt:
    case LLVMZExt:
    case LLVMSelect: return true;
    case LLVMInsertElement: return is_undefined(LLVMGetOperand(v, 0)) && LLVMIsAConstantInt(LLVMGetOperand(v, 2));
    case LLVMShuffleVector: return is_splat(v);
    default: return false;
    }
}

static dx_reg lane_of(dx_func *f, LLVMValueRef v, uint32_t lane, uint32_t depth);

static dx_reg sum(dx_func *f, LLVMOpcode op, dx_reg a, dx_reg b, uint32_t bytes)
{
    const dx_reg dst = opjit_dx_new(f, DX_INT);
    dx_op *o = opjit_dx_two_address(f, op == LLVMMul ? DX_TIMES : DX_ARITH, dst, a, bytes);
    o->b = b;
    o->code = op == LLVMAdd ? DX_ADD : DX_SUB;
    return dst;
}

/* yes where the mask has the lane, else no. */
static dx_reg choice(dx_func *f, dx_reg condition, dx_reg yes, dx_reg no)
{
    enum { NOT_EQUAL = 5 };
    const dx_reg dst = opjit_dx_new(f, DX_INT);
    dx_op *o = opjit_dx_two_address(f, DX_SELECT, dst, no, 4);
    o->a = condition;
    o->c = yes;
    o->cc = NOT_EQUAL;
    return dst;
}

/* The lane of an instruction that was put off. */
static dx_reg late_lane(dx_func *f, LLVMValueRef v, uint32_t lane, uint32_t depth, dx_type t)
{
    const LLVMOpcode op = LLVMGetInstructionOpcode(v);
    LLVMValueRef x = LLVMGetOperand(v, 0);
    if (op == LLVMInsertElement) {
        if (LLVMConstIntGetZExtValue(LLVMGetOperand(v, 2)) != lane)
            opjit_dx_refuse(f, "lane of nothing");
        return opjit_dx_use(f, LLVMGetOperand(v, 1));
    }
    if (op == LLVMShuffleVector) {
        const uint32_t from = (uint32_t)LLVMGetMaskValue(v, 0), lanes = opjit_dx_type(f, LLVMTypeOf(x)).lanes;
        return lane_of(f, from < lanes ? x : LLVMGetOperand(v, 1), from % lanes, depth);
    }
    if (op == LLVMSExt || op == LLVMZExt) {
        const uint32_t bits = opjit_dx_type(f, LLVMTypeOf(x)).bits;
        const dx_reg a = lane_of(f, x, lane, depth), dst = opjit_dx_new(f, DX_INT);
        if (bits == 1 && op == LLVMZExt)
            return a;
        if (bits == 1) {
            opjit_dx_bit_as_all(f, dst, a);
            return dst;
        }
        dx_op *o = opjit_dx_op(f, DX_EXTEND);
        o->dst = dst;
        o->b = a;
        o->bytes = (uint8_t)(bits / 8);
        o->code = op == LLVMSExt;
        return dst;
    }
    if (op == LLVMSelect) {
        const dx_reg yes = lane_of(f, LLVMGetOperand(v, 1), lane, depth);
        const dx_reg no = lane_of(f, LLVMGetOperand(v, 2), lane, depth);
        const bool one = !opjit_dx_type(f, LLVMTypeOf(x)).lanes;
        return choice(f, one ? opjit_dx_use(f, x) : opjit_dx_lane(f, x, lane), yes, no);
    }
    const dx_reg a = lane_of(f, x, lane, depth), b = lane_of(f, LLVMGetOperand(v, 1), lane, depth);
    return sum(f, op, a, b, t.bits / 8);
}

static dx_reg lane_of(dx_func *f, LLVMValueRef v, uint32_t lane, uint32_t depth)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (depth == 0 || f->refused || lane >= t.lanes) {
        opjit_dx_refuse(f, "vector type");
        return 0;
    }
    if (LLVMIsConstant(v)) {
        LLVMValueRef c = LLVMIsAConstantInt(v) ? v : LLVMGetAggregateElement(v, lane);
        if (!c || !LLVMIsAConstantInt(c))
            opjit_dx_refuse(f, "constant lane");
        if (f->refused)
            return 0;
        return opjit_dx_number(f, t.bits == 1 ? (int64_t)LLVMConstIntGetZExtValue(c) : LLVMConstIntGetSExtValue(c));
    }
    if (LLVMIsAInstruction(v) && opjit_dx_is_late(f, v))
        return late_lane(f, v, lane, depth - 1, t);
    return opjit_dx_lane(f, v, lane);
}

dx_reg opjit_dx_late_lane(dx_func *f, LLVMValueRef v, uint32_t lane)
{
    return lane_of(f, v, lane, DEEPEST);
}
