/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_rows.c - the most common instructions for a whole warp at once, in loops that a compiler vectorises.  Optional:
 * ptx_exec.c executes all of them lane by lane, and tests run both. */
#include <math.h>
#include <string.h>

#include "tests/machines/ptx_internal.h"

#define ROW(expression)                      \
    do {                                     \
        for (uint32_t l = 0; l < LANES; l++) \
            d[l] = (uint64_t)(expression);   \
        return true;                         \
    } while (0)

static float f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f ? 0x7fffffffu : bits;
}

static bool compare(const ptx_ins *ins, uint64_t *d, const uint64_t *a, const uint64_t *b)
{
    const bool is_signed = ptx_types[ins->type2].kind == 's', is_long = ptx_types[ins->type2].size == 8;

    if (ins->dest_count != 1 || ins->sub != SUB_NONE || ptx_types[ins->type2].size < 4 ||
        ptx_types[ins->type2].kind == 'f' || ptx_types[ins->type2].kind == 'x')
        return false;
    switch (ins->compare) {
    case C_EQ: ROW(a[l] == b[l]);
    case C_NE: ROW(a[l] != b[l]);
    case C_LT:
        if (!is_signed)
            ROW(a[l] < b[l]);
        if (is_long)
            ROW((int64_t)a[l] < (int64_t)b[l]);
        ROW((int32_t)(uint32_t)a[l] < (int32_t)(uint32_t)b[l]);
    case C_GE:
        if (!is_signed)
            ROW(a[l] >= b[l]);
        if (is_long)
            ROW((int64_t)a[l] >= (int64_t)b[l]);
        ROW((int32_t)(uint32_t)a[l] >= (int32_t)(uint32_t)b[l]);
    case C_GT:
        if (!is_signed)
            ROW(a[l] > b[l]);
        if (is_long)
            ROW((int64_t)a[l] > (int64_t)b[l]);
        ROW((int32_t)(uint32_t)a[l] > (int32_t)(uint32_t)b[l]);
    default: return false;
    }
}

static bool multiply(const ptx_ins *ins, uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c)
{
    static const uint64_t zeros[LANES];
    const bool is_signed = ptx_types[ins->type].kind == 's';

    if (ins->op == OP_MUL)
        c = zeros;
    if (ptx_types[ins->type].size == 8 && (ins->flags & F_LO) != 0)
        ROW(a[l] * b[l] + c[l]);
    if (ptx_types[ins->type].size != 4)
        return false;
    if ((ins->flags & F_LO) != 0)
        ROW((uint32_t)(a[l] * b[l] + c[l]));
    if ((ins->flags & F_WIDE) == 0)
        return false;
    if (is_signed)
        ROW((uint64_t)((int64_t)(int32_t)(uint32_t)a[l] * (int32_t)(uint32_t)b[l]) + c[l]);
    ROW(a[l] * b[l] + c[l]);
}

static bool floats(const ptx_ins *ins, uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c)
{
    switch (ins->op) {
    case OP_ADD: ROW(bits_of(f32_of(a[l]) + f32_of(b[l])));
    case OP_SUB: ROW(bits_of(f32_of(a[l]) - f32_of(b[l])));
    case OP_MUL: ROW(bits_of(f32_of(a[l]) * f32_of(b[l])));
    case OP_DIV: ROW(bits_of(f32_of(a[l]) / f32_of(b[l])));
    case OP_FMA: ROW(bits_of(fmaf(f32_of(a[l]), f32_of(b[l]), f32_of(c[l]))));
    default: return false;
    }
}

static bool convert(const ptx_ins *ins, uint64_t *d, const uint64_t *a)
{
    if (ins->flags != 0)
        return false;
    if (ins->type2 == T_U32 && ins->type == T_U64)
        ROW((uint32_t)a[l]);
    if (ins->type2 == T_S32 && ins->type == T_S64)
        ROW((int64_t)(int32_t)(uint32_t)a[l]);
    if (ins->type2 == T_U64 && ins->type == T_U32 && ins->dest_size == 4)
        ROW((uint32_t)a[l]);
    return false;
}

bool ptx_compute_rows(const ptx_ins *ins, uint64_t *rows)
{
    const uint64_t *a = rows + (uint64_t)ins->source[0] * LANES, *b = rows + (uint64_t)ins->source[1] * LANES;
    const uint64_t *c = rows + (uint64_t)ins->source[2] * LANES;
    uint64_t *d = rows + (uint64_t)ins->dest[0] * LANES;
    const ptx_type_info type = ptx_types[ins->type];
    const bool integer = (type.kind == 'u' || type.kind == 's') && (ins->flags & F_CC) == 0;

    if (ins->type == T_F32 && ins->type2 == T_NONE && floats(ins, d, a, b, c))
        return true;
    switch (ins->op) {
    case OP_MOV: ROW(a[l]);
    case OP_AND: ROW(a[l] & b[l]);
    case OP_OR: ROW(a[l] | b[l]);
    case OP_XOR: ROW(a[l] ^ b[l]);
    case OP_SELP: ROW(c[l] != 0 ? a[l] : b[l]);
    case OP_SETP: return compare(ins, d, a, b);
    case OP_CVT: return convert(ins, d, a);
    case OP_ADD:
        if (integer && type.size == 8)
            ROW(a[l] + b[l]);
        if (integer && type.size == 4)
            ROW((uint32_t)(a[l] + b[l]));
        return false;
    case OP_SUB:
        if (integer && type.size == 8)
            ROW(a[l] - b[l]);
        if (integer && type.size == 4)
            ROW((uint32_t)(a[l] - b[l]));
        return false;
    case OP_MUL:
    case OP_MAD: return integer && multiply(ins, d, a, b, c);
    case OP_SHL:
        if (type.size == 8)
            ROW((uint32_t)b[l] >= 64 ? 0 : a[l] << (b[l] & 63));
        if (type.size == 4)
            ROW((uint32_t)b[l] >= 32 ? 0 : (uint32_t)(a[l] << (b[l] & 31)));
        return false;
    default: return false;
    }
}
