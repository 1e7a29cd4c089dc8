/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - shared by bench_gemm and its references: a product of FLOAT32 matrices, and the peers that make it. */
#ifndef OPJIT_TESTS_BENCH_GEMM_H
#define OPJIT_TESTS_BENCH_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* What is computed of each result. */
typedef enum gemm_end {
    GEMM_PLAIN,
    GEMM_BIAS_RELU,
    GEMM_BIAS_GELU,         /* with erf */
    GEMM_BIAS_GELU_RESIDUAL /* a matrix is added to that */
} gemm_end;

/* out = a b in a batch, dense and row-major: a is {batch, m, k}, b {batch, k, n}, or {batch, n, k} where turned. */
typedef struct gemm {
    uint32_t batch, m, n, k;
    bool turned;
    gemm_end end;
    float *a, *b, *out;
    float *bias, *residual; /* {n}; {batch, m, n}; where the end has them */
    void *panels;           /* by hand: K_BLOCK x COLUMN_BLOCK elements */
} gemm;

enum { GEMM_K_BLOCK = 256, GEMM_COLUMN_BLOCK = 512 };

/* gemm_hand.c: tiles written in C, whose results are the same bits.  A measure_fn; sizes are multiples of the tile. */
void gemm_hand_run(void *arg);
bool gemm_hand_runs(void); /* here */

/* gemm_peers.c: loads OpenBLAS and oneDNN where they are installed, on `threads` threads; wide: with AVX-512, else with
 * AVX2.  Once, before their first call. */
void gemm_peers_open(bool wide, uint32_t threads);
bool gemm_has_blas(void);
void gemm_blas_threads(int threads); /* of the following calls; nothing where OpenBLAS is not installed */
void gemm_blas_run(void *arg);        /* cblas_sgemm of a gemm without an end */
void gemm_blas_vector_run(void *arg); /* cblas_sgemv; m is 1 */
/* oneDNN's matmul with the end as its post-operations.  NULL: not installed, or it has none. */
struct gemm_dnn;
struct gemm_dnn *gemm_dnn_make(const gemm *g);
void gemm_dnn_run(void *dnn);
void gemm_dnn_free(struct gemm_dnn *dnn);

#endif
