/* SPDX-License-Identifier: Apache-2.0 */
/* executors.c - pieces of random length in random order, alone or on two threads. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/executors.h"

#include <pthread.h>

#define MOST_PIECES 24
#define WORKERS 2u

typedef void (*piece_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

typedef struct piece { uint64_t begin, end; } piece;

typedef struct share {
    piece_fn body;
    void *arg;
    const piece *pieces;
    uint32_t first, count, worker;
} share;

/* Cuts [0, extent) at random multiples of grain and shuffles the pieces. */
static uint32_t cut(test_random *r, uint64_t extent, uint64_t grain, piece pieces[MOST_PIECES])
{
    const uint64_t units = (extent + grain - 1) / grain;
    uint32_t count = 0;
    for (uint64_t at = 0; at < units;) {
        uint64_t length = 1 + test_random_below(r, units / (MOST_PIECES / 3) + 1);
        if (length > units - at || count == MOST_PIECES - 1)
            length = units - at;
        const piece next = { at * grain, at + length == units ? extent : (at + length) * grain };
        const uint32_t place = (uint32_t)test_random_below(r, count + 1);
        if (place != count)
            pieces[count] = pieces[place];
        pieces[place] = next;
        count++;
        at += length;
    }
    return count;
}

static void *run_share(void *argument)
{
    const share *s = argument;
    for (uint32_t i = s->first; i < s->count; i += WORKERS)
        s->body(s->arg, s->worker, s->pieces[i].begin, s->pieces[i].end);
    return NULL;
}

static opjit_status run(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    test_executor *e = user;
    piece pieces[MOST_PIECES];
    if (grain == 0)
        return OPJIT_INTERNAL;
    const uint32_t count = cut(e->random, extent, grain, pieces);
    if (e->threads) {
        const share mine = { body, arg, pieces, 0, count, 0 };
        share other = { body, arg, pieces, 1, count, 1 };
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_share, &other) != 0)
            return OPJIT_OUT_OF_MEMORY;
        run_share((void *)&mine);
        pthread_join(thread, NULL);
        return OPJIT_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        body(arg, (uint32_t)test_random_below(e->random, WORKERS), pieces[i].begin, pieces[i].end);
    return OPJIT_OK;
}

void test_executor_init(test_executor *e, test_random *r, bool threads)
{
    e->executor = (opjit_executor){ e, WORKERS, run };
    e->random = r;
    e->threads = threads;
}
