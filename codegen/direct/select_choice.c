/* SPDX-License-Identifier: Apache-2.0 */
/* select_choice.c - comparisons and selects.  A comparison of integers is made by those that use it, as the flags that
 * it leaves do not last; a register gets it where it is a value. */
#include "codegen/direct.h"

#include "codegen/llvm_compat.h"

enum { EQUAL = 4, NOT_EQUAL = 5 };

static uint8_t condition(LLVMIntPredicate how)
{
    switch (how) {
    case LLVMIntEQ: return EQUAL;
    case LLVMIntNE: return NOT_EQUAL;
    case LLVMIntUGT: return 7;
    case LLVMIntUGE: return 3;
    case LLVMIntULT: return 2;
    case LLVMIntULE: return 6;
    case LLVMIntSGT: return 15;
    case LLVMIntSGE: return 13;
    case LLVMIntSLT: return 12;
    default: return 14;
    }
}

static LLVMIntPredicate swapped(LLVMIntPredicate how)
{
    switch (how) {
    case LLVMIntUGT: return LLVMIntULT;
    case LLVMIntUGE: return LLVMIntULE;
    case LLVMIntULT: return LLVMIntUGT;
    case LLVMIntULE: return LLVMIntUGE;
    case LLVMIntSGT: return LLVMIntSLT;
    case LLVMIntSGE: return LLVMIntSLE;
    case LLVMIntSLT: return LLVMIntSGT;
    case LLVMIntSLE: return LLVMIntSGE;
    default: return how;
    }
}

/* What a comparison of integers is: operands of the operation, and cc. */
static bool compare(dx_func *f, LLVMValueRef icmp, dx_op *out)
{
    LLVMValueRef x = LLVMGetOperand(icmp, 0), y = LLVMGetOperand(icmp, 1);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(x));
    LLVMIntPredicate how = LLVMGetICmpPredicate(icmp);
    int64_t number = 0;
    if (LLVMIsConstant(x) && !LLVMIsConstant(y)) {
        LLVMValueRef first = x;
        x = y;
        y = first;
        how = swapped(how);
    }
    *out = (dx_op){ .bytes = t.bits == 1 ? 4 : t.bits / 8, .cc = condition(how) };
    out->a = opjit_dx_use(f, x);
    if (opjit_dx_constant(f, y, &number) && number >= INT32_MIN && number <= INT32_MAX)
        out->imm = number;
    else
        out->b = opjit_dx_use(f, y);
    return !f->refused;
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

void opjit_dx_compare_vectors(dx_func *f, LLVMIntPredicate p, dx_type t, dx_reg dst, dx_reg a, dx_reg b)
{
    static const uint8_t how[] = {
        [LLVMIntEQ] = 0,  [LLVMIntNE] = 4,  [LLVMIntUGT] = 6, [LLVMIntUGE] = 5, [LLVMIntULT] = 1,
        [LLVMIntULE] = 2, [LLVMIntSGT] = 6, [LLVMIntSGE] = 5, [LLVMIntSLT] = 1, [LLVMIntSLE] = 2
    };
    const dx_form_name first = p >= LLVMIntUGT && p <= LLVMIntULE ? DX_F_PCMPUB : DX_F_PCMPB;
    opjit_dx_vector(f, (dx_form_name)(first + dx_size(t.bits)), dx_width(t), dst, a, b)->imm = how[p];
}

static void compare_lanes(dx_func *f, LLVMValueRef v, dx_type t)
{
    if (!f->wide && t.bits > 1) {
        opjit_dx_narrow_compare(f, v, t);
        return;
    }
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    if (t.bits == 1)
        opjit_dx_refuse(f, "comparison of masks");
    opjit_dx_compare_vectors(f, LLVMGetICmpPredicate(v), t, opjit_dx_result(f, v), a, b);
}

static void compare_integers(dx_func *f, LLVMValueRef v)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0)));
    if (t.lanes) {
        compare_lanes(f, v, t);
        return;
    }
    dx_op compared;
    if (opjit_dx_class(f, t) != DX_INT || !compare(f, v, &compared))
        return;
    const dx_reg dst = opjit_dx_result(f, v); /* goes away if nothing needs it */
    dx_op *o = opjit_dx_op(f, DX_SET);
    *o = compared;
    o->kind = DX_SET;
    o->dst = dst;
    opjit_dx_find(f, v)->compare = v;
}

static void compare_floats(dx_func *f, LLVMValueRef v)
{
    static const uint8_t how[] = {
        [LLVMRealOEQ] = 0x00, [LLVMRealOGT] = 0x1e, [LLVMRealOGE] = 0x1d, [LLVMRealOLT] = 0x11, [LLVMRealOLE] = 0x12,
        [LLVMRealONE] = 0x0c, [LLVMRealORD] = 0x07, [LLVMRealUNO] = 0x03, [LLVMRealUEQ] = 0x08, [LLVMRealUGT] = 0x16,
        [LLVMRealUGE] = 0x15, [LLVMRealULT] = 0x19, [LLVMRealULE] = 0x1a, [LLVMRealUNE] = 0x04
    };
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0)));
    const LLVMRealPredicate p = LLVMGetFCmpPredicate(v);
    if (t.bits < 32 || p == LLVMRealPredicateFalse || p == LLVMRealPredicateTrue ||
        opjit_dx_class(f, t) != DX_VEC || f->refused) {
        opjit_dx_refuse(f, "comparison of floats");
        return;
    }
    if (!f->wide) {
        opjit_dx_narrow_compare_floats(f, v, t, how[p]);
        return;
    }
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_form_name form = t.lanes ? t.bits == 64 ? DX_F_CMPPD : DX_F_CMPPS : t.bits == 64 ? DX_F_CMPSD : DX_F_CMPSS;
    if (t.lanes) {
        opjit_dx_vector(f, form, dx_width(t), opjit_dx_result(f, v), a, b)->imm = how[p];
        return;
    }
    const dx_reg mask = opjit_dx_new(f, DX_MASK);
    opjit_dx_vector(f, form, 16, mask, a, b)->imm = how[p];
    opjit_dx_vector(f, DX_F_FROMKD, 16, opjit_dx_result(f, v), 0, mask);
    opjit_dx_find(f, v)->second = mask;
}

/* --- selects ------------------------------------------------------------------------------------------------------ */

/* The comparison that a condition is, if it is one of this block; else that of the condition with 0. */
static bool compare_condition(dx_func *f, LLVMValueRef c, dx_op *out)
{
    const dx_value *value = LLVMIsConstant(c) ? NULL : opjit_dx_find(f, c);
    if (value && value->compare && value->block == f->block)
        return compare(f, c, out);
    *out = (dx_op){ .bytes = 4, .cc = NOT_EQUAL };
    out->a = opjit_dx_use(f, c);
    return !f->refused;
}

static void select_integers(dx_func *f, LLVMValueRef v)
{
    const dx_reg yes = opjit_dx_use(f, LLVMGetOperand(v, 1)), no = opjit_dx_use(f, LLVMGetOperand(v, 2));
    dx_op compared;
    if (!compare_condition(f, LLVMGetOperand(v, 0), &compared))
        return;
    const dx_reg dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, no);
    dx_op *o = opjit_dx_op(f, DX_SELECT);
    *o = compared;
    o->kind = DX_SELECT;
    o->dst = dst;
    o->c = yes;
    o->tied = true;
}

/* What a value of floats was before it was taken for integers. */
static LLVMValueRef as_floats(LLVMValueRef v)
{
    return LLVMIsABitCastInst(v) ? LLVMGetOperand(v, 0) : v;
}

/* a < b ? a : b and its like are one instruction: of numbers that are equal, or NaNs, it gives the second operand. */
static bool select_beyond(dx_func *f, LLVMValueRef v, dx_type t)
{
    LLVMValueRef c = LLVMGetOperand(v, 0);
    if (!LLVMIsAFCmpInst(c) || LLVMGetInstructionParent(c) != f->blocks[f->block].block || !t.lanes)
        return false;
    const LLVMRealPredicate how = LLVMGetFCmpPredicate(c);
    if (how != LLVMRealOLT && how != LLVMRealOGT)
        return false;
    const dx_reg x = opjit_dx_use(f, LLVMGetOperand(c, 0)), y = opjit_dx_use(f, LLVMGetOperand(c, 1));
    const dx_reg yes = opjit_dx_use(f, as_floats(LLVMGetOperand(v, 1)));
    const dx_reg no = opjit_dx_use(f, as_floats(LLVMGetOperand(v, 2)));
    const bool same = yes == x && no == y, turned = yes == y && no == x;
    if (!same && !turned)
        return false;
    const bool max = (how == LLVMRealOGT) == same;
    const bool wide = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(c, 0))).bits == 64;
    const dx_form_name form = max ? wide ? DX_F_MAXPD : DX_F_MAXPS : wide ? DX_F_MINPD : DX_F_MINPS;
    opjit_dx_vector(f, form, dx_width(t), opjit_dx_result(f, v), yes, no);
    return true;
}

dx_reg opjit_dx_condition_as_all(dx_func *f, LLVMValueRef c)
{
    const dx_reg bit = opjit_dx_use(f, c), all = opjit_dx_new(f, DX_INT);
    opjit_dx_bit_as_all(f, all, bit);
    return all;
}

dx_reg opjit_dx_choosing_mask(dx_func *f, LLVMValueRef c, bool whole)
{
    const dx_reg mask = whole ? opjit_dx_new(f, DX_MASK) : opjit_dx_mask(f, c);
    if (whole)
        opjit_dx_vector(f, DX_F_KMOVQ, 16, mask, 0, opjit_dx_condition_as_all(f, c));
    return mask;
}

/* Of masks: what both the condition and the first have, or the second alone. */
static void select_masks(dx_func *f, LLVMValueRef v, bool whole)
{
    enum { WIDTH = 32 /* operations on masks have this encoding */ };
    const dx_reg mask = opjit_dx_choosing_mask(f, LLVMGetOperand(v, 0), whole);
    const dx_reg yes = opjit_dx_mask(f, LLVMGetOperand(v, 1)), no = opjit_dx_mask(f, LLVMGetOperand(v, 2));
    const dx_reg both = opjit_dx_new(f, DX_MASK), other = opjit_dx_new(f, DX_MASK);
    opjit_dx_vector(f, DX_F_KAND, WIDTH, both, mask, yes);
    opjit_dx_vector(f, DX_F_KANDN, WIDTH, other, mask, no);
    opjit_dx_vector(f, DX_F_KOR, WIDTH, opjit_dx_result(f, v), both, other);
}

static void select_lanes(dx_func *f, LLVMValueRef v, dx_type t)
{
    static const dx_form_name forms[] = { DX_F_BLENDB, DX_F_BLENDW, DX_F_BLENDD, DX_F_BLENDQ };
    const uint32_t size = t.bits == 64 ? 3 : t.bits == 32 ? 2 : t.bits == 16 ? 1 : 0;
    LLVMValueRef c = LLVMGetOperand(v, 0);
    const bool whole = t.lanes && !opjit_dx_type(f, LLVMTypeOf(c)).lanes;
    if (f->wide && t.bits == 1) {
        select_masks(f, v, whole);
        return;
    }
    if (!whole && select_beyond(f, v, t))
        return;
    if (!f->wide) {
        opjit_dx_narrow_select(f, v, t, whole);
        return;
    }
    const dx_reg mask = opjit_dx_choosing_mask(f, c, whole);
    const dx_reg yes = opjit_dx_use(f, LLVMGetOperand(v, 1)), no = opjit_dx_use(f, LLVMGetOperand(v, 2));
    opjit_dx_vector(f, forms[size], dx_width(t), opjit_dx_result(f, v), no, yes)->mask = mask;
}

void opjit_dx_select_choice(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (op == LLVMICmp)
        compare_integers(f, v);
    else if (op == LLVMFCmp)
        compare_floats(f, v);
    else if (opjit_dx_class(f, t) == DX_INT)
        select_integers(f, v);
    else
        select_lanes(f, v, t);
}

/* --- branches ----------------------------------------------------------------------------------------------------- */

/* What phis of `to` get from this block, all at once. */
static void put_edge(dx_func *f, uint32_t to)
{
    LLVMBasicBlockRef here = f->blocks[f->block].block;
    const uint32_t room = f->op_count;
    dx_reg from[64], dst[64];
    uint32_t count = 0;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(f->blocks[to].block);
         phi && LLVMGetInstructionOpcode(phi) == LLVMPHI; phi = LLVMGetNextInstruction(phi)) {
        LLVMValueRef in = NULL;
        for (unsigned i = 0; i < LLVMCountIncoming(phi) && !in; i++)
            if (LLVMGetIncomingBlock(phi, i) == here)
                in = LLVMGetIncomingValue(phi, i);
        if (!in || count == 64) {
            opjit_dx_refuse(f, "phi");
            return;
        }
        if (LLVMIsUndef(in))
            continue;
        from[count] = opjit_dx_use(f, in);
        dst[count++] = opjit_dx_find(f, phi)->reg;
    }
    (void)room;
    for (uint32_t i = 0; i < count; i++) {
        dx_op *o = opjit_dx_op(f, DX_MOVES);
        o->dst = dst[i];
        o->a = from[i];
        o->last = i == count - 1;
    }
}

static bool has_phis(const dx_func *f, uint32_t block)
{
    LLVMValueRef first = LLVMGetFirstInstruction(f->blocks[block].block);
    return first && LLVMGetInstructionOpcode(first) == LLVMPHI;
}

static void jump(dx_func *f, uint32_t to)
{
    opjit_dx_op(f, DX_JUMP)->imm = to;
}

/* Each edge with phis has its moves beside the branch, so that the other way does not see them. */
static void branch(dx_func *f, LLVMValueRef v)
{
    dx_op compared;
    const uint32_t yes = opjit_dx_block_of(f, LLVMGetSuccessor(v, 0)),
                   no = opjit_dx_block_of(f, LLVMGetSuccessor(v, 1));
    if (f->refused || !compare_condition(f, LLVMGetCondition(v), &compared))
        return;
    const bool moves = has_phis(f, yes);
    const uint32_t label = moves ? f->label_count++ : no;
    dx_op *o = opjit_dx_op(f, DX_BRANCH);
    *o = compared;
    o->kind = DX_BRANCH;
    o->c = 0;
    dx_forget_constants(f);
    if (!moves) {
        o->first = yes;
        put_edge(f, no);
        jump(f, no);
        return;
    }
    o->cc ^= 1;
    o->first = label;
    put_edge(f, yes);
    jump(f, yes);
    dx_forget_constants(f);
    opjit_dx_op(f, DX_LABEL)->imm = label;
    put_edge(f, no);
    jump(f, no);
}

/* Results as a call expects them (select_call.c): one, or up to four vectors that were put together before. */
static void give_back(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef results[DX_RESULTS] = { NULL }, given = LLVMGetNumOperands(v) > 0 ? LLVMGetOperand(v, 0) : NULL;
    uint32_t count = given != NULL;
    dx_reg regs[DX_RESULTS] = { 0 };
    bool wide = false;
    if (given && LLVMGetTypeKind(LLVMTypeOf(given)) == LLVMStructTypeKind) {
        count = LLVMCountStructElementTypes(LLVMTypeOf(given));
        for (; LLVMIsAInsertValueInst(given); given = LLVMGetOperand(given, 0))
            if (LLVMGetNumIndices(given) == 1 && LLVMGetIndices(given)[0] < DX_RESULTS &&
                !results[LLVMGetIndices(given)[0]])
                results[LLVMGetIndices(given)[0]] = LLVMGetOperand(given, 1);
    } else {
        results[0] = given;
    }
    for (uint32_t i = 0; i < count; i++) {
        const dx_type t = i < DX_RESULTS && results[i] ? opjit_dx_type(f, LLVMTypeOf(results[i])) : (dx_type){ 0 };
        const dx_class kind = opjit_dx_class(f, t);
        if (f->refused || (kind != DX_VEC && (kind == DX_MASK || count > 1 || t.bits < 32))) {
            opjit_dx_refuse(f, "result");
            return;
        }
        wide = wide || (kind == DX_VEC && dx_bytes(t) > 16);
        regs[i] = opjit_dx_use(f, results[i]);
    }
    for (uint32_t i = 0; i < count && !f->refused; i++) {
        dx_virtual *reg = &f->regs[regs[i]];
        dx_op *o = opjit_dx_op(f, DX_MOVES);
        o->a = regs[i];
        o->fixed = DX_TO_FIXED;
        o->imm = reg->kind == DX_VEC ? i : X86_AX;
        if (reg->kind == DX_VEC && !reg->fixed_hint) {
            reg->fixed_hint = true;
            reg->hint = i;
        }
        o->last = i == count - 1;
    }
    opjit_dx_op(f, DX_RETURN)->code = wide; /* else the upper halves of vectors are cleared */
}

void opjit_dx_select_flow(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    if (compat_is_branch(op) && LLVMGetNumSuccessors(v) == 2) {
        branch(f, v);
    } else if (compat_is_branch(op)) {
        const uint32_t to = opjit_dx_block_of(f, LLVMGetSuccessor(v, 0));
        if (!f->refused)
            put_edge(f, to);
        jump(f, to);
    } else if (op == LLVMRet) {
        give_back(f, v);
    } else {
        opjit_dx_refuse(f, "end of a block");
    }
}
