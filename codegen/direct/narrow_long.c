/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_long.c - conversions between floats and integers of 64 bits, which AVX2 has for single numbers alone. */
#include "codegen/direct.h"

enum { LANE = 16 /* bytes that AVX2's shuffles stay within */, IN_LANE = 2 /* numbers of 64 bits */ };

/* --- integers to floats ------------------------------------------------------------------------------------------- */

/* Both halves as last digits, of 2^84 and of 2^52; what these are too much by is taken away exactly, and the sum of
 * both is rounded once.  A signed number's upper half is moved by 2^31. */
static dx_reg long_to_f64(dx_func *f, dx_reg x, uint32_t width, bool is_signed)
{
    enum { EVEN = 0x55 /* lower halves */ };
    const uint64_t sign = is_signed ? UINT64_C(0x80000000) : 0, two_84 = UINT64_C(0x453) << 52;
    const uint64_t both = two_84 | UINT64_C(0x100000) | sign; /* 2^84 + 2^52, and 2^63 */
    const dx_reg up = opjit_dx_shifted(f, DX_F_SHIFTQ, width, x, DX_RIGHT, 32);
    const dx_reg high = opjit_dx_two(f, DX_F_PXOR, width, up, opjit_dx_repeated(f, two_84 | sign, 64, width));
    const dx_reg low = opjit_dx_new(f, DX_VEC), two_52 = opjit_dx_repeated(f, UINT64_C(0x433) << 52, 64, width);
    opjit_dx_vector(f, DX_F_PBLENDD, width, low, two_52, x)->imm = EVEN;
    const dx_reg rest = opjit_dx_two(f, DX_F_SUBPD, width, high, opjit_dx_repeated(f, both, 64, width));
    return opjit_dx_two(f, DX_F_ADDPD, width, rest, low);
}

/* From 2^53 on with an odd last digit, of 2^11, where digits behind it are not 0: so float64 is exact, and what is
 * rounded once more goes to the number's own side. */
static dx_reg long_to_f32(dx_func *f, dx_reg x, uint32_t width, bool is_signed)
{
    enum { DIGITS = 53, BEHIND = 0x7ff };
    const dx_reg behind = opjit_dx_repeated(f, BEHIND, 64, width);
    const dx_reg carry = opjit_dx_two(f, DX_F_PADDQ, width, opjit_dx_two(f, DX_F_PAND, width, x, behind), behind);
    const dx_reg all = opjit_dx_two(f, DX_F_POR, width, x, carry);
    const dx_reg odd = opjit_dx_two(f, DX_F_PAND, width, all, opjit_dx_repeated(f, ~(uint64_t)BEHIND, 64, width));
    const dx_reg moved =
        is_signed ? opjit_dx_two(f, DX_F_PADDQ, width, x, opjit_dx_repeated(f, UINT64_C(1) << 52, 64, width)) : x;
    const dx_reg upper = opjit_dx_shifted(f, DX_F_SHIFTQ, width, moved, DX_RIGHT, DIGITS);
    const dx_reg is_short = opjit_dx_two(f, DX_F_PCMPEQQ, width, upper, opjit_dx_zero(f));
    const dx_reg digits = opjit_dx_new(f, DX_VEC);
    opjit_dx_narrow_blend(f, digits, 64, width, is_short, x, odd);
    const dx_reg exact = long_to_f64(f, digits, width, is_signed);
    return opjit_dx_two(f, DX_F_F64F32, width, 0, exact);
}

/* --- floats to integers ------------------------------------------------------------------------------------------- */

static dx_reg lane_as_long(dx_func *f, dx_reg x, uint32_t bits, uint32_t lane)
{
    enum { UPPER = 0xe };
    const dx_reg number = opjit_dx_new(f, DX_INT), moved = lane == 0 ? x : opjit_dx_new(f, DX_VEC);
    if (lane > 0)
        opjit_dx_vector(f, DX_F_LANES, LANE, moved, 0, x)->imm = bits == 64 ? UPPER : lane;
    opjit_dx_vector(f, bits == 64 ? DX_F_SDSI64 : DX_F_SSSI64, LANE, number, 0, moved);
    return number;
}

/* Two lanes, of which the first is lane `first`. */
static dx_reg pair_as_long(dx_func *f, dx_reg x, uint32_t bits, uint32_t first)
{
    const dx_reg one = opjit_dx_new(f, DX_VEC), both = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_MOVQ, LANE, one, 0, lane_as_long(f, x, bits, first));
    opjit_dx_vector(f, DX_F_INSERTQ, LANE, both, one, lane_as_long(f, x, bits, first + 1))->imm = 1;
    return both;
}

static dx_reg to_long(dx_func *f, dx_reg x, dx_type from)
{
    const dx_reg low = pair_as_long(f, x, from.bits, 0);
    if (from.lanes == IN_LANE)
        return low;
    const dx_reg high = from.bits == 64 ? pair_as_long(f, opjit_dx_high_half(f, x), 64, 0)
                                        : pair_as_long(f, x, from.bits, IN_LANE);
    const dx_reg all = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_VPUTHIGH128, 2 * LANE, all, low, high)->imm = 1;
    return all;
}

/* --- the conversions ---------------------------------------------------------------------------------------------- */

bool opjit_dx_narrow_long(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    const bool to_float = op == LLVMSIToFP || op == LLVMUIToFP;
    const dx_type whole = to_float ? from : to, number = to_float ? to : from;
    if (f->wide || (!to_float && op != LLVMFPToSI) || whole.bits != 64 || number.bits < 32 ||
        (whole.lanes != IN_LANE && whole.lanes != 2 * IN_LANE))
        return false;
    const dx_reg x = opjit_dx_use(f, LLVMGetOperand(v, 0));
    opjit_dx_name(f, v,
                  !to_float       ? to_long(f, x, from)
                  : to.bits == 64 ? long_to_f64(f, x, dx_width(from), op == LLVMSIToFP)
                                  : long_to_f32(f, x, dx_width(from), op == LLVMSIToFP));
    return true;
}

/* One unsigned number, as the lower one of two. */
dx_reg opjit_dx_narrow_unsigned(dx_func *f, dx_reg number, uint32_t bits)
{
    const dx_reg x = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_MOVQ, LANE, x, 0, number);
    return bits == 64 ? long_to_f64(f, x, LANE, false) : long_to_f32(f, x, LANE, false);
}
