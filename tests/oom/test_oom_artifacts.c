/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_artifacts.c - artifacts and libraries without memory (oom_rows.h). */
#define _POSIX_C_SOURCE 200809L
#include <opjit/cache.h>

#include "tests/oom/oom_rows.h"

/* Adds the operator and a graph, and makes outputs first to last. */
static opjit_status artifact_outputs(world *w, opjit_artifact_kind first, opjit_artifact_kind last, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact_options targets = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact = (opjit_artifact *)w;
    opjit_status status;
    const void *data;
    uint64_t bytes;

    targets.targets = (const char *[]){ "cpu:x86-64-v2", "cpu:x86-64-v3" };
    targets.target_count = 2;
    targets.flags = first == OPJIT_ARTIFACT_WEIGHTS ? OPJIT_ARTIFACT_WEIGHTS_APART : 0;
    options.name = "band";
    options.late = late;
    options.late_count = 2;
    options.level = OPJIT_LEVEL_QUICK;
    status = opjit_artifact_create(w->context, &targets, &artifact, error);
    check_output(status, artifact);
    if (status == OPJIT_OK)
        status = opjit_artifact_add_operator(artifact, w->op, &options, error);
    ck_assert_uint_eq(opjit_artifact_count(artifact), status == OPJIT_OK);
    options.name = "graph";
    options.late_count = 0;
    if (status == OPJIT_OK)
        status = with_graph(w, 5000, &options, NULL, artifact, NULL, error);
    for (opjit_artifact_kind kind = first; status == OPJIT_OK && kind <= last; kind++) {
        status = opjit_artifact_get(artifact, 1, kind, &data, &bytes, error);
        check_output(status, data);
    }
    opjit_artifact_destroy(artifact);
    return status;
}

static opjit_status artifact_header(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_HEADER, OPJIT_ARTIFACT_HEADER, error);
}
static opjit_status artifact_texts(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_IR, OPJIT_ARTIFACT_JSON, error);
}
static opjit_status artifact_weights(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_WEIGHTS, OPJIT_ARTIFACT_WEIGHTS, error);
}
static opjit_status artifact_libraries(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_ARCHIVE, OPJIT_ARTIFACT_LIBRARY_HEADER, error);
}

/* A library's file, made once with an allocator that never fails. */
static const char *library_path(void)
{
    static char path[] = "/tmp/opjit-oom-XXXXXX";
    static bool made;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context;
    opjit_operator *op;
    opjit_artifact *artifact;
    const void *data;
    uint64_t bytes;
    FILE *file;

    if (made)
        return path;
    options.name = "band";
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_create(context, NULL, &artifact, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes, NULL), OPJIT_OK);
    file = fdopen(mkstemp(path), "wb");
    ck_assert(file != NULL && fwrite(data, 1, (size_t)bytes, file) == bytes && fclose(file) == 0);
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    made = true;
    return path;
}

static opjit_status library(world *w, opjit_error *error)
{
    const long before = countdown;
    opjit_library *opened = (opjit_library *)w;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    countdown = 0;
    const char *path = library_path();
    countdown = before;
    status = opjit_library_open(w->context, path, &opened, error);
    check_output(status, opened);
    if (status == OPJIT_OK) {
        status = opjit_library_find(opened, "band", &kernel, error);
        check_output(status, kernel);
    }
    opjit_library_close(opened);
    opjit_kernel_release(kernel);
    return status;
}

/* clang-format off */
static const oom_row rows[] = {
    { "artifact, header", artifact_header, false },
    { "artifact, texts", artifact_texts, false },
    { "artifact, weights", artifact_weights, false },
    { "artifact, libraries", artifact_libraries, true },
    { "library_open, find", library, true },
};
/* clang-format on */

START_TEST(fails_one_by_one)
{
    oom_check(&rows[_i], _i == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.artifacts");
    TCase *tcase = tcase_create("oom");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 240);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, fails_one_by_one, 0, sizeof rows / sizeof *rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
