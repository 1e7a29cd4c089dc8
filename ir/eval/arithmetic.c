/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.c - the meaning of every op on values, apart from functions of mathematics, which are sequences of these
 * ops: total, bit exact, and what every target must compute.
 *
 * Values are bits as in CONST: zero-extended to 64.  f16 arithmetic is done in f32 and rounded once, which gives the
 * correctly rounded f16 result for + - * / sqrt (24 >= 2 * 11 + 2); fma and scale are treated separately.  Needs the
 * default floating-point environment and no contraction. */
#include "ir/eval/arithmetic.h"

#include <math.h>
#include <string.h>

/* --- bits and floats ---------------------------------------------------------------------------------------------- */

static float f32_of(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float x;
    memcpy(&x, &word, sizeof(x));
    return x;
}

static double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t bits_of_f32(float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof(word));
    return word;
}

static uint64_t bits_of_f64(double x)
{
    uint64_t word;
    memcpy(&word, &x, sizeof(word));
    return word;
}

/* Rounds a number to f16, given its sign, its exponent, and its significand with `fraction` fraction bits. */
static uint16_t round_to_f16(uint32_t sign, int32_t exponent, uint64_t significand, uint32_t fraction)
{
    /* The value is significand * 2^(exponent - fraction); the significand's leading one is bit `fraction`. */
    if (exponent > 15)
        return (uint16_t)(sign << 15 | 0x7c00);
    if (exponent < -25)
        return (uint16_t)(sign << 15); /* below half of the least subnormal */
    uint32_t drop = fraction - 10;
    uint32_t biased = 0;
    if (exponent < -14)
        drop += (uint32_t)(-14 - exponent);
    else
        biased = (uint32_t)(exponent + 14); /* the leading one adds 1 */
    uint64_t kept = significand >> drop;
    const uint64_t rest = significand & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign << 15 |
                      ((biased << 10) + (uint32_t)kept)); /* a carry goes into the exponent, up to infinity */
}

uint16_t opjit_ir_f32_to_f16(float x)
{
    const uint32_t bits = (uint32_t)bits_of_f32(x), sign = bits >> 31, exponent = bits >> 23 & 0xff;
    const uint32_t fraction = bits & 0x7fffff;
    if (exponent == 0xff)
        return (uint16_t)(sign << 15 | 0x7c00 | (fraction ? 0x200 | fraction >> 13 : 0));
    if (exponent == 0)
        return (uint16_t)(sign << 15); /* zero, or far below f16's least subnormal */
    return round_to_f16(sign, (int32_t)exponent - 127, fraction | 0x800000, 23);
}

uint16_t opjit_ir_f64_to_f16(double x)
{
    const uint64_t bits = bits_of_f64(x), fraction = bits & 0xfffffffffffff;
    const uint32_t sign = (uint32_t)(bits >> 63), exponent = (uint32_t)(bits >> 52) & 0x7ff;
    if (exponent == 0x7ff)
        return (uint16_t)(sign << 15 | 0x7c00 | (fraction ? 0x200 | (uint32_t)(fraction >> 42) : 0));
    if (exponent == 0)
        return (uint16_t)(sign << 15);
    return round_to_f16(sign, (int32_t)exponent - 1023, fraction | (uint64_t)1 << 52, 52);
}

float opjit_ir_f16_to_f32(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x >> 15) << 31, exponent = x >> 10 & 0x1f, fraction = x & 0x3ff;
    if (exponent == 0x1f)
        return f32_of(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f; /* exact */
        return f32_of(sign | bits_of_f32(magnitude));
    }
    return f32_of(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Any float type as a double, exactly. */
static double double_of(ir_type type, uint64_t bits)
{
    return type == IR_F64   ? f64_of(bits)
           : type == IR_F32 ? (double)f32_of(bits)
                            : (double)opjit_ir_f16_to_f32((uint16_t)bits);
}

/* --- integers ----------------------------------------------------------------------------------------------------- */

static uint64_t mask_of(ir_type type)
{
    const uint32_t size = opjit_ir_type_size(type);
    return type == IR_BOOL ? 1 : size >= 8 ? UINT64_MAX : ((uint64_t)1 << size * 8) - 1;
}

static int64_t sign_extend(ir_type type, uint64_t bits)
{
    const uint32_t shift = 64 - 8 * opjit_ir_type_size(type);
    return (int64_t)(bits << shift) >> shift;
}

static bool is_signed(ir_type type)
{
    return ir_is_signed(type) || type == IR_INDEX;
}

/* The two's complement minimum of a signed type, as masked bits. */
static uint64_t minimum_bits(ir_type type)
{
    return (mask_of(type) >> 1) + 1;
}

static uint64_t integer_divide(ir_type type, uint64_t a, uint64_t b, bool remainder)
{
    const uint64_t mask = mask_of(type);
    if (b == 0)
        return remainder ? a : mask;
    if (!ir_is_signed(type))
        return remainder ? a % b : a / b;
    if (b == mask && a == minimum_bits(type))
        return remainder ? 0 : a;
    const int64_t x = sign_extend(type, a), y = sign_extend(type, b);
    return (uint64_t)(remainder ? x % y : x / y) & mask;
}

static uint64_t shift(ir_type type, uint64_t a, uint64_t count, bool right)
{
    const uint64_t width = 8 * (uint64_t)opjit_ir_type_size(type);
    if (right && ir_is_signed(type))
        return (uint64_t)(sign_extend(type, a) >> (count >= width ? 63 : count)) & mask_of(type);
    if (count >= width)
        return 0;
    return (right ? a >> count : a << count) & mask_of(type);
}

static uint64_t integer_power(ir_type type, uint64_t base, uint64_t power)
{
    uint64_t product = 1;
    for (; power != 0; power >>= 1) {
        product *= power & 1 ? base : 1;
        base *= base;
    }
    return product & mask_of(type);
}

static int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Floor division and its remainder; a valid function has k > 0. */
static int64_t floor_div(int64_t a, int64_t k)
{
    if (k <= 0)
        return 0;
    return a / k - (a % k < 0);
}

static int64_t floor_mod(int64_t a, int64_t k)
{
    if (k <= 0)
        return 0;
    return a % k + (a % k < 0 ? k : 0);
}

static bool index_op(ir_op op, const uint64_t *args, uint64_t *out)
{
    const int64_t a = (int64_t)args[0], b = (int64_t)args[1];
    switch (op) {
    case IR_IADD: *out = (uint64_t)wrap_add(a, b); return true;
    case IR_ISUB: *out = (uint64_t)wrap_sub(a, b); return true;
    case IR_IMUL:
    case IR_ISCALE: *out = args[0] * args[1]; return true;
    case IR_IQUOT:
    case IR_IDIV: *out = (uint64_t)floor_div(a, b); return true;
    case IR_IREST:
    case IR_IMOD: *out = (uint64_t)floor_mod(a, b); return true;
    case IR_IMIN: *out = (uint64_t)(a < b ? a : b); return true;
    case IR_IMAX: *out = (uint64_t)(a > b ? a : b); return true;
    case IR_CLAMP: {
        const int64_t hi = (int64_t)args[2], low = a > b ? a : b;
        *out = (uint64_t)(low < hi ? low : hi);
        return true;
    }
    case IR_DOWN: *out = (uint64_t)wrap_sub(a, floor_mod(a, b)); return true;
    case IR_UP: *out = (uint64_t)wrap_add(a, floor_mod(wrap_sub(0, a), b)); return true;
    default: return false;
    }
}

/* --- conversion --------------------------------------------------------------------------------------------------- */

/* Toward zero, saturating, NaN to 0.  The comparisons are exact: both limits are powers of two or below 2^53. */
static uint64_t double_to_integer(double x, ir_type to)
{
    const uint32_t width = 8 * opjit_ir_type_size(to);
    if (isnan(x))
        return 0;
    if (is_signed(to)) {
        const double limit = ldexp(1.0, (int)width - 1);
        if (x >= limit)
            return mask_of(to) >> 1;
        if (x < -limit)
            return minimum_bits(to);
        return (uint64_t)(int64_t)x & mask_of(to);
    }
    if (x <= 0)
        return 0;
    return x >= ldexp(1.0, (int)width) ? mask_of(to) : (uint64_t)x;
}

static uint64_t double_to_float(double x, ir_type to)
{
    return to == IR_F64 ? bits_of_f64(x) : to == IR_F32 ? bits_of_f32((float)x) : opjit_ir_f64_to_f16(x);
}

/* An integer, given by sign and magnitude, rounded once. */
static uint64_t integer_to_float(uint64_t bits, bool negative, ir_type to)
{
    const int64_t value = (int64_t)bits;
    if (to == IR_F64)
        return bits_of_f64(negative ? (double)value : (double)bits);
    if (to == IR_F32)
        return bits_of_f32(negative ? (float)value : (float)bits);
    /* f16: everything from 2^17 on is infinite, everything below is exact in f32. */
    const int64_t limit = 1 << 17;
    const int64_t small =
        negative ? (value < -limit ? -limit : value) : (int64_t)(bits > (uint64_t)limit ? (uint64_t)limit : bits);
    return opjit_ir_f32_to_f16((float)small);
}

uint64_t opjit_ir_element_of(ir_type to, int64_t index)
{
    return ir_is_float(to) ? integer_to_float((uint64_t)index, index < 0, to) : (uint64_t)index & mask_of(to);
}

static uint64_t index_of(ir_type from, uint64_t bits)
{
    if (is_signed(from))
        return (uint64_t)sign_extend(from, bits);
    return bits > INT64_MAX ? INT64_MAX : bits;
}

uint64_t opjit_ir_convert(ir_type from, ir_type to, uint64_t bits)
{
    if (from == to)
        return bits;
    if (to == IR_BOOL)
        return ir_is_float(from) ? double_of(from, bits) != 0 : bits != 0;
    if (ir_is_float(from))
        return ir_is_float(to) ? double_to_float(double_of(from, bits), to)
                               : double_to_integer(double_of(from, bits), to);
    if (to == IR_INDEX)
        return index_of(from, bits);
    const uint64_t value = is_signed(from) ? (uint64_t)sign_extend(from, bits) : bits;
    return ir_is_float(to) ? integer_to_float(value, is_signed(from) && (int64_t)value < 0, to) : value & mask_of(to);
}

/* --- float arithmetic --------------------------------------------------------------------------------------------- */

/* f16 fma: the product is exact in double; the sum is rounded to odd, so that rounding it to f16 goes to the true
 * side. */
static uint64_t fma_f16(uint64_t x, uint64_t y, uint64_t z)
{
    const double p = double_of(IR_F16, x) * double_of(IR_F16, y), c = double_of(IR_F16, z);
    const double s = p + c;
    if (isfinite(s) && s != 0) {
        const double back = s - p, error = (p - (s - back)) + (c - back); /* exactly p + c - s */
        const uint64_t bits = bits_of_f64(s);
        if (error != 0 && !(bits & 1))
            return opjit_ir_f64_to_f16(f64_of((error > 0) == (s > 0) ? bits + 1 : bits - 1));
    }
    return opjit_ir_f64_to_f16(s);
}

/* As vscalefps and vscalefpd: by an infinite power even a NaN becomes 0 or infinite. */
static uint64_t scale_bits(ir_type type, uint64_t x, uint64_t power)
{
    enum { BEYOND = 5000 }; /* of which every number becomes 0 or infinite */
    const double n = double_of(type, power), by = n > 0 ? INFINITY : 0, a = double_of(type, x);
    if (isnan(n))
        return power;
    if (isinf(n))
        return type == IR_F64 ? bits_of_f64(isnan(a) ? by : a * by) : bits_of_f32((float)(isnan(a) ? by : a * by));
    const int whole = (int)floor(n > BEYOND ? BEYOND : n < -BEYOND ? -BEYOND : n);
    return type == IR_F64 ? bits_of_f64(ldexp(a, whole)) : bits_of_f32(ldexpf(f32_of(x), whole));
}

static double round_double(ir_op op, double x)
{
    return op == IR_FLOOR ? floor(x) : op == IR_CEIL ? ceil(x) : op == IR_TRUNC ? trunc(x) : rint(x);
}

static bool f32_op(ir_op op, float a, float b, float c, float *out)
{
    switch (op) {
    case IR_ADD: *out = a + b; return true;
    case IR_SUB: *out = a - b; return true;
    case IR_MUL: *out = a * b; return true;
    case IR_DIV: *out = a / b; return true;
    case IR_REM: *out = fmodf(a, b); return true;
    case IR_SQRT: *out = sqrtf(a); return true;
    case IR_FMA: *out = fmaf(a, b, c); return true;
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_RINT: *out = (float)round_double(op, a); return true;
    default: return false;
    }
}

static bool f64_op(ir_op op, double a, double b, double c, double *out)
{
    switch (op) {
    case IR_ADD: *out = a + b; return true;
    case IR_SUB: *out = a - b; return true;
    case IR_MUL: *out = a * b; return true;
    case IR_DIV: *out = a / b; return true;
    case IR_REM: *out = fmod(a, b); return true;
    case IR_SQRT: *out = sqrt(a); return true;
    case IR_FMA: *out = fma(a, b, c); return true;
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_RINT: *out = round_double(op, a); return true;
    default: return false;
    }
}

/* min and max return one of their operands, bit for bit. */
static uint64_t float_choose(ir_op op, ir_type type, const uint64_t *args)
{
    const double a = double_of(type, args[0]), b = double_of(type, args[1]);
    return isnan(a) || (op == IR_MIN ? a < b : a > b) ? args[0] : args[1];
}

static bool float_op(ir_op op, ir_type type, const uint64_t *args, uint64_t *out)
{
    const uint64_t sign = minimum_bits(type);
    switch (op) {
    case IR_NEG: *out = args[0] ^ sign; return true;
    case IR_ABS: *out = args[0] & ~sign; return true;
    case IR_MIN:
    case IR_MAX: *out = float_choose(op, type, args); return true;
    case IR_SCALE: *out = scale_bits(type, args[0], args[1]); return true;
    default: break;
    }
    if (type == IR_F16 && op == IR_FMA) {
        *out = fma_f16(args[0], args[1], args[2]);
        return true;
    }
    float x;
    if (type != IR_F16 ||
        !f32_op(op, opjit_ir_f16_to_f32((uint16_t)args[0]), opjit_ir_f16_to_f32((uint16_t)args[1]), 0, &x))
        return false;
    *out = opjit_ir_f32_to_f16(x);
    return true;
}

/* --- integer arithmetic, bits, comparison ------------------------------------------------------------------------- */

static bool less(ir_type type, uint64_t a, uint64_t b)
{
    if (ir_is_float(type))
        return double_of(type, a) < double_of(type, b);
    return is_signed(type) ? sign_extend(type, a) < sign_extend(type, b) : a < b;
}

static bool equal(ir_type type, uint64_t a, uint64_t b)
{
    return ir_is_float(type) ? double_of(type, a) == double_of(type, b) : a == b;
}

static uint64_t nearest(float x)
{
    const double whole = rint(x);
    return whole >= INT32_MIN && whole <= INT32_MAX ? (uint32_t)(int32_t)whole : (uint32_t)INT32_MIN;
}

/* The sum of the products of four bytes, or two halves, modulo 2^32. */
static uint64_t dots(ir_op op, const uint64_t *args)
{
    uint32_t sum = (uint32_t)args[0];
    for (uint32_t i = 0; i < 2 && op == IR_DOT2; i++)
        sum += (uint32_t)((int16_t)(args[1] >> 16 * i) * (int16_t)(args[2] >> 16 * i));
    for (uint32_t i = 0; i < 4 && op != IR_DOT2; i++) {
        const uint8_t a = (uint8_t)(args[1] >> 8 * i), b = (uint8_t)(args[2] >> 8 * i);
        const int32_t x = op == IR_DOT4_SS ? (int8_t)a : a, y = op == IR_DOT4_UU ? b : (int8_t)b;
        sum += (uint32_t)(x * y);
    }
    return sum;
}

static uint64_t halves(ir_type type, uint64_t x) /* both bytes in 16 bits each */
{
    const uint32_t both = (uint32_t)(x & 0xff) | (uint32_t)(x & 0xff00) << 8;
    return type == IR_I16 ? both | (both & 0x00800080) * 0x1fe : both;
}

static bool integer_op(ir_op op, ir_type type, const uint64_t *args, uint64_t *out)
{
    const uint64_t a = args[0], b = args[1], mask = mask_of(type);
    const bool negative = ir_is_signed(type) && (a & minimum_bits(type));
    switch (op) {
    case IR_ADD: *out = (a + b) & mask; return true;
    case IR_SUB: *out = (a - b) & mask; return true;
    case IR_MUL: *out = (a * b) & mask; return true;
    case IR_DIV: *out = integer_divide(type, a, b, false); return true;
    case IR_REM: *out = integer_divide(type, a, b, true); return true;
    case IR_MIN: *out = less(type, a, b) ? a : b; return true;
    case IR_MAX: *out = less(type, b, a) ? a : b; return true;
    case IR_NEG: *out = (0 - a) & mask; return true;
    case IR_ABS: *out = (negative ? 0 - a : a) & mask; return true;
    case IR_AND: *out = a & b; return true;
    case IR_OR: *out = a | b; return true;
    case IR_XOR: *out = a ^ b; return true;
    case IR_NOT: *out = ~a & mask; return true;
    case IR_SHL: *out = shift(type, a, b, false); return true;
    case IR_SHR: *out = shift(type, a, b, true); return true;
    case IR_CTPOP: *out = (uint64_t)__builtin_popcountll(a); return true;
    case IR_IPOW: *out = integer_power(type, a, b); return true;
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS:
    case IR_DOT2: *out = dots(op, args); return true;
    case IR_HALVES: *out = halves(type, a); return true;
    default: return false;
    }
}

bool opjit_ir_arithmetic(ir_op op, ir_type type, ir_type from, const uint64_t args[3], uint64_t *out)
{
    float x;
    double wide;
    if (from == IR_F32 && f32_op(op, f32_of(args[0]), f32_of(args[1]), f32_of(args[2]), &x)) {
        *out = bits_of_f32(x); /* what is computed most often; and functions of mathematics: */
        return true;
    }
    if (from == IR_F64 && f64_op(op, f64_of(args[0]), f64_of(args[1]), f64_of(args[2]), &wide)) {
        *out = bits_of_f64(wide);
        return true;
    }
    switch (op) {
    case IR_TO_INDEX: *out = index_of(from, args[0]); return true;
    case IR_ELEM: *out = opjit_ir_element_of(type, (int64_t)args[0]); return true;
    case IR_EQ: *out = equal(from, args[0], args[1]); return true;
    case IR_NE: *out = !equal(from, args[0], args[1]); return true;
    case IR_LT: *out = less(from, args[0], args[1]); return true;
    case IR_LE: *out = less(from, args[0], args[1]) || equal(from, args[0], args[1]); return true;
    case IR_CAST: *out = opjit_ir_convert(from, type, args[0]); return true;
    case IR_BITS: *out = args[0]; return true;
    case IR_NEAREST: *out = nearest(f32_of(args[0])); return true;
    case IR_SELECT: *out = args[0] ? args[1] : args[2]; return true;
    default: break;
    }
    if (index_op(op, args, out))
        return true;
    return ir_is_float(from) ? float_op(op, from, args, out) : integer_op(op, from, args, out);
}

/* --- accumulators ------------------------------------------------------------------------------------------------- */

uint64_t opjit_ir_identity(ir_type type, ir_kind kind)
{
    const bool lowest = kind == IR_KMAX;
    switch (kind) {
    case IR_PROD: return opjit_ir_element_of(type, 1);
    case IR_KMIN:
    case IR_KMAX:
        if (ir_is_float(type))
            return double_to_float(lowest ? -INFINITY : INFINITY, type);
        if (is_signed(type))
            return lowest ? minimum_bits(type) : mask_of(type) >> 1;
        return lowest ? 0 : mask_of(type);
    default: /* sums start at +0; arg kinds at index 0 */ return 0;
    }
}
