/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_window.c - sums of products through windows, and pools, in tiles of random sizes: after every pass the
 * interpreter writes the bytes that fma, + or max in the documented order gives, the verifier proves each function, and
 * a pass that runs again changes nothing.  Blocks of k are short, so that small windows have several. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/ir_passes.h"
#include "tests/support/random.h"

enum { INPUT, FILTER, BIAS, OUT, SLOTS, SPACE = 3 };
enum { LEAST_CACHE = 1024, CACHES = 4 }; /* of a kind that no CPU has: bytes, and numbers of sizes */

typedef struct slide {
    int in, taps, stride, dilation, start, out;
} slide;

typedef struct windows {
    int batch, groups, ins, outs, space; /* ins, outs: of a group */
    slide s[SPACE];
    int block;
    bool flipped, bias, zeros[2]; /* zeros: x, w less zero points */
    bool leaves; /* steps in the padding take no part, as in BACKWARD convolutions */
    bool costly; /* results are negated, which tiles don't do */
    const char *pool; /* NULL, or "sum" or "max": of x alone */
    bool clamped;     /* a pool's indices */
    const char *in, *type;
    ir_tiles tiles;
} windows;

static int draw(test_random *r, int least, int most)
{
    return least + (int)test_random_below(r, (uint64_t)(most - least + 1));
}

static slide draw_slide(test_random *r, int most)
{
    slide s;
    do {
        s = (slide){ .in = draw(r, 1, most), .taps = draw(r, 1, 4), .start = draw(r, 0, 3) };
        if (test_random_chance(r, 20))
            s.taps = draw(r, 5, 9);
        s.stride = test_random_chance(r, 60) ? 1 : draw(r, 2, test_random_chance(r, 80) ? 3 : 7);
        s.dilation = test_random_chance(r, 70) ? 1 : draw(r, 2, test_random_chance(r, 70) ? 3 : 9);
        const int room = s.in + s.start + draw(r, 0, 2) - (s.taps - 1) * s.dilation - 1;
        s.out = room < 0 ? 0 : room / s.stride + 1;
    } while (s.out == 0);
    return s;
}

static int taps_of(const windows *w)
{
    int taps = 1;
    for (int i = 0; i < w->space; i++)
        taps *= w->s[i].taps;
    return taps;
}

static void set_pool(test_random *r, windows *w)
{
    w->pool = test_random_chance(r, 50) ? "sum" : "max";
    w->clamped = test_random_chance(r, 50);
    w->ins = w->outs = 1;
    w->groups = draw(r, 1, 5);
    w->zeros[0] = w->zeros[1] = w->leaves = w->flipped = false;
}

/* Without taps, strides and padding. */
static void set_plain(test_random *r, windows *w)
{
    w->space = 2;
    w->outs = draw(r, 1, 20);
    for (int i = 0; i < w->space; i++) {
        const int size = draw(r, 1, 12);
        w->s[i] = (slide){ .in = size, .taps = 1, .stride = 1, .dilation = 1, .out = size };
    }
}

static windows draw_windows(test_random *r)
{
    static const char *const types[][2] = { { "f32", "f32" }, { "f16", "f32" }, { "f64", "f64" }, { "u8", "i32" },
                                             { "i8", "i32" } };
    windows w = { .batch = draw(r, 1, 2), .ins = draw(r, 1, 5), .outs = draw(r, 1, 7) };
    w.groups = test_random_chance(r, 60) ? 1 : draw(r, 2, 3);
    if (test_random_chance(r, 30)) /* depthwise */
        w.ins = w.outs = 1;
    w.space = test_random_chance(r, 60) ? 2 : draw(r, 1, 3);
    for (int i = 0; i < w.space; i++)
        w.s[i] = draw_slide(r, w.space == 1 ? 24 : w.space == 2 ? 9 : 5);
    if (test_random_chance(r, 25))
        set_plain(r, &w);
    const int type = draw(r, 0, 4);
    w.zeros[0] = type >= 3 && test_random_chance(r, 50);
    w.zeros[1] = type >= 3 && test_random_chance(r, 50);
    if (type >= 3 && test_random_chance(r, 70))
        w.ins = 4 * draw(r, 1, 2);
    w.block = taps_of(&w) * draw(r, 1, 4);
    w.in = types[type][0];
    w.type = types[type][1];
    w.flipped = test_random_chance(r, 20);
    w.bias = test_random_chance(r, 50);
    w.leaves = type < 3 && test_random_chance(r, 30);
    w.costly = type < 3 && test_random_chance(r, 30);
    if (test_random_chance(r, 30))
        set_pool(r, &w);
    w.tiles = (ir_tiles){ .rows = (uint32_t)draw(r, 1, 4), .columns = 1u << draw(r, 1, 4) };
    w.tiles.block_rows = (uint32_t)draw(r, 1, 9);
    w.tiles.block_columns = (uint32_t)draw(r, 1, 60);
    w.tiles.by_rows = test_random_chance(r, 40);
    if (w.ins == 1 && w.outs == 1 && w.pool == NULL && test_random_chance(r, 60)) { /* whole vectors of channels */
        w.groups = (int)w.tiles.columns * draw(r, 1, 2);
        w.tiles.by_rows = true;
    }
    return w;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void write_sizes(rt_bytes *text, const char *role, const char *name, const char *type, const int *first,
                        const windows *w, int which)
{
    opjit_rt_bytes_printf(text, " %s %%%s: %s[%d,%d", role, name, type, first[0], first[1]);
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, ",%d", which == 0 ? w->s[i].in : which == 1 ? w->s[i].taps : w->s[i].out);
    opjit_rt_bytes_printf(text, "]\n");
}

/* Where tap k of dimension i reads, and the tap itself. */
static void write_tap(const windows *w, int i, char at[200], char tap[100])
{
    int below = 1;
    for (int n = i + 1; n < w->space; n++)
        below *= w->s[n].taps;
    snprintf(tap, 100, "imod(idiv(%%k, %d), %d)", below, w->s[i].taps);
    snprintf(at, 200, "iadd(iadd(imul(%%p%d, %d), imul(%.90s, %d)), %d)", i, w->s[i].stride, tap, w->s[i].dilation,
             -w->s[i].start);
}

static const char *zero_of(const windows *w)
{
    return strcmp(w->type, "i32") == 0 ? "i32 0" : strcmp(w->type, "f64") == 0 ? "f64 0x0p+0" : "f32 0x0p+0";
}

/* "select(", and whether a tap is in the input. */
static void write_inside(const windows *w, char at[SPACE][200], rt_bytes *text)
{
    opjit_rt_bytes_printf(text, "select(");
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, "%sand(le(0, %s), lt(%s, %d))%s", i + 1 < w->space ? "and(" : "", at[i], at[i],
                              w->s[i].in, i + 1 < w->space ? "," : "");
    for (int i = 0; i + 1 < w->space; i++)
        opjit_rt_bytes_printf(text, ")");
}

/* Zero points are a tensor's first element, or a filter's. */
static void write_zero(const windows *w, rt_bytes *text, const char *first)
{
    opjit_rt_bytes_printf(text, ", cast i32 (load %%%s", first);
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, ",0");
    opjit_rt_bytes_printf(text, "]))");
}

static void write_factors(const windows *w, rt_bytes *text)
{
    char at[SPACE][200], tap[SPACE][100];
    const bool wide = strcmp(w->in, w->type) != 0;
    for (int i = 0; i < w->space; i++)
        write_tap(w, i, at[i], tap[i]);
    write_inside(w, at, text);
    opjit_rt_bytes_printf(text, ", %s%s%s%sload %%x[%%n, iadd(imul(idiv(%%o, %d), %d), idiv(%%k, %d))",
                          w->zeros[0] ? "sub(" : "", wide ? "cast " : "", wide ? w->type : "", wide ? " (" : "",
                          w->outs, w->ins, taps_of(w));
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, ", %s", at[i]);
    opjit_rt_bytes_printf(text, "]%s", wide ? ")" : "");
    if (w->zeros[0])
        write_zero(w, text, "x[0,0");
    opjit_rt_bytes_printf(text, ", %s%s%s), ", w->leaves ? "neg(" : "", zero_of(w), w->leaves ? ")" : "");
    if (w->leaves) {
        write_inside(w, at, text);
        opjit_rt_bytes_printf(text, ", ");
    }
    opjit_rt_bytes_printf(text, "%s%s%s%sload %%w[%%o, idiv(%%k, %d)", w->zeros[1] ? "sub(" : "",
                          wide ? "cast " : "", wide ? w->type : "", wide ? " (" : "", taps_of(w));
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, w->flipped ? ", isub(%d, %s)" : ", %.0d%s", w->flipped ? w->s[i].taps - 1 : 0,
                              tap[i]);
    opjit_rt_bytes_printf(text, "]%s", wide ? ")" : "");
    if (w->zeros[1])
        write_zero(w, text, "w[%o,0");
    if (w->leaves)
        opjit_rt_bytes_printf(text, ", %s)", zero_of(w));
}

/* What padding is to a pool. */
static const char *nothing_of(const windows *w)
{
    if (strcmp(w->pool, "sum") == 0)
        return zero_of(w);
    return strcmp(w->type, "i32") == 0 ? "i32 -2147483648" : strcmp(w->type, "f64") == 0 ? "f64 -inf" : "f32 -inf";
}

static void write_pool(const windows *w, rt_bytes *text)
{
    char at[SPACE][200], tap[100];
    const bool wide = strcmp(w->in, w->type) != 0;
    for (int i = 0; i < w->space; i++)
        write_tap(w, i, at[i], tap);
    write_inside(w, at, text);
    opjit_rt_bytes_printf(text, ", %s%s%sload %%x[%%n, %%o", wide ? "cast " : "", wide ? w->type : "",
                          wide ? " (" : "");
    for (int i = 0; i < w->space; i++)
        if (w->clamped)
            opjit_rt_bytes_printf(text, ", clamp(%s, 0, %d)", at[i], w->s[i].in - 1);
        else
            opjit_rt_bytes_printf(text, ", %s", at[i]);
    opjit_rt_bytes_printf(text, "]%s, %s)", wide ? ")" : "", nothing_of(w));
}

static void write_text(const windows *w, rt_bytes *text)
{
    const int outs = w->groups * w->outs;
    opjit_rt_bytes_init(text, &opjit_rt_default_allocator);
    opjit_rt_bytes_printf(text, "kernel @f {\n");
    write_sizes(text, "in", "x", w->in, (int[]){ w->batch, w->groups * w->ins }, w, 0);
    write_sizes(text, "in", "w", w->in, (int[]){ outs, w->ins }, w, 1);
    opjit_rt_bytes_printf(text, " in %%b: %s[%d]\n", w->type, outs);
    write_sizes(text, "out", "y", w->type, (int[]){ w->batch, outs }, w, 2);
    write_sizes(text, "def", "s", w->type, (int[]){ w->batch, outs }, w, 2);
    text->size--; /* the newline */
    opjit_rt_bytes_printf(text, " (%%n,%%o");
    for (int i = 0; i < w->space; i++)
        opjit_rt_bytes_printf(text, ",%%p%d", i);
    if (w->pool != NULL) {
        opjit_rt_bytes_printf(text, ") = reduce %s %%k in 0..%d: ", w->pool, taps_of(w));
        write_pool(w, text);
    } else {
        opjit_rt_bytes_printf(text, ") = reduce dot %%k in 0..%d block %d: pair(", w->ins * taps_of(w), w->block);
        write_factors(w, text);
    }
    char at[40] = "";
    for (int i = 0; i < w->space; i++)
        snprintf(at + strlen(at), sizeof at - strlen(at), ",%%q%d", i);
    opjit_rt_bytes_printf(text, "%s\n yield %%y (%%n1,%%o1%s) = %s", w->pool != NULL ? "" : ")", at,
                          w->costly ? "neg(" : "");
    opjit_rt_bytes_printf(text, w->bias ? "max(add(load %%s[%%n1,%%o1%s], load %%b[%%o1]), %s)"
                                        : "load %%s[%%n1,%%o1%s]%.0s",
                          at, zero_of(w));
    opjit_rt_bytes_printf(text, w->costly ? ")\n}\n" : "\n}\n");
    opjit_rt_bytes_zero_end(text);
    ck_assert(!text->failed);
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

static double element(const char *type, const void *base, int64_t i)
{
    if (strcmp(type, "f16") == 0)
        return (double)opjit_ir_f16_to_f32(((const uint16_t *)base)[i]);
    if (strcmp(type, "u8") == 0)
        return ((const uint8_t *)base)[i];
    if (strcmp(type, "i8") == 0)
        return ((const int8_t *)base)[i];
    if (strcmp(type, "i32") == 0)
        return ((const int32_t *)base)[i];
    return strcmp(type, "f64") == 0 ? ((const double *)base)[i] : (double)((const float *)base)[i];
}

/* Sums of integers are exact. */
static double rounded(const windows *w, double x)
{
    return strcmp(w->type, "f32") != 0 ? x : (double)(float)x;
}

/* The input's element for tap number `tap` of a window, 0 in the padding; *inside: whether it is not there. */
static double input_of(const windows *w, const void *x, int64_t plane, int tap, const int *at, bool *inside)
{
    int coordinates[SPACE];
    for (int i = w->space; i-- > 0; tap /= w->s[i].taps)
        coordinates[i] = at[i] * w->s[i].stride + tap % w->s[i].taps * w->s[i].dilation - w->s[i].start;
    *inside = false;
    for (int i = 0; i < w->space; i++) {
        if (coordinates[i] < 0 || coordinates[i] >= w->s[i].in)
            return 0;
        plane = plane * w->s[i].in + coordinates[i];
    }
    *inside = true;
    return element(w->in, x, plane) - (w->zeros[0] ? element(w->in, x, 0) : 0);
}

static double sum_of(const windows *w, void *const *memory, int n, int o, const int *at)
{
    const int taps = taps_of(w), length = w->ins * taps;
    double total = 0, sum = 0;
    for (int k = 0; k < length; k++) {
        const int tap = w->flipped ? taps - 1 - k % taps : k % taps; /* all coordinates reversed */
        const int64_t plane = ((int64_t)n * w->groups + o / w->outs) * w->ins + k / taps;
        bool inside;
        const double x = input_of(w, memory[INPUT], plane, k % taps, at, &inside);
        const int64_t row = (int64_t)o * w->ins * taps;
        const double zero = w->zeros[1] ? element(w->in, memory[FILTER], row) : 0;
        const double y = element(w->in, memory[FILTER], row + (int64_t)(k / taps * taps) + tap) - zero;
        if (k % w->block == 0)
            sum = 0;
        if (inside || !w->leaves)
            sum = strcmp(w->type, "f32") != 0 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
        if (k % w->block == w->block - 1 || k + 1 == length)
            total = k < w->block ? sum : rounded(w, total + sum);
    }
    return total;
}

/* Of a step after the others. */
static double pooled(const windows *w, double before, double x)
{
    return strcmp(w->pool, "sum") == 0 ? rounded(w, before + x) : before > x || isnan(before) ? before : x;
}

static double pool_of(const windows *w, void *const *memory, int n, int o, const int *at)
{
    const double nothing = strcmp(w->pool, "sum") == 0 ? 0 : strcmp(w->type, "i32") == 0 ? INT32_MIN : -INFINITY;
    double all = nothing;
    for (int k = 0; k < taps_of(w); k++) {
        bool inside;
        const double x = input_of(w, memory[INPUT], (int64_t)n * w->groups + o, k, at, &inside);
        all = pooled(w, all, inside ? x : nothing);
    }
    return all;
}

static void check_output(const void *user, void *const *memory, const char *pass, const char *text)
{
    const windows *const w = user;
    int count = w->batch * w->groups * w->outs, at[SPACE];
    for (int i = 0; i < w->space; i++)
        count *= w->s[i].out;
    for (int e = 0; e < count; e++) {
        int rest = e;
        for (int i = w->space; i-- > 0; rest /= w->s[i].out)
            at[i] = rest % w->s[i].out;
        const int o = rest % (w->groups * w->outs);
        double x = (w->pool != NULL ? pool_of : sum_of)(w, memory, rest / (w->groups * w->outs), o, at);
        if (w->bias) {
            x = rounded(w, x + element(w->type, memory[BIAS], o));
            x = isnan(x) || x > 0 ? x : 0;
        }
        x = w->costly ? -x : x;
        const double got = element(w->type, memory[OUT], e);
        if (isnan(got) && isnan(x))
            continue;
        if (memcmp(&got, &x, sizeof x) != 0)
            fprintf(stderr, "%s\n", text);
        ck_assert_msg(memcmp(&got, &x, sizeof x) == 0, "after %s: element %d is %a, not %a", pass, e, got, x);
    }
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void fill(test_random *r, const char *type, bool endless, void *memory, uint64_t bytes)
{
    const uint64_t size = strcmp(type, "f16") == 0 ? 2 : strcmp(type, "f64") == 0 ? 8 : 4;
    if (strcmp(type + 1, "8") == 0 || strcmp(type, "i32") == 0) {
        for (uint64_t i = 0; i < bytes; i++)
            ((uint8_t *)memory)[i] = (uint8_t)(type[1] == '8' || i % 4 < 2 ? test_random_below(r, 256) : 0);
        return;
    }
    for (uint64_t i = 0; i < bytes / size; i++) {
        const double x = endless && test_random_chance(r, 2) ? INFINITY
                                                             : ldexp((double)draw(r, -4096, 4096) / 2048.0,
                                                                     draw(r, -3, 3));
        if (size == 8)
            ((double *)memory)[i] = x;
        else if (size == 4)
            ((float *)memory)[i] = (float)x;
        else
            ((uint16_t *)memory)[i] = opjit_ir_f32_to_f16((float)x);
    }
}

/* Returns whether tiles were made of it. */
static bool check_windows(const windows *w, const rt_target *target, test_random *r)
{
    bool tiles = false;
    ir_func f;
    rt_bytes text;
    void *memory[SLOTS] = { NULL };
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target, .tiles = &w->tiles, .verify = true };
    write_text(w, &text);
    ck_assert_msg(opjit_ir_parse((const char *)text.data, strlen((const char *)text.data), &opjit_rt_default_allocator,
                                 &f, &error) == OPJIT_OK,
                  "%s\n%s", error.message, (const char *)text.data);
    for (uint32_t t = 1; t <= SLOTS; t++) {
        memory[t - 1] = malloc(f.tensors[t].bytes);
        ck_assert_ptr_nonnull(memory[t - 1]);
        fill(r, t == BIAS + 1 ? w->type : w->in, t == FILTER + 1 && w->leaves, memory[t - 1], f.tensors[t].bytes);
    }
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= opjit_ir_last_pass(target);
         pass++) {
        ir_passes_run_to(&f, pass, &env, memory, check_output, w);
        tiles = tiles || f.steps[IR_STEP_WINDOW] > 0;
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        free(memory[i]);
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&f);
    return tiles;
}

START_TEST(products)
{
    const test_cases cases = test_cases_init("ir.window", 300);
    static const char *const names[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v4+avx512vnni",
                                         "cpu:aarch64" };
    rt_target targets[4];
    opjit_error error = { 0 };
    for (int i = 0; i < 4; i++)
        ck_assert_msg(opjit_rt_target_parse(names[i], &targets[i], &error) == OPJIT_OK, "%s", error.message);
    uint64_t tiles = 0;
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 1, n);
        const windows w = draw_windows(&r);
        rt_target target = targets[n % 4];
        if (n / 4 % 2 == 0)
            target.l2 = LEAST_CACHE << n / 8 % CACHES; /* results are beyond it */
        tiles += check_windows(&w, &target, &r);
    }
    /* not where there is one tap along one coordinate, or each row leaves out steps of windows of its own */
    ck_assert_uint_ge(2 * tiles, cases.end - cases.first);
}
END_TEST

/* Steps that take no part, by filters that are endless, with a stride and a dilation: tiles with rows as lanes left
 * none out. */
START_TEST(planes)
{
    const windows w = { .batch = 1, .groups = 1, .ins = 5, .outs = 6, .space = 2,
                        .s = { { 6, 4, 2, 1, 0, 3 }, { 8, 2, 2, 3, 3, 5 } },
                        .block = 24, .bias = true, .leaves = true, .in = "f64", .type = "f64",
                        .tiles = { .rows = 2, .columns = 16, .block_rows = 9, .block_columns = 60, .by_rows = true } };
    rt_target target;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_rt_target_parse("cpu:x86-64-v4", &target, &error) == OPJIT_OK, "%s", error.message);
    for (uint64_t n = 0; n < 4; n++) {
        test_random r;
        test_random_init(&r, 1, 2, n);
        ck_assert(check_windows(&w, &target, &r));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.window");
    TCase *tcase = tcase_create("windows");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, products);
    tcase_add_test(tcase, planes);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
