/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_narrow.c - masks and lanes of vectors that are written without LLVM's backend for AVX2, which has no mask
 * registers and shuffles within 16 bytes: what they store is what LLVM's code of the same text stores. */
#include "tests/unit/codegen/cg_narrow.h"

/* --- masks -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *ints, *mask;
    uint32_t lanes, bits;
} vectors[] = {
    { "<32 x i8>", "<32 x i8>", "<32 x i1>", 32, 8 },      { "<16 x i16>", "<16 x i16>", "<16 x i1>", 16, 16 },
    { "<8 x i32>", "<8 x i32>", "<8 x i1>", 8, 32 },       { "<4 x i64>", "<4 x i64>", "<4 x i1>", 4, 64 },
    { "<16 x i8>", "<16 x i8>", "<16 x i1>", 16, 8 },      { "<8 x i16>", "<8 x i16>", "<8 x i1>", 8, 16 },
    { "<4 x i32>", "<4 x i32>", "<4 x i1>", 4, 32 },       { "<2 x i64>", "<2 x i64>", "<2 x i1>", 2, 64 },
    { "<8 x float>", "<8 x i32>", "<8 x i1>", 8, 32 },     { "<4 x double>", "<4 x i64>", "<4 x i1>", 4, 64 },
    { "<8 x i8>", "<8 x i8>", "<8 x i1>", 8, 8 },          { "<4 x i16>", "<4 x i16>", "<4 x i1>", 4, 16 },
    { "<4 x i8>", "<4 x i8>", "<4 x i1>", 4, 8 },          { "<2 x i32>", "<2 x i32>", "<2 x i1>", 2, 32 },
    { "<4 x float>", "<4 x i32>", "<4 x i1>", 4, 32 },     { "<2 x i8>", "<2 x i8>", "<2 x i1>", 2, 8 },
};
enum { VECTORS = sizeof vectors / sizeof *vectors };
static bool is_float(int i)
{
    return strstr(vectors[i].type, "float") || strstr(vectors[i].type, "double");
}

START_TEST(comparisons)
{
    static const char *const ints[] = { "eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle" };
    static const char *const floats[] = { "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                          "uno", "ueq", "ugt", "uge", "ult", "ule", "une" };
    const int count = is_float(_i) ? 14 : 10;
    for (int k = 0; k < count; k++)
        for (int zero = 0; zero < 2; zero++) {
            begin(vectors[_i].type, vectors[_i].type);
            add("  %%k = %s %s %s %%x, %%y\n", is_float(_i) ? "fcmp" : "icmp", is_float(_i) ? floats[k] : ints[k],
                vectors[_i].type);
            add("  %%r = %s %s %%k to %s\n", zero ? "zext" : "sext", vectors[_i].mask, vectors[_i].ints);
            end(vectors[_i].ints, "%r", "");
            compare();
        }
}
END_TEST

/* Lanes that one type compares and the other one chooses; what is chosen may be 0. */
START_TEST(choices)
{
    static const char *const operands[][2] = { { "%x", "%y" }, { "%x", ZERO }, { ZERO, "%y" } };
    for (int k = 0; k < VECTORS; k++)
        for (int o = 0; o < 3 && vectors[k].lanes == vectors[_i].lanes; o++) {
            begin(vectors[_i].type, vectors[k].ints);
            add("  %%k = icmp slt %s %%m, %%n\n", vectors[k].ints);
            add("  %%r = select %s %%k, %s %s, %s %s\n", vectors[k].mask, vectors[_i].type, operands[o][0],
                vectors[_i].type, operands[o][1]);
            end(vectors[_i].type, "%r", "");
            compare();
        }
}
END_TEST

/* One condition chooses all lanes. */
START_TEST(whole_choices)
{
    static const char *const operands[][2] = { { "%x", "%y" }, { "%x", ZERO }, { ZERO, "%y" } };
    const char *const type = vectors[_i].type;
    for (int o = 0; o < 3 && vectors[_i].bits * vectors[_i].lanes >= 128; o++) {
        begin(type, "i32");
        add("  %%k = icmp slt i32 %%m, %%n\n  %%r = select i1 %%k, %s %s, %s %s\n", type, operands[o][0], type,
            operands[o][1]);
        end(type, "%r", "");
        compare();
    }
}
END_TEST

/* Two masks of different types, a constant one, lanes of one, and its bits as a number and back. */
static void check_logic(int row)
{
    const uint32_t lanes = vectors[row].lanes;
    for (int k = 0; k < VECTORS; k++) {
        if (vectors[k].lanes != lanes)
            continue;
        begin(vectors[row].ints, vectors[k].ints);
        add("  %%k = icmp eq %s %%m, %%n\n  %%l = icmp ugt %s %%x, %%y\n", vectors[k].ints, vectors[row].ints);
        add("  %%i = and %s %%k, %%l\n  %%o = xor %s %%i, %%l\n  %%e = or %s %%o, <", vectors[k].mask, vectors[k].mask,
            vectors[k].mask);
        for (uint32_t i = 0; i < lanes; i++)
            add("%si1 %d", i ? ", " : "", i % 3 == 0);
        add(">\n  %%u = select %s %%k, %s %%e, %s %%l\n  %%r = sext %s %%u to %s\n", vectors[k].mask, vectors[k].mask,
            vectors[k].mask, vectors[k].mask, vectors[row].ints);
        add("  %%g = extractelement %s %%e, i32 %u\n  %%h = zext i1 %%g to i32\n", vectors[k].mask, lanes - 1);
        add("  %%w = getelementptr i8, ptr %%c, i64 64\n  store i32 %%h, ptr %%w, align 1\n");
        if (lanes >= 8) {
            add("  %%z = bitcast %s %%u to i%u\n  %%v = getelementptr i8, ptr %%c, i64 72\n", vectors[k].mask, lanes);
            add("  store i%u %%z, ptr %%v, align 1\n", lanes);
        }
        if (lanes == 8 || lanes == 16) {
            add("  %%s = load i%u, ptr %%a, align 1\n  %%t = bitcast i%u %%s to %s\n", lanes, lanes, vectors[k].mask);
            add("  %%aa = sext %s %%t to %s\n  %%ab = getelementptr i8, ptr %%c, i64 96\n", vectors[k].mask,
                vectors[k].ints);
            add("  store %s %%aa, ptr %%ab, align 1\n", vectors[k].ints);
        }
        end(vectors[row].ints, "%r", "");
        compare();
    }
}

START_TEST(logic)
{
    check_logic(_i);
}
END_TEST

/* The same with AVX-512's masks, and one of two whole masks. */
START_TEST(wide_logic)
{
    const rt_target narrow = target;
    if (!be_wide())
        return;
    check_logic(_i);
    begin(vectors[_i].ints, vectors[_i].ints);
    add("  %%k = icmp eq %s %%x, %%y\n  %%l = icmp ugt %s %%m, %%n\n", vectors[_i].ints, vectors[_i].ints);
    add("  %%f = load i32, ptr %%a, align 1\n  %%g = icmp slt i32 %%f, 3\n");
    add("  %%u = select i1 %%g, %s %%k, %s %%l\n  %%r = sext %s %%u to %s\n", vectors[_i].mask, vectors[_i].mask,
        vectors[_i].mask, vectors[_i].ints);
    end(vectors[_i].ints, "%r", "");
    compare();
    target = narrow;
}
END_TEST

/* A condition in all lanes, and a mask's halves. */
START_TEST(spread)
{
    static const struct {
        uint32_t lanes;
        const char *ints;
    } rows[] = { { 32, "<32 x i8>" }, { 16, "<16 x i16>" }, { 8, "<8 x i32>" }, { 4, "<4 x i64>" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const uint32_t n = rows[k].lanes;
        begin(rows[k].ints, rows[k].ints);
        add("  %%f = load i32, ptr %%a, align 1\n  %%g = icmp eq i32 %%f, 0\n");
        add("  %%i = insertelement <%u x i1> poison, i1 %%g, i32 0\n", n);
        add("  %%s = shufflevector <%u x i1> %%i, <%u x i1> poison, <%u x i32> zeroinitializer\n", n, n, n);
        add("  %%k = icmp slt %s %%x, %%y\n  %%l = xor <%u x i1> %%k, %%s\n", rows[k].ints, n);
        add("  %%h = shufflevector <%u x i1> %%l, <%u x i1> poison, <%u x i32> <", n, n, n);
        for (uint32_t i = 0; i < n; i++)
            add("%si32 %u", i ? ", " : "", i < n / 2 ? n - 1 - i : i / 2);
        add(">\n  %%r = select <%u x i1> %%h, %s %%x, %s %%y\n", n, rows[k].ints, rows[k].ints);
        end(rows[k].ints, "%r", "");
        compare();
    }
}
END_TEST

START_TEST(memory)
{
    static const struct {
        const char *type, *name, *mask;
    } rows[] = { { "<8 x i32>", "v8i32", "<8 x i1>" },
                 { "<4 x i64>", "v4i64", "<4 x i1>" },
                 { "<4 x i32>", "v4i32", "<4 x i1>" },
                 { "<2 x i32>", "v2i32", "<2 x i1>" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int zero = 0; zero < 2; zero++) {
            char declarations[512];
            const char *t = rows[k].type, *n = rows[k].name;
            snprintf(declarations, sizeof declarations,
                     "declare %s @llvm.masked.load.%s.p0(ptr, %s, %s)\n"
                     "declare void @llvm.masked.store.%s.p0(%s, ptr, %s)\n",
                     t, n, rows[k].mask, t, n, t, rows[k].mask);
            begin(t, t);
            add("  %%k = icmp slt %s %%x, %%y\n", t);
            add("  %%r = call %s @llvm.masked.load.%s.p0(ptr align 1 %%p, %s %%k, %s %s)\n", t, n, rows[k].mask, t,
                zero ? ZERO : "%x");
            add("  %%w = getelementptr i8, ptr %%c, i64 64\n");
            add("  call void @llvm.masked.store.%s.p0(%s %%r, ptr align 1 %%w, %s %%k)\n", n, t, rows[k].mask);
            end(t, "%r", declarations);
            compare();
        }
}
END_TEST

/* --- lanes -------------------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t bits, from, to;
} shuffled[] = { { 8, 32, 32 }, { 8, 16, 16 }, { 8, 16, 32 },  { 8, 32, 16 }, { 8, 8, 16 },  { 16, 16, 16 },
                 { 16, 8, 8 },  { 16, 8, 16 }, { 16, 16, 8 },  { 32, 8, 8 },  { 32, 4, 4 },  { 32, 4, 8 },
                 { 32, 8, 4 },  { 64, 4, 4 },  { 64, 2, 2 },   { 64, 2, 4 },  { 64, 4, 2 },  { 32, 2, 4 },
                 { 16, 4, 8 },  { 32, 2, 8 },  { 8, 4, 16 } };

/* Places of a shuffle, of one vector or both: any, every second or third one, the vectors' in turns, blocks, blends. */
static void draw(int32_t *at, uint32_t from, uint32_t to)
{
    const uint32_t all = from * (1 + number(2)), first = number(all), step = 1 + number(3), block = 1u << number(4);
    const uint32_t kind = number(6), half = number(2) * from / 2;
    for (uint32_t i = 0; i < to; i++) {
        const uint32_t places[] = { number(all),
                                    (first + i * step) % all,
                                    (half + i / 2) % from + i % 2 * from,
                                    ((i / block + first) * block + i % block) % all,
                                    i % from + number(2) * from,
                                    (i / block * block + (first + i) % block) % all };
        at[i] = number(10) == 0 ? -1 : (int32_t)places[kind];
    }
}

/* Lanes that may be anything are not looked at. */
START_TEST(shuffles)
{
    const uint32_t bits = shuffled[_i].bits, from = shuffled[_i].from, to = shuffled[_i].to;
    for (int k = 0; k < SHUFFLES; k++) {
        char type[32];
        int32_t at[32];
        snprintf(type, sizeof type, "<%u x i%u>", from, bits);
        draw(at, from, to);
        begin(type, type);
        add("  %%s = shufflevector %s %%x, %s %%y, <%u x i32> <", type, type, to);
        for (uint32_t i = 0; i < to; i++)
            at[i] < 0 ? add("%si32 poison", i ? ", " : "") : add("%si32 %d", i ? ", " : "", at[i]);
        add(">\n");
        for (uint32_t i = 0; i < to; i++)
            if (at[i] >= 0)
                add("  %%e%u = extractelement <%u x i%u> %%s, i32 %u\n  %%g%u = getelementptr i%u, ptr %%c, i64 %u\n"
                    "  store i%u %%e%u, ptr %%g%u, align 1\n",
                    i, to, bits, i, i, bits, i, bits, i, i);
        add("  ret void\n}\n");
        compare();
    }
}
END_TEST

/* Elements put into a vector, or into none, one after the other. */
START_TEST(insertions)
{
    static const char *const types[] = { "i8", "i16", "i32", "i64", "float", "double" };
    static const uint32_t bytes[] = { 1, 2, 4, 8, 4, 8 };
    for (uint32_t k = 0; k < 24; k++) {
        const uint32_t t = k % 6, lanes = (k < 12 ? 32 : 16) / bytes[t], step = k % 12 < 6 ? 1 : 3;
        const uint32_t first = step == 1 ? 0 : lanes / 4;
        char type[32], made[16] = "poison";
        snprintf(type, sizeof type, "<%u x %s>", lanes, types[t]);
        begin(type, type);
        for (uint32_t i = first; i < lanes; i += step)
            add("  %%p%u = getelementptr %s, ptr %%b, i64 %u\n  %%e%u = load %s, ptr %%p%u, align 1\n", i, types[t], i,
                i, types[t], i);
        for (uint32_t i = first; i < lanes; i += step) {
            add("  %%i%u = insertelement %s %s, %s %%e%u, i32 %u\n", i, type, i == first && step > 1 ? "%x" : made,
                types[t], i, i);
            snprintf(made, sizeof made, "%%i%u", i);
        }
        end(type, made, "");
        compare();
    }
}
END_TEST

int main(void)
{
    rt_target host;
    opjit_rt_target_host(&host);
    if (host.arch != RT_ARCH_X86_64 || host.level < 3)
        return 77;
    if (opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL) != OPJIT_OK)
        return EXIT_FAILURE;
    Suite *suite = suite_create("cg.narrow");
    TCase *tcase = tcase_create("functions");
    tcase_add_loop_test(tcase, comparisons, 0, VECTORS);
    tcase_add_loop_test(tcase, choices, 0, VECTORS);
    tcase_add_loop_test(tcase, whole_choices, 0, VECTORS);
    tcase_add_loop_test(tcase, logic, 0, VECTORS);
    tcase_add_loop_test(tcase, wide_logic, 0, VECTORS);
    tcase_add_test(tcase, spread);
    tcase_add_test(tcase, memory);
    tcase_add_loop_test(tcase, shuffles, 0, sizeof shuffled / sizeof *shuffled);
    tcase_add_test(tcase, insertions);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
