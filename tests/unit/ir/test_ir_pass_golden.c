/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_pass_golden.c - each pass on the files of golden/<pass>: the function before the line "; ---", and after it
 * the text that the pass must leave, and leaves again when it runs twice.  A first line "; target TEXT" sets the
 * target, a line "; tiles R C BR BC [FEW]" sizes of tiles and blocks of products of matrices, and rows that are few.
 * OPJIT_UPDATE_GOLDEN=1 rewrites what follows the line; the difference is to be reviewed.  The files of a pass take all
 * of its steps. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/golden.h"
#include "tests/support/ir_passes.h"

/* Whether the text says how products of matrices are cut. */
static bool parse_tiles(const char *text, ir_tiles *tiles)
{
    const char *line = strstr(text, "; tiles ");
    *tiles = (ir_tiles){ 0 };
    return line != NULL && sscanf(line, "; tiles %u %u %u %u %u %u %u %u %u %u", &tiles->rows, &tiles->columns,
                                  &tiles->block_rows, &tiles->block_columns, &tiles->few_rows, &tiles->share,
                                  &tiles->together, &tiles->across, &tiles->split, &tiles->by_rows) >= 4;
}

static void parse_target(const char *text, rt_target *target)
{
    char name[RT_TARGET_TEXT_SIZE] = "cpu:x86-64-v3";
    opjit_error error = { 0 };
    sscanf(text, "; target %159[^\n]", name);
    ck_assert_msg(opjit_rt_target_parse(name, target, &error) == OPJIT_OK, "%s", error.message);
}

/* Runs the pass on the file's function, verified before and after, and prints the result, which running it again does
 * not change. */
static void run_pass(const char *path, const ir_pass *pass, const char *text, size_t size, uint32_t *steps,
                     rt_bytes *out)
{
    ir_func f;
    rt_target target;
    opjit_error error = { 0 };
    parse_target(text, &target);
    ir_tiles tiles;
    const ir_pass_env env = { .target = &target, .tiles = parse_tiles(text, &tiles) ? &tiles : NULL, .verify = true,
                              .once = strstr(text, "; once\n") != NULL };
    ck_assert_msg(opjit_ir_parse(text, size, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s: %s", path,
                  error.message);
    ck_assert_msg((int)f.phase + 1 == (int)pass->leaves, "%s: the function is not what pass %s gets", path, pass->name);
    ck_assert_msg(opjit_ir_run_passes(&f, &env, pass->leaves, &error) == OPJIT_OK, "%s: %s", path, error.message);
    for (uint32_t i = 0; i < IR_STEP_COUNT; i++)
        steps[i] += f.steps[i];
    rt_bytes again;
    ir_passes_text(&f, out);
    ck_assert_msg(pass->run(&f, &env, &error) == OPJIT_OK, "%s, again: %s", path, error.message);
    ck_assert_msg(strcmp((char *)out->data, ir_passes_text(&f, &again)) == 0, "%s, again, leaves\n%.4000s", path,
                  (char *)again.data);
    opjit_rt_bytes_free(&again);
    opjit_ir_free(&f);
}

static void check_file(const char *path, const ir_pass *pass, uint32_t *steps)
{
    char *text = golden_read(path), what[64];
    rt_bytes output;

    run_pass(path, pass, text, golden_input_size(text), steps, &output);
    snprintf(what, sizeof what, "pass %s leaves", pass->name);
    golden_check(path, text, (const char *)output.data, what);
    opjit_rt_bytes_free(&output);
    free(text);
}

START_TEST(golden)
{
    const ir_pass *pass = &opjit_ir_passes[_i];
    const char *data = getenv("OPJIT_TEST_DATA");
    char pattern[1024];
    uint32_t steps[IR_STEP_COUNT] = { 0 };
    glob_t files;
    snprintf(pattern, sizeof pattern, "%s/golden/%s/*.ir", data != NULL ? data : "tests", pass->name);
    ck_assert_msg(glob(pattern, 0, NULL, &files) == 0, "no file matches %s", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_file(files.gl_pathv[i], pass, steps);
    globfree(&files);
    for (uint32_t i = 0; i < IR_STEP_COUNT; i++)
        ck_assert_msg((steps[i] != 0) == (opjit_ir_steps[i].leaves == pass->leaves), "pass %s, step %s: %u times",
                      pass->name, opjit_ir_steps[i].name, steps[i]);
}
END_TEST

int main(void)
{
    int passes = 0;
    while (opjit_ir_passes[passes].name != NULL)
        passes++;
    Suite *suite = suite_create("ir.pass_golden");
    TCase *tcase = tcase_create("passes");
    tcase_add_loop_test(tcase, golden, 0, passes);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
