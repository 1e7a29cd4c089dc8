/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_contract.c - products of matrices in tiles of random sizes: after every pass the interpreter writes the bytes
 * that fma in the documented order gives, the verifier proves each function, and a pass that runs again changes
 * nothing.  Blocks of k are short, so that small matrices have several. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/ir_passes.h"
#include "tests/support/random.h"

enum { A, B, BIAS, OUT, SLOTS = OUT + 4 }; /* then another output, zero points */

typedef struct product {
    int batch, rows, columns, length, block;
    bool turned[2]; /* A is [k][row], B is [column][k] */
    bool shared;    /* all of the batch have the same B */
    bool constant;  /* B is, so that what is made of it is kept */
    bool bias;      /* max(result + bias[column], 0) is the output */
    bool temp;      /* the result is read by two outputs */
    bool general;   /* tiles and blocks are those of a kernel for many sizes */
    const char *in[2], *type;
    bool zero[2];      /* of integers: factors less a zero point for each row or column, or one for all */
    bool zero_each[2], zero_wide; /* of as many bits as sums */
    ir_tiles tiles;
} product;

static int draw(test_random *r, int least, int most)
{
    return least + (int)test_random_below(r, (uint64_t)(most - least + 1));
}

static bool is_integer(const char *type)
{
    return type[0] != 'f';
}

static product draw_product(test_random *r)
{
    static const char *const types[][3] = { { "f32", "f32", "f32" }, { "f16", "f16", "f32" }, { "f64", "f64", "f64" },
                                            { "i32", "i32", "i32" }, { "u8", "u8", "u32" },   { "u8", "i8", "i32" },
                                            { "i8", "i8", "i32" },   { "u8", "u8", "i32" },   { "i8", "u8", "i32" } };
    product p = { .batch = draw(r, 1, 3),
                  .rows = draw(r, 1, 12),
                  .columns = draw(r, 1, 20),
                  .length = draw(r, 1, 30),
                  .block = test_random_chance(r, 20) ? 16 : draw(r, 1, 11) };
    const int type = draw(r, 0, 8);
    p.in[0] = types[type][0];
    p.in[1] = types[type][1];
    p.type = types[type][2];
    for (int i = 0; i < 2; i++) {
        p.zero[i] = is_integer(p.type) && test_random_chance(r, 60);
        p.zero_each[i] = test_random_chance(r, 50);
    }
    p.zero_wide = test_random_chance(r, 10);
    p.turned[0] = test_random_chance(r, 50);
    p.turned[1] = test_random_chance(r, 50);
    p.shared = test_random_chance(r, 30);
    p.constant = test_random_chance(r, 40);
    p.bias = test_random_chance(r, 50);
    p.temp = test_random_chance(r, 20);
    p.tiles = (ir_tiles){ .rows = (uint32_t)draw(r, 1, 4), .columns = 1u << draw(r, 1, 3) };
    p.tiles.few_rows = test_random_chance(r, 30) ? 12 : 0;
    p.tiles.together = test_random_chance(r, 30) ? (uint32_t)draw(r, 1, 3) : 0;
    if (p.tiles.together > 0 && test_random_chance(r, 50))
        p.rows = draw(r, 1, 2);
    p.tiles.across = test_random_chance(r, 40) ? (uint32_t)draw(r, 1, 5) : 0;
    p.tiles.split = test_random_chance(r, 40);
    p.tiles.share = test_random_chance(r, 50);
    p.tiles.block_rows = (uint32_t)draw(r, 1, 9);
    p.tiles.block_columns = (uint32_t)draw(r, 1, 20);
    p.general = test_random_chance(r, 30);
    return p;
}

static void write_text(const product *p, rt_bytes *text)
{
    const char *const a = p->turned[0] ? "%p,%k,%i" : "%p,%i,%k";
    const char *const b = p->shared ? p->turned[1] ? "0,%j,%k" : "0,%k,%j" : p->turned[1] ? "%p,%j,%k" : "%p,%k,%j";
    opjit_rt_bytes_init(text, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(text, "kernel @f {\n in %%a: %s[%d,%d,%d]\n", p->in[0], p->batch,
                          p->turned[0] ? p->length : p->rows, p->turned[0] ? p->rows : p->length);
    opjit_rt_bytes_printf(text, " %s %%b: %s[%d,%d,%d]\n", p->constant ? "const" : "in", p->in[1],
                          p->shared ? 1 : p->batch, p->turned[1] ? p->columns : p->length,
                          p->turned[1] ? p->length : p->columns);
    opjit_rt_bytes_printf(text, " in %%c: %s[%d]\n", p->type, p->columns);
    for (int i = 0; i <= p->temp; i++)
        opjit_rt_bytes_printf(text, " out %%o%d: %s[%d,%d,%d]\n", i, p->type, p->batch, p->rows, p->columns);
    for (int i = 0; i < 2; i++)
        opjit_rt_bytes_printf(text, " %s %%z%d: %s[%d]\n", i == 1 && p->constant ? "const" : "in", i,
                              p->zero_wide ? p->type : p->in[i],
                              !p->zero_each[i] ? 1 : i == 0 ? p->rows : p->columns);
    opjit_rt_bytes_printf(text, " def %%s: %s[%d,%d,%d] (%%p,%%i,%%j) = reduce dot %%k in 0..%d block %d: pair(",
                          p->type, p->batch, p->rows, p->columns, p->length, p->block);
    const char *const at[2] = { a, b };
    for (int i = 0; i < 2; i++) {
        const char *const cast = strcmp(p->in[i], p->type) == 0 ? "" : "cast ";
        char load[80];
        snprintf(load, sizeof load, "%s%s%sload %%%c[%s]%s", cast, *cast != 0 ? p->type : "", *cast != 0 ? " (" : "",
                 "ab"[i], at[i], *cast != 0 ? ")" : "");
        const bool wide = *cast == 0 || p->zero_wide;
        if (p->zero[i])
            opjit_rt_bytes_printf(text, "sub(%s, %s%s%sload %%z%d[%s]%s)", load, wide ? "" : cast, wide ? "" : p->type,
                                  wide ? "" : " (", i, !p->zero_each[i] ? "0" : i == 0 ? "%i" : "%j",
                                  wide ? "" : ")");
        else
            opjit_rt_bytes_printf(text, "%s", load);
        opjit_rt_bytes_printf(text, i == 0 ? ", " : ")\n");
    }
    for (int i = 0; i <= p->temp; i++) {
        opjit_rt_bytes_printf(text, " yield %%o%d (%%p%d,%%i%d,%%j%d) = ", i, i, i, i);
        opjit_rt_bytes_printf(text, "%sload %%s[%%p%d,%%i%d,%%j%d]", p->bias ? "max(add(" : "", i, i, i);
        if (p->bias)
            opjit_rt_bytes_printf(text, ", load %%c[%%j%d]), %s 0%s)", i, p->type,
                                  is_integer(p->type) ? "" : "x0p+0");
        opjit_rt_bytes_printf(text, "\n");
    }
    opjit_rt_bytes_printf(text, "}\n");
    opjit_rt_bytes_zero_end(text);
    ck_assert(!text->failed);
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

static double element(const char *type, const void *base, int64_t i)
{
    if (strcmp(type, "f16") == 0)
        return (double)opjit_ir_f16_to_f32(((const uint16_t *)base)[i]);
    if (!is_integer(type))
        return strcmp(type, "f64") == 0 ? ((const double *)base)[i] : (double)((const float *)base)[i];
    if (strcmp(type, "i32") == 0)
        return ((const int32_t *)base)[i];
    if (strcmp(type, "u32") == 0)
        return ((const uint32_t *)base)[i];
    return strcmp(type, "i8") == 0 ? ((const int8_t *)base)[i] : ((const uint8_t *)base)[i];
}

/* Rounds to the type of the result; integers of at most 53 bits modulo 2^32. */
static double rounded(const product *p, double x)
{
    if (is_integer(p->type))
        return strcmp(p->type, "u32") == 0 ? (double)(uint32_t)(int64_t)x : (double)(int32_t)(uint32_t)(int64_t)x;
    return strcmp(p->type, "f64") == 0 ? x : (double)(float)x;
}

/* The factor less its zero point. */
static double factor(const product *p, void *const *memory, int side, int64_t at, int own)
{
    const double x = element(p->in[side], memory[side], at);
    const void *zero = memory[OUT + 1 + p->temp + side];
    const char *const type = p->zero_wide ? p->type : p->in[side];
    return p->zero[side] ? x - element(type, zero, p->zero_each[side] ? own : 0) : x;
}

/* x * y + sum in the type of the result. */
static double step(const product *p, double x, double y, double sum)
{
    if (is_integer(p->type))
        return rounded(p, (double)(int64_t)((uint64_t)(int64_t)x * (uint64_t)(int64_t)y & UINT32_MAX) + sum);
    return strcmp(p->type, "f64") == 0 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
}

static double sum_of(const product *p, void *const *memory, int n, int i, int j)
{
    double total = 0, sum = 0;
    for (int k = 0; k < p->length; k++) {
        const int64_t a =
            p->turned[0] ? ((int64_t)n * p->length + k) * p->rows + i : ((int64_t)n * p->rows + i) * p->length + k;
        const int64_t m = p->shared ? 0 : n;
        const int64_t b = p->turned[1] ? (m * p->columns + j) * p->length + k : (m * p->length + k) * p->columns + j;
        const double x = factor(p, memory, 0, a, i), y = factor(p, memory, 1, b, j);
        if (k % p->block == 0)
            sum = 0;
        sum = step(p, x, y, sum);
        if (k % p->block == p->block - 1 || k + 1 == p->length)
            total = k < p->block ? sum : rounded(p, total + sum);
    }
    return total;
}

static void check_outputs(const void *user, void *const *memory, const char *pass, const char *text)
{
    const product *const p = user;
    for (int o = 0; o <= p->temp; o++)
        for (int e = 0; e < p->batch * p->rows * p->columns; e++) {
            const int j = e % p->columns;
            double x = sum_of(p, memory, e / p->columns / p->rows, e / p->columns % p->rows, j);
            if (p->bias) {
                x = rounded(p, x + element(p->type, memory[BIAS], j));
                x = x > 0 ? x : 0;
            }
            const double got = element(p->type, memory[OUT + o], e);
            if (memcmp(&got, &x, sizeof x) != 0)
                fprintf(stderr, "%s\n", text);
            ck_assert_msg(memcmp(&got, &x, sizeof x) == 0, "after %s: element %d of output %d is %a, not %a", pass, e,
                          o, got, x);
        }
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Numbers of many sizes, some so small that their product rounds to zero; any integers. */
static void fill(test_random *r, const char *type, void *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes && is_integer(type); i++)
        ((uint8_t *)memory)[i] = test_random_chance(r, 30) ? 0xff : (uint8_t)test_random_u64(r);
    if (is_integer(type))
        return;
    const uint64_t size = strcmp(type, "f16") == 0 ? 2 : strcmp(type, "f64") == 0 ? 8 : 4;
    for (uint64_t i = 0; i < bytes / size; i++) {
        const double x = ldexp((double)draw(r, -4096, 4096) / 2048.0, test_random_chance(r, 5) ? -90 : draw(r, -3, 3));
        if (size == 8)
            ((double *)memory)[i] = x;
        else if (size == 4)
            ((float *)memory)[i] = (float)x;
        else
            ((uint16_t *)memory)[i] = opjit_ir_f32_to_f16((float)x);
    }
}

/* Returns whether tiles were made of it; *once: counts those of which something is kept. */
static bool check_product(const product *p, const rt_target *target, test_random *r, uint64_t *once)
{
    bool tiles = false;
    ir_func f;
    rt_bytes text;
    void *memory[SLOTS + 1] = { NULL };
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target,
                              .tiles = &p->tiles,
                              .verify = true,
                              .once = true,
                              .general = p->general,
                              .low_tiles = p->general };
    write_text(p, &text);
    ck_assert_msg(opjit_ir_parse((const char *)text.data, strlen((const char *)text.data), &opjit_rt_default_allocator,
                                 &f, &error) == OPJIT_OK,
                  "%s\n%s", error.message, (const char *)text.data);
    for (uint32_t t = 1; t < f.tensor_count; t++)
        if (f.tensors[t].role == IR_IN || f.tensors[t].role == IR_OUT || f.tensors[t].role == IR_CONSTANT) {
            memory[f.tensors[t].slot] = malloc(f.tensors[t].bytes);
            ck_assert_ptr_nonnull(memory[f.tensors[t].slot]);
            fill(r, opjit_ir_type_name(f.tensors[t].type), memory[f.tensors[t].slot], f.tensors[t].bytes);
        }
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= opjit_ir_last_pass(target);
         pass++) {
        ir_passes_run_to(&f, pass, &env, memory, check_outputs, p);
        tiles = tiles || f.steps[IR_STEP_CONTRACT] > 0;
    }
    *once += opjit_ir_once_count(&f) > 0;
    for (uint32_t i = 0; i <= SLOTS; i++)
        free(memory[i]);
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&f);
    return tiles;
}

START_TEST(products)
{
    const test_cases cases = test_cases_init("ir.contract", 400);
    static const char *const names[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v4+avx512vnni",
                                         "cpu:aarch64" };
    rt_target targets[4];
    opjit_error error = { 0 };
    for (int i = 0; i < 4; i++)
        ck_assert_msg(opjit_rt_target_parse(names[i], &targets[i], &error) == OPJIT_OK, "%s", error.message);
    uint64_t tiles = 0, once = 0;
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 1, n);
        const product p = draw_product(&r);
        tiles += check_product(&p, &targets[n % 4], &r, &once);
    }
    ck_assert_uint_ge(10 * once, cases.end - cases.first);
    ck_assert_uint_ge(10 * tiles, 9 * (cases.end - cases.first)); /* not where the result is one element, say */
}
END_TEST

/* Blocks that follow each other read the same kept columns: of five blocks of rows the number is the lowest digit. */
START_TEST(columns_that_are_kept)
{
    static const char source[] = "kernel @f {\n in %a: f32[300,512]\n const %b: f32[512,384]\n out %o: f32[300,384]\n"
                                 " def %s: f32[300,384] (%i,%j) = reduce dot %k in 0..512: "
                                 "pair(load %a[%i,%k], load %b[%k,%j])\n"
                                 " yield %o (%p,%q) = load %s[%p,%q]\n}\n";
    rt_target target;
    rt_bytes text;
    ir_func f;
    opjit_error error = { 0 };
    ck_assert(opjit_rt_target_parse("cpu:x86-64-v4", &target, &error) == OPJIT_OK);
    const ir_pass_env env = { .target = &target, .verify = true, .once = true, .general = true, .low_tiles = true };
    ck_assert_msg(opjit_ir_parse(source, strlen(source), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_msg(opjit_ir_run_passes(&f, &env, IR_CLEANED, &error) == OPJIT_OK, "%s", error.message);
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    opjit_ir_print(&f, &text);
    opjit_rt_bytes_u8(&text, 0);
    ck_assert_msg(strstr((const char *)text.data, ", 5), 64)") != NULL, "%s", (const char *)text.data);
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&f);
}
END_TEST

/* With 16 vector registers tiles have three vectors where that is not a twentieth more sums.  Blocks of whole tiles are
 * equal: of 32 tiles of columns four, not five. */
START_TEST(tiles_of_16_registers)
{
    static const struct {
        int rows, columns;
        const char *totals, *tile;
    } cases[] = {
        { 128, 768, " f32[128,96] ", " f32[4,24] " }, { 511, 513, " f32[128,264] ", " f32[4,24] " },
        { 4, 48, " f32[4,48] ", " f32[4,24] " },      { 12, 64, " f32[12,64] ", " f32[6,16] " },
        { 3, 48, " f32[3,48] ", " f32[3,16] " },      { 6, 48, " f32[6,48] ", " f32[6,16] " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[512];
        rt_target target;
        rt_bytes text;
        ir_func f;
        opjit_error error = { 0 };
        const int m = cases[i].rows, n = cases[i].columns;
        ck_assert(opjit_rt_target_parse("cpu:x86-64-v3", &target, &error) == OPJIT_OK);
        const ir_pass_env env = { .target = &target, .verify = true };
        snprintf(source, sizeof source,
                 "kernel @f {\n in %%a: f32[%d,512]\n in %%b: f32[512,%d]\n out %%o: f32[%d,%d]\n"
                 " def %%s: f32[%d,%d] (%%i,%%j) = reduce dot %%k in 0..512 block 256: "
                 "pair(load %%a[%%i,%%k], load %%b[%%k,%%j])\n yield %%o (%%p,%%q) = load %%s[%%p,%%q]\n}\n",
                 m, n, m, n, m, n);
        ck_assert_msg(opjit_ir_parse(source, strlen(source), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK,
                      "%s", error.message);
        ck_assert_msg(opjit_ir_run_passes(&f, &env, IR_CLEANED, &error) == OPJIT_OK, "%s", error.message);
        opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
        opjit_ir_print(&f, &text);
        opjit_rt_bytes_u8(&text, 0);
        ck_assert_msg(strstr((const char *)text.data, cases[i].totals) != NULL &&
                          strstr((const char *)text.data, cases[i].tile) != NULL,
                      "%s", (const char *)text.data);
        opjit_rt_bytes_free(&text);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.contract");
    TCase *tcase = tcase_create("products");
    tcase_add_test(tcase, products);
    tcase_add_test(tcase, columns_that_are_kept);
    tcase_add_test(tcase, tiles_of_16_registers);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
