/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - interleaved pairs and their median ratio.  No threads, no statistics beyond order statistics. */
#define _GNU_SOURCE
#include "frontend/cli/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { huge_page = 2 << 20 };

static double clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double measure_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

double measure_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double measure_process_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double measure_resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *const f = fopen("/proc/self/statm", "re");
    const bool good = f != NULL && fscanf(f, "%lu %lu", &size, &pages) == 2;

    if (f != NULL)
        fclose(f);
    return good ? (double)pages * (double)sysconf(_SC_PAGESIZE) : NAN;
}

/* A clock with what it is called with. */
typedef struct timer {
    measure_clock now;
    const void *user;
} timer;

static double thread_time(const void *unused)
{
    (void)unused;
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static double wall_time(const void *unused)
{
    (void)unused;
    return clock_ns(CLOCK_MONOTONIC);
}

static double sample(timer t, measure_fn fn, void *arg, uint32_t inner)
{
    const double start = t.now(t.user);

    for (uint32_t i = 0; i < inner; i++)
        fn(arg);
    return (t.now(t.user) - start) / inner;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The order statistics that enclose the median of n values with at least 95 %: values[k] and values[n - 1 - k] for the
 * largest k with P(Binomial(n, 1/2) < k + 1) <= 0.025. */
static uint32_t interval_index(uint32_t n)
{
    double term = 1, sum;
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        term /= 2;
    sum = term;
    while (sum + term * (n - k) / (k + 1) <= 0.025) {
        term *= (double)(n - k) / (k + 1);
        sum += term;
        k++;
    }
    return k;
}

void measure_median(double *samples, uint32_t n, double *median, double *lo, double *hi)
{
    const uint32_t k = interval_index(n);

    qsort(samples, n, sizeof *samples, compare);
    *median = samples[n / 2];
    *lo = samples[k];
    *hi = samples[n - 1 - k];
}

static void run_pairs(timer clock, measure_fn a, void *a_arg, measure_fn b, void *b_arg, uint32_t pairs,
                      double sample_us, measure_pair *out)
{
    double a_ns[MEASURE_MAX_PAIRS], b_ns[MEASURE_MAX_PAIRS], ratios[MEASURE_MAX_PAIRS];
    const uint32_t n = pairs < 9 ? 9 : pairs > MEASURE_MAX_PAIRS ? MEASURE_MAX_PAIRS : pairs;
    double unused[2];
    uint32_t inner = 1;

    sample(clock, a, a_arg, 1);
    sample(clock, b, b_arg, 1);
    while (inner < 1u << 24) {
        const double t = sample(clock, a, a_arg, inner) + sample(clock, b, b_arg, inner);

        if (t * inner >= 2 * sample_us * 1e3)
            break;
        inner *= 2;
    }
    for (uint32_t i = 0; i < n; i++) {
        const bool b_first = i % 2 != 0;

        if (b_first)
            b_ns[i] = sample(clock, b, b_arg, inner);
        a_ns[i] = sample(clock, a, a_arg, inner);
        if (!b_first)
            b_ns[i] = sample(clock, b, b_arg, inner);
        ratios[i] = a_ns[i] / b_ns[i];
    }
    *out = (measure_pair){ .pairs = n, .inner = inner };
    measure_median(a_ns, n, &out->a_ns, &unused[0], &unused[1]);
    measure_median(b_ns, n, &out->b_ns, &unused[0], &unused[1]);
    measure_median(ratios, n, &out->ratio, &out->lo, &out->hi);
}

void measure_run(measure_fn a, void *a_arg, measure_fn b, void *b_arg, uint32_t pairs, double sample_us,
                 measure_pair *out)
{
    run_pairs((timer){ thread_time, NULL }, a, a_arg, b, b_arg, pairs, sample_us, out);
}

void measure_run_wall(measure_fn a, void *a_arg, measure_fn b, void *b_arg, uint32_t pairs, double sample_us,
                      measure_pair *out)
{
    run_pairs((timer){ wall_time, NULL }, a, a_arg, b, b_arg, pairs, sample_us, out);
}

void measure_run_clock(measure_clock clock, const void *user, measure_fn a, void *a_arg, measure_fn b, void *b_arg,
                       uint32_t pairs, double sample_us, measure_pair *out)
{
    run_pairs((timer){ clock, user }, a, a_arg, b, b_arg, pairs, sample_us, out);
}

static size_t mapped_bytes(size_t bytes)
{
    return (bytes + huge_page - 1) / huge_page * huge_page;
}

void *measure_buffer(size_t bytes)
{
    const size_t size = mapped_bytes(bytes);
    char *p = mmap(NULL, size + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *aligned;

    if (p == MAP_FAILED)
        return NULL;
    aligned = (char *)(((uintptr_t)p + huge_page - 1) / huge_page * huge_page);
    if (aligned != p)
        munmap(p, (size_t)(aligned - p));
    if (aligned + size != p + size + huge_page)
        munmap(aligned + size, (size_t)(p + size + huge_page - (aligned + size)));
    (void)madvise(aligned, size, MADV_HUGEPAGE);
    memset(aligned, 0x5a, size);
    return aligned;
}

void measure_buffer_free(void *buffer, size_t bytes)
{
    if (buffer != NULL)
        munmap(buffer, mapped_bytes(bytes));
}
