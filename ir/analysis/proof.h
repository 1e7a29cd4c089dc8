/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - shared by the files of this folder only: a walk that remembers intervals. */
#ifndef OPJIT_IR_ANALYSIS_PROOF_H
#define OPJIT_IR_ANALYSIS_PROOF_H

#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

/* Walks remember a few nodes and count their steps, so that shared nodes can't make them exponential. */
enum { INTERVAL_SLOTS = 64, INTERVAL_BUDGET = 20000 };

typedef struct interval_walk {
    const ir_func *f;
    uint32_t budget;
    ir_ref node[INTERVAL_SLOTS];
    ir_interval interval[INTERVAL_SLOTS];
} interval_walk;

static inline bool interval_is_empty(ir_interval x)
{
    return x.lo > x.hi;
}

/* Saturating: an end that is at the end of int64 stays there. */
ir_interval opjit_ir_interval_add(ir_interval a, ir_interval b);
ir_interval opjit_ir_interval_mul(ir_interval a, int64_t k);
ir_interval opjit_ir_walk_interval(interval_walk *w, ir_ref expr);
int opjit_ir_walk_decide(interval_walk *w, ir_ref expr); /* prove.c */

#endif
