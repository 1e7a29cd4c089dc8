/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_soft.c - software fma, fmod and f16 conversions on hard cases: cancellation, halfway points, underflow
 * and overflow, against libm; and every f16.  On levels without instructions for them. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <math.h>

enum { COUNT = 512, WAYS = 5 };

/* Scalars, and vectors smaller than, as large as and larger than a register. */
static const struct way {
    const char *target;
    uint32_t level, lanes;
} ways[WAYS] = { { "cpu:x86-64-v1", OPJIT_LEVEL_QUICK, 4 },
                 { "cpu:x86-64-v2", OPJIT_LEVEL_PEAK, 2 },
                 { "cpu:x86-64-v2", OPJIT_LEVEL_QUICK, 1 },
                 { "cpu:x86-64-v1", OPJIT_LEVEL_PEAK, 16 },
                 { "cpu:x86-64-v1+avx", OPJIT_LEVEL_QUICK, 2 } };

/* out[j] = op(a[j], b[j], c[j]) */
static harness_kernel compile(ir_op op, ir_type type, ir_type from, const struct way *way)
{
    ir_func f;
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "soft", NULL) == OPJIT_OK);
    const uint32_t count = (uint32_t)strlen(opjit_ir_op_infos[op].operands);
    uint32_t tensors[3];
    for (uint32_t i = 0; i < 3; i++)
        tensors[i] = harness_tensor(&f, IR_IN, from, 0, COUNT, i, "in");
    const uint32_t out = harness_tensor(&f, IR_OUT, type, 0, COUNT, 3, "out");
    const ir_ref stage = opjit_ir_stage(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 1), 1);
    const ir_ref loop = opjit_ir_for(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, COUNT), 1), j = ir_at(&f, loop)->ref;
    ir_ref top = 0, tail = 0, inner = 0, a[3];
    f.nodes[loop].vec = (uint16_t)way->lanes;
    for (uint32_t i = 0; i < 3; i++)
        a[i] = opjit_ir_load(&f, tensors[i], &j);
    opjit_ir_append(&f, 0, &top, stage);
    opjit_ir_append(&f, stage, &tail, loop);
    opjit_ir_append(&f, loop, &inner, opjit_ir_store(&f, out, opjit_ir_expr(&f, op, type, count, a), &j));
    ck_assert(!f.failed);
    harness_kernel k = harness_compile(&f, way->target, way->level);
    opjit_ir_free(&f);
    return k;
}

static void run(const harness_kernel *k, void *a, void *b, void *c, void *out)
{
    void *const buffers[4] = { a, b, c, out };
    harness_stage(k, 0)(buffers, NULL, NULL, NULL, 0, 1);
}

static double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

/* A double with few significant bits, so that products and sums meet exactly, in a range around `exponent`. */
static double sparse(test_random *r, int exponent)
{
    uint64_t fraction = 0;
    for (uint64_t bits = test_random_below(r, 5); bits > 0; bits--)
        fraction ^= (uint64_t)1 << test_random_below(r, 52);
    if (test_random_chance(r, 20))
        fraction = test_random_u64(r) >> 12;
    int biased = exponent + 1023 + (int)test_random_between(r, -3, 3);
    biased = biased < 0 ? 0 : biased > 2046 ? 2046 : biased;
    return f64_of((test_random_u64(r) & (uint64_t)1 << 63) | (uint64_t)biased << 52 | fraction);
}

/* ilogb, except -1074 for zeros, where C gives INT_MIN. */
static int exponent_of(double x)
{
    return x == 0 ? -1074 : ilogb(x);
}

static double random_sign(test_random *r, double x)
{
    return test_random_chance(r, 50) ? -x : x;
}

/* A product slightly off a power of two, by as much as its last bits, and an addend for which that power is half of its
 * last place, or another fraction: sums on both sides of a tie, at the tie, and away from it.  Of any size. */
static void near_tie(test_random *r, double *a, double *b, double *c)
{
    const int scale = (int)test_random_between(r, -1140, 1010), part = (int)test_random_between(r, 50, 56);
    const int of_a = (int)test_random_between(r, -1022, 1000);
    const double x = 1 + (double)test_random_below(r, 4) * 0x1p-52, y = 1 - (double)test_random_below(r, 4) * 0x1p-53;
    *a = random_sign(r, ldexp(x, of_a));
    *b = random_sign(r, ldexp(y, scale - of_a));
    *c = random_sign(r, ldexp(1 + (double)test_random_below(r, 8) * 0x1p-52, scale + part));
}

START_TEST(fma_f64)
{
    static double a[COUNT], b[COUNT], c[COUNT], out[COUNT];
    if (!test_runs_here(ways[_i].target))
        return;
    harness_kernel k = compile(IR_FMA, IR_F64, IR_F64, &ways[_i]);
    test_random r;
    test_random_init(&r, 4, 0, (uint64_t)_i);
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const int ea = (int)test_random_between(&r, -1074, 1023), eb = (int)test_random_between(&r, -1074, 1023);
            const int gap = (int)test_random_between(&r, -120, 120);
            a[i] = sparse(&r, ea);
            b[i] = sparse(&r, test_random_chance(&r, 50) ? eb : -ea + (int)test_random_between(&r, -60, 60));
            c[i] = test_random_chance(&r, 20) ? -a[i] * b[i] : sparse(&r, exponent_of(a[i]) + exponent_of(b[i]) + gap);
            if (round & 1)
                near_tie(&r, &a[i], &b[i], &c[i]);
            if (test_random_chance(&r, 3))
                c[i] = f64_of(harness_special(IR_F64, &r));
            if (test_random_chance(&r, 3))
                a[i] = f64_of(harness_special(IR_F64, &r));
            if (test_random_chance(&r, 3))
                b[i] = f64_of(harness_special(IR_F64, &r));
            if (round % 4 < 2) { /* numbers of usual size, which need the slow path in no lane */
                a[i] = random_sign(&r, 1 + (double)test_random_below(&r, 1u << 30) * 0x1p-10);
                b[i] = random_sign(&r, 1 + (double)(test_random_u64(&r) >> 12) * 0x1p-52);
                c[i] = test_random_chance(&r, 50) ? -a[i] * b[i] : random_sign(&r, ldexp(b[i], 1 + (int)(i % 80)));
            }
        }
        run(&k, a, b, c, out);
        for (uint32_t i = 0; i < COUNT; i++)
            ck_assert_msg(same(out[i], fma(a[i], b[i], c[i])), "fma(%a, %a, %a) is %a, not %a", a[i], b[i], c[i],
                          out[i], fma(a[i], b[i], c[i]));
    }
    harness_unload(&k);
}
END_TEST

START_TEST(fma_f32)
{
    static float a[COUNT], b[COUNT], c[COUNT], out[COUNT];
    if (!test_runs_here(ways[_i].target))
        return;
    harness_kernel k = compile(IR_FMA, IR_F32, IR_F32, &ways[_i]);
    test_random r;
    test_random_init(&r, 5, 0, (uint64_t)_i);
    for (uint32_t round = 0; round < 400; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const int ea = (int)test_random_between(&r, -140, 127), eb = (int)test_random_between(&r, -140, 127);
            if (round & 1) { /* as near_tie, half of them with subnormal results */
                const int scale = (int)test_random_between(&r, round & 2 ? -151 : -30, round & 2 ? -145 : 90);
                const int part = (int)test_random_between(&r, 18, 27);
                a[i] = (float)random_sign(&r, ldexp(1 + (double)test_random_below(&r, 4) * 0x1p-23, scale / 2));
                b[i] = (float)random_sign(&r, ldexp(1 - (double)test_random_below(&r, 4) * 0x1p-24, scale - scale / 2));
                c[i] = (float)random_sign(&r, ldexp(1 + (double)test_random_below(&r, 8) * 0x1p-23, scale + part));
                continue;
            }
            a[i] = (float)sparse(&r, ea);
            b[i] = (float)sparse(&r, eb);
            c[i] = test_random_chance(&r, 20) ? -a[i] * b[i]
                                              : (float)sparse(&r, ea + eb + (int)test_random_between(&r, -60, 60));
        }
        run(&k, a, b, c, out);
        for (uint32_t i = 0; i < COUNT; i++)
            ck_assert_msg(same(out[i], fmaf(a[i], b[i], c[i])), "fma(%a, %a, %a) is %a, not %a", a[i], b[i], c[i],
                          out[i], fmaf(a[i], b[i], c[i]));
    }
    harness_unload(&k);
}
END_TEST

START_TEST(fmod_f64)
{
    static double a[COUNT], b[COUNT], c[COUNT], out[COUNT];
    if (!test_runs_here(ways[_i].target))
        return;
    harness_kernel k = compile(IR_REM, IR_F64, IR_F64, &ways[_i]);
    test_random r;
    test_random_init(&r, 6, 0, (uint64_t)_i);
    for (uint32_t round = 0; round < 60; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const int e = (int)test_random_between(&r, -1074, 1023);
            a[i] = sparse(&r, e);
            b[i] = sparse(&r, test_random_chance(&r, 50) ? e - (int)test_random_below(&r, 70)
                                                         : (int)test_random_between(&r, -1074, 1023));
            if (round & 1) { /* near a multiple of b, with quotients up to where one lane sends all to the slow path */
                const double n = (double)test_random_below(&r, 1u << test_random_below(&r, round & 2 ? 28 : 26));
                b[i] = sparse(&r, e > -1000 ? -e : e);
                a[i] = test_random_chance(&r, 50) ? n * b[i] : nextafter(n * b[i], random_sign(&r, INFINITY));
            }
            if (test_random_chance(&r, 1))
                b[i] = f64_of(harness_special(IR_F64, &r));
        }
        run(&k, a, b, c, out);
        for (uint32_t i = 0; i < COUNT; i++)
            ck_assert_msg(same(out[i], fmod(a[i], b[i])), "fmod(%a, %a) is %a, not %a", a[i], b[i], out[i],
                          fmod(a[i], b[i]));
    }
    harness_unload(&k);
}
END_TEST

START_TEST(fmod_f32)
{
    static float a[COUNT], b[COUNT], c[COUNT], out[COUNT];
    if (!test_runs_here(ways[_i].target))
        return;
    harness_kernel k = compile(IR_REM, IR_F32, IR_F32, &ways[_i]);
    test_random r;
    test_random_init(&r, 8, 0, (uint64_t)_i);
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const int e = (int)test_random_between(&r, -140, 127),
                      gap = (int)test_random_below(&r, round & 1 ? 24 : 70);
            b[i] = (float)sparse(&r, e);
            a[i] = test_random_chance(&r, 50) ? (float)(1 + test_random_below(&r, 1u << 20)) * b[i]
                                              : (float)sparse(&r, e + gap);
        }
        run(&k, a, b, c, out);
        for (uint32_t i = 0; i < COUNT; i++)
            ck_assert_msg(same(out[i], fmodf(a[i], b[i])), "fmod(%a, %a) is %a, not %a", a[i], b[i], out[i],
                          fmodf(a[i], b[i]));
    }
    harness_unload(&k);
}
END_TEST

/* Every f16 there and back; f32 and f64 around every f16 and every midpoint of two. */
START_TEST(halves)
{
    static uint16_t half[COUNT], back[COUNT];
    static float single[COUNT];
    static double twice[COUNT];
    harness_kernel up = compile(IR_CAST, IR_F32, IR_F16, &ways[0]), down = compile(IR_CAST, IR_F16, IR_F32, &ways[0]),
                   from64 = compile(IR_CAST, IR_F16, IR_F64, &ways[0]);
    for (uint32_t first = 0; first < 65536; first += COUNT) {
        for (uint32_t i = 0; i < COUNT; i++)
            half[i] = (uint16_t)(first + i);
        run(&up, half, half, half, single);
        for (uint32_t i = 0; i < COUNT; i++)
            ck_assert(same(single[i], opjit_ir_f16_to_f32(half[i])));
        for (int side = -1; side <= 1; side++) {
            for (uint32_t i = 0; i < COUNT; i++) {
                const float x = opjit_ir_f16_to_f32(half[i]), y = opjit_ir_f16_to_f32((uint16_t)(half[i] + 1));
                const double middle = isfinite(x) && isfinite(y) ? ((double)x + (double)y) / 2 : x;
                single[i] = side == 0 ? (float)middle : nextafterf((float)middle, side * INFINITY);
                twice[i] = side == 0 ? middle : nextafter(middle, side * INFINITY);
            }
            run(&down, single, single, single, back);
            for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_msg(isnan(single[i]) || back[i] == opjit_ir_f32_to_f16(single[i]), "f16(%a) is %04x",
                              single[i], back[i]);
            run(&from64, twice, twice, twice, back);
            for (uint32_t i = 0; i < COUNT; i++)
                ck_assert_msg(isnan(twice[i]) || back[i] == opjit_ir_f64_to_f16(twice[i]), "f16(%a) is %04x", twice[i],
                              back[i]);
        }
    }
    harness_unload(&up);
    harness_unload(&down);
    harness_unload(&from64);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.soft");
    TCase *t = tcase_create("soft");
    tcase_add_loop_test(t, fma_f64, 0, WAYS);
    tcase_add_loop_test(t, fma_f32, 0, WAYS);
    tcase_add_loop_test(t, fmod_f64, 0, WAYS);
    tcase_add_loop_test(t, fmod_f32, 0, WAYS);
    tcase_add_test(t, halves);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
