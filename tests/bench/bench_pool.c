/* SPDX-License-Identifier: Apache-2.0 */
/* bench_pool.c - the cost of opjit's pool: empty runs, and memset split by it on one and two threads, against memset on
 * this thread; and the same on a helper that never sleeps and gets one half (pool.h), which is the best possible. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <opjit/opjit.h>

#include "tests/bench/pool.h"
#include "tests/bench/report.h"

#define SAMPLE_US 300.0
#define LARGEST (UINT64_C(64) << 20)
#define GRAIN (UINT64_C(64) << 10) /* a kernel's piece */

typedef struct task {
    const opjit_executor *executor; /* NULL: one call on this thread */
    char *out;
    uint64_t bytes, grain; /* no bytes: two pieces of nothing */
} task;

static void nothing(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    (void)arg;
    (void)worker;
    (void)begin;
    (void)end;
}

static void fill(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const task *const t = arg;

    (void)worker;
    memset(t->out + begin, 1, end - begin);
}

static void run_task(void *arg)
{
    task *const t = arg;

    if (t->executor == NULL)
        fill(t, 0, 0, t->bytes);
    else if (t->bytes == 0)
        (void)t->executor->run(t->executor->user, 2, 1, nothing, t);
    else
        (void)t->executor->run(t->executor->user, t->bytes, t->grain, fill, t);
}

static report_row make_row(const char *name, const char *reference)
{
    return (report_row){ .name = name,
                         .reference = reference,
                         .ns = NAN,
                         .bytes = NAN,
                         .memset_ratio = NAN,
                         .ratio = NAN,
                         .lo = NAN,
                         .hi = NAN };
}

static void put(report *r, const char *name, task *ours, const char *reference, task *theirs, bool bar)
{
    report_row row = make_row(name, reference);
    measure_pair pair;

    if (!report_wants(r, name))
        return;
    measure_run_wall(run_task, ours, run_task, theirs, r->pairs, SAMPLE_US, &pair);
    row.ns = pair.a_ns;
    row.ratio = pair.ratio;
    row.lo = pair.lo;
    row.hi = pair.hi;
    if (ours->bytes != 0)
        row.bytes = (double)ours->bytes;
    if (bar) {
        row.bar = BAR_AT_MOST;
        row.limit = ours->bytes == 0 ? 2000 : 1.05;
        row.in_ns = ours->bytes == 0;
        row.ns_lo = pair.lo * pair.b_ns;
        row.ns_hi = pair.hi * pair.b_ns;
    }
    report_put(r, &row);
}

/* Single empty runs: after a pause, when the helper sleeps, or after work that woke it. */
static void put_single(report *r, const char *name, const opjit_executor *executor, task *before)
{
    const struct timespec rest = { 0, 2000000 };
    report_row row = make_row(name, "");
    task t = { .executor = executor };
    double samples[101];

    if (!report_wants(r, row.name))
        return;
    for (uint32_t i = 0; i < 101; i++) {
        if (before != NULL)
            run_task(before);
        else
            nanosleep(&rest, NULL);
        const double start = measure_now_ns();
        run_task(&t);
        samples[i] = measure_now_ns() - start;
    }
    measure_median(samples, 101, &row.ns, &row.ns_lo, &row.ns_hi);
    row.bar = BAR_AT_MOST;
    row.limit = 2000;
    row.in_ns = true;
    report_put(r, &row);
}

static void put_fills(report *r, const char *name, const opjit_executor *executor, uint64_t pieces, char *out)
{
    for (uint64_t bytes = 16 << 10; bytes <= LARGEST; bytes *= 4) {
        task alone = { NULL, out, bytes, GRAIN };
        task shared = { executor, out, bytes, pieces == 0 ? GRAIN : bytes / pieces };

        put(r, name, &shared, "memset", &alone, pieces == 0);
    }
}

/* Starts and ends the yardstick first: while its helper spins there is no core for another. */
static bool put_spinning(report *r, char *out)
{
    pool *const spinning = pool_start();
    task empty = { .executor = spinning != NULL ? pool_executor(spinning) : NULL }, call = { .out = out };

    if (spinning == NULL)
        return false;
    put(r, "empty run, spinning helper", &empty, "memset of nothing", &call, false);
    put_fills(r, "halves, spinning helper", pool_executor(spinning), 2, out);
    pool_stop(spinning);
    return true;
}

int main(int argc, char **argv)
{
    opjit_pool *one = NULL, *two = NULL;
    opjit_error error = { 0 };
    report r;
    const int usage = report_options(&r, argc, argv);
    char *out;

    if (usage != 0)
        return usage;
    out = measure_buffer(LARGEST);
    if (out == NULL || opjit_pool_create(NULL, 1, &one, &error) != OPJIT_OK ||
        opjit_pool_create(NULL, 2, &two, &error) != OPJIT_OK) {
        fprintf(stderr, "bench_pool: %s\n", out == NULL ? "no memory" : error.message);
        return 1;
    }
    report_begin(&r, "pool", "");
    if (!put_spinning(&r, out)) {
        fprintf(stderr, "bench_pool: no thread\n");
        return 1;
    }
    task warm = { opjit_pool_executor(two), out, LARGEST, GRAIN }, call = { .out = out };
    task empty = { .executor = warm.executor }, wake = { warm.executor, out, 1 << 20, GRAIN };
    run_task(&warm); /* starts the helper */
    put(&r, "empty run, pool of 2", &empty, "memset of nothing", &call, true);
    put_single(&r, "empty run, helper asleep", warm.executor, NULL);
    put_single(&r, "empty run, helper awake", warm.executor, &wake);
    put_fills(&r, "fill, pool of 1", opjit_pool_executor(one), 0, out);
    put_fills(&r, "fill, pool of 2", warm.executor, 0, out);
    opjit_pool_destroy(one);
    opjit_pool_destroy(two);
    measure_buffer_free(out, LARGEST);
    return report_end(&r);
}
