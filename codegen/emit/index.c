/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - operations on indices: scalars in i64, vectors in the narrowest lanes that hold their interval. */
#include "codegen/emit/indices.h"

/* x / k for 0 <= x < 2^31 and k < 2^31, not a power of two, as a multiplication, where fast selection would divide.
 * With the l bits of k and m = 2^(31 + l) / k rounded up, x * m / 2^(31 + l) exceeds x / k by less than 2^-l, which is
 * below 1 / k. */
static LLVMValueRef quotient(cg_func *f, LLVMValueRef x, int64_t k)
{
    const uint32_t shift = 31 + 32 - (uint32_t)__builtin_clz((uint32_t)k);
    LLVMValueRef m = opjit_cg_number(f, 64, 1, ((uint64_t)1 << shift) / (uint64_t)k + 1);
    LLVMValueRef wide = LLVMBuildMul(f->b, LLVMBuildZExt(f->b, x, f->type.i64, ""), m, "");
    return LLVMBuildTrunc(f->b, LLVMBuildLShr(f->b, wide, opjit_cg_number(f, 64, 1, shift), ""), f->type.i32, "");
}

/* An i32 holds a number from 0 to 2^31 - 1, see by_constant. */
static bool is_small_scalar(const cg_func *f, LLVMValueRef x)
{
    return !f->peak && opjit_cg_lanes(x) == 1 && opjit_cg_bits(x) == 32 && !LLVMIsConstant(x);
}

/* A shift, an unsigned division, or the truncating one corrected. */
LLVMValueRef opjit_cg_floor_div(cg_func *f, LLVMValueRef x, int64_t k, bool positive)
{
    if (is_power_of_two((uint64_t)k))
        return LLVMBuildAShr(f->b, x, opjit_cg_like(f, x, __builtin_ctzll((uint64_t)k)), "");
    if (positive && is_small_scalar(f, x))
        return quotient(f, x, k);
    if (positive)
        return LLVMBuildUDiv(f->b, x, opjit_cg_like(f, x, k), "");
    LLVMValueRef q = LLVMBuildSDiv(f->b, x, opjit_cg_like(f, x, k), ""),
                 r = LLVMBuildSRem(f->b, x, opjit_cg_like(f, x, k), "");
    LLVMValueRef below = LLVMBuildICmp(f->b, LLVMIntSLT, r, opjit_cg_like(f, x, 0), "");
    return LLVMBuildAdd(f->b, q, LLVMBuildSExt(f->b, below, LLVMTypeOf(q), ""), "");
}

static LLVMValueRef floor_mod(cg_func *f, LLVMValueRef x, int64_t k, bool positive)
{
    if (is_power_of_two((uint64_t)k))
        return LLVMBuildAnd(f->b, x, opjit_cg_like(f, x, k - 1), "");
    if (positive && is_small_scalar(f, x))
        return LLVMBuildSub(f->b, x, LLVMBuildMul(f->b, quotient(f, x, k), opjit_cg_like(f, x, k), ""), "");
    if (positive)
        return LLVMBuildURem(f->b, x, opjit_cg_like(f, x, k), "");
    LLVMValueRef r = LLVMBuildSRem(f->b, x, opjit_cg_like(f, x, k), "");
    LLVMValueRef below = LLVMBuildICmp(f->b, LLVMIntSLT, r, opjit_cg_like(f, x, 0), "");
    return LLVMBuildSelect(f->b, below, LLVMBuildAdd(f->b, r, opjit_cg_like(f, x, k), ""), r, "");
}

/* IDIV, IMOD, DOWN, UP: exact operand, constant k. */
static LLVMValueRef by_constant(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const ir_ref x_ref = ir_operand(f->ir, node, 0);
    const int64_t k = ir_index_value(f->ir, ir_operand(f->ir, node, 1));
    const ir_interval i = opjit_ir_interval(f->ir, x_ref);
    uint32_t bits = 64;
    if (lanes > 1)
        bits = cg_wider(cg_wider(opjit_cg_lane_bits(f, x_ref), opjit_cg_lane_bits(f, node)),
                        opjit_cg_bits_for((ir_interval){ k, k }));
    else if (i.lo >= 0 && i.hi <= INT32_MAX && k <= INT32_MAX && !is_power_of_two((uint64_t)k))
        bits = 32; /* a 64-bit division is slower */
    LLVMValueRef x = opjit_cg_index_lanes(f, x_ref, bits, lanes), v;
    if (k <= 0)
        return opjit_cg_like(f, x, 0); /* like the interpreter; does not occur in a valid function */
    /* A sum that overflows loses only bits that the result lacks, too. */
    if ((op == IR_DOWN || op == IR_UP) && is_power_of_two((uint64_t)k))
        v = LLVMBuildAnd(f->b, op == IR_UP ? opjit_cg_add(f, x, opjit_cg_like(f, x, k - 1)) : x,
                         opjit_cg_like(f, x, -k), "");
    else if (op == IR_DOWN)
        v = LLVMBuildSub(f->b, x, floor_mod(f, x, k, i.lo >= 0), "");
    else if (op == IR_UP)
        v = LLVMBuildAdd(f->b, x, floor_mod(f, LLVMBuildNeg(f->b, x, ""), k, false), "");
    else
        v = op == IR_IDIV ? opjit_cg_floor_div(f, x, k, i.lo >= 0) : floor_mod(f, x, k, i.lo >= 0);
    return lanes > 1 ? v : opjit_cg_resize(f, v, 64, true);
}

/* How many bits hold the numbers from 0 to n. */
static uint32_t bits_up_to(int64_t n)
{
    return n < 1 ? 0 : 64 - (uint32_t)__builtin_clzll((uint64_t)n);
}

/* x / k of a size k, which takes a division each time: for x < 2^a and k <= 2^b a multiplication by m = 2^(a + b) / k
 * rounded down, plus 1, which is computed once.  x * m / 2^(a + b) exceeds x / k by at most x / 2^(a + b), which is
 * below 1 / k.  NULL: 64 bits don't hold x * m, or x is computed once, too. */
static LLVMValueRef quotient_by_size(cg_func *f, ir_ref x_ref, ir_ref k_ref, LLVMValueRef x, LLVMValueRef k)
{
    const ir_interval of_x = opjit_ir_interval(f->ir, x_ref), of_k = opjit_ir_interval(f->ir, k_ref);
    const uint32_t a = bits_up_to(of_x.hi), b = bits_up_to(of_k.hi);
    if (f->info[x_ref].inside == 0 || opjit_cg_when(f, k_ref) != CG_AT_ENTRY || 2 * a + b > 63)
        return NULL;
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, CG_AT_ENTRY);
    LLVMValueRef m = opjit_cg_of_numbers(f, LLVMUDiv, opjit_cg_number(f, 64, 1, (uint64_t)1 << (a + b)), k);
    m = opjit_cg_of_numbers(f, LLVMAdd, m, opjit_cg_number(f, 64, 1, 1));
    opjit_cg_early_end(f, here);
    return opjit_cg_of_numbers(f, LLVMLShr, opjit_cg_of_numbers(f, LLVMMul, x, m), opjit_cg_number(f, 64, 1, a + b));
}

/* IQUOT, IREST: by a size above 0. */
static LLVMValueRef by_size(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const ir_ref x_ref = ir_operand(f->ir, node, 0), k_ref = ir_operand(f->ir, node, 1);
    uint32_t bits = 64;
    if (lanes > 1)
        bits = cg_wider(cg_wider(opjit_cg_lane_bits(f, x_ref), opjit_cg_lane_bits(f, k_ref)),
                        opjit_cg_lane_bits(f, node));
    LLVMValueRef x = opjit_cg_index_lanes(f, x_ref, bits, lanes), k = opjit_cg_index_lanes(f, k_ref, bits, lanes);
    if (opjit_ir_interval(f->ir, x_ref).lo >= 0 && lanes == 1) { /* one division has both */
        LLVMValueRef q = quotient_by_size(f, x_ref, k_ref, x, k);
        q = q ? q : opjit_cg_of_numbers(f, LLVMUDiv, x, k);
        return op == IR_IQUOT ? q : LLVMBuildSub(f->b, x, opjit_cg_of_numbers(f, LLVMMul, q, k), "");
    }
    if (opjit_ir_interval(f->ir, x_ref).lo >= 0)
        return op == IR_IQUOT ? LLVMBuildUDiv(f->b, x, k, "") : LLVMBuildURem(f->b, x, k, "");
    LLVMValueRef r = LLVMBuildSRem(f->b, x, k, "");
    LLVMValueRef below = LLVMBuildICmp(f->b, LLVMIntSLT, r, opjit_cg_like(f, x, 0), "");
    if (op == IR_IREST)
        return LLVMBuildSelect(f->b, below, LLVMBuildAdd(f->b, r, k, ""), r, "");
    LLVMValueRef q = LLVMBuildSDiv(f->b, x, k, "");
    return LLVMBuildAdd(f->b, q, LLVMBuildSExt(f->b, below, LLVMTypeOf(q), ""), "");
}

LLVMValueRef opjit_cg_choice(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b)
{
    if (opjit_cg_lanes(a) == 1)
        return opjit_cg_limit(f, max, a, b);
    return opjit_cg_call(f, max ? "llvm.smax" : "llvm.smin", 2, (LLVMValueRef[]){ a, b });
}

/* The operand that IMIN, IMAX or CLAMP always equals, or the one comparison that remains; NULL: all are needed.
 * Comparisons take time to compile, and each bound made by split has two. */
static LLVMValueRef decided(cg_func *f, ir_op op, ir_ref node)
{
    const ir_ref x = ir_operand(f->ir, node, 0), y = ir_operand(f->ir, node, 1);
    const bool over = opjit_cg_at_most(f, y, x), under = !over && opjit_cg_at_most(f, x, y);
    if (!over && !under)
        return NULL;
    if (op != IR_CLAMP)
        return opjit_cg_emit(f, over == (op == IR_IMAX) ? x : y);
    const ir_ref inner = over ? x : y, limit = ir_operand(f->ir, node, 2);
    LLVMValueRef v = opjit_cg_emit(f, inner);
    return opjit_cg_at_most(f, inner, limit) ? v : opjit_cg_choice(f, false, v, opjit_cg_emit(f, limit));
}

/* The lesser of an element of 32 bits without a sign, as an index, and a number that lanes of 32 bits hold; NULL: it is
 * something else. */
static LLVMValueRef lesser_unsigned(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const ir_ref x = ir_operand(f->ir, node, 0), most = ir_operand(f->ir, node, 1);
    if (op != IR_IMIN || lanes == 1 || ir_at(f->ir, x)->op != IR_TO_INDEX || !ir_is_index_const(f->ir, most) ||
        ir_index_value(f->ir, most) < 0 || ir_index_value(f->ir, most) > INT32_MAX ||
        ir_at(f->ir, ir_operand(f->ir, x, 0))->type != IR_U32)
        return NULL;
    LLVMValueRef a[] = { opjit_cg_emit_lanes(f, ir_operand(f->ir, x, 0), lanes),
                         opjit_cg_number(f, 32, lanes, (uint64_t)ir_index_value(f->ir, most)) };
    return opjit_cg_call(f, "llvm.umin", 2, a);
}

/* IMIN, IMAX, CLAMP: lanes that hold every operand. */
static LLVMValueRef bounded(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const uint32_t count = ir_at(f->ir, node)->count;
    uint32_t bits = 64;
    LLVMValueRef a[3] = { NULL };
    if (lanes == 1 && (a[0] = decided(f, op, node)) != NULL)
        return a[0];
    if ((a[0] = lesser_unsigned(f, op, node, lanes)) != NULL)
        return a[0];
    if (lanes > 1) {
        bits = opjit_cg_lane_bits(f, node);
        for (uint32_t i = 0; i < count; i++)
            bits = cg_wider(bits, opjit_cg_lane_bits(f, ir_operand(f->ir, node, i)));
    }
    for (uint32_t i = 0; i < count && i < 3; i++)
        a[i] = opjit_cg_index_lanes(f, ir_operand(f->ir, node, i), bits, lanes);
    if (op != IR_CLAMP)
        return opjit_cg_choice(f, op == IR_IMAX, a[0], a[1]);
    return opjit_cg_choice(f, false, opjit_cg_choice(f, true, a[0], a[1]), a[2]);
}

/* TO_INDEX of an element integer: u64 saturates. */
static LLVMValueRef to_index(cg_func *f, ir_ref node, uint32_t lanes)
{
    const ir_ref x = ir_operand(f->ir, node, 0);
    const ir_type from = (ir_type)ir_at(f->ir, x)->type;
    LLVMValueRef v = opjit_cg_emit_lanes(f, x, lanes);
    if (from == IR_U64)
        v = opjit_cg_call(f, "llvm.umin", 2, (LLVMValueRef[]){ v, opjit_cg_like(f, v, INT64_MAX) });
    return opjit_cg_resize(f, v, lanes > 1 ? opjit_cg_lane_bits(f, node) : 64, ir_is_signed(from));
}

LLVMValueRef opjit_cg_index(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    int64_t step, offset;
    if (n->op == IR_VAR && lanes == 1)
        return opjit_cg_var_value(f, node, true);
    const uint32_t bits = lanes > 1 ? opjit_cg_lane_bits(f, node) : 64;
    if (lanes > 1 && opjit_cg_lane_step(f, node, &step, &offset))
        return opjit_cg_affine_lanes(f, node, bits, step);
    switch ((ir_op)n->op) {
    case IR_IQUOT:
    case IR_IREST: return by_size(f, (ir_op)n->op, node, lanes);
    case IR_IADD:
    case IR_ISUB:
    case IR_ISCALE:
    case IR_IMUL: {
        LLVMValueRef a = opjit_cg_index_lanes(f, ir_operand(f->ir, node, 0), bits, lanes);
        LLVMValueRef b = opjit_cg_index_lanes(f, ir_operand(f->ir, node, 1), bits, lanes);
        const LLVMOpcode op = n->op == IR_IADD ? LLVMAdd : n->op == IR_ISUB ? LLVMSub : LLVMMul;
        return lanes == 1 ? opjit_cg_of_numbers(f, op, a, b) : LLVMBuildBinOp(f->b, op, a, b, "");
    }
    case IR_IDIV:
    case IR_IMOD:
    case IR_DOWN:
    case IR_UP: return by_constant(f, (ir_op)n->op, node, lanes);
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP: return bounded(f, (ir_op)n->op, node, lanes);
    default: return to_index(f, node, lanes);
    }
}
