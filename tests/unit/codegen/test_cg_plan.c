/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_plan.c - what is chosen for loops, on the files of golden/plan: a scheduled function before the line "; ---",
 * the plan after it.  The first line, "; target TEXT level quick", or peak, says what for.  OPJIT_UPDATE_GOLDEN=1
 * rewrites what comes after the line; the difference is to be reviewed. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/opjit.h>

#include "codegen/codegen.h"
#include "codegen/stores/names.h"
#include "ir/core/internal.h"
#include "tests/support/golden.h"

enum { LEAST_FILES = 20 };

static void plan(const char *path, const char *text, size_t size, rt_bytes *out)
{
    char name[RT_TARGET_TEXT_SIZE], level[8];
    rt_target target;
    opjit_error error = { 0 };
    ir_func f;
    ir_numbers numbers;
    codegen_result result;
    ck_assert_msg(sscanf(text, "; target %159s level %7s", name, level) == 2, "%s: no line with the target", path);
    ck_assert_msg(opjit_rt_target_parse(name, &target, &error) == OPJIT_OK, "%s: %s", path, error.message);
    ck_assert_msg(opjit_ir_parse(text, size, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s: %s", path,
                  error.message);
    f.first_dim = f.param_count > 1 ? 1 : 0; /* parameters are sizes */
    ck_assert_msg(opjit_ir_layout(&f, &error) == OPJIT_OK, "%s: %s", path, error.message);
    ck_assert(opjit_ir_numbers_init(&f, &numbers));
    const ir_func *variant = &f;
    const codegen_request request = { .variants = &variant,
                                      .variant_count = 1,
                                      .target = &target,
                                      .level = strcmp(level, "peak") == 0 ? OPJIT_LEVEL_PEAK : OPJIT_LEVEL_QUICK,
                                      .emit = CODEGEN_PLAN,
                                      .name = "plan",
                                      .node_numbers = numbers.nodes,
                                      .allocator = &opjit_rt_default_allocator };
    ck_assert_msg(opjit_codegen_query(CODEGEN_ABI)->compile(&request, &result, &error) == OPJIT_OK, "%s: %s", path,
                  error.message);
    *out = result.bytes;
    opjit_rt_bytes_zero_end(out);
    ck_assert(!out->failed);
    opjit_ir_numbers_free(&numbers);
    opjit_ir_free(&f);
}

static void check_file(const char *path)
{
    char *text = golden_read(path);
    rt_bytes output;

    plan(path, text, golden_input_size(text), &output);
    golden_check(path, text, (const char *)output.data, "the plan is");
    opjit_rt_bytes_free(&output);
    free(text);
}

static void find_files(glob_t *files)
{
    const char *data = getenv("OPJIT_TEST_DATA");
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%s/golden/plan/*.ir", data != NULL ? data : "tests");
    ck_assert_msg(glob(pattern, 0, NULL, files) == 0, "no file matches %s", pattern);
}

START_TEST(golden)
{
    glob_t files;
    find_files(&files);
    ck_assert_uint_ge(files.gl_pathc, LEAST_FILES);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i]);
    globfree(&files);
}
END_TEST

/* Each strategy has a file: its name after a loop's number. */
START_TEST(every_strategy)
{
    char name[64];
    bool found = false;
    glob_t files;
    find_files(&files);
    snprintf(name, sizeof name, ": %s", opjit_cg_strategy_name((uint32_t)_i));
    for (size_t i = 0; i < files.gl_pathc && !found; i++) {
        char *text = golden_read(files.gl_pathv[i]);
        const char *output = golden_output(text);
        for (const char *at = output != NULL ? strstr(output, name) : NULL; at != NULL && !found;
             at = strstr(at + 1, name))
            found = strchr(",\n", at[strlen(name)]) != NULL;
        free(text);
    }
    globfree(&files);
    ck_assert_msg(found, "no file of golden/plan has a loop with %s", opjit_cg_strategy_name((uint32_t)_i));
}
END_TEST

int main(void)
{
    int strategies = 0;
    while (opjit_cg_strategy_name((uint32_t)strategies) != NULL)
        strategies++;
    Suite *suite = suite_create("cg.plan");
    TCase *tcase = tcase_create("loops");
    tcase_add_test(tcase, golden);
    tcase_add_loop_test(tcase, every_strategy, 0, strategies);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
