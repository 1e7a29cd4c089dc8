/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_stride.c - vectors of elements that are not adjacent: backwards, every second to fifth, alternating between a
 * few rows, at places out of a table.  Compiled code against the interpreter, between inaccessible pages, so that
 * nothing outside of the tensor is read. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };
static const char *const types[] = { "f32", "u8", "f64", "i16", "u32", "f16", "i64" };

typedef struct sample {
    const char *type, *to, *target;
    uint32_t first, count, vec, unroll, level;
    int32_t step;     /* 0: rows alternate */
    uint32_t divisor; /* of these */
} sample;

/* The input begins with the first element that is read and ends with the last one. */
static void make(const sample *s, ir_func *f)
{
    char text[1000], in[100], load[200];
    opjit_error error = { .status = OPJIT_OK };
    const uint32_t end = s->first + s->count, distance = (uint32_t)(s->step < 0 ? -s->step : s->step);
    if (s->step == 0) {
        snprintf(in, sizeof in, "[%u,%u]", s->divisor, (end + s->divisor - 1) / s->divisor);
        snprintf(load, sizeof load, "imod(%%j, %u),idiv(%%j, %u)", s->divisor, s->divisor);
    } else {
        snprintf(in, sizeof in, "[%u]", (s->count - 1) * distance + 1);
        snprintf(load, sizeof load, "imul(isub(%%j, %u), %u)", s->first, distance);
        if (s->step < 0)
            snprintf(load, sizeof load, "imul(isub(%u, %%j), %u)", end - 1, distance);
    }
    const int length = snprintf(
        text, sizeof text,
        "kernel @stride after schedule {\n    in %%0: %s%s\n    out %%1: %s[%u]\n    stage @0 for %%p in 0..1 {\n"
        "        for %%j in %u..%u vec %u unroll %u { store %%1[%%j], cast %s (load %%0[%s]) }\n    }\n}\n",
        s->type, in, s->to, end, s->first, end, s->vec, s->unroll, s->to, load);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
}

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char what[200];
    make(s, &f);
    snprintf(what, sizeof what, "%s to %s, step %d, divisor %u, %u from %u, vec %u, unroll %u, %s, level %u", s->type,
             s->to, s->step, s->divisor, s->count, s->first, s->vec, s->unroll, s->target, s->level);
    harness_kernel k = harness_compile(&f, s->target, s->level);
    for (uint32_t i = 0; i < 2 && test_can_run(s->target, false); i++) {
        const harness_run run = { .end = 1, .any_nan = true, .at_end = i != 0, .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(strides)
{
    static const int32_t steps[] = { -1, 2, 3, 4, 5, -2, 0, 0, 0 };
    test_random r;
    test_random_init(&r, 2, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 12; n++) {
        sample s = { .type = types[test_random_below(&r, 7)],
                     .to = types[test_random_below(&r, 7)],
                     .target = targets[test_random_below(&r, 4)],
                     .step = steps[test_random_below(&r, 9)],
                     .divisor = 2 + (uint32_t)test_random_below(&r, 7),
                     .vec = 2u << test_random_below(&r, 5),
                     .unroll = 1u << test_random_below(&r, 3),
                     .first = (uint32_t)test_random_below(&r, 3) * 4,
                     .count = 1 + (uint32_t)test_random_below(&r, 150),
                     .level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2) };
        if (test_random_chance(&r, 30))
            s.first += (uint32_t)test_random_below(&r, 4);
        if (test_random_chance(&r, 60))
            s.to = s.type;
        check_sample(&s, &r);
    }
}
END_TEST

/* --- past both ends ----------------------------------------------------------------------------------------------- */

/* Every second to fifth element of a row of `size`, from `before` ahead of it on; those outside of it are zeros. */
static void make_guarded(const char *type, uint32_t size, uint32_t step, uint32_t before, uint32_t vec, ir_func *f)
{
    char text[1000];
    opjit_error error = { .status = OPJIT_OK };
    const uint32_t count = (size + 2 * before) / step + 1;
    const int length = snprintf(
        text, sizeof text,
        "kernel @guarded after schedule {\n    in %%0: %s[%u]\n    out %%1: %s[%u]\n    stage @0 for %%p in 0..1 {\n"
        "        for %%j in 0..%u vec %u tail mask {\n            store %%1[%%j], select(and("
        "le(0, iadd(imul(%%j, %u), -%u)), lt(iadd(imul(%%j, %u), -%u), %u)), load %%0[iadd(imul(%%j, %u), -%u)], %s 0)"
        "\n        }\n    }\n}\n",
        type, size, type, count, count, vec, step, before, step, before, size, step, before, type);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
}

static const char *const guarded_types[] = { "u32", "u8", "i16", "i64", "i32" };

START_TEST(guarded)
{
    test_random r;
    test_random_init(&r, 3, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 12; n++) {
        const char *const type = guarded_types[n % 5], *const target = targets[test_random_below(&r, 4)];
        const uint32_t step = 2 + (uint32_t)test_random_below(&r, 4), before = (uint32_t)test_random_below(&r, 4);
        const uint32_t size = 1 + (uint32_t)test_random_below(&r, 150), vec = 4u << test_random_below(&r, 4);
        char what[100];
        ir_func f;
        make_guarded(type, size, step, before, vec, &f);
        snprintf(what, sizeof what, "%s[%u], step %u from -%u, vec %u, %s", type, size, step, before, vec, target);
        harness_kernel k = harness_compile(&f, target, OPJIT_LEVEL_QUICK + n % 2);
        for (uint32_t i = 0; i < 2 && test_can_run(target, false); i++) {
            const harness_run run = { .end = 1, .any_nan = true, .at_end = i != 0, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

/* Lanes that are evaluated in part come by masked loads and shuffles where there are such loads, and no gather. */
START_TEST(guarded_by_vectors)
{
    ir_func f;
    make_guarded("u32", 100, 2, 1, 8, &f);
    codegen_result made = harness_emit(&f, "cpu:x86-64-v3", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&made.bytes);
    const char *const code = (const char *)made.bytes.data;
    ck_assert_ptr_nonnull(strstr(code, "call <8 x i32> @llvm.masked.load"));
    ck_assert_ptr_null(strstr(code, "masked.gather"));
    ck_assert_ptr_null(strstr(code, " load i32"));
    opjit_rt_bytes_free(&made.bytes);
    opjit_ir_free(&f);
}
END_TEST

/* --- rows of any length ------------------------------------------------------------------------------------------- */

/* Rows of 1, 2, ... `rows` elements, every step-th one of the input, which ends with the last one of the last row. */
static void make_growing(const char *type, uint32_t rows, uint32_t step, uint32_t vec, ir_func *f)
{
    char text[1000];
    opjit_error error = { .status = OPJIT_OK };
    const int length = snprintf(text, sizeof text,
                                "kernel @growing after schedule {\n    in %%0: %s[%u]\n    out %%1: %s[%u,%u]\n"
                                "    stage @0 for %%p in 0..%u {\n"
                                "        for %%j in 0..iadd(%%p, 1) vec %u tail mask {\n"
                                "            store %%1[%%p,%%j], load %%0[imul(%%j, %u)]\n        }\n    }\n}\n",
                                type, (rows - 1) * step + 1, type, rows, rows, rows, vec, step);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
}

START_TEST(growing)
{
    test_random r;
    test_random_init(&r, 4, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 12; n++) {
        const char *const type = types[test_random_below(&r, 7)], *const target = targets[test_random_below(&r, 4)];
        const uint32_t step = 2 + (uint32_t)test_random_below(&r, 4), rows = 1 + (uint32_t)test_random_below(&r, 80);
        const uint32_t vec = 4u << test_random_below(&r, 4);
        char what[100];
        ir_func f;
        make_growing(type, rows, step, vec, &f);
        snprintf(what, sizeof what, "%u rows of %s, step %u, vec %u, %s", rows, type, step, vec, target);
        harness_kernel k = harness_compile(&f, target, OPJIT_LEVEL_QUICK + n % 2);
        for (uint32_t i = 0; i < 2 && test_can_run(target, false); i++) {
            const harness_run run = { .end = rows, .any_nan = true, .at_end = i != 0, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

/* A remainder of any length comes by masked loads, too. */
START_TEST(growing_by_vectors)
{
    ir_func f;
    make_growing("u32", 100, 2, 16, &f);
    codegen_result made = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&made.bytes);
    const char *const code = (const char *)made.bytes.data;
    ck_assert_ptr_nonnull(strstr(code, "call <16 x i32> @llvm.masked.load"));
    ck_assert_ptr_null(strstr(code, "mask.gather"));
    opjit_rt_bytes_free(&made.bytes);
    opjit_ir_free(&f);
}
END_TEST

/* --- loads that share vectors ------------------------------------------------------------------------------------- */

/* Rows of 1 to `rows` elements: three loads with a step, each from another element on; chosen: the last one only where
 * the input, which ends with the last element of the others, has its element. */
static void make_among(const char *type, uint32_t rows, uint32_t step, const uint32_t *at, bool chosen, uint32_t vec,
                       ir_func *f)
{
    char text[1000], last[200];
    opjit_error error = { .status = OPJIT_OK };
    uint32_t reach = at[0] > at[1] ? at[0] : at[1];
    reach = !chosen && at[2] > reach ? at[2] : reach;
    const uint32_t size = (rows - 1) * step + 1 + reach;
    snprintf(last, sizeof last, "load %%0[iadd(imul(%%j, %u), %u)]", step, at[2]);
    if (chosen)
        snprintf(last, sizeof last, "select(lt(iadd(imul(%%j, %u), %u), %u), load %%0[iadd(imul(%%j, %u), %u)], %s 0)",
                 step, at[2], size, step, at[2], type);
    const int length = snprintf(text, sizeof text,
                                "kernel @among after schedule {\n    in %%0: %s[%u]\n    out %%1: %s[%u,%u]\n"
                                "    out %%2: %s[%u,%u]\n    stage @0 for %%p in 0..%u {\n"
                                "        for %%j in 0..iadd(%%p, 1) vec %u unroll 2 tail mask {\n"
                                "            store %%1[%%p,%%j], load %%0[iadd(imul(%%j, %u), %u)]\n"
                                "            store %%2[%%p,%%j], xor(load %%0[iadd(imul(%%j, %u), %u)], %s)\n"
                                "        }\n    }\n}\n",
                                type, size, type, rows, rows, type, rows, rows, rows, vec, step, at[0], step, at[1],
                                last);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
}

START_TEST(among)
{
    static const char *const integers[] = { "u32", "u8", "i16", "i64" };
    test_random r;
    test_random_init(&r, 5, 0, (uint64_t)_i);
    for (uint32_t n = 0; n < 12; n++) {
        const char *const type = integers[test_random_below(&r, 4)], *const target = targets[test_random_below(&r, 4)];
        const uint32_t step = 2 + (uint32_t)test_random_below(&r, 3), rows = 1 + (uint32_t)test_random_below(&r, 80);
        const uint32_t vec = 4u << test_random_below(&r, 4);
        uint32_t at[3];
        for (uint32_t i = 0; i < 3; i++)
            at[i] = (uint32_t)test_random_below(&r, step + 1);
        const bool chosen = test_random_chance(&r, 30);
        char what[200];
        ir_func f;
        make_among(type, rows, step, at, chosen, vec, &f);
        snprintf(what, sizeof what, "%u rows of %s, step %u, at %u, %u, %u (%s), vec %u, %s", rows, type, step, at[0],
                 at[1], at[2], chosen ? "chosen" : "sure", vec, target);
        harness_kernel k = harness_compile(&f, target, OPJIT_LEVEL_QUICK + n % 2);
        for (uint32_t i = 0; i < 2 && test_can_run(target, false); i++) {
            const harness_run run = { .end = rows, .any_nan = true, .at_end = i != 0, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

/* Both columns of a pair come out of the same two vectors. */
START_TEST(among_by_vectors)
{
    ir_func f;
    uint32_t loads = 0;
    static const char text[] = "kernel @pairs after schedule {\n    in %0: f32[32]\n    out %1: f32[16]\n"
                               "    stage @0 for %p in 0..1 {\n        for %j in 0..16 vec 16 {\n"
                               "            store %1[%j], add(load %0[imul(%j, 2)], load %0[iadd(imul(%j, 2), 1)])\n"
                               "        }\n    }\n}\n";
    opjit_error error = { .status = OPJIT_OK };
    ck_assert_msg(opjit_ir_parse(text, sizeof text - 1, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    codegen_result made = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&made.bytes);
    for (const char *at = (const char *)made.bytes.data; (at = strstr(at, "load <16 x i32>")) != NULL; at++)
        loads++;
    ck_assert_uint_eq(loads, 2 + 2); /* and the places of two shuffles */
    opjit_rt_bytes_free(&made.bytes);
    opjit_ir_free(&f);
}
END_TEST

/* --- places out of a table ---------------------------------------------------------------------------------------- */

/* Elements of the last row but one at places that are loaded, in one vector and what is left of another one. */
static void check_table(const char *type, const char *places, const char *target, uint32_t vec, uint32_t level,
                        test_random *r)
{
    char text[1000], what[100];
    ir_func f;
    opjit_error error = { .status = OPJIT_OK };
    const bool is_signed = places[0] == 'i';
    const uint32_t end = vec + vec / 2 + 1;
    const int length =
        snprintf(text, sizeof text,
                 "kernel @table after schedule {\n    in %%0: %s[3,97]\n    in %%1: %s[%u]\n    out %%2: %s[3,%u]\n"
                 "    stage @0 for %%p in 0..2 {\n        for %%j in 0..%u vec %u tail mask {\n"
                 "            store %%2[%%p,%%j], load %%0[%%p,%s(index(load %%1[%%j]), %s96)]\n"
                 "        }\n    }\n}\n",
                 type, places, end, type, end, end, vec, is_signed ? "clamp" : "imin", is_signed ? "0, " : "");
    snprintf(what, sizeof what, "%s at %s, vec %u, %s, level %u", type, places, vec, target, level);
    ck_assert_msg(opjit_ir_parse(text, (size_t)length, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
    harness_kernel k = harness_compile(&f, target, level);
    for (uint32_t i = 0; i < 2 && test_can_run(target, false); i++) {
        const harness_run run = { .end = 2, .any_nan = true, .at_end = i != 0, .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(tables)
{
    static const char *const places[] = { "u8", "i16", "u32", "i32", "u64" };
    test_random r;
    test_random_init(&r, 2, 1, (uint64_t)_i);
    for (uint32_t n = 0; n < 5; n++)
        for (uint32_t vec = 8; vec <= 16; vec *= 2)
            for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++)
                check_table(types[_i % 7], places[n], targets[2 + _i / 7], vec, level, &r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.stride");
    TCase *tcase = tcase_create("strides");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, strides, 0, 24);
    tcase_add_loop_test(tcase, guarded, 0, 12);
    tcase_add_test(tcase, guarded_by_vectors);
    tcase_add_loop_test(tcase, growing, 0, 12);
    tcase_add_test(tcase, growing_by_vectors);
    tcase_add_loop_test(tcase, among, 0, 12);
    tcase_add_test(tcase, among_by_vectors);
    tcase_add_loop_test(tcase, tables, 0, 14);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
