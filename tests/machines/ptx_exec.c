/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_exec.c - arithmetic: one lane's value from its sources, and the loop over lanes. */
#include <string.h>

#include "tests/machines/ptx_internal.h"

__extension__ typedef __int128 wide_signed;
__extension__ typedef unsigned __int128 wide_unsigned;

static uint64_t low_bytes(uint64_t x, uint32_t size)
{
    return size >= 8 ? x : x & ((UINT64_C(1) << 8 * size) - 1);
}

/* x of type in 64 bits, sign-extended if the type is signed. */
static uint64_t extend(ptx_type type, uint64_t x)
{
    const uint32_t size = ptx_types[type].size, up = size >= 8 ? 0 : 64 - 8 * size;

    if (ptx_types[type].kind == 's')
        return (uint64_t)((int64_t)(x << up) >> up);
    return low_bytes(x, size);
}

static bool is_signed(ptx_type type)
{
    return ptx_types[type].kind == 's';
}

static bool int_compare(ptx_compare compare, ptx_type type, uint64_t a, uint64_t b)
{
    const bool less = is_signed(type) ? (int64_t)a < (int64_t)b : a < b;

    switch (compare) {
    case C_EQ: return a == b;
    case C_NE: return a != b;
    case C_LT:
    case C_LO: return less;
    case C_LE:
    case C_LS: return less || a == b;
    case C_GT:
    case C_HI: return !less && a != b;
    default: return !less;
    }
}

static uint64_t multiply(const ptx_ins *ins, uint64_t a, uint64_t b)
{
    const ptx_type type = (ptx_type)ins->type;
    const uint32_t bits = 8u * ptx_types[type].size;

    if ((ins->flags & F_HI) == 0)
        return a * b;
    if (is_signed(type))
        return (uint64_t)((wide_signed)(int64_t)a * (int64_t)b >> bits);
    return (uint64_t)((wide_unsigned)a * b >> bits);
}

static uint64_t divide(const ptx_ins *ins, uint64_t a, uint64_t b)
{
    const bool quotient = ins->op == OP_DIV;

    if (!is_signed((ptx_type)ins->type))
        return quotient ? a / b : a % b;
    if ((int64_t)b == -1)
        return quotient ? 0 - a : 0;
    return (uint64_t)(quotient ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static uint64_t shift(const ptx_ins *ins, uint64_t a, uint32_t amount)
{
    const ptx_type type = (ptx_type)ins->type;
    const uint32_t bits = 8u * ptx_types[type].size;

    if (ins->op == OP_SHL)
        return amount >= bits ? 0 : a << amount;
    if (is_signed(type))
        return (uint64_t)((int64_t)a >> (amount >= bits ? bits - 1 : amount));
    return amount >= bits ? 0 : a >> amount;
}

static uint32_t funnel(const ptx_ins *ins, uint32_t low, uint32_t high, uint32_t amount)
{
    const uint32_t n = (ins->flags & F_WRAP) != 0 ? amount & 31 : amount < 32 ? amount : 32;
    const uint64_t both = (uint64_t)high << 32 | low;

    return (ins->flags & F_LEFT) != 0 ? (uint32_t)(both << n >> 32) : (uint32_t)(both >> n);
}

static uint64_t reverse(uint64_t x, uint32_t bits)
{
    uint64_t y = 0;

    for (uint32_t i = 0; i < bits; i++)
        y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}

static uint64_t extract(ptx_type type, uint64_t a, uint32_t at, uint32_t length)
{
    const uint32_t bits = 8u * ptx_types[type].size, last = at + length - 1 < bits - 1 ? at + length - 1 : bits - 1;
    const uint64_t sign = is_signed(type) && length != 0 ? a >> last & 1 : 0;
    uint64_t d = 0;

    for (uint32_t i = 0; i < bits; i++)
        d |= (i < length && at + i < bits ? a >> (at + i) & 1 : sign) << i;
    return d;
}

static uint64_t insert(uint32_t bits, uint64_t a, uint64_t b, uint32_t at, uint32_t length)
{
    for (uint32_t i = 0; i < length && at + i < bits; i++)
        b = (b & ~(UINT64_C(1) << (at + i))) | (a >> i & 1) << (at + i);
    return b;
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t selector)
{
    const uint64_t both = b << 32 | a;
    uint64_t d = 0;

    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t s = selector >> 4 * i & 15, byte = both >> 8 * (s & 7) & 255;
        d |= ((s & 8) != 0 ? (byte >> 7 != 0 ? 255u : 0u) : byte) << 8 * i;
    }
    return d;
}

static uint64_t lookup(const uint64_t *s)
{
    uint64_t d = 0;

    for (uint32_t i = 0; i < 32; i++) {
        const uint64_t index = (s[0] >> i & 1) << 2 | (s[1] >> i & 1) << 1 | (s[2] >> i & 1);
        d |= (s[3] >> index & 1) << i;
    }
    return d;
}

/* --- one lane ---------------------------------------------------------------------------------------------------- */
static uint64_t scalar(const ptx_ins *ins, ptx_type type, const uint64_t *s)
{
    const uint32_t bits = 8u * ptx_types[type].size;
    const uint64_t a = extend(type, s[0]), b = extend(type, s[1]);

    switch (ins->op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return multiply(ins, a, b);
    case OP_MAD: return multiply(ins, a, b) + s[2];
    case OP_DIV:
    case OP_REM: return divide(ins, a, b);
    case OP_MIN: return int_compare(C_LT, type, a, b) ? a : b;
    case OP_MAX: return int_compare(C_LT, type, a, b) ? b : a;
    case OP_NEG: return 0 - a;
    case OP_ABS: return (int64_t)a < 0 ? 0 - a : a;
    case OP_AND: return s[0] & s[1];
    case OP_OR: return s[0] | s[1];
    case OP_XOR: return s[0] ^ s[1];
    case OP_NOT: return type == T_PRED ? s[0] ^ 1 : ~s[0];
    case OP_SHL:
    case OP_SHR: return shift(ins, a, (uint32_t)s[1]);
    case OP_SHF: return funnel(ins, (uint32_t)s[0], (uint32_t)s[1], (uint32_t)s[2]);
    case OP_POPC: return (uint64_t)__builtin_popcountll(a);
    case OP_CLZ: return a == 0 ? bits : (uint64_t)__builtin_clzll(a) - (64 - bits);
    case OP_BREV: return reverse(a, bits);
    case OP_BFE: return extract(type, s[0], s[1] & 255, s[2] & 255);
    case OP_BFI: return insert(bits, s[0], s[1], s[2] & 255, s[3] & 255);
    case OP_PRMT: return permute(s[0], s[1], s[2]);
    case OP_LOP3: return lookup(s);
    default: return s[0]; /* mov */
    }
}

static uint64_t scalar_float(const ptx_ins *ins, ptx_type type, const uint64_t *s)
{
    const uint64_t sign = UINT64_C(1) << (8 * ptx_types[type].size - 1);

    switch (ins->op) {
    case OP_FMA: return ptx_float_fma(type, s[0], s[1], s[2]);
    case OP_COPYSIGN: return (s[0] & sign) | (s[1] & ~sign);
    case OP_NEG:
    case OP_ABS:
    case OP_SQRT:
    case OP_RCP: return ptx_float1(ins, type, s[0]);
    default: return ptx_float2(ins, type, s[0], s[1]);
    }
}

static uint64_t typed(const ptx_ins *ins, ptx_type type, const uint64_t *s)
{
    return ptx_types[type].kind == 'f' ? scalar_float(ins, type, s) : scalar(ins, type, s);
}

/* add.rn.f32.f16 and the like: the half operand is first converted. */
static uint64_t mixed(const ptx_ins *ins, const uint64_t *s)
{
    const ptx_ins widen = { .op = OP_CVT, .type = T_F32, .type2 = T_F16 };
    const bool fma = ins->op == OP_FMA;

    return scalar_float(ins, T_F32,
                        (const uint64_t[]){ ptx_cvt(&widen, s[0]), fma ? ptx_cvt(&widen, s[1]) : s[1], s[2] });
}

static ptx_type half_of(ptx_type type)
{
    return type == T_F16X2   ? T_F16
           : type == T_F32X2 ? T_F32
           : type == T_U16X2 ? T_U16
           : type == T_S16X2 ? T_S16
                             : T_NONE;
}

/* Both halves of a packed type, one after the other. */
static uint64_t arithmetic(const ptx_ins *ins, const uint64_t *s)
{
    const ptx_type type = (ptx_type)ins->type, half = half_of(type);
    const uint32_t size = ptx_types[half].size;
    uint64_t low[3] = { 0 }, high[3] = { 0 };

    if (ins->type2 == T_F16 && type == T_F32)
        return mixed(ins, s);
    if (half == T_NONE)
        return typed(ins, type, s);
    for (uint32_t i = 0; i < ins->source_count && i < 3; i++) {
        low[i] = low_bytes(s[i], size);
        high[i] = s[i] >> 8 * size;
    }
    return low_bytes(typed(ins, half, low), size) | low_bytes(typed(ins, half, high), size) << 8 * size;
}

static bool compare(const ptx_ins *ins, ptx_type type, uint64_t a, uint64_t b)
{
    const ptx_compare how = (ptx_compare)ins->compare;

    if (ptx_types[type].kind == 'f')
        return ptx_float_compare(how, type, a, b);
    return int_compare(how, type, extend(type, a), extend(type, b));
}

static bool combine(const ptx_ins *ins, bool x, bool with)
{
    switch (ins->sub) {
    case SUB_AND: return x && with;
    case SUB_OR: return x || with;
    case SUB_XOR: return x != with;
    default: return x;
    }
}

/* --- operations of their own form: out holds the values of the destinations -------------------------------------- */
static void set_predicate(const ptx_ins *ins, const uint64_t *s, uint64_t *out)
{
    const ptx_type type = (ptx_type)ins->type2;
    const bool with = ins->sub != SUB_NONE && s[2] != 0;

    if (type == T_F16X2) {
        out[0] = combine(ins, compare(ins, T_F16, s[0] & 0xffff, s[1] & 0xffff), with);
        out[1] = combine(ins, compare(ins, T_F16, s[0] >> 16, s[1] >> 16), with);
        return;
    }
    const bool holds = compare(ins, type, s[0], s[1]);
    out[0] = combine(ins, holds, with);
    out[1] = combine(ins, !holds, with);
    if (ins->op == OP_SET)
        out[0] = !holds ? 0 : ins->type == T_F32 ? 0x3f800000u : UINT32_MAX;
}

static uint64_t convert(const ptx_ins *ins, const uint64_t *s)
{
    ptx_ins one = *ins;

    if (ins->type != T_F16X2)
        return ptx_cvt(ins, extend((ptx_type)ins->type2, s[0]));
    one.type = T_F16;
    return ptx_cvt(&one, s[0]) << 16 | ptx_cvt(&one, s[1]);
}

static bool chooses_first(const ptx_ins *ins, uint64_t c) /* slct: c >= 0; NaN and -0 ... */
{
    return ins->type2 == T_S32 ? (int32_t)c >= 0 : ptx_float_compare(C_GE, T_F32, c, 0);
}

static void lane(const ptx_ins *ins, const uint64_t *s, uint64_t *out)
{
    const uint32_t piece = 8u * ptx_types[ins->type].size / (ins->vector == 0 ? 1 : ins->vector);
    uint64_t whole = 0;

    switch (ins->op) {
    case OP_SETP:
    case OP_SET: set_predicate(ins, s, out); return;
    case OP_SELP: out[0] = s[2] != 0 ? s[0] : s[1]; return;
    case OP_SLCT: out[0] = chooses_first(ins, s[2]) ? s[0] : s[1]; return;
    case OP_TESTP: out[0] = ptx_float_is((ptx_sub)ins->sub, (ptx_type)ins->type, s[0]); return;
    case OP_MOV: out[0] = s[0]; return;
    case OP_CVT: {
        const uint64_t y = convert(ins, s);
        out[0] = ins->type == T_F16X2 ? y : extend((ptx_type)ins->type, y);
        return;
    }
    case OP_PACK:
        for (uint32_t i = 0; i < ins->vector; i++)
            whole |= s[i] << i * piece;
        out[0] = whole;
        return;
    case OP_UNPACK:
        for (uint32_t i = 0; i < ins->vector; i++)
            out[i] = low_bytes(s[0] >> i * piece, piece / 8);
        return;
    case OP_MIN:
    case OP_MAX:
        out[0] = arithmetic(ins, s);
        if (ins->source_count == 3)
            out[0] = arithmetic(ins, (const uint64_t[]){ low_bytes(out[0], ptx_types[ins->type].size), s[2], 0 });
        return;
    default: out[0] = arithmetic(ins, s); return;
    }
}

/* add.cc, addc, sub.cc, subc: with the carry's row. */
static uint64_t with_carry(const ptx_ins *ins, const uint64_t *s, uint64_t *carry)
{
    const uint32_t size = ptx_types[ins->type].size;
    const bool add = ins->op == OP_ADD || ins->op == OP_ADDC;
    const uint64_t in = ins->op == OP_ADDC || ins->op == OP_SUBC ? *carry & 1 : 0, a = low_bytes(s[0], size),
                   b = low_bytes(s[1], size);
    const wide_unsigned sum = (wide_unsigned)a + b + in;
    const bool out = add ? sum >> 8 * size != 0 : (wide_unsigned)b + in > a;

    if ((ins->flags & F_CC) != 0)
        *carry = out;
    return add ? (uint64_t)sum : a - b - in;
}

static bool wide_move(ptx_warp *w, const ptx_ins *ins, uint64_t *row, uint32_t mask) /* of 128 bits: two rows */
{
    const uint64_t *from = row + (uint64_t)ins->source[0] * LANES, *second = from + LANES;
    uint64_t *to = row + (uint64_t)ins->dest[0] * LANES, *last = to + LANES;

    (void)w;
    if (ins->op == OP_PACK)
        second = row + (uint64_t)ins->source[1] * LANES;
    if (ins->op == OP_UNPACK)
        last = row + (uint64_t)ins->dest[1] * LANES;
    FOR_LANES (l, mask) {
        const uint64_t low = from[l], high = second[l];
        to[l] = low;
        last[l] = high;
    }
    return true;
}

bool ptx_compute(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    uint64_t *rows = w->regs + (uint64_t)base * LANES, *carry = rows + SLOT_CARRY * LANES;
    const bool carries = (ins->flags & F_CC) != 0 || ins->op == OP_ADDC || ins->op == OP_SUBC;
    const bool divides = (ins->op == OP_DIV || ins->op == OP_REM) && ptx_types[ins->type].kind != 'f';
    const uint32_t dest_bytes = ins->dest_size == 0 ? 8 : ins->dest_size;
    uint64_t s[MOST_SOURCES] = { 0 }, out[MOST_VECTOR] = { 0 };

    if (ins->type == T_B128)
        return wide_move(w, ins, rows, mask);
    if (mask == UINT32_MAX && ptx_compute_rows(ins, rows))
        return true;
    FOR_LANES (l, mask) {
        for (uint32_t i = 0; i < ins->source_count; i++)
            s[i] = rows[(uint64_t)ins->source[i] * LANES + l];
        if (divides && low_bytes(s[1], ptx_types[ins->type].size) == 0)
            return ptx_fault(r, w, ins, l, "division by zero");
        if (ins->op == OP_ACTIVEMASK)
            out[0] = mask;
        else if (carries)
            out[0] = with_carry(ins, s, &carry[l]);
        else
            lane(ins, s, out);
        for (uint32_t i = 0; i < ins->dest_count; i++)
            rows[(uint64_t)ins->dest[i] * LANES + l] = low_bytes(out[i], dest_bytes);
    }
    return true;
}
