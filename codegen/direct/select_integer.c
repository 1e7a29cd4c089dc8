/* SPDX-License-Identifier: Apache-2.0 */
/* select_integer.c - arithmetic on integers.  The upper bits of what is shorter than 64 bits may be anything, except
 * those of conditions, which are 0. */
#include "codegen/direct.h"

static bool is_short(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX;
}

static void multiply(dx_func *f, LLVMValueRef v, uint32_t bytes)
{
    int64_t by;
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    if (LLVMIsConstant(x)) {
        LLVMValueRef first = x;
        x = y;
        y = first;
    }
    const dx_reg a = opjit_dx_use(f, x);
    if (!opjit_dx_constant(f, y, &by) || !is_short(by)) {
        const dx_reg b = opjit_dx_use(f, y), dst = opjit_dx_result(f, v);
        opjit_dx_two_address(f, DX_TIMES, dst, a, bytes)->b = b;
        return;
    }
    if (by > 0 && (by & (by - 1)) == 0) {
        opjit_dx_two_address(f, DX_SHIFT, opjit_dx_result(f, v), a, bytes)->code = 4;
        f->ops[f->op_count - 1].imm = __builtin_ctzll((uint64_t)by);
        return;
    }
    const dx_reg dst = opjit_dx_result(f, v);
    dx_op *o = opjit_dx_op(f, DX_MULTIPLY);
    o->dst = dst;
    o->b = a;
    o->bytes = (uint8_t)bytes;
    o->imm = by;
}

dx_reg opjit_dx_extended(dx_func *f, dx_reg a, uint32_t bits, bool is_signed)
{
    if (bits >= 32)
        return a;
    const dx_reg wide = opjit_dx_new(f, DX_INT);
    dx_op *o = opjit_dx_op(f, DX_EXTEND);
    o->dst = wide;
    o->b = a;
    o->bytes = (uint8_t)(bits / 8);
    o->code = is_signed;
    return wide;
}

void opjit_dx_divide(dx_func *f, dx_reg dst, dx_reg x, dx_reg y, uint32_t bits, bool is_signed, bool rest)
{
    dx_op *o = opjit_dx_op(f, DX_DIVIDE);
    o->dst = dst;
    o->a = y;
    o->b = x;
    o->bytes = bits == 64 ? 8 : 4;
    o->code = (uint8_t)(is_signed | rest << 1);
}

static void divide(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    const bool is_signed = op == LLVMSDiv || op == LLVMSRem, rest = op == LLVMURem || op == LLVMSRem;
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const dx_reg x = opjit_dx_extended(f, a, t.bits, is_signed), y = opjit_dx_extended(f, b, t.bits, is_signed);
    if (t.bits < 8)
        opjit_dx_refuse(f, "quotient of conditions");
    opjit_dx_divide(f, opjit_dx_result(f, v), x, y, t.bits, is_signed, rest);
}

static void shift(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t)
{
    const uint8_t code = op == LLVMShl ? 4 : op == LLVMLShr ? 5 : 7;
    int64_t by;
    dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    if (op != LLVMShl)
        a = opjit_dx_extended(f, a, t.bits, op == LLVMAShr);
    const uint32_t bytes = t.bits == 64 ? 8 : 4;
    if (opjit_dx_constant(f, LLVMGetOperand(v, 1), &by)) {
        const dx_reg dst = opjit_dx_result(f, v);
        dx_op *o = opjit_dx_two_address(f, DX_SHIFT, dst, a, bytes);
        o->code = code;
        o->imm = by & (t.bits - 1);
        return;
    }
    const dx_reg number = opjit_dx_use(f, LLVMGetOperand(v, 1)), b = opjit_dx_extended(f, number, t.bits, false);
    const dx_reg dst = opjit_dx_result(f, v);
    dx_op *o = opjit_dx_op(f, DX_SHIFT_BY);
    o->dst = dst;
    o->a = b;
    o->b = a;
    o->bytes = (uint8_t)bytes;
    o->code = code == 4 ? X86_66 : code == 5 ? X86_F2 : X86_F3;
}

/* x + number, for 64 and 32 bits, is an address. */
static void add_number(dx_func *f, LLVMValueRef v, dx_reg a, int64_t number)
{
    const uint32_t mem = opjit_dx_mem(f, (dx_mem){ .where = DX_AT_REGISTER, .base = a, .offset = number });
    const dx_reg dst = opjit_dx_result(f, v);
    dx_op *o = opjit_dx_op(f, DX_LEA);
    o->dst = dst;
    o->mem = mem;
}

void opjit_dx_select_integer(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const uint32_t bytes = t.bits == 64 ? 8 : 4;
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    int64_t number;
    if (opjit_dx_class(f, t) != DX_INT || f->refused)
        return;
    if (op == LLVMMul) {
        multiply(f, v, bytes);
        return;
    }
    if (op == LLVMUDiv || op == LLVMSDiv || op == LLVMURem || op == LLVMSRem) {
        divide(f, v, op, t);
        return;
    }
    if (op == LLVMShl || op == LLVMLShr || op == LLVMAShr) {
        shift(f, v, op, t);
        return;
    }
    if (op != LLVMSub && LLVMIsConstant(x)) {
        LLVMValueRef first = x;
        x = y;
        y = first;
    }
    const dx_reg a = opjit_dx_use(f, x);
    const bool is_number = opjit_dx_constant(f, y, &number) && number > INT32_MIN / 2 && number < INT32_MAX / 2;
    if (is_number && (op == LLVMAdd || op == LLVMSub)) {
        add_number(f, v, a, op == LLVMAdd ? number : -number);
        return;
    }
    const dx_reg b = is_number ? 0 : opjit_dx_use(f, y), dst = opjit_dx_result(f, v);
    dx_op *o = opjit_dx_two_address(f, DX_ARITH, dst, a, bytes);
    o->b = b;
    o->imm = is_number ? number : 0;
    switch (op) {
    case LLVMAdd: o->code = DX_ADD; break;
    case LLVMSub: o->code = DX_SUB; break;
    case LLVMAnd: o->code = DX_AND; break;
    case LLVMOr: o->code = DX_OR; break;
    default: o->code = DX_XOR; break;
    }
    if (t.bits == 1 && (op == LLVMAdd || op == LLVMSub))
        opjit_dx_refuse(f, "sum of conditions");
}
