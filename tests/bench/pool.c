/* pool.c - see pool.h. */
#include "tests/bench/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef void (*body_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

/* The counters are in lines of their own: each is written by one thread and watched by the other. */
struct pool {
    opjit_executor executor;
    pthread_t helper;
    body_fn body;
    void *arg;
    uint64_t begin, end;          /* the helper's piece */
    bool stop;
    _Alignas(128) atomic_uint asked;
    _Alignas(128) atomic_uint done;
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void *help(void *argument)
{
    pool *const p = argument;

    for (unsigned seen = 0;;) {
        while (atomic_load_explicit(&p->asked, memory_order_acquire) == seen)
            pause_cpu();
        seen++;
        if (p->stop)
            return NULL;
        p->body(p->arg, 1, p->begin, p->end);
        atomic_store_explicit(&p->done, seen, memory_order_release);
    }
}

static void ask(pool *p)
{
    atomic_fetch_add_explicit(&p->asked, 1, memory_order_release);
}

static opjit_status run(void *user, uint64_t extent, uint64_t grain, body_fn body, void *arg)
{
    pool *const p = user;
    const uint64_t grains = extent / grain + (extent % grain != 0);
    const uint64_t half = (grains + 1) / 2 * grain;

    if (half >= extent) {
        body(arg, 0, 0, extent);
        return OPJIT_OK;
    }
    p->body = body;
    p->arg = arg;
    p->begin = half;
    p->end = extent;
    ask(p);
    body(arg, 0, 0, half);
    while (atomic_load_explicit(&p->done, memory_order_acquire) !=
           atomic_load_explicit(&p->asked, memory_order_relaxed))
        pause_cpu();
    return OPJIT_OK;
}

pool *pool_start(void)
{
    static pool only; /* static, as its counters are aligned beyond what malloc gives */

    only.executor = (opjit_executor){ .user = &only, .workers = 2, .run = run };
    return pthread_create(&only.helper, NULL, help, &only) == 0 ? &only : NULL;
}

void pool_stop(pool *p)
{
    p->stop = true;
    ask(p);
    pthread_join(p->helper, NULL);
}

const opjit_executor *pool_executor(const pool *p)
{
    return &p->executor;
}
