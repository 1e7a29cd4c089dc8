/* SPDX-License-Identifier: Apache-2.0 */
/* math_log.c - log and the functions based on it: log1p, asinh, acosh, atanh, pow.
 *
 * x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and log(x) = e ln 2 + f + f^2 P(f).  e times the high part of
 * ln 2 is exact; its sum with f is kept as two parts, so that only the result is rounded. */
#include "ir/eval/math_steps.h"

#include <math.h>

static const double log_f32[] = {
    -0x1.fffff8p-2, 0x1.55555p-2,   -0x1.000432p-2, 0x1.99a424p-3,  -0x1.5425d2p-3,
    0x1.226cdep-3,  -0x1.0f3dbep-3, 0x1.086888p-3,  -0x1.386602p-4,
};
static const double log_short[] = {
    -0x1.ffffffffc3661p-2, 0x1.555555522dcacp-2,  -0x1.0000004596457p-2, 0x1.99999e8c9c47bp-3,  -0x1.55552a1805e4cp-3,
    0x1.2490f1314bf3cp-3,  -0x1.000537661589cp-3, 0x1.c773e78b1b4f2p-4,  -0x1.9924d3da82c7dp-4, 0x1.6ec42bfb37735p-4,
    -0x1.541d49ac3d20dp-4, 0x1.66001975d571ap-4,  -0x1.5ce816978dd94p-4, 0x1.636dcaa57bc48p-5,
};
static const double log_f64[] = {
    -0x1p-1,
    0x1.5555555555572p-2,
    -0x1.ffffffffffebap-3,
    0x1.9999999993f1p-3,
    -0x1.55555555670bdp-3,
    0x1.24924927b4f44p-3,
    -0x1.fffffff6e53a6p-4,
    0x1.c71c700e0faf8p-4,
    -0x1.999999f62c801p-4,
    0x1.745d5bef15926p-4,
    -0x1.55558abcb6e59p-4,
    0x1.3b0d528a8955cp-4,
    -0x1.2487e8780cb75p-4,
    0x1.116a5717940fap-4,
    -0x1.00dddd0cc59dap-4,
    0x1.dcb1091a8816cp-5,
    -0x1.b3ca333ae2241p-5,
    0x1.ba984853fdfbdp-5,
    -0x1.0176879cea49ep-4,
    0x1.d63706bdfd425p-5,
    -0x1.927cc31f1d9fp-6,
};
static const math_poly log_poly[GRADE_COUNT] = { MATH_POLY(log_f32), MATH_POLY(log_short), MATH_POLY(log_f64) };

/* --- log -------------------------------------------------------------------------------------------------------- */

typedef struct math_split {
    val e, f;
} math_split;

/* x = 2^e * (1 + f), with 1 + f from sqrt(1/2) to sqrt(2); x is positive, finite and normal.  e is a float of x's
 * type. */
static math_split split(math *m, val x)
{
    const uint32_t fraction = m_fraction(x);
    const uint64_t root = m_is_f64(x) ? 0x3fe6a09e667f3bcd : 0x3f3504f3, one = (uint64_t)(m_is_f64(x) ? 1023 : 127)
                                                                               << fraction;
    const val above =
        m_add(m, m_word(m, x), m_word_const(m, x, one - root)); /* e + bias, then the fraction above the root */
    const val e = m_shr(m, above, fraction), rest = m_and(m, above, m_word_const(m, x, ((uint64_t)1 << fraction) - 1));
    const val f = m_float(m, m_add(m, rest, m_word_const(m, x, root)));
    /* An integer below 2^fraction, as a fraction of 2^fraction. */
    const double whole = m_is_f64(x) ? 0x1p52 : 0x1p23, bias = m_is_f64(x) ? 1023 : 127;
    const val as_float = m_float(m, m_or(m, e, m_word(m, m_like(m, x, whole))));
    return (math_split){ m_sub(m, as_float, m_like(m, x, whole + bias)), m_sub(m, f, m_like(m, x, 1)) };
}

/* e ln 2 + log(1 + f) + add. */
static val log_split(math *m, math_grade grade, const math_split *s, val add)
{
    const val high = m_mul(m, s->e, m_pick(m, s->f, 0x1.62e4p-1, 0x1.62e42fefa38p-1));
    const val low = m_pick(m, s->f, 0x1.7f7d1cf79abcap-20, 0x1.ef35793c7673p-45);
    const val2 sum = opjit_ir_math_fast_two_sum(m, high, s->f);
    const val tail = m_add(m, m_fma(m, s->e, low, sum.lo), add);
    const val p = opjit_ir_math_poly(m, &log_poly[grade], s->f);
    return m_add(m, sum.hi, m_fma(m, m_mul(m, s->f, s->f), p, tail));
}

/* Makes subnormal numbers normal; *correction is to be added to the exponent. */
static val normal(math *m, val x, val *correction)
{
    const val small = m_lt(m, x, m_pick(m, x, 0x1p-126, 0x1p-1022));
    *correction = m_select(m, small, m_pick(m, x, -24, -54), m_like(m, x, 0));
    return m_select(m, small, m_mul(m, x, m_pick(m, x, 0x1p24, 0x1p54)), x);
}

/* y where x is positive and finite; -inf at 0; NaN below 0; x where it is infinite or NaN. */
static val log_ends(math *m, val x, val zero, val y)
{
    const val finite = m_select(m, m_lt(m, x, m_like(m, x, INFINITY)), y, x);
    const val other = m_select(m, m_eq(m, x, zero), m_like(m, x, -INFINITY), m_like(m, x, NAN));
    return m_select(m, m_lt(m, zero, x), finite, other);
}

val opjit_ir_math_log(math *m, math_grade grade, val x)
{
    val correction;
    const val y = normal(m, x, &correction);
    math_split s = split(m, y);
    s.e = m_add(m, s.e, correction);
    return log_ends(m, x, m_like(m, x, 0), log_split(m, grade, &s, m_like(m, x, 0)));
}

/* If 1 + x is between the roots, f is x itself.  Elsewhere adds what rounding 1 + x lost, divided by 1 + x, to first
 * order. */
val opjit_ir_math_log1p(math *m, math_grade grade, val x)
{
    const val one = m_like(m, x, 1), zero = m_like(m, x, 0), u = m_add(m, x, one);
    const val lost = m_sub(m, x, m_sub(m, u, one));
    math_split s = split(m, u);
    const val near = m_eq(m, s.e, zero);
    s.f = m_select(m, near, x, s.f);
    const val y = log_split(m, grade, &s, m_select(m, near, zero, m_div(m, lost, u)));
    const val tiny = m_lt(m, m_abs(m, x), m_pick(m, x, 0x1p-25, 0x1p-54));
    return m_select(m, tiny, x, log_ends(m, x, m_like(m, x, -1), y));
}

/* --- inverse hyperbolic functions ------------------------------------------------------------------------------- */

/* For f32 results the plain formulas suffice, except for numbers so small that the result is x. */
static val short_ends(math *m, val x, val y)
{
    return m_select(m, m_lt(m, m_abs(m, x), m_like(m, x, 0x1p-13)), x, y);
}

/* log1p(y), or log(2y) where y is so large that 1 + y is y. */
static val log1p_or_twice(math *m, math_grade grade, val large, val y)
{
    const val out = opjit_ir_math_log1p(m, grade, y);
    return m_add(m, out, m_select(m, large, m_like(m, y, 0x1.62e42fefa39efp-1), m_like(m, y, 0)));
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))) */
val opjit_ir_math_asinh(math *m, math_grade grade, val x)
{
    const val a = m_abs(m, x), one = m_like(m, x, 1), root = m_sqrt(m, m_fma(m, a, a, one));
    if (grade == GRADE_SHORT) {
        const val y = opjit_ir_math_log(m, grade, m_add(m, a, root));
        return short_ends(m, x, m_with_sign(m, y, m_sign(m, x)));
    }
    const val large = m_lt(m, m_like(m, x, 0x1p60), a);
    const val y = m_add(m, a, m_div(m, m_mul(m, a, a), m_add(m, one, root)));
    return m_with_sign(m, log1p_or_twice(m, grade, large, m_select(m, large, a, y)), m_sign(m, x));
}

/* With d = x - 1: log1p(d + sqrt(d (x + 1))). */
val opjit_ir_math_acosh(math *m, math_grade grade, val x)
{
    const val one = m_like(m, x, 1), d = m_sub(m, x, one), root = m_sqrt(m, m_mul(m, d, m_add(m, x, one)));
    if (grade == GRADE_SHORT) /* below 1 the sum would belong to another branch, or cancel */
        return opjit_ir_math_log(m, grade, m_select(m, m_lt(m, x, one), m_like(m, x, NAN), m_add(m, x, root)));
    const val large = m_lt(m, m_like(m, x, 0x1p60), x);
    const val y = m_select(m, large, x, m_add(m, d, root));
    return log1p_or_twice(m, grade, large, m_select(m, m_lt(m, x, one), m_like(m, x, NAN), y));
}

/* Half of log((1 + x) / (1 - x)) = log1p(2x / (1 - x)). */
val opjit_ir_math_atanh(math *m, math_grade grade, val x)
{
    const val one = m_like(m, x, 1), half = m_like(m, x, 0.5);
    if (grade == GRADE_SHORT) {
        const val ratio = m_div(m, m_add(m, one, x), m_sub(m, one, x));
        return short_ends(m, x, m_mul(m, half, opjit_ir_math_log(m, grade, ratio)));
    }
    const val a = m_abs(m, x), y = opjit_ir_math_log1p(m, grade, m_div(m, m_add(m, a, a), m_sub(m, one, a)));
    return m_with_sign(m, m_mul(m, half, y), m_sign(m, x));
}

/* --- pow -------------------------------------------------------------------------------------------------------- */

/* (atanh(s) / s - 1 - s^2 / 3 - s^4 / 5) / s^6 in s^2, |s| <= 0.172 */
static const double atanh_tail[] = {
    0x1.2492492492497p-3, 0x1.c71c71c715461p-4, 0x1.745d175505566p-4, 0x1.3b13a5292bc4ep-4,
    0x1.11159ec4d9f16p-4, 0x1.e0202d4e8544dp-5, 0x1.d9c137da606b1p-5,
};
static const math_poly atanh_poly = MATH_POLY(atanh_tail);

static val2 product(math *m, val2 a, val2 b)
{
    const val2 p = opjit_ir_math_two_product(m, a.hi, b.hi);
    const val cross = m_fma(m, a.hi, b.lo, m_mul(m, a.lo, b.hi));
    return opjit_ir_math_fast_two_sum(m, p.hi, m_add(m, p.lo, cross));
}

/* a + b.hi + b.lo, |a| >= |b.hi|. */
static val2 sum(math *m, val2 a, val2 b)
{
    const val2 s = opjit_ir_math_fast_two_sum(m, a.hi, b.hi);
    return opjit_ir_math_fast_two_sum(m, s.hi, m_add(m, s.lo, m_add(m, a.lo, b.lo)));
}

/* log(x) to about 2^-67.  With s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2s (1 + s^2 (1/3 + s^2 (1/5 + s^2 P(s^2)))),
 * in two parts except for P. */
static val2 log_twice(math *m, val x)
{
    val correction;
    const val y = normal(m, x, &correction), two = m_like(m, x, 2);
    const math_split f = split(m, y);
    const val e = m_add(m, f.e, correction);
    const val2 below = opjit_ir_math_fast_two_sum(m, two, f.f);
    val2 s = { m_div(m, f.f, below.hi), two };
    const val rest = m_fma(m, m_neg(m, s.hi), below.lo, m_fma(m, m_neg(m, s.hi), below.hi, f.f));
    s.lo = m_div(m, rest, below.hi);
    const val2 z = product(m, s, s);
    const val tail = m_mul(m, z.hi, opjit_ir_math_poly(m, &atanh_poly, z.hi));
    const val2 third = { m_like(m, x, 0x1.5555555555555p-2), m_like(m, x, 0x1.5555555555555p-56) };
    const val2 fifth = { m_like(m, x, 0x1.999999999999ap-3), m_like(m, x, -0x1.999999999999ap-57) };
    const val2 inner = product(m, z, sum(m, third, product(m, z, sum(m, fifth, (val2){ tail, m_like(m, x, 0) }))));
    const val2 cubic = product(m, s, inner);
    const val2 half = sum(m, s, cubic);
    const val2 high = { m_mul(m, e, m_like(m, x, 0x1.62e42fefa38p-1)),
                        m_mul(m, e, m_like(m, x, 0x1.ef35793c7673p-45)) };
    return sum(m, high, (val2){ m_mul(m, half.hi, two), m_mul(m, half.lo, two) });
}

/* |x|^y */
static val pow_size(math *m, math_grade grade, val a, val y)
{
    const val infinity = m_like(m, a, INFINITY), zero = m_like(m, a, 0);
    if (grade == GRADE_SHORT)
        return opjit_ir_math_exp(m, grade, m_mul(m, y, opjit_ir_math_log(m, GRADE_F64, a)));
    const val2 l = log_twice(m, a);
    /* The plain logarithm at the ends, where the two parts are NaN. */
    const val end = m_select(m, m_eq(m, a, zero), m_like(m, a, -INFINITY), a);
    const val inside = m_and(m, m_lt(m, zero, a), m_lt(m, a, infinity));
    const val high = m_select(m, inside, l.hi, end), p = m_mul(m, y, high);
    const val small = m_lt(m, m_abs(m, p), m_like(m, a, 1000));
    const val low = m_fma(m, y, l.lo, m_fma(m, y, high, m_neg(m, p)));
    return opjit_ir_math_exp_sum(m, grade, p, m_select(m, m_and(m, inside, small), low, zero));
}

val opjit_ir_math_pow(math *m, math_grade grade, val x, val y)
{
    const val zero = m_like(m, x, 0), one = m_like(m, x, 1), a = m_abs(m, x), half = m_mul(m, y, m_like(m, x, 0.5));
    const val size = m_select(m, m_eq(m, a, one), m_select(m, m_ne(m, y, y), y, one), pow_size(m, grade, a, y));
    const val whole = m_eq(m, m_trunc(m, y), y), odd = m_and(m, whole, m_ne(m, m_trunc(m, half), half));
    const val sign = m_select(m, odd, m_sign(m, x), m_word_const(m, x, 0));
    const val refused =
        m_and(m, m_and(m, m_lt(m, x, zero), m_lt(m, a, m_like(m, x, INFINITY))), m_ne(m, m_trunc(m, y), y));
    const val out = m_select(m, refused, m_like(m, x, NAN), m_flip_sign(m, size, sign));
    return m_select(m, m_or(m, m_eq(m, y, zero), m_eq(m, x, one)), one, out);
}
