/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_pass_random.c - the pipeline on random functions: after each pass the interpreter writes the same bytes,
 * nothing between the elements is touched, the verifier accepts, and running the pass again changes nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/ir_passes.h"
#include "tests/support/ir_samples.h"

enum { GUARD = 64 };

typedef struct run_memory {
    uint8_t *input, *output, *expected;
    size_t input_bytes, output_bytes; /* guards included */
} run_memory;

static uint64_t stage_extent(const ir_func *f, ir_ref stage)
{
    return (uint64_t)ir_index_value(f, ir_operand(f, stage, 1));
}

/* Runs every stage in two pieces, the second one first. */
static void interpret(const ir_func *f, const ir_sample *s, const run_memory *m, uint8_t *output)
{
    uint64_t params[4];
    opjit_error error = { 0 };
    void *buffers[2] = { s->has_input ? (s->in_place ? output : m->input) + GUARD : output + GUARD, output + GUARD };
    ir_run run = { .buffers = buffers, .params = params };
    ir_sample_params(s, params);
    if (f->phase < IR_PLACED) {
        ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
        return;
    }
    for (ir_ref stage = f->body; stage != 0; stage = ir_at(f, stage)->next, run.stage++) {
        const uint64_t extent = stage_extent(f, stage);
        run.begin = extent / 2;
        run.end = extent;
        ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
        run.begin = 0;
        run.end = extent / 2;
        ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
    }
}

static void check_stage(const ir_func *f, const ir_sample *s, const run_memory *m, const uint8_t *before,
                        const char *pass)
{
    opjit_error error = { 0 };
    rt_bytes text;
    memcpy(m->output, before, m->output_bytes);
    interpret(f, s, m, m->output);
    for (size_t i = 0; i < m->output_bytes; i++)
        ck_assert_msg(m->output[i] == m->expected[i], "after %s byte %zu is %02x and should be %02x:\n%s", pass,
                      i - GUARD, m->output[i], m->expected[i], ir_passes_text(f, &text));
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "after %s: %s:\n%s", pass, error.message,
                  ir_passes_text(f, &text));
}

static void check_idempotent(ir_func *f, const ir_pass *pass, const ir_pass_env *env)
{
    rt_bytes once, twice;
    opjit_error error = { 0 };
    ir_passes_text(f, &once);
    ck_assert_msg(pass->run(f, env, &error) == OPJIT_OK, "%s again: %s", pass->name, error.message);
    ir_passes_text(f, &twice);
    ck_assert_msg(strcmp((char *)once.data, (char *)twice.data) == 0, "%s is not idempotent:\n%s\n%s", pass->name,
                  (char *)once.data, (char *)twice.data);
    opjit_rt_bytes_free(&once);
    opjit_rt_bytes_free(&twice);
}

static void check_sample(test_random *r, const ir_sample *s, const rt_target *target)
{
    ir_func f;
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target };
    run_memory m = { .input_bytes = ir_sample_bytes(s, s->in_strides) + 2 * GUARD,
                     .output_bytes = ir_sample_bytes(s, s->out_strides) + 2 * GUARD };
    m.input = malloc(m.input_bytes);
    m.output = malloc(m.output_bytes);
    m.expected = malloc(m.output_bytes);
    uint8_t *before = malloc(m.output_bytes);
    ck_assert(m.input && m.output && m.expected && before);
    test_random_fill(r, m.input, m.input_bytes);
    test_random_fill(r, before, m.output_bytes);
    memcpy(m.expected, before, m.output_bytes);
    ck_assert_msg(ir_sample_build(s, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s", error.message);
    interpret(&f, s, &m, m.expected);
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= opjit_ir_last_pass(target);
         pass++) {
        ck_assert_msg(opjit_ir_run_passes(&f, &env, pass->leaves, &error) == OPJIT_OK, "%s", error.message);
        check_stage(&f, s, &m, before, pass->name);
        check_idempotent(&f, pass, &env);
    }
    opjit_ir_free(&f);
    free(m.input);
    free(m.output);
    free(m.expected);
    free(before);
}

START_TEST(random_functions)
{
    static const char *const targets[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v2",
                                           "cpu:x86-64-v3,l2=1024,l3=0", "nvptx:sm_90" };
    const test_cases cases = test_cases_init("ir.pass_random", 400);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        ir_sample s;
        rt_target target;
        opjit_error error = { 0 };
        test_random_init(&r, cases.seed, 0, n);
        ir_sample_random(&r, 3000, &s);
        const char *text = targets[test_random_below(&r, 5)];
        ck_assert_msg(opjit_rt_target_parse(text, &target, &error) == OPJIT_OK, "%s", error.message);
        check_sample(&r, &s, &target);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.pass_random");
    TCase *tcase = tcase_create("random");
    tcase_add_test(tcase, random_functions);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
