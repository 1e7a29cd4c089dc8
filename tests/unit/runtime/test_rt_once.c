/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_once.c - kept memory: steps that run once fill it when a kernel gets its constants, calls read it, and a
 * newer version of the kernel uses it again where it would hold the same. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/runtime/rt_sample.h"

enum { BINDINGS = 2, KEPT = 3 /* behind the constant */ };

static counting memory;
static opjit_context *context;
static int prepared;
static uint32_t worker; /* of the piece that runs */
static uint8_t kept_by[2][SAMPLE_ELEMENTS];
static opjit_error error;

/* Step 0 keeps twice the constant, by way of the workspace; step 1 adds that to the input. */
static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user;
    (void)params;
    (void)e;
    uint8_t *const kept = buffers[KEPT];
    ck_assert_uint_eq((uintptr_t)kept % 64, 0);
    ck_assert_uint_eq((uintptr_t)shared % 64, 0);
    ck_assert_ptr_eq(scratch, (uint8_t *)shared + 64 * (size_t)(1 + worker));
    prepared += step == 0;
    for (uint64_t i = begin; i < end; i++) {
        if (step == 0) {
            ((uint8_t *)shared)[i] = ((const uint8_t *)buffers[2])[i];
            kept[i] = (uint8_t)(2 * ((uint8_t *)shared)[i]);
        } else {
            ((uint8_t *)buffers[1])[i] = (uint8_t)(((const uint8_t *)buffers[0])[i] + kept[i]);
        }
    }
    return OPJIT_OK;
}

static const rt_kernel_hooks hooks = { .interpret = interpret }, unbound = { .interpret = interpret, .unbound = true };

static opjit_status create(uint8_t *constant, const rt_kernel_hooks *with, uint64_t layout, opjit_kernel **out)
{
    void *constants[] = { constant };
    sample s;
    sample_init(&s);
    s.code_size = 0;
    s.source.constants = 1;
    s.source.steps = 2;
    s.source.once_steps = 1;
    s.source.kept_size = SAMPLE_ELEMENTS;
    s.source.kept_layout = layout;
    s.source.shared_size = s.source.scratch_size = 64;
    s.variants[0] = (opjit_variant_info){ 0, 1, 1 };
    return sample_kernel(&s, context->core, constants, with, out, &error);
}

static void check_call(const opjit_kernel *kernel, const uint8_t *constant)
{
    uint8_t in[SAMPLE_ELEMENTS], out[SAMPLE_ELEMENTS];
    const opjit_binding bindings[BINDINGS] = { { in, sizeof in }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    for (int i = 0; i < SAMPLE_ELEMENTS; i++)
        in[i] = (uint8_t)(3 * i);
    memset(out, 0, sizeof out);
    call.bindings = bindings;
    call.binding_count = BINDINGS;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < SAMPLE_ELEMENTS; i++)
        ck_assert_uint_eq(out[i], (uint8_t)(3 * i + 2 * constant[i]));
}

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    prepared = 0;
    worker = 0;
    for (int i = 0; i < SAMPLE_ELEMENTS; i++) {
        kept_by[0][i] = (uint8_t)(i + 1);
        kept_by[1][i] = (uint8_t)(100 - i);
    }
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(atomic_load(&memory.live), 0);
    ck_assert_int_eq(atomic_load(&memory.bytes), 0);
}

START_TEST(made_once)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel;
    ck_assert_int_eq(create(kept_by[0], &hooks, 7, &kernel), OPJIT_OK);
    ck_assert_int_eq(prepared, 1);
    check_call(kernel, kept_by[0]);
    check_call(kernel, kept_by[0]);
    ck_assert_int_eq(prepared, 1);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_uint_eq(info.kept_bytes, 64);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(each_binding_has_its_own)
{
    opjit_kernel *base, *kernels[2];
    ck_assert_int_eq(create(NULL, &unbound, 7, &base), OPJIT_OK);
    ck_assert_int_eq(prepared, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(opjit_rt_kernel_bind(base, (void *[]){ kept_by[i] }, NULL, NULL, NULL, &kernels[i], &error),
                         OPJIT_OK);
    ck_assert_int_eq(prepared, 2);
    opjit_kernel_release(base);
    for (int i = 0; i < 2; i++)
        check_call(kernels[i], kept_by[i]);
    ck_assert_uint_gt(opjit_rt_kernel_bytes(kernels[0]), 64);
    opjit_kernel_release(kernels[0]);
    check_call(kernels[1], kept_by[1]);
    opjit_kernel_release(kernels[1]);
}
END_TEST

/* An executor of two workers, on one thread: they take pieces in turns.  user: a status, for which it runs none. */
static opjit_status in_turns(void *user, uint64_t extent, uint64_t grain,
                             void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    const opjit_status status = *(const opjit_status *)user;
    for (uint64_t begin = 0; begin < extent && status == OPJIT_OK; begin += grain) {
        worker = begin / grain % 2;
        body(arg, worker, begin, begin + grain < extent ? begin + grain : extent);
    }
    worker = 0;
    return status;
}

START_TEST(made_by_an_executor)
{
    opjit_status status = OPJIT_OK;
    const opjit_executor executor = { &status, 2, in_turns }, nobody = { &status, 0, in_turns };
    opjit_kernel *base, *kernel;
    ck_assert_int_eq(create(NULL, &unbound, 7, &base), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_kernel_bind(base, (void *[]){ kept_by[0] }, NULL, &executor, NULL, &kernel, &error),
                         OPJIT_OK);
    ck_assert_int_gt(prepared, 1); /* pieces */
    check_call(kernel, kept_by[0]);
    opjit_kernel_release(kernel);
    prepared = 0;
    ck_assert_int_eq(opjit_rt_kernel_bind(base, (void *[]){ kept_by[1] }, NULL, &nobody, NULL, &kernel, &error),
                         OPJIT_OK);
    ck_assert_int_eq(prepared, 1); /* it has no workers: here, in one piece */
    check_call(kernel, kept_by[1]);
    opjit_kernel_release(kernel);
    const int live = atomic_load(&memory.live);
    status = OPJIT_CANCELLED;
    ck_assert_int_eq(opjit_rt_kernel_bind(base, (void *[]){ kept_by[0] }, NULL, &executor, NULL, &kernel, &error),
                     OPJIT_CANCELLED);
    ck_assert_int_eq(atomic_load(&memory.live), live);
    opjit_kernel_release(base);
}
END_TEST

/* A better version of the kernel keeps what the older one made, if that is the same; else it makes its own. */
START_TEST(versions)
{
    opjit_kernel *kernel, *same, *other;
    ck_assert_int_eq(create(kept_by[0], &hooks, 7, &kernel), OPJIT_OK);
    ck_assert_int_eq(create(kept_by[1], &hooks, 7, &same), OPJIT_OK);
    ck_assert_int_eq(create(kept_by[1], &hooks, 8, &other), OPJIT_OK);
    ck_assert_int_eq(prepared, 3);
    ck_assert_int_eq(opjit_rt_kernel_adopt(kernel, same, &error), OPJIT_OK);
    ck_assert_int_eq(prepared, 3);
    check_call(kernel, kept_by[0]);
    ck_assert_int_eq(opjit_rt_kernel_adopt(kernel, other, &error), OPJIT_OK);
    ck_assert_int_eq(prepared, 4);
    check_call(kernel, kept_by[0]);
    check_call(other, kept_by[1]);
    opjit_kernel_release(same);
    opjit_kernel_release(other);
    check_call(kernel, kept_by[0]);
    opjit_kernel_release(kernel);
}
END_TEST

/* Each allocation fails once: of a kernel of its own, of one that is bound, of a swap. */
START_TEST(out_of_memory)
{
    opjit_kernel *base = NULL, *better = NULL, *kernel = NULL;
    ck_assert_int_eq(create(NULL, &unbound, 7, &base), OPJIT_OK);
    ck_assert_int_eq(create(kept_by[1], &hooks, 8, &better), OPJIT_OK);
    for (int way = 0; way < 3; way++) {
        opjit_status status = OPJIT_OUT_OF_MEMORY;
        if (way == 2)
            ck_assert_int_eq(create(kept_by[0], &hooks, 7, &kernel), OPJIT_OK);
        for (int fail_at = 1; status != OPJIT_OK; fail_at++) {
            const int live = atomic_load(&memory.live);
            memory.fail_at = atomic_load(&memory.calls) + fail_at;
            status = way == 0   ? create(kept_by[0], &hooks, 7, &kernel)
                     : way == 1 ? opjit_rt_kernel_bind(base, (void *[]){ kept_by[0] }, NULL, NULL, NULL,
                                                       &kernel, &error)
                                : opjit_rt_kernel_adopt(kernel, better, &error);
            memory.fail_at = 0;
            ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
            if (status != OPJIT_OK)
                ck_assert_int_eq(atomic_load(&memory.live), live);
            ck_assert_int_lt(fail_at, 100);
        }
        check_call(kernel, kept_by[0]);
        opjit_kernel_release(kernel);
    }
    opjit_kernel_release(better);
    opjit_kernel_release(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.once");
    TCase *tcase = tcase_create("kept");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, made_once);
    tcase_add_test(tcase, each_binding_has_its_own);
    tcase_add_test(tcase, made_by_an_executor);
    tcase_add_test(tcase, versions);
    tcase_add_test(tcase, out_of_memory);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
