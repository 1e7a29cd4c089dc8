/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_ffi.c - closures and typed calls; UNAVAILABLE where opjit was built without libffi. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include <opjit/ffi.h>

#include "tests/support/require.h"
#include "tests/unit/runtime/rt_sample.h"

static opjit_context *context;
static opjit_kernel *kernel;
static opjit_closure *closure;
static void (*function)(void);
static opjit_error error;
static counting memory;
static bool available;

static opjit_status add_param(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    const uint8_t *a = buffers[0];
    uint8_t *b = buffers[1];
    (void)user, (void)step, (void)shared, (void)scratch, (void)e;
    for (uint64_t i = begin; i < end; i++)
        b[i] = (uint8_t)(a[i] + (params == NULL ? 1 : (int64_t)params[0]));
    return OPJIT_OK;
}

static void create(bool late, DML_TENSOR_DATA_TYPE type, int64_t lo, int64_t hi)
{
    static const rt_kernel_hooks hooks = { .interpret = add_param };
    sample s;
    opjit_status status;
    sample_init(&s);
    s.code_size = 0;
    if (late)
        sample_use_param(&s);
    s.param = (opjit_param_info){ (uint32_t)type, 0, lo, hi };
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_OK);
    status = opjit_closure_create(kernel, &closure, &function, &error);
    available = status != OPJIT_UNAVAILABLE;
    ck_assert_msg(status == OPJIT_OK || !available, "%s", error.message);
    ck_assert(available == (closure != NULL) && available == (function != NULL));
}

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    kernel = NULL;
    closure = NULL;
}

static void teardown(void)
{
    opjit_closure_destroy(closure);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

START_TEST(plain_function)
{
    uint8_t in[SAMPLE_ELEMENTS] = { 10, 20 }, out[SAMPLE_ELEMENTS] = { 0 };
    create(false, DML_TENSOR_DATA_TYPE_INT32, 0, 0);
    if (!available)
        return;
    opjit_kernel_release(kernel); /* the closure holds its own reference */
    kernel = NULL;
    ((void (*)(const void *, void *))function)(in, out);
    ck_assert(out[0] == 11 && out[1] == 21 && out[15] == 1);
    ck_assert_uint_eq(opjit_closure_failures(closure, &error), 0);
    ck_assert_str_eq(error.message, "");
}
END_TEST

START_TEST(failures_are_counted)
{
    uint8_t in[SAMPLE_ELEMENTS * 2] = { 10, 20 };
    create(false, DML_TENSOR_DATA_TYPE_INT32, 0, 0);
    if (!available)
        return;
    ((void (*)(const void *, void *))function)(in, in + 1);
    ((void (*)(const void *, void *))function)(in, NULL);
    ck_assert_uint_eq(in[1], 20);
    ck_assert_uint_eq(opjit_closure_failures(closure, NULL), 2);
    ck_assert_uint_eq(opjit_closure_failures(closure, &error), 2);
    ck_assert_str_eq(error.message, "binding 1 (OutputTensor): data is NULL");
    ck_assert_int_eq(error.status, OPJIT_INVALID_ARGUMENT);
}
END_TEST

/* Each C type arrives in the 8-byte slot as abi.h says: the call's interval check verifies it. */
START_TEST(typed_parameters)
{
    uint8_t in[SAMPLE_ELEMENTS] = { 10 }, out[SAMPLE_ELEMENTS] = { 0 };
    const uint8_t expect[] = { 7, 9, 8, 210, 11 };
    const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT8, DML_TENSOR_DATA_TYPE_INT16,
                                           DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_DATA_TYPE_UINT8,
                                           DML_TENSOR_DATA_TYPE_UINT64 };
    for (size_t i = 0; i < sizeof expect; i++) {
        create(true, types[i], types[i] == DML_TENSOR_DATA_TYPE_UINT8 ? 0 : -100,
               types[i] == DML_TENSOR_DATA_TYPE_UINT8 ? 200 : 100);
        if (!available)
            return;
        switch (types[i]) {
        case DML_TENSOR_DATA_TYPE_INT8: ((void (*)(const void *, void *, int8_t))function)(in, out, -3); break;
        case DML_TENSOR_DATA_TYPE_INT16: ((void (*)(const void *, void *, int16_t))function)(in, out, -1); break;
        case DML_TENSOR_DATA_TYPE_INT32: ((void (*)(const void *, void *, int32_t))function)(in, out, -2); break;
        case DML_TENSOR_DATA_TYPE_UINT8: ((void (*)(const void *, void *, uint8_t))function)(in, out, 200); break;
        default: ((void (*)(const void *, void *, uint64_t))function)(in, out, 1); break;
        }
        ck_assert_uint_eq(opjit_closure_failures(closure, &error), 0);
        ck_assert_msg(out[0] == expect[i], "row %zu: %u", i, out[0]);
        opjit_closure_destroy(closure);
        opjit_kernel_release(kernel);
        kernel = NULL;
        closure = NULL;
    }
}
END_TEST

START_TEST(float_parameter)
{
    uint8_t in[SAMPLE_ELEMENTS] = { 0 }, out[SAMPLE_ELEMENTS] = { 0 };
    create(true, DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0);
    if (!available)
        return;
    ((void (*)(const void *, void *, float))function)(in, out, -0.5f); /* 0xbf000000: an upper half would be refused */
    ck_assert_uint_eq(opjit_closure_failures(closure, &error), 0);
}
END_TEST

static void *call_failing(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        ((void (*)(const void *, void *))function)(NULL, NULL);
    return NULL;
}

START_TEST(many_threads)
{
    pthread_t threads[4];
    create(false, DML_TENSOR_DATA_TYPE_INT32, 0, 0);
    if (!available)
        return;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_failing, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(opjit_closure_failures(closure, &error), 4000);
}
END_TEST

START_TEST(refusals)
{
    create(false, DML_TENSOR_DATA_TYPE_INT32, 0, 0);
    if (!available)
        return;
    opjit_closure *c = closure;
    void (*f)(void) = function;
    ck_assert_int_eq(opjit_closure_create(NULL, &c, &f, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert(c == NULL && f == NULL);
    ck_assert_int_eq(opjit_closure_create(kernel, NULL, &f, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_closure_create(kernel, &c, NULL, &error), OPJIT_INVALID_ARGUMENT);
    opjit_closure_destroy(NULL);
    ck_assert_uint_eq(opjit_closure_failures(NULL, &error), 0);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_closure_create(kernel, &c, &f, &error), OPJIT_OUT_OF_MEMORY);
    ck_assert_int_eq(error.retry, OPJIT_RETRY_LATER);
}
END_TEST

/* One output more than a closure can have arguments. */
START_TEST(closure_of_too_many)
{
    enum { OUTPUTS = 65 };
    static const rt_kernel_hooks hooks = { .interpret = add_param };
    opjit_buffer_info buffers[OUTPUTS];
    const char *names[OUTPUTS] = { NULL };
    sample s;
    rt_bytes image;

    create(false, DML_TENSOR_DATA_TYPE_INT32, 0, 0);
    if (!available)
        return;
    opjit_kernel_release(kernel);
    sample_init(&s);
    for (uint32_t i = 0; i < OUTPUTS; i++)
        buffers[i] = sample_buffer(OPJIT_BUFFER_OUTPUT, SAMPLE_ELEMENTS);
    s.source.inputs = 0;
    s.source.outputs = OUTPUTS;
    s.source.buffers = buffers;
    s.source.buffer_names = names;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    opjit_rt_bytes_init(&image, &context->core->allocator);
    ck_assert_int_eq(opjit_rt_image_build(&s.source, NULL, 0, &image, &error), OPJIT_OK);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &hooks, NULL, &kernel, &error),
        OPJIT_OK);
    opjit_rt_bytes_free(&image);
    opjit_closure *c = closure;
    ck_assert_int_eq(opjit_closure_create(kernel, &c, &function, &error), OPJIT_LIMIT);
    ck_assert_ptr_null(c);
    ck_assert_str_eq(error.message, "closure arguments: 65, must be at most 64, buffers and parameters");
    ck_assert_str_eq(error.op, "closure");
    ck_assert_str_eq(error.field, "arguments");
    ck_assert_str_eq(error.value, "65");
    ck_assert_int_eq(error.retry, OPJIT_RETRY_NEVER);
    test_require_place(&error);
}
END_TEST

static double sum;
static void take_all(int8_t a, uint16_t b, int32_t c, float d, double e, int64_t f, const double *g, uint8_t h,
                     uint64_t i)
{
    sum = a + b + c + (double)d + e + (double)f + *g + h + (double)i;
}

START_TEST(typed_call)
{
    const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT8,    DML_TENSOR_DATA_TYPE_FLOAT16,
                                           DML_TENSOR_DATA_TYPE_INT32,   DML_TENSOR_DATA_TYPE_FLOAT32,
                                           DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_INT64,
                                           DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_UINT8,
                                           DML_TENSOR_DATA_TYPE_UINT64 };
    int8_t a = -1;
    uint16_t b = 0x3c00;
    int32_t c = -1000;
    float d = 0.25f;
    double e = 1e6, in_memory = 0.5;
    int64_t f = -(INT64_C(1) << 40);
    const double *g = &in_memory;
    uint8_t h = 255;
    uint64_t i = UINT64_C(1) << 41;
    void *const values[] = { &a, &b, &c, &d, &e, &f, &g, &h, &i };
    const DML_TENSOR_DATA_TYPE nibble = DML_TENSOR_DATA_TYPE_UINT4;
    const opjit_status status = opjit_typed_call((void (*)(void))take_all, 9, types, values, &error);
    if (status == OPJIT_UNAVAILABLE)
        return;
    ck_assert_int_eq(status, OPJIT_OK);
    ck_assert(sum == -1.0 + 0x3c00 - 1000 + 0.25 + 1e6 - 0x1p40 + 0.5 + 255 + 0x1p41);
    ck_assert_int_eq(opjit_typed_call(NULL, 0, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_typed_call((void (*)(void))take_all, 1, NULL, values, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_typed_call((void (*)(void))take_all, 1, &nibble, values, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "argument 0: type 12 (UINT4)") == error.message, "%s", error.message);
    ck_assert_int_eq(opjit_typed_call((void (*)(void))take_all, 65, types, values, &error), OPJIT_LIMIT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.ffi");
    TCase *tc = tcase_create("ffi");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, plain_function);
    tcase_add_test(tc, failures_are_counted);
    tcase_add_test(tc, typed_parameters);
    tcase_add_test(tc, float_parameter);
    tcase_add_test(tc, many_threads);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, closure_of_too_many);
    tcase_add_test(tc, typed_call);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
