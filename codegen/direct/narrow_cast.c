/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_cast.c - conversions with AVX2 that AVX-512 has instructions for: of masks, to shorter integers, of unsigned
 * numbers. */
#include "codegen/direct.h"

enum { LEAST = 16, LANE = 16 /* bytes that AVX2's shuffles stay within */ };

/* --- masks -------------------------------------------------------------------------------------------------------- */

void opjit_dx_narrow_from_mask(dx_func *f, LLVMValueRef v, dx_type to, bool is_signed)
{
    static const dx_form_name subtract[] = { DX_F_PSUBB, DX_F_PSUBW, DX_F_PSUBD, DX_F_PSUBQ };
    const dx_reg mask = opjit_dx_mask_as(f, LLVMGetOperand(v, 0), to.bits);
    if (is_signed) { /* a register of its own: it is no mask any more */
        opjit_dx_copy(f, opjit_dx_result(f, v), mask);
        return;
    }
    const dx_reg zero = opjit_dx_zero(f);
    opjit_dx_vector(f, subtract[dx_size(to.bits)], dx_width(to), opjit_dx_result(f, v), zero, mask);
}

/* One bit for each lane; those above them may be anything. */
static void to_bits(dx_func *f, LLVMValueRef v, uint32_t lanes)
{
    const uint32_t own = opjit_dx_mask_bits(f, lanes), bits = own == 16 ? 8 : own;
    const dx_reg mask = opjit_dx_mask_as(f, LLVMGetOperand(v, 0), bits);
    const uint32_t bytes = lanes * bits / 8;
    const dx_form_name form = bits == 8 ? DX_F_PMOVMSKB : bits == 32 ? DX_F_MOVMSKPS : DX_F_MOVMSKPD;
    opjit_dx_vector(f, form, bytes < LEAST ? LEAST : bytes, opjit_dx_result(f, v), 0, mask);
}

/* Each lane has all bits, and compares its own. */
static void from_bits(dx_func *f, LLVMValueRef v, uint32_t lanes)
{
    static const dx_form_name splats[] = { DX_F_SPLATB, DX_F_SPLATW, DX_F_SPLATD, DX_F_SPLATQ };
    static const dx_form_name equal[] = { DX_F_PCMPEQB, DX_F_PCMPEQW, DX_F_PCMPEQD, DX_F_PCMPEQQ };
    const uint32_t bits = opjit_dx_mask_bits(f, lanes), bytes = lanes * bits / 8, size = dx_size(bits);
    uint8_t own[64] = { 0 };
    if (bits < lanes || bytes < LEAST) {
        opjit_dx_refuse(f, "bits as a mask");
        return;
    }
    for (uint32_t i = 0; i < lanes; i++)
        own[i * bits / 8 + i / 8] = (uint8_t)(1 << i % 8);
    const dx_reg number = opjit_dx_use(f, LLVMGetOperand(v, 0)), x = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_MOVQ, LEAST, x, 0, number);
    const dx_reg all = opjit_dx_two(f, splats[size], bytes, 0, x), places = opjit_dx_vector_constant(f, own, bytes);
    const dx_reg set = opjit_dx_two(f, DX_F_PAND, bytes, all, places), mask = opjit_dx_mask_new(f, bits);
    opjit_dx_vector(f, equal[size], bytes, mask, set, places);
    opjit_dx_name(f, v, mask);
}

void opjit_dx_narrow_mask_cast(dx_func *f, LLVMValueRef v, dx_type from, dx_type to)
{
    if (from.bits == 1 && from.lanes && !to.lanes)
        to_bits(f, v, from.lanes);
    else if (to.bits == 1 && to.lanes && !from.lanes)
        from_bits(f, v, to.lanes);
    else
        opjit_dx_refuse(f, "bits of masks as vectors");
}

/* --- shorter integers --------------------------------------------------------------------------------------------- */

/* The lowest bytes of the elements of each 16 bytes, at their begin. */
static dx_reg gathered(dx_func *f, dx_reg x, uint32_t from, uint32_t to, uint32_t width)
{
    uint8_t places[2 * LANE];
    for (uint32_t i = 0; i < width; i++) {
        const uint32_t at = i % LANE, element = at / to;
        places[i] = (uint8_t)(element < LANE / from ? element * from + at % to : 0x80);
    }
    return opjit_dx_two(f, DX_F_PSHUFB, width, x, opjit_dx_vector_constant(f, places, width));
}

void opjit_dx_narrow_truncate(dx_func *f, LLVMValueRef v, dx_type from, dx_type to)
{
    if (opjit_dx_narrow_limited(f, v, from, to))
        return;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const uint32_t width = dx_width(from);
    if (width > 2 * LANE) {
        opjit_dx_refuse(f, "truncation");
        return;
    }
    if (to.bits == 1) { /* their lowest bits, at the top, as signs */
        static const dx_form_name shifts[] = { DX_FORMS, DX_F_SHIFTW, DX_F_SHIFTD, DX_F_SHIFTQ };
        static const dx_form_name greater[] = { DX_FORMS, DX_F_PCMPGTW, DX_F_PCMPGTD, DX_F_PCMPGTQ };
        const dx_reg ones = opjit_dx_repeated(f, from.bits == 64 ? 1 : UINT64_C(0x0101010101010101), 64, width);
        const dx_reg zero = opjit_dx_zero(f), mask = opjit_dx_mask_new(f, from.bits);
        if (from.bits == 8) {
            opjit_dx_vector(f, DX_F_PCMPGTB, width, mask, opjit_dx_two(f, DX_F_PAND, width, a, ones), zero);
        } else {
            const dx_reg top = opjit_dx_shifted(f, shifts[dx_size(from.bits)], width, a, DX_LEFT, from.bits - 1u);
            opjit_dx_vector(f, greater[dx_size(from.bits)], width, mask, zero, top);
        }
        opjit_dx_name(f, v, mask);
        return;
    }
    if (width == 2 * LANE && from.bits == 64 && to.bits == 32) {
        const dx_reg high = opjit_dx_high_half(f, a);
        opjit_dx_vector(f, DX_F_SHUFPS, LANE, opjit_dx_result(f, v), a, high)->imm = 0x88; /* the even ones of both */
        return;
    }
    const dx_reg low = gathered(f, a, from.bits / 8, to.bits / 8, width);
    if (width == LANE) {
        opjit_dx_name(f, v, low);
        return;
    }
    switch (dx_bytes(to)) {
    case 16: opjit_dx_vector(f, DX_F_PERMQI, 2 * LANE, opjit_dx_result(f, v), 0, low)->imm = 0x08; break;
    case 8: opjit_dx_vector(f, DX_F_UNPACKLD, LANE, opjit_dx_result(f, v), low, opjit_dx_high_half(f, low)); break;
    case 4: opjit_dx_vector(f, DX_F_UNPACKLW, LANE, opjit_dx_result(f, v), low, opjit_dx_high_half(f, low)); break;
    default: opjit_dx_refuse(f, "truncation"); break;
    }
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

/* Halves of 16 bits as the last digits of 2^23 and of 2^39: what is added to those is taken away exactly, and the sum
 * is rounded once. */
static void unsigned_to_f32(dx_func *f, LLVMValueRef v, uint32_t width)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const dx_reg half = opjit_dx_two(f, DX_F_PAND, width, a, opjit_dx_repeated(f, 0xffff, 32, width));
    const dx_reg low = opjit_dx_two(f, DX_F_POR, width, half, opjit_dx_repeated(f, 0x4b000000, 32, width)); /* 2^23 */
    const dx_reg up = opjit_dx_shifted(f, DX_F_SHIFTD, width, a, DX_RIGHT, 16);
    const dx_reg high = opjit_dx_two(f, DX_F_POR, width, up, opjit_dx_repeated(f, 0x53000000, 32, width)); /* 2^39 */
    const dx_reg rest =
        opjit_dx_two(f, DX_F_SUBPS, width, high, opjit_dx_repeated(f, 0x53000080, 32, width)); /* 2^39 + 2^23 */
    opjit_dx_vector(f, DX_F_ADDPS, width, opjit_dx_result(f, v), rest, low);
}

/* As the last digits of 2^52, which is taken away exactly. */
static void unsigned_to_f64(dx_func *f, LLVMValueRef v, uint32_t width)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const dx_reg two_52 = opjit_dx_repeated(f, UINT64_C(0x433) << 52, 64, width);
    const dx_reg wide = opjit_dx_two(f, DX_F_ZEXTDQ, width, 0, a), sum = opjit_dx_two(f, DX_F_POR, width, wide, two_52);
    opjit_dx_vector(f, DX_F_SUBPD, width, opjit_dx_result(f, v), sum, two_52);
}

bool opjit_dx_narrow_number(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    if (f->wide || op != LLVMUIToFP || from.bits != 32)
        return false;
    if (to.bits == 32)
        unsigned_to_f32(f, v, dx_width(to));
    else
        unsigned_to_f64(f, v, dx_width(to));
    return true;
}
