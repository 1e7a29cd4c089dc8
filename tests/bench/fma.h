/* SPDX-License-Identifier: Apache-2.0 */
/* fma.h - loops of nothing but fma, in 12 chains of which none waits: what the machine can do at most. */
#ifndef OPJIT_TESTS_BENCH_FMA_H
#define OPJIT_TESTS_BENCH_FMA_H

#include <stdbool.h>
#include <stdint.h>

/* A measure_fn's argument. */
typedef struct fma_alone {
    uint64_t rounds; /* of FMA_CHAINS fma of vectors */
    bool wide;       /* 16 elements of FLOAT32; else 8 */
} fma_alone;

enum { FMA_CHAINS = 12 };

/* Runs a fma_alone; the machine has AVX-512, or FMA and AVX2.  Elsewhere nothing. */
void fma_alone_run(void *arg);

#endif
