/* SPDX-License-Identifier: Apache-2.0 */
/* math_trig.c - sin, cos, tan.
 *
 * The number of quarter turns in |x| is |x| times 2 / pi.  For f32, |x| = 2^(21 g) s, with an s below 2^44 that is an
 * integer except for g = 0, so multiples of 4 in 2^(21 g) 2 / pi make no difference: what remains is a constant for
 * each g, in parts, selected by comparing |x| with powers of two.  The products are exact, or far enough below the
 * result even where the result is as near to 0 as a value of the type can make it (2^-31 for f32, 2^-58 for f64).  f64
 * uses g = 0 only, for |x| up to 2^45.
 *
 * Beyond that, |x| is an integer m below 2^53 times a power of two.  Of m * 2 / pi, a product of integers, only the
 * bits from that of 2 down matter; m times 192 bits of 2 / pi gives them (Payne and Hanek).  That takes many steps and
 * is an op of its own (sin_far): compiled code calls a function for it where an operand is so large. */
#include "ir/eval/math_steps.h"

#include <math.h>

static const double sin_short[] = {
    -0x1.5555554c428ffp-3,
    0x1.1111084b636a1p-7,
    -0x1.a00f6685b3ac6p-13,
    0x1.6ccbf9f90446dp-19,
};
static const double sin_f64[] = {
    -0x1.5555555555555p-3,  0x1.111111111108ap-7,  -0x1.a01a01a006a1cp-13, 0x1.71de3a3fd53dfp-19,
    -0x1.ae643cf5f5223p-26, 0x1.61147cd4766f2p-33, -0x1.a54cb71558d36p-41,
};
static const double cos_short[] = {
    0x1.5555554ee5271p-5,
    -0x1.6c16b8337b7afp-10,
    0x1.a010e2a7e64e2p-16,
    -0x1.241eedea6eb9ap-22,
};
static const double cos_f64[] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16b46p-10, 0x1.a01a01a0015ebp-16, -0x1.27e4fb6017cbep-22,
    0x1.1eed76d54986bp-29, -0x1.937d04bbd3323p-37, 0x1.a1af25ac57d22p-45,
};
static const math_poly sin_poly[GRADE_COUNT] = { MATH_POLY(sin_short), MATH_POLY(sin_short), MATH_POLY(sin_f64) };
static const math_poly cos_poly[GRADE_COUNT] = { MATH_POLY(cos_short), MATH_POLY(cos_short), MATH_POLY(cos_f64) };

/* 2^(21 g) 2 / pi modulo 4, as a sum of three. */
static const double turns[][3] = {
    { 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, -0x1.6447e493ad4cep-109 },
    { 0x1.b727220a94fe1p-2, 0x1.d5f47d4d37703p-57, 0x1.b6295993c4390p-111 },
    { 0x1.1054a7f09d5f4p+0, 0x1.f534ddc0db629p-54, 0x1.664f10e4107f9p-108 },
    { 0x1.fc2757d1f534ep-1, -0x1.1f924eb53361ep-56, 0x1.c820ff28b1d5fp-112 },
    { 0x1.7d1f534ddc0dbp+0, 0x1.8a5664f10e410p-54, 0x1.fe5163abdebbcp-108 },
};
enum { GROUP = 21, FIRST = 23, GROUPS = sizeof(turns) / sizeof(turns[0]) };

typedef struct reduced {
    val r, lo; /* the angle in two parts, at most a little more than pi / 4 */
    val turns; /* the number of quarter turns that were subtracted, in the low bits of a word */
} reduced;

static val power_of_two(math *m, int exponent)
{
    return opjit_ir_math_const(m, IR_F64, (uint64_t)(1023 + exponent) << 52);
}

/* w quarter turns as an angle, as exact as w. */
static reduced angle(math *m, val2 w, val turned)
{
    const val half_pi = m_like(m, w.hi, 0x1.921fb54442d18p+0), r = m_mul(m, w.hi, half_pi);
    const val low = m_fma(m, w.hi, m_like(m, w.hi, 0x1.1a62633145c07p-54), m_fma(m, w.hi, half_pi, m_neg(m, r)));
    return (reduced){ r, m_fma(m, w.lo, half_pi, low), turned };
}

/* For f64 up to 2^45; any angle beyond. */
static reduced reduce(math *m, math_grade grade, val x)
{
    const val magic = m_like(m, x, 0x1.8p52);
    const bool wide = grade == GRADE_F64;
    val s = m_abs(m, x), c[3];
    for (uint32_t i = 0; i < 3; i++)
        c[i] = m_like(m, x, turns[0][i]);
    if (!wide) {
        val by = m_like(m, x, 1);
        for (int g = 1; g < GROUPS; g++) {
            const val above = m_lt(m, power_of_two(m, FIRST + GROUP * g), s);
            by = m_select(m, above, power_of_two(m, -GROUP * g), by);
            c[0] = m_select(m, above, m_like(m, x, turns[g][0]), c[0]);
            c[1] = m_select(m, above, m_like(m, x, turns[g][1]), c[1]);
        }
        s = m_mul(m, s, by);
    }
    val2 p = opjit_ir_math_two_product(m, s, c[0]);
    const val fours = m_rint(m, m_mul(m, p.hi, m_like(m, x, 0.25)));
    p.hi = m_fma(m, fours, m_like(m, x, -4), p.hi);
    const val q = m_mul(m, s, c[1]);
    const val t = m_add(m, m_add(m, p.hi, m_add(m, p.lo, q)), magic), n = m_sub(m, t, magic);
    p.hi = m_sub(m, p.hi, n);
    if (!wide) {
        const val r = m_add(m, m_add(m, p.hi, p.lo), q);
        return (reduced){ m_mul(m, r, m_like(m, x, 0x1.921fb54442d18p+0)), m_like(m, x, 0), m_word(m, t) };
    }
    const val2 u = opjit_ir_math_two_sum(m, p.hi, p.lo), v = opjit_ir_math_two_sum(m, u.hi, q);
    const val rest = m_fma(m, s, c[2], m_fma(m, s, c[1], m_neg(m, q)));
    const val2 w = opjit_ir_math_two_sum(m, v.hi, m_add(m, m_add(m, u.lo, v.lo), rest));
    return angle(m, w, m_word(m, t));
}

/* --- beyond 2^45 ------------------------------------------------------------------------------------------------ */

/* 2 / pi in binary, the point after the 9th bit. */
static const uint64_t two_over_pi[] = {
    UINT64_C(0x00517cc1b727220a), UINT64_C(0x94fe13abe8fa9a6e), UINT64_C(0xe06db14acc9e21c8),
    UINT64_C(0x20ff28b1d5ef5de2), UINT64_C(0xb0db92371d2126e9), UINT64_C(0x700324977504e8c9),
    UINT64_C(0x0e7f0ef58e5894d3), UINT64_C(0x9f74411afa975da2), UINT64_C(0x4274ce38135a2fbf),
    UINT64_C(0x209cc8eb1cc1a99c), UINT64_C(0xfa4e422fc5defc94), UINT64_C(0x1d8ffc4bffef02cc),
    UINT64_C(0x07f79788c5ad0536), UINT64_C(0x8fb69b3f6793e584), UINT64_C(0xdba7a31fb34f2ff5),
    UINT64_C(0x16ba93dd63f5f2f8), UINT64_C(0xbd9e839cfbc52949), UINT64_C(0x7535fdafd88fc6ae),
    UINT64_C(0x842b0198237e3db5),
};
enum { WORDS = sizeof(two_over_pi) / sizeof(two_over_pi[0]), NEAR = 45, WINDOW = 3 };

static val u64(math *m, uint64_t bits)
{
    return opjit_ir_math_const(m, IR_U64, bits);
}

/* The bits of two_over_pi from `at` on, at below 1024, in whole words: each bit of the word's number halves the
 * candidates. */
static void window_at(math *m, val at, val *out)
{
    val words[WORDS];
    const val shift = m_and(m, at, u64(m, 63)), back = m_sub(m, u64(m, 64), shift);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = u64(m, two_over_pi[i]);
    for (uint32_t step = 8; step > 0; step /= 2) {
        const val skips = m_ne(m, m_and(m, at, u64(m, 64 * step)), u64(m, 0));
        for (uint32_t i = 0; i < WINDOW + step; i++)
            words[i] = m_select(m, skips, words[i + step], words[i]);
    }
    for (uint32_t i = 0; i < WINDOW; i++)
        out[i] = m_or(m, m_op2(m, IR_SHL, words[i], shift), m_op2(m, IR_SHR, words[i + 1], back));
}

static val low_half(math *m, val word)
{
    return m_and(m, word, u64(m, UINT32_MAX));
}

/* The upper word of a * b. */
static val high_product(math *m, val a, val b)
{
    const val al = low_half(m, a), ah = m_shr(m, a, 32), bl = low_half(m, b), bh = m_shr(m, b, 32);
    const val one = m_add(m, m_mul(m, ah, bl), m_shr(m, m_mul(m, al, bl), 32));
    const val other = m_add(m, m_mul(m, al, bh), low_half(m, one));
    return m_add(m, m_mul(m, ah, bh), m_add(m, m_shr(m, one, 32), m_shr(m, other, 32)));
}

/* The lower half, exactly; signed, because not every machine converts unsigned words. */
static val half_times(math *m, val half, int exponent)
{
    return m_mul(m, m_cast(m, IR_F64, m_bits(m, IR_I64, half)), power_of_two(m, exponent));
}

/* A word as a sum of two, times 2^scale. */
static val2 word_sum(math *m, val word, int scale)
{
    return opjit_ir_math_fast_two_sum(m, half_times(m, m_shr(m, word, 32), scale + 32),
                                      half_times(m, low_half(m, word), scale));
}

/* For f64 beyond 2^45; any angle below. */
static reduced reduce_far(math *m, val x)
{
    const val bits = m_word(m, x), exponent = m_and(m, m_shr(m, bits, 52), u64(m, 0x7ff));
    const val whole = m_or(m, m_and(m, bits, u64(m, (UINT64_C(1) << 52) - 1)), u64(m, UINT64_C(1) << 52));
    val window[WINDOW];
    window_at(m, m_sub(m, exponent, u64(m, 1023 + NEAR)), window);
    const val middle = m_mul(m, whole, window[1]);
    val low = m_add(m, middle, high_product(m, whole, window[2]));
    val high = m_add(m, m_mul(m, whole, window[0]), high_product(m, whole, window[1]));
    high = m_add(m, high, m_cast(m, IR_U64, m_lt(m, low, middle)));
    /* Two bits of quarter turns, then 126 bits of fraction.  A fraction above one half becomes the next turn minus the
     * rest, whose bits are the inverted ones, except in the last place. */
    const val turned = m_shr(m, m_add(m, high, u64(m, UINT64_C(1) << 61)), 62);
    high = m_sub(m, high, m_shl(m, turned, 62));
    const val negative = m_shr(m, high, 63), inverted = m_sub(m, u64(m, 0), negative), sign = m_shl(m, negative, 63);
    high = m_xor(m, high, inverted);
    low = m_xor(m, low, inverted);
    const val2 upper = word_sum(m, high, -62), lower = word_sum(m, low, -126);
    val2 w = opjit_ir_math_fast_two_sum(m, upper.hi, m_add(m, upper.lo, lower.hi));
    w = (val2){ m_flip_sign(m, w.hi, sign), m_flip_sign(m, m_add(m, w.lo, lower.lo), sign) };
    return angle(m, w, turned);
}

/* --- functions -------------------------------------------------------------------------------------------------- */

/* sin(r + lo) */
static val sine(math *m, math_grade grade, const reduced *a)
{
    const val z = m_mul(m, a->r, a->r), cube = m_mul(m, a->r, z), p = opjit_ir_math_poly(m, &sin_poly[grade], z);
    if (grade != GRADE_F64)
        return m_fma(m, cube, p, a->r);
    const val slope = m_fma(m, z, m_like(m, z, -0.5), m_like(m, z, 1));
    return m_add(m, a->r, m_fma(m, cube, p, m_mul(m, a->lo, slope)));
}

/* cos(r + lo): 1 - z/2 with what its rounding lost, plus the remaining terms. */
static val cosine(math *m, math_grade grade, const reduced *a)
{
    const val z = m_mul(m, a->r, a->r), p = opjit_ir_math_poly(m, &cos_poly[grade], z), one = m_like(m, z, 1);
    const val square = m_mul(m, z, z), half = m_mul(m, z, m_like(m, z, 0.5)), w = m_sub(m, one, half);
    if (grade != GRADE_F64)
        return m_fma(m, square, p, w);
    const val lost = m_sub(m, m_sub(m, one, w), half), low = m_fma(m, m_neg(m, a->r), a->lo, lost);
    return m_add(m, w, m_fma(m, square, p, low));
}

static val odd_turns(math *m, val t)
{
    return m_ne(m, m_and(m, t, m_word_const(m, t, 1)), m_word_const(m, t, 0));
}

/* Bit 1 of the number of quarter turns, as a sign. */
static val half_turn(math *m, val t)
{
    return m_and(m, m_shl(m, t, 62), m_word_const(m, t, (uint64_t)1 << 63));
}

/* x where x is the result within the grade's precision, so that -0 stays; else y. */
static val keep_small(math *m, math_grade grade, val x, val y)
{
    return m_select(m, m_lt(m, m_abs(m, x), m_like(m, x, grade == GRADE_F64 ? 0x1p-27 : 0x1p-14)), x, y);
}

static val sine_of(math *m, math_grade grade, val x, const reduced *a)
{
    const val y = m_select(m, odd_turns(m, a->turns), cosine(m, grade, a), sine(m, grade, a));
    return m_flip_sign(m, y, m_xor(m, half_turn(m, a->turns), m_sign(m, x)));
}

static val cosine_of(math *m, math_grade grade, val x, const reduced *a)
{
    const val y = m_select(m, odd_turns(m, a->turns), sine(m, grade, a), cosine(m, grade, a));
    return m_flip_sign(m, y, half_turn(m, m_add(m, a->turns, m_word_const(m, x, 1))));
}

static val tangent_of(math *m, math_grade grade, val x, const reduced *a)
{
    const val s = sine(m, grade, a), c = cosine(m, grade, a), odd = odd_turns(m, a->turns);
    const val y = m_div(m, m_select(m, odd, m_neg(m, c), s), m_select(m, odd, s, c));
    return m_flip_sign(m, y, m_sign(m, x));
}

/* y, except for f64 beyond the reach of reduce: an op if recorded, else what it means. */
static val or_far(math *m, math_grade grade, ir_op far, val x, val y)
{
    if (grade != GRADE_F64)
        return y;
    return m->steps == NULL ? opjit_ir_math_far(m, far, x, y) : m_op2(m, far, x, y);
}

val opjit_ir_math_sin(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    return or_far(m, grade, IR_SIN_FAR, x, keep_small(m, grade, x, sine_of(m, grade, x, &a)));
}

val opjit_ir_math_cos(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    return or_far(m, grade, IR_COS_FAR, x, cosine_of(m, grade, x, &a));
}

val opjit_ir_math_tan(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    return or_far(m, grade, IR_TAN_FAR, x, keep_small(m, grade, x, tangent_of(m, grade, x, &a)));
}

val opjit_ir_math_far(math *m, ir_op op, val x, val y)
{
    const val is_far = m_lt(m, power_of_two(m, NEAR), m_abs(m, x)); /* whether the value differs from y */
    if (m->steps == NULL && is_far.bits == 0)
        return y;
    const reduced a = reduce_far(m, x);
    const val far = op == IR_SIN_FAR   ? sine_of(m, GRADE_F64, x, &a)
                    : op == IR_COS_FAR ? cosine_of(m, GRADE_F64, x, &a)
                                       : tangent_of(m, GRADE_F64, x, &a);
    const val finite = m_add(m, far, m_sub(m, x, x)); /* of infinities: NaN */
    return m_select(m, is_far, finite, y);
}
