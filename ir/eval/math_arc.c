/* SPDX-License-Identifier: Apache-2.0 */
/* math_arc.c - asin, acos, atan, atan2. */
#include "ir/eval/math_steps.h"

#include <math.h>

/* (atan(t) - t) / t^3 in t^2, |t| <= tan(pi / 8); (asin(s) - s) / s^3 in s^2, |s| <= 1/2 */
static const double atan_short[] = {
    -0x1.5555554e9675p-2,  0x1.999991c4830ccp-3, -0x1.2490bb7cdac69p-3, 0x1.c6d0f333a737ep-4,
    -0x1.707a77fa2bfabp-4, 0x1.1e395d4a8940dp-4, -0x1.3638ae8b3af5p-5,
};
static const double atan_f64[] = {
    -0x1.5555555555555p-2, 0x1.99999999998c3p-3,  -0x1.249249248bd1ep-3, 0x1.c71c71c3cb575p-4,  -0x1.745d16c087164p-4,
    0x1.3b13a369bb22ap-4,  -0x1.111013d871809p-4, 0x1.e1c83313da70ep-5,  -0x1.ae396bf239132p-5, 0x1.7fde5d64c44dp-5,
    -0x1.46c5dd611019cp-5, 0x1.cfdf51d2d54fep-6,  -0x1.84413a0cecd38p-7,
};
static const double asin_short[] = {
    0x1.55555547d2c9ep-3, 0x1.3333407c4d4b4p-4, 0x1.6db262e736a69p-5, 0x1.f2809b38b70f5p-6,
    0x1.664e3b45d52a8p-6, 0x1.51f776814388p-6,  0x1.09e2c8d653708p-9, 0x1.0d2e5d566bfap-5,
};
static const double asin_f64[] = {
    0x1.5555555555553p-3,  0x1.33333333339d7p-4, 0x1.6db6db6d4dba5p-5,  0x1.f1c71ca62329bp-6, 0x1.6e8b9b3481269p-6,
    0x1.1c4f80135ad8dp-6,  0x1.c9817886701dep-7, 0x1.7b9e67cfb9ea2p-7,  0x1.36eaf7c896752p-7, 0x1.47480ce0dce89p-7,
    0x1.8bdbc107ad8a5p-11, 0x1.9429a76996149p-6, -0x1.a91e63c319ddcp-6, 0x1.12aa0f89cfaa7p-5,
};
static const math_poly atan_poly[GRADE_COUNT] = { MATH_POLY(atan_short), MATH_POLY(atan_short), MATH_POLY(atan_f64) };
static const math_poly asin_poly[GRADE_COUNT] = { MATH_POLY(asin_short), MATH_POLY(asin_short), MATH_POLY(asin_f64) };

#define QUARTER 0x1.921fb54442d18p-1 /* pi / 4, and the rest that rounding it leaves */
#define QUARTER_LOW 0x1.1a62633145c07p-55

/* --- atan ------------------------------------------------------------------------------------------------------- */

/* The angle of (x, y), y >= 0, in quarters of pi plus a rest.  The smaller of |x| and y divided by the larger is at
 * most 1; above tan(pi / 8) the angle to the diagonal is used instead. */
static val angle(math *m, math_grade grade, val y, val x)
{
    const val a = m_abs(m, x), one = m_like(m, x, 1), zero = m_like(m, x, 0);
    const val swap = m_lt(m, a, y), left = m_ne(m, m_sign(m, x), m_word_const(m, x, 0));
    const val less = m_select(m, swap, a, y), more = m_select(m, swap, y, a);
    const val diagonal = m_lt(m, m_mul(m, more, m_like(m, x, 0x1.a827999fcef32p-2)), less);
    const val num = m_select(m, diagonal, m_sub(m, less, more), less),
              den = m_select(m, diagonal, m_add(m, less, more), more);
    const val t = m_div(m, num, den), z = m_mul(m, t, t);
    const val p = m_fma(m, m_mul(m, t, z), opjit_ir_math_poly(m, &atan_poly[grade], z), t);
    val quarters = m_select(m, diagonal, one, zero);
    quarters = m_select(m, swap, m_sub(m, m_like(m, x, 2), quarters), quarters);
    quarters = m_select(m, left, m_sub(m, m_like(m, x, 4), quarters), quarters);
    const val turned = m_xor(m, swap, left), rest = m_select(m, turned, m_neg(m, p), p);
    return m_fma(m, quarters, m_like(m, x, QUARTER), m_fma(m, quarters, m_like(m, x, QUARTER_LOW), rest));
}

val opjit_ir_math_atan(math *m, math_grade grade, val x)
{
    const val one = m_like(m, x, 1), a = m_min(m, m_abs(m, x), m_like(m, x, 0x1p1000));
    return m_with_sign(m, angle(m, grade, a, one), m_sign(m, x));
}

/* Infinities count as 1 against 0, or as 1 against 1; 0 / 0 counts as 0 / 1.  Large numbers are scaled down so that
 * their sum is finite. */
val opjit_ir_math_atan2(math *m, math_grade grade, val y, val x)
{
    const val a = m_abs(m, y), b = m_abs(m, x), infinity = m_like(m, x, INFINITY), one = m_like(m, x, 1),
              zero = m_like(m, x, 0);
    const val y_far = m_eq(m, a, infinity), x_far = m_eq(m, b, infinity), far = m_or(m, y_far, x_far);
    const val large = m_lt(m, m_like(m, x, 0x1p1000), m_max(m, a, b)),
              by = m_select(m, large, m_like(m, x, 0x1p-100), one);
    const val none = m_and(m, m_eq(m, a, zero), m_eq(m, b, zero));
    const val nan = m_or(m, m_ne(m, x, x), m_ne(m, y, y));
    val up = m_select(m, far, m_select(m, y_far, one, zero), m_mul(m, a, by));
    val along = m_select(m, far, m_select(m, x_far, one, zero), m_select(m, none, one, m_mul(m, b, by)));
    up = m_select(m, nan, m_add(m, x, y), up);
    along = m_with_sign(m, along, m_sign(m, x));
    return m_with_sign(m, angle(m, grade, up, along), m_sign(m, y));
}

/* --- asin, acos ------------------------------------------------------------------------------------------------- */

typedef struct arc {
    val p;      /* asin |x|, or half of acos |x| where |x| > 1/2 */
    val beyond; /* |x| > 1/2 */
} arc;

static arc arc_of(math *m, math_grade grade, val a)
{
    const val half = m_like(m, a, 0.5), beyond = m_lt(m, half, a);
    const val z = m_select(m, beyond, m_mul(m, m_sub(m, m_like(m, a, 1), a), half), m_mul(m, a, a));
    const val s = m_select(m, beyond, m_sqrt(m, z), a);
    return (arc){ m_fma(m, m_mul(m, s, z), opjit_ir_math_poly(m, &asin_poly[grade], z), s), beyond };
}

/* quarters * pi / 4 + by * p */
static val turn(math *m, val p, double quarters, double by)
{
    const val low = m_fma(m, p, m_like(m, p, by), m_like(m, p, quarters * QUARTER_LOW));
    return m_add(m, m_like(m, p, quarters * QUARTER), low);
}

val opjit_ir_math_asin(math *m, math_grade grade, val x)
{
    const arc a = arc_of(m, grade, m_abs(m, x));
    return m_with_sign(m, m_select(m, a.beyond, turn(m, a.p, 2, -2), a.p), m_sign(m, x));
}

val opjit_ir_math_acos(math *m, math_grade grade, val x)
{
    const arc a = arc_of(m, grade, m_abs(m, x));
    const val right = m_lt(m, m_like(m, x, 0), x), signed_p = m_flip_sign(m, a.p, m_sign(m, x));
    const val beyond = m_select(m, right, m_add(m, a.p, a.p), turn(m, a.p, 4, -2));
    return m_select(m, a.beyond, beyond, turn(m, signed_p, 2, -1));
}
