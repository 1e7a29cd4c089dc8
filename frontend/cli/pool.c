/* pool.c - `--threads N`: an executor that splits each stage among threads.  Threads live for one stage only:
 * starting them costs some 20 us, which the stages that are worth splitting don't feel. */
#include <pthread.h>

#include "frontend/cli/cli.h"

#define THREADS_MAX 256u

typedef struct piece {
    void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);
    void *arg;
    uint32_t worker;
    uint64_t begin, end;
} piece;

static void *run_piece(void *argument)
{
    const piece *const p = argument;
    p->body(p->arg, p->worker, p->begin, p->end);
    return NULL;
}

static opjit_status run_stage(void *user, uint64_t extent, uint64_t grain,
                              void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    const uint32_t threads = *(const uint32_t *)user;
    const uint64_t grains = extent / grain + (extent % grain != 0);
    piece pieces[THREADS_MAX];
    pthread_t handles[THREADS_MAX];
    bool started[THREADS_MAX] = { false };
    uint64_t begin = 0;
    uint32_t count = 0;
    for (; count < threads && begin < extent; count++) {
        const uint64_t share = grains / threads + (count < grains % threads);
        const uint64_t left = extent - begin;
        const uint64_t length = share * grain < left ? share * grain : left;
        pieces[count] = (piece){ body, arg, count, begin, begin + length };
        begin += length;
    }
    /* The first piece is this thread's own, and so is one whose thread can't be started. */
    for (uint32_t i = 1; i < count; i++)
        started[i] = pthread_create(&handles[i], NULL, run_piece, &pieces[i]) == 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!started[i])
            run_piece(&pieces[i]);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (started[i])
            pthread_join(handles[i], NULL);
    }
    return OPJIT_OK;
}

opjit_executor opjit_cli_executor(uint32_t *threads)
{
    if (*threads > THREADS_MAX)
        *threads = THREADS_MAX;
    return (opjit_executor){ .user = threads, .workers = *threads, .run = run_stage };
}
