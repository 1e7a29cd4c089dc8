/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_async.c - jobs: executors that run them inline, on threads, late, never, or refuse; waiting, cancelling
 * before, while and after; contexts that go with jobs under way; kernels that become better while they are called;
 * fork; no memory. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <opjit/async.h>
#include <opjit/cache.h>
#include <opjit/graph.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/require.h"
#include "tests/unit/runtime/rt_sample.h"

enum { SIZE = 8, COUNT = SIZE * SIZE, THREADS = 4 };

static counting memory;
static opjit_context *context;
static bool have_codegen;
static atomic_int broken; /* Check's assertions belong to the main thread */

/* --- an event sink that holds a compile up ------------------------------------------------------------------------ */

static atomic_int held;    /* compiles that are at the gate */
static atomic_bool closed; /* the gate is */

static void pause_for(long milliseconds)
{
    const struct timespec time = { 0, milliseconds * 1000000 };
    nanosleep(&time, NULL);
}

static void hold(void *user, const opjit_event *event)
{
    (void)user;
    if (event->kind != OPJIT_EVENT_MISS)
        return;
    atomic_fetch_add(&held, 1);
    while (atomic_load(&closed))
        pause_for(1);
}

static void open_context(opjit_event_fn event, const char *codegen_path)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_error error;
    options.allocator = &a;
    options.event = event;
    options.codegen_path = codegen_path;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
}

static void setup(void)
{
    open_context(NULL, NULL);
    have_codegen = test_have_codegen(context);
    atomic_store(&held, 0);
    atomic_store(&closed, false);
    atomic_store(&broken, 0);
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

/* --- executors ---------------------------------------------------------------------------------------------------- */

typedef struct tasks {
    void (*run[64])(void *arg);
    void *arg[64];
    int count;
    opjit_status answer;
    pthread_t thread;
} tasks;

static opjit_status submit_inline(void *user, void (*run)(void *arg), void *arg)
{
    (void)user;
    run(arg);
    return OPJIT_OK;
}

static opjit_status submit_late(void *user, void (*run)(void *arg), void *arg)
{
    tasks *t = user;
    if (t->answer != OPJIT_OK)
        return t->answer;
    t->run[t->count] = run;
    t->arg[t->count++] = arg;
    return OPJIT_OK;
}

static void run_late(tasks *t)
{
    while (t->count > 0) {
        t->count--;
        t->run[t->count](t->arg[t->count]);
    }
}

static void *run_one(void *user)
{
    run_late(user);
    return NULL;
}

static opjit_status submit_thread(void *user, void (*run)(void *arg), void *arg)
{
    tasks *t = user;
    submit_late(t, run, arg);
    return pthread_create(&t->thread, NULL, run_one, t) == 0 ? OPJIT_OK : OPJIT_UNAVAILABLE;
}

/* --- what is compiled --------------------------------------------------------------------------------------------- */

static const uint32_t sizes[] = { SIZE, SIZE };
static const DML_BUFFER_TENSOR_DESC buffer = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0
};
static const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };

/* value on the diagonal. */
static opjit_operator *eye(float value)
{
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC d = { .OutputTensor = &tensor,
                                                   .ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32,
                                                   .Value.Float32 = value,
                                                   .DiagonalFillEnd = 1 };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, &d };
    opjit_operator *op;
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    return op;
}

static bool is_eye(const opjit_kernel *kernel, float value)
{
    float out[COUNT];
    const opjit_binding binding = { out, sizeof out };
    opjit_call call = OPJIT_CALL_INIT;
    bool good;
    call.bindings = &binding;
    call.binding_count = 1;
    memset(out, 0xff, sizeof out);
    good = opjit_kernel_call(kernel, &call, NULL) == OPJIT_OK;
    for (int i = 0; i < COUNT; i++)
        good = good && out[i] == (i % (SIZE + 1) == 0 ? value : 0);
    return good;
}

static uint32_t flags_of(const opjit_kernel *kernel, opjit_level *out_level)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    if (out_level != NULL)
        *out_level = info.level;
    return info.flags;
}

/* What callbacks saw: those of several jobs, which threads may finish at once. */
typedef struct called {
    atomic_int times, status;  /* how often; of the latest, its opjit_status */
    _Atomic(pthread_t) thread; /* on which the latest ran */
    bool releases, destroys;
} called;

static void on_done(void *user, opjit_job *job)
{
    called *c = user;
    opjit_kernel *kernel;
    c->thread = pthread_self();
    broken += opjit_job_poll(job) != OPJIT_JOB_DONE;
    c->status = opjit_job_wait(job, &kernel, NULL);
    opjit_kernel_release(kernel);
    atomic_fetch_add(&c->times, 1);
    if (c->destroys)
        opjit_context_destroy(context);
    if (c->releases)
        opjit_job_release(job);
}

static opjit_async_desc desc_of(opjit_operator *op, const opjit_async_executor *executor, called *c)
{
    opjit_async_desc desc = OPJIT_ASYNC_DESC_INIT;
    static opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = have_codegen ? 0 : OPJIT_COMPILE_INTERPRET;
    desc.op = op;
    desc.options = &options;
    desc.executor = executor;
    desc.done = c == NULL ? NULL : on_done;
    desc.user = c;
    return desc;
}

static opjit_job *submit_eye(float value, const opjit_async_executor *executor, called *c)
{
    opjit_operator *op = eye(value);
    const opjit_async_desc desc = desc_of(op, executor, c);
    opjit_job *job;
    opjit_error error;
    ck_assert_msg(opjit_compile_async(context, &desc, &job, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return job;
}

static void wait_until(const atomic_int *count, int value)
{
    for (int i = 0; i < 20000 && atomic_load(count) < value; i++)
        pause_for(1);
    ck_assert_int_ge(atomic_load(count), value);
}

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
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_executor, 0, WAYS);
    tcase_add_loop_test(tcase, refusing_executor, 0, 2);
    tcase_add_test(tcase, hits_are_done_at_once);
    tcase_add_test(tcase, many_jobs);
    tcase_add_test(tcase, refused_descriptions);
    tcase_add_test(tcase, workers_refused);
    tcase_add_loop_test(tcase, failing_compiles, 0, 2);
    tcase_add_test(tcase, cancelled_before_it_begins);
    tcase_add_test(tcase, cancelled_while_it_runs);
    tcase_add_test(tcase, cancelled_afterwards);
    tcase_add_test(tcase, waits_for_a_time);
    tcase_add_test(tcase, cancelled_while_it_optimizes);
    tcase_add_test(tcase, built_graphs_keep_their_names);
    tcase_add_test(tcase, context_goes_with_open_jobs);
    tcase_add_loop_test(tcase, context_goes_in_a_callback, 0, 3);
    tcase_add_loop_test(tcase, interpreted_until_the_code_is_there, 0, 2);
    tcase_add_loop_test(tcase, quick_until_peak_is_there, 0, 2);
    tcase_add_test(tcase, swapped_while_it_is_called);
    tcase_add_test(tcase, late_parameters);
    tcase_add_loop_test(tcase, fork_goes_on, 0, 2);
    tcase_add_loop_test(tcase, no_memory, 0, 2);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
