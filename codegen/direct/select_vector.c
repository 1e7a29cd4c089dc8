/* SPDX-License-Identifier: Apache-2.0 */
/* select_vector.c - arithmetic on vectors and on floats, bits of masks, and the intrinsics of arithmetic. */
#include "codegen/direct.h"

#include <string.h>

/* Of packed f32, packed f64, one f32, one f64. */
static dx_form_name of_floats(dx_type t, dx_form_name first)
{
    return (dx_form_name)((int)first + (t.lanes ? 0 : 2) + (t.bits == 64));
}

static void logic_of_masks(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    if (!f->wide) {
        opjit_dx_narrow_logic(f, v, op);
        return;
    }
    const dx_reg a = opjit_dx_mask(f, x), b = opjit_dx_mask(f, y);
    const dx_form_name form = op == LLVMAnd ? DX_F_KAND : op == LLVMOr ? DX_F_KOR : DX_F_KXOR;
    if (op != LLVMAnd && op != LLVMOr && op != LLVMXor)
        opjit_dx_refuse(f, "arithmetic on masks");
    opjit_dx_vector(f, form, 32, opjit_dx_result(f, v), a, b);
}

/* Bytes by a constant: as words, without the bits that come from the byte beside; then their signs again. */
static void shift_bytes(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t, dx_reg a, uint32_t by)
{
    enum { BYTE = 0xff, SIGN = 0x80 };
    const uint32_t width = dx_width(t);
    const bool left = op == LLVMShl;
    const dx_reg kept = opjit_dx_repeated(f, left ? (uint32_t)BYTE << by & BYTE : (uint32_t)BYTE >> by, 8, width);
    const dx_reg words = opjit_dx_shifted(f, DX_F_SHIFTW, width, a, left ? DX_LEFT : DX_RIGHT, by);
    if (op != LLVMAShr) {
        opjit_dx_vector(f, DX_F_PAND, width, opjit_dx_result(f, v), words, kept);
        return;
    }
    const dx_reg sign = opjit_dx_repeated(f, (uint32_t)SIGN >> by, 8, width);
    const dx_reg bits = opjit_dx_two(f, DX_F_PAND, width, words, kept);
    const dx_reg turned = opjit_dx_two(f, DX_F_PXOR, width, bits, sign);
    opjit_dx_vector(f, DX_F_PSUBB, width, opjit_dx_result(f, v), turned, sign);
}

/* By numbers of lanes: by 4, by 2 and by 1 where the number's bits say so, each in turn as the sign of its byte. */
static dx_reg shift_bytes_by_lanes(dx_func *f, bool left, dx_type t, dx_reg a, dx_reg by)
{
    enum { BYTE = 0xff, UP = 5 };
    const uint32_t width = dx_width(t);
    dx_reg bits = opjit_dx_shifted(f, DX_F_SHIFTW, width, by, DX_LEFT, UP);
    for (uint32_t step = 4; step > 0; step /= 2) {
        const dx_reg words = opjit_dx_shifted(f, DX_F_SHIFTW, width, a, left ? DX_LEFT : DX_RIGHT, step);
        const dx_reg next = opjit_dx_new(f, DX_VEC);
        const uint32_t kept = left ? (uint32_t)BYTE << step & BYTE : (uint32_t)BYTE >> step;
        const dx_reg moved = opjit_dx_two(f, DX_F_PAND, width, words, opjit_dx_repeated(f, kept, 8, width));
        opjit_dx_vector(f, DX_F_BLENDVB, width, next, a, moved)->mask = bits;
        bits = step > 1 ? opjit_dx_two(f, DX_F_PADDB, width, bits, bits) : bits;
        a = next;
    }
    return a;
}

static void shift(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    static const dx_form_name by_lanes[3][2] = { { DX_F_PSLLVD, DX_F_PSLLVQ },
                                                 { DX_F_PSRLVD, DX_F_PSRLVQ },
                                                 { DX_F_PSRAVD, DX_F_PSRAVQ } };
    const uint32_t which = op == LLVMShl ? 0 : op == LLVMLShr ? 1 : 2, size = dx_size(t.bits);
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    const dx_reg a = opjit_dx_use(f, x);
    int64_t by;
    if (size == 0 && opjit_dx_constant(f, y, &by)) {
        shift_bytes(f, v, op, t, a, (uint32_t)by & 7);
    } else if (size == 0) {
        if (f->wide || which == 2)
            opjit_dx_refuse(f, "shift of bytes");
        opjit_dx_name(f, v, shift_bytes_by_lanes(f, which == 0, t, a, opjit_dx_use(f, y)));
    } else if (opjit_dx_constant(f, y, &by)) {
        const dx_form_name forms[] = { DX_F_SHIFTW, DX_F_SHIFTD, which == 2 ? DX_F_SHIFTQA : DX_F_SHIFTQ };
        dx_op *o = opjit_dx_vector(f, forms[size - 1], dx_width(t), 0, 0, a);
        o->code = (uint8_t)(which == 0 ? DX_LEFT : which == 1 ? DX_RIGHT : DX_ARITHMETIC);
        o->imm = by & (t.bits - 1);
        const uint32_t at = f->op_count - 1;
        const dx_reg dst = opjit_dx_result(f, v);
        f->ops[f->refused ? 0 : at].dst = dst;
    } else if (size >= 2) {
        const dx_reg b = opjit_dx_use(f, y);
        opjit_dx_vector(f, by_lanes[which][size - 2], dx_width(t), opjit_dx_result(f, v), a, b);
    } else {
        opjit_dx_refuse(f, "shift of halves");
    }
}

dx_form_name opjit_dx_integer_form(LLVMOpcode op, uint32_t bits)
{
    static const dx_form_name multiply[] = { DX_FORMS, DX_F_PMULLW, DX_F_PMULLD, DX_F_PMULLQ };
    switch (op) {
    case LLVMAdd: return (dx_form_name)(DX_F_PADDB + dx_size(bits));
    case LLVMSub: return (dx_form_name)(DX_F_PSUBB + dx_size(bits));
    case LLVMMul: return multiply[dx_size(bits)];
    case LLVMAnd: return DX_F_PAND;
    case LLVMOr: return DX_F_POR;
    case LLVMXor: return DX_F_PXOR;
    default: return DX_FORMS;
    }
}

/* Products of bytes, as words: of the lower ones, and of the upper ones at their place. */
static void multiply_bytes(dx_func *f, LLVMValueRef v, dx_type t)
{
    enum { UPPER = 0xff00, LOWER = 0x00ff };
    const uint32_t width = dx_width(t);
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg upper = opjit_dx_repeated(f, UPPER, 16, width);
    const dx_reg low = opjit_dx_two(f, DX_F_PMULLW, width, a, b);
    const dx_reg kept = opjit_dx_two(f, DX_F_PAND, width, low, opjit_dx_repeated(f, LOWER, 16, width));
    const dx_reg down = opjit_dx_shifted(f, DX_F_SHIFTW, width, a, DX_RIGHT, 8);
    const dx_reg high = opjit_dx_two(f, DX_F_PMULLW, width, down, opjit_dx_two(f, DX_F_PAND, width, b, upper));
    opjit_dx_vector(f, DX_F_POR, width, opjit_dx_result(f, v), kept, high);
}

static void integers(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    const dx_form_name form = opjit_dx_integer_form(op, t.bits);
    if (op == LLVMMul && t.bits == 8) {
        multiply_bytes(f, v, t);
        return;
    }
    if (form == DX_FORMS) {
        opjit_dx_refuse(f, "vector arithmetic");
        return;
    }
    dx_reg a, b;
    opjit_dx_operands(f, v, op != LLVMSub, &a, &b);
    opjit_dx_vector(f, form, dx_width(t), opjit_dx_result(f, v), a, b);
}

void opjit_dx_select_vector(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (t.kind == DX_T_FLOAT) {
        if (t.bits < 32)
            opjit_dx_refuse(f, "arithmetic on halves");
        const dx_form_name first = op == LLVMFAdd   ? DX_F_ADDPS
                                   : op == LLVMFSub ? DX_F_SUBPS
                                   : op == LLVMFMul ? DX_F_MULPS
                                                    : DX_F_DIVPS;
        dx_reg a, b;
        opjit_dx_operands(f, v, op == LLVMFAdd || op == LLVMFMul, &a, &b);
        opjit_dx_vector(f, of_floats(t, first), dx_width(t), opjit_dx_result(f, v), a, b);
    } else if (t.bits == 1) {
        logic_of_masks(f, v, op);
    } else if (op == LLVMSDiv || op == LLVMUDiv || op == LLVMSRem || op == LLVMURem) {
        opjit_dx_select_quotients(f, v, op, t);
    } else if (opjit_dx_narrow_integers(f, v, op, t)) {
        return;
    } else if (op == LLVMShl || op == LLVMLShr || op == LLVMAShr) {
        shift(f, v, op, t);
    } else {
        integers(f, v, op, t);
    }
}

/* --- intrinsics --------------------------------------------------------------------------------------------------- */

static void unary(dx_func *f, LLVMValueRef v, dx_type t, dx_form_name first, int64_t imm)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    dx_op *o = opjit_dx_vector(f, of_floats(t, first), dx_width(t), opjit_dx_new(f, DX_VEC), t.lanes ? 0 : a, a);
    o->imm = imm;
    const dx_reg dst = o->dst;
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_REG;
    value->reg = dst;
}

static void absolute(dx_func *f, LLVMValueRef v, dx_type t)
{
    const uint32_t width = dx_width(t);
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const dx_reg digits = opjit_dx_repeated(f, UINT64_MAX >> (64 - t.bits + 1), t.bits, width);
    opjit_dx_vector(f, DX_F_PAND, width, opjit_dx_result(f, v), a, digits);
}

/* Whether nothing but the instruction needs the operand: no other one, and no other round of a loop. */
static bool ends_at(LLVMValueRef v, LLVMValueRef operand)
{
    while (LLVMIsABitCastInst(operand) && opjit_dx_used_once(operand))
        operand = LLVMGetOperand(operand, 0);
    return opjit_dx_used_once(operand) && LLVMIsAInstruction(operand) &&
           LLVMGetInstructionParent(operand) == LLVMGetInstructionParent(v);
}

/* The result takes the register of an operand that nothing else needs, of a factor, else of what is added, or of a
 * factor that is a constant, which is loaded there. */
static void multiply_add(dx_func *f, LLVMValueRef v, dx_type t)
{
    LLVMValueRef of[] = { LLVMGetOperand(v, 0), LLVMGetOperand(v, 1), LLVMGetOperand(v, 2) };
    const bool first = ends_at(v, of[0]), factor = first || ends_at(v, of[1]), sum = !factor && ends_at(v, of[2]);
    const bool second = !first && (factor || (!sum && opjit_dx_is_constant(f, of[1])));
    const dx_reg a = opjit_dx_use(f, of[second]), b = opjit_dx_use(f, of[!second]), c = opjit_dx_use(f, of[2]);
    const dx_reg dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, sum ? c : a);
    opjit_dx_vector(f, of_floats(t, sum ? DX_F_FMATOPS : DX_F_FMAPS), dx_width(t), dst, sum ? a : b, sum ? b : c)
        ->tied = true;
}

/* min and max of integers: one instruction, or a comparison. */
static void limit(dx_func *f, LLVMValueRef v, dx_type t, bool max, bool is_signed)
{
    enum { LESS = 0xc, LESS_EQUAL = 0xe, BELOW = 2, ABOVE = 7, GREATER = 0xf };
    if (t.lanes && opjit_dx_narrow_limit(f, v, t, max, is_signed))
        return;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg dst = opjit_dx_result(f, v);
    if (t.lanes) {
        const dx_form_name first = max ? is_signed ? DX_F_PMAXSB : DX_F_PMAXUB : is_signed ? DX_F_PMINSB : DX_F_PMINUB;
        opjit_dx_vector(f, (dx_form_name)(first + dx_size(t.bits)), dx_width(t), dst, a, b);
        return;
    }
    const dx_reg x = opjit_dx_extended(f, a, t.bits, is_signed), y = opjit_dx_extended(f, b, t.bits, is_signed);
    opjit_dx_copy(f, dst, x);
    dx_op *o = opjit_dx_op(f, DX_SELECT); /* y if x lies beyond it */
    o->dst = dst;
    o->tied = true;
    o->a = x;
    o->b = y;
    o->c = y;
    o->bytes = t.bits == 64 ? 8 : 4;
    o->cc = (uint8_t)(max ? is_signed ? LESS : BELOW : is_signed ? GREATER : ABOVE);
}

/* X86's operations in the operands' order: the second one where they are equal, or one is NaN. */
static void beyond(dx_func *f, LLVMValueRef v, dx_type t, bool max)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_form_name form = max ? t.bits == 64 ? DX_F_MAXPD : DX_F_MAXPS : t.bits == 64 ? DX_F_MINPD : DX_F_MINPS;
    opjit_dx_vector(f, form, dx_width(t), opjit_dx_result(f, v), a, b);
}

static void compare_floats(dx_func *f, LLVMValueRef v)
{
    int64_t how, all = 0;
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0)));
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    LLVMValueRef mask = LLVMGetOperand(v, 3);
    if (!opjit_dx_constant(f, LLVMGetOperand(v, 2), &how) || !LLVMIsConstant(mask))
        opjit_dx_refuse(f, "comparison");
    for (uint32_t i = 0; i < t.lanes && !f->refused; i++) {
        LLVMValueRef e = LLVMIsAConstantInt(mask) ? mask : LLVMGetAggregateElement(mask, i);
        if (!e || !opjit_dx_constant(f, e, &all) || (all & 1) == 0)
            opjit_dx_refuse(f, "masked comparison");
    }
    const dx_reg dst = opjit_dx_result(f, v);
    dx_op *o = opjit_dx_vector(f, t.bits == 64 ? DX_F_CMPPD : DX_F_CMPPS, dx_width(t), dst, a, b);
    o->imm = f->refused ? 0 : how;
}

/* permvar(values, places) */
static void permute(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    LLVMValueRef places = LLVMGetOperand(v, 1);
    if (LLVMIsConstant(places) && LLVMIsNull(places)) {
        opjit_dx_vector(f, t.bits == 64 ? DX_F_SPLATQ : DX_F_SPLATD, dx_width(t), opjit_dx_result(f, v), 0, a);
        return;
    }
    const dx_reg b = opjit_dx_use(f, places);
    static const dx_form_name forms[] = { DX_F_PERMB, DX_F_PERMW, DX_F_PERMD, DX_F_PERMQ };
    if (dx_bytes(t) < 32)
        opjit_dx_refuse(f, "permutation");
    opjit_dx_vector(f, forms[dx_size(t.bits)], dx_width(t), opjit_dx_result(f, v), b, a);
}

/* vpermi2var(a, places, b): the places become the result. */
static void permute_two(dx_func *f, LLVMValueRef v, dx_type t)
{
    static const dx_form_name forms[] = { DX_F_PERM2B, DX_F_PERM2W, DX_F_PERM2D, DX_F_PERM2Q };
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), places = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg b = opjit_dx_use(f, LLVMGetOperand(v, 2)), dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, places);
    opjit_dx_vector(f, forms[dx_size(t.bits)], dx_width(t), dst, a, b)->tied = true;
}

/* Whether a mask, an integer with a bit for each lane, is a constant with all lanes. */
static bool has_all_lanes(dx_func *f, LLVMValueRef mask, dx_type t)
{
    const uint64_t all = t.lanes < 64 ? ((uint64_t)1 << t.lanes) - 1 : UINT64_MAX;
    int64_t bits = 0;
    return opjit_dx_constant(f, mask, &bits) && ((uint64_t)bits & all) == all;
}

/* scalef(a, exponents, any, mask) */
static void scale(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    if (!f->wide || !has_all_lanes(f, LLVMGetOperand(v, 3), t))
        opjit_dx_refuse(f, "scaling");
    opjit_dx_vector(f, t.bits == 64 ? DX_F_SCALEPD : DX_F_SCALEPS, dx_width(t), opjit_dx_result(f, v), a, b);
}

/* cvtps2dq(a), or (a, any, mask, rounding) */
static void nearest(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    if (LLVMGetNumArgOperands(v) > 1 && !has_all_lanes(f, LLVMGetOperand(v, 2), t))
        opjit_dx_refuse(f, "rounding");
    opjit_dx_vector(f, DX_F_NEAREST, dx_width(t), opjit_dx_result(f, v), 0, a);
}

static void fix_up(dx_func *f, LLVMValueRef v, dx_type t)
{
    int64_t imm = 0;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg c = opjit_dx_use(f, LLVMGetOperand(v, 2)), dst = opjit_dx_result(f, v);
    if (!opjit_dx_constant(f, LLVMGetOperand(v, 3), &imm) || !has_all_lanes(f, LLVMGetOperand(v, 4), t))
        opjit_dx_refuse(f, "fixup");
    opjit_dx_copy(f, dst, a);
    dx_op *o = opjit_dx_vector(f, t.bits == 64 ? DX_F_FIXUPPD : DX_F_FIXUPPS, dx_width(t), dst, b, c);
    o->imm = imm;
    o->tied = true;
}

static void dot4(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg c = opjit_dx_use(f, LLVMGetOperand(v, 2)), dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, a);
    opjit_dx_vector(f, DX_F_DOT4, dx_width(t), dst, b, c)->tied = true;
}

/* pmadd.wd(a, b) */
static void pairs(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    opjit_dx_vector(f, DX_F_PMADDWD, dx_width(t), opjit_dx_result(f, v), a, b);
}

/* Nothing is contracted here, with or without it. */
static void fence(dx_func *f, LLVMValueRef v)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_REG;
    value->reg = a;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Names that hold beside their types; the prefix "llvm." is left out. */
void opjit_dx_math(dx_func *f, LLVMValueRef v, const char *name)
{
    enum { DOWN = 9, UP = 10, TO_ZERO = 11, EVEN = 8, CURRENT = 4, NEARBY = 12 };
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (t.kind == DX_T_FLOAT && t.bits < 32)
        opjit_dx_refuse(f, "arithmetic on halves");
    if (begins(name, "convert.from.fp16.f32") || begins(name, "convert.to.fp16.f32"))
        opjit_dx_half(f, v, t);
    else if (begins(name, "arithmetic.fence."))
        fence(f, v);
    else if (begins(name, "fabs."))
        absolute(f, v, t);
    else if (begins(name, "sqrt."))
        unary(f, v, t, DX_F_SQRTPS, 0);
    else if (begins(name, "floor."))
        unary(f, v, t, DX_F_ROUNDPS, DOWN);
    else if (begins(name, "ceil."))
        unary(f, v, t, DX_F_ROUNDPS, UP);
    else if (begins(name, "trunc."))
        unary(f, v, t, DX_F_ROUNDPS, TO_ZERO);
    else if (begins(name, "roundeven."))
        unary(f, v, t, DX_F_ROUNDPS, EVEN);
    else if (begins(name, "rint."))
        unary(f, v, t, DX_F_ROUNDPS, CURRENT);
    else if (begins(name, "nearbyint."))
        unary(f, v, t, DX_F_ROUNDPS, NEARBY);
    else if (begins(name, "fma."))
        multiply_add(f, v, t);
    else if (begins(name, "smax.") || begins(name, "umax.") || begins(name, "smin.") || begins(name, "umin."))
        limit(f, v, t, name[2] == 'a', name[0] == 's');
    else if (begins(name, "x86.avx512.max.p") || begins(name, "x86.avx.max.p") || begins(name, "x86.sse.max.ps") ||
             begins(name, "x86.sse2.max.pd"))
        beyond(f, v, t, true);
    else if (begins(name, "x86.avx512.min.p") || begins(name, "x86.avx.min.p") || begins(name, "x86.sse.min.ps") ||
             begins(name, "x86.sse2.min.pd"))
        beyond(f, v, t, false);
    else if (begins(name, "x86.avx512.mask.cmp.p"))
        compare_floats(f, v);
    else if (begins(name, "x86.avx512.permvar."))
        permute(f, v, t);
    else if (begins(name, "x86.avx512.vpermi2var."))
        permute_two(f, v, t);
    else if (begins(name, "x86.avx512.mask.fixupimm.p"))
        fix_up(f, v, t);
    else if (begins(name, "x86.avx512.mask.scalef.p"))
        scale(f, v, t);
    else if (begins(name, "x86.sse2.cvtps2dq") || begins(name, "x86.avx.cvt.ps2dq.256") ||
             begins(name, "x86.avx512.mask.cvtps2dq.512"))
        nearest(f, v, t);
    else if (begins(name, "x86.sse2.pmadd.wd") || begins(name, "x86.avx2.pmadd.wd") ||
             begins(name, "x86.avx512.pmaddw.d.512"))
        pairs(f, v, t);
    else if (begins(name, "x86.avx512.vpdpbusd."))
        dot4(f, v, t);
    else
        opjit_dx_refuse(f, name); /* which lives as long as the module */
}
