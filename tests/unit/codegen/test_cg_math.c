/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_math.c - mathematical functions in compiled code: the bits that the interpreter computes, for every op and
 * type on every target whose code can be run; and, where OPJIT_MATH_EVERY names a function or is "all", the error of
 * every f32. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <fenv.h>
#include <float.h>
#include <stdio.h>

#include "tests/support/math.h"

enum { COUNT = 331, CHUNK = 1 << 16 };

static const struct {
    const char *target;
    uint32_t bytes; /* of a vector */
} targets[] = { { "cpu:x86-64-v1", 16 }, { "cpu:x86-64-v2", 16 },     { "cpu:x86-64-v3", 32 },
                { "cpu:x86-64-v4", 64 }, { "cpu:aarch64", 16 },       { "cpu:aarch64+sve,vec=32", 32 },
                { "cpu:rv64gc", 16 },    { "cpu:rv64gcv,vec=32", 32 } };
enum { TARGETS = sizeof(targets) / sizeof(targets[0]) };

/* What build makes of the op. */
typedef enum form {
    EXPANDED, /* its sequence */
    CALLED,   /* the op itself, which code generation calls */
    CONSTANT, /* the same, and its last operand is a constant: the other one is a load, if there are two */
    FORMS
} form;

/* out[j] = op(a[j], b[j]). */
static void build(ir_func *f, const char *target, ir_op op, ir_type type, uint64_t count, uint32_t lanes, form how)
{
    opjit_error error;
    rt_target t;
    ck_assert(opjit_rt_target_parse(target, &t, &error) == OPJIT_OK);
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "math", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t a = harness_tensor(f, IR_IN, type, 0, count, 0, "a"),
                   b = harness_tensor(f, IR_IN, type, 0, count, 1, "b");
    const uint32_t out = harness_tensor(f, IR_OUT, type, 0, count, 2, "out");
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 1), 1);
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, (int64_t)count), 1);
    const ir_ref j = ir_at(f, loop)->ref;
    const bool binary = opjit_ir_op_infos[op].operands[1] != '\0';
    const ir_ref constant = opjit_ir_const(f, type, opjit_ir_convert(IR_I32, type, 3));
    const ir_ref args[2] = { how == CONSTANT && !binary ? constant : opjit_ir_load(f, a, &j),
                             how == CONSTANT ? constant : opjit_ir_load(f, b, &j) };
    ir_ref top = 0, tail = 0, inner = 0;
    f->nodes[loop].vec = (uint16_t)lanes;
    f->nodes[loop].unroll = how == CALLED && lanes > 1 ? 2 : 1; /* one call for two vectors */
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, opjit_ir_expr(f, op, type, binary ? 2 : 1, args), &j));
    const ir_pass_env env = { .target = &t, .verify = true, .calls_math = how != EXPANDED };
    ck_assert_msg(opjit_ir_run_passes(f, &env, IR_EXPANDED, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(every_level)
{
    const ir_op op = test_math_functions[_i].op;
    test_random r;
    test_random_init(&r, 1, (uint64_t)op, 0);
    for (ir_type type = IR_F16; type <= IR_F64; type++)
        for (uint32_t t = 0; t < TARGETS; t++)
            for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
                if (level == OPJIT_LEVEL_PEAK && t != 2)
                    continue; /* LLVM's optimiser is the same elsewhere, and slow */
                char what[96];
                ir_func f;
                build(&f, targets[t].target, op, type, COUNT, targets[t].bytes / opjit_ir_type_size(type), EXPANDED);
                snprintf(what, sizeof(what), "%s %s, %s, level %u", opjit_ir_op_infos[op].name,
                         opjit_ir_type_name(type), targets[t].target, level);
                harness_kernel k = harness_compile(&f, targets[t].target, level);
                const harness_run run = { .end = 1, .any_nan = true, .at_end = true, .what = what };
                for (uint32_t i = 0; i < 4 && test_can_run(targets[t].target, false); i++)
                    harness_check(&f, &k, &run, &r);
                harness_unload(&k);
                opjit_ir_free(&f);
            }
}
END_TEST

/* Functions that are called: of scalars, of parts of a vector, of whole ones and of two, with remainders of each. */
START_TEST(calls)
{
    static const struct {
        const char *target;
        uint32_t bytes;
    } calling[] = { { "cpu:x86-64-v3", 32 }, { "cpu:x86-64-v4", 64 } };
    const ir_op op = test_math_functions[_i].op;
    test_random r;
    test_random_init(&r, 2, (uint64_t)op, 0);
    for (ir_type type = IR_F16; type <= IR_F64; type++)
        for (uint32_t i = 0; i < 2 * 4 * 2 * 2; i++) {
            const uint32_t t = i & 1, whole = calling[t].bytes / opjit_ir_type_size(type);
            const uint32_t lanes[] = { 1, whole / 2, whole, 2 * whole }, which = i >> 1 & 3;
            const uint32_t level = i >> 3 & 1 ? OPJIT_LEVEL_PEAK : OPJIT_LEVEL_QUICK;
            char what[96];
            ir_func f;
            if (level == OPJIT_LEVEL_PEAK && (t != 0 || which == 3))
                continue;
            build(&f, calling[t].target, op, type, COUNT, lanes[which], i >> 4 ? CONSTANT : CALLED);
            ck_assert(opjit_ir_verify(&f, &(opjit_error){ 0 }) == OPJIT_OK);
            snprintf(what, sizeof(what), "%s %s of %u lanes, %s, level %u%s", opjit_ir_op_infos[op].name,
                     opjit_ir_type_name(type), lanes[which], calling[t].target, level, i >> 4 ? ", constant" : "");
            harness_kernel k = harness_compile(&f, calling[t].target, level);
            const harness_run run = { .end = 1, .any_nan = true, .at_end = true, .what = what };
            for (uint32_t n = 0; n < 2 && test_can_run(calling[t].target, false); n++)
                harness_check(&f, &k, &run, &r);
            harness_unload(&k);
            opjit_ir_free(&f);
        }
}
END_TEST

/* Which functions a kernel calls, by name; the caller frees the text. */
static codegen_result text_of(ir_op op, uint64_t count, uint32_t lanes, form how)
{
    ir_func f;
    build(&f, "cpu:x86-64-v4", op, IR_F32, count, lanes, how);
    codegen_result text = harness_emit(&f, "cpu:x86-64-v4", OPJIT_LEVEL_QUICK, CODEGEN_LLVM);
    opjit_rt_bytes_zero_end(&text.bytes);
    opjit_ir_free(&f);
    return text;
}

static uint32_t count_of(const char *text, const char *what)
{
    uint32_t n = 0;
    while ((text = strstr(text, what)) != NULL) {
        text++;
        n++;
    }
    return n;
}

/* One function for all vectors, whatever the sizes are; no sequence beside it. */
START_TEST(shared)
{
    char first[64] = "", other[64] = "";
    codegen_result a = text_of(IR_EXP, 320, 16, CALLED), b = text_of(IR_EXP, 6400, 16, CALLED),
                   c = text_of(IR_EXP, 331, 16, CALLED), d = text_of(IR_POW, 331, 1, CONSTANT);
    const char *texts[] = { (const char *)a.bytes.data, (const char *)b.bytes.data, (const char *)c.bytes.data,
                            (const char *)d.bytes.data };
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_msg(strstr(texts[i], "llvm.fma") == NULL, "%s", texts[i]);
    ck_assert_msg(sscanf(strstr(texts[0], "@math.exp_f32x16.pair."), "%63[^(]", first) == 1, "%s", texts[0]);
    ck_assert_msg(sscanf(strstr(texts[1], "@math.exp_f32x16.pair."), "%63[^(]", other) == 1, "%s", texts[1]);
    ck_assert_str_eq(first, other);
    ck_assert_msg(count_of(texts[2], "define internal <16 x float> @math.exp_f32x16.") == 1, "%s", texts[2]);
    ck_assert_msg(count_of(texts[3], "define internal float @math.pow_f32x1.") == 1, "%s", texts[3]);
    opjit_rt_bytes_free(&a.bytes);
    opjit_rt_bytes_free(&b.bytes);
    opjit_rt_bytes_free(&c.bytes);
    opjit_rt_bytes_free(&d.bytes);
}
END_TEST

/* Stage i: out[i, j] = exp(in[j]). */
static void build_rows(ir_func *f, uint32_t rows, uint32_t lanes)
{
    opjit_error error;
    ir_ref top = 0;
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "rows", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t in = harness_tensor(f, IR_IN, IR_F32, 0, COUNT, 0, "in"),
                   out = harness_tensor(f, IR_OUT, IR_F32, rows, COUNT, 1, "out");
    for (uint32_t i = 0; i < rows; i++) {
        const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 1), 1);
        const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COUNT), 1);
        const ir_ref j = ir_at(f, loop)->ref, x = opjit_ir_load(f, in, &j);
        ir_ref tail = 0, inner = 0;
        f->nodes[loop].vec = (uint16_t)lanes;
        opjit_ir_append(f, 0, &top, stage);
        opjit_ir_append(f, stage, &tail, loop);
        opjit_ir_append(
            f, loop, &inner,
            opjit_ir_store(f, out, opjit_ir_expr(f, IR_EXP, IR_F32, 1, &x), (ir_ref[]){ opjit_ir_index(f, i), j }));
    }
    const ir_pass_env env = { .verify = true, .calls_math = true };
    ck_assert_msg(opjit_ir_run_passes(f, &env, IR_EXPANDED, &error) == OPJIT_OK, "%s", error.message);
}

/* Kernels of many codes are several modules, which call functions beside them. */
START_TEST(several_modules)
{
    enum { ROWS = 40 };
    const char *const target = _i == 0 ? "cpu:x86-64-v3" : "cpu:x86-64-v4";
    test_random r;
    ir_func f;
    test_random_init(&r, 5, 0, 0);
    build_rows(&f, ROWS, _i == 0 ? 8 : 16);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        harness_kernel k = harness_compile(&f, target, level);
        const harness_run run = { .end = 1, .any_nan = true, .at_end = true, .what = target };
        if (test_can_run(target, false))
            harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* Every f32, in compiled code.  A result that equals the C library's double, rounded, needs no closer look. */
START_TEST(every_f32)
{
    static float x[CHUNK], y[CHUNK];
    const test_math *fun = &test_math_functions[_i];
    const char *chosen = getenv("OPJIT_MATH_EVERY"), *name = opjit_ir_op_infos[fun->op].name;
    if (chosen == NULL || (strcmp(chosen, "all") != 0 && strcmp(chosen, name) != 0) ||
        opjit_ir_op_infos[fun->op].operands[1] != '\0')
        return;
    ir_func f;
    double worst = 0.5;
    const char *target = test_runs_here("cpu:x86-64-v3") ? "cpu:x86-64-v3" : "cpu:x86-64-v1";
    build(&f, target, fun->op, IR_F32, CHUNK, 8, EXPANDED);
    harness_kernel k = harness_compile(&f, target, OPJIT_LEVEL_PEAK);
    for (uint32_t high = 0; high < CHUNK; high++) {
        for (uint32_t low = 0; low < CHUNK; low++) {
            const uint32_t bits = high << 16 | low;
            memcpy(&x[low], &bits, sizeof(bits));
        }
        harness_stage(&k, 0)((void *[]){ x, x, y }, NULL, NULL, NULL, 0, 1);
        for (uint32_t i = 0; i < CHUNK; i++) {
            if (test_math_rounded_f32(fun, x[i], y[i]))
                continue;
            double error = test_math_estimate_f32(fun, x[i], x[i], y[i]);
            if (error > worst && error > fun->bound_f32 - 0.01)
                error = test_math_error_f32(fun, x[i], x[i], y[i]);
            worst = error > worst ? error : worst;
            ck_assert_msg(error <= fun->bound_f32, "%s f32 of %a is %a: %g ulp", name, (double)x[i], (double)y[i],
                          error);
        }
    }
    printf("%s, every f32: %.3f ulp\n", name, worst);
    harness_unload(&k);
    opjit_ir_free(&f);
}
END_TEST

/* exp(x), or of the lesser of x and 0. */
static void build_exp(ir_func *f, const char *target, uint32_t lanes, form how, bool below)
{
    opjit_error error;
    rt_target t;
    ck_assert(opjit_rt_target_parse(target, &t, &error) == OPJIT_OK);
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "exp", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t in = harness_tensor(f, IR_IN, IR_F32, 0, CHUNK, 0, "in"),
                   out = harness_tensor(f, IR_OUT, IR_F32, 0, CHUNK, 1, "out");
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 1), 1);
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, CHUNK), 1);
    const ir_ref j = ir_at(f, loop)->ref, zero = opjit_ir_const(f, IR_F32, 0);
    ir_ref top = 0, tail = 0, inner = 0, x = opjit_ir_load(f, in, &j);
    x = below ? ir_expr2(f, IR_MIN, IR_F32, x, zero) : x;
    f->nodes[loop].vec = (uint16_t)lanes;
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, opjit_ir_expr(f, IR_EXP, IR_F32, 1, &x), &j));
    const ir_pass_env env = { .target = &t, .verify = true, .calls_math = how != EXPANDED };
    ck_assert_msg(opjit_ir_run_passes(f, &env, IR_EXPANDED, &error) == OPJIT_OK, "%s", error.message);
}

/* AVX-512 ends exp with an instruction of its own: the bits of every f32, or of a prime part of them, are those of the
 * steps that others take.  NaNs, which may have any, are NaNs. */
START_TEST(scaled)
{
    static uint32_t x[CHUNK], plain[CHUNK], got[2][CHUNK];
    const uint32_t step = getenv("OPJIT_MATH_EVERY") != NULL ? 1 : 61;
    harness_kernel k[3];
    if (!test_runs_here("cpu:x86-64-v4"))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        ir_func f;
        build_exp(&f, i == 0 ? "cpu:x86-64-v3" : "cpu:x86-64-v4", i == 0 ? 8 : 16, i == 2 ? CALLED : EXPANDED, _i);
        k[i] = harness_compile(&f, i == 0 ? "cpu:x86-64-v3" : "cpu:x86-64-v4",
                               i == 2 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK);
        opjit_ir_free(&f);
    }
    for (uint64_t first = 0; first <= UINT32_MAX; first += (uint64_t)CHUNK * step) {
        for (uint32_t i = 0; i < CHUNK; i++)
            x[i] = (uint32_t)first + i * step; /* around after the last */
        harness_stage(&k[0], 0)((void *[]){ x, plain }, NULL, NULL, NULL, 0, 1);
        for (uint32_t w = 0; w < 2; w++)
            harness_stage(&k[w + 1], 0)((void *[]){ x, got[w] }, NULL, NULL, NULL, 0, 1);
        for (uint32_t i = 0; i < CHUNK; i++)
            for (uint32_t w = 0; w < 2; w++)
                if (plain[i] != got[w][i] &&
                    ((plain[i] & INT32_MAX) <= 0x7f800000 || (got[w][i] & INT32_MAX) <= 0x7f800000))
                    ck_abort_msg("exp of %08x is %08x, not %08x", x[i], got[w][i], plain[i]);
    }
    for (uint32_t i = 0; i < 3; i++)
        harness_unload(&k[i]);
}
END_TEST

/* What rounds to 0 because it is masked takes no product that underflows, each of which takes Intel's CPUs 150 cycles.
 * _i: the form, and whether exp is of the lesser of x and 0. */
START_TEST(masked)
{
    static const char *const levels[] = { "cpu:x86-64-v3", "cpu:x86-64-v4" };
    static const float masks[] = { -104.1f, -1e4f, -FLT_MAX, -INFINITY };
    static float x[CHUNK], y[CHUNK];
    for (uint32_t i = 0; i < CHUNK; i++)
        x[i] = i % 8 == 7 ? -86 : masks[i % 4];
    for (uint32_t t = 0; t < 2; t++) {
        ir_func f;
        if (!test_runs_here(levels[t]))
            continue;
        build_exp(&f, levels[t], t == 0 ? 8 : 16, _i & 1 ? CALLED : EXPANDED, _i >> 1);
        harness_kernel k = harness_compile(&f, levels[t], OPJIT_LEVEL_QUICK);
        feclearexcept(FE_ALL_EXCEPT);
        harness_stage(&k, 0)((void *[]){ x, y }, NULL, NULL, NULL, 0, 1);
        ck_assert_msg(fetestexcept(FE_UNDERFLOW) == 0, "%s", levels[t]);
        for (uint32_t i = 0; i < CHUNK; i++)
            ck_assert_msg((y[i] != 0) == (i % 8 == 7) && !signbit(y[i]), "exp(%g) is %g", (double)x[i], (double)y[i]);
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.math");
    TCase *t = tcase_create("math"), *every = tcase_create("every");
    tcase_add_loop_test(t, every_level, 0, TEST_MATH_COUNT);
    tcase_add_loop_test(t, calls, 0, TEST_MATH_COUNT);
    tcase_add_test(t, shared);
    tcase_add_loop_test(t, several_modules, 0, 2);
    tcase_add_loop_test(t, masked, 0, 4);
    tcase_add_loop_test(every, scaled, 0, 2);
    tcase_add_loop_test(every, every_f32, 0, TEST_MATH_COUNT);
    tcase_set_timeout(every, 3600);
    suite_add_tcase(s, t);
    suite_add_tcase(s, every);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
