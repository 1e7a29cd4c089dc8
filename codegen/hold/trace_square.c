/* SPDX-License-Identifier: Apache-2.0 */
/* trace_square.c - a square of lanes of 4 bytes, transposed: first the squares of 4 x 4 lanes that are in 16 bytes of
 * four vectors, then the squares of blocks of 16 bytes. */
#include "codegen/hold/trace.h"

enum { BLOCK = 4 /* lanes */ };

/* Four vectors: lane i of each 16 bytes of v[j] becomes lane j of v[i]. */
static void turn_lanes(uint32_t *v, uint32_t lanes, cg_trace_pair_fn *pair, void *user)
{
    const uint32_t low = pair(user, CG_PAIR_LOW, lanes, v[0], v[1]), high = pair(user, CG_PAIR_HIGH, lanes, v[0], v[1]);
    const uint32_t low2 = pair(user, CG_PAIR_LOW, lanes, v[2], v[3]);
    const uint32_t high2 = pair(user, CG_PAIR_HIGH, lanes, v[2], v[3]);
    v[0] = pair(user, CG_PAIR_LOW_TWO, lanes, low, low2);
    v[1] = pair(user, CG_PAIR_HIGH_TWO, lanes, low, low2);
    v[2] = pair(user, CG_PAIR_LOW_TWO, lanes, high, high2);
    v[3] = pair(user, CG_PAIR_HIGH_TWO, lanes, high, high2);
}

/* Two or four vectors BLOCK apart: block i of the j-th becomes block j of the i-th. */
static void turn_blocks(uint32_t *v, uint32_t lanes, cg_trace_pair_fn *pair, void *user)
{
    const uint32_t even = pair(user, CG_PAIR_EVEN, lanes, v[0], v[BLOCK]);
    const uint32_t odd = pair(user, CG_PAIR_ODD, lanes, v[0], v[BLOCK]);
    if (lanes == 2 * BLOCK) {
        v[0] = even;
        v[BLOCK] = odd;
        return;
    }
    const uint32_t even2 = pair(user, CG_PAIR_EVEN, lanes, v[2 * BLOCK], v[3 * BLOCK]);
    const uint32_t odd2 = pair(user, CG_PAIR_ODD, lanes, v[2 * BLOCK], v[3 * BLOCK]);
    v[0] = pair(user, CG_PAIR_EVEN, lanes, even, even2);
    v[BLOCK] = pair(user, CG_PAIR_EVEN, lanes, odd, odd2);
    v[2 * BLOCK] = pair(user, CG_PAIR_ODD, lanes, even, even2);
    v[3 * BLOCK] = pair(user, CG_PAIR_ODD, lanes, odd, odd2);
}

void opjit_cg_trace_square(uint32_t *v, uint32_t lanes, cg_trace_pair_fn *pair, void *user)
{
    for (uint32_t i = 0; i < lanes; i += BLOCK)
        turn_lanes(v + i, lanes, pair, user);
    for (uint32_t i = 0; i < BLOCK && lanes > BLOCK; i++)
        turn_blocks(v + i, lanes, pair, user);
}
