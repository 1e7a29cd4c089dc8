/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_debug.c - names for machine code: perf's map file, and registration with GDB's interface.  Whether GDB itself
 * reads the registrations is beyond a unit test; here its list is built and taken down in all orders. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/debug/debug.h"
#include "tests/unit/runtime/rt_sample.h"

static opjit_context *context;
static opjit_error error;
static counting memory;
static char map_path[64], last_event[300];

static void keep_event(void *user, const opjit_event *event)
{
    (void)user;
    if (event->kind == OPJIT_EVENT_WARNING)
        snprintf(last_event, sizeof last_event, "%s", event->line);
}

static void open_context(uint32_t flags)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    options.flags = flags;
    options.event = keep_event;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    snprintf(map_path, sizeof map_path, "/tmp/perf-%ld.map", (long)getpid());
    unlink(map_path);
    last_event[0] = '\0';
}

static void teardown(void)
{
    opjit_context_destroy(context);
    unlink(map_path);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static void setup(void)
{
    context = NULL;
}

static opjit_status build(rt_bytes *image, const opjit_kernel_meta **meta, const uint8_t **code, size_t *code_size)
{
    sample s;
    sample_init(&s);
    s.source.name = "my kernel\n1";
    s.source.steps = 2;
    s.variants[0].steps = 2;
    TRY(sample_build(&s, image, &opjit_rt_default_allocator, &error));
    return opjit_rt_image_check(image->data, image->size, meta, code, code_size, &error);
}

static rt_debug_entry *name_sample(rt_bytes *image, const uint8_t **out_code)
{
    const opjit_kernel_meta *meta;
    size_t code_size;
    ck_assert_int_eq(build(image, &meta, out_code, &code_size), OPJIT_OK);
    return opjit_rt_debug_register(context->core, meta, *out_code, code_size);
}

START_TEST(perf_map)
{
    rt_bytes image;
    const uint8_t *code;
    char text[300] = "", want[300];
    FILE *file;
    open_context(OPJIT_CONTEXT_PERF_MAP);
    ck_assert_ptr_null(name_sample(&image, &code));
    file = fopen(map_path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    snprintf(want, sizeof want, "%llx 20 my_kernel_1\n%llx 1c my_kernel_1_1\n", (unsigned long long)(uintptr_t)code,
             (unsigned long long)(uintptr_t)code + 32);
    ck_assert_str_eq(text, want);
    ck_assert_str_eq(last_event, "");
    opjit_rt_bytes_free(&image);
}
END_TEST

/* A kernel of many stages, which a second variant has in another order: each has a line of its own. */
START_TEST(many_stages)
{
    enum { STAGES = 1000, SIZE = 4, STEPS = 2 * STAGES };
    static opjit_step_info steps[STEPS];
    static uint8_t code[STAGES * SIZE];
    const opjit_variant_info variant = { 0, 0, STEPS };
    const opjit_kernel_meta *meta;
    const uint8_t *placed;
    size_t code_size;
    rt_bytes image;
    sample s;
    unsigned long long address, last = 0;
    unsigned size, lines = 0;
    FILE *file;
    open_context(OPJIT_CONTEXT_PERF_MAP);
    sample_init(&s);
    for (uint32_t i = 0; i < STEPS; i++)
        steps[i] = (opjit_step_info){ OPJIT_STEP_STAGE, SIZE * (i < STAGES ? i : STEPS - 1 - i), 1, 1 };
    s.source.buffers = s.buffers;
    s.source.buffer_names = s.names;
    s.source.steps = STEPS;
    s.source.step_infos = steps;
    s.source.variant_infos = &variant;
    opjit_rt_bytes_init(&image, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_rt_image_build(&s.source, code, sizeof code, &image, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_image_check(image.data, image.size, &meta, &placed, &code_size, &error), OPJIT_OK);
    opjit_rt_debug_register(context->core, meta, placed, code_size);
    file = fopen(map_path, "r");
    ck_assert_ptr_nonnull(file);
    for (; fscanf(file, "%llx %x %*s", &address, &size) == 2; lines++, last = address) {
        ck_assert_uint_eq(size, SIZE);
        ck_assert(lines == 0 || address == last + SIZE);
    }
    fclose(file);
    ck_assert_uint_eq(lines, STAGES);
    opjit_rt_bytes_free(&image);
}
END_TEST

/* /tmp is shared: a link that someone else left there must not be followed. */
START_TEST(perf_map_is_no_link)
{
    rt_bytes image;
    const uint8_t *code;
    char victim[64];
    struct stat info;
    FILE *file;
    open_context(OPJIT_CONTEXT_PERF_MAP);
    snprintf(victim, sizeof victim, "/tmp/opjit-test-%ld", (long)getpid());
    file = fopen(victim, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_int_eq(symlink(victim, map_path), 0);
    name_sample(&image, &code);
    ck_assert_int_eq(stat(victim, &info), 0);
    ck_assert_int_eq(info.st_size, 0);
    ck_assert_msg(strstr(last_event, "opjit,warning,perf map ") == last_event, "%s", last_event);
    unlink(map_path);
    ck_assert_int_eq(link(victim, map_path), 0); /* nor a second name of another file */
    opjit_rt_bytes_free(&image);
    name_sample(&image, &code);
    ck_assert_int_eq(stat(victim, &info), 0);
    ck_assert_int_eq(info.st_size, 0);
    unlink(victim);
    opjit_rt_bytes_free(&image);
}
END_TEST

START_TEST(gdb_list)
{
    static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };
    open_context(OPJIT_CONTEXT_GDB);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        rt_bytes images[3];
        rt_debug_entry *entries[3];
        const uint8_t *code;
        for (int i = 0; i < 3; i++) {
            entries[i] = name_sample(&images[i], &code);
            ck_assert_ptr_nonnull(entries[i]);
        }
        for (int i = 0; i < 3; i++)
            opjit_rt_debug_unregister(context->core, entries[orders[o][i]]);
        for (int i = 0; i < 3; i++)
            opjit_rt_bytes_free(&images[i]);
    }
    ck_assert_int_ne(access(map_path, F_OK), 0);
}
END_TEST

START_TEST(off_unless_asked)
{
    rt_bytes image;
    const uint8_t *code;
    int before;
    open_context(0);
    before = memory.calls;
    ck_assert_ptr_null(name_sample(&image, &code));
    ck_assert_int_eq(memory.calls, before);
    ck_assert_int_ne(access(map_path, F_OK), 0);
    opjit_rt_debug_unregister(context->core, NULL);
    opjit_rt_bytes_free(&image);
}
END_TEST

START_TEST(no_memory_is_a_warning)
{
    for (int n = 1; n < 20; n++) {
        rt_bytes image;
        const uint8_t *code;
        rt_debug_entry *entry;
        int live;
        open_context(OPJIT_CONTEXT_GDB | OPJIT_CONTEXT_PERF_MAP);
        live = memory.live;
        memory.fail_at = memory.calls + n;
        entry = name_sample(&image, &code);
        if (memory.calls < memory.fail_at)
            n = 20; /* success: this is the last round */
        else
            ck_assert_msg(strstr(last_event, "opjit,warning,") == last_event, "round %d: %s", n, last_event);
        opjit_rt_debug_unregister(context->core, entry);
        ck_assert_int_eq(memory.live, live);
        opjit_rt_bytes_free(&image);
        if (n < 20)
            opjit_context_destroy(context);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.debug");
    TCase *tc = tcase_create("debug");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, perf_map);
    tcase_add_test(tc, many_stages);
    tcase_add_test(tc, perf_map_is_no_link);
    tcase_add_test(tc, gdb_list);
    tcase_add_test(tc, off_unless_asked);
    tcase_add_test(tc, no_memory_is_a_warning);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
