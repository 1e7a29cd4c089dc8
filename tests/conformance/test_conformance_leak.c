/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_leak.c - the process's memory over a long run: cache hits, misses with eviction, and the cost of
 * opjit in a process that never generates code.  LeakSanitizer finds leaks (-DOPJIT_SANITIZE=address); this test finds
 * memory that is still reachable and grows. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define HITS 100000
#define WARM_MISSES 600
#define MISSES 1500
#define GROWTH_ALLOWED_KIB 1024
#define FOOTPRINT_ALLOWED_KIB 2048

/* Resident memory in KiB.  smaps_rollup is exact; the others may lag behind by some pages per CPU. */
static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = -1;
    if (file == NULL)
        file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return -1;
    while (kib < 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Rss: %ld kB", &kib) != 1 && sscanf(line, "VmRSS: %ld kB", &kib) != 1)
            kib = -1;
    }
    fclose(file);
    return kib;
}

/* Whether resident memory is meaningful here. */
static bool can_measure(void)
{
    if (SANITIZED)
        printf("skipped: resident memory, because: a sanitizer keeps freed memory and shadows of it\n");
    else if (resident_kib() < 0)
        printf("skipped: resident memory, because: there is no /proc/self/smaps_rollup or status\n");
    return !SANITIZED && resident_kib() >= 0;
}

static void make_case(test_case *c, int32_t value)
{
    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC *d = &c->desc.fill_value_constant;
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ DML_OPERATOR_FILL_VALUE_CONSTANT, d };
    test_tensor_link(&c->output, DML_TENSOR_DATA_TYPE_INT32, 2);
    c->output.sizes[0] = 5;
    c->output.sizes[1] = 7;
    test_tensor_measure(&c->output);
    d->OutputTensor = &c->output.desc;
    d->ValueDataType = DML_TENSOR_DATA_TYPE_INT32;
    d->Value.Int32 = value;
}

static void compile_and_call(opjit_context *context, int32_t value, uint32_t flags)
{
    int32_t out[35];
    const opjit_binding binding = { out, sizeof out };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    test_case c;
    make_case(&c, value);
    options.flags = flags;
    call.binding_count = 1;
    call.bindings = &binding;
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, NULL), OPJIT_OK);
    ck_assert_msg(opjit_compile_operator(context, op, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert_int_eq(out[34], value);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
}

static opjit_context *small_cache(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    options.cache_bytes = 256u << 10;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    return context;
}

static void run_rounds(uint32_t flags)
{
    opjit_context *context = small_cache();
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    if ((flags & OPJIT_COMPILE_INTERPRET) != 0 || test_have_codegen(context)) {
        for (int32_t i = 0; i < WARM_MISSES; i++)
            compile_and_call(context, i, flags);
        const long before = resident_kib();
        for (int32_t i = 0; i < MISSES; i++)
            compile_and_call(context, WARM_MISSES + i, flags);
        const long between = resident_kib();
        for (int32_t i = 0; i < HITS; i++)
            compile_and_call(context, 7, flags);
        const long after = resident_kib();
        ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
        ck_assert_uint_ge(stats.hits, HITS - 1);
        ck_assert_uint_gt(stats.evictions, 0);
        if (can_measure()) {
            printf("%s: %ld KiB, %+ld after %d misses, %+ld after %d hits\n",
                   (flags & OPJIT_COMPILE_INTERPRET) != 0 ? "interpreted" : "compiled", before, between - before,
                   MISSES, after - between, HITS);
            ck_assert_int_lt(after - before, GROWTH_ALLOWED_KIB);
        }
    }
    opjit_context_destroy(context);
}

START_TEST(interpreted_rounds_do_not_grow) { run_rounds(OPJIT_COMPILE_INTERPRET); }
END_TEST

START_TEST(compiled_rounds_do_not_grow) { run_rounds(0); }
END_TEST

/* Contexts with kernels in their caches are created and destroyed again and again. */
START_TEST(contexts_do_not_grow)
{
    for (int i = 0; i < 50; i++) {
        opjit_context *context = small_cache();
        compile_and_call(context, i, OPJIT_COMPILE_INTERPRET);
        opjit_context_destroy(context);
    }
    const long before = resident_kib();
    for (int i = 0; i < 1000; i++) {
        opjit_context *context = small_cache();
        compile_and_call(context, i, OPJIT_COMPILE_INTERPRET);
        opjit_context_destroy(context);
    }
    if (can_measure())
        ck_assert_int_lt(resident_kib() - before, GROWTH_ALLOWED_KIB);
}
END_TEST

START_TEST(opjit_without_codegen_is_small)
{
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    test_case c;
    if (!can_measure())
        return;
    const long before = resident_kib();
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    make_case(&c, 3);
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, NULL), OPJIT_OK);
    compile_and_call(context, 3, OPJIT_COMPILE_INTERPRET);
    const long added = resident_kib() - before;
    printf("context, operator and an interpreted kernel: %ld KiB resident\n", added);
    ck_assert_int_le(added, FOOTPRINT_ALLOWED_KIB);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.leak");
    TCase *cases = tcase_create("resident memory");
    tcase_add_test(cases, opjit_without_codegen_is_small); /* first, before anything of opjit has been touched */
    tcase_add_test(cases, interpreted_rounds_do_not_grow);
    tcase_add_test(cases, compiled_rounds_do_not_grow);
    tcase_add_test(cases, contexts_do_not_grow);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
