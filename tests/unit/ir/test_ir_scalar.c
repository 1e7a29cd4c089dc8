/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_scalar.c - the meaning of ops on values: conversions exhaustively where 16 bits allow it, every specified
 * corner case by table, f16 arithmetic against exact arithmetic in wider types. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static uint64_t seed;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1du;
}

static void start_random(void)
{
    const char *text = getenv("OPJIT_SEED");
    seed = text ? strtoull(text, NULL, 0) : 20240607;
    seed += seed == 0;
    printf("OPJIT_SEED=%llu\n", (unsigned long long)seed);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* --- f16 ---------------------------------------------------------------------------------------------------------- */

/* The value of a finite f16, from the definition of the format. */
static double half_value(uint32_t h)
{
    const int exponent = (int)(h >> 10 & 31);
    const double fraction = (double)(h & 1023);
    const double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return h >> 15 ? -magnitude : magnitude;
}

static double half_values[0x7c01]; /* of 0 to 0x7c00; the last, infinity, stands for 2^16 here */

static void fill_half_values(void)
{
    for (uint32_t h = 0; h < 0x7c00; h++)
        half_values[h] = half_value(h);
    half_values[0x7c00] = 65536;
}

/* The nearest f16, halves to even, by search over all of them: x is exact, and so are the distances. */
static uint32_t nearest_half(long double x)
{
    const uint32_t sign = signbit(x) ? 0x8000 : 0;
    const long double magnitude = fabsl(x);
    uint32_t lo = 0, hi = 0x7c00;
    if (magnitude >= 65536)
        return sign | 0x7c00;
    while (hi - lo > 1) {
        const uint32_t middle = (lo + hi) / 2;
        if ((long double)half_values[middle] <= magnitude)
            lo = middle;
        else
            hi = middle;
    }
    const long double down = magnitude - (long double)half_values[lo], up = (long double)half_values[hi] - magnitude;
    return sign | (down < up || (down == up && lo % 2 == 0) ? lo : hi);
}

START_TEST(half_to_float_and_back)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float x = opjit_ir_f16_to_f32((uint16_t)h);
        if ((h & 0x7c00) != 0x7c00)
            ck_assert_msg((double)x == half_value(h) && !signbit(x) == !(h >> 15), "%04x gives %a", h, x);
        else
            ck_assert_msg((h & 0x3ff) ? isnan(x) : isinf(x) && !signbit(x) == !(h >> 15), "%04x gives %a", h, x);
        const uint32_t quiet = (h & 0x7c00) == 0x7c00 && (h & 0x3ff) ? h | 0x200 : h;
        ck_assert_uint_eq(opjit_ir_f32_to_f16(x), quiet);
        ck_assert_uint_eq(opjit_ir_f64_to_f16((double)x), quiet);
    }
}
END_TEST

/* Values around every boundary between two f16: the middle, a little below, a little above. */
START_TEST(rounding_to_half)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const double above = h + 1 == 0x7c00 ? 65536 : half_value(h + 1), middle = (half_value(h) + above) / 2;
        const float near[3] = { (float)middle, nextafterf((float)middle, 0), nextafterf((float)middle, INFINITY) };
        const double wide[3] = { middle, nextafter(middle, 0), nextafter(middle, INFINITY) };
        for (int i = 0; i < 3; i++) {
            ck_assert_uint_eq(opjit_ir_f32_to_f16(near[i]), nearest_half(near[i]));
            ck_assert_uint_eq(opjit_ir_f32_to_f16(-near[i]), nearest_half(-near[i]));
            ck_assert_uint_eq(opjit_ir_f64_to_f16(wide[i]), nearest_half(wide[i]));
        }
    }
    ck_assert_uint_eq(opjit_ir_f64_to_f16(double_of(1)), 0);
    ck_assert_uint_eq(opjit_ir_f32_to_f16(float_of(0x80000001)), 0x8000);
    ck_assert_uint_eq(opjit_ir_f32_to_f16(65520), 0x7c00);
    ck_assert_uint_eq(opjit_ir_f32_to_f16(nextafterf(65520, 0)), 0x7bff);
    /* rounding twice would go through 1 + 2^-11 and down to 1 */
    ck_assert_uint_eq(opjit_ir_f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
}
END_TEST

START_TEST(random_rounding)
{
    start_random();
    for (int i = 0; i < 50000; i++) {
        const float x = float_of((uint32_t)(next_random() >> 32));
        const double y = ldexp((double)(int64_t)next_random(), -63 - (int)(next_random() % 30) + 16);
        if (isfinite(x))
            ck_assert_uint_eq(opjit_ir_f32_to_f16(x), nearest_half(x));
        ck_assert_uint_eq(opjit_ir_f64_to_f16(y), nearest_half(y));
    }
}
END_TEST

/* Long double has 64 bits of significand and sums of f16 products need up to 80, so only exact sums are checked. */
START_TEST(half_arithmetic)
{
    start_random();
    for (int i = 0; i < 50000; i++) {
        const uint64_t args[3] = { next_random() >> 48, next_random() >> 48, next_random() >> 48 };
        uint64_t out;
        if ((args[0] & 0x7c00) == 0x7c00 || (args[1] & 0x7c00) == 0x7c00 || (args[2] & 0x7c00) == 0x7c00)
            continue;
        const long double a = half_value((uint32_t)args[0]), b = half_value((uint32_t)args[1]),
                          c = half_value((uint32_t)args[2]);
        ck_assert(opjit_ir_scalar(IR_ADD, IR_F16, IR_F16, args, &out));
        ck_assert_uint_eq(out, nearest_half(a + b));
        ck_assert(opjit_ir_scalar(IR_MUL, IR_F16, IR_F16, args, &out));
        ck_assert_uint_eq(out, nearest_half(a * b));
        ck_assert(opjit_ir_scalar(IR_FMA, IR_F16, IR_F16, args, &out));
        const long double sum = a * b + c, rest = (sum - a * b) - c;
        if (rest == 0 && (sum - c) - a * b == 0)
            ck_assert_uint_eq(out, nearest_half(sum));
        if (b != 0) { /* the f16 nearest to the quotient, by products: no value between them is nearer */
            ck_assert(opjit_ir_scalar(IR_DIV, IR_F16, IR_F16, args, &out));
            ck_assert_uint_eq(out, nearest_half(a / b));
        }
        if (a >= 0) {
            ck_assert(opjit_ir_scalar(IR_SQRT, IR_F16, IR_F16, args, &out));
            ck_assert_uint_eq(out, nearest_half(sqrtl(a)));
        }
    }
}
END_TEST

START_TEST(half_fma_is_rounded_once)
{
    /* A tie goes to even, but an addend far below a double's precision must break it. */
    const uint64_t up[3] = { 0x6801, 0x6400, 0x0001 }; /* 2050 * 1024 + 2^-24 overflows: infinity */
    const uint64_t tie[3] = { 0x3c01, 0x3801, 0x0001 };
    uint64_t out;
    ck_assert(opjit_ir_scalar(IR_FMA, IR_F16, IR_F16, up, &out));
    ck_assert_uint_eq(out, 0x7c00);
    ck_assert(opjit_ir_scalar(IR_FMA, IR_F16, IR_F16, tie, &out));
    ck_assert_uint_eq(out, nearest_half((long double)half_value(0x3c01) * half_value(0x3801) + half_value(1)));
    /* the product is a middle of two f16; the addend 2^-24 decides on either side */
    const uint64_t middle[3] = { 0x6400 | 1, 0x3c00 | 512, 0x0001 }; /* 1025 * 1.5 = 1537.5: a middle of f16 */
    ck_assert(opjit_ir_scalar(IR_FMA, IR_F16, IR_F16, middle, &out));
    ck_assert_uint_eq(out, nearest_half(1537.5L + 0x1p-24L));
    const uint64_t below[3] = { middle[0], middle[1], 0x8001 };
    ck_assert(opjit_ir_scalar(IR_FMA, IR_F16, IR_F16, below, &out));
    ck_assert_uint_eq(out, nearest_half(1537.5L - 0x1p-24L));
}
END_TEST

/* --- corners ------------------------------------------------------------------------------------------------------ */

#define F32_NAN 0x7fc00001u
#define F32_INF 0x7f800000u
#define F32_MINUS_INF 0xff800000u
#define F32_ONE 0x3f800000u
#define F32_MINUS_ZERO 0x80000000u

typedef struct corner {
    ir_op op;
    ir_type type, from;
    uint64_t args[3], out;
} corner;

static const corner corners[] = {
    { IR_DIV, IR_I8, IR_I8, { 5, 0 }, 0xff },
    { IR_DIV, IR_U16, IR_U16, { 5, 0 }, 0xffff },
    { IR_DIV, IR_I64, IR_I64, { 5, 0 }, UINT64_MAX },
    { IR_DIV, IR_I8, IR_I8, { 0x80, 0xff }, 0x80 },
    { IR_DIV, IR_I64, IR_I64, { (uint64_t)INT64_MIN, UINT64_MAX }, (uint64_t)INT64_MIN },
    { IR_DIV, IR_I32, IR_I32, { 0xfffffff9, 2 }, 0xfffffffd },
    { IR_REM, IR_I32, IR_I32, { 0xfffffff9, 2 }, 0xffffffff },
    { IR_REM, IR_I32, IR_I32, { 7, 0 }, 7 },
    { IR_REM, IR_I16, IR_I16, { 0x8000, 0xffff }, 0 },
    { IR_REM, IR_U8, IR_U8, { 200, 0 }, 200 },
    { IR_ADD, IR_U8, IR_U8, { 200, 100 }, 44 },
    { IR_SUB, IR_I8, IR_I8, { 0x80, 1 }, 0x7f },
    { IR_MUL, IR_I32, IR_I32, { 0x10001, 0x10001 }, 0x20001 },
    { IR_NEG, IR_I8, IR_I8, { 0x80 }, 0x80 },
    { IR_ABS, IR_I8, IR_I8, { 0x80 }, 0x80 },
    { IR_ABS, IR_I16, IR_I16, { 0xfffb }, 5 },
    { IR_ABS, IR_U8, IR_U8, { 0x80 }, 0x80 },
    { IR_MIN, IR_I8, IR_I8, { 0x80, 1 }, 0x80 },
    { IR_MAX, IR_U8, IR_U8, { 0x80, 1 }, 0x80 },
    { IR_SHL, IR_I8, IR_I8, { 1, 8 }, 0 },
    { IR_SHL, IR_I8, IR_I8, { 1, 0xff }, 0 },
    { IR_SHL, IR_U32, IR_U32, { 3, 31 }, 0x80000000 },
    { IR_SHR, IR_I8, IR_I8, { 0x80, 3 }, 0xf0 },
    { IR_SHR, IR_I8, IR_I8, { 0x80, 200 }, 0xff },
    { IR_SHR, IR_U64, IR_U64, { UINT64_MAX, 64 }, 0 },
    { IR_SHR, IR_I64, IR_I64, { (uint64_t)INT64_MIN, 64 }, UINT64_MAX },
    { IR_NOT, IR_BOOL, IR_BOOL, { 1 }, 0 },
    { IR_NOT, IR_U8, IR_U8, { 1 }, 0xfe },
    { IR_CTPOP, IR_U64, IR_U64, { UINT64_MAX }, 64 },
    /* bytes 0xff and 0x80: 255 or -1, 128 or -128 */
    { IR_DOT4_UU, IR_I32, IR_I32, { 7, 0xff0280ff, 0x80ff0301 }, 7 + 255 * 128 + 2 * 255 + 128 * 3 + 255 },
    { IR_DOT4_US, IR_I32, IR_I32, { 7, 0xff0280ff, 0x80ff0301 }, (uint32_t)(7 - 255 * 128 - 2 + 128 * 3 + 255) },
    { IR_DOT4_SS, IR_I32, IR_I32, { 7, 0xff0280ff, 0x80ff0301 }, (uint32_t)(7 + 128 - 2 - 128 * 3 - 1) },
    { IR_DOT4_SS, IR_I32, IR_I32, { 0x7fffffff, 1, 1 }, 0x80000000 },
    { IR_DOT2, IR_I32, IR_I32, { 7, 0xffff0002, 0x0003ff01 }, (uint32_t)(7 - 3 - 2 * 255) },
    { IR_DOT2, IR_I32, IR_I32, { 1, 0x80008000, 0x80008000 }, 0x80000001 },
    { IR_HALVES, IR_I32, IR_I16, { 0x80ff }, 0xff80ffff },
    { IR_HALVES, IR_I32, IR_U16, { 0x80ff }, 0x008000ff },
    /* min and max: the second operand where neither is less, NaN of the first */
    { IR_MIN, IR_F32, IR_F32, { F32_NAN, F32_ONE }, F32_NAN },
    { IR_MIN, IR_F32, IR_F32, { F32_ONE, F32_NAN }, F32_NAN },
    { IR_MAX, IR_F32, IR_F32, { 0, F32_MINUS_ZERO }, F32_MINUS_ZERO },
    { IR_MAX, IR_F32, IR_F32, { F32_MINUS_ZERO, 0 }, 0 },
    { IR_MIN, IR_F16, IR_F16, { 0x7e01, 0x3c00 }, 0x7e01 },
    { IR_NEG, IR_F32, IR_F32, { F32_NAN }, F32_NAN | 0x80000000u },
    { IR_ABS, IR_F64, IR_F64, { 0xfff0000000000001 }, 0x7ff0000000000001 },
    { IR_NEG, IR_F16, IR_F16, { 0 }, 0x8000 },
    { IR_REM, IR_F32, IR_F32, { F32_MINUS_ZERO, F32_INF }, F32_MINUS_ZERO },
    { IR_RINT, IR_F32, IR_F32, { 0x40200000 }, 0x40000000 }, /* 2.5 */
    { IR_RINT, IR_F32, IR_F32, { 0xbf000000 }, F32_MINUS_ZERO },
    { IR_CEIL, IR_F16, IR_F16, { 0xb800 }, 0x8000 },
    { IR_SCALE, IR_F32, IR_F32, { F32_ONE, 0xc3148000 }, 1 },       /* -148.5, down to -149 */
    { IR_SCALE, IR_F32, IR_F32, { 0x3fc00000, 0xc3158000 }, 1 },    /* 1.5 * 2^-150: once, up */
    { IR_SCALE, IR_F32, IR_F32, { F32_ONE, 0x43480000 }, F32_INF }, /* 200 */
    { IR_SCALE, IR_F32, IR_F32, { F32_MINUS_ZERO, 0xff800000 }, F32_MINUS_ZERO },
    { IR_SCALE, IR_F32, IR_F32, { F32_NAN, 0xff800000 }, 0 },
    { IR_SCALE, IR_F64, IR_F64, { 1, 0x7fefffffffffffff }, 0x7ff0000000000000 },
    /* comparisons: ordered, except ne */
    { IR_EQ, IR_BOOL, IR_F32, { F32_NAN, F32_NAN }, 0 },
    { IR_NE, IR_BOOL, IR_F32, { F32_NAN, F32_NAN }, 1 },
    { IR_LT, IR_BOOL, IR_F32, { F32_NAN, F32_ONE }, 0 },
    { IR_LE, IR_BOOL, IR_F32, { F32_ONE, F32_NAN }, 0 },
    { IR_EQ, IR_BOOL, IR_F16, { 0x8000, 0 }, 1 },
    { IR_LT, IR_BOOL, IR_I8, { 0x80, 0 }, 1 },
    { IR_LT, IR_BOOL, IR_U8, { 0x80, 0 }, 0 },
    { IR_LT, IR_BOOL, IR_INDEX, { UINT64_MAX, 0 }, 1 },
    /* casts */
    { IR_NEAREST, IR_I32, IR_F32, { 0x40200000 }, 2 },                      /* 2.5 */
    { IR_NEAREST, IR_I32, IR_F32, { 0xc0600000 }, (uint32_t)-4 },           /* -3.5 */
    { IR_NEAREST, IR_I32, IR_F32, { 0x4effffff }, 2147483520 },             /* the last one below 2^31 */
    { IR_NEAREST, IR_I32, IR_F32, { 0x4f000000 }, (uint32_t)INT32_MIN },    /* 2^31 */
    { IR_NEAREST, IR_I32, IR_F32, { 0xcf000000 }, (uint32_t)INT32_MIN },    /* -2^31 */
    { IR_NEAREST, IR_I32, IR_F32, { F32_MINUS_INF }, (uint32_t)INT32_MIN },
    { IR_NEAREST, IR_I32, IR_F32, { F32_NAN }, (uint32_t)INT32_MIN },
    { IR_CAST, IR_I8, IR_F32, { F32_NAN }, 0 },
    { IR_CAST, IR_I8, IR_F32, { F32_INF }, 0x7f },
    { IR_CAST, IR_I8, IR_F32, { F32_MINUS_INF }, 0x80 },
    { IR_CAST, IR_U8, IR_F32, { 0xbfc00000 }, 0 }, /* -1.5 */
    { IR_CAST, IR_I32, IR_F32, { 0xbfc00000 }, 0xffffffff },
    { IR_CAST, IR_I64, IR_F32, { 0x5f000000 }, INT64_MAX },  /* 2^63 */
    { IR_CAST, IR_U64, IR_F32, { 0x5f800000 }, UINT64_MAX }, /* 2^64 */
    { IR_CAST, IR_U64, IR_F64, { 0x43efffffffffffff }, 0xfffffffffffff800 },
    { IR_CAST, IR_I64, IR_F16, { 0xfbff }, (uint64_t)-65504 },
    { IR_CAST, IR_U16, IR_I8, { 0xff }, 0xffff },
    { IR_CAST, IR_I64, IR_U32, { 0xffffffff }, 0xffffffff },
    { IR_CAST, IR_I8, IR_U64, { 0x1234 }, 0x34 },
    { IR_CAST, IR_F32, IR_BOOL, { 1 }, F32_ONE },
    { IR_CAST, IR_BOOL, IR_F32, { F32_MINUS_ZERO }, 0 },
    { IR_CAST, IR_BOOL, IR_F32, { F32_NAN }, 1 },
    { IR_CAST, IR_F32, IR_I64, { 0x7fffffbfffffffff }, 0x5effffff }, /* one rounding: not up to 2^63 through double */
    { IR_CAST, IR_F16, IR_U16, { 65519 }, 0x7bff },
    { IR_CAST, IR_F16, IR_U16, { 65520 }, 0x7c00 },
    { IR_CAST, IR_F16, IR_U64, { UINT64_MAX }, 0x7c00 },
    { IR_CAST, IR_F16, IR_I32, { (uint32_t)-2049 }, 0xe800 },
    { IR_ELEM, IR_F32, IR_INDEX, { 16777217 }, 0x4b800000 },
    { IR_ELEM, IR_U8, IR_INDEX, { (uint64_t)-1 }, 0xff },
    { IR_TO_INDEX, IR_INDEX, IR_U64, { UINT64_MAX }, INT64_MAX },
    { IR_TO_INDEX, IR_INDEX, IR_I8, { 0xff }, UINT64_MAX },
    { IR_BITS, IR_I32, IR_F32, { F32_NAN }, F32_NAN },
    { IR_SELECT, IR_F32, IR_BOOL, { 1, F32_NAN, 2 }, F32_NAN },
    /* index arithmetic floors */
    { IR_IDIV, IR_INDEX, IR_INDEX, { (uint64_t)-7, 2 }, (uint64_t)-4 },
    { IR_IMOD, IR_INDEX, IR_INDEX, { (uint64_t)-7, 2 }, 1 },
    { IR_DOWN, IR_INDEX, IR_INDEX, { (uint64_t)-7, 4 }, (uint64_t)-8 },
    { IR_UP, IR_INDEX, IR_INDEX, { (uint64_t)-7, 4 }, (uint64_t)-4 },
    { IR_UP, IR_INDEX, IR_INDEX, { 8, 4 }, 8 },
    { IR_CLAMP, IR_INDEX, IR_INDEX, { 5, 9, 3 }, 3 }, /* hi wins */
};

START_TEST(one_corner)
{
    const corner *c = &corners[_i];
    uint64_t out = 0;
    ck_assert(opjit_ir_scalar(c->op, c->type, c->from, c->args, &out));
    ck_assert_msg(out == c->out, "%s %s: %llx, not %llx", opjit_ir_op_infos[c->op].name, opjit_ir_type_name(c->type),
                  (unsigned long long)out, (unsigned long long)c->out);
}
END_TEST

START_TEST(copies_keep_bits)
{
    uint64_t out = 0;
    ck_assert_uint_eq(opjit_ir_convert(IR_F32, IR_F32, 0x7f800001), 0x7f800001); /* signalling */
    ck_assert(opjit_ir_scalar(IR_FMA, IR_F32, IR_F32, (uint64_t[]){ 0x3f800001, 0x3f800001, 0xbf800002 }, &out));
    ck_assert_uint_eq(out, bits_of_float(0x1p-46f)); /* exact, where a product rounded first would give 0 */
    ck_assert_uint_eq(opjit_ir_convert(IR_F32, IR_F64, F32_ONE), bits_of(1));
    ck_assert(!opjit_ir_scalar(IR_LOAD, IR_F32, IR_F32, (uint64_t[]){ 0, 0, 0 }, &out));
    ck_assert(!opjit_ir_scalar(IR_STORE, IR_F32, IR_F32, (uint64_t[]){ 0, 0, 0 }, &out));
}
END_TEST

START_TEST(identities)
{
    ck_assert_uint_eq(opjit_ir_identity(IR_F32, IR_SUM), 0);
    ck_assert_uint_eq(opjit_ir_identity(IR_F16, IR_PROD), 0x3c00);
    ck_assert_uint_eq(opjit_ir_identity(IR_F32, IR_KMAX), F32_MINUS_INF);
    ck_assert_uint_eq(opjit_ir_identity(IR_F64, IR_KMIN), 0x7ff0000000000000);
    ck_assert_uint_eq(opjit_ir_identity(IR_I8, IR_KMAX), 0x80);
    ck_assert_uint_eq(opjit_ir_identity(IR_I8, IR_KMIN), 0x7f);
    ck_assert_uint_eq(opjit_ir_identity(IR_U16, IR_KMIN), 0xffff);
    ck_assert_uint_eq(opjit_ir_identity(IR_U16, IR_KMAX), 0);
}
END_TEST

int main(void)
{
    fill_half_values();
    Suite *suite = suite_create("ir.scalar");
    TCase *tests = tcase_create("scalar");
    tcase_add_test(tests, half_to_float_and_back);
    tcase_add_test(tests, rounding_to_half);
    tcase_add_test(tests, random_rounding);
    tcase_add_test(tests, half_arithmetic);
    tcase_add_test(tests, half_fma_is_rounded_once);
    tcase_add_loop_test(tests, one_corner, 0, (int)(sizeof(corners) / sizeof(corners[0])));
    tcase_add_test(tests, copies_keep_bits);
    tcase_add_test(tests, identities);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
