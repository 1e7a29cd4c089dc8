/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_front.c - LLVM's backend is in a library of its own: where it is missing, kernels that need it are refused
 * with its name, and others are made; where it is there, a process makes both, in any order, and the same code. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opjit/graph_ops.h>

#include "frontend/frontend.h"

enum { ROWS = 24, COLUMNS = 40 };

static char library[512], backend[512]; /* the libraries that were built */

static bool writes(void)
{
    rt_target t;
    opjit_rt_target_host(&t);
    return t.arch == RT_ARCH_X86_64 && t.level >= 3;
}

/* A softmax, or what LLVM has to read a text for, of a row each. */
static opjit_status compile(const char *path, bool quick, bool text, float out[ROWS][COLUMNS], opjit_error *error)
{
    const uint32_t sizes[2] = { ROWS, COLUMNS };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_compile_options how = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_kernel *kernel = NULL;
    opjit_graph *g = NULL;
    float in[ROWS][COLUMNS];
    const opjit_binding bindings[] = { { in, sizeof in }, { out, sizeof in } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };

    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i / COLUMNS][i % COLUMNS] = (float)(i * 7 % 31) / 3 - 4;
    options.codegen_path = path;
    how.level = quick ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
    how.flags = OPJIT_COMPILE_NO_CACHE;
    ck_assert_int_eq(opjit_context_create(&options, &context, error), OPJIT_OK);
    ck_assert_int_eq(opjit_graph_create(context, &g, error), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    const opjit_tensor s = opjit_graph_softmax(g, x, 1);
    opjit_graph_output(g, "y", text ? opjit_graph_modulus_truncate(g, x, s) : s);
    opjit_status status = opjit_graph_compile(g, &how, &kernel, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
    return status;
}

static bool has_loaded(const char *name)
{
    char line[1024];
    bool found = false;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, name) != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* Kernels that need no backend, one that does, and again one that does not. */
START_TEST(loaded_when_needed)
{
    float quick[ROWS][COLUMNS], other[ROWS][COLUMNS];
    opjit_error error;

    ck_assert_msg(compile(library, true, false, quick, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(has_loaded("libopjit-codegen-llvm.so"), !writes());
    ck_assert_msg(compile(library, _i == 0, _i == 0, other, &error) == OPJIT_OK, "%s", error.message);
    ck_assert(has_loaded("libopjit-codegen-llvm.so"));
    ck_assert_msg(compile(library, true, false, other, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(memcmp(quick, other, sizeof quick), 0);
}
END_TEST

START_TEST(missing)
{
    char folder[] = "/tmp/opjit-front-XXXXXX", path[128], command[1200];
    float out[ROWS][COLUMNS];
    opjit_error error = { 0 };

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libopjit-codegen.so", folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", library, path);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(compile(path, true, false, out, &error), writes() ? OPJIT_OK : OPJIT_UNAVAILABLE);
    ck_assert_int_eq(compile(path, false, false, out, &error), OPJIT_UNAVAILABLE);
    ck_assert_msg(strstr(error.message, "libopjit-codegen-llvm.so") != NULL, "%s", error.message);
    ck_assert_int_eq(compile(path, true, true, out, &error), OPJIT_UNAVAILABLE);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    const char *const named = getenv("OPJIT_CODEGEN");
    if (named == NULL || strrchr(named, '/') == NULL)
        return 77;
    snprintf(library, sizeof library, "%s", named);
    snprintf(backend, sizeof backend, "%.*slibopjit-codegen-llvm.so", (int)(strrchr(named, '/') + 1 - named), named);
    if (access(backend, F_OK) != 0 || getenv("OPJIT_OUT_OF_PROCESS") != NULL || getenv("OPJIT_VERIFY") != NULL)
        return 77; /* one library has all */
    Suite *suite = suite_create("fe.front");
    TCase *tcase = tcase_create("libraries");
    tcase_add_loop_test(tcase, loaded_when_needed, 0, 2);
    tcase_add_test(tcase, missing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
