/* SPDX-License-Identifier: Apache-2.0 */
/* select_call.c - calls of functions, and intrinsics of memory. */
#include "codegen/direct.h"

#include <string.h>

enum { MOST_ARGUMENTS = 6 };

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

typedef struct argument {
    dx_reg from;
    uint32_t fixed;
} argument;

/* Arguments in the registers of the calling convention; the number of them. */
static uint32_t read_arguments(dx_func *f, LLVMValueRef v, argument *out, bool *wide)
{
    static const uint8_t integers[MOST_ARGUMENTS] = { X86_DI, X86_SI, X86_DX, X86_CX, 8, 9 };
    const unsigned count = LLVMGetNumArgOperands(v);
    uint32_t ints = 0, vectors = 0;
    if (count > MOST_ARGUMENTS) {
        opjit_dx_refuse(f, "arguments");
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef x = LLVMGetOperand(v, i);
        const dx_type t = opjit_dx_type(f, LLVMTypeOf(x));
        const dx_class kind = opjit_dx_class(f, t);
        if (kind == DX_MASK || (kind == DX_INT && t.bits < 32))
            opjit_dx_refuse(f, "argument");
        *wide = *wide || (kind == DX_VEC && dx_bytes(t) > 16);
        out[i].from = opjit_dx_use(f, x);
        out[i].fixed = kind == DX_VEC ? vectors++ : integers[ints++];
    }
    return count;
}

/* Results in the registers of the calling convention: none, one, or up to four vectors, whose registers follow each
 * other here, too. */
static void read_results(dx_func *f, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    dx_reg regs[DX_RESULTS] = { 0 };
    uint32_t count = 1;
    dx_class kind = DX_VEC;
    if (LLVMGetTypeKind(type) == LLVMVoidTypeKind)
        return;
    if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
        count = LLVMCountStructElementTypes(type);
        for (uint32_t i = 0; i < count && i < DX_RESULTS; i++)
            if (opjit_dx_class(f, opjit_dx_type(f, LLVMStructGetTypeAtIndex(type, i))) != DX_VEC)
                opjit_dx_refuse(f, "result");
        if (count > DX_RESULTS)
            opjit_dx_refuse(f, "results");
    } else {
        kind = opjit_dx_class(f, opjit_dx_type(f, type));
        if (kind == DX_MASK)
            opjit_dx_refuse(f, "result");
    }
    for (uint32_t i = 0; i < count && !f->refused; i++) {
        regs[i] = opjit_dx_new(f, kind);
        dx_op *o = opjit_dx_op(f, DX_MOVES);
        o->dst = regs[i];
        o->fixed = DX_FROM_FIXED;
        o->imm = kind == DX_VEC ? i : X86_AX;
        o->last = i == count - 1;
    }
    dx_value *value = opjit_dx_enter(f, v);
    value->how = LLVMGetTypeKind(type) == LLVMStructTypeKind ? DX_V_LIST : DX_V_REG;
    value->reg = regs[0];
}

static void call(dx_func *f, LLVMValueRef v, LLVMValueRef callee)
{
    argument arguments[MOST_ARGUMENTS];
    bool wide = false;
    const uint32_t symbol = opjit_dx_symbol(f->m, callee), count = read_arguments(f, v, arguments, &wide);
    if (symbol == UINT32_MAX || LLVMGetFunctionCallConv(callee) != LLVMCCallConv) {
        opjit_dx_refuse(f, "callee");
        return;
    }
    f->calls = true;
    for (uint32_t i = 0; i < count; i++) {
        dx_op *o = opjit_dx_op(f, DX_MOVES);
        o->a = arguments[i].from;
        o->fixed = DX_TO_FIXED;
        o->imm = arguments[i].fixed;
        o->last = i == count - 1;
    }
    dx_op *o = opjit_dx_op(f, DX_CALL);
    o->imm = symbol;
    dx_forget_constants(f); /* calls keep no vectors */
    o->code = !wide;        /* the upper halves of vectors are cleared */
    read_results(f, v);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Lanes that a constant mask has: all, or as the mask. */
static bool is_all(LLVMValueRef mask, uint32_t lanes)
{
    if (!LLVMIsConstant(mask) || LLVMIsNull(mask) || LLVMIsUndef(mask))
        return false;
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef e = LLVMIsAConstantInt(mask) ? mask : LLVMGetAggregateElement(mask, i);
        if (!e || !LLVMIsAConstantInt(e) || LLVMConstIntGetZExtValue(e) == 0)
            return false;
    }
    return true;
}

/* A mask of AVX-512 for memory.  It has anything above its lanes, and a short vector's instruction is of 16 bytes. */
static dx_reg mask_in_memory(dx_func *f, LLVMValueRef mask, dx_type t)
{
    const dx_reg all = opjit_dx_mask(f, mask);
    if (dx_bytes(t) >= 16)
        return all;
    const dx_reg lanes = opjit_dx_mask_number(f, ((uint64_t)1 << t.lanes) - 1, t.lanes);
    const dx_reg low = opjit_dx_new(f, DX_MASK);
    opjit_dx_vector(f, DX_F_KAND, 32, low, lanes, all);
    return low;
}

static void masked_load(dx_func *f, LLVMValueRef v)
{
    static const dx_form_name forms[] = { DX_F_LOADB, DX_F_LOADW, DX_F_LOAD, DX_F_LOADQ };
    LLVMValueRef mask = LLVMGetOperand(v, 1), other = LLVMGetOperand(v, 2);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (opjit_dx_class(f, t) != DX_VEC || t.kind == DX_T_PTR || LLVMGetNumArgOperands(v) != 3) {
        opjit_dx_refuse(f, "masked load");
        return;
    }
    if (!f->wide && !is_all(mask, t.lanes)) {
        opjit_dx_narrow_load(f, v, t);
        return;
    }
    const bool all = is_all(mask, t.lanes), zero = LLVMIsConstant(other) && (LLVMIsNull(other) || LLVMIsUndef(other));
    const dx_reg lanes = all ? 0 : mask_in_memory(f, mask, t);
    const dx_reg from = all || zero ? 0 : opjit_dx_use(f, other);
    const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, LLVMGetOperand(v, 0)));
    const dx_reg dst = opjit_dx_result(f, v);
    if (from)
        opjit_dx_copy(f, dst, from);
    if (dx_bytes(t) < 16 && all)
        opjit_dx_refuse(f, "masked load of a short vector");
    dx_op *o = opjit_dx_vector(f, f->wide ? forms[dx_size(t.bits)] : DX_F_LOAD, dx_width(t), dst, 0, 0);
    o->mem = mem;
    o->mask = lanes;
    o->zero = lanes && !from;
    o->tied = from != 0;
}

static void masked_store(dx_func *f, LLVMValueRef v)
{
    static const dx_form_name forms[] = { DX_F_STOREB, DX_F_STOREW, DX_F_STORE, DX_F_STOREQ };
    LLVMValueRef value = LLVMGetOperand(v, 0), mask = LLVMGetOperand(v, 2);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(value));
    if (opjit_dx_class(f, t) != DX_VEC || LLVMGetNumArgOperands(v) != 3 || LLVMHasMetadata(v)) {
        opjit_dx_refuse(f, "masked store");
        return;
    }
    if (!f->wide && !is_all(mask, t.lanes)) {
        opjit_dx_narrow_store(f, v, t);
        return;
    }
    const bool all = is_all(mask, t.lanes);
    const dx_reg lanes = all ? 0 : mask_in_memory(f, mask, t), a = opjit_dx_use(f, value);
    const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, LLVMGetOperand(v, 1)));
    if (dx_bytes(t) < 16 && all)
        opjit_dx_refuse(f, "masked store of a short vector");
    dx_op *o = opjit_dx_op(f, DX_PUT);
    o->form = f->wide ? forms[dx_size(t.bits)] : DX_F_STORE;
    o->bytes = (uint8_t)dx_width(t);
    o->a = a;
    o->mem = mem;
    o->mask = lanes;
}

/* gather(zeros, address, offsets, mask, what offsets count) */
static void gather(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef other = LLVMGetOperand(v, 0);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    int64_t scale = 0;
    if (opjit_dx_class(f, t) != DX_VEC || dx_bytes(t) < 32 || !LLVMIsConstant(other) || !LLVMIsNull(other) ||
        !opjit_dx_constant(f, LLVMGetOperand(v, 4), &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8)) {
        opjit_dx_refuse(f, "gather");
        return;
    }
    const dx_reg base = opjit_dx_use(f, LLVMGetOperand(v, 1)), index = opjit_dx_use(f, LLVMGetOperand(v, 2));
    const dx_reg mask = opjit_dx_use(f, LLVMGetOperand(v, 3));
    const uint32_t mem = opjit_dx_mem(f, (dx_mem){ .where = DX_AT_REGISTER, .base = base });
    const dx_reg dst = opjit_dx_result(f, v);
    opjit_dx_op(f, DX_NUMBER)->dst = dst;
    dx_op *o = opjit_dx_vector(f, t.bits == 64 ? DX_F_GATHERQ : DX_F_GATHERD, dx_bytes(t), dst, index, 0);
    o->tied = true;
    o->mask = mask;
    o->mem = mem;
    o->code = (uint8_t)__builtin_ctzll((uint64_t)scale);
}

static void fetch(dx_func *f, LLVMValueRef v)
{
    int64_t write = 0, locality = 3;
    if (!opjit_dx_constant(f, LLVMGetOperand(v, 1), &write) || !opjit_dx_constant(f, LLVMGetOperand(v, 2), &locality) ||
        write != 0) {
        opjit_dx_refuse(f, "prefetch");
        return;
    }
    const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, LLVMGetOperand(v, 0)));
    dx_op *o = opjit_dx_op(f, DX_FETCH);
    o->mem = mem;
    o->code = locality == 0 ? 0 : (uint8_t)(4 - locality); /* nta, t0, t1, t2 */
}

void opjit_dx_select_call(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef callee = LLVMGetCalledValue(v);
    size_t length;
    if (!LLVMIsAFunction(callee)) {
        opjit_dx_refuse(f, "indirect call");
        return;
    }
    const char *name = LLVMGetValueName2(callee, &length);
    if (!begins(name, "llvm.") || begins(name, "llvm.masked."))
        opjit_dx_put_now(f);
    if (!begins(name, "llvm."))
        call(f, v, callee);
    else if (begins(name, "llvm.masked.load."))
        masked_load(f, v);
    else if (begins(name, "llvm.masked.store."))
        masked_store(f, v);
    else if (begins(name, "llvm.x86.avx512.mask.gather"))
        gather(f, v);
    else if (begins(name, "llvm.prefetch."))
        fetch(f, v);
    else if (strcmp(name, "llvm.x86.sse.sfence") == 0)
        opjit_dx_op(f, DX_FENCE);
    else
        opjit_dx_math(f, v, name + 5);
}
