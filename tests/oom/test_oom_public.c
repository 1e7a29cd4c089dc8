/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_public.c - public calls without memory: contexts, operators, compiling, calls, the cache, jobs, workers
 * (oom_rows.h).  Graphs and artifacts have tests of their own. */
#define _POSIX_C_SOURCE 200809L
#include <opjit/async.h>
#include <opjit/cache.h>
#include <opjit/ffi.h>

#include "tests/oom/oom_rows.h"

static opjit_status context_create(world *w, opjit_error *error)
{
    opjit_context *context = (opjit_context *)w;
    const opjit_status status = create_context(&context, error);

    check_output(status, context);
    opjit_context_destroy(context);
    return status;
}

static opjit_status operator_create(world *w, opjit_error *error)
{
    opjit_operator *op = (opjit_operator *)w;
    const opjit_status status = opjit_operator_create(w->context, &desc, &op, error);

    check_output(status, op);
    opjit_operator_release(op);
    return status;
}

static opjit_status compile_with(world *w, uint32_t flags, uint32_t late_count, opjit_error *error)
{
    opjit_kernel *kernel = (opjit_kernel *)w;
    const opjit_status status = compile(w, flags, late_count, &kernel, error);

    check_output(status, kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status compile_interpreted(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET, 0, error);
}
static opjit_status compile_late(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET, 2, error);
}
static opjit_status compile_uncached(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE, 0, error);
}
static opjit_status compile_code(world *w, opjit_error *error)
{
    return compile_with(w, 0, 0, error);
}
static opjit_status compile_code_late(world *w, opjit_error *error)
{
    return compile_with(w, 0, 1, error);
}

static opjit_status call(world *w, opjit_error *error)
{
    float input[35] = { 0 }, output[35] = { 0 };
    const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };
    opjit_call c = OPJIT_CALL_INIT;
    opjit_status status;

    c.bindings = bindings;
    c.binding_count = 2;
    status = opjit_kernel_call(w->kernel, &c, error);
    ck_assert(status != OPJIT_OK || (output[0] == 3 && output[1] == 3 && output[2] == 0 && output[34] == 0));
    return status;
}

static opjit_status closure(world *w, opjit_error *error)
{
    opjit_closure *made = NULL;
    void (*function)(void) = NULL;
    const opjit_status status = opjit_closure_create(w->kernel, &made, &function, error);

    check_output(status, made);
    opjit_closure_destroy(made);
    return status;
}

static opjit_status optimize(world *w, opjit_error *error)
{
    return opjit_kernel_optimize(w->kernel, error);
}
static opjit_status warm(world *w, opjit_error *error)
{
    return opjit_context_warm(w->context, error);
}

static opjit_status explain(world *w, opjit_error *error)
{
    int stages = 0;
    const opjit_status status = opjit_operator_explain(w->context, w->op, NULL, count_stage, &stages, error);

    ck_assert(status != OPJIT_OK || stages >= 7);
    return status;
}

static opjit_status submit_inline(void *user, void (*task)(void *arg), void *arg)
{
    (void)user;
    task(arg);
    return OPJIT_OK;
}

/* Failure of the submission, or of the job. */
static opjit_status async_with(world *w, const DML_GRAPH_DESC *graph, uint32_t flags, opjit_tier first,
                               opjit_error *error)
{
    static const opjit_async_executor executor = { NULL, submit_inline };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_async_desc d = OPJIT_ASYNC_DESC_INIT;
    opjit_job *job = (opjit_job *)w;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    options.flags = flags;
    d.op = graph == NULL ? w->op : NULL;
    d.graph = graph;
    d.options = &options;
    d.executor = &executor;
    d.first = (uint32_t)first;
    status = opjit_compile_async(w->context, &d, &job, error);
    check_output(status, job);
    if (status == OPJIT_OK) {
        status = opjit_job_wait(job, &kernel, error);
        check_output(status, kernel);
    }
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status async(world *w, opjit_error *error)
{
    return async_with(w, NULL, OPJIT_COMPILE_INTERPRET, OPJIT_TIER_NONE, error);
}
static opjit_status async_tiers(world *w, opjit_error *error)
{
    const opjit_status status = async_with(w, NULL, 0, OPJIT_TIER_INTERPRETED, error);
    return status == OPJIT_OK ? async_with(w, NULL, 0, OPJIT_TIER_QUICK, error) : status;
}
static opjit_status async_graph(world *w, opjit_error *error)
{
    static const float data[5000 / sizeof(float)] = { 1 };
    const DML_OPERATOR_GRAPH_NODE_DESC node = { w->op, "node" };
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = { data, sizeof data, "constant" };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC edge = { 1, 0, 0, 0, "edge" };
    const DML_OUTPUT_GRAPH_EDGE_DESC output = { 0, 0, 0, NULL };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node },
                                          { DML_GRAPH_NODE_TYPE_CONSTANT, &constant } };
    const DML_GRAPH_EDGE_DESC edges[] = { { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge } };
    const DML_GRAPH_EDGE_DESC outputs[] = { { DML_GRAPH_EDGE_TYPE_OUTPUT, &output } };
    const DML_GRAPH_DESC graph = { 0, 1, 2, nodes, 0, NULL, 1, outputs, 1, edges };

    return async_with(w, &graph, OPJIT_COMPILE_INTERPRET, OPJIT_TIER_NONE, error);
}

static opjit_status workers(world *w, opjit_error *error)
{
    opjit_workers *made = (opjit_workers *)w;
    const opjit_status status = opjit_workers_create(&allocator, 2, &made, error);

    check_output(status, made);
    opjit_workers_destroy(made);
    return status;
}

static bool visit_none(void *user, const opjit_cache_entry *entry)
{
    ++*(int *)user;
    return entry->kernel != NULL;
}

static opjit_status enumerate(world *w, opjit_error *error)
{
    opjit_kernel *kernel = NULL;
    int visits = 0;
    opjit_status status = compile(w, OPJIT_COMPILE_INTERPRET, 0, &kernel, error);

    if (status == OPJIT_OK)
        status = opjit_cache_enumerate(w->context, OPJIT_CACHE_MEMORY, visit_none, &visits, error);
    if (status == OPJIT_OK)
        status = opjit_cache_verify(w->context, OPJIT_CACHE_MEMORY, NULL, visit_none, &visits, error);
    ck_assert(status != OPJIT_OK || visits == 2);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status call_timed(world *w, opjit_error *error)
{
    float input[35] = { 0 }, output[35] = { 0 };
    const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };
    opjit_step_time times[4];
    opjit_call c = OPJIT_CALL_INIT;
    uint32_t steps;

    c.bindings = bindings;
    c.binding_count = 2;
    return opjit_kernel_call_timed(w->kernel, &c, times, 4, &steps, error);
}

static opjit_status info(world *w, opjit_error *error)
{
    opjit_kernel_info out = OPJIT_KERNEL_INFO_INIT;
    return opjit_kernel_get_info(w->kernel, &out, error);
}

static opjit_status statistics(world *w, opjit_error *error)
{
    opjit_cache_stats out = OPJIT_CACHE_STATS_INIT;
    return opjit_cache_get_stats(w->context, &out, error);
}

static opjit_status plan(world *w, opjit_error *error)
{
    opjit_plan *made = (opjit_plan *)w;
    const opjit_status status = opjit_plan_operator(w->context, w->op, NULL, &made, error);

    check_output(status, made);
    opjit_plan_destroy(made);
    return status;
}

/* clang-format off */
static const oom_row rows[] = {
    { "context_create", context_create, false },
    { "operator_create", operator_create, false },
    { "compile, interpreted", compile_interpreted, false },
    { "compile, late", compile_late, false },
    { "compile, uncached", compile_uncached, false },
    { "kernel_call, interpreted", call, false },
    { "kernel_get_info", info, false },
    { "cache_get_stats", statistics, false },
    { "closure_create", closure, false },
    { "operator_explain", explain, false },
    { "plan", plan, false },
    { "context_warm", warm, true },
    { "compile, code", compile_code, true },
    { "compile, code, late", compile_code_late, true },
    { "kernel_call, code", call, true },
    { "kernel_optimize", optimize, true },
    { "compile_async", async, false },
    { "compile_async, tiers", async_tiers, true },
    { "compile_async, a graph", async_graph, false },
    { "workers_create", workers, false },
    { "cache_enumerate, verify", enumerate, false },
    { "kernel_call_timed", call_timed, false },
};
/* clang-format on */

START_TEST(fails_one_by_one)
{
    oom_check(&rows[_i], _i == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.public");
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
