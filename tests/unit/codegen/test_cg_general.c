/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_general.c - one function for many sizes: what the generalization of a few samples computes, interpreted and
 * compiled, is for every size what the definition of that size says, bit for bit; and what it must not generalize. */
#define _DEFAULT_SOURCE
#include <stdio.h>

#include "ir/general/witness.h"
#include "tests/unit/codegen/cg_harness.h"

#define TARGET "cpu:x86-64-v3"
enum { MOST_TEXT = 4096, MOST_BUFFERS = 4 };

/* $n, $n+3, $m*16 are sizes; n is the first dimension, m the second one. */
typedef struct row {
    const char *name, *text;
    uint32_t dims;
    int64_t lo, hi;
    int64_t typical;
    const char *refused; /* NULL: it is taken */
} row;

static const row rows[] = {
    { "elements", "kernel @k { in %x: f32[$n]\n out %y: f32[$n]\n yield %y (%i) = add(load %x[%i], f32 0x1p+0) }", 1, 1,
      3000, 211, NULL },
    { "rows of 16",
      "kernel @k { in %x: f32[$n,16]\n in %b: f32[16]\n out %y: f32[$n,16]\n"
      "yield %y (%i2,%j2) = add(load %x[%i2,%j2], load %b[%j2]) }",
      1, 1, 3000, 211, NULL },
    { "columns",
      "kernel @k { in %x: f32[5,$n]\n in %b: f32[5]\n out %y: f32[5,$n]\n"
      "yield %y (%i2,%j2) = mul(load %x[%i2,%j2], load %b[%i2]) }",
      1, 1, 3000, 211, NULL },
    { "between",
      "kernel @k { in %x: f32[3,$n,7]\n in %b: f32[3,7]\n out %y: f32[3,$n,7]\n"
      "yield %y (%i2,%j2,%k2) = mul(load %x[%i2,%j2,%k2], load %b[%i2,%k2]) }",
      1, 1, 500, 211, NULL },
    { "triangle", "kernel @k { out %y: f32[$n,$n]\n yield %y (%i,%j) = select(le(%j, %i), f32 0x1p+0, f32 0x0p+0) }", 1,
      1, 300, 211, NULL },
    { "backwards", "kernel @k { in %x: f32[$n]\n out %y: f32[$n]\n yield %y (%i) = load %x[isub($n-1, %i)] }", 1, 1,
      2000, 211, NULL },
    { "joined",
      "kernel @k { in %x: f32[$n,8]\n in %z: f32[3,8]\n out %y: f32[$n+3,8]\n"
      "yield %y[0:$n:1,0:8:1] (%i2,%j2) = load %x[%i2,%j2]\n"
      "yield %y[$n:3:1,0:8:1] (%i3,%j3) = load %z[%i3,%j3] }",
      1, 1, 2000, 211, NULL },
    { "joined along rows",
      "kernel @k { in %x: f32[8,$n]\n in %z: f32[8,3]\n out %y: f32[8,$n+3]\n"
      "yield %y[0:8:1,0:$n:1] (%i2,%j2) = load %x[%i2,%j2]\n"
      "yield %y[0:8:1,$n:3:1] (%i3,%j3) = load %z[%i3,%j3] }",
      1, 1, 2000, 211, NULL },
    { "sums of rows",
      "kernel @k { in %x: f32[9,$n]\n out %y: f32[9,1]\n"
      "def %s: f32[9,1] (%i,%j) = reduce sum %k in 0..$n lanes 32: load %x[%i,%k]\n"
      "yield %y (%i2,%j2) = load %s[%i2,%j2] }",
      1, 1, 2000, 211, NULL },
    { "sums of columns",
      "kernel @k { in %x: f32[$n,40]\n out %y: f32[1,40]\n"
      "def %s: f32[1,40] (%i,%j) = reduce sum %k in 0..$n lanes 1: load %x[%k,%j]\n"
      "yield %y (%i2,%j2) = load %s[%i2,%j2] }",
      1, 1, 2000, 211, NULL },
    { "means",
      "kernel @k { in %x: f32[9,$n]\n out %y: f32[9,1]\n"
      "def %s: f32[9,1] (%i,%j) = reduce sum %k in 0..$n lanes 32: load %x[%i,%k]\n"
      "yield %y (%i2,%j2) = div(load %s[%i2,%j2], elem f32 ($n)) }",
      1, 1, 2000, 211, NULL },
    { "softmax",
      "kernel @k { in %x: f32[$m,$n]\n out %y: f32[$m,$n]\n"
      "def %a: f32[$m,1] (%i2,%j2) = reduce max %k2 in 0..$n lanes 32: load %x[%i2,%k2]\n"
      "def %e: f32[$m,$n] (%i3,%j3) = exp(min(sub(load %x[%i3,%j3], load %a[%i3,0]), f32 0x0p+0))\n"
      "def %s: f32[$m,1] (%i4,%j4) = reduce sum %k4 in 0..$n lanes 32: load %e[%i4,%k4]\n"
      "yield %y (%i5,%j5) = div(load %e[%i5,%j5], load %s[%i5,0]) }",
      2, 1, 300, 211, NULL },
    { "product, rows",
      "kernel @k { in %a: f32[$n,48]\n in %b: f32[48,40]\n out %y: f32[$n,40]\n"
      "def %s: f32[$n,40] (%i2,%j2) = reduce dot %k2 in 0..48 block 256: pair(load %a[%i2,%k2], load %b[%k2,%j2])\n"
      "yield %y (%i3,%j3) = max(load %s[%i3,%j3], f32 0x0p+0) }",
      1, 1, 900, 800, NULL },
    { "product, terms",
      "kernel @k { in %a: f32[12,$n]\n in %b: f32[$n,40]\n out %y: f32[12,40]\n"
      "def %s: f32[12,40] (%i2,%j2) = reduce dot %k2 in 0..$n block 256: pair(load %a[%i2,%k2], load %b[%k2,%j2])\n"
      "yield %y (%i3,%j3) = load %s[%i3,%j3] }",
      1, 1, 900, 800, NULL },
    { "product, columns",
      "kernel @k { in %a: f32[12,48]\n in %b: f32[48,$n]\n out %y: f32[12,$n]\n"
      "def %s: f32[12,$n] (%i2,%j2) = reduce dot %k2 in 0..48 block 256: pair(load %a[%i2,%k2], load %b[%k2,%j2])\n"
      "yield %y (%i3,%j3) = load %s[%i3,%j3] }",
      1, 1, 860, 800, NULL },
};

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void write_text(const char *from, const int64_t *dims, char *to)
{
    size_t used = 0;

    while (*from != '\0') {
        if (*from != '$') {
            to[used++] = *from++;
            continue;
        }
        int64_t value = dims[from[1] == 'm'];
        char op = from[2];
        from += 2;
        if (op == '+' || op == '-' || op == '*') {
            char *end;
            const int64_t by = strtol(from + 1, &end, 10);
            value = op == '+' ? value + by : op == '-' ? value - by : value * by;
            from = end;
        }
        used += (size_t)sprintf(to + used, "%lld", (long long)value);
        ck_assert(used < MOST_TEXT - 32);
    }
    to[used] = '\0';
}

static void parse(const row *r, const int64_t *dims, ir_func *out)
{
    char text[MOST_TEXT];
    opjit_error error = { 0 };

    write_text(r->text, dims, text);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, out, &error) == OPJIT_OK, "%s: %s",
                  r->name, error.message);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct memory {
    harness_buffer buffers[MOST_BUFFERS];
    void *slots[MOST_BUFFERS];
    uint32_t count;
} memory;

static void allocate(const ir_func *f, test_random *random, memory *out)
{
    *out = (memory){ .count = 0 };
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT)
            continue;
        ck_assert_uint_lt(tensor->slot, MOST_BUFFERS);
        harness_buffer *b = &out->buffers[tensor->slot];
        *b = harness_buffer_new(tensor->bytes, true);
        for (size_t i = 0; i < tensor->bytes / 4; i++)
            ((float *)(void *)b->data)[i] =
                tensor->role == IR_OUT ? 77.0f : (float)((int)test_random_below(random, 64) - 32) / 8;
        out->slots[tensor->slot] = b->data;
        out->count = tensor->slot + 1 > out->count ? tensor->slot + 1 : out->count;
    }
}

static void release(memory *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        harness_buffer_free(&m->buffers[i]);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void run_definition(const ir_func *f, memory *m)
{
    opjit_error error = { 0 };
    const ir_run run = { .buffers = m->slots };
    ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
}

/* With code, or interpreted. */
static void run_general(const ir_general *g, const harness_kernel *code, const int64_t *dims, memory *m)
{
    const ir_func *f = &g->f;
    opjit_error error = { 0 };
    uint64_t params[OPJIT_MAX_DIMS];
    void *shared = aligned_alloc(64, (f->shared_size + 127) / 64 * 64),
         *scratch = aligned_alloc(64, (f->scratch_size + 127) / 64 * 64);
    ir_run run = { .buffers = m->slots, .params = params, .shared = shared, .scratch = scratch };

    for (uint32_t d = 0; d < g->space.dims; d++)
        params[d] = (uint64_t)dims[d];
    memset(shared, 0x5a, f->shared_size + 1);
    memset(scratch, 0x5a, f->scratch_size + 1);
    for (; run.stage < g->extent_count; run.stage++) {
        int64_t extent;
        ck_assert(opjit_ir_form_value(&g->extents[run.stage], &g->space, dims, &extent));
        run.end = (uint64_t)extent;
        if (code != NULL)
            harness_stage(code, run.stage)(m->slots, params, shared, scratch, 0, run.end);
        else
            ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
    }
    free(shared);
    free(scratch);
}

static void print(const ir_func *f)
{
    rt_bytes text;
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    opjit_ir_print(f, &text);
    opjit_rt_bytes_zero_end(&text);
    fprintf(stderr, "%s\n", (const char *)text.data);
    opjit_rt_bytes_free(&text);
}

static void check_size(const row *r, const ir_general *g, const harness_kernel *code, const int64_t *dims)
{
    test_random random, again;
    opjit_error error = { 0 };
    ir_func definition, instance;
    memory expected, given;

    ck_assert_msg(opjit_ir_general_instance(g, dims, &instance, &error) == OPJIT_OK, "%s", error.message);
    const opjit_status proven = opjit_ir_verify(&instance, &error);
    if (proven != OPJIT_OK)
        print(&instance);
    ck_assert_msg(proven == OPJIT_OK, "%s, n = %lld: %s", r->name, (long long)dims[0], error.message);
    opjit_ir_free(&instance);
    parse(r, dims, &definition);
    test_random_init(&random, 7, 0, 0);
    allocate(&definition, &random, &expected);
    run_definition(&definition, &expected);
    for (uint32_t compiled = 0; compiled < 2; compiled++) {
        test_random_init(&again, 7, 0, 0);
        allocate(&definition, &again, &given);
        run_general(g, compiled ? code : NULL, dims, &given);
        for (uint32_t i = 0; i < given.count; i++) {
            const bool same = memcmp(given.slots[i], expected.slots[i], given.buffers[i].bytes) == 0;
            if (!same)
                print(&g->f);
            ck_assert_msg(same, "%s, n = %lld, m = %lld: buffer %u of the %s function differs", r->name,
                          (long long)dims[0], (long long)dims[1], i, compiled ? "compiled" : "interpreted");
        }
        release(&given);
    }
    release(&expected);
    opjit_ir_free(&definition);
}

typedef struct maker {
    const row *r;
    ir_pass_env env;
} maker;

static opjit_status make_sample(void *user, const ir_dim *dims, const int64_t *values, ir_func *out_value, ir_func *out,
                                opjit_error *error)
{
    (void)dims;
    const maker *m = user;

    parse(m->r, values, out_value);
    if (out == NULL)
        return OPJIT_OK;
    parse(m->r, values, out);
    ck_assert_msg(opjit_ir_run_passes(out, &m->env, IR_CLEANED, error) == OPJIT_OK, "%s", error->message);
    return opjit_ir_pack(out, error);
}

START_TEST(sizes)
{
    const row *r = &rows[_i];
    const ir_dim dims[2] = { { .name = "n", .lo = r->lo, .hi = r->hi }, { .name = "m", .lo = r->lo, .hi = r->hi } };
    const int64_t typical[2] = { r->typical, r->typical };
    ir_general general;
    rt_target target;
    opjit_error error = { 0 };

    ck_assert(opjit_rt_target_parse(TARGET, &target, &error) == OPJIT_OK);
    maker m = { r, { .target = &target, .general = true, .low_tiles = true } };
    ir_cut cut;
    const opjit_status status =
        opjit_ir_general_find(dims, typical, r->dims, make_sample, &m, NULL, &general, &cut, &error);
    ck_assert_msg(status == OPJIT_OK, "%s: %s", r->name, error.message);
    ck_assert_msg(opjit_ir_run_passes(&general.f, &m.env, IR_EXPANDED, &error) == OPJIT_OK, "%s", error.message);
    const int64_t most[2] = { r->hi, r->hi };
    ck_assert(opjit_ir_general_resize(&general, most, &error) == OPJIT_OK);
    ck_assert(opjit_ir_pack(&general.f, &error) == OPJIT_OK);
    ck_assert(opjit_ir_layout(&general.f, &error) == OPJIT_OK);
    harness_kernel code = harness_compile(&general.f, TARGET, OPJIT_LEVEL_QUICK);
    for (int64_t n = r->lo; n <= r->hi; n += n < 70 ? 1 : 1 + n / 7) {
        const int64_t values[2] = { n, n < 40 ? n : r->hi - n + r->lo };
        check_size(r, &general, &code, values);
    }
    harness_unload(&code);
    opjit_ir_general_free(&general);
}
END_TEST

static ir_answer replay(const row *r, const maker *m, const ir_general *g, const int64_t *values, uint64_t most)
{
    opjit_error error = { 0 };
    ir_func value, loops;
    ir_answer answer;
    maker own = { r, m->env };

    ck_assert(make_sample(&own, NULL, values, &value, &loops, &error) == OPJIT_OK);
    ck_assert_msg(opjit_ir_replay(g, values, &loops, &most, &answer, &error) == OPJIT_OK, "%s", error.message);
    opjit_ir_free(&value);
    opjit_ir_free(&loops);
    return answer;
}

/* An instance has the bits of the loops for its size, whether these are the same or others; not of other loops. */
START_TEST(replayed)
{
    static const char *const texts[] = {
        "kernel @k { in %x: f32[9,$n]\n out %y: f32[9,$n]\n"
        "def %s: f32[9,1] (%i,%j) = reduce sum %k in 0..$n lanes 32: load %x[%i,%k]\n"
        "yield %y (%i2,%j2) = sub(load %x[%i2,%j2], load %s[%i2,0]) }",
        "kernel @k { in %x: f32[9,$n]\n out %y: f32[9,$n]\n" /* another order */
        "def %s: f32[9,1] (%i,%j) = reduce sum %k in 0..$n lanes 8: load %x[%i,%k]\n"
        "yield %y (%i2,%j2) = sub(load %x[%i2,%j2], load %s[%i2,0]) }",
    };
    const ir_dim dim = { .name = "n", .lo = 1, .hi = 2000 };
    const int64_t typical = 211;
    row own[2];
    ir_general general;
    rt_target target;
    ir_cut cut;
    opjit_error error = { 0 };

    for (uint32_t i = 0; i < 2; i++)
        own[i] = (row){ .name = "replayed", .text = texts[i], .dims = 1, .lo = 1, .hi = 2000, .typical = 211 };
    ck_assert(opjit_rt_target_parse(TARGET, &target, &error) == OPJIT_OK);
    maker m = { &own[0], { .target = &target, .general = true, .low_tiles = true } };
    ck_assert_msg(opjit_ir_general_find(&dim, &typical, 1, make_sample, &m, NULL, &general, &cut, &error) == OPJIT_OK,
                  "%s", error.message);
    for (int64_t n = 1; n <= 2000; n += 1 + n / 3) {
        ck_assert_msg(replay(&own[0], &m, &general, &n, 1 << 20) == IR_ANSWER_SAME, "n = %lld", (long long)n);
        if (n > 40) {
            ck_assert_int_eq(replay(&own[1], &m, &general, &n, 1 << 20), IR_ANSWER_OTHER);
            ck_assert_int_eq(replay(&own[1], &m, &general, &n, 9), IR_ANSWER_UNKNOWN);
        }
    }
    opjit_ir_general_free(&general);
}
END_TEST

/* What a form's expression says is that form, or one with the same values; of other expressions nothing is said. */
START_TEST(forms_of_expressions)
{
    static const opjit_size_form forms[] = {
        { .constant = 7, .divisor = 1, .times = 1 },
        { .constant = -3, .factors = { 2 }, .powers = { { 1 } }, .divisor = 1, .times = 1 },
        { .constant = 5, .factors = { 3, -2 }, .powers = { { 1, 1 }, { 0, 1 } }, .divisor = 1, .times = 1 },
        { .constant = 63, .factors = { 1 }, .powers = { { 1 } }, .divisor = 64, .times = 1 },
        { .constant = 15, .factors = { 4 }, .powers = { { 2, 1 } }, .divisor = 16, .times = 3 },
        { .constant = 31, .factors = { 1, 1 }, .powers = { { 1 }, { 0, 1 } }, .divisor = 32, .times = 9 },
        { .constant = 31, .factors = { 1 }, .powers = { { 1 }, { 0, 1 } }, .divisor = 32, .times = 12 },
        { .constant = 1, .factors = { 6 }, .powers = { { 1 }, { 1, 1 } }, .divisor = 1, .times = 1 },
        { .factors = { 1 }, .powers = { { 1, 2 } }, .divisor = 1, .times = 5 },
    };
    opjit_error error = { 0 };
    opjit_size_form found;
    ir_func f;

    const ir_space space = { .dims = 2 };
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "k", &error) == OPJIT_OK);
    opjit_ir_param_add(&f, IR_INDEX, 1, 1000, "other");
    f.first_dim = opjit_ir_param_add(&f, IR_INDEX, 1, 500, "n");
    opjit_ir_param_add(&f, IR_INDEX, 1, 500, "m");
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const ir_ref number = opjit_ir_size(&f, &(ir_size_form){ .form = forms[i] });
        ck_assert_msg(opjit_ir_form_derive(&f, number, &found), "form %u", i);
        for (int64_t n = 1; n <= 500; n += 1 + n / 3)
            for (int64_t m = 1; m <= 500; m += 1 + m / 3) {
                int64_t expected, given;
                ck_assert(opjit_ir_form_value(&forms[i], &space, (const int64_t[]){ n, m }, &expected));
                ck_assert(opjit_ir_form_value(&found, &space, (const int64_t[]){ n, m }, &given));
                ck_assert_msg(given == expected, "form %u of %lld, %lld", i, (long long)n, (long long)m);
            }
    }
    const ir_ref n = opjit_ir_param(&f, f.first_dim), m = opjit_ir_param(&f, f.first_dim + 1);
    const ir_ref quarter = ir_expr2(&f, IR_IDIV, IR_INDEX, n, opjit_ir_index(&f, 4)),
                 rest = ir_expr2(&f, IR_IMOD, IR_INDEX, n, opjit_ir_index(&f, 8)),
                 more = ir_expr2(&f, IR_IADD, IR_INDEX, m, opjit_ir_index(&f, 3)),
                 none[] = { rest, opjit_ir_param(&f, 1), ir_expr2(&f, IR_ISCALE, IR_INDEX, more, more),
                            ir_expr2(&f, IR_IADD, IR_INDEX, quarter, m) };
    for (uint32_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_msg(!opjit_ir_form_derive(&f, none[i], &found), "expression %u", i);
    opjit_ir_free(&f);
}
END_TEST

/* Sums of shared sums, which stand for 2^i operands: few are derived, many are refused before all have been visited. */
START_TEST(forms_of_shared_expressions)
{
    opjit_error error = { 0 };
    opjit_size_form found;
    ir_func f;

    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "k", &error) == OPJIT_OK);
    f.first_dim = opjit_ir_param_add(&f, IR_INDEX, 1, 500, "n");
    ir_ref sum = opjit_ir_param(&f, f.first_dim);
    for (uint32_t i = 1; i <= 30; i++) {
        sum = ir_expr2(&f, IR_IADD, IR_INDEX, sum, sum);
        if (i == 8) {
            ck_assert(opjit_ir_form_derive(&f, sum, &found));
            ck_assert_int_eq(found.factors[0], 256);
        }
    }
    ck_assert(!opjit_ir_form_derive(&f, sum, &found));
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.general");
    TCase *tcase = tcase_create("sizes");
    tcase_set_timeout(tcase, 600);
    tcase_add_loop_test(tcase, sizes, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(tcase, replayed);
    tcase_add_test(tcase, forms_of_expressions);
    tcase_add_test(tcase, forms_of_shared_expressions);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
