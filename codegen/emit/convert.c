/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - CAST, and conversions between f16 and the other floats, on values.  Every conversion rounds once. */
#include "codegen/cg.h"

static LLVMValueRef to_float(cg_func *f, LLVMValueRef v, ir_type to)
{
    return LLVMBuildFPExt(f->b, opjit_cg_as_float(f, v), opjit_cg_float(f, to, opjit_cg_lanes(v)), "");
}

/* Whether a single number is converted another way: fast selection knows no conversion of one half. */
static bool is_single_half(const cg_func *f, LLVMValueRef v)
{
    return f->cpu->half_bits && !f->peak && opjit_cg_lanes(v) == 1;
}

/* As the first element of a vector, where no intrinsic converts one (llvm_compat.h). */
static LLVMValueRef convert_first(cg_func *f, LLVMValueRef v, LLVMValueRef (*convert)(cg_func *, LLVMValueRef))
{
    LLVMValueRef first = LLVMConstNull(opjit_cg_int(f, 32, 1));
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(LLVMTypeOf(v), 8));
    return LLVMBuildExtractElement(f->b, convert(f, LLVMBuildInsertElement(f->b, zeros, v, first, "")), first, "");
}

LLVMValueRef opjit_cg_half_to_f32(cg_func *f, LLVMValueRef v)
{
    LLVMTypeRef type = opjit_cg_float(f, IR_F32, 1);
    if (opjit_cg_way(f->cpu, f->target, IR_CAST, IR_F16) != CG_NATIVE)
        return opjit_cg_expand_from_half(f, v);
    if (is_single_half(f, v))
        return compat_converts_half_bits() ? opjit_cg_call_of(f, "llvm.convert.from.fp16", type, 1, &v)
                                           : convert_first(f, v, opjit_cg_half_to_f32);
    const uint32_t lanes = opjit_cg_lanes(v);
    LLVMValueRef half = LLVMBuildBitCast(f->b, v, opjit_cg_float(f, IR_F16, lanes), "");
    return LLVMBuildFPExt(f->b, half, opjit_cg_float(f, IR_F32, lanes), "");
}

LLVMValueRef opjit_cg_f32_to_half(cg_func *f, LLVMValueRef v)
{
    v = opjit_cg_as_float(f, v);
    if (opjit_cg_way(f->cpu, f->target, IR_CAST, IR_F16) != CG_NATIVE)
        return opjit_cg_expand_to_half(f, v);
    if (is_single_half(f, v))
        return compat_converts_half_bits() ? opjit_cg_call(f, "llvm.convert.to.fp16", 1, &v)
                                           : convert_first(f, v, opjit_cg_f32_to_half);
    const uint32_t lanes = opjit_cg_lanes(v);
    LLVMValueRef half = LLVMBuildFPTrunc(f->b, v, opjit_cg_float(f, IR_F16, lanes), "");
    return LLVMBuildBitCast(f->b, half, opjit_cg_int(f, 16, lanes), "");
}

/* First to f32, rounded to odd: an inexact result is truncated and gets a last bit of 1, which keeps it off f16's
 * midpoints and on its side of them. */
LLVMValueRef opjit_cg_f64_to_half(cg_func *f, LLVMValueRef v)
{
    v = opjit_cg_as_float(f, v);
    const uint32_t lanes = opjit_cg_lanes(v);
    LLVMTypeRef f64 = opjit_cg_float(f, IR_F64, lanes);
    LLVMValueRef near = LLVMBuildFPTrunc(f->b, v, opjit_cg_float(f, IR_F32, lanes), "");
    LLVMValueRef back = LLVMBuildFPExt(f->b, near, f64, ""), bits = opjit_cg_as_bits(f, near);
    LLVMValueRef inexact = LLVMBuildFCmp(f->b, LLVMRealONE, back, v, "");
    LLVMValueRef size = opjit_cg_call(f, "llvm.fabs", 1, &v), back_size = opjit_cg_call(f, "llvm.fabs", 1, &back);
    LLVMValueRef up = LLVMBuildFCmp(f->b, LLVMRealOGT, back_size, size, "");
    LLVMValueRef cut = LLVMBuildSub(f->b, bits, LLVMBuildZExt(f->b, up, opjit_cg_int(f, 32, lanes), ""), "");
    LLVMValueRef odd = LLVMBuildOr(f->b, cut, LLVMBuildZExt(f->b, inexact, opjit_cg_int(f, 32, lanes), ""), "");
    return opjit_cg_f32_to_half(f, odd);
}

static LLVMValueRef float_to_float(cg_func *f, ir_type from, ir_type to, LLVMValueRef v)
{
    if (from == IR_F16)
        return to == IR_F32 ? opjit_cg_half_to_f32(f, v) : to_float(f, opjit_cg_half_to_f32(f, v), IR_F64);
    if (to == IR_F16)
        return from == IR_F32 ? opjit_cg_f32_to_half(f, v) : opjit_cg_f64_to_half(f, v);
    if (to == IR_F64)
        return to_float(f, v, IR_F64);
    return LLVMBuildFPTrunc(f->b, opjit_cg_as_float(f, v), opjit_cg_float(f, IR_F32, opjit_cg_lanes(v)), "");
}

static LLVMValueRef number_or_zero(cg_func *f, ir_type from, LLVMValueRef v)
{
    LLVMValueRef is_number = LLVMBuildFCmp(f->b, LLVMRealORD, v, v, "");
    return LLVMBuildSelect(f->b, is_number, v, opjit_cg_real(f, from, opjit_cg_lanes(v), 0), "");
}

/* To 8 or 16 bits, whose limits are floats: what is beyond them becomes them before the instruction gets it.  A NaN is
 * not above 0.  The truncation says that it changes no number. */
static LLVMValueRef float_to_short(cg_func *f, ir_type from, LLVMValueRef v, uint32_t bits, bool is_signed)
{
    const uint32_t lanes = opjit_cg_lanes(v);
    const double end = (double)(1 << (bits - is_signed)), lowest = is_signed ? -end : 0;
    v = is_signed ? number_or_zero(f, from, v) : v;
    v = opjit_cg_beyond(f, IR_MAX, from, v, opjit_cg_real(f, from, lanes, lowest));
    v = opjit_cg_beyond(f, IR_MIN, from, v, opjit_cg_real(f, from, lanes, end - 1));
    v = opjit_cg_resize(f, LLVMBuildFPToSI(f->b, v, opjit_cg_int(f, 32, lanes), ""), bits, false);
    if (LLVMIsATruncInst(v) && is_signed)
        LLVMSetNSW(v, true);
    else if (LLVMIsATruncInst(v))
        LLVMSetNUW(v, true);
    return v;
}

/* What float_to_short made is a number of 32 bits that has the same value; NULL: it is none. */
static LLVMValueRef before_short(LLVMValueRef v)
{
    LLVMValueRef from = LLVMIsATruncInst(v) ? LLVMGetOperand(v, 0) : NULL;
    return from && LLVMIsAFPToSIInst(from) ? from : NULL;
}

/* Toward zero, saturating, NaN to 0.  Values out of range, for which the instruction's result is unspecified, don't
 * reach it; limits of 32 and 64 bits are powers of two, so the comparisons are exact. */
static LLVMValueRef float_to_integer(cg_func *f, ir_type from, ir_type to, LLVMValueRef v)
{
    const uint32_t bits = 8 * opjit_ir_type_size(to), lanes = opjit_cg_lanes(v);
    const bool is_signed = ir_is_signed(to);
    if (from == IR_F16) {
        v = opjit_cg_half_to_f32(f, v);
        from = IR_F32;
    }
    v = opjit_cg_as_float(f, v);
    if (bits < 32)
        return float_to_short(f, from, v, bits, is_signed);
    const double top = (double)((uint64_t)1 << (bits - 1)) * (is_signed ? 1 : 2), bottom = is_signed ? -top : 0;
    LLVMValueRef high = LLVMBuildFCmp(f->b, LLVMRealOGE, v, opjit_cg_real(f, from, lanes, top), "");
    LLVMValueRef low = LLVMBuildFCmp(f->b, LLVMRealOLE, v, opjit_cg_real(f, from, lanes, bottom), "");
    LLVMValueRef nan = LLVMBuildFCmp(f->b, LLVMRealUNO, v, v, "");
    LLVMValueRef out = LLVMBuildOr(f->b, LLVMBuildOr(f->b, high, low, ""), nan, "");
    LLVMValueRef safe = LLVMBuildSelect(f->b, out, opjit_cg_real(f, from, lanes, 0), v, "");
    LLVMTypeRef type = opjit_cg_int(f, bits, lanes);
    LLVMValueRef x = is_signed ? LLVMBuildFPToSI(f->b, safe, type, "") : LLVMBuildFPToUI(f->b, safe, type, "");
    const uint64_t ones = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    x = LLVMBuildSelect(f->b, high, opjit_cg_number(f, bits, lanes, is_signed ? ones >> 1 : ones), x, "");
    return is_signed ? LLVMBuildSelect(f->b, low, opjit_cg_number(f, bits, lanes, (ones >> 1) + 1), x, "") : x;
}

/* f16: what is inexact in f32 is infinite in f16. */
static LLVMValueRef integer_to_float(cg_func *f, ir_type from, ir_type to, LLVMValueRef v)
{
    const bool is_signed = ir_is_signed(from) || from == IR_INDEX || opjit_cg_bits(v) < 32;
    if (opjit_cg_bits(v) < 32)
        v = opjit_cg_resize(f, v, 32, ir_is_signed(from));
    LLVMTypeRef type = opjit_cg_float(f, to == IR_F16 ? IR_F32 : to, opjit_cg_lanes(v));
    LLVMValueRef x = is_signed ? LLVMBuildSIToFP(f->b, v, type, "") : LLVMBuildUIToFP(f->b, v, type, "");
    return to == IR_F16 ? opjit_cg_f32_to_half(f, x) : x;
}

static LLVMValueRef bool_to(cg_func *f, ir_type to, LLVMValueRef v)
{
    const uint32_t bits = 8 * opjit_ir_type_size(to), lanes = opjit_cg_lanes(v);
    if (!ir_is_float(to))
        return LLVMBuildZExt(f->b, v, opjit_cg_int(f, bits, lanes), "");
    const uint64_t one = to == IR_F16 ? 0x3c00 : to == IR_F32 ? 0x3f800000 : 0x3ff0000000000000;
    return LLVMBuildSelect(f->b, v, opjit_cg_number(f, bits, lanes, one), opjit_cg_number(f, bits, lanes, 0), "");
}

static LLVMValueRef to_bool(cg_func *f, ir_type from, LLVMValueRef v)
{
    v = opjit_cg_as_bits(f, v);
    return opjit_cg_compare(f, IR_NE, from, v, opjit_cg_number(f, opjit_cg_bits(v), opjit_cg_lanes(v), 0));
}

LLVMValueRef opjit_cg_convert(cg_func *f, ir_type from, ir_type to, LLVMValueRef v)
{
    if (from == to)
        return v;
    if (from == IR_BOOL)
        return bool_to(f, to, opjit_cg_narrow(f, v));
    if (to == IR_BOOL)
        return to_bool(f, from, v);
    if (ir_is_float(from))
        return ir_is_float(to) ? float_to_float(f, from, to, v) : float_to_integer(f, from, to, v);
    if (ir_is_float(to))
        return integer_to_float(f, from, to, v);
    LLVMValueRef wide = 8 * opjit_ir_type_size(to) == 32 ? before_short(v) : NULL;
    return wide ? wide : opjit_cg_resize(f, v, 8 * opjit_ir_type_size(to), ir_is_signed(from));
}

LLVMValueRef opjit_cg_halves(cg_func *f, ir_type from, LLVMValueRef v)
{
    const uint32_t lanes = opjit_cg_lanes(v);
    LLVMValueRef bytes = LLVMBuildBitCast(f->b, v, LLVMVectorType(f->type.i8, 2 * lanes), "");
    return LLVMBuildBitCast(f->b, opjit_cg_resize(f, bytes, 16, ir_is_signed(from)), opjit_cg_int(f, 32, lanes), "");
}
