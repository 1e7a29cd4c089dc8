/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_hold.c - held loops as functions whose scratch is registers: products in tiles of many forms, bit for bit as
 * interpreted, on every CPU; which of them are tiles, by their plans; code that is compiled once. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <stdio.h>

#include "tests/support/golden.h"

enum { TEXT_SIZE = 16384 };

/* Where a tile begins and what becomes of it. */
typedef enum start { ZERO, INPUT, APART, STARTS } start;
typedef enum end { OUTPUT, TOTALS, DIVIDED, REMAINDER, ENDS } end;
typedef enum step { PLAIN, WHERE, TAPS, VALUE, STEPS } step;
typedef enum bounds { ALL, LATE, ONE, PART, BOUNDS } bounds; /* PART: of a block, counted from its start */

typedef struct sample {
    start start;
    end end;
    step step;
    bounds bounds;
    bool edges;        /* sizes are no multiples of the tile's: rows are clamped, columns are copied with zeros */
    const char *type, *input; /* of sums, of factors */
    const char *dot;   /* factors are words, of four bytes or two halves; NULL: not */
    uint32_t rows, vectors, lanes, k, tiles;
    const char *target;
    uint32_t stages, number; /* 0 stages: one; each has an iteration less than the one before */
} sample;

static const char *const targets[] = { "cpu:x86-64-v1",
                                       "cpu:x86-64-v2",
                                       "cpu:x86-64-v3",
                                       "cpu:x86-64-v4",
                                       "cpu:x86-64-v4+avx512vnni",
                                       "cpu:aarch64",
                                       "cpu:aarch64+sve",
                                       "cpu:aarch64+sve,vec=32",
                                       "cpu:aarch64+sve,vec=64",
                                       "cpu:rv64gc",
                                       "cpu:rv64gc+zba+zbb",
                                       "cpu:rv64gcv",
                                       "cpu:rv64gcv,vec=32",
                                       "cpu:rv64gcv+zbb,vec=64" };
enum { TARGETS = sizeof targets / sizeof *targets };

/* --- texts -------------------------------------------------------------------------------------------------------- */

static bool is_integer(const sample *s)
{
    return s->type[0] != 'f';
}

static void put_loops(rt_bytes *out, const sample *s, const char *i, const char *j)
{
    opjit_rt_bytes_printf(out, "for %%%s in 0..%u { for %%%s in 0..%u", i, s->rows, j, s->vectors * s->lanes);
    if (s->lanes > 1)
        opjit_rt_bytes_printf(out, " vec %u unroll 2", s->lanes);
    opjit_rt_bytes_printf(out, " {\n");
}

static void put_start(rt_bytes *out, const sample *s)
{
    put_loops(out, s, "i0", "j0");
    if (s->start == INPUT)
        opjit_rt_bytes_printf(out,
                              "store %%t[%%i0,%%j0], load %%c[iadd(imul(%%p,%u),%%i0),iadd(imul(%%x,%u),%%j0)] } }\n",
                              s->rows, s->vectors * s->lanes);
    else
        opjit_rt_bytes_printf(out, "store %%t[%%i0,%%j0], %s 0%s } }\n", s->type, is_integer(s) ? "" : "x0p+0");
    if (s->start == APART) /* what is between keeps it from being the tile's */
        opjit_rt_bytes_printf(out, "store %%u[0], %s 0%s\n", s->type, is_integer(s) ? "" : "x0p+0");
}

/* Words of rows are as they are multiplied; those of columns may be of bytes. */
static const char *row_input(const sample *s)
{
    return s->dot ? s->type : s->input;
}

static void put_factor(rt_bytes *out, const sample *s, const char *input, const char *load)
{
    if (strcmp(s->type, input) == 0)
        opjit_rt_bytes_printf(out, "%s", load);
    else
        opjit_rt_bytes_printf(out, "%s %s (%s)", s->dot ? "halves" : "cast", s->type, load);
}

static bool has_blocks(const sample *s)
{
    return s->end == TOTALS || s->edges;
}

static void put_body(rt_bytes *out, const sample *s, uint32_t m)
{
    char a[160], b[160];
    const bool part = s->bounds == PART && has_blocks(s);
    const char *const k = s->step == TAPS ? (part ? "iadd(iadd(%k0,%k),%v)" : "iadd(%k,%v)")
                          : part          ? "iadd(%k0,%k)"
                                          : "%k";
    if (s->edges)
        snprintf(a, sizeof a, "load %%a[imin(iadd(imul(%%p,%u),%%i),%u),%s]", s->rows, m - 1, k);
    else
        snprintf(a, sizeof a, "load %%a[iadd(imul(%%p,%u),%%i),%s]", s->rows, k);
    snprintf(b, sizeof b, "load %%%s[%s,iadd(imul(%%x,%u),%%j)]", s->edges ? "w" : "b", k, s->vectors * s->lanes);
    if (s->step == TAPS)
        opjit_rt_bytes_printf(out, "for %%v in 0..3 {\n");
    put_loops(out, s, "i", "j");
    if (s->step == VALUE)
        opjit_rt_bytes_printf(out, "let %%f = ");
    else
        opjit_rt_bytes_printf(out, "store %%t[%%i,%%j], ");
    if (s->step == WHERE)
        opjit_rt_bytes_printf(out, "select(le(%%k,iadd(imul(%%p,2),%%i)), ");
    if (s->dot)
        opjit_rt_bytes_printf(out, "%s(load %%t[%%i,%%j], ", s->dot);
    else
        opjit_rt_bytes_printf(out, is_integer(s) ? "add(mul(" : "fma(");
    put_factor(out, s, row_input(s), a);
    opjit_rt_bytes_printf(out, ", ");
    put_factor(out, s, s->input, b);
    if (s->dot)
        opjit_rt_bytes_printf(out, ")");
    else
        opjit_rt_bytes_printf(out, is_integer(s) ? "), load %%t[%%i,%%j])" : ", load %%t[%%i,%%j])");
    if (s->step == WHERE)
        opjit_rt_bytes_printf(out, ", load %%t[%%i,%%j])");
    if (s->step == VALUE)
        opjit_rt_bytes_printf(out, "\nstore %%t[%%i,%%j], max(%%f, load %%c[0,0])");
    opjit_rt_bytes_printf(out, s->step == TAPS ? "\n} } }\n" : "\n} }\n");
}

static void put_end(rt_bytes *out, const sample *s)
{
    static const char *const op_of[ENDS] = { [OUTPUT] = "add", [DIVIDED] = "div", [REMAINDER] = "rem" };
    const uint32_t columns = s->vectors * s->lanes;
    put_loops(out, s, "i2", "j2");
    if (s->end == TOTALS || s->edges)
        opjit_rt_bytes_printf(out,
                              "store %%z[%%i2,iadd(imul(%%x,%u),%%j2)], select(eq(%%q,0), load %%t[%%i2,%%j2], "
                              "add(load %%z[%%i2,iadd(imul(%%x,%u),%%j2)], load %%t[%%i2,%%j2])) } }\n",
                              columns, columns);
    else
        opjit_rt_bytes_printf(
            out,
            "store %%o[iadd(iadd(imul(%%p,%u),%%i2),%u),iadd(imul(%%x,%u),%%j2)], %s(load %%t[%%i2,%%j2], "
            "load %%d[0,iadd(imul(%%x,%u),%%j2)]) } }\n",
            s->rows, s->number * s->rows * s->tiles, columns, op_of[s->end], columns);
}

static void put_stage(rt_bytes *out, const sample *s, uint32_t m, uint32_t n, uint32_t k)
{
    const uint32_t columns = s->vectors * s->lanes, blocks = has_blocks(s) ? 2 : 1;
    const uint32_t block = (s->k + blocks - 1) / blocks;
    opjit_rt_bytes_printf(out, "stage @%u for %%p in 0..%u {\n", s->number, s->tiles);
    if (s->edges)
        opjit_rt_bytes_printf(
            out,
            "for %%y in 0..%u { for %%y0 in 0..%u vec %u tail mask { store %%w[%%y,%%y0], load %%b[%%y,%%y0] }\n"
            "for %%y1 in %u..%u { store %%w[%%y,%%y1], %s 0%s } }\n",
            k, n, s->lanes, n, columns * s->tiles, s->input, s->input[0] == 'f' ? "x0p+0" : "");
    opjit_rt_bytes_printf(out, "for %%q in 0..%u { for %%x in 0..%u {\n", blocks, s->tiles);
    put_start(out, s);
    if (blocks > 1 && (s->bounds == ALL || s->bounds == PART))
        opjit_rt_bytes_printf(out, "let %%k0 = imul(%%q,%u)\n", block);
    if (s->bounds == LATE)
        opjit_rt_bytes_printf(out, "for %%k in 0..%%n hold {\n");
    else if (s->bounds == ONE)
        opjit_rt_bytes_printf(out, "for %%k in 0..1 hold {\n");
    else if (blocks > 1 && s->bounds == PART)
        opjit_rt_bytes_printf(out, "for %%k in 0..imin(%u,isub(%u,%%k0)) hold {\n", block, s->k);
    else if (blocks > 1)
        opjit_rt_bytes_printf(out, "for %%k in %%k0..imin(iadd(%%k0,%u),%u) hold {\n", block, s->k);
    else
        opjit_rt_bytes_printf(out, "for %%k in 0..%u hold {\n", s->k);
    put_body(out, s, m);
    opjit_rt_bytes_printf(out, "}\n");
    put_end(out, s);
    opjit_rt_bytes_printf(out, "} }\n");
    if (s->end == TOTALS || s->edges)
        opjit_rt_bytes_printf(
            out,
            "for %%i3 in 0..imin(%u,isub(%u,imul(%%p,%u))) { for %%j3 in 0..%u vec %u tail mask {\n"
            "store %%o[iadd(imul(%%p,%u),%%i3),%%j3], max(add(load %%z[%%i3,%%j3], load %%d[0,%%j3]), "
            "%s 0%s) } }\n",
            s->rows, m, s->rows, n, s->lanes, s->rows, s->type, is_integer(s) ? "" : "x0p+0");
    opjit_rt_bytes_printf(out, "}\n");
}

/* Each stage has names of its own, with its number, other than the tensors'. */
static void put_stages(rt_bytes *out, const sample *s, uint32_t m, uint32_t n, uint32_t k)
{
    sample stage = *s;
    rt_bytes text;
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    do {
        text.size = 0;
        put_stage(&text, &stage, m, n, k);
        opjit_rt_bytes_zero_end(&text);
        ck_assert(!text.failed);
        for (const char *c = (const char *)text.data; *c != '\0'; c++) {
            const size_t name = *c == '%' ? strspn(c + 1, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
            opjit_rt_bytes_append(out, c, 1 + name);
            if (name > 0 && !(name == 1 && strchr("abcdotzwun", c[1])))
                opjit_rt_bytes_printf(out, "_%u", stage.number);
            c += name;
        }
        stage.k--;
    } while (++stage.number < s->stages);
    opjit_rt_bytes_free(&text);
}

static void put_text(rt_bytes *out, const sample *s)
{
    const uint32_t columns = s->vectors * s->lanes, k = s->k + (s->step == TAPS ? 2 : 0);
    const uint32_t rows = s->rows * s->tiles, m = rows - (s->edges && rows > 1);
    const uint32_t n = columns * s->tiles - (s->edges && columns * s->tiles > 1);
    opjit_rt_bytes_printf(out,
                          "kernel @tile after expand {\n in %%a \"a\": %s[%u,%u]\n in %%b \"b\": %s[%u,%u]\n"
                          " in %%c \"c\": %s[%u,%u]\n in %%d \"d\": %s[1,%u]\n out %%o \"o\": %s[%u,%u]\n"
                          " param %%n: index in [0,%u]\n scratch %%t: %s[%u,%u]\n",
                          row_input(s), m, k, s->input, k, n, s->type, s->rows * s->tiles, columns * s->tiles, s->type,
                          columns * s->tiles, s->type, m * (s->stages > 0 ? s->stages : 1), n, s->k, s->type, s->rows,
                          columns);
    if (s->end == TOTALS || s->edges)
        opjit_rt_bytes_printf(out, " scratch %%z: %s[%u,%u] stride [%u,1]\n", s->type, s->rows, columns * s->tiles,
                              columns * s->tiles + 16);
    if (s->edges)
        opjit_rt_bytes_printf(out, " scratch %%w: %s[%u,%u]\n", s->input, k, columns * s->tiles);
    if (s->start == APART)
        opjit_rt_bytes_printf(out, " scratch %%u: %s[1]\n", s->type);
    put_stages(out, s, m, n, k);
    opjit_rt_bytes_printf(out, "}\n");
}

static void build(ir_func *f, const sample *s)
{
    opjit_error error;
    rt_bytes text;
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    put_text(&text, s);
    opjit_rt_bytes_zero_end(&text);
    ck_assert(!text.failed);
    ck_assert_msg(opjit_ir_parse((const char *)text.data, text.size, &opjit_rt_default_allocator, f, &error) ==
                      OPJIT_OK,
                  "%s\n%.3000s", error.message, (const char *)text.data);
    ck_assert_msg(opjit_ir_layout(f, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "%s\n%.3000s", error.message, (const char *)text.data);
    opjit_rt_bytes_free(&text);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char what[200];
    build(&f, s);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        snprintf(what, sizeof what,
                 "start %d, end %d, step %d, bounds %d, edges %d, %s of %s, %u x %u x %u, k %u, %u tiles, %s, level %u",
                 s->start, s->end, s->step, s->bounds, s->edges, s->type, s->input, s->rows, s->vectors, s->lanes, s->k,
                 s->tiles, s->target, level);
        harness_kernel k = harness_compile(&f, s->target, level);
        for (uint32_t i = 0; i < 2 && test_can_run(s->target, false); i++) {
            const harness_run run = { .params = { i == 0 ? test_random_below(r, s->k + 1) : s->k },
                                      .end = s->tiles,
                                      .any_nan = true,
                                      .at_end = i & 1,
                                      .what = what };
            harness_check(&f, &k, &run, r);
        }
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}

static sample draw(test_random *r)
{
    static const char *const types[][2] = { { "f32", "f32" }, { "f32", "f16" }, { "f64", "f64" },
                                            { "i32", "i32" }, { "u32", "u32" }, { "i32", "i8" },
                                            { "f32", "u8" },  { "f32", "i8" },  { "i32", "i16" }, { "i32", "u16" } };
    static const char *const dots[4] = { "dot4.us", "dot2" };
    const uint64_t type = test_random_below(r, 10);
    sample s = { .start = (start)test_random_below(r, STARTS),
                 .end = (end)test_random_below(r, ENDS),
                 .step = (step)test_random_below(r, STEPS),
                 .bounds = (bounds)test_random_below(r, BOUNDS),
                 .edges = test_random_below(r, 3) == 0,
                 .type = types[type][0],
                 .input = types[type][1],
                 .dot = type == 3 ? dots[test_random_below(r, 4)] : type > 7 ? "dot2" : NULL,
                 .rows = 1 + (uint32_t)test_random_below(r, 8),
                 .vectors = 1 + (uint32_t)test_random_below(r, 3),
                 .lanes = 1u << test_random_below(r, 5),
                 .k = 1 + (uint32_t)test_random_below(r, 9),
                 .tiles = 1 + (uint32_t)test_random_below(r, 2),
                 .target = targets[test_random_below(r, TARGETS)] };
    return s;
}

START_TEST(random_tiles)
{
    const test_cases cases = test_cases_init("cg.hold", 150);
    for (uint64_t i = cases.first; i < cases.end; i++) {
        test_random r;
        test_random_init(&r, cases.seed, 0, i);
        const sample s = draw(&r);
        check_sample(&s, &r);
    }
}
END_TEST

/* Kernels of many codes are several modules, which call tiles beside them: each machine's calls reach. */
START_TEST(several_modules)
{
    test_random r;
    const sample s = { .type = _i % 2 ? "f32" : "i32", .input = _i % 2 ? "f32" : "i32", .rows = 3, .vectors = 2,
                       .lanes = 4, .k = 40, .tiles = 1, .target = targets[_i / 2], .stages = 40 };
    test_random_init(&r, 3, 0, (uint64_t)_i);
    check_sample(&s, &r);
}
END_TEST

/* --- what is a tile ----------------------------------------------------------------------------------------------- */

static const sample plain = { .type = "f32", .input = "f32", .rows = 4, .vectors = 2, .lanes = 8, .k = 40, .tiles = 2,
                              .target = "cpu:x86-64-v3" };

static void emit_text(const sample *s, uint32_t level, codegen_emit what, rt_bytes *out)
{
    ir_func f;
    build(&f, s);
    codegen_result r = harness_emit(&f, s->target, level, what);
    opjit_rt_bytes_init(out, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(out, r.bytes.data, r.bytes.size);
    opjit_rt_bytes_zero_end(out);
    ck_assert(!out->failed);
    harness_free_result(&r);
    opjit_ir_free(&f);
}

/* Says in the plan of `s` this. */
static void check_plan(const sample *s, const char *has, const char *hasnt)
{
    rt_bytes text;
    emit_text(s, OPJIT_LEVEL_QUICK, CODEGEN_PLAN, &text);
    const char *plan = (const char *)text.data;
    ck_assert_msg(strstr(plan, has) != NULL, "no \"%s\" in\n%s", has, plan);
    ck_assert_msg(hasnt == NULL || strstr(plan, hasnt) == NULL, "\"%s\" in\n%s", hasnt, plan);
    opjit_rt_bytes_free(&text);
}

START_TEST(planned)
{
    sample s = plain;
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s.end = TOTALS;
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s.bounds = PART; /* intervals alone don't show that its loads are in bounds */
    s.k = 41;
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s = plain;
    s.end = DIVIDED;
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s.end = REMAINDER; /* no tile has one: what follows reads memory */
    check_plan(&s, "tile, 8 registers of 8 f32 to memory, with 1 before,", "after");
    s.start = APART;
    check_plan(&s, "tile, 8 registers of 8 f32 from memory to memory,", "before");
    s = plain;
    s.edges = true;
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s = plain;
    s.input = "u8";
    check_plan(&s, "tile, 8 registers of 8 f32, with 1 before, with 1 after,", "memory");
    s = plain;
    s.target = "cpu:x86-64-v2"; /* fma is a function */
    check_plan(&s, "scalars", "tile");
    s.type = s.input = "i32";
    check_plan(&s, "tile, 8 registers of 8 i32,", "memory");
    s.rows = 40; /* 80 registers */
    check_plan(&s, "scalars", "tile");
}
END_TEST

/* The tile's function is the same, with its name, whatever the sizes are. */
static void tile_name(const sample *s, uint32_t level, char *name, size_t size)
{
    rt_bytes text;
    emit_text(s, level, CODEGEN_LLVM, &text);
    const char *at = strstr((const char *)text.data, "@hold.");
    ck_assert_msg(at != NULL, "%s", (const char *)text.data);
    snprintf(name, size, "%.22s", at);
    opjit_rt_bytes_free(&text);
}

START_TEST(shared)
{
    char first[32], other[32];
    sample s = plain;
    s.end = TOTALS;
    tile_name(&s, OPJIT_LEVEL_QUICK, first, sizeof first);
    tile_name(&s, OPJIT_LEVEL_PEAK, other, sizeof other);
    ck_assert_str_eq(first, other);
    s = plain;
    tile_name(&s, OPJIT_LEVEL_QUICK, first, sizeof first);
    s.k = 300;
    s.tiles = 3;
    tile_name(&s, OPJIT_LEVEL_QUICK, other, sizeof other);
    ck_assert_str_eq(first, other);
    s.bounds = LATE;
    tile_name(&s, OPJIT_LEVEL_QUICK, other, sizeof other);
    ck_assert_str_eq(first, other);
    s.target = "cpu:x86-64-v4";
    tile_name(&s, OPJIT_LEVEL_QUICK, other, sizeof other);
    ck_assert_str_ne(first, other);
    s = plain;
    s.rows = 5;
    tile_name(&s, OPJIT_LEVEL_QUICK, other, sizeof other);
    ck_assert_str_ne(first, other);
}
END_TEST

/* Two held loops, one after the other, which hand the sums on in memory, and a reader of them. */
START_TEST(in_turns)
{
    char path[1024], what[64];
    ir_func f;
    opjit_error error;
    test_random r;
    const char *data = getenv("OPJIT_TEST_DATA");
    snprintf(path, sizeof path, "%s/golden/plan/tile-memory.ir", data != NULL ? data : "tests");
    char *text = golden_read(path);
    ck_assert_msg(opjit_ir_parse(text, golden_input_size(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK,
                  "%s", error.message);
    ck_assert(opjit_ir_layout(&f, &error) == OPJIT_OK);
    free(text);
    test_random_init(&r, 1, 2, 3);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        harness_kernel k = harness_compile(&f, targets[_i], level);
        snprintf(what, sizeof what, "%s, level %u", targets[_i], level);
        const harness_run run = { .end = 2, .any_nan = true, .at_end = true, .what = what };
        if (test_can_run(targets[_i], false))
            harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* Kernels for other programs have tiles, too, and so many different ones that the first are forgotten. */
START_TEST(objects)
{
    test_random r;
    test_random_init(&r, 1, 2, 3);
    for (uint32_t i = 0; i < 2 * 72; i++) {
        sample s = plain;
        s.rows = 1 + i % 8;
        s.vectors = 1 + i / 8 % 3;
        s.step = (step)(i / 24 % 3);
        ir_func f;
        build(&f, &s);
        codegen_result object = harness_emit(&f, s.target, OPJIT_LEVEL_QUICK, CODEGEN_OBJECT);
        ck_assert_uint_gt(object.bytes.size, 0);
        harness_free_result(&object);
        opjit_ir_free(&f);
        if (i % 24 == 0)
            check_sample(&s, &r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.hold");
    TCase *tcase = tcase_create("tiles");
    tcase_add_test(tcase, random_tiles);
    tcase_add_loop_test(tcase, several_modules, 0, 2 * TARGETS);
    tcase_add_test(tcase, planned);
    tcase_add_test(tcase, shared);
    tcase_add_loop_test(tcase, in_turns, 0, TARGETS);
    tcase_add_test(tcase, objects);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
