/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c - decides exactly whether two coordinates of a strided layout share an element.  Integers only, no tensors.
 *
 * Two coordinates share one exactly if sum(d[i] * stride[i]) = 0 for a difference d other than 0, |d[i]| < size[i].
 * Almost every layout in use is decided by the nesting test (each stride passes over everything below it); the others
 * by counting (more coordinates than elements in the span), or by a search over d, the largest stride
 * first, where the rest's reach bounds each d[i] and the rest's gcd fixes its residue.  In the worst case that is a
 * knapsack, so the search has a bound. */
#include "frontend/frontend.h"

/* A dimension of size above 1, largest stride first.  Everything that does not depend on the search's state is computed
 * once per dimension, because the search may take a million steps. */
typedef struct dimension {
    int64_t stride, most; /* most: size - 1, the largest |d[i]| */
    int64_t reach;        /* sum of most * stride from this dimension on */
    int64_t gcd;          /* of the strides from this dimension on */
    int64_t step;         /* d[i] is fixed modulo this ... */
    int64_t inverse;      /* ... to target / gcd times this */
} dimension;

typedef struct search {
    dimension dims[OPJIT_MAX_RANK + 1]; /* [count] is all zero; those after it are unset */
    uint32_t count, steps;
} search;

/* The inverse of a modulo m, which are coprime; m >= 1. */
static int64_t inverse(int64_t a, int64_t m)
{
    int64_t r0 = m, r1 = a % m, t0 = 0, t1 = 1;

    while (r1 != 0) {
        const int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
        r0 = r1, r1 = r;
        t0 = t1, t1 = t;
    }
    return t0 < 0 ? t0 + m : t0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether some d[i], d[i + 1], ... produce target, which is within their reach.  zero: all d before i are 0, so all
 * zeros is not an answer. */
static fe_overlap find(search *s, uint32_t i, int64_t target, bool zero)
{
    const dimension *here = &s->dims[i], *rest = here + 1;
    int64_t lo, hi;

    if (s->steps++ >= FE_OVERLAP_STEPS)
        return FE_UNDECIDED;
    if (target % here->gcd != 0)
        return FE_DISJOINT;
    if (i + 1 == s->count)
        return zero ? FE_DISJOINT : FE_SHARED;

    /* The rest must reach target - d * stride ... */
    lo = -floor_div(rest->reach - target, here->stride);
    hi = floor_div(rest->reach + target, here->stride);
    lo = lo < -here->most ? -here->most : lo;
    hi = hi > here->most ? here->most : hi;
    if (zero && lo < 0)
        lo = 0; /* d and -d are the same pair of coordinates */
    /* ... and yields only multiples of its gcd; step is below 2^31, because two strides fit into the span */
    if (here->step > 1) {
        const int64_t factor = target / here->gcd % here->step * here->inverse % here->step;
        lo += ((factor - lo) % here->step + here->step) % here->step;
    }
    for (int64_t d = lo; d <= hi; d += here->step) {
        const fe_overlap found = find(s, i + 1, target - d * here->stride, zero && d == 0);
        if (found != FE_DISJOINT)
            return found;
    }
    return FE_DISJOINT;
}

/* Inserts the dimension before those of smaller stride. */
static void insert(search *s, uint64_t size, uint64_t stride)
{
    uint32_t at = s->count++;

    for (; at > 0 && s->dims[at - 1].stride < (int64_t)stride; at--)
        s->dims[at] = s->dims[at - 1];
    s->dims[at] = (dimension){ .stride = (int64_t)stride, .most = (int64_t)size - 1 };
}

/* Computes what the search needs beyond reach.  Few layouts get that far, and these divisions are the most expensive
 * part. */
static void prepare(search *s)
{
    for (uint32_t i = s->count; i-- > 0;) {
        dimension *here = &s->dims[i];
        const dimension *rest = here + 1;
        here->gcd = gcd(here->stride, rest->gcd);
        here->step = rest->gcd / here->gcd;
        here->inverse = here->step > 1 ? inverse(here->stride / here->gcd, here->step) : 0;
    }
}

fe_overlap opjit_fe_layout_overlap(uint32_t rank, const uint64_t *sizes, const uint64_t *strides)
{
    search s;
    uint64_t elements = 1;
    bool nested = true;

    s.count = s.steps = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes[i] == 1)
            continue;
        if (strides[i] == 0)
            return FE_SHARED;
        insert(&s, sizes[i], strides[i]);
        elements *= sizes[i];
    }
    s.dims[s.count] = (dimension){ 0 };
    for (uint32_t i = s.count; i-- > 0;) {
        dimension *here = &s.dims[i];
        const dimension *rest = here + 1;
        nested = nested && here->stride > rest->reach;
        here->reach = rest->reach + here->most * here->stride;
    }
    if (nested)
        return FE_DISJOINT;
    if (elements > (uint64_t)s.dims[0].reach + 1)
        return FE_SHARED;
    prepare(&s);
    return find(&s, 0, 0, true);
}
