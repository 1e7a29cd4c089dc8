/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_two_streams.c - stores beyond the first cache: long loops that store two streams; rows of one value except
 * for one element, two at a time; lines that are read before they are stored.  Compiled code against the interpreter,
 * at lengths and places that leave remainders, at both levels. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Caches so small that each of these outputs exceeds them, except for the last target, which uses one stream.  Targets
 * other than Zen use one stream and read ahead. */
static const char *const targets[] = {
    "cpu:x86-64-v3,tune=znver3,l1=1024,l2=1024",
    "cpu:x86-64-v1,tune=znver1,l1=1024,l2=1024",
    "cpu:x86-64-v4,tune=znver4,l1=1024,l2=1024",
    "cpu:x86-64-v4,vec=64,l1=1024,l2=1024",
    "cpu:x86-64-v2,l1=1024,l2=1024",
    "cpu:x86-64-v3,tune=znver3,l2=1073741824",
};
enum { TARGETS = sizeof(targets) / sizeof(targets[0]), ONE_STREAM = TARGETS - 1, ROWS = 3 };

/* The value of a row's element at (p, j). */
static const struct value {
    const char *type, *text;
} values[] = {
    { "u8", "u8 7" },
    { "i16", "elem i16 (iadd(imul(%J, 3), %P))" },
    { "f32", "f32 0x1.8p+1" },
    { "f32", "elem f32 (iadd(imul(%J, 3), 5))" },
    { "f32", "elem f32 (iadd(imul(%J, 4099), %P))" }, /* not exact */
    { "f64", "elem f64 (isub(imul(%J, -7), %P))" },
    { "u64", "elem u64 (iadd(imul(%J, 1048577), 3))" },
    { "f16", "cast f16 (elem f32 (iadd(imul(%J, 2), 3)))" },
};
enum { VALUES = sizeof(values) / sizeof(values[0]) };

static uint32_t size_of(const char *type)
{
    return type[1] == '8' ? 1 : type[1] == '1' ? 2 : type[1] == '3' ? 4 : 8;
}

/* Replaces the names of the variables by those that they have in the loop. */
static void put_value(char *out, size_t size, const char *text, int j)
{
    size_t n = 0;
    for (; *text && n + 4 < size; text++)
        if (text[0] == '%' && text[1] == 'J')
            n += (size_t)snprintf(out + n, size - n, "%%%d", j), text++;
        else if (text[0] == '%' && text[1] == 'P')
            n += (size_t)snprintf(out + n, size - n, "%%1"), text++;
        else
            out[n++] = *text;
    out[n] = 0;
}

/* Rows of that many elements; cut: each row in two loops, divided at a place that depends on the row. */
static void make(ir_func *f, const char *target, const struct value *v, uint32_t columns, uint32_t align, bool cut)
{
    char text[1024], first[128], second[128], lo[64] = "0";
    put_value(first, sizeof first, v->text, 2);
    put_value(second, sizeof second, v->text, 3);
    int n = snprintf(text, sizeof text,
                     "kernel @streams after cleanup {\n    out %%0: %s[%d,%u] align %u\n"
                     "    stage @0 for %%1 in 0..%d {\n",
                     v->type, ROWS, columns, align, ROWS);
    if (cut) {
        snprintf(lo, sizeof lo, "imul(%%1, 64)");
        n += snprintf(text + n, sizeof text - (size_t)n, "        for %%2 in 0..%s { store %%0[%%1,%%2], %s }\n", lo,
                      first);
    }
    snprintf(text + n, sizeof text - (size_t)n, "        for %%3 in %s..%u { store %%0[%%1,%%3], %s }\n    }\n}\n", lo,
             columns, second);
    harness_schedule(f, text, target);
}

static void check(const char *name, const struct value *v, uint32_t columns, uint32_t align, bool cut)
{
    test_random r;
    ir_func f;
    char what[160];
    test_random_init(&r, 11, 0, columns);
    make(&f, name, v, columns, align, cut);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        harness_kernel k = harness_compile(&f, name, level);
        snprintf(what, sizeof what, "%s, %u columns, align %u, cut %d, %s, level %u", v->text, columns, align, cut,
                 name, level);
        for (uint32_t at_end = 0; at_end < (k.code ? 2 : 1) && test_can_run(name, false); at_end++) {
            const bool fits = align == size_of(v->type) || (uint64_t)ROWS * columns * size_of(v->type) % align == 0;
            const harness_run run = { .end = ROWS, .at_end = at_end && fits, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}

START_TEST(bits)
{
    const struct value *v = &values[_i % VALUES];
    const uint32_t size = size_of(v->type), least = 32768 / size; /* two streams from this length on */
    const uint32_t columns[] = { least - 64, least, least + 64 * 5, least + 64 * 9 + 3, 5 * least / 2 };
    for (uint32_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        for (uint32_t cut = 0; cut < 2; cut++)
            for (uint32_t align = size; align <= 64; align += 64 - size)
                if (test_takes((uint64_t)_i + 4 * i + 2 * cut + (align == 64)))
                    check(targets[_i / VALUES], v, columns[i], align, cut);
}
END_TEST

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const struct rows {
    const char *type, *point, *other;
    uint32_t rows, columns;
    int offset;
} shapes[] = {
    { "f32", "f32 0x1p+0", "f32 0x0p+0", 37, 512, 1 },
    { "f32", "f32 0x1p+0", "f32 0x1p-1", 12, 2048, 2040 },
    { "u8", "u8 7", "u8 200", 33, 1024, -3 },
    { "u8", "u8 7", "u8 0", 30, 1024, 900 },
    { "f64", "f64 0x1p+0", "f64 0x0p+0", 45, 768, -20 },
    { "i16", "i16 -1", "i16 3", 40, 1024, 0 },
    { "u64", "u64 9", "u64 1", 1, 4096, 4095 },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void make_rows(ir_func *f, const char *target, const struct rows *s)
{
    char text[1024];
    snprintf(text, sizeof text,
             "kernel @rows after collapse {\n    out %%0: %s[%u,%u] align 64\n    stage @0 for %%1 in 0..%u {\n"
             "        for %%2 in 0..%u { store %%0[%%1,%%2], select(eq(iadd(%%1, %d), %%2), %s, %s) }\n    }\n}\n",
             s->type, s->rows, s->columns, s->rows, s->columns, s->offset, s->point, s->other);
    harness_schedule(f, text, target);
}

START_TEST(two_rows)
{
    const struct rows *s = &shapes[_i % SHAPES];
    const char *const name = targets[_i / SHAPES];
    test_random r;
    ir_func f;
    test_random_init(&r, 12, 0, (uint64_t)_i);
    make_rows(&f, name, s);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        harness_kernel k = harness_compile(&f, name, level);
        const uint64_t spans[][2] = {
            { 0, s->rows }, { 0, s->rows - 1 }, { s->rows / 2, s->rows }, { 3, 4 }, { 2, 2 }
        };
        for (uint32_t i = 0; i < sizeof spans / sizeof spans[0] && test_can_run(name, false); i++) {
            const harness_run run = { .begin = spans[i][0], .end = spans[i][1], .at_end = i & 1, .what = name };
            if (run.end <= s->rows)
                harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* --- whether there are two --------------------------------------------------------------------------------------- */

/* Code for small caches differs from code for large ones, where one stream suffices. */
START_TEST(used)
{
    const bool rows = _i >= VALUES;
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        codegen_result code[2];
        for (uint32_t i = 0; i < 2; i++) {
            ir_func f;
            const char *const name = i == 0 ? targets[0] : targets[ONE_STREAM];
            if (rows)
                make_rows(&f, name, &shapes[_i - VALUES]);
            else
                make(&f, name, &values[_i], 65536, 64, false);
            code[i] = harness_emit(&f, name, level, CODEGEN_CODE);
            opjit_ir_free(&f);
        }
        const bool same = code[0].bytes.size == code[1].bytes.size &&
                          memcmp(code[0].bytes.data, code[1].bytes.data, code[0].bytes.size) == 0;
        const bool one = rows ? shapes[_i - VALUES].rows == 1 : strcmp(values[_i].type, "f16") == 0;
        ck_assert_msg(same == one, "%d at level %u has %s", _i, level, same ? "one stream" : "two streams");
        harness_free_result(&code[0]);
        harness_free_result(&code[1]);
    }
}
END_TEST

/* Targets with one stream first read lines that the first cache does not hold. */
START_TEST(read_ahead)
{
    static const struct {
        const char *target;
        bool reads;
    } rows[] = {
        { "cpu:x86-64-v4,tune=emeraldrapids,l1=1024,l2=1024,l3=1073741824", true },
        { "cpu:x86-64-v3,l1=1024,l2=1073741824,l3=1073741824", true },
        { "cpu:x86-64-v4,tune=emeraldrapids,l1=1073741824,l2=1073741824,l3=1073741824", false },
        { "cpu:x86-64-v4,tune=emeraldrapids,l1=1024,l2=1024,l3=1024", false }, /* stored around the caches */
        { "cpu:x86-64-v3,tune=znver3,l1=1024,l2=1024,l3=1073741824", false },
        { "cpu:aarch64,l1=1024,l2=1024,l3=1073741824", false },
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_func f;
        make(&f, rows[i].target, &values[_i / 2], 65536, 64, false);
        codegen_result text = harness_emit(&f, rows[i].target, OPJIT_LEVEL_QUICK + (uint32_t)_i % 2, CODEGEN_LLVM);
        opjit_rt_bytes_zero_end(&text.bytes);
        const bool reads = strstr((const char *)text.bytes.data, "load volatile") != NULL;
        ck_assert_msg(reads == rows[i].reads, "%s: %s %s", values[_i / 2].text, rows[i].target,
                      reads ? "reads" : "does not read");
        harness_free_result(&text);
        opjit_ir_free(&f);
    }
}
END_TEST

/* In place, rows from a computed place on: the line that is read ahead is a row away, or less where rows are long, and
 * never past the tensor.  Short rows, and what the stage loads itself, are not read ahead. */
START_TEST(in_place)
{
    static const char *const names[] = { "cpu:x86-64-v4,tune=emeraldrapids,l1=16384,l2=65536,l3=1073741824",
                                         "cpu:x86-64-v3,l1=16384,l2=65536,l3=1073741824" };
    static const struct {
        uint32_t columns;
        const char *value;
        bool reads;
    } rows[] = {
        { 256, "f32 0x1.8p+1", true },  { 5000, "f32 0x1.8p+1", true },
        { 301, "f32 0x1.8p+1", true },  { 256, "elem f32 (iadd(imul(%4, 3), %2))", true },
        { 100, "f32 0x1.8p+1", false }, { 256, "add(load %0[%2,%4], f32 0x1p+0)", false },
    };
    enum { COUNT = 66 };
    const char *const name = names[_i % 2];
    test_random r;
    test_random_init(&r, 12, 0, (uint32_t)_i);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t level = OPJIT_LEVEL_QUICK + (uint32_t)_i / 2, columns = rows[i].columns;
        char text[512], what[160];
        ir_func f;
        snprintf(text, sizeof text,
                 "kernel @rows after cleanup {\n    in %%0: f32[%d,%u]\n    out %%1: f32[%d,%u]\n    alias %%1 %%0\n"
                 "    stage @0 for %%2 in 0..%d {\n        let %%3 = iadd(%%2, 1)\n"
                 "        for %%4 in %%3..%u { store %%1[%%2,%%4], %s }\n    }\n}\n",
                 COUNT, columns, COUNT, columns, COUNT, columns, rows[i].value);
        harness_schedule(&f, text, name);
        snprintf(what, sizeof what, "%s, %u columns, %s, level %u", rows[i].value, columns, name, level);
        codegen_result code = harness_emit(&f, name, level, CODEGEN_LLVM);
        opjit_rt_bytes_zero_end(&code.bytes);
        ck_assert_msg((strstr((const char *)code.bytes.data, "load volatile") != NULL) == rows[i].reads, "%s", what);
        harness_free_result(&code);
        if (test_can_run(name, false)) {
            harness_kernel k = harness_compile(&f, name, level);
            for (uint32_t at_end = 0; at_end < 2; at_end++)
                harness_check(&f, &k, &(harness_run){ .end = COUNT, .at_end = at_end, .what = what }, &r);
            harness_unload(&k);
        }
        opjit_ir_free(&f);
    }
}
END_TEST

/* Untouched memory must be mapped once, by a store: a read before it would map it twice. */
START_TEST(fresh_pages)
{
    static const char *const names[] = { "cpu:x86-64-v4,vec=64,l1=1024,l2=1024", "cpu:x86-64-v2,l1=1024,l2=1024" };
    const char *const name = names[_i % 2];
    const struct value *v = &values[_i / 2];
    const size_t bytes = (size_t)ROWS * 65536 * size_of(v->type), page = (size_t)sysconf(_SC_PAGESIZE);
    ir_func f;
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK && test_runs_here(name); level++) {
        struct rusage before, after;
        make(&f, name, v, 65536, size_of(v->type), false);
        harness_kernel k = harness_compile(&f, name, level);
        char *const memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        madvise(memory, bytes + page, MADV_NOHUGEPAGE);
        void *const buffers[] = { memory + 16 * (level - OPJIT_LEVEL_QUICK) };
        ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
        harness_stage(&k, 0)(buffers, NULL, NULL, NULL, 0, ROWS);
        ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
        const long faults = after.ru_minflt - before.ru_minflt, most = (long)(bytes / page + bytes / page / 8 + 8);
        ck_assert_msg(faults <= most, "%s, %s: %ld faults for %zu pages", name, v->text, faults, bytes / page);
        munmap(memory, bytes + page);
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.two_streams");
    TCase *tcase = tcase_create("two_streams");
    tcase_add_loop_test(tcase, bits, 0, TARGETS * VALUES);
    tcase_add_loop_test(tcase, two_rows, 0, TARGETS * SHAPES);
    tcase_add_loop_test(tcase, used, 0, VALUES + SHAPES);
    tcase_add_loop_test(tcase, read_ahead, 0, 2 * VALUES);
    tcase_add_loop_test(tcase, in_place, 0, 4);
    tcase_add_loop_test(tcase, fresh_pages, 0, 2 * VALUES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
