/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_disk.c - what compiling stores on disk: kernels of an earlier process, and peak versions made by
 * opjit_kernel_optimize, are found again without the code generator.  Files and their damage are tested by rt.disk. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"

enum { FLOATS = 12 };

typedef struct counts {
    uint32_t compiles, hits, loads; /* loads: of the code generator */
} counts;

static char folder[64], other_folder[64];

static void on_event(void *user, const opjit_event *event)
{
    counts *const c = user;

    c->compiles += event->kind == OPJIT_EVENT_COMPILE;
    c->hits += event->kind == OPJIT_EVENT_HIT && strstr(event->line, ",disk") != NULL;
    c->loads += strncmp(event->line, "opjit,load,codegen", 18) == 0;
    ck_assert_int_ne(event->kind, OPJIT_EVENT_WARNING);
}

/* A context as in a new process: nothing in memory. */
static opjit_context *begin(const char *cache, counts *c)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    opjit_error error;

    memset(c, 0, sizeof *c);
    options.cache_dir = cache;
    options.event = on_event;
    options.event_user = c;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

static void setup(void)
{
    strcpy(folder, "/tmp/opjit-disk-XXXXXX");
    strcpy(other_folder, "/tmp/opjit-disk-XXXXXX");
    ck_assert(mkdtemp(folder) != NULL && mkdtemp(other_folder) != NULL);
}

static void teardown(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf '%s' '%s'", folder, other_folder);
    ck_assert_int_eq(system(command), 0);
}

static uint32_t files(void)
{
    DIR *const directory = opendir(folder);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* --- subjects: an operator, one with a late field, a graph -------------------------------------------------------- */
static const uint32_t sizes[] = { 3, 4 };

static opjit_kernel *compile_operator(opjit_context *context, opjit_compile_options *options)
{
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { .OutputTensor = &tensor, .Offset = 1, .Value = 5 };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_error error;

    ck_assert_msg(opjit_operator_create(context, &desc, &op, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_compile_operator(context, op, options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return kernel;
}

static opjit_kernel *compile_late(opjit_context *context, opjit_compile_options *options)
{
    static const char *const late[] = { "Offset" };

    options->late = late;
    options->late_count = 1;
    return compile_operator(context, options);
}

/* x - 1, with a constant that is folded. */
static opjit_kernel *compile_graph(opjit_context *context, opjit_compile_options *options)
{
    static const float ones[FLOATS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    graph_tensor t;
    const DML_TENSOR_DESC *const x = graph_tensor_set(&t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    const DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC subtract = { x, x, x };
    opjit_kernel *kernel;
    opjit_error error;
    graph_case g;

    graph_begin(&g, context, 4);
    const uint32_t node = graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, &subtract, "subtract");
    graph_input(&g, 0, node, 0);
    graph_edge(&g, graph_constant(&g, ones, sizeof ones, "ones"), 0, node, 1);
    graph_output(&g, node, 0, 0);
    ck_assert_msg(opjit_compile_graph(context, &g.desc, options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    graph_end(&g);
    return kernel;
}

static const struct subject {
    opjit_kernel *(*compile)(opjit_context *, opjit_compile_options *);
    const char *name;
    bool has_input, has_late;
    float expected[FLOATS];
} subjects[] = {
    { compile_operator, NULL, false, false, { 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5 } },
    { compile_operator, "mine", false, false, { 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5 } },
    { compile_late, NULL, false, true, { 0, 0, 5, 0, 0, 0, 0, 5, 0, 0, 0, 0 } },
    { compile_graph, NULL, true, false, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
};

static opjit_kernel *compile(const struct subject *s, opjit_context *context, opjit_level level)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;

    options.level = level;
    options.name = s->name;
    return s->compile(context, &options);
}

static void expect(const struct subject *s, const opjit_kernel *kernel, opjit_level level, bool from_disk)
{
    static float in[FLOATS] = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 };
    static const uint64_t late = 2;
    float out[FLOATS];
    const opjit_binding bindings[] = { { in, sizeof in }, { out, sizeof out } };
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;

    memset(out, 0xff, sizeof out);
    call.bindings = bindings + !s->has_input;
    call.binding_count = 1 + s->has_input;
    call.params = &late;
    call.param_count = s->has_late;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_mem_eq(out, s->expected, sizeof out);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_int_eq(info.level, level);
    ck_assert_int_eq((info.flags & OPJIT_KERNEL_FROM_DISK) != 0, from_disk);
    if (s->name != NULL)
        ck_assert_str_eq(info.name, s->name);
}

START_TEST(peak_versions_are_kept)
{
    const struct subject *const s = &subjects[_i];
    counts c;
    opjit_context *context = begin(folder, &c);

    if (!test_have_codegen(context)) {
        printf("skipped: no code generation\n");
        opjit_context_destroy(context);
        return;
    }
    opjit_kernel *kernel = compile(s, context, OPJIT_LEVEL_AUTO);
    expect(s, kernel, OPJIT_LEVEL_QUICK, false);
    ck_assert_uint_eq(files(), 1);
    opjit_context_destroy(context); /* a kernel holds what it needs for this */
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
    expect(s, kernel, OPJIT_LEVEL_PEAK, false);
    ck_assert_uint_eq(files(), 2);
    ck_assert_uint_eq(c.compiles, 2);
    opjit_kernel_release(kernel);

    context = begin(folder, &c);
    kernel = compile(s, context, OPJIT_LEVEL_AUTO);
    expect(s, kernel, OPJIT_LEVEL_QUICK, true);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
    expect(s, kernel, OPJIT_LEVEL_PEAK, true);
    opjit_kernel_release(kernel);
    kernel = compile(s, context, OPJIT_LEVEL_PEAK);
    expect(s, kernel, OPJIT_LEVEL_PEAK, true);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_uint_eq(c.compiles, 0);
    ck_assert_uint_eq(c.loads, 0);
    ck_assert_uint_eq(c.hits, 3);
}
END_TEST

/* The file of a key has the same bytes whoever makes it first. */
START_TEST(peak_versions_have_one_content)
{
    const struct subject *const s = &subjects[_i];
    char command[256];
    counts c;
    opjit_context *context = begin(folder, &c);

    if (!test_have_codegen(context)) {
        printf("skipped: no code generation\n");
        opjit_context_destroy(context);
        return;
    }
    opjit_kernel *kernel = compile(s, context, OPJIT_LEVEL_AUTO);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    context = begin(other_folder, &c);
    opjit_kernel_release(compile(s, context, OPJIT_LEVEL_PEAK));
    opjit_kernel_release(compile(s, context, OPJIT_LEVEL_QUICK));
    opjit_context_destroy(context);
    ck_assert_uint_eq(c.compiles, 2);
    snprintf(command, sizeof command, "diff -r '%s' '%s'", folder, other_folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* The image of a kernel is what the cache holds, so another process can load it. */
START_TEST(images_are_loaded)
{
    const struct subject *const s = &subjects[_i];
    counts c;
    opjit_context *context = begin(folder, &c);
    opjit_error error;

    if (!test_have_codegen(context)) {
        printf("skipped: no code generation\n");
        opjit_context_destroy(context);
        return;
    }
    opjit_kernel *const kernel = compile(s, context, OPJIT_LEVEL_AUTO);
    opjit_kernel *loaded;
    const float ones[FLOATS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const void *image, *const constants[] = { ones };
    uint64_t bytes;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    const uint32_t count = info.buffer_count - info.inputs - info.outputs;
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &image, &bytes, NULL), OPJIT_OK);
    opjit_context *const other = begin(other_folder, &c);
    ck_assert_msg(opjit_kernel_load(other, image, bytes, constants, count, &loaded, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    expect(s, loaded, OPJIT_LEVEL_QUICK, false);
    ck_assert_uint_eq(c.compiles, 0);
    opjit_kernel_release(loaded);
    opjit_context_destroy(other);
}
END_TEST

/* NO_CACHE stores neither version on disk. */
START_TEST(nothing_is_kept_unasked)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    counts c;
    opjit_context *const context = begin(folder, &c);

    options.flags = OPJIT_COMPILE_NO_CACHE;
    if (!test_have_codegen(context)) {
        printf("skipped: no code generation\n");
    } else {
        opjit_kernel *const kernel = compile_operator(context, &options);
        ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
        expect(&subjects[0], kernel, OPJIT_LEVEL_PEAK, false);
        ck_assert_uint_eq(files(), 0);
        opjit_kernel_release(kernel);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("fe.disk");
    TCase *const tcase = tcase_create("disk");
    SRunner *const runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, peak_versions_are_kept, 0, (int)(sizeof subjects / sizeof *subjects));
    tcase_add_loop_test(tcase, peak_versions_have_one_content, 0, (int)(sizeof subjects / sizeof *subjects));
    tcase_add_loop_test(tcase, images_are_loaded, 0, (int)(sizeof subjects / sizeof *subjects));
    tcase_add_test(tcase, nothing_is_kept_unasked);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
