/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_context.c - contexts: options and their refusals, environment, events, lifetimes. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/runtime/rt_sample.h"

static const opjit_allocator half_allocator = { NULL, counting_allocate, NULL };

static const struct {
    const char *name;
    opjit_context_options options;
    opjit_status status;
    const char *part;
} refusals[] = {
    { "struct_size 0", { .struct_size = 0 }, OPJIT_INVALID_ARGUMENT, "struct_size 0" },
    { "feature level",
      { .struct_size = sizeof(opjit_context_options), .feature_level = 0x5300 },
      OPJIT_INVALID_ARGUMENT,
      "feature_level 0x5300; allowed: 0, 0x1000" },
    { "flags", { .struct_size = sizeof(opjit_context_options), .flags = 16 }, OPJIT_INVALID_ARGUMENT, "flags 0x10" },
    { "reserved",
      { .struct_size = sizeof(opjit_context_options), .reserved = 1 },
      OPJIT_INVALID_ARGUMENT,
      "reserved is 1" },
    { "target",
      { .struct_size = sizeof(opjit_context_options), .target = "cpu:z80" },
      OPJIT_INVALID_ARGUMENT,
      "cpu:z80" },
    { "other machine",
      { .struct_size = sizeof(opjit_context_options), .target = "cpu:aarch64,tune=znver3" },
      OPJIT_INVALID_ARGUMENT,
      "tune=znver3" },
    { "relative codegen",
      { .struct_size = sizeof(opjit_context_options), .codegen_path = "lib.so" },
      OPJIT_INVALID_ARGUMENT,
      "codegen_path 'lib.so'" },
    { "empty cache_dir",
      { .struct_size = sizeof(opjit_context_options), .cache_dir = "" },
      OPJIT_INVALID_ARGUMENT,
      "cache_dir" },
    { "half an allocator",
      { .struct_size = sizeof(opjit_context_options), .allocator = &half_allocator },
      OPJIT_INVALID_ARGUMENT,
      "allocator" },
};

START_TEST(refusal_row)
{
    opjit_context *context = (opjit_context *)&context;
    opjit_error error;
    ck_assert_msg(opjit_context_create(&refusals[_i].options, &context, &error) == refusals[_i].status, "%s: %s",
                  refusals[_i].name, error.message);
    ck_assert_ptr_null(context);
    ck_assert_msg(strstr(error.message, refusals[_i].part) != NULL, "%s: %s", refusals[_i].name, error.message);
}
END_TEST

START_TEST(null_arguments)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    ck_assert_int_eq(opjit_context_create(NULL, NULL, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_get_stats(NULL, &stats, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_clear(NULL, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(opjit_context_target(NULL));
    opjit_context_destroy(NULL);
}
END_TEST

/* Version numbers of headers, and whether this library (0.1) takes them. */
static const struct {
    uint32_t header;
    opjit_status status;
} headers[] = {
    { OPJIT_VERSION_NUMBER, OPJIT_OK }, { 199, OPJIT_OK },
    { 0, OPJIT_UNSUPPORTED },           { 200, OPJIT_UNSUPPORTED },
    { 10100, OPJIT_UNSUPPORTED },       { UINT32_MAX, OPJIT_UNSUPPORTED },
};

START_TEST(header_row)
{
    opjit_context *context = (opjit_context *)&context;
    opjit_error error;
    const opjit_status status = opjit_context_create_for(headers[_i].header, NULL, &context, &error);
    ck_assert_int_eq(status, headers[_i].status);
    ck_assert_int_eq(context != NULL, status == OPJIT_OK);
    ck_assert_msg(status == OPJIT_OK || strstr(error.message, opjit_version()) != NULL, "%s", error.message);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(option_sizes)
{
    /* An older caller's shorter structure, whose neighbours must not be read. */
    const uint32_t old[sizeof(opjit_context_options) / 4] = { RT_SIZE_TO(opjit_context_options, reserved),
                                                              DML_FEATURE_LEVEL_5_1, [18] = 1 };
    struct {
        opjit_context_options options;
        uint64_t tail;
    } newer = { OPJIT_CONTEXT_OPTIONS_INIT, 0 };
    opjit_context *context;
    opjit_error error;
    ck_assert_int_eq(opjit_context_create((const opjit_context_options *)(const void *)old, &context, &error),
                     OPJIT_OK);
    ck_assert_uint_eq(context->feature_level, DML_FEATURE_LEVEL_5_1);
    opjit_context_destroy(context);
    newer.options.struct_size = sizeof newer;
    ck_assert_int_eq(opjit_context_create(&newer.options, &context, &error), OPJIT_OK);
    opjit_context_destroy(context);
    newer.tail = 1;
    ck_assert_int_eq(opjit_context_create(&newer.options, &context, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "newer") != NULL, "%s", error.message);
}
END_TEST

START_TEST(options_are_copied)
{
    char target[] = "cpu:x86-64-v3,l1=65536", path[] = "/a/b.so", dir[] = "/tmp/c";
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    counting c;
    opjit_allocator a = counting_allocator(&c, 0);
    opjit_context *context;
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    options.allocator = &a;
    options.target = target;
    options.codegen_path = path;
    options.cache_dir = dir;
    options.cache_bytes = 12345;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    memset(target, 'x', 5), memset(path, 'x', 5), memset(dir, 'x', 5), memset(&a, 0, sizeof a);
    ck_assert_str_eq(opjit_context_target(context), "cpu:x86-64-v3,l1=65536");
    ck_assert_str_eq(context->core->codegen_path, "/a/b.so");
    ck_assert_ptr_nonnull(context->core->disk);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert_uint_eq(stats.capacity, 12345);
    opjit_context_destroy(context);
    ck_assert_int_eq(c.live, 0);
    ck_assert_int_eq(c.bytes, 0);
}
END_TEST

START_TEST(without_memory)
{
    bool done = false;
    for (int fail_at = 1; !done; fail_at++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, fail_at);
        opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
        opjit_context *context;
        opjit_error error;
        opjit_status status;
        options.allocator = &a;
        options.target = "cpu:x86-64-v2";
        options.codegen_path = "/x";
        options.cache_dir = "/y";
        status = opjit_context_create(&options, &context, &error);
        done = status == OPJIT_OK;
        ck_assert(done || (status == OPJIT_OUT_OF_MEMORY && error.status == status && context == NULL));
        opjit_context_destroy(context);
        ck_assert_int_eq(c.live, 0);
        ck_assert_int_eq(c.bytes, 0);
    }
}
END_TEST

START_TEST(devices)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    opjit_error error;
    counting c;
    const opjit_allocator a = counting_allocator(&c, 0);

    setenv("FAKE_CUDA_DEVICES", "75,86,121", 1);
    options.allocator = &a;
    options.device_driver = getenv("OPJIT_TEST_CUDA");
    ck_assert_ptr_nonnull(options.device_driver);
    options.device = "cuda:2";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    ck_assert_str_eq(opjit_context_target(context), "nvptx:sm_120");
    ck_assert_ptr_nonnull(context->core->device);
    opjit_context_destroy(context);
    options.device = "cuda:1";
    options.target = "nvptx:sm_80";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    ck_assert_str_eq(opjit_context_target(context), "nvptx:sm_80");
    opjit_context_destroy(context);
    options.target = "nvptx:sm_90";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "target nvptx:sm_90 is not for device cuda:1, which runs nvptx:sm_80");
    options.target = "cpu:x86-64-v3";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_UNSUPPORTED);
    options.target = NULL;
    options.device = "cuda:0";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "device cuda:0: sm_75 is too old");
    options.device = "cuda:3";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_UNAVAILABLE);
    options.device = "";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_INVALID_ARGUMENT);
    options.device = "cuda";
    options.device_driver = "/nowhere/libcuda.so.1";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_UNAVAILABLE);
    ck_assert_ptr_null(context);
    ck_assert_int_eq(c.live, 0);
}
END_TEST

static void keep_event(void *user, const opjit_event *event)
{
    snprintf(user, 200, "%d %s", (int)event->kind, event->line);
}

START_TEST(events)
{
    char last[200] = "";
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    setenv("OPJIT_VERBOSE", "1", 1);
    options.event = keep_event;
    options.event_user = last;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    ck_assert(rt_wants_events(context->core));
    ck_assert(!context->core->verbose); /* the sink wins */
    opjit_rt_event(context->core, RT_WARNING(OPJIT_EVENT_OTHER, "a", "b"), "warning,%s", "a\nb");
    ck_assert_str_eq(last, "6 opjit,warning,a?b");
    opjit_context_destroy(context);
}
END_TEST

START_TEST(environment)
{
    opjit_context *context;
    char line[2000] = "";
    char longest[3000];
    int ends[2];
    unsetenv("OPJIT_VERBOSE");
    unsetenv("OPJIT_OUT_OF_PROCESS");
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    ck_assert(!rt_wants_events(context->core));
    ck_assert_uint_eq(context->core->flags, 0);
    opjit_context_destroy(context);
    setenv("OPJIT_VERBOSE", "1", 1);
    setenv("OPJIT_GDB", "1", 1);
    setenv("OPJIT_PERF_MAP", "0", 1);
    setenv("OPJIT_OUT_OF_PROCESS", "1", 1);
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    ck_assert_uint_eq(context->core->flags, OPJIT_CONTEXT_GDB | OPJIT_CONTEXT_OUT_OF_PROCESS);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    opjit_rt_event(context->core, &(const opjit_event){ .kind = OPJIT_EVENT_HIT }, "hit,%d", 7);
    ck_assert_int_gt(read(ends[0], line, sizeof line - 1), 0);
    ck_assert_str_eq(line, "opjit,hit,7\n");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    opjit_rt_event(context->core, &(const opjit_event){ .kind = OPJIT_EVENT_HIT }, "%s", longest);
    ck_assert_int_eq(read(ends[0], line, sizeof line), 1023);
    ck_assert_int_eq(line[1022], '\n');
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.context");
    TCase *tc = tcase_create("context");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, refusal_row, 0, sizeof refusals / sizeof *refusals);
    tcase_add_loop_test(tc, header_row, 0, sizeof headers / sizeof *headers);
    tcase_add_test(tc, null_arguments);
    tcase_add_test(tc, option_sizes);
    tcase_add_test(tc, options_are_copied);
    tcase_add_test(tc, without_memory);
    tcase_add_test(tc, devices);
    tcase_add_test(tc, events);
    tcase_add_test(tc, environment);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
