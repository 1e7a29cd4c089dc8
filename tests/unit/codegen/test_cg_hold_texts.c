/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_hold_texts.c - held loops that no pass makes and a text may have, bit for bit as interpreted; what happens
 * around the code of tiles: other threads' compiles, and jobs that are cancelled. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what no pass makes ------------------------------------------------------------------------------------------- */

#define ODD_START(tensor, value)                                                                                       \
    "for %i" tensor " in 0..4 { for %j" tensor " in 0..16 vec 8 { store %" tensor "[%i" tensor ",%j" tensor "], "      \
    value " } }\n"
#define ODD_PRODUCT "for %k in 0..8 hold { for %i in 0..4 { for %j in 0..16 vec 8 {\n" \
                    "store %t[%i,%j], fma(load %a[%i,%k], load %b[%k,%j], load %t[%i,%j]) } } }\n"
#define ODD_END(tensor, value)                                                                                         \
    "for %i9 in 0..4 { for %j9 in 0..16 vec 8 { store %" tensor "[%i9,%j9], " value " } }\n"

typedef struct odd {
    const char *what, *stage;
    const char *plan, *not_plan; /* what the plan says, or doesn't; NULL: anything */
} odd;

static const odd odds[] = {
    { "a tile reads in memory what another one holds",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT ODD_START("u", "f32 0x0p+0")
      "for %k2 in 0..4 hold { for %i2 in 0..4 { for %j2 in 0..16 vec 8 {\n"
      "store %u[%i2,%j2], fma(load %a[%i2,%k2], load %t[%k2,%j2], load %u[%i2,%j2]) } } }\n"
      ODD_END("o", "load %u[%i9,%j9]"),
      "f32 to memory, with 1 before,", NULL },
    { "a loop before a tile reads in memory what another one holds",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT ODD_START("u", "load %t[%iu,%ju]")
      "for %k2 in 0..4 hold { for %i2 in 0..4 { for %j2 in 0..16 vec 8 {\n"
      "store %u[%i2,%j2], fma(load %a[%i2,%k2], load %b[%k2,%j2], load %u[%i2,%j2]) } } }\n"
      ODD_END("o", "load %u[%i9,%j9]"), "from memory", NULL },
    { "what two tiles hold is read by both as their own alone",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT ODD_END("o", "load %t[%i9,%j9]") ODD_START("u", "f32 0x0p+0")
      "for %k2 in 0..4 hold { for %i2 in 0..4 { for %j2 in 0..16 vec 8 {\n"
      "store %u[%i2,%j2], fma(load %a[%i2,%k2], load %b[%k2,%j2], load %u[%i2,%j2]) } } }\n"
      "for %i8 in 0..4 { for %j8 in 0..16 vec 8 { store %z[%i8,%j8], load %u[%i8,%j8] } }\n",
      "with 1 after", "to memory" },
    { "a let reads the start of sums",
      ODD_START("t", "load %c[%it,%jt]") "let %v = load %t[1,2]\n" ODD_PRODUCT
      ODD_END("o", "add(load %t[%i9,%j9], %v)"), NULL, NULL },
    { "a let reads what the last loop then replaces",
      ODD_START("z", "load %c[%iz,%jz]") ODD_START("t", "f32 0x0p+0") ODD_PRODUCT "let %v = load %z[1,2]\n"
      ODD_END("z", "load %t[%i9,%j9]")
      "for %i8 in 0..4 { for %j8 in 0..16 vec 8 { store %o[%i8,%j8], add(load %z[%i8,%j8], %v) } }\n", NULL, NULL },
    { "the last loop uses a let that reads a sum",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT "let %v = load %t[1,2]\n"
      ODD_END("o", "add(load %t[%i9,%j9], %v)"), NULL, NULL },
    { "the last loop uses a let that reads what never changes",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT "let %v = load %c[1,2]\n"
      ODD_END("o", "add(load %t[%i9,%j9], %v)"), "with 1 after", "memory" },
    { "iterations store memory, each another line",
      "for %k in 0..4 hold { for %i in 0..4 { for %j in 0..16 vec 8 { store %t[%i,%j], f32 0x0p+0 } }\n"
      "for %q in 0..8 { for %i2 in 0..2 { for %j2 in 0..16 vec 8 {\n"
      "store %t[%i2,%j2], fma(load %a[%k,%q], load %b[%q,%j2], load %t[%i2,%j2]) } } }\n"
      "for %j9 in 0..16 vec 8 { store %o[%k,%j9], add(load %t[0,%j9], load %t[1,%j9]) } }\n",
      "tile, 8 registers of 8 f32, ", "memory" },
    { "iterations store memory, and begin with what the last one left",
      ODD_START("t", "load %c[%it,%jt]")
      "for %k in 0..4 hold { for %j2 in 0..16 vec 8 {\n"
      "store %t[0,%j2], fma(load %a[%k,1], load %b[1,%j2], load %t[0,%j2]) }\n"
      "for %j9 in 0..16 vec 8 { store %o[%k,%j9], load %t[0,%j9] } }\n", "with 1 before,", NULL },
    { "iterations read the memory that they store",
      ODD_START("z", "load %c[%iz,%jz]")
      "for %k in 0..3 hold { for %j2 in 0..16 vec 8 { store %t[0,%j2], load %z[%k,%j2] }\n"
      "for %j3 in 0..16 vec 8 { store %z[iadd(%k,1),%j3], load %t[0,%j3] } }\n"
      ODD_END("o", "load %z[%i9,%j9]"), NULL, "tile" },
    { "more values than there are registers",
      ODD_START("t", "f32 0x0p+0") ODD_PRODUCT "for %i9 in 0..4 { for %j9 in 0..16 vec 8 {\n"
      "let %v0 = mul(load %t[%i9,%j9], load %c[%i9,%j9])\nlet %v1 = add(%v0, load %c[%i9,%j9])\n"
      "let %v2 = sub(%v1, load %t[%i9,%j9])\nlet %v3 = mul(%v2, %v0)\nlet %v4 = add(%v3, %v1)\n"
      "let %v5 = sub(%v4, %v2)\nlet %v6 = mul(%v5, %v3)\nlet %v7 = add(%v6, %v4)\nlet %v8 = sub(%v7, %v5)\n"
      "let %v9 = fma(%v8, %v6, %v7)\n"
      "store %o[%i9,%j9], fma(%v0, fma(%v1, fma(%v2, %v3, %v4), fma(%v5, %v6, %v7)), fma(%v8, %v9, %v0)) } }\n",
      "with 1 before, with 1 after", "memory" },
    { "limits, quotients and differences of what may be no number",
      ODD_START("t", "load %c[%it,%jt]") ODD_PRODUCT
      ODD_END("o", "max(min(div(sub(load %c[%i9,%j9], load %t[%i9,%j9]), max(f32 0x0p+0, load %t[%i9,%j9])), "
                   "load %c[%i9,%j9]), f32 0x0p+0)"),
      "with 1 after", "memory" },
    { "sums of one lane",
      ODD_END("o", "load %c[%i9,%j9]") "for %it in 0..4 { store %t[%it,3], load %c[%it,3] }\n"
      "for %k in 0..8 hold { for %i in 0..4 {\n"
      "store %t[%i,3], fma(load %a[%i,%k], load %b[%k,3], load %t[%i,3]) } }\n"
      "for %i8 in 0..4 { store %o[%i8,3], max(load %t[%i8,3], f32 0x0p+0) }\n", "with 1 after", NULL },
    { "lanes that lie apart are squares with the loop along which they lie side by side",
      ODD_START("t", "f32 0x0p+0")
      "for %k in 0..2 hold { for %q in 0..8 { for %i in 0..4 { for %j in 0..8 vec 8 {\n"
      "store %t[%i,%j], fma(load %a[%i,%q], load %b[%j,iadd(imul(%k,8),%q)], load %t[%i,%j]) } } } }\n"
      ODD_END("o", "load %t[%i9,%j9]"), "tile, 8 registers of 8 f32, ", "memory" },
    { "several squares, of two vectors",
      "for %it in 0..4 { for %jt in 0..16 vec 4 { store %t[%it,%jt], load %c[%it,%jt] } }\n"
      "for %k in 0..2 hold { for %q in 0..8 { for %i in 0..4 { for %j in 0..8 vec 4 {\n"
      "store %t[%i,%j], fma(load %a[%i,%q], load %b[%j,iadd(imul(%k,8),%q)], load %t[%i,%j]) } } } }\n"
      "for %i9 in 0..4 { for %j9 in 0..16 vec 4 { store %o[%i9,%j9], load %t[%i9,%j9] } }\n",
      "tile, 16 registers of 4 f32, ", "memory" },
    { "lanes that lie apart, and no whole squares",
      ODD_START("t", "f32 0x0p+0")
      "for %k in 0..2 hold { for %q in 0..6 { for %i in 0..4 { for %j in 0..8 vec 8 {\n"
      "store %t[%i,%j], fma(load %a[%i,%q], load %b[%j,iadd(imul(%k,6),%q)], load %t[%i,%j]) } } } }\n"
      ODD_END("o", "load %t[%i9,%j9]"), NULL, "tile" },
    { "a held loop stores nothing",
      "for %k in 0..8 hold { let %v = load %a[0,%k] }\n" ODD_END("o", "load %c[%i9,%j9]"), NULL, "tile" },
};
enum { ODDS = sizeof odds / sizeof *odds };

static void build_odd(const odd *o, ir_func *f)
{
    char text[4096];
    opjit_error error;
    snprintf(text, sizeof text,
             "kernel @odd after expand {\n in %%a \"a\": f32[4,8]\n in %%b \"b\": f32[8,16]\n"
             " in %%c \"c\": f32[4,16]\n out %%o \"o\": f32[4,16]\n scratch %%t: f32[4,16]\n scratch %%u: f32[4,16]\n"
             " scratch %%z: f32[4,16]\n"
             "stage @0 for %%p in 0..1 {\n%s}\n}\n", o->stage);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, f, &error) == OPJIT_OK, "%s\n%s",
                  error.message, text);
    ck_assert_msg(opjit_ir_layout(f, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(odd_texts)
{
    static const char *const on[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64" };
    const odd *o = &odds[_i];
    test_random r;
    ir_func f;
    test_random_init(&r, 1, 2, 3);
    build_odd(o, &f);
    for (uint32_t i = 0; i < 3; i++) {
        codegen_result plan = harness_emit(&f, on[i], OPJIT_LEVEL_QUICK, CODEGEN_PLAN);
        opjit_rt_bytes_zero_end(&plan.bytes);
        const char *text = (const char *)plan.bytes.data;
        ck_assert_msg(o->plan == NULL || strstr(text, o->plan) != NULL, "%s:\n%s", o->what, text);
        ck_assert_msg(o->not_plan == NULL || strstr(text, o->not_plan) == NULL, "%s:\n%s", o->what, text);
        harness_free_result(&plan);
        harness_kernel k = harness_compile(&f, on[i], OPJIT_LEVEL_QUICK);
        const harness_run run = { .end = 1, .any_nan = true, .at_end = true, .what = o->what };
        if (test_can_run(on[i], false))
            harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* --- code of tiles ------------------------------------------------------------------------------------------------ */

/* An allocator that, at allocation number `at`, has another thread compile a kernel and waits for it, or cancels the
 * compile. */
typedef struct busy_memory {
    uint32_t count, at;
    uint32_t after; /* allocations since it was cancelled */
    atomic_bool cancel;
    bool compiles;
} busy_memory;

static void *compile_beside(void *user)
{
    ir_func f;
    (void)user;
    build_odd(&odds[0], &f);
    codegen_result result = harness_emit(&f, "cpu:x86-64-v3", OPJIT_LEVEL_QUICK, CODEGEN_CODE);
    harness_free_result(&result);
    opjit_ir_free(&f);
    return NULL;
}

static void *busy_allocate(void *user, size_t size, size_t alignment)
{
    busy_memory *b = user;
    pthread_t thread;
    b->after += atomic_load(&b->cancel);
    if (++b->count == b->at && b->compiles) {
        ck_assert(pthread_create(&thread, NULL, compile_beside, NULL) == 0);
        ck_assert(pthread_join(thread, NULL) == 0);
    } else if (b->count == b->at) {
        atomic_store(&b->cancel, true);
    }
    return opjit_rt_default_allocator.allocate(opjit_rt_default_allocator.user, size, alignment);
}

static void busy_release(void *user, void *memory, size_t size)
{
    (void)user;
    opjit_rt_default_allocator.release(opjit_rt_default_allocator.user, memory, size);
}

static opjit_status compile_busy(const ir_func *f, busy_memory *b, const char *target)
{
    rt_target t;
    opjit_error error;
    codegen_result out;
    const opjit_allocator allocator = { .user = b, .allocate = busy_allocate, .release = busy_release };
    ck_assert(opjit_rt_target_parse(target, &t, &error) == OPJIT_OK);
    const codegen_request request = { .variants = &f,
                                      .variant_count = 1,
                                      .target = &t,
                                      .level = OPJIT_LEVEL_QUICK,
                                      .emit = CODEGEN_CODE,
                                      .name = "busy",
                                      .allocator = &allocator,
                                      .cancel = &b->cancel };
    const opjit_status status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &out, &error);
    if (status == OPJIT_OK) {
        opjit_rt_release(&allocator, out.entries, out.entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&out.bytes);
    }
    return status;
}

/* No lock of the process is held while the caller's allocator is called, so this may wait for another thread's compile
 * of an equal tile. */
START_TEST(allocator_waits_for_another_compile)
{
    ir_func f;
    busy_memory all = { .at = 0 };
    build_odd(&odds[0], &f);
    ck_assert_int_eq(compile_busy(&f, &all, "cpu:x86-64-v3"), OPJIT_OK);
    all.count = 0; /* its tiles are kept now */
    ck_assert_int_eq(compile_busy(&f, &all, "cpu:x86-64-v3"), OPJIT_OK);
    for (uint32_t at = 1; at <= all.count; at++) {
        busy_memory b = { .at = at, .compiles = true };
        ck_assert_int_eq(compile_busy(&f, &b, "cpu:x86-64-v3"), OPJIT_OK);
    }
    opjit_ir_free(&f);
}
END_TEST

/* Ten tiles of different rows, numbers of which lie between first and last. */
static void build_tiles(uint32_t first, uint32_t last, ir_func *f)
{
    rt_bytes stage;
    opjit_rt_bytes_init(&stage, &opjit_rt_default_allocator);
    for (uint32_t i = first; i <= last; i++) /* rows i / 4 to i % 4 */
        if (i / 4 <= i % 4)
            opjit_rt_bytes_printf(&stage,
                                  "for %%k%u in 0..8 hold { for %%i%u in %u..%u { for %%j%u in 0..16 vec 8 {\n"
                                  "store %%t[%%i%u,%%j%u], fma(load %%a[0,%%k%u], load %%b[%%k%u,%%j%u], "
                                  "load %%t[%%i%u,%%j%u]) } } }\n",
                                  i, i, i / 4, i % 4 + 1, i, i, i, i, i, i, i, i);
    opjit_rt_bytes_printf(&stage, "%s", ODD_END("o", "load %t[%i9,%j9]"));
    opjit_rt_bytes_zero_end(&stage);
    build_odd(&(odd){ .what = "tiles", .stage = (const char *)stage.data }, f);
    opjit_rt_bytes_free(&stage);
}

/* The bytes of a tile are the same, whether it is compiled by itself (in another process) or among others. */
START_TEST(company_does_not_matter)
{
    ir_func all, one;
    int fd[2];
    build_tiles(0, 15, &all);
    build_tiles(6, 6, &one);
    ck_assert(pipe(fd) == 0);
    const pid_t child = fork();
    if (child != 0) {
        codegen_result result = harness_emit(&all, "cpu:x86-64-v3", OPJIT_LEVEL_QUICK, CODEGEN_CODE);
        harness_free_result(&result);
    }
    codegen_result alone = harness_emit(&one, "cpu:x86-64-v3", OPJIT_LEVEL_QUICK, CODEGEN_CODE);
    if (child == 0)
        _exit(write(fd[1], alone.bytes.data, alone.bytes.size) != (ssize_t)alone.bytes.size);
    close(fd[1]);
    uint8_t other[1 << 16];
    size_t size = 0;
    for (ssize_t n = 1; n > 0; size += n > 0 ? (size_t)n : 0)
        n = read(fd[0], other + size, sizeof(other) - size);
    ck_assert_uint_gt(size, 0);
    ck_assert_mem_eq(other, alone.bytes.data, size < alone.bytes.size ? size : alone.bytes.size);
    ck_assert_uint_eq(size, alone.bytes.size);
    ck_assert(waitpid(child, NULL, 0) == child);
    close(fd[0]);
    harness_free_result(&alone);
    opjit_ir_free(&all);
    opjit_ir_free(&one);
}
END_TEST

/* A job that is cancelled while its tiles are compiled begins no other one: what it still allocates is less than what
 * the other tiles would need. */
START_TEST(cancelled_between_tiles)
{
    enum { OF_ONE_STEP = 12 }; /* blocks of the arena of a stage, above all */
    ir_func f;
    build_tiles(0, 15, &f);
    busy_memory b = { .at = 1 + (uint32_t)_i };
    const opjit_status status = compile_busy(&f, &b, "cpu:x86-64-v3");
    ck_assert(status == OPJIT_OK || (status == OPJIT_CANCELLED && atomic_load(&b.cancel)));
    ck_assert_msg(b.after <= OF_ONE_STEP, "cancelled at allocation %u of %u", b.at, b.count);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.hold_texts");
    TCase *tcase = tcase_create("texts");
    tcase_add_loop_test(tcase, odd_texts, 0, ODDS);
    tcase_add_test(tcase, allocator_waits_for_another_compile);
    tcase_add_test(tcase, company_does_not_matter);
    tcase_add_loop_test(tcase, cancelled_between_tiles, 0, 40);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
