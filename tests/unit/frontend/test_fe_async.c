/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_async.c - jobs: executors that run them inline, on threads, late, never, or refuse; descriptions that are
 * refused; compiles that fail; no memory. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/cache.h>
#include <opjit/graph.h>

#include "tests/support/graph_case.h"
#include "tests/support/require.h"
#include "tests/unit/frontend/async_jobs.h"

/* --- executors' ways ---------------------------------------------------------------------------------------------- */

typedef enum way { INLINE, OWN_THREAD, LATE, NEVER, WORKERS, WAYS } way;

START_TEST(every_executor)
{
    tasks t = { .count = 0 };
    opjit_workers *workers = NULL;
    opjit_async_executor executor = { &t, _i == INLINE       ? submit_inline
                                          : _i == OWN_THREAD ? submit_thread
                                                             : submit_late };
    called c = { 0 };
    opjit_kernel *kernel, *same;
    opjit_job *job;
    if (_i == WORKERS) {
        ck_assert_int_eq(opjit_workers_create(&context->core->allocator, 2, &workers, NULL), OPJIT_OK);
        executor = *opjit_workers_executor(workers);
    }
    job = submit_eye(3, &executor, &c);
    if (_i == INLINE)
        ck_assert(opjit_job_poll(job) == OPJIT_JOB_DONE && c.times == 1);
    if (_i == LATE || _i == NEVER)
        ck_assert(opjit_job_poll(job) == OPJIT_JOB_QUEUED && c.times == 0);
    if (_i == LATE)
        run_late(&t);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, NULL), OPJIT_OK);
    ck_assert(opjit_job_poll(job) == OPJIT_JOB_DONE && c.times == 1 && c.status == OPJIT_OK);
    if (_i == INLINE || _i == LATE || _i == NEVER) /* of the others, who is first */
        ck_assert_int_ne(pthread_equal(c.thread, pthread_self()), 0);
    ck_assert(is_eye(kernel, 3));
    ck_assert_int_eq(opjit_job_get_kernel(job, &same, NULL), OPJIT_OK);
    ck_assert_ptr_eq(kernel, same);
    opjit_kernel_release(same);
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    if (_i == OWN_THREAD)
        pthread_join(t.thread, NULL);
    run_late(&t); /* what an executor never ran is nothing now */
    ck_assert_int_eq(c.times, 1);
    opjit_workers_destroy(workers);
    ck_assert_int_eq(broken, 0);
}
END_TEST

START_TEST(refusing_executor)
{
    tasks t = { .answer = _i == 0 ? OPJIT_LIMIT : OPJIT_OUT_OF_MEMORY };
    const opjit_async_executor executor = { &t, submit_late };
    opjit_operator *op = eye(1);
    called c = { 0 };
    const opjit_async_desc desc = desc_of(op, &executor, &c);
    opjit_job *job = (opjit_job *)&t;
    opjit_error error;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), _i == 0 ? OPJIT_LIMIT : OPJIT_OUT_OF_MEMORY);
    ck_assert_int_eq(strncmp(error.message, "executor refused the job: ", 26), 0);
    ck_assert_ptr_null(job);
    ck_assert_int_eq(c.times, 0);
    opjit_operator_release(op);
}
END_TEST

/* The memory cache's kernels make jobs that are done, and nothing is submitted. */
START_TEST(hits_are_done_at_once)
{
    const opjit_async_executor run = { NULL, submit_inline };
    tasks t = { .answer = OPJIT_INTERNAL };
    const opjit_async_executor refuse = { &t, submit_late };
    called c = { 0 };
    opjit_job *first = submit_eye(5, &run, NULL), *second = submit_eye(5, &refuse, &c);
    opjit_kernel *a, *b;
    ck_assert_int_eq(c.times, 1);
    ck_assert_int_eq(opjit_job_wait(first, &a, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_job_wait(second, &b, NULL), OPJIT_OK);
    ck_assert_ptr_eq(a, b);
    opjit_kernel_release(a);
    opjit_kernel_release(b);
    opjit_job_release(first);
    opjit_job_release(second);
}
END_TEST

/* More jobs than threads; half of them nobody holds. */
START_TEST(many_jobs)
{
    enum { JOBS = 40 };
    opjit_workers *workers;
    called c = { 0 };
    opjit_job *jobs[JOBS];
    ck_assert_int_eq(opjit_workers_create(NULL, 3, &workers, NULL), OPJIT_OK);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = submit_eye((float)(i / 2), opjit_workers_executor(workers), i % 2 == 0 ? &c : NULL);
        if (i % 2 == 0)
            opjit_job_release(jobs[i]);
    }
    for (int i = 1; i < JOBS; i += 2) {
        opjit_kernel *kernel;
        ck_assert_int_eq(opjit_job_wait(jobs[i], &kernel, NULL), OPJIT_OK);
        ck_assert(is_eye(kernel, (float)(i / 2)));
        opjit_kernel_release(kernel);
        opjit_job_release(jobs[i]);
    }
    opjit_workers_destroy(workers); /* runs the others */
    ck_assert_int_eq(c.times, JOBS / 2);
}
END_TEST

/* --- errors ------------------------------------------------------------------------------------------------------- */

START_TEST(refused_descriptions)
{
    const opjit_async_executor executor = { NULL, submit_inline }, empty = { NULL, NULL };
    const DML_GRAPH_DESC graph = { 0 };
    opjit_operator *op = eye(1);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_async_desc desc = desc_of(op, &executor, NULL);
    opjit_kernel *kernel;
    opjit_error error;
    opjit_job *job;
    ck_assert_int_eq(opjit_compile_async(NULL, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_compile_async(context, NULL, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_compile_async(context, &desc, NULL, &error), OPJIT_INVALID_ARGUMENT);
    desc.graph = &graph;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "async_desc: op, graph, built: 2 of them, must be one");
    desc.op = NULL;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT); /* an empty graph */
    desc.graph = NULL;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    desc.op = op;
    desc.executor = NULL;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    desc.executor = &empty;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "async_desc: executor.submit is NULL");
    test_require_place(&error);
    desc.executor = &executor;
    desc.first = 3;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    desc.first = OPJIT_TIER_QUICK;
    desc.options = &options;
    options.level = OPJIT_LEVEL_QUICK;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    options.level = OPJIT_LEVEL_AUTO;
    options.flags = 1u << 31;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    desc.struct_size = 3;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(job);
    ck_assert_int_eq(opjit_job_wait(NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_job_get_kernel(NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_job_poll(NULL), OPJIT_JOB_DONE);
    opjit_job_cancel(NULL);
    opjit_job_release(NULL);
    opjit_job_retain(NULL);
    opjit_workers_destroy(NULL);
    opjit_operator_release(op);
}
END_TEST

START_TEST(workers_refused)
{
    const opjit_allocator broken_hook = { NULL, NULL, NULL };
    opjit_workers *workers;
    ck_assert_int_eq(opjit_workers_create(NULL, 0, &workers, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_workers_create(NULL, OPJIT_WORKERS_MAX + 1, &workers, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_workers_create(&broken_hook, 1, &workers, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_workers_create(NULL, 1, NULL, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(opjit_workers_executor(NULL));
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK); /* no thread is started */
    opjit_workers_destroy(workers);
}
END_TEST

/* What goes wrong in the job is the job's; a first tier stays. */
START_TEST(failing_compiles)
{
    const opjit_async_executor executor = { NULL, submit_inline };
    opjit_async_desc desc;
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_error error;
    opjit_job *job;
    called c = { 0 };
    opjit_context_destroy(context);
    open_context(NULL, "/nowhere/libopjit-codegen.so");
    op = eye(2);
    desc = desc_of(op, &executor, &c);
    desc.options = NULL;
    desc.first = _i == 0 ? OPJIT_TIER_NONE : OPJIT_TIER_INTERPRETED;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, &error), OPJIT_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/"));
    ck_assert_ptr_null(kernel);
    ck_assert(c.times == 1 && c.status == OPJIT_UNAVAILABLE);
    memset(&error, 0, sizeof error);
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, &error), _i == 0 ? OPJIT_UNAVAILABLE : OPJIT_OK);
    if (_i == 1)
        ck_assert(is_eye(kernel, 2) && flags_of(kernel, NULL) == OPJIT_KERNEL_INTERPRETED);
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    opjit_operator_release(op);
}
END_TEST

/* --- graphs of the builder ---------------------------------------------------------------------------------------- */

static const char *buffer_name(const opjit_kernel *kernel, uint32_t index)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    return opjit_kernel_buffer_name(&info, index); /* the kernel's */
}

/* The kernel is that of opjit_graph_compile, names and all, from the first tier on. */
START_TEST(built_graphs_keep_their_names)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_async_desc desc = desc_of(NULL, &late, NULL);
    opjit_kernel *kernel, *same;
    opjit_graph *g;
    opjit_job *job;
    opjit_error error;
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    desc.built = g;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "graph: 0 outputs, must be at least 1");
    const opjit_tensor x = opjit_graph_input(g, "scores", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    ck_assert_int_eq(opjit_graph_output(g, "weights", opjit_graph_op(g, DML_OPERATOR_ELEMENT_WISE_EXP, NULL, &x, 1)),
                     OPJIT_OK);
    desc.first = OPJIT_TIER_INTERPRETED;
    ck_assert_msg(opjit_compile_async(context, &desc, &job, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, NULL), OPJIT_OK);
    ck_assert_str_eq(buffer_name(kernel, 0), "scores");
    ck_assert_str_eq(buffer_name(kernel, 1), "weights");
    run_late(&t);
    ck_assert_int_eq(opjit_job_wait(job, NULL, &error), OPJIT_OK);
    ck_assert_str_eq(buffer_name(kernel, 1), "weights");
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    desc.first = OPJIT_TIER_NONE;
    ck_assert_int_eq(opjit_compile_async(context, &desc, &job, &error), OPJIT_OK); /* a hit: the key has the names */
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_graph_compile(g, desc.options, &same, NULL), OPJIT_OK);
    ck_assert_ptr_eq(kernel, same);
    opjit_kernel_release(kernel);
    opjit_kernel_release(same);
    opjit_job_release(job);
    run_late(&t);
    opjit_graph_destroy(g);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

START_TEST(no_memory)
{
    const opjit_async_executor executor = { NULL, submit_inline };
    opjit_operator *op = eye(1);
    opjit_async_desc desc = desc_of(op, &executor, NULL);
    bool done = false;
    desc.first = _i == 0 ? OPJIT_TIER_NONE : OPJIT_TIER_INTERPRETED;
    for (int n = 1; !done; n++) {
        opjit_job *job = NULL;
        opjit_status status;
        memory.fail_at = memory.calls + n;
        status = opjit_compile_async(context, &desc, &job, NULL);
        if (status == OPJIT_OK)
            status = opjit_job_wait(job, NULL, NULL);
        done = memory.calls < memory.fail_at;
        memory.fail_at = 0;
        ck_assert_msg(status == (done ? OPJIT_OK : OPJIT_OUT_OF_MEMORY), "allocation %d: %s", n,
                      opjit_status_name(status));
        opjit_job_release(job);
        ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
        ck_assert_int_lt(n, 2000);
    }
    opjit_operator_release(op);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.async");
    TCase *tcase = tcase_create("async");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_executor, 0, WAYS);
    tcase_add_loop_test(tcase, refusing_executor, 0, 2);
    tcase_add_test(tcase, hits_are_done_at_once);
    tcase_add_test(tcase, many_jobs);
    tcase_add_test(tcase, refused_descriptions);
    tcase_add_test(tcase, workers_refused);
    tcase_add_loop_test(tcase, failing_compiles, 0, 2);
    tcase_add_test(tcase, built_graphs_keep_their_names);
    tcase_add_loop_test(tcase, no_memory, 0, 2);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
