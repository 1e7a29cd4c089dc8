/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_shuffle.c - shuffles with AVX2, whose instructions mostly stay within 16 bytes: those that up to four of them
 * make, else two of any kind for each vector, which are put together. */
#include "codegen/direct.h"

#include <string.h>

enum { LANE = 16, MOST = 32 /* bytes of a vector */ };

/* Units of `size` bytes: unit i is at[i] of x's and y's, counted through both; -1: any. */
typedef struct units {
    int32_t at[MOST];
    uint32_t size, count, own; /* own: of x */
} units;

/* --- what a shuffle is -------------------------------------------------------------------------------------------- */

/* The same in units of twice the size, if they move in pairs. */
static bool pairs(const units *u, units *out)
{
    *out = (units){ .size = 2 * u->size, .count = u->count / 2, .own = u->own / 2 };
    if (u->count % 2 != 0 || u->own % 2 != 0 || out->size > LANE)
        return false;
    for (uint32_t i = 0; i < out->count; i++) {
        const int32_t a = u->at[2 * i], b = u->at[2 * i + 1];
        if ((a >= 0 && (a % 2 != 0 || (b >= 0 && b != a + 1))) || (b >= 0 && b % 2 != 1))
            return false;
        out->at[i] = a >= 0 ? a / 2 : b >= 0 ? b / 2 : -1;
    }
    return true;
}

static bool is_at(const units *u, uint32_t i, uint32_t place)
{
    return u->at[i] < 0 || u->at[i] == (int32_t)place;
}

/* The lower or upper half of each 16 bytes of x, and of y, one after the other. */
static bool is_unpack(const units *u, bool high)
{
    const uint32_t each = LANE / u->size;
    for (uint32_t i = 0; i < u->count; i++) {
        const uint32_t begin = i / each * each, k = i % each;
        if (!is_at(u, i, begin + (high ? each / 2 : 0) + k / 2 + (k % 2 ? u->own : 0)))
            return false;
    }
    return true;
}

/* Units of 4 bytes that stay within 16 bytes, at the same places in each; *imm: the instruction's number. */
static bool is_within(const units *u, uint32_t *imm)
{
    int32_t at[4] = { -1, -1, -1, -1 };
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->at[i] < 0)
            continue;
        const int32_t place = u->at[i] % 4;
        if ((uint32_t)u->at[i] / 4 != i / 4 || (at[i % 4] >= 0 && at[i % 4] != place))
            return false;
        at[i % 4] = place;
    }
    *imm = 0;
    for (uint32_t k = 0; k < 4; k++)
        *imm |= (uint32_t)(at[k] < 0 ? 0 : at[k]) << 2 * k;
    return true;
}

/* Each unit of 4 bytes stays where it is; *imm: those of y. */
static bool is_blend(const units *u, uint32_t *imm)
{
    *imm = 0;
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->at[i] < 0)
            continue;
        if ((uint32_t)u->at[i] % u->own != i)
            return false;
        *imm |= (uint32_t)((uint32_t)u->at[i] >= u->own) << i;
    }
    return true;
}

/* Pairs of 4 bytes, each out of one vector's 16 bytes: all of x with the same places, all of y, too.  *imm: of the
 * instruction that makes them, x's below y's in each 16 bytes; *order: of the one that puts them where they belong. */
static bool is_pairs(const units *u, uint32_t *imm, uint32_t *order)
{
    int32_t at[4] = { -1, -1, -1, -1 };
    *imm = *order = 0;
    for (uint32_t p = 0; p < u->count / 2; p++) {
        int32_t from = -1; /* 16 bytes of x or y */
        for (uint32_t k = 0; k < 2; k++) {
            const int32_t place = u->at[2 * p + k];
            if (place < 0)
                continue;
            const bool y = (uint32_t)place >= u->own;
            const int32_t lane = (place - (y ? (int32_t)u->own : 0)) / 4 * 2 + y;
            if (from >= 0 && from != lane)
                return false;
            from = lane;
            int32_t *own = &at[2 * y + k];
            if (*own >= 0 && *own != place % 4)
                return false;
            *own = place % 4;
        }
        *order |= (uint32_t)(from < 0 ? (int32_t)p : from) << 2 * p;
    }
    for (uint32_t k = 0; k < 4; k++)
        *imm |= (uint32_t)(at[k] < 0 ? 0 : at[k]) << 2 * k;
    return true;
}

/* The lower or upper halves of x and y, in turns. */
static bool is_interleaved(const units *u, bool high)
{
    for (uint32_t i = 0; i < u->count; i++)
        if (!is_at(u, i, (high ? u->count / 2 : 0) + i / 2 + (i % 2 ? u->own : 0)))
            return false;
    return true;
}

/* Each 8 bytes out of other 16 bytes of x or y: as every second element is.  *order: of x's first and second 16 bytes
 * and y's, in turns. */
static bool is_quarters(const units *u, uint32_t *order)
{
    const uint32_t each = u->count / 4;
    uint32_t taken = 0;
    *order = 0;
    for (uint32_t q = 0; q < 4; q++) {
        const int32_t first = u->at[q * each];
        if (first < 0)
            return false;
        const uint32_t y = (uint32_t)first >= u->own, half = ((uint32_t)first - y * u->own) / (2 * each);
        for (uint32_t i = 1; i < each; i++)
            if (u->at[q * each + i] >= 0 && (uint32_t)u->at[q * each + i] / (2 * each) != (uint32_t)first / (2 * each))
                return false;
        *order |= (2 * half + y) << 2 * q;
        taken |= 1u << (2 * half + y);
    }
    return taken == 0xf;
}

/* --- one vector --------------------------------------------------------------------------------------------------- */

/* Bytes by places: of this half of u, those out of 16 bytes of the same number, or of the other one. */
static dx_reg bytes_of(dx_func *f, const units *u, dx_reg x, uint32_t first, bool crossed, uint32_t width)
{
    uint8_t places[MOST];
    for (uint32_t i = 0; i < width; i++) {
        const uint32_t k = i / u->size;
        const int32_t at = k < u->count ? u->at[k] : -1;
        const int32_t byte = at < 0 ? -1 : (at - (int32_t)first) * (int32_t)u->size + (int32_t)(i % u->size);
        const bool here = at >= (int32_t)first && at < (int32_t)(first + u->own) &&
                          ((uint32_t)byte / LANE != i / LANE) == crossed;
        places[i] = here ? (uint8_t)(byte % LANE) : 0x80;
    }
    return opjit_dx_two(f, DX_F_PSHUFB, width, x, opjit_dx_vector_constant(f, places, width));
}

static bool crosses(const units *u, uint32_t first)
{
    const uint32_t each = LANE / u->size;
    for (uint32_t i = 0; i < u->count; i++)
        if (u->at[i] >= (int32_t)first && u->at[i] < (int32_t)(first + u->own) &&
            ((uint32_t)u->at[i] - first) / each != i / each)
            return true;
    return false;
}

/* By bytes: of each vector those that stay within 16 bytes, and those that do not. */
static dx_reg by_bytes(dx_func *f, const units *u, dx_reg x, dx_reg y, uint32_t width)
{
    dx_reg all = 0;
    for (uint32_t k = 0; k < (y ? 2u : 1u); k++) {
        const dx_reg own = k == 0 ? x : y;
        dx_reg part = bytes_of(f, u, own, k * u->own, false, width);
        all = all ? opjit_dx_two(f, DX_F_POR, width, all, part) : part;
        if (width == LANE || !crosses(u, k * u->own))
            continue;
        const dx_reg turned = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, DX_F_PERMQI, width, turned, 0, own)->imm = 0x4e;
        part = bytes_of(f, u, turned, k * u->own, true, width);
        all = opjit_dx_two(f, DX_F_POR, width, all, part);
    }
    return all;
}

/* Units of 4 bytes of one vector. */
static dx_reg of_one(dx_func *f, const units *u, dx_reg x, uint32_t width)
{
    uint32_t imm = 0;
    units wide;
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    if (is_within(u, &imm)) {
        opjit_dx_vector(f, DX_F_LANES, width, dst, 0, x)->imm = imm;
        return dst;
    }
    if (pairs(u, &wide)) {
        for (uint32_t i = 0; i < wide.count; i++)
            imm |= (uint32_t)(wide.at[i] < 0 ? (int32_t)i : wide.at[i]) << 2 * i;
        opjit_dx_vector(f, DX_F_PERMQI, width, dst, 0, x)->imm = imm;
        return dst;
    }
    int32_t places[MOST / 4] = { 0 };
    for (uint32_t i = 0; i < u->count; i++)
        places[i] = u->at[i] < 0 ? 0 : u->at[i];
    opjit_dx_vector(f, DX_F_PERMD, width, dst, opjit_dx_vector_constant(f, places, width), x);
    return dst;
}

/* Of quarters: of x's or y's 16 bytes those that are taken, in their lower halves. */
static dx_reg taken(dx_func *f, const units *u, dx_reg x, uint32_t first, uint32_t width)
{
    const uint32_t each = u->count / 4;
    uint8_t places[MOST];
    memset(places, 0x80, sizeof places);
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->at[i] < (int32_t)first || u->at[i] >= (int32_t)(first + u->own))
            continue;
        const uint32_t at = (uint32_t)u->at[i] - first, to = at / (2 * each) * LANE + i % each * u->size;
        for (uint32_t b = 0; b < u->size; b++)
            places[to + b] = (uint8_t)(at % (2 * each) * u->size + b);
    }
    return opjit_dx_two(f, DX_F_PSHUFB, width, x, opjit_dx_vector_constant(f, places, width));
}

/* --- two vectors -------------------------------------------------------------------------------------------------- */

/* One instruction, of units of any size; 0: there is none. */
static dx_reg unpacked(dx_func *f, const units *u, dx_reg x, dx_reg y, uint32_t width)
{
    static const dx_form_name low[] = { DX_F_UNPACKLB, DX_F_UNPACKLW, DX_F_UNPACKLD, DX_F_UNPACKLQ };
    static const dx_form_name high[] = { DX_F_UNPACKHB, DX_F_UNPACKHW, DX_F_UNPACKHD, DX_F_UNPACKHQ };
    const uint32_t size = dx_size(8 * u->size);
    if (u->size < LANE && is_unpack(u, false))
        return opjit_dx_two(f, low[size], width, x, y);
    if (u->size < LANE && is_unpack(u, true))
        return opjit_dx_two(f, high[size], width, x, y);
    if (u->size < LANE || width == LANE)
        return 0;
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    const uint32_t first = u->at[0] < 0 ? 0 : (uint32_t)u->at[0], second = u->at[1] < 0 ? 0 : (uint32_t)u->at[1];
    opjit_dx_vector(f, DX_F_PERM2I128, width, dst, x, y)->imm = first | second << 4;
    return dst;
}

/* Of 32 bytes: halves in turns, or quarters; 0: neither. */
static dx_reg mixed(dx_func *f, const units *u, dx_reg x, dx_reg y)
{
    static const dx_form_name low[] = { DX_F_UNPACKLB, DX_F_UNPACKLW, DX_F_UNPACKLD, DX_F_UNPACKLQ };
    static const dx_form_name high[] = { DX_F_UNPACKHB, DX_F_UNPACKHW, DX_F_UNPACKHD, DX_F_UNPACKHQ };
    const uint32_t size = dx_size(8 * u->size), width = 2 * LANE;
    const bool upper = u->size < LANE && is_interleaved(u, true);
    uint32_t order;
    if (upper || (u->size < LANE && is_interleaved(u, false))) {
        const dx_reg a = opjit_dx_two(f, low[size], width, x, y), b = opjit_dx_two(f, high[size], width, x, y);
        const dx_reg dst = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, DX_F_PERM2I128, width, dst, a, b)->imm = upper ? 0x31 : 0x20;
        return dst;
    }
    if (u->size >= 4 || !is_quarters(u, &order))
        return 0;
    const dx_reg a = taken(f, u, x, 0, width), b = taken(f, u, y, u->own, width);
    const dx_reg both = opjit_dx_two(f, DX_F_UNPACKLQ, width, a, b), dst = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_PERMQI, width, dst, 0, both)->imm = order;
    return dst;
}

/* Units of 4 bytes. */
static dx_reg of_two(dx_func *f, const units *u, dx_reg x, dx_reg y, uint32_t width)
{
    uint32_t imm = 0, order = 0, mask = 0;
    units own[2] = { *u, *u };
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    if (is_blend(u, &imm)) {
        opjit_dx_vector(f, DX_F_PBLENDD, width, dst, x, y)->imm = imm;
        return dst;
    }
    if (is_pairs(u, &imm, &order)) {
        opjit_dx_vector(f, DX_F_SHUFPS, width, dst, x, y)->imm = imm;
        if (width == LANE ? order == 4 : order == 0xe4)
            return dst;
        const dx_reg sorted = opjit_dx_new(f, DX_VEC);
        if (width == LANE)
            opjit_dx_vector(f, DX_F_LANES, width, sorted, 0, dst)->imm =
                (order & 3 ? 0x0e : 0x04) | (order >> 2 & 3 ? 0xe0 : 0x40);
        else
            opjit_dx_vector(f, DX_F_PERMQI, width, sorted, 0, dst)->imm = order;
        return sorted;
    }
    for (uint32_t i = 0; i < u->count; i++) { /* each by itself, then put together */
        const bool y_has = u->at[i] >= (int32_t)u->own;
        own[0].at[i] = y_has ? -1 : u->at[i];
        own[1].at[i] = y_has ? u->at[i] - (int32_t)u->own : -1;
        mask |= (uint32_t)y_has << i;
    }
    const dx_reg a = of_one(f, &own[0], x, width), b = of_one(f, &own[1], y, width);
    opjit_dx_vector(f, DX_F_PBLENDD, width, dst, a, b)->imm = mask;
    return dst;
}

/* Two vectors of at most 16 bytes as one of 32, where the result has as many. */
static dx_reg joined(dx_func *f, units *u, dx_reg x, dx_reg y)
{
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    const uint32_t each = LANE / u->size;
    opjit_dx_vector(f, DX_F_VPUTHIGH128, 2 * LANE, dst, x, y)->imm = 1;
    for (uint32_t i = 0; i < u->count; i++)
        if (u->at[i] >= (int32_t)u->own)
            u->at[i] += (int32_t)(each - u->own);
    u->own = 2 * each;
    return dst;
}

/* The same in units of half the size. */
static void halve(units *u)
{
    for (uint32_t i = u->count; i-- > 0;) {
        u->at[2 * i + 1] = u->at[i] < 0 ? -1 : 2 * u->at[i] + 1;
        u->at[2 * i] = u->at[i] < 0 ? -1 : 2 * u->at[i];
    }
    u->size /= 2;
    u->count *= 2;
    u->own *= 2;
}

dx_reg opjit_dx_narrow_shuffle(dx_func *f, dx_type t, dx_reg x, dx_reg y, dx_type from, const int32_t *at)
{
    units u = { .size = t.bits / 8, .count = t.lanes, .own = from.lanes }, other;
    const uint32_t width = dx_width(t) > dx_width(from) ? dx_width(t) : dx_width(from);
    if (t.bits < 8 || dx_bytes(t) > MOST || dx_bytes(from) > MOST) {
        opjit_dx_refuse(f, "shuffle");
        return 0;
    }
    f->vectors = f->vectors || width > LANE;
    memcpy(u.at, at, t.lanes * sizeof *at);
    if (y && width > dx_width(from)) {
        x = joined(f, &u, x, y);
        y = 0;
    }
    for (uint32_t i = 0; i < MOST / u.size; i++) /* in whole registers */
        if (i >= u.count)
            u.at[i] = -1;
        else if (y && u.at[i] >= (int32_t)u.own)
            u.at[i] += (int32_t)(width / u.size - u.own);
    u.count = u.own = width / u.size;
    dx_reg made = 0;
    bool more = y != 0;
    for (units k = u; more && !made; k = other) {
        made = unpacked(f, &k, x, y, width);
        made = made || width == LANE ? made : mixed(f, &k, x, y);
        more = pairs(&k, &other);
    }
    while (!made && u.size < 4 && pairs(&u, &other))
        u = other;
    if (u.size == 8)
        halve(&u);
    if (made)
        return made;
    if (u.size < 4)
        return by_bytes(f, &u, x, y, width);
    return y ? of_two(f, &u, x, y, width) : of_one(f, &u, x, width);
}
