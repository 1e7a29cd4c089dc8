/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_float.c - floats of 16, 32 and 64 bits as PTX defines them: each operation rounds once, subnormals are kept, and
 * NaNs from arithmetic are the canonical ones (f64: the host's).  16-bit arithmetic uses double, exactly or rounded to
 * odd. */
#include <math.h>
#include <string.h>

#include "tests/machines/ptx_internal.h"

typedef struct format {
    uint32_t bits, mantissa;
    int bias;
    uint64_t nan;
} format;
static const format formats[T_COUNT] = {
    [T_F16] = { 16, 10, 15, 0x7fff },
    [T_F32] = { 32, 23, 127, 0x7fffffff },
    [T_F64] = { 64, 52, 1023, 0x7ff8000000000000 },
};

static float f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

static double f64_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t bits_of_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f ? formats[T_F32].nan : bits;
}

static uint64_t bits_of_f64(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* A float taken apart: (-1)^negative * significand * 2^exponent. */
typedef enum kind { ZERO, FINITE, INFINITE, NOT_A_NUMBER } kind;
typedef struct parts {
    kind kind;
    bool negative;
    uint64_t significand;
    int exponent;
} parts;

static parts take_apart(ptx_type type, uint64_t x)
{
    const format *f = &formats[type];
    const uint32_t field_bits = f->bits - 1 - f->mantissa;
    const uint64_t fraction = x & ((UINT64_C(1) << f->mantissa) - 1),
                   field = x >> f->mantissa & ((1u << field_bits) - 1);
    parts p = { FINITE, (x >> (f->bits - 1) & 1) != 0, fraction, 1 - f->bias - (int)f->mantissa };

    if (field == (1u << field_bits) - 1) {
        p.kind = fraction != 0 ? NOT_A_NUMBER : INFINITE;
    } else if (field != 0) {
        p.significand |= UINT64_C(1) << f->mantissa;
        p.exponent += (int)field - 1;
    } else if (fraction == 0) {
        p.kind = ZERO;
    }
    return p;
}

/* significand / 2^drop as an integer, rounded. */
static uint64_t round_off(uint64_t significand, int drop, bool negative, uint32_t mode)
{
    uint64_t whole, rest, half;

    if (drop <= 0)
        return significand;
    whole = drop < 64 ? significand >> drop : 0;
    half = drop <= 64 ? significand >> (drop - 1) & 1 : 0;
    rest = drop > 64 ? significand : drop == 1 ? 0 : significand << (65 - drop);
    switch (mode) {
    case F_RN:
    case F_RNI: return whole + (half != 0 && (rest != 0 || (whole & 1) != 0));
    case F_RM:
    case F_RMI: return whole + (negative && (half | rest) != 0);
    case F_RP:
    case F_RPI: return whole + (!negative && (half | rest) != 0);
    default: return whole;
    }
}

static uint64_t put_together(ptx_type type, parts p, uint32_t mode)
{
    const format *f = &formats[type];
    const uint64_t sign = (uint64_t)p.negative << (f->bits - 1);
    const uint64_t infinity = ((UINT64_C(1) << (f->bits - 1 - f->mantissa)) - 1) << f->mantissa;

    if (p.kind == NOT_A_NUMBER)
        return f->nan;
    if (p.kind == INFINITE)
        return sign | infinity;
    if (p.kind == ZERO || p.significand == 0)
        return sign;
    const int up = __builtin_clzll(p.significand), top = p.exponent - up + 63, least = 1 - f->bias;
    const int drop = 63 - (int)f->mantissa + (top < least ? least - top : 0);
    const uint64_t whole = round_off(p.significand << up, drop, p.negative, mode);
    const uint64_t field = top < least ? 0 : (uint64_t)(top + f->bias - 1); /* the leading bit adds one */
    if (top <= f->bias) {
        const uint64_t magnitude = (field << f->mantissa) + whole;
        if (magnitude < infinity)
            return sign | magnitude;
    }
    const bool away = mode == F_RN || (mode == F_RM && p.negative) || (mode == F_RP && !p.negative);
    return sign | (infinity - !away);
}

double ptx_half_to_double(uint16_t half)
{
    return f64_of(put_together(T_F64, take_apart(T_F16, half), F_RN));
}
uint16_t ptx_double_to_half(double x, uint32_t mode)
{
    return (uint16_t)put_together(T_F16, take_apart(T_F64, bits_of_f64(x)), mode);
}

/* --- conversions ------------------------------------------------------------------------------------------------- */
static uint64_t float_to_int(ptx_type to, ptx_type from, parts p, uint32_t mode)
{
    const uint32_t bits = 8u * ptx_types[to].size;
    const bool is_signed = ptx_types[to].kind == 's';
    const uint64_t most = is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    uint64_t magnitude = UINT64_MAX;

    if (p.kind == NOT_A_NUMBER)
        return from == T_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    if (p.kind == ZERO)
        return 0;
    if (p.kind == FINITE && p.exponent <= 0)
        magnitude = round_off(p.significand, -p.exponent, p.negative, mode);
    else if (p.kind == FINITE && p.exponent <= __builtin_clzll(p.significand))
        magnitude = p.significand << p.exponent;
    if (!p.negative)
        return magnitude < most ? magnitude : most;
    if (!is_signed)
        return 0;
    return 0 - (magnitude <= most ? magnitude : most + 1);
}

static uint64_t saturate_int(ptx_type to, ptx_type from, uint64_t x)
{
    const uint32_t bits = 8u * ptx_types[to].size;
    const bool to_signed = ptx_types[to].kind == 's', negative = ptx_types[from].kind == 's' && (int64_t)x < 0;
    const uint64_t most = to_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);

    if (!negative)
        return x < most ? x : most;
    if (!to_signed)
        return 0;
    return (int64_t)x < -(int64_t)most - 1 ? ~most : x;
}

static uint64_t saturate_float(ptx_type type, uint64_t x)
{
    const parts p = take_apart(type, x);
    const uint64_t one = (uint64_t)formats[type].bias << formats[type].mantissa;

    if (p.kind == NOT_A_NUMBER || p.negative)
        return 0;
    return x < one ? x : one;
}

/* x is extended from its type already; the result is extended by the sign of a signed type. */
uint64_t ptx_cvt(const ptx_ins *ins, uint64_t x)
{
    const ptx_type to = (ptx_type)ins->type, from = (ptx_type)ins->type2;
    const uint32_t round = ins->flags & F_ROUND, integral = ins->flags & F_INTEGRAL;
    const bool to_float = ptx_types[to].kind == 'f', from_float = ptx_types[from].kind == 'f';
    uint64_t y;

    if (!to_float && !from_float)
        return (ins->flags & F_SAT) != 0 ? saturate_int(to, from, x) : x;
    if (!to_float)
        return float_to_int(to, from, take_apart(from, x), integral);
    if (!from_float) {
        const bool negative = ptx_types[from].kind == 's' && (int64_t)x < 0;
        y = put_together(to, (parts){ x == 0 ? ZERO : FINITE, negative, negative ? 0 - x : x, 0 }, round);
    } else {
        parts p = take_apart(from, x);
        if (integral != 0 && p.kind == FINITE && p.exponent < 0) {
            p.significand = round_off(p.significand, -p.exponent, p.negative, integral);
            p.exponent = 0;
        }
        y = put_together(to, p, round != 0 ? round : F_RN);
    }
    return (ins->flags & F_SAT) != 0 ? saturate_float(to, y) : y;
}

/* --- arithmetic -------------------------------------------------------------------------------------------------- */
static bool is_nan(ptx_type type, uint64_t x)
{
    return take_apart(type, x).kind == NOT_A_NUMBER;
}

/* Order of numbers as integers; -0 below +0. */
static int64_t rank(ptx_type type, uint64_t x)
{
    const uint64_t sign = UINT64_C(1) << (formats[type].bits - 1);

    return (x & sign) != 0 ? -(int64_t)(x & ~sign) - 1 : (int64_t)x;
}

static uint64_t least_or_most(const ptx_ins *ins, ptx_type type, uint64_t a, uint64_t b)
{
    const bool a_nan = is_nan(type, a), b_nan = is_nan(type, b);

    if ((a_nan && b_nan) || ((a_nan || b_nan) && (ins->flags & F_NAN) != 0))
        return formats[type].nan;
    if (a_nan || b_nan)
        return a_nan ? b : a;
    return (rank(type, a) < rank(type, b)) == (ins->op == OP_MIN) ? a : b;
}

uint64_t ptx_float2(const ptx_ins *ins, ptx_type type, uint64_t a, uint64_t b)
{
    const double x = type == T_F64 ? f64_of(a) : type == T_F16 ? ptx_half_to_double((uint16_t)a) : 0;
    const double y = type == T_F64 ? f64_of(b) : type == T_F16 ? ptx_half_to_double((uint16_t)b) : 0;
    double z;

    if (ins->op == OP_MIN || ins->op == OP_MAX)
        return least_or_most(ins, type, a, b);
    if (type == T_F32) {
        const float p = f32_of(a), q = f32_of(b);
        switch (ins->op) {
        case OP_ADD: return bits_of_f32(p + q);
        case OP_SUB: return bits_of_f32(p - q);
        case OP_MUL: return bits_of_f32(p * q);
        default: return bits_of_f32(p / q);
        }
    }
    switch (ins->op) {
    case OP_ADD: z = x + y; break;
    case OP_SUB: z = x - y; break;
    case OP_MUL: z = x * y; break;
    default: z = x / y; break;
    }
    return type == T_F64 ? bits_of_f64(z)
                         : ptx_double_to_half(z, F_RN); /* of halves, sums and products are exact in double */
}

/* a * b + c of halves: the product is exact; the sum is rounded to odd, so that the second rounding sees what the first
 * dropped. */
static uint64_t half_fma(uint64_t a, uint64_t b, uint64_t c)
{
    const double x = ptx_half_to_double((uint16_t)a) * ptx_half_to_double((uint16_t)b),
                 y = ptx_half_to_double((uint16_t)c);
    const double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
    uint64_t bits = bits_of_f64(sum);

    if (error == error && error != 0 && (bits & 1) == 0)
        bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
    return ptx_double_to_half(f64_of(bits), F_RN);
}

uint64_t ptx_float_fma(ptx_type type, uint64_t a, uint64_t b, uint64_t c)
{
    switch (type) {
    case T_F32: return bits_of_f32(fmaf(f32_of(a), f32_of(b), f32_of(c)));
    case T_F64: return bits_of_f64(fma(f64_of(a), f64_of(b), f64_of(c)));
    default: return half_fma(a, b, c);
    }
}

uint64_t ptx_float1(const ptx_ins *ins, ptx_type type, uint64_t a)
{
    const uint64_t sign = UINT64_C(1) << (formats[type].bits - 1);

    switch (ins->op) {
    case OP_NEG: return a ^ sign;
    case OP_ABS: return a & ~sign;
    case OP_SQRT: return type == T_F32 ? bits_of_f32(sqrtf(f32_of(a))) : bits_of_f64(sqrt(f64_of(a)));
    default: return type == T_F32 ? bits_of_f32(1.0f / f32_of(a)) : bits_of_f64(1.0 / f64_of(a));
    }
}

bool ptx_float_compare(ptx_compare compare, ptx_type type, uint64_t a, uint64_t b)
{
    const bool unordered = is_nan(type, a) || is_nan(type, b);
    const bool zeros = take_apart(type, a).kind == ZERO && take_apart(type, b).kind == ZERO;
    const int64_t x = zeros ? 0 : rank(type, a), y = zeros ? 0 : rank(type, b);

    switch (compare) {
    case C_EQ: return !unordered && x == y;
    case C_NE: return !unordered && x != y;
    case C_LT: return !unordered && x < y;
    case C_LE: return !unordered && x <= y;
    case C_GT: return !unordered && x > y;
    case C_GE: return !unordered && x >= y;
    case C_EQU: return unordered || x == y;
    case C_NEU: return unordered || x != y;
    case C_LTU: return unordered || x < y;
    case C_LEU: return unordered || x <= y;
    case C_GTU: return unordered || x > y;
    case C_GEU: return unordered || x >= y;
    case C_NUM: return !unordered;
    default: return unordered;
    }
}

bool ptx_float_is(ptx_sub sub, ptx_type type, uint64_t a)
{
    const parts p = take_apart(type, a);
    const bool normal = p.kind == FINITE && p.significand >> formats[type].mantissa != 0;

    switch (sub) {
    case SUB_FINITE: return p.kind == FINITE || p.kind == ZERO;
    case SUB_INFINITE: return p.kind == INFINITE;
    case SUB_NUMBER: return p.kind != NOT_A_NUMBER;
    case SUB_NOTANUMBER: return p.kind == NOT_A_NUMBER;
    case SUB_NORMAL: return normal;
    default: return p.kind == FINITE && !normal;
    }
}
