/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - an executor of two threads for benchmarks, with a helper that waits spinning: handing work over costs well
 * below a microsecond, so that the work itself is measured.  Runs kernels and the yardstick alike.  Not for
 * applications: an idle helper occupies a core. */
#ifndef OPJIT_TESTS_BENCH_POOL_H
#define OPJIT_TESTS_BENCH_POOL_H

#include <opjit/abi.h>

typedef struct pool pool;

/* Starts the helper; NULL: that failed.  One pool per process. */
pool *pool_start(void);
void pool_stop(pool *p);
const opjit_executor *pool_executor(const pool *p);
/* A measure_clock of the pool p: CPU time of all runs so far, half of what both threads used.  That is what a machine
 * with two free cores would take, even if other processes use some of this one's. */
double pool_cpu_ns(const void *p);

#endif
