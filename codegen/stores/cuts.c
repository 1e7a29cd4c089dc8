/* SPDX-License-Identifier: Apache-2.0 */
/* cuts.c - divides the iterations of a loop: whole vectors several at a time, whole vectors, and a remainder, which is
 * one masked vector, one that begins in what was stored before, or vectors of half, a quarter ... of the width.  What
 * is known of the bounds decides which of them exist: code that can't run is not made. */
#include "codegen/plan.h"

typedef struct cutter {
    const cg_func *f;
    cg_plan *plan;
    int64_t min, max; /* remaining iterations */
    bool first;       /* nothing has been cut off yet */
    bool moved;       /* lo and hi say nothing about the remaining ones */
} cutter;

/* The remainder after whole vectors of `size` iterations, if it is the same for all runs of the loop; else -1. */
int64_t opjit_cg_known_rest(const cg_func *f, const cg_facts *is, uint64_t size)
{
    uint64_t gap;
    if (is->step != 1 || !opjit_cg_gap(f, is->lo, is->hi, size, &gap))
        return -1;
    return gap == 0 || is->ordered ? (int64_t)gap : -1; /* an empty loop has no remainder */
}

static cg_cut *add(cutter *c, cg_cut_kind kind, uint32_t lanes, uint32_t copies)
{
    cg_cut *cut = &c->plan->cuts[c->plan->cut_count++];
    *cut = (cg_cut){ .kind = kind, .lanes = lanes, .copies = copies, .min = c->min, .max = c->max, .rest = -1 };
    cut->first = c->first;
    c->first = false;
    return cut;
}

/* At quick LLVM would store registers that go round a loop twice; a function that is called keeps none. */
static cg_acc_place place_of_accumulators(const cutter *c, const cg_cut *cut)
{
    const cg_facts *is = &c->plan->is;
    const bool around = c->f->peak || (c->f->direct && !is->nested && is->calls == 0);
    const bool whole = cut->first && is->step == 1;
    const uint64_t size = (uint64_t)cut->lanes * cut->copies;
    if ((cut->lanes == 1 ? cut->copies == 1 : !whole) || !opjit_cg_can_hold(c->f, is->body, is->lo, cut->lanes, size))
        return CG_ACC_MEMORY;
    return around && cut->lanes > 1 && cut->kind == CG_CUT_ROUNDS ? CG_ACC_LOOP : CG_ACC_ROUND;
}

/* What remains after rounds of `size` iterations. */
static void leave(cutter *c, int64_t size, int64_t known)
{
    c->min = known >= 0 ? known : 0;
    c->max = known >= 0 ? known : size - 1;
}

/* As many times lanes x copies iterations as there are. */
static void cut_whole(cutter *c, uint32_t lanes, uint32_t copies, bool binades)
{
    const int64_t size = (int64_t)lanes * copies;
    const int64_t known = c->min == c->max ? c->min % size
                          : c->moved       ? -1
                                           : opjit_cg_known_rest(c->f, &c->plan->is, (uint64_t)size);
    if (c->max < size) {
        if (known >= 0)
            c->min = c->max = known;
        return;
    }
    cg_cut *cut = add(c, c->max >= 2 * size ? CG_CUT_ROUNDS : CG_CUT_ONCE, lanes, copies);
    cut->rest = known;
    cut->binades = binades;
    cut->accumulators = place_of_accumulators(c, cut);
    leave(c, size, known);
}

void opjit_cg_plan_whole(const cg_func *f, cg_plan *plan, uint32_t lanes, uint32_t copies, int64_t *min, int64_t *max)
{
    cutter c = { .f = f, .plan = plan, .min = *min, .max = *max, .moved = true };
    cut_whole(&c, lanes, copies, false);
    *min = c.min;
    *max = c.max;
}

static void cut_streams(cutter *c, uint32_t copies)
{
    const int64_t size = (int64_t)c->plan->is.lanes * copies;
    const bool known = c->min == c->max;
    add(c, CG_CUT_STREAMS, c->plan->is.lanes, copies)->rest = known ? c->max % size : -1;
    leave(c, size, known ? c->max % size : -1);
}

void opjit_cg_plan_overlap(cg_plan *plan, uint32_t lanes, int64_t min, int64_t max)
{
    add(&(cutter){ .plan = plan, .min = min, .max = max }, CG_CUT_OVERLAP, lanes, 1);
}

/* The number of vectors of which the iterations after the rounds are known to be a multiple. */
static uint32_t copies_in_rest(const cutter *c)
{
    uint32_t copies = c->plan->copies / 2;
    while (copies > 1 && opjit_cg_known_rest(c->f, &c->plan->is, (uint64_t)c->plan->is.lanes * copies) != 0)
        copies /= 2;
    return copies > 1 ? copies : 1;
}

static void cut_remainder(cutter *c)
{
    const cg_facts *is = &c->plan->is;
    if (is->lanes == 1 || c->max == 0)
        return;
    if (is->overlaps || is->maskable) {
        add(c, is->overlaps ? CG_CUT_OVERLAP : CG_CUT_MASKED, is->lanes, 1);
        return;
    }
    for (uint32_t lanes = is->lanes / 2; lanes > 0; lanes /= 2)
        if (c->min == c->max ? (c->min & lanes) != 0 : c->max >= lanes)
            add(c, CG_CUT_PART, lanes, 1);
}

void opjit_cg_plan_cuts(const cg_func *f, cg_plan *plan, int64_t min, int64_t max, bool aligned)
{
    cutter c = { .f = f, .plan = plan, .min = min, .max = max, .first = !aligned };
    const cg_facts *is = &plan->is;
    const uint32_t lanes = is->lanes, copies = plan->copies;
    const uint32_t limit = lanes == 1 && copies <= CG_SCALAR_COPIES ? CG_SCALAR_COPIES : CG_MOST_COPIES;
    /* All at once is one copy after the other, and calls are of copies side by side. */
    const uint32_t times = copies > CG_MANY_COPIES || is->calls > 1 ? copies : 4 * copies;
    const int64_t at_once = (int64_t)lanes * (times < limit ? times : limit);
    const bool straight = !is->nested && !is->in_block, few = min == max && straight;
    const uint32_t streams = opjit_cg_stream_copies(f, plan, max, aligned);
    if (streams > 0)
        cut_streams(&c, streams);
    if (plan->binades)
        cut_whole(&c, lanes, CG_HALF_COPIES, true);
    const bool tailed = few && is->maskable && !is->updates && !plan->binades && is->step == 1 && streams == 0;
    if (tailed && c.max <= at_once && c.max > lanes) {
        add(&c, CG_CUT_TAILED, lanes, (uint32_t)(c.max / lanes))->rest = c.max % lanes;
        return;
    }
    cut_whole(&c, lanes, few && c.max <= at_once && c.max >= lanes ? (uint32_t)(c.max / lanes) : copies, false);
    const bool known = c.min == c.max && c.max >= lanes && straight;
    cut_whole(&c, lanes, known ? (uint32_t)(c.max / lanes) : copies_in_rest(&c), false);
    cut_remainder(&c);
}
