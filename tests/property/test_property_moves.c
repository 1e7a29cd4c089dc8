/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_moves.c - thousands of random descriptors of each operator that moves elements: every type, any legal
 * layout, index tensors of every type with numbers inside and outside.  Whichever way the kernel is made and run, the
 * whole memory of every output equals the reference's bit for bit, and no input has changed.  To run one case of a
 * failure again: OPJIT_SEED=<seed> OPJIT_CASE=<number> ./property_moves; OPJIT_CASES for longer runs. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/emulated.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/moves.h"

static const test_mode interpreted[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "interpreted, pieces", .flags = OPJIT_COMPILE_INTERPRET, .how = TEST_PIECES },
};

static const test_mode compiled[] = {
    { .name = "compiled" },
    { .name = "compiled, v1", .target = "cpu:x86-64-v1" },
    { .name = "compiled, v2", .target = "cpu:x86-64-v2" },
    { .name = "compiled, v3 with small caches", .target = "cpu:x86-64-v3,l1=1024,l2=2048,l3=4096" },
    { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },
    { .name = "compiled, pieces", .how = TEST_PIECES },
    { .name = "compiled, threads", .how = TEST_THREADS },
};

typedef struct run {
    const move_case *c;
    const test_mode *mode;
    opjit_operator *op;
    opjit_kernel *kernel;
    test_buffer inputs[MOVE_TENSORS], outputs[MOVE_TENSORS];
    char message[512];
    bool excused; /* by the emulator */
} run;

/* --- one case ----------------------------------------------------------------------------------------------------- */
static bool failed(run *s, const char *what, opjit_status status, const char *text)
{
    snprintf(s->message, sizeof s->message, "%s: %s: %s", what, opjit_status_name(status), text);
    return false;
}

static bool make_kernel(run *s, opjit_context *context)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_status status = opjit_operator_create(context, &s->c->op, &s->op, &error);
    if (status != OPJIT_OK)
        return failed(s, "create", status, error.message);
    options.flags = s->mode->flags;
    options.level = s->mode->level;
    options.target = s->mode->target;
    status = test_compile_operator(context, s->op, &options, &s->kernel, &error);
    return status == OPJIT_OK || failed(s, "compile", status, error.message);
}

static bool make_buffers(run *s, test_random *r)
{
    const move_case *c = s->c;
    bool made = true;
    for (uint32_t i = 0; i < c->input_count; i++)
        made = made && test_buffer_create(&s->inputs[i], r, c->inputs[i].bytes, c->inputs[i].alignment);
    for (uint32_t i = 0; i < c->output_count; i++)
        made = made && test_buffer_create(&s->outputs[i], r, c->outputs[i].bytes, c->outputs[i].alignment);
    if (made && c->index_input >= 0) {
        move_case_indices(r, c, s->inputs[c->index_input].data);
        test_buffer_expect_unchanged(&s->inputs[c->index_input]);
    }
    for (uint32_t i = 0; made && move_case_computes(c) && i < c->input_count; i++) {
        move_case_tame(c, i, s->inputs[i].data);
        test_buffer_expect_unchanged(&s->inputs[i]);
    }
    return made || failed(s, "buffers", OPJIT_OUT_OF_MEMORY, "");
}

static bool call(run *s, test_random *r)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_binding bindings[2 * MOVE_TENSORS];
    opjit_error error = { 0 };
    test_executor executor;
    for (uint32_t i = 0; i < s->c->input_count; i++)
        bindings[call.binding_count++] = (opjit_binding){ s->inputs[i].data, s->inputs[i].bytes };
    for (uint32_t i = 0; i < s->c->output_count; i++)
        bindings[call.binding_count++] = (opjit_binding){ s->outputs[i].data, s->outputs[i].bytes };
    call.bindings = bindings;
    test_executor_init(&executor, r, s->mode->how == TEST_THREADS);
    if (s->mode->how != TEST_CALL)
        call.executor = &executor.executor;
    const opjit_status status = opjit_kernel_call(s->kernel, &call, &error);
    s->excused = test_excused(s->mode, status);
    return status == OPJIT_OK || failed(s, "call", status, error.message);
}

static bool compare(run *s)
{
    const void *inputs[MOVE_TENSORS];
    void *outputs[MOVE_TENSORS];
    int64_t at;
    for (uint32_t i = 0; i < s->c->input_count; i++) {
        inputs[i] = s->inputs[i].data;
        if (!test_buffer_compare(&s->inputs[i], &at)) {
            snprintf(s->message, sizeof s->message, "input %u was changed at byte %" PRId64, i, at);
            return false;
        }
    }
    for (uint32_t i = 0; i < s->c->output_count; i++)
        outputs[i] = s->outputs[i].expected;
    move_case_reference(s->c, inputs, outputs);
    for (uint32_t i = 0; i < s->c->output_count; i++) {
        if (!test_buffer_compare(&s->outputs[i], &at)) {
            snprintf(s->message, sizeof s->message, "output %u of %zu bytes is wrong at byte %" PRId64, i,
                     s->outputs[i].bytes, at);
            return false;
        }
    }
    return true;
}

static bool check(run *s, opjit_context *context, test_random *r)
{
    const bool passed = make_kernel(s, context) && make_buffers(s, r) && call(s, r) && compare(s);
    opjit_kernel_release(s->kernel);
    opjit_operator_release(s->op);
    for (uint32_t i = 0; i < MOVE_TENSORS; i++) {
        test_buffer_destroy(&s->inputs[i]);
        test_buffer_destroy(&s->outputs[i]);
    }
    return passed;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */
static bool is_interleaved(const move_case *c)
{
    for (uint32_t i = 0; i < c->output_count; i++)
        if (c->outputs[i].interleaved)
            return true;
    return false;
}

static void run_cases(DML_OPERATOR_TYPE type, const char *how, uint64_t count, const test_mode *own, size_t own_count)
{
    size_t mode_count;
    const test_mode *modes = test_modes(own, own_count, &mode_count);
    opjit_context *context = test_context_create();
    char title[96];
    move_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    snprintf(title, sizeof title, "%s %s", move_operator_name(type), how);
    if ((modes[0].flags & OPJIT_COMPILE_INTERPRET) != 0 || test_have_codegen(context)) {
        const test_cases cases = test_cases_init(title, count);
        for (uint64_t n = cases.first; n < cases.end; n++) {
            test_random r;
            test_random_init(&r, cases.seed, (uint64_t)type, n);
            move_case_random(&r, type, 1500, c);
            run s = { .c = c, .mode = &modes[test_random_below(&r, mode_count)] };
            if (check(&s, context, &r) || s.excused || (is_interleaved(c) && strstr(s.message, "OPJIT_LIMIT") != NULL))
                continue;
            move_case_print(stderr, c);
            ck_abort_msg("%s: OPJIT_SEED=0x%" PRIx64 " OPJIT_CASE=%" PRIu64 ", mode %s: %s", title, cases.seed, n,
                         s.mode->name, s.message);
        }
    }
    free(c);
    opjit_context_destroy(context);
}

START_TEST(interpreted_results)
{
    run_cases(move_operators[_i], "interpreted", 200, interpreted, sizeof interpreted / sizeof *interpreted);
}
END_TEST

START_TEST(compiled_results)
{
    run_cases(move_operators[_i], "compiled", 250, compiled, sizeof compiled / sizeof *compiled);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.moves");
    TCase *cases = tcase_create("random descriptors");
    tcase_add_loop_test(cases, interpreted_results, 0, MOVE_OPERATOR_COUNT);
    tcase_add_loop_test(cases, compiled_results, 0, MOVE_OPERATOR_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
