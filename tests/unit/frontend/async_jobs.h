/* SPDX-License-Identifier: Apache-2.0 */
/* async_jobs.h - shared by tests of jobs: a context whose compiles can be held up, executors that run a task inline,
 * late and on a thread, and kernels that are told apart by their results.  Includers define _POSIX_C_SOURCE. */
#ifndef OPJIT_TESTS_UNIT_ASYNC_JOBS_H
#define OPJIT_TESTS_UNIT_ASYNC_JOBS_H

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <opjit/async.h>

#include "tests/support/checker.h"
#include "tests/unit/runtime/rt_sample.h"

enum { SIZE = 8, COUNT = SIZE * SIZE, THREADS = 4 };

static counting memory;
static opjit_context *context;
static bool have_codegen;
static atomic_int broken; /* Check's assertions belong to the main thread */

/* --- an event sink that holds a compile up ------------------------------------------------------------------------ */

static atomic_int held;    /* compiles that are at the gate */
static atomic_bool closed; /* the gate is */

static inline void pause_for(long milliseconds)
{
    const struct timespec time = { 0, milliseconds * 1000000 };
    nanosleep(&time, NULL);
}

static inline void hold(void *user, const opjit_event *event)
{
    (void)user;
    if (event->kind != OPJIT_EVENT_MISS)
        return;
    atomic_fetch_add(&held, 1);
    while (atomic_load(&closed))
        pause_for(1);
}

static inline void open_context(opjit_event_fn event, const char *codegen_path)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_error error;
    options.allocator = &a;
    options.event = event;
    options.codegen_path = codegen_path;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
}

static inline void setup(void)
{
    open_context(NULL, NULL);
    have_codegen = test_have_codegen(context);
    atomic_store(&held, 0);
    atomic_store(&closed, false);
    atomic_store(&broken, 0);
}

static inline void teardown(void)
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

static inline opjit_status submit_inline(void *user, void (*run)(void *arg), void *arg)
{
    (void)user;
    run(arg);
    return OPJIT_OK;
}

static inline opjit_status submit_late(void *user, void (*run)(void *arg), void *arg)
{
    tasks *t = user;
    if (t->answer != OPJIT_OK)
        return t->answer;
    t->run[t->count] = run;
    t->arg[t->count++] = arg;
    return OPJIT_OK;
}

static inline void run_late(tasks *t)
{
    while (t->count > 0) {
        t->count--;
        t->run[t->count](t->arg[t->count]);
    }
}

static inline void *run_one(void *user)
{
    run_late(user);
    return NULL;
}

static inline opjit_status submit_thread(void *user, void (*run)(void *arg), void *arg)
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
static inline opjit_operator *eye(float value)
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

static inline bool is_eye(const opjit_kernel *kernel, float value)
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

static inline uint32_t flags_of(const opjit_kernel *kernel, opjit_level *out_level)
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

static inline void on_done(void *user, opjit_job *job)
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

static inline opjit_async_desc desc_of(opjit_operator *op, const opjit_async_executor *executor, called *c)
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

static inline opjit_job *submit_eye(float value, const opjit_async_executor *executor, called *c)
{
    opjit_operator *op = eye(value);
    const opjit_async_desc desc = desc_of(op, executor, c);
    opjit_job *job;
    opjit_error error;
    ck_assert_msg(opjit_compile_async(context, &desc, &job, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return job;
}

static inline void wait_until(const atomic_int *count, int value)
{
    for (int i = 0; i < 20000 && atomic_load(count) < value; i++)
        pause_for(1);
    ck_assert_int_ge(atomic_load(count), value);
}

#endif
