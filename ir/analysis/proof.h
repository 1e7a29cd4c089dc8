/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - shared by the files of this folder only: a walk that remembers intervals. */
#ifndef OPJIT_IR_ANALYSIS_PROOF_H
#define OPJIT_IR_ANALYSIS_PROOF_H

#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

#include <string.h>

/* Walks remember a few nodes and count their steps, so that shared nodes can't make them exponential. */
enum { INTERVAL_SLOTS = 64, INTERVAL_BUDGET = 20000 };

typedef struct interval_walk {
    const ir_func *f;
    uint32_t budget;
    ir_ref node[INTERVAL_SLOTS];
    ir_interval interval[INTERVAL_SLOTS];
} interval_walk;

/* A walk that remembers nothing yet.  Proofs begin thousands of them, so what it has no nodes for stays unset. */
static inline void interval_walk_begin(interval_walk *w, const ir_func *f)
{
    w->f = f;
    w->budget = INTERVAL_BUDGET;
    memset(w->node, 0, sizeof w->node);
}

static inline bool interval_is_empty(ir_interval x)
{
    return x.lo > x.hi;
}

/* --- saturating arithmetic: an end that is at the end of int64 stays there ---------------------------------------- */

static inline bool is_end(int64_t x)
{
    return x == INT64_MIN || x == INT64_MAX;
}

static inline int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (is_end(a))
        return a;
    if (is_end(b))
        return b;
    return checked_addi(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t saturating_mul(int64_t a, int64_t k)
{
    int64_t product;
    if (k == 0)
        return 0;
    if (!is_end(a) && checked_muli(a, k, &product))
        return product;
    return (a < 0) == (k < 0) ? INT64_MAX : INT64_MIN;
}

ir_interval opjit_ir_walk_interval(interval_walk *w, ir_ref expr);
int opjit_ir_walk_decide(interval_walk *w, ir_ref expr); /* prove.c */
bool opjit_ir_is_above(const ir_func *f, const ir_affine *sum); /* counter.c: above 0 at a point that was found */

#endif
