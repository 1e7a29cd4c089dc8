/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_contract_rows.c - two products with a softmax between them in blocks of rows and tiles of random sizes, with
 * masks and without: after every pass the interpreter writes the bytes that it writes of the value form, the verifier
 * proves each function, and a pass that runs again changes nothing.  Blocks of k are short, so that rows of a few
 * elements have several. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/ir_passes.h"
#include "tests/support/random.h"

enum { Q, K, V, BIAS, OUT, SLOTS = OUT + 2 };

typedef enum mask { NONE, CAUSAL, BAND, MADE, ADDED, MASKS } mask; /* MADE: added, of positions */

typedef struct attention {
    int batch, queries, keys, size, values, block;
    mask mask;
    int from;     /* column - row from which on scores are masked */
    bool half;    /* inputs are f16 */
    bool bias;    /* the output is max(result + bias[column], 0) */
    bool weights; /* are an output, too */
    bool late;    /* values are computed by a definition between the products */
    bool wild;    /* values that are not numbers, infinite, or -0 */
    bool tiny;    /* values so small that products with most weights are 0, most of them -0 */
    ir_tiles tiles;
} attention;

static int draw(test_random *r, int least, int most)
{
    return least + (int)test_random_below(r, (uint64_t)(most - least + 1));
}

static attention draw_attention(test_random *r)
{
    attention a = { .batch = draw(r, 1, 3),
                    .queries = draw(r, 3, 20),
                    .keys = test_random_chance(r, 20) ? 32 * draw(r, 1, 2) : draw(r, 2, 24),
                    .size = draw(r, 1, 9),
                    .block = test_random_chance(r, 30) ? 256 : draw(r, 1, 11) };
    a.mask = (mask)draw(r, NONE, ADDED);
    a.from = draw(r, -2, 6);
    a.half = test_random_chance(r, 20);
    a.bias = test_random_chance(r, 30);
    a.weights = test_random_chance(r, 15);
    a.late = test_random_chance(r, 30);
    a.wild = test_random_chance(r, 30);
    a.tiny = test_random_chance(r, 20);
    a.tiles = (ir_tiles){ .rows = (uint32_t)draw(r, 1, 4), .columns = 1u << draw(r, 1, 3) };
    a.tiles.share = test_random_chance(r, 50);
    a.tiles.block_rows = (uint32_t)draw(r, 1, 12);
    a.tiles.block_columns = 8;
    a.values = (int)a.tiles.columns + draw(r, 0, 9);
    a.keys = a.keys < (int)a.tiles.columns ? (int)a.tiles.columns : a.keys;
    return a;
}

/* The score at i and j as the mask leaves it, scaled. */
static void write_score(const attention *a, rt_bytes *text, const char *h, const char *i, const char *j)
{
    char score[80];
    snprintf(score, sizeof score, "mul(load %%s[%s,%s,%s], f32 0x1p-3)", h, i, j);
    switch (a->mask) {
    case NONE: opjit_rt_bytes_printf(text, "%s", score); break;
    case CAUSAL:
        opjit_rt_bytes_printf(text, "select(le(iadd(%s, %d), %s), f32 bits 0xff800000, %s)", i, a->from, j, score);
        break;
    case BAND:
        opjit_rt_bytes_printf(text, "select(and(le(isub(%s, %d), %s), lt(%s, iadd(%s, %d))), %s, f32 bits 0xff800000)",
                              i, a->from, j, j, i, a->from + 2, score);
        break;
    case MADE:
        opjit_rt_bytes_printf(text, "add(%s, select(le(iadd(%s, %d), %s), f32 bits 0x%s, f32 0x0p+0))", score, i,
                              a->from, j, a->half ? "c61c4000" : "ff800000"); /* -10000, -inf */
        break;
    default: opjit_rt_bytes_printf(text, "add(%s, load %%b[%s,%s])", score, i, j); break;
    }
}

static void write_softmax(const attention *a, rt_bytes *text)
{
    opjit_rt_bytes_printf(text,
                          " def %%m: f32[%d,%d,1] (%%h1,%%i1,%%j1) = reduce max %%a1 in 0..%d lanes 32: ", a->batch,
                          a->queries, a->keys);
    write_score(a, text, "%h1", "%i1", "%a1");
    opjit_rt_bytes_printf(text, "\n def %%e: f32[%d,%d,%d] (%%h2,%%i2,%%j2) = select(eq(", a->batch, a->queries,
                          a->keys);
    write_score(a, text, "%h2", "%i2", "%j2");
    opjit_rt_bytes_printf(text, ", f32 bits 0xff800000), f32 0x0p+0, exp(min(sub(");
    write_score(a, text, "%h2", "%i2", "%j2");
    opjit_rt_bytes_printf(text, ", load %%m[%%h2,%%i2,0]), f32 0x0p+0)))\n");
    opjit_rt_bytes_printf(text,
                          " def %%t: f32[%d,%d,1] (%%h3,%%i3,%%j3) = reduce sum %%a3 in 0..%d lanes 32: load "
                          "%%e[%%h3,%%i3,%%a3]\n",
                          a->batch, a->queries, a->keys);
    opjit_rt_bytes_printf(text,
                          " def %%w: f32[%d,%d,%d] (%%h4,%%i4,%%j4) = mul(load %%e[%%h4,%%i4,%%j4], div(f32 "
                          "0x1p+0, load %%t[%%h4,%%i4,0]))\n",
                          a->batch, a->queries, a->keys);
}

static void write_text(const attention *a, rt_bytes *text)
{
    const char *type = a->half ? "f16" : "f32", *open = a->half ? "cast f32 (load " : "load ";
    const char *close = a->half ? "])" : "]";
    opjit_rt_bytes_init(text, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(text, "kernel @f {\n in %%q: %s[%d,%d,%d]\n", type, a->batch, a->queries, a->size);
    opjit_rt_bytes_printf(text, " in %%k: %s[%d,%d,%d]\n", type, a->batch, a->keys, a->size);
    opjit_rt_bytes_printf(text, " in %%v: %s[%d,%d,%d]\n", type, a->batch, a->keys, a->values);
    opjit_rt_bytes_printf(text, " in %%b: f32[%d,%d]\n", a->queries, a->keys > a->values ? a->keys : a->values);
    opjit_rt_bytes_printf(text, " out %%y: f32[%d,%d,%d]\n", a->batch, a->queries, a->values);
    if (a->weights)
        opjit_rt_bytes_printf(text, " out %%x: f32[%d,%d,%d]\n", a->batch, a->queries, a->keys);
    opjit_rt_bytes_printf(text, " def %%s: f32[%d,%d,%d] (%%h,%%i,%%j) = reduce dot %%d in 0..%d block %d: pair(",
                          a->batch, a->queries, a->keys, a->size, a->block);
    opjit_rt_bytes_printf(text, "%s%%q[%%h,%%i,%%d%s, %s%%k[%%h,%%j,%%d%s)\n", open, close, open, close);
    write_softmax(a, text);
    if (a->late) {
        opjit_rt_bytes_printf(text, " def %%u: f32[%d,%d,%d] (%%h8,%%g8,%%j8) = neg(", a->batch, a->keys, a->values);
        opjit_rt_bytes_printf(text, "%s%%v[%%h8,%%g8,%%j8%s)\n", open, close);
        open = "load ";
        close = "]";
    }
    opjit_rt_bytes_printf(text, " def %%r: f32[%d,%d,%d] (%%h5,%%i5,%%j5) = reduce dot %%g in 0..%d block %d: pair(",
                          a->batch, a->queries, a->values, a->keys, a->block);
    opjit_rt_bytes_printf(text, "load %%w[%%h5,%%i5,%%g], %s%%%c[%%h5,%%g,%%j5%s)\n", open, a->late ? 'u' : 'v', close);
    opjit_rt_bytes_printf(text, " yield %%y (%%h6,%%i6,%%j6) = %sload %%r[%%h6,%%i6,%%j6]%s\n",
                          a->bias ? "max(add(" : "", a->bias ? ", load %b[0,%j6]), f32 0x0p+0)" : "");
    if (a->weights)
        opjit_rt_bytes_printf(text, " yield %%x (%%h7,%%i7,%%j7) = load %%w[%%h7,%%i7,%%j7]\n");
    opjit_rt_bytes_printf(text, "}\n");
    opjit_rt_bytes_zero_end(text);
    ck_assert(!text->failed);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Numbers of many sizes; wild: few of them are none, infinite, or so small that products are -0. */
static void fill(test_random *r, const ir_tensor *t, bool wild, void *memory)
{
    const uint64_t size = opjit_ir_type_size(t->type);
    for (uint64_t i = 0; i < t->bytes / size; i++) {
        float x = ldexpf((float)draw(r, -4096, 4096) / 2048, draw(r, -3, 3));
        if (wild && test_random_chance(r, 4))
            x = test_random_chance(r, 40) ? -1e-30f : test_random_chance(r, 50) ? INFINITY : NAN;
        const uint16_t half = opjit_ir_f32_to_f16(x);
        memcpy((uint8_t *)memory + i * size, size == 2 ? (const void *)&half : (const void *)&x, size);
    }
}

/* Numbers that are rounded away when they are multiplied, and zeros. */
static void fill_tiny(test_random *r, const ir_tensor *t, void *memory)
{
    const uint64_t size = opjit_ir_type_size(t->type);
    for (uint64_t i = 0; i < t->bytes / size; i++) {
        uint32_t bits = (test_random_chance(r, 92) ? UINT32_C(0x80000000) : 0) + test_random_chance(r, 80);
        bits = size == 2 ? bits >> 16 | (bits & 1) : bits;
        memcpy((uint8_t *)memory + i * size, &bits, size);
    }
}

/* NaNs that arithmetic makes may be any. */
static void compare(const void *got, const void *want, uint64_t bytes, const char *pass, const char *text)
{
    for (uint64_t i = 0; i < bytes / 4; i++) {
        float x, y;
        memcpy(&x, (const uint8_t *)got + 4 * i, 4);
        memcpy(&y, (const uint8_t *)want + 4 * i, 4);
        if (memcmp(&x, &y, 4) != 0 && !(isnan(x) && isnan(y)))
            fprintf(stderr, "%s\n", text);
        ck_assert_msg(memcmp(&x, &y, 4) == 0 || (isnan(x) && isnan(y)), "after %s: element %d is %a, not %a", pass,
                      (int)i, (double)x, (double)y);
    }
}

typedef struct wanted {
    const ir_func *f;
    void *const *memory; /* by slot */
} wanted;

static void compare_outputs(const void *user, void *const *memory, const char *pass, const char *text)
{
    const wanted *const w = user;
    for (uint32_t t = 1; t < w->f->tensor_count; t++)
        if (w->f->tensors[t].role == IR_OUT)
            compare(memory[w->f->tensors[t].slot], w->memory[w->f->tensors[t].slot], w->f->tensors[t].bytes, pass,
                    text);
}

/* Returns whether it became one stage. */
static bool check_attention(const attention *a, const rt_target *target, test_random *r)
{
    bool one = false;
    ir_func f;
    rt_bytes text;
    void *memory[SLOTS] = { NULL }, *want[SLOTS] = { NULL };
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target, .tiles = &a->tiles, .verify = true };
    write_text(a, &text);
    ck_assert_msg(opjit_ir_parse((const char *)text.data, strlen((const char *)text.data), &opjit_rt_default_allocator,
                                 &f, &error) == OPJIT_OK,
                  "%s\n%s", error.message, (const char *)text.data);
    for (uint32_t t = 1; t < f.tensor_count; t++)
        if (f.tensors[t].role == IR_IN || f.tensors[t].role == IR_OUT) {
            const uint32_t slot = f.tensors[t].slot;
            memory[slot] = want[slot] = malloc(f.tensors[t].bytes);
            ck_assert_ptr_nonnull(memory[slot]);
            if (a->tiny && slot == V)
                fill_tiny(r, &f.tensors[t], memory[slot]);
            else
                fill(r, &f.tensors[t], a->wild, memory[slot]);
        }
    ir_passes_interpret(&f, memory);
    for (uint32_t t = 1; t < f.tensor_count; t++)
        if (f.tensors[t].role == IR_OUT) {
            memory[f.tensors[t].slot] = malloc(f.tensors[t].bytes);
            ck_assert_ptr_nonnull(memory[f.tensors[t].slot]);
        }
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= opjit_ir_last_pass(target);
         pass++) {
        ir_passes_run_to(&f, pass, &env, memory, compare_outputs, &(wanted){ &f, want });
        one = one || f.steps[IR_STEP_CONTRACT_ROWS] > 0;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        free(memory[i]);
        if (i >= OUT)
            free(want[i]);
    }
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&f);
    return one;
}

START_TEST(random_attention)
{
    const test_cases cases = test_cases_init("ir.contract_rows", 300);
    static const char *const names[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64" };
    rt_target targets[3];
    opjit_error error = { 0 };
    for (int i = 0; i < 3; i++)
        ck_assert_msg(opjit_rt_target_parse(names[i], &targets[i], &error) == OPJIT_OK, "%s", error.message);
    uint64_t found = 0;
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 1, n);
        const attention a = draw_attention(&r);
        found += check_attention(&a, &targets[n % 3], &r);
    }
    ck_assert_uint_ge(10 * found, 7 * (cases.end - cases.first)); /* not with a factor of one element, say */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.contract_rows");
    TCase *tcase = tcase_create("attention");
    tcase_add_test(tcase, random_attention);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
