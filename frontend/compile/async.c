/* SPDX-License-Identifier: Apache-2.0 */
/* async.c - jobs: compiles that an executor runs, or whoever waits for them first.
 *
 * A job is claimed by one thread, which runs it and ends it; claiming is all that threads have to agree on.  A job
 * that a thread of the parent had claimed is free again in a child of fork.  Jobs of a context stand in a list of
 * its core, so that destroying the context finds them. */
#include <opjit/async.h>

#include <pthread.h>
#include <string.h>

#include "frontend/compile/request.h"

struct opjit_job {
    atomic_uint references;
    rt_core *core;
    opjit_context *context; /* valid while the job is claimed and not done */
    fe_request request;
    fe_work_fn work; /* what it does, with user; NULL: it compiles the request */
    opjit_tier first;
    opjit_job_fn done;
    void *user;
    atomic_bool cancel;
    atomic_uint changed; /* counts what waiting threads wait for */
    rt_lock lock;        /* of what follows */
    opjit_job_state state;
    bool closed;      /* the callback has returned */
    uint32_t process; /* that claimed it */
    pthread_t runner;
    opjit_kernel *kernel;
    opjit_status status;
    opjit_error error;
    /* With the lock of core->jobs. */
    opjit_job *next, *previous;
    uint32_t list; /* rt_jobs.list that it is in; 0: none */
};

static bool is_ours(const opjit_job *job)
{
    return job->process == rt_process_number(&job->core->process);
}

/* --- the list of a context's jobs --------------------------------------------------------------------------------- */

/* In a child whose parent's thread was changing the list, the list begins anew. */
static rt_jobs *lock_list(rt_core *core)
{
    if (opjit_rt_lock(&core->jobs.lock)) {
        core->jobs.first = NULL;
        core->jobs.list++;
    }
    return &core->jobs;
}

static void close_jobs(rt_core *core);

/* False: the context goes. */
static bool enlist(opjit_job *job)
{
    rt_jobs *jobs = lock_list(job->core);
    const bool open = !jobs->closed;

    if (open) {
        jobs->close = close_jobs;
        opjit_job_retain(job);
        job->list = jobs->list;
        job->next = jobs->first;
        if (job->next != NULL)
            job->next->previous = job;
        jobs->first = job;
    }
    opjit_rt_unlock(&jobs->lock);
    return open;
}

/* Once more is fine. */
static void delist(opjit_job *job)
{
    rt_jobs *jobs = lock_list(job->core);
    const bool is_in = job->list == jobs->list;

    if (is_in) {
        if (job->next != NULL)
            job->next->previous = job->previous;
        if (job->previous != NULL)
            job->previous->next = job->next;
        else
            jobs->first = job->next;
        job->list = 0;
    }
    opjit_rt_unlock(&jobs->lock);
    if (is_in)
        opjit_job_release(job);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* With the job's lock held: whether this thread is to run it. */
static bool claim(opjit_job *job)
{
    if (job->state != OPJIT_JOB_QUEUED && (job->state != OPJIT_JOB_RUNNING || is_ours(job)))
        return false;
    job->state = OPJIT_JOB_RUNNING;
    job->process = rt_process_number(&job->core->process);
    job->runner = pthread_self();
    return true;
}

/* With the job's lock held: whether there is nothing more to wait for, not even the callback, unless this thread
 * is in it or it was called in another process. */
static bool is_over(const opjit_job *job)
{
    return job->state == OPJIT_JOB_DONE &&
           (job->closed || !is_ours(job) || pthread_equal(job->runner, pthread_self()) != 0);
}

/* Compiles the request, with other options. */
static opjit_status compile_now(const opjit_job *job, const opjit_compile_options *options, const fe_ask *ask,
                                opjit_kernel **out, opjit_error *error)
{
    const fe_request *r = &job->request;

    return r->op != NULL ? opjit_fe_compile_operator(job->context, r->op, options, ask, out, error)
                         : opjit_fe_compile_graph(job->context, &r->graph, options, ask, out, error);
}

static opjit_status compile(opjit_job *job, opjit_kernel **out, opjit_error *error)
{
    const fe_request *r = &job->request;
    const fe_ask ask = { .cancel = &job->cancel, .is_named = r->is_named };
    opjit_kernel *made;
    opjit_status status;

    if (atomic_load(&job->cancel))
        return opjit_rt_cancelled(error);
    if (job->work != NULL)
        return job->work(job->user, job->context, &job->cancel, error);
    if (job->first == OPJIT_TIER_QUICK)
        return opjit_rt_kernel_optimize(job->kernel, &job->cancel, error);
    TRY(compile_now(job, &r->options, &ask, &made, error));
    if (job->first == OPJIT_TIER_NONE) {
        *out = made;
        return OPJIT_OK;
    }
    status = opjit_rt_kernel_adopt(job->kernel, made, error);
    opjit_kernel_release(made);
    return status;
}

/* Of a job that this thread has claimed, and keeps from being freed.  made: its kernel, or NULL. */
static void finish(opjit_job *job, opjit_status status, opjit_kernel *made, const opjit_error *error)
{
    opjit_fe_request_free(&job->request);
    opjit_rt_lock(&job->lock);
    if (made != NULL)
        job->kernel = made;
    job->status = status;
    job->error = *error;
    job->state = OPJIT_JOB_DONE;
    opjit_rt_unlock(&job->lock);
    opjit_rt_wake_all(&job->changed);
    if (job->done != NULL)
        job->done(job->user, job);
    opjit_rt_lock(&job->lock);
    job->closed = true;
    opjit_rt_unlock(&job->lock);
    opjit_rt_wake_all(&job->changed);
    delist(job);
}

static void run(opjit_job *job)
{
    opjit_kernel *made = NULL;
    opjit_error error = { 0 };
    opjit_status status;

    opjit_job_retain(job); /* the callback may release the caller's */
    status = compile(job, &made, &error);
    finish(job, status, made, &error);
    opjit_job_release(job);
}

static void task(void *arg)
{
    opjit_job *job = arg;
    bool claimed;

    opjit_rt_lock(&job->lock);
    claimed = claim(job);
    opjit_rt_unlock(&job->lock);
    if (claimed)
        run(job);
    opjit_job_release(job);
}

/* --- making jobs -------------------------------------------------------------------------------------------------- */

/* A job without a request; NULL: no memory.  The context may be gone. */
static opjit_job *job_new(rt_core *core, opjit_context *context, opjit_job_fn done, void *user)
{
    opjit_job *job = opjit_rt_allocate(&core->allocator, sizeof *job, _Alignof(opjit_job));

    if (job == NULL)
        return NULL;
    memset(job, 0, sizeof *job);
    atomic_init(&job->references, 1);
    job->core = opjit_rt_core_retain(core);
    job->context = context;
    job->done = done;
    job->user = user;
    opjit_rt_lock_init(&job->lock, &core->process);
    opjit_rt_arena_init(&job->request.arena, &core->allocator);
    return job;
}

static opjit_status job_of(opjit_context *context, const opjit_async_desc *desc, opjit_job **out, opjit_error *error)
{
    opjit_job *job = job_new(context->core, context, desc->done, desc->user);
    opjit_status status;

    if (job == NULL)
        return opjit_rt_no_memory(error);
    job->first = (opjit_tier)desc->first;
    status = opjit_fe_request_copy(context->core, desc->op, desc->graph, desc->options, &job->request, error);
    if (status != OPJIT_OK)
        opjit_job_release(job);
    else
        *out = job;
    return status;
}

/* What there is before the job runs: the kernel itself where the memory cache has it, which ends the job (*out_done),
 * or that of the first tier. */
static opjit_status begin(opjit_job *job, bool *out_done, opjit_error *error)
{
    opjit_compile_options options = job->request.options;
    const fe_ask fresh = { .is_named = job->request.is_named };
    const fe_ask cached = { .is_named = job->request.is_named, .only_cached = true };
    opjit_status status;

    if (job->first == OPJIT_TIER_QUICK)
        options.level = OPJIT_LEVEL_PEAK;
    status = compile_now(job, &options, &cached, &job->kernel, error);
    *out_done = status == OPJIT_OK;
    if (status != OPJIT_NOT_FOUND)
        return status;
    opjit_rt_error_clear(error);
    if (job->first == OPJIT_TIER_NONE)
        return OPJIT_OK;
    if (job->first == OPJIT_TIER_QUICK)
        options.level = OPJIT_LEVEL_QUICK;
    else
        options.flags |= OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE; /* a kernel that is this job's to change */
    return compile_now(job, &options, &fresh, &job->kernel, error);
}

static opjit_status submit(opjit_job *job, const opjit_async_executor *executor, opjit_error *error)
{
    opjit_status status;
    bool refused;

    if (!enlist(job))
        return opjit_rt_cancelled(error);
    if (executor == NULL) /* whoever waits for it runs it */
        return OPJIT_OK;
    opjit_job_retain(job); /* the task's */
    status = executor->submit(executor->user, task, job);
    if (status == OPJIT_OK)
        return OPJIT_OK;
    opjit_rt_lock(&job->lock);
    refused = claim(job); /* false: the executor ran it although it refuses */
    opjit_rt_unlock(&job->lock);
    if (!refused)
        return OPJIT_OK;
    delist(job);
    opjit_job_release(job);
    return opjit_rt_later(error, opjit_rt_refuse(error, status, "{!async_desc}{executor} refused the job: {%s}",
                                                 opjit_status_name(status)));
}

opjit_status opjit_fe_job_submit(rt_core *core, opjit_context *context, const opjit_async_executor *executor,
                                 fe_work_fn work, opjit_job_fn done, void *user, opjit_job **out, opjit_error *error)
{
    opjit_job *const job = job_new(core, context, done, user);

    *out = job;
    if (job == NULL)
        return opjit_rt_no_memory(error);
    job->work = work;
    const opjit_status status = submit(job, executor, error);
    if (status != OPJIT_OK)
        opjit_job_release(job);
    return status;
}

opjit_status opjit_compile_async(opjit_context *context, const opjit_async_desc *desc, opjit_job **out_job,
                                 opjit_error *error)
{
    const opjit_error none = { 0 };
    opjit_async_desc known;
    fe_ask ask;
    opjit_job *job = NULL;
    opjit_status status;
    bool done = false;

    opjit_rt_error_clear(error);
    if (out_job == NULL)
        return opjit_rt_refuse_null(error, "out_job");
    *out_job = NULL;
    if (context == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "desc");
    TRY(opjit_fe_request_read(context, desc, &known, &ask, error));
    TRY(job_of(context, &known, &job, error));
    job->request.is_named = ask.is_named;
    status = begin(job, &done, error);
    *out_job = job; /* for a callback that comes before this returns */
    if (status == OPJIT_OK && done) {
        opjit_rt_lock(&job->lock);
        claim(job);
        opjit_rt_unlock(&job->lock);
        opjit_job_retain(job);
        finish(job, OPJIT_OK, NULL, &none);
        opjit_job_release(job);
    } else if (status == OPJIT_OK) {
        status = submit(job, known.executor, error);
    }
    if (status != OPJIT_OK) {
        *out_job = NULL;
        opjit_job_release(job);
    }
    return status;
}

/* --- life and results --------------------------------------------------------------------------------------------- */

void opjit_job_retain(opjit_job *job)
{
    if (job != NULL)
        atomic_fetch_add_explicit(&job->references, 1, memory_order_relaxed);
}

void opjit_job_release(opjit_job *job)
{
    rt_core *core;

    if (job == NULL || atomic_fetch_sub_explicit(&job->references, 1, memory_order_acq_rel) != 1)
        return;
    core = job->core;
    opjit_fe_request_free(&job->request);
    opjit_kernel_release(job->kernel);
    opjit_rt_release(&core->allocator, job, sizeof *job);
    opjit_rt_core_release(core);
}

opjit_job_state opjit_job_poll(const opjit_job *job)
{
    opjit_job *j = (opjit_job *)(uintptr_t)job; /* const but for its lock */
    opjit_job_state state;

    if (job == NULL)
        return OPJIT_JOB_DONE;
    opjit_rt_lock(&j->lock);
    state = j->state == OPJIT_JOB_RUNNING && !is_ours(j) ? OPJIT_JOB_QUEUED : j->state;
    opjit_rt_unlock(&j->lock);
    return state;
}

/* With the lock held: what a job that is done has for its caller. */
static opjit_status result(const opjit_job *job, opjit_error *error)
{
    return job->status == OPJIT_OK ? OPJIT_OK : opjit_rt_error_copy(error, &job->error);
}

static void give_kernel(const opjit_job *job, opjit_kernel **out)
{
    opjit_kernel_retain(job->kernel);
    *out = job->kernel;
}

/* end: when to give up (opjit_rt_nanoseconds), without ever running the job; 0: never. */
static opjit_status wait_until(opjit_job *job, uint64_t end, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_status status;
    bool is_late = false;

    opjit_rt_error_clear(error);
    if (out_kernel != NULL)
        *out_kernel = NULL;
    if (job == NULL)
        return opjit_rt_refuse_null(error, "job");
    opjit_rt_lock(&job->lock);
    while (!is_over(job) && !is_late) {
        const bool claimed = end == 0 && claim(job);
        const uint32_t seen = atomic_load(&job->changed);
        const bool own = !claimed && job->state == OPJIT_JOB_RUNNING && pthread_equal(job->runner, pthread_self()) != 0;
        opjit_rt_unlock(&job->lock);
        if (own)
            return opjit_rt_refuse(
                error, OPJIT_INVALID_ARGUMENT,
                "{!argument}{!job}this thread is compiling that job: an event sink can't wait for it");
        if (claimed)
            run(job);
        else if (end == 0)
            opjit_rt_await(&job->changed, seen);
        else
            is_late = !opjit_rt_await_until(&job->changed, seen, end);
        opjit_rt_lock(&job->lock);
    }
    status = is_over(job) ? result(job, error)
                          : opjit_rt_later(error, opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                                                                  "{!argument}the {job} is {not done} in that time"));
    if (status == OPJIT_OK && out_kernel != NULL)
        give_kernel(job, out_kernel);
    opjit_rt_unlock(&job->lock);
    return status;
}

opjit_status opjit_job_wait(opjit_job *job, opjit_kernel **out_kernel, opjit_error *error)
{
    return wait_until(job, 0, out_kernel, error);
}

opjit_status opjit_job_wait_for(opjit_job *job, uint64_t timeout_ns, opjit_kernel **out_kernel, opjit_error *error)
{
    uint64_t end;

    if (!checked_add(opjit_rt_nanoseconds(), timeout_ns, &end))
        end = UINT64_MAX;
    return wait_until(job, end, out_kernel, error);
}

opjit_status opjit_job_get_kernel(const opjit_job *job, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_job *j = (opjit_job *)(uintptr_t)job; /* const but for its lock */
    opjit_status status = OPJIT_OK;

    opjit_rt_error_clear(error);
    if (job == NULL || out_kernel == NULL)
        return opjit_rt_refuse_null(error, job == NULL ? "job" : "out_kernel");
    *out_kernel = NULL;
    opjit_rt_lock(&j->lock);
    if (j->kernel != NULL)
        give_kernel(j, out_kernel);
    else if (j->state != OPJIT_JOB_DONE)
        status = opjit_rt_later(error, opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                                                       "{!argument}the {job} is {not done}, and has no first tier"));
    else
        status = result(j, error);
    opjit_rt_unlock(&j->lock);
    return status;
}

void opjit_job_cancel(opjit_job *job)
{
    opjit_error error = { 0 };
    bool claimed;

    if (job == NULL)
        return;
    opjit_rt_lock(&job->lock);
    atomic_store(&job->cancel, true);
    claimed = claim(job);
    opjit_rt_unlock(&job->lock);
    if (!claimed)
        return;
    opjit_job_retain(job);
    opjit_rt_cancelled(&error);
    finish(job, OPJIT_CANCELLED, NULL, &error);
    opjit_job_release(job);
}

/* Waits until the job is over; not on the thread that compiles it. */
static void await_end(opjit_job *job)
{
    opjit_rt_lock(&job->lock);
    while (!is_over(job) && pthread_equal(job->runner, pthread_self()) == 0) {
        const uint32_t seen = atomic_load(&job->changed);
        opjit_rt_unlock(&job->lock);
        opjit_rt_await(&job->changed, seen);
        opjit_rt_lock(&job->lock);
    }
    opjit_rt_unlock(&job->lock);
}

/* For opjit_context_destroy: cancels all jobs, and waits for those that run. */
static void close_jobs(rt_core *core)
{
    for (;;) {
        rt_jobs *jobs = lock_list(core);
        opjit_job *job = jobs->first;
        opjit_job_retain(job);
        opjit_rt_unlock(&jobs->lock);
        if (job == NULL)
            return;
        opjit_job_cancel(job);
        await_end(job);
        delist(job);
        opjit_job_release(job);
    }
}
