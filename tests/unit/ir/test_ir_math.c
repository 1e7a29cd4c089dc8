/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_math.c - mathematical functions as the interpreter and folding compute them: within the bounds of
 * ir/README.md, on samples and on every corner case.  test_cg_math.c compares compiled code with them, and can try
 * every f32. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval/math.h"
#include "tests/support/math.h"
#include "tests/support/random.h"

static float call_f32(ir_op op, float x, float y)
{
    uint32_t a, b, c;
    memcpy(&a, &x, sizeof(a));
    memcpy(&b, &y, sizeof(b));
    uint64_t out;
    ck_assert(opjit_ir_scalar(op, IR_F32, IR_F32, (uint64_t[]){ a, b }, &out));
    c = (uint32_t)out;
    memcpy(&x, &c, sizeof(x));
    return x;
}

static double call_f64(ir_op op, double x, double y)
{
    uint64_t a, b, out;
    memcpy(&a, &x, sizeof(a));
    memcpy(&b, &y, sizeof(b));
    ck_assert(opjit_ir_scalar(op, IR_F64, IR_F64, (uint64_t[]){ a, b }, &out));
    memcpy(&x, &out, sizeof(x));
    return x;
}

static bool is_binary(const test_math *f)
{
    return f->op == IR_POW || f->op == IR_ATAN2;
}

/* A third any bits, a third near the function's special points, a third near powers of two and small numbers. */
static double sample(const test_math *f, test_random *r, bool single)
{
    const uint64_t bits = test_random_u64(r);
    const double part = (double)(bits >> 11) * 0x1p-53, sign = bits & 1 ? -1 : 1;
    uint32_t word = (uint32_t)bits;
    float x;
    double y;
    switch (test_random_below(r, 3)) {
    case 0:
        memcpy(&x, &word, sizeof(x));
        memcpy(&y, &bits, sizeof(y));
        return single ? x : y;
    case 1: return f->lo + (f->hi - f->lo) * part;
    default: return sign * ldexp(1 + ldexp(part, (int)(bits >> 1 & 15) - 15), (int)(bits >> 5 & 63) - 40);
    }
}

static const double corners[] = {
    0,
    0x1p-149,
    0x1p-126,
    0x1p-127,
    0x1.fffffep-127,
    0x1p-1074,
    0x1p-1022,
    0x1p-60,
    0x1p-25,
    0x1p-14,
    0x1p-13,
    0.25,
    0.3465736,
    0.5,
    0x1.1e7172p-2, /* log1p in f32 was above its bound here, when it was computed there */
    0x1.ba2162p-1, /* the worst of tanh in f32 that was met, when it was computed there */
    0x1.da256ap-1, /* likewise of erf */
    0x1.fffffep-1,
    0x1.fffffffffffffp-1,
    0.98,
    1,
    0x1.000002p0,
    0x1.0000000000001p0,
    1.5,
    2,
    3,
    3.9,
    4,
    5.9,
    6,
    9.01,
    17.3,
    18.4,
    22,
    37,
    87.3365,
    88.02969,
    88.72283,
    88.72284,
    89.4,
    89.41599,
    90,
    103.97208,
    103.972084,
    104.5,
    709.782712893384,
    709.7827128933841,
    710.4758,
    745.1332191019411,
    745.1332191019412,
    746,
    0x1p23,
    0x1.000002p24,
    0x1p40,
    0x1p45,
    0x1.0000000000001p45,
    0x1p53,
    0x1p80,
    0x1.f9cbe2p7,
    0x1p120,
    0x1.fffffep127,
    0x1.6ac5b262ca1ffp849, /* 6381956970095103 * 2^797: the nearest to a multiple of pi / 2 */
    DBL_MAX,
    1.57079637,
    1.5707963267948966,
    3.14159274,
    3.141592653589793,
    6.28318548,
    INFINITY,
    NAN,
};
enum { CORNERS = sizeof(corners) / sizeof(corners[0]) };

static void expect_f32(const test_math *f, float x, float y, double *worst)
{
    const float got = call_f32(f->op, x, y);
    double error = test_math_estimate_f32(f, x, y, got);
    if (error > f->bound_f32 - 0.01)
        error = test_math_error_f32(f, x, y, got);
    *worst = error > *worst ? error : *worst;
    ck_assert_msg(error <= f->bound_f32, "%s f32 (%a, %a) is %a: %g ulp", opjit_ir_op_infos[f->op].name, (double)x,
                  (double)y, (double)got, error);
}

static void expect_f64(const test_math *f, double x, double y, double *worst)
{
    const double got = call_f64(f->op, x, y), error = test_math_error_f64(f, x, y, got);
    *worst = error > *worst ? error : *worst;
    ck_assert_msg(error <= f->bound_f64, "%s f64 (%a, %a) is %a: %g ulp", opjit_ir_op_infos[f->op].name, x, y, got,
                  error);
}

START_TEST(every_corner)
{
    const test_math *f = &test_math_functions[_i];
    double worst = 0;
    for (uint32_t i = 0; i < 2 * CORNERS; i++)
        for (uint32_t k = 0; k < (is_binary(f) ? 2 * CORNERS : 1); k++) {
            const double x = i & 1 ? -corners[i / 2] : corners[i / 2], y = k & 1 ? -corners[k / 2] : corners[k / 2];
            if (x == (double)(float)x || isnan(x) || !is_binary(f))
                expect_f32(f, (float)x, (float)y, &worst);
            expect_f64(f, x, y, &worst);
        }
}
END_TEST

static uint32_t samples(uint32_t count)
{
    const char *text = getenv("OPJIT_MATH_SAMPLES"); /* a multiple of the usual count */
    return text ? count * (uint32_t)strtoul(text, NULL, 10) : count;
}

START_TEST(sample_f32)
{
    const test_math *f = &test_math_functions[_i];
    test_random r;
    double worst = 0;
    test_random_init(&r, 1, (uint64_t)f->op, 32);
    for (uint32_t i = samples(20000); i-- > 0;)
        expect_f32(f, (float)sample(f, &r, true), (float)sample(f, &r, true), &worst);
    printf("%s f32 %.3f ulp\n", opjit_ir_op_infos[f->op].name, worst);
}
END_TEST

START_TEST(sample_f64)
{
    const test_math *f = &test_math_functions[_i];
    test_random r;
    double worst = 0;
    test_random_init(&r, 1, (uint64_t)f->op, 64);
    for (uint32_t i = samples(2000); i-- > 0;)
        expect_f64(f, sample(f, &r, false), sample(f, &r, false), &worst);
    printf("%s f64 %.3f ulp\n", opjit_ir_op_infos[f->op].name, worst);
}
END_TEST

/* The doubles m * 2^p of each exponent that are nearest to multiples of pi / 2: m is the denominator of a
 * continued-fraction approximation of 2^p * 2 / pi. */
static uint64_t next_denominator(mpfr_t rest, uint64_t *last, uint64_t *m)
{
    const uint64_t digit = mpfr_get_exp(rest) > 60 ? UINT64_C(1) << 60 : mpfr_get_ui(rest, MPFR_RNDD);
    const uint64_t next = digit > (UINT64_C(1) << 53) / *m ? UINT64_MAX : digit * *m + *last;
    *last = *m;
    *m = next;
    mpfr_sub_ui(rest, rest, digit, MPFR_RNDN);
    mpfr_ui_div(rest, 1, rest, MPFR_RNDN);
    return next;
}

START_TEST(near_multiples)
{
    static const ir_op ops[3] = { IR_SIN, IR_COS, IR_TAN };
    const test_math *f = test_math_functions;
    double worst = 0;
    mpfr_t turns, rest;
    while (f->op != ops[_i])
        f++;
    mpfr_init2(turns, 1400);
    mpfr_init2(rest, 1400);
    for (int p = -60; p <= 971; p++) {
        uint64_t last = 0, m = 1;
        mpfr_const_pi(turns, MPFR_RNDN);
        mpfr_ui_div(turns, 2, turns, MPFR_RNDN);
        mpfr_mul_2si(turns, turns, p, MPFR_RNDN);
        mpfr_frac(rest, turns, MPFR_RNDN);
        mpfr_ui_div(rest, 1, rest, MPFR_RNDN);
        for (uint64_t next = m; next < UINT64_C(1) << 53; next = next_denominator(rest, &last, &m))
            if (next >= UINT64_C(1) << 45)
                expect_f64(f, p & 1 ? -ldexp((double)next, p) : ldexp((double)next, p), 0, &worst);
    }
    mpfr_clears(turns, rest, (mpfr_ptr)NULL);
    printf("%s f64 near multiples of pi / 2 %.3f ulp\n", opjit_ir_op_infos[f->op].name, worst);
}
END_TEST

/* Beyond 2^45, of every exponent. */
START_TEST(far_operands)
{
    static const ir_op ops[3] = { IR_SIN, IR_COS, IR_TAN };
    const test_math *f = test_math_functions;
    test_random r;
    double worst = 0;
    test_random_init(&r, 1, 45, (uint64_t)_i);
    while (f->op != ops[_i])
        f++;
    for (uint32_t i = samples(4000); i-- > 0;) {
        const double fraction = (double)(test_random_u64(&r) >> 12) * 0x1p-52;
        expect_f64(f, ldexp(1 + fraction, 45 + (int)(i % 979)), 0, &worst);
    }
    printf("%s f64 beyond 2^45 %.3f ulp\n", opjit_ir_op_infos[f->op].name, worst);
}
END_TEST

/* f16 goes through f32 and is rounded once more. */
START_TEST(halves_go_through_f32)
{
    for (uint32_t h = 0; h < 0x10000; h += 7)
        for (uint32_t i = 0; i < TEST_MATH_COUNT; i++) {
            uint64_t out;
            const uint16_t other = (uint16_t)(h * 40503u);
            const float x = opjit_ir_f16_to_f32((uint16_t)h), y = opjit_ir_f16_to_f32(other);
            const float wide = call_f32(test_math_functions[i].op, x, y);
            ck_assert(opjit_ir_scalar(test_math_functions[i].op, IR_F16, IR_F16, (uint64_t[]){ h, other }, &out));
            const float got = opjit_ir_f16_to_f32((uint16_t)out), want = opjit_ir_f16_to_f32(opjit_ir_f32_to_f16(wide));
            ck_assert(got == want || (isnan(got) && isnan(want)));
        }
}
END_TEST

static void expect_same_below(ir_type type, uint64_t bits)
{
    math any = { .steps = NULL }, below = { .below = true };
    const val x = { bits, type };
    const uint64_t got = opjit_ir_math(&below, IR_EXP, x, x).bits, want = opjit_ir_math(&any, IR_EXP, x, x).bits;
    const uint64_t infinite = type == IR_F16 ? 0x7c00 : type == IR_F32 ? 0x7f800000 : UINT64_C(0x7ff) << 52;
    const uint64_t magnitude = infinite | (infinite - 1);
    const bool both_nan = (got & magnitude) > infinite && (want & magnitude) > infinite;
    ck_assert_msg(got == want || both_nan, "exp of %#llx is %#llx, must be %#llx", (unsigned long long)bits,
                  (unsigned long long)got, (unsigned long long)want);
}

/* The shorter sequence for operands of at most 0: every f16, a sample of the others, and NaNs of both signs. */
START_TEST(exp_below)
{
    test_random r;
    test_random_init(&r, 1, IR_EXP, 0);
    expect_same_below(IR_F32, 0);
    expect_same_below(IR_F64, 0);
    for (uint32_t h = 0; h < 0x8000; h++) {
        expect_same_below(IR_F16, 0x8000 | h);
        expect_same_below(IR_F32, UINT32_C(0x80000000) | h << 16);
        expect_same_below(IR_F64, UINT64_C(1) << 63 | (uint64_t)h << 48);
    }
    for (uint32_t i = samples(200000); i-- > 0;) {
        const uint64_t bits = test_random_u64(&r);
        const float x = -104.6f * (float)(bits >> 40) * 0x1p-24f;
        const double y = -746.1 * (double)(bits >> 11) * 0x1p-53;
        uint32_t single;
        uint64_t twice;
        memcpy(&single, &x, sizeof(single));
        memcpy(&twice, &y, sizeof(twice));
        expect_same_below(IR_F32, single);
        expect_same_below(IR_F64, twice);
        expect_same_below(IR_F32, UINT32_C(0x80000000) | (uint32_t)bits);
        expect_same_below(IR_F64, UINT64_C(1) << 63 | bits);
    }
    for (uint32_t i = 1; i < 100; i++)
        expect_same_below(IR_F32, 0x7f800000 + i * 83777);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ir.math");
    TCase *t = tcase_create("math");
    tcase_add_loop_test(t, every_corner, 0, TEST_MATH_COUNT);
    tcase_add_loop_test(t, sample_f32, 0, TEST_MATH_COUNT);
    tcase_add_loop_test(t, sample_f64, 0, TEST_MATH_COUNT);
    tcase_add_loop_test(t, near_multiples, 0, 3);
    tcase_add_loop_test(t, far_operands, 0, 3);
    tcase_add_test(t, halves_go_through_f32);
    tcase_add_test(t, exp_below);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
