/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_load.c - kernels as images: what opjit_kernel_get_image hands out comes back by opjit_kernel_load, and
 * nothing that is damaged, foreign or misses its constants does. */
#include <check.h>
#include <stdio.h>

#include "runtime/target.h"
#include "tests/support/random.h"
#include "tests/unit/rt_sample.h"

static counting memory;
static opjit_context *context;
static opjit_kernel *kernel;
static sample s;
static rt_bytes image;
static opjit_error error;

static void setup(void)
{
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.allocator = &a;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    sample_init(&s);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_X86_64, 1);
    ck_assert_int_eq(sample_build(&s, &image, &context->core->allocator, NULL), OPJIT_OK);
    kernel = NULL;
}

static void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_rt_bytes_free(&image);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static opjit_status load(const void *bytes, size_t size)
{
    return opjit_kernel_load(context, bytes, size, NULL, 0, &kernel, &error);
}

static void expect_sum(void)
{
    uint8_t in[SAMPLE_ELEMENTS] = { 1, 2, 3, 255 }, out[SAMPLE_ELEMENTS] = { 0 };
    const opjit_binding bindings[] = { { in, sizeof in }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < SAMPLE_ELEMENTS; i++)
        ck_assert_uint_eq(out[i], (uint8_t)(in[i] + 1));
}

/* Into another context, after the first is gone. */
START_TEST(comes_back)
{
    const void *bytes;
    uint64_t size;
    rt_bytes copy;
    ck_assert_msg(load(image.data, image.size) == OPJIT_OK, "%s", error.message);
    expect_sum();
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_OK);
    ck_assert_uint_eq(size, image.size);
    ck_assert_mem_eq(bytes, image.data, image.size);
    opjit_rt_bytes_init(&copy, &opjit_rt_default_allocator);
    opjit_rt_bytes_append(&copy, bytes, (size_t)size);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(load(copy.data, copy.size), OPJIT_OK);
    opjit_rt_bytes_free(&copy); /* the kernel has its own */
    expect_sum();
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    expect_sum();
}
END_TEST

START_TEST(no_mutation_is_loaded)
{
    test_random r;
    uint8_t *const copy = malloc(image.size);
    ck_assert_ptr_nonnull(copy);
    for (uint64_t n = 0; n < 10000; n++) {
        size_t size = image.size;
        test_random_init(&r, 1, 0, n);
        memcpy(copy, image.data, size);
        if (test_random_chance(&r, 20))
            size = (size_t)test_random_below(&r, size);
        else
            for (uint64_t i = test_random_below(&r, 4) + 1; i-- > 0;)
                copy[test_random_below(&r, size)] ^= (uint8_t)(1 + test_random_below(&r, 255));
        if (size == image.size && memcmp(copy, image.data, size) == 0)
            continue;
        ck_assert_msg(load(copy, size) == OPJIT_CORRUPT, "mutation %d", (int)n);
        ck_assert_ptr_null(kernel);
    }
    free(copy);
}
END_TEST

static void rebuild(void)
{
    opjit_rt_bytes_free(&image);
    ck_assert_int_eq(sample_build(&s, &image, &context->core->allocator, NULL), OPJIT_OK);
}

START_TEST(what_is_refused)
{
    _Alignas(8) uint8_t odd[64] = { 0 };
    ck_assert_int_eq(load(odd + 4, sizeof odd - 4), OPJIT_INVALID_ARGUMENT);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_AARCH64, 1);
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.source.features[0] = 0;
    s.source.features[1] = 1;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.source.features[1] = 0;
    s.steps[0].kind = OPJIT_STEP_CUSTOM;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_UNSUPPORTED);
    s.steps[0].kind = OPJIT_STEP_STAGE;
    s.code_size = 0; /* nothing here could interpret it */
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(kernel);
}
END_TEST

START_TEST(constants)
{
    static const uint8_t table[SAMPLE_ELEMENTS];
    const void *pointers[2] = { NULL, NULL };
    s.source.constants = 1;
    rebuild();
    ck_assert_int_eq(load(image.data, image.size), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "constant_count: 0, the image has 1");
    for (uint32_t count = 0; count <= 2; count++)
        ck_assert_int_eq(opjit_kernel_load(context, image.data, image.size, pointers, count, &kernel, &error),
                         OPJIT_INVALID_ARGUMENT);
    pointers[0] = table;
    ck_assert_int_eq(opjit_kernel_load(context, image.data, image.size, pointers, 1, &kernel, &error), OPJIT_OK);
    expect_sum();
}
END_TEST

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)step, (void)buffers, (void)params, (void)shared, (void)scratch, (void)begin, (void)end, (void)e;
    return OPJIT_OK;
}

START_TEST(interpreted_kernels_have_no_image)
{
    const rt_kernel_hooks hooks = { .interpret = interpret };
    const void *bytes = &hooks;
    uint64_t size = 1;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "kernel sample is interpreted, so it has no image");
    ck_assert(bytes == NULL && size == 0);
}
END_TEST

START_TEST(without_memory)
{
    bool done = false;
    for (int fail_at = 1; !done; fail_at++) {
        memory.calls = 0;
        memory.fail_at = fail_at;
        const opjit_status status = load(image.data, image.size);
        done = memory.calls < fail_at;
        memory.fail_at = 0;
        ck_assert_int_eq(status, done ? OPJIT_OK : OPJIT_OUT_OF_MEMORY);
    }
    expect_sum();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("rt.load");
    TCase *const tcase = tcase_create("load");
    SRunner *const runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, comes_back);
    tcase_add_test(tcase, no_mutation_is_loaded);
    tcase_add_test(tcase, what_is_refused);
    tcase_add_test(tcase, constants);
    tcase_add_test(tcase, interpreted_kernels_have_no_image);
    tcase_add_test(tcase, without_memory);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
