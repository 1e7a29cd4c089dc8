/* SPDX-License-Identifier: Apache-2.0 */
/* select_quotient.c - quotients and rests of vectors of integers, for which there is no instruction: both vectors go to
 * the stack, lane after lane is divided there, and the result comes back as a vector. */
#include "codegen/direct.h"

static dx_op *with_place(dx_op *o, uint32_t mem, uint32_t bytes)
{
    o->mem = mem;
    o->bytes = (uint8_t)bytes;
    return o;
}

static uint32_t place(dx_func *f, uint32_t offset)
{
    return opjit_dx_mem(f, (dx_mem){ .where = DX_AT_FRAME, .offset = offset });
}

static void put(dx_func *f, dx_reg vector, uint32_t offset, uint32_t width)
{
    const uint32_t mem = place(f, offset);
    dx_op *o = with_place(opjit_dx_op(f, DX_PUT), mem, width);
    o->form = DX_F_STORE;
    o->a = vector;
}

static dx_reg lane_at(dx_func *f, uint32_t offset, dx_type t, bool is_signed)
{
    const dx_reg lane = opjit_dx_new(f, DX_INT);
    const uint32_t mem = place(f, offset);
    with_place(opjit_dx_op(f, DX_LOAD), mem, t.bits / 8)->dst = lane;
    return opjit_dx_extended(f, lane, t.bits, is_signed);
}

void opjit_dx_select_quotients(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    enum { MOST_FRAME = 1 << 20 };
    const bool is_signed = op == LLVMSDiv || op == LLVMSRem, rest = op == LLVMURem || op == LLVMSRem;
    const uint32_t width = dx_width(t), each = t.bits / 8, first = (f->frame + width - 1) / width * width;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    if (t.bits < 8 || first > MOST_FRAME) {
        opjit_dx_refuse(f, "quotients");
        return;
    }
    f->frame = first + 2 * width;
    put(f, a, first, width);
    put(f, b, first + width, width);
    for (uint32_t i = 0; i < t.lanes; i++) {
        const dx_reg x = lane_at(f, first + i * each, t, is_signed);
        const dx_reg y = lane_at(f, first + width + i * each, t, is_signed), quotient = opjit_dx_new(f, DX_INT);
        const uint32_t mem = place(f, first + i * each);
        opjit_dx_divide(f, quotient, x, y, t.bits, is_signed, rest);
        with_place(opjit_dx_op(f, DX_STORE), mem, each)->a = quotient;
    }
    const uint32_t mem = place(f, first);
    opjit_dx_vector(f, DX_F_LOAD, width, opjit_dx_result(f, v), 0, 0)->mem = mem;
}
