/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_interp.c - the interpreter on small kernels, against results computed by hand or by a plain loop: both forms,
 * lazy arms, order of reductions, arg kinds, memory between stages, and accesses that it must refuse. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static opjit_error error;

static void read_function(const char *text, ir_func *f)
{
    opjit_rt_error_clear(&error);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_ir_layout(f, &error), OPJIT_OK);
}

/* All stages in order, or the value form. */
static opjit_status run_all(const ir_func *f, void *const *buffers, const uint64_t *params)
{
    void *shared = malloc((size_t)f->shared_size + 1), *scratch = malloc((size_t)f->scratch_size + 1);
    ir_run run = { .buffers = buffers, .params = params, .shared = shared, .scratch = scratch };
    opjit_status status = OPJIT_OK;
    if (f->phase < IR_PLACED)
        status = opjit_ir_interpret(f, &run, &error);
    for (ir_ref s = f->body; f->phase >= IR_PLACED && s && status == OPJIT_OK; s = ir_at(f, s)->next, run.stage++) {
        run.end = (uint64_t)ir_index_value(f, ir_operand(f, s, 1));
        status = opjit_ir_interpret(f, &run, &error);
    }
    free(shared);
    free(scratch);
    return status;
}

START_TEST(value_form)
{
    static const char text[] =
        "kernel @k { in %x: f32[2,3] out %y: f32[2,3] out %z: u8[6] param %b: index in [-9, 9] param %v: f32\n"
        "def %m: f32[2,3] (%r,%c) = select(lt(isub(%c, %r), %b), %v, load %x[%r,%c])\n"
        "view %w: f32[3,2] of %m\n"
        "yield %y (%i,%j) = load %w[%j,%i]\n"
        "yield %z[0:3:2] (%k) = elem u8 (%k) yield %z[1:3:2] (%l) = u8 9 }";
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6];
    uint8_t z[6];
    ir_func f;
    read_function(text, &f);
    /* x - y < 1 is 7: 7 2 3 | 7 7 6; read as 3 by 2 and transposed */
    ck_assert_int_eq(run_all(&f, (void *[]){ x, y, z }, (uint64_t[]){ 1, 0x40e00000 }), OPJIT_OK);
    ck_assert_mem_eq(y, ((float[]){ 7, 3, 7, 2, 7, 6 }), sizeof(y));
    ck_assert_mem_eq(z, ((uint8_t[]){ 0, 9, 1, 9, 2, 9 }), 6);
    opjit_ir_free(&f);
}
END_TEST

/* The arm that is not selected would load outside; strides leave gaps that stay untouched. */
START_TEST(lazy_and_strided)
{
    static const char text[] =
        "kernel @k after place { in %x: u8[4] out %y: u8[2,3] stride [8,2] bytes 16\n"
        "stage @0 for %p in 0..2 { for %j in 0..3 {\n"
        "store %y[%p,%j], select(lt(iadd(%p, %j), 2), load %x[iadd(%p, iadd(%j, 2))], u8 7) } } }";
    uint8_t x[4] = { 1, 2, 3, 4 }, y[16];
    ir_func f;
    memset(y, 0xee, sizeof(y));
    read_function(text, &f);
    ck_assert_int_eq(run_all(&f, (void *[]){ x, y }, NULL), OPJIT_OK);
    static const uint8_t expected[16] = {
        3, 0xee, 4, 0xee, 7, 0xee, 0xee, 0xee, 4, 0xee, 7, 0xee, 7, 0xee, 0xee, 0xee
    };
    ck_assert_mem_eq(y, expected, 16);
    opjit_ir_free(&f);
}
END_TEST

/* The specified order, written a second time: lanes by k, blocks of 4096, lanes by halves, blocks ascending. */
static float reference_sum(const float *x, uint32_t begin, uint32_t end)
{
    float total = 0;
    bool some = false;
    for (uint32_t block = begin / 4096 * 4096; block < end; block += 4096) {
        float lanes[32] = { 0 };
        for (uint32_t k = block < begin ? begin : block; k < end && k < block + 4096; k++)
            lanes[k % 32] += x[k];
        for (uint32_t half = 16; half > 0; half /= 2)
            for (uint32_t l = 0; l < half; l++)
                lanes[l] += lanes[l + half];
        total = some ? total + lanes[0] : lanes[0];
        some = true;
    }
    return total;
}

START_TEST(order_of_sums)
{
    static const char text[] =
        "kernel @k after place { in %x: f32[10000] out %y: f32[2] param %c: index in [0, 10000]\n"
        "stage @0 for %p in 0..1 { acc %a: f32 sum lanes 32 acc %b: f32 sum lanes 32\n"
        "for %j in 0..%c { upd %a, load %x[%j] } for %k in %c..10000 { upd %a, load %x[%k] }\n"
        "for %l in 0..%c { upd %b, load %x[%l] } store %y[0], get %a store %y[1], get %b } }";
    static float x[10000];
    float y[2], sequential = 0;
    ir_func f;
    for (uint32_t i = 0; i < 10000; i++) {
        x[i] = ldexpf((float)((i * 2654435761u) >> 8), (int)(i % 13) - 20);
        sequential += x[i];
    }
    read_function(text, &f);
    for (uint64_t cut = 0; cut <= 10000; cut += 1234) {
        ck_assert_int_eq(run_all(&f, (void *[]){ x, y }, &cut), OPJIT_OK);
        ck_assert(y[0] == reference_sum(x, 0, 10000)); /* a split changes nothing */
        ck_assert(y[1] == reference_sum(x, 0, (uint32_t)cut));
    }
    ck_assert(y[0] != sequential);
    opjit_ir_free(&f);
}
END_TEST

START_TEST(arg_kinds)
{
    static const char text[] =
        "kernel @k after place { in %x: f32[2,64] out %y: i32[2,4] scratch %s: i32[4]\n"
        "stage @0 for %p in 0..2 { acc %a: index argmax lanes 32 acc %b: index argmax.last lanes 32 acc %c: index "
        "argmin\n"
        "acc %d: i32 argmin.last for %j in 0..64 { upd %a, load %x[%p,%j] at %j upd %b, load %x[%p,%j] at %j\n"
        "upd %c, load %x[%p,%j] at %j upd %d, load %x[%p,%j] at %j }\n"
        "store %s[0], elem i32 (get %a) store %s[1], elem i32 (get %b) store %s[2], elem i32 (get %c) store %s[3], "
        "get %d\n"
        "for %i in 0..4 { store %y[%p,%i], load %s[%i] } } }";
    float x[2][64] = { { 0 } };
    int32_t y[2][4];
    ir_func f;
    x[0][40] = x[0][5] = x[0][37] = 3;
    x[0][2] = x[0][34] = x[0][61] = -3;
    x[1][50] = x[1][9] = NAN; /* the first NaN wins, everywhere */
    x[1][1] = INFINITY;
    read_function(text, &f);
    ck_assert_int_eq(run_all(&f, (void *[]){ x, y }, NULL), OPJIT_OK);
    ck_assert_mem_eq(y[0], ((int32_t[]){ 5, 40, 2, 61 }), 16);
    ck_assert_mem_eq(y[1], ((int32_t[]){ 9, 9, 9, 9 }), 16);
    opjit_ir_free(&f);
}
END_TEST

/* A running sum: get inside the loop, one lane; a temp between stages; a copy of a NaN with its payload. */
START_TEST(scan_and_stages)
{
    static const char text[] =
        "kernel @k after place { in %x: i32[8] in %n: f32[1] out %y: i32[8] out %m: f32[1] temp %t: i32[8] temp %u: "
        "i32[8]\n"
        "stage @0 for %p in 0..8 { acc %a: i32 sum for %j in 0..8 step 3 { upd %a, load %x[%j] }\n"
        "store %t[%p], add(load %x[%p], get %a) }\n"
        "stage @1 for %q in 0..8 { store %u[%q], mul(load %t[%q], i32 2) }\n"
        "stage @2 for %r in 0..1 { acc %b: i32 sum for %k in 0..8 { upd %b, load %u[%k] store %y[%k], get %b }\n"
        "store %m[0], load %n[0] } }";
    int32_t x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[8], sum = 0;
    uint32_t n = 0xffa00001, m = 0;
    ir_func f;
    read_function(text, &f);
    ck_assert_uint_eq(f.shared_size, 96); /* both temps live in stage 1, the second one on the next line */
    ck_assert_int_eq(run_all(&f, (void *[]){ x, &n, y, &m }, NULL), OPJIT_OK);
    for (int i = 0; i < 8; i++) {
        sum += 2 * (x[i] + 1 + 4 + 7);
        ck_assert_int_eq(y[i], sum);
    }
    ck_assert_uint_eq(m, n);
    opjit_ir_free(&f);
}
END_TEST

/* Temps of 64, 1024 and 2048 bytes in a chain: in the order of their first stages the last one finds no gap (3136 bytes
 * in all); the largest first, the two that live at one time are side by side. */
START_TEST(largest_first)
{
    static const char text[] =
        "kernel @k after place { in %x: i32[512] out %y: i32[512] temp %a: i32[16] temp %b: i32[256] temp %c: "
        "i32[512]\n"
        "stage @0 for %p in 0..16 { store %a[%p], load %x[%p] }\n"
        "stage @1 for %q in 0..256 { store %b[%q], add(load %x[%q], load %a[imod(%q, 16)]) }\n"
        "stage @2 for %r in 0..512 { store %c[%r], add(load %x[%r], load %b[imod(%r, 256)]) }\n"
        "stage @3 for %s in 0..512 { store %y[%s], load %c[%s] } }";
    int32_t x[512], y[512];
    ir_func f;
    read_function(text, &f);
    ck_assert_uint_eq(f.shared_size, 3072);
    for (int i = 0; i < 512; i++)
        x[i] = i * i;
    ck_assert_int_eq(run_all(&f, (void *[]){ x, y }, NULL), OPJIT_OK);
    for (int i = 0; i < 512; i++)
        ck_assert_int_eq(y[i], x[i] + x[i % 256] + x[i % 16]);
    opjit_ir_free(&f);
}
END_TEST

START_TEST(wrong_access_is_refused)
{
    static const char text[] = "kernel @k after place { in %x: f32[4] out %y: f32[4]\n"
                               "stage @0 for %p in 0..8 { store %y[%p], load %x[isub(%p, 1)] } }";
    float x[4] = { 0 }, y[5] = { 9, 9, 9, 9, 9 };
    ir_func f;
    opjit_rt_error_clear(&error);
    ck_assert_int_eq(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error), OPJIT_OK);
    ck_assert_int_eq(run_all(&f, (void *[]){ x, y }, NULL), OPJIT_INTERNAL);
    ck_assert_str_eq(error.message, "%0 load: coordinate 0 is -1, size 4");
    ir_run run = { .buffers = (void *[]){ x, y }, .begin = 1, .end = 8 };
    ck_assert_int_eq(opjit_ir_interpret(&f, &run, &error), OPJIT_INTERNAL);
    ck_assert_str_eq(error.message, "%1 store: coordinate 0 is 4, size 4");
    ck_assert(y[0] == 9 && y[3] == 0 && y[4] == 9);
    run.end = 9;
    ck_assert_int_eq(opjit_ir_interpret(&f, &run, &error), OPJIT_INTERNAL);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.interp");
    TCase *tests = tcase_create("interp");
    tcase_add_test(tests, value_form);
    tcase_add_test(tests, lazy_and_strided);
    tcase_add_test(tests, order_of_sums);
    tcase_add_test(tests, arg_kinds);
    tcase_add_test(tests, scan_and_stages);
    tcase_add_test(tests, largest_first);
    tcase_add_test(tests, wrong_access_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
