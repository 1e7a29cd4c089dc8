/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - opjit_workers: threads that run tasks one after the other.  A thread is started when more is queued than
 * threads wait for it.  In a child of fork there are none, and the next submit starts some. */
#define _GNU_SOURCE
#include <opjit/async.h>

#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/base/base.h"
#include "runtime/base/lock.h"

typedef struct task {
    struct task *next;
    void (*run)(void *arg);
    void *arg;
} task;

struct opjit_workers {
    opjit_async_executor executor;
    opjit_allocator allocator;
    rt_process process;
    rt_lock lock;        /* of all below */
    atomic_uint changed; /* counts what idle threads wait for */
    task *first, **end;
    uint32_t queued, idle, started, threads;
    uint32_t owner; /* the process that the threads are in */
    bool stop;
    pthread_t handles[];
};

/* --- the queue, with the lock held -------------------------------------------------------------------------------- */

static void lock(opjit_workers *w)
{
    if (!opjit_rt_lock(&w->lock))
        return;
    w->first = NULL; /* a thread of the parent was changing it */
    w->end = &w->first;
    w->queued = 0;
}

static task *take(opjit_workers *w)
{
    task *t = w->first;

    if (t == NULL)
        return NULL;
    w->first = t->next;
    if (w->first == NULL)
        w->end = &w->first;
    w->queued--;
    return t;
}

/* Runs tasks until there are none.  The lock is held when it begins and ends, not while a task runs. */
static void drain(opjit_workers *w)
{
    task *t;

    while ((t = take(w)) != NULL) {
        opjit_rt_unlock(&w->lock);
        t->run(t->arg);
        opjit_rt_release(&w->allocator, t, sizeof *t);
        lock(w);
    }
}

static void *work(void *arg)
{
    opjit_workers *w = arg;

    pthread_setname_np(pthread_self(), "opjit compile");
    lock(w);
    for (;;) {
        drain(w);
        if (w->stop)
            break;
        const uint32_t seen = atomic_load(&w->changed);
        w->idle++;
        opjit_rt_unlock(&w->lock);
        opjit_rt_await(&w->changed, seen);
        lock(w);
        w->idle--;
    }
    opjit_rt_unlock(&w->lock);
    return NULL;
}

/* All signals are blocked, except those of faults: the host's handlers run on its own threads. */
static bool start_thread(opjit_workers *w)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    sigset_t blocked, before;
    bool good;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    good = pthread_create(&w->handles[w->started], NULL, work, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->started += good;
    return good;
}

static opjit_status submit(void *user, void (*run)(void *arg), void *arg)
{
    opjit_workers *w = user;
    task *t = opjit_rt_allocate(&w->allocator, sizeof *t, alignof(task));
    bool good = true;

    if (t == NULL)
        return OPJIT_OUT_OF_MEMORY;
    *t = (task){ NULL, run, arg };
    lock(w);
    if (w->owner != rt_process_number(&w->process)) {
        w->owner = rt_process_number(&w->process);
        w->started = w->idle = 0;
    }
    if (w->queued + 1 > w->idle && w->started < w->threads)
        good = start_thread(w) || w->started != 0;
    if (good) {
        *w->end = t;
        w->end = &t->next;
        w->queued++;
    }
    opjit_rt_unlock(&w->lock);
    if (good)
        opjit_rt_wake_all(&w->changed);
    else
        opjit_rt_release(&w->allocator, t, sizeof *t);
    return good ? OPJIT_OK : OPJIT_UNAVAILABLE;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static size_t workers_size(uint32_t threads)
{
    return sizeof(opjit_workers) + threads * sizeof(pthread_t);
}

opjit_status opjit_workers_create(const opjit_allocator *allocator, uint32_t threads, opjit_workers **out_workers,
                                  opjit_error *error)
{
    const opjit_allocator a = allocator == NULL ? opjit_rt_default_allocator : *allocator;
    opjit_workers *w;

    opjit_rt_error_clear(error);
    if (out_workers == NULL)
        return opjit_rt_refuse_null(error, "out_workers");
    *out_workers = NULL;
    TRY(opjit_rt_check_allocator(&a, error));
    if (threads == 0 || threads > OPJIT_WORKERS_MAX)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{threads}: {%u}, must be 1 to %u", threads,
                               OPJIT_WORKERS_MAX);
    w = opjit_rt_allocate(&a, workers_size(threads), alignof(opjit_workers));
    if (w == NULL)
        return opjit_rt_no_memory(error);
    memset(w, 0, workers_size(threads));
    w->executor = (opjit_async_executor){ w, submit };
    w->allocator = a;
    w->threads = threads;
    w->end = &w->first;
    opjit_rt_process_init(&w->process);
    opjit_rt_lock_init(&w->lock, &w->process);
    w->owner = rt_process_number(&w->process);
    *out_workers = w;
    return OPJIT_OK;
}

const opjit_async_executor *opjit_workers_executor(const opjit_workers *workers)
{
    return workers == NULL ? NULL : &workers->executor;
}

void opjit_workers_destroy(opjit_workers *workers)
{
    uint32_t started;

    if (workers == NULL)
        return;
    const opjit_allocator a = workers->allocator;
    lock(workers);
    workers->stop = true;
    started = workers->owner == rt_process_number(&workers->process) ? workers->started : 0;
    opjit_rt_unlock(&workers->lock);
    opjit_rt_wake_all(&workers->changed);
    lock(workers);
    drain(workers);
    opjit_rt_unlock(&workers->lock);
    for (uint32_t i = 0; i < started; i++) /* else the threads are another process's */
        pthread_join(workers->handles[i], NULL);
    opjit_rt_process_free(&workers->process);
    opjit_rt_release(&a, workers, workers_size(workers->threads));
}
