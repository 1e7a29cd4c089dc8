/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - errors of math functions in units of the last place: see math.h. */
#include "tests/support/math.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

const test_math test_math_functions[TEST_MATH_COUNT] = {
    { IR_EXP, 1, 1, -104, 89 },  { IR_EXPM1, 1, 2, -18, 89 }, { IR_LOG, 1, 1, 0, 4 },      { IR_LOG1P, 1, 1, -1, 4 },
    { IR_SIN, 1, 1, -100, 100 }, { IR_COS, 1, 1, -100, 100 }, { IR_TAN, 1, 2, -100, 100 }, { IR_ASIN, 1, 3, -1, 1 },
    { IR_ACOS, 1, 2, -1, 1 },    { IR_ATAN, 1, 2, -8, 8 },    { IR_SINH, 1, 2, -89, 89 },  { IR_COSH, 1, 2, -89, 89 },
    { IR_TANH, 1, 1, -9, 9 },    { IR_ASINH, 1, 3, -8, 8 },   { IR_ACOSH, 1, 3, 1, 8 },    { IR_ATANH, 1, 3, -1, 1 },
    { IR_ERF, 1, 1, -4, 4 },     { IR_POW, 1, 1, -8, 8 },     { IR_ATAN2, 1, 2, -8, 8 },
};

static double by_library(ir_op op, double x, double y)
{
    switch (op) {
    case IR_EXP: return exp(x);
    case IR_EXPM1: return expm1(x);
    case IR_LOG: return log(x);
    case IR_LOG1P: return log1p(x);
    case IR_SIN: return sin(x);
    case IR_COS: return cos(x);
    case IR_TAN: return tan(x);
    case IR_ASIN: return asin(x);
    case IR_ACOS: return acos(x);
    case IR_ATAN: return atan(x);
    case IR_SINH: return sinh(x);
    case IR_COSH: return cosh(x);
    case IR_TANH: return tanh(x);
    case IR_ASINH: return asinh(x);
    case IR_ACOSH: return acosh(x);
    case IR_ATANH: return atanh(x);
    case IR_ERF: return erf(x);
    case IR_POW: return pow(x, y);
    case IR_ATAN2: return atan2(x, y);
    default: return NAN;
    }
}

typedef int (*mpfr_function)(mpfr_t, mpfr_srcptr, mpfr_rnd_t);

static void by_mpfr(ir_op op, mpfr_t out, mpfr_t x, mpfr_t y)
{
    static const mpfr_function unary[IR_OP_COUNT] = {
        [IR_EXP] = mpfr_exp,   [IR_EXPM1] = mpfr_expm1, [IR_LOG] = mpfr_log,     [IR_LOG1P] = mpfr_log1p,
        [IR_SIN] = mpfr_sin,   [IR_COS] = mpfr_cos,     [IR_TAN] = mpfr_tan,     [IR_ASIN] = mpfr_asin,
        [IR_ACOS] = mpfr_acos, [IR_ATAN] = mpfr_atan,   [IR_SINH] = mpfr_sinh,   [IR_COSH] = mpfr_cosh,
        [IR_TANH] = mpfr_tanh, [IR_ASINH] = mpfr_asinh, [IR_ACOSH] = mpfr_acosh, [IR_ATANH] = mpfr_atanh,
        [IR_ERF] = mpfr_erf,
    };
    if (op == IR_POW)
        mpfr_pow(out, x, y, MPFR_RNDN);
    else if (op == IR_ATAN2)
        mpfr_atan2(out, x, y, MPFR_RNDN);
    else
        unary[op](out, x, MPFR_RNDN);
}

/* The error if the exact result is infinite, NaN or zero; otherwise -1. */
static double error_of_special(double exact, double got)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (isinf(exact))
        return got == exact ? 0 : INFINITY;
    if (exact == 0)
        return got == 0 && !signbit(got) == !signbit(exact) ? 0 : got == 0 ? INFINITY : -1;
    return -1;
}

/* The exponent of one ulp for numbers from 2^exponent to 2^(exponent + 1). */
static int ulp_exponent(int exponent, int fraction, int least)
{
    return exponent - fraction < least ? least : exponent - fraction;
}

/* single: with the 23 fraction bits of f32. */
static double error_exact(const test_math *f, double x, double y, double got, bool single)
{
    mpfr_t a, b, exact, distance;
    mpfr_inits2(53, a, b, (mpfr_ptr)NULL);
    mpfr_inits2(160, exact, distance, (mpfr_ptr)NULL);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_set_d(b, y, MPFR_RNDN);
    by_mpfr(f->op, exact, a, b);
    double error;
    if (!mpfr_regular_p(exact)) {
        error = error_of_special(mpfr_get_d(exact, MPFR_RNDN), got);
        error = error < 0 ? INFINITY : error;
    } else if (isnan(got) || (got == 0 && !signbit(got) != (mpfr_sgn(exact) > 0))) {
        error = INFINITY;
    } else {
        const int ulp = single ? ulp_exponent((int)mpfr_get_exp(exact) - 1, 23, -149)
                               : ulp_exponent((int)mpfr_get_exp(exact) - 1, 52, -1074);
        const int most = single ? 128 : 1024;
        if (isinf(got))
            mpfr_set_si_2exp(distance, got < 0 ? -1 : 1, most, MPFR_RNDN);
        else
            mpfr_set_d(distance, got, MPFR_RNDN);
        if (isinf(got) && mpfr_get_exp(exact) > most)
            mpfr_set(distance, exact, MPFR_RNDN); /* beyond every finite number, as it should be */
        mpfr_sub(distance, distance, exact, MPFR_RNDN);
        mpfr_div_2si(distance, distance, ulp, MPFR_RNDN);
        error = fabs(mpfr_get_d(distance, MPFR_RNDN));
    }
    mpfr_clears(a, b, exact, distance, (mpfr_ptr)NULL);
    return error;
}

double test_math_error_f32(const test_math *f, float x, float y, float got)
{
    return error_exact(f, x, y, got, true);
}

double test_math_error_f64(const test_math *f, double x, double y, double got)
{
    return error_exact(f, x, y, got, false);
}

double test_math_estimate_f32(const test_math *f, float x, float y, float got)
{
    const double exact = by_library(f->op, x, y);
    const double special = error_of_special(exact, got);
    if (special >= 0)
        return special;
    if (got == 0 && !signbit(got) != !signbit(exact))
        return INFINITY;
    const double most = isinf(got) ? copysign(fabs(exact) > 0x1p128 ? fabs(exact) : 0x1p128, got) : got;
    return ldexp(fabs(most - exact), -ulp_exponent(exact == 0 ? -1000 : ilogb(exact), 23, -149));
}

bool test_math_rounded_f32(const test_math *f, float x, float got)
{
    const float want = (float)by_library(f->op, x, x);
    return memcmp(&want, &got, sizeof(want)) == 0 || (isnan(want) && isnan(got));
}
