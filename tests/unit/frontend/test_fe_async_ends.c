/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_async_ends.c - how jobs end: waiting for a time; cancelling before, while and after; contexts that go with
 * jobs under way; fork. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/require.h"
#include "tests/unit/frontend/async_jobs.h"

/* --- cancelling --------------------------------------------------------------------------------------------------- */

START_TEST(cancelled_before_it_begins)
{
    tasks t = { .count = 0 };
    const opjit_async_executor executor = { &t, submit_late };
    called c = { 0 };
    opjit_job *job = submit_eye(1, &executor, &c);
    opjit_kernel *kernel;
    opjit_error error;
    opjit_job_cancel(job);
    ck_assert(opjit_job_poll(job) == OPJIT_JOB_DONE && c.times == 1 && c.status == OPJIT_CANCELLED);
    ck_assert_int_ne(pthread_equal(c.thread, pthread_self()), 0);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, &error), OPJIT_CANCELLED);
    ck_assert_ptr_null(kernel);
    ck_assert_str_eq(error.message, "the job was cancelled");
    ck_assert_int_eq(error.retry, OPJIT_RETRY_LATER);
    test_require_place(&error);
    opjit_job_cancel(job);
    opjit_job_release(job);
    run_late(&t);
    ck_assert_int_eq(c.times, 1);
}
END_TEST

START_TEST(cancelled_while_it_runs)
{
    opjit_workers *workers;
    called c = { 0 };
    opjit_kernel *kernel;
    opjit_job *job;
    opjit_context_destroy(context);
    open_context(hold, NULL);
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK);
    atomic_store(&closed, true);
    job = submit_eye(1, opjit_workers_executor(workers), &c);
    wait_until(&held, 1);
    ck_assert_int_eq(opjit_job_poll(job), OPJIT_JOB_RUNNING);
    ck_assert_int_eq(opjit_job_get_kernel(job, &kernel, NULL), OPJIT_UNAVAILABLE);
    opjit_job_cancel(job);
    ck_assert_int_eq(c.times, 0);
    atomic_store(&closed, false);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, NULL), OPJIT_CANCELLED);
    ck_assert(c.times == 1 && c.status == OPJIT_CANCELLED);
    opjit_job_release(job);
    job = submit_eye(1, opjit_workers_executor(workers), NULL); /* nothing stands in the way of the next one */
    ck_assert_int_eq(opjit_job_wait(job, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 1));
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    opjit_workers_destroy(workers);
}
END_TEST

START_TEST(cancelled_afterwards)
{
    const opjit_async_executor executor = { NULL, submit_inline };
    called c = { 0 };
    opjit_job *job = submit_eye(1, &executor, &c);
    opjit_kernel *kernel;
    opjit_job_cancel(job);
    ck_assert_int_eq(opjit_job_wait(job, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 1) && c.times == 1);
    opjit_kernel_release(kernel);
    opjit_job_release(job);
}
END_TEST

/* --- waiting for a time ------------------------------------------------------------------------------------------- */

static void expect_not_done(opjit_job *job, uint64_t timeout_ns)
{
    opjit_kernel *kernel = (opjit_kernel *)(uintptr_t)job;
    opjit_error error;
    ck_assert_int_eq(opjit_job_wait_for(job, timeout_ns, &kernel, &error), OPJIT_UNAVAILABLE);
    ck_assert_ptr_null(kernel);
    ck_assert_str_eq(error.field, "job");
    ck_assert_str_eq(error.value, "not done");
    ck_assert_int_eq(error.retry, OPJIT_RETRY_LATER);
    test_require_place(&error);
}

/* A job that nobody has begun is left to others; one that runs is waited for, for that time or until it is done. */
START_TEST(waits_for_a_time)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_workers *workers;
    opjit_kernel *kernel;
    opjit_job *job;
    opjit_context_destroy(context);
    open_context(hold, NULL);
    job = submit_eye(1, &late, NULL);
    expect_not_done(job, 0);
    expect_not_done(job, 2000000);
    ck_assert_int_eq(opjit_job_poll(job), OPJIT_JOB_QUEUED);
    run_late(&t);
    ck_assert_int_eq(opjit_job_wait_for(job, 0, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 1));
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    atomic_store(&held, 0);
    atomic_store(&closed, true);
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK);
    job = submit_eye(2, opjit_workers_executor(workers), NULL);
    wait_until(&held, 1);
    expect_not_done(job, 0);
    expect_not_done(job, 2000000);
    atomic_store(&closed, false);
    ck_assert_int_eq(opjit_job_wait_for(job, UINT64_MAX, &kernel, NULL), OPJIT_OK);
    ck_assert(is_eye(kernel, 2));
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    opjit_workers_destroy(workers);
    ck_assert_int_eq(opjit_job_wait_for(NULL, 0, &kernel, NULL), OPJIT_INVALID_ARGUMENT);
}
END_TEST

/* The better code of a kernel is given up, and may be asked for again. */
START_TEST(cancelled_while_it_optimizes)
{
    const opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const atomic_bool cancel = true;
    opjit_operator *op = eye(4);
    opjit_kernel *kernel;
    opjit_level level;
    opjit_error error;
    if (have_codegen) {
        ck_assert_int_eq(opjit_compile_operator(context, op, &options, &kernel, NULL), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_kernel_optimize(kernel, &cancel, &error), OPJIT_CANCELLED);
        test_require_place(&error);
        ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0 && level == OPJIT_LEVEL_QUICK);
        ck_assert_int_eq(opjit_rt_kernel_optimize(kernel, NULL, &error), OPJIT_OK);
        ck_assert(is_eye(kernel, 4) && flags_of(kernel, &level) == 0 && level == OPJIT_LEVEL_PEAK);
        opjit_kernel_release(kernel);
    }
    opjit_operator_release(op);
}
END_TEST

/* --- contexts that go --------------------------------------------------------------------------------------------- */

static void *open_the_gate(void *unused)
{
    (void)unused;
    pause_for(30);
    atomic_store(&closed, false);
    return NULL;
}

START_TEST(context_goes_with_open_jobs)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_workers *workers;
    called queued = { 0 }, running = { 0 };
    opjit_job *jobs[2];
    pthread_t opener;
    opjit_context_destroy(context);
    open_context(hold, NULL);
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK);
    jobs[0] = submit_eye(1, &late, &queued);
    atomic_store(&closed, true);
    jobs[1] = submit_eye(2, opjit_workers_executor(workers), &running);
    opjit_job_release(submit_eye(3, opjit_workers_executor(workers), &queued)); /* behind that one */
    wait_until(&held, 1);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_the_gate, NULL), 0);
    opjit_context_destroy(context);
    context = NULL;
    ck_assert(!atomic_load(&closed) && queued.times == 2 && queued.status == OPJIT_CANCELLED);
    ck_assert(running.times == 1 && running.status == OPJIT_CANCELLED);
    pthread_join(opener, NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(opjit_job_wait(jobs[i], NULL, NULL), OPJIT_CANCELLED);
        opjit_job_release(jobs[i]);
    }
    run_late(&t);
    opjit_workers_destroy(workers);
    ck_assert(queued.times == 2 && broken == 0);
}
END_TEST

/* From the callback, which releases the job, too: on a thread of the workers', of the host's, and of who waits. */
START_TEST(context_goes_in_a_callback)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_workers *workers;
    called c = { .releases = true, .destroys = true }, other = { 0 };
    opjit_job *job;
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK);
    opjit_job_release(submit_eye(2, &late, &other));
    job = submit_eye(1, _i == 0 ? opjit_workers_executor(workers) : &late, &c);
    if (_i == 1)
        run_late(&t);
    if (_i == 2)
        ck_assert_int_eq(opjit_job_wait(job, NULL, NULL), OPJIT_OK);
    wait_until(&c.times, 1);
    opjit_workers_destroy(workers);
    context = NULL;
    run_late(&t);
    ck_assert(c.times == 1 && c.status == OPJIT_OK && other.times == 1 && other.status == OPJIT_CANCELLED);
    ck_assert_int_eq(broken, 0);
}
END_TEST

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* In the child: a job that was queued, and one that a thread of the parent is compiling. */
START_TEST(fork_goes_on)
{
    tasks t = { .count = 0 };
    const opjit_async_executor late = { &t, submit_late };
    opjit_workers *workers;
    called c = { 0 };
    opjit_job *jobs[2];
    opjit_kernel *kernel;
    int status;
    opjit_context_destroy(context);
    open_context(hold, NULL);
    ck_assert_int_eq(opjit_workers_create(NULL, 1, &workers, NULL), OPJIT_OK);
    jobs[0] = submit_eye(1, &late, &c);
    atomic_store(&closed, true);
    jobs[1] = submit_eye(2, opjit_workers_executor(workers), &c);
    wait_until(&held, 1);
    const pid_t child = fork();
    if (child == 0) {
        bool good = opjit_job_poll(jobs[1]) == OPJIT_JOB_QUEUED;
        atomic_store(&closed, false);
        for (int i = 0; i < 2 && _i == 0; i++) {
            good = good && opjit_job_wait(jobs[i], &kernel, NULL) == OPJIT_OK && is_eye(kernel, (float)(i + 1));
            opjit_kernel_release(kernel);
            opjit_job_release(jobs[i]);
        }
        good = good && c.times == (_i == 0 ? 2 : 0);
#if !defined(__SANITIZE_THREAD__) /* which refuses threads in a child */
        opjit_job *more = submit_eye(3, opjit_workers_executor(workers), NULL);
        good = good && opjit_job_wait(more, &kernel, NULL) == OPJIT_OK && is_eye(kernel, 3);
        opjit_kernel_release(kernel);
        opjit_job_release(more);
#endif
        opjit_context_destroy(context);
        good = good && c.times == 2 && (_i == 0 || c.status == OPJIT_CANCELLED);
        opjit_workers_destroy(workers);
        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    atomic_store(&closed, false);
    ck_assert_int_eq(status, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(opjit_job_wait(jobs[i], NULL, NULL), OPJIT_OK);
        opjit_job_release(jobs[i]);
    }
    run_late(&t);
    opjit_workers_destroy(workers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.async.ends");
    TCase *tcase = tcase_create("ends");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, cancelled_before_it_begins);
    tcase_add_test(tcase, cancelled_while_it_runs);
    tcase_add_test(tcase, cancelled_afterwards);
    tcase_add_test(tcase, waits_for_a_time);
    tcase_add_test(tcase, cancelled_while_it_optimizes);
    tcase_add_test(tcase, context_goes_with_open_jobs);
    tcase_add_loop_test(tcase, context_goes_in_a_callback, 0, 3);
    tcase_add_loop_test(tcase, fork_goes_on, 0, 2);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
