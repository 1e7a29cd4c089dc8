/* SPDX-License-Identifier: Apache-2.0 */
/* ir_math_trig.c - sin, cos, tan: of every f32, and of f64 up to 2^45.
 *
 * The quarter turns in |x| are |x| times 2 / pi.  For f32, |x| = 2^(21 g) s with an s below 2^44 that is an integer
 * but for g = 0, so multiples of 4 in 2^(21 g) 2 / pi do not count: what is left is a constant for each g, in
 * parts, chosen by comparing |x| with powers of two.  The products are exact, or far enough below the result even
 * where that is as near to 0 as a value of the type can make it (2^-31 for f32, 2^-58 for f64).  f64 has g = 0
 * alone, and NaN beyond. */
#include "ir/ir_math.h"

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
    val r, lo; /* the angle, within a little more than pi / 4, in two parts */
    val turns; /* how many quarter turns it is from |x|, in the low bits of a word */
} reduced;

static val power_of_two(math *m, int exponent)
{
    return opjit_ir_math_const(m, IR_F64, (uint64_t)(1023 + exponent) << 52);
}

static reduced reduce(math *m, math_grade grade, val x)
{
    const val magic = m_like(m, x, 0x1.8p52);
    const bool wide = grade == GRADE_F64;
    val s = m_abs(m, x), c[3];
    for (uint32_t i = 0; i < 3; i++)
        c[i] = m_like(m, x, turns[0][i]);
    if (wide) {
        s = m_select(m, m_lt(m, m_like(m, x, 0x1p45), s), m_like(m, x, NAN), s);
    } else {
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
    const val half_pi = m_like(m, x, 0x1.921fb54442d18p+0), r = m_mul(m, w.hi, half_pi);
    const val low = m_fma(m, w.hi, m_like(m, x, 0x1.1a62633145c07p-54), m_fma(m, w.hi, half_pi, m_neg(m, r)));
    return (reduced){ r, m_fma(m, w.lo, half_pi, low), m_word(m, t) };
}

/* sin(r + lo) */
static val sine(math *m, math_grade grade, const reduced *a)
{
    const val z = m_mul(m, a->r, a->r), cube = m_mul(m, a->r, z), p = opjit_ir_math_poly(m, &sin_poly[grade], z);
    if (grade != GRADE_F64)
        return m_fma(m, cube, p, a->r);
    const val slope = m_fma(m, z, m_like(m, z, -0.5), m_like(m, z, 1));
    return m_add(m, a->r, m_fma(m, cube, p, m_mul(m, a->lo, slope)));
}

/* cos(r + lo): 1 - z/2 with what its rounding lost, and the rest. */
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

/* Where x is the result, up to the grade's last digit; so -0 stays. */
static val keep_small(math *m, math_grade grade, val x, val y)
{
    return m_select(m, m_lt(m, m_abs(m, x), m_like(m, x, grade == GRADE_F64 ? 0x1p-27 : 0x1p-14)), x, y);
}

val opjit_ir_math_sin(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    const val y = m_select(m, odd_turns(m, a.turns), cosine(m, grade, &a), sine(m, grade, &a));
    return keep_small(m, grade, x, m_flip_sign(m, y, m_xor(m, half_turn(m, a.turns), m_sign(m, x))));
}

val opjit_ir_math_cos(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    const val y = m_select(m, odd_turns(m, a.turns), sine(m, grade, &a), cosine(m, grade, &a));
    return m_flip_sign(m, y, half_turn(m, m_add(m, a.turns, m_word_const(m, x, 1))));
}

val opjit_ir_math_tan(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, grade, x);
    const val s = sine(m, grade, &a), c = cosine(m, grade, &a), odd = odd_turns(m, a.turns);
    const val y = m_div(m, m_select(m, odd, m_neg(m, c), s), m_select(m, odd, s, c));
    return keep_small(m, grade, x, m_flip_sign(m, y, m_sign(m, x)));
}
