/* SPDX-License-Identifier: Apache-2.0 */
/* narrow.c - with AVX2: comparisons, selects and what else concerns masks, and arithmetic that only AVX-512 has.  A
 * mask is a vector of integers, all ones or 0 in each lane; its register says how wide a lane is, and whoever needs
 * other lanes makes them. */
#include "codegen/direct.h"

enum { LEAST = 16 };

/* The bytes of a vector of so many lanes, at least a register's. */
static uint32_t width_of(uint32_t lanes, uint32_t bits)
{
    return lanes * bits / 8 < LEAST ? LEAST : lanes * bits / 8;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

uint32_t opjit_dx_mask_bits(const dx_func *f, uint32_t lanes)
{
    const uint32_t bits = lanes ? 8 * f->bytes / lanes : 0;
    return bits > 64 ? 64 : bits;
}

dx_reg opjit_dx_mask_new(dx_func *f, uint32_t bits)
{
    const dx_reg reg = opjit_dx_new(f, DX_VEC);
    if (!f->refused)
        f->regs[reg].lane = (uint8_t)bits;
    return reg;
}

/* Lanes of half the width: saturation keeps -1 and 0. */
static dx_reg halved(dx_func *f, dx_reg from, uint32_t lanes, uint32_t bits)
{
    const dx_reg to = opjit_dx_mask_new(f, bits / 2);
    const dx_reg high = lanes * bits / 8 > LEAST ? opjit_dx_high_half(f, from) : from;
    const dx_form_name form = bits == 64 ? DX_F_SHUFPS : bits == 32 ? DX_F_PACKSSDW : DX_F_PACKSSWB;
    opjit_dx_vector(f, form, LEAST, to, from, high)->imm = 0x88; /* the even ones of both */
    return to;
}

static dx_reg with_lanes(dx_func *f, dx_reg mask, uint32_t lanes, uint32_t bits)
{
    static const dx_form_name wider[3][4] = { { DX_FORMS, DX_F_SEXTBW, DX_F_SEXTBD, DX_F_SEXTBQ },
                                              { DX_FORMS, DX_FORMS, DX_F_SEXTWD, DX_F_SEXTWQ },
                                              { DX_FORMS, DX_FORMS, DX_FORMS, DX_F_SEXTDQ } };
    uint32_t own = f->refused ? bits : f->regs[mask].lane;
    if (own < 8 || lanes * bits / 8 > f->bytes) {
        opjit_dx_refuse(f, "lanes of a mask");
        return mask;
    }
    if (own < bits) {
        const dx_reg to = opjit_dx_mask_new(f, bits);
        opjit_dx_vector(f, wider[dx_size(own)][dx_size(bits)], width_of(lanes, bits), to, 0, mask);
        return to;
    }
    for (; own > bits; own /= 2)
        mask = halved(f, mask, lanes, own);
    return mask;
}

/* A condition that is a number, 0 or 1, as a mask. */
static dx_reg from_number(dx_func *f, dx_reg number, uint32_t bits)
{
    const dx_reg all = opjit_dx_new(f, DX_INT), mask = opjit_dx_mask_new(f, bits);
    opjit_dx_bit_as_all(f, all, number);
    opjit_dx_vector(f, DX_F_MOVQ, LEAST, mask, 0, all);
    return mask;
}

dx_reg opjit_dx_mask_as(dx_func *f, LLVMValueRef v, uint32_t bits)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    if (t.lanes && LLVMIsConstant(v))
        return opjit_dx_mask_constant(f, v, bits);
    if (!t.lanes && value && value->second)
        return with_lanes(f, value->second, 1, bits);
    if (!t.lanes)
        return from_number(f, opjit_dx_use(f, v), bits);
    if (!value || value->how != DX_V_REG) {
        opjit_dx_refuse(f, "mask");
        return 0;
    }
    return with_lanes(f, value->reg, t.lanes, bits);
}

/* The width of lanes that an operand has by itself; 0: any. */
static uint32_t own_bits(dx_func *f, LLVMValueRef v)
{
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    return value && value->how == DX_V_REG && !f->refused ? f->regs[value->reg].lane : 0;
}

void opjit_dx_narrow_logic(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    const uint32_t lanes = opjit_dx_type(f, LLVMTypeOf(v)).lanes;
    uint32_t bits = own_bits(f, x) > 0 ? own_bits(f, x) : own_bits(f, y);
    if (op != LLVMAnd && op != LLVMOr && op != LLVMXor)
        opjit_dx_refuse(f, "arithmetic on masks");
    if (bits == 0)
        bits = opjit_dx_mask_bits(f, lanes);
    const dx_reg a = opjit_dx_mask_as(f, x, bits), b = opjit_dx_mask_as(f, y, bits);
    const dx_reg dst = opjit_dx_mask_new(f, bits);
    opjit_dx_vector(f, op == LLVMAnd ? DX_F_PAND : op == LLVMOr ? DX_F_POR : DX_F_PXOR, width_of(lanes, bits), dst, a,
                    b);
    opjit_dx_name(f, v, dst);
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

/* AVX2 has == and > of signed numbers.  a >= b of unsigned ones: a is the larger one. */
void opjit_dx_narrow_compare(dx_func *f, LLVMValueRef v, dx_type t)
{
    const LLVMIntPredicate p = LLVMGetICmpPredicate(v);
    const uint32_t size = dx_size(t.bits), width = dx_width(t);
    const bool is_unsigned = p >= LLVMIntUGT && p <= LLVMIntULE, equal = p == LLVMIntEQ || p == LLVMIntNE;
    const bool turned = p == LLVMIntULT || p == LLVMIntSLT || p == LLVMIntUGE || p == LLVMIntSGE; /* b > a */
    const bool negated = p == LLVMIntNE || p == LLVMIntUGE || p == LLVMIntULE || p == LLVMIntSGE || p == LLVMIntSLE;
    bool other = negated;
    dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1)), dst;
    if (turned) {
        const dx_reg first = a;
        a = b;
        b = first;
    }
    const dx_reg mask = opjit_dx_mask_new(f, t.bits);
    dst = mask;
    if (is_unsigned && size < 3) { /* not (a > b): b is the larger one */
        const dx_reg larger = opjit_dx_two(f, (dx_form_name)(DX_F_PMAXUB + size), width, a, b);
        a = larger;
        other = !negated;
    } else if (is_unsigned) {
        const dx_reg sign = opjit_dx_repeated(f, (uint64_t)1 << 63, 64, width);
        a = opjit_dx_two(f, DX_F_PXOR, width, a, sign);
        b = opjit_dx_two(f, DX_F_PXOR, width, b, sign);
    }
    if (other)
        dst = opjit_dx_new(f, DX_VEC);
    const dx_form_name first = equal || (is_unsigned && size < 3) ? DX_F_PCMPEQB : DX_F_PCMPGTB;
    opjit_dx_vector(f, (dx_form_name)(first + size), width, dst, a, b);
    if (other)
        opjit_dx_vector(f, DX_F_PXOR, width, mask, dst, opjit_dx_repeated(f, UINT64_MAX, 64, width));
    opjit_dx_name(f, v, mask);
}

void opjit_dx_narrow_compare_floats(dx_func *f, LLVMValueRef v, dx_type t, uint32_t how)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_form_name first = t.lanes ? DX_F_VCMPPS : DX_F_VCMPSS;
    const dx_reg mask = opjit_dx_mask_new(f, t.bits);
    opjit_dx_vector(f, (dx_form_name)(first + (t.bits == 64)), dx_width(t), mask, a, b)->imm = how;
    if (t.lanes) {
        opjit_dx_name(f, v, mask);
        return;
    }
    const dx_reg all = opjit_dx_new(f, DX_INT), dst = opjit_dx_result(f, v); /* go away if nothing needs them */
    opjit_dx_vector(f, DX_F_FROMD, LEAST, all, 0, mask);
    opjit_dx_lowest_bit(f, dst, all);
    opjit_dx_find(f, v)->second = mask;
}

/* --- selects ------------------------------------------------------------------------------------------------------ */

void opjit_dx_narrow_blend(dx_func *f, dx_reg dst, uint32_t bits, uint32_t width, dx_reg mask, dx_reg yes, dx_reg no)
{
    const dx_form_name form = bits == 32 ? DX_F_BLENDVPS : bits == 64 ? DX_F_BLENDVPD : DX_F_BLENDVB;
    opjit_dx_vector(f, form, width, dst, no, yes)->mask = mask;
}

static bool is_zero(LLVMValueRef v)
{
    return LLVMIsConstant(v) && LLVMIsNull(v);
}

static void select_masks(dx_func *f, LLVMValueRef v, uint32_t lanes)
{
    const uint32_t bits = opjit_dx_mask_bits(f, lanes);
    const dx_reg mask = opjit_dx_mask_as(f, LLVMGetOperand(v, 0), bits);
    const dx_reg yes = opjit_dx_mask_as(f, LLVMGetOperand(v, 1), bits);
    const dx_reg no = opjit_dx_mask_as(f, LLVMGetOperand(v, 2), bits), dst = opjit_dx_mask_new(f, bits);
    opjit_dx_narrow_blend(f, dst, 8, width_of(lanes, bits), mask, yes, no);
    opjit_dx_name(f, v, dst);
}

/* A condition in all bits of a vector. */
static dx_reg condition_as_vector(dx_func *f, LLVMValueRef c, uint32_t width)
{
    const dx_reg one = opjit_dx_new(f, DX_VEC), all = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_MOVQ, 16, one, 0, opjit_dx_condition_as_all(f, c));
    opjit_dx_vector(f, DX_F_SPLATQ, width, all, 0, one);
    return all;
}

void opjit_dx_narrow_select(dx_func *f, LLVMValueRef v, dx_type t, bool whole)
{
    LLVMValueRef x = LLVMGetOperand(v, 1), y = LLVMGetOperand(v, 2);
    const uint32_t width = dx_width(t);
    if (t.bits == 1) {
        if (whole)
            opjit_dx_refuse(f, "select of whole masks");
        else
            select_masks(f, v, t.lanes);
        return;
    }
    LLVMValueRef c = LLVMGetOperand(v, 0);
    const dx_reg mask = whole ? condition_as_vector(f, c, width) : opjit_dx_mask_as(f, c, t.bits);
    if (is_zero(x) || is_zero(y)) {
        const dx_reg other = opjit_dx_use(f, is_zero(y) ? x : y);
        opjit_dx_vector(f, is_zero(y) ? DX_F_PAND : DX_F_PANDN, width, opjit_dx_result(f, v), mask, other);
        return;
    }
    const dx_reg yes = opjit_dx_use(f, x), no = opjit_dx_use(f, y);
    opjit_dx_narrow_blend(f, opjit_dx_result(f, v), t.bits, width, mask, yes, no);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* A mask for memory: lanes above a short vector's are 0. */
static dx_reg mask_in_memory(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg mask = opjit_dx_mask_as(f, v, t.bits), low = dx_bytes(t) < LEAST ? opjit_dx_new(f, DX_VEC) : mask;
    if (t.bits < 32 || dx_bytes(t) < LEAST / 2)
        opjit_dx_refuse(f, "mask of short elements");
    if (low != mask)
        opjit_dx_vector(f, DX_F_LOWQ, LEAST, low, 0, mask);
    return low;
}

void opjit_dx_narrow_load(dx_func *f, LLVMValueRef v, dx_type t)
{
    LLVMValueRef other = LLVMGetOperand(v, 2);
    const bool zero = LLVMIsConstant(other) && (LLVMIsNull(other) || LLVMIsUndef(other));
    const dx_reg mask = mask_in_memory(f, LLVMGetOperand(v, 1), t), from = zero ? 0 : opjit_dx_use(f, other);
    const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, LLVMGetOperand(v, 0))), width = dx_width(t);
    const dx_reg dst = opjit_dx_result(f, v), read = zero ? dst : opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, t.bits == 64 ? DX_F_MASKLOADQ : DX_F_MASKLOADD, width, read, mask, 0)->mem = mem;
    if (!zero)
        opjit_dx_narrow_blend(f, dst, t.bits, width, mask, read, from);
}

void opjit_dx_narrow_store(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg mask = mask_in_memory(f, LLVMGetOperand(v, 2), t);
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, LLVMGetOperand(v, 1)));
    dx_op *o = opjit_dx_op(f, DX_PUT);
    o->form = t.bits == 64 ? DX_F_MASKSTOREQ : DX_F_MASKSTORED;
    o->bytes = (uint8_t)dx_width(t);
    o->a = a;
    o->b = mask;
    o->mem = mem;
}

/* --- arithmetic that AVX2 has no instruction for ------------------------------------------------------------------ */

/* Halves of 32 bits: low * low + (low * high + high * low) * 2^32 */
static void multiply_long(dx_func *f, LLVMValueRef v, uint32_t width)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg high_a = opjit_dx_shifted(f, DX_F_SHIFTQ, width, a, DX_RIGHT, 32);
    const dx_reg first = opjit_dx_two(f, DX_F_PMULUDQ, width, high_a, b);
    const dx_reg high_b = opjit_dx_shifted(f, DX_F_SHIFTQ, width, b, DX_RIGHT, 32);
    const dx_reg second = opjit_dx_two(f, DX_F_PMULUDQ, width, high_b, a);
    const dx_reg sum = opjit_dx_two(f, DX_F_PADDQ, width, first, second);
    const dx_reg low = opjit_dx_two(f, DX_F_PMULUDQ, width, a, b);
    const dx_reg high = opjit_dx_shifted(f, DX_F_SHIFTQ, width, sum, DX_LEFT, 32);
    opjit_dx_vector(f, DX_F_PADDQ, width, opjit_dx_result(f, v), low, high);
}

/* The bits of a number that is shifted as an unsigned one, with its sign s at its place now: (bits ^ s) - s */
static void shift_long(dx_func *f, LLVMValueRef v, uint32_t width)
{
    LLVMValueRef y = LLVMGetOperand(v, 1);
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    int64_t by;
    dx_reg bits, sign;
    if (opjit_dx_constant(f, y, &by)) {
        by &= 63;
        bits = opjit_dx_shifted(f, DX_F_SHIFTQ, width, a, DX_RIGHT, (uint32_t)by);
        sign = opjit_dx_repeated(f, (uint64_t)1 << (63 - by), 64, width);
    } else {
        const dx_reg b = opjit_dx_use(f, y);
        bits = opjit_dx_two(f, DX_F_PSRLVQ, width, a, b);
        sign = opjit_dx_two(f, DX_F_PSRLVQ, width, opjit_dx_repeated(f, (uint64_t)1 << 63, 64, width), b);
    }
    const dx_reg flipped = opjit_dx_two(f, DX_F_PXOR, width, bits, sign);
    opjit_dx_vector(f, DX_F_PSUBQ, width, opjit_dx_result(f, v), flipped, sign);
}

bool opjit_dx_narrow_integers(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    if (f->wide || t.bits != 64 || (op != LLVMMul && op != LLVMAShr))
        return false;
    if (op == LLVMMul)
        multiply_long(f, v, dx_width(t));
    else
        shift_long(f, v, dx_width(t));
    return true;
}

/* min and max of 64 bits. */
bool opjit_dx_narrow_limit(dx_func *f, LLVMValueRef v, dx_type t, bool max, bool is_signed)
{
    const uint32_t width = dx_width(t);
    if (f->wide || t.bits != 64)
        return false;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    dx_reg x = a, y = b;
    if (!is_signed) {
        const dx_reg sign = opjit_dx_repeated(f, (uint64_t)1 << 63, 64, width);
        x = opjit_dx_two(f, DX_F_PXOR, width, a, sign);
        y = opjit_dx_two(f, DX_F_PXOR, width, b, sign);
    }
    const dx_reg larger = opjit_dx_two(f, DX_F_PCMPGTQ, width, x, y);
    opjit_dx_narrow_blend(f, opjit_dx_result(f, v), 64, width, larger, max ? a : b, max ? b : a);
    return true;
}
