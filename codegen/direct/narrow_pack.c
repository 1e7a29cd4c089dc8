/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_pack.c - with AVX2: numbers of 32 bits that are limited to a shorter type, as its elements.  AVX2's packs
 * limit by themselves, so the limits that are there go away.  Bytes that stores put side by side, one vector after the
 * other, are packed together and stored at once: until something else accesses memory, such stores are put off. */
#include "codegen/direct.h"

#include <string.h>

enum { LANE = 16, BYTES = 8 /* that one vector makes */ };

/* Whether it is the constant, in all lanes. */
static bool is_number(dx_func *f, LLVMValueRef v, int64_t number)
{
    int64_t own = 0;
    return LLVMIsConstant(v) && opjit_dx_constant(f, v, &own) && (int32_t)own == number;
}

/* What the intrinsic limits to the number; NULL: it is another instruction. */
static LLVMValueRef limited(dx_func *f, LLVMValueRef v, const char *name, int64_t number)
{
    size_t length = 0;
    LLVMValueRef callee = LLVMIsACallInst(v) ? LLVMGetCalledValue(v) : NULL;
    if (!callee || !LLVMIsAFunction(callee) || !is_number(f, LLVMGetOperand(v, 1), number) ||
        strncmp(LLVMGetValueName2(callee, &length), name, strlen(name)) != 0)
        return NULL;
    return LLVMGetOperand(v, 0);
}

/* The numbers of which a truncation takes the lower bits, if those are the same as the numbers limited to elements of
 * the result; NULL: they are not.  *is_signed: of those elements. */
static LLVMValueRef limited_to(dx_func *f, LLVMValueRef v, uint32_t bits, bool *is_signed)
{
    LLVMValueRef x = LLVMGetOperand(v, 0);
    for (uint32_t s = 0; s < 2; s++) {
        const int64_t all = (int64_t)1 << bits, lo = s ? -all / 2 : 0;
        LLVMValueRef above = limited(f, x, "llvm.smin.", lo + all - 1);
        LLVMValueRef both = above ? limited(f, above, "llvm.smax.", lo) : NULL;
        *is_signed = s;
        if (both || (s ? LLVMGetNSW(v) : LLVMGetNUW(v)))
            return both ? both : x;
    }
    return NULL;
}

/* Words of two vectors of 32 bits, those of each 16 bytes side by side. */
static dx_reg words(dx_func *f, uint32_t width, dx_reg a, dx_reg b, bool is_signed)
{
    return opjit_dx_two(f, is_signed ? DX_F_PACKSSDW : DX_F_PACKUSDW, width, a, b);
}

static dx_reg bytes(dx_func *f, uint32_t width, dx_reg a, dx_reg b, bool is_signed)
{
    return opjit_dx_two(f, is_signed ? DX_F_PACKSSWB : DX_F_PACKUSWB, width, a, b);
}

bool opjit_dx_narrow_limited(dx_func *f, LLVMValueRef v, dx_type from, dx_type to)
{
    bool is_signed = false;
    LLVMValueRef x = from.bits == 32 && to.bits >= 8 && dx_width(from) <= 2 * LANE
                         ? limited_to(f, v, to.bits, &is_signed) : NULL;
    if (!x)
        return false;
    const dx_reg a = opjit_dx_use(f, x), high = dx_width(from) > LANE ? opjit_dx_high_half(f, a) : a;
    const dx_reg short_ones = words(f, LANE, a, high, to.bits == 8 || is_signed);
    opjit_dx_name(f, v, to.bits == 8 ? bytes(f, LANE, short_ones, short_ones, is_signed) : short_ones);
    return true;
}

/* --- stores side by side ------------------------------------------------------------------------------------------ */

static void put(dx_func *f, dx_reg reg, uint32_t size, dx_mem at)
{
    const uint32_t mem = opjit_dx_mem(f, at);
    dx_op *o = opjit_dx_op(f, DX_PUT);
    o->form = size == BYTES ? DX_F_STORESD : DX_F_STORE;
    o->bytes = (uint8_t)(size < LANE ? LANE : size);
    o->a = reg;
    o->mem = mem;
}

/* Of `count` vectors from `first` on: 1, 2 or 4. */
static void put_together(dx_func *f, const dx_put_off *p, uint32_t first, uint32_t count)
{
    static const int32_t order[] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    const dx_reg *r = p->regs + first;
    dx_mem at = p->at;
    at.offset += (int64_t)first * BYTES;
    dx_reg all = count == 1 ? words(f, LANE, r[0], opjit_dx_high_half(f, r[0]), true)
                            : words(f, 2 * LANE, r[0], r[1], true);
    if (count == 4) {
        all = bytes(f, 2 * LANE, all, words(f, 2 * LANE, r[2], r[3], true), p->is_signed);
        all = opjit_dx_two(f, DX_F_PERMD, 2 * LANE, opjit_dx_vector_constant(f, order, sizeof order), all);
    } else {
        all = bytes(f, LANE, all, count == 2 ? opjit_dx_high_half(f, all) : all, p->is_signed);
    }
    if (count == 2) {
        const dx_reg sorted = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, DX_F_LANES, LANE, sorted, 0, all)->imm = 0xd8; /* 0, 2, 1, 3 */
        all = sorted;
    }
    put(f, all, count * BYTES, at);
}

void opjit_dx_put_now(dx_func *f)
{
    const uint32_t count = f->put_off.count;
    uint32_t at = 0;
    f->put_off.count = 0;
    for (uint32_t each = 4; each > 0; each /= 2)
        for (; at + each <= count; at += each)
            put_together(f, &f->put_off, at, each);
}

bool opjit_dx_put_later(dx_func *f, LLVMValueRef value, dx_mem at)
{
    dx_put_off *p = &f->put_off;
    bool is_signed = false;
    LLVMValueRef x = !f->wide && LLVMIsATruncInst(value) ? LLVMGetOperand(value, 0) : NULL;
    const dx_type from = x ? opjit_dx_type(f, LLVMTypeOf(x)) : (dx_type){ 0 };
    const dx_type to = opjit_dx_type(f, LLVMTypeOf(value));
    x = from.bits == 32 && from.lanes == BYTES && to.bits == 8 ? limited_to(f, value, 8, &is_signed) : NULL;
    if (!x)
        return false;
    const bool follows = p->count > 0 && p->is_signed == is_signed && p->at.where == at.where &&
                         p->at.base == at.base && p->at.index == at.index && p->at.shift == at.shift &&
                         p->at.offset + (int64_t)p->count * BYTES == at.offset;
    if (!follows) {
        opjit_dx_put_now(f);
        *p = (dx_put_off){ .at = at, .is_signed = is_signed };
    }
    p->regs[p->count++] = opjit_dx_use(f, x);
    if (p->count == 4)
        opjit_dx_put_now(f);
    return true;
}
