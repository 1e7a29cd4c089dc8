/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/async.h - compiling in the background, and kernels that run at once and become better while they are
 * called.
 *
 *     opjit_workers_create(NULL, 1, &workers, &error);                     // or the host's own threads
 *     opjit_async_desc desc = OPJIT_ASYNC_DESC_INIT;
 *     desc.op = op;
 *     desc.executor = opjit_workers_executor(workers);
 *     desc.first = OPJIT_TIER_INTERPRETED;
 *     opjit_compile_async(context, &desc, &job, &error);
 *     opjit_job_get_kernel(job, &kernel, &error);                          // interpreted until the code is there
 *     opjit_kernel_call(kernel, &call, &error);                            // the same bits, before and after
 *     opjit_job_release(job);                                              // the kernel becomes better all the same
 *
 * Nothing here happens unless it is asked for: no thread is started, and none of the compiling functions of
 * opjit.h waits for one of these jobs, except that two compiles of one key are one.
 *
 * WHO RUNS A JOB.  An opjit_async_executor: the host's (a thread pool, an event loop, a queue that is drained when
 * there is time), or opjit_workers.  It is given a task, which it runs once, whenever and on whichever thread it
 * likes, the submitting one included.  A job that nobody has begun is run by the first thread that waits for it;
 * so a wait comes to an end whatever the executor does.
 *
 * OWNERSHIP.  *desc and everything behind it is copied before opjit_compile_async returns; operators are
 * retained.  Constants of more than 4 KiB are stored once for the job and its kernel (opjit/cache.h), or borrowed
 * with OPJIT_COMPILE_BORROW_CONSTANTS, until the kernel is released.  Executor and user have to last until the job
 * is done.  A job is reference counted: its creator holds one reference, the task another one.
 *
 * CALLBACK.  desc.done is called once for each job that opjit_compile_async made, when poll says DONE and before a
 * wait returns, on the thread on which the job ended: the executor's, one that waited, cancelled or destroyed the
 * context, or the caller of opjit_compile_async, even before that returns.  No lock is held.  It may call every
 * function of opjit: ask the job for its kernel, release the job, submit others, cancel, wait for its own job
 * (which returns at once), destroy the context.  It may not destroy the workers that it runs on.  An event sink, which
 * a compile calls, may submit and cancel jobs, and may not wait for them: that job may need the kernel that the sink
 * is told of.
 *
 * DESTROYING THE CONTEXT with jobs under way cancels them, runs the callbacks of those that had not begun, and
 * waits for those that run.  No job of the context runs and no callback is called after opjit_context_destroy
 * returns, except the callback that called it.  Jobs and kernels stay valid.  Event sinks, which a compile calls,
 * may not destroy the context.
 *
 * FORK.  A child has copies of its parent's jobs.  What a thread of the parent was running counts as not begun: a
 * wait runs it in the child.  Workers get threads of their own in the child when it next submits something.
 *
 * ERRORS.  What is wrong with the description is said by opjit_compile_async, as by opjit_compile_operator and
 * opjit_compile_graph; then there is no job.  What goes wrong later is the job's status and error. */
#ifndef OPJIT_ASYNC_H
#define OPJIT_ASYNC_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- who runs jobs ------------------------------------------------------------------------------------------------ */
/* Of the host, as opjit_executor is for calls.  submit sees to it that task(arg) is run once, now or later, on any
 * thread; task doesn't fail and returns when it is done.  A task whose job was cancelled or waited for returns at
 * once; one that is never run keeps the job's memory.  A status other than OPJIT_OK refuses: then task must not be
 * run, and opjit_compile_async returns that status.  Called by any thread that submits, several at a time.
 * Since 0.1. */
typedef struct opjit_async_executor {
    void *user; /* first argument of submit */
    opjit_status (*submit)(void *user, void (*task)(void *arg), void *arg); /* sees to it that task(arg) is run once */
} opjit_async_executor;

/* Threads of opjit's own that run tasks in the order in which they were submitted.  They are started when there is
 * more to do than threads wait for it, block all signals except those of faults, and are named "opjit compile". */
typedef struct opjit_workers opjit_workers;
#define OPJIT_WORKERS_MAX 64u

/* threads: at most so many, 1 to OPJIT_WORKERS_MAX.  allocator is copied; NULL: malloc and free.  The caller
 * destroys the workers.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_workers_create(const opjit_allocator *allocator, uint32_t threads,
                                                            opjit_workers **out_workers, opjit_error *error);
/* Owned by the workers.  Its submit refuses with UNAVAILABLE where the system gives no thread at all, and with
 * OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API const opjit_async_executor *opjit_workers_executor(const opjit_workers *workers);
/* Runs what was submitted and not begun, on its threads and on the calling one, ends the threads and frees all.
 * Who wants less to be run cancels jobs first, or destroys their context.  Nobody may submit meanwhile, and
 * none of its own threads may call it.  NULL is fine.  [one thread, 0.1] */
OPJIT_API void opjit_workers_destroy(opjit_workers *workers);

/* --- jobs --------------------------------------------------------------------------------------------------------- */
/* A compile that was asked for. */
typedef struct opjit_job opjit_job;

typedef enum opjit_job_state {
    OPJIT_JOB_QUEUED = 0,  /* nobody has begun it */
    OPJIT_JOB_RUNNING = 1, /* it is being compiled */
    OPJIT_JOB_DONE = 2     /* it has a status; its callback may still be running */
} opjit_job_state;

/* What its kernel runs until the job is done. */
typedef enum opjit_tier {
    OPJIT_TIER_NONE = 0,        /* there is no kernel until then */
    OPJIT_TIER_INTERPRETED = 1, /* the IR interpreter: lowering and passes are done when opjit_compile_async returns,
                                   code is made by the job.  Not for a context's device */
    OPJIT_TIER_QUICK = 2        /* code of level quick, compiled or found when opjit_compile_async returns; the job
                                   makes level peak of it.  options.level is PEAK or AUTO, which is PEAK then */
} opjit_tier;

/* desc.done.  job is valid during the call also where nobody else holds it. [any thread, 0.1] */
typedef void (*opjit_job_fn)(void *user, opjit_job *job);

/* What to compile, who runs it, and who is told.  Since 0.1. */
typedef struct opjit_async_desc {
    uint32_t struct_size;                 /* bytes; OPJIT_ASYNC_DESC_INIT sets it */
    uint32_t first;                       /* opjit_tier */
    opjit_operator *op;                   /* retained; NULL: graph or built is set */
    const DML_GRAPH_DESC *graph;          /* copied; NULL: op or built is set */
    const opjit_compile_options *options; /* copied; NULL: as in opjit_compile_operator */
    const opjit_async_executor *executor; /* *executor is copied */
    opjit_job_fn done;                    /* called when the job is done; NULL: nothing is */
    void *user;                           /* its first argument */
    struct opjit_graph *built;            /* a graph of opjit/graph.h, copied with its names as it is now; NULL: op or
                                             graph is set */
} opjit_async_desc;
#define OPJIT_ASYNC_DESC_INIT                                                 \
    {                                                                         \
        sizeof(opjit_async_desc), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
    }

/* Checks the description and submits a job that compiles it, or finds its kernel in the disk cache.  Where the memory
 * cache has the kernel, the job is done at once.  The caller releases *out_job.
 * With a first tier there is a kernel from the beginning.  It runs that tier until the job is done; calls that begin
 * later run the better code, calls under way finish with the old one, and both give the same bits.  With
 * OPJIT_TIER_INTERPRETED it is a kernel of its own, which the memory cache does not have; with OPJIT_TIER_QUICK it is
 * the cache's own kernel, which the job changes as opjit_kernel_optimize does.
 * Errors: those of opjit_compile_operator and opjit_compile_graph that follow from the description; those of making the
 * first tier; UNSUPPORTED (OPJIT_TIER_INTERPRETED for a device); the status with which the executor refused.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_async(opjit_context *context, const opjit_async_desc *desc,
                                                           opjit_job **out_job, opjit_error *error);
/* One reference more, and one less; NULL is fine.  A job that is released is compiled all the same.
 * [any thread, 0.1] */
OPJIT_API void opjit_job_retain(opjit_job *job);
OPJIT_API void opjit_job_release(opjit_job *job);

/* How far the job is; DONE for NULL. [any thread, 0.1] */
OPJIT_API opjit_job_state opjit_job_poll(const opjit_job *job);

/* Waits until the job is done and its callback has returned, and runs the job on this thread where nobody has
 * begun it.  Gives the job's status and error, and where that is OPJIT_OK the kernel with a reference for the
 * caller (out_kernel may be NULL).  CANCELLED: opjit_job_cancel, or the context was destroyed.  INVALID_ARGUMENT:
 * this thread is compiling that very job, and was called by it (an event sink).  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_job_wait(opjit_job *job, opjit_kernel **out_kernel, opjit_error *error);

/* The same for at most timeout_ns nanoseconds, 0: without waiting.  Never runs the job on this thread, which would take
 * longer than that.  UNAVAILABLE, with OPJIT_RETRY_LATER: the job was not done, or its callback had not returned, in
 * that time. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_job_wait_for(opjit_job *job, uint64_t timeout_ns,
                                                          opjit_kernel **out_kernel, opjit_error *error);

/* The kernel with a reference for the caller, without waiting: of a job with a first tier from the beginning and
 * whatever becomes of the job, of others once they are done.  UNAVAILABLE: the job is not done; else its status
 * and error.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_job_get_kernel(const opjit_job *job, opjit_kernel **out_kernel,
                                                            opjit_error *error);

/* Asks a job to end with CANCELLED.  One that nobody has begun is done when this returns, its callback having been
 * called by this thread.  One that runs ends before the next of its steps, or is done before: lowering, each pass, each
 * stage of code, LLVM's verifier, its passes, its code generation, linking.  LLVM can't be interrupted: its code
 * generation for all stages of a kernel is one step, at level peak most of the time.  Where another thread compiles the
 * same kernel, the job ends after that.  Of one that is done nothing changes.  NULL is fine.
 * [any thread, 0.1] */
OPJIT_API void opjit_job_cancel(opjit_job *job);

#ifdef __cplusplus
}
#endif
#endif
