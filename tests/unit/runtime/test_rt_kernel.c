/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_kernel.c - kernels made from images by hand: code, constants, workspace, many buffers, lifetimes. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/runtime/kernel_call.h"

static _Alignas(64) uint8_t space[4096];

#if defined(__x86_64__)
START_TEST(calls_code)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    create(NULL);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    expect_added(1, in);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(info.name, "sample");
    ck_assert_str_eq(info.target, "cpu:x86-64-v1");
    ck_assert(info.flags == 0 && info.inputs == 1 && info.outputs == 1 && info.buffer_count == 2 &&
              info.param_count == 0);
    ck_assert(info.code_bytes == sizeof sample_code && info.workspace_bytes == 0 && info.level == OPJIT_LEVEL_QUICK);
    ck_assert_uint_eq(info.buffers[1].bytes, SAMPLE_ELEMENTS);
    ck_assert_uint_eq(info.unproven_bounds, 2);
}
END_TEST

START_TEST(outlives_its_context)
{
    create(NULL);
    opjit_kernel_retain(kernel);
    opjit_context_destroy(context);
    context = NULL;
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    expect_added(1, in);
}
END_TEST

START_TEST(features_of_another_cpu)
{
    s.source.features[0] = UINT64_C(1) << RT_X86_AVX512FP16 | UINT64_C(1) << RT_X86_CLZERO; /* no CPU has both */
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, NULL, &kernel, &error), OPJIT_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "this CPU lacks") != NULL, "%s", error.message);
    ck_assert_ptr_null(kernel);
}
END_TEST
#endif

/* --- constants and many buffers ----------------------------------------------------------------------------------- */

static opjit_status copy_constant(void *user, uint32_t step, void *const *buffers, const uint64_t *p, void *shared,
                                  void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)step, (void)p, (void)shared, (void)scratch, (void)e;
    memcpy((uint8_t *)buffers[1] + begin, (const uint8_t *)buffers[2] + begin, (size_t)(end - begin));
    return OPJIT_OK;
}

START_TEST(constants)
{
    static uint8_t table[SAMPLE_ELEMENTS] = { 9, 8, 7 };
    const rt_kernel_hooks hooks = { .interpret = copy_constant };
    void *pointers[1] = { NULL };
    s.source.constants = 1;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "constant Table is NULL");
    pointers[0] = table;
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    pointers[0] = NULL; /* the array was copied */
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_mem_eq(out, table, sizeof table);
    bindings[1].data = table + 1; /* would write into what the kernel reads */
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "OutputTensor overlaps Table") == error.message, "%s", error.message);
}
END_TEST

START_TEST(workspace_on_a_constant)
{
    const rt_kernel_hooks hooks = { .interpret = copy_constant };
    uint8_t before[sizeof space];
    void *pointers[1] = { space + 127 }; /* the last byte of it */
    s.source.constants = 1;
    s.source.shared_size = 128;
    s.code_size = 0;
    memset(space, 7, sizeof space);
    memcpy(before, space, sizeof space);
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    call.workspace = (opjit_binding){ space, 128 };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "workspace overlaps Table");
    ck_assert_mem_eq(space, before, sizeof space);
    opjit_kernel_release(kernel);
    pointers[0] = space + 128;
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

#if defined(__x86_64__)
START_TEST(parameters_under_an_output)
{
    alignas(8) uint8_t memory_of_both[SAMPLE_ELEMENTS] = { 5 };
    sample_use_param(&s);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_X86_64, 1);
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, NULL, &kernel, &error), OPJIT_OK);
    in[0] = 1, in[15] = 2;
    bindings[1] = (opjit_binding){ memory_of_both, sizeof memory_of_both };
    call.params = (const uint64_t *)(const void *)memory_of_both;
    call.param_count = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(memory_of_both[0], 6);
    ck_assert_uint_eq(memory_of_both[15], 7);
}
END_TEST
#endif

START_TEST(more_buffers_than_the_stack_holds)
{
    enum { MANY = 100 };
    static opjit_buffer_info infos[MANY + 1];
    static opjit_binding many[MANY + 1];
    rt_bytes image;
    for (int i = 0; i < MANY; i++) {
        infos[i] = sample_buffer(OPJIT_BUFFER_INPUT, SAMPLE_ELEMENTS);
        many[i] = bindings[0];
    }
    infos[MANY] = sample_buffer(OPJIT_BUFFER_OUTPUT, SAMPLE_ELEMENTS);
    many[MANY] = bindings[1];
    s.source.inputs = MANY;
    s.source.buffers = infos;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    opjit_rt_bytes_init(&image, &context->core->allocator);
    ck_assert_int_eq(opjit_rt_image_build(&s.source, NULL, 0, &image, &error), OPJIT_OK);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel, &error),
        OPJIT_OK);
    opjit_rt_bytes_free(&image);
    call.bindings = many;
    call.binding_count = MANY + 1;
    in[0] = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OUT_OF_MEMORY);
    many[MANY].data = in + 8;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "? overlaps ?") == error.message, "%s", error.message); /* they have no names */
}
END_TEST

/* --- workspace ---------------------------------------------------------------------------------------------------- */

START_TEST(workspace)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    s.source.shared_size = 100;
    s.source.scratch_size = 50;
    hook.scratch_size = 64;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_uint_eq(info.workspace_bytes, 128 + 64);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK); /* allocated */
    ck_assert_uint_eq((uintptr_t)hook.shared % 64, 0);
    memset(out, 0xee, sizeof out);
    ck_assert_int_eq(opjit_cache_clear(context, &error), OPJIT_OK);
    memory.fail_at = memory.calls + 1;
    EXPECT_REFUSED(OPJIT_OUT_OF_MEMORY, "out of memory");
    memory.fail_at = 0;
    call.workspace = (opjit_binding){ space, 191 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace: 191 bytes given, 192 needed for 1 workers");
    call.workspace = (opjit_binding){ NULL, 192 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace: 192 bytes at NULL");
    call.workspace = (opjit_binding){ space + 32, 192 };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    call.workspace = (opjit_binding){ space, 192 };
    bindings[0].data = space + 191;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace overlaps InputTensor");
    bindings[0].data = in;
    const int before = memory.calls;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.calls, before);
    ck_assert_ptr_eq(hook.shared, space);
    ck_assert_int_eq(hook.wrong_scratch, 0);
}
END_TEST

/* The context keeps one for the next call that brings none, until it is told not to, or is gone. */
START_TEST(spare_workspace)
{
    s.source.shared_size = 4000;
    create(&interpreting);
    const int live = memory.live;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.live, live + 1);
    const int before = memory.calls;
    const void *const first = hook.shared;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.calls, before);
    ck_assert_ptr_eq(hook.shared, first);
    size_t few = 64, many = 5000, nested = 64;
    void *const small = opjit_rt_workspace_take(context->core, &few); /* there is one of 4032 bytes */
    ck_assert(small == first && few == 4032);
    void *const other = opjit_rt_workspace_take(context->core, &nested); /* and no second one */
    ck_assert(other != NULL && other != first && nested == 64);
    opjit_rt_workspace_give(context->core, small, few);
    opjit_rt_workspace_give(context->core, other, nested);
    ck_assert_int_eq(memory.live, live + 1);
    void *const large = opjit_rt_workspace_take(context->core, &many);
    ck_assert(large != NULL && many == 5000 && memory.live == live + 1);
    opjit_rt_workspace_give(context->core, large, many);
    ck_assert_int_eq(opjit_cache_clear(context, &error), OPJIT_OK);
    ck_assert_int_eq(memory.live, live);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

/* --- life --------------------------------------------------------------------------------------------------------- */

START_TEST(hooks_are_destroyed_once)
{
    create(&interpreting);
    opjit_kernel_retain(kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(hook.destroyed, 0);
    opjit_kernel_release(kernel);
    kernel = NULL;
    ck_assert_int_eq(hook.destroyed, 1);
    opjit_kernel_retain(NULL);
    opjit_kernel_release(NULL);
    s.code_size = 0; /* no code, no interpreter; and on failure the hooks stay the caller's */
    const rt_kernel_hooks hooks = { .destroy = count_destroy };
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(hook.destroyed, 1);
}
END_TEST

START_TEST(create_without_memory)
{
    bool done = false;
    rt_bytes image;
    ck_assert_int_eq(sample_build(&s, &image, &opjit_rt_default_allocator, &error), OPJIT_OK);
    for (int n = 1; !done; n++) {
        const int live = memory.live;
        memory.fail_at = memory.calls + n;
        done = opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel,
                                      &error) == OPJIT_OK;
        ck_assert(done || error.status == OPJIT_OUT_OF_MEMORY);
        ck_assert(done || memory.live == live);
    }
    memory.fail_at = 0;
    opjit_rt_bytes_free(&image);
}
END_TEST

START_TEST(custom_steps_are_refused)
{
    s.steps[0].kind = OPJIT_STEP_CUSTOM;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &interpreting, &kernel, &error), OPJIT_UNSUPPORTED);
}
END_TEST

START_TEST(info_rules)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    rt_kernel_hooks hooks = interpreting;
    hooks.from_disk = true;
    create(&hooks);
    ck_assert_int_eq(opjit_kernel_get_info(NULL, &info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, NULL, &error), OPJIT_INVALID_ARGUMENT);
    info.struct_size = 0x5a5a5a5a; /* never set: nothing is written */
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(info.name);
    info.struct_size = offsetof(opjit_kernel_info, unproven_bounds); /* the first version */
    info.unproven_bounds = 77;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_uint_eq(info.unproven_bounds, 77);
    info.struct_size = sizeof info;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(info.name, "sample");
    ck_assert_uint_eq(info.flags, OPJIT_KERNEL_INTERPRETED | OPJIT_KERNEL_FROM_DISK);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK); /* interpreted: nothing to do */
    ck_assert_int_eq(opjit_kernel_optimize(NULL, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.kernel");
    TCase *tcase = tcase_create("kernel");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, constants);
    tcase_add_test(tcase, workspace_on_a_constant);
#if defined(__x86_64__)
    tcase_add_test(tcase, parameters_under_an_output);
#endif
    tcase_add_test(tcase, more_buffers_than_the_stack_holds);
    tcase_add_test(tcase, workspace);
    tcase_add_test(tcase, spare_workspace);
    tcase_add_test(tcase, hooks_are_destroyed_once);
    tcase_add_test(tcase, create_without_memory);
    tcase_add_test(tcase, custom_steps_are_refused);
    tcase_add_test(tcase, info_rules);
#if defined(__x86_64__)
    tcase_add_test(tcase, calls_code);
    tcase_add_test(tcase, outlives_its_context);
    tcase_add_test(tcase, features_of_another_cpu);
#endif
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
