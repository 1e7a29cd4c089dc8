/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_edges.c - rows stored around the caches, at every alignment and in every division of the work: compiled code
 * against the interpreter, guard bytes included. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

enum { GUARD_BYTES = 192 };

static const struct shape {
    const char *type, *values[2];
    uint32_t rows, columns, size;
} shapes[] = {
    { "u8", { "u8 7", "u8 0" }, 5, 2051, 1 },
    { "f16", { "f16 0x1p+0", "f16 0x0p+0" }, 7, 1001, 2 },
    { "f32", { "f32 0x1p+0", "f32 0x0p+0" }, 6, 517, 4 },
    { "i64", { "i64 9", "i64 -1" }, 5, 303, 8 },
};

static const char *const targets[] = { "cpu:x86-64-v3,l1=1024,l2=1024,l3=0", "cpu:x86-64-v1,l1=1024,l2=1024,l3=0",
                                       "cpu:aarch64,l1=1024,l2=1024,l3=0", "cpu:rv64gcv,l1=1024,l2=1024,l3=0",
                                       "cpu:rv64gc,l1=1024,l2=1024,l3=0" };
enum { TARGETS = sizeof(targets) / sizeof(targets[0]), SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void make(const struct shape *s, const char *target, ir_func *f)
{
    char text[1024];
    snprintf(text, sizeof text,
             "kernel @edges after cleanup {\n    in %%0: %s[%u,%u]\n    out %%1: %s[%u,%u]\n"
             "    stage @0 for %%2 in 0..%u {\n"
             "        for %%3 in 0..%%2 { store %%1[%%2,%%3], load %%0[%%2,%%3] }\n"
             "        for %%4 in %%2..iadd(%%2, 1) { store %%1[%%2,%%4], %s }\n"
             "        for %%5 in iadd(%%2, 1)..%u { store %%1[%%2,%%5], %s }\n    }\n}\n",
             s->type, s->rows, s->columns, s->type, s->rows, s->columns, s->rows, s->values[0], s->columns,
             s->values[1]);
    harness_schedule(f, text, target);
}

static _Alignas(64) uint8_t in[16384], got[16384], expected[16384];

/* Rows [0, cut) and [cut, rows) in two calls; the output begins `offset` elements after the start of a line. */
static void check(const struct shape *s, const ir_func *f, const harness_kernel *k, uint32_t offset, uint32_t cut)
{
    const size_t bytes = (size_t)s->rows * s->columns * s->size, begin = GUARD_BYTES + (size_t)offset * s->size;
    void *const buffers[] = { in, got + begin };
    ck_assert(begin + bytes + GUARD_BYTES <= sizeof got);
    memset(got, 0x5a, sizeof got);
    const harness_call call = { buffers, NULL, NULL, 0, 0 };
    const harness_run runs[] = { { .begin = cut, .end = s->rows, .what = s->type },
                                 { .begin = 0, .end = cut, .what = s->type } };
    if (!harness_run_stage(f, k, &runs[0], 0, &call) || !harness_run_stage(f, k, &runs[1], 0, &call))
        return;
    for (size_t i = 0; i < sizeof got; i++) {
        const uint8_t right = i < begin || i >= begin + bytes ? 0x5a : expected[i - begin];
        if (got[i] != right) /* an assertion per byte would be slow */
            ck_abort_msg("%s at %u, rows from %u: byte %zu is %02x, not %02x", s->type, offset, cut,
                         i - begin, got[i], right);
    }
}

static void interpret(const struct shape *s, const ir_func *f)
{
    void *const buffers[] = { in, expected };
    const ir_run run = { .buffers = buffers, .begin = 0, .end = s->rows };
    opjit_error error;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * 31 + 1);
    ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(every_alignment)
{
    const struct shape *s = &shapes[_i % SHAPES];
    const char *name = targets[_i / SHAPES];
    ir_func f;
    rt_bytes text;
    make(s, name, &f);
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    opjit_ir_print(&f, &text);
    opjit_rt_bytes_zero_end(&text);
    ck_assert_msg(strstr((const char *)text.data, "edge head carry") != NULL, "%s", (const char *)text.data);
    interpret(s, &f);
    for (uint32_t level = 1; level <= 2; level++) {
        harness_kernel k = harness_compile(&f, name, level);
        const uint32_t far = k.code ? 1 : 3; /* fewer under an emulator, where calls are slow */
        for (uint32_t offset = 0; offset < 64 / s->size && test_can_run(name, false); offset += far)
            for (uint32_t cut = 0; cut <= s->rows; cut += far)
                check(s, &f, &k, offset, cut);
        harness_unload(&k);
    }
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.edges");
    TCase *tcase = tcase_create("edges");
    tcase_add_loop_test(tcase, every_alignment, 0, TARGETS * SHAPES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
