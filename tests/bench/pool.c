/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - see pool.h. */
#include "tests/bench/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "frontend/cli/measure/measure.h"

enum { PIECES = 32 };

typedef void (*body_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

/* The counters are in lines of their own: one thread writes each, the other one watches it. */
struct pool {
    opjit_executor executor;
    pthread_t helper;
    body_fn body;
    void *arg;
    uint64_t extent, piece;       /* iterations; of a piece, except the last one */
    double helper_ns, total_ns;   /* CPU time: of the helper's pieces; of all runs, half of both threads' */
    bool stop;
    _Alignas(128) atomic_uint claimed; /* pieces */
    _Alignas(128) atomic_uint asked;
    _Alignas(128) atomic_uint done;
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Worker 0 takes pieces from the front, worker 1 from the end, until they meet: rows may take different times. */
static void take_pieces(pool *p, uint32_t worker)
{
    for (uint64_t k = 0; atomic_fetch_add_explicit(&p->claimed, 1, memory_order_relaxed) < PIECES; k++) {
        const uint64_t begin = (worker == 0 ? k : PIECES - 1 - k) * p->piece, end = begin + p->piece;

        if (begin < p->extent)
            p->body(p->arg, worker, begin, end < p->extent ? end : p->extent);
    }
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
        const double start = measure_cpu_ns();
        take_pieces(p, 1);
        p->helper_ns = measure_cpu_ns() - start;
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
    const double start = measure_cpu_ns();

    if (grains < 2) {
        body(arg, 0, 0, extent);
        p->total_ns += measure_cpu_ns() - start;
        return OPJIT_OK;
    }
    p->body = body;
    p->arg = arg;
    p->extent = extent;
    p->piece = (grains + PIECES - 1) / PIECES * grain;
    atomic_store_explicit(&p->claimed, 0, memory_order_relaxed);
    ask(p);
    take_pieces(p, 0);
    const double own_ns = measure_cpu_ns() - start;
    while (atomic_load_explicit(&p->done, memory_order_acquire) !=
           atomic_load_explicit(&p->asked, memory_order_relaxed))
        pause_cpu();
    p->total_ns += (own_ns + p->helper_ns) / 2;
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

double pool_cpu_ns(const void *p)
{
    return ((const pool *)p)->total_ns;
}
