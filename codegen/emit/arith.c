/* SPDX-License-Identifier: Apache-2.0 */
/* arith.c - arithmetic, bit operations and comparisons on values of one element type: total and bit exact, as
 * ir/eval/arithmetic.c defines them.  No flags that would let LLVM assume anything: no contraction, no fast math, no
 * wrap flags. */
#include "codegen/cg.h"

static LLVMValueRef number(cg_func *f, LLVMValueRef like, uint64_t value)
{
    return opjit_cg_number(f, opjit_cg_bits(like), opjit_cg_lanes(like), value);
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

/* Machines have no division of integer vectors: up to 32 bits are divided as floats, others lane by lane. */
static LLVMValueRef quotient(cg_func *f, bool is_signed, LLVMValueRef a, LLVMValueRef by)
{
    if (opjit_cg_lanes(a) > 1 && opjit_cg_bits(a) <= 32)
        return opjit_cg_expand_quotient(f, is_signed, a, by);
    return is_signed ? LLVMBuildSDiv(f->b, a, by, "") : LLVMBuildUDiv(f->b, a, by, "");
}

/* x / 0 is all ones, x rem 0 is x, and INT_MIN by -1 wraps: the divisor becomes 1 where the processor would trap. */
static LLVMValueRef divide(cg_func *f, bool remainder, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef zero = LLVMBuildICmp(f->b, LLVMIntEQ, b, number(f, b, 0), ""), minus = NULL, unsafe = zero;
    if (is_signed) {
        minus = LLVMBuildICmp(f->b, LLVMIntEQ, b, number(f, b, UINT64_MAX), "");
        unsafe = LLVMBuildOr(f->b, zero, minus, "");
    }
    LLVMValueRef by = LLVMBuildSelect(f->b, unsafe, number(f, b, 1), b, "");
    LLVMValueRef q = quotient(f, is_signed, a, by);
    if (remainder) { /* by 1 it is 0, which is also right for -1 */
        LLVMValueRef r = LLVMBuildSub(f->b, a, LLVMBuildMul(f->b, q, by, ""), "");
        return LLVMBuildSelect(f->b, zero, a, r, "");
    }
    if (is_signed)
        q = LLVMBuildSelect(f->b, minus, LLVMBuildNeg(f->b, a, ""), q, "");
    return LLVMBuildSelect(f->b, zero, number(f, a, UINT64_MAX), q, "");
}

static LLVMValueRef shift(cg_func *f, ir_op op, bool is_signed, LLVMValueRef a, LLVMValueRef count)
{
    const uint32_t width = opjit_cg_bits(a);
    LLVMValueRef fits = LLVMBuildICmp(f->b, LLVMIntULT, count, number(f, count, width), "");
    const bool always = LLVMIsConstant(fits) && fits == LLVMConstAllOnes(LLVMTypeOf(fits));
    LLVMValueRef least = LLVMBuildSelect(f->b, fits, count, number(f, count, width - 1), ""); /* poison otherwise */
    if (op == IR_SHR && is_signed)
        return LLVMBuildAShr(f->b, a, least, "");
    LLVMValueRef shifted = op == IR_SHL ? LLVMBuildShl(f->b, a, least, "") : LLVMBuildLShr(f->b, a, least, "");
    return always ? shifted : LLVMBuildSelect(f->b, fits, shifted, number(f, a, 0), "");
}

/* Square and multiply, one step per bit of the power. */
static LLVMValueRef integer_power(cg_func *f, LLVMValueRef base, LLVMValueRef power)
{
    const uint32_t width = opjit_cg_bits(base);
    LLVMValueRef product = number(f, base, 1);
    for (uint32_t i = 0; i < width; i++) {
        LLVMValueRef bit = LLVMBuildAnd(f->b, power, number(f, power, (uint64_t)1 << i), "");
        LLVMValueRef has = LLVMBuildICmp(f->b, LLVMIntNE, bit, number(f, power, 0), "");
        product = LLVMBuildSelect(f->b, has, LLVMBuildMul(f->b, product, base, ""), product, "");
        if (i + 1 < width)
            base = LLVMBuildMul(f->b, base, base, "");
    }
    return product;
}

static LLVMValueRef integer_choice(cg_func *f, bool max, bool is_signed, LLVMValueRef *a)
{
    return opjit_cg_call(f, max ? (is_signed ? "llvm.smax" : "llvm.umax") : (is_signed ? "llvm.smin" : "llvm.umin"), 2,
                         a);
}

/* Part i of each lane, of so many bits. */
static LLVMValueRef part_of(cg_func *f, LLVMValueRef v, uint32_t bits, uint32_t i, bool is_signed)
{
    const uint32_t above = 32 - bits;
    LLVMValueRef top = bits * i == above ? v : LLVMBuildShl(f->b, v, number(f, v, above - bits * i), "");
    return is_signed ? LLVMBuildAShr(f->b, top, number(f, v, above), "")
                     : LLVMBuildLShr(f->b, top, number(f, v, above), "");
}

static LLVMValueRef dots(cg_func *f, ir_op op, LLVMValueRef *a)
{
    const uint32_t bits = op == IR_DOT2 ? 16 : 8;
    LLVMValueRef sum = f->cpu->dots ? f->cpu->dots(f, op, a) : NULL;
    if (sum)
        return sum;
    sum = a[0];
    for (uint32_t i = 0; i < 32 / bits; i++) {
        LLVMValueRef x = part_of(f, a[1], bits, i, op == IR_DOT4_SS || op == IR_DOT2);
        LLVMValueRef y = part_of(f, a[2], bits, i, op != IR_DOT4_UU);
        sum = LLVMBuildAdd(f->b, sum, LLVMBuildMul(f->b, x, y, ""), "");
    }
    return sum;
}

static LLVMValueRef integer_arith(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a)
{
    const bool is_signed = ir_is_signed(type);
    switch (op) {
    case IR_ADD: return LLVMBuildAdd(f->b, opjit_cg_kept(f, a[0]), opjit_cg_kept(f, a[1]), "");
    case IR_SUB: return LLVMBuildSub(f->b, opjit_cg_kept(f, a[0]), opjit_cg_kept(f, a[1]), "");
    case IR_MUL: return LLVMBuildMul(f->b, opjit_cg_kept(f, a[0]), opjit_cg_kept(f, a[1]), "");
    case IR_DIV: return divide(f, false, is_signed, a[0], a[1]);
    case IR_REM: return divide(f, true, is_signed, a[0], a[1]);
    case IR_MIN: return integer_choice(f, false, is_signed, a);
    case IR_MAX: return integer_choice(f, true, is_signed, a);
    case IR_NEG: return LLVMBuildNeg(f->b, a[0], "");
    case IR_ABS:
        return !is_signed ? a[0]
                          : integer_choice(f, true, true, (LLVMValueRef[]){ a[0], LLVMBuildNeg(f->b, a[0], "") });
    case IR_AND: return LLVMBuildAnd(f->b, a[0], a[1], "");
    case IR_OR: return LLVMBuildOr(f->b, a[0], a[1], "");
    case IR_XOR: return LLVMBuildXor(f->b, a[0], a[1], "");
    case IR_NOT: return LLVMBuildNot(f->b, a[0], "");
    case IR_SHL:
    case IR_SHR: return shift(f, op, is_signed, a[0], a[1]);
    case IR_CTPOP:
        return opjit_cg_way(f->cpu, f->target, op, type) == CG_NATIVE && opjit_cg_lanes(a[0]) == 1
                   ? opjit_cg_call(f, "llvm.ctpop", 1, a)
                   : opjit_cg_expand_ctpop(f, a[0]);
    case IR_IPOW: return integer_power(f, a[0], a[1]);
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS:
    case IR_DOT2: return dots(f, op, a);
    default: return a[0]; /* not an integer op: the survey refuses it */
    }
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

/* One of the operands, bit for bit: a if it is beyond b or NaN, else b.  x and y are the same values as numbers to
 * compare. */
static LLVMValueRef float_choice(cg_func *f, ir_op op, LLVMValueRef *a, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef beyond = LLVMBuildFCmp(f->b, op == IR_MIN ? LLVMRealOLT : LLVMRealOGT, x, y, "");
    LLVMValueRef choice = opjit_cg_choose(f, beyond, a[0], a[1]);
    return opjit_cg_choose(f, LLVMBuildFCmp(f->b, LLVMRealUNO, x, x, ""), a[0], choice);
}

/* Whether the bits, of f32 or f64, are known to be a NaN in no lane, nor, unless zeros are allowed, a zero. */
static bool is_number(ir_type type, LLVMValueRef bits, bool zeros)
{
    const uint32_t lanes = opjit_cg_lanes(bits);
    const uint64_t sign = type == IR_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    const uint64_t infinity = type == IR_F64 ? UINT64_C(0x7ff) << 52 : UINT64_C(0x7f8) << 20;
    bool known = LLVMIsConstant(bits);
    for (uint32_t i = 0; i < lanes && known; i++) {
        LLVMValueRef lane = lanes > 1 ? LLVMGetAggregateElement(bits, i) : bits;
        const uint64_t size =
            lane != NULL && LLVMIsAConstantInt(lane) ? LLVMConstIntGetZExtValue(lane) & (sign - 1) : UINT64_MAX;
        known = size <= infinity && (zeros || size != 0);
    }
    return known;
}

/* In one instruction where the target has it.  LLVM treats -0 and 0 as equal there, which gives y on x86-64 but not on
 * machines whose instructions order zeros; those select between bits. */
LLVMValueRef opjit_cg_beyond(cg_func *f, ir_op op, ir_type type, LLVMValueRef x, LLVMValueRef y)
{
    const LLVMRealPredicate how = op == IR_MIN ? LLVMRealOLT : LLVMRealOGT;
    LLVMValueRef bits = f->cpu->orders_zeros && LLVMIsConstant(y) ? opjit_cg_as_bits(f, y) : NULL;
    if (bits && !is_number(type, bits, false)) {
        LLVMValueRef is_beyond = LLVMBuildFCmp(f->b, how, x, y, "");
        return opjit_cg_as_float(f, LLVMBuildSelect(f->b, is_beyond, opjit_cg_as_bits(f, x), bits, ""));
    }
    x = opjit_cg_kept(f, x);
    y = opjit_cg_kept(f, y);
    LLVMValueRef v = f->peak || !f->cpu->beyond ? NULL : f->cpu->beyond(f, op == IR_MAX, x, y);
    if (v)
        return v;
    LLVMValueRef is_beyond = LLVMBuildFCmp(f->b, how, x, y, "");
    return LLVMBuildSelect(f->b, is_beyond, x, y, "");
}

/* x, or y, a constant that is a number, where x is not beyond it, at quick; NULL: it takes more than that. */
static LLVMValueRef limited(cg_func *f, ir_op op, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef kept = f->peak || !f->cpu->limit ? NULL : opjit_cg_kept(f, y);
    LLVMValueRef address = kept ? opjit_cg_kept_at(f, kept) : NULL;
    return address ? f->cpu->limit(f, op == IR_MAX, x, kept, address) : NULL;
}

/* As float_choice, for f32 and f64.  If a is known to be a number, no NaN needs to be looked for.  Nor if b is known to
 * be a number other than 0, because equal values then have equal bits: b beyond a ? b : a gives a if a is NaN. */
static LLVMValueRef number_choice(cg_func *f, ir_op op, ir_type type, LLVMValueRef *bits, LLVMValueRef x,
                                  LLVMValueRef y)
{
    if (is_number(type, bits[0], true))
        return opjit_cg_beyond(f, op, type, x, y);
    if (is_number(type, bits[1], false))
        return opjit_cg_beyond(f, op, type, y, x);
    LLVMValueRef limit = is_number(type, bits[1], true) ? limited(f, op, x, y) : NULL;
    if (limit)
        return limit;
    LLVMValueRef choice = opjit_cg_beyond(f, op, type, x, y);
    /* in rounds slow selection makes faster code of what follows */
    LLVMValueRef v = f->peak || f->piece->copies > 1 || !f->cpu->unless_nan ? NULL : f->cpu->unless_nan(f, choice, x);
    return v ? v : LLVMBuildSelect(f->b, LLVMBuildFCmp(f->b, LLVMRealUNO, x, x, ""), x, choice, "");
}

static LLVMValueRef sign_op(cg_func *f, ir_op op, LLVMValueRef v)
{
    LLVMValueRef bits = opjit_cg_as_bits(f, v);
    const uint64_t sign = (uint64_t)1 << (opjit_cg_bits(bits) - 1);
    LLVMValueRef with = opjit_cg_kept(f, number(f, bits, op == IR_NEG ? sign : sign - 1));
    return op == IR_NEG ? LLVMBuildXor(f->b, bits, with, "") : LLVMBuildAnd(f->b, bits, with, "");
}

static LLVMValueRef round_op(cg_func *f, ir_op op, ir_type type, LLVMValueRef x)
{
    if (opjit_cg_way(f->cpu, f->target, op, type) != CG_NATIVE)
        return opjit_cg_expand_round(f, op, type, x);
    return opjit_cg_call(f,
                         op == IR_FLOOR   ? "llvm.floor"
                         : op == IR_CEIL  ? "llvm.ceil"
                         : op == IR_TRUNC ? "llvm.trunc"
                                          : "llvm.roundeven",
                         1, &x);
}

static LLVMValueRef widen(cg_func *f, LLVMValueRef v, ir_type to)
{
    return LLVMBuildFPExt(f->b, v, opjit_cg_float(f, to, opjit_cg_lanes(v)), "");
}

/* fmod of f32 values is exact in f64 and converts back exactly. */
static LLVMValueRef remainder_op(cg_func *f, ir_type type, LLVMValueRef *a)
{
    if (type == IR_F64)
        return opjit_cg_soft_lanes(f, IR_REM, type, a);
    LLVMValueRef wide[2] = { widen(f, a[0], IR_F64), widen(f, a[1], IR_F64) };
    LLVMTypeRef narrow = opjit_cg_float(f, IR_F32, opjit_cg_lanes(a[0]));
    return LLVMBuildFPTrunc(f->b, opjit_cg_soft_lanes(f, IR_REM, IR_F64, wide), narrow, "");
}

/* Level none puts the result in the register of the second factor, and copies that first if it is read again.  So the
 * second factor is the one that was made for this product, or a constant, rather than a value with several uses. */
static LLVMValueRef fma_op(cg_func *f, ir_type type, LLVMValueRef *a)
{
    const bool first_is_new = LLVMGetFirstUse(a[0]) == NULL || opjit_cg_is_kept(f, a[0]);
    if (first_is_new && (LLVMGetFirstUse(a[1]) != NULL || opjit_cg_is_kept(f, a[0])) && !opjit_cg_is_kept(f, a[1])) {
        LLVMValueRef other = a[0];
        a[0] = a[1];
        a[1] = other;
    }
    const cg_way way = opjit_cg_way(f->cpu, f->target, IR_FMA, type);
    return way == CG_NATIVE ? opjit_cg_call(f, "llvm.fma", 3, a) : opjit_cg_soft_lanes(f, IR_FMA, type, a);
}

/* Exact if f64's is: a quotient or root of f32 that is first rounded to f64 is rounded the same (53 >= 2 * 24 + 2). */
static LLVMValueRef in_f64(cg_func *f, ir_op op, LLVMValueRef *a)
{
    LLVMValueRef x[2] = { widen(f, a[0], IR_F64), op == IR_DIV ? widen(f, a[1], IR_F64) : NULL };
    LLVMValueRef wide = op == IR_DIV ? LLVMBuildFDiv(f->b, x[0], x[1], "") : opjit_cg_call(f, "llvm.sqrt", 1, x);
    return LLVMBuildFPTrunc(f->b, wide, opjit_cg_float(f, IR_F32, opjit_cg_lanes(wide)), "");
}

/* For f32 and f64. */
static LLVMValueRef float_arith(cg_func *f, ir_op op, ir_type type, LLVMValueRef *bits)
{
    LLVMValueRef a[3] = { NULL };
    const uint32_t count = op == IR_FMA                                                                          ? 3
                           : op == IR_SQRT || op == IR_FLOOR || op == IR_CEIL || op == IR_TRUNC || op == IR_RINT ? 1
                                                                                                                 : 2;
    for (uint32_t i = 0; i < count; i++) {
        a[i] = opjit_cg_as_float(f, bits[i]);
        a[i] = op == IR_MIN || op == IR_MAX || op == IR_REM ? a[i] : opjit_cg_kept(f, a[i]);
    }
    if ((op == IR_DIV || op == IR_SQRT) && opjit_cg_way(f->cpu, f->target, op, type) != CG_NATIVE)
        return in_f64(f, op, a);
    switch (op) {
    case IR_ADD: return LLVMBuildFAdd(f->b, a[0], a[1], "");
    case IR_SUB: return LLVMBuildFSub(f->b, a[0], a[1], "");
    case IR_MUL: return LLVMBuildFMul(f->b, a[0], a[1], "");
    case IR_DIV: return LLVMBuildFDiv(f->b, a[0], a[1], "");
    case IR_REM: return remainder_op(f, type, a);
    case IR_MIN:
    case IR_MAX: return number_choice(f, op, type, bits, a[0], a[1]);
    case IR_SQRT: return opjit_cg_call(f, "llvm.sqrt", 1, a);
    case IR_FMA: return fma_op(f, type, a);
    case IR_SCALE: return f->cpu->scale(f, a[0], a[1]);
    case IR_SIN_FAR:
    case IR_COS_FAR:
    case IR_TAN_FAR: return opjit_cg_soft_lanes(f, op, type, a);
    default: return round_op(f, op, type, a[0]);
    }
}

/* The product is exact in f64, and the sum is rounded to odd, so that rounding it to f16 goes to the true side. */
static LLVMValueRef half_fma(cg_func *f, LLVMValueRef *a)
{
    LLVMValueRef x[3];
    for (uint32_t i = 0; i < 3; i++)
        x[i] = widen(f, a[i], IR_F64);
    LLVMValueRef p = LLVMBuildFMul(f->b, x[0], x[1], ""), s = LLVMBuildFAdd(f->b, p, x[2], "");
    LLVMValueRef back = LLVMBuildFSub(f->b, s, p, "");
    LLVMValueRef error = LLVMBuildFAdd(f->b, LLVMBuildFSub(f->b, p, LLVMBuildFSub(f->b, s, back, ""), ""),
                                       LLVMBuildFSub(f->b, x[2], back, ""), "");
    return opjit_cg_f64_to_half(f, opjit_cg_round_to_odd(f, s, error));
}

/* In f32, then rounded to f16: right for all of these, because 24 >= 2 * 11 + 2 bits, or because the result is
 * exact. */
static LLVMValueRef half_arith(cg_func *f, ir_op op, LLVMValueRef *bits)
{
    LLVMValueRef a[3] = { NULL };
    const uint32_t count = op == IR_FMA                                                                          ? 3
                           : op == IR_SQRT || op == IR_FLOOR || op == IR_CEIL || op == IR_TRUNC || op == IR_RINT ? 1
                                                                                                                 : 2;
    for (uint32_t i = 0; i < count; i++)
        a[i] = opjit_cg_half_to_f32(f, bits[i]);
    if (op == IR_MIN || op == IR_MAX)
        return float_choice(f, op, bits, a[0], a[1]);
    if (op == IR_FMA)
        return half_fma(f, a);
    return opjit_cg_f32_to_half(f, float_arith(f, op, IR_F32, a));
}

LLVMValueRef opjit_cg_arith(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a)
{
    if (type == IR_BOOL)
        return opjit_cg_logic(f, op, a);
    if (!ir_is_float(type))
        return integer_arith(f, op, type, a);
    if (op == IR_NEG || op == IR_ABS)
        return sign_op(f, op, a[0]);
    return type == IR_F16 ? half_arith(f, op, a) : float_arith(f, op, type, a);
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

LLVMValueRef opjit_cg_compare(cg_func *f, ir_op op, ir_type type, LLVMValueRef a, LLVMValueRef b)
{
    if (ir_is_float(type)) {
        const LLVMRealPredicate how = op == IR_EQ   ? LLVMRealOEQ
                                      : op == IR_NE ? LLVMRealUNE
                                      : op == IR_LT ? LLVMRealOLT
                                                    : LLVMRealOLE;
        LLVMValueRef x = type == IR_F16 ? opjit_cg_half_to_f32(f, a) : opjit_cg_as_float(f, a);
        LLVMValueRef y = type == IR_F16 ? opjit_cg_half_to_f32(f, b) : opjit_cg_as_float(f, b);
        const uint32_t bits = opjit_cg_bits(x), lanes = opjit_cg_lanes(x);
        if (f->piece->copies > 1 || !opjit_cg_compares(f, bits, lanes) || (LLVMIsConstant(x) && LLVMIsConstant(y)))
            return LLVMBuildFCmp(f->b, how, x, y, "");
        return f->cpu->compare(f, how, opjit_cg_kept(f, x), opjit_cg_kept(f, y));
    }
    const bool is_signed = ir_is_signed(type) || type == IR_INDEX;
    const LLVMIntPredicate how = op == IR_EQ   ? LLVMIntEQ
                                 : op == IR_NE ? LLVMIntNE
                                 : op == IR_LT ? (is_signed ? LLVMIntSLT : LLVMIntULT)
                                 : is_signed   ? LLVMIntSLE
                                               : LLVMIntULE;
    return LLVMBuildICmp(f->b, how, a, b, "");
}
