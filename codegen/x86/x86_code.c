/* SPDX-License-Identifier: Apache-2.0 */
/* x86_code.c - instructions of x86-64 as bytes. */
#include "codegen/x86/x86_code.h"

#include <string.h>

enum { REX = 0x40, REX_W = 0x48, REX_R = 4, REX_X = 2, REX_B = 1, LONG_NOP = 9 };

/* The fourth bit of a base's number. */
static uint32_t high_base(const x86_mem *mem)
{
    return mem->base == X86_RIP ? 0 : mem->base >> 3;
}

/* The bytes that name REG and memory; unit: what an offset of 8 bits counts; 0: there are none. */
static void put_memory(rt_bytes *out, uint32_t reg, const x86_mem *mem, int32_t unit)
{
    if (mem->base == X86_RIP) {
        opjit_rt_bytes_u8(out, (uint8_t)((reg & 7) << 3 | X86_BP));
        opjit_rt_bytes_u32(out, (uint32_t)mem->offset);
        return;
    }
    const uint32_t base = mem->base & 7, index = mem->index & 7;
    const bool sib = mem->lanes || mem->index != X86_NO_INDEX || base == X86_SP;
    const bool is_short =
        unit > 0 && mem->offset % unit == 0 && mem->offset / unit >= INT8_MIN && mem->offset / unit <= INT8_MAX;
    const uint32_t mode = mem->offset == 0 && base != X86_BP ? 0 : is_short ? 1 : 2;
    opjit_rt_bytes_u8(out, (uint8_t)(mode << 6 | (reg & 7) << 3 | (sib ? 4 : base)));
    if (sib)
        opjit_rt_bytes_u8(out, (uint8_t)(mem->shift << 6 | index << 3 | base));
    if (mode == 1)
        opjit_rt_bytes_u8(out, (uint8_t)(mem->offset / unit));
    else if (mode == 2)
        opjit_rt_bytes_u32(out, (uint32_t)mem->offset);
}

static void put_register(rt_bytes *out, uint32_t reg, uint32_t rm)
{
    opjit_rt_bytes_u8(out, (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7)));
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static void put_avx(rt_bytes *out, const x86_vector *v)
{
    const uint32_t r = v->reg >> 3 ^ 1, x = v->mem ? v->mem->index >> 3 ^ 1 : 1;
    const uint32_t b = (v->mem ? high_base(v->mem) : v->rm >> 3) ^ 1;
    const uint32_t rest = (v->second ^ 15) << 3 | (v->bytes == 32) << 2 | (uint32_t)v->prefix;
    if (v->map == X86_0F && x && b && !v->avx_w) {
        opjit_rt_bytes_u8(out, 0xc5);
        opjit_rt_bytes_u8(out, (uint8_t)(r << 7 | rest));
    } else {
        opjit_rt_bytes_u8(out, 0xc4);
        opjit_rt_bytes_u8(out, (uint8_t)(r << 7 | x << 6 | b << 5 | (uint32_t)v->map));
        opjit_rt_bytes_u8(out, (uint8_t)((uint32_t)v->avx_w << 7 | rest));
    }
}

static void put_avx512(rt_bytes *out, const x86_vector *v)
{
    const uint32_t x = v->mem ? v->mem->index >> 3 & 1 : v->rm >> 4, b = v->mem ? high_base(v->mem) : v->rm >> 3 & 1;
    const uint32_t length = v->bytes == 64 ? 2 : v->bytes == 32;
    const uint32_t high = (v->mem && v->mem->lanes ? v->mem->index : v->second) >> 4 & 1;
    opjit_rt_bytes_u8(out, 0x62);
    opjit_rt_bytes_u8(out, (uint8_t)((~v->reg >> 3 & 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | (~v->reg >> 4 & 1) << 4 |
                                     (uint32_t)v->map));
    opjit_rt_bytes_u8(out, (uint8_t)((uint32_t)v->w << 7 | (~v->second & 15) << 3 | 4 | (uint32_t)v->prefix));
    opjit_rt_bytes_u8(
        out, (uint8_t)((uint32_t)v->zero << 7 | length << 5 | (uint32_t)v->splat << 4 | (high ^ 1) << 3 | v->mask));
}

void opjit_cg_x86_vector(rt_bytes *out, const x86_vector *v)
{
    const bool high = (v->reg | v->second | (v->mem ? 0 : v->rm)) >= 16;
    const bool wide = v->bytes == 64 || high || v->splat || v->mask || v->avx512;
    if (wide)
        put_avx512(out, v);
    else
        put_avx(out, v);
    opjit_rt_bytes_u8(out, v->code);
    if (v->mem)
        put_memory(out, v->reg, v->mem,
                   wide ? (int32_t)(v->splat ? v->w ? sizeof(uint64_t) : sizeof(uint32_t) : v->unit) : 1);
    else
        put_register(out, v->reg, v->rm);
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

void opjit_cg_x86_integer(rt_bytes *out, const x86_integer *i)
{
    static const uint8_t prefixes[] = { [X86_66] = 0x66, [X86_F3] = 0xf3, [X86_F2] = 0xf2 };
    const uint32_t b = i->mem ? high_base(i->mem) : i->rm >> 3, x = i->mem ? i->mem->index >> 3 : 0;
    const uint32_t rex = (i->wide ? REX_W : REX) | (i->reg >> 3) * REX_R | x * REX_X | b;
    if (i->prefix != X86_NP)
        opjit_rt_bytes_u8(out, prefixes[i->prefix]);
    if (rex != REX || i->byte)
        opjit_rt_bytes_u8(out, (uint8_t)rex);
    if (i->map != 0)
        opjit_rt_bytes_u8(out, 0x0f);
    if (i->map >= X86_0F38)
        opjit_rt_bytes_u8(out, i->map == X86_0F38 ? 0x38 : 0x3a);
    opjit_rt_bytes_u8(out, i->code);
    if (i->mem)
        put_memory(out, i->reg, i->mem, 1);
    else
        put_register(out, i->reg, i->rm);
}

void opjit_cg_x86_memory(rt_bytes *out, uint32_t code, uint32_t reg, const x86_mem *mem)
{
    opjit_rt_bytes_u8(out, (uint8_t)(REX_W | (reg >> 3) * REX_R | (mem->index >> 3) * REX_X | (mem->base >> 3)));
    opjit_rt_bytes_u8(out, (uint8_t)code);
    put_memory(out, reg, mem, 1);
}

void opjit_cg_x86_immediate(rt_bytes *out, uint32_t extension, uint32_t reg, int32_t value)
{
    const bool is_short = value >= INT8_MIN && value <= INT8_MAX;
    opjit_rt_bytes_u8(out, (uint8_t)(REX_W | (reg >> 3)));
    opjit_rt_bytes_u8(out, is_short ? 0x83 : 0x81);
    put_register(out, extension, reg);
    if (is_short)
        opjit_rt_bytes_u8(out, (uint8_t)value);
    else
        opjit_rt_bytes_u32(out, (uint32_t)value);
}

void opjit_cg_x86_multiply(rt_bytes *out, uint32_t reg, const x86_mem *mem, int32_t by)
{
    opjit_cg_x86_memory(out, 0x69, reg, mem);
    opjit_rt_bytes_u32(out, (uint32_t)by);
}

void opjit_cg_x86_fetch(rt_bytes *out, const x86_mem *mem, uint32_t cache)
{
    const uint32_t rex = 0x40 | (mem->index >> 3) * REX_X | (mem->base >> 3);
    if (rex != 0x40)
        opjit_rt_bytes_u8(out, (uint8_t)rex);
    opjit_rt_bytes_u8(out, 0x0f);
    opjit_rt_bytes_u8(out, 0x18);
    put_memory(out, cache, mem, 1);
}

static void put_short(rt_bytes *out, uint32_t code, uint32_t reg)
{
    if (reg >= 8)
        opjit_rt_bytes_u8(out, 0x41);
    opjit_rt_bytes_u8(out, (uint8_t)(code | (reg & 7)));
}

void opjit_cg_x86_push(rt_bytes *out, uint32_t reg)
{
    put_short(out, 0x50, reg);
}

void opjit_cg_x86_pop(rt_bytes *out, uint32_t reg)
{
    put_short(out, 0x58, reg);
}

void opjit_cg_x86_align(rt_bytes *out, uint32_t to)
{
    static const uint8_t nops[LONG_NOP][LONG_NOP] = {
        { 0x90 },
        { 0x66, 0x90 },
        { 0x0f, 0x1f, 0x00 },
        { 0x0f, 0x1f, 0x40, 0x00 },
        { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
        { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
        { 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
        { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
        { 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
    };
    while (out->size % to != 0 && !out->failed) {
        const size_t left = to - out->size % to, size = left < LONG_NOP ? left : LONG_NOP;
        opjit_rt_bytes_append(out, nops[size - 1], size);
    }
}

size_t opjit_cg_x86_jump(rt_bytes *out, uint32_t code)
{
    if (code != X86_JUMP)
        opjit_rt_bytes_u8(out, 0x0f);
    opjit_rt_bytes_u8(out, (uint8_t)code);
    opjit_rt_bytes_u32(out, 0);
    return out->size;
}

void opjit_cg_x86_land(rt_bytes *out, size_t jump, size_t at)
{
    const uint32_t distance = (uint32_t)(at - jump);
    for (uint32_t i = 0; i < sizeof distance && !out->failed; i++)
        out->data[jump - sizeof distance + i] = (uint8_t)(distance >> 8 * i);
}
