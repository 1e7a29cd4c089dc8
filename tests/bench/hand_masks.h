/* SPDX-License-Identifier: Apache-2.0 */
/* hand_masks.h - the yardstick of fused graphs: causal masks with ALiBi slopes under exp, causal softmax, chains of
 * cheap operators, as an expert writes them for AVX2 and FMA, and for AVX-512.  The numerics are the library's: the
 * same polynomial of exp, sums in 32 lanes that are folded by halves, no fused multiply-add that the formula lacks; so
 * results are compared bit for bit.  It may assume aligned rows of whole lines, and no NaN in chains' rows. */
#ifndef OPJIT_TESTS_BENCH_HAND_MASKS_H
#define OPJIT_TESTS_BENCH_HAND_MASKS_H

#include "tests/bench/hand.h"

typedef struct hand_masks_job {
    const float *in, *more; /* more: slopes, one per head; or a chain's row */
    float *out;
    uint64_t rows, columns; /* of a head; columns at most 4096, a multiple of 16 */
    uint32_t length;        /* of a chain, 0 to 15; 0 copies */
    hand_mode mode;
    bool again;             /* chains: uses the piece's first row for all rows, so that it stays in the first cache */
} hand_masks_job;

/* Does rows [begin, end) of all heads. */
typedef void (*hand_masks_fn)(const hand_masks_job *job, uint64_t begin, uint64_t end);

typedef struct hand_masks {
    const char *name; /* "avx2" */
    hand_masks_fn alibi_exp, causal_softmax, chain;
} hand_masks;
extern const hand_masks hand_masks_avx2, hand_masks_avx512;

/* The widest version that both this machine and a target of that text have; NULL: none. */
const hand_masks *hand_masks_get(const char *target);

#endif
