/* SPDX-License-Identifier: Apache-2.0 */
/* write_integer.c - operations on integers as instructions. */
#include "codegen/direct/machine.h"

enum { SCRATCH = X86_AX, OTHER = 10, KEPT = 11 };

static bool is_byte(int64_t number)
{
    return number >= INT8_MIN && number <= INT8_MAX;
}

static void put_number(dx_writer *w, const dx_op *o)
{
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
    if (o->imm == 0) {
        const dx_spot self = { .reg = reg };
        opjit_dx_integer(w, (x86_integer){ .code = 0x33, .reg = reg }, &self, 0);
    } else if (o->imm > 0 && o->imm <= UINT32_MAX) {
        if (reg >= 8)
            opjit_rt_bytes_u8(w->out, 0x41);
        opjit_rt_bytes_u8(w->out, (uint8_t)(0xb8 | (reg & 7)));
        opjit_rt_bytes_u32(w->out, (uint32_t)o->imm);
    } else if (o->imm >= INT32_MIN && o->imm <= INT32_MAX) {
        const dx_spot self = { .reg = reg };
        opjit_dx_integer(w, (x86_integer){ .code = 0xc7, .wide = true }, &self, 0);
        opjit_rt_bytes_u32(w->out, (uint32_t)o->imm);
    } else {
        opjit_rt_bytes_u8(w->out, (uint8_t)(0x48 | (reg >= 8)));
        opjit_rt_bytes_u8(w->out, (uint8_t)(0xb8 | (reg & 7)));
        opjit_rt_bytes_u64(w->out, (uint64_t)o->imm);
    }
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_lea(dx_writer *w, const dx_op *o)
{
    const dx_mem *mem = &w->f->mems[o->mem - 1];
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
    const dx_spot spot = opjit_dx_spot_of(w, mem), to = { .reg = reg };
    if (mem->where == DX_AT_REGISTER && !mem->index && mem->offset == 0) {
        const dx_spot from = { .reg = spot.mem.base };
        opjit_dx_move(w, DX_INT, &to, &from);
    } else {
        opjit_dx_integer(w, (x86_integer){ .code = 0x8d, .wide = true, .reg = reg }, &spot, 0);
    }
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_load(dx_writer *w, const dx_op *o)
{
    const dx_spot spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
    x86_integer i = { .code = 0x8b, .wide = o->bytes == 8, .reg = reg };
    if (o->bytes < 4) {
        i.map = X86_0F;
        i.code = o->bytes == 2 ? 0xb7 : 0xb6;
    }
    opjit_dx_integer(w, i, &spot, 0);
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_store(dx_writer *w, const dx_op *o)
{
    const dx_spot spot = opjit_dx_spot_of(w, &w->f->mems[o->mem - 1]);
    x86_integer i = { .prefix = o->bytes == 2 ? X86_66 : X86_NP, .wide = o->bytes == 8 };
    if (o->a) {
        i.reg = opjit_dx_in(w, o->a, SCRATCH);
        i.code = o->bytes == 1 ? 0x88 : 0x89;
        i.byte = o->bytes == 1;
        opjit_dx_integer(w, i, &spot, 0);
        return;
    }
    const uint32_t size = o->bytes < 4 ? o->bytes : 4;
    i.code = o->bytes == 1 ? 0xc6 : 0xc7;
    opjit_dx_integer(w, i, &spot, size);
    for (uint32_t k = 0; k < size; k++)
        opjit_rt_bytes_u8(w->out, (uint8_t)((uint64_t)o->imm >> 8 * k));
}

/* dst = dst op b, or a number. */
static void put_arith(dx_writer *w, const dx_op *o)
{
    const uint32_t reg = opjit_dx_in(w, o->dst, SCRATCH);
    const dx_spot self = { .reg = reg };
    if (o->b) {
        const dx_spot b = opjit_dx_spot(w, o->b);
        opjit_dx_integer(w, (x86_integer){ .code = o->code, .wide = o->bytes == 8, .reg = reg }, &b, 0);
    } else {
        const bool is_short = is_byte(o->imm);
        opjit_dx_integer(
            w, (x86_integer){ .code = is_short ? 0x83 : 0x81, .wide = o->bytes == 8, .reg = o->code >> 3u }, &self, 0);
        if (is_short)
            opjit_rt_bytes_u8(w->out, (uint8_t)o->imm);
        else
            opjit_rt_bytes_u32(w->out, (uint32_t)o->imm);
    }
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_multiply(dx_writer *w, const dx_op *o)
{
    const dx_spot b = opjit_dx_spot(w, o->b);
    if (o->kind == DX_TIMES) {
        const uint32_t reg = opjit_dx_in(w, o->dst, SCRATCH);
        opjit_dx_integer(w, (x86_integer){ .map = X86_0F, .code = 0xaf, .wide = o->bytes == 8, .reg = reg }, &b, 0);
        opjit_dx_put_back(w, o->dst, reg);
        return;
    }
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
    const bool is_short = is_byte(o->imm);
    opjit_dx_integer(w, (x86_integer){ .code = is_short ? 0x6b : 0x69, .wide = o->bytes == 8, .reg = reg }, &b, 0);
    if (is_short)
        opjit_rt_bytes_u8(w->out, (uint8_t)o->imm);
    else
        opjit_rt_bytes_u32(w->out, (uint32_t)o->imm);
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_shift(dx_writer *w, const dx_op *o)
{
    if (o->kind == DX_SHIFT) {
        const uint32_t reg = opjit_dx_in(w, o->dst, SCRATCH);
        const dx_spot self = { .reg = reg };
        opjit_dx_integer(w, (x86_integer){ .code = 0xc1, .wide = o->bytes == 8, .reg = o->code }, &self, 0);
        opjit_rt_bytes_u8(w->out, (uint8_t)o->imm);
        opjit_dx_put_back(w, o->dst, reg);
        return;
    }
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH), by = opjit_dx_in(w, o->a, OTHER);
    const uint32_t b = opjit_dx_in(w, o->b, SCRATCH);
    const x86_vector v = { .map = X86_0F38,
                           .prefix = (x86_prefix)o->code,
                           .code = 0xf7,
                           .bytes = 16,
                           .reg = reg,
                           .second = by,
                           .rm = b,
                           .avx_w = o->bytes == 8 };
    opjit_cg_x86_vector(w->out, &v);
    opjit_dx_put_back(w, o->dst, reg);
}

/* The numerator and both results have registers of their own, AX and DX; DX is put back. */
static void put_divide(dx_writer *w, const dx_op *o)
{
    static const uint8_t sign_64[] = { 0x48, 0x99 }, sign_32[] = { 0x99 };
    const bool wide = o->bytes == 8, is_signed = (o->code & 1) != 0;
    const dx_spot a = opjit_dx_spot(w, o->b), b = opjit_dx_spot(w, o->a);
    const dx_spot numerator = { .reg = SCRATCH }, upper = { .reg = X86_DX }, by = { .reg = OTHER };
    const dx_spot kept = { .reg = KEPT };
    opjit_dx_move(w, DX_INT, &by, &b);
    opjit_dx_move(w, DX_INT, &numerator, &a);
    opjit_dx_move(w, DX_INT, &kept, &upper);
    if (is_signed)
        opjit_rt_bytes_append(w->out, wide ? sign_64 : sign_32, wide ? sizeof sign_64 : sizeof sign_32);
    else
        opjit_dx_integer(w, (x86_integer){ .code = 0x33, .reg = X86_DX }, &upper, 0);
    opjit_dx_integer(w, (x86_integer){ .code = 0xf7, .wide = wide, .reg = is_signed ? 7 : 6 }, &by, 0);
    if (o->code & 2)
        opjit_dx_move(w, DX_INT, &numerator, &upper);
    opjit_dx_move(w, DX_INT, &upper, &kept);
    const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
    const dx_spot to = { .reg = reg };
    opjit_dx_move(w, DX_INT, &to, &numerator);
    opjit_dx_put_back(w, o->dst, reg);
}

static void put_extend(dx_writer *w, const dx_op *o)
{
    const uint32_t b = opjit_dx_in(w, o->b, SCRATCH), reg = opjit_dx_out(w, o->dst, SCRATCH);
    const dx_spot from = { .reg = b };
    x86_integer i = { .reg = reg, .wide = o->code != 0 };
    if (o->bytes == 4) {
        i.code = o->code ? 0x63 : 0x8b;
    } else {
        i.map = X86_0F;
        i.code = (uint8_t)((o->code ? 0xbe : 0xb6) + (o->bytes == 2));
        i.byte = o->bytes == 1;
    }
    opjit_dx_integer(w, i, &from, 0);
    opjit_dx_put_back(w, o->dst, reg);
}

/* The flags of a - b, or a - imm. */
static void put_compare(dx_writer *w, const dx_op *o)
{
    const uint32_t a = opjit_dx_in(w, o->a, SCRATCH);
    const bool byte = o->bytes == 1;
    const dx_spot self = { .reg = a };
    x86_integer i = { .prefix = o->bytes == 2 ? X86_66 : X86_NP, .wide = o->bytes == 8, .reg = a, .byte = byte };
    if (o->b) {
        const dx_spot b = opjit_dx_spot(w, o->b);
        i.code = byte ? 0x3a : 0x3b;
        opjit_dx_integer(w, i, &b, 0);
    } else if (o->imm == 0) {
        i.code = byte ? 0x84 : 0x85;
        opjit_dx_integer(w, i, &self, 0);
    } else {
        const bool is_short = byte || is_byte(o->imm);
        const uint32_t size = is_short ? 1 : o->bytes == 2 ? 2 : 4;
        i.code = byte ? 0x80 : is_short ? 0x83 : 0x81;
        i.reg = 7;
        opjit_dx_integer(w, i, &self, size);
        for (uint32_t k = 0; k < size; k++)
            opjit_rt_bytes_u8(w->out, (uint8_t)((uint64_t)o->imm >> 8 * k));
    }
}

static void put_choice(dx_writer *w, const dx_op *o)
{
    put_compare(w, o);
    if (o->kind == DX_BRANCH)
        return;
    if (o->kind == DX_SET) {
        const uint32_t reg = opjit_dx_out(w, o->dst, SCRATCH);
        const dx_spot self = { .reg = reg };
        opjit_dx_integer(w, (x86_integer){ .map = X86_0F, .code = (uint8_t)(0x90 + o->cc), .byte = true }, &self, 0);
        opjit_dx_integer(w, (x86_integer){ .map = X86_0F, .code = 0xb6, .byte = true, .reg = reg }, &self, 0);
        opjit_dx_put_back(w, o->dst, reg);
        return;
    }
    const uint32_t reg = opjit_dx_in(w, o->dst, SCRATCH);
    const dx_spot c = opjit_dx_spot(w, o->c);
    opjit_dx_integer(w, (x86_integer){ .map = X86_0F, .code = (uint8_t)(0x40 + o->cc), .wide = true, .reg = reg }, &c,
                     0);
    opjit_dx_put_back(w, o->dst, reg);
}

void opjit_dx_write_integer(dx_writer *w, const dx_op *o)
{
    switch (o->kind) {
    case DX_NUMBER: put_number(w, o); break;
    case DX_LEA: put_lea(w, o); break;
    case DX_LOAD: put_load(w, o); break;
    case DX_STORE: put_store(w, o); break;
    case DX_ARITH: put_arith(w, o); break;
    case DX_MULTIPLY:
    case DX_TIMES: put_multiply(w, o); break;
    case DX_DIVIDE: put_divide(w, o); break;
    case DX_SHIFT:
    case DX_SHIFT_BY: put_shift(w, o); break;
    case DX_EXTEND: put_extend(w, o); break;
    default: put_choice(w, o); break;
    }
}
