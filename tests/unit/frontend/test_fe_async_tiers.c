/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_async_tiers.c - kernels that become better while they are called: interpreted first, then quick, then peak
 * code, with late parameters as well. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/cache.h>

#include "tests/support/graph_case.h"
#include "tests/unit/frontend/async_jobs.h"

/* --- tiers -------------------------------------------------------------------------------------------------------- */

START_TEST(interpreted_until_the_code_is_there)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_operator *op = eye(4);
    opjit_async_desc desc = desc_of(op, &late, NULL);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel, *same, *plain;
    opjit_cache_key key, other;
    opjit_level level;
    opjit_job *job;
    if (!have_codegen)
        return;
    options.level = _i == 0 ? OPJIT_LEVEL_AUTO : OPJIT_LEVEL_PEAK;
    desc.options = &options;
    desc.first = OPJIT_TIER_INTERPRETED;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 4) && flags_of(kernel, NULL) == OPJIT_KERNEL_INTERPRETED);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK); /* nothing to be done */
    run_late(&t);
    ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0);
    ck_assert_int_eq(level, _i == 0 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK);
    ck_assert_int_eq(opjit_job_wait(job, &same, NULL), OPJIT_OK);
    ck_assert_ptr_eq(kernel, same);
    ck_assert_int_eq(opjit_compile_operator(context, op, &options, &plain, NULL), OPJIT_OK); /* its code is cached */
    ck_assert_int_eq(opjit_kernel_get_cache_key(kernel, &key, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_cache_key(plain, &other, NULL), OPJIT_OK);
    ck_assert(key.hi == other.hi && key.lo == other.lo && plain != kernel);
    opjit_kernel_release(plain);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0 && level == OPJIT_LEVEL_PEAK);
    opjit_job_release(job);
    opjit_operator_release(op);
    opjit_kernel_release(same);
    opjit_context_destroy(context);
    context = NULL;
    ck_assert(is_eye(kernel, 4));
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(quick_until_peak_is_there)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_operator *op = eye(4);
    opjit_async_desc desc = desc_of(op, &late, NULL);
    opjit_kernel *kernel;
    opjit_level level;
    opjit_job *job;
    if (!have_codegen)
        return;
    desc.first = OPJIT_TIER_QUICK;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0 && level == OPJIT_LEVEL_QUICK);
    if (_i == 0) {
        run_late(&t);
        ck_assert_int_eq(opjit_job_wait(job, NULL, NULL), OPJIT_OK);
    } else {
        opjit_job_cancel(job);
        run_late(&t);
    }
    ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0);
    ck_assert_int_eq(level, _i == 0 ? OPJIT_LEVEL_PEAK : OPJIT_LEVEL_QUICK);
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    opjit_operator_release(op);
}
END_TEST

/* Called by several threads from before the code is there until after it is. */
typedef struct caller {
    opjit_kernel *kernel;
    float input[COUNT], expected[COUNT];
    atomic_bool stop;
    atomic_int calls;
} caller;

static void *call_all_the_time(void *user)
{
    caller *c = user;
    float out[COUNT];
    const opjit_binding bindings[] = { { c->input, sizeof c->input }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    while (!atomic_load(&c->stop)) {
        memset(out, 0xff, sizeof out);
        broken += opjit_kernel_call(c->kernel, &call, NULL) != OPJIT_OK || memcmp(out, c->expected, sizeof out) != 0;
        atomic_fetch_add(&c->calls, 1);
    }
    return NULL;
}

/* A causal softmax with a large constant added first, every byte of whose description is gone when it is compiled. */
static opjit_job *submit_softmax(opjit_tier first, const opjit_async_executor *executor, float *constant)
{
    const uint32_t axis = 1;
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { &tensor, &tensor, &tensor };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, &axis };
    opjit_async_desc desc = OPJIT_ASYNC_DESC_INIT;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    char name[] = "softly";
    opjit_error error;
    opjit_job *job;
    graph_case g;
    graph_begin(&g, context, 8);
    graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_ADD, &add, "add");
    graph_operator(&g, DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax, "softmax");
    graph_constant(&g, constant, 5000, "bias");
    graph_input(&g, 0, 0, 0);
    graph_edge(&g, 2, 0, 0, 1);
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, 1, 0, 0);
    options.name = name;
    options.flags = have_codegen ? 0 : OPJIT_COMPILE_INTERPRET;
    desc.graph = &g.desc;
    desc.options = &options;
    desc.executor = executor;
    desc.first = (uint32_t)first;
    ck_assert_msg(opjit_compile_async(context, &desc, &job, &error) == OPJIT_OK, "%s", error.message);
    memset(g.nodes, 0xee, g.capacity * sizeof *g.nodes);
    memset(g.constants, 0xee, g.capacity * sizeof *g.constants);
    memset(g.edges, 0xee, g.capacity * sizeof *g.edges);
    memset(g.intermediates, 0xee, g.capacity * sizeof *g.intermediates);
    memset(g.inputs, 0xee, g.capacity * sizeof *g.inputs);
    memset(name, 'x', sizeof name - 1);
    memset(constant, 0xee, 5000);
    graph_end(&g);
    return job;
}

START_TEST(swapped_while_it_is_called)
{
    static caller c;
    static float constant[5000 / sizeof(float)];
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    pthread_t threads[THREADS];
    opjit_kernel *whole;
    opjit_job *job;
    const opjit_binding bindings[] = { { c.input, sizeof c.input }, { c.expected, sizeof c.expected } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            c.input[i] = (float)((i * 37) % 19) / 7;
            constant[i] = (float)(i % 5);
        }
        job = submit_softmax(round == 0 ? OPJIT_TIER_INTERPRETED : OPJIT_TIER_NONE, &late, constant);
        if (round == 0) {
            ck_assert_int_eq(opjit_job_get_kernel(job, &c.kernel, NULL), OPJIT_OK);
            ck_assert_int_eq(opjit_kernel_call(c.kernel, &call, NULL), OPJIT_OK);
            for (int i = 0; i < THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, call_all_the_time, &c), 0);
            wait_until(&c.calls, THREADS);
            run_late(&t);
            wait_until(&c.calls, atomic_load(&c.calls) + 100 * THREADS);
            atomic_store(&c.stop, true);
            for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
            ck_assert_int_eq(broken, 0);
            ck_assert_int_eq(opjit_kernel_get_info(c.kernel, &info, NULL), OPJIT_OK);
            ck_assert_str_eq(info.name, "softly");
            ck_assert_uint_eq(info.flags, have_codegen ? 0 : OPJIT_KERNEL_INTERPRETED);
        } else { /* the same without a first tier */
            float out[COUNT];
            const opjit_binding others[] = { bindings[0], { out, sizeof out } };
            ck_assert_int_eq(opjit_job_wait(job, &whole, NULL), OPJIT_OK);
            call.bindings = others;
            ck_assert_int_eq(opjit_kernel_call(whole, &call, NULL), OPJIT_OK);
            ck_assert_int_eq(memcmp(out, c.expected, sizeof out), 0);
            opjit_kernel_release(whole);
            run_late(&t);
        }
        opjit_job_release(job);
    }
    opjit_kernel_release(c.kernel);
}
END_TEST

/* Late parameters are named by the caller's strings. */
START_TEST(late_parameters)
{
    tasks t = { .count = 0 };
    const opjit_async_executor executor = { &t, submit_late };
    opjit_operator *op = eye(1);
    opjit_async_desc desc = desc_of(op, &executor, NULL);
    opjit_compile_options options = *desc.options;
    char field[] = "Value";
    const char *late[] = { field };
    const uint64_t value = 0x40a00000; /* 5.0f */
    float out[COUNT];
    const opjit_binding binding = { out, sizeof out };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_kernel *kernel;
    opjit_job *job;
    options.late = late;
    options.late_count = 1;
    desc.options = &options;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, NULL), OPJIT_OK);
    memset(field, 'x', sizeof field - 1);
    late[0] = NULL;
    opjit_operator_release(op);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, NULL), OPJIT_OK);
    call.bindings = &binding;
    call.binding_count = 1;
    call.params = &value;
    call.param_count = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert(out[0] == 5 && out[1] == 0);
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    run_late(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.async.tiers");
    TCase *tcase = tcase_create("tiers");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, interpreted_until_the_code_is_there, 0, 2);
    tcase_add_loop_test(tcase, quick_until_peak_is_there, 0, 2);
    tcase_add_test(tcase, swapped_while_it_is_called);
    tcase_add_test(tcase, late_parameters);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
