/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_random.c - random functions in value form, through all passes and codegen, compared with the interpreter's
 * run of the value form: tests how the parts work together. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <stdio.h>

#include "tests/support/ir_samples.h"

static const char *const targets[] = { "cpu:x86-64-v1",
                                       "cpu:x86-64-v2",
                                       "cpu:x86-64-v3",
                                       "cpu:x86-64-v3,l2=1024,l3=0",
                                       "cpu:aarch64",
                                       "cpu:aarch64+sve",
                                       "cpu:aarch64+sve,vec=32",
                                       "cpu:aarch64+sve,vec=64",
                                       "cpu:rv64gc",
                                       "cpu:rv64gc+zba+zbb",
                                       "cpu:rv64gcv",
                                       "cpu:rv64gcv,vec=32",
                                       "cpu:rv64gcv+zbb,vec=64",
                                       "cpu:aarch64,l2=1024,l3=0",
                                       "cpu:rv64gcv,l2=1024,l3=0" };
enum { TARGETS = sizeof(targets) / sizeof(targets[0]) };

typedef struct memory {
    harness_buffer buffers[HARNESS_TENSORS], shared, scratch;
    void *slots[HARNESS_TENSORS];
} memory;

static void fill(const ir_func *f, memory *m, bool at_end, uint64_t seed)
{
    test_random r;
    test_random_init(&r, seed, 9, 9);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT)
            continue;
        m->buffers[t] = harness_buffer_new(tensor->bytes, at_end);
        harness_fill(m->buffers[t].data, tensor->bytes, tensor->type, &r);
        m->slots[tensor->slot] = m->buffers[t].data;
        if (tensor->alias)
            m->slots[tensor->slot] = m->buffers[tensor->alias].data;
    }
    m->shared = harness_buffer_new(64 + (f->shared_size + 63) / 64 * 64, at_end);
    m->scratch = harness_buffer_new(64 + (f->scratch_size + 63) / 64 * 64, at_end);
}

static void release(memory *m)
{
    for (uint32_t t = 0; t < HARNESS_TENSORS; t++)
        if (m->buffers[t].data)
            harness_buffer_free(&m->buffers[t]);
    harness_buffer_free(&m->shared);
    harness_buffer_free(&m->scratch);
}

/* Runs all stages, each in two pieces split at a multiple of its grain.  False: the emulator gave up. */
static bool run_compiled(const ir_func *f, const harness_kernel *k, const memory *m, const uint64_t *params,
                         test_random *r, const char *what)
{
    const harness_call call = { m->slots, m->shared.data, m->scratch.data, m->shared.bytes, m->scratch.bytes };
    harness_run run = { .what = what };
    memcpy(run.params, params, sizeof(run.params));
    uint32_t stage = 0;
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next, stage++) {
        const uint64_t extent = ir_at(f, ir_operand(f, s, 1))->imm, grain = ir_at(f, s)->imm ? ir_at(f, s)->imm : 1;
        uint64_t cut = test_random_below(r, extent + 1) / grain * grain;
        for (uint32_t half = 0; half < 2; half++) {
            run.begin = half ? cut : 0;
            run.end = half ? extent : cut;
            if (!harness_run_stage(f, k, &run, stage, &call))
                return false;
        }
    }
    return true;
}

static void check_case(test_random *r, uint64_t number)
{
    ir_sample s = { .rank = 1 };
    ir_func value, f;
    opjit_error error = { .status = OPJIT_OK };
    rt_target target;
    memory want = { .slots = { NULL } }, got = { .slots = { NULL } };
    uint64_t params[8] = { 0 };
    char what[80];
    ir_sample_random(r, 3000, &s);
    const char *text = targets[test_random_below(r, TARGETS)];
    const uint32_t level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_chance(r, 30);
    snprintf(what, sizeof(what), "case %llu, kind %d, %s, %s, level %u", (unsigned long long)number, s.kind,
             opjit_ir_type_name(s.type), text, level);
    ck_assert(opjit_rt_target_parse(text, &target, NULL) == OPJIT_OK);
    ck_assert(ir_sample_build(&s, &opjit_rt_default_allocator, &value, &error) == OPJIT_OK);
    ck_assert(opjit_ir_copy(&value, &f, &error) == OPJIT_OK);
    const ir_pass_env env = { .target = &target };
    ck_assert_msg(opjit_ir_run_passes(&f, &env, IR_EXPANDED, &error) == OPJIT_OK, "%s: %s", what, error.message);
    ck_assert_msg(opjit_ir_layout(&f, &error) == OPJIT_OK, "%s: %s", what, error.message);
    ir_sample_params(&s, params);
    const bool at_end = test_random_chance(r, 50);
    fill(&value, &want, at_end, number);
    fill(&f, &got, at_end, number);
    const ir_run run = {
        .buffers = want.slots, .params = params, .shared = want.shared.data, .scratch = want.scratch.data
    };
    ck_assert_msg(opjit_ir_interpret(&value, &run, &error) == OPJIT_OK, "%s: %s", what, error.message);
    harness_kernel k = harness_compile(&f, text, level);
    const bool ran = test_can_run(text, false) && run_compiled(&f, &k, &got, params, r, what);
    const harness_run how = { .any_nan = true, .what = what };
    for (uint32_t t = 1; t < value.tensor_count && ran; t++)
        if (want.buffers[t].data)
            harness_compare(&value, &how, t, want.buffers[t].data, got.buffers[t].data);
    harness_unload(&k);
    release(&want);
    release(&got);
    opjit_ir_free(&value);
    opjit_ir_free(&f);
}

START_TEST(random_functions)
{
    const test_cases cases = test_cases_init("cg.random", 1500);
    for (uint64_t i = cases.first; i < cases.end; i++) {
        test_random r;
        test_random_init(&r, cases.seed, 0, i);
        check_case(&r, i);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.random");
    TCase *t = tcase_create("random");
    tcase_add_test(t, random_functions);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
