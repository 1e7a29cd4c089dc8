/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_timed.c - the times of a call's steps, and kernels that take another one's code while they are called. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/runtime/rt_sample.h"

enum { THREADS = 4 };

static counting memory;
static opjit_context *context;

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

/* What the assembled stages do. */
static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *error)
{
    const uint8_t *in = buffers[0];
    uint8_t *out = buffers[1];
    (void)shared, (void)scratch;
    if (user != NULL && step == 1)
        return opjit_rt_error_set(error, OPJIT_CANCELLED, "step 1 fails");
    for (uint64_t i = begin; i < end; i++)
        out[i] = (uint8_t)(in[i] + (step == 0 ? 1 : params[0]));
    return OPJIT_OK;
}

static opjit_kernel *kernel_of(sample *s, bool interpreted, void *user)
{
    const rt_kernel_hooks hooks = { .interpret = interpreted ? interpret : NULL, .user = user };
    opjit_kernel *kernel;
    opjit_error error;
    if (interpreted)
        s->code_size = 0;
    ck_assert_msg(sample_kernel(s, context->core, NULL, &hooks, &kernel, &error) == OPJIT_OK, "%s", error.message);
    return kernel;
}

static uint8_t input[SAMPLE_ELEMENTS], output[SAMPLE_ELEMENTS];
static const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };

static opjit_call a_call(void)
{
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    return call;
}

static opjit_status inline_run(void *user, uint64_t extent, uint64_t grain,
                               void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    (void)user;
    for (uint64_t i = 0; i < extent; i += grain)
        body(arg, 0, i, i + grain < extent ? i + grain : extent);
    return OPJIT_OK;
}

START_TEST(steps_are_timed)
{
    static const opjit_executor executor = { NULL, 1, inline_run };
    const uint64_t param = 7;
    opjit_step_time times[3] = { 0 };
    opjit_call call = a_call();
    opjit_error error;
    uint32_t count = 9;
    sample s;
    sample_init(&s);
    sample_use_param(&s);
    s.variants[0] = (opjit_variant_info){ 0, 0, 2 };
    opjit_kernel *kernel = kernel_of(&s, _i >= 2, NULL);
    call.params = &param;
    call.param_count = 1;
    call.executor = _i % 2 == 1 ? &executor : NULL;
    ck_assert_msg(opjit_kernel_call_timed(kernel, &call, times, 3, &count, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert(times[i].step == i && times[i].kind == OPJIT_STEP_STAGE && times[i].extent == SAMPLE_ELEMENTS);
        ck_assert_uint_gt(times[i].begin_ns, 0);
        ck_assert_uint_ge(times[i].end_ns, times[i].begin_ns);
    }
    ck_assert_uint_ge(times[1].begin_ns, times[0].end_ns);
    ck_assert_uint_eq(times[2].begin_ns, 0);
    ck_assert_uint_eq(output[0], 7);
    times[1].end_ns = 0;
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, times, 1, &count, NULL), OPJIT_OK);
    ck_assert(count == 2 && times[1].end_ns == 0);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, NULL, 0, &count, NULL), OPJIT_OK);
    ck_assert_uint_eq(count, 2);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(failed_and_refused_calls)
{
    const uint64_t param = 7;
    opjit_step_time times[2];
    opjit_call call = a_call();
    opjit_error error;
    uint32_t count = 9;
    sample s;
    sample_init(&s);
    sample_use_param(&s);
    s.variants[0] = (opjit_variant_info){ 0, 0, 2 };
    opjit_kernel *kernel = kernel_of(&s, true, &s);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, times, 2, &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_uint_eq(count, 0);
    call.params = &param;
    call.param_count = 1;
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, times, 2, &count, &error), OPJIT_CANCELLED);
    ck_assert_str_eq(error.message, "step 1 fails");
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(opjit_kernel_call_timed(NULL, &call, times, 2, &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, NULL, times, 2, &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, NULL, 2, &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, times, 2, NULL, &error), OPJIT_INVALID_ARGUMENT);
    opjit_kernel_release(kernel);
}
END_TEST

/* --- adoption ----------------------------------------------------------------------------------------------------- */

static uint32_t flags_of(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    return info.flags;
}

START_TEST(code_of_another_kernel)
{
    opjit_call call = a_call();
    opjit_kernel *first, *better;
    const void *image;
    uint64_t bytes;
    sample s;
    sample_init(&s);
    better = kernel_of(&s, false, NULL);
    first = kernel_of(&s, true, NULL);
    ck_assert_uint_eq(flags_of(first), OPJIT_KERNEL_INTERPRETED);
    ck_assert_int_eq(opjit_kernel_get_image(first, &image, &bytes, NULL), OPJIT_UNSUPPORTED);
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, better, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, better, NULL), OPJIT_OK); /* it has it already */
    opjit_kernel_release(better);
    ck_assert_uint_eq(flags_of(first), 0);
    ck_assert_int_eq(opjit_kernel_get_image(first, &image, &bytes, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_optimize(first, NULL), OPJIT_OK);
    memset(output, 0, sizeof output);
    ck_assert_int_eq(opjit_kernel_call(first, &call, NULL), OPJIT_OK);
    ck_assert_uint_eq(output[SAMPLE_ELEMENTS - 1], 1);
    opjit_kernel_release(first);
}
END_TEST

START_TEST(another_interface_is_refused)
{
    opjit_kernel *first, *other;
    opjit_error error;
    sample s;
    sample_init(&s);
    first = kernel_of(&s, true, NULL);
    sample_init(&s);
    s.buffers[1].bytes = s.buffers[0].bytes = s.buffers[0].sizes[0] = s.buffers[1].sizes[0] = SAMPLE_ELEMENTS - 1;
    s.steps[0].extent = SAMPLE_ELEMENTS - 1;
    other = kernel_of(&s, false, NULL);
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, other, &error), OPJIT_INTERNAL);
    ck_assert_uint_eq(flags_of(first), OPJIT_KERNEL_INTERPRETED);
    opjit_kernel_release(other);
    opjit_kernel_release(first);
}
END_TEST

static opjit_kernel *shared;
static atomic_bool stop;
static atomic_int broken;

static void *call_all_the_time(void *unused)
{
    uint8_t own[SAMPLE_ELEMENTS];
    const opjit_binding own_bindings[] = { { input, sizeof input }, { own, sizeof own } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = own_bindings;
    call.binding_count = 2;
    (void)unused;
    while (!atomic_load(&stop)) {
        memset(own, 0, sizeof own);
        broken += opjit_kernel_call(shared, &call, NULL) != OPJIT_OK || own[0] != 1 || own[SAMPLE_ELEMENTS - 1] != 1;
    }
    return NULL;
}

START_TEST(swapped_while_called)
{
    pthread_t handles[THREADS];
    sample s;
    sample_init(&s);
    shared = kernel_of(&s, true, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&handles[i], NULL, call_all_the_time, NULL), 0);
    for (int round = 0; round < 20; round++) {
        sample_init(&s);
        opjit_kernel *better = kernel_of(&s, round % 3 == 0, NULL);
        ck_assert_int_eq(opjit_rt_kernel_adopt(shared, better, NULL), OPJIT_OK);
        opjit_kernel_release(better);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(handles[i], NULL);
    ck_assert_int_eq(broken, 0);
    opjit_kernel_release(shared);
}
END_TEST

START_TEST(no_memory)
{
    opjit_kernel *first, *better;
    sample s;
    sample_init(&s);
    better = kernel_of(&s, false, NULL);
    first = kernel_of(&s, true, NULL);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, better, NULL), OPJIT_OUT_OF_MEMORY);
    memory.fail_at = 0;
    ck_assert_uint_eq(flags_of(first), OPJIT_KERNEL_INTERPRETED);
    opjit_kernel_release(better);
    opjit_kernel_release(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.timed");
    TCase *tcase = tcase_create("timed");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, steps_are_timed, 0, 4);
    tcase_add_test(tcase, failed_and_refused_calls);
    tcase_add_test(tcase, code_of_another_kernel);
    tcase_add_test(tcase, another_interface_is_refused);
    tcase_add_test(tcase, swapped_while_called);
    tcase_add_test(tcase, no_memory);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
