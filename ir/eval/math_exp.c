/* SPDX-License-Identifier: Apache-2.0 */
/* math_exp.c - exp and the functions based on it: expm1, sinh, cosh, tanh, erf.
 *
 * exp(x) = 2^n exp(r) with n = rint(x / ln 2) and |r| <= ln 2 / 2.  Adding 1.5 * 2^23 (f64: 2^52) to x / ln 2 leaves n
 * as an integer in the low bits of the sum.  ln 2 is split into a high part with trailing zeros, so that n times it is
 * exact, and a low part.  Coefficients are minimax for (exp(r) - 1 - r) / r^2 and the like, rounded one after the
 * other. */
#include "ir/eval/math_steps.h"

static const double exp_f32[] = {
    0x1p-1, 0x1.555488p-3, 0x1.5554e2p-5, 0x1.123fb8p-7, 0x1.6d53e6p-10,
};
static const double exp_short[] = {
    0x1.00000046ac349p-1, 0x1.555555808161bp-3, 0x1.55547a1327268p-5,
    0x1.11109e41b54cfp-7, 0x1.6d9b580a6472p-10, 0x1.a18b4f30b6d45p-13,
};
static const double exp_f64[] = {
    0x1.000000000000cp-1,  0x1.555555555555cp-3,  0x1.555555554fd7p-5,   0x1.111111110e9bbp-7,  0x1.6c16c1863ae15p-10,
    0x1.a01a01b46c1bdp-13, 0x1.a019950af2bfap-16, 0x1.71ddedf7cef93p-19, 0x1.28b1b1a39b786p-22, 0x1.af6f756d82cc8p-26,
};
static const math_poly exp_poly[GRADE_COUNT] = { MATH_POLY(exp_f32), MATH_POLY(exp_short), MATH_POLY(exp_f64) };

/* --- exp -------------------------------------------------------------------------------------------------------- */

typedef struct reduced {
    val bits;  /* n, in the low bits of a word */
    val r, lo; /* x - n ln 2 = r + lo */
    val n;
} reduced;

/* up is added to n in bits, and nowhere else. */
static reduced reduce_up(math *m, val x, int up)
{
    const val magic = m_pick(m, x, 0x1.8p23 + up, 0x1.8p52 + up);
    const val t = m_fma(m, x, m_like(m, x, 0x1.71547652b82fep+0), magic), n = m_sub(m, t, magic);
    const val high = m_fma(m, n, m_pick(m, x, -0x1.62e4p-1, -0x1.62e42fefa38p-1), x);
    const val part = m_pick(m, x, -0x1.7f7d1cf79abcap-20, -0x1.ef35793c7673p-45);
    const val r = m_fma(m, n, part, high);
    return (reduced){ m_word(m, t), r, m_fma(m, n, part, m_sub(m, high, r)), n };
}

static reduced reduce(math *m, val x)
{
    return reduce_up(m, x, 0);
}

/* exp(r), from 0.7 to 1.42. */
static val exp_reduced(math *m, math_grade grade, const reduced *a, bool with_lo)
{
    const val one = m_like(m, a->r, 1), h = opjit_ir_math_poly(m, &exp_poly[grade], a->r);
    if (!with_lo)
        return m_fma(m, m_fma(m, h, a->r, one), a->r, one);
    return m_add(m, one, m_add(m, a->r, m_fma(m, m_mul(m, a->r, a->r), h, a->lo)));
}

static int half_range(val x)
{
    return m_is_f64(x) ? 512 : 64;
}

/* p, or 0 where exp(x) is less than half of the least number: a product that underflows takes Intel's CPUs 150 cycles,
 * and masked scores have nothing else. */
static val or_zero(math *m, val p, val x)
{
    return m_select(m, m_lt(m, x, m_pick(m, x, -104, -745.5)), m_like(m, x, 0), p);
}

/* p * 2^n * 2^up.  Adds n to the exponent in two steps that both stay within the range: first all except half of the
 * range, then a factor, which rounds once where the result is subnormal.  The sign bit, also of -0, tells which half it
 * is. */
static val scale(math *m, val p, const reduced *a, val x, int up)
{
    if (m->scales)
        return m_op2(m, IR_SCALE, or_zero(m, p, x), up == 0 ? a->n : m_add(m, a->n, m_like(m, x, up)));
    const uint32_t fraction = m_fraction(x);
    const uint64_t half = (uint64_t)half_range(x) << fraction;
    const uint64_t factor = (uint64_t)((m_is_f64(x) ? 1023 : 127) + up) << fraction; /* bits of 2^up */
    const ir_type with_sign = m_is_f64(x) ? IR_I64 : IR_I32;
    const val below = m_lt(m, m_bits(m, with_sign, x), opjit_ir_math_const(m, with_sign, 0));
    const val bits = m_shl(m, a->bits, fraction);
    const val shift = m_select(m, below, m_word_const(m, x, half), m_word_const(m, x, 0 - half));
    const val y = m_float(m, m_add(m, m_add(m, m_word(m, p), bits), shift));
    const val by = m_float(m, m_sub(m, m_word_const(m, x, factor), shift));
    const val nan = m_mul(m, x, m_like(m, x, 0)); /* a NaN's bits were changed: this restores it */
    return m_fma(m, or_zero(m, y, x), by, nan);
}

/* Beyond the limits exp is 0 or infinite, as at the limits.  IR_SCALE takes any n, and or_zero what p is then. */
static val limit_below(math *m, val x)
{
    return m->scales ? x : m_max(m, x, m_pick(m, x, -104.5, -746));
}

static val limit(math *m, val x)
{
    return limit_below(m, m_min(m, x, m_pick(m, x, 90, 712)));
}

/* exp(x) for x up to 0.  As scale, except that the half of the range is known and is added to n from the start. */
static val exp_below(math *m, math_grade grade, val x)
{
    x = limit_below(m, x);
    const int half = half_range(x);
    const reduced a = reduce_up(m, x, half);
    const val p = exp_reduced(m, grade, &a, grade == GRADE_F64);
    const val y = m_float(m, m_add(m, m_word(m, p), m_shl(m, a.bits, m_fraction(x))));
    return m_fma(m, or_zero(m, y, x), m_pick(m, x, 0x1p-64, 0x1p-512), m_mul(m, x, m_like(m, x, 0)));
}

val opjit_ir_math_exp(math *m, math_grade grade, val x)
{
    if (m->below && !m->scales)
        return exp_below(m, grade, x);
    x = m->below ? limit_below(m, x) : limit(m, x);
    const reduced a = reduce(m, x);
    return scale(m, exp_reduced(m, grade, &a, grade == GRADE_F64), &a, x, 0);
}

/* exp(x) / 2, also where exp(x) overflows. */
static val exp_half(math *m, math_grade grade, val x)
{
    x = limit(m, x);
    const reduced a = reduce(m, x);
    return scale(m, exp_reduced(m, grade, &a, grade == GRADE_F64), &a, x, -1);
}

val opjit_ir_math_exp_sum(math *m, math_grade grade, val x, val lo)
{
    x = limit(m, x);
    reduced a = reduce(m, x);
    const val2 r =
        opjit_ir_math_two_sum(m, a.r, m_add(m, a.lo, lo)); /* lo may be hundreds of ulps of the result */
    a.r = r.hi;
    a.lo = r.lo;
    return scale(m, exp_reduced(m, grade, &a, true), &a, x, 0);
}

/* For |x| < 80: far from the ends of the range. */
static val exp_inner(math *m, math_grade grade, val x)
{
    const reduced a = reduce(m, x);
    const val p = exp_reduced(m, grade, &a, grade == GRADE_F64);
    return m_float(m, m_add(m, m_word(m, p), m_shl(m, a.bits, m_fraction(x))));
}

/* --- expm1 ------------------------------------------------------------------------------------------------------ */

/* 2 (s q + (s - 1/2)) with s = 2^(n - 1), so that s is finite, and q = expm1(r). */
val opjit_ir_math_expm1(math *m, math_grade grade, val x)
{
    const val tiny = m_lt(m, m_abs(m, x), m_pick(m, x, 0x1p-25, 0x1p-54));
    const val y = m_max(m, m_min(m, x, m_pick(m, x, 89, 710)), m_pick(m, x, -18, -40));
    const reduced a = reduce(m, y);
    const uint32_t fraction = m_fraction(x);
    const val h = opjit_ir_math_poly(m, &exp_poly[grade], a.r);
    const val q = m_add(m, a.r, m_fma(m, m_mul(m, a.r, a.r), h, a.lo));
    const val bias = m_word_const(m, x, (uint64_t)(m_is_f64(x) ? 1022 : 126) << fraction);
    const val s = m_float(m, m_add(m, m_shl(m, a.bits, fraction), bias));
    const val half = m_fma(m, s, q, m_sub(m, s, m_like(m, x, 0.5)));
    return m_select(m, tiny, x, m_add(m, half, half));
}

/* --- hyperbolic functions --------------------------------------------------------------------------------------- */

/* With h = exp|x| / 2, which is finite as long as the result is: h + 1/(4h). */
val opjit_ir_math_cosh(math *m, math_grade grade, val x)
{
    const val h = exp_half(m, grade, m_abs(m, x));
    return m_add(m, h, m_div(m, m_like(m, x, 0.25), h));
}

/* h - 1/(4h) loses digits near 0: there the result comes from expm1, or is x where fewer digits suffice. */
val opjit_ir_math_sinh(math *m, math_grade grade, val x)
{
    const val a = m_abs(m, x), sign = m_sign(m, x), h = exp_half(m, grade, a);
    const val far = m_sub(m, h, m_div(m, m_like(m, x, 0.25), h));
    if (grade == GRADE_SHORT)
        return m_with_sign(m, m_select(m, m_lt(m, a, m_like(m, x, 0x1p-13)), a, far), sign);
    const val e = opjit_ir_math_expm1(m, grade, m_min(m, a, m_like(m, x, 2)));
    const val sum = m_add(m, e, m_div(m, e, m_add(m, e, m_like(m, x, 1))));
    return m_with_sign(m, m_select(m, m_lt(m, a, m_like(m, x, 1)), m_mul(m, sum, m_like(m, x, 0.5)), far), sign);
}

static const double tanh_f32[] = {
    -0x1.555554p-2, 0x1.1110a2p-3, -0x1.ba050ep-5,  0x1.6539e2p-6,
    -0x1.1b0b76p-7, 0x1.9a9f44p-9, -0x1.cbbdd2p-11, 0x1.12cd1p-13,
};
static const double tanh_f64[] = {
    -0x1.5555555555551p-2,  0x1.1111111110d1ap-3,  -0x1.ba1ba1b9f1e13p-5,  0x1.664f487bb0417p-6,
    -0x1.226e34a60b627p-7,  0x1.d6d3b820e1d5dp-9,  -0x1.7da23c2456aecp-10, 0x1.354e23ab367aap-11,
    -0x1.f4fd5ba5536e4p-13, 0x1.9414c3f467d28p-14, -0x1.40a961edbaf6p-15,  0x1.e4ce6ac3bf90cp-17,
    -0x1.479466c6dd0d1p-18, 0x1.656d3616c7759p-20, -0x1.0d1412898e6b8p-22, 0x1.95f59dfa7c794p-26,
};
static const math_poly tanh_poly[GRADE_COUNT] = { MATH_POLY(tanh_f32), MATH_POLY(tanh_f64), MATH_POLY(tanh_f64) };

/* x + x^3 P(x^2) up to 0.99 and for NaN.  From there on 2 / (exp(2x) + 1) is below 1/4, so that its error counts a
 * quarter. */
val opjit_ir_math_tanh(math *m, math_grade grade, val x)
{
    const val a = m_abs(m, x), sign = m_sign(m, x), z = m_mul(m, a, a), one = m_like(m, x, 1);
    const val near = m_fma(m, m_mul(m, a, z), opjit_ir_math_poly_last(m, &tanh_poly[grade], z), a);
    const val most = m_min(m, a, m_pick(m, x, 10, 22));
    const val e = exp_inner(m, grade, m_add(m, most, most));
    const val far = m_sub(m, one, m_div(m, m_like(m, x, 2), m_add(m, e, one)));
    return m_with_sign(m, m_select(m, m_lt(m, m_like(m, x, 0.99), a), far, near), sign);
}

/* --- erf -------------------------------------------------------------------------------------------------------- */

/* erf(x) / x - 1 as a polynomial in x^2, up to 1; -log(1 - erf(x)) as one in x - 1, up to where erf rounds to 1. */
static const double erf_f32[] = {
    0x1.06eba8p-3, -0x1.81274p-2, 0x1.ce2d5p-4, -0x1.b7fe8ep-6, 0x1.542deep-8, -0x1.a5099ep-11, 0x1.4c2f4cp-14,
};
static const double erf_f64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a02p-2,  0x1.ce2f21a043b39p-4,  -0x1.b82ce312c904p-6,
    0x1.565bcd17e78b1p-8,  -0x1.c02db5bf44215p-11, 0x1.f9a35d6154cf9p-14, -0x1.f4d6e39d4c49fp-17,
    0x1.ba29d078221cbp-20, -0x1.622465af90574p-23, 0x1.11289c19070a9p-26, -0x1.fbaaf1883688p-30,
    0x1.46d476713e659p-32, -0x1.371953252d2fdp-35,
};
static const double erfc_f32[] = {
    0x1.d97fcp+0,   0x1.51c99ap+1,  0x1.afb0ap-1,    0x1.529f76p-5,  -0x1.31dp-7,
    0x1.8da3dap-11, 0x1.01ed82p-10, -0x1.77991ep-11, 0x1.d83b32p-13, -0x1.d423b2p-16,
};
static const double erfc_f64[] = {
    0x1.d97fbf27aa2a1p+0,   0x1.51c9b0006c241p+1,   0x1.afabc11a28c2p-1,    0x1.5477f09cf2348p-5,
    -0x1.48c9d41b6dbdfp-7,  0x1.033f6ba79fa5cp-9,   -0x1.f1b57f560074p-13,  -0x1.b8a4793a4ffa3p-16,
    0x1.c708c0ff564ccp-16,  -0x1.3fd7cd3679044p-17, 0x1.03b3fccd505bcp-19,  0x1.43ca0167d0905p-26,
    -0x1.1ec35e1e1fc58p-22, 0x1.a75490a9118e4p-23,  -0x1.f528926893ab8p-24, 0x1.074dd74353c28p-24,
    -0x1.dbc63001f5298p-26, 0x1.633694e85b7bp-27,   -0x1.a9ec1ab58f8aap-29, 0x1.9072231de333dp-31,
    -0x1.1f5e965899d78p-33, 0x1.2f1e88ed3da2ep-36,  -0x1.ba20e10f9a9e3p-40, 0x1.8dbb1605fe61ep-44,
    -0x1.4c1ce0f445221p-49,
};
static const math_poly erf_poly[GRADE_COUNT] = { MATH_POLY(erf_f32), MATH_POLY(erf_f64), MATH_POLY(erf_f64) };
static const math_poly erfc_poly[GRADE_COUNT] = { MATH_POLY(erfc_f32), MATH_POLY(erfc_f64), MATH_POLY(erfc_f64) };

val opjit_ir_math_erf(math *m, math_grade grade, val x)
{
    const val a = m_abs(m, x), sign = m_sign(m, x), one = m_like(m, x, 1);
    const val near = m_fma(m, a, opjit_ir_math_poly_last(m, &erf_poly[grade], m_mul(m, a, a)), a);
    const val t = m_sub(m, m_min(m, a, m_pick(m, x, 3.9375, 6)), one);
    const val e = exp_inner(m, grade, m_neg(m, opjit_ir_math_poly_last(m, &erfc_poly[grade], t)));
    return m_with_sign(m, m_select(m, m_lt(m, one, a), m_sub(m, one, e), near), sign);
}
