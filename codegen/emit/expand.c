/* SPDX-License-Identifier: Apache-2.0 */
/* expand.c - operations that a target has no instruction for, made of those that it has, on scalars and vectors alike.
 * They rely on rounding to nearest, on subnormals being kept, and on LLVM not reassociating: no fast-math flags.
 * Operations that need a loop or 128 bits are in softops/scalar.c. */
#include "codegen/cg.h"

static LLVMValueRef number(cg_func *f, LLVMValueRef like, uint64_t value)
{
    return opjit_cg_number(f, opjit_cg_bits(like), opjit_cg_lanes(like), value);
}

static LLVMValueRef real(cg_func *f, LLVMValueRef like, double value)
{
    return opjit_cg_real(f, opjit_cg_bits(like) == 64 ? IR_F64 : IR_F32, opjit_cg_lanes(like), value);
}

static LLVMValueRef bit_and(cg_func *f, LLVMValueRef a, uint64_t b)
{
    return LLVMBuildAnd(f->b, a, number(f, a, b), "");
}
static LLVMValueRef add(cg_func *f, LLVMValueRef a, uint64_t b)
{
    return LLVMBuildAdd(f->b, a, number(f, a, b), "");
}
static LLVMValueRef shl(cg_func *f, LLVMValueRef a, uint64_t b)
{
    return LLVMBuildShl(f->b, a, number(f, a, b), "");
}
static LLVMValueRef shr(cg_func *f, LLVMValueRef a, uint64_t b)
{
    return LLVMBuildLShr(f->b, a, number(f, a, b), "");
}

static LLVMValueRef select(cg_func *f, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(f->b, c, a, b, "");
}

static LLVMValueRef compare(cg_func *f, LLVMIntPredicate how, LLVMValueRef a, uint64_t b)
{
    return LLVMBuildICmp(f->b, how, a, number(f, a, b), "");
}

/* --- f16 ---------------------------------------------------------------------------------------------------------- */

/* Normal results: rebases the exponent, and rounds off 13 bits by an addition that carries into it.  Subnormal results:
 * an addition of 0.5 aligns the fraction with f16's and rounds it.  A NaN keeps the top of its payload. */
LLVMValueRef opjit_cg_expand_to_half(cg_func *f, LLVMValueRef x)
{
    LLVMValueRef bits = opjit_cg_as_bits(f, x), size = bit_and(f, bits, 0x7fffffff);
    LLVMValueRef odd = bit_and(f, shr(f, size, 13), 1);
    LLVMValueRef normal = shr(f, LLVMBuildAdd(f->b, add(f, size, 0xc8000fff), odd, ""), 13);
    LLVMValueRef half = opjit_cg_as_float(f, size);
    half = LLVMBuildFAdd(f->b, half, real(f, half, 0.5), "");
    LLVMValueRef small = add(f, opjit_cg_as_bits(f, half), 0u - 0x3f000000u);
    LLVMValueRef nan = LLVMBuildOr(f->b, bit_and(f, shr(f, size, 13), 0x3ff), number(f, size, 0x7e00), "");
    LLVMValueRef big = select(f, compare(f, LLVMIntSGT, size, 0x7f800000), nan, number(f, size, 0x7c00));
    LLVMValueRef out = select(f, compare(f, LLVMIntSLT, size, 0x38800000), small, normal);
    out = select(f, compare(f, LLVMIntSGE, size, 0x47800000), big, out);
    out = LLVMBuildOr(f->b, out, bit_and(f, shr(f, bits, 16), 0x8000), "");
    return opjit_cg_resize(f, out, 16, false);
}

LLVMValueRef opjit_cg_expand_from_half(cg_func *f, LLVMValueRef x)
{
    LLVMValueRef wide = opjit_cg_resize(f, x, 32, false);
    LLVMValueRef sign = shl(f, bit_and(f, wide, 0x8000), 16), moved = shl(f, bit_and(f, wide, 0x7fff), 13);
    LLVMValueRef exponent = bit_and(f, moved, 0x0f800000), normal = add(f, moved, (uint64_t)112 << 23);
    LLVMValueRef big = add(f, moved, (uint64_t)224 << 23);
    /* As a normal number with 2^-14 in front, which is subtracted again. */
    LLVMValueRef lifted = opjit_cg_as_float(f, add(f, moved, (uint64_t)113 << 23));
    LLVMValueRef small = opjit_cg_as_bits(f, LLVMBuildFSub(f->b, lifted, real(f, lifted, 0x1p-14), ""));
    LLVMValueRef out = select(f, compare(f, LLVMIntEQ, exponent, 0), small, normal);
    out = select(f, compare(f, LLVMIntEQ, exponent, 0x0f800000), big, out);
    return opjit_cg_as_float(f, LLVMBuildOr(f->b, out, sign, ""));
}

/* --- rounding to integers ----------------------------------------------------------------------------------------- */

/* Adding and subtracting 2^23 (f64: 2^52) rounds to an integer; floor and ceil correct that by one. */
LLVMValueRef opjit_cg_expand_round(cg_func *f, ir_op op, ir_type type, LLVMValueRef x)
{
    const double whole = type == IR_F64 ? 0x1p52 : 0x1p23;
    const uint64_t sign = (uint64_t)1 << (opjit_cg_bits(x) - 1);
    LLVMValueRef bits = opjit_cg_as_bits(f, x), size = opjit_cg_as_float(f, bit_and(f, bits, sign - 1));
    LLVMValueRef near = LLVMBuildFAdd(f->b, size, real(f, size, whole), "");
    near = LLVMBuildFSub(f->b, near, real(f, size, whole), "");
    LLVMValueRef own_sign = bit_and(f, bits, sign), one = real(f, size, 1), y = near;
    if (op == IR_TRUNC) {
        LLVMValueRef above = LLVMBuildFCmp(f->b, LLVMRealOGT, near, size, "");
        y = select(f, above, LLVMBuildFSub(f->b, near, one, ""), near);
    } else if (op != IR_RINT) {
        y = opjit_cg_as_float(f, LLVMBuildOr(f->b, opjit_cg_as_bits(f, near), own_sign, ""));
        LLVMValueRef wrong = LLVMBuildFCmp(f->b, op == IR_FLOOR ? LLVMRealOGT : LLVMRealOLT, y, x, "");
        LLVMValueRef moved = op == IR_FLOOR ? LLVMBuildFSub(f->b, y, one, "") : LLVMBuildFAdd(f->b, y, one, "");
        y = select(f, wrong, moved, y);
        y = opjit_cg_as_float(f, bit_and(f, opjit_cg_as_bits(f, y), sign - 1)); /* keeps the sign, also of zero */
    }
    y = opjit_cg_as_float(f, LLVMBuildOr(f->b, opjit_cg_as_bits(f, y), own_sign, ""));
    LLVMValueRef has_fraction = LLVMBuildFCmp(f->b, LLVMRealOLT, size, real(f, size, whole), "");
    return select(f, has_fraction, y, x);
}

/* --- fma and ldexp ------------------------------------------------------------------------------------------------ */

/* sum is an exact value rounded to nearest, error the rest.  Returns the one of its two neighbours (or itself, if it is
 * exact) whose last bit is 1. */
LLVMValueRef opjit_cg_round_to_odd(cg_func *f, LLVMValueRef sum, LLVMValueRef error)
{
    LLVMValueRef zero = real(f, error, 0), bits = opjit_cg_as_bits(f, sum);
    LLVMValueRef inexact = LLVMBuildFCmp(f->b, LLVMRealONE, error, zero, "");
    LLVMValueRef even = compare(f, LLVMIntEQ, bit_and(f, bits, 1), 0);
    LLVMValueRef away = LLVMBuildICmp(f->b, LLVMIntEQ, LLVMBuildFCmp(f->b, LLVMRealOGT, error, zero, ""),
                                      LLVMBuildFCmp(f->b, LLVMRealOGT, sum, zero, ""), "");
    LLVMValueRef moved = LLVMBuildAdd(f->b, bits, select(f, away, number(f, bits, 1), number(f, bits, UINT64_MAX)), "");
    return opjit_cg_as_float(f, select(f, LLVMBuildAnd(f->b, inexact, even, ""), moved, bits));
}

/* The product of two f32 is exact in f64, and nothing overflows or underflows there; the sum is rounded to odd. */
LLVMValueRef opjit_cg_expand_fma_f32(cg_func *f, LLVMValueRef *a)
{
    const uint32_t lanes = opjit_cg_lanes(a[0]);
    LLVMValueRef x[3];
    for (uint32_t i = 0; i < 3; i++)
        x[i] = LLVMBuildFPExt(f->b, a[i], opjit_cg_float(f, IR_F64, lanes), "");
    LLVMValueRef p = LLVMBuildFMul(f->b, x[0], x[1], ""), s = LLVMBuildFAdd(f->b, p, x[2], "");
    LLVMValueRef back = LLVMBuildFSub(f->b, s, p, "");
    LLVMValueRef error = LLVMBuildFAdd(f->b, LLVMBuildFSub(f->b, p, LLVMBuildFSub(f->b, s, back, ""), ""),
                                       LLVMBuildFSub(f->b, x[2], back, ""), "");
    return LLVMBuildFPTrunc(f->b, opjit_cg_round_to_odd(f, s, error), opjit_cg_float(f, IR_F32, lanes), "");
}

/* --- quotients of vectors of integers of up to 32 bits; divisors are not 0, and not -1 for INT_MIN --------------- */

/* Up to 16 bits in f32: the quotient is below 2^16 in absolute value, and a whole number or at least 2^-16 from one. */
static LLVMValueRef short_quotient(cg_func *f, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    const uint32_t lanes = opjit_cg_lanes(a), width = opjit_cg_bits(a);
    LLVMTypeRef type = opjit_cg_float(f, IR_F32, lanes);
    LLVMValueRef x = LLVMBuildSIToFP(f->b, opjit_cg_resize(f, a, 32, is_signed), type, "");
    LLVMValueRef y = LLVMBuildSIToFP(f->b, opjit_cg_resize(f, b, 32, is_signed), type, "");
    LLVMValueRef q = LLVMBuildFDiv(f->b, x, y, "");
    return opjit_cg_resize(f, LLVMBuildFPToSI(f->b, q, opjit_cg_int(f, 32, lanes), ""), width, false);
}

/* As a number on top of 2^52. */
static LLVMValueRef unsigned_to_f64(cg_func *f, LLVMValueRef n)
{
    LLVMValueRef wide = opjit_cg_resize(f, n, 64, false);
    LLVMValueRef lifted =
        opjit_cg_as_float(f, LLVMBuildOr(f->b, wide, number(f, wide, UINT64_C(0x4330000000000000)), ""));
    return LLVMBuildFSub(f->b, lifted, real(f, lifted, 0x1p52), "");
}

/* The nearest whole number, minus one if that is too large: its product with b is exact. */
static LLVMValueRef unsigned_quotient(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef x = unsigned_to_f64(f, a), y = unsigned_to_f64(f, b), whole = real(f, x, 0x1p52);
    LLVMValueRef lifted = LLVMBuildFAdd(f->b, LLVMBuildFDiv(f->b, x, y, ""), whole, "");
    LLVMValueRef product = LLVMBuildFMul(f->b, LLVMBuildFSub(f->b, lifted, whole, ""), y, "");
    LLVMValueRef above = LLVMBuildFCmp(f->b, LLVMRealOGT, product, x, "");
    LLVMValueRef bits = opjit_cg_as_bits(f, lifted);
    bits = select(f, above, add(f, bits, UINT64_MAX), bits);
    return opjit_cg_resize(f, bits, 32, false);
}

LLVMValueRef opjit_cg_expand_quotient(cg_func *f, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    const uint32_t lanes = opjit_cg_lanes(a);
    LLVMTypeRef type = opjit_cg_float(f, IR_F64, lanes);
    if (opjit_cg_bits(a) < 32)
        return short_quotient(f, is_signed, a, b);
    if (!is_signed)
        return unsigned_quotient(f, a, b);
    LLVMValueRef q = LLVMBuildFDiv(f->b, LLVMBuildSIToFP(f->b, a, type, ""), LLVMBuildSIToFP(f->b, b, type, ""), "");
    return LLVMBuildFPToSI(f->b, q, opjit_cg_int(f, 32, lanes), "");
}

/* --- bits --------------------------------------------------------------------------------------------------------- */

/* Sums of neighbouring fields of 1, 2, 4 bits, then of bytes by doubling shifts. */
LLVMValueRef opjit_cg_expand_ctpop(cg_func *f, LLVMValueRef x)
{
    const uint32_t bits = opjit_cg_bits(x);
    x = LLVMBuildSub(f->b, x, bit_and(f, shr(f, x, 1), 0x5555555555555555), "");
    x = LLVMBuildAdd(f->b, bit_and(f, x, 0x3333333333333333), bit_and(f, shr(f, x, 2), 0x3333333333333333), "");
    x = bit_and(f, LLVMBuildAdd(f->b, x, shr(f, x, 4), ""), 0x0f0f0f0f0f0f0f0f);
    for (uint32_t width = 8; width < bits; width *= 2)
        x = LLVMBuildAdd(f->b, x, shr(f, x, width), "");
    return bits == 8 ? x : bit_and(f, x, 0x7f);
}
