/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - timing for `opjit bench` and tests/bench: interleaved pairs in one process, median ratio with a 95 %
 * interval. Only ratios of one run mean anything on a shared machine; absolute times are printed beside them. */
#ifndef OPJIT_CLI_MEASURE_H
#define OPJIT_CLI_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*measure_fn)(void *arg);

typedef struct measure_pair {
    double a_ns, b_ns;     /* median time of one call */
    double ratio;          /* median of a / b over the pairs */
    double lo, hi;         /* 95 % interval of that median, by order statistics */
    uint32_t pairs, inner; /* pairs measured; calls per sample */
} measure_pair;

/* Runs a and b in turns, `pairs` times (at least 9, at most MEASURE_MAX_PAIRS), the order of the two alternating.  A
 * sample is as many calls as take at least sample_us; both sides get the same number.  Time is this thread's CPU
 * time: what other processes take from it in between is not counted. */
#define MEASURE_MAX_PAIRS 201
void measure_run(measure_fn a, void *a_arg, measure_fn b, void *b_arg, uint32_t pairs, double sample_us,
                 measure_pair *out);

/* Median of n samples (at least 9) and its 95 % interval.  Sorts them. */
void measure_median(double *samples, uint32_t n, double *median, double *lo, double *hi);

/* The same by the clock on the wall, for work that other threads share in. */
void measure_run_wall(measure_fn a, void *a_arg, measure_fn b, void *b_arg, uint32_t pairs, double sample_us,
                      measure_pair *out);

/* The same by a clock of the caller's, in ns. */
typedef double (*measure_clock)(const void *user);
void measure_run_clock(measure_clock clock, const void *user, measure_fn a, void *a_arg, measure_fn b, void *b_arg,
                       uint32_t pairs, double sample_us, measure_pair *out);

double measure_now_ns(void); /* CLOCK_MONOTONIC */
double measure_cpu_ns(void); /* CPU time of this thread */
double measure_process_ns(void); /* of the process since its start, its loading included */
double measure_resident(void);   /* bytes of the process in memory; NAN: not told */

/* Touched memory of `bytes`, 2 MiB aligned and on huge pages where the system has them; NULL: no memory. */
void *measure_buffer(size_t bytes);
void measure_buffer_free(void *buffer, size_t bytes);

#endif
