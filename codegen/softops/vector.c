/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - fma without FMA, fmod, and sin, cos, tan of large operands, for whole vectors: functions in the module,
 * because their code is long.  Each computes what nearly all operands need with few operations, and knows for every
 * lane whether that is exact.  If it is not for one lane, all lanes take the slow path: scalar.c's functions, or
 * expand.c's sequence. */
#include "codegen/cg.h"

typedef struct vector_op {
    const char *name;
    ir_op op;
    ir_type type;
    uint32_t count; /* operands */
    /* The result; *sure: an integer, all ones if the result is right in every lane. */
    LLVMValueRef (*quick)(cg_func *f, LLVMValueRef *a, LLVMValueRef *sure);
    LLVMValueRef (*exact)(cg_func *f, LLVMValueRef *a); /* NULL: scalar.c's function */
} vector_op;

static LLVMValueRef number(cg_func *f, LLVMValueRef like, uint64_t value)
{
    return opjit_cg_number(f, opjit_cg_bits(like), opjit_cg_lanes(like), value);
}

static LLVMValueRef real(cg_func *f, LLVMValueRef like, double value)
{
    return opjit_cg_real(f, IR_F64, opjit_cg_lanes(like), value);
}

static LLVMValueRef add(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFAdd(f->b, a, b, "");
}
static LLVMValueRef sub(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFSub(f->b, a, b, "");
}
static LLVMValueRef mul(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFMul(f->b, a, b, "");
}

/* The bits of a float that the mask selects. */
static LLVMValueRef keep(cg_func *f, LLVMValueRef a, uint64_t mask)
{
    LLVMValueRef bits = opjit_cg_as_bits(f, a);
    return opjit_cg_as_float(f, LLVMBuildAnd(f->b, bits, number(f, bits, mask), ""));
}

/* a where the condition holds, else +0. */
static LLVMValueRef where(cg_func *f, LLVMValueRef condition, LLVMValueRef a)
{
    LLVMValueRef bits = opjit_cg_as_bits(f, a);
    LLVMValueRef mask = LLVMBuildSExt(f->b, condition, LLVMTypeOf(bits), "");
    return opjit_cg_as_float(f, LLVMBuildAnd(f->b, bits, mask, ""));
}

static LLVMValueRef compare(cg_func *f, LLVMRealPredicate how, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(f->b, how, a, b, "");
}

/* The conditions of all lanes as one integer, all ones if all hold; of fewer than eight again and again.  On GPUs each
 * lane has a register, and there is no vector. */
static LLVMValueRef lanes_as_integer(cg_func *f, LLVMValueRef condition)
{
    enum { LEAST = 8 };
    uint32_t lanes = opjit_cg_lanes(condition);
    if (f->cpu->grid)
        return opjit_cg_fold_lanes(f, true, condition);
    if (lanes > 1 && lanes < LEAST) {
        LLVMValueRef at[LEAST];
        for (uint32_t i = 0; i < LEAST; i++)
            at[i] = LLVMConstInt(f->type.i32, i % lanes, false);
        condition = LLVMBuildShuffleVector(f->b, condition, condition, LLVMConstVector(at, LEAST), "");
        lanes = LEAST;
    }
    return LLVMBuildBitCast(f->b, condition, LLVMIntTypeInContext(f->llvm, lanes), "");
}

/* --- fma of f64 --------------------------------------------------------------------------------------------------- */

/* a = high + low of 26 bits each; the sign of the low part counts as one bit. */
static LLVMValueRef split(cg_func *f, LLVMValueRef a, LLVMValueRef *low)
{
    LLVMValueRef bits = opjit_cg_as_bits(f, a);
    LLVMValueRef high = keep(f, LLVMBuildAdd(f->b, bits, number(f, bits, UINT64_C(1) << 26), ""), ~UINT64_C(0x7ffffff));
    *low = sub(f, a, high);
    return high;
}

/* p - a * b; exact (Dekker) unless parts of the product are below the subnormals. */
static LLVMValueRef product_excess(cg_func *f, LLVMValueRef a, LLVMValueRef b, LLVMValueRef p)
{
    LLVMValueRef al, bl, ah = split(f, a, &al), bh = split(f, b, &bl);
    LLVMValueRef excess = sub(f, p, mul(f, ah, bh));
    excess = sub(f, excess, mul(f, ah, bl));
    excess = sub(f, excess, mul(f, al, bh));
    return sub(f, excess, mul(f, al, bl));
}

/* s - (a + b); exact (Knuth). */
static LLVMValueRef sum_excess(cg_func *f, LLVMValueRef a, LLVMValueRef b, LLVMValueRef s)
{
    LLVMValueRef back = sub(f, s, a);
    return add(f, sub(f, sub(f, s, back), a), sub(f, back, b));
}

/* a * b + c is s - (sum's excess + product's excess).  That sum of excesses is rounded once: if numbers slightly above
 * and below it lead to the same result, so does the exact one; it is exact if one excess is 0.  Excesses and not
 * errors, because s - 0 keeps the sign of a zero s.  An overflow anywhere makes the difference of the results a NaN.
 * If neither product nor addend is above 2^-800, the product's excess may be inexact; with an addend above and a
 * product below 2^-968 it is inexact, but far below the addend's last bit. */
static LLVMValueRef fma_quick(cg_func *f, LLVMValueRef *a, LLVMValueRef *sure)
{
    const uint64_t size = INT64_MAX;
    LLVMValueRef p = mul(f, a[0], a[1]), s = add(f, p, a[2]), zero = real(f, p, 0);
    LLVMValueRef product = product_excess(f, a[0], a[1], p);
    LLVMValueRef sum = sum_excess(f, p, a[2], s), excess = add(f, sum, product);
    LLVMValueRef doubt = where(f, compare(f, LLVMRealUNE, product, zero), mul(f, excess, real(f, excess, 0x1p-51)));
    doubt = where(f, compare(f, LLVMRealUNE, sum, zero), doubt);
    LLVMValueRef out = sub(f, s, sub(f, excess, doubt)), other = sub(f, s, add(f, excess, doubt));
    LLVMValueRef large = add(f, keep(f, p, size), keep(f, a[2], size));
    LLVMValueRef in_range = compare(f, LLVMRealOGE, large, real(f, large, 0x1p-799));
    LLVMValueRef nothing =
        LLVMBuildOr(f->b, compare(f, LLVMRealOEQ, a[0], zero), compare(f, LLVMRealOEQ, a[1], zero), "");
    in_range = LLVMBuildOr(f->b, in_range, nothing, "");
    LLVMValueRef same = compare(f, LLVMRealOEQ, sub(f, out, other), zero);
    *sure = lanes_as_integer(f, LLVMBuildAnd(f->b, same, in_range, ""));
    return out;
}

/* --- fma of f32 --------------------------------------------------------------------------------------------------- */

/* The product is exact in f64 and the sum is rounded: rounding it once more is right unless it lies in the middle
 * between two f32.  Subnormal results have their midpoints elsewhere; all results that small are treated as
 * uncertain. */
static LLVMValueRef fma_f32_quick(cg_func *f, LLVMValueRef *a, LLVMValueRef *sure)
{
    const uint32_t lanes = opjit_cg_lanes(a[0]);
    LLVMValueRef x[3], middle[2 * CG_MAX_LANES], mask[2 * CG_MAX_LANES];
    for (uint32_t i = 0; i < 3; i++)
        x[i] = LLVMBuildFPExt(f->b, a[i], opjit_cg_float(f, IR_F64, lanes), "");
    LLVMValueRef s = add(f, mul(f, x[0], x[1]), x[2]);
    LLVMValueRef out = LLVMBuildFPTrunc(f->b, s, opjit_cg_float(f, IR_F32, lanes), "");
    for (uint32_t i = 0; i < lanes; i++) { /* words, because there may be no 64-bit comparison */
        mask[2 * i] = opjit_cg_number(f, 32, 1, 0x1fffffff);
        middle[2 * i] = opjit_cg_number(f, 32, 1, 0x10000000);
        mask[2 * i + 1] = opjit_cg_number(f, 32, 1, 0);
        middle[2 * i + 1] = opjit_cg_number(f, 32, 1, 1);
    }
    LLVMValueRef words = LLVMBuildBitCast(f->b, s, opjit_cg_int(f, 32, 2 * lanes), "");
    words = LLVMBuildAnd(f->b, words, LLVMConstVector(mask, 2 * lanes), "");
    LLVMValueRef between = LLVMBuildICmp(f->b, LLVMIntEQ, words, LLVMConstVector(middle, 2 * lanes), "");
    LLVMValueRef size = opjit_cg_as_bits(f, keep(f, out, INT32_MAX)); /* 0 becomes the largest, 1 the smallest number */
    size = LLVMBuildAdd(f->b, size, number(f, size, INT32_MAX), "");
    LLVMValueRef small = LLVMBuildICmp(f->b, LLVMIntSLT, size, number(f, size, UINT32_C(0x80ffffff)), "");
    LLVMValueRef halves = lanes_as_integer(f, between);
    LLVMValueRef doubt = LLVMBuildZExt(f->b, lanes_as_integer(f, small), LLVMTypeOf(halves), "");
    *sure = LLVMBuildNot(f->b, LLVMBuildOr(f->b, halves, doubt, ""), "");
    return out;
}

/* --- fmod --------------------------------------------------------------------------------------------------------- */

/* A whole quotient n below 2^26, times either half of y, is exact, and so are the differences.  If the quotient was
 * rounded up to the next whole number, less than 0 remains: then y is added again.  Infinities and NaN leave NaN. */
static LLVMValueRef rem_quick(cg_func *f, LLVMValueRef *a, LLVMValueRef *sure)
{
    const uint64_t size = INT64_MAX;
    LLVMValueRef x = keep(f, a[0], size), y = keep(f, a[1], size), zero = real(f, x, 0);
    LLVMValueRef q = LLVMBuildFDiv(f->b, x, y, ""), high = keep(f, y, ~UINT64_C(0x7ffffff)), low = sub(f, y, high);
    LLVMValueRef n = opjit_cg_arith(f, IR_TRUNC, IR_F64, &q);
    LLVMValueRef r = sub(f, sub(f, x, mul(f, n, high)), mul(f, n, low));
    r = add(f, r, where(f, compare(f, LLVMRealOLT, r, zero), y));
    LLVMValueRef exact = compare(f, LLVMRealOLT, q, real(f, q, 0x1p26));
    *sure = lanes_as_integer(f, LLVMBuildAnd(f->b, exact, compare(f, LLVMRealORD, r, zero), ""));
    LLVMValueRef sign = opjit_cg_as_bits(f, keep(f, a[0], ~size));
    return opjit_cg_as_float(f, LLVMBuildOr(f->b, opjit_cg_as_bits(f, r), sign, ""));
}

/* --- sin, cos, tan beyond 2^45 ------------------------------------------------------------------------------------ */

static LLVMValueRef far_quick(cg_func *f, LLVMValueRef *a, LLVMValueRef *sure)
{
    LLVMValueRef size = keep(f, a[0], INT64_MAX);
    *sure = lanes_as_integer(f, compare(f, LLVMRealULE, size, real(f, size, 0x1p45)));
    return a[1];
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static const vector_op ops[] = {
    { "soft.fma_f64", IR_FMA, IR_F64, 3, fma_quick, NULL },
    { "soft.fma_f32", IR_FMA, IR_F32, 3, fma_f32_quick, opjit_cg_expand_fma_f32 },
    { "soft.fmod_f64", IR_REM, IR_F64, 2, rem_quick, NULL },
    { "soft.sin_far_f64", IR_SIN_FAR, IR_F64, 2, far_quick, NULL },
    { "soft.cos_far_f64", IR_COS_FAR, IR_F64, 2, far_quick, NULL },
    { "soft.tan_far_f64", IR_TAN_FAR, IR_F64, 2, far_quick, NULL },
};

/* Both paths, each with its return. */
static void emit_body(cg_func *f, const vector_op *op, LLVMValueRef fn)
{
    LLVMValueRef a[3] = { NULL }, sure;
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, fn, ""));
    LLVMBasicBlockRef right = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
    LLVMBasicBlockRef doubtful = LLVMAppendBasicBlockInContext(f->llvm, fn, "");
    for (uint32_t i = 0; i < op->count; i++)
        a[i] = LLVMGetParam(fn, i);
    LLVMValueRef out = op->quick(f, a, &sure);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntEQ, sure, LLVMConstAllOnes(LLVMTypeOf(sure)), ""), right,
                    doubtful);
    LLVMPositionBuilderAtEnd(f->b, right);
    LLVMBuildRet(f->b, out);
    LLVMPositionBuilderAtEnd(f->b, doubtful);
    LLVMBuildRet(f->b, op->exact ? op->exact(f, a) : opjit_cg_soft(f, op->op, op->count, a));
}

/* The function for vectors of the target's width, created at its first use. */
static LLVMValueRef vector_function(cg_func *f, const vector_op *op, LLVMTypeRef type)
{
    LLVMValueRef fn = LLVMGetNamedFunction(f->module, op->name);
    if (fn)
        return fn;
    LLVMBuilderRef builder = f->b;
    fn = LLVMAddFunction(f->module, op->name, type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    opjit_cg_attributes(f, fn);
    f->b = LLVMCreateBuilderInContext(f->llvm);
    emit_body(f, op, fn);
    LLVMDisposeBuilder(f->b);
    f->b = builder;
    return fn;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef call(cg_func *f, const vector_op *op, LLVMValueRef *a)
{
    const uint32_t lanes = opjit_cg_lanes(a[0]), width = f->target->vector_bytes / opjit_ir_type_size(op->type);
    LLVMValueRef some[2][3] = { { NULL } };
    for (uint32_t i = 0; i < op->count && lanes != width; i++) {
        some[0][i] = opjit_cg_part(f, a[i], 0, lanes > width ? lanes / 2 : width);
        some[1][i] = lanes > width ? opjit_cg_part(f, a[i], lanes / 2, lanes / 2) : NULL;
    }
    if (lanes > width)
        return opjit_cg_join(f, (LLVMValueRef[]){ call(f, op, some[0]), call(f, op, some[1]) }, 2);
    LLVMTypeRef vector = opjit_cg_float(f, op->type, width);
    LLVMTypeRef type = LLVMFunctionType(vector, (LLVMTypeRef[]){ vector, vector, vector }, op->count, 0);
    LLVMValueRef fn = vector_function(f, op, type);
    LLVMValueRef out = LLVMBuildCall2(f->b, type, fn, lanes < width ? some[0] : a, op->count, "");
    return opjit_cg_part(f, out, 0, lanes);
}

LLVMValueRef opjit_cg_soft_lanes(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a)
{
    const vector_op *v = ops;
    while (v->op != op || v->type != type)
        v++;
    return call(f, v, a);
}
